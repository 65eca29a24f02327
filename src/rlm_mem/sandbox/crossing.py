"""The text form in which values leave Monty, and its decoder: bounded before a single object is made or hashed.

Monty turns whatever crosses into Python objects without asking, and a dict whose keys share one hash takes the host
minutes to build. So nothing but text crosses: the compatibility layer (:mod:`rlm_mem.sandbox.prelude`) writes a value
as length-prefixed text, and this module reads it. It trusts none of it: a program may write what it likes.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from rlm_mem.sandbox.policy import NODES_BETWEEN_LOOKS, check_deadline
from rlm_mem.sandbox.steps import Variable
from rlm_mem.sandbox.values import Bounds, TooLarge
from rlm_mem.sandbox.wire import Described, KeyLimit

__all__ = ["read_call", "read_value", "read_variables"]

_MALFORMED = "the sandbox wrote a value that cannot be read"
_DATES: dict[str, Callable[[str], Any]] = {
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "Decimal": Decimal,
}
_LONGEST_HEAD = 24
_LONGEST_SCALAR = 5_000


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
        """The text up to ``mark``, which is passed over."""
        end = self.text.find(mark, self.at, self.at + longest)
        if end < 0:
            raise TooLarge(_MALFORMED)
        piece = self.text[self.at : end]
        self.at = end + 1
        return piece

    def count(self) -> int:
        """A length; never more than what is left, so that a forged one allocates nothing."""
        digits = self.until(":", _LONGEST_HEAD)
        if not (digits.isascii() and digits.isdigit()) or int(digits) > len(self.text) - self.at:
            raise TooLarge(_MALFORMED)
        return int(digits)

    def string(self) -> str:
        """Length-prefixed text."""
        count = self.count()
        self._room -= count
        if self._room < 0:
            raise TooLarge(
                f"the value holds more than {self._bounds.text:,} characters of text; pass on a part of it"
            )
        self.at += count
        return self.text[self.at - count : self.at]

    def value(self, depth: int = 0) -> Any:
        self._nodes -= 1
        if self._nodes < 0:
            raise TooLarge(f"the value has more than {self._bounds.nodes:,} parts; pass on fewer of them")
        if self._nodes % NODES_BETWEEN_LOOKS == 0:
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
            return int(self.until(";", _LONGEST_SCALAR))
        if tag == "f":
            return float(self.until(";", 64))
        if tag == "o":
            return Described(self.string()[:2_000])
        if tag == "b":
            return bytes.fromhex(self.string())
        if tag == "D":
            kind, _, written = self.string()[:_LONGEST_SCALAR].partition(" ")
            return _DATES[kind](written)
        if tag == "M":
            days, seconds, micro = self.string()[:100].split(" ")
            return dt.timedelta(int(days), int(seconds), int(micro))
        if depth >= self._bounds.depth:
            raise TooLarge(f"the value is nested more than {self._bounds.depth} levels deep, or holds itself")
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
        # Text that the layer does not write; the words of the error would quote it.
        raise TooLarge(_MALFORMED) from None
    if reader.at != len(text):
        raise TooLarge(_MALFORMED)
    return found


def read_value(text: Any, bounds: Bounds, deadline: float = math.inf) -> Any:
    """The value that a program handed out.

    Args:
        text: what the layer wrote.
        bounds: how large the value may be.
        deadline: seconds on the monotonic clock at which reading gives up.

    Raises:
        TooLarge: it exceeds ``bounds``, or is not what the layer writes.
        TimeoutError: the deadline passed.
    """
    return _read(text, bounds, deadline, _Reader.value)


def read_call(
    text: str, bounds: Bounds, deadline: float = math.inf
) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Name, positional and keyword arguments of a call.

    Raises:
        TooLarge: see :func:`read_value`; the message begins with the name of the function where it is known.
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


def read_variables(text: Any, bounds: Bounds, deadline: float = math.inf) -> dict[str, Any]:
    """The namespace: each name with its value, or a :class:`Variable` where it is no plain data."""

    def read(reader: _Reader) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while reader.text[reader.at : reader.at + 1] in ("V", "P"):
            whole = reader.text[reader.at] == "V"
            reader.at += 1
            name = reader.string()
            found[name] = reader.value() if whole else Variable(reader.string()[:100], reader.string()[:200])
        return found

    variables: dict[str, Any] = _read(text, bounds, deadline, read)
    return variables
