"""Values in forms that PostgreSQL accepts: arrays built in bulk, and texts without characters that it cannot store."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from psycopg.abc import Buffer
from psycopg.types import array

from rlm_mem.store.core.arrays import Ints

Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs one statement with its values and returns all its rows."""
Statement = tuple[str, Sequence[object]]
"""A statement and its values."""

_MARK, _NUL = "\x01", "\x02"
_MARKED = re.compile(f"{_MARK}(.)", re.DOTALL)


def integers(values: Ints) -> str:
    """Return an `int4[]` as text; psycopg takes much longer to find out what a list consists of."""
    return f"{{{','.join(map(str, values.tolist()))}}}"


class ListDumper(array.ListDumper):
    """Dumps lists as psycopg does, but lists of only texts or only integers in bulk, not item by item."""

    def dump(self, obj: list[Any]) -> Buffer | None:
        """See `psycopg.adapt.Dumper.dump`."""
        kinds = set(map(type, obj))
        if kinds == {int}:
            return f"{{{','.join(map(str, obj))}}}".encode()
        text = '","'.join(obj) if kinds == {str} else "\0"
        if "\0" in text:  # not only texts, or a NUL, which psycopg refuses
            return super().dump(obj)
        if "\\" in text or text.count('"') > 2 * (len(obj) - 1):
            text = '","'.join(one.replace("\\", "\\\\").replace('"', '\\"') for one in obj)
        return f'{{"{text}"}}'.encode()


# --- texts -----------------------------------------------------------------------------------------------------


_UNSTORABLE = {0: "\x01", **dict.fromkeys(range(0xD800, 0xE000), "\x01")}


def plain(text: str) -> str:
    """Make a text comparable in PostgreSQL: characters that it cannot store are replaced by one that no column has."""
    return text if text.isprintable() else text.translate(_UNSTORABLE)


def stored(text: str) -> str:
    """Return a dictionary entry as stored in its table: the name of an author may contain a NUL, which is escaped."""
    if "\0" not in text and _MARK not in text:
        return text
    return text.replace(_MARK, _MARK + _MARK).replace("\0", _MARK + _NUL)


def shown(text: str) -> str:
    """The inverse of `stored`."""
    if _MARK not in text:
        return text
    return _MARKED.sub(lambda found: "\0" if found[1] == _NUL else found[1], text)
