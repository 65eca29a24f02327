"""Running the server: over stdio for one client, or over HTTP on the loopback interface for several."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_mem import telemetry
from rlm_mem.config import Config, locate
from rlm_mem.errors import InvalidConfig, StorageError
from rlm_mem.http.guard import LOOPBACK, Keys
from rlm_mem.mcp.server import McpServer
from rlm_mem.mcp.service import Service
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.operations.state import ServerState
from rlm_mem.serving.app import create_app

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from rlm_mem.operations.state import ServerState

__all__ = ["TOKEN_VARIABLE", "serve_all", "serve_http", "serve_stdio", "token_from"]

#: Environment variable with the token, for clients whose configuration must not change with every start.
TOKEN_VARIABLE = "RLM_MEM_TOKEN"

_MIN_TOKEN_LENGTH = 16

_SWITCH_SECONDS = 0.0005
"""How long a thread may keep the interpreter while others wait. Python's default of 5 ms adds up to a third of a
second over the about twenty steps of a request beside busy recalls (benchmarks/stalls.py)."""


def serve_stdio(settings: Settings) -> None:
    """Serve one client over stdin and stdout until it closes them. Everything else goes to stderr."""
    _log_to_stderr()
    server = McpServer(Service(OpenMemory(settings)))
    try:
        asyncio.run(_stdio(server))
    finally:
        server.close()


async def _stdio(server: McpServer) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.protocol.run(reading, writing, server.protocol.create_initialization_options())


def serve_http(settings: Settings, port: int) -> None:
    """Serve MCP at `http://127.0.0.1:PORT/mcp` until interrupted; prints address and token to stderr.

    Args:
        port: 0 takes a free one.

    Raises:
        InvalidConfig: the token in the environment is too short to protect anything.
        StorageError: the port is taken.
    """
    _log_to_stderr()
    _start_telemetry(settings)
    token, token_source = token_from(None)
    with _listening(port) as listening:
        port = listening.getsockname()[1]
        state = ServerState(settings, token=token)
        server = McpServer(Service(state.opened))
        print(f"MCP at http://{LOOPBACK}:{port}/mcp, {token_source}", file=sys.stderr, flush=True)
        app = create_app(state, keys=Keys(token, port), port=port, mcp=server)
        _run(app, listening, server, state)


def serve_all(
    settings: Settings,
    port: int,
    *,
    token_file: Path | None = None,
    dashboard: bool = True,
    open_browser: bool = False,
    rate: float = 50.0,
) -> None:
    """Serve MCP, the HTTP interface and the dashboard until interrupted; prints addresses and login to stderr.

    Args:
        port: 0 takes a free one.
        token_file: contains the token; a missing file is created with a new token, readable by this user only.
        open_browser: open the dashboard with a link that logs in once.
        rate: sustained requests a second of one client of the HTTP interface; 0: no limit.

    Raises:
        InvalidConfig: the token is too short to protect anything. StorageError: the port is taken.
    """
    _log_to_stderr()
    _start_telemetry(settings)
    token, token_source = token_from(token_file)
    with _listening(port) as listening:
        port = listening.getsockname()[1]
        state = ServerState(settings, token=token)
        server = McpServer(Service(state.opened))
        keys = Keys(token, port)
        app = create_app(
            state,
            keys=keys,
            port=port,
            mcp=server,
            api=True,
            dashboard=dashboard,
            rate=rate,
            burst=max(1, round(4 * rate)),
        )
        address = f"http://{LOOPBACK}:{port}"
        lines = [f"HTTP at {address}/api/v1, {token_source}", f"MCP at {address}/mcp"]
        if dashboard:
            link = f"{address}/login?code={keys.new_code()}"
            lines.append(f"dashboard, by a link that works once: {link}")
        print("\n".join(lines), file=sys.stderr, flush=True)
        if dashboard and open_browser:
            import webbrowser

            # The socket is listening: requests of the browser wait until the application has started.
            webbrowser.open(link)
        _run(app, listening, server, state)


def token_from(path: Path | None) -> tuple[str, str]:
    """The token, and a description of its source: the file, else the environment, else a new one.

    Raises:
        InvalidConfig: it is too short, or others can read the file. StorageError: the file cannot be used.
    """
    if path is not None:
        return _token_from_file(path), f"the token in {path}"
    given = os.environ.get(TOKEN_VARIABLE, "")
    if given:
        return _checked_token(given, TOKEN_VARIABLE), f"the token in {TOKEN_VARIABLE}"
    token = secrets.token_urlsafe(32)
    return token, f"token {token}"


def _token_from_file(path: Path) -> str:
    try:
        if not path.exists():
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(descriptor, secrets.token_urlsafe(32).encode() + b"\n")
            finally:
                os.close(descriptor)
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise InvalidConfig(
                f"{path} can be read by others", hint=f"chmod 600 {path} makes it readable by you alone"
            )
        return _checked_token(path.read_text(encoding="utf-8").strip(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, InvalidConfig):
            raise
        reason = getattr(error, "strerror", None) or "it is not text"
        raise StorageError(f"{path} cannot be used: {reason}") from None


def _checked_token(token: str, where: str) -> str:
    if len(token) < _MIN_TOKEN_LENGTH:
        raise InvalidConfig(
            f"{where} has fewer than {_MIN_TOKEN_LENGTH} characters",
            hint="use a long random one, or leave it out for a new one at each start",
        )
    return token


@contextlib.contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    """A socket that listens on the loopback interface: from here on clients may connect and wait."""
    # asyncio sets TCP_NODELAY only on a socket with an explicit protocol: without it each answer waits 40 ms for
    # the client's acknowledgement of its headers.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, port))
            listening.listen()
        except OSError as error:
            raise StorageError(
                f"port {port} of {LOOPBACK} cannot be used: {error.strerror}",
                hint="--port 0 takes a free one",
            ) from None
        yield listening


def _run(app: Starlette, listening: socket.socket, server: McpServer, state: ServerState) -> None:
    import uvicorn

    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=3
    )
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))
    finally:
        server.close()
        state.close()


def _start_telemetry(settings: Settings) -> None:
    """Switch telemetry on before the first request: the memory, which does it too, is opened later."""
    telemetry.start(Config.load(locate(settings.brain)).telemetry)


def _log_to_stderr() -> None:
    """Warnings and errors to stderr: stdout is for the protocol."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
