"""Unicode normal forms of hostile text: the same result as the standard library's, in linear time."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from rlm_mem.chunk import normalise_unicode, normalised_hash
from rlm_mem.persona.boxes import fixed_width
from rlm_mem.text.analysis import fold

MARKS = "\u0316\u0301" * 50_000
"""Two marks of different classes in the order that sorting by insertion takes longest for."""


@pytest.mark.parametrize("function", [fold, normalised_hash, fixed_width])
@pytest.mark.parametrize("text", ["x" + MARKS, "x" + MARKS[::-1], "\u0344" * 60_000, "\ufdfa" * 30_000])
def test_a_run_of_marks_takes_linear_time(function: Callable[[str], str], text: str) -> None:
    quarter = text[: len(text) // 4]
    function(quarter[:1000])
    short, long = (min(_seconds(function, sample) for _ in range(2)) for sample in (quarter, text))
    assert long < max(10 * short, 0.5), (
        f"{len(quarter):,} characters: {short:.3f} s, {len(text):,}: {long:.3f} s"
    )


def _seconds(function: Callable[[str], str], text: str) -> float:
    began = time.process_time()
    function(text)
    return time.process_time() - began


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
def test_texts_of_usual_runs_come_out_as_the_standard_library_has_them(text: str) -> None:
    for form in ("NFC", "NFKC", "NFKD"):
        assert normalise_unicode(form, text) == unicodedata.normalize(form, text)
