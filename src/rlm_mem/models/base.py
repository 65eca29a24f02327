"""What a model is to RLM-MEM: messages in, one completion with its usage out.

Everything that can answer a prompt fits behind one small protocol, :class:`LLM`. A name such as
``"offline"``, ``"openai:gpt-…"`` or ``"cli:claude"`` becomes one through :func:`get_llm`; a plain callable or
an object whose ``complete(prompt)`` returns a string through
:func:`adapt`. No SDK is imported here: each kind of model lives in a module of its own, loaded when named.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from typing import Any, Literal, Protocol, TypedDict, Unpack, runtime_checkable

from rlm_mem.config import Config, LLMConfig
from rlm_mem.errors import InputError, InvalidConfig, ModelError, ModelUnavailable, RlmMemError
from rlm_mem.models.apis import APIS
from rlm_mem.text.tokens import count_tokens

__all__ = [
    "LLM",
    "PROVIDERS",
    "Completion",
    "Message",
    "Options",
    "Prompt",
    "Role",
    "Usage",
    "adapt",
    "as_messages",
    "estimate_usage",
    "get_llm",
    "render_prompt",
    "sendable",
]

Role = Literal["system", "user", "assistant"]
_ROLES: tuple[Role, ...] = ("system", "user", "assistant")

PROVIDERS: tuple[str, ...] = tuple(APIS)
"""Prefixes of model names that need the extra ``llm``; other packages add more."""


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
                f"A message cannot have the role {self.role!r}.", hint=f"Use one of {', '.join(_ROLES)}."
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
        model: the model's own name for itself where it tells, else the name asked for.
        seconds: wall time of the whole call, retries included.
        provider: ``openai``, ``anthropic``, …, ``cli``, ``offline``, ``scripted``, ``callable``.
        cost: US dollars, or None when the price is not known ("unpriced", which is not the same as 0).
        finish_reason: ``stop``, ``length`` (cut off at ``max_tokens``), ``content_filter``, or None when
            the model does not tell.
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
    ``json_schema``: a JSON Schema that the answer is held to, by models and servers that can.
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
        InputError: ``prompt`` is empty, or holds something else than messages.
    """
    if isinstance(prompt, str):
        return [Message("user", prompt)]
    messages = list(prompt)
    if not messages:
        raise InputError("The model was given no message.", hint="Pass a prompt, or at least one Message.")
    for message in messages:
        if not isinstance(message, Message):
            raise InputError(f"A prompt is made of Message objects, not of {type(message).__name__}.")
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
    """Return ``text`` with what cannot be sent as UTF-8 (half of a surrogate pair) replaced by ``?``."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def estimate_usage(prompt: str, answer: str) -> Usage:
    """Count the tokens of a call whose model reports none (o200k tokens, marked as estimated)."""
    return Usage(count_tokens(prompt), count_tokens(answer), estimated=True)


class _PlainLLM:
    """A callable, or an object with ``complete()``, that takes one string and returns one.

    It runs in the caller's thread and cannot be interrupted: ``timeout`` is handed on if it takes one.
    """

    def __init__(self, call: Callable[..., Any], name: str) -> None:
        self._call = call
        self.name = name
        self._accepted = _option_names(call)

    def __repr__(self) -> str:
        return f"<LLM {self.name}>"

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Answer by calling the object; its own exceptions pass through unchanged."""
        prompt = render_prompt(messages)
        given = {key: value for key, value in options.items() if key in self._accepted and value is not None}
        began = time.monotonic()
        result = self._call(prompt, **given)
        seconds = time.monotonic() - began
        if isinstance(result, Completion):
            return result
        text = result if isinstance(result, str) else getattr(result, "text", None)
        if not isinstance(text, str):
            if inspect.iscoroutine(result):
                result.close()
            raise ModelError(
                f"The model {self.name} returned {type(result).__name__} instead of a text.",
                hint="complete() must be synchronous and return a str or a Completion.",
            )
        on_text = options.get("on_text")
        if on_text is not None and "on_text" not in given:
            on_text(text)
        return Completion(
            text, estimate_usage(prompt, text), model=self.name, seconds=seconds, provider="callable"
        )


def _option_names(call: Callable[..., Any]) -> frozenset[str]:
    """Options that ``call`` names among its parameters; ``**kwargs`` promises nothing about their meaning."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # builtins and C functions may have no signature
        return frozenset()
    by_name = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    # The first parameter is the prompt, whatever it is called.
    return frozenset(p.name for p in list(parameters)[1:] if p.kind in by_name) & set(Options.__annotations__)


def _takes_messages(obj: object) -> bool:
    """True for a model written for the protocol: it has a name, and its ``complete`` takes the options."""
    if not isinstance(getattr(obj, "name", None), str):
        return False
    try:
        parameters = inspect.signature(obj.complete).parameters.values()  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return False
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters) or {"max_tokens", "timeout"} <= {
        p.name for p in parameters
    }


def adapt(model: object, config: Config | None = None) -> LLM:
    """Return ``model`` as an :class:`LLM`.

    Args:
        model: an LLM; a name as for :func:`get_llm`, or None for the configured one; an object whose
            ``complete(prompt: str)`` returns a str or a Completion; or a callable that does.
        config: settings for models given by name.

    Raises:
        InputError: nothing of the kind.
        ModelUnavailable: the model named needs something that is missing.
    """
    if model is None or isinstance(model, str):
        return get_llm(model, config)
    complete = getattr(model, "complete", None)
    if callable(complete):
        if _takes_messages(model):
            return model  # type: ignore[return-value]
        name = getattr(model, "name", None)
        return _PlainLLM(complete, name if isinstance(name, str) else type(model).__name__)
    if callable(model):
        return _PlainLLM(model, getattr(model, "__name__", type(model).__name__))
    raise InputError(
        f"{type(model).__name__} is not a model.",
        hint="Pass a name such as 'openai:gpt-5', a callable, or an object with complete(prompt).",
    )


def get_llm(spec: str | None = None, config: Config | None = None) -> LLM:
    """Return the model that ``spec`` names, without contacting it.

    Args:
        spec: ``offline``; ``scripted`` or ``scripted:REPLIES.json``; ``PROVIDER:MODEL`` or
            ``PROVIDER:MODEL@URL`` with a provider of :data:`PROVIDERS`; ``cli:claude``, ``cli:codex`` or
            ``cli:COMMAND LINE``; or the name of an installed provider (``rlm_mem.extensions.PROVIDERS``), with or
            without ``:MODEL``. None or empty: ``config.llm.model``, and ``offline`` when that is empty too.
        config: time-out, retries, temperature, base URL and so on; defaults when None.

    Raises:
        InvalidConfig: the name is not one of these.
        ModelUnavailable: the extra ``llm``, a key or a command is missing.
    """
    settings = (config or Config()).llm
    name = (spec or settings.model or "offline").strip()
    kind, _, rest = name.partition(":")
    kind = kind.strip().lower()
    rest = rest.strip()
    # Each kind is loaded when it is named: the command-line and API models take 45 and 60 ms.
    if kind == "offline" and not rest:
        # By name: offline reading rests on this package, not this package on it.
        offline: LLM = import_module("rlm_mem.offline").OfflineLLM()
        return offline
    if kind == "scripted":
        from rlm_mem.models.scripted import ScriptedLLM

        return ScriptedLLM.from_file(rest) if rest else ScriptedLLM()
    if kind == "cli":
        from rlm_mem.models.cli_models import CommandLLM

        return CommandLLM.from_spec(rest, settings)
    if kind in PROVIDERS:
        from rlm_mem.models.providers import provider_llm

        return provider_llm(kind, rest, settings)
    if kind and (made := _installed(kind, rest, settings)) is not None:
        return made
    raise InvalidConfig(
        f"{name!r} does not name a model.",
        hint=f"Use offline, cli:COMMAND, or PROVIDER:MODEL with one of {', '.join(PROVIDERS)}, or install a package "
        "that provides it.",
    )


def _installed(kind: str, rest: str, settings: LLMConfig) -> LLM | None:
    """The model of a provider that another package brings; None where no package does."""
    from rlm_mem.extensions import PROVIDERS as GROUP
    from rlm_mem.extensions import described, extension

    found = extension(GROUP, kind, ModelUnavailable)
    if found is None:
        return None
    provider = found.load(ModelUnavailable)
    if not callable(provider):
        raise ModelUnavailable(
            f"the entry point {found} is not a provider: {type(provider).__name__} cannot be called",
            hint="it must name a function or class that takes the model's name and the settings",
        )
    try:
        return adapt(provider(rest, settings))
    except RlmMemError:
        raise
    except Exception as error:  # code of another package: it may raise anything
        raise ModelUnavailable(
            f"{kind}:{rest} cannot be opened by the package {found.package}: {described(error)}"
        ) from error
