"""The immutable postings of one namespace: arrays in files.

Chunks are numbered by *ordinal* in the order (conversation, time, doc), chunks without a conversation first. So a
conversation is one range of ordinals, its part of any posting list is one slice, and neighbours are the next
ordinals. A snapshot never changes; what was written after it is in the delta (`delta.py`).

No file is mapped into memory: one that another program cuts short while it is mapped ends the process (SIGBUS).
Columns are read when a snapshot is opened, lists of postings when they are asked for.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from rlm_mem.store.local.connections import DamagedSnapshot

__all__ = [
    "NO_CONVERSATION",
    "ArrayWriter",
    "FileArray",
    "Snapshot",
    "empty_snapshot",
    "open_snapshot",
    "save_snapshot",
]

Array: TypeAlias = npt.NDArray[Any]

#: Conversation number of a chunk that belongs to none.
NO_CONVERSATION = -1

_FORMAT = 2
_META = "meta.json"
_PIECE = 1 << 20  # bytes checked at a time


class FileArray:
    """A one-dimensional array in a `.npy` file, of which slices are read as they are asked for.

    The file stays open, so it can be read after its name is gone. Safe to use from several threads.

    Args:
        file: open for reading; owned by this object from now on.
        dtype: of the numbers.
        count: how many there are.
        offset: where the first one lies.
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
        # Looked at after reading: what was read before the file changed is sound.
        if len(data) != (last - first) * size or self._changed_at() != self._mark:
            raise DamagedSnapshot(f"{self._file.name} was changed or cut short while it was open")
        return np.frombuffer(data, self._dtype)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

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
    """Writes an array of known length into a `.npy` file, piece by piece from its beginning."""

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
        """Everything that was written, to read."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return FileArray(self.path.open("rb", buffering=0), self._dtype, self._count, self._offset)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Columns over ordinals (first block), over terms (second), and the postings themselves (third).

    `superseded`, `valid_from` and `valid_to` serve filters; times are epoch seconds, open ends infinite. Lists of a
    term lie at `offsets[i]:offsets[i + 1]` of the postings, ordered by ordinal.
    """

    doc: npt.NDArray[np.int64]
    conversation: npt.NDArray[np.int64]
    at: npt.NDArray[np.float64]
    length: npt.NDArray[np.int32]
    segment_count: npt.NDArray[np.int32]
    type_code: npt.NDArray[np.uint16]
    superseded: npt.NDArray[np.bool_]
    valid_from: npt.NDArray[np.float64]
    valid_to: npt.NDArray[np.float64]
    doc_order: npt.NDArray[np.int32]  # ordinals in the order of doc
    time_order: npt.NDArray[np.int32]  # ordinals in the order of (at, doc)
    length_before: npt.NDArray[np.int64]  # [N + 1] running sum of length

    term: npt.NDArray[np.uint32]  # sorted
    offsets: npt.NDArray[np.int64]  # [T + 1]
    segment_df: npt.NDArray[np.int64]
    conversation_df: npt.NDArray[np.int32]
    max_frequency: npt.NDArray[np.uint8]
    author_terms: npt.NDArray[np.uint32]  # the terms that are authors

    ordinal: npt.NDArray[np.int32] | FileArray
    frequency: npt.NDArray[np.uint8] | FileArray
    segments: npt.NDArray[np.uint8] | FileArray

    types: tuple[str, ...]
    seq: int
    conversations: int  # a chunk without a conversation counts as one
    total_length: int
    total_segments: int

    @property
    def size(self) -> int:
        """Number of chunks."""
        return len(self.doc)

    def ordinals_of(self, docs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The ordinal of each doc, -1 for one that is not in this snapshot."""
        found = np.full(len(docs), -1, np.int64)
        if not self.size or not len(docs):
            return found
        place = np.minimum(np.searchsorted(self.doc, docs, sorter=self.doc_order), self.size - 1)
        ordinal = self.doc_order[place].astype(np.int64)
        hit = self.doc[ordinal] == docs
        found[hit] = ordinal[hit]
        return found

    def term_index(self, term: int) -> int:
        """The position of `term` among this snapshot's terms, -1 if it is not one of them."""
        if term < 0 or not len(self.term):
            return -1
        place = int(np.searchsorted(self.term, np.uint32(term)))
        return place if place < len(self.term) and int(self.term[place]) == term else -1

    def range_of(self, conversations: npt.NDArray[np.int64]) -> tuple[Array, Array]:
        """First ordinal, and one past the last, of each conversation."""
        return (
            np.searchsorted(self.conversation, conversations, side="left"),
            np.searchsorted(self.conversation, conversations, side="right"),
        )


#: The arrays of a snapshot and what their files hold.
_ARRAYS: dict[str, npt.DTypeLike] = {
    "doc": np.int64, "conversation": np.int64, "at": np.float64, "length": np.int32, "segment_count": np.int32,
    "type_code": np.uint16, "superseded": np.bool_, "valid_from": np.float64, "valid_to": np.float64,
    "doc_order": np.int32, "time_order": np.int32, "length_before": np.int64,
    "term": np.uint32, "offsets": np.int64, "segment_df": np.int64, "conversation_df": np.int32,
    "max_frequency": np.uint8, "author_terms": np.uint32,
    "ordinal": np.int32, "frequency": np.uint8, "segments": np.uint8,
}  # fmt: skip
_READ_IN_PARTS = ("ordinal", "frequency", "segments")


def empty_snapshot() -> Snapshot:
    """A snapshot of nothing, older than every change."""
    arrays: dict[str, Array] = {name: np.zeros(0, dtype) for name, dtype in _ARRAYS.items()}
    arrays["length_before"] = arrays["offsets"] = np.zeros(1, np.int64)
    return Snapshot(
        **arrays,
        types=(),
        seq=0,
        conversations=0,
        total_length=0,
        total_segments=0,
    )


def save_snapshot(snapshot: Snapshot, folder: Path) -> None:
    """Write the columns and term arrays of `snapshot` into `folder`, synced, the description last.

    The big posting arrays may already be files there (they are written while being made).
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
        "seq": snapshot.seq,
        "types": list(snapshot.types),
        "conversations": snapshot.conversations,
        "total_length": snapshot.total_length,
        "total_segments": snapshot.total_segments,
        "sizes": sizes,
        "marks": marks,
    }
    with (folder / _META).open("w", encoding="utf-8") as file:
        json.dump(description, file)
        file.flush()
        os.fsync(file.fileno())
    _sync(folder)


def open_snapshot(folder: Path) -> Snapshot:
    """Read the snapshot in `folder`; `DamagedSnapshot` where a file is missing, altered or of another format."""
    try:
        description = json.loads((folder / _META).read_text(encoding="utf-8"))
        if description["format"] != _FORMAT:
            raise DamagedSnapshot(f"{folder} has format {description['format']}")
        arrays: dict[str, Any] = {
            name: _opened(
                folder / f"{name}.npy", dtype, description["sizes"][name], description["marks"][name]
            )
            for name, dtype in _ARRAYS.items()
        }
        return Snapshot(
            **arrays,
            types=tuple(description["types"]),
            seq=int(description["seq"]),
            conversations=int(description["conversations"]),
            total_length=int(description["total_length"]),
            total_segments=int(description["total_segments"]),
        )
    except (OSError, ValueError, KeyError, TypeError, EOFError, RecursionError) as error:
        raise DamagedSnapshot(f"{folder}: {error}") from error


def _opened(path: Path, dtype: npt.DTypeLike, count: int, mark: list[int]) -> Array | FileArray:
    """The array in a `.npy` file; `DamagedSnapshot` unless it holds what was written.

    `np.load` would do, but it evaluates each header as Python and resolves each path: half the time of an open. A file
    is compared with its checksum only if its time shows that it was written or copied.
    """
    wanted = np.dtype(dtype)
    file = path.open("rb", buffering=0)
    try:
        start = file.read(128)
        if start[:8] != b"\x93NUMPY\x01\x00" or f"'descr': '{wanted.str}'".encode() not in start:
            raise DamagedSnapshot(f"{path} does not hold {wanted}")
        offset = 10 + int.from_bytes(start[8:10], "little")
        status = os.fstat(file.fileno())
        if status.st_size != offset + count * wanted.itemsize:
            raise DamagedSnapshot(f"{path} does not hold {count} numbers")
        array = FileArray(file, wanted, count, offset)
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


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
