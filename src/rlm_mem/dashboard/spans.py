"""Computes the timing of a run's steps: their nesting, and the beginning and end of their bars.

A record contains the durations of the parts of each step, in the order in which steps ended. Steps of a run are
consecutive; the steps of a sub-question and the model calls of a program happened while that program ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlm_mem.chunk.types import amount

if TYPE_CHECKING:
    from rlm_mem.recall.loop import LoopStep
    from rlm_mem.recall.trajectory import SubCall

_NAMED = 3


@dataclass(frozen=True)
class Span:
    """The timing of one step, in seconds from the beginning of the run.

    Attributes:
        label: ``3``, or ``3.1`` for the first step of a sub-question of step 3.
        model, program: start and duration of writing and of running the program.
        asked: start and duration of each model call of the program.
    """

    step: LoopStep
    label: str
    calls: Sequence[SubCall]
    model: tuple[float, float]
    program: tuple[float, float]
    asked: Sequence[tuple[float, float]] = ()

    @property
    def end(self) -> float:
        """Time at which the step ended."""
        return sum(self.program)


def spans(steps: Sequence[tuple[LoopStep, Sequence[SubCall]]]) -> list[Span]:
    """Timing of the steps of a run, each step before those of its sub-questions.

    Args:
        steps: recorded steps, with the model calls of their programs.
    """
    tops: list[_Node] = []
    for step, calls in steps:
        # The steps of a sub-question end before the step whose program asked it.
        inner = [node for node in tops if node.step.depth > step.depth]
        tops = [node for node in tops if node.step.depth <= step.depth]
        tops.append(_Node(step, calls, inner))
    made: list[Span] = []
    _add_spans(tops, 0.0, "", made)
    return made


@dataclass(frozen=True)
class _Node:
    step: LoopStep
    calls: Sequence[SubCall]
    inner: Sequence[_Node]


def _add_spans(nodes: Sequence[_Node], start: float, prefix: str, made: list[Span]) -> float:
    """Append the spans of consecutive nodes; returns the time at which the last one ended."""
    for number, node in enumerate(nodes, 1):
        label = f"{prefix}{number}"
        running = start + max(0.0, node.step.model_seconds)
        place = len(made)
        made.append(Span(node.step, label, node.calls, (start, running - start), (running, 0.0)))
        within = _add_spans(node.inner, running, f"{label}.", made)
        model_calls = []
        for call in node.calls:
            model_calls.append((within, max(0.0, call.seconds)))
            within += max(0.0, call.seconds)
        # Concurrent calls take less time than the sum of their durations.
        took = max(0.0, node.step.program_seconds) or within - running
        squeeze = min(1.0, took / (within - running)) if within > running else 1.0
        model_calls = [(running + (at - running) * squeeze, length * squeeze) for at, length in model_calls]
        made[place] = replace(made[place], program=(running, took), asked=model_calls)
        start = running + took
    return start


def did(step: LoopStep) -> str:
    """A summary of a step, such as `search, read_chunk · 2 memories read · concluded`."""
    names = list(
        dict.fromkeys(name for call in step.host_calls if (name := str(call.get("name"))) != "FINAL")
    )
    parts = []
    if names:
        more = len(names) - _NAMED
        parts.append(", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else ""))
    elif not step.programs:
        parts.append("a reply without a program")
    if step.chunks_read:
        parts.append(f"{amount(len(step.chunks_read), 'memory')} read")
    if step.error:
        parts.append(step.error_kind or "error")
    if step.final:
        parts.append("concluded")
    return " · ".join(parts) or "ran a program"
