"""The care of tiered memories over HTTP: consolidate, prune, health, hints, working state, journal and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from rlm_mem.continuum.hints import Hint
from rlm_mem.operations.operation import Ask, Endpoint
from rlm_mem.operations.paging import decode_cursor, encode_cursor
from rlm_mem.operations.types import Cursor, Limit, Line, LongText, Query, Question, Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlm_mem.continuum.files import InvalidEntry

__all__ = ["ENDPOINTS", "DryRun"]

_GROUP = "continuum"


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


def _problems(found: Iterable[InvalidEntry]) -> list[MemoryProblem]:
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
