"""Counting reads: kept in memory and written to the index in small lots, so that a read never waits for a writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from rlm_mem.chunk import Chunk
from rlm_mem.errors import InvalidChunk
from rlm_mem.store.core.read_counts import Reads
from rlm_mem.store.core.rows import ChunkRow
from rlm_mem.store.local.layout import Layout
from rlm_mem.store.local.row_writer import find_row
from rlm_mem.store.local.sync import read_chunk_file
from rlm_mem.store.local.transaction import Transaction

__all__ = ["fold_reads", "unsaved_reads"]


def fold_reads(transaction: Transaction, read: Callable[[ChunkRow], Chunk | None]) -> int:
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
    ).fetchall():
        try:
            chunk, _ = read_chunk_file(layout.absolute(path))
        except (InvalidChunk, OSError):
            continue  # the rebuild reports it
        reads[chunk_id] = (max(0, count - chunk.metadata.access_count), when)
    return reads
