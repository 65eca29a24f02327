"""A database that version 0.1.0 wrote opens with this one: nothing is lost, and it goes on from there."""

from __future__ import annotations

from pathlib import Path

import pytest

psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed")

from rlm_mem.config import Config  # noqa: E402 - below what may skip the module
from rlm_mem.errors import StorageError, StoreLocked, StoreReadOnly  # noqa: E402 - below what may skip the module
from rlm_mem.memory import Memory  # noqa: E402
from rlm_mem.store.postgres.schema import MIGRATIONS, SCHEMA_VERSION  # noqa: E402
from tests.postgres import Databases  # noqa: E402

# The rows of pg_dump (--inserts) of a database that 0.1.0 had written; its tables are those of the first migration.
DUMP = Path(__file__).parent / "archives" / "postgresql-0.1.0.sql"
NAMESPACE = "team/ledger"

#: Of each chunk that was written: how it came, how far it is trusted, its tags, revision and conversation.
WRITTEN = {
    "Ann: The office is in Lyon.\nBob: Near the harbour 🌊.": ("person", "trusted", ["office"], 2, "moving"),
    "A page about the walnuts and orchids of the garden.": (
        "import", "untrusted", ["office", "garden"], 2, "moving",
    ),
    "A sensor showed 7 degrees.": ("tool", "untrusted", [], 1, None),
    "Worked out by an agent.": ("agent", "ordinary", [], 1, None),
}  # fmt: skip
ARCHIVED = "The former number of the bank."


def test_a_database_of_version_0_1_0_is_brought_up_to_date_and_loses_nothing(databases: Databases) -> None:
    name = databases.make()
    dsn = databases.server.dsn(name)
    try:
        with psycopg.connect(dsn) as connection:
            connection.execute("CREATE SCHEMA rlm_mem")
            connection.execute(MIGRATIONS[0])
            connection.execute(DUMP.read_text(encoding="utf-8"))
        with pytest.raises(StoreReadOnly, match=f"schema 1, needed {SCHEMA_VERSION}"):
            Memory.open(dsn, namespace=NAMESPACE, read_only=True)
        with Memory.open(dsn, namespace=NAMESPACE) as memory:
            store = memory.store
            there = {chunk.content: chunk for chunk in store.iter_chunks()}
            assert {
                content: (
                    chunk.metadata.origin,
                    chunk.metadata.trust,
                    chunk.tags,
                    chunk.revision,
                    chunk.metadata.conversation_id,
                )
                for content, chunk in there.items()
            } == WRITTEN
            summaries = store.summaries([chunk.id for chunk in there.values()])
            assert {(one.origin, one.trust) for one in summaries} == {one[:2] for one in WRITTEN.values()}
            assert [chunk.content for chunk in store.iter_chunks(archived=True)] == [ARCHIVED]
            said, page, sensor, _ = (there[content] for content in WRITTEN)
            assert [one.chunk_id for one in store.linked(said.id, "supports")] == [sensor.id]
            assert said.metadata.access_count == 2
            former = [version.chunk.content for version in store.history(page.id)]
            assert former == ["A page about the walnuts of the garden.", page.content]
            assert [event["op"] for event in store.events()].count("create") == 5
            assert memory.search("walnut orchid")[0].chunk_id == page.id
            assert memory.check() == []
            new = memory.remember("Cem: The office moved to Graz.", conversation_id="moving").chunk_ids[0]
            assert store.restore_chunk(next(iter(store.iter_chunks(archived=True))).id)
            assert {hit.chunk_id for hit in memory.search("office")} >= {new, said.id}
            assert memory.check() == []
    finally:
        databases.drop(name)


def test_tags_in_another_unicode_form_are_one_tag_after_a_migration(databases: Databases) -> None:
    name = databases.make()
    dsn = databases.server.dsn(name)
    try:
        with Memory.open(dsn) as memory:
            first = memory.remember("The ferry leaves at six.", tags=["café", "boat"]).chunk_ids[0]
            second = memory.remember("The kiosk opens at seven.", tags=["café"]).chunk_ids[0]
        with psycopg.connect(dsn) as connection:  # as schema 2 had it
            connection.execute(
                "UPDATE rlm_mem.tags SET tag = %s WHERE tag = 'café' AND (ns, doc) IN"
                " (SELECT ns, doc FROM rlm_mem.chunks WHERE id = %s)",
                ("cafe\u0301", first),
            )
            connection.execute("UPDATE rlm_mem.tag_totals SET chunks = 1 WHERE tag = 'café'")
            connection.execute(
                "INSERT INTO rlm_mem.tag_totals SELECT ns, %s, 1 FROM rlm_mem.tag_totals WHERE tag = 'café'",
                ("cafe\u0301",),
            )
            connection.execute("DELETE FROM rlm_mem.migrations WHERE version > 2")
        with Memory.open(dsn) as memory:
            assert memory.tags() == [("café", 2), ("boat", 1)]
            assert set(memory.list_chunks(tags="cafe\u0301")) == {first, second}
            assert memory.check() == []
    finally:
        databases.drop(name)


def test_a_program_that_was_open_during_an_upgrade_writes_nothing_from_then_on(dsn: str) -> None:
    """It refuses newer tables when it opens them; it must not go on in them either."""
    impatient = Config.load(None, environ={}, store={"lock_wait_seconds": 0.2})
    with Memory.open(dsn) as memory, psycopg.connect(dsn, autocommit=True) as connection:
        with memory.batch():
            memory.remember("The ferry leaves at six.")
            connection.execute("DELETE FROM rlm_mem.migrations WHERE version = %s", (SCHEMA_VERSION,))
            with pytest.raises(StoreLocked):  # the upgrade waits for writers
                Memory.open(dsn, config=impatient)
        Memory.open(dsn, config=impatient).close()
        connection.execute("INSERT INTO rlm_mem.migrations(version) VALUES (%s)", (SCHEMA_VERSION + 1,))
        with pytest.raises(StorageError, match=f"knows versions up to {SCHEMA_VERSION}"):
            memory.remember("The kiosk opens at seven.")
        connection.execute("DELETE FROM rlm_mem.migrations WHERE version > %s", (SCHEMA_VERSION,))
        assert [chunk.content for chunk in memory.store.iter_chunks()] == ["The ferry leaves at six."]
        memory.remember("The kiosk opens at seven.")
        assert memory.check() == []
