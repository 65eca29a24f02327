"""The arguments of FINAL: the answer, the chunks it rests on and how sure the program is (seed 004, FINAL)."""

from __future__ import annotations

from typing import Any

from rlm_mem.sandbox.engine import HostCallFailed
from rlm_mem.sandbox.steps import Final

__all__ = ["Finished", "read_final"]


class Finished(Exception):
    """FINAL was called; raised in the driver, where no program can catch it."""


_MISSING = object()


def read_final(answer: Any = _MISSING, chunk_ids: Any = None, confidence: Any = None) -> Final:
    """Check what a program passed to FINAL and return it.

    Raises:
        HostCallFailed: an argument is missing or makes no sense; the program may call FINAL again.
    """
    if answer is _MISSING:
        raise HostCallFailed(
            "TypeError", "FINAL takes the answer: FINAL(answer, chunk_ids=[...]); None if not found"
        )
    if isinstance(chunk_ids, str):
        chunk_ids = [chunk_ids]
    if not isinstance(chunk_ids, list | tuple | set | None):
        raise HostCallFailed("TypeError", "FINAL: chunk_ids is a list of chunk ids")
    named: dict[str, None] = {}
    for item in chunk_ids or ():
        identifier = item.get("chunk_id") or item.get("id") if isinstance(item, dict) else item
        if not isinstance(identifier, str):
            raise HostCallFailed("TypeError", "FINAL: chunk_ids is a list of chunk ids as text")
        named[identifier] = None
    if confidence is not None:
        if isinstance(confidence, bool) or not isinstance(confidence, int | float):
            raise HostCallFailed("TypeError", "FINAL: confidence is a number from 0.0 to 1.0")
        if not 0.0 <= confidence <= 1.0:
            raise HostCallFailed("ValueError", f"FINAL: confidence is from 0.0 to 1.0, not {confidence!r}")
    return Final(answer, list(named), None if confidence is None else float(confidence))
