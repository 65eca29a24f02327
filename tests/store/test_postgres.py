"""The PostgreSQL backend by itself: tables, locks, lost connections, and its error messages."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, cast
from unittest.mock import Mock

import psycopg
import pytest

from rlm_mem import Memory
from rlm_mem.chunk import Chunk
from rlm_mem.config import Config, StoreConfig
from rlm_mem.errors import (
    ConflictError,
    CorruptStore,
    InputError,
    InvalidConfig,
    InvalidQuery,
    NamespaceError,
    StorageError,
    StoreClosed,
    StoreLocked,
    StoreReadOnly,
)
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from rlm_mem.store.core.recent import Recent
from rlm_mem.store.postgres import backend, lookup, migrate, pool, routes
from rlm_mem.store.postgres.backend import PostgresBackend
from rlm_mem.store.postgres.rows import PostgresRowWriter
from rlm_mem.store.postgres.schema import LOCAL_TABLES, MIGRATIONS, SCHEMA_VERSION, TABLES, namespace_key
from rlm_mem.store.postgres.transaction import PostgresTransaction
from rlm_mem.store.postgres.values import ListDumper
from tests.forked import forked
from tests.postgres import PASSWORD, USER, Databases, GivenServer
from tests.typed import postgres
from tests.waiting import takes, until

QUICK = Config.load(
    None, environ={}, store={"lock_wait_seconds": 0.3}, postgres={"reconnect_seconds": 3.0, "pool_size": 4}
)


PATIENT = Config.load(None, environ={}, store={"lock_wait_seconds": 20.0})


@pytest.fixture
def store(dsn: str) -> Iterator[ChunkStore]:
    """An empty store in a database."""
    with ChunkStore(dsn, config=QUICK) as opened:
        yield opened


def sql(dsn: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement as somebody else would, by hand."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def backend_of(store: ChunkStore) -> PostgresBackend:
    return cast(PostgresBackend, store.backend)


def holding(dsn: str, namespace: str = "default") -> psycopg.Connection[Any]:
    """A connection that holds the write lock of a namespace until it is closed."""
    connection = psycopg.connect(dsn)
    connection.execute(
        "SELECT 1 FROM rlm_mem.namespaces WHERE ns = %s FOR NO KEY UPDATE", (namespace_key(namespace),)
    )
    return connection


# --- tables ------------------------------------------------------------------------------------------------


def test_every_key_and_every_index_begins_with_the_namespace(store: ChunkStore, dsn: str) -> None:
    indexes = sql(
        dsn,
        "SELECT c.relname, i.relname, a.attname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid"
        " JOIN pg_class c ON c.oid = x.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
        " LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = x.indkey[0] WHERE n.nspname = 'rlm_mem'",
    )
    of_namespaces = [row for row in indexes if row[0] not in LOCAL_TABLES]
    assert {table for table, _, _ in of_namespaces} == set(TABLES), "each table has a key"
    assert {index: first for _, index, first in of_namespaces if first != "ns"} == {}


def test_no_table_refers_to_another_and_all_are_known(store: ChunkStore, dsn: str) -> None:
    tables = sql(dsn, "SELECT tablename FROM pg_tables WHERE schemaname = 'rlm_mem'")
    assert {name for (name,) in tables} == {*TABLES, *LOCAL_TABLES}
    foreign = (
        "SELECT conname FROM pg_constraint WHERE contype = 'f' AND connamespace = 'rlm_mem'::regnamespace"
    )
    assert sql(dsn, foreign) == [], "foreign keys across a distribution would have to be colocated"


def documented(heading: str) -> str:
    """The SQL below a heading of docs/spec/postgresql.md."""
    text = (Path(__file__).parents[2] / "docs" / "spec" / "postgresql.md").read_text(encoding="utf-8")
    return text.split(f"## {heading}\n")[1].split("```sql\n")[1].split("```")[0]


def test_the_statements_for_citus_name_every_table_and_colocate_it() -> None:
    statements = documented("Citus").splitlines()
    first, *rest = (f"SELECT create_distributed_table('rlm_mem.{name}', 'ns'" for name in TABLES)
    expected = {f"{first});", *(f"{one}, colocate_with => 'rlm_mem.namespaces');" for one in rest)}
    assert set(statements) == expected | {f"SELECT create_reference_table('rlm_mem.{LOCAL_TABLES[0]}');"}


def test_tables_partitioned_as_documented_work_like_whole_ones(databases: Databases) -> None:
    name = databases.make()
    dsn = databases.server.dsn(name)
    try:
        with ChunkStore(dsn, config=QUICK) as store:
            kept = store.create_chunk("A walnut from before.", tags=["nut"], conversation_id="c")
            store.get_chunk(kept.id)
        sql(dsn, documented("Partitions").replace(":= 8", ":= 4"))  # fewer, for a quick test
        for namespace in ("default", "a", "b"):
            with ChunkStore(dsn, namespace=namespace, config=QUICK) as store:
                with store.batch():
                    ids = [store.create_chunk(f"Walnut number {n}.", tags=["nut"]).id for n in range(55)]
                store.update_chunk(ids[0], content="No nut.")
                store.delete_chunk(ids[1])
                store.restore_chunk(ids[1])
                store.delete_chunk(ids[2], permanent=True)
                store.get_chunk(ids[3])
                with Memory(store) as memory:
                    assert len(memory.search("walnut", limit=5)) == 5
                assert check(ChunkStore(dsn, namespace=namespace, config=QUICK)) == []
        spread = sql(dsn, "SELECT count(DISTINCT tableoid) FROM rlm_mem.chunks")
        assert spread[0][0] > 1, "namespaces lie in different partitions"
    finally:
        databases.drop(name)


def test_lists_arrive_as_they_are_whatever_their_texts_hold(dsn: str) -> None:
    texts = [
        '"',
        "\\",
        'a"b\\',
        "",
        " ",
        "null",
        "NULL",
        "{a,b}",
        ",",
        "'",
        "é\u2028漢\U0001f600",
        "a\tb\nc",
        "%s",
    ]
    with psycopg.connect(dsn) as connection:
        connection.adapters.register_dumper(list, ListDumper)

        def sent(kind: str, values: list[Any]) -> Any:
            return connection.execute(f"SELECT %s::{kind}[]", (values,)).fetchone()

        for some in (texts, *([one] for one in texts), ["plain", "words"], [], [None, "a"], [["a"], ['"']]):
            assert sent("text", some) == (some,)
        assert sent("int8", [1, -5, 2**40]) == ([1, -5, 2**40],)
        assert sent("bool", [True, False]) == ([True, False],)
        with pytest.raises(psycopg.DataError, match="NUL"):
            sent("text", ["a", "b\0c"])


def test_the_key_of_a_namespace_depends_on_its_name_alone() -> None:
    assert namespace_key("default") == -101136948824460382
    assert namespace_key("a") != namespace_key("b")
    assert -(2**63) <= namespace_key("agent/project/user") < 2**63


def test_tables_are_made_once_however_many_programs_open_an_empty_database_at_once(
    databases: Databases,
) -> None:
    name = databases.make()
    dsn = databases.server.dsn(name)
    try:
        with ThreadPoolExecutor(8) as threads:
            opened = list(threads.map(lambda _: ChunkStore(dsn, config=PATIENT), range(8)))
        for one in opened:
            one.close()
        versions = [(number,) for number in range(1, SCHEMA_VERSION + 1)]
        assert sql(dsn, "SELECT version FROM rlm_mem.migrations ORDER BY version") == versions
    finally:
        databases.drop(name)


def test_a_newer_schema_is_refused_and_left_as_it_is(databases: Databases) -> None:
    name = databases.make()
    dsn = databases.server.dsn(name)
    try:
        ChunkStore(dsn, config=QUICK).close()
        sql(dsn, "INSERT INTO rlm_mem.migrations(version) VALUES (%s)", SCHEMA_VERSION + 1)
        with pytest.raises(StorageError, match=f"schema version {SCHEMA_VERSION + 1}") as caught:
            ChunkStore(dsn, config=QUICK)
        assert caught.value.hint == "upgrade rlm-mem"
    finally:
        databases.drop(name)


def test_an_older_schema_is_brought_up_to_date_by_one_program_while_the_others_wait(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = databases.make()
    dsn = databases.server.dsn(name)
    try:
        with ChunkStore(dsn, config=QUICK) as store:
            chunk = store.create_chunk("Written by the older program.")
        later = "CREATE TABLE rlm_mem.later(ns bigint PRIMARY KEY); SELECT pg_sleep(0.1)"
        monkeypatch.setattr(migrate, "MIGRATIONS", (*MIGRATIONS, later))
        monkeypatch.setattr(migrate, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
        with ThreadPoolExecutor(6) as threads:
            opened = list(threads.map(lambda _: ChunkStore(dsn, config=PATIENT), range(6)))
        assert all(one.get_chunk(chunk.id) for one in opened)
        for one in opened:
            one.close()
        assert sql(dsn, "SELECT max(version), count(*) FROM rlm_mem.migrations") == [
            (SCHEMA_VERSION + 1,) * 2
        ]
        monkeypatch.setattr(
            migrate, "MIGRATIONS", (*MIGRATIONS, later, "CREATE TABLE rlm_mem.x(ns int); SELECT nonsense")
        )
        monkeypatch.setattr(migrate, "SCHEMA_VERSION", SCHEMA_VERSION + 2)
        with pytest.raises(StorageError, match="nonsense"):
            ChunkStore(dsn, config=QUICK)
        assert sql(dsn, "SELECT to_regclass('rlm_mem.x'), max(version) FROM rlm_mem.migrations") == [
            (None, SCHEMA_VERSION + 1)
        ], "a migration that fails leaves nothing behind"
    finally:
        databases.drop(name)


def test_a_server_that_is_too_old_and_a_database_that_cannot_hold_every_text_are_refused(
    databases: Databases, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "OLDEST_SERVER", 99)
    with pytest.raises(StorageError, match="version 99 or later is needed"):
        ChunkStore(dsn, config=QUICK)
    monkeypatch.undo()
    databases.server.sql(
        f"CREATE DATABASE latin OWNER {USER} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"
    )
    try:
        with pytest.raises(StorageError, match="UTF8 is needed"):
            ChunkStore(databases.server.dsn("latin"), config=QUICK)
    finally:
        databases.drop("latin")


def test_a_role_with_the_documented_rights_can_write_and_one_that_may_only_read_can_read(
    databases: Databases, caplog: pytest.LogCaptureFixture
) -> None:
    name = databases.make()
    dsn = databases.server.dsn(name)
    rights = (Path(__file__).parents[2] / "docs" / "spec" / "postgresql.md").read_text(encoding="utf-8")
    grants = rights.split("Other programs need only:")[1].split("```sql\n")[1].split("```")[0]
    try:
        ChunkStore(dsn, config=QUICK).close()
        databases.server.sql("CREATE ROLE app LOGIN")
        databases.server.sql("CREATE ROLE guest LOGIN")
        sql(dsn, grants)
        with ChunkStore(databases.server.dsn(name, "app"), config=QUICK) as store:
            chunk = store.create_chunk("Written with few rights.", tags=["t"])
            store.update_chunk(chunk.id, content="And changed.")
            store.get_chunk(chunk.id)
        sql(
            dsn,
            "GRANT USAGE ON SCHEMA rlm_mem TO guest; GRANT SELECT ON ALL TABLES IN SCHEMA rlm_mem TO guest",
        )
        with ChunkStore(databases.server.dsn(name, "guest"), config=QUICK, read_only=True) as store:
            assert store.get_chunk(chunk.id) is not None
        sql(dsn, "UPDATE rlm_mem.namespaces SET analysis = '1:english'")  # as before an upgrade
        with Memory.open(databases.server.dsn(name, "guest"), config=QUICK) as memory:
            assert [hit.chunk_id for hit in memory.search("changed")] == [chunk.id]
            assert memory.recall("What was changed?").chunk_ids
            with pytest.raises(StoreReadOnly, match="opened read-only"):
                memory.remember("Not allowed.")
        assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
            "this user may only read; it is opened for reading only: reads are not counted and recalls not recorded",
            "the terms of default are of another version, so searches may miss words",
        ]
    finally:
        databases.drop(name)
        for role in ("app", "guest"):
            databases.server.sql(f"DROP ROLE IF EXISTS {role}")


def test_read_only_makes_no_tables_and_writes_nothing(databases: Databases, dsn: str) -> None:
    name = databases.make()
    try:
        with pytest.raises(StoreReadOnly, match="has no store"):
            ChunkStore(databases.server.dsn(name), config=QUICK, read_only=True)
        assert sql(databases.server.dsn(name), "SELECT to_regnamespace('rlm_mem')") == [(None,)]
    finally:
        databases.drop(name)
    with ChunkStore(dsn, config=QUICK) as writer:
        chunk = writer.create_chunk("Kept.")
    with ChunkStore(dsn, config=QUICK, read_only=True) as reader:
        assert reader.get_chunk(chunk.id) is not None
        with pytest.raises(StoreReadOnly):
            reader.create_chunk("Refused.")
    assert sql(dsn, "SELECT count(*) FROM rlm_mem.reads") == [(0,)], "nor is the read counted"


# --- locks and revisions -----------------------------------------------------------------------------------


def test_a_writer_waits_for_the_lock_of_its_namespace_and_then_says_so(store: ChunkStore, dsn: str) -> None:
    store.create_chunk("First.")
    with holding(dsn):
        began = time.monotonic()
        with pytest.raises(StoreLocked, match="nothing was changed"):
            store.create_chunk("Second.")
        assert time.monotonic() - began < 60, "it would wait for ever"
        assert store.get_stats()["chunk_count"] == 1, "readers do not wait"
        with ChunkStore(dsn, namespace="other", config=QUICK) as other:
            other.create_chunk("Namespaces do not wait for each other.")
    store.create_chunk("Second.")
    assert store.get_stats()["chunk_count"] == 2


def test_no_lock_outlives_the_process_that_held_it(store: ChunkStore, dsn: str) -> None:
    store.create_chunk("First.")
    held = holding(dsn)
    sql(dsn, "SELECT pg_terminate_backend(%s::int)", held.info.backend_pid)
    store.create_chunk("Second.")
    held.close()


def test_a_writer_that_ignores_the_lock_is_found_out_by_the_revision(store: ChunkStore, dsn: str) -> None:
    chunk = store.create_chunk("Ours.")
    with pytest.raises(ConflictError), store.batch():
        row = store.backend.find("default", chunk.id)
        assert row is not None
        changed = store.backend.read(row)
        assert changed is not None
        changed.tags, changed.revision = ["mine"], 2
        transaction = cast(PostgresTransaction, backend_of(store).present)
        transaction.put(changed)
        # Somebody else's statement, without the lock, on a row that this transaction has only read so far.
        sql(dsn, "UPDATE rlm_mem.chunks SET revision = 7 WHERE id = %s", chunk.id)
    sql(dsn, "UPDATE rlm_mem.chunks SET revision = 1 WHERE id = %s", chunk.id)
    assert cast(Chunk, store.get_chunk(chunk.id)).tags == []
    assert check(store) == []


def test_two_updates_of_one_revision_cannot_both_win(store: ChunkStore, dsn: str) -> None:
    chunk = store.create_chunk("Contested.")
    outcomes: list[str] = []

    def change(number: int) -> None:
        with ChunkStore(dsn, config=PATIENT) as mine:
            try:
                mine.update_chunk(chunk.id, tags=[f"t{number}"], expected_revision=1)
                outcomes.append("won")
            except ConflictError:
                outcomes.append("lost")

    threads = [threading.Thread(target=change, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["lost"] * 5 + ["won"]


def test_a_batch_over_two_namespaces_appears_as_one(store: ChunkStore, dsn: str) -> None:
    with pytest.raises(RuntimeError), store.batch():
        store.create_chunk("Here.")
        store.create_chunk("There.", namespace="other")
        raise RuntimeError
    with store.batch():
        store.create_chunk("Here.")
        store.create_chunk("There.", namespace="other")
    assert store.namespaces() == [("default", 1), ("other", 1)]


def test_the_same_id_may_be_used_in_two_namespaces(store: ChunkStore, dsn: str) -> None:
    store.create_chunk("Ours.", chunk_id="chunk-001")
    with ChunkStore(dsn, namespace="other", config=QUICK, confined=True) as other:
        assert other.get_chunk("chunk-001") is None
        other.create_chunk("Theirs.", chunk_id="chunk-001")
        assert other.delete_chunk("chunk-001", permanent=True)
    assert cast(Chunk, store.get_chunk("chunk-001")).content == "Ours."


def test_two_names_with_one_key_are_never_mixed(store: ChunkStore, dsn: str) -> None:
    store.create_chunk("Ours.")
    sql(dsn, "UPDATE rlm_mem.namespaces SET name = 'somebody/else'")
    with ChunkStore(dsn, config=QUICK) as fresh:
        with pytest.raises(CorruptStore, match="same key"):
            fresh.create_chunk("Mixed.")
        with pytest.raises(CorruptStore, match="same key"):
            fresh.list_chunks()


# --- moved elsewhere ---------------------------------------------------------------------------------------


def test_a_namespace_that_moved_is_followed_by_writers_at_once_and_by_readers_within_a_second(
    store: ChunkStore, dsn: str, databases: Databases
) -> None:
    chunk = store.create_chunk("Before the move.")
    with databases.lend() as elsewhere, ChunkStore(elsewhere, config=QUICK) as there:
        there.adopt(chunk)
        sql(dsn, "UPDATE rlm_mem.namespaces SET state = 'moved', moved_to = %s", elsewhere)
        store.create_chunk("After the move.")
        assert there.get_stats()["chunk_count"] == 2
        with ChunkStore(dsn, config=QUICK) as reader:
            assert reader.get_stats()["chunk_count"] == 2
        assert store.namespaces() == [], "what has moved is not listed where it was"


def test_a_batch_cannot_span_two_servers(store: ChunkStore, dsn: str, databases: Databases) -> None:
    with databases.lend() as elsewhere:
        ChunkStore(elsewhere, config=QUICK).close()
        sql(
            dsn,
            "INSERT INTO rlm_mem.shards(ns, name, dsn) VALUES (%s, 'far', %s)",
            namespace_key("far"),
            elsewhere,
        )
        with pytest.raises(NamespaceError, match="another server"), store.batch():
            store.create_chunk("Near.")
            store.create_chunk("Far.", namespace="far")
        store.create_chunk("Far.", namespace="far")
    assert store.get_stats()["chunk_count"] == 0


# --- connections -------------------------------------------------------------------------------------------


def end_connections(databases: Databases, dsn: str) -> None:
    """What a restart of the server does to everybody who is connected."""
    name = dsn.rsplit("/", 1)[1].split("?")[0]
    databases.server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
        name,
    )


def connected(dsn: str) -> set[object]:
    """The processes of the server that serve others in a database."""
    asked = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return {row[0] for row in sql(dsn, asked)}


def _ended(dsn: str) -> int:
    """Open a store and close it; how many connections have ended then."""
    before = connected(dsn)
    with ChunkStore(dsn) as store:
        store.create_chunk("One.")
        opened = connected(dsn) - before
    until(lambda: not connected(dsn) & opened, "the end of the connections")
    return len(opened)


def test_a_store_that_is_closed_leaves_no_connection(dsn: str) -> None:
    """In another process, since stores of this one take over the connections of earlier ones."""
    (found,) = forked(_ended, dsn)
    assert found > 0


def test_the_connection_of_a_closed_store_is_used_by_the_next_one_with_the_settings_of_a_new_one(
    databases: Databases, dsn: str
) -> None:
    if isinstance(databases.server, GivenServer):
        pytest.skip("connections are kept to a server of the run's own")
    asked = "SELECT pg_backend_pid(), current_setting('lock_timeout')"
    with ChunkStore(dsn) as store:
        ((process, timeout),) = postgres(store.backend).rows("default", asked)
        postgres(store.backend).rows("default", "SELECT set_config('lock_timeout', '7s', false)")
    with ChunkStore(dsn) as store:
        assert postgres(store.backend).rows("default", asked) == [(process, timeout)]
    end_connections(databases, dsn)
    with ChunkStore(dsn) as store:
        assert store.get_stats()["chunk_count"] == 0, "one that was ended is not used again"


def test_reads_and_writes_go_on_after_their_connections_were_ended(
    store: ChunkStore, dsn: str, databases: Databases
) -> None:
    chunk = store.create_chunk("Before.")
    end_connections(databases, dsn)
    assert store.get_chunk(chunk.id) is not None
    end_connections(databases, dsn)
    store.create_chunk("After.")
    end_connections(databases, dsn)
    store.record_event("recall", [chunk.id])
    assert [event["op"] for event in store.events()] == ["create", "create", "recall"]


def test_a_loss_in_the_middle_of_a_batch_changes_nothing_and_says_so(
    store: ChunkStore, dsn: str, databases: Databases
) -> None:
    with pytest.raises(StorageError, match="nothing was changed"), store.batch():
        store.create_chunk("One.")
        end_connections(databases, dsn)
        store.create_chunk("Two.")
    assert store.get_stats()["chunk_count"] == 0


def test_a_rebuild_within_a_batch_counts_what_the_batch_wrote_once(store: ChunkStore) -> None:
    former = store.create_chunk("The walnut tree is old.", conversation_id="garden")
    with store.batch():
        store.update_chunk(former.id, content="The walnut tree was felled.")
        store.create_chunk("Walnuts and plums lie under the tree.", conversation_id="garden")
        store.rebuild_index()
        store.create_chunk("A plum tree takes its place.", conversation_id="orchard")
    assert check(store) == []
    assert len(search(store, "plum tree")) == 3


def test_a_loss_in_the_middle_of_a_rebuild_changes_nothing_and_says_so(
    store: ChunkStore, dsn: str, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        store.create_chunk(f"Walnut {number}.")
    monkeypatch.setattr(
        PostgresRowWriter,
        "renew",
        lambda *given, renew=PostgresRowWriter.renew: (end_connections(databases, dsn), renew(*given)),
    )
    with pytest.raises(StorageError, match="nothing was changed"):
        store.backend.rebuild("default")
    assert len(search(store, "walnut")) == 2 and check(store) == []


class LostAt:
    """A connection that is lost when it sends COMMIT: before the server hears of it, or after."""

    def __init__(self, connection: Any, kill: Callable[[int], object], *, after: bool) -> None:
        self._connection, self._kill, self._after = connection, kill, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, *values: object) -> Any:
        if statement == "COMMIT":
            if self._after:
                self._connection.execute(statement)
                self._connection.execute("SELECT 1").fetchone()  # waits for both, within a pipeline too
            self._kill(self._connection.info.backend_pid)
            return self._connection.execute("SELECT 1")
        return self._connection.execute(statement, *values)


@pytest.mark.parametrize("after", [True, False], ids=["after the server heard", "before the server heard"])
def test_a_connection_lost_at_the_commit_has_the_true_result(
    store: ChunkStore, dsn: str, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    begin = PostgresTransaction.begin

    def lose(self: PostgresTransaction, namespace: str, until: float) -> None:
        begin(self, namespace, until)
        kill = lambda pid: sql(dsn, "SELECT pg_terminate_backend(%s::int, 5000)", pid)  # noqa: E731
        self._connection = cast(Any, LostAt(self._connection, kill, after=after))

    monkeypatch.setattr(PostgresTransaction, "begin", lose)
    if after:
        store.create_chunk("Committed.")
    else:
        with pytest.raises(StorageError, match="nothing was changed"):
            store.create_chunk("Lost.")
    monkeypatch.undo()
    assert store.get_stats()["chunk_count"] == int(after)
    assert len(list(store.events())) == int(after)


def test_an_error_that_was_swallowed_inside_a_batch_does_not_look_like_success(store: ChunkStore) -> None:
    with pytest.raises(StorageError, match="nothing was changed"), store.batch():
        store.create_chunk("One.")
        with pytest.raises(StorageError):
            backend_of(store).rows("default", "SELECT 1 / 0")
    assert store.get_stats()["chunk_count"] == 0


def test_more_threads_than_connections_take_turns(store: ChunkStore) -> None:
    chunk = store.create_chunk("Read by many.")
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda _: store.get_chunk(chunk.id), range(64)))
    assert all(found)
    backend_of(store).flush_reads(wait=True)
    assert cast(Chunk, store.get_chunk(chunk.id, track=False)).metadata.access_count == 64


def test_a_long_batch_ends_while_those_who_wait_for_its_lock_hold_every_other_connection(dsn: str) -> None:
    settings = Config.load(None, environ={}, postgres={"reconnect_seconds": 1.0, "pool_size": 3})

    def write(store: ChunkStore, number: int) -> str:
        with store.batch():
            takes(1.1)  # longer than the place of a namespace is known without a lookup
            return store.create_chunk(f"Note {number}.").id

    with ChunkStore(dsn, config=settings) as store, ThreadPoolExecutor(3) as threads:
        store.create_chunk("The first.")
        ids = list(threads.map(write, [store] * 3, range(3)))
        assert set(ids) <= set(store.list_chunks())


def test_readers_do_not_wait_for_writers_that_wait_for_a_lock(dsn: str) -> None:
    settings = Config.load(
        None,
        environ={},
        store={"lock_wait_seconds": 20.0},
        postgres={"reconnect_seconds": 1.0, "pool_size": 3},
    )
    with ChunkStore(dsn, config=settings) as store, ThreadPoolExecutor(4) as threads:
        chunk = store.create_chunk("The first.")
        with holding(dsn):
            writers = [threads.submit(store.create_chunk, f"Note {number}.") for number in range(4)]
            # A cluster waits for the lock on a worker, which pg_locks does not show.
            active = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND datname = current_database()"
            until(lambda: sql(dsn, f"{active} AND pid <> pg_backend_pid()"), "a writer at work")
            takes(0.5)
            assert store.get_chunk(chunk.id) is not None and not any(one.done() for one in writers)
        assert {one.result().id for one in writers} <= set(store.list_chunks())


def test_a_read_only_server_is_refused_for_writing(dsn: str, databases: Databases) -> None:
    impatient = Config.load(None, environ={}, postgres={"reconnect_seconds": 0.2})
    with ChunkStore(dsn, config=impatient) as store:
        store.create_chunk("Before.")
        name = dsn.rsplit("/", 1)[1]
        databases.server.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        end_connections(databases, dsn)
        try:
            with pytest.raises(StoreReadOnly, match="is currently read-only"):
                store.create_chunk("Refused.")
            assert store.get_stats()["chunk_count"] == 1
        finally:
            databases.server.sql(f"ALTER DATABASE {name} RESET default_transaction_read_only")
            end_connections(databases, dsn)


@pytest.mark.parametrize("wanted", [True, False])
def test_statements_are_prepared_unless_that_is_switched_off(dsn: str, wanted: bool) -> None:
    config = Config.load(None, environ={}, postgres={"prepared_statements": wanted})
    with ChunkStore(dsn, config=config) as store:
        ids = [store.create_chunk(f"Number {number}.").id for number in range(12)]
        assert all(store.get_chunk(chunk_id) for chunk_id in ids)
        prepared = postgres(store.backend).rows("default", "SELECT count(*) FROM pg_prepared_statements")
        assert (prepared[0][0] > 0) is wanted


#: Rows and bounds of the histogram of the ids, by the planner's statistics; %s is the table.
_PLANNED = (
    "SELECT reltuples::int || ' ' || coalesce(array_length(histogram_bounds, 1), 0) FROM pg_class c"
    " LEFT JOIN pg_stats s ON s.schemaname = 'rlm_mem' AND s.tablename = c.relname AND s.attname = 'id'"
    " WHERE c.oid = '%s'::regclass"
)


def planned(dsn: str) -> list[str]:
    """What the planner knows of the chunks: on a cluster that of the workers, which plan by their own statistics."""
    if sql(dsn, "SELECT to_regclass('pg_dist_node')") == [(None,)]:
        return [str(sql(dsn, _PLANNED.replace("%s", "rlm_mem.chunks"))[0][0])]
    quoted = _PLANNED.replace("'", "''")
    found = sql(dsn, f"SELECT result FROM run_command_on_shards('rlm_mem.chunks', '{quoted}')")
    return [str(row[0]) for row in found if not str(row[0]).startswith(("0 ", "-1 "))]


def test_planner_statistics_are_refreshed_when_a_namespace_has_doubled(dsn: str) -> None:
    with ChunkStore(dsn) as store:
        store.create_chunk("The first.")
        assert planned(dsn) != ["301 11"]  # it may have seen an earlier test of this database
        with store.batch():
            for number in range(300):
                store.create_chunk(f"Number {number}.")
        assert planned(dsn) == ["301 11"]  # from a small sample
        store.create_chunk("One more.")
        assert planned(dsn) == ["301 11"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_opens_connections_of_its_own(store: ChunkStore) -> None:
    chunk = store.create_chunk("Before the fork.")
    child = os.fork()
    if child == 0:
        try:
            store.create_chunk("By the child.")
            os._exit(0 if store.get_chunk(chunk.id) is not None else 3)
        except BaseException:  # noqa: BLE001 - the child must not go on as a second test run
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.create_chunk("After the fork.")
    assert store.get_stats()["chunk_count"] == 3


def test_counted_reads_outlive_a_write_that_could_not_begin(store: ChunkStore, dsn: str) -> None:
    chunk = store.create_chunk("Read once.")
    store.get_chunk(chunk.id)
    with holding(dsn), pytest.raises(StoreLocked):
        store.create_chunk("Refused.")
    store.checkpoint()
    assert sql(dsn, "SELECT access_count FROM rlm_mem.reads") == [(1,)]


def test_a_closed_store_says_so(dsn: str) -> None:
    store = ChunkStore(dsn, config=QUICK)
    store.close()
    with pytest.raises(StoreClosed):
        store.list_chunks()


# --- what is said when it cannot work ----------------------------------------------------------------------


@pytest.fixture
def guarded(databases: Databases) -> Iterator[str]:
    """A database that asks for the password."""
    name = databases.make()
    rules = databases.server.folder / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"host {name} all 127.0.0.1/32 scram-sha-256\n{before}")
    databases.server.reload()
    yield name
    rules.write_text(before)
    databases.server.reload()
    databases.drop(name)


def test_errors_are_one_sentence_without_the_password(
    databases: Databases, guarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_FIRST_CONNECT_TIMEOUT", 0.1)
    port = databases.server.dsn("x").rsplit(":", 1)[1].split("/")[0]
    secret = "hidden-pass-word"

    def refused() -> bool:
        try:
            psycopg.connect(f"postgresql://{USER}:wrong@127.0.0.1:{port}/{guarded}").close()
        except psycopg.OperationalError:
            return True
        return False

    until(refused, "the refusal of a wrong password")  # the rule holds from some moment after the reload on
    ChunkStore(databases.server.dsn(guarded), config=QUICK).close()
    databases.server.sql("CREATE ROLE asleep NOLOGIN")
    cases = {
        f"postgresql://{USER}:{secret}@127.0.0.1:1/brain": "there is no PostgreSQL server at",
        f"postgresql://{USER}:{secret}@127.0.0.1:{port}/{guarded}": "password authentication failed",
        f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/nothing": 'database "nothing" does not exist',
        f"postgresql://nobody@127.0.0.1:{port}/nothing": 'role "nobody" does not exist create it (createuser NAME)',
        f"postgresql://asleep@127.0.0.1:{port}/nothing": "is not permitted to log in ALTER ROLE NAME LOGIN",
        f"postgresql://{USER}:{secret}@127.0.0.1:port/brain": 'invalid integer value "port"',
        f"postgresql://{USER}:{secret}@127.0.0.1:99999/brain": 'invalid port number: "99999"',
        f"postgresql://{USER}:{secret}@127.0.0.1:{port}/brain?colour=red&password={secret}": "not a valid DSN",
    }
    waits = Mock(side_effect=AssertionError("there is nothing to wait for"))
    monkeypatch.setattr(pool, "time", Mock(wraps=time, sleep=waits))
    for dsn, said in cases.items():
        with pytest.raises((StorageError, InvalidConfig)) as caught:
            ChunkStore(dsn, config=QUICK)
        told = f"{caught.value} {caught.value.hint}"
        assert said in told and "\n" not in told, told
        assert secret not in told and PASSWORD not in told, told
        assert caught.value.hint
    databases.server.sql("DROP ROLE asleep")


def test_a_password_is_not_shown_by_anything_that_names_the_store(store: ChunkStore, dsn: str) -> None:
    assert PASSWORD in dsn
    for shown in (
        repr(store),
        repr(Memory(store)),
        store.backend.location,
        str(store.get_stats()),
        repr(backend_of(store).pool("default")),
    ):
        assert PASSWORD not in shown


def test_a_database_has_no_folder(store: ChunkStore) -> None:
    with pytest.raises(StorageError, match="no folder"):
        _ = store.base_path


# --- texts -------------------------------------------------------------------------------------------------


def test_what_a_text_column_cannot_hold_is_kept_or_simply_not_found(store: ChunkStore) -> None:
    one = store.create_chunk("Before\0after, \u2028 and \U0001f600.", metadata={"odd": "\0"})
    two = store.create_chunk("Other.", links=[{"target_id": one.id, "type": "supports", "reasoning": "a\0b"}])
    found = cast(Chunk, store.get_chunk(one.id))
    assert found.content == "Before\0after, \u2028 and \U0001f600."
    assert found.metadata.extra == {"odd": "\0"}
    assert [link.reasoning for link in store.linked(two.id)] == ["a\0b"]
    assert cast(Chunk, store.undo(two.id) or store.get_chunk(two.id)).links[0].reasoning == "a\0b"
    store.record_event("recall", [one.id], question="what\0ever")
    store.record_event("recall", [one.id, Random(1).randbytes(9_000).hex()], question="longer")
    assert [event["question"] for event in store.events(op="recall")] == ["what\0ever", "longer"]
    assert len(list(store.events(op="recall", chunk_id=one.id))) == 2
    for odd in ("\0", "a\0b"):
        assert store.list_chunks(tags=[odd]) == store.list_chunks(conversation_id=odd) == []
        assert store.list_chunks(any_tags=[odd]) == []
        with pytest.raises(InvalidQuery, match="no memory has the type"):
            store.list_chunks(chunk_type=odd)
        assert store.latest(3, tag=odd) == store.latest(3, conversation_id=odd) == []
        assert list(store.events(op=odd)) == []
    assert check(store) == []


def test_the_id_of_a_conversation_that_no_index_can_hold_is_refused(store: ChunkStore) -> None:
    of_many_bytes = "".join(chr(Random(number).randrange(0x4E00, 0x9000)) for number in range(1_000))
    with pytest.raises(InputError, match="too long"):
        store.create_chunk("Said there.", conversation_id=of_many_bytes)
    assert store.get_stats()["chunk_count"] == 0 and check(store) == []


# --- repairs -----------------------------------------------------------------------------------------------


def test_damage_by_hand_is_found_and_mended_but_for_what_a_person_must_decide(
    store: ChunkStore, dsn: str
) -> None:
    from rlm_mem.store.core.integrity import repair

    ids = [
        store.create_chunk(f"Note {n} on trains.", tags=["n"], conversation_id=f"c{n % 3}").id
        for n in range(9)
    ]
    store.update_chunk(ids[0], content="A better note.")
    store.add_link(ids[1], ids[2], "supports")
    store.delete_chunk(ids[3])
    assert check(store) == []
    for statement in (
        "UPDATE rlm_mem.chunks SET tokens = 1 WHERE doc = 5",
        "UPDATE rlm_mem.terms SET df = df + 1 WHERE text = 'train'",
        "DELETE FROM rlm_mem.tags WHERE doc = 6",
        "DELETE FROM rlm_mem.chunks WHERE doc = 3",
        "UPDATE rlm_mem.bodies SET body = '{' WHERE doc IN (1, 7)",
        "UPDATE rlm_mem.totals SET chunks = chunks + 3",
        "INSERT INTO rlm_mem.terms(ns, text, term) SELECT ns, 'ships', -100000 FROM rlm_mem.namespaces",
    ):
        sql(dsn, statement)
    codes = {finding.code for finding in check(store)}
    assert codes == {
        "index-row", "index-counts", "index-links", "dangling-link", "orphaned-row", "unreadable-row",
        "unreadable-row-with-version",
    }  # fmt: skip
    before = sql(dsn, "SELECT body FROM rlm_mem.bodies ORDER BY doc")
    planned = repair(store)
    assert not any(step.done for step in planned)
    assert sql(dsn, "SELECT body FROM rlm_mem.bodies ORDER BY doc") == before, "a dry run"
    assert not any(step.error for step in repair(store, dry_run=False))
    assert {finding.code for finding in check(store)} == {"unreadable-row"}
    assert cast(Chunk, store.get_chunk(ids[0])).content == "Note 0 on trains."
    assert len(store.backend.files("default").names("archive/damaged")) == 1, "the damaged text is kept"


def test_texts_that_are_missing_mixed_up_or_damaged_and_wrong_numbers_are_found(
    store: ChunkStore, dsn: str
) -> None:
    from rlm_mem.store.core.integrity import repair

    ids = [store.create_chunk(f"Note {n} on trains.", conversation_id=f"c{n}").id for n in range(6)]
    for chunk_id in (*ids[:2], ids[5]):
        store.update_chunk(chunk_id, content="A better note.")
    store.delete_chunk(ids[5])
    ((fifth,),) = sql(dsn, "SELECT body FROM rlm_mem.bodies WHERE doc = 5")
    sql(dsn, "UPDATE rlm_mem.bodies SET body = %s WHERE doc = 3", fifth)
    for statement in (
        "DELETE FROM rlm_mem.bodies WHERE doc = 1",
        "UPDATE rlm_mem.bodies SET body = '{' WHERE doc = 6",
        f"UPDATE rlm_mem.versions SET body = '{{' WHERE id = '{ids[1]}'",
        "UPDATE rlm_mem.bodies SET segments = '' WHERE doc = 4",
        "UPDATE rlm_mem.conversations SET last_at = NULL WHERE conversation = 5",
        "UPDATE rlm_mem.namespaces SET next_doc = 2",
    ):
        sql(dsn, statement)
    found = {(finding.code, finding.chunk_id) for finding in check(store)}
    assert found - {("index-counts", None)} == {
        ("unreadable-row-with-version", ids[0]), ("unreadable-version", ids[1]), ("unreadable-row", ids[2]),
        ("index-terms", ids[3]), ("unreadable-row-with-version", ids[5]),
    }  # fmt: skip
    messages = "\n".join(finding.message for finding in check(store))
    for message in (
        "its text is missing",
        f"its text is that of {ids[4]}",
        "another last time",
        "in use already",
    ):
        assert message in messages
    assert not any(step.error for step in repair(store, dry_run=False))
    assert {(finding.code, finding.chunk_id) for finding in check(store)} == {
        ("unreadable-version", ids[1]), ("unreadable-row", ids[2]),
    }  # fmt: skip
    assert cast(Chunk, store.get_chunk(ids[0])).content == "Note 0 on trains."
    assert store.list_chunks(archived=True) == [ids[5]]
    assert store.exists(store.create_chunk("One more note.").id)


def test_rebuilding_makes_everything_derived_anew(store: ChunkStore, dsn: str) -> None:
    ids = [store.create_chunk(f"Note {n} on trains.", tags=["n"], conversation_id="c").id for n in range(5)]
    store.add_link(ids[1], ids[2], "supports")
    store.delete_chunk(ids[3])
    for table in ("terms", "postings", "conversation_terms", "tags", "links", "totals"):
        sql(dsn, f"DELETE FROM rlm_mem.{table}")
    seen: list[tuple[int, int]] = []
    report = store.rebuild_index(lambda done, total: seen.append((done, total)))
    assert not report.unreadable and seen[-1] == (5, 5)
    assert check(store) == []
    with Memory(store) as memory:
        assert {hit.chunk_id for hit in memory.search("train")} == set(ids) - {ids[3]}


def test_terms_of_another_analyser_are_made_anew_at_the_next_use(store: ChunkStore, dsn: str) -> None:
    store.create_chunk("Trains run.")
    sql(dsn, "UPDATE rlm_mem.namespaces SET analysis = '0:klingon'")
    sql(dsn, "DELETE FROM rlm_mem.postings")
    with Memory.open(dsn, config=QUICK) as memory:
        assert len(memory.search("train")) == 1
    assert sql(dsn, "SELECT analysis FROM rlm_mem.namespaces") != [("0:klingon",)]


def test_the_counter_for_pollers_grows_with_every_change_and_with_nothing_else(store: ChunkStore) -> None:
    versions = [store.backend.version("default")]
    chunk = store.create_chunk("One.")
    versions.append(store.backend.version("default"))
    store.update_chunk(chunk.id, tags=["t"])
    versions.append(store.backend.version("default"))
    store.get_chunk(chunk.id)
    store.record_event("recall", [chunk.id])
    assert store.backend.version("default") == versions[-1]
    store.delete_chunk(chunk.id)
    versions.append(store.backend.version("default"))
    assert versions == sorted(set(versions))


def test_a_memory_written_while_another_process_erases_is_found(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The erasure removes unused words and conversations, also ones that the writer is about to use again."""
    with (
        ChunkStore(dsn, config=PATIENT) as store,
        ChunkStore(dsn, config=PATIENT) as other,
        ThreadPoolExecutor(1) as threads,
    ):
        store.delete_chunk(store.create_chunk("A walnut.", conversation_id="garden").id, permanent=True)
        rebuild, rebuilt, written = store.backend.rebuild, threading.Event(), threading.Event()
        monkeypatch.setattr(
            store.backend, "rebuild", lambda namespace: (rebuild(namespace), rebuilt.set(), written.wait(20))
        )
        purge = threads.submit(store.backend.purge, ["default"])
        assert rebuilt.wait(20)
        with other.batch():
            other.create_chunk("Another walnut.", conversation_id="garden")
            written.set()
            with pytest.raises(TimeoutError):  # it waits for this batch; a cluster does not show such a wait
                purge.result(1.0)
        purge.result(20)
        assert [hit.snippet for hit in search(other, "walnut")] == ["Another walnut."]
        assert [one.id for one in other.conversations()] == ["garden"] and check(other) == []


def test_what_a_process_keeps_of_namespaces_is_bounded(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of many users asks for ever more of them; what it knows of one is forgotten in the end."""
    for module, name in (
        (routes, "MOST_NAMESPACES"),
        (backend, "MOST_NAMESPACES"),
        (lookup, "_MAX_NAMESPACES"),
    ):
        monkeypatch.setattr(module, name, 2)
    monkeypatch.setattr(backend, "_MAX_READ_NAMESPACES", 2)
    with ChunkStore(dsn, config=QUICK) as store:
        for number in range(25):
            one = store.confined_to(f"team/user{number}", actor=None)
            chunk = one.create_chunk(f"The kettle of room {number} is red.")
            assert [hit.chunk_id for hit in search(one, "kettle")] == [chunk.id]
            assert one.get_chunk(chunk.id)
        used = cast("PostgresBackend", store.backend)
        kept = {
            name: len(value)
            for holder in (used, used._routes, used._searches)
            for name, value in vars(holder).items()
            if isinstance(value, dict | set | Recent)
        }
        assert {"_reads", "_places", "speakers"} <= set(kept)
        assert max(kept.values()) <= 20, kept
        first = store.confined_to("team/user0", actor=None)
        (hit,) = search(first, "kettle")
        again = first.get_chunk(hit.chunk_id)
        assert again
        assert again.metadata.access_count == 2


@pytest.mark.parametrize("fails", ["lock", "statement"])
def test_a_connection_is_usable_after_any_number_of_failed_statements(dsn: str, fails: str) -> None:
    """What a failed pipeline was about to prepare is not prepared."""
    impatient = Config(store=StoreConfig(lock_wait_seconds=0.05))
    with Memory.open(dsn) as holder, Memory.open(dsn, config=impatient) as other:
        holder.remember("The harbour has two cranes.")
        for number in range(12):
            if fails == "lock":
                with holder.batch(), pytest.raises(StoreLocked):
                    holder.remember(f"The writer wrote {number}.")
                    other.remember(f"The other one did not write {number}.")
            else:
                with pytest.raises(StorageError, match="division"):
                    postgres(other.store.backend).pool("default").rows_of(
                        [("SELECT 1/0", ()), ("SELECT 2", ())]
                    )
                postgres(other.store.backend).pool("default").rows_of([("SELECT 2", ())])
            other.remember(f"The other one wrote {number}.")
        assert other.check() == []
