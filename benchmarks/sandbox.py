"""The sandbox in figures: opening a session, running programs, calls to the host, stopping a loop.

    python benchmarks/sandbox.py [--quick] [--output FILE]

Goals (milliseconds, Monty): ``execute("1+1")`` under 0.3, 1,000 host calls under 50, a session after the first
under 5, and a loop stopped within 1,000 of its time-out.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from rlm_mem.errors import SandboxError
from rlm_mem.recall import REPLSession
from rlm_mem.sandbox import seccomp
from rlm_mem.store.core.chunk_store import ChunkStore
from support import Report, arguments, spread, timings

GOALS = {
    "execute('1+1')": 0.3,
    "1,000 host calls": 50.0,
    "open a session": 5.0,
    "stop a loop after its time-out": 1000.0,
}


def repeated(action: Callable[[], object], rounds: int) -> list[float]:
    """Milliseconds of each of several rounds."""
    return timings(lambda _: action(), range(rounds))


def measure(report: Report, store: ChunkStore, engine: str, rounds: int) -> None:
    """Add the rows of one engine."""

    def opened() -> REPLSession:
        session = REPLSession(store, engine=engine, functions={"ping": lambda text: text})
        session.execute("1")
        return session

    def stop() -> None:
        with contextlib.suppress(SandboxError):
            session.execute("while True: pass", timeout=0.2)

    first = repeated(lambda: opened().close(), 1)
    session = opened()
    session.execute("import re\ntext = 'tea ' * 50\ndef count(words): return len(words.split())")
    rows = {
        "open the first session": first,
        "open a session": repeated(lambda: opened().close(), max(5, rounds // 20)),
        "execute('1+1')": repeated(lambda: session.execute("1+1"), rounds),
        "a program that assigns": repeated(lambda: session.execute("n = count(text)\nn"), rounds),
        "a program with idioms": repeated(
            lambda: session.execute(
                "d = {'a': 1, 'b': 3}\nmax(d, key=d.get), next((k for k in d if d[k] > 1), None)"
            ),
            rounds,
        ),
        "1,000 host calls": repeated(
            lambda: session.execute("for i in range(1000): ping('x')"), max(5, rounds // 20)
        ),
        "stop a loop after its time-out": [one - 200.0 for one in repeated(stop, 5)],
    }
    for name, milliseconds in rows.items():
        goal = {"target_ms": GOALS[name]} if engine == "monty" and name in GOALS else {}
        report.add(
            engine=engine, operation=name, **spread(milliseconds), best_ms=round(min(milliseconds), 3), **goal
        )
    session.close()


def main() -> None:
    """Measure both engines and write the report."""
    options = arguments(__doc__.splitlines()[0]).parse_args()
    report = Report("sandbox", "The sandbox (milliseconds)")
    with tempfile.TemporaryDirectory() as folder, ChunkStore(Path(folder) / "memory") as store:
        measure(report, store, "monty", 40 if options.quick else 400)
        if seccomp.supported():
            measure(report, store, "cpython", 40 if options.quick else 400)
    report.finish(options.output)


if __name__ == "__main__":
    main()
