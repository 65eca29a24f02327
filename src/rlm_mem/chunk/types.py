"""Allowed values of chunk fields: types, origin, trust and time to live.

Types of chunks and links are built in or registered by a store. Origin and trust are defined in
docs/spec/chunk-format.md, Origin and trust.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import Any, Literal, TypeGuard

import msgspec

from rlm_mem.errors import InvalidChunk, InvalidLink, InvalidQuery
from rlm_mem.record import FrozenRecord

_TYPE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}\Z")


def check_type_name(name: object) -> str:
    """Return ``name`` if it is a valid name of a chunk or link type; raises InvalidChunk."""
    if isinstance(name, str) and _TYPE_NAME.match(name):
        return name
    raise InvalidChunk(f"type name {shown(name)} must be lower-case letters, digits, _ and -")


MAX_LINKS = 10_000
"""Maximum outgoing links of a chunk, since reading a chunk reads its links."""


def check_number_of_links(number: int) -> None:
    """Raise InvalidLink if this is more than a chunk's maximum number of links."""
    if number > MAX_LINKS:
        raise InvalidLink(f"{number:,} links are too many for one chunk: at most {MAX_LINKS:,}")


def shown(value: object) -> str:
    """A short representation of a value for error messages."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of {value.bit_length():,} bits"  # Python refuses to format very long integers
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def amount(count: int, noun: str) -> str:
    """A count with its noun: ``1 chunk``, ``2 days``, ``1,204 entries``."""
    if count == 1:
        return f"1 {noun}"
    changes = noun.endswith("y") and noun[-2:-1] not in "aeou"
    return f"{count:,} {noun[:-1]}ies" if changes else f"{count:,} {noun}s"


MAX_COUNT = 1_000_000_000
"""Maximum ``revision``, ``tokens`` and ``access_count``; every index can store it and sums of such values."""
MAX_FILE_BYTES = 1 << 28
"""Maximum size of a chunk file: six times ``store.max_content_bytes``, since JSON may escape each byte, plus
metadata."""


def check_count(value: object, what: str) -> int:
    """Return ``value`` if it is an integer from 0 to ``MAX_COUNT``; raises InvalidChunk."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT:
        return value
    raise InvalidChunk(f"{what} must be a whole number from 0 to {MAX_COUNT:,}, not {shown(value)}")


def check_reasoning(value: object) -> str | None:
    """Return the reasoning of a link if it is storable text; raises InvalidLink."""
    if value is not None and not isinstance(value, str):
        raise InvalidLink(f"link reasoning must be text, not {type(value).__name__}")
    if value is None or value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidLink(f"link reasoning {shown(value)} contains a lone surrogate") from None
    return value


MAX_DATA_BYTES = 8_388_608
"""Maximum JSON of the free fields of a chunk: `extra` of its metadata, `provenance`, further keys of a link."""
_MAX_DEPTH = 32


def check_plain(value: Any, where: str, *, former: Any = None) -> None:
    """Raise InvalidChunk unless a value is finite, shallow JSON of at most ``MAX_DATA_BYTES``, read back as written.

    Args:
        former: the value that it replaces; one that was too large already may stay or become smaller.
    """
    _check_plain(value, where, 0)
    size = _json_bytes(value)
    if size > MAX_DATA_BYTES and size > _json_bytes(former):
        raise InvalidChunk(
            f"{where} has {size:,} bytes of JSON: at most {MAX_DATA_BYTES:,} are stored",
            hint="put long text into the content, or store where the data can be found",
        )


def _json_bytes(value: Any) -> int:
    return len(msgspec.json.encode(value)) if value else 0


def _check_plain(value: Any, where: str, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise InvalidChunk(f"{where} is nested more than {_MAX_DEPTH} levels deep")
    exact = type(value) in (str, int, float, bool) or isinstance(value, Enum)
    if isinstance(value, str | int | float) and not exact:  # such as np.str_, which the encoder refuses
        raise InvalidChunk(f"{where} has a value of type {type(value).__name__}, which JSON cannot represent")
    if value is None or isinstance(value, bool | int):
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise InvalidChunk(f"{where} has a whole number too large for JSON readers: {shown(value)}")
        return
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise InvalidChunk(f"{where} has the value {value}, which JSON cannot represent")
        return
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidChunk(f"{where} contains a lone surrogate") from None
        return
    if isinstance(value, dict):  # no other mapping, which the encoder refuses
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidChunk(f"{where} has a key that is not text: {key!r:.60}")
            _check_plain(key, where, depth + 1)
            _check_plain(item, f"{where}.{key}", depth + 1)
        return
    if isinstance(value, list | tuple):
        for item in value:
            _check_plain(item, where, depth + 1)
        return
    raise InvalidChunk(f"{where} has a value of type {type(value).__name__}, which JSON cannot represent")


def as_list(value: Iterable[str] | str) -> list[str]:
    """Convert texts to a list; a single text becomes a list of one, never of its characters."""
    return [value] if isinstance(value, str) else list(value)


CHUNK_TYPES = ["preference", "fact", "pattern", "decision", "note"]
"""The built-in chunk types; more are registered per store."""

AUTO_LINK_TYPES = ["context_of", "follows", "related_to"]
"""Link types of the AutoLinker besides ``SIMILAR_TO`` (docs/spec/links.md, Types)."""

MANUAL_LINK_TYPES = ["supports", "contradicts"]
"""The two types of ``STATED_LINK_TYPES`` that the original documents name."""

SIMILAR_TO = "similar_to"
"""The texts are equal after normalising case, space and punctuation."""


SUPERSEDES = "supersedes"
"""The source replaces the target."""

REFERS_TO = "refers_to"
"""The text of the source has a link to the document of the target."""


class LinkType(FrozenRecord, frozen=True):
    """A built-in link type.

    Attributes:
        name: as written in a link.
        outgoing: a phrase about the source of the link in which "it" is the target.
        incoming: a phrase about the target of the link in which "it" is the source.
        stance: whether the source is evidence ``for`` the target or ``against`` it; None: neither.
        weight: share of a chunk's weight that REASON passes along the link, 0-1; None: as for registered types.
            Along links of weight 1, ``passages`` of programs adds the other chunk.
        ordered: whether the links express an order (of time, derivation, replacement), which a cycle contradicts.
        by_rule: whether the memory makes such links without being told to; agents are offered the others.
    """

    name: str
    outgoing: str
    incoming: str
    stance: Literal["for", "against"] | None = None
    weight: float | None = None
    ordered: bool = False
    by_rule: bool = False


LINK_TYPES = (
    LinkType("context_of", *("is in the same conversation",) * 2, weight=0.2, by_rule=True),
    LinkType("follows", "was said after it", "was said before it", weight=0.3, ordered=True, by_rule=True),
    LinkType("related_to", *("shares tags with it",) * 2, weight=0.3, by_rule=True),
    LinkType(SIMILAR_TO, *("says the same in nearly the same words",) * 2, weight=0.5, by_rule=True),
    LinkType("supports", "supports it", "is supported by it", "for", 1.0),
    LinkType("contradicts", "contradicts it", "is contradicted by it", "against", 1.0),
    LinkType("elaborates", "elaborates on it", "is elaborated on by it", "for", 1.0),
    LinkType("example_of", "is an example of it", "has it as an example", "for", 0.9),
    LinkType(SUPERSEDES, "replaces it", "was replaced by it", weight=0.5, ordered=True),
    LinkType("derived_from", "was made from it", "is what it was made from", ordered=True, by_rule=True),
    LinkType(REFERS_TO, "links to it in its text", "is linked to in its text", weight=0.5, by_rule=True),
)
"""Built-in link types (docs/spec/links.md, Types); add a type by adding a row."""

ALL_LINK_TYPES = [kind.name for kind in LINK_TYPES]
"""Names of the built-in link types."""

STATED_LINK_TYPES = [kind.name for kind in LINK_TYPES if not kind.by_rule]
"""Link types that a person or a model states."""

ORDERED_LINK_TYPES = tuple(kind.name for kind in LINK_TYPES if kind.ordered)
"""Link types that express an order, which a cycle contradicts. Others (shared tags, similarity) are symmetric."""

AGAINST_LINK_TYPES = [kind.name for kind in LINK_TYPES if kind.stance == "against"]
"""Types whose source is evidence against their target."""

Direction = Literal["out", "in", "both"]
"""Which links of a chunk: from it, to it, or both."""


def strength_word(strength: float) -> str:
    """A strength from 0 to 1 as `weak`, `fair` or `strong`."""
    if strength < 1 / 3:
        return "weak"
    return "fair" if strength < 2 / 3 else "strong"


class ChunkTypeSpec(FrozenRecord, frozen=True):
    """A custom chunk type, whose fields are stored in ``metadata.extra``."""

    name: str
    description: str = ""
    required_fields: tuple[str, ...] = ()
    optional_fields: tuple[str, ...] = ()


class TypeRegistry:
    """The chunk and link types that a store accepts: built-in and registered ones.

    Attributes:
        plain: chunk types without required fields.
    """

    def __init__(
        self,
        chunk_types: Mapping[str, Mapping[str, Any]] | None = None,
        link_types: Mapping[str, str] | None = None,
    ) -> None:
        self.chunk_types: dict[str, ChunkTypeSpec] = {name: ChunkTypeSpec(name) for name in CHUNK_TYPES}
        self.plain = set(CHUNK_TYPES)
        self.link_types: dict[str, str] = dict.fromkeys(ALL_LINK_TYPES, "")
        for name, spec in (chunk_types or {}).items():
            self.register_chunk_type(name, **spec)
        for name, description in (link_types or {}).items():
            self.register_link_type(name, description)

    def register_chunk_type(
        self,
        name: str,
        description: str = "",
        required_fields: Sequence[str] | str = (),
        optional_fields: Sequence[str] | str = (),
    ) -> None:
        """Accept chunks of a new type, whose metadata must have the ``required_fields``."""
        check_type_name(name)
        self.chunk_types[name] = ChunkTypeSpec(
            name, description, tuple(as_list(required_fields)), tuple(as_list(optional_fields))
        )
        (self.plain.discard if self.chunk_types[name].required_fields else self.plain.add)(name)

    def register_link_type(self, name: str, description: str = "") -> None:
        """Accept links of a new type."""
        check_type_name(name)
        self.link_types[name] = description

    def check_chunk(self, chunk_type: str, extra: Mapping[str, Any]) -> str:
        """Return ``chunk_type`` if a chunk of this type with these extra fields is valid; raises InvalidChunk."""
        spec = self.chunk_types.get(chunk_type) if isinstance(chunk_type, str) else None
        if spec is None:
            known = ", ".join(self.chunk_types)
            raise InvalidChunk(
                f"unknown chunk type {shown(chunk_type)}: use one of {known}",
                hint="register custom types with store.types.register_chunk_type or in config.toml",
            )
        if not spec.required_fields:
            return chunk_type
        missing = [name for name in spec.required_fields if extra.get(name) in (None, "")]
        if missing:
            raise InvalidChunk(f"a chunk of type {chunk_type} needs the metadata fields {', '.join(missing)}")
        return chunk_type

    def check_link(self, link_type: str) -> str:
        """Return ``link_type`` if it is built in or registered; raises InvalidLink."""
        if not isinstance(link_type, str) or link_type not in self.link_types:
            known = ", ".join(self.link_types)
            raise InvalidLink(
                f"unknown link type {shown(link_type)}: use one of {known}",
                hint="register custom types with store.types.register_link_type or in config.toml",
            )
        return link_type


# --- origin, trust, and time to live -----------------------------------------------------------------------------

Origin = Literal["person", "agent", "tool", "import", "web"]
TrustLevel = Literal["quarantined", "untrusted", "ordinary", "trusted"]

ORIGINS: tuple[Origin, ...] = ("person", "agent", "tool", "import", "web")
"""Origins of chunks: written by a person or an agent, returned by a tool, imported, or read from a web page."""

TRUST_LEVELS: tuple[TrustLevel, ...] = ("quarantined", "untrusted", "ordinary", "trusted")
"""Trust levels, lowest first."""
_SHOWN_LEVELS = TRUST_LEVELS[1:]

DEFAULT_TRUST: dict[str, TrustLevel] = {
    "person": "trusted",
    "agent": "ordinary",
    "tool": "untrusted",
    "import": "untrusted",
    "web": "untrusted",
}
"""Trust of stored chunks without a trust level, by origin; for new chunks, the settings ``[trust]`` apply."""


class _Origins(dict[str, Origin]):
    def __missing__(self, source: str) -> Origin:
        return "agent"


ORIGIN_OF_SOURCE: Mapping[str, Origin] = _Origins(
    {
        "interaction": "person",
        "user": "person",
        "dashboard": "person",
        "import": "import",
        "tool": "tool",
        "web": "web",
    }
)
"""Origin of stored chunks without an origin, by ``source``; ``agent`` for sources not in the table."""

Ttl = int | float | str | timedelta
"""Time to live: seconds, a ``timedelta``, or a number with s, m, h, d or w, such as ``30d``."""

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def rank(level: str) -> int:
    """The rank of a trust level, 0 for the lowest."""
    return TRUST_LEVELS.index(level)


def lower(one: str, other: str) -> str:
    """The lower of two trust levels."""
    return min(one, other, key=rank)


def at_least(level: str) -> tuple[str, ...]:
    """A trust level and all higher ones."""
    return TRUST_LEVELS[rank(level) :]


def is_one_of(value: object, known: Container[str]) -> bool:
    """Whether a value is text and one of the known words; arrays, which have no truth value, are not compared."""
    return isinstance(value, str) and value in known


def is_iterable(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether a value can be iterated; arrays of numpy without dimensions have ``__iter__``, but refuse."""
    try:
        iter(value)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


def check_origin(value: object) -> Origin:
    """Return ``value`` if it is an origin; raises InvalidChunk."""
    if isinstance(value, str) and value in ORIGINS:
        return value
    raise InvalidChunk(f"origin must be one of {', '.join(ORIGINS)}, not {shown(value)}")


def check_trust(value: object) -> TrustLevel:
    """Return ``value`` if it is a trust level; raises InvalidChunk."""
    if isinstance(value, str) and value in TRUST_LEVELS:
        return value
    raise InvalidChunk(f"trust must be one of {', '.join(TRUST_LEVELS)}, not {shown(value)}")


def is_untrusted(level: str) -> bool:
    """Whether text of this trust level is marked as untrusted, never an instruction and never promoted to a tier."""
    return rank(level) <= rank("untrusted")


def origin_mark(origin: str, level: str) -> str:
    """The prefix of untrusted text in what a model is given; empty for other text."""
    return f"untrusted, from {origin}: " if is_untrusted(level) else ""


def hidden(trust: str, expires_at: str | None, now: str) -> bool:
    """Whether a chunk is hidden from all reads, because it is in quarantine or has expired (times as stored)."""
    # As ``expired``, without a call for each of thousands of rows.
    return trust == "quarantined" or (expires_at is not None and expires_at <= now)


def expired(expires_at: str | None, now: str) -> bool:
    """Whether a chunk has expired (times as stored)."""
    return expires_at is not None and expires_at <= now


def ended_at(valid_to: str | None, now: str) -> str | None:
    """The end of a chunk's validity, or None while it is valid (times as stored)."""
    return valid_to if valid_to is not None and valid_to <= now else None


def out_of_date(superseded_by: str | None, ended: str | None) -> str:
    """What marks a memory that is no longer valid, in words; empty for a valid one.

    Args:
        ended: its :func:`ended_at`.
    """
    if superseded_by is not None:
        return f"out of date: {superseded_by} replaced it"
    return "" if ended is None else f"out of date since {ended[:10]}"


def outside(origin: str, level: str) -> dict[str, str]:
    """The mark of untrusted text in results for programs and agents, ``{"untrusted": origin}``, or an empty dict."""
    return {"untrusted": origin} if is_untrusted(level) else {}


def untrusted_mark(row: Mapping[str, Any]) -> str:
    """The suffix that listings show for a row marked by :func:`outside`; empty for other rows."""
    return f" (untrusted: {row['untrusted']})" if row.get("untrusted") else ""


def duration(ttl: object) -> timedelta:
    """Convert a time to live to a ``timedelta``; raises InvalidChunk."""
    if isinstance(ttl, timedelta):
        return ttl
    if isinstance(ttl, str):
        number, unit = ttl.strip()[:-1], _UNITS.get(ttl.strip()[-1:])
        if unit and len(number) <= 9 and number.isascii() and number.isdigit():
            return timedelta(seconds=int(number) * unit)
        raise InvalidChunk(f"ttl must be a number with s, m, h, d or w such as 30d, not {shown(ttl)}")
    if isinstance(ttl, int | float) and not isinstance(ttl, bool) and ttl == ttl:
        return timedelta(seconds=ttl)
    raise InvalidChunk(f"ttl must be seconds, or a number with s, m, h, d or w such as 30d, not {shown(ttl)}")


def words_of(value: object, known: Sequence[str], what: str) -> tuple[str, ...]:
    """Validate one or several words against the known ones; raises InvalidChunk."""
    words = (value,) if isinstance(value, str) else value
    if not isinstance(words, list | tuple | set | frozenset) or not all(
        is_one_of(one, known) for one in words
    ):
        raise InvalidChunk(f"{what} must be one of {', '.join(known)}, not {shown(value)}")
    return tuple(sorted(set(words)))


def wanted_origins(value: Any) -> tuple[str, ...]:
    """Parse a filter by origin: one or several, empty for all; raises InvalidQuery."""
    if value is None:
        return ()
    try:
        return words_of(value, ORIGINS, "origin")
    except InvalidChunk as error:
        raise InvalidQuery(error.message) from None


def wanted_trust(value: Any) -> tuple[str, ...]:
    """Parse a filter by minimum trust: the named level and all higher ones; raises InvalidQuery."""
    if not is_one_of(value, _SHOWN_LEVELS):
        quarantined = is_one_of(value, ("quarantined",))
        hidden_one = ": memories in quarantine are listed in the review queue only" if quarantined else ""
        raise InvalidQuery(f"trust must be one of {', '.join(_SHOWN_LEVELS)}, not {shown(value)}{hidden_one}")
    return at_least(value)
