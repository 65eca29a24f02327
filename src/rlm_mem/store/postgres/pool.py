"""Connection pool for one PostgreSQL database: opens connections on demand and reconnects after a loss.

This is not psycopg_pool: it opens connections in the calling thread, so that a wrong password is an error at once
and an absent server is retried every second; it has no threads of its own, and a forked process starts without
connections.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from rlm_mem.config import PostgresConfig
from rlm_mem.dsn import shown_dsn
from rlm_mem.errors import InvalidConfig, StorageError, StoreClosed, StoreLocked
from rlm_mem.store.postgres.failures import is_lost, is_worker_lost, refused, translated
from rlm_mem.store.postgres.values import ListDumper, Statement

_T = TypeVar("_T")

#: How long an idle connection is kept (seconds): servers, poolers and firewalls drop them without notice.
_MAX_IDLE_SECONDS = 240.0
#: How long the first connection may be refused before giving up (seconds): there may be no server at all.
_FIRST_CONNECT_TIMEOUT = 2.0
#: Connections left to readers, since writers keep theirs while they wait for a lock.
_FOR_READERS = 2
#: A statement is prepared on a connection after this many uses.
_USES_BEFORE_PREPARED = 5


class Pool:
    """Connections to one database, in autocommit mode; each is used by one thread at a time.

    Args:
        dsn: ``postgresql://…`` with any of libpq's options, several hosts included.
        settings: the number of connections, and how long to wait for servers.
        worker_seconds: how long to wait for a worker of the cluster behind the server, in seconds.

    Attributes:
        distributed: whether the tables are spread over the servers of a Citus cluster.
        reconnect_seconds: how long to wait for an unreachable server.
    """

    def __init__(self, dsn: str, settings: PostgresConfig, *, worker_seconds: float = 2.0) -> None:
        self.shown = shown_dsn(dsn)
        self.distributed = False
        self.reconnect_seconds = settings.reconnect_seconds
        self._worker_seconds = min(worker_seconds, settings.reconnect_seconds)
        # Without a handler the driver's warnings about a lost server would be printed to the terminal.
        if not logging.getLogger("psycopg").handlers:
            logging.getLogger("psycopg").addHandler(logging.NullHandler())
        self._settings = settings
        self._options = _options(dsn, self.shown, settings)
        self._reset()
        self._idle: list[tuple[float, psycopg.Connection[Any]]] = []
        self._served = False
        self._closed = False
        self._inherited_connections: list[object] = []
        self._snapshots = threading.local()

    def __repr__(self) -> str:
        return f"Pool({self.shown!r})"

    # --- lending ---------------------------------------------------------------------------------------

    def take(self, until: float | None = None) -> psycopg.Connection[Any]:
        """Acquire a connection, to be released with ``give_back``.

        Args:
            until: when to give up on an absent server, in monotonic seconds.

        Raises:
            StoreClosed, StoreLocked (all connections are in use), StorageError (no server, or a refused
                connection).
        """
        self._check_process()
        if self._closed:
            raise StoreClosed(f"the store of {self.shown} was closed", hint="open it again")
        if not self._free.acquire(timeout=self.reconnect_seconds + 1.0):
            raise StoreLocked(
                f"all {self._settings.pool_size} connections to {self.shown} are in use",
                hint="raise postgres.pool_size, or use fewer threads",
            )
        try:
            while True:
                with self._guard:
                    since, connection = self._idle.pop() if self._idle else (0.0, None)
                if connection is None:
                    return self._connect(until)
                if time.monotonic() - since < _MAX_IDLE_SECONDS and not connection.closed:
                    return connection
                connection.close()
        except BaseException:
            self._free.release()
            raise

    def give_back(self, connection: psycopg.Connection[Any]) -> None:
        """Release a connection of ``take``; a broken one, or one left inside a transaction, is closed."""
        if os.getpid() != self._pid:
            return
        sound = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        with self._guard:
            kept = sound and not self._closed
            if kept:
                self._idle.append((time.monotonic(), connection))
        if not kept:
            connection.close()
        self._free.release()

    def admit_writer(self, until: float) -> None:
        """Wait until fewer writers than there are connections for them hold one; ``dismiss_writer`` must follow.

        Args:
            until: when to give up, in monotonic seconds.

        Raises:
            StoreLocked: there are too many for too long.
        """
        self._check_process()
        if not self._for_writers.acquire(timeout=max(0.0, until - time.monotonic())):
            raise StoreLocked(
                f"{self.shown}: too many threads of this program are writing or waiting to write",
                hint="retry in a moment, or raise postgres.pool_size",
            )

    def dismiss_writer(self) -> None:
        """Let the next writer in."""
        if os.getpid() == self._pid:
            self._for_writers.release()

    def _reset(self) -> None:
        """Set up the locks, which a forked process must not share."""
        self._guard = threading.Lock()
        self._free = threading.BoundedSemaphore(self._settings.pool_size)
        self._for_writers = threading.BoundedSemaphore(max(1, self._settings.pool_size - _FOR_READERS))
        self._pid = os.getpid()  # last: another thread must not use what is left of the parent

    def persist(self, work: Callable[[psycopg.Connection[Any]], _T], *, keep: bool = False) -> _T:
        """Run ``work``, which must be repeatable, again on a new connection if the connection is lost.

        Args:
            keep: the caller releases the connection.
        """
        until: float | None = None
        pause = 0.0
        while True:
            connection = self.take(until)
            done = worker = False
            try:
                result = work(connection)
                done = True
                return result
            except psycopg.Error as error:
                worker = is_worker_lost(error)
                if not worker and not is_lost(error):
                    connection.close()  # psycopg may count as prepared what a failed pipeline was about to prepare
                    raise translated(error, self.shown) from error
                if not worker:
                    connection.close()  # it may still be open, but to a read-only server
                until = until or time.monotonic() + (
                    self._worker_seconds if worker else self.reconnect_seconds
                )
                if time.monotonic() >= until:
                    raise translated(error, self.shown) from error
            finally:
                if not (done and keep):
                    self.give_back(connection)
            if not worker:
                self.forget_idle()
            time.sleep(pause)
            pause = min(1.0, pause * 2 or 0.05)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[psycopg.Connection[Any]]:
        """Open a block in which this thread reads as of one moment; can be nested. A lost connection is an error."""
        snapshot: psycopg.Connection[Any] | None = getattr(self._snapshots, "connection", None)
        if snapshot is not None:
            yield snapshot
            return
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

        def open_snapshot(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
            connection.execute(begin)
            connection.execute("SELECT 1")  # the first statement fixes the moment
            return connection

        connection = self.persist(open_snapshot, keep=True)
        self._snapshots.connection = connection
        try:
            yield connection
        finally:
            self._snapshots.connection = None
            undo(connection)
            self.give_back(connection)

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run one reading statement and return its rows."""
        return self.rows_of([(statement, values)])[0]

    def rows_of(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """Run several reading statements in one round trip; return the rows of each."""
        snapshot: psycopg.Connection[Any] | None = getattr(self._snapshots, "connection", None)
        if snapshot is None:
            return self.persist(lambda connection: rows_of(connection, statements))
        try:
            return rows_of(snapshot, statements)
        except psycopg.Error as error:
            raise translated(error, self.shown) from error

    def change(
        self, statements: Sequence[Statement], *, only_if_found: bool = False
    ) -> list[tuple[Any, ...]]:
        """Run writing statements once, in a transaction of their own; return the rows of the first statement.

        Args:
            only_if_found: change nothing if the first statement finds no row.
        """

        def collect(
            connection: psycopg.Connection[Any],
        ) -> tuple[psycopg.Connection[Any], list[tuple[Any, ...]]]:
            first = 1 if only_if_found else len(statements)
            try:
                with connection.pipeline():  # results are available only at its end
                    connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                    cursor = executed(connection, statements[:first])[0]
                found = cursor.fetchall() if cursor.description else []
                if found and statements[first:]:
                    with connection.pipeline():
                        executed(connection, statements[first:])
            except BaseException:
                undo(connection)
                raise
            return connection, found

        # Until COMMIT is sent the statements can be repeated; after that the outcome would be unknown.
        connection, found = self.persist(collect, keep=True)
        try:
            connection.execute("ROLLBACK" if only_if_found and not found else "COMMIT")
        except psycopg.Error as error:
            raise translated(error, self.shown) from error
        finally:
            self.give_back(connection)
        return found

    # --- opening and closing ----------------------------------------------------------------------------

    def _connect(self, until: float | None) -> psycopg.Connection[Any]:
        began = time.monotonic()
        until = until or began + self.reconnect_seconds
        pause = 0.1
        while True:
            try:
                connection = psycopg.connect(**self._options)
                connection.adapters.register_dumper(list, ListDumper)
                if self._settings.prepared_statements and _is_direct(connection):
                    connection.prepare_threshold = _USES_BEFORE_PREPARED
            except psycopg.Error as error:
                final = refused(error, self.shown)
                if final is not None:
                    raise final from None
                absent = "refused" in str(error) or "resolve" in str(error) or "No such file" in str(error)
                limit = until if self._served or not absent else min(until, began + _FIRST_CONNECT_TIMEOUT)
                if time.monotonic() + pause >= limit:
                    raise StorageError(
                        f"there is no PostgreSQL server at {self.shown}: {_message_of(error)}",
                        hint="start the server, or check host and port of the DSN",
                    ) from None
                time.sleep(pause)
                pause = min(1.0, pause * 2)
                continue
            self._served = True
            return connection

    def forget_idle(self) -> None:
        """Close idle connections: when one connection is lost, they are dead as well."""
        with self._guard:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:  # forked: connections must not be shared, not even to be closed
            self._inherited_connections.append(self._idle)
            self._idle = []
            self._reset()

    def close(self) -> None:
        """Close every idle connection; those in use are closed when they are released."""
        self._check_process()
        self._closed = True
        self.forget_idle()


def executed(
    connection: psycopg.Connection[Any], statements: Sequence[Statement]
) -> list[psycopg.Cursor[Any]]:
    """Run statements; in a pipeline, their rows are available at its end."""
    return [connection.cursor(binary=True).execute(sql, values or None) for sql, values in statements]


def rows_of(
    connection: psycopg.Connection[Any], statements: Sequence[Statement]
) -> list[list[tuple[Any, ...]]]:
    """Run these statements in one round trip; return the rows of each."""
    if len(statements) == 1:
        (cursor,) = executed(connection, statements)
        return [cursor.fetchall()]
    with connection.pipeline():  # results are available only at its end
        cursors = executed(connection, statements)
    return [cursor.fetchall() for cursor in cursors]


def undo(connection: psycopg.Connection[Any]) -> None:
    """Roll back an open transaction; if the connection is lost, the server rolls it back.

    Not by a statement: psycopg would go on to count as prepared what a failed pipeline was only about to prepare.
    """
    with contextlib.suppress(psycopg.Error):
        if not connection.closed:
            connection.rollback()


def _options(dsn: str, shown: str, settings: PostgresConfig) -> dict[str, Any]:
    try:
        options = conninfo_to_dict(dsn.strip())
    except psycopg.Error:  # its message may quote the DSN, including the password
        raise InvalidConfig(
            f"{shown} is not a valid DSN", hint="write postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        ) from None
    options.setdefault("application_name", "rlm-mem")
    options.setdefault("connect_timeout", str(max(2, round(settings.connect_seconds))))
    return {
        **options,
        "client_encoding": "utf8",
        "autocommit": True,
        "prepare_threshold": None,  # until it is known that no pooler is in between
    }


def _is_direct(connection: psycopg.Connection[Any]) -> bool:
    """Return whether this connection leads to the server itself: a pooler reports process ids of its own.

    Prepared statements belong to a session, and a transaction pooler may assign another session each time.
    """
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is not None and row[0] == connection.info.backend_pid


def _message_of(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "failed" in line), lines[0] if lines else "no answer")
