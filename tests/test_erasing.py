"""Erasing a person or a source: nothing of it is in any byte of the store afterwards; on both stores."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any
from unicodedata import normalize

import msgspec
import pytest

from rlm_mem import Memory
from rlm_mem.chunk import encode_chunk
from rlm_mem.cli import main
from rlm_mem.config import Config, RecallConfig
from rlm_mem.errors import ConflictError, InputError, NamespaceError, StoreFull
from rlm_mem.store.core import files
from rlm_mem.store.core.brain_files import ERASING, JOURNAL, MIRRORED, SHOWN, named_ids, namespace_of_run
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.contents import NamespaceReader
from rlm_mem.store.core.erasing import erase
from rlm_mem.store.core.erasure_checks import read_report, verify_erasure
from rlm_mem.store.core.erasure_report import ErasureReport, Matcher
from rlm_mem.store.core.integrity import check, repair
from rlm_mem.store.core.redacting import Redaction
from rlm_mem.store.local import brain_folder
from rlm_mem.store.local.local_backend import LocalBackend
from tests.conftest import Clock
from tests.continuum.conftest import STEPS
from tests.server.api import client_of
from tests.typed import postgres, present

NAME = "Zyxanna O'Brien-Ünal"
SAYS = f"{NAME} told the committee that the lighthouse of Port Lowan needs a new lens before the winter."


def filled(memory: Memory) -> dict[str, str]:
    """The person in content, tags, conversations, links, former versions, logs, trajectories and undo records."""

    def told(text: str, **more: Any) -> str:
        return memory.remember(text, **more).chunk_ids[0]

    ids = {
        "says": told(SAYS, conversation_id="harbour"),
        "tagged": told("The lens was ordered.", tags=NAME),
        "talk": told("Nobody is named here.", conversation_id=f"with {NAME}"),
        "former": told(f"{NAME.upper()} pays for it."),
        "other": told("The harbour has two cranes.", conversation_id="harbour"),
        "archived": told(f"Call {NAME} tomorrow."),
    }
    memory.update(ids["former"], "Somebody pays for it.")
    memory.link(ids["other"], ids["tagged"], "supports", 0.5, f"{NAME} says so")
    memory.delete(ids["archived"])
    memory.recall(f"What did {NAME} tell the committee?")
    memory.store.files.write("memory/long_term/notes.md", f"# Notes\n\n{NAME} likes lenses.\n".encode())
    return ids


def everything(memory: Memory) -> bytes:
    return b"\n".join(data for _, data in memory.store.backend.stored_bytes([memory.store.namespace]))


def test_a_person_is_gone_from_every_byte_and_the_report_verifies_it(place: Path | str, clock: Clock) -> None:
    with Memory.open(place, clock=clock) as memory:
        ids = filled(memory)
        kept = memory.remember("Zyxannas are butterflies of Port Lowan.").chunk_ids[0]
        planned = memory.erase(person=NAME)
        assert planned.dry_run and memory.get(ids["says"]) is not None
        assert memory.verify_erasure(planned)
        report = erase(memory.store, person=f"  {NAME.lower()} ", dry_run=False)
        assert set(report.chunk_ids) == set(planned.chunk_ids) == set(ids.values())
        assert report.remaining and report.files and report.events
        left = everything(memory)
        for trace in (
            NAME.encode(),
            NAME.upper().encode(),
            NAME.casefold().encode(),
            b"lighthouse of Port Lowan",
            b"zyxanna o",
        ):
            assert trace not in left
        assert verify_erasure(memory.store, report) == []
        assert [one.id for one in memory.store.iter_chunks()] == [kept] and not check(memory.store)
        assert memory.search("butterflies")[0].chunk_id == kept
        again = erase(memory.store, person=NAME, dry_run=False)
        assert not again.chunk_ids and not again.files
        memory.remember(SAYS.replace(NAME, "She"))  # her words, without her name: found by their fingerprints
        assert verify_erasure(memory.store, read_report(msgspec.json.encode(report)))
    with Memory.open(place) as memory:
        assert memory.search("butterflies")[0].chunk_id == kept


def test_an_erasure_logs_who_cleaned_the_files_of_every_namespace_and_when(
    place: Path | str, clock: Clock
) -> None:
    with Memory.open(place, clock=clock, actor="Ana") as memory, Memory.open(place, namespace="b") as other:
        other.remember("Nobody is named here.")
        with other.store.files.transaction():
            other.store.files.write("memory/long_term/notes.md", f"# Notes\n\n{NAME} rows.\n".encode())
        memory.erase(person=NAME, dry_run=False)
        edit = list(other.events(op="edit"))[-1]
        assert (edit.actor, edit.at[:10]) == ("Ana", f"{clock():%Y-%m-%d}")


def test_no_record_names_what_was_erased_but_the_line_that_says_so(place: Path | str, tmp_path: Path) -> None:
    """By its id, also in underscores, after a dash, as the target of a link, and in former versions of others."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "lens.md").write_text(f"# Lens\n\n{SAYS}\n\nSee [[crane]].\n", encoding="utf-8")
    (notes / "crane.md").write_text("# Crane\n\nThe crane is green.\n\nSee [[lens]].\n", encoding="utf-8")
    with Memory.open(place) as memory:
        memory.sync_folder(notes)
        gone = memory.remember(SAYS).chunk_ids[0]
        kept = memory.remember("The crane is tall.").chunk_ids[0]
        memory.link(kept, gone, "supports")
        memory.update(kept, "The crane is taller.")
        files = memory.store.files
        step = {"ts": "2026-03-01T00:00:00Z", "ns": "default", "id": "s", "op": "edit", "entry": f"_{gone}_"}
        files.append(JOURNAL, json.dumps(step).encode() + b"\n")
        files.write("personalities/MINE.md", f"As in _{gone}_, __{gone}__ and {gone}--.\n".encode())
        report = memory.erase(person=NAME, dry_run=False)
        stored = memory.store.backend.stored_bytes([memory.store.namespace])
        text = b"\n".join(data for where, data in stored if not where.startswith("event_chunks"))
        named = [line for line in text.splitlines() if any(one.encode() in line for one in report.chunk_ids)]
        assert len(named) == len(report.chunk_ids), "the line of each in the audit log"
        assert all(b"erase" in line and b"before" not in line for line in named)
        assert files.read("personalities/MINE.md") == b"As in _erased_, __erased__ and erased--.\n"
        assert len(memory.history(kept)) > 3
        assert memory.check() == []
        found = memory.sync_folder(notes)
        assert found.unchanged == 2, "the file is only read again when it changes"
        (notes / "lens.md").write_text("# Lens\n\nIt is new.\n\nSee [[crane]].\n", encoding="utf-8")
        assert memory.sync_folder(notes).changed == ["lens.md"] and memory.check() == []


def test_a_person_of_one_name_is_gone_from_the_words_of_the_index_too(place: Path | str) -> None:
    with Memory.open(place) as memory, Memory.open(place) as other:
        memory.remember("Quillvane asked for lanterns.")
        kept = memory.remember("Somebody else asked for ropes.").chunk_ids[0]
        other.remember("Quillvane: the lanterns came.")  # its process knows the number of the word
        report = erase(memory.store, person="Quillvane", dry_run=False)
        assert len(report.chunk_ids) == 2
        assert b"quillvan" not in everything(memory).lower()
        assert verify_erasure(memory.store, report) == []
        assert [hit.chunk_id for hit in memory.search("ropes")] == [kept]
        again = other.remember("A quillvane is a kind of feather.").chunk_ids[0]
        for one in (memory, other):
            assert [hit.chunk_id for hit in one.search("quillvane")] == [again]
            assert [hit.chunk_id for hit in one.search("feather")] == [again]
        assert check(memory.store) == []


def test_forgetting_a_source_includes_everything_below_it(place: Path | str) -> None:
    with Memory.open(place) as memory:
        for path in ("/notes/private/a.md", "/notes/private/deep/b.md", "/notes/privateer.md"):
            memory.remember(
                f"What stands in {path} is of no concern to anybody else, they agreed.",
                provenance={"path": path},
            )
        memory.remember("Said in a conversation.", conversation_id="talk-7")
        report = erase(memory.store, source="/notes/private", dry_run=False)
        assert len(report.chunk_ids) == 2
        assert [one.metadata.provenance.get("path") for one in memory.store.iter_chunks()] == [
            "/notes/privateer.md",
            None,
        ]
        assert len(erase(memory.store, source="talk-7", dry_run=False).chunk_ids) == 1


@pytest.mark.parametrize("source", ["import", "trip"])
def test_a_source_whose_name_is_a_word_leaves_texts_with_that_word(place: Path | str, source: str) -> None:
    with Memory.open(place) as memory:
        where = {"source": source} if source == "import" else {"conversation_id": source}
        kept = memory.remember("It is important: they import stones, and a trip tripped Ann.").chunk_ids
        persona = b"# Mine\n\nTrips are important; import a trip.\n"
        memory.store.files.write("personalities/MINE.md", persona)
        memory.continuum.traces.record("Import important trips", STEPS, success=True, indicators=["ok"])
        memory.recall("Who tripped on which trip?")
        former = memory.list_chunks(), memory.trajectories()
        gone = memory.remember("Dana prefers trains.", **where).chunk_ids
        report = memory.erase(source=source, dry_run=False)
        assert report.chunk_ids == gone and memory.verify_erasure(report) == []
        assert (memory.list_chunks(), memory.trajectories()) == former
        assert memory.store.files.read("personalities/MINE.md") == persona
        assert [event.op for event in memory.events(chunk_id=kept[0])][:1] == ["create"]
        assert memory.check() == []


@pytest.mark.parametrize("word", ["person", "agent", "tool", "web", "untrusted", "note"])
def test_a_conversation_named_like_an_origin_is_gone_from_runs_and_leaves_those_of_others(
    place: Path | str, word: str
) -> None:
    """Origins, trust and types stand in the records of most runs."""
    with Memory.open(place) as memory:
        more = {"origin": "agent"} if word in ("untrusted", "note") else {"origin": word}
        kept = memory.remember("A trip tripped Ann.", chunk_type="note", trust="untrusted", **more).chunk_ids
        memory.recall("Who tripped?")
        [left] = memory.trajectories()
        memory.recall(f'Who spoke in list_chunks(conversation_id="{word}")?')
        assert len(memory.trajectories()) == 2
        gone = memory.remember("Dana prefers trains.", conversation_id=word).chunk_ids
        report = memory.erase(source=word, dry_run=False)
        assert report.chunk_ids == gone and memory.list_chunks() == kept
        assert memory.trajectories() == [left]
        assert memory.verify_erasure(report) == [] == memory.check()


def test_a_namespace_is_gone_whole_and_nothing_of_its_neighbours(place: Path | str) -> None:
    """Without the namespace's owner being named anywhere: what a support bot is asked for."""
    names = ("people/ann", "people/ann/work", "people/ben")
    with ExitStack() as stack:
        opened = {name: stack.enter_context(Memory.open(place, namespace=name)) for name in names}
        for number, memory in enumerate(opened.values(), 1):
            told = f"User: Kettle {number} hums when it is cold. It stands in the kitchen of the old mill."
            [first, *_] = memory.remember(told, conversation_id="monday").chunk_ids
            memory.update(
                first, f"User: The kettle {number} was replaced under the warranty of the manufacturer."
            )
            memory.delete(memory.remember(f"User: Please write to box {number}, not to me.").chunk_ids[0])
            memory.recall("Which kettle hums?")
            memory.continuum.traces.record(f"Answer about kettle {number}", [])
        ann, below, ben = opened.values()
        planned = ben.erase(namespace="people/ann")
        assert planned.dry_run and len(planned.chunk_ids) >= 2 and ann.list_chunks()
        report = ben.erase(namespace="people/ann", dry_run=False)
        assert set(report.chunk_ids) == set(planned.chunk_ids) and report.files and report.events
        assert not ann.list_chunks() and not ann.search("kettle") and not ann.trajectories()
        assert not NamespaceReader(ann.store).count() and not ann.store.files.exists("system/memory_log.md")
        assert ben.verify_erasure(report) == []
        lines = ann.store.backend.read_events(namespace="people/ann", since=None, op=None, chunk_id=None)
        assert all(line.get("erased") or line["op"] == "erase" for line in lines)
        for memory in (below, ben):
            assert memory.search("warranty") and memory.trajectories() and not check(memory.store)
        if not isinstance(place, str):
            assert b"Kettle 1 hums" not in everything(ben)
        again = ben.erase(namespace="people/ann", dry_run=False)
        assert not (again.chunk_ids or again.files or again.events)
        assert not ben.erase(namespace="people/nobody").chunk_ids
        ann.remember("User: I am back.")
        with pytest.raises(NamespaceError):
            ben.erase(namespace="../people")
        with pytest.raises(InputError):
            ben.erase(namespace="people/ann", person="Ann")


def test_derived_data_is_cleaned_once_however_many_namespaces_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        for number in range(5):
            with Memory.open(tmp_path / "brain", namespace=f"people/{number}") as one:
                one.remember("User: Tessa has the key." if number < 2 else "User: The key is lost.")
        cleaned: list[Sequence[str]] = []
        monkeypatch.setattr(
            type(memory.store.backend), "purge", lambda _, names, **_more: cleaned.append(names)
        )
        memory.erase(person="Tessa", dry_run=False)
    assert cleaned == [["people/0", "people/1"]]


def test_no_part_of_a_recorded_run_stays_for_a_later_erasure_to_miss(place: Path | str) -> None:
    with Memory.open(place) as memory:
        memory.remember("Tessa keeps the key of the tower.")
        memory.remember("Wendel rings the bell of the tower at noon.")
        memory.recall("Who has the key of the tower, and who rings the bell of the tower?")
        erase(memory.store, person="Tessa", dry_run=False)
        report = erase(memory.store, person="Wendel", dry_run=False)
        assert verify_erasure(memory.store, report) == []
        assert b"rings the bell of the tower at noon" not in everything(memory)
        assert not list(memory.store.files.names("trajectories", recursive=True))


def test_a_name_is_found_in_either_form_of_its_accents(place: Path | str) -> None:
    with Memory.open(place) as memory:
        ids = memory.remember(f"Then {normalize('NFD', 'Jörg Müller')} took the oars.").chunk_ids
        ids += memory.remember(f"Then {normalize('NFC', 'Jörg Müller')} took the sail.").chunk_ids
        for form in ("NFC", "NFD"):
            assert memory.erase(person=normalize(form, "Jörg Müller")).chunk_ids == ids
        report = memory.erase(person="Jörg Müller", dry_run=False)
        assert memory.verify_erasure(report) == [] and memory.list_chunks() == []


def test_no_word_takes_the_place_of_a_speaker_who_was_erased(place: Path | str) -> None:
    with Memory.open(place) as memory, Memory.open(place) as other:
        memory.remember("Dana: The ropes came by boat.\nBen: Good, put them away.")
        memory.remember("Dana: Who has lanterns?\nQuillvane: The lanterns came by boat.")
        stores = (memory.store, other.store)
        assert all("Quillvane" in store.candidate_source().authors() for store in stores)
        assert erase(memory.store, person="Quillvane", dry_run=False).chunk_ids
        memory.remember("Dana: Who has kettles?\nZorbalina: The kettles came by cart, on Monday.")
        for store in stores:
            assert set(store.candidate_source().authors()) == {"Dana", "Ben", "Zorbalina"}
        assert check(memory.store) == []


def test_a_name_at_the_beginning_of_a_line_is_found_wherever_it_is_written(place: Path | str) -> None:
    """In JSON the letter of the escaped line break stands before it."""
    with Memory.open(place) as memory:
        turns = memory.remember("Dana: Who has the lanterns?\nQuillvane: they came by boat.\n").chunk_ids
        split = memory.remember("The lanterns belong to Ada\nQuillvane, who lent them.").chunk_ids
        kept = memory.remember("A tequillvane is no lantern, nor is \\tquill.").chunk_ids
        program = {"code": "print(text)", "output": repr("lanterns?\nQuillvane: they came")}
        start = {"kind": "start", "format": 1, "namespace": memory.store.namespace}
        for number, step in enumerate((program, {"output": f"found\n{turns[0]} by boat"})):
            lines = (json.dumps(one) + "\n" for one in (start, {"kind": "step", **step}))
            run = f"trajectories/2026-03/traj-20260302T100000-0000000{number}.jsonl"
            memory.store.files.create(run, "".join(lines).encode())
        report = erase(memory.store, person="quillvane", dry_run=False)
        assert set(report.chunk_ids) == {*turns, *split}
        assert not memory.store.files.names("trajectories", recursive=True)
        assert b"quillvane" not in everything(memory).lower().replace(b"tequillvane", b"")
        assert verify_erasure(memory.store, report) == []
        assert memory.list_chunks() == kept


def test_a_name_that_a_line_break_divides_is_taken_out_of_a_text_file(place: Path | str) -> None:
    with Memory.open(place) as memory:
        note = "# Notes\n\nThe lens was paid by Ada\nQuillvane, they said.\nIt is of glass.\n"
        memory.store.files.write("memory/long_term/lens.md", note.encode())
        report = memory.erase(person="Ada Quillvane", dry_run=False)
        left = memory.store.files.read("memory/long_term/lens.md")
        assert left == b"# Notes\n\nThe lens was paid by [erased], they said.\nIt is of glass.\n"
        assert len(report.files) == 1 and memory.verify_erasure(report) == []


def test_a_quotation_of_any_part_of_a_long_text_is_taken_out_of_a_text_file(place: Path | str) -> None:
    words = [f"lantern{number} burns" for number in range(500)]
    with Memory.open(place) as memory:
        long_text = memory.store.create_chunk(" ".join(words), metadata={"conversation_id": "tower"})
        for quoted in (words[:12], words[-12:]):
            note = f"# Notes\n\nThey wrote: {' '.join(quoted)}\nIt is of glass.\n"
            memory.store.files.write("memory/long_term/lens.md", note.encode())
            planned = memory.erase(source="tower")
            assert planned.chunk_ids == [long_text.id] and len(planned.files) == 1
        report = memory.erase(source="tower", dry_run=False)
        left = memory.store.files.read("memory/long_term/lens.md")
        assert left == b"# Notes\n\n[erased]\nIt is of glass.\n"
        assert memory.verify_erasure(report) == []


def test_a_line_that_another_process_appends_during_an_erasure_is_not_lost(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_lines, name = Redaction._without_lines, "log/continuum.jsonl"
    with Memory.open(place) as memory, Memory.open(place) as other, ThreadPoolExecutor(1) as threads:
        memory.store.files.write(name, b'{"ns":"default","id":"1","reason":"Ada Quillvane left"}\n')

        def append() -> None:
            with other.store.files.transaction():
                other.store.files.append(name, b'{"ns":"default","id":"2"}\n')

        def appended(*args: Any, **more: Any) -> bytes:
            wait([threads.submit(append)], timeout=0.5)
            return without_lines(*args, **more)

        monkeypatch.setattr(Redaction, "_without_lines", appended)
        memory.erase(person="Ada Quillvane", dry_run=False)
        threads.shutdown()
        assert memory.store.files.read(name) == b'{"ns":"default","id":"2"}\n'


def test_a_change_whose_line_in_the_log_was_erased_is_not_said_to_be_undone(place: Path | str) -> None:
    with Memory.open(place) as memory, Memory.open(place, actor="quillvane") as other:
        lamp = memory.remember("The lamp is red.").chunk_ids[0]
        memory.update(lamp, "The lamp is blue.")
        other.update(lamp, "The lamp is green.")
        assert memory.erase(person="Quillvane", dry_run=False).events
        with pytest.raises(ConflictError, match="changed since"):
            memory.undo()
        assert present(memory.get(lamp)).content == "The lamp is green."


def test_lines_of_the_log_about_other_chunks_are_still_found_by_their_ids(place: Path | str) -> None:
    with Memory.open(place) as memory:
        former = memory.remember(SAYS).chunk_ids[0]
        kept = memory.remember("The lens came in June.").chunk_ids[0]
        memory.link(kept, former, "supports", 0.5)

        def operations() -> list[str]:
            backend = memory.store.backend
            lines = backend.read_events(namespace="default", since=None, op=None, chunk_id=kept)
            return [line["op"] for line in lines]

        before = operations()
        erase(memory.store, person=NAME, dry_run=False)
        assert "link" in before
        assert operations()[: len(before)] == before


@pytest.mark.local_only("settings in a folder")
def test_settings_and_tokens_that_name_a_person_are_said_to_remain(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        for name in ("config.toml", "tokens.json"):
            (tmp_path / "brain" / name).write_text("# of Quillvane\n", encoding="utf-8")
        report = memory.erase(person="Quillvane", dry_run=False)
        for left in memory.verify_erasure(report):
            assert any(left.removeprefix("../") in one for one in report.remaining)
        assert len(memory.verify_erasure(report)) == 2


@pytest.mark.parametrize("by", ["person", "source", "namespace"])
def test_lists_of_files_and_sessions_in_the_index_are_erased(place: Path | str, by: str) -> None:
    with Memory.open(place, namespace="harbour") as memory:
        memory.store.files.write("memory/long_term/quillvane.md", b"# The lens\n\nIt is of glass.\n")
        memory.continuum.sync()
        told = memory.remember("Quillvane lit it.", conversation_id="session-of-quillvane").chunk_ids
        shown = [f"{SHOWN}.json", f"{SHOWN}/session-of-quillvane.jsonl", f"{SHOWN}/s-1.jsonl"]
        for name in shown:
            memory.store.files.write(name, msgspec.json.encode({"by": "", "ids": told}) + b"\n")
        name = {"person": "Quillvane", "source": "session-of-quillvane", "namespace": "harbour"}[by]
        report = memory.erase(**{by: name}, dry_run=False)
        assert [memory.store.files.read(name) or None for name in shown] == [None] * 3
        assert memory.store.files.exists(MIRRORED) == (by == "source"), "it names the file"
        assert memory.verify_erasure(report) == []


@pytest.mark.local_only("chunk files edited by hand")
@pytest.mark.parametrize("by", ["person", "source", "namespace"])
def test_versions_are_erased_whatever_became_of_the_file_of_their_chunk(tmp_path: Path, by: str) -> None:
    """A file was removed, or put back as it was before: its former and later versions still name the person."""
    brain = tmp_path / "brain"
    about = {"conversation_id": "lanterns"}
    with Memory.open(brain, namespace="harbour") as memory:
        ids = [memory.remember(f"Lantern {number} is lit.", **about).chunk_ids[0] for number in range(3)]
        first = {path: path.read_bytes() for path in (brain / "memory/chunks").glob("*/*.json")}
        for chunk_id in ids:
            memory.update(chunk_id, f"Quillvane lights the lantern {chunk_id[-4:]} at night.")
            memory.update(chunk_id, "Somebody lights it.")
    removed, put_back = (next(path for path in first if path.stem == one) for one in ids[:2])
    removed.unlink()
    put_back.write_bytes(first[put_back])
    name = {"person": "Quillvane", "source": "lanterns", "namespace": "harbour"}[by]
    with Memory.open(brain, namespace="harbour") as memory:
        assert sorted(memory.list_chunks()) == sorted(ids[1:])
        planned, report = memory.erase(**{by: name}), memory.erase(**{by: name}, dry_run=False)
        assert set(planned.chunk_ids) == set(report.chunk_ids) == set(ids)
        assert memory.verify_erasure(report) == [] and b"Quillvane" not in everything(memory)
        assert not list((brain / "memory/archive/versions").iterdir())


@pytest.mark.local_only("damage a file")
def test_chunk_files_that_cannot_be_read_are_said_to_remain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brain = tmp_path / "brain"
    with Memory.open(brain) as memory:
        ids = memory.remember("Tessa keeps the key of the tower.").chunk_ids
    (path,) = (brain / "memory/chunks").glob("*/*.json")
    path.write_text(path.read_text("utf-8").replace('"content"', "content"), encoding="utf-8")
    assert main(["--brain", str(brain), "erase", "--person", "Tessa"]) == 0
    shown = capsys.readouterr().out
    assert "1 chunk file that cannot be read" in shown and "nothing names Tessa" in shown
    with Memory.open(brain) as memory:
        report = erase(memory.store, person="Tessa", dry_run=False)
        assert report.unread == 1 and "cannot be read" in report.remaining[0]
        assert verify_erasure(memory.store, report)
        path.write_text(path.read_text("utf-8").replace("content", '"content"', 1), encoding="utf-8")
        report = erase(memory.store, person="Tessa", dry_run=False)
        assert report.chunk_ids == ids and not report.unread
        assert verify_erasure(memory.store, report) == []


@pytest.mark.local_only("chunk files edited by hand")
@pytest.mark.parametrize("by", ["person", "namespace"])
def test_a_damaged_version_of_a_chunk_whose_file_was_removed_is_erased(tmp_path: Path, by: str) -> None:
    brain = tmp_path / "brain"
    with Memory.open(brain, namespace="tower") as memory:
        (named,) = memory.remember("Tessa has the key.").chunk_ids
        memory.update(named, "Somebody has it.")
    (version,) = (brain / "memory/archive/versions").glob("*/1.json")
    version.write_text(version.read_text("utf-8").replace('"content"', "content"), encoding="utf-8")
    next((brain / "memory/chunks").glob(f"*/{named}.json")).unlink()
    with Memory.open(brain, namespace="tower") as memory:
        elsewhere = {"person": "Anna"} if by == "person" else {"namespace": "harbour"}
        assert not memory.erase(**elsewhere).chunk_ids
        report = memory.erase(
            **({"person": "Tessa"} if by == "person" else {"namespace": "tower"}), dry_run=False
        )
        assert report.chunk_ids == [named] and memory.verify_erasure(report) == []
        assert not version.exists() and b"Tessa" not in everything(memory)


@pytest.mark.local_only("chunk files edited by hand")
@pytest.mark.parametrize("by", ["person", "namespace"])
def test_what_a_repair_replaced_and_killed_processes_left_is_erased(tmp_path: Path, by: str) -> None:
    store = tmp_path / "brain" / "memory"
    with Memory.open(tmp_path / "brain", namespace="tower") as memory:
        (named,) = memory.remember("It rains.").chunk_ids
        memory.update(named, "Tessa has the key.")
        path = next((store / "chunks").glob(f"*/{named}.json"))
        path.write_text(path.read_text("utf-8").replace('"content"', "content"), encoding="utf-8")
        assert all(step.done for step in repair(memory.store, dry_run=False))
        assert b"Tessa" not in encode_chunk(memory.store.get_many([named])[named]) and list(
            (store / "archive" / "damaged").iterdir()
        )
        (store / "archive" / "damaged" / "sorted").mkdir()  # by hand
        unfinished = store / "index" / ".tag_index.json.4711.0a1b2c3d0.tmp"
        unfinished.write_text('{"Tessa": []}')
        os.utime(unfinished, (0, 0))
        report = memory.erase(
            **({"person": "Tessa"} if by == "person" else {"namespace": "tower"}), dry_run=False
        )
        assert report.chunk_ids == [named] and memory.verify_erasure(report) == []
        assert b"Tessa" not in everything(memory)


@pytest.mark.parametrize("by", ["person", "namespace"])
def test_former_versions_that_cannot_be_read_are_searched_too(place: Path | str, by: str) -> None:
    with Memory.open(place, namespace="tower") as memory:
        named, other = (memory.remember(text).chunk_ids[0] for text in ("Tessa has the key.", "It rains."))
        for chunk_id in (named, other):
            memory.update(chunk_id, "Somebody has it.")
        if isinstance(place, Path):
            for version in (place / "memory/archive/versions").glob("*/1.json"):
                version.write_text(
                    version.read_text("utf-8").replace('"content"', "content"), encoding="utf-8"
                )
        else:
            damage = "UPDATE rlm_mem.versions SET body = replace(body, '\"content\"', 'content')"
            postgres(memory.store.backend).change("tower", damage)
        what = {"person": "Tessa"} if by == "person" else {"namespace": "tower"}
        planned, report = (memory.erase(**what, dry_run=dry) for dry in (True, False))
        assert (
            set(planned.chunk_ids) == set(report.chunk_ids) == {named, *([] if by == "person" else [other])}
        )
        assert memory.verify_erasure(report) == [] and b"Tessa" not in everything(memory)


def test_a_text_that_is_damaged_while_the_memory_is_open_is_erased_or_said_to_remain(
    place: Path | str,
) -> None:
    with Memory.open(place) as memory:
        (chunk_id,) = memory.remember("Tessa keeps the key of the tower.").chunk_ids
        if isinstance(place, Path):
            (path,) = (place / "memory/chunks").glob("*/*.json")
            path.write_text(path.read_text("utf-8").replace('"content"', "content"), encoding="utf-8")
        else:
            damage = "UPDATE rlm_mem.bodies SET body = replace(body, '\"content\"', 'content')"
            postgres(memory.store.backend).change("default", damage)
        report = memory.erase(person="Tessa", dry_run=False)
        if isinstance(place, Path):
            assert report.unread == 1 and "1 chunk file that cannot be read" in report.remaining[0]
        else:
            assert report.chunk_ids == [chunk_id] and memory.verify_erasure(report) == []
        report = memory.erase(namespace="default", dry_run=False)
        assert report.unread or memory.verify_erasure(report) == []


@pytest.mark.local_only("tear a file")
@pytest.mark.parametrize("by", ["person", "namespace"])
def test_torn_lines_of_the_audit_log_and_those_of_lost_namespaces_are_erased(tmp_path: Path, by: str) -> None:
    """A power cut tore a line; a namespace whose recorded runs were removed is named in the log alone."""
    settings = Config(recall=RecallConfig(trajectories=False))
    with Memory.open(tmp_path / "brain", namespace="asked", config=settings) as memory:
        memory.recall("Who gave Tessa the key?")
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember("The tower has a key.")
        (log,) = (tmp_path / "brain/memory/log").glob("reads-*.jsonl")
        whole = log.read_bytes()
        log.write_bytes(
            whole + b'{"ts":"2026-02-10","op":"recall","ns":"asked","query":"Did Tessa k\n{"ts":"2026'
        )
        what = {"person": "Tessa"} if by == "person" else {"namespace": "asked"}
        planned, report = (memory.erase(**what, dry_run=dry) for dry in (True, False))
        assert planned.events == report.events == 2
        assert b"Tessa" not in everything(memory) and log.read_bytes().endswith(b'\n{"ts":"2026')
        assert memory.erase(**what, dry_run=False).events == 0


def test_nothing_is_erased_within_a_batch(place: Path | str) -> None:
    with Memory.open(place) as memory:
        ids = memory.remember("Tessa keeps the key of the tower.").chunk_ids
        with memory.batch():
            assert memory.erase(person="Tessa").chunk_ids == ids
            with pytest.raises(ConflictError, match="within a batch"):
                memory.erase(person="Tessa", dry_run=False)
        assert memory.list_chunks() == ids


def test_a_namespace_without_chunks_is_cleaned_too(place: Path | str) -> None:
    with Memory.open(place, namespace="people/ann") as memory:
        memory.store.files.write("memory/long_term/tower.md", b"# Tower\n\nTessa keeps the key.\n")
    with Memory.open(place) as memory:
        memory.remember("The tower has a key.")
        report = erase(memory.store, person="Tessa", dry_run=False)
        assert report.files == ["people/ann: memory/long_term/tower.md"]
        assert verify_erasure(memory.store, report) == []


@pytest.mark.parametrize("recorded", [True, False])
def test_what_was_asked_of_an_empty_namespace_is_erased(place: Path | str, recorded: bool) -> None:
    settings = Config(recall=RecallConfig(trajectories=recorded))
    with Memory.open(place, namespace="asked", config=settings) as memory:
        memory.recall("Who gave Tessa the key?")
    with Memory.open(place) as memory:
        memory.remember("The tower has a key.")
        report = erase(memory.store, person="Tessa", dry_run=False)
        assert len(report.files) == recorded and report.events == 1
        assert verify_erasure(memory.store, report) == []


@pytest.mark.local_only("tear a file")
def test_a_torn_record_of_a_run_is_erased_too(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember("Somebody else has the key.")
        torn = tmp_path / "brain/memory/trajectories/2026-03/traj-20260302T100000-00000000.jsonl"
        torn.parent.mkdir(parents=True)
        torn.write_text('{"kind": "call", "prompt": "Tessa said', encoding="utf-8")
        report = erase(memory.store, person="Tessa", dry_run=False)
        assert report.files and not torn.exists()
        assert verify_erasure(memory.store, report) == []


@pytest.mark.local_only("count the files that are read")
def test_each_run_is_read_for_its_namespace_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brain, read = tmp_path / "brain", Counter[bytes]()
    for name in ("default", "work", "team/a", "team/b"):
        with Memory.open(brain, namespace=name) as memory:
            memory.remember(f"Tessa keeps the key of {name}.")
            memory.recall("Who keeps the key?")

    def counted(line: bytes) -> str | None:
        read[line] += 1
        return namespace_of_run(line)

    monkeypatch.setattr(brain_folder, "namespace_of_run", counted)
    with Memory.open(brain) as memory:
        report = erase(memory.store, person="Tessa", dry_run=True)
    assert len([one for one in report.files if "trajectories/" in one]) == len(read) == 4
    assert set(read.values()) == {1}


@pytest.mark.local_only("tear a file")
def test_a_torn_run_belongs_to_its_own_namespace_or_to_none(tmp_path: Path) -> None:
    """Wherever a power cut tears it: another namespace does not export it, and an erasure reaches it."""
    brain = tmp_path / "brain"
    with Memory.open(brain, namespace="work") as work, Memory.open(brain) as home:
        home.remember("Somebody else has the key.")
        work.remember("Tessa keeps the key.")
        work.recall("Who keeps the key, Tessa or Wendel?")
        (run,) = (brain / "memory/trajectories").rglob("*.jsonl")
        whole = run.read_bytes()
        first = whole.index(b"\n")
        name = run.relative_to(brain / "memory").as_posix()
        asked = whole.index(b"Who keeps the key")
        for length in (0, 1, 40, asked + 5, asked + 40, first - 1, first + 9, len(whole) - 9):
            run.write_bytes(whole[:length])
            assert name not in home.store.files.names("", recursive=True)
            if length > asked:
                assert name in work.store.files.names("", recursive=True)
            if b"Tessa" not in whole[:length]:
                continue
            report = erase(home.store, person="Tessa", dry_run=True)
            assert f"work: {name}" in report.files
        run.write_bytes(whole[asked:first])  # the beginning is gone: no namespace is named
        for memory in (home, work):
            assert name not in memory.store.files.names("", recursive=True)
        report = erase(home.store, person="Tessa", dry_run=False)
        assert not run.exists()
        assert verify_erasure(home.store, report) == []


def test_an_admin_erases_over_http_in_every_namespace(tmp_path: Path) -> None:
    """The report that comes back verifies it; a server of one namespace refuses."""
    brain = tmp_path / "brain"
    with Memory.open(brain) as memory, Memory.open(brain, namespace="team/b") as other:
        ids = [one.remember(f"{SAYS} {place}").chunk_ids[0] for one, place in ((memory, "a"), (other, "b"))]
    with client_of(brain) as client:
        planned = client.post("erase", json={"person": NAME}).json()
        assert planned["dry_run"] and set(planned["chunk_ids"]) == set(ids)
        assert client.get(f"chunks/{ids[0]}").status_code == 200
        done = client.post("erase", json={"person": NAME, "dry_run": False}).json()
        assert set(done["chunk_ids"]) == set(ids) and done["remaining"]
        assert client.get(f"chunks/{ids[0]}").status_code == 404
        assert client.post("erase/verify", json={"report": done["report"]}).json() == {"left": []}
        assert client.post("erase/verify", json={"report": "{}"}).status_code == 409
        for wrong in ({}, {"person": "x y", "source": "b"}, {"person": "a"}):
            assert client.post("erase", json=wrong).status_code == 409
        client.post("remember", json={"text": SAYS})
        assert client.post("erase/verify", json={"report": done["report"]}).json()["left"]
    with client_of(brain, namespace="team/b") as client:
        assert "one namespace" in client.post("erase", json={"person": NAME}).json()["detail"]


def test_a_run_that_outlasts_an_erasure_brings_nothing_back(place: Path | str) -> None:
    with Memory.open(place, llm="offline") as memory:
        memory.remember("Wendel Tarrow: I live in Harbour Lane 7.")
        session = memory.recall_session("Where does Wendel Tarrow live?")
        session.execute("found = search('Wendel')\nprint(found[0]['snippet'])")
        report = memory.erase(person="Wendel Tarrow", dry_run=False)
        session.execute("print(found[0]['snippet'])")
        session.finish("Harbour Lane 7")
        assert memory.verify_erasure(report) == []
        assert memory.trajectories() == []


def test_a_run_that_has_read_what_is_erased_and_not_recorded_it_yet_brings_nothing_back(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks are deleted after the records are cleaned: another process may read one in between, or before."""
    with Memory.open(place, llm="offline") as memory, Memory.open(place, llm="offline") as other:
        memory.remember("The kettle is red.")
        other.recall("What colour is the kettle?")
        memory.remember("Wendel Tarrow: I live in Harbour Lane 7.")
        begun = other.recall_session("What colour is the kettle?")
        found = begun.execute("found = search('Harbour')")
        assert found.error is None
        delete = ChunkStore.delete_chunk

        def read_at_the_last_moment(store: ChunkStore, chunk_id: str, permanent: bool = False) -> bool:
            if permanent:
                other.recall("Where is Harbour Lane 7?")
            return delete(store, chunk_id, permanent)

        monkeypatch.setattr(ChunkStore, "delete_chunk", read_at_the_last_moment)
        report = memory.erase(person="Wendel Tarrow", dry_run=False)
        begun.execute("print(found[0]['snippet'])")
        begun.finish("red")
        assert memory.verify_erasure(report) == []
        assert len(memory.trajectories()) == 1


def test_a_server_forgets_runs_and_open_recalls_with_what_it_erases(tmp_path: Path) -> None:
    with client_of(tmp_path / "brain") as client:
        client.post("remember", json={"text": "Wendel Tarrow: I live in Harbour Lane 7."})
        question = {"question": "Where does Wendel Tarrow live?"}
        client.post("recall", json=question)
        handle = client.post("sessions", json=question).json()["handle"]
        assert "Tarrow" in client.get("runs").text
        assert client.post("erase", json={"person": "Wendel Tarrow", "dry_run": False}).status_code == 200
        assert "Tarrow" not in client.get("runs").text
        assert client.post(f"sessions/{handle}/programs", json={"code": "1"}).status_code == 404


def test_killed_in_the_middle_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        filled(memory)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(type(memory.store.backend), "purge", _killed)
            erase(memory.store, person=NAME, dry_run=False)
    with Memory.open(tmp_path / "brain") as memory:
        report = erase(memory.store, person=NAME, dry_run=False)
        assert verify_erasure(memory.store, report) == [] and not check(memory.store)
        assert memory.store.files.names(ERASING) == [] and check(memory.store) == []


def _killed(*_: object, **_more: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["", "a", "two\nlines", "...", "x" * 300])
def test_names_that_would_erase_anything_are_refused(tmp_path: Path, name: str) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember("A text (a+)+$ with .* in it.")
        with pytest.raises(InputError):
            erase(memory.store, person=name, dry_run=False)
        assert not erase(memory.store, person="(a+)+b", dry_run=False).chunk_ids
        assert not erase(memory.store, person="tex", dry_run=False).chunk_ids  # no whole word
        with pytest.raises(InputError):
            erase(memory.store)


def test_the_command_erases_a_namespace_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brain, report = ["--brain", str(tmp_path / "brain")], str(tmp_path / "report.json")
    ann = ["--namespace", "people/ann", *brain]
    assert main(["remember", SAYS, *ann]) == 0
    assert main(["erase", "--all", *brain]) == 2  # not that of the settings
    assert "--namespace NAME" in capsys.readouterr().err
    assert main(["erase", "--all", *ann]) == 0
    assert capsys.readouterr().out.startswith("would erase 1 chunk, 0 files, 1 line of the audit log\n")
    assert main(["erase", "--all", "--apply", "--report", report, *ann]) == 0
    assert main(["erase", "--verify", report, *brain]) == 0
    capsys.readouterr()
    assert main(["erase", "--all", *ann]) == 0
    assert capsys.readouterr().out.startswith("people/ann is empty\n")


def test_the_command_shows_the_texts_that_it_would_erase(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brain = str(tmp_path / "brain")
    with Memory.open(brain) as memory:
        for number in range(21):
            memory.remember(f"{NAME} paid bill {number}.", conversation_id=f"bill-{number}")
    assert main(["erase", "--person", NAME, "--brain", brain]) == 0
    shown = capsys.readouterr().out
    assert sum(f"  {NAME} paid bill " in line for line in shown.splitlines()) == 20
    assert "the first 20 of each; --json lists all" in shown


def test_the_command_erases_and_verifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brain, report = ["--brain", str(tmp_path / "brain")], tmp_path / "report.json"
    assert main(["remember", SAYS, *brain]) == 0
    capsys.readouterr()
    assert main(["erase", "--person", NAME, "--json", *brain]) == 0
    assert json.loads(capsys.readouterr().out)["dry_run"]
    assert main(["erase", "--person", NAME, "--apply", *brain]) == 2
    assert main(["erase", "--person", NAME, "--apply", "--report", str(report), *brain]) == 0
    assert main(["erase", "--verify", str(report), *brain]) == 0
    capsys.readouterr()
    assert main(["erase", "--person", NAME, *brain]) == 0
    assert capsys.readouterr().out == f"nothing names {NAME}\n"
    assert main(["remember", SAYS, *brain]) == 0
    assert main(["erase", "--verify", str(report), *brain]) == 1
    report.write_text("[]")
    assert main(["erase", "--verify", str(report), *brain]) == 2


def test_an_erasure_that_is_cut_off_leaves_a_report_of_what_it_may_have_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    brain, (first, second) = tmp_path / "brain", (tmp_path / "first.json", tmp_path / "second.json")
    command = ["--brain", str(brain), "erase", "--person", NAME, "--apply", "--report"]
    assert main(["--brain", str(brain), "remember", SAYS]) == 0
    with monkeypatch.context() as patch:
        patch.setattr(LocalBackend, "purge", _killed)
        assert main([*command, str(first)]) != 0
    assert "part may be erased" in capsys.readouterr().err
    assert main([*command, str(second)]) == 0
    for file in (first, second):
        assert main(["--brain", str(brain), "erase", "--verify", str(file)]) == 0
    assert read_report(first.read_bytes()).chunk_ids and not read_report(second.read_bytes()).chunk_ids
    (brain / "left.txt").write_text(SAYS.replace(NAME, "somebody"))
    assert main(["--brain", str(brain), "erase", "--verify", str(first)]) == 1


def test_an_erasure_that_is_cut_off_as_it_writes_its_report_leaves_the_planned_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain, report = tmp_path / "brain", tmp_path / "report.json"
    assert main(["--brain", str(brain), "remember", SAYS]) == 0
    publish = files.publish

    def cut_off(source: Any, target: Any) -> None:
        if Path(target) == report and report.stat().st_size:
            raise KeyboardInterrupt
        publish(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(files, "publish", cut_off)
        command = ["--brain", str(brain), "erase", "--person", NAME, "--apply", "--report", str(report)]
        assert main(command) == 130
    assert read_report(report.read_bytes()).chunk_ids
    assert main(["--brain", str(brain), "erase", "--verify", str(report)]) == 0


def test_an_erasure_on_a_full_disk_does_not_say_that_nothing_was_changed(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **_more: object) -> None:
        raise StoreFull("the disk is full: the index was not written: nothing was changed")

    with Memory.open(place) as memory:
        [gone] = memory.remember(SAYS).chunk_ids
        with monkeypatch.context() as patch:
            patch.setattr(type(memory.store.backend), "purge", full)
            with pytest.raises(StoreFull, match="not written: part may be erased"):
                memory.erase(person=NAME, dry_run=False)
        assert memory.get(gone) is None
        memory.erase(person=NAME, dry_run=False)
        assert NAME.encode() not in everything(memory)


@pytest.mark.parametrize("report", ["brain/report.json", "nowhere/report.json"])
def test_nothing_is_erased_without_a_report_that_stays_and_is_outside_of_the_memory(
    tmp_path: Path, report: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--brain", "brain", "remember", SAYS]) == 0
    assert main(["--brain", "brain", "erase", "--person", NAME, "--apply", "--report", report]) == 2
    assert report in capsys.readouterr().err
    assert not Path(report).exists()
    with Memory.open("brain") as memory:
        assert NAME.encode() in everything(memory)


def test_the_command_erases_a_folder_by_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/boat.md").write_text("The key hangs behind the clock.", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["--brain", "brain", "remember", "--folder", "notes"]) == 0
    # The record of this question names the relative path, and so would be found by it.
    assert main(["--brain", "brain", "recall", "Where is the key of notes/boat.md?"]) == 0
    capsys.readouterr()
    assert main(["--brain", "brain", "erase", "--source", "notes/boat.md"]) == 0
    assert capsys.readouterr().out.startswith("would erase 1 chunk, 3 files, ")
    assert main(["--brain", "brain", "remember", "--file", "notes/boat.md"]) == 0
    capsys.readouterr()
    assert main(["--brain", "brain", "erase", "--source", "notes/boat.md"]) == 0
    assert f"more came from {tmp_path}/notes/boat.md: erase this source too" in capsys.readouterr().err
    assert main(["--brain", "brain", "erase", "--source", "notes/ship.md"]) == 0
    assert capsys.readouterr().out.startswith("nothing came from notes/ship.md\n")


def test_pieces_of_a_large_file_hold_every_word_and_cut_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_PIECE", 64)
    monkeypatch.setattr(files, "_OVERLAP", 24)
    words = [f"word{number:03d}" for number in range(200)]
    large = tmp_path / "large"
    for between in (b" ", b"\n", b"\0"):
        large.write_bytes(between.join(word.encode() for word in words))
        found = list(files.pieces(large))
        assert len(found) > 10 and max(map(len, found)) < 64 + 3 * 24
        assert {word for piece in found for word in piece.decode().replace("\0", " ").split()} == set(words)
        pairs = [f"{one}{between.decode()}{other}".encode() for one, other in pairwise(words)]
        assert all(any(pair in piece for piece in found) for pair in pairs)
    for data in (b"", b"x", b"x" * 64, b"x" * 1000):
        large.write_bytes(data)
        assert max(map(len, files.pieces(large)), default=0) <= max(len(data) and 1, 64 + 24)
        assert sum(map(len, files.pieces(large))) >= len(data)


@pytest.mark.local_only("look at files")
def test_what_is_left_in_a_large_file_is_found_wherever_it_is(
    place: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_PIECE", 5000)
    monkeypatch.setattr(files, "_OVERLAP", 200)
    with Memory.open(place, clock=clock) as memory:
        memory.remember(SAYS)
        report = erase(memory.store, person=NAME, dry_run=False)
        assert verify_erasure(memory.store, report) == []
        other = place / "memory" / "left.txt"
        for left, found in ((NAME, True), (SAYS[-60:], True), (f"{NAME}s", False), (f"x{NAME}", False)):
            for start in (4960, 4975, 4990):  # the first piece ends within it
                other.write_text(f"{'a ' * (start // 2)}{left} {'c ' * 5000}", encoding="utf-8")
                assert bool(verify_erasure(memory.store, report)) is found, (start, left)


def test_a_name_is_looked_for_in_linear_time() -> None:
    """Texts of some 100 KB, which any client can write, took from five seconds to a minute."""
    reports = ErasureReport(person=NAME), ErasureReport(source="import")
    person, source = map(Matcher, reports)
    begun = time.process_time()
    assert not person.names(("a" + "\u0301\u0323" * 50_000).encode())
    assert not source.names(b"source" * 10_000)
    assert not named_ids(b"chunk-" + b"-" * 200_000, {"chunk-other"})
    assert time.process_time() - begun < 2


def test_a_name_is_found_in_any_case_and_in_scripts_without_spaces(place: Path | str) -> None:
    with Memory.open(place) as memory:
        named = {
            "田中": "田中さんは猫が好きです。",
            "김민수": "김민수는 고양이를 좋아한다.",
            "Yamada": "昨日Yamadaさんと話した。",
            "Groß": "Herr GROSS mag Katzen.",
            "İnci": "inci kedi sever.",
        }
        for name, text in named.items():
            made = memory.remember(text).chunk_ids
            assert memory.erase(person=name).chunk_ids == made, name
        assert not memory.erase(person="Gro").chunk_ids


def test_a_verification_follows_the_links_in_a_store(tmp_path: Path) -> None:
    (tmp_path / "disk" / "months").mkdir(parents=True)
    (tmp_path / "brain").mkdir()
    (tmp_path / "brain" / "memory").symlink_to(tmp_path / "disk")
    (tmp_path / "disk" / "chunks").symlink_to("months")
    (tmp_path / "disk" / "archive").mkdir()
    (tmp_path / "disk" / "archive" / "round").symlink_to("..")
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember(SAYS)
        planned = memory.erase(person=NAME)
        assert any(name.startswith("chunks/") for name in memory.verify_erasure(planned))
        assert memory.verify_erasure(memory.erase(person=NAME, dry_run=False)) == []


def test_a_file_that_is_still_there_is_named_and_its_return_is_told(
    place: Path | str, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in (("a.md", f"{NAME} lit it."), ("b.md", "The mole is mended.")):
        (folder / name).write_text(text, encoding="utf-8")
    with Memory.open(place) as memory:
        memory.sync_folder(folder, known_as="notes")
        report = memory.erase(person=NAME, dry_run=False)
        assert [one for one in report.remaining if one.endswith("changed: notes/a.md")], report.remaining
        (folder / "b.md").write_text("The mole is not mended.", encoding="utf-8")
        synced = memory.sync_folder(folder)
        assert (synced.changed, synced.notices) == (["b.md"], []), "it does not come back of itself"
        (folder / "a.md").write_text(f"{NAME} lit it again.", encoding="utf-8")
        (notice,) = memory.sync_folder(folder).notices
        assert notice.where == "a.md" and "erased" in notice.reason
        (folder / "a.md").write_text(f"{NAME} lit it twice.", encoding="utf-8")
        assert memory.sync_folder(folder).notices == [], "told once"


def test_what_others_write_during_an_erasure_is_told(place: Path | str) -> None:
    with Memory.open(place) as memory, Memory.open(place) as other:
        memory.remember(f"{NAME} lit it.")
        written = list[str]()

        def planned(_: object) -> None:
            written.extend(other.remember(f"{NAME} put it out.").chunk_ids)
            other.remember("The mole is mended.")

        report = erase(memory.store, person=NAME, dry_run=False, planned=planned)
        assert report.remaining[0].startswith("1 memory that others wrote meanwhile")
        again = memory.erase(person=NAME, dry_run=False)
        assert again.chunk_ids == written and "others wrote" not in again.remaining[0]


@pytest.mark.local_only("in a git repository")
def test_the_command_names_the_git_repository_around_the_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "team" / ".git").mkdir(parents=True)
    report = tmp_path / "report.json"
    with Memory.open(tmp_path / "team" / "brain") as memory:
        memory.remember(f"{NAME} lit it.")
    arguments = ["--brain", str(tmp_path / "team" / "brain"), "erase", "--person", NAME]
    assert main([*arguments, "--apply", "--report", str(report)]) == 0
    line = f"the history of the git repository {tmp_path / 'team'}, and of its clones"
    shown = "".join(capsys.readouterr().out.split())  # lines may be broken within the path
    assert "".join(line.split()) in shown and line in json.loads(report.read_text())["remaining"]
