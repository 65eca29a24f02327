"""Tools: the operations that agents are offered, and the schemas that follow from their types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from rlm_mem.operations.operation import Context, Operation, Tool, parts_of
from rlm_mem.operations.registry import OPERATIONS
from rlm_mem.operations.types import Request

__all__ = ["OfferedTool", "input_schema", "object_schema", "tools_for"]


@dataclass(frozen=True)
class OfferedTool:
    """An operation as agents see it.

    Attributes:
        tool: name, description and annotations.
        request, response, run: the tool's own, else those of the operation.
        parts: what of the request stands in the address over HTTP.
        read_only: it changes no memory (that it was asked may be recorded).
    """

    tool: Tool
    request: type[Request]
    response: type[msgspec.Struct]
    run: Callable[[Context, Any], Any]
    parts: tuple[str, ...]
    read_only: bool

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name


def tools_for(*, every: bool = False, read_only: bool = False) -> list[OfferedTool]:
    """The tools of a server: those offered by default first, each part in the order of the operations.

    Args:
        every: also those that are not offered by default.
        read_only: none that changes a memory.
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
        tool=tool,
        request=request,
        response=tool.response or operation.response,
        run=run,
        parts=tuple(name for name in parts_of(operation.path) if name in names),
        read_only=not operation.writes,
    )


def object_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema (2020-12) of a Struct, with `type: object` at its root, as clients demand."""
    (reference,), components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    root: dict[str, Any] = components.pop(reference["$ref"].rpartition("/")[2])
    if components:
        root["$defs"] = components
    return root


def input_schema(tool: OfferedTool) -> dict[str, Any]:
    """The schema of what a tool takes: only the proper names, since aliases are for those who guess."""
    schema = object_schema(tool.request)
    schema["additionalProperties"] = False
    schema.pop("description", None)
    return schema
