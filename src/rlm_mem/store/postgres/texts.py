"""Texts that PostgreSQL cannot hold as they are: it knows neither the NUL character nor half a surrogate pair."""

from __future__ import annotations

import re

from rlm_mem.store.core.lookup import has_surrogate

__all__ = ["is_storable", "shown", "stored"]

_MARK, _NUL = "\x01", "\x02"
_MARKED = re.compile(f"{_MARK}(.)", re.DOTALL)


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can hold a text; what it cannot hold is nowhere in it."""
    return "\0" not in text and not has_surrogate(text)


def stored(text: str) -> str:
    """An entry of the dictionary as the table holds it: names of authors may hold a NUL."""
    if "\0" not in text and _MARK not in text:
        return text
    return text.replace(_MARK, _MARK + _MARK).replace("\0", _MARK + _NUL)


def shown(text: str) -> str:
    """An entry of the dictionary as it was before `stored`."""
    if _MARK not in text:
        return text
    return _MARKED.sub(lambda found: "\0" if found[1] == _NUL else found[1], text)
