"""Through PgBouncer, which hands every transaction another of its few connections: nothing may depend on a session."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.config import Config
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from tests.postgres import PASSWORD, USER, Databases, account, free_port
from tests.waiting import until

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed (Debian: pgbouncer)")

SETTINGS = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 2
server_reset_query =
logfile = {folder}/log
"""


@pytest.fixture
def pooled(databases: Databases, dsn: str) -> Iterator[str]:
    """The DSN of the same database, through PgBouncer in transaction mode with two connections."""
    folder = Path(
        tempfile.mkdtemp(prefix="rlm-bouncer-")
    )  # PgBouncer does not run as root, and must get there
    port = free_port()
    (folder / "users").write_text(f'"{USER}" "{PASSWORD}"\n')
    settings = folder / "pgbouncer.ini"
    settings.write_text(SETTINGS.format(server=databases.server.port, port=port, folder=folder))
    if account():
        shutil.chown(folder, account())
    assert PROGRAM is not None
    process = subprocess.Popen([PROGRAM, str(settings)], user=account(), cwd="/", stderr=subprocess.DEVNULL)
    try:
        yield dsn.replace(f":{databases.server.port}/", f":{port}/")
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder)


def test_everything_works_with_two_connections_shared_by_many(pooled: str, databases: Databases) -> None:
    config = Config.load(None, environ={}, postgres={"reconnect_seconds": 10.0})
    name = pooled.rsplit("/", 1)[1]
    # Those of earlier tests, which are kept, would be counted.
    databases.server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", name)
    until(lambda: _answers(pooled), "an answer of the pooler")

    def work(number: int) -> None:
        with ChunkStore(pooled, namespace=f"ns{number % 3}", config=config) as store:
            first = store.create_chunk(
                f"Walnut number {number} on a train.", tags=["nut"], conversation_id="c"
            )
            with store.batch():
                second = store.create_chunk(
                    "Another walnut.", links=[{"target_id": first.id, "type": "supports"}]
                )
                store.update_chunk(first.id, tags=["nut", "changed"])
            assert store.linked(second.id)[0].chunk_id == first.id
            assert store.get_chunk(first.id) is not None
            assert store.delete_chunk(second.id) and store.restore_chunk(second.id)
            assert first.id in {hit.chunk_id for hit in Memory(store).search(f"walnut number {number}")}

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(12)))
    for number in range(3):
        with ChunkStore(pooled, namespace=f"ns{number}", config=config) as store:
            assert store.get_stats()["chunk_count"] == 8
            assert sum(summary.access_count for summary in store.timeline()) == 4
            assert check(store) == []
    used = databases.server.sql(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND usename = %s AND backend_type = 'client backend'",
        name,
        USER,
    )
    assert int(str(used[0][0])) <= 2, "they did share connections"


def _answers(dsn: str) -> bool:
    import psycopg

    try:
        psycopg.connect(dsn, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
