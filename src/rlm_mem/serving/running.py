"""The HTTP server, which drains when it is stopped so that no received request is lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette

from rlm_mem.http.metrics import Metrics
from rlm_mem.operations.state import ServerState
from rlm_mem.serving.network import Network

_LINGER_SECONDS = 2.0
"""Seconds for which a connection without a request stays open while the server drains: a request already on its way
is still answered, and its connection then closed."""
_STEP = 0.02
_TICKS = 10
"""Ticks (of 0.1 seconds) between checks of idle connections."""
_HEAD_SECONDS = 30.0
"""Seconds in which a connection must send the head of a request, or the rest of an answered one."""

_SEND_SECONDS = 60.0
"""Seconds after which a client that reads nothing of a pending answer is disconnected."""

_log = logging.getLogger(__name__)


class Running(uvicorn.Server):
    """An HTTP server that drains when it is stopped, and hands over to a new one on SIGUSR2.

    Args:
        network: provides the certificate and its key.
        metrics: counts running requests, and records that the server is draining.
        state: the server's state.
        drain_seconds: time limit for running requests while draining.
    """

    def __init__(
        self, app: Starlette, network: Network, metrics: Metrics, state: ServerState, drain_seconds: float
    ) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=3,
            ssl_certfile=network.tls_cert,
            ssl_keyfile=network.tls_key,
            # Proxy headers are evaluated by the guard, which decides whether to trust them.
            proxy_headers=False,
            server_header=False,
        )
        super().__init__(config)
        self._metrics = metrics
        self._state = state
        self._drain_seconds = drain_seconds
        self._handing_over: asyncio.Task[None] | None = None
        self._waiting: dict[Any, tuple[Any, float]] = {}
        self._unread: dict[Any, tuple[int, float]] = {}
        self.on_replace: Callable[[], Awaitable[bool]] | None = None
        """Starts a new server; returns True when the new server has taken over."""
        self.on_ready: Callable[[], None] = lambda: None
        """Called when the server has started to answer requests."""

    async def on_tick(self, counter: int) -> bool:
        """Whether to stop; called ten times a second."""
        if counter % _TICKS == 0:
            self._close_waiting()
            self._end_unread()
        return await super().on_tick(counter)

    def _close_waiting(self) -> None:
        """Close connections that are slow to send a request; the library only closes those idle after an answer."""
        now, waiting = time.monotonic(), {}
        for connection in self.server_state.connections:
            cycle = getattr(connection, "cycle", None)  # the last request
            if cycle is not None and not cycle.response_complete:
                continue
            before, since = self._waiting.get(connection, (None, now))
            waiting[connection] = cycle, since if before is cycle else now
            if now - waiting[connection][1] > _HEAD_SECONDS:
                transport = connection.transport
                if transport is not None:
                    transport.close()
        self._waiting = waiting

    def _end_unread(self) -> None:
        """Abort connections whose clients have stopped reading, since their answers would be kept in memory forever."""
        now, unread = time.monotonic(), {}
        for connection in self.server_state.connections:
            transport = connection.transport
            size = 0 if transport is None else transport.get_write_buffer_size()
            if size:
                size += _unsent(transport.get_extra_info("socket"))
                before, since = self._unread.get(connection, (size, now))
                unread[connection] = size, since if size >= before else now
                if now - unread[connection][1] > _SEND_SECONDS:
                    transport.abort()  # close() would wait until all data is sent
        self._unread = unread

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal ends it; a closed terminal (SIGHUP) does as SIGTERM."""
        hang_up = getattr(signal, "SIGHUP", None)
        if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(hang_up, lambda *_: self.handle_exit(signal.SIGTERM, None))
        await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving."""
        await super().startup(sockets)
        if hasattr(signal, "SIGUSR2"):
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # not in the main thread
                asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, self._replace)
        self.on_ready()

    def _replace(self) -> None:
        if self._handing_over is None and self.on_replace is not None and not self.should_exit:
            self._handing_over = asyncio.ensure_future(self._hand_over(self.on_replace))

    async def _hand_over(self, start: Callable[[], Awaitable[bool]]) -> None:
        try:
            self.should_exit = await start()
        finally:
            self._handing_over = None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, answer received requests, then stop."""
        self._metrics.draining = True
        for server in self.servers:
            server.close()
        for one in sockets or []:
            one.close()
        await self._state.end_streams()
        began = time.monotonic()
        while self.server_state.connections and not self.force_exit:
            passed = time.monotonic() - began
            if passed > self._drain_seconds:
                _log.warning("%d requests did not end in time", self._metrics.running)
                break
            if not self._metrics.running and passed > _LINGER_SECONDS:
                break
            await asyncio.sleep(_STEP)
        await super().shutdown(None)
        # Do not raise SIGTERM again: the process exits after it has closed the memory.
        self._captured_signals = [one for one in self._captured_signals if one != signal.SIGTERM]


def _unsent(connected: Any) -> int:
    """Bytes in the system's send buffer; a slow client can read for minutes from it alone."""
    if connected is None or not sys.platform.startswith("linux"):
        return 0
    import fcntl
    import termios

    with contextlib.suppress(OSError):
        return int.from_bytes(fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)
    return 0
