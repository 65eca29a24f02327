"""Tiered memories over HTTP: record, use, query, consolidate, prune, working state, transitions and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, field, to_builtins

from rlm_mem.chunk import Chunk, is_chunk_id
from rlm_mem.continuum.hints import Hint
from rlm_mem.continuum.query import MemoryHit
from rlm_mem.errors import InvalidMemory, NotFoundError
from rlm_mem.server.api.endpoint import Ask, Endpoint, Reply
from rlm_mem.server.api.paging import decode_cursor, encode_cursor
from rlm_mem.server.api.types import (
    Confidence,
    Cursor,
    Limit,
    Line,
    LongText,
    Query,
    Question,
    Request,
    TaskType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlm_mem.continuum.files import Entry, Problem

__all__ = ["ENDPOINTS"]

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


class MemoryQuery(Query):
    """Which tiered memories."""

    tier: _Tier | None = None
    limit: Limit = 100


class KeyQuery(Query):
    """Which memory."""

    key: _Key


class MemoryHits(Struct):
    """Tiered memories, the best first, and the core that is always included."""

    items: list[MemoryHit]
    core: list[MemoryHit]


class Weights(Request):
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
    weights: Weights | None = None
    min_confidence: Confidence = 0.0
    task_type: _Name | None = None
    include_core: bool = True
    limit: Annotated[int, Meta(ge=1, le=200)] = 10


class DryRun(Request):
    """Whether anything is to be changed."""

    dry_run: Annotated[bool, Meta(description="Only say what would be done.")] = True


class MemoryProblem(Struct):
    """A file, or a memory in it, that breaks a rule; it is left alone."""

    file: str
    message: str


class Consolidated(Struct):
    """What was, or would be, promoted, merged, put before a reviewer and held back; each step with its reason."""

    dry_run: bool
    considered: int
    promoted: list[dict[str, str]]
    merged: list[dict[str, str]]
    queued: list[dict[str, str]]
    held: list[dict[str, str]]
    problems: list[MemoryProblem]
    notes: list[str]


class PruneStepOut(Struct):
    """What retention does with one memory, and why."""

    key: str
    action: str
    reason: str
    tier: str


class Pruned(Struct):
    """What was, or would be, retired by age and retention policy."""

    dry_run: bool
    considered: int
    steps: list[PruneStepOut]
    problems: list[MemoryProblem]


class Health(Struct):
    """Figures of the tiers."""

    tiers: dict[str, int]
    consolidation_rate: float | None
    reuse: float | None
    promotions_per_month: dict[str, int]
    uses: int
    demotions: int
    open_reviews: int
    problems: int


class HintQuery(Query):
    """For what."""

    goal: Question
    limit: Annotated[int, Meta(ge=1, le=50)] = 5


class Hints(Struct):
    """Risk warnings, then success patterns."""

    items: list[Hint]


class StateOut(Struct):
    """Working state of the execution that is going on; empty where there is none."""

    plan: str
    context: str
    history: str
    constraints: str
    variables: dict[str, Any]


class StateRequest(Request):
    """A new execution: what was there is cleared."""

    plan: LongText
    context: LongText = ""
    constraints: LongText = ""


class Cleared(Struct):
    """Files that were removed."""

    removed: list[str]


class JournalQuery(Query):
    """Which steps."""

    op: Annotated[str, Meta(max_length=40)] | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


class JournalPage(Struct):
    """Steps of the tiers with their reasons, the oldest first; ``next_cursor`` is null on the last page."""

    items: list[dict[str, Any]]
    next_cursor: str | None


class UndoTransition(Request):
    """Why a transition is undone."""

    reason: Line = "undone over HTTP"


class Undone(Struct):
    """The step that put the files back."""

    id: str
    at: str
    op: str
    entry: str
    reason: str


class SyncedTiers(Struct):
    """How many files had changed."""

    files: int


class Problems(Struct):
    """What breaks a rule of its tier."""

    items: list[MemoryProblem]


def _memory(entry: Entry) -> MemoryOut:
    fields: dict[str, Any] = to_builtins(entry.raw, enc_hook=str)
    return MemoryOut(entry.key, entry.chunk_id, entry.kind, entry.meta.tier, entry.title, entry.body, fields)


def _record(ask: Ask) -> Reply:
    given: TraceRequest = ask.body
    entry = ask.memory.continuum.traces.record(
        given.goal,
        [to_builtins(step) for step in given.steps],
        success=given.success,
        indicators=given.indicators,
        preconditions=given.preconditions,
        postconditions=given.postconditions,
        project=given.project,
        context_fingerprint=given.context_fingerprint,
        task_type=given.task_type,
        confidence=given.confidence,
        notes=given.notes,
        error=given.error,
    )
    return Reply(_memory(entry))


def _known(ask: Ask, key: str) -> str:
    """The key of a memory or a plain chunk that is there; what cannot be a key names nothing."""
    if key.startswith("chunk-") and is_chunk_id(key) and ask.memory.store.exists(key):
        return key
    try:
        return ask.memory.continuum.traces.find(key).key
    except InvalidMemory as error:
        raise NotFoundError(error.message) from None


def _use(ask: Ask) -> Used:
    given: UseRequest = ask.body
    entry = ask.memory.continuum.traces.use(
        _known(ask, given.key),
        given.success,
        project=given.project,
        context_fingerprint=given.context_fingerprint,
        validated=given.validated,
        error=given.error,
        step=given.step,
    )
    if isinstance(entry, Chunk):
        extra = entry.metadata.extra
        return Used(
            entry.id, entry.metadata.confidence, int(extra.get("usage_count") or 0), extra.get("success_rate")
        )
    return Used(entry.key, entry.meta.confidence_score, entry.meta.usage_count, entry.meta.rate)


def _list(ask: Ask) -> MemoryHits:
    return MemoryHits(ask.memory.continuum.queries.memories(ask.query.tier, ask.query.limit), [])


def _one(ask: Ask) -> MemoryOut:
    return _memory(ask.memory.continuum.traces.read(_known(ask, ask.query.key)))


def _query(ask: Ask) -> MemoryHits:
    given: TierQuery = ask.body
    queries = ask.memory.continuum.queries
    if given.kind == "recent":
        return MemoryHits(queries.recent(given.goal, limit=given.limit), [])
    if given.kind == "proven":
        return MemoryHits(queries.proven(given.goal, limit=given.limit), [])
    if given.kind == "stable":
        return MemoryHits(queries.stable(given.task_type, goal=given.goal, limit=given.limit), [])
    weights = None
    if given.weights is not None:
        weights = {name.replace("_", "-"): value for name, value in to_builtins(given.weights).items()}
    found = queries.query(
        given.goal,
        tier_weights=weights,
        min_confidence=given.min_confidence,
        task_type=given.task_type,
        include_core=given.include_core,
        limit=given.limit,
    )
    return MemoryHits(found.hits, found.core)


def _problems(found: Iterable[Problem]) -> list[MemoryProblem]:
    return [MemoryProblem(one.file, one.message) for one in found]


def _consolidate(ask: Ask) -> Consolidated:
    report = ask.memory.continuum.consolidate(dry_run=ask.body.dry_run)
    return Consolidated(
        report.dry_run, report.considered, report.promoted, report.merged, report.queued, report.held,
        _problems(report.problems), report.notes,
    )  # fmt: skip


def _prune(ask: Ask) -> Pruned:
    report = ask.memory.continuum.prune(dry_run=ask.body.dry_run)
    steps = [PruneStepOut(step.key, step.action, step.reason, step.tier) for step in report.steps]
    return Pruned(report.dry_run, report.considered, steps, _problems(report.problems))


def _health(ask: Ask) -> Health:
    return Health(**ask.memory.continuum.health())


def _hints(ask: Ask) -> Hints:
    return Hints(ask.memory.continuum.hints(ask.query.goal, limit=ask.query.limit))


def _check(ask: Ask) -> Problems:
    return Problems(_problems(ask.memory.continuum.check()))


def _sync(ask: Ask) -> SyncedTiers:
    return SyncedTiers(ask.memory.continuum.sync())


def _state(ask: Ask) -> StateOut:
    state = ask.memory.continuum.workspace
    return StateOut(
        state.text("plan"), state.text("context"), state.text("history"), state.text("constraints"),
        state.variables(),
    )  # fmt: skip


def _start(ask: Ask) -> StateOut:
    given: StateRequest = ask.body
    ask.memory.continuum.workspace.start(given.plan, context=given.context, constraints=given.constraints)
    return _state(ask)


def _clear(ask: Ask) -> Cleared:
    return Cleared(ask.memory.continuum.workspace.clear())


def _journal(ask: Ask) -> JournalPage:
    query: JournalQuery = ask.query
    start = 0
    if query.cursor is not None:
        # Steps are only ever added, so their number is a place that stays.
        (start,) = decode_cursor("journal", query.cursor, tuple[Annotated[int, Meta(ge=0)]])
    steps = list(ask.memory.continuum.changes.journal(op=query.op))
    more = start + query.limit < len(steps)
    return JournalPage(
        steps[start : start + query.limit],
        encode_cursor("journal", start + query.limit) if more else None,
    )


def _undo(ask: Ask) -> Undone:
    change = ask.memory.continuum.undo(ask.path["transition_id"], ask.body.reason)
    return Undone(change.id, change.at, change.op, change.entry, change.reason)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", "/continuum/memories", "listMemories", "Tiered memories, the most reliable first.", _GROUP,
        run=_list, query=MemoryQuery, gives=MemoryHits,
    ),
    Endpoint(
        "GET", "/continuum/memory", "getMemory", "One tiered memory whole.", _GROUP,
        run=_one, query=KeyQuery, gives=MemoryOut,
    ),
    Endpoint(
        "POST", "/continuum/query", "queryMemories", "Search across tiers, weighted by tier and reliability.",
        _GROUP, run=_query, takes=TierQuery, gives=MemoryHits,
    ),
    Endpoint(
        "POST", "/continuum/traces", "recordTrace", "Record what was done and how it went.", _GROUP,
        run=_record, takes=TraceRequest, gives=MemoryOut, status=201, writes=True,
    ),
    Endpoint(
        "POST", "/continuum/uses", "recordUse", "Record that a memory was applied, and how it went.", _GROUP,
        run=_use, takes=UseRequest, gives=Used, writes=True,
    ),
    Endpoint(
        "POST", "/continuum/consolidate", "consolidate", "Promote what has proved itself; by default a dry run.",
        _GROUP, run=_consolidate, takes=DryRun, gives=Consolidated, writes=True,
    ),
    Endpoint(
        "POST", "/continuum/prune", "prune", "Apply retention; by default a dry run.", _GROUP,
        run=_prune, takes=DryRun, gives=Pruned, writes=True,
    ),
    Endpoint(
        "GET", "/continuum/health", "getHealth", "Figures of the tiers.", _GROUP, run=_health, gives=Health
    ),
    Endpoint(
        "GET", "/continuum/hints", "getHints", "Risks and success patterns for a goal.", _GROUP,
        run=_hints, query=HintQuery, gives=Hints,
    ),
    Endpoint(
        "GET", "/continuum/problems", "checkMemories", "Tiered memories that break a rule.", _GROUP,
        run=_check, gives=Problems,
    ),
    Endpoint(
        "POST", "/continuum/sync", "syncMemories", "Notice files of tiered memories that were edited by hand.",
        _GROUP, run=_sync, gives=SyncedTiers, writes=True,
    ),
    Endpoint(
        "GET", "/continuum/state", "getState", "Working state of the execution that is going on.", _GROUP,
        run=_state, gives=StateOut,
    ),
    Endpoint(
        "PUT", "/continuum/state", "putState", "Begin an execution: new plan, context and constraints.", _GROUP,
        run=_start, takes=StateRequest, gives=StateOut, writes=True,
    ),
    Endpoint(
        "DELETE", "/continuum/state", "clearState", "Clear the working state.", _GROUP,
        run=_clear, gives=Cleared, writes=True,
    ),
    Endpoint(
        "GET", "/continuum/journal", "getJournal", "Every step of the tiers with its reason.", _GROUP,
        run=_journal, query=JournalQuery, gives=JournalPage, paged=True,
    ),
    Endpoint(
        "POST", "/continuum/transitions/{transition_id}/undo", "undoTransition",
        "Put the files of a transition back as they were.", _GROUP,
        run=_undo, takes=UndoTransition, gives=Undone, writes=True,
    ),
)  # fmt: skip
