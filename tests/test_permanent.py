"""Deleting permanently: nothing in the store quotes or names the memory afterwards; on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.cli import main
from rlm_mem.continuum.requests import forget_case
from rlm_mem.store.core import erasing
from rlm_mem.store.local.local_backend import LocalBackend
from tests.server.api import client_of

SECRET = "The vault of Zanderbeck opens with the left key, said the quartermaster in confidence."
LATER = "The vault of Zanderbeck opens with the right key, said the quartermaster in confidence."
TRACES = (b"Zanderbeck", b"zanderbeck", b"left key", b"quartermaster in confidence")


def filled(memory: Memory) -> str:
    """One memory in a former version, a case of the review queue, undo records, a run and the audit log; its id."""
    kept = memory.remember("The harbour has two cranes.").chunk_ids[0]
    one = memory.remember(SECRET, conversation_id="vault").chunk_ids[0]
    memory.update(one, LATER)
    memory.link(kept, one, "supports", 0.5)
    memory.recall("How does the vault of Zanderbeck open?")
    chunk = memory.get(one)
    assert chunk is not None
    memory.continuum.review.ask([forget_case(memory.store, chunk, "an agent")])
    with memory.store.files.transaction():
        memory.store.files.write("personalities/MINE.md", f"# Mine\n\nQuoted: {LATER}\n".encode())
    assert sum(trace in everything(memory) for trace in TRACES) > 2
    return one


def everything(memory: Memory) -> bytes:
    return b"\n".join(data for _, data in memory.store.backend.stored_bytes([memory.store.namespace]))


def assert_gone(memory: Memory, chunk_id: str) -> None:
    left = everything(memory)
    assert [trace for trace in TRACES if trace in left] == []
    assert memory.get(chunk_id) is None and memory.history(chunk_id) == []
    assert len(memory.list_chunks()) == 1 and memory.check() == [] and memory.search("cranes")


def test_a_permanent_deletion_leaves_no_trace_in_any_byte_of_the_store(place: Path | str) -> None:
    with Memory.open(place) as memory:
        one = filled(memory)
        assert memory.delete(one, permanent=True)
        assert_gone(memory, one)
        assert not memory.delete(one, permanent=True)


def test_deleted_in_a_batch_it_is_named_by_no_record_once_they_are_erased_too(place: Path | str) -> None:
    with Memory.open(place) as memory:
        one = filled(memory)
        with memory.batch():
            assert memory.delete(one, permanent=True)
        report = memory.erase(chunk_ids=[one], dry_run=False)
        assert not report.chunk_ids and report.files
        assert memory.store.files.names("system/review", recursive=True) == []


@pytest.mark.parametrize("at", ["_end_runs", "_drop_undo_records"])
def test_killed_in_the_middle_it_is_finished_by_the_next_one(
    place: Path | str, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with Memory.open(place) as memory:
        one, other = filled(memory), memory.remember("The quay is old.").chunk_ids[0]
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(erasing, at, killed)
            memory.delete(one, permanent=True)
        assert memory.get(one) is None and any(trace in everything(memory) for trace in TRACES)
    with Memory.open(place) as memory:
        assert memory.delete(other, permanent=True)
        assert_gone(memory, one)
        assert not memory.store.files.exists(erasing.MARK)


def test_a_text_that_another_memory_holds_too_stays_there(place: Path | str) -> None:
    with Memory.open(place) as memory:
        one = filled(memory)
        other = memory.remember(f"{LATER} So it is written.").chunk_ids[0]
        assert memory.delete(one, permanent=True)
        assert LATER in memory.store.get_chunk(other).content  # type: ignore[union-attr]  # it would fail, as it should
        assert LATER.encode() in (memory.store.files.read("personalities/MINE.md") or b"")


def test_the_command_erases_and_says_what_it_cannot_reach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        one = filled(memory)
    assert main(["--brain", str(tmp_path / "brain"), "delete", one, "--permanent", "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"permanently deleted {one}" in said
    assert "not erased:" in said and "backups and exports" in said and "version control" in said
    with Memory.open(tmp_path / "brain") as memory:
        assert_gone(memory, one)


@pytest.mark.parametrize("way", ["plain", "if-match", "batch"])
def test_over_http_it_leaves_no_trace_either(tmp_path: Path, way: str) -> None:
    with Memory.open(tmp_path) as memory, client_of(tmp_path) as client:
        one = filled(memory)
        if way == "batch":
            done = client.post(
                "batch", json={"steps": [{"do": "delete", "chunk_id": one, "permanent": True}]}
            )
        else:
            tag = client.get(f"chunks/{one}").headers["etag"]
            headers = {"If-Match": tag} if way == "if-match" else {}
            done = client.delete(f"chunks/{one}", params={"permanent": True}, headers=headers)
        assert done.status_code in (200, 204), done.text
        assert_gone(memory, one)


def test_what_a_batch_deletes_is_erased_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each erasure cleans the whole store, so that one for each of thousands of steps would take hours."""
    purged: list[object] = []
    purge = LocalBackend.purge
    monkeypatch.setattr(
        LocalBackend, "purge", lambda *given, **named: (purged.append(given), purge(*given, **named))
    )
    with Memory.open(tmp_path) as memory, client_of(tmp_path) as client:
        one = filled(memory)
        ids = [one, *memory.remember(f"{LATER} So it is written.").chunk_ids]
        ids += memory.remember("Zanderbeck has a second vault.").chunk_ids
        steps = [{"do": "delete", "chunk_id": each, "permanent": True} for each in ids]
        done = client.post("batch", json={"steps": steps})
        assert done.status_code == 200, done.text
        assert_gone(memory, one)
    assert len(purged) == 1
