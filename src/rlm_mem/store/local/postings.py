"""The postings index of one namespace: a snapshot in files plus the changes since, up to date at every search.

`PostingsIndex.view` compares the number of the latest change with the one it has read: one short query if no
process has written anything. Changed chunks are decoded from the segment blobs into the delta and masked in the
snapshot; all statistics are exact sums of both, so ranks do not depend on the history of writes. When the delta has
grown, a new snapshot is built off the write path, by the process that gets the lock file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from rlm_mem.errors import CorruptStore
from rlm_mem.store import local
from rlm_mem.store.core import files
from rlm_mem.store.core.arrays import Bools
from rlm_mem.store.core.lookup import CandidateSource
from rlm_mem.store.local.connections import DamagedSnapshot
from rlm_mem.store.local.local_lookup import LocalSource
from rlm_mem.store.local.queries import (
    CurrentSnapshot,
    merge_is_due,
    most_pending,
    numbered_changes,
    publish_snapshot,
    read_state,
    snapshot_folder,
)
from rlm_mem.store.local.snapshot import (
    ChunkPostings,
    Snapshot,
    View,
    empty_snapshot,
    load_rows,
    open_snapshot,
    postings_of,
    save_snapshot,
)

_Written = Callable[[int], None]
"""Called with the number of chunks written so far."""

#: If more chunks than this, and more than a quarter of all, have changed, everything is read again.
_FULL_RELOAD = 20_000


class PostingsIndex:
    """The postings of one namespace in one process; thread-safe.

    Args:
        directory: the folder of all postings (`index/postings`).
        ns: number of the namespace.
        connect: opens a connection to the index for the thread that builds snapshots in the background. With None,
            no file or row is written implicitly: a missing snapshot is built in memory.
    """

    def __init__(
        self, directory: Path, ns: int, connect: Callable[[], sqlite3.Connection] | None = None
    ) -> None:
        self._directory = Path(directory)
        self._ns = ns
        self._connect = connect
        self._lock = threading.RLock()
        self._view: View | None = None
        self._names: dict[int, str] = {}
        self._outdated = False  # this process has published a newer snapshot
        self._worker: threading.Thread | None = None
        self._stop = threading.Event()

    def view(self, connection: sqlite3.Connection) -> View:
        """Return the postings as `connection` sees the store now, including its own uncommitted writes."""
        with self._lock:
            first, seq = numbered_changes(connection)
            view = self._view
            if view is not None and view.seq == seq and not self._outdated:
                return view
            uncommitted, fresh = connection.in_transaction, None
            if view is not None and not self._outdated and first <= view.seq <= seq:  # else it was replaced
                with contextlib.suppress(_StateChanged):
                    fresh = self._advance_from(connection, view, seq)
            if fresh is None:
                self._names = {}
            view = fresh or self._load(connection, seq)
            if uncommitted:
                return view  # not cached: it may include writes that are rolled back
            self._view, self._outdated = view, False
            if view.waiting > most_pending(view.snapshot.size):
                self._merge_in_background(view)
            return view

    def source(self, connection: sqlite3.Connection) -> CandidateSource:
        """Return the candidate source of one search, as `connection` sees the store now; not to be reused."""
        return LocalSource(connection, self._ns, self.view(connection), self._names)

    def maintain(self, connection: sqlite3.Connection) -> bool:
        """Build a new snapshot if one is due, at a checkpoint or close; return whether one was built.

        Must not be called inside a transaction. Costs well under a millisecond when nothing is due.
        """
        worker = self._worker
        if worker is not None:
            worker.join()
        if self._connect is None or not merge_is_due(connection, self._directory, self._ns):
            return False
        return self.merge(connection)

    def pack(self, connection: sqlite3.Connection) -> bool:
        """Build a new snapshot of everything now, unless there is none and few chunks are read as quickly without."""
        few = read_state(connection, self._ns) is None and not merge_is_due(
            connection, self._directory, self._ns
        )
        return not few and self.merge(connection)

    def merge(self, connection: sqlite3.Connection) -> bool:
        """Build a new snapshot of everything now; False if none is needed, or another process is building one."""
        view = self.view(connection)
        if view.generation is not None and not view.waiting:
            return False
        with folder_lock(self._directory / str(self._ns), wait=False) as acquired:
            if not acquired:
                return False
            try:
                return self._write(connection, view)
            except DamagedSnapshot:  # the snapshot to merge with is missing or damaged
                self._outdated = True
                return self._write_from_rows(connection, numbered_changes(connection)[1])

    def close(self) -> None:
        """Stop building a snapshot in the background; nothing is lost."""
        self._stop.set()
        worker = self._worker
        if worker is not None:
            worker.join()
        with self._lock:
            self._view = None

    # -- reading ---------------------------------------------------------------------------------------------------

    def _load(self, connection: sqlite3.Connection, seq: int) -> View:
        """Build the view from the current snapshot, or from a new one if that is missing or damaged."""
        damaged: CurrentSnapshot | None = None
        while True:
            state = read_state(connection, self._ns)
            if state is None and not merge_is_due(connection, self._directory, self._ns):  # few chunks
                with contextlib.suppress(_StateChanged):  # another process has just published the first one
                    return self._advance_from(
                        connection, _view_of(empty_snapshot(), 0, None), seq, every=True
                    )
                continue
            if state is None or state == damaged:  # it was not merely replaced by a newer one
                return self._load_rebuilt(connection, seq, state)
            try:
                view = self._open(state)
            except DamagedSnapshot:
                damaged = state
                continue
            try:
                return self._advance_from(connection, view, seq)
            except _StateChanged:
                damaged = None

    def _load_rebuilt(
        self, connection: sqlite3.Connection, seq: int, damaged: CurrentSnapshot | None
    ) -> View:
        if (
            self._connect is not None
            and not connection.in_transaction
            and self._replace_damaged(connection, seq, damaged)
        ):
            # Read without the lock, since its holder must not take it again. A new snapshot that is damaged before
            # it is first read is not built a second time.
            state = read_state(connection, self._ns)
            with contextlib.suppress(DamagedSnapshot, _StateChanged):
                if state is not None:
                    return self._advance_from(connection, self._open(state), numbered_changes(connection)[1])
        snapshot = local.make_snapshot(empty_snapshot(), None, load_rows(connection, self._ns), seq)
        state = read_state(connection, self._ns)
        return _view_of(snapshot, seq, None if state is None else state.generation)

    def _replace_damaged(
        self, connection: sqlite3.Connection, seq: int, damaged: CurrentSnapshot | None
    ) -> bool:
        """Replace a damaged snapshot, unless another process has done so; False if none can be written."""
        try:
            with folder_lock(self._directory / str(self._ns), wait=True):
                if read_state(connection, self._ns) == damaged:  # no other process has replaced it meanwhile
                    self._write_from_rows(connection, seq)
        except (OSError, DamagedSnapshot):  # a full or write-protected disk: a search must still answer
            return False
        return True

    def _open(self, state: CurrentSnapshot) -> View:
        snapshot = open_snapshot(snapshot_folder(self._directory, self._ns, state.generation))
        if snapshot.seq != state.seq:
            raise DamagedSnapshot(f"snapshot {state.generation} ends at {snapshot.seq}, not at {state.seq}")
        return _view_of(snapshot, state.seq, state.generation)

    def _advance_from(
        self, connection: sqlite3.Connection, view: View, seq: int, *, every: bool = False
    ) -> View:
        """Return `view` brought up to `seq`; raises `_StateChanged` if another snapshot became current meanwhile."""
        if every:
            docs = None
        else:
            rows = connection.execute(
                "SELECT DISTINCT doc FROM changes WHERE ns = ? AND seq > ?", (self._ns, view.seq)
            ).fetchall()
            docs = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        # Changes are dropped together with the switch to a snapshot that covers them. If the pointer is unchanged
        # after reading them, none was missing.
        state = read_state(connection, self._ns)
        if (None if state is None else state.generation) != view.generation:
            raise _StateChanged
        if docs is not None and not len(docs):
            return View(view.snapshot, view.delta, view.masked, seq, view.generation)
        if docs is not None and len(docs) > max(_FULL_RELOAD, view.snapshot.size // 4):
            return self._load_rebuilt(connection, seq, state)
        delta, masked = view.delta, view.masked
        if docs is not None:
            delta = delta.without(docs)
            ordinals = view.snapshot.ordinals_of(docs)
            masked = masked.copy()
            masked[ordinals[ordinals >= 0]] = True
        for part in load_rows(connection, self._ns, docs):
            delta = delta.plus(part)
        return View(view.snapshot, delta, masked, seq, view.generation)

    # -- writing ---------------------------------------------------------------------------------------------------

    def _merge_in_background(self, view: View) -> None:
        if self._connect is None or (self._worker is not None and self._worker.is_alive()):
            return
        self._worker = threading.Thread(
            target=self._merge_in_thread, args=(view, self._connect), name=f"postings-{self._ns}", daemon=True
        )
        self._worker.start()

    def _merge_in_thread(self, view: View, connect: Callable[[], sqlite3.Connection]) -> None:
        # A failure here (disk full, folder deleted) only costs speed: the view is correct without the new snapshot,
        # and maintain() raises the same error.
        with contextlib.suppress(OSError, sqlite3.Error, CorruptStore, DamagedSnapshot, _Stopped):
            connection = connect()
            try:
                with folder_lock(self._directory / str(self._ns), wait=False) as acquired:
                    if acquired:
                        self._write(connection, view, self._check_stop)
            finally:
                connection.close()

    def _check_stop(self, _: int) -> None:
        if self._stop.is_set():
            raise _Stopped

    def _write(self, connection: sqlite3.Connection, view: View, progress: _Written | None = None) -> bool:
        """Build and publish the snapshot of `view`; the caller holds the folder lock."""
        if view.generation is None and not view.snapshot.size and view.delta.size > most_pending(0):
            return self._write_from_rows(connection, view.seq, progress)
        return self._publish(connection, view.snapshot, view.masked, [view.delta], view.seq, progress)

    def _write_from_rows(
        self, connection: sqlite3.Connection, seq: int, progress: _Written | None = None
    ) -> bool:
        rows = load_rows(connection, self._ns)
        return self._publish(connection, empty_snapshot(), None, rows, seq, progress)

    def _publish(
        self,
        connection: sqlite3.Connection,
        base: Snapshot,
        masked: Bools | None,
        parts: Iterable[ChunkPostings],
        seq: int,
        progress: _Written | None,
    ) -> bool:
        import shutil  # loads the libraries of archives, which reading does not need

        generation = os.urandom(8).hex()
        folder = snapshot_folder(self._directory, self._ns, generation)
        folder.mkdir(parents=True)
        try:
            save_snapshot(local.make_snapshot(base, masked, parts, seq, folder, progress), folder)
            done = publish_snapshot(connection, self._ns, CurrentSnapshot(generation, seq))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if not done:
            shutil.rmtree(folder, ignore_errors=True)
            return False
        self._outdated = True
        # Other processes keep older files open until their next search. If the system does not allow removing open
        # files, a later merge removes them.
        for other in folder.parent.iterdir():
            if other.is_dir() and other != folder:
                shutil.rmtree(other, ignore_errors=True)
        return True


@contextlib.contextmanager
def folder_lock(folder: Path, *, wait: bool) -> Iterator[bool]:
    """Take the lock file of a namespace's snapshot folder; yields whether it was acquired."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+b") as file:
        yield files.lock(file.fileno(), wait=wait)  # closing the file releases the lock


class _StateChanged(Exception):
    """Another snapshot became current while changes were being read."""


class _Stopped(Exception):
    """The index was closed while a snapshot was being built in the background."""


def _view_of(snapshot: Snapshot, seq: int, generation: str | None) -> View:
    return View(snapshot, postings_of([]), np.zeros(snapshot.size, np.bool_), seq, generation)
