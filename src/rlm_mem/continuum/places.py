"""Folders and file names of tiered memories (docs/spec/continuum.md, Files)."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime

from rlm_mem.errors import InvalidMemory
from rlm_mem.record import FrozenRecord
from rlm_mem.text.patterns import late

STATE = "workspace/state"
SHORT_TERM = "memory/short_term"
LONG_TERM = "memory/long_term"
PROFILES = "system/profiles"
MEMORY_LOG = "system/memory_log.md"
LEARNINGS = "system/project_learnings.md"
LIBRARY = "system/SmartLibrary.md"
STATE_FILES = tuple(
    f"{STATE}/{name}" for name in ("plan.md", "context.md", "variables.json", "history.md", "constraints.md")
)
FOLDERS = (STATE, SHORT_TERM, LONG_TERM, PROFILES)
SINGLES = (MEMORY_LOG, LEARNINGS, LIBRARY)


class Kind(FrozenRecord, frozen=True):
    """One kind of memory.

    Attributes:
        name: as in the tag ``kind:NAME`` of its mirrors.
        files: its files, if they have fixed names; ``pattern``: matches their names otherwise.
        tiers: the tiers that are valid for it.
        chunk_type: type of its mirrors.
        many: whether a file contains several memories, one block each.
    """

    name: str
    tiers: tuple[str, ...]
    chunk_type: str
    files: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    many: bool = False

    def has(self, file: str) -> bool:
        """Whether a file name is one of this kind."""
        return file in self.files or (self.pattern is not None and self.pattern.fullmatch(file) is not None)


_TRACE = late(r"memory/long_term/execution_trace_([a-z0-9_]+)_v([1-9]\d*)\.md")

KINDS = {
    kind.name: kind
    for kind in (
        Kind("state", ("high",), "note", files=STATE_FILES),
        Kind(
            "interaction", ("high",), "note",
            pattern=late(r"memory/short_term/\d{4}-\d{2}-\d{2}_\d{2}-\d{2}-\d{2}_agent_interaction\.md"),
        ),
        Kind(
            "session", ("high",), "note", many=True,
            pattern=late(r"memory/short_term/\d{4}-\d{2}-\d{2}_execution_session\.md"),
        ),
        Kind("trace", ("mid",), "pattern", pattern=_TRACE),
        Kind("pattern", ("mid",), "pattern", pattern=late(r"memory/long_term/pattern_([a-z0-9_]+)\.md")),
        Kind("learning", ("low",), "fact", files=(MEMORY_LOG, LEARNINGS), many=True),
        Kind("library", ("low", "ultra-low"), "pattern", files=(LIBRARY,), many=True),
        Kind(
            "profile", ("ultra-low",), "fact", many=True,
            pattern=late(r"system/profiles/[A-Za-z0-9_-]+\.md"),
        ),
    )
}  # fmt: skip
"""The kinds of memories by name (docs/spec/continuum.md, Files)."""


def kind_of(file: str) -> Kind:
    """The kind of memory in a file.

    Raises:
        InvalidMemory: the name matches no pattern of docs/spec/continuum.md, Files.
    """
    kind = next((kind for kind in KINDS.values() if kind.has(file)), None)
    if kind is None:
        raise InvalidMemory(
            f"{file}: not a name of a memory file",
            hint="see docs/spec/continuum.md, Files, for the names of memory files",
        )
    return kind


def interaction_file(at: datetime) -> str:
    """File name of the short-term log of one interaction."""
    return f"{SHORT_TERM}/{at:%Y-%m-%d_%H-%M-%S}_agent_interaction.md"


def session_file(at: datetime) -> str:
    """File name of the short-term log of a day's sessions."""
    return f"{SHORT_TERM}/{at:%Y-%m-%d}_execution_session.md"


def trace_file(name: str, version: int) -> str:
    """File name of a long-term execution trace."""
    return f"{LONG_TERM}/execution_trace_{name}_v{version}.md"


def trace_parts(file: str) -> tuple[str, int] | None:
    """Name and version of an execution trace; None for other files."""
    match = _TRACE.fullmatch(file)
    return (match[1], int(match[2])) if match else None


def pattern_file(name: str) -> str:
    """File name of a long-term pattern."""
    return f"{LONG_TERM}/pattern_{name}.md"


def slug(text: str) -> str:
    """A file name from the first six words of a text, or from its hash if it has no Latin letters."""
    found = re.findall(r"[a-z0-9]+", text.lower())[:6]
    name = "_".join(found)[:60].strip("_")
    return name if re.search(r"[a-z]", name) else f"m{hashlib.sha256(text.encode()).hexdigest()[:10]}"
