"""Maintains a database: VACUUM and ANALYZE of its tables, rebuilding and cleaning derived rows, reading raw rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg

from rlm_mem.errors import CorruptStore, InvalidChunk, RlmMemError
from rlm_mem.results import Progress
from rlm_mem.store.core.encoding import NO_SEGMENTS, decode_many
from rlm_mem.store.core.records import ACTIVE, SyncReport, Vacuumed
from rlm_mem.store.postgres.failures import translated
from rlm_mem.store.postgres.integrity import chunk_in
from rlm_mem.store.postgres.schema import SET_ON_WORKERS, TABLES, namespace_key

if TYPE_CHECKING:
    from rlm_mem.store.postgres.pool import Pool
    from rlm_mem.store.postgres.transaction import PostgresTransaction

_logger = logging.getLogger(__name__)

#: Tables that a rebuild empties first; numbers of terms and conversations are never reused.
DERIVED = ("terms", "postings", "conversation_terms", "tags", "tag_totals", "links", "totals")
_LOT = 200

#: The tables that grow with the chunks.
_GROWING = ", ".join(
    f"rlm_mem.{name}"
    for name in (
        "chunks", "tags", "links", "conversations", "reads", "terms", "postings", "conversation_terms",
    )
)  # fmt: skip

#: Sample size of a statistics refresh, as a statistics target: a tenth of PostgreSQL's default.
_SAMPLE_TARGET = 10

_SIZES = (
    "SELECT c.relname, {size} FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace{more}"
    " WHERE n.nspname = 'rlm_mem' AND c.relkind IN ('r', 'p') ORDER BY 2 DESC, 1"
)
_LOCAL_SIZES = _SIZES.format(size="pg_total_relation_size(c.oid)", more="")
#: On a cluster the coordinator's tables are empty: the rows are on the workers.
_CLUSTER_SIZES = _SIZES.format(
    size="CASE WHEN p.logicalrelid IS NULL THEN pg_total_relation_size(c.oid)"
    " ELSE citus_total_relation_size(c.oid::regclass) END",
    more=" LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid",
)


def vacuum_tables(pool: Pool, progress: Progress | None = None) -> Vacuumed:
    """Mark dead rows as free and refresh the planner's statistics.

    Plain VACUUM: readers and writers are not blocked. It frees space for new rows; files rarely become smaller.

    Returns:
        The size in bytes of each table with its indexes, before and after.

    Raises:
        StorageError: the server refuses or is unreachable. It skips tables of another owner, with a notice.
    """
    sizes = _CLUSTER_SIZES if pool.distributed else _LOCAL_SIZES
    before = {name: int(size) for name, size in pool.rows(sizes)}
    for done, name in enumerate(before, 1):
        connection = pool.take()
        try:
            connection.execute(f'VACUUM (ANALYZE) rlm_mem."{name}"')
        except psycopg.Error as error:
            raise translated(error, pool.shown) from error
        finally:
            pool.give_back(connection)
        if progress is not None:
            progress(done, len(before))
    return Vacuumed(before, {name: int(size) for name, size in pool.rows(sizes)})


def refresh_statistics(pool: Pool) -> None:
    """Refresh the planner's statistics from a small sample, sufficient until autovacuum takes a larger one.

    The writes are committed already, so a failure here is only logged.
    """
    # Without it the workers of a cluster, which store the rows, take a sample of the usual size.
    on_workers = [(SET_ON_WORKERS, ())] if pool.distributed else []
    try:
        pool.change(
            [
                *on_workers,
                (f"SET LOCAL default_statistics_target = {_SAMPLE_TARGET}", ()),
                (f"ANALYZE (SKIP_LOCKED) {_GROWING}", ()),
            ]
        )
    except RlmMemError as error:
        _logger.warning("%s: the planner's statistics were not refreshed: %s", pool.shown, error)


# --- rebuilding ------------------------------------------------------------------------------------------------


def rebuild(
    transaction: PostgresTransaction, namespace: str, analysis: str, progress: Progress | None
) -> SyncReport:
    """Rebuild the derived rows under the lock; readers see the old state until the commit.

    A chunk that does not validate is left unchanged, without terms, and named in the report.
    """
    ns = namespace_key(namespace)
    transaction.flush()  # what a batch wrote before is then deleted with the rest, and not written after it
    for table in DERIVED:
        transaction.rows(f"DELETE FROM rlm_mem.{table} WHERE ns = %s", (ns,))
    transaction.rows(
        "UPDATE rlm_mem.conversations SET chunks = 0, length = 0, last_at = NULL WHERE ns = %s", (ns,)
    )
    # Not as subqueries, which Citus takes in some forms only.
    ((next_doc,),) = transaction.rows("SELECT max(doc) + 1 FROM rlm_mem.chunks WHERE ns = %s", (ns,))
    ((next_conversation,),) = transaction.rows(
        "SELECT max(conversation) + 1 FROM rlm_mem.conversations WHERE ns = %s", (ns,)
    )
    transaction.rows(
        "UPDATE rlm_mem.namespaces SET segments = 0, length = 0, conversations = 0, loose = 0, analysis = %s,"
        " next_doc = greatest(next_doc, %s::bigint), next_conversation = greatest(next_conversation, %s::bigint)"
        " WHERE ns = %s",
        (analysis, next_doc, next_conversation, ns),
    )
    writer = transaction.new_writer(namespace)
    total = int(transaction.rows("SELECT count(*) FROM rlm_mem.chunks WHERE ns = %s", (ns,))[0][0])
    report = SyncReport()
    done = 0
    for rows in _lots(transaction, ns):
        for doc, status, chunk_id, body, *columns in rows:
            try:
                chunk = chunk_in(body, namespace, chunk_id)
            except InvalidChunk:
                report.unreadable.append(chunk_id)
                writer.renew_unreadable(doc, status, *columns)
            else:
                writer.renew(chunk, doc, status, len(body.encode()))
            done += 1
        writer.send()  # the term index is written whenever it has collected enough
        if progress is not None:
            progress(done, total)
    return report


def _lots(transaction: PostgresTransaction, ns: int) -> Iterator[list[tuple[Any, ...]]]:
    last = 0
    while rows := transaction.rows(
        "SELECT c.doc, c.status, c.id, b.body, c.conversation, c.type, c.tokens, c.size"
        # Select the batch first: a join of the whole namespace would be scanned from its beginning for every batch.
        f" FROM (SELECT * FROM rlm_mem.chunks WHERE ns = %s AND doc > %s ORDER BY doc LIMIT {_LOT}) c"
        " LEFT JOIN rlm_mem.bodies b ON b.ns = %s AND b.doc = c.doc ORDER BY c.doc",
        (ns, last, ns),
    ):
        yield rows
        last = rows[-1][0]


# --- erasing ---------------------------------------------------------------------------------------------------


def drop_unused(transaction: PostgresTransaction, namespace: str) -> None:
    """Remove conversations, tags and terms that no chunk has any more, not even one in the archive.

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
    transaction.rows(
        "DELETE FROM rlm_mem.terms WHERE ns = %s AND df <= 0 AND term <> ALL(%s)",
        (ns, sorted(_archived_terms(transaction, ns))),
    )


def _archived_terms(transaction: PostgresTransaction, ns: int) -> set[int]:
    """Return the numbers of the terms of archived chunks, which a restored one is indexed with again."""
    used: set[int] = set()
    last = 0
    while rows := transaction.rows(
        "SELECT c.doc, b.segments FROM rlm_mem.chunks c JOIN rlm_mem.bodies b ON b.ns = %s AND b.doc = c.doc"
        f" WHERE c.ns = %s AND c.status <> {ACTIVE} AND c.doc > %s ORDER BY c.doc LIMIT {_LOT}",
        (ns, ns, last),
    ):
        for _, segments in rows:
            try:
                decoded = decode_many([segments or NO_SEGMENTS])
            except CorruptStore:
                continue  # `repair` analyses it again
            used.update(decoded.terms.tolist(), decoded.author.tolist())
        last = rows[-1][0]
    return used


def stored_rows(pool: Pool, namespace: str) -> Iterator[tuple[str, bytes]]:
    """Yield every row of a namespace in every table: texts unchanged, binary columns byte by byte."""
    ns = namespace_key(namespace)
    for table in TABLES:
        for row in pool.rows(f"SELECT * FROM rlm_mem.{table} WHERE ns = %s", (ns,)):
            parts = [bytes(one) if isinstance(one, bytes | memoryview) else str(one).encode() for one in row]
            yield f"{table} of {namespace}", b"\n".join(parts)
