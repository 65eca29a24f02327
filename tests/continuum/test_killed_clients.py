"""Killed at any statement to a database and run again: the same end state, nothing lost, nothing twice."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rlm_mem import Memory
from tests.postgres import Databases

from .conftest import StillClock, open_continuum
from .test_crashes import LATER, end_state, prepared, work

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its victims: needs a POSIX system")


class Copies:
    """Databases that are copies of one that was prepared."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._master = databases.make()
        prepared(databases.server.dsn(self._master))
        self._names: list[str] = []

    def make(self) -> str:
        """The DSN of a new copy."""
        name = f"{self._master}_{len(self._names)}"
        self._databases.server.sql(f"CREATE DATABASE {name} OWNER tester TEMPLATE {self._master}")
        self._names.append(name)
        return self._databases.server.dsn(name)

    def drop(self) -> None:
        """Remove them all."""
        for name in [*self._names, self._master]:
            self._databases.drop(name)


@pytest.fixture
def copies(databases: Databases) -> Iterator[Copies]:
    made = Copies(databases)
    yield made
    made.drop()


def statements(reached: Callable[[int], None]) -> None:
    """Have every statement to the server counted before it is sent."""
    import psycopg

    count = 0
    original = psycopg.Cursor.execute

    def execute(self: psycopg.Cursor, *args: Any, **more: Any) -> object:
        nonlocal count
        count += 1
        reached(count)
        return original(self, *args, **more)

    psycopg.Cursor.execute = execute  # type: ignore[method-assign,assignment]


def counted(dsn: str) -> int:
    """Statements that the work takes, in a process of its own."""
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        total = 0

        def reached(number: int) -> None:
            nonlocal total
            total = number

        try:
            continuum = open_continuum(dsn, StillClock(LATER))
            statements(reached)
            work(continuum)
            os.write(write, str(total).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    return int(os.read(read, 20) or b"0")


def killed(dsn: str, number: int) -> None:
    """Do the work in a process that dies before a statement."""
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        try:
            continuum = open_continuum(dsn, StillClock(LATER))
            statements(lambda at: os.kill(os.getpid(), signal.SIGKILL) if at == number else None)
            work(continuum)
        finally:
            os._exit(1)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status), "it was to be killed, and ran through or failed"


def killed_and_run_again(copies: Copies, kills: int) -> None:
    whole = copies.make()
    total = counted(whole)
    assert total > 100
    continuum = open_continuum(whole, StillClock(LATER))
    expected = end_state(continuum)
    continuum.store.close()
    for kill in range(kills):
        number = 1 + (2 * kill + 1) * total // (2 * kills)
        dsn = copies.make()
        killed(dsn, number)
        again = open_continuum(dsn, StillClock(LATER))
        work(again)
        assert end_state(again) == expected, f"killed before statement {number} of {total}"
        assert Memory(again.store).check() == []
        again.store.close()


def test_killed_between_statements_and_repeated_gives_the_same_result(copies: Copies) -> None:
    killed_and_run_again(copies, 5)


@pytest.mark.slow
def test_killed_between_many_statements_and_repeated_gives_the_same_result(copies: Copies) -> None:
    killed_and_run_again(copies, 60)
