"""Asking over HTTP: search, recall and reason (one document, or step by step as events), and runs in the background."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, field, to_builtins

from rlm_mem.operations.answers import Conclusion, RecallAnswer, answer_of
from rlm_mem.operations.operation import EVENT_STREAM, Context, Operation
from rlm_mem.operations.problems import Problem
from rlm_mem.operations.runs import Kind, LiveRun, RunKind, State
from rlm_mem.operations.types import (
    Line,
    Question,
    Request,
    Tags,
    Time,
    TypeFilter,
)

if TYPE_CHECKING:
    from rlm_mem.memory import Memory
    from rlm_mem.models.budget import Limits
    from rlm_mem.search import Hit

__all__ = [
    "OPERATIONS",
    "AskRequest",
    "EventQuery",
    "RunEventOut",
    "RunEvents",
    "RunOut",
    "limits_of",
    "run_out",
]

_GROUP = "asking"
_STREAM: Mapping[str, Mapping[str, Any]] = {EVENT_STREAM: {"type": "string"}}


class SearchFilters(Request):
    """Which chunks a search may give."""

    tags_all: Annotated[Tags, Meta(description="All of these must be there.")] = field(default_factory=list)
    tags_any: Annotated[Tags, Meta(description="At least one of these must be there.")] = field(
        default_factory=list
    )
    type: TypeFilter | None = None
    conversation_id: Line | None = None
    start: Annotated[Time, Meta(description="Only from this time on.")] | None = None
    end: Annotated[Time, Meta(description="Only up to this time; a day is included.")] | None = None
    speaker: Annotated[Line, Meta(description="Only where this person speaks.")] | None = None
    include_superseded: Annotated[
        bool, Meta(description="Rank what a newer chunk has replaced like any other.")
    ] = False


class SearchRequest(Request):
    """What to look for."""

    query: Annotated[Question, Meta(description="Words, names, dates or a question.")]
    limit: Annotated[int, Meta(ge=1, le=200, description="Most hits.")] = 10
    filters: SearchFilters = field(default_factory=SearchFilters)
    by: Annotated[
        Literal["chunk", "segment", "conversation"],
        Meta(description="What a hit is: a chunk, a sentence or turn of one, or a conversation."),
    ] = "chunk"
    as_of: Annotated[Time, Meta(description="Rank as things held at that time.")] | None = None
    explain: Annotated[bool, Meta(description="Give each hit the parts of its score.")] = False


class HitOut(Struct):
    """One hit: the part that matched, with its place in the chunk's content, and of which chunk."""

    chunk_id: str
    score: float
    snippet: str
    start: int
    end: int
    segment_no: int
    conversation_id: str | None
    at: str
    type: str
    tags: list[str]
    author: str | None
    parts: dict[str, float] | None


class Hits(Struct):
    """Hits, best first."""

    items: list[HitOut]


class Budgets(Request):
    """What one run may spend, below what is configured; null: as configured."""

    iterations: Annotated[int, Meta(ge=1, le=100)] | None = None
    depth: Annotated[int, Meta(ge=0, le=10)] | None = None
    seconds: Annotated[float, Meta(ge=0.1, le=3600)] | None = None
    model_calls: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    tokens: Annotated[int, Meta(ge=1, le=100_000_000)] | None = None


class AskRequest(Request):
    """A question to the memory."""

    question: Annotated[Question, Meta(description="In words, with the names and dates it is about.")]
    limits: Budgets = field(default_factory=Budgets)
    background: Annotated[
        bool, Meta(description="Answer at once (202) with the run, which goes on whoever listens.")
    ] = False


class RunOut(Struct):
    """A run of this server: its state, and how it ended."""

    id: str
    operation: RunKind
    question: str
    state: State
    started_at: str
    finished_at: str | None
    trajectory_id: str | None
    turns: int
    result: RecallAnswer | None = None
    conclusion: Conclusion | None = None
    error: Problem | None = None


class Runs(Struct):
    """The runs that are kept, newest first."""

    items: list[RunOut]


class RunEventOut(Struct):
    """One event of a run; in a stream, ``kind`` is the event's name, ``seq`` its id, and ``data`` its data."""

    seq: int
    kind: Kind
    data: dict[str, Any]


class RunEvents(Struct):
    """Events so far, in order."""

    items: list[RunEventOut]


class EventQuery(Request):
    """From where on."""

    after: Annotated[int, Meta(ge=0, le=2**31, description="Number of the last event that is known.")] = 0


def _search(context: Context, request: SearchRequest) -> Hits:
    from rlm_mem.search import Filters

    wanted = request.filters
    filters = Filters(
        tags_all=tuple(wanted.tags_all),
        tags_any=tuple(wanted.tags_any),
        chunk_type=wanted.type,
        conversation_id=wanted.conversation_id,
        start=wanted.start,
        end=wanted.end,
        speaker=wanted.speaker,
        include_superseded=wanted.include_superseded,
    )
    found = context.memory.search(
        request.query,
        limit=request.limit,
        filters=filters,
        by=request.by,
        as_of=request.as_of,
        explain=request.explain,
    )
    return Hits([_hit(hit) for hit in found])


def _hit(hit: Hit) -> HitOut:
    parts = None if hit.parts is None else {name: float(value) for name, value in hit.parts.items()}
    return HitOut(
        hit.chunk_id, float(hit.score), hit.snippet, int(hit.start), int(hit.end), int(hit.segment_no),
        hit.conversation_id, hit.at, hit.type, list(hit.tags), hit.author, parts,
    )  # fmt: skip


def limits_of(memory: Memory, wanted: Budgets) -> Limits | None:
    """The configured budgets with those that were given in their places; None: as configured."""
    from rlm_mem.recall.run import limits_from

    given = {name: value for name, value in to_builtins(wanted).items() if value is not None}
    return replace(limits_from(memory.config.recall), **given) if given else None


def run_out(run: LiveRun) -> RunOut:
    """A run as it goes out."""
    answer = None if run.result is None else answer_of(run.result)
    problem = None if run.error is None else Problem(**{**run.error, "errors": []})
    return RunOut(
        id=run.id,
        operation=run.operation,
        question=run.question,
        state=run.state,
        started_at=run.started_at,
        finished_at=run.finished_at,
        trajectory_id=run.trajectory_id,
        turns=sum(one.kind == "step" for one in list(run.events)),
        result=answer if isinstance(answer, RecallAnswer) else None,
        conclusion=answer if isinstance(answer, Conclusion) else None,
        error=problem,
    )


def _runs(context: Context, _: object) -> Runs:
    return Runs([run_out(run) for run in context.runs.list()])


def _run(context: Context, _: object) -> RunOut:
    return run_out(context.runs.get(context.path["run_id"]))


def _cancel(context: Context, _: object) -> RunOut:
    run = context.runs.get(context.path["run_id"])
    run.cancel()
    return run_out(run)


_LIVE = (
    "With `Accept: text/event-stream` the answer comes as events: `step` after each turn, `text` as the model writes, "
    "and at the end `result` or `error`. A client that leaves ends the run at its next turn."
)
_BEGUN = {
    202: {name: {"run_id": "$response.body#/id"} for name in ("getRun", "getRunEvents", "cancelRun")},
    200: {"getTrajectory": {"trajectory_id": "$response.body#/trajectory_id"}},
}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", "/search", "search", "Rank memories against words, without a model.", _GROUP,
        run=_search, request=SearchRequest, response=Hits,
    ),
    Operation(
        "POST", "/recall", "recall", "Answer a question by programs that the model writes.", _GROUP,
        request=AskRequest, response=RecallAnswer, others={202: RunOut}, media=_STREAM, description=_LIVE,
        links=_BEGUN,
    ),
    Operation(
        "POST", "/reason", "reason", "Follow links across memories to a conclusion with its path.", _GROUP,
        request=AskRequest, response=Conclusion, others={202: RunOut}, media=_STREAM, description=_LIVE,
        links=_BEGUN,
    ),
    Operation("GET", "/runs", "listRuns", "Runs of this server, newest first.", _GROUP, run=_runs, response=Runs),
    Operation(
        "GET", "/runs/{run_id}", "getRun", "One run: its state, and how it ended.", _GROUP,
        run=_run, response=RunOut,
    ),
    Operation(
        "GET", "/runs/{run_id}/events", "getRunEvents", "What happened in a run, so far or as it happens.", _GROUP,
        request=EventQuery, response=RunEvents, media=_STREAM,
        description="With `Accept: text/event-stream` they come as they happen, until the run has ended; "
        "`Last-Event-ID` goes on where a connection broke.",
    ),
    Operation(
        "POST", "/runs/{run_id}/cancel", "cancelRun", "End a run.", _GROUP,
        run=_cancel, response=RunOut,
    ),
)  # fmt: skip
