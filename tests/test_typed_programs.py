"""Programs of users: strict type checkers know every call of both interfaces, and the programs run."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integrations.frameworks import needs

ROOT = Path(__file__).parents[1]

PLAIN = """
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Literal, Optional, assert_type

from brain.scripts import ChunkStore, ReasoningResult, ReasoningStep
from rlm_mem import Filters, Hit, InvalidChunk, Limits, Memory, RecallResult, RememberResult, Stats

faked = RecallResult(content="green tea", chunk_ids=["chunk-a"], confidence=0.9, iterations_used=2)
assert (faked.outcome, faked.cost, faked.trajectory.steps) == ("answered", None, [])
reasoned = ReasoningResult("green tea", [ReasoningStep("chunk-a", "read", "says so")], 0.9)
assert reasoned.outcome == "answered" and "green tea" in f"{faked}{reasoned}{faked!r}{reasoned!r}"

@dataclass
class Drink:
    name: str

with Memory.open("brain") as memory:
    store: ChunkStore = memory.store
    made: RememberResult = memory.remember(
        "Ana drinks green tea.", tags="tea", secrets="redact", occurred_at=date(2026, 3, 1), expires=date(2999, 1, 1)
    )
    day, moment = date(2026, 3, 1), datetime(2026, 3, 1, 12)
    assert memory.list_chunks(start_date=day, end_date=day) == made.chunk_ids
    assert memory.list_chunks(start_date=moment) == []
    assert len(memory.search("tea", filters=Filters(start=day, end=day))) == 1
    assert memory.search("tea", filters=Filters(end=date(2026, 2, 28))) == []
    assert len(memory.store.timeline(day, day)) == 1
    assert not memory.trajectories(since=day) and not memory.costs(since=day, until=moment)
    assert [event.op for event in memory.events(since=day)] == ["create"]
    count: int = made.secrets.count + made.created
    result: RecallResult = memory.recall("What does Ana drink?", limits=Limits(iterations=3))
    if result.outcome == "answered":
        words: str | None = result.content
    assert_type(memory.recall("What does Ana drink?", result=Drink).value, Drink | None)
    assert_type(memory.recall("What does Ana drink?", result=list[Drink], max_tokens=90).value, list[Drink] | None)
    shaped: RecallResult = memory.recall("What does Ana drink?", result={"type": "string"})
    either: RecallResult = memory.recall("What does Ana drink?", result=str | None)
    chosen: RecallResult = memory.recall("Tea or coffee?", result=Literal["tea", "coffee"])
    perhaps: RecallResult = memory.recall("What does Ana drink?", result=Optional[Annotated[str, "a drink"]])
    lines: list[str] = [source.line for source in result.sources]
    sure: list[float] = [one.reliability for one in result.standing]
    hits: list[Hit] = memory.search("tea", filters=Filters(tags_all=("tea",)))
    figures: Stats = memory.stats()
    total: int = figures.chunk_count
    memory.update(made.chunk_ids[0], tags=["tea", "morning"], expected_revision=1)
    views: tuple[str, ...] = memory.checkpoint().views
    answers: list[str | None] = [run.answer for run in memory.trajectories(operation="recall")]
    names: list[str] = [event.op for event in memory.events(limit=5)]
    try:
        memory.remember("")
    except InvalidChunk as error:
        message: str = error.message
"""

ASYNCHRONOUS = """
import asyncio
from collections.abc import AsyncIterator

from rlm_mem import AsyncMemory, Event, Execution, Filters, Hit, InvalidChunk, RecallResult, RememberResult, Stats

async def main() -> None:
    opened: AsyncMemory = await AsyncMemory.open("brain", namespace="team/one")
    await opened.close()
    async with AsyncMemory.open("brain") as memory:
        made: RememberResult = await memory.remember("Ana drinks green tea.", tags="tea", secrets="redact")
        result: RecallResult = await memory.recall("What does Ana drink?", limits=await memory.limits(iterations=3))
        drinks = (await memory.recall("What does Ana drink?", result=list[str])).value
        first: str = drinks[0] if drinks else ""
        hits: list[Hit] = await memory.search("tea", filters=Filters(tags_all=("tea",)))
        figures: Stats = await memory.stats()
        events: AsyncIterator[Event] = memory.events(limit=5)
        names: list[str] = [event.op async for event in events]
        stream = memory.recall_stream("What does Ana drink?")
        async for step in stream:
            turn: int = step.turn
        last: RecallResult | None = stream.result
        async with memory.recall_session("What does Ana drink?") as session:
            ran: Execution = await session.execute("print(1)")
            done: RecallResult = await session.finish(None)
        async with memory.batch() as together:
            await together.update(made.chunk_ids[0], tags=["tea", "morning"])
        count: int = await memory.run(lambda inner: len(inner.tags()))
        try:
            await memory.remember("")
        except InvalidChunk as error:
            message: str = error.message

asyncio.run(main())
"""

WRONG = """
from rlm_mem import AsyncMemory

async def main(memory: AsyncMemory) -> None:
    await memory.search("tea", limits=3)
    found: int = await memory.search("tea")
"""

# As where the package is installed without its extras: SDKs of models and frameworks take mypy most of its time.
MYPY = """
[mypy]
strict = true
[mypy-anthropic.*,openai.*,pydantic_ai.*,pydantic_ai_harness.*]
follow_imports = skip
"""


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_strict_type_checker_knows_every_call(tmp_path: Path, checker: str) -> None:
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed: make test-integrations")
    programs = {"plain.py": PLAIN, "asynchronous.py": ASYNCHRONOUS, "wrong.py": WRONG}
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "mypy.ini").write_text(MYPY)
    # What it knows of the package is kept for the next run: to find it out takes most of the time, too.
    cache = ROOT / ".mypy_cache" / "programs"
    options = ["--config-file", tmp_path / "mypy.ini", "--cache-dir", cache] if checker == "mypy" else []
    checked = subprocess.run(
        [sys.executable, "-m", checker, *options, *(tmp_path / name for name in programs)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in checked.stdout.splitlines() if "error:" in line]
    assert ["wrong.py" in line for line in errors] == [True, True], checked.stdout


@needs("langgraph")
@needs("pydantic_ai_harness")
def test_the_examples_are_typed_strictly(tmp_path: Path) -> None:
    examples = sorted((ROOT / "examples").glob("*.py"))
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", tmp_path, *examples],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("program", [PLAIN, ASYNCHRONOUS], ids=["plain", "asynchronous"])
def test_the_program_runs(tmp_path: Path, program: str) -> None:
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
