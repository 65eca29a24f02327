"""Several processes and threads on one store: the normal case, not an exotic one."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from rlm_mem.memory import Memory
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from tests.forked import forked
from tests.stored import stored


def remember_some(place: Path | str, each: int, who: int) -> list[str]:
    """Ids of so many memories of one process."""
    with Memory.open(place) as memory:
        return [
            chunk_id
            for number in range(each)
            for chunk_id in memory.remember(
                f"Process {who} noted that item {number} weighs {number * 7} grams.",
                conversation_id=f"conv-{who}",
                tags=["all", f"by-{who}"],
            ).chunk_ids
        ]


@pytest.mark.parametrize("each", [25, pytest.param(200, marks=pytest.mark.slow)])
def test_of_what_four_processes_remember_at_once_none_is_missing(
    place: Path | str, base: Path | str, each: int
) -> None:
    given = forked(partial(remember_some, place, each), *range(4))
    acknowledged = [chunk_id for ids in given for chunk_id in ids]
    assert len(acknowledged) == len(set(acknowledged)) == 4 * each
    with ChunkStore(base) as store:
        assert sorted(store.list_chunks()) == sorted(acknowledged)
        assert sorted(store.list_chunks(tags=["all"])) == sorted(acknowledged)
        for who in range(4):
            assert len(store.list_chunks(tags=[f"by-{who}"])) == each
            assert len(store.list_chunks(conversation_id=f"conv-{who}")) == each
        assert store.get_stats()["chunk_count"] == 4 * each
        assert len(store.get_many(acknowledged)) == 4 * each
        assert len(stored(base)) == 4 * each
        assert check(store) == []


def create_one(base: Path | str) -> None:
    ChunkStore(base).create_chunk("x", tags=["t"])


def test_a_write_of_another_process_is_seen_by_the_next_call(base: Path | str) -> None:
    with ChunkStore(base) as store:
        assert store.list_chunks() == []
        forked(create_one, base)
        assert len(store.list_chunks(tags=["t"])) == 1
