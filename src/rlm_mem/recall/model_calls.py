"""Model calls: bounded, charged to one locked budget, and abandoned when the run is cancelled."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from msgspec.structs import replace

from rlm_mem.errors import InputError, ModelError, ModelRefused
from rlm_mem.models.base import Completion, Usage, as_messages, estimate_usage, sendable
from rlm_mem.models.opening import adapt
from rlm_mem.recall.programs import MAX_REPLY_CHARS
from rlm_mem.recall.prompts import fenced
from rlm_mem.record import FrozenRecord
from rlm_mem.sandbox.values import clipped, preview, well_formed
from rlm_mem.telemetry import model_call

if TYPE_CHECKING:
    from rlm_mem.config import Config
    from rlm_mem.models.base import LLM, Budget, Options, Prompt, Reservation

T = TypeVar("T")

MAX_PARALLEL = 8
MAX_BATCH = 200
MAX_PROMPT_CHARS = 400_000


class AdmittedCall(FrozenRecord, frozen=True):
    """A call that the budget has admitted: its reservation, and the most tokens of a reply that fits."""

    reservation: Reservation
    answer_tokens: int


def admit(budget: Budget, prompt_tokens: int, answer_tokens: int) -> AdmittedCall:
    """Reserve the cost of one call before it is made.

    Raises:
        BudgetError: the call would exceed the budget and must not be made.
    """
    left = budget.remaining_tokens()
    if left is not None:
        # A short reply is better than none; if even that does not fit, the budget refuses the call.
        answer_tokens = max(32, min(answer_tokens, left - prompt_tokens))
    return AdmittedCall(budget.start_call(prompt_tokens + answer_tokens), answer_tokens)


def complete(
    model: LLM,
    prompt: Prompt,
    budget: Budget,
    call: AdmittedCall,
    *,
    timeout: float,
    on_text: Callable[[str], None] | None = None,
    prompt_tokens: int = 0,
    json_schema: Mapping[str, Any] | None = None,
) -> Completion:
    """Make a call, bound its reply and charge its cost; a failed call releases its reservation.

    Args:
        prompt_tokens: estimated tokens of the prompt, charged if the model reports no input tokens; 0: no estimate.
        json_schema: schema of the reply, for models that support one.
    """
    started = time.monotonic()
    options: Options = {"max_tokens": call.answer_tokens, "timeout": timeout}
    if on_text is not None:
        options["on_text"] = on_text
    if json_schema is not None:
        options["json_schema"] = json_schema
    try:
        with model_call(model.name) as span:
            completion = model.complete(prompt, **options)
            if prompt_tokens and not completion.usage.input_tokens:
                # Some models report no tokens; steps, totals and budgets share this estimate.
                completion = replace(completion, usage=_with_estimated_usage(completion, prompt_tokens))
            completion = bounded_reply(completion)
            span.spent(completion)
    except BaseException:
        budget.cancel(call.reservation)
        raise
    budget.add_usage(
        completion.usage, completion.cost, model=completion.model or model.name, reservation=call.reservation
    )
    # Scripted and third-party models may not measure their time.
    return completion if completion.seconds else replace(completion, seconds=time.monotonic() - started)


def _with_estimated_usage(completion: Completion, prompt_tokens: int) -> Usage:
    """The usage of a call, estimated if the model reported no input tokens."""
    output_tokens = completion.usage.output_tokens or estimate_usage("", completion.text).output_tokens
    return replace(completion.usage, input_tokens=prompt_tokens, output_tokens=output_tokens, estimated=True)


def in_parallel(function: Callable[..., T], items: Sequence[tuple[Any, ...]], most: int) -> list[T]:
    """Call a function with each of several sets of arguments, in parallel; return the results in order.

    The threads are daemons, so that an abandoned batch does not keep the process alive.

    Args:
        function: what to call; it runs in a copy of the caller's context.
        items: the arguments of each call.
        most: most calls at a time.

    Raises:
        BaseException: the error of the first call that failed; calls not started by then are not made.
    """
    results: list[Any] = [None] * len(items)
    pending = list(reversed(range(len(items))))
    failures: list[BaseException] = []

    def work() -> None:
        while not failures:
            try:
                number = pending.pop()
            except IndexError:
                return
            try:
                results[number] = function(*items[number])
            except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
                failures.append(error)

    threads = [
        threading.Thread(target=copy_context().run, args=(work,), name="rlm-mem-llm", daemon=True)
        for _ in range(min(most, len(items)))
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException as error:
        # Ctrl-C while waiting: calls that have not started are not made.
        failures.append(error)
        raise
    if failures:
        raise failures[0]
    return results


class ModelCalls:
    """Asks the model of a session.

    Args:
        client: a model, a callable, an object with ``complete()``, a name, or None for the configured one.
        budget: charged for every call; shared by everything a run does.
        config: for the model's name and limits.
        counts_iterations: also count each call as an iteration, for a session without a shared budget.
    """

    def __init__(
        self, client: Any, budget: Budget, config: Config, *, counts_iterations: bool = False
    ) -> None:
        self._client = client
        self._model: LLM | None = None
        self._lock = threading.Lock()
        self._budget = budget
        self._counts_iterations = counts_iterations
        self._config = config

    @property
    def model(self) -> LLM:
        """The model, resolved on first use.

        Raises:
            ModelUnavailable: it is not set up.
        """
        with self._lock:
            if self._model is None:
                self._model = adapt(self._client, self._config)
            return self._model

    def ask(self, prompt: Any, context: Any, seconds: float) -> str:
        """Answer one prompt.

        Args:
            seconds: time left for the program that asks.

        Raises:
            InputError: the prompt is not text, or too long.
            BudgetError: the call would exceed the budget; it was not made.
            ModelError: the model failed.
        """
        text = render(prompt, context)
        return self._complete(text, self._admit(text), seconds)

    def ask_all(self, prompts: Any, seconds: float) -> list[str]:
        """Answer several prompts in parallel and return the replies in order.

        A prompt is text, ``{"prompt": …, "context": …}`` or a pair of both. The reply to a prompt that fails is a
        text that begins with ``ERROR:``.

        Raises:
            InputError: not a list of prompts, or too many.
            BudgetError: the whole batch exceeds the budget; no call was made.
        """
        if not isinstance(prompts, list | tuple):
            raise InputError(
                "llm_query_batched needs a list of prompts", hint="for one, use llm_query(prompt)"
            )
        if len(prompts) > MAX_BATCH:
            raise InputError(
                f"llm_query_batched takes at most {MAX_BATCH} prompts at once; got {len(prompts)}"
            )
        if not prompts:
            return []
        texts = [render(*_prompt_and_context(item)) for item in prompts]
        calls: list[AdmittedCall] = []
        try:
            for text in texts:
                calls.append(self._admit(text))
        except BaseException:
            # The run ends: release the reservations, so that the budget shows only what was spent.
            for call in calls:
                self._budget.cancel(call.reservation)
            raise

        def answer(text: str, call: AdmittedCall) -> str:
            try:
                return self._complete(text, call, seconds)
            except ModelError as error:
                return f"ERROR: {error}"

        return in_parallel(answer, list(zip(texts, calls, strict=True)), MAX_PARALLEL)

    def _admit(self, text: str) -> AdmittedCall:
        if self._counts_iterations:
            self._budget.start_iteration()
        return admit(self._budget, len(text) // 4 + 8, self._config.llm.max_tokens)

    def _complete(self, text: str, call: AdmittedCall, seconds: float) -> str:
        try:
            model = self.model
        except BaseException:
            self._budget.cancel(call.reservation)
            raise
        seconds = min(seconds, self._budget.remaining_seconds(), self._config.llm.timeout_seconds)
        return complete(model, text, self._budget, call, timeout=max(0.1, seconds)).text


class StoppableModel:
    """A model whose calls can be abandoned.

    Args:
        model: an LLM.
        call: calls a function as ``call(function, *args, **keywords)``, and raises SessionCancelled once the call is
            abandoned.
    """

    def __init__(self, model: LLM, call: Callable[..., Any]) -> None:
        self._model = model
        self._call = call
        self.name = model.name

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Answer as the model does.

        Raises:
            SessionCancelled: the call was abandoned.
        """
        completion: Completion = self._call(self._model.complete, messages, **options)
        return completion

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class SubModel:
    """The model of sub-calls, with its own budget in addition to the run's.

    Args:
        config: ``recall.max_sub_calls``, ``max_sub_tokens`` and ``max_sub_usd``; 0 means no limit.
    """

    def __init__(self, model: LLM, config: Config) -> None:
        self._model = model
        self._limits = config.recall
        self._answer_tokens = config.llm.max_tokens
        self._lock = threading.Lock()
        self._calls = self._tokens = 0
        self._usd = self._highest_cost = Decimal(0)
        self._unpriced = False
        self.name = model.name

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Answer as the model does.

        Raises:
            ModelRefused: the budget of sub-calls is used up; the program gets the error and may continue.
        """
        expected = sum(len(one.content) for one in as_messages(messages)) // 4
        expected += options.get("max_tokens") or self._answer_tokens
        with self._lock:
            self._check(expected)
            reserved = self._highest_cost
            self._calls += 1
            self._tokens += expected
            self._usd += reserved
        spent, cost = 0, Decimal(0)
        try:
            completion = self._model.complete(messages, **options)
            spent, priced = completion.usage.total_tokens, completion.cost
            cost = priced or Decimal(0)
            self._unpriced = self._unpriced or priced is None
        finally:
            with self._lock:
                self._tokens += spent - expected
                self._usd += cost - reserved
                self._highest_cost = max(self._highest_cost, cost)
        return completion

    def _check(self, expected: int) -> None:
        limits = self._limits
        exhausted = ""
        if limits.max_sub_calls and self._calls >= limits.max_sub_calls:
            exhausted = f"all {limits.max_sub_calls:,} calls"
        elif limits.max_sub_tokens and self._tokens + expected > limits.max_sub_tokens:
            exhausted = f"nearly all of {limits.max_sub_tokens:,} tokens"
        elif limits.max_sub_usd and self._unpriced:
            exhausted = "a call without a known price"
        elif limits.max_sub_usd and float(self._usd + self._highest_cost) > limits.max_sub_usd:
            exhausted = f"nearly all of {limits.max_sub_usd:g} dollars"
        if exhausted:
            raise ModelRefused(
                f"the budget of sub-calls is used up: {exhausted}",
                hint="use what has been read, and call FINAL",
            )


def bounded_reply(completion: Completion) -> Completion:
    """The completion with at most 100,000 characters of well-formed text and a note if it was cut."""
    return replace(
        completion,
        text=clipped(well_formed(completion.text), MAX_REPLY_CHARS),
        model=clipped(well_formed(completion.model), 200),
    )


def _prompt_and_context(item: Any) -> tuple[Any, Any]:
    if isinstance(item, dict):
        return item.get("prompt"), item.get("context")
    if isinstance(item, list | tuple) and len(item) == 2:
        return item[0], item[1]
    return item, None


def render(prompt: Any, context: Any) -> str:
    """Return the message: the prompt, then the context as data between tags that it cannot close.

    Raises:
        InputError: the prompt is not text, the context no plain data, or the message is too long.
    """
    if not isinstance(prompt, str) or not prompt.strip():
        raise InputError(
            "the prompt of llm_query must be text", hint="write llm_query('question', {'text': text})"
        )
    text = prompt
    if context:
        text = f"{prompt}\n\n{fenced('context', _context_text(context))}"
    if len(text) > MAX_PROMPT_CHARS:
        raise InputError(
            f"the prompt has {len(text):,} characters; at most {MAX_PROMPT_CHARS:,} are accepted",
            hint="pass only the relevant passages",
        )
    return sendable(text)


def _context_text(context: Any) -> str:
    if isinstance(context, str):
        return context
    try:
        return json.dumps(context, ensure_ascii=False, default=_as_json)
    except (TypeError, ValueError, RecursionError) as error:
        # A key that is a tuple, or a value within itself
        raise InputError(
            f"the context of llm_query is not plain data: {error}",
            hint="pass text, or lists and dicts whose keys are text",
        ) from None


def _as_json(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)  # in the same order in every process, so that a replay finds the call
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return list(value)
    return preview(value)
