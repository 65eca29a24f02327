"""Values that leave the sandbox as bounded plain data, and the records of a program run.

A list that contains one list twice, nested thirty levels deep, is tiny inside the sandbox, but has a billion parts for
``repr``, ``json`` or ``==`` outside. Every value of a program is therefore copied with bounds before any other use.
"""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from numbers import Integral, Real
from typing import Any

from msgspec import field

from rlm_mem.errors import RlmMemError, TimeoutError
from rlm_mem.record import FrozenRecord, MutableRecord
from rlm_mem.sandbox.wire import Described, Fields, KeyLimit

MAX_NAME_CHARS = 80
"""Maximum characters of the name of a class, a function or an error."""


NODES_PER_CLOCK_CHECK = 2_000
"""Nodes of a syntax tree, or parts of a value, visited between two checks of the deadline; some milliseconds."""

_ID_FIELDS = ("id", "ids", "superseded_by")
"""Suffixes of names of fields that contain chunk ids."""


def check_deadline(deadline: float) -> None:
    """Raise TimeoutError once ``time.monotonic()`` has passed ``deadline``."""
    if time.monotonic() > deadline:
        raise TimeoutError("the program's time ended while it was checked or its values were read")


class TooLarge(ValueError):
    """A value exceeds its bounds; the message names the bound and the remedy."""


class Bounds(FrozenRecord, frozen=True):
    """The maximum size of a value.

    Attributes:
        nodes: containers and leaves together; a shared part counts each time it appears.
        text: characters of all strings (and bytes) together.
        depth: nesting of containers.
        digits: decimal digits of one integer.
    """

    nodes: int = 50_000
    text: int = 10_485_760
    depth: int = 40
    digits: int = 4_000


def clipped(text: str, limit: int) -> str:
    """Return the text, cut at ``limit`` characters with a note of its length."""
    return text if len(text) <= limit else f"{text[:limit]} … ({len(text):,} characters, cut)"


def chunk_ids_in(value: Any) -> Iterator[str]:
    """Yield the chunk ids in a result of a host function: in lists of ids, and in fields that contain ids.

    Args:
        value: plain data of bounded size without cycles.
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
            # Stored text is never an id, even if it looks like one.
            stack.extend(
                one
                for name, one in part.items()
                if isinstance(one, list | dict) or (isinstance(name, str) and name.endswith(_ID_FIELDS))
            )


def well_formed(text: str) -> str:
    """Replace unpaired surrogates, which JSON and UTF-8 cannot represent, by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class _Copier:
    """Copies one value; raises :class:`TooLarge` before the copy exceeds the bounds."""

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
        if kind is str or kind is Described:
            self._charge(len(value))
            return value if value.isascii() else kind(well_formed(value))
        if kind is bytes or kind is bytearray:
            self._charge(len(value))
            return bytes(value)
        if depth >= self._bounds.depth:
            raise TooLarge(
                f"the value is nested more than {self._bounds.depth} levels deep, or contains itself"
            )
        return self._container(value, kind, depth + 1)

    def _container(self, value: Any, kind: type, depth: int) -> Any:
        copy = self.copy
        if isinstance(value, list):
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
        if isinstance(value, Decimal):
            self._charge(len(value.as_tuple().digits))
            return value
        if isinstance(value, dt.datetime):
            return value if kind is dt.datetime else dt.datetime.combine(value.date(), value.timetz())
        if isinstance(value, dt.date | dt.time | dt.timedelta):
            return value
        # Only functions of the caller give these: subclasses, members of enumerations, numbers of other packages.
        if isinstance(value, str):
            return copy(str.__str__(value), depth)
        if isinstance(value, Integral):
            return copy(int(value), depth)
        if isinstance(value, Real):
            return copy(float(value), depth)
        if kind.__module__ == "numpy" and hasattr(value, "tolist"):
            self._room(getattr(value, "size", 0))
            return copy(value.tolist(), depth)
        return Described(_named(value))

    def _charge(self, characters: int) -> None:
        self._text -= characters
        if self._text < 0:
            raise TooLarge(
                f"the value contains more than {self._bounds.text:,} characters of text; pass on a part of it"
            )

    def _room(self, count: int) -> None:
        # Checked before the loop, so that a huge list takes no time.
        if count > self._nodes:
            raise TooLarge(f"the value has more than {self._bounds.nodes:,} parts; pass on fewer of them")


def _named(value: Any) -> str:
    """Return the name of a function, a type or any other object, as text."""
    if isinstance(value, type):
        return f"<class {clipped(value.__name__, MAX_NAME_CHARS)!r}>"
    name = getattr(value, "name", None)
    return f"<{clipped(name if isinstance(name, str) else type(value).__name__, MAX_NAME_CHARS)}>"


def plain(value: Any, bounds: Bounds | None = None) -> Any:
    """Copy ``value`` as plain data: None, bool, int, float, str, bytes, list, tuple, set, dict, dates.

    Named tuples and instances become dicts of their fields; functions and types, a short text; unpaired surrogates,
    U+FFFD.

    Raises:
        TooLarge: it exceeds ``bounds``.
    """
    return _Copier(bounds or Bounds()).copy(value)


def preview(value: Any, limit: int = 200) -> str:
    """Return source-like text for ``value`` of at most ``limit`` characters; visits no more than that.

    Safe for cyclic and for very large values.
    """
    parts: list[str] = []
    _preview(value, limit, 0, parts)
    text = "".join(parts)
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def _preview(value: Any, room: int, depth: int, parts: list[str]) -> int:
    """Append the text of ``value``; return the remaining characters (below 0: stop)."""

    def put(text: str) -> int:
        parts.append(text)
        return room - len(text)

    if isinstance(value, str):
        return put(repr(value if len(value) <= room + 1 else value[: room + 1]))
    if isinstance(value, bytes | bytearray):
        return put(repr(bytes(value[: room + 1])))
    if isinstance(value, bool | float) or value is None:
        return put(repr(value))
    if isinstance(value, int):
        if value.bit_length() > 3_000:
            return put(f"<int of about {int(value.bit_length() * math.log10(2)):,} digits>")
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


MAX_ERROR_CHARS = 2_000
"""Maximum characters of an error's message and of its hint, which a program controls."""


def bounded_error(error: RlmMemError) -> RlmMemError:
    """Cut message, hint and kind of an error, which a program controls, to their limits; return the same error."""
    error.message = clipped(well_formed(error.message), MAX_ERROR_CHARS)
    if error.hint is not None:
        error.hint = clipped(well_formed(error.hint), MAX_ERROR_CHARS)
    kind = getattr(error, "kind", None)
    if isinstance(kind, str) and len(kind) > MAX_NAME_CHARS:
        error.kind = clipped(well_formed(kind), MAX_NAME_CHARS)  # type: ignore[attr-defined]  # of ProgramError
    error.args = (error.message,)
    return error


class HostCall(FrozenRecord, frozen=True):
    """One call of a host function by a program.

    Attributes:
        name: the function, for example ``read_chunk``.
        args_preview: its arguments as source text, shortened.
        seconds: wall time spent in the host.
        result_preview: the result, or ``!Kind: message`` if the call failed, shortened.
    """

    name: str
    args_preview: str
    seconds: float
    result_preview: str


class Final(FrozenRecord, frozen=True):
    """The answer of a session.

    Attributes:
        answer: bounded plain data; None means that the memory has no answer.
        chunk_ids: the chunks that the program cites, in its order, without duplicates.
        confidence: 0.0–1.0 as stated by the program, or None.
        suggestion: without an answer, the likeliest one, to which the confidence then applies.
    """

    answer: Any
    chunk_ids: list[str] = field(default_factory=list)
    confidence: float | None = None
    suggestion: str | None = None


class Variable(FrozenRecord, frozen=True):
    """One variable of the sandbox's namespace: the name of its type and a short preview of its value."""

    type: str
    preview: str


class StepOutput(MutableRecord):
    """The result of one program.

    Attributes:
        value: value of its last expression, bounded plain data.
        output: what it printed, or its first page with a remark (``page(2)`` returns the next).
        printed: what it printed, up to 400,000 characters.
        error: the recoverable error that ended it, or None.
        host_calls: its calls of host functions, oldest first (bounded: see ``REPLSession``).
        chunks_read: ids of the chunks whose content it received, in order, without duplicates.
        seconds: wall time.
        truncated: whether ``output`` is incomplete.
        final: the answer, if this program called FINAL.
    """

    value: Any = None
    output: str = ""
    printed: str = ""
    error: RlmMemError | None = None
    host_calls: list[HostCall] = field(default_factory=list)
    chunks_read: list[str] = field(default_factory=list)
    seconds: float = 0.0
    truncated: bool = False
    final: Final | None = None


# --- the text form of values that leave Monty -----------------------------------------------------------
#
# Monty converts every value that leaves it to Python objects, and a dict whose keys share one hash takes the host
# minutes to build. So only text leaves: the compatibility layer (prelude) writes a value as length-prefixed text, which
# is read here with bounds that apply before any object is created or hashed. The text is not trusted, since a program
# can write anything.

_MALFORMED = "the sandbox wrote a value that cannot be read"
_DATES: dict[str, Callable[[str], Any]] = {
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "Decimal": Decimal,
}
_MAX_PREFIX_CHARS = 24
_MAX_SCALAR_CHARS = 5_000


class _Reader:
    def __init__(self, text: str, bounds: Bounds, deadline: float) -> None:
        self.text = text
        self._deadline = deadline
        self.at = 0
        self._bounds = bounds
        self._nodes = bounds.nodes
        self._room = bounds.text
        self._keys = KeyLimit(TooLarge)

    def until(self, mark: str, longest: int) -> str:
        """Return the text up to ``mark``, which is skipped."""
        end = self.text.find(mark, self.at, self.at + longest)
        if end < 0:
            raise TooLarge(_MALFORMED)
        piece = self.text[self.at : end]
        self.at = end + 1
        return piece

    def count(self) -> int:
        """Return a length, at most that of the remaining text, so that a forged one allocates nothing."""
        digits = self.until(":", _MAX_PREFIX_CHARS)
        if not (digits.isascii() and digits.isdigit()) or int(digits) > len(self.text) - self.at:
            raise TooLarge(_MALFORMED)
        return int(digits)

    def string(self) -> str:
        """Return a length-prefixed text."""
        count = self.count()
        self._room -= count
        if self._room < 0:
            raise TooLarge(
                f"the value contains more than {self._bounds.text:,} characters of text; pass on a part of it"
            )
        self.at += count
        return self.text[self.at - count : self.at]

    def value(self, depth: int = 0) -> Any:
        self._nodes -= 1
        if self._nodes < 0:
            raise TooLarge(f"the value has more than {self._bounds.nodes:,} parts; pass on fewer of them")
        if self._nodes % NODES_PER_CLOCK_CHECK == 0:
            check_deadline(self._deadline)
        tag = self.text[self.at : self.at + 1]
        self.at += 1
        if tag == "s":
            return self.string()
        if tag == "N":
            return None
        if tag == "T" or tag == "F":
            return tag == "T"
        if tag == "i":
            return int(self.until(";", _MAX_SCALAR_CHARS))
        if tag == "f":
            return float(self.until(";", 64))
        if tag == "o":
            return Described(self.string()[:2_000])
        if tag == "b":
            return bytes.fromhex(self.string())
        if tag == "D":
            kind, _, written = self.string()[:_MAX_SCALAR_CHARS].partition(" ")
            return _DATES[kind](written)
        if tag == "M":
            days, seconds, micro = self.string()[:100].split(" ")
            return dt.timedelta(int(days), int(seconds), int(micro))
        if depth >= self._bounds.depth:
            raise TooLarge(
                f"the value is nested more than {self._bounds.depth} levels deep, or contains itself"
            )
        return self._container(tag, depth + 1)

    def _container(self, tag: str, depth: int) -> Any:
        count = self.count()
        if tag == "l" or tag == "t":
            items = [self.value(depth) for _ in range(count)]
            return items if tag == "l" else tuple(items)
        if tag == "e":
            return {self._keys.admit(self.value(depth)) for _ in range(count)}
        if tag == "d":
            return {self._keys.admit(self.value(depth)): self.value(depth) for _ in range(count)}
        raise TooLarge(_MALFORMED)


def _read(text: Any, bounds: Bounds, deadline: float, read: Callable[[_Reader], Any]) -> Any:
    if type(text) is not str or len(text) > 2 * bounds.text + 40 * bounds.nodes:
        raise TooLarge("the value is too large; pass on a part of it")
    reader = _Reader(text, bounds, deadline)
    try:
        found = read(reader)
    except TooLarge:
        raise
    except (ValueError, KeyError, OverflowError, RecursionError, TypeError, InvalidOperation):
        # The layer did not write this text, which the original message would quote.
        raise TooLarge(_MALFORMED) from None
    if reader.at != len(text):
        raise TooLarge(_MALFORMED)
    return found


def read_value(text: Any, bounds: Bounds, deadline: float = math.inf) -> Any:
    """Return the value that a program returned.

    Args:
        text: the text from the layer.
        bounds: the maximum size of the value.
        deadline: seconds on the monotonic clock after which reading raises TimeoutError.

    Raises:
        TooLarge: it exceeds ``bounds``, or the layer cannot have written it.
        TimeoutError: the deadline passed.
    """
    return _read(text, bounds, deadline, _Reader.value)


def read_call(
    text: str, bounds: Bounds, deadline: float = math.inf
) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Return name, positional and keyword arguments of a call.

    Raises:
        TooLarge: see :func:`read_value`; the message begins with the name of the function if that is known.
        TimeoutError: the deadline passed.
    """
    name, _, rest = text.partition("\n")
    if not name.isidentifier() or len(name) > 200:
        raise TooLarge(_MALFORMED)
    try:
        given, named = _read(rest, bounds, deadline, lambda reader: (reader.value(), reader.value()))
    except TooLarge as error:
        raise TooLarge(f"{name}: {error}") from None
    if (
        not isinstance(given, list)
        or not isinstance(named, dict)
        or not all(isinstance(k, str) for k in named)
    ):
        raise TooLarge(f"{name}: {_MALFORMED}")
    return name, tuple(given), named


def read_variables(text: Any, bounds: Bounds) -> dict[str, Any]:
    """Return the names of the namespace with their values, or a :class:`Variable` if a value is not plain data."""

    def read(reader: _Reader) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while reader.text[reader.at : reader.at + 1] in ("V", "P"):
            whole = reader.text[reader.at] == "V"
            reader.at += 1
            name = reader.string()
            found[name] = reader.value() if whole else Variable(reader.string()[:100], reader.string()[:200])
        return found

    variables: dict[str, Any] = _read(text, bounds, math.inf, read)
    return variables
