"""The state of a local store at a glance, at a cost that does not grow with the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.store.core.answers import StoreStatus

if TYPE_CHECKING:
    import sqlite3

    from rlm_mem.store.local.layout import Layout

__all__ = ["status_of"]


def status_of(index: sqlite3.Connection, layout: Layout) -> StoreStatus:
    """Look at the state of a local store; the whole check is ``rlm_mem.store.local.integrity.check``."""
    unreadable = index.execute("SELECT count(*) FROM unreadable").fetchone()[0]
    unsaved = index.execute("SELECT count(*) FROM chunks WHERE access_unsaved = 1").fetchone()[0]
    try:
        unfinished = sum(1 for _ in layout.unfinished.iterdir())
    except OSError:  # no such folder, or somebody else's: nothing that could be unfinished here
        unfinished = 0
    return StoreStatus(unreadable, unfinished, unsaved)
