"""Stores of these tests: quick ones, since durability is tested elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.config import Config
from rlm_mem.store.core.chunk_store import ChunkStore

Open = Callable[..., ChunkStore]


@pytest.fixture
def open_store(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Open a store by the name of its brain, a folder or a database; closed at the end of the test."""
    places: dict[str, Path | str] = {}
    with ExitStack() as stack:

        def opened(name: str = "brain", namespace: str | None = None, **sections: Any) -> ChunkStore:
            config = Config.load(None, environ={}, **{"store": {"durability": "normal"}, **sections})
            if name not in places and backend == "local":
                places[name] = tmp_path / name / "memory"
            elif name not in places:
                places[name] = stack.enter_context(request.getfixturevalue("databases").lend())
            return stack.enter_context(ChunkStore(places[name], namespace=namespace, config=config))

        yield opened


@pytest.fixture
def store(open_store: Open) -> ChunkStore:
    """An empty store."""
    return open_store()
