"""Answers from fields, lines of a label and a value, below the headings that name what they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.recall.recall import RecallResult

TECH = "# Tech\n\n## Build\n\n- **Build**: `pio run`\n- **Flash command:** `pio run -t upload`\n- Baud rate: 9600"
KITCHEN = "# Kitchen renovation\n\nBudget: 12,000 euros\nStart: 4 May 2026\nArchitect: Lea Stahl\nFloor = oak"
TOM = "# Tom Berger\n\n- Birthday:: 3 May 1980\n- Blood type: A positive\n- Desk: by the window"
PINS = "# Pins\n\n| Signal | Pin |\n|---|---|\n| Trigger | GPIO 5 |\n| Echo | GPIO 18 |"


def asked(place: Path, question: str, *told: str) -> RecallResult:
    with Memory.open(place / "brain") as memory:
        for text in (*told, "We bought a new lamp for the hall.", "The garden needs compost in spring."):
            memory.remember(text)
        return memory.recall(question)


@pytest.mark.parametrize(
    ("question", "note", "value"),
    [
        ("What is the baud rate?", TECH, "9600"),
        ("What is the flash command?", TECH, "pio run -t upload"),
        ("What is the budget for the kitchen?", KITCHEN, "12,000 euros"),
        ("When does the kitchen renovation start?", KITCHEN, "4 May 2026"),
        ("Who is the architect of the kitchen renovation?", KITCHEN, "Lea Stahl"),
        ("What is the floor of the kitchen?", KITCHEN, "oak"),
        ("When is Tom's birthday?", TOM, "3 May 1980"),
        ("What is Tom's blood type?", TOM, "A positive"),
        ("What is the trigger pin?", PINS, "GPIO 5"),
        ("What is the track width?", "# Robot\n\n- Track width: 45 cm, car width: 15 cm", "45 cm"),
    ],
)
def test_the_value_of_the_field_that_is_asked_for_is_the_answer(
    tmp_path: Path, question: str, note: str, value: str
) -> None:
    found = asked(tmp_path, question, note)
    assert (found.content, found.outcome) == (value, "answered") and found.confidence > 0.6


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("What is the budget for the bathroom?", KITCHEN),  # of another thing
        ("What is Ana's blood type?", TOM),  # of another person
        ("When is the architect coming?", KITCHEN),  # no day
        ("Who is Tom?", "# Talk\n\nTom: I moved to Rome in May."),  # the turn of a speaker
        ("Why is the budget so high?", KITCHEN),  # a reason
    ],
)
def test_a_field_of_another_thing_or_kind_is_no_answer(tmp_path: Path, question: str, note: str) -> None:
    assert asked(tmp_path, question, note).content is None


def test_of_several_fields_with_that_label_none_is_certain(tmp_path: Path) -> None:
    found = asked(tmp_path, "What is the port?", "# Ledger\n\nPort: 8080", "# Ferry\n\nPort: 9090")
    assert found.content is None or found.confidence <= 0.6
    found = asked(tmp_path, "What is the port of the ferry?")
    assert found.content == "9090"


def test_a_heading_above_a_list_is_not_the_subject_of_its_items(tmp_path: Path) -> None:
    tax = "# Tax 2025\n\nDeadline extended to 30 June 2026.\n\n## Tasks\n- [ ] Review on 2026-09-01"
    answer = str(asked(tmp_path, "When is the tax deadline?", tax).content)
    assert "30 June 2026" in answer and "09-01" not in answer
