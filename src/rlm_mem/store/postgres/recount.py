"""Recounts the index of a namespace from the encoded segments of its chunks, to check it.

Chunks are read in order of conversation, so the words of a conversation are complete as soon as the next one
begins; postings are compared in one pass if they fit into memory, else in one pass for each range of terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg

from rlm_mem.errors import CorruptStore
from rlm_mem.store.core.arrays import Ints, Words
from rlm_mem.store.core.encoding import NO_SEGMENTS, decode_many
from rlm_mem.store.core.selection import NOTHING
from rlm_mem.store.postgres.changes import IndexDifference, Indexed, changes_of, sorted_together
from rlm_mem.store.postgres.parts import CONVERSATION_TERMS, KEY, POSTINGS, Lists, PartTable, lists_of

#: Chunks decoded at a time, and postings in memory at a time.
_LOT = 5_000
_MAX_POSTINGS = 20_000_000


@dataclass
class Recount:
    """The differences that a recount found.

    Attributes:
        postings: entries of terms' lists that are missing, superfluous or wrong.
        words: the same for conversations' lists.
        terms: terms whose figures are wrong.
        unknown_terms: numbers that chunks use but the dictionary lacks; only analysing the chunks again helps.
        conversations: conversations whose figures are wrong.
        chunks: chunks whose length or number of segments is wrong.
        figures: figures of the namespace that are wrong: name, stored value, correct value.

    Segments that do not decode count as none, so that the figures they are in are wrong.
    """

    postings: int = 0
    words: int = 0
    terms: int = 0
    unknown_terms: int = 0
    conversations: int = 0
    chunks: int = 0
    figures: tuple[tuple[str, int, int], ...] = ()

    @property
    def sound(self) -> bool:
        """Whether no difference was found."""
        return self == Recount()


def recount(connection: psycopg.Connection[Any], ns: int) -> Recount:
    """Compare postings and figures of a namespace with its chunks.

    Args:
        connection: inside a transaction that sees one state: one that holds the namespace's lock, or a read-only one
            with REPEATABLE READ.
        ns: key of the namespace.
    """
    with connection.cursor(binary=True) as cursor:
        counting = _Counting(ns, cursor)
        counting.check_lists()
        counting.check_terms()
        counting.check_conversations()
        counting.check_head()
    return counting.found


class _Counting:
    """One recount in progress: the sums so far, and the differences found."""

    def __init__(self, ns: int, cursor: psycopg.Cursor[Any]) -> None:
        self._ns = ns
        self._cursor = cursor
        self.found = Recount()
        self._df = self._segment_df = self._conversation_df = NOTHING
        self._conversations: dict[int, tuple[int, int]] = {}
        self._segments = self._length = self._loose = 0

    # -- reading chunks --------------------------------------------------------------------------------------------

    def check_lists(self) -> None:
        """Check chunks and lists, and sum up the figures that the other methods check."""
        order = self._rows(
            "SELECT conversation, doc FROM rlm_mem.chunks WHERE ns = %s AND status = 0 ORDER BY conversation, doc"
        )
        kept: list[IndexDifference] | None = []
        for docs in _lots(order):
            changes = changes_of([], self._chunks(docs, check=True))
            self._add(changes)
            numbers = sorted(changes.conversations)
            if numbers:
                figures = np.stack([changes.word_frequency, changes.word_chunks], axis=1).astype(np.uint32)
                self.found.words += self._compare(
                    CONVERSATION_TERMS, numbers[0], numbers[-1], changes.word, figures
                )
            if kept is not None:
                kept = [*kept, changes] if self._df.sum() <= _MAX_POSTINGS else None
        self.found.words += len(self._orphaned_lists(CONVERSATION_TERMS, sorted(self._conversations)))
        for lowest, highest in self._slabs():
            if kept is None:
                pair, figures = self._postings(order, lowest, highest)
            else:
                pair, figures = sorted_together([(changes.posting, changes.figures) for changes in kept])
            self.found.postings += self._compare(POSTINGS, lowest, highest, pair, figures)
        # Lists of terms below this number have been compared.
        orphaned = self._orphaned_lists(POSTINGS, np.flatnonzero(self._df).tolist())
        self.found.postings += sum(term >= len(self._df) for (term,) in orphaned)

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement whose last value is the key of the namespace."""
        return self._cursor.execute(statement, (*values, self._ns)).fetchall()

    def _chunks(self, docs: list[int], *, check: bool = False) -> list[Indexed]:
        rows = self._cursor.execute(
            "SELECT c.doc, c.conversation, coalesce(b.segments, %s::bytea), c.length, c.segment_count"
            " FROM rlm_mem.chunks c LEFT JOIN rlm_mem.bodies b ON b.ns = %s AND b.doc = c.doc"
            " WHERE c.ns = %s AND c.doc = ANY(%s)",
            (NO_SEGMENTS, self._ns, self._ns, docs),
        ).fetchall()
        chunks = [(doc, conversation, blob or NO_SEGMENTS) for doc, conversation, blob, _, _ in rows]
        try:
            decoded = decode_many([blob for _, _, blob in chunks])
        except CorruptStore:
            chunks = list(map(_decodable, chunks))
            decoded = decode_many([blob for _, _, blob in chunks])
        if check:
            length = np.diff(np.concatenate([[0], np.cumsum(decoded.length)])[decoded.chunk_start])
            right = np.stack([length, np.diff(decoded.chunk_start)], axis=1)
            written = np.array([row[3:] for row in rows], np.int64)
            self.found.chunks += int((right != written).any(axis=1).sum())
        return chunks

    def _add(self, changes: IndexDifference) -> None:
        terms = np.concatenate([changes.term, changes.word & KEY])
        size = max(len(self._df), int(terms.max()) + 1 if len(terms) else 0)
        self._df, self._segment_df, self._conversation_df = (
            np.concatenate([known, np.zeros(size - len(known), np.int64)])
            for known in (self._df, self._segment_df, self._conversation_df)
        )
        np.add.at(self._df, changes.term, changes.df)
        np.add.at(self._segment_df, changes.term, changes.segment_df)
        np.add.at(self._conversation_df, changes.term, changes.loose_df)
        np.add.at(self._conversation_df, changes.word & KEY, 1)
        self._conversations.update(changes.conversations)  # no conversation is in two batches
        self._segments += changes.segments
        self._length += changes.length
        self._loose += changes.loose

    # -- lists -----------------------------------------------------------------------------------------------------

    def _slabs(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of terms (first, last) with at most `_MAX_POSTINGS` postings; a single term may have more."""
        reach = np.cumsum(self._df)
        first = 0
        while first < len(reach):
            before = int(reach[first - 1]) if first else 0
            last = max(int(np.searchsorted(reach, before + _MAX_POSTINGS, side="right")) - 1, first)
            yield first, last
            first = last + 1

    def _postings(self, order: list[tuple[Any, ...]], lowest: int, highest: int) -> tuple[Ints, Words]:
        chosen = []
        for docs in _lots(order):
            changes = changes_of([], self._chunks(docs))
            lo, hi = np.searchsorted(changes.posting, [lowest << 32, (highest + 1) << 32])
            chosen.append((changes.posting[lo:hi], changes.figures[lo:hi]))
        return sorted_together(chosen)

    def _compare(self, table: PartTable, lowest: int, highest: int, pair: Ints, figures: Words) -> int:
        """Count entries of these owners' lists that differ from `pair` and `figures`."""
        rows = self._rows(
            f"SELECT {table.owner}, first, entries FROM {table.name}"
            f" WHERE {table.owner} BETWEEN %s AND %s AND ns = %s",
            lowest,
            highest,
        )
        try:
            return _differences(lists_of(rows), pair, figures)
        except CorruptStore:
            return max(len(pair), 1)

    def _orphaned_lists(self, table: PartTable, owners: list[int]) -> list[tuple[Any, ...]]:
        """Return the owners of parts of lists that should not exist."""
        return self._rows(
            f"SELECT {table.owner} FROM {table.name} WHERE {table.owner} <> ALL(%s) AND ns = %s", owners
        )

    # -- figures ---------------------------------------------------------------------------------------------------

    def check_terms(self) -> None:
        """Check the figures of the dictionary."""
        rows = self._rows("SELECT term, df, segment_df, conversation_df FROM rlm_mem.terms WHERE ns = %s")
        written = np.array(rows, np.int64).reshape(-1, 4)
        term = written[:, 0]
        right = np.zeros((len(term), 3), np.int64)
        known = (term >= 0) & (term < len(self._df))
        for column, figures in enumerate((self._df, self._segment_df, self._conversation_df)):
            right[known, column] = figures[term[known]]
        self.found.terms = int(((right != written[:, 1:]).any(axis=1) | (term < 0)).sum())
        used = np.flatnonzero(self._df)
        self.found.unknown_terms = len(used) - int(np.count_nonzero(np.isin(used, term)))

    def check_conversations(self) -> None:
        """Check the figures of conversations."""
        rows = self._rows("SELECT conversation, chunks, length FROM rlm_mem.conversations WHERE ns = %s")
        self.found.conversations = sum(
            self._conversations.get(number, (0, 0)) != (chunks, length) for number, chunks, length in rows
        )

    def check_head(self) -> None:
        """Check the figures of the namespace."""
        right = {
            "segments": self._segments,
            "length": self._length,
            "conversations": len(self._conversations),
            "loose": self._loose,
        }
        for row in self._rows(f"SELECT {', '.join(right)} FROM rlm_mem.namespaces WHERE ns = %s"):
            figures = zip(right, row, right.values(), strict=True)
            self.found.figures = tuple(one for one in figures if one[1] != one[2])


def _decodable(chunk: Indexed) -> Indexed:
    """Return the chunk, without its segments if they do not decode."""
    try:
        decode_many([chunk[2]])
    except CorruptStore:
        return chunk[0], chunk[1], NO_SEGMENTS
    return chunk


def _lots(order: list[tuple[Any, ...]]) -> Iterator[list[int]]:
    """Split documents into batches that keep each conversation together."""
    lot: list[int] = []
    former: int | None = None
    for conversation, doc in order:
        if len(lot) >= _LOT and (conversation is None or conversation != former):
            yield lot
            lot = []
        lot.append(doc)
        former = conversation
    if lot:
        yield lot


def _differences(written: Lists, pair: Ints, figures: Words) -> int:
    """Count entries that are missing, superfluous, different, or in a part where no search looks for them."""
    if not len(written.pair):
        return len(pair)
    place = np.minimum(np.searchsorted(written.pair, pair), len(written.pair) - 1)
    present = written.pair[place] == pair
    same = present & (written.figures[place] == figures).all(axis=1)
    left_over = len(written.pair) - int(present.sum())
    return int((~same).sum()) + left_over + _out_of_place(written)


def _out_of_place(lists: Lists) -> int:
    """Count entries that are below the first key of their part, or not below the first key of the next part."""
    part = np.searchsorted(lists.code, lists.pair, side="right") - 1
    return int(np.count_nonzero(part != np.repeat(np.arange(len(lists.count)), lists.count)))
