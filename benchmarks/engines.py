"""The two engines of the sandbox compared: programs that run on them, computing, memory.

    python benchmarks/engines.py [--output FILE]

The programs are those of ``tests/sandbox/idioms.py``, everyday retrieval programs whose results are compared with plain
Python. docs/decisions/two-engines.md has the conclusions; `sandbox.py` times sessions and calls.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rlm_mem.sandbox import SandboxSession, seccomp
from rlm_mem.store.core.chunk_store import ChunkStore
from support import Report, arguments, timed

ROOT = Path(__file__).resolve().parent.parent
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


def measure(store: ChunkStore, engine: str) -> dict[str, object]:
    """The figures of one engine; milliseconds are the best of five runs."""

    def opened() -> SandboxSession:
        session = SandboxSession(store, engine=engine)
        session.execute("1")
        return session

    with opened() as session:
        loop = "n = 0\nfor i in range(100_000):\n    n += i % 7\nn"
        best = min(timed(lambda: session.execute(loop))[0] for _ in range(5))
    several = [opened() for _ in range(IDLE_SESSIONS)]
    pid = several[-1]._engine.worker_pid
    figures: dict[str, object] = {
        "arithmetic loop, 100,000 iterations (ms)": round(best, 3),
        "worker, resident (MB)": memory_mb(pid, "Rss"),
        "worker, proportional (MB)": memory_mb(pid, "Pss"),
    }
    for one in several:
        one.close()
    return figures


def main() -> None:
    """Measure, compare, report."""
    options = arguments(__doc__ or "").parse_args()
    report = Report("engines", "The engines of the sandbox")
    engines = ["monty", "cpython"] if seccomp.supported() else ["monty"]
    with tempfile.TemporaryDirectory() as folder, ChunkStore(Path(folder) / "memory") as store:
        fill(store)
        for engine in engines:
            programs = programs_by_result(store, engine)
            report.facts[f"programs that fail on {engine}"] = ", ".join(programs[False]) or "none"
            total = sum(map(len, programs.values()))
            right = f"{len(programs[True])} of {total}"
            report.add(engine=engine, **{"programs that run": right}, **measure(store, engine))
    report.finish(options.output)


if __name__ == "__main__":
    main()
