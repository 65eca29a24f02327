"""Layered JSONL memories (``.agents/memory/{agents/ID|global}/memory.jsonl``): a scope becomes a namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rlm_mem.chunk import CHUNK_TYPES, Chunk
from rlm_mem.errors import InputError
from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.reading import SourceFile, clean, line_objects, moment, plain_tags, text_lines
from rlm_mem.interchange.records import ImportedChunk, ImportProblem, Record, mapped_id
from rlm_mem.text.tokens import count_tokens

_SCOPES = ("project_agent", "project_global", "user_agent", "user_global")

_REQUIRED = ("id", "created_at", "scope", "entry_type", "content", "project_id")
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9._@-]+")
_RECOVERED = ("supports", "contradicts")


def read_layered(file: SourceFile) -> Iterator[Record]:
    """Read the last line of each id, with the links that only its earlier lines have. The file is read twice."""
    last: dict[str, str] = {}
    recovered: dict[str, list[tuple[str, str]]] = {}
    quiet = replace(file, problem=lambda _where, _reason: None)  # the second pass reports the problems
    for where, entry in line_objects(quiet):
        if not _missing(entry):
            last[entry["id"]] = where
            links = [pair for pair in _links(entry.get("links")) if pair[0] in _RECOVERED]
            if links:
                recovered.setdefault(entry["id"], []).extend(links)
    file.moved = lambda _count: None  # progress counts the first pass only
    for where, entry in line_objects(file):
        if missing := _missing(entry):
            yield ImportProblem(where, f"without {', '.join(missing)}")
        elif last.get(entry["id"]) == where:
            yield _memory(entry, recovered.get(entry["id"], []), where)


def _missing(entry: dict[str, Any]) -> list[str]:
    missing = [name for name in _REQUIRED if not isinstance(entry.get(name), str) or not entry[name].strip()]
    scope = entry.get("scope")
    if not missing and scope not in _SCOPES:
        return [f"a known scope ({str(scope)[:40]!r})"]
    if not missing and scope in ("project_agent", "user_agent") and not text_lines(entry.get("agent_id")):
        return ["agent_id"]
    return missing


def _namespace(entry: dict[str, Any]) -> str:
    project, agent = _part(entry["project_id"]), _part(entry.get("agent_id"))
    return {
        "project_agent": f"project/{project}/agent/{agent}",
        "project_global": f"project/{project}",
        "user_agent": f"user/agent/{agent}",
        "user_global": "user",
    }[entry["scope"]]


def _part(value: Any) -> str:
    return _NOT_ALLOWED.sub("-", str(value or "")).strip("-._@")[:80] or "unnamed"


def _links(raw: Any) -> list[tuple[str, str]]:
    """Return (type, target) of each link, from a dict of type to ids or from a list of objects."""
    found: list[tuple[str, str]] = []
    if isinstance(raw, dict):
        for kind, targets in raw.items():
            names = [targets] if isinstance(targets, str) else targets if isinstance(targets, list) else []
            found += [(kind, _target(name)) for name in names if _target(name)]
    elif isinstance(raw, list):
        for item in raw:
            if isinstance(item, dict):
                kind = text_lines(item.get("type") or item.get("link_type"), 64) or "related_to"
                found.append((kind, _target(item)))
            elif isinstance(item, str):
                found.append(("related_to", item))
    return [(kind, target) for kind, target in found if target and text_lines(kind, 64) == kind]


def _target(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("target_id") or value.get("target") or value.get("id")
    return value if isinstance(value, str) else ""


def _memory(
    entry: dict[str, Any], recovered: list[tuple[str, str]], where: str
) -> ImportedChunk | ImportProblem:
    namespace = _namespace(entry)
    created = moment(entry["created_at"])
    if created is None:
        return ImportProblem(where, f"created_at {entry['created_at'][:40]!r} is not a time")
    # The same id may occur in several scopes, but ids are unique within a store.
    chunk_id = mapped_id(entry["id"], namespace)
    content = clean(entry["content"])
    more = entry.get("metadata")
    extra: dict[str, Any] = {"entry_type": text_lines(entry["entry_type"]), "scope": entry["scope"]}
    extra |= {
        name: value for name, value in (more if isinstance(more, dict) else {}).items() if name not in extra
    }
    links = dict.fromkeys([*_links(entry.get("links")), *recovered])
    try:
        chunk = Chunk.from_dict(
            {
                "id": chunk_id,
                "content": content,
                "type": entry["entry_type"] if entry["entry_type"] in CHUNK_TYPES else "note",
                "tokens": entry["tokens"] if _count(entry.get("tokens")) else count_tokens(content),
                "tags": plain_tags(entry.get("tags")),
                "namespace": namespace,
                "links": [
                    {"target_id": mapped_id(target, namespace), "type": kind, "created_at": created}
                    for kind, target in links
                    if mapped_id(target, namespace) != chunk_id
                ],
                "metadata": {
                    "created_at": created,
                    "modified_at": moment(entry.get("updated")) or created,
                    "accessed_at": moment(entry.get("last_accessed")) or created,
                    "access_count": entry["access_count"] if _count(entry.get("access_count")) else 0,
                    "confidence": 0.7 if entry.get("confidence") is None else entry["confidence"],
                    "conversation_id": text_lines(entry.get("conversation_id")) or None,
                    "source": text_lines(entry.get("source")) or "unknown",
                    "valid_to": moment(entry.get("expires_at")),
                    "provenance": {"original_id": entry["id"]},
                    "extra": extra,
                },
            }
        )
    except InputError as error:
        return ImportProblem(where, str(error))
    return ImportedChunk(chunk, where, original_id=entry["id"], derived=True)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _sniff(head: FileHead) -> Claim:
    if not head.is_json_lines:
        return Claim.NO
    if head.path.name == "memory.jsonl" and "entityType" not in head.keys and "relationType" not in head.keys:
        return Claim.SURE
    return Claim.LIKELY if any(entry.get("scope") in _SCOPES for entry in head.lines) else Claim.NO


LAYERED = Format("layered-jsonl", _sniff, read_layered, "layered memories (.agents/memory)")
