"""What RLM-MEM asks of the SDK layer: open a model, send a conversation, read answer and usage.

With ``provider_errors`` and the ``connect`` functions of ``apis``, all that knows ``pydantic_ai``; importing it loads
that library (about a second), so ``providers`` does so with the first completion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

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

from rlm_mem.errors import ModelRefused
from rlm_mem.models.apis import APIS, Target
from rlm_mem.models.base import Message, Usage, sendable
from rlm_mem.models.secrets import redact

__all__ = ["ask", "ask_streaming", "close_model", "conversation", "open_model", "text_of", "usage_of"]


async def open_model(target: Target) -> Model[Any]:
    """Return the model, its connections bound to the running loop; a missing name is asked of the server."""
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
        raise ModelRefused(f"{redact(target.url)} lists no model.", hint="Name one before the @.")
    return str(listed[0].id)


async def close_model(model: Model[Any]) -> None:
    """Close the model's connections."""
    await model.__aexit__(None, None, None)


async def ask(model: Model[Any], messages: list[ModelMessage], settings: ModelSettings) -> ModelResponse:
    """One request, one whole answer."""
    return await model_request(model, messages, model_settings=settings)


async def ask_streaming(
    model: Model[Any], messages: list[ModelMessage], settings: ModelSettings, emit: Callable[[str], None]
) -> ModelResponse:
    """One request; ``emit`` gets each piece of text as it comes, the whole answer is returned."""
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
    """Translate our messages; neighbouring ones that are not the model's make one request."""
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


def text_of(response: ModelResponse) -> str:
    """The answer without reasoning; empty when there is none."""
    return response.text or ""


def usage_of(response: ModelResponse) -> Usage:
    """The SDK layer's figures: input includes what was cached, for every provider."""
    usage = response.usage
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        reasoning_tokens=usage.details.get("reasoning_tokens", usage.details.get("thoughts_tokens", 0)),
        cache_write_tokens=usage.cache_write_tokens,
    )
