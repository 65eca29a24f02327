"""The protocol of models, its types, and the budget that bounds their calls.

Every model implements one small protocol, :class:`LLM`. :func:`rlm_mem.models.get_llm` returns one for a name such as
``"offline"``, ``"openai:gpt-…"`` or ``"cli:claude"``; :func:`rlm_mem.models.adapt` also for a plain callable or an
object whose ``complete(prompt)`` returns a string.

A recall, its nested sessions and its parallel sub-calls share one :class:`Budget`. Every limit is checked *before* the
step that would break it, under one lock, so a hundred threads cannot overshoot together. Exhausting a budget raises
:class:`~rlm_mem.errors.BudgetError`, which is terminal: it is raised in the driver of the sandbox, where no ``except``
of a program can catch it, and code that catches it on the host side gets it again at the next step.
"""

from __future__ import annotations

import inspect
import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, Protocol, TypedDict, TypeGuard, Unpack, runtime_checkable

from msgspec import field, structs

from rlm_mem.chunk.types import shown
from rlm_mem.errors import BudgetError, InputError, InvalidConfig, MaxIterationsError
from rlm_mem.record import FrozenRecord, MutableRecord
from rlm_mem.text.patterns import late
from rlm_mem.text.tokens import count_tokens

Role = Literal["system", "user", "assistant"]
_ROLES: tuple[Role, ...] = ("system", "user", "assistant")


class Message(FrozenRecord, frozen=True):
    """One message of a conversation with a model.

    Raises:
        InputError: the role is not ``system``, ``user`` or ``assistant``.
    """

    role: Role
    content: str

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise InputError(
                f"a message cannot have the role {self.role!r}", hint=f"use one of {', '.join(_ROLES)}"
            )


Prompt = str | Sequence[Message]
"""A single user message, or the conversation so far (oldest first)."""


class Usage(FrozenRecord, frozen=True):
    """Tokens used by one or several completions.

    ``input_tokens`` counts the whole prompt, those read from or written to the provider's cache included;
    ``output_tokens`` counts everything generated, reasoning included. The other counts are parts of these two,
    so ``total_tokens`` is their sum and nothing is counted twice. ``estimated``: at least one figure
    was counted here because the model reports none.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0
    estimated: bool = False

    @property
    def total_tokens(self) -> int:
        """Input plus output."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.estimated or other.estimated,
        )


class Completion(FrozenRecord, frozen=True):
    """One completion of a model, with its usage and cost.

    Attributes:
        text: the answer; may be empty.
        usage: tokens used, without those of failed attempts (providers do not report them).
        model: the name that the model reports, else the name that was requested.
        seconds: wall time of the whole call, retries included.
        provider: ``openai``, ``anthropic``, …, ``cli``, ``offline``, ``scripted``, ``callable``.
        cost: US dollars, or None if the price is unknown ("unpriced", which differs from 0).
        finish_reason: ``stop``, ``length`` (cut off at ``max_tokens``), ``content_filter``, or None when
            the model does not report one.
        attempts: number of requests to the provider, 1 without retries.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    seconds: float = 0.0
    provider: str = ""
    cost: Decimal | None = None
    finish_reason: str | None = None
    attempts: int = 1


class Options(TypedDict, total=False):
    """Options of one completion; a model ignores those that it does not support.

    ``max_tokens``: limit of the answer. ``temperature``: 0 and up. ``stop``: texts that end the answer.
    ``timeout``: seconds for the whole call, retries and their waits included. ``on_text``: called with each
    piece of the answer as it arrives; models that cannot stream call it once, with the whole answer.
    ``json_schema``: a JSON Schema that the answer must match, where model and server support it.
    ``extra_body``: further fields of the request for OpenAI-compatible servers (``{"grammar": …}``).
    """

    max_tokens: int | None
    temperature: float | None
    stop: Sequence[str] | None
    timeout: float | None
    on_text: Callable[[str], None] | None
    json_schema: Mapping[str, Any] | None
    extra_body: Mapping[str, Any] | None


@runtime_checkable
class LLM(Protocol):
    """Protocol of models; ``complete`` is synchronous and may be called from several threads at once.

    Raises (``complete``):
        ModelError: the call failed; each remedy has a subclass.
    """

    @property
    def name(self) -> str:
        """The model's name in trajectories and messages; never contains a key."""
        ...

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Return a completion of ``messages``."""
        ...


def is_llm(model: object) -> TypeGuard[LLM]:
    """Whether an object implements the protocol: it has a name, and its ``complete`` accepts the options."""
    complete = getattr(model, "complete", None)
    if not callable(complete) or not isinstance(getattr(model, "name", None), str):
        return False
    try:
        parameters = inspect.signature(complete).parameters
    except (TypeError, ValueError):
        return False
    takes_all = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    return takes_all or {"max_tokens", "timeout"} <= parameters.keys()


SURE = 0.6
"""Confidence above which an answer is stated as sure; the offline model returns others as suggestions."""


def is_offline(model: LLM) -> bool:
    """Whether a model is the built-in one, which needs no instructions and no fallback."""
    return model.name == "offline"


def as_messages(prompt: Prompt) -> list[Message]:
    """Convert a prompt to a list of messages; a string becomes one user message.

    Raises:
        InputError: ``prompt`` is empty or contains other objects than messages.
    """
    if isinstance(prompt, str):
        return [Message("user", prompt)]
    messages = list(prompt)
    if not messages:
        raise InputError("the model was given no message", hint="pass a prompt, or at least one Message")
    for message in messages:
        if not isinstance(message, Message):
            raise InputError(f"a prompt is made of Message objects, not of {type(message).__name__}")
    return messages


def render_prompt(prompt: Prompt) -> str:
    """Convert a prompt to one text, for models that read a single string.

    System messages come first, without a heading; turns are marked ``[user]`` and ``[assistant]``
    only if there is more than one, so that a plain question is unchanged.
    """
    messages = as_messages(prompt)
    system = [message.content for message in messages if message.role == "system"]
    turns = [message for message in messages if message.role != "system"]
    if len(turns) == 1 and turns[0].role == "user":
        body = [turns[0].content]
    else:
        body = [f"[{message.role}]\n{message.content}" for message in turns]
    return "\n\n".join([*system, *body])


def sendable(text: str) -> str:
    """Replace characters that UTF-8 cannot encode (lone surrogates) by ``?``."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def estimate_usage(prompt: str, answer: str) -> Usage:
    """Count the tokens of a call whose model reports none (o200k tokens, marked as estimated)."""
    return Usage(count_tokens(prompt), count_tokens(answer), estimated=True)


_MAX_LIMIT = 1e300
BUDGET_NAMES = ("iterations", "depth", "seconds", "model_calls", "tokens", "usd")
"""All values of ``BudgetError.stopped_by``."""


class Limits(FrozenRecord, frozen=True):
    """Limits of one run; None means no limit.

    Args:
        iterations: model turns of the run, nested sessions included (``max_iterations``), >= 0.
        depth: nesting of ``rlm_query`` below the first session (``max_depth``), >= 0.
        seconds: wall clock of the whole run (``timeout_seconds``), > 0.
        model_calls: calls of any model: turns, ``llm_query`` and each prompt of a batch, >= 0.
        tokens: input plus output tokens of all calls, >= 0.
        usd: cost of all calls in US dollars, >= 0. A call whose price is unknown ends a run with this limit.

    Raises:
        InvalidConfig: a limit is negative or not a number, or ``seconds`` is zero.
    """

    iterations: int | None = 10
    depth: int | None = 5
    seconds: float | None = 60.0
    model_calls: int | None = 200
    tokens: int | None = None
    usd: Decimal | float | None = None

    def changed(self, given: Mapping[str, Any]) -> Limits:
        """A copy with some limits replaced; None values are ignored.

        Raises:
            InvalidConfig: a limit is unknown or its value is invalid.
        """
        for name in given:
            if name not in BUDGET_NAMES:
                raise InvalidConfig(f"there is no budget {name!r}: use one of {', '.join(BUDGET_NAMES)}")
        return structs.replace(self, **{name: value for name, value in given.items() if value is not None})

    def __post_init__(self) -> None:
        for name in BUDGET_NAMES:
            value = getattr(self, name)
            if value is None:
                continue
            whole = name not in ("seconds", "usd")
            number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
            number &= not (isinstance(value, Decimal) and value.is_nan())  # which cannot be compared
            # An integer is compared without conversion, which fails for a very large one.
            if not number or not abs(value) < _MAX_LIMIT or (whole and not isinstance(value, int)):
                kind = "a whole number" if whole else "a finite number"
                raise InvalidConfig(f"limit {name} must be {kind} or None, not {shown(value)}")
            if value < 0 or (name == "seconds" and value == 0):
                raise InvalidConfig(
                    f"limit {name} must be {'above' if name == 'seconds' else 'at least'} 0: {value!r}"
                )
        if self.usd is not None and not isinstance(self.usd, Decimal):
            structs.force_setattr(self, "usd", Decimal(str(self.usd)))


class ModelSpending(FrozenRecord, frozen=True):
    """Calls, tokens and cost of one model within a run.

    ``cost`` is in US dollars and covers the priced calls only; ``unpriced_calls`` counts the others.
    """

    model: str
    calls: int
    usage: Usage
    cost: Decimal
    unpriced_calls: int


class Spent(FrozenRecord, frozen=True):
    """What a run has spent so far.

    Attributes:
        usage: tokens of all calls.
        cost: US dollars, or None if the price of any call is unknown (unpriced is never zero).
        priced_cost: US dollars of calls with a known price.
        depth: deepest nesting reached.
        models: spending by model, in order of first use.
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


class Reservation(MutableRecord):
    """Resources reserved for a call in progress, until :meth:`Budget.add_usage` settles it."""

    tokens: int = 0
    usd: Decimal = Decimal(0)
    open: bool = True


class Budget:
    """The shared budget of one run; thread-safe.

    The clock starts with the first iteration, call or nested session, not with construction, so a
    session may be prepared in advance.

    Args:
        limits: limits of the run.
        clock: a monotonic clock in seconds; tests and host-driven runs pass their own.
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
        self._models: dict[str, ModelSpending] = {}
        self._ended: BudgetError | None = None

    @property
    def stopped_by(self) -> str | None:
        """Name of the budget that ended the run, or None."""
        ended = self._ended
        return ended.stopped_by if ended is not None else None

    def start(self) -> None:
        """Start the clock; further calls have no effect."""
        with self._lock:
            self._start()

    def start_iteration(self) -> int:
        """Count one turn and return its number, from 1.

        Raises:
            MaxIterationsError: the turn would exceed ``limits.iterations``.
            BudgetError: another budget is exhausted.
        """
        with self._lock:
            self._start()
            self._check()
            limit = self.limits.iterations
            if limit is not None and self._iterations >= limit:
                self._end("iterations", f"the run used all of its {limit} iterations", "raise max_iterations")
            self._iterations += 1
            return self._iterations

    def start_call(self, expected_tokens: int = 0) -> Reservation:
        """Count and reserve one model call, assuming that it costs as much as the most expensive one so far.

        Args:
            expected_tokens: maximum tokens of the call, if known (prompt plus longest answer);
                reserved until :meth:`add_usage` settles the call, so that parallel calls cannot overshoot.

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
                        f"the next call would exceed {tokens} tokens ({committed} are spent or reserved)",
                        "raise the tokens limit",
                    )
            reserved_usd = self._highest_cost
            usd = self.limits.usd
            if isinstance(usd, Decimal):
                due = self._cost() + self._reserved_usd
                # A budget of zero still allows calls known to be free.
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
        """Add a finished call. Never raises, since its answer is paid for and usable; the *next* call is refused.

        Args:
            usage: tokens of the call; None if they are unknown or the call failed.
            cost: US dollars, or None if the price is unknown.
            model: name for the breakdown by model.
            reservation: the result of :meth:`start_call` for this call.
        """
        with self._lock:
            if reservation is not None:
                self._release(reservation)
            known = self._models.get(model) or ModelSpending(model, 0, Usage(), Decimal(0), 0)
            self._models[model] = ModelSpending(
                model,
                known.calls + 1,
                known.usage + (usage or Usage()),
                known.cost + (cost or 0),
                known.unpriced_calls + (cost is None),
            )
            self._highest_cost = max(self._highest_cost, cost or Decimal(0))

    def cancel(self, reservation: Reservation) -> None:
        """Release the reservation of a call that failed without cost; it still counts as a call."""
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
        """Raise if the run is over: time, tokens or money are exhausted, or a budget already ended it.

        Returns:
            Remaining seconds of wall time; infinite without a limit.

        Raises:
            BudgetError: a budget is exhausted; ``stopped_by`` names it.
        """
        with self._lock:
            self._check()
            return self._seconds_left()

    def remaining_seconds(self) -> float:
        """Remaining seconds of wall time, at least 0; infinite without a limit."""
        with self._lock:
            return self._seconds_left()

    def remaining_iterations(self) -> int | None:
        """Turns left; None without a limit."""
        with self._lock:
            limit = self.limits.iterations
            return None if limit is None else limit - self._iterations

    def remaining_tokens(self) -> int | None:
        """Tokens neither spent nor reserved, at least 0; None without a limit."""
        with self._lock:
            limit = self.limits.tokens
            return None if limit is None else max(0, limit - self._tokens() - self._reserved)

    def spent(self) -> Spent:
        """The spending so far."""
        with self._lock:
            models = tuple(self._models.values())
            unpriced = sum(one.unpriced_calls for one in models)
            priced = self._cost()
            return Spent(
                iterations=self._iterations,
                model_calls=self._calls,
                depth=self._depth,
                seconds=self._elapsed(),
                usage=sum((one.usage for one in models), Usage()),
                cost=None if unpriced else priced,
                priced_cost=priced,
                unpriced_calls=unpriced,
                models=models,
            )

    # The methods below are called with the lock held.

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
        return sum(one.usage.total_tokens for one in self._models.values())

    def _cost(self) -> Decimal:
        return sum((one.cost for one in self._models.values()), Decimal(0))

    def _check(self) -> None:
        if self._ended is not None:
            # A new object each time, since an exception raised in several threads would mix their tracebacks.
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
            unpriced = next(
                (one.model or "unnamed" for one in self._models.values() if one.unpriced_calls), None
            )
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


# --- delimiters in prompts -----------------------------------------------------------------------------
#
# Text from the memory, from programs and from users is put between <tag> lines. In such text, anything that looks like
# the end of a block, another block or a program fence gets a backslash: <\/output>, `\`\`repl. One pass, in time linear
# in the length of the text.

_BRACKETS = "<＜﹤‹〈〈⟨˂ᐸ≺❮❬"
_SLASHES = "/／⁄∕⧸╱"
_GAP = r"[\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*+"
_NAMES = (
    "question|store|hits|output|error|context|earlier|system|user|assistant|repl|python|code|program|"
    "tool_code|tool_call"
)
# Matches every closing tag, but opening tags only with a name of this package.
_AFTER = rf"{_GAP}(?:[{_SLASHES}]|(?:{_NAMES})\b)"
_TAG = late(rf"[{_BRACKETS}](?={_AFTER})", re.IGNORECASE)
_BROKEN_TAG = late(rf"([{_BRACKETS}])\\(?={_AFTER})", re.IGNORECASE)
_TICKS = "`｀ˋ"
_FENCE = late(rf"[{_TICKS}]{{3,}}+|~{{3,}}+")
_BROKEN_FENCE = late(rf"(?<=[{_TICKS}~])\\(?=[{_TICKS}~])")


def breaking(text: str) -> str:
    """Insert a backslash into each tag and fence of a text, so that it can neither end nor begin a block."""
    return _FENCE.sub(lambda run: "\\".join(run[0]), _TAG.sub(r"\g<0>\\", text))


def unbroken(text: str) -> str:
    """Undo :func:`breaking`, for readers that are not language models."""
    return _BROKEN_FENCE.sub("", _BROKEN_TAG.sub(r"\1", text))
