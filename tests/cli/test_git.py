"""The life of a memory under git: nothing that is read is in the way, and what was checked out is what is answered."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.errors import ConflictError
from tests.typed import present

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="asks git"),
    pytest.mark.local_only("look at files"),
]

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ana")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ana@example.org")
    work = tmp_path / "work"
    work.mkdir()

    def run(*arguments: str, check: bool = True, cwd: Path = work) -> str:
        ran = subprocess.run(["git", *arguments], cwd=cwd, check=check, capture_output=True, text=True)
        return ran.stdout

    run("init", "-q", "-b", "main")
    return run


def commit(git: Git, what: str) -> None:
    git("add", "-A")
    git("commit", "-q", "-m", what)


def test_reading_leaves_nothing_to_commit_and_any_commit_can_be_checked_out(git: Git, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "work" / "brain") as memory:
        memory.remember("The ferry leaves at 6:10.")
        commit(git, "one")
        memory.remember("Correction: the ferry leaves at 6:40.")
        commit(git, "two")
        for _ in range(2):
            assert memory.recall("When does the ferry leave?").content == "6:40"
            memory.reason("When does the ferry leave?")
            memory.search("ferry")
        assert git("status", "--porcelain") == ""
        assert [event.op for event in memory.events()][-4:] == ["recall", "reason"] * 2
    git("checkout", "-q", "main~1")
    with Memory.open(tmp_path / "work" / "brain") as memory:
        assert memory.recall("When does the ferry leave?").content == "6:10"
        assert memory.check() == []
        git("checkout", "-q", "main")
        assert memory.sync()
        assert memory.recall("When does the ferry leave?").content == "6:40"
        assert memory.check() == []
    assert git("status", "--porcelain") == ""


def test_branches_that_both_remembered_merge_and_a_clone_holds_all_of_it(git: Git, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "work" / "brain") as memory:
        shared = memory.remember("The keel is of oak.").chunk_ids[0]
        gone = memory.remember("The anchor is of iron.").chunk_ids[0]
        commit(git, "base")
        git("checkout", "-q", "-b", "side")
        memory.remember("The sail is of hemp.")
        memory.update(shared, tags=["boat"])
        commit(git, "side")
        git("checkout", "-q", "main")
        memory.sync()
        memory.remember("The mast is of larch.")
        memory.delete(gone)
        commit(git, "main")
        git("merge", "-q", "side", "-m", "both")
        memory.sync()
        texts = ["The keel is of oak.", "The mast is of larch.", "The sail is of hemp."]
        assert sorted(chunk.content for chunk in memory.store.iter_chunks()) == texts
        assert memory.check() == []
        operations = sorted(event.op for event in memory.events())
        assert operations == ["create"] * 4 + ["delete", "update"]
        assert git("status", "--porcelain") == ""
    git("clone", "-q", str(tmp_path / "work"), str(tmp_path / "elsewhere"))
    with Memory.open(tmp_path / "elsewhere" / "brain") as memory:
        assert sorted(chunk.content for chunk in memory.store.iter_chunks()) == texts
        assert memory.list_chunks(tags=["boat"]) == [shared]
        assert memory.list_chunks(archived=True) == [gone]
        assert memory.check() == []
    assert git("status", "--porcelain", cwd=tmp_path / "elsewhere") == ""


def test_a_chunk_that_both_changed_is_a_conflict_that_hides_nothing_else(git: Git, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "work" / "brain") as memory:
        shared = memory.remember("The keel is of oak.").chunk_ids[0]
        other = memory.remember("The sail is of hemp.").chunk_ids[0]
        commit(git, "base")
        git("checkout", "-q", "-b", "side")
        memory.update(shared, content="The keel is of ash.")
        commit(git, "side")
        git("checkout", "-q", "main")
        memory.sync()
        memory.update(shared, content="The keel is of elm.")
        commit(git, "main")
        git("merge", "-q", "side", check=False)
        memory.sync()
        assert memory.list_chunks() == [other]
        (finding,) = memory.check()
        assert "merge conflict markers" in finding.message
        git("checkout", "-q", "--theirs", "brain/memory/chunks")
        commit(git, "merged")
        memory.sync()
        assert present(memory.store.get_chunk(shared)).content == "The keel is of ash."
        assert memory.check() == []


def test_repair_settles_a_chunk_of_which_both_only_wrote_how_often_it_was_read(
    git: Git, tmp_path: Path
) -> None:
    with Memory.open(tmp_path / "work" / "brain") as memory:
        shared, store = memory.remember("The keel is of oak.").chunk_ids[0], memory.store
        commit(git, "base")
        for branch, reads in (("side", 3), ("main", 1)):
            git("checkout", "-q", "-B", branch, "HEAD" if branch == "side" else "side~1")
            for _ in range(reads):
                store.get_chunk(shared)
            store.checkpoint()
            commit(git, branch)
        git("merge", "-q", "side", check=False)
        memory.sync()
        assert [finding.code for finding in memory.check()] == ["conflict-of-counts"]
        assert [step.done for step in memory.repair(dry_run=False)] == [True]
        chunk = memory.get(shared)
        assert chunk is not None and chunk.metadata.access_count >= 3
        assert memory.search("keel") and memory.check() == []


def test_of_a_tiered_memory_that_both_used_only_its_file_has_to_be_settled(git: Git, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "work" / "brain") as memory:
        traces = memory.continuum.traces
        key = traces.record("Publish the newsletter", success=True).key
        commit(git, "base")
        git("checkout", "-q", "-b", "side")
        for _ in range(2):
            traces.use(key, success=True)
        commit(git, "side")
        git("checkout", "-q", "main")
        for _ in range(2):
            traces.use(key, success=False, error="smtp down")
        commit(git, "main")
        git("merge", "-q", "side", check=False)
        (finding,) = memory.check()
        assert finding.file == key
        git("checkout", "-q", "--theirs", "brain/" + key)
        commit(git, "merged")
        memory.continuum.consolidate()
        (entry,) = memory.continuum.files.entries()
        mirror = memory.get(entry.chunk_id)
        assert mirror is not None and mirror.metadata.confidence == entry.meta.confidence_score
        assert entry.meta.success_count == 3 and memory.check() == []


def test_a_revert_takes_back_what_the_commit_remembered(git: Git, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "work" / "brain") as memory:
        memory.remember("The keel is of oak.")
        commit(git, "base")
        memory.remember("The sail is of hemp.")
        commit(git, "wrong")
        memory.remember("The mast is of larch.")
        commit(git, "right")
        git("revert", "--no-edit", "HEAD~1")
        memory.sync()
        texts = [chunk.content for chunk in memory.store.iter_chunks()]
        assert texts == ["The keel is of oak.", "The mast is of larch."]
        assert git("status", "--porcelain") == ""
        assert {finding.code for finding in memory.check()} == {"dangling-link"}  # "follows", of the last one
        memory.repair(dry_run=False)
        assert memory.check() == []


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_change_that_git_merged_into_the_archive_is_found_and_kept(
    git: Git, tmp_path: Path, by_hand: bool
) -> None:
    with Memory.open(tmp_path / "work" / "brain") as memory:
        shared = memory.remember("The keel is of oak.").chunk_ids[0]
        commit(git, "base")
        git("checkout", "-q", "-b", "side")
        if by_hand:
            (file,) = (tmp_path / "work" / "brain" / "memory" / "chunks").rglob(f"{shared}.json")
            file.write_text(file.read_text().replace("of oak", "of elm"))
        else:
            memory.update(shared, "The keel is of elm.")
        commit(git, "changed")
        git("checkout", "-q", "main")
        memory.sync()
        memory.delete(shared)
        commit(git, "deleted")
        assert memory.check() == []
        git("merge", "-q", "side", "-m", "both")
        memory.sync()
        assert memory.list_chunks() == []
        found = {finding.code: finding.chunk_id for finding in memory.check()}
        assert found.pop("archived-change") == shared and set(found) == (
            {"content-hash"} if by_hand else set()
        )
        assert all(step.done for step in memory.repair(dry_run=False))
        (chunk,) = memory.store.iter_chunks()
        assert (chunk.id, chunk.content) == (shared, "The keel is of elm.")
        assert memory.check() == []
        memory.delete(shared)
        assert memory.check() == [], "now it was archived with the change"


def test_undo_takes_back_what_was_changed_in_this_clone_and_asks_where_nothing_was(
    git: Git, tmp_path: Path
) -> None:
    """A merge may leave the lines of the others last in the log, or first."""
    with Memory.open(tmp_path / "work" / "brain") as memory:
        memory.remember("The keel is of oak.")
        commit(git, "base")
    other = tmp_path / "other"
    git("clone", "-q", str(tmp_path / "work"), str(other))
    with Memory.open(tmp_path / "work" / "brain") as ours, Memory.open(other / "brain", actor="Bo") as theirs:
        with pytest.raises(ConflictError, match=r"create of .* was made in another clone") as refused:
            theirs.undo()
        (keel,) = ours.recorded_changes()
        assert keel.id in str(refused.value.hint)
        own = {}
        for memory, text in ((theirs, "The sail is of hemp."), (ours, "The mast is of larch.")):
            memory.remember(text)
            own[memory] = memory.recorded_changes(1)[0].id
        for place, text in ((tmp_path / "work", "ours"), (other, "theirs")):
            git("add", "-A", cwd=place)
            git("commit", "-q", "-m", text, cwd=place)
        git("pull", "-q", "--no-rebase", str(other), "main")
        git("pull", "-q", "--no-rebase", str(tmp_path / "work"), "main", cwd=other)
        for memory in (ours, theirs):
            memory.sync()
            undone = memory.undo()
            assert undone is not None and undone.change == own[memory]
            assert memory.check() == []
        assert theirs.undo(change=keel.id) is not None
        with pytest.raises(ConflictError, match="another clone"):
            theirs.undo()
