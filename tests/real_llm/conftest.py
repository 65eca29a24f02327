"""Tests against a real model on a real server (``make test-models``): the marker and the shared server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from model_server import ModelServer, clients, start_server

if TYPE_CHECKING:
    from rlm_mem.models.providers import ProviderLLM


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.real_llm)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    """One server for all tests: two of them would starve each other."""
    pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")
    server = start_server(tmp_path_factory.mktemp("server"))
    yield server
    if server.process.poll() is None:
        server.kill()


@pytest.fixture
def connect(running: ModelServer) -> Iterator[Callable[[str], ProviderLLM]]:
    """A client of the real library of a provider, pointed at the server."""
    yield from clients(running)
