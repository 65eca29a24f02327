"""Calls to the provider SDK: opens models, sends conversations, and reads answers, usage and errors.

Only this module and the ``connect`` functions of ``apis`` use ``pydantic_ai``; importing it loads that library (about
a second), so ``providers`` does so with the first completion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic_ai import exceptions as sdk
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from rlm_mem.errors import ModelError, ModelOverloaded, ModelRefused, ModelTimeout, ModelUnavailable
from rlm_mem.models.apis import APIS, Target
from rlm_mem.models.base import Message, Usage, sendable
from rlm_mem.models.retry import TRANSIENT_STATUS, TransientFailure
from rlm_mem.text.secrets import redact


async def open_model(target: Target) -> Model[Any]:
    """A model whose connections are bound to the running loop; without a name, the first that the server lists."""
    model = APIS[target.provider].connect(target)
    await model.__aenter__()
    if not target.model:
        try:
            found = await _first_model(model, target)
        finally:
            await close_model(model)
        return await open_model(replace(target, model=found))
    return model


async def _first_model(model: Model[Any], target: Target) -> str:
    from openai import APIConnectionError, APIStatusError

    client = model.client.with_options(max_retries=0, timeout=30.0)  # type: ignore[attr-defined]
    try:
        listed = (await client.models.list()).data
    except APIConnectionError as error:
        raise ModelConnectionError(target.provider, str(error), phase="connect") from error
    except APIStatusError as error:
        raise ModelHTTPError(error.status_code, target.provider, error.body) from error
    if not listed:
        raise ModelRefused(f"{redact(target.url)} lists no model", hint="name one before the @")
    return str(listed[0].id)


async def close_model(model: Model[Any]) -> None:
    """Close the connections of a model."""
    await model.__aexit__(None, None, None)


async def ask(model: Model[Any], messages: list[ModelMessage], settings: ModelSettings) -> ModelResponse:
    """Send one request and return the whole answer."""
    return await model_request(model, messages, model_settings=settings)


async def ask_streaming(
    model: Model[Any], messages: list[ModelMessage], settings: ModelSettings, emit: Callable[[str], None]
) -> ModelResponse:
    """Send one request, pass each piece of text to ``emit``, and return the whole answer."""
    async with model_request_stream(model, messages, model_settings=settings) as stream:
        async for event in stream:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                piece = event.part.content
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                piece = event.delta.content_delta
            else:
                continue
            if piece:
                emit(piece)
        return stream.get()


def conversation(messages: list[Message]) -> list[ModelMessage]:
    """Convert messages for the SDK; adjacent messages not from the model become one request."""
    turns: list[ModelMessage] = []
    for message in messages:
        content = sendable(message.content)
        if message.role == "assistant":
            turns.append(ModelResponse(parts=[TextPart(content)]))
            continue
        part = (SystemPromptPart if message.role == "system" else UserPromptPart)(content)
        last = turns[-1] if turns else None
        if isinstance(last, ModelRequest):
            last.parts = [*last.parts, part]
        else:
            turns.append(ModelRequest(parts=[part]))
    return turns


def usage_of(response: ModelResponse) -> Usage:
    """Token usage as reported by the SDK, where input includes cached tokens for every provider."""
    usage = response.usage
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        reasoning_tokens=usage.details.get("reasoning_tokens", usage.details.get("thoughts_tokens", 0)),
        cache_write_tokens=usage.cache_write_tokens,
    )


# How servers without an error class in the SDK report that a prompt is too long.
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|exceed_context_size|prompt is too long|too many (?:input )?tokens"
    r"|maximum (?:number of tokens|context)",
    re.IGNORECASE,
)

# The SDK's message for a stream that ended early.
_CUT_OFF = re.compile(r"Streamed response ended without")

_MAX_DETAIL = 300


def translate(
    error: Exception, *, name: str, provider: str, url: str, key: str, timeout: float | None, started: bool
) -> ModelError | TransientFailure:
    """Convert an SDK error to a final error, or to one that is worth a retry.

    Args:
        name: the model name given by the user.
        provider: the provider, for messages.
        url: address of the server, for messages.
        key: the key in use, redacted if the error contains it.
        timeout: time-out of the call in seconds.
        started: whether part of the answer was already passed to the caller, which prevents a retry.
    """
    found = _classify(error, name, provider, redact(url), _detail(error, key), timeout)
    if started and isinstance(found, TransientFailure):
        return ModelOverloaded(
            f"{name} broke off in the middle of its reply: {found.error.message}",
            hint="retry; what arrived is incomplete",
        )
    return found


def _classify(
    error: Exception, name: str, provider: str, url: str, detail: str, timeout: float | None
) -> ModelError | TransientFailure:
    status = error.status_code if isinstance(error, sdk.ModelHTTPError) else None
    retry_after = error.retry_after if isinstance(error, sdk.ModelAPIError) else None

    def overloaded(what: str, hint: str) -> TransientFailure:
        return TransientFailure(ModelOverloaded(f"{what}: {detail}", hint=hint), retry_after)

    if isinstance(error, sdk.ModelRequestTimeout):
        return _timed_out(name, timeout)
    if isinstance(error, sdk.ModelContextWindowExceededError) or (
        status in (400, 413, 422) and _TOO_LONG.search(detail)
    ):
        return ModelRefused(
            f"the prompt is longer than the context window of {name}: {detail}",
            hint="use a model with a larger window, or lower sandbox.max_output_chars",
        )
    if isinstance(error, sdk.ModelQuotaExceededError):
        return ModelRefused(
            f"the account behind {name} has no quota left: {detail}",
            hint="top up the account, or use another model",
        )
    if isinstance(error, sdk.ModelAuthenticationError) or status in (401, 403):
        variables = " or ".join(APIS[provider].keys)
        return ModelUnavailable(
            f"{url} did not accept the key for {name}: {detail}", hint=f"check the key in {variables}"
        )
    if isinstance(error, sdk.ModelNotFoundError) or status == 404:
        suggested = getattr(error, "suggested_model_id", None)
        return ModelRefused(
            f"{url} has no model named {name}: {detail}",
            hint=f"did you mean {suggested}?" if suggested else "check the model's name and the base URL",
        )
    if isinstance(error, sdk.ModelRateLimitError) or status == 429:
        return overloaded(f"{name} is rate-limited", "wait, then retry")
    if status is not None and (status in TRANSIENT_STATUS or status >= 500):
        return overloaded(f"{url} failed with status {status}", "retry later")
    if status is not None or isinstance(error, sdk.ModelRequestRejectedError):
        return ModelRefused(f"{name} refused the request: {detail}")
    if isinstance(error, (sdk.ModelUnavailableError, sdk.ModelServerError)):
        return overloaded(f"{url} could not serve {name}", "retry later")
    if isinstance(error, sdk.ModelConnectionError):
        return _not_connected(error, name, url, detail)
    if isinstance(error, sdk.ContentFilterError):
        return ModelRefused(f"the provider's content filter stopped {name}: {detail}")
    if _CUT_OFF.search(str(error)):
        return TransientFailure(
            ModelOverloaded(f"{url} ended its answer too early: {detail}", hint="ask again")
        )
    if isinstance(
        error, (sdk.UnexpectedModelBehavior, sdk.ModelAPIError, LookupError, TypeError, ValueError)
    ):
        # The last three are raised by an SDK on a body of an unexpected shape.
        return ModelError(
            f"{url} sent something that is not an answer of {name}: {detail}",
            hint="check the base URL: it must be the address of the API, which usually ends in /v1",
        )
    return ModelError(f"the request to {name} failed: {detail}")


def _timed_out(name: str, timeout: float | None) -> ModelTimeout:
    within = "in time" if timeout is None else f"within {timeout:g} seconds"
    return ModelTimeout(f"{name} did not answer {within}", hint="raise llm.timeout_seconds, or request less")


def _not_connected(error: sdk.ModelConnectionError, name: str, url: str, detail: str) -> TransientFailure:
    if error.phase in ("pool", "connect"):
        return TransientFailure(
            ModelUnavailable(
                f"cannot reach {url} for {name}: {detail}", hint="check that the server is running there"
            )
        )
    return TransientFailure(
        ModelOverloaded(
            f"the connection to {url} broke off: {detail}",
            hint="check that the server is still running, then retry",
        )
    )


def _detail(error: Exception, key: str) -> str:
    """The provider's message as one short line, with keys redacted."""
    body = getattr(error, "body", None)
    text = _message_in(body)
    if not text:
        text = _innermost(error) if isinstance(error, sdk.ModelConnectionError) else str(error)
    text = text or type(error).__name__
    text = " ".join(redact(text, known=(key,)).split()).rstrip(".")
    return text if len(text) <= _MAX_DETAIL else text[:_MAX_DETAIL] + "…"


def _innermost(error: BaseException) -> str:
    """The message of the innermost cause, which is the most precise, such as "Connection refused"."""
    message = str(error)
    for _ in range(8):
        below = error.__cause__ or error.__context__
        if below is None:
            break
        error = below
        message = str(error) or message
    return message


def _message_in(body: object) -> str:
    """The message in an error body of any of the shapes that providers use."""
    for _ in range(3):
        if isinstance(body, dict):
            inner = body.get("message") or body.get("error") or body.get("detail")
            if inner is None:
                return json.dumps(body, default=str)
            body = inner
        elif isinstance(body, list) and body:
            body = body[0]
    return body if isinstance(body, str) else ""
