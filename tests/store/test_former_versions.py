"""Archives and brains written by an earlier version (0.1.0 before one transaction held everything): still read.

``folder.tar.gz`` and ``database.tar.gz`` are backups of the same memories in a folder and in a database.
``interrupted.tar.gz`` is a brain folder with two writes that were killed: a promotion whose record was pending, and a
batch of chunks whose redo record was written.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.errors import ConflictError, CorruptStore
from rlm_mem.store.backup import bring_back
from rlm_mem.store.core.backup_archive import BackupInfo, packing

ARCHIVES = Path(__file__).parent / "archives"


@pytest.mark.parametrize("kind", ["folder", "database"])
def test_a_backup_of_an_earlier_version_is_restored_and_its_changes_are_undone(
    place: Path | str, kind: str
) -> None:
    restored = bring_back(ARCHIVES / f"{kind}.tar.gz", place, replace=True)
    assert (restored.chunks, restored.unreadable) == (4, 0)
    with Memory.open(place) as memory:
        assert memory.check() == []
        (made,) = [one for one in memory.store.iter_chunks() if one.metadata.conversation_id == "trip"]
        assert made.content == "Dana prefers night trains."
        assert memory.history(made.id)[0].chunk.content == "Dana prefers trains to planes."
        assert memory.persona(keep=True).sliders["humor"] == 70
        assert [entry.kind for entry in memory.continuum.files.entries()] == ["trace"]
        undone = memory.undo()
        assert undone is not None
        assert undone.ops == ("promote",)
        assert [entry.kind for entry in memory.continuum.files.entries()] == ["interaction"]
        with pytest.raises(ConflictError, match="earlier version"):
            memory.undo()
        memory.undo(made.id)
        undone_chunk = memory.get(made.id)
        assert undone_chunk is not None
        assert undone_chunk.content == "Dana prefers trains to planes."
        assert memory.check() == []


def test_writes_that_an_earlier_version_left_unfinished_are_finished(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVES / "interrupted.tar.gz") as archive:
        archive.extractall(tmp_path / "brain", filter="data")
    with Memory.open(tmp_path / "brain") as memory:
        contents = [one.content for one in memory.store.iter_chunks()]
        assert {"first of an interrupted write", "second of an interrupted write"} <= set(contents)
        assert [finding.code for finding in memory.check()] == ["change-interrupted"]
        memory.continuum.sync()
        assert [entry.kind for entry in memory.continuum.files.entries()] == ["trace"]
        assert memory.check() == []
        (transition,) = memory.continuum.changes.transitions()
        memory.continuum.undo(transition)
        assert [entry.kind for entry in memory.continuum.files.entries()] == ["interaction"]
        assert memory.check() == []


def test_an_archive_that_unpacks_to_far_more_than_its_size_is_refused_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_mem.store.core.backup_archive._ALWAYS", 1 << 20)
    bomb = tmp_path / "bomb.tar.gz"
    with packing(bomb, BackupInfo(files=1)) as packer:
        size = 40 << 20
        packer.add("memory/log/2026-01.jsonl", io.BytesIO(bytes(size)), size, 0.0)
    with pytest.raises(CorruptStore, match="unpacks to more"):
        bring_back(bomb, tmp_path / "brain")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bomb.tar.gz"]
