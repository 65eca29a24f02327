"""The ASGI application of MCP, loaded with its first request since its library doubles the start of the server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from rlm_mem.access.grants import new_session

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from rlm_mem.mcp.server import McpServer

#: Maximum bytes of an MCP request, which fits the largest text that one remember accepts.
MAX_BODY_BYTES = 16 * 1024 * 1024


class McpApp:
    """The ASGI application at ``/mcp``.

    Args:
        make: creates the server; called once in a worker thread, and again only after a failure.
    """

    def __init__(self, make: Callable[[], McpServer]) -> None:
        self._make = make
        self._serving: asyncio.Task[None] | None = None
        self._started: asyncio.Future[ASGIApp] | None = None
        self._ending = asyncio.Event()

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """A context that closes the sessions on exit."""
        try:
            yield
        finally:
            self._ending.set()
            if self._serving is not None:
                await self._serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._started is None:
            self._started = asyncio.get_running_loop().create_future()
            # A separate task, since sessions must end in the task in which they began, and outlive this request.
            self._serving = asyncio.create_task(self._serve(self._started))
        answer = await asyncio.shield(self._started)
        if scope["type"] == "http" and scope["method"] in ("GET", "DELETE"):
            # A client with a session asks for messages between answers, of which there are none, and ends it.
            await send({"type": "http.response.start", "status": 405, "headers": [(b"allow", b"POST")]})
            await send({"type": "http.response.body", "body": b""})
            return
        if scope["type"] == "http" and scope["method"] == "POST":
            receive, client = await _without_surrogates(receive)
            if client is not None:
                send = _naming(new_session(client), send)
        await answer(scope, receive, send)

    async def _serve(self, started: asyncio.Future[ASGIApp]) -> None:
        try:
            # In a thread, so that other requests are answered in the meantime.
            server = await asyncio.to_thread(self._load)
        except Exception as error:  # noqa: BLE001 - whoever waits for it raises it
            self._started = None  # the next request retries
            started.set_exception(error)
            return
        from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager

        # Stateless: anything that outlasts a call has a handle, so any connection can continue it.
        manager = StreamableHTTPSessionManager(
            server.protocol, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        async with manager.run():
            started.set_result(StreamableHTTPASGIApp(manager))
            await self._ending.wait()

    def _load(self) -> McpServer:
        import mcp.server.streamable_http_manager  # noqa: F401 - loaded here, used in the event loop

        return self._make()


def _naming(session: str, send: Send) -> Send:
    """Wrap ``send`` to give a new client the id of its session, which it then sends with each request.

    The server does not store it: it only distinguishes clients in the audit log.
    """

    async def named(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            message["headers"] = [*message.get("headers", ()), (b"mcp-session-id", session.encode())]
        await send(message)

    return named


def _new_client(body: bytes) -> str | None:
    """Return the name of the client that begins a session; None for any other message."""
    if b'"initialize"' not in body:
        return None
    try:
        return msgspec.json.decode(body, type=_Initialize).params.clientInfo.name
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # answered as what it is
        return None


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Parameters(msgspec.Struct, frozen=True):
    clientInfo: _Named = _Named()


class _Initialize(msgspec.Struct):
    method: Literal["initialize"]
    params: _Parameters = _Parameters()


async def _without_surrogates(receive: Receive) -> tuple[Receive, str | None]:
    """Wrap ``receive`` to replace lone surrogates, which the library rejects; too large bodies pass unchanged.

    Also returns the name of a client that begins a session, else None.
    """
    from rlm_mem.mcp.messages import replace_surrogates

    parts: list[bytes] = []
    waiting: list[Message] = []
    size, more = 0, True
    while more and size <= MAX_BODY_BYTES:
        message = await receive()
        if message["type"] != "http.request":
            waiting.append(message)
            break
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
    whole = b"".join(parts)
    text = None if more else replace_surrogates(whole)
    waiting.insert(
        0, {"type": "http.request", "body": whole if text is None else text.encode(), "more_body": more}
    )

    async def replayed() -> Message:
        return waiting.pop(0) if waiting else await receive()

    return replayed, None if more else _new_client(whole)
