"""How much a chunk can be relied on: its tier and reliability, for programs, answers and the ranking of tiers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk

__all__ = ["COMPONENT", "TIER_TAG", "reliability", "standing", "tier_of"]

#: Chunks that mirror a tiered memory carry ``tier:mid`` and the like among their tags.
TIER_TAG = "tier:"
#: Tag of those that are a part of another memory: they are found by themselves, and counted with it.
COMPONENT = "component"

_STEADY: Mapping[str, float] = {"high": 0.8, "medium": 0.95, "low": 1.0}


def reliability(confidence: float, success_rate: float | None, volatility: str | None) -> float:
    """One figure, 0 to 1: confidence, less for failures in use and for what changes often."""
    proven = 1.0 if success_rate is None else 0.5 + 0.5 * success_rate
    return round(confidence * proven * _STEADY.get(volatility or "low", 1.0), 4)


def tier_of(tags: list[str] | tuple[str, ...]) -> str | None:
    """The tier that a chunk's tags name, None for a chunk that is no tiered memory."""
    return next((tag[len(TIER_TAG) :] for tag in tags if tag.startswith(TIER_TAG)), None)


def standing(chunk: Chunk) -> dict[str, Any]:
    """Tier (None for a plain chunk), reliability (0-1), confidence, and the uses behind them, as plain data."""
    extra = chunk.metadata.extra
    uses = extra.get("usage_count")
    rate = extra.get("success_rate")
    rate = float(rate) if isinstance(rate, int | float) and not isinstance(rate, bool) else None
    volatility = extra.get("volatility")
    return {
        "tier": tier_of(chunk.tags),
        "reliability": reliability(
            chunk.metadata.confidence, rate, volatility if isinstance(volatility, str) else None
        ),
        "confidence": chunk.metadata.confidence,
        "usage_count": uses if isinstance(uses, int) else 0,
        "success_rate": rate,
    }
