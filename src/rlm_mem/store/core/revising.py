"""Makes changed copies of chunks, with every field checked: for an update, an import, or without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import structs

from rlm_mem.chunk import Chunk, TypeRegistry, check_content, check_tags, content_hash, format_time
from rlm_mem.chunk.types import check_plain
from rlm_mem.config import SecretAction, SecretsConfig
from rlm_mem.errors import InvalidChunk
from rlm_mem.store.core.writer import (
    METADATA_FIELDS,
    check_fields,
    check_links,
    merged_fields,
    split_metadata,
    tokens_of,
)
from rlm_mem.text.secrets import Screened, screen, screen_data

_REQUIRED = (
    "created_at", "modified_at", "accessed_at", "confidence", "source", "access_count", "provenance", "origin", "trust",
)  # fmt: skip


def check_complete(chunk: Chunk, *, max_bytes: int) -> Chunk:
    """Copy a complete chunk, checking every field; raises InvalidChunk."""
    content = check_content(chunk.content, max_bytes=max_bytes)
    checked = Chunk.from_dict(chunk.to_dict())
    check_fields({name: getattr(checked.metadata, name) for name in METADATA_FIELDS})
    for value, where in (
        (checked.extra, "the chunk"),
        (checked.metadata.extra, "metadata"),
        *((link.extra, "link") for link in checked.links),
    ):
        check_plain(value, where)
    if checked.metadata.content_hash != content_hash(content):
        checked.tokens = tokens_of(content)
        checked.metadata.content_hash = content_hash(content)
    return checked


def revise_chunk(
    chunk: Chunk,
    *,
    content: str | None,
    given: Iterable[tuple[str, Any]],
    metadata: object,
    links: object,
    tags: Sequence[str] | str | None,
    types: TypeRegistry,
    now: datetime,
    max_bytes: int,
) -> Chunk:
    """Return a changed copy of a chunk: metadata is merged, links and tags are replaced; the revision is unchanged."""
    known, extra = ({}, {}) if metadata is None else split_metadata(metadata)
    # None inside metadata clears an optional field; elsewhere it means that the field is omitted.
    cleared = {name: None for name, value in known.items() if value is None}
    named = merged_fields((*given, *known.items()))
    stamp = format_time(now)
    checked = {**check_fields(cleared), **check_fields(named)}
    for name in _REQUIRED:
        if checked.get(name, ...) is None:
            raise InvalidChunk(f"{name} cannot be removed")
    merged = {**chunk.metadata.extra, **extra}
    updated = copied(chunk)
    updated.metadata = structs.replace(
        updated.metadata,
        **checked,
        extra={key: value for key, value in merged.items() if value is not None or key not in extra},
    )
    meta = updated.metadata
    if extra:
        check_plain(meta.extra, "metadata", former=chunk.metadata.extra)
    if meta.valid_from and meta.valid_to and meta.valid_from > meta.valid_to:
        raise InvalidChunk(f"valid_from {meta.valid_from} is after valid_to {meta.valid_to}")
    if content is not None and content != chunk.content:
        updated.content = check_content(content, max_bytes=max_bytes)
        updated.metadata.content_hash = content_hash(content)
        updated.tokens = tokens_of(content)
        updated.metadata.provenance.pop("overlap", None)  # the length of the repeated prefix is unknown now
    if "type" in named:
        updated.type = types.check_chunk(named["type"], updated.metadata.extra)
    if links is not None:
        updated.links = check_links(links, types, stamp, chunk.id)
    if tags is not None:
        updated.tags = check_tags(tags)
    elif "tags" in named:
        updated.tags = check_tags(named["tags"])
    return updated


def screened_chunk(
    chunk: Chunk, settings: SecretsConfig, action: SecretAction | None = None
) -> tuple[Chunk, Screened]:
    """Return a complete chunk with secrets in content, metadata, tags and links handled, and the secrets found.

    Raises:
        InvalidChunk: a secret was found, and secrets are refused.
    """
    seen = screen(chunk.content, settings, action)
    meta = chunk.metadata
    fields = (meta.extra, meta.provenance, chunk.tags, [link.reasoning for link in chunk.links])
    (extra, provenance, tags, reasons), more = screen_data(fields, settings, action)
    together = Screened(seen.text, [*seen.found, *more.found], seen.hidden or more.hidden)
    if not together.hidden:
        return chunk, together
    made = copied(chunk)
    made.metadata = structs.replace(made.metadata, extra=extra, provenance=provenance)
    made.tags = check_tags(tags)
    for link, reasoning in zip(made.links, reasons, strict=True):
        link.reasoning = reasoning
    if seen.hidden:
        made.content, made.tokens = seen.text, tokens_of(seen.text)
        made.metadata.content_hash = content_hash(seen.text)
    return made, together


def copied(chunk: Chunk) -> Chunk:
    """Return a deep copy; raises InvalidChunk if free fields, edited by hand, are nested too deeply."""
    from copy import deepcopy  # opening does not need it

    try:
        return deepcopy(chunk)
    except RecursionError:
        raise InvalidChunk(
            f"fields of {chunk.id} are nested too deeply for a change", hint="remove them from its file"
        ) from None
