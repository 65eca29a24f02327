"""The closest memories: three at most beside an unsure answer, none beside a sure one; parts are read on."""

from __future__ import annotations

from pathlib import Path

import pytest
from recall_memories import block, fill

from rlm_mem.interchange.folders import sync_folder
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import RecallOperation, RecallResult
from rlm_mem.store.core.chunk_store import ChunkStore


def ask(store: ChunkStore, confidence: float) -> RecallResult:
    city = fill(store)["city"]
    for town in ("Porto", "Braga", "Faro", "Evora"):
        store.create_chunk(f"Carla visited {town} and would like to live there.")
    program = f"FINAL('Lisbon', chunk_ids=[{city!r}], confidence={confidence})"
    return RecallOperation(store, ScriptedLLM([block(program)])).recall("Where does Carla live?")


@pytest.mark.parametrize(("confidence", "count"), [(0.3, 3), (0.6, 3), (0.61, 0), (0.9, 0)])
def test_an_unsure_answer_has_three_closest_memories_beside_it(
    store: ChunkStore, confidence: float, count: int
) -> None:
    result = ask(store, confidence)
    assert len(result.closest) == count
    assert all("Carla" in one.excerpt for one in result.closest)
    assert {one.chunk_id for one in result.closest}.isdisjoint(result.chunk_ids)
    assert [one.chunk_id for one in result.sources] == result.chunk_ids
    assert ("These memories also come close." in str(result)) == (count > 0)


def test_closest_memories_come_after_the_sources_within_a_budget(store: ChunkStore) -> None:
    result = ask(store, 0.3)
    assert result.within(2_000) == result
    small = result.within(12)
    assert small.sources
    assert len(small.closest) < 3
    assert not result.within(0).closest


def test_a_closest_part_of_a_document_goes_on_with_the_part_after_it(
    store: ChunkStore, tmp_path: Path
) -> None:
    sections = [
        f"## Section {number}\n\nThing {number}. {'It is by the gate of the yard. ' * 18}"
        for number in range(6)
    ]
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "plugin.md").write_text("\n\n".join(sections), encoding="utf-8")
    sync_folder(store, folder)
    parts = store.get_many(store.list_chunks(), track=False).values()
    first, second = sorted(parts, key=lambda one: one.metadata.provenance["part"])[:2]

    def excerpts(*ids: str) -> list[str]:
        llm = ScriptedLLM([block(f"FINAL(None, chunk_ids={list(ids)!r})")])
        return [
            one.excerpt for one in RecallOperation(store, llm).recall("Which things are by the gate?").sources
        ]

    (alone,) = excerpts(first.id)
    own, following = (" ".join(one.content.split()) for one in (first, second))
    assert alone.startswith(f"{own} {following[:40]}") and len(alone) <= 1_500
    assert excerpts(first.id, second.id)[0] == own, "what is shown anyway is not repeated"
