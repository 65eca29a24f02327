"""Tiered memories: record, use, query, consolidate, prune, health, hints, working state, journal and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, field, structs, to_builtins

from rlm_mem.chunk import Chunk, is_chunk_id
from rlm_mem.continuum.answers import Hint, MemoryHit, QueryKind
from rlm_mem.continuum.schema import TierName
from rlm_mem.errors import InvalidMemory, NotFoundError
from rlm_mem.operations.fitting import Bounded, MayBeCut, PageQuery
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.shapes import fill
from rlm_mem.operations.traits import decode_cursor, encode_cursor
from rlm_mem.operations.types import (
    Confidence,
    DryRun,
    Limit,
    Line,
    LongText,
    Question,
    Request,
    TaskType,
    about,
    matching,
)

if TYPE_CHECKING:
    from rlm_mem.continuum.files import TieredMemory

_GROUP = "continuum"
_Name = Annotated[str, matching("[A-Za-z0-9][A-Za-z0-9 _.-]*", max_length=200)]
_Key = Annotated[str, about("File, file#entry or chunk id of a memory.", min_length=1, max_length=400)]
_OneLine = Annotated[str, matching(r"[^\x00-\x1f\x7f-\x9f]*", max_length=2000)]


class StepIn(Request):
    """One tool call of an execution."""

    tool: Line
    call: _OneLine = ""
    validation: _OneLine = ""
    on_error: _OneLine = ""
    status: _OneLine = "ok"
    result: _OneLine = ""


class TraceRequest(Request):
    """What was done, and its outcome; it becomes a memory of the high tier."""

    goal: Line
    steps: Annotated[list[StepIn], Meta(max_length=200)] = field(default_factory=list)
    success: Annotated[bool | None, about("Null: not known yet.")] = None
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


class MemoryOut(MayBeCut):
    """A tiered memory; ``fields`` are those of its front matter."""

    key: str
    chunk_id: str
    kind: str
    tier: str
    title: str
    body: str
    fields: dict[str, Any]


class Used(Struct):
    """A memory after a use, with the resulting figures."""

    key: str
    confidence: float
    usage_count: int
    success_rate: float | None


class MemoryQuery(Bounded, kw_only=True):
    """Which tiered memories."""

    tier: TierName | None = None
    limit: Limit = 100


class KeyQuery(Bounded, kw_only=True):
    """Which memory."""

    key: _Key


class MemoryHits(MayBeCut):
    """Tiered memories, best first, and the core, which is always included."""

    items: list[MemoryHit]
    core: list[MemoryHit]


class TierWeights(Request):
    """Weights of the tiers, 0 or more, not all 0."""

    high: Annotated[float, Meta(gt=0, le=1000)] = 0.1
    mid: Annotated[float, Meta(ge=0, le=1000)] = 0.6
    low: Annotated[float, Meta(ge=0, le=1000)] = 0.3
    ultra_low: Annotated[float, Meta(ge=0, le=1000)] = 0.0


class TierQuery(Bounded, kw_only=True):
    """What is to be done, in words."""

    goal: Question
    kind: Annotated[QueryKind, about("All tiers by weight, or one of the queries of a single tier.")] = (
        "weighted"
    )
    weights: TierWeights | None = None
    min_confidence: Confidence = 0.0
    task_type: _Name | None = None
    include_core: bool = True
    limit: Annotated[int, Meta(ge=1, le=200)] = 10


def _memory(entry: TieredMemory) -> MemoryOut:
    fields: dict[str, Any] = to_builtins(entry.raw, enc_hook=str)
    return MemoryOut(entry.key, entry.chunk_id, entry.kind, entry.meta.tier, entry.title, entry.body, fields)


def _record(context: Context, request: TraceRequest) -> MemoryOut:
    given = {**structs.asdict(request), "steps": [to_builtins(step) for step in request.steps]}
    return _memory(context.memory.continuum.traces.record(**given))


def _existing_key(context: Context, key: str) -> str:
    """Return the key of an existing memory or plain chunk; raises NotFoundError for any other text."""
    if key.startswith("chunk-") and is_chunk_id(key) and context.memory.store.exists(key):
        return key
    try:
        return context.memory.continuum.traces.find(key).key
    except InvalidMemory as error:
        raise NotFoundError(error.message) from None


def _use(context: Context, request: UseRequest) -> Used:
    given = {**structs.asdict(request), "key": _existing_key(context, request.key)}
    entry = context.memory.continuum.traces.use(**given)
    if isinstance(entry, Chunk):
        extra = entry.metadata.extra
        return Used(
            entry.id, entry.metadata.confidence, int(extra.get("usage_count") or 0), extra.get("success_rate")
        )
    return Used(entry.key, entry.meta.confidence_score, entry.meta.usage_count, entry.meta.rate)


def _list(context: Context, request: MemoryQuery) -> MemoryHits:
    return MemoryHits(context.memory.continuum.queries.memories(request.tier, request.limit), [])


def _one(context: Context, request: KeyQuery) -> MemoryOut:
    return _memory(context.memory.continuum.traces.read(_existing_key(context, request.key)))


def _query(context: Context, request: TierQuery) -> MemoryHits:
    weights = None
    if request.weights is not None:
        weights = {name.replace("_", "-"): value for name, value in to_builtins(request.weights).items()}
    found = context.memory.continuum.queries.of_kind(
        request.kind,
        request.goal,
        tier_weights=weights,
        min_confidence=request.min_confidence if request.kind == "weighted" else None,
        task_type=request.task_type,
        include_core=request.include_core,
        limit=request.limit,
    )
    return MemoryHits(found.hits, found.core)


class MemoryProblem(Struct):
    """A file, or a memory in it, that violates a rule; it is left unchanged."""

    file: str
    message: str


class ConsolidationResponse(MayBeCut):
    """What was, or would be, promoted, merged, queued for review and held back; each step with its reason."""

    dry_run: bool
    considered: int
    promoted: list[dict[str, str]]
    merged: list[dict[str, str]]
    queued: list[dict[str, str]]
    held: list[dict[str, str]]
    problems: list[MemoryProblem]
    notes: list[str]


class PruneStepOut(Struct):
    """The action of retention on one memory, and its reason."""

    key: str
    action: str
    reason: str
    tier: str


class Pruned(Struct):
    """What was, or would be, retired by the retention rules."""

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


class HintQuery(Bounded, kw_only=True):
    """The goal for which hints are requested."""

    goal: Question
    limit: Annotated[int, Meta(ge=1, le=50)] = 5


class Hints(MayBeCut):
    """Risk warnings, then success patterns."""

    items: list[Hint]


class StateOut(MayBeCut):
    """Working state of the current execution; empty if there is none."""

    plan: str
    context: str
    history: str
    constraints: str
    variables: dict[str, Any]


class StateRequest(Request):
    """A new execution, which replaces the former working state."""

    plan: LongText
    context: LongText = ""
    constraints: LongText = ""


class Cleared(Struct):
    """Files that were removed."""

    removed: list[str]


class JournalQuery(PageQuery):
    """Which entries of the journal."""

    op: Annotated[str, Meta(max_length=40)] | None = None


class JournalPage(MayBeCut):
    """Changes to tiered memories with their reasons, oldest first; ``next_cursor`` is null on the last page."""

    items: list[dict[str, Any]]
    next_cursor: str | None


class UndoTransition(Request):
    """Why a transition is undone."""

    reason: Line = "undone over HTTP"


class Undone(Struct):
    """The change that restored the files."""

    id: str
    at: str
    op: str
    entry: str
    reason: str


class SyncedTiers(Struct):
    """The number of files that had changed."""

    files: int


class Problems(Struct):
    """Memories that violate a rule of their tier."""

    items: list[MemoryProblem]


class ConsolidateArguments(Bounded, kw_only=True):
    """The tool's arguments."""

    dry_run: Annotated[bool, about("Only report what would be done.")] = False


def _consolidate(context: Context, request: DryRun | ConsolidateArguments) -> ConsolidationResponse:
    report = context.memory.continuum.consolidate(
        dry_run=request.dry_run,
        progress=lambda done, total: context.progress(done, total, f"considered {done} of {total} memories"),
    )
    return fill(ConsolidationResponse, report)


def _prune(context: Context, request: DryRun) -> Pruned:
    return fill(Pruned, context.memory.continuum.prune(dry_run=request.dry_run))


def _health(context: Context, _: object) -> Health:
    return Health(**context.memory.continuum.health())


def _hints(context: Context, request: HintQuery) -> Hints:
    return Hints(context.memory.continuum.hints(request.goal, limit=request.limit))


def _check(context: Context, _: object) -> Problems:
    return fill(Problems, items=context.memory.continuum.check())


def _sync(context: Context, _: object) -> SyncedTiers:
    return SyncedTiers(context.memory.continuum.sync())


def _state(context: Context, _: Bounded) -> StateOut:
    state = context.memory.continuum.workspace
    return StateOut(
        state.text("plan"), state.text("context"), state.text("history"), state.text("constraints"),
        state.variables(),
    )  # fmt: skip


def _start(context: Context, request: StateRequest) -> StateOut:
    context.memory.continuum.workspace.start(
        request.plan, context=request.context, constraints=request.constraints
    )
    return _state(context, Bounded())


def _clear(context: Context, _: object) -> Cleared:
    return Cleared(context.memory.continuum.workspace.clear())


class SkillsQuery(Bounded, kw_only=True):
    """Which memories to turn into skills."""

    mid: Annotated[bool, about("Also those of the mid tier, which are not stable yet.")] = False


class SkillOut(Struct):
    """A skill: the text of its SKILL.md, for a folder of this name."""

    name: str
    key: str
    text: str
    evidence: list[str]


class Skills(MayBeCut):
    """Skills made from stable memories."""

    items: list[SkillOut]


def _skills(context: Context, request: SkillsQuery) -> Skills:
    return fill(Skills, items=context.memory.continuum.skills(mid=request.mid))


def _journal(context: Context, request: JournalQuery) -> JournalPage:
    start = 0
    if request.cursor is not None:
        # The journal is append-only, so the number of entries already returned is a stable position.
        (start,) = decode_cursor("journal", request.cursor, tuple[Annotated[int, Meta(ge=0)]])
    steps = list(context.memory.continuum.changes.journal(op=request.op))
    more = start + request.limit < len(steps)
    return JournalPage(
        steps[start : start + request.limit],
        encode_cursor("journal", start + request.limit) if more else None,
    )


def _undo(context: Context, request: UndoTransition) -> Undone:
    change = context.memory.continuum.undo(context.path["transition_id"], request.reason)
    return fill(Undone, change)


OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/continuum/memories", "listMemories", "Tiered memories, most reliable first.", _GROUP, run=_list),
    Operation("GET", "/continuum/memory", "getMemory", "One tiered memory.", _GROUP, run=_one),
    Operation(
        "POST", "/continuum/query", "queryMemories", "Search across tiers, weighted by tier and reliability.", _GROUP,
        permission="read", run=_query,
    ),
    Operation(
        "POST", "/continuum/traces", "recordTrace", "Record what was done, and its outcome.", _GROUP, run=_record,
        status=201, writes=True,
    ),
    Operation(
        "POST", "/continuum/uses", "recordUse", "Record that a memory was applied, and the outcome.", _GROUP, run=_use,
        writes=True,
    ),
    Operation(
        "POST", "/continuum/consolidate", "consolidate", "Promote proven memories; by default a dry run.", _GROUP,
        run=_consolidate, request=DryRun, writes=True,
        tool=Tool(
            name="consolidate",
            title="Consolidate memories",
            description="Promote tiered memories with proven success, merge equal ones, and queue candidates "
            "for the core for review. Safe to repeat.",
            request=ConsolidateArguments,
            aliases={"dryRun": "dry_run", "preview": "dry_run"},
            default=False,
        ),
    ),
    Operation(
        "POST", "/continuum/prune", "prune", "Apply retention; by default a dry run.", _GROUP, run=_prune, writes=True,
    ),
    Operation("GET", "/continuum/health", "getHealth", "Figures of the tiers.", _GROUP, run=_health),
    Operation(
        "GET", "/continuum/skills", "getSkills", "Stable memories as skills of coding agents.", _GROUP, run=_skills,
        tool=Tool(
            name="skills",
            title="Skills from memories",
            description="Return proven procedures as skills: the text of a SKILL.md for each. Nothing is "
            "written.",
            default=False,
        ),
    ),
    Operation("GET", "/continuum/hints", "getHints", "Risks and success patterns for a goal.", _GROUP, run=_hints),
    Operation(
        "GET", "/continuum/problems", "checkMemories", "Tiered memories that violate a rule.", _GROUP, run=_check,
    ),
    Operation(
        "POST", "/continuum/sync", "syncMemories", "Index files of tiered memories that were edited by hand.", _GROUP,
        permission="admin", everywhere=True, run=_sync, writes=True,
    ),
    Operation("GET", "/continuum/state", "getState", "Working state of the current execution.", _GROUP, run=_state),
    Operation(
        "PUT", "/continuum/state", "putState", "Start an execution with a new plan, context and constraints.", _GROUP,
        run=_start, writes=True,
    ),
    Operation("DELETE", "/continuum/state", "clearState", "Clear the working state.", _GROUP, run=_clear, writes=True),
    Operation(
        "GET", "/continuum/journal", "getJournal", "Every change to tiered memories with its reason.", _GROUP,
        run=_journal, paged=True,
    ),
    Operation(
        "POST", "/continuum/transitions/{transition_id}/undo", "undoTransition",
        "Restore the files of a transition as they were.", _GROUP, permission="review", run=_undo, writes=True,
    ),
)  # fmt: skip
