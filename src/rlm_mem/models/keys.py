"""Finds keys of model providers in the environment or keyring.

The keyring is used if the package ``keyring`` is installed (service ``rlm-mem``, user name = the variable's name). A
key is never a setting, so it is never written to a brain; ``text.secrets.redact`` removes keys from written text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from rlm_mem.errors import ModelUnavailable
from rlm_mem.models.apis import APIS

KEYRING_SERVICE = "rlm-mem"

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {name: api.keys for name, api in APIS.items()}
"""Environment variables (and user names in the keyring) to try for each provider, in order."""


def find_key(provider: str, environ: Mapping[str, str] | None = None) -> str | None:
    """The key of a provider from the environment, else from the keyring, else None.

    Surrounding white space is removed, since a key pasted with its newline would make an invalid header.
    """
    env = os.environ if environ is None else environ
    names = KEY_VARIABLES.get(provider, ())
    for name in names:
        value = env.get(name, "").strip()
        if value:
            return value
    for name in names:
        value = _from_keyring(name)
        if value:
            return value
    return None


def require_key(provider: str, environ: Mapping[str, str] | None = None) -> str:
    """The key of a provider.

    Raises:
        ModelUnavailable: the key is missing; the message names the variable to set.
    """
    key = find_key(provider, environ)
    if key is None:
        names = " or ".join(KEY_VARIABLES[provider])
        raise ModelUnavailable(
            f"there is no key for {provider}: {names} is not set",
            hint=f"set {KEY_VARIABLES[provider][0]}, or store it once: "
            f"keyring set {KEYRING_SERVICE} {KEY_VARIABLES[provider][0]}",
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
