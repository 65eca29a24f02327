"""Which later notes change what a note says: the rule that search and the offline model share."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.later import ComparedNote, LaterNote, later_notes, returning
from rlm_mem.text.present import PresentQuestion

ENGLISH = get_analyser("english")
FIRST = "The tension of the band saw is 4."
MOVED = "Standup moved from 9:15 to 9:45."
SET = "Band saw: the tension is now 5."


def note(text: str, at: str = "2026-05-02T00:00:00.000000Z", **more: Any) -> ComparedNote:
    return ComparedNote(text, text, at, **more)


def found(question: str, first: ComparedNote, *others: ComparedNote) -> list[LaterNote]:
    asked = PresentQuestion.of(question, ENGLISH)
    return later_notes([first, *others], asked, ENGLISH)


def early(text: str, **more: Any) -> ComparedNote:
    return note(text, "2026-01-02T00:00:00.000000Z", **more)


def test_a_note_that_says_that_a_value_has_ended_is_certain_and_gives_its_reason() -> None:
    (one,) = found("When is standup?", early("Standup is at 9:15."), note("Rain."), note(MOVED))
    assert (one.place, one.kind, one.odds, one.note.at[:10]) == (2, "ends", math.inf, "2026-05-02")
    assert "9:45" in one.reason


def test_a_note_that_answers_the_same_question_retells_it() -> None:
    (one,) = found("What is the tension of the band saw?", early(FIRST), note(SET))
    assert (one.place, one.kind) == (1, "retells") and -0.9 < one.odds < 20


def test_only_a_note_that_states_an_end_changes_the_answer_to_a_question_about_the_past() -> None:
    past = "What was the tension of the band saw?"
    assert PresentQuestion.of(past, ENGLISH) is None
    assert not found(past, early(FIRST), note(SET))
    assert [one.kind for one in found("When was standup?", early("Standup is at 9:15."), note(MOVED))] == [
        "ends"
    ]


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ({}, {"at": "2025-12-01T00:00:00.000000Z"}),
        ({}, {"at": ""}),
        ({}, {"is_valid": False}),
        ({"trust": 1}, {}),
        ({}, {"is_note": False}),
        ({"around": "Band notes"}, {"around": "Choir"}),
        ({"of_file": True}, {"of_file": True, "at": "2026-01-02T00:00:30.000000Z"}),
    ],
)
def test_what_does_not_follow_a_note_does_not_retell_it(first: dict[str, Any], other: dict[str, Any]) -> None:
    later = "Saw: the tension is 5 now." if "around" in first else SET
    question = "What is the tension of the band saw?"
    assert found(question, early(FIRST), note(later))
    assert not found(question, early(FIRST, **first), note(later, **other))


def test_a_note_returns_to_the_value_of_a_former_one() -> None:
    asked = PresentQuestion.of("How do we indent?", ENGLISH)
    assert asked is not None
    notes = [
        note("We switched from tabs to spaces.", "2026-03-02T00:00:00.000000Z"),
        note("We returned to tabs."),
        note("We talked about spaces."),
    ]
    one = returning(early("We indent with tabs."), notes, asked, ENGLISH)
    assert one is not None and (one.place, one.kind) == (1, "returns")
    assert returning(early("We indent with tabs."), notes[::2], asked, ENGLISH) is None
