"""The outcome of a recall or reasoning: one of five words shared by Python, command line, MCP, HTTP and dashboard.

=================  ==========================================================================================
``answered``       a program concluded with an answer
``closest only``   a program concluded without an answer and named the closest memories; it may have made a
                   suggestion
``not held``       a program concluded that the memory has no answer
``stopped``        a budget or the caller ended the run first; its memories are the best found by then
``failed``         an error ended the run
=================  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

Method = Literal["programs", "scaffolded", "offline"]
"""How an answer was found: by programs of the model; by the model reading memories that the offline model found or
that it searched for; or by the offline model instead."""


RunOperation = Literal["recall", "reason", "session"]
RUN_OPERATIONS: tuple[RunOperation, ...] = get_args(RunOperation)
OPERATION_WORDS = f"{', '.join(RUN_OPERATIONS[:-1])} or {RUN_OPERATIONS[-1]}"
"""The operations of recorded runs, in words."""

OutcomeWord = Literal["answered", "closest only", "not held", "stopped", "failed"]

OUTCOMES: tuple[OutcomeWord, ...] = get_args(OutcomeWord)

ENDINGS: dict[OutcomeWord, str] = {
    "closest only": "No memory clearly answers the question. These come closest.",
    "not held": "The memory has no answer to the question.",
    "stopped": "The search was stopped before it found an answer.",
}
"""Texts shown instead of an answer."""

SUGGESTED = "Not certain, but possibly:"
"""Introduces a suggestion."""

CLOSEST_BESIDE = "This answer is not certain. These memories also come close."
"""Introduces the closest memories beside an uncertain answer."""

_CANCELLATIONS = frozenset(
    (
        "SessionCancelled",
        "CallCancelled",
        "CancelledError",
        "KeyboardInterrupt",
        "SystemExit",
        "GeneratorExit",
    )
)
"""Exceptions by which the caller ends a run; records contain them as ``TYPE: message``."""


def confidence_words(outcome: OutcomeWord, confidence: float, suggestion: str | None = None) -> str:
    """A confidence in words: in the answer, in the suggestion, or that there is none; empty if none was given.

    There is none for closest memories: they may contain the answer although no program was sure of it.

    Args:
        outcome: the outcome of the run.
        confidence: 0 to 1.
        suggestion: the suggestion of the run.
    """
    if outcome == "answered" or suggestion is not None:
        return f"confidence {confidence:.2f}"
    is_absent = outcome == "not held" and confidence > 0
    return f"confidence that there is no answer: {confidence:.2f}" if is_absent else ""


def unread_note(files: int) -> str:
    """The note on chunk files that could not be read."""
    subject = "a chunk file could" if files == 1 else f"{files:,} chunk files could"
    return f"{subject} not be read, so part of the memory is missing (rlm-mem store check names it)"


def note_line(method: Method, note: str) -> str:
    """The note of a result as a line, with the method unless it is ``programs``."""
    return note if method == "programs" else f"{method}: {note}"


def ending_of(stopped_by: str) -> str:
    """The reason why a run was stopped, in words."""
    if stopped_by == "repetition":
        return "stopped, because the model repeated a reply that failed"
    return f"stopped by the budget of {stopped_by.replace('_', ' ')}"


def outcome_word(
    *, content: str | None, chunk_ids: Sequence[str], concluded: bool, error: str | None = None
) -> OutcomeWord:
    """The outcome of a run.

    Args:
        content: the answer or conclusion; None or blank for none.
        chunk_ids: the memories that were returned.
        concluded: FINAL was called, or a host finished its session.
        error: the exception that ended the run, as ``TYPE: message``.
    """
    if error is not None:
        return "stopped" if error.partition(":")[0] in _CANCELLATIONS else "failed"
    if not concluded:
        return "stopped"
    if content is not None and content.strip():
        return "answered"
    return "closest only" if chunk_ids else "not held"
