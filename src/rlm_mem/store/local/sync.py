"""Syncs the index with the files: edits by hand or by git, files of a killed process, an emptied index, read counts.

Folders whose modification time changed are scanned; a file in them is read only if its size, time or inode differs
from what the index recorded. Runs under the write lock.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import structs

from rlm_mem.chunk import is_chunk_id
from rlm_mem.config import Config
from rlm_mem.errors import InvalidChunk
from rlm_mem.lazy import logger
from rlm_mem.results import Progress
from rlm_mem.store.core import files
from rlm_mem.store.core.encoding import decode_many
from rlm_mem.store.core.records import ChunkRow, Reads, SyncReport
from rlm_mem.store.local import redo
from rlm_mem.store.local.folder import Layout, read_chunk_file, status_at
from rlm_mem.store.local.queries import find_row, json_list, row_at_path
from rlm_mem.store.local.rows import LocalRowWriter
from rlm_mem.store.local.schema import SUMS, in_pages

if TYPE_CHECKING:
    from rlm_mem.store.local.prepare import ChunkFile

_logger = logger("rlm_mem.store")


_PROGRESS_STEP = 20  # files between two calls of the progress callback


def sync_folders(
    connection: sqlite3.Connection,
    layout: Layout,
    rows: LocalRowWriter,
    folders: list[str],
    config: Config,
    *,
    progress: Progress | None,
    paths: Sequence[str],
    tidy: bool,
) -> SyncReport:
    """Bring the index up to date with ``folders``; the caller holds the write lock and commits.

    Args:
        paths: files that were edited in place, to be read as well.
        progress: called now and then with (files read, files to read).
        tidy: also handle the files of killed processes.
    """
    report = SyncReport(scanned_folders=len(folders))
    if tidy:
        _clean_up_unfinished(connection, layout)
    # Before the files are listed: a change after that has a later time, or a time that is racy
    now = time.time_ns()
    seen_at = {path: files.signature(layout.place(path)) for path in folders}
    todo, missing = _compared(connection, layout, folders, paths)
    for done, found in enumerate(_read(layout, todo, config), 1):
        _index_file(connection, layout, rows, found, report)
        if progress is not None and (done % _PROGRESS_STEP == 0 or done == len(todo)):
            progress(done, len(todo))
    for row in missing:
        current = find_row(connection, row.id)
        if current is not None and current.path == row.path:  # not moved to another path meanwhile
            rows.drop(current)
            report.removed.append(row.path)
    for path, seen in seen_at.items():
        if seen is None:
            connection.execute("DELETE FROM folders WHERE path = ?", (path,))
        else:
            connection.execute("INSERT OR REPLACE INTO folders VALUES (?, ?, ?)", (path, seen.mtime_ns, now))
            report.folder_times[path] = seen.mtime_ns
    return report


def _compared(
    connection: sqlite3.Connection, layout: Layout, folders: list[str], paths: Sequence[str]
) -> tuple[list[str], list[ChunkRow]]:
    """Return the files that differ from the index, and the rows of those that are gone."""
    todo: list[str] = []
    missing: list[ChunkRow] = []
    for path in paths:
        row = row_at_path(connection, path)  # another process may have indexed its own write by now
        is_known = row is not None and row.signature == files.signature(layout.absolute(path))
        if path.rpartition("/")[0] not in folders and not is_known:
            todo.append(path)
    for folder in folders:
        present, recorded = dict(_scan(layout, folder)), _recorded(connection, folder)
        todo += [path for path, sig in present.items() if recorded.get(path) != sig]
        for path in [path for path in recorded if path not in present]:
            if (row := row_at_path(connection, path)) is not None:
                missing.append(row)
            connection.execute("DELETE FROM unreadable WHERE path = ?", (path,))
    gone = {row.path.rpartition("/")[2] for row in missing}
    # A second file of one of these chunks was left out beside the one that is gone, and has its content now.
    if gone:
        left_out = (path for (path,) in connection.execute("SELECT path FROM unreadable"))
        todo += [path for path in left_out if path.rpartition("/")[2] in gone and path not in todo]
    return todo, missing


def _read(layout: Layout, paths: list[str], config: Config) -> Iterator[ChunkFile]:
    """Yield the chunk files at these paths, in the order in which their chunks were created."""
    if not paths:
        return
    from rlm_mem.store.local.prepare import by_creation_time, read_files

    base, processes = str(layout.base), config.store.processes
    if len(paths) > 1:
        paths = by_creation_time(base, paths, processes=processes)
    yield from read_files(base, paths, config.search.language, count=len(paths), processes=processes)


def _scan(layout: Layout, folder: str) -> Iterator[tuple[str, files.Signature]]:
    try:
        with os.scandir(layout.absolute(folder)) as entries:
            for entry in entries:
                if files.is_json_file(entry):
                    try:
                        stat = entry.stat()
                    except OSError as error:  # the later read reports the reason
                        if not isinstance(error, FileNotFoundError) or entry.is_symlink():
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


def _index_file(
    connection: sqlite3.Connection, layout: Layout, rows: LocalRowWriter, found: ChunkFile, report: SyncReport
) -> None:
    path, entry, problem = found.path, found.entry, found.problem
    former = None if entry is None else find_row(connection, entry.id)  # the file is named after its chunk
    if former is not None and former.path != path and layout.absolute(former.path).exists():
        problem = f"the chunk {former.id} is also in {former.path}"
    elif entry is None and problem is None:
        return  # deleted after the folder was listed
    if entry is None or problem is not None:
        _logger.error("unreadable chunk file %s: %s", path, problem)
        connection.execute(
            "INSERT OR REPLACE INTO unreadable VALUES (?, ?, ?, ?, ?)",
            (path, *structs.astuple(found.signature), problem),
        )
        hidden = row_at_path(connection, path)
        if hidden is not None:  # the row is outdated: drop it, and leave the file alone
            rows.drop(hidden)
        report.unreadable.append(path)
        return
    connection.execute("DELETE FROM unreadable WHERE path = ?", (path,))
    if former is not None:
        entry.access_count = max(entry.access_count, former.access_count)
        entry.accessed_at = max(entry.accessed_at, former.accessed_at)
    status = status_at(path)
    segments = found.segments
    rows.put_entry(
        entry,
        path,
        found.signature,
        status,
        lambda: segments.numbered(rows.term) if segments is not None else b"",
        former=former
        and structs.replace(former, content_hash=""),  # analyse it again: its text, title or path may differ
    )
    rows.flush()  # the next file is compared with the rows
    (report.added if former is None else report.changed).append(path)


def _clean_up_unfinished(connection: sqlite3.Connection, layout: Layout) -> None:
    """Handle files that a killed process left in ``.tmp``: put back those being deleted, remove the others.

    Temporary files are also written under the write lock, which the caller holds, so every file found is an orphan.
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
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            files.remove(leftover)


# --- filling an emptied index ----------------------------------------------------------------------------
# Secondary indexes and sums are built at the end, in one pass, all inside the caller's transaction: other
# connections see the former index until the commit, and a failure leaves that index unchanged.

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
_MANY_FILES = 500


def needs_refill(connection: sqlite3.Connection, layout: Layout) -> bool:
    """Return whether the index is empty although there are many files: the store was copied, or its index removed."""
    if connection.execute("SELECT 1 FROM chunks LIMIT 1").fetchone() is not None:
        return False
    count = 0
    for folder in layout.folders():
        with contextlib.suppress(FileNotFoundError), os.scandir(layout.absolute(folder)) as entries:
            for _ in entries:
                count += 1
                if count >= _MANY_FILES:
                    return True
    return False


@contextlib.contextmanager
def emptied(connection: sqlite3.Connection, analysis: str) -> Iterator[None]:
    """Empty the index; inside the block it has no secondary indexes, triggers or sums, which are rebuilt after it.

    Args:
        connection: inside BEGIN IMMEDIATE.
        analysis: name of the analyser that will produce the terms, recorded in ``meta``.
    """
    # Searches that use postings of the former rows must notice that these were deleted.
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
        connection.execute(f"DELETE FROM {table}")  # without triggers this is instant at any size
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


_MANY = 500
"""Chunks whose segments are decoded together."""


def drop_unused_terms(connection: sqlite3.Connection) -> None:
    """Delete the terms that no chunk contains, without a commit; the others keep their numbers.

    No number is given again, since searches of this and other processes may know the term that had it: a row without
    a word keeps the highest one.
    """
    used: set[int] = set()
    rows = in_pages(connection, "SELECT doc, data FROM segments")
    while lot := [data for (data,) in islice(rows, _MANY)]:
        decoded = decode_many(lot)
        used.update(decoded.terms.tolist(), decoded.author.tolist())
    last = connection.execute("SELECT max(term) FROM terms").fetchone()[0]
    connection.execute(
        "DELETE FROM terms WHERE term NOT IN (SELECT value FROM json_each(?))", (json_list(used),)
    )
    mark = os.urandom(8).hex()
    if last is not None:
        connection.execute("INSERT OR IGNORE INTO terms(term, text) VALUES (?, ?)", (last, f" {mark}"))
    # Other processes cache term numbers: this makes them look the numbers up again.
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('emptied', ?)", (mark,))


# --- read counts -----------------------------------------------------------------------------------------


def unsaved_reads(connection: sqlite3.Connection, layout: Layout) -> Reads:
    """Return read counts that are in the index but not in the files, so that a rebuilt index would lose them."""
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
