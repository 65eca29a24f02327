"""init, check, repair, sync, checkpoint, index rebuild, config show."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from functools import partial
from pathlib import Path

import pytest

from rlm_mem import Memory

from .conftest import Run

Notes = dict[str, str]


def chunk_file(brain: Path, chunk_id: str) -> Path:
    return next((brain / "memory" / "chunks").rglob(f"{chunk_id}.json"))


def test_init_makes_a_memory_in_the_working_folder(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLM_MEM_BRAIN")
    assert run("init").code == 0
    assert (Path("brain") / "memory").is_dir()
    ran = run("stats", "--namespace", "n" * 201)
    assert (ran.code, "201 characters" in ran.err, "use letters" in ran.err) == (2, True, False)
    assert run("stats", "--json").json["chunk_count"] == 0


def test_a_system_error_is_reported_in_one_line(run: Run) -> None:
    ran = run("--brain", "n" * 300, "list")
    assert (ran.code, ran.err) == (1, f"rlm-mem: {'n' * 300}/config.toml: File name too long\n")


@pytest.mark.local_only("look at files")
def test_init_within_a_brain_completes_that_brain(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLM_MEM_BRAIN", raising=False)
    with Memory.open("made") as memory:
        memory.remember("Something.")
    monkeypatch.chdir("made")
    Path("memory/.gitignore").unlink()  # as an earlier version left it
    assert not run("store", "init", "--json").json["created"]
    assert Path("memory/.gitignore").exists() and not Path("brain").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="asks git")
@pytest.mark.local_only("look at files")
def test_git_leaves_out_the_index_and_the_files_of_one_machine_and_merges_the_logs(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "made") as memory:
        memory.remember("Something.")
        memory.continuum.workspace.start("What this machine does now.")
        memory.persona(keep=True).set("humor", 20)
    (tmp_path / "made" / "tokens.json").write_text("[]")
    git = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True, text=True)
    git(["git", "init", "-q"])
    git(["git", "add", "."])
    kept = git(["git", "ls-files"]).stdout.split()
    (log,) = (name for name in kept if name.startswith("made/memory/log/") and name.endswith(".jsonl"))
    derived, own = ("made/memory/index/",), ("made/tokens.json", "made/persona/", "made/workspace/")
    assert not [name for name in kept if name.startswith(derived + own)]
    assert all((tmp_path / name).exists() for name in own)
    made = git(["git", "check-attr", "text", *kept]).stdout.splitlines()
    assert {line.rpartition(": ")[2] for line in made} == {"unset"}  # no line end is changed
    assert git(["git", "check-attr", "merge", log]).stdout.strip().endswith("merge: union")


@pytest.mark.local_only("look at files")
def test_init_keeps_existing_files(run: Run, notes: Notes, brain: Path) -> None:
    (brain / "config.toml").write_text("[recall]\nmax_iterations = 3\n", encoding="utf-8")
    ran = run("init", "--json")
    assert ran.json == {"brain": str(brain), "created": False}
    assert run("stats", "--json").json["chunk_count"] == 4
    assert "max_iterations = 3" in (brain / "config.toml").read_text(encoding="utf-8")


@pytest.mark.local_only("look at files")
def test_the_settings_file_of_init_names_every_setting_and_changes_none(run: Run, brain: Path) -> None:
    before = run("config", "show", "--json").json["settings"]
    run("init")
    content = (brain / "config.toml").read_text(encoding="utf-8")
    assert tomllib.loads(content) == {name: {} for name in tomllib.loads(content)}
    assert run("config", "show", "--json").json["settings"] == before
    active = "\n".join(line.removeprefix("# ") if " = " in line else line for line in content.splitlines())
    (brain / "config.toml").write_text(active, encoding="utf-8")
    assert run("config", "show", "--json").json["settings"] == before


@pytest.mark.local_only("look at files")
def test_config_show_says_where_a_setting_comes_from(
    run: Run, brain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("init")
    (brain / "config.toml").write_text("[recall]\nmax_iterations = 3\nmax_depth = 2\n", encoding="utf-8")
    monkeypatch.setenv("RLM_MEM_RECALL_MAX_DEPTH", "1")
    rows = {
        line.split()[0]: line.split()[1:] for line in run("config", "show", "recall").out.splitlines()[2:]
    }
    assert rows["recall.max_iterations"] == ["3", "config.toml"]
    assert rows["recall.max_depth"] == ["1", "environment"]
    assert rows["recall.max_seconds"] == ["60.0", "default"]


@pytest.mark.local_only("look at files")
def test_a_wrong_setting_is_bad_input(run: Run, brain: Path) -> None:
    run("init")
    (brain / "config.toml").write_text("[recall]\nmax_iteration = 3\n", encoding="utf-8")
    ran = run("stats")
    assert ran.code == 2
    assert "max_iteration" in ran.err
    assert run("config", "show", "nosuch").code == 2


@pytest.mark.local_only("look at files")
def test_reading_does_not_create_a_memory(run: Run, brain: Path) -> None:
    for command in (["list"], ["search", "x"], ["stats"], ["check"], ["recall", "x"]):
        ran = run(*command)
        assert ran.code == 1
        assert "rlm-mem store init" in ran.err
    assert not brain.exists()


def test_a_sound_memory_has_no_findings(run: Run, notes: Notes) -> None:
    ran = run("check")
    assert (ran.code, ran.out.strip()) == (0, "no findings")
    assert run("check", "--json").json == {"ok": True, "findings": []}


@pytest.mark.local_only("look at files")
def test_a_damaged_file_is_found_and_never_deleted(run: Run, notes: Notes, brain: Path) -> None:
    path = chunk_file(brain, notes["tea"])
    path.write_text("{", encoding="utf-8")
    ran = run("check", "--json")
    assert ran.code == 1
    assert notes["tea"] in json.dumps(ran.json)
    run("repair", "--apply")
    assert path.exists() or list((brain / "memory" / "archive").rglob(f"*{notes['tea']}*"))


@pytest.mark.local_only("look at files")
def test_repair_is_a_dry_run_by_default(run: Run, notes: Notes, brain: Path, memory: Memory) -> None:
    memory.link(notes["tea"], notes["cake"], "supports")
    memory.close()
    chunk_file(brain, notes["cake"]).unlink()
    assert run("check").code == 1
    said = run("repair")
    assert "would be done" in said.out
    assert run("check").code == 1
    assert run("repair", "--apply").code == 0
    assert run("check").code == 0


@pytest.mark.local_only("look at files")
def test_sync_takes_in_what_was_edited_by_hand(run: Run, notes: Notes, brain: Path) -> None:
    path = chunk_file(brain, notes["tea"])
    path.write_text(path.read_text(encoding="utf-8").replace("green tea", "oolong"), encoding="utf-8")
    assert run("sync", "--full", "--json").json["unreadable"] == []
    assert run("search", "oolong", "--json").json[0]["chunk_id"] == notes["tea"]
    assert "the index matches the files" in run("sync", "--full").out


def test_sync_says_of_a_database_that_there_is_nothing_to_index(run: Run, brain: Path | str) -> None:
    run("remember", "Ana drinks tea.")
    said = "a database has no files to index" if isinstance(brain, str) else "the index matches the files"
    assert run("sync").out == f"{said}\n"


@pytest.mark.local_only("look at files")
def test_the_index_can_be_deleted_and_rebuilt(run: Run, notes: Notes, brain: Path, memory: Memory) -> None:
    memory.close()
    before = {chunk["id"] for chunk in run("list", "--json").json}
    shutil.rmtree(brain / "memory" / "index")
    assert run("index", "rebuild", "--json").json["chunks"] == 4
    assert {chunk["id"] for chunk in run("list", "--json").json} == before == set(notes.values())


def test_checkpoint_says_what_it_wrote(run: Run, notes: Notes) -> None:
    assert re.fullmatch(
        r"wrote access counts of 0 chunks(?: and \S+\.json(?:,\s\S+\.json)+)?\n", run("checkpoint").out
    )


@pytest.mark.local_only("look at files")
def test_checkpoint_writes_access_counts_into_the_files(run: Run, notes: Notes, brain: Path) -> None:
    run("show", notes["tea"])
    assert run("checkpoint", "--json").json["access_counts_folded"] == 1
    assert (
        json.loads(chunk_file(brain, notes["tea"]).read_text(encoding="utf-8"))["metadata"]["access_count"]
        == 1
    )


@pytest.mark.local_only("look at files")
def test_a_memory_that_cannot_be_written_can_be_looked_at(
    run: Run, notes: Notes, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.close()
    monkeypatch.setattr("os.access", lambda *_: False)
    assert len(run("list", "--json").json) == 4
    assert notes["tea"] in run("recall", "What does Ana drink in the morning?").out
    refused = run("delete", notes["tea"])
    assert refused.code == 1
    assert "read-only" in refused.err
    refused = run("sync")  # the index cannot be brought up to date, so nothing may be said of it
    assert (refused.code, "nothing was indexed" in refused.err) == (1, True)


@pytest.mark.local_only("look at files")
def test_a_memory_that_cannot_be_written_is_searched_as_its_files_are_now(
    run: Run, notes: Notes, memory: Memory, brain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.close()
    file = chunk_file(brain, notes["tea"])
    file.write_text(file.read_text(encoding="utf-8").replace("tea", "cocoa"), encoding="utf-8")
    monkeypatch.setattr("os.access", lambda *_: False)
    assert notes["tea"] in run("search", "cocoa").out


@pytest.mark.local_only("damage a file")
def test_an_unreadable_file_is_named_once(run: Run, tmp_path: Path) -> None:
    made = run("remember", "The gate is green.", "--json").json["chunk_ids"][0]
    [path] = [one for one in tmp_path.rglob(f"{made}.json") if one.parent.parent.name == "chunks"]
    path.write_text("{broken")
    for command in ("check", "repair"):
        ran = run("store", command)
        assert (ran.out + ran.err).count(f"{path.name}: not valid JSON") == 1
