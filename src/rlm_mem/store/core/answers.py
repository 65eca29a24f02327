"""What questions to the index are asked and answered with: plain data, the same for every backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import parse_time
from rlm_mem.errors import InvalidChunk, InvalidQuery

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
    "after",
    "as_of_time",
    "list_filter",
    "page",
    "query_time",
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
    """Enough to compare the state of a chunk in two stores without reading it; ``doc`` orders insertions."""

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
    ``held_at`` keeps what held at a time, given in epoch seconds and in the written form.
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
    held_at: tuple[float, str] | None = None


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


def as_of_time(value: object) -> datetime:
    """The moment up to which "as of" looks: of a bare day its last second; raises InvalidQuery."""
    try:
        moment = parse_time(value, "as_of")
    except InvalidChunk as error:
        raise InvalidQuery(error.message, hint="write it as YYYY-MM-DD") from None
    bare = isinstance(value, str) and len(value.strip()) == len("YYYY-MM-DD")
    return moment.replace(hour=23, minute=59, second=59, microsecond=999_999) if bare else moment


def page(value: object, what: str) -> int:
    """A limit or an offset: a whole number from 0 up; raises InvalidQuery."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidQuery(f"{what} must be a whole number from 0 up, not {value!r:.40}")
    return min(value, 2**62)


def query_time(text: str, what: str) -> tuple[float, float]:
    """First and last moment (epoch seconds) of a date or time; raises InvalidQuery."""
    try:
        return day_bounds(text, what)
    except (InvalidChunk, AttributeError, TypeError) as error:
        reason = (
            error.message if isinstance(error, InvalidChunk) else f"{what} must be a date, not {text!r:.40}"
        )
        raise InvalidQuery(reason) from None


def after(bounds: tuple[float, float]) -> float:
    """The exclusive end of a period that includes ``bounds``."""
    # A bare day ends where the next begins; a moment is included itself.
    return bounds[1] if bounds[1] > bounds[0] else bounds[1] + 1e-6


def words(value: object, what: str) -> tuple[str, ...]:
    """One word or several, without repeats; raises InvalidQuery."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence | set | frozenset) or not all(isinstance(item, str) for item in value):
        raise InvalidQuery(f"{what} must be a list of words, not {value!r:.60}")
    return tuple(dict.fromkeys(value))


def list_filter(
    conversation_id: Any, start: Any, end: Any, tags: Any, chunk_type: Any, any_tags: Any,
    archived: bool, limit: Any, offset: Any, newest_first: bool,
) -> ListFilter:  # fmt: skip
    """The arguments of list_chunks, checked; raises InvalidQuery."""
    for value, what in ((conversation_id, "conversation_id"), (chunk_type, "chunk_type")):
        if value is not None and not isinstance(value, str):
            raise InvalidQuery(f"{what} must be text, not {value!r:.60}")
    return ListFilter(
        conversation_id=conversation_id,
        start=None if start is None else query_time(start, "start_date")[0],
        end=None if end is None else after(query_time(end, "end_date")),
        tags=words(tags, "tags"),
        any_tags=words(any_tags, "any_tags"),
        chunk_type=chunk_type,
        archived=archived,
        limit=None if limit is None else page(limit, "limit"),
        offset=page(offset, "offset"),
        newest_first=newest_first,
    )


def day_bounds(text: str, what: str) -> tuple[float, float]:
    """First and last moment (epoch seconds) that a date or time names: a bare date is its whole day."""
    moment = parse_time(text, what)
    if len(text.strip()) <= 10:
        try:
            return moment.timestamp(), (moment + timedelta(days=1)).timestamp()
        except OverflowError:
            return moment.timestamp(), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    return moment.timestamp(), moment.timestamp()
