"""Sub-calls of a program to a model: one, or many at once, all charged to one locked budget."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlm_mem.errors import InputError, ModelError
from rlm_mem.sandbox.programs import MAX_REPLY_CHARS
from rlm_mem.sandbox.values import clipped, preview, well_formed
from rlm_mem.telemetry import carried, model_call

if TYPE_CHECKING:
    from rlm_mem.config import Config
    from rlm_mem.models.base import LLM, Completion
    from rlm_mem.models.budget import Budget, Reservation

__all__ = ["ModelCalls", "bounded_reply"]

MAX_PARALLEL = 8
MAX_BATCH = 200
MAX_PROMPT_CHARS = 400_000


@dataclass(frozen=True, slots=True)
class _Asked:
    """One prompt that the budget has admitted."""

    text: str
    held: Reservation
    answer_tokens: int


class ModelCalls:
    """Asks the model of a session.

    Args:
        client: a model, a callable, an object with ``complete()``, a name, or None for the configured one.
        budget: charged for every call; shared by everything a run does.
        counts_iterations: a call also counts as an iteration, for a session on its own.
        config: for the model's name and limits.
        remaining: seconds left for the program that is running.
    """

    def __init__(
        self,
        client: Any,
        budget: Budget,
        *,
        counts_iterations: bool,
        config: Config,
        remaining: Callable[[], float],
    ) -> None:
        self._client = client
        self._model: LLM | None = None
        self._lock = threading.Lock()
        self.budget = budget
        self._counts_iterations = counts_iterations
        self._config = config
        self._remaining = remaining

    @property
    def model(self) -> LLM:
        """The model, resolved on first use.

        Raises:
            ModelUnavailable: it is not set up.
        """
        from rlm_mem.models.base import adapt, get_llm

        with self._lock:
            if self._model is None:
                client = self._client
                if client is None or isinstance(client, str):
                    self._model = get_llm(client, self._config)
                else:
                    self._model = adapt(client)
            return self._model

    def ask(self, prompt: Any, context: Any = None) -> str:
        """Answer one prompt.

        Raises:
            InputError: the prompt is not text, or too long.
            BudgetError: the call would exceed the budget; it was not made.
            ModelError: the model failed.
        """
        text = render(prompt, context)
        return self._complete(self._admit(text))

    def ask_all(self, prompts: Any) -> list[str]:
        """Answer several prompts at once, in their order.

        A prompt is text, ``{"prompt": …, "context": …}`` or a pair of both. One that fails yields a text that
        begins with ``ERROR:``; the others are answered.

        Raises:
            InputError: not a list of prompts, or too many.
            BudgetError: the whole batch does not fit into the budget; no call was made.
        """
        if not isinstance(prompts, list | tuple):
            raise InputError(
                "llm_query_batched takes a list of prompts.", hint="For one, use llm_query(prompt)."
            )
        if len(prompts) > MAX_BATCH:
            raise InputError(
                f"llm_query_batched takes at most {MAX_BATCH} prompts at once; got {len(prompts)}."
            )
        if not prompts:
            return []
        texts = [render(*_pair(item)) for item in prompts]
        asked: list[_Asked] = []
        try:
            for text in texts:
                asked.append(self._admit(text))
        except BaseException:
            # Terminal: give back what was set aside, so that the account shows what was spent.
            for one in asked:
                self.budget.cancel(one.held)
            raise
        with ThreadPoolExecutor(min(MAX_PARALLEL, len(asked)), "rlm-mem-llm") as workers:
            return list(workers.map(carried(self._complete_or_explain), asked))

    def _complete_or_explain(self, asked: _Asked) -> str:
        try:
            return self._complete(asked)
        except ModelError as error:
            return f"ERROR: {error}"

    def _admit(self, text: str) -> _Asked:
        """Charge one call before it is made."""
        if self._counts_iterations:
            self.budget.start_iteration()
        prompt_tokens = len(text) // 4 + 8
        answer_tokens = self._config.llm.max_tokens
        left = self.budget.remaining_tokens()
        if left is not None:
            answer_tokens = max(32, min(answer_tokens, left - prompt_tokens))
        return _Asked(text, self.budget.start_call(prompt_tokens + answer_tokens), answer_tokens)

    def _complete(self, asked: _Asked) -> str:
        seconds = min(self._remaining(), self.budget.remaining_seconds(), self._config.llm.timeout_seconds)
        try:
            model = self.model
            with model_call(model.name) as called:
                completion = model.complete(
                    asked.text, timeout=max(0.1, seconds), max_tokens=asked.answer_tokens
                )
                completion = bounded_reply(completion)
                called.spent(completion)
        except BaseException:
            self.budget.cancel(asked.held)
            raise
        self.budget.add_usage(
            completion.usage, completion.cost, model=completion.model or model.name, reservation=asked.held
        )
        return completion.text


def bounded_reply(completion: Completion) -> Completion:
    """The completion with at most 100,000 characters of well-formed text, which says where it was cut."""
    return replace(
        completion,
        text=clipped(well_formed(completion.text), MAX_REPLY_CHARS),
        model=clipped(well_formed(completion.model), 200),
    )


def _pair(item: Any) -> tuple[Any, Any]:
    if isinstance(item, dict):
        return item.get("prompt"), item.get("context")
    if isinstance(item, list | tuple) and len(item) == 2:
        return item[0], item[1]
    return item, None


def render(prompt: Any, context: Any) -> str:
    """Return the message: the prompt first, then the context as data between tags it cannot close.

    Raises:
        InputError: the prompt is not text, or the message is too long.
    """
    from rlm_mem.sandbox.prompts import fenced

    if not isinstance(prompt, str) or not prompt.strip():
        raise InputError(
            "llm_query takes the prompt as text.", hint="Write llm_query('question', {'text': text})."
        )
    text = prompt
    if context:
        shown = (
            context if isinstance(context, str) else json.dumps(context, ensure_ascii=False, default=_other)
        )
        text = f"{prompt}\n\n{fenced('context', shown)}"
    if len(text) > MAX_PROMPT_CHARS:
        raise InputError(
            f"The prompt has {len(text):,} characters; at most {MAX_PROMPT_CHARS:,} are accepted.",
            hint="Pass the passages that matter, not whole texts.",
        )
    # A lone surrogate cannot be sent to any model.
    return text.encode("utf-8", "replace").decode("utf-8")


def _other(value: Any) -> Any:
    if isinstance(value, set | frozenset | Sequence):
        return list(value)
    return preview(value)
