"""Values in forms that PostgreSQL accepts: texts without characters that it cannot store, and arrays built in bulk."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types import array

Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs one statement with its values and returns all its rows."""
Statement = tuple[str, Sequence[object]]
"""A statement and its values."""

_MARK, _NUL = "\x01", "\x02"
_MARKED = re.compile(f"{_MARK}(.)", re.DOTALL)
_ONE_DIMENSION = 1
_BYTEA, _INTEGER = 17, 23


class Integers:
    """An `int4[]` of numbers below 2**31."""

    __slots__ = ("data",)

    def __init__(self, values: npt.NDArray[Any]) -> None:
        body = np.empty((len(values), 2), ">i4")
        body[:, 0], body[:, 1] = 4, values
        self.data = _header(_INTEGER, len(values)) + body.tobytes()


class Blobs:
    """A `bytea[]` built from concatenated items.

    Args:
        words: 32-bit words of all items; they are sent in little-endian order.
        counts: the number of words in each item, at least one.
    """

    __slots__ = ("data",)

    def __init__(self, words: npt.NDArray[Any], counts: npt.NDArray[np.int64]) -> None:
        body = np.empty(len(words) + len(counts), "<u4")
        heads = np.cumsum(counts) - counts + np.arange(len(counts))
        is_word = np.ones(len(body), np.bool_)
        is_word[heads] = False
        body[is_word] = words
        body[heads] = (counts * 4).astype(">u4").view("<u4")  # an item's length precedes it, big-endian
        self.data = _header(_BYTEA, len(counts)) + body.tobytes()


def _header(kind: int, count: int) -> bytes:
    fields = (_ONE_DIMENSION, 0, kind, count, 1) if count else (0, 0, kind)
    return np.array(fields, ">i4").tobytes()


class _RawDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        data: bytes = obj.data
        return data


class _IntegersDumper(_RawDumper):
    oid = 1007


class _BlobsDumper(_RawDumper):
    oid = 1001


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


def array_cursor(connection: psycopg.Connection[Any]) -> psycopg.Cursor[Any]:
    """Return a cursor that accepts `Integers` and `Blobs`, and returns binary values."""
    cursor = connection.cursor(binary=True)
    cursor.adapters.register_dumper(Integers, _IntegersDumper)
    cursor.adapters.register_dumper(Blobs, _BlobsDumper)
    return cursor


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
