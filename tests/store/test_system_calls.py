"""kill -9 at every boundary of a system call of every kind of write: the store is as before, or as after.

The audit log is part of that: a change has its line, and no line tells of a change that was not made.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from tests.store import tracing

State = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def _traced() -> None:
    reason = tracing.available()
    if reason:
        pytest.skip(reason)


def state(store: ChunkStore) -> State:
    """Each chunk, what the index says of all of them, and the audit log, but for times."""
    seen: State = {}
    for chunk_id in ("chunk-victim", "chunk-friend", "chunk-gone", "chunk-new"):
        chunk = store.get_chunk(chunk_id, track=False)
        known = None
        if chunk is not None:
            links = [(link.target_id, link.type) for link in chunk.links]
            known = (chunk.content, chunk.tags, chunk.revision, links, len(store.history(chunk_id)))
        seen[chunk_id] = (known, chunk_id in store.list_chunks(archived=True))
    seen["index"] = (len(store.list_chunks()), store.tag_counts(), store.get_stats()["links"])
    seen["audit"] = [(line["op"], line.get("chunk_id")) for line in store.events()]
    return seen


def batch(store: ChunkStore) -> None:
    with store.batch():
        store.create_chunk("one of two", chunk_id="chunk-new")
        store.update_chunk("chunk-victim", content="in a batch")
        store.delete_chunk("chunk-friend")


WRITES: dict[str, Callable[[ChunkStore], object]] = {
    "create": lambda store: store.create_chunk("created", chunk_id="chunk-new", tags=["new"]),
    "update": lambda store: store.update_chunk("chunk-victim", content="updated", tags=["t", "u"]),
    "link": lambda store: store.add_link("chunk-friend", "chunk-victim", "contradicts"),
    "archive": lambda store: store.delete_chunk("chunk-victim"),
    "restore": lambda store: store.restore_chunk("chunk-gone"),
    "erase": lambda store: store.delete_chunk("chunk-victim", permanent=True),
    "batch": batch,
    "checkpoint": lambda store: store.checkpoint(),
    "rebuild": lambda store: store.rebuild_index(),
    "close": lambda store: store.close(),
}


SEVERAL_FILES = (
    "batch",
    "erase",
)  # each file is as before or as after; all of them once the next open has looked


def every_boundary(folder: Path, name: str, first: int, step: int) -> int:
    """Kill before the first call, and at every ``step``-th from there on; gives how many kills there were."""
    origin, write = folder / "origin", WRITES[name]
    with ChunkStore(origin) as store:
        store.create_chunk("victim", chunk_id="chunk-victim", tags=["t"])
        store.create_chunk("friend", chunk_id="chunk-friend")
        store.create_chunk("gone", chunk_id="chunk-gone")
        store.add_link("chunk-friend", "chunk-victim", "supports")
        store.delete_chunk("chunk-gone")
    with ChunkStore(shutil.copytree(origin, folder / "after")) as store:
        before = state(store)
        write(store)
    with ChunkStore(folder / "after") as store:
        after = state(store)
    assert (before == after) == (name in ("checkpoint", "rebuild", "close"))
    base = folder / "killed"
    for kills, number in enumerate(range(first, 2000, step)):
        shutil.rmtree(base, ignore_errors=True)
        shutil.copytree(origin, base)
        with ChunkStore(base) as witness:  # another process that has the store open meanwhile
            witness.list_chunks()

            def work(arm: Callable[[], None]) -> None:
                store = ChunkStore(base)
                store.get_chunk("chunk-friend")
                arm()
                write(store)

            _, ended = tracing.dies_at_call(work, number)
            with ChunkStore(base) as store:
                seen = state(store)
                where = f"killed before call {number} of {name}"
                for part in before if name in SEVERAL_FILES else ():
                    assert part == "index" or seen[part] in (before[part], after[part]), where
                assert name in SEVERAL_FILES or seen in (before, after), where
                assert state(witness) == seen, f"{where}: a store open all the time sees another state"
                assert not list((base / ".tmp").glob("*")), f"{where}: something is left behind"
                assert check(store) == [], where
                assert store.create_chunk("life goes on")
        if ended:
            assert seen == after, "it was acknowledged"
            return kills
    pytest.fail("the write never ran through")


@pytest.mark.parametrize("name", WRITES)
def test_a_kill_at_a_system_call_leaves_the_old_or_the_new_state(tmp_path: Path, name: str) -> None:
    """Every sixty-first boundary; the slow test takes every one."""
    assert every_boundary(tmp_path, name, 1 + list(WRITES).index(name), 61) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
def test_a_kill_at_every_system_call_leaves_the_old_or_the_new_state(tmp_path: Path, name: str) -> None:
    assert every_boundary(tmp_path, name, 1, 1) > 40
