"""Telemetry of a finished recall or reasoning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from rlm_mem.telemetry import count

if TYPE_CHECKING:
    from rlm_mem.recall.trajectory import Trajectory
    from rlm_mem.telemetry import ObservedOperation

__all__ = ["FinishedOperation", "record_recall"]


class FinishedOperation(Protocol):
    """The attributes of a finished recall or reasoning that are recorded."""

    @property
    def iterations_used(self) -> int: ...
    @property
    def chunk_ids(self) -> Sequence[str]: ...
    @property
    def concluded(self) -> bool: ...
    @property
    def stopped_by(self) -> str | None: ...
    @property
    def trajectory(self) -> Trajectory: ...


def record_recall(current: ObservedOperation, result: FinishedOperation) -> None:
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
