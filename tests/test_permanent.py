"""Deleting permanently: nothing in the store quotes or names the memory afterwards; on both stores."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from rlm_mem import Memory
from rlm_mem.cli import main
from rlm_mem.config import Config, TrustConfig
from rlm_mem.continuum.requests import forget_case
from rlm_mem.integrations.records import Records
from rlm_mem.store.core import erasing
from rlm_mem.store.core.brain_files import ERASING
from rlm_mem.store.core.erasure_marks import Mark
from rlm_mem.store.core.erasure_report import ErasureReport
from rlm_mem.store.core.redacting import Redaction
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


@pytest.mark.parametrize("by", ["Memory", "ChunkStore"])
def test_deleted_in_a_batch_it_leaves_no_trace_once_the_batch_has_ended(place: Path | str, by: str) -> None:
    with Memory.open(place) as memory:
        one = filled(memory)
        delete = memory.delete if by == "Memory" else memory.store.delete_chunk
        with memory.batch():
            new = memory.remember(f"{LATER} It was written down again.").chunk_ids[0]
            assert delete(one, permanent=True) and not delete(one, permanent=True)
            assert delete(new, permanent=True)
        assert_gone(memory, one)
        assert [event.chunk_ids for event in memory.events(op="erase")] == [(one,), (new,)]


def test_the_store_deletes_permanently_as_completely_as_the_memory(place: Path | str) -> None:
    with Memory.open(place) as memory:
        one = filled(memory)
        assert memory.store.delete_chunk(one, permanent=True)
        assert_gone(memory, one)
        assert not memory.store.delete_chunk(one, permanent=True)


def test_a_batch_that_fails_erases_nothing(place: Path | str) -> None:
    with Memory.open(place) as memory:
        one = filled(memory)
        with pytest.raises(ZeroDivisionError), memory.batch():
            assert memory.delete(one, permanent=True)
            raise ZeroDivisionError
        assert LATER.encode() in (memory.store.files.read("personalities/MINE.md") or b"")
        assert memory.get(one) is not None and memory.store.files.names(ERASING) == []


def test_what_has_expired_is_erased_as_completely(place: Path | str) -> None:
    settings, later = Config(trust=TrustConfig(expired="erase")), datetime.now(UTC) + timedelta(days=2)
    with Memory.open(place, config=settings) as memory:
        one = filled(memory)
        memory.update(one, metadata={"expires_at": (later - timedelta(days=1)).isoformat()})
    with Memory.open(place, config=settings, clock=lambda: later) as memory:
        assert memory.store.sweep() == [one]
        assert_gone(memory, one)


def test_a_batch_gives_what_was_replaced_its_validity_back_in_former_versions_too(place: Path | str) -> None:
    with Memory.open(place) as memory:
        old = memory.remember("The harbour has two cranes.", conversation_id="a").chunk_ids[0]
        memory.update(old, metadata={"valid_to": "2099-01-01T00:00:00Z"})
        new = memory.remember("The harbour has three cranes.", conversation_id="b").chunk_ids[0]
        memory.supersede(old, new)
        memory.update(old, tags=["harbour"])
        with memory.batch():
            assert memory.delete(new, permanent=True)
        states = [one.chunk.metadata for one in memory.history(old)]
        assert {one.superseded_by for one in states} == {None}
        assert {one.valid_to and one.valid_to[:4] for one in states} == {None, "2099"}


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("at", ["_erase_in", "end_runs", "drop_undo_records"])
def test_interrupted_in_the_middle_it_is_finished_by_the_next_opening(
    place: Path | str, monkeypatch: pytest.MonkeyPatch, at: str, batch: bool
) -> None:
    with Memory.open(place) as memory:
        one = filled(memory)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(erasing if at == "_erase_in" else Redaction, at, interrupted)
            with memory.batch() if batch else nullcontext():
                memory.delete(one, permanent=True)
        assert any(trace in everything(memory) for trace in TRACES)
    with Memory.open(place, read_only=True) as memory:
        assert any(trace in everything(memory) for trace in TRACES)
    with Memory.open(place) as memory:
        assert_gone(memory, one)
        assert memory.store.files.names(ERASING) == []


_KILLED = """
import os, signal, sys
from pathlib import Path
from rlm_mem import Memory
from rlm_mem.store.core import erasing
erasing._carry_out = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
with Memory.open(sys.argv[1] if "://" in sys.argv[1] else Path(sys.argv[1])) as memory, memory.batch():
    memory.delete(sys.argv[2], permanent=True)
"""


def test_killed_after_the_commit_of_a_batch_it_is_finished_by_the_next_opening(place: Path | str) -> None:
    with Memory.open(place) as memory:
        one = filled(memory)
    done = subprocess.run([sys.executable, "-c", _KILLED, str(place), one], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Memory.open(place) as memory:
        assert_gone(memory, one)
        assert memory.store.files.names(ERASING) == []


def test_what_another_process_is_erasing_is_left_to_it(place: Path | str) -> None:
    with Memory.open(place) as memory:
        one = filled(memory)
        mark = Mark(namespace="default", report=ErasureReport(chunk_ids=[one], salt="5a17", dry_run=False))
        mark.write(memory.store)
        with Memory.open(place) as other:
            assert other.get(one) is not None
        mark.write(memory.store, at_work=False)
        with Memory.open(place) as other:
            assert other.get(one) is None


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


def test_its_lines_are_taken_out_of_a_long_log_wherever_they_are(place: Path | str) -> None:
    with Memory.open(place) as memory:
        store = memory.store
        one = store.create_chunk(SECRET).id
        for _ in range(3):
            with store.batch():
                for number in range(200):
                    store.create_chunk(f"The mole has {number} stones.")
            store.update_chunk(one, f"{LATER} {len(memory.history(one))} times.")
        assert memory.delete(one, permanent=True)
        events = [event for event in store.events() if event.get("chunk_id") == one]
        assert [event["op"] for event in events] == ["erase"]
        assert len([event for event in store.events() if event.get("erased")]) == 4
        left = everything(memory)
        assert [trace for trace in TRACES if trace in left] == []


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


@pytest.mark.parametrize(
    "damage",
    [
        {"process": 1 << 80, "run": "1", "since": time.time(), "node": platform.node()},
        {"namespace": "../x"},
        {"report": {"salt": "5a17", "at": "", "dry_run": False, "chunk_ids": ["../../x"]}},
        {"report": {"salt": "5" * 300, "at": "", "dry_run": False}},
    ],
)
def test_a_damaged_mark_keeps_nobody_from_opening_the_memory_or_erasing(
    place: Path | str, damage: dict[str, object]
) -> None:
    with Memory.open(place) as memory:
        one = filled(memory)
        mark = Mark(namespace="default", report=ErasureReport(salt="5a17", dry_run=False))
        data = msgspec.json.encode(msgspec.to_builtins(mark) | damage)
        memory.store.files.write(mark.name, data)
    with Memory.open(place) as memory:
        assert memory.delete(one, permanent=True)
        assert set(codes(memory)) <= {"unreadable-erasure"}
        memory.store.files.remove(mark.name)
        assert_gone(memory, one)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def codes(memory: Memory) -> list[str]:
    return [finding.code for finding in memory.check()]


def test_a_damaged_mark_is_named_with_its_ids_and_stays_until_these_are_erased(place: Path | str) -> None:
    """What is left of it is the only sign that something was to be erased."""
    with Memory.open(place) as memory:
        one, other = filled(memory), memory.remember("The mole is mended.").chunk_ids[0]
        report = ErasureReport(chunk_ids=[one], salt="5a17", dry_run=False)
        mark = Mark(namespace="default", report=report, ends={one: {memory.list_chunks()[0]: None}})
        memory.store.files.write(mark.name, msgspec.json.encode(mark).replace(b'"at":', b'"at'))
    with Memory.open(place) as memory:
        (finding,) = memory.check()
        assert finding.code == "unreadable-erasure" and one in finding.message and "erase" in finding.remedy
        for _ in range(2):
            (repair,) = memory.repair(dry_run=False)
            assert not repair.done and one in (repair.error or "")
        assert memory.delete(other, permanent=True) and memory.erase(person="Nobody", dry_run=False)
        assert codes(memory) == ["unreadable-erasure"]
        assert memory.delete(one, permanent=True)
        assert all(repair.done for repair in memory.repair(dry_run=False))
        assert memory.store.files.names(ERASING) == []
        assert_gone(memory, one)


def test_a_damaged_mark_of_chunks_that_are_gone_is_finished_by_repair(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(place) as memory:
        one = filled(memory)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(erasing, "_carry_out", interrupted)
            with memory.batch():
                memory.delete(one, permanent=True)
        files = memory.store.files
        (name,) = files.names(ERASING)
        files.write(name, (files.read(name) or b"")[:-20])
        files.write("personalities/ONE.md", f"As in {one}.\n".encode())
    with Memory.open(place) as memory:
        assert codes(memory) == ["unreadable-erasure"] and memory.repair() and codes(memory)
        assert all(repair.done for repair in memory.repair(dry_run=False)) and memory.check() == []
        assert memory.store.files.names(ERASING) == [] and naming(memory, one) == []


def test_a_damaged_mark_that_names_nothing_is_moved_aside_by_repair(place: Path | str) -> None:
    with Memory.open(place) as memory:
        memory.store.files.write(f"{ERASING}/5a17.json", b'{"namespace": "defa')
        assert all(repair.done for repair in memory.repair(dry_run=False)) and memory.check() == []
        files = memory.store.files
        assert [data for _, data in files.contents(files.names("archive/damaged"))] == [
            b'{"namespace": "defa'
        ]


def test_an_erasure_by_a_name_that_was_cut_off_is_named_until_it_is_repeated(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(place) as memory:
        one, other = filled(memory), memory.remember("Quillvane lit it.").chunk_ids[0]
        last = memory.remember("The mole is mended.").chunk_ids[0]
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Redaction, "end_runs", interrupted)
            memory.erase(person="Zanderbeck", dry_run=False)
    with Memory.open(place) as memory:
        assert codes(memory) == ["erasure-to-repeat"]
        (name,) = memory.store.files.names(ERASING)
        assert b"Zanderbeck" not in (memory.store.files.read(name) or b"")
        assert memory.delete(last, permanent=True)
        assert memory.erase(person="Quillvane", dry_run=False).chunk_ids == [other]
        assert codes(memory) == ["erasure-to-repeat"], "of another person it is still to be done"
        memory.erase(person="Zanderbeck", dry_run=False)
        assert_gone(memory, one)


@pytest.mark.local_only("a database finishes it where it is opened, and is checked by namespace")
def test_an_erasure_of_another_namespace_that_was_cut_off_is_named_and_finished_by_repair(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(place, namespace="team/port") as memory:
        one = filled(memory)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(erasing, "_erase_in", interrupted)
            memory.delete(one, permanent=True)
    with Memory.open(place) as memory:
        assert codes(memory) == ["erasure-cut-off"]
        (repair,) = memory.repair(dry_run=False)
        assert repair.done and memory.check() == []
    with Memory.open(place, namespace="team/port") as memory:
        assert_gone(memory, one)


@pytest.mark.parametrize("batch", [False, True])
def test_what_got_the_id_of_an_erased_chunk_since_is_kept(
    place: Path | str, monkeypatch: pytest.MonkeyPatch, batch: bool
) -> None:
    """Adapters derive ids from keys, and may store a key again before an erasure that was cut off is finished."""

    with Memory.open(place) as memory, Memory.open(place) as other:
        filled(memory)
        Records(memory, "test").put(("own",), "key", {"text": SECRET})
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            at: tuple[object, str] = (erasing, "_carry_out") if batch else (Redaction, "clean_versions")
            patch.setattr(*at, interrupted)
            with memory.batch() if batch else nullcontext():
                Records(memory, "test").delete(("own",), "key")
        Records(other, "test").put(("own",), "key", {"text": "The mole is mended."})
    with Memory.open(place) as memory:
        assert memory.store.files.names(ERASING) == []
        found = Records(memory, "test").get(("own",), "key")
        assert found is not None and found.value == {"text": "The mole is mended."}
        assert memory.check() == []


def naming(memory: Memory, erased: str) -> list[bytes]:
    """What names an erased chunk, but for the line of the audit log that says that it was erased."""
    stored = memory.store.backend.stored_bytes([memory.store.namespace])
    # In an index, its line of the audit log is found by its id.
    text = b"\n".join(
        data for where, data in stored if not where.startswith("event_chunks") and "index/" not in where
    )
    return [line for line in text.splitlines() if erased.encode() in line and b"erase" not in line]


def linked_and_replaced(memory: Memory, gone: str) -> tuple[str, str]:
    """A chunk that links to `gone`, and one that `gone` has replaced and that has an end of its own."""
    linking, replaced = (memory.remember(f"The mole has {one} stones.").chunk_ids[0] for one in "57")
    memory.link(linking, gone, "supports")
    memory.update(replaced, metadata={"valid_to": "2099-01-01T00:00:00Z"})
    memory.supersede(replaced, gone, force=True)
    return linking, replaced


@pytest.mark.parametrize("way", ["now", "batch", "person"])
def test_an_archived_chunk_keeps_no_link_to_an_erased_one(place: Path | str, way: str) -> None:
    with Memory.open(place) as memory:
        gone = memory.remember(SECRET).chunk_ids[0]
        linking, replaced = linked_and_replaced(memory, gone)
        with memory.batch():
            assert memory.delete(linking) and memory.delete(replaced)
        archival = memory.recorded_changes()[0].id
        if way == "person":
            memory.erase(person="Zanderbeck", dry_run=False)
        else:
            with memory.batch() if way == "batch" else nullcontext():
                memory.delete(gone, permanent=True)
        assert naming(memory, gone) == [] == memory.check()
        for one in (linking, replaced):
            states = [version.chunk for version in memory.history(one)]
            assert len(states) > 1 and all(link.target_id != gone for each in states for link in each.links)
            assert {each.metadata.superseded_by for each in states} == {None}
        memory.undo(change=archival)
        assert {linking, replaced} <= set(memory.list_chunks()) and memory.check() == []


@pytest.mark.parametrize("links", ["former", "archived"])
def test_an_erasure_by_a_name_that_is_repeated_leaves_no_link_to_what_the_first_had_deleted(
    place: Path | str, monkeypatch: pytest.MonkeyPatch, links: str
) -> None:
    with Memory.open(place) as memory:
        gone = memory.remember(SECRET).chunk_ids[0]
        kept, old = linked_and_replaced(memory, gone)
        memory.update(old, tags=["mole"])
        if links == "archived":
            assert memory.delete(kept) and memory.delete(old)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Redaction, "clean_versions", interrupted)
            memory.erase(person="Zanderbeck", dry_run=False)
        assert memory.store.backend.find("default", gone) is None
    with Memory.open(place) as memory:
        memory.erase(person="Zanderbeck", dry_run=False)
        assert memory.check() == [] and memory.store.files.names(ERASING) == []
        assert naming(memory, gone) == []
        states = [version.chunk.metadata for one in (kept, old) for version in memory.history(one)]
        assert {one.superseded_by for one in states} == {None}
        assert {one.valid_to and one.valid_to[:4] for one in states} == {None, "2099"}
