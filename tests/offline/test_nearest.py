"""What the nearest memory tells once is suggested where no other memory comes near."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.recall.recall import RecallResult

_OTHERS = (
    "Bread is baked on Fridays.",
    "The lease of the shop ends in June.",
    "Owen repaired the till drawer.",
    "Window cleaned, flyers printed for spring.",
)


def ask(folder: Path, question: str, *notes: str) -> RecallResult:
    with Memory.open(folder / "brain", llm="offline") as memory:
        for note in (*_OTHERS, *notes):
            memory.remember(note)
        return memory.recall(question)


@pytest.mark.parametrize(
    ("question", "note", "answer"),
    [
        ("Why did the vendor Tidemark walk away from us?",
         "Tidemark cancelled in April because the Polish tax form was missing.", "Polish tax form was missing"),
        ("For how long must the ledger archive be preserved?", "Ledger archive: keep for ten years.", "ten years"),
        ("How many litres of paint does the Mill Lane job require?", "Paint for Mill Lane: 42 litres.", "42"),
    ],
)  # fmt: skip
def test_a_reason_a_duration_or_an_only_figure_of_the_nearest_memory_is_suggested(
    tmp_path: Path, question: str, note: str, answer: str
) -> None:
    result = ask(tmp_path, question, note)
    assert answer in str(result.suggestion)
    assert result.content is None and 0.5 <= result.confidence <= 0.6


@pytest.mark.parametrize(
    ("question", "note", "answer"),
    [
        (
            "Who stands in for Petra during her months in Oslo?",
            "Petra spends her months in Oslo from autumn, her deputy will be Yannick Prien.",
            "Yannick Prien",
        ),
        (
            "On which port can the tide gauge be reached in the lab?",
            "In the lab the tide gauge answers on 8471.",
            "8471",
        ),
    ],
)
def test_what_the_nearest_memory_tells_once_is_suggested_if_it_matches_much_of_the_question(
    tmp_path: Path, question: str, note: str, answer: str
) -> None:
    result = ask(tmp_path / "one", question, note)
    assert answer in str(result.suggestion)
    assert ask(tmp_path / "two", question, f"{note} Ulla Berg wants 9000 by 2 May.").suggestion is None


def test_a_denial_in_the_nearest_memory_suggests_no(tmp_path: Path) -> None:
    question = "Does the Tidemark app let me work on Finnish forms?"
    result = ask(tmp_path / "one", question, "Tidemark app: Finnish forms were asked for but declined.")
    assert str(result.suggestion).startswith("No: ")
    assert ask(tmp_path / "two", question, "Tidemark app: Finnish forms were asked for.").suggestion is None
    negative = "Does the Tidemark app not let me work on Finnish forms?"
    assert ask(tmp_path / "three", negative, "Tidemark app: Finnish forms declined.").suggestion is None


def test_a_day_before_its_memory_is_not_when_something_will_happen(tmp_path: Path) -> None:
    note = "The tide meters have a wrong clock since the update on 6 November 2025."
    with Memory.open(tmp_path / "brain", llm="offline") as memory:
        for one in _OTHERS:
            memory.remember(one)
        memory.remember(note, occurred_at="2026-02-01")
        assert (
            memory.recall("When will the vendor repair the tide meters with the wrong clock?").suggestion
            is None
        )


def test_nothing_is_suggested_beside_a_memory_that_is_as_near(tmp_path: Path) -> None:
    question = "Why did the vendor Tidemark walk away from us?"
    note = "Tidemark cancelled in April because the Polish tax form was missing."
    assert ask(tmp_path / "one", question, note).suggestion is not None
    other = "Tidemark cancelled the dinner because the cook was ill."
    assert ask(tmp_path / "two", question, note, other).suggestion is None


def test_one_of_several_figures_is_not_given(tmp_path: Path) -> None:
    result = ask(
        tmp_path,
        "How much does the insurer Brandvold pay us for the lamps?",
        "Brandvold wants 2 forms, 14 photos and the number 5521 of the pallet.",
    )
    assert (result.content, result.suggestion) == (None, None)


@pytest.mark.parametrize(
    ("question", "note", "other"),
    [
        (
            "Who is the caterer for the staff party?",
            "Staff party in June at the rowing club, the band is led by Marek Dahl.",
            "The caterer of the staff party in June is Marek Dahl.",
        ),
        (
            "Which port does the staff database on grebe have?",
            "Staff database on grebe: dumps are kept for 400 days.",
            "Staff database on grebe: dumps come from 400.",
        ),
    ],
)
def test_what_is_not_the_thing_asked_for_is_no_answer(
    tmp_path: Path, question: str, note: str, other: str
) -> None:
    assert ask(tmp_path / "one", question, note).suggestion is None
    found = ask(tmp_path / "two", question, other)
    assert found.content or found.suggestion


def test_one_of_several_durations_is_not_given_if_its_sentence_matches_little(tmp_path: Path) -> None:
    question = "For how long must the ledger archive be preserved?"
    both = "Ledger archive: keep for ten years. Drafts go after 14 days."
    assert ask(tmp_path / "one", question, "Archive of Ledger, keep for ten years.").suggestion is not None
    assert (
        ask(tmp_path / "two", question, f"The ledger archive is heavy. {both.partition(': ')[2]}").suggestion
        is None
    )


def test_the_note_of_an_answer_is_not_given_once_more_as_a_later_one(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain", llm="offline") as memory:
        for day, note in enumerate(
            (
                "Switched from row locks to advisory locks per sailing: 950 bookings a second.",
                "The seat lock timeout is 90 seconds, users complained it's too short.",
                "Raised seat lock timeout to 180 seconds.",
            ),
            1,
        ):
            memory.remember(note, occurred_at=f"2026-10-0{day}")
        result = memory.recall("What is the seat lock timeout?")
    assert "180 seconds" in str(result.content or result.suggestion)
    assert "; later" not in str(result)


def test_what_is_of_the_day_asked_about_comes_closest(tmp_path: Path) -> None:
    notes = {
        "2026-03-07": "Weather: 30 degrees. Slept 6 hours.",
        "2026-03-15": "# Sunday 15 March 2026\n\nWeather: 9 degrees. Rang Anna.",
        "2026-03-26": "# Thursday 26 March 2026\n\nWeather: 7 degrees. Slept 5 hours.",
    }
    with Memory.open(tmp_path / "brain", llm="offline") as memory:
        for day, note in notes.items():
            memory.remember(note, occurred_at=day)
        result = memory.recall("What did I do on 7 March 2026?")
    assert result.sources[0].at[:10] == "2026-03-07"


@pytest.mark.parametrize(
    ("question", "note", "answer"),
    [
        ("When is the surgery of Pia?", "Pia's surgery moved to 25 Oct -> no, clinic rang, stays 26 Oct.", "26 Oct"),
        ("When is the standup?", "Standup is at 9:15 - scratch that, 9:30.", "9:30"),
        ("For which day is the hall booked?", "Booked the hall for Friday, no wait, Saturday.", "Saturday"),
    ],
)  # fmt: skip
def test_a_value_that_its_line_takes_back_is_given_with_what_replaces_it(
    tmp_path: Path, question: str, note: str, answer: str
) -> None:
    result = ask(tmp_path, question, note)
    assert answer in str(result.content or result.suggestion)


def test_a_value_before_a_plain_no_is_given_alone(tmp_path: Path) -> None:
    result = ask(
        tmp_path, "When is the surgery of Pia?", "Pia's surgery is on 25 Oct, no visitors on that day."
    )
    assert "visitors" not in str(result.content or result.suggestion)


def test_documents_that_a_question_names_are_looked_through_however_much_they_link_to(tmp_path: Path) -> None:
    part = (
        "The Heron feeder of station {0} has {0} litres of feed, and its lid is opened by a lever at the side. "
        * 3
    )
    with Memory.open(tmp_path / "brain", llm="offline") as memory:
        for name in ("guide", "setup", "faults"):
            parts = (f"## Station {one}\n\n{part.format(one)}" for one in range(40))
            memory.remember(f"# Heron {name}\n\n" + "\n\n".join(parts), conversation_id=f"heron-{name}")
        result = memory.recall("Which lever opens the emptied Heron feeder?")
    assert [step.error for step in result.trajectory.steps] == [None, None]
