"""Tools that answer questions: recall by the configured model, and recall whose programs the caller writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from rlm_mem.mcp.arguments import Arguments
from rlm_mem.mcp.fields import Confidence, Handle, MaybeIds, MaybeText, Question
from rlm_mem.mcp.tool import Tool
from rlm_mem.recall.outcome import OutcomeWord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlm_mem.mcp.service import Call
    from rlm_mem.recall.recall import RecallResult
    from rlm_mem.recall.turn import LoopStep

__all__ = ["TOOLS", "Source", "on_step", "sources"]

_FENCE = re.compile(r"\A\s*```[A-Za-z]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_EXCERPT = 400
_MAX_SOURCES = 5


class Source(Struct):
    """A memory that an answer rests on, or one of the closest, with the stretch that bears on the question."""

    id: str
    at: str
    type: str
    excerpt: str


class Recalled(Struct):
    """An answer; null when there is none, and `outcome` says why: closest only, not held, or stopped."""

    answer: str | None
    chunk_ids: list[str]
    confidence: float
    concluded: bool
    outcome: OutcomeWord
    stopped_by: str | None
    iterations: int
    seconds: float
    trajectory_id: str
    sources: list[Source]


class Opened(Struct):
    """An open recall: how to write programs, and what is known before the first one."""

    handle: str
    instructions: str
    opening: str
    hits: list[dict[str, Any]]
    idle_seconds: float


class Executed(Struct):
    """What a program did; `text` is output, error and hint together."""

    text: str
    output: str
    error: str | None
    hint: str | None
    truncated: bool
    chunks_read: list[str]
    finished: bool
    stopped_by: str | None
    turns_left: int | None
    result: Recalled | None


class RecallArguments(Arguments):
    """See the tool."""

    question: Annotated[
        Question, Meta(description="The question, in words, with the names and dates it is about.")
    ]
    max_seconds: Annotated[
        Annotated[float, Meta(ge=0.1, le=600)] | None,
        Meta(description="End the search after this time; else as configured."),
    ] = None


class OpenArguments(Arguments):
    """See the tool."""

    question: Annotated[Question, Meta(description="The question, in words.")]


class ExecArguments(Arguments):
    """See the tool."""

    handle: Handle
    code: Annotated[str, Meta(min_length=1, max_length=100_000, description="The program, in Python.")]


class FinishArguments(Arguments):
    """See the tool."""

    handle: Handle
    answer: Annotated[
        MaybeText, Meta(description="The answer; leave it out when the memory does not hold it.")
    ] = None
    chunk_ids: Annotated[MaybeIds, Meta(description="Ids of the memories that the answer rests on.")] = None
    confidence: Annotated[Confidence | None, Meta(description="How sure you are, 0 to 1.")] = None


def sources(call: Call, chunk_ids: list[str], excerpts: Mapping[str, str] | None = None) -> list[Source]:
    """The first few memories behind an answer, to save the caller a `get`: their excerpts, else their beginning."""
    wanted = chunk_ids[:_MAX_SOURCES]
    chunks = call.memory.store.get_many(wanted)
    return [
        Source(
            chunk.id,
            chunk.metadata.at,
            chunk.type,
            (excerpts or {}).get(chunk.id) or chunk.content[:_EXCERPT],
        )
        for chunk in (chunks.get(chunk_id) for chunk_id in wanted)
        if chunk is not None
    ]


def on_step(call: Call) -> Callable[[LoopStep], None]:
    """Report each turn of a run, and end the run when the client has given it up."""
    done = 0

    def tell(step: LoopStep) -> None:
        nonlocal done
        done += 1
        what = f"read {len(step.chunks_read)} memories" if step.chunks_read else "searched"
        call.progress(done, None, f"turn {step.turn}: {'answered' if step.final else what}")
        call.check()

    return tell


def _recalled(call: Call, result: RecallResult) -> Recalled:
    return Recalled(
        answer=result.content,
        chunk_ids=list(result.chunk_ids),
        confidence=result.confidence,
        concluded=result.concluded,
        outcome=result.outcome,
        stopped_by=result.stopped_by,
        iterations=result.iterations_used,
        seconds=round(result.seconds, 3),
        trajectory_id=result.trajectory.id,
        sources=sources(call, result.chunk_ids, {one.chunk_id: one.excerpt for one in result.sources}),
    )


def _recall(call: Call, given: RecallArguments) -> Recalled:
    from dataclasses import replace

    from rlm_mem.recall.run import limits_from

    limits = None
    if given.max_seconds is not None:
        limits = replace(limits_from(call.memory.config.recall), seconds=given.max_seconds)
    return _recalled(call, call.memory.recall(given.question, limits=limits, on_step=on_step(call)))


def _open(call: Call, given: OpenArguments) -> Opened:
    # Without a model of its own: the caller reads what its programs print.
    session = call.memory.recall_session(given.question)
    handle = call.handles.add(session)
    return Opened(
        handle=handle,
        instructions=session.schema,
        opening=session.opening,
        hits=session.hits,
        idle_seconds=call.handles.idle_seconds,
    )


def _exec(call: Call, given: ExecArguments) -> Executed:
    session = call.handles.get(given.handle)
    fenced = _FENCE.match(given.code)
    call.handles.working(given.handle, +1)
    try:
        step = session.execute(fenced.group(1) if fenced else given.code)
    finally:
        call.handles.working(given.handle, -1)
    return Executed(
        text=step.text,
        output=step.output,
        error=step.error,
        hint=step.hint,
        truncated=step.truncated,
        chunks_read=list(step.chunks_read),
        finished=step.finished,
        stopped_by=step.stopped_by,
        turns_left=step.turns_left,
        result=_recalled(call, session.result) if step.finished and session.result is not None else None,
    )


def _finish(call: Call, given: FinishArguments) -> Recalled:
    session = call.handles.get(given.handle)
    return _recalled(call, session.finish(given.answer, given.chunk_ids or (), given.confidence))


_QUESTION = dict.fromkeys(("query", "q", "prompt", "text"), "question")
_HANDLE = dict.fromkeys(("session", "session_id", "recall_id", "id"), "handle")

TOOLS: tuple[Tool, ...] = (
    Tool(
        name="recall",
        title="Recall an answer",
        description="Answer a question from memory: programs search and read until they have the answer. "
        "Gives the answer, "
        "how sure it is, and the memories that it rests on. The run is recorded.",
        takes=RecallArguments,
        gives=Recalled,
        run=_recall,
        read_only=True,
        open_world=True,
        aliases=_QUESTION,
    ),
    Tool(
        name="recall_open",
        title="Open a recall that you drive",
        description="For questions that need several looks: you write the programs yourself. Gives a "
        "handle, how to write "
        "them, and first hits. Then recall_exec, as often as needed, and recall_finish.",
        takes=OpenArguments,
        gives=Opened,
        run=_open,
        read_only=True,
        idempotent=False,
        aliases=_QUESTION,
    ),
    Tool(
        name="recall_exec",
        title="Run a program over the memory",
        description="Run a Python program in the sandbox of an open recall; what it defines stays for the "
        "next one. It can "
        "search and read memories and print, and nothing else. FINAL(answer, chunk_ids=[…]) in it ends "
        "the recall.",
        takes=ExecArguments,
        gives=Executed,
        run=_exec,
        read_only=True,
        idempotent=False,
        aliases={**_HANDLE, **dict.fromkeys(("program", "script", "python", "source"), "code")},
    ),
    Tool(
        name="recall_finish",
        title="Finish a recall",
        description="End an open recall with your answer and the ids of the memories that it rests on; "
        "without an answer "
        "when the memory does not hold it.",
        takes=FinishArguments,
        gives=Recalled,
        run=_finish,
        read_only=True,
        aliases={
            **_HANDLE,
            **dict.fromkeys(("content", "conclusion"), "answer"),
            **dict.fromkeys(("ids", "sources", "evidence"), "chunk_ids"),
        },
    ),
)
