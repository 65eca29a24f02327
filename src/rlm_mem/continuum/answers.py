"""The results of queries of tiered memories, as plain data; not with the queries, so that describing them is cheap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class MemoryHit:
    """One memory that answers a query.

    Attributes:
        parts: what the score is the product of: ``relevance``, ``tier_weight``, ``reliability``; and beside them
            ``confidence``, ``success_rate`` and ``coverage`` of the goal's words.
    """

    chunk_id: str
    file: str
    entry: str | None
    tier: str
    kind: str
    title: str
    score: float
    confidence: float
    success_rate: float | None
    usage_count: int
    task_type: str | None
    created_at: str
    parts: Mapping[str, float]

    @property
    def key(self) -> str:
        """The memory's name: its file, and the entry behind ``#``."""
        return self.file if self.entry is None else f"{self.file}#{self.entry}"


@dataclass(frozen=True)
class Hint:
    """One piece of advice.

    Attributes:
        kind: ``risk`` or ``success``.
        evidence: keys of the memories it rests on, with their figures.
    """

    kind: Literal["risk", "success"]
    text: str
    evidence: tuple[str, ...]
