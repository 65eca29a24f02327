"""Models behind an API: OpenAI, Anthropic, Google, Ollama, and every OpenAI-compatible server.

One library (``pydantic-ai-slim``, extra ``llm``) calls all of them and normalises their usage figures; it is imported
with the first completion. Retries, deadlines and errors are handled here, in the same way for every provider.

Costs come from the price data of the package ``genai-prices``, without network access. A model without a known price
is *unpriced*: its cost is None, never 0, so that a sum over unpriced calls is not mistaken for a low cost.
"""

from __future__ import annotations

import threading
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Unpack

from rlm_mem.errors import ModelError, ModelOverloaded, ModelRefused, ModelTimeout
from rlm_mem.models.apis import APIS, Target
from rlm_mem.models.base import (
    Completion,
    Message,
    Options,
    Prompt,
    as_messages,
    estimate_usage,
    render_prompt,
)
from rlm_mem.models.event_loop import LoopThread
from rlm_mem.models.retry import RetryPolicy, TransientFailure, call_with_retries
from rlm_mem.models.targets import NO_KEY, resolve_target

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

    from rlm_mem.config import LLMConfig
    from rlm_mem.models.base import Usage

# A request ends at its own deadline; a client that hangs is abandoned after this further time.
_GRACE_SECONDS = 10.0


def provider_llm(provider: str, rest: str, settings: LLMConfig) -> ProviderLLM:
    """Create the model for ``provider:rest`` (see :func:`rlm_mem.models.targets.resolve_target`)."""
    return ProviderLLM(resolve_target(provider, rest, settings), settings)


class ProviderLLM:
    """A model of one provider, with one event loop and connection pool shared by all calling threads.

    Args:
        target: the model, its server and its key.
        settings: default time-out, retries, temperature and length of answers.
        policy: how to retry; None uses the number of retries in ``settings``.
    """

    def __init__(self, target: Target, settings: LLMConfig, policy: RetryPolicy | None = None) -> None:
        self.name = f"{target.provider}:{target.model}" if target.model else target.provider
        self._target = target
        self._settings = settings
        self._policy = policy or RetryPolicy(retries=settings.retries)
        self._loop = LoopThread(f"rlm-mem {target.provider}")
        self._lock = threading.Lock()
        self._model: Model[Any] | None = None

    def __repr__(self) -> str:
        return f"<LLM {self.name}>"

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Return a completion of ``messages``; for the options see :class:`rlm_mem.models.base.Options`.

        Raises:
            ModelUnavailable: the server cannot be reached or rejects the key.
            ModelTimeout: the answer did not arrive in time.
            ModelRefused: the request was rejected: too long, unknown model, quota.
            ModelOverloaded: rate limits or failures persisted after all retries, or the answer was cut off.
        """
        from rlm_mem.models import provider_sdk  # loads the SDK: 1.6 s

        prompt_messages = as_messages(messages)
        timeout = options.get("timeout")
        timeout = self._settings.timeout_seconds if timeout is None else timeout
        began = time.monotonic()
        response, attempts = call_with_retries(
            lambda left: self._attempt(prompt_messages, options, left, timeout), self._policy, timeout
        )
        text = response.text or ""  # without reasoning
        usage = provider_sdk.usage_of(response)
        if usage.total_tokens == 0:  # the server reports no usage, but a budget needs it
            usage = estimate_usage(render_prompt(prompt_messages), text)
        used = response.model_name or self._target.model
        return Completion(
            text=text,
            usage=usage,
            model=used,
            seconds=time.monotonic() - began,
            provider=self._target.provider,
            cost=price(used, self._target.provider, usage, base_url=self._target.base_url),
            finish_reason=response.finish_reason,
            attempts=attempts,
        )

    def close(self) -> None:
        """Close the connections and the event loop; a later call opens new ones."""
        with self._lock:
            model, self._model = self._model, None
            if model is not None:
                from rlm_mem.models import provider_sdk  # loads the SDK: 1.6 s

                self._loop.run(provider_sdk.close_model(model), _GRACE_SECONDS)
            self._loop.close()

    def _attempt(
        self, messages: list[Message], options: Options, left: float | None, timeout: float | None
    ) -> ModelResponse:
        from rlm_mem.models import provider_sdk  # loads the SDK: 1.6 s

        on_text = options.get("on_text")
        delivered = False
        raised_by_caller: BaseException | None = None

        def deliver(piece: str) -> None:
            nonlocal delivered, raised_by_caller
            delivered = True
            assert on_text is not None
            try:
                on_text(piece)
            except BaseException as error:
                raised_by_caller = error
                raise

        hard_limit = None if left is None else left + _GRACE_SECONDS
        try:
            model = self._connected_model()
            conversation = provider_sdk.conversation(messages)
            settings = self._request_settings(options, left)
            if on_text is None:
                response = self._loop.run(provider_sdk.ask(model, conversation, settings), hard_limit)
            else:
                response = self._loop.run_streaming(
                    lambda emit: provider_sdk.ask_streaming(model, conversation, settings, emit),
                    deliver,
                    hard_limit,
                )
        except TimeoutError:
            if raised_by_caller is not None:
                raise
            raise ModelTimeout(f"{self.name} did not answer and could not be interrupted") from None
        except ModelError:
            raise
        except Exception as error:
            # SDKs raise their own errors and those of their HTTP library and decoders; all are translated.
            if error is raised_by_caller:
                raise
            raise provider_sdk.translate(
                error,
                name=self.name,
                provider=self._target.provider,
                url=self._target.url,
                key=self._target.key if self._target.key != NO_KEY else "",
                timeout=timeout,
                started=delivered,
            ) from None  # the SDK's error may contain headers and bodies; the new message quotes it redacted
        self._check_whole(response, streamed=on_text is not None, delivered=delivered)
        return response

    def _check_whole(self, response: ModelResponse, *, streamed: bool, delivered: bool) -> None:
        if response.finish_reason == "content_filter" and not response.text:
            raise ModelRefused(f"the provider's content filter stopped {self.name}")
        if response.finish_reason == "length" and not response.text:
            raise ModelRefused(
                f"{self.name} used up its tokens before it began to reply",
                hint="raise llm.max_tokens, which includes reasoning",
            )
        if streamed and response.finish_reason is None:
            # Only the missing finish reason distinguishes an answer that was cut off from a complete one.
            cut = ModelOverloaded(f"{self.name} broke off in the middle of its reply", hint="ask again")
            if delivered:
                raise cut
            raise TransientFailure(cut)

    def _connected_model(self) -> Model[Any]:
        from rlm_mem.models import provider_sdk  # loads the SDK: 1.6 s

        with self._lock:
            if self._model is None:
                self._model = self._loop.run(provider_sdk.open_model(self._target), 60.0)
            return self._model

    def _request_settings(self, options: Options, left: float | None) -> ModelSettings:
        request_settings: dict[str, Any] = {"max_retries": 0}  # only ``call_with_retries`` retries
        max_tokens = options.get("max_tokens")
        request_settings["max_tokens"] = self._settings.max_tokens if max_tokens is None else max_tokens
        temperature = options.get("temperature")
        temperature = self._settings.temperature if temperature is None else temperature
        if temperature >= 0:
            request_settings["temperature"] = temperature
        if stop := options.get("stop"):
            request_settings["stop_sequences"] = list(stop)
        if left is not None:
            request_settings["request_timeout"] = left
        extra = dict(options.get("extra_body") or {})
        schema = options.get("json_schema")
        if schema is not None and APIS[self._target.provider].takes_schema and "response_format" not in extra:
            schema_format = {"name": "answer", "schema": dict(schema), "strict": True}
            extra["response_format"] = {"type": "json_schema", "json_schema": schema_format}
        if extra:
            request_settings["extra_body"] = extra
        return request_settings  # type: ignore[return-value]


# Built in: no model is called.
_FREE = frozenset({"offline"})


def price(model: str, provider: str, usage: Usage, *, base_url: str | None = None) -> Decimal | None:
    """The cost of ``usage`` in US dollars, or None if the price is unknown.

    Args:
        model: the model's name as the provider spells it.
        provider: as in ``Completion.provider``.
        usage: ``input_tokens`` and ``output_tokens`` include their cached and reasoning parts. Estimated
            figures are not priced: the result would look like a real charge.
        base_url: the server asked, when it is not the provider's own; a price is then looked up by its
            address alone, since a local server may call its model ``gpt-4o``.
    """
    if provider in _FREE:
        return Decimal(0)
    if usage.estimated or not model:
        return None
    try:
        from genai_prices import Usage as PricedUsage, calc_price
    except ImportError:  # without the extra there is no price data
        return None
    tokens = PricedUsage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens or None,
        cache_write_tokens=usage.cache_write_tokens or None,
        output_tokens=usage.output_tokens,
    )
    try:
        if base_url:
            return calc_price(tokens, model, provider_api_url=base_url).total_price
        api = APIS.get(provider)
        if api is None or not api.prices:
            return None
        return calc_price(tokens, model, provider_id=api.prices).total_price
    except (LookupError, ValueError):
        # LookupError: the model is not listed. ValueError: inconsistent figures, as some servers report.
        return None
