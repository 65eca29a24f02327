"""Tools beyond the first ten: reason, update, restore, trajectories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from rlm_mem.errors import InputError, NotFoundError
from rlm_mem.mcp.arguments import Arguments
from rlm_mem.mcp.fields import ChunkId, Confidence, Question, Secrets, Tags, Text, Time, TypeName
from rlm_mem.mcp.tool import Tool
from rlm_mem.mcp.tools_memory import IdsArguments, Memory, memory_of
from rlm_mem.mcp.tools_recall import Source, on_step, sources
from rlm_mem.recall.outcome import OutcomeWord

if TYPE_CHECKING:
    from rlm_mem.mcp.service import Call
    from rlm_mem.text.secrets import Screened

__all__ = ["TOOLS"]

_ANSWER = 500
"""Most characters of an answer in the list of runs."""


class PathStep(Struct):
    """One step to a conclusion; `operation` is read, link or synthesize."""

    chunk_id: str
    operation: str
    reasoning: str


class Reasoned(Struct):
    """A conclusion from several memories and the way to it; empty when there is none."""

    conclusion: str
    path: list[PathStep]
    confidence: float
    supports: list[str]
    contradicts: list[str]
    superseded: list[str]
    chunk_ids: list[str]
    concluded: bool
    outcome: OutcomeWord
    stopped_by: str | None
    trajectory_id: str
    sources: list[Source]


class Restored(Struct):
    """Ids that are in use again, and ids for which the archive had nothing."""

    restored: list[str]
    missing: list[str]


class Run(Struct):
    """A recorded recall; `outcome` is null when no end is recorded."""

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


class Runs(Struct):
    """Recorded recalls, newest first."""

    trajectories: list[Run]


class ReasonArguments(Arguments):
    """See the tool."""

    question: Annotated[Question, Meta(description="What to conclude, in words.")]


class UpdateArguments(Arguments):
    """See the tool."""

    id: ChunkId
    content: Annotated[Text | None, Meta(description="The new content, instead of the present one.")] = None
    tags: Annotated[Tags, Meta(description="The new tags, instead of the present ones.")] = None
    type: Annotated[TypeName, Meta(description="The new type.")] = None
    confidence: Annotated[Confidence | None, Meta(description="How sure it is, 0 to 1.")] = None
    expected_revision: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Refuse when somebody changed it since this revision."),
    ] = None
    secrets: Annotated[
        Secrets,
        Meta(description="Keys and passwords in it: redact, keep or refuse. Else as configured: redact."),
    ] = None


class RunsArguments(Arguments):
    """See the tool."""

    operation: Annotated[TypeName, Meta(description="Only recall, reason or session.")] = None
    since: Annotated[Time, Meta(description="Only from this day on (YYYY-MM-DD).")] = None
    until: Annotated[Time, Meta(description="Only up to this day, included.")] = None
    limit: Annotated[int, Meta(ge=1, le=200, description="Most runs.")] = 20


def _reason(call: Call, given: ReasonArguments) -> Reasoned:
    result = call.memory.reason(given.question, on_step=on_step(call))
    return Reasoned(
        conclusion=result.conclusion,
        path=[PathStep(step.chunk_id, step.operation, step.reasoning) for step in result.path],
        confidence=result.confidence,
        supports=list(result.supports),
        contradicts=list(result.contradicts),
        superseded=list(result.superseded),
        chunk_ids=list(result.chunk_ids),
        concluded=result.concluded,
        outcome=result.outcome,
        stopped_by=result.stopped_by,
        trajectory_id=result.trajectory.id,
        sources=sources(call, result.chunk_ids),
    )


def _update(call: Call, given: UpdateArguments) -> Memory:
    if all(value is None for value in (given.content, given.tags, given.type, given.confidence)):
        raise InputError("nothing to change", hint="Give content, tags, type or confidence.")
    found: list[Screened] = []
    chunk = call.memory.store.update_chunk(
        given.id,
        content=given.content,
        tags=given.tags,
        chunk_type=given.type,
        confidence=given.confidence,
        expected_revision=given.expected_revision,
        secrets=given.secrets,
        on_secret=found.append,
    )
    if chunk is None:
        raise NotFoundError(f"there is no memory {given.id}", hint="search gives the ids.")
    shown = memory_of(call, chunk)
    shown.note = str(found[0].report()) if found else None
    return shown


def _restore(call: Call, given: IdsArguments) -> Restored:
    ids = list(dict.fromkeys(given.ids))
    with call.memory.batch():
        done = {chunk_id: call.memory.restore(chunk_id) is not None for chunk_id in ids}
    return Restored([one for one in ids if done[one]], [one for one in ids if not done[one]])


def _trajectories(call: Call, given: RunsArguments) -> Runs:
    found = call.memory.trajectories(
        operation=given.operation, since=given.since, until=given.until, limit=given.limit
    )
    return Runs(
        [
            Run(
                id=one.id,
                operation=one.operation,
                query=one.query[:500],
                started_at=one.started_at,
                model=one.model,
                iterations=one.iterations,
                seconds=one.seconds,
                concluded=one.concluded,
                outcome=one.outcome,
                answer=None if one.answer is None else one.answer[:_ANSWER],
            )
            for one in found
        ]
    )


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="reason",
        title="Reason over memories",
        description="Draw a conclusion from several memories by following their links, with the path to "
        "it, what supports "
        "it and what speaks against it. The run is recorded.",
        takes=ReasonArguments,
        gives=Reasoned,
        run=_reason,
        read_only=True,
        open_world=True,
        aliases=dict.fromkeys(("query", "q", "prompt", "text"), "question"),
        default=False,
    ),
    Tool(
        name="update",
        title="Update a memory",
        description="Replace content, tags, type or confidence of a memory. Its former version is kept.",
        takes=UpdateArguments,
        gives=Memory,
        run=_update,
        read_only=False,
        destructive=True,
        aliases={
            **dict.fromkeys(("chunk_id", "memory_id"), "id"),
            **dict.fromkeys(("text", "new_content"), "content"),
            **dict.fromkeys(("chunk_type", "kind"), "type"),
            "revision": "expected_revision",
        },
        default=False,
    ),
    Tool(
        name="restore",
        title="Restore memories",
        description="Bring forgotten memories back by their ids.",
        takes=IdsArguments,
        gives=Restored,
        run=_restore,
        read_only=False,
        aliases=dict.fromkeys(("id", "chunk_id", "chunk_ids", "memory_ids"), "ids"),
        default=False,
    ),
    Tool(
        name="trajectories",
        title="Recorded recalls",
        description="List recorded recalls, newest first. The resource memory://trajectories/ID holds one "
        "step by step.",
        takes=RunsArguments,
        gives=Runs,
        run=_trajectories,
        read_only=True,
        aliases={"n": "limit", "start": "since", "end": "until"},
        default=False,
    ),
)
