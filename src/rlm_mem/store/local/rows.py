"""Writes the rows of chunks into the SQLite index, inside a transaction that holds the write lock."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, count
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct

from rlm_mem.chunk import Chunk
from rlm_mem.store.core.encoding import encode_segments
from rlm_mem.store.core.files import Signature
from rlm_mem.store.core.preencoding import AHEAD, Ahead
from rlm_mem.store.core.records import ACTIVE, ChunkRow, IndexEntry, analysed, entry_of, index_key
from rlm_mem.store.local.connections import Connections
from rlm_mem.store.local.queries import json_list
from rlm_mem.store.local.schema import NORMALISED

_MAX_CACHED = 500_000
"""Maximum number of cached rows of one table: the dictionary of a large store need not fit in memory."""
_Key = TypeVar("_Key", str, tuple[int, str])

_WRITTEN = (
    "id, ns, conversation, type, status, at, created_at, modified_at, occurred_at, valid_from, valid_to, superseded_by,"
    " confidence, tokens, revision, source, content_hash, norm_hash, folder, size, mtime_ns, inode, accessed_at,"
    " access_count, origin, trust, expires_at"
)
_WRITTEN_MARKS = ",".join("?" * len(_WRITTEN.split(",")))
_INSERT = f"INSERT INTO chunks({_WRITTEN}) VALUES ({_WRITTEN_MARKS})"
_INSERT_AT = f"INSERT INTO chunks(doc, {_WRITTEN}) VALUES (?,{_WRITTEN_MARKS})"
_MAX_QUEUED = 1_000
"""Maximum number of chunks whose rows are written together."""


class _Rows(Struct, gc=False):
    """The rows of a chunk; ``doc`` is None if it is new, ``segments`` if the index keeps its own or none are needed."""

    doc: int | None
    ns: int
    values: tuple[Any, ...]
    entry: IndexEntry
    segments: bytes | None


class LocalRowWriter:
    """Writes the rows of chunks inside the caller's transaction.

    Args:
        connection: the connection that holds the write lock.
        language: of the contents.
    """

    def __init__(self, connection: sqlite3.Connection, language: str) -> None:
        self.connection = connection
        self._language = language
        self._queued: list[_Rows] = []
        self._numbered: Ahead | None = None  # the pre-encoded segments whose terms are already numbered
        self._namespaces: _Numbers[str] = _Numbers(connection, "namespaces", "ns", "name")
        self._conversations: _Numbers[tuple[int, str]] = _Numbers(
            connection, "conversations", "conversation", "ns, id"
        )
        self._targets: _Numbers[str] = _Numbers(connection, "link_targets", "target", "id")
        self._kinds: _Numbers[str] = _Numbers(connection, "link_types", "kind", "name")
        self._terms: _Numbers[str] = _Numbers(connection, "terms", "term", "text")
        self.term: Callable[[str], int] = self._terms.__getitem__
        """Returns the number of a term, adding the term if it is new."""

    def forget(self) -> None:
        """Drop queued rows, and cached row numbers that a rollback made invalid."""
        self._queued = []
        for numbers in (self._namespaces, self._conversations, self._targets, self._kinds, self._terms):
            numbers.clear()
        self._numbered = None

    def put(
        self, chunk: Chunk, path: str, sig: Signature, status: int, *, former: ChunkRow | None = None
    ) -> None:
        """Write every row of a chunk; ``former`` is its old row, if any, without a hash if it must be analysed again.

        The rows of a new chunk are queued for :meth:`flush`, which writes them together with others: many rows of one
        table take half as long as the same rows one by one.
        """
        key, ahead = index_key(chunk), AHEAD.get()
        made = ahead.get(key)
        segments: Callable[[], bytes]
        if made is None:
            entry, segments = entry_of(chunk), partial(self._encoded, key)
        else:
            self._number(ahead)
            entry, segments = entry_of(chunk, made.normalised), partial(made.numbered, self.term)
        self.put_entry(entry, path, sig, status, segments, former=former)

    def _encoded(self, key: tuple[str, int, str]) -> bytes:
        return encode_segments(analysed(self._language, *key), self.term)

    def put_entry(
        self,
        entry: IndexEntry,
        path: str,
        sig: Signature,
        status: int,
        segments: Callable[[], bytes],
        *,
        former: ChunkRow | None = None,
    ) -> None:
        """As ``put``; ``segments`` returns the encoded segments of the chunk, and is called only if they are needed."""
        ns, conversation_id = self._namespaces[entry.namespace], entry.conversation_id
        conversation = None if conversation_id is None else self._conversations[ns, conversation_id]
        born = entry.created_at
        values = (
            entry.id, ns, conversation, entry.type, status, entry.at,
            born, "" if entry.modified_at == born else entry.modified_at,
            entry.occurred_at, entry.valid_from, entry.valid_to,
            entry.superseded_by, entry.confidence, entry.tokens, entry.revision, entry.source, entry.content_hash,
            entry.norm_hash[:NORMALISED], path.rpartition("/")[0], sig.size, sig.mtime_ns, sig.inode,
            "" if entry.accessed_at == born else entry.accessed_at, entry.access_count,
            entry.origin, entry.trust, entry.expires_at,
        )  # fmt: skip
        blob = None
        if status != ACTIVE:
            entry.tags, entry.links = [], []
        # A chunk that came into the archive from elsewhere was not analysed there.
        elif (
            former is None or former.content_hash != entry.content_hash or not self._has_segments(former.doc)
        ):
            blob = segments()
        if former is not None:
            self.flush()
            self._drop_tags_and_links(former.doc)
            # A file that is only moved keeps its former count of reads.
            self.connection.execute(
                f"UPDATE chunks SET ({_WRITTEN}) = ({_WRITTEN_MARKS}), access_unsaved = access_unsaved AND ?"
                " WHERE doc = ?",
                (*values, former.signature == sig, former.doc),
            )
        self._queued.append(_Rows(former.doc if former else None, ns, values, entry, blob))
        if former is not None or len(self._queued) >= _MAX_QUEUED:
            self.flush()

    def flush(self) -> None:
        """Write the queued rows; until then, the connection must not be used to read."""
        if not self._queued:
            return
        many = self.connection.executemany
        first, *others = self._queued  # all new, or a single one
        doc = first.doc or self.connection.execute(_INSERT, first.values).lastrowid
        assert doc is not None
        numbered = list(enumerate(self._queued, doc))
        if others:
            many(_INSERT_AT, [(doc, *one.values) for doc, one in numbered[1:]])
            self._targets.learn(dict.fromkeys(link[0] for one in self._queued for link in one.entry.links))
        if tags := [(one.ns, tag, one.entry.at, doc) for doc, one in numbered for tag in one.entry.tags]:
            many("INSERT OR IGNORE INTO tags VALUES (?,?,?,?)", tags)
        targets, kinds = self._targets, self._kinds
        links = [
            (
                doc,
                place,
                targets[target],
                kinds[kind],
                strength,
                "" if at == one.entry.created_at else at,
                why,
            )
            for doc, one in numbered
            for place, (target, kind, strength, at, why) in enumerate(one.entry.links)
        ]
        if links:
            many("INSERT INTO link_rows VALUES (?,?,?,?,?,?,?)", links)
        if blobs := [(doc, one.segments) for doc, one in numbered if one.segments is not None]:
            many("INSERT OR REPLACE INTO segments VALUES (?, ?)", blobs)
        many("INSERT INTO changes(ns, doc) VALUES (?, ?)", [(one.ns, doc) for doc, one in numbered])
        self._queued = []  # not on failure: then the commit fails, too

    def _has_segments(self, doc: int) -> bool:
        found = self.connection.execute("SELECT 1 FROM segments WHERE doc = ?", (doc,)).fetchone()
        return found is not None

    def _drop_tags_and_links(self, doc: int) -> None:
        self.connection.execute("DELETE FROM tags WHERE doc = ?", (doc,))
        self.connection.execute("DELETE FROM link_rows WHERE doc = ?", (doc,))

    def drop(self, row: ChunkRow) -> None:
        """Remove every row of a chunk."""
        self._drop_tags_and_links(row.doc)
        self.connection.execute("DELETE FROM segments WHERE doc = ?", (row.doc,))
        self.connection.execute("DELETE FROM chunks WHERE doc = ?", (row.doc,))
        self.connection.execute("INSERT INTO changes(ns, doc) VALUES (?, ?)", (row.ns, row.doc))

    def _number(self, ahead: Ahead) -> None:
        """Assign numbers to all terms of the pre-encoded segments at once, when the first of these segments is used."""
        if self._numbered is ahead:
            return
        self._numbered = ahead
        self._terms.learn(dict.fromkeys(chain.from_iterable(map(attrgetter("terms"), ahead.values()))))

    def touch(self, reads: dict[str, tuple[int, str]]) -> None:
        """Add read counts (count, last time) by chunk id."""
        self.connection.executemany(
            "UPDATE chunks SET access_count = access_count + ?, accessed_at = max(accessed_at, ?),"
            " access_unsaved = 1 WHERE id = ?",
            [(count, when, chunk_id) for chunk_id, (count, when) in reads.items()],
        )


class _Numbers(dict[_Key, int]):
    """Maps keys to the numbers of their rows in a table; a missing row is inserted.

    Args:
        connection: the connection that holds the write lock.
        table, number: the table, and its column with the number.
        columns: the key column, or several, separated by commas.
    """

    def __init__(self, connection: sqlite3.Connection, table: str, number: str, columns: str) -> None:
        self._connection = connection
        marks = ", ".join("?" * len(columns.split(",")))
        self._find = f"SELECT {number} FROM {table} WHERE ({columns}) = ({marks})"
        self._insert_one = f"INSERT OR IGNORE INTO {table}({columns}) VALUES ({marks})"
        self._last = f"SELECT ifnull(max({number}), 0) FROM {table}"
        self._insert = f"INSERT OR IGNORE INTO {table}({columns}, {number}) VALUES ({marks}, ?)"
        self._find_many = (
            f"SELECT {columns}, {number} FROM {table} WHERE {columns} IN (SELECT value FROM json_each(?))"
        )

    def learn(self, keys: Iterable[_Key]) -> None:
        """Look up many keys of a single column, and insert the missing ones in the order given."""
        asked = [key for key in keys if key not in self]
        if len(self) + len(asked) > _MAX_CACHED:
            self.clear()
        self._look_up(asked)
        new = [key for key in asked if key not in self]
        if not new:
            return
        (last,) = self._connection.execute(self._last).fetchone()
        numbered = list(zip(new, count(last + 1)))
        # SQLite would assign the same numbers, so no second query is needed.
        if self._connection.executemany(self._insert, numbered).rowcount == len(new):
            self.update(numbered)
        else:  # a text that JSON does not carry unchanged was already in the table
            self._look_up(new)

    def _look_up(self, keys: Sequence[_Key]) -> None:
        if keys:  # sorted, they are found in half the time
            self.update(self._connection.execute(self._find_many, (json_list(sorted(keys)),)))

    def __missing__(self, key: _Key) -> int:
        values = key if isinstance(key, tuple) else (key,)
        execute = self._connection.execute
        made = execute(self._insert_one, values)  # a key that is not in this dictionary is usually new
        found = (made.lastrowid,) if made.rowcount else execute(self._find, values).fetchone()
        number = int(found[0] or 0)
        if len(self) > _MAX_CACHED:
            self.clear()
        self[key] = number
        return number


_MARKS = "SELECT value FROM meta WHERE key IN ('analysis', 'emptied') ORDER BY key"


class ThreadRows(threading.local):
    """Per-thread row writers, each on its thread's connection."""

    def __init__(self, connections: Connections, language: str) -> None:
        self._connections = connections
        self._language = language
        self._writer: LocalRowWriter | None = None
        self._marks: list[tuple[str]] = []
        self.analysis = ""
        """The analysis that produced the terms of the index, as of the last ``get``; empty if unknown."""

    def get(self) -> LocalRowWriter:
        """Return the writer of the calling thread, which must hold the write lock.

        It is a new one, without cached row numbers, if the thread has another connection than before, or the index
        was emptied meanwhile.
        """
        connection = self._connections.get()
        marks = connection.execute(_MARKS).fetchall()
        if self._writer is None or self._writer.connection is not connection or self._marks != marks:
            self._writer, self._marks = LocalRowWriter(connection, self._language), marks
            self.analysis = marks[0][0] if marks else ""
            self._connections.thread.flush = self._writer.flush
        return self._writer
