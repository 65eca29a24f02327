"""Buffered access counts: kept in memory, and written to the database in batches when no other process writes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rlm_mem.errors import StorageError
from rlm_mem.store.core.records import ReadBuffer, Reads
from rlm_mem.store.postgres.schema import namespace_key
from rlm_mem.store.postgres.values import Statement

if TYPE_CHECKING:
    from rlm_mem.store.postgres.pool import Pool

_logger = logging.getLogger("rlm_mem.store")

_LOCK_WAIT = 5.0  # seconds
_LOCK = "SELECT 1 FROM rlm_mem.namespaces WHERE ns = %s AND state = 'here' FOR NO KEY UPDATE SKIP LOCKED"


class ReadCounts:
    """Buffered read counts by namespace; thread-safe."""

    def __init__(self) -> None:
        self._buffers: dict[str, ReadBuffer] = {}
        self._guard = threading.Lock()

    def of(self, namespace: str) -> ReadBuffer:
        """Return the buffer of a namespace."""
        with self._guard:
            return self._buffers.setdefault(namespace, ReadBuffer())

    def flush(self, place: Callable[[str], Pool], *, wait: bool) -> int:
        """Write the buffered reads, keeping those that cannot be written now; return the number of chunks written.

        Args:
            place: maps a namespace to its database.
            wait: wait a few seconds for the lock, instead of leaving the reads for the next flush.
        """
        with self._guard:
            buffers = list(self._buffers.items())
        written = 0
        until = time.monotonic() + (_LOCK_WAIT if wait else 0.0)
        for namespace, buffer in buffers:
            reads = buffer.take()
            if not reads:
                continue
            try:
                while not (done := _add(place(namespace), namespace, reads)) and time.monotonic() < until:
                    time.sleep(0.05)
            except StorageError as error:  # counts are a convenience: the next flush writes them
                _logger.debug("access counts not written yet: %s", error)
                done = False
            if done:
                written += len(reads)
            else:
                buffer.put_back(reads)
        return written


def _add(pool: Pool, namespace: str, reads: Reads) -> bool:
    """Add reads under the lock of the namespace; False if another process holds it, or the namespace was moved."""
    ns = namespace_key(namespace)
    return bool(pool.change([(_LOCK, (ns,)), touching(ns, reads)], only_if_found=True))


def touching(ns: int, reads: Reads) -> Statement:
    """Return the statement that adds reads to the counts of chunks."""
    ids = sorted(reads)
    return (
        "INSERT INTO rlm_mem.reads AS r (ns, doc, access_count, accessed_at)"
        " SELECT c.ns, c.doc, g.n, g.at FROM unnest(%s::text[], %s::integer[], %s::text[]) AS g(id, n, at)"
        " JOIN rlm_mem.chunks c ON c.ns = %s AND c.id = g.id ORDER BY c.doc"
        " ON CONFLICT (ns, doc) DO UPDATE SET access_count = r.access_count + excluded.access_count,"
        " accessed_at = greatest(r.accessed_at, excluded.accessed_at)",
        (ids, [reads[chunk_id][0] for chunk_id in ids], [reads[chunk_id][1] for chunk_id in ids], ns),
    )
