"""backup, restore from a backup, vacuum."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory

from .conftest import Run

Notes = dict[str, str]


def test_a_memory_is_backed_up_verified_and_restored(
    run: Run, notes: Notes, brain: Path, tmp_path: Path
) -> None:
    file = tmp_path / "b.tar.gz"
    made = run("backup", str(file), "--json").json
    assert (made["file"], made["chunks"]) == (str(file), len(notes))
    assert run("backup", "--verify", str(file)).code == 0
    elsewhere = tmp_path / "elsewhere"
    assert run("restore", str(file), "--brain", str(elsewhere)).code == 0
    with Memory.open(elsewhere) as memory:
        assert set(memory.list_chunks()) == set(notes.values())


@pytest.mark.local_only("look at files")
def test_a_backup_says_what_it_does_not_hold(run: Run, notes: Notes, brain: Path, tmp_path: Path) -> None:
    assert "contains everything\n" in run("backup", str(tmp_path / "whole.tar.gz")).out
    (brain / "personalities").mkdir()
    (brain / "personalities" / "mine.md").symlink_to(tmp_path / "mine.md")
    said = run("backup", str(tmp_path / "b.tar.gz"))
    assert "contains everything except for the files below" in said.out
    assert "left out: personalities/mine.md" in said.out
    assert "left out: personalities/mine.md" in run("backup", "--verify", str(tmp_path / "b.tar.gz")).out


def test_a_backup_of_one_namespace_says_so(run: Run, notes: Notes, brain: Path | str, tmp_path: Path) -> None:
    run("--namespace", "team/one", "remember", "The ferry is late.")
    made = run("--namespace", "team/one", "backup", str(tmp_path / "b.tar.gz"))
    if isinstance(brain, str):
        assert "contains everything in namespace team/one\n" in made.out
    else:
        assert made.code == 2 and "backed up whole" in made.err


@pytest.mark.local_only("look at files")
def test_a_backup_without_a_name_is_called_after_the_brain_and_the_time(run: Run, notes: Notes) -> None:
    assert run("backup").code == 0
    (file,) = Path().glob("brain-*.tar.gz")
    assert run("backup", "--verify", str(file), "--json").json["chunks"] == len(notes)


def test_a_backup_is_not_named_as_what_it_is_not(run: Run, notes: Notes, tmp_path: Path) -> None:
    refused = run("backup", str(tmp_path / "b.zip"))
    assert refused.code == 2 and "b.tar.gz" in refused.err
    assert not list(tmp_path.glob("b.*"))


@pytest.mark.local_only("look at files")
def test_restore_replaces_a_memory_only_on_request(
    run: Run, notes: Notes, brain: Path, tmp_path: Path
) -> None:
    file = tmp_path / "b.tar.gz"
    run("backup", str(file))
    later = run("remember", "Written later.", "--json").json["chunk_ids"][0]
    refused = run("restore", str(file))
    assert (refused.code, "--replace" in refused.err) == (2, True)
    assert run("show", later).code == 0
    restored = run("restore", str(file), "--replace", "--json").json
    assert restored["chunks"] == len(notes)
    assert run("show", later).code == 1
    assert run("show", later, "--brain", restored["kept"]).code == 0


@pytest.mark.parametrize("damage", ["cut off", "no backup", "missing"])
def test_an_incomplete_backup_is_refused_in_one_line(
    run: Run, notes: Notes, tmp_path: Path, damage: str
) -> None:
    file = tmp_path / "b.tar.gz"
    if damage == "cut off":
        run("backup", str(file))
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif damage == "no backup":
        file.write_text("something else")
    for command in (
        ("backup", "--verify", str(file)),
        ("restore", str(file), "--brain", str(tmp_path / "new")),
    ):
        ran = run(*command)
        assert ran.code == (1 if damage == "cut off" else 2)
        assert "Traceback" not in ran.err
        assert not (tmp_path / "new").exists()


def test_restore_still_brings_chunks_back(run: Run, notes: Notes) -> None:
    chunk_id = next(iter(notes.values()))
    run("delete", chunk_id)
    assert run("restore", chunk_id, "--json").json["restored"] == [chunk_id]


@pytest.mark.local_only("look at files")
def test_vacuum_prints_sizes_before_and_after(run: Run, notes: Notes) -> None:
    done = run("vacuum", "--json").json
    assert done["before"]["index"] > 0
    assert done["after"]["index"] > 0
    assert "before" in run("vacuum").out
