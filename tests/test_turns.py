"""Which rows of a table run on which backend, where the whole suite is run."""

from __future__ import annotations

import importlib.util
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import postgres
from tests.conftest import WHOLE, out_of_turn, pytest_collection_modifyitems

BACKENDS = ("local", "postgres")


def table(file: str, rows: int, *, slow: bool = False) -> list[Any]:
    return [
        Row(f"tests/{file}::test[{backend}-{row}]", {"backend": backend, "row": row}, slow)
        for backend, row in product(BACKENDS, range(rows))
    ]


class Row:
    """What is looked at of a collected test."""

    def __init__(self, name: str, params: dict[str, object], slow: bool) -> None:
        self.nodeid, self.callspec, self._slow = name, SimpleNamespace(params=params), slow
        self.path = Path(__file__).parents[1] / name.partition("::")[0]
        self.user_properties: list[tuple[str, str]] = []

    def get_closest_marker(self, name: str) -> bool | None:
        return True if self._slow and name == "slow" else None


@pytest.mark.parametrize("rows", [2, 3, 12])
def test_each_row_runs_on_one_backend_and_each_table_on_both(rows: int) -> None:
    several = [table(f"cli/test_{name}.py", rows) for name in "abcdefgh"]
    left = out_of_turn(row for one in several for row in one)
    kept = [[row.callspec.params for row in one if row not in left] for one in several]
    assert all(sorted(params["row"] for params in one) == list(range(rows)) for one in kept)
    assert all({params["backend"] for params in one} == set(BACKENDS) for one in kept)
    first = {params["backend"] for one in kept for params in one if params["row"] == 0}
    assert first == set(BACKENDS), "an engine that is first in every table would meet one backend only"


@pytest.mark.parametrize(
    "whole",
    [
        table("store/test_a.py", 5),  # about stores
        table("test_a.py", 5),
        table("cli/test_a.py", 1),  # no table
        table("cli/test_a.py", 5, slow=True),
    ],
)
def test_all_other_tests_run_on_both(whole: list[Any]) -> None:
    assert not out_of_turn(whole)


@pytest.mark.parametrize("has_server", [True, False])
def test_without_a_server_every_row_runs_on_files(monkeypatch: pytest.MonkeyPatch, has_server: bool) -> None:
    monkeypatch.setattr(postgres, "can_run", lambda: has_server)
    rows: list[Any] = table("cli/test_a.py", 6)
    config: Any = SimpleNamespace(
        stash={WHOLE: True},
        option=SimpleNamespace(markexpr="not slow"),
        hook=SimpleNamespace(pytest_deselected=lambda items: None),
    )
    pytest_collection_modifyitems(config, rows)
    on_files = {row.callspec.params["row"] for row in rows if row.callspec.params["backend"] == "local"}
    assert len(on_files) == (3 if has_server else 6)


def test_without_programs_or_driver_there_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_here(version: str = "18") -> Path:
        raise postgres.NoServer("none is installed")

    monkeypatch.setattr(postgres, "GIVEN_SERVER", "")
    monkeypatch.setattr(postgres, "programs", none_here)
    assert not postgres.can_run()
    monkeypatch.setattr(postgres, "GIVEN_SERVER", "postgresql://here")
    assert postgres.can_run() == (importlib.util.find_spec("psycopg") is not None)
