"""Postings of the local store as `best_match` takes them: a term's list in the snapshot and its chunks in the delta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rlm_mem.store.core.best_match import Collection, Scorer, added, best, kth, places, scorers, top
from rlm_mem.store.local.delta import View

__all__ = ["LocalTermPostings", "best_match", "term_lists"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_OUT = np.float32(-1e30)
_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class LocalTermPostings:
    """One term's postings: its list in the snapshot (sorted ordinals) and in the delta (numbers of its chunks)."""

    ordinal: npt.NDArray[np.int32]
    frequency: npt.NDArray[np.uint8]
    segments: npt.NDArray[np.uint8]
    new: npt.NDArray[np.int32]
    new_frequency: npt.NDArray[np.uint8]
    new_segments: npt.NDArray[np.uint8]
    max_frequency: int
    index: int  # among the snapshot's terms, -1 for none
    lost: npt.NDArray[np.int64]  # places in `ordinal` of chunks that are gone

    @property
    def df(self) -> int:
        """Number of chunks that hold the term."""
        return len(self.ordinal) - len(self.lost) + len(self.new)

    def whole(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """Every ordinal of the snapshot with the term, gone or not, and how often it holds it."""
        return self.ordinal, self.frequency

    def find(self, slots: npt.NDArray[np.int32]) -> tuple[Ints, npt.NDArray[np.uint8]]:
        """Which of some ordinals hold the term, and how often."""
        which, place = places(self.ordinal, slots)
        return which, self.frequency[place]


def term_lists(view: View, terms: Ints) -> list[LocalTermPostings]:
    """The postings of each term (numbers of the dictionary; -1 has empty ones)."""
    return [_term_list(view, int(term)) for term in terms]


def _term_list(view: View, term: int) -> LocalTermPostings:
    snap, delta = view.snapshot, view.delta
    index = snap.term_index(term)
    lo, hi = (int(snap.offsets[index]), int(snap.offsets[index + 1])) if index >= 0 else (0, 0)
    ordinal = snap.ordinal[lo:hi]
    new = np.flatnonzero(delta.term == np.uint32(term)) if term >= 0 and delta.size else _NOTHING
    new_frequency = delta.frequency[new]
    highest = int(snap.max_frequency[index]) if index >= 0 else 0
    if len(new):
        highest = max(highest, int(new_frequency.max()))
    return LocalTermPostings(
        ordinal=ordinal,
        frequency=snap.frequency[lo:hi],
        segments=snap.segments[lo:hi],
        new=delta.slot[new],
        new_frequency=new_frequency,
        new_segments=delta.segments[new],
        max_frequency=highest,
        index=index,
        lost=places(ordinal, view.gone_ordinals)[1] if len(view.gone_ordinals) else _NOTHING,
    )


def best_match(
    view: View,
    lists: list[LocalTermPostings],
    weights: Floats,
    limit: int,
    admitted: npt.NDArray[np.bool_] | None,
) -> tuple[Ints, Floats]:
    """The `limit` best slots and their scores, best first; equal scores newest first.

    Args:
        view: the postings.
        lists: `term_lists` of the query's terms.
        weights: what each term counts, on top of its idf.
        limit: how many at most.
        admitted: mask over slots of what may be returned; None for all.
    """
    collection = Collection(view.snapshot.length, view.chunks, view.total_length)
    terms = scorers(collection, lists, weights)
    if not terms or limit < 1:
        return np.zeros(0, np.int64), np.zeros(0)
    size = view.snapshot.size
    new_scores = _new_scores(view, collection, terms)
    if admitted is not None:
        new_scores[~admitted[size:]] = _OUT
    slots, scores = best(
        collection,
        terms,
        limit,
        admitted=None if admitted is None else admitted[:size],
        gone=view.gone_ordinals,
        floor=kth(new_scores, limit, np.float32(0)),
    )
    all_slots = np.concatenate([slots.astype(np.int64), np.arange(size, size + len(new_scores))])
    all_scores = np.concatenate([scores, new_scores])
    return _ordered(view, all_slots, all_scores, limit)


def _new_scores(
    view: View, collection: Collection, terms: list[Scorer[LocalTermPostings]]
) -> npt.NDArray[np.float32]:
    scores = np.zeros(view.delta.size, np.float32)
    length = view.delta.columns.length
    for scorer in terms:
        postings = scorer.postings
        scores[postings.new] += added(collection, scorer.weight, postings.new_frequency, length[postings.new])
    return scores


def _ordered(view: View, slots: Ints, scores: npt.NDArray[np.float32], limit: int) -> tuple[Ints, Floats]:
    keep = top(scores, limit)
    slots, scores = slots[keep], scores[keep]
    size = view.snapshot.size
    old = slots < size
    at, doc = np.empty(len(slots)), np.empty(len(slots), np.int64)
    for out, before, after in (
        (at, view.snapshot.at, view.delta.columns.at),
        (doc, view.snapshot.doc, view.delta.columns.doc),
    ):
        target: npt.NDArray[Any] = out
        target[old] = before[slots[old]]
        target[~old] = after[slots[~old] - size]
    order = np.lexsort((-doc, -at, -scores))[:limit]
    return slots[order], scores[order].astype(np.float64)
