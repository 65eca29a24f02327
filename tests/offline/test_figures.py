"""The number of a subject, and an amount, must be those that the question names."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.recall.recall import RecallResult

_OTHERS = ("Bread is baked on Fridays.", "The lease of the shop ends in June.", "New shelves came.")


def ask(folder: Path, question: str, *notes: str) -> RecallResult:
    with Memory.open(folder / "brain", llm="offline") as memory:
        for note in (*_OTHERS, *notes):
            memory.remember(note)
        return memory.recall(question)


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("When was the seal of pump 7 in the north hall replaced by the mechanic?",
         "The mechanic replaced the seal of pump 32 in the north hall on 3 May 2026."),
        ("How many hours has pump 7 in the north hall run?", "Pump 32 in the north hall has run 1200 hours."),
        ("Where is the spare seal for pump 7 kept?", "The spare seal for pump 32 is kept in the red cabinet."),
        ("Who ordered the spare seal for pump 7?", "Ruth ordered the spare seal for pump 32."),
        ("Why was pump 7 stopped by the mechanic on Monday?",
         "The mechanic stopped pump 32 on Monday because the seal leaked."),
        ("Which pump was tested at 15 bar?", "Pump P15 was tested at 12 bar in May."),
        ("Who signed off gate B12?", "Ines signed off gate B13."),
    ],
)  # fmt: skip
def test_a_note_about_another_number_does_not_answer(tmp_path: Path, question: str, note: str) -> None:
    result = ask(tmp_path, question, note)
    assert result.content is None
    assert note in result.sources[0].excerpt  # it may still be what was meant


@pytest.mark.parametrize(
    ("question", "note", "answer"),
    [
        (
            "When was the seal of pump 7 replaced?",
            "Pump 7 leaks. Its seal was replaced on 3 May 2026.",
            "3 May",
        ),
        ("Which pump was tested at 15 bar?", "Pump P7 was tested at 15 bar on Monday.", "P7"),
        ("How many of the 40 copies are missing?", "Of the 40 copies, 12 copies are missing.", "12"),
        ("Who signed off gate B12?", "Ines signed off gate B12.", "Ines"),
    ],
)
def test_a_note_about_the_same_number_answers(tmp_path: Path, question: str, note: str, answer: str) -> None:
    found = ask(tmp_path, question, note)
    assert answer in str(found.content or found.suggestion)


def test_the_memory_with_the_number_asked_for_comes_closest(tmp_path: Path) -> None:
    told = ask(
        tmp_path,
        "Ticket 3456",
        "Hansen called about #3456 again, the invoice run failed.",
        "Ticket 3457: new logo for the site.",
        "Ticket 3458: printer jam.",
    )
    assert "#3456" in told.sources[0].excerpt


@pytest.mark.parametrize(
    "note",
    [
        "Ana works from Lagos, takes over billing.",
        "New joiner: Ana Reis, works from Lagos, takes over billing.",
    ],
)
def test_a_place_that_somebody_works_from_takes_nothing_over(tmp_path: Path, note: str) -> None:
    assert str(ask(tmp_path, "Who took over billing?", note).content).startswith("Ana")
