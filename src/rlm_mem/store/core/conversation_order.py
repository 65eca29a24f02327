"""Neighbours of chunks in conversation order: the walk along a line of chunks, the same for every backend."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from rlm_mem.store.core.arrays import distinct
from rlm_mem.store.core.lookup import FAR, Neighbourhood

__all__ = ["ConversationLine", "MOST", "OPENING", "walked"]

Ints = npt.NDArray[np.int64]

#: Chunks looked at on each side at most: enough when every chunk is a single turn.
MOST = 12
#: `segments_before` is exact for this many chunks at the beginning of a conversation.
OPENING = 4


class ConversationLine(Protocol):
    """Chunks on one line on which every conversation is an unbroken stretch, as far as anybody walks there.

    Per asked chunk: its `place` on the line, and where its conversation begins and ends (one past the last). Places
    that are not the same conversation's next ones are never side by side.
    """

    @property
    def place(self) -> Ints: ...
    @property
    def first(self) -> Ints: ...
    @property
    def last(self) -> Ints: ...

    def slots(self, place: Ints) -> Ints:
        """The slots at these positions."""
        ...

    def segment_count(self, place: Ints) -> Ints:
        """Segments of the chunks at these places."""
        ...


def walked(
    line: ConversationLine, asked: Ints, near: int, reach: int, most: int = MOST
) -> tuple[Neighbourhood, bool]:
    """The neighbourhood on a line, and whether everybody got far enough in `most` steps to each side.

    Args:
        line: where the chunks stand.
        asked: those of the line's asked chunks that get neighbours.
        near: segments on each side whose chunks may be results themselves.
        reach: segments on each side that come along.
        most: chunks looked at on each side.
    """
    place, is_near = line.place, np.ones(len(line.place), np.bool_)
    enough = True
    for step in (-1, 1):
        at, covered = line.place.copy(), np.zeros(len(line.place), np.int64)
        racing = asked
        for _ in range(most):
            at[racing] += step
            inside = (at[racing] >= line.first[racing]) & (at[racing] < line.last[racing])
            racing = racing[inside & (covered[racing] < reach)]
            if not len(racing):
                break
            place = np.concatenate([place, at[racing]])
            is_near = np.concatenate([is_near, covered[racing] < near])
            covered[racing] += line.segment_count(at[racing])
        enough = enough and not bool((covered[racing] < reach).any())
    return _gathered(line, place, is_near), enough


def _gathered(line: ConversationLine, place: Ints, is_near: npt.NDArray[np.bool_]) -> Neighbourhood:
    """Each position once, in order, with its run and the number of segments before it."""
    unique = distinct(place)
    back = np.searchsorted(unique, place)
    near = np.zeros(len(unique), np.bool_)
    near[back[is_near]] = True
    firsts = distinct(line.first)
    owner = np.searchsorted(firsts, unique, side="right")
    breaks = np.ones(len(unique), np.int64)
    breaks[1:] = (np.diff(unique) != 1) | (np.diff(owner) != 0)
    offset = unique - firsts[owner - 1]
    before = np.full(len(unique), FAR, np.int64)
    opening = np.flatnonzero(offset <= OPENING)
    before[opening] = 0
    for step in range(1, OPENING + 1):
        later = opening[offset[opening] >= step]
        before[later] += line.segment_count(unique[later] - step)
    return Neighbourhood(line.slots(unique), np.cumsum(breaks) - 1, near, before)
