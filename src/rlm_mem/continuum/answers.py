"""Result types of queries of tiered memories, in a module of their own so that importing them is cheap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from rlm_mem.record import FrozenRecord

QueryKind = Literal["weighted", "recent", "proven", "stable"]
"""A query of all tiers by weight, or of one: high (of 24 hours), mid, low."""


class MemoryHit(FrozenRecord, frozen=True):
    """One memory found by a query.

    Attributes:
        parts: the factors of the score, ``relevance``, ``tier_weight`` and ``reliability``, and also
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
        """The memory's identifier: the file, with ``#`` and the entry if there is one."""
        return self.file if self.entry is None else f"{self.file}#{self.entry}"


class Hint(FrozenRecord, frozen=True):
    """A warning or success pattern for a goal.

    Attributes:
        kind: ``risk`` or ``success``.
        evidence: keys of the supporting memories, with their figures.
    """

    kind: Literal["risk", "success"]
    text: str
    evidence: tuple[str, ...]
