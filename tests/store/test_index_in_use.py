"""What befalls the local index while other threads, other processes or a batch use it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.errors import ConflictError
from rlm_mem.search import search
from rlm_mem.store import local
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.local import connections, local_index
from tests.store.test_faults import file_of, overwrite

pytestmark = pytest.mark.local_only("look at the index beside the files")


def hits(store: ChunkStore, query: str) -> list[str]:
    return [hit.chunk_id for hit in search(store, query, limit=20)]


def test_what_is_stored_in_an_index_made_anew_is_found_by_a_process_that_knew_the_former_one(
    base: Path,
) -> None:
    with ChunkStore(base) as store:
        gate = store.create_chunk("the code of the gate").id
        store.update_chunk(gate, tags=["depot"])
        assert hits(store, "gate") == [gate]
        known = store.backend.version(store.namespace)
        shutil.rmtree(base / "index")
        with ChunkStore(base) as other:
            attic = other.create_chunk("the attic window leaks").id
            assert hits(other, "attic") == [attic]
        assert store.backend.version(store.namespace) > known
        assert hits(store, "attic") == [attic]
        assert hits(store, "gate") == [gate]


def test_chunks_that_a_former_index_had_are_not_mixed_with_those_of_the_new_one(base: Path) -> None:
    with ChunkStore(base) as store:
        gone = [store.create_chunk(f"heron {number} on the pier").id for number in range(3)]
        stays = store.create_chunk("heron at the weir").id
        assert set(hits(store, "heron")) == {*gone, stays}
        shutil.rmtree(base / "index")
        for chunk_id in gone:
            file_of(base, chunk_id).unlink()
        with ChunkStore(base) as other:
            # More changes than the former index had.
            gulls = {other.create_chunk(f"gull {number} over the mole").id for number in range(9)}
            assert hits(other, "heron") == [stays]
        assert hits(store, "heron") == [stays]
        assert set(hits(store, "gull")) == gulls


def test_threads_of_a_read_only_store_read_the_former_index_until_the_next_one_is_complete(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChunkStore(base) as store:
        ids = {store.create_chunk(f"note {number}").id for number in range(5)}
    fill: Callable[..., Any] = local.sync_folders
    read: list[Any] = []
    with ChunkStore(base, read_only=True) as store, ThreadPoolExecutor(1) as thread:
        assert set(store.list_chunks()) == ids
        index = base / "index" / "index.sqlite"
        overwrite(index, 0, index.stat().st_size)
        assert set(store.list_chunks()) == ids  # from now on the index is in memory

        def slow(*given: Any, **more: Any) -> Any:
            made = fill(*given, **more)
            read.append(thread.submit(store.backend.find, store.namespace, min(ids)).result(timeout=20))
            return made

        former = store.backend.find(store.namespace, min(ids))
        monkeypatch.setattr(local, "sync_folders", slow)
        path = file_of(base, min(ids))
        path.write_text(path.read_text("utf-8").replace('"note ', '"letter '), encoding="utf-8")
        found = store.get_chunk(min(ids))
        assert found is not None
        assert "letter" in found.content
        assert read == [former]
        assert hits(store, "letter")[0] == min(ids)


def test_the_first_index_in_memory_is_read_by_other_threads_once_it_is_complete(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChunkStore(base) as store:
        ids = {store.create_chunk(f"note {number}").id for number in range(5)}
    fill: Callable[..., Any] = local.sync_folders
    read: list[set[str]] = []
    with ChunkStore(base, read_only=True) as store, ThreadPoolExecutor(1) as thread:
        assert set(thread.submit(store.list_chunks).result()) == ids
        index = base / "index" / "index.sqlite"
        waiting: list[Any] = []

        def slow(*given: Any, **more: Any) -> Any:
            waiting.append(thread.submit(lambda: read.append(set(store.list_chunks()))))
            return fill(*given, **more)

        monkeypatch.setattr(local, "sync_folders", slow)
        overwrite(index, 0, index.stat().st_size)
        assert set(store.list_chunks()) == ids
        for one in waiting:
            one.result(timeout=20)
        assert read == [ids] * len(waiting)
        assert len(waiting) == 1


def test_an_index_in_memory_is_read_after_the_file_was_replaced_also_by_a_thread_that_had_it_open(
    base: Path,
) -> None:
    with ChunkStore(base) as store:
        ids = {store.create_chunk(f"note {number}").id for number in range(5)}
    with ChunkStore(base, read_only=True) as store, ThreadPoolExecutor(1) as thread:
        assert set(thread.submit(store.list_chunks).result()) == ids
        index = base / "index" / "index.sqlite"
        overwrite(index, 0, index.stat().st_size)
        assert set(store.list_chunks()) == ids  # from now on the index is in memory
        index.unlink()
        ChunkStore(base).close()
        assert set(thread.submit(store.list_chunks).result(timeout=20)) == ids


def test_a_read_only_store_reads_all_while_the_index_is_deleted_and_made_anew(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChunkStore(base) as store:
        ids = {store.create_chunk(f"note {number}").id for number in range(5)}
    commit: Callable[..., None] = local_index.in_turn
    read: list[set[str]] = []
    with ChunkStore(base, read_only=True) as first, ChunkStore(base, read_only=True) as second:
        assert set(first.list_chunks()) == set(second.list_chunks()) == ids
        (base / "index" / "index.sqlite").unlink()
        assert set(first.list_chunks()) == ids

        def commit_after_a_read(*given: Any) -> None:
            read.append(set(second.list_chunks()))
            commit(*given)

        monkeypatch.setattr(local_index, "in_turn", commit_after_a_read)
        ChunkStore(base).close()
        assert read and read == [ids] * len(read)


def test_a_read_from_an_index_in_memory_goes_on_while_files_change(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChunkStore(base) as store:
        ids = {store.create_chunk(f"note {number}").id for number in range(5)}
    (base / "index" / "index.sqlite").unlink()
    with ChunkStore(base, read_only=True) as store:
        backend = store.backend
        monkeypatch.setattr(backend, "look", lambda: backend._index_in_memory(backend.layout.folders()))
        monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.0)
        backend._connections.schedule_look()
        assert set(store.list_chunks()) == ids


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.checkpoint(),
        lambda store: store.rebuild_index(),
        lambda store: store.backend.vacuum(store.namespace),
        lambda store: store.close(),
    ],
    ids=["checkpoint", "rebuild", "vacuum", "close"],
)
def test_calls_that_would_end_a_batch_are_refused_within_it_and_the_batch_continues(
    base: Path, call: Callable[[ChunkStore], object]
) -> None:
    with ChunkStore(base) as store:
        with store.batch():
            one = store.create_chunk("one").id
            with pytest.raises(ConflictError, match="within a batch"):
                call(store)
            two = store.create_chunk("two").id
        assert store.list_chunks() == [one, two]


def test_a_file_that_was_corrected_does_not_end_a_batch_that_asks_for_figures(base: Path) -> None:
    with ChunkStore(base) as store:
        damaged = store.create_chunk("the code of the gate").id
    path = file_of(base, damaged)
    sound = path.read_bytes()
    path.write_bytes(b"{")
    with ChunkStore(base) as store:
        path.write_bytes(sound)
        with store.batch():
            one = store.create_chunk("one").id
            assert store.get_stats()["chunk_count"] == 1
            two = store.create_chunk("two").id
        assert store.unreadable_files == 0
        assert set(store.list_chunks()) == {damaged, one, two}


def test_the_clock_is_compared_with_an_index_that_was_damaged_meanwhile(base: Path) -> None:
    with ChunkStore(base) as store:
        store.create_chunk("one")
        index = base / "index" / "index.sqlite"
        with index.open("r+b") as file:
            file.write(b"x" * index.stat().st_size)
        assert store.backend.clock_fault("default", datetime.now(UTC)) == ""
        assert len(store.list_chunks()) == 1
