"""The small models' benchmark: an earlier checkout is asked in its own process, and judged as this one is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house.sources import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from offline_corpora import Asked, is_right, is_useful
from small_models import add_row, ask, ask_earlier, result_of, sample
from support import Report

PORT = Asked("On which port does the Kafka listen?", ("19092",))
NOTE = ["chunk-1", "Kafka for local tests listens on 19092."]


def said(**given: Any) -> dict[str, Any]:
    """What an earlier checkout says about a recall that its budget ended without anything read."""
    plain = {"content": None, "chunk_ids": [], "confidence": 0.0, "concluded": False, "error": ""}
    return {**plain, "seconds": 1.5, "input_tokens": 200, "steps": [], "passages": [], **given}


@pytest.mark.parametrize(
    ("given", "outcome", "useful"),
    [
        ({"content": "on 19092", "concluded": True}, "answered", True),
        ({"content": "on 9092", "concluded": True, "passages": [NOTE]}, "answered", False),
        ({"concluded": True}, "not held", False),
        ({"concluded": True, "chunk_ids": ["chunk-1"], "passages": [NOTE]}, "closest only", True),
        ({"chunk_ids": ["chunk-1"], "passages": [NOTE]}, "stopped", True),
        ({"error": "ModelTimeout: too slow"}, "stopped", False),
    ],
)
def test_what_an_earlier_checkout_said_has_the_outcomes_of_this_one(
    given: dict[str, Any], outcome: str, useful: bool
) -> None:
    result = result_of(said(**given))
    assert (result.outcome, is_useful(PORT, result)) == (outcome, useful)


def test_a_row_counts_stopped_recalls_and_replies_that_ran_and_takes_the_place_of_the_earlier_row() -> None:
    steps = [
        ["m", "a program", ["FINAL(1)"], None],
        ["m", "prose", [], None],
        ["m", "bad", ["x"], "NameError"],
    ]
    report = Report("small_models", "")
    add_row("earlier: m", [(PORT, result_of(said(content="19092", concluded=True)))], report)
    add_row("earlier: m", [(PORT, result_of(said(steps=steps)))], report)
    [row] = report.rows
    assert (row["right"], row["stopped"], row["model_replies"], row["usable_replies"]) == (0, 1, 3, 1)


def test_the_offline_model_of_a_checkout_answers_in_its_own_process_as_it_does_here(tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    asked = sample(1)
    here = ask("offline", asked, tmp_path / "here", 60, "auto", shown=False)
    there = ask_earlier(tmp_path, "offline", asked, tmp_path / "there", 60, shown=False)
    for (one, ours), (other, theirs) in zip(here, there, strict=True):
        assert one == other
        assert (ours.outcome, ours.content) == (theirs.outcome, theirs.content)
        assert (is_right(one, ours), is_useful(one, ours)) == (is_right(one, theirs), is_useful(one, theirs))
        assert [step.reply for step in ours.trajectory.steps] == [s.reply for s in theirs.trajectory.steps]
        assert len(theirs.trajectory.steps) > 0
