"""No text makes a regular expression of the package slow: each is measured on 100 KB of its own worst texts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.hostile_inputs.package_patterns import Found, package_patterns

CLOCK = Path(__file__).with_name("pattern_clock.py")

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "ITIMER_VIRTUAL"), reason="needs timers of processor time"
)


def slow(patterns: Sequence[Found], patience: float) -> list[str]:
    """What is wrong with these patterns, a line each; a process that had to be ended counts against its pattern."""
    said: list[str] = []
    waiting = list(patterns)
    while waiting:
        lines = "".join(f"{json.dumps(asdict(one))}\n" for one in waiting)
        ran = subprocess.run(
            [sys.executable, str(CLOCK), str(patience)], input=lines, capture_output=True, text=True
        )
        answers = [json.loads(line) for line in ran.stdout.splitlines()]
        for one, answer in zip(waiting, answers, strict=False):
            if answer:
                said.append(f"{one.place} {one.pattern[:80]!r}: {answer}")
        waiting = waiting[len(answers) :]
        if waiting:
            assert "Traceback" not in ran.stderr, ran.stderr
            said.append(f"{waiting[0].place} {waiting[0].pattern[:80]!r}: did not end in time")
            waiting = waiting[1:]
    return said


@pytest.mark.early
def test_every_pattern_is_linear_on_its_worst_texts() -> None:
    patterns = package_patterns()
    assert len(patterns) > 300
    assert slow(patterns, 1.5) == []


PLANTED = {
    "cubic": r"\{[^{}]*__\w+__[^{}]*\}",
    "quadratic search": r"\s+$",
    "quadratic with a shared class": r"(\w+)-?(\d+)!",
    "lazy to a tag that is missing": r"(?s)<question>(.*?)</question>",
    "exponential": r"^(?:\w+ly\s+|really\s+)*like\b",
    "from each of many starts": r"\bwhat (?:did|would)\b.*\bdone\b",
}
HARMLESS = {
    "one class": r"\w+",
    "possessive": r"(?<!\s)\s++$",
    "bounded": r"\bwhat (?:did|would)\b.{0,100}\bdone\b",
}


def test_a_pattern_that_backtracks_is_caught_and_one_that_does_not_is_let_through() -> None:
    planted = [Found(name, pattern, 0, ("search",)) for name, pattern in {**PLANTED, **HARMLESS}.items()]
    assert [line.split(" '")[0] for line in slow(planted, 0.3)] == list(PLANTED)


def test_patterns_are_found_anywhere() -> None:
    found = {one.pattern: one for one in package_patterns()}
    from rlm_mem.sandbox import hints, policy
    from rlm_mem.text import dates

    assert policy._DUNDER.pattern in found  # a module's own name
    assert {pattern.pattern for _, _, pattern in dates._LOOKED_FOR} <= set(found)  # inside a container
    assert all(pattern.pattern in found for pattern, _ in hints._BY_MESSAGE)  # a pattern beside its message
    assert r"\bhow often\b" in found  # written inside a function
