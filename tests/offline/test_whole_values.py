"""An answer that is a figure has its unit, its limit and the words of its clause that belong to it."""

from __future__ import annotations

import pytest

from rlm_mem.offline.passages import Passage
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.reader import read
from rlm_mem.offline.whole_values import whole_value


def answer(question: str, text: str) -> str | None:
    return read(analyse_question(question), [Passage("chunk-1", text, score=1.0)]).answer


@pytest.mark.parametrize(
    ("question", "text", "whole"),
    [
        ("How many sacks go into a brew?", "Three sacks of malt to the brew.", "Three sacks of malt to the brew"),
        ("How many spare belts do we keep?", "We keep 40 spare belts in the loft.", "40 spare belts in the loft"),
        ("How many calls does a tenant get?", "A tenant gets 100 API calls a minute.", "100 API calls a minute"),
        ("How long may a loan last?", "A loan may last at most 30 days.", "at most 30 days"),
        ("How many eggs may Ida eat?", "Diet of Ida: up to three eggs a week.", "up to three eggs a week"),
        ("How much is the rent?", "Our rent went up to 985 euros.", "985 euros"),
        ("When is the hut booked?", "The hut is booked for 14 to 21 August.", "14 to 21 August"),
        ("How many cores has the runner?", "The runner has 2 cores / 4 GB.", "2 cores"),
    ],
)  # fmt: skip
def test_a_figure_comes_with_what_belongs_to_it(question: str, text: str, whole: str) -> None:
    assert answer(question, text) == whole


@pytest.mark.parametrize(
    ("question", "text", "value", "whole"),
    [
        ("Which bus do the children take?", "The children take bus 44 to school.", "bus 44", "bus 44"),
        ("What does the ferry cost?", "The ferry costs 12 EUR a head, bicycles are free.", "costs 12",
         "costs 12 EUR a head"),
        ("How many were there?", "There were nine of us.", "ten people", "ten people"),
    ],
    ids=["no amount", "a price", "not in the sentence"],
)  # fmt: skip
def test_only_an_amount_of_the_sentence_is_extended(question: str, text: str, value: str, whole: str) -> None:
    assert whole_value(analyse_question(question), text, value) == whole


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("It holds 12 weather-proofed sacks/municipality of grain.", "12 weather-proofed"),
        (f"It holds 12 {'x' * 40} of grain.", "12"),
        (f"It holds 12 sacks per {'x' * 40} of grain.", "12 sacks"),
        (
            "It holds 12 consignments per representative for internationalisation of municipalities.",
            "12 consignments per representative for internationalisation of municipalities",
        ),
    ],
)
def test_no_word_is_cut(text: str, whole: str) -> None:
    assert whole_value(analyse_question("How many does it hold?"), text, "12") == whole


def test_long_sentences_are_read_in_bounded_time() -> None:
    asked = analyse_question("How many sacks are there?")
    text = "There are 3 sacks" + " of sacks" * 100_000
    assert whole_value(asked, text, "3 sacks") == "3 sacks"
