"""Canonical JSON, and the hashes over it (docs/spec/receipt.md)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from decimal import Decimal
from typing import Any

from rlm_mem.sandbox.values import well_formed

VOLATILE = frozenset({"access_count", "accessed_at", "storage_size_mb", "index_size_mb"})
"""Keys of results that change without a change of the memory: access counts and sizes on disk."""


def plain_json(value: Any) -> Any:
    """Convert a value to plain JSON data.

    Tuples become lists, decimals and unknown types become text, lone surrogates U+FFFD, and non-finite numbers their
    names.
    """
    if isinstance(value, str):
        return well_formed(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {well_formed(str(name)): plain_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain_json(item) for item in value), key=canonical)
    if is_dataclass(value) and not isinstance(value, type):
        return plain_json(asdict(value))
    return well_formed(str(value) if isinstance(value, Decimal) else repr(value))


def canonical(value: Any) -> bytes:
    """Encode plain JSON data in its canonical form: one line with sorted keys, no spaces, UTF-8."""
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    ).encode()


def digest(value: Any, domain: str) -> str:
    """SHA-256 in hexadecimal of a line with the domain, followed by the canonical form."""
    return hashlib.sha256(f"rlm-mem-receipt/1 {domain}\n".encode() + canonical(value)).hexdigest()


def without_volatile(value: Any) -> Any:
    """Plain data without the keys in ``VOLATILE``."""
    if isinstance(value, dict):
        return {name: without_volatile(item) for name, item in value.items() if name not in VOLATILE}
    return [without_volatile(item) for item in value] if isinstance(value, list) else value
