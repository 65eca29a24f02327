"""The offline model on small stores of plain notes: what a first user tries (`offline_scenarios`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.offline.offline_scenarios import CHECKED_ON, TUNED_ON, Store

from rlm_mem.offline import OfflineLLM
from rlm_mem.recall.recall import RecallOperation
from rlm_mem.store.core.chunk_store import ChunkStore

LONGEST = 30
"""Words an answer may have: a sentence, not a page."""

FLOORS = {"tuned": 0.9, "checked": 0.8}
"""Least share of the questions that must be right."""


def answered(stores: tuple[Store, ...], folder: Path) -> list[tuple[str, str | None, bool, float]]:
    """Every question, what was answered, whether that is right, and the confidence."""
    found = []
    for number, (notes, asked) in enumerate(stores):
        with ChunkStore(folder / str(number)) as store:
            with store.batch():
                for note in notes:
                    store.create_chunk(note)
            operation = RecallOperation(store, OfflineLLM())
            for question, wanted in asked:
                result = operation.recall(question)
                given = result.content or result.suggestion
                found.append((question, given, right(given, wanted), result.confidence))
    return found


def right(answer: str | None, wanted: tuple[str, ...] | None) -> bool:
    """Whether an answer holds one of the fragments and is short; for None, whether there is none."""
    if wanted is None or answer is None:
        return wanted is None and answer is None
    return len(answer.split()) <= LONGEST and any(one.lower() in answer.lower() for one in wanted)


@pytest.mark.early
@pytest.mark.parametrize(("part", "stores"), [("tuned", TUNED_ON), ("checked", CHECKED_ON)])
def test_most_questions_about_a_few_notes_are_answered_right(
    part: str, stores: tuple[Store, ...], tmp_path: Path
) -> None:
    found = answered(stores, tmp_path)
    wrong = [(question, answer) for question, answer, good, _ in found if not good]
    assert len(found) >= 40
    assert 1 - len(wrong) / len(found) >= FLOORS[part], wrong
    told = [(good, confidence) for _, answer, good, confidence in found if answer is not None]
    if part == "tuned":
        return  # how sure it may be shows where nothing was tuned
    said = sum(confidence for _, confidence in told) / len(told)
    assert said == pytest.approx(sum(good for good, _ in told) / len(told), abs=0.2)
    assert max(confidence for _, confidence in told) < 0.95


Tell = Callable[..., str | None]


@pytest.fixture
def tell(store: ChunkStore) -> Tell:
    def told(question: str, *notes: str) -> str | None:
        for note in notes:
            store.create_chunk(note)
        return RecallOperation(store, OfflineLLM()).recall(question).content

    return told


def test_the_examples_of_the_readme_are_answered(tell: Tell) -> None:
    notes = (
        "We chose PostgreSQL over MySQL because of its row-level security.",
        "Dana prefers trains to planes.",
    )
    assert tell("Why did we choose PostgreSQL?", *notes) == "because of its row-level security"
    assert tell("How does Dana like to travel?") == "Dana prefers trains to planes"


def test_a_fact_about_somebody_else_is_not_an_answer(tell: Tell) -> None:
    assert tell("Where does Marco live?", "Marco's sister Giulia lives in Turin.") is None
    assert tell("Where does Marco live?", "Marco's sister lives in Turin.") is None
    assert tell("Where does Marco's sister live?", "Marco's sister lives in Turin.") == "Turin"


def test_the_reason_may_be_in_the_next_sentence(tell: Tell) -> None:
    answer = tell("Why did we leave AWS?", "We left AWS in May. It was too expensive for our traffic.")
    assert answer is not None
    assert "too expensive" in answer


def test_of_two_notes_the_later_one_is_the_answer(tell: Tell) -> None:
    answer = tell("When is the stand-up?", "The stand-up is at 9:30.", "The stand-up is at 10:15.")
    assert answer == "10:15"


def test_words_of_the_question_are_no_answer(tell: Tell) -> None:
    answer = tell(
        "How many audit events had gone missing before hotfix 4.3.1?",
        "Hotfix 4.3.1: audit events with empty actor were dropped silently. Found by Oksana while reconciling "
        "September invoices; 1,204 events lost, replayed from the topic.",
    )
    assert answer is None or "1,204" in answer


def test_a_time_or_a_date_is_no_place(tell: Tell) -> None:
    answer = tell(
        "Where has Mats booked a table for Karin's birthday?",
        "Karin's birthday is 8 November. Mats secretly booked a table for six at Slottskällaren, 18:30.",
    )
    assert answer is None or "Slottskällaren" in answer
