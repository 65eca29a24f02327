"""The chunk: its types, validation and JSON encoding. One format is written, every older format is read.

The format is docs/spec/chunk-format.md. Times are strings ``YYYY-MM-DDTHH:MM:SS.ffffffZ`` (UTC) everywhere.
"""

from __future__ import annotations

import atexit
import codecs
import gc
import os
import re
import time
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Literal

import msgspec
from msgspec import field, structs

from rlm_mem.chunk.types import (
    AGAINST_LINK_TYPES as AGAINST_LINK_TYPES,
    ALL_LINK_TYPES as ALL_LINK_TYPES,
    AUTO_LINK_TYPES as AUTO_LINK_TYPES,
    CHUNK_TYPES as CHUNK_TYPES,
    DEFAULT_TRUST,
    LINK_TYPES as LINK_TYPES,
    MANUAL_LINK_TYPES as MANUAL_LINK_TYPES,
    MAX_COUNT,
    MAX_FILE_BYTES,
    ORDERED_LINK_TYPES as ORDERED_LINK_TYPES,
    ORIGIN_OF_SOURCE,
    ORIGINS,
    SIMILAR_TO as SIMILAR_TO,
    STATED_LINK_TYPES as STATED_LINK_TYPES,
    SUPERSEDES as SUPERSEDES,
    TRUST_LEVELS,
    ChunkTypeSpec as ChunkTypeSpec,
    LinkType as LinkType,
    Ttl,
    TypeRegistry as TypeRegistry,
    check_count,
    check_number_of_links,
    check_origin,
    check_reasoning,
    duration,
    is_iterable,
    shown,
)
from rlm_mem.errors import InputError, InvalidChunk, InvalidChunkId, InvalidLink, NamespaceError
from rlm_mem.merging import json_fault
from rlm_mem.record import MutableRecord

# At interpreter exit, garbage collection may free the types of msgspec structs in an order in which msgspec 0.22 reads
# freed memory (StructInfo_clear) and crashes the process. Frozen objects are not collected; their memory is released
# with the process.
atexit.register(gc.freeze)

SCHEMA_VERSION = "2.0"
DEFAULT_NAMESPACE = "default"


class ChunkMetadata(MutableRecord):
    """Metadata of a chunk: times, origin and confidence (docs/spec/chunk-format.md, Metadata).

    ``confidence`` is in 0-1; ``access_count`` counts reads. ``occurred_at`` is when the thing was said or
    happened, if that is not ``created_at``. ``extra`` has every key that is not in the schema.
    ``origin`` is its source (person, agent, tool, import, web) and ``trust`` how far it is trusted
    (quarantined, untrusted, ordinary, trusted); if empty, they follow from ``source``. From ``expires_at`` on, no
    read returns the chunk.
    """

    created_at: str = ""
    modified_at: str = ""
    accessed_at: str = ""
    access_count: int = 0
    confidence: float = 0.7
    conversation_id: str | None = None
    source: str = "interaction"
    content_hash: str = ""
    occurred_at: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    superseded_by: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    origin: str = ""
    trust: str = ""
    expires_at: str | None = None

    def __post_init__(self) -> None:
        try:
            self.origin = self.origin or ORIGIN_OF_SOURCE[self.source]
            self.trust = self.trust or DEFAULT_TRUST[self.origin]
        except (KeyError, TypeError):
            check_origin(self.origin or check_text(self.source, "source"))
            raise

    @property
    def at(self) -> str:
        """The time used by search and timeline: ``occurred_at``, else ``created_at``."""
        return self.occurred_at or self.created_at


class ChunkLinks(MutableRecord):
    """One directed link; ``strength`` is in 0-1."""

    target_id: str
    type: str
    strength: float = 0.5
    created_at: str = ""
    reasoning: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


class Chunk(MutableRecord):
    """One stored text with its metadata; ``tokens`` counts o200k tokens of ``content``.

    ``revision`` is incremented with every change. ``extra`` has top-level keys that are not in the schema; they are
    written back at the top level.
    """

    id: str
    content: str
    tokens: int
    type: str = "note"
    metadata: ChunkMetadata = field(default_factory=ChunkMetadata)
    links: list[ChunkLinks] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    revision: int = 1
    schema: str = SCHEMA_VERSION
    namespace: str = DEFAULT_NAMESPACE
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def replaces(self) -> list[str]:
        """Ids of the chunks that this one replaced (docs/spec/links.md, Supersession)."""
        return [link.target_id for link in self.links if link.type == SUPERSEDES]

    def to_dict(self) -> dict[str, Any]:
        """All fields as a dictionary (schema 2.0); files omit some that are null (``encode_chunk``).

        ``namespace``, ``origin``, ``trust`` and ``expires_at`` are included only if they differ from their defaults.
        """
        links = []
        for link in self.links:
            known = structs.asdict(link)
            extra = known.pop("extra")
            links.append({**known, **extra, **known} if extra else known)
        meta = self.metadata
        metadata = structs.asdict(meta)
        metadata["access_count"] = min(meta.access_count, MAX_COUNT)
        if meta.origin == ORIGIN_OF_SOURCE[meta.source]:
            del metadata["origin"]
        if meta.trust == DEFAULT_TRUST[meta.origin]:
            del metadata["trust"]
        if meta.expires_at is None:
            del metadata["expires_at"]
        out: dict[str, Any] = {
            "schema": self.schema,
            "id": self.id,
            "revision": self.revision,
            "content": self.content,
            "tokens": self.tokens,
            "type": self.type,
            "metadata": metadata,
            "links": links,
            "tags": self.tags,
        }
        if self.namespace != DEFAULT_NAMESPACE:
            out["namespace"] = self.namespace
        for key, value in self.extra.items():
            out.setdefault(key, value)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Chunk:
        """Parse any documented format of a chunk; raises InvalidChunk naming the invalid field."""
        try:
            if "id" not in data:
                raise InvalidChunk(
                    "it has no id: rlm-mem remember stores a text as a chunk, rlm-mem import those of other programs"
                )
            chunk_id = check_chunk_id(data["id"])
        except InvalidChunkId as error:
            raise InvalidChunk(error.message) from None
        content = data.get("content")
        if not isinstance(content, str):
            raise InvalidChunk(f"{chunk_id}: content must be text, not {type(content).__name__}")
        raw_meta = data.get("metadata")
        if not isinstance(raw_meta, Mapping):
            raise InvalidChunk(f"{chunk_id}: metadata must be an object, not {type(raw_meta).__name__}")
        try:
            metadata, moved = _metadata_from_raw(raw_meta)
            metadata.content_hash = metadata.content_hash or content_hash(content)
            tokens = check_count(data.get("tokens", moved.get("token_count", 0)), "tokens")
            return cls(
                id=chunk_id,
                content=content,
                tokens=tokens,
                type=check_text(data.get("type", moved.get("type", "note")), "type", max_length=64),
                metadata=metadata,
                links=links_from_raw(data.get("links"), metadata.created_at),
                tags=check_tags(data.get("tags", moved.get("tags"))),
                revision=max(1, check_count(data.get("revision", 1), "revision")),
                schema=_schema(data.get("schema")),
                namespace=check_namespace(data.get("namespace", DEFAULT_NAMESPACE)),
                extra={key: value for key, value in data.items() if key not in _TOP},
            )
        except UnicodeEncodeError:
            raise InvalidChunk(f"{chunk_id}: content contains a lone surrogate") from None
        except InputError as error:
            raise InvalidChunk(f"{chunk_id}: {error.message}", hint=error.hint) from None


# --- JSON ------------------------------------------------------------------------------------------


# Metadata fields that files omit if they are null; every version reads a missing field as null.
_OMITTED_IF_NULL = ("occurred_at", "valid_from", "valid_to", "superseded_by")


def encode_chunk(chunk: Chunk) -> bytes:
    """Encode a chunk as the contents of its file: JSON in UTF-8, indent 2, final newline, without null optional fields.

    Raises InvalidChunk if it would take more bytes, or have a higher revision, than a file may.
    """
    if chunk.revision > MAX_COUNT:
        message = f"{chunk.id} has revision {MAX_COUNT:,}, the highest there is: it cannot be changed again"
        raise InvalidChunk(message, hint="remember its text as a new chunk")
    document = chunk.to_dict()
    metadata = document["metadata"]
    for name in _OMITTED_IF_NULL:
        if metadata[name] is None:
            del metadata[name]
    for link in document["links"]:
        if link["reasoning"] is None:
            del link["reasoning"]
    data = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    if len(data) > MAX_FILE_BYTES:
        raise InvalidChunk(f"{chunk.id} has {len(data):,} bytes, of which {MAX_FILE_BYTES:,} can be read")
    return data


_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode_chunk(data: bytes) -> Chunk:
    """Parse a chunk file of any documented format; raises InvalidChunk with the reason."""
    try:
        if data[:2] in _UTF16:  # as some editors and shells write it, or UTF-8 with a mark
            data = data.decode("utf-16").encode()
        raw = msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidChunk(json_fault(data, error)) from None
    except RecursionError:
        raise InvalidChunk("JSON is nested too deeply") from None
    if not isinstance(raw, dict):
        raise InvalidChunk(f"a chunk file must contain an object, not {type(raw).__name__}")
    return Chunk.from_dict(raw)


_TOP = frozenset({"schema", *Chunk.__struct_fields__}) - {"extra"}
_METADATA = frozenset(ChunkMetadata.__struct_fields__)
_LINK = frozenset(ChunkLinks.__struct_fields__)
# Fields that files of former versions lack, with their allowed values (an empty tuple: a time).
_LATER_FIELDS: Mapping[str, tuple[str, ...]] = {"origin": ORIGINS, "trust": TRUST_LEVELS, "expires_at": ()}
# Older names and positions (docs/spec/chunk-format.md, Older shapes).
_OLD_METADATA = {"created": "created_at", "updated": "modified_at", "last_accessed": "accessed_at"}
_MOVED_UP = ("type", "tags", "token_count")

NEWER_VERSION = "written by a newer version of this program"
"""Start of the error message for a chunk of a later major version."""


def _schema(version: object) -> str:
    """The schema version to write the chunk back with; a later minor version, which only adds fields, is kept.

    Raises:
        InvalidChunk: a later major version, in which fields may have another meaning.
    """
    if version == SCHEMA_VERSION or not isinstance(version, str):
        return SCHEMA_VERSION
    major, _, minor = version.partition(".")
    known, _, _ = SCHEMA_VERSION.partition(".")
    if major.isascii() and major.isdigit() and (len(major) > 3 or int(major) > int(known)):
        raise InvalidChunk(f"{NEWER_VERSION} (schema {version:.20})", hint="upgrade rlm-mem")
    later = major == known and minor.isascii() and minor.isdigit()
    return version if later else SCHEMA_VERSION


def _metadata_from_raw(raw: Mapping[str, Any]) -> tuple[ChunkMetadata, dict[str, Any]]:
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    moved: dict[str, Any] = {}
    for key, value in raw.items():
        name = _OLD_METADATA.get(key, key)
        if name in _METADATA:
            if key == name or name not in raw:
                known[name] = value
        elif key in _MOVED_UP:
            moved[key] = value
        else:
            extra[key] = value
    stored_extra = known.pop("extra", None)
    if isinstance(stored_extra, Mapping):
        extra = {**extra, **stored_extra}
    elif stored_extra is not None:
        raise InvalidChunk(f"metadata.extra must be an object, not {type(stored_extra).__name__}")
    if not known.keys().isdisjoint(_LATER_FIELDS):
        _move_conflicting_fields(known, extra)
    provenance = known.pop("provenance", None) or {}
    if not isinstance(provenance, Mapping):
        raise InvalidChunk(f"metadata.provenance must be an object, not {type(provenance).__name__}")
    created_at = check_time(known.get("created_at"), "created_at")

    def moment(name: str, default: str | None) -> str | None:
        value = known.get(name)
        return default if value is None or value == "" else check_time(value, name)

    conversation_id = known.get("conversation_id")
    superseded_by = known.get("superseded_by")
    return (
        ChunkMetadata(
            created_at=created_at,
            modified_at=moment("modified_at", created_at) or created_at,
            accessed_at=moment("accessed_at", created_at) or created_at,
            access_count=check_count(known.get("access_count", 0), "access_count"),
            confidence=check_confidence(known.get("confidence", 0.7)),
            conversation_id=None
            if conversation_id is None
            else check_text(conversation_id, "conversation_id"),
            source=check_text(known.get("source") or "interaction", "source"),
            content_hash=str(known.get("content_hash") or ""),
            occurred_at=moment("occurred_at", None),
            valid_from=moment("valid_from", None),
            valid_to=moment("valid_to", None),
            superseded_by=None if superseded_by is None else check_chunk_id(superseded_by),
            provenance=dict(provenance),
            extra=extra,
            origin=known.get("origin", ""),
            trust=known.get("trust", ""),
            expires_at=moment("expires_at", None),
        ),
        moved,
    )


def _move_conflicting_fields(known: dict[str, Any], extra: dict[str, Any]) -> None:
    """Move values to the extra fields if an older file uses the name of a later field for something else."""
    for name, values in _LATER_FIELDS.items():
        if name not in known:
            continue
        try:
            fits = known[name] in values if values else check_time(known[name], name) is not None
        except InvalidChunk:
            fits = False
        if not fits:
            value = known.pop(name)
            if value is not None:
                extra.setdefault(name, value)


def links_from_raw(raw: Any, created_at: str) -> list[ChunkLinks]:
    """Parse links in any documented format; raises InvalidLink or InvalidChunk.

    The formats are a list of objects, a dict of type to ids, or outgoing and incoming lists (incoming links come from
    the index and are dropped). A target that is not a chunk id, such as a conversation id below ``context_of``, cannot
    be a link between chunks and is dropped too, since the conversation is in the metadata.
    """
    if raw is None:
        return []
    if isinstance(raw, Mapping):
        links: list[ChunkLinks] = []
        if "outgoing" in raw or "incoming" in raw:
            return links_from_raw(raw.get("outgoing") or [], created_at)
        for link_type, targets in raw.items():
            if not isinstance(targets, (list, tuple)):
                raise InvalidLink(f"links of type {link_type!r:.40} must be a list of chunk ids")
            links += [
                ChunkLinks(target, check_text(link_type, "link type", max_length=64), 0.5, created_at)
                for target in targets
                if isinstance(target, str) and target.startswith("chunk-") and check_chunk_id(target)
            ]
        check_number_of_links(len(links))
        return links
    if not isinstance(raw, (list, tuple)):
        raise InvalidLink(f"links must be a list of objects, not {type(raw).__name__}")
    check_number_of_links(len(raw))
    return [item if isinstance(item, ChunkLinks) else _link_from_raw(item, created_at) for item in raw]


def _link_from_raw(raw: Any, created_at: str) -> ChunkLinks:
    if type(raw) is not dict and not isinstance(raw, Mapping):
        raise InvalidLink(f"a link must be an object with target_id and type, not {raw!r:.60}")
    target = raw.get("target_id", raw.get("target"))
    reasoning = check_reasoning(raw.get("reasoning"))
    when = raw.get("created_at") or created_at
    return ChunkLinks(
        check_chunk_id(target),
        check_text(raw.get("type"), "link type", max_length=64),
        check_strength(raw.get("strength", 0.5)),
        # Most links have the creation time of their chunk, which is already validated.
        when if when == created_at else check_time(when, "link created_at"),
        reasoning,
        {}
        if _LINK.issuperset(raw)
        else {key: value for key, value in raw.items() if key not in _LINK and key != "target"},
    )


# --- validation of single fields: ids, namespaces, text, tags, times, hashes ---------------------------------------

MAX_TAG_LENGTH = 200
MAX_TAGS = 1000

_CHUNK_ID = re.compile(r"chunk-[A-Za-z0-9][A-Za-z0-9_-]{0,119}\Z")
_LONGEST_NAMESPACE = 200
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*(?:/[A-Za-z0-9][A-Za-z0-9._@-]*)*\Z")
_NOT_WORD = re.compile(r"[\W_]+")
_PLAIN_WORDS = bytes(
    ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else 32 for code in range(256)
)


def is_chunk_id(value: object) -> bool:
    """Whether ``value`` is a valid chunk id."""
    return isinstance(value, str) and _CHUNK_ID.match(value) is not None


def check_chunk_id(value: object) -> str:
    """Return ``value`` if it is a valid chunk id; raises InvalidChunkId (this prevents path traversal)."""
    if isinstance(value, str) and _CHUNK_ID.match(value):
        return value
    raise InvalidChunkId(f"{shown(value)} is not a chunk id: it must look like chunk-2026-02-10-a1b2c3d4")


def check_chunk_ids(value: Iterable[str] | str) -> list[str]:
    """Validate one chunk id or several, and return them as a list; raises InvalidChunkId."""
    if not is_iterable(value):
        raise InvalidChunkId(f"ids must be a list, not {shown(value)}", hint="pass result.chunk_ids")
    return [check_chunk_id(one) for one in ([value] if isinstance(value, str) else value)]


def new_change_id(now: datetime | None = None) -> str:
    """A new transaction id; ids sort by time."""
    return f"{now or datetime.now(UTC):%Y%m%d%H%M%S%f}-{time.time_ns():016x}"


def new_chunk_id(now: datetime) -> str:
    """A new id ``chunk-YYYY-MM-DD-{8 hex}``; the store ensures that it is unused."""
    return f"chunk-{now.isoformat()[:10]}-{os.urandom(4).hex()}"


def check_namespace(value: object) -> str:
    """Return ``value`` if it is a namespace path such as ``agent/project/user``; raises NamespaceError."""
    if isinstance(value, str) and len(value) > _LONGEST_NAMESPACE:
        raise NamespaceError(
            f"the namespace {shown(value)} has {len(value):,} characters, more than {_LONGEST_NAMESPACE}"
        )
    if isinstance(value, str) and _NAMESPACE.match(value):
        return value
    raise NamespaceError(
        f"{shown(value)} is not a namespace: use the letters a to z and A to Z, digits, . _ @ - and / between parts"
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
            f"content contains a lone surrogate at character {error.start}: it is not valid Unicode text",
            hint="remove or replace that character",
        ) from None
    if max_bytes is not None and size > max_bytes:
        raise InvalidChunk(
            f"content of {size:,} bytes is larger than the {max_bytes:,} bytes that one chunk can have",
            hint="use remember, which splits text into chunks, or raise store.max_content_bytes",
        )
    return str.__str__(value)  # msgspec cannot encode np.str_


def check_text(value: object, what: str, *, max_length: int = 1000) -> str:
    """Return ``value`` if it is one line of storable text for the field ``what``; raises InvalidChunk."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidChunk(f"{what} must be non-empty text, not {shown(value)}")
    if len(value) > max_length:
        raise InvalidChunk(f"{what} is {len(value)} characters long: at most {max_length}")
    # isprintable() decides the usual case in one call; it is also false for some spaces and marks.
    if not value.isprintable() and any(unicodedata.category(char) in ("Cc", "Cs") for char in value):
        raise InvalidChunk(f"{what} {shown(value)} contains control characters or lone surrogates")
    return str.__str__(value)


def check_tags(value: object) -> list[str]:
    """Return the tags, stripped, in NFC, without duplicates; a single text is one tag. Raises InvalidChunk."""
    if value is None:
        return []
    value = (value,) if isinstance(value, str) else value
    if not is_iterable(value) or isinstance(value, Mapping | bytes | bytearray):
        raise InvalidChunk(f"tags must be a list of words, not {shown(value)}")
    tags: dict[str, None] = {}
    for tag in value:
        tag = normalise_unicode("NFC", tag) if isinstance(tag, str) else tag
        tags[check_text(tag, "tag", max_length=MAX_TAG_LENGTH).strip()] = None
    if len(tags) > MAX_TAGS:
        raise InvalidChunk(f"{len(tags)} tags are too many: at most {MAX_TAGS}")
    return list(tags)


def check_confidence(value: object, what: str = "confidence") -> float:
    """Return ``value`` as a float in 0-1; raises InvalidChunk."""
    # The comparison is false for NaN, and comes before float() could overflow.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise InvalidChunk(f"{what} must be a number from 0 to 1, not {shown(value)}")


def check_strength(value: object) -> float:
    """Return a link strength as a float in 0-1; raises InvalidLink."""
    try:
        return check_confidence(value, "link strength")
    except InvalidChunk as error:
        raise InvalidLink(error.message) from None


def parse_time(value: object, what: str = "time") -> datetime:
    """Parse an ISO 8601 time or date; without an offset it is UTC. Raises InvalidChunk."""
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
    elif isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InvalidChunk(
                f"{what} {shown(value)} is not an ISO 8601 time such as 2026-02-10 or 2026-02-10T21:37:00Z"
            ) from None
    else:
        raise InvalidChunk(f"{what} must be an ISO 8601 time, not {shown(value)}")
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except (OverflowError, ValueError):
        raise InvalidChunk(f"{what} {shown(value)} is outside the years 1 to 9999") from None


def from_epoch(seconds: float) -> datetime:
    """Convert epoch seconds to a UTC time, limited to the years 1 to 9999.

    The limit matters because floats round the last moment of the year 9999 to the year 10000.
    """
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return (datetime.min if seconds < 0 else datetime.max).replace(tzinfo=UTC)


def format_time(moment: datetime) -> str:
    """Format a time canonically: UTC, microseconds, ``Z``."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return utc.isoformat(timespec="microseconds")[:-6] + "Z"  # without its "+00:00"


def check_time(value: object, what: str = "time") -> str:
    """Return any accepted time in canonical form; raises InvalidChunk."""
    if type(value) is str and len(value) == 27 and value[26] == "Z" and value[4:20:3] == "--T::.":
        # Already canonical: validate the date but skip formatting (this runs six times per read).
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise InvalidChunk(f"{what} {shown(value)} is not a time that exists") from None
        return value
    return format_time(parse_time(value, what))


_PIECE = re.compile(r"[\x00-\x7f]*[^\x00-\x7f]{0,256}")


def normalise_unicode(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """Convert ``text`` to a Unicode normal form, in linear time.

    ``unicodedata.normalize`` sorts each run of combining marks by insertion, so 100 KB of marks in the worst order
    block the interpreter for half a minute. Texts are therefore normalised in pieces, which end before an ASCII
    character, since that never composes with the character before it, or after 256 other characters.
    """
    if text.isascii():
        return text
    return "".join(unicodedata.normalize(form, piece) for piece in _PIECE.findall(text))


def name_key(name: str) -> str:
    """A name, or a text, as names are compared: without case, Unicode normal form and space around it."""
    return normalise_unicode("NFC", normalise_unicode("NFC", name).casefold()).strip()


def content_hash(content: str) -> str:
    """SHA-256 of the exact text, in hexadecimal."""
    from hashlib import sha256  # imported late: loads OpenSSL, which reading chunks does not need

    return sha256(content.encode("utf-8")).hexdigest()


def normalised_hash(content: str) -> str:
    """SHA-256 of the text without case, space and punctuation, equal for near-verbatim repetitions."""
    from hashlib import sha256

    if content.isascii():  # same result, ten times as fast
        return sha256(b" ".join(content.encode().translate(_PLAIN_WORDS).split())).hexdigest()
    folded = _NOT_WORD.sub(" ", normalise_unicode("NFKC", content).casefold()).strip()
    return sha256(folded.encode("utf-8")).hexdigest()


# --- expiry --------------------------------------------------------------------------------------------------------


def expiry(expires: str | date | None, ttl: Ttl | None, now: datetime) -> str | None:
    """The stored expiry time of a new chunk, from ``expires`` or ``ttl``; None if neither is given.

    Raises:
        InvalidChunk: both are given, one is malformed, or the time has already passed.
    """
    if expires is None and ttl is None:
        return None
    if expires is not None and ttl is not None:
        raise InvalidChunk("give either expires or ttl, not both")
    if expires is not None:
        until = check_time(expires, "expires")
    else:
        try:
            until = format_time(now + duration(ttl))
        except OverflowError:
            raise InvalidChunk(f"ttl {shown(ttl)} ends after the year 9999: leave it out") from None
    if until <= format_time(now):
        raise InvalidChunk(f"the expiry {until} is in the past: give a future time")
    return until
