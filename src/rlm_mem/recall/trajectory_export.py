"""Recorded runs as training data: chosen fields, one record per run, with keys and passwords hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rlm_mem.arguments import check_items, check_since
from rlm_mem.errors import InputError
from rlm_mem.recall.opening import Opening
from rlm_mem.recall.prompts import feedback, instructions
from rlm_mem.recall.shown_runs import as_shown, quarantined_chunks
from rlm_mem.recall.trajectory import Trajectory, check_operation, trajectories
from rlm_mem.text.secrets import find_secrets, hide, redact

if TYPE_CHECKING:
    from datetime import date

    from rlm_mem.store.core.chunk_store import ChunkStore


class ExportedRun(dict[str, Any]):
    """One run: the fields of :data:`FIELDS` that were chosen, as JSON values."""


def _messages(run: Trajectory) -> list[dict[str, str]]:
    """The run as a conversation: instructions, opening, and each reply with the message after it.

    Sub-questions and turns in which the offline model replaced another one are left out; programs written by a host
    agent appear as its replies.
    """
    messages = [
        {"role": "system", "content": instructions(model=run.model != "host")},
        {"role": "user", "content": Opening(run.query, run.store, run.hits).render()},
    ]
    for step in run.steps:
        reply = step.reply or "".join(f"```repl\n{code.rstrip()}\n```\n" for code in step.programs)
        if step.depth == 0 and (step.model != "offline" or run.model == "offline"):
            messages.append({"role": "assistant", "content": reply})
            if not step.final:
                messages.append({"role": "user", "content": feedback(step.output, error=step.error)})
    return messages


def _steps(run: Trajectory) -> list[dict[str, Any]]:
    return [
        {
            "turn": step.turn,
            "depth": step.depth,
            "question": step.question,
            "programs": list(step.programs),
            "output": step.output,
            "error": step.error,
            "chunks_read": list(step.chunks_read),
            "scaffolded": step.scaffolded,
        }
        for step in run.steps
    ]


_FIELDS: dict[str, Callable[[Trajectory], Any]] = {
    "id": lambda run: run.id,
    "operation": lambda run: run.operation,
    "started_at": lambda run: run.started_at,
    "model": lambda run: run.model,
    "question": lambda run: run.query,
    "messages": _messages,
    "steps": _steps,
    "answer": lambda run: run.outcome and run.outcome.content,
    "suggestion": lambda run: run.outcome and run.outcome.suggestion,
    "outcome": lambda run: run.outcome and run.outcome.word,
    "confidence": lambda run: run.outcome and run.outcome.confidence,
    "chunk_ids": lambda run: list(run.outcome.chunk_ids) if run.outcome else [],
    "method": lambda run: run.outcome and run.outcome.detail.get("method", "programs"),
    "input_tokens": lambda run: run.outcome and run.outcome.usage.input_tokens,
    "output_tokens": lambda run: run.outcome and run.outcome.usage.output_tokens,
    "cost": lambda run: str(run.outcome.cost) if run.outcome and run.outcome.cost is not None else None,
}

FIELDS = tuple(_FIELDS)
"""Fields of a record."""


def export_trajectories(
    store: ChunkStore,
    *,
    fields: Sequence[str] | None = None,
    operation: str | None = None,
    since: str | date | None = None,
    until: str | date | None = None,
) -> Iterator[ExportedRun]:
    """Yield the runs of the store's namespace as plain data, newest first.

    Runs that met a memory which is in quarantine now are left out.

    Args:
        fields: which of :data:`FIELDS`; None: all.
        operation: only ``recall``, ``reason`` or ``session``.
        since, until: bounds of ``started_at``, as ``YYYY-MM-DD`` or a longer time; a date alone includes its day.

    Raises:
        InputError: there is no such field.
        InvalidQuery: there is no such operation, or a bound is not a time.
    """
    check_operation(operation)
    for bound, what in ((since, "since"), (until, "until")):
        check_since(bound, what)  # now, not when the first run is read
    chosen = list(FIELDS) if fields is None else list(check_items(fields, "fields"))
    unknown = [name for name in chosen if not isinstance(name, str) or name not in _FIELDS]
    if unknown or not chosen:
        problem = (
            f"trajectories have no field {unknown[0]!r:.60}" if unknown else "no field to export is named"
        )
        raise InputError(problem, hint=f"there are: {', '.join(FIELDS)}")
    quarantined = quarantined_chunks(store)
    return (
        ExportedRun({name: _without_secrets(_FIELDS[name](run)) for name in dict.fromkeys(chosen)})
        for run in trajectories(store, since=since, until=until)
        if operation in (None, run.operation) and not as_shown(run, quarantined).withheld
    )


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        text = redact(value)
        return hide(text, find_secrets(text, pii=False))
    if isinstance(value, list):
        return [_without_secrets(one) for one in value]
    if isinstance(value, dict):
        return {name: _without_secrets(one) for name, one in value.items()}
    return value
