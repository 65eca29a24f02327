"""Fits the tables of the offline reader (`rlm_mem/offline/weights.json`) to questions with known answers.

Three tables for conversations: the weight of each signal of a candidate (expected token F1 under a softmax over all
candidates, L2), the probability that the passages contain an answer, and the probability that the answer is right
(logistic). The last two are fitted on answers of tables that were fitted without the conversation asked about;
otherwise they would be too high. The table for quotations of the nearest memory (logistic) is fitted by
`offline_corpora.py --fit`.
"""

from __future__ import annotations

import json
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rlm_mem.offline.candidates import candidates
from rlm_mem.offline.examine import READ_FULLY, examine
from rlm_mem.offline.features import passage_signs, signals, with_unspoken_names
from rlm_mem.offline.passages import Passage
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.weights import Weights, load_weights

Floats = npt.NDArray[np.float64]

RARE = 25  # a signal seen in fewer questions is left out: it could only be learned by heart
NEGATIVES = 220  # wrong candidates sampled per question, weighted up to stand for all of them
FALSE_ABSTENTIONS = 0.08  # highest share of answerable questions that may be left unanswered
RIGHT_FROM = (
    0.5  # an answer counts as right from this token F1 on, or when it holds all words of the true one
)
PRIORS = {
    # Set by hand: too rare in the conversations to be learned (see `RARE`), or absent from them.
    "replaced": -2.5,
    "how_many:focus_next": 2.0,
    "how_many:form:number": 0.5,
    "form:author": -1.0,
    "form:yes": 0.3,
    "yes:negated": -1.0,
    "no:negated": 1.5,
    "option:said": 1.0,
    "option:sentence": 1.0,
    "form:compared": 5.0,
}
# The kind of question is not evidence about whether the memory has the answer (in a data set it may correlate). Where
# the unanswerable questions are about the other speaker, matching words would count against an answer.
HELD_IGNORES = frozenset(
    {"best_said", "date", "exact", "fits", "many", "matched", "stands_out", "why_how", "words", "yes_no"}
)
HELD_PRIORS = {
    "wordless": -3.0,
    "absent": -2.0,
}  # no word, or no name, of the question anywhere: does not occur in the data
_ARTICLES = frozenset({"a", "an", "the", "and"})
_BARE = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True)
class Example:
    """A question with its passages and the true answer; None: the memory has none."""

    group: str
    question: str
    answer: str | None
    passages: tuple[Passage, ...]


def words(text: object) -> list[str]:
    """Lower-case words without punctuation and articles, as token F1 compares them."""
    return [w for w in str(text).lower().replace(",", " ").translate(_BARE).split() if w not in _ARTICLES]


def token_f1(answer: object, truth: object) -> float:
    """F1 of the words of two answers, 0 to 1."""
    one, other = words(answer), words(truth)
    both = sum((Counter(one) & Counter(other)).values())
    return 2 * both / (len(one) + len(other)) if both else float(one == other)


def is_right(answer: object, truth: object) -> bool:
    """Whether an answer counts as right: see `RIGHT_FROM`."""
    told = set(words(truth))
    return token_f1(answer, truth) >= RIGHT_FROM or (bool(told) and told <= set(words(answer)))


@dataclass
class Rows:
    """All candidates of all examples as one sparse table, row by row."""

    names: dict[str, int]
    column: npt.NDArray[np.int64]
    value: Floats
    row: npt.NDArray[np.int64]
    example: npt.NDArray[np.int64]
    f1: Floats
    weight: Floats
    groups: npt.NDArray[np.str_]
    fitted: dict[frozenset[str], dict[str, float]] = field(default_factory=dict)  # by the groups left out


def collect(examples: Sequence[Example], seed: int = 0) -> Rows:
    """Signals of every useful candidate and a sample of the others, for the answerable examples."""
    chosen = np.random.default_rng(seed)
    names: dict[str, int] = {}
    seen: Counter[int] = Counter()
    column: list[int] = []
    value: list[float] = []
    row: list[int] = []
    example: list[int] = []
    f1: list[float] = []
    weight: list[float] = []
    groups: list[str] = []
    for item in examples:
        if item.answer is None:
            continue
        passages = [p for p in item.passages if p.sentences]
        question = with_unspoken_names(analyse_question(item.question), passages)
        found = [
            (candidate, sign)
            for passage, sign in zip(passages, passage_signs(question, passages), strict=True)
            if sign.rank < READ_FULLY
            for candidate in candidates(question, passage)
        ]
        scores = np.array([token_f1(candidate.text, item.answer) for candidate, _ in found])
        if not len(scores) or scores.max() <= 0.2:
            continue  # nothing to learn: no candidate is near the answer
        good = np.flatnonzero(scores > 0.3)
        good = good[np.argsort(-scores[good], kind="stable")[:80]]
        bad = np.flatnonzero(scores <= 0.3)
        each = max(1.0, len(bad) / NEGATIVES)
        if len(bad) > NEGATIVES:
            bad = chosen.choice(bad, NEGATIVES, replace=False)
        present: set[int] = set()
        for index, share in [*((i, 1.0) for i in good), *((i, each) for i in bad)]:
            for name, amount in signals(question, *found[index]).items():
                if amount:
                    number = names.setdefault(name, len(names))
                    present.add(number)
                    column.append(number)
                    value.append(amount)
                    row.append(len(f1))
            example.append(len(groups))
            f1.append(float(scores[index]))
            weight.append(share)
        groups.append(item.group)
        seen.update(present)
    kept = np.array([seen[number] >= RARE for number in range(len(names))])
    columns = np.array(column)
    values = np.array(value) * kept[columns]
    by_row = (np.array(example), np.array(f1), np.array(weight))
    return Rows(names, columns, values, np.array(row), *by_row, np.array(groups))


def fit_span(
    rows: Rows, leave_out: Iterable[str] = (), *, l2: float = 0.001, steps: int = 120, rate: float = 0.06
) -> dict[str, float]:
    """Weights of the signals: gradient steps on the expected F1 (85 %) and the likelihood of the best spans (15 %)."""
    out = frozenset(leave_out)
    if out in rows.fitted:
        return rows.fitted[out]
    wanted = np.array([group not in out for group in rows.groups])[rows.example]
    renumbered = np.cumsum(wanted) - 1
    used = wanted[rows.row]
    column, value, row = rows.column[used], rows.value[used], renumbered[rows.row[used]]
    f1, load, example = rows.f1[wanted], np.log(rows.weight[wanted]), rows.example[wanted]
    starts = np.r_[0, np.flatnonzero(np.diff(example)) + 1]
    sizes = np.diff(np.r_[starts, len(example)])
    target = f1**3 * np.exp(load)
    target /= np.repeat(np.maximum(np.add.reduceat(target, starts), 1e-9), sizes)
    weights, first, second = np.zeros(len(rows.names)), np.zeros(len(rows.names)), np.zeros(len(rows.names))
    for step in range(1, steps + 1):
        score = np.bincount(row, weights[column] * value, len(example)) + load
        raised = np.exp(score - np.repeat(np.maximum.reduceat(score, starts), sizes))
        share = raised / np.repeat(np.add.reduceat(raised, starts), sizes)
        expected = np.repeat(np.add.reduceat(share * f1, starts), sizes)
        push = 0.85 * share * (f1 - expected) / (expected + 0.3) + 0.15 * (target - share)
        gradient = l2 * weights - np.bincount(column, push[row] * value, len(weights)) / len(starts)
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient**2
        weights -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    learned = {name: round(float(weights[n]), 3) for name, n in rows.names.items() if abs(weights[n]) >= 0.01}
    rows.fitted[out] = {**PRIORS, **learned}
    return rows.fitted[out]


def fit_logistic(
    figures: Sequence[dict[str, float]], truth: Sequence[bool], l2: float = 0.01, steps: int = 500
) -> dict[str, float]:
    """Logistic weights by name, with a ``bias``; the signals are standardised while fitting."""
    names = sorted({name for one in figures for name in one})
    table = np.array([[one.get(name, 0.0) for name in names] for one in figures])
    mean, spread = table.mean(0), table.std(0) + 1e-6
    table = np.c_[(table - mean) / spread, np.ones(len(table))]
    wanted = np.array(truth, float)
    weights, first, second = np.zeros(table.shape[1]), np.zeros(table.shape[1]), np.zeros(table.shape[1])
    decay = np.r_[np.full(len(names), l2), 0.0]
    for step in range(1, steps + 1):
        gradient = table.T @ (1 / (1 + np.exp(-table @ weights)) - wanted) / len(wanted) + decay * weights
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient**2
        weights -= 0.03 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    plain = weights[:-1] / spread
    found = {name: round(float(w), 4) for name, w in zip(names, plain, strict=True)}
    return {**found, "bias": round(float(weights[-1] - plain @ mean), 4)}


Seen = tuple[Example, str, dict[str, float]]


def examined(examples: Sequence[Example], rows: Rows) -> list[Seen]:
    """Every answerable example with its answer and figures, by a table fitted without its group."""
    found: list[Seen] = []
    for group in sorted({example.group for example in examples}):
        inner = Weights(fit_span(rows, {group}), {}, {}, 0.0)
        for example in examples:
            if example.group == group:
                seen = examine(analyse_question(example.question), example.passages, inner)
                if seen is not None:
                    found.append((example, seen.answer, seen.figures))
    return found


def fit(rows: Rows, seen: Sequence[Seen], leave_out: Iterable[str] = ()) -> Weights:
    """All tables, from the examples of every group except ``leave_out``."""
    out = set(leave_out)
    used = [one for one in seen if one[0].group not in out]
    figures = [one for _, _, one in used]
    holds = [example.answer is not None for example, _, _ in used]
    bare = [{name: value for name, value in one.items() if name not in HELD_IGNORES} for one in figures]
    held_table = fit_logistic(bare, holds)
    held_table |= {name: min(prior, held_table.get(name, 0.0)) for name, prior in HELD_PRIORS.items()}
    held = [_chance(held_table, one) for one in figures]
    gains = [
        token_f1(text, example.answer) if example.answer is not None else 0.0 for example, text, _ in used
    ]
    right = [example.answer is not None and is_right(text, example.answer) for example, text, _ in used]
    right_table = fit_logistic([{**one, "held": h} for one, h in zip(figures, held, strict=True)], right)
    bar = _bar(held, holds, gains)
    return Weights(fit_span(rows, out), held_table, right_table, bar, load_weights().nearest)


def _chance(table: dict[str, float], figures: dict[str, float]) -> float:
    total = table["bias"] + sum(table.get(name, 0.0) * value for name, value in figures.items())
    return float(1 / (1 + np.exp(-total)))


def _bar(held: Sequence[float], holds: Sequence[bool], gains: Sequence[float]) -> float:
    """The probability below which to abstain: best for answers and abstentions together, with few false abstentions."""
    chance, there, gain = np.array(held), np.array(holds), np.array(gains)
    best, chosen = -1.0, 0.5
    for bar in np.arange(0.2, 0.9, 0.01):
        silent = chance < bar
        if silent[there].mean() > FALSE_ABSTENTIONS:
            break
        worth = float(np.where(there, gain * ~silent, silent).mean())
        if worth > best:
            best, chosen = worth, float(bar)
    return round(chosen, 2)


def write(weights: Weights, path: Path, **extra: Any) -> None:
    """Write the tables where the package reads them."""
    data = {
        "bar": weights.bar,
        "held": weights.answerable,
        "right": weights.correct,
        "span": weights.span,
        "nearest": weights.nearest,
        **extra,
    }
    path.write_text(json.dumps(data, indent=0, sort_keys=True) + "\n", encoding="utf-8")
