"""How runs came out: one of five words, the same in results, lists and records, old records included."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from recall_memories import block, fill
from tests.typed import local

from rlm_mem import Memory
from rlm_mem.errors import ModelError
from rlm_mem.models.base import Limits
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.operations.shapes import cited_answer
from rlm_mem.recall import (
    ReasonOperation,
    RecallOperation,
    RecallResult,
    list_trajectories,
    load_trajectory,
    recall_session,
)
from rlm_mem.recall.loop import LoopStep
from rlm_mem.recall.trajectory import trajectory_file
from rlm_mem.search import search
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
    assert "confidence that there is no answer" not in str(result)
    info = list_trajectories(store)[0]
    loaded = load_trajectory(store, info.id).outcome
    assert loaded is not None
    assert (result.outcome, info.outcome, loaded.word) == (word, word, word)
    assert info.answer == result.content == ("Lisbon" if word == "answered" else None)
    assert list(info.chunk_ids) == result.chunk_ids


@pytest.mark.parametrize("question", ["Who keeps the key of the tower?", "Who paints the boat?"])
@pytest.mark.local_only("damage a file")
def test_nothing_is_surely_not_held_while_a_chunk_file_cannot_be_read(tmp_path: Path, question: str) -> None:
    """Damaged while the memory is open or before, and mended meanwhile; in every form of the result."""
    brain = tmp_path / "brain"
    with Memory.open(brain) as memory:
        (kept,) = memory.remember("Tessa keeps the key of the tower.").chunk_ids
        memory.remember("The boat is green.")
        (path,) = (brain / "memory/chunks").rglob(f"{kept}.json")
        whole = path.read_text()
        assert memory.recall("Who keeps the key of the tower?").note == ""
        path.write_text(f"<<<<<<< HEAD\n{whole}")
        memory.get(kept)
    for _ in range(2):
        with Memory.open(brain) as memory:
            memory.get(kept)
            found = memory.recall(question)
            assert (found.content, found.confidence) == (None, 0.0)
            assert "a chunk file could not be read" in found.note
            assert found.note in str(found)
            assert "sure" not in str(found)
            assert cited_answer(memory.store, found).note == found.note
            recorded = load_trajectory(memory.store, found.trajectory.id).outcome
            assert recorded is not None
            assert recorded.detail["note"] == found.note
            assert memory.receipt(found).answer.confidence == 0.0
            reasoned = memory.reason(question)
            assert reasoned.note == found.note
            assert "sure" not in str(reasoned)
            path.write_text(whole)
            assert memory.recall(question).note == ""
            answered = memory.recall("Who keeps the key of the tower?")
            assert answered.content == "Tessa"
            path.write_text(f"<<<<<<< HEAD\n{whole}")
        (path.parent / "other").touch()  # the folder changes: the next opening looks at its files


@pytest.mark.local_only("change files")
def test_what_came_back_into_the_folder_is_found_by_a_process_that_has_the_memory_open(
    tmp_path: Path,
) -> None:
    brain, away = tmp_path / "brain", tmp_path / "away.json"
    with Memory.open(brain) as memory:
        memory.remember("The boat is green.")
        (kept,) = memory.remember("Wendel rings the bell at noon.").chunk_ids
        (path,) = (brain / "memory/chunks").rglob(f"{kept}.json")
        path.rename(away)
        assert memory.recall("Who rings the bell at noon?").outcome == "not held"
        assert memory.reason("Who rings the bell at noon?").outcome == "not held"
        away.rename(path)
        assert memory.recall("Who rings the bell at noon?").content == "Wendel"
        path.rename(away)
        with memory.batch():
            assert memory.recall("Who rings the bell at noon?").outcome == "not held"
        away.rename(path)
        assert memory.reason("Who rings the bell at noon?").outcome == "answered"
        path.rename(away)
        turns: list[LoopStep] = []
        assert memory.recall("Who rings the bell at noon?", on_step=turns.append).outcome == "not held"
        away.rename(path)

        def look(step: LoopStep) -> None:  # what happens once a second, here after the last search
            if step.turn == turns[-1].turn:
                local(memory.store.backend).look()

        assert memory.recall("Who rings the bell at noon?", on_step=look).content == "Wendel"


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("FINAL(search('bicycle', limit=1)[0])", "snippet"),
        ("FINAL(passages('bicycle', limit=1)[0])", "text"),
        ("FINAL(turns(contains='bicycle')[0])", "text"),
        ("FINAL(search('bicycle', limit=2))", "snippet"),
        ("FINAL(read_chunk(search_chunks('bicycle')[0]))", "content"),
    ],
)
def test_a_row_that_is_given_as_the_answer_is_its_text_with_its_chunk_cited(
    store: ChunkStore, program: str, text: str
) -> None:
    fill(store)
    result = ask(store, program)
    assert result.content is not None
    assert "bicycle" in result.content
    assert "chunk-" not in result.content
    assert f'"{text}"' not in result.content
    assert set({one.chunk_id for one in search(store, "bicycle")}) & set(result.chunk_ids)


def test_other_data_with_an_id_stays_data(store: ChunkStore) -> None:
    fill(store)
    result = ask(store, "FINAL({'person': 'Carla', 'chunk_id': search_chunks('Carla')[0]})")
    assert json.loads(result.content or "")["person"] == "Carla"


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
