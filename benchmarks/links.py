"""Links as a store grows: reading them both ways, walking three hops, adding one, and linking within a remember.

The stores are those of `growth.py`: notes in conversations of twenty, each linked to those before it and to some with
its tag, about eighteen links a chunk. Milliseconds, p50 unless named otherwise.

    python benchmarks/links.py                      # 1,000, 10,000 and 100,000 chunks
    python benchmarks/links.py --sizes 1000000      # needs 8 GB of disk
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Any

from growing import Growing
from remember import note
from rlm_mem.ingest.linking import AutoLinker
from rlm_mem.memory import Memory
from support import Report, arguments, percentile, timed, timings

ROUNDS = 200


class TimedLinker:
    """Adds up the time that linking takes within a remember."""

    def __init__(self) -> None:
        self.ms = 0.0
        self._plain = AutoLinker.links_for

    def __enter__(self) -> TimedLinker:
        plain = self._plain

        def link(linker: AutoLinker, *given: Any, **options: Any) -> Any:
            took, result = timed(lambda: plain(linker, *given, **options))
            self.ms += took
            return result

        AutoLinker.links_for = link  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        AutoLinker.links_for = self._plain  # type: ignore[method-assign]


def three_hops(memory: Memory, start: str) -> int:
    """Chunks within three links of one, ten links of each followed; how many."""
    seen, edge = {start}, [start]
    for _ in range(3):
        edge = [
            found.chunk_id
            for chunk_id in edge
            for found in memory.store.linked(chunk_id, limit=10)
            if not (found.chunk_id in seen or seen.add(found.chunk_id))  # type: ignore[func-returns-value]
        ]
    return len(seen)


def measure(memory: Memory, size: int) -> dict[str, Any]:
    """One row."""
    store = memory.store
    random_ = random.Random(7)
    ids = memory.list_chunks()
    chosen = random_.sample(ids, min(len(ids), ROUNDS))
    pairs = [(random_.choice(ids), random_.choice(ids)) for _ in range(ROUNDS // 2)]
    pairs = [(one, two) for one, two in pairs if one != two]
    row: dict[str, Any] = {
        "chunks": size,
        "links": int(memory.stats().links),
        "out": percentile(timings(lambda one: store.linked(one, direction="out"), chosen), 0.5),
        "in": percentile(timings(lambda one: store.linked(one, direction="in"), chosen), 0.5),
        "both_p95": percentile(timings(lambda one: store.linked(one, direction="both"), chosen), 0.95),
        "neighbours": percentile(timings(lambda one: store.neighbours(one, 3, 3), chosen), 0.5),
    }
    reached: list[int] = []
    walks = timings(lambda one: reached.append(three_hops(memory, one)), chosen[:40])
    row |= {"three_hops": percentile(walks, 0.5), "chunks_reached": percentile(reached, 0.5)}
    row["add_link"] = percentile(timings(lambda pair: memory.link(*pair, "supports", 0.8), pairs), 0.5)
    row["remove_link"] = percentile(timings(lambda pair: memory.unlink(*pair, "supports"), pairs), 0.5)
    whole, linking = [], []
    for number in range(ROUNDS // 2):
        text = note(300_000_000 + size + number)
        with TimedLinker() as linker:
            began = time.perf_counter()
            memory.remember(text, conversation_id=f"conv-{number // 20}", tags=[f"team-{number % 17}"])
            whole.append((time.perf_counter() - began) * 1e3)
        linking.append(linker.ms)
    row |= {"remember": percentile(whole, 0.5), "of_it_linking": percentile(linking, 0.5)}
    return row


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--sizes", type=int, nargs="+", default=None, help="numbers of chunks")
    options = parser.parse_args()
    sizes = options.sizes or ([1_000, 5_000] if options.quick else [1_000, 10_000, 100_000])
    report = Report("links", "Links as a store grows (milliseconds, p50)")
    with tempfile.TemporaryDirectory(prefix="rlm-mem-links-") as name:
        growing = Growing(Path(name) / "brain")
        for size in sizes:
            growing.lay_down(size)
            with growing.opened() as memory:
                memory.store.candidate_source()
                report.add(**measure(memory, size))
    report.finish(options.output)


if __name__ == "__main__":
    main()
