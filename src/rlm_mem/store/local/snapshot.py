"""The immutable postings of one namespace: arrays in files, memory-mapped and shared by all processes.

Chunks are numbered by *ordinal* in the order (conversation, time, doc), chunks without a conversation first. So a
conversation is one range of ordinals, its part of any posting list is one slice, and neighbours are the next
ordinals. A snapshot never changes; what was written after it is in the delta (`delta.py`).
"""

from __future__ import annotations

import json
import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "NO_CONVERSATION",
    "DamagedSnapshot",
    "Snapshot",
    "empty_snapshot",
    "open_snapshot",
    "save_snapshot",
]

Array: TypeAlias = npt.NDArray[Any]

#: Conversation number of a chunk that belongs to none.
NO_CONVERSATION = -1

_FORMAT = 1
_META = "meta.json"


class DamagedSnapshot(Exception):
    """The files of a snapshot are missing or do not fit together; internal: it is rebuilt, nobody sees this."""


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

    ordinal: npt.NDArray[np.int32]
    frequency: npt.NDArray[np.uint8]
    segments: npt.NDArray[np.uint8]

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
        """Where `term` stands among this snapshot's terms, -1 for nowhere."""
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

    The big posting arrays may already be files there (they are written as memory maps while being made).
    """
    sizes: dict[str, int] = {}
    for name in _ARRAYS:
        array = getattr(snapshot, name)
        sizes[name] = len(array)
        path = folder / f"{name}.npy"
        if isinstance(array.base, np.memmap) or isinstance(array, np.memmap):
            _sync(path)
            continue
        with path.open("wb") as file:
            np.save(file, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
    description = {
        "format": _FORMAT,
        "seq": snapshot.seq,
        "types": list(snapshot.types),
        "conversations": snapshot.conversations,
        "total_length": snapshot.total_length,
        "total_segments": snapshot.total_segments,
        "sizes": sizes,
    }
    with (folder / _META).open("w", encoding="utf-8") as file:
        json.dump(description, file)
        file.flush()
        os.fsync(file.fileno())
    _sync(folder)


def open_snapshot(folder: Path) -> Snapshot:
    """Map the snapshot in `folder`; `DamagedSnapshot` where a file is missing, cut short or of another format."""
    try:
        description = json.loads((folder / _META).read_text(encoding="utf-8"))
        if description["format"] != _FORMAT:
            raise DamagedSnapshot(f"{folder} has format {description['format']}")
        arrays = {
            name: _mapped(folder / f"{name}.npy", np.dtype(dtype), int(description["sizes"][name]))
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
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise DamagedSnapshot(f"{folder}: {error}") from error


def _mapped(path: Path, dtype: np.dtype[Any], count: int) -> Array:
    """The array in a `.npy` file, mapped; `DamagedSnapshot` unless it holds exactly `count` numbers of `dtype`.

    `np.load` would do, but it evaluates each header as Python and resolves each path: half the time of an open.
    """
    with path.open("rb") as file:
        start = file.read(128)
        if start[:8] != b"\x93NUMPY\x01\x00" or f"'descr': '{dtype.str}'".encode() not in start:
            raise DamagedSnapshot(f"{path} does not hold {dtype}")
        offset = 10 + int.from_bytes(start[8:10], "little")
        if os.fstat(file.fileno()).st_size != offset + count * dtype.itemsize:
            raise DamagedSnapshot(f"{path} does not hold {count} numbers")
        if not count:
            return np.zeros(0, dtype)  # nothing to map
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype, count, offset)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
