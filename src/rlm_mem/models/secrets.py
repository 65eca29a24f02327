"""Keys of model providers: where they come from, and how they are removed from everything that is written.

A key is read from the environment, or from the system's keyring when the package ``keyring`` is installed
(service ``rlm-mem``, user name = the variable's name). It is never a setting, so it is never written to a brain.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from rlm_mem.errors import ModelUnavailable
from rlm_mem.models.apis import APIS
from rlm_mem.text.secrets import REDACTED, find_secrets, hide

__all__ = ["KEYRING_SERVICE", "KEY_VARIABLES", "find_key", "redact", "require_key"]

KEYRING_SERVICE = "rlm-mem"

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {name: api.keys for name, api in APIS.items()}
"""Environment variables (and user names in the keyring) that are tried for each provider, in this order."""

# A shorter value is a word, not a secret; hiding it would blank out ordinary text.
_MIN_SECRET_LENGTH = 8

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY|AUTH_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)(?:$|_)",
    re.IGNORECASE,
)


def redact(text: str, *, known: Iterable[str] = (), environ: Mapping[str, str] | None = None) -> str:
    """Return ``text`` with every key in it replaced by ``[redacted]``.

    Hidden are the values of environment variables that are named after keys, tokens or passwords, the values
    in ``known``, and whatever has the format of a known provider's key. Safe on any text and linear in
    its length; ordinary prose comes back unchanged.

    Args:
        text: anything that is about to be logged, shown or stored.
        known: further secrets, for example a key that came from the keyring.
        environ: environment to take values from; None means ``os.environ``.
    """
    if not text:
        return text
    env = os.environ if environ is None else environ
    values = {value for name, value in env.items() if _SECRET_NAME.search(name) and not _is_word(value)}
    values.update(env.get(name, "").strip() for names in KEY_VARIABLES.values() for name in names)
    values.update(known)
    # The longest first: a secret may contain another one.
    for value in sorted(
        (value for value in values if len(value) >= _MIN_SECRET_LENGTH), key=len, reverse=True
    ):
        if value in text:
            text = text.replace(value, REDACTED)
    return hide(text, find_secrets(text, pii=False))


def _is_word(value: str) -> bool:
    # SOME_TOKEN=developer must not blank out the word in every memory.
    return value.isalpha() and len(value) < 16


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
