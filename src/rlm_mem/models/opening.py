"""Opens models given as a name, a callable, or an object with ``complete``.

No SDK is imported here: each kind of model is in its own module, which is loaded when it is named.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Unpack

from rlm_mem.arguments import check_model
from rlm_mem.config import Config, LLMConfig
from rlm_mem.errors import InvalidConfig, ModelError, ModelUnavailable, RlmMemError
from rlm_mem.extensions import PROVIDERS as GROUP, described, extension
from rlm_mem.models.apis import APIS
from rlm_mem.models.base import LLM, Completion, Options, Prompt, estimate_usage, is_llm, render_prompt
from rlm_mem.models.scripted import ScriptedLLM

PROVIDERS: tuple[str, ...] = tuple(APIS)
"""Prefixes of model names that need the extra ``llm``; other packages can add more."""


class _PlainLLM:
    """Adapts a callable, or an object with ``complete()``, that maps a string to a string.

    It runs in the caller's thread and cannot be interrupted; ``timeout`` is passed on if it is accepted.
    """

    def __init__(self, call: Callable[..., Any], name: str) -> None:
        self._call = call
        self.name = name
        self._accepted = _option_names(call)

    def __repr__(self) -> str:
        return f"<LLM {self.name}>"

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Call the object; its exceptions are passed through unchanged."""
        prompt = render_prompt(messages)
        accepted_options = {
            key: value for key, value in options.items() if key in self._accepted and value is not None
        }
        began = time.monotonic()
        result = self._call(prompt, **accepted_options)
        seconds = time.monotonic() - began
        if isinstance(result, Completion):
            return result
        text = result if isinstance(result, str) else getattr(result, "text", None)
        if not isinstance(text, str):
            if inspect.iscoroutine(result):
                result.close()
            raise ModelError(
                f"the model {self.name} returned {type(result).__name__} instead of a text",
                hint="complete() must be synchronous and return a str or a Completion",
            )
        on_text = options.get("on_text")
        if on_text is not None and "on_text" not in accepted_options:
            on_text(text)
        return Completion(
            text, estimate_usage(prompt, text), model=self.name, seconds=seconds, provider="callable"
        )


def _option_names(call: Callable[..., Any]) -> frozenset[str]:
    """Names of options among the parameters of ``call``; ``**kwargs`` does not show which are supported."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # built-in functions may lack a signature
        return frozenset()
    by_name = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    # The first parameter is the prompt, whatever its name.
    return frozenset(p.name for p in list(parameters)[1:] if p.kind in by_name) & set(Options.__annotations__)


def adapt(model: object, config: Config | None = None) -> LLM:
    """Convert a model given in any supported form to an :class:`LLM`.

    Args:
        model: an LLM; a name as for :func:`get_llm`, or None for the configured one; an object whose
            ``complete(prompt: str)`` returns a str or a Completion; or a callable that does.
        config: settings for models given by name.

    Raises:
        InputError: ``model`` is of another type.
        ModelUnavailable: the extra, key or command of the model is missing.
    """
    if model is None or isinstance(model, str):
        return get_llm(model, config)
    if is_llm(model):
        return model
    complete = getattr(model, "complete", None)
    if callable(complete):
        name = getattr(model, "name", None)
        return _PlainLLM(complete, name if isinstance(name, str) else type(model).__name__)
    check_model(model)
    assert callable(model)
    return _PlainLLM(model, getattr(model, "__name__", type(model).__name__))


def get_llm(spec: str | None = None, config: Config | None = None) -> LLM:
    """Create the model with this name, without contacting it.

    Args:
        spec: ``offline``; ``scripted`` or ``scripted:REPLIES.json``; ``PROVIDER:MODEL`` or
            ``PROVIDER:MODEL@URL`` with a provider of :data:`PROVIDERS`; ``cli:claude``, ``cli:codex`` or
            ``cli:COMMAND LINE``; or the name of an installed provider (``rlm_mem.extensions.PROVIDERS``), with or
            without ``:MODEL``. None or empty: ``config.llm.model``, and ``offline`` when that is empty too.
        config: settings such as time-out, retries, temperature and base URL; None: defaults.

    Raises:
        InvalidConfig: the name is unknown.
        ModelUnavailable: the extra ``llm``, a key or a command is missing.
    """
    settings = (config or Config()).llm
    name = (spec or settings.model or "offline").strip()
    kind, _, rest = name.partition(":")
    kind = kind.strip().lower()
    rest = rest.strip()
    # Each kind is loaded only when named: the command-line and API models take 45 and 60 ms.
    if kind == "offline" and not rest:
        # Imported dynamically because ``offline`` depends on this package, not the reverse.
        offline: LLM = import_module("rlm_mem.offline").OfflineLLM()
        return offline
    if kind == "scripted":
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
        f"{'' if spec else 'the setting llm.model: '}{name!r} does not name a model",
        hint=f"use offline, cli:COMMAND, or PROVIDER:MODEL with one of {', '.join(PROVIDERS)}, or install a package "
        "that provides it",
    )


def _installed(kind: str, rest: str, settings: LLMConfig) -> LLM | None:
    """The model of a provider from another package; None if no package provides it."""
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
    except Exception as error:  # code of another package may raise anything
        raise ModelUnavailable(
            f"{kind}:{rest} cannot be opened by the package {found.package}: {described(error)}"
        ) from error
