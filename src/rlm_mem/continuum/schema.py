"""Definitions of the tiers, and the front matter of a memory with its validation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from rlm_mem.chunk import format_time, parse_time
from rlm_mem.errors import InputError, InvalidMemory
from rlm_mem.record import FrozenRecord

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]
TierName = Literal["high", "mid", "low", "ultra-low"]

TASK_TYPES = ("research", "development", "creative", "analysis")
"""The documented values of ``task_type``; the setting ``continuum.task_types`` registers more."""


class Tier(FrozenRecord, frozen=True):
    """One row of the tier table (docs/spec/continuum.md, Tiers).

    Attributes:
        threshold: confidence needed for promotion from this tier; None for the last tier.
        weight: default weight in a multi-tier query before normalising; None: an always-included preamble.
    """

    name: str
    band: str
    hertz: str
    update_rate: str
    retention: str
    locations: tuple[str, ...]
    volatility: str
    update_trigger: str
    retention_policy: str
    threshold: float | None
    weight: float | None


TIERS: Mapping[str, Tier] = {
    tier.name: tier
    for tier in (
        Tier(
            "high", "gamma", "30-100 Hz", "every execution", "volatile",
            ("workspace/state", "memory/short_term"), "high", "execution", "temporary", 0.75, 0.1,
        ),
        Tier(
            "mid", "beta", "12-30 Hz", "after success", "temporary",
            ("memory/long_term",), "medium", "success", "persistent", 0.95, 0.6,
        ),
        Tier(
            "low", "alpha", "8-12 Hz", "periodic", "persistent",
            ("system/memory_log.md", "system/project_learnings.md"), "low", "consolidation", "persistent", 0.99, 0.3,
        ),
        Tier(
            "ultra-low", "delta", "0.5-4 Hz", "rare", "permanent",
            ("system/SmartLibrary.md", "system/profiles"), "low", "manual", "permanent", None, None,
        ),
    )
}  # fmt: skip
"""The tier table, from the most to the least volatile."""


class Frontmatter(msgspec.Struct, kw_only=True):
    """Front matter of a memory, in the order in which it is written.

    Times are ISO 8601; ``success_rate`` is derived if ``success_count`` is known.
    """

    id: str | None = None
    memory_frequency: TierName
    volatility: Literal["high", "medium", "low"]
    update_trigger: Literal["execution", "success", "consolidation", "manual"]
    retention_policy: Literal["volatile", "temporary", "persistent", "permanent"]
    confidence_score: Share
    consolidation_threshold: Share | None = None
    usage_count: Count = 0
    success_count: Count | None = None
    success_rate: Share | None = None
    access_count: Count = 0
    last_accessed: str | None = None
    last_used: str | None = None
    created_at: str | None = None
    frequency_history: list[TierName] | None = None
    transition_timestamps: list[str] | None = None
    consolidation_log: str | None = None
    goal_signature: str | None = None
    task_type: str | None = None
    context_fingerprint: str | None = None
    learning_source: Literal["execution", "consolidation", "manual"] | None = None
    pattern_confidence: Share | None = None
    validation_count: Count = 0
    cross_project_validated: bool = False
    system_core_component: bool = False
    version: Annotated[int, msgspec.Meta(ge=1)] | None = None
    component_of: str | None = None
    contexts: dict[str, tuple[Count, Count]] = {}
    sources: list[str] = []
    failures: list[dict[str, Any]] = []

    @property
    def tier(self) -> str:
        """The current tier."""
        return self.memory_frequency

    @property
    def successes(self) -> int:
        """Number of successful uses."""
        if self.success_count is not None:
            return self.success_count
        return round((self.success_rate or 0.0) * self.usage_count)

    @property
    def rate(self) -> float | None:
        """Share of successful uses; None before the first use."""
        if self.success_count is not None:
            return self.success_count / self.usage_count if self.usage_count else None
        return self.success_rate

    @property
    def projects(self) -> list[str]:
        """Projects with at least one successful use."""
        return projects_of(self.contexts)

    @property
    def threshold(self) -> float | None:
        """Confidence needed for promotion from the current tier: the tier's, or a higher one set in the file."""
        rule = TIERS[self.memory_frequency].threshold
        if rule is None or self.consolidation_threshold is None:
            return rule
        return max(rule, self.consolidation_threshold)

    @property
    def since(self) -> str:
        """Time at which the memory entered its current tier."""
        if self.transition_timestamps:
            return self.transition_timestamps[-1]
        return self.created_at or ""


REQUIRED = ("memory_frequency", "volatility", "update_trigger", "retention_policy", "confidence_score")
_TIMES = ("last_accessed", "last_used", "created_at")


def projects_of(contexts: Mapping[str, Sequence[int]]) -> list[str]:
    """The projects of contexts (``project@fingerprint`` → uses, successes) with at least one success, sorted."""
    return sorted({key.partition("@")[0] for key, (_, good) in contexts.items() if good} - {""})


def stamp(moment: datetime) -> str:
    """Format a time for front matter: ISO 8601, without a zero fraction."""
    return format_time(moment).replace(".000000Z", "Z")


def tier_fields(name: str) -> dict[str, Any]:
    """Fields that are set on a memory when it enters a tier."""
    tier = TIERS[name]
    return {
        "memory_frequency": tier.name,
        "volatility": tier.volatility,
        "update_trigger": tier.update_trigger,
        "retention_policy": tier.retention_policy,
    }


def validate(data: Mapping[str, Any], where: str, task_types: Sequence[str] = ()) -> Frontmatter:
    """Check the front matter of one memory; unknown keys are ignored.

    Args:
        where: name of the file for error messages.
        task_types: registered values of ``task_type``.

    Raises:
        InvalidMemory: names the file, the field and the rule.
    """
    for name in REQUIRED:
        if data.get(name) is None:
            raise InvalidMemory(f"{where}: {name}: this field is required")
    for name, value in data.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidMemory(f"{where}: {name}: must be a finite number, not {value}")
    known = {name: data[name] for name in Frontmatter.__struct_fields__ if data.get(name) is not None}
    try:
        meta = msgspec.convert(known, Frontmatter)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        raise InvalidMemory(f"{where}: {path.strip('`').lstrip('$.') or 'front matter'}: {message}") from None
    check_frontmatter(meta, where, task_types)
    return meta


def check_frontmatter(meta: Frontmatter, where: str, task_types: Sequence[str] = ()) -> None:
    """Validate rules across fields; raises InvalidMemory."""

    def wrong(field: str, rule: str) -> InvalidMemory:
        return InvalidMemory(f"{where}: {field}: {rule}")

    for name in _TIMES:
        _check_time(getattr(meta, name), f"{where}: {name}")
    rule = TIERS[meta.memory_frequency].threshold
    if rule is not None and meta.consolidation_threshold is not None and meta.consolidation_threshold < rule:
        raise wrong(
            "consolidation_threshold",
            f"{meta.consolidation_threshold:g} is below {rule:g}, the rule of the tier {meta.memory_frequency}; "
            "a file may raise it only",
        )
    if meta.success_count is not None and meta.success_count > meta.usage_count:
        raise wrong("success_count", f"{meta.success_count} is more than usage_count {meta.usage_count}")
    if meta.success_count is not None and meta.success_rate is not None:
        derived = meta.success_count / meta.usage_count if meta.usage_count else 0.0
        if abs(derived - meta.success_rate) > 0.006:
            raise wrong(
                "success_rate",
                f"{meta.success_rate:g} does not follow from {meta.success_count} of {meta.usage_count} uses",
            )
    if meta.task_type is not None and meta.task_type not in (*TASK_TYPES, *task_types):
        raise wrong(
            "task_type",
            f"{meta.task_type!r:.40} is not one of {', '.join((*TASK_TYPES, *task_types))}; "
            "register more in the setting continuum.task_types",
        )
    for context, (uses, good) in meta.contexts.items():
        if good > uses:
            raise wrong(f"contexts.{context}", f"{good} successes of {uses} uses")
    _check_history(meta, where)


def _check_history(meta: Frontmatter, where: str) -> None:
    history, times = meta.frequency_history, meta.transition_timestamps
    if history and history[-1] != meta.memory_frequency:
        raise InvalidMemory(
            f"{where}: frequency_history: ends in {history[-1]}, but memory_frequency is {meta.memory_frequency}"
        )
    if times is None:
        return
    if len(history or ()) != len(times):
        raise InvalidMemory(
            f"{where}: transition_timestamps: {len(times)} times for {len(history or ())} tiers of frequency_history"
        )
    moments = [_check_time(time, f"{where}: transition_timestamps") for time in times]
    for earlier, later in itertools.pairwise(moments):
        if earlier is not None and later is not None and later < earlier:
            raise InvalidMemory(f"{where}: transition_timestamps: must rise, but {later} follows {earlier}")


def _check_time(value: str | None, where: str) -> datetime | None:
    if value is None:
        return None
    try:
        return parse_time(value)
    except (InputError, ValueError):
        raise InvalidMemory(f"{where}: {value!r:.40} is not an ISO 8601 time") from None
