"""Each kind of JSON file of a brain, damaged in each way: a check names it and the remedy, and all else works."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.capture.sessions import state_name
from rlm_mem.interchange import import_source
from rlm_mem.store.core.findings import CODES

TEXT = "The Heron has berth 14."


@pytest.fixture(scope="module")
def brain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A brain with a file of each kind, and a synced folder beside it."""
    folder = tmp_path_factory.mktemp("damaged")
    docs = folder / "docs"
    docs.mkdir()
    (docs / "gate.md").write_text("The gate is green.", encoding="utf-8")
    with Memory.open(folder / "brain") as memory:
        one = memory.remember(TEXT, conversation_id="port").chunk_ids[0]
        memory.update(one, tags=["boats"])
        gone = memory.remember("The tender is grey.", conversation_id="port").chunk_ids[0]
        memory.delete(gone)
        kept = memory.store.create_chunk("Ines likes tea.", source="transcript", conversation_id="s1")
        memory.continuum.review.add_captured("s1", "claude-code", [kept])
        memory.sync_folder(docs, known_as="docs")
        (folder / "note.md").write_text("The buoy is lit.", encoding="utf-8")
        import_source(memory.store, folder / "note.md")
        persona = memory.persona(keep=True)
        persona.set(next(iter(persona.sliders)), 40)
        memory.continuum.workspace.start("moor the Heron")
        memory.store.files.write(state_name("s1"), b'{"offset": 1, "digests": []}')
        memory.recall("Where is the Heron?")
    return folder / "brain"


def conflict(data: bytes) -> bytes:
    """The file with its middle line in conflict, as git leaves it; both sides are whole."""
    lines = data.splitlines(keepends=True)
    middle = len(lines) // 2
    before, line, after = lines[:middle], lines[middle], lines[middle + 1 :]
    end = b"" if line.endswith(b"\n") else b"\n"
    marked = [b"<<<<<<< HEAD\n", line + end, b"=======\n", line + end, b">>>>>>> theirs\n"]
    return b"".join([*before, *marked, *after])


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "conflict": conflict,
    "cut off": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "Latin-1": lambda data: data.replace(b'"', b'"\xe9', 1),
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "CR LF": lambda data: data.replace(b"\n", b"\r\n"),
    "zeros": lambda data: b"\0" * len(data),
}
_LOG = [
    "conflict-of-lines",
    "",
    "",
    "other-encoding",
    "unreadable-lines",
    "other-encoding",
    "",
    "unreadable-lines",
]


def _record(code: str, in_conflict: str = "") -> list[str]:
    return [in_conflict or code, code, code, "other-encoding", code, "other-encoding", "", code]


def _chunk(code: str, in_conflict: str) -> list[str]:
    return [in_conflict, code, code, "", code, "", "", code]


#: By kind of file: where it is, and the finding for each damage, in the order of DAMAGES; empty: it is read as it is.
KINDS = {
    "chunk": ("memory/chunks/*/*.json", _chunk("unreadable-with-version", "conflict-of-counts")),
    "archived chunk": ("memory/archive/chunk-*.json", _chunk("unreadable-file", "conflict-of-counts")),
    "former version": ("memory/archive/versions/*/*.json", _chunk("unreadable-version", "unreadable-version")),
    "change record": ("memory/archive/continuum/default/undo/*.json", _record("unreadable-change")),
    "audit log": ("memory/log/2*.jsonl", _LOG),
    "record of imports": ("memory/imports/*.jsonl", _LOG),
    "recorded run": ("memory/trajectories/*/*.jsonl", _LOG),
    "folder": ("system/folders/*/[0-9]*.json", _record("unreadable-folder", "folder-conflict")),
    "name of a folder": ("system/folders/*/same-as.json", _record("unreadable-folder", "folder-conflict")),
    "review case": ("system/review/*.json", _record("unreadable-case")),
    "captured session": ("system/capture/*.json", _record("unreadable-state")),
    "persona": ("persona/*.json", _record("unreadable-state")),
    "working state": ("workspace/state/variables.json", _record("unreadable-state")),
}  # fmt: skip


CASES = [
    (kind, damage, code)
    for kind, (_, codes) in KINDS.items()
    for damage, code in zip(DAMAGES, codes, strict=True)
]


@pytest.mark.local_only("about files")
@pytest.mark.parametrize(("kind", "damage", "code"), CASES)
def test_a_damaged_file_is_named_and_mended_or_left_and_nothing_else_stops(
    brain: Path, tmp_path: Path, kind: str, damage: str, code: str
) -> None:
    copy = tmp_path / "brain"
    shutil.copytree(brain, copy, ignore=shutil.ignore_patterns("index"))
    files = sorted(copy.glob(KINDS[kind][0]))
    versions = copy / "memory/archive/versions"
    file = next((one for one in files if (versions / one.stem).is_dir()), files[0])
    damaged = DAMAGES[damage](file.read_bytes())
    file.write_bytes(damaged)
    with Memory.open(copy) as memory:
        found = memory.check()
        assert [one.code for one in found] == ([code] if code else []), found
        place = file.relative_to(copy).as_posix()
        assert all(one.file is not None and place.endswith(one.file.removeprefix("memory/")) for one in found)
        memory.remember("The gull is white.")
        assert memory.search("gull")[0].snippet == "The gull is white."
        assert memory.recall("What colour is the gull?").content is not None
        assert (
            memory.trajectories()
            and memory.recorded_changes()
            and memory.continuum.review.cases(None) is not None
        )
        memory.persona("other", keep=True)
        memory.continuum.consolidate()
        for repair in memory.repair(dry_run=False):
            assert repair.error is None and (repair.done or repair.manual), repair
            assert not repair.manual or repair.action.startswith("left")
        remedy = CODES.get(code, ("", ""))[1]
        if remedy.startswith(("left", "moves")):
            assert any(one.read_bytes().startswith(damaged) for one in copy.rglob("*") if one.is_file())
        left = [one.code for one in memory.check()]
        assert left == ([code] if remedy.startswith("left") else []), left
        memory.persona(keep=True)
        report = memory.sync_folder(brain.parent / "docs", known_as="docs")
        assert report.refused == [] and report.chunks_archived == report.chunks_superseded == 0
        assert [hit.snippet for hit in memory.search("gate")] == ["The gate is green."]


@pytest.mark.local_only("about files")
@pytest.mark.parametrize("kind", [*list(KINDS)[7:9], *list(KINDS)[10:], "change record"])
def test_a_record_that_git_lfs_has_not_fetched_waits_in_its_place(
    brain: Path, tmp_path: Path, kind: str
) -> None:
    copy = tmp_path / "brain"
    shutil.copytree(brain, copy, ignore=shutil.ignore_patterns("index"))
    file = min(copy.glob(KINDS[kind][0]))
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n"
    file.write_bytes(pointer)
    with Memory.open(copy) as memory:
        (repair,) = memory.repair(dry_run=False)
        assert (repair.finding.code, repair.done) == (
            "not-fetched",
            False,
        ) and "git lfs pull" in repair.action
    assert file.read_bytes() == pointer


@pytest.mark.parametrize("end", [b"=======\n", b""])
def test_lines_that_both_sides_of_a_conflict_removed_stay_removed(place: Path | str, end: bytes) -> None:
    log = "log/continuum.jsonl"
    first, ours, base, theirs = (b'{"id":"%s"}\n' % one for one in (b"a", b"b", b"c", b"d"))
    marked = [first, b"<<<<<<< HEAD\n", ours, b"||||||| 1a2b3c\n", base, end, theirs, b">>>>>>> x\n"]
    with Memory.open(place) as memory:
        memory.store.files.write(log, b"".join(marked))
        memory.repair(dry_run=False)
        kept = [first, ours, theirs] if end else [first, ours, base, theirs]  # what has no end may be a side
        assert memory.store.files.read(log) == b"".join(kept)
        assert memory.check() == []
