"""Candidate source of the PostgreSQL backend: term lists for scoring, rows for the displayed parts of a chunk.

One `PostgresSource` serves one search, in about eight independent statements, without a transaction or session state. A
write between two statements is visible to the later one only; chunks deleted or added meanwhile are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rlm_mem.chunk import name_key
from rlm_mem.store.core.arrays import Bools, Floats, Ints, Scores, Slots
from rlm_mem.store.core.encoding import AUTHOR_PREFIX, NO_SEGMENTS, DecodedSegments, decode_many
from rlm_mem.store.core.lookup import (
    MAX_REPLACEMENTS,
    NO_CONVERSATION,
    NO_ROWS,
    ChunkRows,
    CorpusStatistics,
    Filters,
    Held,
    HoldingQuestion,
    Neighbourhood,
    has_surrogate,
)
from rlm_mem.store.core.recent import Recent
from rlm_mem.store.core.selection import (
    NOTHING,
    CorpusLengths,
    Scorer,
    best,
    contained,
    ints,
    scorers,
    top,
    union,
    weighed,
)
from rlm_mem.store.postgres.neighbours import around
from rlm_mem.store.postgres.parts import CONVERSATION_TERMS, PART, lists_of, pairs
from rlm_mem.store.postgres.queries import HIDDEN_FROM, admitted, conditions, is_shown
from rlm_mem.store.postgres.term_lists import PostgresTermPostings, StateCache, TermEntries, TermLists
from rlm_mem.store.postgres.values import Rows, shown, stored

#: At most this many chunks that pass a filter are listed; if more pass, the best chunks are tested instead.
_MAX_LISTED = 10_000
#: Best chunks tested against a filter that many pass: first this multiple of the limit, and at most this many.
_CANDIDATES_FACTOR = 4
_MAX_TRIED = 10_000
#: If very many chunks have the same score, the newest of them are searched among the newest of all chunks, provided
#: that the expected number of chunks to read, times this factor, is below the number with that score.
_READ_COST = 4
#: Term lists are cached between searches up to this many bytes in total.
_MAX_LIST_BYTES = 96_000_000
#: Results of other statements are cached in the same way, up to this many bytes in total and per result, unless the
#: statement has more values than this.
_MAX_RESULT_BYTES, _MAX_RESULT_SIZE, _MAX_VALUES = 8_000_000, 256_000, 2_000
_MAX_NAMESPACES = 1_000

_HEAD = """
SELECT n.next_doc, n.segments, n.length, n.conversations + n.loose,
    (SELECT coalesce(sum(t.chunks), 0)::bigint FROM rlm_mem.totals t WHERE t.ns = %s AND t.status = 0), n.modified,
    CASE WHEN n.modified <> %s THEN ARRAY(SELECT a.text FROM rlm_mem.terms a
        WHERE a.ns = %s AND a.text >= 'author:' AND a.text < 'author;' AND a.df > 0 ORDER BY a.text) END,
    CASE WHEN n.modified <> %s THEN ARRAY(SELECT a.term FROM rlm_mem.terms a
        WHERE a.ns = %s AND a.text >= 'author:' AND a.text < 'author;' AND a.df > 0 ORDER BY a.text) END
FROM rlm_mem.namespaces n WHERE n.ns = %s
"""
_FIGURES = "SELECT text, term, df, segment_df, conversation_df FROM rlm_mem.terms WHERE ns = %s AND"

_SUCCESSORS = """
WITH RECURSIVE chain(id, step) AS (
    SELECT c.superseded_by, 1 FROM rlm_mem.chunks c
    WHERE c.ns = %s AND c.doc = ANY(%s::int4[]) AND c.status = 0 AND c.superseded_by IS NOT NULL
    UNION
    SELECT c.superseded_by, chain.step + 1 FROM chain JOIN rlm_mem.chunks c ON c.ns = %s AND c.id = chain.id
    WHERE chain.step < %s AND c.superseded_by IS NOT NULL
)
SELECT DISTINCT c.doc FROM chain JOIN rlm_mem.chunks c ON c.ns = %s AND c.id = chain.id WHERE c.status = 0
"""

_ROWS = f"""
SELECT c.doc, c.id, c.conversation, c.at, c.type, c.confidence, c.valid_from, c.valid_to, c.superseded_by,
    {HIDDEN_FROM}, b.segments
"""
_OF_DOCS = """
FROM rlm_mem.chunks c LEFT JOIN rlm_mem.bodies b ON b.ns = %s AND b.doc = c.doc
WHERE c.ns = %s AND c.status = 0 AND c.doc = ANY(%s::int4[])
"""
_PASSING = f"""
SELECT c.doc, c.at, c.superseded_by IS NOT NULL, {HIDDEN_FROM} FROM rlm_mem.chunks c WHERE c.ns = %s AND c.status = 0
"""

# For each question, chunks that contain all terms of a group: the newest chunks of its rarest term, filtered by the
# lists of the other terms. Numbers are matched anywhere in the bytes of these lists, so a chunk without the term
# may pass; its segments decide. Rows: terms (kind 0) with their number and count, chunks (1) with their question
# and their rank in it, segments (2) once per chunk.
_HOLDING = """
WITH asked AS MATERIALIZED (
    SELECT g.q, g.n, t.text, t.term, t.df, g.size, row_number() OVER w AS place,
        count(*) OVER (PARTITION BY g.n) AS known
    FROM unnest(%s::int4[], %s::int4[], %s::text[], %s::int4[]) AS g(q, n, text, size)
    JOIN rlm_mem.terms t ON t.ns = %s AND t.text = g.text AND t.df > 0
    WINDOW w AS (PARTITION BY g.n ORDER BY t.df, t.term)
), listed AS MATERIALIZED (
    SELECT r.q, r.n, substring(p.entries FROM i FOR 4) AS raw,
        get_byte(p.entries, i - 1) + (get_byte(p.entries, i) << 8)
        + (get_byte(p.entries, i + 1) << 16) + (get_byte(p.entries, i + 2) << 24) AS doc
    FROM asked r CROSS JOIN LATERAL (
        SELECT q.entries FROM rlm_mem.postings q WHERE q.ns = %s AND q.term = r.term ORDER BY q.first DESC LIMIT %s
    ) p CROSS JOIN LATERAL generate_series(1, length(p.entries), 12) AS i
    WHERE r.n > 0 AND r.place = 1 AND r.known = r.size
), held AS MATERIALIZED (
    SELECT DISTINCT k.q, k.doc FROM listed k WHERE NOT EXISTS (
        SELECT 1 FROM asked o WHERE o.n = k.n AND o.place > 1 AND NOT EXISTS (
            SELECT 1 FROM (SELECT q.entries FROM rlm_mem.postings q WHERE q.ns = %s AND q.term = o.term
                AND q.first <= k.doc ORDER BY q.first DESC LIMIT 1) e WHERE position(k.raw IN e.entries) > 0))
), chosen AS MATERIALIZED (
    SELECT * FROM (
        SELECT h.q, c.doc, c.id, c.content_hash,
            row_number() OVER (PARTITION BY h.q ORDER BY c.at DESC, c.doc DESC) AS place
        FROM held h JOIN rlm_mem.chunks c ON c.ns = %s AND c.doc = h.doc AND c.status = 0 AND c.superseded_by IS NULL
            AND (%s::text IS NULL OR (c.trust <> 'quarantined' AND (c.expires_at IS NULL OR c.expires_at > %s::text)))
    ) ranked WHERE ranked.place <= %s
)
SELECT 0 AS kind, a.text, NULL AS content_hash, NULL::bytea AS segments, a.term, a.df, 0::bigint
    FROM asked a WHERE a.n = 0
UNION ALL
SELECT 1, o.id, o.content_hash, NULL, o.doc, o.q, o.place FROM chosen o
UNION ALL
SELECT 2, NULL, NULL, b.segments, b.doc, 0, 0
    FROM (SELECT DISTINCT x.doc FROM chosen x) d JOIN rlm_mem.bodies b ON b.ns = %s AND b.doc = d.doc
"""
#: How many parts of the list of a group's rarest term are read, and how many chunks the best are chosen from.
_PARTS, _CHOSEN_OF = 4, 64

_LATER = f"""
SELECT c.id, {HIDDEN_FROM} FROM (
    SELECT l.doc, count(*) AS times FROM (
        SELECT get_byte(p.entries, i - 1) + (get_byte(p.entries, i) << 8)
            + (get_byte(p.entries, i + 1) << 16) + (get_byte(p.entries, i + 2) << 24) AS doc
        FROM rlm_mem.terms t CROSS JOIN LATERAL (
            SELECT q.entries FROM rlm_mem.postings q WHERE q.ns = %s AND q.term = t.term ORDER BY q.first DESC LIMIT %s
        ) p CROSS JOIN LATERAL generate_series(1, length(p.entries), 12) AS i
        WHERE t.ns = %s AND t.text = ANY(%s::text[]) AND t.df BETWEEN 1 AND %s
    ) l GROUP BY l.doc
) d JOIN rlm_mem.chunks c ON c.ns = %s AND c.doc = d.doc AND c.status = 0 AND c.superseded_by IS NULL AND c.at > %s
"""

_NAMED = "SELECT term, text FROM rlm_mem.terms WHERE ns = %s AND term = ANY(%s::int4[])"
# The texts of terms as one value, sent to the other namespace unchanged: thousands need not be read one by one.
_TEXTS = """
SELECT array_agg(term ORDER BY term), array_agg(text ORDER BY term)::text
FROM rlm_mem.terms WHERE ns = %s AND term = ANY(%s::int4[])
"""
_NUMBERED = """
SELECT array_agg(given.place), array_agg(t.term)
FROM unnest(%s::text[]) WITH ORDINALITY given(text, place) JOIN rlm_mem.terms t ON t.ns = %s AND t.text = given.text
"""

# All words of short conversations; of long ones only the parts that contain the wanted words.
_WORDS = f"""
SELECT v.conversation, v.length, p.first, p.entries FROM rlm_mem.conversations v LEFT JOIN LATERAL (
    (SELECT w.first, w.entries FROM {CONVERSATION_TERMS.name} w
     WHERE v.length <= %s AND w.ns = %s AND w.conversation = v.conversation)
    UNION ALL
    (SELECT d.first, e.entries FROM (
        SELECT DISTINCT (SELECT q.first FROM {CONVERSATION_TERMS.name} q WHERE q.ns = %s
            AND q.conversation = v.conversation AND q.first <= k.key ORDER BY q.first DESC LIMIT 1) AS first
        FROM unnest(%s::int4[]) AS k(key) WHERE v.length > %s
     ) d CROSS JOIN LATERAL (
        SELECT x.entries FROM {CONVERSATION_TERMS.name} x
        WHERE x.ns = %s AND x.conversation = v.conversation AND x.first = d.first LIMIT 1
     ) e)
) p ON true WHERE v.ns = %s AND v.conversation = ANY(%s::int4[])
"""


_Speakers = tuple[int, dict[int, str]]
"""The change as of which the speakers of a namespace were read, and their names by the numbers of their terms."""
_UNREAD: _Speakers = (-1, {})


class SearchCache:
    """Term lists and rows that earlier searches of a backend read, in all namespaces; thread-safe.

    Not for use inside a transaction, which sees writes not yet counted as changes.
    """

    def __init__(self) -> None:
        self.lists = StateCache[TermEntries](_MAX_LIST_BYTES)
        self._results = StateCache[list[tuple[Any, ...]]](_MAX_RESULT_BYTES)
        self.speakers: Recent[Hashable, _Speakers] = Recent(_MAX_NAMESPACES)

    def cached_rows(self, rows: Rows, owner: Hashable, state: Hashable) -> Rows:
        """Return a caching version of `rows` for statements on one namespace in this state.

        The rows of a statement must depend on nothing but the namespace and the statement's values.
        """

        def asked(statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
            if sum(len(value) for value in values if isinstance(value, list)) > _MAX_VALUES:
                return rows(statement, values)
            key = owner, statement, repr(values)
            found = self._results.get(key, state)
            if found is not None:
                return found
            found = rows(statement, values)
            texts = (len(value) for row in found for value in row if isinstance(value, bytes | str))
            size = len(statement) + len(key[2]) + 100 * len(found) + sum(texts)
            if size <= _MAX_RESULT_SIZE:
                self._results.put(key, state, found, size)
            return found

        return asked


@dataclass(frozen=True, slots=True)
class _Head:
    """Figures of the namespace at the beginning of a search, and its speakers by the numbers of their terms."""

    modified: int
    authors: dict[int, str]
    size: int
    segments: int
    length: int
    conversations: int
    chunks: int

    @property
    def state(self) -> tuple[int, ...]:
        """A value that differs after every write."""
        return self.modified, self.size, self.segments, self.length


class PostgresSource:
    """`CandidateSource` over the tables of one namespace; the protocol documents each method.

    Args:
        rows: runs one statement and returns its rows.
        ns: key of the namespace.
        cache: kept by the backend between searches; None: nothing is cached.
        owner: the key of the namespace in the cache.
    """

    def __init__(self, rows: Rows, ns: int, cache: SearchCache | None = None, owner: Hashable = None) -> None:
        self._rows = rows
        self._ns = ns
        self._cache = cache
        self._owner = owner
        self._known_head: _Head | None = None
        self._known_lists: TermLists | None = None
        self._numbers: dict[str, int] = {}
        self._figures: dict[int, tuple[int, int, int]] = {}
        self._masks: dict[Filters, Bools | None] = {}
        self._not_superseded: set[int] = set()  # docs known not to be superseded

    # -- terms and statistics --------------------------------------------------------------------------------------

    def term_ids(self, terms: Sequence[str]) -> Ints:
        self._load_terms(terms)
        return np.fromiter((self._numbers.get(term, -1) for term in terms), np.int64, len(terms))

    def renumbered(self, terms: Ints, other: Self) -> Ints:
        # Not by a join: the other namespace may be on another server, or on another worker of a cluster.
        ((ids, texts),) = self._rows(_TEXTS, (self._ns, terms.tolist()))
        ((places, numbers),) = other._rows(_NUMBERED, (texts, other._ns))
        found = {ids[place - 1]: number for place, number in zip(places or (), numbers or (), strict=True)}
        return ints(found.get(number, -1) for number in terms.tolist())

    def term_counts(self, terms: Sequence[str]) -> dict[str, int]:
        self._load_terms(terms)
        counts = {term: self._figures[self._numbers[term]][0] for term in terms if self._numbers[term] >= 0}
        return {term: df for term, df in counts.items() if df}

    def authors(self) -> Collection[str]:
        return frozenset(self._head.authors.values())

    def author_names(self, ids: Ints) -> dict[int, str]:
        wanted = ids.tolist()
        names = self._head.authors
        missing = [number for number in wanted if number not in names]
        if missing:  # a speaker added after the search began
            found = self._rows(_NAMED, (self._ns, missing))
            names = names | {number: _author(text) for number, text in found}
        return {number: names[number] for number in wanted if number in names}

    def statistics(self, terms: Ints) -> CorpusStatistics:
        head = self._head
        self._load_figures(terms)
        figures = [self._figures.get(number, (0, 0, 0)) for number in terms.tolist()]
        return CorpusStatistics(
            chunks=head.chunks,
            segments=head.segments,
            conversations=head.conversations,
            total_length=head.length,
            chunk_df=ints(df for df, _, _ in figures),
            segment_df=ints(df for _, df, _ in figures),
            conversation_df=ints(df for _, _, df in figures),
        )

    def conversation_terms(self, conversations: Ints, terms: Ints) -> tuple[Ints, Ints]:
        tf = np.zeros((len(conversations), len(terms)), np.int64)
        wanted = [term for term in terms.tolist() if term >= 0]
        if not len(conversations):
            return tf, NOTHING
        ns, short = self._ns, PART * (len(wanted) + 1)
        found = self._rows(_WORDS, (short, ns, ns, wanted, short, ns, ns, conversations.tolist()))
        lengths = {row[0]: row[1] for row in found}
        lists = lists_of([(row[0], row[2], row[3]) for row in found if row[3] is not None])
        asked = pairs(np.repeat(conversations, len(terms)), np.tile(np.maximum(terms, 0), len(conversations)))
        if len(lists.pair):
            place = np.minimum(np.searchsorted(lists.pair, asked), len(lists.pair) - 1)
            frequency = np.where(lists.pair[place] == asked, lists.figures[place, 0], 0)
            tf = frequency.reshape(tf.shape).astype(np.int64)
        return tf, ints(lengths.get(number, 0) for number in conversations.tolist())

    # -- choosing chunks -------------------------------------------------------------------------------------------

    def best(self, terms: Ints, weights: Floats, limit: int, filters: Filters) -> tuple[Ints, Floats]:
        self._load_figures(terms)
        lists = [self._list(number) for number in terms.tolist()]
        collection = CorpusLengths(self._lists.length, self._head.chunks, self._head.length)
        order = scorers(collection, lists, weights)
        if not order or limit < 1:
            return NOTHING, np.zeros(0)
        self._lists.expect([scorer.postings for scorer in order])
        found = self._best_passing(collection, order, limit, filters, self._small_mask(filters))
        if found is None:
            found = self._best_passing(collection, order, limit, filters, self._mask(filters))
        return found or (NOTHING, np.zeros(0))

    def _best_passing(
        self,
        collection: CorpusLengths,
        order: list[Scorer[PostgresTermPostings]],
        limit: int,
        filters: Filters,
        mask: Bools | None,
    ) -> tuple[Ints, Floats] | None:
        """Return the best chunks that pass, among more candidates than needed; None if too few pass to be sure.

        Args:
            mask: of the documents that pass or are hidden; None: look up which candidates pass.
        """
        sql, values = conditions(self._ns, filters) if mask is None else ("", ())
        wanted = limit * _CANDIDATES_FACTOR if sql else limit
        while mask is not None or wanted <= _MAX_TRIED:
            docs, scores = best(collection, order, wanted, admitted=mask)
            keep = top(scores, wanted)
            found = self._ordered(docs[keep], scores[keep], limit, filters, sql, values)
            passing = len(found[0])
            if passing == limit or len(keep) < wanted:
                return found
            # 1.5 times the number that should suffice if lower-ranked chunks pass at the same rate.
            enough = len(keep) * limit * 3 // (2 * passing) if passing else _MAX_TRIED + 1
            wanted = max(2 * wanted, enough)
        return None

    def _ordered(
        self,
        docs: Slots,
        scores: Scores,
        limit: int,
        filters: Filters,
        sql: str = "",
        values: Sequence[object] = (),
    ) -> tuple[Ints, Floats]:
        """Return the best of these documents that exist and pass, best first, ties newest first."""
        least = scores == scores.min() if len(scores) else np.zeros(0, np.bool_)
        found = None
        alike = int(np.count_nonzero(least))
        if alike and alike * alike > _READ_COST * limit * self._head.chunks:
            found = self._newest_passing(docs[least], limit, filters, sql, values)
            if found is not None:
                newest = np.fromiter((row[0] for row in found), docs.dtype, len(found))
                chosen = ~least | contained(docs, newest)
                docs, scores, least = docs[chosen], scores[chosen], least[chosen]
                found += self._rows_of(docs[~least], filters, sql, values)
        if found is None:
            found = self._rows_of(docs, filters, sql, values)
        at: dict[int, float] = {doc: when for doc, when, _ in found}
        self._not_superseded.update(doc for doc, _, superseded in found if not superseded)
        exists = np.fromiter((doc in at for doc in docs.tolist()), np.bool_, len(docs))
        existing, scores = docs[exists].astype(np.int64), scores[exists]
        when = np.fromiter((at[doc] for doc in existing.tolist()), np.float64, len(existing))
        order = np.lexsort((-existing, -when, -scores))[:limit]
        return existing[order], scores[order].astype(np.float64)

    def _rows_of(
        self, docs: Slots, filters: Filters, sql: str, values: Sequence[object]
    ) -> list[tuple[int, float, bool]]:
        """Return the documents that exist and pass, each with its time and whether it is superseded."""
        found = self._rows(f"{_PASSING} AND c.doc = ANY(%s::int4[]){sql}", (self._ns, docs.tolist(), *values))
        return [tuple(row) for *row, hidden_from in found if is_shown(hidden_from, filters)]

    def _newest_passing(
        self, docs: Slots, limit: int, filters: Filters, sql: str, values: Sequence[object]
    ) -> list[tuple[int, float, bool]] | None:
        """Return the newest of many documents that pass; None if too few of them are among the newest chunks."""
        rows = self._rows(
            f"{_PASSING}{sql} ORDER BY c.at DESC, c.doc DESC LIMIT %s",
            (self._ns, *values, 2 * limit * max(self._head.chunks, len(docs)) // len(docs)),
        )
        among = contained(np.fromiter((row[0] for row in rows), docs.dtype, len(rows)), docs)
        found = [tuple(row) for (*row, hidden_from), wanted in zip(rows, among.tolist(), strict=True)
                 if wanted and is_shown(hidden_from, filters)][:limit]  # fmt: skip
        return found if len(found) == limit else None

    def holding_each(
        self, questions: Sequence[HoldingQuestion], limit: int, shown_at: str | None = None
    ) -> list[list[Held]]:
        sets = [list(dict.fromkeys(frozenset(group) for group in groups if group)) for groups, _ in questions]
        words = {term for groups, (_, weights) in zip(sets, questions, strict=True) if groups
                 for term in (*weights, *(term for group in groups for term in group))}  # fmt: skip
        numbered = [(q, group) for q, groups in enumerate(sets) for group in groups]
        # Group 0 contains all words: only their numbers are needed, not their chunks.
        asked = [(q, n, stored(term), len(group))
                 for n, (q, group) in enumerate([(0, frozenset(words)), *numbered])
                 for term in sorted(group) if not has_surrogate(term)]  # fmt: skip
        if not asked:
            return [[] for _ in questions]
        ns = self._ns
        values = (*map(list, zip(*asked, strict=True)), ns, ns, _PARTS, ns, ns, shown_at, shown_at,
                  max(limit, _CHOSEN_OF), ns)  # fmt: skip
        numbers: dict[str, int] = {}
        counts: dict[str, int] = {}
        chunks: list[list[tuple[int, int, str, str]]] = [[] for _ in questions]
        bodies: dict[int, bytes] = {}
        for kind, text, digest, segments, number, figure, place in self._rows(_HOLDING, values):
            if kind == 0:
                numbers[shown(text)], counts[shown(text)] = number, figure
            elif kind == 1:
                chunks[figure].append((place, number, text, digest))
            else:
                bodies[number] = segments
        terms_of = _asked_terms(bodies, sorted(numbers.values()))
        answers: list[list[Held]] = []
        for (_, weights), groups, found in zip(questions, sets, chunks, strict=True):
            parts = weighed(weights, counts)
            wanted = [{numbers[term] for term in group} for group in groups if numbers.keys() >= group]
            scored: list[tuple[float, Held]] = []
            for _, doc, chunk_id, digest in sorted(found):
                terms = terms_of.get(doc, frozenset())
                if any(group <= terms for group in wanted):
                    matched = frozenset(term for term in parts if numbers[term] in terms)
                    score = sum(parts[term] for term in sorted(matched))
                    scored.append((score, Held(chunk_id, digest, matched)))
            scored.sort(key=lambda one: -one[0])  # stable: equal scores stay newest first
            answers.append([matched for _, matched in scored[:limit]])
        return answers

    def later_with(
        self, terms: Collection[str], since: float, most: int, limit: int, filters: Filters
    ) -> list[str]:
        known = [stored(term) for term in terms if not has_surrogate(term)]
        if not known:
            return []
        more, given = conditions(self._ns, filters)
        found = self._rows(  # at most `most` for each term
            f"{_LATER}{more} ORDER BY d.times DESC, c.at DESC, c.doc DESC",
            (self._ns, _PARTS, self._ns, known, most, self._ns, since, *given),
        )
        return [chunk_id for chunk_id, hidden_from in found if is_shown(hidden_from, filters)][:limit]

    def in_period(self, first: float, last: float, limit: int, filters: Filters) -> Ints:
        return self._listed(" AND c.at >= %s AND c.at < %s", (first, last), filters, "c.at, c.doc", limit)

    def newest(self, limit: int, filters: Filters) -> Ints:
        return self._listed("", (), filters, "c.at DESC, c.doc DESC", limit)

    def successors(self, docs: Ints) -> Ints:
        open_ = [doc for doc in docs.tolist() if doc not in self._not_superseded]
        if not open_:
            return NOTHING
        ns = self._ns
        return ints(row[0] for row in self._rows(_SUCCESSORS, (ns, open_, ns, MAX_REPLACEMENTS, ns)))

    def around(self, docs: Ints, alone: Ints, near: int, reach: int) -> Neighbourhood:
        head = self._head
        return around(self._rows, self._ns, docs, alone, near, reach, head.segments / max(head.chunks, 1))

    def rows(self, docs: Ints, filters: Filters) -> tuple[ChunkRows, DecodedSegments]:
        sql, values = conditions(self._ns, filters)
        rows = self._rows(
            f"{_ROWS}, (true{sql}) IS TRUE{_OF_DOCS}", (*values, self._ns, self._ns, docs.tolist())
        )
        found = {row[0]: row for row in rows}
        inorder = [found[doc] for doc in docs.tolist() if doc in found]
        if not inorder:
            return NO_ROWS, decode_many([])
        doc, chunk_id, conversation, *columns, hidden_from, blobs, passes = zip(*inorder, strict=True)
        numbers = [NO_CONVERSATION if number is None else number for number in conversation]
        spoken = doc if filters.speaker is None else self._docs_of_speaker(filters.speaker).tolist()
        accepted = contained(np.array(doc), np.array(spoken)) & np.array(passes)
        accepted &= [is_shown(time, filters) for time in hidden_from]
        columns.append(accepted.tolist())
        return (
            ChunkRows(doc, chunk_id, numbers, *columns),
            decode_many([blob or NO_SEGMENTS for blob in blobs]),
        )

    # -- inside ----------------------------------------------------------------------------------------------------

    @property
    def _head(self) -> _Head:
        if self._known_head is None:
            ns, cache = self._ns, self._cache
            known, authors = (None if cache is None else cache.speakers.get(self._owner)) or _UNREAD
            head = _Head(-1, {}, 0, 0, 0, 0, 0)
            for *figures, modified, names, numbers in self._rows(_HEAD, (ns, known, ns, known, ns, ns)):
                if names is not None:
                    authors = {n: _author(name) for n, name in zip(numbers, names, strict=True)}
                    if cache is not None:
                        cache.speakers.put(self._owner, (modified, authors))
                head = _Head(modified, authors, *figures)
            if cache is not None:
                self._rows = cache.cached_rows(self._rows, self._owner, head.state)
            self._known_head = head
        return self._known_head

    @property
    def _lists(self) -> TermLists:
        if self._known_lists is None:
            head, kept = self._head, None if self._cache is None else self._cache.lists
            self._known_lists = TermLists(self._rows, self._ns, head.size, kept, self._owner, head.state)
        return self._known_lists

    def _list(self, term: int) -> PostgresTermPostings:
        return self._lists.of(term, self._figures.get(term, (0, 0, 0))[0])

    def _load_terms(self, terms: Iterable[str]) -> None:
        """Load numbers and figures of these terms."""
        missing = list(dict.fromkeys(term for term in terms if term not in self._numbers))
        if not missing:
            return
        self._numbers.update(dict.fromkeys(missing, -1))
        storable = [stored(term) for term in missing if not has_surrogate(term)]
        for text, number, *figures in self._rows(f"{_FIGURES} text = ANY(%s::text[])", (self._ns, storable)):
            self._numbers[shown(text)] = number
            self._figures[number] = figures[0], figures[1], figures[2]

    def _load_figures(self, terms: Ints) -> None:
        missing = [number for number in terms.tolist() if number >= 0 and number not in self._figures]
        if missing:
            for _, number, *figures in self._rows(f"{_FIGURES} term = ANY(%s::int4[])", (self._ns, missing)):
                self._figures[number] = figures[0], figures[1], figures[2]

    def _docs_of_speaker(self, speaker: str) -> Ints:
        """Return the chunks with words of a speaker of this name."""
        wanted = name_key(speaker)
        numbers = [n for n, name in self._head.authors.items() if name_key(name) == wanted]
        self._load_figures(ints(numbers))
        docs = NOTHING
        for number in numbers:
            docs = union(docs, self._list(number).whole()[0].astype(np.int64))
        return docs

    def _small_mask(self, filters: Filters) -> Bools | None:
        """Return the mask of documents that pass; without a speaker, None if unrestricted or if very many may pass."""
        if filters not in self._masks:
            sql, values = conditions(self._ns, filters)  # hidden chunks are left out later
            mask = None
            if sql and (filters.speaker is not None or _is_indexed(filters)):
                docs = self._docs(sql, values, _MAX_LISTED + 1)
                mask = None if len(docs) > _MAX_LISTED else self._masked(docs)
            if filters.speaker is not None:
                if sql and mask is None:
                    mask = self._masked(self._docs(sql, values, None))
                by_speaker = self._masked(self._docs_of_speaker(filters.speaker))
                mask = by_speaker if mask is None else mask & by_speaker
            self._masks[filters] = mask
        return self._masks[filters]

    def _mask(self, filters: Filters) -> Bools:
        """Return the mask of the documents that pass, however many."""
        mask = self._masked(self._docs(*admitted(self._ns, filters), None))
        self._masks[filters] = mask
        return mask

    def _masked(self, docs: Ints) -> Bools:
        mask = np.zeros(self._head.size, np.bool_)
        mask[docs[docs < self._head.size]] = True
        return mask

    def _docs(self, sql: str, values: Sequence[object], limit: int | None) -> Ints:
        """Return documents of active chunks that meet a condition, unordered."""
        found = self._rows(
            "SELECT array_send(array_agg(d.doc)) FROM (SELECT c.doc FROM rlm_mem.chunks c"
            f" WHERE c.ns = %s AND c.status = 0{sql} LIMIT %s) d",
            (self._ns, *values, limit),
        )
        return _of_array(found[0][0])

    def _listed(self, sql: str, values: Sequence[object], filters: Filters, order: str, limit: int) -> Ints:
        more, more_values = admitted(self._ns, filters)
        if filters.speaker is not None:
            more += " AND c.doc = ANY(%s::int4[])"
            more_values = (*more_values, self._docs_of_speaker(filters.speaker).tolist())
        found = self._rows(
            f"SELECT c.doc FROM rlm_mem.chunks c WHERE c.ns = %s AND c.status = 0{sql}{more}"
            f" ORDER BY {order} LIMIT %s",
            (self._ns, *values, *more_values, limit),
        )
        return ints(row[0] for row in found)


def _is_indexed(filters: Filters) -> bool:
    """Return whether an index can list the chunks that pass."""
    restrictions = filters.tags_all, filters.tags_any, filters.conversation_id, filters.start, filters.end
    return any(value not in ((), None) for value in restrictions)


def _author(text: str) -> str:
    return shown(text).removeprefix(AUTHOR_PREFIX)


def _of_array(sent: bytes | None) -> Ints:
    """Decode an `int4[]` in PostgreSQL's binary form: a header of five words, then each length and number."""
    if sent is None:
        return NOTHING
    return np.frombuffer(sent, ">i4")[6::2].astype(np.int64)


def _asked_terms(bodies: Mapping[int, bytes], numbers: Sequence[int]) -> dict[int, Set[int]]:
    """Return which of these terms each chunk contains, given the segments of the chunks."""
    if not bodies:
        return {}
    decoded = decode_many(list(bodies.values()))
    at = np.flatnonzero(np.isin(decoded.terms, numbers))
    terms = decoded.terms[at].tolist()
    first = np.searchsorted(at, decoded.term_start[decoded.chunk_start]).tolist()
    return {doc: set(terms[first[place] : first[place + 1]]) for place, doc in enumerate(bodies)}
