"""Who comes in over HTTP, and what is refused before any memory is asked."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import re
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from rlm_mem.http import limits
from rlm_mem.http.guard import Guard, Keys
from rlm_mem.http.limits import Buckets
from rlm_mem.http.metrics import Metrics
from rlm_mem.http.site import Site
from rlm_mem.serving import running
from rlm_mem.serving.network import Network
from tests.server.api import API, BASE, BEARER, PORT, TOKEN, client_of, serving
from tests.server.test_api_chunks import refused
from tests.waiting import soon, until

SECRET = "the heron server stands in the cellar"
PAGE = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[tuple[TestClient, Keys]]:
    """A browser that has not logged in, before a server with pages."""
    with serving(tmp_path / "brain", dashboard=True) as (app, state, keys):
        state.memory.remember(SECRET)
        with TestClient(app, BASE, headers=PAGE, follow_redirects=False) as client:
            yield client, keys


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": "Bearer \u00fc"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": f"127.0.0.1:{PORT + 1}"}, 421),
        ({"Host": f"127.0.0.1.evil.example:{PORT}"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"http://localhost:{PORT + 1}"}, 403),
    ],
)
def test_unauthenticated_requests_are_refused(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    with client_of(tmp_path / "brain") as client:
        client.post("remember", json={"text": SECRET})
        for method, path in (
            ("GET", "chunks"),
            ("POST", "search"),
            ("GET", "openapi.json"),
            ("PUT", "nothing"),
        ):
            answer = client.request(method, path, json={"query": "heron"}, headers=encoded)  # type: ignore[arg-type]
            refused(answer, status)
            assert "heron" not in answer.text


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_the_token_authenticates(tmp_path: Path, scheme: str) -> None:
    with client_of(tmp_path / "brain") as client:
        headers = {"Authorization": f"{scheme} {TOKEN}", "Origin": BASE, "Host": f"localhost:{PORT}"}
        assert client.get("stats", headers=headers).status_code == 200


def test_no_answer_opens_the_interface_to_other_origins(tmp_path: Path) -> None:
    with client_of(tmp_path / "brain") as client:
        asks = {"Origin": BASE, "Access-Control-Request-Method": "POST"}
        for answer in (
            client.get("stats", headers={"Origin": BASE}),
            client.options("stats", headers=asks),
            client.get("stats", headers={"Origin": "https://evil.example"}),
        ):
            assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_every_answer_says_that_it_is_no_page_and_not_to_be_kept(tmp_path: Path) -> None:
    with client_of(tmp_path / "brain") as client:
        for path in ("stats", "nothing", "chunks/chunk-none", "openapi.json"):
            headers = client.get(path).headers
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cache-Control"] == "no-store"
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


# --- what is malformed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"content": "\\ud800"}',
        b'{"content": "x", "extra": {"a": ' + b"[" * 100_000,
        b'{"content": "x", "confidence": NaN}',
        b'\xef\xbb\xbf{"content": "x"}',
    ],
)
def test_a_body_that_is_no_json_is_refused(tmp_path: Path, body: bytes) -> None:
    with client_of(tmp_path / "brain") as client:
        headers = {"Content-Type": "application/json"}
        told = refused(client.post("chunks", content=body, headers=headers), 400)["detail"]
        assert ("an unpaired surrogate" in told) is (b"ud800" in body)
        assert ("in UTF-8: see byte 0" in told) is (body[:1] == b"\xff")


def test_a_compressed_body_is_refused_as_one(tmp_path: Path) -> None:
    with client_of(tmp_path / "brain") as client:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        told = refused(client.post("chunks", content=gzip.compress(b"{}"), headers=headers), 415)
        assert (told["detail"], told["hint"]) == (
            "a body in the coding 'gzip' is not read",
            "send it uncompressed",
        )


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_body_of_another_media_type_is_refused(tmp_path: Path, media: str) -> None:
    """A form is what a foreign page can send without being asked for permission."""
    with client_of(tmp_path / "brain") as client:
        body = b'{"text": "x"}'
        refused(client.post("remember", content=body, headers={"Content-Type": media}), 415)


def test_a_method_that_an_address_does_not_have_is_named_with_those_it_has(tmp_path: Path) -> None:
    with client_of(tmp_path / "brain") as client:
        answer = client.put("chunks/chunk-x")
        refused(answer, 405)
        assert answer.headers["Allow"] == "DELETE, GET, HEAD, PATCH"
        assert answer.json()["detail"] == "PUT is not a method of this address: use DELETE, GET, HEAD, PATCH"


@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "chunks/",
        "chunks/a/b/c/d",
        "../../etc/passwd",
        "chunks/%2e%2e%2fconfig",
        "chunks/chunk-x%00",
    ],
)
def test_an_unknown_address_is_not_found(tmp_path: Path, path: str) -> None:
    with client_of(tmp_path / "brain") as client:
        answer = client.get(path)
        assert answer.status_code in (404, 422)
        if answer.url.path.startswith("/api/"):
            refused(answer, answer.status_code)


def test_another_version_of_the_interface_is_answered_for_programs(tmp_path: Path) -> None:
    with client_of(tmp_path / "brain", dashboard=True) as client:
        for path in ("/api/", "/api/v2/chunks"):
            refused(client.get(f"{BASE}{path}"), 404)


def test_requests_are_counted_by_route_however_many_addresses_there_are(tmp_path: Path) -> None:
    def counts(client: TestClient) -> set[str]:
        text = client.get(f"{BASE}/metrics").text
        return set(re.findall(r"^rlm_mem_requests_total.*route=\"(.*?)\"", text, re.MULTILINE))

    with client_of(tmp_path / "brain", rate=0.001, burst=12, dashboard=True) as client:
        for number in range(40):  # most are refused, since they are too many
            client.get(f"nothing-{number}")
            client.get(f"chunks/a/b/c-{number}")
            client.get(f"chunks/chunk-{number}")
            client.put(f"chunks/chunk-{number}/history")
            client.get(f"{BASE}/nothing-{number}")
            client.get(f"{BASE}/static/nothing-{number}")
        found = counts(client)
    routes = {"/chunks/{chunk_id}", "/chunks/{chunk_id}/history"}
    assert found == {"", "/{anything}", "/static/{name}", *(f"/api/v1{route}" for route in routes)}


def test_no_cache_without_a_limit_grows_with_what_clients_ask_for(browser: tuple[TestClient, Keys]) -> None:
    client, _ = browser

    def ask(name: str) -> None:
        for path in (f"/static/{name}.js", f"/static/{name}/{name}", f"/{name}", f"/login?code={name}"):
            client.get(path)  # as a stranger
        for path in (f"/memories?q={name}", f"/recalls/{name}", f"/timeline?conversation={name}", f"/{name}"):
            client.get(path, headers=BEARER)
        client.get(f"{API}/chunks/{name}", headers=BEARER)
        for kind, text in (("search", "query"), ("recall", "question"), ("remember", "text")):
            client.post(f"{API}/{kind}", json={text: f"What did {name} write in {name}?"}, headers=BEARER)

    def kept() -> Counter[str]:
        kind = type(lru_cache(abs))  # not made anew for each of a million objects
        caches = [one for one in gc.get_objects() if type(one) is kind]
        return Counter(
            {
                f"{one.__module__}.{one.__qualname__}": one.cache_info().currsize
                for one in caches
                if one.cache_info().maxsize is None and str(one.__module__).startswith("rlm_mem.")
            }
        )

    ask("anna")
    before = kept()
    for number in range(8):
        ask(f"anna{number}")
    grown = kept() - before
    assert not [name for name, more in grown.items() if more >= 8]


@pytest.mark.parametrize(
    ("query", "named"),
    [("limit=0", "limit"), ("limit=501", "limit"), ("limit=x", "limit"), ("limit=1&limit=2", "limit"),
     ("order=up", "order"), ("start=2026-13-01", "start"), ("limits=5", "limits"), ("tag=", "tag")],
)  # fmt: skip
def test_a_parameter_that_does_not_fit_is_refused_by_its_name(tmp_path: Path, query: str, named: str) -> None:
    with client_of(tmp_path / "brain") as client:
        problem = refused(client.get(f"chunks?{query}"), 422)
        assert named in problem["detail"]


def test_an_internal_error_reveals_nothing_about_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path / "brain") as (app, state, _), TestClient(app, API, headers=BEARER) as client:
        monkeypatch.setattr(state.memory.store, "get_stats", lambda: {}["/root/secret"])
        problem = refused(client.get("stats"), 500)
        assert "secret" not in str(problem)
        assert "Traceback" not in str(problem)


# --- limits -----------------------------------------------------------------------------------------------


def test_a_body_beyond_the_limit_is_refused_by_what_it_says_and_by_what_comes(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(17):
            yield b" " * 1024 * 1024

    with client_of(tmp_path / "brain") as client:
        headers = {"Content-Type": "application/json"}
        refused(client.post("remember", content=b" " * (16 * 1024 * 1024 + 1), headers=headers), 413)
        refused(client.post("remember", content=parts(), headers=headers), 413)


def test_too_many_requests_are_limited_with_retry_after(tmp_path: Path) -> None:
    with client_of(tmp_path / "brain", rate=0.5, burst=3) as client:
        answers = [client.get("about") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        refused(answers[3], 429)
    assert answers[3].headers["Retry-After"] in ("1", "2")  # less if the requests took longer


def test_a_bucket_refills_with_time_and_each_client_has_its_own() -> None:
    now = [0.0]
    buckets = Buckets(rate=2, burst=4, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0, 1]
    assert buckets.take("b") == 0
    now[0] = 0.5
    assert [buckets.take("a"), buckets.take("a")] == [0, 1]
    now[0] = 1000.0
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0, 1]
    assert all(Buckets(rate=0, burst=1).take("a") == 0 for _ in range(9))
    for number in range(5000):
        buckets.take(f"client {number}")
    assert len(buckets._buckets) <= 1024


def test_a_read_only_server_changes_nothing(tmp_path: Path) -> None:
    with client_of(tmp_path / "brain") as client:
        (chunk_id,) = client.post("remember", json={"text": SECRET}).json()["chunk_ids"]
    with client_of(tmp_path / "brain", read_only=True) as client:
        assert client.get("about").json()["read_only"] is True
        assert client.get(f"chunks/{chunk_id}").json()["content"] == SECRET
        document = client.get("openapi.json").json()
        for path, methods in document["paths"].items():
            for method in set(methods) & {"put", "patch", "delete"}:
                filled = re.sub(r"{(\w+)}", "chunk-x", path)
                if not path.startswith("/sessions"):
                    refused(client.request(method.upper(), filled[1:], json={}), 403)
        refused(client.post("remember", json={"text": "More."}), 403)
        refused(
            client.post(
                "import", params={"name": "a.md"}, content=b"x", headers={"Content-Type": "text/plain"}
            ),
            403,
        )
        assert client.post("recall", json={"question": "Where is the heron?"}).status_code == 200
        assert client.get("stats").json()["chunk_count"] == 1


# --- browsers ---------------------------------------------------------------------------------------------


def test_a_browser_sees_a_page_to_log_in_on_and_nothing_else(browser: tuple[TestClient, Keys]) -> None:
    client, _ = browser
    for path in ("/", "/memories", "/nothing"):
        answer = client.get(path)
        assert answer.status_code == 401
        assert 'name="token"' in answer.text
        assert "heron" not in answer.text
    refused(client.get("/api/v1/chunks"), 401)
    assert (
        client.get("/memories", headers={"Accept": "application/json"}).headers["WWW-Authenticate"]
        == "Bearer"
    )


def test_a_login_link_works_once(browser: tuple[TestClient, Keys]) -> None:
    client, keys = browser
    link = f"/login?code={keys.new_code()}"
    answer = client.get(link)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert TOKEN not in cookie
    assert SECRET in client.get("/memories").text
    client.cookies.clear()
    again = client.get(link)
    assert again.status_code == 401
    assert "Set-Cookie" not in again.headers
    assert client.get("/login?code=").status_code == 401


@pytest.mark.parametrize("written", ["{}", " {}\n", "http://127.0.0.1:8765/login?code={}"])
def test_the_code_of_the_link_can_be_typed_once(browser: tuple[TestClient, Keys], written: str) -> None:
    """What the page asks for is what the printed link holds: its code, however it was copied."""
    client, keys = browser
    assert "code" in client.get("/login").text
    said = written.format(keys.new_code())
    assert client.post("/login", data={"token": said}).status_code == 303
    assert client.get("/memories").status_code == 200
    client.cookies.clear()
    assert client.post("/login", data={"token": said}).status_code == 401


def test_the_token_is_taken_from_the_form_and_from_no_address(browser: tuple[TestClient, Keys]) -> None:
    client, _ = browser
    assert client.get("/login", params={"token": TOKEN}).status_code == 401
    wrong = client.post("/login", data={"token": "wrong"})
    assert (wrong.status_code, "Set-Cookie" in wrong.headers) == (401, False)
    assert client.post("/login", content=b"token=" + b"x" * 100_000).status_code == 401
    assert client.post("/login", data={"token": f" {TOKEN}\n"}).status_code == 303
    assert client.get("/memories").status_code == 200
    assert client.post("/logout", headers={"Origin": BASE}).headers["Location"] == "/login"
    assert client.get("/memories").status_code == 401


def test_with_a_cookie_only_our_own_pages_change_anything(browser: tuple[TestClient, Keys]) -> None:
    """A page of another port of this machine is the same site: the browser sends the cookie with what it asks."""
    client, keys = browser
    client.get(f"/login?code={keys.new_code()}")
    body = {"text": "planted"}
    for headers in ({}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "cross-site"}):
        refused(client.post("/api/v1/remember", json=body, headers=headers), 403)
    assert client.get("/api/v1/stats").json()["chunk_count"] == 1
    for headers in ({"Origin": BASE}, {"Sec-Fetch-Site": "same-origin"}):
        assert client.post("/api/v1/remember", json=body, headers=headers).status_code == 200
    evil: dict[str, Any] = {"Origin": f"http://localhost:{PORT + 1}", "Sec-Fetch-Site": "same-origin"}
    refused(client.post("/api/v1/remember", json=body, headers=evil), 403)


def test_a_cookie_of_another_start_opens_nothing(browser: tuple[TestClient, Keys]) -> None:
    client, keys = browser
    other = Keys(TOKEN, PORT)
    logged_in = other.log_in(Response(), TOKEN)
    assert logged_in is not None
    cookie = logged_in.headers["Set-Cookie"].partition("=")[2].partition(";")[0]
    client.cookies.set(keys.cookie_name, cookie)
    assert client.get("/memories").status_code == 401


def test_without_a_dashboard_no_browser_logs_in(tmp_path: Path) -> None:
    with serving(tmp_path / "brain") as (app, _, keys), TestClient(app, BASE, headers=PAGE) as client:
        logged_in = keys.log_in(Response(), TOKEN)
        assert logged_in is not None
        client.cookies.set(
            keys.cookie_name, logged_in.headers["Set-Cookie"].partition("=")[2].partition(";")[0]
        )
        assert client.get("/login").status_code == 401
        refused(client.get("/api/v1/stats"), 401)


def test_a_client_that_is_slow_to_ask_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that does not end, a body that does not, refused or not; while who asks again and again is answered."""
    monkeypatch.setattr(running, "_HEAD_SECONDS", 0.3)
    monkeypatch.setattr(running, "_TICKS", 1)
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.3)
    host = f"Host: 127.0.0.1:{PORT}\r\n"
    token = f"Authorization: Bearer {TOKEN}\r\n"
    asked = f"GET /api/v1/stats HTTP/1.1\r\n{host}{token}\r\n"
    post = f"HTTP/1.1\r\n{host}Content-Type: application/json\r\nContent-Length: 900\r\n"
    slow = {
        "": b"",
        asked[:30]: b"",
        asked + asked[:30]: b"200 OK",
        f"POST /api/v1/chunks {post}{token}\r\nx": b"408 Request Timeout",
        f"POST /api/v1/import?name=a.md {post}{token}\r\n".replace(
            "json", "octet-stream"
        ): b"408 Request Timeout",
        f"POST /login {post}\r\nx": b"408 Request Timeout",
        f"POST /api/v1/chunks {post}\r\nx": b"401 Unauthorized",
    }

    async def drip(port: int, begin: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begin.encode())
        answer, open_ = b"", True
        while open_:
            with contextlib.suppress(TimeoutError):
                try:
                    part = await asyncio.wait_for(reader.read(9000), 0.05)
                except ConnectionError:
                    part = b""
                answer, open_ = answer + part, bool(part)
            writer.write(b"x" if begin else b"")
        writer.close()
        return answer

    async def go() -> list[bytes]:
        server = running.Running(app, Network(), Metrics(), state, 5.0)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            serving_it = asyncio.create_task(server.serve(sockets=[listening]))
            port = listening.getsockname()[1]
            dripping = asyncio.gather(*(drip(port, begin) for begin in slow))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while not dripping.done():
                writer.write(asked.encode())
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head)
                assert length and head.startswith(b"HTTP/1.1 200")
                await reader.readexactly(int(length[1]))
                await asyncio.wait({dripping}, timeout=0.05)
            writer.close()
            server.should_exit = True
            await serving_it
        return await dripping

    with serving(tmp_path / "brain", dashboard=True) as (app, state, _):
        found = asyncio.run(asyncio.wait_for(go(), 30))
    assert [answer.split(b"\r\n")[0].removeprefix(b"HTTP/1.1 ") for answer in found] == list(slow.values())


def test_a_client_that_stops_reading_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one that reads slowly gets the whole answer."""
    monkeypatch.setattr(running, "_SEND_SECONDS", 0.5)
    monkeypatch.setattr(running, "_TICKS", 1)
    size, ended = 24_000_000, 0

    async def large(_: Any) -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            nonlocal ended
            try:
                for _ in range(size // 100_000):
                    yield b"x" * 100_000
            finally:
                ended += 1

        return StreamingResponse(parts())

    async def at_once(_: Any) -> Response:
        return Response(b"x" * size)

    def connected(port: int, path: str) -> socket.socket:
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.connect(("127.0.0.1", port))
        made.sendall(f"GET {path} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
        return made

    def passed(moment: float) -> bool:
        return time.monotonic() > moment

    def read_slowly(port: int) -> int:
        with connected(port, "/large") as client:
            total, began = 0, time.monotonic()
            for number in count():
                if not (part := client.recv(1_000_000)):
                    break
                total += len(part)
                # At first slowly, for longer than a client that reads nothing is waited for.
                until(partial(passed, began + min(number, 75) / 50))
            return total

    async def go() -> int:
        app = Starlette(routes=[Route("/large", large), Route("/at-once", at_once)])
        server = running.Running(app, Network(), Metrics(), state, 5.0)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            serving_it = asyncio.create_task(server.serve(sockets=[listening]))
            port = listening.getsockname()[1]
            stuck = [await asyncio.to_thread(connected, port, path) for path in ("/large", "/at-once")]
            total = await asyncio.to_thread(read_slowly, port)
            await soon(
                lambda: not server.server_state.connections and ended == 2, "the end of the connections"
            )
            for one in stuck:
                one.close()
            server.should_exit = True
            await serving_it
        return total

    with serving(tmp_path / "brain") as (_, state, _):
        assert asyncio.run(asyncio.wait_for(go(), 60)) > size


def test_a_client_that_closes_its_connection_can_send_its_body_before_it_is_refused() -> None:
    """If the server closed first, the client would get a broken pipe instead of the answer."""
    events: list[str] = []
    parts = [b"x" * 1000] * 3

    async def receive() -> dict[str, Any]:
        events.append("received")
        return {"type": "http.request", "body": parts.pop(), "more_body": bool(parts)}

    async def send(message: dict[str, Any]) -> None:
        events.append(str(message.get("status", "end")))

    async def nothing(*_: Any) -> None:
        raise AssertionError("the guard let it in")

    guard = Guard(nothing, keys=Keys("t" * 32, 7412), site=Site(7412), metrics=Metrics())
    headers = [(b"host", b"127.0.0.1:7412"), (b"connection", b"close")]
    scope = {
        "type": "http", "method": "POST", "path": "/api/v1/remember", "headers": headers, "http_version": "1.1",
    }  # fmt: skip
    asyncio.run(guard(scope, receive, send))  # type: ignore[arg-type]
    assert events == ["401", "received", "received", "received", "end"]
