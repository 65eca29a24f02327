"""A folder of documents is recognised in every clone and at every path, or nothing is stored twice or archived."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_mem.chunk import Chunk
from rlm_mem.errors import ConflictError, InputError
from rlm_mem.interchange.folders import sync_folder
from rlm_mem.interchange.importing import import_source
from rlm_mem.memory import Memory
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check

from .conftest import Open

GATE, BOAT, KEY = "The gate is green.", "The boat is blue.", "The key is brass."
TEXTS = {"gate.md": GATE, "sub/boat.md": BOAT}
REMOTE = '[core]\n\tbare = false\n[remote "origin"]\n\turl = git@git.example.org:Acme/app.git\n'

Git = Callable[..., str]


@pytest.fixture
def git(monkeypatch: pytest.MonkeyPatch) -> Git:
    if shutil.which("git") is None:
        pytest.skip("asks git")
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ana")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ana@example.org")

    def run(place: Path, *arguments: str, check: bool = True) -> str:
        ran = subprocess.run(["git", *arguments], cwd=place, check=check, capture_output=True, text=True)
        return ran.stdout

    return run


def write(folder: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def held(store: ChunkStore) -> list[str]:
    """The texts that hold now."""
    return sorted(chunk.content for chunk in store.iter_chunks() if chunk.metadata.superseded_by is None)


def commit(git: Git, place: Path) -> None:
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "more")


def two_clones(git: Git, tmp_path: Path) -> tuple[Path, Path]:
    """A repository with a brain and a synced folder, and a clone of it."""
    ana, bob = tmp_path / "ana", tmp_path / "bob"
    write(ana / "notes", TEXTS)
    git(ana, "init", "-q", "-b", "main")
    with Memory.open(ana / "brain") as memory:
        memory.sync_folder(ana / "notes")
    commit(git, ana)
    git(tmp_path, "clone", "-q", str(ana), str(bob))
    return ana, bob


@pytest.mark.local_only("are in one repository with the documents")
def test_a_folder_beside_the_brain_is_the_same_in_every_clone(git: Git, tmp_path: Path) -> None:
    ana, bob = two_clones(git, tmp_path)
    with Memory.open(bob / "brain") as memory:
        assert memory.sync_folder(bob / "notes").unchanged == 2
        write(bob / "notes", {"gate.md": f"{GATE} It creaks."})
        report = memory.sync_folder(bob / "notes")
        assert (report.changed, report.added, report.folder) == (["gate.md"], [], str(bob / "notes"))
        assert memory.check() == []
    commit(git, bob)
    git(ana, "pull", "-q", str(bob), "main")
    with Memory.open(ana / "brain") as memory:
        assert memory.sync_folder(ana / "notes").unchanged == 2
        assert held(memory.store) == [BOAT, f"{GATE} It creaks."]
        assert {chunk.metadata.conversation_id for chunk in memory.store.iter_chunks()} == {
            "file:./notes/gate.md", "file:./notes/sub/boat.md",
        }  # fmt: skip


@pytest.mark.local_only("are in one repository with the documents")
def test_a_folder_that_an_earlier_version_knew_by_its_path_stays_known_in_every_clone(
    git: Git, tmp_path: Path
) -> None:
    ana, bob = tmp_path / "ana", tmp_path / "bob"
    write(ana / "notes", TEXTS)
    with Memory.open(ana / "brain") as memory:
        first = memory.sync_folder(ana / "notes").chunk_ids  # without a repository it is known by its path
        git(ana, "init", "-q", "-b", "main")
        again = memory.sync_folder(ana / "notes")
        assert (again.unchanged, again.touched, again.chunk_ids) == (2, False, first)
        assert memory.sync_folder(ana / "notes").change is None
    commit(git, ana)
    git(tmp_path, "clone", "-q", str(ana), str(bob))
    shutil.rmtree(ana)
    with Memory.open(bob / "brain") as memory:
        write(bob / "notes", {"key.md": KEY})
        report = memory.sync_folder(bob / "notes")
        assert (report.unchanged, report.added) == (2, ["key.md"])
        assert held(memory.store) == [BOAT, GATE, KEY] and memory.check() == []


def test_a_folder_of_a_repository_is_the_same_wherever_that_is_cloned(
    tmp_path: Path, store: ChunkStore
) -> None:
    places = [write(tmp_path / name / "notes", TEXTS) for name in ("one", "two/deeper")]
    for place in places:
        write(place.parent / ".git", {"config": REMOTE})
    assert sync_folder(store, places[0]).added == sorted(TEXTS)
    shutil.rmtree(places[0].parent)
    report = sync_folder(store, places[1])
    assert (report.unchanged, report.added, report.archived) == (2, [], [])
    other = write(places[1].parent / "other", {"key.md": KEY})
    assert sync_folder(store, other).added == ["key.md"]
    assert held(store) == [BOAT, GATE, KEY]
    (conversation,) = {
        chunk.metadata.conversation_id for chunk in store.iter_chunks() if KEY in chunk.content
    }
    assert conversation == "file:git.example.org/acme/app:other/key.md"


def test_a_hidden_folder_of_a_repository_is_not_the_folder_without_the_dot(
    git: Git, tmp_path: Path, open_store: Open
) -> None:
    git(tmp_path, "init", "-q")
    notes, hidden = (write(tmp_path / name, {"a.md": text}) for name, text in (("n", GATE), (".n", BOAT)))
    with open_store() as store:
        for folder in (notes, hidden, notes):
            report = sync_folder(store, folder)
            assert not report.changed and not report.archived
        assert held(store) == [BOAT, GATE]


def test_a_new_folder_at_the_former_place_of_a_moved_one_does_not_take_its_record(
    tmp_path: Path, open_store: Open
) -> None:
    first, moved = write(tmp_path / "n", TEXTS), tmp_path / "moved"
    with open_store() as store:
        sync_folder(store, first)
        first.rename(moved)
        sync_folder(store, moved, known_as=str(first))
        write(first, {"key.md": KEY})
        with pytest.raises(ConflictError, match=r"belongs to .*moved now"):
            sync_folder(store, first)
        assert held(store) == [BOAT, GATE]
        assert sync_folder(store, first, known_as="keys").added == ["key.md"]
        assert sync_folder(store, first).unchanged == 1 and sync_folder(store, moved).unchanged == 2
        assert held(store) == [BOAT, GATE, KEY]


def test_a_moved_folder_is_asked_for_and_then_known(tmp_path: Path, store: ChunkStore) -> None:
    old, new = write(tmp_path / "old", TEXTS), tmp_path / "new notes"
    sync_folder(store, old)
    copy = shutil.copytree(old, tmp_path / "copy")
    assert sync_folder(store, copy).added == sorted(TEXTS), "a copy beside it is another folder"
    old.rename(new)
    shutil.rmtree(copy)
    before = store.totals()["chunk_count"]
    for dry_run in (True, False):
        with pytest.raises(
            ConflictError, match=r"2 of the 2 documents of .*new notes are remembered"
        ) as refused:
            sync_folder(store, new, dry_run=dry_run)
    assert f"else --known-as '{new}'" in str(refused.value.hint)
    assert store.totals()["chunk_count"] == before
    report = sync_folder(store, new, known_as=str(old))
    assert (report.unchanged, report.touched) == (2, False)
    write(new, {"gate.md": f"{GATE} It creaks."})
    report = sync_folder(store, new)
    assert (report.changed, report.unchanged) == (["gate.md"], 1)
    assert store.totals()["chunk_count"] == before + 1


def test_a_folder_with_the_documents_of_another_is_its_own_if_that_is_said(
    tmp_path: Path, store: ChunkStore
) -> None:
    old, new = write(tmp_path / "old", TEXTS), tmp_path / "new"
    sync_folder(store, old, known_as="handbook")
    old.rename(new)
    report = sync_folder(store, new, known_as=str(new))
    assert report.added == sorted(TEXTS) and store.totals()["chunk_count"] == 4
    assert sync_folder(store, new).unchanged == 2
    new.rename(old)
    assert sync_folder(store, old).unchanged == 2, "a name that was given is noted"
    with pytest.raises(InputError, match="known_as"):
        sync_folder(store, old, known_as="")


def test_of_a_folder_without_any_of_its_documents_nothing_is_archived_unless_that_is_asked_for(
    tmp_path: Path, store: ChunkStore
) -> None:
    docs = write(tmp_path / "notes", TEXTS)
    sync_folder(store, docs)
    disk = docs.rename(tmp_path / "disk")
    docs.mkdir()
    for texts in ({}, {"key.md": KEY}, {}):
        report = sync_folder(store, write(docs, texts))
        assert (report.added, report.archived, report.failed) == ([], [], ["."])
        assert "none of its 2 documents" in report.refused[0].reason
        assert held(store) == [BOAT, GATE]
    shutil.rmtree(docs)
    disk.rename(docs)
    assert not sync_folder(store, docs).touched
    for name in TEXTS:
        (docs / name).unlink()
    assert sync_folder(store, docs, archive_all=True).archived == sorted(TEXTS)
    assert held(store) == []
    write(docs, TEXTS)
    assert sync_folder(store, docs).restored == sorted(TEXTS)


def test_nothing_is_archived_because_a_folder_is_on_another_machine(
    tmp_path: Path, store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ann and Bob share a memory; Ann's folder does not exist at Bob's, or is another one at the same place."""
    theirs = write(tmp_path / "notes", TEXTS | {"key.md": KEY})
    monkeypatch.setattr("platform.node", lambda: "ann")
    assert import_source(store, theirs).created == 3
    theirs.rename(tmp_path / "at ann's")
    monkeypatch.setattr("platform.node", lambda: "bob")

    other = write(tmp_path / "copy", TEXTS)  # two of the three documents
    report = import_source(store, other)
    assert report.documents is not None and report.documents.moved_from is None
    assert report.archived == 0 and held(store).count(KEY) == 1
    for found in (import_source(store, other), import_source(store, other, again=True)):
        assert found.archived == 0
    assert check(store) == []

    own = write(tmp_path / "notes", {"gate.md": "Bob's gate is of iron.", "sub/boat.md": BOAT})
    before = held(store)
    for work in (import_source, sync_folder):
        with pytest.raises(
            ConflictError, match="was remembered on another machine, or before this one got"
        ) as refused:
            work(store, own)
        assert "--known-as" in str(refused.value.hint)
        assert held(store) == before and store.list_chunks(archived=True) == []
    assert sync_folder(store, own, known_as="bob's").added == ["gate.md", "sub/boat.md"]
    write(own, {"gate.md": "Bob's gate is of brass."})
    assert sync_folder(store, own).changed == ["gate.md"], "from now on it is known"
    assert {GATE, KEY, "Bob's gate is of brass."} <= set(held(store))

    monkeypatch.setattr("platform.node", lambda: "ann")
    (tmp_path / "notes").rename(tmp_path / "at bob's")
    (tmp_path / "at ann's").rename(theirs)
    (theirs / "key.md").unlink()
    assert import_source(store, theirs).archived == 1, "Ann's own sync goes on"


def test_a_folder_that_two_machines_share_is_asked_for_once(
    tmp_path: Path, store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = write(tmp_path / "notes", TEXTS)
    monkeypatch.setattr("platform.node", lambda: "laptop")
    sync_folder(store, shared)
    monkeypatch.setattr("platform.node", lambda: "desktop")
    before = list(store.events())
    report = sync_folder(store, shared)
    assert (report.unchanged, report.change) == (2, None), "nothing differs, so that nothing has to be asked"
    assert list(store.events()) == before, "an undo undoes what a person did"
    write(shared, {"gate.md": f"{GATE} It creaks."})
    assert sync_folder(store, shared).changed == ["gate.md"]
    monkeypatch.setattr("platform.node", lambda: "tablet")
    (shared / "gate.md").unlink()
    with pytest.raises(ConflictError) as refused:
        sync_folder(store, shared)
    known_as = shlex.split(str(refused.value.hint).partition("--known-as ")[2].partition(";")[0])[0]
    assert sync_folder(store, shared, known_as=known_as).archived == ["gate.md"], "the hint is the way on"
    write(shared, {"sub/boat.md": f"{BOAT} It leaks."})
    assert sync_folder(store, shared).changed == ["sub/boat.md"]


@pytest.mark.local_only("are in one repository with the documents")
def test_what_both_clones_recorded_of_a_folder_is_united_by_the_next_sync(git: Git, tmp_path: Path) -> None:
    """Also of a file that both changed alike, whose new text was stored twice."""
    ana, bob = two_clones(git, tmp_path)
    for place, of_boat in ((ana, "Ana"), (bob, "Bob")):
        write(place / "notes", {"gate.md": "The gate is painted.", "sub/boat.md": f"{BOAT} Says {of_boat}."})
        with Memory.open(place / "brain") as memory:
            assert memory.sync_folder(place / "notes").changed == ["gate.md", "sub/boat.md"]
        commit(git, place)
    git(ana, "pull", "-q", "--no-rebase", str(bob), "main", check=False)
    records = sorted((ana / "brain" / "system").rglob("*.json"))
    assert any(b"<<<<<<<" in path.read_bytes() for path in records)
    for path in (ana / "brain" / "memory" / "chunks").rglob("*.json"):
        if b"<<<<<<<" in path.read_bytes():  # the former text, which both replaced
            git(ana, "checkout", "-q", "--ours", str(path))
    write(ana / "notes", {"sub/boat.md": f"{BOAT} Says Ana. Says Bob."})
    with Memory.open(ana / "brain") as memory:
        report = memory.sync_folder(ana / "notes")
        assert report.refused == []
        assert not any(b"<<<<<<<" in path.read_bytes() for path in records)
        assert held(memory.store) == [f"{BOAT} Says Ana. Says Bob.", "The gate is painted."]
        assert memory.sync_folder(ana / "notes").unchanged == 2
        assert texts_of(memory.store.get_many(report.chunk_ids)) == held(memory.store)


def texts_of(chunks: dict[str, Chunk]) -> list[str]:
    return sorted(chunk.content for chunk in chunks.values())


def test_a_name_that_was_noted_is_taken_back_with_the_sync(tmp_path: Path, open_store: Open) -> None:
    memory = Memory(open_store())
    old, new = write(tmp_path / "old", TEXTS), tmp_path / "new"
    memory.sync_folder(old)
    old.rename(new)
    write(new, {"key.md": KEY})
    assert memory.sync_folder(new, known_as=str(old)).added == ["key.md"]
    assert memory.undo() is not None and held(memory.store) == [BOAT, GATE]
    with pytest.raises(ConflictError, match="are remembered of"):
        memory.sync_folder(new)
