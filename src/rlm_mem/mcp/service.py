"""The service behind every transport: one confined memory, its tools with their schemas, and calls of them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem import telemetry
from rlm_mem.access.grants import OWNER, Caller
from rlm_mem.errors import NotFoundError, RlmMemError
from rlm_mem.operations.context import OpenMemory, storable
from rlm_mem.operations.decoding import from_agent
from rlm_mem.operations.fitting import Reply, run_fitted
from rlm_mem.operations.operation import Context, Operation, Tool, no_progress, parts_of
from rlm_mem.operations.problems import problem_of
from rlm_mem.operations.registry import OPERATIONS
from rlm_mem.operations.types import Request
from rlm_mem.sandbox.engine import Stop, stopped_by
from rlm_mem.text.quoting import escaped

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

#: The client of a server on stdin and stdout, which runs as the user who owns the memory.
_LOCAL = Caller(OWNER)


@dataclass(frozen=True)
class OfferedTool:
    """An operation as a tool for agents.

    Attributes:
        operation: the operation that the tool runs.
        tool: name, description and annotations.
        request, response, run: the tool's own, else those of the operation.
        path: names of path parameters of the HTTP address, by the arguments that provide them.
    """

    operation: Operation
    tool: Tool
    request: type[Request]
    response: type[msgspec.Struct]
    run: Callable[[Context, Any], Any]
    path: Mapping[str, str]

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name

    @property
    def read_only(self) -> bool:
        """Whether the tool changes no memory (the call itself may be recorded)."""
        return not self.operation.writes


def tools_for(*, every: bool = False, read_only: bool = False) -> list[OfferedTool]:
    """Return the tools of a server: the default ones, then the others, both in the order of the operations.

    Args:
        every: include tools that are not offered by default.
        read_only: leave out tools that change a memory.
    """
    found = [(operation, operation.tool) for operation in OPERATIONS if operation.tool is not None]
    return [
        _offered(operation, tool)
        for default in (True, False)
        for operation, tool in found
        if tool.default is default and (every or default) and not (read_only and operation.writes)
    ]


def _offered(operation: Operation, tool: Tool) -> OfferedTool:
    request, run = tool.request or operation.request or Request, tool.run or operation.run
    assert run is not None, f"{tool.name} has no function"
    names = {field.name for field in msgspec.structs.fields(request)}
    return OfferedTool(
        operation=operation,
        tool=tool,
        request=request,
        response=tool.response or operation.response,
        run=run,
        path={**{name: name for name in parts_of(operation.path) if name in names}, **tool.path},
    )


@cache
def object_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema (2020-12) of a Struct, with `type: object` at its root, as clients require.

    It is made once, since every client asks for those of all tools: not to be changed.
    """
    (reference,), components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    root: dict[str, Any] = components.pop(reference["$ref"].rpartition("/")[2])
    if components:
        root["$defs"] = components
    return root


def input_schema(tool: OfferedTool) -> dict[str, Any]:
    """Return the schema of a tool's arguments, without their aliases.

    It is short, since a model reads it with every request: patterns are enforced, but only described in words, and what
    says nothing is left out: titles, the default null, descriptions of items.
    """
    schema: dict[str, Any] = _shortened(object_schema(tool.request))
    schema["additionalProperties"] = False
    schema.pop("description", None)
    if "max_tokens" in schema.get("properties", ()):  # a field of the base class comes first
        schema["properties"]["max_tokens"] = schema["properties"].pop("max_tokens")
    return schema


def output_schema(tool: OfferedTool) -> dict[str, Any]:
    """Return the schema of a tool's result, as short as that of its arguments."""
    schema: dict[str, Any] = _shortened(object_schema(tool.response))
    return schema


def _shortened(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_shortened(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    short = {
        name: _shortened(value)
        for name, value in schema.items()
        # An argument may have one of these names: its value is then a schema.
        if name not in ("pattern", "examples", "x-names", "title") or not isinstance(value, str | list)
    }
    if short.get("default", ...) is None:
        del short["default"]
    if isinstance(items := short.get("items"), dict):
        items.pop("description", None)
    for one in short.get("anyOf", ()):  # move the description of an optional argument to its top level
        if "description" in one:
            short.setdefault("description", one.pop("description"))
    return short


_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """The result of a call: plain data and its JSON text, or the text of an error."""

    text: str
    data: dict[str, Any] | None = None

    @property
    def failed(self) -> bool:
        """Whether the text is an error."""
        return self.data is None


class Service:
    """Runs the calls of clients on one memory; safe for several threads.

    Args:
        opened: the memory to serve.
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
        """The memory of the server, opened on first access.

        Raises:
            RlmMemError: it cannot be opened.
        """
        return self.opened.memory

    def tools_of(self, client: Caller) -> list[OfferedTool]:
        """Return the tools that a client may call."""
        access = client.access
        return [
            tool
            for tool in self.tools.values()
            if access.permits(tool.operation.needs) and (not tool.operation.everywhere or access.covers("*"))
        ]

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None,
        *,
        progress: Callable[[float, float | None, str], None] = no_progress,
        stop: Stop | None = None,
        client: Caller = _LOCAL,
    ) -> Answer:
        """Run a tool; its errors are part of the answer, so that the calling model can react.

        Args:
            stop: ends the call when the client no longer waits.
            client: the caller; by default the owner of the memory.

        Raises:
            NotFoundError: there is no such tool.
        """
        tool = self.tools.get(name)
        if tool is None:
            raise NotFoundError(f"there is no tool {name!r:.80}", hint=f"there are: {', '.join(self.tools)}")
        with telemetry.operation("tool", tool=name) as current:
            answer = self._answer(tool, arguments, progress, stop or Stop(), client)
            if answer.failed:
                current.failed("refused")
            return answer

    def _answer(
        self,
        tool: OfferedTool,
        arguments: Mapping[str, Any] | str | None,
        progress: Callable[[float, float | None, str], None],
        stop: Stop,
        client: Caller,
    ) -> Answer:
        try:
            opened = self.opened.admit(client, tool.operation.needs, everywhere=tool.operation.everywhere)
            if tool.read_only:
                opened = opened.reading
            request = from_agent(tool.request, arguments, tool.tool.aliases)
            context = Context(
                opened=opened,
                path={part: getattr(request, name) for name, part in tool.path.items()},
                progress=progress,
                agent=True,
            )
            with stopped_by(stop):
                result = run_fitted(lambda given: tool.run(context, given), request)
            data = plain(result.data if isinstance(result, Reply) else result)
        except Exception as error:  # noqa: BLE001 - an internal error must not end the server: log it and answer
            why = problem_of(error)
            if why.status == 500 and not isinstance(error, RlmMemError):
                _log.exception("tool %s failed", tool.name)
            return Answer(why.sentence)
        return Answer(escaped(json.dumps(data, ensure_ascii=False)), data)

    def close(self) -> None:
        """End open recalls and close the memory."""
        self.opened.close()


def plain(result: object) -> dict[str, Any]:
    """Return the result as plain data, with unpaired surrogates replaced, since UTF-8 cannot encode them."""
    return storable(msgspec.to_builtins(result))
