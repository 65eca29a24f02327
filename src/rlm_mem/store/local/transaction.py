"""The write transaction of the local store: files and index rows that become visible together or not at all.

Order at commit: sync the new files, move, keep former versions and rename, sync the folders, add to the audit log,
commit the index. A crash at any point leaves either the old state or complete files that the next open indexes
(docs/spec/store-layout.md, Writing).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from rlm_mem.chunk import Chunk, decode_chunk, encode_chunk, new_change_id
from rlm_mem.config import StoreConfig
from rlm_mem.errors import ConflictError, CorruptStore, InvalidChunk, StorageError
from rlm_mem.lazy import logger
from rlm_mem.store.core import files
from rlm_mem.store.core.changes import ChangeNotes, name_namespaces
from rlm_mem.store.core.preencoding import WAIT
from rlm_mem.store.core.records import ACTIVE, ARCHIVED, ChunkRow, index_key
from rlm_mem.store.local import redo
from rlm_mem.store.local.audit import EventLog
from rlm_mem.store.local.connections import in_turn
from rlm_mem.store.local.folder import REDO_SUFFIX, Layout
from rlm_mem.store.local.queries import find_row, is_alike_taken, json_list
from rlm_mem.store.local.rows import LocalRowWriter
from rlm_mem.store.local.schema import roll_back, sqlite_error

_logger = logger("rlm_mem.store")


_SAME_FOLDER = "UPDATE folders SET mtime_ns = ?, seen_ns = ? WHERE path = ? AND mtime_ns = ?"
_NEW_FOLDER = "INSERT OR REPLACE INTO folders(mtime_ns, seen_ns, path) VALUES (?, ?, ?)"


class _Publish(Struct, gc=False):
    temp: str
    target: str
    version: Path | None  # where the file now at the target is kept first


class Transaction:
    """A `WriteTransaction`, documented there, which also writes files of the brain; it collects under the write lock.

    Attributes:
        files: files written or removed, mapped to the path of their new content (None: removed).

    Args:
        layout: the paths of the store.
        rows: writer of index rows, on a connection inside BEGIN IMMEDIATE.
    """

    def __init__(self, layout: Layout, rows: LocalRowWriter, log: EventLog, settings: StoreConfig) -> None:
        self.rows = rows
        self.events: list[dict[str, Any]] = []
        self.change = ChangeNotes(new_change_id())
        self._layout = layout
        self._log = log
        self._durable = settings.durability == "full"
        self._keep_versions = settings.keep_versions
        self._wait_seconds = settings.lock_wait_seconds
        self._index = files.signature(layout.database)
        self._pending: dict[str, _Publish] = {}
        self._chunks: dict[str, Chunk] = {}
        self._free: set[str] = set()  # ids that were looked up and are not in the index
        self.files: dict[Path, Path | None] = {}
        self._appended: dict[Path, bytes] = {}
        self._moves: list[tuple[Path, Path]] = []
        self._deleted: list[Path] = []
        self._emptied: list[Path] = []
        self._undo: list[Callable[[], None]] = []
        self._change_record: Path | None = None
        self._record: Path | None = None
        self._record_temp: list[str] = []  # the redo record before it is renamed into place
        self._folders: dict[str, int] = {}
        self.recorded_folders: dict[str, int] = {}

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection of the transaction, after all queued rows were written."""
        self.rows.flush()
        return self.rows.connection

    # --- collecting ------------------------------------------------------------------------------------

    def pending(self, chunk_id: str) -> Chunk | None:
        """Return a chunk written or moved earlier in this transaction, whose file is not in place yet."""
        return self._chunks.get(chunk_id)

    def replaced(self, chunk_id: str) -> tuple[int, Path] | None:
        """Return revision and present file of the version that the commit will keep of a changed chunk, or None."""
        item = self._pending.get(chunk_id)
        if item is None or item.version is None:
            return None
        sources = {target: source for source, target in self._moves}
        here = sources.get(item.version, Path(item.target))
        return int(item.version.stem), sources.get(here, here)

    def put(self, chunk: Chunk, *, status: int = ACTIVE, keep_version: bool = True) -> None:
        """Write a new or changed chunk; its file appears at commit."""
        row = None if chunk.id in self._free else find_row(self.connection, chunk.id)
        self._free.discard(chunk.id)
        if row is None and self._layout.folds_case and is_alike_taken(self.connection, chunk.id):
            raise ConflictError(
                f"the id {chunk.id} differs from that of another chunk only in case, and this file system is "
                "case-insensitive",
                hint="export the chunk and import it here, which gives it another id",
            )
        path = row.path if row and row.status == status else self._layout.path_of(chunk, status)
        temp = files.write_temp(self._layout.unfinished, chunk.id, encode_chunk(chunk))
        written = files.signature(temp)
        if written is None:
            raise StorageError(
                f"{temp} disappeared while it was written", hint="nothing was stored; try again"
            )
        former = row
        if row is not None and not self._has_same_segments(row, chunk):
            former = structs.replace(row, content_hash="")
        try:
            self.rows.put(chunk, path, written, status, former=former)
        except sqlite3.Error as error:
            files.remove(temp)
            raise files.with_unchanged_note(sqlite_error(error, chunk.id)) from error
        earlier = self._pending.pop(chunk.id, None)
        version = None
        if earlier:
            files.remove(earlier.temp)
            version = earlier.version
        elif row and keep_version and self._keep_versions:
            version = self._layout.versions(chunk.id) / f"{row.revision}.json"
        if row and row.path != path and not earlier:
            self._replace_file(self._layout.absolute(row.path), version)
        self._pending[chunk.id] = _Publish(temp, self._layout.place(path), version)
        self._chunks[chunk.id] = chunk

    def _has_same_segments(self, row: ChunkRow, chunk: Chunk) -> bool:
        if row.content_hash != chunk.metadata.content_hash:
            return False
        former = self._chunks.get(chunk.id)
        if former is None:
            path = self._layout.absolute(row.path)
            if files.signature(path) != row.signature:  # edited by hand: the indexed text is unknown
                return False
            try:
                former = decode_chunk(path.read_bytes())
            except (OSError, InvalidChunk):
                return False
        return index_key(former) == index_key(chunk)

    def expect(self, chunks: Sequence[Chunk]) -> set[str]:
        """Look up in two queries which ids and conversations of new chunks are not in the index.

        Returns:
            The conversations of the new chunks that have no chunk in the index yet.
        """
        ids = [chunk.id for chunk in chunks]
        self._free.update(ids)
        self._free.difference_update(
            chunk_id
            for (chunk_id,) in self.connection.execute(
                "SELECT id FROM chunks WHERE id IN (SELECT value FROM json_each(?))", (json_list(ids),)
            )
        )
        conversations = {
            conversation for chunk in chunks if (conversation := chunk.metadata.conversation_id) is not None
        }
        known = self.connection.execute(
            "SELECT c.id FROM namespaces n CROSS JOIN json_each(?) j CROSS JOIN conversations c"
            " WHERE n.name IN (SELECT value FROM json_each(?)) AND c.ns = n.ns AND c.id = j.value",
            (json_list(conversations), json_list({chunk.namespace for chunk in chunks})),
        )
        return conversations.difference(conversation for (conversation,) in known)

    def is_free(self, chunk: Chunk) -> bool:
        """Return whether no chunk in the index has this chunk's id, and no file is named after it."""
        if chunk.id not in self._free and find_row(self.connection, chunk.id) is not None:
            return False
        if self._layout.folds_case and is_alike_taken(self.connection, chunk.id):
            return False
        self._free.add(chunk.id)
        paths = (self._layout.path_of(chunk, status) for status in (ACTIVE, ARCHIVED))
        return not any(os.access(self._layout.place(path), os.F_OK) for path in paths)

    def keep(self, chunk: Chunk) -> None:
        target = self._layout.versions(chunk.id) / f"{chunk.revision}.json"
        temp = files.write_temp(self._layout.unfinished, chunk.id, encode_chunk(chunk))
        name = f"{chunk.id}@{chunk.revision}"  # no chunk id contains this sign
        earlier = self._pending.pop(name, None)
        if earlier:
            files.remove(earlier.temp)
        self._pending[name] = _Publish(temp, str(target), None)

    def move(self, chunk: Chunk, row: ChunkRow, status: int) -> None:
        """Archive or restore a chunk unchanged: its file is moved, not rewritten."""
        path = self._layout.path_of(chunk, status)
        # It may have been edited in the archive, where chunks are not analysed.
        former = structs.replace(row, content_hash="") if status == ACTIVE else row
        self.rows.put(chunk, path, row.signature, status, former=former)
        earlier = self._pending.get(chunk.id)
        if earlier:
            here = self._layout.absolute(row.path)
            if here.exists() and all(source != here for source, _ in self._moves):
                self._replace_file(here, earlier.version)
            earlier.target = self._layout.place(path)
        else:
            self._moves.append((self._layout.absolute(row.path), self._layout.absolute(path)))
        self._chunks[chunk.id] = chunk  # for readers in this transaction, since its file is not in place yet

    def erase(self, row: ChunkRow) -> None:
        self.rows.drop(row)
        earlier = self._pending.pop(row.id, None)
        self._chunks.pop(row.id, None)
        kept = [self._pending.pop(name) for name in list(self._pending) if name.startswith(f"{row.id}@")]
        for item in (*([earlier] if earlier else ()), *kept):
            files.remove(item.temp)
        path = self._layout.absolute(row.path)
        if path.exists():
            self._drop_file(path)
        self.erase_versions(row.id)

    def erase_versions(self, chunk_id: str) -> None:
        """Delete the former versions of a chunk permanently, and its files that a repair replaced."""
        for damaged in (
            self._layout.damaged.glob(f"{chunk_id}.json.*") if self._layout.damaged.is_dir() else ()
        ):
            self._drop_file(damaged, "damaged")  # a name that is not put back in place of the chunk's file
        versions = self._layout.versions(chunk_id)
        if versions.is_dir():
            for version in versions.iterdir():
                self._drop_file(version)
            self._emptied.append(versions)

    def _replace_file(self, path: Path, version: Path | None) -> None:
        """Keep the file of a former version, which is not at the target, from where it would be kept; or drop it."""
        if version is None:
            self._drop_file(path)
        else:
            self._moves.append((path, version))

    def _drop_file(self, path: Path, name: str = "") -> None:
        # Moved aside before the commit and unlinked after it, so that a crash in between differs from a finished
        # delete.
        self._moves.append(
            (path, self._layout.unfinished / f"{name or path.name}.{os.urandom(4).hex()}.gone")
        )
        self._deleted.append(self._moves[-1][1])

    # --- brain files -----------------------------------------------------------------------------------

    def appended(self, path: Path) -> bytes:
        """Return the bytes appended to a file that exists already and is not in ``files``."""
        return self._appended.get(path, b"")

    def write_file(self, path: Path, data: bytes) -> None:
        """Write a whole file."""
        temp = Path(files.write_temp(self._layout.unfinished, "file", data))
        self._forget_file(path)
        self.files[path] = temp

    def write_change_record(self, path: Path, data: bytes) -> None:
        """Write the change record, a JSON object, which becomes the redo record of this transaction."""
        self.write_file(path, data)
        if not path.exists():
            self._change_record = path

    def remove_file(self, path: Path) -> None:
        """Remove a file."""
        self._forget_file(path)
        self.files[path] = None

    def append_file(self, path: Path, data: bytes) -> None:
        """Append to a file."""
        if path not in self.files and path.exists():
            self._appended[path] = self.appended(path) + data
            return
        temp = self.files.get(path)
        self.write_file(path, (temp.read_bytes() if temp is not None else b"") + data)

    def _forget_file(self, path: Path) -> None:
        temp = self.files.pop(path, None)
        if temp is not None:
            files.remove(temp)
        if path == self._change_record:
            self._change_record = None
        self._appended.pop(path, None)

    # --- ending ----------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Make everything visible and durable; on any failure, restore the former state."""
        publishes = list(self._pending.values())
        for path, temp in self.files.items():
            if temp is None:
                if path.exists():
                    self._drop_file(path)
            elif path != self._change_record:
                publishes.append(_Publish(str(temp), str(path), None))
        try:
            self._carry_out(publishes)
            self._check_index()
            in_turn(self.connection, "COMMIT", self._wait_seconds)
        except sqlite3.Error as error:
            self.rollback()
            raise files.with_unchanged_note(sqlite_error(error, "the index")) from error
        except OSError as error:
            self.rollback()
            if isinstance(error, FileNotFoundError):
                self._check_index()  # the lock of another index does not protect the files of this transaction
            files.translate(error, f"the change of {self._layout.base}")
        except BaseException:
            self.rollback()
            raise
        self._undo.clear()
        self.files.clear()
        for path in self._deleted:
            with _logged_failure("removal after a write"):
                files.remove(path)
        for emptied in self._emptied:
            with contextlib.suppress(OSError):  # not empty after all, or already removed: either is fine
                emptied.rmdir()
        for item in publishes:
            if item.version:
                self._trim_versions(item.version.parent)

    def _carry_out(self, publishes: list[_Publish]) -> None:
        """Write everything but the commit of the index: the redo record, then the files, then the audit log."""
        self.rows.flush()
        # A crash could leave some of several files; a single file is there completely or not at all.
        several = len(publishes) + len(self._moves) > 1 or bool(self._appended or self._change_record)
        record = self._redo_record(publishes, several=several)
        unsynced = [*map(attrgetter("temp"), publishes), *(self._record_temp if several else ())]
        if self._durable and unsynced:
            WAIT.get()(partial(files.sync_files, unsynced))
        self._note_folder_times(publishes)
        for unnamed in self._record_temp:
            self._record = self._layout.unfinished / f"{os.urandom(8).hex()}{REDO_SUFFIX}"
            files.publish(unnamed, self._record)
            if self._durable and several:
                files.sync_folder(self._record.parent)
        self._record_temp.clear()
        # Moves first: a chunk that is restored and then changed in one batch must end as changed.
        for source, target in self._moves:
            self._move(source, target)
        for item in publishes:
            self._publish(item)
        for one in record.appendings:
            path = self._layout.absolute(one.target)
            self._undo.append(partial(os.truncate, path, one.size))
            files.append_at(path, one.data, one.size)
        if self._durable:
            for folder in self._folders:
                files.sync_folder(folder)
        if record.audit is not None:
            log, lines = self._layout.place(record.audit.target), record.audit.data
            self._log.write(log, lines)
            self._undo.append(partial(self._log.withdraw, log, lines))
        if self._record is not None:
            if self._change_record is not None:
                self._undo.append(partial(files.remove, self._change_record))
            redo.forget(self._layout, self._record, record, durable=self._durable)
            self._record = None
        self._record_folder_times()

    def rollback(self) -> None:
        """Undo every file operation done so far, then the index rows."""
        if self._record is not None:  # first: a process that finds it would finish the write
            with _logged_failure("undo of a failed write"):
                self._record = redo.abandon(self._record)
        for step in reversed(self._undo):
            with _logged_failure("undo of a failed write"):
                step()
        self._undo.clear()
        for temp in (
            *(item.temp for item in self._pending.values()),
            *self.files.values(),
            *self._record_temp,
            self._record,
        ):
            if temp is not None:
                with _logged_failure("undo of a failed write"):
                    files.remove(temp)
        self._record = None
        self.rows.forget()
        roll_back(self.connection)  # a failed statement may have done it already

    def _check_index(self) -> None:
        """Refuse to commit to an index that another program replaced or truncated during this transaction.

        Without this check, SQLite would fill the missing part with zeros.
        """
        before, now = self._index, files.signature(self._layout.database)
        if before is None or now is None or now.inode != before.inode or now.size < before.size:
            raise CorruptStore(
                f"{self._layout.database} was replaced or cut short by another program: nothing was changed",
                hint="repeat the change",
            )

    def _redo_record(self, publishes: list[_Publish], *, several: bool) -> redo.RedoRecord:
        """Write the redo record to a temporary file. For a single file it only serves the audit log."""
        if not several and not self.events:
            return redo.RedoRecord()
        change = self._change_record
        temp = None if change is None else self.files[change]
        self._moves = [(source, redo.recorded_as_deleted(target)) for source, target in self._moves]
        self._deleted = [redo.recorded_as_deleted(path) for path in self._deleted]
        name = self._layout.relative
        record = redo.RedoRecord([redo.Naming(name(source), name(target)) for source, target in self._moves])
        for one in publishes:
            kept = name(one.version) if one.version else None
            record.namings.append(redo.Naming(name(one.temp), name(one.target), kept))
        for path, data in self._appended.items():
            size = path.stat().st_size if path.exists() else 0
            record.appendings.append(redo.Appending(name(path), size, data))
        if self.events:
            if len(self.events) > 1:
                name_namespaces(self.events, self.change.id)
            for event in self.events:
                if event.get("change") == self.change.id:
                    event["clone"] = self._layout.clone
            log, size, lines = self._log.prepared(self.events)
            record.audit = redo.Appending(name(log), size, lines)
        recorded = None
        if change is not None and temp is not None:
            record.change_record = name(change)
            recorded = temp.read_bytes()
            files.remove(temp)
        self._record_temp = [redo.write(self._layout, record, recorded)]
        return record

    def _publish(self, item: _Publish) -> None:
        kept: Path | None = None

        def undo() -> None:
            published = not os.path.exists(item.temp)  # noqa: PTH110 - as below
            if kept is None:
                if published:
                    files.remove(item.target)
            elif published:
                os.replace(kept, item.target)
            else:
                files.remove(kept)

        self._undo.append(undo)
        if os.path.exists(item.target):  # noqa: PTH110 - a path object takes longer
            # Kept under a second name until the commit for an undo, even if no version is wanted.
            name = f"{os.path.basename(item.target)}.{os.urandom(4).hex()}.undo"  # noqa: PTH119
            kept = item.version or self._layout.unfinished / name
            files.link_or_copy(item.target, kept)
        files.publish(item.temp, item.target)
        if kept is not None and kept is not item.version:
            self._deleted.append(kept)

    def _move(self, source: Path, target: Path) -> None:
        files.publish(source, target)
        self._undo.append(lambda: os.replace(target, source))

    # A folder's time is recorded only if it matched the recorded time before this write: otherwise the next open
    # would miss another program's change.

    def _note_folder_times(self, publishes: list[_Publish]) -> None:
        self._folders = {}
        touched = set(map(os.path.dirname, map(attrgetter("target"), publishes)))
        touched.update(map(str, map(attrgetter("parent"), chain.from_iterable(self._moves))))
        touched.discard(str(self._layout.unfinished))
        for folder in touched:
            try:
                self._folders[folder] = os.stat(folder).st_mtime_ns
            except FileNotFoundError:
                self._folders[folder] = 0

    def _record_folder_times(self) -> None:
        for folder, before in self._folders.items():
            relative = self._layout.relative(folder)
            if not (relative == "archive" or relative.startswith("chunks/")):
                continue
            seen = time.time_ns()  # first: a change between the two lines must look racy
            now = os.stat(folder).st_mtime_ns
            values = (now, seen, relative)
            if before:
                recorded = self.connection.execute(_SAME_FOLDER, (*values, before)).rowcount > 0
            else:
                recorded = True
                self.connection.execute(_NEW_FOLDER, values)
            if recorded:
                self.recorded_folders[relative] = now

    def _trim_versions(self, folder: Path) -> None:
        try:
            kept = sorted(
                folder.glob("*.json"), key=lambda path: int(path.stem) if path.stem.isdecimal() else 0
            )
            for path in kept[: max(0, len(kept) - self._keep_versions)]:
                files.remove(path)
        except OSError as error:  # too many versions do no harm; the write itself is complete
            _logger.warning("former versions in %s: %s", folder, error)


@contextlib.contextmanager
def _logged_failure(doing: str) -> Iterator[None]:
    """Log an error of the operating system instead of raising it.

    The next open removes what is left, and indexes the files as they are; nothing acknowledged is affected.
    """
    try:
        yield
    except OSError as error:
        _logger.error("%s: %s", doing, error)
