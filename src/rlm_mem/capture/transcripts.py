"""The messages of a session, read from the transcripts that coding agents write.

Claude Code, Codex, Copilot CLI, Cursor and Qwen Code write JSON lines; Gemini CLI JSON lines or one JSON object. Tool
calls, their output, reasoning and what the client itself inserts are left out. A transcript is untrusted: lines that
are huge, broken, half written or nested too deeply are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from rlm_mem.errors import StorageError
from rlm_mem.record import FrozenRecord

Speaker = Literal["user", "agent"]

#: Tag of messages that are kept whole.
WHOLE = "transcript"

_MAX_BYTES = 64_000_000  # per call; the next call reads the rest
_MAX_LINE = 2_000_000  # bytes; a longer line is a pasted file or the output of a tool
_MAX_TEXT = 20_000  # characters of one message
_SPEAKERS: dict[str, Speaker] = {
    "user": "user", "human": "user", "user_message": "user", "user.message": "user",
    "assistant": "agent", "gemini": "agent", "model": "agent", "agent_message": "agent", "assistant.message": "agent",
}  # fmt: skip
_TEXT_PARTS = (None, "text", "input_text", "output_text")
_INSERTED = ("<", "# AGENTS.md", "Caveat: The messages below", "[Request interrupted")
_GENERATED = ("source", "isAutopilotContinuation")  # of a prompt that nobody typed into Copilot CLI
# What hooks told the model: Gemini CLI and Qwen Code record it with the prompt, in tags that it cannot close.
_TOLD = ("hook_context", "qwen:user-prompt-submit-context")


class Session(FrozenRecord, frozen=True):
    """One session of a client.

    Attributes:
        id: the client's id of the session; used as the conversation id of the memories.
        client: for example ``claude-code``.
    """

    id: str
    client: str


class SessionMessage(FrozenRecord, frozen=True):
    """One message of the user or the agent.

    Attributes:
        at: its time as the client wrote it (ISO 8601), if any.
    """

    speaker: Speaker
    text: str
    at: str | None = None


class Part(FrozenRecord, frozen=True):
    """What was added to a transcript since it was last read.

    Attributes:
        offset: the byte from which to read on, the start of a line unless that line is longer than one call reads.
    """

    messages: list[SessionMessage]
    offset: int


def read_part(path: Path, offset: int = 0) -> Part:
    """Read a transcript from a byte on.

    A file shorter than the offset was replaced and is read from its beginning. The last line counts if it ends with a
    line break or is complete JSON.

    Raises:
        StorageError: the path cannot be read, or is not a file.
    """
    try:
        if not path.is_file():
            raise StorageError(f"there is no transcript {path}")
        with path.open("rb") as file:
            first = file.read(1)
            size = file.seek(0, 2)
            begin = offset if 0 <= offset <= size else 0
            file.seek(begin)
            data = file.read(_MAX_BYTES)
    except StorageError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"the transcript {path} cannot be read: {reason}") from None
    if first in b"{[" and (whole := _read_document(path, size)) is not None:
        return Part(whole, size)
    messages: list[SessionMessage] = []
    end = begin
    for line in data.splitlines(keepends=True):
        entry = _decode_entry(line)
        fills_the_part = len(line) == _MAX_BYTES  # a line that no call could read to its end is skipped
        if entry is None and not line.endswith(b"\n") and not fills_the_part:
            break  # incomplete: the next call reads it
        end += len(line)
        if entry is not None:
            messages += _messages_of(entry)
    return Part(_deduplicated(messages), end)


def _read_document(path: Path, size: int) -> list[SessionMessage] | None:
    """Return the messages of a transcript that is one JSON object or list; None for any other."""
    if size > _MAX_BYTES:
        return None
    try:
        with path.open("rb") as file:
            first = _decode_entry(file.readline(_MAX_LINE))
            if first is not None and not isinstance(first.get("messages"), list):
                return None  # lines
            file.seek(0)
            content = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    entries = content.get("messages") if isinstance(content, dict) else content
    if not isinstance(entries, list):
        return None
    return _deduplicated(
        [message for entry in entries if isinstance(entry, dict) for message in _messages_of(entry)]
    )


def _decode_entry(line: bytes) -> dict[str, Any] | None:
    if len(line) > _MAX_LINE:
        return None
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def without_context(text: str) -> str:
    """Return what a person typed: a prompt without the context that hooks added to it.

    A tag within a line that is not closed is of the person, who writes about it.
    """
    for tag in _TOLD:
        opening, closing = f"<{tag}>", f"</{tag}>"
        *closed, rest = text.split(closing)
        kept = [part.partition(opening)[0] if opening in part else part + closing for part in closed]
        place = 0 if rest.startswith(opening) else rest.find(f"\n{opening}")
        text = "".join(kept) + (rest if place < 0 else rest[:place])
    return text.strip()


def _messages_of(entry: dict[str, Any]) -> Iterator[SessionMessage]:
    """Yield the messages of one entry, in the format of any client."""
    if entry.get("isMeta") or entry.get("isSidechain") or entry.get("isCompactSummary"):
        return
    at = entry.get("timestamp")
    # Codex wraps a message in "payload", Copilot CLI in "data", Claude Code, Cursor and Qwen Code in "message"; Gemini
    # CLI does not wrap it. The text is in "content", for Qwen Code in "parts".
    inner = entry.get("payload")
    if isinstance(inner, dict):
        role = inner.get("role") if inner.get("type") == "message" else inner.get("type")
    else:
        data = entry.get("data")
        if isinstance(data, dict) and (entry.get("agentId") or any(map(data.get, _GENERATED))):
            return
        inner = next((one for one in (entry.get("message"), data) if isinstance(one, dict)), entry)
        role = inner.get("role") or entry.get("role") or entry.get("type")
    speaker = _SPEAKERS.get(role) if isinstance(role, str) else None
    if speaker is None:
        return
    content = next((inner[key] for key in ("content", "parts", "message") if key in inner), None)
    text = without_context(_text(content))
    if text.startswith("<user_query>"):  # Cursor
        text = text.removeprefix("<user_query>").partition("</user_query>")[0].strip()
    if text and not text.startswith(_INSERTED):
        # JSON may contain half a surrogate pair.
        safe = text[:_MAX_TEXT].encode("utf-8", "replace").decode("utf-8")
        yield SessionMessage(speaker, safe, at if isinstance(at, str) and len(at) <= 40 else None)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part if isinstance(part, str) else _part_text(part) for part in content[:1_000]]
    return "\n".join(part for part in parts if part)


def _part_text(part: object) -> str:
    if not isinstance(part, dict) or part.get("type") not in _TEXT_PARTS or part.get("thought"):
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else ""


def _deduplicated(messages: list[SessionMessage]) -> list[SessionMessage]:
    """Return each message once: Codex records most of them twice, as an event and as a response."""
    return list({(message.speaker, message.text): message for message in reversed(messages)}.values())[::-1]
