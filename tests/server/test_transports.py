"""Real server processes, over stdio and over HTTP, driven by the official client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from rlm_mem import Memory
from rlm_mem.mcp.server import McpServer
from rlm_mem.mcp.service import Service, tools_for
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.serving.mcp_app import McpApp
from tests.server.conftest import drive, drive_all

TOKEN = "a token that is long enough"


def started(brain: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "rlm_mem", "mcp", "--brain", str(brain), *options]


def stdio(brain: Path, *options: str) -> Any:
    command = started(brain, *options)
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    return stdio_client(parameters, errlog=subprocess.DEVNULL)  # type: ignore[arg-type]


def test_over_stdio_the_official_client_drives_every_tool(tmp_path: Path) -> None:
    async def go() -> set[str]:
        async with Client(stdio(tmp_path / "brain", "--tools", "all"), mode="legacy") as client:
            assert client.server_info is not None
            assert client.server_info.name == "rlm-mem"
            assert "search" in (client.instructions or "")
            return await drive_all(client)

    assert asyncio.run(go()) == {tool.name for tool in tools_for(every=True)}


def initialize() -> bytes:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    return json.dumps(message).encode() + b"\n"


def test_initialize_is_answered_before_any_memory_is_opened(tmp_path: Path) -> None:
    """Also: only the protocol is on stdout, a line that is none is survived, half a surrogate pair is answered, a
    request that cannot be read gets an error, and the end of stdin ends the server.
    """
    brain = tmp_path / "brain"
    deep = b"[" * 5000 + b"]" * 5000
    sent = (
        b"this is no JSON\n"
        + b'{"jsonrpc": "2.0", "id": "deep", "method": "tools/call", "params": {"id": 9, "x": %s}}\n' % deep
        + b'{"jsonrpc": "2.0", "params": ["\\"}{", %s], "id": 7, "method": "ping"}\n' % deep
        + b'{"jsonrpc": "2.0", "id": 8, "method": "ping", "params": [1]}\n'
        + b'{"jsonrpc": "2.0", "id": 6, "result": %s}\n' % deep
        + initialize().replace(b'"test"', b'"cut \\ud83d"')
        + b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
    )
    ran = subprocess.run(started(brain), input=sent, capture_output=True, timeout=60, check=False)
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [line["result"]["serverInfo"]["name"] for line in lines if line.get("id") == 1] == ["rlm-mem"]
    refused = {line["id"]: line["error"] for line in lines if "error" in line}
    assert list(refused) == [None, "deep", 7, 8]
    assert [one["code"] for one in refused.values()] == [-32700, -32700, -32700, -32600]
    assert "recursion" in refused["deep"]["message"] and "JSON-RPC" in refused[8]["message"]
    assert ran.returncode == 0, ran.stderr.decode()
    assert not brain.exists()


def test_batches_and_odd_ids_are_answered_as_json_rpc_says(tmp_path: Path) -> None:
    ping = {"jsonrpc": "2.0", "method": "ping"}
    batch = [
        {**ping, "id": "a"},
        5,
        [{**ping, "id": "nested"}],
        {**ping, "id": 2},
        {**ping, "jsonrpc": "1.0", "id": 3},
    ]
    odd = [{**ping, "id": one} for one in (None, 1.5, True, [1], {})]
    answers = [[{"jsonrpc": "2.0", "id": 9, "result": {}}], {"jsonrpc": "2.0", "id": 9, "error": 5}]
    sent = [[], batch, *odd, "text", *answers, {**ping, "id": -5}, {**ping, "id": ""}, {**ping, "id": 10**40}]
    lines = [initialize(), b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n', b"\n"]
    lines += [json.dumps(one).encode() + b"\n" for one in sent]
    lines.append(json.dumps({**ping, "id": "last"}).encode() + b"\n")
    got: list[dict[str, Any]] = []
    with subprocess.Popen(
        started(tmp_path / "brain"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"".join(lines))
        process.stdin.flush()
        while not got or got[-1]["id"] != "last":
            got.append(json.loads(process.stdout.readline()))
        process.stdin.close()
    assert [one["id"] for one in got if one.get("result") == {}] == ["a", 2, -5, "", 10**40, "last"]
    refused = [(one["id"], one["error"]["code"]) for one in got if "error" in one]
    wrong = 1 + 2 + len(odd) + 1  # the empty batch, two parts of the other one, odd ids, a text
    assert sorted(refused, key=str) == [(3, -32600), *[(None, -32600)] * wrong]


def test_the_server_loads_only_what_describes_its_operations_before_the_first_call() -> None:
    code = (
        "import sys, rlm_mem.serving.run, rlm_mem.dashboard.pages; print(' '.join(sys.modules));"
        "import rlm_mem.mcp.server; print(' '.join(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    pages, loaded = (set(line.split()) for line in ran.stdout.splitlines())
    assert "starlette.applications" in pages
    assert "mcp" not in pages, "a page waits for the library of MCP"
    assert "mcp.server.lowlevel" in loaded
    assert loaded.isdisjoint(
        {
            "numpy",
            "pydantic_monty",
            "toktok_rs",
            "rlm_mem.continuum.query",
            "rlm_mem.interchange.importing",
            "rlm_mem.persona.library",
            "rlm_mem.recall.running",
            "rlm_mem.recall.trajectory",
            "rlm_mem.sandbox.session",
            "rlm_mem.store.core.chunk_store",
        }
    )


def test_four_servers_on_one_brain_lose_nothing(tmp_path: Path) -> None:
    brain = tmp_path / "brain"

    async def one(number: int) -> list[str]:
        async with Client(stdio(brain), mode="legacy", read_timeout_seconds=120) as client:
            ids = []
            for turn in range(20):
                text = f"Agent {number} noted fact {turn}: gauge {number * 100 + turn} was read."
                ids += (await client.call_tool("remember", {"text": text})).structured_content["chunk_ids"]
                if turn == 5:
                    await client.call_tool("search", {"query": "gauge"})
            return ids

    async def go() -> list[list[str]]:
        return await asyncio.gather(*(one(number) for number in range(4)))

    ids = [chunk_id for some in asyncio.run(go()) for chunk_id in some]
    assert len(set(ids)) == 80
    with Memory.open(brain) as memory:
        assert memory.stats().chunk_count == 80
        found = memory.store.get_many(ids)
        assert {chunk.content for chunk in found.values()} == {
            f"Agent {number} noted fact {turn}: gauge {number * 100 + turn} was read."
            for number in range(4)
            for turn in range(20)
        }
        assert memory.check() == []
        actors = [event.actor or "" for event in memory.events(op="create")]
        assert len(set(actors)) == 4 and all(one.startswith("mcp:") for one in actors)


@contextmanager
def http_server(brain: Path, *options: str, token: str | None = TOKEN) -> Iterator[tuple[str, str]]:
    """A server on a free port; its address, and what it said on stderr."""
    environment = {**os.environ, **({"RLM_MEM_TOKEN": token} if token else {})}
    process = subprocess.Popen(
        started(brain, "--http", "--port", "0", *options), stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith("MCP at "), said + process.stderr.read()
        yield said.split()[2].rstrip(","), said
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def served_over_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with http_server(tmp_path_factory.mktemp("http") / "brain", "--tools", "all") as (address, _):
        yield address


def test_over_http_the_official_client_drives_every_tool(tmp_path: Path) -> None:
    async def go(address: str, mode: str, question: str) -> set[str]:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(address, http_client=http), mode=mode) as client,
        ):
            return await drive_all(client) if not question else set(await drive(client, question, {}))

    with http_server(tmp_path / "brain", "--tools", "all") as (address, _):
        assert asyncio.run(go(address, "auto", "")) == {tool.name for tool in tools_for(every=True)}
        assert "namespace" in asyncio.run(go(address, "legacy", "status"))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer \u00e9"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "127.0.0.1:1"}, 421),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "null"}, 403),
    ],
)
def test_over_http_unauthenticated_requests_are_refused(
    served_over_http: str, headers: dict[str, str], status: int
) -> None:
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    for path in ("", "/other"):
        answer = httpx2.post(served_over_http + path, json={}, headers=encoded)  # type: ignore[arg-type]
        assert answer.status_code == status
        assert "rlm" not in answer.text


def test_over_http_a_body_that_is_too_large_is_refused(served_over_http: str) -> None:
    """And one with half a surrogate pair is not."""
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    answer = httpx2.post(served_over_http, content=b" " * (17 * 1024 * 1024), headers=headers, timeout=60)
    assert answer.status_code == 413
    cut = (
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": %s}}'
    )
    answer = httpx2.post(served_over_http, content=cut % b'{"query": "cut \\ud83d"}', headers=headers)
    assert (answer.status_code, '"isError":false' in answer.text) == (200, True)


def test_only_the_loopback_interface_is_listened_on(served_over_http: str) -> None:
    assert served_over_http.startswith("http://127.0.0.1:")


def test_without_a_token_in_the_environment_each_start_makes_one(tmp_path: Path) -> None:
    with http_server(tmp_path / "brain", token=None) as (address, said):
        token = said.split()[-1]
        assert len(token) >= 32
        asked = {"json": {}, "timeout": 60}
        assert httpx2.post(address, headers={"Authorization": f"Bearer {token}"}, **asked).status_code == 400
        assert (
            httpx2.post(address, headers={"Authorization": f"Bearer {token[:-1]}"}, **asked).status_code
            == 401
        )


def test_a_token_that_protects_nothing_is_refused(tmp_path: Path) -> None:
    command = started(tmp_path / "brain", "--http", "--port", "0")
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "RLM_MEM_TOKEN": "short"},
    )
    assert ran.returncode == 2
    assert "RLM_MEM_TOKEN" in ran.stderr
    assert "short" not in ran.stderr.replace("too short", "")


def test_mcp_over_http_is_made_by_its_first_request_and_once(tmp_path: Path) -> None:
    calls = 0

    def make() -> McpServer:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("out of files")
        return server

    async def asked(app: McpApp) -> int:
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1"
        ) as client:
            answer = await client.post("/mcp", content=initialize(), headers=headers)
        assert "rlm-mem" in answer.text
        return answer.status_code

    async def go() -> None:
        app = McpApp(make)
        async with app.run():
            assert calls == 0
            with pytest.raises(OSError, match="out of files"):
                await asked(app)
            assert set(await asyncio.gather(asked(app), asked(app))) == {200}
        async with McpApp(make).run():
            pass

    server = McpServer(Service(OpenMemory(Settings(brain=tmp_path / "brain"))))
    try:
        asyncio.run(go())
    finally:
        server.close()
    assert calls == 2


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_over_stdio_a_signal_ends_the_server_although_its_client_stays(tmp_path: Path, how: str) -> None:
    command = [sys.executable, "-m", "rlm_mem", "mcp", "--brain", str(tmp_path / "brain")]
    asked = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.Signals[how])
        try:
            assert process.wait(20) == (130 if how == "SIGINT" else 0)
        finally:
            process.kill()


def test_over_stdio_a_second_signal_ends_the_server_although_a_call_runs(tmp_path: Path) -> None:
    told = (
        "import time\n"
        "from rlm_mem.mcp.server import McpServer as server\n"
        "from rlm_mem.mcp.service import Service as service\n"
        "def tell(word):\n    print(word, file=sys.stderr, flush=True)\n"
        "close = server.close\n"
        "server.close = lambda self: (tell('closing'), close(self))\n"
        "service.call = lambda *_, **__: (tell('begun'), time.sleep(600))"
    )
    words = ["mcp", "--brain", str(tmp_path / "brain")]
    code = f"import sys\n{told}\nsys.argv[1:] = {words!r}\nfrom rlm_mem.cli import command\ncommand()"
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    asked: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "why?"}}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(lines.encode())
        process.stdin.flush()
        assert process.stderr.readline() == b"begun\n"
        try:
            process.send_signal(signal.SIGINT)
            assert process.stderr.readline() == b"closing\n"  # then it waits for the call
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == -signal.SIGTERM
        finally:
            process.kill()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_two_agents_with_one_token_are_told_apart_and_undo_only_what_they_did(
    tmp_path: Path, mode: str
) -> None:
    """By the sessions of the earlier protocol, in the later one by their names, in both by the header."""
    brain = tmp_path / "brain"

    async def go(
        address: str, names: tuple[str, str], headers: Sequence[dict[str, str]], texts: tuple[str, str]
    ) -> list[Any]:
        async with AsyncExitStack() as stack:
            clients = []
            for name, own in zip(names, headers, strict=True):
                asked = {"Authorization": f"Bearer {TOKEN}", **own}
                http = await stack.enter_async_context(httpx2.AsyncClient(headers=asked, timeout=60))
                client = Client(
                    streamable_http_client(address, http_client=http),
                    mode=mode,
                    client_info=Implementation(name=name, version="1"),
                )
                clients.append(await stack.enter_async_context(client))
            one, two = clients
            await one.call_tool("remember", {"text": texts[0]})
            await two.call_tool("remember", {"text": texts[1]})
            return [await one.call_tool("undo", {}), await one.call_tool("undo", {})]

    same = ("claude code", "claude code")
    apart = [{"RLM-MEM-Client": "alpha"}, {"RLM-MEM-Client": "beta:\u00e9"}]
    none: list[dict[str, str]] = [{}, {}]
    runs = [
        (same, apart, ("The kettle is blue.", "The ladder is red.")),
        (
            same if mode == "legacy" else ("claude code", "codex"),
            none,
            ("The roof is green.", "Ben plays chess."),
        ),
    ]
    with http_server(brain, "--tools", "all") as (address, _):
        for names, headers, texts in runs:
            encoded = [{name: value.encode("latin-1") for name, value in one.items()} for one in headers]
            first, second = asyncio.run(go(address, names, encoded, texts))  # type: ignore[arg-type]
            assert not first.is_error and second.is_error, first.content
    with Memory.open(brain) as memory:
        left = {chunk.content for chunk in memory.store.iter_chunks()}
        assert left == {"The ladder is red.", "Ben plays chess."}
        actors = [event.actor or "" for event in memory.events(op="create")]
    assert len(set(actors)) == 4
    assert [one.rpartition(":")[2] for one in actors[:2]] == ["alpha", "beta"]
    assert "claude-code" in actors[2]


def test_agents_with_a_server_each_are_told_apart_and_undo_only_what_they_did(tmp_path: Path) -> None:
    """As over stdio, where they are processes: `test_four_servers_on_one_brain_lose_nothing`."""
    brain = tmp_path / "brain"

    async def go() -> tuple[Any, Any]:
        async with AsyncExitStack() as stack:
            clients = []
            for name in ("claude code", "claude code", "\x1b[31m"):
                server = McpServer(Service(OpenMemory(Settings(brain=brain, every_tool=True))))
                stack.callback(server.close)
                named = Implementation(name=name, version="1")
                client = Client(server.protocol, mode="legacy", client_info=named)
                clients.append(await stack.enter_async_context(client))
            for client, text in zip(
                clients, ("The kettle is blue.", "The ladder is red.", "The roof is green."), strict=True
            ):
                await client.call_tool("remember", {"text": text})
            return await clients[0].call_tool("undo", {}), await clients[0].call_tool("undo", {})

    first, second = asyncio.run(go())
    assert not first.is_error and second.is_error
    assert "somebody else" in second.content[0].text and "name the change" in second.content[0].text
    with Memory.open(brain) as memory:
        left = {chunk.content for chunk in memory.store.iter_chunks()}
        assert left == {"The ladder is red.", "The roof is green."}
        actors = [event.actor or "" for event in memory.events(op="create")]
    assert [one.rpartition(":")[0] for one in actors] == ["mcp:claude-code", "mcp:claude-code", "mcp:31m"]
    assert len(set(actors)) == 3
