"""Memories of Hindsight: the archive of ``hindsight-admin export-bank``, and lists of memories of its API.

The shapes are those of Hindsight 0.8 to 0.10: the transfer archive of schema version 1
(``engine/transfer/schema.py`` of its repository: ``documents/NUMBER.json``, ``observations.json``,
``mental_models.json``), and its API reference (``memories/list`` with ``items``, recall with ``results``).
Settings of the bank, webhooks and records of operations in the archive are not memories.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.reading import (
    SourceFile,
    json_records,
    moment,
    objects_in,
    plain_tags,
    text_lines,
    whole_text,
)
from rlm_mem.interchange.records import ImportProblem, Note, Record, derived_chunks

_INSIDE = ("items", "results")


def _read(file: SourceFile) -> Iterator[Record]:
    for where, entry in json_records(file, _INSIDE):
        if "original_text" in entry or "facts" in entry:
            yield from _document(file, where, entry)
        elif "text" in entry:
            yield from _fact(file, where, entry, entry.get("document_id"))
        elif "content" in entry and "name" in entry:
            yield from _page(file, where, entry)
        else:
            yield ImportProblem(where, "neither a document nor a memory nor a mental model")


def _document(file: SourceFile, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    """Yield the retained text, verbatim, and the facts that were extracted from it."""
    document = text_lines(entry.get("id")) or file.conversation
    tags = plain_tags(entry.get("tags"))
    pieces = (whole_text(chunk.get("chunk_text")) for chunk in objects_in(entry.get("chunks")))
    text = whole_text(entry.get("original_text")) or "\n\n".join(filter(None, pieces))
    if text:
        yield Note(
            key="document",
            conversation_id=document,
            text=text,
            where=where,
            at=moment(entry.get("created_at")) or file.modified_at,
            tags=tags,
        )
    facts = entry.get("facts")
    for number, fact in enumerate(facts if isinstance(facts, list) else [], 1):
        place = f"{where}, fact {number}"
        if isinstance(fact, dict):
            yield from _fact(file, place, {**fact, "tags": [*tags, *plain_tags(fact.get("tags"))]}, document)
        else:
            yield ImportProblem(place, f"an object was expected, not {type(fact).__name__}")
    if not text and not facts:
        yield ImportProblem(where, "a document without text and facts")


def _fact(file: SourceFile, where: str, entry: dict[str, Any], document: Any) -> Iterator[Record]:
    text = whole_text(entry.get("text"))
    if not text:
        yield ImportProblem(where, "a memory without text")
        return
    occurred = (
        moment(entry.get("occurred_start")) or moment(entry.get("event_date")) or moment(entry.get("date"))
    )
    mentioned = moment(entry.get("mentioned_at"))
    source = text_lines(document)
    extra: dict[str, Any] = {
        name: text_lines(entry.get(key))
        for name, key in (("fact_type", "fact_type"), ("fact_type", "type"), ("context", "context"))
        if text_lines(entry.get(key))
    }
    if moment(entry.get("occurred_end")):
        extra["occurred_end"] = moment(entry.get("occurred_end"))
    entities = entry.get("entities")
    names = entities.split(",") if isinstance(entities, str) else entities
    if plain_tags(names):
        extra["entities"] = plain_tags(names)
    metadata = entry.get("metadata")
    if isinstance(metadata, dict):
        extra = {**metadata, **extra}
    yield from derived_chunks(
        "hindsight",
        text_lines(entry.get("id") or entry.get("source_id")) or f"{source}\n{text}"[:1000],
        text,
        where,
        metadata={
            "created_at": moment(entry.get("created_at")) or mentioned or occurred or file.modified_at,
            "occurred_at": occurred or mentioned,
            "conversation_id": source or None,
            "extra": extra,
        },
        tags=plain_tags(entry.get("tags")),
    )


def _page(file: SourceFile, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    """Yield a mental model or a directive: a text that is rewritten as the bank learns."""
    text = whole_text(entry["content"])
    if not text:
        yield ImportProblem(where, "a page without content")
        return
    key = text_lines(entry.get("id") or entry.get("name"))
    title = text_lines(entry.get("name"))
    yield Note(
        key=key,
        conversation_id=file.conversation,
        text=text,
        where=where,
        at=moment(entry.get("updated_at")) or moment(entry.get("created_at")) or file.modified_at,
        tags=plain_tags(entry.get("tags")),
        extra={"title": title} if title else {},
    )


def _sniff(head: FileHead) -> Claim:
    keys = head.keys
    document = "original_text" in keys or {"facts", "chunks", "retain_params"} <= keys
    memory = "text" in keys and keys & {"fact_type", "proof_count", "mentioned_at", "occurred_start"}
    page = {"bank_id", "name", "content"} <= keys
    return Claim.LIKELY if document or memory or page else Claim.NO


FORMAT = Format("hindsight", _sniff, _read, "memories of Hindsight")
