"""Namespaces over several PostgreSQL databases: found wherever they are, and moved while they are used."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from rlm_mem.capture.moving import move_chunks
from rlm_mem.config import Config
from rlm_mem.errors import InputError, NotFoundError, StorageError
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.erasing import erase
from rlm_mem.store.core.erasure_checks import verify_erasure
from rlm_mem.store.core.integrity import check
from rlm_mem.store.core.joined_store import JoinedStore
from tests.postgres import Databases

psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed")

from rlm_mem.store.postgres import shards as module  # noqa: E402
from rlm_mem.store.postgres.pool import Pool  # noqa: E402
from rlm_mem.store.postgres.routes import Routes  # noqa: E402
from rlm_mem.store.postgres.shards import assign, move_namespace, purge_moved, shards  # noqa: E402
from tests.typed import postgres, present  # noqa: E402
from tests.waiting import takes, until  # noqa: E402

GRACE_SECONDS = module._GRACE_SECONDS


@pytest.fixture
def places(databases: Databases, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """The directory, and a second primary; a move does not wait for those who read at the old place."""
    monkeypatch.setattr(module, "_GRACE_SECONDS", 0)
    with databases.lend() as directory, databases.lend() as other:
        yield directory, other


def count(dsn: str, table: str) -> int:
    with psycopg.connect(dsn) as connection:
        return int(connection.execute(f"SELECT count(*) FROM rlm_mem.{table}").fetchone()[0])


def test_a_moved_namespace_is_found_through_the_directory_and_holds_everything(
    places: tuple[str, str],
) -> None:
    directory, other = places
    with (
        ChunkStore(directory, namespace="team/a") as store,
        ChunkStore(directory, namespace="team/b") as stays,
    ):
        ids = [store.create_chunk(f"Note {number} of the move.", tags=["t"]).id for number in range(30)]
        store.update_chunk(ids[0], "Changed once.")
        store.delete_chunk(ids[1])
        store.get_chunk(ids[2])
        stays.create_chunk("This one stays.")
    report = move_namespace(directory, "team/a", other)
    assert (report.chunks, report.purged) == (29, False)
    assert {(one.namespace, one.chunks) for one in shards(directory)} == {("team/a", 29), ("team/b", 1)}
    assert len({one.place for one in shards(directory)}) == 2
    assert all("not-a-secret" not in one.place for one in shards(directory))
    with ChunkStore(directory, namespace="team/a") as store:
        assert len(store.list_chunks(tags=["t"])) == 29
        assert [one.revision for one in store.history(ids[0])] == [1, 2]
        read = store.get_chunk(ids[2], track=False)
        assert read is not None and read.metadata.access_count == 1
        new = store.create_chunk("Written after the move.").id
        assert dict(store.namespaces()) == {"team/a": 30, "team/b": 1}
    with ChunkStore(other, namespace="team/a") as store:
        assert store.exists(new)


def test_two_namespaces_in_two_databases_rank_as_one(places: tuple[str, str]) -> None:
    """Their words have other numbers in each; which database holds a namespace changes no score."""
    directory, other = places
    with ChunkStore(directory, namespace="a") as a, ChunkStore(directory, namespace="b") as b:
        for number, colour in enumerate(("red", "green", "white", "black", "blue", "grey")):
            store = b if number % 3 == 0 else a
            store.create_chunk(
                f"Note {number}: the {colour} crane of the harbour.", occurred_at=f"2026-01-0{number + 1}"
            )

    def scores(query: str) -> dict[str, float]:
        with ChunkStore(directory, namespace="a") as a, ChunkStore(directory, namespace="b") as b:
            return {hit.chunk_id: round(hit.score, 6) for hit in search(JoinedStore(a, b), query)}

    asked = ("green crane", "the white crane of the harbour", "blue", "harbors")
    together = [scores(query) for query in asked]
    move_namespace(directory, "b", other)
    assert all(together) and [scores(query) for query in asked] == together


def test_programs_that_were_open_before_the_move_follow_it(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They miss nothing meanwhile: the old rows stay for longer than readers look at the old place."""
    directory, other = places
    monkeypatch.setattr(module, "_GRACE_SECONDS", GRACE_SECONDS)
    found: list[bool] = []
    moved = threading.Event()
    with ChunkStore(directory, namespace="a") as writer, ChunkStore(directory, namespace="a") as reader:
        first = writer.create_chunk("Before.").id

        def read() -> None:
            while not moved.is_set():
                found.append(reader.exists(first))

        reading = threading.Thread(target=read)
        reading.start()
        try:
            move_namespace(directory, "a", other, purge=True)
            second = writer.create_chunk("After.").id
            until(lambda: reader.exists(second), "what was written after the move")
        finally:
            moved.set()
            reading.join()
    assert found and all(found)
    assert count(directory, "chunks") == 0 and count(other, "chunks") == 2


def test_nothing_is_lost_while_many_write_during_a_move(places: tuple[str, str]) -> None:
    directory, other = places
    acknowledged: list[str] = []
    failures: list[BaseException] = []
    stop = threading.Event()

    def write(number: int) -> None:
        try:
            with ChunkStore(directory, namespace="busy") as store:
                while not stop.is_set():
                    acknowledged.append(store.create_chunk(f"{number}: {len(acknowledged)}").id)
                    takes(0.01)  # leaves the interpreter to the mover, a thread as well
        except BaseException as error:  # noqa: BLE001 - shown by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(acknowledged) > 20 or failures, "writes before the move")
        move_namespace(directory, "busy", other)
        before = len(acknowledged)
        until(lambda: len(acknowledged) > before + 20 or failures, "writes after the move")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert len(acknowledged) > before > 0
    with ChunkStore(other, namespace="busy") as store:
        assert sorted(store.list_chunks()) == sorted(acknowledged)


def test_a_namespace_moved_there_and_back_is_as_it_was(places: tuple[str, str]) -> None:
    directory, other = places
    with ChunkStore(directory, namespace="a") as store:
        kept = store.create_chunk("One.").id
        move_namespace(directory, "a", other)
        gone = store.create_chunk("Two.").id
        store.delete_chunk(gone, permanent=True)
    move_namespace(directory, "a", directory)
    assert count(directory, "shards") == 0
    with ChunkStore(directory, namespace="a") as here, ChunkStore(other, namespace="a") as there:
        assert here.list_chunks() == [kept]
        assert there.list_chunks() == [kept]  # by the forwarding address
    assert purge_moved(other, "a") > 0
    assert count(other, "chunks") == 0


def test_an_interrupted_move_leaves_the_namespace_where_it_was_and_can_be_repeated(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, other = places
    with ChunkStore(directory, namespace="a") as store:
        ids = [store.create_chunk(f"Note {number}.").id for number in range(5)]
        for step in ("_refuse_differences", "_refuse_unequal_states"):
            with monkeypatch.context() as patch, pytest.raises(StorageError, match="pulled the plug"):
                patch.setattr(module, step, _plug_pulled)
                move_namespace(directory, "a", other)
            store.update_chunk(ids[0], f"Still here after {step}.")
            assert shards(directory)[0].chunks == 5
        # Between the flip and the directory: the forwarding address leads there, and repeating it ends the move.
        with monkeypatch.context() as patch, pytest.raises(StorageError, match="pulled the plug"):
            patch.setattr(module, "_record_place", _plug_pulled)
            move_namespace(directory, "a", other)
        store.update_chunk(ids[1], "There now.")
        assert count(directory, "shards") == 0
        move_namespace(directory, "a", other)
        assert count(directory, "shards") == 1
        assert present(store.get_chunk(ids[1])).content == "There now."
    with ChunkStore(other, namespace="a") as store:
        assert present(store.get_chunk(ids[0])).content == "Still here after _refuse_unequal_states."
        assert len(store.list_chunks()) == 5


def test_a_move_back_that_was_killed_while_it_removed_old_rows_can_be_repeated(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, other = places
    change, removed = Pool.change, list[str]()

    def killed(pool: Pool, statements: Any, **more: Any) -> Any:
        if "DELETE FROM rlm_mem." in statements[0][0]:
            removed.append(statements[0][0])
            if len(removed) > 4:
                _plug_pulled()
        return change(pool, statements, **more)

    with ChunkStore(directory, namespace="a") as store:
        store.create_chunk("A walnut.", tags=["t"], conversation_id="garden")
    move_namespace(directory, "a", other)
    with monkeypatch.context() as patch, pytest.raises(StorageError, match="pulled the plug"):
        patch.setattr(Pool, "change", killed)
        move_namespace(directory, "a", directory)
    move_namespace(directory, "a", directory)
    with ChunkStore(directory, namespace="a") as store:
        assert len(search(store, "walnut")) == 1 and check(store) == []


def _plug_pulled(*_: object, **__: object) -> None:
    raise StorageError("somebody pulled the plug")


def test_an_absent_database_does_not_hold_up_those_that_are_open(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    routes = Routes(places[0], Config(), read_only=False)
    home = routes.home()
    asked, found = threading.Event(), threading.Event()

    def absent(*_: object, **__: object) -> Pool:
        asked.set()
        assert found.wait(10)
        raise StorageError("there is no server")

    def wait() -> None:
        with pytest.raises(StorageError):
            routes.pool(places[1])

    monkeypatch.setattr("rlm_mem.store.postgres.routes.opened", absent)
    waiting = threading.Thread(target=wait)
    waiting.start()
    assert asked.wait(10)
    other = threading.Thread(target=lambda: found.set() if routes.pool(places[0]) is home else None)
    other.start()
    other.join(1)
    held_up = not found.is_set()
    found.set()
    waiting.join()
    other.join()
    routes.close()
    assert not held_up


def test_a_namespace_can_be_given_a_place_before_it_exists(places: tuple[str, str]) -> None:
    directory, other = places
    assign(directory, "new", other)
    with ChunkStore(directory, namespace="new") as store:
        store.create_chunk("Lives elsewhere from the first.")
    assert count(directory, "chunks") == 0 and count(other, "chunks") == 1
    with pytest.raises(InputError, match="already has 1 chunk, 1 audit event"):
        assign(directory, "new", directory)
    with ChunkStore(directory, namespace="notes") as store:
        store.files.write("memory/long_term/notes.md", b"# Notes\n")
    with pytest.raises(InputError, match="already has 1 file"):
        assign(directory, "notes", other)


def test_what_cannot_be_moved_is_refused(places: tuple[str, str]) -> None:
    directory, other = places
    quick = replace(Config.load(None), postgres=replace(Config.load(None).postgres, reconnect_seconds=0.0))
    with pytest.raises(NotFoundError, match="no namespace nobody"):
        move_namespace(directory, "nobody", other)
    with ChunkStore(directory, namespace="a") as store:
        store.create_chunk("One.")
        with pytest.raises(InputError, match="is not the DSN of a PostgreSQL database"):
            move_namespace(directory, "a", "somewhere")
        with pytest.raises(StorageError):
            move_namespace(directory, "a", "postgresql://nobody@127.0.0.1:9/none", config=quick)
        with pytest.raises(InputError, match="was not moved away"):
            purge_moved(directory, "a")
        assert len(store.list_chunks()) == 1


def test_access_counts_after_the_copy_come_along(places: tuple[str, str]) -> None:
    directory, other = places
    with ChunkStore(directory, namespace="a") as store:
        chunk_id = store.create_chunk("Read often.").id
        for _ in range(7):
            store.get_chunk(chunk_id)
        store.checkpoint()
        move_namespace(directory, "a", other)
    with ChunkStore(other, namespace="a") as store, ChunkStore(directory, namespace="a") as again:
        assert present(store.get_chunk(chunk_id, track=False)).metadata.access_count == 7
        assert present(again.get_chunk(chunk_id, track=False)).metadata.access_count == 7


@pytest.mark.parametrize("purged_later", [False, True])
def test_lines_that_a_recall_still_writes_to_the_old_place_come_along(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch, purged_later: bool
) -> None:
    directory, other = places
    name = "trajectories/2026-11/traj-20261122T060000-0123abcd.jsonl"
    with ChunkStore(directory, namespace="a") as recalling:
        recalling.create_chunk("Asked about.")
        recalling.backend.files("a").append(name, b'{"step": 1}\n')
        postgres(recalling.backend).pin()

        def write_late() -> None:
            recalling.backend.files("a").append(name, b'{"step": 2}\n')
            recalling.backend.files("a").append(name.replace("0123", "4567"), b'{"step": 1}\n')

        if not purged_later:
            lead = module._record_place
            monkeypatch.setattr(module, "_record_place", lambda *given: (write_late(), lead(*given)))
        move_namespace(directory, "a", other)
        if purged_later:
            write_late()
            purge_moved(directory, "a")
    with ChunkStore(other, namespace="a") as store:
        assert store.backend.files("a").read(name) == b'{"step": 1}\n{"step": 2}\n'
        assert store.backend.files("a").read(name.replace("0123", "4567")) == b'{"step": 1}\n'


def test_what_was_erased_after_a_move_does_not_come_back_when_the_old_rows_are_removed(
    places: tuple[str, str],
) -> None:
    directory, other = places
    name = "trajectories/2026-11/traj-20261122T060000-0123abcd.jsonl"
    with ChunkStore(directory, namespace="a") as store:
        store.create_chunk("Zelda Quillfeather drinks blue tea.")
        store.backend.files("a").append(name, b'{"query": "What does Zelda Quillfeather drink?"}\n')
    move_namespace(directory, "a", other)
    with ChunkStore(directory, namespace="a") as store:
        report = erase(store, person="Zelda Quillfeather", dry_run=False)
        assert report.files == [f"a: {name}"]
    purge_moved(directory, "a")
    with ChunkStore(directory, namespace="a") as store:
        assert (store.backend.files("a").read(name), verify_erasure(store, report)) == (None, [])


def test_memories_are_moved_into_a_namespace_on_another_server(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, other = places
    assign(directory, "far", other)
    with ChunkStore(directory, namespace="near") as store, ChunkStore(directory, namespace="far") as far:
        ids = [store.create_chunk(f"Note {number}.").id for number in range(2)]
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(ChunkStore, "delete_chunk", Mock(side_effect=KeyboardInterrupt))
            move_chunks(store, "far", ids)
        assert len(far.list_chunks()) == len(store.list_chunks()) == 2, "interrupted: in both"
        moved = move_chunks(store, "far", ids)
        assert ([one.chunk_id for one in moved], store.list_chunks()) == (far.list_chunks(), [])
