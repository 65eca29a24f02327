"""Superseded chunks rank below what replaced them, however well their words match."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rlm_mem.search.candidates import CandidateSet
from rlm_mem.search.ranking import Scores, score_chunks

__all__ = ["in_succession"]

#: How far a superseded chunk ends up below its successor.
_STEP = 0.01
#: Chains of replacements that are put in order: enough passes for four links.
_PASSES = 4


def in_succession(candidates: CandidateSet, scores: Scores) -> Scores:
    """`scores` with every superseded chunk below the chunk that replaced it, where both are candidates.

    The successor takes over the score of the chunk it replaced if that is higher: it is the current answer to the
    same question, even in quite different words. The difference is in the parts "supersedes" and "succeeded".
    """
    pairs = _pairs(candidates)
    if not pairs:
        return scores
    raised, lowered = np.zeros(len(scores.total)), np.zeros(len(scores.total))
    relevant = scores.relevant.copy()
    for _ in range(_PASSES):
        changed = False
        for pair in pairs:
            changed |= _put_in_order(candidates, scores, pair, raised, lowered, relevant)
        if not changed:
            break
    parts = dict(scores.parts)
    for name, part in (("supersedes", raised), ("succeeded", lowered)):
        if part.any():
            parts[name] = part
    return replace(scores, total=scores.total + raised + lowered, parts=parts, relevant=relevant)


def _pairs(candidates: CandidateSet) -> list[tuple[int, int]]:
    """Index of a superseded chunk and of its successor, both eligible."""
    place = {chunk_id: index for index, chunk_id in enumerate(candidates.chunk_ids)}
    pairs = []
    for index, successor in enumerate(candidates.superseded_by):
        later = place.get(successor) if successor is not None else None
        if later is not None and later != index and candidates.chunk_eligible[[index, later]].all():
            pairs.append((index, later))
    return pairs


def _put_in_order(
    candidates: CandidateSet,
    scores: Scores,
    pair: tuple[int, int],
    raised: npt.NDArray[np.float64],
    lowered: npt.NDArray[np.float64],
    relevant: npt.NDArray[np.bool_],
) -> bool:
    """Order one pair; False if it was in order already, or the older chunk is no result at all."""
    old, new = (np.flatnonzero(candidates.chunk_index == index) for index in pair)
    old = old[relevant[old]]
    if not len(old) or not len(new):
        return False
    total = scores.total + raised + lowered
    best = int(new[np.argmax(total[new])])
    top = float(total[old].max())
    changed = False
    if not relevant[best] or total[best] < top + _STEP:
        raised[best] += max(0.0, top + _STEP - float(total[best]))
        relevant[best] = changed = True
    now = replace(scores, total=scores.total + raised + lowered)
    owner = candidates.chunk_index
    whole = score_chunks(now, owner, relevant)
    excess = float(whole[pair[0]] - whole[pair[1]]) + _STEP
    if excess > _STEP / 2:
        lowered[old] -= excess
        changed = True
    return changed
