"""Connections to the index: one per thread, renewed when the file under them is replaced or the process forks."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from rlm_mem.errors import StoreClosed
from rlm_mem.store.core import files
from rlm_mem.store.core.rows import Encode
from rlm_mem.store.local import schema
from rlm_mem.store.local.row_writer import LocalRowWriter
from rlm_mem.store.local.transaction import Transaction

__all__ = ["Connections"]


_CLOSED = -1  # no inode


class _OfThread(threading.local):
    """What belongs to one thread."""

    connection: sqlite3.Connection | None = None
    rows: LocalRowWriter | None = None
    transaction: Transaction | None = None


class Connections:
    """Hands each thread its connection.

    Args:
        database: the index file.
        encode: see RowWriter.
        wait_seconds: how long a writer waits for the lock.
        read_only: open for reading only.
        on_new_file: called when the file is another one than before although the store is in use (somebody deleted
            or replaced the index, to have it built anew).
    """

    def __init__(
        self,
        database: Path,
        encode: Encode,
        *,
        wait_seconds: float,
        read_only: bool,
        on_new_file: Callable[[], object],
    ) -> None:
        self.database = database
        self.in_memory: sqlite3.Connection | None = None
        self._encode = encode
        self._wait_seconds = wait_seconds
        self._read_only = read_only
        self._on_new_file = on_new_file
        self._mine = _OfThread()
        self._all: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        self._renewing = threading.RLock()
        self._pid = os.getpid()
        self._inode: int | None = None
        self._closed = False

    def index_in_memory(self) -> sqlite3.Connection:
        """Use an index in memory from now on: for stores that cannot be written."""
        self.drop()
        self.in_memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        schema.migrate(self.in_memory)
        return self.in_memory

    def get(self) -> sqlite3.Connection:
        """The calling thread's connection."""
        if self._closed:
            raise StoreClosed(f"the store of {self.database.parent.parent} was closed", hint="open it again")
        if self.in_memory is not None:
            return self.in_memory
        if os.getpid() != self._pid:  # forked: SQLite connections must not cross, not even to be closed
            self._mine, self._all, self._pid = _OfThread(), [], os.getpid()
        connection = self._mine.connection
        if connection is not None:
            if connection.in_transaction or self.same_file():
                return connection
            self.drop()
        return self._connect()

    @property
    def rows(self) -> LocalRowWriter:
        """The row writer on the calling thread's connection."""
        connection = self.get()
        if self.in_memory is not None:
            return LocalRowWriter(connection, self._encode)
        assert self._mine.rows is not None
        return self._mine.rows

    @property
    def transaction(self) -> Transaction | None:
        """The transaction that the calling thread is in."""
        return self._mine.transaction

    @transaction.setter
    def transaction(self, value: Transaction | None) -> None:
        self._mine.transaction = value

    def another(self) -> sqlite3.Connection:
        """A connection that belongs to no thread, for the caller to close."""
        return schema.connect(self.database, wait_seconds=self._wait_seconds)

    def same_file(self) -> bool:
        """Whether the index file is still the one that was opened, and was not emptied since."""
        try:
            status = os.stat(self.database)
            return status.st_ino == self._inode and status.st_size > 0
        except FileNotFoundError:
            return False

    def _connect(self) -> sqlite3.Connection:
        if not self._read_only:
            files.make_folder(self.database.parent)  # the index may be deleted at any time, with its folder
        connection = schema.connect(self.database, wait_seconds=self._wait_seconds, read_only=self._read_only)
        if not self._read_only:
            try:
                schema.migrate(connection)
            except sqlite3.Error as error:
                connection.close()
                raise schema.sqlite_error(error, str(self.database)) from error
        with self._renewing:
            former, self._inode = self._inode, os.stat(self.database).st_ino
            self._mine.connection = connection
            self._mine.rows = LocalRowWriter(connection, self._encode)
            with self._guard:
                self._all.append(connection)
            if former not in (None, self._inode) and not self._read_only:
                self._on_new_file()  # other threads wait: what they would read now is not complete
        return connection

    def drop(self) -> None:
        """Let go of every connection; the next call opens a new one.

        Another thread may be in the middle of a statement: its connection is closed when the store is (closing it
        under the statement crashes the process).
        """
        mine = self._mine.connection
        if mine is not None:
            with contextlib.suppress(sqlite3.Error):
                mine.close()
        self._mine = _OfThread()
        if self._inode is not None:
            self._inode = _CLOSED  # from now on a new file may get the number of the old one

    def close(self) -> None:
        """Close for good; no other thread uses the store any more."""
        self.drop()
        with self._guard:
            for connection in self._all:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            self._all.clear()
        if self.in_memory is not None:
            self.in_memory.close()
        self._closed = True
