"""Per-thread connections to the SQLite index, recovery from index damage, the write lock, and commits.

The index is derived from the files: if a call finds it damaged, the index is set aside and rebuilt, and the call is
repeated.

Files are synced before a write is acknowledged. The index can be rebuilt from them, so its commits are not synced
one by one, which would make a write slower. A killed process loses nothing by that, but a
power cut or a system crash may leave a damaged index. Therefore an empty file beside the index, named after the
boot of the system, marks unsynced commits: it is created and synced before the first of them, and removed once
everything is synced. A mark of an earlier boot means that the index cannot be trusted.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Concatenate, Literal, ParamSpec, Protocol, TypeVar

from rlm_mem.errors import CorruptStore, StorageError, StoreClosed
from rlm_mem.store.core import files
from rlm_mem.store.local import schema

_CLOSED = -1  # not an inode number
_ATTEMPTS = 4
_LOOK_SECONDS = 1.0

_P = ParamSpec("_P")
_T = TypeVar("_T")


class DamagedSnapshot(Exception):
    """Posting files are missing or inconsistent. Internal: they are rebuilt, and no caller sees this error."""


class DerivedIndex(Protocol):
    """The operations of an index that `Connections` calls; ``LocalIndex`` documents them."""

    def complete(self) -> None: ...
    def look(self) -> None: ...
    def heal(self, error: Exception, known: int) -> bool: ...
    def forget_postings(self) -> None: ...


class _Connected(Protocol):
    """An object whose methods use the connections."""

    @property
    def _connections(self) -> Connections: ...


_C = TypeVar("_C", bound=_Connected)


def healed(method: Callable[Concatenate[_C, _P], _T]) -> Callable[Concatenate[_C, _P], _T]:
    """Decorator: if the index turns out to be damaged or was replaced, call the method again on the new one."""

    @wraps(method)
    def call(self: _C, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        connections, error = self._connections, None
        state = connections.thread
        for _ in range(_ATTEMPTS):
            generation, drops = connections.generation, state.drops
            try:
                answer = method(self, *args, **kwargs)
            except (sqlite3.Error, CorruptStore, DamagedSnapshot) as failure:
                if state.drops == drops:  # else the call went on with a connection that it had given up
                    connections.mend(failure, generation)
                error = failure
            else:
                connection = state.connection
                if connection is not None and connection.in_transaction:
                    return answer
                if state.drops == drops and (connection is None or connections.in_place):
                    return answer
                # A connection to a file that was renamed takes the journal of the new file for its own, and rolls
                # that back into the old one: rows may have been missing, without an error.
        raise CorruptStore(
            f"{connections.database} is damaged or replaced again and again: {error or 'by another program'}",
            hint="repeat the question",
        ) from error

    return call


class _ThreadState(threading.local):
    """State of one thread."""

    connection: sqlite3.Connection | None = None
    inode: int | None = None
    """Of the file that the connection has open: as long as it is open, no other file gets this number."""
    writable: bool = True
    """Whether the file could be written when it was opened; if not, SQLite never writes by this connection."""
    drops: int = 0
    """How often the thread has given up a connection."""
    flush: Callable[[], None] | None = None
    """Writes the queued rows of the thread's transaction, before anything is read."""


class Connections:
    """Provides each thread with its own connection to the index.

    Args:
        database: the index file.
        wait_seconds: how long a writer waits for the lock.
        read_only: open for reading only.
        index: the index behind the connections. Its ``complete`` is called when the file was deleted or replaced
            while the store is in use, its ``look`` once a second during use.
    """

    def __init__(self, database: Path, *, wait_seconds: float, read_only: bool, index: DerivedIndex) -> None:
        self.database = database
        self.in_memory: sqlite3.Connection | None = None
        self._wait_seconds = wait_seconds
        self._read_only = read_only
        self._index = index
        self.thread = _ThreadState()
        self._all: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._guard = threading.Lock()
        self._renewing = threading.RLock()
        self._pid = os.getpid()
        self._inode: int | None = None
        self.closed = False
        self.generation = 0
        """Incremented each time a damaged index is set aside."""
        self._look_at = math.inf

    def mend(self, error: sqlite3.Error | CorruptStore | DamagedSnapshot, generation: int) -> None:
        """Repair the damage that a call met, or raise its error if it does not indicate damage.

        Args:
            error: what the call failed with.
            generation: the generation of the index when it began.
        """
        if isinstance(error, DamagedSnapshot):
            self._index.forget_postings()
        elif not self._index.heal(error, generation):
            if isinstance(error, CorruptStore):
                raise error
            raise schema.sqlite_error(error, str(self.database)) from error

    @contextlib.contextmanager
    def index_in_memory(self) -> Iterator[sqlite3.Connection]:
        """Provide a new index in memory, for a store that cannot be written, and use it from the end of the block on.

        It begins as a copy of the index in memory so far, if there is one, which other threads read until then.
        """
        made = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        if self.in_memory is None:
            schema.make_tables(made)
        else:
            self.in_memory.backup(made)
        yield made
        self.in_memory = made
        self.drop()

    def schedule_look(self) -> None:
        """Schedule the index's next check for changed files in a second."""
        self._look_at = time.monotonic() + _LOOK_SECONDS

    def _look(self) -> None:
        self._look_at = math.inf  # the check itself asks for a connection
        try:
            self._index.look()
        finally:
            self.schedule_look()

    def was_closed(self) -> StoreClosed:
        """Return the error for a use after the store was closed."""
        return StoreClosed(f"the store of {self.database.parent.parent} was closed", hint="open it again")

    def check_there(self) -> None:
        """Raise StorageError if the store's folder is missing: creating a new one would split the memory in two."""
        base = self.database.parent.parent
        if not (self.database.parent.is_dir() or (base / "chunks").is_dir()):
            raise StorageError(
                f"{base} was moved or deleted while it was open",
                hint="move it back, or open the memory in its new place",
            )

    def get(self) -> sqlite3.Connection:
        """Return the connection of the calling thread."""
        if self.closed:
            raise self.was_closed()
        if time.monotonic() >= self._look_at:
            self._look()
        if os.getpid() != self._pid:  # forked: connections must not be used here, not even closed
            self.thread, self._all, self._pid = _ThreadState(), [], os.getpid()
        if self.in_memory is not None:
            if self.thread.connection is not None:  # another thread has indexed in memory meanwhile
                self.drop()
            return self.in_memory
        connection = self.thread.connection
        if connection is not None:
            if connection.in_transaction:
                if self.thread.flush is not None:
                    self.thread.flush()
                return connection
            if self.in_place and (self.thread.writable or not os.access(self.database, os.W_OK)):
                return connection
            self.drop()
        return self._connect()

    def another(self) -> sqlite3.Connection:
        """Open a connection that belongs to no thread; the caller closes it."""
        return schema.connect(self.database, wait_seconds=self._wait_seconds)

    @property
    def in_place(self) -> bool:
        """Whether the file that the calling thread has open is still the index, and was not emptied."""
        try:
            status = os.stat(self.database)
        except OSError:
            return False
        return status.st_ino == self.thread.inode and status.st_size > 0

    @property
    def same_file(self) -> bool:
        """Whether the index file is still the one that the calling thread has open, or could not open."""
        return self.thread.inode in (None, self._file())

    def _file(self) -> int | None:
        """Return the inode number of the index file; None if it is missing, was emptied, or cannot be looked at."""
        try:
            status = os.stat(self.database)
        except OSError:
            return None
        return status.st_ino if status.st_size else None

    def _connect(self) -> sqlite3.Connection:
        if self._inode is not None:
            self.check_there()
        if not self._read_only:
            files.make_folder(self.database.parent)  # the index may be deleted at any time, with its folder
        before = self._file()
        if self._read_only and before is None and self._inode is not None:
            with self._renewing:
                if self.in_memory is None:
                    self._index.complete()
            return self.get()
        connection, after = self._open(), self._file()
        if before not in (None, after):  # replaced meanwhile: it is unknown which of the files was opened
            connection.close()
            return self._connect()
        with self._renewing:
            former, self._inode = self._inode, _CLOSED if after is None else after
            self.thread.connection, self.thread.inode = connection, after
            self.thread.writable = self._read_only or os.access(self.database, os.W_OK)
            with self._guard:
                self._close_for_ended_threads()
                self._all.append((threading.current_thread(), connection))
            if former not in (None, self._inode) and self.in_memory is None:
                try:
                    self._index.complete()  # other threads wait: the new index is not complete yet
                except BaseException:
                    self.drop()  # so that whoever connects next completes it instead of reading it as it is
                    raise
        # If the new index was damaged as well, it has been replaced again, and this connection is closed.
        return connection if self.thread.connection is connection else self.get()

    def _open(self) -> sqlite3.Connection:
        """Open the index file, with its tables if it may be written."""
        connection = schema.connect(self.database, wait_seconds=self._wait_seconds, read_only=self._read_only)
        if not self._read_only:
            try:
                schema.make_tables(connection)
            except sqlite3.Error as error:
                connection.close()
                raise schema.sqlite_error(error, str(self.database)) from error
        return connection

    def _close_for_ended_threads(self) -> None:
        """Close the connections of ended threads: a server that starts a thread per request would accumulate them."""
        ended = [pair for pair in self._all if not pair[0].is_alive()]
        for _, connection in ended:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        if ended:
            self._all = [pair for pair in self._all if pair not in ended]

    def drop(self) -> None:
        """Release the calling thread's connection; its next call opens a new one, and completes that index.

        Other threads find out by themselves that the file was replaced: one of them may be executing a statement,
        and closing its connection then would crash the process.
        """
        state = self.thread
        if state.connection is not None:
            with contextlib.suppress(sqlite3.Error):
                state.connection.close()
            state.drops += 1
        state.connection = state.inode = state.flush = None
        if self._inode is not None:
            self._inode = _CLOSED  # from now on a new file may get the old inode number

    def close(self) -> None:
        """Close permanently; no other thread may still use the store."""
        self.drop()
        with self._guard:
            for _, connection in self._all:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            self._all.clear()
        if self.in_memory is not None:
            self.in_memory.close()
        self.closed = True


# --- the write lock and the mark of unsynced commits ---------------------------------------------------------

_RETRY_SECONDS = {"BEGIN IMMEDIATE": 0.003, "COMMIT": 0.0005}
"""Seconds between two attempts to take the write lock, or to commit while there are readers."""
_PREFIX = "unsynced-"
# File systems of a single machine: on any other, another machine may have written the index and crashed.
_OF_ONE_MACHINE = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "overlay", "tmpfs"}
)


def in_turn(
    connection: sqlite3.Connection, statement: Literal["BEGIN IMMEDIATE", "COMMIT"], wait_seconds: float
) -> None:
    """Take the write lock or commit, retrying at even intervals for up to ``wait_seconds``.

    A commit waits for the last reader; new readers and all writers wait meanwhile. The connection must have a busy
    timeout of 0: SQLite's own waits grow to 100 ms, so the process that has waited longest tries least often. With
    ten writers, some waited half a minute while others overtook them (benchmarks/soak.py).
    """
    until: float | None = None
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            now = time.monotonic()
            until = now + wait_seconds if until is None else until
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or now >= until:
                raise
            import random  # loads hash functions, which opening does not need

            time.sleep(random.uniform(0.5, 1.5) * _RETRY_SECONDS[statement])
        else:
            return


class UnsyncedMark:
    """The marker file for unsynced commits of one index.

    Every commit is synced if the boot id is unknown or the file system may be shared.

    Args:
        folder: the folder of the index.
        wait_seconds: how long connections wait for a lock outside the transactions that are begun here.
    """

    def __init__(self, folder: Path, wait_seconds: float) -> None:
        self._folder = folder
        self._busy_timeout = f"PRAGMA busy_timeout={int(wait_seconds * 1000)}"
        self._boot = _boot_id()
        self._path = os.path.join(folder, _PREFIX + self._boot)  # noqa: PTH118 - checked at every write
        self._usable: bool | None = None if self._boot else False
        self._used = False

    @property
    def of_earlier_boots(self) -> list[Path]:
        """Return marks of earlier boots: the system went down with unsynced commits."""
        if not self._boot:
            return []
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - names alone, without a stat of each
        except (FileNotFoundError, PermissionError):
            return []
        current = _PREFIX + self._boot
        return [self._folder / name for name in names if name.startswith(_PREFIX) and name != current]

    def begin(self, connection: sqlite3.Connection, wait_seconds: float) -> None:
        """Take the write lock for a transaction whose commit is not synced; call ``end`` after it.

        Until then the connection's busy timeout is 0: commit with ``in_turn``.

        Args:
            wait_seconds: how long to wait for the lock.

        Raises:
            StorageError: a newer program has replaced the tables since the index was opened here.
        """
        if self._usable is None:
            self._usable = _file_system(self._folder) in _OF_ONE_MACHINE
        try:
            connection.execute("PRAGMA busy_timeout=0")
            if self._usable:
                connection.execute("PRAGMA synchronous=OFF")
            in_turn(connection, "BEGIN IMMEDIATE", wait_seconds)
            if self._usable and not os.path.exists(self._path):  # noqa: PTH110 - a path object takes longer
                with files.translated(f"the change of {self._folder.parent}"):
                    Path(self._path).touch()
                    files.sync_folder(self._folder)
            self._used = self._used or self._usable
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > schema.INDEX_VERSION:
                raise schema.newer_version(version)
            if version < schema.INDEX_VERSION:
                raise CorruptStore(
                    "the index was emptied by another program: nothing was changed",
                    hint="run: rlm-mem store rebuild",
                )
        except BaseException:
            schema.roll_back(connection)
            self.end(connection)
            raise

    def end(self, connection: sqlite3.Connection) -> None:
        """Restore the connection's busy timeout and the syncing of its commits after the transaction."""
        with contextlib.suppress(sqlite3.Error):  # closed because the index was set aside
            if not connection.in_transaction:
                connection.execute("PRAGMA synchronous=NORMAL")
                connection.execute(self._busy_timeout)

    def settle(self, connection: sqlite3.Connection) -> None:
        """Sync everything committed so far and remove the mark, unless another process is writing."""
        if not self._used or not self._boot:
            return
        connection.execute("PRAGMA busy_timeout=0")
        connection.execute("PRAGMA synchronous=FULL")
        try:
            connection.execute("BEGIN IMMEDIATE")
            before = connection.execute("PRAGMA data_version").fetchone()
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            # Write one page, so that SQLite syncs the file.
            connection.execute(f"PRAGMA user_version={version}")
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA data_version").fetchone() == before:  # no write in between
                files.remove(self._path)
                self._used = False
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self.end(connection)


@cache
def _boot_id() -> str:
    """Return the id of the current boot of the operating system; empty if unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _file_system(folder: Path) -> str:
    """Return the type of a folder's file system; empty if unknown."""
    device = os.stat(folder).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.split(" ")[2] == wanted:
            return rest.split(" ")[0]
    return ""
