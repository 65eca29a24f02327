"""Which part of a sentence answers, where it has several of the kind asked for."""

from __future__ import annotations

import pytest

from rlm_mem.offline.passages import Passage
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.reader import read


def answer(question: str, note: str) -> str:
    reading = read(analyse_question(question), [Passage("a", note), Passage("b", "Bread is baked.")])
    return str(reading.answer)


@pytest.mark.parametrize(
    ("question", "note", "expected"),
    [
        ("What is the debug port of tide-svc?", "The debug port of main-api is 9229; for tide-svc it is 9231.", "9231"),
        ("What is the debug port of main-api?", "The debug port of main-api is 9229; for tide-svc it is 9231.", "9229"),
        ("What does a student pay for the ferry ticket?",
         "Ferry ticket to pay at the gate: early €14, student €6, late €19.", "€6"),
        ("How much clay goes into the new mix?", "New mix (lot 88213): clay at 12 %.", "12 %"),
        ("How much may a repair grant be?", "Repair grants: 20 of up to €700.", "€700"),
        ("How many painters may be away at once?", "At most two of the five painters may be away at once.", "two"),
        ("How long did the last rehearsal of the fire drill take?",
         "The last rehearsal of the fire drill took 1 h 52 min.", "1 h 52 min"),
        ("Which valve is the only one allowed?", "Valve no. 2 leaks. Only valve no. 1 is allowed.", "no. 1 is allowed"),
        ("To whom did we lend the ladder?", "Lent the ladder to the Okonkwos, the drill to Hansen.", "Okonkwos"),
    ],
)  # fmt: skip
def test_of_several_values_that_of_the_thing_asked_about_answers(
    question: str, note: str, expected: str
) -> None:
    assert expected in answer(question, note)


@pytest.mark.parametrize(
    ("question", "note", "expected"),
    [
        ("Why was the free ferry ticket dropped?", "We dropped the free ferry ticket: support load.", "support load"),
        ("Why was the release moved to March?", "The release moved to March – April has fairs.", "April has fairs"),
        ("What caused the red lines on the maps?", "Red lines on the maps, cause: a worn drum.", "a worn drum"),
        ("Why do we use the plain model?", "We use the plain model, as the clerks must read it.", "clerks must read"),
    ],
)  # fmt: skip
def test_a_reason_may_follow_a_colon_a_dash_or_its_label(question: str, note: str, expected: str) -> None:
    assert expected in answer(question, note)


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("When is Owen's thesis due?", "Ronja's long thesis is due on 15 June. Owen draws the maps."),
        ("How many people came on Sunday?", "People may come on Sunday at 14:00, on 8 May also by boat."),
        ("What did the new brush cost?", "The new brush cost us 14 days of waiting."),
        ("Who tends the harbour app?", "The harbour app tends to like iOS 16."),
        ("Who runs the harbour server?", "The harbour server runs Debian."),
        (
            "What package name does the Android version carry?",
            "Android: schema version 27, the package has the number.",
        ),
    ],
)
def test_a_part_of_another_kind_or_thing_does_not_answer(question: str, note: str) -> None:
    assert answer(question, note) == "None"
