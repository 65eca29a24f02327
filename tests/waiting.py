"""Waiting in tests: for the thing itself, with a deadline that is generous, since a machine may be busy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

DEADLINE = 60.0
"""Seconds after which what a test waits for counts as never coming."""


def until(condition: Callable[[], T], what: str = "it", seconds: float = DEADLINE, every: float = 0.01) -> T:
    """Ask again and again until the answer is true, and return it.

    Args:
        condition: asked every ``every`` seconds.
        what: what the message of a failure says is missing.

    Raises:
        AssertionError: the deadline has passed.
    """
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"{what} did not come to be within {seconds:g} seconds"
        time.sleep(every)
    return answer


async def soon(condition: Callable[[], T], what: str = "it", seconds: float = DEADLINE) -> T:
    """The same, leaving the event loop to others meanwhile."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"{what} did not come to be within {seconds:g} seconds"
        await asyncio.sleep(0.01)
    return answer


def takes(seconds: float) -> None:
    """Let time pass in a stand-in for something slow; never to wait for anything."""
    time.sleep(seconds)
