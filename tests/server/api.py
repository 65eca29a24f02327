"""The HTTP interface in process for tests: a server on a brain of its own, and a client that may come in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

from rlm_mem.http.guard import Keys
from rlm_mem.operations.context import Settings
from rlm_mem.operations.state import ServerState
from rlm_mem.serving.app import create_app

TOKEN = "a token that is long enough"
PORT = 7499
BASE = f"http://127.0.0.1:{PORT}"
API = f"{BASE}/api/v1"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def serving(brain: Any, **options: Any) -> Iterator[tuple[Starlette, ServerState, Keys]]:
    """The application over a brain; options of Settings and of create_app."""
    of_app = {name: options.pop(name) for name in ("rate", "burst", "dashboard") if name in options}
    state = ServerState(Settings(brain=brain, **options))
    keys = Keys(TOKEN, PORT, tokens=state.opened.tokens)
    app = create_app(state, keys=keys, port=PORT, api=True, **{"rate": 0, **of_app})
    try:
        yield app, state, keys
    finally:
        state.close()


@contextmanager
def client_of(brain: Path, **options: Any) -> Iterator[TestClient]:
    """A client with the token, its addresses relative to the interface."""
    with serving(brain, **options) as (app, _, _), TestClient(app, API, headers=BEARER) as client:
        yield client
