"""How well search ranks: RLM-MEM beside SQLite FTS5 and bm25s, on every set and on the same texts.

    python benchmarks/ranking.py --data FOLDER                   the half of each set that is kept apart
    python benchmarks/ranking.py --data FOLDER --half "looked at"    the half that the weights were learned from
    python benchmarks/ranking.py                                 the notes of this repository alone

`RLM-MEM` has the weights that are shipped, `RLM-MEM, set left out` those that were learned without any set of the group
(`ranking_fit.py` leaves them in `results/ranking_weights.json`): the figures to expect on texts of another kind.

recall@10 is the share of what is marked as relevant among the first ten texts, nDCG@10 also counts their order and
grades. One set of weights ranks them all. For texts in scripts without spaces bm25s is given pairs of characters, which
suit it best. See `ranking_sets.py` for the layout of FOLDER.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

from ranking_sets import ADVERSARIAL, HALVES, KEPT_APART, Place, RankingSet, figures, sets
from retrieval_peers import DEPTH, Bm25s, Bm25sPairs, Fts5, missing
from rlm_mem.search import ranking, search
from support import RESULTS, Report, arguments, percentile, timed

OURS = "RLM-MEM"
LEFT_OUT = "RLM-MEM, set left out"
WITHOUT = RESULTS / "ranking_weights.json"
Ranker = Callable[[str], list[int]]


def rankers(place: Place, one: RankingSet) -> dict[str, Ranker]:
    """Every system over one store, by name."""
    without = json.loads(WITHOUT.read_text("utf-8")).get(one.group) if WITHOUT.exists() else None

    def ours(question: str) -> list[int]:
        hits = search(place.store, question, limit=DEPTH)
        return [number for hit in hits for number in place.owners.get(hit.chunk_id, ())]

    def left_out(question: str) -> list[int]:
        with patch.dict(ranking.WEIGHTS, without["WEIGHTS"]), patch.dict(ranking.TALK, without["TALK"]):
            return ours(question)

    found: dict[str, Ranker] = {OURS: ours}
    if without is not None:
        found[LEFT_OUT] = left_out
    found["SQLite FTS5"] = Fts5(place.texts).rank
    if missing("bm25s") is None:
        found["bm25s"] = (Bm25sPairs if one.pairs else Bm25s)(place.texts).rank
    return found


def measured(one: RankingSet, folder: Path) -> dict[str, list[dict[str, float]]]:
    """By system: recall, nDCG and milliseconds of each question."""
    rows: dict[str, list[dict[str, float]]] = {}
    for place in one.places(folder):
        for system, rank in rankers(place, one).items():
            for task in place.tasks:
                if one.group == "LoCoMo" and task.kind == ADVERSARIAL:
                    continue
                milliseconds, order = timed(lambda rank=rank, task=task: rank(task.text))
                rows.setdefault(system, []).append(
                    {**figures(order, place, task), "milliseconds": milliseconds}
                )
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
                    **{"p50 ms": round(percentile([row["milliseconds"] for row in rows], 0.5), 2)},
                    questions=len(rows),
                )
    reason = missing("bm25s")
    if reason:
        report.facts["bm25s skipped"] = reason
    report.facts["half"] = options.half
    report.finish(options.output)
    return 0


def _percent(rows: Sequence[dict[str, float]], name: str) -> float:
    return round(100 * sum(row[name] for row in rows) / max(1, len(rows)), 1)


if __name__ == "__main__":
    sys.exit(main())
