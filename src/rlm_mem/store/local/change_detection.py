"""Finds files that other programs may have changed since they were indexed, as every open does."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm_mem.store.local.folder import Layout

#: Folder times advance in ticks of a few milliseconds: a recent time may hide a second change in the same tick.
RACY_NS = 20_000_000
_LAST = 2**63 - 1  # above the number of any chunk


def changed_folders(
    connection: sqlite3.Connection,
    layout: Layout,
    *,
    full: bool = False,
    racy: bool = True,
    copied: bool = True,
) -> list[str]:
    """Return the folders that may contain unindexed changes, newest first.

    Args:
        full: return every folder.
        racy: also return folders whose time was too recent, when it was recorded, to rule out a later change.
        copied: also return folders whose time was set explicitly, as by a copy or an unpacked archive: the files of
            the index and of the folder may be of different moments.
    """
    known = {
        row[0]: (row[1], row[2]) for row in connection.execute("SELECT path, mtime_ns, seen_ns FROM folders")
    }
    changed = [path for path in known if not layout.absolute(path).is_dir()]
    for path in layout.folders():
        try:
            stat = layout.absolute(path).stat()
        except FileNotFoundError:
            continue
        mtime, seen = known.get(path, (None, 0))
        # A time that was recent when it was recorded may hide a later change in the same tick of the clock. The
        # time of the last change of the folder's own entry (on Windows: its creation time) cannot be set.
        if (
            full
            or mtime != stat.st_mtime_ns
            or (racy and seen - mtime < RACY_NS)
            or (copied and stat.st_ctime_ns > max(seen, mtime + RACY_NS))
        ):
            changed.append(path)
    return sorted(changed, reverse=True)


def edited_in_place(
    connection: sqlite3.Connection, layout: Layout, *, before: int | None, most: int
) -> tuple[list[str], int | None]:
    """Return the files of some chunks that differ from the index, and where to continue.

    Args:
        before: check chunks with a lower number than this, the latest first; None: start at the last one.
        most: how many to check.

    Returns:
        The paths, and ``before`` of the next call: None after the first chunk of all.
    """
    rows = connection.execute(
        "SELECT path, size, mtime_ns, inode, doc FROM chunks WHERE doc < ? ORDER BY doc DESC LIMIT ?",
        (_LAST if before is None else before, most),
    ).fetchall()
    edited = []
    for path, size, mtime_ns, inode, _ in rows:
        try:
            stat = os.stat(layout.place(path))
        except OSError:  # moved or removed, which changes the time of its folder
            continue
        if (stat.st_size, stat.st_mtime_ns, stat.st_ino) != (size, mtime_ns, inode):
            edited.append(path)
    return edited, rows[-1][-1] if len(rows) == most else None
