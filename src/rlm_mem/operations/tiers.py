"""Tiered memories over HTTP: record, use, query, consolidate, prune, working state, transitions and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, field, to_builtins

from rlm_mem.chunk import Chunk, is_chunk_id
from rlm_mem.continuum.query import MemoryHit
from rlm_mem.errors import InvalidMemory, NotFoundError
from rlm_mem.operations.operation import Context, Operation, Reply
from rlm_mem.operations.types import (
    Confidence,
    Limit,
    Line,
    Question,
    Request,
    TaskType,
)

if TYPE_CHECKING:
    from rlm_mem.continuum.files import TieredMemory

__all__ = ["OPERATIONS"]

_GROUP = "continuum"
_Tier = Literal["high", "mid", "low", "ultra-low"]
_Name = Annotated[str, Meta(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]*$(?!\n)")]
_Key = Annotated[
    str, Meta(min_length=1, max_length=400, description="File, file#entry or chunk id of a memory.")
]
_OneLine = Annotated[str, Meta(max_length=2000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$(?!\n)")]


class StepIn(Request):
    """One tool call of an execution."""

    tool: Line
    call: _OneLine = ""
    validation: _OneLine = ""
    on_error: _OneLine = ""
    status: _OneLine = "ok"
    result: _OneLine = ""


class TraceRequest(Request):
    """What was done and how it went; it becomes a memory of the high tier."""

    goal: Line
    steps: Annotated[list[StepIn], Meta(max_length=200)] = field(default_factory=list)
    success: Annotated[bool | None, Meta(description="Null: not known yet.")] = None
    indicators: Annotated[list[Line], Meta(max_length=50)] = field(default_factory=list)
    preconditions: Annotated[list[Line], Meta(max_length=50)] = field(default_factory=list)
    postconditions: Annotated[list[Line], Meta(max_length=50)] = field(default_factory=list)
    project: _Name | None = None
    context_fingerprint: _Name | None = None
    task_type: TaskType | None = None
    confidence: Confidence | None = None
    notes: _OneLine = ""
    error: _OneLine | None = None


class UseRequest(Request):
    """One application of a memory, and its outcome."""

    key: _Key
    success: bool
    project: _Name | None = None
    context_fingerprint: _Name | None = None
    validated: bool | None = None
    error: _OneLine | None = None
    step: Annotated[int, Meta(ge=1, le=10_000)] | None = None


class MemoryOut(Struct):
    """A tiered memory as its file holds it; ``fields`` are those of its frontmatter."""

    key: str
    chunk_id: str
    kind: str
    tier: str
    title: str
    body: str
    fields: dict[str, Any]


class Used(Struct):
    """A memory after a use; ``confidence`` and ``usage_count`` as they are now."""

    key: str
    confidence: float
    usage_count: int
    success_rate: float | None


class MemoryQuery(Request):
    """Which tiered memories."""

    tier: _Tier | None = None
    limit: Limit = 100


class KeyQuery(Request):
    """Which memory."""

    key: _Key


class MemoryHits(Struct):
    """Tiered memories, the best first, and the core that is always included."""

    items: list[MemoryHit]
    core: list[MemoryHit]


class TierWeights(Request):
    """Weights of the tiers, from 0 up; not all may be 0, and those left out are 0."""

    high: Annotated[float, Meta(gt=0, le=1000)] = 0.1
    mid: Annotated[float, Meta(ge=0, le=1000)] = 0.6
    low: Annotated[float, Meta(ge=0, le=1000)] = 0.3
    ultra_low: Annotated[float, Meta(ge=0, le=1000)] = 0.0


class TierQuery(Request):
    """What is to be done, in any words."""

    goal: Question
    kind: Annotated[
        Literal["weighted", "recent", "proven", "stable"],
        Meta(description="All tiers by weight, or one of the queries of a single tier."),
    ] = "weighted"
    weights: TierWeights | None = None
    min_confidence: Confidence = 0.0
    task_type: _Name | None = None
    include_core: bool = True
    limit: Annotated[int, Meta(ge=1, le=200)] = 10


def _memory(entry: TieredMemory) -> MemoryOut:
    fields: dict[str, Any] = to_builtins(entry.raw, enc_hook=str)
    return MemoryOut(entry.key, entry.chunk_id, entry.kind, entry.meta.tier, entry.title, entry.body, fields)


def _record(context: Context, request: TraceRequest) -> Reply:
    entry = context.memory.continuum.traces.record(
        request.goal,
        [to_builtins(step) for step in request.steps],
        success=request.success,
        indicators=request.indicators,
        preconditions=request.preconditions,
        postconditions=request.postconditions,
        project=request.project,
        context_fingerprint=request.context_fingerprint,
        task_type=request.task_type,
        confidence=request.confidence,
        notes=request.notes,
        error=request.error,
    )
    return Reply(_memory(entry))


def _known(context: Context, key: str) -> str:
    """The key of a memory or a plain chunk that is there; what cannot be a key names nothing."""
    if key.startswith("chunk-") and is_chunk_id(key) and context.memory.store.exists(key):
        return key
    try:
        return context.memory.continuum.traces.find(key).key
    except InvalidMemory as error:
        raise NotFoundError(error.message) from None


def _use(context: Context, request: UseRequest) -> Used:
    entry = context.memory.continuum.traces.use(
        _known(context, request.key),
        request.success,
        project=request.project,
        context_fingerprint=request.context_fingerprint,
        validated=request.validated,
        error=request.error,
        step=request.step,
    )
    if isinstance(entry, Chunk):
        extra = entry.metadata.extra
        return Used(
            entry.id, entry.metadata.confidence, int(extra.get("usage_count") or 0), extra.get("success_rate")
        )
    return Used(entry.key, entry.meta.confidence_score, entry.meta.usage_count, entry.meta.rate)


def _list(context: Context, request: MemoryQuery) -> MemoryHits:
    return MemoryHits(context.memory.continuum.queries.memories(request.tier, request.limit), [])


def _one(context: Context, request: KeyQuery) -> MemoryOut:
    return _memory(context.memory.continuum.traces.read(_known(context, request.key)))


def _query(context: Context, request: TierQuery) -> MemoryHits:
    queries = context.memory.continuum.queries
    if request.kind == "recent":
        return MemoryHits(queries.recent(request.goal, limit=request.limit), [])
    if request.kind == "proven":
        return MemoryHits(queries.proven(request.goal, limit=request.limit), [])
    if request.kind == "stable":
        return MemoryHits(queries.stable(request.task_type, goal=request.goal, limit=request.limit), [])
    weights = None
    if request.weights is not None:
        weights = {name.replace("_", "-"): value for name, value in to_builtins(request.weights).items()}
    found = queries.query(
        request.goal,
        tier_weights=weights,
        min_confidence=request.min_confidence,
        task_type=request.task_type,
        include_core=request.include_core,
        limit=request.limit,
    )
    return MemoryHits(found.hits, found.core)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/continuum/memories", "listMemories", "Tiered memories, the most reliable first.", _GROUP,
        run=_list, request=MemoryQuery, response=MemoryHits,
    ),
    Operation(
        "GET", "/continuum/memory", "getMemory", "One tiered memory whole.", _GROUP,
        run=_one, request=KeyQuery, response=MemoryOut,
    ),
    Operation(
        "POST", "/continuum/query", "queryMemories", "Search across tiers, weighted by tier and reliability.",
        _GROUP, run=_query, request=TierQuery, response=MemoryHits,
    ),
    Operation(
        "POST", "/continuum/traces", "recordTrace", "Record what was done and how it went.", _GROUP,
        run=_record, request=TraceRequest, response=MemoryOut, status=201, writes=True,
    ),
    Operation(
        "POST", "/continuum/uses", "recordUse", "Record that a memory was applied, and how it went.", _GROUP,
        run=_use, request=UseRequest, response=Used, writes=True,
    ),
)  # fmt: skip
