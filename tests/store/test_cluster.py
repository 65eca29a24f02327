"""What the database backend does for Citus, as far as a single server can show it; tools/on_server.sh runs the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from rlm_mem.cli import main
from rlm_mem.config import Config
from rlm_mem.errors import ServerAway, StorageError, StoreFull, StoreLocked, StoreReadOnly
from rlm_mem.store.core.chunk_store import ChunkStore
from tests.postgres import USER
from tests.waiting import takes, until

psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed")

from rlm_mem.store.postgres import pool as pools  # noqa: E402
from rlm_mem.store.postgres.backend import PostgresBackend  # noqa: E402
from rlm_mem.store.postgres.failures import is_lost, is_worker_lost, translated  # noqa: E402
from rlm_mem.store.postgres.pool import Pool  # noqa: E402
from rlm_mem.store.postgres.routes import Routes  # noqa: E402
from rlm_mem.store.postgres.schema import MIGRATIONS, namespace_key  # noqa: E402
from rlm_mem.store.postgres.transaction import PostgresTransaction  # noqa: E402

QUICK = Config.load(None, environ={}, store={"lock_wait_seconds": 0.3}, postgres={"reconnect_seconds": 3.0})
REFUSED = "connection to the remote node u@w2:5432 failed with the following error: Connection refused"


@pytest.fixture
def store(dsn: str) -> Iterator[ChunkStore]:
    """A store that takes its server for the coordinator of a cluster."""
    with ChunkStore(dsn, config=QUICK) as opened:
        cast(PostgresBackend, opened.backend).pool("default").distributed = True
        yield opened


def raised(dsn: str, code: str, message: str) -> Exception:
    """The error that a server raises with this code and message."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        quoted = message.replace("'", "''")
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(
                f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}', MESSAGE = '{quoted}',"
                " DETAIL = 'Key (t)=(No space left on device)'; END $$"
            )
        return caught.value


def test_an_error_of_a_worker_is_distinguished_from_a_lost_connection(dsn: str) -> None:
    away = [
        ("08006", REFUSED),
        ("XX000", "failure on connection marked as essential: w2:5432"),
        ("XX000", "could not commit transaction for shard 102009 on at least one active node"),
        ("58030", "failed to complete COPY on w2:5432"),
    ]
    for code, message in away:
        error = raised(dsn, code, message)
        told = translated(error, "the server")
        assert is_worker_lost(error), message
        assert isinstance(told, ServerAway) and message in told.message, told
    # What rows that are copied meet on a worker has lost its code on the way.
    without_code = {
        'could not extend file "base/5/1": No space left on device': StoreFull,
        "out of memory": StoreFull,
        "canceling statement due to lock timeout": StoreLocked,
        "permission denied for table chunks_102": StoreReadOnly,
    }
    for message, kind in without_code.items():
        assert type(translated(raised(dsn, "XX000", message), "the server")) is kind, message
    other = raised(dsn, "XX000", "something else")
    assert type(translated(other, "the server")) is StorageError, "details quote what was written"
    assert not is_worker_lost(other) and not is_lost(other)
    with psycopg.connect(dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as ended:
            connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        assert is_lost(ended.value) and not is_worker_lost(ended.value)


def test_an_absent_worker_is_asked_again_for_a_moment_and_then_reported(
    store: ChunkStore, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = raised(dsn, "08006", REFUSED)
    asked: list[int] = []

    def ask(connection: object, times: int) -> str:
        asked.append(1)
        if len(asked) <= times:
            raise error
        return "answered"

    pool = cast(PostgresBackend, store.backend).pool("default")
    assert pool.persist(lambda connection: ask(connection, 2)) == "answered"
    with pytest.raises(ServerAway, match="w2:5432") as caught:
        pool.persist(lambda connection: ask(connection, 10_000))
    assert caught.value.hint and "other servers" in caught.value.hint
    assert not any(connection.closed for _, connection in pool._idle), "the connections are sound"


def test_a_write_that_cannot_begin_since_a_server_is_away_says_that_nothing_was_changed(
    store: ChunkStore, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = cast(PostgresBackend, store.backend).pool("default")
    for state, kind in (("08006", ServerAway), ("57P01", StorageError)):
        error = raised(dsn, state, REFUSED if kind is ServerAway else "terminating connection")

        def away(work: object, *, keep: bool = False, error: Exception = error) -> None:
            raise translated(error, pool.shown)  # type: ignore[arg-type]

        with monkeypatch.context() as patched:
            patched.setattr(pool, "persist", away)
            with pytest.raises(kind, match=r"[^:]: nothing was changed(?:\n|$)"):
                store.create_chunk("The mast is of oak.")
        assert store.list_chunks() == []


def test_what_a_write_waits_for_its_server_is_part_of_its_wait_for_the_lock(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = Routes.of

    def late(self: Routes, namespace: str) -> Pool:
        takes(0.31)
        return of(self, namespace)

    monkeypatch.setattr(Routes, "of", late)
    with store.batch():
        writing = cast(PostgresBackend, store.backend).present
        assert writing is not None and writing.rows("SHOW lock_timeout") == [("1ms",)]


class Killed:
    """A connection that is lost at COMMIT, before the server hears of it or after."""

    def __init__(self, connection: Any, dsn: str, *, after: bool) -> None:
        self._connection, self._dsn, self._after = connection, dsn, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, *values: object) -> Any:
        if statement != "COMMIT":
            return self._connection.execute(statement, *values)
        with psycopg.connect(self._dsn, autocommit=True) as other:
            if self._after:
                self._connection.execute(statement)
                # In a pipeline it is sent, but perhaps not carried out yet.
                pid = (self._connection.info.backend_pid,)
                ended = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND backend_xid IS NULL"
                until(lambda: other.execute(ended, pid).fetchone(), "the end of the transaction")
            other.execute("SELECT pg_terminate_backend(%s::int, 5000)", (self._connection.info.backend_pid,))
        return self._connection.execute("SELECT 1")


@pytest.mark.parametrize("after", [True, False], ids=["after the server heard", "before the server heard"])
def test_on_a_cluster_the_audit_log_says_what_became_of_a_lost_commit(
    store: ChunkStore, dsn: str, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    begin = PostgresTransaction.begin
    store.create_chunk("Before.")

    def lose(self: PostgresTransaction, namespace: str, until: float) -> None:
        begin(self, namespace, until)
        self._connection = cast(Any, Killed(self._connection, dsn, after=after))

    monkeypatch.setattr(PostgresTransaction, "begin", lose)
    if after:
        store.create_chunk("Committed.")
        store.backend.files("default").write("archive/damaged/a.md", b"text")
    else:
        with pytest.raises(StorageError, match="nothing was changed"):
            store.create_chunk("Lost.")
        # Without a line of the audit log nobody can tell whether a worker has committed.
        with pytest.raises(StorageError, match="may have been made or not"):
            store.backend.files("default").write("archive/damaged/a.md", b"text")
    monkeypatch.undo()
    assert store.get_stats()["chunk_count"] == 1 + after


def test_the_list_of_namespaces_says_which_servers_it_could_not_ask(
    dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pools, "_FIRST_CONNECT_TIMEOUT", 0.1)
    with ChunkStore(dsn, namespace="near", config=QUICK) as store:
        store.create_chunk("Here.")
        absent = f"postgresql://{USER}@127.0.0.1:1/absent"
        with psycopg.connect(dsn) as connection:
            row = (namespace_key("far"), "far", absent)
            connection.execute("INSERT INTO rlm_mem.shards(ns, name, dsn) VALUES (%s, %s, %s)", row)
        with pytest.raises(ServerAway, match=r"127\.0\.0\.1:1/absent.* did not respond") as caught:
            store.namespaces()
        assert caught.value.namespaces == [("near", 1)]
    assert main(["--brain", dsn, "namespaces"]) == 1
    printed = capsys.readouterr()
    assert "near" in printed.out and "did not respond" in printed.err
    with ChunkStore(dsn, namespace="near", config=QUICK, confined=True) as confined:
        assert confined.namespaces() == [("near", 1)]
    with ChunkStore(dsn, namespace="other", config=QUICK, confined=True) as confined:
        with pytest.raises(ServerAway) as hidden:
            confined.namespaces()
        assert hidden.value.namespaces == []


def test_migrations_can_be_run_one_statement_at_a_time() -> None:
    statements = [one.strip() for script in MIGRATIONS for one in script.split(";\n")]
    assert [one for one in statements if ";" in one.removesuffix(";")] == []
