"""One ASGI application for the loopback interface: MCP, HTTP interface and dashboard behind one guard."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount, Route

from rlm_mem import dashboard as pages
from rlm_mem.http.guard import API, LOOPBACK, Guard, Keys, login_routes
from rlm_mem.http.observed import Observed

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from rlm_mem.mcp.server import McpServer
    from rlm_mem.operations.state import ServerState

__all__ = ["LOOPBACK", "MAX_BODY_BYTES", "create_app"]

#: Most bytes of one MCP request: the largest text that one remember takes, as JSON.
MAX_BODY_BYTES = 16 * 1024 * 1024


def create_app(
    state: ServerState,
    *,
    keys: Keys,
    port: int,
    mcp: McpServer | None = None,
    api: bool = False,
    dashboard: bool = False,
    rate: float = 50.0,
    burst: int = 200,
) -> Starlette:
    """Build the ASGI application.

    Args:
        state: what all parts share.
        keys: the credentials that clients may use.
        port: that it will be served on.
        mcp: served at ``/mcp``. ``api``: serve ``/api/v1``. ``dashboard``: serve pages, and let browsers log in.
        rate, burst: of the HTTP interface (see ``api_app``).
    """
    routes: list[BaseRoute] = []
    manager = None
    if mcp is not None:
        # Stateless: what lasts from call to call has a handle, so any connection may continue it.
        manager = StreamableHTTPSessionManager(
            mcp.protocol, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        routes.append(Route("/mcp", endpoint=StreamableHTTPASGIApp(manager)))
    if api:
        from rlm_mem.http.app import api_app

        routes.append(Mount("/api/v1", app=api_app(state, rate=rate, burst=burst)))
    login_page = None
    if dashboard:

        def login_page(request: Request, error: str | None) -> Response:
            return pages.login_page(request, error=error)

        routes += login_routes(keys, login_page)
        routes += pages.routes(state)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as running:
            if manager is not None:
                await running.enter_async_context(manager.run())
            if api or dashboard:
                await state.start()
                running.push_async_callback(state.stop)
            yield

    async def missing(request: Request, _: Exception) -> Response:
        # An address that matches no route, such as one with a line break; mounted applications handle their own.
        if not request.url.path.startswith(API):
            return PlainTextResponse("Not Found", 404)
        from rlm_mem.http.app import nothing_there

        return nothing_there()

    app = Starlette(
        routes=routes,
        exception_handlers={404: missing},
        middleware=[
            Middleware(Observed),
            Middleware(Guard, keys=keys, port=port, login_page=login_page),
        ],
        lifespan=lifespan,
    )
    app.state.server = state
    return app
