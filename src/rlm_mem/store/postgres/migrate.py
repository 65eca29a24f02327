"""Creates or migrates the tables of a database; refuses a server that is too old and a schema that is too new."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import errors

from rlm_mem.config import Config
from rlm_mem.errors import StorageError, StoreReadOnly
from rlm_mem.store.postgres.failures import translated
from rlm_mem.store.postgres.pool import Pool
from rlm_mem.store.postgres.schema import LOCAL_TABLES, MIGRATIONS, SCHEMA_VERSION, SET_ON_WORKERS, TABLES

#: The oldest supported major version of the server.
OLDEST_SERVER = 15

#: How long to wait for a worker of the cluster (seconds): a restart takes less.
_WORKER_SECONDS = 2.0

_SPREAD = (
    "SELECT c.relname FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'rlm_mem'"
)
VERSION = "SELECT coalesce(max(version), 0) FROM rlm_mem.migrations"
#: Only one program at a time creates or migrates the tables of a database. The number is that of no other program.
_LOCK = "SELECT pg_advisory_xact_lock(7215031860477192031)"


def opened(dsn: str, config: Config, *, read_only: bool = False) -> Pool:
    """Return connections to a database, whose tables are created or migrated if needed.

    Raises:
        StorageError: no server answers, or this program cannot use the server or its schema.
    """
    wait = config.store.lock_wait_seconds
    pool = Pool(dsn, config.postgres, worker_seconds=min(_WORKER_SECONDS, wait / 2))

    def prepare(connection: psycopg.Connection[Any]) -> bool:
        _prepare(connection, pool.shown, read_only=read_only, wait_seconds=wait)
        return _is_distributed(connection)

    pool.distributed = pool.persist(prepare)
    return pool


def _prepare(
    connection: psycopg.Connection[Any], place: str, *, read_only: bool, wait_seconds: float
) -> None:
    """Check the server, and create or migrate the tables under a lock that only one program can hold.

    In a database with the extension Citus the tables are distributed when they are created.

    Raises:
        StorageError: the server or the schema cannot be used by this program.
    """
    _check_server(connection, place)
    version = _version(connection)
    if version is not None and version >= SCHEMA_VERSION:
        check_version(version, place)
        return
    if read_only:
        raise StoreReadOnly(
            f"{place} has no store of this version (schema {version or 0}, needed {SCHEMA_VERSION})",
            hint="open it once for writing, which creates the tables",
        )
    try:
        _migrate(connection, place, wait_seconds)
    except psycopg.Error as error:
        if not connection.closed:
            connection.execute("ROLLBACK")
        raise translated(error, place) from error


def _check_server(connection: psycopg.Connection[Any], place: str) -> None:
    major = connection.info.server_version // 10000
    if major < OLDEST_SERVER:
        raise StorageError(
            f"{place} runs PostgreSQL {major}: version {OLDEST_SERVER} or later is needed",
            hint="upgrade the server, or name another one in the DSN",
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in ("UTF8", None):
        raise StorageError(
            f"the database of {place} is encoded in {encoding}: UTF8 is needed",
            hint="create one with: createdb --encoding=UTF8 --template=template0 NAME",
        )


def _version(connection: psycopg.Connection[Any]) -> int | None:
    """Return the schema's version; None if there is no schema."""
    try:
        found = connection.execute(VERSION).fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return None
    return int(found[0]) if found else None


def check_version(version: int, place: str) -> None:
    """Raise StorageError if the schema is of a later version of this program."""
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"{place} has schema version {version}, this program knows versions up to {SCHEMA_VERSION}",
            hint="upgrade rlm-mem",
        )


def _migrate(connection: psycopg.Connection[Any], place: str, wait_seconds: float) -> None:
    wait = f"SET LOCAL lock_timeout = {max(1, round(wait_seconds * 1000))}"
    begin = "BEGIN ISOLATION LEVEL READ COMMITTED", wait, _LOCK
    for statement in begin:
        connection.execute(statement)
    if connection.execute("SELECT to_regnamespace('rlm_mem')").fetchone() == (None,):
        # Committed first: on a cluster, tables are created on other connections, which must see the schema.
        for statement in ("CREATE SCHEMA rlm_mem", "COMMIT", *begin):
            connection.execute(statement)
    if connection.execute("SELECT to_regclass('rlm_mem.migrations')").fetchone() == (None,):
        connection.execute(
            "CREATE TABLE rlm_mem.migrations("
            "version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
        )
    # Reading the version is not blocked; a migration by a program without `_LOCK` waits here, as this one waits for it.
    connection.execute("LOCK TABLE rlm_mem.migrations IN SHARE ROW EXCLUSIVE MODE")
    version = _version(connection) or 0
    check_version(version, place)
    distributed = _has_citus(connection) if version == 0 else _is_distributed(connection)
    if version and not distributed:
        # Wait for the writers; those that wait meanwhile look at the version again.
        connection.execute("LOCK TABLE rlm_mem.namespaces IN EXCLUSIVE MODE")
    if distributed:  # the workers are changed one after the other, with the same limit on waiting for a lock
        connection.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
        connection.execute(SET_ON_WORKERS)
        connection.execute(wait)
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        for statement in script.split(";\n"):  # one by one: Citus accepts only one at a time
            if statement.strip():
                connection.execute(statement.encode())
        connection.execute("INSERT INTO rlm_mem.migrations(version) VALUES (%s)", (number,))
    if distributed:
        _distribute(connection)
    connection.execute("COMMIT")


def _has_citus(connection: psycopg.Connection[Any]) -> bool:
    return bool(connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchall())


def _is_distributed(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the tables are spread over a cluster; having the extension is not enough."""
    return _has_citus(connection) and bool(connection.execute(_SPREAD).fetchall())


def _distribute(connection: psycopg.Connection[Any]) -> None:
    """Distribute tables that are not distributed yet over the cluster, by namespace."""
    spread = {name for (name,) in connection.execute(_SPREAD).fetchall()}
    for name in TABLES:
        if name not in spread:
            beside = "" if name == TABLES[0] else f", colocate_with => 'rlm_mem.{TABLES[0]}'"
            connection.execute(f"SELECT create_distributed_table('rlm_mem.{name}', 'ns'{beside})")
    for name in LOCAL_TABLES:
        if name not in spread:
            connection.execute(f"SELECT create_reference_table('rlm_mem.{name}')")
