"""Backups of databases: the same file as of a folder, restored into either kind, of one moment while others write."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rlm_mem.errors import InputError
from rlm_mem.memory import Memory
from rlm_mem.store.backup import back_up, restore_backup, vacuum
from rlm_mem.store.core.backup_archive import read_backup
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.copying import compare
from tests.postgres import Databases


def fill(place: Path | str, namespace: str = "default") -> None:
    with Memory.open(place, namespace=namespace) as memory:
        for number in range(8):
            memory.remember(
                f"{namespace}: note {number} about the harbour.", conversation_id="c", tags=["all"]
            )
        ids = memory.list_chunks()
        memory.update(ids[0], content="corrected")
        memory.delete(ids[1])


def made(place: Path | str, target: Path, only: str | None = None) -> Path:
    with Memory.open(place) as memory:
        back_up(memory.store, target, only=only)
    return target


def same(one: Path | str, other: Path | str, namespace: str = "default") -> bool:
    with Memory.open(one, namespace=namespace) as left, Memory.open(other, namespace=namespace) as right:
        return compare(left.store, right.store) == []


def test_a_database_is_restored_into_a_folder_and_into_another_database(
    dsn: str, databases: Databases, tmp_path: Path
) -> None:
    fill(dsn)
    fill(dsn, "agent/other")
    file = made(dsn, tmp_path / "b.tar.gz")
    info = read_backup(file)
    assert (info.source, sorted(info.namespaces), info.chunks) == (
        "postgresql",
        ["agent/other", "default"],
        16,
    )
    restore_backup(file, tmp_path / "folder")
    with databases.lend() as second:
        restore_backup(file, second)
        for namespace in info.namespaces:
            assert same(dsn, tmp_path / "folder", namespace)
            assert same(dsn, second, namespace)
        with Memory.open(second) as memory:
            assert memory.search("harbour")
            assert memory.check() == []


def test_a_folder_is_restored_into_a_database(dsn: str, tmp_path: Path) -> None:
    fill(tmp_path / "brain")
    restore_backup(made(tmp_path / "brain", tmp_path / "b.tar.gz"), dsn)
    assert same(tmp_path / "brain", dsn)


def test_one_namespace_of_a_database(dsn: str, tmp_path: Path) -> None:
    fill(dsn)
    fill(dsn, "agent/other")
    assert read_backup(made(dsn, tmp_path / "b.tar.gz", only="agent/other")).namespaces == ["agent/other"]


def test_memories_in_a_database_are_replaced_only_when_asked_and_kept(dsn: str, tmp_path: Path) -> None:
    fill(dsn)
    file = made(dsn, tmp_path / "b.tar.gz")
    with Memory.open(dsn) as memory:
        before = memory.list_chunks()
        later = memory.remember("Written after the backup.").chunk_ids[0]
    with pytest.raises(InputError):
        restore_backup(file, dsn)
    restored = restore_backup(file, dsn, replace=True)
    with Memory.open(dsn) as memory:
        assert memory.list_chunks() == before
    assert restored.kept is not None
    restore_backup(restored.kept, tmp_path / "former")
    with Memory.open(tmp_path / "former") as memory:
        assert memory.get(later) is not None


def test_the_same_id_in_two_namespaces_is_reported(dsn: str, tmp_path: Path) -> None:
    for namespace in ("one", "two"):
        with ChunkStore(dsn, namespace=namespace) as store:
            store.create_chunk("a note", chunk_id="chunk-2026-01-01-00000001")
    with pytest.raises(InputError, match="chunk-2026-01-01-00000001"):
        made(dsn, tmp_path / "b.tar.gz")
    assert list(tmp_path.iterdir()) == []
    assert read_backup(made(dsn, tmp_path / "b.tar.gz", only="two")).chunks == 1


def test_a_backup_of_a_database_is_one_moment_while_others_write(dsn: str, tmp_path: Path) -> None:
    stop = threading.Event()
    failed: list[BaseException] = []

    def hammer() -> None:
        try:
            with Memory.open(dsn) as memory:
                number, mine = 0, []
                while not stop.is_set():
                    number += 1
                    with memory.batch():
                        mine.append(
                            [memory.store.create_chunk(f"{half} {number}", tags=["pair"]).id for half in "ab"]
                        )
                    with memory.batch():
                        for one in mine[number // 2]:
                            memory.update(one, content=f"changed in {number}")
                    if number % 3 == 0:
                        with memory.batch():
                            for one in mine[number // 3]:
                                memory.delete(one, permanent=number % 2 == 0)
        except BaseException as error:
            failed.append(error)
            raise

    fill(dsn)
    writer = threading.Thread(target=hammer)
    writer.start()
    try:
        for number in range(3):
            made(dsn, tmp_path / f"{number}.tar.gz")
            restored = restore_backup(tmp_path / f"{number}.tar.gz", tmp_path / f"{number}")
            assert restored.unreadable == 0
            with Memory.open(tmp_path / f"{number}") as memory:
                for archived in (False, True):
                    states = [
                        (chunk.revision, chunk.content.split()[-1])
                        for chunk in memory.store.iter_chunks(archived=archived)
                        if "pair" in chunk.tags
                    ]
                    assert all(states.count(state) % 2 == 0 for state in states), states
    finally:
        stop.set()
        writer.join()
    assert failed == []


def test_vacuum_of_a_database_says_sizes(dsn: str) -> None:
    fill(dsn)
    with Memory.open(dsn) as memory:
        done = vacuum(memory.store)
        assert done.before.keys() == done.after.keys()
        assert done.after["chunks"] > 0
        assert len(memory.list_chunks()) == 7
