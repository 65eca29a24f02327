"""Making everything that is derived of a namespace anew from its chunks: terms, postings, tags, links, totals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import Chunk, decode_chunk
from rlm_mem.errors import InvalidChunk
from rlm_mem.results import Progress
from rlm_mem.store.core.answers import SyncReport
from rlm_mem.store.postgres.schema import namespace_key

if TYPE_CHECKING:
    from rlm_mem.store.postgres.transaction import PostgresTransaction

__all__ = ["DERIVED", "rebuild"]

#: What is emptied first; numbers of terms and conversations go on where they were and are never given twice.
DERIVED = ("terms", "postings", "conversation_terms", "tags", "tag_totals", "links", "totals")
_LOT = 200


def rebuild(
    transaction: PostgresTransaction,
    namespace: str,
    analysis: str,
    progress: Progress | None,
) -> SyncReport:
    """Rebuild under the lock; readers see the old state until the commit.

    A chunk that does not validate stays as it is, without terms, and is named in the report.
    """
    ns = namespace_key(namespace)
    for table in DERIVED:
        transaction.rows(f"DELETE FROM rlm_mem.{table} WHERE ns = %s", (ns,))
    transaction.rows(
        "UPDATE rlm_mem.conversations SET chunks = 0, length = 0, last_at = NULL WHERE ns = %s", (ns,)
    )
    transaction.rows(
        "UPDATE rlm_mem.namespaces SET segments = 0, length = 0, conversations = 0, loose = 0, analysis = %s"
        " WHERE ns = %s",
        (analysis, ns),
    )
    writer = transaction.start_anew(namespace)
    total = int(transaction.rows("SELECT count(*) FROM rlm_mem.chunks WHERE ns = %s", (ns,))[0][0])
    report = SyncReport()
    done = 0
    for rows in _lots(transaction, ns):
        for doc, status, chunk_id, body, *columns in rows:
            chunk = _sound(body, chunk_id, namespace)
            if chunk is None:
                report.unreadable.append(chunk_id)
                writer.renew_unreadable(doc, status, *columns)
            else:
                writer.renew(chunk, doc, status)
            done += 1
        writer.send()  # the search half writes when it holds enough
        if progress is not None:
            progress(done, total)
    return report


def _lots(transaction: PostgresTransaction, ns: int) -> Iterator[list[tuple[Any, ...]]]:
    last = 0
    while True:
        rows = transaction.rows(
            "SELECT c.doc, c.status, c.id, b.body, c.conversation, c.type, c.tokens, c.size"
            # The lot first: a join of the whole namespace would be walked from its beginning for each.
            f" FROM (SELECT * FROM rlm_mem.chunks WHERE ns = %s AND doc > %s ORDER BY doc LIMIT {_LOT}) c"
            " LEFT JOIN rlm_mem.bodies b ON b.ns = c.ns AND b.doc = c.doc ORDER BY c.doc",
            (ns, last),
        )
        if not rows:
            return
        yield rows
        last = rows[-1][0]


def _sound(body: str | None, chunk_id: str, namespace: str) -> Chunk | None:
    if body is None:
        return None
    try:
        chunk = decode_chunk(body.encode())
    except InvalidChunk:
        return None
    return chunk if chunk.id == chunk_id and chunk.namespace == namespace else None
