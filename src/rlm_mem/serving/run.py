"""Runs the server: over stdio for one client, or over HTTP for several."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_mem import own_process, telemetry
from rlm_mem.access.grants import client_of
from rlm_mem.access.tokens import TokenFile
from rlm_mem.config import Config, locate
from rlm_mem.errors import InvalidConfig, StorageError
from rlm_mem.http.guard import Keys
from rlm_mem.http.metrics import Metrics
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.operations.operation import PREFIX
from rlm_mem.operations.state import ServerState
from rlm_mem.serving.app import create_app
from rlm_mem.serving.handover import HandedOver, Predecessor, start_successor
from rlm_mem.serving.network import Network, listening
from rlm_mem.serving.running import Running

if TYPE_CHECKING:
    from rlm_mem.mcp.server import McpServer

#: Environment variable with the token, so that clients need not be reconfigured at every start.
TOKEN_VARIABLE = "RLM_MEM_TOKEN"

_MIN_TOKEN_LENGTH = 16

_SWITCH_SECONDS = 0.0005
"""How long a thread may keep the interpreter while others wait. Python's default of 5 ms adds up to a
third of a second over the twenty or so steps of a request while recalls are busy (benchmarks/stalls.py)."""


@own_process.until_stopped()
def serve_stdio(settings: Settings) -> None:
    """Serve one client over stdin and stdout until they are closed. All other output goes to stderr."""
    _log_to_stderr()
    from rlm_mem.mcp.server import McpServer
    from rlm_mem.mcp.service import Service

    server = McpServer(Service(OpenMemory(settings)))
    try:
        asyncio.run(_stdio(server))
    finally:
        server.close()


async def _stdio(server: McpServer) -> None:
    from mcp.server.stdio import stdio_server

    from rlm_mem.mcp.messages import AnsweredMessages

    ending = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

    def end(number: int) -> None:
        for one in ending:
            signal.signal(one, signal.SIG_DFL)  # a second one ends the process at once, whatever runs
        server.close()
        own_process.leave(128 + number if number == signal.SIGINT else 0, wait=False)

    loop = asyncio.get_running_loop()
    for number in ending:
        if signal.getsignal(number) is not signal.SIG_IGN:
            # A task that is cancelled would wait for the thread that reads stdin, which nothing interrupts.
            # Not on Windows, nor in another thread than the main one.
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, end, number)
    async with stdio_server() as (reading, writing):
        options = server.protocol.create_initialization_options()
        await server.protocol.run(AnsweredMessages(reading, writing), writing, options)


@own_process.until_stopped()
def serve_all(
    settings: Settings,
    network: Network,
    *,
    token_file: Path | None = None,
    api: bool = True,
    dashboard: bool = True,
    open_browser: bool = False,
    rate: float = 50.0,
    drain_seconds: float = 30.0,
) -> None:
    """Serve MCP, the HTTP interface and the dashboard until interrupted; prints addresses and login to stderr.

    Args:
        network: how clients reach the server.
        token_file: contains the token; a missing file is created with a new token, readable by this user only.
        api, dashboard: whether to serve them.
        open_browser: whether to open the dashboard with a single-use login link.
        rate: sustained requests per second of a client; 0: no limit.
        drain_seconds: time limit for running requests when the server is stopped.

    Raises:
        InvalidConfig: the token is too short, or other machines could connect without protection.
        StorageError: the port is taken.
    """
    _log_to_stderr()
    if hasattr(signal, "SIGUSR2"):  # ignore requests to hand over before the server is ready
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    # Before the first request; opening the memory would start it only later.
    telemetry.start(Config.load(locate(settings.brain)).telemetry)
    predecessor = Predecessor.of_environment()
    former = HandedOver() if predecessor is None else predecessor.state
    tokens = None if settings.tokens is None else TokenFile(settings.tokens)
    network.check(tokens)
    token, source = _owner_token(network, token_file, former)
    with contextlib.ExitStack() as closing:
        socket_ = closing.enter_context(listening(network) if predecessor is None else predecessor.listening)
        port = socket_.getsockname()[1]
        site, metrics, state = network.site(port), Metrics(), ServerState(settings)
        closing.callback(state.close)
        oauth = None
        if network.oauth_issuer is not None:
            from rlm_mem.access.oauth import ResourceServer

            oauth = ResourceServer(network.oauth_issuer, site.resource)
        keys = Keys(token, port, tokens=tokens, oauth=oauth, secure=site.secure)
        keys.take_over(_logins(former, token), former.choices)

        def mcp_server() -> McpServer:
            from rlm_mem.mcp.server import McpServer
            from rlm_mem.mcp.service import Service

            server = McpServer(Service(state.opened), client_of)
            closing.callback(server.close)
            return server

        app = create_app(
            state, keys=keys, port=port, mcp=mcp_server, api=api, dashboard=dashboard, rate=rate, site=site,
            metrics=metrics,
        )  # fmt: skip
        running = Running(app, network, metrics, state, drain_seconds)
        running.on_replace = lambda: start_successor(
            socket_, HandedOver(token, source, keys.logins(), keys.choices())
        )
        if predecessor is None:
            code = keys.new_code() if dashboard and token is not None else None
            _announce(site.address, source, code, api=api, open_browser=open_browser)
        else:
            running.on_ready = predecessor.ready
        sys.setswitchinterval(_SWITCH_SECONDS)
        asyncio.run(running.serve(sockets=[socket_]))


def _announce(address: str, token_source: str, code: str | None, *, api: bool, open_browser: bool) -> None:
    """Print the addresses to stderr, with a link to the dashboard if there is a login code, and open it if wanted."""
    lines = [f"HTTP at {address}{PREFIX}, {token_source}"] if api else []
    lines.append(f"MCP at {address}/mcp" if api else f"MCP at {address}/mcp, {token_source}")
    link = f"{address}/login?code={code}"
    if code is not None:
        lines.append(f"dashboard, by a link that works once: {link}")
    print("\n".join(lines), file=sys.stderr, flush=True)
    if code is not None and open_browser:
        import webbrowser

        # The socket is listening, so the browser's requests wait until the application has started.
        webbrowser.open(link)


def _owner_token(network: Network, path: Path | None, former: HandedOver) -> tuple[str | None, str]:
    """The owner's token, and its source: the file, the environment, or a new token.

    A server open to other machines has one only from a file or the environment. A server that takes over reads the file
    again, since the token may have been replaced because it leaked.

    Raises:
        InvalidConfig: the token is too short, or others can read the file. StorageError: the file cannot be used.
    """
    if path is not None:
        return _token_from_file(path), f"the token in {path}"
    if former.source:
        return former.token, former.source
    from_environment = os.environ.get(TOKEN_VARIABLE, "")
    if from_environment:
        return _checked_token(from_environment, TOKEN_VARIABLE), f"the token in {TOKEN_VARIABLE}"
    if not network.local_only:
        return None, "named tokens (rlm-mem token list)"
    token = secrets.token_urlsafe(32)
    return token, f"token {token}"


def _logins(former: HandedOver, token: str | None) -> dict[str, str | None]:
    """The logins of the previous server, without those of its owner's token if that was replaced."""
    kept = former.token == token
    return {cookie: named for cookie, named in former.logins.items() if kept or named is not None}


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
        reason = getattr(error, "strerror", None) or "it is not text"
        raise StorageError(f"{path} cannot be used: {reason}") from None


def _checked_token(token: str, where: str) -> str:
    if len(token) < _MIN_TOKEN_LENGTH:
        raise InvalidConfig(
            f"{where} has fewer than {_MIN_TOKEN_LENGTH} characters",
            hint="use a long random one, or leave it out to create a new one at each start",
        )
    return token


def _log_to_stderr() -> None:
    """Log warnings and errors to stderr, since stdout is reserved for the protocol."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
