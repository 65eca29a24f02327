"""The term index in a write transaction: the dictionary, the postings and all figures that searches read.

Added and removed chunks are collected as encoded segments and applied to the sorted lists in bulk: one statement
reads the parts of lists that change, another writes them. The namespace is locked, so no other process changes
these rows meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from rlm_mem.store.core.arrays import Ints
from rlm_mem.store.core.encoding import NO_SEGMENTS
from rlm_mem.store.core.preencoding import LocalTerms
from rlm_mem.store.core.selection import distinct
from rlm_mem.store.postgres.changes import IndexDifference, Indexed, added, changes_of, replaced, summed
from rlm_mem.store.postgres.parts import (
    CONVERSATION_TERMS,
    KEY,
    POSTINGS,
    Lists,
    PartTable,
    lists_of,
    pairs,
    regrouped,
)
from rlm_mem.store.postgres.values import Statement, integers, shown, stored

if TYPE_CHECKING:
    from rlm_mem.store.postgres.schema import Head


Question = tuple[str, Sequence[object], Callable[[list[tuple[Any, ...]]], None]]
"""A statement, its values, and the function that receives its rows."""

#: Collected segments should be written beyond this many bytes, so that memory stays bounded in a batch of any size.
_MAX_BYTES = 8_000_000
#: Maximum number of term numbers cached during one transaction.
_MAX_CACHED_TERMS = 500_000

_KNOWN = "SELECT text, term FROM rlm_mem.terms WHERE ns = %s AND text = ANY(%s::text[])"
_COUNTED = (
    "SELECT conversation, chunks FROM rlm_mem.conversations WHERE ns = %s AND conversation = ANY(%s::int4[])"
)


class TermIndex:
    """Updates the dictionary, the postings and their figures with the chunks of one namespace.

    Args:
        connection: inside the write transaction.
        head: the counters of the namespace, as read with the lock; changed here, written by the transaction.
    """

    def __init__(self, connection: psycopg.Connection[Any], head: Head) -> None:
        self._connection = connection
        self._ns = head.ns
        self._head = head
        self._numbers: dict[str, int] = {}
        self._new_terms: dict[str, int] = {}
        self._unknown: set[str] = set()
        self._before: dict[int, Indexed | None] = {}
        self._after: dict[int, Indexed | None] = {}
        self._bytes = 0
        self._edge = head.next_doc, head.next_term, head.next_conversation
        """Documents, terms and conversations with these or higher numbers are in no list yet."""
        self._changes: IndexDifference | None = None

    # -- chunks added and removed ----------------------------------------------------------------------------------

    def add(self, doc: int, conversation: int | None, encoded: LocalTerms) -> tuple[bytes, int, int]:
        """Index an active chunk; return the blob of its segments, its length in terms and the number of segments."""
        self._look_up(encoded.terms)
        blob = encoded.numbered(self._numbers.__getitem__)
        self._note(doc, None, (doc, conversation, blob))
        return blob, *encoded.figures()

    def expect(self, texts: Iterable[str]) -> Question:
        """Return the query for the numbers of those terms that are in the dictionary."""
        missing = {text for text in texts if text not in self._numbers and text not in self._unknown}

        def take(found: list[tuple[Any, ...]]) -> None:
            known = {shown(text): number for text, number in found}
            self._numbers.update(known)
            self._unknown.update(missing - known.keys())

        return _KNOWN, (self._ns, [stored(text) for text in missing]), take

    def add_blob(self, doc: int, conversation: int | None, blob: bytes) -> None:
        """Index a chunk from its encoded segments: a restored one, or one in a new conversation."""
        self._note(doc, None, (doc, conversation, blob or NO_SEGMENTS))

    def remove_blob(self, doc: int, conversation: int | None, blob: bytes) -> None:
        """Remove a chunk that is archived or erased, or whose content or conversation changes."""
        self._note(doc, (doc, conversation, blob or NO_SEGMENTS), None)

    def _note(self, doc: int, before: Indexed | None, after: Indexed | None) -> None:
        # If one chunk changes several times, only its first former state is in the tables.
        self._before.setdefault(doc, before)
        self._after[doc] = after
        self._bytes += sum(len(indexed[2]) for indexed in (before, after) if indexed is not None)

    @property
    def is_full(self) -> bool:
        """Whether so much is collected that it should be written."""
        return self._bytes > _MAX_BYTES

    # -- the dictionary --------------------------------------------------------------------------------------------

    def _look_up(self, wanted: Sequence[str]) -> None:
        """Look up the numbers of these terms; new ones are numbered in the given order."""
        if len(self._numbers) > _MAX_CACHED_TERMS:
            self._numbers = dict(self._new_terms)
        missing = [text for text in wanted if text not in self._numbers]
        if not missing:
            return
        asked = [stored(text) for text in missing if text not in self._unknown]
        if asked:
            with self._connection.cursor(binary=True) as cursor:
                found = cursor.execute(_KNOWN, (self._ns, asked)).fetchall()
            self._numbers.update((shown(text), number) for text, number in found)
        for text in missing:
            if text not in self._numbers:
                self._unknown.discard(text)
                self._numbers[text] = self._new_terms[text] = self._head.next_term
                self._head.next_term += 1

    # -- writing ---------------------------------------------------------------------------------------------------

    def begin_flush(self) -> list[Statement]:
        """Return the statements whose rows `flush` needs; none if nothing is collected."""
        before, after = self._before, self._after
        removed = [old for doc, old in before.items() if old is not None and old != after[doc]]
        inserted = [new for doc, new in after.items() if new is not None and new != before[doc]]
        self._before, self._after, self._bytes = {}, {}, 0
        if not (removed or inserted or self._new_terms):
            return []
        changes = self._changes = changes_of(removed, inserted)
        return [self._affected_parts(changes), (_COUNTED, (self._ns, sorted(changes.conversations)))]

    def flush(self, answers: Sequence[list[tuple[Any, ...]]]) -> list[Statement]:
        """Return the statement that writes everything collected except the head; none if nothing is collected.

        Args:
            answers: the rows of each statement of `begin_flush`.
        """
        changes, self._changes = self._changes, None
        if changes is None:
            return []
        parts, chunk_counts = answers
        self._add_figures(changes, chunk_counts)
        postings = lists_of([row[1:] for row in parts if not row[0]])
        words = lists_of([row[1:] for row in parts if row[0]])
        pair, figures, gains = summed(words, changes)
        statements = [
            *self._parts(POSTINGS, *regrouped(POSTINGS, postings, *replaced(postings, changes))),
            *self._parts(CONVERSATION_TERMS, *regrouped(CONVERSATION_TERMS, words, pair, figures)),
            *self._terms(changes, gains),
            *self._conversations(changes),
        ]
        head = self._head
        self._edge, self._new_terms = (head.next_doc, head.next_term, head.next_conversation), {}
        return _combined(statements)

    def _add_figures(self, changes: IndexDifference, chunk_counts: Sequence[tuple[int, int]]) -> None:
        """Add changes to the figures of the head, given the former number of chunks of each conversation."""
        head = self._head
        head.segments += changes.segments
        head.length += changes.length
        head.loose += changes.loose
        for number, chunks in chunk_counts:
            more, _ = changes.conversations[number]
            head.conversations += (chunks + more > 0) - (chunks > 0)

    def _conversations(self, changes: IndexDifference) -> list[Statement]:
        """Return the statement that writes figures of conversations; none if nothing changes."""
        if not changes.conversations:
            return []
        rows = np.array([(number, *figures) for number, figures in changes.conversations.items()], np.int64)
        return [
            (
                "UPDATE rlm_mem.conversations v SET chunks = v.chunks + d.chunks, length = v.length + d.length"
                " FROM unnest(%s::int4[], %s::int4[], %s::int4[]) AS d(conversation, chunks, length)"
                " WHERE v.ns = %s AND v.conversation = d.conversation",
                (*map(integers, rows.T), self._ns),
            )
        ]

    def _affected_parts(self, changes: IndexDifference) -> Statement:
        doc, term, conversation = self._edge
        every = np.concatenate([changes.posting, changes.removed])
        every = every[every >> 32 < term]
        # Documents that are in no list yet belong at the end of each: one lookup per term finds their place.
        place = distinct(pairs(every >> 32, np.minimum(every & KEY, doc)))
        return (
            f"SELECT 0, a.* FROM ({POSTINGS.holding}) a UNION ALL"
            f" SELECT 1, b.* FROM ({CONVERSATION_TERMS.holding}) b",
            (*self._holding(place), *self._holding(changes.word[changes.word >> 32 < conversation])),
        )

    def _holding(self, place: Ints) -> tuple[object, ...]:
        return self._ns, integers(place >> 32), integers(place & KEY), self._ns

    def _parts(self, table: PartTable, written: Lists, owner: Ints, first: Ints) -> list[Statement]:
        statements: list[Statement] = []
        if len(written.owner):
            parts = integers(written.owner), integers(written.first), written.entries()
            statements.append((table.put, (self._ns, *parts)))
        if len(owner):
            statements.append((table.drop, (integers(owner), integers(first), self._ns)))
        return statements

    def _terms(self, changes: IndexDifference, gains: Ints) -> list[Statement]:
        """Return statements for the dictionary's figures: rows of new terms, and differences of existing ones."""
        new = np.fromiter(self._new_terms.values(), np.int64, len(self._new_terms))  # in ascending order
        of_words = changes.word & KEY
        term = distinct(np.concatenate([new, changes.term, of_words[gains != 0]]))
        figures = (
            added(term, changes.term, changes.df),
            added(term, changes.term, changes.segment_df),
            added(term, changes.term, changes.loose_df)
            + added(term, of_words[gains != 0], gains[gains != 0]),
        )
        is_new = np.zeros(len(term), np.bool_)
        is_new[np.searchsorted(term, new)] = True
        statements: list[Statement] = []
        texts = [stored(text) for text in self._new_terms]
        if texts:
            statements.append(
                (
                    "INSERT INTO rlm_mem.terms(ns, text, term, df, segment_df, conversation_df) SELECT %s::bigint, *"
                    " FROM unnest(%s::text[], %s::int4[], %s::int4[], %s::int4[], %s::int4[])",
                    (self._ns, texts, *map(integers, (new, *(f[is_new] for f in figures)))),
                )
            )
        if not is_new.all():
            values = map(integers, (term[~is_new], *(f[~is_new] for f in figures)))
            statements.append(
                (
                    "UPDATE rlm_mem.terms t SET df = t.df + d.df, segment_df = t.segment_df + d.segment_df,"
                    " conversation_df = t.conversation_df + d.conversation_df"
                    " FROM unnest(%s::int4[], %s::int4[], %s::int4[], %s::int4[])"
                    " AS d(term, df, segment_df, conversation_df) WHERE t.ns = %s AND t.term = d.term",
                    (*values, self._ns),
                )
            )
        return statements


def _combined(statements: Sequence[Statement]) -> list[Statement]:
    """Combine statements that write different rows into one."""
    if not statements:
        return []
    subqueries = ", ".join(f"s{number} AS ({sql})" for number, (sql, _) in enumerate(statements))
    values = tuple(value for _, parameters in statements for value in parameters)
    return [(f"WITH {subqueries} SELECT 1 WHERE false", values)]
