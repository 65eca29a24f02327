"""Resolves a model name to its server and key.

A key comes from the environment or, if the package ``keyring`` is installed, from the keyring (service ``rlm-mem``,
user name = the variable's name). It is never a setting, so it is never written to a brain; ``text.secrets.redact``
removes keys from written text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rlm_mem.errors import InvalidConfig, ModelUnavailable
from rlm_mem.models.apis import APIS, Api, Target

if TYPE_CHECKING:
    from rlm_mem.config import LLMConfig

# Local servers rarely need a key, but the client libraries require one.
NO_KEY = "no-key-needed"


def resolve_target(provider: str, rest: str, settings: LLMConfig) -> Target:
    """Resolve ``provider:rest`` to a model, its server and its key.

    Args:
        provider: one of ``apis.APIS``.
        rest: ``MODEL`` or ``MODEL@URL``. For ``openai-compatible`` the model may be empty: the first one
            that the server lists is taken.
        settings: ``base_url`` applies to ``openai-compatible``, and to the provider of ``model``.

    Raises:
        InvalidConfig: the model or a usable base URL is missing.
        ModelUnavailable: the extra or key is missing.
    """
    api = APIS[provider]
    model, at, url = rest.partition("@http")
    base_url = "http" + url if at else _configured_url(api, settings)
    model = model.strip()
    if not model and not api.first_model:
        raise InvalidConfig(f"{provider}: names no model", hint=f"write {provider}:MODEL")
    base_url = _checked_url(api, base_url)
    if not _installed("pydantic_ai") or not _installed(api.package):
        raise ModelUnavailable(
            f"the libraries for {provider} models are not installed", hint="run: pip install 'rlm-mem[llm]'"
        )
    own_server = base_url is not None or api.own_server
    key = (find_key(provider) or NO_KEY) if own_server else require_key(provider)
    return Target(provider, model, base_url, key)


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False


def _configured_url(api: Api, settings: LLMConfig) -> str | None:
    configured = settings.model.partition(":")[0].strip().lower()
    if settings.base_url and api.name in ("openai-compatible", configured):
        return settings.base_url
    from_environment = os.environ.get(api.url_variable, "").strip() if api.url_variable else ""
    if not from_environment and api.name == "ollama" and os.environ.get("OLLAMA_HOST"):
        host = os.environ["OLLAMA_HOST"].strip()
        from_environment = host if "://" in host else f"http://{host}"
    return from_environment or None


def _checked_url(api: Api, url: str | None) -> str | None:
    if url is None:
        if not api.home:
            raise InvalidConfig(
                f"{api.name} needs the address of a server",
                hint=f"set llm.base_url, or write {api.name}:MODEL@http://localhost:8080/v1",
            )
        return None
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an open bracket
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidConfig(f"{url!r:.200} is not the address of a server", hint="write http://HOST:PORT/v1")
    if api.below_v1 and parts.path in ("", "/"):
        # Nearly every such server has its API below /v1; otherwise requests fail with a misleading 404.
        return url.rstrip("/") + "/v1"
    return url


KEYRING_SERVICE = "rlm-mem"


def find_key(provider: str, environ: Mapping[str, str] | None = None) -> str | None:
    """The key of a provider from the environment, else from the keyring, else None.

    Surrounding white space is removed, since a key pasted with its newline would make an invalid header.
    """
    env = os.environ if environ is None else environ
    names = APIS[provider].keys
    values = chain((env.get(name, "").strip() for name in names), map(_from_keyring, names))
    return next(filter(None, values), None)


def require_key(provider: str, environ: Mapping[str, str] | None = None) -> str:
    """The key of a provider.

    Raises:
        ModelUnavailable: the key is missing; the message names the variable to set.
    """
    key = find_key(provider, environ)
    if key is None:
        names = APIS[provider].keys
        raise ModelUnavailable(
            f"there is no key for {provider}: {' or '.join(names)} is not set",
            hint=f"set {names[0]}, or store it once: keyring set {KEYRING_SERVICE} {names[0]}",
        )
    return key


def _from_keyring(name: str) -> str:
    try:
        import keyring  # optional
        from keyring.errors import KeyringError
    except ImportError:
        return ""
    try:
        return (keyring.get_password(KEYRING_SERVICE, name) or "").strip()
    except (KeyringError, OSError, RuntimeError):
        # Without a usable keyring (a server, a container), there is no key in it.
        return ""
