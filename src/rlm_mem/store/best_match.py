"""The best chunks by tuned BM25, exactly, without scoring every match.

Rare terms come first: their lists are short and their weight is high. Once the best scores so far exceed what the
remaining (common) terms could add to a chunk that has none of the rare ones, no new chunk can enter, and the long
lists are only looked up for the chunks still in the race. The result is the same as scoring everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rlm_mem.store.lookup import BM25_B, BM25_K1
from rlm_mem.store.postings import View

__all__ = ["TermList", "best_match", "term_lists"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A chunk that must not be returned starts so low that no sum of term scores lifts it up.
_OUT = np.float32(-1e30)
#: Bounds are compared with a little slack, since sums of 32-bit numbers are rounded.
_SLACK = 1.0 - 1e-5
#: With this many chunks admitted, looking each up in every list is quicker than walking the lists.
_FEW = 5_000
#: A list this short is walked in any case.
_SHORT = 2_000


@dataclass(frozen=True, slots=True)
class TermList:
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


def term_lists(view: View, terms: Ints) -> list[TermList]:
    """The postings of each term (numbers of the dictionary; -1 has empty ones)."""
    return [_term_list(view, int(term)) for term in terms]


def _term_list(view: View, term: int) -> TermList:
    snap, delta = view.snapshot, view.delta
    index = snap.term_index(term)
    lo, hi = (int(snap.offsets[index]), int(snap.offsets[index + 1])) if index >= 0 else (0, 0)
    ordinal = snap.ordinal[lo:hi]
    new = np.flatnonzero(delta.term == np.uint32(term)) if term >= 0 and delta.size else _NOTHING
    new_frequency = delta.frequency[new]
    highest = int(snap.max_frequency[index]) if index >= 0 else 0
    if len(new):
        highest = max(highest, int(new_frequency.max()))
    return TermList(
        ordinal=ordinal,
        frequency=snap.frequency[lo:hi],
        segments=snap.segments[lo:hi],
        new=delta.slot[new],
        new_frequency=new_frequency,
        new_segments=delta.segments[new],
        max_frequency=highest,
        index=index,
        lost=_places(ordinal, view.gone_ordinals)[1] if len(view.gone_ordinals) else _NOTHING,
    )


def best_match(
    view: View, lists: list[TermList], weights: Floats, limit: int, admitted: npt.NDArray[np.bool_] | None
) -> tuple[Ints, Floats]:
    """The `limit` best slots and their scores, best first; equal scores newest first.

    Args:
        view: the postings.
        lists: `term_lists` of the query's terms.
        weights: what each term counts, on top of its idf.
        limit: how many at most.
        admitted: mask over slots of what may be returned; None for all.
    """
    scorers = _scorers(view, lists, weights)
    size = view.snapshot.size
    if not scorers or limit < 1:
        return np.zeros(0, np.int64), np.zeros(0)
    new_scores = _new_scores(view, scorers)
    if admitted is not None:
        new_scores[~admitted[size:]] = _OUT
    floor = _kth(new_scores, limit, np.float32(0))
    few = None if admitted is None else np.flatnonzero(admitted[:size])
    if few is not None and len(few) <= _FEW:
        slots, scores = _look_up(view, few.astype(np.int32), scorers, floor, limit)
    else:
        slots, scores = _walk(view, scorers, admitted, floor, limit)
    all_slots = np.concatenate([slots.astype(np.int64), np.arange(size, size + len(new_scores))])
    all_scores = np.concatenate([scores, new_scores])
    return _top(view, all_slots, all_scores, limit)


@dataclass(frozen=True, slots=True)
class _Scorer:
    """A term with its weight (idf included) and the most that it can add to any chunk."""

    postings: TermList
    weight: np.float32
    bound: float


def _scorers(view: View, lists: list[TermList], weights: Floats) -> list[_Scorer]:
    scorers = []
    for postings, weight in zip(lists, weights, strict=True):
        df = postings.df
        if not df or weight <= 0:
            continue
        idf = float(np.log1p((view.chunks - df + 0.5) / (df + 0.5)))
        top = postings.max_frequency / (postings.max_frequency + BM25_K1 * (1 - BM25_B))
        full = idf * float(weight) * (BM25_K1 + 1)
        scorers.append(_Scorer(postings, np.float32(full), full * top))
    # The order decides how sums are rounded: it must not depend on what lies in the snapshot and what in the delta.
    scorers.sort(key=lambda s: (-float(s.weight), s.postings.df))
    return scorers


def _added(
    view: View, scorer: _Scorer, frequency: npt.NDArray[np.uint8], length: npt.NDArray[np.int32]
) -> npt.NDArray[np.float32]:
    """What a term adds to chunks with these frequencies and lengths."""
    tf = frequency.astype(np.float32)
    norm = length.astype(np.float32)
    norm *= np.float32(BM25_K1 * BM25_B * view.chunks / max(view.total_length, 1))
    norm += np.float32(BM25_K1 * (1 - BM25_B))
    norm += tf
    tf *= scorer.weight
    tf /= norm
    return tf


def _new_scores(view: View, scorers: list[_Scorer]) -> npt.NDArray[np.float32]:
    scores = np.zeros(view.delta.size, np.float32)
    length = view.delta.columns.length
    for scorer in scorers:
        postings = scorer.postings
        scores[postings.new] += _added(view, scorer, postings.new_frequency, length[postings.new])
    return scores


def _walk(
    view: View,
    scorers: list[_Scorer],
    admitted: npt.NDArray[np.bool_] | None,
    floor: np.float32,
    limit: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Score whole lists, rare terms first, until no new chunk can enter; then look the rest up."""
    size = view.snapshot.size
    length = view.snapshot.length
    sums = np.zeros(size, np.float32)
    if admitted is not None:
        sums[~admitted[:size]] = _OUT
    sums[view.gone_ordinals] = _OUT
    rest = float(sum(scorer.bound for scorer in scorers))
    done = 0
    for scorer in scorers:
        ordinal = scorer.postings.ordinal
        if rest < floor * _SLACK and len(ordinal) > _SHORT:
            racing = int(np.count_nonzero(sums >= floor * _SLACK - rest))
            if racing * 8 < len(ordinal):
                break
        scored = sums[ordinal] + _added(view, scorer, scorer.postings.frequency, length[ordinal])
        sums[ordinal] = scored
        floor = _kth(scored, limit, floor)
        rest -= scorer.bound
        done += 1
    left = np.flatnonzero(sums >= max(float(floor) * _SLACK - max(rest, 0.0), 1e-30)).astype(np.int32)
    return _look_up(view, left, scorers[done:], floor, limit, sums[left])


def _look_up(
    view: View,
    ordinals: npt.NDArray[np.int32],
    scorers: list[_Scorer],
    floor: np.float32,
    limit: int,
    scores: npt.NDArray[np.float32] | None = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Add the remaining terms to a few chunks, dropping those that can no longer win."""
    if scores is None:
        ordinals = ordinals[~view.gone[ordinals]]
        scores = np.zeros(len(ordinals), np.float32)
    rest = float(sum(scorer.bound for scorer in scorers))
    length = view.snapshot.length
    for scorer in scorers:
        which, place = _places(scorer.postings.ordinal, ordinals)
        scores[which] += _added(view, scorer, scorer.postings.frequency[place], length[ordinals[which]])
        rest -= scorer.bound
        floor = _kth(scores, limit, floor)
        keep = scores >= floor * _SLACK - max(rest, 0.0)
        if not keep.all():
            ordinals, scores = ordinals[keep], scores[keep]
    return ordinals, scores


def _places(
    haystack: npt.NDArray[np.int32], needles: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Which of the sorted `needles` are in the sorted `haystack`, and where."""
    if not len(haystack) or not len(needles):
        return _NOTHING, _NOTHING
    if len(needles) * 4 > len(haystack):  # walking the list is quicker than searching it
        which = np.searchsorted(needles, haystack)
        np.minimum(which, len(needles) - 1, out=which)
        place = np.flatnonzero(needles[which] == haystack)
        return which[place], place
    place = np.searchsorted(haystack, needles)
    np.minimum(place, len(haystack) - 1, out=place)
    which = np.flatnonzero(haystack[place] == needles)
    return which, place[which]


def _kth(scores: npt.NDArray[np.float32], limit: int, floor: np.float32) -> np.float32:
    """The `limit`-th best score where that is above `floor`, else `floor`: at least `limit` chunks reach it."""
    above = scores[scores > floor]
    if len(above) < limit:
        return floor
    return np.float32(np.partition(above, len(above) - limit)[len(above) - limit])


def _top(view: View, slots: Ints, scores: npt.NDArray[np.float32], limit: int) -> tuple[Ints, Floats]:
    floor = _kth(scores, limit, np.float32(0))
    keep = np.flatnonzero(scores >= max(float(floor), 1e-30))
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


_NOTHING = np.zeros(0, np.int64)
