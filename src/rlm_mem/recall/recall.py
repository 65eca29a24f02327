"""RECALL: answer a question from the memory by programs that the model writes (docs/spec/operations.md, RECALL)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rlm_mem.models.base import Usage
from rlm_mem.models.budget import Limits
from rlm_mem.recall.grounding import answer_text, confidence_of, existing, supporting
from rlm_mem.recall.observing import told
from rlm_mem.recall.outcome import OutcomeWord, outcome_word
from rlm_mem.recall.run import Operation, Run
from rlm_mem.recall.trajectory import Trajectory
from rlm_mem.sandbox.loop import LoopStep
from rlm_mem.store.core.standing import standing
from rlm_mem.telemetry import observed

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["RecallOperation", "RecallResult"]


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
        standing: for each of ``chunk_ids`` that is there: ``chunk_id``, ``tier`` (None for a plain chunk),
            ``reliability``, ``confidence``, ``usage_count``, ``success_rate``.
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
    standing: list[dict[str, Any]] = field(default_factory=list)

    @property
    def outcome(self) -> OutcomeWord:
        """``answered``, ``closest only``, ``not held`` or ``stopped`` (:mod:`rlm_mem.recall.outcome`)."""
        return outcome_word(content=self.content, chunk_ids=self.chunk_ids, concluded=self.concluded)


class RecallOperation(Operation):
    """Answers questions from a store; made as :class:`~rlm_mem.recall.run.Operation` says."""

    @observed("recall", told)
    def recall(
        self,
        query: str,
        *,
        limits: Limits | None = None,
        on_step: Callable[[LoopStep], None] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> RecallResult:
        """Answer ``query`` from the memory.

        Args:
            query: the question, in words.
            limits: budgets of this recall only.
            on_step: called after every turn, for live views.
            on_text: called with each piece of the model's replies as it arrives.

        Raises:
            InvalidQuery: the question is empty.
            ModelError: the model failed.
        """
        run = self._runner.run(query, "recall", limits=limits, on_step=on_step, on_text=on_text)
        return conclude(self._runner.store, run)

    __call__ = recall


def conclude(store: ChunkStore, run: Run) -> RecallResult:
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
    trajectory = run.recorder.finish(run.spent, **values)
    log_reading(store, trajectory, handed_out)
    return RecallResult(
        iterations_used=run.spent.iterations,
        trajectory=trajectory,
        usage=run.spent.usage,
        cost=run.spent.cost,
        seconds=run.spent.seconds,
        standing=[
            {"chunk_id": chunk.id, **standing(chunk)}
            for chunk in store.get_many(values["chunk_ids"], track=False).values()
        ],
        **values,
    )


def log_reading(store: ChunkStore, trajectory: Trajectory, chunk_ids: list[str]) -> None:
    """Write the chunks that were handed out into the audit log; a read-only store keeps none."""
    if not store.backend.read_only:
        store.record_event(
            trajectory.operation, chunk_ids=chunk_ids, trajectory=trajectory.id, query=trajectory.query
        )
