"""Cost of the journal of the SQLite index: one process, many processes, a fill, opening; two installations in turn.

`--baseline PYTHON` names the interpreter of another installation of the package; the parts of a round alternate between
the two, so that both run under the same load. `--variants` adds this installation with other settings of SQLite, such
as `TRUNCATE/NORMAL` or `WAL/NORMAL` (journal_mode/synchronous).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from support import Report, arguments, timed, timings

HERE = Path(__file__).resolve()


# --- in a process of its own, in either installation ---------------------------------------------------------------


def set_journal(variant: str) -> None:
    """Open every index with these settings instead of the package's own."""
    from rlm_mem.store.local import connections as module, schema

    module._boot_id = str  # empty: no transaction chooses a setting of its own

    journal, synchronous = variant.split("/")
    former = schema.connect

    def connect(*args: Any, **named: Any) -> Any:
        connection = former(*args, **named)
        connection.execute(f"PRAGMA journal_mode={journal}")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        return connection

    schema.connect = connect


def note(number: int) -> str:
    """A short note, different for every number."""
    return f"Note {number}: team {number % 17} moved the delivery of bracket {number} to week {number % 52}."


def alone(brain: str, rounds: int) -> dict[str, float]:
    """One process: opens, remembers, searches."""
    from rlm_mem import Memory

    opened = []
    for _ in range(10):
        took, memory = timed(lambda: Memory.open(brain))
        opened.append(took)
        memory.close()
    with Memory.open(brain) as memory:
        memory.remember("The first note loads what a first write loads.")
        first = time.time_ns() % 10**12
        costs = sorted(timings(lambda n: memory.remember(note(first + n)), range(rounds)))
        memory.search("bracket week")
        searches = sorted(timings(lambda n: memory.search(note(n * 7)), range(rounds)))
    return {
        "open_p50": statistics.median(opened),
        "remember_p50": costs[len(costs) // 2],
        "remember_p95": costs[len(costs) * 95 // 100],
        "search_p50": searches[len(searches) // 2],
    }


def fill(brain: str, chunks: int) -> dict[str, float]:
    """So many chunks, 500 to a commit."""
    from rlm_mem import Memory

    start = time.perf_counter()
    with Memory.open(brain) as memory:
        for first in range(0, chunks, 500):
            with memory.batch():
                for number in range(first, first + 500):
                    memory.remember(note(number), conversation_id=f"c{number // 20}")
    return {"fill_per_s": chunks / (time.perf_counter() - start)}


def together(brain: str, seconds: float, role: str, name: str) -> dict[str, float]:
    """One of many: writes or searches until the time is over."""
    from rlm_mem import Memory

    waits, number = [0.0], 0
    with Memory.open(brain) as memory:
        memory.search("bracket")
        memory.remember(f"{name} is there.")
        print("ready", flush=True)
        sys.stdin.readline()
        until = time.time() + seconds
        while time.time() < until:
            number += 1
            if role == "write":
                act = partial(memory.remember, f"{name}: {note(number)}")
            else:
                act = partial(memory.search, note(number), limit=5)
            waits.append(timed(act)[0])
    return {"done": number, "longest": max(waits), "p50": statistics.median(waits)}


def worker(given: list[str]) -> None:
    """Run one part and print its figures."""
    part, variant, *rest = given
    if variant != "-":
        set_journal(variant)
    if part == "alone":
        found = alone(rest[0], int(rest[1]))
    elif part == "fill":
        found = fill(rest[0], int(rest[1]))
    else:
        found = together(rest[0], float(rest[1]), rest[2], rest[3])
    print(json.dumps(found))


# --- the measuring process -----------------------------------------------------------------------------------------


def start(python: str, *arguments: object) -> subprocess.Popen[str]:
    """A worker in an installation."""
    command = [python, str(HERE), "--worker", *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str]) -> dict[str, float]:
    """What a worker printed."""
    printed, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a worker ended with {process.returncode}")
    found: dict[str, float] = json.loads(printed.splitlines()[-1])
    return found


def crowd(python: str, variant: str, brain: Path, seconds: float) -> dict[str, float]:
    """Eight writers and four readers at once; the time begins when all of them are at work."""
    writers = [start(python, "together", variant, brain, seconds, "write", f"w{n}") for n in range(8)]
    readers = [start(python, "together", variant, brain, seconds, "read", f"r{n}") for n in range(4)]
    for one in (*writers, *readers):
        assert one.stdout is not None
        one.stdout.readline()
    for one in (*writers, *readers):
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    wrote, read = [result(one) for one in writers], [result(one) for one in readers]
    return {
        "writes_per_s": sum(one["done"] for one in wrote) / seconds,
        "write_longest": max(one["longest"] for one in wrote),
        "reads_per_s": sum(one["done"] for one in read) / seconds,
        "read_p50": statistics.median(one["p50"] for one in read),
        "read_longest": max(one["longest"] for one in read),
    }


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument(
        "--baseline", default=None, help="interpreter of another installation to compare with"
    )
    parser.add_argument("--variants", default="", help="this installation with other settings, by comma")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured")
    parser.add_argument("--chunks", type=int, default=20_000, help="size of the fill")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of a part with many processes")
    options = parser.parse_args()
    rounds, chunks, seconds = (
        (1, 2000, 5.0) if options.quick else (options.rounds, options.chunks, options.seconds)
    )
    ways = {"this installation": (sys.executable, "-")}
    if options.baseline:
        ways["baseline"] = (options.baseline, "-")
    ways |= {name: (sys.executable, name) for name in options.variants.split(",") if name}
    report = Report("index_journal", "The journal of the SQLite index (milliseconds; medians of the rounds)")
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory(prefix="rlm-mem-bench-") as folder:
        for number in range(rounds):
            for name in ways:
                measured[name].append({})
            for part in ("fill", "alone", "together"):
                for name, (python, variant) in ways.items():
                    brain = Path(folder) / f"{number}-{name.replace('/', '-')}"
                    if part == "together":
                        found = crowd(python, variant, brain, seconds)
                    else:
                        found = result(start(python, part, variant, brain, chunks if part == "fill" else 200))
                    measured[name][-1] |= found
                    print(number, part, name, found, file=sys.stderr)
    for name, found in measured.items():
        columns = {key: statistics.median(one[key] for one in found) for key in found[0]}
        report.add(installation=name, **columns)
    report.facts |= {"rounds": rounds, "chunks": chunks, "seconds with many processes": seconds}
    report.finish(options.output)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2:])
    else:
        main()
