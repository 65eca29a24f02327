"""Pages of recalls: ask, list runs, follow one step by step, live in any process, and verify its receipt."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup, escape
from starlette.responses import Response

from rlm_mem import recall
from rlm_mem.chunk import parse_time
from rlm_mem.dashboard.charts import span_bars
from rlm_mem.dashboard.markdown import render
from rlm_mem.dashboard.memories import figures
from rlm_mem.dashboard.rendering import HEADERS
from rlm_mem.dashboard.spans import Span, did, spans
from rlm_mem.dashboard.words import address, first_line, visible, without_marks
from rlm_mem.errors import InputError
from rlm_mem.operations.server import model_name
from rlm_mem.recall.source_lines import nearest_lines

if TYPE_CHECKING:
    from rlm_mem.dashboard.requests import PageRequest
    from rlm_mem.memory import Memory
    from rlm_mem.operations.runs import RunKind
    from rlm_mem.recall.loop import LoopStep
    from rlm_mem.recall.outcome import OutcomeWord
    from rlm_mem.recall.trajectory import SubCall, Trajectory

_PAGE = 30
_OPERATIONS = ("recall", "reason", "session")
_START_SECONDS = 3.0
"""Seconds to wait for the record of a new run before showing the list instead."""
_MAX_READ, _SHOWN = 300, 2_000
"""Most memories that are read, and number of characters of a memory that are read for its first line."""
_MAX_LINES, _LINE_CHARS = 10, 300
"""Most cited memories whose line nearest to the question is shown, and its most characters."""
_LOST = timedelta(minutes=20)
"""Age after which a run without an end is shown as failed."""


@dataclass(frozen=True)
class _Step:
    """A step with the values that its template needs."""

    span: Span
    step: LoopStep
    did: str
    bars: Markup
    code: Sequence[Markup]
    chunks: Sequence[tuple[str, str]]


def recalls_page(request: PageRequest) -> Response:
    """The form for a question, and the list of runs."""
    operation = request.text("operation", 20)
    limit = request.number("limit", _PAGE, 1, 500)
    runs = request.memory.trajectories(
        operation=operation if operation in _OPERATIONS else None, limit=limit + 1
    )
    latest = request.state.runs.list(request.opened)[:3]
    return request.answer(
        "recalls.html",
        runs=[(info, _state(request.memory, info.outcome, info.started_at)) for info in runs[:limit]],
        operation=operation,
        operations=_OPERATIONS,
        more=address("/recalls", operation=operation, limit=limit * 2) if len(runs) > limit < 500 else "",
        here=address("/recalls", operation=operation, limit="" if limit == _PAGE else limit),
        model=model_name(request.memory),
        memories=figures(request.memory)["chunk_count"],
        failed=[run for run in latest if run.state == "failed"],
        live="recalls",
    )


def recall_page(request: PageRequest) -> Response:
    """The page of one run."""
    memory = request.memory
    run = recall.shown_trajectory(memory.store, request.part("run"))
    outcome = run.outcome
    state = _state(memory, outcome.word if outcome else None, run.started_at)
    cited = outcome.chunk_ids if outcome else ()
    walked = _path(outcome.detail if outcome else {})
    read = [one for step in run.steps for one in step.chunks_read]
    named = dict.fromkeys([*cited, *read, *(str(step.get("chunk_id")) for step in walked)])
    chunks = memory.store.get_many(list(named)[:_MAX_READ])
    texts = {one: first_line(without_marks(chunk.content[:_SHOWN]), 140) for one, chunk in chunks.items()}
    lines = nearest_lines(
        run.query, [chunks[one] for one in cited if one in chunks][:_MAX_LINES], _LINE_CHARS
    )
    near = {one: first_line(without_marks(line.text), _LINE_CHARS) for one, line in lines.items()}
    placed = spans(list(_with_calls(run)))
    whole = max((span.end for span in placed), default=0.0)
    steps = [
        _Step(
            span,
            span.step,
            did(span.step),
            span_bars(span, whole),
            [coloured(program) for program in span.step.programs],
            [(one, texts.get(one, one)) for one in span.step.chunks_read],
        )
        for span in placed
    ]
    return request.answer(
        "recall.html",
        run=run,
        outcome=outcome,
        state=state,
        steps=steps,
        whole=whole,
        answer=render(str(outcome.content)) if outcome and outcome.content else None,
        cited=[(one, near.get(one, texts.get(one, one))) for one in cited],
        dates={one: chunk.metadata.at for one, chunk in chunks.items()},
        walked=walked,
        texts=texts,
        cancellable=state == "running" and _live(request, run) is not None,
        live="recalls",
    )


def _with_calls(run: Trajectory) -> Iterator[tuple[LoopStep, list[SubCall]]]:
    """Yield each step of a run with the model calls of its turn; the last one with all that are left."""
    pending, turn = list(run.calls), 0
    for number, step in enumerate(run.steps, 1):
        turn += step.depth == 0
        calls = [call for call in pending if call.turn <= turn or number == len(run.steps)]
        pending = [call for call in pending if call not in calls]
        yield step, calls


def ask(request: PageRequest) -> Response:
    """Start a recall or reasoning in this process, and redirect to its page."""
    question = recall.check_query(request.text("question", 0))
    operation: RunKind = "reason" if request.text("operation", 20) == "reason" else "recall"
    if request.state.read_only and request.memory.store.backend.read_only:
        raise InputError("the store is read-only, so runs cannot be recorded", hint="ask with rlm-mem recall")
    run = request.state.runs.start(request.opened, operation, question)
    until = time.monotonic() + _START_SECONDS
    while not run.recorded and run.state == "running" and time.monotonic() < until:
        time.sleep(0.03)
    return request.go(address("/recalls", run.recorded[-1]) if run.recorded else "/recalls")


def cancel(request: PageRequest) -> Response:
    """Cancel a run of this process."""
    run = recall.load_trajectory(request.memory.store, request.part("run"))
    live = _live(request, run)
    if live is None:
        raise InputError(
            f"the run {run.id} has ended, or another process runs it", hint="only that process can stop it"
        )
    live.cancel()
    return request.go(address("/recalls", run.id), "cancelled")


def receipt_page(request: PageRequest) -> Response:
    """The result of the verification; with ``?file=receipt`` or ``bundle``, that file."""
    run, file = request.part("run"), request.text("file", 20)
    receipt = request.memory.receipt(run, bundle=file == "bundle")
    if file in ("receipt", "bundle"):
        data = receipt.to_bytes() if receipt.bundle is None else receipt.bundle.to_bytes()
        headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{receipt.origin.run}.{file}"'}
        return Response(data, media_type="application/jsonl", headers=headers)
    if file:
        raise InputError("there are only two files, receipt and bundle")
    return request.page("receipt.html", receipt=receipt, found=request.memory.verify(receipt))


# --- states -----------------------------------------------------------------------------------------------


def _state(memory: Memory, outcome: OutcomeWord | None, started_at: str) -> OutcomeWord | Literal["running"]:
    """The outcome of a run; without one it is ``running``, or failed if it is too old."""
    if outcome is not None:
        return outcome
    return "running" if memory.store.clock() - parse_time(started_at) < _LOST else "failed"


def _live(request: PageRequest, run: Trajectory) -> Any:
    return next(
        (
            live
            for live in request.state.runs.list(request.opened)
            if live.state == "running" and run.id in live.recorded
        ),
        None,
    )


# --- rendering ----------------------------------------------------------------------------------------


def _path(detail: dict[str, Any]) -> list[dict[str, Any]]:
    path = detail.get("path")
    return [step for step in path if isinstance(step, dict)] if isinstance(path, list) else []


_TOKENS = re.compile(
    r"(?P<c>\#[^\n]*)"
    r"|(?P<s>[rbfRBF]{0,2}(?:\"\"\"[\s\S]*?(?:\"\"\"|\Z)|'''[\s\S]*?(?:'''|\Z)|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?))"
    r"|(?P<k>\b(?:and|as|break|continue|def|elif|else|except|finally|for|from|if|import|in|is|lambda|not|or|pass|"
    r"raise|return|try|while|with|True|False|None)\b)"
    r"|(?P<n>\b\d[\d_.]*\b)"
    r"|(?P<f>\b[A-Za-z_]\w*(?=\())"
)


def coloured(program: str) -> Markup:
    """A program with syntax highlighting, escaped."""
    text, made, at = visible(program), [], 0
    for match in _TOKENS.finditer(text):
        made.append(escape(text[at : match.start()]))
        made.append(Markup('<span class="tok-{}">{}</span>').format(match.lastgroup, match[0]))
        at = match.end()
    return Markup("").join([*made, escape(text[at:])])
