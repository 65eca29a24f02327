"""`rlm-mem store copy` and `rlm-mem shards`: one memory in several places."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.memory import Memory
from rlm_mem.store.core.brain_files import Runs
from rlm_mem.store.local.brain_folder import LocalBrainFiles
from tests.postgres import Databases

Run = Callable[..., Any]


@pytest.mark.local_only("copy from a folder to a database")
def test_a_memory_goes_into_a_database_and_comes_back_equal(
    run: Run, memory: Memory, notes: dict[str, str], dsn: str, tmp_path: Path
) -> None:
    memory.update(notes["tea"], content="Ana drinks black tea now.")
    memory.delete(notes["cake"])
    memory.close()
    out = run("copy", dsn).out
    assert "copied 4 chunks, 1 former version" in out and "default: both are equal" in out
    assert "not-a-secret" not in out
    assert run("--brain", dsn, "search", "black tea").out.count("Ana drinks black tea now.") == 1
    back = tmp_path / "back"
    assert run("--brain", dsn, "copy", str(back)).code == 0
    with Memory.open(back) as again:
        assert [one.revision for one in again.history(notes["tea"])] == [1, 2]
        assert again.restore(notes["cake"]) is not None
    again_out = run("copy", str(back), "--compare").out
    assert notes["cake"] in again_out and run("copy", str(back), "--compare").code == 1


def test_copying_again_carries_what_is_missing_and_says_so(
    run: Run, memory: Memory, notes: dict[str, str], tmp_path: Path
) -> None:
    target = str(tmp_path / "copy")
    assert run("copy", target).code == 0
    new = memory.remember("Ben left the team.").chunk_ids
    result = run("copy", target, "--json").json[0]
    assert result["copied"]["chunks"] == len(new) and result["copied"]["already_there"] == len(notes)
    assert result["equal"] is True


def test_every_namespace_is_copied_on_demand(run: Run, brain: Path, tmp_path: Path) -> None:
    for name in ("a", "b/c"):
        with Memory.open(brain, namespace=name) as one:
            one.remember(f"Said in {name}.")
    with Memory.open(brain, namespace="tiers") as one:  # without any chunk
        one.store.files.write("memory/long_term/valve.md", b"# Valve\n\nIt opens at two metres.\n")
    target = tmp_path / "copy"
    copied = run("copy", str(target), "--all", "--json").json
    assert [one["namespace"] for one in copied] == ["a", "b/c", "tiers"]
    with Memory.open(target, namespace="tiers") as one:
        assert one.store.files.exists("memory/long_term/valve.md")
    with Memory.open(target, namespace="b/c") as copied:
        assert len(copied.list_chunks()) == 1
    assert run("copy", str(target), "--all", "--namespace", "a").code == 2


@pytest.mark.local_only("look at files")
def test_runs_of_all_namespaces_are_listed_once_in_either_folder(
    run: Run, brain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def runs_in(place: Path, namespace: str) -> list[Path]:
        with Memory.open(place, namespace=namespace) as one:
            return [place / "memory" / name for name in one.store.files.runs()[namespace]]

    for name in ("a", "b/c", "d"):
        with Memory.open(brain, namespace=name) as one:
            one.remember(f"Said in {name}.")
            one.recall(f"What was said in {name}?")
    target = tmp_path / "copy"
    listed: list[str] = []
    runs = LocalBrainFiles.runs

    def noted(files: LocalBrainFiles) -> Runs:
        listed.append(files.namespace)
        return runs(files)

    with monkeypatch.context() as patched:
        patched.setattr(LocalBrainFiles, "runs", noted)
        copied = run("copy", str(target), "--all", "--json").json
    assert [(one["namespace"], one["equal"]) for one in copied] == [("a", True), ("b/c", True), ("d", True)]
    assert len(listed) == 3  # to find the namespaces, then in each folder, however many namespaces there are
    runs_in(target, "b/c")[0].unlink()
    runs_in(brain, "a")[0].unlink()
    compared = run("copy", str(target), "--all", "--compare", "--json").json
    assert [bool(one["differences"]) for one in compared] == [True, True, False]
    again = run("copy", str(target), "--all", "--mirror", "--json").json
    assert [(one["equal"], one["copied"]["removed"], one["copied"]["files"]) for one in again] == [
        (True, 1, 0), (True, 0, 1), (True, 0, 0)
    ]  # fmt: skip


def test_a_copy_onto_itself_is_refused_in_one_sentence(run: Run, brain: Path, notes: dict[str, str]) -> None:
    refused = run("copy", str(brain))
    assert refused.code == 2 and "the same" in refused.err and "Traceback" not in refused.err


@pytest.mark.local_only("a move between databases of its own")
def test_a_namespace_moves_between_databases(
    run: Run, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_mem.store.postgres.shards._GRACE_SECONDS", 0)
    with databases.lend() as directory, databases.lend() as other:
        run("--brain", directory, "--namespace", "team", "remember", "We meet on Mondays.")
        moved = run("--brain", directory, "shards", "move", "team", "--to", other)
        assert moved.code == 0 and "1 chunk" in moved.out and "not-a-secret" not in moved.out
        rows = run("--brain", directory, "shards", "list", "--json").json
        assert [(one["namespace"], one["chunks"]) for one in rows] == [("team", 1)]
        assert "Mondays" in run("--brain", directory, "--namespace", "team", "search", "meet").out
        assert "removed" in run("shards", "purge", "team", "--from", directory).out
        assert "Mondays" in run("--brain", directory, "--namespace", "team", "search", "meet").out
        run("--brain", directory, "shards", "assign", "new", "--to", other)
        run("--brain", directory, "--namespace", "new", "remember", "Born elsewhere.")
        listed = run("--brain", directory, "shards", "list").out
        assert "new" in listed and "team" in listed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("shards", "list"), "is a folder"),
        (("shards", "move", "a", "--to", "x"), "is a folder"),
        (("shards", "purge", "a", "--from", "x"), "is not the DSN of a PostgreSQL database"),
    ],
)
@pytest.mark.local_only("copy from a folder to a database")
def test_contradictory_arguments_are_refused(run: Run, arguments: tuple[str, ...], says: str) -> None:
    refused = run(*arguments)
    assert refused.code == 2 and says in refused.err


@pytest.mark.local_only("about an extra that is missing")
def test_several_databases_need_an_extra_which_the_error_names(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (loaded := sys.modules.get("rlm_mem.store.postgres")) is not None:
        monkeypatch.setattr("rlm_mem.store.postgres", loaded)  # what this test imports is gone after it
    for name in [name for name in sys.modules if name.startswith(("rlm_mem.store.postgres", "psycopg"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    ran = run("shards", "list")
    assert ran.code == 1
    assert "needs the extra `postgres`" in ran.err and "pip install 'rlm-mem[postgres]'" in ran.err
