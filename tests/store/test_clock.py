"""The clock goes back, on both backends: nothing is lost, no revision looks older than the one before it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.chunk import parse_time
from rlm_mem.mcp import doctor
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from tests.conftest import Clock


def test_a_clock_that_goes_back_loses_nothing_and_reorders_no_conversation(
    base: Path | str, clock: Clock
) -> None:
    """Revisions count, newer versions never look older, and what is dated earlier is simply dated earlier."""
    with ChunkStore(base, clock=clock) as store:
        before = store.create_chunk("before", conversation_id="c", tags=["t"])
        clock.advance(days=-400)
        after = store.create_chunk("after", conversation_id="c", tags=["t"])
        changed = store.update_chunk(before.id, content="changed")
        assert changed is not None
        assert changed.revision == 2
        assert changed.metadata.modified_at >= before.metadata.modified_at
        assert parse_time(after.metadata.created_at) < parse_time(before.metadata.created_at)
        assert set(store.list_chunks(tags=["t"])) == {before.id, after.id}
        assert [version.chunk.content for version in store.history(before.id)] == ["before", "changed"]
        assert store.delete_chunk(after.id)
        assert store.restore_chunk(after.id) is not None
        assert len(list(store.events(chunk_id=after.id))) == 3
        assert check(store) == []
    with ChunkStore(base, clock=clock) as store:
        assert set(store.list_chunks(conversation_id="c")) == {before.id, after.id}
        assert store.undo(before.id) is not None
        assert check(store) == []


@pytest.mark.parametrize("minutes", [-4, -61])
def test_what_is_told_by_a_clock_that_lags_replaces_what_was_told_before_and_comes_after_it(
    base: Path | str, minutes: int
) -> None:
    """One machine whose clock went back; on PostgreSQL, two machines whose clocks differ."""
    with ChunkStore(base) as store, Memory(store) as memory:
        first = memory.remember("Dana: I live in Lyon.", conversation_id="talk").chunk_ids
    lagging = ChunkStore(base, clock=lambda: datetime.now(UTC) + timedelta(minutes=minutes))
    with lagging as store, Memory(store) as memory:
        made = memory.remember("Dana: I moved from Lyon to Bern.", conversation_id="talk")
        assert made.replaced == first
        assert store.list_chunks(conversation_id="talk") == first + made.chunk_ids
        assert memory.recall("Where does Dana live?").suggestion == "Bern"
        (last,) = memory.remember_many(
            [{"text": "Dana: I moved from Bern to Ulm.", "conversation_id": "talk"}]
        )
        assert last.replaced == made.chunk_ids
        assert check(store) == []
    with ChunkStore(base) as store, Memory(store) as memory:
        assert memory.recall("Where does Dana live?").suggestion == "Ulm"


def test_a_clock_that_is_set_back_while_a_store_is_open_keeps_the_order_of_writing(base: Path | str) -> None:
    off = timedelta()
    with ChunkStore(base, clock=lambda: datetime.now(UTC) + off) as store:
        ids = []
        for off in (timedelta(), timedelta(seconds=-30), timedelta(minutes=-4)):
            ids += [store.create_chunk(f"note of {off}", conversation_id="c").id]
        assert store.list_chunks(conversation_id="c") == ids
        store.rebuild_index()
        assert store.list_chunks(conversation_id="c") == ids


def test_a_clock_that_is_a_day_off_is_reported_once_and_by_the_doctor(
    base: Path | str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_engines", lambda _config: iter(()))

    def told(how: str) -> int:
        said = [one for one in caplog.messages if f"the clock of this machine is 24 hours {how}" in one]
        caplog.clear()
        return len(said)

    def remember(off: timedelta) -> tuple[str, str]:
        with ChunkStore(base, clock=lambda: datetime.now(UTC) + off) as store, Memory(store) as memory:
            for town in ("Bern", "Ulm"):
                memory.remember(f"Dana: I moved to {town}, after {off}.")
                store.create_chunk(f"After {off}, in {town}.", namespace="other")
            state, said, *_ = doctor._clock(memory)
            return state, said

    assert remember(timedelta(minutes=90))[0] == "ok" and not caplog.messages
    in_database = isinstance(base, str)
    state, said = remember(timedelta(days=1))
    assert (state == "warning") == ("24 hours ahead of" in said) == in_database, (
        "in a folder nothing shows that a clock is ahead"
    )
    assert told("ahead of") == in_database
    state, said = remember(timedelta())
    assert (state == "warning") == ("24 hours behind" in said) == (not in_database)
    assert told("behind") == (not in_database)


def test_undo_takes_the_last_change_also_after_the_clock_was_ahead(base: Path | str, clock: Clock) -> None:
    with ChunkStore(base, clock=clock) as store, Memory(store) as memory:
        clock.advance(days=4000)
        first = store.create_chunk("written while the clock was ahead")
        clock.advance(days=-4000)
        second = store.create_chunk("written after it was put right")
        assert [event["chunk_id"] for event in store.events(op="create")] == [first.id, second.id]
        undone = memory.undo()
        assert undone is not None
        assert undone.chunk_ids == (second.id,)
        assert [event["op"] for event in store.events(since="2027-01-01")] == ["create"]


def test_the_clock_of_the_system_going_back_keeps_ids_unique(base: Path | str) -> None:
    still = datetime(2026, 2, 10, 12, tzinfo=UTC)
    with ChunkStore(base, clock=lambda: still) as store:
        ids = [store.create_chunk(f"note {number}", conversation_id="c").id for number in range(50)]
        assert len(set(ids)) == 50
        assert store.list_chunks(conversation_id="c") == ids, "equal times keep the order of writing"
        store.rebuild_index()
        assert store.list_chunks(conversation_id="c") == ids, "and the files alone tell it, too"
        assert check(store) == []


def test_of_notes_of_one_day_the_last_written_comes_first(base: Path | str) -> None:
    with ChunkStore(base) as store, Memory(store) as memory:
        ids = [
            memory.remember(f"Our baker is {name}.", occurred_at="2026-05-05").chunk_ids[0]
            for name in ("Ana", "Ben", "Cid", "Dan", "Eva", "Fay")
        ]
        for _ in range(2):
            assert [hit.chunk_id for hit in memory.search("baker")] == ids[::-1]
            store.rebuild_index()
