"""`search`: from a question to ranked hits with snippets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime
from heapq import merge
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, structs

from rlm_mem import text as language
from rlm_mem.arguments import check_flag
from rlm_mem.chunk import Chunk, format_time, normalise_unicode, parse_time
from rlm_mem.chunk.types import shown, wanted_origins, wanted_trust
from rlm_mem.errors import InvalidQuery
from rlm_mem.search.current import (
    ANSWERING,
    LONGEST_NOTE,
    ComparedHits,
    with_current_first,
    with_distant_first,
    with_ending_first,
    with_return_first,
)
from rlm_mem.search.joined import gather_all
from rlm_mem.search.marking import with_corrections, with_marks
from rlm_mem.search.neighbours import neighbours_of
from rlm_mem.search.query import (
    EVERYDAY,
    Query,
    analyse_query,
    names_only,
    rarest,
    with_labels,
    with_months,
    with_related,
    with_repairs,
)
from rlm_mem.search.ranking import Hit, Ranked, ranked
from rlm_mem.search.snippets import end_of_section, excerpt, places_of, segment_ends, snippet, within_reach
from rlm_mem.store.core.lookup import CandidateSource, Filters, sources_of
from rlm_mem.store.core.records import LinkedChunk, time_range
from rlm_mem.telemetry import observed
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.languages import analyser_of
from rlm_mem.text.later import COMPARED
from rlm_mem.text.present import PresentQuestion
from rlm_mem.text.segments import split_segments
from rlm_mem.text.update_score import is_specific

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.reader import ChunkReader

#: Most hits that one search returns.
MAX_LIMIT = 1_000

#: Most neighbours on each side of a hit.
MAX_NEIGHBOURS = 10

_BY = ("chunk", "segment", "conversation")
_LATER_TERMS, _MAX_CHUNKS_OF_TERM, _MAX_LATER_NOTES = 24, 3, 4
"""Most terms of a hit by which later notes are looked up, most chunks with such a term, and most notes read."""


@observed("search", lambda current, hits: current.set("rlm_mem.hits", len(hits)))
def search(
    store: ChunkStore,
    query: str,
    *,
    limit: int = 10,
    filters: Filters | Mapping[str, Any] | None = None,
    by: str = "chunk",
    as_of: str | date | datetime | None = None,
    explain: bool = False,
    neighbours: int = 0,
) -> list[Hit]:
    """Find what answers a question, best first. Reads one chunk file for each hit, at least five, and writes none.

    A hit that another of the best hits states to be out of date ("moved from A to B") does not come first. If two
    notes may answer the same question about the present, each names the other (`Hit.marks`). For each of the best three
    hits that may be the answer, up to four later notes that share a rare word with it are read, too: one that reports a
    change may be named on the hit.

    Args:
        store: where to search; only its own namespace is seen.
        query: a question or keywords in any language; only the first few thousand characters count. Without
            searchable words the result is empty; with `filters`, it is the newest chunks that pass.
        limit: most hits, 1 to 1,000; long lists cost more, since every candidate is ranked.
        filters: what may be returned (see `Filters`); a mapping of its fields is accepted, too.
        by: "chunk"; "segment" for single turns or sentences, of which one chunk may have several; "conversation"
            for the best chunk of each conversation.
        as_of: search what was valid at this time: nothing that happened later, nothing outside its validity.
            Relative dates in the question ("last week") count from it, too. None: now, with superseded chunks below
            their successors.
        explain: also return the part of each signal.
        neighbours: turns or sentences on each side returned with each hit, 0 to 10. A quarter of what a search
            misses is within two turns of a hit. Their chunks are read, too.

    Raises:
        InvalidQuery: an argument has the wrong type or is out of range.
    """
    _check(query, limit, by, neighbours)
    if explain is not False:
        check_flag(explain, "explain")
    checked = _filters(filters)
    unrestricted = checked == Filters() and as_of is None and store.as_of is None
    if as_of is not None:
        store = store.held_at(as_of)
    checked = _with_times(store, checked)
    read: dict[str, Chunk] = {}

    def found() -> list[Hit]:
        if not query.strip():
            return [] if unrestricted else _newest(store, checked, limit, read)
        return _QuestionSearch(store, query, checked, limit).hits(by, limit, read, explain=explain)

    return _with_neighbours(store, store.backend.retried(found), by, neighbours, read)


class Passages(Struct, frozen=True):
    """The results of one search of the index.

    Attributes:
        hits: turns or sentences, best first.
        chunks: their chunks, by id.
        ranking: ids of the best whole chunks, best first.
    """

    hits: list[Hit]
    chunks: dict[str, Chunk]
    ranking: list[str]


def passages(
    store: ChunkStore, query: str, *, limit: int = 10, filters: Filters | Mapping[str, Any] | None = None
) -> Passages:
    """Return the results of `search` by segment and of `ranked_ids` from one set of candidates, and the chunks read.

    Raises:
        InvalidQuery: an argument has the wrong type or is out of range.
    """
    _check(query, limit, "segment")
    wanted = _with_times(store, _filters(filters))

    def found() -> Passages:
        if not query.strip():
            return Passages([], {}, [])
        read: dict[str, Chunk] = {}
        question_search = _QuestionSearch(store, query, wanted, limit)
        hits = question_search.hits("segment", limit, read, later=True)
        return Passages(hits, read, [one.chunk_id for one in islice(question_search.ranked("chunk"), limit)])

    return store.backend.retried(found)


def hits_within(hits: list[Hit], max_tokens: int) -> list[Hit]:
    """The first hits whose snippets and neighbours together have at most `max_tokens` tokens."""
    left = language.texts_within(
        [text for hit in hits for text in (hit.snippet, *(one.text for one in hit.neighbours))], max_tokens
    )
    kept = []
    for hit in hits:
        own, left = left[: 1 + len(hit.neighbours)], left[1 + len(hit.neighbours) :]
        if not own:
            break
        beside = zip(hit.neighbours, own[1:], strict=False)
        kept.append(
            structs.replace(
                hit, snippet=own[0], neighbours=tuple(structs.replace(one, text=text) for one, text in beside)
            )
        )
    return kept


def excerpts(
    store: ChunkStore,
    query: str,
    chunks: Sequence[Chunk],
    *,
    longest: Sequence[int],
    lines: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Return the most relevant excerpt of each of these chunks, by id.

    An excerpt is one line around the words of the question that fewest of these chunks have; of a very long chunk, only
    one part is looked at: that around the lines found, or else around a word of the question.

    Args:
        longest: for each chunk, the most characters of its excerpt; chunks beyond the end of this list have none.
        lines: segments of a chunk that a search found, by id: the excerpt has as many of them as it can.
    """
    chunks = chunks[: len(longest)]

    if not chunks:
        return {}
    analyser = get_analyser(store.config.search.language)

    def found() -> dict[str, str]:
        question = question_for(store.candidate_source(), query, analyser.language, store.clock())
        texts = [
            within_reach(" ".join(one.content.split()), (lines or {}).get(one.id, ()), question)
            for one in chunks
        ]
        places = [places_of(text, question, analyser) for text in texts]
        holders = Counter(chain.from_iterable({term for _, term, _ in found} for found in places))
        texts_by_id = {}
        for one, text, found, room in zip(chunks, texts, places, longest, strict=False):
            rare = [
                (at, term, weight * math.log(1 + len(texts) / holders[term])) for at, term, weight in found
            ]
            texts_by_id[one.id] = excerpt(
                text, sorted(rare + segment_ends(text, (lines or {}).get(one.id, ()))), room
            )
        return texts_by_id

    return store.backend.retried(found)


def ranked_ids(
    store: ChunkStore, query: str, *, limit: int = 10, filters: Filters | Mapping[str, Any] | None = None
) -> list[tuple[str, float]]:
    """Return ids and scores of the chunks that `search` would return, from the index alone: no chunk file is read.

    Raises:
        InvalidQuery: an argument of the wrong type or out of range.
    """
    _check(query, limit, "chunk")
    if not query.strip():
        return []

    def found() -> list[tuple[str, float]]:
        results = _QuestionSearch(store, query, _with_times(store, _filters(filters)), limit).ranked("chunk")
        return [(result.chunk_id, result.score) for result in islice(results, limit)]

    return store.backend.retried(found)


def keyword_ids(store: ChunkStore, query: str, *, limit: int = 10) -> list[str]:
    """Return the ids of chunks that contain a word of the query in any form, best first; from the index alone.

    Unlike `search`, it uses no neighbours of a match, no related words and no near-spellings, and treats names of
    people as any other word.

    Raises:
        InvalidQuery: an argument of the wrong type or out of range.
    """

    _check(query, limit, "chunk")
    if not query.strip():
        return []
    analyser = get_analyser(store.config.search.language)
    words = analyse_query(query, analyser)

    def found() -> list[str]:
        source = store.candidate_source()
        labelled = with_labels(rarest(words, source.term_counts), source, source.authors(), analyser)
        filters, count = _with_times(store, Filters()), max(store.config.search.candidates, 2 * limit)
        candidates = gather_all(source, labelled, filters, count)
        return [
            result.chunk_id for result in islice(ranked(labelled, candidates, "chunk", with_word=True), limit)
        ]

    return store.backend.retried(found)


def ids_with_terms(store: ChunkStore, terms: Collection[str]) -> frozenset[str]:
    """Return the ids of all chunks that contain one of these terms, as an index has them; from the index alone."""

    def found() -> frozenset[str]:
        ids: set[str] = set()
        for source in sources_of(store.candidate_source()):
            numbers = source.term_ids(sorted(terms))
            numbers = numbers[numbers >= 0]
            chunks = source.statistics(numbers).chunks
            docs, _ = source.best(numbers, np.ones(len(numbers)), chunks, Filters())
            ids.update(source.rows(docs, Filters())[0].chunk_id)
        return frozenset(ids)

    return store.backend.retried(found) if terms else frozenset()


def occurs(store: ChunkStore, term: str) -> bool:
    """Return whether a chunk contains a term, as an index has it; from the figures of the index alone."""

    def found() -> bool:
        for source in sources_of(store.candidate_source()):
            numbers = source.term_ids([term])
            if numbers[0] >= 0 and source.statistics(numbers).chunk_df[0] > 0:
                return True
        return False

    return store.backend.retried(found)


def question_for(source: CandidateSource, query: str, language: str, now: datetime | None) -> Query:
    """Analyse a question for the store behind `source`, whose speakers are recognised as names."""

    analyser, authors = get_analyser(language), source.authors()
    question = analyse_query(query, analyser, now=now, known_authors=authors, term_counts=source.term_counts)
    question = rarest(question, source.term_counts)
    question = with_related(with_repairs(question, analyser, source.term_counts), analyser)
    if question.dates:
        question = with_months(question, analyser)
    return with_labels(question, source, authors, analyser)


class _QuestionSearch:
    """The candidates of one question, ranked and read as often as needed."""

    def __init__(self, store: ChunkStore, query: str, filters: Filters, limit: int) -> None:
        self._store = store
        self._filters = filters
        self._analyser = get_analyser(store.config.search.language)
        source = store.candidate_source()
        question = question_for(source, query, self._analyser.language, store.clock())
        self._comparing = analyser_of(question.text, self._analyser)  # cached, so not of a text of any length
        # A snippet is cut around any word of the question.
        self._asked = question
        if question.authors and not _has_distinctive_term(source, question):
            # Search only for what the named people say and what is said about them: "use" or "like" is no evidence.
            question = names_only(question, self._analyser)
        self._question = question
        self._sources = sources_of(source)
        most = max(store.config.search.candidates, 2 * limit)
        self._candidates = gather_all(source, question, filters, most)
        self._linked: dict[str, dict[str, list[LinkedChunk]]] = {}

    def ranked(self, by: str) -> Iterator[Ranked]:
        """Rank chunks, segments or conversations, best first."""
        return ranked(self._question, self._candidates, by)

    def hits(
        self, by: str, limit: int, read: dict[str, Chunk], *, explain: bool = False, later: bool = False
    ) -> list[Hit]:
        """Return the best hits and add their chunks to ``read``; skip those whose chunk is missing or damaged.

        Args:
            later: put later notes that may change a hit before or behind it; otherwise most are only named on the hit.
        """
        results, hits = self.ranked(by), list[Hit]()
        most = max(limit, COMPARED)
        while len(hits) < most and (best := list(islice(results, most - len(hits)))):
            ids = list(dict.fromkeys(result.chunk_id for result in best))
            chunks = self._store.get_many(ids, track=False)
            read.update(chunks)
            present = chunks if self._store.as_of is None else _current_versions(self._store, ids)
            for result in best:
                chunk = chunks.get(result.chunk_id)
                if chunk is not None:
                    current = present.get(chunk.id, chunk)
                    # Found by its present text, shown as it was then.
                    same = current is chunk or current.content == chunk.content
                    part = result if same else structs.replace(result, start=0, end=len(chunk.content))
                    text = snippet(chunk.content, part.start, part.end, self._asked, self._analyser)
                    hits.append(_hit(self._store, chunk, part, text, explain))
        asked = PresentQuestion.of(self._asked.text, self._comparing)
        if asked is None or not hits:
            return with_ending_first(hits, read, self._comparing)[:limit]
        near = [hit.chunk_id for hit in hits[:ANSWERING]]
        look_up = None if by == "conversation" else lambda hit: self._later_notes(read, explain, hit, near)
        compare = ComparedHits(read, asked, self._comparing, look_up)
        hits = with_current_first(hits, compare, beside=later)
        hits = with_distant_first(hits, compare, looked_up=not later)  # with `later`, they are hits by now
        hits = with_return_first(hits, compare)
        return with_corrections(with_marks(hits, compare)[:limit], self._store, compare)

    def _later_notes(self, read: dict[str, Chunk], explain: bool, first: Hit, near: list[str]) -> list[Hit]:
        """Return notes made after a hit that share rare words with it or contradict it, and add them to ``read``.

        They need no word of the question: "The Macrogen contract was not renewed. All plates go to Novogene" has
        none of "Who does our sequencing?", but one of the note "Macrogen does our sequencing".
        """
        text = read[first.chunk_id].content
        if len(text) > LONGEST_NOTE or self._filters.speaker is not None:
            return []
        terms = [one for one in dict.fromkeys(self._analyser.terms(text)) if is_specific(one)][:_LATER_TERMS]
        since = parse_time(first.at).timestamp()
        found = []
        for part, source in zip(self._store.parts, self._sources, strict=True) if terms else ():
            ids = source.later_with(terms, since, _MAX_CHUNKS_OF_TERM, _MAX_LATER_NOTES, self._filters)
            if self._filters == Filters(valid_at=self._filters.valid_at, shown_at=self._filters.shown_at):
                ids = [*dict.fromkeys([*self._contradicting(part, first.chunk_id, near), *ids])]
            read.update(part.get_many([one for one in ids if one not in read], track=False))
            for chunk in map(read.get, ids):
                if chunk is not None and len(chunk.content) <= LONGEST_NOTE:
                    speaker = next((one.author for one in split_segments(chunk.content)), None)
                    result = Ranked(chunk.id, first.score, 0, 0, len(chunk.content), speaker, {})
                    whole = snippet(chunk.content, 0, len(chunk.content), self._asked, self._analyser)
                    found.append(_hit(self._store, chunk, result, whole, explain))
        return found

    def _contradicting(self, part: ChunkReader, chunk_id: str, near: list[str]) -> list[str]:
        """Return the chunks that contradict a hit; the links to the best hits are read together."""
        known = self._linked.setdefault(part.namespace, {})
        if chunk_id not in known:
            ids = list(dict.fromkeys([chunk_id, *near]))
            known |= part.linked_of_each(ids, "contradicts", "in", _MAX_LATER_NOTES)
        return [link.chunk_id for link in known[chunk_id]]


def _has_distinctive_term(source: CandidateSource, question: Query) -> bool:
    """Whether the store contains any word of the question that is not an everyday word."""
    distinctive = [
        term for term, weight in zip(question.terms, question.weights, strict=True) if weight > EVERYDAY
    ]
    return any(source.term_counts(distinctive).values())


def _with_times(store: ChunkStore, filters: Filters) -> Filters:
    """Return the filters with the present time as `shown_at`, and that of a view of the past as `valid_at`."""
    if filters.chunk_type is not None:
        store.check_type_filter(filters.chunk_type)
    now = format_time(store.clock())
    if store.as_of is None:
        return structs.replace(filters, shown_at=now)
    return structs.replace(filters, shown_at=now, valid_at=store.as_of.timestamp())


def _current_versions(store: ChunkStore, chunk_ids: list[str]) -> dict[str, Chunk]:
    """Return the chunks as they are now, whatever the time of the view."""
    found: dict[str, Chunk] = {}
    for part in store.parts:
        found |= part.backend.chunks(part.namespace, chunk_ids)
    return found


def _hit(store: ChunkReader, chunk: Chunk, result: Ranked, text: str, explain: bool = False) -> Hit:
    return Hit(
        chunk_id=chunk.id,
        score=result.score,
        snippet=text,
        start=result.start,
        end=result.end,
        segment_no=result.segment_no,
        conversation_id=chunk.metadata.conversation_id,
        at=chunk.metadata.at,
        type=chunk.type,
        tags=tuple(chunk.tags),
        author=result.author,
        parts=result.parts if explain else None,
        superseded_by=chunk.metadata.superseded_by,
        replaces=tuple(chunk.replaces),
        origin=chunk.metadata.origin,
        trust=chunk.metadata.trust,
        ended_at=chunk.metadata.valid_to and store.ended_at(chunk.metadata.valid_to),
    )


def _with_neighbours(
    store: ChunkStore, hits: list[Hit], by: str, count: int, read: dict[str, Chunk]
) -> list[Hit]:
    if not count or not hits:
        return hits
    ranges = []
    for hit in hits:
        chunk = read[hit.chunk_id]
        start, end = (hit.start, hit.end) if by == "segment" else (0, len(chunk.content))
        ranges.append((chunk, start, end))
    beside = neighbours_of(store, ranges, count)
    return [structs.replace(hit, neighbours=found) for hit, found in zip(hits, beside, strict=True)]


def _newest(store: ChunkStore, filters: Filters, limit: int, read: dict[str, Chunk]) -> list[Hit]:
    """Return the newest chunks that pass, each with its first segment, and add them to ``read``."""
    found = [_newest_of(part, filters, limit, read) for part in store.parts]
    return list(islice(merge(*found, key=lambda hit: hit.at, reverse=True), limit))


def _newest_of(store: ChunkReader, filters: Filters, limit: int, read: dict[str, Chunk]) -> list[Hit]:
    source = store.candidate_source()
    rows, decoded = source.rows(source.newest(limit, filters), filters)
    chunks = store.get_many(list(rows.chunk_id), track=False)
    read.update(chunks)
    hits = []
    for number, chunk_id in enumerate(rows.chunk_id):
        chunk = chunks.get(chunk_id)
        if chunk is None:
            continue
        first, last = int(decoded.chunk_start[number]), int(decoded.chunk_start[number + 1])
        start, end = (int(decoded.start[first]), int(decoded.end[first])) if last > first else (0, 0)
        result = Ranked(chunk.id, 0.0, 0, start, end, None, {})
        end = max(end, end_of_section(chunk.content, start))
        hits.append(_hit(store, chunk, result, chunk.content[start:end]))
    return hits


# -- arguments ---------------------------------------------------------------------------------------------------------


def _check(query: str, limit: int, by: str, neighbours: int = 0) -> None:
    if not isinstance(query, str):
        raise InvalidQuery(
            f"a query must be text, not {type(query).__name__}", hint="pass a question or keywords"
        )
    for name, count, example in (("limit", limit, 10), ("neighbours", neighbours, 2)):
        if isinstance(count, bool) or not isinstance(count, int):
            raise InvalidQuery(
                f"{name} must be a whole number, not {type(count).__name__}", hint=f"pass {name}={example}"
            )
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidQuery(f"limit must be 1 to {MAX_LIMIT}, not {limit}", hint="leave it out for 10 hits")
    if not isinstance(by, str) or by not in _BY:
        raise InvalidQuery(
            f"by must be one of {', '.join(_BY)}, not {shown(by)}", hint="leave it out for chunks"
        )
    if not 0 <= neighbours <= MAX_NEIGHBOURS:
        raise InvalidQuery(
            f"neighbours must be 0 to {MAX_NEIGHBOURS}, not {neighbours}",
            hint="read the conversation for more" if neighbours > 0 else "leave it out for none",
        )


def _filters(given: Filters | Mapping[str, Any] | None) -> Filters:
    if given is None:
        return Filters()
    if isinstance(given, Filters):
        values = structs.asdict(given)
    elif isinstance(given, Mapping):
        values = dict(given)
    else:
        raise InvalidQuery(f"filters must be Filters or a mapping, not {type(given).__name__}")
    known = set(Filters.__struct_fields__)
    for name, value in values.items():
        if name not in known:
            raise InvalidQuery(f"there is no filter {shown(name)}: use one of {', '.join(sorted(known))}")
        values[name] = _filter_value(name, value)
    checked = Filters(**values)
    time_range(checked.start, checked.end)  # raises if one is not a time
    return checked


_MAX_SECONDS = 1e15
"""Limit of a time as epoch seconds."""


def _filter_value(name: str, value: Any) -> Any:
    if value is None:
        return () if name in ("tags_all", "tags_any") else value if name != "include_superseded" else False
    if name == "origin":
        return wanted_origins(value)
    if name == "trust":
        return wanted_trust(value)[0]
    if name in ("tags_all", "tags_any"):
        value = (value,) if isinstance(value, str) else value
        return tuple(normalise_unicode("NFC", one) for one in _texts(name, value))
    if name == "chunk_type" and not isinstance(value, str):
        return _texts(name, value)
    if name == "include_superseded":
        if not isinstance(value, bool):
            raise InvalidQuery(f"the filter {name} must be true or false, not {shown(value)}")
        return value
    if name == "valid_at":
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MAX_SECONDS:
            raise InvalidQuery(f"the filter {name} must be a number of seconds, not {shown(value)}")
        return float(value)
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, date) and name in ("start", "end"):
        return value.isoformat()
    if not isinstance(value, str):
        raise InvalidQuery(f"the filter {name} must be text, not {type(value).__name__}")
    return value


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple | set | frozenset) or not all(
        isinstance(item, str) for item in value
    ):
        raise InvalidQuery(f"the filter {name} must be a list of texts, not {shown(value)}")
    return tuple(sorted(value))
