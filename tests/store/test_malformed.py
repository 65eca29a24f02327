"""Malformed input at every entry point of the store: one clear error of the project's tree, and nothing changes."""

from __future__ import annotations

import codecs
import errno
import json
import os
import sqlite3
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rlm_mem.chunk.types import MAX_LINKS
from rlm_mem.config import Config, StoreConfig
from rlm_mem.errors import InputError, RlmMemError, StorageError, StoreFull, StoreLocked, StoreReadOnly
from rlm_mem.store.core import files
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from rlm_mem.store.core.undoing import changes_in_force
from rlm_mem.store.local import local_backend
from rlm_mem.store.local.folder import Layout
from tests.stored import everything

NAN = float("nan")
ENDLESS: dict[str, object] = {}
ENDLESS["d"] = ENDLESS


def state(base: Path | str) -> dict[str, bytes]:
    """Everything that a write could change, except SQLite's own files."""
    return {name: data for name, data in everything(base).items() if "index.sqlite" not in name}


CREATE: dict[str, dict[str, Any]] = {
    "content None": {"content": None},
    "content a number": {"content": 7},
    "content bytes": {"content": b"bytes"},
    "content a list": {"content": ["a"]},
    "content empty": {"content": ""},
    "content only space": {"content": " \n\t "},
    "content a lone surrogate": {"content": "bad \ud800 text"},
    "content of 10 MB": {"content": "x" * 10_000_000},
    "type unknown": {"content": "x", "chunk_type": "opinion"},
    "type a list": {"content": "x", "chunk_type": ["note"]},
    "confidence NaN": {"content": "x", "confidence": NAN},
    "confidence infinite": {"content": "x", "confidence": float("inf")},
    "confidence above one": {"content": "x", "confidence": 1.01},
    "confidence negative": {"content": "x", "confidence": -0.01},
    "confidence text": {"content": "x", "confidence": "high"},
    "confidence a bool": {"content": "x", "confidence": True},
    "tags not text": {"content": "x", "tags": ["a", 7]},
    "tags empty word": {"content": "x", "tags": ["a", " "]},
    "tags with a control character": {"content": "x", "tags": ["a\x00b"]},
    "tags too long": {"content": "x", "tags": ["a" * 5000]},
    "tags a surrogate": {"content": "x", "tags": ["\udfff"]},
    "metadata a list": {"content": "x", "metadata": [1]},
    "metadata with NaN": {"content": "x", "metadata": {"score": NAN}},
    "metadata with a set": {"content": "x", "metadata": {"a": {1, 2}}},
    "metadata with a key that is no text": {"content": "x", "metadata": {1: 2}},
    "metadata without end": {"content": "x", "metadata": ENDLESS},
    "metadata with a huge number": {"content": "x", "metadata": {"n": 10**400}},
    "metadata with a surrogate": {"content": "x", "metadata": {"a": "\ud800"}},
    "created_at on a day that does not exist": {
        "content": "x",
        "metadata": {"created_at": "2026-02-30T00:00:00Z"},
    },
    "occurred_at no date": {"content": "x", "occurred_at": "yesterday"},
    "occurred_at a number": {"content": "x", "occurred_at": 1700000000},
    "occurred_at in the year zero": {"content": "x", "occurred_at": "0000-01-01"},
    "valid_to before valid_from": {"content": "x", "valid_from": "2026-02-02", "valid_to": "2026-02-01"},
    "tokens negative": {"content": "x", "tokens": -1},
    "tokens without end": {"content": "x", "tokens": 10**5000},
    "confidence without end": {"content": "x", "confidence": 10**5000},
    "access_count without end": {"content": "x", "metadata": {"access_count": 2**63}},
    "tokens a float": {"content": "x", "tokens": 1.5},
    "conversation id with a newline": {"content": "x", "conversation_id": "a\nb"},
    "conversation id a number": {"content": "x", "conversation_id": 7},
    "id with separators": {"content": "x", "chunk_id": "chunk-../../x"},
    "id of another shape": {"content": "x", "chunk_id": "memory-1"},
    "links of a wrong shape": {"content": "x", "links": ["chunk-a"]},
    "links without type": {"content": "x", "links": [{"target_id": "chunk-a"}]},
    "links to a path": {"content": "x", "links": [{"target_id": "../../a", "type": "supports"}]},
    "superseded_by a path": {"content": "x", "metadata": {"superseded_by": "../a"}},
    "provenance a word": {"content": "x", "provenance": "web"},
    "namespace with dots": {"content": "x", "namespace": "../other"},
}


def refusal(
    write: Callable[..., object], *given: Any, error: type[RlmMemError] = InputError, **more: Any
) -> str:
    """What the error says that a write ends with; nothing where it goes through."""
    try:
        write(*given, **more)
    except error as refused:
        return str(refused)
    return ""


def test_malformed_creates_give_one_error_and_change_nothing(store: ChunkStore, base: Path | str) -> None:
    store.create_chunk("kept")
    before = state(base)
    for case, given in CREATE.items():
        said = refusal(store.create_chunk, **given)
        assert said, case
        assert len(said) < 400, case
        assert "\n" not in said, case
        assert state(base) == before, case
        assert store.get_stats()["chunk_count"] == 1, case


UPDATE: dict[str, dict[str, Any]] = {
    name: {
        key: value
        for key, value in case.items()
        if key in ("content", "metadata", "links", "tags", "confidence")
    }
    for name, case in CREATE.items()
    if set(case) <= {"content", "metadata", "links", "tags", "confidence"} and case["content"] is not None
}
UPDATE |= {
    "type unknown": {"chunk_type": "opinion"},
    "revision of another kind": {"expected_revision": 99},
    "created_at removed": {"metadata": {"created_at": None}},
}


def test_malformed_updates_give_one_error_and_change_nothing(store: ChunkStore, base: Path | str) -> None:
    chunk = store.create_chunk("kept", tags=["a"])
    before = state(base)
    for case, given in UPDATE.items():
        said = refusal(store.update_chunk, chunk.id, error=RlmMemError, **given)
        assert said, case
        assert "\n" not in said, case
        assert state(base) == before, case


LISTS: list[dict[str, Any]] = [
    {"start_date": "2026-02-30"}, {"start_date": "soon"}, {"end_date": 7}, {"end_date": "2026-13-01"},
    {"tags": 7}, {"tags": [1]}, {"any_tags": {"a": 1}}, {"limit": -1}, {"limit": "ten"}, {"limit": 1.5},
    {"limit": True}, {"offset": -1}, {"chunk_type": 7}, {"conversation_id": ["c"]}, {"namespace": "../x"},
    {"start_date": ["2026-01-01"]},
]  # fmt: skip


def test_malformed_filters_give_one_error(store: ChunkStore) -> None:
    for given in LISTS:
        assert refusal(store.list_chunks, **given), given


def test_a_base_path_that_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    for place, reason in (
        (blocked, "file is a file"),
        (blocked / "below", "file is a file: a folder"),
        (link, "link is a link that leads nowhere: a folder"),
    ):
        with pytest.raises(StorageError, match=reason):
            ChunkStore(place)
    assert blocked.read_text() == "not a folder"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_place_that_takes_no_folders_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no folder can be created at /proc/x/chunks") as raised:
        ChunkStore(Path("/proc/x"))
    assert raised.value.hint == "name another place"


@pytest.mark.local_only("look at files")
def test_an_unwritable_folder_gives_one_error_and_changes_nothing(
    store: ChunkStore, base: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_chunk("kept")
    before = state(base)
    real = os.open

    def refuse(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_WRONLY and str(base) in str(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, *more, **named)

    monkeypatch.setattr(files.os, "open", refuse)
    with pytest.raises(StoreReadOnly, match="Permission denied"):
        store.create_chunk("new")
    monkeypatch.undo()
    assert state(base) == before


@pytest.mark.local_only("look at files")
def test_a_full_disk_gives_one_error_and_changes_nothing(
    store: ChunkStore, base: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = store.create_chunk("kept")
    before = state(base)

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    attempts: list[Callable[[], object]] = [
        lambda: store.create_chunk("new"),
        lambda: store.update_chunk(chunk.id, content="changed"),
    ]
    for attempt in attempts:
        with monkeypatch.context() as patch:
            patch.setattr(files.os, "write", full)
            with pytest.raises(StoreFull, match="disk is full"):
                attempt()
        assert state(base) == before
    assert store.create_chunk("after").id in store.list_chunks()


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_an_interrupted_write_of_a_file_leaves_no_unfinished_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def interrupted(*_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    files.write_atomic(tmp_path / "record.json", b"before")
    monkeypatch.setattr(files.os, call, interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write_atomic(tmp_path / "record.json", b"after")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"record.json": b"before"}


@pytest.mark.local_only("look at files")
def test_a_writer_that_waits_too_long_gets_an_error(base: Path) -> None:
    from rlm_mem.config import Config

    quick = Config.load(store={"lock_wait_seconds": 0.1})
    with ChunkStore(base, config=quick) as store:
        chunk = store.create_chunk("kept")
        other = sqlite3.connect(base / "index" / "index.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked, match="lock"):
            store.create_chunk("new")
        assert store.get_chunk(chunk.id) is not None, "reading does not wait for writers"
        other.execute("ROLLBACK")
        other.close()
        assert store.create_chunk("new")


def test_a_closed_store_says_that_it_is_closed(base: Path) -> None:
    store = ChunkStore(base)
    store.close()
    store.close()
    with pytest.raises(StorageError, match="closed"):
        store.create_chunk("x")
    with pytest.raises(StorageError, match="closed"):
        store.list_chunks()


def test_a_read_only_store_reads_and_refuses_to_write(base: Path) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("kept", tags=["t"])
    before = state(base)
    with ChunkStore(base, read_only=True) as store:
        assert store.get_chunk(chunk.id) is not None
        assert store.list_chunks(tags=["t"]) == [chunk.id]
        with pytest.raises(StoreReadOnly):
            store.create_chunk("x")
    assert state(base) == before


@pytest.mark.local_only("look at files")
def test_a_folder_without_a_store_is_not_made_by_a_reader(base: Path) -> None:
    with pytest.raises(StorageError, match="no store"):
        ChunkStore(base / "nowhere", read_only=True)
    assert not base.exists()


def test_times_are_written_one_way_whatever_way_they_came(store: ChunkStore) -> None:
    for given in (
        "2025-12-24", "2025-12-24T00:00:00", "2025-12-24T01:00:00+01:00", "2025-W52-3T00:00:00.000000Z",
        datetime(2025, 12, 24),
    ):  # fmt: skip
        chunk = store.create_chunk(f"at {given!r}", occurred_at=given)
        assert chunk.metadata.occurred_at == "2025-12-24T00:00:00.000000Z"


@pytest.mark.local_only("look at files")
def test_a_read_only_store_whose_index_is_missing_or_behind_is_read_all_the_same(base: Path) -> None:
    import json
    import shutil

    with ChunkStore(base) as store:
        chunk = store.create_chunk("kept", tags=["t"])
    (base / ".tmp" / "half-written.tmp").write_bytes(b"of a killed writer")
    made = json.loads(next((base / "chunks").rglob("*.json")).read_bytes())
    made["id"] = "chunk-by-hand"
    by_hand = next((base / "chunks").iterdir()) / "chunk-by-hand.json"
    by_hand.write_text(json.dumps(made))
    before = state(base)
    with ChunkStore(base, read_only=True) as store:
        assert sorted(store.list_chunks(tags=["t"])) == sorted([chunk.id, "chunk-by-hand"])
    assert state(base) == before
    shutil.rmtree(base / "index")
    with ChunkStore(base, read_only=True) as store:
        assert len(store.list_chunks()) == 2
    assert not (base / "index").exists()


@pytest.mark.local_only("look at files")
def test_a_file_with_a_byte_order_mark_and_line_ends_of_windows_is_read(tmp_path: Path) -> None:
    with ChunkStore(tmp_path) as store:
        made = store.create_chunk("Tessa keeps the key.")
    (path,) = (tmp_path / "chunks").rglob("*.json")
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes().replace(b"\n", b"\r\n"))
    with ChunkStore(tmp_path) as store:
        read = store.get_chunk(made.id)
        assert read is not None
        assert read.content == "Tessa keeps the key."
        assert [one.code for one in check(store)] in ([], ["index-outdated"])


@pytest.mark.local_only("look at files")
def test_a_link_that_leads_to_itself_is_one_unreadable_file(tmp_path: Path) -> None:
    with ChunkStore(tmp_path) as store:
        made = store.create_chunk("Tessa keeps the key.")
        (path,) = (tmp_path / "chunks").rglob("*.json")
        loop = path.with_name("chunk-2026-01-01-aaaaaaaa.json")
        loop.symlink_to(loop)
        path.with_name("chunk-2026-01-01-bbbbbbbb.json").mkdir()
    for _ in range(2):
        with ChunkStore(tmp_path) as store:
            assert store.list_chunks() == [made.id]
            assert store.unreadable_files == 1
            (found,) = check(store)
            assert (found.code, found.file) == ("unreadable-file", loop.relative_to(tmp_path).as_posix())
            assert "symbolic links" in found.message
    loop.unlink()
    with ChunkStore(tmp_path) as store:
        assert store.unreadable_files == 0
        assert check(store) == []


@pytest.mark.local_only("look at files")
def test_a_memory_behind_a_link_that_leads_nowhere_is_missing_not_forgotten(tmp_path: Path) -> None:
    """As when a disk is not mounted: the memory is neither deleted nor "not held"."""
    away = tmp_path / "away.json"
    with ChunkStore(tmp_path / "memory") as store:
        made = store.create_chunk("Tessa keeps the key.")
        (path,) = (tmp_path / "memory" / "chunks").rglob("*.json")
        away.symlink_to(path.rename(tmp_path / "disk.json"))
        path.symlink_to(away)
    with ChunkStore(tmp_path / "memory") as store:
        assert store.get_chunk(made.id) is not None
        away.rename(tmp_path / "elsewhere.json")
        assert store.get_chunk(made.id) is None
    for _ in range(2):
        with ChunkStore(tmp_path / "memory") as store:
            store.sync(full=True)
            assert store.unreadable_files == 1
            (found,) = check(store)
            assert (found.code, found.chunk_id) == ("unreadable-file", made.id)
            assert "a link that leads nowhere" in found.message
    (tmp_path / "elsewhere.json").rename(away)
    with ChunkStore(tmp_path / "memory") as store:
        assert store.list_chunks() == [made.id]
        assert check(store) == []


def test_a_file_system_that_is_read_only_is_named_with_the_file_that_was_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be removed there either: that must not hide the reason."""

    def refused(path: object, *_: object, **__: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(os, "open", refused)
    monkeypatch.setattr(os, "unlink", refused)
    with pytest.raises(StoreReadOnly) as told:
        files.write_atomic(tmp_path / "config.toml", b"x")
    monkeypatch.undo()
    assert f"{tmp_path}/config.toml cannot be written: Read-only file system" in str(told.value)
    assert "mounted" in (told.value.hint or "")


@pytest.mark.local_only("puts files in place")
def test_no_kind_of_file_keeps_a_memory_from_answering(base: Path) -> None:
    """Pipes, devices, files of gigabytes and of a million links, as a clone from anywhere may have them."""
    with ChunkStore(base) as store:
        kept = store.create_chunk("The gate code is 4471.")
        store.update_chunk(kept.id, tags=["gate"])
    (path,) = (base / "chunks").rglob("*.json")
    versions = base / "archive" / "versions" / kept.id
    for place in (
        path.with_name("chunk-pipe.json"),
        versions / "3.json",
        base / "archive" / "chunk-pipe.json",
    ):
        os.mkfifo(place)
    (versions / "²3.json").write_text("{}")
    path.with_name("chunk-zero.json").symlink_to("/dev/zero")
    path.with_name("chunk-large.json").touch()
    os.truncate(path.with_name("chunk-large.json"), 1 << 33)
    document = msgspec.json.decode(path.read_bytes())
    link = {"target_id": kept.id, "type": "supports", "strength": 0.5}
    many = {**document, "id": "chunk-linked", "links": [link] * (MAX_LINKS + 1)}
    path.with_name("chunk-linked.json").write_bytes(msgspec.json.encode(many))
    with ChunkStore(base) as store:
        store.sync(full=True)
        assert store.list_chunks() == [kept.id]
        assert [version.revision for version in store.history(kept.id)] == [1, 2]
        found = {finding.file: finding.message for finding in check(store)}
        told = " ".join(found.values())
        assert "more than the 268,435,456 that are read" in told
        assert "10,001 links are too many for one chunk: at most 10,000" in told
        assert "not a regular file" in found[f"archive/versions/{kept.id}/3.json"]
        with pytest.raises(InputError, match="links are too many"):
            store.create_chunk("linked", links=[link] * (MAX_LINKS + 1))


@pytest.mark.local_only("look at files")
def test_what_others_leave_in_the_folders_of_a_store_blocks_nothing(tmp_path: Path) -> None:
    with ChunkStore(tmp_path / "memory") as store:
        made = store.create_chunk("Tessa keeps the key.")
        store.update_chunk(made.id, "Tessa has the key.")
        (tmp_path / "memory" / ".tmp" / "folder").mkdir(parents=True)
        (tmp_path / "memory" / "archive" / "versions" / made.id / "².json").write_text("{}")
        (tmp_path / "memory" / "short_term").mkdir()
        (tmp_path / "memory" / "short_term" / "round.md").symlink_to("round.md")
    with ChunkStore(tmp_path / "memory") as store:
        assert store.update_chunk(made.id, "Tessa had the key.")
        assert store.files.names("memory/short_term") == []
        assert not (tmp_path / "memory" / ".tmp" / "folder").exists()


@pytest.mark.local_only("look at files")
def test_lines_of_the_audit_log_with_other_kinds_of_values_are_passed_over(tmp_path: Path) -> None:
    with ChunkStore(tmp_path / "memory") as store:
        made = store.create_chunk("Tessa keeps the key.")
        (log,) = (tmp_path / "memory" / "log").iterdir()
        with log.open("a") as lines:
            for wrong in (
                {"op": []},
                {"chunk_ids": 5},
                {"files": 3},
                {"namespaces": {}},
                {"undoes": []},
                {"ts": 1},
            ):
                event = {"ts": "2999-01-01", "op": "create", "ns": "default", "change": "x"} | wrong
                lines.write(json.dumps(event) + "\n")
        assert [one["chunk_id"] for one in store.events(chunk_id=made.id)] == [made.id]
        (change,) = changes_in_force(store)
        assert change.chunk_ids == [made.id]
        latest = store.backend.latest_event("default", frozenset({"create"}))
        assert latest is not None and latest["chunk_id"] == made.id


@pytest.mark.local_only("look at files")
def test_events_with_times_in_another_form_are_read_again(tmp_path: Path) -> None:
    with ChunkStore(tmp_path / "memory") as store:
        event = {"ts": "20260101T000000Z", "op": "create", "ns": "default", "chunk_id": "chunk-a"}
        store.backend.append_events([event])
        assert list(store.events()) == [event]


@pytest.mark.local_only("look at files")
def test_a_transaction_that_cannot_begin_holds_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = Config(store=StoreConfig(lock_wait_seconds=0.1))

    def full(*_: object) -> bool:
        raise OSError(errno.EMFILE, "Too many open files")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with ChunkStore(tmp_path, config=impatient) as store, ChunkStore(tmp_path, config=impatient) as other:
        made = store.create_chunk("Tessa keeps the key.")
        with monkeypatch.context() as patch:
            patch.setattr(Layout, "is_interrupted", full)
            with pytest.raises(StorageError, match="Too many open files"):
                store.create_chunk("Tessa has the key.")
        assert other.create_chunk("Tessa had the key.")
        store.get_chunk(made.id)
        with monkeypatch.context() as patch:
            patch.setattr(local_backend, "in_turn", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.backend.checkpoint()
        assert other.create_chunk("Tessa lost the key.") and store.create_chunk("Tessa found the key.")
        store.checkpoint()
        assert json.loads(path_of(tmp_path, made.id).read_bytes())["metadata"]["access_count"] == 1


def path_of(base: Path, chunk_id: str) -> Path:
    return next((base / "chunks").rglob(f"{chunk_id}.json"))
