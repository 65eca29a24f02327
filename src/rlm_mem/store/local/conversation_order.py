"""Neighbours of chunks in conversation order, the walk being every backend's; and the local store's lines."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from rlm_mem.store.core.arrays import contained, distinct, union
from rlm_mem.store.core.lookup import FAR, Neighbourhood
from rlm_mem.store.local.postings import View
from rlm_mem.store.local.snapshot import NO_CONVERSATION

__all__ = ["MOST", "OPENING", "Line", "around", "in_order", "walked"]

Ints = npt.NDArray[np.int64]

#: Chunks looked at on each side at most: enough when every chunk is a single turn.
MOST = 12
#: `segments_before` is exact for this many chunks at the beginning of a conversation.
OPENING = 4


def in_order(view: View, first: float, last: float) -> Ints:
    """The slots with `first <= at < last`, in the order (at, doc)."""
    snap, new = view.snapshot, view.delta.columns
    order = snap.time_order
    lo, hi = (int(np.searchsorted(snap.at, moment, sorter=order)) for moment in (first, last))
    old = order[lo:hi].astype(np.int64)
    if len(view.gone_ordinals):
        old = old[~view.gone[old]]
    fresh = np.flatnonzero((new.at >= first) & (new.at < last))
    if not len(fresh):
        return old
    slots = np.concatenate([old, fresh + snap.size])
    return slots[np.lexsort((view.take("doc", slots), view.take("at", slots)))]


class Line(Protocol):
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
        """What stands at these places."""
        ...

    def segment_count(self, place: Ints) -> Ints:
        """Segments of the chunks at these places."""
        ...


def around(view: View, slots: Ints, alone: Ints, near: int, reach: int) -> Neighbourhood:
    """Neighbours of `slots` on both sides until they cover `near` and `reach` segments (`doc` holds slots).

    A chunk without a conversation has no neighbours; those `alone` come as they are.
    """
    line = _Line(view, union(slots, alone))
    return walked(line, np.flatnonzero(contained(line.asked, slots)), near, reach)[0]


def walked(line: Line, asked: Ints, near: int, reach: int, most: int = MOST) -> tuple[Neighbourhood, bool]:
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


def _gathered(line: Line, place: Ints, is_near: npt.NDArray[np.bool_]) -> Neighbourhood:
    """Each place once, in order, with its run and what stands before it."""
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


class _Line:
    """The asked chunks on one line on which every conversation is an unbroken stretch.

    The snapshot's ordinals are such a line. Conversations that the delta or the mask touches are laid out anew
    behind its end.
    """

    def __init__(self, view: View, slots: Ints) -> None:
        self._view = view
        self.asked = slots
        size = view.snapshot.size
        conversation = view.take("conversation", slots)
        self.place = slots.copy()
        self.first, self.last = slots.copy(), slots + 1
        touched = contained(conversation, view.touched)
        plain = np.flatnonzero(~touched & (conversation != NO_CONVERSATION))
        self.first[plain], self.last[plain] = view.snapshot.range_of(conversation[plain])
        # Chunks of the delta without a conversation keep their slot, so the new stretches begin behind the delta.
        self._base = size + view.delta.size
        stretches: list[Ints] = [np.zeros(0, np.int64)]
        end = self._base
        for number in distinct(conversation[touched]).tolist():
            members = _members(view, number)
            mine = np.flatnonzero(conversation == number)
            order = np.argsort(members)
            self.place[mine] = order[np.searchsorted(members, slots[mine], sorter=order)] + end
            self.first[mine], self.last[mine] = end, end + len(members)
            stretches.append(members)
            end += len(members)
        self._laid_out = np.concatenate(stretches)

    def slots(self, place: Ints) -> Ints:
        """What stands at these places."""
        slots = place.copy()
        moved = place >= self._base
        slots[moved] = self._laid_out[place[moved] - self._base]
        return slots

    def segment_count(self, place: Ints) -> Ints:
        """Segments of the chunks at these places."""
        counts: Ints = self._view.take("segment_count", self.slots(place)).astype(np.int64)
        return counts


def _members(view: View, conversation: int) -> Ints:
    """The slots of one conversation in order (at, doc)."""
    known: Ints | None = view.members.get(conversation)
    if known is not None:
        return known
    first, last = (int(edge[0]) for edge in view.snapshot.range_of(np.array([conversation])))
    old = np.arange(first, last, dtype=np.int64)
    old = old[~view.gone[first:last]]
    new = np.flatnonzero(view.delta.columns.conversation == conversation) + view.snapshot.size
    slots = np.concatenate([old, new])
    members: Ints = slots[np.lexsort((view.take("doc", slots), view.take("at", slots)))]
    view.members[conversation] = members
    return members
