"""Killed at any file operation and run again: the same end state, nothing lost, nothing twice."""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from rlm_mem.continuum import Continuum
from rlm_mem.errors import StorageError
from rlm_mem.store.core import files
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from tests import killed

from .conftest import (
    DAY_1,
    PROVEN,
    STEPS,
    StillClock,
    by_hand,
    open_continuum,
    record,
    rewrite,
    trace_of,
    tree,
)

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its victims: needs a POSIX system"),
    pytest.mark.local_only("killed between file operations (test_killed_clients.py: between statements)"),
]

OPERATIONS = (
    "write_temp", "sync_files", "publish", "sync_folder", "link_or_copy", "remove", "write_atomic", "append_at",
)  # fmt: skip
LATER = DAY_1 + timedelta(days=61)


def prepared(brain: Path | str) -> None:
    """Something for every kind of step: logs to promote and to merge, a trace to elevate, one to downgrade."""
    clock = StillClock()
    continuum = open_continuum(brain, clock)
    rewrite(continuum, trace_of(continuum, "Deploy the service"), **PROVEN)
    continuum.store.get_chunk(trace_of(continuum, "Water the plants").chunk_id)
    continuum.consolidate()
    rewrite(continuum, trace_of(continuum, "Bake the bread"), **PROVEN)
    record(continuum, "Water the plants")
    clock.now = LATER - timedelta(hours=1)
    record(continuum, "Graft the quince", project="beta")
    record(continuum, "Graft the quince", success=False, steps=STEPS)
    record(continuum, "Graft the quince")
    continuum.store.close()


def work(continuum: Continuum) -> None:
    continuum.consolidate()
    continuum.prune(dry_run=False)


def end_state(continuum: Continuum) -> dict[str, object]:
    """Files, archive, what is searched, and the steps of the journal: everything but the ids of steps."""
    stored = continuum.files.stored
    names = [name for name in stored.names("archive", recursive=True) if name.endswith(".md")]
    archive = {name: stored.read(name) for name in names}
    chunks = {}
    for chunk in continuum.store.iter_chunks():
        links = sorted((link.target_id, link.type) for link in chunk.links)
        chunks[chunk.id] = (chunk.content, sorted(chunk.tags), chunk.metadata.superseded_by, links)
    journal = sorted(
        (step["op"], step["entry"], step["from"] or "", step["to"] or "", step["reason"])
        for step in continuum.changes.journal()
    )
    return {
        "files": tree(continuum),
        "archive": archive,
        "chunks": chunks,
        "journal": journal,
        "waiting": continuum.changes.waiting(),
        "problems": continuum.check(),
        "transitions": len(continuum.changes.transitions()),
    }


def dies_at(number: int, after: bool) -> None:
    """Patch every file operation: the process is killed just before (or after) the given one."""
    patched = killed.at_call(number, after)

    for name in OPERATIONS:
        setattr(files, name, patched(getattr(files, name)))


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("master")
    prepared(folder / "brain")
    return folder / "brain"


def copied(master: Path, to: Path) -> Path:
    import shutil

    shutil.copytree(master, to / "brain", copy_function=shutil.copy2)
    with ChunkStore(to / "brain" / "memory") as store:
        store.sync(full=True)  # the copies are other files than the index recorded
    return to / "brain"


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_file_operation_and_repeated_gives_the_same_result(
    master: Path, tmp_path: Path, after: bool
) -> None:
    killed_and_run_again(master, tmp_path, after, first=1, stride=1)


@pytest.mark.parametrize(("after", "first"), [(False, 2), (True, 10)], ids=["before", "after"])
def test_killed_at_every_seventeenth_file_operation_and_repeated_gives_the_same_result(
    master: Path, tmp_path: Path, after: bool, first: int
) -> None:
    """The quick form of the test above."""
    killed_and_run_again(master, tmp_path, after, first=first, stride=17)


def killed_and_run_again(master: Path, tmp_path: Path, after: bool, *, first: int, stride: int) -> None:
    whole = open_continuum(copied(master, tmp_path / "whole"), StillClock(LATER))
    known = len(list(whole.changes.journal()))
    work(whole)
    expected = end_state(whole)
    steps = [step["op"] for step in whole.changes.journal()][known:]
    assert set(steps) == {"promote", "merge", "demote", "retire"}
    whole.store.close()

    number, kills = first, 0
    while True:
        brain = copied(master, tmp_path / str(number))
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                continuum = open_continuum(brain, StillClock(LATER))
                dies_at(number, after)
                work(continuum)
                status = 0
            finally:
                os._exit(status)
        status = os.waitpid(pid, 0)[1]
        again = open_continuum(brain, StillClock(LATER))
        work(again)
        assert end_state(again) == expected, f"killed {'after' if after else 'before'} operation {number}"
        if kills % 10 == 1:
            assert check(again.store) == []
        again.store.close()
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        kills += 1
        number += stride
    assert kills * stride > 60, "the work must have been interrupted at many places before it ran through"


@pytest.mark.parametrize(
    "linked", ["", "memory/long_term", "memory/short_term", "memory/archive", "memory/log"]
)
def test_an_unfinished_change_is_finished_by_the_next_process(
    continuum: Continuum, brain: Path, tmp_path: Path, linked: str
) -> None:
    """Also if one of its folders is a link to another disk."""
    log = record(continuum)
    if linked:
        (brain / linked).mkdir(exist_ok=True)
        (brain / linked).rename(tmp_path / "disk")
        (brain / linked).symlink_to(tmp_path / "disk")
    pid = os.fork()
    if not pid:
        try:
            publish = files.publish

            def dies_with_its_record(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
                publish(source, target)
                if Path(target).suffix == ".redo":
                    os.kill(os.getpid(), signal.SIGKILL)

            files.publish = dies_with_its_record
            open_continuum(brain, StillClock()).consolidate()
        finally:
            os._exit(1)
    os.waitpid(pid, 0)
    assert continuum.files.read(log.file) == log.text, "nothing was done but the record"
    continuum.traces.record("Something else")
    assert continuum.files.read(log.file) is None
    assert len(list(continuum.files.entries(kinds=("trace",)))) == 1
    assert len(continuum.changes.transitions()) == 1
    assert len(list(continuum.changes.journal(op="promote"))) == 1
    assert check(continuum.store) == []


def test_an_edit_by_hand_between_a_crash_and_its_repair_is_kept(continuum: Continuum) -> None:
    log = record(continuum)
    continuum.consolidate()
    stored = continuum.files.stored
    transition = continuum.changes.transitions()[-1]
    change = msgspec.json.decode(stored.read(f"archive/transitions/{transition}.json") or b"")
    # As if the process had died at the start: the record pending, the files as before, then edited by a person.
    stored.rename(f"archive/transitions/{transition}.json", f"archive/pending/{transition}.json")
    for edit in change["edits"]:
        stored.remove(edit["file"])
        if edit["before"] is not None:
            by_hand(continuum, edit["file"], edit["before"])
    by_hand(continuum, log.file, log.text + "\nAdded by hand.\n")
    continuum.sync()
    (kept,) = stored.names("archive/conflicts")
    assert b"Added by hand." in (stored.read(kept) or b"")


def test_a_source_is_archived_only_after_the_new_memory_was_read_back_whole(
    continuum: Continuum, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = record(continuum)
    write = continuum.files.stored.write

    def lossy(file: str, data: bytes, **more: bool) -> None:
        write(file, data[:-20] if "long_term" in file else data, **more)

    with monkeypatch.context() as patch:
        patch.setattr(continuum.files.stored, "write", lossy)
        with pytest.raises(StorageError, match="does not have the content that was written"):
            continuum.consolidate()
        assert continuum.files.read(log.file) == log.text
    continuum.consolidate()
    assert [entry.kind for entry in continuum.files.entries()] == ["trace"]


def test_a_full_disk_undoes_the_whole_change_and_the_next_run_makes_it(
    continuum: Continuum, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    log = record(continuum)
    before = tree(continuum)
    original, count = files.publish, 0

    def failing(source: Path, target: Path) -> None:
        nonlocal count
        count += 1
        if count == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(files, "publish", failing)
        with pytest.raises(OSError, match="full"):
            continuum.consolidate()
    assert tree(continuum) == before
    chunk = continuum.store.get_chunk(log.chunk_id)
    assert chunk is not None
    assert (chunk.revision, chunk.metadata.superseded_by) == (1, None)
    continuum.consolidate()
    assert [entry.kind for entry in continuum.files.entries()] == ["trace"]
    assert len(list(continuum.changes.journal(op="promote"))) == 1
    assert check(continuum.store) == []
