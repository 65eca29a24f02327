"""Learn the weights of `rlm_mem.search.ranking` from several sets together, each set left out once.

    python benchmarks/ranking_fit.py --data FOLDER               learn, and evaluate each set by the others
    python benchmarks/ranking_fit.py --data FOLDER --cache FILE  keep the signals there: the next run starts at once

Only the half "looked at" of each set is read (`ranking_sets.py`). First the base, which ranks by words alone: of a few
proportions of its signals the one that does best on the mean of all groups of sets, as it is, without learning. Then
everything else is added to it: listwise logistic loss (for each question, the probability that relevant items are drawn
before all others), a group of sets weighing as the root of its size, with an L2 penalty on each signal by its spread
among all candidates. Signals of speech have weights only in spoken text; those of evenly shared talk and those of one
dominant speaker are learned separately, so that neither affects texts without speakers. Questions without a true answer
count less: they name the wrong person on purpose. Prints the figures of each set by weights learned without its group,
then the tables of `rlm_mem.search.ranking`. The same every time.

Needs scipy (benchmarks only).
"""

from __future__ import annotations

import json
import math
import pickle
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ranking_sets import ADVERSARIAL, LOOKED_AT, Place, RankingSet, Task, sets
from rlm_mem.search import features
from rlm_mem.search.api import question_for
from rlm_mem.search.candidates import gather
from rlm_mem.search.ranking import ONE_SIDED, TALK, TEMPERATURE, WEIGHTS
from rlm_mem.store.core.lookup import Filters
from support import Report, arguments

L2 = 0.4
TALK_L2 = 0.1  # times L2 for the additional weight of a signal in talk: there is much data for it
FALSE_PREMISE = 0.2  # weight of a question without a true answer
HARD = 100  # chunks per question used for learning: those ranked first by words alone
PIECES = 0.2  # temperature of the soft maximum over the chunks of one text
MIN_SPREAD = 0.05  # for a signal that hardly occurs
#: Proportions of the base, "whole" and "first_person" being 1, and the weight of "whole" while they are compared.
#: "own" must not be 0: it distinguishes the segments of one chunk.
PROPORTIONS = tuple(
    {"own": own, "session": session, "gap": gap, "related_words": 0.3}
    for own in (0.6, 0.8, 1.0)
    for session in (0.0, 0.2, 0.4)
    for gap in (0.0, 0.1, 0.2)
)
BASE_WEIGHT = 0.35
#: Weights by the group of sets that they were learned without, for `ranking.py`.
WITHOUT = Path(__file__).parent / "ranking_weights.json"
#: The signals that rank by words alone; they have one weight, that of "whole".
BASE = ("whole", "first_person", "own", "session", "gap", "related_words")
DATES = tuple(name for name in WEIGHTS if name not in BASE)
SIGNALS = tuple(dict.fromkeys((*WEIGHTS, *TALK, *ONE_SIDED)))
COLUMN = {name: column for column, name in enumerate(SIGNALS)}
NAMES = (
    "base",
    *DATES,
    *(f"in talk {one}" for one in TALK),
    *(f"one-sided {one}" for one in ONE_SIDED),
)


@dataclass(frozen=True)
class Example:
    """One question: signals of the segments, the chunk of each, the text of each chunk, and the grades of texts."""

    set: str
    group: str
    weight: float
    signals: np.ndarray  # [segments, SIGNALS]
    talk: float  # how evenly the speakers share the talk
    spoken: np.ndarray  # [segments], 1 where it has a speaker
    chunk: np.ndarray  # [segments], never decreasing
    text: np.ndarray  # [chunks], never decreasing
    grade: np.ndarray  # [texts]
    lost: float  # share of the marks that no candidate covers
    ideal: float

    def rows(self, proportions: Mapping[str, float]) -> np.ndarray:
        """The columns that weights are learned for (`NAMES`)."""
        one_sided = (1 - self.talk) * self.spoken
        columns = [
            self.base(proportions),
            *(self.column(name) for name in DATES),
            *(self.talk * self.column(name) for name in TALK),
            *(one_sided * self.column(name) for name in ONE_SIDED),
        ]
        return np.stack(columns, axis=1).astype(np.float32)

    def base(self, proportions: Mapping[str, float]) -> np.ndarray:
        """The score by words alone."""
        return np.sum([proportions.get(name, 1.0) * self.column(name) for name in BASE], axis=0)

    def column(self, name: str) -> np.ndarray:
        """One signal of each segment."""
        return self.signals[:, COLUMN[name]]


def example(one: RankingSet, place: Place, task: Task) -> Example | None:
    """The candidates of a question with their signals; None where no candidate is relevant."""
    store = place.store
    source = store.candidate_source()
    query = question_for(source, task.text, store.config.search.language, datetime.now(UTC))
    found = gather(source, query, Filters(), max(store.config.search.candidates, 120))
    scene = features.Scene(query, found)
    values = features.values(scene)
    zeros = np.zeros(scene.size)
    signals = np.stack([values.get(name, zeros) for name in SIGNALS], axis=1).astype(np.float32)
    near = np.zeros(scene.size, np.bool_)
    for name in ("own", "window", "related_words", "related_nearby", "in_month", "exact_day", "in_year"):
        near |= values.get(name, zeros) > 0
    numbers = np.array([place.owners.get(key, [-1])[0] for key in found.chunk_ids])
    kept = near & found.eligible & (numbers[found.chunk_index] >= 0)
    grades = {
        number: max((task.marks[mark] for mark in place.covers[number] & task.marks.keys()), default=0.0)
        for number in set(numbers[numbers >= 0].tolist())
    }
    plain = values["whole"] + values["own"] + values["gap"] + 3 * (values["in_month"] + values["exact_day"])
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
        signals[order],
        scene.talk,
        scene.spoken[order].astype(np.float32),
        np.searchsorted(np.array(each_chunk), chunks)
        if each_chunk == sorted(each_chunk)
        else np.array([{c: i for i, c in enumerate(each_chunk)}[c] for c in chunks]),
        np.array([{t: i for i, t in enumerate(each_text)}[t] for t in texts]),
        grade,
        1 - len(covered) / len(marks),
        sum(one / math.log2(rank + 2) for rank, one in enumerate(of_all)),
    )


def examples(data: Path, folder: Path) -> tuple[list[Example], dict[str, int]]:
    """Every question of the halves "looked at", and their number by set (including those without a result)."""
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
    worth: np.ndarray  # of each text: weight of its question, shared by grade among the relevant texts

    @staticmethod
    def of(given: Sequence[Example], proportions: Mapping[str, float]) -> Joined:
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
                segments + len(one.signals),
                chunks + len(one.text),
                texts + len(one.grade),
            )
        return Joined(
            np.concatenate([one.rows(proportions) for one in given]),
            np.concatenate(chunk_starts),
            np.concatenate(text_starts),
            np.array(question_starts),
            np.concatenate([one.grade for one in given]),
            np.concatenate(worth) / sum(share.values()),
        )


def softmax_of(
    values: np.ndarray, starts: np.ndarray, heat: float, *, mean: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Log-sum-exp (or log-mean-exp) of each stretch of `values` at a temperature, and each value's share of it."""
    sizes = np.diff(np.r_[starts, len(values)])
    scaled = values / heat
    top = np.maximum.reduceat(scaled, starts)
    odds = np.exp(scaled - np.repeat(top, sizes))
    sums = np.add.reduceat(odds, starts)
    count = sizes if mean else 1
    return (np.log(sums / count) + top) * heat, odds / np.repeat(sums, sizes)


def alone(given: Sequence[Example], heat: float) -> dict[str, np.ndarray]:
    """The result of each of the `PROPORTIONS` alone, by group: mean recall@10 plus nDCG@10."""
    figures: dict[str, list[list[float]]] = {}
    for one in given:
        if one.weight == 1:
            bases = [one.base(proportions) * BASE_WEIGHT for proportions in PROPORTIONS]
            figures.setdefault(one.group, []).append([sum(ranked(one, base, heat)) for base in bases])
    return {group: np.array(rows).mean(axis=0) for group, rows in figures.items()}


def proportions_for(figures: Mapping[str, np.ndarray], without: str = "") -> Mapping[str, float]:
    """The proportions of the base that do best on the mean of all groups but one."""
    total = np.mean([row for group, row in figures.items() if group != without], axis=0)
    return PROPORTIONS[int(np.argmax(total))]


def fit(given: Sequence[Example], proportions: Mapping[str, float], heat: float, l2: float) -> np.ndarray:
    """Weights that minimise the listwise loss."""
    from scipy.optimize import minimize

    table = Joined.of(given, proportions)
    # By the signal itself, without the factor of talk: where the factor is nearly 0, the penalty keeps the weight
    # near 0.
    signals = np.concatenate([one.signals for one in given])
    spread = dict(zip(SIGNALS, np.maximum(signals.std(axis=0), MIN_SPREAD), strict=True))
    scale = np.array([spread["whole" if name == "base" else name.split(" ")[-1]] for name in NAMES])
    rows = table.rows / scale.astype(np.float32)
    segment_sizes = np.diff(np.r_[table.chunk_starts, len(rows)])
    chunk_sizes = np.diff(np.r_[table.text_starts, len(table.chunk_starts)])
    text_sizes = np.diff(np.r_[table.question_starts, len(table.grade)])
    question = np.repeat(np.arange(len(text_sizes)), text_sizes)
    right = table.grade > 0
    penalty = l2 * np.array([TALK_L2 if name.startswith("in talk") else 1.0 for name in NAMES])
    first = np.zeros(len(NAMES))

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        by_chunk, share = softmax_of(rows @ weights.astype(np.float32), table.chunk_starts, heat, mean=True)
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

    # First the base alone; then everything, with the base fixed.
    held = np.where(np.array(NAMES) == "base", 0.0, 1e6)
    first = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 20}).x
    held = penalty
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 60})
    return np.asarray(found.x / scale)


def ranked(one: Example, scores: np.ndarray, heat: float) -> tuple[float, float]:
    """recall@10 (of texts, as graded) and nDCG@10 of one question by the scores of its segments."""
    by_chunk, _ = softmax_of(scores, np.flatnonzero(np.r_[True, np.diff(one.chunk) != 0]), heat, mean=True)
    by_text = np.maximum.reduceat(by_chunk, np.flatnonzero(np.r_[True, np.diff(one.text) != 0]))
    order = np.argsort(-by_text, kind="stable")[:10]
    recall = (1 - one.lost) * float((one.grade[order] > 0).sum() / (one.grade > 0).sum())
    return recall, sum(one.grade[n] / math.log2(rank + 2) for rank, n in enumerate(order)) / one.ideal


def judged(
    given: Sequence[Example], proportions: Mapping[str, float], weights: np.ndarray, heat: float
) -> tuple[float, float]:
    """Sums of recall@10 and nDCG@10 over examples."""
    found = [ranked(one, one.rows(proportions) @ weights, heat) for one in given if one.weight == 1]
    return sum(recall for recall, _ in found), sum(gained for _, gained in found)


def tables(proportions: Mapping[str, float], weights: np.ndarray) -> dict[str, dict[str, float]]:
    """The tables of `rlm_mem.search.ranking`, by name."""
    learned = dict(zip(NAMES, weights.tolist(), strict=True))
    base = {name: learned["base"] * proportions.get(name, 1.0) for name in BASE}
    found = {
        "WEIGHTS": base | {name: learned[name] for name in DATES},
        "TALK": {name: learned[f"in talk {name}"] for name in TALK},
        "ONE_SIDED": {name: learned[f"one-sided {name}"] for name in ONE_SIDED},
    }
    return {table: {name: round(one, 3) for name, one in row.items()} for table, row in found.items()}


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
        "ranking_fit",
        "The halves looked at, in percent: by words alone, by weights learned without the set, and with it",
    )
    learned: dict[str, dict[str, dict[str, float]]] = {}
    by_words = alone(given, options.heat)
    for_all = proportions_for(by_words)
    every = fit(given, for_all, options.heat, options.l2)
    for group in dict.fromkeys(one.group for one in given):
        others = [one for one in given if one.group != group]
        for_others = proportions_for(by_words, without=group)
        without = fit(others, for_others, options.heat, options.l2)
        learned[group] = tables(for_others, without)
        for name in dict.fromkeys(one.set for one in given if one.group == group):
            mine = [one for one in given if one.set == name]
            row: dict[str, object] = {"set": name}
            plain = np.array([BASE_WEIGHT] + [0.0] * (len(NAMES) - 1))
            for how, proportions, weights in (
                ("base only", for_others, plain),
                ("without", for_others, without),
                ("with", for_all, every),
            ):
                recall, gained = judged(mine, proportions, weights, options.heat)
                row[f"{how}: recall@10"] = round(100 * recall / asked[name], 1)
                row[f"{how}: nDCG@10"] = round(100 * gained / asked[name], 1)
            report.add(**row, questions=asked[name])
    report.finish(options.output)
    print("learned without each group:", WITHOUT)
    WITHOUT.write_text(json.dumps(learned, indent=1) + "\n", encoding="utf-8")
    for table, weights in tables(for_all, every).items():
        print(f"{table}: dict[str, float] = {{")
        for name, weight in weights.items():
            print(f'    "{name}": {weight:.3f},')
        print("}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
