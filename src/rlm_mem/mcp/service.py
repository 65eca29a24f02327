"""The service behind every transport: one confined memory, its tools, and how a call is carried out."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.errors import NotFoundError, RlmMemError
from rlm_mem.mcp.arguments import decode
from rlm_mem.mcp.tool import OfferedTool, tools_for
from rlm_mem.operations.context import OpenMemory, storable
from rlm_mem.operations.operation import Context, Reply, no_progress
from rlm_mem.operations.problems import problem_of
from rlm_mem.sandbox.stopping import Stop, stopped_by
from rlm_mem.telemetry import operation

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

__all__ = ["Answer", "Service"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """The outcome of a call: plain data and the same as text, or an error in words."""

    text: str
    data: dict[str, Any] | None = None

    @property
    def failed(self) -> bool:
        """The text is an error."""
        return self.data is None


class Service:
    """Carries out the calls of clients on one memory; safe for several threads.

    Args:
        opened: the memory that is served.
    """

    def __init__(self, opened: OpenMemory) -> None:
        self.opened = opened
        self.settings = opened.settings
        self.tools: dict[str, OfferedTool] = {
            tool.name: tool
            for tool in tools_for(every=self.settings.every_tool, read_only=self.settings.read_only)
        }

    @property
    def memory(self) -> Memory:
        """The memory, opened when first asked for.

        Raises:
            RlmMemError: it cannot be opened.
        """
        return self.opened.memory

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None,
        *,
        progress: Callable[[float, float | None, str], None] = no_progress,
        given_up: threading.Event | None = None,
    ) -> Answer:
        """Run a tool. Whatever goes wrong with it is in the answer, so that the calling model can react.

        Raises:
            NotFoundError: there is no such tool.
        """
        tool = self.tools.get(name)
        if tool is None:
            raise NotFoundError(f"there is no tool {name!r:.80}", hint=f"There are: {', '.join(self.tools)}.")
        with operation("tool", tool=name) as current:
            answer = self._answer(tool, arguments, progress, given_up or threading.Event())
            if answer.failed:
                current.failed("refused")
            return answer

    def _answer(
        self,
        tool: OfferedTool,
        arguments: Mapping[str, Any] | str | None,
        progress: Callable[[float, float | None, str], None],
        given_up: threading.Event,
    ) -> Answer:
        try:
            request = decode(tool.request, tool.tool.aliases, arguments)
            context = Context(
                opened=self.opened,
                path={name: getattr(request, name) for name in tool.parts},
                progress=progress,
                given_up=given_up,
            )
            with stopped_by(given_up) if isinstance(given_up, Stop) else nullcontext():
                result = tool.run(context, request)
            data = plain(result.data if isinstance(result, Reply) else result)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the server: log it and answer
            why = problem_of(error)
            if why.status == 500 and not isinstance(error, RlmMemError):
                _log.exception("tool %s failed", tool.name)
            return Answer(why.sentence)
        return Answer(json.dumps(data, ensure_ascii=False), data)

    def close(self) -> None:
        """End open recalls and close the memory."""
        self.opened.close()


def plain(result: msgspec.Struct) -> dict[str, Any]:
    """The result as plain data whose text UTF-8 can hold: remembered text may be anything."""
    return storable(msgspec.to_builtins(result))
