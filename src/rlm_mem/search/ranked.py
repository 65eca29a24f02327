"""From scores to an ordered list of results: chunks, segments or conversations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rlm_mem.search.candidates import CandidateSet
from rlm_mem.search.query import Query
from rlm_mem.store.lookup import BM25_B, BM25_K1

__all__ = ["Ranked", "ranked"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A result by number: which chunk and which of its segments, its score and what added to it."""

    chunk_id: str
    score: float
    segment_no: int
    start: int
    end: int
    author: str | None
    parts: dict[str, float]


def ranked(query: Query, candidates: CandidateSet, by: str) -> Iterator[Ranked]:
    """Results, best first; equal scores newest first. `by` is "chunk", "segment" or "conversation"."""
    if not len(candidates.chunk_index):
        return
    scores, parts = _segment_scores(query, candidates)
    eligible = np.flatnonzero(candidates.eligible)
    if not len(eligible):
        return
    if by == "segment":
        for segment in eligible[np.lexsort((-candidates.at[eligible], -scores[eligible]))].tolist():
            yield _result(candidates, segment, float(scores[segment]), parts)
        return
    owner = candidates.chunk_index if by == "chunk" else candidates.conv
    best = _best_of(owner, scores, eligible)
    totals = _log_sum_exp(owner, scores, eligible)
    order = np.lexsort((-candidates.at[best], -totals[owner[best]]))
    for segment in best[order].tolist():
        yield _result(candidates, segment, float(totals[owner[segment]]), parts)


def _segment_scores(query: Query, candidates: CandidateSet) -> tuple[Floats, dict[str, Floats]]:
    idf = np.log1p((candidates.n_segments - candidates.df + 0.5) / (candidates.df + 0.5))
    norm = BM25_K1 * (1 - BM25_B + BM25_B * candidates.length / max(candidates.avg_length, 1e-9))
    tf = candidates.tf.astype(np.float64)
    own = (tf * (BM25_K1 + 1) / (tf + norm[:, None])) @ (idf * np.array(query.weights))
    return own, {"own": own}


def _best_of(owner: Ints, scores: Floats, eligible: Ints) -> Ints:
    """The best eligible segment of each owner that has one."""
    order = eligible[np.lexsort((-scores[eligible], owner[eligible]))]
    first = np.ones(len(order), np.bool_)
    first[1:] = owner[order][1:] != owner[order][:-1]
    return order[first]


def _log_sum_exp(owner: Ints, scores: Floats, eligible: Ints) -> Floats:
    top = float(scores[eligible].max())
    sums = np.bincount(owner[eligible], np.exp(scores[eligible] - top), int(owner.max()) + 1)
    return np.log(np.maximum(sums, 1e-300)) + top


def _result(candidates: CandidateSet, segment: int, score: float, parts: dict[str, Floats]) -> Ranked:
    author = int(candidates.author[segment])
    return Ranked(
        chunk_id=candidates.chunk_ids[int(candidates.chunk_index[segment])],
        score=score,
        segment_no=int(candidates.seg_no[segment]),
        start=int(candidates.start[segment]),
        end=int(candidates.end[segment]),
        author=None if author < 0 else candidates.authors[author],
        parts={name: float(values[segment]) for name, values in parts.items()},
    )
