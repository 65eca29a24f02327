"""One undo for everything: chunks, tiered memories, reviews, personas; newest first, and back again by its id."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import msgspec
import pytest

from rlm_mem import Memory
from rlm_mem.chunk import decode_chunk, encode_chunk
from rlm_mem.config import Config
from rlm_mem.continuum.requests import forget_case
from rlm_mem.errors import ConflictError, NotFoundError, StorageError
from rlm_mem.interchange import export_store, import_source
from rlm_mem.store.core import brain_files, files as file_operations
from rlm_mem.store.core.changes import UNDO
from rlm_mem.store.core.integrity import check
from tests.continuum.conftest import STEPS
from tests.store.test_crashes import SAMPLED_OR_ALL, dies_at


def contents(memory: Memory) -> dict[str, object]:
    """Active chunks and every file of the brain that is no log, record or trajectory."""
    stored = memory.store.files
    kept = ("archive/undo", "archive/transitions", "log", "trajectories", "imports")
    names = [name for name in stored.names("", recursive=True) if not name.startswith(kept)]
    chunks = {
        chunk.id: (chunk.content, sorted(chunk.tags), chunk.metadata.superseded_by, len(chunk.links))
        for chunk in memory.store.iter_chunks()
    }
    return {"chunks": chunks, "files": {name: stored.read(name) for name in names}}


def test_every_kind_of_change_is_undone_newest_first_and_brought_back(place: Path | str) -> None:
    with Memory.open(place, actor="Ana") as memory:
        first = memory.remember("Dana prefers trains to planes.", conversation_id="trip")
        other = memory.remember("The quince is grafted in March.")
        record = memory.continuum.traces.record
        states = [contents(memory)]
        work = [
            lambda: memory.remember("Trains leave at nine.", conversation_id="trip"),
            lambda: memory.update(first.chunk_ids[0], "Dana prefers night trains.", tags=["travel"]),
            lambda: memory.link(first.chunk_ids[0], other.chunk_ids[0], "supports"),
            lambda: memory.delete(other.chunk_ids[0]),
            lambda: memory.restore(other.chunk_ids[0]),
            lambda: record("Fetch a page", STEPS, success=True, indicators=["ok"], project="a"),
            memory.continuum.consolidate,
            lambda: memory.persona(keep=True).set("humor", 70),
            lambda: memory.persona(keep=True).set("humor", 20),
            lambda: memory.continuum.traces.use(
                next(memory.continuum.files.entries(kinds=("trace",))).key, True
            ),
            lambda: memory.continuum.traces.use(other.chunk_ids[0], False),
        ]
        for step in work:
            step()
            states.append(contents(memory))
        undos = []
        for before in reversed(states[:-1]):
            undone = memory.undo()
            assert undone is not None
            undos.append(undone.undo)
            assert contents(memory) == before, str(undone)
        for undo, after in zip(reversed(undos), states[1:], strict=True):
            memory.undo(change=undo)
            assert contents(memory) == after
        assert memory.check() == []
        assert {event.actor for event in memory.events()} == {"Ana"}
        newest = memory.undo()
        assert newest is not None
        assert newest.chunk_ids == tuple(other.chunk_ids)
        assert (newest.ops, newest.files) == (("update",), ())


def test_a_batch_of_chunks_and_files_is_one_change(place: Path | str) -> None:
    with Memory.open(place) as memory:
        stored = memory.store.files
        before = contents(memory)
        with stored.transaction():
            memory.remember("one")
            memory.remember("two")
            stored.write("personalities/MINE.md", b"\xff\xfe not text")
            stored.append("personalities/MINE.md", b", and more")
            assert stored.read("personalities/MINE.md") == b"\xff\xfe not text, and more"
            assert stored.names("personalities") == ["personalities/MINE.md"]
        after = contents(memory)
        undone = memory.undo()
        assert undone is not None
        assert (len(undone.chunk_ids), undone.files) == (2, ("personalities/MINE.md",))
        assert contents(memory) == before
        memory.undo(change=undone.undo)
        assert contents(memory) == after


def test_a_change_that_changed_nothing_in_the_end_is_undone_once(place: Path | str) -> None:
    """Else it would be undone again and again, and nothing before it could be."""
    with Memory.open(place) as memory:
        first = memory.remember("Dana prefers trains.").chunk_ids[0]
        before = contents(memory)
        with memory.batch():
            memory.update(first, "Dana prefers planes.")
            memory.undo(first)
        with memory.batch():
            memory.delete(first)
            memory.restore(first)
        for ops in (("delete", "restore"), ("update", "undo")):
            undone = memory.undo()
            assert undone is not None and undone.ops == ops and contents(memory) == before
        assert memory.undo(change=undone.undo) is not None and contents(memory) == before
        again, last = memory.undo(), memory.undo()
        assert again is not None and again.change == undone.change
        assert last is not None and last.ops == ("create",) and memory.list_chunks() == []
        assert memory.undo() is None and memory.check() == []


def test_no_whole_change_is_undone_within_a_batch(place: Path | str) -> None:
    """The rest of the batch would be part of the undo, and could not be undone itself."""
    with Memory.open(place) as memory:
        first = memory.remember("Dana prefers trains.").chunk_ids[0]
        with memory.batch():
            second = memory.remember("Ann prefers planes.").chunk_ids[0]
            for change in (None, next(iter(memory.recorded_changes())).id):
                with pytest.raises(ConflictError, match="within a batch"):
                    memory.undo(change=change)
            memory.update(first, "Dana prefers night trains.")
            assert memory.undo(first) is not None, "of a single chunk it is a change like any other"
        undone = memory.undo()
        assert undone is not None and set(undone.chunk_ids) == {first, second}
        assert memory.list_chunks() == [first] and memory.check() == []


@pytest.mark.parametrize("way", ["erase", "delete"])
def test_after_an_erasure_undo_names_the_last_change_that_it_can_undo(place: Path | str, way: str) -> None:
    with Memory.open(place) as memory:
        kept = memory.remember("The kettle is blue.").chunk_ids[0]
        gone = memory.remember("Zeno Quill owns the ladder.").chunk_ids[0]
        memory.update(kept, "The kettle is red.")
        chunk = memory.get(gone)
        assert chunk is not None
        memory.continuum.review.ask([forget_case(memory.store, chunk, "an agent")])
        if way == "erase":
            memory.erase(person="Zeno Quill", dry_run=False)
        else:
            memory.delete(gone, permanent=True)
        with pytest.raises(
            ConflictError, match=f"the last change.*{gone} was deleted permanently"
        ) as refused:
            memory.undo()
        named = re.search(
            r"rlm-mem undo (\S+) undoes the change before it, update of", refused.value.hint or ""
        )
        assert named is not None
        memory.undo(change=named[1])
        assert memory.get(kept).content == "The kettle is blue."  # type: ignore[union-attr]  # it is there


def test_an_erasure_of_everything_leaves_nothing_to_undo_and_says_so(place: Path | str) -> None:
    with Memory.open(place) as memory:
        memory.remember("Zeno Quill owns the ladder.")
        memory.erase(person="Zeno Quill", dry_run=False)
        with pytest.raises(ConflictError) as refused:
            memory.undo()
        assert refused.value.hint == "no earlier change is left to undo"


def test_what_was_changed_since_is_not_undone(place: Path | str) -> None:
    with Memory.open(place) as memory:
        assert memory.undo() is None
        made = memory.remember("Dana prefers trains.").chunk_ids[0]
        with memory.store.files.transaction():
            memory.store.files.write("sliders/MINE.md", b"one")
        change = next(one for one in memory.store.events(op="edit"))["change"]
        memory.store.files.write("sliders/MINE.md", b"by hand")
        before = contents(memory)
        with pytest.raises(ConflictError, match=r"sliders/MINE\.md was changed since"):
            memory.undo()
        with pytest.raises(ConflictError, match="changed since"):
            memory.undo(change=change)
        assert contents(memory) == before
        memory.update(made, "Dana prefers planes.")
        memory.delete(made, permanent=True)
        with pytest.raises(ConflictError, match="deleted permanently"):
            memory.undo()
        with pytest.raises(NotFoundError):
            memory.undo(change="20260101000000000000-0000000000000000")


@pytest.mark.parametrize("later", ["delete", "restore"])
def test_an_import_is_not_undone_if_a_memory_was_archived_or_restored_since(
    place: Path | str, tmp_path: Path, later: str
) -> None:
    with Memory.open(tmp_path / "source") as source:
        active, archived = source.remember("Dana prefers trains.\n"), source.remember("The quay is closed.")
        source.delete(archived.chunk_ids[0])
        export_store(source.store, tmp_path / "all.jsonl")
    with Memory.open(place) as memory:
        import_source(memory.store, tmp_path / "all.jsonl")
        change = memory.recorded_changes()[0].id
        getattr(memory, later)((active if later == "delete" else archived).chunk_ids[0])
        before = contents(memory)
        with pytest.raises(ConflictError, match="changed since"):
            memory.undo(change=change)
        assert contents(memory) == before
        memory.undo()
        undone = memory.undo()
        assert undone is not None and undone.change == change and memory.list_chunks() == []


@pytest.mark.parametrize("source", ["all.jsonl", "vault", "chat.json", "note.md", "mem0.json"])
def test_what_was_imported_and_undone_is_imported_again(
    place: Path | str, tmp_path: Path, source: str
) -> None:
    """Otherwise nothing is: its files are unchanged, and its memories are in the archive."""
    with Memory.open(tmp_path / "source") as theirs:
        old = theirs.remember("Dana lives in Berlin.").chunk_ids[0]
        new = theirs.remember("Dana lives in Hamburg.", replaces=old).chunk_ids[0]
        theirs.link(old, new, "supports")
        for target in ("all.jsonl", "vault"):
            export_store(theirs.store, tmp_path / target)
    said = [{"role": "user", "content": "I like plums."}, {"role": "user", "content": "I like figs."}]
    (tmp_path / "chat.json").write_text(json.dumps(said))
    (tmp_path / "note.md").write_text("The boat is blue.")
    noted = [{"id": "a", "memory": "Ana likes tea.", "created_at": "2026-03-01T10:00:00Z", "user_id": "ana"}]
    (tmp_path / "mem0.json").write_text(json.dumps({"results": noted}))
    with Memory.open(place) as memory:

        def told() -> list[object]:
            return [(one.content, one.metadata.valid_to, one.links) for one in memory.store.iter_chunks()]

        done = import_source(memory.store, tmp_path / source)
        first = told()
        assert memory.undo() is not None and told() == []
        planned = import_source(memory.store, tmp_path / source, dry_run=True)
        again = import_source(memory.store, tmp_path / source)
        assert again.created + again.restored == planned.created + planned.restored == done.created
        assert not again.conflicts and told() == first and memory.check() == []
        change, ids = memory.recorded_changes()[0].id, memory.list_chunks()
        for one in ids:
            memory.delete(one)
        assert import_source(memory.store, tmp_path / source, again=True).restored == 0, "deleted, not undone"
        for one in (*memory.list_chunks(), *ids):  # a text is stored again under another id, if asked for
            (memory.restore if one in ids else memory.delete)(one)
        undone = memory.undo(change=change)
        assert undone is not None and told() == []
        memory.undo(change=undone.undo)
        assert told() == first and memory.check() == []


@pytest.mark.local_only("are edited by hand")
@pytest.mark.parametrize("edit", [("trains", "night trains"), ('"travel"', '"rail"'), ("0.9", "0.1")])
@pytest.mark.parametrize("op", ["create", "import", "update"])
def test_what_was_edited_by_hand_since_is_not_undone(tmp_path: Path, op: str, edit: tuple[str, str]) -> None:
    """Nor is an edit of tags or metadata alone, also by the undo of a single chunk."""
    brain = tmp_path / "brain"
    with Memory.open(tmp_path / "source" if op == "import" else brain) as memory:
        made = memory.remember("Dana prefers trains.", tags=["travel"], confidence=0.9).chunk_ids[0]
        if op == "update":
            memory.update(made, tags=["travel", "Dana"])
        export_store(memory.store, tmp_path / "all.jsonl")
    if op == "import":
        with Memory.open(brain) as memory:
            import_source(memory.store, tmp_path / "all.jsonl")
    (file,) = (brain / "memory" / "chunks").rglob(f"{made}.json")
    edited = file.read_text().replace(*edit)
    file.write_text(edited)
    with Memory.open(brain) as memory:
        with pytest.raises(
            ConflictError, match="edited by hand after this change, so that it was changed since"
        ):
            memory.undo()
        if op == "update":
            with pytest.raises(ConflictError, match="edited by hand since"):
                memory.undo(made)
        assert file.read_text() == edited
        if op == "update":
            restored = memory.undo(made, to_revision=1)
            assert restored is not None and restored.tags == ["travel"]
            assert [one.chunk for one in memory.history(made)][1] == decode_chunk(edited.encode())


@pytest.mark.local_only("are edited by hand")
@pytest.mark.parametrize("change", ["link", "delete"])
def test_a_change_of_what_was_edited_by_hand_before_is_undone(tmp_path: Path, change: str) -> None:
    brain = tmp_path / "brain"
    with Memory.open(brain) as memory:
        one, other = (
            memory.remember(text).chunk_ids[0] for text in ("Dana prefers trains.", "The quay is shut.")
        )
    (file,) = (brain / "memory" / "chunks").rglob(f"{one}.json")
    file.write_text(file.read_text().replace("trains", "night trains"))
    with Memory.open(brain) as memory:
        if change == "link":
            memory.link(one, other, "supports")
        else:
            memory.delete(one)
        memory.undo()
        (found,) = memory.store.get_many([one]).values()
        assert (found.content, found.links) == ("Dana prefers night trains.", [])


def test_a_transaction_that_fails_leaves_files_and_chunks_as_they_were(place: Path | str) -> None:
    with Memory.open(place) as memory:
        stored = memory.store.files
        stored.write("system/a.md", b"former")
        stored.append("log/continuum.jsonl", b"line\n")
        before = contents(memory), stored.read("log/continuum.jsonl")
        with pytest.raises(RuntimeError), stored.transaction():
            memory.remember("never")
            stored.write("system/a.md", b"never")
            stored.write("system/b.md", b"never")
            stored.rename("system/b.md", "system/c.md")
            stored.append("log/continuum.jsonl", b"never\n")
            assert stored.names("system") == ["system/a.md", "system/c.md"]
            assert stored.remove("system/a.md")
            assert not stored.exists("system/a.md")
            assert stored.create("system/a.md", b"anew")
            assert stored.read_from("log/continuum.jsonl", -6) == b"never\n"
            raise RuntimeError
        assert (contents(memory), stored.read("log/continuum.jsonl")) == before
        assert memory.undo() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its victims: needs a POSIX system")
@SAMPLED_OR_ALL
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_file_operation_all_of_a_transaction_is_there_or_nothing(
    tmp_path: Path, after: bool, step: int
) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        kept = memory.remember("kept").chunk_ids[0]
        memory.store.files.write("system/gone.md", b"gone")
        memory.store.files.append("log/continuum.jsonl", b"line 0\n")
    seen = set()
    for number in range(2 if after else 1, 100, step):
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                memory = Memory.open(tmp_path / "brain")
                stored = memory.store.files
                dies_at(number, after)()
                with stored.transaction():
                    memory.store.update_chunk(kept, f"changed {number}")
                    memory.store.create_chunk(f"new {number}")
                    stored.write("system/a.md", str(number).encode())
                    stored.write("sliders/MINE.md", str(number).encode())
                    stored.append("log/continuum.jsonl", f"line {number}\n".encode())
                    if stored.exists("system/gone.md"):
                        stored.remove("system/gone.md")
                    else:
                        stored.write("system/gone.md", b"gone")
                status = 0
            finally:
                os._exit(status)
        code = os.waitpid(pid, 0)[1]
        with Memory.open(tmp_path / "brain") as memory:
            stored = memory.store.files
            done = str(number)
            chunk = memory.store.get_chunk(kept)
            assert chunk is not None
            marks = {
                chunk.content == f"changed {done}",
                bool([one for one in memory.store.iter_chunks() if one.content == f"new {done}"]),
                stored.read("system/a.md") == done.encode(),
                stored.read("sliders/MINE.md") == done.encode(),
                (stored.read("log/continuum.jsonl") or b"").endswith(f"\nline {done}\n".encode()),
                any(done in str(one) for one in records(memory)),
            }
            assert len(marks) == 1, f"killed at operation {number}"
            seen |= marks
            assert check(memory.store) == []
        if os.WIFEXITED(code):
            assert os.WEXITSTATUS(code) == 0
            break
    assert number > 20
    assert seen == {False, True}
    lines = (tmp_path / "brain/memory/log/continuum.jsonl").read_bytes().splitlines()
    assert len(lines) == len(set(lines))


def records(memory: Memory) -> list[list[str]]:
    stored = memory.store.files
    return [
        [edit["after"] for edit in msgspec.json.decode(stored.read(name) or b"")["edits"]]
        for name in stored.names("archive/undo")
    ]


def test_a_redo_record_that_leads_out_of_the_brain_is_ignored(tmp_path: Path) -> None:
    outside = tmp_path / "mine.txt"
    outside.write_text("mine")
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember("kept")
    unfinished = tmp_path / "brain/memory/.tmp"
    unfinished.mkdir(exist_ok=True)
    (unfinished / "x.1.tmp").write_text("theirs")
    for number, record in enumerate(
        (
            [[".tmp/x.1.tmp", "../../mine.txt"]],
            [["../../mine.txt", ".tmp/y.gone"]],
            {"namings": [], "appendings": [[str(outside), 4, "IQ=="]]},
            {"id": "1", "redo": {"namings": [["../../mine.txt", ".tmp/y.gone"]]}},
            {"id": "1", "redo": {"change_record": "../../mine.txt"}},
        )
    ):
        (unfinished / f"{number}.redo").write_bytes(msgspec.json.encode(record))
        with Memory.open(tmp_path / "brain") as memory:
            memory.remember(f"further {number}")
        assert outside.read_text() == "mine"
        assert not (unfinished / f"{number}.redo").exists()


def test_a_change_whose_record_is_damaged_is_not_undone(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        with memory.store.files.transaction():
            memory.store.files.write("system/notes.md", b"\xff\xfe")
        (record,) = (tmp_path / "brain/memory/archive/continuum/default/undo").iterdir()
        record.write_text(record.read_text().replace('"//4="', '"//4"'))
        with pytest.raises(StorageError, match=r"record of a change of system/notes\.md cannot be read"):
            memory.undo()


def test_a_redo_record_that_leads_through_a_link_is_ignored(tmp_path: Path) -> None:
    outside = tmp_path / "theirs" / "mine.txt"
    outside.parent.mkdir()
    outside.write_text("mine")
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember("kept")
    store = tmp_path / "brain" / "memory"
    (store / "way").symlink_to(outside.parent)
    (store / ".tmp").mkdir(exist_ok=True)
    (store / "chunks" / "2020-01").symlink_to(outside.parent)
    for record in (
        [[".tmp/x.1.tmp", "chunks/2020-01/mine.txt"]],
        [[".tmp/x.1.tmp", "chunks/2020-01/settings.json"]],
        [[".tmp/x.1.tmp", "way/mine.txt"]],
        [["way/mine.txt", ".tmp/y.gone"]],
        {"namings": [], "appendings": [["way/mine.txt", 4, "IQ=="]]},
    ):
        (store / ".tmp" / "x.1.tmp").write_text("theirs")
        (store / ".tmp" / "1.redo").write_bytes(msgspec.json.encode(record))
        with Memory.open(tmp_path / "brain") as memory:
            memory.remember("further")
        assert outside.read_text() == "mine"
        assert [one.name for one in outside.parent.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("linked", ["chunks", "archive", "log"])
def test_an_interrupted_write_of_folders_on_another_disk_is_finished(tmp_path: Path, linked: str) -> None:
    brain, disk = tmp_path / "brain", tmp_path / "disk"
    with Memory.open(brain) as memory:
        chunk = memory.store.create_chunk("first")
        memory.update(chunk.id, tags=["seen"])
    (brain / "memory" / linked).rename(disk)
    (brain / "memory" / linked).symlink_to(disk)
    with Memory.open(brain) as memory:
        present = memory.store.get_many([chunk.id])[chunk.id]
    store, month = brain / "memory", present.metadata.created_at[:7]
    path = f"chunks/{month}/{chunk.id}.json"
    (store / ".tmp" / f"{chunk.id}.1.tmp").write_bytes(encode_chunk(present).replace(b"first", b"later"))
    log = next((store / "log").glob("????-??.jsonl"))
    record = {
        "namings": [
            [path, f"archive/versions/{chunk.id}/2.json"],
            [f".tmp/{chunk.id}.1.tmp", path, None],
        ],
        "audit": [f"log/{log.name}", log.stat().st_size, ""],
    }
    (store / ".tmp" / "1.redo").write_bytes(msgspec.json.encode(record))
    (store / path).rename(store / "archive" / "versions" / chunk.id / "2.json")  # and then it was killed
    with Memory.open(brain) as memory:
        memory.sync()
        assert [one.content for one in memory.store.iter_chunks()] == ["later"]


def test_an_interrupted_write_adds_nothing_to_a_linked_log_file(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember("kept")
    store, mine = tmp_path / "brain" / "memory", tmp_path / "mine.txt"
    mine.write_text("mine")
    (store / "log" / "2031-01.jsonl").symlink_to(mine)
    record = {"namings": [], "audit": ["log/2031-01.jsonl", 4, "IQ=="]}
    (store / ".tmp" / "1.redo").write_bytes(msgspec.json.encode(record))
    with Memory.open(tmp_path / "brain") as memory:
        memory.sync()
        assert not (store / ".tmp" / "1.redo").exists()
    assert mine.read_text() == "mine"


def test_a_store_behind_a_link_changes_the_files_of_its_own_brain(tmp_path: Path) -> None:
    (tmp_path / "disk" / "store").mkdir(parents=True)
    (tmp_path / "brain").mkdir()
    (tmp_path / "brain" / "memory").symlink_to(tmp_path / "disk" / "store")
    with Memory.open(tmp_path / "brain") as memory:
        stored = memory.store.files
        stored.write("system/notes.md", b"one\n")
        with stored.transaction():
            stored.append("system/notes.md", b"two\n")
        assert stored.read("system/notes.md") == b"one\ntwo\n"
        assert [one.name for one in (tmp_path / "disk").iterdir()] == ["store"]
        assert memory.undo() is not None
        assert stored.read("system/notes.md") == b"one\n"


def test_a_change_of_one_tiered_memory_waits_for_the_disk_six_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory, mirror and redo record, and the folder of each; the redo record becomes the change record."""
    synced: list[int] = []
    with Memory.open(tmp_path / "brain") as memory:
        for number in range(3):
            synced.clear()
            with monkeypatch.context() as patched:
                patched.setattr(os, "fsync", synced.append)
                memory.continuum.traces.record(f"Fetch page {number}", STEPS, success=True)
        assert len(synced) == 6
        assert memory.check() == []
        assert len(memory.store.files.names("archive/undo")) == 3
        assert memory.undo() is not None


def test_a_line_is_added_once_however_often_it_is_carried_out(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    for before, expected in (
        (b"", b"new\n"),
        (b"old\n", b"old\nnew\n"),
        (b"old\nne", b"old\nnew\n"),
        (b"old\nnew\n", b"old\nnew\n"),
        (b"old\nother\n", b"old\nother\nnew\n"),
    ):
        path.write_bytes(before)
        file_operations.append_at(path, b"new\n", 4 if before else 0)
        assert path.read_bytes() == expected


@pytest.mark.local_only("about files")
def test_a_change_after_a_torn_line_of_the_log_is_undone(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember("The quince is grafted in March.")
        log = next((tmp_path / "brain" / "memory" / "log").glob("????-??.jsonl"))
        with log.open("ab") as file:
            file.write(b'{"ts":"2026-02-10T12:00:00Z","op":"cre')  # a power cut, or a full disk
        late = memory.remember("Trains leave at nine.").chunk_ids[0]
        assert [line["chunk_id"] for line in memory.store.events(op="create")][-1] == late
        memory.undo()
        assert [chunk.content for chunk in memory.store.iter_chunks()] == ["The quince is grafted in March."]
        assert b"\n\n" not in log.read_bytes()


def test_the_oldest_records_of_changes_are_removed_and_their_changes_stay(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brain_files, "_KEPT", 2)
    monkeypatch.setattr(brain_files, "_SPARE", 1)
    changes = []
    with Memory.open(place) as memory:
        for number in range(4):
            with memory.store.files.transaction() as transaction:
                memory.store.files.write(f"memory/long_term/{number}.md", b"x")
                changes.append(transaction.change.id)
        assert len(memory.store.files.names(UNDO)) == 2
        with pytest.raises(ConflictError, match="no longer kept"):
            memory.undo(change=changes[0])
        memory.undo(change=changes[3])
        assert memory.store.files.names("memory/long_term") == [
            f"memory/long_term/{one}.md" for one in range(3)
        ]
        memory.store.files.write(f"{UNDO}/{changes[2]}.json", b"{")
        with pytest.raises(StorageError, match=f"{changes[2]} cannot be read"):
            memory.undo(change=changes[2])


def test_a_change_whose_former_version_is_not_kept_is_not_undone(place: Path | str) -> None:
    config = Config.load(None, environ={}, store={"keep_versions": 0})
    with Memory.open(place, config=config) as memory:
        (chunk_id,) = memory.remember("The quince blooms.").chunk_ids
        memory.update(chunk_id, "The quince is ripe.")
        with pytest.raises(ConflictError, match="not kept any more"):
            memory.undo()
        assert [one.content for one in memory.store.iter_chunks()] == ["The quince is ripe."]


def test_a_batch_that_made_and_erased_a_memory_is_undone_as_nothing(place: Path | str) -> None:
    with Memory.open(place) as memory:
        memory.remember("The pear is ripe.")
        with memory.store.batch():
            made = memory.store.create_chunk("The quince blooms.")
            memory.store.delete_chunk(made.id, permanent=True)
        assert memory.undo() is not None
        assert [one.content for one in memory.store.iter_chunks()] == ["The pear is ripe."]
        assert memory.undo() is not None
        assert memory.list_chunks() == []
