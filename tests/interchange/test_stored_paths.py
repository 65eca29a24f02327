"""Paths in a memory: never that of the home folder, and folders that were moved are recognised; on both stores."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.cli import main
from rlm_mem.config import path_of_stored, stored_path
from rlm_mem.errors import ConflictError
from rlm_mem.interchange import export_store, import_source

ADA = "The lighthouse keeper is called Ada, who rows to the rock on Mondays."
CRANE = "# Cranes\n\nThe crane of the northern pier is green, and lifts four tonnes.\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with files to import."""
    home = tmp_path / "homes" / "zelda"
    (home / "notes" / "sub").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (home / "notes" / "ada.txt").write_text(ADA)
    (home / "notes" / "sub" / "crane.md").write_text(CRANE)
    (home / "chat.json").write_text(
        '{"messages": [{"role": "user", "content": "Where is the key of the gate?"},'
        ' {"role": "assistant", "content": "In the drawer of the harbour office."}]}'
    )
    return home


def everything(memory: Memory) -> bytes:
    stored = memory.store.backend.stored_bytes([memory.store.namespace])
    return b"\n".join(data for where, data in stored if not where.startswith("index"))


def test_no_import_names_the_home_folder_in_the_store_or_an_export(
    place: Path | str, home: Path, tmp_path: Path
) -> None:
    with Memory.open(place) as memory:
        for path in (home / "notes" / "ada.txt", home / "chat.json", home / "notes"):
            assert import_source(memory.store, path).read_anything
        memory.sync_folder(home / "notes")
        assert b"zelda" not in everything(memory)
        export_store(memory.store, tmp_path / "out")
        assert b"zelda" not in b"".join(
            one.read_bytes() for one in (tmp_path / "out").rglob("*") if one.is_file()
        )
        paths = {str(one.metadata.provenance["path"]) for one in memory.store.iter_chunks()}
        assert {"chat.json, entry 1", "ada.txt", "sub/crane.md"} >= paths and len(paths) == 3


@pytest.mark.local_only("the command opens a folder")
@pytest.mark.parametrize("option", ["--file", "--jsonl", "--folder"])
def test_remember_does_not_name_the_home_folder_and_its_source_is_erased_by_its_path(
    home: Path, tmp_path: Path, option: str
) -> None:
    brain, path = tmp_path / "brain", home / "notes" / "ada.txt"
    if option == "--jsonl":
        path.write_text(f'"{ADA}"\n')
    given = path.parent if option == "--folder" else path
    assert main(["--brain", str(brain), "remember", option, str(given)]) == 0
    with Memory.open(brain) as memory:
        assert b"zelda" not in everything(memory)
    asked = [
        "--brain",
        str(brain),
        "erase",
        "--source",
        str(path),
        "--apply",
        "--report",
        str(tmp_path / "r"),
    ]
    assert main(asked) == 0
    with Memory.open(brain) as memory:
        assert ADA not in {one.content for one in memory.store.iter_chunks()}


def test_what_an_earlier_version_named_by_its_path_is_not_stored_twice(
    place: Path | str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, folder = home / "notes" / "ada.txt", home / "notes" / "sub"
    with Memory.open(place) as memory:
        with monkeypatch.context() as former:
            former.setenv("HOME", "/nowhere")
            import_source(memory.store, file)
            import_source(memory.store, folder)
            assert b"zelda" in everything(memory)
        before = set(memory.list_chunks())
        import_source(memory.store, file, again=True)
        import_source(memory.store, folder)
        assert set(memory.list_chunks()) == before
        (folder / "crane.md").write_text(CRANE.replace("four", "five"))
        assert import_source(memory.store, folder).superseded == 1


def test_two_homes_are_told_apart_and_a_stored_path_leads_back_at_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = stored_path(f"{home}/notes")
    assert mine.startswith("~") and mine.endswith("/notes") and path_of_stored(mine) == f"{home}/notes"
    assert stored_path(f"{home}s/notes") == f"{home}s/notes" and stored_path("/srv/notes") == "/srv/notes"
    monkeypatch.setenv("HOME", f"{home}-other")
    assert stored_path(f"{home}-other/notes") != mine and path_of_stored(mine) is None
    assert path_of_stored("notes/ada.txt") is None


def test_a_folder_that_was_moved_is_recognised_by_import(place: Path | str, home: Path) -> None:
    with Memory.open(place) as memory:
        import_source(memory.store, home / "notes")
        ids = sorted(memory.list_chunks())
        shutil.move(home / "notes", home / "papers")
        (home / "papers" / "new.md").write_text("The new quay has twelve bollards of iron.\n")
        planned = import_source(memory.store, home / "papers", dry_run=True)
        assert planned.documents is not None and planned.documents.moved_from is not None
        made = import_source(memory.store, home / "papers")
        assert made.documents is not None and made.documents.moved_from == stored_path(f"{home}/notes")
        assert (made.created, made.archived, made.documents.unchanged) == (1, 0, 2)
        assert set(ids) < set(memory.list_chunks()) and len(memory.list_chunks()) == 3
        again = import_source(memory.store, home / "papers")
        assert again.created == 0 and again.documents is not None and again.documents.moved_from is None
        (home / "papers" / "ada.txt").write_text(ADA.replace("Ada", "Eda"))
        assert import_source(memory.store, home / "papers").superseded == 1


@pytest.mark.parametrize("version", ["this one", "an earlier one"])
def test_a_new_folder_at_the_place_of_one_that_was_moved_archives_nothing(
    place: Path | str, home: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    notes, papers = home / "notes", home / "papers"
    with Memory.open(place) as memory:
        with monkeypatch.context() as former:
            if version == "an earlier one":  # which recorded the folder by its path
                former.setenv("HOME", "/nowhere")
            import_source(memory.store, notes)
        shutil.move(notes, papers)
        import_source(memory.store, papers)
        ids = set(memory.list_chunks())
        notes.symlink_to(papers)  # a link to the new place is the same folder
        assert import_source(memory.store, notes).archived == 0
        notes.unlink()
        notes.mkdir()
        (notes / "ada.txt").write_text(ADA)
        (notes / "new.md").write_text("The new quay has twelve bollards of iron.\n")
        for dry_run in (True, False):
            with pytest.raises(ConflictError, match=r"belongs to .*papers now, .* would archive"):
                import_source(memory.store, notes, dry_run=dry_run)
        assert set(memory.list_chunks()) == ids
        memory.sync_folder(notes, known_as="new notes")
        assert import_source(memory.store, notes).archived == 0
        assert import_source(memory.store, papers).archived == 0
        assert ids < set(memory.list_chunks())


@pytest.mark.parametrize("why", ["both are there", "another home", "other names", "few alike"])
def test_two_folders_with_equal_files_stay_two(
    place: Path | str, home: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    with Memory.open(place) as memory:
        import_source(memory.store, home / "notes")
        other = home / "papers"
        shutil.copytree(home / "notes", other)
        if why != "both are there":
            shutil.rmtree(home / "notes")
        if why == "another home":
            monkeypatch.setenv("HOME", str(home.parent))
        elif why == "other names":
            (other / "ada.txt").rename(other / "eda.txt")
            (other / "sub" / "crane.md").rename(other / "crane.md")
        elif why == "few alike":
            for number in range(3):
                (other / f"{number}.md").write_text(f"Bollard {number} of the new quay is made of iron.\n")
        made = import_source(memory.store, other)
        assert made.documents is not None and made.documents.moved_from is None
        assert made.created == (5 if why == "few alike" else 2)
        assert len(memory.list_chunks()) == 2 + made.created
