"""The ASGI application of the HTTP interface: routes, rate limit, and the headers of every answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders
from starlette.routing import Route, Router

from rlm_mem.http.dispatch import Resource
from rlm_mem.http.encoding import problem_response
from rlm_mem.http.limits import ClientLimits, Limited
from rlm_mem.operations.operation import Operation
from rlm_mem.operations.problems import problem
from rlm_mem.operations.registry import ROUTES

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from rlm_mem.operations.state import ServerState

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def api_app(state: ServerState, limits: ClientLimits) -> ASGIApp:
    """The HTTP interface of a server, to be mounted at ``/api/v1`` behind the guard."""
    by_path: dict[str, list[Operation]] = {}
    for operation in ROUTES:
        by_path.setdefault(operation.path, []).append(operation)
    routes = [Route(path, endpoint=Resource(operations, state)) for path, operations in by_path.items()]
    return _WithHeaders(Limited(Router(routes, redirect_slashes=False, default=_nothing), limits))


def nothing_there() -> Response:
    """The response for an unknown address."""
    why = problem(404, "there is nothing at this address", hint="/api/v1/openapi.json lists every address")
    return problem_response(why, _HEADERS)


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await nothing_there()(scope, receive, send)


class _WithHeaders:
    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._inner(scope, receive, with_headers)
