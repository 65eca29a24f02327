"""The write transaction of the PostgreSQL backend: namespace locks, row writers, and a commit with a known outcome."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from rlm_mem.chunk import Chunk, new_change_id
from rlm_mem.errors import StorageError, StoreLocked
from rlm_mem.store.core.changes import ChangeNotes, name_namespaces
from rlm_mem.store.core.files import with_unchanged_note
from rlm_mem.store.core.records import ChunkRow
from rlm_mem.store.postgres.audit import event_statement
from rlm_mem.store.postgres.failures import is_lost, is_worker_lost, translated
from rlm_mem.store.postgres.migrate import VERSION, check_version
from rlm_mem.store.postgres.pool import Pool, executed, undo
from rlm_mem.store.postgres.rows import FIND, PostgresRowWriter, row_found
from rlm_mem.store.postgres.schema import (
    HEAD_COLUMNS,
    LIMIT_LOCK_WAIT,
    SET_ON_WORKERS,
    Head,
    check_owner,
    namespace_key,
)
from rlm_mem.store.postgres.values import Statement

if TYPE_CHECKING:
    from rlm_mem.config import Config
    from rlm_mem.store.postgres.terms import Question

_LOCK = f"SELECT {HEAD_COLUMNS} FROM rlm_mem.namespaces WHERE ns = %s FOR NO KEY UPDATE"
#: Uses no table: otherwise a worker of a cluster would answer with its own number.
_NUMBER = "SELECT pg_current_xact_id()::text"
_INSERT_NAMESPACE = (
    "INSERT INTO rlm_mem.namespaces(ns, name, analysis) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
)
#: Between these numbers of chunks the planner's statistics are refreshed whenever a namespace has doubled. Below,
#: every plan is good; above, autovacuum is soon enough; in between, bulk writes end before autovacuum runs.
_MIN_ANALYSED, _MAX_ANALYSED = 256, 200_000


class Moved(Exception):
    """The namespace has been moved to another server."""

    def __init__(self, namespace: str, dsn: str) -> None:
        super().__init__(namespace)
        self.dsn = dsn


class PostgresTransaction:
    """A `WriteTransaction`, documented there, which holds the locks of the namespaces that it writes to.

    The lock of a namespace is a lock on its row, so it ends with the transaction even if this process is killed.

    Attributes:
        doubled: whether a written namespace has doubled, so that the planner's statistics are out of date.

    Args:
        pool: provides the connection, and a second one if the first is lost during the commit.
        analysis: the name of the analyser, recorded with a new namespace.
    """

    def __init__(self, pool: Pool, config: Config, analysis: str) -> None:
        self.pool = pool
        self.events: list[dict[str, Any]] = []
        self.change = ChangeNotes(new_change_id())
        self._config = config
        self._analysis = analysis
        self._connection: psycopg.Connection[Any] | None = None
        self._is_admitted = False
        self._writers: dict[int, PostgresRowWriter] = {}
        self._xid: str | None = None
        self._first_docs: dict[int, int] = {}
        self.doubled = False
        self._ahead: dict[tuple[str, str], list[tuple[Any, ...]]] = {}

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection that holds the locks."""
        assert self._connection is not None, "used before begin()"
        return self._connection

    # --- beginning --------------------------------------------------------------------------------------

    def begin(self, namespace: str, until: float) -> None:
        """Begin the transaction and lock one namespace; if the connection is lost, start again on a new one.

        Args:
            until: when to give up on the lock, in monotonic seconds.

        Raises:
            StoreLocked: another process holds the lock for too long. Moved: the namespace is on another server.
            StorageError: the server cannot be reached.
        """

        def start(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
            try:
                with connection.pipeline():
                    connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                    if self.pool.distributed:
                        connection.execute(SET_ON_WORKERS)
                    wait = max(1, round((until - time.monotonic()) * 1000))  # 0 would mean to wait forever
                    connection.execute(f"SET LOCAL lock_timeout = {wait}")
                    if self._config.store.durability != "full":
                        connection.execute("SET LOCAL synchronous_commit = off")
                    number = connection.execute(_NUMBER)
                    locked = connection.execute(_LOCK, (namespace_key(namespace),))
                    # Under the lock: a later program may have migrated the tables.
                    version = connection.execute(VERSION)
                (self._xid,) = number.fetchone() or (None,)
                check_version((version.fetchone() or (0,))[0], self.pool.shown)
                self._writer_under_lock(connection, namespace, locked.fetchone())
            except BaseException:
                undo(connection)
                raise
            return connection

        try:
            self.pool.admit_writer(until)
            self._is_admitted = True
            self._connection = self.pool.persist(start, keep=True)
        except BaseException:
            self.rollback()
            raise

    def lock(self, namespace: str) -> PostgresRowWriter:
        """Return the writer of a namespace, taking its lock if it is not held yet."""
        writer = self._writers.get(namespace_key(namespace))
        if writer is None:
            with self.translating():
                found = self.connection.execute(_LOCK, (namespace_key(namespace),)).fetchone()
                writer = self._writer_under_lock(self.connection, namespace, found)
        return writer

    def _writer_under_lock(
        self, connection: psycopg.Connection[Any], namespace: str, found: tuple[Any, ...] | None
    ) -> PostgresRowWriter:
        from rlm_mem.store.postgres.terms import TermIndex

        ns = namespace_key(namespace)
        if found is None:
            connection.execute(_INSERT_NAMESPACE, (ns, namespace, self._analysis))
            found = connection.execute(_LOCK, (ns,)).fetchone()
            assert found is not None
        head = Head(ns, *found)
        check_owner(head.name, namespace)
        if head.state == "moved" and head.moved_to:
            raise Moved(namespace, head.moved_to)
        if not head.analysis:
            head.analysis = self._analysis
        writer = PostgresRowWriter(connection, head, TermIndex(connection, head), self._config)
        self._writers[ns] = writer
        self._first_docs.setdefault(ns, head.next_doc)
        return writer

    # --- collecting -------------------------------------------------------------------------------------

    def put(self, chunk: Chunk, *, status: int = 0, keep_version: bool = True) -> None:
        self.forget()
        with self.translating():
            self.lock(chunk.namespace).put(chunk, status, keep_version=keep_version)

    def expect(self, chunks: Sequence[Chunk], reads: Sequence[Statement] = ()) -> set[str]:
        """Read, in one round trip, ids, conversations and terms of new chunks, and rows that are needed next.

        Args:
            reads: statements to run now; `rows` returns their results until something is written.

        Returns:
            The conversations of these chunks that have no chunk yet.
        """
        with self.translating():
            questions: list[Question] = []
            for namespace in {chunk.namespace for chunk in chunks}:
                writer = self.lock(namespace)
                writer.send()
                questions += writer.expect([chunk for chunk in chunks if chunk.namespace == namespace])
            with self.connection.pipeline():
                asked = executed(self.connection, [question[:2] for question in questions])
                ahead = executed(self.connection, reads)
            for cursor, (_, _, take) in zip(asked, questions, strict=True):
                take(cursor.fetchall())
            self._ahead = {
                (statement, repr(values)): cursor.fetchall()
                for cursor, (statement, values) in zip(ahead, reads, strict=True)
            }
            named = ((self.lock(chunk.namespace), chunk.metadata.conversation_id) for chunk in chunks)
            return {one for writer, one in named if one is not None and one not in writer.conversations}

    def forget(self) -> None:
        """Drop the rows that were read ahead, because something is about to be written."""
        self._ahead = {}

    def keep(self, chunk: Chunk) -> None:
        self.forget()
        with self.translating():
            self.lock(chunk.namespace).keep(chunk)

    def move(self, chunk: Chunk, row: ChunkRow, status: int) -> None:  # noqa: ARG002 - read again under the lock
        self.forget()
        with self.translating():
            self.lock(chunk.namespace).move(chunk, status)

    def erase(self, row: ChunkRow) -> None:
        self.forget()
        with self.translating():
            self._writers[row.ns].erase(row.id)

    def find(self, namespace: str, chunk_id: str) -> ChunkRow | None:
        """Return the row of a chunk, as this transaction would leave it."""
        ns = namespace_key(namespace)
        writer = self._writers.get(ns)
        if writer is None:
            return row_found(namespace, self.rows(FIND, (ns, ns, chunk_id)))
        with self.translating():
            return writer.find(chunk_id, self._ahead)

    def version(self, namespace: str) -> int | None:
        """Return the version of a namespace after the commit; None if its lock is not held."""
        writer = self._writers.get(namespace_key(namespace))
        return None if writer is None else writer.version

    def flush(self) -> None:
        """Write everything collected, so that statements on the connection see it."""
        with self.translating():
            for writer in self._writers.values():
                writer.flush()

    def new_writer(self, namespace: str) -> PostgresRowWriter:
        """Write what the former writer of a namespace collected, and return a new one."""
        self.flush()
        self._writers.pop(namespace_key(namespace), None)
        return self.lock(namespace)

    # --- reading inside ---------------------------------------------------------------------------------

    def rows(
        self, statement: str, values: Sequence[object] = (), *, terms: bool = False
    ) -> list[tuple[Any, ...]]:
        """Run a statement that sees this transaction's writes; those to the term index only with ``terms``."""
        read_ahead = self._ahead.get((statement, repr(values))) if self._ahead else None
        if read_ahead is not None:
            return read_ahead
        if terms:
            self.flush()
        with self.translating():
            for writer in self._writers.values():
                writer.send()
            with self.connection.cursor(binary=True) as cursor:
                cursor.execute(statement, values or None)
                return cursor.fetchall() if cursor.description else []

    # --- ending -----------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Make everything visible and durable, or raise and leave everything unchanged."""
        connection = self.connection
        proof: Statement | None = None
        with self.translating():
            if _failed(connection):
                raise StorageError(
                    f"{self.pool.shown}: a statement of this batch failed before: nothing was changed",
                    hint="do not continue a batch after an error",
                )
            last: list[Statement] = []
            for writer in self._writers.values():
                last += writer.finish()
            if self.events:
                if len(self.events) > 1:
                    name_namespaces(self.events, self.change.id)
                statements, proof = event_statement(self.events)
                last += statements
        self.doubled = any(
            _is_doubled(self._first_docs[ns], writer.head.next_doc) for ns, writer in self._writers.items()
        )
        try:
            with connection.pipeline():
                for statement, values in last:
                    connection.execute(statement, values)
                end = connection.execute("COMMIT")
            ended = end.statusmessage
        except psycopg.Error as error:
            if _failed(connection):  # before COMMIT
                with self.translating():
                    raise
            self._resolve_outcome(error, proof)
            return
        if ended != "COMMIT":
            raise StorageError(f"{self.pool.shown} rolled back the change: nothing was changed", hint="retry")
        self._release()

    def _resolve_outcome(self, error: psycopg.Error, proof: Statement | None) -> None:
        """Find out whether the server committed, after an error or a lost connection during COMMIT."""
        if not is_lost(error) and not is_worker_lost(error):
            self.rollback()
            raise translated(error, self.pool.shown) from error
        xid, written = self._xid, list(self._writers)
        self._release()
        if _committed(self.pool, xid, written, proof):
            return
        raise StorageError(
            f"the connection to {self.pool.shown} was lost before the change was committed: nothing was changed",
            hint="retry",
        ) from error

    def rollback(self) -> None:
        """Roll back everything that the server has not rolled back already."""
        self._writers.clear()
        if self._connection is not None:
            undo(self._connection)
        self._release()

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        self._writers.clear()
        if connection is not None:
            self.pool.give_back(connection)
        if self._is_admitted:
            self._is_admitted = False
            self.pool.dismiss_writer()

    @contextlib.contextmanager
    def translating(self) -> Iterator[None]:
        """Raise the database's errors as the project's own."""
        try:
            yield
        except psycopg.Error as error:
            failure = translated(error, self.pool.shown)
            if (is_lost(error) or is_worker_lost(error)) and isinstance(failure, StorageError):
                failure = with_unchanged_note(failure)
            raise failure from error


@contextlib.contextmanager
def unchanged() -> Iterator[None]:
    """Add to store errors raised inside the block that nothing was changed."""
    try:
        yield
    except StorageError as error:
        raise with_unchanged_note(error) from error.__cause__


def _failed(connection: psycopg.Connection[Any]) -> bool:
    """Whether a statement of the open transaction has failed."""
    return connection.info.transaction_status == TransactionStatus.INERROR


def _is_doubled(before: int, after: int) -> bool:
    return before.bit_length() < after.bit_length() and _MIN_ANALYSED <= after <= _MAX_ANALYSED


def _committed(pool: Pool, xid: str | None, written: Sequence[int], proof: Statement | None) -> bool:
    """Return whether a transaction was committed whose COMMIT was not answered.

    Args:
        written: keys of the namespaces whose locks it held.
        proof: a query that finds an event of the audit log if the transaction wrote it.
    """
    cause: StorageError | None = None
    try:
        outcome = _outcome(pool, xid, written, proof)
    except StorageError as failure:
        outcome, cause = None, failure
    if outcome is None:
        raise StorageError(
            f"the connection to {pool.shown} was lost during the commit: the change may have been made or not",
            hint="check before you repeat it",
        ) from cause
    return outcome


def _outcome(pool: Pool, xid: str | None, written: Sequence[int], proof: Statement | None) -> bool | None:
    deadline = time.monotonic() + pool.reconnect_seconds
    while (state := _state(pool, xid)) == "in progress":
        if time.monotonic() > deadline:
            return None
        time.sleep(0.1)
    if proof is None:
        # A worker of a cluster may have committed although the coordinator has not.
        return True if state == "committed" else None if pool.distributed else False
    if pool.distributed:
        # A worker may still be about to commit: until then, it holds the locks.
        try:
            pool.change([*LIMIT_LOCK_WAIT, *((_LOCK, (ns,)) for ns in written)])
        except StoreLocked:
            # A worker waits for the second phase of the commit, which follows the coordinator's outcome.
            return state == "committed" or bool(pool.rows(*proof))
    # A server that took over may reuse transaction ids: the event in the audit log is the proof.
    return bool(pool.rows(*proof))


def _state(pool: Pool, xid: str | None) -> str:
    """Return the state of a transaction on the server: ``in progress``, ``committed`` or ``aborted``."""
    try:
        return str(pool.rows("SELECT pg_xact_status(%s::text::xid8)", (xid,))[0][0])
    except StorageError as failure:
        if not isinstance(failure.__cause__, errors.InvalidParameterValue):
            raise
        return "aborted"  # a server that took over has no record of this transaction
