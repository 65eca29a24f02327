"""The protocol of models: messages in, one completion with its usage out.

Every model implements one small protocol, :class:`LLM`. A name such as
``"offline"``, ``"openai:gpt-…"`` or ``"cli:claude"`` becomes one through :func:`rlm_mem.models.get_llm`; a plain
callable or an object whose ``complete(prompt)`` returns a string through :func:`rlm_mem.models.adapt`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, Protocol, TypedDict, Unpack, runtime_checkable

from rlm_mem.errors import InputError
from rlm_mem.text.tokens import count_tokens

__all__ = [
    "LLM",
    "Completion",
    "Message",
    "Options",
    "Prompt",
    "Role",
    "Usage",
    "as_messages",
    "estimate_usage",
    "render_prompt",
    "sendable",
]

Role = Literal["system", "user", "assistant"]
_ROLES: tuple[Role, ...] = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation with a model.

    Raises:
        InputError: the role is not ``system``, ``user`` or ``assistant``.
    """

    role: Role
    content: str

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise InputError(
                f"a message cannot have the role {self.role!r}.", hint=f"Use one of {', '.join(_ROLES)}."
            )


Prompt = str | Sequence[Message]
"""A single user message, or the conversation so far (oldest first)."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or several completions.

    ``input_tokens`` holds the whole prompt, those read from or written to the provider's cache included;
    ``output_tokens`` holds everything generated, reasoning included. The other counts are parts of these two,
    so ``total_tokens`` is their sum and nothing is counted twice. ``estimated`` says that at least one figure
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


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a model.

    Attributes:
        text: the answer; may be empty.
        usage: tokens spent on it, failed attempts not included (providers do not report those).
        model: the name that the model reports, else the name that was requested.
        seconds: wall time of the whole call, retries included.
        provider: ``openai``, ``anthropic``, …, ``cli``, ``offline``, ``scripted``, ``callable``.
        cost: US dollars, or None when the price is not known ("unpriced", which differs from 0).
        finish_reason: ``stop``, ``length`` (cut off at ``max_tokens``), ``content_filter``, or None when
            the model does not report one.
        attempts: how often the provider was asked, 1 when nothing had to be retried.
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
    """What a caller may ask of one completion; a model ignores what it cannot do.

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
    """A model. ``complete`` is synchronous and may be called from several threads at once.

    Raises (``complete``):
        ModelError: one of its subclasses says what the caller can do about it.
    """

    @property
    def name(self) -> str:
        """How the model is named in trajectories and messages; never holds a key."""
        ...

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Answer ``messages``."""
        ...


def as_messages(prompt: Prompt) -> list[Message]:
    """Return ``prompt`` as a list of messages: a string becomes one user message.

    Raises:
        InputError: ``prompt`` is empty, or contains anything but messages.
    """
    if isinstance(prompt, str):
        return [Message("user", prompt)]
    messages = list(prompt)
    if not messages:
        raise InputError("the model was given no message.", hint="Pass a prompt, or at least one Message.")
    for message in messages:
        if not isinstance(message, Message):
            raise InputError(f"a prompt is made of Message objects, not of {type(message).__name__}.")
    return messages


def render_prompt(prompt: Prompt) -> str:
    """Return ``prompt`` as one text, for models that read a single string.

    Instructions of the system come first, without a heading; turns are marked ``[user]`` and ``[assistant]``
    only when there is more than one, so that a plain question stays exactly as it was.
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
    """Return ``text`` with characters that UTF-8 cannot encode (lone surrogates) replaced by ``?``."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def estimate_usage(prompt: str, answer: str) -> Usage:
    """Count the tokens of a call whose model reports none (o200k tokens, marked as estimated)."""
    return Usage(count_tokens(prompt), count_tokens(answer), estimated=True)
