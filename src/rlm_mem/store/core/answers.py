"""What questions to the index are asked and answered with: plain data, the same for every backend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk

__all__ = [
    "ChunkState",
    "ConversationInfo",
    "LinkedChunk",
    "ListFilter",
    "StoreStatus",
    "Summary",
    "SyncReport",
    "Vacuumed",
    "Version",
    "strongest",
]


@dataclass(frozen=True, slots=True)
class Summary:
    """A chunk without its content; ``at`` is in epoch seconds."""

    id: str
    type: str
    tags: tuple[str, ...]
    tokens: int
    confidence: float
    conversation_id: str | None
    created_at: str
    occurred_at: str | None
    at: float
    revision: int
    access_count: int
    valid_from: str | None
    valid_to: str | None
    superseded_by: str | None
    source: str
    namespace: str


@dataclass(frozen=True, slots=True)
class LinkedChunk:
    """One end of a link, seen from the other; ``direction`` is ``out`` or ``in``, ``strength`` in 0-1."""

    chunk_id: str
    type: str
    strength: float
    direction: str
    reasoning: str | None
    created_at: str

    def __str__(self) -> str:
        arrow = "->" if self.direction == "out" else "<-"
        why = f": {self.reasoning}" if self.reasoning else ""
        return f"{self.type} {arrow} {self.chunk_id} ({self.strength:.2f}){why}"


def strongest(links: list[LinkedChunk]) -> list[LinkedChunk]:
    """Links in the order in which they are shown: strongest first, then newest, then by id."""
    by_id = sorted(links, key=lambda link: link.chunk_id)
    return sorted(by_id, key=lambda link: (link.strength, link.created_at), reverse=True)


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """One conversation: how many chunks, and the time (``at``) of its first and last, in epoch seconds."""

    id: str
    count: int
    first_at: float
    last_at: float


@dataclass(frozen=True, slots=True)
class ChunkState:
    """What tells whether two stores hold the same state of a chunk, without reading it; ``doc`` orders insertions."""

    doc: int
    id: str
    status: int
    revision: int
    modified_at: str
    content_hash: str


@dataclass(frozen=True)
class ListFilter:
    """What list_chunks and iter_chunks take, checked; times in epoch seconds, ``end`` exclusive.

    ``after`` is the place (time, insertion) of a chunk, active or not: only what comes after it in this order.
    """

    conversation_id: str | None = None
    start: float | None = None
    end: float | None = None
    tags: tuple[str, ...] = ()
    any_tags: tuple[str, ...] = ()
    chunk_type: str | None = None
    archived: bool = False
    limit: int | None = None
    offset: int = 0
    newest_first: bool = False
    after: tuple[float, int] | None = None


@dataclass(frozen=True)
class Version:
    """One state of a chunk; ``current`` marks the present one."""

    revision: int
    modified_at: str
    chunk: Chunk
    current: bool = False

    def __str__(self) -> str:
        line = " ".join(self.chunk.content[:400].split())[:120]
        return (
            f"revision {self.revision}{' (present)' if self.current else ''}  {self.modified_at[:19]}  {line}"
        )


@dataclass
class SyncReport:
    """What a sync found: relative paths."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    scanned_folders: int = 0
    folder_times: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.unreadable)


@dataclass(frozen=True)
class StoreStatus:
    """Counts that are 0 in a sound store at rest (see ``Backend.status``).

    Attributes:
        unreadable_files: chunk files that did not validate when last looked at.
        unfinished_files: files on their way in or out: of writes at work, or of a killed process.
        unsaved_reads: chunks whose access count is not written yet (the next checkpoint writes it).
    """

    unreadable_files: int = 0
    unfinished_files: int = 0
    unsaved_reads: int = 0


@dataclass
class Vacuumed:
    """Sizes in bytes, by what they are of, before and after."""

    before: dict[str, int] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)

    @property
    def freed(self) -> int:
        """Bytes that are free now and were not; negative where merged postings take more than what waited did."""
        return sum(self.before.values()) - sum(self.after.values())
