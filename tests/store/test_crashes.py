"""Power cuts and kill -9: nothing acknowledged is lost, nothing half-written is seen, nothing is orphaned."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rlm_mem.chunk import decode_chunk
from rlm_mem.errors import RlmMemError, StorageError, StoreFull, StoreReadOnly
from rlm_mem.store.core import files
from rlm_mem.store.core.brain_files import ERASING
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check, repair
from rlm_mem.store.local import views
from tests import killed
from tests.waiting import takes

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its victims: needs a POSIX system"),
    pytest.mark.local_only("look at files"),
]


def in_child(work: Callable[[], None]) -> int:
    """Run ``work`` in a forked process; returns its pid. The child never returns into pytest."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def sound(base: Path) -> ChunkStore:
    """Reopen the store and assert that files, listings and index agree and every file parses."""
    store = ChunkStore(base)
    assert check(store) == []
    on_disk = set()
    for path in (base / "chunks").rglob("*"):
        if path.is_file():
            on_disk.add(decode_chunk(path.read_bytes()).id)
    assert set(store.list_chunks()) == on_disk
    assert not (base / ".tmp").exists() or list((base / ".tmp").iterdir()) == []
    return store


def busy_writer(base: Path, acknowledged: int, seed: int) -> None:
    """Create, update, link and delete until killed; report each operation once the store has returned."""
    chance = random.Random(seed)
    store = ChunkStore(base)
    ids: list[str] = []

    def tell(line: str) -> None:
        os.write(acknowledged, (line + "\n").encode())

    for number in range(100_000):
        kind = chance.random()
        if kind < 0.5 or len(ids) < 3:
            chunk = store.create_chunk(f"note {seed} {number}", tags=[f"t{number % 3}"])
            ids.append(chunk.id)
            tell(f"wrote {chunk.id} 1 {number}")
        elif kind < 0.7:
            updated = store.update_chunk(chance.choice(ids), content=f"note {seed} {number}")
            if updated:
                tell(f"wrote {updated.id} {updated.revision} {number}")
        elif kind < 0.8:
            with store.batch():
                made = [store.create_chunk(f"batch {seed} {number} {part}") for part in range(6)]
            for chunk in made:
                tell(f"wrote {chunk.id} 1 {number}")
        elif kind < 0.9:
            one, two = chance.sample(ids, 2)
            with contextlib.suppress(ValueError):
                store.add_link(one, two, "supports")
        else:
            victim = ids.pop(chance.randrange(len(ids)))
            permanent = chance.random() < 0.5
            tell(f"deleting {victim} 0 0")
            store.delete_chunk(victim, permanent=permanent)
            tell(f"{'erased' if permanent else 'archived'} {victim} 0 0")


@pytest.mark.parametrize("kills", [12, pytest.param(60, marks=pytest.mark.slow)])
def test_kills_in_the_middle_of_writes_lose_nothing_acknowledged(base: Path, kills: int) -> None:
    chance = random.Random(kills)
    with ChunkStore(base) as store:
        store.create_chunk("warm")  # loads what a first write loads, so that the forked writers start at once
    wrote: dict[str, int] = {}
    gone: dict[str, str] = {}
    for run in range(kills):
        read_end, write_end = os.pipe()
        pid = in_child(partial(busy_writer, base, write_end, run))
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            first = pipe.readline()
            takes(chance.random() * 0.1)  # it is killed at any moment from its first acknowledged write on
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            for line in (first + pipe.read()).decode().splitlines():
                word, chunk_id, revision, _ = line.split()
                if word == "wrote":
                    wrote[chunk_id] = int(revision)
                else:
                    gone[chunk_id] = word
        with sound(base) as store:
            archived = set(store.list_chunks(archived=True))
            for chunk_id, revision in wrote.items():
                fate = gone.get(chunk_id)
                if fate is None:
                    chunk = store.get_chunk(chunk_id, track=False)
                    assert chunk is not None, f"run {run}: {chunk_id} was acknowledged and is lost"
                    assert chunk.revision >= revision
                elif fate == "archived":
                    assert chunk_id in archived
                elif fate == "erased":
                    assert store.get_chunk(chunk_id) is None
                    assert chunk_id not in archived
    assert len(wrote) > kills, "the writers must have got somewhere"


def scripted(store: ChunkStore, victim: str, friend: str) -> None:
    """One of every kind of write."""
    store.create_chunk("created", tags=["new"])
    store.update_chunk(victim, content="updated")
    store.add_link(friend, victim, "supports")
    with store.batch():
        store.create_chunk("one of a batch")
        store.update_chunk(victim, content="updated in a batch")
        store.create_chunk("two of a batch")
    store.delete_chunk(victim)
    store.restore_chunk(victim)
    store.delete_chunk(victim, permanent=True)
    store.checkpoint()


OPERATIONS = ("write_temp", "sync_files", "publish", "sync_folder", "link_or_copy", "remove")


def dies_at(number: int, after: bool) -> Callable[[], None]:
    """Patch every file operation of the store: the process is killed just before (or after) the given one."""
    patched = killed.at_call(number, after)

    def install() -> None:
        for name in OPERATIONS:
            setattr(files, name, patched(getattr(files, name)))

    return install


SAMPLED_OR_ALL = pytest.mark.parametrize(
    "step", [pytest.param(4, id="every fourth"), pytest.param(1, id="every", marks=pytest.mark.slow)]
)
"""Which of the places where it may be killed a process is killed at."""


@SAMPLED_OR_ALL
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_at_a_file_operation_of_every_write_leaves_a_sound_store(
    tmp_path: Path, after: bool, step: int
) -> None:
    for number in range(2 if after else 1, 200, step):
        base = tmp_path / str(number)
        with ChunkStore(base) as store:
            victim = store.create_chunk("victim").id
            friend = store.create_chunk("friend").id

        def work(base: Path = base, number: int = number, victim: str = victim, friend: str = friend) -> None:
            dies_at(number, after)()
            scripted(ChunkStore(base), victim, friend)

        pid = in_child(work)
        status = os.waitpid(pid, 0)[1]
        with sound(base) as store:
            read = store.get_chunk(friend, track=False)
            assert read is not None
            assert read.content == "friend"
            fate = store.get_chunk(victim, track=False)
            if fate is not None:
                assert fate.content in ("victim", "updated", "updated in a batch")
            batch = [chunk.content for chunk in store.iter_chunks() if chunk.content.endswith("of a batch")]
            assert len(batch) in (0, 2), "a batch is there as a whole or not at all"
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            assert number > 25, "the script must have been interrupted at many places before it ran through"
            return
    pytest.fail("the script never ran through")


@pytest.mark.parametrize("damage", ["copy", "text"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_repair_that_was_killed_is_finished_by_the_next_one(
    tmp_path: Path, damage: str, after: bool
) -> None:
    for number in range(2 if after else 1, 100):
        base = tmp_path / str(number)
        with ChunkStore(base) as store:
            made = store.create_chunk("The ferry leaves from pier three.").id
            store.update_chunk(made, content="The ferry leaves from pier four.")
        (path,) = (base / "chunks").rglob("*.json")
        if damage == "copy":
            path.with_name("copy.json").write_text(path.read_text().replace("four", "five"))
        else:
            path.write_text("{")

        def work(base: Path = base, number: int = number) -> None:
            store = ChunkStore(base)
            dies_at(number, after)()
            repair(store, dry_run=False)

        status = os.waitpid(in_child(work), 0)[1]
        with ChunkStore(base) as store:
            repair(store, dry_run=False)
            assert check(store) == []
            found = sorted(one.content.split()[-1] for one in store.iter_chunks())
            assert found == (["five.", "four."] if damage == "copy" else ["three."]), f"call {number}"
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0 and number > 5
            return
    pytest.fail("the repair never ran through")


def test_a_failure_at_every_file_operation_undoes_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk at any point: one clear error, and the store is as it was before that write."""

    for number in range(1, 60):
        base = tmp_path / str(number)
        store = ChunkStore(base)
        victim = store.create_chunk("victim", tags=["t"])
        doomed = store.create_chunk("doomed")
        kept = [victim.id, doomed.id]
        before = {path: path.read_bytes() for path in (base / "chunks").rglob("*.json")}
        count = 0

        def failing(original: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **more: object) -> object:
                nonlocal count
                count += 1
                if count == number:  # noqa: B023 - called within this round only
                    raise OSError(errno.ENOSPC, "No space left on device")
                return original(*args, **more)

            return call

        with monkeypatch.context() as patch:
            for name in ("sync_files", "publish", "sync_folder", "link_or_copy"):
                patch.setattr(files, name, failing(getattr(files, name)))
            error = None
            try:
                with store.batch():
                    store.update_chunk(victim.id, content="changed")
                    store.create_chunk("new")
                    store.delete_chunk(store.create_chunk("other").id)
                    store.delete_chunk(doomed.id, permanent=True)
            except RlmMemError as caught:
                error = caught
        if error is None:
            assert number > 5
            assert store.list_chunks() != kept
            store.close()
            return
        assert "full" in str(error)
        if "the change was made" in str(error):  # what follows the commit of a permanent deletion
            store.close()
            with sound(base) as store:
                assert store.get_chunk(victim.id).content == "changed"
                assert store.get_chunk(doomed.id) is None and store.files.names(ERASING) == []
            continue
        assert {path: path.read_bytes() for path in (base / "chunks").rglob("*.json")} == before
        assert store.list_chunks() == kept
        assert store.list_chunks(archived=True) == []
        assert not list((base / "archive").rglob("*.json")), "no former version of a change that failed"
        store.close()
        with sound(base) as reopened:
            assert reopened.list_chunks() == kept, "nor does the next open finish it"
    pytest.fail("the write never went through")


def test_a_write_succeeds_even_if_the_views_no_longer_fit_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise StoreFull("the disk is full: metadata_index.json was not written")

    monkeypatch.setattr(views, "_write", full)
    with ChunkStore(tmp_path) as store:
        made = store.create_chunk("The box is blue.")
        with pytest.raises(StoreFull):
            store.checkpoint()
    assert "out of date" in caplog.text
    monkeypatch.undo()
    with ChunkStore(tmp_path) as store:
        assert store.list_chunks() == [made.id]


@SAMPLED_OR_ALL
def test_a_batch_killed_anywhere_is_there_as_a_whole_or_not_at_all(tmp_path: Path, step: int) -> None:
    """New, changed, archived, restored and erased chunks in one batch; seen by a process that was open all along."""
    outcomes = set()
    for number in range(1, 200, step):
        base = tmp_path / str(number)
        with ChunkStore(base) as store:
            changed, archived, erased, restored = (store.create_chunk(name).id for name in "abcd")
            store.delete_chunk(restored)

        def work(
            base: Path = base,
            number: int = number,
            ids: tuple[str, ...] = (changed, archived, erased, restored),
        ) -> None:
            store = ChunkStore(base)
            dies_at(number, False)()
            with store.batch():
                store.create_chunk("new")
                store.update_chunk(ids[0], content="a changed")
                store.delete_chunk(ids[1])
                store.delete_chunk(ids[2], permanent=True)
                store.restore_chunk(ids[3])

        witness = ChunkStore(base)
        status = os.waitpid(in_child(work), 0)[1]
        late = witness.create_chunk("written by the witness, who finishes what was left").id
        witness.delete_chunk(late, permanent=True)
        witness.close()
        with sound(base) as store:
            found = sorted(chunk.content for chunk in store.iter_chunks())
            found += sorted(chunk.content for chunk in store.iter_chunks(archived=True))
            assert found in (["a", "b", "c", "d"], ["a changed", "d", "new", "b"]), number
            outcomes.add(found[0])
            if found[0] == "a changed":
                assert [one.chunk.content for one in store.history(changed)] == ["a", "a changed"]
        if os.WIFEXITED(status):
            assert outcomes == {"a", "a changed"}
            return
    pytest.fail("the batch never ran through")


def test_a_chunk_is_synced_before_it_is_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file, and the folder that holds its name: a power cut afterwards takes neither."""
    synced: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.add(os.fstat(descriptor).st_ino))
    with ChunkStore(tmp_path) as store:
        synced.clear()
        store.create_chunk("kept")
    (written,) = (tmp_path / "chunks").rglob("*.json")
    assert {written.stat().st_ino, written.parent.stat().st_ino} <= synced


def test_a_file_that_cannot_be_removed_after_a_write_fails_nothing_and_is_removed_by_the_next_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    remove = files.remove

    def broken(path: str | os.PathLike[str]) -> None:
        if os.fspath(path).endswith((".gone", ".erased")):
            raise OSError(errno.EIO, "Input/output error")
        remove(path)

    store = ChunkStore(tmp_path)
    victim, kept = store.create_chunk("victim"), store.create_chunk("kept")
    with monkeypatch.context() as patch:
        patch.setattr(files, "remove", broken)
        with pytest.raises(StorageError, match="part may be erased"):  # its text is still in that file
            store.delete_chunk(victim.id, permanent=True)
    assert "removal after a write" in caplog.text
    store.close()
    with sound(tmp_path) as reopened:
        assert reopened.list_chunks() == [kept.id] and reopened.files.names(ERASING) == []
    assert not list((tmp_path / ".tmp").iterdir())


def test_a_write_whose_undo_fails_too_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that turns read-only in the middle of a write takes nothing back either."""

    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with ChunkStore(tmp_path) as store:
        victim = store.create_chunk("victim")
        with monkeypatch.context() as patch:
            for name in ("rename", "replace", "unlink", "link"):
                patch.setattr(files.os, name, read_only)
            with pytest.raises(StoreReadOnly):
                store.update_chunk(victim.id, content="changed")
        assert store.create_chunk("after").id in store.list_chunks()
    sound(tmp_path).close()


def test_what_a_failed_write_replaced_is_kept_if_it_cannot_be_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def failing(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
        if "archive" in Path(source).parts and "chunks" in Path(target).parts:  # by the undo alone
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    def unsynced(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with ChunkStore(tmp_path) as store:
        victim = store.create_chunk("victim")
        with monkeypatch.context() as patch:
            patch.setattr(files.os, "replace", failing)
            patch.setattr(files, "sync_folder", unsynced)
            with pytest.raises(StorageError):
                store.update_chunk(victim.id, content="changed")
    there = [decode_chunk(path.read_bytes()).content for path in tmp_path.rglob(f"*{victim.id}*/*.json")]
    assert there == ["victim"]
