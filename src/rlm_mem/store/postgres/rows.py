"""Rows of one namespace inside a write transaction: collected, and written set by set in few round trips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from rlm_mem.chunk import Chunk, encode_chunk
from rlm_mem.errors import ConflictError
from rlm_mem.store.core.rows import ACTIVE, ChunkRow, IndexEntry, entry_of, repeated_prefix, surroundings
from rlm_mem.store.postgres.collected import CHUNK_COLUMNS, COLLECT, Collected, touching

if TYPE_CHECKING:
    from rlm_mem.store.core.rows import Reads
    from rlm_mem.store.postgres.terms import TermIndex
    from rlm_mem.text.analysis import AnalysedSegment

__all__ = ["FIND", "Analyse", "VersionRecord", "Head", "PostgresRowWriter"]

Analyse = Callable[[str, int, str], "Sequence[AnalysedSegment]"]
"""From content and the length of its repeated prefix to its segments."""

FIND = (
    "SELECT c.doc, c.id, c.ns, c.status, c.revision, c.content_hash, coalesce(r.accessed_at, ''),"
    " coalesce(r.access_count, 0), c.tokens FROM rlm_mem.chunks c LEFT JOIN rlm_mem.reads r"
    " ON r.ns = c.ns AND r.doc = c.doc WHERE c.ns = %s AND c.id = %s"
)

_SET = ", ".join(f"{name.strip()} = %s" for name in CHUNK_COLUMNS.split(",")[3:])


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """What is written of a chunk, before it changes."""

    doc: int
    status: int
    conversation: int | None
    type: str
    tokens: int
    size: int
    revision: int
    content_hash: str
    length: int
    segment_count: int
    segments: bytes


_HEAD = (
    "name", "state", "moved_to", "next_doc", "next_term", "next_conversation", "analysis", "modified",
    "segments", "length", "conversations", "loose",
)  # fmt: skip
_COUNTERS = (
    "next_doc", "next_term", "next_conversation", "analysis", "modified", "segments", "length",
    "conversations", "loose",
)  # fmt: skip


@dataclass
class Head:
    """The row of a namespace while its lock is held: counters and figures, written back with the changes."""

    ns: int
    name: str
    state: str
    moved_to: str | None
    next_doc: int
    next_term: int
    next_conversation: int
    analysis: str
    modified: int
    segments: int
    length: int
    conversations: int
    loose: int

    @staticmethod
    def columns() -> str:
        """What to select, in order."""
        return ", ".join(_HEAD)

    def counters(self) -> tuple[Any, ...]:
        """What ``write`` writes, to see whether anything changed."""
        return tuple(getattr(self, name) for name in _COUNTERS)

    def write(self) -> tuple[str, tuple[Any, ...]]:
        """The statement that writes it back."""
        columns = ", ".join(f"{name} = %s" for name in _COUNTERS)
        return f"UPDATE rlm_mem.namespaces SET {columns} WHERE ns = %s", (*self.counters(), self.ns)


class PostgresRowWriter:
    """Collects the rows of changed chunks of one namespace, whose lock the transaction holds.

    Args:
        connection: inside the transaction.
        head: the namespace's row.
        terms: the search half; told of every text that comes or goes.
        analyse: makes segments of content.
        keep_versions: how many former versions of a chunk are kept.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        head: Head,
        terms: TermIndex,
        analyse: Analyse,
        *,
        keep_versions: int,
    ) -> None:
        self.head = head
        self._connection = connection
        self._terms = terms
        self._analyse = analyse
        self._keep_versions = keep_versions
        self._absent: set[str] = set()
        self._kept: set[str] = set()
        self._conversations: dict[str, int] = {}
        self._new = Collected(head.ns)
        self._written = head.counters()
        self._changed = False
        self._touched = False

    # --- what a transaction asks ------------------------------------------------------------------------

    def find(self, chunk_id: str) -> ChunkRow | None:
        """The row of a chunk; what is not there cannot come while the lock is held, and is not asked for twice."""
        if chunk_id in self._absent:
            return None
        new = self._new.find(chunk_id)
        if new is not None:
            return new
        found = self._rows(FIND, (self.head.ns, chunk_id))
        if found:
            return ChunkRow(*found[0])
        self._absent.add(chunk_id)
        return None

    def put(self, chunk: Chunk, status: int, *, keep_version: bool) -> None:
        """Write every row of a chunk, new or changed; it is collected first."""
        former = self.former(chunk.id)
        conversation = self._conversation(chunk.metadata.conversation_id)
        doc = former.doc if former else self._next_doc()
        blob, length, count = self._index(chunk, doc, conversation, status, former)
        body, entry = encode_chunk(chunk), entry_of(chunk)
        row = self._columns_of(doc, conversation, status, entry, len(body), length, count)
        if former is None:
            self._new.chunk(row, body.decode(), blob)
            self._absent.discard(chunk.id)
            self._kept.add(chunk.id)  # its states within this transaction are no former versions
        else:
            if keep_version and self._keep_versions and chunk.id not in self._kept:
                self._keep_present(former, chunk.id)
            self._change(chunk.id, former, row, body, blob)
        if status == ACTIVE:
            self._new.describe(doc, entry)
        if former or entry.access_count:
            self._new.count(doc, entry.access_count, entry.accessed_at)
        if former:
            self._new.total(former.status, former.type, -1, -former.tokens, -former.size)
        self._new.total(status, entry.type, 1, entry.tokens, len(body))
        self._new.talk(conversation, former.conversation if former else None)
        self._changed = self._touched = True
        if self._new.new_chunks >= COLLECT:
            self.send()

    def move(self, chunk: Chunk, status: int) -> None:
        """Archive or restore a chunk as it is."""
        former = self.former(chunk.id)
        if former is None:
            raise ConflictError(f"{chunk.id} is not there any more", hint="read it again")
        blob, length, count = self._index(chunk, former.doc, former.conversation, status, former)
        self._new.run(
            "UPDATE rlm_mem.chunks SET status = %s, length = %s, segment_count = %s"
            " WHERE ns = %s AND doc = %s AND revision = %s",
            (status, length, count, self.head.ns, former.doc, former.revision),
            chunk.id,
        )
        if blob is not former.segments:
            self._new.run(
                "UPDATE rlm_mem.bodies SET segments = %s WHERE ns = %s AND doc = %s",
                (blob, self.head.ns, former.doc),
            )
        self._new.forget(former.doc)
        if status == ACTIVE:
            self._new.describe(former.doc, entry_of(chunk))
        self._new.total(former.status, former.type, -1, -former.tokens, -former.size)
        self._new.total(status, former.type, 1, former.tokens, former.size)
        self._new.talk(former.conversation)
        self._changed = self._touched = True

    def erase(self, chunk_id: str) -> None:
        """Remove every row of a chunk, its former versions included."""
        former = self.former(chunk_id)
        if former is None:
            return
        if former.status == ACTIVE:
            self._terms.take_out(former.doc, former.conversation, former.segments)
        self._new.forget(former.doc)
        for table in ("chunks", "bodies", "reads"):
            self._new.run(
                f"DELETE FROM rlm_mem.{table} WHERE ns = %s AND doc = %s", (self.head.ns, former.doc)
            )
        self._new.run("DELETE FROM rlm_mem.versions WHERE ns = %s AND id = %s", (self.head.ns, chunk_id))
        self._new.total(former.status, former.type, -1, -former.tokens, -former.size)
        self._new.talk(former.conversation)
        self._changed = self._touched = True

    def keep(self, chunk: Chunk) -> None:
        """Record a former version as it is, in place of the one with its revision."""
        self._new.run(
            "INSERT INTO rlm_mem.versions(ns, id, revision, body) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (ns, id, revision) DO UPDATE SET body = excluded.body",
            (self.head.ns, chunk.id, chunk.revision, encode_chunk(chunk).decode()),
        )
        self._trim(chunk.id)
        self._touched = True

    def renew(self, chunk: Chunk, doc: int, status: int) -> None:
        """Write everything derived of a chunk anew; whatever was derived of it before is gone already."""
        conversation = self._conversation(chunk.metadata.conversation_id)
        blob, length, count = self._index(chunk, doc, conversation, status, None)
        body, entry = encode_chunk(chunk), entry_of(chunk)
        row = self._columns_of(doc, conversation, status, entry, len(body), length, count)
        self._new.run(
            f"UPDATE rlm_mem.chunks SET {_SET} WHERE ns = %s AND doc = %s", (*row[3:], self.head.ns, doc)
        )
        self._new.run(
            "UPDATE rlm_mem.bodies SET segments = %s WHERE ns = %s AND doc = %s", (blob, self.head.ns, doc)
        )
        if status == ACTIVE:
            self._new.describe(doc, entry)
        self._new.total(status, entry.type, 1, entry.tokens, len(body))
        self._new.talk(conversation)
        self._changed = self._touched = True

    def renew_unreadable(
        self, doc: int, status: int, conversation: int | None, kind: str, tokens: int, size: int
    ) -> None:
        """Count a chunk whose text does not validate as what its columns say it is, without any words."""
        if status == ACTIVE:
            self._terms.put_back(doc, conversation, b"")
        self._new.run(
            "UPDATE rlm_mem.bodies SET segments = '' WHERE ns = %s AND doc = %s", (self.head.ns, doc)
        )
        self._new.run(
            "UPDATE rlm_mem.chunks SET length = 0, segment_count = 0 WHERE ns = %s AND doc = %s",
            (self.head.ns, doc),
        )
        self._new.total(status, kind, 1, tokens, size)
        self._new.talk(conversation)
        self._changed = self._touched = True

    def touch(self, reads: Reads) -> None:
        """Add reads (count, last time) by chunk id."""
        statement, values = touching(self.head.ns, reads)
        self._new.run(statement, values)

    # --- the parts of a change --------------------------------------------------------------------------

    def former(self, chunk_id: str) -> VersionRecord | None:
        """What is written of a chunk, changes of this transaction included."""
        if chunk_id in self._absent:
            return None
        if self._new.find(chunk_id) is not None:
            self.send()
        found = self._rows(
            "SELECT c.doc, c.status, c.conversation, c.type, c.tokens, c.size, c.revision, c.content_hash, c.length,"
            " c.segment_count, b.segments FROM rlm_mem.chunks c LEFT JOIN rlm_mem.bodies b"
            " ON b.ns = c.ns AND b.doc = c.doc WHERE c.ns = %s AND c.id = %s",
            (self.head.ns, chunk_id),
        )
        if not found:
            self._absent.add(chunk_id)
            return None
        return VersionRecord(*(*found[0][:-1], found[0][-1] or b""))

    def _rows(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        if self._new.queued:
            self.send()
        with self._connection.cursor(binary=True) as cursor:
            return cursor.execute(statement, values).fetchall()

    def _index(
        self, chunk: Chunk, doc: int, conversation: int | None, status: int, former: VersionRecord | None
    ) -> tuple[bytes, int, int]:
        """Tell the search half what changes; blob, length in terms and number of segments of the chunk."""
        was = former is not None and former.status == ACTIVE
        same = former is not None and former.content_hash == chunk.metadata.content_hash and former.segments
        if former is not None and was:
            if same and status == ACTIVE and conversation == former.conversation:
                return former.segments, former.length, former.segment_count
            self._terms.take_out(doc, former.conversation, former.segments)
        if former is not None and same:
            if status == ACTIVE:
                self._terms.put_back(doc, conversation, former.segments)
            return former.segments, former.length, former.segment_count
        if status != ACTIVE:  # analysed when it is restored
            return b"", 0, 0
        return self._terms.add(
            doc, conversation, self._analyse(chunk.content, repeated_prefix(chunk), surroundings(chunk))
        )

    def _next_doc(self) -> int:
        self.head.next_doc += 1
        return self.head.next_doc - 1

    def _conversation(self, conversation_id: str | None) -> int | None:
        if conversation_id is None:
            return None
        number = self._conversations.get(conversation_id)
        if number is None:
            found = self._rows(
                "SELECT conversation FROM rlm_mem.conversations WHERE ns = %s AND id = %s",
                (self.head.ns, conversation_id),
            )
            if found:
                number = int(found[0][0])
            else:
                number = self.head.next_conversation
                self.head.next_conversation += 1
                self._new.conversation(number, conversation_id)
            self._conversations[conversation_id] = number
        return number

    def _keep_present(self, former: VersionRecord, chunk_id: str) -> None:
        self._kept.add(chunk_id)
        self._new.run(
            "INSERT INTO rlm_mem.versions(ns, id, revision, body) SELECT b.ns, %s, %s, b.body FROM rlm_mem.bodies b"
            " WHERE b.ns = %s AND b.doc = %s ON CONFLICT (ns, id, revision) DO UPDATE SET body = excluded.body",
            (chunk_id, former.revision, self.head.ns, former.doc),
        )
        self._trim(chunk_id)

    def _trim(self, chunk_id: str) -> None:
        self._new.run(
            "DELETE FROM rlm_mem.versions WHERE ns = %s AND id = %s AND revision <= (SELECT v.revision"
            " FROM rlm_mem.versions v WHERE v.ns = %s AND v.id = %s ORDER BY v.revision DESC OFFSET %s LIMIT 1)",
            (self.head.ns, chunk_id, self.head.ns, chunk_id, self._keep_versions),
        )

    def _change(
        self, chunk_id: str, former: VersionRecord, row: tuple[Any, ...], body: bytes, blob: bytes
    ) -> None:
        self._new.run(
            f"UPDATE rlm_mem.chunks SET {_SET} WHERE ns = %s AND doc = %s AND revision = %s",
            (*row[3:], self.head.ns, former.doc, former.revision),
            chunk_id,
        )
        self._new.run(
            "UPDATE rlm_mem.bodies SET body = %s, segments = %s WHERE ns = %s AND doc = %s",
            (body.decode(), blob, self.head.ns, former.doc),
        )
        self._new.forget(former.doc)

    def _columns_of(
        self,
        doc: int,
        conversation: int | None,
        status: int,
        entry: IndexEntry,
        size: int,
        length: int,
        segments: int,
    ) -> tuple[Any, ...]:
        return (
            self.head.ns, doc, entry.id, conversation, entry.type, status, entry.at, entry.created_at,
            entry.modified_at, entry.occurred_at, entry.valid_from, entry.valid_to, entry.superseded_by,
            entry.confidence, entry.tokens, entry.revision, entry.source, entry.content_hash, entry.norm_hash,
            size, length, segments,
        )  # fmt: skip

    # --- writing ----------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write everything collected: from now on the connection sees it."""
        self.send()
        if self._changed:
            self._terms.flush()
            self._changed = False
        if self.head.counters() != self._written:
            self._connection.execute(*self.head.write())
            self._written = self.head.counters()

    def finish(self) -> list[tuple[str, tuple[Any, ...]]]:
        """Write everything but the namespace's own row: the statement for that is returned, to go with the commit."""
        self.send()
        if self._changed:
            self._terms.flush()
            self._changed = False
        if not self._touched:
            return []
        self.head.modified += 1
        return [self.head.write()]

    def send(self) -> None:
        """Write the collected rows, but for those of the search half."""
        self._new.send(self._connection)
