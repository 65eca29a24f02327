"""The steps of a run in time: nested as they ran, and bars within their bounds."""

from __future__ import annotations

from typing import Any

from rlm_mem.dashboard.charts import span_bars
from rlm_mem.dashboard.spans import did, spans
from rlm_mem.recall.loop import LoopStep
from rlm_mem.recall.trajectory import SubCall


def step(depth: int, model: float, program: float, **more: Any) -> LoopStep:
    return LoopStep(1, depth, "why", 1, 1, "", model_seconds=model, program_seconds=program, **more)


def call(seconds: float) -> SubCall:
    return SubCall(1, "k", "p", 1, "r", seconds=seconds)


def test_steps_of_sub_questions_are_within_the_step_that_asked_them() -> None:
    recorded = [
        (step(0, 1, 1), []),
        (step(2, 0.1, 0.1), []),
        (step(1, 0.5, 0.5), []),
        (step(1, 0.5, 0.5), []),
        (step(0, 1, 4), [call(1), call(1)]),
        (step(0, 1, 0), []),
    ]
    found = spans(recorded)
    assert [one.label for one in found] == ["1", "2", "2.1", "2.1.1", "2.2", "3"]
    assert [one.model[0] for one in found] == [0, 2, 3, 3.5, 4, 7]
    assert found[1].asked == [(5, 1), (6, 1)], (
        "after the sub-questions, within the four seconds of the program"
    )
    assert (found[1].end, found[-1].end) == (7, 8)


def test_calls_made_at_the_same_time_do_not_reach_beyond_their_program() -> None:
    (one,) = spans([(step(0, 1, 2), [call(2), call(2)])])
    assert one.asked == [(1, 1), (2, 1)]
    bars = span_bars(one, one.end)
    assert [part.split('"')[0] for part in bars.split(' x="')[1:]] == ["0.0", "333.3", "333.3", "666.7"]
    assert spans([]) == []
    assert span_bars(spans([(step(0, 0, 0), [])])[0], 0.0).count("<rect") == 0


def test_a_run_that_goes_on_has_the_steps_of_its_open_sub_question() -> None:
    assert [one.label for one in spans([(step(0, 1, 1), []), (step(1, 1, 1), [])])] == ["1", "2"]


def test_a_step_is_described_by_what_it_did() -> None:
    calls = tuple({"name": name} for name in ("search", "search", "grep", "read_chunk", "links", "FINAL"))
    one = step(0, 1, 1, programs=("x",), host_calls=calls, chunks_read=("a", "b"), final=True)
    assert did(one) == "search, grep, read_chunk and 1 more · 2 memories read · concluded"
    assert did(step(0, 1, 1)) == "a reply without a program"
    assert did(step(0, 1, 1, programs=("x",), error="e", error_kind="IndexError")) == "IndexError"
    assert did(step(0, 1, 1, programs=("x",))) == "ran a program"
