"""Checks and repairs of a PostgreSQL namespace: damaged texts, links, counts, and rows that belong to no chunk."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import psycopg

from rlm_mem.chunk import NEWER_VERSION, ORDERED_LINK_TYPES, Chunk, content_hash, decode_chunk
from rlm_mem.errors import InvalidChunk, StorageError
from rlm_mem.results import Progress
from rlm_mem.store.core.findings import Finding
from rlm_mem.store.core.integrity import (
    Replacements,
    circular_links,
    wrong_links,
    wrong_replacement,
    wrong_values,
)
from rlm_mem.store.core.records import ACTIVE, entry_of
from rlm_mem.store.core.writer import tokens_of
from rlm_mem.store.postgres.files import damaged_files
from rlm_mem.store.postgres.schema import namespace_key
from rlm_mem.store.postgres.values import Rows

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.postgres.pool import Pool
    from rlm_mem.store.postgres.transaction import PostgresTransaction

_PAGE = 200

_CHUNKS = (
    "SELECT c.doc, c.id, c.status, c.type, c.at, c.created_at, c.modified_at, c.occurred_at, c.valid_from, c.valid_to,"
    " c.superseded_by, c.confidence, c.tokens, c.revision, c.source, c.content_hash, c.norm_hash, c.size, v.id,"
    " b.body, octet_length(b.segments),"
    " ARRAY(SELECT t.tag FROM rlm_mem.tags t WHERE t.ns = %s AND t.doc = c.doc),"
    " ARRAY(SELECT l.dst_id || ' ' || l.type FROM rlm_mem.links l WHERE l.ns = %s AND l.doc = c.doc"
    " ORDER BY l.position), c.origin, c.trust, c.expires_at"
    # Select the page first: a join of the whole namespace would be scanned from its beginning for every page.
    f" FROM (SELECT * FROM rlm_mem.chunks WHERE ns = %s AND doc > %s ORDER BY doc LIMIT {_PAGE}) c"
    " LEFT JOIN rlm_mem.bodies b ON b.ns = %s AND b.doc = c.doc"
    " LEFT JOIN rlm_mem.conversations v ON v.ns = %s AND v.conversation = c.conversation ORDER BY c.doc"
)

_PAIR = (
    "SELECT c.id, b.body FROM (SELECT * FROM rlm_mem.chunks WHERE ns = %s AND id = ANY(%s) AND status = 0) c"
    " JOIN rlm_mem.bodies b ON b.ns = %s AND b.doc = c.doc"
)


def check_database(
    store: ChunkStore, pool: Pool, inside: PostgresTransaction | None, progress: Progress | None = None
) -> list[Finding]:
    """Check every chunk, link and count of the store's namespace as of one moment.

    Args:
        pool: connections to the database that stores the namespace.
        inside: the open transaction of the calling thread, if any; its writes are checked too.
    """
    ns = namespace_key(store.namespace)
    with _snapshot(pool, inside) as connection:

        def rows(statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
            with connection.cursor(binary=True) as cursor:
                return cursor.execute(statement, values or None).fetchall()

        findings = list(_chunks(store, rows, ns, progress))
        findings += _cycles(rows, ns)
        findings += _totals(rows, ns)
        findings += _terms(connection, ns)
        findings += _orphaned_rows(rows, ns)
        findings += _versions(rows, ns)
        findings += [
            Finding("damaged-file", f"{name}: {problem}", name)
            for name, problem in damaged_files(rows, store.namespace)
        ]
    return findings


@contextlib.contextmanager
def _snapshot(pool: Pool, inside: PostgresTransaction | None) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection that sees the database as of one moment, so that writes in progress are not reported."""
    if inside is not None:
        inside.flush()
        yield inside.connection
        return
    try:
        with pool.snapshot() as connection:
            yield connection
    except psycopg.Error as error:
        raise StorageError(f"{pool.shown}: the check was cut short: {error}", hint="run it again") from error


# --- chunks ------------------------------------------------------------------------------------------------


def _chunks(store: ChunkStore, rows: Rows, ns: int, progress: Progress | None) -> Iterator[Finding]:
    total = int(rows("SELECT count(*) FROM rlm_mem.chunks WHERE ns = %s", (ns,))[0][0])
    last = done = 0
    replacements = Replacements()
    while page := rows(_CHUNKS, (ns, ns, ns, last, ns, ns)):
        last = page[-1][0]
        sound: list[tuple[Chunk, int]] = []
        for row in page:
            chunk = yield from _chunk(store, rows, ns, row)
            if chunk is not None:
                sound.append((chunk, row[2]))
        yield from _links(store, rows, ns, sound)
        for chunk in (chunk for chunk, status in sound if status == ACTIVE):
            about, links = chunk.metadata, [(link.target_id, link.type) for link in chunk.links]
            replacements.note(chunk.id, about.superseded_by, about.valid_to is not None, links)
        done += len(page)
        if progress is not None:
            progress(done, total)
    for newer_id, older_id in replacements.doubtful():
        pair: dict[str, str] = dict(rows(_PAIR, (ns, [newer_id, older_id], ns)))
        newer, older = (_decoded(pair.get(chunk_id)) for chunk_id in (newer_id, older_id))
        yield from wrong_replacement(newer, older, None)


def _decoded(body: str | None) -> Chunk | None:
    with contextlib.suppress(InvalidChunk):  # reported as a separate finding
        return None if body is None else decode_chunk(body.encode())
    return None


def chunk_in(body: str | None, namespace: str, chunk_id: str) -> Chunk:
    """Decode the chunk in the text of a row; raises InvalidChunk."""
    if body is None:
        raise InvalidChunk("its text is missing")
    chunk = decode_chunk(body.encode())
    if (chunk.id, chunk.namespace) != (chunk_id, namespace):
        raise InvalidChunk(f"its text is that of {chunk.id} in {chunk.namespace}")
    return chunk


def _chunk(
    store: ChunkStore, rows: Rows, ns: int, row: tuple[Any, ...]
) -> Generator[Finding, None, Chunk | None]:
    """Yield findings about one chunk; return the chunk if it validates."""
    chunk_id, status, body = row[1], row[2], row[19]
    try:
        chunk = chunk_in(body, store.namespace, chunk_id)
    except InvalidChunk as error:
        kept = rows("SELECT 1 FROM rlm_mem.versions WHERE ns = %s AND id = %s LIMIT 1", (ns, chunk_id))
        code = "unreadable-row-with-version" if kept else "unreadable-row"
        if NEWER_VERSION in error.message:
            code = "newer-version"
        yield Finding(code, f"{chunk_id}: {error.message}", None, chunk_id)
        return None
    yield from wrong_values(
        store,
        chunk_id,
        None,
        type_=chunk.type,
        tokens=(chunk.tokens, tokens_of(chunk.content)),
        hash_is_right=content_hash(chunk.content) == chunk.metadata.content_hash,
        validity=(chunk.metadata.valid_from, chunk.metadata.valid_to),
    )
    yield from _row(chunk, row, status)
    return chunk


def _row(chunk: Chunk, row: tuple[Any, ...], status: int) -> Iterator[Finding]:
    """Yield findings if the columns, tags or links of a chunk differ from its text."""
    entry = entry_of(chunk)
    text = (
        entry.type, entry.at, entry.created_at, entry.modified_at, entry.occurred_at, entry.valid_from, entry.valid_to,
        entry.superseded_by, entry.confidence, entry.tokens, entry.revision, entry.source, entry.content_hash,
        entry.norm_hash, len(row[19].encode()), entry.conversation_id,
    )  # fmt: skip
    if (*text, entry.origin, entry.trust, entry.expires_at) != row[3:19] + row[23:26]:
        yield Finding("index-row", f"{chunk.id}: its columns are not those of its text", None, chunk.id)
    tags = set(entry.tags) if status == ACTIVE else set()
    links = [f"{link[0]} {link[1]}" for link in entry.links] if status == ACTIVE else []
    if set(row[21]) != tags or row[22] != links:
        yield Finding(
            "index-links", f"{chunk.id}: tags or links in the index differ from its text", None, chunk.id
        )
    if status == ACTIVE and not row[20]:
        yield Finding("index-terms", f"{chunk.id} has no search terms in the index", None, chunk.id)


def _links(store: ChunkStore, rows: Rows, ns: int, sound: list[tuple[Chunk, int]]) -> Iterator[Finding]:
    targets = {link.target_id for chunk, _ in sound for link in chunk.links}
    targets |= {chunk.metadata.superseded_by for chunk, _ in sound if chunk.metadata.superseded_by}
    known = {
        row[0]
        for row in rows("SELECT id FROM rlm_mem.chunks WHERE ns = %s AND id = ANY(%s)", (ns, sorted(targets)))
    }
    for chunk, status in sound:
        if status != ACTIVE:  # its link targets are checked when it is restored
            continue
        links = [(link.target_id, link.type) for link in chunk.links]
        successor = chunk.metadata.superseded_by
        yield from wrong_links(store, chunk.id, None, links, successor, known.__contains__)


def _cycles(rows: Rows, ns: int) -> Iterator[Finding]:
    for kind in ORDERED_LINK_TYPES:
        links = rows(
            "SELECT c.id, l.dst_id FROM rlm_mem.links l JOIN rlm_mem.chunks c ON c.ns = %s AND c.doc = l.doc"
            " WHERE l.ns = %s AND l.type = %s AND c.status = 0",
            (ns, ns, kind),
        )
        yield from circular_links(kind, links)


# --- counts and rows without an owner ----------------------------------------------------------------------


def _terms(connection: psycopg.Connection[Any], ns: int) -> Iterator[Finding]:
    from rlm_mem.store.postgres.recount import recount

    found = recount(connection, ns)
    kinds = {
        "entries of the lists of terms": found.postings,
        "entries of the words of conversations": found.words,
        "terms": found.terms,
        "terms of chunks, unknown to the dictionary": found.unknown_terms,
        "conversations": found.conversations,
        "lengths of chunks": found.chunks,
    }
    for kind, wrong in kinds.items():
        if wrong:
            yield Finding("index-counts", f"{wrong} {kind} differ from a recount")
    for name, kept, counted in found.figures:
        yield Finding("index-counts", f"{name} of the namespace: {kept} kept, {counted} counted")


def _totals(rows: Rows, ns: int) -> Iterator[Finding]:
    wrong = rows(
        "SELECT coalesce(t.status, c.status), coalesce(t.type, c.type), coalesce(t.chunks, 0), coalesce(c.chunks, 0)"
        " FROM (SELECT * FROM rlm_mem.totals WHERE ns = %s) t FULL JOIN (SELECT status, type, count(*) AS chunks,"
        " sum(tokens) AS tokens, sum(size) AS bytes FROM rlm_mem.chunks WHERE ns = %s GROUP BY status, type) c"
        " ON c.status = t.status AND c.type = t.type WHERE (coalesce(t.chunks, 0), coalesce(t.tokens, 0),"
        " coalesce(t.bytes, 0)) <> (coalesce(c.chunks, 0), coalesce(c.tokens, 0), coalesce(c.bytes, 0))",
        (ns, ns),
    )
    for status, kind, kept, counted in wrong:
        state = "active" if status == ACTIVE else "archived"
        yield Finding("index-counts", f"totals of {state} {kind}: {kept} chunks kept, {counted} counted")
    tags = rows(
        "SELECT coalesce(t.tag, c.tag), coalesce(t.chunks, 0), coalesce(c.chunks, 0) FROM (SELECT tag, chunks FROM"
        " rlm_mem.tag_totals WHERE ns = %s AND chunks <> 0) t FULL JOIN (SELECT tag, count(*) AS chunks FROM"
        " rlm_mem.tags WHERE ns = %s GROUP BY tag) c ON c.tag = t.tag"
        " WHERE coalesce(t.chunks, 0) <> coalesce(c.chunks, 0) LIMIT 20",
        (ns, ns),
    )
    for tag, kept, counted in tags:
        yield Finding("index-counts", f"total of the tag {tag!r:.60}: {kept} kept, {counted} counted")
    stale = rows(
        "SELECT count(*) FROM rlm_mem.conversations v WHERE v.ns = %s AND v.last_at IS DISTINCT FROM (SELECT max(c.at)"
        " FROM rlm_mem.chunks c WHERE c.ns = %s AND c.conversation = v.conversation AND c.status = 0)",
        (ns, ns),
    )
    if stale[0][0]:
        yield Finding(
            "index-counts", f"{stale[0][0]} conversations have another last time than their newest chunk"
        )
    highest = rows(
        "SELECT 1 FROM rlm_mem.namespaces n WHERE n.ns = %s AND (n.next_doc <= (SELECT coalesce(max(doc), 0)"
        " FROM rlm_mem.chunks WHERE ns = %s) OR n.next_term <= (SELECT coalesce(max(term), 0) FROM rlm_mem.terms"
        " WHERE ns = %s) OR n.next_conversation <= (SELECT coalesce(max(conversation), 0)"
        " FROM rlm_mem.conversations WHERE ns = %s))",
        (ns, ns, ns, ns),
    )
    if highest:
        yield Finding("index-counts", "the next number of the namespace is one that is in use already")


_OWNED = ("bodies", "tags", "links", "reads")


def _orphaned_rows(rows: Rows, ns: int) -> Iterator[Finding]:
    for table in _OWNED:
        found = rows(
            f"SELECT count(*) FROM rlm_mem.{table} x WHERE x.ns = %s AND NOT EXISTS"
            " (SELECT 1 FROM rlm_mem.chunks c WHERE c.ns = %s AND c.doc = x.doc)",
            (ns, ns),
        )
        if found[0][0]:
            yield Finding("orphaned-row", f"{found[0][0]} rows of {table} belong to no chunk", table)


_TEXTS = (
    "SELECT c.id, 0, b.body FROM rlm_mem.chunks c JOIN rlm_mem.bodies b ON b.ns = %s AND b.doc = c.doc"
    f" WHERE c.ns = %s AND (c.id, 0) > (%s, %s) ORDER BY c.id LIMIT {_PAGE}"
)
_VERSIONS = (
    "SELECT v.id, v.revision, v.body FROM rlm_mem.versions v WHERE v.ns = %s"
    f" AND (v.id, v.revision) > (%s, %s) ORDER BY v.id, v.revision LIMIT {_PAGE}"
)


def _texts(rows: Rows, query: str, *ns: int) -> Iterator[tuple[str, int, str]]:
    """Yield id, revision and text of every chunk (``_TEXTS``, revision 0) or former version (``_VERSIONS``).

    Args:
        ns: key of the namespace, for each table of the query.
    """
    place: tuple[str, int] = ("", 0)
    while page := rows(query, (*ns, *place)):
        place = page[-1][0], page[-1][1]
        yield from page


def _versions(rows: Rows, ns: int) -> Iterator[Finding]:
    for chunk_id, revision, body in _texts(rows, _VERSIONS, ns):
        try:
            decode_chunk(body.encode())
        except InvalidChunk as error:
            message = f"revision {revision} of {chunk_id}: {error.message}"
            yield Finding("unreadable-version", message, None, chunk_id)


def damaged_texts(rows: Rows, namespace: str) -> Iterator[tuple[str, str, bytes]]:
    """Yield namespace, chunk id and text of the chunks and former versions that do not validate."""
    ns = namespace_key(namespace)
    for chunk_id, _, body in chain(_texts(rows, _TEXTS, ns, ns), _texts(rows, _VERSIONS, ns)):
        try:
            chunk_in(body, namespace, chunk_id)
        except InvalidChunk:
            yield namespace, chunk_id, body.encode()


# --- repairs ----------------------------------------------------------------------------------------------


def mend_rows(store: ChunkStore, transaction: PostgresTransaction, finding: Finding) -> bool:
    """Repair a damaged text, or remove rows without a chunk; False if it cannot be repaired.

    Args:
        transaction: of the store's namespace, open in the calling thread.
    """
    if finding.code == "orphaned-row":
        return _remove_rows(store, transaction, finding)
    return _restore_version(store, transaction, finding)


def _restore_version(store: ChunkStore, transaction: PostgresTransaction, finding: Finding) -> bool:
    """Save a damaged text as a brain file, and replace it by its newest valid former version."""
    chunk_id = finding.chunk_id or ""
    ns = namespace_key(store.namespace)
    row = transaction.find(store.namespace, chunk_id)
    versions = store.backend.former_versions(store.namespace, chunk_id, below=2**31 - 1)
    if row is None or not versions:
        return False
    body = transaction.rows("SELECT body FROM rlm_mem.bodies WHERE ns = %s AND doc = %s", (ns, row.doc))
    if body:
        name = f"archive/damaged/{chunk_id}.{store.clock():%Y%m%dT%H%M%S%f}.json"
        store.backend.files(store.namespace).write(name, body[0][0].encode())
    else:  # `put` updates a row, so there must be one
        transaction.rows(
            "INSERT INTO rlm_mem.bodies(ns, doc, body, segments) VALUES (%s, %s, '', '')", (ns, row.doc)
        )
    chunk = versions[-1].chunk
    chunk.revision = max(row.revision, chunk.revision) + 1
    transaction.put(chunk, status=row.status, keep_version=False)
    return True


def _remove_rows(store: ChunkStore, transaction: PostgresTransaction, finding: Finding) -> bool:
    """Remove the rows of a table (named by ``finding.file``) that belong to no chunk."""
    if finding.file not in _OWNED:
        return False
    ns = namespace_key(store.namespace)
    transaction.rows(
        f"DELETE FROM rlm_mem.{finding.file} x WHERE x.ns = %s AND NOT EXISTS"
        " (SELECT 1 FROM rlm_mem.chunks c WHERE c.ns = %s AND c.doc = x.doc)",
        (ns, ns),
    )
    return True
