"""trajectories, costs, events."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.config import Config
from rlm_mem.models.base import Limits
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import RecallOperation

from .conftest import Run

Notes = dict[str, str]
QUESTION = "What does Ana drink in the morning?"


@pytest.fixture
def asked(run: Run, notes: Notes) -> str:
    """The trajectory id of a recall."""
    return str(run("recall", QUESTION, "--json").json["trajectory_id"])


def test_a_recall_is_listed(run: Run, asked: str) -> None:
    (info,) = run("trajectories", "list", "--json").json
    assert (info["id"], info["operation"], info["query"]) == (asked, "recall", QUESTION)
    shown = run("trajectories", "list").out
    assert asked in shown
    assert QUESTION in shown
    assert run("trajectories", "list", "--operation", "reason", "--json").json == []
    for command in ("list", "export"):
        refused = run("trajectories", command, "--operation", "remember")
        assert refused.code == 2
        assert "is not one of 'recall', 'reason', 'session'" in refused.err


@pytest.mark.parametrize("named", [True, False])
def test_a_trajectory_is_shown_as_a_tree_of_its_steps(run: Run, asked: str, named: bool) -> None:
    shown = run("trajectories", "show", *([asked] if named else [])).out
    assert "step 1" in shown
    assert "passages(" in shown
    assert "green tea" in shown
    assert "└──" in shown


def test_a_trajectory_as_json_is_whole(run: Run, asked: str) -> None:
    trajectory = run("trajectories", "show", asked, "--json").json
    assert trajectory["steps"][0]["programs"]
    assert trajectory["outcome"]["content"]


def test_a_replay_on_the_same_memory_agrees(run: Run, asked: str) -> None:
    assert run("trajectories", "replay", asked, "--json").json["same"] is True
    assert "the same steps and the same answer" in run("trajectories", "replay").out


def test_a_replay_on_a_changed_memory_shows_the_difference(run: Run, asked: str, notes: Notes) -> None:
    run("update", notes["tea"], "--content", "Ana drinks strong coffee in the morning.")
    ran = run("trajectories", "replay", asked)
    assert ran.code == 0
    assert "another output" in ran.out
    assert "then: " in ran.out
    assert "now: " in ran.out


@pytest.mark.parametrize(
    ("name", "code"), [("traj-20260101T000000-00000000", 1), ("nonsense", 1), ("non/sense", 2)]
)
def test_a_trajectory_that_is_not_there(run: Run, asked: str, name: str, code: int) -> None:
    assert run("trajectories", "show", name).code == code


def test_there_is_no_last_trajectory_before_the_first_recall(run: Run, notes: Notes) -> None:
    assert run("trajectories", "show").code == 1
    assert run("trajectories", "list").out.strip() == "no trajectories"


def test_costs_add_up_by_day_model_and_operation(run: Run, asked: str) -> None:
    (row,) = run("costs", "--json").json
    assert (row["operation"], row["runs"]) == ("recall", 1)
    assert set(run("costs", "--by", "model", "--json").json[0]) & {"day", "operation"} == set()
    assert "recall" in run("costs").out
    assert run("costs", "--by", "hour").code == 2


def test_events_say_what_was_done_to_a_chunk(run: Run, notes: Notes) -> None:
    run("update", notes["tea"], "--content", "Changed.")
    run("delete", notes["tea"])
    operations = [event["op"] for event in run("events", "--chunk", notes["tea"], "--json").json]
    assert operations == ["create", "update", "delete"]
    assert "delete" in run("events", "--operation", "delete").out


def test_the_latest_events_are_kept_by_a_limit(run: Run, notes: Notes) -> None:
    events = run("events", "--limit", "2", "--json").json
    assert [event["chunk_id"] for event in events] == [notes["tea"], notes["cake"]]


def test_recalls_are_written_to_a_new_file_only(run: Run, asked: str, tmp_path: Path) -> None:
    target = tmp_path / "runs.jsonl"
    assert run("trajectories", "export", "--to", str(target)).code == 0
    written = target.read_text(encoding="utf-8")
    assert written == run("trajectories", "export").out and len(written.splitlines()) == 1
    again = run("trajectories", "export", "--to", str(target))
    assert again.code == 2 and "exists already" in again.err
    assert target.read_text(encoding="utf-8") == written


def test_a_file_of_recalls_that_cannot_be_finished_is_removed(
    run: Run, asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: Any, **_options: Any) -> Iterator[dict[str, Any]]:
        yield {"question": "Who?"}
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = tmp_path / "runs.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(Memory, "export_trajectories", full)
        failed = run("trajectories", "export", "--to", str(target))
    assert failed.code == 1 and f"the disk is full: {target} was not written" in " ".join(failed.err.split())
    assert run("trajectories", "export", "--to", str(target)).code == 0


@pytest.mark.parametrize(
    ("limits", "ending"),
    [
        (Limits(iterations=1), "stopped by the budget of iterations"),
        (None, "stopped, because the model repeated a reply that failed"),
    ],
)
def test_a_list_says_why_a_run_was_stopped(
    run: Run, memory: Memory, limits: Limits | None, ending: str
) -> None:
    config = Config.load(None, recall={"scaffold": "never"})
    model = ScriptedLLM(default="```repl\n1 / 0\n```")
    result = RecallOperation(memory.store, model, config=config).recall("Who?", limits=limits)
    assert ending in str(result)
    assert f"recall · {ending} · " in run("trajectories", "list").out
