"""The two engines of the sandbox compared: programs that run on them, cost, lines of code.

    python benchmarks/engines.py [--quick] [--output FILE]

The programs are those of ``tests/sandbox/idioms.py``, everyday retrieval programs whose results are compared with plain
Python. docs/decisions/two-engines.md has the conclusions.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rlm_mem.recall import REPLSession
from rlm_mem.sandbox import SandboxSession, seccomp
from rlm_mem.store.core.chunk_store import ChunkStore
from support import Report, arguments, timed

ROOT = Path(__file__).resolve().parent.parent
MODULES = {
    "monty": ("monty", "monty_launcher"),
    "monty, its dialect layer": (
        *("idioms", "idiom_generators", "idiom_tables"),
        *("prelude", "prelude_modules"),
    ),
    "cpython": ("cpython", "cpython_worker", "seccomp", "wire"),
    "both": ("engine", "policy", "values", "hints", "guarantees"),
}
IDLE_SESSIONS = 5


def programs_by_result(store: ChunkStore, engine: str) -> dict[bool, list[str]]:
    """Names of the programs of the tests: those with the same result as plain Python, and the others."""
    from tests.sandbox.idioms import PROGRAMS
    from tests.sandbox.plain_python import alike, in_plain_python, on_engine

    found: dict[bool, list[str]] = {True: [], False: []}
    for name, code in PROGRAMS:
        got, _ = on_engine(store, code, engine)
        found[alike(list(got)) == alike(list(in_plain_python(store, code)))].append(name)
    return found


def fill(store: ChunkStore) -> None:
    """The memory that the programs read."""
    sys.path.insert(0, str(ROOT))
    from tests.sandbox import corpus_store

    corpus_store.fill(store)


def memory_mb(pid: int | None, field: str) -> float | None:
    """Memory of a process in MB: ``Rss`` with what it shares, ``Pss`` with its part of that; None: unknown."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return round(sum(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024, 1)


def measure(store: ChunkStore, engine: str, rounds: int) -> dict[str, object]:
    """The figures of one engine; milliseconds are the best of several rounds."""

    def opened() -> SandboxSession:
        session = SandboxSession(store, engine=engine, functions={"ping": lambda text: text})
        session.execute("1")
        return session

    def best(code: str, times: int) -> float:
        return round(min(timed(lambda: session.execute(code))[0] for _ in range(times)), 3)

    first, session = timed(opened)
    later = []
    for _ in range(max(5, rounds // 10)):
        took, other = timed(opened)
        later.append(took)
        other.close()
    several = [opened() for _ in range(IDLE_SESSIONS)]
    pids = [one._engine.worker_pid for one in several]
    rss = [memory_mb(pid, "Rss") for pid in pids]
    pss = [memory_mb(pid, "Pss") for pid in pids]
    for one in several:
        one.close()
    figures: dict[str, object] = {
        "first session (ms)": round(first, 1),
        "next session (ms)": round(min(later), 2),
        "execute('1+1') (ms)": best("1+1", rounds),
        "1,000 host calls (ms)": best("for i in range(1000): ping('x')", max(5, rounds // 20)),
        "an arithmetic loop, 100,000 turns (ms)": best(
            "n = 0\nfor i in range(100_000):\n    n += i % 7\nn", 5
        ),
        "worker, resident (MB)": rss[-1],
        "worker, proportional (MB)": pss[-1],
    }
    session.close()
    return figures


def lines_of(modules: tuple[str, ...]) -> int:
    """Lines of these modules."""
    folder = ROOT / "src" / "rlm_mem" / "sandbox"
    return sum(len((folder / f"{name}.py").read_text(encoding="utf-8").splitlines()) for name in modules)


def main() -> None:
    """Measure, compare, report."""
    options = arguments(__doc__ or "").parse_args()
    report = Report("engines", "The engines of the sandbox")
    engines = ["monty", "cpython"] if seccomp.supported() else ["monty"]
    with tempfile.TemporaryDirectory() as folder, ChunkStore(Path(folder) / "memory") as store:
        fill(store)
        with REPLSession(store) as session:
            session.execute("1")  # loads the modules that both need
        for engine in engines:
            figures = measure(store, engine, 40 if options.quick else 400)
            programs = programs_by_result(store, engine)
            report.facts[f"programs that fail on {engine}"] = ", ".join(programs[False]) or "none"
            total = sum(map(len, programs.values()))
            report.add(engine=engine, programs=f"{len(programs[True])} of {total}", **figures)
    for part, modules in MODULES.items():
        report.facts[f"lines, {part}"] = lines_of(modules)
    report.finish(options.output)


if __name__ == "__main__":
    main()
