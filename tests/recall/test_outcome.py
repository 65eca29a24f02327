"""How runs came out: one of five words, the same in results, lists and records, old records included."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from recall_memories import block, fill

from rlm_mem.errors import ModelError
from rlm_mem.models.base import Limits
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import (
    ReasonOperation,
    RecallOperation,
    RecallResult,
    list_trajectories,
    load_trajectory,
    recall_session,
)
from rlm_mem.recall.trajectory import trajectory_file
from rlm_mem.store.core.chunk_store import ChunkStore


def ask(store: ChunkStore, program: str, limits: Limits | None = None) -> RecallResult:
    llm = ScriptedLLM([block(program)] * 3)
    return RecallOperation(store, llm).recall("Where does Carla live?", limits=limits)


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("FINAL('Lisbon')", "answered"),
        ("FINAL(None, chunk_ids=search_chunks('Carla'))", "closest only"),
        ("FINAL('  ', chunk_ids=search_chunks('Carla'))", "closest only"),
        ("FINAL(None)", "not held"),
        ("FINAL('')", "not held"),
        ("FINAL(' \\n')", "not held"),
        ("print(read_chunk(search_chunks('Carla')[0]))", "stopped"),
    ],
)
def test_a_recall_has_one_of_five_outcomes_in_its_result_and_in_lists(
    store: ChunkStore, program: str, word: str
) -> None:
    fill(store)
    result = ask(store, program, Limits(iterations=1))
    # A program that gave no confidence has not said how sure it is that nothing is held.
    assert "sure that it is not held" not in str(result)
    info = list_trajectories(store)[0]
    loaded = load_trajectory(store, info.id).outcome
    assert loaded is not None
    assert (result.outcome, info.outcome, loaded.word) == (word, word, word)
    assert info.answer == result.content == ("Lisbon" if word == "answered" else None)
    assert list(info.chunk_ids) == result.chunk_ids


@pytest.mark.parametrize(
    ("raised", "word"),
    [(ModelError("no"), "failed"), (KeyboardInterrupt(), "stopped")],
    ids=["failed", "stopped"],
)
def test_an_error_fails_a_run_and_an_interruption_stops_it(
    store: ChunkStore, raised: BaseException, word: str
) -> None:
    fill(store)

    def model(_prompt: str) -> str:
        raise raised

    with pytest.raises(type(raised)):
        RecallOperation(store, model).recall("Where does Carla live?")
    assert list_trajectories(store)[0].outcome == word


def test_a_run_without_a_recorded_end_has_no_outcome(store: ChunkStore) -> None:
    with recall_session(store, "Where does Carla live?"):
        assert list_trajectories(store)[0].outcome is None
    assert list_trajectories(store)[0].outcome == "stopped"


def test_a_conclusion_has_an_outcome_too(store: ChunkStore) -> None:
    fill(store)
    reasoned = ReasonOperation(store).reason("Where does Carla live?")
    silent = ReasonOperation(store, ScriptedLLM([block("FINAL({'conclusion': ''})")])).reason("And Ana?")
    assert (reasoned.outcome, silent.outcome) == ("answered", "not held")
    assert {info.id: info.outcome for info in list_trajectories(store)} == {
        reasoned.trajectory.id: "answered",
        silent.trajectory.id: "not held",
    }


def test_the_totals_of_a_run_are_those_of_its_steps(store: ChunkStore) -> None:
    fill(store)
    result = ReasonOperation(store).reason("Where does Carla live?")
    steps = result.trajectory.steps
    assert sum(step.prompt_tokens for step in steps) == result.usage.input_tokens > 0
    assert sum(step.usage.output_tokens for step in steps) == result.usage.output_tokens > 0
    assert result.usage.estimated
    assert result.cost == 0


def test_records_of_earlier_versions_have_outcomes(store: ChunkStore, clock: Callable[[], object]) -> None:
    """The word is derived from what every record holds; nothing new is written."""
    fill(store)
    result = ask(store, "FINAL(None)")
    files = store.backend.files(store.namespace)
    end = json.loads((files.read(trajectory_file(result.trajectory.id)) or b"").splitlines()[-1])
    assert end["kind"] == "end"
    assert not {"outcome", "word"} & end.keys()
