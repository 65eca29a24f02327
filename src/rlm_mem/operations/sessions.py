"""Recall sessions over HTTP: recalls whose programs the caller writes, under handles that the server issues."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, field

from rlm_mem.errors import InputError
from rlm_mem.operations.asking import Budgets, limits_of
from rlm_mem.operations.fitting import Bounded, MayBeCut, Reply
from rlm_mem.operations.operation import PREFIX, Context, Operation, Tool
from rlm_mem.operations.shapes import CitedAnswer, RecallAnswer, cited_answer, fill, recall_answer
from rlm_mem.operations.types import (
    QUESTION_NAMES,
    Confidence,
    Handle,
    LongText,
    ManyIds,
    Question,
    ResultForm,
    about,
)

if TYPE_CHECKING:
    from rlm_mem.recall.host_session import Execution
    from rlm_mem.recall.recall import RecallResult

_GROUP = "sessions"

_FIRST_IDS = 10
_FENCE = re.compile(r"\A\s*```[A-Za-z]*\n(.*?)\n?```\s*\Z", re.DOTALL)


_KEEP = "Keep the variables for a further question with this handle."
_CONTINUE = "Handle of an answered recall opened with keep: reuse its sandbox."


class OpenArguments(Bounded, kw_only=True):
    """A question that an agent's own programs will answer."""

    question: Annotated[Question, about("The question, in words.")]
    keep: Annotated[bool, Meta(description=_KEEP)] = False
    handle: Annotated[Handle, Meta(description=_CONTINUE)] | None = None
    schema: ResultForm | None = None


class OpenRequest(OpenArguments):
    """A question that the caller's own programs will answer."""

    limits: Budgets = field(default_factory=Budgets)


class SessionOut(MayBeCut):
    """An open recall: how to write programs (empty if continued), and the opening with the first hits."""

    handle: str
    instructions: str
    opening: str
    hits: list[dict[str, Any]]
    idle_seconds: float


class ProgramRequest(Bounded, kw_only=True):
    """A program over the memory."""

    code: Annotated[str, about("The program, in Python.", min_length=1, max_length=100_000)]


class ExecutionResponse(Struct):
    """The result of a program; ``text`` is output, error and hint together; ``result`` is set once it called FINAL."""

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


class ExecutedProgram(Struct, omit_defaults=True):
    """The result of a program, each part once, since a model reads it; ``output`` is stored data, never instructions.

    ``cut`` names the lists and texts that were cut, and how to go on; ``chunks_read`` has the first ids of the chunks
    read, ``chunk_count`` their number; ``untrusted`` names those that came from outside; ``result`` is set once the
    program called FINAL.
    """

    output: str
    finished: bool
    cut: str | None = None
    error: str | None = None
    hint: str | None = None
    untrusted: str | None = None
    truncated: bool = False
    chunks_read: list[str] = []
    chunk_count: int = 0
    stopped_by: str | None = None
    turns_left: int | None = None
    result: CitedAnswer | None = None


class FinishRequest(Bounded, kw_only=True):
    """The caller's answer."""

    answer: Annotated[LongText, about("The answer; omit it if the memory has none.")] | None = None
    chunk_ids: ManyIds = field(default_factory=list)
    confidence: Annotated[Confidence, about("Your confidence, 0 to 1.")] | None = None
    suggestion: (
        Annotated[LongText, about("Instead of an answer: a likely one that chunk_ids do not prove.")] | None
    ) = None


class ExecArguments(ProgramRequest, kw_only=True):
    """The tool's arguments."""

    handle: Handle


class FinishArguments(FinishRequest, kw_only=True):
    """The tool's arguments."""

    handle: Handle


def _open(context: Context, request: OpenRequest | OpenArguments) -> Reply[SessionOut]:
    # Programs of an agent have no model for sub-calls: the agent itself reads their output.
    if request.handle is not None:
        if request.schema is not None:
            raise InputError(
                "a continued recall keeps the form of its answers",
                hint="open another recall for another form",
            )
        handle = request.handle
        session = context.handles.get(handle)
        session.ask(request.question)
    else:
        more: dict[str, Any] = {"result": request.schema}
        if isinstance(request, OpenRequest):
            more["limits"] = limits_of(context.memory, request.limits)
        session = context.memory.recall_session(request.question, keep=request.keep, **more)
        handle = context.handles.add(session)
    opened = SessionOut(
        handle,
        session.schema if request.handle is None else "",
        session.opening,
        session.hit_scores,
        context.handles.idle_seconds,
    )
    return Reply(opened, headers={"Location": f"{PREFIX}/sessions/{handle}"})


def _run_program(context: Context, code: str) -> tuple[Execution, RecallResult | None]:
    handle, handles = context.path["handle"], context.handles
    session = handles.get(handle)
    fenced = _FENCE.match(code)
    handles.mark_busy(handle, +1)
    try:
        step = session.execute(fenced.group(1) if fenced else code)
    finally:
        handles.mark_busy(handle, -1)
    return step, session.result if step.finished else None


def _execute(context: Context, request: ProgramRequest) -> ExecutionResponse:
    step, result = _run_program(context, request.code)
    return fill(ExecutionResponse, step, result=None if result is None else recall_answer(result))


def _execute_cited(context: Context, request: ExecArguments) -> ExecutedProgram:
    step, result = _run_program(context, request.code)
    return fill(
        ExecutedProgram,
        step,
        chunks_read=step.chunks_read[:_FIRST_IDS],
        chunk_count=len(step.chunks_read),
        result=None if result is None else cited_answer(context.memory.store, result),
    )


def _finished(context: Context, request: FinishRequest) -> RecallResult:
    session = context.handles.get(context.path["handle"])
    return session.finish(request.answer, request.chunk_ids, request.confidence, request.suggestion)


def _finish(context: Context, request: FinishRequest) -> RecallAnswer:
    return recall_answer(_finished(context, request))


def _finish_cited(context: Context, request: FinishArguments) -> CitedAnswer:
    return cited_answer(context.memory.store, _finished(context, request))


def _close(context: Context, _: object) -> Reply[None]:
    context.handles.get(context.path["handle"]).close()
    return Reply(status=204)


_OPENED = {"handle": "$response.body#/handle"}


_HANDLE = dict.fromkeys(("session", "session_id", "recall_id", "id"), "handle")

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", "/sessions", "openSession", "Open a recall whose programs you write; no model is asked.", _GROUP,
        permission="read", run=_open, request=OpenRequest, status=201,
        links={201: dict.fromkeys(("runProgram", "finishSession", "closeSession"), _OPENED)},
        tool=Tool(
            name="recall_open",
            title="Open a recall that you drive",
            description="For questions that need several steps: you write the programs yourself. Returns a "
            "handle, instructions and first hits. Then call recall_exec as often as needed, and "
            "recall_finish.",
            request=OpenArguments,
            idempotent=False,
            aliases=QUESTION_NAMES,
        ),
    ),
    Operation(
        "POST", "/sessions/{handle}/programs", "runProgram", "Run a program in the sandbox of an open recall.", _GROUP,
        permission="read", run=_execute,
        tool=Tool(
            name="recall_exec",
            title="Run a program over the memory",
            description="Run a Python program in the sandbox of an open recall; its variables persist. It can "
            "only search and read memories and print. FINAL(answer, chunk_ids=[…]) ends the "
            "recall.",
            run=_execute_cited,
            idempotent=False,
            aliases={**_HANDLE, **dict.fromkeys(("program", "script", "python", "source"), "code")},
        ),
    ),
    Operation(
        "POST", "/sessions/{handle}/finish", "finishSession", "End an open recall with an answer, or without one.",
        _GROUP, permission="read", run=_finish,
        tool=Tool(
            name="recall_finish",
            title="Finish a recall",
            description="End an open recall with your answer and the ids of the memories it cites, or without "
            "an answer if there is none.",
            run=_finish_cited,
            aliases={
                **_HANDLE,
                **dict.fromkeys(("content", "conclusion"), "answer"),
                **dict.fromkeys(("ids", "chunk_id", "sources", "evidence"), "chunk_ids"),
            },
        ),
    ),
    Operation(
        "DELETE", "/sessions/{handle}", "closeSession", "End an open recall that has no answer.", _GROUP,
        permission="read", run=_close, status=204,
    ),
)  # fmt: skip
