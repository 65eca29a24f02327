"""The nearest memory is quoted if no passage clearly answers: as an answer if it most probably has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.models.base import SURE
from rlm_mem.offline.closest import nearness
from rlm_mem.offline.nearest import quotation, told_by_nearest
from rlm_mem.offline.passages import Passage
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.weights import load_weights
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
        ("Who stands in for Petra during her months in Oslo?",
         "Petra spends her months in Oslo from autumn, her deputy will be Yannick Prien.", "Yannick Prien"),
        ("On which port can the tide gauge be reached in the lab?",
         "In the lab the tide gauge answers on 8471.", "8471"),
        ("Does the Tidemark app let me work on Finnish forms?",
         "Tidemark app: Finnish forms were asked for but declined.", "declined"),
    ],
)  # fmt: skip
def test_the_nearest_memory_is_quoted_as_the_answer_if_it_most_probably_has_it(
    tmp_path: Path, question: str, note: str, answer: str
) -> None:
    result = ask(tmp_path, question, note)
    assert answer in str(result.content)
    assert 0.8 <= result.confidence <= 0.9


def test_beside_a_memory_that_is_as_near_a_quotation_is_only_a_suggestion(tmp_path: Path) -> None:
    result = ask(
        tmp_path,
        "Why did the vendor Tidemark walk away from us?",
        "Tidemark cancelled in April because the Polish tax form was missing.",
        "Tidemark cancelled the dinner because the cook was ill.",
    )
    assert result.content is None
    assert "because" in str(result.suggestion)
    assert 0.5 <= result.confidence <= 0.6


def test_a_quotation_has_the_sentence_after_it_if_both_are_short(tmp_path: Path) -> None:
    question = "What would the beekeepers like from the orchard people?"
    note = "The beekeepers wrote to the orchard on Monday. They ask for a shed with a lock."
    result = ask(tmp_path / "short", question, note)
    assert "a shed with a lock" in str(result.content or result.suggestion)
    long = Passage("chunk", note.replace("lock", "lock " + "and a lamp " * 20))
    asked = analyse_question(question)
    found = quotation(asked, [long], nearness(asked, [long]))
    assert found is not None
    assert found.text == "The beekeepers wrote to the orchard on Monday"


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("How heavy is the heron sculpture?", "The heron sculpture stands in the yard of the town hall."),
        ("How much does the insurer Brandvold pay us for the lamps?",
         "Brandvold wants 2 forms, 14 photos and the number 5521 of the pallet."),
        ("When will the heron sculpture be cleaned?", "The heron sculpture stands in the yard of the town hall."),
    ],
)  # fmt: skip
def test_a_figure_or_a_time_is_not_suggested_by_a_memory_without_one(
    tmp_path: Path, question: str, note: str
) -> None:
    result = ask(tmp_path, question, note)
    assert (result.content, result.suggestion) == (None, None)


def test_a_memory_of_another_role_or_of_a_day_that_is_over_is_no_answer(tmp_path: Path) -> None:
    question = "Who is the caterer for the staff party?"
    other = "Staff party in June at the rowing club, the band is led by Marek Dahl."
    assert ask(tmp_path / "one", question, other).content is None
    assert ask(tmp_path / "two", question, "The caterer of the staff party in June is Marek Dahl.").content
    note = "The tide meters have a wrong clock since the update on 6 November 2025."
    with Memory.open(tmp_path / "brain", llm="offline") as memory:
        for one in _OTHERS:
            memory.remember(one)
        memory.remember(note, occurred_at="2026-02-01")
        asked = "When will the vendor repair the tide meters with the wrong clock?"
        assert memory.recall(asked).content is None


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("What is the colour of the moon?", "Dana drinks green tea, Ben drinks coffee."),
        ("Which colour is the moon?", "Her coffee is black."),
        ("What colour are the curtains?", "Coffee is at nine in the blue room."),
    ],
)
def test_a_member_of_a_class_does_not_relate_a_memory_to_another_subject(
    tmp_path: Path, question: str, note: str
) -> None:
    result = ask(tmp_path, question, note)
    assert (result.outcome, result.suggestion) == ("not held", None)


def test_a_member_of_a_class_relates_a_memory_of_the_subject(tmp_path: Path) -> None:
    result = ask(tmp_path, "What colour is the room for coffee?", "Coffee is at nine in the blue room.")
    assert "blue" in str(result.content or result.suggestion)


def test_what_else_is_known_of_a_thing_is_no_answer_to_an_attribute(tmp_path: Path) -> None:
    note = "The camera on the reef frame uploads one picture each hour to the folder reefcam."
    for question in ("Which make is the camera on the reef frame?", "Which make is the camera?"):
        result = ask(tmp_path, question, note)
        assert (result.outcome, result.content, result.suggestion) == ("closest only", None, None)
        assert "uploads one picture" in result.sources[0].excerpt
    result = ask(tmp_path, "Which make is the drill?", "The make of the drill is Hilti.")
    assert "Hilti" in str(result.content)


def test_who_did_something_else_is_no_sure_answer(tmp_path: Path) -> None:
    notes = (
        "Stray tabby, no chip; Petra named her Wanda and she stays in box 3.",
        "Wanda was adopted by Mr. Odermatt.",
    )
    result = ask(tmp_path, "Who took in the stray cat Wanda?", *notes)
    assert result.content is None
    result = ask(tmp_path, "Who adopted Wanda?")
    assert "Odermatt" in str(result.content)


def test_a_memory_whose_names_a_later_note_on_the_question_has_too_is_no_answer(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain", llm="offline") as memory:
        for one in _OTHERS:
            memory.remember(one)
        memory.remember("Ann and Bilal work at reception.", occurred_at="2025-03-01")
        question = "Who works at reception together with Ann?"
        assert "Bilal" in str(memory.recall(question).content)
        later = "Cake for Bilal on his last day was lovely. Chiara has taken his chair at reception."
        memory.remember(later, occurred_at="2025-09-01")
        found = memory.recall(question)
    assert found.content is None or "Chiara" in found.content


def test_a_conversation_is_quoted_as_a_suggestion_at_most(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain", llm="offline") as memory:
        for number in range(8):
            memory.remember(f"Ana: I baked bread number {number} today.\nBen: You're busy, aren't you?")
        memory.remember("Ana: We cancelled with Tidemark because their form was missing!\nBen: I see.")
        result = memory.recall("Why did the vendor Tidemark walk away from us?")
    assert result.content is None
    assert "form was missing" in str(result.suggestion)


@pytest.mark.parametrize(("heading", "certain"), [("", True), ("Vendors", False)])
def test_a_document_is_quoted_as_a_suggestion_at_most(heading: str, certain: bool) -> None:
    texts = "Tidemark cancelled in April because the Polish tax form was missing.", *_OTHERS
    passages = [
        Passage(f"chunk-{number}", text, heading="" if number else heading)
        for number, text in enumerate(texts)
    ]
    question = analyse_question("Why did the vendor Tidemark walk away from us?")
    found = told_by_nearest(question, passages, nearness(question, passages), load_weights().nearest)
    assert found is not None
    assert found.answer == texts[0].rstrip(".")
    assert (found.confidence > SURE) is certain


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
