"""Files of the index are damaged while processes use them: no process dies of it, and no memory is lost."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.errors import CorruptStore
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from rlm_mem.store.local import connections, postings as postings_module
from tests.typed import local

pytestmark = pytest.mark.local_only("damage the files of the index")

# Writes and searches until it is told to stop; a line of its output for each memory that was acknowledged.
USER = """
    import sys, pathlib
    from rlm_mem.errors import StorageError
    from rlm_mem.search import search
    from rlm_mem.store.core.chunk_store import ChunkStore
    base, name, stop = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    number = 0
    with ChunkStore(base) as store:
        while not stop.exists():
            number += 1
            try:
                print(store.create_chunk(f"{name} saw heron number {number}", tags=["t"]).id, flush=True)
            except StorageError as error:
                assert error.hint, error
            try:
                search(store, f"heron number {number}", limit=5)
                store.list_chunks(tags=["t"])
            except StorageError as error:  # damaged again and again while it was asked
                assert error.hint, error
"""


def damage(path: Path, chance: random.Random) -> None:
    """One thing that may befall a file; gone already is fine, since somebody may be rebuilding."""
    try:
        size = path.stat().st_size
        kind = chance.choice(["empty", "half", "page less", "some bytes", "grow", "overwrite", "delete"])
        if kind == "delete":
            path.unlink()
        elif kind in ("grow", "overwrite"):
            with path.open("r+b") as file:
                file.seek(size if kind == "grow" else chance.randrange(size or 1))
                file.write(os.urandom(5000))
        else:
            shorter = {"empty": 0, "half": size // 2, "page less": size - 4096, "some bytes": size - 7}
            os.truncate(path, max(0, shorter[kind]))
    except FileNotFoundError:
        pass


@pytest.mark.parametrize("seed", range(2))
def test_no_process_dies_of_a_damaged_index_and_no_acknowledged_memory_is_lost(
    base: Path, tmp_path: Path, seed: int
) -> None:
    with ChunkStore(base) as store:
        first = [store.create_chunk(f"a heron at pond {number}", tags=["t"]).id for number in range(60)]
        local(store.backend).postings.of(store.namespace).merge(local(store.backend).connection)
        search(store, "heron")
    stop, chance = tmp_path / "stop", random.Random(seed)
    users = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(USER), str(base), name, str(stop)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"RLM_MEM_STORE_LOCK_WAIT_SECONDS": "2"},
        )
        for name in ("Ada", "Ben")
    ]  # fmt: skip
    acknowledged = set(first)
    try:
        for number in range(40):
            # Unlike rglob, os.walk passes over folders that go away meanwhile.
            files = [Path(folder, name) for folder, _, names in os.walk(base / "index") for name in names]
            damage(chance.choice(files), chance)
            said = users[number % 2].stdout
            assert said is not None
            acknowledged.add(said.readline().strip())  # empty where the process has ended
    finally:
        stop.touch()
        for user in users:
            assert user.stdout is not None
            acknowledged |= set(user.stdout.read().splitlines())
        failures = [user.stderr.read() for user in users if user.stderr is not None]
    assert [user.wait() for user in users] == [0, 0], failures
    assert len(acknowledged) >= 60 + 40
    with ChunkStore(base) as store:
        store.sync(full=True)
        assert acknowledged <= set(store.list_chunks(tags=["t"], limit=100_000))
        assert {hit.chunk_id for hit in search(store, "pond", limit=100)} >= set(first)
        assert [finding.code for finding in check(store)] == []


def test_a_search_ends_where_every_new_snapshot_is_damaged_before_it_is_read(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = postings_module.save_snapshot

    def spoiled(snapshot: object, folder: Path) -> None:
        write(snapshot, folder)  # type: ignore[arg-type]
        os.truncate(folder / "doc.npy", 10)

    monkeypatch.setattr(postings_module, "save_snapshot", spoiled)
    answers: list[int] = []

    def ask() -> None:
        with ChunkStore(base) as store:
            with store.batch():
                for number in range(1_100):  # too many to be searched without a snapshot
                    store.create_chunk(f"heron number {number}")
            answers.append(len(search(store, "heron", limit=5)))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(60)  # it waited forever for a lock of its own
    assert answers == [5]


def test_an_index_that_is_damaged_again_while_it_is_opened_is_asked_through_a_new_connection(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChunkStore(base) as store:
        chunk_id = store.create_chunk("a heron").id
        backend, syncs, healed = local(store.backend), 0, list[bool]()
        sync = backend.sync

        def damaged_again(**options: Any) -> object:
            nonlocal syncs
            syncs += 1
            report = sync(**options)
            if syncs == 2:  # within the first, which opens the connection
                error = sqlite3.DatabaseError("no such table: chunks")
                healed.append(backend.heal(error, backend._connections.generation))
            return report

        monkeypatch.setattr(backend, "sync", damaged_again)
        (base / "index" / "index.sqlite").unlink()
        store.sync()  # it went on with the connection that had been closed
        assert healed == [True]
        assert store.list_chunks() == [chunk_id]


def test_a_change_that_another_process_cleared_away_with_a_replaced_index_is_to_be_repeated(
    base: Path,
) -> None:
    with ChunkStore(base) as store:
        first = store.create_chunk("a heron").id
        with pytest.raises(CorruptStore, match="nothing was changed") as failure, store.batch():
            store.create_chunk("a grebe")
            (base / "index" / "index.sqlite").unlink()
            with ChunkStore(
                base
            ) as other:  # takes the lock of the new index, under which nothing is in progress
                second = other.create_chunk("a coot").id
        assert failure.value.hint == "repeat the change"
        third = store.create_chunk("a grebe").id
        assert sorted(store.list_chunks()) == sorted([first, second, third])
        assert [finding.code for finding in check(store)] == []


def marks(base: Path) -> list[str]:
    return [path.name for path in (base / "index").glob("unsynced-*")]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux names its boots in a file")
def test_an_index_that_may_be_half_written_since_the_system_went_down_is_built_anew(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChunkStore(base) as store:
        store.create_chunk("a heron", tags=["t"])
        assert len(marks(base)) == 1
        store.checkpoint()
        assert marks(base) == []
        store.create_chunk("one more heron", tags=["t"])
    assert marks(base) == []
    program = """
        import os, sys
        from rlm_mem.store.core.chunk_store import ChunkStore
        ChunkStore(sys.argv[1]).create_chunk("a heron before the end", tags=["t"])
        os._exit(0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(base)], check=True)
    assert len(marks(base)) == 1
    with sqlite3.connect(base / "index" / "index.sqlite") as connection:
        connection.execute("DELETE FROM tags")
    with ChunkStore(base) as store:  # the same boot: what a killed process wrote is whole, and not built anew
        assert len(store.list_chunks()) == 3
        assert store.list_chunks(tags=["t"]) == []
        store.create_chunk("herons go on")
        monkeypatch.setattr(connections, "_boot_id", lambda: "the-next-boot")
        with ChunkStore(base, read_only=True) as reader:
            assert len(reader.list_chunks(tags=["t"])) == 3
        with ChunkStore(base) as after:
            assert len(after.list_chunks(tags=["t"])) == 3
            assert len(search(after, "heron", limit=20)) == 4
            after.create_chunk("a heron of the next boot")
            assert marks(base) == ["unsynced-the-next-boot"]
        assert marks(base) == []


def test_without_a_name_of_the_boot_every_commit_is_synced(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_boot_id", str)
    with ChunkStore(base) as store:
        with store.batch():
            store.create_chunk("a heron")
            levels = local(store.backend).connection.execute("PRAGMA synchronous").fetchone()
        assert levels == (1,)
        assert marks(base) == []
