"""Reports of consolidation and retention, and health figures of the tiers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from rlm_mem.continuum.changes import Changes
from rlm_mem.continuum.files import InvalidEntry, MemoryFiles
from rlm_mem.continuum.mirror import Mirror
from rlm_mem.continuum.schema import TIERS
from rlm_mem.telemetry import ObservedOperation, count

if TYPE_CHECKING:
    from rlm_mem.continuum.review import ReviewQueue
    from rlm_mem.continuum.traces import Traces
    from rlm_mem.store.core.chunk_store import ChunkStore


class Tiers(Protocol):
    """The parts of a ``Continuum`` that consolidation and retention use."""

    store: ChunkStore
    files: MemoryFiles
    mirror: Mirror
    changes: Changes

    @property
    def traces(self) -> Traces: ...
    @property
    def review(self) -> ReviewQueue: ...
    def sync(self) -> int: ...


@dataclass
class ConsolidationReport:
    """Results of a consolidation; for a dry run, what it would do. Each step has the key of its memory and a reason."""

    dry_run: bool
    considered: int = 0
    promoted: list[dict[str, str]] = field(default_factory=list)
    merged: list[dict[str, str]] = field(default_factory=list)
    queued: list[dict[str, str]] = field(default_factory=list)
    held: list[dict[str, str]] = field(default_factory=list)
    problems: list[InvalidEntry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PruneStep:
    """One step that retention requires: archive, downgrade, flag_for_review, or retire (a replaced mirror)."""

    key: str
    action: str
    reason: str
    tier: str


@dataclass
class PruneReport:
    """Results of pruning; for a dry run, what it would do."""

    dry_run: bool
    considered: int = 0
    steps: list[PruneStep] = field(default_factory=list)
    problems: list[InvalidEntry] = field(default_factory=list)


def count_consolidation(current: ObservedOperation, report: ConsolidationReport) -> None:
    """Record a consolidation in its span and in the counter of changes."""
    current.label("rlm_mem.dry_run", report.dry_run)
    if not report.dry_run:
        count("rlm_mem.consolidation.changes", len(report.promoted), change="promoted")
        count("rlm_mem.consolidation.changes", len(report.queued), change="queued")


def count_pruning(current: ObservedOperation, report: PruneReport) -> None:
    """Record a pruning run in its span and in the counter of changes."""
    current.label("rlm_mem.dry_run", report.dry_run)
    if not report.dry_run:
        count("rlm_mem.consolidation.changes", len(report.steps), change="pruned")


def health(files: MemoryFiles, changes: Changes, review: ReviewQueue) -> dict[str, Any]:
    """Health figures of one namespace.

    Returns:
        ``tiers`` (memories now, by tier), ``consolidation_rate`` (share of ended logs that were consolidated, not
        archived by age; None before the first), ``reuse`` (share of recorded uses that applied a memory of the mid tier
        or below), ``promotions_per_month``, ``uses``, ``demotions``, ``open_reviews``, ``problems``.
    """
    problems: list[Any] = []
    tiers: Counter[str] = Counter(
        entry.meta.tier for entry in files.entries(problems) if not entry.meta.component_of
    )
    consolidated = aged = uses = reused = demotions = 0
    promotions: Counter[str] = Counter()
    for step in changes.journal():
        details = step.get("details", {})
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
