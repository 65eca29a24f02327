"""Backups of a brain folder: one moment's state whatever is written meanwhile, brought back whole or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.errors import CorruptStore, InputError, StorageError, StoreReadOnly
from rlm_mem.memory import Memory
from rlm_mem.store.backup import back_up, restore_backup
from rlm_mem.store.core import files
from rlm_mem.store.core.backup_archive import read_backup, staging_folder
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from rlm_mem.store.local import backup as backup_module
from rlm_mem.store.local.restore import restore_folder
from tests.typed import present


@pytest.fixture
def brain(tmp_path: Path) -> Path:
    """A brain with three namespaces, versions, an archive, a log, tiered memories, settings and a persona."""
    place = tmp_path / "brain"
    with Memory.open(place) as memory:
        for number in range(12):
            memory.remember(
                f"Note {number} about the harbour.", conversation_id=f"c{number % 3}", tags=["all"]
            )
        ids = memory.list_chunks()
        memory.update(ids[0], content="Note 0, corrected.")
        memory.delete(ids[1])
        memory.get(ids[2])
    with Memory.open(place, namespace="agent/other") as memory:
        memory.remember("Somebody else's note.")
    (place / "config.toml").write_text(
        "[recall]\nmax_iterations = 7\n# ghp_0123456789abcdefghijklmnopqrstuvwxyzAB\n"
    )
    (place / "personalities").mkdir()
    (place / "personalities" / "mine.md").write_text("# Mine\n")
    with Memory.open(place, namespace="agent/tiers") as memory:  # without any chunk
        memory.store.files.write("memory/long_term/valve.md", b"# Valve\n\nIt opens at two metres.\n")
    (place / "workspace" / "state").mkdir(parents=True)
    (place / "workspace" / "state" / "goals.md").write_text("goals\n")
    return place


def backed_up(brain: Path, target: Path) -> Path:
    with Memory.open(brain) as memory:
        back_up(memory.store, target)
    return target


def told(memory: Memory) -> dict[str, object]:
    """Everything that a memory can say about its chunks and their past."""
    chunks = {chunk.id: chunk.to_dict() for chunk in memory.store.iter_chunks()}
    for data in chunks.values():
        data["metadata"].pop("accessed_at")
        data["metadata"].pop("access_count")
    return {
        "chunks": chunks,
        "archived": memory.list_chunks(archived=True),
        "history": {item: [version.revision for version in memory.history(item)] for item in chunks},
        "events": [(event["op"], event.get("chunk_id")) for event in memory.store.events()],
        "tags": memory.tags(),
    }


def test_what_was_backed_up_comes_back_whole(brain: Path, tmp_path: Path) -> None:
    file = backed_up(brain, tmp_path / "backup.tar.gz")
    info = read_backup(file)
    assert info.chunks == 13
    assert sorted(info.namespaces) == ["agent/other", "agent/tiers", "default"]
    restored = restore_folder(file, tmp_path / "again")
    assert (restored.chunks, restored.unreadable, restored.kept) == (13, 0, None)
    for namespace in ("default", "agent/other"):
        with (
            Memory.open(brain, namespace=namespace) as before,
            Memory.open(tmp_path / "again", namespace=namespace) as after,
        ):
            assert told(after) == told(before)
            assert check(after.store) == []
            assert after.get(after.list_chunks()[-1]) is not None
    with Memory.open(tmp_path / "again") as after:
        assert after.config.recall.max_iterations == 7
        assert after.search("harbour")
        assert after.restore(after.list_chunks(archived=True)[0]) is not None
    assert (tmp_path / "again" / "personalities" / "mine.md").read_text() == "# Mine\n"
    assert (tmp_path / "again" / "workspace" / "state" / "goals.md").exists()


def test_a_backup_holds_no_key_no_index_and_leaves_nothing_behind(brain: Path, tmp_path: Path) -> None:
    file = backed_up(brain, tmp_path / "backup.tar.gz")
    with tarfile.open(file) as archive:
        names = archive.getnames()
        config = archive.extractfile("brain/config.toml")
        assert config is not None
        assert b"ghp_" not in config.read()
    assert not [name for name in names if "/index/" in name or "/.tmp" in name or "/.backup" in name]
    assert not list(brain.glob(f"{backup_module.STAGING}*"))


def test_a_backup_names_what_it_leaves_out_and_is_restored_without_it(brain: Path, tmp_path: Path) -> None:
    first, second, *_ = sorted((brain / "memory" / "chunks").rglob("*.json"))
    os.replace(first, tmp_path / "elsewhere.json")
    first.symlink_to(tmp_path / "elsewhere.json")
    os.replace(second, second.with_name("with\\backslash.json"))
    (brain / "personalities" / "other.md").symlink_to(brain / "personalities" / "mine.md")
    (brain / "personalities" / os.fsdecode(b"caf\xe9.md")).write_text("# Mine\n")
    file = tmp_path / "backup.tar.gz"
    with Memory.open(brain) as memory:
        made = back_up(memory.store, file)
    month = first.parent.relative_to(brain)
    expected = [f"{month}/with\\backslash.json", "personalities/caf\\xe9.md", "personalities/other.md"]
    assert made.left_out == expected
    assert read_backup(file).left_out == expected
    assert restore_folder(file, tmp_path / "again").chunks == made.chunks == 12


def test_a_brain_below_a_folder_whose_name_is_no_unicode_text_is_kept_whole(tmp_path: Path) -> None:
    brain = tmp_path / os.fsdecode(b"caf\xe9") / "brain"
    with Memory.open(brain) as memory:
        memory.remember("The gate code is 4471.")
    shutil.rmtree(brain / "memory" / "index")
    with Memory.open(brain) as memory:
        assert "4471" in str(memory.recall("What is the gate code?").content)
        made = back_up(memory.store, tmp_path / "backup.tar.gz")
    assert (made.chunks, made.left_out) == (1, [])
    assert restore_folder(tmp_path / "backup.tar.gz", tmp_path / "again").chunks == 1


def test_two_folders_whose_names_differ_in_case_are_not_restored_as_one(
    brain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for namespace in ("Team", "team"):
        with ChunkStore(brain / "memory", namespace=namespace) as store:
            store.files.write("system/memory_log.md", namespace.encode())
    with ChunkStore(brain / "memory") as store:
        back_up(store, tmp_path / "backup.tar.gz")
    mkdir = Path.mkdir

    def ignoring_case(path: Path, *args: Any, **more: Any) -> None:
        others = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        if path.name not in others and path.name.casefold() in map(str.casefold, others):
            raise FileExistsError(path)
        mkdir(path, *args, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", ignoring_case)
        with pytest.raises(StorageError, match="name differs only in case"):
            restore_folder(tmp_path / "backup.tar.gz", tmp_path / "again")
    assert not (tmp_path / "again").exists()
    restore_folder(tmp_path / "backup.tar.gz", tmp_path / "again")


def test_what_a_killed_backup_or_restore_left_is_removed_by_the_next_one(brain: Path, tmp_path: Path) -> None:
    file = backed_up(brain, tmp_path / "b.tar.gz")
    left = [
        brain / ".backup-0a0a0a0a",
        tmp_path / ".again.restoring-0b0b0b0b",
        tmp_path / ".rlm-mem-backup-0c0c0c0c",
    ]
    with staging_folder(tmp_path, ".again.restoring-") as used:  # by a process that is alive
        for folder in (*left, used):
            (folder / "memory").mkdir(parents=True)
            os.utime(folder, (1, 1))
        restore_folder(file, tmp_path / "again")
        assert used.is_dir()
    backed_up(brain, tmp_path / "c.tar.gz")
    assert not any(folder.exists() for folder in (*left, used))


def test_what_a_killed_backup_left_is_erased_with_the_memory_and_a_living_one_is_not_touched(
    brain: Path,
) -> None:
    chunk = next((brain / "memory" / "chunks").rglob("*.json"))
    left = brain / ".backup-0a0a0a0a"
    with staging_folder(brain, backup_module.STAGING) as used, Memory.open(brain) as memory:
        memory.remember("Vera lives in Halle.")
        for folder in (left, used):
            folder.mkdir(exist_ok=True)
            os.link(chunk, folder / chunk.name)
        memory.erase(person="Vera", dry_run=False)
        assert not left.exists()
        assert (used / chunk.name).exists()


def test_access_counts_travel_with_the_backup(brain: Path, tmp_path: Path) -> None:
    with Memory.open(brain) as memory:
        read = memory.list_chunks()[0]
        for _ in range(3):
            memory.get(read)
        back_up(memory.store, tmp_path / "backup.tar.gz")
    restore_folder(tmp_path / "backup.tar.gz", tmp_path / "again")
    with Memory.open(tmp_path / "again") as memory:
        assert memory.store.summaries([read])[0].access_count == 3


HAMMER = """
import sys
import time
from rlm_mem.memory import Memory
with Memory.open(sys.argv[1]) as memory:
    number = 0
    mine = []
    while True:
        number += 1
        with memory.batch():  # both halves, or none
            tags = ["pair", f"p{number}"]
            pair = [memory.store.create_chunk(f"half {half} of {number}", tags=tags).id for half in "ab"]
        mine.append(pair)
        if number % 3 == 0:
            with memory.batch():
                for one in mine[number // 2]:
                    memory.update(one, content=f"changed in {number}")
        if number % 4 == 0:
            with memory.batch():
                for one in mine[number // 4]:
                    memory.delete(one)
        if number % 5 == 0 and len(mine) > 9:
            with memory.batch():
                for one in mine[number - 3]:
                    memory.delete(one, permanent=True)
        print(number, flush=True)
        time.sleep(0.02)
"""


def test_a_backup_is_one_moment_while_others_write(brain: Path, tmp_path: Path) -> None:
    """Two processes write, change, archive and erase chunks in pairs, each pair in one commit."""
    writers = [
        subprocess.Popen([sys.executable, "-c", HAMMER, str(brain)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        acknowledged = []
        for writer in writers:
            assert writer.stdout is not None
            for _ in range(3):
                acknowledged.append(int(writer.stdout.readline()))
        for number in range(3):
            with Memory.open(brain) as memory:
                before = set(memory.list_chunks()) | set(memory.list_chunks(archived=True))
                back_up(memory.store, tmp_path / f"backup-{number}.tar.gz")
            assert all(writer.poll() is None for writer in writers)
            restored = restore_folder(tmp_path / f"backup-{number}.tar.gz", tmp_path / f"again-{number}")
            assert restored.unreadable == 0
            with Memory.open(tmp_path / f"again-{number}") as memory:
                assert check(memory.store) == []
                pairs: dict[str, list[tuple[str, int]]] = {}
                for archived in (False, True):
                    for chunk in memory.store.iter_chunks(archived=archived):
                        if "pair" in chunk.tags:
                            text = chunk.content.split(" of ")[0] if chunk.revision == 1 else chunk.content
                            pairs.setdefault(chunk.tags[1] + str(chunk.metadata.created_at)[:0], []).append(
                                (f"{archived} {chunk.revision}", len(text))
                            )
                # Two writers use the same tags: per tag, halves of each pair are in the same state.
                assert pairs
                for tag, halves in pairs.items():
                    states = [state for state, _ in halves]
                    assert len(states) % 2 == 0, (tag, halves)
                    assert all(states.count(state) % 2 == 0 for state in states), (tag, halves)
                now = set(memory.list_chunks()) | set(memory.list_chunks(archived=True))
                with Memory.open(brain) as source:
                    erased = {str(event["chunk_id"]) for event in source.store.events(op="erase")}
                assert before - now <= erased, (
                    "what was acknowledged before the backup is in it, unless erased"
                )
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
            assert writer.stdout is not None
            writer.stdout.close()


def test_a_write_that_is_rolled_back_is_in_no_backup(
    brain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer's files stand in their places before its commit fails: the backup must not take them for written."""
    in_place, go_on = threading.Event(), threading.Event()
    sync_folder = files.sync_folder

    def stop_there(path: Path) -> None:
        if threading.current_thread().name == "writer":
            in_place.set()
            go_on.wait(20)
            raise OSError(5, "Input/output error")
        sync_folder(path)

    monkeypatch.setattr(files, "sync_folder", stop_there)
    failed: list[BaseException] = []

    def write() -> None:
        with Memory.open(brain) as memory:
            try:
                with memory.batch():
                    memory.store.create_chunk("never acknowledged")
                    memory.update(memory.list_chunks(tags=["all"])[0], content="never acknowledged either")
            except StorageError as error:
                failed.append(error)

    writer = threading.Thread(target=write, name="writer")
    with Memory.open(brain) as memory:
        link_all = backup_module._Stage.link_all

        def slowly(stage: backup_module._Stage) -> None:
            writer.start()
            assert in_place.wait(20)
            link_all(stage)
            go_on.set()

        monkeypatch.setattr(backup_module._Stage, "link_all", slowly)
        back_up(memory.store, tmp_path / "backup.tar.gz")
    writer.join()
    assert failed
    restore_folder(tmp_path / "backup.tar.gz", tmp_path / "again")
    with Memory.open(tmp_path / "again") as memory, Memory.open(brain) as source:
        assert told(memory)["chunks"] == told(source)["chunks"]
        assert check(memory.store) == []


def test_the_write_lock_is_not_held_while_files_are_packed(brain: Path, tmp_path: Path) -> None:
    with Memory.open(brain) as memory, Memory.open(brain) as other:
        written: list[str] = []
        back_up(
            memory.store,
            tmp_path / "backup.tar.gz",
            progress=lambda _done, _total: written.append(other.store.create_chunk("meanwhile").id),
        )
        assert written
    restore_folder(tmp_path / "backup.tar.gz", tmp_path / "again")
    with Memory.open(tmp_path / "again") as memory:
        assert not set(written) & set(memory.list_chunks())


@pytest.mark.parametrize("without", ["hard links"])
def test_backups_work_without_hard_links(
    brain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(1, f"no {without}")

    monkeypatch.setattr(os, "link", refuse)
    restored = restore_folder(backed_up(brain, tmp_path / "b.tar.gz"), tmp_path / "again")
    assert restored.chunks == 13


# --- damage and refusals -----------------------------------------------------------------------------------------


Members = list[tuple[str, bytes]]


def repacked(file: Path, target: Path, change: Callable[[Members], Members]) -> Path:
    """The backup with its members (name, bytes) put through ``change``."""
    with tarfile.open(file) as archive:
        members = [(entry.name, present(archive.extractfile(entry)).read()) for entry in archive]
    with tarfile.open(target, "w:gz") as archive:
        for name, data in change(members):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return target


def flipped(members: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    return [
        (name, data.replace(b"harbour", b"harbor!") if "/chunks/" in name else data) for name, data in members
    ]


def escaping(members: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    return [*members[:-1], ("brain/../../outside.txt", b"x"), members[-1]]


DAMAGE = {
    "a byte of a file": flipped,
    "a missing file": lambda members: [item for item in members if "personalities" not in item[0]],
    "an added file": lambda members: [*members[:-1], ("brain/more.txt", b"x"), members[-1]],
    "a path that leads out": escaping,
    "an absolute path": lambda members: [*members[:-1], ("brain//etc/x", b"x"), members[-1]],
    "no manifest": lambda members: members[:-1],
    "a file twice": lambda members: [*members[:-1], members[1], members[-1]],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_backup_is_refused_and_nothing_is_changed(brain: Path, tmp_path: Path, damage: str) -> None:
    file = repacked(backed_up(brain, tmp_path / "good.tar.gz"), tmp_path / "bad.tar.gz", DAMAGE[damage])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CorruptStore):
        read_backup(file)
    with pytest.raises(CorruptStore):
        restore_folder(file, brain, replace=True)
    with pytest.raises(CorruptStore):
        restore_folder(file, tmp_path / "again")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9])
def test_a_backup_that_was_cut_off_is_refused(brain: Path, tmp_path: Path, kept: float) -> None:
    file = backed_up(brain, tmp_path / "good.tar.gz")
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(file.read_bytes()[: int(file.stat().st_size * kept)])
    with pytest.raises((CorruptStore, InputError)):
        restore_folder(cut, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_other_files_than_backups_are_refused(tmp_path: Path) -> None:
    for data in (b"hello", gzip.compress(b"hello"), b""):
        (tmp_path / "file").write_bytes(data)
        with pytest.raises(InputError):
            read_backup(tmp_path / "file")
    with pytest.raises(InputError):
        read_backup(tmp_path / "missing")


def test_a_backup_of_a_later_format_is_refused_with_what_to_do(brain: Path, tmp_path: Path) -> None:
    def later(members: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        head = {**json.loads(members[0][1]), "format": 99, "version": "9.0"}
        return [(members[0][0], json.dumps(head).encode()), *members[1:]]

    file = repacked(backed_up(brain, tmp_path / "good.tar.gz"), tmp_path / "later.tar.gz", later)
    with pytest.raises(InputError) as caught:
        restore_folder(file, tmp_path / "again")
    assert "9.0" in caught.value.message
    assert caught.value.hint is not None


def test_a_backup_with_chunks_of_older_shapes_is_restored(brain: Path, tmp_path: Path) -> None:
    """Made by an earlier version: chunk files of an older shape, and a description that says less."""
    import hashlib

    old = {
        "id": "chunk-2024-01-02-aaaa1111", "content": "An old note.", "type": "fact", "tokens": 4,
        "metadata": {"created": "2024-01-02T03:04:05Z", "last_accessed": "2024-01-02T03:04:05Z", "confidence": 0.9},
        "links": {"related_to": []}, "tags": ["old"],
    }  # fmt: skip
    data = json.dumps(old).encode()
    line = {
        "path": f"memory/chunks/2024-01/{old['id']}.json",
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }

    def older(members: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        return [
            (members[0][0], json.dumps({"format": 1, "chunks": 1}).encode()),
            (f"brain/{line['path']}", data),
            (members[-1][0], json.dumps(line).encode() + b"\n"),
        ]

    file = repacked(backed_up(brain, tmp_path / "good.tar.gz"), tmp_path / "older.tar.gz", older)
    assert restore_folder(file, tmp_path / "again").chunks == 1
    with Memory.open(tmp_path / "again") as memory:
        assert memory.get(str(old["id"])) is not None


def test_a_brain_that_is_there_is_replaced_only_when_asked_and_kept(brain: Path, tmp_path: Path) -> None:
    file = backed_up(brain, tmp_path / "backup.tar.gz")
    with Memory.open(brain) as memory:
        later = memory.remember("Written after the backup.").chunk_ids[0]
    with pytest.raises(InputError) as caught:
        restore_folder(file, brain)
    assert "--replace" in str(caught.value.hint)
    restored = restore_folder(file, brain, replace=True)
    assert restored.kept is not None
    with Memory.open(brain) as memory, Memory.open(restored.kept) as former:
        assert memory.get(later) is None
        assert former.get(later) is not None


def test_a_store_that_is_read_only_or_in_no_brain_is_not_backed_up(brain: Path, tmp_path: Path) -> None:
    with (
        ChunkStore(brain / "memory", read_only=True) as store,
        pytest.raises(StoreReadOnly, match="cannot be locked"),
    ):
        back_up(store, tmp_path / "backup.tar.gz")
    with (
        ChunkStore(tmp_path / "chunks-only") as store,
        pytest.raises(InputError, match="is not the store of a brain"),
    ):
        back_up(store, tmp_path / "backup.tar.gz")
    assert not (tmp_path / "backup.tar.gz").exists()


def test_a_brain_that_cannot_be_replaced_is_left_in_its_place(
    brain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = backed_up(brain, tmp_path / "backup.tar.gz")
    rename = Path.rename

    def refused(source: Path, target: Path) -> Path:
        if ".restoring-" in source.name:
            raise OSError(errno.EACCES, "Permission denied")
        return rename(source, target)

    before = sorted(path.name for path in tmp_path.iterdir())
    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(StorageError, match="Permission denied"):
        restore_folder(file, brain, replace=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    with Memory.open(brain) as memory:
        assert memory.list_chunks()
    monkeypatch.undo()
    (tmp_path / "empty").mkdir()
    assert restore_folder(file, tmp_path / "empty").kept is None
    with Memory.open(tmp_path / "empty") as memory:
        assert memory.list_chunks()


def test_a_store_that_is_open_while_it_is_replaced_sees_what_was_restored(
    brain: Path, tmp_path: Path
) -> None:
    with Memory.open(brain) as memory:
        back_up(memory.store, tmp_path / "backup.tar.gz")
        before = memory.list_chunks()
        later = memory.remember("Written after the backup.").chunk_ids[0]
        restore_folder(tmp_path / "backup.tar.gz", brain, replace=True)
        assert memory.list_chunks() == before
        assert memory.get(later) is None
        new = memory.remember("Written after the restore.").chunk_ids[0]
    with Memory.open(brain) as memory:
        assert memory.get(new) is not None


def test_a_full_disk_leaves_no_half_backup(
    brain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with Memory.open(brain) as memory:
        monkeypatch.setattr(files, "sync_files", full)
        with pytest.raises(StorageError):
            back_up(memory.store, tmp_path / "backup.tar.gz")
        monkeypatch.undo()
    assert not [path for path in tmp_path.iterdir() if "backup" in path.name]


def test_an_existing_file_is_not_overwritten(place: Path | str, tmp_path: Path) -> None:
    target = tmp_path / "backup.tar.gz"
    with Memory.open(place) as memory:
        memory.remember("The quince blooms.")
        with pytest.raises(InputError, match="exists by now"):
            back_up(memory.store, target, progress=lambda *_: target.write_text("precious"))
        with pytest.raises(InputError, match="exists already"):
            back_up(memory.store, target)
    assert target.read_text() == "precious"


def test_a_log_that_grows_while_it_is_packed_is_cut_at_the_moment_of_the_backup(
    brain: Path, tmp_path: Path
) -> None:
    with Memory.open(brain) as memory:
        lines = len(list(memory.store.events()))
        back_up(
            memory.store,
            tmp_path / "backup.tar.gz",
            progress=lambda *_: memory.store.record_event("repeat", [], said="later"),
        )
        assert len(list(memory.store.events())) > lines
    restore_folder(tmp_path / "backup.tar.gz", tmp_path / "again")
    with Memory.open(tmp_path / "again") as memory:
        assert len(list(memory.store.events())) == lines


@pytest.mark.local_only("restores folders")
def test_a_brain_behind_a_link_is_restored_where_it_is(tmp_path: Path) -> None:
    with ChunkStore(tmp_path / "brain" / "memory") as store:
        made = store.create_chunk("Tessa keeps the key.")
        back_up(store, tmp_path / "backup.tar.gz")
    (tmp_path / "disk" / "brain").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "brain")
    for replace in (False, True):
        restored = restore_backup(tmp_path / "backup.tar.gz", tmp_path / "link", replace=replace)
        assert (tmp_path / "link").is_symlink() and restored.brain == tmp_path / "disk" / "brain"
        with ChunkStore(tmp_path / "link" / "memory") as store:
            assert store.list_chunks() == [made.id]
    assert restored.kept is not None and restored.kept.parent == tmp_path / "disk"


@pytest.mark.local_only("links in a folder")
def test_a_backup_names_the_linked_folders_that_it_leaves_out(tmp_path: Path) -> None:
    place = tmp_path / "brain" / "memory"
    with ChunkStore(place) as store:
        store.create_chunk("Tessa keeps the key.")
        store.delete_chunk(store.create_chunk("Tessa had the key.").id)
        store.files.write("archive/memory/long_term/x.md", b"archived")
    for folder in ("chunks", "archive"):
        (place / folder).rename(tmp_path / folder)
        (place / folder).symlink_to(tmp_path / folder)
    with ChunkStore(place) as store:
        info = back_up(store, tmp_path / "backup.tar.gz")
        assert (info.chunks, info.left_out) == (2, ["memory/archive"])
