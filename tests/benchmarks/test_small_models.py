"""The small models' benchmark: what a row counts."""

from __future__ import annotations

import sys
from dataclasses import replace

from tests.house.sources import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from offline_corpora import Asked
from rlm_mem import RecallResult
from rlm_mem.recall.loop import LoopStep
from rlm_mem.recall.trajectory import unrecorded
from small_models import add_row
from support import Report

PORT = Asked("On which port does the Kafka listen?", ("19092",))


def replied(reply: str, *programs: str, error: str | None = None) -> LoopStep:
    return LoopStep(1, 0, "", 0, 0, reply, programs, error=error, model="m")


def test_a_row_counts_stopped_recalls_and_replies_that_ran_and_takes_the_place_of_the_earlier_row() -> None:
    steps = [
        replied("a program", "FINAL(1)"),
        replied("prose"),
        replied("bad", "x", error="NameError"),
        replace(replied("another program", "FINAL(1)"), model="offline"),
    ]
    stopped = RecallResult(None, [], 0.0, 4, replace(unrecorded(), steps=steps), concluded=False)
    report = Report("small_models", "")
    add_row("m", "auto", [(PORT, RecallResult("19092", [], 0.9, 1))], report)
    add_row("m", "auto", [(PORT, stopped)], report)
    [row] = report.rows
    assert (row["right"], row["stopped"], row["model_replies"], row["usable_replies"]) == (0, 1, 3, 1)


def test_suggestions_are_counted_apart_from_answers() -> None:
    report = Report("small_models", "")
    results = [RecallResult(None, [], 0.5, 1, suggestion=text) for text in ("port 19092", "port 9092")]
    add_row("m", "auto", [(PORT, one) for one in results], report)
    [row] = report.rows
    assert (row["right"], row["right_as_suggestion"], row["suggested"]) == (0, 1, 2)
