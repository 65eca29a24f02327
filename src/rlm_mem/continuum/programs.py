"""What programs in the sandbox may ask about tiered memories: read-only, bounded, plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlm_mem.continuum.query import MemoryHit, QueryMemoryTool
from rlm_mem.errors import InvalidQuery

__all__ = ["program_functions"]

_MOST = 50


def program_functions(queries: QueryMemoryTool) -> dict[str, Callable[..., Any]]:
    """``search_traces(goal, limit=10)`` and ``memories(tier=None, limit=20)``."""

    def search_traces(goal: str, limit: int = 10) -> list[dict[str, Any]]:
        """Memories of proven work for a goal, best first, with tier, reliability and figures."""
        if not isinstance(goal, str) or not goal.strip():
            return []
        weights = {"high": 0.1, "mid": 0.6, "low": 0.3, "ultra-low": 0.3}
        result = queries.query(goal[:2_000], tier_weights=weights, include_core=False, limit=_bounded(limit))
        return [_shown(hit) for hit in result.hits]

    def memories(tier: str | None = None, limit: int = 20) -> list[dict[str, Any]]:
        """Memories of a tier (high, mid, low, ultra-low), the most reliable first."""
        return [_shown(hit) for hit in queries.memories(tier, _bounded(limit))]

    return {"search_traces": search_traces, "memories": memories}


def _bounded(limit: Any) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int | float) or limit != limit:
        raise InvalidQuery(f"limit is a number from 1 to {_MOST}")
    return int(max(1, min(_MOST, limit)))


def _shown(hit: MemoryHit) -> dict[str, Any]:
    return {
        "chunk_id": hit.chunk_id,
        "id": hit.chunk_id,
        "title": hit.title,
        "tier": hit.tier,
        "kind": hit.kind,
        "file": hit.key,
        "score": hit.score,
        "reliability": hit.parts["reliability"],
        "confidence": hit.confidence,
        "success_rate": hit.success_rate,
        "usage_count": hit.usage_count,
        "created_at": hit.created_at,
    }
