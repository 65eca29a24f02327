"""Tiered memories in number: consolidation and pruning as dry runs, and the weighted query.

Memories (logs, traces, patterns, learnings) are written as files and mirrored, then processed by a process that has
read none of them. Goals at 10,000: consolidate and prune dry run within 10 s each, weighted query p95 under 30 ms.

    python benchmarks/continuum_scale.py                       # 1,000 and 10,000 memories
    python benchmarks/continuum_scale.py --sizes 100000        # ten minutes
"""

from __future__ import annotations

import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rlm_mem.config import Config
from rlm_mem.continuum import Continuum
from rlm_mem.continuum.files import new_text
from rlm_mem.continuum.runs import ExecutionRecord, ToolCall, write_run
from rlm_mem.continuum.schema import TIERS, tier_fields
from rlm_mem.continuum.traces import goal_signature
from rlm_mem.store.core.chunk_store import ChunkStore
from support import Report, arguments, spread, timed, timings

VERBS = (
    "deploy", "migrate", "audit", "translate", "summarise", "index", "benchmark", "refactor", "review", "schedule",
    "archive", "validate",
)  # fmt: skip
THINGS = (
    "ledger", "gateway", "invoice", "catalogue", "pipeline", "dashboard", "contract", "newsletter", "sensor", "report",
    "library", "model", "warehouse", "ticket", "calendar", "playlist", "survey", "recipe", "glossary", "timetable",
)  # fmt: skip
PLACES = ("in staging", "for the north office", "before the audit", "with partners", "after hours")
GOAL_SIZE = 10_000
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def fill(brain: Path, size: int) -> None:
    """Write the files of ``size`` memories, as a year of work would leave them."""
    chance = random.Random(7)
    learned = []
    for number in range(size):
        goal = f"{chance.choice(VERBS)} the {chance.choice(THINGS)} {number % 997} {chance.choice(PLACES)}"
        tier = chance.choices(("high", "mid", "low"), (0.5, 0.4, 0.1))[0]
        uses = chance.randint(1, 30)
        good = min(uses, round(uses * chance.uniform(0.6, 1.0)))
        created = NOW - timedelta(minutes=chance.randint(1, 400_000))
        fields = {
            **tier_fields(tier),
            "confidence_score": round(chance.uniform(0.5, 0.99), 3),
            "consolidation_threshold": TIERS[tier].threshold,
            "usage_count": uses,
            "success_count": good,
            "success_rate": round(good / uses, 6),
            "created_at": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "goal_signature": goal_signature(goal),
            "contexts": {"alpha": [uses, good]},
        }
        steps = tuple(
            ToolCall(n, tool, call=f"{tool} {n}") for n, tool in enumerate(chance.sample(THINGS, 4), 1)
        )
        body = write_run(ExecutionRecord(goal, steps, indicators=("it answers",)))
        if tier == "low":
            learned.append(new_text({"id": f"entry-{number}", **fields}, body + "\n"))
            continue
        at = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
        name = (
            f"memory/short_term/{at:%Y-%m-%d_%H-%M-%S}_agent_interaction.md"
            if tier == "high"
            else f"memory/long_term/execution_trace_work_{number}_v1.md"
        )
        path = brain / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(new_text(fields, body), encoding="utf-8")
    path = brain / "system" / "memory_log.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# Memory log\n\n" + "".join(learned), encoding="utf-8")


def measure(size: int, folder: Path) -> dict[str, float | int]:
    """One row: milliseconds, and how much was found."""
    config = Config.load(None, environ={}, store={"durability": "normal"})

    def opened() -> Continuum:
        return Continuum(ChunkStore(folder / "memory", config=config, clock=lambda: NOW))

    fill(folder, size)
    continuum = opened()
    first_ms, _ = timed(continuum.sync)
    continuum.store.checkpoint()
    continuum.store.close()
    continuum = opened()  # as a process that has read none of them
    consolidate_ms, found = timed(lambda: continuum.consolidate(dry_run=True))
    prune_ms, pruned = timed(continuum.prune)
    sync_ms, _ = timed(continuum.sync)
    chance = random.Random(11)
    goals = [f"{chance.choice(VERBS)} {chance.choice(THINGS)} {chance.choice(PLACES)}" for _ in range(300)]
    continuum.queries.query(goals[0])
    weighted = spread(timings(continuum.queries.query, goals))
    proven = spread(timings(continuum.queries.proven, goals[:100]))
    continuum.store.close()
    return {
        "memories": size,
        "first_sync_s": round(first_ms / 1e3, 1),
        "sync without changes": sync_ms,
        "consolidation, dry run": consolidate_ms,
        "transitions found": len(found.promoted) + len(found.queued),
        "pruning, dry run": prune_ms,
        "memories to prune": len(pruned.steps),
        "weighted query p50": weighted["p50_ms"],
        "weighted query p95": weighted["p95_ms"],
        "proven query p50": proven["p50_ms"],
        "proven query p95": proven["p95_ms"],
    }


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--sizes", type=int, nargs="+", default=None, help="numbers of memories")
    options = parser.parse_args()
    sizes = options.sizes or ([1_000] if options.quick else [1_000, 10_000])
    report = Report("continuum_scale", "Tiered memories as they grow (milliseconds)")
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="continuum-") as folder:
            row = measure(size, Path(folder))
        report.add(**row)
        if size == GOAL_SIZE:
            slow = max(row["consolidation, dry run"], row["pruning, dry run"])
            report.facts[f"goal at {size:,}: dry runs within 10 s"] = (
                "met" if slow < 10_000 else f"MISSED, {slow:.0f} ms"
            )
            report.facts[f"goal at {size:,}: weighted query p95 under 30 ms"] = (
                "met" if row["weighted query p95"] < 30 else f"MISSED, {row['weighted query p95']} ms"
            )
    report.finish(options.output)


if __name__ == "__main__":
    main()
