"""The schema of the SQLite index, its version, and the settings of its connections."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlm_mem.errors import CorruptStore, StorageError, StoreFull, StoreLocked, StoreReadOnly

_TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE namespaces(ns INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL);
CREATE TABLE conversations(conversation INTEGER PRIMARY KEY, ns INTEGER NOT NULL, id TEXT NOT NULL,
    chunks INTEGER NOT NULL DEFAULT 0, last_at REAL, UNIQUE(ns, id));
CREATE TABLE chunks(
    doc INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE NOT NULL,
    ns INTEGER NOT NULL,
    conversation INTEGER,
    type TEXT NOT NULL,
    status INTEGER NOT NULL DEFAULT 0,
    at REAL NOT NULL,
    created_at TEXT NOT NULL,
    modified_at TEXT NOT NULL,
    occurred_at TEXT,
    valid_from TEXT,
    valid_to TEXT,
    superseded_by TEXT,
    confidence REAL NOT NULL,
    tokens INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    source TEXT NOT NULL DEFAULT '',
    content_hash TEXT NOT NULL,
    norm_hash TEXT NOT NULL,
    folder TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    accessed_at TEXT NOT NULL,
    access_count INTEGER NOT NULL DEFAULT 0,
    access_unsaved INTEGER NOT NULL DEFAULT 0,
    origin TEXT NOT NULL DEFAULT 'agent',
    trust TEXT NOT NULL DEFAULT 'ordinary',
    expires_at TEXT,
    path TEXT AS (folder || '/' || id || '.json')
);
CREATE INDEX chunks_time ON chunks(ns, status, at, doc);
CREATE INDEX chunks_order ON chunks(ns, conversation, at, doc);
CREATE INDEX chunks_norm ON chunks(norm_hash);
CREATE INDEX chunks_unsaved ON chunks(doc) WHERE access_unsaved = 1;
CREATE TABLE terms(term INTEGER PRIMARY KEY, text TEXT UNIQUE NOT NULL);
CREATE TABLE segments(doc INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE changes(seq INTEGER PRIMARY KEY AUTOINCREMENT, ns INTEGER NOT NULL, doc INTEGER NOT NULL);
CREATE INDEX changes_ns ON changes(ns, seq);
CREATE TABLE postings_state(ns INTEGER PRIMARY KEY, generation TEXT NOT NULL, seq INTEGER NOT NULL);
CREATE TABLE folders(path TEXT PRIMARY KEY, mtime_ns INTEGER NOT NULL, seen_ns INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE unreadable(
    path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER, inode INTEGER, reason TEXT
) WITHOUT ROWID;
CREATE TABLE totals(ns INTEGER, status INTEGER, type TEXT, chunks INTEGER, tokens INTEGER, bytes INTEGER,
    PRIMARY KEY(ns, status, type)) WITHOUT ROWID;
CREATE TRIGGER totals_in AFTER INSERT ON chunks BEGIN
    INSERT INTO totals VALUES(new.ns, new.status, new.type, 1, new.tokens, new.size)
    ON CONFLICT DO UPDATE SET chunks = chunks + 1, tokens = tokens + new.tokens, bytes = bytes + new.size;
END;
CREATE TRIGGER totals_out AFTER DELETE ON chunks BEGIN
    UPDATE totals SET chunks = chunks - 1, tokens = tokens - old.tokens, bytes = bytes - old.size
    WHERE ns = old.ns AND status = old.status AND type = old.type;
END;
CREATE TRIGGER totals_change AFTER UPDATE OF ns, status, type, tokens, size ON chunks BEGIN
    UPDATE totals SET chunks = chunks - 1, tokens = tokens - old.tokens, bytes = bytes - old.size
    WHERE ns = old.ns AND status = old.status AND type = old.type;
    INSERT INTO totals VALUES(new.ns, new.status, new.type, 1, new.tokens, new.size)
    ON CONFLICT DO UPDATE SET chunks = chunks + 1, tokens = tokens + new.tokens, bytes = bytes + new.size;
END;
CREATE TABLE tags(ns INTEGER, tag TEXT, at REAL, doc INTEGER, PRIMARY KEY(ns, tag, at, doc)) WITHOUT ROWID;
CREATE INDEX tags_doc ON tags(doc);
CREATE TABLE tag_totals(ns INTEGER, tag TEXT, chunks INTEGER, PRIMARY KEY(ns, tag)) WITHOUT ROWID;
CREATE INDEX conversations_last ON conversations(ns, last_at DESC, id);
CREATE TRIGGER tag_in AFTER INSERT ON tags BEGIN
    INSERT INTO tag_totals VALUES(new.ns, new.tag, 1) ON CONFLICT DO UPDATE SET chunks = chunks + 1;
END;
CREATE TRIGGER tag_out AFTER DELETE ON tags BEGIN
    UPDATE tag_totals SET chunks = chunks - 1 WHERE ns = old.ns AND tag = old.tag;
END;
CREATE TRIGGER conversation_in AFTER INSERT ON chunks WHEN new.status = 0 AND new.conversation IS NOT NULL BEGIN
    UPDATE conversations SET chunks = chunks + 1, last_at = max(coalesce(last_at, new.at), new.at)
    WHERE conversation = new.conversation;
END;
CREATE TRIGGER conversation_out AFTER DELETE ON chunks WHEN old.status = 0 AND old.conversation IS NOT NULL BEGIN
    UPDATE conversations SET chunks = chunks - 1, last_at = (SELECT at FROM chunks c WHERE c.ns = old.ns
        AND c.conversation = old.conversation AND c.status = 0 ORDER BY at DESC LIMIT 1)
    WHERE conversation = old.conversation;
END;
CREATE TRIGGER conversation_change AFTER UPDATE OF ns, conversation, status, at ON chunks
WHEN old.status != new.status OR old.at != new.at OR old.conversation IS NOT new.conversation BEGIN
    UPDATE conversations SET chunks = chunks - (old.status = 0), last_at = (SELECT at FROM chunks c WHERE c.ns = old.ns
        AND c.conversation = old.conversation AND c.status = 0 ORDER BY at DESC LIMIT 1)
    WHERE conversation = old.conversation;
    UPDATE conversations SET chunks = chunks + (new.status = 0), last_at = (SELECT at FROM chunks c WHERE c.ns = new.ns
        AND c.conversation = new.conversation AND c.status = 0 ORDER BY at DESC LIMIT 1)
    WHERE conversation = new.conversation;
END;
CREATE INDEX chunks_trust ON chunks(ns, status, trust, origin);
CREATE INDEX chunks_expiring ON chunks(ns, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX chunks_hash ON chunks(substr(content_hash, 1, 16));
-- Link targets and types are long and would be repeated in many rows, so these refer to them by number.
CREATE TABLE link_targets(target INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL);
CREATE TABLE link_types(kind INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL);
CREATE TABLE link_rows(
    doc INTEGER NOT NULL, position INTEGER NOT NULL, target INTEGER NOT NULL, kind INTEGER NOT NULL,
    strength REAL NOT NULL, created_at TEXT NOT NULL, reasoning TEXT, PRIMARY KEY(doc, position)
) WITHOUT ROWID;
CREATE INDEX link_rows_target ON link_rows(target);
CREATE VIEW links AS SELECT doc, position, t.id AS dst_id,
    (SELECT name FROM link_types k WHERE k.kind = r.kind) AS type, strength, created_at, reasoning
    FROM link_rows r JOIN link_targets t USING(target);
CREATE INDEX chunks_folder ON chunks(folder);
"""

#: Recomputes from the rows the sums that triggers otherwise maintain on each write.
SUMS = (
    "DELETE FROM totals",
    "INSERT INTO totals SELECT ns, status, type, count(*), sum(tokens), sum(size) FROM chunks"
    " GROUP BY ns, status, type",
    "DELETE FROM tag_totals",
    "INSERT INTO tag_totals SELECT ns, tag, count(*) FROM tags GROUP BY ns, tag",
    "UPDATE conversations SET chunks = 0, last_at = NULL",
    "UPDATE conversations SET chunks = s.n, last_at = s.last FROM (SELECT conversation AS c, count(*) AS n, max(at) AS"
    " last FROM chunks WHERE status = 0 AND conversation IS NOT NULL GROUP BY conversation) s WHERE conversation = s.c",
)


def since_created(column: str, chunk: str) -> str:
    """Return the SQL of a time stored as '' if it equals the creation time of ``chunk``, a table or its alias."""
    return f"ifnull(nullif({column}, ''), {chunk}.created_at)"


NORMALISED = 32
"""Number of stored characters of a normalised hash."""

INDEX_VERSION = 6
"""Raised with every change of the tables; an index of an earlier version is emptied and refilled from the files."""

# Indexes and triggers are dropped with their tables.
_FORMER_TABLES = (
    "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
)

# Pages of 4 KiB: a transaction beyond 512 MB blocks readers from then on, not only at its end.
_SPILL_PAGES = 131_072
_PAGE = 5_000  # rows


def connect(path: Path, *, wait_seconds: float, read_only: bool = False) -> sqlite3.Connection:
    """Open the index file with the settings that every connection shares.

    It uses a rollback journal, not a write-ahead log: that needs a shared memory file, and when another program
    truncates the file, every process that has mapped it is killed (SIGBUS). Readers continue while a writer
    prepares its change, and wait only while it is committed.

    It uses ``synchronous=NORMAL``, except in the transactions that ``connections.UnsyncedMark`` begins: after a
    power cut the index may be behind the files, and the next open catches up. Files are synced before a write is
    acknowledged.
    """
    try:
        if read_only:
            uri = f"{path.absolute().as_uri()}?mode=ro"
            connection = sqlite3.connect(uri, uri=True, timeout=wait_seconds, check_same_thread=False)
        else:
            connection = sqlite3.connect(path, timeout=wait_seconds, check_same_thread=False)
        connection.isolation_level = None
        if not read_only:
            _use_rollback_journal(connection)
            connection.execute(f"PRAGMA cache_spill={_SPILL_PAGES}")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("PRAGMA cache_size=-16000")
        return connection
    except sqlite3.Error as error:
        raise sqlite_error(error, str(path)) from error


def _use_rollback_journal(connection: sqlite3.Connection) -> None:
    """Switch from the write-ahead log of former versions, unless such a version has the index open."""
    try:
        connection.execute("PRAGMA journal_mode=TRUNCATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise


def make_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of an empty index, or empty ones in place of an earlier version's, under the write lock.

    Raises:
        StorageError: the index was created by a newer version of this package.
    """
    if connection.execute("PRAGMA user_version").fetchone()[0] == INDEX_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > INDEX_VERSION:
            raise newer_version(version)
        if version < INDEX_VERSION:  # otherwise another process has just created them
            for kind, name in connection.execute(_FORMER_TABLES).fetchall():
                connection.execute(f'DROP {kind} "{name}"')
            for statement in _statements(_TABLES):
                connection.execute(statement)
            # Changes are numbered from the time on: other processes must not take this index for one of before.
            first = time.time_ns() // 1000
            connection.execute("INSERT INTO sqlite_sequence(name, seq) VALUES ('changes', ?)", (first,))
            connection.execute("INSERT INTO meta VALUES ('first_change', ?)", (first,))
            connection.execute(f"PRAGMA user_version={INDEX_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """End the open transaction, if any; on a damaged index this fails, but the first error is the one to report."""
    with contextlib.suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


UPGRADE = "upgrade rlm-mem, or delete the folder index/ to let this version rebuild it"


def newer_version(version: int) -> StorageError:
    """Return the error for an index whose version is later than this program supports."""
    return StorageError(
        f"the index has version {version}, this program supports versions up to {INDEX_VERSION}", hint=UPGRADE
    )


def _statements(script: str) -> list[str]:
    statements, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current.strip())
            current = ""
    return statements


def in_pages(connection: sqlite3.Connection, query: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query without their first column, ``doc``; read in pages, so that writers are not blocked.

    Args:
        query: selects ``doc`` first, from a table that has it as its key; without a condition.
    """
    last = -1
    while rows := connection.execute(f"{query} WHERE doc > ? ORDER BY doc LIMIT ?", (last, _PAGE)).fetchall():
        last = rows[-1][0]
        yield from (row[1:] for row in rows)


def analysis_of(connection: sqlite3.Connection, own: str) -> str:
    """Return the name of the analysis that produced the terms of the index; of an empty one ``own``, which is recorded.

    It is empty if unknown.
    """
    found = connection.execute("SELECT value FROM meta WHERE key = 'analysis'").fetchone()
    if found is not None:
        return str(found[0])
    if connection.execute("SELECT 1 FROM chunks LIMIT 1").fetchone() is not None:
        return ""
    with contextlib.suppress(sqlite3.OperationalError):  # another process is recording the same
        connection.execute("INSERT OR IGNORE INTO meta VALUES ('analysis', ?)", (own,))
    return own


@contextlib.contextmanager
def translated(what: Path) -> Iterator[None]:
    """Raise SQLite's errors as the project's own."""
    try:
        yield
    except sqlite3.Error as error:
        raise sqlite_error(error, str(what)) from error


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether SQLite reports that the index was overwritten, truncated, emptied, or replaced."""
    code = getattr(error, "sqlite_errorcode", 0)  # errors raised by the module itself have no code
    return (
        code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        or code in (sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_READONLY_DBMOVED)
        # All statements are the package's own, so a missing table existed before.
        or str(error).startswith("no such table")
    )


def shows_damage(error: BaseException) -> bool:
    """Return whether an error indicates that the index is damaged, not merely busy or inaccessible."""
    return is_damage(error) if isinstance(error, sqlite3.Error) else isinstance(error, CorruptStore)


def sqlite_error(error: sqlite3.Error, what: str) -> StorageError:
    """Return the project's own exception for an SQLite error."""
    text = str(error)
    if is_damage(error):
        return CorruptStore(f"{what} is damaged: {text}", hint="run: rlm-mem store rebuild")
    if "locked" in text or "busy" in text:
        return StoreLocked(f"{what}: another process holds the write lock", hint="retry in a moment")
    if "readonly" in text or "unable to open" in text:
        return StoreReadOnly(
            f"{what} cannot be opened for writing: {text}", hint="check the folder's permissions"
        )
    if "disk is full" in text:
        return StoreFull(f"the disk is full: {what} was not written", hint="free some space and retry")
    if "disk I/O" in text:
        return StorageError(f"{what}: {text}", hint="free some space and retry")
    return StorageError(f"{what}: {text}")
