"""Translates errors of the database and the network to the project's own, each with a remedy."""

from __future__ import annotations

from fnmatch import fnmatchcase

from psycopg import Error, OperationalError, errors

from rlm_mem.errors import (
    ConflictError,
    CorruptStore,
    InputError,
    ServerAway,
    StorageError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
)

#: Parts of messages about refused connections that a retry cannot fix, with the remedy for each. The first match
#: counts; ``*`` is a wildcard for a name.
PERMANENT = {
    "password authentication failed": "check user and password of the DSN (PGPASSWORD and ~/.pgpass work too)",
    "no password supplied": "give a password in the DSN, in PGPASSWORD or in ~/.pgpass",
    "authentication failed": "check user and authentication of the DSN",
    "no pg_hba.conf entry": "let the server's pg_hba.conf admit this user and address",
    'role "*" does not exist': "create it (createuser NAME), or name an existing user in the DSN",
    "is not permitted to log in": "ALTER ROLE NAME LOGIN, or name another user in the DSN",
    "does not exist": "create it (createdb NAME), or name an existing one in the DSN",
    "permission denied for database": "GRANT CONNECT ON DATABASE … TO the user of the DSN",
    "does not support ssl": "use sslmode=prefer, or let the server offer SSL",
    "certificate": "check sslmode and sslrootcert of the DSN",
    "invalid * value": "correct this option of the DSN",
    "invalid port number": "correct the port of the DSN",
    "unsupported startup parameter": "leave `options` out of the DSN: the pooler does not pass it on",
}

RIGHTS = "GRANT the user of the DSN the rights named in docs/spec/postgresql.md"
"""What to do for a user who may not write."""

#: Messages of Citus when it cannot reach a worker; they have no code of their own.
_WORKER_LOST = ("failure on connection marked as essential", "could not commit transaction for shard")
_BY_WORKER = "while executing command on"

#: Messages of a worker while rows are copied to it: Citus passes them on without their code.
_WITHOUT_CODE: dict[str, type[Error]] = {
    "no space left on device": errors.DiskFull,
    "could not extend file": errors.DiskFull,
    "could not write to file": errors.DiskFull,
    "out of memory": errors.OutOfMemory,
    "due to lock timeout": errors.LockNotAvailable,
    "deadlock detected": errors.DeadlockDetected,
    "permission denied": errors.InsufficientPrivilege,
    "in a read-only transaction": errors.ReadOnlySqlTransaction,
    "due to statement timeout": errors.QueryCanceled,
    "exceeds btree version": errors.ProgramLimitExceeded,
}


def is_worker_lost(error: BaseException) -> bool:
    """Return whether the server cannot reach a worker of its cluster; the connection to the server itself is intact."""
    if not isinstance(error, Error) or error.diag.severity_nonlocalized != "ERROR":
        return False
    state = error.sqlstate or ""
    if state.startswith("08"):
        return True
    text = error.diag.message_primary or ""
    if state == "58030":
        return "failed to complete COPY on" in text
    if state == "XX000" and any(sign in text for sign in _WORKER_LOST):
        return True
    # From a worker that is shutting down or has closed the connection.
    ended = state.startswith("57P") or (state == "XX000" and "server closed the connection" in text)
    return ended and _BY_WORKER in (error.diag.context or "")


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is broken or leads to a read-only server: a new one may reach another server."""
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return True
    if isinstance(error, errors.PipelineAborted):  # an earlier statement is the one that failed
        return False
    if not isinstance(error, OperationalError | errors.IdleInTransactionSessionTimeout):
        return False
    # Without an SQLSTATE the error is the client library's: the connection broke. 57P: the server is shutting down
    # or starting (57014, a cancelled statement, is no loss).
    state = error.sqlstate
    return state is None or state[:2] == "08" or state[:3] == "57P" or state == "25P03"


def refused(error: BaseException, place: str) -> StorageError | None:
    """Return the error for a refused connection, or None if a retry may help."""
    text = _first_line(error)
    lowered = text.lower()
    for sign, hint in PERMANENT.items():
        if fnmatchcase(lowered, f"*{sign}*"):
            return StorageError(f"{place} refuses the connection: {text}", hint=hint)
    return None


def translated(error: Error, place: str) -> Exception:
    """Return the project's own exception for an error of the database."""
    text = _first_line(error)
    if is_worker_lost(error):
        return ServerAway(
            f"a server of the cluster behind {place} is unavailable: {text}",
            hint="retry when it is back; namespaces on other servers can be used meanwhile",
        )
    error_class = _error_class(error)
    if issubclass(error_class, errors.LockNotAvailable | errors.DeadlockDetected):
        hint = "retry in a moment"
        if _BY_WORKER in (error.diag.context or ""):
            hint += "; after a worker died, its last commits hold locks for up to citus.recover_2pc_interval"
        return StoreLocked(f"{place}: another process holds the write lock: nothing was changed", hint=hint)
    if issubclass(error_class, errors.SerializationFailure):
        return ConflictError(f"{place}: another process wrote at the same moment: {text}", hint="retry")
    if issubclass(error_class, errors.DiskFull | errors.OutOfMemory):
        return StoreFull(f"{place}: {text}: nothing was changed", hint="free some space and retry")
    if issubclass(error_class, errors.InsufficientPrivilege):
        return StoreReadOnly(f"{place}: {text}", hint=RIGHTS)
    if issubclass(error_class, errors.ReadOnlySqlTransaction):
        return StoreReadOnly(
            f"{place} is currently read-only: {text}",
            hint="connect to the primary: target_session_attrs=read-write",
        )
    if issubclass(error_class, errors.DataCorrupted | errors.IndexCorrupted):
        return CorruptStore(f"{place}: {text}", hint="restore the database from a backup")
    if issubclass(error_class, errors.UndefinedTable | errors.UndefinedColumn | errors.InvalidSchemaName):
        return CorruptStore(
            f"{place}: {text}", hint="the tables of RLM-MEM were altered by hand: restore them from a backup"
        )
    if issubclass(error_class, errors.ProgramLimitExceeded):
        return InputError(
            f"{place}: a name is too long for its index: {text}: nothing was changed",
            hint="the id of a conversation can have about 2,600 bytes",
        )
    if issubclass(error_class, errors.QueryCanceled):
        return StorageError(
            f"{place}: {text}", hint="raise statement_timeout of the database's user, and retry"
        )
    if is_lost(error):
        return StorageError(
            f"the connection to {place} was lost: {text}", hint="retry when the server is back"
        )
    return StorageError(f"{place}: {text}")


def _error_class(error: Error) -> type[Error]:
    """Return the class of an error; one that lost its code on the way from a worker is recognised by its message."""
    if error.sqlstate == "XX000":
        text = (error.diag.message_primary or "").lower()  # not its details, which quote the written data
        return next((kind for sign, kind in _WITHOUT_CODE.items() if sign in text), type(error))
    return type(error)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # With several hosts the last line is about the last attempt; for a failed statement the first line has the
    # error.
    if not lines:
        return type(error).__name__
    return lines[-1] if lines[0].lower().startswith("connection failed") and len(lines) > 1 else lines[0]
