"""What a server does before the first request, and what it does not wait for."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from rlm_mem.dashboard import routes
from rlm_mem.dashboard.rendering import prepare
from rlm_mem.operations import state as module
from rlm_mem.operations.context import Settings
from rlm_mem.operations.state import ServerState


def test_what_the_first_page_needs_is_there_before_the_first_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PREPARE_TIMEOUT", 60.0)  # a busy machine takes more than its second
    state = ServerState(Settings(brain=tmp_path / "brain"))
    done: list[str] = []
    routes(state)
    assert state.at_start[0] is prepare
    state.at_start.append(lambda: done.append("last"))
    try:
        asyncio.run(_start_and_stop(state, lambda: done == ["last"]))
    finally:
        state.close()


def test_a_start_does_not_wait_for_a_store_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PREPARE_TIMEOUT", 0.05)
    state = ServerState(Settings(brain=tmp_path / "brain"))
    answered = threading.Event()
    state.at_start = [lambda: answered.wait(30)]

    def starts_all_the_same() -> bool:
        waiting = not answered.is_set()
        answered.set()
        return waiting

    try:
        asyncio.run(_start_and_stop(state, starts_all_the_same))
    finally:
        state.close()


async def _start_and_stop(state: ServerState, holds: object) -> None:
    await state.start()
    try:
        assert callable(holds) and holds()
    finally:
        await state.stop()
