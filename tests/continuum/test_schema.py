"""Front matter of a memory: required, allowed and refused fields (docs/spec/continuum.md, Front matter)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_mem.continuum.schema import REQUIRED, TIERS, validate
from rlm_mem.errors import InvalidMemory

from .conftest import StillClock, open_continuum

GOOD: dict[str, Any] = {
    "memory_frequency": "mid", "volatility": "medium", "update_trigger": "success",
    "retention_policy": "persistent", "confidence_score": 0.85, "consolidation_threshold": 0.95,
    "usage_count": 15, "success_rate": 0.93, "last_accessed": "2025-11-09T16:00:00Z",
    "created_at": "2025-11-09T14:30:00Z", "frequency_history": ["high", "mid"],
    "transition_timestamps": ["2025-11-09T14:30:00Z", "2025-11-09T15:00:00Z"],
    "goal_signature": "research_web_content_summarize", "task_type": "research", "context_fingerprint": "abc123",
    "learning_source": "consolidation", "pattern_confidence": 0.85, "validation_count": 3,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "band", "hertz", "rate", "retention", "location"),
    [
        ("high", "gamma", "30-100 Hz", "every execution", "volatile", "memory/short_term"),
        ("mid", "beta", "12-30 Hz", "after success", "temporary", "memory/long_term"),
        ("low", "alpha", "8-12 Hz", "periodic", "persistent", "system/memory_log.md"),
        ("ultra-low", "delta", "0.5-4 Hz", "rare", "permanent", "system/SmartLibrary.md"),
    ],
)
def test_the_tier_table_is_that_of_the_schema(
    name: str, band: str, hertz: str, rate: str, retention: str, location: str
) -> None:
    tier = TIERS[name]
    assert (tier.band, tier.hertz, tier.update_rate, tier.retention) == (band, hertz, rate, retention)
    assert location in tier.locations


def test_mid_memories_are_persistent_whatever_the_table_calls_them() -> None:
    assert TIERS["mid"].retention_policy == "persistent"
    assert TIERS["high"].retention_policy == "temporary"


def test_the_example_of_the_schema_validates() -> None:
    meta = validate(GOOD, "x.md")
    assert (meta.tier, meta.successes, meta.rate, meta.threshold) == ("mid", 14, 0.93, 0.95)


@pytest.mark.parametrize("field", REQUIRED)
def test_every_required_field_is_required(field: str) -> None:
    data = {name: value for name, value in GOOD.items() if name != field}
    with pytest.raises(InvalidMemory, match=rf"x\.md: {field}: this field is required"):
        validate(data, "x.md")


def test_every_optional_field_is_optional() -> None:
    assert validate({name: GOOD[name] for name in REQUIRED}, "x.md").usage_count == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("memory_frequency", "middle"), ("volatility", "ultra-low"), ("update_trigger", "reboot"),
        ("retention_policy", "forever"), ("learning_source", "hearsay"), ("confidence_score", 1.01),
        ("confidence_score", -0.1), ("confidence_score", "high"), ("confidence_score", float("nan")),
        ("consolidation_threshold", 1.5), ("usage_count", -1), ("usage_count", 1.5), ("usage_count", True),
        ("success_rate", 2.0), ("success_rate", float("inf")), ("pattern_confidence", 7), ("validation_count", "many"),
        ("created_at", "yesterday"), ("last_accessed", "25:00"), ("frequency_history", "mid"),
        ("frequency_history", ["high", "medium"]), ("goal_signature", 7), ("cross_project_validated", "yes"),
        ("contexts", {"alpha": [1, 2]}), ("contexts", {"alpha": [1]}), ("version", 0), ("success_count", 16),
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_type_range_or_value_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidMemory, match=rf"x\.md: {field}"):
        validate({**GOOD, field: value}, "x.md")


@pytest.mark.parametrize(
    ("history", "times", "rule"),
    [
        (["high", "mid"], ["2025-11-09T14:30:00Z"], "1 times for 2 tiers"),
        (["high", "mid"], ["2025-11-09T14:30:00Z", "2025-11-08T14:30:00Z"], "must rise"),
        (["mid", "high"], ["2025-11-09T14:30:00Z", "2025-11-10T14:30:00Z"], "ends in high"),
        (None, ["2025-11-09T14:30:00Z"], "1 times for 0 tiers"),
    ],
)
def test_histories_are_of_equal_length_rise_and_end_in_the_present_tier(
    history: list[str] | None, times: list[str], rule: str
) -> None:
    with pytest.raises(InvalidMemory, match=rule):
        validate({**GOOD, "frequency_history": history, "transition_timestamps": times}, "x.md")


def test_a_history_without_times_is_accepted_as_in_the_last_example() -> None:
    assert validate({**GOOD, "transition_timestamps": None}, "x.md").frequency_history == ["high", "mid"]


@pytest.mark.parametrize(("tier", "rule"), [("high", 0.75), ("mid", 0.95), ("low", 0.99)])
def test_a_file_may_raise_the_threshold_of_its_tier_and_not_lower_it(tier: str, rule: float) -> None:
    data = {**GOOD, "memory_frequency": tier, "frequency_history": None, "transition_timestamps": None}
    assert validate({**data, "consolidation_threshold": None}, "x.md").threshold == rule
    assert validate({**data, "consolidation_threshold": 1.0}, "x.md").threshold == 1.0
    with pytest.raises(InvalidMemory, match=r"consolidation_threshold.*may raise it only"):
        validate({**data, "consolidation_threshold": rule - 0.01}, "x.md")


def test_success_rate_is_derived_and_may_not_contradict_success_count() -> None:
    assert validate({**GOOD, "success_count": 12, "success_rate": 0.8}, "x.md").rate == 0.8
    with pytest.raises(InvalidMemory, match=r"success_rate: 0.93 does not follow from 12 of 15"):
        validate({**GOOD, "success_count": 12}, "x.md")


@pytest.mark.parametrize("task", ["research", "development", "creative", "analysis"])
def test_the_documented_task_types_validate(task: str) -> None:
    assert validate({**GOOD, "task_type": task}, "x.md").task_type == task


def test_other_task_types_validate_once_the_configuration_registers_them(
    brain: Path, still: StillClock
) -> None:
    continuum = open_continuum(brain, still)
    with pytest.raises(InvalidMemory, match=r"task_type: 'gardening'.*continuum\.task_types"):
        continuum.traces.record("Prune the roses", task_type="gardening")
    continuum.store.close()
    continuum = open_continuum(brain, still, continuum={"task_types": ["gardening"]})
    assert continuum.traces.record("Prune the roses", task_type="gardening").meta.task_type == "gardening"
    continuum.store.close()
