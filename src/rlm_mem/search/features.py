"""The signals of ranking: functions from a question and its candidates to one number per segment.

Their weights are in `ranking`; the source of a text has no influence. A window never crosses the end of a run (an
unbroken part of one conversation). Pure numpy, no I/O; cost grows with segments times terms.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rlm_mem.chunk import from_epoch
from rlm_mem.record import FrozenRecord
from rlm_mem.search.candidates import CandidateSet
from rlm_mem.search.query import RELATED, Query
from rlm_mem.store.core.selection import changed_at, contained, distinct
from rlm_mem.text import analysis
from rlm_mem.text.dates import DateMention, days_in
from rlm_mem.text.languages import is_foreign

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Bools = npt.NDArray[np.bool_]


#: BM25 of segments: how soon repetition saturates, and how much length counts (docs/benchmarks/retrieval.md).
K1, B = 0.9, 0.4
#: The same for whole chunks and for whole conversations.
WHOLE_K1, WHOLE_B = 1.2, 0.9
SESSION_K1, SESSION_B = 1.2, 0.75
_DAY = 86_400.0
#: Days before or after an event in which the signal `by_event` falls to 1/e.
_EVENT_DAYS = 30.0
#: (distance, weight) of the neighbours that can supply a missing word: one before, one after, two before.
_GAP = ((-1, 1.0), (1, 0.6), (-2, 0.6))

#: Feedback: number of chunks whose words are used, and of words used; ties with the last one are included.
BEST, SHARED_WORDS = 10, 64
#: The further a chunk's score is below the best, the less its words count: a factor of 1/e per this much.
_DROP = 1.0
#: Most that these words add to a chunk; without a limit they outweigh the question's own words in a large store, whose
#: rare words are rarer.
MOST_SHARED = 10.0
#: Values that differ only by rounding count as equal, since sums depend on the order of candidates.
_ROUNDING = 1 - 1e-9
_DIGITS = 9

_FEW_WORDS = 20
"""Words added to those of each speaker before their shares are compared: about three turns."""


def weighted_sum(values: Floats, weights: Floats) -> Floats:
    """Return `values @ weights`, rounded alike whatever the position of a row.

    A matrix product may round a row differently at another position, and the order of rows differs between
    backends.
    """
    return np.asarray((values * weights).sum(axis=1), np.float64)


class Scene(FrozenRecord, frozen=True, dict=True):
    """A question and its candidates, with values that several signals share, each computed once."""

    query: Query
    candidates: CandidateSet

    @property
    def size(self) -> int:
        """Number of segments."""
        return len(self.candidates.chunk_index)

    @property
    def asks(self) -> bool:
        """Whether the search may be a question, to which the reply to a question with the same words may be the answer.

        In other languages than English, a question is not known without its mark.
        """
        text = self.query.text
        return self.query.kind != "words" or text.rstrip().endswith("?") or is_foreign(text)

    @cached_property
    def words(self) -> npt.NDArray[np.int64]:
        """Columns of the question's own words and their near-spellings."""
        return np.array([i for i, role in enumerate(self.query.roles) if role != RELATED], np.int64)

    @cached_property
    def related(self) -> npt.NDArray[np.int64]:
        """Columns of class members that occur in the store."""
        found = [
            i for i, role in enumerate(self.query.roles) if role == RELATED and self.candidates.df[i] > 0
        ]
        return np.array(found, np.int64)

    @cached_property
    def idf(self) -> Floats:
        """Inverse document frequency of every column, unweighted."""
        df = self.candidates.df
        return np.asarray(np.log1p((self.candidates.n_segments - df + 0.5) / (df + 0.5)), np.float64)

    @cached_property
    def mass(self) -> Floats:
        """The weight of each word: idf times its weight in the question, 0 for a word that is not in the store."""
        weights = np.array(self.query.weights, np.float64)
        return np.where(self.candidates.df > 0, self.idf * weights, 0.0)[self.words]

    @cached_property
    def tf(self) -> Floats:
        """Frequency of each word in each segment."""
        return self.candidates.tf[:, self.words].astype(np.float64)

    @cached_property
    def has(self) -> Floats:
        """1 where a segment contains a word, else 0."""
        return (self.tf > 0).astype(np.float64)

    @cached_property
    def norm(self) -> Floats:
        """BM25's length normaliser of each segment."""
        average = max(self.candidates.avg_length, 1e-9)
        return np.asarray(K1 * (1 - B + B * self.candidates.length / average), np.float64)

    @cached_property
    def own(self) -> Floats:
        """Tuned BM25 of each segment."""
        return weighted_sum(self.tf * (K1 + 1) / (self.tf + self.norm[:, None]), self.mass)

    @cached_property
    def talk(self) -> float:
        """How evenly the speakers share the text of the candidates, 0 to 1.

        0 for texts without speakers; 1 where nobody has more than half of the text that has a speaker; near 0 where one
        speaker has nearly all, as an assistant does. A few turns are not enough to tell.
        """
        lengths = np.bincount(self.candidates.author + 1, self.candidates.length, minlength=2)
        total = float(lengths.sum())
        if total <= 0 or not lengths[1:].any():
            return 0.0
        return float(lengths[1:].sum()) / total * min(1.0, 2 * (1 - float(self.shares.max())))

    @cached_property
    def shares(self) -> Floats:
        """The share of each speaker in the words of the candidates; few words move it towards equal shares."""
        author = self.candidates.author + 1
        words = np.bincount(author, self.candidates.length, minlength=2)[1:]
        speaks = np.bincount(author, minlength=2)[1:] > 0
        if np.count_nonzero(speaks) > 1:
            words = words + _FEW_WORDS * speaks
        return np.asarray(words / max(float(words.sum()), 1.0), np.float64)

    @cached_property
    def in_talk(self) -> Bools:
        """Whether the conversation of each segment has a speaker.

        Only the first segment of a long turn names its speaker. A label before a colon ("Note: ...") counts as a
        speaker of its own text only.
        """
        conv = self.candidates.conv
        return np.asarray((np.bincount(conv, self.spoken) > 0)[conv], np.bool_)

    @cached_property
    def document_share(self) -> float:
        """Share of the candidates' text that is in long documents, 0 to 1.

        A segment counts by how much of its conversation is in other chunks: nearly in full in a long file, not at all
        in an article of one chunk. Talk does not count, nor a series of short notes.
        """
        c = self.candidates
        counted = ~(in_short_chunk(c) | self.in_talk)
        elsewhere = 1 - self.chunk_lengths[c.chunk_index] / np.maximum(c.conv_length[c.conv], 1)
        return float((c.length * elsewhere)[counted].sum()) / max(float(c.length.sum()), 1.0)

    @cached_property
    def whole_tf(self) -> Floats:
        """Frequency of each word in each chunk."""
        return self._by_chunk(self.tf)

    @cached_property
    def whole(self) -> Floats:
        """BM25 of each chunk."""
        c = self.candidates
        df = c.chunk_df[self.words]
        weights = np.array(self.query.weights, np.float64)[self.words]
        word_weights = np.log1p((c.n_chunks - df + 0.5) / (df + 0.5)) * weights * (df > 0)
        norm = WHOLE_K1 * (1 - WHOLE_B + WHOLE_B * self.chunk_lengths / max(c.avg_chunk_length, 1e-9))
        tf = self.whole_tf
        return weighted_sum(tf * (WHOLE_K1 + 1) / (tf + norm[:, None]), word_weights)

    @cached_property
    def chunk_lengths(self) -> Floats:
        """Number of terms of each chunk."""
        return self._by_chunk(self.candidates.length.astype(np.float64)[:, None])[:, 0]

    @cached_property
    def asking(self) -> Floats:
        """Share of the segments of the same author among the candidates that end with a question, 0 to 1."""
        author = self.candidates.author + 1
        asked = np.bincount(author, self.flag(analysis.IS_QUESTION))
        return np.asarray((asked / np.maximum(np.bincount(author), 1))[author], np.float64)

    def _by_chunk(self, values: Floats) -> Floats:
        """Sums over the segments of each chunk."""
        sums = np.zeros((len(self.candidates.chunk_ids), values.shape[1]))
        owner = self.candidates.chunk_index
        if len(owner):
            begins = changed_at(owner)
            sums[owner[begins]] = np.add.reduceat(values, begins, axis=0)
        return sums

    @cached_property
    def nearby(self) -> Floats:
        """The largest share of each word that a neighbour supplies, 0 to 1 (segments × words)."""
        supplied = np.zeros_like(self.has)
        for distance, weight in _GAP:
            np.maximum(supplied, self.shifted(self.has, distance) * weight, out=supplied)
        return supplied

    @cached_property
    def members(self) -> Floats:
        """The weight of class members where the word itself is missing (see `related_words`)."""
        if not len(self.related):
            return np.zeros(self.size)
        heads = np.array(self.query.concepts, np.int64)[self.related]
        tf = self.candidates.tf[:, self.related].astype(np.float64)
        # A rare member is no better evidence than the class itself, so the class's idf is the upper bound.
        weights = np.array(self.query.weights, np.float64)[heads]
        member_weights = np.minimum(self.idf[self.related], self.idf[heads]) * weights
        values = tf * (K1 + 1) / (tf + self.norm[:, None]) * member_weights
        total = np.zeros(self.size)
        for head in distinct(heads):
            best = values[:, heads == head].max(axis=1)
            total += np.where(self.candidates.tf[:, head] > 0, 0.0, best)
        return total

    @cached_property
    def named(self) -> Bools:
        """Whether the author of each segment is named in the question."""
        return self._by_authors(self.query.authors)

    @cached_property
    def time_words(self) -> npt.NDArray[np.int64]:
        """How many time expressions each segment contains, up to 3."""
        return (self.candidates.flags >> 1) & 3

    @cached_property
    def spoken(self) -> Floats:
        """1 where the segment has a known speaker, else 0."""
        return (self.candidates.author >= 0).astype(np.float64)

    def flag(self, bit: int) -> Floats:
        """1 where a flag of `text.analysis` is set, else 0."""
        return ((self.candidates.flags & bit) > 0).astype(np.float64)

    @cached_property
    def _same_run(self) -> dict[int, Floats]:
        """By distance: 1 where a segment and the one that many places before it are in one run, else 0."""
        run = self.candidates.run
        return {d: (run[d:] == run[:-d]).astype(np.float64) for d in (1, 2, 3)}

    def shifted(self, values: Floats, distance: int) -> Floats:
        """For each segment, the value of the one `distance` places on (-3 to 3, not 0) in its run, 0 for none."""
        same = self._same_run[abs(distance)]
        if values.ndim == 2:
            same = same[:, None]
        moved = np.zeros_like(values)
        if distance > 0:
            np.multiply(values[distance:], same, out=moved[:-distance])
        else:
            np.multiply(values[:distance], same, out=moved[-distance:])
        return moved

    def years_apart(self, mention: DateMention) -> range | tuple[int, ...]:
        """Return the years to add to a date without a year, so that it falls among the candidates."""
        at = self.candidates.at
        first = from_epoch(float(at.min())).year - mention.first.year
        last = from_epoch(float(at.max())).year - mention.first.year
        return (0,) if first <= 0 <= last else range(first, min(last, first + 50) + 1)

    def _by_authors(self, names: tuple[str, ...]) -> Bools:
        # The last element is for segments without an author, whose index is -1.
        wanted = np.array([author in names for author in (*self.candidates.authors, None)])
        return np.asarray(wanted[self.candidates.author], np.bool_)


# -- words -------------------------------------------------------------------------------------------------------------


def own(scene: Scene) -> Floats:
    """Tuned BM25 of the segment."""
    return scene.own


def window(scene: Scene) -> Floats:
    """BM25 of the segment together with its three neighbours on either side."""
    tf, length = scene.tf.copy(), scene.candidates.length.astype(np.float64)
    around = length.copy()
    for distance in (1, 2, 3, -1, -2, -3):
        tf += scene.shifted(scene.tf, distance)
        around += scene.shifted(length, distance)
    norm = K1 * (1 - B + B * around / max(7 * scene.candidates.avg_length, 1e-9))
    return weighted_sum(tf * (K1 + 1) / (tf + norm[:, None]), scene.mass)


def gap(scene: Scene) -> Floats:
    """Weight of the words that are missing here but present in a neighbour."""
    return weighted_sum(scene.nearby * (1 - scene.has), scene.mass)


def session(scene: Scene) -> Floats:
    """BM25 of the whole conversation."""
    c = scene.candidates
    tf = c.conv_tf[:, scene.words].astype(np.float64)
    df = c.conv_df[scene.words]
    weights = np.array(scene.query.weights, np.float64)[scene.words]
    word_weights = np.log1p((c.n_conversations - df + 0.5) / (df + 0.5)) * weights
    norm = SESSION_K1 * (1 - SESSION_B + SESSION_B * c.conv_length / max(c.avg_conversation_length, 1e-9))
    return weighted_sum(tf * (SESSION_K1 + 1) / (tf + norm[:, None]), word_weights)[c.conv]


def coverage(scene: Scene) -> Floats:
    """Share of the question's weight that is in the segment, 0 to 1."""
    return weighted_sum(scene.has, scene.mass) / max(float(scene.mass.sum()), 1e-9)


def coverage_nearby(scene: Scene) -> Floats:
    """Share of the question's weight that is in the segment or a close neighbour, 0 to 1."""
    best = scene.has.copy()
    for distance, _ in _GAP:
        np.maximum(best, scene.shifted(scene.has, distance), out=best)
    return weighted_sum(best, scene.mass) / max(float(scene.mass.sum()), 1e-9)


def whole(scene: Scene) -> Floats:
    """BM25 of the whole chunk."""
    return np.asarray(scene.whole[scene.candidates.chunk_index], np.float64)


def first_person(scene: Scene) -> Floats:
    """The segment and the question both use "I" or "we": the idf of these words among the candidates.

    The index has no pronouns, but in a question in the first person they identify the person meant.
    """
    if not scene.query.first_person:
        return np.zeros(scene.size)
    says = scene.flag(analysis.FIRST_PERSON)
    share = float(says.mean()) if scene.size else 0.0
    return says * float(np.log1p((1.01 - share) / (share + 0.01)))


def whole_rare(scene: Scene) -> Floats:
    """Share of the squared weight of the question's words in the chunk, so that the rarest words nearly decide."""
    rare = scene.mass**2
    found = weighted_sum((scene.whole_tf > 0).astype(np.float64), rare)
    return np.asarray((found / max(float(rare.sum()), 1e-9))[scene.candidates.chunk_index], np.float64)


def related_words(scene: Scene) -> Floats:
    """Members of a class that the question names ("instrument": "violin"), where the word itself is missing."""
    return scene.members


def related_nearby(scene: Scene) -> Floats:
    """`related_words` of a close neighbour, where the segment has none."""
    nearby = np.zeros(scene.size)
    for distance, weight in _GAP:
        np.maximum(nearby, scene.shifted(scene.members, distance) * weight, out=nearby)
    return np.where(scene.members > 0, 0.0, nearby)


# -- people ------------------------------------------------------------------------------------------------------------


def author_named(scene: Scene) -> Floats:
    """The author is named in the question."""
    return scene.named.astype(np.float64)


def author_first(scene: Scene) -> Floats:
    """The author is the first person named in the question."""
    return scene._by_authors(scene.query.authors[:1]).astype(np.float64)


def named_speaks_of_self(scene: Scene) -> Floats:
    """The author is named in the question and says "I" or "we"."""
    return scene.named * scene.flag(analysis.FIRST_PERSON)


def other_says_you(scene: Scene) -> Floats:
    """Somebody other than the one person named says "you"."""
    if len(scene.query.authors) != 1:
        return np.zeros(scene.size)
    return ~scene.named * scene.flag(analysis.SECOND_PERSON)


def related_by_author(scene: Scene) -> Floats:
    """`related_words`, said by somebody whom the question names."""
    return scene.members * scene.named


# -- dialogue ----------------------------------------------------------------------------------------------------------


def is_question(scene: Scene) -> Floats:
    """The segment ends with a question."""
    return scene.flag(analysis.IS_QUESTION)


def asks_as_usual(scene: Scene) -> Floats:
    """The segment ends with a question: the share of its author's segments that do.

    Friends ask each other now and then; the user of an assistant does little else.
    """
    return scene.flag(analysis.IS_QUESTION) * scene.asking


def asks_within_as_usual(scene: Scene) -> Floats:
    """`asks_within` times the share of its author's segments that end with a question."""
    return asks_within(scene) * scene.asking


def asks_within(scene: Scene) -> Floats:
    """The segment contains a question, but does not end with one."""
    return scene.flag(analysis.HAS_QUESTION) * (1 - scene.flag(analysis.IS_QUESTION))


def answers(scene: Scene) -> Floats:
    """BM25 of the segment before, if it ends with a question."""
    return scene.shifted(scene.flag(analysis.IS_QUESTION) * scene.own, -1) * scene.asks


def answers_within(scene: Scene) -> Floats:
    """BM25 of the segment before, if it contains a question."""
    return scene.shifted(scene.flag(analysis.HAS_QUESTION) * scene.own, -1) * scene.asks


def after_question(scene: Scene) -> Floats:
    """The segment before ends with a question."""
    return scene.shifted(scene.flag(analysis.IS_QUESTION), -1) * scene.asks


def says_less(scene: Scene) -> Floats:
    """How far its author's share of the words in the candidates is below half, 1 to -1; 0 without an author."""
    return (1 - 2 * scene.shares[scene.candidates.author]) * scene.spoken


def opens_conversation(scene: Scene) -> Floats:
    """Among the first two segments of its conversation, where news is usually mentioned."""
    multi = scene.candidates.conv_length[scene.candidates.conv] > 2 * scene.candidates.length
    return np.asarray((scene.candidates.conv_pos < 2) & multi, np.float64) * scene.spoken


def length(scene: Scene) -> Floats:
    """Logarithm of the number of terms: a longer segment answers more questions."""
    return np.log1p(scene.candidates.length.astype(np.float64))


def chunk_length(scene: Scene) -> Floats:
    """Logarithm of the number of terms of the whole chunk."""
    return np.asarray(np.log1p(scene.chunk_lengths)[scene.candidates.chunk_index], np.float64)


def time_told(scene: Scene) -> Floats:
    """The segment has a speaker and contains a time expression."""
    return np.minimum(scene.time_words, 1) * scene.spoken


# -- dates in the question ---------------------------------------------------------------------------------------------


def _spans(scene: Scene, *precisions: str) -> list[tuple[float, float]]:
    """Start and end (epoch seconds) of the dates of these precisions in the question.

    "In May" without a year means the May nearest to the question; if no candidate is of that time, it means the May
    of each year with candidates.
    """
    spans = []
    for mention in scene.query.dates:
        if mention.precision in precisions:
            for years in scene.years_apart(mention) if mention.yearless else (0,):
                spans.append((_midnight(mention.first, years), _midnight(mention.last, years) + _DAY))
    return spans


def _midnight(day: date, years: int) -> float:
    """Epoch seconds at which `day`, so many years on, begins (29 February moves to the 28th)."""
    year = min(max(day.year + years, 1), 9999)
    last = days_in(year, day.month)
    return datetime(year, day.month, min(day.day, last), tzinfo=UTC).timestamp()


def _is_within(scene: Scene, spans: list[tuple[float, float]]) -> Floats:
    inside = np.zeros(scene.size)
    for first, end in spans:
        np.maximum(inside, (scene.candidates.at >= first) & (scene.candidates.at < end), out=inside)
    return inside


def in_month(scene: Scene) -> Floats:
    """Its date lies in a month or season that the question names."""
    return _is_within(scene, _spans(scene, "month", "season"))


def exact_day(scene: Scene) -> Floats:
    """Its date lies in a day, week or span that the question names."""
    return _is_within(scene, _spans(scene, "day", "week", "span"))


def in_year(scene: Scene) -> Floats:
    """Its date lies in a year that the question names."""
    return _is_within(scene, _spans(scene, "year"))


def just_after(scene: Scene) -> Floats:
    """Its date lies shortly after one in the question: events are often mentioned within days."""
    days = _is_within(scene, [(end, end + 10 * _DAY) for _, end in _spans(scene, "day", "week", "span")])
    months = _is_within(scene, [(end, end + 15 * _DAY) for _, end in _spans(scene, "month", "season")])
    return np.maximum(days, 0.5 * months)


def near_date(scene: Scene) -> Floats:
    """Closeness of its date to a day in the question: 1, falling to 1/e in 15 days."""
    near = np.zeros(scene.size)
    for _, end in _spans(scene, "day", "week", "span"):
        np.maximum(near, np.exp(-np.abs(scene.candidates.at - end) / (15 * _DAY)), out=near)
    return near


def by_event(scene: Scene) -> Floats:
    """Closeness of its date to an event that the question uses as a date; 0 on the wrong side of it.

    "Before the move": the event gets the date of the segment that matches its words best.
    """
    anchor = scene.query.anchor
    if anchor is None or not scene.size:
        return np.zeros(scene.size)
    terms = [scene.query.terms[column] for column in scene.words]
    columns = [place for place, term in enumerate(terms) if term in anchor.terms]
    tf = scene.tf[:, columns]
    match = weighted_sum(tf * (K1 + 1) / (tf + scene.norm[:, None]), scene.mass[columns])
    most = float(match.max())
    if most <= 0:
        return np.zeros(scene.size)
    event = scene.candidates.at[match == most].min()
    days = (scene.candidates.at - event) / _DAY
    side = days <= 0 if anchor.before else days >= 0
    return np.asarray(side * np.exp(-np.abs(days) / _EVENT_DAYS))


# -- feedback ---------------------------------------------------------------------------------------------------------


def in_short_chunk(candidates: CandidateSet) -> Bools:
    """Whether each segment is in a chunk of fewer than four, such as a note."""
    return np.asarray((np.bincount(candidates.chunk_index) < 4)[candidates.chunk_index], np.bool_)


def shared_words(candidates: CandidateSet, scores: Floats) -> Floats:
    """How much each segment's chunk has of the words that distinguish the best chunks from the other candidates.

    A question rarely contains all words of its subject; the best results contain more of them. Only the candidates
    are read.

    Args:
        candidates: the chunks with their words.
        scores: of each chunk, -inf for one that is not a result.

    Returns:
        0 for a chunk without any of these words, up to `MOST_SHARED` for one with many; words of the question itself
            do not count.
    """
    c = candidates
    if not len(c.words) or scores.max() == -np.inf:
        return np.zeros(len(c.chunk_index))
    owner = np.repeat(c.chunk_index, np.diff(c.word_start))
    lengths = np.maximum(np.bincount(c.chunk_index, c.length, len(scores)), 1.0)
    last = np.partition(scores, -BEST)[-BEST] if len(scores) > BEST else -np.inf
    share = np.where(scores >= last, np.exp((scores - scores.max()) / _DROP), 0.0)
    share /= share.sum() * lengths
    in_best = np.flatnonzero((share > 0)[owner])
    words = distinct(c.words[in_best])
    # A table by number: a binary search for each of ten thousand words takes a millisecond. 0: not in `words`.
    table = np.zeros(int(c.words.max()) + 1, np.int32)
    table[words] = np.arange(1, len(words) + 1)
    place = table[c.words]
    count = np.bincount(place, minlength=len(words) + 1)[1:]
    # Counted in the candidates, so that no more of the index is read; + 1 keeps it low in a tiny store.
    rarity = np.maximum(0.0, np.log(c.n_chunks / (count + 1)))
    value = np.bincount(place[in_best], share[owner[in_best]], len(words) + 1)[1:] * rarity
    value[contained(words, c.asked)] = 0.0
    if len(value) > SHARED_WORDS:
        value[value < np.partition(value, -SHARED_WORDS)[-SHARED_WORDS] * _ROUNDING] = 0.0
    total = float(value.sum())
    if total <= 0:
        return np.zeros(len(c.chunk_index))
    added = np.append(0.0, value / total * rarity)[place]
    begins = changed_at(owner)
    found = np.zeros(len(scores))
    found[owner[begins]] = np.add.reduceat(added, begins)
    found /= np.sqrt(lengths / max(c.avg_chunk_length, 1e-9))
    found *= min(1.0, MOST_SHARED / max(float(found.max()), 1e-9))
    return np.asarray(np.round(found, _DIGITS)[c.chunk_index], np.float64)


SIGNALS: tuple[Callable[[Scene], Floats], ...] = (
    whole, first_person, own, session, gap, related_words,
    window, coverage, coverage_nearby, whole_rare, related_nearby,
    author_named, author_first, named_speaks_of_self, other_says_you, related_by_author,
    is_question, asks_as_usual, asks_within, asks_within_as_usual, answers, answers_within, after_question,
    says_less, opens_conversation, length, chunk_length, time_told,
    in_month, exact_day, in_year, just_after, near_date, by_event,
)  # fmt: skip

#: Cues of speech: flags of a spoken segment in the index, whatever the question.
CUES: dict[str, int] = {
    "place": analysis.PLACE_CUE, "duration": analysis.DURATION, "quotes": analysis.QUOTES,
    "capitals": analysis.CAPITALS, "number": analysis.NUMBER, "first_person": analysis.FIRST_PERSON,
    "second_person": analysis.SECOND_PERSON, "reason": analysis.REASON, "person": analysis.PERSON_CUE,
    "plan": analysis.PLAN, "preference": analysis.PREFERENCE, "feeling": analysis.FEELING,
    "attachment": analysis.ATTACHMENT, "opinion": analysis.OPINION, "negation": analysis.NEGATION,
}  # fmt: skip

#: Cues that count more for a kind of question: kind → cues.
ASKED: dict[str, tuple[str, ...]] = {
    "when": ("time", "plan", "duration"),
    "where": ("place", "capitals"),
    "how_long": ("duration", "number", "time"),
    "how_many": ("number", "duration"),
    "title": ("quotes", "capitals"),
    "why": ("reason", "opinion", "feeling"),
    "feeling": ("feeling", "opinion"),
    "who": ("person", "capitals"),
    "opinion": ("opinion", "preference"),
    "would": ("preference", "plan", "feeling"),
}


def values(scene: Scene, wanted: frozenset[str] | None = None) -> dict[str, Floats]:
    """Return every feature by name, or only the `wanted` ones; features that are 0 throughout may be left out."""
    found: dict[str, Floats] = {}
    for signal in SIGNALS:
        if wanted is None or signal.__name__ in wanted:
            found[signal.__name__] = signal(scene)
    for cue, bit in CUES.items():
        if wanted is None or f"has_{cue}" in wanted:
            found[f"has_{cue}"] = scene.flag(bit) * scene.spoken
    for cue in ASKED.get(scene.query.kind, ()):
        name = f"{scene.query.kind}:{cue}"
        if wanted is None or name in wanted:
            found[name] = np.minimum(scene.time_words, 2) / 1.0 if cue == "time" else scene.flag(CUES[cue])
    return found
