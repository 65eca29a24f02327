"""The byte form of plain values between the host and the CPython worker: length-prefixed, bounded, no pickle.

The host does not trust these bytes, since the program runs in the process that writes them: decoding is bounded in
parts, depth and bytes, and anything unexpected raises :class:`Malformed`, after which the worker is killed. The worker
also loads this module, by path and before its lock-down, so it imports nothing of the package.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections import Counter, OrderedDict, defaultdict
from decimal import Decimal
from typing import Any

MAX_NODES = 60_000
MAX_DEPTH = 60
MAX_BYTES = 12 * 1024 * 1024
"""Maximum bytes of a frame: enough for the documented 10 MB of text, and small enough for two copies in the host."""

HEADER = struct.Struct(">2sBIQ")
_MAGIC = b"RM"
_LENGTH = struct.Struct(">I")
_FLOAT = struct.Struct(">d")
_SCALARS = (str, bytes, bool, int, float, Decimal, dt.datetime, dt.date, dt.time, dt.timedelta)
_EXACT = (type(None), bool, int, float, str, bytes, list, tuple, dict, set, frozenset)
_DATES: dict[str, Any] = {"datetime": dt.datetime, "date": dt.date, "time": dt.time}
_DICTS: dict[str, Any] = {"Counter": Counter, "OrderedDict": OrderedDict, "defaultdict": defaultdict}
_FACTORIES: dict[str, Any] = {kind.__name__: kind for kind in (bool, dict, float, int, list, set, str, tuple)}


class Malformed(ValueError):
    """Bytes that violate the protocol, or a value that exceeds the bounds."""


class Described(str):
    """A short text in place of a value that is not plain data (a function, a class, a complex number)."""

    __slots__ = ()


class Fields(dict[str, Any]):
    """The fields of an instance of a class, in place of the instance."""


class KeyLimit:
    """Checks keys of dicts and members of sets before anything hashes them.

    The hash of text and bytes is randomised per process, and small integers have distinct hashes. Thousands of other
    keys can share one hash, and a dict of such keys takes minutes to build, so one value may have at most 500 of them.

    Args:
        error: the class of error to raise.
    """

    __slots__ = ("_error", "_left")

    MAX_OTHER_KEYS = 500
    MAX_TUPLE_PARTS = 8
    SMALL = 1 << 31

    def __init__(self, error: type[ValueError] = Malformed) -> None:
        self._error = error
        self._left = self.MAX_OTHER_KEYS

    def admit(self, key: Any) -> Any:
        """Return the key.

        Raises:
            ValueError: it cannot be a key, or too many keys of this value are neither text nor small integers.
        """
        if not self.fits(key):
            raise self._error("keys and members of sets are text, numbers, dates, or short tuples of those")
        return key

    def fits(self, key: Any) -> bool:
        """Return whether it can be a key, and count it if it is neither text nor a small integer.

        Raises:
            ValueError: there are too many such keys.
        """
        kind = type(key)
        if kind is str or kind is bytes or key is None or kind is bool:
            return True
        if kind is int and -self.SMALL < key < self.SMALL:
            return True
        self._left -= 1
        if self._left < 0:
            raise self._error(
                f"the value has more than {self.MAX_OTHER_KEYS:,} keys or members that are neither text nor small "
                "integers; use text keys, or pass on a list"
            )
        parts = key if kind is tuple else (key,)
        return len(parts) <= self.MAX_TUPLE_PARTS and all(
            part is None or type(part) in _SCALARS for part in parts
        )


def frame_header(kind: int, request: int, length: int) -> bytes:
    """Return the header of one frame: magic, kind, length of the payload, request id."""
    return HEADER.pack(_MAGIC, kind, length, request)


def parse_header(header: bytes | bytearray) -> tuple[int, int, int]:
    """Return ``(kind, request, length)``.

    Raises:
        Malformed: wrong magic or a payload beyond ``MAX_BYTES``.
    """
    magic, kind, length, request = HEADER.unpack(header)
    if magic != _MAGIC or length > MAX_BYTES:
        raise Malformed("not a frame, or a frame that is too long")
    return kind, request, length


class _Writer:
    def __init__(self, max_nodes: int, max_bytes: int, strict: bool) -> None:
        self.parts: list[bytes] = []
        self.nodes = max_nodes
        self.bytes = max_bytes
        self.strict = strict
        self.keys = KeyLimit()

    def key(self, key: Any, depth: int) -> None:
        """Write a key or member in a form that the reader accepts."""
        if not isinstance(key, str | bytes) and not self.keys.fits(key):
            if self.strict:
                raise Malformed("no plain data")
            key = _shown(key, 200)
        self.value(key, depth)

    def put(self, tag: bytes, data: bytes) -> None:
        self.bytes -= len(data) + 5
        if self.bytes < 0:
            raise Malformed("the value contains too much text; pass on a part of it")
        self.parts.append(tag)
        self.parts.append(_LENGTH.pack(len(data)))
        self.parts.append(data)

    def start(self, tag: bytes, count: int) -> None:
        if count > self.nodes:
            raise Malformed("the value has too many parts; pass on fewer of them")
        self.parts.append(tag)
        self.parts.append(_LENGTH.pack(count))

    def value(self, value: Any, depth: int) -> None:
        self.nodes -= 1
        if self.nodes < 0:
            raise Malformed("the value has too many parts; pass on fewer of them")
        if depth > MAX_DEPTH:
            raise Malformed("the value is nested too deep, or contains itself")
        kind = type(value)
        if (
            self.strict
            and kind not in _EXACT
            and kind.__module__ not in ("collections", "datetime", "decimal")
        ):
            raise Malformed("no plain data")
        if value is None:
            self.parts.append(b"N")
        elif kind is bool:
            self.parts.append(b"T" if value else b"F")
        elif kind is int:
            if value.bit_length() > 13_000:
                raise Malformed("the number has more than 4,000 digits")
            self.put(b"i", str(value).encode())
        elif kind is float:
            self.parts.append(b"f" + _FLOAT.pack(value))
        elif isinstance(value, str):
            self.put(b"s", str.encode(value, "utf-8", "surrogatepass"))
        elif kind is bytes or kind is bytearray:
            self.put(b"b", bytes(value))
        elif isinstance(value, dict):
            if self.strict and kind is not dict:
                self.dict_kind(kind, value)
            self.start(b"d", len(value))
            for key, item in dict.items(value):
                self.key(key, depth + 1)
                self.value(item, depth + 1)
        elif isinstance(value, tuple) and hasattr(kind, "_fields"):
            self.value(dict(zip(kind._fields, value, strict=False)), depth)
        elif isinstance(value, list | tuple | set | frozenset):
            tag = b"e" if isinstance(value, set | frozenset) else b"t" if kind is tuple else b"l"
            self.start(tag, len(value))
            write = self.key if tag == b"e" else self.value
            for item in value:
                write(item, depth + 1)
        elif kind.__name__ in _DATES and kind.__module__ == "datetime":
            self.put(b"D", f"{kind.__name__} {value.isoformat()}".encode())
        elif kind is dt.timedelta:
            self.put(b"D", f"timedelta {value.days} {value.seconds} {value.microseconds}".encode())
        elif kind is Decimal:
            if len(text := str(value)) > 4_000:
                raise Malformed("the number has more than 4,000 digits")
            self.put(b"D", f"Decimal {text}".encode())
        elif self.strict:
            raise Malformed("no plain data")
        else:
            self.other(value, depth)

    def dict_kind(self, kind: type, value: Any) -> None:
        """Write the class of a dict of `collections`, so that a program finds it as it left it."""
        factory = getattr(value, "default_factory", None)
        name = "" if factory is None else getattr(factory, "__name__", "?")
        if _DICTS.get(kind.__name__) is not kind or _FACTORIES.get(name) is not factory:
            raise Malformed("no plain data")
        self.put(b"k", f"{kind.__name__} {name}".encode())

    def other(self, value: Any, depth: int) -> None:
        """Write an instance as its fields, a view of a dict or a range as a list, anything else as short text."""
        fields = getattr(value, "__dict__", None)
        if isinstance(value, type) or callable(value):
            name = str(getattr(value, "__name__", "function"))[:80]
            self.put(b"o", f"<{name}>".encode("utf-8", "surrogatepass"))
        elif isinstance(fields, dict) and any(not str(name).startswith("_") for name in fields):
            self.parts.append(b"x")
            self.value({str(k): v for k, v in fields.items() if not str(k).startswith("_")}, depth)
        elif type(value).__name__ in ("dict_keys", "dict_values", "dict_items", "range"):
            if len(value) > self.nodes:
                raise Malformed("the value has too many parts; pass on fewer of them")
            self.value(list(value), depth)
        else:
            self.put(b"o", _shown(value, 1_000).encode("utf-8", "surrogatepass"))


def _shown(value: Any, limit: int) -> str:
    try:
        return repr(value)[:limit]
    except Exception:  # noqa: BLE001 - the program's own __repr__ may raise anything
        return f"<{type(value).__name__} object>"


def encode(
    value: Any, *, max_nodes: int = MAX_NODES, max_bytes: int = MAX_BYTES - 1024, strict: bool = False
) -> bytes:
    """Return the bytes of ``value``; with ``strict``, only if all of it is plain data.

    Raises:
        Malformed: it exceeds the bounds; the message has the remedy.
    """
    writer = _Writer(max_nodes, max_bytes, strict)
    writer.value(value, 0)
    return b"".join(writer.parts)


class _Reader:
    def __init__(self, data: bytes | bytearray, max_nodes: int) -> None:
        # Slices of a view do not copy the payload of up to 12 MB.
        self.data = memoryview(data)
        self.at = 0
        self.nodes = max_nodes
        self.keys = KeyLimit()

    def take(self, count: int) -> memoryview:
        end = self.at + count
        if end > len(self.data):
            raise Malformed("the payload ends early")
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def length(self) -> int:
        return int(_LENGTH.unpack(self.take(4))[0])

    def count(self) -> int:
        count = self.length()
        if count > self.nodes:
            raise Malformed("too many parts")
        return count

    def value(self, depth: int) -> Any:
        self.nodes -= 1
        if self.nodes < 0 or depth > MAX_DEPTH + 2:
            raise Malformed("too many parts, or nested too deep")
        tag = bytes(self.take(1))
        if tag == b"s":
            return str(self.take(self.length()), "utf-8", "surrogatepass")
        if tag == b"N":
            return None
        if tag == b"T" or tag == b"F":
            return tag == b"T"
        if tag == b"i":
            digits = self.take(self.length())
            if len(digits) > 4_100:
                raise Malformed("a number that is too long")
            return int(bytes(digits))
        if tag == b"f":
            return _FLOAT.unpack(self.take(8))[0]
        if tag == b"b":
            return bytes(self.take(self.length()))
        if tag in (b"l", b"t", b"e"):
            if tag == b"e":
                return {self.keys.admit(self.value(depth + 1)) for _ in range(self.count())}
            items = [self.value(depth + 1) for _ in range(self.count())]
            return items if tag == b"l" else tuple(items)
        if tag == b"d":
            return {
                self.keys.admit(self.value(depth + 1)): self.value(depth + 1) for _ in range(self.count())
            }
        if tag == b"k":
            kind, _, factory = bytes(self.take(self.length())[:100]).decode().partition(" ")
            items = self.value(depth + 1)
            if not isinstance(items, dict):
                raise Malformed("a kind of dict that is none")
            given = (_FACTORIES[factory] if factory else None,) if kind == "defaultdict" else ()
            return _DICTS[kind](*given, items)
        if tag == b"o":
            return Described(str(self.take(self.length()), "utf-8", "surrogatepass"))
        if tag == b"x":
            fields = self.value(depth + 1)
            if not isinstance(fields, dict):
                raise Malformed("fields that are no mapping")
            return Fields(fields)
        if tag == b"D":
            name, _, text = bytes(self.take(self.length())[:6_000]).decode().partition(" ")
            if name == "timedelta":
                return dt.timedelta(*[int(part) for part in text.split(" ")[:3]])
            if name == "Decimal":
                return Decimal(text)
            return _DATES[name].fromisoformat(text)
        raise Malformed("an unknown tag")


def decode(data: bytes | bytearray, *, max_nodes: int = MAX_NODES + 10_000) -> Any:
    """Return the value in ``data``.

    Raises:
        Malformed: it was not written by :func:`encode`.
    """
    reader = _Reader(data, max_nodes)
    try:
        value = reader.value(0)
    except Malformed:
        raise
    except (
        ValueError,
        TypeError,
        KeyError,
        OverflowError,
        ArithmeticError,
        RecursionError,
        MemoryError,
        struct.error,
    ) as error:
        # Any of these means that the payload is invalid.
        raise Malformed(f"undecodable payload: {type(error).__name__}") from None
    if reader.at != len(data):
        raise Malformed("bytes after the value")
    return value
