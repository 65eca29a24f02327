"""Selects chunks by array arithmetic, for every backend: best matches by BM25, neighbours, and set operations.

The best chunks by tuned BM25 are found exactly, without scoring every match. Rare terms come first: their lists are
short and their weight is high. Once the best scores so far exceed what the remaining (common) terms could add to a
chunk without the rare ones, no new chunk can enter, and the long lists are only looked up for the remaining
candidates. The result is the same as scoring everything. Sums are rounded in the same order everywhere, so that two
backends with the same chunks compute the same scores.

numpy's own `unique`, `isin` and the like import `numpy.ma` when first called, which takes longer than opening a
store and searching it; hence the set operations here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np
from msgspec import Struct

from rlm_mem.store.core.arrays import Array, Bools, Floats, Frequencies, Ints, Scores, Slots
from rlm_mem.store.core.lookup import BM25_B, BM25_K1, FAR, WEIGHED, Neighbourhood

if TYPE_CHECKING:
    import numpy.typing as npt


#: Initial score of a chunk that must not be returned: too low for any sum of term scores to compensate.
EXCLUDED = np.float32(-1e30)
#: Bounds are compared with a little slack, since sums of 32-bit numbers are rounded.
_SLACK = 1.0 - 1e-5
#: With at most this many chunks admitted, looking up each in every list is faster than scanning the lists.
_FEW = 5_000
#: A list of at most this length is always scanned.
_SHORT = 2_000
#: Above `_MANY` scores, the best of a sample are found first; it has `_PART` scores for each that is requested.
_MANY, _PART = 20_000, 20
#: A score below this counts as zero.
LEAST = 1e-30
_ZERO = np.float32(0)
NOTHING = np.zeros(0, np.int64)
"""No chunks, or no places."""


class TermPostings(Protocol):
    """The chunks that contain one term, by slot: a number that the backend assigns."""

    @property
    def df(self) -> int:
        """Number of chunks that contain the term."""

    @property
    def max_frequency(self) -> int:
        """An upper bound of the frequency in any chunk."""

    def whole(self) -> tuple[Slots, Frequencies]:
        """Return every slot, sorted, and the frequency there."""

    def find(self, slots: Slots) -> tuple[Ints, Frequencies]:
        """Return which of the sorted `slots` contain the term, and how often."""


class CorpusLengths(Struct, frozen=True):
    """Corpus figures for BM25: the length of the chunk in each slot, the number of chunks and their total length."""

    length: npt.NDArray[np.int32]
    chunks: int
    total_length: int


_Postings = TypeVar("_Postings", bound=TermPostings)


class Scorer(Struct, Generic[_Postings], frozen=True):
    """A term with its weight (idf included) and the maximum that it can add to any chunk."""

    postings: _Postings
    weight: np.float32
    bound: float


def scorers(
    collection: CorpusLengths, lists: Sequence[_Postings], weights: Floats
) -> list[Scorer[_Postings]]:
    """Return the terms with a weight, highest weight first.

    The order determines how sums are rounded: it depends only on figures of the whole collection.
    """
    found = []
    for postings, weight in zip(lists, weights, strict=True):
        df = postings.df
        if not df or weight <= 0:
            continue
        idf = float(np.log1p((collection.chunks - df + 0.5) / (df + 0.5)))
        highest = postings.max_frequency / (postings.max_frequency + BM25_K1 * (1 - BM25_B))
        full = idf * float(weight) * (BM25_K1 + 1)
        found.append(Scorer(postings, np.float32(full), full * highest))
    found.sort(key=lambda scorer: (-float(scorer.weight), scorer.postings.df))
    return found


def added(
    collection: CorpusLengths, weight: np.float32, frequency: Frequencies, length: npt.NDArray[np.int32]
) -> Scores:
    """Return the score that a term adds to chunks with these frequencies and lengths."""
    tf = frequency.astype(np.float32)
    norm = length.astype(np.float32)
    norm *= np.float32(BM25_K1 * BM25_B * collection.chunks / max(collection.total_length, 1))
    norm += np.float32(BM25_K1 * (1 - BM25_B))
    norm += tf
    tf *= weight
    tf /= norm
    return tf


def best(
    collection: CorpusLengths,
    terms: list[Scorer[_Postings]],
    limit: int,
    *,
    admitted: Bools | None = None,
    excluded: Slots | None = None,
    floor: np.float32 = _ZERO,
) -> tuple[Slots, Scores]:
    """Return slots and scores, unordered, which include the `limit` best and all ties with the last of these.

    Args:
        collection: lengths and totals.
        terms: from `scorers`.
        limit: how many at most.
        admitted: mask of the slots that may be returned; None: all.
        excluded: slots that must not be returned.
        floor: a score that at least `limit` chunks from other sources reach.
    """
    few = None if admitted is None else np.flatnonzero(admitted)
    if few is not None and len(few) <= _FEW:
        left = few.astype(np.int32)
        if excluded is not None and len(excluded):
            left = left[~contained(left, excluded)]
        return _look_up(collection, left, terms, floor, limit, np.zeros(len(left), np.float32))
    sums = np.zeros(len(collection.length), np.float32)
    if admitted is not None:
        sums[~admitted] = EXCLUDED
    if excluded is not None:
        sums[excluded] = EXCLUDED
    return _scan(collection, terms, sums, floor, limit)


def _scan(
    collection: CorpusLengths, terms: list[Scorer[_Postings]], sums: Scores, floor: np.float32, limit: int
) -> tuple[Slots, Scores]:
    """Score whole lists, rare terms first, until no new chunk can enter; then look up the rest."""
    rest = float(sum(scorer.bound for scorer in terms))
    done = 0
    for scorer in terms:
        df = scorer.postings.df
        if rest < floor * _SLACK and df > _SHORT:
            racing = int(np.count_nonzero(sums >= floor * _SLACK - rest))
            if racing * 8 < df:
                break
        slots, frequency = scorer.postings.whole()
        scored = sums[slots] + added(collection, scorer.weight, frequency, collection.length[slots])
        sums[slots] = scored
        floor = kth(scored, limit, floor)
        rest -= scorer.bound
        done += 1
    left = np.flatnonzero(sums >= max(float(floor) * _SLACK - max(rest, 0.0), LEAST)).astype(np.int32)
    return _look_up(collection, left, terms[done:], floor, limit, sums[left])


def _look_up(
    collection: CorpusLengths,
    slots: Slots,
    terms: list[Scorer[_Postings]],
    floor: np.float32,
    limit: int,
    scores: Scores,
) -> tuple[Slots, Scores]:
    """Add the remaining terms to a few chunks, dropping those that can no longer win."""
    rest = float(sum(scorer.bound for scorer in terms))
    for scorer in terms:
        which, frequency = scorer.postings.find(slots)
        scores[which] += added(collection, scorer.weight, frequency, collection.length[slots[which]])
        rest -= scorer.bound
        floor = kth(scores, limit, floor)
        keep = scores >= floor * _SLACK - max(rest, 0.0)
        if not keep.all():
            slots, scores = slots[keep], scores[keep]
    return slots, scores


def places(haystack: Slots, needles: Slots) -> tuple[Ints, Ints]:
    """Return which of the sorted `needles` are in the sorted `haystack`, and where."""
    if not len(haystack) or not len(needles):
        return NOTHING, NOTHING
    if len(needles) * 4 > len(haystack):  # scanning the list is faster than searching it
        which = needles.searchsorted(haystack)
        place = (needles.take(which, mode="clip") == haystack).nonzero()[0]
        return which[place], place
    place = haystack.searchsorted(needles)
    which = (haystack.take(place, mode="clip") == needles).nonzero()[0]
    return which, place[which]


def held_in(haystack: Slots, needles: Slots) -> Bools:
    """Return which of the sorted `needles` are in the sorted `haystack`, as a mask."""
    found: Bools
    if len(needles) > len(haystack):
        found = np.zeros(len(needles), np.bool_)
        found[places(haystack, needles)[0]] = True
    else:
        found = haystack.take(haystack.searchsorted(needles), mode="clip") == needles
    return found


def kth(scores: Scores, limit: int, floor: np.float32) -> np.float32:
    """Return the `limit`-th best score, at least `floor`: no fewer than `limit` chunks reach it."""
    above = scores[scores > floor]
    if len(above) < limit:
        return floor
    if len(above) > _MANY:
        # At least `limit` of all scores reach the `limit`-th best of a sample, and few exceed it.
        sample = above[:: len(above) // (limit * _PART) + 1]
        if len(sample) >= limit:
            least = np.partition(sample, len(sample) - limit)[len(sample) - limit]
            above = above[above > least]
            if len(above) < limit:
                return np.float32(least)
    return np.float32(np.partition(above, len(above) - limit)[len(above) - limit])


def top(scores: Scores, limit: int) -> Ints:
    """Return positions of the `limit` best scores and of all ties with the last of these, unordered."""
    floor = kth(scores, limit, _ZERO)
    return np.flatnonzero(scores >= max(float(floor), LEAST))


def ints(values: Iterable[int]) -> Ints:
    """Return the values as an array."""
    return np.array(list(values), np.int64)


_Number = TypeVar("_Number", bound=np.generic)


def distinct(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Return each value once, sorted."""
    ordered = np.sort(values)
    if len(ordered) < 2:
        return ordered
    keep = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def changed_at(ordered: Array) -> Ints:
    """Return the positions at which the values of an array change, the first one included."""
    if not len(ordered):
        return NOTHING
    return np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])


def union(first: npt.NDArray[_Number], second: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Return the values in either array, each once, sorted."""
    return distinct(np.concatenate([first, second]))


def contained(values: npt.NDArray[_Number], among: npt.NDArray[_Number]) -> Bools:
    """Return which of `values` occur in `among` (any order), as a mask."""
    if not len(among) or not len(values):
        return np.zeros(len(values), np.bool_)
    ordered = np.sort(among)
    place = np.searchsorted(ordered, values)
    np.minimum(place, len(ordered) - 1, out=place)
    found: Bools = ordered[place] == values
    return found


def weighed(weights: Mapping[str, float], counts: Mapping[str, int]) -> dict[str, float]:
    """Return the score of each term in `CandidateSource.holding_each`: 0 for terms that are only reported."""
    known = sorted((counts[term], term) for term, weight in weights.items() if weight and term in counts)
    parts = {term: weights[term] / (1 + log(1 + count)) for count, term in known[:WEIGHED]}
    return parts | {term: 0.0 for term, weight in weights.items() if not weight and term in counts}


#: Maximum number of chunks examined on each side: enough when every chunk is a single turn.
MOST = 12
#: `segments_before` is exact for this many chunks at the beginning of a conversation.
OPENING = 4


class ConversationLine(Protocol):
    """A layout of chunks in which every conversation is one contiguous range, as far as neighbours are examined.

    For each given chunk: its `place` in the layout, and where its conversation begins and ends (one past the last).
    Adjacent places within a conversation are always consecutive chunks.
    """

    @property
    def place(self) -> Ints: ...
    @property
    def first(self) -> Ints: ...
    @property
    def last(self) -> Ints: ...

    def slots(self, place: Ints) -> Ints:
        """Return the slots at these positions."""

    def segment_count(self, place: Ints) -> Ints:
        """Return the number of segments of the chunks at these positions."""


def walked(
    line: ConversationLine, asked: Ints, near: int, reach: int, most: int = MOST
) -> tuple[Neighbourhood, bool]:
    """Return the neighbourhood in a layout, and whether `most` steps to each side covered `reach` for every chunk.

    Args:
        line: the chunks in their order.
        asked: indices of the given chunks that get neighbours.
        near: segments on each side whose chunks may be results themselves.
        reach: segments to cover on each side.
        most: maximum number of chunks examined on each side.
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


def _gathered(line: ConversationLine, place: Ints, is_near: Bools) -> Neighbourhood:
    """Return each position once, in order, with its run and the number of segments before it."""
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
