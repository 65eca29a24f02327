"""Edits by hand and by git, damaged files and a lost index: noticed, reported, never overwritten."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.config import Config
from rlm_mem.errors import ConflictError, InvalidChunk, StorageError, StoreLocked
from rlm_mem.interchange.export import export_store
from rlm_mem.search import passages, search
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check, repair
from rlm_mem.store.local import connections, local_index
from rlm_mem.store.local.local_index import LocalIndex
from tests.typed import local
from tests.waiting import takes, until

pytestmark = pytest.mark.local_only("look at files")


def only_file(base: Path) -> Path:
    (path,) = (base / "chunks").rglob("*.json")
    return path


def edit(path: Path, **changes: object) -> None:
    data = json.loads(path.read_bytes())
    data.update(changes)
    path.write_text(json.dumps(data, indent=2))


@pytest.fixture
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open store looks for what others did far more often than it promises."""
    assert connections._LOOK_SECONDS <= 1.0
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.05)


def test_a_file_edited_while_closed_is_noticed_at_opening(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("about apples", tags=["fruit"])
    edit(only_file(base), content="about pears, many more words now", tags=["pear"])
    with ChunkStore(base) as store:
        assert store.list_chunks(tags=["fruit"]) == []
        assert store.list_chunks(tags=["pear"]) == [chunk.id]
        assert store.summaries([chunk.id])[0].tokens > chunk.tokens


@pytest.mark.usefixtures("_quick_looks")
def test_of_many_files_edited_while_closed_a_full_sync_notices_each_and_looks_of_an_open_store_do_in_turn(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_index, "_FILES_PER_CHECK", 2)
    with ChunkStore(base) as store, store.batch():
        ids = [store.create_chunk(f"about apple {number}").id for number in range(7)]
    first, last = (next((base / "chunks").rglob(f"{one}.json")) for one in (ids[0], ids[-1]))
    for path in (first, last):
        edit(path, tags=["pear"])
    with ChunkStore(base) as store:
        assert store.list_chunks(tags=["pear"]) == [ids[-1]]  # opening looks at the latest
        until(lambda: store.list_chunks(tags=["pear"]) == [ids[0], ids[-1]], "the first")
        until(lambda: local(store.backend)._edited_before is None, "a look at all")
        edit(last, tags=["quince"])
        edit(first, tags=["quince"])
        assert [Path(path).stem for path in store.sync(full=True).changed] == [ids[0], ids[-1]]


@pytest.mark.usefixtures("_quick_looks")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_that_stays_open_notices_within_a_second_what_others_do_to_its_files(
    base: Path, tmp_path: Path, read_only: bool
) -> None:
    with ChunkStore(base) as store:
        kept, removed = store.create_chunk("The mast is of oak."), store.create_chunk("The keel is of iron.")
    path, gone = (next((base / "chunks").rglob(f"{one.id}.json")) for one in (kept, removed))
    if read_only:  # without an index of its own it keeps one in memory
        shutil.rmtree(base / "index")
    with ChunkStore(base, read_only=read_only) as store:

        def found(words: str) -> list[str]:
            return [hit.chunk_id for hit in search(store, words)]

        assert (found("oak"), found("iron")) == ([kept.id], [removed.id])
        edit(path, content="The mast is of larch.")  # the time of the folder stays as it was
        until(lambda: found("larch") == [kept.id], "the edit")
        assert found("oak") == []
        data = json.loads(path.read_bytes()) | {"id": "chunk-by-hand", "content": "The sail is of hemp."}
        (path.parent / "chunk-by-hand.json").write_text(json.dumps(data))
        until(lambda: found("hemp") == ["chunk-by-hand"], "the new file")
        gone.unlink()
        until(lambda: sorted(store.list_chunks()) == sorted(["chunk-by-hand", kept.id]), "the removal")
        assert found("iron") == []


@pytest.mark.parametrize("how", ["moved", "a file in its place"])
def test_a_memory_that_is_moved_while_it_is_open_is_not_begun_anew(tmp_path: Path, how: str) -> None:
    place, away = tmp_path / "brain", tmp_path / "elsewhere"
    with Memory.open(place) as memory:
        made = memory.remember("The ferry leaves at 6:10.").chunk_ids[0]
        place.rename(away)
        if how == "a file in its place":
            place.write_text("")
        for use in (
            lambda: memory.search("ferry"),
            lambda: memory.recall("When does the ferry leave?"),
            lambda: memory.remember("Dana lives in Berlin."),
            lambda: memory.get(made),
            lambda: memory.delete(made),
            lambda: memory.undo(),
            lambda: memory.stats(),
        ):
            with pytest.raises(StorageError, match="was moved or deleted while it was open"):
                use()
        assert not place.is_dir()
        if place.exists():
            place.unlink()
        away.rename(place)
        memory.remember("Dana lives in Berlin.")
        assert len(memory.list_chunks()) == 2
        place.rename(away)
    assert not place.exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows does not keep when the entry of a folder was changed")
def test_an_old_copy_that_is_unpacked_over_a_newer_memory_hides_none_of_its_files(
    base: Path, tmp_path: Path
) -> None:
    """The copy brings its index, and gives the folders the times that this index recorded."""
    with ChunkStore(base) as store:
        old = store.create_chunk("The mast is of oak.")
    shutil.copytree(base, tmp_path / "copy")
    with ChunkStore(base) as store:
        new = store.create_chunk("The keel is of iron.")
    shutil.copytree(tmp_path / "copy", base, dirs_exist_ok=True)
    with ChunkStore(base) as store:
        assert sorted(store.list_chunks()) == sorted([old.id, new.id])
        assert [hit.chunk_id for hit in search(store, "keel")] == [new.id]
        assert check(store) == []


def test_a_look_waits_for_no_writer(base: Path) -> None:
    with ChunkStore(base) as store, ChunkStore(base) as other:
        store.create_chunk("The mast is of oak.")
        edit(only_file(base), content="The mast is of larch.")
        with other.batch():
            other.create_chunk("The keel is of iron.")
            started = time.monotonic()
            local(store.backend).look()
            assert search(store, "larch") == []
            assert time.monotonic() - started < store.config.store.lock_wait_seconds / 2
        until(lambda: search(store, "larch"), "the edit")


def test_a_store_is_opened_and_read_while_another_process_is_writing(base: Path) -> None:
    impatient = Config.load(None, environ={}, store={"lock_wait_seconds": 0.0})
    with ChunkStore(base) as writer:
        mast = writer.create_chunk("The mast is of oak.").id
        with writer.batch():
            writer.create_chunk("The keel is of iron.")
            assert list((base / ".tmp").iterdir()), "the file of a chunk that is not committed"
            with ChunkStore(base, config=impatient) as reader:
                assert [hit.chunk_id for hit in search(reader, "mast")] == [mast]
                assert search(reader, "keel") == []
                with pytest.raises(StoreLocked):
                    reader.create_chunk("The sail is of hemp.")
        with ChunkStore(base, config=impatient) as reader:
            assert search(reader, "keel")


def test_a_store_whose_files_were_edited_is_read_while_another_process_is_writing(base: Path) -> None:
    impatient = Config.load(None, environ={}, store={"lock_wait_seconds": 0.0})
    with ChunkStore(base) as writer:
        mast = writer.create_chunk("The mast is of oak.").id
        edit(only_file(base), content="The mast is of larch.")
        with writer.batch():
            writer.create_chunk("The keel is of iron.")
            reader = ChunkStore(base, config=impatient)
            assert [hit.chunk_id for hit in search(reader, "mast")] == [mast]
    with reader:
        until(lambda: search(reader, "larch"), "the edit")


def test_a_commit_that_begins_while_a_store_is_opened_is_named_as_a_lock(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChunkStore(base) as store:
        store.create_chunk("The mast is of oak.")
    other = sqlite3.connect(base / "index" / "index.sqlite", isolation_level=None)

    def catch_up(index: LocalIndex) -> None:
        assert index.connection
        other.execute("BEGIN EXCLUSIVE")
        raise StoreLocked("another process holds the write lock")

    monkeypatch.setattr(LocalIndex, "_catch_up", catch_up)
    impatient = Config.load(None, environ={}, store={"lock_wait_seconds": 0.0})
    with contextlib.closing(other), pytest.raises(StoreLocked):
        ChunkStore(base, config=impatient)


def test_a_sync_within_a_batch_is_refused_and_the_batch_goes_on(base: Path) -> None:
    with ChunkStore(base) as store:
        store.create_chunk("The mast is of oak.")
    takes(0.05)  # the next look at the folder hides no change in the same tick of the clock
    with ChunkStore(base) as store:
        with store.batch():
            store.create_chunk("The keel is of iron.")
            with pytest.raises(ConflictError, match="within a batch"):
                store.sync()
            store.create_chunk("The sail is of hemp.")
        assert search(store, "keel")
        assert search(store, "sail")


def test_the_file_that_a_killed_writer_left_is_removed_on_opening(base: Path) -> None:
    with ChunkStore(base) as store:
        store.create_chunk("The mast is of oak.")
        (base / ".tmp" / "half.tmp").write_bytes(b"of a killed writer")
        with ChunkStore(base):
            assert not list((base / ".tmp").iterdir())


def test_a_file_edited_while_open_is_read_as_it_is_and_indexed_on_the_way(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("before", tags=["old"])
        edit(only_file(base), content="after", tags=["new"])
        read = store.get_chunk(chunk.id)
        assert read is not None
        assert read.content == "after"
        assert store.list_chunks(tags=["new"]) == [chunk.id]


def test_a_hit_that_was_edited_since_is_searched_again_as_it_is_now(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_index, "_FILES_PER_CHECK", 1)  # a store larger than one check
    with ChunkStore(base) as store:
        first = store.create_chunk("The mast is of larch. Its height is nine metres.")
        second = store.create_chunk("The keel is of larch, too.")
        for number in range(5):
            store.create_chunk(f"Note {number} of the yard.")
        assert {hit.chunk_id for hit in search(store, "larch")} == {first.id, second.id}
        edit(
            next((base / "chunks").rglob(f"{first.id}.json")),
            content="Nobody remembers of which wood it was made. The mast, that is, which was nine metres high.",
        )
        assert [hit.snippet for hit in search(store, "larch")] == ["The keel is of larch, too."]
        edit(
            next((base / "chunks").rglob(f"{second.id}.json")),
            content="Long ago this yard built boats. Its keel is of larch and of oak.",
        )
        (hit,) = passages(store, "larch").hits
        assert hit.snippet == "Long ago this yard built boats. Its keel is of larch and of oak."


def test_a_title_or_an_archived_text_that_is_edited_by_hand_is_searched_as_it_is_now(base: Path) -> None:
    with ChunkStore(base) as store:
        titled = store.create_chunk("about apples", provenance={"title": "Orchard"})
        kept = store.create_chunk("about quinces")
        store.delete_chunk(kept.id)
    data = json.loads((path := next((base / "chunks").rglob(f"{titled.id}.json"))).read_bytes())
    data["metadata"]["provenance"]["title"] = "Cellar"
    edit(path, metadata=data["metadata"])
    edit(next((base / "archive").rglob(f"{kept.id}.json")), content="about medlars")
    with ChunkStore(base) as store:
        store.sync(full=True)
        store.restore_chunk(kept.id)
        found = {
            word: [hit.chunk_id for hit in search(store, word)] for word in ("orchard", "cellar", "medlars")
        }
    assert found == {"orchard": [], "cellar": [titled.id], "medlars": [kept.id]}


def test_files_added_moved_and_removed_by_hand_are_noticed_at_open(base: Path, tmp_path: Path) -> None:
    with ChunkStore(base) as store:
        one, two = store.create_chunk("one"), store.create_chunk("two")
    folder = only_file_folder(base)
    (folder / f"{one.id}.json").unlink()
    elsewhere = base / "chunks" / "2001-01"
    elsewhere.mkdir()
    shutil.move(str(folder / f"{two.id}.json"), elsewhere / f"{two.id}.json")
    made = json.loads((elsewhere / f"{two.id}.json").read_bytes())
    made["id"] = "chunk-by-hand"
    made["content"] = "written in an editor"
    (folder / "chunk-by-hand.json").write_text(json.dumps(made))
    with ChunkStore(base) as store:
        assert sorted(store.list_chunks()) == sorted([two.id, "chunk-by-hand"])
        by_hand = store.get_chunk("chunk-by-hand")
        assert by_hand is not None
        assert by_hand.content == "written in an editor"
        assert store.get_chunk(two.id) is not None


def only_file_folder(base: Path) -> Path:
    return next((base / "chunks").iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"id": "chunk-x"}',
        b'{"id":"../x","content":"","metadata":{}}',
        b"[" * 100_000,
        b'{\n<<<<<<< HEAD\n  "id": "chunk-x"\n=======\n  "id": "chunk-y"\n>>>>>>> theirs\n}',
    ],
    ids=["empty", "cut", "list", "null", "not-utf8", "fields-missing", "traversal", "deep", "conflict"],
)
def test_a_damaged_file_gives_none_is_reported_and_never_overwritten(
    base: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("fine", tags=["t"])
        path = only_file(base)
        path.write_bytes(damage)
        with caplog.at_level(logging.ERROR):
            assert store.get_chunk(chunk.id) is None
        assert any(chunk.id in record.getMessage() for record in caplog.records)
        assert store.update_chunk(chunk.id, content="x") is None
        assert store.delete_chunk(chunk.id) is False
        store.sync(full=True)
        assert store.list_chunks() == []
        findings = check(store)
        assert [finding.code for finding in findings] == ["unreadable-file"]
        assert findings[0].file is not None
        assert findings[0].file.endswith(path.name)
        assert (b"<<<<" in damage) == ("merge conflict markers" in findings[0].message)
        assert path.read_bytes() == damage
        with pytest.raises(ValueError, match="already"):
            store.create_chunk("again", chunk_id=chunk.id)
        assert path.read_bytes() == damage


@pytest.mark.parametrize(
    "content",
    [
        b'{\n<<<<<<< HEAD\n  "id": "chunk-x"\n=======\n  "id": "chunk-y"\n>>>>>>> theirs\n}',
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
    ],
    ids=["both sides of a conflict", "not fetched"],
)
def test_repair_puts_no_former_version_in_the_place_of_what_git_left(base: Path, content: bytes) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("before both")
        store.update_chunk(chunk.id, content="one side")
        path = only_file(base)
        path.write_bytes(content)
        store.sync(full=True)
        (finding,) = check(store)
        assert ("git lfs pull" in finding.message) == content.startswith(b"version")
        repair(store, dry_run=False)
        assert path.read_bytes() == content


def test_each_opening_names_unreadable_files_and_takes_in_one_mended_in_place(
    base: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As a conflict of two clones has them, and the editor that removes its marks."""

    def told() -> list[str]:
        caplog.clear()
        with ChunkStore(base) as store:
            kept.append(store.get_chunk(ids[0]))
        return [record.getMessage() for record in caplog.records]

    kept: list[object] = []
    with ChunkStore(base) as store:
        ids = [store.create_chunk(f"number {number}").id for number in range(5)]
    paths = [next((base / "chunks").rglob(f"{one}.json")) for one in ids]
    whole = paths[0].read_bytes()
    for path in paths:
        path.write_bytes(b"<<<<<<< HEAD\n")
    with ChunkStore(base) as store:
        store.sync(full=True)
    for _ in range(2):
        messages = told()
        assert sum(one.startswith("unreadable chunk file ") for one in messages) == 3
        assert messages[-1] == "2 more unreadable chunk files: rlm-mem store check names them"
    before = paths[0].parent.stat().st_mtime_ns
    paths[0].write_bytes(whole)
    assert paths[0].parent.stat().st_mtime_ns == before
    assert not any(ids[0] in one for one in told())
    assert kept[-1] is not None and kept[-2] is None


@pytest.mark.parametrize(
    "where", ["memory/chunks", "memory/chunks/MONTH", "memory/archive", "system", "workspace"]
)
def test_a_name_that_is_not_unicode_is_left_out_and_blocks_nothing(
    tmp_path: Path, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        made = memory.remember("The ferry leaves at 6:10.").chunk_ids
    month = only_file_folder(tmp_path / "brain" / "memory").name
    folder = tmp_path / "brain" / where.replace("MONTH", month)
    folder.mkdir(parents=True, exist_ok=True)
    stray = os.fsencode(folder) + (b"/\xfc" if where == "memory/chunks" else b"/\xfcber.json")
    try:
        Path(os.fsdecode(stray)).mkdir() if where == "memory/chunks" else Path(os.fsdecode(stray)).touch()
    except OSError:
        pytest.skip("the file system takes no such name")
    with Memory.open(tmp_path / "brain") as memory:
        assert [hit.chunk_id for hit in memory.search("ferry")] == made
        assert memory.recall("When does the ferry leave?").content == "6:10"
        memory.remember("Dana lives in Berlin.")
        memory.store.backend.back_up(memory.store, tmp_path / "all.tar.gz")
        export_store(memory.store, tmp_path / "all.zip")
        named = [finding.message for finding in memory.check()]
    assert "its name is not Unicode text; rename it" in caplog.text
    if where.startswith("memory"):
        assert len(named) == 1 and named[0].endswith(": the name is not Unicode text: rename it")
    assert Path(os.fsdecode(stray)).exists()


def test_a_value_that_cannot_be_kept_hides_its_file_and_no_other(base: Path) -> None:
    wrong = {"revision": 10**30, "tokens": 10**30}
    with ChunkStore(base) as store:
        good, *bad = (store.create_chunk(f"the walnut of {who}").id for who in ("Ana", *wrong))
        for chunk_id, (name, value) in zip(bad, wrong.items(), strict=True):
            edit(next(base.rglob(f"{chunk_id}.json")), **{name: value})
        store.sync(full=True)
        assert store.list_chunks() == [good]
        assert [hit.chunk_id for hit in search(store, "walnut")] == [good]
        assert {finding.code for finding in check(store)} == {"unreadable-file"}


def test_a_chunk_whose_fields_are_nested_too_deeply_is_read_and_not_changed(base: Path) -> None:
    deep: object = "end"
    for _ in range(500):
        deep = {"deeper": deep}
    with ChunkStore(base) as store:
        chunk = store.create_chunk("fine")
        edit(only_file(base), unnamed=deep)
        store.sync(full=True)
        assert store.list_chunks() == [chunk.id]
        with pytest.raises(InvalidChunk, match="nested too deeply"):
            store.update_chunk(chunk.id, content="finer")


def test_a_chunk_with_the_highest_revision_is_read_and_not_changed(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("fine")
        path = only_file(base)
        edit(path, revision=1_000_000_000)
        written = path.read_bytes()
        with pytest.raises(InvalidChunk, match="highest"):
            store.update_chunk(chunk.id, content="finer")
        assert path.read_bytes() == written
        found = store.get_chunk(chunk.id)
        assert found is not None
        assert found.content == "fine"


def test_a_damaged_file_that_is_mended_by_hand_comes_back(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("fine")
        path = only_file(base)
        good = path.read_bytes()
        path.write_bytes(b"oops")
        store.sync(full=True)
        assert store.list_chunks() == []
        path.write_bytes(good)
        store.sync(full=True)
        assert store.list_chunks() == [chunk.id]
        assert check(store) == []


def test_deleting_the_index_loses_nothing(base: Path) -> None:
    with ChunkStore(base) as store:
        a, b = store.create_chunk("a", tags=["t"], conversation_id="c"), store.create_chunk("b", tags=["t"])
        store.add_link(a.id, b.id, "supports")
        gone = store.create_chunk("gone")
        store.delete_chunk(gone.id)
        store.get_chunk(a.id)
        store.checkpoint()
        before = (
            store.list_chunks(),
            store.tag_counts(),
            store.linked(a.id),
            store.list_chunks(archived=True),
        )
    shutil.rmtree(base / "index")
    with ChunkStore(base) as store:
        assert (
            store.list_chunks(),
            store.tag_counts(),
            store.linked(a.id),
            store.list_chunks(archived=True),
        ) == before
        assert len(store.history(a.id)) == 2
        read = store.get_chunk(a.id, track=False)
        assert read is not None
        assert read.metadata.access_count == 1
        assert check(store) == []


def test_an_index_deleted_while_open_is_rebuilt_and_no_write_is_lost(base: Path) -> None:
    with ChunkStore(base) as store:
        first = store.create_chunk("first", tags=["t"])
        shutil.rmtree(base / "index")
        (base / "index").mkdir()
        second = store.create_chunk("second", tags=["t"])
        assert store.list_chunks(tags=["t"]) == [first.id, second.id]
    with ChunkStore(base) as store:
        assert store.list_chunks(tags=["t"]) == [first.id, second.id]
        assert check(store) == []


def test_a_damaged_index_is_set_aside_and_rebuilt_at_open(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("kept")
    database = base / "index" / "index.sqlite"
    database.write_bytes(b"this is no database, but long enough to look like a file of some kind" * 40)
    with ChunkStore(base) as store:
        assert store.list_chunks() == [chunk.id]
        assert list((base / "index").glob("index.sqlite.damaged-*"))
        assert check(store) == []


def test_an_index_of_a_newer_version_is_refused_not_overwritten(base: Path) -> None:
    import sqlite3

    ChunkStore(base).close()
    connection = sqlite3.connect(base / "index" / "index.sqlite")
    connection.execute("PRAGMA user_version=999")
    connection.close()
    with pytest.raises(StorageError, match="version 999"):
        ChunkStore(base)


def test_the_same_id_in_two_files_is_reported_and_neither_is_touched(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("original")
    path = only_file(base)
    twin = base / "chunks" / "2001-01" / path.name
    twin.parent.mkdir()
    shutil.copy(path, twin)
    edit(twin, content="impostor")
    with ChunkStore(base) as store:
        read = store.get_chunk(chunk.id)
        assert read is not None
        assert read.content == "original"
        assert "duplicate-id" in [finding.code for finding in check(store)]
    assert path.exists()
    assert twin.exists()


def test_a_file_left_out_beside_another_of_its_chunk_is_found_once_that_one_is_gone(base: Path) -> None:
    """As after `git checkout .` and `git clean`, which bring back what was deleted and not committed."""
    with ChunkStore(base) as store:
        chunk = store.create_chunk("The keel is of oak.")
        path = only_file(base)
        kept = path.read_bytes()
        store.delete_chunk(chunk.id)
        path.write_bytes(kept)
        store.sync()
        assert store.get_chunk(chunk.id) is None
        (base / "archive" / path.name).unlink()
        store.sync()
        assert [hit.chunk_id for hit in search(store, "keel")] == [chunk.id]
        assert check(store) == []


def test_opening_reads_no_file_when_nothing_changed(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ChunkStore(base) as store:
        for number in range(20):
            store.create_chunk(str(number))
    from rlm_mem.store.local import sync

    list_folder = os.scandir

    def refuse(path: Path | str) -> Any:
        if Path(path).parent.name != "chunks":  # only the folders of the months have chunks
            return list_folder(path)
        raise AssertionError(f"{path} was read")

    with monkeypatch.context() as patched:  # undone before the test's folder is removed
        patched.setattr(sync, "read_chunk_file", refuse)
        patched.setattr(os, "scandir", refuse)
        ChunkStore(base).close()


def test_every_older_shape_in_a_folder_is_adopted_and_written_anew_in_one_shape(base: Path) -> None:
    folder = base / "chunks" / "2026-02"
    folder.mkdir(parents=True)
    shapes = {
        "chunk-2026-02-10-a1b2c3d4": {
            "content": "of schema 1.0", "tokens": 4, "type": "decision",
            "metadata": {"created": "2026-02-10T21:37:00Z", "conversation_id": "conv-abc123", "source": "interaction",
                         "confidence": 0.95, "access_count": 3, "last_accessed": "2026-02-10T22:15:00Z"},
            "links": {"context_of": ["conv-abc123"], "follows": ["chunk-2026-02-10-x9y8z7w6"], "supports": []},
            "tags": ["architecture"],
        },
        "chunk-2026-02-10-x9y8z7w6": {
            "content": "of the supervisor shape", "novel": {"kept": True},
            "metadata": {"type": "fact", "tags": ["t"], "confidence": 0.5, "created": "2026-02-10T10:00:00Z",
                         "updated": "2026-02-10T10:30:00Z", "source": "import", "conversation_id": "conv-uuid",
                         "token_count": 4, "mood": "calm"},
            "links": {"outgoing": [{"target": "chunk-2026-02-10-a1b2c3d4", "type": "related_to"}], "incoming": []},
        },
        "chunk-001": {
            "content": "of the day layout", "tokens": 4, "type": "note",
            "metadata": {"created_at": "2026-02-10", "modified_at": "2026-02-11T00:00:00+02:00",
                         "accessed_at": "2026-02-11", "access_count": 0, "confidence": 0.95},
            "links": [{"target_id": "chunk-2026-02-10-a1b2c3d4", "type": "supports", "strength": 0.8,
                       "created_at": "2026-02-10T00:00:00Z"}],
            "tags": ["tag1", "tag2"],
        },
    }  # fmt: skip
    for chunk_id, data in shapes.items():
        (folder / f"{chunk_id}.json").write_text(json.dumps({"id": chunk_id, **data}))
    with ChunkStore(base) as store:
        assert len(store.list_chunks()) == 3
        assert [link.chunk_id for link in store.linked("chunk-2026-02-10-a1b2c3d4", direction="in")] == [
            "chunk-001", "chunk-2026-02-10-x9y8z7w6",
        ]  # fmt: skip
        old = store.get_chunk("chunk-2026-02-10-a1b2c3d4", track=False)
        assert old is not None
        assert old.metadata.access_count == 3
        assert [link.target_id for link in old.links] == ["chunk-2026-02-10-x9y8z7w6"]
        for chunk_id in shapes:
            store.update_chunk(chunk_id, confidence=0.31)
    seen = set()
    for chunk_id in shapes:
        data = json.loads((folder / f"{chunk_id}.json").read_bytes())
        seen.add((tuple(key for key in data if key != "novel"), tuple(data["metadata"])))
        assert data["schema"] == "2.0"
    assert len(seen) == 1
    supervisor = json.loads((folder / "chunk-2026-02-10-x9y8z7w6.json").read_bytes())
    assert supervisor["novel"] == {"kept": True}
    assert supervisor["metadata"]["extra"] == {"mood": "calm"}


def test_the_last_moment_of_the_calendar_is_a_time_like_any_other(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("The lease ends.", occurred_at="9999-12-31T23:59:59.999999Z")
        assert store.totals()["last_at"][:10] == "9999-12-31"
        assert [hit.chunk_id for hit in search(store, "What ends in December 9999?")] == [chunk.id]


@pytest.mark.local_only("damage a file")
def test_a_damaged_file_is_named_once_however_often_it_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChunkStore(tmp_path) as store:
        made = store.create_chunk("The mast is made of oak.")
    path = next((tmp_path / "chunks").rglob(f"{made.id}.json"))
    path.write_bytes(b'{"schema": oak')
    with ChunkStore(tmp_path) as store:
        for _ in range(3):
            assert store.get_chunk(made.id) is None
            assert list(store.iter_chunks()) == []
    told = [one for one in caplog.messages if one.startswith("unreadable chunk file ")]
    assert len(told) == 1
