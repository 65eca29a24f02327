"""Answers to questions of yes or no, and of two options, after something later was said; and cancelled values."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.recall.recall import RecallResult


def asked(place: Path, question: str, *told: str) -> RecallResult:
    """The answer after notes or conversations of successive months."""
    with Memory.open(place / "brain") as memory:
        for month, text in enumerate(told, 1):
            memory.remember(
                text,
                occurred_at=f"2026-0{month}-05",
                conversation_id=f"talk-{month}" if text.startswith("User:") else None,
            )
        return memory.recall(question)


@pytest.mark.parametrize(
    "told",
    [
        ("We use tabs for indentation.", "Switched to spaces after the linter change."),
        ("Code style: tabs, four wide.", "We switched to spaces in the whole repo."),
        (
            "User: We use tabs in the project.\nAssistant: Noted.",
            "User: We switched to spaces.\nAssistant: OK.",
        ),
    ],
)
def test_the_other_option_of_a_later_change_is_the_answer(tmp_path: Path, told: tuple[str, str]) -> None:
    found = asked(tmp_path, "Tabs or spaces?", *told)
    answer = found.content or found.suggestion
    assert answer is not None and "witched to spaces" in answer and "abs" not in answer
    assert found.confidence <= 0.75


def test_an_option_that_is_only_thought_of_changes_nothing(tmp_path: Path) -> None:
    told = ("We use tabs for indentation.", "Perhaps we should switch to spaces some day.")
    assert str(asked(tmp_path, "Do we use tabs or spaces?", *told).content) != told[1]


@pytest.mark.parametrize(
    "told",
    [
        ("I joined the gym on Dock Street.", "Quit the gym, too expensive."),
        (
            "User: I joined a gym near the office, going every Tuesday.\nAssistant: Great, have fun at the gym!",
            "User: I quit the gym last week.\nAssistant: Sorry to hear that.",
        ),
    ],
)
def test_what_was_quit_is_denied(tmp_path: Path, told: tuple[str, str]) -> None:
    assert str(asked(tmp_path, "Do I still go to the gym?", *told).content).startswith("No: ")


def test_what_somebody_else_quit_denies_nothing(tmp_path: Path) -> None:
    told = ("I go to the gym on Mondays.", "My sister quit the gym.")
    assert not str(asked(tmp_path, "Do I still go to the gym?", *told).content).startswith("No")


def test_a_value_of_what_is_cancelled_is_no_answer(tmp_path: Path) -> None:
    cancelled = "The move of the standup to 10:15 is cancelled, it stays at 10:00."
    told = ("Standup is at 9:30.", "Standup moved to 10:00.", "Standup moved from 10:00 to 10:15.", cancelled)
    assert asked(tmp_path, "When is standup?", *told).content == cancelled


@pytest.mark.parametrize(
    "told",
    [
        "No more tabs, we write our notes with spaces.",
        "We no longer use tabs, we use spaces.",
        "Drop tabs and use spaces.",
        "We stopped using tabs; spaces from now on.",
        "Tabs are forbidden, spaces are fine.",
        "Not tabs but spaces in all files.",
        "Never use tabs.",
    ],
)
def test_an_option_that_the_sentence_rejects_is_not_the_answer(tmp_path: Path, told: str) -> None:
    assert asked(tmp_path, "Tabs or spaces?", told).content in ("spaces", None)


def test_a_time_that_the_sentence_denies_is_not_the_answer(tmp_path: Path) -> None:
    found = asked(tmp_path, "When does the fair take place?", "The fair will not take place this year.")
    assert "will not take place" in str(found.content or found.suggestion)


@pytest.mark.parametrize(
    ("question", "old", "new", "value"),
    [
        ("When is the team lunch?", "The team lunch is on Thursdays.", "No more team lunch on Thursdays.", "Thursdays"),
        ("When do deploys happen?", "Deploys happen on Friday.", "No more deploys on Friday.", "Friday"),
        ("When is the picnic?", "The picnic is on Saturday.", "The picnic won't take place.", "Saturday"),
        ("What do we build with?", "We build with Jenkins.", "Jenkins was dropped in favour of Drone.", "Jenkins"),
        ("Who is the lead developer?", "The lead developer is Mina.", "Tom became the lead developer.", "Mina"),
        ("Who is the captain?", "The captain is Ari.", "Bo is captain now, not Ari.", "Ari"),
    ],
)  # fmt: skip
def test_a_value_that_a_later_note_ended_is_not_answered_without_that_note(
    tmp_path: Path, question: str, old: str, new: str, value: str
) -> None:
    answer = str(asked(tmp_path, question, old, new).content or "")
    assert value not in answer or new.rstrip(".") in answer
