"""recall and reason, with the offline model."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory

from .conftest import Run

Notes = dict[str, str]


def test_recall_prints_the_answer_and_the_chunks_it_rests_on(run: Run, notes: Notes) -> None:
    ran = run("recall", "What does Ana drink in the morning?")
    assert ran.code == 0
    assert "green tea" in ran.out
    assert notes["tea"] in ran.out
    assert "confidence" in ran.out


def test_recall_explain_shows_the_program_and_what_it_did(run: Run, notes: Notes) -> None:
    out = run("recall", "--explain", "What does Ana drink in the morning?").out
    assert "step 1" in out
    assert "passages(" in out
    assert "FINAL(" in out


def test_recall_json_holds_the_answer_and_where_it_comes_from(run: Run, notes: Notes) -> None:
    ran = run("recall", "What does Ana drink in the morning?", "--explain", "--json")
    result = ran.json
    assert "green tea" in result["content"]
    assert result["outcome"] == "answered"
    assert notes["tea"] in result["chunk_ids"]
    assert 0 <= result["confidence"] <= 1
    assert result["iterations_used"] >= 1
    assert result["cost"] == 0
    assert len(ran.out) < 1_500


def test_recall_prints_no_more_excerpts_than_was_asked_for(run: Run, notes: Notes) -> None:
    asked = ("recall", "Which sailing boat did Ana buy?")  # not held: only memories that are close
    whole, bounded = run(*asked, "--json").json, run(*asked, "--max-tokens", "6").out
    best, *others = [one["excerpt"] for one in whole["sources"]]
    assert best.split()[0] in bounded and all(one in bounded for one in whole["chunk_ids"])
    assert others and all(one not in bounded for one in others)


def test_a_part_of_a_document_is_shown_with_its_file_and_headings(run: Run, tmp_path: Path) -> None:
    pause = "Default: 3. The seconds between two attempts of a job that failed."
    (tmp_path / "settings.md").write_text(
        f"# Settings\n\n{'Jobs wait here. ' * 30}\n\n## retry_pause\n\n{pause}\n"
    )
    run("remember", "--folder", str(tmp_path))
    shown = run("recall", "which pause between attempts of a failed job?").out
    assert "settings.md › Settings › retry_pause" in shown
    assert pause.split(". ")[0] in shown and shown.count("Jobs wait here") < 20


def test_lists_and_tables_of_a_source_are_shown_as_such(run: Run) -> None:
    rows = "| pin | use |\n|-----|-----|\n| 4 | probe |\n| 23 | relay |\n"
    run("remember", f"# Pins of the glasshouse\n\n{rows}")
    shown = run("recall", "Which valves does the glasshouse have on its pins?").out
    assert "\n      | pin | use |\n      | 4 | probe |\n      | 23 | relay |\n" in shown


@pytest.mark.parametrize("command", ["recall", "reason"])
def test_json_holds_the_steps_only_on_request(run: Run, notes: Notes, command: str) -> None:
    asked = (command, "What does Ana drink in the morning?", "--json")
    short, whole = run(*asked).json, run(*asked, "--trajectory").json
    assert {"trajectory", "evidence"}.isdisjoint(short)
    assert short["trajectory_id"].startswith("traj-")
    assert whole["trajectory"]["steps"][0]["programs"]
    assert short.keys() < whole.keys()


@pytest.mark.parametrize("command", ["recall", "reason"])
def test_a_question_that_the_memory_cannot_answer_is_no_failure(run: Run, notes: Notes, command: str) -> None:
    ran = run(command, "Which zeppelin crossed Nebraska?")
    assert ran.code == 0
    assert "has no answer to the question" in ran.out
    listed = run("trajectories", "list").out
    assert "not held" in listed
    assert "answered" not in listed


def test_a_limit_ends_a_recall(run: Run, notes: Notes) -> None:
    result = run("recall", "What does Ana drink?", "--model-calls", "1", "--iterations", "1", "--json").json
    assert result["iterations_used"] <= 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["recall"],
        ["recall", ""],
        ["recall", "x", "--iterations", "0"],
        ["recall", "x", "--llm", "no-such-model:at-all"],
    ],
)
def test_a_question_that_cannot_be_asked_is_one_line(run: Run, notes: Notes, arguments: list[str]) -> None:
    ran = run(*arguments)
    assert ran.code in (1, 2)
    assert ran.out == ""
    assert ran.err.startswith("rlm-mem: ")
    assert "Traceback" not in ran.err


def test_reason_draws_the_path_as_a_tree(run: Run, notes: Notes) -> None:
    ran = run("reason", "Why PostgreSQL for the ledger?")
    assert ran.code == 0
    assert "├──" in ran.out or "└──" in ran.out
    assert notes["choice"] in ran.out


def test_reason_json_holds_conclusion_and_path(run: Run, notes: Notes) -> None:
    result = run("reason", "Why PostgreSQL for the ledger?", "--json").json
    assert result["conclusion"]
    assert {"chunk_id", "operation", "reasoning"} <= set(result["path"][0])


def test_a_recall_runs_in_the_engine_that_is_named(run: Run, notes: Notes) -> None:
    result = run("recall", "What does Ana drink in the morning?", "--engine", "monty", "--json").json
    assert run("trajectories", "show", result["trajectory_id"], "--json").json["engine"] == "monty"
    refused = run("recall", "What does Ana drink?", "--engine", "steam")
    assert refused.code == 2
    assert "steam" in refused.err


def test_an_unsure_answer_is_a_suggestion_with_the_closest_memories(run: Run, memory: Memory) -> None:
    memory.remember("The seal of the pump was replaced on 3 May 2026.")
    memory.remember("The pump hums since the seal of the lid broke.")
    asked = ("recall", "When was the rubber seal of the pump replaced?")
    shown = run(*asked).out
    assert shown.startswith("Not certain, but possibly: 3 May 2026\n")
    assert "hums" in shown
    found = run(*asked, "--json").json
    assert (found["outcome"], found["content"], found["suggestion"]) == ("closest only", None, "3 May 2026")
    assert 0 < found["confidence"] <= 0.6
    assert ["hums" in one["excerpt"] for one in found["sources"]] == [False, True]
    listed = run("trajectories", "list").out
    assert (
        "Not certain, but possibly: 3 May 2026" in listed and "3 May 2026" in run("trajectories", "show").out
    )
