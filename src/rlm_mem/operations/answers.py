"""Answers as they go out: the result of a recall or a reasoning as one Struct, for JSON and for event streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rlm_mem.recall.outcome import OutcomeWord

if TYPE_CHECKING:
    from rlm_mem.operations.operation import Context
    from rlm_mem.recall.reason import ReasoningResult
    from rlm_mem.recall.recall import RecallResult
    from rlm_mem.recall.turn import LoopStep

__all__ = [
    "CitedAnswer", "CitedConclusion", "CitedMemory", "Conclusion", "PathStep", "RecallAnswer", "TokenUsage",
    "answer_of", "cited_answer", "on_step", "sources",
]  # fmt: skip

_EXCERPT = 400
_MAX_SOURCES = 5


class TokenUsage(Struct):
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
    usage: TokenUsage
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
    usage: TokenUsage
    cost: Decimal | None
    trajectory_id: str


def answer_of(result: RecallResult | ReasoningResult) -> RecallAnswer | Conclusion:
    """The result of a run as it goes out."""
    from rlm_mem.recall.recall import RecallResult

    used = result.usage
    tokens = TokenUsage(used.input_tokens, used.output_tokens, used.cached_tokens, used.reasoning_tokens)
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


class CitedMemory(Struct):
    """A memory that an answer rests on, or one of the closest, with the stretch that bears on the question."""

    id: str
    at: str
    type: str
    excerpt: str


class CitedAnswer(Struct):
    """An answer; null when there is none, and `outcome` says why: closest only, not held, or stopped."""

    answer: str | None
    chunk_ids: list[str]
    confidence: float
    concluded: bool
    outcome: OutcomeWord
    stopped_by: str | None
    iterations: int
    seconds: float
    trajectory_id: str
    sources: list[CitedMemory]


class CitedConclusion(Struct):
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
    trajectory_id: str
    sources: list[CitedMemory]


def sources(
    context: Context, chunk_ids: list[str], excerpts: Mapping[str, str] | None = None
) -> list[CitedMemory]:
    """The first few memories behind an answer, to save the caller a `get`: their excerpts, else their beginning."""
    wanted = chunk_ids[:_MAX_SOURCES]
    chunks = context.memory.store.get_many(wanted)
    return [
        CitedMemory(
            chunk.id,
            chunk.metadata.at,
            chunk.type,
            (excerpts or {}).get(chunk.id) or chunk.content[:_EXCERPT],
        )
        for chunk in (chunks.get(chunk_id) for chunk_id in wanted)
        if chunk is not None
    ]


def on_step(context: Context) -> Callable[[LoopStep], None]:
    """Report each turn of a run, and end the run when the client has given it up."""
    done = 0

    def tell(step: LoopStep) -> None:
        nonlocal done
        done += 1
        what = f"read {len(step.chunks_read)} memories" if step.chunks_read else "searched"
        context.progress(done, None, f"turn {step.turn}: {'answered' if step.final else what}")
        context.check()

    return tell


def cited_answer(context: Context, result: RecallResult) -> CitedAnswer:
    """The answer to a question with the beginnings of what it rests on, as agents get it."""
    return CitedAnswer(
        answer=result.content,
        chunk_ids=list(result.chunk_ids),
        confidence=result.confidence,
        concluded=result.concluded,
        outcome=result.outcome,
        stopped_by=result.stopped_by,
        iterations=result.iterations_used,
        seconds=round(result.seconds, 3),
        trajectory_id=result.trajectory.id,
        sources=sources(context, result.chunk_ids, {one.chunk_id: one.excerpt for one in result.sources}),
    )
