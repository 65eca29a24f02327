"""Postings of one namespace: immutable snapshot files, the in-memory delta since, and the merged view searches use.

Chunks are numbered by *ordinal* in the order (conversation, time, doc), chunks without a conversation first. So a
conversation is one range of ordinals, its part of any posting list is one slice, and its neighbouring messages have
adjacent ordinals. A snapshot never changes.

Chunks written after a snapshot are in the delta: a bounded number, decoded and kept in memory. A delta is immutable
as well; a refresh derives a new one from the previous one. Its postings are one flat unsorted table, which a query
scans once per term: with a few thousand chunks that is cheaper than keeping them sorted.

No file is memory-mapped: if another program truncated a mapped file, the process would be killed (SIGBUS). Columns
are read when a snapshot is opened, posting lists when they are needed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import numpy as np
from msgspec import Struct

from rlm_mem.chunk import parse_time
from rlm_mem.store.core.arrays import Array, Bools, Floats, Frequencies, Ints, Slots, Words
from rlm_mem.store.core.encoding import NO_SEGMENTS, decode_many, document_terms
from rlm_mem.store.core.files import sync_folder
from rlm_mem.store.core.lookup import NO_CONVERSATION
from rlm_mem.store.core.selection import NOTHING, contained, distinct, held_in, places, union
from rlm_mem.store.local.connections import DamagedSnapshot
from rlm_mem.store.local.queries import json_list

if TYPE_CHECKING:
    import numpy.typing as npt


_FORMAT = 2
_META = "meta.json"
_PIECE = 1 << 20  # bytes per read while computing a checksum


class FileArray:
    """A one-dimensional array in a `.npy` file, whose slices are read on demand.

    The file stays open, so it can be read after it has been unlinked. Thread-safe.

    Args:
        file: open for reading; this object takes ownership of it.
        dtype: element type.
        count: number of elements.
        offset: byte offset of the first element in the file.
    """

    def __init__(self, file: BinaryIO, dtype: np.dtype[Any], count: int, offset: int) -> None:
        self._file = file
        self._dtype = dtype
        self._count = count
        self._offset = offset
        self._lock = threading.Lock()
        self._mark = self._changed_at()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, part: slice) -> Array:
        first, last, _ = part.indices(self._count)
        if last <= first:
            return np.zeros(0, self._dtype)
        size = self._dtype.itemsize
        data = self._read((last - first) * size, self._offset + first * size)
        # Checked after reading: data read before the file changed is sound.
        if len(data) != (last - first) * size or self._changed_at() != self._mark:
            raise DamagedSnapshot(f"{self._file.name} was changed or cut short while it was open")
        return np.frombuffer(data, self._dtype)

    def _changed_at(self) -> tuple[int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns

    def _read(self, size: int, at: int) -> bytes:
        if not hasattr(os, "pread"):  # Windows
            with self._lock:
                self._file.seek(at)
                return self._file.read(size)
        parts = []
        while size:
            part = os.pread(self._file.fileno(), size, at)
            if not part:
                break
            parts.append(part)
            size, at = size - len(part), at + len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class ArrayWriter:
    """Writes an array of known length to a `.npy` file sequentially."""

    def __init__(self, path: Path, dtype: npt.DTypeLike, count: int) -> None:
        self.path = path
        self._dtype = np.dtype(dtype)
        self._count = count
        self._file = path.open("wb")
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (count,)}
        np.lib.format.write_array_header_1_0(self._file, header)
        self._offset = self._file.tell()

    def add(self, values: Array) -> None:
        """Append `values`."""
        self._file.write(values.astype(self._dtype, copy=False).tobytes())

    def finish(self) -> FileArray:
        """Sync and close the file; return it reopened for reading."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return FileArray(self.path.open("rb", buffering=0), self._dtype, self._count, self._offset)


class Snapshot(Struct, frozen=True):
    """Columns over ordinals (first block), columns over terms (second), and the postings themselves (third).

    `superseded`, `valid_from` and `valid_to` serve filters; times are epoch seconds, open ends infinite. The list
    of term `i` is at `offsets[i]:offsets[i + 1]` of the postings, ordered by ordinal.
    """

    doc: Ints
    conversation: Ints
    at: Floats
    length: npt.NDArray[np.int32]
    segment_count: npt.NDArray[np.int32]
    type_code: npt.NDArray[np.uint16]
    superseded: Bools
    valid_from: Floats
    valid_to: Floats
    doc_order: Slots  # ordinals in the order of doc
    time_order: Slots  # ordinals in the order of (at, doc)
    length_before: Ints  # [N + 1] running sum of length

    term: Words  # sorted term numbers
    offsets: Ints  # [T + 1]
    segment_df: Ints
    conversation_df: npt.NDArray[np.int32]
    max_frequency: Frequencies
    author_terms: Words  # numbers of the terms that name authors

    ordinal: Slots | FileArray
    frequency: Frequencies | FileArray
    segments: Frequencies | FileArray

    types: tuple[str, ...]
    seq: int
    conversations: int  # a chunk without a conversation counts as one
    total_length: int
    total_segments: int

    @property
    def size(self) -> int:
        """Number of chunks."""
        return len(self.doc)

    def ordinals_of(self, docs: Ints) -> Ints:
        """The ordinal of each doc; -1 if it is not in this snapshot."""
        found = np.full(len(docs), -1, np.int64)
        if not self.size or not len(docs):
            return found
        place = np.minimum(np.searchsorted(self.doc, docs, sorter=self.doc_order), self.size - 1)
        ordinal = self.doc_order[place].astype(np.int64)
        hit = self.doc[ordinal] == docs
        found[hit] = ordinal[hit]
        return found

    def term_index(self, term: int) -> int:
        """Return the position of `term` among the terms of this snapshot; -1 if it is absent."""
        if term < 0 or not len(self.term):
            return -1
        place = int(np.searchsorted(self.term, np.uint32(term)))
        return place if place < len(self.term) and int(self.term[place]) == term else -1

    def range_of(self, conversations: Ints) -> tuple[Array, Array]:
        """Return the first ordinal of each conversation, and one past its last."""
        return (
            np.searchsorted(self.conversation, conversations, side="left"),
            np.searchsorted(self.conversation, conversations, side="right"),
        )


#: The arrays of a snapshot and their types.
_ARRAYS: dict[str, npt.DTypeLike] = {
    "doc": np.int64, "conversation": np.int64, "at": np.float64, "length": np.int32, "segment_count": np.int32,
    "type_code": np.uint16, "superseded": np.bool_, "valid_from": np.float64, "valid_to": np.float64,
    "doc_order": np.int32, "time_order": np.int32, "length_before": np.int64,
    "term": np.uint32, "offsets": np.int64, "segment_df": np.int64, "conversation_df": np.int32,
    "max_frequency": np.uint8, "author_terms": np.uint32,
    "ordinal": np.int32, "frequency": np.uint8, "segments": np.uint8,
}  # fmt: skip
_FIGURES = ("seq", "conversations", "total_length", "total_segments")
_READ_IN_PARTS = ("ordinal", "frequency", "segments")


def empty_snapshot() -> Snapshot:
    """An empty snapshot, older than every change."""
    arrays: dict[str, Array] = {name: np.zeros(0, dtype) for name, dtype in _ARRAYS.items()}
    arrays["length_before"] = arrays["offsets"] = np.zeros(1, np.int64)
    return Snapshot(**arrays, types=(), seq=0, conversations=0, total_length=0, total_segments=0)


def save_snapshot(snapshot: Snapshot, folder: Path) -> None:
    """Write the columns and term arrays of `snapshot` to `folder`, synced, with the metadata file last.

    The large posting arrays may already be files there: they are written while they are built.
    """
    sizes: dict[str, int] = {}
    marks: dict[str, list[int]] = {}
    for name in _ARRAYS:
        array = getattr(snapshot, name)
        sizes[name] = len(array)
        path = folder / f"{name}.npy"
        if not isinstance(array, FileArray):
            with path.open("wb") as file:
                np.save(file, array, allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
        marks[name] = [path.stat().st_mtime_ns, _checksum(path)]
    description = {
        "format": _FORMAT,
        "types": snapshot.types,
        **{name: getattr(snapshot, name) for name in _FIGURES},
        "sizes": sizes,
        "marks": marks,
    }
    with (folder / _META).open("wb") as file:
        file.write(msgspec.json.encode(description))
        file.flush()
        os.fsync(file.fileno())
    sync_folder(folder)


def open_snapshot(folder: Path) -> Snapshot:
    """Read the snapshot in `folder`; `DamagedSnapshot` if a file is missing, altered or of another format."""
    try:
        description = msgspec.json.decode((folder / _META).read_bytes())
        if description["format"] != _FORMAT:
            raise DamagedSnapshot(f"{folder} has format {description['format']}")
        fields: dict[str, Any] = {
            name: _read_array(
                folder / f"{name}.npy", dtype, description["sizes"][name], description["marks"][name]
            )
            for name, dtype in _ARRAYS.items()
        }
        fields |= {name: int(description[name]) for name in _FIGURES}
        return Snapshot(**fields, types=tuple(description["types"]))
    except (OSError, msgspec.DecodeError, ValueError, KeyError, TypeError, EOFError, RecursionError) as error:
        raise DamagedSnapshot(f"{folder}: {error}") from error


def _read_array(path: Path, dtype: npt.DTypeLike, count: int, mark: list[int]) -> Array | FileArray:
    """Read the array in a `.npy` file; raise `DamagedSnapshot` if the file was altered.

    This replaces `np.load`, which is slow: it evaluates each header as Python and resolves each path. The checksum is
    compared only if the file's modification time shows that it was written or copied.
    """
    expected = np.dtype(dtype)
    file = path.open("rb", buffering=0)
    try:
        start = file.read(128)
        if start[:8] != b"\x93NUMPY\x01\x00" or f"'descr': '{expected.str}'".encode() not in start:
            raise DamagedSnapshot(f"{path} does not hold {expected}")
        offset = 10 + int.from_bytes(start[8:10], "little")
        status = os.fstat(file.fileno())
        if status.st_size != offset + count * expected.itemsize:
            raise DamagedSnapshot(f"{path} does not hold {count} numbers")
        array = FileArray(file, expected, count, offset)
        if status.st_mtime_ns != mark[0] and _checksum(path) != mark[1]:
            raise DamagedSnapshot(f"{path} does not hold what was written")
        if path.stem in _READ_IN_PARTS:
            return array
        whole = array[:]
    except BaseException:
        file.close()
        raise
    file.close()
    return whole


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            found = zlib.crc32(piece, found)
    return found


_BATCH = 10_000

#: The columns of an index row, in the order that `postings_of` expects.
_COLUMNS = (
    f"SELECT c.doc, ifnull(c.conversation, {NO_CONVERSATION}), c.at, c.type, c.superseded_by IS NOT NULL,"
    f" c.valid_from, c.valid_to, ifnull(s.data, x'{NO_SEGMENTS.hex()}') FROM"
)
_ALL = "SELECT doc FROM chunks WHERE ns = ? AND status = 0"
#: CROSS JOIN makes SQLite look up the docs one by one; otherwise it would scan the whole namespace.
_SOME = (
    f"{_COLUMNS} json_each(?) j CROSS JOIN chunks c ON c.doc = j.value LEFT JOIN segments s ON s.doc = c.doc"
    " WHERE c.ns = ? AND c.status = 0"
)


class Columns(Struct, frozen=True):
    """The columns of a snapshot, but with type names instead of type codes."""

    doc: Ints
    conversation: Ints
    at: Floats
    length: npt.NDArray[np.int32]
    segment_count: npt.NDArray[np.int32]
    type_name: npt.NDArray[np.object_]
    superseded: Bools
    valid_from: Floats
    valid_to: Floats

    def taken(self, keep: Array) -> Columns:
        """Return the chunks that `keep` (a mask or positions) selects."""
        return Columns(*(getattr(self, name)[keep] for name in self.__struct_fields__))

    @staticmethod
    def joined(parts: Sequence[Columns]) -> Columns:
        """Concatenate several sets of columns."""
        return Columns(
            *(np.concatenate([getattr(p, name) for p in parts]) for name in Columns.__struct_fields__)
        )


class ChunkPostings(Struct, frozen=True):
    """Chunks (`columns`) and their postings: term, position of the chunk, frequency, segments with the term.

    `author_terms` are the numbers of the terms that name authors, sorted.
    """

    columns: Columns
    term: Words
    slot: Slots
    frequency: Frequencies
    segments: Frequencies
    author_terms: Words

    @property
    def size(self) -> int:
        """Number of chunks."""
        return len(self.columns.doc)

    def without(self, docs: Ints) -> ChunkPostings:
        """Return a copy without the given chunks."""
        removed = contained(self.columns.doc, docs)
        if not removed.any():
            return self
        keep = ~removed
        number = np.cumsum(keep) - 1
        kept = keep[self.slot]
        return ChunkPostings(
            self.columns.taken(keep),
            self.term[kept],
            number[self.slot[kept]].astype(np.int32),
            self.frequency[kept],
            self.segments[kept],
            self.author_terms,
        )

    def plus(self, more: ChunkPostings) -> ChunkPostings:
        """Return a copy with more chunks."""
        return ChunkPostings(
            Columns.joined([self.columns, more.columns]),
            np.concatenate([self.term, more.term]),
            np.concatenate([self.slot, more.slot + np.int32(self.size)]),
            np.concatenate([self.frequency, more.frequency]),
            np.concatenate([self.segments, more.segments]),
            union(self.author_terms, more.author_terms),
        )


def load_rows(connection: sqlite3.Connection, ns: int, docs: Ints | None = None) -> Iterator[ChunkPostings]:
    """Yield a namespace's active chunks, or those among `docs`, in batches."""
    if docs is None:
        # Read all numbers first, so that no cursor stays open: an open read cursor blocks commits of writers.
        docs = np.sort(np.fromiter((row[0] for row in connection.execute(_ALL, (ns,))), np.int64))
    for first in range(0, len(docs), _BATCH):
        rows = connection.execute(_SOME, (json_list(docs[first : first + _BATCH].tolist()), ns)).fetchall()
        yield postings_of(rows)


def postings_of(rows: Sequence[tuple[Any, ...]]) -> ChunkPostings:
    """Decode rows of the index tables (see `_COLUMNS`)."""
    doc, conversation, at, kind, superseded, valid_from, valid_to, data = (
        zip(*rows, strict=True) if rows else ((),) * 8
    )
    decoded = decode_many(data)
    segment_length = np.concatenate([[0], np.cumsum(decoded.length)])
    columns = Columns(
        doc=np.array(doc, np.int64),
        conversation=np.array(conversation, np.int64),
        at=np.array(at, np.float64),
        length=np.diff(segment_length[decoded.chunk_start]).astype(np.int32),
        segment_count=np.diff(decoded.chunk_start).astype(np.int32),
        type_name=np.array(kind, np.object_),
        superseded=np.array(superseded, np.bool_),
        valid_from=_times(valid_from, -np.inf),
        valid_to=_times(valid_to, np.inf),
    )
    terms = document_terms(decoded)
    return ChunkPostings(
        columns,
        terms.term.astype(np.uint32),
        terms.chunk.astype(np.int32),
        terms.frequency,
        terms.segments,
        distinct(decoded.author[decoded.author >= 0]).astype(np.uint32),
    )


def _times(texts: Sequence[str | None], missing: float) -> Floats:
    """Convert stored times to epoch seconds; None becomes `missing`."""
    found = np.full(len(texts), missing)
    for place, text in enumerate(texts):
        if text is not None:
            found[place] = parse_time(text).timestamp()
    return found


class View:
    """The postings of one namespace at one moment; immutable except for cached results.

    A *slot* is an ordinal of the snapshot, or the snapshot's size plus the position of a chunk in the delta. `masked`
    masks ordinals of chunks that the delta replaces or that were archived or removed.

    Attributes:
        touched: conversations with chunks in the delta or the mask, sorted, without NO_CONVERSATION.
        members: slots of touched conversations in order, computed on first use.
        authors: names of authors, computed on first use.
        waiting: number of chunks not merged into the snapshot: those in the delta, and those masked in the snapshot.
    """

    def __init__(
        self, snapshot: Snapshot, delta: ChunkPostings, masked: Bools, seq: int, generation: str | None
    ) -> None:
        self.snapshot, self.delta, self.masked = snapshot, delta, masked
        self.seq, self.generation = seq, generation
        self.members: dict[int, Ints] = {}
        self.authors: frozenset[str] | None = None
        new = delta.columns
        self.masked_ordinals = ordinals = np.flatnonzero(masked).astype(np.int32)
        left = snapshot.conversation[ordinals]
        touched = union(left, new.conversation)
        self.touched = touched = touched[touched != NO_CONVERSATION]
        first, last = snapshot.range_of(touched)
        before = last - first
        now = before - _count_in(left, touched) + _count_in(new.conversation, touched)
        alone = int((new.conversation == NO_CONVERSATION).sum()) - int((left == NO_CONVERSATION).sum())
        self.waiting = delta.size + len(ordinals)
        self.chunks = snapshot.size - len(ordinals) + delta.size
        lost, added = _total(snapshot.segment_count[ordinals]), _total(new.segment_count)
        self.segments = snapshot.total_segments - lost + added
        self.total_length = snapshot.total_length - _total(snapshot.length[ordinals]) + _total(new.length)
        self.conversations = snapshot.conversations + alone + int((now > 0).sum()) - int((before > 0).sum())

    def take(self, name: str, slots: Ints) -> Array:
        """Return the values of a column at the given slots."""
        size = self.snapshot.size
        old: Array = getattr(self.snapshot, name)
        if not self.delta.size:
            return old[slots]
        new: Array = getattr(self.delta.columns, name)
        taken = np.empty(len(slots), new.dtype)
        in_snapshot = slots < size
        taken[in_snapshot] = old[slots[in_snapshot]]
        taken[~in_snapshot] = new[slots[~in_snapshot] - size]
        return taken

    def both(self, name: str, old: Slots, new: Slots) -> Array:
        """Return the values of a column at some ordinals of the snapshot, followed by some chunks of the delta."""
        first, last = getattr(self.snapshot, name), getattr(self.delta.columns, name)
        if not len(old):
            return last[new]  # type: ignore[no-any-return]
        return np.concatenate((first[old], last[new])) if len(new) else first[old]

    def column(self, name: str) -> Array:
        """Return a column over all slots."""
        old: Array = getattr(self.snapshot, name)
        if not self.delta.size:
            return old
        return np.concatenate([old, getattr(self.delta.columns, name)])


def _total(values: Array) -> int:
    return int(values.sum(dtype=np.int64))


def _count_in(values: Ints, among: Ints) -> Ints:
    """Count how often each value of the sorted `among` occurs in `values`."""
    values = np.sort(values)
    return np.searchsorted(values, among, side="right") - np.searchsorted(values, among, side="left")


class LocalTermPostings(Struct, frozen=True):
    """Postings of one term: its list in the snapshot (sorted ordinals) and in the delta (positions of chunks)."""

    ordinal: Slots
    frequency: Frequencies
    segments: Frequencies
    new: Slots
    new_frequency: Frequencies
    new_segments: Frequencies
    max_frequency: int
    index: int  # position among the terms of the snapshot; -1 if the snapshot does not contain the term
    lost: Ints  # positions in `ordinal` of masked chunks
    df: int  # number of chunks that contain the term

    def whole(self) -> tuple[Slots, Frequencies]:
        """Return every ordinal of the snapshot that contains the term, masked or not, and its frequency there."""
        return self.ordinal, self.frequency

    def find(self, slots: Slots) -> tuple[Ints, Frequencies]:
        """Return the positions in `slots` of ordinals that contain the term, and its frequency there."""
        which, place = places(self.ordinal, slots)
        return which, self.frequency[place]

    def among(self, old: Slots, new: Slots) -> tuple[Bools, Bools]:
        """Return which sorted ordinals of the snapshot, and which sorted chunks of the delta, contain the term."""
        return held_in(self.ordinal, old), held_in(self.new, new)


def term_list(view: View, term: int) -> LocalTermPostings:
    """Return the postings of the term with this dictionary number; empty for -1."""
    snap, delta = view.snapshot, view.delta
    index = snap.term_index(term)
    start, end = (int(snap.offsets[index]), int(snap.offsets[index + 1])) if index >= 0 else (0, 0)
    ordinal = snap.ordinal[start:end]
    new = np.flatnonzero(delta.term == np.uint32(term)) if term >= 0 and delta.size else NOTHING
    new_frequency = delta.frequency[new]
    highest = int(snap.max_frequency[index]) if index >= 0 else 0
    lost = places(ordinal, view.masked_ordinals)[1] if len(view.masked_ordinals) else NOTHING
    if len(new):
        highest = max(highest, int(new_frequency.max()))
    return LocalTermPostings(
        ordinal=ordinal,
        frequency=snap.frequency[start:end],
        segments=snap.segments[start:end],
        new=delta.slot[new],
        new_frequency=new_frequency,
        new_segments=delta.segments[new],
        max_frequency=highest,
        index=index,
        lost=lost,
        df=len(ordinal) - len(lost) + len(new),
    )
