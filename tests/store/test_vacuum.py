"""Vacuum: room comes back, nothing else changes, and others may be at work."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rlm_mem.errors import StoreFull, StoreReadOnly
from rlm_mem.memory import Memory
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from rlm_mem.store.local.local_backend import LocalBackend
from rlm_mem.store.local.vacuum import vacuum_folder


def backend_of(memory: Memory) -> LocalBackend:
    assert isinstance(memory.store.backend, LocalBackend)
    return memory.store.backend


@pytest.fixture
def brain(tmp_path: Path) -> Path:
    """A brain from which much was erased, with what killed processes and damage left in its index."""
    place = tmp_path / "brain"
    with Memory.open(place) as memory:
        with memory.batch():
            ids = [
                memory.store.create_chunk(f"note {n} " + "word " * 200, tags=["all"]).id for n in range(300)
            ]
        backend_of(memory).postings.of("default").merge(backend_of(memory).connection)
        with memory.batch():
            for one in ids[10:]:
                memory.store.drop_chunk(one)  # without the rest of an erasure, which frees the space itself
    postings = next((place / "memory" / "index" / "postings").iterdir())
    current = next(path for path in postings.iterdir() if path.is_dir())
    shutil.copytree(current, postings / "0123456789abcdef")
    shutil.copytree(current, postings.with_name("77") / "fedcba9876543210")
    (place / "memory" / "index" / "index.sqlite.damaged-20260101-000000").write_bytes(b"x" * 100_000)
    return place


def test_it_gives_room_back_and_changes_no_answer(brain: Path) -> None:
    with Memory.open(brain) as memory:
        ids, hits = memory.list_chunks(), [hit.chunk_id for hit in memory.search("note word")]
        steps: list[tuple[int, int]] = []
        done = vacuum_folder(backend_of(memory), progress=lambda now, of: steps.append((now, of)))
        assert done.freed > 100_000
        assert done.after["index"] < done.before["index"]
        assert done.after["set aside"] == 0
        assert steps[-1][0] == steps[-1][1]
        assert [now for now, _ in steps] == sorted(now for now, _ in steps)
        assert memory.list_chunks() == ids
        assert [hit.chunk_id for hit in memory.search("note word")] == hits
        assert check(memory.store) == []
    left = [path.name for path in (brain / "memory" / "index" / "postings").rglob("*") if path.is_dir()]
    assert not {"0123456789abcdef", "fedcba9876543210"} & set(left)
    with Memory.open(brain) as memory:
        assert memory.list_chunks() == ids


def test_a_second_time_there_is_nothing_to_give_back(brain: Path) -> None:
    with Memory.open(brain) as memory:
        first = vacuum_folder(backend_of(memory))
        assert vacuum_folder(backend_of(memory)).before == first.after


def test_others_write_and_search_meanwhile(brain: Path) -> None:
    script = (
        "import sys\nfrom rlm_mem.memory import Memory\n"
        "with Memory.open(sys.argv[1]) as memory:\n"
        "    for n in range(40):\n"
        "        made = memory.remember(f'needle{n} in the hay')\n"
        "        assert memory.search(f'needle{n}')[0].chunk_id == made.chunk_ids[0]\n"
        "        print(n, flush=True)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", script, str(brain)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    other.stdout.readline()
    with Memory.open(brain) as memory:
        rounds = 0
        while other.poll() is None:
            vacuum_folder(backend_of(memory))
            rounds += 1
        assert other.returncode == 0, other.stdout.read()
        assert rounds > 1
        assert len(memory.search("hay", limit=100)) == 40
        assert check(memory.store) == []
    other.stdout.close()


def test_a_store_opened_for_reading_is_left_alone(brain: Path) -> None:
    with Memory.open(brain, read_only=True) as memory, pytest.raises(StoreReadOnly):
        vacuum_folder(backend_of(memory))


def test_a_full_disk_is_named_and_nothing_is_lost(brain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Memory.open(brain) as memory:
        made = memory.remember("The mast is of oak.").chunk_ids
        with monkeypatch.context() as patched:
            patched.setattr("rlm_mem.store.local.postings.save_snapshot", full)
            with pytest.raises(StoreFull, match="the disk is full"):
                vacuum_folder(backend_of(memory))
        assert [hit.chunk_id for hit in memory.search("oak")] == made
        vacuum_folder(backend_of(memory))


def test_unfinished_files_of_other_programs_beside_a_store_are_left(tmp_path: Path) -> None:
    name = ".report.md.4711.0a1b2c3d0.tmp"
    for place in ("other", "brain/src", "brain/system"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / name).write_text("unfinished")
        os.utime(tmp_path / place / name, (0, 0))
    for base in (tmp_path / "store", tmp_path / "brain" / "memory"):
        with ChunkStore(base) as store:
            store.create_chunk("kept")
            assert isinstance(store.backend, LocalBackend)
            vacuum_folder(store.backend)
    assert sorted(path.parent.name for path in tmp_path.rglob(name)) == ["other", "src"]
