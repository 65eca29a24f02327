"""What may befall a local store while it is open: clocks, disks, damage, other versions, people with editors."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.config import Config
from rlm_mem.errors import CorruptStore, StorageError, StoreFull, StoreLocked, StoreReadOnly
from rlm_mem.search import search
from rlm_mem.store.core import files
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.contents import NamespaceWriter
from rlm_mem.store.core.erasure_report import ErasureReport, Matcher
from rlm_mem.store.core.integrity import check
from rlm_mem.store.core.redacting import Redaction
from rlm_mem.store.local import integrity, local_index, schema
from rlm_mem.store.local.connections import Connections
from rlm_mem.store.local.local_backend import LocalBackend
from rlm_mem.store.local.local_index import LocalIndex
from tests.store.test_crashes import in_child
from tests.typed import local
from tests.waiting import takes

pytestmark = pytest.mark.local_only("look at files, disks and the index beside them")

AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
NOBODY = 65534


def file_of(base: Path, chunk_id: str) -> Path:
    return next((base / "chunks").rglob(f"{chunk_id}.json"))


def edit(path: Path, **fields: object) -> None:
    """As an editor does that saves in place."""
    raw = json.loads(path.read_text())
    raw.update(fields)
    path.write_text(json.dumps(raw))


# --- a disk that is full ----------------------------------------------------------------------------------------


def test_a_disk_that_is_full_for_the_index_is_the_same_error_as_for_a_file(base: Path) -> None:
    with ChunkStore(base) as store:
        kept = [store.create_chunk(f"Note {number} of the yard.").id for number in range(20)]
        connection = local(store.backend).connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(StoreFull, match=r"the disk is full: .* was not written: nothing was changed"):
            store.create_chunk("word " * 20_000)
        assert store.list_chunks() == kept
        assert check(store) == []


def test_a_disk_that_can_be_written_again_is_written_without_opening_the_store_anew(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = schema.connect

    def connect_read_only(path: Path, **options: Any) -> sqlite3.Connection:
        return connect(path, **{**options, "read_only": True})

    with ChunkStore(base) as store:
        kept = store.create_chunk("kept").id
    with monkeypatch.context() as mounted:
        mounted.setattr(schema, "connect", connect_read_only)
        mounted.setattr(os, "access", lambda *_: False)
        store = ChunkStore(base)
        assert store.list_chunks() == [kept]
        with pytest.raises(StoreReadOnly):
            store.create_chunk("refused")
    with store:
        store.create_chunk("written")
        assert len(store.list_chunks()) == 2


def test_a_read_that_a_disk_fails_does_not_speak_of_changes(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with ChunkStore(base) as store:
        monkeypatch.setattr(local(store.backend)._connections, "get", failing)
        with pytest.raises(StorageError, match=r"index\.sqlite: disk I/O error$|disk I/O error\n"):
            store.list_chunks()
        monkeypatch.undo()


def test_what_is_indexed_is_read_while_the_disk_is_full_and_the_rest_once_there_is_space(
    base: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("kept")
    path = file_of(base, chunk.id)
    others = {f"chunk-by-hand-{number}" for number in range(60)}
    for other in others:  # not in the index, and more than fits into it
        (path.parent / f"{other}.json").write_text(path.read_text("utf-8").replace(chunk.id, other), "utf-8")
    unlimited = schema.connect

    def full(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = unlimited(*args, **options)
        connection.execute("PRAGMA max_page_count=1")  # as many as it has
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(schema, "connect", full)
        store = ChunkStore(base)
    with store:
        assert "indexed once there is space" in caplog.text
        assert [hit.chunk_id for hit in search(store, "kept")] == [chunk.id]
        with pytest.raises(StoreFull):
            store.create_chunk(" ".join(f"word{number}" for number in range(3000)))
        assert store.list_chunks() == [chunk.id]
        local(store.backend).connection.execute("PRAGMA max_page_count=100000")
        local(store.backend).look()
        assert set(store.list_chunks()) == {chunk.id, *others}
        assert not check(store)
    (base / "index" / "index.sqlite").unlink()
    monkeypatch.setattr(schema, "connect", full)
    with pytest.raises(StoreFull):  # there is nothing to read from
        ChunkStore(base)


# --- a check while others write ---------------------------------------------------------------------------------


@pytest.mark.parametrize("archived", [False, True])
def test_a_memory_that_is_archived_or_restored_during_a_check_is_no_duplicate(
    base: Path, monkeypatch: pytest.MonkeyPatch, *, archived: bool
) -> None:
    read_files = integrity.read_files
    with ChunkStore(base) as store, ChunkStore(base) as other:
        made = store.create_chunk("The gate is green.")
        if archived:
            store.delete_chunk(made.id)

        def then_moved(*given: Any, **options: Any) -> Iterator[Any]:
            found = list(read_files(*given, **options))
            other.restore_chunk(made.id) if archived else other.delete_chunk(made.id)
            yield from found

        monkeypatch.setattr(integrity, "read_files", then_moved)
        assert check(store) == []
        monkeypatch.undo()
        (here,) = base.rglob(f"{made.id}.json")
        there = base / ("archive" if archived else "chunks/2026-01") / here.name
        there.parent.mkdir(exist_ok=True)
        shutil.copy(here, there)
        assert [one.code for one in check(store)] == ["duplicate-id"]


# --- an audit log that cannot be written ------------------------------------------------------------------------


def test_a_change_that_cannot_be_logged_is_refused(base: Path) -> None:
    """As on PostgreSQL, where the lines are part of the transaction; undo and erasure rely on them."""
    with ChunkStore(base) as store:
        kept = store.create_chunk("The gate is green.")
    shutil.move(base / "log", base.parent / "log")
    (base / "log").write_text("")
    with ChunkStore(base) as store:
        with pytest.raises(StorageError, match="log is a file: a folder is needed"):
            store.update_chunk(kept.id, content="The gate is red.")
        with pytest.raises(StorageError, match="log is a file"), store.batch():
            store.create_chunk("The gate squeaks.")
            store.delete_chunk(kept.id)
        assert store.list_chunks() == [kept.id]
        assert store.get_chunk(kept.id, track=False) == kept
    (base / "log").unlink()
    shutil.move(base.parent / "log", base / "log")
    with ChunkStore(base) as store:
        assert check(store) == []
        store.update_chunk(kept.id, content="The gate is red.")
        assert [event["op"] for event in store.events()] == ["create", "update"]


def test_what_changes_nothing_needs_no_audit_log(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ChunkStore(base) as store:
        kept = store.create_chunk("The gate is green.")
        shutil.rmtree(base / "log")
        (base / "log").write_text("")
        store.record_event("recall", [kept.id], query="What colour is the gate?")
    assert "recall is not in the audit log" in caplog.text


def test_an_audit_log_that_cannot_be_read_is_an_error_of_the_store(base: Path) -> None:
    with ChunkStore(base) as store:
        store.create_chunk("The gate is green.")
        (base / "log" / "2099-01.jsonl").mkdir()
        with pytest.raises(StorageError, match=r"2099-01\.jsonl cannot be read"):
            list(store.events())
        with pytest.raises(StorageError, match=r"2099-01\.jsonl cannot be read"):
            report = ErasureReport(person="Ada")
            store.backend.rewrite_events("default", Redaction(Matcher(report), set()), dry_run=True)


def test_lines_cut_short_by_a_full_disk_are_taken_back(
    base: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rlm_mem.audit")
    with ChunkStore(base) as store:
        store.create_chunk("The gate is green.")
        (log,) = (base / "log").iterdir()
        before, write = log.read_bytes(), os.write

        def full(descriptor: int, data: bytes) -> int:
            if os.fstat(descriptor).st_ino != log.stat().st_ino:
                return write(descriptor, data)
            if log.stat().st_size > len(before):
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(descriptor, data[:20])

        with monkeypatch.context() as patch, pytest.raises(StoreFull, match="the disk is full"):
            patch.setattr(os, "write", full)
            store.create_chunk("The gate squeaks.")
        assert log.read_bytes() == before
        logged = [one.getMessage() for one in caplog.records if one.name == "rlm_mem.audit"]
        assert [one.split()[0] for one in logged] == ["create"]
        assert store.get_stats()["chunk_count"] == 1
        assert check(store) == []


def test_a_copy_whose_audit_log_cannot_be_written_fails(base: Path, tmp_path: Path) -> None:
    with ChunkStore(base) as store:
        store.create_chunk("The gate is green.")
        with ChunkStore(tmp_path / "copy") as copy:
            (copy.base_path / "log").write_text("")
            with pytest.raises(StorageError, match="log is a file"):
                NamespaceWriter(copy).add_events(store.events())


# --- rows that wait for the end of a batch ----------------------------------------------------------------------


def test_rows_that_wait_are_there_for_every_question_within_a_batch(base: Path) -> None:
    with ChunkStore(base) as store:
        with store.batch():
            first = store.create_chunk("The gate is green.", tags=["gate"], conversation_id="home")
            second = store.create_chunk(
                "The gate squeaks.",
                tags=["gate"],
                links=[{"target_id": first.id, "type": "related_to", "strength": 0.5}],
            )
            assert store.list_chunks(tags=["gate"]) == [first.id, second.id]
            assert store.list_chunks(conversation_id="home") == [first.id]
            assert [link.chunk_id for link in store.linked(first.id, direction="in")] == [second.id]
            assert store.get_stats()["chunk_count"] == 2
            assert search(store, "gate squeaks")[0].chunk_id == second.id
            changed = store.update_chunk(second.id, content="The gate is silent.")
            assert changed is not None and changed.revision == 2
        assert [chunk.content for chunk in store.iter_chunks()] == [
            "The gate is green.",
            "The gate is silent.",
        ]
        assert not check(store)


def test_a_batch_whose_waiting_rows_cannot_be_written_is_refused_whole_even_if_a_question_failed_before(
    base: Path,
) -> None:
    with ChunkStore(base) as store:
        kept = store.create_chunk("The cellar is dry.")
        connection = local(store.backend).connection
        connection.execute(
            "CREATE TEMP TRIGGER refused BEFORE INSERT ON main.chunks WHEN new.source = 'web'"
            " BEGIN SELECT raise(ABORT, 'refused by the test'); END"
        )
        with pytest.raises(StorageError, match="refused by the test"), store.batch():
            store.create_chunk("The attic is cold.")
            store.create_chunk("The attic leaks.", metadata={"source": "web"})
            with pytest.raises(StorageError, match="refused by the test"):
                store.list_chunks()
        connection.execute("DROP TRIGGER refused")
        assert store.list_chunks() == [kept.id]
        assert len(list((base / "chunks").rglob("*.json"))) == 1 and not list((base / ".tmp").iterdir())
        store.create_chunk("The attic is warm.")
        assert not check(store)


# --- the clock goes back ---------------------------------------------------------------------------------------


def test_files_dated_in_the_future_are_noticed_like_any_others(base: Path) -> None:
    """The system's clock went back: files and folders carry times that are still to come."""
    with ChunkStore(base) as store:
        kept, edited = store.create_chunk("kept"), store.create_chunk("to be edited")
    ahead = time.time_ns() + 3_600_000_000_000
    for path in [*(base / "chunks").rglob("*"), base / "chunks"]:
        os.utime(path, ns=(ahead, ahead))
    with ChunkStore(base) as store:
        new = store.create_chunk("written before the times of the others")
        edit(file_of(base, edited.id), content="edited by hand")
        store.sync(full=True)
        assert [chunk.content for chunk in store.iter_chunks()] == [
            "kept", "edited by hand", "written before the times of the others",
        ]  # fmt: skip
    with ChunkStore(base) as store:
        assert store.list_chunks() == [kept.id, edited.id, new.id]
        assert {finding.chunk_id for finding in check(store)} == {edited.id}, (
            "its hash is that of another text"
        )


# --- two versions side by side ---------------------------------------------------------------------------------

NEWER = """
    import sys
    from rlm_mem.store.local import schema
    schema._TABLES += "CREATE TABLE moods(doc INTEGER PRIMARY KEY, mood TEXT);"
    schema.INDEX_VERSION += 1
    from rlm_mem.store.core.chunk_store import ChunkStore
    with ChunkStore(sys.argv[1]) as store:
        print(len(store.list_chunks()))
        store.create_chunk("of the newer program")
"""


def newer_program(base: Path) -> str:
    """A version of this package with one more table opens the store and writes; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(NEWER), str(base)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_newer_program_takes_an_older_index_over_with_all_that_is_in_it(base: Path) -> None:
    with ChunkStore(base) as store:
        store.create_chunk("of the older program")
    assert newer_program(base) == "1"
    with pytest.raises(StorageError, match="version") as refused:
        ChunkStore(base)
    assert "upgrade" in str(refused.value.hint)
    assert len(list((base / "chunks").rglob("*.json"))) == 2
    shutil.rmtree(base / "index")  # what the hint says
    with ChunkStore(base) as store:
        assert [chunk.content for chunk in store.iter_chunks()] == [
            "of the older program",
            "of the newer program",
        ]
        assert check(store) == []


def test_an_older_program_that_has_the_store_open_stops_writing_once_a_newer_one_has_taken_it_over(
    base: Path,
) -> None:
    with ChunkStore(base) as store:
        kept = store.create_chunk("of the older program")
        newer_program(base)
        files_before = sorted((base / "chunks").rglob("*.json"))
        with pytest.raises(StorageError, match="version"):
            store.create_chunk("written blindly")
        assert sorted((base / "chunks").rglob("*.json")) == files_before
        read = store.get_chunk(kept.id)
        assert read is not None, "what it knows it may still read"


def test_a_chunk_file_of_a_newer_schema_is_left_alone(base: Path) -> None:
    """Not read as something it may not be, and never written over."""
    with ChunkStore(base) as store:
        known, newer = store.create_chunk("known"), store.create_chunk("newer")
    path = file_of(base, newer.id)
    edit(path, schema="3.0", content="in a meaning that came later")
    written = path.read_bytes()
    with ChunkStore(base) as store:
        store.sync(full=True)
        assert store.list_chunks() == [known.id]
        assert store.get_chunk(newer.id) is None
        assert store.update_chunk(newer.id, content="flattened") is None
        findings = check(store)
        assert [finding.code for finding in findings] == ["newer-version"]
        assert "3.0" in findings[0].message
    assert path.read_bytes() == written


def test_fields_of_a_newer_minor_version_survive_a_change_by_this_one(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("kept")
        edit(file_of(base, chunk.id), schema="2.7", mood={"of": "later"})
        assert store.update_chunk(chunk.id, content="changed") is not None
    raw = json.loads(file_of(base, chunk.id).read_text())
    assert (raw["content"], raw["mood"], raw["schema"]) == ("changed", {"of": "later"}, "2.7")


# --- the index is damaged while it is in use ---------------------------------------------------------------------


def overwrite(path: Path, start: int, count: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(os.urandom(count))


def into_one_file(database: Path) -> None:
    """Everything out of the write-ahead log, so that damage to the file is damage to what is read."""
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "garbage": lambda path: overwrite(path, 4096, path.stat().st_size - 4096),
    "its first page": lambda path: overwrite(path, 0, 4096),
    "cut off": lambda path: os.truncate(path, 8192),
    "emptied": lambda path: os.truncate(path, 0),
    "deleted": lambda path: path.unlink(),
    "replaced": lambda path: path.write_bytes(b"another program's file"),
    "the folder deleted": lambda path: shutil.rmtree(path.parent),
}

USES: dict[str, Callable[[ChunkStore, str], object]] = {
    "get": lambda store, one: store.get_chunk(one),
    "list": lambda store, _: store.list_chunks(tags=["t"]),
    "stats": lambda store, _: store.get_stats(),
    "search": lambda store, _: search(store, "herons"),
    "create": lambda store, _: store.create_chunk("another"),
    "update": lambda store, one: store.update_chunk(one, content="changed"),
    "delete": lambda store, one: store.delete_chunk(one, permanent=True),
    "rebuild": lambda store, _: store.rebuild_index(),
    "check": lambda store, _: check(store),
    "close": lambda store, _: store.close(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_an_index_damaged_while_open_is_built_anew_and_no_memory_is_lost(
    base: Path, damage: str, use: str
) -> None:
    """The first call after it may say once that it could do nothing; a read never does."""
    with ChunkStore(base) as store:
        ids = [store.create_chunk(f"note {number} about herons", tags=["t"]).id for number in range(12)]
        search(store, "herons")
        into_one_file(base / "index" / "index.sqlite")
        DAMAGE[damage](base / "index" / "index.sqlite")
        try:
            USES[use](store, ids[5])
        except StorageError as error:
            assert use in ("create", "update", "delete"), "a read is simply asked again"
            assert "nothing was changed" in str(error)
            USES[use](store, ids[5])
        if use == "close":
            store = ChunkStore(base)
        expected = set(ids) - ({ids[5]} if use == "delete" else set())
        assert set(store.list_chunks(tags=["t"])) == expected
        assert len(search(store, "herons", limit=20)) >= len(expected) - (use == "update")
        store.create_chunk("and it goes on")
        assert check(store) == []
        store.close()
    with ChunkStore(base) as store:
        assert set(store.list_chunks(tags=["t"])) == expected
        assert check(store) == []


def test_a_read_only_store_whose_index_is_damaged_is_read_all_the_same(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("kept", tags=["t"])
    with ChunkStore(base, read_only=True) as store:
        assert store.list_chunks() == [chunk.id]
        overwrite(base / "index" / "index.sqlite", 0, (base / "index" / "index.sqlite").stat().st_size)
        before = (base / "index" / "index.sqlite").read_bytes()
        assert store.list_chunks(tags=["t"]) == [chunk.id]
        assert store.get_chunk(chunk.id) is not None
    assert (base / "index" / "index.sqlite").read_bytes() == before, "read-only means that"


def test_a_write_that_meets_the_damage_when_it_begins_is_made_on_the_new_index(base: Path) -> None:
    index = base / "index" / "index.sqlite"
    with ChunkStore(base) as store:
        first = store.create_chunk("one").id
        overwrite(index, 0, index.stat().st_size)
        second = store.create_chunk("two").id
        assert set(store.list_chunks()) == {first, second}


def test_a_new_index_that_could_not_be_filled_is_filled_by_the_next_call(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChunkStore(base) as store:
        chunk_id = store.create_chunk("one", tags=["t"]).id
        fill = LocalIndex.sync

        def locked(*_: object, **__: object) -> None:
            raise StoreLocked("another process holds the write lock")

        (base / "index" / "index.sqlite").unlink()
        monkeypatch.setattr(LocalIndex, "sync", locked)
        with pytest.raises(StoreLocked):
            store.list_chunks(tags=["t"])
        monkeypatch.setattr(LocalIndex, "sync", fill)
        assert store.list_chunks(tags=["t"]) == [chunk_id]


def test_several_threads_that_meet_damage_together_rebuild_once(base: Path) -> None:
    with ChunkStore(base) as store:
        ids = [store.create_chunk(f"note {number}", tags=["t"]).id for number in range(30)]
        into_one_file(base / "index" / "index.sqlite")
        barrier, wrong = threading.Barrier(6), list[object]()

        def read() -> None:
            store.list_chunks()
            barrier.wait()
            barrier.wait()
            try:
                if set(store.list_chunks(tags=["t"])) != set(ids):
                    wrong.append("incomplete")
            except BaseException as error:
                wrong.append(error)
                raise

        threads = [threading.Thread(target=read) for _ in range(5)]
        for thread in threads:
            thread.start()
        barrier.wait()
        DAMAGE["garbage"](base / "index" / "index.sqlite")
        barrier.wait()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert len(list((base / "index").glob("index.sqlite.damaged-*"))) == 1
        assert check(store) == []


def test_an_index_that_is_damaged_or_deleted_is_rebuilt_on_a_file_system_that_numbers_no_files(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, index = os.stat, base / "index" / "index.sqlite"

    def stat(path: Any, **given: Any) -> os.stat_result:
        found = real(path, **given)
        return os.stat_result((found[0], 0, *found[2:])) if path == index else found

    monkeypatch.setattr(os, "stat", stat)
    with ChunkStore(base) as store:
        chunk = store.create_chunk("The quay is closed.")
        overwrite(base / "index" / "index.sqlite", 0, 8192)
        assert store.list_chunks() == [chunk.id]
        index.unlink()
        assert store.list_chunks() == [chunk.id]


def test_an_index_that_was_replaced_by_a_damaged_one_is_rebuilt(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("The quay is closed.")
        new = base / "new"
        new.write_bytes(b"?" * 8192)
        new.replace(base / "index" / "index.sqlite")
        assert store.list_chunks() == [chunk.id]
        assert check(store) == []


def test_an_index_that_was_replaced_during_a_batch_is_not_taken_for_damaged(base: Path) -> None:
    with ChunkStore(base) as store, ThreadPoolExecutor(1) as thread:
        ids = [store.create_chunk("The quay is closed.").id]
        with pytest.raises(CorruptStore), store.batch():
            store.create_chunk("lost")
            (base / "index" / "index.sqlite").rename(base / "index" / "aside")
            assert thread.submit(store.list_chunks).result(timeout=20) == ids
        assert store.list_chunks() == ids
        assert [*base.rglob("*.damaged-*")] == []


def test_a_write_into_an_index_that_was_deleted_is_not_put_down_to_missing_rights(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChunkStore(base) as store:
        begin = LocalBackend._begin

        def begin_and_delete(self: LocalBackend) -> None:
            begin(self)
            (base / "index" / "index.sqlite").unlink()

        monkeypatch.setattr(LocalBackend, "_begin", begin_and_delete)
        with pytest.raises(CorruptStore, match="nothing was changed"):
            store.create_chunk("lost")
        monkeypatch.undo()
        assert store.list_chunks() == []


def test_a_read_that_overlaps_the_replacement_of_the_index_is_repeated(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite takes the journal of the new file for that of the renamed one and rolls it back: rows are missing."""
    with ChunkStore(base) as store:
        ids = {store.create_chunk(f"note {number}", tags=["t"]).id for number in range(30)}
        index, real, commit = base / "index", Connections.get, local_index.in_turn
        rebuilt, read = threading.Event(), threading.Event()

        def commit_after_the_read(*args: Any) -> None:
            rebuilt.set()
            read.wait(5)
            commit(*args)

        rebuild = threading.Thread(target=lambda: ChunkStore(base).close())

        def get(self: Connections) -> sqlite3.Connection:
            """As ``get``, but another store rebuilds the index between this and the read."""
            connection = real(self)
            monkeypatch.setattr(Connections, "get", real)
            monkeypatch.setattr(local_index, "in_turn", commit_after_the_read)
            for name in ("index.sqlite-journal", "index.sqlite"):
                (index / name).rename(index / f"{name}.aside")
            rebuild.start()
            rebuilt.wait(5)
            threading.Timer(0.1, read.set).start()
            return connection

        monkeypatch.setattr(Connections, "get", get)
        assert set(store.list_chunks(tags=["t"])) == ids
        rebuild.join()
        assert check(store) == []


def test_a_read_whose_connection_is_given_up_midway_is_repeated(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("The quay is closed.")
        deleted = []

        def read() -> dict[str, int]:
            """Reads on with a connection that another read of the thread has closed, since the index was deleted."""
            source = store.candidate_source()
            if not deleted:
                deleted.append((base / "index" / "index.sqlite").unlink())
            assert store.list_chunks() == [chunk.id]
            return source.term_counts(["quay"])

        assert store.backend.retried(read) == {"quay": 1}


# --- somebody edits a file during a write ------------------------------------------------------------------------


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have something happen between a writer's reading of a chunk and its replacing the file."""

    def arrange(happening: Callable[[], object]) -> None:
        real, done = files.sync_files, []

        def sync_files(paths: list[Path]) -> None:
            if not done:
                done.append(happening())
            real(paths)

        monkeypatch.setattr(files, "sync_files", sync_files)

    return arrange


def test_an_edit_of_the_same_chunk_during_a_write_is_kept_as_its_former_version(
    base: Path, during: Callable[[Callable[[], object]], None]
) -> None:
    """The write was first under way and wins; what the person typed is not gone."""
    with ChunkStore(base) as store:
        chunk = store.create_chunk("as it was")
        during(lambda: edit(file_of(base, chunk.id), content="typed by a person"))
        changed = store.update_chunk(chunk.id, content="written by a program")
        assert changed is not None
        read = store.get_chunk(chunk.id)
        assert read is not None
        assert read.content == "written by a program"
        assert [version.chunk.content for version in store.history(chunk.id)] == [
            "typed by a person", "written by a program",
        ]  # fmt: skip
        assert check(store) == []


def test_edits_of_other_chunks_during_a_write_are_noticed(
    base: Path, during: Callable[[Callable[[], object]], None]
) -> None:
    with ChunkStore(base) as store:
        one, two, gone = (store.create_chunk(text).id for text in ("one", "two", "gone"))
        made = json.loads(file_of(base, one).read_text()) | {"id": "chunk-by-hand", "content": "by hand"}

        def edits() -> None:
            edit(file_of(base, two), content="two, typed by a person")
            file_of(base, gone).unlink()
            (file_of(base, one).parent / "chunk-by-hand.json").write_text(json.dumps(made))

        during(edits)
        store.update_chunk(one, content="one, changed")
        read = store.get_chunk(two)
        assert read is not None
        assert read.content == "two, typed by a person"
    with ChunkStore(base) as store:
        assert {chunk.id: chunk.content for chunk in store.iter_chunks()} == {
            one: "one, changed", two: "two, typed by a person", "chunk-by-hand": "by hand",
        }  # fmt: skip


def test_a_file_saved_half_by_an_editor_during_a_write_is_left_to_the_editor(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("whole")
        path = file_of(base, chunk.id)
        whole = path.read_bytes()
        path.write_bytes(whole[:100])
        assert store.update_chunk(chunk.id, content="over it") is None
        assert path.read_bytes() == whole[:100]
        path.write_bytes(whole)
        store.sync(full=True)
        read = store.get_chunk(chunk.id)
        assert read is not None
        assert read.content == "whole"


# --- folders and disks ---------------------------------------------------------------------------------------------


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that another user may enter (pytest's own are private)."""
    folder = Path(tempfile.mkdtemp(prefix="rlm-mem-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def as_somebody(work: Callable[[], None]) -> int:
    """Run in a forked process that has no rights beyond an ordinary user's; its exit status."""
    # Modules are loaded when they are first used, and the ordinary user may not be allowed to read them here.
    with tempfile.TemporaryDirectory() as folder:
        with ChunkStore(Path(folder)) as store:
            made = store.create_chunk("text")
            store.update_chunk(made.id, content="other text")
            search(store, "text")
            store.delete_chunk(made.id)
            check(store)
        shutil.rmtree(Path(folder) / "index")
        with ChunkStore(Path(folder), read_only=True) as store:
            search(store, "text")

    def unprivileged() -> None:
        if AS_ROOT:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        work()

    return os.waitpid(in_child(unprivileged), 0)[1]


def test_a_folder_without_the_right_to_write_is_read_and_clearly_refused_for_writing(
    open_to_all: Path,
) -> None:
    """Real permissions, not simulated ones: everything readable, nothing writable."""
    base = open_to_all / "memory"
    with ChunkStore(base) as store:
        chunk = store.create_chunk("kept", tags=["t"])
    other = base / "chunks" / "2020-01" / "chunk-by-hand.json"  # not in the index yet
    other.parent.mkdir()
    (path,) = (base / "chunks").rglob(f"{chunk.id}.json")
    other.write_text(path.read_text(encoding="utf-8").replace(chunk.id, "chunk-by-hand"), encoding="utf-8")
    everything = [base, *base.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.read_bytes() for path in everything if path.is_file()}

    def use() -> None:
        for on_purpose in (True, False):
            with ChunkStore(base, read_only=on_purpose) as store:
                assert set(store.list_chunks(tags=["t"])) == {chunk.id, "chunk-by-hand"}
                assert store.get_chunk(chunk.id) is not None
                assert {hit.chunk_id for hit in search(store, "kept")} == {chunk.id, "chunk-by-hand"}
                assert not check(store)
        try:
            ChunkStore(base).create_chunk("x")
        except StoreReadOnly as error:
            assert error.hint is not None and str(base) in error.message
        else:
            raise AssertionError("written without the right to")

    assert as_somebody(use) == 0
    assert {path: path.read_bytes() for path in base.rglob("*") if path.is_file()} == before
    for path in everything:
        path.chmod(0o755 if path.is_dir() else 0o644)
    with ChunkStore(base) as store:
        assert check(store) == []


def test_an_index_that_cannot_be_read_leaves_the_memory_readable(open_to_all: Path) -> None:
    base = open_to_all / "memory"
    with ChunkStore(base) as store:
        chunk = store.create_chunk("The quay is closed.")
    for path in (base, *base.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (base / "index").chmod(0)

    def use() -> None:
        for on_purpose in (True, False):
            with ChunkStore(base, read_only=on_purpose) as store:
                assert [hit.chunk_id for hit in search(store, "quay")] == [chunk.id]
                assert store.unreadable_files == 0  # which every recall asks for

    assert as_somebody(use) == 0
    (base / "index").chmod(0o755)


def test_rights_taken_away_while_open_give_one_clear_error_and_change_nothing(open_to_all: Path) -> None:
    base = open_to_all / "memory"

    def use() -> None:
        store = ChunkStore(base)
        chunk = store.create_chunk("kept")
        for folder in [*(base / "chunks").rglob("*"), base / "chunks", base / ".tmp"]:
            if folder.is_dir():
                folder.chmod(0o555)
        for attempt in (
            lambda: store.create_chunk("x"),
            lambda: store.update_chunk(chunk.id, content="x"),
            lambda: store.delete_chunk(chunk.id),
        ):
            try:
                attempt()
            except StoreReadOnly as error:
                assert str(base) in error.message
                continue
            raise AssertionError("written without the right to")
        read = store.get_chunk(chunk.id)
        assert read is not None
        assert read.content == "kept"
        for folder in (base / "chunks", *(base / "chunks").rglob("*"), base / ".tmp"):
            if folder.is_dir():
                folder.chmod(0o755)
        assert store.create_chunk("again")
        assert check(store) == []
        store.close()

    assert as_somebody(use) == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = shutil.which("mount") and AS_ROOT and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(place)], check=False, capture_output=True
    ).returncode == 0  # fmt: skip
    if not mounted:
        pytest.skip("mounts a file system of two megabytes: needs the rights of root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_that_fills_up_loses_nothing_and_is_used_again_when_there_is_room(small_disk: Path) -> None:
    """A real one, to the last byte: files, index and log all meet its end."""
    base = small_disk / "memory"
    kept: dict[str, str] = {}
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(300_000))
    with ChunkStore(base) as store:
        refused = 0
        for number in range(2000):
            text = f"note {number} " + "about a heron, " * 40
            try:
                kept[store.create_chunk(text, tags=["t"]).id] = text
            except StorageError as error:
                assert isinstance(error, StoreFull) or "free some space" in str(error.hint), error
                refused += 1
                if refused == 5:
                    break
        assert refused == 5
        assert {chunk.id: chunk.content for chunk in store.iter_chunks()} == kept
        some = next(iter(kept))
        with pytest.raises(StorageError):
            store.update_chunk(some, content="longer " * 40_000)
        assert store.get_chunk(some) is not None
        ballast.unlink()
        new = store.create_chunk("there is room again")
        kept[new.id] = new.content
        assert check(store) == []
    with ChunkStore(base) as store:
        assert {chunk.id: chunk.content for chunk in store.iter_chunks()} == kept
        assert check(store) == []


def test_a_disk_that_is_full_when_the_store_is_opened_is_still_read(small_disk: Path) -> None:
    base = small_disk / "memory"
    with ChunkStore(base) as store:
        chunk = store.create_chunk("kept", tags=["t"])
    with (small_disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while ballast.write(bytes(4096)):
                pass
        except OSError:
            pass
    with ChunkStore(base, read_only=True) as store:
        assert store.list_chunks(tags=["t"]) == [chunk.id]
        read = store.get_chunk(chunk.id)
        assert read is not None
        assert read.content == "kept"


def test_a_slow_disk_only_delays(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a writer waits for the disk, readers and searchers of this and other stores go on with the former state."""
    with ChunkStore(base) as store:
        chunk = store.create_chunk("as it was, with a heron", tags=["t"])
        search(store, "heron")
        stuck, go_on = threading.Event(), threading.Event()
        real = files.sync_files

        def slow(paths: list[Path]) -> None:
            stuck.set()
            assert go_on.wait(30)
            real(paths)

        monkeypatch.setattr(files, "sync_files", slow)
        writer = threading.Thread(
            target=lambda: store.update_chunk(chunk.id, content="as it is, with a crane")
        )
        writer.start()
        assert stuck.wait(30)
        with ChunkStore(base, read_only=True) as other:  # neither of them waits for the writer
            for reader in (store, other):
                read = reader.get_chunk(chunk.id)
                assert read is not None
                assert read.content == "as it was, with a heron"
                assert reader.list_chunks(tags=["t"]) == [chunk.id]
                assert [hit.chunk_id for hit in search(reader, "heron")] == [chunk.id]
                assert reader.get_stats()["chunk_count"] == 1
        assert writer.is_alive(), "all that happened while the disk was busy"
        go_on.set()
        writer.join()
        read = store.get_chunk(chunk.id)
        assert read is not None
        assert read.content == "as it is, with a crane"
        assert search(store, "heron") == []
        assert check(store) == []


def test_writers_wait_for_a_slow_disk_in_turn_and_lose_no_update(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sync_files", "publish", "sync_folder"):
        real = getattr(files, name)

        def late(*args: object, real: Callable[..., object] = real) -> object:
            takes(0.01)
            return real(*args)

        monkeypatch.setattr(files, name, late)
    with ChunkStore(base, config=Config.load(environ={})) as store:
        chunk = store.create_chunk("counter", metadata={"count": 0})

        def raise_it() -> None:
            for _ in range(5):
                with store.batch():
                    now = store.get_chunk(chunk.id)
                    assert now is not None
                    store.update_chunk(chunk.id, metadata={"count": now.metadata.extra["count"] + 1})

        threads = [threading.Thread(target=raise_it) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        read = store.get_chunk(chunk.id)
        assert read is not None
        assert (read.metadata.extra["count"], read.revision) == (20, 21)
        assert check(store) == []
