"""Builds the ASGI application: MCP, HTTP interface and dashboard behind one guard."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from rlm_mem import dashboard as pages
from rlm_mem.access.grants import PERMISSIONS, client_of
from rlm_mem.errors import AccessDenied
from rlm_mem.http.encoding import problem_response
from rlm_mem.http.guard import API, Guard, Keys, login_routes
from rlm_mem.http.limits import Buckets, ClientLimits, Limited
from rlm_mem.http.metrics import MEDIA_TYPE, Metrics, Observed
from rlm_mem.http.site import Site
from rlm_mem.operations.operation import PREFIX
from rlm_mem.operations.problems import problem_of
from rlm_mem.serving.mcp_app import McpApp

if TYPE_CHECKING:
    from starlette.requests import Request

    from rlm_mem.mcp.server import McpServer
    from rlm_mem.operations.state import ServerState


def create_app(
    state: ServerState,
    *,
    keys: Keys,
    port: int,
    mcp: Callable[[], McpServer] | None = None,
    api: bool = False,
    dashboard: bool = False,
    rate: float = 50.0,
    burst: int | None = None,
    site: Site | None = None,
    metrics: Metrics | None = None,
) -> Starlette:
    """Build the ASGI application.

    Args:
        state: state shared by all parts.
        keys: the accepted credentials.
        port: the port of the server.
        mcp: creates the MCP server on the first request to ``/mcp``; None: MCP is not served.
        api: serve ``/api/v1``. ``dashboard``: serve pages, and let browsers log in.
        rate: requests a second that one client of MCP and the HTTP interface may sustain; 0: no limit. ``burst``: most
            requests at once; None: four times the rate.
        site: the addresses of the server; by default those of the loopback interface.
        metrics: counts requests, for ``/metrics``.
    """
    counting = metrics or Metrics()
    limits = ClientLimits(Buckets(rate, max(1, round(4 * rate)) if burst is None else burst))
    where = site or Site(port)
    routes: list[BaseRoute] = [Route("/metrics", _metrics(counting))]
    if keys.oauth is not None:
        # RFC 9728: the resource's path follows the well-known prefix, but clients also request the bare prefix.
        described = _resource(where, keys.oauth.issuer)
        well_known = "/.well-known/oauth-protected-resource"
        routes += [Route(well_known, described), Route(f"{well_known}/mcp", described)]
    tools = None if mcp is None else McpApp(mcp)
    if tools is not None:
        routes.append(Route("/mcp", endpoint=Limited(tools, limits)))
    if api:
        from rlm_mem.http.app import api_app, nothing_there

        routes += [Mount(PREFIX, app=api_app(state, limits)), Mount("/api", app=nothing_there())]
    login_page = pages.login_page if dashboard else None
    if login_page is not None:
        routes += login_routes(keys, login_page)
        routes += pages.routes(state)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as running:
            if tools is not None:
                await running.enter_async_context(tools.run())
            if api or dashboard:
                await state.start()
                running.push_async_callback(state.stop)
            yield

    return Starlette(
        routes=routes,
        exception_handlers={404: _missing},
        middleware=[
            Middleware(Observed),
            Middleware(Guard, keys=keys, site=where, metrics=counting, login_page=login_page),
        ],
        lifespan=lifespan,
    )


async def _missing(request: Request, _: Exception) -> Response:
    """Answer a request that no route matched, as of an address with a line break; mounts answer their own."""
    if not request.url.path.startswith(API):
        return PlainTextResponse("Not Found", 404)
    from rlm_mem.http.app import nothing_there

    return nothing_there()


def _resource(site: Site, issuer: str) -> Callable[[Request], Awaitable[Response]]:
    """The metadata of the protected resource (RFC 9728), which names the issuer of its tokens."""
    found = {
        "resource": site.resource,
        "resource_name": "RLM-MEM",
        "authorization_servers": [issuer],
        "scopes_supported": [f"rlm-mem:{name}" for name in PERMISSIONS],
        "bearer_methods_supported": ["header"],
    }

    async def endpoint(_: Request) -> Response:
        return JSONResponse(found, headers={"Cache-Control": "max-age=3600"})

    return endpoint


def _metrics(metrics: Metrics) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            client_of(request.scope).access.check("metrics")
        except AccessDenied as error:
            return problem_response(problem_of(error))
        return PlainTextResponse(metrics.text(), media_type=MEDIA_TYPE)

    return endpoint
