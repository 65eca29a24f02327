"""Health of the tiers, in figures: populations, consolidation rate, reuse, promotions per month."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rlm_mem.continuum.schema import TIERS

if TYPE_CHECKING:
    from rlm_mem.continuum.changes import Changes
    from rlm_mem.continuum.files import MemoryFiles
    from rlm_mem.continuum.review import ReviewQueue

__all__ = ["health"]


def health(files: MemoryFiles, changes: Changes, review: ReviewQueue) -> dict[str, Any]:
    """Figures of one namespace.

    Returns:
        ``tiers`` (memories now, by tier), ``consolidation_rate`` (share of logs that came to an end by consolidation
        rather than by age; None before the first), ``reuse`` (share of recorded uses that applied a memory of the mid
        tier or below), ``promotions_per_month``, ``uses``, ``demotions``, ``open_reviews``, ``problems``.
    """
    problems: list[Any] = []
    tiers: Counter[str] = Counter(
        entry.meta.tier for entry in files.entries(problems) if not entry.meta.component_of
    )
    consolidated = aged = uses = reused = demotions = 0
    promotions: Counter[str] = Counter()
    for step in changes.journal():
        details = step.get("details") or {}
        op, month = step.get("op"), str(step.get("ts", ""))[:7]
        if op in ("promote", "merge"):
            promotions[month] += op == "promote"
            if step.get("from") == "high":
                consolidated += len(details.get("sources") or ())
        elif op == "archive":
            aged += 1
        elif op == "demote":
            demotions += 1
        elif op == "use":
            uses += 1
            reused += details.get("tier") in ("mid", "low", "ultra-low")
    ended = consolidated + aged
    return {
        "tiers": {name: tiers.get(name, 0) for name in TIERS},
        "consolidation_rate": round(consolidated / ended, 4) if ended else None,
        "reuse": round(reused / uses, 4) if uses else None,
        "promotions_per_month": {month: count for month, count in sorted(promotions.items()) if count},
        "uses": uses,
        "demotions": demotions,
        "open_reviews": len(review.cases("open")),
        "problems": len(problems),
    }
