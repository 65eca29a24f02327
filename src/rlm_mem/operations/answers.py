"""Answers as they go out: the result of a recall or a reasoning as one Struct, for JSON and for event streams."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rlm_mem.recall.outcome import OutcomeWord

if TYPE_CHECKING:
    from rlm_mem.recall.reason import ReasoningResult
    from rlm_mem.recall.recall import RecallResult

__all__ = ["Conclusion", "PathStep", "RecallAnswer", "Tokens", "answer_of"]


class Tokens(Struct):
    """Tokens of all model calls of a run."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int


class RecallAnswer(Struct):
    """The answer to a question.

    Attributes:
        answer: null when there is none; ``outcome`` says why: closest only, not held, or stopped (``stopped_by``).
        chunk_ids: what it rests on; without an answer, the best evidence found.
        cost: US dollars of all calls, null when one of them had no known price.
        standing: for each of ``chunk_ids``: tier, reliability, confidence and uses.
        sources: for each of ``chunk_ids``: id, date, first words, and the excerpt that bears on the question.
    """

    answer: str | None
    chunk_ids: list[str]
    confidence: float
    concluded: bool
    outcome: OutcomeWord
    stopped_by: str | None
    evidence: list[str]
    iterations: int
    seconds: float
    usage: Tokens
    cost: Decimal | None
    trajectory_id: str
    standing: list[dict[str, Any]]
    sources: list[dict[str, str]]


class PathStep(Struct):
    """One step to a conclusion; ``operation`` is read, link or synthesize."""

    chunk_id: str
    operation: str
    reasoning: str


class Conclusion(Struct):
    """A conclusion from several memories and the way to it; empty when there is none."""

    conclusion: str
    path: list[PathStep]
    confidence: float
    supports: list[str]
    contradicts: list[str]
    superseded: list[str]
    chunk_ids: list[str]
    concluded: bool
    outcome: OutcomeWord
    stopped_by: str | None
    evidence: list[str]
    iterations: int
    seconds: float
    usage: Tokens
    cost: Decimal | None
    trajectory_id: str


def answer_of(result: RecallResult | ReasoningResult) -> RecallAnswer | Conclusion:
    """The result of a run as it goes out."""
    from rlm_mem.recall.recall import RecallResult

    used = result.usage
    tokens = Tokens(used.input_tokens, used.output_tokens, used.cached_tokens, used.reasoning_tokens)
    if isinstance(result, RecallResult):
        return RecallAnswer(
            answer=result.content,
            chunk_ids=list(result.chunk_ids),
            confidence=result.confidence,
            concluded=result.concluded,
            outcome=result.outcome,
            stopped_by=result.stopped_by,
            evidence=list(result.evidence),
            iterations=result.iterations_used,
            seconds=round(result.seconds, 3),
            usage=tokens,
            cost=result.cost,
            trajectory_id=result.trajectory.id,
            standing=[asdict(one) for one in result.standing],
            sources=[asdict(one) for one in result.sources],
        )
    return Conclusion(
        conclusion=result.conclusion,
        path=[PathStep(step.chunk_id, step.operation, step.reasoning) for step in result.path],
        confidence=result.confidence,
        supports=list(result.supports),
        contradicts=list(result.contradicts),
        superseded=list(result.superseded),
        chunk_ids=list(result.chunk_ids),
        concluded=result.concluded,
        outcome=result.outcome,
        stopped_by=result.stopped_by,
        evidence=list(result.evidence),
        iterations=result.iterations_used,
        seconds=round(result.seconds, 3),
        usage=tokens,
        cost=result.cost,
        trajectory_id=result.trajectory.id,
    )
