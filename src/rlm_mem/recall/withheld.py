"""Recorded runs as they are shown: without their texts while these repeat a memory in quarantine.

A record keeps what a run read. Of a run that met a memory which is in quarantine now, only the question, the ids and
the figures are shown, until the memory is released.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from rlm_mem.errors import InputError

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.recall.trajectory import Trajectory
    from rlm_mem.store.core.chunk_store import ChunkStore

HIDDEN = "[hidden while a memory that the run met is in quarantine]"
_WINDOW, _SHORTEST = 32, 16
"""Characters of a chunk that a text of a run must repeat; the whole chunk if it is shorter, but no fewer than these."""


def quarantined_chunks(store: ChunkStore) -> list[Chunk]:
    """Return the chunks in quarantine in every namespace that the store reads, archived ones included."""
    return [
        chunk
        for part in store.parts
        for archived in (False, True)
        for chunk in part.quarantined(archived=archived)
    ]


def as_shown(trajectory: Trajectory, quarantined: Collection[Chunk]) -> Trajectory:
    """Return a run as it may be shown: itself, or without its texts if it met one of these chunks."""
    if not quarantined:
        return trajectory
    text = "\n".join(texts_of(asdict(trajectory)))
    met = tuple(chunk.id for chunk in quarantined if chunk.id in text or _repeats(text, chunk.content))
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


def texts_of(value: Any) -> Iterator[str]:
    """Yield every text in plain data, names of fields included."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield str(name)
            yield from texts_of(item)
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from texts_of(item)
    elif value is not None and not isinstance(value, bool | int | float):
        yield str(value)


def _repeats(text: str, content: str) -> bool:
    """Whether a text has a stretch of a content: any longer one contains a whole window."""
    content = content.strip()
    if len(content) < _WINDOW:
        return len(content) >= _SHORTEST and content in text
    return any(content[at : at + _WINDOW] in text for at in range(0, len(content) - _WINDOW + 1, _WINDOW))
