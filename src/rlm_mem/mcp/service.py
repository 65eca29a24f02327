"""The service behind every transport: one confined memory, its tools, and how a call is carried out."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.errors import NotFoundError, RlmMemError, SessionCancelled
from rlm_mem.mcp.arguments import decode
from rlm_mem.mcp.tool import Tool
from rlm_mem.mcp.toolset import tools_for
from rlm_mem.operations.context import CallCancelled, OpenMemory, Settings, in_words, storable
from rlm_mem.operations.handles import Handles
from rlm_mem.sandbox.stopping import Stop, stopped_by
from rlm_mem.telemetry import operation

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

__all__ = ["Answer", "Call", "Service"]

_log = logging.getLogger(__name__)


def _silent(done: float, total: float | None, message: str) -> None:
    """Progress that nobody asked for."""


@dataclass(frozen=True)
class Call:
    """What a tool may use while it runs.

    Attributes:
        memory: the open memory, confined to its namespace.
        handles: open host-driven recalls.
        settings: of the server.
        progress: report (done, total, message).
        given_up: set when the client no longer waits.
    """

    memory: Memory
    handles: Handles
    settings: Settings
    progress: Callable[[float, float | None, str], None] = _silent
    given_up: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Stop here when the client no longer waits.

        Raises:
            CallCancelled: it does not.
        """
        if self.given_up.is_set():
            raise CallCancelled("the client no longer waits for this call")


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
        self.tools: dict[str, Tool] = {
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
        progress: Callable[[float, float | None, str], None] = _silent,
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
        tool: Tool,
        arguments: Mapping[str, Any] | str | None,
        progress: Callable[[float, float | None, str], None],
        given_up: threading.Event,
    ) -> Answer:
        try:
            decoded = decode(tool.takes, tool.aliases, arguments)
            call = Call(self.memory, self.opened.handles, self.settings, progress, given_up)
            with stopped_by(given_up) if isinstance(given_up, Stop) else nullcontext():
                data = plain(tool.run(call, decoded))
        except SessionCancelled:
            return Answer("the client no longer waits for this call")
        except RlmMemError as error:
            return Answer(in_words(error))
        except CallCancelled as error:
            return Answer(str(error))
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the server: log it, say it
            _log.exception("tool %s failed", tool.name)
            return Answer(in_words(RlmMemError(f"internal error: {type(error).__name__}: {error}"[:500])))
        return Answer(json.dumps(data, ensure_ascii=False), data)

    def close(self) -> None:
        """End open recalls and close the memory."""
        self.opened.close()


def plain(result: msgspec.Struct) -> dict[str, Any]:
    """The result as plain data whose text UTF-8 can hold: remembered text may be anything."""
    return storable(msgspec.to_builtins(result))
