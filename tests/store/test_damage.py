"""Files of the index are damaged while processes use them: no process dies of it, and no memory is lost."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check

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
        store.backend.postings(store.namespace).rebuild(store.backend.connection)  # type: ignore[attr-defined]
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
            files = [path for path in (base / "index").rglob("*") if path.is_file()]
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
