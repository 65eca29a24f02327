"""Keeping index and files in step: edits by hand or by git, files of a killed process, an emptied index, read counts.

Folders whose modification time changed are scanned; a file in them is read only if its size, time or inode differ from
what the index recorded. Runs under the write lock.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from rlm_mem.chunk import Chunk, is_chunk_id
from rlm_mem.errors import InvalidChunk
from rlm_mem.lazy import logger
from rlm_mem.results import Progress
from rlm_mem.store.core import files
from rlm_mem.store.core.records import ACTIVE, ARCHIVED, ChunkRow, Reads, SyncReport, decode_many
from rlm_mem.store.local import redo
from rlm_mem.store.local.folder import Layout, read_chunk_file
from rlm_mem.store.local.queries import find_row, row_at_path
from rlm_mem.store.local.rows import LocalRowWriter
from rlm_mem.store.local.schema import SUMS, in_pages
from rlm_mem.store.local.transaction import Transaction

if TYPE_CHECKING:
    from rlm_mem.store.local.prepare import Prepared

_logger = logger("rlm_mem.store")


_TELL = 20  # files between two calls of the progress callback


def sync_folders(
    connection: sqlite3.Connection,
    layout: Layout,
    rows: LocalRowWriter,
    folders: list[str],
    *,
    language: str,
    progress: Progress | None = None,
    paths: Sequence[str] = (),
    tidy: bool = True,
    fresh: bool = False,
    processes: int = 0,
) -> SyncReport:
    """Bring the index up to date with ``folders``; the caller holds the write lock and commits.

    Args:
        paths: files that were edited in place, to read beside those of the folders.
        language: of the analyser.
        progress: called now and then with (files read, files to read).
        tidy: also deal with the files of killed processes.
        fresh: the index is empty: there is no former state to compare with.
        processes: how many may be used to read many files; 0: one per core.
    """
    report = SyncReport(scanned_folders=len(folders))
    if tidy:
        _finish_interrupted(connection, layout)
    seen_at = {path: _mtime(layout, path) for path in folders}
    missing: list[ChunkRow] = []
    todo = []
    for path in paths:
        row = row_at_path(connection, path)  # by now, another process may have indexed its own write
        if path.rpartition("/")[0] not in folders and (
            row is None or row.signature != files.signature(layout.absolute(path))
        ):
            todo.append(path)
    for folder in folders:
        present = dict(_scan(layout, folder))
        recorded = _recorded(connection, folder)
        todo += [path for path, sig in present.items() if recorded.get(path) != sig]
        missing += [
            row
            for path in recorded
            if path not in present and (row := row_at_path(connection, path)) is not None
        ]
        for path in [path for path in recorded if path not in present]:
            connection.execute("DELETE FROM unreadable WHERE path = ?", (path,))
    for done, found in enumerate(_read(layout, todo, language, processes), 1):
        _adopt(connection, layout, rows, found, report, fresh=fresh)
        if progress is not None and (done % _TELL == 0 or done == len(todo)):
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


def _read(layout: Layout, paths: list[str], language: str, processes: int) -> Iterator[Prepared]:
    """The prepared chunk files at some paths, in the order in which their chunks were made."""
    if not paths:
        return
    from rlm_mem.store.local.prepare import in_order_of_making, prepared

    base = str(layout.base)
    if len(paths) > 1:
        paths = in_order_of_making(base, paths, processes=processes)
    yield from prepared(base, paths, language, processes=processes)


def _mtime(layout: Layout, path: str) -> int | None:
    try:
        return layout.absolute(path).stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _scan(layout: Layout, folder: str) -> Iterator[tuple[str, files.Signature]]:
    try:
        with os.scandir(layout.absolute(folder)) as entries:
            for entry in entries:
                if files.is_json_file(entry):
                    try:
                        stat = entry.stat()
                    except FileNotFoundError:
                        continue
                    except OSError:  # reading it reports the reason
                        yield f"{folder}/{entry.name}", files.NO_SIGNATURE
                        continue
                    yield (
                        f"{folder}/{entry.name}",
                        files.Signature(stat.st_size, stat.st_mtime_ns, stat.st_ino),
                    )
    except FileNotFoundError:
        return


def _recorded(connection: sqlite3.Connection, folder: str) -> dict[str, files.Signature]:
    found: dict[str, files.Signature] = {}
    for condition, *values in (
        ("chunks WHERE folder = ?", folder),
        # "0" is the character after "/"
        ("unreadable WHERE path > ? AND path < ?", f"{folder}/", f"{folder}0"),
    ):
        for path, size, mtime_ns, inode in connection.execute(
            f"SELECT path, size, mtime_ns, inode FROM {condition}", values
        ):
            if path.rpartition("/")[0] == folder:
                found[path] = files.Signature(size, mtime_ns, inode)
    return found


def _adopt(
    connection: sqlite3.Connection,
    layout: Layout,
    rows: LocalRowWriter,
    found: Prepared,
    report: SyncReport,
    *,
    fresh: bool,
) -> None:
    path, entry, problem = found.path, found.entry, found.problem
    former = None if fresh else row_at_path(connection, path)
    if entry is not None:
        twin = find_row(connection, entry.id)
        if twin is not None and twin.path != path and layout.absolute(twin.path).exists():
            problem = f"the chunk {entry.id} is also in {twin.path}"
        former = former or twin
    elif problem is None:
        return  # gone since the folder was listed
    if entry is None or problem is not None:
        _logger.error("unreadable chunk file %s: %s", path, problem)
        connection.execute(
            "INSERT OR REPLACE INTO unreadable VALUES (?, ?, ?, ?, ?)",
            (path, *structs.astuple(found.signature), problem),
        )
        hidden = row_at_path(connection, path)
        if hidden is not None:  # the row is no longer true: drop it, leave the file alone
            rows.drop(hidden)
        report.unreadable.append(path)
        return
    if not fresh:
        connection.execute("DELETE FROM unreadable WHERE path = ?", (path,))
    if former is not None:
        entry.access_count = max(entry.access_count, former.access_count)
        entry.accessed_at = max(entry.accessed_at, former.accessed_at)
    status = ARCHIVED if path.startswith("archive/") else ACTIVE
    segments = found.segments
    rows.put_entry(
        entry,
        path,
        found.signature,
        status,
        lambda: segments.numbered(rows.term) if segments is not None else b"",
        former=former
        and structs.replace(former, content_hash=""),  # analyse it: its text, title or path may differ
    )
    (report.added if former is None else report.changed).append(path)


def _finish_interrupted(connection: sqlite3.Connection, layout: Layout) -> None:
    """Deal with files that a killed process left in ``.tmp``: put back those being deleted, remove the rest.

    Temporary files, too, are written under the write lock, which the caller holds: so every file found is an orphan.
    """
    if not layout.unfinished.is_dir():
        return
    suffixes = redo.put_back_suffixes(layout)
    for leftover in sorted(layout.unfinished.iterdir()):
        chunk_id = leftover.name.split(".", 1)[0]
        if leftover.suffix in suffixes and is_chunk_id(chunk_id):
            row = find_row(connection, chunk_id)
            if row is not None and not layout.absolute(row.path).exists():
                files.publish(leftover, layout.absolute(row.path))
                continue
        files.remove(leftover)


# --- filling an emptied index ----------------------------------------------------------------------------
# Its secondary indexes and sums are made at the end, in one go, all inside the caller's transaction: other connections
# see the former index until the commit, and a failure leaves that index as it was.

_TABLES = (
    "chunks",
    "tags",
    "link_rows",
    "link_targets",
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
    """Empty the index; it has no secondary indexes, triggers and sums inside the block, and has them again after it.

    Args:
        connection: inside BEGIN IMMEDIATE.
        analysis: name of the analyser that will make the terms, recorded in ``meta``.
    """
    # Searches that use postings of the former rows must notice that these are gone.
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
    for key, value in (("analysis", analysis), ("emptied", os.urandom(8).hex())):
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
    (cache,) = connection.execute("PRAGMA cache_size").fetchone()
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    try:
        yield
        for statement in (*SUMS, *(statement for _, _, statement in made)):
            connection.execute(statement)
    finally:
        connection.execute(f"PRAGMA cache_size={cache}")


def drop_unused_terms(connection: sqlite3.Connection) -> None:
    """Remove the terms that no chunk has, for the caller to commit; the others keep their numbers."""
    used: set[int] = set()
    for (data,) in in_pages(connection, "SELECT doc, data FROM segments"):
        decoded = decode_many([data])
        used.update(decoded.terms.tolist(), decoded.author.tolist())
    connection.execute(
        "DELETE FROM terms WHERE term NOT IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(used).decode(),),
    )
    # Other processes have numbers of terms in memory: they look them up again.
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('emptied', ?)", (os.urandom(8).hex(),))


# --- read counts -----------------------------------------------------------------------------------------


def fold_reads(transaction: Transaction, read: Callable[[ChunkRow], Chunk | None]) -> int:
    """Write read counts that are only in the index into the chunk files; returns how many files were written."""
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
    """Reads that are in the index but not yet in the files, so that a rebuilt index would lose them."""
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
