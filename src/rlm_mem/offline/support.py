"""Two chances, 0 to 1: that the memory holds an answer at all, and that the answer found is right."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rlm_mem.offline.weights import Weights

__all__ = ["correct_chance", "held_chance"]


def held_chance(figures: Mapping[str, float], table: Weights) -> float:
    """How likely the passages hold an answer, from the figures of `reader.evidence_figures`."""
    return _logistic(figures, table.held)


def correct_chance(figures: Mapping[str, float], held: float, table: Weights) -> float:
    """How likely the answer is right; never above the chance that there is one."""
    return min(held, _logistic({**figures, "held": held}, table.right))


def _logistic(figures: Mapping[str, float], weights: Mapping[str, float]) -> float:
    total = weights.get("bias", 0.0) + sum(weights.get(name, 0.0) * value for name, value in figures.items())
    return round(1 / (1 + math.exp(-max(-30.0, min(30.0, total)))), 4)
