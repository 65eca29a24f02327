"""HTTP requests and MCP tools under telemetry: a span each, by route and tool, below the caller's trace."""

from __future__ import annotations

import gzip
import http.client
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from rlm_mem import telemetry
from rlm_mem.http.metrics import Observed
from rlm_mem.mcp.service import Service
from rlm_mem.operations.context import OpenMemory, Settings
from tests.telemetry.test_telemetry import Watched


@pytest.fixture
def watched() -> Iterator[Watched]:
    found = Watched()
    telemetry.use(found.tracing, found.metering)
    yield found
    telemetry.stop()


def answer(request: Request) -> PlainTextResponse:
    if request.path_params.get("chunk") == "broken":
        raise RuntimeError("no luck")
    return PlainTextResponse("here")


@pytest.fixture
def client() -> TestClient:
    routes = [
        Route("/chunks/{chunk}", answer),
        Mount("/api", routes=[Route("/{kind}/{chunk}/links", answer)]),
    ]
    app = Starlette(routes=routes, middleware=[Middleware(Observed)])
    return TestClient(app, raise_server_exceptions=False)


def routes_of(watched: Watched) -> dict[str, int]:
    return {
        point.attributes.get("http.route", "none"): point.attributes.get("http.response.status_code", 0)
        for point in watched.points("http.server.request.duration")
    }


def test_a_request_is_named_by_its_route_and_not_by_its_address(watched: Watched, client: TestClient) -> None:
    client.get("/chunks/chunk-2026-02-10-a1b2c3d4?q=heronblue")
    client.get("/api/chunk/chunk-7/links")
    client.get("/nothing/of/heronblue")
    assert routes_of(watched) == {"/chunks/{chunk}": 200, "/api/{kind}/{chunk}/links": 200, "none": 404}
    assert "heronblue" not in "".join(span.to_json() for span in watched.spans)
    assert "chunk-7" not in "".join(span.to_json() for span in watched.spans)


def test_a_request_that_breaks_the_server_is_an_error(watched: Watched, client: TestClient) -> None:
    assert client.get("/chunks/broken").status_code == 500
    (span,) = watched.spans
    assert span.attributes is not None
    assert span.attributes["error.type"] == "RuntimeError"


def test_the_trace_of_the_caller_is_continued(watched: Watched, client: TestClient) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    client.get("/chunks/1", headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
    (span,) = watched.spans
    assert f"{span.context.trace_id:032x}" == trace


def test_a_tool_call_is_a_span_with_the_name_of_the_tool(watched: Watched, tmp_path: Path) -> None:
    service = Service(OpenMemory(Settings(brain=tmp_path / "brain")))
    try:
        assert not service.call("remember", {"text": "A note on herons."}).failed
        assert service.call("search", {"query": "heron", "limit": "many"}).failed
    finally:
        service.close()
    tools = {
        span.attributes["gen_ai.tool.name"]: span.attributes.get("error.type")
        for span in watched.named("rlm_mem.tool")
        if span.attributes
    }
    assert tools == {"remember": None, "search": "refused"}
    (remember,) = watched.named("rlm_mem.remember")
    assert remember.parent is not None


def test_a_server_that_is_stopped_has_delivered_its_first_request(
    httpserver: HTTPServer, tmp_path: Path
) -> None:
    httpserver.expect_request(re.compile("/v1/(traces|metrics)"), method="POST").respond_with_data(b"")
    server = subprocess.Popen(
        [sys.executable, "-m", "rlm_mem", "mcp", "--http", "--port", "0", "--brain", str(tmp_path / "brain")],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": httpserver.url_for("")},
    )
    try:
        assert server.stderr is not None
        found = re.search(r"http://(127\.0\.0\.1:\d+)/mcp, token (\S+)", server.stderr.readline())
        assert found is not None
        connection = http.client.HTTPConnection(found[1], timeout=30)
        connection.request("GET", "/mcp", headers={"Authorization": f"Bearer {found[2]}"})
        connection.getresponse().read()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)
    sent = b"".join(
        gzip.decompress(request.get_data())
        if request.headers.get("Content-Encoding") == "gzip"
        else request.get_data()
        for request, _ in httpserver.log
        if request.path == "/v1/traces"
    )
    assert b"HTTP GET" in sent
    assert found[2].encode() not in sent
