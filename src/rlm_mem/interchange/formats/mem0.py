"""Memories of mem0: the output of its ``get_all`` as JSON or JSON lines, and exports of OpenMemory.

The shapes are those of mem0's documentation in 2026 (docs.mem0.ai: "Export Stored Memories", "Get memories";
Python SDK 1.x and 2.x: a list, ``{"results": […]}``, a page with ``count`` and ``next``, ``relations`` of its
graph) and of the zip archive of OpenMemory (``openmemory/api/app/routers/backup.py`` of
github.com/mem0ai/mem0: ``memories.json``, ``memories.jsonl``). An export with a schema of the user's own
(``create_memory_export``) has no fixed shape, and is not read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.reading import SourceFile, json_records, moment, plain_tags, text_lines, whole_text
from rlm_mem.interchange.records import ImportNotice, ImportProblem, Record, derived_chunks

_INSIDE = ("results", "memories", "categories", "relations")
_OWNERS = ("user_id", "agent_id", "app_id", "run_id", "actor_id", "app", "role")
_MORE = re.compile(rb'"next"\s*:\s*"')
_HEAD_BYTES = 4096
_HIDDEN = ("paused", "archived")
"""States of OpenMemory in which no application can see a memory."""


def _read(file: SourceFile) -> Iterator[Record]:
    categories: dict[str, str] = {}  # names by id; OpenMemory lists them before the memories
    people: Counter[str] = Counter()
    for where, entry in json_records(file, _INSIDE):
        text = _text(entry)
        if text:
            people[text_lines(entry.get("user_id"))] += 1
            yield from _memory(file, where, entry, text, categories)
        elif "memory" in entry or "content" in entry:
            yield ImportProblem(where, "a memory without text")
        elif isinstance(entry.get("name"), str) and isinstance(entry.get("id"), str):
            categories[entry["id"]] = entry["name"]
        elif "source" in entry and "relationship" in entry:
            yield from _relation(file, where, entry)
        else:
            yield ImportProblem(where, "neither a memory nor a relation")
    yield from _notices(file, people)


def _notices(file: SourceFile, people: Counter[str]) -> Iterator[ImportNotice]:
    named = [f"{name} {count:,}" for name, count in people.most_common() if name]
    if len(named) > 1:
        listed = ", ".join(named[:3]) + (f" and {len(named) - 3:,} more" if len(named) > 3 else "")
        yield ImportNotice(
            file.where,
            f"memories of {len(named):,} people ({listed}) in one namespace: to keep them apart, undo the import, "
            "export each person separately, and import with --namespace people/NAME",
        )
    with file.opened() as handle:
        if _MORE.search(handle.read(_HEAD_BYTES).partition(b'"results"')[0]):
            yield ImportNotice(file.where, "the page names a next one: export and import all pages")


def _text(entry: dict[str, Any]) -> str:
    return whole_text(entry.get("memory", entry.get("content")))


def _memory(
    file: SourceFile, where: str, entry: dict[str, Any], text: str, categories: dict[str, str]
) -> Iterator[Record]:
    state = entry.get("state")
    if state == "deleted":
        return
    category_ids = entry.get("category_ids")
    named = [categories.get(str(one), "") for one in (category_ids if isinstance(category_ids, list) else [])]
    extra: dict[str, Any] = {name: text_lines(entry.get(name)) for name in _OWNERS if entry.get(name)}
    metadata = entry.get("metadata")
    if isinstance(metadata, dict):
        extra = {**metadata, **extra}
    created = moment(entry.get("created_at")) or file.modified_at
    yield from derived_chunks(
        "mem0",
        text_lines(str(entry.get("id") or "")) or text[:1000],
        text,
        where,
        metadata={
            "created_at": created,
            "modified_at": max(created, moment(entry.get("updated_at")) or created),
            "expires_at": moment(entry.get("expiration_date")),
            "conversation_id": text_lines(entry.get("run_id")) or None,
            "extra": extra,
        },
        tags=plain_tags([*plain_tags(entry.get("categories")), *named]),
        archived=state in _HIDDEN,
    )


def _relation(file: SourceFile, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    """Return one edge of the graph, as the text "source relationship target"."""
    parts = [entry["source"], entry["relationship"], entry.get("target", entry.get("destination"))]
    words = [text_lines(part).replace("_", " ") for part in parts]
    if not all(words):
        yield ImportProblem(where, "a relation without source, name or target")
        return
    text = " ".join(words)
    metadata = {"created_at": file.modified_at, "extra": {"relationship": words[1]}}
    yield from derived_chunks("mem0-relation", text, text, where, metadata=metadata, tags=["relation"])


def _sniff(head: FileHead) -> Claim:
    keys = head.keys
    if "memory" in keys and "id" in keys and keys & {"hash", "user_id", "agent_id", "run_id", "categories"}:
        return Claim.LIKELY
    if {"user", "apps", "categories"} <= keys or {"content", "state", "app", "categories"} <= keys:
        return Claim.LIKELY
    return Claim.NO


FORMAT = Format("mem0", _sniff, _read, "memories of mem0 and OpenMemory")
