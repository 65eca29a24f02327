"""What was written after the snapshot, and both together as searches see them.

A delta is a bounded number of chunks, decoded and kept in memory.

A delta is immutable; a refresh makes a new one from the former. Its postings are one flat unsorted table, which a
query scans once per term: with a few thousand chunks that costs less than keeping them sorted would.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from rlm_mem.chunk import parse_time
from rlm_mem.store.core.arrays import contained, distinct, union
from rlm_mem.store.core.segments import DocumentTerms, decode_many, document_terms, encode_segments
from rlm_mem.store.local.snapshot import NO_CONVERSATION, Snapshot

__all__ = ["Columns", "Delta", "View", "columns_of", "empty_delta", "epoch", "load_rows", "select_docs"]

_EMPTY = encode_segments((), lambda _: 0)
_BATCH = 10_000

#: What a row of the index tables holds, in the order that `columns_of` expects.
_COLUMNS = (
    "SELECT c.doc, c.conversation, c.at, c.type, c.superseded_by, c.valid_from, c.valid_to, s.data FROM"
)
_ALL = "SELECT doc FROM chunks WHERE ns = ? AND status = 0"
#: CROSS JOIN: look the docs up one by one; SQLite would rather walk the whole namespace.
_SOME = (
    f"{_COLUMNS} json_each(?) j CROSS JOIN chunks c ON c.doc = j.value LEFT JOIN segments s ON s.doc = c.doc"
    " WHERE c.ns = ? AND c.status = 0"
)


@dataclass(frozen=True, slots=True)
class Columns:
    """Per chunk: the same columns as a snapshot has, `type_name` in words."""

    doc: npt.NDArray[np.int64]
    conversation: npt.NDArray[np.int64]
    at: npt.NDArray[np.float64]
    length: npt.NDArray[np.int32]
    segment_count: npt.NDArray[np.int32]
    type_name: npt.NDArray[np.object_]
    superseded: npt.NDArray[np.bool_]
    valid_from: npt.NDArray[np.float64]
    valid_to: npt.NDArray[np.float64]

    def taken(self, keep: npt.NDArray[Any]) -> Columns:
        """The chunks that `keep` (mask or numbers) selects."""
        return Columns(*(getattr(self, f.name)[keep] for f in fields(self)))

    @staticmethod
    def joined(parts: Sequence[Columns]) -> Columns:
        """Several, one after the other."""
        return Columns(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Columns)))


@dataclass(frozen=True, slots=True)
class Delta:
    """Chunks (`columns`) and their postings: term, number of the chunk here, frequency, segments that hold it.

    `author_terms` are the numbers of those terms that are authors.
    """

    columns: Columns
    term: npt.NDArray[np.uint32]
    slot: npt.NDArray[np.int32]
    frequency: npt.NDArray[np.uint8]
    segments: npt.NDArray[np.uint8]
    author_terms: npt.NDArray[np.uint32]

    @property
    def size(self) -> int:
        """Number of chunks."""
        return len(self.columns.doc)

    def without(self, docs: npt.NDArray[np.int64]) -> Delta:
        """This delta without some chunks."""
        gone = contained(self.columns.doc, docs)
        if not gone.any():
            return self
        keep = ~gone
        number = np.cumsum(keep) - 1
        kept = keep[self.slot]
        return Delta(
            self.columns.taken(keep),
            self.term[kept],
            number[self.slot[kept]].astype(np.int32),
            self.frequency[kept],
            self.segments[kept],
            self.author_terms,
        )

    def plus(self, columns: Columns, terms: DocumentTerms, authors: npt.NDArray[np.int64]) -> Delta:
        """This delta and more chunks (whose `terms` number them from 0)."""
        return Delta(
            Columns.joined([self.columns, columns]),
            np.concatenate([self.term, terms.term.astype(np.uint32)]),
            np.concatenate([self.slot, (terms.chunk + self.size).astype(np.int32)]),
            np.concatenate([self.frequency, terms.frequency]),
            np.concatenate([self.segments, terms.segments]),
            union(self.author_terms, authors.astype(np.uint32)),
        )


def empty_delta() -> Delta:
    """A delta of nothing."""
    columns, terms, authors = columns_of([])
    return Delta(
        columns,
        terms.term.astype(np.uint32),
        terms.chunk.astype(np.int32),
        terms.frequency,
        terms.segments,
        authors.astype(np.uint32),
    )


def load_rows(
    connection: sqlite3.Connection, ns: int, docs: npt.NDArray[np.int64] | None = None, *, batch: int = _BATCH
) -> Iterator[tuple[Columns, DocumentTerms, npt.NDArray[np.int64]]]:
    """The active chunks of a namespace, or those among `docs`, in batches: columns, postings and authors."""
    if docs is None:
        # Their numbers first, and never one open cursor: a reader keeps writers from committing.
        docs = np.sort(np.fromiter((row[0] for row in connection.execute(_ALL, (ns,))), np.int64))
    for part in _parts(docs, batch):
        rows = connection.execute(_SOME, (select_docs(part), ns)).fetchall()
        yield columns_of(rows)


def columns_of(rows: Sequence[tuple[Any, ...]]) -> tuple[Columns, DocumentTerms, npt.NDArray[np.int64]]:
    """Decode rows of the index tables (see `_COLUMNS`) into columns, postings and the authors met."""
    count = len(rows)
    decoded = decode_many([row[7] if row[7] is not None else _EMPTY for row in rows])
    segment_length = np.concatenate([[0], np.cumsum(decoded.length)])
    type_name = np.empty(count, np.object_)
    type_name[:] = [row[3] for row in rows]
    columns = Columns(
        doc=np.fromiter((row[0] for row in rows), np.int64, count),
        conversation=np.fromiter(
            (NO_CONVERSATION if row[1] is None else row[1] for row in rows), np.int64, count
        ),
        at=np.fromiter((row[2] for row in rows), np.float64, count),
        length=np.diff(segment_length[decoded.chunk_start]).astype(np.int32),
        segment_count=np.diff(decoded.chunk_start).astype(np.int32),
        type_name=type_name,
        superseded=np.fromiter((row[4] is not None for row in rows), np.bool_, count),
        valid_from=np.fromiter((epoch(row[5], -np.inf) for row in rows), np.float64, count),
        valid_to=np.fromiter((epoch(row[6], np.inf) for row in rows), np.float64, count),
    )
    return columns, document_terms(decoded), distinct(decoded.author[decoded.author >= 0])


def epoch(text: str | None, missing: float) -> float:
    """Epoch seconds of a stored time; `missing` for None."""
    if text is None:
        return missing
    moment: datetime = parse_time(text)
    return moment.timestamp()


def select_docs(docs: Iterable[int] | npt.NDArray[np.int64]) -> str:
    """Docs as the JSON array that `IN (SELECT value FROM json_each(?))` takes: any number in one parameter."""
    return json.dumps(docs.tolist() if isinstance(docs, np.ndarray) else list(docs))


def _parts(docs: npt.NDArray[np.int64], size: int) -> Iterator[npt.NDArray[np.int64]]:
    for first in range(0, len(docs), size):
        yield docs[first : first + size]


@dataclass
class View:
    """The postings at one moment; never altered but for what it remembers of its own answers.

    A *slot* is an ordinal of the snapshot, or the snapshot's size plus the number of a chunk in the delta.
    `gone` masks ordinals that the delta replaces or that were archived or removed.
    """

    snapshot: Snapshot
    delta: Delta
    gone: npt.NDArray[np.bool_]
    seq: int
    generation: str | None
    gone_ordinals: npt.NDArray[np.int32] = field(init=False)
    chunks: int = field(init=False)
    segments: int = field(init=False)
    total_length: int = field(init=False)
    conversations: int = field(init=False)
    #: conversations that the delta or the mask touches, sorted, without NO_CONVERSATION
    touched: npt.NDArray[np.int64] = field(init=False)
    #: touched conversations laid out in order, and the names of those who speak: made when first asked for
    members: dict[int, npt.NDArray[np.int64]] = field(default_factory=dict, init=False, repr=False)
    authors: frozenset[str] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        snap, new = self.snapshot, self.delta.columns
        gone = np.flatnonzero(self.gone).astype(np.int32)
        left = snap.conversation[gone]
        touched = union(left, new.conversation)
        touched = touched[touched != NO_CONVERSATION]
        first, last = snap.range_of(touched)
        before = last - first
        now = before - _count_in(left, touched) + _count_in(new.conversation, touched)
        alone = int((new.conversation == NO_CONVERSATION).sum()) - int((left == NO_CONVERSATION).sum())
        self.gone_ordinals, self.touched = gone, touched
        self.chunks = snap.size - len(gone) + self.delta.size
        self.segments = snap.total_segments - _total(snap.segment_count[gone]) + _total(new.segment_count)
        self.total_length = snap.total_length - _total(snap.length[gone]) + _total(new.length)
        self.conversations = snap.conversations + alone + int((now > 0).sum()) - int((before > 0).sum())

    def take(self, name: str, slots: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The values of a column at some slots."""
        size = self.snapshot.size
        old: npt.NDArray[Any] = getattr(self.snapshot, name)
        if not self.delta.size:
            return old[slots]
        new: npt.NDArray[Any] = getattr(self.delta.columns, name)
        taken = np.empty(len(slots), new.dtype)
        in_snapshot = slots < size
        taken[in_snapshot] = old[slots[in_snapshot]]
        taken[~in_snapshot] = new[slots[~in_snapshot] - size]
        return taken

    def column(self, name: str) -> npt.NDArray[Any]:
        """A column over all slots."""
        old: npt.NDArray[Any] = getattr(self.snapshot, name)
        if not self.delta.size:
            return old
        return np.concatenate([old, getattr(self.delta.columns, name)])

    @property
    def waiting(self) -> int:
        """How much there is beside the snapshot."""
        return self.delta.size + len(self.gone_ordinals)


def _total(values: npt.NDArray[Any]) -> int:
    return int(values.sum(dtype=np.int64))


def _count_in(values: npt.NDArray[np.int64], among: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How often each of the sorted `among` occurs in `values`."""
    values = np.sort(values)
    return np.searchsorted(values, among, side="right") - np.searchsorted(values, among, side="left")
