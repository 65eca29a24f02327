"""Claude's memory (``memories.json``) and projects (``projects.json``) from a data export, beside the chats.

The shapes are those of exports in 2026, in one file each or one per account and project: ``conversations_memory``
and ``project_memories`` (text by project), and ``uuid``, ``name``, ``description``, ``prompt_template`` and ``docs``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.reading import SourceFile, json_records, moment, text_lines, whole_text
from rlm_mem.interchange.records import ImportProblem, Note, Record


def _read(file: SourceFile) -> Iterator[Record]:
    for where, entry in json_records(file, ()):
        found = [*_memory(where, entry), *_project(where, entry)]
        if not found and not {"conversations_memory", "project_memories", "docs"} & entry.keys():
            yield ImportProblem(where, "neither a memory nor a project of Claude")
        yield from found


def _memory(where: str, entry: dict[str, Any]) -> Iterator[Note]:
    account = text_lines(entry.get("account_uuid")) or "account"
    text = whole_text(entry.get("conversations_memory"))
    if text:
        yield Note("", f"claude-memory:{account}", text, where)
    projects = entry.get("project_memories")
    for project, memory in projects.items() if isinstance(projects, dict) else ():
        text = whole_text(memory)
        if text:
            yield Note("memory", f"claude-project:{text_lines(project)}", text, where)


def _project(where: str, entry: dict[str, Any]) -> Iterator[Note]:
    project_id = text_lines(entry.get("uuid"))
    if not project_id:
        return
    conversation, name = f"claude-project:{project_id}", text_lines(entry.get("name"))
    at, extra = moment(entry.get("created_at")), {"title": name} if name else {}
    descriptions = [
        text for text in map(whole_text, map(entry.get, ("description", "prompt_template"))) if text
    ]
    if descriptions:
        yield Note(
            "project",
            conversation,
            "\n\n".join([*([f"# {name}"] if name else []), *descriptions]),
            where,
            at,
            extra=extra,
        )
    docs = entry.get("docs")
    for number, doc in enumerate(docs if isinstance(docs, list) else ()):
        text = whole_text(doc.get("content")) if isinstance(doc, dict) else ""
        if text:
            key = text_lines(doc.get("uuid") or doc.get("filename")) or str(number)
            title = {"title": text_lines(doc.get("filename"))} if doc.get("filename") else {}
            yield Note(
                key, conversation, text, where, moment(doc.get("created_at")) or at, extra={**extra, **title}
            )


def _sniff(head: FileHead) -> Claim:
    keys = head.keys
    memory = keys & {"conversations_memory", "project_memories"}
    project = {"uuid", "name", "docs"} <= keys and "prompt_template" in keys
    project = project or ({"uuid", "name", "docs", "is_private"} <= keys and "chat_messages" not in keys)
    return Claim.LIKELY if memory or project else Claim.NO


FORMAT = Format("claude-memory", _sniff, _read, "memory and projects of Claude")
