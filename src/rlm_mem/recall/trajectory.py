"""Trajectories: one JSONL file per recall, reason or host-driven session; listed, loaded and pruned.

The first line says what was asked and how, then each turn and each sub-call has a line of its own, the last
line holds the outcome. Lines are appended as the run goes, so a crash leaves a readable beginning. Files stand
in ``trajectories/YYYY-MM/`` of the store; keys of model providers are redacted before anything is written.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_mem.errors import InvalidQuery, NotFoundError
from rlm_mem.llm.base import Usage
from rlm_mem.llm.budget import ModelSpending
from rlm_mem.repl.loop import LoopStep

if TYPE_CHECKING:
    from rlm_mem.store.api import ChunkStore

__all__ = [
    "FORMAT",
    "Outcome",
    "SubCall",
    "Trajectory",
    "TrajectoryInfo",
    "list_trajectories",
    "load_trajectory",
    "prompt_key",
    "prune_trajectories",
    "read_trajectory",
    "stamp",
    "trajectory_folder",
]

FORMAT = 1
"""Version of the lines, in the first one."""
_ID = re.compile(r"traj-(\d{4})(\d{2})\d{2}T\d{6}-[0-9a-f]{8}")
_MONTH = re.compile(r"\d{4}-\d{2}")
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


@dataclass
class Trajectory:
    """The recorded steps of one run (``outcome`` is None while it runs, or when it was killed).

    Attributes:
        id: ``traj-YYYYMMDDTHHMMSS-xxxxxxxx``, sorts by time.
        operation: ``recall``, ``reason`` or ``session``.
        hits: what the model saw first, metadata only.
        steps: turns in the order in which they ended; those of sub-questions have a ``depth`` above 0.
        path: the file, or None when nothing is recorded.
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
    outcome: Outcome | None = None
    path: Path | None = None


@dataclass(frozen=True)
class TrajectoryInfo:
    """A trajectory in a list. ``concluded`` is None and figures are 0 when the run never ended."""

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
    path: Path


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
    oldest = "traj-" + re.sub(r"[-:]", "", since or "")[:15]
    for path in _files(store):
        # The id begins with the time: nothing after this one can be young enough.
        if (limit is not None and len(found) >= limit) or path.stem[: len(oldest)] < oldest:
            break
        info = _info(store, path)
        if info is None or (operation is not None and info.operation != operation):
            continue
        if (since and info.started_at < since) or (until and info.started_at[: len(until)] > until):
            continue
        found.append(info)
    return found


def load_trajectory(store: ChunkStore, trajectory_id: str) -> Trajectory:
    """Return one trajectory; ``"last"`` names the newest.

    Raises:
        InvalidQuery: the id is not one.
        NotFoundError: there is none of that id in the store's namespace.
    """
    folder = trajectory_folder(store)
    path: Path | None = None
    if trajectory_id == "last":
        newest = list_trajectories(store, limit=1)
        path = newest[0].path if newest else None
    else:
        match = _ID.fullmatch(trajectory_id)
        if match is None:
            raise InvalidQuery(
                f"{trajectory_id!r:.80} is not a trajectory id",
                hint="ids look like traj-20260210T213700-0a1b2c3d",
            )
        if folder is not None:
            path = folder / f"{match[1]}-{match[2]}" / f"{trajectory_id}.jsonl"
    trajectory = read_trajectory(path) if path is not None and path.is_file() else None
    if trajectory is None or trajectory.namespace != store.namespace:
        raise NotFoundError(f"there is no trajectory {trajectory_id}", hint="list them: rlm-mem trajectories")
    return trajectory


def prune_trajectories(store: ChunkStore, days: int) -> int:
    """Delete trajectories that started more than ``days`` days ago; 0 keeps all. Returns how many went."""
    folder = trajectory_folder(store)
    if not days or folder is None or not folder.is_dir():
        return 0
    oldest = store.clock().astimezone(UTC) - timedelta(days=days)
    keep_from = f"traj-{oldest:%Y%m%dT%H%M%S}"
    removed = 0
    for month in folder.iterdir():
        # Whole months that are younger need no look inside.
        if not _MONTH.fullmatch(month.name) or month.name > f"{oldest:%Y-%m}":
            continue
        for path in month.glob("traj-*.jsonl"):
            if path.name < keep_from:
                path.unlink(missing_ok=True)
                removed += 1
        if not any(month.iterdir()):
            month.rmdir()
    return removed


def trajectory_folder(store: ChunkStore) -> Path | None:
    """Where the trajectories of a store stand; None for a store without a folder."""
    base: Path | str | None = getattr(store, "base_path", None)
    return None if base is None else Path(base) / "trajectories"


def _files(store: ChunkStore) -> Iterator[Path]:
    """All trajectory files, newest first."""
    folder = trajectory_folder(store)
    if folder is None or not folder.is_dir():
        return
    months = sorted((path for path in folder.iterdir() if _MONTH.fullmatch(path.name)), reverse=True)
    for month in months:
        yield from sorted((path for path in month.iterdir() if _ID.fullmatch(path.stem)), reverse=True)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file; a last line that a crash cut off is left out."""
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                try:
                    record = json.loads(line)
                except ValueError:
                    _log.warning("%s holds a line that is not JSON", path)
                    continue
                if isinstance(record, dict):
                    yield record
    except (OSError, UnicodeDecodeError) as error:
        _log.warning("%s cannot be read: %s", path, error)


def _info(store: ChunkStore, path: Path) -> TrajectoryInfo | None:
    trajectory = read_trajectory(path)
    if trajectory is None or trajectory.namespace != store.namespace:
        return None
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
        path=path,
    )


def read_trajectory(path: Path) -> Trajectory | None:
    """Read one file, leaving out what is damaged; None when not even its first line can be used."""
    trajectory: Trajectory | None = None
    for record in _lines(path):
        kind = record.pop("kind", None)
        try:
            if kind == "start":
                trajectory = _build(Trajectory, record, path=path)
            elif trajectory is not None and kind == "step":
                trajectory.steps.append(_build(LoopStep, record))
            elif trajectory is not None and kind == "call":
                trajectory.calls.append(_build(SubCall, record))
            elif trajectory is not None and kind == "end":
                trajectory.outcome = _build(Outcome, record)
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            _log.warning("%s holds a record that does not fit: %s", path, error)
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
