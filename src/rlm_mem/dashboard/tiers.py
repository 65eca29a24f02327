"""Tiers: how many memories each holds, now and over time, every transition with its reason, and what is due."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from typing import TYPE_CHECKING, Any

from rlm_mem.continuum.schema import TIERS
from rlm_mem.dashboard.charts import populations_chart
from rlm_mem.dashboard.words import day
from rlm_mem.errors import InputError

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.dashboard.visits import Visit
    from rlm_mem.memory import Memory

__all__ = ["plan_page", "populations", "tiers_page", "undo"]

_STEPS = 100
_POINTS = 48
_SHOWN = 60
_MOVES = frozenset({"record", "promote", "merge", "demote", "archive", "undo", "restore", "delete"})


@dataclass(frozen=True)
class _Entry:
    """One tiered memory in a list."""

    chunk_id: str
    key: str
    title: str
    tier: str
    confidence: float
    uses: int
    rate: float | None


def tiers_page(visit: Visit) -> Response:
    """Populations, memories and transitions."""
    memory = visit.memory
    continuum = memory.continuum
    health = continuum.health()
    steps = deque(
        (step for step in continuum.changes.journal() if step.get("op") not in ("use", "retire")),
        maxlen=5_000,
    )
    undoable = set(continuum.changes.transitions())
    today = memory.store.clock().astimezone(UTC).date()
    points = populations(health["tiers"], steps, today)
    entries = _entries(memory)
    return visit.answer(
        "tiers.html",
        tiers=[
            (tier, health["tiers"][tier.name], [one for one in entries if one.tier == tier.name][:_SHOWN])
            for tier in TIERS.values()
        ],
        health=health,
        chart=populations_chart(points, title="Memories in each tier over time") if steps else "",
        steps=list(steps)[: -_STEPS - 1 : -1],
        undoable=undoable,
        empty=not steps and not entries,
        live="tiers memories",
    )


def plan_page(visit: Visit) -> Response:
    """What consolidation and pruning would do now; nothing is changed."""
    continuum = visit.memory.continuum
    return visit.page(
        "plan.html", consolidation=continuum.consolidate(dry_run=True), pruning=continuum.prune(dry_run=True)
    )


def undo(visit: Visit) -> Response:
    """Put the files of one transition back as they were."""
    reason = visit.text("reason", 500).strip()
    if not reason:
        raise InputError("undoing needs a reason", hint="It is written into the journal.")
    visit.memory.continuum.undo(visit.text("transition", 200), reason)
    return visit.go("/tiers", "undone")


def populations(
    present: Mapping[str, int], steps: Iterable[Mapping[str, Any]], today: date
) -> list[tuple[str, dict[str, int]]]:
    """How many memories each tier held, from the first step of the journal to today.

    Counted backwards from the present, so that the last point is what stands in the files; a step whose memory was
    edited or deleted by hand since cannot make a number negative.

    Returns:
        Label and populations of equally long stretches of time, the oldest first, at most 48.
    """
    by_day: dict[date, Counter[str]] = {}
    for step in steps:
        if step.get("op") in _MOVES:
            when = date.fromisoformat(day(step.get("ts")) or today.isoformat())
            by_day.setdefault(when, Counter()).update(_moved(step))
    first = min(by_day, default=today)
    stretch = max(1, -(-((today - first).days + 1) // _POINTS))
    counts = dict(present)
    points = []
    end = today
    while end >= first - timedelta(stretch - 1):
        points.append((end.isoformat()[: 10 if stretch < 28 else 7], dict(counts)))
        for back in range(stretch):
            for tier, change in by_day.get(end - timedelta(back), Counter()).items():
                counts[tier] = max(0, counts.get(tier, 0) - change)
        end -= timedelta(stretch)
    return points[::-1]


def _moved(step: Mapping[str, Any]) -> dict[str, int]:
    """What a step added to each tier; sources of one promotion leave together."""
    change: Counter[str] = Counter()
    sources = len((step.get("details") or {}).get("sources") or ())
    if step.get("from") in TIERS:
        change[str(step["from"])] -= max(1, sources)
    if step.get("to") in TIERS and step.get("op") != "merge":
        change[str(step["to"])] += 1
    return dict(change)


def _entries(memory: Memory) -> list[_Entry]:
    found = [
        _Entry(
            entry.chunk_id, entry.key, entry.title, entry.meta.tier,
            entry.meta.confidence_score, entry.meta.usage_count, entry.meta.rate,
        )
        for entry in memory.continuum.files.entries([])
        if not entry.meta.component_of
    ]  # fmt: skip
    return sorted(found, key=lambda one: (-one.confidence, one.key))
