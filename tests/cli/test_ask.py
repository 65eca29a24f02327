"""recall and reason, on the built-in offline writer."""

from __future__ import annotations

import pytest

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
    assert "search(" in out
    assert "FINAL(" in out


def test_recall_json_holds_the_whole_result(run: Run, notes: Notes) -> None:
    result = run("recall", "What does Ana drink in the morning?", "--explain", "--json").json
    assert "green tea" in result["content"]
    assert notes["tea"] in result["chunk_ids"]
    assert 0 <= result["confidence"] <= 1
    assert result["iterations_used"] >= 1
    assert result["trajectory"]["steps"][0]["programs"]


def test_a_question_that_the_memory_cannot_answer_is_no_failure(run: Run, notes: Notes) -> None:
    ran = run("recall", "Which zeppelin crossed Nebraska?")
    assert ran.code == 0
    assert "does not hold an answer" in ran.out


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
    assert result["trajectory"]["engine"] == "monty"
    refused = run("recall", "What does Ana drink?", "--engine", "steam")
    assert refused.code == 2
    assert "steam" in refused.err
