"""What looking for replaced memories adds to a remember: the same notes with the finder on and off, in turn.

Two copies of one store are open in one process, one with `updates.find` as it is set by default and one with it off.
Lots of ten notes go to each of them in turn, the one that begins alternating. `by processor` and `by clock` are the
medians of the ratios of the pairs. Other work on the machine changes that of processor time little; waiting for the
disk, which looking adds nothing to, counts in the other one only.

Notes "on many subjects" are those of `growing.py`, which share words but seldom a subject; each note "on changes" says
itself that something has moved.

    python benchmarks/finding.py            # 10,000 memories, 300 notes of each kind
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import growing
from rlm_mem import Memory
from rlm_mem.config import Config
from support import Report, arguments, percentile

_LOT = 10


def change(number: int) -> str:
    """A note that says that something has moved, unlike the others."""
    return (
        f"Note {number}: on day {number % 300} team {number % 7} moved service {number % 61} to PostgreSQL, because "
        f"batch {number} of the harbour left the queue of runner {number % 50} full."
    )


_KINDS: tuple[tuple[str, Callable[[int], str]], ...] = (
    ("on many subjects", growing.note),
    ("on changes", change),
)


def lot(memory: Memory, note: Callable[[int], str], first: int) -> tuple[float, float]:
    """Milliseconds of processor time and by the clock of one remember, the means of a lot."""
    began, busy = time.perf_counter(), time.process_time()
    for number in range(first, first + _LOT):
        memory.remember(note(number), conversation_id=f"c{number // 20}", tags=[f"t{number % 17}"])
    return (time.process_time() - busy) * 1e3 / _LOT, (time.perf_counter() - began) * 1e3 / _LOT


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--chunks", type=int, default=10_000, help="memories of each store before")
    parser.add_argument("--pairs", type=int, default=30, help="pairs of lots of ten notes")
    options = parser.parse_args()
    chunks, pairs = (1_000, 10) if options.quick else (options.chunks, options.pairs)
    report = Report(
        "finding", "A remember with and without looking for what it replaces (processor time, milliseconds)"
    )
    off = Config.load(environ={}, updates={"find": "off"})
    for kind, note in _KINDS:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            with Memory.open(place / "off", config=off) as memory:
                memory.remember_many(map(note, range(chunks)))
            shutil.copytree(place / "off", place / "on")
            with (
                Memory.open(place / "off", config=off) as without,
                Memory.open(place / "on", config=Config.load(environ={})) as with_it,
            ):
                costs: list[tuple[tuple[float, float], tuple[float, float]]] = []
                for pair in range(-1, pairs):  # the first loads modules
                    first = 1_000_000 + pair * _LOT
                    if pair % 2:
                        on, plain = lot(with_it, note, first), lot(without, note, first)
                    else:
                        plain, on = lot(without, note, first), lot(with_it, note, first)
                    costs.append((on, plain))
            del costs[0]
            report.add(
                notes=kind,
                chunks=chunks,
                on_p50_ms=percentile([on[0] for on, _ in costs], 0.5),
                off_p50_ms=percentile([plain[0] for _, plain in costs], 0.5),
                cpu_ratio=percentile([on[0] / plain[0] for on, plain in costs], 0.5),
                wall_clock_ratio=percentile([on[1] / plain[1] for on, plain in costs], 0.5),
                pairs=pairs,
            )
    report.finish(options.output)


if __name__ == "__main__":
    main()
