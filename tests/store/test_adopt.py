"""Adopting a complete chunk: written as it is, checked like any other, findable, undoable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_mem.chunk import Chunk, ChunkLinks, ChunkMetadata, content_hash
from rlm_mem.config import Config
from rlm_mem.errors import InvalidChunk, NamespaceError
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
from tests.typed import present

TIME = "2026-02-10T21:37:00.000000Z"


def whole(content: str = "The kestrel nests in the pump house.", **fields: Any) -> Chunk:
    metadata = ChunkMetadata(TIME, TIME, TIME, 7, 0.9, "talk", "import", content_hash(content))
    links = [ChunkLinks("chunk-not-there-yet", "my_own_type", 0.3, TIME, "because")]
    return Chunk("chunk-a", content, 12, "my_type", metadata, links, ["a"], 5, **fields)


@pytest.fixture
def store(tmp_path: Path) -> ChunkStore:
    return ChunkStore(tmp_path / "memory", config=Config.load(None, environ={}))


def test_a_chunk_is_written_as_it_is_and_found(store: ChunkStore) -> None:
    store.adopt(whole())
    assert store.get_chunk("chunk-a", track=False) == whole()
    assert [hit.chunk_id for hit in search(store, "kestrel")] == ["chunk-a"]


def test_one_of_the_archive_stays_there_until_restored(store: ChunkStore) -> None:
    store.adopt(whole(), archived=True)
    assert store.get_chunk("chunk-a") is None
    assert search(store, "kestrel") == []
    store.restore_chunk("chunk-a")
    assert [hit.chunk_id for hit in search(store, "kestrel")] == ["chunk-a"]


def test_the_replaced_chunk_becomes_a_former_version(store: ChunkStore) -> None:
    store.create_chunk("The former text.", chunk_id="chunk-a")
    store.adopt(whole())
    assert present(store.undo("chunk-a")).content == "The former text."


def test_it_goes_into_its_own_namespace_and_takes_no_id_from_another(
    tmp_path: Path, store: ChunkStore
) -> None:
    store.adopt(whole(namespace="other"))
    assert store.list_chunks() == []
    assert store.list_chunks(namespace="other") == ["chunk-a"]
    with pytest.raises(InvalidChunk, match="that of another chunk"):
        store.adopt(whole())
    confined = ChunkStore(tmp_path / "c" / "memory", confined=True)
    with pytest.raises(NamespaceError):
        confined.adopt(whole(namespace="other"))


def test_bad_fields_are_refused_and_nothing_is_written(store: ChunkStore) -> None:
    bad = [whole(content=" "), whole(), whole(), whole()]
    bad[1].content = "a\ud800"
    bad[2].metadata.confidence = 3.0
    bad[3].metadata.extra = {"x": float("nan")}
    for chunk in bad:
        with pytest.raises(InvalidChunk):
            store.adopt(chunk)
    assert store.list_chunks() == []
