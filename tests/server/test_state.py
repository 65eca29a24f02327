"""What a server does before the first request, and what it does not wait for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rlm_mem.dashboard import routes
from rlm_mem.dashboard.rendering import prepare
from rlm_mem.memory import Memory
from rlm_mem.operations import state as module
from rlm_mem.operations.context import Settings
from rlm_mem.operations.state import ServerState

ROOT = Path(__file__).parents[2]


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


def test_requests_of_a_server_share_what_was_made_for_it_alone(tmp_path: Path) -> None:
    def make() -> list[str]:
        return []

    first, other = (ServerState(Settings(brain=tmp_path / name)) for name in ("one", "other"))
    try:
        first.shared(make).append("kept")
        assert (first.shared(make), other.shared(make)) == (["kept"], [])
    finally:
        first.close()
        other.close()


def test_a_part_that_cannot_be_prepared_keeps_nothing_else_from_it(tmp_path: Path) -> None:
    state = ServerState(Settings(brain=tmp_path / "brain"))
    done: list[str] = []
    state.at_start = [lambda: 1 / 0, lambda: done.append("next")]

    async def start_and_stop() -> None:
        await state.start()
        await state.stop()

    try:
        asyncio.run(start_and_stop())
    finally:
        state.close()
    assert done == ["next"]


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


_VISIT = """
import sys
from pathlib import Path
from tests.server.site import opened
from rlm_mem.dashboard.rendering import NAVIGATION
from rlm_mem.operations import state

state._PREPARE_TIMEOUT = 60.0
with opened(sys.argv[1], read_only=True) as site:
    assert not list(Path(sys.argv[1]).glob("persona/*")), "reading ahead has written"
    loaded = set(sys.modules)
    for path, *_ in NAVIGATION:
        site.get(path)
        late = {name for name in sys.modules.keys() - loaded if name.startswith("rlm_mem.")}
        assert not late, (path, late)
"""


def test_no_page_of_the_navigation_loads_modules_at_its_first_visit(tmp_path: Path) -> None:
    Memory.open(tmp_path / "brain").close()
    command = [sys.executable, "-c", _VISIT, str(tmp_path / "brain")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr


async def _start_and_stop(state: ServerState, holds: object) -> None:
    await state.start()
    try:
        assert callable(holds) and holds()
    finally:
        await state.stop()
