"""Cost of a memory as it grows to a million chunks: remember, listings, search, links, recall, import, upkeep.

One store grows from size to size, in a folder or on a PostgreSQL server, and everything is measured at each size. Up to
`--written` chunks it is filled as users fill it, by `remember` in large commits; beyond that chunk files are written
and the index is built from them, which also measures the rate of a rebuild at that size. In a database the rows are
repeated under other names and times instead, so each further size is a multiple of the one before. The floor, one
synced file and one synced SQLite commit, is measured in turn with the remembers.

    python benchmarks/growth.py                                   # 1,000 to 100,000 chunks in a temporary folder
    python benchmarks/growth.py --sizes 1000,10000,100000,1000000  # the full table; needs 8 GB of disk
    python benchmarks/growth.py --store postgresql://localhost/bench --sizes 10000,1000000 --written 10000
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from pathlib import Path
from time import perf_counter, process_time, time_ns
from typing import Any

from growing import Growing, note, remember, side_by_side
from interchange import store_at
from recall_overhead import InstantModel
from rlm_mem.interchange import export_store, import_source
from rlm_mem.memory import Memory
from rlm_mem.recall import RecallOperation
from support import RESULTS, Report, arguments, percentile, timed, timings

_ROUNDS = 40
_IMPORTED = 500


def measure(growing: Growing, size: int, rounds: int, scratch: Path) -> dict[str, Any]:
    """Everything at the present size."""
    opened = []
    for _ in range(5):
        start = perf_counter()
        with growing.opened():
            opened.append((perf_counter() - start) * 1e3)
    row: dict[str, Any] = {"open": percentile(opened, 0.5)}
    with growing.opened() as memory:
        # Notes that no earlier run has remembered: a known note costs less.
        first = time_ns() // 1000
        remember(memory, first)  # loads the modules of a first write
        costs, floors = side_by_side(memory, scratch, first + 1000, rounds)
        ids = memory.list_chunks(limit=100) + memory.list_chunks(limit=100, newest_first=True)
        talks = [one.id for one in memory.store.conversations(limit=200)]
        teams = [f"team-{number}" for number in range(17)]
        questions = [note(number * 37) for number in range(30)]
        memory.search(questions[0])
        row |= {
            "remember": percentile(costs, 0.5),
            "remember p95": percentile(costs, 0.95),
            "floor": percentile(floors, 0.5),
            "floor p95": percentile(floors, 0.95),
            "get": percentile(timings(memory.store.get_chunk, ids), 0.5),
            "50 chunks of a tag": percentile(
                timings(lambda tag: memory.list_chunks(tags=[tag], limit=50), teams), 0.5
            ),
            "all tags": percentile(timings(lambda _: memory.store.tag_counts(), range(9)), 0.5),
            "one conversation": percentile(
                timings(lambda talk: memory.list_chunks(conversation_id=talk), talks), 0.5
            ),
            "50 conversations": percentile(
                timings(lambda _: memory.store.conversations(limit=50), range(9)), 0.5
            ),
            "search": percentile(timings(memory.search, questions), 0.5),
        }
        row |= measure_uses(memory, size, scratch)
        checkpoint_ms, _ = timed(memory.checkpoint)
        check_ms, findings = timed(memory.check)
        row |= {
            "checkpoint s": round(checkpoint_ms / 1e3, 2),
            "check s": round(check_ms / 1e3, 2),
            "findings": len(findings),
            "index MB": round(_index_bytes(growing) / 1e6, 1),
        }
    return row


def measure_uses(memory: Memory, size: int, scratch: Path) -> dict[str, Any]:
    """Links, a recall without its model, an import, confirmed uses and a dry run of the tiers.

    Recalls and tiers have detailed benchmarks of their own (`recall_overhead.py`, `continuum_scale.py`). The links and
    imported chunks are removed again, so that the next size starts from the same memory.
    """
    chance = random.Random(7)
    pages = memory.list_chunks(limit=2_000) + memory.list_chunks(limit=2_000, newest_first=True)
    chosen = chance.sample(sorted(set(pages)), _ROUNDS * 2)
    pairs = list(zip(chosen[::2], chosen[1::2], strict=True))
    row: dict[str, Any] = {
        "add a link": percentile(timings(lambda pair: memory.link(*pair, "supports", 0.8), pairs), 0.5),
        "three hops of links": percentile(
            timings(lambda one: three_hops(memory, one), chosen[:_ROUNDS]), 0.5
        ),
        "recall": percentile(_recalls(memory, size), 0.5),
    }
    for pair in pairs:
        memory.unlink(*pair, "supports")
    uses = timings(lambda one: memory.continuum.traces.use(one, True, project=f"project-{size}"), chosen)
    lines = _chunk_lines(
        Path(tempfile.mkdtemp(prefix=f"import-{size}-", dir=scratch))
    )  # each store has its own
    import_ms, made = timed(lambda: import_source(memory.store, lines, again=True))
    if made.created != _IMPORTED:
        raise RuntimeError(f"{made.created} of {_IMPORTED} chunks were imported")
    with memory.batch():
        for chunk_id in made.chunk_ids:
            memory.delete(chunk_id, permanent=True)
    consolidate_ms, _ = timed(lambda: memory.continuum.consolidate(dry_run=True))
    return row | {
        "record a use": percentile(uses, 0.5),
        "imported, chunks/s": round(_IMPORTED / import_ms * 1e3),
        "consolidation, dry run": consolidate_ms,
    }


def three_hops(memory: Memory, start: str) -> int:
    """Chunks within three links of one, ten links of each followed; how many."""
    seen, edge = {start}, {start}
    for _ in range(3):
        found = {one.chunk_id for chunk_id in edge for one in memory.store.linked(chunk_id, limit=10)}
        edge = found - seen
        seen |= edge
    return len(seen)


def _chunk_lines(folder: Path) -> Path:
    """Chunks to import, as JSON lines."""
    with store_at(folder / "from") as store:
        with store.batch():
            for number in range(_IMPORTED):
                tags, talk = [f"team-{number % 17}"], f"imported-{number // 20}"
                store.create_chunk(note(400_000_000 + number), "fact", tags=tags, conversation_id=talk)
        export_store(store, folder / "chunks.jsonl")
    return folder / "chunks.jsonl"


def _recalls(memory: Memory, size: int) -> list[float]:
    """Milliseconds of recalls by a model that answers at once, without its own time."""
    model = InstantModel()
    recall = RecallOperation(memory.store, model, config=memory.store.config).recall
    costs = []
    for number in range(_ROUNDS + 3):
        question = " ".join(note(number * 37 % size).split()[2:10]) + "?"
        before = model.seconds
        took, result = timed(lambda question=question: recall(question))
        if not result.concluded:
            raise RuntimeError(f"a recall came to no end: {result.trajectory.steps}")
        costs.append(took - (model.seconds - before) * 1e3)
    return costs[3:]


def rebuild(growing: Growing, size: int) -> dict[str, Any]:
    """Rebuild the index from the files: it is removed, and opening the store rebuilds it."""
    assert isinstance(growing.place, Path)
    shutil.rmtree(growing.place / "memory" / "index", ignore_errors=True)
    wall, own = perf_counter(), process_time()
    with growing.opened():
        wall, own = perf_counter() - wall, process_time() - own
    return {
        "rebuilt, chunks/s": round(size / wall),
        "rebuild s": round(wall, 1),
        "rebuild, CPU of the writer s": round(own, 1),
    }


def _index_bytes(growing: Growing) -> float:
    """What is derived from the chunks: the index in the folder, or every table and index except the texts of chunks."""
    if isinstance(growing.place, Path):
        folder = growing.place / "memory" / "index"
        # The JSON views are there, too, but no query uses them.
        return sum(
            path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".json"
        )
    from growth_rows import derived_bytes  # needs the extra postgres

    return derived_bytes(growing.place)


def grow(
    report: Report, growing: Growing, sizes: list[int], options: argparse.Namespace, scratch: Path
) -> None:
    """One row per size, saved as soon as it is measured."""
    for size in sizes:
        row: dict[str, Any] = {"chunks": size, "store": "local" if growing.local else "postgresql"}
        if size <= options.written:
            row["remembered in batches, chunks/s"] = round(growing.write(size))
        elif growing.local:
            growing.lay_down(size)
        else:
            from growth_rows import repeat  # needs the extra postgres

            repeat(str(growing.place), size)
        if growing.local:
            row |= rebuild(growing, size)  # indexes the files, too
        report.add(**row, **measure(growing, size, options.rounds, scratch))
        report.facts |= _against_smallest(report.rows)
        report.finish(options.output)


def _against_smallest(rows: list[dict[str, Any]]) -> dict[str, Any]:
    named = (
        "remember", "remember p95", "50 chunks of a tag", "one conversation", "50 conversations", "get",
    )  # fmt: skip
    facts: dict[str, Any] = {}
    for backend in dict.fromkeys(row["store"] for row in rows):
        mine = [row for row in rows if row["store"] == backend]
        facts[f"largest relative to smallest, {backend}"] = {
            name: round(mine[-1][name] / mine[0][name], 2) for name in named
        }
    return facts


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument(
        "--sizes", default="1000,10000,100000", help="sizes of the store, in chunks, ascending"
    )
    parser.add_argument(
        "--written", type=int, default=100_000, help="up to this size chunks are remembered one by one"
    )
    parser.add_argument("--rounds", type=int, default=300, help="remembers measured at each size")
    parser.add_argument(
        "--store", action="append", help="a folder to make the brain in, or a DSN; may be given twice"
    )
    parser.add_argument(
        "--add", action="store_true", help="keep the rows that the report has of other sizes and stores"
    )
    options = parser.parse_args()
    sizes = [1000, 4000] if options.quick else [int(size) for size in options.sizes.split(",")]
    report = Report("growth", "A memory as it grows: times in milliseconds unless named otherwise")
    if options.add:
        saved = options.output or RESULTS / "growth.json"
        report.rows += json.loads(saved.read_text(encoding="utf-8"))["rows"]
    with tempfile.TemporaryDirectory(prefix="rlm-mem-bench-") as scratch:
        for named in options.store or [scratch]:
            place: str | Path = named if "://" in named else Path(named) / "brain"
            grow(report, Growing(place), sizes, options, Path(scratch))


if __name__ == "__main__":
    main()
