"""Shapes that several addresses give: a chunk, its summary, a link, and pages of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rlm_mem.chunk import format_time

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.chunk_store import LinkedChunk, Summary

__all__ = ["ChunkOut", "ChunkSummary", "LinkOut", "Neighbour", "chunk_out", "iso", "neighbour", "summary_of"]


class LinkOut(Struct):
    """One link as its chunk holds it; ``strength`` is 0 to 1."""

    target_id: str
    type: str
    strength: float
    created_at: str
    reasoning: str | None


class ChunkOut(Struct):
    """One chunk; reads do not change it, so its revision names this content.

    Attributes:
        tokens: o200k tokens of ``content``.
        links: those that lead from it.
        confidence: how sure, 0 to 1.
        occurred_at: when it was said or happened, where that is not ``created_at``.
        archived: it was deleted, and can be restored.
    """

    id: str
    content: str
    tokens: int
    type: str
    tags: list[str]
    revision: int
    namespace: str
    conversation_id: str | None
    source: str
    confidence: float
    created_at: str
    modified_at: str
    occurred_at: str | None
    valid_from: str | None
    valid_to: str | None
    superseded_by: str | None
    content_hash: str
    provenance: dict[str, Any]
    extra: dict[str, Any]
    links: list[LinkOut]
    archived: bool = False


class ChunkSummary(Struct):
    """A chunk without its content; ``at`` is when it occurred, else when it was created."""

    id: str
    type: str
    tags: list[str]
    tokens: int
    confidence: float
    conversation_id: str | None
    at: str
    created_at: str
    revision: int
    superseded_by: str | None


class Neighbour(Struct):
    """A chunk linked with another one; ``direction`` is out or in, ``strength`` 0 to 1."""

    chunk_id: str
    type: str
    strength: float
    direction: str
    reasoning: str | None
    created_at: str


def chunk_out(chunk: Chunk, *, archived: bool = False) -> ChunkOut:
    """A chunk as it goes out."""
    about = chunk.metadata
    return ChunkOut(
        id=chunk.id,
        content=chunk.content,
        tokens=chunk.tokens,
        type=chunk.type,
        tags=list(chunk.tags),
        revision=chunk.revision,
        namespace=chunk.namespace,
        conversation_id=about.conversation_id,
        source=about.source,
        confidence=about.confidence,
        created_at=about.created_at,
        modified_at=about.modified_at,
        occurred_at=about.occurred_at,
        valid_from=about.valid_from,
        valid_to=about.valid_to,
        superseded_by=about.superseded_by,
        content_hash=about.content_hash,
        provenance=about.provenance,
        extra=about.extra,
        links=[
            LinkOut(link.target_id, link.type, link.strength, link.created_at, link.reasoning)
            for link in chunk.links
        ],
        archived=archived,
    )


def summary_of(one: Summary | Chunk) -> ChunkSummary:
    """A summary of the index, or a chunk without its content, as it goes out."""
    from rlm_mem.chunk import Chunk

    if isinstance(one, Chunk):
        about = one.metadata
        return ChunkSummary(
            one.id, one.type, list(one.tags), one.tokens, about.confidence, about.conversation_id, about.at,
            about.created_at, one.revision, about.superseded_by,
        )  # fmt: skip
    return ChunkSummary(
        one.id, one.type, list(one.tags), one.tokens, one.confidence, one.conversation_id,
        one.occurred_at or one.created_at, one.created_at, one.revision, one.superseded_by,
    )  # fmt: skip


def neighbour(link: LinkedChunk) -> Neighbour:
    """A linked chunk as it goes out."""
    return Neighbour(link.chunk_id, link.type, link.strength, link.direction, link.reasoning, link.created_at)


def iso(seconds: float) -> str:
    """Epoch seconds as the store writes times."""
    return format_time(datetime.fromtimestamp(seconds, UTC))
