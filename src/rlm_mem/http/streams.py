"""Operations with special HTTP responses: event streams, files, and the OpenAPI document."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.concurrency import iterate_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, Response, StreamingResponse

from rlm_mem.http.encoding import encode
from rlm_mem.http.limits import body_parts
from rlm_mem.http.openapi import document
from rlm_mem.operations.asking import AskRequest, RecallRequest, RunEvents, limits_of, run_out
from rlm_mem.operations.changes import with_keep_alive
from rlm_mem.operations.fitting import fitted
from rlm_mem.operations.moving import (
    MAX_UPLOAD_BYTES,
    ExportQuery,
    Imported,
    ImportQuery,
    export_file,
    import_file,
)
from rlm_mem.operations.operation import EVENT_STREAM, PREFIX
from rlm_mem.operations.problems import Refused
from rlm_mem.operations.shapes import answer_of
from rlm_mem.operations.tokens import may_see

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from rlm_mem.memory import Memory
    from rlm_mem.operations.context import OpenMemory
    from rlm_mem.operations.runs import LiveRun, RunKind
    from rlm_mem.operations.state import ServerState

_T = TypeVar("_T")


def wants_events(request: Request) -> bool:
    """Whether the client accepts an event stream instead of a single document."""
    accepted = [
        part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")
    ]
    return EVENT_STREAM in accepted


def event(name: str, data: Any, number: int | None = None) -> bytes:
    """One event; its data is one line of JSON."""
    head = f"event: {name}\n" if number is None else f"id: {number}\nevent: {name}\n"
    return head.encode() + b"data: " + encode(data) + b"\n\n"


def stream(events: AsyncIterator[bytes], headers: Mapping[str, str] | None = None) -> StreamingResponse:
    """A response that sends events as they arrive, and comments while there are none, to keep the connection open."""
    return _EventStream(
        with_keep_alive(events),
        media_type=EVENT_STREAM,
        headers={**(headers or {}), "X-Accel-Buffering": "no"},
    )


class _EventStream(StreamingResponse):
    """An event stream, which ends at once for HEAD: its connection could not be used again before the end."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            self.body_iterator = iterate_in_threadpool(())
        await super().__call__(scope, receive, send)


class TemporaryFile(FileResponse):
    """Sends the only file of a temporary folder, then removes the folder.

    A background task would not run after an invalid Range header, a revoked token or a cancelled request.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            shutil.rmtree(Path(self.path).parent, ignore_errors=True)


async def run_events(
    run: LiveRun, after: int = 0, *, owned: bool, max_tokens: int | None = None
) -> AsyncIterator[bytes]:
    """Yield the events of a run.

    Args:
        after: number of the last event that the client has received.
        owned: whether the run was started for this client only, so that it is cancelled when the client disconnects.
        max_tokens: maximum tokens of the answer in the last event; None: no limit.
    """
    try:
        async for one in run.follow(after):
            data = fitted(one.data, max_tokens) if one.kind == "result" else one.data
            yield event(one.kind, data, one.seq)
    finally:
        if owned and run.state == "running":
            run.cancel()


async def finished(run: LiveRun, request: Request) -> bool:
    """Wait for the end of a run; False if the client disconnected first, which cancels the run."""

    async def to_its_end() -> None:
        async for _ in run.follow():
            pass

    async def until_disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    finished_task, disconnected = asyncio.create_task(to_its_end()), asyncio.create_task(until_disconnected())
    try:
        await asyncio.wait({finished_task, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        return finished_task.done()
    finally:
        if not finished_task.done():
            run.cancel()
        for task in (finished_task, disconnected):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@dataclass(frozen=True)
class Exchange:
    """A request to an endpoint whose response is not one JSON document.

    Attributes:
        opened: the memory and the client's access to it.
    """

    state: ServerState
    opened: OpenMemory
    request: Request
    path: Mapping[str, str]
    given: Any = None

    async def work(self, task: Callable[[Memory], _T]) -> _T:
        """Run a function with the client's memory in a worker thread."""
        return await self.state.run_in_worker(lambda: task(self.opened.memory))


def _json(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encode(data), status, headers=headers, media_type="application/json")


async def _ask(exchange: Exchange, operation: RunKind) -> Response:
    given: AskRequest = exchange.given
    limits = await exchange.work(lambda memory: limits_of(memory, given.limits))
    schema = given.schema if isinstance(given, RecallRequest) else None
    run = exchange.state.runs.start(exchange.opened, operation, given.question, limits, schema, given.as_of)
    if given.background:
        return _json(run_out(run), 202, {"Location": f"{PREFIX}/runs/{run.id}"})
    if wants_events(exchange.request):
        return stream(run_events(run, owned=True, max_tokens=given.max_tokens))
    if not await finished(run, exchange.request):
        raise ClientDisconnect
    if run.result is None:
        assert run.error is not None, "it has ended"
        raise Refused(run.error)
    return _json(fitted(answer_of(run.result), given.max_tokens))


async def _events(exchange: Exchange) -> Response:
    run = exchange.state.runs.get(exchange.opened, exchange.path["run_id"])
    last = exchange.request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else exchange.given.after
    if wants_events(exchange.request):
        return stream(run_events(run, after, owned=False, max_tokens=exchange.given.max_tokens))
    return _json(fitted(RunEvents(run.events[after:]), exchange.given.max_tokens))


async def _changes(exchange: Exchange) -> Response:
    changes = exchange.state.changes_of(exchange.opened)

    async def notices() -> AsyncIterator[bytes]:
        async for change in changes.follow(events=True, ready=True):
            if not change.topics and not change.events:
                yield event("ready", {"at": change.at})
                continue
            lines = [line for line in change.events if may_see(exchange.opened.access, line)]
            if change.topics or lines:
                shown = {"at": change.at, "topics": sorted(change.topics), "events": lines}
                yield event("change", shown, change.seq)

    return stream(notices())


async def _import(exchange: Exchange) -> Response:
    query: ImportQuery = exchange.given
    folder = await exchange.state.run_in_worker(lambda: tempfile.mkdtemp(prefix="rlm-mem-import-"))
    try:
        path = Path(folder) / query.name
        with path.open("xb") as file:
            async for part in body_parts(exchange.request, MAX_UPLOAD_BYTES):
                file.write(part)
        done: Imported = await exchange.work(lambda memory: import_file(memory, path, query))
    finally:
        await exchange.state.run_in_worker(lambda: shutil.rmtree(folder, ignore_errors=True))
    return _json(done)


async def _export(exchange: Exchange) -> Response:
    query: ExportQuery = exchange.given
    file = await exchange.work(lambda memory: export_file(memory, query))
    media = "application/zip" if query.format == "zip" else "application/x-ndjson"
    return TemporaryFile(file, filename=file.name, media_type=media)


async def _document(exchange: Exchange) -> Response:
    made = await exchange.work(
        lambda memory: encode(document(memory.store.types, memory.config.continuum.task_types))
    )
    return Response(made, media_type="application/json")


#: Endpoints by the name of the operation.
SERVED: Mapping[str, Callable[[Exchange], Awaitable[Response]]] = {
    "getDocument": _document,
    "recall": partial(_ask, operation="recall"),
    "reason": partial(_ask, operation="reason"),
    "getRunEvents": _events,
    "followChanges": _changes,
    "importFile": _import,
    "exportMemories": _export,
}
