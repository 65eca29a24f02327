"""Items of a LangGraph store as JSON: ``[item.dict() for item in store.search((), limit=…)]``, or one item a line.

The shape is that of ``Item.dict()`` and ``SearchItem.dict()`` of langgraph-checkpoint 4: ``namespace``, ``key``,
``value``, ``created_at``, ``updated_at``. A value is any JSON object; LangMem writes its text at ``content`` or
``content.content``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.reading import SourceFile, json_records, moment, text_lines, whole_text
from rlm_mem.interchange.records import ImportProblem, Record, derived_chunks

_INSIDE = ("items", "data")
_TEXTS = ("text", "content", "memory", "data")
_MAX_DEPTH = 3


def _read(file: SourceFile) -> Iterator[Record]:
    for where, entry in json_records(file, _INSIDE):
        parts, key, value = entry.get("namespace"), entry.get("key"), entry.get("value")
        if not isinstance(parts, list) or not isinstance(key, str) or not isinstance(value, dict):
            yield ImportProblem(where, "not an item with namespace, key and value")
            continue
        text = _text(value)
        if not text:
            yield ImportProblem(where, "an item without a value")
            continue
        namespace = "/".join(text_lines(str(part)) for part in parts)
        created = moment(entry.get("created_at")) or file.modified_at
        yield from derived_chunks(
            "langgraph",
            f"{namespace}/{text_lines(key)}",
            text,
            where,
            metadata={
                "created_at": created,
                "modified_at": max(created, moment(entry.get("updated_at")) or created),
                "extra": {"namespace": namespace, "key": text_lines(key)},
            },
        )


def _text(value: dict[str, Any]) -> str:
    """Return the text of a value: its text field, at any depth, if there is one, else the value as JSON."""
    inner: Any = value
    for _ in range(_MAX_DEPTH):
        if not isinstance(inner, dict):
            break
        inner = next((inner[name] for name in _TEXTS if inner.get(name)), None)
    if isinstance(inner, str) and inner.strip():
        return whole_text(inner)
    return whole_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) if value else ""


def _sniff(head: FileHead) -> Claim:
    return Claim.LIKELY if {"namespace", "key", "value"} <= head.keys else Claim.NO


FORMAT = Format("langgraph", _sniff, _read, "items of a LangGraph store")
