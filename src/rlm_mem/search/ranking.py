"""Ranking: from candidates to scores and ordered results, one implementation for every backend.

A segment's score is a weighted sum of the signals in `features`; a chunk's score is the log-mean-exp of its
segments, so that one strong segment counts most and the others still count. Every part of a score keeps its name
(`explain`). Superseded chunks rank below their successors, however well their words match. No I/O,
deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, structs

from rlm_mem.chunk import parse_time
from rlm_mem.chunk.types import is_untrusted, origin_mark, out_of_date
from rlm_mem.record import FrozenRecord
from rlm_mem.search.candidates import CandidateSet
from rlm_mem.search.features import Scene, in_short_chunk, shared_words, values
from rlm_mem.search.neighbours import AdjacentSegment
from rlm_mem.search.query import Query
from rlm_mem.store.core.selection import changed_at

if TYPE_CHECKING:
    import numpy.typing as npt

    from rlm_mem.search.features import Floats

    Ints = npt.NDArray[np.int64]

#: Score difference by which a superseded chunk is put below its successor, and an outdated hit below a current one.
STEP = 0.01
#: Passes in which chains of replacements are put in order: enough for four links.
_PASSES = 4


def in_succession(candidates: CandidateSet, scores: Scores, eligible: npt.NDArray[np.bool_]) -> Scores:
    """Return `scores` with every superseded chunk below the chunk that replaced it, where both are candidates.

    The successor takes over the score of the chunk it replaced if that is higher: it is the current answer to the
    same question, even in quite different words. Of a short chunk that is the score it would have if it were valid;
    what a part of a document said may be in another part by now. The differences are the parts "supersedes" and
    "succeeded".

    Args:
        eligible: the segments that may be results or count for one.
    """
    pairs = _pairs(candidates)
    if not pairs:
        return scores
    raised, lowered = np.zeros(len(scores.total)), np.zeros(len(scores.total))
    relevant = scores.relevant.copy()
    ended = scores.parts.get("superseded", 0.0) * in_short_chunk(candidates)
    valid = structs.replace(scores, total=scores.total - ended)
    for _ in range(_PASSES):
        changed = False
        for pair in pairs:
            changed |= _put_in_order(candidates, valid, eligible, pair, raised, lowered, relevant)
        if not changed:
            break
    parts = dict(scores.parts)
    for name, part in (("supersedes", raised), ("succeeded", lowered)):
        if part.any():
            parts[name] = part
    return structs.replace(scores, total=scores.total + raised + lowered, parts=parts, relevant=relevant)


def _pairs(candidates: CandidateSet) -> list[tuple[int, int]]:
    """Return the indexes of each superseded chunk and its successor, where both are eligible."""
    if not any(candidates.superseded_by):
        return []
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
    eligible: npt.NDArray[np.bool_],
    pair: tuple[int, int],
    raised: npt.NDArray[np.float64],
    lowered: npt.NDArray[np.float64],
    relevant: npt.NDArray[np.bool_],
) -> bool:
    """Order one pair; return False if it was in order already, or the older chunk is not a result."""
    old, new = (np.flatnonzero((candidates.chunk_index == index) & eligible) for index in pair)
    old = old[relevant[old]]
    if not len(old) or not len(new):
        return False
    total = scores.total + raised + lowered
    best = int(new[np.argmax(total[new])])
    top = float(total[old].max())
    changed = False
    if not relevant[best] or total[best] < top + STEP:
        raised[best] += max(0.0, top + STEP - float(total[best]))
        relevant[best] = changed = True
    now = structs.replace(scores, total=scores.total + raised + lowered)
    owner = candidates.chunk_index
    whole = score_chunks(now, owner, relevant & eligible)
    excess = float(whole[pair[0]] - whole[pair[1]]) + STEP
    if excess > STEP / 2:
        lowered[old] -= excess
        changed = True
    return changed


class Ranked(Struct, frozen=True):
    """A result: chunk and segment, its score and the parts of the score."""

    chunk_id: str
    score: float
    segment_no: int
    start: int
    end: int
    author: str | None
    parts: dict[str, float]


def ranked(query: Query, candidates: CandidateSet, by: str, *, with_word: bool = False) -> Iterator[Ranked]:
    """Yield results, best first; equal scores by time, newest first, and of one time the last written first.

    Args:
        by: "chunk", "segment" or "conversation".
        with_word: only chunks that themselves contain a term of the query.
    """
    if not len(candidates.chunk_index):
        return
    allowed = candidates.eligible if by == "segment" else candidates.chunk_eligible[candidates.chunk_index]
    scores = in_succession(candidates, score_segments(query, candidates, feedback=by != "segment"), allowed)
    relevant = allowed & scores.relevant
    if with_word:
        with_term = np.zeros(len(candidates.chunk_ids), np.bool_)
        with_term[candidates.chunk_index[candidates.tf.any(axis=1)]] = True
        relevant &= with_term[candidates.chunk_index]
    eligible = np.flatnonzero(relevant)
    if not len(eligible):
        return
    written = candidates.doc[candidates.chunk_index]
    if by == "segment":
        best, totals = eligible, scores.total[eligible]
    else:
        owner = candidates.chunk_index if by == "chunk" else candidates.conv
        best = _best_of(owner, scores.total, eligible, candidates.eligible)
        totals = score_chunks(scores, owner, relevant, summed=by == "conversation")[owner[best]]
    # Chunks ordered by succession keep that order.
    ordered = "supersedes" in scores.parts or "succeeded" in scores.parts
    # A document is one conversation, too, but its parts have different subjects: only talks are spread.
    spread = np.zeros(len(best)) if ordered else repetition(query, candidates.conv[best], totals)
    penalty = np.where(candidates.author[best] >= 0, spread, 0.0)
    totals = totals + penalty
    for place in np.lexsort(
        (candidates.seg_no[best], -written[best], -candidates.at[best], -totals)
    ).tolist():
        yield _result(candidates, int(best[place]), float(totals[place]), scores.parts, float(penalty[place]))


def _best_of(owner: Ints, scores: Floats, eligible: Ints, preferred: npt.NDArray[np.bool_]) -> Ints:
    """Return the best eligible segment of each owner that has one, a preferred one (of the asked speaker) if any."""
    order = eligible[np.lexsort((-scores[eligible], ~preferred[eligible], owner[eligible]))]
    return order[changed_at(owner[order])]


def _result(
    candidates: CandidateSet, segment: int, score: float, parts: dict[str, Floats], penalty: float
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
        | ({"repetition": penalty} if penalty else {}),
    )


#: The weight of each signal in any text, in nats of odds. Learned by `benchmarks/ranking_fit.py` from dialogues, chats
#: with an assistant, meetings, abstracts, notes and Chinese notes together (a listwise logistic loss over what is
#: marked as relevant). The first six rank by words alone and keep the proportions that did best over all sets; the
#: others are added to them. The docstring of the function of that name in `features` describes each;
#: `has_x` is a cue of the segment, `kind:x` the same cue where the question asks for that kind of thing.
WEIGHTS: dict[str, float] = {
    "whole": 0.211,
    "first_person": 0.211,
    "own": 0.127,
    "session": 0.085,
    "gap": 0.042,
    "related_words": 0.063,
    "in_month": 1.490,
    "exact_day": 1.744,
    "in_year": 0.131,
    "just_after": 0.292,
    "near_date": 0.880,
    "by_event": 0.521,
}

#: Added where the speakers share the text evenly (times `Scene.talk`).
TALK: dict[str, float] = {
    "own": -0.119,
    "coverage": 1.512,
    "coverage_nearby": 1.320,
    "whole_rare": -0.081,
    "window": 0.109,
    "gap": 0.041,
    "session": 0.096,
    "related_words": 0.143,
    "related_nearby": 0.116,
    "chunk_length": -0.084,
    "length": -0.140,
    "author_named": 0.248,
    "author_first": 0.555,
    "named_speaks_of_self": 0.629,
    "other_says_you": -0.484,
    "related_by_author": 0.161,
    "is_question": -0.369,
    "asks_as_usual": -0.605,
    "asks_within": 0.032,
    "asks_within_as_usual": -1.013,
    "answers": 0.090,
    "answers_within": 0.094,
    "after_question": 0.145,
    "opens_conversation": 0.613,
    "time_told": 0.337,
    "has_place": 0.079,
    "has_duration": 0.203,
    "has_quotes": -0.171,
    "has_capitals": 0.118,
    "has_number": -0.009,
    "has_first_person": -0.158,
    "has_second_person": -0.141,
    "has_reason": -0.069,
    "has_person": 0.040,
    "has_plan": 0.005,
    "has_preference": -0.011,
    "has_feeling": -0.028,
    "has_attachment": 0.041,
    "has_opinion": -0.061,
    "has_negation": 0.038,
    "when:time": 0.957,
    "when:plan": 0.506,
    "when:duration": 0.752,
    "where:place": 1.836,
    "where:capitals": 1.273,
    "how_long:duration": 1.548,
    "how_long:number": 1.108,
    "how_long:time": 0.340,
    "how_many:number": -0.482,
    "how_many:duration": 1.151,
    "title:quotes": 1.977,
    "title:capitals": 0.455,
    "why:reason": 1.309,
    "why:opinion": 0.813,
    "why:feeling": -0.731,
    "feeling:feeling": 0.397,
    "feeling:opinion": 1.518,
    "who:person": 0.675,
    "who:capitals": 0.841,
    "opinion:opinion": 0.070,
    "opinion:preference": -0.038,
    "would:preference": 1.477,
    "would:plan": 0.980,
    "would:feeling": -0.231,
}

#: Added for spoken segments where one speaker has nearly all, as an assistant does (times 1 - `Scene.talk`).
ONE_SIDED: dict[str, float] = {
    "own": 0.012,
    "coverage": 0.439,
    "coverage_nearby": 0.279,
    "whole_rare": 0.072,
    "window": 0.007,
    "gap": 0.003,
    "chunk_length": 0.078,
    "is_question": 0.075,
    "asks_as_usual": 0.485,
    "asks_within": 0.187,
    "asks_within_as_usual": 0.333,
    "says_less": 0.394,
    "opens_conversation": 0.552,
    "time_told": 0.136,
}

#: Not learned, since no data set marks them: a superseded memory ranks below its successor, and a memory of
#: confidence 0 below an equal one of confidence 1.
SUPERSEDED = -4.0
CONFIDENCE = 0.5

#: Weight of words shared with the best results, as a multiple of the weight of "whole"; not learned, but about the
#: best value whichever group of data sets is left out.
FEEDBACK = 3.8

#: Added per result of one conversation beyond the second, where a question asks for several things.
REPEATED = -0.3

#: Chunk score: the segments' scores are divided by this before log-mean-exp and multiplied by it after. Near 0
#: almost only the best segment counts, far above 1 all count alike.
TEMPERATURE = 0.5

#: A segment without a word of the question in or near it, and without any of these signals, is not a result.
_EVIDENCE = ("related_words", "related_nearby", "in_month", "exact_day", "in_year")


class Scores(Struct, frozen=True):
    """Scores of the segments of a candidate set.

    `total[i]` is the sum of `parts[...][i]`; parts that are 0 for all are left out. `relevant[i]`: a word or date of
    the question is in the segment or near it.
    """

    total: Floats
    parts: dict[str, Floats]
    relevant: npt.NDArray[np.bool_]


def score_segments(query: Query, candidates: CandidateSet, *, feedback: bool = True) -> Scores:
    """Score every segment of `candidates` for `query`.

    Args:
        feedback: raise chunks that have the words of the best ones. All segments of a chunk rise alike, so it does
            not help to choose between them.
    """
    scene = Scene(query, candidates)
    spoken = bool(scene.spoken.any())
    tables = (WEIGHTS, TALK, ONE_SIDED) if spoken else (WEIGHTS,)
    found = values(scene, frozenset(_EVIDENCE).union(*tables))
    # A word of the question in the segment or at most three away.
    direct = (scene.own > 0).astype(np.float64)
    relevant = direct > 0
    for distance in (1, 2, 3, -1, -2, -3):
        relevant |= scene.shifted(direct, distance) > 0
    for name in _EVIDENCE:
        if name in found:
            relevant |= found[name] > 0
    one_sided = (1 - scene.talk) * scene.spoken
    parts = {}
    for name, column in found.items():
        weight = WEIGHTS.get(name, 0.0) + scene.talk * TALK.get(name, 0.0)
        part = column * (weight + one_sided * ONE_SIDED[name] if name in ONE_SIDED else weight)
        if part.any():
            parts[name] = part
    chunk_parts = _chunk_parts(query, candidates)
    parts.update(chunk_parts)
    total = np.zeros(scene.size)
    for column in parts.values():
        total += column
    # In talk, feedback counts less the more one speaker says, and nothing from three quarters on: an assistant
    # repeats itself at length. The chunks of a document share words, too, whatever they are about.
    length = candidates.length
    talked = float(length[scene.in_talk].sum()) / max(float(length.sum()), 1.0)
    alike = 2 * talked * (1 - scene.talk) + scene.document_share
    weight = FEEDBACK * WEIGHTS["whole"] * max(0.0, 1 - alike)
    if feedback and weight and scene.size:
        # What was replaced shows as well as what is valid which words belong to the subject.
        scores = Scores(total - chunk_parts.get("superseded", 0.0), parts, relevant)
        eligible = candidates.chunk_eligible[candidates.chunk_index]
        by_chunk = score_chunks(scores, candidates.chunk_index, eligible & relevant)
        column = weight * shared_words(candidates, by_chunk)
        if column.any():
            parts["feedback"] = column
            total = total + column
    return Scores(total, parts, relevant)


def score_chunks(
    scores: Scores, owner: npt.NDArray[np.int64], counted: npt.NDArray[np.bool_], *, summed: bool = False
) -> Floats:
    """Return log-mean-exp of the `counted` segments of each owner (chunk or conversation), -inf without any.

    A chunk gets the mean: words of the whole chunk count in each of its segments, and length alone must not raise its
    score. A conversation gets the sum (`summed`): its chunks are separate results.
    """
    size = int(owner.max()) + 1 if len(owner) else 0
    result = np.full(size, -np.inf)
    chosen, numbers = scores.total[counted] / TEMPERATURE, owner[counted]
    top = np.full(size, -np.inf)
    np.maximum.at(top, numbers, chosen)
    sums = np.bincount(numbers, np.exp(chosen - top[numbers]), size)
    present = sums > 0
    count = np.bincount(numbers, minlength=size)[present]
    result[present] = (np.log(sums[present] / (1 if summed else count)) + top[present]) * TEMPERATURE
    return result


def repetition(query: Query, owner: npt.NDArray[np.int64], scores: Floats) -> Floats:
    """Return the penalty for further results from one conversation, where a list is asked for.

    "What hobbies …" is answered in many places: from the third on, each result of one conversation loses `REPEATED`
    more; 0 for other questions. Gains a point or two where the answer is in several memories.
    """
    if not query.wants_list or len(scores) < 3:
        return np.zeros(len(scores))
    order = np.lexsort((-scores, owner))
    numbers = np.arange(len(order))
    begins = np.r_[True, owner[order][1:] != owner[order][:-1]]
    place = numbers - np.maximum.accumulate(np.where(begins, numbers, 0))
    penalty = np.zeros(len(scores))
    penalty[order] = REPEATED * np.maximum(0, place - 1)
    return penalty


def _chunk_parts(query: Query, candidates: CandidateSet) -> dict[str, Floats]:
    """Parts of a segment's score that come from its chunk: validity and confidence."""
    now = query.now.timestamp() if query.now is not None else None
    ended = np.array(
        [
            by is not None if until is None else now is not None and parse_time(until).timestamp() <= now
            for by, until in zip(candidates.superseded_by, candidates.valid_to, strict=True)
        ],
        np.float64,
    )
    parts = {"superseded": SUPERSEDED * ended, "confidence": CONFIDENCE * (candidates.confidence - 1.0)}
    return {name: part[candidates.chunk_index] for name, part in parts.items() if part.any()}


class OtherNote(FrozenRecord, frozen=True):
    """Another note on the subject of a hit: its chunk, its time, and its text, if long from the sentence that fits."""

    chunk_id: str
    at: str
    text: str


class Hit(FrozenRecord, frozen=True):
    """One result.

    Attributes:
        chunk_id: the chunk; read it with `get_chunk`.
        score: higher is better; comparable within one search only.
        snippet: the segment that matched, shortened if long.
        start, end: place of that segment in the chunk's content, in characters.
        segment_no: its number within the chunk, from 0.
        conversation_id: the chunk's conversation, None for none.
        at: `occurred_at`, else `created_at` (`YYYY-MM-DDTHH:MM:SS.ffffffZ`).
        type, tags: as in the chunk.
        author: the speaker of the segment, None where the text names none.
        parts: with `explain`, the part of each signal in the segment's score.
        neighbours: with `neighbours`, the turns or sentences beside it in its conversation, in reading order: beside
            the segment where hits are segments, else beside the chunk.
        superseded_by: the chunk that replaced this one, or None.
        ended_at: the end of its validity, or None while it is valid.
        replaces: the chunks that this one replaced.
        origin: where the chunk came from: person, agent, tool, import, web.
        trust: how far it is trusted: untrusted, ordinary, trusted.
        later_note, earlier_note: another hit, or one below the limit, that may answer the same question about the
            present, without stating which of the two is valid. See :meth:`marks`.
        more_later: further later notes on the subject, where there are several; ``later_note`` is then the newest one
            that gives another value.
    """

    chunk_id: str
    score: float
    snippet: str
    start: int
    end: int
    segment_no: int
    conversation_id: str | None
    at: str
    type: str
    tags: tuple[str, ...]
    author: str | None
    parts: dict[str, float] | None = None
    neighbours: tuple[AdjacentSegment, ...] = ()
    superseded_by: str | None = None
    replaces: tuple[str, ...] = ()
    origin: str = "person"
    trust: str = "trusted"
    later_note: OtherNote | None = None
    earlier_note: OtherNote | None = None
    more_later: tuple[OtherNote, ...] = ()
    ended_at: str | None = None

    def ended(self) -> dict[str, str]:
        """Return the fields that mark a memory that is out of date: what replaced it, else since when; else none."""
        if self.superseded_by is not None:
            return {"superseded_by": self.superseded_by}
        return {} if self.ended_at is None else {"ended_at": self.ended_at}

    def marks(self, *, texts: bool = True) -> list[str]:
        """Return the other notes on the subject as phrases, as shown with the hit; ``texts`` False: only their ids."""
        names = {"later": "a later", "more": "another later", "earlier": "an earlier"}
        return [
            f"{names[which]} note on the same subject: {note.chunk_id}, {note.at[:10]}"
            + (f": {note.text}" if texts else "")
            for which, note in self.other_notes()
        ]

    def other_notes(self) -> list[tuple[str, OtherNote]]:
        """Return the other notes on the subject, each after "later", "more" (a further later one) or "earlier"."""
        later, earlier = (
            [] if note is None else [(which, note)]
            for which, note in (("later", self.later_note), ("earlier", self.earlier_note))
        )
        return [*later, *(("more", note) for note in self.more_later), *earlier]

    def marked_snippet(self) -> str:
        """Return the snippet as agents are given it: marked if untrusted, then what replaced it and other notes."""
        ended = out_of_date(self.superseded_by, self.ended_at)
        lines = (origin_mark(self.origin, self.trust) + self.snippet, ended, *self.marks())
        return "\n".join(filter(None, lines))

    def __str__(self) -> str:
        line = f"{self.chunk_id}  {self.at[:10]}  {' '.join(self.snippet.split())}  (score {self.score:z.2f})"
        if is_untrusted(self.trust):
            line = f"{line}  [untrusted: {self.origin}]"
        marks = (*self.marks(), out_of_date(self.superseded_by, self.ended_at))
        return line + "".join(f"  [{mark}]" for mark in marks if mark)
