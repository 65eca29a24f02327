"""How a chunk came, how far it is trusted, and until when it is kept (docs/spec/chunk-format.md, Origin and trust)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal

from rlm_mem.chunk.types import shown
from rlm_mem.errors import InvalidChunk, InvalidQuery

__all__ = [
    "DEFAULT_TRUST",
    "ORIGINS",
    "TRUST_LEVELS",
    "Origin",
    "Ttl",
    "TrustLevel",
    "at_least",
    "check_origin",
    "check_trust",
    "default_origin",
    "duration",
    "hidden",
    "is_untrusted",
    "lower",
    "outside",
    "rank",
    "wanted_origins",
    "wanted_trust",
    "words_of",
]

Origin = Literal["person", "agent", "tool", "import", "web"]
TrustLevel = Literal["quarantined", "untrusted", "ordinary", "trusted"]

ORIGINS: tuple[Origin, ...] = ("person", "agent", "tool", "import", "web")
"""How a chunk came: a person or an agent wrote it; a tool or a page of the web gave it; a file was imported."""

TRUST_LEVELS: tuple[TrustLevel, ...] = ("quarantined", "untrusted", "ordinary", "trusted")
"""How far a chunk is trusted, the lowest first."""

DEFAULT_TRUST: dict[str, TrustLevel] = {
    "person": "trusted",
    "agent": "ordinary",
    "tool": "untrusted",
    "import": "untrusted",
    "web": "untrusted",
}
"""The trust of a chunk that names none, by its origin; the section ``[trust]`` of the settings decides for new ones."""

_ORIGIN_OF_SOURCE: dict[str, Origin] = {
    "interaction": "person",
    "user": "person",
    "dashboard": "person",
    "import": "import",
    "tool": "tool",
    "web": "web",
}

Ttl = int | float | str | timedelta
"""How long a chunk is kept: seconds, a ``timedelta``, or a number with s, m, h, d or w, such as ``30d``."""

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def default_origin(source: str) -> Origin:
    """The origin of a chunk that names none, by its ``source``; an agent for every word that is not in the table."""
    return _ORIGIN_OF_SOURCE.get(source, "agent")


def rank(level: str) -> int:
    """The place of a level of trust, 0 for the lowest."""
    return TRUST_LEVELS.index(level)


def lower(one: str, other: str) -> str:
    """The lower of two levels of trust."""
    return min(one, other, key=rank)


def at_least(level: str) -> tuple[str, ...]:
    """This level of trust and those above it."""
    return TRUST_LEVELS[rank(level) :]


def check_origin(value: object) -> Origin:
    """Return ``value`` if it is an origin; raises InvalidChunk."""
    for one in ORIGINS:
        if value == one:
            return one
    raise InvalidChunk(f"origin must be one of {', '.join(ORIGINS)}, not {shown(value)}")


def check_trust(value: object) -> TrustLevel:
    """Return ``value`` if it is a level of trust; raises InvalidChunk."""
    for one in TRUST_LEVELS:
        if value == one:
            return one
    raise InvalidChunk(f"trust must be one of {', '.join(TRUST_LEVELS)}, not {shown(value)}")


def is_untrusted(level: str) -> bool:
    """Whether text of this level is marked to models, gives no instruction and rises no tier."""
    return rank(level) <= rank("untrusted")


def hidden(trust: str, expires_at: str | None, now: str) -> bool:
    """Whether a chunk is left out of everything that reads: it is in quarantine, or has expired (times as stored)."""
    return trust == "quarantined" or (expires_at is not None and expires_at <= now)


def outside(origin: str, level: str) -> dict[str, str]:
    """What marks text that is not trusted in what programs and agents get: ``{"untrusted": origin}``, else nothing."""
    return {"untrusted": origin} if is_untrusted(level) else {}


def duration(ttl: object) -> timedelta:
    """How long a chunk is kept; raises InvalidChunk."""
    if isinstance(ttl, timedelta):
        return ttl
    if isinstance(ttl, str):
        number, unit = ttl.strip()[:-1], _UNITS.get(ttl.strip()[-1:])
        if unit and len(number) <= 9 and number.isascii() and number.isdigit():
            return timedelta(seconds=int(number) * unit)
    elif isinstance(ttl, int | float) and not isinstance(ttl, bool) and ttl == ttl:
        return timedelta(seconds=ttl)
    raise InvalidChunk(f"ttl must be seconds, or a number with s, m, h, d or w such as 30d, not {shown(ttl)}")


def words_of(value: object, known: Sequence[str], what: str) -> tuple[str, ...]:
    """One of the known words or several; raises InvalidChunk."""
    given = (value,) if isinstance(value, str) else value
    if not isinstance(given, list | tuple | set | frozenset) or any(one not in known for one in given):
        raise InvalidChunk(f"{what} must be one of {', '.join(known)}, not {shown(value)}")
    return tuple(sorted(set(given)))


def wanted_origins(value: Any) -> tuple[str, ...]:
    """One origin or several, none for all; raises InvalidQuery."""
    if value is None:
        return ()
    try:
        return words_of(value, ORIGINS, "origin")
    except InvalidChunk as error:
        raise InvalidQuery(error.message) from None


def wanted_trust(value: Any) -> tuple[str, ...]:
    """The levels of trust from the named one up; raises InvalidQuery."""
    try:
        return at_least(check_trust(value))
    except InvalidChunk as error:
        raise InvalidQuery(error.message) from None
