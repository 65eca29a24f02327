"""Capture a session: keep the sentences that the rules select, hide their secrets and queue them for review.

A file of the namespace records how far a transcript was read and how many memories of the session were kept. It is
written in one transaction with the memories, so a hook that is killed, repeated or run twice at once neither loses
nor duplicates a memory. Messages of which there is no transcript wait in files for the next hook if another process
keeps this one from capturing them.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rlm_mem.capture.rules import Kept, Rules
from rlm_mem.capture.transcripts import WHOLE, Session, SessionMessage, read_part
from rlm_mem.chunk import check_time
from rlm_mem.errors import InputError, InvalidChunk, StoreLocked
from rlm_mem.store.core.brain_files import WAITING, BrainFiles
from rlm_mem.text.secrets import screen

if TYPE_CHECKING:
    from rlm_mem.config import SecretsConfig
    from rlm_mem.memory import Memory

#: Tag of captured memories.
CAPTURED = "captured"

_log = logging.getLogger(__name__)
_SPEAKERS = {"user": "User", "agent": "Agent"}
_MIN_WHOLE = 25  # characters of a message that is kept whole


@dataclass
class Captured:
    """What one call captured.

    Attributes:
        chunk_ids: new memories.
        left_out: number of sentences beyond the limit of the session.
    """

    chunk_ids: list[str] = field(default_factory=list)
    left_out: int = 0


class _State(msgspec.Struct):
    """Progress of reading a session.

    Attributes:
        offset: the byte of the transcript from which to read on.
        kept: number of memories created.
        digests: of their texts, and of those skipped during a pause, so that what was undone, forgotten or skipped is
            not kept when a transcript is reread.
    """

    offset: int = 0
    kept: int = 0
    digests: list[str] = []


class _Waiting(msgspec.Struct):
    """Messages that wait to be captured."""

    session: Session
    messages: list[SessionMessage]


def state_name(session_id: str) -> str:
    """Name of the file with the progress of reading a session."""
    return f"system/capture/{hashlib.sha256(session_id.encode('utf-8', 'replace')).hexdigest()[:20]}.json"


def capture_transcript(
    memory: Memory, path: Path, session: Session, rules: Callable[[], Rules], *, skip: bool = False
) -> Captured:
    """Apply the rules to what was added to a transcript since it was last read.

    Args:
        memory: the memory of the project.
        rules: returns the rules, whose patterns take long to compile; called only if there is a new message.
        skip: create no memories, neither now nor when the same text is read again.

    Raises:
        StorageError: the transcript cannot be read, or the memory cannot be written.
    """
    files = memory.store.backend.files(memory.store.namespace)
    name = state_name(session.id)
    captured = Captured()
    # Read before taking the lock: other writers need not wait for a long transcript.
    state = _state(files.read(name))
    part = read_part(path, state.offset)
    if part.offset == state.offset:
        return captured
    found = rules() if part.messages else None
    with files.transaction():
        current = _state(files.read(name))
        if current.offset != state.offset:
            return captured  # another hook of this session has read it meanwhile
        if found is not None:
            captured = _keep(memory, part.messages, session, found, current, skip=skip)
        current.offset = part.offset
        files.write(name, msgspec.json.encode(current))
    return captured


def capture_messages(
    memory: Memory, messages: Sequence[SessionMessage], session: Session, rules: Rules
) -> Captured:
    """Apply the rules to messages, for a client that passes these instead of a file, and to those that wait.

    While another process writes for longer than the memory waits, they are set aside, without their secrets, for the
    next call.
    """
    files = memory.store.backend.files(memory.store.namespace)
    try:
        with files.transaction():
            waiting = _waiting(files)  # under the lock: an erasure or another hook may just have removed some
            for one in waiting.values():
                _capture(memory, files, one.messages, one.session, rules)
            captured = _capture(memory, files, messages, session, rules)
    except StoreLocked:
        if messages:
            safe = [screened(one, memory.config.secrets) for one in messages]
            name = f"{WAITING}/{time.time_ns():020}-{os.urandom(4).hex()}.json"
            files.append(name, msgspec.json.encode(_Waiting(session, safe)))
        return Captured()
    for name in waiting:  # once they are captured: captured twice, they leave no second memory
        files.remove(name)
    return captured


def is_waiting(memory: Memory) -> bool:
    """Return whether messages wait to be captured, with the next ones."""
    return bool(memory.store.files.names(WAITING))


def _waiting(files: BrainFiles) -> dict[str, _Waiting]:
    """Return the messages that wait, by their files; one that is damaged stays for a check."""
    found: dict[str, _Waiting] = {}
    for name, data in files.contents(sorted(files.names(WAITING))):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found[name] = msgspec.json.decode(data, type=_Waiting)
    return found


def _capture(
    memory: Memory, files: BrainFiles, messages: Iterable[SessionMessage], session: Session, rules: Rules
) -> Captured:
    name = state_name(session.id)
    state = _state(files.read(name))
    known = len(state.digests)
    captured = _keep(memory, messages, session, rules, state)
    if len(state.digests) > known:
        files.write(name, msgspec.json.encode(state))
    return captured


def _state(data: bytes | None) -> _State:
    if data is None:
        return _State()
    try:
        return msgspec.json.decode(data, type=_State)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _State()  # damaged: rereading from the start creates no duplicates


def _keep(
    memory: Memory,
    messages: Iterable[SessionMessage],
    session: Session,
    rules: Rules,
    state: _State,
    *,
    skip: bool = False,
) -> Captured:
    captured = Captured()
    for message in messages:
        safe = screened(message, memory.config.secrets)
        for sentence in rules.kept(safe):
            text = f"{_SPEAKERS[safe.speaker]}: {sentence.text}"
            digest = _digest(text)
            if digest in state.digests:
                continue
            if skip:
                state.digests.append(digest)
                continue
            if memory.store.find_normalised(text, 1):
                continue
            if state.kept >= rules.limits.per_session:
                captured.left_out += 1
                continue
            chunk_ids = _remember(memory, safe, sentence, session)
            if chunk_ids:
                state.kept += 1
                state.digests.append(digest)
            captured.chunk_ids += chunk_ids
        if rules.limits.whole_transcript and len(safe.text) >= _MIN_WHOLE:
            digest = _digest(f"whole {safe.speaker}: {safe.text}")
            if digest not in state.digests:
                state.digests.append(digest)
                if not skip:
                    _remember(memory, safe, Kept(safe.text, "whole", "note", 0.5), session)
    if captured.chunk_ids:
        memory.continuum.review.add_captured(
            _conversation(session.id),
            session.client,
            list(memory.store.get_many(captured.chunk_ids, track=False).values()),
        )
    return captured


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def screened(message: SessionMessage, secrets: SecretsConfig) -> SessionMessage:
    """Return the message with its secrets redacted, as a whole: one line of a private key is not recognisable."""
    return SessionMessage(message.speaker, screen(message.text, secrets, "redact").text, message.at)


def _remember(memory: Memory, message: SessionMessage, kept: Kept, session: Session) -> list[str]:
    tags = [WHOLE] if kept.rule == "whole" else [CAPTURED, f"rule:{kept.rule}"]
    try:
        remembered = memory.remember(
            f"{_SPEAKERS[message.speaker]}: {kept.text}",
            conversation_id=_conversation(session.id),
            occurred_at=_time(message.at),
            chunk_type=kept.type if kept.rule != "whole" else None,
            confidence=kept.confidence,
            source="transcript",
            tags=tags,
            provenance={"client": session.client, "rule": kept.rule},
        )
    except InputError as error:  # one bad message must not prevent the others
        _log.warning("a sentence of session %s was not remembered: %s", session.id, error)
        return []
    return remembered.chunk_ids if remembered.created else []


def _conversation(session_id: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in session_id)[:200] or "session"


def _time(at: str | None) -> str | None:
    if at is None:
        return None
    try:
        return check_time(at)
    except InvalidChunk:
        return None
