"""From scores to an ordered list of results: chunks, segments or conversations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rlm_mem.search.candidates import CandidateSet
from rlm_mem.search.query import Query
from rlm_mem.search.ranking import repetition, score_chunks, score_segments
from rlm_mem.search.succession import in_succession

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


def ranked(query: Query, candidates: CandidateSet, by: str, *, with_word: bool = False) -> Iterator[Ranked]:
    """Results, best first; equal scores by chunk id.

    Args:
        by: "chunk", "segment" or "conversation".
        with_word: only chunks that hold a term of the query themselves, not those beside one that does.
    """
    if not len(candidates.chunk_index):
        return
    scores = in_succession(candidates, score_segments(query, candidates))
    counted = candidates.eligible & scores.relevant
    if with_word:
        holds = np.zeros(len(candidates.chunk_ids), np.bool_)
        holds[candidates.chunk_index[candidates.tf.any(axis=1)]] = True
        counted &= holds[candidates.chunk_index]
    eligible = np.flatnonzero(counted)
    if not len(eligible):
        return
    ids = np.array(candidates.chunk_ids)[candidates.chunk_index]
    if by == "segment":
        best, totals = eligible, scores.total[eligible]
    else:
        owner = candidates.chunk_index if by == "chunk" else candidates.conv
        best = _best_of(owner, scores.total, eligible)
        totals = score_chunks(scores, owner, counted)[owner[best]]
    # What was put in order by succession stays in that order.
    ordered = "supersedes" in scores.parts or "succeeded" in scores.parts
    lost = np.zeros(len(best)) if ordered else repetition(query, candidates.conv[best], totals)
    totals = totals + lost
    for place in np.lexsort((candidates.seg_no[best], ids[best], -totals)).tolist():
        yield _result(candidates, int(best[place]), float(totals[place]), scores.parts, float(lost[place]))


def _best_of(owner: Ints, scores: Floats, eligible: Ints) -> Ints:
    """The best eligible segment of each owner that has one."""
    order = eligible[np.lexsort((-scores[eligible], owner[eligible]))]
    first = np.ones(len(order), np.bool_)
    first[1:] = owner[order][1:] != owner[order][:-1]
    return order[first]


def _result(
    candidates: CandidateSet, segment: int, score: float, parts: dict[str, Floats], lost: float
) -> Ranked:
    author = int(candidates.author[segment])
    return Ranked(
        chunk_id=candidates.chunk_ids[int(candidates.chunk_index[segment])],
        score=score,
        segment_no=int(candidates.seg_no[segment]),
        start=int(candidates.start[segment]),
        end=int(candidates.end[segment]),
        author=None if author < 0 else candidates.authors[author],
        parts={name: float(values[segment]) for name, values in parts.items()}
        | ({"repetition": lost} if lost else {}),
    )
