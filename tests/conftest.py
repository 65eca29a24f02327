"""Shared by all tests: no test touches the user's files, and every store gets its own temporary folder."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings

from rlm_mem.store.core import files
from rlm_mem.store.core.chunk_store import ChunkStore
from tests import postgres
from tests.postgres import GIVEN_SERVER, Databases, GivenServer, NoServer, Server, connections_kept

# Else each process that a test starts would compile the whole package, which takes longer than its work.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# File operations on a disk take a quarter of the suite's processor time. They go to memory where there is room.
_SHARED_MEMORY = Path("/dev/shm")
_ROOM = 4 << 30  # bytes; a run needs less than 1 GB

if (
    "TMPDIR" not in os.environ
    and os.access(_SHARED_MEMORY, os.W_OK)
    and shutil.disk_usage(_SHARED_MEMORY).free > _ROOM
):
    os.environ["TMPDIR"] = str(_SHARED_MEMORY)  # inherited by the programs that tests start
    tempfile.tempdir = None  # forget what was looked up before

# A process that runs tests holds a million objects, and looked through them too often for what could be freed: that
# took a fifth of collecting tests and more than half of parsing the package for the rules of the house.
gc.set_threshold(20_000)

# No deadline, since machines may be busy; fixed examples in CI, new ones in every run of a developer, so that fewer do.
settings.register_profile("house", deadline=None, max_examples=50)
settings.register_profile("slow", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples tests of random values are given, before these tests are imported."""
    profile = "house" if "not slow" in config.option.markexpr else "slow"
    settings.load_profile("ci" if os.environ.get("CI") else profile)


def pytest_unconfigure() -> None:
    """Look through all objects once for garbage whose end fails; pytest would do so several times afterwards."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths below one folder: to number a folder of its own for each test, pytest would look at all those before."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _own_home(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Home, data folder and settings of the user are replaced by empty ones."""
    home = next(_homes)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "RLM_MEM_BRAIN"):
        monkeypatch.delenv(name, raising=False)
    for name in list(os.environ):
        if name.startswith(("RLM_MEM_", "OTEL_")):
            monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Nothing is synced: what is written outlives a killed process all the same, and no test can cut the power.

    Programs that tests start sync as ever, and so does ``test_a_chunk_is_synced_before_it_is_acknowledged``, which
    looks at what is synced.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(files, "_sync_filesystem", lambda path: True)
        yield


class Clock:
    """A clock that tests move by hand; it starts at 2026-02-10 12:00 UTC and advances by 1 ms with each call."""

    def __init__(self, start: datetime = datetime(2026, 2, 10, 12, tzinfo=UTC)) -> None:
        self.now = start

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def advance(self, **units: float) -> None:
        self.now += timedelta(**units)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    """Where this test keeps its memories: "local" (files) or "postgres" (rows). The rules are the same for both."""
    return str(request.param)


@pytest.fixture
def place(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """The brain of a test, as Memory.open takes it: a folder that is not there yet, or a DSN."""
    return tmp_path / "brain" if backend == "local" else str(request.getfixturevalue("dsn"))


@pytest.fixture
def base(place: Path | str) -> Path | str:
    """Where the store of a test lies, as ChunkStore takes it: a folder, or a DSN."""
    return place / "memory" if isinstance(place, Path) else place


@pytest.fixture
def store(base: Path | str, clock: Clock) -> Iterator[ChunkStore]:
    """An empty store with a controlled clock."""
    with ChunkStore(base, clock=clock) as opened:
        yield opened


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """A PostgreSQL server of this test run, started when a test first asks for it."""
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    if GIVEN_SERVER:
        given = Databases(GivenServer(GIVEN_SERVER))
        yield given
        given.drop_all()
        return
    try:
        server = Server()
    except NoServer as error:
        pytest.skip(str(error))
    with server:
        made = Databases(server)
        with connections_kept(made):
            yield made
        made.close()


@pytest.fixture
def dsn(databases: Databases) -> Iterator[str]:
    """The DSN of a database without a row in it."""
    with databases.lend() as lent:
        yield lent


# --- on both backends ----------------------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test with a place runs on both backends, unless it is marked as about files."""
    if "backend" in metafunc.fixturenames:
        local = metafunc.definition.get_closest_marker("local_only")
        metafunc.parametrize("backend", ["local"] if local else ["local", "postgres"], indirect=True)


WHOLE = pytest.StashKey[bool]()
"""Whether the whole suite is run, and not what somebody chose of it."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker begin with another part of all tests: what one has compiled, the others read.

    To compile the tests takes three times as long as all else about collecting them.
    """
    worker = getattr(session.config, "workerinput", None)
    whole = session.config.args == session.config.getini("testpaths")
    session.config.stash[WHOLE] = whole and not session.config.option.keyword
    if worker is not None and whole:
        files = sorted(map(str, Path(__file__).parent.rglob("test_*.py")))
        first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        session.config.args = files[first:] + files[:first]


#: Folders of tests whose tables are about where memories are kept, as are those in no folder.
_ABOUT_STORES = ("store", "search", "continuum")


def out_of_turn(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The rows of tables that the other backend runs.

    A table of engines, formats or hostile inputs has rows about what lies above the store. Each is run on one backend:
    the first row on one of them, the next on the other, so that a table meets both, and each row one. Which of them is
    first differs from table to table.
    """
    tables: dict[str, dict[tuple[tuple[str, int], ...], dict[str, pytest.Item]]] = {}
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if "backend" not in params or folder in _ABOUT_STORES or folder.endswith(".py"):
            continue
        if not item.get_closest_marker("slow"):
            row = tuple((name, id(value)) for name, value in sorted(params.items()) if name != "backend")
            table = tables.setdefault(item.nodeid.partition("[")[0], {})
            table.setdefault(row, {})[params["backend"]] = item
    left: set[pytest.Item] = set()
    for name, table in tables.items():
        for number, row_on in enumerate(table.values(), crc32(name.encode())):
            if len(table) > 1 and len(row_on) > 1:
                left.add(row_on[("local", "postgres")[number % 2]])
    return left


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Without a server, a row that takes its turn on PostgreSQL would be run nowhere.
    if config.stash[WHOLE] and "not slow" in config.option.markexpr and postgres.can_run():
        left = out_of_turn(items)
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]
    # Whatever a worker began with, all have one order; a long test at its end would keep one of them waiting.
    items.sort(key=lambda item: (item.get_closest_marker("early") is None, item.path))
    for item in items:
        mark = item.get_closest_marker("local_only")
        if mark is not None:
            item.user_properties.append(("local only", str(mark.args[0])))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Let a worker hand over the report of a test whose output UTF-8 cannot hold; else it breaks off the run."""
    return _encodable((yield))


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_encodable(one) for one in value)
    return value


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report how many tests ran on each backend, and the reasons of those on one only."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call"
    ]
    rows = sum("[postgres" in report.nodeid or "-postgres" in report.nodeid for report in reports)
    why = Counter(
        reason for report in reports for name, reason in report.user_properties if name == "local only"
    )
    if rows or why:
        reasons = "; ".join(f"{number} {reason}" for reason, number in why.most_common())
        terminalreporter.write_line(f"{rows} tests ran on PostgreSQL; on files only: {reasons or 'none'}")
