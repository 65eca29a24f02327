"""Words of change are whole words in any case, and phrases."""

from __future__ import annotations

import pytest

from rlm_mem.text.by_language import CONDITION, ENDED, HINTS, PRESENT

OVER = (
    "The club MOVED to Oslo.",
    "no more cake",
    "it runs any\u00a0more, not any more",
    "80->81",
    "办公室搬到北京",
)
NOT_OVER = ("The movement of the club", "unmoved", "many moreover", "the next days", "")


@pytest.mark.parametrize("text", OVER)
def test_words_and_phrases_for_an_end_are_found(text: str) -> None:
    assert ENDED.found_in(text)


@pytest.mark.parametrize("text", NOT_OVER)
def test_an_end_is_recognised_by_whole_words_only(text: str) -> None:
    assert not ENDED.found_in(text)


@pytest.mark.parametrize(
    "text", ["A new door", "Tina took over the shop", "from the 5", "not 4", "désormais à Lyon"]
)
def test_weaker_words_hint_at_a_change(text: str) -> None:
    assert HINTS.found_in(text)
    assert not HINTS.found_in(f"x{text}x".replace(" ", "_"))


def test_a_letter_that_ignoring_case_takes_for_an_ascii_letter_counts_as_it() -> None:
    assert ENDED.found_in("SWİTCHED") and ENDED.found_in("loſt and cloſed") and HINTS.found_in("mıxed up")


def test_the_present_and_conditions_are_recognised_by_their_words() -> None:
    assert (
        PRESENT.found_in("She’s here")
        and PRESENT.found_in("Er IST da")
        and not PRESENT.found_in("Ana's island")
    )
    assert (
        CONDITION.found_in("peut-être demain")
        and CONDITION.found_in("Perhaps so")
        and not CONDITION.found_in("mayor of Talfes")
    )
