"""The chunk: its types, its validation and its JSON, one shape written and every older shape read.

The format is docs/spec/chunk-format.md. Times are strings ``YYYY-MM-DDTHH:MM:SS.ffffffZ`` (UTC) everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from rlm_mem.chunk.fields import (
    AGAINST_LINK_TYPES,
    ALL_LINK_TYPES,
    AUTO_LINK_TYPES,
    CHUNK_TYPES,
    LINK_TYPES,
    MANUAL_LINK_TYPES,
    SIMILAR_TO,
    STATED_LINK_TYPES,
    SUPERSEDES,
    ChunkTypeSpec,
    LinkType,
    TypeRegistry,
    check_chunk_id,
    check_confidence,
    check_content,
    check_namespace,
    check_reasoning,
    check_strength,
    check_tags,
    check_text,
    check_time,
    content_hash,
    format_time,
    is_chunk_id,
    new_change_id,
    new_chunk_id,
    normalised_hash,
    parse_time,
)
from rlm_mem.errors import InputError, InvalidChunk, InvalidChunkId, InvalidLink

__all__ = [
    "AGAINST_LINK_TYPES",
    "ALL_LINK_TYPES",
    "AUTO_LINK_TYPES",
    "CHUNK_TYPES",
    "LINK_TYPES",
    "DEFAULT_NAMESPACE",
    "MANUAL_LINK_TYPES",
    "STATED_LINK_TYPES",
    "LinkType",
    "SCHEMA_VERSION",
    "SIMILAR_TO",
    "SUPERSEDES",
    "Chunk",
    "ChunkLinks",
    "ChunkMetadata",
    "ChunkTypeSpec",
    "TypeRegistry",
    "check_chunk_id",
    "check_confidence",
    "check_content",
    "check_namespace",
    "check_reasoning",
    "check_strength",
    "check_tags",
    "check_time",
    "check_text",
    "content_hash",
    "decode_chunk",
    "encode_chunk",
    "format_time",
    "is_chunk_id",
    "links_from_raw",
    "new_change_id",
    "new_chunk_id",
    "normalised_hash",
    "parse_time",
]

SCHEMA_VERSION = "2.0"
DEFAULT_NAMESPACE = "default"


@dataclass
class ChunkMetadata:
    """Times, origin and confidence of a chunk (docs/spec/chunk-format.md, Metadata).

    ``confidence`` is in 0-1; ``access_count`` counts reads. ``occurred_at`` is when the thing was said or
    happened, where that is not ``created_at``. ``extra`` holds every key that the schema does not name.
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

    @property
    def at(self) -> str:
        """The time that matters to search and timeline: ``occurred_at``, else ``created_at``."""
        return self.occurred_at or self.created_at


@dataclass
class ChunkLinks:
    """One directed link; ``strength`` is in 0-1."""

    target_id: str
    type: str
    strength: float = 0.5
    created_at: str = ""
    reasoning: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class Chunk:
    """One memory; ``tokens`` counts o200k tokens of ``content``.

    ``revision`` rises by one with every change. ``extra`` holds top-level keys that the schema does not name;
    they are written back at the top level.
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
        """The canonical JSON shape as a plain dict (schema 2.0)."""
        return _to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Chunk:
        """Read any documented shape of a chunk; raises InvalidChunk."""
        return _from_dict(data)


# --- JSON ------------------------------------------------------------------------------------------


def encode_chunk(chunk: Chunk) -> bytes:
    """The chunk as canonical JSON (UTF-8, indent 2, final newline)."""
    return msgspec.json.format(msgspec.json.encode(_to_dict(chunk)), indent=2) + b"\n"


def decode_chunk(data: bytes) -> Chunk:
    """Read one chunk file of any documented shape; raises InvalidChunk with the reason."""
    try:
        raw = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidChunk(f"not valid JSON: {error}") from None
    except RecursionError:
        raise InvalidChunk("JSON is nested too deeply") from None
    if not isinstance(raw, dict):
        raise InvalidChunk(f"a chunk file must hold an object, not {type(raw).__name__}")
    return _from_dict(raw)


_TOP = frozenset(
    {"schema", "id", "revision", "content", "tokens", "type", "metadata", "links", "tags", "namespace"}
)
_METADATA = frozenset(ChunkMetadata.__dataclass_fields__)
_LINK = frozenset(ChunkLinks.__dataclass_fields__)
# Older names and places (docs/spec/chunk-format.md, Older shapes).
_OLD_METADATA = {"created": "created_at", "updated": "modified_at", "last_accessed": "accessed_at"}
_MOVED_UP = ("type", "tags", "token_count")


def _to_dict(chunk: Chunk) -> dict[str, Any]:
    """The canonical shape; ``namespace`` is written only where it is not the default one."""
    meta = chunk.metadata
    out: dict[str, Any] = {
        "schema": chunk.schema,
        "id": chunk.id,
        "revision": chunk.revision,
        "content": chunk.content,
        "tokens": chunk.tokens,
        "type": chunk.type,
        "metadata": {
            "created_at": meta.created_at,
            "modified_at": meta.modified_at,
            "accessed_at": meta.accessed_at,
            "access_count": meta.access_count,
            "confidence": meta.confidence,
            "conversation_id": meta.conversation_id,
            "source": meta.source,
            "content_hash": meta.content_hash,
            "occurred_at": meta.occurred_at,
            "valid_from": meta.valid_from,
            "valid_to": meta.valid_to,
            "superseded_by": meta.superseded_by,
            "provenance": meta.provenance,
            "extra": meta.extra,
        },
        "links": [_link_to_dict(link) for link in chunk.links],
        "tags": chunk.tags,
    }
    if chunk.namespace != DEFAULT_NAMESPACE:
        out["namespace"] = chunk.namespace
    for key, value in chunk.extra.items():
        out.setdefault(key, value)
    return out


def _link_to_dict(link: ChunkLinks) -> dict[str, Any]:
    out: dict[str, Any] = {
        "target_id": link.target_id,
        "type": link.type,
        "strength": link.strength,
        "created_at": link.created_at,
        "reasoning": link.reasoning,
    }
    for key, value in link.extra.items():
        out.setdefault(key, value)
    return out


def _from_dict(raw: Mapping[str, Any]) -> Chunk:
    """Read any documented shape; raises InvalidChunk naming the field at fault."""
    try:
        chunk_id = check_chunk_id(raw.get("id"))
    except InvalidChunkId as error:
        raise InvalidChunk(error.message) from None
    content = raw.get("content")
    if not isinstance(content, str):
        raise InvalidChunk(f"{chunk_id}: content must be text, not {type(content).__name__}")
    raw_meta = raw.get("metadata")
    if not isinstance(raw_meta, Mapping):
        raise InvalidChunk(f"{chunk_id}: metadata must be an object, not {type(raw_meta).__name__}")
    try:
        metadata, moved = _metadata_from_raw(raw_meta)
        tokens = _count(raw.get("tokens", moved.get("token_count", 0)), "tokens")
        return Chunk(
            id=chunk_id,
            content=content,
            tokens=tokens,
            type=check_text(raw.get("type", moved.get("type", "note")), "type", max_length=64),
            metadata=_complete(metadata, content),
            links=links_from_raw(raw.get("links"), metadata.created_at),
            tags=check_tags(raw.get("tags", moved.get("tags"))),
            revision=max(1, _count(raw.get("revision", 1), "revision")),
            schema=_schema(raw.get("schema")),
            namespace=check_namespace(raw.get("namespace", DEFAULT_NAMESPACE)),
            extra={key: value for key, value in raw.items() if key not in _TOP},
        )
    except InputError as error:
        raise InvalidChunk(f"{chunk_id}: {error.message}", hint=error.hint) from None


def _schema(given: object) -> str:
    """The schema to write the chunk back with: a later minor version, which only adds fields, is kept.

    Raises:
        InvalidChunk: a later major version, in which the fields may mean something else.
    """
    if given == SCHEMA_VERSION or not isinstance(given, str):
        return SCHEMA_VERSION
    major, _, minor = given.partition(".")
    known, _, _ = SCHEMA_VERSION.partition(".")
    if major.isascii() and major.isdigit() and (len(major) > 3 or int(major) > int(known)):
        raise InvalidChunk(
            f"written by a newer version of this program (schema {given:.20})", hint="upgrade rlm-mem"
        )
    later = major == known and minor.isascii() and minor.isdigit()
    return given if later else SCHEMA_VERSION


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
            access_count=_count(known.get("access_count", 0), "access_count"),
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
        ),
        moved,
    )


def _complete(metadata: ChunkMetadata, content: str) -> ChunkMetadata:
    if not metadata.content_hash:
        try:
            metadata.content_hash = content_hash(content)
        except UnicodeEncodeError:
            raise InvalidChunk("content holds a lone surrogate") from None
    return metadata


def _count(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidChunk(f"{what} must be a whole number from 0 up, not {value!r:.60}")
    return value


def links_from_raw(raw: Any, created_at: str) -> list[ChunkLinks]:
    """Read links in any documented shape; raises InvalidLink or InvalidChunk.

    A list of objects, a dict of type to ids, or outgoing and incoming lists (incoming links are answered by the
    index and dropped here). A target that is no chunk id, such as a conversation id below ``context_of``, cannot
    be a link between chunks: it is dropped too, since the conversation itself is in the metadata.
    """
    if raw is None:
        return []
    links: list[ChunkLinks] = []
    if isinstance(raw, Mapping):
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
        return links
    if not isinstance(raw, (list, tuple)):
        raise InvalidLink(f"links must be a list of objects, not {type(raw).__name__}")
    for item in raw:
        links.append(item if isinstance(item, ChunkLinks) else _link_from_raw(item, created_at))
    return links


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
        # Most links of a chunk were made with it; its own time was checked already.
        when if when == created_at else check_time(when, "link created_at"),
        reasoning,
        {}
        if _LINK.issuperset(raw)
        else {key: value for key, value in raw.items() if key not in _LINK and key != "target"},
    )
