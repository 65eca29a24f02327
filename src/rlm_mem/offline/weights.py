"""The learned tables, and the probabilities from them: that there is an answer, and that the one found is right.

They were fitted on conversations by `benchmarks/offline_answers.py --fit` and contain only numbers by name of signal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import field

from rlm_mem.record import FrozenRecord


class Weights(FrozenRecord, frozen=True):
    """Weights by signal: ``span`` scores candidates, ``answerable`` and ``correct`` give the two probabilities.

    If the probability of an answer is below ``bar``, the model abstains. ``nearest`` gives the probability that the
    nearest memory, quoted, answers.
    """

    span: dict[str, float]
    answerable: dict[str, float]
    correct: dict[str, float]
    bar: float = 0.5
    nearest: dict[str, float] = field(default_factory=dict)


@lru_cache(maxsize=1)
def load_weights() -> Weights:
    """The tables that come with the package."""
    data = json.loads(Path(__file__).with_name("weights.json").read_text(encoding="utf-8"))
    return Weights(data["span"], data["held"], data["right"], data["bar"], data["nearest"])


def answerable_probability(figures: Mapping[str, float], table: Weights) -> float:
    """The probability that the passages contain an answer, from the figures of `examine.evidence_figures`."""
    return logistic(figures, table.answerable)


def correct_probability(figures: Mapping[str, float], answerable: float, table: Weights) -> float:
    """The probability that the answer is right, at most the probability that there is one."""
    return min(answerable, logistic({**figures, "held": answerable}, table.correct))


def logistic(figures: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The probability that a table with a ``bias`` gives to these figures."""
    total = weights.get("bias", 0.0) + sum(weights.get(name, 0.0) * value for name, value in figures.items())
    return round(1 / (1 + math.exp(-max(-30.0, min(30.0, total)))), 4)
