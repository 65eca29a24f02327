"""The commands query, consolidate, prune, review, trace and state, as a person or a cron job calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run

STEPS = [{"tool": "WebFetch", "call": "https://example.org"}, {"tool": "Summarize", "call": "the page"}]


@pytest.fixture
def log(run: Run, tmp_path: Path) -> str:
    """A log that may be promoted; its key."""
    steps = tmp_path / "steps.json"
    steps.write_text(json.dumps(STEPS), encoding="utf-8")
    ran = run(
        "trace", "record", "Research web content", "--steps", str(steps), "--success", "--indicator", "five lines",
        "--project", "alpha", "--task", "research",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    return ran.out.strip()


def test_a_use_of_a_plain_chunk_is_recorded_by_a_short_id(run: Run) -> None:
    (whole,) = run("remember", "The pump needs a new seal.", "--json").json["chunk_ids"]
    assert run("trace", "use", whole.rpartition("-")[2], "--success").out.startswith("confidence ")
    assert "there is no chunk nosuch" in run("tier", "show", "nosuch").err


def trace_key(run: Run) -> str:
    return str(run("trace", "list", "--tier", "mid", "--json").json[0]["file"])


def test_a_log_is_consolidated_found_used_and_undone(run: Run, log: str) -> None:
    dry = run("consolidate", "--dry-run", "--json").json
    assert [step["to"] for step in dry["promoted"]] == ["mid"]
    assert "1 promoted" in run("consolidate").out
    assert "0 promoted" in run("consolidate").out
    key = trace_key(run)
    found = run("query", "research the web", "--explain").out
    assert key in found
    assert "tier_weight 0.600" in found
    used = run("trace", "use", key, "--failure", "--project", "beta", "--error", "blocked", "--step", "1")
    assert "1 of 2 uses went well" in used.out
    assert "blocked" in run("query", "research the web", "--hints").out
    assert "access" in run("trace", "show", key).out
    transitions: list[Any] = [step for step in run("trace", "log", "--json").json if step["op"] == "promote"]
    refused = run("trace", "undo", transitions[0]["id"])
    assert (refused.code, "changed since" in refused.err) == (1, True)


def test_an_undo_brings_the_log_back(run: Run, log: str) -> None:
    run("consolidate")
    (transition,) = [step for step in run("trace", "log", "--json").json if step["op"] == "promote"]
    assert run("trace", "undo", transition["id"]).code == 0
    assert log in run("trace", "list", "--tier", "high", "--json").out


def test_held_memories_have_reasons(run: Run) -> None:
    run("trace", "record", "Bake bread")
    assert "no outcome is recorded" in run("consolidate", "--held").out


@pytest.mark.local_only("look at files")
def test_prune_only_reports_by_default(run: Run, log: str, brain: Path) -> None:
    path = brain / log
    path.write_text(path.read_text().replace('created_at: "20', 'created_at: "19'))
    report = run("prune")
    assert "archive" in report.out
    assert "give --apply" in report.out
    assert path.exists()
    assert "done" in run("prune", "--apply").out
    assert not path.exists()
    assert f"archive/{log}" in run("prune", "--archived").out
    assert run("prune", "--restore", f"archive/{log}").code == 0
    assert path.exists()
    run("prune", "--apply")
    assert "would be deleted" in run("prune", "--delete-archived", "0").out
    assert "0 memories would be deleted" in run("prune", "--delete-archived", "9999999999").out
    assert "1 memory deleted" in run("prune", "--delete-archived", "0", "--apply").out
    assert "0 memories" in run("prune", "--archived").out


@pytest.mark.local_only("look at files")
def test_the_review_queue_from_the_command_line(run: Run, log: str, brain: Path) -> None:
    run("consolidate")
    path = brain / trace_key(run)
    text = path.read_text()
    for former, later in (
        ("usage_count: 1\n", "usage_count: 100\n"), ("success_count: 1\n", "success_count: 100\n"),
        ("confidence_score: 0.8\n", "confidence_score: 0.995\n"), ("validation_count: 0\n", "validation_count: 9\n"),
        ('contexts: {"alpha": [1, 1]}', 'contexts: {"alpha": [50, 50], "beta": [50, 50]}'),
    ):  # fmt: skip
        assert former in text
        text = text.replace(former, later)
    path.write_text(text)
    assert "1 promoted, 0 merged, 1 queued" in run("consolidate").out
    (case,) = run("review", "list", "--json").json
    shown = run("review", "show", case["id"]).out
    assert "beta: 50 of 50 uses went well" in shown
    unnamed = run("review", "approve", case["id"], "--reason", "yes", stdin="")
    assert unnamed.code == 2 and "--reviewer NAME" in unnamed.err, "an agent in a shell decides for nobody"
    nameless = run("review", "approve", case["id"], "--reviewer", "agent", "--reason", "yes")
    assert (nameless.code, "named reviewer" in nameless.err) == (2, True)
    unexplained = run("review", "approve", case["id"], "--reviewer", "Ana")
    assert (unexplained.code, "needs a reason" in unexplained.err) == (2, True)
    deferred = run("review", "defer", case["id"], "--reviewer", "Ana", "--reason", "later", "--days", "3")
    assert (deferred.code, "deferred for 3 days" in deferred.out) == (0, True)
    assert "0 cases" in run("review", "list").out
    approved = run("review", "approve", case["id"], "--reviewer", "Ana", "--reason", "proved")
    assert "ultra-low" in approved.out
    assert "core" in run("query", "something else entirely").out
    assert run("review", "reject", case["id"], "--reviewer", "Ana", "--reason", "no").code == 1


def test_a_proposal_is_shown_with_its_confidence_and_its_reason_once(run: Run) -> None:
    for code in (1000, 3000):
        run("remember", f"The code of the gate is {code}.")
    (case,) = run("review", "list", "--json").json
    shown = run("review", "show", case["id"]).out
    assert "confidence: 0." in shown
    assert shown.count(case["figures"]["reason"]) == 1


def test_working_state_is_set_shown_and_cleared(run: Run) -> None:
    assert run("state", "set", "plan", "1. fetch").code == 0
    run("state", "step", "WebFetch", "--call", "x", "--result", "200")
    shown = run("state", "show").out
    assert "1. fetch" in shown
    assert "`WebFetch` x → 200" in shown
    assert run("state", "set", "mood", "good").code == 2
    assert "cleared 3 files" in run("state", "clear").out
    assert "no state" in run("state", "show").out


@pytest.mark.local_only("look at files")
def test_health_and_check(run: Run, log: str, brain: Path) -> None:
    run("consolidate")
    assert run("trace", "health", "--json").json["tiers"] == {"high": 0, "mid": 1, "low": 0, "ultra-low": 0}
    assert "consolidation rate" in run("trace", "health").out
    assert run("trace", "check").code == 0
    (brain / trace_key(run)).write_text("no frontmatter")
    checked = run("trace", "check")
    assert (checked.code, "front matter" in checked.out) == (1, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("query", "x", "--weight", "mid"), ("query", "x", "--weight", "middle=1"), ("query", "x", "--kind", "odd"),
        ("query", "x", "--kind", "stable", "--weight", "low=1"), ("query", "x", "--hints", "--task", "research"),
        ("query", " "), ("trace", "list", "--tier", "middle"), ("review", "list", "--status", "odd"),
        ("trace", "record", " "), ("trace", "record", "x", "--steps", "nothing.json"),
        ("trace", "record", "x", "--task", "gardening"), ("trace", "record", "x", "--steps", "/dev/zero"),
        ("erase", "--verify", "nothing.json"), ("erase", "--verify", "/dev/zero"),
    ],
)  # fmt: skip
def test_bad_input_ends_with_2_and_one_line(
    run: Run, log: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_mem.cli.erase._MAX_REPORT", 1_000_000)
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.err.startswith("rlm-mem: ")


def test_a_memory_that_is_not_there_ends_with_1(run: Run, log: str) -> None:
    for arguments in (("trace", "show", "system/memory_log.md#none"), ("trace", "undo", "none")):
        assert run(*arguments).code == 1


def test_a_query_asks_for_one_kind_of_memories(run: Run, log: str) -> None:
    run("consolidate")
    key = trace_key(run)
    run("trace", "record", "Research the web again")

    def found(kind: str) -> list[str]:
        shown = run("query", "research web", "--kind", kind).out
        files = [one["file"] for one in run("query", "research web", "--kind", kind, "--json").json["hits"]]
        assert all(file in shown for file in files) and ("no memory matches" in shown) == (not files)
        return files

    assert len(found("recent")) == 1 and key not in found("recent")
    assert found("proven") == found("stable") == []
    assert "mid" in run("query", "research web", "--kind", "proven", "--min-confidence", "0").out
    for project in ("beta", "gamma", "delta", "epsilon"):
        run("trace", "use", key, "--success", "--project", project)
    assert found("proven") == [key]


def test_without_risks_or_successes_there_are_no_hints(run: Run, log: str) -> None:
    assert "no hints" in run("query", "bake bread", "--hints").out
    assert run("query", "bake bread", "--hints", "--json").json == []


def test_the_log_of_tiers_names_what_can_be_undone(run: Run, log: str) -> None:
    run("consolidate")
    promoted = next(step for step in run("tier", "log", "--json").json if step["op"] == "promote")
    shown = run("tier", "log").out
    assert "promote high → mid" in shown and f"{promoted['id']}: " in shown
