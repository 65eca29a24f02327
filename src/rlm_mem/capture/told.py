"""Which memories hooks gave to each session, so that it is given each of them once.

Each session has a file. Hooks that run at once add their lines to it without waiting for each other or for a writer:
if several found the same memory, it is given by the one whose line came first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from rlm_mem.errors import StorageError
from rlm_mem.memory import Memory
from rlm_mem.store.core.brain_files import SHOWN

_WITH_TOOL = "tool:"  # before the id of a chunk that was given with the use of a tool
_MAX_SESSIONS = 200  # each subagent is one
_PLAIN = re.compile(r"[a-z0-9_-][a-z0-9._-]{0,149}")


class _Line(msgspec.Struct):
    """What one hook gave: ids of chunks, and a number drawn by it; without ids: it gave nothing after all."""

    by: str
    ids: list[str]


def given(memory: Memory, session_id: str, *, with_tool: bool = False) -> list[str]:
    """Return the ids of the chunks that a session was given; ``with_tool``: those given with the use of a tool."""
    ids = (one for line in _lines(memory, session_id) for one in line.ids)
    return [one.removeprefix(_WITH_TOOL) for one in ids if one.startswith(_WITH_TOOL) or not with_tool]


@contextmanager
def recorded(
    memory: Memory, session_id: str, chunk_ids: Sequence[str], *, with_tool: bool = False, anew: bool = False
) -> Iterator[list[str]]:
    """Record that a session is given chunks in the block, unless that fails; yield those that are to be given.

    Left out is what another hook has given since the chunks were found.

    Args:
        with_tool: they are given with the use of a tool.
        anew: the session begins, and was given nothing before.

    Raises:
        StorageError: at the end of the block, if nothing could be recorded: a memory may then be given twice.
    """
    if memory.store.backend.read_only:
        yield list(chunk_ids)
        return
    own, mark = os.urandom(8).hex(), _WITH_TOOL if with_tool else ""
    wanted = {f"{mark}{one}": one for one in chunk_ids}
    try:
        if anew:
            _forget_oldest(memory)
            forget(memory, session_id)
        _add(memory, session_id, _Line(own, list(dict.fromkeys([*wanted, *chunk_ids]))))
        first: dict[str, str] = {}
        for line in _lines(memory, session_id):
            for one in line.ids:
                first.setdefault(one, line.by)
    except StorageError:
        yield list(chunk_ids)
        raise
    try:
        yield [chunk_id for one, chunk_id in wanted.items() if first.get(one, own) == own]
    except BaseException:
        _add(memory, session_id, _Line(own, []))
        raise


def forget(memory: Memory, session_id: str) -> None:
    """Forget what a session was given: its context will no longer contain it."""
    if not memory.store.backend.read_only:
        memory.store.files.remove(_name(session_id))


def _forget_oldest(memory: Memory) -> None:
    known = memory.store.files.signatures(SHOWN)
    for name in sorted(known, key=lambda one: known[one].mtime_ns)[:-_MAX_SESSIONS]:
        memory.store.files.remove(name)


def _lines(memory: Memory, session_id: str) -> list[_Line]:
    """Return the lines of a session that count; one that is damaged is left out: they only avoid repetition."""
    found = list[_Line]()
    for line in (memory.store.files.read(_name(session_id)) or b"").splitlines():
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found.append(msgspec.json.decode(line, type=_Line))
    failed = {line.by for line in found if not line.ids}
    return [line for line in found if line.by not in failed]


def _add(memory: Memory, session_id: str, line: _Line) -> None:
    memory.store.files.append(_name(session_id), msgspec.json.encode(line) + b"\n")


def _name(session_id: str) -> str:
    if _PLAIN.fullmatch(plain := session_id.replace("/", ".")):
        return f"{SHOWN}/{plain}.jsonl"
    from hashlib import sha256  # OpenSSL: the ids of most sessions need no digest

    return f"{SHOWN}/{sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.jsonl"
