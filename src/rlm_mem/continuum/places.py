"""Folders and file names of tiered memories (docs/spec/continuum.md, Files)."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from pathlib import PurePosixPath

from rlm_mem.errors import InvalidMemory
from rlm_mem.text.patterns import late

STATE = "workspace/state"
SHORT_TERM = "memory/short_term"
LONG_TERM = "memory/long_term"
PROFILES = "system/profiles"
MEMORY_LOG = "system/memory_log.md"
LEARNINGS = "system/project_learnings.md"
LIBRARY = "system/SmartLibrary.md"
STATE_FILES = ("plan.md", "context.md", "variables.json", "history.md", "constraints.md")
FOLDERS = (STATE, SHORT_TERM, LONG_TERM, PROFILES)
SINGLES = (MEMORY_LOG, LEARNINGS, LIBRARY)

_NAMES = {
    "interaction": late(r"memory/short_term/\d{4}-\d{2}-\d{2}_\d{2}-\d{2}-\d{2}_agent_interaction\.md"),
    "session": late(r"memory/short_term/\d{4}-\d{2}-\d{2}_execution_session\.md"),
    "trace": late(r"memory/long_term/execution_trace_([a-z0-9_]+)_v([1-9]\d*)\.md"),
    "pattern": late(r"memory/long_term/pattern_([a-z0-9_]+)\.md"),
    "profile": late(r"system/profiles/[A-Za-z0-9_-]+\.md"),
}
_MULTI = {"session", "learning", "library", "profile"}
TIERS_OF = {
    "state": ("high",),
    "interaction": ("high",),
    "session": ("high",),
    "trace": ("mid",),
    "pattern": ("mid",),
    "learning": ("low",),
    "library": ("low", "ultra-low"),
    "profile": ("ultra-low",),
}
"""The tiers that are valid for each kind of memory."""


def kind_of(file: str) -> str:
    """The kind of memory in a file: state, interaction, session, trace, pattern, learning, library or profile.

    Raises:
        InvalidMemory: the name matches no pattern of docs/spec/continuum.md, Files.
    """
    path = PurePosixPath(file)
    if str(path.parent) == STATE and path.name in STATE_FILES:
        return "state"
    if file in (MEMORY_LOG, LEARNINGS):
        return "learning"
    if file == LIBRARY:
        return "library"
    for kind, pattern in _NAMES.items():
        if pattern.fullmatch(file):
            return kind
    raise InvalidMemory(
        f"{file}: not a name of a memory file",
        hint="see docs/spec/continuum.md, Files, for the names of memory files",
    )


def is_multi(file: str) -> bool:
    """Whether a file contains several memories, one block each."""
    return kind_of(file) in _MULTI


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
    match = _NAMES["trace"].fullmatch(file)
    return (match[1], int(match[2])) if match else None


def pattern_file(name: str) -> str:
    """File name of a long-term pattern."""
    return f"{LONG_TERM}/pattern_{name}.md"


def slug(text: str) -> str:
    """A file name from the first six words of a text, or from its hash if it has no Latin letters."""
    found = re.findall(r"[a-z0-9]+", text.lower())[:6]
    name = "_".join(found)[:60].strip("_")
    return name if re.search(r"[a-z]", name) else f"m{hashlib.sha256(text.encode()).hexdigest()[:10]}"


MIRROR = "chunk-memory-"
"""Prefix of the ids of mirrors."""


def mirror_id(namespace: str, file: str, block: str | None) -> str:
    """Id of the chunk that mirrors a memory; derived from its place, so that no memory has two mirrors."""
    digest = hashlib.sha256(
        "\0".join((namespace, file, block or "")).encode("utf-8", "surrogatepass")
    ).hexdigest()
    return f"{MIRROR}{digest[:20]}"
