"""Retries of transient failures, with growing waits, within the caller's deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rlm_mem.errors import ModelError, ModelOverloaded, ModelTimeout

T = TypeVar("T")

TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
"""HTTP statuses worth another attempt, besides every 5xx."""


class TransientFailure(Exception):
    """One attempt failed, but another may succeed; internal to ``call_with_retries``.

    Args:
        error: the error to raise if no attempt is left.
        retry_after: seconds to wait as requested by the provider, or None.
    """

    def __init__(self, error: ModelError, retry_after: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_after = retry_after


@dataclass(frozen=True)
class RetryPolicy:
    """Number of retries and the waits between them.

    Attributes:
        retries: maximum number of attempts after the first.
        first_wait: seconds before the second attempt; each later wait is ``factor`` times as long.
        longest_wait: maximum seconds of a single wait; if the provider asks for more, the call fails.
        jitter: returns a number from 0 to 1; a wait is cut to between half and all of its length, so that
            many clients do not retry at the same instant. Tests inject it, ``sleep`` and ``clock``.
    """

    retries: int = 2
    first_wait: float = 0.5
    factor: float = 2.0
    longest_wait: float = 30.0
    jitter: Callable[[], float] = random.random
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def wait_before(self, retry: int, retry_after: float | None = None) -> float:
        """Seconds to wait before a retry (from 1); a wait requested by the provider is not shortened."""
        wait = min(self.first_wait * self.factor ** (retry - 1), self.longest_wait)
        wait *= 0.5 + 0.5 * self.jitter()
        return wait if retry_after is None else max(wait, retry_after)


def call_with_retries(
    attempt: Callable[[float | None], T], policy: RetryPolicy, timeout: float | None = None
) -> tuple[T, int]:
    """Call ``attempt(seconds left)`` until it succeeds; returns its result and the number of attempts.

    Args:
        attempt: raises TransientFailure if another attempt may succeed, else any other exception.
        policy: number of attempts and waits between them.
        timeout: total seconds for all attempts and waits, or None.

    Raises:
        ModelError: the last attempt failed, or waiting for another would exceed a limit.
    """
    deadline = None if timeout is None else policy.clock() + timeout
    number = 0
    while True:
        number += 1
        left = None if deadline is None else deadline - policy.clock()
        if left is not None and left <= 0:
            raise ModelTimeout(
                f"the model did not answer within {timeout:g} seconds", hint="raise the time-out"
            )
        try:
            return attempt(left), number
        except TransientFailure as failure:
            if number > policy.retries:
                raise failure.error from failure.__cause__
            wait = policy.wait_before(number, failure.retry_after)
            if wait > policy.longest_wait:
                raise ModelOverloaded(
                    f"{failure.error.message.rstrip('.')}; the provider asks to wait {wait:.0f} seconds",
                    hint=failure.error.hint,
                ) from failure.__cause__
            if deadline is not None and policy.clock() + wait >= deadline:
                raise failure.error from failure.__cause__
            policy.sleep(wait)
