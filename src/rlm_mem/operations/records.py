"""Records over HTTP: trajectories, costs, the audit log, changes and their undo, and the stream of changes."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from itertools import dropwhile, islice
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, to_builtins

from rlm_mem import recall
from rlm_mem.chunk import ChunkMetadata
from rlm_mem.chunk.types import rank
from rlm_mem.continuum.undoing import change_to_undo, undo_found
from rlm_mem.errors import InputError, NotFoundError
from rlm_mem.operations.consent import persons
from rlm_mem.operations.fitting import Bounded, MayBeCut, PageQuery
from rlm_mem.operations.operation import EVENT_STREAM, Context, Operation, Tool
from rlm_mem.operations.shapes import TokenUsage, fill
from rlm_mem.operations.tokens import may_see
from rlm_mem.operations.traits import decode_cursor, encode_cursor, page_of
from rlm_mem.operations.types import ChunkId, Cursor, Limit, Request, Since, Until, about, matching, utc
from rlm_mem.recall.outcome import OPERATION_WORDS, OutcomeWord, RunOperation

if TYPE_CHECKING:
    from rlm_mem.store.core.undoing import LoggedChange

_GROUP = "records"
#: Maximum characters of an answer in the list of runs.
_MAX_ANSWER_CHARS = 500


class RunsArguments(Bounded, kw_only=True):
    """Which recorded runs."""

    operation: Annotated[RunOperation, about(f"Only {OPERATION_WORDS}.")] | None = None
    since: Since | None = None
    until: Until | None = None
    limit: Limit = 50


class TrajectoryQuery(RunsArguments):
    """Which trajectories."""

    cursor: Cursor | None = None


class RunSummary(Struct):
    """A recorded recall; `outcome` is null if no end is recorded."""

    id: str
    operation: str
    query: str
    started_at: str
    model: str
    iterations: int
    seconds: float
    concluded: bool | None
    outcome: OutcomeWord | None
    answer: str | None
    suggestion: str | None
    withheld: list[str]


class TrajectorySummary(RunSummary):
    """A recorded run; ``concluded`` and ``outcome`` are null, and figures are 0, if no end is recorded.

    ``withheld`` has the ids of chunks in quarantine that the run met: its texts are hidden until they are released.
    """

    engine: str
    stopped_by: str | None
    usage: TokenUsage
    cost: Decimal | None
    error: str | None


class TrajectoryPage(MayBeCut):
    """Recorded runs, newest first; ``next_cursor`` is null on the last page."""

    items: list[TrajectorySummary]
    next_cursor: str | None


class TrajectoryOut(MayBeCut):
    """A recorded run step by step: programs, output, sub-calls, outcome; ``withheld`` as in a list of runs."""

    id: str
    operation: str
    query: str
    started_at: str
    model: str
    engine: str
    limits: dict[str, Any]
    store: dict[str, Any]
    hits: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    calls: list[dict[str, Any]]
    outcome: dict[str, Any] | None
    withheld: list[str]


class PeriodQuery(Request):
    """Which days."""

    since: Since | None = None
    until: Until | None = None


class CostOut(Struct):
    """Spending of one day (UTC), model and operation; ``cost`` in US dollars, null if nothing had a price."""

    day: str
    model: str
    operation: str
    runs: int
    calls: int
    usage: TokenUsage
    cost: Decimal | None
    unpriced_calls: int


class Costs(Struct):
    """Spending, oldest day first; ``total`` is the sum of the priced calls."""

    items: list[CostOut]
    total: Decimal
    unpriced_calls: int


class EventsQuery(PageQuery):
    """Which events of the audit log."""

    since: Since | None = None
    op: Annotated[str, about("Only this operation.", max_length=40)] | None = None
    chunk_id: ChunkId | None = None


class EventPage(MayBeCut):
    """Events of the audit log, oldest first; ``next_cursor`` is null on the last page."""

    items: list[dict[str, Any]]
    next_cursor: str | None


class ChangesArguments(Bounded, kw_only=True):
    """How many changes."""

    limit: Limit = 20


class ChangesQuery(ChangesArguments):
    """Which changes."""

    cursor: Cursor | None = None


class ChangeOut(Struct):
    """A change: what it did to which chunks and files; ``undoes`` names the change that it undoes."""

    id: str
    at: str
    ops: list[str]
    chunk_ids: list[str]
    files: list[str]
    actor: str | None
    reason: str
    undoes: str | None
    undone: bool


class ChangePage(MayBeCut):
    """Changes, newest first; ``next_cursor`` is null on the last page."""

    items: list[ChangeOut]
    next_cursor: str | None


class ChangeList(MayBeCut):
    """Changes, newest first."""

    changes: list[ChangeOut]


class UndoChange(Request):
    """Which change is undone."""

    change: (
        Annotated[
            str,
            matching(
                "[0-9]{20}-[0-9a-f]{16}",
                "The id of a change, or of an undo; by default your own last change.",
            ),
        ]
        | None
    ) = None


class UndoneOut(Struct):
    """What was undone; ``undo`` is the id for undoing this undo."""

    change: str | None
    undo: str
    at: str
    ops: list[str]
    chunk_ids: list[str]
    files: list[str]


class RunList(MayBeCut):
    """Recorded recalls, newest first."""

    trajectories: list[RunSummary]


def _trajectories(context: Context, request: TrajectoryQuery) -> TrajectoryPage:
    found = context.memory.trajectories(
        operation=request.operation, since=utc(request.since), until=utc(request.until), limit=None
    )
    page, cursor = page_of(
        "trajectories",
        found,
        lambda info: (info.started_at, info.id),
        tuple[str, str],
        request,
        descending=True,
    )
    return fill(TrajectoryPage, items=page, next_cursor=cursor)


def _trajectory(context: Context, _: Bounded) -> TrajectoryOut:
    found = recall.shown_trajectory(context.memory.store, context.path["trajectory_id"])
    plain = to_builtins(asdict(found), enc_hook=str)
    if found.outcome is not None:
        plain["outcome"]["word"] = found.outcome.word
    return TrajectoryOut(**{name: plain[name] for name in TrajectoryOut.__struct_fields__ if name in plain})


def _costs(context: Context, request: PeriodQuery) -> Costs:
    lines = context.memory.costs(since=utc(request.since), until=utc(request.until))
    return Costs(
        [fill(CostOut, one) for one in lines],
        sum((one.cost for one in lines if one.cost is not None), Decimal(0)),
        sum(one.unpriced_calls for one in lines),
    )


def _events(context: Context, request: EventsQuery) -> EventPage:
    since, skipped = utc(request.since), 0
    if request.cursor is not None:
        # Events are only appended, so a time and the number of its events returned so far are a stable position.
        since, skipped = decode_cursor("events", request.cursor, tuple[str, Annotated[int, Meta(ge=0)]])
    items: list[dict[str, Any]] = []
    same = 0
    more = False
    for line in context.memory.store.events(since=since, op=request.op, chunk_id=request.chunk_id):
        if not may_see(context.opened.access, line):
            continue
        if request.cursor is not None and line.get("ts") == since and same < skipped:
            same += 1
            continue
        if len(items) == request.limit:
            more = True
            break
        items.append(line)
    if not more:
        return EventPage(items, None)
    last = str(items[-1].get("ts", ""))
    at_last = sum(line.get("ts") == last for line in items) + (skipped if last == since else 0)
    return EventPage(items, encode_cursor("events", last, at_last))


def _changes(context: Context, request: ChangesQuery) -> ChangePage:
    found = context.memory.continuum.recorded_changes()
    if request.cursor is not None:
        # Changes are only added at the front, so the last one returned is a stable position.
        (last,) = decode_cursor("undo", request.cursor, tuple[str])
        found = islice(dropwhile(lambda change: change.id != last, found), 1, None)
    page = list(islice(found, request.limit + 1))
    items = [fill(ChangeOut, one) for one in page[: request.limit]]
    return ChangePage(items, encode_cursor("undo", items[-1].id) if len(page) > len(items) else None)


def _last_changes(context: Context, request: ChangesArguments) -> ChangeList:
    return ChangeList([fill(ChangeOut, one) for one in context.memory.recorded_changes(request.limit)])


def _undo(context: Context, request: UndoChange) -> UndoneOut:
    change = _wanted(context, request)
    return fill(UndoneOut, undo_found(context.memory.store, context.memory.continuum.changes, change))


def _wanted(context: Context, request: UndoChange) -> LoggedChange:
    store = context.memory.store
    change = change_to_undo(store, request.change, by=store.actor)
    if change is None:
        raise NotFoundError("there is nothing to undo", hint="see the list of changes")
    return change


def _says_less(now: ChunkMetadata, before: ChunkMetadata) -> bool:
    """Whether a chunk has another text than before, or is replaced by another one than before."""
    replaced = now.superseded_by is not None and now.superseded_by != before.superseded_by
    return replaced or now.content_hash != before.content_hash


def _undo_by_agent(context: Context, request: UndoChange) -> UndoneOut:
    """Undo, unless only a person may: it would release a chunk from quarantine, trust the same text more, or take away
    what a person wrote or confirmed.
    """
    store = context.memory.store
    with context.memory.batch():  # a refusal leaves everything as it was
        change = _wanted(context, request)
        theirs = {} if store.actor in change.actors else persons(context, change.chunk_ids)
        before = store.backend.chunks(store.namespace, change.chunk_ids, status=None)
        undone = undo_found(store, context.memory.continuum.changes, change)
        left = store.get_many(list(theirs), track=False)
        for chunk_id, chunk in theirs.items():
            if chunk_id not in left or _says_less(left[chunk_id].metadata, chunk.metadata):
                who = ", ".join(change.actors) or "somebody else"
                raise InputError(
                    f"undoing this change by {who} takes away {chunk_id}, which a person wrote or confirmed",
                    hint="ask them to undo it: rlm-mem undo, or the page Changes of the dashboard",
                )
        for chunk_id, chunk in store.backend.chunks(store.namespace, change.chunk_ids, status=None).items():
            former, now = before[chunk_id].metadata, chunk.metadata
            if rank(now.trust) <= rank(former.trust):
                continue
            if former.trust == "quarantined" or former.content_hash == now.content_hash:
                raise InputError(
                    f"this change lowered the trust in {chunk_id} to {former.trust}, which only a person can undo",
                    hint="ask them to check the review queue"
                    if former.trust == "quarantined"
                    else "ask them to undo it",
                )
    return fill(UndoneOut, undone)


def _recent_runs(context: Context, request: RunsArguments) -> RunList:
    found = context.memory.trajectories(
        operation=request.operation, since=utc(request.since), until=utc(request.until), limit=request.limit
    )
    return RunList(
        [
            fill(
                RunSummary,
                one,
                query=one.query[:500],
                answer=None if one.answer is None else one.answer[:_MAX_ANSWER_CHARS],
                suggestion=None if one.suggestion is None else one.suggestion[:_MAX_ANSWER_CHARS],
            )
            for one in found
        ]
    )


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/trajectories", "listTrajectories", "Recorded runs, newest first.", _GROUP, run=_trajectories,
        paged=True,
        tool=Tool(
            name="trajectories",
            title="Recorded recalls",
            description="List recorded recalls, newest first. The resource memory://trajectories/ID has the "
            "steps of one.",
            run=_recent_runs,
            aliases={"n": "limit", "start": "since", "end": "until"},
            default=False,
        ),
    ),
    Operation(
        "GET", "/trajectories/{trajectory_id}", "getTrajectory", "One recorded run step by step.", _GROUP,
        run=_trajectory,
    ),
    Operation("GET", "/costs", "getCosts", "Costs of runs, by day, model and operation.", _GROUP, run=_costs),
    Operation("GET", "/events", "listEvents", "The audit log.", _GROUP, run=_events, paged=True),
    Operation(
        "GET", "/undo", "listChanges", "The last changes, newest first.", _GROUP, run=_changes, paged=True,
        tool=Tool(
            name="changes",
            title="Last changes",
            description="List the last changes of the memory, newest first, with the ids for undo.",
            run=_last_changes,
            aliases={"n": "limit"},
            default=False,
        ),
    ),
    Operation(
        "POST", "/undo", "undoChange", "Undo your own last change, of any kind, or one by its id.", _GROUP,
        permission="review", run=_undo, writes=True,
        description="Chunks, tiered memories, reviews and personas of one change are restored together, or not at all: "
        "409 if one of them was changed since, or its former state is no longer kept.",
        tool=Tool(
            name="undo",
            title="Undo a change",
            run=_undo_by_agent,
            description="Undo your own last change, of any kind, or one by its id. Returns the id for undoing this "
            "undo. Each call undoes one more change.",
            destructive=True,
            idempotent=False,
            aliases={"id": "change", "change_id": "change"},
            default=False,
        ),
    ),
    Operation(
        "GET", "/changes", "followChanges", "A stream of the changes by any process.", _GROUP,
        media={EVENT_STREAM: {"type": "string"}},
        description="Events: `ready` once no later change can be missed, then `change` with the time, the topics "
        "(memories, recalls, tiers, persona) and the new events of the audit log. The stream does not end.",
    ),
)  # fmt: skip
