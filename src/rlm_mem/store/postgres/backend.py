"""The PostgreSQL backend: the same guarantees as the local one, with rows in one or several databases."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from rlm_mem.chunk import Chunk
from rlm_mem.config import Config
from rlm_mem.errors import InvalidChunk, NamespaceError, StorageError, StoreReadOnly
from rlm_mem.results import Progress
from rlm_mem.store.core.backend import Backend
from rlm_mem.store.core.changes import MAX_OFF, Rewriting, clock_fault
from rlm_mem.store.core.recent import Recent
from rlm_mem.store.core.records import (
    ACTIVE,
    ChunkRow,
    ReadBuffer,
    Reads,
    StoreStatus,
    SyncReport,
    Vacuumed,
    Version,
    add_reads,
    analysis_name,
    is_later_analysis,
    log_events,
    other_analysis,
)
from rlm_mem.store.postgres import audit
from rlm_mem.store.postgres.failures import RIGHTS
from rlm_mem.store.postgres.files import PostgresFiles
from rlm_mem.store.postgres.integrity import check_database, chunk_in, damaged_texts, mend_rows
from rlm_mem.store.postgres.maintenance import (
    drop_unused,
    rebuild,
    refresh_statistics,
    stored_rows,
    vacuum_tables,
)
from rlm_mem.store.postgres.queries import PostgresQueries
from rlm_mem.store.postgres.routes import MOST_NAMESPACES, Routes
from rlm_mem.store.postgres.rows import FIND, reading, row_found, touching
from rlm_mem.store.postgres.schema import namespace_key
from rlm_mem.store.postgres.transaction import Moved, PostgresTransaction, unchanged
from rlm_mem.store.postgres.values import Statement
from rlm_mem.telemetry import operation, waiting

if TYPE_CHECKING:
    from pathlib import Path

    from rlm_mem.store.core.backup_archive import BackupInfo
    from rlm_mem.store.core.brain_files import BrainFiles
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.findings import Finding
    from rlm_mem.store.core.lookup import CandidateSource
    from rlm_mem.store.postgres.lookup import SearchCache
    from rlm_mem.store.postgres.pool import Pool

_T = TypeVar("_T")

_logger = logging.getLogger("rlm_mem.store")

_SERVER_CLOCK = "that of the database"
_CLOCK_TOLERANCE = timedelta(seconds=1)
"""Clocks that differ by less count as equal: the difference includes the latency of the server."""
_CLOCK_SECONDS = 600.0
"""Time for which a measured difference of the clocks is reused."""
_MAX_READ_NAMESPACES = 100
"""Namespaces with buffered reads from which on these are written."""
_READS_SECONDS = 5.0
"""How long a flush waits for the lock of a namespace."""
_LOCK_FOR_READS = (
    "SELECT 1 FROM rlm_mem.namespaces WHERE ns = %s AND state = 'here' FOR NO KEY UPDATE SKIP LOCKED"
)

_MAY_WRITE = "SELECT has_table_privilege('rlm_mem.namespaces', 'UPDATE')"


class _ThreadState(threading.local):
    """The state of one thread."""

    transaction: PostgresTransaction | None = None
    noted: list[Statement] | None = None
    ahead: Mapping[tuple[str, str], list[tuple[Any, ...]]] = MappingProxyType({})


class PostgresBackend(Backend):
    """`Backend` over one or several PostgreSQL databases; thread-safe. The protocol documents the methods.

    Args:
        dsn: ``postgresql://…``; its database stores the chunks, or the directory of the databases that do.
        read_only: never write, not even the tables.

    Raises:
        StorageError: no server answers, it refuses the connection or is too old, or its schema is too new.
        StoreReadOnly: the user may not write, and ``read_only`` is False.
    """

    is_far = True

    def __init__(self, dsn: str, config: Config, *, read_only: bool = False) -> None:
        self.config = config
        self.read_only = read_only
        self._routes = Routes(dsn, config, read_only=read_only)
        self._local = _ThreadState()
        self._reads: dict[str, ReadBuffer] = {}
        """Reads by namespace that are not written yet."""
        self._reads_guard = threading.Lock()
        self._clocks: Recent[str, tuple[float, timedelta]] = Recent(MOST_NAMESPACES)
        """By namespace: when the measured difference of the clocks expires (``time.monotonic``), and how far the
        server's is ahead."""
        self._last_time = datetime.min.replace(tzinfo=UTC)
        self._next_clock_warning = 0.0
        """When the clock may be warned of again (``time.monotonic``)."""
        self._closed = False
        self._analysis = analysis_name(config.search.language)
        self._analysed: Recent[str, bool] = Recent(MOST_NAMESPACES)
        self._searches: SearchCache | None = None
        home = self._routes.home()
        if not read_only and not home.rows(_MAY_WRITE)[0][0]:
            self._routes.close()
            raise StoreReadOnly(f"{self.location}: this user may only read", hint=RIGHTS)

    @property
    def location(self) -> str:
        return self._routes.shown

    def pin(self) -> None:
        """Use the opened database for every namespace, ignoring its directory; for moving namespaces."""
        self._routes.pin()

    # --- statements -------------------------------------------------------------------------------------

    def rows(self, namespace: str, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a reading statement in the database of a namespace; sees open writes of this thread."""
        if self._local.noted is not None:
            self._local.noted.append((statement, values))
            return []
        transaction = self._local.transaction
        if transaction is not None:
            return transaction.rows(statement, values)
        ahead = self._local.ahead
        known = ahead.get((statement, repr(values))) if ahead else None
        return self._routes.of(namespace).rows(statement, values) if known is None else known

    def together(self, namespace: str, reading: Callable[[], _T]) -> _T:
        """Return the result of `reading`, running the queries that it makes on empty answers in one round trip."""
        if self._local.noted is not None or self._local.ahead or self._local.transaction is not None:
            return reading()
        noted = self._recorded_queries(reading)
        if len(noted) < 2:
            return reading()
        self._local.ahead = {
            (statement, repr(values)): rows
            for (statement, values), rows in zip(
                noted, self._routes.of(namespace).rows_of(noted), strict=True
            )
        }
        try:
            return reading()
        finally:
            self._local.ahead = {}

    def read_ahead(self, chunk: Chunk, reading: Callable[[], object]) -> None:
        """Run the queries for storing a new chunk, and those of `reading` on empty answers, in one round trip."""
        transaction = self._local.transaction
        assert transaction is not None, "outside of a transaction"
        transaction.expect([chunk], self._recorded_queries(reading))

    def _recorded_queries(self, reading: Callable[[], object]) -> list[Statement]:
        """Return the queries that `reading` makes if all answers are empty."""
        noted: list[Statement] = []
        self._local.noted = noted
        try:
            reading()
        finally:
            self._local.noted = None
        return noted

    def change(
        self, namespace: str, statement: str, values: Sequence[object] = (), *, separately: bool = False
    ) -> list[tuple[Any, ...]]:
        """Run one writing statement, at most once: in the open transaction of this thread, or in a separate one.

        Args:
            separately: always use a separate transaction, so that the write survives the rollback of an open batch.
        """
        self.check_writable()
        transaction = self._local.transaction
        if transaction is not None and not separately:
            transaction.forget()
            return transaction.rows(statement, values)
        return self._routes.of(namespace).change([(statement, values)])

    def ensure_listed(self, namespace: str) -> None:
        """Add a namespace without a row to the list of namespaces; a transaction of this thread does so itself."""
        if self._local.transaction is None:
            self._routes.ensure_listed(namespace)

    @property
    def queries(self) -> PostgresQueries:
        return PostgresQueries(self.rows, self._routes.namespaces)

    # --- writing ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self, namespace: str, *, any_analysis: bool = False) -> Iterator[PostgresTransaction]:
        """Open a transaction, or lock one more namespace in the open one.

        Args:
            any_analysis: the terms of the namespace may be of another analysis of words.
        """
        self.check_writable()
        outer = self._local.transaction
        if outer is not None:
            self._lock_additional(outer, namespace)
            yield outer
            return
        until = time.monotonic() + self.config.store.lock_wait_seconds
        with unchanged():
            current = self._begin(namespace, until)
        self._local.transaction = current
        reads = self._take_reads(namespace)
        try:
            with operation("write", backend="postgresql"):
                if not any_analysis:
                    self._check_analysis(current, namespace)
                if reads:
                    current.lock(namespace).touch(reads)
                yield current
                current.change.record_erasures()
                current.commit()
        except BaseException:
            current.rollback()
            self._put_back(namespace, reads)
            raise
        finally:
            self._local.transaction = None
        self._routes.listed(namespace)
        self._analysed.put(namespace, True)
        log_events(current.events)
        if current.doubled:
            refresh_statistics(current.pool)
        current.change.carry_out_erasures()

    def _begin(self, namespace: str, until: float) -> PostgresTransaction:
        while True:
            current = PostgresTransaction(self._routes.of(namespace), self.config, self._analysis)
            try:
                with waiting("rlm_mem.store.lock.wait", backend="postgresql"):
                    current.begin(namespace, until)
                return current
            except Moved as moved:
                self._routes.moved(namespace, moved.dsn)

    def _lock_additional(self, outer: PostgresTransaction, namespace: str) -> None:
        # A lookup may take a second connection, for which those who wait for this lock may hold all the others.
        if outer.version(namespace) is not None:
            return
        if self._routes.of(namespace) is not outer.pool:
            raise NamespaceError(
                f"the namespace {namespace} is on another server than the batch that writes to it",
                hint="write to it in a separate batch",
            )
        try:
            outer.lock(namespace)
        except Moved:
            raise NamespaceError(
                f"the namespace {namespace} was moved to another server meanwhile", hint="repeat the batch"
            ) from None
        self._check_analysis(outer, namespace)

    def _check_analysis(self, transaction: PostgresTransaction, namespace: str) -> None:
        """Check that the terms of a locked namespace are of this program's analysis of words.

        They are made anew in the transaction, unless this process has used them already: otherwise two programs of
        different versions would take turns at it.
        """
        recorded = transaction.lock(namespace).head.analysis
        if recorded == self._analysis:
            return
        if self._analysed.get(namespace) or is_later_analysis(recorded, self._analysis):
            raise other_analysis(f"the namespace {namespace}", recorded, self._analysis)
        _logger.info("%s: rebuilding the terms of %s", self.location, namespace)
        with transaction.translating():
            rebuild(transaction, namespace, self._analysis, None)

    def check_writable(self) -> None:
        """Raise StoreReadOnly if the store was opened read-only."""
        if self.read_only:
            raise StoreReadOnly(
                f"the store {self.location} was opened read-only",
                hint="open it again for writing, with a user who may write: a server has to be restarted",
            )

    @property
    def present(self) -> PostgresTransaction | None:
        """Return the open transaction of the calling thread."""
        return self._local.transaction

    @property
    def in_transaction(self) -> bool:
        return self._local.transaction is not None

    def _prepare(self, namespace: str) -> None:
        """Make sure, once per process, that a namespace to search has terms of this program's analysis of words."""
        if self._analysed.get(namespace) or self._local.transaction is not None:
            return
        found = self.rows(
            namespace, "SELECT analysis FROM rlm_mem.namespaces WHERE ns = %s", (namespace_key(namespace),)
        )
        if found and found[0][0] not in ("", self._analysis):
            if self.read_only:
                _logger.warning(
                    "%s: the terms of %s are of another version, so searches may miss words",
                    self.location,
                    namespace,
                )
            else:
                with self.transaction(namespace):
                    pass  # it has made them anew
        self._analysed.put(namespace, True)

    # --- reading ----------------------------------------------------------------------------------------

    def find(self, namespace: str, chunk_id: str) -> ChunkRow | None:
        if self._local.transaction is not None:
            return self._local.transaction.find(namespace, chunk_id)
        ns = namespace_key(namespace)
        return row_found(namespace, self.rows(namespace, FIND, (ns, ns, chunk_id)))

    def id_taken(self, chunk: Chunk) -> bool:
        return self.find(chunk.namespace, chunk.id) is not None

    def read(self, row: ChunkRow) -> Chunk | None:
        return self.chunks(row.namespace, [row.id], status=None).get(row.id)

    def damage(self, namespace: str, chunk_id: str) -> str | None:
        if self.find(namespace, chunk_id) is None or self.chunks(namespace, [chunk_id], status=None):
            return None
        return "its row does not validate"

    def chunks(
        self, namespace: str, chunk_ids: Sequence[str], *, status: int | None = ACTIVE
    ) -> dict[str, Chunk]:
        wanted = list(dict.fromkeys(chunk_ids))
        if not wanted:
            return {}
        rows = self.rows(namespace, *reading(namespace_key(namespace), wanted, status))
        buffered = self._reads.get(namespace)
        found: dict[str, Chunk] = {}
        for chunk_id, body, count, when in rows:
            chunk = _decoded(namespace, chunk_id, body)
            if chunk is not None:
                add_reads(chunk, count, when, buffered.of(chunk_id) if buffered is not None else None)
                found[chunk_id] = chunk
        return {chunk_id: found[chunk_id] for chunk_id in wanted if chunk_id in found}

    def former_versions(self, namespace: str, chunk_id: str, *, below: int) -> list[Version]:
        rows = self.rows(
            namespace,
            "SELECT revision, body FROM rlm_mem.versions WHERE ns = %s AND id = %s AND revision < %s ORDER BY revision",
            (namespace_key(namespace), chunk_id, min(below, 2**31 - 1)),
        )
        found = ((revision, _decoded(namespace, chunk_id, body)) for revision, body in rows)
        return [
            Version(revision, chunk.metadata.modified_at, chunk)
            for revision, chunk in found
            if chunk is not None
        ]

    def versioned(self, namespace: str) -> list[str]:
        rows = self.rows(
            namespace,
            "SELECT DISTINCT id FROM rlm_mem.versions WHERE ns = %s ORDER BY id",
            (namespace_key(namespace),),
        )
        return [chunk_id for (chunk_id,) in rows]

    def candidate_source(self, namespace: str) -> CandidateSource:
        from rlm_mem.store.postgres.lookup import PostgresSource, SearchCache

        self._prepare(namespace)
        transaction = self._local.transaction
        if transaction is not None:
            # This search may see writes that are rolled back, so nothing is cached.
            if self._local.noted is not None:
                return PostgresSource(functools.partial(self.rows, namespace), namespace_key(namespace))
            rows = functools.partial(transaction.rows, terms=True)
            return PostgresSource(rows, namespace_key(namespace))
        pool = self._routes.of(namespace)
        self._searches = self._searches or SearchCache()
        owner = pool.shown, namespace
        return PostgresSource(pool.rows, namespace_key(namespace), self._searches, owner)

    def version(self, namespace: str) -> int:
        """Return a number that grows with every change of a chunk; inside a transaction, its value after the commit."""
        transaction = self._local.transaction
        known = None if transaction is None else transaction.version(namespace)
        if known is not None:
            return known
        found = self.rows(
            namespace, "SELECT modified FROM rlm_mem.namespaces WHERE ns = %s", (namespace_key(namespace),)
        )
        return int(found[0][0]) if found else 0

    def time_of_writing(self, namespace: str, now: datetime) -> datetime:
        """Return ``now``, corrected by the cached offset of the server's clock unless that exceeds ``MAX_OFF``."""
        until, off = self._clocks.get(namespace) or (0.0, timedelta())
        if time.monotonic() >= until:
            with unchanged():
                found = self.rows(namespace, "SELECT clock_timestamp()")
            off = found[0][0] - now if found else timedelta()
            if time.monotonic() >= self._next_clock_warning and (fault := clock_fault(off, _SERVER_CLOCK)):
                self._next_clock_warning = time.monotonic() + _CLOCK_SECONDS  # not once per namespace
                _logger.warning("%s", fault)
            if not _CLOCK_TOLERANCE < abs(off) <= MAX_OFF:
                off = timedelta()
            self._clocks.put(namespace, (time.monotonic() + _CLOCK_SECONDS, off))
        # A clock that stood still or was set back since the last write must not give the next one its time, or less.
        here, after = now + off, self._last_time + timedelta(microseconds=1)
        self._last_time = max(here, after) if after <= here + MAX_OFF else here
        return self._last_time

    def clock_fault(self, namespace: str, now: datetime) -> str:
        found = self.rows(namespace, "SELECT clock_timestamp()")
        return clock_fault(found[0][0] - now, _SERVER_CLOCK)

    def files(
        self, namespace: str, *, actor: str | None = None, clock: Callable[[], datetime] | None = None
    ) -> BrainFiles:
        return PostgresFiles(self, namespace, actor=actor, clock=clock)

    # --- counting reads ---------------------------------------------------------------------------------

    def count_read(self, namespace: str, chunk_id: str, when: str) -> None:
        """Count one read in memory; counts are written in small batches, so that a read never waits for a writer."""
        if self.read_only:
            return
        with self._reads_guard:
            is_due = self._reads.setdefault(namespace, ReadBuffer()).add(chunk_id, when)
        if is_due or len(self._reads) > _MAX_READ_NAMESPACES:
            self.flush_reads(wait=False)

    def flush_reads(self, *, wait: bool) -> int:
        """Write buffered reads; return for how many chunks. Without ``wait``, skipped while another process writes."""
        if self.read_only or self._local.transaction is not None:
            return 0
        written = 0
        until = time.monotonic() + (_READS_SECONDS if wait else 0.0)
        for namespace in list(self._reads):
            reads = self._take_reads(namespace)
            if not reads:
                continue
            ns, done = namespace_key(namespace), False
            statements = [(_LOCK_FOR_READS, (ns,)), touching(ns, reads)]
            try:
                # Not if another process holds the lock, or the namespace was moved.
                while not (done := bool(self.pool(namespace).change(statements, only_if_found=True))):
                    if time.monotonic() >= until:
                        break
                    time.sleep(0.05)
            except StorageError as error:  # counts are a convenience: the next flush writes them
                _logger.debug("access counts not written yet: %s", error)
            if done:
                written += len(reads)
            else:
                self._put_back(namespace, reads)
        return written

    def _take_reads(self, namespace: str) -> Reads:
        """Remove and return the buffered reads of a namespace."""
        with self._reads_guard:
            buffer = self._reads.pop(namespace, None)
        return {} if buffer is None else buffer.take()

    def _put_back(self, namespace: str, reads: Reads) -> None:
        if reads:
            with self._reads_guard:
                self._reads.setdefault(namespace, ReadBuffer()).put_back(reads)

    # --- audit ------------------------------------------------------------------------------------------

    def append_events(self, events: Sequence[dict[str, Any]]) -> None:
        """Append events to the audit log, those of a transaction with its commit."""
        transaction = self._local.transaction
        if transaction is not None:
            transaction.events.extend(events)
            return
        statements, _ = audit.event_statement(events)
        self.ensure_listed(str(events[0]["ns"]))
        self._routes.of(str(events[0]["ns"])).change(statements)
        log_events(events)

    def read_events(
        self, *, namespace: str, since: str | None, op: str | None, chunk_id: str | None,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        ask = functools.partial(self.rows, namespace)
        return audit.read(ask, namespace, since=since, op=op, chunk_id=chunk_id, limit=limit)

    def latest_event(self, namespace: str, operations: frozenset[str]) -> dict[str, Any] | None:
        return audit.latest(functools.partial(self.rows, namespace), namespace, operations)

    # --- maintenance ------------------------------------------------------------------------------------

    def figures(self) -> dict[str, Any]:
        """Return the figures of this kind of backend, which has no files that could be unreadable."""
        return {"unreadable_files": 0}  # and no address: figures are also shown to clients

    def status(self, namespace: str) -> StoreStatus:
        """Return the number of reads that are not written yet; nothing else can be unfinished."""
        self.flush_reads(wait=False)
        buffer = self._reads.get(namespace)
        return StoreStatus(0, 0, 0 if buffer is None else buffer.size)

    def checkpoint(self) -> dict[str, Any]:
        """Write the access counts that are still in memory."""
        return {"access_counts_folded": self.flush_reads(wait=True), "views": []}

    def rebuild(self, namespace: str, progress: Progress | None = None) -> SyncReport:
        with self.transaction(namespace, any_analysis=True) as transaction, transaction.translating():
            return rebuild(transaction, namespace, self._analysis, progress)

    def pool(self, namespace: str) -> Pool:
        """Return the connections to the database that currently stores a namespace."""
        return self._routes.of(namespace)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.flush_reads(wait=True)
        self._routes.close()

    def check(self, store: ChunkStore, progress: Progress | None) -> list[Finding]:
        return check_database(store, self.pool(store.namespace), self.present, progress)

    def mend(self, store: ChunkStore, finding: Finding) -> bool:
        with self.transaction(store.namespace) as transaction:
            return mend_rows(store, transaction, finding)

    def back_up(
        self, store: ChunkStore, target: Path, *, only: str | None = None, progress: Progress | None = None,
        source: str = "postgresql",
    ) -> BackupInfo:  # fmt: skip
        from rlm_mem.store.core.copying import back_up_copies

        names = [name for name, _ in self.queries.namespaces() if only in (None, name)]
        return back_up_copies(
            store, names, target, lambda name: self.pool(name).snapshot(), progress=progress, source=source
        )

    def rewrite_events(self, namespace: str, rewriting: Rewriting, *, dry_run: bool) -> int:
        return audit.rewrite_events(self.pool(namespace), namespace, rewriting, dry_run=dry_run)

    def damaged_texts(self, namespaces: Collection[str]) -> Iterator[tuple[str, str, bytes]]:
        """Yield the texts of chunks and former versions that do not validate."""
        for namespace in namespaces:
            yield from damaged_texts(self.pool(namespace).rows, namespace)

    def purge(self, namespaces: Sequence[str], *, rebuild: bool = True) -> None:
        """Rebuild the derived rows, remove unused names, and free the space of deleted rows."""
        for namespace in namespaces:
            if rebuild:
                self.rebuild(namespace)
            with self.transaction(namespace) as transaction:
                drop_unused(transaction, namespace)
        for pool in dict.fromkeys(map(self.pool, namespaces)):
            vacuum_tables(pool)

    def stored_bytes(self, namespaces: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the rows of these namespaces, in every table, as bytes."""
        for namespace in namespaces:
            yield from stored_rows(self.pool(namespace), namespace)

    def vacuum(self, namespace: str, progress: Progress | None = None) -> Vacuumed:
        """Run VACUUM and ANALYZE on the tables of the database that stores the namespace."""
        return vacuum_tables(self.pool(namespace), progress)


def _decoded(namespace: str, chunk_id: str, body: str) -> Chunk | None:
    try:
        return chunk_in(body, namespace, chunk_id)
    except InvalidChunk as error:
        _logger.error("unreadable chunk %s: %s", chunk_id, error)
        return None
