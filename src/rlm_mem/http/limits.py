"""Limits the rate of requests per client, and the size and transfer time of bodies."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rlm_mem.access.grants import Caller, client_of
from rlm_mem.http.encoding import problem_response
from rlm_mem.operations.problems import Problem, problem

_MAX_BUCKETS = 1024
_CONCURRENT = 64
"""Maximum concurrent requests of one client."""
BODY_SECONDS = 30.0
"""Total seconds to wait for a request's body, plus one for each kilobyte received."""
_BODY_RATE = 1000
_DRAIN_SECONDS, _DRAIN_PART_SECONDS = 10.0, 1.0
"""Seconds to receive the rest of a body that nobody reads, in all and for each part."""


class BodyTooLarge(Exception):
    """The body of a request exceeds the limit, in bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"a body may have at most {limit:,} bytes here")


class Buckets:
    """Rate limiter with a token bucket per client, which allows bursts but limits the sustained rate; thread-safe.

    Args:
        rate: sustained requests per second of a client; 0: no limit.
        burst: maximum requests at once.
        clock: returns monotonic seconds.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._guard = threading.Lock()

    def take(self, client: str, client_rate: float | None = None) -> int:
        """Count a request; returns 0 if it is allowed, else the whole seconds after which to retry.

        Args:
            client_rate: rate of this client instead of the common one, with a burst of four times that rate.
        """
        rate = self.rate if client_rate is None else client_rate
        burst = self.burst if client_rate is None else max(1, round(4 * client_rate))
        if rate <= 0:
            return 0
        now = self._clock()
        with self._guard:
            left, since = self._buckets.pop(client, (float(burst), now))
            left = min(burst, left + (now - since) * rate)
            wait = 0 if left >= 1 else math.ceil((1 - left) / rate)
            self._buckets[client] = (left if wait else left - 1, now)
            while len(self._buckets) > _MAX_BUCKETS:  # the least recently active client
                del self._buckets[next(iter(self._buckets))]
        return wait


class ClientLimits:
    """Limits the rate and the concurrency of each client, over the HTTP interface and MCP together.

    Args:
        buckets: limit the rate of each client.
    """

    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets
        self._running: Counter[str] = Counter()

    @contextlib.contextmanager
    def request(self, client: Caller) -> Iterator[Problem | None]:
        """Count a request while it is answered; yields the refusal if it exceeds a limit, else None."""
        access = client.access
        # All clients with the same token are one user, but a logged-in browser has its own bucket.
        name = f"{access.actor} in a browser" if client.browser else access.actor
        wait = self._buckets.take(name, access.rate)
        if wait:
            rate = self._buckets.rate if access.rate is None else access.rate
            yield problem(429, f"more than {rate:g} requests a second", retry_after=wait)
            return
        if self._running[name] >= _CONCURRENT:
            yield problem(429, f"more than {_CONCURRENT} requests at the same time", retry_after=1)
            return
        self._running[name] += 1
        try:
            yield None
        finally:
            self._running[name] -= 1
            if not self._running[name]:
                del self._running[name]


class TimedBody:
    """Wraps ``receive`` to report the client as disconnected if its body takes too long."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._waited = 0.0
        self._size = 0
        self._complete = False
        self.too_slow = False

    async def __call__(self) -> Message:
        if self._complete:
            return await self._receive()
        began = time.monotonic()
        try:
            async with asyncio.timeout(BODY_SECONDS + self._size / _BODY_RATE - self._waited):
                message = await self._receive()
        except TimeoutError:
            self.too_slow = self._complete = True
            return {"type": "http.disconnect"}
        self._waited += time.monotonic() - began
        self._size += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        return message

    async def drain(self) -> None:
        """Receive and drop the rest of the body, within bounds.

        If a connection is closed while its client still sends, the client gets an error instead of the answer.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self._complete:
                    async with asyncio.timeout(_DRAIN_PART_SECONDS):
                        await self()


class Limited:
    """ASGI middleware that applies the limits of each client."""

    def __init__(self, inner: ASGIApp, limits: ClientLimits) -> None:
        self._inner = inner
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._limits.request(client_of(scope)) as refusal:
            answer = self._inner if refusal is None else problem_response(refusal)
            await answer(scope, receive, send)


async def body_parts(request: Request, limit: int) -> AsyncGenerator[bytes, None]:
    """Yield the parts of a body as they arrive.

    Raises:
        BodyTooLarge: its declared or actual length exceeds the limit, in bytes.
    """
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > 18 or int(declared) > limit):
        raise BodyTooLarge(limit)
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise BodyTooLarge(limit)
        yield part


async def read_body(request: Request, limit: int) -> bytes:
    """Read the whole body; raises the errors of ``body_parts``."""
    return b"".join([part async for part in body_parts(request, limit)])
