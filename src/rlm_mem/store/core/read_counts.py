"""Reads of chunks, counted in memory until a backend writes them."""

from __future__ import annotations

import threading
import time

__all__ = ["ReadBuffer", "Reads"]

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
