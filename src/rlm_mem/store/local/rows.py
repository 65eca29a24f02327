"""The rows of the index, written with their chunk; terms get their numbers here."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable
from functools import partial

from rlm_mem.chunk import Chunk
from rlm_mem.store.core.ahead import Ahead
from rlm_mem.store.core.files import Signature
from rlm_mem.store.core.records import (
    ACTIVE,
    ChunkRow,
    Encode,
    IndexEntry,
    entry_of,
    repeated_prefix,
    surroundings,
)
from rlm_mem.store.local.connections import Connections

__all__ = ["NORMALISED", "LocalRowWriter", "TermNumbers", "ThreadRows"]

NORMALISED = 32
"""Characters of a normalised hash that are kept."""
_MOST_KEPT = (
    500_000  # numbers, of terms and of conversations: the dictionary of a large store need not live here
)

_WRITTEN = (
    "id, ns, conversation, type, status, at, created_at, modified_at, occurred_at, valid_from, valid_to, superseded_by,"
    " confidence, tokens, revision, source, content_hash, norm_hash, path, size, mtime_ns, inode, accessed_at,"
    " access_count, origin, trust, expires_at"
)
_WRITTEN_MARKS = ",".join("?" * len(_WRITTEN.split(",")))


class LocalRowWriter:
    """Writes the rows of chunks inside the caller's transaction.

    Args:
        connection: the connection that holds the write lock.
        encode: makes the encoded segments of a chunk.
    """

    def __init__(self, connection: sqlite3.Connection, encode: Encode) -> None:
        self.connection = connection
        self._encode = encode
        self.ahead: Ahead = {}
        self._numbers: dict[tuple[int | str, ...], int] = {}
        self._terms = TermNumbers(connection)
        self.term: Callable[[str], int] = self._terms.__getitem__
        """The number of a term, made if it is new."""

    def forget(self) -> None:
        """Drop cached numbers that a rollback made invalid."""
        self._numbers.clear()
        self._terms.clear()

    def begin(self, ahead: Ahead) -> None:
        """A transaction begins that may take these segments."""
        self.ahead = ahead
        self._terms.begin()

    def _number(self, table: str, key: str, columns: str, *values: int | str) -> int:
        """The number of the row with these values, made if it is new."""
        number = self._numbers.get((table, *values))
        if number is None:
            marks = ", ".join("?" * len(values))
            execute = self.connection.execute
            found = execute(f"SELECT {key} FROM {table} WHERE ({columns}) = ({marks})", values).fetchone()
            if found is None:
                number = execute(f"INSERT INTO {table}({columns}) VALUES ({marks})", values).lastrowid or 0
            else:
                number = int(found[0])
            if len(self._numbers) > _MOST_KEPT:
                self._numbers.clear()
            self._numbers[table, *values] = number
        return number

    def put(
        self, chunk: Chunk, path: str, sig: Signature, status: int, *, former: ChunkRow | None = None
    ) -> int:
        """Write every row; ``former`` is its row if it has one, without a hash if it must be analysed again."""
        key = (chunk.content, repeated_prefix(chunk), surroundings(chunk.metadata.provenance))
        encode: Callable[[Callable[[str], int]], bytes] = partial(self._encode, *key)
        if key in self.ahead:
            encode = self.ahead[key].numbered
            self._terms.number(self.ahead)
        return self.put_entry(entry_of(chunk), path, sig, status, partial(encode, self.term), former=former)

    def put_entry(
        self,
        entry: IndexEntry,
        path: str,
        sig: Signature,
        status: int,
        segments: Callable[[], bytes],
        *,
        former: ChunkRow | None = None,
    ) -> int:
        """Write every row of a chunk; ``segments`` gives its encoded segments, if they turn out to be needed."""
        ns = self._number("namespaces", "ns", "name", entry.namespace)
        talk = entry.conversation_id
        conversation = (
            None if talk is None else self._number("conversations", "conversation", "ns, id", ns, talk)
        )
        doc = former.doc if former else None
        born = entry.created_at
        if doc is not None:
            self._drop_tags_and_links(doc)
        values = (
            entry.id, ns, conversation, entry.type, status, entry.at,
            born, "" if entry.modified_at == born else entry.modified_at,
            entry.occurred_at, entry.valid_from, entry.valid_to,
            entry.superseded_by, entry.confidence, entry.tokens, entry.revision, entry.source, entry.content_hash,
            entry.norm_hash[:NORMALISED], path, sig.size, sig.mtime_ns, sig.inode,
            "" if entry.accessed_at == born else entry.accessed_at, entry.access_count,
            entry.origin, entry.trust, entry.expires_at,
        )  # fmt: skip
        if doc is None:
            doc = self.connection.execute(
                f"INSERT INTO chunks({_WRITTEN}) VALUES ({_WRITTEN_MARKS})",
                values,
            ).lastrowid
        else:
            self.connection.execute(
                f"UPDATE chunks SET ({_WRITTEN}) = ({_WRITTEN_MARKS}), access_unsaved = 0 WHERE doc = ?",
                (*values, doc),
            )
        assert doc is not None
        if status == ACTIVE:
            many = self.connection.executemany
            if entry.tags:
                many(
                    "INSERT OR IGNORE INTO tags VALUES (?,?,?,?)",
                    [(ns, tag, entry.at, doc) for tag in entry.tags],
                )
            if entry.links:
                many(
                    "INSERT INTO links VALUES (?,?,?,?,?,?,?)",
                    [
                        (doc, position, target, kind, strength, "" if made_at == born else made_at, why)
                        for position, (target, kind, strength, made_at, why) in enumerate(entry.links)
                    ],
                )
            # A chunk that came into the archive from elsewhere was not analysed there.
            if former is None or former.content_hash != entry.content_hash or not self._has_segments(doc):
                self.connection.execute("INSERT OR REPLACE INTO segments VALUES (?, ?)", (doc, segments()))
        self.connection.execute("INSERT INTO changes(ns, doc) VALUES (?, ?)", (ns, doc))
        return doc

    def _has_segments(self, doc: int) -> bool:
        found = self.connection.execute("SELECT 1 FROM segments WHERE doc = ?", (doc,)).fetchone()
        return found is not None

    def _drop_tags_and_links(self, doc: int) -> None:
        self.connection.execute("DELETE FROM tags WHERE doc = ?", (doc,))
        self.connection.execute("DELETE FROM links WHERE doc = ?", (doc,))

    def drop(self, row: ChunkRow) -> None:
        """Remove every row of a chunk."""
        self._drop_tags_and_links(row.doc)
        self.connection.execute("DELETE FROM segments WHERE doc = ?", (row.doc,))
        self.connection.execute("DELETE FROM chunks WHERE doc = ?", (row.doc,))
        self.connection.execute("INSERT INTO changes(ns, doc) VALUES (?, ?)", (row.ns, row.doc))

    def touch(self, reads: dict[str, tuple[int, str]]) -> None:
        """Add reads (count, last time) by chunk id."""
        self.connection.executemany(
            "UPDATE chunks SET access_count = access_count + ?, accessed_at = max(accessed_at, ?),"
            " access_unsaved = 1 WHERE id = ?",
            [(count, when, chunk_id) for chunk_id, (count, when) in reads.items()],
        )


class TermNumbers(dict[str, int]):
    """The numbers of terms in the dictionary of the index; asked for a new one, it is made.

    Args:
        connection: the connection that holds the write lock.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbered: Ahead | None = None

    def __missing__(self, text: str) -> int:
        execute = self._connection.execute
        found = execute("SELECT term FROM terms WHERE text = ?", (text,)).fetchone()
        if found is None:
            number = execute("INSERT INTO terms(text) VALUES (?)", (text,)).lastrowid or 0
        else:
            number = int(found[0])
        if len(self) > _MOST_KEPT:
            self.clear()
        self[text] = number
        return number

    def number(self, ahead: Ahead) -> None:
        """Number at once what the segments of a transaction are going to ask for, the first time in a transaction."""
        if ahead is self._numbered:
            return
        self._numbered = ahead
        asked = dict.fromkeys(text for one in ahead.values() for text in one.terms if text not in self)
        if len(self) + len(asked) > _MOST_KEPT:
            self.clear()
        self._look_up(asked)
        new = [(text,) for text in asked if text not in self]
        self._connection.executemany("INSERT INTO terms(text) VALUES (?)", new)
        self._look_up(text for (text,) in new)

    def _look_up(self, texts: Iterable[str]) -> None:
        self.update(
            self._connection.execute(
                "SELECT text, term FROM terms WHERE text IN (SELECT value FROM json_each(?))",
                (json.dumps(list(texts)),),
            )
        )

    def begin(self) -> None:
        """A transaction begins."""
        self._numbered = None


class ThreadRows(threading.local):
    """The row writer of the calling thread, on its connection."""

    def __init__(self, connections: Connections, encode: Encode) -> None:
        self._connections = connections
        self._encode = encode
        self._writer: LocalRowWriter | None = None
        self._emptied: tuple[str] | None = None

    def get(self) -> LocalRowWriter:
        """The writer, to be asked for with the write lock held.

        A new one, which has no numbers of rows in its cache, where the thread has another connection than before, or
        where anybody emptied the index meanwhile.
        """
        connection = self._connections.get()
        emptied = connection.execute("SELECT value FROM meta WHERE key = 'emptied'").fetchone()
        if self._writer is None or self._writer.connection is not connection or self._emptied != emptied:
            self._writer, self._emptied = LocalRowWriter(connection, self._encode), emptied
        return self._writer
