"""A continuum on an empty brain with a clock moved by hand, and helpers to fill it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.config import Config
from rlm_mem.continuum import Continuum, places
from rlm_mem.continuum.files import TieredMemory, new_text
from rlm_mem.continuum.schema import stamp, tier_fields
from rlm_mem.continuum.traces import goal_signature

STEPS: list[dict[str, Any]] = [
    {"tool": "WebFetch", "call": "https://example.org", "validation": "status 200", "on_error": "retry once"},
    {"tool": "Summarize", "call": "the page", "depends_on": [1], "result": "five lines"},
]
DAY_1 = datetime(2025, 11, 9, 10, tzinfo=UTC)
QUICK = {"durability": "normal"}


class StillClock:
    """A clock that only tests advance."""

    def __init__(self, now: datetime = DAY_1) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


def open_continuum(
    brain: Path | str, clock: StillClock, namespace: str | None = None, **settings: Any
) -> Continuum:
    config = Config.load(None, environ={}, store=QUICK, **settings)
    return Memory.open(brain, clock=clock, config=config, namespace=namespace).continuum


def record(continuum: Continuum, goal: str = "Fetch and summarise a page", **more: object) -> TieredMemory:
    """A log that meets every condition of High→Mid unless told otherwise."""
    given: dict[str, Any] = {
        "success": True,
        "indicators": ["five lines"],
        "project": "alpha",
        "steps": STEPS,
    }
    given |= more
    return continuum.traces.record(goal, given.pop("steps"), **given)


def trace_of(continuum: Continuum, goal: str = "Fetch and summarise a page", **more: object) -> TieredMemory:
    """A mid-tier trace of one log."""
    record(continuum, goal, **more)
    report = continuum.consolidate()
    return continuum.traces.find(_made(continuum, report.promoted[0]["key"]))


def _made(continuum: Continuum, source: str) -> str:
    for step in continuum.changes.journal(op="promote"):
        if source in step["details"].get("sources", ()):
            made = str(step["entry"])
    return made


def added(continuum: Continuum, file: str, title: str, body: str) -> TieredMemory:
    """A memory of any kind, as a new file or block."""
    kind = places.kind_of(file)
    block, tier = places.slug(title) if kind.many else None, kind.tiers[0]
    fields = {
        "id": block,
        **tier_fields(tier),
        "confidence_score": 0.9,
        "created_at": stamp(continuum.store.clock()),
        "goal_signature": goal_signature(title),
    }
    changes, text = continuum.changes, new_text(fields, f"# {title}\n\n{body}\n\n")
    key = file if block is None else f"{file}#{block}"
    changes.apply(lambda: changes.draft("record", key, "", [changes.added(file, text, block)], tier_to=tier))
    return continuum.traces.find(key)


def by_hand(continuum: Continuum, file: str, text: str | bytes | None) -> None:
    """Write a file as a person with an editor would; None removes it."""
    if text is None:
        assert continuum.files.stored.remove(file)
    else:
        continuum.files.stored.write(file, text if isinstance(text, bytes) else text.encode("utf-8"))


def replaced(continuum: Continuum, file: str, old: str, new: str) -> None:
    """One place of a file changed by hand."""
    text = continuum.files.read(file)
    assert text is not None
    assert old in text
    by_hand(continuum, file, text.replace(old, new))


def rewrite(continuum: Continuum, entry: TieredMemory, **fields: object) -> TieredMemory:
    """Give a memory other figures, as a person with an editor would."""
    entry = continuum.traces.find(entry.key)
    text = entry.changed(fields)
    whole = (continuum.files.read(entry.file) or "").replace(entry.text, text)
    by_hand(continuum, entry.file, whole)
    continuum.sync()
    return continuum.traces.find(entry.key)


PROVEN = {
    "usage_count": 25, "success_count": 24, "success_rate": 0.96, "confidence_score": 0.96, "validation_count": 9,
    "contexts": {"alpha": [15, 15], "beta": [10, 9]}, "cross_project_validated": True,
}  # fmt: skip


def learning(
    continuum: Continuum, goal: str = "Fetch and summarise a page", **fields: object
) -> TieredMemory:
    """A low-tier entry, risen through the tiers."""
    rewrite(continuum, trace_of(continuum, goal), **(PROVEN | fields))
    before = {entry.key for entry in continuum.files.entries(kinds=("learning",))}
    continuum.consolidate()
    made = [entry for entry in continuum.files.entries(kinds=("learning",)) if entry.key not in before]
    assert len(made) == 1
    return made[0]


def tree(continuum: Continuum) -> dict[str, bytes]:
    """Every memory file with its bytes; what is derived, archived or only recorded left out."""
    stored = continuum.files.stored
    tops = ("workspace", "system", "memory/short_term", "memory/long_term")
    names = [name for top in tops for name in stored.names(top, recursive=True)]
    return {name: stored.read(name) or b"" for name in names}


@pytest.fixture
def still() -> StillClock:
    return StillClock()


@pytest.fixture
def brain(place: Path | str) -> Path | str:
    """Where the memories of a test are: the rules are the same for files and for rows."""
    return place


@pytest.fixture
def continuum(brain: Path | str, still: StillClock) -> Iterator[Continuum]:
    opened = open_continuum(brain, still)
    yield opened
    opened.store.close()
