"""Bounds for every value that crosses the sandbox's boundary: plain data, few nodes, limited bytes and depth.

A list that holds itself twice, thirty times over, is tiny inside the sandbox and endless for ``repr``, ``json``
or ``==`` outside. So no value of a program is looked at before it was copied through here.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rlm_mem.sandbox.wire import Described, Fields, KeyLimit

__all__ = [
    "Bounds",
    "Described",
    "Fields",
    "TooLarge",
    "chunk_ids_in",
    "clipped",
    "plain",
    "preview",
    "well_formed",
]

MAX_NAME_CHARS = 80
"""Characters of the name of a class, a function or an error that are kept."""


_ID_FIELDS = ("id", "ids", "superseded_by")
"""How the names of fields end that hold ids of chunks."""


class TooLarge(ValueError):
    """A value exceeds its bounds; the message names the bound and what to do."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large a value may be.

    Attributes:
        nodes: containers and leaves together; a part that is shared counts each time it appears.
        text: characters of all strings (and bytes) together.
        depth: nesting of containers.
        digits: decimal digits of one integer.
    """

    nodes: int = 50_000
    text: int = 10_485_760
    depth: int = 40
    digits: int = 4_000


def clipped(text: str, limit: int) -> str:
    """The text, cut at ``limit`` characters with a note that says how many it had."""
    return text if len(text) <= limit else f"{text[:limit]} … ({len(text):,} characters, cut)"


def chunk_ids_in(value: Any) -> Iterator[str]:
    """The chunk ids that a result of a host function names: in lists of ids, and in fields that hold one.

    Args:
        value: plain data of bounded size, which does not hold itself.
    """
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            if part.startswith("chunk-"):
                yield part
        elif isinstance(part, list | tuple | set):
            stack.extend(part)
        elif isinstance(part, dict):
            # Stored text is no id, whatever it looks like.
            stack.extend(
                one
                for name, one in part.items()
                if isinstance(one, list | dict) or (isinstance(name, str) and name.endswith(_ID_FIELDS))
            )


def well_formed(text: str) -> str:
    """The text with U+FFFD in place of lone surrogates, which neither JSON nor UTF-8 can carry."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class _Copier:
    """Copies one value; stops with :class:`TooLarge` before the copy outgrows the bounds."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._nodes = bounds.nodes
        self._text = bounds.text
        self._keys = KeyLimit(TooLarge)

    def copy(self, value: Any, depth: int = 0) -> Any:
        kind = type(value)
        self._nodes -= 1
        if self._nodes < 0:
            raise TooLarge(f"the value has more than {self._bounds.nodes:,} parts; pass on fewer of them")
        if value is None or kind is bool or kind is float:
            return value
        if kind is int:
            if value.bit_length() > self._bounds.digits * 3.33:
                raise TooLarge(f"the number has more than {self._bounds.digits:,} digits")
            return value
        if kind is str:
            self._charge(len(value))
            return value
        if kind is Described:
            self._charge(len(value))
            return value
        if kind is bytes or kind is bytearray:
            self._charge(len(value))
            return bytes(value)
        if depth >= self._bounds.depth:
            raise TooLarge(f"the value is nested more than {self._bounds.depth} levels deep, or holds itself")
        return self._container(value, kind, depth + 1)

    def _container(self, value: Any, kind: type, depth: int) -> Any:
        copy = self.copy
        if kind is list:
            self._room(len(value))
            return [copy(item, depth) for item in value]
        if isinstance(value, tuple):
            self._room(len(value))
            fields = getattr(value, "_fields", None)
            if fields is not None and len(fields) == len(value):
                return {str(name): copy(item, depth) for name, item in zip(fields, value, strict=True)}
            return tuple(copy(item, depth) for item in value)
        if isinstance(value, dict):
            self._room(2 * len(value))
            copied = {
                self._keys.admit(copy(key, depth)): copy(item, depth) for key, item in dict.items(value)
            }
            return Fields(copied) if kind is Fields else copied
        if kind is set or kind is frozenset:
            self._room(len(value))
            return {self._keys.admit(copy(item, depth)) for item in value}
        if isinstance(value, list):
            self._room(len(value))
            return [copy(item, depth) for item in value]
        if isinstance(value, Decimal):
            self._charge(len(value.as_tuple().digits))
            return value
        if isinstance(value, dt.date | dt.time | dt.timedelta):
            return value
        return Described(_named(value))

    def _charge(self, characters: int) -> None:
        self._text -= characters
        if self._text < 0:
            raise TooLarge(
                f"the value holds more than {self._bounds.text:,} characters of text; pass on a part of it"
            )

    def _room(self, count: int) -> None:
        # Checked before the loop, so that a huge list costs nothing.
        if count > self._nodes:
            raise TooLarge(f"the value has more than {self._bounds.nodes:,} parts; pass on fewer of them")


def _named(value: Any) -> str:
    """Functions, types and host stand-ins, by name."""
    if isinstance(value, type):
        return f"<class {clipped(value.__name__, MAX_NAME_CHARS)!r}>"
    name = getattr(value, "name", None)
    return f"<{clipped(name if isinstance(name, str) else type(value).__name__, MAX_NAME_CHARS)}>"


def plain(value: Any, bounds: Bounds | None = None) -> Any:
    """Copy ``value`` as plain data: None, bool, int, float, str, bytes, list, tuple, set, dict, dates.

    Named tuples and instances become dicts of their fields; functions and types become a short text.

    Raises:
        TooLarge: it exceeds ``bounds``.
    """
    return _Copier(bounds or Bounds()).copy(value)


def preview(value: Any, limit: int = 200) -> str:
    """Return source-like text for ``value`` of at most ``limit`` characters; never walks more than that.

    Safe for values that hold themselves and for very large ones.
    """
    parts: list[str] = []
    _preview(value, limit, 0, parts)
    text = "".join(parts)
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def _preview(value: Any, room: int, depth: int, parts: list[str]) -> int:
    """Append the text of ``value``; return the room that is left (below 0: stop)."""

    def put(text: str) -> int:
        parts.append(text)
        return room - len(text)

    if isinstance(value, str):
        return put(repr(value if len(value) <= room + 1 else value[: room + 1]))
    if isinstance(value, bytes | bytearray):
        return put(repr(bytes(value[: room + 1])))
    if isinstance(value, bool) or value is None:
        return put(repr(value))
    if isinstance(value, int):
        if value.bit_length() > 3_000:
            return put(f"<int of about {int(value.bit_length() * math.log10(2)):,} digits>")
        return put(repr(value))
    if isinstance(value, float):
        return put(repr(value))
    if depth > 6:
        return put("…")
    if isinstance(value, list | tuple | set | frozenset):
        opening, closing = ("[", "]") if isinstance(value, list) else ("(", ")")
        room = put(opening)
        for number, item in enumerate(value):
            if room < 0:
                return room
            if number:
                room = put(", ")
            room = _preview(item, room, depth + 1, parts)
        return put(closing)
    if isinstance(value, dict):
        room = put("{")
        for number, (key, item) in enumerate(value.items()):
            if room < 0:
                return room
            if number:
                room = put(", ")
            room = _preview(key, room, depth + 1, parts)
            room = put(": ")
            room = _preview(item, room, depth + 1, parts)
        return put("}")
    if isinstance(value, dt.date | dt.time | dt.timedelta | Decimal):
        return put(str(value))
    return put(_named(value))
