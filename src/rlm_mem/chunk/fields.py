"""Single fields of a chunk, each checked in one place: ids, namespaces, text, tags, times, hashes, types."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal

from rlm_mem.errors import InvalidChunk, InvalidChunkId, InvalidLink, NamespaceError

MAX_TAG_LENGTH = 200
MAX_TAGS = 1000

_CHUNK_ID = re.compile(r"chunk-[A-Za-z0-9][A-Za-z0-9_-]{0,119}\Z")
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*(?:/[A-Za-z0-9][A-Za-z0-9._@-]*)*\Z")
_TYPE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}\Z")
_NOT_WORD = re.compile(r"[\W_]+")


def check_type_name(name: object) -> str:
    """Return ``name`` if it can name a chunk or link type; raises InvalidChunk."""
    if isinstance(name, str) and _TYPE_NAME.match(name):
        return name
    raise InvalidChunk(f"type name {shown(name)} must be lower-case letters, digits, _ and -")


def shown(value: object) -> str:
    """A short repr for error messages."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def is_chunk_id(value: object) -> bool:
    """Whether ``value`` is a chunk id that this system accepts."""
    return isinstance(value, str) and _CHUNK_ID.match(value) is not None


def check_chunk_id(value: object) -> str:
    """Return ``value`` if it is an acceptable chunk id; raises InvalidChunkId (path traversal stops here)."""
    if isinstance(value, str) and _CHUNK_ID.match(value):
        return value
    raise InvalidChunkId(f"{shown(value)} is not a chunk id: it must look like chunk-2026-02-10-a1b2c3d4")


def new_change_id(now: datetime | None = None) -> str:
    """A fresh id of a transaction; ids sort by time."""
    return f"{now or datetime.now(UTC):%Y%m%d%H%M%S%f}-{time.time_ns():016x}"


def new_chunk_id(now: datetime) -> str:
    """A fresh id ``chunk-YYYY-MM-DD-{8 hex}``; the store checks that it is unused."""
    return f"chunk-{now:%Y-%m-%d}-{secrets.token_hex(4)}"


def check_namespace(value: object) -> str:
    """Return ``value`` if it is a namespace path such as ``agent/project/user``; raises NamespaceError."""
    if isinstance(value, str) and len(value) <= 200 and _NAMESPACE.match(value):
        return value
    raise NamespaceError(
        f"{shown(value)} is not a namespace: use letters, digits, . _ @ - and / between parts"
    )


def check_content(value: object, *, max_bytes: int | None = None) -> str:
    """Return ``value`` if it is storable text; raises InvalidChunk."""
    if not isinstance(value, str):
        raise InvalidChunk(f"content must be text, not {type(value).__name__}")
    if not value.strip():
        raise InvalidChunk("content is empty: give at least one visible character")
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise InvalidChunk(
            f"content holds a lone surrogate at character {error.start}: it is not valid Unicode text",
            hint="decode the source with errors='replace' before remembering it",
        ) from None
    if max_bytes is not None and size > max_bytes:
        raise InvalidChunk(
            f"content of {size:,} bytes is larger than the {max_bytes:,} bytes that one chunk may hold",
            hint="use remember, which splits text into chunks, or raise store.max_content_bytes",
        )
    return value


def check_text(value: object, what: str, *, max_length: int = 1000) -> str:
    """Return ``value`` if it is one line of storable text for the field ``what``; raises InvalidChunk."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidChunk(f"{what} must be non-empty text, not {shown(value)}")
    if len(value) > max_length:
        raise InvalidChunk(f"{what} is {len(value)} characters long: at most {max_length}")
    # isprintable() decides the usual case in one call; it is false for some spaces and marks too.
    if not value.isprintable() and any(unicodedata.category(char) in ("Cc", "Cs") for char in value):
        raise InvalidChunk(f"{what} {shown(value)} holds control characters or lone surrogates")
    return value


def as_list(value: Iterable[str] | str) -> list[str]:
    """A list of texts; a single text becomes a list of one, never of its characters."""
    return [value] if isinstance(value, str) else list(value)


def check_tags(value: object) -> list[str]:
    """Return the tags, stripped, in order, without repeats; a single text is one tag. Raises InvalidChunk."""
    if value is None:
        return []
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes | bytearray):
        raise InvalidChunk(f"tags must be a list of words, not {shown(value)}")
    tags: dict[str, None] = {}
    for tag in value:
        tags[check_text(tag, "tag", max_length=MAX_TAG_LENGTH).strip()] = None
    if len(tags) > MAX_TAGS:
        raise InvalidChunk(f"{len(tags)} tags are too many: at most {MAX_TAGS}")
    return list(tags)


def check_confidence(value: object, what: str = "confidence") -> float:
    """Return ``value`` as a float in 0-1; raises InvalidChunk."""
    number = _unit_interval(value)
    if number is None:
        raise InvalidChunk(f"{what} must be a number from 0 to 1, not {shown(value)}")
    return number


def check_strength(value: object) -> float:
    """Return a link strength as a float in 0-1; raises InvalidLink."""
    number = _unit_interval(value)
    if number is None:
        raise InvalidLink(f"link strength must be a number from 0 to 1, not {shown(value)}")
    return number


def check_reasoning(value: object) -> str | None:
    """Return the reasoning of a link if it can be stored; raises InvalidLink."""
    if value is not None and not isinstance(value, str):
        raise InvalidLink(f"link reasoning must be text, not {type(value).__name__}")
    if value is None or value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidLink(f"link reasoning {shown(value)} holds a lone surrogate") from None
    return value


def _unit_interval(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= 1 else None  # false for NaN, and before float() could overflow


def parse_time(value: object, what: str = "time") -> datetime:
    """Read an ISO 8601 time or date; one without an offset is UTC. Raises InvalidChunk."""
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
    elif isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InvalidChunk(
                f"{what} {shown(value)} is not an ISO 8601 time such as 2026-02-10T21:37:00Z"
            ) from None
    else:
        raise InvalidChunk(f"{what} must be an ISO 8601 time, not {shown(value)}")
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except (OverflowError, ValueError):
        raise InvalidChunk(f"{what} {shown(value)} is outside the years 1 to 9999") from None


def format_time(moment: datetime) -> str:
    """Write a time in its canonical form: UTC, microseconds, ``Z``."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def check_time(value: object, what: str = "time") -> str:
    """Return any accepted time in its canonical form; raises InvalidChunk."""
    if type(value) is str and len(value) == 27 and value[26] == "Z" and value[10] == "T" and value[19] == ".":
        # Canonical already: validate the date, skip the reformatting (this runs six times per read).
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise InvalidChunk(f"{what} {shown(value)} is not a time that exists") from None
        return value
    return format_time(parse_time(value, what))


_PIECE = re.compile(r"[\x00-\x7f]*[^\x00-\x7f]{0,256}")


def normalise_unicode(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """``text`` in a Unicode normal form, in linear time.

    ``unicodedata.normalize`` sorts each run of combining marks by insertion: 100 KB of marks in the worst order block
    the interpreter for half a minute. A piece ends before an ASCII character, which never composes with the character
    before it, or after 256 other characters.
    """
    if text.isascii():
        return text
    return "".join(unicodedata.normalize(form, piece) for piece in _PIECE.findall(text))


def content_hash(content: str) -> str:
    """SHA-256 of the exact text, hexadecimal."""
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


def normalised_hash(content: str) -> str:
    """SHA-256 of the text without case, space and punctuation: equal for near-verbatim repeats."""
    folded = _NOT_WORD.sub(" ", normalise_unicode("NFKC", content).casefold()).strip()
    return hashlib.sha256(folded.encode("utf-8")).hexdigest()


# --- types of chunks and links -------------------------------------------------------------------------------------

CHUNK_TYPES = ["preference", "fact", "pattern", "decision", "note"]
"""The built-in chunk types; more are registered per store."""

AUTO_LINK_TYPES = ["context_of", "follows", "related_to"]
"""Links that the AutoLinker makes (docs/spec/links.md, Types); ``SIMILAR_TO`` besides."""

MANUAL_LINK_TYPES = ["supports", "contradicts"]
"""Links that a person or a model makes; ALL_LINK_TYPES has more."""

SIMILAR_TO = "similar_to"
"""Equal after normalising case, space and punctuation."""


SUPERSEDES = "supersedes"
"""The source replaces the target, which is out of date."""


@dataclass(frozen=True)
class LinkType:
    """A built-in link type.

    Attributes:
        name: as it stands in a link.
        outgoing: what the link means at its source, as a phrase in which "it" is the target.
        incoming: the same at its target, where "it" is the source.
        stance: whether the source is evidence ``for`` the target or ``against`` it; None: neither, as with links
            that rules make.
        weight: share of a chunk's weight that REASON passes on along the link, 0-1; None: as for registered types.
    """

    name: str
    outgoing: str
    incoming: str
    stance: Literal["for", "against"] | None = None
    weight: float | None = None


LINK_TYPES = (
    LinkType("context_of", *("is of the same conversation",) * 2, weight=0.2),
    LinkType("follows", "was said after it", "was said before it", weight=0.3),
    LinkType("related_to", *("shares tags with it",) * 2, weight=0.3),
    LinkType(SIMILAR_TO, *("says the same in nearly the same words",) * 2, weight=0.5),
    LinkType("supports", "supports it", "is supported by it", "for", 1.0),
    LinkType("contradicts", "contradicts it", "is contradicted by it", "against", 1.0),
    LinkType("elaborates", "elaborates on it", "is elaborated on by it", "for", 1.0),
    LinkType("example_of", "is an example of it", "has it as an example", "for", 0.9),
    LinkType(SUPERSEDES, "replaces it", "was replaced by it", weight=0.5),
    LinkType("derived_from", "was made from it", "is what it was made from"),
)
"""Every built-in link type (docs/spec/links.md, Types); add a type by adding a row."""

ALL_LINK_TYPES = [kind.name for kind in LINK_TYPES]
"""Names of the built-in link types."""

STATED_LINK_TYPES = [kind.name for kind in LINK_TYPES if kind.stance]
"""Types with which a person or a model states that one chunk supports or contradicts another."""

AGAINST_LINK_TYPES = [kind.name for kind in LINK_TYPES if kind.stance == "against"]
"""Types whose source is evidence against their target."""


@dataclass(frozen=True)
class ChunkTypeSpec:
    """A custom chunk type; its fields live in ``metadata.extra``."""

    name: str
    description: str = ""
    required_fields: tuple[str, ...] = ()
    optional_fields: tuple[str, ...] = ()


class TypeRegistry:
    """The chunk and link types that one store accepts on writing: the built-in ones and registered ones."""

    def __init__(
        self,
        chunk_types: Mapping[str, Mapping[str, Any]] | None = None,
        link_types: Mapping[str, str] | None = None,
    ) -> None:
        self.chunk_types: dict[str, ChunkTypeSpec] = {name: ChunkTypeSpec(name) for name in CHUNK_TYPES}
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
        """Accept chunks of a new type; ``required_fields`` must then be present in their metadata."""
        check_type_name(name)
        self.chunk_types[name] = ChunkTypeSpec(
            name, description, tuple(as_list(required_fields)), tuple(as_list(optional_fields))
        )

    def register_link_type(self, name: str, description: str = "") -> None:
        """Accept links of a new type."""
        check_type_name(name)
        self.link_types[name] = description

    def check_chunk(self, chunk_type: str, extra: Mapping[str, Any]) -> str:
        """Return ``chunk_type`` if it may be written with these extra fields; raises InvalidChunk."""
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
        """Return ``link_type`` if it may be written; raises InvalidLink."""
        if not isinstance(link_type, str) or link_type not in self.link_types:
            known = ", ".join(self.link_types)
            raise InvalidLink(
                f"unknown link type {shown(link_type)}: use one of {known}",
                hint="register custom types with store.types.register_link_type or in config.toml",
            )
        return link_type
