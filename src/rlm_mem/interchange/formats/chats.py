"""Chat exports: ChatGPT and Claude data exports, Claude Code transcripts, and plain lists of role and content."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.reading import (
    Objects,
    SourceFile,
    clean,
    entry_objects,
    line_objects,
    moment,
    objects_in,
    plain_tags,
    text_lines,
)
from rlm_mem.interchange.records import ChatMessage, Dialogue, ImportProblem, Record

_MESSAGES = 200  # messages per part: earlier parts are unchanged when a conversation grows
_CHARS = 200_000
_INSIDE = ("conversations", "messages", "chat_messages")
_AUTHORS = {
    "human": "User",
    "user": "User",
    "assistant": "Assistant",
    "ai": "Assistant",
    "model": "Assistant",
}


def read_array(file: SourceFile) -> Iterator[Record]:
    """Read a JSON array of conversations (ChatGPT, Claude) or of messages; the form of each entry is detected."""
    return _read(file, entry_objects(file, _INSIDE))


def read_message_lines(file: SourceFile) -> Iterator[Record]:
    """Read lines of ``{role, content, timestamp}``, of one conversation or of several (``conversation_id``)."""
    return _read(file, line_objects(file))


def _read(file: SourceFile, objects: Objects) -> Iterator[Record]:
    parts = Parts(file)
    for where, entry in objects:
        if isinstance(entry.get("mapping"), dict):
            yield from _conversation(file, where, entry, _chatgpt_messages(entry), entry.get("create_time"))
        elif isinstance(entry.get("chat_messages"), list):
            messages = _claude_messages(entry["chat_messages"])
            yield from _conversation(file, where, entry, messages, entry.get("created_at"))
        elif isinstance(entry.get("messages"), list):
            messages = _plain_messages(entry["messages"])
            yield from _conversation(file, where, entry, messages, entry.get("created_at"))
        else:
            yield from _one_message(parts, where, entry)
    yield from parts.end()


def read_transcript(file: SourceFile) -> Iterator[Record]:
    """Read a Claude Code transcript: messages of the user and the assistant, without tool calls and their output."""
    parts = Parts(file)
    for where, entry in line_objects(file):
        if entry.get("type") not in ("user", "assistant") or entry.get("isMeta"):
            continue
        message = entry.get("message")
        if not isinstance(message, dict):
            yield ImportProblem(where, "a message without its text")
            continue
        text = content_text(message.get("content"))
        if text:
            author = _AUTHORS.get(str(message.get("role") or entry["type"]), "User")
            extra = {"project": text_lines(entry.get("cwd"))} if entry.get("cwd") else {}
            session = text_lines(entry.get("sessionId")) or file.conversation
            yield from parts.add(
                session, ChatMessage(author, text, moment(entry.get("timestamp"))), where, extra
            )
    yield from parts.end()


class Parts:
    """Collects consecutive messages of a conversation into parts of bounded size."""

    def __init__(self, file: SourceFile) -> None:
        self.fallback = file.conversation
        self._longest = file.max_text
        self._parts: dict[str, int] = {}
        self._conversation = ""
        self._messages: list[ChatMessage] = []
        self._chars = 0
        self._where = ""
        self._extra: dict[str, Any] = {}
        self._tags: list[str] = []

    def add(
        self,
        conversation: str,
        message: ChatMessage,
        where: str,
        extra: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
    ) -> Iterator[Dialogue | ImportProblem]:
        """Add a message; yield the part that this completes, if any, or that the message is too long."""
        size = len(message.text.encode("utf-8", "surrogatepass"))
        if size > self._longest:
            limit = f"at most {self._longest:,} are taken (ingest.max_content_bytes)"
            yield ImportProblem(where, f"a message of {size:,} bytes: {limit}")
            return
        full = len(self._messages) >= _MESSAGES or self._chars + len(message.text) > _CHARS
        if self._messages and (conversation != self._conversation or full):
            yield from self.end()
        if not self._messages:
            self._conversation, self._where = conversation, where
            self._extra, self._tags = dict(extra or {}), list(tags)
        # A very long message is split, so that a part stays within the limit of one remember.
        text = message.text
        last = max(0, len(text) - 1) // _CHARS * _CHARS
        for start in range(0, last, _CHARS):
            self._messages.append(replace(message, text=text[start : start + _CHARS]))
            yield from self.end()
        self._messages.append(replace(message, text=text[last:]) if last else message)
        self._chars += len(text) - last

    def end(self) -> Iterator[Dialogue]:
        """Yield the last part, if it has messages."""
        if not self._messages:
            return
        part = self._parts.get(self._conversation, 0)
        self._parts[self._conversation] = part + 1
        yield Dialogue(
            key=f"{self._conversation}#{part}",
            conversation_id=self._conversation,
            messages=self._messages,
            where=self._where,
            part=part,
            tags=self._tags,
            extra=self._extra,
        )
        self._messages, self._chars = [], 0


def _conversation(
    file: SourceFile, where: str, entry: dict[str, Any], messages: Iterator[ChatMessage], created: Any
) -> Iterator[Record]:
    title = text_lines(entry.get("title") or entry.get("name"))
    conversation_id = entry.get("conversation_id") or entry.get("uuid") or entry.get("id")
    conversation = text_lines(conversation_id) if isinstance(conversation_id, str) else ""
    if not conversation:
        conversation = f"{file.conversation}:{title or where.rsplit(' ', 1)[-1]}"[:1000]
    parts = Parts(file)
    started = moment(created)
    for message in messages:
        message.at = message.at or started
        yield from parts.add(
            conversation, message, where, {"title": title} if title else {}, plain_tags(entry.get("tags"))
        )
    yield from parts.end()


def _one_message(parts: Parts, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    role = entry.get("role", entry.get("sender", entry.get("author")))
    content = entry.get("content", entry.get("text"))
    if role is None or content is None:
        yield ImportProblem(where, "neither a conversation nor a message with role and content")
        return
    message = _plain_message(entry)
    if message is not None:
        conversation_id = entry.get("conversation_id", entry.get("session_id"))
        conversation = text_lines(conversation_id) or parts.fallback
        yield from parts.add(conversation, message, where, tags=plain_tags(entry.get("tags")))


# --- the shapes of messages ------------------------------------------------------------------------


def _plain_messages(entries: list[Any]) -> Iterator[ChatMessage]:
    for entry in objects_in(entries):
        message = _plain_message(entry)
        if message is not None:
            yield message


def _plain_message(entry: dict[str, Any]) -> ChatMessage | None:
    role = entry.get("role", entry.get("sender", entry.get("author")))
    if role in ("system", "tool", "developer"):
        return None
    text = content_text(entry.get("content", entry.get("text")))
    when = entry.get("timestamp", entry.get("created_at", entry.get("create_time", entry.get("time"))))
    return ChatMessage(_author(role), text, moment(when)) if text else None


def _author(role: Any) -> str:
    name = text_lines(role if isinstance(role, str) else "", 60).replace(":", " ")
    return _AUTHORS.get(name.lower(), name) or "User"


def content_text(content: Any) -> str:
    """Return the text of a message whose content is a text, or a list of blocks, some of them text."""
    if isinstance(content, str):
        return clean(content).strip()
    if isinstance(content, dict):
        content = content.get("parts") or [content]
    parts = []
    for block in content if isinstance(content, list) else []:
        if isinstance(block, str):
            parts.append(block)
        elif (
            isinstance(block, dict)
            and isinstance(block.get("text"), str)
            and block.get("type", "text") in ("text", "code")
        ):
            parts.append(block["text"])
    return clean("\n".join(part for part in parts if part.strip())).strip()


def _claude_messages(entries: list[Any]) -> Iterator[ChatMessage]:
    for entry in objects_in(entries):
        text = content_text(entry.get("content")) or content_text(entry.get("text"))
        attached = [
            clean(item["extracted_content"])
            for item in objects_in(entry.get("attachments"))
            if isinstance(item.get("extracted_content"), str)
        ]
        text = "\n".join([text, *attached]).strip()
        if text:
            yield ChatMessage(
                _author(entry.get("sender", entry.get("role"))), text, moment(entry.get("created_at"))
            )


def _chatgpt_messages(entry: dict[str, Any]) -> Iterator[ChatMessage]:
    """Yield the messages from the root to the current node; replaced answers are left out."""
    for node in _current_branch(entry["mapping"], entry.get("current_node")):
        message = node.get("message")
        if not isinstance(message, dict):
            continue
        author = message.get("author")
        role = author.get("role") if isinstance(author, dict) else author
        content = message.get("content")
        if role not in ("user", "assistant") or not isinstance(content, dict):
            continue
        if content.get("content_type", "text") not in ("text", "multimodal_text", "code"):
            continue
        text = content_text(content.get("parts")) or content_text(content.get("text"))
        if text:
            yield ChatMessage(_author(role), text, moment(message.get("create_time")))


def _current_branch(mapping: dict[str, Any], current: Any) -> list[dict[str, Any]]:
    nodes = {key: node for key, node in mapping.items() if isinstance(node, dict)}
    if not isinstance(current, str) or current not in nodes:
        parents = {node.get("parent") for node in nodes.values() if isinstance(node.get("parent"), str)}
        leaves = [key for key in nodes if key not in parents]
        current = leaves[-1] if leaves else None
    path: list[dict[str, Any]] = []
    seen: set[str] = set()
    while isinstance(current, str) and current in nodes and current not in seen:
        seen.add(current)
        path.append(nodes[current])
        current = nodes[current].get("parent")
    return path[::-1]


# --- detection -------------------------------------------------------------------------------------

_MESSAGE_KEYS = {"role", "sender", "author", "messages"}
_TRANSCRIPT_KEY = re.compile(r'"(?:sessionId|parentUuid)"\s*:')


def _sniff_chatgpt(head: FileHead) -> Claim:
    return Claim.LIKELY if head.is_json and head.message_key == "mapping" else Claim.NO


def _sniff_claude(head: FileHead) -> Claim:
    claimed = head.is_json and head.message_key in ("chat_messages", "sender")
    return Claim.LIKELY if claimed else Claim.NO


def _sniff_messages(head: FileHead) -> Claim:
    claimed = head.is_json and (head.message_key or head.path.name == "conversations.json")
    return Claim.POSSIBLE if claimed else Claim.NO


def _sniff_transcript(head: FileHead) -> Claim:
    if not head.is_json_lines:
        return Claim.NO
    claimed = any(
        "sessionId" in entry or ("message" in entry and entry.get("type") in ("user", "assistant"))
        for entry in head.lines
    )
    if not claimed and not any(_MESSAGE_KEYS & entry.keys() for entry in head.lines):
        # A line longer than the head does not parse: look for a key at its beginning.
        claimed = _TRANSCRIPT_KEY.search(head.text) is not None
    return Claim.LIKELY if claimed else Claim.NO


def _sniff_message_lines(head: FileHead) -> Claim:
    return Claim.POSSIBLE if head.is_json_lines and head.text.strip() else Claim.NO


CHATGPT = Format("chatgpt", _sniff_chatgpt, read_array, "a ChatGPT data export")
CLAUDE = Format("claude", _sniff_claude, read_array, "a Claude data export")
MESSAGES = Format("messages-json", _sniff_messages, read_array, "messages in a JSON array")
MESSAGE_LINES = Format("messages-jsonl", _sniff_message_lines, read_message_lines, "messages as JSON lines")
TRANSCRIPT = Format("claude-code", _sniff_transcript, read_transcript, "Claude Code transcripts")
