"""Budgets: one locked account per run, checked before each step, terminal and sticky."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from rlm_mem.errors import BudgetError, InvalidConfig, MaxIterationsError
from rlm_mem.models.base import BUDGET_NAMES, Budget, Limits, Usage


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def unlimited(**limits: Any) -> Budget:
    values: dict[str, Any] = dict.fromkeys(BUDGET_NAMES)
    return Budget(Limits(**(values | limits)))


def test_iterations_run_out_with_max_iterations_error() -> None:
    budget = unlimited(iterations=2)
    assert [budget.start_iteration(), budget.start_iteration()] == [1, 2]
    with pytest.raises(MaxIterationsError) as caught:
        budget.start_iteration()
    assert caught.value.stopped_by == "iterations"
    assert budget.stopped_by == "iterations"
    assert budget.spent().iterations == 2


def test_zero_iterations_allow_none() -> None:
    with pytest.raises(MaxIterationsError):
        unlimited(iterations=0).start_iteration()


def test_the_call_that_would_exceed_is_refused_before_it_is_made() -> None:
    budget = unlimited(model_calls=3)
    for _ in range(3):
        budget.start_call()
    with pytest.raises(BudgetError) as caught:
        budget.start_call()
    assert caught.value.stopped_by == "model_calls"
    assert budget.spent().model_calls == 3


def test_tokens_set_aside_count_until_the_call_is_settled() -> None:
    budget = unlimited(tokens=100)
    first = budget.start_call(60)
    assert budget.remaining_tokens() == 40
    budget.add_usage(Usage(10, 5), None, reservation=first)
    assert budget.remaining_tokens() == 85
    budget.start_call(85)
    with pytest.raises(BudgetError) as caught:
        budget.start_call(1)
    assert caught.value.stopped_by == "tokens"


def test_a_cancelled_call_gives_its_tokens_back() -> None:
    budget = unlimited(tokens=100)
    budget.cancel(budget.start_call(100))
    assert budget.remaining_tokens() == 100
    assert budget.spent().model_calls == 1


def test_an_overdrawn_call_is_booked_and_the_next_check_ends_the_run() -> None:
    budget = unlimited(tokens=100)
    budget.add_usage(Usage(200, 50), Decimal(0), reservation=budget.start_call())
    assert budget.spent().tokens == 250
    with pytest.raises(BudgetError, match="tokens"):
        budget.check()


def test_seconds_start_with_the_first_step_not_with_construction() -> None:
    clock = Clock()
    budget = Budget(Limits(seconds=5), clock)
    clock.now += 1000
    assert budget.remaining_seconds() == 5
    budget.start_iteration()
    clock.now += 4.5
    budget.check()
    assert budget.remaining_seconds() == 0.5
    clock.now += 1
    with pytest.raises(BudgetError) as caught:
        budget.check()
    assert caught.value.stopped_by == "seconds"
    assert budget.remaining_seconds() == 0


def test_depth_beyond_the_limit_ends_the_run() -> None:
    budget = unlimited(depth=2)
    for depth in range(3):
        budget.enter(depth)
    with pytest.raises(BudgetError) as caught:
        budget.enter(3)
    assert caught.value.stopped_by == "depth"
    assert budget.spent().depth == 2


def test_money_ends_a_run_before_a_call_that_would_exceed_it() -> None:
    budget = unlimited(usd=0.10)
    budget.add_usage(Usage(1, 1), Decimal("0.04"), reservation=budget.start_call())
    budget.add_usage(Usage(1, 1), Decimal("0.04"), reservation=budget.start_call())
    with pytest.raises(BudgetError) as caught:
        budget.start_call()  # the dearest call so far would bring it to 0.12
    assert caught.value.stopped_by == "usd"
    assert budget.spent().cost == Decimal("0.08")


def test_free_calls_pass_a_budget_of_zero_dollars() -> None:
    budget = unlimited(usd=0)
    for _ in range(3):
        budget.add_usage(Usage(1, 1), Decimal(0), reservation=budget.start_call())
    assert budget.spent().cost == 0


def test_an_unknown_price_is_never_zero() -> None:
    budget = unlimited()
    budget.add_usage(Usage(5, 5), Decimal("0.5"), model="a")
    budget.add_usage(Usage(5, 5), None, model="b")
    spent = budget.spent()
    assert spent.cost is None
    assert (spent.priced_cost, spent.unpriced_calls) == (Decimal("0.5"), 1)
    assert [(m.model, m.calls, m.unpriced_calls) for m in spent.models] == [("a", 1, 0), ("b", 1, 1)]


def test_a_dollar_limit_cannot_be_kept_with_an_unpriced_model_and_says_so() -> None:
    budget = unlimited(usd=1)
    budget.add_usage(Usage(5, 5), None, model="mystery", reservation=budget.start_call())
    with pytest.raises(BudgetError, match="mystery") as caught:
        budget.start_call()
    assert caught.value.stopped_by == "usd"
    assert caught.value.hint


def test_a_run_that_ended_stays_ended_for_the_same_reason() -> None:
    budget = unlimited(iterations=0)
    with pytest.raises(MaxIterationsError):
        budget.start_iteration()
    for step in (budget.check, budget.start_call, budget.start_iteration, lambda: budget.enter(0)):
        with pytest.raises(MaxIterationsError):
            step()
    assert budget.spent().model_calls == 0


def test_a_hundred_threads_together_make_no_call_too_many() -> None:
    budget = unlimited(model_calls=37, tokens=37 * 20)

    def call(_: int) -> bool:
        try:
            held = budget.start_call(20)
        except BudgetError:
            return False
        budget.add_usage(Usage(10, 10), None, reservation=held)
        return True

    with ThreadPoolExecutor(32) as pool:
        made = list(pool.map(call, range(100)))
    assert sum(made) == 37
    assert budget.spent().tokens == 37 * 20


@pytest.mark.parametrize(
    "limits",
    [
        {"iterations": -1},
        {"seconds": 0},
        {"seconds": float("nan")},
        {"seconds": 10**400},
        {"tokens": 10**400},
        {"tokens": 1.5},
        {"depth": True},
        {"usd": -1},
        {"usd": Decimal("NaN")},
        {"usd": Decimal("sNaN")},
    ],
)
def test_limits_out_of_range_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig):
        Limits(**limits)
