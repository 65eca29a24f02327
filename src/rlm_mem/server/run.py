"""Running the server: over stdio for one client, or over HTTP on the loopback interface for several."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import sys

from rlm_mem.errors import InvalidConfig, StorageError
from rlm_mem.server.mcp_server import McpServer
from rlm_mem.server.service import Service, Settings

__all__ = ["TOKEN_VARIABLE", "serve_http", "serve_stdio"]

#: Environment variable with the token, for clients whose configuration must not change with every start.
TOKEN_VARIABLE = "RLM_MEM_TOKEN"

_SHORTEST_TOKEN = 16


def serve_stdio(settings: Settings) -> None:
    """Serve the one client at stdin and stdout until it closes them. Everything else goes to stderr."""
    _log_to_stderr()
    server = McpServer(Service(settings))
    try:
        asyncio.run(_stdio(server))
    finally:
        server.close()


async def _stdio(server: McpServer) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.protocol.run(reading, writing, server.protocol.create_initialization_options())


def serve_http(settings: Settings, port: int) -> None:
    """Serve MCP at `http://127.0.0.1:PORT/mcp` until interrupted; where and with which token goes to stderr.

    Args:
        port: 0 takes a free one.

    Raises:
        InvalidConfig: the token in the environment is too short to protect anything.
        StorageError: the port is taken.
    """
    import uvicorn

    from rlm_mem.server.http import LOOPBACK, create_app

    _log_to_stderr()
    given = os.environ.get(TOKEN_VARIABLE, "")
    if given and len(given) < _SHORTEST_TOKEN:
        raise InvalidConfig(
            f"{TOKEN_VARIABLE} holds fewer than {_SHORTEST_TOKEN} characters",
            hint="Use a long random one, or leave it out: then a new one is made for each start.",
        )
    token = given or secrets.token_urlsafe(32)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, port))
            listening.listen()  # from here on clients may connect; they wait until the application is up
        except OSError as error:
            raise StorageError(
                f"port {port} of {LOOPBACK} cannot be used: {error.strerror}",
                hint="--port 0 takes a free one.",
            ) from None
        port = listening.getsockname()[1]
        server = McpServer(Service(settings))
        app = create_app(server, token=token, port=port)
        secret = f"the token in {TOKEN_VARIABLE}" if given else f"token {token}"
        print(f"MCP at http://{LOOPBACK}:{port}/mcp, {secret}", file=sys.stderr, flush=True)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=3
        )
        try:
            asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))
        finally:
            server.close()


def _log_to_stderr() -> None:
    """Warnings and errors to stderr: stdout belongs to the protocol."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
