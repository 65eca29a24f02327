"""Learn the weights of `rlm_mem.search.ranking` from several sets together, each set left out once.

    python benchmarks/ranking_fit.py --data FOLDER               learn, and judge each set by weights from the others
    python benchmarks/ranking_fit.py --data FOLDER --cache FILE  keep the signals there: the next run starts at once

Only the half of each set that is looked at is read (`ranking_sets.py`). Listwise logistic loss: for each question, how
likely what is relevant is to be drawn before everything else, a group of sets
weighing as the root of its size, with an L2 penalty
on standardised signals. Cues that count for one kind of question only are held back twice, by a stronger penalty and by
halving what was learned: few questions teach each. Questions without a true answer count less: they name the wrong
person on purpose. Prints the figures of each set by weights learned without its group, then the table for `WEIGHTS`.

Needs scipy (benchmarks only).
"""

from __future__ import annotations

import json
import math
import pickle
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ranking_sets import ADVERSARIAL, LOOKED_AT, Place, RankingSet, Task, sets
from rlm_mem.search import features
from rlm_mem.search.api import question_for
from rlm_mem.search.candidates import gather
from rlm_mem.search.ranking import TEMPERATURE, WEIGHTS
from rlm_mem.store.core.lookup import Filters
from support import Report, arguments

L2 = 0.4
CUE_L2 = 1.0  # times L2 for the weight of a cue of one kind of question ("when:time")
TALK_L2 = 0.05  # the same for what a signal is worth in talk beside what it is worth anywhere
CUES_KEPT = 0.5  # share of such a weight that is kept
FALSE_PREMISE = 0.2  # weight of a question without a true answer
HARD = 100  # chunks per question that are learned from: those that the present weights place first
PIECES = 0.2  # temperature of the soft maximum over the chunks of one text
#: Weights by the group of sets that they were learned without, for `ranking.py`.
WITHOUT = Path(__file__).parent / "ranking_weights.json"
BASE = features.names()
TALK = [BASE.index(name) for name in BASE if features.differs_in_talk(name)]
#: The signals, then those of them that weigh differently in talk, times how much it is talk.
NAMES = (*BASE, *(f"in talk {BASE[column]}" for column in TALK))
PLAIN = ("own", "whole")


@dataclass(frozen=True)
class Example:
    """One question: signals of the segments, which chunk each is of, which text each chunk, and the texts' grades."""

    set: str
    group: str
    weight: float
    rows: np.ndarray  # [segments, signals]
    chunk: np.ndarray  # [segments], never decreasing
    text: np.ndarray  # [chunks], never decreasing
    grade: np.ndarray  # [texts]
    lost: float  # share of the marks that no candidate covers
    ideal: float


def example(one: RankingSet, place: Place, task: Task) -> Example | None:
    """The candidates of a question with their signals; None where no candidate is relevant."""
    store = place.store
    source = store.candidate_source()
    query = question_for(source, task.text, store.config.search.language, datetime.now(UTC))
    found = gather(source, query, Filters(), max(store.config.search.candidates, 120))
    scene = features.Scene(query, found)
    values = features.values(scene)
    zeros = np.zeros(scene.size)
    rows = np.stack([values.get(name, zeros) for name in BASE], axis=1).astype(np.float32)
    rows = np.concatenate([rows, rows[:, TALK] * np.float32(scene.talk)], axis=1)
    near = np.zeros(scene.size, np.bool_)
    for name in ("own", "window", "related_words", "related_nearby", "in_month", "exact_day", "in_year"):
        near |= values.get(name, zeros) > 0
    numbers = np.array([place.owners.get(key, [-1])[0] for key in found.chunk_ids])
    kept = near & found.eligible & (numbers[found.chunk_index] >= 0)
    grades = {
        number: max((task.marks[mark] for mark in place.covers[number] & task.marks.keys()), default=0.0)
        for number in set(numbers[numbers >= 0].tolist())
    }
    plain = rows @ np.array([WEIGHTS.get(name, 0.0) for name in NAMES], np.float32)
    best: dict[int, float] = {}
    for segment in np.flatnonzero(kept).tolist():
        chunk = int(found.chunk_index[segment])
        best[chunk] = max(best.get(chunk, -1e9), float(plain[segment]))
    hard = set(sorted(best, key=lambda chunk: -best[chunk])[:HARD])
    hard |= {chunk for chunk in best if grades[int(numbers[chunk])] > 0}
    chosen = [s for s in np.flatnonzero(kept).tolist() if int(found.chunk_index[s]) in hard]
    if not chosen or not any(grades[int(numbers[chunk])] > 0 for chunk in hard):
        return None
    order = sorted(chosen, key=lambda s: (int(numbers[found.chunk_index[s]]), int(found.chunk_index[s])))
    chunks = [int(found.chunk_index[s]) for s in order]
    each_chunk = list(dict.fromkeys(chunks))
    texts = [int(numbers[chunk]) for chunk in each_chunk]
    each_text = list(dict.fromkeys(texts))
    grade = np.array([grades[number] for number in each_text])
    marks = set(task.marks)
    covered = {mark for number in each_text for mark in place.covers[number] & marks}
    of_all = sorted(
        (max((task.marks[m] for m in cover & marks), default=0.0) for cover in place.covers), reverse=True
    )[:10]
    return Example(
        one.name,
        one.group,
        FALSE_PREMISE if one.group == "LoCoMo" and task.kind == ADVERSARIAL else 1.0,
        rows[order],
        np.searchsorted(np.array(each_chunk), chunks)
        if each_chunk == sorted(each_chunk)
        else np.array([{c: i for i, c in enumerate(each_chunk)}[c] for c in chunks]),
        np.array([{t: i for i, t in enumerate(each_text)}[t] for t in texts]),
        grade,
        1 - len(covered) / len(marks),
        sum(one / math.log2(rank + 2) for rank, one in enumerate(of_all)),
    )


def examples(data: Path, folder: Path) -> tuple[list[Example], dict[str, int]]:
    """Every question of the halves looked at, and by set how many there are (with those nothing is found for)."""
    found: list[Example] = []
    asked: dict[str, int] = {}
    for one in sets(data, LOOKED_AT):
        for place in one.places(folder):
            for task in place.tasks:
                if not (one.group == "LoCoMo" and task.kind == ADVERSARIAL):
                    asked[one.name] = asked.get(one.name, 0) + 1
                made = example(one, place, task)
                if made is not None:
                    found.append(made)
        print(one.name, asked[one.name], file=sys.stderr, flush=True)
    return found, asked


@dataclass
class Joined:
    """Examples as one table, with the bounds of segments, chunks, texts and questions."""

    rows: np.ndarray
    chunk_starts: np.ndarray
    text_starts: np.ndarray  # in chunks
    question_starts: np.ndarray  # in texts
    grade: np.ndarray
    worth: np.ndarray  # of each text: weight of its question, shared by grade among what is relevant

    @staticmethod
    def of(given: Sequence[Example]) -> Joined:
        chunks, texts, segments = 0, 0, 0
        chunk_starts, text_starts, question_starts, worth = [], [], [], []
        groups: dict[str, float] = {}
        for one in given:
            groups[one.group] = groups.get(one.group, 0.0) + one.weight
        share = {name: math.sqrt(size) for name, size in groups.items()}
        for one in given:
            chunk_starts.append(np.flatnonzero(np.r_[True, np.diff(one.chunk) != 0]) + segments)
            text_starts.append(np.flatnonzero(np.r_[True, np.diff(one.text) != 0]) + chunks)
            question_starts.append(texts)
            worth.append(one.weight / groups[one.group] * share[one.group] * one.grade / one.grade.sum())
            segments, chunks, texts = (
                segments + len(one.rows),
                chunks + len(one.text),
                texts + len(one.grade),
            )
        return Joined(
            np.concatenate([one.rows for one in given]),
            np.concatenate(chunk_starts),
            np.concatenate(text_starts),
            np.array(question_starts),
            np.concatenate([one.grade for one in given]),
            np.concatenate(worth) / sum(share.values()),
        )


def softmax_of(values: np.ndarray, starts: np.ndarray, heat: float) -> tuple[np.ndarray, np.ndarray]:
    """Log-sum-exp of each stretch of `values` at a temperature, and each value's share of it."""
    sizes = np.diff(np.r_[starts, len(values)])
    scaled = values / heat
    top = np.maximum.reduceat(scaled, starts)
    odds = np.exp(scaled - np.repeat(top, sizes))
    sums = np.add.reduceat(odds, starts)
    return (np.log(sums) + top) * heat, odds / np.repeat(sums, sizes)


def fit(given: Sequence[Example], heat: float, l2: float) -> np.ndarray:
    """Weights that minimise the listwise loss."""
    from scipy.optimize import minimize

    table = Joined.of(given)
    scale = table.rows.std(axis=0) + 1e-6
    rows = table.rows / scale
    segment_sizes = np.diff(np.r_[table.chunk_starts, len(rows)])
    chunk_sizes = np.diff(np.r_[table.text_starts, len(table.chunk_starts)])
    text_sizes = np.diff(np.r_[table.question_starts, len(table.grade)])
    question = np.repeat(np.arange(len(text_sizes)), text_sizes)
    right = table.grade > 0
    penalty = l2 * np.array(
        [CUE_L2 if ":" in name else TALK_L2 if name.startswith("in talk") else 1.0 for name in NAMES]
    )

    plain = np.isin(NAMES, PLAIN)
    first = np.zeros(len(NAMES))

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        by_chunk, share = softmax_of(rows @ weights.astype(np.float32), table.chunk_starts, heat)
        by_text, chunk_share = softmax_of(by_chunk.astype(np.float64), table.text_starts, PIECES)
        top = np.repeat(np.maximum.reduceat(by_text, table.question_starts), text_sizes)
        odds = np.exp(by_text - top)
        others = np.add.reduceat(np.where(right, 0.0, odds), table.question_starts)[question]
        total = others + odds
        value = float((table.worth[right] * (np.log(total[right]) - np.log(odds[right] + 1e-300))).sum())
        pull = np.where(right, -table.worth * others / total, 0.0)
        blame = np.bincount(question, np.where(right, table.worth / total, 0.0))[question]
        pull += np.where(right, 0.0, odds * blame)
        per_chunk = np.repeat(pull, chunk_sizes) * chunk_share
        per_segment = np.repeat(per_chunk, segment_sizes) * share
        slope = rows.T @ per_segment.astype(np.float32) + held * (weights - first)
        return value + float((held * (weights - first)) @ (weights - first) / 2), slope.astype(np.float64)

    # First the two plain scores alone; then everything, held to what these came to.
    held = np.where(plain, 0.0, 1e6)
    first = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 20}).x
    held = penalty
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 80})
    kept = np.array([CUES_KEPT if ":" in name else 1.0 for name in NAMES])
    return np.asarray(found.x / scale * kept)


def judged(given: Sequence[Example], weights: np.ndarray, heat: float) -> tuple[float, float]:
    """Sums of recall@10 (of texts, as graded) and nDCG@10 over examples."""
    recall = gained = 0.0
    for one in given:
        if one.weight < 1:
            continue
        starts = np.flatnonzero(np.r_[True, np.diff(one.chunk) != 0])
        by_chunk, _ = softmax_of(one.rows @ weights, starts, heat)
        by_text = np.maximum.reduceat(by_chunk, np.flatnonzero(np.r_[True, np.diff(one.text) != 0]))
        order = np.argsort(-by_text, kind="stable")[:10]
        recall += (1 - one.lost) * float((one.grade[order] > 0).sum() / (one.grade > 0).sum())
        gained += sum(one.grade[n] / math.log2(rank + 2) for rank, n in enumerate(order)) / one.ideal
    return recall, gained


def tables(weights: np.ndarray) -> dict[str, dict[str, float]]:
    """The two tables of `rlm_mem.search.ranking`, by name."""
    rounded = [round(float(one), 2) for one in weights]
    return {
        "WEIGHTS": dict(zip(BASE, rounded[: len(BASE)], strict=True)),
        "TALK": dict(zip((BASE[column] for column in TALK), rounded[len(BASE) :], strict=True)),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Learn and report; see the module's docstring."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--cache", type=Path, help="keep the signals of all questions in this file")
    parser.add_argument("--l2", type=float, default=L2)
    parser.add_argument(
        "--heat", type=float, default=TEMPERATURE, help="temperature of the chunks' log-sum-exp"
    )
    options = parser.parse_args(argv)
    if options.data is None:
        print("ranking_fit: no --data: nothing to learn from, skipped")
        return 0
    if options.cache is not None and options.cache.exists():
        given, asked = pickle.loads(options.cache.read_bytes())
    else:
        with tempfile.TemporaryDirectory() as folder:
            given, asked = examples(options.data, Path(folder))
        if options.cache is not None:
            options.cache.write_bytes(pickle.dumps((given, asked)))
    report = Report(
        "ranking_fit", "The halves looked at, in percent: by weights learned without the set, and with it"
    )
    learned: dict[str, dict[str, dict[str, float]]] = {}
    every = fit(given, options.heat, options.l2)
    for group in dict.fromkeys(one.group for one in given):
        without = fit([one for one in given if one.group != group], options.heat, options.l2)
        learned[group] = tables(without)
        for name in dict.fromkeys(one.set for one in given if one.group == group):
            mine = [one for one in given if one.set == name]
            row: dict[str, object] = {"set": name}
            for how, weights in (("without", without), ("with", every)):
                recall, gained = judged(mine, weights, options.heat)
                row[f"{how}: recall@10"] = round(100 * recall / asked[name], 1)
                row[f"{how}: nDCG@10"] = round(100 * gained / asked[name], 1)
            report.add(**row, questions=asked[name])
    report.finish(options.output)
    print("learned without each group:", WITHOUT)
    WITHOUT.write_text(json.dumps(learned, indent=1) + "\n", encoding="utf-8")
    for table, weights in tables(every).items():
        print(f"{table}: dict[str, float] = {{")
        for name, weight in weights.items():
            print(f'    "{name}": {weight:.2f},')
        print("}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
