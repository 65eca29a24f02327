"""Listings by tag and conversation: right after every kind of write, and as dear as what they show."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from rlm_mem.memory import Memory
from rlm_mem.store.core.chunk_store import ChunkStore
from tests.store.test_scaling import grow, steps

WRITES = st.lists(
    st.tuples(
        st.sampled_from(["create", "archive", "restore", "erase", "retag", "move", "retime"]),
        st.integers(0, 30),
    ),
    max_size=25,
)


@settings(max_examples=20)
@given(writes=WRITES)
def test_counts_kept_along_are_those_of_the_rows(
    writes: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.mktemp("pages")  # the session's factory
    with ChunkStore(base / "memory") as store:
        ids: list[str] = []
        with store.batch():
            for op, number in writes:
                chosen = ids[number % len(ids)] if ids else None
                if op == "create" or chosen is None:
                    ids.append(
                        store.create_chunk(
                            f"note {len(ids)}",
                            tags=["all", f"t{number % 3}"],
                            conversation_id=f"c{number % 4}" if number % 5 else None,
                            occurred_at=f"2026-01-{number % 9 + 1:02}T00:00:00Z",
                        ).id
                    )
                elif op == "archive":
                    store.delete_chunk(chosen)
                elif op == "restore":
                    store.restore_chunk(chosen)
                elif op == "erase":
                    store.delete_chunk(chosen, permanent=True)
                elif op == "retag":
                    store.update_chunk(chosen, tags=[f"t{number % 4}"])
                elif op == "move":
                    store.update_chunk(chosen, metadata={"conversation_id": f"c{number % 3}"})
                else:
                    store.update_chunk(
                        chosen, metadata={"occurred_at": f"2026-02-{number % 9 + 1:02}T00:00:00Z"}
                    )
        chunks = list(store.iter_chunks())
        at = {item.id: item.at for item in store.summaries([chunk.id for chunk in chunks])}
        tags: dict[str, int] = {}
        for chunk in chunks:
            for tag in chunk.tags:
                tags[tag] = tags.get(tag, 0) + 1
        assert dict(store.tag_counts()) == tags
        for tag in tags:
            carrying = [chunk.id for chunk in chunks if tag in chunk.tags]
            assert store.list_chunks(tags=[tag]) == carrying
            assert [item.id for item in store.latest(3, tag=tag)] == carrying[::-1][:3]
        spoken: dict[str, list[float]] = {}
        for chunk in chunks:
            if chunk.metadata.conversation_id:
                spoken.setdefault(chunk.metadata.conversation_id, []).append(at[chunk.id])
        listed = {item.id: (item.count, item.first_at, item.last_at) for item in store.conversations()}
        assert listed == {name: (len(times), min(times), max(times)) for name, times in spoken.items()}


def test_an_index_of_an_earlier_version_is_made_anew_from_the_files(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        first = memory.remember("Dana keeps bees.", tags=["a"], conversation_id="c").chunk_ids[0]
        second = memory.remember("Dana keeps three hives.", tags=["a"]).chunk_ids[0]
        memory.link(second, first, "supports")
        linked, talks = memory.links(first), memory.conversations()
    path = tmp_path / "brain" / "memory" / "index" / "index.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as index:
        index.executescript("CREATE TABLE of_old(target TEXT); CREATE VIEW old AS SELECT * FROM of_old;")
        index.execute("ALTER TABLE chunks RENAME COLUMN trust TO another")
        index.execute("PRAGMA user_version=1")
    with Memory.open(tmp_path / "brain") as memory:
        assert memory.list_chunks(tags=["a"]) == [first, second]
        assert (memory.links(first), memory.conversations()) == (linked, talks)
        assert memory.search("bees")[0].chunk_id == first
        assert memory.check() == []
    with contextlib.closing(sqlite3.connect(path)) as index:
        assert index.execute("SELECT 1 FROM sqlite_master WHERE name IN ('old', 'of_old')").fetchall() == []


def test_an_old_index_is_not_asked_by_a_store_that_is_only_read(tmp_path: Path) -> None:
    with ChunkStore(tmp_path) as store:
        chunk = store.create_chunk("kept in its file")
    path = tmp_path / "index" / "index.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as index:
        index.execute("ALTER TABLE chunks RENAME COLUMN trust TO another")
        index.execute("PRAGMA user_version=2")
    before = path.read_bytes()
    with ChunkStore(tmp_path, read_only=True) as store:
        assert store.list_chunks() == [chunk.id]
    assert path.read_bytes() == before


def test_a_page_costs_what_it_shows(tmp_path: Path) -> None:
    costs: list[list[int]] = []
    with Memory.open(tmp_path / "brain") as memory:
        store = memory.store
        actions = (
            lambda: store.list_chunks(tags=["all"], limit=10),
            lambda: store.list_chunks(tags=["all"], limit=10, newest_first=True),
            lambda: store.list_chunks(tags=["all"], start_date="2026-11-01", limit=10),
            lambda: store.conversations(limit=10),
            store.tag_counts,
        )
        for size, former in ((200, 0), (2000, 200)):
            grow(memory, former, size)
            costs.append([steps(store, action) for action in actions])
        store.rebuild_index()
        costs.append([steps(store, action) for action in actions])
    for later in costs[1:]:
        assert all(now <= before * 1.5 + 20 for before, now in zip(costs[0], later, strict=True)), costs
