"""Ed25519 signatures of receipts, with keys in OpenSSH or PEM format (extra ``sign``)."""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from rlm_mem.arguments import check_kind, check_path
from rlm_mem.errors import InputError, InvalidConfig
from rlm_mem.receipts.format import Altered, ReceiptSignature

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAX_KEY_BYTES = 100_000
_TYPE = b"ssh-ed25519"


def sign(head: str, key: str | Path, *, password: str | None = None) -> ReceiptSignature:
    """Sign the head of a receipt.

    Args:
        key: the file of an Ed25519 private key (``ssh-keygen -t ed25519``, or PEM).
        password: password of the key, if any.

    Raises:
        InputError: the key cannot be read or used. InvalidConfig: the extra ``sign`` is not installed.
    """
    private = _private(check_path(key, "key"), password)
    public = private.public_key().public_bytes_raw()
    made = private.sign(message(head))
    return ReceiptSignature("ed25519", base64.b64encode(public).decode(), base64.b64encode(made).decode())


def check_key(key: str | Path, password: str | None = None) -> None:
    """Raise the errors of :func:`sign` if the key cannot be used to sign."""
    _private(check_path(key, "key"), password)


def signed_by(head: str, signature: ReceiptSignature) -> bytes:
    """The public key (32 bytes) of a signature, after verifying it.

    Raises:
        Altered: the signature does not match this head. InvalidConfig: the extra ``sign`` is not installed.
    """
    crypto = _crypto()
    if signature.algorithm != "ed25519":
        raise Altered(f"the signature is of an unknown kind, {signature.algorithm[:40]!r}")
    try:
        key = base64.b64decode(signature.public_key, validate=True)
        made = base64.b64decode(signature.signature, validate=True)
        crypto.ed25519.Ed25519PublicKey.from_public_bytes(key).verify(made, message(head))
    except (ValueError, crypto.InvalidSignature):
        raise Altered("the signature does not match the receipt: one of the two was altered") from None
    return key


def public_key(given: str | Path) -> bytes:
    """Parse a public key to its 32 bytes.

    Args:
        given: a line ``ssh-ed25519 AAAA… comment``, or a file with such a line or with a public key as PEM.

    Raises:
        InputError: it is not a public key. InvalidConfig: the extra ``sign`` is not installed.
    """
    text = str(given)
    if not text.startswith("ssh-"):
        try:
            with check_path(given, "key").open("rb") as file:
                text = file.read(MAX_KEY_BYTES).decode("ascii", "replace")
        except OSError as error:
            raise InputError(
                f"the public key {given} cannot be read: {error.strerror or error}",
                hint="name the file that ends in .pub, or give its line",
            ) from None
    if "PRIVATE KEY" in text:
        raise InputError(f"{given} is a private key", hint="verify with the public one, which ends in .pub")
    crypto, text = _crypto(), text.strip()
    is_pem = text.startswith("-----BEGIN")
    load = crypto.serialization.load_pem_public_key if is_pem else crypto.serialization.load_ssh_public_key
    found = None
    with suppress(ValueError, crypto.UnsupportedAlgorithm):
        found = load(text.encode())
    if not isinstance(found, crypto.ed25519.Ed25519PublicKey):
        raise InputError(
            f"{str(given)[:80]!r} contains no Ed25519 public key", hint="ssh-keygen -t ed25519 creates one"
        )
    return bytes(found.public_bytes_raw())


def fingerprint(key: bytes) -> str:
    """The fingerprint of a key in the format of ``ssh-keygen -l``."""
    made = hashlib.sha256(_field(_TYPE) + _field(key)).digest()
    return "SHA256:" + base64.b64encode(made).decode().rstrip("=")


def message(head: str) -> bytes:
    """The bytes that are signed."""
    return f"rlm-mem-receipt/1 signature\n{head}".encode()


def _field(data: bytes) -> bytes:
    return len(data).to_bytes(4) + data


def _private(path: Path, password: str | None) -> Ed25519PrivateKey:
    crypto = _crypto()
    if password is not None:
        check_kind(password, str, "password")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_KEY_BYTES)
    except OSError as error:
        raise InputError(f"the key {path} cannot be read: {error.strerror or error}") from None
    read = (
        crypto.serialization.load_ssh_private_key
        if b"OPENSSH PRIVATE KEY" in data
        else crypto.serialization.load_pem_private_key
    )
    try:
        found = read(data, None if password is None else password.encode())
    except (ValueError, TypeError, crypto.UnsupportedAlgorithm):
        raise InputError(
            f"{path} is not a private key, or its password is wrong or missing",
            hint="ssh-keygen -t ed25519 creates one; the password of a key is read from RLM_MEM_KEY_PASSWORD",
        ) from None
    if not isinstance(found, crypto.ed25519.Ed25519PrivateKey):
        raise InputError(f"the key {path} is not an Ed25519 key", hint="ssh-keygen -t ed25519 creates one")
    return found  # type: ignore[no-any-return]


def _crypto() -> Any:
    """What is used of the package ``cryptography``, which is optional."""
    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise InvalidConfig(
            "signatures need the package cryptography", hint="pip install 'rlm-mem[sign]'"
        ) from None
    return SimpleNamespace(
        InvalidSignature=InvalidSignature,
        UnsupportedAlgorithm=UnsupportedAlgorithm,
        serialization=serialization,
        ed25519=ed25519,
    )
