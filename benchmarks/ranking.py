"""Quality of ranking: RLM-MEM, SQLite FTS5 and bm25s on the same texts of every set.

    python benchmarks/ranking.py --data FOLDER                   the half of each set that is kept apart
    python benchmarks/ranking.py --data FOLDER --half "looked at"    the half that the weights were learned from
    python benchmarks/ranking.py                                 the notes of this repository alone

`RLM-MEM` has the weights that are shipped, `RLM-MEM, set left out` those that were learned without any set of the group
(`ranking_fit.py` leaves them in `ranking_weights.json`): the figures to expect on texts of another kind.

recall@10 is the share of relevant items among the first ten texts, nDCG@10 also counts their order and grades. One set
of weights ranks them all. For texts in scripts without spaces bm25s is given pairs of characters, which suit it best.
Where neighbours are measured, each of the ten hits includes the two turns before and after it. See `ranking_sets.py`
for the layout of FOLDER.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

from ranking_peers import DEPTH, PEERS, Bm25sPairs, missing
from ranking_sets import ADVERSARIAL, HALVES, KEPT_APART, Place, RankingSet, Task, figures, sets
from rlm_mem.search import ranking, search
from support import Report, arguments, percentile

OURS = "RLM-MEM"
LEFT_OUT = "RLM-MEM, set left out"
WITHOUT = Path(__file__).parent / "ranking_weights.json"
Ranker = Callable[[str], list[int]]


def rankers(place: Place, one: RankingSet) -> dict[str, Ranker]:
    """Every system over one store, by name."""
    without = json.loads(WITHOUT.read_text("utf-8")).get(one.group) if WITHOUT.exists() else None

    def ours(question: str) -> list[int]:
        hits = search(place.store, question, limit=DEPTH)
        return [number for hit in hits for number in place.owners.get(hit.chunk_id, ())]

    def left_out(question: str) -> list[int]:
        with ExitStack() as stack:
            for table in ("WEIGHTS", "TALK", "ONE_SIDED"):
                stack.enter_context(patch.dict(getattr(ranking, table), without[table]))
            return ours(question)

    found: dict[str, Ranker] = {OURS: ours}
    if without is not None:
        found[LEFT_OUT] = left_out
    for name, (build, package) in PEERS.items():
        if missing(package) is None:
            found[name] = (Bm25sPairs if one.pairs and name == "bm25s" else build)(place.texts).rank
    return found


def beside(place: Place, task: Task) -> float:
    """recall@10 where each hit includes two neighbours on each side."""
    covered: set[str] = set()
    for hit in search(place.store, task.text, limit=10, neighbours=2):
        for number in place.owners.get(hit.chunk_id, ()):
            covered |= place.covers[number]
        for near in hit.neighbours:
            covered |= place.lines.get(near.text, frozenset())
    return len(covered & task.marks.keys()) / len(task.marks)


def measured(one: RankingSet, folder: Path) -> dict[str, list[dict[str, float]]]:
    """By system: recall, nDCG and milliseconds of processor time of each question."""
    rows: dict[str, list[dict[str, float]]] = {}
    for place in one.places(folder):
        for system, rank in rankers(place, one).items():
            for task in place.tasks:
                if one.group == "LoCoMo" and task.kind == ADVERSARIAL:
                    continue
                began = time.process_time()
                order = rank(task.text)
                spent = (time.process_time() - began) * 1e3
                row = {**figures(order, place, task), "milliseconds": spent}
                if system == OURS and place.lines:
                    row["beside"] = beside(place, task)
                rows.setdefault(system, []).append(row)
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--half", choices=HALVES, default=KEPT_APART)
    parser.add_argument("--sets", nargs="*", help="only these, by name")
    options = parser.parse_args(argv)
    if options.data is None:
        print("no --data: only the notes are measured", file=sys.stderr)
    report = Report(
        "ranking", f"recall@10 and nDCG@10 in percent, the half of each set that is {options.half}"
    )
    with tempfile.TemporaryDirectory() as name:
        for one in sets(options.data, options.half):
            if options.sets and one.name not in options.sets:
                continue
            for system, rows in measured(one, Path(name)).items():
                report.add(
                    set=one.name,
                    system=system,
                    **{"recall@10": _percent(rows, "recall"), "nDCG@10": _percent(rows, "ndcg")},
                    **(
                        {"recall@10 within two neighbours": _percent(rows, "beside")}
                        if "beside" in rows[0]
                        else {}
                    ),
                    **{"CPU p50 ms": round(percentile([row["milliseconds"] for row in rows], 0.5), 2)},
                    questions=len(rows),
                )
    for peer, (_, package) in PEERS.items():
        if reason := missing(package):
            report.facts[f"{peer} skipped"] = reason
    report.facts["half of each set"] = options.half
    report.finish(options.output)
    return 0


def _percent(rows: Sequence[dict[str, float]], name: str) -> float:
    return round(100 * sum(row[name] for row in rows) / max(1, len(rows)), 1)


if __name__ == "__main__":
    sys.exit(main())
