"""The care of tiered memories over HTTP: consolidate, prune, health, hints, working state, journal and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from rlm_mem.continuum.hints import Hint
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.paging import decode_cursor, encode_cursor
from rlm_mem.operations.types import Cursor, Limit, Line, LongText, Question, Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlm_mem.continuum.files import InvalidEntry

__all__ = ["OPERATIONS", "DryRun"]

_GROUP = "continuum"


class DryRun(Request):
    """Whether anything is to be changed."""

    dry_run: Annotated[bool, Meta(description="Only say what would be done.")] = True


class MemoryProblem(Struct):
    """A file, or a memory in it, that breaks a rule; it is left alone."""

    file: str
    message: str


class ConsolidationResponse(Struct):
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


class HintQuery(Request):
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


class JournalQuery(Request):
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


class ConsolidateArguments(Request):
    """As an agent gives it."""

    dry_run: Annotated[bool, Meta(description="Only say what would be done.")] = False


def _problems(found: Iterable[InvalidEntry]) -> list[MemoryProblem]:
    return [MemoryProblem(one.file, one.message) for one in found]


def _consolidate(context: Context, request: DryRun | ConsolidateArguments) -> ConsolidationResponse:
    report = context.memory.continuum.consolidate(
        dry_run=request.dry_run,
        progress=lambda done, total: context.progress(done, total, f"considered {done} of {total} memories"),
    )
    return ConsolidationResponse(
        report.dry_run, report.considered, report.promoted, report.merged, report.queued, report.held,
        _problems(report.problems), report.notes,
    )  # fmt: skip


def _prune(context: Context, request: DryRun) -> Pruned:
    report = context.memory.continuum.prune(dry_run=request.dry_run)
    steps = [PruneStepOut(step.key, step.action, step.reason, step.tier) for step in report.steps]
    return Pruned(report.dry_run, report.considered, steps, _problems(report.problems))


def _health(context: Context, _: object) -> Health:
    return Health(**context.memory.continuum.health())


def _hints(context: Context, request: HintQuery) -> Hints:
    return Hints(context.memory.continuum.hints(request.goal, limit=request.limit))


def _check(context: Context, _: object) -> Problems:
    return Problems(_problems(context.memory.continuum.check()))


def _sync(context: Context, _: object) -> SyncedTiers:
    return SyncedTiers(context.memory.continuum.sync())


def _state(context: Context, _: object) -> StateOut:
    state = context.memory.continuum.workspace
    return StateOut(
        state.text("plan"), state.text("context"), state.text("history"), state.text("constraints"),
        state.variables(),
    )  # fmt: skip


def _start(context: Context, request: StateRequest) -> StateOut:
    context.memory.continuum.workspace.start(
        request.plan, context=request.context, constraints=request.constraints
    )
    return _state(context, None)


def _clear(context: Context, _: object) -> Cleared:
    return Cleared(context.memory.continuum.workspace.clear())


def _journal(context: Context, request: JournalQuery) -> JournalPage:
    start = 0
    if request.cursor is not None:
        # Steps are only ever added, so their number is a place that stays.
        (start,) = decode_cursor("journal", request.cursor, tuple[Annotated[int, Meta(ge=0)]])
    steps = list(context.memory.continuum.changes.journal(op=request.op))
    more = start + request.limit < len(steps)
    return JournalPage(
        steps[start : start + request.limit],
        encode_cursor("journal", start + request.limit) if more else None,
    )


def _undo(context: Context, request: UndoTransition) -> Undone:
    change = context.memory.continuum.undo(context.path["transition_id"], request.reason)
    return Undone(change.id, change.at, change.op, change.entry, change.reason)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", "/continuum/consolidate", "consolidate", "Promote what has proved itself; by default a dry run.",
        _GROUP, run=_consolidate, request=DryRun, response=ConsolidationResponse, writes=True,
        tool=Tool(
            name="consolidate",
            title="Consolidate memories",
            description="Promote tiered memories that have proved themselves, merge what says the same, and put what "
            "is to become permanent before a person. Safe to repeat.",
            request=ConsolidateArguments,
            aliases={"dryRun": "dry_run", "preview": "dry_run"},
            default=False,
        ),
    ),
    Operation(
        "POST", "/continuum/prune", "prune", "Apply retention; by default a dry run.", _GROUP,
        run=_prune, request=DryRun, response=Pruned, writes=True,
    ),
    Operation(
        "GET", "/continuum/health", "getHealth", "Figures of the tiers.", _GROUP, run=_health, response=Health
    ),
    Operation(
        "GET", "/continuum/hints", "getHints", "Risks and success patterns for a goal.", _GROUP,
        run=_hints, request=HintQuery, response=Hints,
    ),
    Operation(
        "GET", "/continuum/problems", "checkMemories", "Tiered memories that break a rule.", _GROUP,
        run=_check, response=Problems,
    ),
    Operation(
        "POST", "/continuum/sync", "syncMemories", "Notice files of tiered memories that were edited by hand.",
        _GROUP, run=_sync, response=SyncedTiers, writes=True,
    ),
    Operation(
        "GET", "/continuum/state", "getState", "Working state of the execution that is going on.", _GROUP,
        run=_state, response=StateOut,
    ),
    Operation(
        "PUT", "/continuum/state", "putState", "Begin an execution: new plan, context and constraints.", _GROUP,
        run=_start, request=StateRequest, response=StateOut, writes=True,
    ),
    Operation(
        "DELETE", "/continuum/state", "clearState", "Clear the working state.", _GROUP,
        run=_clear, response=Cleared, writes=True,
    ),
    Operation(
        "GET", "/continuum/journal", "getJournal", "Every step of the tiers with its reason.", _GROUP,
        run=_journal, request=JournalQuery, response=JournalPage, paged=True,
    ),
    Operation(
        "POST", "/continuum/transitions/{transition_id}/undo", "undoTransition",
        "Put the files of a transition back as they were.", _GROUP,
        run=_undo, request=UndoTransition, response=Undone, writes=True,
    ),
)  # fmt: skip
