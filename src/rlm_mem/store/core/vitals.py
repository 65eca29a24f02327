"""What can be said of a store's state at a glance, at a cost that does not grow with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

    from rlm_mem.store.local.layout import Layout

__all__ = ["Vitals", "vitals_of"]


@dataclass(frozen=True)
class Vitals:
    """Counts that are 0 in a sound store at rest (see ``Backend.vitals``).

    Attributes:
        unreadable_files: chunk files that did not validate when last looked at.
        unfinished_files: files on their way in or out: of writes at work, or of a killed process.
        unsaved_reads: chunks whose access count is not written yet (the next checkpoint writes it).
    """

    unreadable_files: int = 0
    unfinished_files: int = 0
    unsaved_reads: int = 0


def vitals_of(index: sqlite3.Connection, layout: Layout) -> Vitals:
    """Look at the state of a local store; the whole check is ``rlm_mem.store.local.integrity.check``."""
    unreadable = index.execute("SELECT count(*) FROM unreadable").fetchone()[0]
    unsaved = index.execute("SELECT count(*) FROM chunks WHERE access_unsaved = 1").fetchone()[0]
    try:
        unfinished = sum(1 for _ in layout.unfinished.iterdir())
    except OSError:  # no such folder, or somebody else's: nothing that could be unfinished here
        unfinished = 0
    return Vitals(unreadable, unfinished, unsaved)
