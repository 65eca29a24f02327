"""The stream of changes for open pages, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse
from starlette.routing import Route

from rlm_mem.dashboard.rendering import HEADERS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from rlm_mem.operations.changes import ChangeNotice
    from rlm_mem.operations.state import ServerState

__all__ = ["live_route"]

_ALIVE = 15.0
"""Seconds of silence after which a comment is sent, so that a connection that is gone shows."""


def live_route(state: ServerState) -> Route:
    """`GET /live`: an event `changed` with the topics that were touched, for as long as the page is open."""

    async def live(request: Request) -> Response:  # noqa: ARG001 - the signature of an endpoint
        return StreamingResponse(
            _stream(state), media_type="text/event-stream", headers={**HEADERS, "X-Accel-Buffering": "no"}
        )

    return Route("/live", live, include_in_schema=False)


async def _stream(state: ServerState) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    changes = state.changes.follow()
    waiting: asyncio.Future[ChangeNotice] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(changes))
            done, _ = await asyncio.wait({waiting}, timeout=_ALIVE)
            if not done:
                yield b": still here\n\n"
                continue
            try:
                change = waiting.result()
            except StopAsyncIteration:
                return
            waiting = None
            yield f"event: changed\ndata: {' '.join(sorted(change.topics))}\n\n".encode()
    finally:
        if waiting is not None:
            waiting.cancel()
