"""`rlm-mem serve`: one process with MCP, the HTTP interface and the dashboard, on this machine only."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.server.api import BEARER, TOKEN


@contextmanager
def running(
    brain: Path, *options: str, token: str | None = TOKEN, said: list[str] | None = None
) -> Iterator[str]:
    """A server on a free port; gives its address."""
    command = [sys.executable, "-m", "rlm_mem", "serve", "--brain", str(brain), "--port", "0", *options]
    environment = {name: value for name, value in os.environ.items() if name != "RLM_MEM_TOKEN"}
    if token is not None:
        environment["RLM_MEM_TOKEN"] = token
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert first.startswith("HTTP at "), first + process.stderr.read()
        if said is not None:
            said.append(first)
            said += [process.stderr.readline() for _ in range(1 if "--no-dashboard" in options else 2)]
        yield first.split()[2].rstrip(",").removesuffix("/api/v1")
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_one_process_serves_agents_programs_and_people(tmp_path: Path) -> None:
    said: list[str] = []
    with running(tmp_path / "brain", "--tools", "all", "--namespace", "team/ana", said=said) as address:
        assert address.startswith("http://127.0.0.1:")
        with httpx.Client(base_url=address, headers=BEARER, timeout=60) as http:
            http.post(
                "/api/v1/remember", json={"text": "Ana chose PostgreSQL for the ledger."}
            ).raise_for_status()
            assert http.get("/api/v1/about").json()["namespace"] == "team/ana"

        async def over_mcp() -> str:
            async with (
                httpx2.AsyncClient(headers=BEARER, timeout=60) as mcp_http,
                Client(streamable_http_client(f"{address}/mcp", http_client=mcp_http)) as client,
            ):
                found = await client.call_tool("search", {"query": "ledger"})
                return str(found.structured_content["hits"][0]["snippet"])

        assert asyncio.run(over_mcp()).startswith("Ana chose")
        link = said[2].split()[-1]
        assert link.startswith(f"{address}/login?code=")
        with httpx.Client(follow_redirects=True, headers={"Accept": "text/html"}, timeout=60) as person:
            assert person.get(link).status_code == 200
            assert "Ana chose" in person.get(f"{address}/memories").text


def test_a_closed_terminal_ends_the_server_in_order(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rlm_mem", "serve", "--brain", str(tmp_path / "brain"), "--port", "0"]
    with subprocess.Popen([*command, "--no-dashboard"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[2].rstrip(",")
        assert httpx.get(address, timeout=30).status_code
        process.send_signal(signal.SIGHUP)
        assert (process.wait(30), "Traceback" in process.stderr.read()) == (0, False)


def test_the_token_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "token"
    said: list[str] = []
    options = ("--token-file", str(file), "--no-dashboard")
    for _ in range(2):
        with running(tmp_path / "brain", *options, token=None, said=said) as address:
            token = file.read_text(encoding="utf-8").strip()
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=address, timeout=60) as http:
                assert http.get("/api/v1/about", headers=headers).status_code == 200
                assert http.get("/login").status_code == 401
    assert len(token) >= 32
    assert file.stat().st_mode & 0o777 == 0o600
    assert not any(token in line for line in said)
    file.chmod(0o644)
    assert "read by others" in refused_to_start(tmp_path, "--token-file", str(file))
    file.write_text("short", encoding="utf-8")
    file.chmod(0o600)
    assert "fewer than 16" in refused_to_start(tmp_path, "--token-file", str(file))


def test_without_a_token_one_is_made_and_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    with running(tmp_path / "brain", "--no-dashboard", token=None, said=said) as address:
        token = said[0].split()[-1]
        assert len(token) >= 32
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{address}/api/v1/about", headers=headers, timeout=60).is_success


def refused_to_start(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "rlm_mem", "serve", "--brain", str(folder / "brain"), *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode in (1, 2)
    assert "Traceback" not in ran.stderr
    return ran.stderr


def test_a_port_that_is_taken_is_said_in_one_line(tmp_path: Path) -> None:
    with running(tmp_path / "brain", "--no-dashboard") as address:
        said = refused_to_start(tmp_path, "--port", address.rpartition(":")[2])
    assert "cannot be used" in said
    assert "--port 0" in said


@pytest.mark.parametrize("option", [("--rate", "-1"), ("--port", "70000"), ("--tools", "some")])
def test_an_option_that_makes_no_sense_is_refused(tmp_path: Path, option: tuple[str, str]) -> None:
    assert option[0] in refused_to_start(tmp_path, *option)
