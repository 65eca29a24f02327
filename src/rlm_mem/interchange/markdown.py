"""Converts one chunk to a Markdown file with YAML front matter, and back, without loss.

The body is the content, verbatim, and one newline. Characters that editors and tools may change (carriage returns,
NUL and other controls) are written as ``\\r`` and ``\\uXXXX``; the field
``content_encoding: escapes`` marks such files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rlm_mem.chunk import DEFAULT_NAMESPACE, Chunk, ChunkLinks, check_chunk_id, is_chunk_id
from rlm_mem.chunk.types import DEFAULT_TRUST, ORIGIN_OF_SOURCE
from rlm_mem.errors import InvalidChunk
from rlm_mem.interchange.frontmatter import frontmatter_line, read_frontmatter, split_frontmatter
from rlm_mem.text.tokens import count_tokens

_METADATA = (
    "created_at", "modified_at", "accessed_at", "access_count", "confidence", "conversation_id", "source",
    "content_hash", "occurred_at", "valid_from", "valid_to", "superseded_by", "provenance",
    "origin", "trust", "expires_at",
)  # fmt: skip
_TOP = ("id", "type", "tags", "namespace", "archived", "revision", "tokens", "schema")
_KNOWN_FIELDS = frozenset(
    {*_METADATA, *_TOP, "links", "related", "extra", "chunk_extra", "content_encoding", "aliases"}
)

# Escaped in a Markdown body: C0 controls except tab and newline, DEL, C1, BOM, and characters that some tools read
# as line ends.
_FRAGILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SHORT = {"\r": r"\r", "\\": r"\\"}
_ESCAPE = re.compile(r"\\(\\|r|u[0-9a-fA-F]{4})")
_WIKI = re.compile(r"\[\[([^\]|#]+)")


def chunk_to_markdown(chunk: Chunk, *, archived: bool = False) -> str:
    """Return the whole chunk as one Markdown text: every field in the front matter, the content as the body.

    Links are in ``links`` with all their fields, and as wiki links in ``related``, which Obsidian follows.
    """
    meta = chunk.metadata
    escaped = _FRAGILE.search(chunk.content) is not None
    fields: dict[str, Any] = {"id": chunk.id, "type": chunk.type, "tags": chunk.tags}
    fields |= {name: getattr(meta, name) for name in _METADATA}
    if not meta.provenance:
        del fields["provenance"]
    if meta.origin == ORIGIN_OF_SOURCE[meta.source]:
        del fields["origin"]
    if meta.trust == DEFAULT_TRUST[meta.origin]:
        del fields["trust"]
    fields = {name: value for name, value in fields.items() if value is not None}
    if chunk.namespace != DEFAULT_NAMESPACE:
        fields["namespace"] = chunk.namespace
    if archived:
        fields["archived"] = True
    fields |= {"revision": chunk.revision, "tokens": chunk.tokens, "schema": chunk.schema}
    if chunk.links:
        fields["related"] = list(dict.fromkeys(f"[[{link.target_id}]]" for link in chunk.links))
        fields["links"] = [_link(link) for link in chunk.links]
    if meta.extra:
        fields["extra"] = meta.extra
    if chunk.extra:
        fields["chunk_extra"] = chunk.extra
    if escaped:
        fields["content_encoding"] = "escapes"
    header = "".join(frontmatter_line(name, value) for name, value in fields.items())
    return f"---\n{header}---\n{_escape(chunk.content) if escaped else chunk.content}\n"


def _link(link: ChunkLinks) -> dict[str, Any]:
    made: dict[str, Any] = {"target_id": link.target_id, "type": link.type, "strength": link.strength}
    made["created_at"] = link.created_at
    if link.reasoning is not None:
        made["reasoning"] = link.reasoning
    for name, value in link.extra.items():
        made.setdefault(name, value)
    return made


def _escape(content: str) -> str:
    def written(match: re.Match[str]) -> str:
        return _SHORT.get(match[0]) or f"\\u{ord(match[0]):04x}"

    return _FRAGILE.sub(written, content.replace("\\", "\\\\"))


def _unescape(body: str) -> str:
    def unescaped(match: re.Match[str]) -> str:
        code = match[1]
        return {"\\": "\\", "r": "\r"}.get(code) or chr(int(code[1:], 16))

    return _ESCAPE.sub(unescaped, body)


def is_chunk_markdown(fields: Mapping[str, Any]) -> bool:
    """Return whether front matter is that of an exported chunk."""
    return is_chunk_id(fields.get("id")) and (
        "type" in fields or "created_at" in fields or "created" in fields
    )


def chunk_from_markdown(text: str, *, default_time: str | None = None) -> tuple[Chunk, bool]:
    """Return the chunk in the output of chunk_to_markdown, also after manual edits, and whether it is archived.

    A wiki link added to ``related`` becomes a link ``related_to``. An edited body is valid: hash and number of tokens
    are computed from it.

    Args:
        default_time: ``created_at`` of a file without a time.

    Raises:
        InvalidChunk: no front matter, or a field in it does not validate.
    """
    if text.startswith("---\r\n"):  # a tool converted every line end: none of them belongs to the content
        text = text.replace("\r\n", "\n")
    header, body = split_frontmatter(text)
    if header is None:
        raise InvalidChunk("the file has no front matter")
    fields = read_frontmatter(header)
    content = body.removesuffix("\n")
    if fields.get("content_encoding") == "escapes":
        content = _unescape(content)
    elif fields.get("content_encoding") is not None:
        raise InvalidChunk(f"content_encoding {fields['content_encoding']!r:.40} is not known")
    chunk = Chunk.from_dict(_raw(fields, content, default_time))
    if "tokens" not in fields or fields.get("content_hash") != chunk.metadata.content_hash:
        chunk.tokens = count_tokens(content)
    _add_wiki_links(chunk, fields.get("related"))
    archived = fields.get("archived", False)
    if not isinstance(archived, bool):
        raise InvalidChunk(f"archived must be true or false, not {archived!r:.40}")
    return chunk, archived


def _raw(fields: Mapping[str, Any], content: str, default_time: str | None) -> dict[str, Any]:
    metadata = {name: fields[name] for name in _METADATA if name in fields and name != "content_hash"}
    for old, name in (
        ("created", "created_at"),
        ("updated", "modified_at"),
        ("last_accessed", "accessed_at"),
    ):
        if old in fields and name not in metadata:
            metadata[name] = fields[old]
    metadata.setdefault("created_at", default_time)
    extra = fields.get("extra") or {}
    if not isinstance(extra, Mapping):
        raise InvalidChunk(f"extra must be a table, not {type(extra).__name__}")
    known = {*_KNOWN_FIELDS, "created", "updated", "last_accessed", "token_count"}
    # Fields that a person added to the front matter are stored in ``extra``.
    metadata["extra"] = {**{name: value for name, value in fields.items() if name not in known}, **extra}
    more = fields.get("chunk_extra") or {}
    if not isinstance(more, Mapping):
        raise InvalidChunk(f"chunk_extra must be a table, not {type(more).__name__}")
    tags = fields.get("tags")
    if isinstance(tags, str):
        tags = [tag for tag in re.split(r"[,\s]+", tags) if tag]
    return {
        **more,
        "id": check_chunk_id(fields.get("id")),
        "content": content,
        "type": fields.get("type", "note"),
        "tags": [str(tag) for tag in tags] if isinstance(tags, list) else tags,
        "namespace": fields.get("namespace", DEFAULT_NAMESPACE),
        "revision": fields.get("revision", 1),
        "tokens": fields.get("tokens", 0),
        "links": fields.get("links"),
        "metadata": metadata,
    }


def _add_wiki_links(chunk: Chunk, related: Any) -> None:
    known = {link.target_id for link in chunk.links} | {chunk.id}
    for item in related if isinstance(related, list) else []:
        found = _WIKI.search(item) if isinstance(item, str) else None
        target = found[1].strip().rsplit("/", 1)[-1] if found else ""
        if is_chunk_id(target) and target not in known:
            known.add(target)
            chunk.links.append(ChunkLinks(target, "related_to", 0.5, chunk.metadata.modified_at))
