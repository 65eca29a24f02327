"""What a tool is: its name, what it takes and gives, how it runs, and the schemas that follow from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.mcp.arguments import Arguments

if TYPE_CHECKING:
    from rlm_mem.mcp.service import Call

__all__ = ["Tool", "input_schema", "object_schema"]


@dataclass(frozen=True)
class Tool:
    """A tool as clients see it, and the function behind it.

    Attributes:
        name: verb, `[a-z_]`.
        title: the name for people.
        description: for the model: what it does, when to use it.
        takes: type of the arguments.
        gives: type of the result, a msgspec Struct.
        run: the function; called in a worker thread with the call and the decoded arguments.
        read_only: it changes no memory (that it was asked may be recorded).
        destructive: it may take something away or replace it.
        idempotent: the same call again changes nothing more.
        open_world: it may ask a model over the network, as configured.
        aliases: other names of arguments.
        default: offered without ``--tools all``.
    """

    name: str
    title: str
    description: str
    takes: type[Arguments]
    gives: type[msgspec.Struct]
    run: Callable[[Call, Any], msgspec.Struct]
    read_only: bool
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False
    aliases: Mapping[str, str] = field(default_factory=dict)
    default: bool = True


def object_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema (2020-12) of a Struct, with `type: object` at its root, as clients demand."""
    (reference,), components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    root: dict[str, Any] = components.pop(reference["$ref"].rpartition("/")[2])
    if components:
        root["$defs"] = components
    return root


def input_schema(tool: Tool) -> dict[str, Any]:
    """The schema of what a tool takes: only the proper names, since aliases are for those who guess."""
    schema = object_schema(tool.takes)
    schema["additionalProperties"] = False
    schema.pop("description", None)
    return schema
