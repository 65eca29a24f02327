"""The local backend: JSON files are the source of truth, SQLite and postings an index (docs/spec/store-layout.md)."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import DEFAULT_NAMESPACE, Chunk, decode_chunk, encode_chunk, is_chunk_id, parse_time
from rlm_mem.config import Config
from rlm_mem.errors import CorruptStore, InputError, InvalidChunk, StorageError, StoreReadOnly
from rlm_mem.lazy import logger
from rlm_mem.results import Progress
from rlm_mem.store import local
from rlm_mem.store.core import files
from rlm_mem.store.core.backend import Backend
from rlm_mem.store.core.changes import MAX_OFF, Rewriting, clock_fault
from rlm_mem.store.core.records import (
    ACTIVE,
    ANY_REVISION,
    ChunkRow,
    ReadBuffer,
    StoreStatus,
    SyncReport,
    Vacuumed,
    Version,
    add_reads,
    log_events,
    other_analysis,
)
from rlm_mem.store.local import schema
from rlm_mem.store.local.brain_folder import LocalBrainFiles
from rlm_mem.store.local.connections import healed, in_turn
from rlm_mem.store.local.folder import former_versions
from rlm_mem.store.local.local_index import LocalIndex
from rlm_mem.store.local.queries import LAST_CHANGE, find_row, find_rows, is_alike_taken
from rlm_mem.store.local.vacuum import vacuum_folder
from rlm_mem.telemetry import operation, waiting

if TYPE_CHECKING:
    from rlm_mem.store.core.backup_archive import BackupInfo
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.findings import Finding
    from rlm_mem.store.local.audit import EventLog
    from rlm_mem.store.local.transaction import Transaction

_logger = logger("rlm_mem.store")
_NEWEST_MEMORY = "the time at which the newest memory was written, whose clock may have been wrong"


class LocalBackend(LocalIndex, Backend):
    """`Backend` over files, index and locks of one store folder; the protocol documents the methods.

    One object may be used by several threads: each has its own connection, and SQLite's write lock serialises the
    writers of all threads and processes.

    Args:
        base: folder of the store; created if it is missing (unless read-only).
        read_only: never write, not even the index.
    """

    def __init__(self, base: Path, config: Config, *, read_only: bool = False) -> None:
        self._reads = ReadBuffer()
        self._clock_logged = False
        self._last_time = datetime.min.replace(tzinfo=UTC)
        super().__init__(base, config, read_only=read_only)

    @cached_property
    def _log(self) -> EventLog:
        return local.EventLog(self.layout.log)

    def close(self) -> None:
        if self._connections.closed:
            return
        self.refuse_in_batch("the store cannot be closed")
        if not self.read_only and self.layout.base.is_dir():
            self.flush_reads(wait=True)
            self._settle_folder_times()
            if self._recorded_times:
                self.postings.maintain(self.connection)
            self._settle_index()
        self._drop_connections()
        self._connections.close()

    def _settle_index(self) -> None:
        try:
            self._mark.settle(self.connection)
        except (OSError, sqlite3.Error, StorageError) as error:
            # The mark stays: at worst the index is rebuilt
            _logger.info("index not synced: %s", error)

    # --- writing ---------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self, namespace: str) -> Iterator[Transaction]:  # noqa: ARG002 - one lock for the store
        if self.read_only:
            raise StoreReadOnly(
                f"the store {self.layout.base} was opened read-only",
                hint="open it again for writing, once its folder can be written: a server has to be restarted",
            )
        outer = self._thread.transaction
        if outer is not None:
            yield outer
            return
        known = self._connections.generation
        try:
            with waiting("rlm_mem.store.lock.wait", backend="local"):
                self._begin()
            rows = self._rows.get()
            if self._rows.analysis not in ("", self._analysis):
                raise other_analysis(str(self.layout.database), self._rows.analysis, self._analysis)
            current = local.Transaction(self.layout, rows, self._log, self.config.store)
            reads = self._reads.take()
        except BaseException as error:  # whatever it is, as too many open files: the lock must not be held on
            self._roll_back()
            if isinstance(error, sqlite3.Error):
                raise self._error_after_rollback(error, known) from error
            if isinstance(error, OSError):
                files.translate(error, f"the change of {self.layout.base}")
            raise
        self._thread.transaction = current
        try:
            if reads:
                rows.touch(reads)
            with operation("write", backend="local"):
                yield current
                current.change.record_erasures()
                current.commit()
        except BaseException as error:
            current.rollback()
            self._reads.put_back(reads)
            self._thread.transaction = None
            if isinstance(error, sqlite3.Error | CorruptStore):
                explained = self._error_after_rollback(error, known)
                if explained is not error:
                    raise explained from error
            raise
        finally:
            self._thread.transaction = None
            self._mark.end(current.connection)
        self._recorded_times.update(current.recorded_folders)
        log_events(current.events)
        current.change.carry_out_erasures()

    def _roll_back(self) -> None:
        """Release the write lock, if the calling thread has it outside of a batch."""
        connection = self._connections.thread.connection
        if connection is not None:
            schema.roll_back(connection)
            self._mark.end(connection)

    def _error_after_rollback(self, error: sqlite3.Error | CorruptStore, known: int) -> StorageError:
        """Return the error to raise after a rollback; a damaged index is rebuilt first."""
        if self.heal(error, known):
            return CorruptStore(
                "the index was damaged and has been rebuilt: nothing was changed", hint="repeat the change"
            )
        failure = schema.sqlite_error(error, "the index") if isinstance(error, sqlite3.Error) else error
        return files.with_unchanged_note(failure)

    @healed
    def _begin(self) -> None:
        while True:
            connection = self._connections.get()
            self._mark.begin(connection, self.config.store.lock_wait_seconds)
            if self._connections.in_place and not self.layout.is_interrupted():
                return
            # While this thread waited, the index was replaced, or the holder of the lock was killed during a write.
            connection.execute("ROLLBACK")
            self._mark.end(connection)
            self.sync()

    def fold_reads(self) -> int:
        """Write access counts that are only in the index to the chunk files; return how many files were written."""
        self.flush_reads(wait=True)
        folded = 0
        with self.transaction("") as transaction:
            for chunk_id, count, when in transaction.connection.execute(
                "SELECT id, access_count, accessed_at FROM chunks WHERE access_unsaved = 1 AND status = 0"
            ).fetchall():
                row = find_row(transaction.connection, chunk_id)
                chunk = self.read(row) if row else None
                if chunk is not None:
                    chunk.metadata.access_count, chunk.metadata.accessed_at = count, when
                    transaction.put(chunk, keep_version=False)
                    folded += 1
        return folded

    # --- reading ---------------------------------------------------------------------------------------

    @healed
    def find(self, namespace: str, chunk_id: str) -> ChunkRow | None:
        return find_row(self._connections.get(), chunk_id, namespace)

    @healed
    def locate(self, namespace: str, chunk_id: str) -> ChunkRow | None:  # noqa: ARG002 - ids are the store's
        return find_row(self.connection, chunk_id)

    @healed
    def held_elsewhere(self, namespace: str, chunk_id: str) -> bool:
        """Return whether another chunk has this id; files are named by id, so ids are unique in the store."""
        connection = self._connections.get()
        if find_row(connection, chunk_id, namespace) is not None:
            return False
        return find_row(connection, chunk_id) is not None or (
            self.layout.folds_case and is_alike_taken(connection, chunk_id)
        )

    def chunks(
        self, namespace: str, chunk_ids: Sequence[str], *, status: int | None = ACTIVE
    ) -> dict[str, Chunk]:
        wanted = dict.fromkeys(chunk_ids)
        found: dict[str, Chunk] = {}
        missing, edited = list(wanted), list[str]()
        for _ in range(2):  # another process may move a file between the two reads: try twice
            rows = self._find_each(namespace, missing) if missing else {}
            missing = []
            for chunk_id, row in rows.items():
                if status not in (None, row.status):
                    continue
                chunk = self._read(row, edited)
                if chunk is None:
                    missing.append(chunk_id)
                elif chunk.namespace == namespace:  # otherwise its namespace was edited by hand
                    found[chunk_id] = chunk
        if edited:
            self._index_again(edited)
        return {chunk_id: found[chunk_id] for chunk_id in wanted if chunk_id in found}

    @healed
    def _find_each(self, namespace: str, chunk_ids: Sequence[str]) -> dict[str, ChunkRow]:
        return find_rows(self._connections.get(), chunk_ids, namespace)

    def read(self, row: ChunkRow) -> Chunk | None:
        edited: list[str] = []
        chunk = self._read(row, edited)
        if edited:
            self._index_again(edited)
        return chunk

    def _read(self, row: ChunkRow, edited: list[str]) -> Chunk | None:
        """As ``read``; appends the path of a file that differs from the index to ``edited``."""
        transaction = self._thread.transaction
        if transaction is not None:
            pending = transaction.pending(row.id)
            if pending is not None:
                return decode_chunk(encode_chunk(pending))
        try:
            data, signature = files.read_signed(self.layout.place(row.path))
            chunk = decode_chunk(data)
            if chunk.id != row.id:
                raise InvalidChunk(f"the file contains the chunk {chunk.id}")
        except FileNotFoundError:
            self._sync_folder_of(row.path)
            return None
        except (InvalidChunk, OSError) as error:
            if row.path not in self._logged_unreadable:
                self._logged_unreadable.add(row.path)
                _logger.error("unreadable chunk file %s: %s", row.path, error)
            return None
        if signature != row.signature:
            edited.append(row.path)
        add_reads(chunk, row.access_count, row.accessed_at, self._reads.of(row.id))
        return chunk

    def id_taken(self, chunk: Chunk) -> bool:
        """Return whether this chunk's id is taken in the index, or by a file that is not in the index."""
        transaction = self._thread.transaction
        assert transaction is not None
        return not transaction.is_free(chunk)

    def count_read(self, namespace: str, chunk_id: str, when: str) -> None:  # noqa: ARG002 - ids are the store's
        """Count one read in memory; counts are written to the index in batches, so a read never waits for a lock."""
        if self.read_only:
            return
        if self._reads.add(chunk_id, when):
            self.flush_reads(wait=False)

    @healed
    def flush_reads(self, *, wait: bool) -> None:
        """Write buffered read counts to the index; without ``wait`` they stay buffered while another process writes."""
        connection = self.connection
        if self.read_only or connection.in_transaction:
            return
        reads = self._reads.take()
        if not reads:
            return
        patience = min(self.config.store.lock_wait_seconds, 5.0) if wait else 0.0
        try:
            self._mark.begin(connection, patience)
            self._rows.get().touch(reads)
            in_turn(connection, "COMMIT", patience)
        except BaseException as error:
            self._reads.put_back(reads)
            self._roll_back()
            if not isinstance(error, sqlite3.Error | StorageError):
                raise
            # Counts are not urgent: they stay buffered until the next attempt
            _logger.debug("access counts not written yet: %s", error)
        else:
            self._mark.end(connection)

    @healed
    def rebuild(
        self,
        namespace: str,  # noqa: ARG002 - the index is of the whole store
        progress: Progress | None = None,
    ) -> SyncReport:
        """Rebuild the index from the files in one commit: readers see the old one until then."""
        self.flush_reads(wait=True)
        counts = local.unsaved_reads(self.connection, self.layout)
        connection = self.connection
        with schema.translated(self.layout.database), self._index_transaction(connection):
            report = self._reindex(connection, progress)
            self._rows.get().touch(counts)
        self.postings.maintain(self.connection)
        return report

    # --- search, history, audit ------------------------------------------------------------------------

    def former_versions(self, namespace: str, chunk_id: str, *, below: int) -> list[Version]:  # noqa: ARG002
        transaction = self._thread.transaction
        pending = None if transaction is None else transaction.replaced(chunk_id)
        return former_versions(self.layout, chunk_id, below=below, pending=pending)

    def append_events(self, events: Sequence[dict[str, Any]]) -> None:
        self._log.append(events)

    def read_events(
        self, *, namespace: str, since: str | None, op: str | None, chunk_id: str | None,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        if self._connections.closed:
            raise self._connections.was_closed()
        found = self._log.read(namespace=namespace, since=since, op=op, chunk_id=chunk_id)
        return found if limit is None else iter(deque(found, maxlen=limit))

    def latest_event(self, namespace: str, operations: frozenset[str]) -> dict[str, Any] | None:
        return self._log.latest(namespace, operations)

    def files(
        self, namespace: str, *, actor: str | None = None, clock: Callable[[], datetime] | None = None
    ) -> LocalBrainFiles:
        """Return the brain files of a namespace.

        Raises:
            NamespaceError: the file system ignores case, and the folder is that of another namespace.
            StoreClosed: the store was closed. StorageError: its folder was moved or deleted.
        """
        if self._connections.closed:
            raise self._connections.was_closed()
        self._connections.check_there()
        return LocalBrainFiles(
            self.layout.base,
            namespace,
            durable=self.config.store.durability == "full",
            read_only=self.read_only,
            actor=actor,
            clock=clock,
            begin=lambda: self.transaction(namespace),
            present=lambda: self._thread.transaction,
        )

    # --- occasional work ----------------------------------------------------------------------------------

    def checkpoint(self) -> dict[str, Any]:
        """Write access counts to the chunk files, write the views, and merge postings."""
        self.refuse_in_batch("the index cannot be brought up to date")
        folded = self.fold_reads()
        views = self.write_views()
        self.postings.maintain(self.connection)
        self._settle_index()
        return {"access_counts_folded": folded, "views": views}

    @healed
    def write_views(self, *, up_to: int | None = None) -> list[str]:
        if up_to is not None and sum(count for _, count in self.queries.namespaces()) > up_to:
            return []
        return local.write_views(self.connection, self.layout)

    @healed
    def version(self, namespace: str) -> int:
        """Return the number of the last change of a chunk of the namespace, or of the last merge of its postings.

        A new index starts above the numbers of the former one.
        """
        return int(self._connections.get().execute(LAST_CHANGE, (namespace,)).fetchone()[0])

    @healed
    def time_of_writing(self, namespace: str, now: datetime) -> datetime:  # noqa: ARG002 - one clock for all
        """Return ``now``, or just after the newest chunk's time if that is not earlier, by at most ``MAX_OFF``.

        Equal times would leave no trace in the files of the order in which chunks were written.
        """
        found = (
            self._connections.get()
            .execute("SELECT max(created_at) FROM (SELECT created_at FROM chunks ORDER BY doc DESC LIMIT 20)")
            .fetchone()
        )
        latest = max(parse_time(found[0]), self._last_time) if found[0] else self._last_time
        if latest <= now + MAX_OFF:
            self._last_time = max(now, latest + timedelta(microseconds=1))
            return self._last_time
        self._last_time = now
        if not self._clock_logged:
            self._clock_logged = True
            _logger.warning("%s", clock_fault(latest - now, _NEWEST_MEMORY))
        return now

    @healed
    def clock_fault(self, namespace: str, now: datetime) -> str:  # noqa: ARG002 - one clock for all
        found = self.connection.execute("SELECT max(created_at) FROM chunks").fetchone()
        return clock_fault(max(timedelta(), parse_time(found[0]) - now), _NEWEST_MEMORY) if found[0] else ""

    @healed
    def status(self, namespace: str) -> StoreStatus:  # noqa: ARG002 - of the whole store
        """Return counts of unfinished files, of reads not yet in chunk files, and of files that do not validate."""
        self.flush_reads(wait=False)  # reads that this process has buffered are not in the index yet
        unreadable, unsaved = self.connection.execute(
            "SELECT (SELECT count(*) FROM unreadable), (SELECT count(*) FROM chunks WHERE access_unsaved = 1)"
        ).fetchone()
        try:
            unfinished = sum(1 for _ in self.layout.unfinished.iterdir())
        except OSError:  # no such folder, or no access to it: no write of this store can be unfinished there
            unfinished = 0
        return StoreStatus(unreadable, unfinished, unsaved)

    def damage(self, namespace: str, chunk_id: str) -> str | None:  # noqa: ARG002 - an unreadable file names none
        name = f"{chunk_id}.json"
        found = (f"{path}: {why}" for path, why in self.unreadable() if path.rpartition("/")[2] == name)
        return next(found, None)

    def damaged_ids(self) -> list[str]:
        names = (path.rpartition("/")[2].removesuffix(".json") for path, _ in self.unreadable())
        return list(filter(is_chunk_id, names))

    def figures(self) -> dict[str, Any]:
        return {"unreadable_files": len(self.unreadable()), "index_size_mb": self.layout.index_size_mb()}

    # --- maintenance: imported on use, since few processes need it -------------------------------------

    def check(self, store: ChunkStore, progress: Progress | None) -> list[Finding]:
        from rlm_mem.store.local.integrity import check_folder

        return check_folder(store, self, progress)

    def mend(self, store: ChunkStore, finding: Finding) -> bool:
        from rlm_mem.store.local.integrity import mend_folder

        return mend_folder(store, self, finding)

    def back_up(
        self, store: ChunkStore, target: Path, *, only: str | None = None, progress: Progress | None = None,
        source: str = "local",
    ) -> BackupInfo:  # fmt: skip
        from rlm_mem.store.local.backup import back_up_folder

        if only is not None:
            raise InputError(
                "a brain folder is backed up whole",
                hint="rlm-mem export, or rlm-mem store copy into another folder, copies one namespace",
            )
        if not self.read_only:
            self.sync()
            self.fold_reads()
        return back_up_folder(store, self, target, progress=progress, source=source)

    def rewrite_events(self, namespace: str, rewriting: Rewriting, *, dry_run: bool) -> int:
        # In a transaction, no other process appends an event of a change meanwhile.
        with contextlib.nullcontext() if dry_run else self.transaction(namespace):
            return self._log.rewrite(namespace, rewriting, dry_run=dry_run)

    def rewrite_stray_events(
        self, namespaces: Collection[str], rewriting: Rewriting, *, dry_run: bool
    ) -> int:
        with contextlib.nullcontext() if dry_run else self.transaction(""):
            return self._log.rewrite_strays(namespaces, rewriting, dry_run=dry_run)

    def _kept_versions(self) -> Iterator[Path]:
        """Yield the folders of former versions, each named after its chunk."""
        kept = self.layout.archive / "versions"
        for folder in sorted(kept.iterdir()) if kept.is_dir() else []:
            if is_chunk_id(folder.name):
                yield folder

    def versioned(self, namespace: str) -> list[str]:  # noqa: ARG002 - one folder
        return [folder.name for folder in self._kept_versions()]

    def damaged_texts(self, namespaces: Collection[str]) -> Iterator[tuple[str, str, bytes]]:
        """Yield the former versions that do not validate, and the files that a repair replaced."""
        names = dict(self.connection.execute("SELECT ns, name FROM namespaces"))
        damaged = sorted(self.layout.damaged.iterdir()) if self.layout.damaged.is_dir() else []
        versions = (path for folder in self._kept_versions() for path in sorted(folder.glob("*.json")))
        for path in (*damaged, *versions):
            was_replaced = path.parent == self.layout.damaged
            chunk_id = path.name.partition(".")[0] if was_replaced else path.parent.name
            row = find_row(self.connection, chunk_id)
            owner = "" if row is None else names[row.ns]
            if (owner and owner not in namespaces) or not path.is_file():
                continue
            try:
                data = path.read_bytes()
                if not was_replaced:
                    decode_chunk(data)
                    continue
            except InvalidChunk:
                pass
            except OSError as error:
                files.translate(error, str(path))
            if is_chunk_id(chunk_id):
                yield owner, chunk_id, data

    def stray_versions(self) -> Iterator[tuple[str, list[Chunk]]]:
        """Yield the ids of chunks whose files were removed, by hand or by git, each with its former versions."""
        for folder in self._kept_versions():
            if find_row(self.connection, folder.name) is None:
                versions = [
                    one.chunk for one in former_versions(self.layout, folder.name, below=ANY_REVISION)
                ]
                if versions:
                    yield folder.name, versions

    def erase_stray_versions(self, namespace: str, chunk_ids: Sequence[str]) -> None:
        for chunk_id in chunk_ids:
            with self.transaction(namespace) as transaction:
                transaction.erase_versions(chunk_id)

    def purge(self, namespaces: Sequence[str], *, rebuild: bool = True) -> None:
        """Rebuild and vacuum the index, so that neither its terms nor its free pages contain erased text.

        What killed backups left is removed: it has links to erased files.
        """
        from rlm_mem.store.local.backup import remove_abandoned_backups

        namespace = next(iter(namespaces), DEFAULT_NAMESPACE)  # all namespaces share one index
        if rebuild:
            self.rebuild(namespace)
        with schema.translated(self.layout.database), self._index_transaction(self.connection):
            local.drop_unused_terms(self.connection)
        self.vacuum(namespace)
        if any(self.layout.index.glob("*.json")):
            self.write_views()
        remove_abandoned_backups(self.layout.base)

    def stored_bytes(self, namespaces: Sequence[str]) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002 - one folder
        for path in sorted(self.layout.all_files()):
            try:
                if path.is_file():
                    name = self.layout.relative(path)
                    yield from ((name, piece) for piece in files.pieces(path))
            except FileNotFoundError:
                continue  # removed after it was listed
            except OSError as error:
                raise files.unreadable(path, error) from error

    def vacuum(self, namespace: str, progress: Progress | None = None) -> Vacuumed:  # noqa: ARG002 - one index
        """Merge the deltas into the postings, and vacuum the SQLite index."""
        self.refuse_in_batch("the index cannot be vacuumed")
        self.flush_reads(wait=True)
        return vacuum_folder(self, progress=progress)
