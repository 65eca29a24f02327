"""Brain files as rows: a file is a sequence of parts, and an append adds one part.

A write inside a transaction of the thread belongs to it; otherwise each call is a separate transaction. All writes
lock the namespace, except lines added to trajectories: the threads of a recall append lines that must survive the
rollback of a batch around the recall, so each line is one statement on a separate connection. So are the lines of
hooks, for which an agent waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from rlm_mem.errors import InputError, StorageError
from rlm_mem.store.core.brain_files import SHOWN, WAITING, Runs, checked_name, note_former, recording
from rlm_mem.store.core.changes import WriteTransaction, utc_now
from rlm_mem.store.core.files import Signature
from rlm_mem.store.postgres.schema import namespace_key
from rlm_mem.store.postgres.values import Rows, plain

PART = 262_144
"""Bytes of one part: large files are read and written in pieces."""
TRAJECTORIES = "trajectories"
"""Folder in which recalls are recorded, line by line and without the lock of the namespace."""
_UNLOCKED = (f"{TRAJECTORIES}/", f"{SHOWN}/", f"{WAITING}/")
"""Files that are written without waiting for a writer."""
_FILES_PER_STATEMENT = 64  # files that are read with one statement
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The revision of a file is the number of its last part, so that an append needs only the file's row.
_PUT = """
WITH file AS (
    INSERT INTO rlm_mem.files(ns, name, revision, size) VALUES (%s, %s, %s, %s)
    ON CONFLICT (ns, name) DO UPDATE SET revision = files.revision + excluded.revision, size = excluded.size,
        modified_at = excluded.modified_at
    RETURNING revision
), former AS (DELETE FROM rlm_mem.file_parts WHERE ns = %s AND name = %s)
INSERT INTO rlm_mem.file_parts(ns, name, part, data)
SELECT %s, %s, file.revision - %s + fresh.number, fresh.data
FROM file, unnest(%s::bytea[]) WITH ORDINALITY AS fresh(data, number)
"""
_ADDED = """
    INSERT INTO rlm_mem.files(ns, name, revision, size) VALUES (%s, %s, 1, %s)
    ON CONFLICT (ns, name) DO UPDATE SET revision = files.revision + 1, size = files.size + excluded.size,
        modified_at = excluded.modified_at
    RETURNING revision
"""
_NEW = """
    INSERT INTO rlm_mem.files(ns, name, revision, size) VALUES (%s, %s, 1, %s)
    ON CONFLICT (ns, name) DO NOTHING RETURNING revision
"""
_PART = "INSERT INTO rlm_mem.file_parts(ns, name, part, data) SELECT %s, %s, revision, %s FROM file"
_APPEND = f"WITH file AS ({_ADDED}) {_PART}"
# As in a folder, lines of a trajectory are not synced; the setting applies to this statement only.
_NO_SYNC = "quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))"
_APPEND_UNLOCKED = f"WITH file AS ({_ADDED}), {_NO_SYNC} {_PART}, quick"
_CREATE_UNLOCKED = f"WITH file AS ({_NEW}), {_NO_SYNC} {_PART}, quick RETURNING part"
_EXTENDED = """
    UPDATE rlm_mem.files SET revision = revision + 1, size = size + %s, modified_at = statement_timestamp()
    WHERE ns = %s AND name = %s RETURNING revision
"""
_EXTEND_UNLOCKED = f"WITH file AS ({_EXTENDED}), {_NO_SYNC} {_PART}, quick RETURNING part"
_REMOVE = """
WITH parts AS (DELETE FROM rlm_mem.file_parts WHERE ns = %s AND name = %s)
DELETE FROM rlm_mem.files WHERE ns = %s AND name = %s RETURNING 1
"""
_READ = """
SELECT parts.data FROM rlm_mem.files LEFT JOIN rlm_mem.file_parts AS parts ON parts.ns = %s AND parts.name = files.name
WHERE files.ns = %s AND files.name = %s ORDER BY parts.part
"""
_READ_MANY = """
SELECT files.name, parts.data FROM rlm_mem.files
LEFT JOIN rlm_mem.file_parts AS parts ON parts.ns = %s AND parts.name = files.name
WHERE files.ns = %s AND files.name = ANY(%s) ORDER BY files.name, parts.part
"""
_LAST = """
SELECT part, data FROM rlm_mem.file_parts WHERE ns = %s AND name = %s AND part < %s ORDER BY part DESC LIMIT %s
"""
_LIST = """
SELECT name, size, modified_at, revision FROM rlm_mem.files
WHERE ns = %s AND name >= %s AND name < %s ORDER BY name
"""
_LIST_DESCENDING = _LIST.replace("ORDER BY name", "ORDER BY name DESC LIMIT %s")
_DAMAGED = """
SELECT coalesce(files.name, parts.name), files.size, parts.size, files.revision, parts.last
FROM (SELECT * FROM rlm_mem.files WHERE ns = %s) AS files
FULL JOIN (
    SELECT name, sum(octet_length(data)) AS size, max(part) AS last FROM rlm_mem.file_parts WHERE ns = %s GROUP BY name
) AS parts ON parts.name = files.name
WHERE files.size IS DISTINCT FROM parts.size OR files.revision IS DISTINCT FROM parts.last
ORDER BY 1 LIMIT 100
"""


class Database(Protocol):
    """The part of the backend that `PostgresFiles` uses; its methods are documented there."""

    @property
    def location(self) -> str: ...
    def check_writable(self) -> None: ...
    def rows(
        self, namespace: str, statement: str, values: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]: ...
    def change(
        self, namespace: str, statement: str, values: Sequence[object] = (), *, separately: bool = False
    ) -> list[tuple[Any, ...]]: ...
    def ensure_listed(self, namespace: str) -> None: ...
    def transaction(self, namespace: str) -> AbstractContextManager[WriteTransaction]: ...


class PostgresFiles:
    """`BrainFiles` of one namespace as rows; the protocol documents the methods.

    Args:
        database: the backend, whose connections and transactions are used.
        actor, clock: who changes files, and the current time, for change records.
    """

    transactional = True

    def __init__(
        self,
        database: Database,
        namespace: str,
        *,
        actor: str | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.namespace = namespace
        self.actor = actor
        self.clock = clock or utc_now
        self._database = database
        self._ns = namespace_key(namespace)

    # --- reading ---------------------------------------------------------------------------------------

    def read(self, name: str) -> bytes | None:
        rows = self._rows(_READ, self._ns, self._ns, _checked(name))
        return b"".join(bytes(data) for (data,) in rows if data is not None) if rows else None

    def contents(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for start in range(0, len(names), _FILES_PER_STATEMENT):
            lot = [_checked(name) for name in names[start : start + _FILES_PER_STATEMENT]]
            found: dict[str, list[bytes]] = {}
            for name, data in self._rows(_READ_MANY, self._ns, self._ns, lot):
                found.setdefault(name, []).append(b"" if data is None else bytes(data))
            yield from ((name, b"".join(found[name])) for name in lot if name in found)

    def read_from(self, name: str, offset: int) -> bytes:
        if offset >= 0:
            return (self.read(name) or b"")[offset:]
        # From as few parts as needed: a journal has thousands.
        found: list[bytes] = []
        before, lot = 2**31 - 1, 32
        while sum(map(len, found)) < -offset:
            rows = self._rows(_LAST, self._ns, _checked(name), before, lot)
            found += [bytes(data) for _, data in rows]
            if len(rows) < lot:
                break
            before, lot = int(rows[-1][0]), lot * 4
        return b"".join(reversed(found))[offset:]

    def exists(self, name: str) -> bool:
        return self.signature(name) is not None

    def names(self, folder: str, *, recursive: bool = False) -> list[str]:
        return list(self.signatures(folder, recursive=recursive))

    def everything(self, runs: Runs) -> list[str]:  # noqa: ARG002 - each row has its namespace
        return self.names("", recursive=True)

    def namespaces(self) -> list[str]:
        """Return nothing: the database lists every namespace."""
        return []

    def runs(self) -> Runs:
        """Return nothing: each row belongs to a namespace already."""
        return {}

    def signature(self, name: str) -> Signature | None:
        rows = self._rows(_LIST.replace("name < %s", "name <= %s"), self._ns, _checked(name), name)
        return _signature(*rows[0][1:]) if rows else None

    def signatures(self, folder: str, *, recursive: bool = False) -> dict[str, Signature]:
        if folder:
            start = _checked(folder) + "/"
            bounds = (start, folder + chr(ord("/") + 1))
        else:
            start, bounds = "", ("", "\U0010ffff")
        return {
            name: _signature(*more)
            for name, *more in self._rows(_LIST, self._ns, *bounds)
            if (recursive or "/" not in name[len(start) :]) and (folder or not name.startswith("index/"))
        }

    def last(self, folder: str, limit: int, *, before: str | None = None) -> dict[str, Signature]:
        first, end = f"{_checked(folder)}/", folder + chr(ord("/") + 1)
        rows = self._rows(
            _LIST_DESCENDING, self._ns, first, end if before is None else plain(min(end, before)), limit
        )
        return {name: _signature(*more) for name, *more in rows}

    # --- writing ---------------------------------------------------------------------------------------

    def transaction(self) -> AbstractContextManager[WriteTransaction]:
        return recording(self, self._database.transaction(self.namespace))

    @contextmanager
    def _changing(self, name: str) -> Iterator[None]:
        with self._database.transaction(self.namespace) as transaction:
            note_former(transaction, self, name)
            yield

    def write(self, name: str, data: bytes, *, durable: bool = True) -> None:  # noqa: ARG002 - the server decides
        self._writable(name)
        with self._changing(name):
            self._write(name, data)

    def create(self, name: str, data: bytes) -> bool:
        self._writable(name)
        values = (self._ns, name, len(data), self._ns, name, data)
        if name.startswith(_UNLOCKED):
            self._database.ensure_listed(self.namespace)
            return bool(self._database.change(self.namespace, _CREATE_UNLOCKED, values, separately=True))
        with self._changing(name):
            if self.exists(name):
                return False
            self._write(name, data)
        return True

    def append(self, name: str, data: bytes) -> None:
        self._writable(name)
        values = (self._ns, name, len(data), self._ns, name, data)
        if name.startswith(_UNLOCKED):
            self._database.ensure_listed(self.namespace)
            self._database.change(self.namespace, _APPEND_UNLOCKED, values, separately=True)
            return
        with self._changing(name):
            self._change(_APPEND, *values)

    def extend(self, name: str, data: bytes) -> bool:
        self._writable(name)
        values = (len(data), self._ns, name, self._ns, name, data)
        return bool(self._database.change(self.namespace, _EXTEND_UNLOCKED, values, separately=True))

    def remove(self, name: str) -> bool:
        self._writable(name)
        values = (self._ns, name, self._ns, name)
        if name.startswith(_UNLOCKED):
            return bool(self._database.change(self.namespace, _REMOVE, values, separately=True))
        with self._changing(name):
            return bool(self._change(_REMOVE, *values))

    def rename(self, old: str, new: str) -> None:
        self._writable(old)
        self._writable(new)
        with self._changing(old), self._changing(new):
            data = self.read(old)
            if data is None:
                raise StorageError(f"{self.where(old)} does not exist: it cannot be renamed")
            self._change(_REMOVE, self._ns, old, self._ns, old)
            self._write(new, data)  # last: it may be the same name

    def tidy(self) -> None:
        """Do nothing: a database has no unfinished files."""

    def path(self, name: str) -> Path | None:
        """Return None: files are rows."""
        _checked(name)
        return None

    def where(self, name: str) -> str:
        return f"{name} of {self.namespace} at {self._database.location}"

    # --- statements ------------------------------------------------------------------------------------

    def _write(self, name: str, data: bytes) -> None:
        parts = [data[start : start + PART] for start in range(0, max(1, len(data)), PART)]
        # Under the lock of the namespace: the deleted parts are all parts.
        key = self._ns, name
        self._change(_PUT, *key, len(parts), len(data), *key, *key, len(parts), parts)

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._database.rows(self.namespace, statement, values)

    def _change(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._database.change(self.namespace, statement, values)

    def _writable(self, name: str) -> None:
        _checked(name)
        self._database.check_writable()


def damaged_files(rows: Rows, namespace: str) -> Iterator[tuple[str, str]]:
    """Yield at most 100 files with missing or superfluous parts: name, and the problem."""
    ns = namespace_key(namespace)
    for name, size, actual, _, _ in rows(_DAMAGED, (ns, ns)):
        if size is None:
            yield name, "its parts are there, but no file of this name"
        else:
            yield (
                name,
                f"{int(actual or 0):,} bytes of {int(size):,} are there, or other parts than were written last",
            )


def _checked(name: str) -> str:
    """Return the name if it is allowed for a file; raises InputError."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{name!r:.80} is not valid Unicode text, so not the name of a file") from None
    return checked_name(name)


def _signature(size: int, modified_at: datetime, revision: int) -> Signature:
    return Signature(int(size), (modified_at - _EPOCH) // timedelta(microseconds=1) * 1000, int(revision))
