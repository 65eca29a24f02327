"""Recall sessions over HTTP: recalls whose programs the caller writes, under handles that the server mints."""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from rlm_mem.operations.answers import RecallAnswer, answer_of
from rlm_mem.operations.asking import Budgets, limits_of
from rlm_mem.operations.operation import Context, Operation, Reply
from rlm_mem.operations.types import ChunkId, Confidence, LongText, Question, Request

__all__ = ["OPERATIONS"]

_GROUP = "sessions"
_FENCE = re.compile(r"\A\s*```[A-Za-z]*\n(.*?)\n?```\s*\Z", re.DOTALL)


class OpenRequest(Request):
    """A question that the caller's own programs will answer."""

    question: Annotated[Question, Meta(description="In words.")]
    limits: Budgets = field(default_factory=Budgets)


class SessionOut(Struct):
    """An open recall: how to write programs, and what is known before the first one."""

    handle: str
    instructions: str
    opening: str
    hits: list[dict[str, Any]]
    idle_seconds: float


class ProgramRequest(Request):
    """A program over the memory."""

    code: Annotated[str, Meta(min_length=1, max_length=100_000, description="Python for the sandbox.")]


class Executed(Struct):
    """What a program did; ``text`` is output, error and hint together; ``result`` is there once it called FINAL."""

    text: str
    output: str
    error: str | None
    hint: str | None
    truncated: bool
    chunks_read: list[str]
    finished: bool
    stopped_by: str | None
    turns_left: int | None
    result: RecallAnswer | None


class FinishRequest(Request):
    """How the caller answers."""

    answer: Annotated[LongText, Meta(description="Null: the memory does not hold it.")] | None = None
    chunk_ids: Annotated[
        list[ChunkId], Meta(max_length=100, description="Ids of the chunks that the answer rests on.")
    ] = field(default_factory=list)
    confidence: Confidence | None = None


def _answer(result: Any) -> RecallAnswer:
    answer = answer_of(result)
    assert isinstance(answer, RecallAnswer)
    return answer


def _open(context: Context, request: OpenRequest) -> Reply:
    handles = context.handles
    session = context.memory.recall_session(
        request.question, limits=limits_of(context.memory, request.limits)
    )
    handle = handles.add(session)
    opened = SessionOut(handle, session.schema, session.opening, session.hits, handles.idle_seconds)
    return Reply(opened, headers={"Location": f"/api/v1/sessions/{handle}"})


def _execute(context: Context, request: ProgramRequest) -> Executed:
    handle, code = context.path["handle"], request.code
    handles = context.handles
    session = handles.get(handle)
    fenced = _FENCE.match(code)
    handles.working(handle, +1)
    try:
        step = session.execute(fenced.group(1) if fenced else code)
    finally:
        handles.working(handle, -1)
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
        result=_answer(session.result) if step.finished and session.result is not None else None,
    )


def _finish(context: Context, request: FinishRequest) -> RecallAnswer:
    session = context.handles.get(context.path["handle"])
    return _answer(session.finish(request.answer, request.chunk_ids, request.confidence))


def _close(context: Context, _: object) -> Reply:
    context.handles.get(context.path["handle"]).close()
    return Reply(status=204)


_OPENED = {"handle": "$response.body#/handle"}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", "/sessions", "openSession", "Open a recall whose programs you write; no model is asked.", _GROUP,
        run=_open, request=OpenRequest, response=SessionOut, status=201,
        links={201: dict.fromkeys(("runProgram", "finishSession", "closeSession"), _OPENED)},
    ),
    Operation(
        "POST", "/sessions/{handle}/programs", "runProgram", "Run a program in the sandbox of an open recall.",
        _GROUP, run=_execute, request=ProgramRequest, response=Executed,
    ),
    Operation(
        "POST", "/sessions/{handle}/finish", "finishSession", "End an open recall with an answer, or without one.",
        _GROUP, run=_finish, request=FinishRequest, response=RecallAnswer,
    ),
    Operation(
        "DELETE", "/sessions/{handle}", "closeSession", "End an open recall that has no answer.", _GROUP,
        run=_close, status=204,
    ),
)  # fmt: skip
