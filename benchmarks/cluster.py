"""A Citus cluster under trial: servers die, join and come back, namespaces move, answers to commits are lost.

    python benchmarks/cluster.py postgresql://postgres@127.0.0.1:5432/postgres      # all trials, some ten minutes
    python benchmarks/cluster.py postgresql://postgres@127.0.0.1:5432/postgres --trials worker commits

The DSN names the coordinator, a superuser, and a database that has the extension and all workers. All servers must run
on this machine: they are killed (SIGKILL, every process) and started again with their own command lines, and one more
worker is made beside them. Each trial has a database of its own there, and removes it. Exits with 1 if an acknowledged
write is missing, a refused one is there, or anything else is not as it should be.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.failover import Outcome, Writers, acknowledged
from tests.postgres import (
    REPLICATED,
    SUPERUSER,
    Databases,
    GivenServer,
    Server,
    free_port,
    kill_all,
    with_children,
)
from tests.waiting import takes, until

from rlm_mem.cli import main as command
from rlm_mem.errors import ServerAway, StorageError
from rlm_mem.memory import Memory
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from rlm_mem.store.postgres.schema import namespace_key
from support import Report, arguments, percentile, timed

Row = dict[str, Any]

#: How many commits lose their connection, and how often each operation is timed.
_CUTS, _TURNS = 30, 40


def _sql(dsn: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []


class Node:
    """A server of the cluster, on this machine; it can be killed, and started as it was started before."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        ((text,),) = self.sql("SELECT pg_read_file('postmaster.pid')")
        self.pid, folder, _, port, *_ = str(text).splitlines()
        self.folder, self.port = Path(folder), int(port)
        process = Path("/proc") / self.pid
        self._command = process.joinpath("cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        lines = process.joinpath("environ").read_bytes().split(b"\0")
        self._environ = dict(line.split(b"=", 1) for line in lines if b"=" in line)
        self._owner = process.stat().st_uid, process.stat().st_gid
        said = process.joinpath("fd/1").resolve()
        self._log = said if said.is_file() else Path(os.devnull)

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement there as the superuser."""
        return _sql(self.dsn, statement, *values)

    def at(self, database: str) -> str:
        """The DSN of a database there."""
        return f"{self.dsn.rpartition('/')[0]}/{database}"

    def kill(self) -> None:
        """SIGKILL to every process of the server."""
        kill_all(with_children(int(self.pid)))

    def start(self) -> None:
        """Start it again; returns when it answers."""
        self._run(self._command)
        self._answers()
        self.pid = str(self.sql("SELECT pg_read_file('postmaster.pid')")[0][0]).split()[0]

    def another(self, folder: Path) -> str:
        """Start a new server with the same settings; its DSN."""
        there, port = folder / "data", free_port()
        os.chown(folder, *self._owner)
        programs = Path(os.fsdecode(self._command[0])).parent
        made = [programs / "initdb", "-D", there, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C"]
        self._run([os.fsencode(word) for word in made]).wait()
        settings = (self.folder / "postgresql.conf").read_text()
        settings += f"\nport = {port}\nunix_socket_directories = '{folder}'\n"
        (there / "postgresql.conf").write_text(settings)
        self._run([os.fsencode(programs / "postgres"), b"-D", os.fsencode(there)])
        self.dsn, dsn = f"postgresql://{SUPERUSER}@127.0.0.1:{port}/postgres", self.dsn
        try:
            self._answers()
            return self.dsn
        finally:
            self.dsn = dsn

    def _run(self, words: list[bytes]) -> subprocess.Popen[bytes]:
        user, group = self._owner if os.geteuid() == 0 else (None, None)
        with self._log.open("ab") as log:
            return subprocess.Popen(
                words, env=self._environ, user=user, group=group, cwd="/", stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip

    def _answers(self) -> None:
        def answers() -> bool:
            with contextlib.suppress(Exception):
                return bool(self.sql("SELECT 1"))
            return False

        until(answers, f"an answer of {self.dsn}", every=0.1)


class Cluster:
    """Coordinator and workers, databases on them, and what the trials found beside their rows."""

    def __init__(self, dsn: str) -> None:
        self.facts: Row = {}
        self.server = GivenServer(dsn)
        self.databases = Databases(self.server)
        self.coordinator = Node(dsn)
        nodes = "SELECT nodename, nodeport FROM pg_dist_node WHERE isactive AND groupid <> 0 ORDER BY groupid"
        self.workers = [
            Node(f"postgresql://{SUPERUSER}@{host}:{port}/postgres") for host, port in self.server.sql(nodes)
        ]

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The name of a new one, with the settings that the guide names."""
        name = self.databases.make()
        self.server.sql(f"ALTER DATABASE {name} RESET citus.shard_count")
        self.server.sql(f"ALTER DATABASE {name} SET citus.node_connection_timeout = 5000")
        try:
            yield name
        finally:
            self.settle(name)
            self.databases.drop(name)

    def dsn(self, name: str) -> str:
        """Its address."""
        return self.server.dsn(name)

    def settle(self, name: str) -> float:
        """Wait for the second phase of commits whose worker died in between; returns the seconds."""
        begun = time.monotonic()
        prepared = "SELECT 1 FROM pg_prepared_xacts WHERE database = %s"
        until(
            lambda: not any(node.sql(prepared, name) for node in self.workers),
            "the end of every commit",
            seconds=180,
            every=0.5,
        )
        return time.monotonic() - begun

    def namespaces(self, name: str, each: int) -> dict[int, list[str]]:
        """Some namespaces on each worker, by its port."""
        shard = (
            "SELECT p.nodeport FROM pg_dist_shard_placement p"
            " WHERE p.shardid = get_shard_id_for_distribution_column('rlm_mem.namespaces', %s::bigint)"
        )
        ChunkStore(self.dsn(name)).close()  # makes the tables
        found: dict[int, list[str]] = {worker.port: [] for worker in self.workers}
        number = 0
        while any(len(names) < each for names in found.values()):
            number += 1
            namespace = f"trial/{number}"
            ((port,),) = self.server.sql(shard, namespace_key(namespace), database=name)
            if len(found[int(str(port))]) < each:
                found[int(str(port))].append(namespace)
        return found


# --- trials ----------------------------------------------------------------------------------------------------------


def worker(cluster: Cluster) -> Row:
    """Eight writers; a worker is killed and comes back after 15 seconds."""
    with cluster.database() as name:
        spread = cluster.namespaces(name, 8 // len(cluster.workers))
        away = cluster.workers[0]
        with Writers(cluster.dsn(name), [one for names in spread.values() for one in names]) as running:
            takes(10)
            killed = time.time()
            away.kill()
            takes(15)
            away.start()
            back = time.time()
            takes(35)
            running.stop()
            settled = cluster.settle(name)
            row, told = _row("a worker is killed and comes back", running), running.told()
        others = [spread[port] for port in spread if port != away.port]
        moments = [acknowledged(told[one]) for names in others for one in names]
        meanwhile = [sum(killed < at < back for at in each) for each in moments]
        cluster.facts["While a worker was unavailable"] = {
            "seconds": back - killed,
            "acknowledged in namespaces on the other workers": sum(meanwhile),
            "in the one with the fewest": min(meanwhile),
            "longest seconds without a write in one of them": max(
                b - a for each in moments for a, b in pairwise(each) if killed < b and a < back
            ),
            "seconds from the end of the writers to that of all commits": settled,
        }
        cluster.facts["Refusals while a worker was unavailable"] = dict(
            Counter(
                one.error.split(":")[0] for lines in told.values() for one in lines if one.said == "refused"
            )
        )
        return row


def join(cluster: Cluster) -> Row:
    """Three writers, while a worker more joins and takes its share of the shards."""
    folder = Path(tempfile.mkdtemp(prefix="rlm-mem-node-"))
    folder.chmod(0o755)
    new: Node | None = None
    try:
        with cluster.database() as name:
            spread = cluster.namespaces(name, 3)
            new = Node(cluster.workers[0].another(folder))
            new.sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
            _sql(new.at(name), "CREATE EXTENSION citus")
            with Writers(
                cluster.dsn(name), [one for names in spread.values() for one in names][:3]
            ) as running:
                takes(5)
                begun = time.monotonic()
                cluster.server.sql("SELECT citus_add_node('127.0.0.1', %s)", new.port, database=name)
                cluster.server.sql("SELECT rebalance_table_shards()", database=name)
                cluster.facts["Seconds to rebalance"] = time.monotonic() - begun
                takes(5)
                running.stop()
                row = _row("a worker joins and takes its share of the shards", running)
            shards = "SELECT count(*) FROM citus_shards WHERE nodeport = %s"
            cluster.facts["shards of tables on the new worker"] = cluster.server.sql(
                shards, new.port, database=name
            )[0][0]
            return row
    finally:
        if new is not None:
            new.kill()
        shutil.rmtree(folder, ignore_errors=True)


def coordinator(cluster: Cluster) -> Row:
    """Four writers; the coordinator is killed and comes back after five seconds."""
    with cluster.database() as name:
        spread = cluster.namespaces(name, 2)
        with Writers(cluster.dsn(name), [one for names in spread.values() for one in names]) as running:
            takes(8)
            cluster.coordinator.kill()
            takes(5)
            cluster.coordinator.start()
            takes(12)
            running.stop()
            cluster.settle(name)
            return _row("the coordinator is killed and comes back", running)


def commits(cluster: Cluster) -> Row:
    """Before a commit reaches the coordinator, or soon after, the connection is cut, or the session ended there."""
    chance = random.Random(18)
    said: Counter[str] = Counter()
    outcome = Outcome()
    with cluster.database() as name, Cutter(cluster.coordinator) as cutter:
        direct = cluster.dsn(name)
        through = direct.replace(f":{cluster.server.port}/", f":{cutter.port}/")
        with ChunkStore(direct, namespace="cut") as looking, ChunkStore(through, namespace="cut") as store:
            store.create_chunk("The first one, so that the namespace is there.")
            for number in range(_CUTS):
                text = f"Item {number} weighs {number * 7} grams."
                kind, cut = ("before", "after", "ended")[number % 3], cutter.cut
                cutter.arm(kind, chance.random() * 0.05)
                try:
                    store.create_chunk(text)
                    told = "acknowledged"
                except StorageError as error:
                    told = "unknown" if "may have been made or not" in str(error) else "refused"
                if cutter.cut == cut:  # a commit that the coordinator has yet to finish holds the lock
                    kind = "not begun"
                there = sum(chunk.content == text for chunk in looking.iter_chunks())
                said[f"{kind}: {told}, {'there' if there else 'not there'}"] += 1
                outcome.lost += [text] * (told == "acknowledged" and not there)
                outcome.denied += [text] * (told == "refused" and bool(there))
                outcome.twice += [text] * (there > 1)
                outcome.writes += told == "acknowledged"
                outcome.refused += told == "refused"
                outcome.undecided += told == "unknown"
            assert cutter.cut > _CUTS / 2, "most commits lost their connection"
            outcome.findings = [str(one) for one in check(looking)]
    cluster.facts["after a connection was cut"] = dict(said)
    return _row("the connection is cut around a commit", outcome)


def answers(cluster: Cluster) -> Row:
    """Twenty namespaces with random histories, written alike to a folder and to the cluster, and asked alike."""
    from tests.store.test_postgres_search import WORDS, Both, compare

    asked = different = 0
    with cluster.database() as name, tempfile.TemporaryDirectory() as folder:
        for seed in range(20):
            both = Both(Path(folder) / str(seed), cluster.dsn(name), random.Random(seed), f"history/{seed}")
            both.wander(60)
            compare(both)
            for word in WORDS:
                hits = [
                    [(hit.chunk_id, hit.score, hit.snippet) for hit in search(store, f"Which {word} was it?")]
                    for store in both.stores
                ]
                asked += 1
                different += hits[0] != hits[1]
            different += [both.local.get_stats()["chunk_count"]] != [both.far.get_stats()["chunk_count"]]
            both.close()
    cluster.facts["Searches of twenty namespaces, compared with a folder"] = {
        "asked": asked,
        "different": different,
    }
    return {"trial": "twenty namespaces answer as in a folder", "problems": different}


def move(cluster: Cluster) -> Row:
    """A namespace is moved from one PostgreSQL to the cluster and back, under two writers."""
    with cluster.database() as name, Server({}) as plain:
        here, there = plain.dsn(Databases(plain).make()), cluster.dsn(name)
        with Writers(here, ["team/ledger"] * 2) as running:
            takes(4)
            for target in (there, here):
                _run("--brain", here, "shards", "move", "team/ledger", "--to", target)
                takes(4)
            running.stop()
            return _row("a namespace moves to the cluster and back", running)


def keeping(cluster: Cluster) -> Row:
    """Copied there and back, backed up and restored, listed and vacuumed; with a worker away at the end."""
    wrong: list[str] = []
    with cluster.database() as name, tempfile.TemporaryDirectory() as folder:
        dsn, before, after = cluster.dsn(name), f"{folder}/before", f"{folder}/after"
        spread = cluster.namespaces(name, 3)
        names = [one for each in spread.values() for one in each]
        for namespace in names:
            with ChunkStore(Path(before) / "memory", namespace=namespace) as store, store.batch():
                made = [
                    store.create_chunk(f"Item {n} of {namespace} weighs {n * 7} grams.").id for n in range(40)
                ]
            with ChunkStore(Path(before) / "memory", namespace=namespace) as store:
                store.update_chunk(made[0], content="It was never weighed.")
                store.delete_chunk(made[1])
        _run("--brain", before, "store", "copy", dsn, "--all")
        _run("--brain", dsn, "store", "copy", after, "--all")
        _run("--brain", dsn, "store", "backup", f"{folder}/backup.tar")
        _run("--brain", f"{folder}/restored", "store", "restore", f"{folder}/backup.tar")
        for copy in (after, f"{folder}/restored"):
            _run("--brain", before, "store", "copy", copy, "--all", "--compare")
        with ChunkStore(dsn, namespace=names[0]) as store:
            told = sum(store.backend.vacuum(store.namespace).after.values())
        tables = (
            "SELECT sum(pg_total_relation_size(t.oid)) FROM pg_class t"
            " WHERE t.relnamespace = 'rlm_mem'::regnamespace AND t.relkind = 'r'"
        )
        nodes = [node.at(name) for node in (cluster.coordinator, *cluster.workers)]
        shown = "?options=-ccitus.override_table_visibility%3Doff"  # else shards are hidden from this client
        real = sum(int(_sql(node + shown, tables)[0][0]) for node in nodes)
        cluster.facts["size after vacuum"] = {"MB by its report": told / 1e6, "MB on all servers": real / 1e6}
        if not 0.9 < told / real < 1.1:
            wrong.append(f"vacuum reports {told:,} bytes, the servers hold {real:,}")
        away = cluster.workers[0]
        away.kill()
        try:
            begun = time.monotonic()
            with ChunkStore(dsn, namespace=spread[away.port][0]) as store:
                try:
                    listed = store.namespaces()
                    wrong.append("the list of namespaces does not say that a worker is away")
                except ServerAway as error:
                    listed = error.namespaces
            expected = {one for port, each in spread.items() if port != away.port for one in each}
            if {one for one, _ in listed} != expected:
                wrong.append(f"listed {listed}, expected {sorted(expected)}")
            cluster.facts["Listing with a worker unavailable"] = {
                "namespaces": len(listed),
                "seconds": time.monotonic() - begun,
            }
        finally:
            away.start()
    for line in wrong:
        print(line, file=sys.stderr)
    return {"trial": "copied, backed up, restored, listed", "problems": len(wrong)}


def cost(cluster: Cluster) -> Row:
    """The same operations in turn on the cluster and on one PostgreSQL with durable commits."""
    took: dict[str, list[list[float]]] = {}
    with cluster.database() as name, Server(REPLICATED) as plain, contextlib.ExitStack() as both:
        places = cluster.dsn(name), plain.dsn(Databases(plain).make())
        memories = [both.enter_context(Memory.open(dsn)) for dsn in places]
        for turn in range(_TURNS):
            text = f"The supplier moved delivery {turn} of the brackets to week {turn % 50}."
            question = f"To which week was delivery {turn} moved?"
            for place, memory in enumerate(memories):
                (chunk_id,) = memory.remember(text, conversation_id="here", tags=["parts"]).chunk_ids
                operations: dict[str, Callable[[], object]] = {
                    "remember": partial(memory.remember, f"{text} So it is.", tags=["parts"]),
                    "get": partial(memory.get, chunk_id),
                    "update": partial(memory.store.update_chunk, chunk_id, tags=["moved"]),
                    "search": partial(memory.search, question),
                    "recall": partial(memory.recall, question),
                }
                for operation, work in operations.items():
                    took.setdefault(operation, [[], []])[place].append(timed(work)[0])
    medians = {name: [percentile(times, 0.5) for times in each] for name, each in took.items()}
    cluster.facts["Time relative to one PostgreSQL server"] = {
        name: here / there for name, (here, there) in medians.items()
    }
    cluster.facts["milliseconds on the cluster, p50"] = {name: here for name, (here, _) in medians.items()}
    return {"trial": "operations in turn with one PostgreSQL", "problems": 0}


TRIALS: dict[str, Callable[[Cluster], Row]] = {
    one.__name__: one for one in (worker, join, coordinator, commits, answers, move, keeping, cost)
}


def _row(trial: str, of: Writers | Outcome) -> Row:
    outcome = of if isinstance(of, Outcome) else of.judged()
    for line in (*outcome.lost[:10], *outcome.twice[:10], *outcome.denied[:10], *outcome.findings[:10]):
        print(line, file=sys.stderr)
    row: Row = {
        "trial": trial,
        "acknowledged": outcome.writes,
        "acknowledged but lost": len(outcome.lost),
        "written twice": len(outcome.twice),
        "refused": outcome.refused,
        "refused but present": len(outcome.denied),
        "outcome unknown": outcome.undecided,
        "integrity findings": len(outcome.findings),
    }
    if isinstance(of, Writers):
        said = [one for lines in of.told().values() for one in lines]
        row["longest write s"] = max(one.took for one in said if one.said in ("wrote", "raised"))
        row["longest refusal s"] = max((one.took for one in said if one.said == "refused"), default="")
    return row


def _run(*words: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        if command([*words]):
            raise RuntimeError(f"rlm-mem {' '.join(words)} failed:\n{said.getvalue()}")


class Cutter:
    """A port that leads to a server, and cuts the connection that carries a COMMIT, when it is told to."""

    def __init__(self, server: Node) -> None:
        self.cut = 0
        self._server = server
        self._armed: list[tuple[str, float]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> Cutter:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def arm(self, kind: str, after: float) -> None:
        """Cut the next connection with a COMMIT before it is passed on, or some seconds after, or end its session."""
        self._armed = [(kind, after)]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server.port))
                for one, other, asks in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass_on, args=(one, other, asks), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket, asks: bool) -> None:
        tail = b""
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                tail = tail[-6:] + data  # a statement may come in two pieces
                if asks and self._armed and b"COMMIT\0" in tail:
                    self._lose(other, data, *self._armed.pop())
                    break
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _lose(self, server: socket.socket, data: bytes, kind: str, after: float) -> None:
        self.cut += 1
        if kind == "before":
            return
        port = server.getsockname()[1]
        server.sendall(data)
        takes(after)
        if kind == "ended":
            end = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE client_port = %s"
            self._server.sql(end, port)


def main() -> None:
    """Run the trials, one after the other."""
    parser = arguments(__doc__ or "")
    parser.add_argument("dsn", help="of the coordinator, as a superuser")
    parser.add_argument("--trials", nargs="+", choices=TRIALS, default=list(TRIALS), help="only these")
    options = parser.parse_args()
    cluster = Cluster(options.dsn)
    cluster.server.sql("ALTER SYSTEM SET citus.recover_2pc_interval = '5s'")  # as the guide says
    cluster.server.sql("SELECT pg_reload_conf()")
    report = Report("cluster", "A Citus cluster under trial (seconds)")
    ((version, citus),) = cluster.server.sql("SELECT version(), citus_version()")
    report.facts["versions"] = {
        "server": str(version).split(" on ")[0],
        "extension": str(citus).split(" on ")[0],
    }
    report.facts["servers"] = f"a coordinator and {len(cluster.workers)} workers, all on this machine"
    try:
        for trial in options.trials:
            report.add(**TRIALS[trial](cluster))
    finally:
        cluster.databases.close()
        cluster.server.sql("ALTER SYSTEM RESET citus.recover_2pc_interval")
        cluster.server.sql("SELECT pg_reload_conf()")
        report.facts |= cluster.facts
        report.finish(options.output)  # also what was found before a trial failed
    wrong: Sequence[str] = (
        "acknowledged but lost",
        "written twice",
        "refused but present",
        "integrity findings",
        "problems",
    )
    if any(row.get(name) for row in report.rows for name in wrong):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
