"""From a provider's failure to an error that says what the caller can do about it.

Imported only together with the SDKs (see ``providers``).
"""

from __future__ import annotations

import json
import re

from pydantic_ai import exceptions as sdk

from rlm_mem.errors import (
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from rlm_mem.models.retry import TRANSIENT_STATUS, TransientFailure
from rlm_mem.models.secrets import KEY_VARIABLES, redact

__all__ = ["translate"]

# How servers that the SDK layer does not know say that a prompt is too long.
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|exceed_context_size|prompt is too long|too many (?:input )?tokens"
    r"|maximum (?:number of tokens|context)",
    re.IGNORECASE,
)

# A stream that stopped by itself, in the words of the SDK layer.
_CUT_OFF = re.compile(r"Streamed response ended without")

_LONGEST_DETAIL = 300


def translate(
    error: Exception, *, name: str, provider: str, url: str, key: str, timeout: float | None, started: bool
) -> ModelError | TransientFailure:
    """Return the error to raise instead of ``error``: final, or one that may pass with another try.

    Args:
        name: the model as the user named it.
        provider: which keys it uses.
        url: address of the server, for messages.
        key: the key in use, hidden should the provider repeat it.
        timeout: seconds that the caller allowed.
        started: part of the answer has been handed to the caller already, so it cannot be asked again.
    """
    found = _classify(error, name, provider, redact(url), _detail(error, key), timeout)
    if started and isinstance(found, TransientFailure):
        return ModelOverloaded(
            f"{name} broke off in the middle of its answer: {found.error.message}",
            hint="Ask again; what arrived so far is incomplete.",
        )
    return found


def _classify(
    error: Exception, name: str, provider: str, url: str, detail: str, timeout: float | None
) -> ModelError | TransientFailure:
    status = error.status_code if isinstance(error, sdk.ModelHTTPError) else None
    retry_after = error.retry_after if isinstance(error, sdk.ModelAPIError) else None
    if isinstance(error, sdk.ModelRequestTimeout):
        return _timed_out(name, timeout)
    if isinstance(error, sdk.ModelContextWindowExceededError) or (
        status in (400, 413, 422) and _TOO_LONG.search(detail)
    ):
        return ModelRefused(
            f"The prompt is longer than the context window of {name}: {detail}",
            hint="Use a model with a larger window, or lower sandbox.max_output_chars.",
        )
    if isinstance(error, sdk.ModelQuotaExceededError):
        return ModelRefused(
            f"The account behind {name} has no quota left: {detail}", hint="Top up, or use another model."
        )
    if isinstance(error, sdk.ModelAuthenticationError) or status in (401, 403):
        variables = " or ".join(KEY_VARIABLES[provider])
        return ModelUnavailable(
            f"{url} did not accept the key for {name}: {detail}", hint=f"Check the key in {variables}."
        )
    if isinstance(error, sdk.ModelNotFoundError) or status == 404:
        suggested = getattr(error, "suggested_model_id", None)
        return ModelRefused(
            f"{url} knows no model of the name {name}: {detail}",
            hint=f"Did you mean {suggested}?" if suggested else "Check the model's name and the base URL.",
        )
    if isinstance(error, sdk.ModelRateLimitError) or status == 429:
        return TransientFailure(
            ModelOverloaded(f"{name} is rate-limited: {detail}", hint="Wait, then ask again."), retry_after
        )
    if status is not None and (status in TRANSIENT_STATUS or status >= 500):
        return TransientFailure(
            ModelOverloaded(f"{url} failed with status {status}: {detail}", hint="Ask again later."),
            retry_after,
        )
    if status is not None or isinstance(error, sdk.ModelRequestRejectedError):
        return ModelRefused(f"{name} refused the request: {detail}")
    if isinstance(error, (sdk.ModelUnavailableError, sdk.ModelServerError)):
        return TransientFailure(
            ModelOverloaded(f"{url} could not serve {name}: {detail}", hint="Ask again later."), retry_after
        )
    if isinstance(error, sdk.ModelConnectionError):
        return _not_connected(error, name, url, detail)
    if isinstance(error, sdk.ContentFilterError):
        return ModelRefused(f"The provider's content filter stopped {name}: {detail}")
    if _CUT_OFF.search(str(error)):
        return TransientFailure(
            ModelOverloaded(f"{url} ended its answer too early: {detail}", hint="Ask again.")
        )
    if isinstance(
        error, (sdk.UnexpectedModelBehavior, sdk.ModelAPIError, LookupError, TypeError, ValueError)
    ):
        # The last three come from an SDK that takes apart a body of another shape than it expects.
        return ModelError(
            f"{url} sent something that is not an answer of {name}: {detail}",
            hint="Check the base URL: it must be the address of the API, mostly ending in /v1.",
        )
    return ModelError(f"The request to {name} failed: {detail}")


def _timed_out(name: str, timeout: float | None) -> ModelTimeout:
    within = "in time" if timeout is None else f"within {timeout:g} seconds"
    return ModelTimeout(
        f"{name} did not answer {within}.", hint="Raise llm.timeout_seconds, or ask for less."
    )


def _not_connected(error: sdk.ModelConnectionError, name: str, url: str, detail: str) -> TransientFailure:
    if error.phase in ("pool", "connect"):
        return TransientFailure(
            ModelUnavailable(f"Cannot reach {url} for {name}: {detail}", hint="Is the server running there?")
        )
    return TransientFailure(
        ModelOverloaded(
            f"The connection to {url} broke off: {detail}", hint="Ask again; is the server still up?"
        )
    )


def _detail(error: Exception, key: str) -> str:
    """The provider's own words, in one short line and without keys."""
    body = getattr(error, "body", None)
    text = _message_in(body)
    if not text:
        text = _innermost(error) if isinstance(error, sdk.ModelConnectionError) else str(error)
    text = text or type(error).__name__
    text = " ".join(redact(text, known=(key,)).split()).rstrip(".")
    return text if len(text) <= _LONGEST_DETAIL else text[:_LONGEST_DETAIL] + "…"


def _innermost(error: BaseException) -> str:
    """The words at the bottom of the chain: "Connection refused" says more than "Connection error"."""
    words = str(error)
    for _ in range(8):
        below = error.__cause__ or error.__context__
        if below is None:
            break
        error = below
        words = str(error) or words
    return words


def _message_in(body: object) -> str:
    """Find the human sentence in the shapes of error bodies that providers use."""
    for _ in range(3):
        if isinstance(body, dict):
            inner = body.get("message") or body.get("error") or body.get("detail")
            if inner is None:
                return json.dumps(body, default=str)
            body = inner
        elif isinstance(body, list) and body:
            body = body[0]
    return body if isinstance(body, str) else ""
