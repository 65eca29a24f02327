"""Recounts the index of a namespace from the encoded segments of its chunks, to check or repair it.

Chunks are read in order of conversation, so the words of a conversation are complete as soon as the next one
begins; postings are compared in one pass if they fit into memory, else in one pass for each range of terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg

from rlm_mem.errors import CorruptStore
from rlm_mem.store.core.records import NO_SEGMENTS, decode_many
from rlm_mem.store.postgres.changes import IndexDifference, Indexed, changes_of
from rlm_mem.store.postgres.parts import CONVERSATION_TERMS, POSTINGS, Lists, PartTable, lists_of, regrouped
from rlm_mem.store.postgres.values import Blobs, Integers, array_cursor

Ints = npt.NDArray[np.int64]
Figures = npt.NDArray[np.uint32]

#: Chunks decoded at a time, and postings in memory at a time.
_LOT = 5_000
_MAX_POSTINGS = 20_000_000
_KEY = 0xFFFFFFFF
_NONE = np.zeros(0, np.int64)


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
        damaged: documents whose segments do not decode: they count as having none; analysing them again helps.
        figures: figures of the namespace that are wrong: name, stored value, correct value.
    """

    postings: int = 0
    words: int = 0
    terms: int = 0
    unknown_terms: int = 0
    conversations: int = 0
    chunks: int = 0
    damaged: list[int] = field(default_factory=list)
    figures: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether no difference was found."""
        return self == Recount()


def recount(connection: psycopg.Connection[Any], ns: int, *, repair: bool = False) -> Recount:
    """Compare postings and figures of a namespace with its chunks, and correct them with ``repair``.

    Args:
        connection: inside a transaction that sees one state: one that holds the namespace's lock (needed for
            `repair`), or a read-only one with REPEATABLE READ.
        ns: key of the namespace.
        repair: write the counted values. Afterwards only `unknown_terms` and `damaged` are still wrong.
    """
    counting = _Counting(ns, repair)
    with array_cursor(connection) as cursor:
        counting.run(cursor)
        counting.check_terms(cursor)
        counting.check_conversations(cursor)
        counting.check_head(cursor)
    return counting.found


class _Counting:
    """One recount in progress: the sums so far, and the differences found."""

    def __init__(self, ns: int, repair: bool) -> None:
        self._ns = ns
        self._repair = repair
        self.found = Recount()
        self._df = self._segment_df = self._conversation_df = _NONE
        self._conversations: dict[int, tuple[int, int]] = {}
        self._segments = self._length = self._loose = 0

    # -- reading chunks --------------------------------------------------------------------------------------------

    def run(self, cursor: psycopg.Cursor[Any]) -> None:
        """Check chunks and lists, and sum up the figures that the other methods check."""
        order = cursor.execute(
            "SELECT conversation, doc FROM rlm_mem.chunks WHERE ns = %s AND status = 0 ORDER BY conversation, doc",
            (self._ns,),
        ).fetchall()
        kept: list[IndexDifference] | None = []
        for docs in _lots(order):
            changes = changes_of([], self._chunks(cursor, docs, check=True))
            self._add(changes)
            numbers = sorted(changes.conversations)
            if numbers:
                figures = np.stack([changes.word_frequency, changes.word_chunks], axis=1).astype(np.uint32)
                last = numbers[-1]
                self.found.words += self._compare(
                    cursor, CONVERSATION_TERMS, numbers[0], last, changes.word, figures
                )
            if kept is not None:
                kept = [*kept, changes] if self._df.sum() <= _MAX_POSTINGS else None
        self._drop_orphaned_lists(cursor, CONVERSATION_TERMS, sorted(self._conversations))
        for lowest, highest in self._slabs():
            if kept is None:
                pair, figures = self._postings(cursor, order, lowest, highest)
            else:
                pair, figures = _sorted_together([(changes.posting, changes.figures) for changes in kept])
            self.found.postings += self._compare(cursor, POSTINGS, lowest, highest, pair, figures)
        self._drop_orphaned_lists(cursor, POSTINGS, np.flatnonzero(self._df).tolist())

    def _chunks(self, cursor: psycopg.Cursor[Any], docs: list[int], *, check: bool = False) -> list[Indexed]:
        rows = cursor.execute(
            "SELECT c.doc, c.conversation, coalesce(b.segments, %s::bytea), c.length, c.segment_count"
            " FROM rlm_mem.chunks c LEFT JOIN rlm_mem.bodies b ON b.ns = %s AND b.doc = c.doc"
            " WHERE c.ns = %s AND c.doc = ANY(%s)",
            (NO_SEGMENTS, self._ns, self._ns, Integers(np.array(docs, np.int64))),
        ).fetchall()
        chunks = [(doc, conversation, blob or NO_SEGMENTS) for doc, conversation, blob, _, _ in rows]
        try:
            decode_many([blob for _, _, blob in chunks])
        except CorruptStore:
            chunks = [self._decodable(chunk, check) for chunk in chunks]
        if check:
            self._check_chunks(cursor, chunks, np.array([row[3:] for row in rows], np.int64))
        return chunks

    def _decodable(self, chunk: Indexed, note: bool) -> Indexed:
        """Return the chunk, without its segments if they do not decode; with ``note`` it is recorded as damaged."""
        try:
            decode_many([chunk[2]])
        except CorruptStore:
            if note:
                self.found.damaged.append(chunk[0])
            return chunk[0], chunk[1], NO_SEGMENTS
        return chunk

    def _check_chunks(self, cursor: psycopg.Cursor[Any], chunks: list[Indexed], written: Ints) -> None:
        decoded = decode_many([blob for _, _, blob in chunks])
        length = np.diff(np.concatenate([[0], np.cumsum(decoded.length)])[decoded.chunk_start])
        right = np.stack([length, np.diff(decoded.chunk_start)], axis=1)
        wrong = np.flatnonzero((right != written).any(axis=1))
        self.found.chunks += len(wrong)
        if len(wrong) and self._repair:
            docs = np.array([chunks[number][0] for number in wrong.tolist()], np.int64)
            cursor.execute(
                "UPDATE rlm_mem.chunks c SET length = d.length, segment_count = d.segments"
                " FROM unnest(%s, %s, %s) AS d(doc, length, segments) WHERE c.ns = %s AND c.doc = d.doc",
                (Integers(docs), Integers(right[wrong, 0]), Integers(right[wrong, 1]), self._ns),
            )

    def _add(self, changes: IndexDifference) -> None:
        terms = np.concatenate([changes.term, changes.word & _KEY])
        size = max(len(self._df), int(terms.max()) + 1 if len(terms) else 0)
        self._df, self._segment_df, self._conversation_df = (
            np.concatenate([known, np.zeros(size - len(known), np.int64)])
            for known in (self._df, self._segment_df, self._conversation_df)
        )
        np.add.at(self._df, changes.term, changes.df)
        np.add.at(self._segment_df, changes.term, changes.segment_df)
        np.add.at(self._conversation_df, changes.term, changes.loose_df)
        np.add.at(self._conversation_df, changes.word & _KEY, 1)
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

    def _postings(
        self, cursor: psycopg.Cursor[Any], order: list[tuple[int | None, int]], lowest: int, highest: int
    ) -> tuple[Ints, Figures]:
        chosen = []
        for docs in _lots(order):
            changes = changes_of([], self._chunks(cursor, docs))
            lo, hi = np.searchsorted(changes.posting, [lowest << 32, (highest + 1) << 32])
            chosen.append((changes.posting[lo:hi], changes.figures[lo:hi]))
        return _sorted_together(chosen)

    def _compare(
        self,
        cursor: psycopg.Cursor[Any],
        table: PartTable,
        lowest: int,
        highest: int,
        pair: Ints,
        figures: Figures,
    ) -> int:
        """Count entries of these owners' lists that differ from `pair` and `figures`; correct them with ``repair``."""
        rows = cursor.execute(
            f"SELECT {table.owner}, first, entries FROM {table.name}"
            f" WHERE ns = %s AND {table.owner} BETWEEN %s AND %s",
            (self._ns, lowest, highest),
        ).fetchall()
        try:
            wrong = _differences(lists_of(rows), pair, figures)
        except CorruptStore:  # all these lists are replaced
            wrong = max(len(pair), 1)
        if wrong and self._repair:
            cursor.execute(
                f"DELETE FROM {table.name} WHERE ns = %s AND {table.owner} BETWEEN %s AND %s",
                (self._ns, lowest, highest),
            )
            lists, _, _ = regrouped(table, lists_of([]), pair, figures)
            if len(lists.owner):
                blobs = Blobs(lists.words(), lists.count * 3)
                cursor.execute(table.put, (self._ns, Integers(lists.owner), Integers(lists.first), blobs))
        return wrong

    def _drop_orphaned_lists(self, cursor: psycopg.Cursor[Any], table: PartTable, owners: list[int]) -> None:
        """Count lists of owners that should have none; remove them with ``repair``."""
        rows = cursor.execute(
            f"SELECT {table.owner}, first, entries FROM {table.name} WHERE ns = %s AND {table.owner} <> ALL(%s)",
            (self._ns, Integers(np.array(owners, np.int64))),
        ).fetchall()
        if not rows:
            return
        if table is POSTINGS:
            # Lists of terms below this number have been compared.
            rows = [row for row in rows if row[0] >= len(self._df)]
            self.found.postings += len(rows)
        else:
            self.found.words += len(rows)
        if self._repair:
            cursor.execute(
                f"DELETE FROM {table.name} WHERE ns = %s AND {table.owner} <> ALL(%s)",
                (self._ns, Integers(np.array(owners, np.int64))),
            )

    # -- figures ---------------------------------------------------------------------------------------------------

    def check_terms(self, cursor: psycopg.Cursor[Any]) -> None:
        """Check the figures of the dictionary."""
        rows = cursor.execute(
            "SELECT term, df, segment_df, conversation_df FROM rlm_mem.terms WHERE ns = %s ORDER BY term",
            (self._ns,),
        ).fetchall()
        written = np.array(rows, np.int64).reshape(-1, 4)
        term = written[:, 0]
        right = np.zeros((len(term), 3), np.int64)
        known = (term >= 0) & (term < len(self._df))
        for column, figures in enumerate((self._df, self._segment_df, self._conversation_df)):
            right[known, column] = figures[term[known]]
        wrong = np.flatnonzero((right != written[:, 1:]).any(axis=1) | (term < 0))
        self.found.terms = len(wrong)
        used = np.flatnonzero(self._df)
        self.found.unknown_terms = len(used) - int(np.count_nonzero(np.isin(used, term)))
        if len(wrong) and self._repair:
            cursor.execute("DELETE FROM rlm_mem.terms WHERE ns = %s AND term < 0", (self._ns,))
            cursor.execute(
                "UPDATE rlm_mem.terms t SET df = d.df, segment_df = d.segment_df, conversation_df = d.conversation_df"
                " FROM unnest(%s, %s, %s, %s) AS d(term, df, segment_df, conversation_df)"
                " WHERE t.ns = %s AND t.term = d.term",
                (Integers(term[wrong]), *(Integers(right[wrong, column]) for column in range(3)), self._ns),
            )

    def check_conversations(self, cursor: psycopg.Cursor[Any]) -> None:
        """Check the figures of conversations."""
        rows = cursor.execute(
            "SELECT conversation, chunks, length FROM rlm_mem.conversations WHERE ns = %s", (self._ns,)
        ).fetchall()
        wrong = {
            number: right
            for number, chunks, length in rows
            if (right := self._conversations.get(number, (0, 0))) != (chunks, length)
        }
        self.found.conversations = len(wrong)
        if wrong and self._repair:
            figures = np.array([(number, *right) for number, right in wrong.items()], np.int64)
            cursor.execute(
                "UPDATE rlm_mem.conversations v SET chunks = d.chunks, length = d.length"
                " FROM unnest(%s, %s, %s) AS d(conversation, chunks, length)"
                " WHERE v.ns = %s AND v.conversation = d.conversation",
                (*(Integers(figures[:, column]) for column in range(3)), self._ns),
            )

    def check_head(self, cursor: psycopg.Cursor[Any]) -> None:
        """Check the figures of the namespace."""
        right = {
            "segments": self._segments,
            "length": self._length,
            "conversations": len(self._conversations),
            "loose": self._loose,
        }
        rows = cursor.execute(
            f"SELECT {', '.join(right)} FROM rlm_mem.namespaces WHERE ns = %s", (self._ns,)
        ).fetchall()
        written = dict(zip(right, rows[0], strict=True)) if rows else right
        self.found.figures = [
            (name, written[name], right[name]) for name in right if written[name] != right[name]
        ]
        if self.found.figures and self._repair:
            columns = ", ".join(f"{name} = %s" for name in right)
            cursor.execute(
                f"UPDATE rlm_mem.namespaces SET {columns} WHERE ns = %s", (*right.values(), self._ns)
            )


def _lots(order: list[tuple[int | None, int]]) -> Iterator[list[int]]:
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


def _sorted_together(chosen: list[tuple[Ints, Figures]]) -> tuple[Ints, Figures]:
    if not chosen:
        return _NONE, np.zeros((0, 2), np.uint32)
    pair = np.concatenate([pairs for pairs, _ in chosen])
    order = np.argsort(pair, kind="stable")
    return pair[order], np.concatenate([figures for _, figures in chosen])[order]


def _differences(written: Lists, pair: Ints, figures: Figures) -> int:
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
