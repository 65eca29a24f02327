"""Bounds of values in the host: plain copies, short previews, no walk without end."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from rlm_mem.sandbox.values import Bounds, TooLarge, plain, preview

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@settings(max_examples=50, deadline=None)
@given(values)
def test_plain_values_are_copied_as_they_are(value: Any) -> None:
    assert plain(value) == value


@settings(max_examples=50, deadline=None)
@given(values, st.integers(1, 60))
def test_a_preview_is_never_longer_than_asked(value: Any, limit: int) -> None:
    assert len(preview(value, limit)) <= limit


def test_what_exceeds_a_bound_is_named() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    shared: list[Any] = [1]
    for _ in range(60):
        shared = [shared, shared]
    for value, words in (
        (cyclic, "nested"),
        (shared, "nested"),
        ([[1] * 100] * 100, "parts"),
        ("x" * 2_000, "characters"),
        (10**5000, "digits"),
    ):
        with pytest.raises(TooLarge, match=words):
            plain(value, Bounds(nodes=500, text=1_000, depth=20))
        assert len(preview(value, 100)) <= 100


def test_foreign_values_become_plain() -> None:
    pair = namedtuple("pair", "left right")
    assert plain(pair(1, "a")) == {"left": 1, "right": "a"}
    assert plain([int, print, object()])[0] == "<class 'int'>"
    assert plain({(1, 2): frozenset({3})}) == {(1, 2): {3}}
