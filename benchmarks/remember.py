"""The cost of one durable remember as a store grows, compared with the physical floor of the machine.

Rows: one remember of a short note (text to chunk, links, file, index, commit) at 1,000, 10,000 and 100,000 chunks; the
floor is one synced file write and one synced SQLite commit, measured in turn with the remembers. Also: opening the
store, `get_chunk`, listing by tag and by conversation, and `search`.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import tempfile
from pathlib import Path

from rlm_mem.config import Config
from rlm_mem.memory import Memory
from support import Report, arguments, percentile, spread, timed, timings

TOPICS = (
    "the supplier moved the delivery of the {n} brackets to week {w}",
    "Ines measured {n} milliamps on board {w} after the firmware change",
    "we decided to keep gateway {n} in hall {w} until the lease ends",
    "customer {n} prefers invoices on paper, sent before the {w}th",
    "the night build of branch {n} failed on runner {w} with a full disk",
)


def note(number: int) -> str:
    """A short note, different for every number."""
    text = TOPICS[number % len(TOPICS)].format(n=number, w=number % 52)
    return f"Note {number}: {text}, seen on day {number % 365} by team {number % 17}."


def fill(memory: Memory, size: int) -> None:
    """Fill the store to ``size`` chunks, in large commits."""
    number = memory.stats().chunk_count
    while number < size:
        with memory.batch():
            end = min(size, number + 2000)
            for new in range(number, end):
                remember(memory, new)
        number = end


def remember(memory: Memory, number: int) -> None:
    """One short note, with a tag and a conversation."""
    memory.remember(note(number), conversation_id=f"conv-{number // 20}", tags=[f"team-{number % 17}"])


def side_by_side(memory: Memory, folder: Path, first: int, rounds: int) -> tuple[list[float], list[float]]:
    """Remembers and floors in turn: the speed of the disk changes within seconds, so both must be measured together."""
    connection = sqlite3.connect(folder / "floor.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS t(x)")
    data = os.urandom(1500)

    def floor(number: int) -> None:
        target = folder / f"floor-{number}"
        with target.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        connection.execute("INSERT INTO t VALUES (?)", (number,))

    costs, floors = [], []
    for number in range(first, first + rounds):
        floors.append(timed(lambda number=number: floor(number))[0])
        costs.append(timed(lambda number=number: remember(memory, number))[0])
    connection.close()
    return costs, floors


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--sizes", default="1000,10000,100000", help="sizes of the store, in chunks")
    parser.add_argument("--rounds", type=int, default=200, help="remembers measured at each size")
    options = parser.parse_args()
    sizes = [1000, 10_000] if options.quick else [int(size) for size in options.sizes.split(",")]
    report = Report("remember", "One durable remember of a short note, and reading it back (milliseconds)")
    config = Config.load(environ={})
    medians: dict[int, float] = {}
    with tempfile.TemporaryDirectory(prefix="rlm-mem-bench-") as name:
        folder = Path(name)
        brain = folder / "brain"
        for size in sizes:
            with Memory.open(brain, config=config) as memory:
                fill(memory, size)
            opened = [timed(lambda: Memory.open(brain, config=config).close())[0] for _ in range(5)]
            with Memory.open(brain, config=config) as memory:
                remember(memory, 10_000_000 + size)  # loads the modules of a first write
                costs, floors = side_by_side(memory, folder, 20_000_000 + size, options.rounds)
                medians[size] = percentile(costs, 0.5)
                ids = memory.list_chunks(limit=200)
                questions = [note(number * 37) for number in range(60)]
                memory.search(questions[0])
                report.add(
                    chunks=size,
                    remember_p50=medians[size],
                    remember_p95=percentile(costs, 0.95),
                    floor_p50=percentile(floors, 0.5),
                    floor_p95=percentile(floors, 0.95),
                    mean_by_mean=statistics.mean(costs) / statistics.mean(floors),
                    open_p50=percentile(opened, 0.5),
                    get_p50=spread(timings(memory.store.get_chunk, ids))["p50"],
                    list_conversation_p50=percentile(
                        timings(lambda n: memory.list_chunks(conversation_id=f"conv-{n}"), range(40)), 0.5
                    ),
                    list_tag_p50=percentile(
                        timings(lambda n: memory.list_chunks(tags=[f"team-{n}"], limit=50), range(17)), 0.5
                    ),
                    search_p50=percentile(timings(memory.search, questions), 0.5),
                    search_p95=percentile(timings(memory.search, questions), 0.95),
                )
    smallest = medians[sizes[0]]
    report.facts["cost against the smallest store"] = {
        size: round(cost / smallest, 2) for size, cost in medians.items()
    }
    report.finish(options.output)


if __name__ == "__main__":
    main()
