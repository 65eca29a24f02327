"""Letta agents: memory blocks, files and conversations of an AgentFile (``.af``), and exports of archival memory.

The shapes are those of AgentFile in both its versions (docs.letta.com, "AgentFile";
``letta/schemas/agent_file.py`` of letta 0.11 and later: ``agents``, ``blocks``, ``files``; the single agent
before it: ``core_memory``, ``messages``) and of the script in "Exporting archival memories" (a list of
passages), as JSON or JSON lines. Prompts, tools, keys and settings of an agent are not imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.formats.chats import Parts, content_text
from rlm_mem.interchange.reading import (
    SourceFile,
    json_records,
    moment,
    objects_in,
    plain_tags,
    text_lines,
    whole_text,
)
from rlm_mem.interchange.records import ChatMessage, ImportProblem, Note, Record, derived_chunks

_INSIDE = ("agents", "blocks", "files", "core_memory", "messages", "passages")
_AGENT_KEYS = {"core_memory", "in_context_message_ids", "block_ids", "agent_type", "blocks"}


def _read(file: SourceFile) -> Iterator[Record]:
    parts = Parts(file)
    for where, entry in json_records(file, _INSIDE):
        if "label" in entry and "value" in entry:
            yield from _block(file, where, entry)
        elif "file_name" in entry and "text" not in entry:
            yield from _file(file, where, entry)
        elif "role" in entry:
            yield from _message(parts, where, entry, file.conversation)
        elif "messages" in entry or "in_context_message_ids" in entry or "core_memory" in entry:
            yield from _agent(file, parts, where, entry)
        elif "text" in entry:
            yield from _passage(file, where, entry)
        else:
            yield ImportProblem(where, "neither an agent nor a block nor a passage")
    yield from parts.end()


def _agent(file: SourceFile, parts: Parts, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    name = text_lines(entry.get("name")) or text_lines(entry.get("id"))
    for block in objects_in(entry.get("core_memory")):
        yield from _block(file, where, block, owner=f"{name}:")
    conversation = f"{file.conversation}:{name}"[:1000] if name else file.conversation
    for message in objects_in(entry.get("messages")):
        yield from _message(parts, where, message, conversation)


def _block(file: SourceFile, where: str, entry: dict[str, Any], owner: str = "") -> Iterator[Record]:
    text, label = whole_text(entry.get("value")), text_lines(entry.get("label"))
    if not text:  # a new agent has empty blocks
        return
    description = text_lines(entry.get("description"))
    yield Note(
        key=f"block:{text_lines(entry.get('id')) or owner + label}",
        conversation_id=file.conversation,
        text=text,
        where=where,
        at=moment(entry.get("updated_at")) or moment(entry.get("created_at")) or file.modified_at,
        tags=plain_tags([label]),
        extra={"title": label, **({"description": description} if description else {})},
    )


def _file(file: SourceFile, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    text = whole_text(entry.get("content"))
    name = text_lines(entry.get("original_file_name")) or text_lines(entry.get("file_name"))
    if not text:
        yield ImportProblem(where, f"the export lacks the content of the file {name or 'without a name'}")
        return
    yield Note(
        key=f"file:{text_lines(entry.get('id')) or name}",
        conversation_id=f"{file.conversation}:{name}"[:1000],
        text=text,
        where=where,
        at=moment(entry.get("file_last_modified_date"))
        or moment(entry.get("file_creation_date"))
        or file.modified_at,
        extra={"title": name},
    )


def _passage(file: SourceFile, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    text = whole_text(entry["text"])
    if not text:
        yield ImportProblem(where, "a passage without text")
        return
    if entry.get("is_deleted") is True:
        return
    metadata = entry.get("metadata")
    extra = dict(metadata) if isinstance(metadata, dict) else {}
    for name in ("archive_id", "file_name"):
        if text_lines(entry.get(name)):
            extra[name] = text_lines(entry.get(name))
    yield from derived_chunks(
        "letta",
        text_lines(entry.get("id")) or text[:1000],
        text,
        where,
        metadata={"created_at": moment(entry.get("created_at")) or file.modified_at, "extra": extra},
        tags=plain_tags(entry.get("tags")),
    )


def _message(parts: Parts, where: str, entry: dict[str, Any], conversation: str) -> Iterator[Record]:
    role = entry.get("role")
    text = ""
    if role == "user":
        text = _user_text(content_text(entry.get("content", entry.get("text"))))
    elif role == "assistant":
        sent = [_sent_message(call) for call in objects_in(entry.get("tool_calls"))]
        # If tools are called, the text is the agent's reasoning; its messages are in the calls.
        text = (
            "\n".join(one for one in sent if one)
            if sent
            else content_text(entry.get("content", entry.get("text")))
        )
    if text:
        author = "User" if role == "user" else "Assistant"
        yield from parts.add(conversation, ChatMessage(author, text, moment(entry.get("created_at"))), where)


def _user_text(text: str) -> str:
    """Return the text of a user message. Letta wraps messages in typed JSON; system events yield an empty text."""
    envelope = _json_object(text)
    if isinstance(envelope.get("type"), str) and "time" in envelope:
        return whole_text(envelope.get("message")) if envelope["type"] == "user_message" else ""
    return text


def _sent_message(call: dict[str, Any]) -> str:
    """Return the message that a call of the tool ``send_message`` sends; empty for other tools."""
    function = call.get("function")
    if not isinstance(function, dict) or function.get("name") != "send_message":
        return ""
    return whole_text(_json_object(function.get("arguments")).get("message"))


def _json_object(text: Any) -> dict[str, Any]:
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return {}
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _sniff(head: FileHead) -> Claim:
    if head.suffix == ".af":
        return Claim.SURE if head.text.lstrip().startswith("{") and '"' in head.text else Claim.NO
    keys = head.keys
    agent = len(keys & _AGENT_KEYS) >= 2
    passage = {"text", "id"} <= keys and keys & {"archive_id", "organization_id", "last_updated_by_id"}
    return Claim.LIKELY if agent or passage else Claim.NO


FORMAT = Format("letta", _sniff, _read, "agents and archival memory of Letta")
