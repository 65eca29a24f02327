"""HTTP: one ASGI application on the loopback interface, guarded by a token, Host and Origin."""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route

from rlm_mem.server.observed import Observed

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from rlm_mem.server.mcp_server import McpServer

__all__ = ["LOOPBACK", "MAX_BODY_BYTES", "Guard", "create_app"]

#: The only address that is ever listened on.
LOOPBACK = "127.0.0.1"
#: Most bytes of one request: the largest text that one remember takes, as JSON.
MAX_BODY_BYTES = 16 * 1024 * 1024

_NAMES = (LOOPBACK, "localhost")


class Guard:
    """Lets only those in who know the token, and only under a name of this machine.

    A page in a browser can make it send requests to 127.0.0.1, even under a name of its own (DNS rebinding): so the
    Host header must be ours, and an Origin header, where there is one, too.

    Args:
        app: what is guarded, every path of it.
        token: what `Authorization: Bearer …` must hold.
        port: that the server listens on.
    """

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()
        self._hosts = {f"{name}:{port}" for name in _NAMES}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request, or refuse it: 421 for a foreign Host, 403 for a foreign Origin, 401 without "
        "the token."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        given = headers.get("authorization", "").encode("utf-8", "replace")
        if headers.get("host", "").lower() not in self._hosts:
            refusal = PlainTextResponse("This server answers to 127.0.0.1 and localhost only.", 421)
        elif origin is not None and origin.lower() not in self._origins:
            refusal = PlainTextResponse("Requests from other origins are refused.", 403)
        elif not hmac.compare_digest(given, self._expected):
            refusal = PlainTextResponse(
                "Send the token of this server: Authorization: Bearer TOKEN.",
                401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        else:
            await self._app(scope, receive, send)
            return
        await refusal(scope, receive, send)


def create_app(mcp: McpServer, *, token: str, port: int, routes: Sequence[BaseRoute] = ()) -> Starlette:
    """The application: MCP at `/mcp`, and further routes under the same guard.

    Args:
        mcp: the server behind `/mcp`.
        token: that clients must send.
        port: that it will be served on.
        routes: what else is served, for example an HTTP interface.
    """
    # Stateless: what must last from call to call has a handle, so any connection may continue it.
    manager = StreamableHTTPSessionManager(mcp.protocol, stateless=True, max_request_body_size=MAX_BODY_BYTES)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Starlette(
        routes=[Route("/mcp", endpoint=StreamableHTTPASGIApp(manager)), *routes],
        middleware=[Middleware(Observed), Middleware(Guard, token=token, port=port)],
        lifespan=lifespan,
    )
