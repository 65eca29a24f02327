"""Telemetry of a finished recall or reasoning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.telemetry import count

if TYPE_CHECKING:
    from rlm_mem.recall.reason import ReasoningResult
    from rlm_mem.recall.recall import RecallResult
    from rlm_mem.telemetry import ObservedOperation

__all__ = ["record_recall"]


def record_recall(current: ObservedOperation, result: RecallResult | ReasoningResult) -> None:
    """Put the figures of a result into its span, and the budget that ended it into a counter."""
    current.set("rlm_mem.turns", result.iterations_used)
    current.set("rlm_mem.chunks", len(result.chunk_ids))
    current.set("rlm_mem.concluded", result.concluded)
    current.text("rlm_mem.query", result.trajectory.query)
    if result.stopped_by is not None:
        current.set("rlm_mem.stopped_by", result.stopped_by)
        count("rlm_mem.recall.stopped", stopped_by=result.stopped_by)
    answer = getattr(result, "content", None) or getattr(result, "conclusion", None)
    if answer:
        current.text("rlm_mem.answer", str(answer))
