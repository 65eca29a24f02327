"""The row of a namespace, whose lock is the write lock: its counters and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Head"]

_HEAD = (
    "name", "state", "moved_to", "next_doc", "next_term", "next_conversation", "analysis", "modified",
    "segments", "length", "conversations", "loose",
)  # fmt: skip
_COUNTERS = (
    "next_doc", "next_term", "next_conversation", "analysis", "modified", "segments", "length",
    "conversations", "loose",
)  # fmt: skip


@dataclass
class Head:
    """The row of a namespace while its lock is held: counters and figures, written back with the changes."""

    ns: int
    name: str
    state: str
    moved_to: str | None
    next_doc: int
    next_term: int
    next_conversation: int
    analysis: str
    modified: int
    segments: int
    length: int
    conversations: int
    loose: int

    @staticmethod
    def columns() -> str:
        """What to select, in order."""
        return ", ".join(_HEAD)

    def counters(self) -> tuple[Any, ...]:
        """What ``write`` writes, to see whether anything changed."""
        return tuple(getattr(self, name) for name in _COUNTERS)

    def write(self) -> tuple[str, tuple[Any, ...]]:
        """The statement that writes it back."""
        columns = ", ".join(f"{name} = %s" for name in _COUNTERS)
        return f"UPDATE rlm_mem.namespaces SET {columns} WHERE ns = %s", (*self.counters(), self.ns)
