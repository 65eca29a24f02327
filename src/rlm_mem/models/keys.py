"""Keys of model providers, and where they come from; ``text.secrets.redact`` removes them from what is written.

A key is read from the environment, or from the system's keyring when the package ``keyring`` is installed
(service ``rlm-mem``, user name = the variable's name). It is never a setting, so it is never written to a brain.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from rlm_mem.errors import ModelUnavailable
from rlm_mem.models.apis import APIS

KEYRING_SERVICE = "rlm-mem"

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {name: api.keys for name, api in APIS.items()}
"""Environment variables (and user names in the keyring) that are tried for each provider, in this order."""


def find_key(provider: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the key for ``provider`` from the environment, then from the keyring, or None.

    Surrounding white space is cut off: a key pasted with its newline would make an invalid header.
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
    """Return the key for ``provider``.

    Raises:
        ModelUnavailable: there is none; the message names the variable to set.
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
        # No usable keyring on this machine (a server, a container): the same as no key in it.
        return ""
