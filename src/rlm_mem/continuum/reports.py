"""What a consolidation found and did."""

from __future__ import annotations

from dataclasses import dataclass, field

from rlm_mem.continuum.files import InvalidEntry
from rlm_mem.continuum.rules import Check, all_met

__all__ = ["PromotionCandidate", "ConsolidationReport"]


@dataclass(frozen=True)
class PromotionCandidate:
    """A memory that a rule was tried on.

    Attributes:
        to: the tier that it would enter. ``action``: promote, merge (into a trace that is there) or review.
        checks: every condition of the rule.
    """

    key: str
    title: str
    tier: str
    to: str
    action: str
    checks: tuple[Check, ...]

    @property
    def ready(self) -> bool:
        """Whether every condition holds."""
        return all_met(self.checks)


@dataclass
class ConsolidationReport:
    """What a run did, or (dry) would do. Each step names its memory and its reason."""

    dry_run: bool
    considered: int = 0
    promoted: list[dict[str, str]] = field(default_factory=list)
    merged: list[dict[str, str]] = field(default_factory=list)
    queued: list[dict[str, str]] = field(default_factory=list)
    held: list[dict[str, str]] = field(default_factory=list)
    problems: list[InvalidEntry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
