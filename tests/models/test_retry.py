"""Retries: what is tried again, how long it waits, and where it stops."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rlm_mem.errors import ModelOverloaded, ModelRefused, ModelTimeout
from rlm_mem.models.retry import RetryPolicy, TransientFailure, call_with_retries


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def policy(self, retries: int = 3, jitter: float = 1.0) -> RetryPolicy:
        return RetryPolicy(
            retries=retries, first_wait=1.0, jitter=lambda: jitter, sleep=self.sleep, clock=lambda: self.now
        )


def failing(times: int, retry_after: float | None = None) -> Callable[[float | None], str]:
    left = [times]

    def attempt(_: float | None) -> str:
        if left[0] > 0:
            left[0] -= 1
            raise TransientFailure(ModelOverloaded("busy"), retry_after)
        return "done"

    return attempt


def test_transient_failures_are_tried_again_with_growing_waits() -> None:
    clock = Clock()
    assert call_with_retries(failing(3), clock.policy()) == ("done", 4)
    assert clock.waits == [1.0, 2.0, 4.0]


def test_jitter_shortens_a_wait_to_half_of_it_at_most() -> None:
    clock = Clock()
    call_with_retries(failing(2), clock.policy(jitter=0.0))
    assert clock.waits == [0.5, 1.0]


def test_when_no_attempt_is_left_the_last_error_is_raised() -> None:
    clock = Clock()
    with pytest.raises(ModelOverloaded, match="busy"):
        call_with_retries(failing(9), clock.policy(retries=2))
    assert len(clock.waits) == 2


def test_other_errors_are_not_tried_again() -> None:
    calls = []

    def attempt(_: float | None) -> str:
        calls.append(1)
        raise ModelRefused("too long")

    with pytest.raises(ModelRefused):
        call_with_retries(attempt, Clock().policy())
    assert len(calls) == 1


def test_the_wait_that_a_provider_asks_for_is_respected() -> None:
    clock = Clock()
    call_with_retries(failing(1, retry_after=7.0), clock.policy())
    assert clock.waits == [7.0]


def test_a_wait_beyond_the_limit_is_an_error_at_once() -> None:
    clock = Clock()
    with pytest.raises(ModelOverloaded, match="asks to wait 3600 seconds"):
        call_with_retries(failing(1, retry_after=3600.0), clock.policy())
    assert clock.waits == []


def test_it_does_not_wait_beyond_the_deadline() -> None:
    clock = Clock()
    with pytest.raises(ModelOverloaded, match="busy"):
        call_with_retries(failing(9), clock.policy(), timeout=2.5)
    assert clock.now <= 2.5


def test_each_attempt_gets_the_time_that_is_left() -> None:
    clock = Clock()
    seen: list[float | None] = []

    def attempt(left: float | None) -> str:
        seen.append(left)
        if len(seen) < 3:
            raise TransientFailure(ModelOverloaded("busy"))
        return "done"

    call_with_retries(attempt, clock.policy(), timeout=10.0)
    assert seen == [10.0, 9.0, 7.0]


def test_no_time_at_all_is_a_timeout() -> None:
    with pytest.raises(ModelTimeout):
        call_with_retries(failing(0), Clock().policy(), timeout=0.0)
