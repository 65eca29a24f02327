"""What recalls and reasonings cost, summed from their trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from rlm_mem.models.base import ModelSpending, Usage
from rlm_mem.recall.loop import LoopStep
from rlm_mem.recall.trajectory import SubCall, Trajectory, trajectories

if TYPE_CHECKING:
    from datetime import date

    from rlm_mem.store.core.chunk_store import ChunkStore


@dataclass(frozen=True)
class CostLine:
    """Spending of one day (UTC), model and operation.

    ``cost`` sums the priced calls in US dollars and is None if none had a price; ``unpriced_calls`` counts the
    other calls.
    """

    day: str
    model: str
    operation: str
    runs: int
    calls: int
    usage: Usage
    cost: Decimal | None
    unpriced_calls: int


def costs(
    store: ChunkStore, *, since: str | date | None = None, until: str | date | None = None
) -> list[CostLine]:
    """Return what was spent, by day, model and operation, oldest day first.

    Runs that never ended count with their recorded turns and sub-calls.
    """
    runs: dict[tuple[str, str, str], int] = {}
    sums: dict[tuple[str, str, str], list[ModelSpending]] = {}
    for trajectory in trajectories(store, since=since, until=until, steps=False):
        for spending in _spending(trajectory):
            key = (trajectory.started_at[:10], spending.model, trajectory.operation)
            runs[key] = runs.get(key, 0) + 1
            sums.setdefault(key, []).append(spending)
    lines = []
    for key in sorted(sums):
        parts = sums[key]
        calls, unpriced = sum(part.calls for part in parts), sum(part.unpriced_calls for part in parts)
        lines.append(
            CostLine(
                *key,
                runs=runs[key],
                calls=calls,
                usage=sum((part.usage for part in parts), Usage()),
                cost=sum((part.cost for part in parts), Decimal(0)) if calls > unpriced else None,
                unpriced_calls=unpriced,
            )
        )
    return lines


def _spending(trajectory: Trajectory) -> Sequence[ModelSpending]:
    if trajectory.outcome is not None:
        return trajectory.outcome.models
    steps_and_calls: list[LoopStep | SubCall] = [*trajectory.steps, *trajectory.calls]
    return [
        ModelSpending(call.model, 1, call.usage, call.cost or Decimal(0), int(call.cost is None))
        for call in steps_and_calls
    ]
