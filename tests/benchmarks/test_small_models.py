"""The small models' benchmark judges a recall by its outcome, and counts the replies of the model that was asked."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from rlm_mem.models.base import Usage
from rlm_mem.recall.loop import LoopStep
from rlm_mem.recall.recall import RecallResult, Source
from rlm_mem.recall.trajectory import unrecorded
from tests.house.sources import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from offline_corpora import Asked, is_useful
from small_models import add_row
from support import Report

PORT = Asked("On which port does the Kafka listen?", ("19092",))
NOTE = {"sources": [Source("chunk-1", "", "", "Kafka for local tests listens on 19092.")]}


def result(content: str | None = None, *steps: LoopStep, chunk_ids: Any = (), **given: Any) -> RecallResult:
    return RecallResult(
        content,
        list(chunk_ids),
        0.0,
        len(steps),
        replace(unrecorded(), steps=list(steps)),
        Usage(200),
        **given,
    )


def step(number: int, reply: str, *programs: str, error: str | None = None) -> LoopStep:
    return LoopStep(number, 0, "", 0, 0, reply, programs, error=error, model="m")


@pytest.mark.parametrize(
    ("made", "outcome", "useful"),
    [
        (result("on 19092"), "answered", True),
        (result("on 9092", **NOTE), "answered", False),
        (result(), "not held", False),
        (result(chunk_ids=["chunk-1"], **NOTE), "closest only", True),
        (result(chunk_ids=["chunk-1"], concluded=False, **NOTE), "stopped", True),
        (result(concluded=False), "stopped", False),
    ],
)
def test_a_recall_is_useful_if_its_answer_is_right_or_if_without_one_its_passages_hold_it(
    made: RecallResult, outcome: str, useful: bool
) -> None:
    assert (made.outcome, is_useful(PORT, made)) == (outcome, useful)


def test_a_row_counts_stopped_recalls_and_replies_that_ran_and_takes_the_place_of_the_earlier_row() -> None:
    report = Report("small_models", "")
    add_row("m", [(PORT, result("19092"))], report)
    steps = step(1, "a program", "FINAL(1)"), step(2, "prose"), step(3, "bad", "x", error="NameError")
    add_row("m", [(PORT, result(None, *steps, concluded=False))], report)
    [row] = report.rows
    assert (row["right"], row["stopped"], row["model_replies"], row["usable_replies"]) == (0, 1, 3, 1)
