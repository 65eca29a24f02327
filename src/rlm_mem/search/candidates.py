"""The first stage of search: a bounded number of candidate segments from the backend's index, ready to be ranked.

Candidates are the best chunks by tuned BM25 over whole chunks, their neighbours in conversation order (without them
ranking misses many answers) and chunks of a period that the question names. All that ranking needs is
returned as arrays, so the ranker does no I/O.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, structs

from rlm_mem.chunk import from_epoch, name_key
from rlm_mem.store.core.encoding import DecodedSegments
from rlm_mem.store.core.lookup import CandidateSource, CorpusStatistics, Filters, Neighbourhood
from rlm_mem.store.core.records import time_range
from rlm_mem.store.core.selection import contained, distinct, union

if TYPE_CHECKING:
    import numpy.typing as npt

    from rlm_mem.search.query import Query

#: Segments on each side of a candidate chunk: how many may be results themselves, and how many are read. A segment's
#: score depends on three to either side.
NEAR_SEGMENTS = 3
READ_SEGMENTS = 6
#: Beyond the first few, chunks that score less than this share of the best score are dropped: in measurements none
#: of them reached the top.
FIRST_FEW = 30
MIN_SHARE = 0.2
#: Most chunks that each period named in the question adds by their words; a fifth as many are added whatever their
#: words.
PERIOD_CHUNKS = 50
#: Neighbours are read for the best candidates: about this many segments in total, but at least this many chunks.
#: Where chunks are single turns, that covers all candidates; long chunks contain their own context.
NEIGHBOURED_SEGMENTS = 300
NEIGHBOURED_CHUNKS = 30
#: Events are often mentioned some days later.
MENTIONED_WITHIN = timedelta(days=7)


class CandidateSet(Struct, frozen=True):
    """Segments of candidate chunks and of their neighbours, with the figures that scoring needs.

    Sizes: ``M`` chunks, ``S`` segments, ``Q`` query terms (in the order of ``Query.terms``), ``C`` conversations.
    Chunks are in conversation order within a run, a chunk's segments are contiguous and in text order, and
    ``chunk_index`` never decreases. Window and gap features must not cross a change of ``run``.

    Per chunk:
        chunk_ids: their ids.
        doc: number in the index, for ties and further queries of the index only.
        chunk_type, confidence, valid_to, superseded_by: as in the chunk (times as strings or None); the last two are
            None throughout when outdated chunks are to be ranked like any other.
        chunk_eligible: may be a result: passes the filters and is a candidate or close to one. The others are
            context for window features only.
    Per segment:
        chunk_index: index into the chunk arrays.
        seg_no: number of the segment within its chunk.
        start, end: character offsets in the chunk's content.
        run: number of the unbroken stretch of a conversation.
        conv: index into the conversation arrays. A chunk without a conversation is a conversation of its own.
        conv_pos: number of the segment within its conversation (0 = first); exact among the first few chunks,
            1,000,000 or more further on.
        author: index into ``authors``; -1 for none.
        at: epoch seconds of its chunk.
        flags: bits of rlm_mem.text.analysis.
        length: number of terms.
        tf: frequency of each query term.
        eligible: may be a result by itself: its chunk may, and its speaker passes the filters.
    Words of the segments, as numbers with one meaning in all segments:
        word_start: the words of segment s are ``word_start[s]`` up to ``word_start[s + 1]``.
        words: their numbers, repeated as often as they occur.
        asked: the numbers of the question's terms, in any order; -1 for a term that the index lacks.
    Statistics of the namespace, exact and independent of the history of writes:
        n_segments, avg_length, df: number of segments, terms per segment, segments that contain each query term.
        n_chunks, avg_chunk_length, chunk_df: the same for chunks.
        n_conversations, avg_conversation_length, conv_df: the same for conversations.
        conv_tf, conv_length: per conversation, over all its chunks.
    """

    chunk_ids: list[str]
    doc: npt.NDArray[np.int64]  # [M]
    chunk_type: list[str]  # [M]
    confidence: npt.NDArray[np.float64]  # [M]
    valid_to: list[str | None]  # [M]
    superseded_by: list[str | None]  # [M]
    chunk_eligible: npt.NDArray[np.bool_]  # [M]

    chunk_index: npt.NDArray[np.int64]  # [S]
    seg_no: npt.NDArray[np.int64]  # [S]
    start: npt.NDArray[np.int64]  # [S]
    end: npt.NDArray[np.int64]  # [S]
    run: npt.NDArray[np.int64]  # [S]
    conv: npt.NDArray[np.int64]  # [S]
    conv_pos: npt.NDArray[np.int64]  # [S]
    author: npt.NDArray[np.int64]  # [S]
    at: npt.NDArray[np.float64]  # [S]
    flags: npt.NDArray[np.int64]  # [S]
    length: npt.NDArray[np.int64]  # [S]
    tf: npt.NDArray[np.float32]  # [S, Q]
    eligible: npt.NDArray[np.bool_]  # [S]

    word_start: npt.NDArray[np.int64]  # [S + 1]
    words: npt.NDArray[np.uint32]
    asked: npt.NDArray[np.int64]

    authors: tuple[str, ...]

    n_segments: int
    avg_length: float
    df: npt.NDArray[np.int64]  # [Q]
    n_chunks: int
    avg_chunk_length: float
    chunk_df: npt.NDArray[np.int64]  # [Q]
    n_conversations: int
    avg_conversation_length: float
    conv_df: npt.NDArray[np.int64]  # [Q]
    conv_tf: npt.NDArray[np.int64]  # [C, Q]
    conv_length: npt.NDArray[np.int64]  # [C]


def gather(source: CandidateSource, query: Query, filters: Filters, limit: int) -> CandidateSet:
    """Collect the candidates of a question.

    Args:
        source: the index, as it is now.
        query: the analysed question.
        filters: what may be returned; neighbours that do not pass are context only.
        limit: chunks to take by their words (50 to 200 find nearly as much as all).
    """
    terms = source.term_ids(query.terms)
    figures = source.statistics(terms)
    alike = filters.include_superseded or filters.valid_at is not None
    hood = _neighbourhood(source, query, filters, terms, limit, _neighboured_chunks(figures), alike=alike)
    rows, decoded = source.rows(hood.doc, filters)
    there = np.array(rows.doc, np.int64)
    # A chunk may have been removed since the postings were read: it is left out.
    kept = contained(hood.doc, there)
    eligible = hood.near[kept] & np.array(rows.accepted, np.bool_)
    per_chunk = np.diff(decoded.chunk_start)
    chunk_index = np.repeat(np.arange(len(there)), per_chunk)
    seg_no = np.arange(len(chunk_index)) - np.repeat(decoded.chunk_start[:-1], per_chunk)
    tf = _frequencies(decoded, terms)
    conversation, numbers = _conversations(np.array(rows.conversation, np.int64))
    conv_tf, conv_length = _conversation_figures(
        source, terms, decoded, tf, chunk_index, conversation, numbers
    )
    authors = distinct(decoded.author)
    names = source.author_names(authors[authors >= 0])
    allowed = eligible[chunk_index]
    if filters.speaker is not None:
        wanted = name_key(filters.speaker)
        allowed &= np.isin(decoded.author, [one for one, name in names.items() if name_key(name) == wanted])
    return CandidateSet(
        chunk_ids=list(rows.chunk_id),
        doc=there,
        chunk_type=list(rows.type),
        confidence=np.array(rows.confidence, np.float64),
        valid_to=[None] * len(there) if alike else list(rows.valid_to),
        superseded_by=[None] * len(there) if alike else list(rows.superseded_by),
        chunk_eligible=eligible,
        chunk_index=chunk_index,
        seg_no=seg_no,
        start=decoded.start,
        end=decoded.end,
        run=hood.run[kept][chunk_index],
        conv=conversation[chunk_index],
        conv_pos=hood.segments_before[kept][chunk_index] + seg_no,
        author=np.searchsorted(authors, decoded.author) - int(np.count_nonzero(authors < 0)),
        at=np.array(rows.at, np.float64)[chunk_index],
        flags=decoded.flags,
        length=decoded.length,
        tf=tf,
        eligible=allowed,
        word_start=decoded.term_start,
        words=decoded.terms,
        asked=terms,
        authors=tuple(names.get(number, "") for number in authors[authors >= 0].tolist()),
        n_segments=figures.segments,
        avg_length=figures.total_length / max(figures.segments, 1),
        df=figures.segment_df,
        n_chunks=figures.chunks,
        avg_chunk_length=figures.total_length / max(figures.chunks, 1),
        chunk_df=figures.chunk_df,
        n_conversations=figures.conversations,
        avg_conversation_length=figures.total_length / max(figures.conversations, 1),
        conv_df=figures.conversation_df,
        conv_tf=conv_tf,
        conv_length=conv_length,
    )


def _neighbourhood(
    source: CandidateSource, query: Query, filters: Filters, terms: npt.NDArray[np.int64], limit: int,
    first: int, *, alike: bool,
) -> Neighbourhood:  # fmt: skip
    """Choose the chunks of a question by its words and periods, and the neighbours of those that count most.

    Args:
        first: how many of the best chunks get their neighbours.
        alike: whether superseded chunks rank like others.
    """
    weights = np.array(query.weights, np.float64)
    docs, scores = source.best(terms, weights, limit, filters)
    docs = docs[(scores >= MIN_SHARE * scores[:1]) | (np.arange(len(scores)) < FIRST_FEW)]
    together = distinct(np.concatenate([docs[:first], *_in_periods(source, query, terms, weights, filters)]))
    if not alike:  # a superseded chunk ranks below its successor, which therefore becomes a candidate, too
        together = union(together, source.successors(union(together, docs)))
    return source.around(together, docs[first:], NEAR_SEGMENTS, READ_SEGMENTS)


def _neighboured_chunks(figures: CorpusStatistics) -> int:
    """Return how many of the best chunks get their neighbours."""
    usual_size = max(1.0, figures.segments / max(figures.chunks, 1))
    return max(NEIGHBOURED_CHUNKS, round(NEIGHBOURED_SEGMENTS / usual_size))


def _in_periods(
    source: CandidateSource,
    query: Query,
    terms: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    filters: Filters,
) -> list[npt.NDArray[np.int64]]:
    """Return chunks of the periods that the question names: of each, the best by its words and the first few."""
    chosen = []
    for mention in query.dates:
        first, last = _midnight(mention.first), _midnight(mention.last) + timedelta(days=1)
        narrowed = _within_period(filters, first, last + MENTIONED_WITHIN)
        if narrowed is None:
            continue
        chosen.append(source.best(terms, weights, PERIOD_CHUNKS, narrowed)[0])
        few = PERIOD_CHUNKS // 5
        chosen.append(source.in_period(first.timestamp(), last.timestamp(), few, filters))
    return chosen


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _within_period(filters: Filters, first: datetime, end: datetime) -> Filters | None:
    """Return `filters` restricted to a period as well, or None if nothing can pass both."""
    low, high = time_range(filters.start, filters.end)
    low, high = max(low, first.timestamp()), min(high, end.timestamp())
    if low >= high:
        return None
    start, stop = from_epoch(low), from_epoch(high)
    return structs.replace(
        filters, start=start.isoformat(), end=(stop - timedelta(microseconds=1)).isoformat()
    )


def _frequencies(decoded: DecodedSegments, terms: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Return how often each segment contains each term."""
    segments, count = len(decoded.start), len(terms)
    known = np.flatnonzero(terms >= 0)
    if not len(known) or not segments:
        return np.zeros((segments, count), np.float32)
    order = known[np.argsort(terms[known])]
    wanted = terms[order].astype(np.uint32)
    place = np.minimum(np.searchsorted(wanted, decoded.terms), len(wanted) - 1)
    hit = np.flatnonzero(wanted[place] == decoded.terms)
    segment = np.searchsorted(decoded.term_start, hit, side="right") - 1
    cells = np.bincount(segment * count + order[place[hit]], minlength=segments * count)
    # A term for an author counts once in each of their segments.
    spoken = decoded.author[:, None] == terms[None, :]
    frequencies: npt.NDArray[np.float32] = (cells.reshape(segments, count) + (spoken & (terms >= 0))).astype(
        np.float32
    )
    return frequencies


def _conversations(given: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the index of each chunk's conversation, and the conversation numbers, -1 for chunks without one."""
    named = distinct(given[given >= 0])
    index = np.searchsorted(named, given)
    alone = np.flatnonzero(given < 0)
    index[alone] = len(named) + np.arange(len(alone))
    return index, np.concatenate([named, np.full(len(alone), -1, np.int64)])


def _conversation_figures(
    source: CandidateSource,
    terms: npt.NDArray[np.int64],
    decoded: DecodedSegments,
    tf: npt.NDArray[np.float32],
    chunk_index: npt.NDArray[np.int64],
    conversation: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return term frequencies and lengths of the conversations, in the order of `numbers`."""
    conv_tf = np.zeros((len(numbers), len(terms)), np.int64)
    conv_length = np.zeros(len(numbers), np.int64)
    named = int(np.count_nonzero(numbers >= 0))
    conv_tf[:named], conv_length[:named] = source.conversation_terms(numbers[:named], terms)
    owner = conversation[chunk_index]
    alone = owner >= named
    np.add.at(conv_tf, owner[alone], tf[alone].astype(np.int64))
    np.add.at(conv_length, owner[alone], decoded.length[alone])
    return conv_tf, conv_length
