"""Counting reads: kept in memory and written to the index in small lots, so that a read never waits for a writer."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable

from rlm_mem.chunk import Chunk
from rlm_mem.errors import InvalidChunk
from rlm_mem.store.local.layout import Layout
from rlm_mem.store.local.rows import Row, find_row
from rlm_mem.store.local.sync import read_chunk_file
from rlm_mem.store.local.transaction import Transaction

__all__ = ["ReadBuffer", "Reads", "fold_reads", "unsaved_reads"]

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


def fold_reads(transaction: Transaction, read: Callable[[Row], Chunk | None]) -> int:
    """Write the counts that the index alone knows into the chunks' files; how many files were written."""
    folded = 0
    for chunk_id, count, when in transaction.connection.execute(
        "SELECT id, access_count, accessed_at FROM chunks WHERE access_unsaved = 1 AND status = 0"
    ).fetchall():
        row = find_row(transaction.connection, chunk_id)
        chunk = read(row) if row else None
        if chunk is not None:
            chunk.metadata.access_count, chunk.metadata.accessed_at = count, when
            transaction.put(chunk, keep_version=False)
            folded += 1
    return folded


def unsaved_reads(connection: sqlite3.Connection, layout: Layout) -> Reads:
    """Reads that are in the index but not yet in the files: what a rebuilt index would lose."""
    reads: Reads = {}
    for chunk_id, path, count, when in connection.execute(
        "SELECT id, path, access_count, accessed_at FROM chunks WHERE access_unsaved = 1"
    ):
        try:
            chunk, _ = read_chunk_file(layout.absolute(path))
        except (InvalidChunk, OSError):
            continue  # the rebuild reports it
        reads[chunk_id] = (max(0, count - chunk.metadata.access_count), when)
    return reads
