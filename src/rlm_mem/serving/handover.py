"""Hands over to a new server process that inherits the listening socket, so that no connection is refused.

The old server starts the new one with the same arguments, sends it the state that exists only in memory (browser
logins, and a token made at start), waits until it is ready, and then drains. If the new server does not become ready,
the old one continues unchanged.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import sys

import msgspec

from rlm_mem.errors import StorageError

_VARIABLE = "RLM_MEM_HANDOVER"
_READY = b"ready"
_START_SECONDS = 120.0
_STATE_SECONDS = 30.0
_MAX_STATE = 1 << 20

_log = logging.getLogger(__name__)


class HandedOver(msgspec.Struct, frozen=True):
    """What a server keeps in memory only, and its successor continues.

    Attributes:
        token, source: the owner's token and where it comes from; empty if the server was started normally.
        logins, choices: ``Keys.logins`` and ``Keys.choices``.
    """

    token: str | None = None
    source: str = ""
    logins: dict[str, str | None] = {}
    choices: dict[str, str] = {}


class Predecessor:
    """The server process that started this one as its successor.

    Args:
        listening: the listening socket, shared by both servers.
        channel: the socket to the predecessor.
        state: the state sent by the predecessor.
    """

    def __init__(self, listening: socket.socket, channel: socket.socket, state: HandedOver) -> None:
        self.listening = listening
        self._channel = channel
        self.state = state

    @classmethod
    def of_environment(cls) -> Predecessor | None:
        """The predecessor given in the environment; None for a server that was started normally.

        Raises:
            StorageError: the predecessor has exited, or the variable is malformed.
        """
        named = os.environ.pop(_VARIABLE, "")
        if not named:
            return None
        try:
            inherited, channel = (socket.socket(fileno=int(one)) for one in named.split(","))
            for one in (inherited, channel):
                one.set_inheritable(False)
            channel.settimeout(_STATE_SECONDS)
            received = b""
            while not received.endswith(b"\n") and len(received) < _MAX_STATE:
                part = channel.recv(65536)
                if not part:
                    raise ConnectionError("the channel was closed")
                received += part
            return cls(inherited, channel, msgspec.json.decode(received, type=HandedOver))
        except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise StorageError(f"{_VARIABLE} does not name a server to take over from: {error}") from None

    def ready(self) -> None:
        """Notify the predecessor that it can drain."""
        with contextlib.suppress(OSError):  # the predecessor has exited; this process has the socket
            self._channel.sendall(_READY)
            self._channel.close()


async def start_successor(listening: socket.socket, state: HandedOver) -> bool:
    """Start a server with the arguments of this one; True once it is ready, False if it fails to start.

    Args:
        listening: the listening socket, which the new server inherits.
        state: the state to send to it.
    """
    own_socket, successor_socket = socket.socketpair()
    with own_socket, successor_socket:
        own_socket.setblocking(False)
        inherited_fds = (listening.fileno(), successor_socket.fileno())
        process = subprocess.Popen(
            [sys.executable, "-m", "rlm_mem", *sys.argv[1:]],
            pass_fds=inherited_fds,
            env={**os.environ, _VARIABLE: ",".join(map(str, inherited_fds))},
        )
        successor_socket.close()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_START_SECONDS):
                await loop.sock_sendall(own_socket, msgspec.json.encode(state) + b"\n")
                reply = await loop.sock_recv(own_socket, len(_READY))
        except (OSError, TimeoutError) as error:
            reply = b""
            _log.error("the new server could not be started: %s", type(error).__name__)
        if reply == _READY:
            return True
        if process.poll() is None:
            process.kill()
        await asyncio.to_thread(process.wait)
        _log.error("the new server did not start (status %s): this one continues", process.returncode)
        return False
