"""Hostile programs on both engines: contained, the host alive and small, the session usable afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.sandbox import seccomp
from tests.sandbox.hostile import PROGRAMS

HOST = Path(__file__).with_name("hostile_host.py")
BREAKING_OUT = [
    "object graph",
    "format",
    "frames",
    "host functions",
    "imports",
    "files",
    "forgery",
    "budgets",
    "layer",
    "built-ins",
    "libraries",
]

needs_filter = pytest.mark.skipif(
    not seccomp.supported(), reason="the cpython engine is confined on Linux x86-64 and 64-bit ARM only"
)
engines = pytest.mark.parametrize("engine", ["monty", pytest.param("cpython", marks=needs_filter)])


def run_host(engine: str, policy: str, groups: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(HOST), engine, policy, *groups], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, f"the host did not survive: {done.stderr[-2000:]}"
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def check(report: dict[str, Any]) -> None:
    outcomes = report["outcomes"]
    assert [o["name"] for o in outcomes if o["marked"]] == []
    assert [o["name"] for o in outcomes if o["leaked"]] == []
    assert [o["name"] for o in outcomes if not o["usable"]] == []
    assert not report["called"], "a program reached the network"
    assert report["intact"], "a program changed the memory"
    assert max(o["peak_mb"] for o in outcomes) < 150


@pytest.mark.early
@engines
def test_a_hostile_program_is_contained_and_leaves_the_session_usable(engine: str) -> None:
    """Nothing written, read, called or forged; the host under 150 MB; the next program runs."""
    report = run_host(engine, "on", [])
    assert len(report["outcomes"]) == len(PROGRAMS)
    check(report)
    by_name = {o["name"]: o for o in report["outcomes"]}
    for o in report["outcomes"]:
        if o["group"] == "budgets":
            # Terminal: no except, finally or context manager of the program saw it.
            assert o["kind"] in ("MaxIterationsError", "TimeoutError"), o
        # FINAL is only ever what the sandbox provides; one with a cyclic answer may conclude, bounded.
        assert not o["final"] or "cyclic" in o["name"], o
    for name in ("os", "eval", "exec", "FINAL redefined", "subclasses of object", "format class"):
        assert by_name[name]["kind"] == "SandboxViolation", by_name[name]
    assert by_name["endless loop"]["kind"] == "TimeoutError"


@pytest.mark.early
@engines
def test_the_engine_alone_contains_what_the_policy_would_have_refused(engine: str) -> None:
    """With the policy switched off nothing gets out either: it is a courtesy, not the boundary."""
    report = run_host(engine, "off", BREAKING_OUT)
    assert len(report["outcomes"]) > 70
    check(report)


def test_the_corpus_is_broad() -> None:
    """At least a hundred programs, in every group of attacks that is known of."""
    assert len(PROGRAMS) >= 100
    assert len({name for _, name, _ in PROGRAMS}) == len(PROGRAMS)
    assert len({group for group, _, _ in PROGRAMS}) >= 10
