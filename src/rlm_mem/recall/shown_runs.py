"""Recorded runs as they are shown, in a list or alone: without their texts while these repeat a memory in quarantine.

A record keeps what a run read. Of a run that met a memory which is in quarantine now, only the question, the ids and
the figures are shown, until the memory is released.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from rlm_mem.errors import InputError
from rlm_mem.models.base import Usage
from rlm_mem.recall.trajectory import (
    Trajectory,
    TrajectoryInfo,
    check_operation,
    load_trajectory,
    texts_of,
    trajectories,
)
from rlm_mem.store.core.records import page

if TYPE_CHECKING:
    from datetime import date

    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.chunk_store import ChunkStore

HIDDEN = "[hidden while a memory that the run met is in quarantine]"
_WINDOW, _SHORTEST = 32, 16
"""Characters of a chunk that a text of a run must repeat; the whole chunk if it is shorter, but no fewer than these."""
_MANY = 400
"""Number of windows from which one pass over the text takes less time than a search for each."""


def list_trajectories(
    store: ChunkStore,
    *,
    operation: str | None = None,
    since: str | date | None = None,
    until: str | date | None = None,
    limit: int | None = 50,
) -> list[TrajectoryInfo]:
    """Return the trajectories of the store's namespace as they may be shown, newest first.

    Args:
        operation: only ``recall``, ``reason`` or ``session``.
        since, until: bounds of ``started_at``, as ``YYYY-MM-DD`` or a longer time; a date alone includes its day.
        limit: most trajectories to return; None: all.

    Raises:
        InvalidQuery: there is no such operation, or a bound is not a time.
    """
    check_operation(operation)
    most = None if limit is None else page(limit, "limit")
    quarantined = quarantined_chunks(store)
    # What a run read is compared with the chunks in quarantine; without any, its figures are enough.
    found = (
        _info(as_shown(run, quarantined))
        for run in trajectories(store, since=since, until=until, steps=bool(quarantined))
        if operation in (None, run.operation)
    )
    return list(islice(found, most))


def shown_trajectory(store: ChunkStore, trajectory_id: str) -> Trajectory:
    """Return one trajectory as it may be shown, without texts that repeat a memory in quarantine.

    Raises:
        InvalidQuery, NotFoundError: as ``load_trajectory``.
    """
    return as_shown(load_trajectory(store, trajectory_id), quarantined_chunks(store))


def quarantined_chunks(store: ChunkStore) -> list[Chunk]:
    """Return the chunks in quarantine in every namespace that the store reads, archived ones included.

    Those that came into it when they were stored are left out: no run ever saw them.
    """
    return [
        chunk
        for part in store.parts
        for archived in (False, True)
        for chunk in part.quarantined(archived=archived)
        if chunk.revision > 1
    ]


def as_shown(trajectory: Trajectory, quarantined: Collection[Chunk]) -> Trajectory:
    """Return a run as it may be shown: itself, or without its texts if it met one of these chunks."""
    if not quarantined:
        return trajectory
    text = "\n".join(texts_of(_parts(trajectory)))
    windows = {chunk.id: _windows(chunk.content) for chunk in quarantined}
    found = _found(frozenset[str]().union(*windows.values()), text)
    met = tuple(one for one, own in windows.items() if one in text or not found.isdisjoint(own))
    if not met:
        return trajectory
    outcome = trajectory.outcome
    return replace(
        trajectory,
        withheld=met,
        store={},
        hits=(),
        steps=[
            replace(
                step,
                question=step.question if step.depth == 0 else HIDDEN,
                reply=HIDDEN,
                programs=tuple(f"# {HIDDEN}" for _ in step.programs),
                output="",
                error=None if step.error is None else HIDDEN,
                host_calls=tuple({**call, "args": "", "result": ""} for call in step.host_calls),
            )
            for step in trajectory.steps
        ],
        calls=[
            replace(call, prompt=HIDDEN, reply="", error=None if call.error is None else HIDDEN)
            for call in trajectory.calls
        ],
        outcome=None
        if outcome is None
        else replace(
            outcome,
            content=HIDDEN if outcome.content else outcome.content,
            suggestion=HIDDEN if outcome.suggestion else outcome.suggestion,
            error=HIDDEN if outcome.error else outcome.error,
            detail={},
        ),
    )


def hidden_words(withheld: Sequence[str]) -> str:
    """Say why the texts of a run are hidden."""
    more = f" and {len(withheld) - 2} more" if len(withheld) > 3 else ""
    named = withheld if not more else withheld[:2]
    return f"its texts are hidden: it met {', '.join(named)}{more}, now in quarantine"


def check_shown(trajectory: Trajectory) -> Trajectory:
    """Return a run whose texts are shown; raises InputError for one whose texts are hidden."""
    if trajectory.withheld:
        raise InputError(
            f"run {trajectory.id} cannot be used: {hidden_words(trajectory.withheld)}",
            hint="rlm-mem review list shows what waits for a decision; ask again for an answer without it",
        )
    return trajectory


def _parts(run: Trajectory) -> list[Any]:
    """Return everything in a run that may repeat a memory."""
    parts: list[Any] = [run.store, run.hits]
    for step in run.steps:
        parts += (step.question, step.reply, step.programs, step.output, step.error)
        parts += (step.host_calls, step.chunks_read)
    for call in run.calls:
        parts += (call.prompt, call.reply, call.error)
    if (end := run.outcome) is not None:
        parts += (end.content, end.suggestion, end.error, end.chunk_ids, end.evidence, end.detail)
    return parts


def _windows(content: str) -> frozenset[str]:
    """Parts of a content of which a text that repeats a stretch of it contains one: any longer one has a whole one."""
    content = content.strip()
    if len(content) < _WINDOW:
        return frozenset([content] if len(content) >= _SHORTEST else [])
    return frozenset(content[at : at + _WINDOW] for at in range(0, len(content) - _WINDOW + 1, _WINDOW))


def _found(windows: frozenset[str], text: str) -> frozenset[str]:
    """Those of the windows that a text contains."""
    if len(windows) < _MANY:
        return frozenset(one for one in windows if one in text)
    shorter = frozenset(one for one in windows if len(one) < _WINDOW and one in text)
    return shorter | windows.intersection(text[at : at + _WINDOW] for at in range(len(text) - _WINDOW + 1))


def _info(trajectory: Trajectory) -> TrajectoryInfo:
    outcome = trajectory.outcome
    return TrajectoryInfo(
        id=trajectory.id,
        operation=trajectory.operation,
        query=trajectory.query,
        started_at=trajectory.started_at,
        model=trajectory.model,
        engine=trajectory.engine,
        iterations=outcome.iterations if outcome else len(trajectory.steps),
        seconds=outcome.seconds if outcome else 0.0,
        concluded=outcome.concluded if outcome else None,
        stopped_by=outcome.stopped_by if outcome else None,
        usage=outcome.usage if outcome else Usage(),
        cost=outcome.cost if outcome else None,
        error=outcome.error if outcome else None,
        path=trajectory.path,
        outcome=outcome.word if outcome else None,
        answer=(outcome.content or None) if outcome else None,
        confidence=outcome.confidence if outcome else 0.0,
        chunk_ids=outcome.chunk_ids if outcome else (),
        suggestion=outcome.suggestion if outcome else None,
        withheld=trajectory.withheld,
    )
