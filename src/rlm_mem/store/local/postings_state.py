"""Which snapshot of the postings is current, and whether a new one is due; plain SQL, no arrays.

The row of `postings_state` is the pointer to the current snapshot folder. It is altered in the same transaction that
drops the `changes` which the new snapshot covers, so a reader never sees a snapshot without the changes after it.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path

__all__ = ["State", "last_change", "merge_is_due", "most_pending", "publish", "read_state", "snapshot_folder"]

#: A snapshot is made anew when more chunks than this, and than one in `_SHARE`, were altered since.
_FEW = 1_000
_SHARE = 50


@dataclass(frozen=True, slots=True)
class State:
    """The current snapshot of a namespace: the name of its folder and the last change that it covers."""

    generation: str
    seq: int


def snapshot_folder(directory: Path, ns: int, generation: str) -> Path:
    """Where a snapshot lies."""
    return directory / str(ns) / generation


def read_state(connection: sqlite3.Connection, ns: int) -> State | None:
    """The current snapshot, None where there is none."""
    row = connection.execute("SELECT generation, seq FROM postings_state WHERE ns = ?", (ns,)).fetchone()
    return None if row is None else State(row[0], row[1])


def last_change(connection: sqlite3.Connection) -> int:
    """The number of the latest change of any namespace (0: none yet), also when changes have been dropped since."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
    return 0 if row is None else int(row[0])


def most_pending(chunks: int) -> int:
    """How many altered chunks may wait beside a snapshot of `chunks`."""
    return _FEW + chunks // _SHARE


def merge_is_due(connection: sqlite3.Connection, directory: Path, ns: int) -> bool:
    """Whether more changes wait than a quick open should have to decode. Costs well under a millisecond."""
    state = read_state(connection, ns)
    if state is None:
        query, since = "SELECT 1 FROM chunks WHERE ns = ? AND status = 0 AND ? IS NOT NULL", 0
        bound = most_pending(0)
    else:
        query, since = "SELECT 1 FROM changes WHERE ns = ? AND seq > ?", state.seq
        bound = most_pending(_chunks_in(snapshot_folder(directory, ns, state.generation)))
    found = connection.execute(f"SELECT count(*) FROM ({query} LIMIT {bound + 1})", (ns, since)).fetchone()
    return int(found[0]) > bound


def publish(connection: sqlite3.Connection, ns: int, new: State) -> bool:
    """Make `new` the current snapshot and drop the changes that it covers; False if a later one already is."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        current = read_state(connection, ns)
        if current is not None and current.seq > new.seq:
            connection.execute("ROLLBACK")
            return False
        connection.execute(
            "INSERT OR REPLACE INTO postings_state(ns, generation, seq) VALUES (?, ?, ?)",
            (ns, new.generation, new.seq),
        )
        connection.execute("DELETE FROM changes WHERE ns = ? AND seq <= ?", (ns, new.seq))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return True


def _chunks_in(folder: Path) -> int:
    try:
        return int(json.loads((folder / "meta.json").read_text(encoding="utf-8"))["sizes"]["doc"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0  # missing or damaged: the next search rebuilds it
