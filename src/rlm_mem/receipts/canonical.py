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

__all__ = ["canonical", "digest", "plain_json", "steady"]

VOLATILE = frozenset({"access_count", "accessed_at", "storage_size_mb", "index_size_mb"})
"""Keys of results that change without a change of any memory: counted reads, and sizes on disk."""


def plain_json(value: Any) -> Any:
    """The value as JSON can hold it.

    Tuples become lists, amounts of money and everything unknown text, lone surrogates U+FFFD, and numbers that are not
    finite their names.
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
    """Plain JSON data as the one line that stands for it: keys in order, no spaces, UTF-8."""
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    ).encode()


def digest(value: Any, domain: str) -> str:
    """SHA-256, hexadecimal, of the canonical form after a line that says what it is."""
    return hashlib.sha256(f"rlm-mem-receipt/1 {domain}\n".encode() + canonical(value)).hexdigest()


def steady(value: Any) -> Any:
    """Plain data without what changes while no memory does."""
    if isinstance(value, dict):
        return {name: steady(item) for name, item in value.items() if name not in VOLATILE}
    return [steady(item) for item in value] if isinstance(value, list) else value
