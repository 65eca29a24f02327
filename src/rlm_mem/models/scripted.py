"""A model that returns predefined replies, for tests and for replaying recorded runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Unpack

from rlm_mem.errors import InvalidConfig, ModelError
from rlm_mem.models.base import (
    Completion,
    Message,
    Options,
    Prompt,
    as_messages,
    estimate_usage,
    render_prompt,
)

Reply = str | Completion | BaseException | Callable[[list[Message]], "str | Completion"]
"""A text, a completion, an exception to raise, or a function of the messages."""


class ScriptedLLM:
    """Returns ``replies`` in order, then ``default``, and records every call.

    Args:
        replies: queue of replies.
        default: reply to calls after the queue is exhausted; None: such calls raise ModelError.
        name: name of the model in completions and messages.

    Attributes:
        prompts: messages of every call so far, in order.
        options: options of every call so far, in order.
    """

    def __init__(
        self, replies: Iterable[Reply] = (), *, default: Reply | None = None, name: str = "scripted"
    ) -> None:
        self.name = name
        self.prompts: list[list[Message]] = []
        self.options: list[Options] = []
        self._replies = list(replies)
        self._default = default
        self._lock = threading.Lock()

    @classmethod
    def from_file(cls, path: str | Path) -> ScriptedLLM:
        """Read the replies from a JSON file: a list of strings.

        Raises:
            InvalidConfig: the file is missing or is not a list of strings.
        """
        try:
            replies = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidConfig(
                f"cannot read scripted replies from {path}: {error}",
                hint="name a JSON file with a list of strings",
            ) from error
        if not isinstance(replies, list) or not all(isinstance(reply, str) for reply in replies):
            raise InvalidConfig(f"{path} does not contain a JSON list of strings")
        return cls(replies)

    @property
    def calls(self) -> int:
        """Number of calls of ``complete``."""
        return len(self.prompts)

    @property
    def remaining(self) -> int:
        """Number of replies left in the queue."""
        return len(self._replies)

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Return the next reply, or raise it if it is an exception.

        Raises:
            ModelError: the queue is exhausted and there is no default.
        """
        prompt = as_messages(messages)
        with self._lock:
            self.prompts.append(prompt)
            self.options.append(options)
            reply = self._replies.pop(0) if self._replies else self._default
            number = len(self.prompts)
        if reply is None:
            raise ModelError(
                f"the scripted model has no reply left for call {number}", hint="queue more replies"
            )
        if isinstance(reply, BaseException):
            raise reply
        answer = reply(prompt) if callable(reply) else reply
        if isinstance(answer, str):
            usage = estimate_usage(render_prompt(prompt), answer)
            answer = Completion(answer, usage, model=self.name, provider="scripted", finish_reason="stop")
        on_text = options.get("on_text")
        if on_text is not None:
            on_text(answer.text)
        return answer
