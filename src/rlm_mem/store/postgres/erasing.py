"""Erasure support of the database: rewriting the audit log, removing unused names, and reading every row as bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.errors import InvalidChunk
from rlm_mem.store.core.brain_files import parse_event
from rlm_mem.store.postgres.integrity import chunk_in
from rlm_mem.store.postgres.schema import TABLES, namespace_key
from rlm_mem.store.postgres.values import Statement

if TYPE_CHECKING:
    from rlm_mem.store.postgres.pool import Pool
    from rlm_mem.store.postgres.transaction import PostgresTransaction

_PAGE = 500


def rewrite_events(
    pool: Pool,
    namespace: str,
    rewrite: Callable[[dict[str, Any]], dict[str, Any] | None],
    *,
    dry_run: bool,
) -> int:
    """Replace the payloads for which ``rewrite`` returns an event, a page at a time; return how many."""
    ns, last, count = namespace_key(namespace), -1, 0
    query = "SELECT seq, payload FROM rlm_mem.events WHERE ns = %s AND seq > %s ORDER BY seq LIMIT %s"
    while rows := pool.rows(query, (ns, last, _PAGE)):
        last = rows[-1][0]
        statements: list[Statement] = []
        for seq, payload in rows:
            event = parse_event(str(payload).encode())
            made = None if event is None else rewrite({**event, "ns": namespace})
            if made is None:
                continue
            count += 1
            text = msgspec.json.encode(made).decode()
            statements.append(
                ("UPDATE rlm_mem.events SET payload = %s WHERE ns = %s AND seq = %s", (text, ns, seq))
            )
            statements.append(("DELETE FROM rlm_mem.event_chunks WHERE ns = %s AND seq = %s", (ns, seq)))
        if statements and not dry_run:
            pool.change(statements)
    return count


_TEXTS = (
    "SELECT c.id, 0, b.body FROM rlm_mem.chunks c JOIN rlm_mem.bodies b ON b.ns = %s AND b.doc = c.doc"
    " WHERE c.ns = %s AND (c.id, 0) > (%s, %s) ORDER BY c.id LIMIT %s",
    "SELECT v.id, v.revision, v.body FROM rlm_mem.versions v WHERE v.ns = %s AND v.ns = %s"
    " AND (v.id, v.revision) > (%s, %s) ORDER BY v.id, v.revision LIMIT %s",
)


def damaged_texts(pool: Pool, namespace: str) -> Iterator[tuple[str, str, bytes]]:
    """Yield namespace, chunk id and text of the chunks and former versions that do not validate."""
    ns = namespace_key(namespace)
    for query in _TEXTS:
        place: tuple[str, int] = ("", 0)
        while rows := pool.rows(query, (ns, ns, *place, _PAGE)):
            place = rows[-1][0], rows[-1][1]
            for chunk_id, _, body in rows:
                try:
                    chunk_in(body, namespace, chunk_id)
                except InvalidChunk:
                    yield namespace, chunk_id, body.encode()


def drop_unused(transaction: PostgresTransaction, namespace: str) -> None:
    """Remove conversations, tags and terms that no chunk has any more.

    Args:
        transaction: of the namespace: a writer that has just read one of these rows must not lose it.
    """
    ns = namespace_key(namespace)
    transaction.rows(
        "DELETE FROM rlm_mem.conversations v WHERE v.ns = %s AND NOT EXISTS (SELECT 1 FROM rlm_mem.chunks c"
        " WHERE c.ns = %s AND c.conversation = v.conversation)",
        (ns, ns),
    )
    transaction.rows("DELETE FROM rlm_mem.tag_totals WHERE ns = %s AND chunks <= 0", (ns,))
    transaction.rows("DELETE FROM rlm_mem.terms WHERE ns = %s AND df <= 0", (ns,))


def stored_rows(pool: Pool, namespace: str) -> Iterator[tuple[str, bytes]]:
    """Yield every row of a namespace in every table: texts unchanged, binary columns byte by byte."""
    ns = namespace_key(namespace)
    for table in TABLES:
        for row in pool.rows(f"SELECT * FROM rlm_mem.{table} WHERE ns = %s", (ns,)):
            parts = [bytes(one) if isinstance(one, bytes | memoryview) else str(one).encode() for one in row]
            yield f"{table} of {namespace}", b"\n".join(parts)
