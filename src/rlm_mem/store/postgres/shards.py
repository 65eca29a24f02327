"""Namespaces on several primaries: the directory of their databases, and moving a namespace while it is in use.

The directory is the table ``shards`` of the database that programs open. A namespace without a row there lives in
that database itself. A moved namespace leaves a forwarding address in its old database, so programs that looked it
up before the move still find it: a writer under the lock, a reader within a second.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlm_mem.chunk import check_namespace
from rlm_mem.chunk.types import amount
from rlm_mem.config import Config
from rlm_mem.dsn import is_dsn, shown_dsn
from rlm_mem.errors import InputError, NotFoundError, StorageError
from rlm_mem.results import Progress
from rlm_mem.store.core.contents import NamespaceReader
from rlm_mem.store.core.copying import CopyReport, compare, copy_namespace
from rlm_mem.store.postgres.files import TRAJECTORIES
from rlm_mem.store.postgres.pool import Pool
from rlm_mem.store.postgres.routes import Routes
from rlm_mem.store.postgres.schema import TABLES, namespace_key
from rlm_mem.store.postgres.transaction import PostgresTransaction

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

#: Maximum number of copy passes of a move before writers have to wait: each copies what was written during the
#: previous one.
_MAX_PASSES = 5
#: At most this many changes are copied while writers wait: a fraction of a second.
_MAX_FINAL_CHANGES = 200
#: Programs look for a forwarding address once a second; the old rows remain readable for longer than that
#: (seconds).
_GRACE_SECONDS = 2.5

_COUNTED = (
    "SELECT n.name, n.state, coalesce((SELECT sum(t.chunks) FROM rlm_mem.totals t"
    " WHERE t.ns = n.ns AND t.status = 0), 0)::bigint FROM rlm_mem.namespaces n ORDER BY n.name"
)
_ACCESSED = (
    "SELECT r.doc, c.id, r.access_count, r.accessed_at"
    " FROM (SELECT * FROM rlm_mem.reads WHERE ns = %s AND doc > %s ORDER BY doc LIMIT %s) r"
    " JOIN rlm_mem.chunks c ON c.ns = %s AND c.doc = r.doc ORDER BY r.doc"
)
_COUNT_ACCESSES = (
    "INSERT INTO rlm_mem.reads AS r (ns, doc, access_count, accessed_at) SELECT %s, c.doc, v.count, v.at"
    " FROM unnest(%s::text[], %s::integer[], %s::text[]) AS v(id, count, at)"
    " JOIN rlm_mem.chunks c ON c.ns = %s AND c.id = v.id ON CONFLICT (ns, doc) DO UPDATE SET"
    " access_count = greatest(r.access_count, excluded.access_count),"
    " accessed_at = greatest(r.accessed_at, excluded.accessed_at)"
)


@dataclass(frozen=True)
class Shard:
    """The location of a namespace; ``place`` is a DSN without password, ``chunks`` the number of its active chunks."""

    namespace: str
    place: str
    chunks: int


@dataclass(frozen=True)
class MoveReport:
    """The result of a move. ``held_up`` is how many seconds writers waited, ``passes`` the number of copies before."""

    namespace: str
    source: str
    target: str
    chunks: int
    passes: int
    held_up: float
    purged: bool


def shards(directory: str) -> list[Shard]:
    """Return every namespace that the directory leads to, by name."""
    with closing(Routes(directory, Config.load(None), read_only=False)) as databases:
        home = databases.home()
        listed = dict(home.rows("SELECT name, dsn FROM rlm_mem.shards ORDER BY name"))
        places = {shown_dsn(directory): home}
        for dsn in listed.values():
            places.setdefault(shown_dsn(dsn), databases.pool(dsn))
        found: dict[str, Shard] = {name: Shard(name, shown_dsn(dsn), 0) for name, dsn in listed.items()}
        for place, pool in places.items():
            for name, state, chunks in pool.rows(_COUNTED):
                # One database may also be another's directory: only namespaces that the directory leads to count.
                if state != "moved" and place == shown_dsn(listed.get(name, directory)):
                    found[name] = Shard(name, place, int(chunks))
    return [found[name] for name in sorted(found)]


def assign(directory: str, namespace: str, dsn: str) -> None:
    """Add a namespace to the directory: a new one, or one that ``dsn`` already stores.

    Raises:
        InputError: the namespace has chunks, files or audit events in its present database (move it instead), or
            ``dsn`` is not a DSN.
    """
    _check_dsn(dsn)
    config = Config.load(None)
    with _store(directory, check_namespace(namespace), config, pinned=False) as store:
        reader = NamespaceReader(store)
        present = {
            "chunk": reader.count(),
            "file": len(reader.file_names()),
            "audit event": sum(1 for _ in reader.events()),
        }
    held = [amount(count, noun) for noun, count in present.items() if count]
    if held:
        raise InputError(
            f"the namespace {namespace} already has {', '.join(held)}",
            hint="rlm-mem shards move moves them too",
        )
    with closing(Routes(directory, config, read_only=False)) as databases:
        databases.pool(dsn)  # check that it answers, and create its tables
        _record_place(databases.home(), directory, namespace, dsn)


def move_namespace(
    directory: str,
    namespace: str,
    dsn: str,
    *,
    config: Config | None = None,
    purge: bool = False,
    progress: Progress | None = None,
) -> MoveReport:
    """Move a namespace to another primary while it is read and written.

    It is copied in passes until little is left, and compared completely; only then do writers have to wait for the
    rest. The lock ends with this process, even if it is killed. Repeating an interrupted move finishes it. Lines
    that running recalls still wrote to the old database are copied at the end.

    Args:
        directory: DSN that programs open.
        dsn: of the new database; without a password (use a passfile or service), since the directory stores it.
        purge: afterwards remove the rows left in the old database; otherwise ``purge_moved`` does so later.

    Raises:
        NotFoundError: the directory has no such namespace.
        StorageError: source and copy differ, or a server is unreachable; the namespace stays where it was.
    """
    config = config or Config.load(None)
    _check_dsn(dsn)
    ns = namespace_key(check_namespace(namespace))
    with closing(Routes(directory, config, read_only=False)) as databases:
        source_dsn = _place_of(databases, namespace)
        home, new = databases.home(), databases.pool(dsn)
        if shown_dsn(source_dsn) == shown_dsn(dsn):
            _record_place(home, directory, namespace, dsn)  # an interrupted move, or nothing to do
            return MoveReport(namespace, shown_dsn(dsn), shown_dsn(dsn), 0, 0, 0.0, False)
        if new.rows("SELECT 1 FROM rlm_mem.namespaces WHERE ns = %s AND state = 'moved'", (ns,)):
            _remove_rows(new, ns, keep_address=False)  # left over from an earlier stay in this database
        with _store(source_dsn, namespace, config) as source, _store(dsn, namespace, config) as target:
            passes = _copy_in_passes(source, target, progress)
            _refuse_differences(source, target, progress)
            began = time.monotonic()
            with source.backend.transaction(namespace) as lock:
                assert isinstance(lock, PostgresTransaction)
                # Writers wait from here on: copy what they wrote since the last pass, and check that the copy is
                # complete.
                copy_namespace(source, target, overwrite=True, mirror=True)
                _refuse_unequal_states(source, target)
                _copy_access_counts(source, databases.pool(source_dsn), new)
                lock.rows(
                    "UPDATE rlm_mem.namespaces SET state = 'moved', moved_to = %s, modified = modified + 1"
                    " WHERE ns = %s",
                    (dsn, ns),
                )
            held_up = time.monotonic() - began
            _record_place(home, directory, namespace, dsn)
            chunks = int(target.get_stats()["chunk_count"])
            time.sleep(_GRACE_SECONDS)
            _move_late_trajectories(source, target)
        if purge:
            _remove_rows(databases.pool(source_dsn), ns, keep_address=True)
    return MoveReport(
        namespace, shown_dsn(source_dsn), shown_dsn(dsn), chunks, passes, round(held_up, 3), purge
    )


def purge_moved(dsn: str, namespace: str) -> int:
    """Remove the rows of a moved namespace from its old database, except the forwarding address; return their number.

    Raises:
        InputError: the namespace was not moved away from there.
    """
    _check_dsn(dsn)
    ns, config = namespace_key(check_namespace(namespace)), Config.load(None)
    with closing(Routes(dsn, config, read_only=False)) as databases:
        pool = databases.home()
        if not pool.rows("SELECT 1 FROM rlm_mem.namespaces WHERE ns = %s AND state = 'moved'", (ns,)):
            raise InputError(
                f"the namespace {namespace} was not moved away from {pool.shown}: nothing was removed"
            )
        now = _place_of(databases, namespace)
        with _store(dsn, namespace, config) as old, _store(now, namespace, config) as new:
            _move_late_trajectories(old, new)
        return _remove_rows(pool, ns, keep_address=True)


def _place_of(databases: Routes, namespace: str) -> str:
    """Return the DSN of the database that currently stores a namespace."""
    dsn, is_listed = databases.trace(namespace)
    if not is_listed:
        raise NotFoundError(
            f"there is no namespace {namespace} at {shown_dsn(dsn)}", hint="rlm-mem shards list shows them"
        )
    return dsn


def _check_dsn(dsn: str) -> None:
    if not is_dsn(dsn):
        raise InputError(
            f"{shown_dsn(dsn)!r:.120} is not the DSN of a PostgreSQL database",
            hint="write postgresql://USER@HOST:PORT/DATABASE",
        )


def _store(dsn: str, namespace: str, config: Config, *, pinned: bool = True) -> ChunkStore:
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.postgres.backend import PostgresBackend

    # Better to fail than to retry for long while writers wait.
    settings = replace(config, postgres=replace(config.postgres, reconnect_seconds=5.0))
    store = ChunkStore(dsn, namespace=namespace, config=settings, actor="shards")
    if pinned and isinstance(store.backend, PostgresBackend):
        store.backend.pin()
    return store


def _record_place(home: Pool, directory: str, namespace: str, dsn: str) -> None:
    """Enter the database of a namespace in the directory; a namespace in the directory's own database has no row."""
    ns = namespace_key(namespace)
    if shown_dsn(dsn) == shown_dsn(directory):
        home.change([("DELETE FROM rlm_mem.shards WHERE ns = %s", (ns,))])
        return
    home.change(
        [
            (
                "INSERT INTO rlm_mem.shards(ns, name, dsn) VALUES (%s, %s, %s)"
                " ON CONFLICT (ns) DO UPDATE SET dsn = excluded.dsn",
                (ns, namespace, dsn),
            )
        ]
    )


def _copy_in_passes(source: ChunkStore, target: ChunkStore, progress: Progress | None) -> int:
    """Copy until a pass finds few changes; return the number of passes."""
    for number in range(1, _MAX_PASSES + 1):
        report: CopyReport = copy_namespace(source, target, overwrite=True, mirror=True, progress=progress)
        if report.skipped:
            raise StorageError(
                f"{amount(len(report.skipped), 'chunk')} of {source.namespace} cannot be read,"
                f" first {report.skipped[0]}",
                hint="rlm-mem store check says why; repair or remove them first",
            )
        if report.changes <= _MAX_FINAL_CHANGES:
            return number
    return _MAX_PASSES


def _refuse_differences(source: ChunkStore, target: ChunkStore, progress: Progress | None) -> None:
    """Compare completely, copying differences again; raise if more than `_MAX_FINAL_CHANGES` remain."""
    found = compare(source, target, progress)
    for _ in range(_MAX_PASSES):
        if not found:
            return
        copy_namespace(source, target, overwrite=True, mirror=True)
        found = compare(source, target)
    if len(found) > _MAX_FINAL_CHANGES:
        raise StorageError(
            f"the copy of {source.namespace} differs from the original in {len(found)} places, the first:"
            f" {found[0].what} {found[0].message}: it stays where it is",
            hint="repeat the move when fewer programs write",
        )


def _refuse_unequal_states(source: ChunkStore, target: ChunkStore) -> None:
    if _fingerprint(source) != _fingerprint(target):
        raise StorageError(
            f"the copy of {source.namespace} is not complete: it stays where it is", hint="repeat the move"
        )


def _fingerprint(store: ChunkStore) -> int:
    """Return a hash of the states of all chunks, independent of their order."""
    mixed, after = 0, 0
    while page := store.backend.queries.states(store.namespace, after, 5_000):
        for one in page:
            state = f"{one.id} {one.status} {one.revision} {one.modified_at} {one.content_hash}"
            mixed ^= int.from_bytes(hashlib.blake2b(state.encode(), digest_size=16).digest())
        after = page[-1].doc
    return mixed


def _copy_access_counts(source: ChunkStore, home: Pool, target: Pool) -> None:
    """Copy the access counts, which do not count as changes of a chunk and so are not part of a pass."""
    ns, after = namespace_key(source.namespace), 0
    while rows := home.rows(_ACCESSED, (ns, after, 5_000, ns)):
        after = rows[-1][0]
        _, ids, counts, times = (list(column) for column in zip(*rows, strict=True))
        target.change([(_COUNT_ACCESSES, (ns, ids, counts, times, ns))])


def _move_late_trajectories(source: ChunkStore, target: ChunkStore) -> None:
    """Move trajectory lines that were appended in the old database during the move.

    They are written without the lock, so a running recall may have appended them there before it noticed the move.
    All trajectories are then removed from the old database: whatever a later call finds there was written since, and
    nothing that was erased or removed from the new one in the meantime comes back.
    """
    old, new = source.backend.files(source.namespace), target.backend.files(target.namespace)
    for name in old.names(TRAJECTORIES, recursive=True):
        known = set((new.read(name) or b"").splitlines())
        missed = [
            line for line in (old.read(name) or b"").splitlines(keepends=True) if line.strip() not in known
        ]
        if missed:
            new.append(name, b"".join(missed))
        old.remove(name)


def _remove_rows(pool: Pool, ns: int, *, keep_address: bool) -> int:
    removed = 0
    # The row of the namespace last: if this is interrupted, it still shows that the others are left over.
    for table in reversed(TABLES):
        if table == "shards" or (table == "namespaces" and keep_address):
            continue
        statement = (
            f"WITH gone AS (DELETE FROM rlm_mem.{table} WHERE ns = %s RETURNING 1) SELECT count(*) FROM gone"
        )
        removed += int(pool.change([(statement, (ns,))])[0][0])
    return removed
