"""Metrics of a server in Prometheus text format, at ``/metrics``; and telemetry of its requests."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Iterator

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rlm_mem import __version__, telemetry

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
#: Maximum number of token names with separate counts, since an authorization server may issue any number.
_MAX_NAMES = 1000


class Metrics:
    """Counts requests by token, route and status; thread-safe."""

    def __init__(self) -> None:
        self._started = time.time()
        self._guard = threading.Lock()
        self._names: set[str] = set()
        self._requests: defaultdict[tuple[str, str, str, int], int] = defaultdict(int)
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(_SECONDS) + 1))
        self._sums: defaultdict[str, float] = defaultdict(float)
        self.running = 0
        """Number of requests in progress."""
        self.draining = False
        """Whether the server stops after its last request; each answer then closes its connection."""

    @contextlib.contextmanager
    def in_flight(self) -> Iterator[None]:
        """Count a request while it is answered."""
        with self._guard:
            self.running += 1
        try:
            yield
        finally:
            with self._guard:
                self.running -= 1

    def record(self, name: str, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request.

        Args:
            name: name of the token, or empty. ``route``: path with names of parameters, or empty.
            seconds: duration of the request.
        """
        method = method if method in METHODS else "other"
        with self._guard:
            if name not in self._names:
                if len(self._names) < _MAX_NAMES:
                    self._names.add(name)
                else:
                    name = "(others)"
            self._requests[name, method, route, status] += 1
            buckets = self._buckets[route]
            buckets[next((place for place, most in enumerate(_SECONDS) if seconds <= most), -1)] += 1
            self._sums[route] += seconds

    def text(self) -> str:
        """All metrics in text format."""
        with self._guard:
            requests = sorted(self._requests.items())
            routes = [(route, list(counts), self._sums[route]) for route, counts in self._buckets.items()]
            running = self.running
        lines = _head("rlm_mem_info", "gauge", "The version that runs.")
        lines.append(f"rlm_mem_info{_labels(version=__version__)} 1")
        lines += _head("rlm_mem_start_time_seconds", "gauge", "When the server started, seconds since 1970.")
        lines.append(f"rlm_mem_start_time_seconds {self._started:.3f}")
        lines += _head("rlm_mem_requests_in_flight", "gauge", "Requests that are being answered.")
        lines.append(f"rlm_mem_requests_in_flight {running}")
        lines += _head("rlm_mem_draining", "gauge", "1 while the server ends.")
        lines.append(f"rlm_mem_draining {int(self.draining)}")
        lines += _head("rlm_mem_requests_total", "counter", "Requests by token, method, route and status.")
        for (name, method, route, status), count in requests:
            labels = _labels(token=name, method=method, route=route, status=str(status))
            lines.append(f"rlm_mem_requests_total{labels} {count}")
        lines += _head("rlm_mem_request_seconds", "histogram", "How long requests took, by route.")
        for route, counts, total in sorted(routes):
            below = 0
            for most, count in zip((*map(str, _SECONDS), "+Inf"), counts, strict=True):
                below += count
                lines.append(f"rlm_mem_request_seconds_bucket{_labels(route=route, le=most)} {below}")
            lines.append(f"rlm_mem_request_seconds_sum{_labels(route=route)} {total:.6f}")
            lines.append(f"rlm_mem_request_seconds_count{_labels(route=route)} {below}")
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


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
