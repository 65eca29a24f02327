"""Limits: the rate of a client's requests, and the size of a body."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["BodyTooLarge", "Buckets", "body_parts", "read_body"]

_MOST_BUCKETS = 1024


class BodyTooLarge(Exception):
    """The body of a request exceeds the limit; ``limit`` is in bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"a body may have at most {limit:,} bytes here")
        self.limit = limit


class Buckets:
    """A token bucket for each client: allows bursts, limits the sustained rate. Safe for threads.

    Args:
        rate: sustained requests a second; 0: no limit.
        burst: requests at once.
        clock: seconds, monotonic.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._guard = threading.Lock()

    def take(self, client: str) -> int:
        """Count one request; 0 when it is allowed, else the whole seconds after which to retry."""
        if self.rate <= 0:
            return 0
        now = self._clock()
        with self._guard:
            left, since = self._buckets.pop(client, (float(self.burst), now))
            left = min(self.burst, left + (now - since) * self.rate)
            wait = 0 if left >= 1 else math.ceil((1 - left) / self.rate)
            self._buckets[client] = (left if wait else left - 1, now)
            while len(self._buckets) > _MOST_BUCKETS:  # the least recently active client
                del self._buckets[next(iter(self._buckets))]
        return wait


async def body_parts(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body in parts, as they arrive.

    Raises:
        BodyTooLarge: its declared or actual length exceeds the limit.
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
    """The whole body; raises as ``body_parts`` does."""
    return b"".join([part async for part in body_parts(request, limit)])
