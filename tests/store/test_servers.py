"""The PostgreSQL servers of the tests themselves: real, clean for each test, and gone when their owner is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg

from tests.postgres import PASSWORD, Databases, alive
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]


def test_each_test_gets_an_empty_database_and_an_ordinary_user(databases: Databases) -> None:
    with databases.lend() as dsn:
        with psycopg.connect(dsn) as connection:
            connection.execute("CREATE SCHEMA IF NOT EXISTS rlm_mem")
            connection.execute("CREATE TABLE rlm_mem.leftovers (n int)")
            connection.execute("INSERT INTO rlm_mem.leftovers VALUES (1)")
        with psycopg.connect(dsn) as connection:
            rights = connection.execute(
                "SELECT rolsuper, rolcreatedb FROM pg_roles WHERE rolname = current_user"
            )
            assert rights.fetchone() == (False, False)
    assert PASSWORD in dsn
    try:
        with psycopg.connect(dsn) as connection:
            assert connection.execute("SELECT count(*) FROM rlm_mem.leftovers").fetchone() == (0,)
    finally:
        with psycopg.connect(dsn) as connection:
            connection.execute("DROP TABLE rlm_mem.leftovers")


def test_a_database_is_emptied_even_where_a_transaction_was_left_open(databases: Databases) -> None:
    with databases.lend() as dsn:
        with psycopg.connect(dsn) as connection:
            connection.execute("CREATE SCHEMA IF NOT EXISTS rlm_mem")
            connection.execute("CREATE TABLE rlm_mem.leftovers (n int)")
        forgotten = psycopg.connect(dsn)
        forgotten.execute("INSERT INTO rlm_mem.leftovers VALUES (1)")
        forgotten.execute("LOCK TABLE rlm_mem.leftovers")
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM rlm_mem.leftovers").fetchone() == (0,)
        connection.execute("DROP TABLE rlm_mem.leftovers")
    forgotten.close()


def test_a_server_does_not_outlive_an_owner_that_is_killed(databases: Databases) -> None:
    """Neither its processes nor its folder are left behind, even by kill -9."""
    script = """
        import sys, time
        from tests.postgres import Server
        server = Server().start()
        print(server.pid(), server.folder, flush=True)
        time.sleep(600)
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", "\n".join(line.strip() for line in script.splitlines())],
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env=dict(os.environ),
    )  # fmt: skip
    assert owner.stdout is not None
    pid, folder = owner.stdout.readline().split()
    assert alive(int(pid))
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    until(lambda: not alive(int(pid)), "the end of the server")
    until(lambda: not Path(folder).exists(), "the removal of its folder")
