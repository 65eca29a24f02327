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
        """The present time."""
        self.now += timedelta(milliseconds=1)
        return self.now

    def advance(self, **units: float) -> None:
        """Move the clock forward; ``units`` as for ``timedelta``."""
        self.now += timedelta(**units)


class StoreFixtures:
    """Fixtures of a suite for a place with chunks; a subclass provides ``place``."""

    @pytest.fixture
    def place(self) -> Path | str:
        """An empty place for this test alone, in a form ``ChunkStore`` accepts: a folder, or ``SCHEME://…``."""
        raise NotImplementedError("define the fixture `place` in your subclass of the suite")

    @pytest.fixture
    def moved_clock(self) -> MovedClock:
        """The clock of every store of the test."""
        return MovedClock()

    @pytest.fixture
    def open_store(self, place: Path | str, moved_clock: MovedClock) -> Iterator[OpenStore]:
        """Opens a further store at the place, with options of ``ChunkStore``; closed at the end of the test."""
        with ExitStack() as stack:

            def opened(**options: Any) -> ChunkStore:
                config = Config.load(None, environ={}, store={"durability": "normal"})
                return stack.enter_context(
                    ChunkStore(place, **{"config": config, "clock": moved_clock, **options})
                )

            yield opened

    @pytest.fixture
    def store(self, open_store: OpenStore) -> ChunkStore:
        """An open, empty store at the place."""
        return open_store()
