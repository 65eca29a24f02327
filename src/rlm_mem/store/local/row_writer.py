"""Rows of the index that belong to one chunk: written together, removed together."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial

from rlm_mem.chunk import Chunk
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

__all__ = ["LocalRowWriter", "find_row", "row_at_path"]


_ROW_COLUMNS = (
    "doc, id, ns, status, revision, content_hash, accessed_at, access_count, tokens,"
    " path, size, mtime_ns, inode"
)


def find_row(connection: sqlite3.Connection, chunk_id: str, namespace: str | None = None) -> ChunkRow | None:
    """The row of a chunk id, whatever its status; of one namespace, or of any."""
    if namespace is None:
        found = connection.execute(f"SELECT {_ROW_COLUMNS} FROM chunks WHERE id = ?", (chunk_id,)).fetchone()
    else:
        found = connection.execute(
            f"SELECT {_ROW_COLUMNS} FROM chunks WHERE id = ?"
            " AND +ns = (SELECT ns FROM namespaces WHERE name = ?)",
            (chunk_id, namespace),
        ).fetchone()
    return ChunkRow(*found) if found else None


def row_at_path(connection: sqlite3.Connection, path: str) -> ChunkRow | None:
    """The row of the chunk whose file is at ``path`` (relative to the store)."""
    found = connection.execute(f"SELECT {_ROW_COLUMNS} FROM chunks WHERE path = ?", (path,)).fetchone()
    return ChunkRow(*found) if found else None


class LocalRowWriter:
    """Writes the rows of chunks inside the caller's transaction.

    Args:
        connection: the connection that holds the write lock.
        encode: makes the encoded segments of a chunk.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        encode: Encode,
    ) -> None:
        self._connection = connection
        self._encode = encode
        self._terms: dict[str, int] = {}
        self._namespaces: dict[str, int] = {}
        self._conversations: dict[tuple[int, str], int] = {}

    def forget(self) -> None:
        """Drop cached numbers that a rollback made invalid."""
        self._terms.clear()
        self._namespaces.clear()
        self._conversations.clear()

    def namespace(self, name: str) -> int:
        """The number of a namespace, made if it is new."""
        number = self._namespaces.get(name)
        if number is None:
            number = self._number("namespaces", "ns", "name", name)
            self._namespaces[name] = number
        return number

    def _number(self, table: str, key: str, column: str, text: str) -> int:
        found = self._connection.execute(f"SELECT {key} FROM {table} WHERE {column} = ?", (text,)).fetchone()
        if found:
            return int(found[0])
        return int(
            self._connection.execute(f"INSERT INTO {table}({column}) VALUES (?)", (text,)).lastrowid or 0
        )

    def term(self, text: str) -> int:
        """The number of a term, made if it is new."""
        number = self._terms.get(text)
        if number is None:
            number = self._number("terms", "term", "text", text)
            if len(self._terms) > 500_000:  # bounded: a dictionary of a large store need not live here
                self._terms.clear()
            self._terms[text] = number
        return number

    def _conversation(self, ns: int, conversation_id: str | None) -> int | None:
        if conversation_id is None:
            return None
        key = (ns, conversation_id)
        number = self._conversations.get(key)
        if number is None:
            execute = self._connection.execute
            found = execute("SELECT conversation FROM conversations WHERE ns = ? AND id = ?", key).fetchone()
            number = int(
                found[0]
                if found
                else execute("INSERT INTO conversations(ns, id) VALUES (?, ?)", key).lastrowid or 0
            )
            self._conversations[key] = number
        return number

    def put(
        self, chunk: Chunk, path: str, sig: Signature, status: int, *, former: ChunkRow | None = None
    ) -> int:
        """Write every row of ``chunk``; ``former`` is its row where it is there already."""
        segments = partial(
            self._encode, chunk.content, repeated_prefix(chunk), surroundings(chunk), self.term
        )
        return self.put_entry(entry_of(chunk), path, sig, status, segments, former=former)

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
        ns = self.namespace(entry.namespace)
        doc = former.doc if former else None
        if doc is not None:
            self._drop_tags_and_links(doc)
        values = (
            entry.id, ns, self._conversation(ns, entry.conversation_id), entry.type, status, entry.at,
            entry.created_at, entry.modified_at, entry.occurred_at, entry.valid_from, entry.valid_to,
            entry.superseded_by, entry.confidence, entry.tokens, entry.revision, entry.source, entry.content_hash,
            entry.norm_hash, path, sig.size, sig.mtime_ns, sig.inode, entry.accessed_at, entry.access_count,
        )  # fmt: skip
        if doc is None:
            doc = self._connection.execute(
                "INSERT INTO chunks(id, ns, conversation, type, status, at, created_at, modified_at, occurred_at,"
                " valid_from, valid_to, superseded_by, confidence, tokens, revision, source, content_hash,"
                " norm_hash, path, size, mtime_ns, inode, accessed_at, access_count)"
                " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                values,
            ).lastrowid
        else:
            self._connection.execute(
                "UPDATE chunks SET id=?, ns=?, conversation=?, type=?, status=?, at=?, created_at=?,"
                " modified_at=?, occurred_at=?, valid_from=?, valid_to=?, superseded_by=?, confidence=?,"
                " tokens=?, revision=?, source=?, content_hash=?, norm_hash=?, path=?, size=?, mtime_ns=?,"
                " inode=?, accessed_at=?, access_count=?, access_unsaved=0 WHERE doc=?",
                (*values, doc),
            )
        assert doc is not None
        if status == ACTIVE:
            self._put_tags_and_links(doc, ns, entry)
            # A chunk that came into the archive from elsewhere was not analysed there.
            if former is None or former.content_hash != entry.content_hash or not self._has_segments(doc):
                self._connection.execute("INSERT OR REPLACE INTO segments VALUES (?, ?)", (doc, segments()))
        self._connection.execute("INSERT INTO changes(ns, doc) VALUES (?, ?)", (ns, doc))
        return doc

    def _put_tags_and_links(self, doc: int, ns: int, entry: IndexEntry) -> None:
        many = self._connection.executemany
        if entry.tags:
            many(
                "INSERT OR IGNORE INTO tags VALUES (?,?,?,?)",
                [(ns, tag, entry.at, doc) for tag in entry.tags],
            )
        if entry.links:
            many(
                "INSERT INTO links VALUES (?,?,?,?,?,?,?)",
                [(doc, position, *link) for position, link in enumerate(entry.links)],
            )

    def _has_segments(self, doc: int) -> bool:
        found = self._connection.execute("SELECT 1 FROM segments WHERE doc = ?", (doc,)).fetchone()
        return found is not None

    def _drop_tags_and_links(self, doc: int) -> None:
        self._connection.execute("DELETE FROM tags WHERE doc = ?", (doc,))
        self._connection.execute("DELETE FROM links WHERE doc = ?", (doc,))

    def drop(self, row: ChunkRow) -> None:
        """Remove every row of a chunk."""
        self._drop_tags_and_links(row.doc)
        self._connection.execute("DELETE FROM segments WHERE doc = ?", (row.doc,))
        self._connection.execute("DELETE FROM chunks WHERE doc = ?", (row.doc,))
        self._connection.execute("INSERT INTO changes(ns, doc) VALUES (?, ?)", (row.ns, row.doc))

    def touch(self, reads: dict[str, tuple[int, str]]) -> None:
        """Add reads (count, last time) by chunk id."""
        self._connection.executemany(
            "UPDATE chunks SET access_count = access_count + ?, accessed_at = max(accessed_at, ?),"
            " access_unsaved = 1 WHERE id = ?",
            [(count, when, chunk_id) for chunk_id, (count, when) in reads.items()],
        )
