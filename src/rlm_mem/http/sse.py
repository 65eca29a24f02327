"""Server-sent events: steps of a run, and changes, as they happen; a client that leaves ends what was begun for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from rlm_mem.http.encoding import encode
from rlm_mem.operations.operation import EVENT_STREAM

if TYPE_CHECKING:
    from starlette.requests import Request

    from rlm_mem.operations.runs import LiveRun

__all__ = ["event", "finished", "run_events", "stream", "wants_events"]

_QUIET = 15.0
"""Seconds after which a comment shows that the connection still stands."""


def wants_events(request: Request) -> bool:
    """Whether the client asks for a stream rather than for one document at the end."""
    accepted = [
        part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")
    ]
    return EVENT_STREAM in accepted


def event(name: str, data: Any, number: int | None = None) -> bytes:
    """One event; its data is one line of JSON."""
    head = f"event: {name}\n" if number is None else f"id: {number}\nevent: {name}\n"
    return head.encode() + b"data: " + encode(data) + b"\n\n"


def stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    """A response that sends events as they come, and comments while none come."""
    return StreamingResponse(
        _with_comments(events), media_type=EVENT_STREAM, headers={"X-Accel-Buffering": "no"}
    )


async def _with_comments(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    waiting: asyncio.Future[bytes] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait({waiting}, timeout=_QUIET)
            if not done:
                yield b": still here\n\n"
                continue
            try:
                part = waiting.result()
            except StopAsyncIteration:
                return
            waiting = None
            yield part
    finally:
        if waiting is not None:
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await waiting
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()


async def run_events(run: LiveRun, after: int = 0, *, owned: bool) -> AsyncIterator[bytes]:
    """The events of a run.

    Args:
        after: number of the last event that the client has.
        owned: the run was begun for this client alone: when it leaves, the run ends.
    """
    try:
        async for one in run.follow(after):
            yield event(one.kind, one.data, one.seq)
    finally:
        if owned and run.state == "running":
            run.cancel()


async def finished(run: LiveRun, request: Request) -> bool:
    """Wait for the end of a run; False when the client left first, which ends the run."""

    async def to_its_end() -> None:
        async for _ in run.follow():
            pass

    async def until_gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    ended, gone = asyncio.create_task(to_its_end()), asyncio.create_task(until_gone())
    try:
        await asyncio.wait({ended, gone}, return_when=asyncio.FIRST_COMPLETED)
        return ended.done()
    finally:
        if not ended.done():
            run.cancel()
        for task in (ended, gone):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
