"""Neighbours of chunks in conversation order, the walk being every backend's; and the local store's lines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rlm_mem.store.core.arrays import contained, distinct, union
from rlm_mem.store.core.conversation_order import walked
from rlm_mem.store.core.lookup import Neighbourhood
from rlm_mem.store.local.postings import View
from rlm_mem.store.local.snapshot import NO_CONVERSATION

__all__ = ["around", "in_order"]

Ints = npt.NDArray[np.int64]


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


def around(view: View, slots: Ints, alone: Ints, near: int, reach: int) -> Neighbourhood:
    """Neighbours of `slots` on both sides until they cover `near` and `reach` segments (`doc` holds slots).

    A chunk without a conversation has no neighbours; those `alone` come as they are.
    """
    line = _Line(view, union(slots, alone))
    return walked(line, np.flatnonzero(contained(line.asked, slots)), near, reach)[0]


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
