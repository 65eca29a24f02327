"""Rules of promotion and retention as pure functions, and the effect of a use (docs/spec/continuum.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rlm_mem.chunk import parse_time
from rlm_mem.chunk.types import amount
from rlm_mem.continuum.runs import ExecutionRecord
from rlm_mem.continuum.schema import TIERS, Frontmatter, projects_of, tier_fields

MIN_USES = 20
"""Mid→Low: usage_count ≥ 20 (docs/spec/continuum.md, Promotion)."""
MIN_SUCCESS = 0.95
"""Mid→Low: success_rate ≥ 0.95."""
MIN_CONTEXTS = 2
"""Mid→Low: successful in at least two contexts, counted by project and fingerprint."""
MIN_VALIDATIONS = 5
"""Mid→Low: "high validation_count": successes on data other than that it was learned from."""
CONTEXT_SUCCESS, CONTEXT_USES = 0.8, 3
"""Mid→Low: "consistent success across contexts": the least success rate in every context with three uses."""
NEAR_PERFECT = 0.98
"""Low→Ultra-Low: "near-perfect success rate" (the document's example has 0.99)."""
MIN_ACCESSES = 5
"""Chunk→Low: a plain chunk must also have been read this often."""

TEMPORARY_DAYS = 30
DOWNGRADE_DAYS, DOWNGRADE_USES = 60, 5
DOWNGRADE_SUCCESS, DOWNGRADE_MIN_USES = 0.70, 3
REVIEW_SUCCESS = 0.85

GAIN, LOSS = 0.07, 0.03
"""A success moves confidence towards 1 by the share GAIN, a failure lowers it by the share LOSS. So 0.80 becomes
0.85 after four more successes and 0.96 after twenty more, and 0.99 is reached by about 98 successes in 100
(docs/spec/decisions.md, 39)."""

MAX_CONTEXTS, MAX_FAILURES = 50, 10


@dataclass(frozen=True)
class Check:
    """One condition of a rule: whether it is met, with the figures."""

    rule: str
    met: bool
    detail: str


def all_met(checks: Sequence[Check]) -> bool:
    """Whether every condition is met."""
    return all(check.met for check in checks)


def unmet(checks: Sequence[Check]) -> str:
    """The unmet conditions with their figures, as text."""
    return "; ".join(f"{check.rule}: {check.detail}" for check in checks if not check.met)


def _check_confidence(meta: Frontmatter) -> Check:
    need = meta.threshold if meta.threshold is not None else 1.0
    return Check("confidence", meta.confidence_score >= need, f"{meta.confidence_score:.2f} of {need:.2f}")


# --- up --------------------------------------------------------------------------------------------------------------


def high_to_mid(meta: Frontmatter, run: ExecutionRecord, siblings: Sequence[Frontmatter] = ()) -> list[Check]:
    """Conditions for High→Mid: successful, confidence ≥ 0.75, complete tool calls, success indicators, reproducible.

    Args:
        siblings: the other logs with the same goal and tools, as evidence of further attempts.
    """
    rate = meta.rate
    checks = [
        Check(
            "success",
            rate is not None and rate > 0.5,
            "no outcome is recorded" if rate is None else f"{rate:.0%} of uses",
        ),
        _check_confidence(meta),
        _check_steps(run),
        Check("success indicators", bool(run.indicators), f"{len(run.indicators)} named"),
        _check_reproducible(meta, run, siblings),
    ]
    if meta.retention_policy == "volatile":
        checks.append(Check("retention", False, "volatile memories are never consolidated"))
    moved_before = len(meta.frequency_history or ()) > 1
    if moved_before and (meta.last_used is None or parse_time(meta.last_used) <= parse_time(meta.since)):
        checks.append(Check("evidence", False, "not used since it was demoted"))
    return checks


def _check_steps(run: ExecutionRecord) -> Check:
    """Whether the steps are numbered without gaps, name tool and call, succeeded, and depend on earlier steps only."""
    name = "complete tool call sequence"
    if not run.steps:
        return Check(name, False, "no steps are recorded")
    for expected, step in enumerate(run.steps, 1):
        if step.number != expected:
            return Check(name, False, f"step {expected} is missing")
        if not step.tool or not step.call:
            return Check(name, False, f"step {expected} names no {'call' if step.tool else 'tool'}")
        if not step.went_well:
            return Check(name, False, f"step {expected} ended as {step.status or 'open'!r}")
        if any(not 1 <= other < expected for other in step.depends_on):
            return Check(name, False, f"step {expected} depends on a later or missing step")
    return Check(name, True, amount(len(run.steps), "step"))


def _check_reproducible(meta: Frontmatter, run: ExecutionRecord, siblings: Sequence[Frontmatter]) -> Check:
    """Whether preconditions or calls are stated and more than half of all attempts succeeded."""
    good = meta.successes + sum(other.successes for other in siblings)
    tried = meta.usage_count + sum(other.usage_count for other in siblings)
    if not (run.preconditions or all(step.call for step in run.steps)):
        return Check("reproducible", False, "neither preconditions nor calls describe how to repeat it")
    if tried and good / tried <= 0.5:
        return Check("reproducible", False, f"{good} of {tried} tries went well")
    return Check("reproducible", True, f"{good} of {tried} tries went well")


def mid_to_low(meta: Frontmatter) -> list[Check]:
    """Conditions for Mid→Low: uses, success rate, confidence, contexts and validations."""
    rate = meta.rate or 0.0
    good = [key for key, (_, successes) in meta.contexts.items() if successes]
    weak = [
        key
        for key, (uses, successes) in meta.contexts.items()
        if uses >= CONTEXT_USES and successes / uses < CONTEXT_SUCCESS
    ]
    return [
        Check("usage_count", meta.usage_count >= MIN_USES, f"{meta.usage_count} of {MIN_USES}"),
        Check("success_rate", rate >= MIN_SUCCESS, f"{rate:.2f} of {MIN_SUCCESS}"),
        _check_confidence(meta),
        Check("contexts", len(good) >= MIN_CONTEXTS, f"{len(good)} of {MIN_CONTEXTS}"),
        Check(
            "consistent success",
            not weak,
            f"below {CONTEXT_SUCCESS:.0%} in {', '.join(weak[:3])}" if weak else "in every context",
        ),
        Check(
            "validation_count",
            meta.validation_count >= MIN_VALIDATIONS,
            f"{meta.validation_count} of {MIN_VALIDATIONS}",
        ),
    ]


def chunk_to_low(meta: Frontmatter, accesses: int) -> list[Check]:
    """Conditions for a plain chunk of type pattern or fact: those of Mid→Low, and a minimum of reads."""
    return [
        *mid_to_low(meta),
        Check("access_count", accesses >= MIN_ACCESSES, f"{accesses} of {MIN_ACCESSES}"),
    ]


def low_to_ultra(meta: Frontmatter) -> list[Check]:
    """Conditions for Low→Ultra-Low: confidence ≥ 0.99, validated across projects, near-perfect success rate."""
    rate = meta.rate or 0.0
    return [
        _check_confidence(meta),
        Check(
            "cross_project_validated",
            meta.cross_project_validated,
            f"projects: {', '.join(meta.projects[:5]) or 'none'}",
        ),
        Check("near-perfect success", rate >= NEAR_PERFECT, f"{rate:.3f} of {NEAR_PERFECT}"),
    ]


# --- down ------------------------------------------------------------------------------------------------------------


def prune_action(meta: Frontmatter, now: datetime) -> tuple[str, str] | None:
    """The action that retention requires (``archive``, ``downgrade``, ``flag_for_review``) and its reason, or None.

    The rules of docs/spec/continuum.md, Retention. Ultra-low memories are never touched.
    """
    age = now - parse_time(meta.since)
    if meta.tier == "high":
        if meta.retention_policy == "temporary" and age > timedelta(days=TEMPORARY_DAYS):
            return "archive", f"{age.days} days old and not consolidated (more than {TEMPORARY_DAYS})"
        return None
    if meta.tier == "mid":
        rate = meta.rate
        if rate is not None and rate < DOWNGRADE_SUCCESS and meta.usage_count >= DOWNGRADE_MIN_USES:
            return (
                "downgrade",
                f"success {rate:.2f} below {DOWNGRADE_SUCCESS:.2f} after {meta.usage_count} uses",
            )
        if meta.usage_count < DOWNGRADE_USES and age > timedelta(days=DOWNGRADE_DAYS):
            return (
                "downgrade",
                f"{amount(meta.usage_count, 'use')} in {age.days} days (fewer than {DOWNGRADE_USES})",
            )
        return None
    if meta.tier == "low":
        rate = meta.rate
        if rate is not None and rate < REVIEW_SUCCESS and meta.validation_count:
            return "flag_for_review", f"success {rate:.2f} below {REVIEW_SUCCESS:.2f} after validation"
    return None


# --- uses ------------------------------------------------------------------------------------------------------------


def after_use(
    meta: Frontmatter,
    success: bool,
    at: str,
    *,
    context: str = "",
    validated: bool | None = None,
    error: str | None = None,
    step: int | None = None,
) -> dict[str, Any]:
    """Fields that change after one use with a known outcome (docs/spec/continuum.md, Uses and confidence).

    Args:
        context: ``project@fingerprint``; a success in another context than the first is a validation on new data.
        validated: whether the use is a validation; None: decided by the context.
    """
    contexts: dict[str, tuple[int, int]] = dict(meta.contexts)
    home = next(iter(contexts), context)
    if context:
        uses, good = contexts.get(context, (0, 0))
        contexts[context] = (uses + 1, good + success)
        while len(contexts) > MAX_CONTEXTS:
            del contexts[min(list(contexts)[1:-1], key=lambda key: contexts[key][0])]
    successes, uses = meta.successes + success, meta.usage_count + 1
    if validated is None:
        validated = success and bool(context) and context != home
    changes: dict[str, Any] = {
        "confidence_score": round(after_outcome(meta.confidence_score, success), 6),
        "usage_count": uses,
        "success_count": successes,
        "success_rate": round(successes / uses, 6),
        "last_used": at,
    }
    if contexts:
        changes["contexts"] = {key: list(value) for key, value in contexts.items()}
    if validated:
        changes["validation_count"] = meta.validation_count + 1
    if meta.pattern_confidence is not None:
        changes["pattern_confidence"] = changes["confidence_score"]
    if len(projects_of(contexts)) > 1 and not meta.cross_project_validated and meta.tier in ("low", "mid"):
        changes["cross_project_validated"] = True
    if not success:
        failure = {"at": at, "error": (error or "")[:300], "step": step, "context": context}
        kept = [*meta.failures, {name: value for name, value in failure.items() if value not in (None, "")}]
        changes["failures"] = kept[-MAX_FAILURES:]
    return changes


def after_outcome(confidence: float, success: bool) -> float:
    """The confidence of a memory after a use that succeeded or failed."""
    return confidence + GAIN * (1 - confidence) if success else confidence * (1 - LOSS)


def moved(meta: Frontmatter, tier: str, at: str, reason: str) -> dict[str, Any]:
    """Fields that a transition changes: tier, history, times and log."""
    history: list[str] = [*(meta.frequency_history or [meta.memory_frequency])]
    times = list(meta.transition_timestamps or [meta.created_at or at])
    if len(times) != len(history):  # the example of the specification lists tiers without times
        times = [meta.created_at or at] * len(history)
    at = max(at, times[-1], key=parse_time)  # times must not decrease, even if the clock was set back
    log = f"{at[:19]}Z {meta.tier} to {tier}: {reason}"
    return {
        **tier_fields(tier),
        "consolidation_threshold": TIERS[tier].threshold,
        "frequency_history": [*history, tier],
        "transition_timestamps": [*times, at],
        "consolidation_log": "\n".join(part for part in (meta.consolidation_log, log) if part)[-4000:],
    }
