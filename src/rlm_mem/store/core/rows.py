"""What an index records of one chunk, as plain data; the same for every backend."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from rlm_mem.chunk import Chunk, normalised_hash, parse_time
from rlm_mem.store.core.files import Signature

__all__ = [
    "ReadBuffer",
    "Reads",
    "ACTIVE",
    "ARCHIVED",
    "Encode",
    "IndexEntry",
    "entry_of",
    "epoch",
    "repeated_prefix",
    "surroundings",
    "ChunkRow",
]

#: Characters of a path, and of all that a chunk stands below, that are indexed.
_MOST_OF_PATH = 200
_MOST_AROUND = 400

Encode = Callable[[str, int, str, Callable[[str], int]], bytes]
"""From content, the length of its repeated prefix and a numbering of terms to the encoded segments of a chunk."""


ACTIVE = 0


ARCHIVED = 1


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """What the store needs to know of a chunk before it reads it; the last four only where chunks are files."""

    doc: int
    id: str
    ns: int
    status: int
    revision: int
    content_hash: str
    accessed_at: str
    access_count: int
    tokens: int
    path: str = ""
    size: int = 0
    mtime_ns: int = 0
    inode: int = 0

    @property
    def signature(self) -> Signature:
        """The file as it was when the index last read it."""
        return Signature(self.size, self.mtime_ns, self.inode)


class IndexEntry(msgspec.Struct, array_like=True):
    """What the index holds of a chunk but for its place, its file and its segments; can travel between processes."""

    namespace: str
    conversation_id: str | None
    id: str
    type: str
    at: float
    created_at: str
    modified_at: str
    occurred_at: str | None
    valid_from: str | None
    valid_to: str | None
    superseded_by: str | None
    confidence: float
    tokens: int
    revision: int
    source: str
    content_hash: str
    norm_hash: str
    accessed_at: str
    access_count: int
    tags: list[str]
    links: list[tuple[str, str, float, str, str | None]]


def entry_of(chunk: Chunk) -> IndexEntry:
    """The entry of a chunk."""
    meta = chunk.metadata
    return IndexEntry(
        chunk.namespace, meta.conversation_id, chunk.id, chunk.type, epoch(meta.at), meta.created_at,
        meta.modified_at, meta.occurred_at, meta.valid_from, meta.valid_to, meta.superseded_by, meta.confidence,
        chunk.tokens, chunk.revision, meta.source, meta.content_hash, normalised_hash(chunk.content),
        meta.accessed_at, meta.access_count, chunk.tags,
        [(link.target_id, link.type, link.strength, link.created_at, link.reasoning) for link in chunk.links],
    )  # fmt: skip


def repeated_prefix(chunk: Chunk) -> int:
    """How many of a chunk's first characters repeat the chunk before it: they are not indexed twice."""
    overlap = chunk.metadata.provenance.get("overlap", 0)
    return overlap if isinstance(overlap, int) and 0 <= overlap < len(chunk.content) else 0


def surroundings(chunk: Chunk) -> str:
    """What a chunk stands below, as one line of text that is indexed with each of its segments.

    These are the headings in force where it begins, the title of its document and the end of its path, as far as its
    provenance tells them.
    """
    provenance = chunk.metadata.provenance
    headings = provenance.get("headings")
    named = [one for one in headings if isinstance(one, str)] if isinstance(headings, list) else []
    title, path = provenance.get("title"), provenance.get("path")
    if isinstance(title, str):
        named.append(title)
    if isinstance(path, str):
        folders, _, name = path[-_MOST_OF_PATH:].replace("\\", "/").rpartition("/")
        stem, _, ending = name.rpartition(".")
        named += [*folders.split("/")[-2:], stem if stem and ending.isalnum() else name]
    return " ".join(" ".join(named).split())[:_MOST_AROUND]


def epoch(time_text: str) -> float:
    """Seconds since 1970 of a stored time."""
    return parse_time(time_text).timestamp()


# --- reads, counted in memory until a backend writes them to the rows ---------------------------------------------

Reads = dict[str, tuple[int, str]]
"""Reads by chunk id: how many, and when the last one was."""

_SECONDS = 1.0
_COUNT = 100


class ReadBuffer:
    """Reads that the index does not know yet; safe to use from several threads."""

    def __init__(self) -> None:
        self._reads: Reads = {}
        self._guard = threading.Lock()
        self._taken_at = time.monotonic()

    def add(self, chunk_id: str, when: str) -> bool:
        """Note one read; True when it is time to write the lot."""
        with self._guard:
            self._reads[chunk_id] = (self._reads.get(chunk_id, (0, ""))[0] + 1, when)
            return len(self._reads) >= _COUNT or time.monotonic() - self._taken_at > _SECONDS

    def of(self, chunk_id: str) -> tuple[int, str] | None:
        """What is noted for one chunk."""
        return self._reads.get(chunk_id)

    @property
    def size(self) -> int:
        """How many chunks have reads noted."""
        return len(self._reads)

    def take(self) -> Reads:
        """Everything noted; the buffer is empty then."""
        with self._guard:
            self._taken_at = time.monotonic()
            reads, self._reads = self._reads, {}
            return reads

    def put_back(self, reads: Reads) -> None:
        """Note again what could not be written."""
        with self._guard:
            for chunk_id, (count, when) in reads.items():
                more, latest = self._reads.get(chunk_id, (0, ""))
                self._reads[chunk_id] = (count + more, max(when, latest))
