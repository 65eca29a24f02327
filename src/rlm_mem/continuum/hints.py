"""Behaviour hints: what earlier work on such a goal warns of and recommends, each with its evidence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rlm_mem.continuum.runs import read_run

if TYPE_CHECKING:
    from rlm_mem.continuum.files import MemoryFiles, TieredMemory
    from rlm_mem.continuum.query import QueryMemoryTool

__all__ = ["Hint", "hints"]

_RISKY, _PROVEN, _USES = 0.85, 0.9, 3


@dataclass(frozen=True)
class Hint:
    """One piece of advice.

    Attributes:
        kind: ``risk`` or ``success``.
        evidence: keys of the memories it rests on, with their figures.
    """

    kind: Literal["risk", "success"]
    text: str
    evidence: tuple[str, ...]


def hints(queries: QueryMemoryTool, files: MemoryFiles, goal: str, *, limit: int = 5) -> list[Hint]:
    """Risk warnings first, then success patterns, from the memories that match a goal."""
    result = queries.query(
        goal, tier_weights={"high": 0.2, "mid": 0.5, "low": 0.3}, include_core=False, limit=limit
    )
    risks: list[Hint] = []
    successes: list[Hint] = []
    for hit in result.hits:
        entry = files.get(hit.key)
        if entry is None:
            continue
        risks += _risks(entry)
        if entry.meta.usage_count >= _USES and (entry.meta.rate or 0.0) >= _PROVEN:
            successes.append(_success(entry))
    return [*risks[:limit], *successes[:limit]]


def _figures(entry: TieredMemory) -> str:
    return f"{entry.key} ({entry.meta.successes} of {entry.meta.usage_count} uses went well)"


def _risks(entry: TieredMemory) -> list[Hint]:
    run = read_run(entry.body)
    found = []
    failures = Counter(
        (failure.get("step"), str(failure.get("error") or "").strip()) for failure in entry.meta.failures
    )
    for (number, error), times in failures.most_common(3):
        step = next((step for step in run.steps if step.number == number), None)
        where = f"step {number} ({step.tool})" if step else "it"
        cure = f"; on error: {step.on_error}" if step and step.on_error else ""
        again = f" {times} times" if times > 1 else ""
        found.append(
            Hint(
                "risk",
                f"{where} failed{again}: {error or 'no reason was recorded'}{cure}",
                (_figures(entry),),
            )
        )
    for context, (uses, good) in entry.meta.contexts.items():
        if uses >= _USES and good / uses < _RISKY:
            found.append(
                Hint("risk", f"went well in only {good} of {uses} uses in {context}", (_figures(entry),))
            )
    return found


def _success(entry: TieredMemory) -> Hint:
    run = read_run(entry.body)
    order = " → ".join(run.tools) if run.steps else entry.title
    shown = f"; it is done when: {'; '.join(run.indicators[:2])}" if run.indicators else ""
    return Hint("success", f"{order}{shown}", (_figures(entry),))
