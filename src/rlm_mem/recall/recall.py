"""RECALL: answer a question from the memory by programs that the model writes (docs/spec/operations.md, RECALL)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rlm_mem.models.base import Usage
from rlm_mem.models.budget import Limits
from rlm_mem.recall.grounding import answer_text, confidence_of, existing, supporting
from rlm_mem.recall.observing import record_recall
from rlm_mem.recall.outcome import Method, OutcomeWord, outcome_word
from rlm_mem.recall.result_schema import ResultSchema
from rlm_mem.recall.run import Run, RunOperation
from rlm_mem.recall.trajectory import Trajectory
from rlm_mem.recall.turn import LoopStep
from rlm_mem.store.core.standing import standing
from rlm_mem.telemetry import observed

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["RecallOperation", "RecallResult", "Source", "Standing", "described", "source_of"]

_SHOWN = 5
"""Sources that a printed result names."""
_EXCERPTS = 10
"""Sources of a result with the stretch that bears on the question."""
_LINE = 160
"""Characters of a source's line."""


@dataclass(frozen=True)
class Source:
    """A memory behind an answer, or one of the closest where there is none.

    Attributes:
        chunk_id: the memory.
        at: when it was said or happened (ISO 8601).
        line: its first words on one line.
        excerpt: the stretch of it that bears most on the question, on one line of at most 1,000 characters; of a
            result's sources the first ten have one, of others it is ``line``.
    """

    chunk_id: str
    at: str
    line: str
    excerpt: str = ""

    def __str__(self) -> str:
        return f"{self.chunk_id}  {self.at[:10]}  {self.line}"


@dataclass(frozen=True)
class Standing:
    """How far a memory can be relied on.

    Attributes:
        chunk_id: the memory.
        tier: of a tiered memory, None for a plain chunk.
        reliability, confidence: 0 to 1.
        usage_count: how often it was used; ``success_rate`` how many of these went well, 0 to 1, or None.
    """

    chunk_id: str
    tier: str | None
    reliability: float
    confidence: float
    usage_count: int
    success_rate: float | None


@dataclass
class RecallResult:
    """The answer to a question (docs/spec/operations.md, RECALL).

    Attributes:
        content: the answer; None when the memory does not hold it (``concluded``) or a budget ended the run.
        chunk_ids: the chunks the answer rests on; without an answer, the best evidence found.
        confidence: 0 to 1. As the model gave it to FINAL, else derived from the chunks (``recall.grounding``);
            0 when nothing was concluded. With ``content`` None: how sure the model is that it is not there.
        iterations_used: turns of the run, sub-questions included.
        trajectory: every step; ``trajectory.path`` is the file.
        usage: tokens of all calls.
        cost: US dollars of all calls, None when one of them had no known price.
        stopped_by: iterations, depth, seconds, model_calls, tokens or usd; ``repetition`` when the model sent one
            failing reply four times in a row; None when FINAL was called.
        evidence: ids of the chunks that the programs read, in order.
        concluded: FINAL was called.
        seconds: wall clock of the run.
        standing: how far each of ``chunk_ids`` that is there can be relied on.
        sources: each of them with its date, its first words, and the stretch that bears on the question.
        method: ``programs`` that the model wrote; ``scaffolded``: it read what built-in programs found; ``offline``:
            the offline model took over, since the model could do neither.
        note: why ``method`` is not ``programs``; else empty.
        value: the answer in the form that was asked for with ``result``; None without one.
    """

    content: str | None
    chunk_ids: list[str]
    confidence: float
    iterations_used: int
    trajectory: Trajectory
    usage: Usage
    cost: Decimal | None
    stopped_by: str | None
    evidence: list[str]
    concluded: bool
    seconds: float
    standing: list[Standing] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    method: Method = "programs"
    note: str = ""
    value: Any = None

    def __str__(self) -> str:
        text = described(self.content, self.outcome, self.sources, self.confidence, self.stopped_by)
        return f"{text}\n{self.method}: {self.note}" if self.note else text

    def __repr__(self) -> str:
        return (
            f"RecallResult(outcome={self.outcome!r}, content={self.content!r}, chunk_ids={self.chunk_ids!r}, "
            f"confidence={self.confidence!r}, iterations_used={self.iterations_used!r}, "
            f"trajectory={self.trajectory.id!r})"
        )

    @property
    def outcome(self) -> OutcomeWord:
        """``answered``, ``closest only``, ``not held`` or ``stopped`` (:mod:`rlm_mem.recall.outcome`)."""
        return outcome_word(content=self.content, chunk_ids=self.chunk_ids, concluded=self.concluded)


class RecallOperation(RunOperation):
    """Answers questions from a store; made as :class:`~rlm_mem.recall.run.RunOperation` says."""

    @observed("recall", record_recall)
    def recall(
        self,
        query: str,
        *,
        result: Any = None,
        limits: Limits | None = None,
        on_step: Callable[[LoopStep], None] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> RecallResult:
        """Answer ``query`` from the memory.

        Args:
            query: the question, in words.
            result: the form of the answer (:class:`~rlm_mem.recall.result_schema.ResultSchema`); ``value`` is then of
                this type. An answer that does not fit goes back to the model with the reason.
            limits: budgets of this recall only.
            on_step: called after every turn, for live views.
            on_text: called with each piece of the model's replies as it arrives.

        Raises:
            InvalidQuery: the question is empty.
            InputError: ``result`` is no form of answers.
            ModelError: the model failed.
        """
        form = None if result is None else ResultSchema(result)
        run = self._runner.run(query, "recall", limits=limits, form=form, on_step=on_step, on_text=on_text)
        return recall_result(self._runner.view, run, form)

    __call__ = recall


def recall_result(store: ChunkStore, run: Run, form: ResultSchema | None = None) -> RecallResult:
    """Make the result of a finished run: text, chunks, confidence; and close its trajectory."""
    content, named = answer_text(run.loop.answer)
    chunks = existing(store, [*run.loop.chunk_ids, *named])
    if content is not None and not chunks:
        chunks = supporting(store, content, run.evidence)
    confidence = run.loop.confidence
    if confidence is None:
        confidence = confidence_of(store, content, chunks) if content is not None else 0.0
    handed_out = list(chunks)
    if not run.loop.concluded:
        # The best there is: what was read, else what the ranker would read first.
        handed_out = list(run.evidence) or run.opening.hit_ids
        confidence = 0.0
    values: dict[str, Any] = {
        "content": content,
        "chunk_ids": handed_out,
        "confidence": min(1.0, max(0.0, float(confidence))),
        "concluded": run.loop.concluded,
        "stopped_by": run.loop.stopped_by,
        "evidence": list(run.evidence),
    }
    trajectory = run.recorder.finish(run.spent, detail=run.loop.detail, **values)
    log_reading(store, trajectory, handed_out)
    behind = list(store.get_many(values["chunk_ids"], track=False).values())
    return RecallResult(
        iterations_used=run.spent.iterations,
        trajectory=trajectory,
        usage=run.spent.usage,
        cost=run.spent.cost,
        seconds=run.spent.seconds,
        standing=[Standing(chunk.id, **standing(chunk)) for chunk in behind],
        sources=_sources(store, trajectory.query, behind),
        value=None if form is None or content is None else form.value_of(run.loop.answer),
        **run.loop.detail,
        **values,
    )


def _sources(store: ChunkStore, question: str, chunks: list[Chunk]) -> list[Source]:
    from rlm_mem.search import excerpts

    stretches = excerpts(store, question, chunks[:_EXCERPTS])
    return [source_of(chunk, stretches.get(chunk.id)) for chunk in chunks]


def source_of(chunk: Chunk, excerpt: str | None = None) -> Source:
    """A chunk as the source of an answer."""
    line = " ".join(chunk.content[: _LINE * 4].split())
    line = line if len(line) <= _LINE else line[: _LINE - 1] + "…"
    return Source(chunk.id, chunk.metadata.at, line, excerpt or line)


def described(
    answer: str | None, outcome: OutcomeWord, sources: list[Source], confidence: float, stopped_by: str | None
) -> str:
    """A result in a few lines: answer, sources, confidence."""
    ended = outcome + (f" by the budget of {stopped_by.replace('_', ' ')}" if stopped_by else "")
    lines = [answer if outcome == "answered" and answer else f"no answer: {ended}"]
    lines += [f"  {source}" for source in sources[:_SHOWN]]
    if len(sources) > _SHOWN:
        lines.append(f"  and {len(sources) - _SHOWN} more")
    return "\n".join([*lines, f"confidence {confidence:.2f}"])


def log_reading(store: ChunkStore, trajectory: Trajectory, chunk_ids: list[str]) -> None:
    """Write the chunks that were handed out into the audit log; a read-only store keeps none."""
    if not store.backend.read_only:
        store.record_event(
            trajectory.operation, chunk_ids=chunk_ids, trajectory=trajectory.id, query=trajectory.query
        )
