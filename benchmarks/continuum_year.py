"""A simulated year of tiered memories: promotions, demotions and archiving, compared with the planted worth of goals.

365 days, a few hundred goals of planted worth: good ones (succeed 99 times in 100, in several projects), mediocre ones
(85 in 100) and bad ones (half). Goals are drawn from a skewed distribution: some are worked on daily, many twice a
year. Each piece of work is logged, or applies the memory that was made of it; consolidation and pruning run every
night, and a reviewer decides on the review queue once a week. Good goals with enough uses should reach the low tier and
no others: precision and recall of that, the populations day by day (a plot), and lost memories (there may be none).
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rlm_mem.config import Config
from rlm_mem.continuum import Continuum
from rlm_mem.continuum.files import TieredMemory
from rlm_mem.continuum.traces import goal_signature
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
from support import RESULTS, Report, arguments

WORTH = {"good": 0.99, "mediocre": 0.85, "bad": 0.5}
SHARES = (0.4, 0.35, 0.25)
FIRST = datetime(2026, 1, 1, 8, tzinfo=UTC)
PLOT = Path(__file__).parents[1] / "docs" / "continuum_year.svg"
COLOURS = {"high": "#c2410c", "mid": "#1d4ed8", "low": "#15803d", "ultra-low": "#7e22ce"}
VERBS = (
    "deploy", "migrate", "audit", "translate", "summarise", "index", "compare", "repair", "review", "schedule",
)  # fmt: skip
THINGS = (
    "ledger", "gateway", "invoice", "catalogue", "pipeline", "dashboard", "contract", "newsletter", "sensor",
    "warehouse", "ticket", "calendar", "playlist", "survey", "recipe", "glossary", "timetable", "brochure",
)  # fmt: skip


@dataclass
class Goal:
    """One kind of work with its planted worth and what happened."""

    text: str
    worth: str
    signature: str
    uses: int = 0
    projects: int = 0


class Clock:
    """The simulated time."""

    def __init__(self) -> None:
        self.now = FIRST

    def __call__(self) -> datetime:
        return self.now


def goals(count: int, chance: random.Random) -> list[Goal]:
    """Goals of planted worth."""
    made = []
    for number in range(count):
        text = f"{VERBS[number % 10]} the {THINGS[number // 10 % 18]} of office {number // 180 + 1}"
        worth = chance.choices(tuple(WORTH), SHARES)[0]
        made.append(Goal(text, worth, goal_signature(text)))
    return made


def memory_of(continuum: Continuum, goal: Goal, known: dict[str, str]) -> TieredMemory | None:
    """The mid- or low-tier memory that the agent finds for a goal."""
    key = known.get(goal.signature)
    return continuum.files.get(key) if key else None


def work(continuum: Continuum, goal: Goal, chance: random.Random, known: dict[str, str]) -> None:
    """Work on a goal once: apply its memory, or log the execution."""
    success = chance.random() < WORTH[goal.worth]
    project = f"project {chance.randint(1, 4)}"
    goal.uses += 1
    error = None if success else "it did not answer"
    memory = memory_of(continuum, goal, known)
    if memory is not None:
        continuum.traces.use(memory.key, success, project=project, error=error)
        return
    steps = [{"tool": "Open", "call": goal.text}, {"tool": "Check", "call": "the result", "depends_on": [1]}]
    continuum.traces.record(
        goal.text, steps, success=success, indicators=["it answers"], project=project, error=error
    )


def night(continuum: Continuum, day: int, tally: Counter[str]) -> dict[str, str]:
    """Consolidate, prune, review once a week; returns where the memory of each goal is now."""
    report = continuum.consolidate()
    tally.update(f"promoted to {step['to']}" for step in report.promoted)
    tally["logs merged into a memory"] += len(report.merged)
    tally.update(step.action for step in continuum.prune(dry_run=False).steps)
    if day % 7 == 6:
        for case in continuum.review.cases():
            rate = float(case.figures["success_rate"] or 0)
            decide = continuum.review.approve if rate >= 0.9 else continuum.review.reject
            decide(case.id, reviewer="Simulated Reviewer", reason=f"success {rate:.2f}")
            tally[f"{case.kind}: {'approved' if rate >= 0.9 else 'rejected'}"] += 1
    known: dict[str, str] = {}
    for entry in continuum.files.entries([], ("trace", "pattern", "learning", "library")):
        if not entry.meta.component_of and entry.meta.goal_signature:
            known[entry.meta.goal_signature] = entry.key
    return known


def main() -> None:
    """Simulate and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--goals", type=int, default=200)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--per-day", type=int, default=10, help="pieces of work a day")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", type=Path, default=PLOT)
    options = parser.parse_args()
    count, days, per_day = (40, 120, 5) if options.quick else (options.goals, options.days, options.per_day)
    chance = random.Random(options.seed)
    folder = Path(tempfile.mkdtemp(prefix="continuum-year-"))
    clock = Clock()
    config = Config.load(None, environ={}, store={"durability": "normal", "keep_versions": 0})
    continuum = Continuum(ChunkStore(folder / "memory", config=config, clock=clock))
    all_goals = goals(count, chance)
    weights = [1 / (rank + 3) ** 0.8 for rank in range(count)]
    chance.shuffle(weights)
    known: dict[str, str] = {}
    reached: set[str] = set()
    tally: Counter[str] = Counter()
    populations: list[dict[str, int]] = []
    report = Report("continuum_year", f"{count} goals, {days} days, {per_day} pieces of work a day")
    try:
        for day in range(days):
            for goal in chance.choices(all_goals, weights, k=per_day):
                clock.now += timedelta(minutes=7)
                work(continuum, goal, chance, known)
            clock.now = FIRST + timedelta(days=day, hours=15)
            known = night(continuum, day, tally)
            present = Counter(
                entry.meta.tier for entry in continuum.files.entries([]) if not entry.meta.component_of
            )
            populations.append({tier: present.get(tier, 0) for tier in COLOURS})
            reached |= {
                entry.meta.goal_signature or ""
                for entry in continuum.files.entries([], ("learning", "library"))
                if not entry.meta.component_of
            }
            clock.now = FIRST + timedelta(days=day + 1)
            if day % 60 == 59:
                report.add(day=day + 1, **populations[-1])
        finish(report, continuum, all_goals, reached, tally, populations)
        plot(populations, options.plot)
        report.finish(options.output or RESULTS / "continuum_year.json")
    finally:
        continuum.store.close()
        shutil.rmtree(folder, ignore_errors=True)


def finish(
    report: Report,
    continuum: Continuum,
    all_goals: list[Goal],
    reached: set[str],
    tally: Counter[str],
    populations: list[dict[str, int]],
) -> None:
    """Compare the promoted memories with the planted worth, and check that none was lost."""
    risen = [goal for goal in all_goals if goal.signature in reached]
    # Thirty uses: twenty that the rule requires, and some to make up for a failure.
    deserving = [goal for goal in all_goals if goal.worth == "good" and goal.uses >= 30]
    right = [goal for goal in risen if goal.worth == "good"]
    report.facts["uses"] = sum(goal.uses for goal in all_goals)
    report.facts["transitions"] = dict(tally)
    report.facts["memories promoted to the low tier, by kind of goal"] = dict(
        Counter(goal.worth for goal in risen)
    )
    precision = len(right) / len(risen) if risen else 1.0
    recall = len([goal for goal in deserving if goal.signature in reached]) / max(1, len(deserving))
    report.facts["precision of promotions to the low tier"] = round(precision, 3)
    report.facts["recall of good goals with at least 30 uses"] = round(recall, 3)
    report.facts["good goals with at least 30 uses"] = len(deserving)
    report.facts["largest number of memories"] = max(sum(one.values()) for one in populations)
    texts = [continuum.files.read(name) or "" for name in continuum.pruner.archived()]
    texts += [entry.text for entry in continuum.files.entries([])]
    whole = "\n".join(texts)
    lost = [goal.text for goal in all_goals if goal.uses and goal.text not in whole]
    report.facts["goals without any memory or archived file left"] = len(lost)
    core = [entry for entry in continuum.files.entries([], ("library",)) if entry.meta.tier == "ultra-low"]
    report.facts["core memories found by search"] = (
        f"{sum(any(hit.chunk_id == entry.chunk_id for hit in search(continuum.store, entry.title)) for entry in core)}"
        f" of {len(core)}"
    )
    report.facts["findings of the check"] = len(continuum.check())


def plot(populations: list[dict[str, int]], path: Path) -> None:
    """Tier populations as an SVG of one line a tier."""
    width, height, left, bottom = 760, 300, 50, 30
    top = max(max(one.values()) for one in populations) or 1
    wide, tall = width - left - 110, height - bottom - 20

    def at(day: int, value: float) -> str:
        return f"{left + wide * day / max(1, len(populations) - 1):.1f},{20 + tall * (1 - value / top):.1f}"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12"><title>Memories by tier over a simulated year</title>'
        f'<rect width="{width}" height="{height}" fill="white"/>'
    ]
    for part in range(5):
        value = top * part / 4
        _, y = at(0, value).split(",")
        lines.append(f'<path d="M{left} {y}H{left + wide}" stroke="#ddd"/>')
        lines.append(f'<text x="{left - 6}" y="{y}" dy="4" text-anchor="end" fill="#555">{value:.0f}</text>')
    for month in range(0, len(populations), 30):
        x, y = at(month, 0).split(",")
        lines.append(f'<text x="{x}" y="{float(y) + 18:.0f}" text-anchor="middle" fill="#555">{month}</text>')
    placed: list[float] = []
    for tier, colour in COLOURS.items():
        points = " ".join(at(day, one[tier]) for day, one in enumerate(populations))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = at(len(populations) - 1, populations[-1][tier]).split(",")
        label = float(y)
        while any(abs(label - other) < 14 for other in placed):
            label -= 14
        placed.append(label)
        lines.append(f'<text x="{float(x) + 6:.0f}" y="{label + 4:.0f}" fill="{colour}">{tier}</text>')
    lines.append(
        f'<text x="{left + wide / 2:.0f}" y="{height - 2}" text-anchor="middle" fill="#555">day</text></svg>'
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
