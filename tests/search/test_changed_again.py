"""What changed more than once: which value holds is first or named, whatever the last note has of the question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rlm_mem import Hit, Memory


@pytest.fixture
def memory(place: str) -> Iterator[Memory]:
    with Memory.open(place) as opened:
        for number in range(1, 9):
            noted(opened, f"2026-01-0{number}", f"Walked {number} kilometres along the dyke, it rained.")
        yield opened


def noted(memory: Memory, day: str, text: str, **more: Any) -> str:
    return memory.remember(text, occurred_at=day, **more).chunk_ids[0]


def all_noted(memory: Memory, *texts: str) -> list[str]:
    return [noted(memory, f"2026-0{month}-05", text) for month, text in enumerate(texts, 2)]


def reached(memory: Memory, question: str) -> tuple[Hit, set[str]]:
    """The first hit, and the ids of it and of what is named on it as later."""
    first = memory.search(question)[0]
    return first, {first.chunk_id} | {
        note.chunk_id for which, note in first.other_notes() if which != "earlier"
    }


def told(memory: Memory, question: str) -> str:
    answer = memory.recall(question)
    return f"{answer.content or ''} {answer.suggestion or ''}"


@pytest.mark.parametrize(
    ("notes", "question", "value"),
    [
        (
            ("Staging runs on hetzner-2.", "Staging moved to aws-1.", "aws-1 was replaced by aws-5."),
            "Which server is staging on?",
            "aws-5",
        ),
        (
            (
                "The release manager is Ines.",
                "Ines handed that over to Omar.",
                "Omar left the company; Priya took over from him.",
            ),
            "Who is the release manager?",
            "Priya",
        ),
        (
            (
                "Our dentist is Dr. Amundsen.",
                "We switched from Dr. Amundsen to Dr. Berg.",
                "Dr. Berg retired. Dr. Lie took over the practice.",
            ),
            "Who is our dentist?",
            "Lie",
        ),
    ],
)
def test_a_note_that_refers_only_to_the_second_of_three_is_reached(
    memory: Memory, notes: tuple[str, ...], question: str, value: str
) -> None:
    _, _, last = all_noted(memory, *notes)
    assert last in reached(memory, question)[1]
    assert value in told(memory, question)


@pytest.mark.parametrize(
    ("changed", "again", "question"),
    [
        ("We now indent with 4 spaces.", "We returned to tabs.", "How do we indent?"),
        ("We switched from tabs to spaces.", "We returned to tabs.", "How do we indent?"),
        ("We switched from tabs to spaces.", "We went back to tabs in the end.", "Do we use tabs or spaces?"),
    ],
)
def test_a_value_that_is_in_force_again_is_first(
    memory: Memory, changed: str, again: str, question: str
) -> None:
    _, second, last = all_noted(memory, "We indent with tabs.", changed, again)
    hits = {hit.chunk_id: hit for hit in memory.search(question)}
    assert next(iter(hits)) == last
    assert hits[second].later_note is not None and hits[second].later_note.chunk_id == last
    assert again.rstrip(".") in told(memory, question)


def test_a_value_that_was_only_tried_again_is_not_first(memory: Memory) -> None:
    _, second, last = all_noted(
        memory, "We indent with tabs.", "We now indent with 4 spaces.", "In the demo we returned to tabs."
    )
    assert memory.search("How do we indent?")[0].chunk_id == second != last


def test_the_return_of_a_value_replaces_what_had_changed_it(memory: Memory) -> None:
    _, _, moved, back = all_noted(
        memory,
        "Standup is at 9:30.",
        "Standup moved to 10:00.",
        "Standup moved from 10:00 to 10:30.",
        "Standup is back to 9:30.",
    )
    assert memory.get(moved).metadata.superseded_by == back
    assert memory.search("When is standup?")[0].chunk_id == back


def test_a_note_whose_value_holds_again_names_the_note_that_says_so(memory: Memory) -> None:
    first, second, back = all_noted(
        memory, "Standup is at 9:30.", "Standup moved from 9:30 to 10:00.", "Standup is back to 9:30."
    )
    hits = {hit.chunk_id: hit for hit in memory.search("When is standup?")}
    assert hits[first].superseded_by == second and hits[second].superseded_by == back
    assert hits[first].later_note is not None and hits[first].later_note.chunk_id == back
    assert "Standup is back to 9:30." in hits[first].marked_snippet()
    assert hits[second].later_note is None  # what replaced it is named as such


@pytest.mark.parametrize("by_turn", [True, False])
def test_a_correction_in_the_same_conversation_is_named(memory: Memory, by_turn: bool) -> None:
    turns = ("Ann: Standup is at 9:30.", "Ben: Fine with me.", "Ann: Correction, it's 9:45 now.")
    for text in turns if by_turn else ("\n".join(turns),):
        noted(memory, "2026-03-01", text, conversation_id="team")
    first, _ = reached(memory, "When is standup?")
    assert first.later_note is not None and "9:45" in first.later_note.text
    assert "9:45" in told(memory, "When is standup?")


@pytest.mark.parametrize(
    ("after", "more"),
    [
        ("Ben: Actually I have a dentist at 9:45.", {}),  # somebody else
        ("Ann: Lunch is at 12:15.", {}),  # nothing that corrects
        ("Ann: Correction, it's 9:45 now.", {"origin": "web", "trust": "untrusted"}),
    ],
)
def test_another_turn_is_not_named_as_a_correction(memory: Memory, after: str, more: dict[str, str]) -> None:
    noted(memory, "2026-03-01", "Ann: Standup is at 9:30.", conversation_id="team")
    noted(memory, "2026-03-01", after, conversation_id="team", **more)
    assert memory.search("When is standup?")[0].later_note is None


def test_a_correction_that_is_out_of_date_is_not_named_but_what_replaced_it(memory: Memory) -> None:
    noted(memory, "2026-03-01", "Ann: Standup is at 9:30.", conversation_id="team")
    wrong = noted(memory, "2026-03-01", "Ann: Correction, it's 9:45.", conversation_id="team")
    right = noted(memory, "2026-03-02", "The daily meeting begins at 10:00.")
    memory.link(right, wrong, "supersedes")

    def of_first() -> str:
        hit = next(one for one in memory.search("When is standup?") if "9:30" in one.snippet)
        return hit.later_note.text if hit.later_note is not None else ""

    assert "10:00" in of_first()
    memory.delete(right)
    assert "9:45" not in of_first()


def test_a_denied_value_comes_behind_the_note_that_denies_it(memory: Memory) -> None:
    _, later = all_noted(
        memory,
        "Release day is Thursday.",
        "Two ruined weekends: no releases on Thursday, we release on Tuesday, agreed by all.",
    )
    assert memory.search("What is our release day?")[0].chunk_id == later


def test_a_note_with_few_words_of_a_long_one_does_not_come_before_it(memory: Memory) -> None:
    earlier, _ = all_noted(
        memory,
        "Rosenhof school asked for nut-free baking because a pupil in class 4b has a severe hazelnut allergy. "
        "Their rolls are packed first and go into the green crates.",
        "Rosenhof pays late again. Marthe's rule: reminder after 14 days, no more deliveries after 45. "
        "The person to ask in the school office is Herr Amsel.",
    )
    ask = "Why do the rolls for the Rosenhof school have to be free of nuts?"
    assert memory.search(ask)[0].chunk_id == earlier


def test_what_is_as_always_changes_nothing(memory: Memory) -> None:
    earlier, _ = all_noted(
        memory,
        "Holiday requests go to Joline.",
        "Sick notes: no longer on paper to Joline, just the app. Holiday requests as always.",
    )
    assert memory.search("To whom do holiday requests go?")[0].chunk_id == earlier


def test_what_is_called_last_may_be_of_the_present(memory: Memory) -> None:
    _, later = all_noted(memory, "Last orders for dinner 9.30.", "Last orders are now 9.15.")
    first, second = memory.search("When are last orders?")
    assert first.chunk_id == later and second.later_note is not None


@pytest.mark.parametrize(
    "later", ["Fish moved from Tuesday to Thursday.", "The fish is delivered on Thursday now."]
)
def test_a_later_note_changes_only_the_part_of_a_note_that_it_is_about(memory: Memory, later: str) -> None:
    several = "Bread comes from Hobbs; fish is delivered on Tuesday; the bins are emptied on Monday."
    _, changed = all_noted(memory, several, later)
    for question, value in (
        ("Where does our bread come from?", "Hobbs"),
        ("When are the bins emptied?", "Monday"),
    ):
        first, named = reached(memory, question)
        assert first.snippet == several and changed not in named
        answer = told(memory, question)
        assert value in answer and "Thursday" not in answer
    assert memory.search("When is fish delivered?")[0].chunk_id == changed
    assert "Thursday" in told(memory, "When is fish delivered?")
