"""Trajectories: one JSONL file per recall, reason or host-driven session; listed, loaded and pruned.

The first line says what was asked and how, then each turn and each sub-call has a line of its own, the last
line holds the outcome. Lines are appended as the run goes, so a crash leaves a readable beginning. Their files are
``trajectories/YYYY-MM/ID.jsonl`` of the store; keys of model providers are redacted before anything is written.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from rlm_mem.errors import InvalidQuery, NotFoundError
from rlm_mem.models.base import Usage
from rlm_mem.models.budget import ModelSpending
from rlm_mem.recall.outcome import OutcomeWord, outcome_word
from rlm_mem.recall.turn import LoopStep

if TYPE_CHECKING:
    from rlm_mem.store.core.brain_files import BrainFiles
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = [
    "FORMAT",
    "Outcome",
    "SubCall",
    "Trajectory",
    "TrajectoryInfo",
    "list_trajectories",
    "is_trajectory_id",
    "load_trajectory",
    "prompt_key",
    "prune_trajectories",
    "recent",
    "stamp",
    "trajectory_file",
    "trajectories",
]

FORMAT = 1
"""Version of the lines, in the first one."""
FOLDER = "trajectories"
_ID = re.compile(r"traj-(\d{4})(\d{2})\d{2}T\d{6}-[0-9a-f]{8}")
_FILE = re.compile(rf"{FOLDER}/\d{{4}}-\d{{2}}/({_ID.pattern})\.jsonl")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SubCall:
    """A model call that a program made (``llm_query``, ``llm_query_batched``).

    Attributes:
        turn: of the run, from 1, during which it was made.
        key: fingerprint of the prompt; replay answers an equal prompt with ``reply``.
        prompt: its first characters.
        prompt_chars: its whole length.
        reply: the answer, or empty when the call failed with ``error``.
    """

    turn: int
    key: str
    prompt: str
    prompt_chars: int
    reply: str
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = None
    seconds: float = 0.0
    error: str | None = None


@dataclass(frozen=True)
class Outcome:
    """How a run ended; money in US dollars, ``cost`` None when a call had no known price.

    ``error`` names an exception that ended the run (a model that failed), ``stopped_by`` a budget.
    ``detail`` holds what only some operations have: the path of a REASON, for example.
    """

    content: str | None
    chunk_ids: tuple[str, ...]
    confidence: float
    concluded: bool
    stopped_by: str | None
    evidence: tuple[str, ...]
    iterations: int
    model_calls: int
    seconds: float
    usage: Usage
    cost: Decimal | None
    models: tuple[ModelSpending, ...]
    ended_at: str
    error: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def word(self) -> OutcomeWord:
        """``answered``, ``closest only``, ``not held``, ``stopped`` or ``failed`` (:mod:`rlm_mem.recall.outcome`)."""
        return outcome_word(
            content=self.content, chunk_ids=self.chunk_ids, concluded=self.concluded, error=self.error
        )


@dataclass
class Trajectory:
    """The recorded steps of one run (``outcome`` is None while it runs, or when it was killed).

    Attributes:
        id: ``traj-YYYYMMDDTHHMMSS-xxxxxxxx``, sorts by time.
        operation: ``recall``, ``reason`` or ``session``.
        hits: what the model saw first: the best chunks, with their snippets.
        steps: turns in the order in which they ended; those of sub-questions have a ``depth`` above 0.
        result_schema: what the answer had to fit, as a JSON Schema, or None.
        as_of: the time of which it was asked, or None: the present.
        path: the file; None when nothing is recorded, or where records are rows of a database.
    """

    id: str
    operation: str
    query: str
    namespace: str
    started_at: str
    model: str
    engine: str
    limits: dict[str, Any] = field(default_factory=dict)
    store: dict[str, Any] = field(default_factory=dict)
    hits: tuple[dict[str, Any], ...] = ()
    steps: list[LoopStep] = field(default_factory=list)
    calls: list[SubCall] = field(default_factory=list)
    result_schema: dict[str, Any] | None = None
    as_of: str | None = None
    outcome: Outcome | None = None
    path: Path | None = None


@dataclass(frozen=True)
class TrajectoryInfo:
    """A trajectory in a list.

    Attributes:
        outcome: ``answered``, ``closest only``, ``not held``, ``stopped`` or ``failed``; None when no end is
            recorded: the run goes on, or its process was killed. Then ``concluded`` is None too, and figures are 0.
        answer: the answer or conclusion, or None.
        chunk_ids: the memories that the answer rests on; without one, the closest or best found.
    """

    id: str
    operation: str
    query: str
    started_at: str
    model: str
    engine: str
    iterations: int
    seconds: float
    concluded: bool | None
    stopped_by: str | None
    usage: Usage
    cost: Decimal | None
    error: str | None
    path: Path | None
    outcome: OutcomeWord | None = None
    answer: str | None = None
    confidence: float = 0.0
    chunk_ids: tuple[str, ...] = ()


def prompt_key(prompt: str) -> str:
    """Fingerprint of a prompt, so that its text need not be stored."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def list_trajectories(
    store: ChunkStore,
    *,
    operation: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int | None = 50,
) -> list[TrajectoryInfo]:
    """Return the trajectories of the store's namespace, newest first.

    Args:
        operation: only ``recall``, ``reason`` or ``session``.
        since, until: bounds of ``started_at``, as ``YYYY-MM-DD`` or a longer time; a date alone includes its day.
        limit: at most so many; None for all.
    """
    found: list[TrajectoryInfo] = []
    for trajectory in trajectories(store, since=since, until=until):
        if limit is not None and len(found) >= limit:
            break
        if operation in (None, trajectory.operation):
            found.append(_info(trajectory))
    return found


def trajectories(
    store: ChunkStore, *, since: str | None = None, until: str | None = None
) -> Iterator[Trajectory]:
    """Yield the trajectories of the store's namespace whole, newest first; bounds as in ``list_trajectories``."""
    stored = store.backend.files(store.namespace)
    oldest = "traj-" + re.sub(r"[-:]", "", since or "")[:15]
    for name in _newest_first(stored):
        # The id begins with the time: nothing after this one can be young enough.
        if PurePosixPath(name).name[: len(oldest)] < oldest:
            return
        trajectory = _read(stored, name)
        if trajectory is None:
            continue
        started = trajectory.started_at
        if not (since and started < since) and not (until and started[: len(until)] > until):
            yield trajectory


def recent(store: ChunkStore, limit: int) -> list[tuple[str, int]]:
    """Ids and sizes of the newest records, without reading them: what a watcher looks at.

    In a brain folder those of other namespaces are among them.
    """
    found = store.backend.files(store.namespace).last(FOLDER, limit)
    return [(PurePosixPath(name).stem, one.size) for name, one in found.items() if _FILE.fullmatch(name)]


def is_trajectory_id(text: str) -> bool:
    """Whether a text is a whole trajectory id."""
    return _ID.fullmatch(text) is not None


def load_trajectory(store: ChunkStore, trajectory_id: str) -> Trajectory:
    """Return one trajectory; ``"last"`` names the newest.

    Raises:
        InvalidQuery: the id is not one.
        NotFoundError: there is none of that id in the store's namespace.
    """
    if trajectory_id == "last":
        trajectory = next(trajectories(store), None)
    elif not is_trajectory_id(trajectory_id):
        raise InvalidQuery(
            f"{trajectory_id!r:.80} is not a trajectory id",
            hint="ids look like traj-20260210T213700-0a1b2c3d",
        )
    else:
        trajectory = _read(store.backend.files(store.namespace), trajectory_file(trajectory_id))
    if trajectory is None:
        raise NotFoundError(
            f"there is no trajectory {trajectory_id}", hint="rlm-mem trajectories list shows them"
        )
    return trajectory


def prune_trajectories(store: ChunkStore, days: int) -> int:
    """Delete trajectories that started more than ``days`` days ago; 0 keeps all. Returns how many went."""
    if not days:
        return 0
    stored = store.backend.files(store.namespace)
    oldest = trajectory_file(f"traj-{store.clock().astimezone(UTC) - timedelta(days=days):%Y%m%dT%H%M%S}")
    old = list(_newest_first(stored, oldest))
    return sum(stored.remove(name) for name in old)


def trajectory_file(trajectory_id: str) -> str:
    """The name of the file of a trajectory."""
    month = trajectory_id.removeprefix("traj-")
    return f"{FOLDER}/{month[:4]}-{month[4:6]}/{trajectory_id}.jsonl"


def _newest_first(stored: BrainFiles, before: str | None = None) -> Iterator[str]:
    """Trajectory files, a few at a time: mostly the first ones will do."""
    lot = 8
    while True:
        found = stored.last(FOLDER, lot, before=before)
        yield from (name for name in found if _FILE.fullmatch(name))
        if len(found) < lot:
            return
        before, lot = next(reversed(found)), min(lot * 4, 1024)


def _lines(stored: BrainFiles, name: str) -> Iterator[dict[str, Any]]:
    """The records of a file; a last line that a crash cut off is left out."""
    try:
        text = (stored.read(name) or b"").decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        _log.warning("%s cannot be read: %s", name, error)
        return
    for line in text.split("\n"):
        if not line:
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            _log.warning("%s holds a line that is not JSON", name)
            continue
        if isinstance(record, dict):
            yield record


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
    )


def _read(stored: BrainFiles, name: str) -> Trajectory | None:
    """Read one file, leaving out what is damaged.

    None when not even its first line can be used, or when it is another namespace's.
    """
    trajectory: Trajectory | None = None
    for record in _lines(stored, name):
        kind = record.pop("kind", None)
        try:
            if kind == "start":
                if record.get("namespace") != stored.namespace:
                    return None
                trajectory = _build(Trajectory, record, path=stored.path(name))
            elif trajectory is not None and kind == "step":
                trajectory.steps.append(_build(LoopStep, record))
            elif trajectory is not None and kind == "call":
                trajectory.calls.append(_build(SubCall, record))
            elif trajectory is not None and kind == "end":
                trajectory.outcome = _build(Outcome, record)
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            _log.warning("%s holds a record that does not fit: %s", name, error)
    return trajectory


def _build(kind: type[Any], record: dict[str, Any], **more: Any) -> Any:
    """Make the data class from a record; unknown fields of later versions are left out."""
    known = {item.name for item in fields(kind)}
    values = {name: value for name, value in record.items() if name in known}
    for name, value in values.items():
        if name == "usage":
            values[name] = _build(Usage, value)
        elif name == "cost" and value is not None:
            values[name] = Decimal(value)
        elif name == "models":
            values[name] = tuple(_build(ModelSpending, model) for model in value)
        elif isinstance(value, list):
            values[name] = tuple(value)
    return kind(**values, **more)


def stamp(moment: datetime) -> str:
    """The moment as the store writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
