"""Rows that a write transaction has collected, and the few statements that write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import psycopg

from rlm_mem.errors import ConflictError
from rlm_mem.store.core.rows import ChunkRow, IndexEntry

if TYPE_CHECKING:
    from rlm_mem.store.core.rows import Reads

__all__ = ["CHUNK_COLUMNS", "COLLECT", "Collected", "touching"]

#: From so many new chunks on they are sent by COPY.
COPY_FROM = 50
#: So many new chunks are collected at most, then they are sent: memory stays bounded in a batch of any size.
COLLECT = 500

CHUNK_COLUMNS = (
    "ns, doc, id, conversation, type, status, at, created_at, modified_at, occurred_at, valid_from, valid_to,"
    " superseded_by, confidence, tokens, revision, source, content_hash, norm_hash, size, length, segment_count"
)


class Collected:
    """What is to be written of one namespace: new rows by table, and statements that change rows that are there."""

    def __init__(self, ns: int) -> None:
        self._ns = ns
        self._conversations: list[tuple[int, str]] = []
        self._chunks: dict[str, tuple[Any, ...]] = {}
        self._bodies: list[tuple[Any, ...]] = []
        self._tags: list[tuple[int, float, str]] = []
        self._links: list[tuple[Any, ...]] = []
        self._counts: dict[int, tuple[int, str]] = {}
        self._totals: dict[tuple[int, str], list[int]] = {}
        self._talked: set[int] = set()
        self._queue: list[tuple[str, tuple[Any, ...], str | None]] = []

    # --- collecting ------------------------------------------------------------------------------------

    def run(self, statement: str, values: tuple[Any, ...], changes: str | None = None) -> None:
        """Queue a statement; ``changes`` names the chunk of which it must find a row."""
        self._queue.append((statement, values, changes))

    def chunk(self, row: tuple[Any, ...], body: str, segments: bytes) -> None:
        """A new chunk: its columns, its text, its encoded segments."""
        self._chunks[row[2]] = row
        self._bodies.append((self._ns, row[1], body, segments))

    def conversation(self, number: int, conversation_id: str) -> None:
        """A new conversation."""
        self._conversations.append((number, conversation_id))

    def describe(self, doc: int, entry: IndexEntry) -> None:
        """Tags and links of an active chunk."""
        self._tags += [(doc, entry.at, tag) for tag in entry.tags]
        self._links += [(doc, position, *link) for position, link in enumerate(entry.links)]

    def forget(self, doc: int) -> None:
        """Drop the tags and links of a chunk, written or not."""
        self._tags = [tag for tag in self._tags if tag[0] != doc]
        self._links = [link for link in self._links if link[0] != doc]
        self.run(
            "WITH gone AS (DELETE FROM rlm_mem.tags WHERE ns = %s AND doc = %s RETURNING tag)"
            " UPDATE rlm_mem.tag_totals t SET chunks = t.chunks - 1 FROM gone WHERE t.ns = %s AND t.tag = gone.tag",
            (self._ns, doc, self._ns),
        )
        self.run("DELETE FROM rlm_mem.links WHERE ns = %s AND doc = %s", (self._ns, doc))

    def count(self, doc: int, reads: int, when: str) -> None:
        """How often a chunk has been read in all, and when last."""
        self._counts[doc] = (reads, when)

    def total(self, status: int, kind: str, chunks: int, tokens: int, size: int) -> None:
        """What comes to the totals, or goes from them."""
        total = self._totals.setdefault((status, kind), [0, 0, 0])
        for position, more in enumerate((chunks, tokens, size)):
            total[position] += more

    def talk(self, *conversations: int | None) -> None:
        """Note conversations whose newest chunk may be another one now."""
        self._talked.update(number for number in conversations if number is not None)

    # --- looking ---------------------------------------------------------------------------------------

    @property
    def queued(self) -> bool:
        """Whether rows that are there are to be changed."""
        return bool(self._queue)

    @property
    def new_chunks(self) -> int:
        """How many new chunks are not written yet."""
        return len(self._chunks)

    def find(self, chunk_id: str) -> ChunkRow | None:
        """The row of a new chunk that is not written yet."""
        new = self._chunks.get(chunk_id)
        if new is None:
            return None
        reads, when = self._counts.get(new[1], (0, ""))
        return ChunkRow(new[1], chunk_id, new[0], new[5], new[15], new[17], when, reads, new[14])

    # --- writing ---------------------------------------------------------------------------------------

    def send(self, connection: psycopg.Connection[Any]) -> None:
        """Write everything, in one round trip unless there is much."""
        parts = (self._queue, self._chunks, self._totals, self._conversations, self._counts, self._tags)
        if not any(parts) and not self._links:
            return
        if len(self._chunks) >= COPY_FROM:
            self._copy(connection)
        queue, self._queue = self._queue, []
        with connection.pipeline():
            results = [
                (connection.execute(statement, values), changes) for statement, values, changes in queue
            ]
            for statement, values in self._collected():
                connection.execute(statement, values)
        for cursor, changes in results:
            if changes is not None and cursor.rowcount != 1:
                raise ConflictError(
                    f"{changes} was changed by somebody else meanwhile: nothing was changed",
                    hint="read it again and repeat the change",
                )

    def _collected(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        ns = self._ns
        marks = ", ".join(["%s"] * 22)
        for row in self._chunks.values():
            yield f"INSERT INTO rlm_mem.chunks({CHUNK_COLUMNS}) VALUES ({marks})", row
        for body in self._bodies:
            yield "INSERT INTO rlm_mem.bodies(ns, doc, body, segments) VALUES (%s, %s, %s, %s)", body
        if self._conversations:
            yield (
                "INSERT INTO rlm_mem.conversations(ns, conversation, id) SELECT %s, * FROM"
                " unnest(%s::integer[], %s::text[])",
                (ns, *_columns(self._conversations)),
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
        if self._talked:
            yield (
                "UPDATE rlm_mem.conversations v SET last_at = (SELECT max(c.at) FROM rlm_mem.chunks c WHERE c.ns = v.ns"
                " AND c.conversation = v.conversation AND c.status = 0) WHERE v.ns = %s AND v.conversation = ANY(%s)",
                (ns, sorted(self._talked)),
            )
        self._chunks, self._bodies, self._tags, self._links = {}, [], [], []
        self._talked = set()
        self._conversations, self._counts, self._totals = [], {}, {}

    def _copy(self, connection: psycopg.Connection[Any]) -> None:
        with connection.cursor() as cursor:
            with cursor.copy(f"COPY rlm_mem.chunks({CHUNK_COLUMNS}) FROM STDIN") as copy:
                for row in self._chunks.values():
                    copy.write_row(row)
            with cursor.copy("COPY rlm_mem.bodies(ns, doc, body, segments) FROM STDIN") as copy:
                for row in self._bodies:
                    copy.write_row(row)
        self._chunks, self._bodies = {}, []


def touching(ns: int, reads: Reads) -> tuple[str, tuple[Any, ...]]:
    """The statement that adds reads; what a chunk's own text counts is where its row begins."""
    ids = sorted(reads)
    return (
        "INSERT INTO rlm_mem.reads AS r (ns, doc, access_count, accessed_at)"
        " SELECT c.ns, c.doc, g.n, g.at FROM unnest(%s::text[], %s::integer[], %s::text[]) AS g(id, n, at)"
        " JOIN rlm_mem.chunks c ON c.ns = %s AND c.id = g.id ORDER BY c.doc"
        " ON CONFLICT (ns, doc) DO UPDATE SET access_count = r.access_count + excluded.access_count,"
        " accessed_at = greatest(r.accessed_at, excluded.accessed_at)",
        (ids, [reads[chunk_id][0] for chunk_id in ids], [reads[chunk_id][1] for chunk_id in ids], ns),
    )


def _columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _link(link: tuple[Any, ...]) -> tuple[Any, ...]:
    # Reasoning may hold any character, also the one that no text of PostgreSQL can hold.
    return (*link[:-1], None if link[-1] is None else link[-1].encode())
