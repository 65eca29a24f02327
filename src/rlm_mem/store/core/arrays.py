"""Set operations on arrays that cost what they look like.

numpy's own `unique`, `isin` and the like import `numpy.ma` when first called, which takes longer than opening a
store and searching it: for a command that runs once that is most of the waiting.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["distinct", "contained", "union"]

_Number = TypeVar("_Number", bound=np.generic)


def distinct(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Each value once, sorted."""
    ordered = np.sort(values)
    if len(ordered) < 2:
        return ordered
    keep = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def union(first: npt.NDArray[_Number], second: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """What is in either, each value once, sorted."""
    return distinct(np.concatenate([first, second]))


def contained(values: npt.NDArray[_Number], among: npt.NDArray[_Number]) -> npt.NDArray[np.bool_]:
    """Which of `values` occur in `among` (any order)."""
    if not len(among) or not len(values):
        return np.zeros(len(values), np.bool_)
    ordered = np.sort(among)
    place = np.searchsorted(ordered, values)
    np.minimum(place, len(ordered) - 1, out=place)
    found: npt.NDArray[np.bool_] = ordered[place] == values
    return found
