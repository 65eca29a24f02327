"""The learned tables, and the probabilities made from them: that there is an answer, and that the one found is right.

They were fitted on conversations by `benchmarks/offline_answers.py --fit` and hold nothing but numbers by name of
signal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

__all__ = ["Weights", "correct_probability", "answerable_probability", "load_weights"]


@dataclass(frozen=True)
class Weights:
    """``span``: for candidates; ``held``: that there is an answer; ``right``: that the one chosen is right.

    Below ``bar`` as the chance that there is an answer the model abstains.
    """

    span: dict[str, float]
    held: dict[str, float]
    right: dict[str, float]
    bar: float = 0.5


@lru_cache(maxsize=1)
def load_weights() -> Weights:
    """The tables that come with the package."""
    data = json.loads((files("rlm_mem.offline") / "weights.json").read_text(encoding="utf-8"))
    return Weights(data["span"], data["held"], data["right"], data["bar"])


def answerable_probability(figures: Mapping[str, float], table: Weights) -> float:
    """How likely the passages hold an answer, from the figures of `reader.evidence_figures`."""
    return _logistic(figures, table.held)


def correct_probability(figures: Mapping[str, float], held: float, table: Weights) -> float:
    """How likely the answer is right; never above the chance that there is one."""
    return min(held, _logistic({**figures, "held": held}, table.right))


def _logistic(figures: Mapping[str, float], weights: Mapping[str, float]) -> float:
    total = weights.get("bias", 0.0) + sum(weights.get(name, 0.0) * value for name, value in figures.items())
    return round(1 / (1 + math.exp(-max(-30.0, min(30.0, total)))), 4)
