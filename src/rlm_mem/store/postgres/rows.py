"""Writes the rows of a namespace's chunks in a transaction: collected, then sent by table in few round trips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from rlm_mem.chunk import Chunk, decode_chunk, encode_chunk
from rlm_mem.errors import ConflictError, InvalidChunk
from rlm_mem.store.core.preencoding import AHEAD, LocalTerms, local_terms
from rlm_mem.store.core.records import ACTIVE, ChunkRow, IndexEntry, Reads, entry_of, index_key
from rlm_mem.store.postgres.pool import rows_of
from rlm_mem.store.postgres.schema import Head
from rlm_mem.store.postgres.values import Statement

if TYPE_CHECKING:
    from rlm_mem.config import Config
    from rlm_mem.store.postgres.terms import Question, TermIndex

#: At least this many new chunks are sent by COPY.
_COPY_FROM = 50
#: New chunks are sent once this many are collected, so that memory stays bounded in a batch of any size.
_MAX_COLLECTED = 500
#: The texts of this many looked-up chunks are cached until they are read or changed.
_MAX_CACHED_TEXTS = 50

_CHUNK_COLUMNS = (
    "ns, doc, id, conversation, type, status, at, created_at, modified_at, occurred_at, valid_from, valid_to,"
    " superseded_by, confidence, tokens, revision, source, content_hash, norm_hash, size, length, segment_count,"
    " origin, trust, expires_at"
)

FIND = (
    "SELECT c.doc, c.id, c.ns, c.status, c.revision, c.content_hash, coalesce(r.accessed_at, ''),"
    " coalesce(r.access_count, 0), c.tokens FROM rlm_mem.chunks c LEFT JOIN rlm_mem.reads r"
    " ON r.ns = %s AND r.doc = c.doc WHERE c.ns = %s AND c.id = %s"
)

#: The fields of a ``VersionRecord``.
_FORMER = (
    "SELECT c.doc, c.status, c.conversation, c.type, c.tokens, c.size, c.revision, c.content_hash, c.length,"
    " c.segment_count, coalesce(b.segments, ''), b.body, v.id, coalesce(r.access_count, 0), coalesce(r.accessed_at, '')"
    " FROM rlm_mem.chunks c LEFT JOIN rlm_mem.bodies b ON b.ns = %s AND b.doc = c.doc"
    " LEFT JOIN rlm_mem.conversations v ON v.ns = %s AND v.conversation = c.conversation"
    " LEFT JOIN rlm_mem.reads r ON r.ns = %s AND r.doc = c.doc WHERE c.ns = %s AND c.id = %s"
)

_SET = ", ".join(f"{name.strip()} = %s" for name in _CHUNK_COLUMNS.split(",")[3:])

_NO_FILE = ("", 0, 0, 0)

Ahead = dict[tuple[str, str], list[tuple[Any, ...]]]
"""Rows that were read ahead, by the statement and the text of its values."""


def row_found(namespace: str, found: Sequence[tuple[Any, ...]]) -> ChunkRow | None:
    """Return the row that ``FIND`` found in a namespace; None if it found none."""
    return ChunkRow(*(*found[0], *_NO_FILE, namespace)) if found else None


def reading(ns: int, chunk_ids: Sequence[str], status: int | None) -> Statement:
    """Return the statement and values that read the texts of chunks with this status (None: any) and their reads."""
    return (
        "SELECT c.id, b.body, coalesce(r.access_count, 0), coalesce(r.accessed_at, '') FROM rlm_mem.chunks c"
        " JOIN rlm_mem.bodies b ON b.ns = %s AND b.doc = c.doc"
        " LEFT JOIN rlm_mem.reads r ON r.ns = %s AND r.doc = c.doc"
        f" WHERE c.ns = %s AND c.id = ANY(%s){'' if status is None else ' AND c.status = %s'}",
        (ns, ns, ns, list(chunk_ids), *(() if status is None else (status,))),
    )


def touching(ns: int, reads: Reads) -> Statement:
    """Return the statement that adds reads to the counts of chunks."""
    ids = sorted(reads)
    return (
        "INSERT INTO rlm_mem.reads AS r (ns, doc, access_count, accessed_at)"
        " SELECT c.ns, c.doc, g.n, g.at FROM unnest(%s::text[], %s::integer[], %s::text[]) AS g(id, n, at)"
        " JOIN rlm_mem.chunks c ON c.ns = %s AND c.id = g.id ORDER BY c.doc"
        " ON CONFLICT (ns, doc) DO UPDATE SET access_count = r.access_count + excluded.access_count,"
        " accessed_at = greatest(r.accessed_at, excluded.accessed_at)",
        (ids, [reads[chunk_id][0] for chunk_id in ids], [reads[chunk_id][1] for chunk_id in ids], ns),
    )


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """The state of a chunk before a change, with all that reading and changing it needs."""

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
    body: str | None
    conversation_id: str | None
    access_count: int
    accessed_at: str

    def indexed_as(self, chunk: Chunk) -> bool:
        """Return whether ``chunk`` has the same segments."""
        if not self.segments or self.body is None or self.content_hash != chunk.metadata.content_hash:
            return False
        try:
            return index_key(decode_chunk(self.body.encode())) == index_key(chunk)
        except InvalidChunk:  # damaged since it was indexed: its former content is unknown
            return False


class PostgresRowWriter:
    """Collects the rows of changed chunks of one namespace, which the transaction has locked.

    Args:
        connection: inside the transaction.
        head: the namespace's row.
        terms: the term index, which receives every text that is added or removed.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], head: Head, terms: TermIndex, config: Config
    ) -> None:
        self.head = head
        self._connection = connection
        self._terms = terms
        self._language = config.search.language
        self._keep_versions = config.store.keep_versions
        self._missing: set[str] = set()
        self._kept: set[str] = set()
        self.conversations: dict[str, int] = {}
        """Numbers of the conversations known so far: of those asked for by ``expect``, all that have a chunk."""
        self._unknown: set[str] = set()
        self._queue: list[tuple[str, Sequence[object], str | None]] = []
        self._chunks: dict[str, tuple[Any, ...]] = {}
        self._bodies: list[tuple[Any, ...]] = []
        self._tags: list[tuple[int, float, str]] = []
        self._links: list[tuple[Any, ...]] = []
        self._new_conversations: list[tuple[int, str]] = []
        self._counts: dict[int, tuple[int, str]] = {}
        self._totals: dict[tuple[int, str], list[int]] = {}
        self._changed_conversations: set[int] = set()
        self._segments: dict[tuple[str, int, str], LocalTerms] = {}
        self._formers: dict[str, VersionRecord] = {}
        self._written = head.counters()
        self._touched = 0  # changes that are not yet counted in the version

    # --- chunks -----------------------------------------------------------------------------------------

    def find(self, chunk_id: str, ahead: Ahead) -> ChunkRow | None:
        """Return the row of a chunk; a missing one is looked up once, since nobody else can add it under the lock.

        Args:
            ahead: receives the rows that reading the chunk will ask for.
        """
        if chunk_id in self._missing:
            return None
        new = self._chunks.get(chunk_id)
        if new is not None:
            reads, when = self._counts.get(new[1], (0, ""))
            return ChunkRow(
                new[1], chunk_id, new[0], new[5], new[15], new[17], when, reads, new[14], namespace=self.head.name
            )  # fmt: skip
        found = self._look_up(chunk_id)
        if found is None:
            return None
        if len(self._formers) >= _MAX_CACHED_TEXTS:
            self._formers.clear()
            ahead.clear()
        # A chunk that is looked up under the lock is most likely read and changed next.
        self._formers[chunk_id] = found
        text, values = reading(self.head.ns, [chunk_id], None)
        read = chunk_id, found.body, found.access_count, found.accessed_at
        ahead[text, repr(values)] = [read] if found.body is not None else []
        return ChunkRow(
            found.doc, chunk_id, self.head.ns, found.status, found.revision, found.content_hash, found.accessed_at,
            found.access_count, found.tokens, namespace=self.head.name,
        )  # fmt: skip

    def expect(self, chunks: Sequence[Chunk]) -> list[Question]:
        """Return the questions whose answers storing these new chunks needs."""
        ns, ids = self.head.ns, [chunk.id for chunk in chunks]
        conversations = (
            {chunk.metadata.conversation_id for chunk in chunks} - self.conversations.keys() - {None}
        )

        def take_ids(found: list[tuple[Any, ...]]) -> None:
            self._missing.update(set(ids) - {row[0] for row in found} - self._chunks.keys())

        def take_conversations(found: list[tuple[Any, ...]]) -> None:
            self.conversations.update(found)
            self._unknown.update(conversation for conversation in conversations if conversation is not None)

        return [
            ("SELECT id FROM rlm_mem.chunks WHERE ns = %s AND id = ANY(%s::text[])", (ns, ids), take_ids),
            (
                "SELECT id, conversation FROM rlm_mem.conversations WHERE ns = %s AND id = ANY(%s::text[])",
                (ns, list(conversations)),
                take_conversations,
            ),
            self._terms.expect([text for chunk in chunks for text in self._encoded(chunk).terms]),
        ]

    def _encoded(self, chunk: Chunk) -> LocalTerms:
        """Return the segments of a chunk that is about to be put, which are cached until then."""
        key = index_key(chunk)
        encoded = AHEAD.get().get(key) or self._segments.get(key)
        if encoded is None:
            encoded = self._segments[key] = local_terms(*key, self._language)
        return encoded

    def put(self, chunk: Chunk, status: int, *, keep_version: bool) -> None:
        """Collect every row of a new or changed chunk for writing."""
        former = self.former(chunk.id)
        conversation = self._conversation(chunk.metadata.conversation_id)
        if former is not None:
            doc = former.doc
        else:
            doc, self.head.next_doc = self.head.next_doc, self.head.next_doc + 1
        blob, length, count = self._index(chunk, doc, conversation, status, former)
        ahead = AHEAD.get().get(index_key(chunk))
        body, entry = encode_chunk(chunk), entry_of(chunk, ahead.normalised if ahead is not None else "")
        row = self._columns_of(doc, conversation, status, entry, len(body), length, count)
        if former is None:
            self._chunks[chunk.id] = row
            self._bodies.append((self.head.ns, doc, body.decode(), blob))
            self._missing.discard(chunk.id)
            self._kept.add(chunk.id)  # its states within this transaction are not kept as versions
        else:
            if keep_version and self._keep_versions and chunk.id not in self._kept:
                self._keep_version(former, chunk.id)
            self._enqueue(
                f"UPDATE rlm_mem.chunks SET {_SET} WHERE ns = %s AND doc = %s AND revision = %s",
                (*row[3:], self.head.ns, doc, former.revision),
                chunk.id,
            )
            self._enqueue(
                "UPDATE rlm_mem.bodies SET body = %s, segments = %s WHERE ns = %s AND doc = %s",
                (body.decode(), blob, self.head.ns, doc),
            )
            self._drop_tags_and_links(doc)
        if status == ACTIVE:
            self._collect_tags_and_links(doc, entry)
        if former or entry.access_count:
            self._counts[doc] = (entry.access_count, entry.accessed_at)
        if former:
            self._total(former.status, former.type, -1, -former.tokens, -former.size)
        self._total(status, entry.type, 1, entry.tokens, len(body))
        self._end_change(conversation, former.conversation if former else None)

    def move(self, chunk: Chunk, status: int) -> None:
        """Archive or restore a chunk unchanged."""
        former = self.former(chunk.id)
        if former is None:
            raise ConflictError(
                f"{chunk.id} was removed meanwhile: nothing was changed", hint="read it again"
            )
        blob, length, count = self._index(chunk, former.doc, former.conversation, status, former)
        self._enqueue(
            "UPDATE rlm_mem.chunks SET status = %s, length = %s, segment_count = %s"
            " WHERE ns = %s AND doc = %s AND revision = %s",
            (status, length, count, self.head.ns, former.doc, former.revision),
            chunk.id,
        )
        if blob is not former.segments:
            self._enqueue(
                "UPDATE rlm_mem.bodies SET segments = %s WHERE ns = %s AND doc = %s",
                (blob, self.head.ns, former.doc),
            )
        self._drop_tags_and_links(former.doc)
        if status == ACTIVE:
            self._collect_tags_and_links(former.doc, entry_of(chunk))
        self._total(former.status, former.type, -1, -former.tokens, -former.size)
        self._total(status, former.type, 1, former.tokens, former.size)
        self._end_change(former.conversation)

    def erase(self, chunk_id: str) -> None:
        """Delete every row of a chunk, including its former versions."""
        former = self.former(chunk_id)
        if former is None:
            return
        if former.status == ACTIVE:
            self._terms.remove_blob(former.doc, former.conversation, former.segments)
        self._drop_tags_and_links(former.doc)
        for table in ("chunks", "bodies", "reads"):
            self._enqueue(
                f"DELETE FROM rlm_mem.{table} WHERE ns = %s AND doc = %s", (self.head.ns, former.doc)
            )
        self._enqueue("DELETE FROM rlm_mem.versions WHERE ns = %s AND id = %s", (self.head.ns, chunk_id))
        self._total(former.status, former.type, -1, -former.tokens, -former.size)
        self._end_change(former.conversation)

    def keep(self, chunk: Chunk) -> None:
        """Store a former version unchanged, replacing a kept one of the same revision."""
        self._enqueue(
            "INSERT INTO rlm_mem.versions(ns, id, revision, body) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (ns, id, revision) DO UPDATE SET body = excluded.body",
            (self.head.ns, chunk.id, chunk.revision, encode_chunk(chunk).decode()),
        )
        self._trim_versions(chunk.id)
        self._touched += 1

    def renew(self, chunk: Chunk, doc: int, status: int, size: int) -> None:
        """Write the derived rows of a chunk again, after the old ones were deleted.

        Args:
            size: bytes of its stored text: an earlier program version may have written the same chunk longer.
        """
        self._formers.pop(chunk.id, None)
        conversation = self._conversation(chunk.metadata.conversation_id)
        blob, length, count = self._index(chunk, doc, conversation, status, None)
        entry = entry_of(chunk)
        row = self._columns_of(doc, conversation, status, entry, size, length, count)
        self._enqueue(
            f"UPDATE rlm_mem.chunks SET {_SET} WHERE ns = %s AND doc = %s", (*row[3:], self.head.ns, doc)
        )
        self._enqueue(
            "UPDATE rlm_mem.bodies SET segments = %s WHERE ns = %s AND doc = %s", (blob, self.head.ns, doc)
        )
        if status == ACTIVE:
            self._collect_tags_and_links(doc, entry)
        self._total(status, entry.type, 1, entry.tokens, size)
        self._end_change(conversation)

    def renew_unreadable(
        self, doc: int, status: int, conversation: int | None, kind: str, tokens: int, size: int
    ) -> None:
        """Count a chunk whose text does not validate, from its columns alone and without any terms."""
        if status == ACTIVE:
            self._terms.add_blob(doc, conversation, b"")
        self._enqueue(
            "UPDATE rlm_mem.bodies SET segments = '' WHERE ns = %s AND doc = %s", (self.head.ns, doc)
        )
        self._enqueue(
            "UPDATE rlm_mem.chunks SET length = 0, segment_count = 0 WHERE ns = %s AND doc = %s",
            (self.head.ns, doc),
        )
        self._total(status, kind, 1, tokens, size)
        self._end_change(conversation)

    def touch(self, reads: Reads) -> None:
        """Add read counts (count, last time) by chunk id."""
        self._enqueue(*touching(self.head.ns, reads))

    # --- the parts of a change --------------------------------------------------------------------------

    def former(self, chunk_id: str) -> VersionRecord | None:
        """Return the record of a chunk, including changes of this transaction."""
        if chunk_id in self._missing:
            return None
        if chunk_id in self._chunks:
            self.send()
        former = self._formers.pop(chunk_id, None) or self._look_up(chunk_id)
        if former is not None and former.conversation_id is not None and former.conversation is not None:
            self.conversations[former.conversation_id] = former.conversation  # it most likely stays in it
        return former

    def _look_up(self, chunk_id: str) -> VersionRecord | None:
        ns = self.head.ns
        found = self._rows(_FORMER, (ns, ns, ns, ns, chunk_id))
        if not found:
            self._missing.add(chunk_id)
            return None
        return VersionRecord(*found[0])

    def _rows(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        if self._queue:
            self.send()
        return rows_of(self._connection, [(statement, values)])[0]

    def _index(
        self, chunk: Chunk, doc: int, conversation: int | None, status: int, former: VersionRecord | None
    ) -> tuple[bytes, int, int]:
        """Pass the change to the term index; return blob, length in terms and number of segments of the chunk."""
        was_active = former is not None and former.status == ACTIVE
        same = former is not None and former.indexed_as(chunk)
        if former is not None and was_active:
            if same and status == ACTIVE and conversation == former.conversation:
                return former.segments, former.length, former.segment_count
            self._terms.remove_blob(doc, former.conversation, former.segments)
        if former is not None and same:
            if status == ACTIVE:
                self._terms.add_blob(doc, conversation, former.segments)
            return former.segments, former.length, former.segment_count
        if status != ACTIVE:  # analysed when it is restored
            return b"", 0, 0
        encoded = self._encoded(chunk)
        self._segments.pop(index_key(chunk), None)
        return self._terms.add(doc, conversation, encoded)

    def _conversation(self, conversation_id: str | None) -> int | None:
        if conversation_id is None:
            return None
        number = self.conversations.get(conversation_id)
        if number is None:
            found = conversation_id not in self._unknown and self._rows(
                "SELECT conversation FROM rlm_mem.conversations WHERE ns = %s AND id = %s",
                (self.head.ns, conversation_id),
            )
            if found:
                number = int(found[0][0])
            else:
                number = self.head.next_conversation
                self.head.next_conversation += 1
                self._new_conversations.append((number, conversation_id))
            self.conversations[conversation_id] = number
        return number

    def _keep_version(self, former: VersionRecord, chunk_id: str) -> None:
        self._kept.add(chunk_id)
        self._enqueue(
            "INSERT INTO rlm_mem.versions(ns, id, revision, body) SELECT b.ns, %s, %s, b.body FROM rlm_mem.bodies b"
            " WHERE b.ns = %s AND b.doc = %s ON CONFLICT (ns, id, revision) DO UPDATE SET body = excluded.body",
            (chunk_id, former.revision, self.head.ns, former.doc),
        )
        self._trim_versions(chunk_id)

    def _trim_versions(self, chunk_id: str) -> None:
        self._enqueue(
            "DELETE FROM rlm_mem.versions WHERE ns = %s AND id = %s AND revision <= (SELECT v.revision"
            " FROM rlm_mem.versions v WHERE v.ns = %s AND v.id = %s ORDER BY v.revision DESC OFFSET %s LIMIT 1)",
            (self.head.ns, chunk_id, self.head.ns, chunk_id, self._keep_versions),
        )

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
            size, length, segments, entry.origin, entry.trust, entry.expires_at,
        )  # fmt: skip

    # --- collecting ---------------------------------------------------------------------------------------

    def _enqueue(self, statement: str, values: Sequence[object], changes: str | None = None) -> None:
        """Queue a statement; ``changes`` is the id of the chunk whose row it must find."""
        self._queue.append((statement, values, changes))

    def _collect_tags_and_links(self, doc: int, entry: IndexEntry) -> None:
        self._tags += [(doc, entry.at, tag) for tag in entry.tags]
        self._links += [(doc, position, *link) for position, link in enumerate(entry.links)]

    def _drop_tags_and_links(self, doc: int) -> None:
        self._tags = [tag for tag in self._tags if tag[0] != doc]
        self._links = [link for link in self._links if link[0] != doc]
        self._enqueue(
            "WITH gone AS (DELETE FROM rlm_mem.tags WHERE ns = %s AND doc = %s RETURNING tag)"
            " UPDATE rlm_mem.tag_totals t SET chunks = t.chunks - 1 FROM gone WHERE t.ns = %s AND t.tag = gone.tag",
            (self.head.ns, doc, self.head.ns),
        )
        self._enqueue("DELETE FROM rlm_mem.links WHERE ns = %s AND doc = %s", (self.head.ns, doc))

    def _total(self, status: int, kind: str, chunks: int, tokens: int, size: int) -> None:
        """Add to the totals of chunks with this status and type; negative numbers subtract."""
        total = self._totals.setdefault((status, kind), [0, 0, 0])
        for position, more in enumerate((chunks, tokens, size)):
            total[position] += more

    def _end_change(self, *conversations: int | None) -> None:
        """Count a change of a chunk, note conversations whose newest chunk may be another now, and write if due."""
        self._touched += 1
        self._changed_conversations.update(number for number in conversations if number is not None)
        if self._terms.is_full:
            self.flush()
        elif len(self._chunks) >= _MAX_COLLECTED:
            self.send()

    # --- writing ----------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write everything collected, so that statements on the connection see it."""
        for statement in self.finish():
            self._connection.execute(*statement)
        self._written = self.head.counters()

    def finish(self) -> list[Statement]:
        """Write everything that can be written before the commit; return the statements to run with it."""
        statements = self._terms.flush(self.send(self._terms.begin_flush()))
        self.head.modified, self._touched = self.version, 0
        return statements if self.head.counters() == self._written else [*statements, self.head.write()]

    @property
    def version(self) -> int:
        """The version of the namespace once all this is committed."""
        return self.head.modified + self._touched

    @property
    def pending(self) -> bool:
        """Whether there are collected rows that statements on the connection do not see yet."""
        rows = self._chunks, self._tags, self._links, self._counts, self._totals, self._new_conversations
        return bool(self._queue) or any(rows)

    def send(self, wanted: Sequence[Statement] = ()) -> list[list[tuple[Any, ...]]]:
        """Write the collected rows except those of the term index, in one round trip unless many chunks are new.

        Args:
            wanted: statements to run after them, whose rows are returned.
        """
        if not self.pending and not wanted:
            return []
        if len(self._chunks) >= _COPY_FROM:
            self._copy()
        queue, self._queue = self._queue, []
        with self._connection.pipeline():
            results = [
                (self._connection.execute(statement, values), changes) for statement, values, changes in queue
            ]
            for statement, values in self._collected():
                self._connection.execute(statement, values)
            asked = [self._connection.cursor(binary=True).execute(*statement) for statement in wanted]
        for cursor, changes in results:
            if changes is not None and cursor.rowcount != 1:
                raise ConflictError(
                    f"{changes} was changed by another process meanwhile: nothing was changed",
                    hint="read it again and repeat the change",
                )
        return [cursor.fetchall() for cursor in asked]

    def _collected(self) -> Iterator[Statement]:
        ns = self.head.ns
        marks = ", %s" * 24
        for row in self._chunks.values():
            yield f"INSERT INTO rlm_mem.chunks({_CHUNK_COLUMNS}) VALUES (%s{marks})", row
        for body in self._bodies:
            yield "INSERT INTO rlm_mem.bodies(ns, doc, body, segments) VALUES (%s, %s, %s, %s)", body
        if self._new_conversations:
            yield (
                "INSERT INTO rlm_mem.conversations(ns, conversation, id) SELECT %s, * FROM"
                " unnest(%s::integer[], %s::text[])",
                (ns, *_columns(self._new_conversations)),
            )
        if self._tags:
            yield (
                "WITH new AS (INSERT INTO rlm_mem.tags(ns, doc, at, tag) SELECT %s, * FROM"
                " unnest(%s::integer[], %s::double precision[], %s::text[]) ON CONFLICT DO NOTHING RETURNING tag)"
                " INSERT INTO rlm_mem.tag_totals AS t (ns, tag, chunks) SELECT %s, tag, count(*) FROM new GROUP BY tag"
                " ON CONFLICT (ns, tag) DO UPDATE SET chunks = t.chunks + excluded.chunks",
                (ns, *_columns(self._tags), ns),
            )
        if self._links:
            yield (
                "INSERT INTO rlm_mem.links(ns, doc, position, dst_id, type, strength, created_at, reasoning)"
                " SELECT %s, * FROM unnest(%s::integer[], %s::integer[], %s::text[], %s::text[],"
                " %s::double precision[], %s::text[], %s::bytea[])",
                (ns, *_columns([_link(link) for link in self._links])),
            )
        if self._counts:
            yield (
                "INSERT INTO rlm_mem.reads(ns, doc, access_count, accessed_at) SELECT %s, * FROM"
                " unnest(%s::integer[], %s::integer[], %s::text[]) ON CONFLICT (ns, doc) DO UPDATE"
                " SET access_count = excluded.access_count, accessed_at = excluded.accessed_at",
                (ns, *_columns([(doc, *count) for doc, count in sorted(self._counts.items())])),
            )
        if self._totals:
            rows = [(*key, *total) for key, total in sorted(self._totals.items()) if any(total)]
            if rows:
                yield (
                    "INSERT INTO rlm_mem.totals AS t (ns, status, type, chunks, tokens, bytes) SELECT %s, * FROM"
                    " unnest(%s::smallint[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[])"
                    " ON CONFLICT (ns, status, type) DO UPDATE SET chunks = t.chunks + excluded.chunks,"
                    " tokens = t.tokens + excluded.tokens, bytes = t.bytes + excluded.bytes",
                    (ns, *_columns(rows)),
                )
        if self._changed_conversations:
            yield (
                "UPDATE rlm_mem.conversations v SET last_at = (SELECT max(c.at) FROM rlm_mem.chunks c WHERE c.ns = %s"
                " AND c.conversation = v.conversation AND c.status = 0) WHERE v.ns = %s AND v.conversation = ANY(%s)",
                (ns, ns, sorted(self._changed_conversations)),
            )
        self._chunks, self._bodies, self._tags, self._links = {}, [], [], []
        self._changed_conversations = set()
        self._new_conversations, self._counts, self._totals = [], {}, {}

    def _copy(self) -> None:
        with self._connection.cursor() as cursor:
            with cursor.copy(f"COPY rlm_mem.chunks({_CHUNK_COLUMNS}) FROM STDIN") as copy:
                for row in self._chunks.values():
                    copy.write_row(row)
            with cursor.copy("COPY rlm_mem.bodies(ns, doc, body, segments) FROM STDIN") as copy:
                for row in self._bodies:
                    copy.write_row(row)
        self._chunks, self._bodies = {}, []


def _columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _link(link: tuple[Any, ...]) -> tuple[Any, ...]:
    # The reasoning of a link may contain NUL, which a PostgreSQL text cannot.
    return (*link[:-1], None if link[-1] is None else link[-1].encode())
