"""Fixtures of the backend suites: stores opened at the tested place, with a clock that tests advance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.config import Config
from rlm_mem.store.core.chunk_store import ChunkStore

OpenStore = Callable[..., ChunkStore]


class MovedClock:
    """A clock that starts at 2026-02-10 12:00 UTC and advances by a millisecond per call, and by ``advance``."""

    def __init__(self) -> None:
        self.now = datetime(2026, 2, 10, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the current time."""
        self.now += timedelta(milliseconds=1)
        return self.now

    def advance(self, **units: float) -> None:
        """Move the clock forward; ``units`` as for ``timedelta``."""
        self.now += timedelta(**units)


class StoreFixtures:
    """Fixtures of a suite for a store; a subclass provides ``place``."""

    @pytest.fixture
    def place(self) -> Path | str:
        """Return the location of an empty store for this test, as accepted by ``ChunkStore``: a folder or a DSN."""
        raise NotImplementedError("define the fixture `place` in your subclass of the suite")

    @pytest.fixture
    def moved_clock(self) -> MovedClock:
        """Return the clock of every store of the test."""
        return MovedClock()

    @pytest.fixture
    def open_store(self, place: Path | str, moved_clock: MovedClock) -> Iterator[OpenStore]:
        """Yield a function that opens another store at the place, with options of ``ChunkStore``."""
        with ExitStack() as stack:

            def opened(**options: Any) -> ChunkStore:
                config = Config.load(None, environ={}, store={"durability": "normal"})
                return stack.enter_context(
                    ChunkStore(place, **{"config": config, "clock": moved_clock, **options})
                )

            yield opened

    @pytest.fixture
    def store(self, open_store: OpenStore) -> ChunkStore:
        """Return an open, empty store."""
        return open_store()
