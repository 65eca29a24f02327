"""What telemetry is told of a consolidation or a run of retention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.telemetry import count

if TYPE_CHECKING:
    from rlm_mem.continuum.prune import PruneReport
    from rlm_mem.continuum.reports import ConsolidationReport
    from rlm_mem.telemetry import ObservedOperation

__all__ = ["consolidated", "pruned"]


def consolidated(current: ObservedOperation, report: ConsolidationReport) -> None:
    """Put the figures of a consolidation into its span, and its changes into a counter."""
    current.label("rlm_mem.dry_run", report.dry_run)
    if not report.dry_run:
        count("rlm_mem.consolidation.changes", len(report.promoted), change="promoted")
        count("rlm_mem.consolidation.changes", len(report.queued), change="queued")


def pruned(current: ObservedOperation, report: PruneReport) -> None:
    """The same for retention."""
    current.label("rlm_mem.dry_run", report.dry_run)
    if not report.dry_run:
        count("rlm_mem.consolidation.changes", len(report.steps), change="pruned")
