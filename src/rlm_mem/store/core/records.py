"""Plain data types of the index, shared by every backend: rows, query arguments and results, buffered reads.

It also has what is computed from them alone: the key of a chunk's segments, periods, the reliability of a chunk, the
mirrors of tiered memories, and the name of the analysis of words.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct, field

from rlm_mem.chunk import Chunk, format_time, from_epoch, normalised_hash, parse_time
from rlm_mem.chunk.types import hidden
from rlm_mem.errors import InvalidChunk, InvalidQuery, StorageError
from rlm_mem.lazy import logger
from rlm_mem.record import FrozenRecord, MutableRecord
from rlm_mem.store.core.files import Signature
from rlm_mem.text import ANALYSIS_VERSION

if TYPE_CHECKING:
    from rlm_mem.text.analysis import AnalysedSegment

_T = TypeVar("_T")

_audit_logger = logger("rlm_mem.audit")

#: Maximum number of characters indexed of a path, and of all surroundings of a chunk.
_MAX_PATH = 200
_MAX_SURROUNDINGS = 400

ACTIVE = 0
ARCHIVED = 1
IMPORTED = "imported"
"""Key of an event of the audit log that came with an import: it records a change of another memory."""
MAX_SAME = 50
"""Maximum chunks with the same content that ``with_hash`` returns, since hidden ones may be among them."""
ANY_REVISION = 2**31 - 1


class ChunkRow(Struct, frozen=True):
    """The row of a chunk in the index.

    ``path`` and the fields after it are set only if chunks are files, ``namespace`` only if they are rows.
    """

    doc: int
    id: str
    ns: int
    status: int
    revision: int
    content_hash: str
    accessed_at: str
    access_count: int
    tokens: int
    path: str = ""
    size: int = 0
    mtime_ns: int = 0
    inode: int = 0
    namespace: str = ""

    @property
    def signature(self) -> Signature:
        """The signature of the file when the index last read it."""
        return Signature(self.size, self.mtime_ns, self.inode)


class IndexEntry(msgspec.Struct, array_like=True, gc=False):
    """The indexed fields of a chunk, except its position, file and segments; can be sent between processes."""

    namespace: str
    conversation_id: str | None
    id: str
    type: str
    at: float
    created_at: str
    modified_at: str
    occurred_at: str | None
    valid_from: str | None
    valid_to: str | None
    superseded_by: str | None
    confidence: float
    tokens: int
    revision: int
    source: str
    content_hash: str
    norm_hash: str
    accessed_at: str
    access_count: int
    tags: list[str]
    links: list[tuple[str, str, float, str, str | None]]
    origin: str
    trust: str
    expires_at: str | None


_LINK_FIELDS = attrgetter("target_id", "type", "strength", "created_at", "reasoning")


def entry_of(chunk: Chunk, normalised: str = "") -> IndexEntry:
    """Return the index entry of a chunk; ``normalised`` is the normalised hash of its content, if known."""
    meta = chunk.metadata
    return IndexEntry(
        chunk.namespace, meta.conversation_id, chunk.id, chunk.type, parse_time(meta.at).timestamp(), meta.created_at,
        meta.modified_at, meta.occurred_at, meta.valid_from, meta.valid_to, meta.superseded_by, meta.confidence,
        chunk.tokens, chunk.revision, meta.source, meta.content_hash, normalised or normalised_hash(chunk.content),
        meta.accessed_at, meta.access_count, chunk.tags,
        list(map(_LINK_FIELDS, chunk.links)),
        meta.origin, meta.trust, meta.expires_at,
    )  # fmt: skip


def summary_of(chunk: Chunk, at: float) -> Summary:
    """Return the summary of a chunk; ``at`` is its time in epoch seconds."""
    meta = chunk.metadata
    return Summary(
        chunk.id, chunk.type, tuple(sorted(chunk.tags)), chunk.tokens, meta.confidence, meta.conversation_id,
        meta.created_at, meta.occurred_at, at, chunk.revision, meta.access_count, meta.valid_from, meta.valid_to,
        meta.superseded_by, meta.source, meta.origin, meta.trust, meta.expires_at, chunk.namespace,
    )  # fmt: skip


def repeated_prefix(chunk: Chunk) -> int:
    """Return how many of a chunk's first characters repeat the chunk before it; they are not indexed twice."""
    overlap = chunk.metadata.provenance.get("overlap", 0)
    return overlap if isinstance(overlap, int) and 0 <= overlap < len(chunk.content) else 0


def surroundings(provenance: Mapping[str, Any]) -> str:
    """Return headings, title and path of a chunk as one line of text that is indexed with each of its segments.

    These are the headings above its beginning, the title of its document and the end of its path, as far as its
    provenance has them.
    """
    headings = provenance.get("headings")
    named = [one for one in headings if isinstance(one, str)] if isinstance(headings, list) else []
    title, path = provenance.get("title"), provenance.get("path")
    if isinstance(title, str):
        named.append(title)
    if isinstance(path, str):
        folders, _, name = path[-_MAX_PATH:].replace("\\", "/").rpartition("/")
        stem, _, ending = name.rpartition(".")
        named += [*folders.split("/"), stem if stem and ending.isalnum() else name]
    return " ".join(" ".join(named).split())[:_MAX_SURROUNDINGS]


def path_of(chunk: Chunk) -> str:
    """Return the path of the file that a chunk was read from, as its provenance has it, or an empty string."""
    path = chunk.metadata.provenance.get("path")
    return path if isinstance(path, str) else ""


def index_key(chunk: Chunk) -> tuple[str, int, str]:
    """Return the values that determine a chunk's segments: content, length of the repeated prefix, surroundings."""
    return chunk.content, repeated_prefix(chunk), surroundings(chunk.metadata.provenance)


def audit_line(op: str, at: datetime, actor: str | None, namespace: str) -> dict[str, Any]:
    """Return the fields that every event of the audit log begins with."""
    return {"ts": format_time(at), "actor": actor, "op": op, "ns": namespace}


def log_events(events: Iterable[Mapping[str, Any]]) -> None:
    """Log events of the audit log, once they are written."""
    for event in events:
        _audit_logger.info("%s %s", event.get("op"), event.get("chunk_id") or event.get("chunk_ids") or "")


# --- reads, counted in memory until a backend writes them to the rows ---------------------------------------------

Reads = dict[str, tuple[int, str]]
"""Reads by chunk id: their number, and the time of the last one."""

_SECONDS = 1.0
_COUNT = 100


class ReadBuffer:
    """Buffer of read counts that are not in the index yet; thread-safe."""

    def __init__(self) -> None:
        self._reads: Reads = {}
        self._guard = threading.Lock()
        self._taken_at = time.monotonic()

    def add(self, chunk_id: str, when: str) -> bool:
        """Count one read; return True when the buffer should be written."""
        with self._guard:
            self._reads[chunk_id] = (self._reads.get(chunk_id, (0, ""))[0] + 1, when)
            return len(self._reads) >= _COUNT or time.monotonic() - self._taken_at > _SECONDS

    def of(self, chunk_id: str) -> tuple[int, str] | None:
        """Return number and last time of the buffered reads of a chunk; None if there are none."""
        return self._reads.get(chunk_id)

    @property
    def size(self) -> int:
        """Number of chunks with buffered reads."""
        return len(self._reads)

    def take(self) -> Reads:
        """Return all buffered reads, and empty the buffer."""
        with self._guard:
            self._taken_at = time.monotonic()
            reads, self._reads = self._reads, {}
            return reads

    def put_back(self, reads: Reads) -> None:
        """Return reads to the buffer that could not be written."""
        with self._guard:
            for chunk_id, (count, when) in reads.items():
                more, latest = self._reads.get(chunk_id, (0, ""))
                self._reads[chunk_id] = (count + more, max(when, latest))


def add_reads(chunk: Chunk, count: int, when: str, buffered: tuple[int, str] | None) -> None:
    """Add to a chunk, as its text has it, the reads in the index and those that are not there yet."""
    about, (more, latest) = chunk.metadata, buffered or (0, "")
    about.access_count = max(about.access_count, count) + more
    about.accessed_at = max(about.accessed_at, when, latest)


class Summary(FrozenRecord, frozen=True, gc=False):
    """The fields of a chunk without its content; ``at`` is in epoch seconds."""

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
    origin: str
    trust: str
    expires_at: str | None
    namespace: str

    def shown_at(self, at: str) -> bool:
        """Return whether reads return the chunk at a time: neither quarantined nor expired."""
        return not hidden(self.trust, self.expires_at, at)


class LinkedChunk(FrozenRecord, frozen=True):
    """A link as seen from one of its ends; ``direction`` is ``out`` or ``in``, ``strength`` in 0-1."""

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
    """Sort links for display: strongest first, then newest, then by id."""
    by_id = sorted(links, key=lambda link: link.chunk_id)
    return sorted(by_id, key=lambda link: (link.strength, link.created_at), reverse=True)


class ConversationInfo(FrozenRecord, frozen=True):
    """One conversation: its number of chunks, and the times (``at``) of the first and last, in epoch seconds."""

    id: str
    count: int
    first_at: float
    last_at: float


class ChunkState(Struct, frozen=True):
    """The state of a chunk for comparing two stores without reading it; ``doc`` is its insertion number."""

    doc: int
    id: str
    status: int
    revision: int
    modified_at: str
    content_hash: str


class ListFilter(Struct, frozen=True):
    """The checked filters of list_chunks and iter_chunks; times in epoch seconds, ``end`` exclusive.

    ``after`` is the position (time, insertion) of a chunk, active or not: only chunks after it pass.
    ``held_at`` keeps chunks that held at a time, given in epoch seconds and as stored. ``origins`` and ``trusts`` keep
    chunks with one of these values; ``shown_at`` (as stored) leaves out chunks in quarantine or expired by then,
    ``expired_at`` keeps only expired ones. ``alone`` (origin, source, time) keeps, of all these, chunks without a
    conversation that have this origin and source and are shown at this time.
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
    origins: tuple[str, ...] = ()
    trusts: tuple[str, ...] = ()
    shown_at: str | None = None
    expired_at: str | None = None
    alone: tuple[str, str, str] | None = None


class Version(FrozenRecord, frozen=True):
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


class SyncReport(MutableRecord):
    """The changes that a sync found; files are given as relative paths."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    scanned_folders: int = 0
    folder_times: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.unreadable)


class StoreStatus(Struct, frozen=True):
    """Counts that are 0 in a sound store at rest (see ``Backend.status``).

    Attributes:
        unreadable_files: chunk files that did not validate when last read.
        unfinished_files: temporary files of writes in progress, or of a killed process.
        unsaved_reads: chunks whose access count is not written yet (the next checkpoint writes it).
    """

    unreadable_files: int = 0
    unfinished_files: int = 0
    unsaved_reads: int = 0


class Vacuumed(MutableRecord):
    """Sizes in bytes of each part of a store, before and after."""

    before: dict[str, int] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)

    @property
    def freed(self) -> int:
        """Number of bytes freed; negative if merged postings take more space than the unmerged ones did."""
        return sum(self.before.values()) - sum(self.after.values())


def totals_of(
    counts: Sequence[tuple[int, str, int, int, int]], first: float | None, last: float | None
) -> dict[str, Any]:
    """Compute the result of ``stats`` from rows of status, type, chunks, tokens, bytes, and the first and last time."""
    active = [row for row in counts if row[0] == ACTIVE]
    return {
        "chunk_count": sum(row[2] for row in active),
        "total_tokens": sum(row[3] for row in active),
        "storage_size_mb": round(sum(row[4] for row in counts) / 1_000_000, 3),
        "archived_count": sum(row[2] for row in counts if row[0] != ACTIVE),
        "by_type": {row[1]: row[2] for row in active},
        "first_at": None if first is None else format_time(from_epoch(first)),
        "last_at": None if last is None else format_time(from_epoch(last)),
    }


def as_of_time(value: object) -> datetime:
    """Return the moment meant by "as of": for a bare date its last microsecond; raises InvalidQuery."""
    try:
        moment = parse_time(value, "as_of")
    except InvalidChunk as error:
        raise InvalidQuery(error.message, hint="write it as YYYY-MM-DD") from None
    bare = isinstance(value, str) and len(value.strip()) <= len("YYYY-MM-DD")
    return moment.replace(hour=23, minute=59, second=59, microsecond=999_999) if bare else moment


def in_lots(items: Sequence[_T], size: int = 200) -> Iterator[Sequence[_T]]:
    """Cut a sequence into parts of at most ``size`` items, so that a long one is not read or locked at once."""
    return (items[start : start + size] for start in range(0, len(items), size))


def page(value: object, what: str) -> int:
    """Check a limit or offset: an integer from 0 up; raises InvalidQuery."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidQuery(f"{what} must be a whole number from 0 up, not {value!r:.40}")
    return min(value, 2**62)


def query_time(text: str | date, what: str) -> tuple[float, float]:
    """Return first and last moment (epoch seconds) of a date, meaning its whole day, or time; raises InvalidQuery."""
    try:
        given = text.isoformat() if isinstance(text, date) else text
        moment, is_date = parse_time(given, what).timestamp(), len(given.strip()) <= len("YYYY-MM-DD")
    except (InvalidChunk, AttributeError, TypeError) as error:
        reason = (
            error.message if isinstance(error, InvalidChunk) else f"{what} must be a date, not {text!r:.40}"
        )
        raise InvalidQuery(reason) from None
    # Also for the year 9999: no date is after its last day
    return moment, moment + 86_400 if is_date else moment


def time_range(start: str | date | None, end: str | date | None) -> tuple[float, float]:
    """Return start and exclusive end in epoch seconds; a bare date at the end includes its whole day.

    Raises:
        InvalidQuery: a time is neither ``YYYY-MM-DD`` nor ISO 8601.
    """
    first = -inf if start is None else query_time(start, "start")[0]
    return first, inf if end is None else after(query_time(end, "end"))


def after(bounds: tuple[float, float]) -> float:
    """Return the exclusive end of a period that includes ``bounds``."""
    # A bare date ends where the next begins; a moment is included itself.
    return bounds[1] if bounds[1] > bounds[0] else bounds[1] + 1e-6


#: Prefix of the ids of the chunks that mirror tiered memories. No import or request can give a chunk such an id.
MIRROR = "chunk-memory-"
#: Prefix of the tag that names the tier of a chunk that mirrors a tiered memory, such as ``tier:mid``.
TIER_TAG = "tier:"
#: Tag of chunks that are parts of another memory: found separately, but counted with it.
COMPONENT = "component"

_VOLATILITY_FACTORS: Mapping[str, float] = {"high": 0.8, "medium": 0.95, "low": 1.0}


def reliability(confidence: float, success_rate: float | None, volatility: str | None) -> float:
    """Compute reliability, 0 to 1: the confidence, reduced for failures in use and for volatility."""
    success_factor = 1.0 if success_rate is None else 0.5 + 0.5 * success_rate
    return round(confidence * success_factor * _VOLATILITY_FACTORS.get(volatility or "low", 1.0), 4)


def is_mirror(chunk_id: object) -> bool:
    """Return whether this is the id of a chunk that mirrors a tiered memory."""
    return isinstance(chunk_id, str) and chunk_id.startswith(MIRROR)


def tier_of(chunk: Chunk | Summary) -> str | None:
    """Return the tier of the memory that a chunk mirrors; None for any other chunk, which may have any tag."""
    tags = chunk.tags if is_mirror(chunk.id) else ()
    return next((tag[len(TIER_TAG) :] for tag in tags if tag.startswith(TIER_TAG)), None)


def standing(chunk: Chunk) -> dict[str, Any]:
    """Return tier (None for a plain chunk), reliability (0-1), confidence, and the counts of uses behind them."""
    extra = chunk.metadata.extra
    uses = extra.get("usage_count")
    rate = extra.get("success_rate")
    rate = float(rate) if isinstance(rate, int | float) and not isinstance(rate, bool) else None
    volatility = extra.get("volatility")
    return {
        "tier": tier_of(chunk),
        "reliability": reliability(
            chunk.metadata.confidence, rate, volatility if isinstance(volatility, str) else None
        ),
        "confidence": chunk.metadata.confidence,
        "usage_count": uses if isinstance(uses, int) else 0,
        "success_rate": rate,
    }


_ONE_ANALYSIS = "upgrade or restart this program: a memory has one search.language and version of rlm-mem"


def analysis_name(language: str) -> str:
    """Return the name, recorded with an index, of this program's analysis of words in a language."""
    return f"{ANALYSIS_VERSION}:{language}"


def is_later_analysis(recorded: str, own: str) -> bool:
    """Return whether an index was made by a later version of the analysis than this program's ``own``."""
    versions = [int(name.partition(":")[0] or 0) for name in (recorded, own)]
    return versions[0] > versions[1]


def other_analysis(where: str, recorded: str, own: str, hint: str = _ONE_ANALYSIS) -> StorageError:
    """Return the error of a program whose analysis of words is not that of the index, which it must not change."""
    return StorageError(
        f"{where} has the words of another program (analysis {recorded}, this program has {own}):"
        " nothing was changed",
        hint=hint,
    )


def analysed(language: str, content: str, skip_before: int, around: str) -> Sequence[AnalysedSegment]:
    """Analyse the content of a chunk in a language; the other arguments are those of ``index_key``."""
    from rlm_mem.text.analysis import get_analyser

    return get_analyser(language).analyse_segments(content, skip_before=skip_before, around=around)


def authors_of(language: str, chunk: Chunk) -> set[str]:
    """Return the authors of a chunk's segments, as the index names them."""
    found = analysed(language, *index_key(chunk))
    return {one.author for one in found if one.author is not None}
