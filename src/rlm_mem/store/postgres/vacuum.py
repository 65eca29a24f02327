"""VACUUM and ANALYZE of the tables, where the role that is logged in may."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import psycopg

from rlm_mem.errors import RlmMemError
from rlm_mem.results import Progress
from rlm_mem.store.core.answers import Vacuumed
from rlm_mem.store.postgres.failures import translated

if TYPE_CHECKING:
    from rlm_mem.store.postgres.backend import PostgresBackend
    from rlm_mem.store.postgres.pool import Pool

__all__ = ["refresh_statistics", "vacuum_tables"]

_logger = logging.getLogger(__name__)

#: The tables that grow with the chunks.
_GROWING = (
    "rlm_mem.chunks, rlm_mem.tags, rlm_mem.links, rlm_mem.conversations, rlm_mem.reads, rlm_mem.terms,"
    " rlm_mem.postings, rlm_mem.conversation_terms"
)

_SIZES = (
    "SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'rlm_mem' AND c.relkind IN ('r', 'p') ORDER BY 2 DESC, 1"
)


def vacuum_tables(backend: PostgresBackend, namespace: str, progress: Progress | None = None) -> Vacuumed:
    """Mark dead rows as free and refresh the planner's statistics in the database that holds a namespace.

    Plain VACUUM: readers and writers go on. It frees room for new rows; files rarely become smaller.

    Returns:
        sizes of each table with its indexes.

    Raises:
        StorageError: the server refuses or went away. Tables of another owner are passed over with a notice.
    """
    pool = backend.pool(namespace)
    before = {name: int(size) for name, size in pool.rows(_SIZES)}
    for done, name in enumerate(before, 1):
        connection = pool.take()
        try:
            connection.autocommit = True
            connection.execute(f'VACUUM (ANALYZE) rlm_mem."{name}"')
        except psycopg.Error as error:
            raise translated(error, pool.shown) from error
        finally:
            pool.give_back(connection)
        if progress is not None:
            progress(done, len(before))
    return Vacuumed(before, {name: int(size) for name, size in pool.rows(_SIZES)})


def refresh_statistics(pool: Pool) -> None:
    """Let the planner look at the tables again. What was written is committed: that this fails is no error of it."""
    try:
        pool.persist(lambda connection: connection.execute(f"ANALYZE (SKIP_LOCKED) {_GROWING}"))
    except RlmMemError as error:
        _logger.warning("%s: the planner's statistics were not refreshed: %s", pool.shown, error)
