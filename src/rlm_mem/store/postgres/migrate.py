"""Makes or migrates the tables of a database; refuses a server that is too old and a schema that is too new."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from psycopg import errors

from rlm_mem.errors import StorageError, StoreReadOnly
from rlm_mem.store.postgres.failures import translated
from rlm_mem.store.postgres.schema import MIGRATIONS, SCHEMA_VERSION

__all__ = ["OLDEST_SERVER", "prepare"]

#: The oldest major version of the server.
OLDEST_SERVER = 15

_VERSION = "SELECT coalesce(max(version), 0) FROM rlm_mem.migrations"
_ATTEMPTS = 20  # when other programs make the same tables at the same moment


def prepare(connection: psycopg.Connection[Any], place: str, *, read_only: bool, wait_seconds: float) -> None:
    """Look at the server and make or migrate the tables, under a lock that two programs cannot hold at once.

    Raises:
        StorageError: the server or the schema cannot be used by this program.
    """
    _check_server(connection, place)
    version = _version(connection)
    if version is not None and version >= SCHEMA_VERSION:
        _check_version(version, place)
        return
    if read_only:
        raise StoreReadOnly(
            f"{place} holds no store of this version (schema {version or 0}, needed {SCHEMA_VERSION})",
            hint="open it once for writing, which makes the tables",
        )
    for attempt in range(_ATTEMPTS):
        try:
            _migrate(connection, place, wait_seconds)
            return
        except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateSchema):
            # Another program is making the same tables: they will be there in a moment.
            connection.execute("ROLLBACK")
            time.sleep(0.05 * (attempt + 1))
        except psycopg.Error as error:
            if not connection.closed:
                connection.execute("ROLLBACK")
            raise translated(error, place) from error
    raise StorageError(f"{place}: the tables could not be made", hint="try again in a moment")


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
            hint="make one with: createdb --encoding=UTF8 --template=template0 NAME",
        )


def _version(connection: psycopg.Connection[Any]) -> int | None:
    """The schema's version; None where there is no schema."""
    try:
        found = connection.execute(_VERSION).fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return None
    return int(found[0]) if found else None


def _check_version(version: int, place: str) -> None:
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"{place} has schema version {version}, this program knows versions up to {SCHEMA_VERSION}",
            hint="upgrade rlm-mem",
        )


def _migrate(connection: psycopg.Connection[Any], place: str, wait_seconds: float) -> None:
    connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    connection.execute(f"SET LOCAL lock_timeout = {max(1, round(wait_seconds * 1000))}")
    if connection.execute("SELECT to_regnamespace('rlm_mem')").fetchone() == (None,):
        connection.execute("CREATE SCHEMA rlm_mem")
    if connection.execute("SELECT to_regclass('rlm_mem.migrations')").fetchone() == (None,):
        connection.execute(
            "CREATE TABLE rlm_mem.migrations("
            "version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
        )
    # Reading the version is not blocked; a second migration waits here, and then has nothing to do.
    connection.execute("LOCK TABLE rlm_mem.migrations IN SHARE ROW EXCLUSIVE MODE")
    version = _version(connection) or 0
    _check_version(version, place)
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        connection.execute(script.encode())  # several statements in one: the simple protocol takes them
        connection.execute("INSERT INTO rlm_mem.migrations(version) VALUES (%s)", (number,))
    connection.execute("COMMIT")
