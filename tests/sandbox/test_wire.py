"""The byte form of values between host and worker: exact for honest values, closed to forged ones."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from rlm_mem.sandbox import wire

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes()
    | st.dates()
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.sets(st.integers() | st.text())
    ),
    max_leaves=20,
)


def test_a_number_of_too_many_digits_is_refused_rather_than_cut() -> None:
    for value in (10**5_000, Decimal("1" * 5_000)):
        with pytest.raises(wire.Malformed, match="4,000 digits"):
            wire.encode(value)
    number = Decimal("1" * 3_000)
    assert wire.decode(wire.encode(number)) == number


@settings(max_examples=50, deadline=None)
@given(values)
def test_every_plain_value_comes_back_as_it_was(value: Any) -> None:
    back = wire.decode(wire.encode(value))
    assert back == value and type(back) is type(value)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_malformed(data: bytes) -> None:
    """Never another exception, never an endless loop."""
    try:
        wire.decode(data)
    except wire.Malformed:
        return


@settings(max_examples=50, deadline=None)
@given(values, st.integers(0, 300), st.integers(0, 255))
def test_a_flipped_byte_is_a_value_or_malformed(value: Any, at: int, byte: int) -> None:
    data = bytearray(wire.encode(value))
    data[at % len(data)] = byte
    try:
        wire.decode(bytes(data))
    except wire.Malformed:
        return


def test_lone_surrogates_survive() -> None:
    assert wire.decode(wire.encode("\ud800x")) == "\ud800x"


def test_values_beyond_the_bounds_are_not_written() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    shared: list[Any] = [1]
    for _ in range(40):
        shared = [shared, shared]
    for value in (cyclic, shared, "x" * (wire.MAX_BYTES + 1), 10**5000, list(range(wire.MAX_NODES + 5))):
        with pytest.raises(wire.Malformed):
            wire.encode(value)


def test_a_forged_length_does_not_allocate() -> None:
    for data in (
        b"s\xff\xff\xff\xff",
        b"l\xff\xff\xff\xff",
        b"l\x00\x00\x00\x01" * 500,
        b"d\x00\x00\x00\x01l",
    ):
        with pytest.raises(wire.Malformed):
            wire.decode(data)


def test_a_header_with_another_magic_or_a_huge_length_is_refused() -> None:
    good = wire.frame_header(2, 7, 10)
    assert wire.parse_header(good) == (2, 7, 10)
    with pytest.raises(wire.Malformed):
        wire.parse_header(b"XX" + good[2:])
    with pytest.raises(wire.Malformed):
        wire.parse_header(wire.frame_header(2, 7, wire.MAX_BYTES + 1))


def test_instances_dates_and_functions_become_plain() -> None:
    class Note:
        def __init__(self) -> None:
            self.who = "Ana"
            self._hidden = 1

    value = [Note(), print, dt.date(2026, 1, 2), range(3), {"a": 1}.keys()]
    assert wire.decode(wire.encode(value)) == [
        {"who": "Ana"},
        "<print>",
        dt.date(2026, 1, 2),
        [0, 1, 2],
        ["a"],
    ]
