"""Stores of these tests: quick ones, since durability is tested elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.config import Config
from rlm_mem.store.api import ChunkStore

Open = Callable[..., ChunkStore]


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Open]:
    """Open a store by the name of its brain folder; closed at the end of the test."""
    with ExitStack() as stack:

        def opened(name: str = "brain", namespace: str | None = None, **sections: Any) -> ChunkStore:
            config = Config.load(None, environ={}, store={"durability": "normal"}, **sections)
            return stack.enter_context(
                ChunkStore(tmp_path / name / "memory", namespace=namespace, config=config)
            )

        yield opened


@pytest.fixture
def store(open_store: Open) -> ChunkStore:
    """An empty store."""
    return open_store()
