"""Archives and brains written by an earlier version (0.1.0 before one transaction held everything): still read.

``folder.tar.gz`` and ``database.tar.gz`` are backups of the same memories in a folder and in a database.
``interrupted.tar.gz`` is a brain folder with two writes that were killed: a promotion whose record was pending, and a
batch of chunks whose redo record was written. ``brain.tar.gz`` is a brain folder as 0.1.0 left it (d6a8052): two
namespaces, a chunk with a former version, one that is archived, links, a tiered memory, a slider set by hand, a recall.
"""

from __future__ import annotations

import contextlib
import io
import sqlite3
import tarfile
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.errors import ConflictError, CorruptStore, StorageError
from rlm_mem.store.backup import restore_backup
from rlm_mem.store.core.backup_archive import BackupInfo, packing
from tests.typed import present

ARCHIVES = Path(__file__).parent / "archives"


@pytest.mark.parametrize("kind", ["folder", "database"])
def test_a_backup_of_an_earlier_version_is_restored_and_its_changes_are_undone(
    place: Path | str, kind: str
) -> None:
    restored = restore_backup(ARCHIVES / f"{kind}.tar.gz", place, replace=True)
    assert (restored.chunks, restored.unreadable) == (4, 0)
    with Memory.open(place) as memory:
        # A merged memory named its successor, which had no link to it then.
        assert [one.code for one in memory.check()] == ["one-sided-replacement"]
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


@pytest.fixture
def brain(tmp_path: Path) -> Path:
    """The brain folder of 0.1.0."""
    with tarfile.open(ARCHIVES / "brain.tar.gz") as archive:
        archive.extractall(tmp_path / "brain", filter="data")
    return tmp_path / "brain"


def test_a_brain_of_an_earlier_version_is_opened_with_all_that_it_holds(brain: Path) -> None:
    with Memory.open(brain) as memory:
        assert memory.check() == []
        assert (memory.stats().chunk_count, memory.stats().archived_count) == (8, 1)
        assert memory.recall("When does the ledger go live?").content == "19 May"
        (changed,) = memory.list_chunks(conversation_id="planning")
        assert memory.history(changed)[0].chunk.content == "Priya: The ledger goes live on 12 May."
        assert ("supports", "in") in {(one.type, one.direction) for one in memory.links(changed)}
        (archived,) = memory.list_chunks(archived=True)
        assert "blue door" in present(memory.restore(archived)).content
        assert [entry.kind for entry in memory.continuum.files.entries()] == ["interaction"]
        assert memory.persona(keep=True).sliders["humor"] == 70
        assert len(list(memory.trajectories())) == 2
        memory.undo(changed)
        assert "12 May" in present(memory.get(changed)).content
        memory.remember("Priya: The ledger moved to 26 May.", conversation_id="planning")
        assert memory.check() == []
    with Memory.open(brain, namespace="project/ledger") as memory:
        assert memory.recall("On which day are deployments of the ledger?").outcome == "answered"


def test_what_a_newer_version_wrote_is_refused_in_a_clear_sentence_and_kept(brain: Path) -> None:
    with Memory.open(brain) as memory:
        (linked,) = memory.list_chunks(conversation_id="planning")
    (chunk,) = (brain / "memory" / "chunks").rglob(f"{linked}.json")
    written = chunk.read_text().replace('"schema": "2.0"', '"schema": "3.0"')
    chunk.write_text(written)
    with Memory.open(brain) as memory:
        memory.sync(full=True)
        assert memory.get(linked) is None
        (finding,) = memory.check()  # and no link to it is called dangling
        assert finding.code == "newer-version"
        assert finding.message.endswith("written by a newer version of this program (schema 3.0)")
        memory.repair(dry_run=False)
        assert memory.check() == [finding]
    assert chunk.read_text() == written
    with contextlib.closing(sqlite3.connect(brain / "memory" / "index" / "index.sqlite")) as index:
        index.execute("PRAGMA user_version=1000")
    with pytest.raises(
        StorageError, match=r"the index has version 1000, this program supports versions up to \d+(?:\n|$)"
    ):
        Memory.open(brain).stats()


def test_an_archive_that_unpacks_to_far_more_than_its_size_is_refused_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_mem.store.core.backup_archive._MIN_ALLOWANCE", 1 << 20)
    bomb = tmp_path / "bomb.tar.gz"
    with packing(bomb, BackupInfo(files=1)) as packer:
        size = 40 << 20
        packer.add("memory/log/2026-01.jsonl", io.BytesIO(bytes(size)), size, 0.0)
    with pytest.raises(CorruptStore, match="unpacks to more"):
        restore_backup(bomb, tmp_path / "brain")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bomb.tar.gz"]


def test_tags_in_another_unicode_form_are_one_tag_after_an_upgrade(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        first = memory.remember("The ferry leaves at six.", tags=["café", "boat"]).chunk_ids[0]
        second = memory.remember("The kiosk opens at seven.", tags=["café"]).chunk_ids[0]
    file = next((tmp_path / "brain" / "memory" / "chunks").rglob(f"{first}.json"))
    written = file.read_text(encoding="utf-8").replace("café", "cafe\u0301")
    file.write_text(written, encoding="utf-8")
    with contextlib.closing(
        sqlite3.connect(tmp_path / "brain" / "memory" / "index" / "index.sqlite")
    ) as index:
        index.execute("PRAGMA user_version=5")
    with Memory.open(tmp_path / "brain") as memory:
        assert memory.tags() == [("café", 2), ("boat", 1)]
        assert set(memory.list_chunks(tags="cafe\u0301")) == {first, second}
        assert memory.check() == []
    assert file.read_text(encoding="utf-8") == written, "a file is written when its memory changes"
