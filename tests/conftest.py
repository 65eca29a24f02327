"""Shared by all tests: no test touches the user's files, and every store gets its own temporary folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings

from rlm_mem.store.api import ChunkStore
from tests.postgres import Databases, NoServer, Server

# A busy machine is no reason to fail; the same examples for everybody in CI, new ones at every developer's run.
settings.register_profile("house", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "house")


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Home, data folder and settings of the user are out of reach."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "RLM_MEM_BRAIN"):
        monkeypatch.delenv(name, raising=False)
    for name in list(os.environ):
        if name.startswith(("RLM_MEM_", "OTEL_")):
            monkeypatch.delenv(name, raising=False)


class Clock:
    """A clock that tests move by hand; it starts at 2026-02-10 12:00 UTC and ticks a millisecond a look."""

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
def base(tmp_path: Path) -> Path:
    """Where the store of a test lies."""
    return tmp_path / "brain" / "memory"


@pytest.fixture
def store(base: Path, clock: Clock) -> Iterator[ChunkStore]:
    """An empty store with a controlled clock."""
    with ChunkStore(base, clock=clock) as opened:
        yield opened


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """A PostgreSQL server of this test run, started when a test first asks for it."""
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    try:
        server = Server()
    except NoServer as error:
        pytest.skip(str(error))
    with server:
        yield Databases(server)


@pytest.fixture
def dsn(databases: Databases) -> Iterator[str]:
    """The DSN of a database without a row in it."""
    with databases.lend() as lent:
        yield lent
