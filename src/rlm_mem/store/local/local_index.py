"""The index of a store folder: opening it, syncing it with the files, and rebuilding it when it is damaged."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rlm_mem.config import Config
from rlm_mem.errors import ConflictError, CorruptStore, InvalidChunk, StorageError, StoreFull, StoreLocked
from rlm_mem.lazy import logger
from rlm_mem.results import Progress
from rlm_mem.store import local
from rlm_mem.store.core import files
from rlm_mem.store.core.records import SyncReport, analysis_name, is_later_analysis, other_analysis
from rlm_mem.store.local import schema
from rlm_mem.store.local.connections import Connections, DamagedSnapshot, UnsyncedMark, healed, in_turn
from rlm_mem.store.local.folder import Layout, read_chunk_file
from rlm_mem.store.local.queries import Queries, merge_is_due

if TYPE_CHECKING:
    from rlm_mem.store.core.lookup import CandidateSource
    from rlm_mem.store.local.postings import PostingsIndex
    from rlm_mem.store.local.rows import LocalRowWriter, ThreadRows
    from rlm_mem.store.local.transaction import Transaction

_logger = logger("rlm_mem.store")

_MAX_LOGGED = 3  # maximum number of unreadable files that are logged by name on opening
# Seconds that a reader waits for the lock to index an edited file: a commit takes less
_READER_WAIT_SECONDS = 0.25
# Maximum number of namespaces whose postings are kept: a server may have any number, and lose some by erasing
_MAX_OPEN = 1024
_FILES_PER_CHECK = 250  # files that one quick check examines for edits in place


class NamespacePostings:
    """Provides one ``PostingsIndex`` per namespace, which is reopened if it was not used for long; thread-safe.

    Args:
        number: returns the number of a namespace.
        connect: opens a connection for merging in the background; None if nothing may be written.
    """

    def __init__(
        self, folder: Path, number: Callable[[str], int], connect: Callable[[], sqlite3.Connection] | None
    ) -> None:
        self._folder = folder
        self._number = number
        self._connect = connect
        self._open: dict[int, PostingsIndex] = {}  # the least recently used one first
        self._guard = threading.Lock()

    def of(self, namespace: str) -> PostingsIndex:
        """Return the postings of a namespace."""
        from rlm_mem.store.local.postings import PostingsIndex

        ns, dropped = self._number(namespace), None
        with self._guard:
            index = self._open.pop(ns, None) or PostingsIndex(self._folder, ns, self._connect)
            self._open[ns] = index
            if len(self._open) > _MAX_OPEN:
                dropped = self._open.pop(next(iter(self._open)))
        if dropped is not None:
            dropped.close()
        return index

    def maintain(self, connection: sqlite3.Connection) -> None:
        """Merge the delta into the snapshot of every namespace whose delta is large enough."""
        for ns, name in connection.execute("SELECT ns, name FROM namespaces").fetchall():
            try:
                if merge_is_due(connection, self._folder, ns):
                    self.of(name).maintain(connection)
            except (sqlite3.Error, OSError, DamagedSnapshot) as error:
                # Derived data: the next process maintains it
                _logger.info("postings not maintained: %s", error)

    def close(self) -> None:
        """Close every snapshot; the next query reopens them."""
        with self._guard:
            for index in self._open.values():
                index.close()
            self._open.clear()


_T = TypeVar("_T")


class _ThreadState(threading.local):
    """State of one thread."""

    transaction: Transaction | None = None


class LocalIndex:
    """The part of `Backend` that is index, postings and connections of one store folder, a `DerivedIndex`.

    Args:
        base: folder of the store; created if it is missing (unless read-only).
        read_only: never write, not even the index.
    """

    is_far = False

    def __init__(self, base: Path, config: Config, *, read_only: bool = False) -> None:
        self.layout = Layout(base.absolute())
        self.config = config
        self.read_only = read_only
        self._connections = Connections(
            self.layout.database, wait_seconds=config.store.lock_wait_seconds, read_only=read_only, index=self
        )
        self._analysis = self._recorded_analysis = analysis_name(config.search.language)
        self._thread = _ThreadState()
        # How often files that were read, or a check in between, showed changes of other programs
        self.caught_up = 0
        self._mark = UnsyncedMark(self.layout.index, config.store.lock_wait_seconds)
        self._healing = threading.RLock()
        self._recorded_times: dict[str, int] = {}
        self._edited_before: int | None = None  # where the next check for files edited in place continues
        # Files already logged, so that repeated reads do not log them again
        self._logged_unreadable: set[str] = set()
        self.postings = NamespacePostings(
            self.layout.index / "postings",
            self.queries.number,
            None if read_only else self._connections.another,
        )
        self._open()

    @property
    def clone(self) -> str:
        """The id of this copy of the brain, which the audit log names with each change."""
        return self.layout.clone

    @cached_property
    def _rows(self) -> ThreadRows:
        """The row writers of all threads, created only by a process that writes."""
        return local.ThreadRows(self._connections, self.config.search.language)

    @cached_property
    def queries(self) -> Queries:
        """Queries that need only the index."""
        return Queries(self._connections)

    # --- opening ---------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self.read_only:
            self._open_read_only()
            return
        if self.layout.base.is_file():
            raise StorageError(f"{self.layout.base} is a file: a store must be a folder")
        for folder in (self.layout.chunks, self.layout.index, self.layout.archive):
            files.make_folder(folder)
        if not (self.layout.base / ".gitignore").exists():
            with contextlib.suppress(StorageError):  # not writable here: the first write raises the error
                self.layout.prepare_for_git()
        self._discard_unsynced_index()
        try:
            self._catch_up()
        except (StoreFull, StoreLocked) as error:
            with schema.translated(self.layout.database):
                connection = self.connection
                filled = connection.execute("SELECT 1 FROM chunks LIMIT 1").fetchone()
                is_current = filled is not None and self._is_current(connection)
            if not is_current:
                raise
            # Reading needs neither space nor the lock, and a later look catches up.
            later = "once there is space" if isinstance(error, StoreFull) else "once the lock is free"
            _logger.warning("%s; what changed in the files since is indexed %s", error, later)
        self._connections.schedule_look()

    def _catch_up(self) -> None:
        """Index what changed in the files since the index was last used, in a new index if that one is damaged."""
        try:
            report = self.sync(paths=self._edited_files(), renew=True)
        except CorruptStore as error:
            self._set_index_aside(error)
            report = self.sync(renew=True)
        self._recheck_unreadable(report.unreadable)

    @healed
    def _recheck_unreadable(self, logged: Sequence[str]) -> None:
        """Index unreadable files that were corrected in place, and log those still unreadable.

        A correction in place changes no folder time, so a scan of changed folders would miss it.

        Args:
            logged: paths that have just been logged.
        """
        logged = [*logged, *self._index_corrected()]
        left = [(path, reason) for path, reason in self.unreadable() if path not in logged]
        self._logged_unreadable.update(logged, (path for path, _ in left))
        for path, reason in left[:_MAX_LOGGED]:
            _logger.error("unreadable chunk file %s: %s", path, reason)
        if len(left) > _MAX_LOGGED:
            more = len(left) - _MAX_LOGGED
            _logger.error("%d more unreadable chunk files: rlm-mem store check names them", more)

    def _open_read_only(self) -> None:
        if not self.layout.base.is_dir():
            raise StorageError(
                f"there is no store at {self.layout.base}", hint="check the path, or run: rlm-mem store init"
            )
        if os.access(self.layout.database, os.R_OK) and not self._mark.of_earlier_boots:
            try:
                if self._is_complete(self.connection):
                    return
            except (sqlite3.Error, StorageError) as error:
                _logger.info("index of %s not usable read-only: %s", self.layout.base, error)
        self._do_without_file()

    def _do_without_file(self) -> None:
        """Index the files in memory: there is no usable index of this version, or files are newer than it."""
        _logger.warning(
            "%s has no index that can be used as it is: the files are indexed in memory, which takes longer",
            self.layout.base,
        )
        self._index_in_memory(self.layout.folders())
        self._connections.schedule_look()

    def complete(self) -> None:
        """Complete an index file that is new while the store is in use; a read-only store does without it if it must.

        Called where the thread's connection is the new one, or None.
        """
        if not self.read_only:
            self.sync()
            return
        connection = self._connections.thread.connection
        if connection is None or not self._is_complete(connection):  # its writer may be filling it
            self._do_without_file()

    def _is_complete(self, connection: sqlite3.Connection) -> bool:
        """Return whether an index is of this version, and of the files as they are."""
        return (
            self._is_current(connection)
            and not changed_folders(connection, self.layout, racy=False, copied=False)
            and not edited_in_place(connection, self.layout, before=None)[0]
        )

    def _is_current(self, connection: sqlite3.Connection) -> bool:
        """Return whether the tables and the terms of an index are of this version."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        return bool(
            version == schema.INDEX_VERSION
            and schema.analysis_of(connection, self._analysis) == self._analysis
        )

    def _discard_unsynced_index(self) -> None:
        """Set the index aside if the system crashed before all of its commits were synced."""
        marks = self._mark.of_earlier_boots
        if marks:
            self._set_index_aside(
                StorageError(f"the system went down while {self.layout.database} was in use")
            )
            for mark in marks:
                files.remove(mark)

    def _set_index_aside(self, error: Exception) -> None:
        """Rename a damaged index (it is kept), so that it is rebuilt from the files."""
        _logger.warning("%s; rebuilding it from the files", error)
        self._drop_connections()
        stamp = time.strftime("%Y%m%d-%H%M%S")
        # The journal first: SQLite would apply a leftover one to the next index.
        for name in ("index.sqlite-journal", "index.sqlite-wal", "index.sqlite-shm", "index.sqlite"):
            damaged = self.layout.index / name
            if damaged.exists():
                os.replace(damaged, self.layout.index / f"{name}.damaged-{stamp}")

    def heal(self, error: Exception, known: int) -> bool:
        """Rebuild the index if the error indicates damage; return whether to repeat the failed call.

        Args:
            known: the generation of the index before the error: another thread may have built a new one since.
        """
        damaged = schema.shows_damage(error)
        closed = isinstance(error, sqlite3.ProgrammingError)  # perhaps by another thread that repairs it
        if not (damaged or closed) or self.in_transaction or self._connections.closed:
            return False
        with self._healing:
            if self._connections.generation == known:
                if not damaged:
                    return False
                if self.read_only:
                    self._index_in_memory(self.layout.folders())
                    self._connections.generation += 1
                else:
                    if self._connections.same_file:  # else another process has repaired it
                        self._set_index_aside(error)
                    self._drop_connections()
                    self._connections.generation += 1
                    self.sync()
        return True

    @property
    def location(self) -> str:
        return str(self.layout.base)

    @property
    def connection(self) -> sqlite3.Connection:
        """The calling thread's connection to the index."""
        return self._connections.get()

    def _drop_connections(self) -> None:
        self.postings.close()
        self._connections.drop()

    def _settle_folder_times(self) -> None:
        """Record that the folders last written here are unchanged since, so that the next open need not scan them."""
        if not self._recorded_times:
            return
        newest = max(self._recorded_times.values())
        time.sleep(max(0.0, min(RACY_NS, newest + RACY_NS - time.time_ns()) / 1e9))
        try:
            with self._index_transaction(self.connection):
                for path, mtime in self._recorded_times.items():
                    if self.layout.absolute(path).stat().st_mtime_ns == mtime:
                        self.connection.execute(
                            "UPDATE folders SET seen_ns = ? WHERE path = ? AND mtime_ns = ?",
                            (time.time_ns(), path, mtime),
                        )
        except (OSError, sqlite3.Error, StorageError) as error:
            # The next open scans a folder: slower, not wrong
            _logger.info("folder times not settled: %s", error)

    @property
    def in_transaction(self) -> bool:
        return self._thread.transaction is not None

    def refuse_in_batch(self, what: str) -> None:
        """Raise ConflictError if the calling thread is inside a batch, which ``what`` would roll back."""
        if self.in_transaction:
            raise ConflictError(f"{what} within a batch", hint="do it after the batch")

    # --- asking ----------------------------------------------------------------------------------------

    @healed
    def retried(self, ask: Callable[[], _T]) -> _T:
        """Return the result of ``ask``, called again if the index was damaged or caught up with the files meanwhile."""
        known = self.caught_up
        result = ask()
        return result if self.caught_up == known else ask()

    def forget_postings(self) -> None:
        """Reread the posting files at the next search."""
        self.postings.close()

    @healed
    def candidate_source(self, namespace: str) -> CandidateSource:
        if self._recorded_analysis != self._analysis:
            raise other_analysis(str(self.layout.database), self._recorded_analysis, self._analysis)
        return self.postings.of(namespace).source(self._connections.get())

    @healed
    def unreadable(self) -> Sequence[tuple[str, str]]:
        """Return the files that are known not to validate: relative path and reason."""
        self._index_corrected()
        found = dict(self.connection.execute("SELECT path, reason FROM unreadable"))
        for path in self._logged_unreadable.difference(found):  # broken in place since the index was built
            try:
                read_chunk_file(self.layout.absolute(path))
                self._logged_unreadable.discard(path)
            except FileNotFoundError:
                self._logged_unreadable.discard(path)
            except (InvalidChunk, OSError) as error:
                found[path] = str(error)
        return sorted(found.items())

    def _index_corrected(self, wait_seconds: float | None = None) -> list[str]:
        """Index unreadable files that were corrected in place; return those that are still unreadable."""
        if self.read_only:
            return []
        rows = self.connection.execute("SELECT path, size, mtime_ns, inode FROM unreadable").fetchall()
        touched = {
            path.rpartition("/")[0]
            for path, *signature in rows
            if (files.signature(self.layout.absolute(path)) or files.NO_SIGNATURE)
            != files.Signature(*signature)
        }
        if not touched or self.in_transaction:
            return []
        return self.sync(folders=sorted(touched, reverse=True), wait_seconds=wait_seconds).unreadable

    # --- syncing the index with the files --------------------------------------------------------------

    def _sync_folder_of(self, path: str) -> None:
        """Sync the folder of a missing file, if the write lock can be taken."""
        # A killed process may have moved it to the archive, or begun to bring it back.
        folders = {path.rsplit("/", 1)[0], "archive"}
        if self.read_only or self.connection.in_transaction:
            return
        with contextlib.suppress(StorageError):
            self.sync(folders=sorted(folders, reverse=True))
            self.caught_up += 1

    def _index_again(self, edited: Sequence[str]) -> None:
        """Reindex files whose content differed from the index when read, unless the write lock is held for long."""
        if self.read_only:
            if self._connections.in_memory is None:
                return
            with self._healing:
                self._index_in_memory([], edited)
        elif self.connection.in_transaction:
            return
        else:
            try:
                self.sync(folders=[], paths=edited, wait_seconds=_READER_WAIT_SECONDS)
            except StorageError:
                return
        self.caught_up += 1

    def look(self) -> None:
        """Index changes made by other programs, as far as a quick check finds them.

        It checks the times of the folders, the files that were unreadable, and the next few hundred files for edits
        in place: a millisecond or two at any store size. While another process writes, nothing is done.
        """
        if self.read_only:
            self._look_read_only()
            return
        connection = self.connection
        if connection.in_transaction:
            return
        try:
            if self.sync(paths=self._edited_files(), quick=True, wait_seconds=0):
                self.caught_up += 1
            self._index_corrected(wait_seconds=0)
        except (StorageError, OSError) as error:  # the caller meets the same error if it persists
            _logger.info("changes from outside not looked for: %s", error)

    def _edited_files(self) -> list[str]:
        """Return those of the next few hundred files that were edited in place."""
        with schema.translated(self.layout.database):
            edited, self._edited_before = edited_in_place(
                self.connection, self.layout, before=self._edited_before
            )
        return edited

    def _look_read_only(self) -> None:
        """As ``look``, for an index in memory; a read-only index file is left to the processes that may write it.

        If one of them rebuilds it with another analysis of words, the files are indexed in memory.
        """
        connection = self._connections.in_memory
        if connection is None:
            with self._healing, schema.translated(self.layout.database):
                if schema.analysis_of(self.connection, self._analysis) != self._analysis:
                    self._index_in_memory(self.layout.folders())
            return
        with self._healing:
            folders, edited = changed_folders(connection, self.layout, racy=False), self._edited_files()
            if folders or edited:
                self._index_in_memory(folders, edited)

    def _index_in_memory(self, folders: list[str], paths: Sequence[str] = ()) -> None:
        """Index these folders and files in memory; other threads read the former index until it is complete."""
        with self._connections.index_in_memory() as connection:
            rows = local.LocalRowWriter(connection, self.config.search.language)
            self._sync_locked(connection, rows, folders, None, paths)

    def sync(
        self,
        *,
        full: bool = False,
        folders: list[str] | None = None,
        paths: Sequence[str] = (),
        quick: bool = False,
        renew: bool = False,
        progress: Progress | None = None,
        wait_seconds: float | None = None,
    ) -> SyncReport:
        """Index changes that other programs made to the files.

        Args:
            full: check every file, not only those in changed folders.
            folders: check these folders instead of looking for changed ones.
            paths: also read these files, which were edited in place.
            quick: skip folders in which only a change in the same clock tick as our own write can be hidden.
            renew: rebuild an index with the terms of another analysis. Only opening does so: otherwise two programs
                of different versions would take turns at it.
            progress: called now and then with (files read, files to read).
            wait_seconds: how long to wait for the write lock; None: as configured.

        Raises:
            StorageError: the terms of the index are of another analysis, and (with ``renew``) of a later version.
        """
        if self.read_only:
            return SyncReport()
        connection, only_folders = self.connection, folders
        with schema.translated(self.layout.database):
            stale = self._is_stale(connection, renew=renew)
            leftovers = self.layout.unfinished.is_dir() and any(self.layout.unfinished.iterdir())
            if only_folders is None and not stale:
                folders = changed_folders(connection, self.layout, full=full, racy=not quick)
            # Without a redo record, leftovers are of a write in progress if the lock is held.
            if not (folders or paths or stale) and not (
                leftovers and (self.layout.is_interrupted() or self._is_lock_free(connection))
            ):
                return SyncReport()
            with self._index_transaction(connection, wait_seconds):
                finished = local.finish_writes(self.layout) if leftovers else []
                if only_folders is None or finished:
                    # Another process may have indexed its own write meanwhile.
                    changed = changed_folders(connection, self.layout, full=full, racy=not quick)
                    folders = sorted({*(only_folders or ()), *changed, *finished}, reverse=True)
                stale = stale and self._is_stale(connection, renew=renew)
                if stale or local.needs_refill(connection, self.layout):
                    report = self._reindex(connection, progress)
                else:
                    report = self._sync_locked(connection, self._rows.get(), folders or [], progress, paths)
        if report:
            _logger.info(
                "sync: %d added, %d changed, %d removed, %d unreadable",
                len(report.added), len(report.changed), len(report.removed), len(report.unreadable),
            )  # fmt: skip
        return report

    def _is_lock_free(self, connection: sqlite3.Connection) -> bool:
        """Return whether no other process holds the write lock."""
        self.refuse_in_batch("the index cannot be synced or rebuilt")
        try:
            self._mark.begin(connection, 0.0)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        schema.roll_back(connection)
        self._mark.end(connection)
        return True

    @contextlib.contextmanager
    def _index_transaction(
        self, connection: sqlite3.Connection, wait_seconds: float | None = None
    ) -> Iterator[None]:
        """Take the write lock for changes to the index only."""
        self.refuse_in_batch("the index cannot be synced or rebuilt")
        try:
            wait = self.config.store.lock_wait_seconds if wait_seconds is None else wait_seconds
            self._mark.begin(connection, wait)
            yield
            in_turn(connection, "COMMIT", self.config.store.lock_wait_seconds)
        except BaseException:
            schema.roll_back(connection)
            self._rows.get().forget()
            raise
        finally:
            self._mark.end(connection)

    def _sync_locked(
        self,
        connection: sqlite3.Connection,
        rows: LocalRowWriter,
        folders: list[str],
        progress: Progress | None,
        paths: Sequence[str] = (),
    ) -> SyncReport:
        report = local.sync_folders(
            connection,
            self.layout,
            rows,
            folders,
            self.config,
            progress=progress,
            paths=paths,
            tidy=not self.read_only,
        )
        self._recorded_times.update(report.folder_times)
        return report

    def _is_stale(self, connection: sqlite3.Connection, *, renew: bool) -> bool:
        """Return whether the index must be rebuilt for this program's analysis of words."""
        recorded = self._recorded_analysis = schema.analysis_of(connection, self._analysis)
        if recorded == self._analysis:
            return False
        if not renew:
            raise other_analysis(str(self.layout.database), recorded, self._analysis)
        if is_later_analysis(recorded, self._analysis):
            raise other_analysis(str(self.layout.database), recorded, self._analysis, schema.UPGRADE)
        return True

    def _reindex(self, connection: sqlite3.Connection, progress: Progress | None) -> SyncReport:
        """Empty the index and refill it from the files, inside the caller's transaction."""
        self._recorded_analysis = self._analysis
        with local.emptied(connection, self._analysis):
            return self._sync_locked(connection, self._rows.get(), self.layout.folders(), progress)


#: Folder times advance in ticks of a few milliseconds: a recent time may hide a second change in the same tick.
RACY_NS = 20_000_000
_LAST = 2**63 - 1  # above the number of any chunk


def changed_folders(
    connection: sqlite3.Connection,
    layout: Layout,
    *,
    full: bool = False,
    racy: bool = True,
    copied: bool = True,
) -> list[str]:
    """Return the folders that may contain unindexed changes, newest first.

    Args:
        full: return every folder.
        racy: also return folders whose time was too recent, when it was recorded, to rule out a later change.
        copied: also return folders whose time was set explicitly, as by a copy or an unpacked archive: the files of
            the index and of the folder may be of different moments.
    """
    known = {
        row[0]: (row[1], row[2]) for row in connection.execute("SELECT path, mtime_ns, seen_ns FROM folders")
    }
    changed = [path for path in known if not layout.absolute(path).is_dir()]
    for path in layout.folders():
        try:
            stat = layout.absolute(path).stat()
        except FileNotFoundError:
            continue
        mtime, seen = known.get(path, (None, 0))
        # A time that was recent when it was recorded may hide a later change in the same tick of the clock. The
        # time of the last change of the folder's own entry (on Windows: its creation time) cannot be set.
        if (
            full
            or mtime != stat.st_mtime_ns
            or (racy and seen - mtime < RACY_NS)
            or (copied and stat.st_ctime_ns > max(seen, mtime + RACY_NS))
        ):
            changed.append(path)
    return sorted(changed, reverse=True)


def edited_in_place(
    connection: sqlite3.Connection, layout: Layout, *, before: int | None
) -> tuple[list[str], int | None]:
    """Return the files of some chunks that differ from the index, and where to continue.

    Args:
        before: check chunks with a lower number than this, the latest first; None: start at the last one.

    Returns:
        The paths, and ``before`` of the next call: None after the first chunk of all.
    """
    rows = connection.execute(
        "SELECT path, size, mtime_ns, inode, doc FROM chunks WHERE doc < ? ORDER BY doc DESC LIMIT ?",
        (_LAST if before is None else before, _FILES_PER_CHECK),
    ).fetchall()
    edited = []
    for path, size, mtime_ns, inode, _ in rows:
        try:
            stat = os.stat(layout.place(path))
        except OSError:  # moved or removed, which changes the time of its folder
            continue
        if (stat.st_size, stat.st_mtime_ns, stat.st_ino) != (size, mtime_ns, inode):
            edited.append(path)
    return edited, rows[-1][-1] if len(rows) == _FILES_PER_CHECK else None
