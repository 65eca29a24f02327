"""One locked budget for a whole run: iterations, depth, seconds, model calls, tokens, USD.

A recall, its nested sessions and its parallel sub-calls share one :class:`Budget`. Every limit is
checked *before* the step that would break it, under one lock, so a hundred threads cannot overshoot
together. Running out raises :class:`~rlm_mem.errors.BudgetError`, which is terminal: it is raised in
the driver of the sandbox, where no ``except`` of a program can reach it, and it is sticky: code
that catches it on the host side gets it again at the next step.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from rlm_mem.errors import BudgetError, InvalidConfig, MaxIterationsError
from rlm_mem.models.base import Usage

__all__ = ["BUDGET_NAMES", "Budget", "Limits", "ModelSpending", "Reservation", "Spent"]

BUDGET_NAMES = ("iterations", "depth", "seconds", "model_calls", "tokens", "usd")
"""Every value that ``BudgetError.stopped_by`` can take."""


@dataclass(frozen=True)
class Limits:
    """What one run may spend; None means no limit.

    Args:
        iterations: model turns of the run, nested sessions included (``max_iterations``), >= 0.
        depth: nesting of ``rlm_query`` below the first session (``max_depth``), >= 0.
        seconds: wall clock of the whole run (``timeout_seconds``), > 0.
        model_calls: calls of any model: turns, ``llm_query`` and each prompt of a batch, >= 0.
        tokens: input plus output tokens of all calls, >= 0.
        usd: cost of all calls in US dollars, >= 0. A call whose price is unknown ends a run with this limit.

    Raises:
        InvalidConfig: a limit is negative, not a number, or ``seconds`` is zero.
    """

    iterations: int | None = 10
    depth: int | None = 5
    seconds: float | None = 60.0
    model_calls: int | None = 200
    tokens: int | None = None
    usd: Decimal | float | None = None

    def __post_init__(self) -> None:
        for name in BUDGET_NAMES:
            value = getattr(self, name)
            if value is None:
                continue
            whole = name not in ("seconds", "usd")
            number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or (whole and not isinstance(value, int)):
                kind = "a whole number" if whole else "a finite number"
                raise InvalidConfig(f"limit {name} must be {kind} or None, not {value!r}")
            if value < 0 or (name == "seconds" and value == 0):
                raise InvalidConfig(
                    f"limit {name} must be {'above' if name == 'seconds' else 'at least'} 0: {value!r}"
                )
        if self.usd is not None and not isinstance(self.usd, Decimal):
            object.__setattr__(self, "usd", Decimal(str(self.usd)))


@dataclass(frozen=True)
class ModelSpending:
    """What one model was used for within a run.

    ``cost`` is in US dollars and covers the priced calls only; ``unpriced_calls`` counts the others.
    """

    model: str
    calls: int
    usage: Usage
    cost: Decimal
    unpriced_calls: int


@dataclass(frozen=True)
class Spent:
    """A reading of a budget.

    Args:
        usage: tokens of all calls.
        cost: US dollars, or None as soon as one call had no known price (unpriced is never zero).
        priced_cost: US dollars of the calls that had a price.
        depth: deepest nesting reached.
        models: the same by model, in order of first use.
    """

    iterations: int
    model_calls: int
    depth: int
    seconds: float
    usage: Usage
    cost: Decimal | None
    priced_cost: Decimal
    unpriced_calls: int
    models: tuple[ModelSpending, ...]

    @property
    def tokens(self) -> int:
        """Input plus output tokens."""
        return self.usage.total_tokens


@dataclass
class Reservation:
    """What is set aside for a call that is under way; settled by :meth:`Budget.add_usage`."""

    tokens: int = 0
    usd: Decimal = Decimal(0)
    open: bool = True


@dataclass
class _Tally:
    """Mutable sums for one model."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: Decimal = field(default_factory=Decimal)
    unpriced: int = 0


class Budget:
    """The shared account of one run; safe to use from many threads.

    The clock starts with the first iteration, call or nested session, not with construction, so a
    session may be prepared in advance.

    Args:
        limits: what may be spent.
        clock: a monotonic clock in seconds; tests and the host-driven form pass their own.
    """

    def __init__(self, limits: Limits | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits or Limits()
        self._clock = clock
        self._lock = threading.Lock()
        self._started: float | None = None
        self._iterations = 0
        self._calls = 0
        self._depth = 0
        self._reserved = 0
        self._reserved_usd = Decimal(0)
        self._highest_cost = Decimal(0)
        self._tallies: dict[str, _Tally] = {}
        self._ended: BudgetError | None = None

    @property
    def stopped_by(self) -> str | None:
        """Name of the budget that ended the run, or None while none has."""
        ended = self._ended
        return ended.stopped_by if ended is not None else None

    def start(self) -> None:
        """Start the clock; later calls change nothing."""
        with self._lock:
            self._start()

    def start_iteration(self) -> int:
        """Count one turn and return its number from 1.

        Raises:
            MaxIterationsError: the turn would exceed ``limits.iterations``.
            BudgetError: another budget is used up.
        """
        with self._lock:
            self._start()
            self._check()
            limit = self.limits.iterations
            if limit is not None and self._iterations >= limit:
                self._end("iterations", f"the run used all of its {limit} iterations", "raise max_iterations")
            self._iterations += 1
            return self._iterations

    def start_call(self, expected_tokens: int = 0, expected_usd: Decimal | None = None) -> Reservation:
        """Count one model call that is about to be made.

        Args:
            expected_tokens: what the call may cost at most, when known (prompt plus longest answer);
                held back until :meth:`add_usage` settles it, so that parallel calls cannot overshoot.
            expected_usd: the same in US dollars; without it, that of the most expensive call so far.

        Raises:
            BudgetError: the call would exceed a budget; it must not be made.
        """
        with self._lock:
            self._start()
            self._check()
            limit = self.limits.model_calls
            if limit is not None and self._calls >= limit:
                self._end(
                    "model_calls",
                    f"the run made all of its {limit} model calls",
                    "raise the model_calls limit",
                )
            tokens = self.limits.tokens
            if tokens is not None:
                committed = self._tokens() + self._reserved
                if committed >= tokens or committed + expected_tokens > tokens:
                    self._end(
                        "tokens",
                        f"the next call would exceed {tokens} tokens ({committed} are spent or set aside)",
                        "raise the tokens limit",
                    )
            reserved_usd = self._highest_cost if expected_usd is None else expected_usd
            usd = self.limits.usd
            if isinstance(usd, Decimal):
                due = self._cost() + self._reserved_usd
                # A budget of zero still allows calls that are known to be free.
                if due + reserved_usd > usd or (due >= usd and reserved_usd > 0):
                    self._end(
                        "usd", f"the next call would exceed the {usd} USD of the run", "raise the usd limit"
                    )
            self._calls += 1
            self._reserved += expected_tokens
            self._reserved_usd += reserved_usd
            return Reservation(expected_tokens, reserved_usd)

    def add_usage(
        self,
        usage: Usage | None,
        cost: Decimal | None,
        *,
        model: str = "",
        reservation: Reservation | None = None,
    ) -> None:
        """Add a finished call. Never raises: the answer is paid for and may be used; the *next* call stops.

        Args:
            usage: tokens of the call; None when the model did not report them, or the call failed.
            cost: US dollars, or None when the price is not known.
            model: name for the breakdown by model.
            reservation: what :meth:`start_call` returned for this call.
        """
        with self._lock:
            if reservation is not None:
                self._release(reservation)
            tally = self._tallies.setdefault(model, _Tally())
            tally.calls += 1
            if usage is not None:
                tally.usage += usage
            if cost is None:
                tally.unpriced += 1
            else:
                tally.cost += cost
                self._highest_cost = max(self._highest_cost, cost)

    def cancel(self, reservation: Reservation) -> None:
        """Give back what was set aside for a call that failed at no cost; it still counts as a call."""
        with self._lock:
            self._release(reservation)

    def enter(self, depth: int) -> None:
        """Begin a session at this depth: 0 for the first, 1 for an ``rlm_query`` inside it, and so on.

        Raises:
            BudgetError: the depth exceeds ``limits.depth``, or another budget is used up.
        """
        with self._lock:
            self._start()
            self._check()
            limit = self.limits.depth
            if limit is not None and depth > limit:
                self._end("depth", f"rlm_query at depth {depth}, but max_depth is {limit}", "raise max_depth")
            self._depth = max(self._depth, depth)

    def check(self) -> float:
        """Raise when the run is over: time is up, tokens or money are spent, or a budget ended it before.

        Returns:
            Seconds of wall clock left; infinite without a limit.

        Raises:
            BudgetError: ``stopped_by`` says which.
        """
        with self._lock:
            self._check()
            return self._seconds_left()

    def remaining_seconds(self) -> float:
        """Seconds of wall clock left, never below 0; infinite without a limit."""
        with self._lock:
            return self._seconds_left()

    def remaining_tokens(self) -> int | None:
        """Tokens neither spent nor set aside, never below 0; None without a limit."""
        with self._lock:
            limit = self.limits.tokens
            return None if limit is None else max(0, limit - self._tokens() - self._reserved)

    def spent(self) -> Spent:
        """What was spent so far."""
        with self._lock:
            tallies = self._tallies.values()
            unpriced = sum(tally.unpriced for tally in tallies)
            priced = self._cost()
            return Spent(
                iterations=self._iterations,
                model_calls=self._calls,
                depth=self._depth,
                seconds=self._elapsed(),
                usage=sum((tally.usage for tally in tallies), Usage()),
                cost=None if unpriced else priced,
                priced_cost=priced,
                unpriced_calls=unpriced,
                models=tuple(
                    ModelSpending(name, t.calls, t.usage, t.cost, t.unpriced)
                    for name, t in self._tallies.items()
                ),
            )

    # The caller of the methods below holds the lock.

    def _start(self) -> None:
        if self._started is None:
            self._started = self._clock()

    def _release(self, reservation: Reservation) -> None:
        if reservation.open:
            reservation.open = False
            self._reserved -= reservation.tokens
            self._reserved_usd -= reservation.usd

    def _elapsed(self) -> float:
        return 0.0 if self._started is None else self._clock() - self._started

    def _seconds_left(self) -> float:
        limit = self.limits.seconds
        return math.inf if limit is None else max(0.0, limit - self._elapsed())

    def _tokens(self) -> int:
        return sum(tally.usage.total_tokens for tally in self._tallies.values())

    def _cost(self) -> Decimal:
        return sum((tally.cost for tally in self._tallies.values()), Decimal(0))

    def _check(self) -> None:
        if self._ended is not None:
            # A fresh object each time: one raised in several threads would mix their tracebacks.
            raise type(self._ended)(
                self._ended.message, stopped_by=self._ended.stopped_by, hint=self._ended.hint
            )
        limit = self.limits.seconds
        if limit is not None and self._elapsed() >= limit:
            self._end(
                "seconds",
                f"the run took longer than its {limit:g} seconds",
                "raise the limit of seconds (setting recall.max_seconds)",
            )
        tokens = self.limits.tokens
        if tokens is not None and self._tokens() > tokens:
            self._end("tokens", f"the run spent more than its {tokens} tokens", "raise the tokens limit")
        usd = self.limits.usd
        if usd is not None:
            if self._cost() > usd:
                self._end("usd", f"the run spent more than its {usd} USD", "raise the usd limit")
            unpriced = next((name or "unnamed" for name, t in self._tallies.items() if t.unpriced), None)
            if unpriced is not None:
                self._end(
                    "usd",
                    f"the price of model {unpriced} is not known, so a limit of {usd} USD cannot be kept",
                    "set a price for the model, or limit tokens instead of usd",
                )

    def _end(self, name: str, message: str, hint: str) -> None:
        error = MaxIterationsError if name == "iterations" else BudgetError
        self._ended = error(message, stopped_by=name, hint=hint)
        raise error(message, stopped_by=name, hint=hint)
