"""Building the index from files: with helping processes or without, the index is the same."""

from __future__ import annotations

import _thread
import os
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.config import Config, StoreConfig
from rlm_mem.memory import Memory
from rlm_mem.store.core import files
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from rlm_mem.store.local import prepare, workers
from tests.waiting import DEADLINE, until

WORDS = [
    "Ínes",
    "measured",
    "the",
    "snake_case",
    "gateway's",
    "v1.2.3",
    "board",
    "twice;",
    "東京",
    "is",
    "nice,",
    "isn't",
    "it?",
    "She's",
    "happy",
    "in",
    "Paris",
]


@pytest.fixture
def brain(tmp_path: Path) -> Path:
    """A store with dialogue, repeated prefixes, links, tags, archived, foreign-script and broken files."""
    with Memory.open(tmp_path / "brain") as memory, memory.batch():
        for number in range(40):
            words = " ".join(WORDS[(number * 7 + k * k) % len(WORDS)] for k in range(60))
            memory.remember(
                f"Ann: {words}\nBob: and {number} more.",
                conversation_id=f"conv-{number // 6}",
                tags=["all", f"t{number % 5}"],
                occurred_at="2026-01-02T00:00:00Z" if number % 3 else None,
            )
        ids = memory.list_chunks()
        memory.store.delete_chunk(ids[3])
        memory.store.create_chunk("somebody else's", namespace="other/place")
    base = tmp_path / "brain" / "memory"
    edited = next(path for path in sorted(base.glob("chunks/*/*.json")) if "more." in path.read_text("utf-8"))
    edited.write_text(
        edited.read_text(encoding="utf-8").replace("more.", "changed by hand."), encoding="utf-8"
    )
    (edited.parent / "chunk-broken.json").write_text("{", encoding="utf-8")
    (edited.parent / "chunk-misnamed.json").write_bytes(edited.read_bytes())
    return base


def contents(base: Path) -> dict[str, Any]:
    """Every row of every table of the index, and the SQL that made its indexes and triggers."""
    connection = sqlite3.connect(base / "index" / "index.sqlite")
    try:
        found: dict[str, Any] = {}
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if name not in ("changes", "sqlite_sequence", "postings_state", "folders"):
                columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
                found[name] = sorted(
                    connection.execute(f"SELECT {', '.join(columns)} FROM {name}").fetchall(), key=repr
                )
        found["meta"] = [row for row in found["meta"] if row[0] != "first_change"]
        # Of each table in this order: it decides between indexes that seem equally good for a question.
        found["sql"] = connection.execute(
            "SELECT tbl_name, type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY tbl_name, type, rowid"
        ).fetchall()
        return found
    finally:
        connection.close()


def rebuilt(base: Path, processes: int) -> dict[str, Any]:
    """The index made from nothing with so many processes."""
    for path in (base / "index").glob("index.sqlite*"):
        path.unlink()
    config = Config(store=StoreConfig(processes=processes))
    ChunkStore(base, config=config).close()  # adopts every file
    return contents(base)


def test_the_index_is_the_same_however_many_processes_read_the_files(
    brain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = rebuilt(brain, 1)
    assert len(alone["chunks"]) > 40
    assert len(alone["unreadable"]) == 2
    monkeypatch.setattr(prepare, "FEW", 0)
    monkeypatch.setattr(prepare, "_LOT", 7)
    started: list[object] = []
    start = workers._start_child
    monkeypatch.setattr(workers, "_start_child", lambda: started.append(None) or start())
    monkeypatch.setattr(workers, "can_fork", lambda: False)
    assert rebuilt(brain, 3) == alone
    assert started


def test_a_rebuild_in_place_gives_what_an_index_from_nothing_holds(brain: Path) -> None:
    fresh = rebuilt(brain, 1)
    with ChunkStore(brain) as store:
        before = store.get_stats()
        store.rebuild_index()
        assert store.get_stats() == before
    again = contents(brain)
    assert again["sql"] == fresh["sql"]
    assert again["totals"] == fresh["totals"]
    assert sorted(row[1:] for row in again["chunks"]) == sorted(
        row[1:] for row in fresh["chunks"]
    )  # but numbers


def test_another_writer_can_change_the_rows_that_a_rebuild_wrote(tmp_path: Path) -> None:
    with ChunkStore(tmp_path) as store, ChunkStore(tmp_path) as other:
        gone = other.create_chunk("soon erased", conversation_id="two")
        other.delete_chunk(gone.id, permanent=True)
        store.rebuild_index()
        made = other.create_chunk("said afterwards", conversation_id="two")
        for one in (store, other):
            assert one.list_chunks(conversation_id="two") == [made.id]
            assert [talk.id for talk in one.conversations()] == ["two"]


def test_a_rebuild_that_fails_leaves_the_index_as_it_was(brain: Path) -> None:
    before = rebuilt(brain, 1)

    def interrupt(done: int, _total: int) -> None:
        if done >= 20:
            raise KeyboardInterrupt

    with ChunkStore(brain) as store:
        with pytest.raises(KeyboardInterrupt):
            store.rebuild_index(progress=interrupt)
        assert (
            len(store.list_chunks()) == sum(row[5] == 0 for row in before["chunks"]) - 1
        )  # one is elsewhere
    assert contents(brain) == before


def test_chunks_of_one_time_keep_their_order_when_the_index_is_made_anew(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        text = "\n\n".join(f"Paragraph {number} is about subject {number}. " * 12 for number in range(40))
        memory.remember(text, conversation_id="book", occurred_at="2025-05-05T00:00:00Z")
        written = memory.list_chunks(conversation_id="book")
        assert len(written) > 8
        memory.rebuild_index()
        assert memory.list_chunks(conversation_id="book") == written


@pytest.mark.parametrize("fault", ["cannot start", "dies", "cannot fork", "fork dies"])
def test_without_helping_processes_the_work_is_done_here(
    brain: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    paths = sorted(path.relative_to(brain).as_posix() for path in brain.glob("chunks/*/*.json"))
    alone = list(prepare.read_files(str(brain), paths, "english", count=len(paths), processes=1))
    monkeypatch.setattr(workers, "can_fork", lambda: sys.platform == "linux" and "fork" in fault)
    if fault == "cannot start":
        monkeypatch.setattr(workers.sys, "executable", str(brain / "no such program"))
    elif fault == "cannot fork":
        monkeypatch.setattr(workers.os, "fork", lambda: os.open(brain / "no such file", os.O_RDONLY))
    elif fault == "fork dies":
        monkeypatch.setattr(workers, "serve", lambda asked, _answers: asked.read(9) and os.abort())
    else:
        monkeypatch.setattr(
            workers, "_START", "import sys; sys.stdin.buffer.read(9); sys.exit(3)  # {path!r:.0}"
        )
    monkeypatch.setattr(prepare, "_LOT", 5)
    monkeypatch.setattr(prepare, "FEW", 0)
    assert list(prepare.read_files(str(brain), paths, "english", count=len(paths), processes=2)) == alone


def in_capitals(_: str, items: list[str]) -> list[str]:
    """What another process does below."""
    return [item.upper() for item in items]


def test_a_process_takes_what_it_is_asked_while_nobody_takes_its_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here: list[int] = []
    work = workers._work
    monkeypatch.setattr(workers, "_work", lambda request: here.append(1) or work(request))
    items = [f"{number} " + "ä" * 600_000 for number in range(12)]  # of each, more than a pipe holds
    waited = threading.Event()

    def otherwise(_idle: bool) -> bool:
        waited.set()
        return not threading.Event().wait(0.001)

    answers = workers.called(
        f"{__name__}:in_capitals", "", items, list[str],
        lot=1, count=len(items), processes=2, ahead=5, otherwise=otherwise,
    )  # fmt: skip
    assert list(answers) == [item.upper() for item in items]
    assert waited.is_set() and len(here) <= 1  # the first one, before this process is forked


def note_and_repeat(folder: str, items: list[str]) -> list[str]:
    """What another process does below: leave a file for each lot, and give long answers."""
    Path(folder, items[0]).touch()
    return [item * 200_000 for item in items]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a pipe holds what the system gives it")
@pytest.mark.parametrize("by_fork", [True, False])
def test_a_process_begins_its_next_lot_before_its_answer_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_fork: bool
) -> None:
    monkeypatch.setattr(workers, "can_fork", lambda: by_fork)
    child = workers._start_child()
    assert child is not None
    try:
        for name in ("a", "b"):
            request = workers._Request(f"{__name__}:note_and_repeat", str(tmp_path), [name])
            child.ask(workers.msgspec.msgpack.encode(request))
        until((tmp_path / "b").exists, "the second lot")
        answers = [workers.msgspec.msgpack.decode(child.answer()) for _ in range(2)]
        assert answers == [["a" * 200_000], ["b" * 200_000]]
    finally:
        child.kill()
        child.close()


def test_the_first_lots_are_not_left_to_a_process_that_is_just_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "can_fork", lambda: False)
    here: list[str] = []
    work = workers._work
    monkeypatch.setattr(workers, "_work", lambda request: here.extend(request.items) or work(request))
    items = [f"item {number}" for number in range(20)]
    answers = workers.called(
        f"{__name__}:in_capitals", "", items, list[str], lot=1, count=20, processes=2, ahead=20
    )
    assert list(answers) == [item.upper() for item in items]
    assert here[0] == items[0] and here[:8] == items[: len(here[:8])]


def waiting_for_file(given: str, items: list[str]) -> list[str]:
    """What another process does below: nothing before a file is there."""
    own, path = given.split(" ", 1)
    if os.getpid() != int(own):
        until(Path(path).exists)
    return items


def test_lots_are_worked_on_while_a_transaction_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked, go = threading.Event(), tmp_path / "go"
    work, sync = workers._work, files.sync_files
    monkeypatch.setattr(workers, "_work", lambda request: worked.set() or work(request))
    waited: list[bool] = []

    def sync_files(paths: Any) -> None:
        waited.append(worked.wait(DEADLINE))
        sync(paths)

    config = Config.load(environ={}, store={"durability": "full"})
    with Memory.open(tmp_path / "brain", config=config) as memory:
        monkeypatch.setattr(files, "sync_files", sync_files)

        def otherwise(_idle: bool) -> bool:
            if not waited:
                worked.clear()
                memory.remember("Ines moved to Kiel.")
                go.touch()
                return True
            return False

        items = [f"item {number}" for number in range(8)]
        answers = workers.called(
            f"{__name__}:waiting_for_file", f"{os.getpid()} {go}", items, list[str],
            lot=1, count=len(items), processes=2, ahead=8, otherwise=otherwise,
        )  # fmt: skip
        assert list(answers) == items
        assert waited and all(waited) and memory.stats().chunk_count == 1


@pytest.mark.parametrize("by_fork", [True, False])
def test_helping_processes_end_with_the_work(
    brain: Path, monkeypatch: pytest.MonkeyPatch, by_fork: bool
) -> None:
    monkeypatch.setattr(workers, "can_fork", lambda: by_fork and sys.platform == "linux")
    made: list[Any] = []
    start = workers._start_child
    monkeypatch.setattr(workers, "_start_child", lambda: made.append(start()) or made[-1])
    monkeypatch.setattr(prepare, "_LOT", 5)
    paths = [path.relative_to(brain).as_posix() for path in brain.glob("chunks/*/*.json")]
    monkeypatch.setattr(prepare, "FEW", 0)
    reading = prepare.read_files(str(brain), paths, "english", count=len(paths), processes=3)
    for _ in range(2):  # before a fork is made, the first file is read here
        next(reading)
    reading.close()  # whoever reads stops half-way
    assert len(made) == 2
    assert all(child._process.poll() is not None for child in made)


def process_and_files(_: str, items: list[str]) -> list[list[str]]:
    """What another process does below: say who it is, and what it has open."""
    is_open = [item for item in items if Path(f"/proc/self/fd/{item}").exists()]
    return [[str(os.getpid()), *is_open] for _ in items]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_a_fork_inherits_no_open_files_and_is_not_made_while_threads_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = 1
    monkeypatch.setattr(workers.threading, "active_count", lambda: threads)
    ways: list[str] = []
    for name in ("_fork_child", "_spawn_child"):
        real = getattr(workers, name)
        monkeypatch.setattr(workers, name, lambda name=name, real=real: ways.append(name) or real())
    with (tmp_path / "open").open("w") as own:
        question = {
            "count": 9,
            "lot": 1,
            "processes": 2,
            "otherwise": lambda _idle: not threading.Event().wait(0.01),  # this process leaves all the work
        }
        own.write("said once")
        descriptor = str(os.dup2(own.fileno(), 200))
        found = list(
            workers.called(f"{__name__}:process_and_files", "", [descriptor] * 9, list[list[str]], **question)
        )
        os.close(200)
    assert (tmp_path / "open").read_text() == "said once"
    assert found[0] == [str(os.getpid()), descriptor]
    assert all(len(one) == 1 and one != found[0][:1] for one in found[1:])
    threads += 1
    list(workers.called(f"{__name__}:in_capitals", "", ["a"] * 3, list[str], count=3, lot=1, processes=2))
    assert ways == ["_fork_child", "_spawn_child"]
    threads = 1
    assert workers.can_fork()
    monkeypatch.setattr(_thread, "start_new_thread", lambda *_: None)  # as gevent does
    assert not workers.can_fork()


def test_a_check_finds_the_same_however_many_processes_look(
    brain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChunkStore(brain) as store:
        # Not the one that was edited by hand: what it says would be right again.
        one = next(chunk.id for chunk in store.iter_chunks() if "changed by hand" not in chunk.content)
        store.update_chunk(one, content="changed once")
    version = next((brain / "archive" / "versions" / one).iterdir())
    version.write_text("{", encoding="utf-8")
    with ChunkStore(brain, config=Config(store=StoreConfig(processes=1))) as store:
        alone = check(store)
    assert {"unreadable-file", "duplicate-id", "content-hash", "unreadable-version"} <= {
        item.code for item in alone
    }
    monkeypatch.setattr(prepare, "FEW", 0)
    monkeypatch.setattr(prepare, "_LOT", 7)
    started: list[object] = []
    start = workers._start_child
    monkeypatch.setattr(workers, "_start_child", lambda: started.append(None) or start())
    with ChunkStore(brain, config=Config(store=StoreConfig(processes=3))) as store:
        assert check(store) == alone
    assert started
