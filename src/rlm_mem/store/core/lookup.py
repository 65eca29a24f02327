"""The protocol between search and a backend's index (`CandidateSource`), implemented over local postings or SQL.

Every call is bounded by its arguments: none scans the whole store or reads a chunk file. Documents are numbers
assigned by the index (`doc`), terms are numbers of its dictionary; both are only meaningful within one backend. The
ranker and the logic that gathers candidates are shared by every backend, so two backends with the same answers rank
alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from msgspec import Struct

from rlm_mem.record import FrozenRecord

if TYPE_CHECKING:
    from rlm_mem.store.core.arrays import Bools, Floats, Ints
    from rlm_mem.store.core.encoding import DecodedSegments


#: BM25 parameters of both stages: term saturation and length correction (tuned on dialogue memories).
BM25_K1 = 0.9
BM25_B = 0.4

#: Number of successive replacements that `CandidateSource.successors` follows at most.
MAX_REPLACEMENTS = 5

#: The number of the conversation of a chunk that belongs to none.
NO_CONVERSATION = -1

#: Number of terms that decide the order in which `CandidateSource.holding_each` returns chunks.
WEIGHED = 4


class Filters(FrozenRecord, frozen=True):
    """Restrictions on the chunks that a search may return. A field left at its default does not restrict.

    Attributes:
        tags_all: every one of these tags must be on the chunk.
        tags_any: at least one of these tags must be on the chunk.
        chunk_type: the chunk's type, or several of which one must match.
        conversation_id: the chunk's conversation.
        start: earliest time (`YYYY-MM-DD` or ISO 8601), compared with when the chunk happened (else was created).
        end: latest time, a bare date including its whole day.
        speaker: an author of a segment of the chunk (of the segment, if segments are ranked), compared by ``name_key``.
        include_superseded: do not rank superseded chunks below their replacements.
        valid_at: only chunks that held at this time (epoch seconds; set by `as_of` of `search`).
        origin: where the chunk came from (person, agent, tool, import, web), or several of which one must match.
        trust: the lowest level of trust (untrusted, ordinary, trusted).
        shown_at: exclude chunks that are quarantined or expired at this time (as stored; set by search).
    """

    tags_all: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    chunk_type: str | tuple[str, ...] | None = None
    conversation_id: str | None = None
    start: str | date | None = None
    end: str | date | None = None
    speaker: str | None = None
    include_superseded: bool = False
    valid_at: float | None = None
    origin: str | tuple[str, ...] | None = None
    trust: str | None = None
    shown_at: str | None = None


class CorpusStatistics(Struct, frozen=True):
    """Words of one namespace for BM25 at three levels; arrays follow the order of the requested terms.

    A chunk without a conversation counts as a conversation of its own.
    """

    chunks: int
    segments: int
    conversations: int
    total_length: int
    chunk_df: Ints
    segment_df: Ints
    conversation_df: Ints


class Neighbourhood(Struct, frozen=True):
    """Chunks around the given ones, in conversation order.

    Attributes:
        doc: documents, grouped by conversation and in order within it.
        run: number of the contiguous part of a conversation that each is in; ascending.
        near: whether the chunk is a given one or close enough to be a result itself.
        segments_before: segments of the same conversation before the chunk (`FAR` if there are many).
    """

    doc: Ints
    run: Ints
    near: Bools
    segments_before: Ints


#: `segments_before` of a chunk that is not among the first few of its conversation.
FAR = 1_000_000


class ChunkRows(Struct, frozen=True):
    """Columns of some chunks for ranking, from the index alone: one list per column.

    `conversation` is -1 for none; `at` is in epoch seconds; `accepted` says whether the chunk passes the filters; the
    others are as in the chunk.
    """

    doc: Sequence[int]
    chunk_id: Sequence[str]
    conversation: Sequence[int]
    at: Sequence[float]
    type: Sequence[str]
    confidence: Sequence[float]
    valid_from: Sequence[str | None]
    valid_to: Sequence[str | None]
    superseded_by: Sequence[str | None]
    accepted: Sequence[bool]


NO_ROWS = ChunkRows(*[()] * 10)
"""The columns of no chunks."""


class Held(Struct, frozen=True):
    """A chunk that contains some terms.

    Attributes:
        content_hash: hash of its present text.
        terms: the weighed terms that it contains.
    """

    chunk_id: str
    content_hash: str
    terms: frozenset[str]


HoldingQuestion: TypeAlias = tuple[Sequence[Collection[str]], Mapping[str, float]]
"""A question of `CandidateSource.holding_each`: groups of terms, and weights of terms."""


class CandidateSource(Protocol):
    """The index of one namespace for search, as of one moment; each search needs a new one."""

    def term_ids(self, terms: Sequence[str]) -> Ints:
        """Return the number of each term; -1 for a term that is not in the dictionary."""

    def renumbered(self, terms: Ints, other: Self) -> Ints:
        """Return the numbers of these terms in `other`, another namespace of the same backend.

        -1 for a term that it lacks. Takes one statement on each, or none if all namespaces share a dictionary.
        """

    def term_counts(self, terms: Sequence[str]) -> dict[str, int]:
        """Return for each of `terms` that occurs the number of chunks with it. Cheap for hundreds of terms."""

    def authors(self) -> Collection[str]:
        """Return the names of the authors in this namespace."""

    def statistics(self, terms: Ints) -> CorpusStatistics:
        """Return exact figures for these terms (term numbers, -1 allowed)."""

    def best(self, terms: Ints, weights: Floats, limit: int, filters: Filters) -> tuple[Ints, Floats]:
        """Return the `limit` documents with the highest weighted BM25 over whole chunks, best first, and the scores.

        Exact: the same as scoring every chunk that passes `filters`. Equal scores are ordered newest first. Documents
        that contain none of the terms are not returned.
        """

    def holding_each(
        self, questions: Sequence[HoldingQuestion], limit: int, shown_at: str | None = None
    ) -> list[list[Held]]:
        """Return at most `limit` chunks for each of some dozens of questions, in their order; takes one statement.

        They are not superseded and contain every term of one of the question's groups. They are ordered by the sum
        over their terms among its weights, highest first, then newest first: a term adds its weight divided by
        `1 + log(1 + chunks that contain it)`, and only the `WEIGHED` rarest count. A term of weight 0 adds nothing,
        but the result shows whether a chunk contains it. If the rarest term of a group is in hundreds of chunks, only
        the newest hundreds need be examined. Chunks in quarantine, or expired at `shown_at`, are left out, unless that
        is None.
        """

    def later_with(
        self, terms: Collection[str], since: float, most: int, limit: int, filters: Filters
    ) -> list[str]:
        """Ids of at most `limit` later chunks that contain a rare one of `terms`, which at most `most` chunks contain.

        They happened after `since` (epoch seconds), are not superseded and pass `filters`, whose `speaker` does not
        count. Those with most of the rare terms come first, then the newest. Takes one statement.
        """

    def in_period(self, first: float, last: float, limit: int, filters: Filters) -> Ints:
        """Return up to `limit` documents with `first <= at < last` (epoch seconds), in order of time."""

    def newest(self, limit: int, filters: Filters) -> Ints:
        """Return the `limit` newest documents that pass `filters`, newest first."""

    def successors(self, docs: Ints) -> Ints:
        """Return the chunks that replaced any of `docs`, and their replacements in turn (a few steps)."""

    def around(self, docs: Ints, alone: Ints, near: int, reach: int) -> Neighbourhood:
        """Return documents with enough neighbours on each side to cover `near` and `reach` segments (near <= reach).

        Those in `alone` are returned without neighbours, but may be neighbours of others.
        """

    def rows(self, docs: Ints, filters: Filters) -> tuple[ChunkRows, DecodedSegments]:
        """Return rows and decoded segments of the documents that exist, in the order of `docs`.

        Those that do not pass `filters` are returned, too: see `ChunkRows.accepted`.
        """

    def author_names(self, ids: Ints) -> dict[int, str]:
        """Return the names for author numbers of decoded segments."""

    def conversation_terms(self, conversations: Ints, terms: Ints) -> tuple[Ints, Ints]:
        """Return term frequencies `[conversation, term]` and lengths in terms of whole conversations (numbers >= 0)."""


class JoinedSource:
    """Term counts and authors of two namespaces' indexes, for analysing a question.

    Document and term numbers are only valid in one index, so each is asked for its own candidates (``search.joined``).
    """

    def __init__(self, sources: Sequence[CandidateSource]) -> None:
        self.sources = sources

    def term_counts(self, terms: Sequence[str]) -> dict[str, int]:
        """Return the number of chunks in both namespaces that contain each of ``terms``."""
        counts: Counter[str] = Counter()
        for source in self.sources:
            counts.update(source.term_counts(terms))
        return dict(counts)

    def authors(self) -> frozenset[str]:
        """Return the names of the authors in either namespace."""
        return frozenset(name for source in self.sources for name in source.authors())


def sources_of(source: CandidateSource | JoinedSource) -> Sequence[CandidateSource]:
    """Return the source of each namespace."""
    return source.sources if isinstance(source, JoinedSource) else (source,)


def has_surrogate(text: str) -> bool:
    """Return whether a text contains a lone surrogate, which no database accepts and no stored text has."""
    return any("\ud800" <= char <= "\udfff" for char in text)
