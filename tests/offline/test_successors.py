"""Of two people in one note, the one who took over answers who does something now."""

from __future__ import annotations

import pytest

from rlm_mem.offline.passages import Passage
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.reader import read


def answer_to(question: str, note: str) -> str | None:
    return read(
        analyse_question(question), [Passage("chunk-1", note), Passage("chunk-2", "Bread is baked.")]
    ).answer


@pytest.mark.parametrize(
    ("question", "note", "person"),
    [
        ("Who is the captain?", "Captain Lars retired, Nina took over.", "Nina"),
        (
            "Who is the captain of the ferry?",
            "The captain of the ferry, Lars, retired and Nina took over.",
            "Nina",
        ),
        (
            "Who leads the design team?",
            "Marta led the design team until March; since then Pavel leads it.",
            "Pavel",
        ),
        ("Who is the treasurer?", "Our treasurer Olaf stepped down; Birte succeeded him in May.", "Birte"),
        (
            "Who maintains the parser?",
            "Yusuf maintained the parser. He left in April, Saga took over.",
            "Saga",
        ),
        ("Who coaches the team?", "Ben coached the team, his successor is Aylin.", "Aylin"),
        ("Who handles payroll?", "Payroll was handled by Greta, now Tom does it.", "Tom"),
        ("Who is the coach?", "Coach Ben was fired and replaced by Aylin.", "Aylin"),
        (
            "Who is head of sales?",
            "Rita, head of sales, handed it over to Jonas; Jonas was replaced by Kim.",
            "Kim",
        ),
    ],
)
def test_the_successor_answers_who_does_it_now(question: str, note: str, person: str) -> None:
    assert answer_to(question, note) == person


@pytest.mark.parametrize(
    "more",
    [
        "Ann bakes bread now.",
        "Today Ann visits the bakery.",
        "Ann followed him to Paris.",
        "Ann replaced the kettle.",
        "Ann took over the printing shop.",
    ],
)
def test_who_takes_over_something_else_is_no_successor(more: str) -> None:
    assert answer_to("Who leads the team?", f"Ben leads the team. {more}") == "Ben"


def test_a_question_about_the_past_is_not_answered_by_the_successor() -> None:
    assert (
        answer_to("Who led the design team until March?", "Marta led the design team; now Pavel leads it.")
        == "Marta"
    )
