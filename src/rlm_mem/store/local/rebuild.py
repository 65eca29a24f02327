"""Filling an emptied index with many rows at once: its secondary indexes and sums are made at the end, in one go.

All inside the caller's transaction: readers of other connections see the former index until it is committed, and a
failure leaves that one as it was.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator

from rlm_mem.store.local.layout import Layout
from rlm_mem.store.local.schema import SUMS

__all__ = ["emptied", "holds_nothing_of"]

_TABLES = (
    "chunks",
    "tags",
    "links",
    "segments",
    "folders",
    "unreadable",
    "conversations",
    "totals",
    "tag_totals",
)
_CACHE_KIB = 64_000
_MANY = 500


def holds_nothing_of(connection: sqlite3.Connection, layout: Layout) -> bool:
    """Whether the index is empty though there are many files: a copied or cloned store, or its index was removed."""
    if connection.execute("SELECT 1 FROM chunks LIMIT 1").fetchone() is not None:
        return False
    count = 0
    for folder in layout.folders():
        with contextlib.suppress(FileNotFoundError), os.scandir(layout.absolute(folder)) as entries:
            for _ in entries:
                count += 1
                if count >= _MANY:
                    return True
    return False


@contextlib.contextmanager
def emptied(connection: sqlite3.Connection, analysis: str) -> Iterator[None]:
    """Empty the index; inside the block there are only its tables and their keys, after it everything again.

    Args:
        connection: inside BEGIN IMMEDIATE.
        analysis: what the terms will be made by, recorded in ``meta``.
    """
    # Searchers that hold postings of the former rows must learn that these are gone.
    connection.execute("INSERT INTO changes(ns, doc) SELECT ns, doc FROM chunks")
    marks = ",".join("?" * (len(_TABLES) + 1))
    made = connection.execute(
        f"SELECT type, name, sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL"
        f" AND tbl_name IN ({marks}) ORDER BY rowid",
        (*_TABLES, "changes"),
    ).fetchall()
    for kind, name, _ in made:
        connection.execute(f"DROP {kind} {name}")
    for table in _TABLES:
        connection.execute(f"DELETE FROM {table}")  # without triggers this takes no time, whatever the size
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('analysis', ?)", (analysis,))
    (cache,) = connection.execute("PRAGMA cache_size").fetchone()
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    try:
        yield
        for statement in (*SUMS, *(statement for _, _, statement in made)):
            connection.execute(statement)
    finally:
        connection.execute(f"PRAGMA cache_size={cache}")
