"""Folders that are kept in sync: what changed, moved, went and came back, with history, undo and several writers."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlm_mem.config import Config
from rlm_mem.errors import InputError, InvalidConfig, NotFoundError, StorageError
from rlm_mem.interchange import documents, folder_sync, folder_writing
from rlm_mem.interchange.documents import DocumentReader
from rlm_mem.interchange.drawings import BROKEN
from rlm_mem.interchange.folders import NO_FOLDER, sync_folder, watch_folder
from rlm_mem.interchange.importing import import_source
from rlm_mem.interchange.places import FolderPlace
from rlm_mem.interchange.report import FolderReport
from rlm_mem.memory import Memory
from rlm_mem.operations.moving import SyncFolderRequest
from rlm_mem.operations.registry import operation_named
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from rlm_mem.store.local import workers

from .conftest import Open

GATE, BOAT, KEY = "The gate is green.", "The boat is blue.", "The key is brass."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notes"
    write(made, {"gate.md": GATE, "sub/boat.txt": BOAT})
    return made


def write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def current(store: ChunkStore) -> dict[tuple[str, int], Any]:
    """What holds now, by file and place there."""
    found: dict[tuple[str, int], Any] = {}
    for chunk in store.iter_chunks():
        about = chunk.metadata
        if about.superseded_by is None:
            key = (about.provenance["path"], about.provenance["span"][0])
            assert key not in found, "one text of a file is there once"
            found[key] = (
                chunk.content,
                about.conversation_id,
                about.provenance,
                chunk.type,
                sorted(chunk.tags),
            )
    return found


def links_of(store: ChunkStore) -> list[tuple[Any, ...]]:
    """Each link, its ends given by their files and places there."""
    place = {
        one.id: (one.metadata.provenance["path"], one.metadata.provenance["span"][0])
        for one in store.iter_chunks()
    }
    return sorted(
        (place[one.id], place[link.target_id], link.type, link.strength, one.revision)
        for one in store.iter_chunks()
        for link in one.links
    )


def ids(store: ChunkStore) -> dict[str, str]:
    """The chunk of each file of one chunk."""
    return {path: one.id for one in store.iter_chunks() for path in [one.metadata.provenance["path"]]}


def test_each_kind_of_change_is_reported_and_applied(store: ChunkStore, folder: Path) -> None:
    first = sync_folder(store, folder)
    assert (first.added, first.unchanged, first.chunks_created) == (["gate.md", "sub/boat.txt"], 0, 2)
    before = ids(store)
    write(folder, {"gate.md": "The gate is red.", "key.md": KEY, "empty.md": " \n"})
    (folder / "picture.md").write_bytes(b"\x89PNG\0")
    (folder / "sub/boat.txt").rename(folder / "ship.txt")
    second = sync_folder(store, folder)
    assert (second.added, second.changed, second.renamed) == (
        ["key.md"],
        ["gate.md"],
        [("sub/boat.txt", "ship.txt")],
    )
    assert {one.where: one.reason for one in second.refused} == {
        "empty.md": "empty",
        "picture.md": "not text in UTF-8",
    }
    old = store.get_chunk(before["gate.md"])
    new = store.get_chunk(str(old and old.metadata.superseded_by))
    assert new is not None
    assert (new.content, new.revision, new.links[-1].reasoning) == (
        "The gate is red.",
        1,
        "gate.md was changed",
    )
    ship = store.get_chunk(before["sub/boat.txt"])
    assert ship is not None, "a renamed file keeps its chunks"
    assert (ship.metadata.provenance["path"], ship.metadata.conversation_id) == (
        "ship.txt",
        f"file:{folder / 'ship.txt'}",
    )
    (folder / "gate.md").unlink()
    third = sync_folder(store, folder)
    assert (third.archived, third.unchanged) == (["gate.md"], 2)
    assert [store.get_chunk(one) for one in (before["gate.md"], new.id)] == [None, None], (
        "former states go with it"
    )
    write(folder, {"moved/gate.md": "The gate is red."})
    fourth = sync_folder(store, folder)
    assert (fourth.restored, fourth.chunks_created, fourth.chunks_restored) == (["moved/gate.md"], 0, 2)
    assert store.get_chunk(new.id) is not None
    again = sync_folder(store, folder)
    assert (again.touched, again.change, again.unchanged, again.files) == (False, None, 3, 3)


def test_only_what_changed_in_a_long_file_is_replaced(store: ChunkStore, folder: Path) -> None:
    parts = [f"# Part {number}\n\n" + f"Sentence of part {number} about gates. " * 30 for number in range(5)]
    write(folder, {"long.md": "\n\n".join(parts)})
    sync_folder(store, folder, patterns="long.md")
    before = {one.content: one.id for one in store.iter_chunks()}
    assert len(before) == 5
    parts[1] = "# Part 1\n\n" + "Something else about boats and their keys. " * 30
    del parts[3]
    write(folder, {"long.md": "Words at the top.\n\n" + "\n\n".join(parts)})
    report = sync_folder(store, folder, patterns="long.md")
    after = {one.content: one for one in store.iter_chunks() if one.metadata.superseded_by is None}
    kept = {content: one for content, one in after.items() if content in before}
    assert {content: one.id for content, one in kept.items()} == {
        content: before[content] for content in kept
    }
    assert len(kept) >= 2
    assert report.chunks_superseded + report.chunks_archived == 5 - len(kept)
    text = (folder / "long.md").read_text()
    for one in after.values():
        start, end = one.metadata.provenance["span"]
        assert text[start:end] == one.content, "kept chunks say where they stand now"
    assert [one.metadata.provenance["part"] for one in after.values()] == sorted(
        one.metadata.provenance["part"] for one in after.values()
    ) or len(after) > 1


def test_front_matter_and_headings_are_in_the_chunks(store: ChunkStore, folder: Path) -> None:
    body = (
        "# Harbour\n\n"
        + "The crane lifts at noon. " * 60
        + "\n\n## Night\n\n"
        + "The lamp is lit at nine. " * 60
    )
    write(folder, {"gate.md": f"---\ntitle: Plan\ntags: [port]\ndate: 2026-01-05\n---\n{body}"})
    sync_folder(store, folder, patterns=["*.md"], tags=["own"])
    last = list(store.iter_chunks(tags=["own", "port"]))[-1]
    assert last.metadata.provenance["headings"][0] == "Harbour"
    assert last.metadata.extra["title"] == "Plan"
    assert str(last.metadata.occurred_at).startswith("2026-01-05")
    store.update_chunk(last.id, tags=[*last.tags, "by hand"])
    write(folder, {"gate.md": f"---\ntags: [quay]\ndate: 2026-01-05\n---\n{body}"})
    assert sync_folder(store, folder, patterns=["*.md"], tags=["own"]).chunks_created == 0
    kept = store.get_chunk(last.id)
    assert kept is not None
    assert (sorted(kept.tags), kept.metadata.extra.get("title")) == (["by hand", "own", "quay"], None)


@pytest.mark.parametrize(
    ("name", "text", "day"),
    [
        ("Daily/2026-03-07.md", "Called Ines.", "2026-03-07"),
        ("2026_03_07.md", "Called Ines.", "2026-03-07"),
        ("journal.2026.03.07.md", "Called Ines.", "2026-03-07"),
        ("2026-03-07 Meeting on the harbour.md", "Called Ines.", "2026-03-07"),
        ("202603071230 Harbour.md", "Called Ines.", "2026-03-07"),
        ("20260307.txt", "Called Ines.", "2026-03-07"),
        ("2026-03-07.md", "---\ndate: 2026-01-05\n---\nCalled Ines.", "2026-01-05"),
        ("2026-03-07 to 2026-03-09.md", "Called Ines.", "2001-09-09"),
        ("2026-13-07.md", "Called Ines.", "2001-09-09"),
        ("12345678.md", "Called Ines.", "2001-09-09"),
    ],
)
def test_a_note_is_dated_by_its_front_matter_or_name(
    store: ChunkStore, tmp_path: Path, name: str, text: str, day: str
) -> None:
    write(tmp_path / "vault", {name: text})
    os.utime(tmp_path / "vault" / name, (1e9, 1e9))
    sync_folder(store, tmp_path / "vault")
    [chunk] = store.iter_chunks()
    assert str(chunk.metadata.occurred_at)[:10] == day
    (tmp_path / "vault" / name).rename(tmp_path / "vault" / "2026-04-01.md")
    assert sync_folder(store, tmp_path / "vault").renamed
    [chunk] = store.iter_chunks()
    dated = {"2026-03-07": "2026-04-01"}  # a day that was that of the name is that of the new name
    assert str(chunk.metadata.occurred_at)[:10] == dated.get(day, day)


def test_fields_of_the_front_matter_are_found(store: ChunkStore, tmp_path: Path) -> None:
    person = "---\ntitle: The keeper of the lock\naliases: [Ana, Anna]\nphone: '+49 30 5550101'\nborn: 1964-05-14\n"
    person += (
        "draft: true\nlayout: wide\ntemplate: person\nweight: 3\nupdated: 2026-01-01\n---\nLives in Kiel.\n"
    )
    write(tmp_path / "vault", {"7.md": person, "bare.md": "---\nphone: '+49 40 777'\n---\n"})
    sync_folder(store, tmp_path / "vault")
    told = {chunk.metadata.provenance["path"]: chunk for chunk in store.iter_chunks()}
    lines = "- aliases: Ana, Anna\n- phone: +49 30 5550101\n- born: 1964-05-14\n\nLives in Kiel."
    assert told["7.md"].content.strip() == lines
    assert told["bare.md"].content == "- phone: +49 40 777"
    memory = Memory(store)
    for words in ("keeper lock", "born", "Anna"):
        assert [hit.chunk_id for hit in memory.search(words)] == [told["7.md"].id]
    write(tmp_path / "vault", {"7.md": person.replace("title: The keeper of the lock\n", "")})
    sync_folder(store, tmp_path / "vault")
    assert memory.search("keeper lock") == []
    assert [hit.chunk_id for hit in memory.search("born")] == [told["7.md"].id]


def test_a_file_with_a_merge_conflict_is_read_once_it_is_resolved(store: ChunkStore, folder: Path) -> None:
    sync_folder(store, folder)
    conflict = f"# Gate\n\n<<<<<<< HEAD\n{GATE}\n=======\nThe gate is red.\n>>>>>>> phone\n"
    write(folder, {"gate.md": conflict, "new.md": conflict, "git.md": f"A conflict:\n\n```\n{conflict}```\n"})
    report = sync_folder(store, folder)
    assert report.added == ["git.md"] and not report.changed and not report.archived
    assert {one.where for one in report.refused} == {"gate.md", "new.md"}
    assert all("merge conflict" in one.reason for one in report.refused)
    assert current(store)["gate.md", 0][0] == GATE
    write(folder, {"gate.md": "The gate is red."})
    assert sync_folder(store, folder).changed == ["gate.md"]
    assert current(store)["gate.md", 0][0] == "The gate is red."


def test_a_record_in_conflict_is_named_and_can_be_removed(store: ChunkStore, folder: Path) -> None:
    sync_folder(store, folder)
    before = ids(store)
    for name in store.files.names("system/folders", recursive=True):
        store.files.write(
            name, b"<<<<<<< HEAD\n" + (store.files.read(name) or b"") + b"=======\n>>>>>>> theirs\n"
        )
    with pytest.raises(StorageError, match="merge conflict markers"):
        sync_folder(store, folder)
    for name in store.files.names("system/folders", recursive=True):
        store.files.remove(name)
    sync_folder(store, folder)
    assert ids(store) == before


def test_names_that_change_places_keep_their_chunks(store: ChunkStore, folder: Path) -> None:
    write(
        folder,
        {
            "a.md": GATE,
            "b.md": BOAT,
            "c.md": KEY,
            "draft.md": "The draft of the plan.",
            "plan.md": "Old plan.",
        },
    )
    (folder / "gate.md").unlink()
    (folder / "sub/boat.txt").unlink()
    sync_folder(store, folder)
    before = ids(store)
    texts = {name: (folder / name).read_text() for name in ("a.md", "b.md", "c.md")}
    write(folder, {"a.md": texts["c.md"], "b.md": texts["a.md"], "c.md": texts["b.md"]})
    (folder / "draft.md").rename(folder / "plan.md")
    report = sync_folder(store, folder)
    assert sorted(report.renamed) == [
        ("a.md", "b.md"),
        ("b.md", "c.md"),
        ("c.md", "a.md"),
        ("draft.md", "plan.md"),
    ]
    after = ids(store)
    assert (after["b.md"], after["c.md"], after["a.md"], after["plan.md"]) == (
        before["a.md"], before["b.md"], before["c.md"], before["draft.md"],
    )  # fmt: skip
    assert store.get_archived(before["plan.md"]) is not None


def test_a_whole_sync_is_one_change_that_can_be_undone(
    open_store: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_sync, "_PIECES_PER_COMMIT", 1)
    memory = Memory(open_store())
    sync_folder(memory.store, folder)
    before = current(memory.store)
    write(folder, {"gate.md": "The gate is red.", "key.md": KEY})
    (folder / "sub/boat.txt").unlink()
    report = memory.sync_folder(folder)
    after = current(memory.store)
    undone = memory.undo()
    assert undone is not None
    assert (undone.change, current(memory.store)) == (report.change, before)
    assert all(one in str(undone) for one in undone.chunk_ids) and ".json" not in str(undone)
    again = memory.sync_folder(folder)
    assert (again.added, again.changed, again.archived) == (report.added, report.changed, report.archived)
    assert current(memory.store) == after
    memory.undo(change=again.change)
    assert current(memory.store) == before


def test_what_was_deleted_or_edited_in_the_memory_stays_so_until_its_text_changes(
    store: ChunkStore, folder: Path
) -> None:
    sync_folder(store, folder)
    before = ids(store)
    store.delete_chunk(before["gate.md"])
    store.update_chunk(before["sub/boat.txt"], content="The boat was sold.")
    write(folder, {"gate.md": f"{GATE}\n"})
    sync_folder(store, folder)
    assert [one.content for one in store.iter_chunks()] == ["The boat was sold."]
    write(folder, {"sub/boat.txt": "The boat is white."})
    sync_folder(store, folder)
    assert [one.metadata.superseded_by is None for one in store.iter_chunks()].count(True) == 1
    assert {one.content for one in store.iter_chunks()} == {"The boat was sold.", "The boat is white."}


def test_an_edited_file_under_a_new_name_is_the_same_file(store: ChunkStore, folder: Path) -> None:
    parts = [
        f"Paragraph {number}. " + f"It tells of gate number {number} and its lamp. " * 20
        for number in range(4)
    ]
    write(folder, {"long.md": "\n\n".join(parts)})
    sync_folder(store, folder)
    (folder / "long.md").unlink()
    write(folder, {"sub/other.md": "\n\n".join([*parts, "And one more paragraph at its end."])})
    report = sync_folder(store, folder)
    assert (report.renamed, report.changed, report.archived) == (
        [("long.md", "sub/other.md")], ["sub/other.md"], [],
    )  # fmt: skip


def test_a_short_file_edited_under_a_new_name_keeps_its_history(store: ChunkStore, folder: Path) -> None:
    text = "# Gate\n\nThe gate is green.\n\n## Lamp\n\nIts lamp is old. It is lit at dusk."
    write(folder, {"gate.md": text, "sub/boat.txt": "# Gate\n\nThe boat is blue."})
    sync_folder(store, folder)
    old = ids(store)["gate.md"]
    (folder / "gate.md").unlink()
    (folder / "sub/boat.txt").unlink()
    write(folder, {"door.md": text.replace("green", "red"), "sub/ship.txt": "# Gate\n\nThe ship is white."})
    report = sync_folder(store, folder)
    assert (report.renamed, report.added, report.archived) == (
        [("gate.md", "door.md")], ["sub/ship.txt"], ["sub/boat.txt"],
    )  # fmt: skip
    [hit] = [hit for hit in search(store, "lamp of the gate") if hit.replaces]
    assert hit.replaces == (old,) and not check(store)
    assert not sync_folder(store, folder).touched


def test_a_dry_run_reports_the_same_and_writes_nothing(store: ChunkStore, folder: Path) -> None:
    planned = sync_folder(store, folder, dry_run=True)
    assert (planned.added, planned.chunks_created, store.list_chunks()) == (
        ["gate.md", "sub/boat.txt"],
        2,
        [],
    )
    sync_folder(store, folder)
    write(folder, {"gate.md": "The gate is red."})
    (folder / "sub/boat.txt").rename(folder / "ship.txt")
    planned, before = sync_folder(store, folder, dry_run=True), current(store)
    done = sync_folder(store, folder)
    for name in ("added", "changed", "renamed", "archived", "chunks_created", "chunks_superseded"):
        assert getattr(planned, name) == getattr(done, name)
    assert before != current(store)


def test_a_file_that_changes_while_it_is_read_is_read_again(
    store: ChunkStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = DocumentReader.text
    later = ["The gate is red.", "The gate is black."]  # of one length, within one tick of the clock

    def text(self: DocumentReader, entry: Any, digest: str) -> Any:
        read = original(self, entry, digest)
        if entry.name == "gate.md" and later:
            write(folder, {"gate.md": later.pop(0)})
        return read

    monkeypatch.setattr(DocumentReader, "text", text)
    sync_folder(store, folder)
    assert {content for content, *_ in current(store).values()} == {"The gate is black.", BOAT}


def test_what_cannot_be_looked_at_is_not_gone(
    store: ChunkStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync_folder(store, folder)
    entry, entries = FolderPlace.entry, FolderPlace.entries

    def denied(self: FolderPlace, name: str) -> Any:
        if name.startswith("sub/"):
            raise PermissionError(13, "Permission denied")
        return entry(self, name)

    monkeypatch.setattr(FolderPlace, "entry", denied)
    monkeypatch.setattr(
        FolderPlace,
        "entries",
        lambda self: (one for one in entries(self) if not getattr(one, "name", "").startswith("sub/")),
    )
    assert sync_folder(store, folder).archived == []
    with pytest.raises(NotFoundError, match="no folder"):
        sync_folder(store, folder / "away")
    with pytest.raises(InputError, match="not a folder"):
        sync_folder(store, folder / "gate.md")


@pytest.mark.local_only("look at files")
def test_the_brain_itself_is_no_document(store: ChunkStore, folder: Path) -> None:
    report = sync_folder(store, folder.parent)
    assert sync_folder(store, folder.parent).added == []
    assert report.added == ["notes/gate.md", "notes/sub/boat.txt"]


def test_a_folder_called_build_is_read_unless_a_tool_writes_it(store: ChunkStore, folder: Path) -> None:
    names = ("build/a.md", "sub/build/b.md", "sub/dist/c.md")
    write(folder, {"package.json": "{}", **{name: f"The note {name}." for name in names}})
    added = sync_folder(store, folder, patterns=["*.md"]).added
    assert set(names).intersection(added) == {"sub/build/b.md", "sub/dist/c.md"}


def test_every_folder_of_a_path_is_context_of_its_text(store: ChunkStore, folder: Path) -> None:
    for tool in ("alder", "quartz"):
        write(
            folder, {f"{tool}/manual/guide/reference/start.md": "# Start\n\nThe server listens on a socket."}
        )
    sync_folder(store, folder)
    for tool in ("alder", "quartz"):
        (hit, *_) = search(store, f"where does the server of {tool} listen?")
        assert f"/{tool}/" in str(hit.conversation_id)


def test_a_watched_folder_is_kept_in_step(store: ChunkStore, folder: Path) -> None:
    steps: list[Callable[[], object]] = [
        lambda: write(folder, {"gate.md": "The gate is red."}),
        lambda: (folder / "sub/boat.txt").unlink(),
        lambda: None,
    ]
    reports: list[FolderReport] = []
    watch_folder(
        store,
        folder,
        on_report=reports.append,
        stop=lambda: not steps,
        sleep=lambda _: steps.pop(0)(),
        settled=0,
    )
    assert [(one.added, one.changed, one.archived) for one in reports] == [
        (["gate.md", "sub/boat.txt"], [], []),
        ([], ["gate.md"], []),
        ([], [], ["sub/boat.txt"]),
    ]


@pytest.mark.local_only("look at files")
def test_a_watch_continues_past_unreadable_files_and_reports_each_once(
    store: ChunkStore, folder: Path
) -> None:
    patched = pytest.MonkeyPatch()
    gate, away, closed = folder / "gate.md", folder.parent / "away", folder / "sub"
    real = {name: getattr(os, name) for name in ("stat", "lstat", "scandir")}

    def close() -> None:
        """What a folder without permissions does; the superuser may enter any."""
        for name, call in real.items():

            def denied(path: Any = ".", *given: Any, call: Any = call, **more: Any) -> Any:
                inside = "" if isinstance(path, int) else os.fspath(path)
                if inside.startswith(f"{closed}/") or (inside == str(closed) and call is real["scandir"]):
                    raise PermissionError(13, "Permission denied", inside)
                return call(path, *given, **more)

            patched.setattr(os, name, denied)

    def by_rename() -> None:
        gate.rename(folder / "gate.md~")
        gate.write_text("The gate is yellow.")

    steps: list[Callable[[], object]] = [
        lambda: (folder / "latin.md").write_bytes(b"caf\xe9"),
        lambda: gate.write_text("The gate is red."),
        lambda: ((folder / "one.md").symlink_to("two.md"), (folder / "two.md").symlink_to("one.md")),
        by_rename,
        close,
        lambda: gate.write_text("The gate is black."),
        patched.undo,
        lambda: folder.rename(away),
        lambda: None,
        lambda: (away.rename(folder), gate.write_text("The gate is white.")),
        lambda: None,
    ]
    reports: list[FolderReport] = []
    watch_folder(
        store,
        folder,
        on_report=reports.append,
        stop=lambda: not steps,
        sleep=lambda _: steps.pop(0)(),
        settled=0,
    )
    circle = [f"{name}.md: Too many levels of symbolic links" for name in ("one", "two")]
    assert [(one.changed, [f"{bad.where}: {bad.reason}" for bad in one.refused]) for one in reports[1:]] == [
        ([], ["latin.md: not text in UTF-8"]),
        (["gate.md"], []),
        ([], circle),
        (["gate.md"], []),
        ([], ["sub: a folder that cannot be read: Permission denied"]),
        (["gate.md"], []),
        ([], [f"{folder}: {NO_FOLDER}"]),
        (["gate.md"], ["latin.md: not text in UTF-8", *circle]),
    ]
    assert not any(one.added or one.archived for one in reports[1:])
    assert {content for content, *_ in current(store).values()} == {"The gate is white.", BOAT}


@pytest.mark.local_only("look at files")
def test_files_that_come_and_go_do_not_let_a_file_be_read_while_it_is_written(
    store: ChunkStore, folder: Path
) -> None:
    reports: list[FolderReport] = []
    checks = 0

    def next_change(_seconds: float) -> None:
        nonlocal checks
        checks += 1
        if checks % 2:
            write(folder, {"draft.md": KEY})
        else:
            (folder / "draft.md").unlink()

    watch_folder(
        store,
        folder,
        on_report=reports.append,
        stop=lambda: len(reports) > 1 or checks == 20,
        sleep=next_change,
        settled=60.0,
    )
    assert [report.added for report in reports] == [["gate.md", "sub/boat.txt"]]


@pytest.mark.parametrize("call", [sync_folder, import_source])
def test_a_wrong_option_is_refused_before_anything_is_read(
    store: ChunkStore, folder: Path, call: Callable[..., Any]
) -> None:
    call(store, folder)
    before = store.list_chunks()
    write(folder, {"gate.md": "The gate is red."})
    with pytest.raises(InputError, match="secrets must be one of redact, keep, refuse, not 'ask'"):
        call(store, folder, secrets="ask")
    assert store.list_chunks() == before


@pytest.mark.local_only("look at files")
def test_a_file_that_is_written_all_the_time_does_not_keep_others_waiting(
    store: ChunkStore, folder: Path
) -> None:
    looks: list[int] = []

    def sleep(_seconds: float) -> None:
        looks.append(len(looks))
        (folder / "log.txt").write_text(f"Line {len(looks)}.")
        if len(looks) == 1:
            (folder / "gate.md").write_text("The gate is red.")

    def is_red() -> bool:
        return any(content == "The gate is red." for content, *_ in current(store).values())

    watch_folder(store, folder, stop=lambda: is_red() or len(looks) > 50, sleep=sleep, settled=3600)
    assert 2 < len(looks) < 10


def test_new_files_are_linked_in_large_transactions_as_one_by_one(
    open_store: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, dice = tmp_path / "docs", random.Random(5)
    tags = ("[ship, river]", "[river]", "[garden]")
    texts = {f"n{n}.md": f"---\ntags: {tags[n % 3]}\n---\n{paragraphs(dice)}" for n in range(9)}
    write(folder, texts | {"again.md": texts["n1.md"], "long.md": "\n\n".join(texts.values())})
    commits: list[Any] = []
    transaction = folder_sync.FolderSync._transaction
    monkeypatch.setattr(
        folder_sync.FolderSync, "_transaction", lambda *given: commits.append(given) or transaction(*given)
    )

    def links(name: str) -> dict[tuple[str, int], list[tuple[str, str, float]]]:
        """Type and strength of the links of each chunk, with the file of their targets; equal ones may be any."""
        store = open_store("linked", namespace=name)
        assert len(sync_folder(store, folder).added) == 11
        path = {one.id: one.metadata.provenance["path"] for one in store.iter_chunks()}
        return {
            (path[one.id], one.metadata.provenance["span"][0]): sorted(
                (path[link.target_id], link.type, link.strength) for link in one.links
            )
            for one in store.iter_chunks()
        }

    at_once = links("at-once")
    assert len(commits) == 1
    monkeypatch.setattr(folder_sync, "MAX_LOCK_SECONDS", -1.0)
    each = links("each")
    assert len(commits) == 12, "it ends after a while, and others write"
    monkeypatch.setattr(folder_writing.DocumentWriter, "linking", lambda *_: nullcontext())
    assert at_once == each == links("unprepared")
    assert {kind for found in at_once.values() for _, kind, _ in found} == {
        "context_of", "follows", "related_to", "similar_to"
    }  # fmt: skip


@pytest.mark.local_only("compare index files")
def test_two_processes_make_what_one_makes(
    open_store: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, dice = tmp_path / "docs", random.Random(3)
    write(folder, {f"n{number}.md": f"# Of {number}, after [[n{number - 1}]] and before [[n{number + 1}]]\n\n"
                   + "\n\n".join(paragraphs(dice) for _ in range(4)) for number in range(30)})  # fmt: skip
    write(
        folder,
        {"rules.md": "---\nThe key: sk-ant-api03-" + "a" * 95 + "\n", "talk.md": "Ann: Hi.\n\nBob: Hello."},
    )
    if sys.platform == "linux":  # others have only names that are Unicode
        write(folder, {os.fsdecode(b"\xff\xfe.md"): "The buoy is red."})
    made, started = [], workers._start_child
    calls: list[int] = []
    monkeypatch.setattr(workers, "_start_child", lambda: calls.append(1) or started())  # type: ignore[func-returns-value]
    monkeypatch.setattr(documents, "_MIN_FOR_PROCESSES", 1)
    monkeypatch.setattr(documents, "_MIN_FOR_FORKS", 1)
    for processes in (1, 2):
        store = open_store(f"by-{processes}", store={"durability": "normal", "processes": processes})
        report = sync_folder(store, folder)
        with sqlite3.connect(store.base_path / "index" / "index.sqlite") as index:
            tables = [
                index.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in ("terms", "segments")
            ]
        hits = [
            (hit.snippet, hit.score) for hit in Memory(store).search("harbour crane by the river", limit=20)
        ]
        assert report.chunks_linked == 30
        made.append(
            (
                current(store),
                links_of(store),
                tables,
                hits,
                report.tokens,
                report.secrets,
                report.secrets_hidden,
            )
        )
    assert len(calls) == 1, "the second store was filled with a further process"
    assert made[0] == made[1]
    assert made[0][6] == 1


def test_a_server_reads_only_folders_that_its_environment_names(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "brain").mkdir()
    (tmp_path / "brain/config.toml").write_text(f'[ingest]\nfolders = ["{folder}"]\n')
    with pytest.raises(InvalidConfig, match="file of a brain may not allow"):
        Config.load(tmp_path / "brain", environ={})
    (tmp_path / "brain/config.toml").unlink()
    config = Config.load(tmp_path / "brain", environ={"RLM_MEM_INGEST_FOLDERS": f"{folder}, /srv/notes"})
    with Memory.open(tmp_path / "brain", config=config) as memory:
        sync = operation_named("syncFolder").run
        assert sync is not None
        context: Any = SimpleNamespace(memory=memory, progress=lambda *_: None)
        for elsewhere in (str(tmp_path), f"{folder}/..", "/etc", f"{folder}x", "a" * 900):
            with pytest.raises(InputError, match=r"may read|no path"):
                sync(context, SyncFolderRequest(path=elsewhere))
        assert memory.list_chunks() == []
        made = sync(context, SyncFolderRequest(path=str(folder / "sub"), tags=["port"]))
        assert (made.added, made.counts["added"], made.chunks_created) == (["boat.txt"], 1, 1)
        assert memory.undo(change=made.change) is not None


def random_steps(folder: Path, dice: random.Random, count: int) -> None:
    """Edit, rename, delete and restore files at random."""
    kept = folder.parent / "deleted"
    for _ in range(count):
        files = sorted(path for path in folder.rglob("*.md"))
        file = dice.choice(files) if files else None
        act = dice.choice(("edit", "edit", "rename", "onto", "swap", "delete", "restore", "add"))
        fresh = folder / f"d{dice.randrange(3)}" / f"n{dice.randrange(1 << 30)}.md"
        if act == "add" or file is None:
            write(folder, {str(fresh.relative_to(folder)): paragraphs(dice)})
        elif act == "edit":
            parts = file.read_text().split("\n\n")
            place = dice.randrange(len(parts))
            parts[place : place + dice.randrange(2)] = [paragraphs(dice)][
                : dice.randrange(2) or len(parts) == 1
            ]
            file.write_text("\n\n".join(parts) or "Nothing left.")
        elif act in ("rename", "onto"):
            target = fresh if act == "rename" else dice.choice(files)
            target.parent.mkdir(exist_ok=True)
            file.rename(target)
        elif act == "swap":
            other = dice.choice(files)
            one, two = file.read_text(), other.read_text()
            file.write_text(two)
            other.write_text(one)
        elif act == "delete":
            kept.mkdir(exist_ok=True)
            file.rename(kept / file.name)
        elif kept.is_dir() and (gone := sorted(kept.iterdir())):
            back = dice.choice(gone)
            back.rename(folder / back.name)


def paragraphs(dice: random.Random) -> str:
    words = ("gate", "boat", "key", "lamp", "river", "stone", "harbour", "crane", "clock", "garden")
    return "\n\n".join(
        " ".join(dice.choice(words) for _ in range(dice.randint(20, 90))).capitalize() + "."
        for _ in range(dice.randint(1, 3))
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_dry_run_counts_what_the_sync_after_it_changes(
    store: ChunkStore, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    folder = tmp_path / "docs"
    write(folder, {f"d{number % 3}/n{number}.md": paragraphs(dice) for number in range(6)})
    for _ in range(8):
        planned, done = vars(sync_folder(store, folder, dry_run=True)), vars(sync_folder(store, folder))
        only_done = ("dry_run", "change", "chunk_ids", "chunks_linked")
        assert {name: planned[name] for name in planned if name not in only_done} == {
            name: done[name] for name in done if name not in only_done
        }
        random_steps(folder, dice, 4)
        for chunk_id in dice.sample(store.list_chunks(), dice.randrange(2)):
            store.delete_chunk(chunk_id)


def test_an_import_counts_notes_by_namespace_also_in_a_dry_run(store: ChunkStore, folder: Path) -> None:
    planned, done = import_source(store, folder, dry_run=True), import_source(store, folder)
    assert planned.namespaces == done.namespaces == {store.namespace: 2}
    assert (planned.chunk_ids, sorted(done.chunk_ids)) == ([], sorted(store.list_chunks()))


@pytest.mark.parametrize("seed", [1, 2])
def test_after_any_changes_the_store_equals_a_fresh_import(
    open_store: Open, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    folder = tmp_path / "docs"
    write(folder, {f"d{number % 3}/n{number}.md": paragraphs(dice) for number in range(12)})
    stores = [open_store() for _ in range(2)]
    for number in range(6):
        threads = [threading.Thread(target=sync_folder, args=(one, folder)) for one in stores]
        for thread in threads:
            thread.start()
        random_steps(folder, dice, 4)
        for thread in threads:
            thread.join()
        store = stores[number % 2]
        sync_folder(store, folder)
        fresh = open_store("fresh", namespace=f"round-{number}")
        sync_folder(fresh, folder)
        assert current(store) == current(fresh)
        assert not sync_folder(stores[1 - number % 2], folder).touched
    history = [event["op"] for event in stores[0].events()]
    assert "erase" not in history, "nothing is lost"


def test_folders_deep_in_others_and_names_as_long_as_they_may_be_are_synced(
    store: ChunkStore, tmp_path: Path
) -> None:
    top = tmp_path / "deep"
    texts = {"/".join(f"level-{n}" for n in range(60)) + "/end.md": "The end of the shaft is dry."}
    for letter in ("a", "ü", "漢", "😀"):
        stem = letter * (252 // len(letter.encode()))
        texts[f"{stem}.md"] = f"The note {letter} has a name of {len(stem)} letters."
    write(top, texts)
    report = sync_folder(store, top)
    assert (sorted(report.added), report.refused) == (sorted(texts), [])
    assert sorted(one.content for one in store.iter_chunks()) == sorted(texts.values())
    longest = next(name for name in texts if name.startswith("ü"))
    (top / longest).rename(top / longest.replace("ü", "ö"))
    again = sync_folder(store, top)
    assert again.renamed == [(longest, longest.replace("ü", "ö"))] and again.unchanged == len(texts) - 1


def test_a_paragraph_that_was_taken_out_comes_back_in_the_place_of_another(
    store: ChunkStore, folder: Path
) -> None:
    gate, boat = (
        "\n".join(f"{name} {number} is looked after by the keeper of the harbour." for number in range(90))
        for name in ("Gate", "Boat")
    )
    write(folder, {"gate.md": f"# Gates\n\n{gate}\n\n# Boats\n\n{boat}\n", "sub/boat.txt": ""})
    sync_folder(store, folder)
    boats = [chunk.id for chunk in store.iter_chunks() if "Boat" in chunk.content]
    write(folder, {"gate.md": f"# Gates\n\n{gate}\n"})
    assert sync_folder(store, folder).chunks_archived == len(boats)
    before = {one.id for one in store.iter_chunks()}
    write(folder, {"gate.md": f"# Boats\n\n{boat}\n"})
    planned, made = (sync_folder(store, folder, dry_run=dry_run) for dry_run in (True, False))
    for report in (planned, made):
        assert (report.chunks_created, report.chunks_restored) == (0, len(boats))
    now = {one.id: one for one in store.iter_chunks()}
    assert {one for one, chunk in now.items() if chunk.metadata.superseded_by is None} == set(boats)
    assert {now[one].metadata.superseded_by for one in before} <= set(boats)
    assert Memory(store).undo() is not None
    assert {one.id for one in store.iter_chunks() if one.metadata.superseded_by is None} == before


def test_a_former_text_whose_chunk_was_deleted_by_hand_is_stored_again(
    store: ChunkStore, folder: Path
) -> None:
    (folder / "sub/boat.txt").unlink()
    sync_folder(store, folder)
    (first,) = store.list_chunks()
    write(folder, {"gate.md": "The gate is red."})
    sync_folder(store, folder)
    store.delete_chunk(first)
    write(folder, {"gate.md": GATE})
    planned = sync_folder(store, folder, dry_run=True)
    made = sync_folder(store, folder)
    assert not made.refused and planned.chunks_created == made.chunks_created == 1
    assert [one[0] for one in current(store).values()] == [GATE]
    assert check(store) == []


def test_a_sync_within_a_batch_is_a_part_of_its_change(store: ChunkStore, folder: Path) -> None:
    with Memory(store) as memory:
        memory.remember(KEY)
        with memory.batch():
            store.create_chunk("The rope is wet.")
            report = sync_folder(store, folder)
        undone = memory.undo()
        assert undone is not None
        assert undone.change == report.change
        assert [chunk.content for chunk in store.iter_chunks()] == [KEY]
        assert sync_folder(store, folder).added == report.added


@pytest.mark.local_only("look at files")
@pytest.mark.parametrize("in_bulk", [False, True])
def test_the_index_has_no_part_of_a_secret_in_a_title(
    store: ChunkStore, tmp_path: Path, in_bulk: bool
) -> None:
    title = "The key sk-ant-api03-" + "qzjxwv" * 15 + "a" * 5
    if in_bulk:
        Memory(store).remember_many([{"text": GATE, "provenance": {"title": title}}])
    else:
        write(tmp_path / "docs", {"gate.md": f"---\ntitle: {title}\n---\n{GATE}"})
        sync_folder(store, tmp_path / "docs")
    [chunk] = store.iter_chunks()
    assert chunk.metadata.provenance["title"] == "The key [redacted:model-provider-key]"
    files = [path for path in store.base_path.parent.rglob("*") if path.is_file()]
    assert not [path for path in files if b"qzjxwv" in path.read_bytes().lower()]


DRAWING = """<?xml version="1.0"?>
<!-- the pump -->
<svg xmlns="http://www.w3.org/2000/svg" xmlns:s="http://www.w3.org/2000/svg" width="9"><title>Pump layout</title>
<style>.a { fill: red }</style><g stroke="#000"><path d="M0 0L10 10"/><s:text x="3">Valve <tspan>B</tspan> closes
 first</s:text><text>Valve <tspan>B</tspan> closes first</text><desc>Seen from the lock &amp; weir</desc></g></svg>"""


def test_of_a_drawing_its_texts_are_remembered_not_its_markup(store: ChunkStore, tmp_path: Path) -> None:
    folder = tmp_path / "drawings"
    declared = '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><svg><text>&b;</text></svg>'
    named = '<!DOCTYPE svg [<!ENTITY ns "http://www.w3.org/2000/svg">]>'
    write(
        folder,
        {
            "pump.svg": DRAWING,
            "icon.SVG": '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>',
            "broken.svg": "<svg><text>Half",
            "bomb.svg": declared,
            "grows.svg": f"{named.replace('http', 'h' * 190)}<svg><text>{'&ns;' * 9}</text></svg>",
            "editor.svg": f'{named}<svg xmlns="&ns;"><text>Inlet</text></svg>',
        },
    )
    report = sync_folder(store, folder)
    assert sorted(report.added) == ["editor.svg", "pump.svg"]
    assert {one.where: one.reason for one in report.refused} == {
        "icon.SVG": "a drawing without text",
        **dict.fromkeys(("broken.svg", "bomb.svg", "grows.svg"), BROKEN),
    }
    assert not report.failed, "as for other pictures"
    write(folder, {"editor.svg": "<svg><text>Inlet"})
    assert not sync_folder(store, folder).chunks_archived, "what a drawing said stays until it can be read"
    [hit] = search(store, "Which valve closes first?")
    chunk = store.get_chunk(hit.chunk_id)
    assert chunk is not None
    assert chunk.content == "Pump layout\nValve B closes first\nSeen from the lock & weir"
