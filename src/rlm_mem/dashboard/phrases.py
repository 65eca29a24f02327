"""Sentences for what data calls by a name: how two memories are linked, how strongly, and what was done to one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm_mem.chunk import LINK_TYPES
from rlm_mem.dashboard.words import first_line

__all__ = ["deed", "origin", "plain_fields", "strength_word", "way"]

_WAYS = {kind.name: (kind.does, kind.undergoes) for kind in LINK_TYPES}
"""Of each built-in type of link, what the memory whose page it is does to the other one: as source, as target."""

_DEEDS = {
    "create": "remembered",
    "import": "imported",
    "update": "edited",
    "delete": "archived",
    "restore": "restored from the archive",
    "erase": "removed for good",
    "repeat": "said again",
}


def way(kind: str, direction: str) -> str:
    """`supports it`, `is supported by it`: how the memory of a page stands to one that it is linked with.

    Args:
        direction: ``out`` where the link is its own, else ``in``.
    """
    name = kind.replace("_", " ")
    source, target = _WAYS.get(kind, (f"{name}: this to that", f"{name}: that to this"))
    return source if direction == "out" else target


def strength_word(strength: float) -> str:
    """`weak`, `fair` or `strong` of a strength from 0 to 1."""
    if strength < 1 / 3:
        return "weak"
    return "fair" if strength < 2 / 3 else "strong"


def deed(event: Mapping[str, Any]) -> str:
    """What an entry of the audit log tells, without the memory at the other end of a link."""
    op = str(event.get("op"))
    if op == "link":
        return f"link added: this one {way(str(event.get('type', '')), 'out')}"
    if op == "unlink":
        return "link removed"
    if op == "undo":
        return (
            f"revision {event['to']} put back in force"
            if event.get("to")
            else "a former revision put back in force"
        )
    return _DEEDS.get(op, op.replace("_", " "))


def origin(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where a memory comes from, as a person reads it; fields that somebody else gave are left as they are."""
    fields = {name: value for name, value in provenance.items() if value not in (None, "")}
    made = []
    span = fields.pop("span", None)
    if isinstance(span, list | tuple) and len(span) == 2:
        made.append(("Place", f"characters {span[0]} to {span[1]} of what was said"))
    elif span is not None:
        fields["span"] = span
    if "part" in fields and "parts" in fields:
        made.append(("Part", f"{fields.pop('part')} of {fields.pop('parts')}"))
    if "overlap" in fields:
        made.append(("Overlap", f"its first {fields.pop('overlap')} characters also end the part before"))
    return made + plain_fields(fields)


def plain_fields(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values as they are, each on one line; what is empty is left out."""
    return [
        (str(name), first_line(str(value), 400)) for name, value in fields.items() if value not in (None, "")
    ]
