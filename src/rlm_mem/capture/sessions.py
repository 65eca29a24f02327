"""What a session leaves in the memory: the sentences that the rules keep, bounded, screened and put before a reviewer.

Where the last reading of a transcript ended, and how much of the session is kept already, stands in a file of the
namespace that is written in one transaction with the memories: a hook that is killed, repeated, or run twice at once
neither loses nor doubles anything.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rlm_mem.capture.rules import Kept, Rules
from rlm_mem.capture.transcripts import SessionMessage, read_part
from rlm_mem.chunk import check_time
from rlm_mem.errors import InputError, InvalidChunk
from rlm_mem.text.secrets import screen

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

__all__ = ["CAPTURED", "Captured", "Session", "capture_messages", "capture_transcript", "state_name"]

#: The tag of what came into the memory this way.
CAPTURED = "captured"

_log = logging.getLogger(__name__)
_SPEAKERS = {"user": "User", "agent": "Agent"}
_SHORTEST_WHOLE = 25  # characters of a message that is kept whole


@dataclass(frozen=True, slots=True)
class Session:
    """Whose session it is.

    Attributes:
        id: as the client names it; the conversation of what is kept.
        client: for example ``claude-code``.
    """

    id: str
    client: str


@dataclass
class Captured:
    """What one reading kept.

    Attributes:
        chunk_ids: new memories.
        left_out: sentences beyond the bound of the session.
    """

    chunk_ids: list[str] = field(default_factory=list)
    left_out: int = 0


class _State(msgspec.Struct):
    """How far a session was read."""

    offset: int = 0
    kept: int = 0


def state_name(session_id: str) -> str:
    """The file that says how far a session was read."""
    return f"system/capture/{hashlib.sha256(session_id.encode('utf-8', 'replace')).hexdigest()[:20]}.json"


def capture_transcript(memory: Memory, path: Path, session: Session, rules: Rules) -> Captured:
    """Keep what the rules keep of what was added to a transcript since it was last read.

    Args:
        memory: of the project.

    Raises:
        StorageError: the transcript cannot be read, or the memory cannot be written.
    """
    files = memory.store.backend.files(memory.store.namespace)
    name = state_name(session.id)
    captured = Captured()
    # Read before the lock is taken: others do not wait while a long transcript is read.
    state = _state(files.read(name))
    part = read_part(path, state.offset)
    if part.offset == state.offset:
        return captured
    with files.transaction():
        now = _state(files.read(name))
        if now.offset != state.offset:
            return captured  # another hook of this session has read it meanwhile
        captured = _keep(memory, part.messages, session, rules, now)
        now.offset = part.offset
        files.write(name, msgspec.json.encode(now))
    return captured


def capture_messages(
    memory: Memory, messages: Iterable[SessionMessage], session: Session, rules: Rules
) -> Captured:
    """The same for messages at hand, where a client hands over what was said instead of a file."""
    files = memory.store.backend.files(memory.store.namespace)
    name = state_name(session.id)
    with files.transaction():
        state = _state(files.read(name))
        captured = _keep(memory, messages, session, rules, state)
        if captured.chunk_ids:
            files.write(name, msgspec.json.encode(state))
    return captured


def _state(data: bytes | None) -> _State:
    if data is None:
        return _State()
    try:
        return msgspec.json.decode(data, type=_State)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _State()  # damaged: reading anew finds what is there already


def _keep(
    memory: Memory, messages: Iterable[SessionMessage], session: Session, rules: Rules, state: _State
) -> Captured:
    captured = Captured()
    for message in messages:
        # The whole message at once: a private key has many lines, and its parts look like nothing.
        safe = SessionMessage(
            message.speaker, screen(message.text, memory.config.secrets, "redact").text, message.at
        )
        for one in rules.kept(safe):
            if memory.store.find_normalised(f"{_SPEAKERS[safe.speaker]}: {one.text}", 1):
                continue
            if state.kept >= rules.limits.per_session:
                captured.left_out += 1
                continue
            made = _remembered(memory, safe, one, session)
            state.kept += bool(made)
            captured.chunk_ids += made
        if rules.limits.whole_transcript and len(safe.text) >= _SHORTEST_WHOLE:
            _remembered(memory, safe, Kept(safe.text, "whole", "note", 0.5), session)
    if captured.chunk_ids:
        memory.continuum.review.add_captured(
            _conversation(session.id),
            session.client,
            list(memory.store.get_many(captured.chunk_ids, track=False).values()),
        )
    return captured


def _remembered(memory: Memory, message: SessionMessage, kept: Kept, session: Session) -> list[str]:
    tags = ["transcript"] if kept.rule == "whole" else [CAPTURED, f"rule:{kept.rule}"]
    try:
        made = memory.remember(
            f"{_SPEAKERS[message.speaker]}: {kept.text}",
            conversation_id=_conversation(session.id),
            occurred_at=_time(message.at),
            chunk_type=kept.type if kept.rule != "whole" else None,
            confidence=kept.confidence,
            source="transcript",
            tags=tags,
            provenance={"client": session.client, "rule": kept.rule},
        )
    except InputError as error:  # one bad message must not cost the others
        _log.warning("a sentence of session %s was not remembered: %s", session.id, error)
        return []
    return made.chunk_ids if made.created else []


def _conversation(session_id: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in session_id)[:200] or "session"


def _time(at: str | None) -> str | None:
    if at is None:
        return None
    try:
        return check_time(at)
    except InvalidChunk:
        return None
