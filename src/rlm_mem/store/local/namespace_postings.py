"""The postings of each namespace of a local store: opened when first asked for, merged when it is due."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_mem.store.local.connections import DamagedSnapshot

if TYPE_CHECKING:
    from rlm_mem.store.local.postings import PostingsIndex

__all__ = ["NamespacePostings"]

_logger = logging.getLogger("rlm_mem.store")


class NamespacePostings:
    """Hands out one ``PostingsIndex`` per namespace; safe to use from several threads.

    Args:
        folder: where snapshots lie.
        connect: a new connection for merging in the background; None where nothing may be written.
    """

    def __init__(self, folder: Path, connect: Callable[[], sqlite3.Connection] | None) -> None:
        self._folder = folder
        self._connect = connect
        self._open: dict[int, PostingsIndex] = {}
        self._guard = threading.Lock()

    def of(self, ns: int) -> PostingsIndex:
        """The postings of the namespace with this number."""
        from rlm_mem.store.local.postings import PostingsIndex

        with self._guard:
            index = self._open.get(ns)
            if index is None:
                index = PostingsIndex(
                    self._folder, ns, connect=self._connect, read_only=self._connect is None
                )
                self._open[ns] = index
            return index

    def maintain(self, connection: sqlite3.Connection) -> None:
        """Merge what waits, in every namespace that has grown enough."""
        from rlm_mem.store.local.postings_state import merge_is_due

        for (ns,) in connection.execute("SELECT ns FROM namespaces").fetchall():
            try:
                if merge_is_due(connection, self._folder, ns):
                    self.of(ns).maintain(connection)
            except (
                sqlite3.Error,
                OSError,
                DamagedSnapshot,
            ) as error:  # a derived thing: the next process maintains it
                _logger.info("postings not maintained: %s", error)

    def close(self) -> None:
        """Let go of every snapshot; the next question opens them anew."""
        with self._guard:
            for index in self._open.values():
                index.close()
            self._open.clear()
