"""Supported API providers, with one record of provider-specific settings each.

To add a provider that ``pydantic_ai`` supports, add a record here; any other needs a package of its own
(docs/extending.md, A model provider).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rlm_mem.record import FrozenRecord

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.profiles.openai import OpenAIModelProfile


class Target(FrozenRecord, frozen=True):
    """A model with the address of its server and its key, which ``repr`` omits."""

    provider: str
    model: str
    base_url: str | None
    key: str

    def __repr__(self) -> str:
        return f"Target(provider={self.provider!r}, model={self.model!r}, base_url={self.base_url!r})"

    @property
    def url(self) -> str:
        """The address to which requests are sent."""
        return self.base_url or APIS[self.provider].home


class Api(FrozenRecord, frozen=True):
    """Settings of one provider.

    Attributes:
        name: prefix of its model names.
        connect: imports the SDK and creates its object for one model, without opening a connection.
        package: the SDK that must be installed.
        keys: environment variables, and user names in the keyring, to try for its key, in order.
        home: the provider's server; empty if the user must name one.
        url_variable: environment variable with the address of another server.
        below_v1: whether the API is below ``/v1``, which is then added to an address without a path.
        own_server: whether even ``home`` is a server of the user, which needs no key.
        first_model: whether a name without a model selects the first one that the server lists.
        takes_schema: whether requests may constrain the answer to a JSON Schema (``response_format``).
        prices: name of the provider in the price data; empty: completions are unpriced.
    """

    name: str
    connect: Callable[[Target], Model[Any]]
    package: str = "openai"
    keys: tuple[str, ...] = ()
    home: str = ""
    url_variable: str = ""
    below_v1: bool = False
    own_server: bool = False
    first_model: bool = False
    takes_schema: bool = False
    prices: str = ""


def _anthropic(target: Target) -> Model[Any]:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(api_key=target.key, base_url=target.base_url)
    return AnthropicModel(target.model, provider=provider)


def _google(target: Target) -> Model[Any]:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(target.model, provider=GoogleProvider(api_key=target.key, base_url=target.base_url))


def _openai(target: Target) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel(target.model, provider=OpenAIProvider(target.url, target.key), profile=_profile())


def _ollama(target: Target) -> Model[Any]:
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    provider = OllamaProvider(target.url, target.key)
    return OllamaModel(target.model, provider=provider, profile=_local_profile())


def _openai_compatible(target: Target) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel

    try:
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
    except ModuleNotFoundError:  # an older release, which pydantic-ai-harness requires
        from pydantic_ai.providers.openai import OpenAIProvider

        plain = OpenAIProvider(target.url, target.key)
        return OpenAIChatModel(target.model, provider=plain, profile=_local_profile())
    provider = OpenAICompatibleProvider("openai-compatible", base_url=target.url, api_key=target.key)
    return OpenAIChatModel(target.model, provider=provider, profile=_local_profile())


def _profile() -> OpenAIModelProfile:
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    # A stream that ends without a finish reason was cut off.
    return OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)


def _local_profile() -> OpenAIModelProfile:
    profile = _profile()
    # All local servers support the older name of the token limit, but only some the newer one.
    profile["openai_chat_supports_max_completion_tokens"] = False
    return profile


APIS = {
    api.name: api
    for api in (
        Api(
            "anthropic",
            _anthropic,
            package="anthropic",
            keys=("ANTHROPIC_API_KEY",),
            home="https://api.anthropic.com",
            url_variable="ANTHROPIC_BASE_URL",
            prices="anthropic",
        ),
        Api(
            "google",
            _google,
            package="google.genai",
            keys=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
            home="https://generativelanguage.googleapis.com",
            url_variable="GOOGLE_GEMINI_BASE_URL",
            prices="google",
        ),
        Api(
            "ollama",
            _ollama,
            keys=("OLLAMA_API_KEY",),
            home="http://localhost:11434/v1",
            url_variable="OLLAMA_BASE_URL",
            below_v1=True,
            own_server=True,
            takes_schema=True,
        ),
        Api(
            "openai",
            _openai,
            keys=("OPENAI_API_KEY",),
            home="https://api.openai.com/v1",
            url_variable="OPENAI_BASE_URL",
            below_v1=True,
            takes_schema=True,
            prices="openai",
        ),
        Api(
            "openai-compatible",
            _openai_compatible,
            # Not OPENAI_API_KEY, which must not be sent to whatever server a base URL names.
            keys=("RLM_MEM_LLM_API_KEY",),
            below_v1=True,
            first_model=True,
            takes_schema=True,
        ),
    )
}
"""Every provider by name."""
