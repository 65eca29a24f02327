"""ASGI middleware that records telemetry of requests, with the route instead of the address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem import telemetry
from rlm_mem.http.metrics import METHODS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Observed:
    """Records each request as a span and a value of ``http.server.request.duration``; free while telemetry is off.

    Args:
        app: the observed application, including its guard.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request."""
        if scope["type"] != "http" or not telemetry.is_on():
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with telemetry.http_request(method, headers) as current:

            async def answer(message: Message) -> None:
                if message["type"] == "http.response.start":
                    current.label("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        current.failed(str(message["status"]))
                await send(message)

            try:
                await self._app(scope, receive, answer)
            finally:
                # The router has set the route by this point.
                route = route_of(scope)
                if route is not None:
                    current.label("http.route", route)


def route_of(scope: Scope) -> str | None:
    """The path with the names of its parameters in place of their values; None if no route matched.

    Attributes of metrics must have few values, so addresses are not suitable.
    """
    if scope.get("endpoint") is None:
        return None
    path = f"{scope['path']}/"
    for name, value in reversed(scope.get("path_params", {}).items()):
        before, found, after = path.rpartition(f"/{value}/")
        path = f"{before}/{{{name}}}/{after}" if found else path
    return path[:-1]
