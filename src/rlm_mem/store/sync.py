"""Noticing what changed behind the index's back: edits by hand or by git, and files of a killed process.

Folders whose time changed are scanned; in them a file is read only if its size, time or inode differ from what the
index recorded. Runs under the write lock.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rlm_mem.chunk import Chunk, content_hash, decode_chunk, is_chunk_id
from rlm_mem.errors import InvalidChunk
from rlm_mem.store import files
from rlm_mem.store.layout import Layout
from rlm_mem.store.rows import ACTIVE, ARCHIVED, Row, RowWriter, find_row, row_at_path
from rlm_mem.store.transaction import RACY_NS

__all__ = ["SyncReport", "changed_folders", "read_chunk_file", "read_version_file", "sync_folders"]

_logger = logging.getLogger("rlm_mem.store")

Progress = Callable[[int, int], None]


@dataclass
class SyncReport:
    """What a sync found: relative paths."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    scanned_folders: int = 0
    folder_times: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.unreadable)


def changed_folders(
    connection: sqlite3.Connection, layout: Layout, *, full: bool = False, racy: bool = True
) -> list[str]:
    """Folders that may hold unnoticed changes, newest first.

    Args:
        full: every folder.
        racy: also folders whose time was too young, when it was recorded, to prove that nothing came after it.
    """
    known = {
        row[0]: (row[1], row[2]) for row in connection.execute("SELECT path, mtime_ns, seen_ns FROM folders")
    }
    changed = [path for path in known if not layout.absolute(path).is_dir()]
    for path in layout.folders():
        record = known.get(path)
        try:
            mtime = layout.absolute(path).stat().st_mtime_ns
        except FileNotFoundError:
            continue
        # A time that was young when it was recorded may hide a later change in the same tick of the clock.
        if full or record is None or record[0] != mtime or (racy and record[1] - mtime < RACY_NS):
            changed.append(path)
    return sorted(changed, reverse=True)


def read_chunk_file(path: Path) -> tuple[Chunk, files.Signature]:
    """Read one chunk file; raises InvalidChunk, or OSError where it cannot be opened."""
    with path.open("rb") as handle:
        stat = os.fstat(handle.fileno())
        data = handle.read()
    chunk = decode_chunk(data)
    if chunk.id != path.stem:
        raise InvalidChunk(f"{path.name} holds the chunk {chunk.id}: file name and id must agree")
    return chunk, files.Signature(stat.st_size, stat.st_mtime_ns, stat.st_ino)


def read_version_file(path: Path) -> Chunk:
    """Read a former version (its file is named after the revision, not the chunk)."""
    return decode_chunk(path.read_bytes())


def sync_folders(
    connection: sqlite3.Connection,
    layout: Layout,
    rows: RowWriter,
    folders: list[str],
    *,
    progress: Progress | None = None,
    count_tokens: Callable[[str], int],
    tidy: bool = True,
) -> SyncReport:
    """Bring the index up to date with ``folders``; the caller holds the write lock and commits.

    Args:
        tidy: also deal with the files of killed processes.
    """
    report = SyncReport(scanned_folders=len(folders))
    if tidy:
        _finish_interrupted(connection, layout)
    seen_at = {path: _mtime(layout, path) for path in folders}
    missing: list[Row] = []
    todo: list[tuple[str, os.stat_result]] = []
    for folder in folders:
        present = dict(_scan(layout, folder))
        recorded = _recorded(connection, folder)
        todo += [
            (path, stat)
            for path, stat in present.items()
            if recorded.get(path) != files.Signature(stat.st_size, stat.st_mtime_ns, stat.st_ino)
        ]
        missing += [
            row
            for path in recorded
            if path not in present and (row := row_at_path(connection, path)) is not None
        ]
        for path in [path for path in recorded if path not in present]:
            connection.execute("DELETE FROM unreadable WHERE path = ?", (path,))
    for done, (path, stat) in enumerate(todo, 1):
        _adopt(connection, layout, rows, path, stat, report, count_tokens)
        if progress is not None:
            progress(done, len(todo))
    for row in missing:
        current = find_row(connection, row.id)
        if current is not None and current.path == row.path:  # not adopted from another place meanwhile
            rows.drop(current)
            report.removed.append(row.path)
    now = time.time_ns()
    for path, mtime in seen_at.items():
        if mtime is None:
            connection.execute("DELETE FROM folders WHERE path = ?", (path,))
        else:
            connection.execute("INSERT OR REPLACE INTO folders VALUES (?, ?, ?)", (path, mtime, now))
            report.folder_times[path] = mtime
    return report


def _mtime(layout: Layout, path: str) -> int | None:
    try:
        return layout.absolute(path).stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _scan(layout: Layout, folder: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with os.scandir(layout.absolute(folder)) as entries:
            for entry in entries:
                if entry.name.endswith(".json") and not entry.name.startswith(".") and entry.is_file():
                    with contextlib.suppress(FileNotFoundError):
                        yield f"{folder}/{entry.name}", entry.stat()
    except FileNotFoundError:
        return


def _recorded(connection: sqlite3.Connection, folder: str) -> dict[str, files.Signature]:
    bounds = (folder + "/", folder + "0")  # "0" is the character after "/"
    found: dict[str, files.Signature] = {}
    for table in ("chunks", "unreadable"):
        for path, size, mtime_ns, inode in connection.execute(
            f"SELECT path, size, mtime_ns, inode FROM {table} WHERE path > ? AND path < ?", bounds
        ):
            if folder != "archive" or "/" not in path[len("archive/") :]:
                found[path] = files.Signature(size, mtime_ns, inode)
    return found


def _adopt(
    connection: sqlite3.Connection,
    layout: Layout,
    rows: RowWriter,
    path: str,
    stat: os.stat_result,
    report: SyncReport,
    count_tokens: Callable[[str], int],
) -> None:
    former = row_at_path(connection, path)
    try:
        chunk, sig = read_chunk_file(layout.absolute(path))
        twin = find_row(connection, chunk.id)
        if twin is not None and twin.path != path and layout.absolute(twin.path).exists():
            raise InvalidChunk(f"{path}: the chunk {chunk.id} is also in {twin.path}")
    except FileNotFoundError:
        return
    except (InvalidChunk, OSError) as error:
        _logger.error("unreadable chunk file %s: %s", path, error)
        connection.execute(
            "INSERT OR REPLACE INTO unreadable VALUES (?, ?, ?, ?, ?)",
            (path, stat.st_size, stat.st_mtime_ns, stat.st_ino, str(error)),
        )
        if former is not None:  # it is not what the index says any more: hide it, leave the file alone
            rows.drop(former)
        report.unreadable.append(path)
        return
    connection.execute("DELETE FROM unreadable WHERE path = ?", (path,))
    former = former or twin
    actual = content_hash(chunk.content)
    if actual != chunk.metadata.content_hash or chunk.tokens == 0:
        # Edited by hand: the index holds the truth of the text; `check` offers to bring the file's own fields along.
        chunk.metadata.content_hash = actual
        chunk.tokens = count_tokens(chunk.content)
    if former is not None:
        chunk.metadata.access_count = max(chunk.metadata.access_count, former.access_count)
        chunk.metadata.accessed_at = max(chunk.metadata.accessed_at, former.accessed_at)
    status = ARCHIVED if path.startswith("archive/") else ACTIVE
    rows.put(chunk, path, sig, status, former=former)
    (report.added if former is None else report.changed).append(path)


def _finish_interrupted(connection: sqlite3.Connection, layout: Layout) -> None:
    """Deal with what a killed process left in ``.tmp``: put back what was being deleted, drop the rest.

    Under the write lock nobody else has work in progress there, except temporary files written by a process that
    is waiting for no lock: those are in the lock too. So everything found is an orphan.
    """
    if not layout.unfinished.is_dir():
        return
    for leftover in sorted(layout.unfinished.iterdir()):
        name = leftover.name
        chunk_id = name.split(".", 1)[0]
        if name.endswith(".gone") and is_chunk_id(chunk_id):
            row = find_row(connection, chunk_id)
            if row is not None and not layout.absolute(row.path).exists():
                files.publish(leftover, layout.absolute(row.path))
                continue
        files.remove(leftover)
