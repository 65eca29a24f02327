"""How the SQLite index is written: its write lock, its commit, and the mark of commits that are not synced.

Files are synced before a write is acknowledged; the index can be built anew from them, so its commits are not synced
one by one, which would add half to all of the cost of a write. A process that is killed loses nothing by that. Whether
the system itself went down (power cut, kernel) in between is told by an empty file beside the index, named after the
boot of the system: made and synced before the first unsynced commit, removed when everything is synced. A mark of an
earlier boot says that the index cannot be trusted.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from functools import cache
from pathlib import Path

from rlm_mem.errors import CorruptStore
from rlm_mem.store.core import files
from rlm_mem.store.local import schema

__all__ = ["UnsyncedMark", "commit"]

_LOCK_EVERY = 0.003  # seconds between two tries for the write lock
_COMMIT_EVERY = 0.0005  # seconds between two tries to commit while somebody reads
_PREFIX = "unsynced-"
# File systems of one machine alone: on any other, the boot of this machine says nothing about who wrote the index.
_OF_ONE_MACHINE = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "overlay", "tmpfs"}
)


def commit(connection: sqlite3.Connection) -> None:
    """Commit as soon as the last reader is done; new ones wait meanwhile, as do all writers."""
    _retried_while_busy(connection, "COMMIT", _COMMIT_EVERY)


def _retried_while_busy(connection: sqlite3.Connection, statement: str, every: float) -> None:
    """Execute a statement, trying at even intervals for as long as the connection would wait.

    SQLite's own waits grow to 100 ms, so that whoever has waited longest tries least often: with ten writers some
    waited half a minute while newcomers went ahead (benchmarks/soak.py).
    """
    timeout = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    until = time.monotonic() + timeout / 1000
    connection.execute("PRAGMA busy_timeout=0")
    try:
        while True:
            try:
                connection.execute(statement)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                    raise
                time.sleep(random.uniform(0.5, 1.5) * every)
            else:
                return
    finally:
        connection.execute(f"PRAGMA busy_timeout={timeout}")


class UnsyncedMark:
    """The mark beside one index. Without the boot's name, or on a shared file system, every commit is synced.

    Args:
        folder: the folder of the index.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._boot = _boot_id()
        self._usable: bool | None = None if self._boot else False
        self._used = False

    @property
    def of_earlier_boots(self) -> list[Path]:
        """Marks that the system went down with unsynced commits."""
        if not self._boot:
            return []
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - names alone, without a look at each
        except FileNotFoundError:
            return []
        mine = _PREFIX + self._boot
        return [self._folder / name for name in names if name.startswith(_PREFIX) and name != mine]

    def begin(self, connection: sqlite3.Connection) -> None:
        """Take the write lock for a transaction that is not synced when it is committed; ``end`` must follow it.

        Raises:
            StorageError: a newer program has taken the index over since it was opened here. What this version would
                write cannot fit the newer tables.
        """
        if self._usable is None:
            self._usable = _file_system(self._folder) in _OF_ONE_MACHINE
        if self._usable:
            connection.execute("PRAGMA synchronous=OFF")
        try:
            _retried_while_busy(connection, "BEGIN IMMEDIATE", _LOCK_EVERY)
            if self._usable:
                self._make()
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > schema.INDEX_VERSION:
                raise schema.newer_version(version)
            if version < schema.INDEX_VERSION:
                raise CorruptStore(
                    "the index was emptied by another program: nothing was changed",
                    hint="run: rlm-mem index rebuild",
                )
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # of a damaged index; what matters is the first error
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            self.end(connection)
            raise

    def end(self, connection: sqlite3.Connection) -> None:
        """After the transaction: whatever else this connection commits is synced."""
        with contextlib.suppress(sqlite3.Error):  # closed, since the index was set aside
            if not connection.in_transaction:
                connection.execute("PRAGMA synchronous=NORMAL")

    def settle(self, connection: sqlite3.Connection) -> None:
        """Sync everything committed so far and remove the mark, unless another process writes just now."""
        if not self._used or not self._boot:
            return
        timeout = connection.execute("PRAGMA busy_timeout").fetchone()[0]
        connection.execute("PRAGMA busy_timeout=0")
        connection.execute("PRAGMA synchronous=FULL")
        try:
            connection.execute("BEGIN IMMEDIATE")
            before = connection.execute("PRAGMA data_version").fetchone()
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute(
                f"PRAGMA user_version={version}"
            )  # a page to write: SQLite syncs the file then
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA data_version").fetchone() == before:  # nobody wrote in between
                files.remove(self._folder / (_PREFIX + self._boot))
                self._used = False
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA busy_timeout={timeout}")

    def _make(self) -> None:
        mark = self._folder / (_PREFIX + self._boot)
        if not mark.exists():
            try:
                mark.touch()
                files.sync_folder(self._folder)
            except OSError as error:
                files.translate(error, "the change")
        self._used = True


@cache
def _boot_id() -> str:
    """A name for this run of the operating system, empty where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _file_system(folder: Path) -> str:
    """The type of the file system that a folder lies on, empty where it cannot be told."""
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
