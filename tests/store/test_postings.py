"""The postings under what happens to a store: other processes, crashes, damage, batches, many threads."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from rlm_mem.access.confined import confined_memory
from rlm_mem.memory import Memory
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.local import local_index, postings as postings_module, schema
from rlm_mem.store.local.postings import PostingsIndex
from tests.forked import forked
from tests.typed import local
from tests.waiting import until

pytestmark = pytest.mark.local_only("look at the index beside the files")


def found(store: ChunkStore, query: str) -> list[str]:
    return [hit.snippet for hit in search(store, query)]


def fill(store: ChunkStore, count: int, word: str = "filler") -> None:
    with store.batch():
        for number in range(count):
            store.create_chunk(f"{word} number n{number} of the store", conversation_id=f"c{number // 20}")


def merge(store: ChunkStore) -> None:
    """Make a new snapshot, as another process would."""
    folder = Path(store.base_path) / "index"
    connection = schema.connect(folder / "index.sqlite", wait_seconds=30)
    try:
        row = connection.execute("SELECT ns FROM namespaces WHERE name = ?", (store.namespace,)).fetchone()
        PostingsIndex(folder / "postings", row[0]).merge(connection)
    finally:
        connection.close()


def waiting_changes(base: Path) -> int:
    with sqlite3.connect(base / "index" / "index.sqlite") as connection:
        return int(connection.execute("SELECT count(*) FROM changes").fetchone()[0])


def index_folder(base: Path) -> Path:
    return base / "index" / "postings"


def snapshots(base: Path) -> list[Path]:
    return [path.parent for path in index_folder(base).rglob("meta.json")]


SEARCHER = """
import sys
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
with ChunkStore(sys.argv[1]) as store:
    for line in sys.stdin:
        print([hit.snippet for hit in search(store, line.strip())], flush=True)
"""


def test_the_next_search_of_another_process_sees_every_write(store: ChunkStore, base: Path) -> None:
    store.create_chunk("The first memory is about walnuts.")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", SEARCHER, str(base)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    ) as other:  # fmt: skip
        assert other.stdin is not None
        assert other.stdout is not None

        def ask(query: str) -> str:
            assert other.stdin is not None
            assert other.stdout is not None
            other.stdin.write(query + "\n")
            other.stdin.flush()
            return other.stdout.readline().strip()

        assert "walnuts" in ask("walnuts")
        chunk = store.create_chunk("A second one is about hazelnuts.")
        assert "hazelnuts" in ask("hazelnuts")
        store.update_chunk(chunk.id, content="It is about almonds after all.")
        assert ask("hazelnuts") == "[]"
        assert "almonds" in ask("almonds")
        merge(store)
        store.delete_chunk(chunk.id)
        assert ask("almonds") == "[]"
        fill(store, 30)
        merge(store)
        store.create_chunk("And a last one about pistachios.")
        assert "pistachios" in ask("pistachios")
        assert "walnuts" in ask("walnuts")
        other.stdin.close()


def test_a_search_inside_a_batch_sees_its_own_writes_and_forgets_them_when_it_fails(
    store: ChunkStore,
) -> None:
    store.create_chunk("An apple a day.")
    assert found(store, "apple")

    class Stop(Exception):
        pass

    with pytest.raises(Stop), store.batch():
        store.create_chunk("A banana split.")
        assert found(store, "banana") == ["A banana split."]
        raise Stop
    assert found(store, "banana") == []
    store.create_chunk("A cherry pie.")
    assert found(store, "cherry") == ["A cherry pie."]
    assert found(store, "banana") == []


@pytest.mark.parametrize(
    "damage", ["folder removed", "file cut", "file removed", "description garbled", "all removed"]
)
def test_missing_or_damaged_files_are_made_anew_without_an_error(
    store: ChunkStore, base: Path, damage: str
) -> None:
    fill(store, 50)
    store.create_chunk("The needle is here.")
    found(store, "needle")
    merge(store)
    store.create_chunk("Another needle came later.")
    store.close()
    (snapshot,) = snapshots(base)
    if damage == "folder removed":
        shutil.rmtree(snapshot)
    elif damage == "file cut":
        path = snapshot / "ordinal.npy"
        os.truncate(path, path.stat().st_size // 2)
    elif damage == "file removed":
        (snapshot / "term.npy").unlink()
    elif damage == "description garbled":
        (snapshot / "meta.json").write_text('{"format": 1, "seq": 3}')
    else:
        shutil.rmtree(index_folder(base))
    with ChunkStore(base) as again:
        assert sorted(found(again, "needle")) == ["Another needle came later.", "The needle is here."]
        assert len(snapshots(base)) == 1


def test_a_merge_that_is_cut_off_leaves_the_former_snapshot_in_use(
    store: ChunkStore, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 30)
    found(store, "filler")
    merge(store)
    before = snapshots(base)
    store.create_chunk("The needle is here.")

    def fail(*_: object) -> bool:
        raise sqlite3.OperationalError("the power went out")

    monkeypatch.setattr(postings_module, "publish_snapshot", fail)
    with pytest.raises(sqlite3.OperationalError):
        merge(store)
    monkeypatch.undo()
    assert snapshots(base) == before
    assert found(store, "needle") == ["The needle is here."]
    with ChunkStore(base) as again:
        assert found(again, "needle") == ["The needle is here."]


def test_leftovers_of_a_killed_merge_are_removed_by_the_next(store: ChunkStore, base: Path) -> None:
    fill(store, 30)
    found(store, "filler")
    merge(store)
    leftover = snapshots(base)[0].parent / "0123456789abcdef"
    leftover.mkdir()
    (leftover / "ordinal.npy").write_bytes(b"half")
    store.create_chunk("one more")
    merge(store)
    assert not leftover.exists()
    assert len(snapshots(base)) == 1


def test_changes_are_dropped_only_up_to_what_the_snapshot_covers(store: ChunkStore, base: Path) -> None:
    fill(store, 30)
    found(store, "filler")
    merge(store)
    assert waiting_changes(base) == 0
    store.create_chunk("one more")
    assert waiting_changes(base) >= 1


def test_a_large_delta_is_merged_in_the_background(store: ChunkStore, base: Path) -> None:
    store.create_chunk("first")
    found(store, "first")
    fill(store, 1100)
    found(store, "filler")
    until(lambda: snapshots(base), "a snapshot")
    assert len(snapshots(base)) == 1
    assert len(found(store, "filler n7")) == 10


def test_an_index_rebuilt_by_another_process_is_taken_up(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings_module, "_FULL_RELOAD", 50)
    with ChunkStore(base) as reader, ChunkStore(base) as writer:
        fill(writer, 120)
        merge(writer)
        writer.create_chunk("The needle is here.")
        assert found(reader, "needle") == ["The needle is here."]
        writer.backend.rebuild("default")
        assert found(reader, "needle") == ["The needle is here."]
        assert len(search(reader, "filler", limit=200)) == 120
        writer.create_chunk("A second needle.")
        assert len(found(reader, "needle")) == 2


def test_an_index_of_an_older_analysis_is_rebuilt_when_it_is_opened(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An older version of the package analysed words otherwise: here it left one out.
    with monkeypatch.context() as older:
        older.setattr("rlm_mem.store.core.records.ANALYSIS_VERSION", -1)
        older.setattr(
            "rlm_mem.text.analysis.Analyser.analyse_segments", lambda *_args, **_named: [], raising=True
        )
        with ChunkStore(base) as store:
            store.create_chunk("The needle is here.")
            assert found(store, "needle") == []
    with ChunkStore(base) as again:
        assert found(again, "needle") == ["The needle is here."]


def test_closing_after_many_writes_leaves_a_snapshot_for_the_next_process(base: Path) -> None:
    with ChunkStore(base) as store:
        fill(store, 1100)
    assert len(snapshots(base)) == 1
    with ChunkStore(base, read_only=True) as again:
        assert len(found(again, "filler")) == 10


def test_a_read_only_store_is_searched_without_writing_a_file(base: Path) -> None:
    with ChunkStore(base) as store:
        fill(store, 1100)
    shutil.rmtree(index_folder(base))
    before = {path: path.stat().st_mtime_ns for path in base.rglob("*") if path.suffix == ".json"}
    with ChunkStore(base, read_only=True) as again:
        assert len(found(again, "filler")) == 10
    assert not snapshots(base)
    assert {path: path.stat().st_mtime_ns for path in base.rglob("*") if path.suffix == ".json"} == before


def test_a_search_rewrites_no_chunk_file(store: ChunkStore, base: Path) -> None:
    fill(store, 20)
    before = {path: path.stat() for path in (base / "chunks").rglob("*.json")}
    assert found(store, "filler")
    after = {path: path.stat() for path in (base / "chunks").rglob("*.json")}
    assert {p: (s.st_mtime_ns, s.st_ino) for p, s in after.items()} == {
        p: (s.st_mtime_ns, s.st_ino) for p, s in before.items()
    }


def test_threads_that_write_search_and_merge_at_once_all_see_their_writes(base: Path) -> None:
    failures: list[str] = []
    with ChunkStore(base) as store:
        fill(store, 40)

        def work(name: str) -> None:
            for number in range(12):
                store.create_chunk(f"{name} wrote entry{number} here")
                if not any(f"entry{number}" in text for text in found(store, f"{name} entry{number}")):
                    failures.append(f"{name} {number}")
                if number % 4 == 0:
                    merge(store)

        threads = [threading.Thread(target=work, args=(name,)) for name in ("anna", "bert", "carl")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(search(store, "wrote", limit=100)) == 36


def write_delete_search_and_merge(base: Path, name: str) -> None:
    """What one of several processes does."""
    rng = random.Random(name)
    with ChunkStore(base) as store:
        mine = []
        for number in range(25):
            word = name + chr(97 + number) * 3 + "zo"
            text = f"{word} is what {name} wrote, {rng.choice(['red', 'green', 'blue'])}"
            mine.append(store.create_chunk(text).id)
            assert [hit.chunk_id for hit in search(store, word)][:1] == [mine[-1]], word
            if number % 5 == 4:
                assert store.delete_chunk(mine.pop(rng.randrange(len(mine))))
            if number % 6 == 5:
                merge(store)


def test_processes_that_write_delete_search_and_merge_at_once_leave_an_exact_index(base: Path) -> None:
    with ChunkStore(base) as store:
        store.create_chunk("The first memory.")
    forked(partial(write_delete_search_and_merge, base), "ann", "ben", "cem")
    questions = ["red wrote", "blue green", "ann wrote red", "ben", "first memory cem"]
    with ChunkStore(base) as store:
        grown = [[(h.chunk_id, h.score) for h in search(store, q, limit=100)] for q in questions]
        assert len(store.list_chunks()) == 61
    shutil.rmtree(base / "index")
    with ChunkStore(base) as store:
        fresh = [[(h.chunk_id, h.score) for h in search(store, q, limit=100)] for q in questions]
    assert grown == fresh
    assert all(grown)


def test_a_first_snapshot_that_another_process_publishes_while_this_one_loads_is_taken(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChunkStore(base) as other:
        other.create_chunk("The secret is a walnut.")
        real, asked = postings_module.read_state, 0

        def read(connection: sqlite3.Connection, ns: int) -> object:
            nonlocal asked
            asked += 1
            state = real(connection, ns)
            if asked == 1:
                assert state is None
                merge(other)
                assert real(connection, ns) is not None
            return state

        with ChunkStore(base) as store:
            monkeypatch.setattr(postings_module, "read_state", read)
            assert found(store, "walnut") == ["The secret is a walnut."]
            assert asked > 2


def test_namespaces_have_postings_of_their_own(base: Path) -> None:
    with ChunkStore(base, namespace="one") as one, ChunkStore(base, namespace="two") as two:
        one.create_chunk("The secret of one is a walnut.")
        two.create_chunk("The secret of two is a hazelnut.")
        assert found(one, "secret") == ["The secret of one is a walnut."]
        assert found(two, "secret") == ["The secret of two is a hazelnut."]
        merge(one)
        assert found(two, "walnut") == []


def test_the_postings_of_the_namespaces_used_last_are_kept(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_index, "_MAX_OPEN", 3)
    with Memory.open(base) as memory:
        teams = [confined_memory(memory, f"team/{number}", "ana") for number in range(5)]
        for number, team in enumerate(teams):
            team.store.create_chunk(f"the heron number n{number}")
        for more in ("", " again"):  # the second time, each is opened again
            for number, team in enumerate(teams):
                assert found(team.store, "heron")[0].startswith(f"the heron number n{number}")
                team.store.create_chunk(f"the heron number n{number}{more} and another")
        assert [len(found(team.store, "heron")) for team in teams] == [3] * 5
        kept = local(memory.store.backend).postings._open
        assert len(kept) == 3
