"""The learned tables: what each signal of a candidate weighs, and what speaks for an answer being there and right.

They were fitted on conversations by `benchmarks/offline_answers.py --fit` and hold nothing but numbers by name of
signal.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

__all__ = ["Weights", "load_weights"]


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
