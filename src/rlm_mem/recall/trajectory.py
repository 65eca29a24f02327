"""Trajectories: one JSONL file per recall, reason or host-driven session; written, listed, loaded and pruned.

The first line has the question and the settings, each turn and each sub-call has a line, and the last line is the
outcome. Lines are appended during the run, so a crash leaves a readable beginning. The files are
``trajectories/YYYY-MM/ID.jsonl`` in the store; keys of model providers are redacted before writing.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import msgspec
from msgspec import field

from rlm_mem.arguments import check_since
from rlm_mem.chunk import format_time, parse_time
from rlm_mem.chunk.types import is_one_of
from rlm_mem.errors import InvalidQuery, NotFoundError
from rlm_mem.models.base import (
    LLM,
    Completion,
    ModelSpending,
    Options,
    Prompt,
    Spent,
    Usage,
    as_messages,
    render_prompt,
)
from rlm_mem.recall.loop import LoopStep
from rlm_mem.recall.model_calls import bounded_reply
from rlm_mem.recall.outcome import OPERATION_WORDS, RUN_OPERATIONS, OutcomeWord, outcome_word
from rlm_mem.record import FrozenRecord, MutableRecord
from rlm_mem.sandbox.values import MAX_ERROR_CHARS, clipped, well_formed
from rlm_mem.store.core.brain_files import namespace_of_run
from rlm_mem.telemetry import ObservedOperation, count
from rlm_mem.text.patterns import late
from rlm_mem.text.secrets import redact

if TYPE_CHECKING:
    from rlm_mem.store.core.brain_files import BrainFiles
    from rlm_mem.store.core.chunk_store import ChunkStore

FORMAT = 1
"""Version of the line format, recorded in the first line."""
FOLDER = "trajectories"
_LOT_BYTES = 4_000_000
"""Most bytes of files that are read at once, but for a single larger one."""
_ID = late(r"traj-(\d{4})(\d{2})\d{2}T\d{6}-[0-9a-f]{8}")
_FILE = late(rf"{FOLDER}/\d{{4}}-\d{{2}}/({_ID.pattern})\.jsonl")
_log = logging.getLogger(__name__)


class SubCall(FrozenRecord, frozen=True):
    """A model call that a program made (``llm_query``, ``llm_query_batched``).

    Attributes:
        turn: number of the turn, from 1, during which it was made.
        key: fingerprint of the prompt; replay answers an equal prompt with ``reply``.
        prompt: the first 400 characters of the prompt.
        prompt_chars: length of the whole prompt.
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


class Outcome(FrozenRecord, frozen=True):
    """How a run ended; money in US dollars, ``cost`` None when a call had no known price.

    ``error`` names an exception that ended the run (a model that failed), ``stopped_by`` a budget. ``detail`` has
    fields of some operations only, such as the path of a REASON. ``suggestion`` is the likeliest answer if there is
    no certain one; ``confidence`` then refers to it.
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
    suggestion: str | None = None

    @property
    def word(self) -> OutcomeWord:
        """``answered``, ``closest only``, ``not held``, ``stopped`` or ``failed`` (:mod:`rlm_mem.recall.outcome`)."""
        return outcome_word(
            content=self.content, chunk_ids=self.chunk_ids, concluded=self.concluded, error=self.error
        )


class Trajectory(MutableRecord):
    """The recorded steps of one run (``outcome`` is None while it runs, or if it was killed).

    Attributes:
        id: ``traj-YYYYMMDDTHHMMSS-xxxxxxxx``, sorts by time.
        operation: ``recall``, ``reason`` or ``session``.
        hits: the best chunks, with their snippets, as in the opening.
        steps: turns in the order in which they ended; those of sub-questions have a ``depth`` above 0.
        result_schema: the JSON Schema that the answer had to match, or None.
        as_of: the run answered from what was valid at this time; None: at present.
        path: the file; None when nothing is recorded, or where records are rows of a database.
        withheld: ids of the chunks in quarantine for which the texts are hidden (:mod:`rlm_mem.recall.shown_runs`).
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
    withheld: tuple[str, ...] = ()


def check_operation(operation: str | None) -> None:
    """Raise InvalidQuery for a text that is not an operation of recorded runs."""
    if operation is not None and not is_one_of(operation, RUN_OPERATIONS):
        raise InvalidQuery(
            f"{operation!r:.80} is not an operation of recorded runs", hint=f"use {OPERATION_WORDS}"
        )


def unrecorded() -> Trajectory:
    """The empty trajectory of a result without a run, such as one in a test."""
    return Trajectory(id="", operation="", query="", namespace="", started_at="", model="", engine="")


class TrajectoryInfo(FrozenRecord, frozen=True):
    """A trajectory in a list.

    Attributes:
        outcome: ``answered``, ``closest only``, ``not held``, ``stopped`` or ``failed``; None if no end is
            recorded: the run is still active, or its process was killed. Then ``concluded`` and ``cost`` are None,
            too, ``iterations`` counts the recorded turns, and the other figures are 0.
        answer, suggestion: the answer or conclusion, or else the likeliest answer; None without either.
        chunk_ids: the memories that the answer rests on; without one, the closest or best found.
        withheld: ids of the chunks in quarantine for which the answer is hidden.
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
    suggestion: str | None = None
    withheld: tuple[str, ...] = ()


def prompt_key(prompt: str) -> str:
    """Fingerprint of a prompt, so that its text need not be stored."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def trajectories(
    store: ChunkStore, *, since: str | date | None = None, until: str | date | None = None, steps: bool = True
) -> Iterator[Trajectory]:
    """Yield the trajectories of the store's namespace, newest first; bounds as in ``list_trajectories``.

    Args:
        steps: False: runs that have ended come without their steps and sub-calls, which are most of a file.
    """
    since, until = check_since(since, "since"), check_since(until, "until")
    stored = store.backend.files(store.namespace)
    oldest = "traj-" + re.sub(r"[-:]", "", since or "")[:15]
    # Ids begin with the time, so all that follow one that is too old are too old as well.
    newer = takewhile(
        lambda named: PurePosixPath(named[0]).name[: len(oldest)] >= oldest, _newest_first(stored)
    )
    for name, data in _contents(stored, newer):
        trajectory = _parsed(stored, name, data, steps=steps)
        if trajectory is None:
            continue
        started = trajectory.started_at
        if not (since and started < since) and not (until and started[: len(until)] > until):
            yield trajectory


def recent(store: ChunkStore, limit: int, namespaces: dict[str, str]) -> list[tuple[str, int]]:
    """Ids and sizes in bytes of the store's runs among the newest trajectory files, for watchers.

    Args:
        namespaces: the namespaces of files by name, kept between calls, so that each file is read once.
    """
    stored = store.backend.files(store.namespace)
    found = stored.last(FOLDER, limit)
    for name in namespaces.keys() - found.keys():
        del namespaces[name]
    for name in found.keys() - namespaces.keys():
        namespace = namespace_of_run(stored.read_from(name, 0).partition(b"\n")[0])
        if namespace is not None:  # else its first line is not complete yet
            namespaces[name] = namespace
    return [
        (PurePosixPath(name).stem, one.size)
        for name, one in found.items()
        if _FILE.fullmatch(name) and namespaces.get(name) == store.namespace
    ]


def is_trajectory_id(text: str) -> bool:
    """Whether a text is a whole trajectory id."""
    return _ID.fullmatch(text) is not None


def load_trajectory(store: ChunkStore, trajectory_id: str) -> Trajectory:
    """Return one trajectory as it was recorded; ``"last"`` names the newest.

    Raises:
        InvalidQuery: it is not a trajectory id.
        NotFoundError: the store's namespace has no such trajectory.
    """
    if trajectory_id == "last":
        trajectory = next(trajectories(store), None)
    elif not is_trajectory_id(trajectory_id):
        raise InvalidQuery(
            f"{trajectory_id!r:.80} is not a trajectory id",
            hint="ids look like traj-20260210T213700-0a1b2c3d",
        )
    else:
        stored, name = store.backend.files(store.namespace), trajectory_file(trajectory_id)
        data = _content(stored, name)
        trajectory = None if data is None else _parsed(stored, name, data)
    if trajectory is None and trajectory_id == "last":
        raise NotFoundError("no run is recorded yet", hint="recall and reason record theirs")
    if trajectory is None:
        raise NotFoundError(
            f"there is no trajectory {trajectory_id}", hint="rlm-mem trajectories list shows them"
        )
    return trajectory


def prune_trajectories(store: ChunkStore, days: int) -> int:
    """Delete trajectories that started more than ``days`` days ago; 0 keeps all. Returns how many were deleted."""
    if not days:
        return 0
    stored = store.backend.files(store.namespace)
    oldest = trajectory_file(f"traj-{store.clock().astimezone(UTC) - timedelta(days=days):%Y%m%dT%H%M%S}")
    old = [name for name, _ in _newest_first(stored, oldest)]
    return sum(stored.remove(name) for name in old)


def trajectory_file(trajectory_id: str) -> str:
    """The name of the file of a trajectory."""
    month = trajectory_id.removeprefix("traj-")
    return f"{FOLDER}/{month[:4]}-{month[4:6]}/{trajectory_id}.jsonl"


def _newest_first(stored: BrainFiles, before: str | None = None) -> Iterator[tuple[str, int]]:
    """Yield name and size of trajectory files, listed a few at a time: callers mostly need only the first ones."""
    count = 8
    while True:
        found = stored.last(FOLDER, count, before=before)
        yield from ((name, one.size) for name, one in found.items() if _FILE.fullmatch(name))
        if len(found) < count:
            return
        before, count = next(reversed(found)), min(count * 4, 1024)


def _contents(stored: BrainFiles, named: Iterable[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of files, several to a round trip; skip those that cannot be read."""
    lot: list[str] = []
    size, most = 0, 4
    for name, more in named:
        if lot and (len(lot) == most or size + more > _LOT_BYTES):
            yield from _contents_of_lot(stored, lot)
            lot, size, most = [], 0, min(most * 4, 64)
        lot.append(name)
        size += more
    yield from _contents_of_lot(stored, lot)


def _contents_of_lot(stored: BrainFiles, lot: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    read = set()
    try:
        for name, data in stored.contents(lot):
            read.add(name)
            yield name, data
    except OSError:  # of one of them: the others are read alone
        for name in lot:
            alone = None if name in read else _content(stored, name)
            if alone is not None:
                yield name, alone


def _content(stored: BrainFiles, name: str) -> bytes | None:
    try:
        return stored.read(name)
    except OSError as error:
        _log.warning("%s cannot be read: %s", name, error)
        return None


def _records(lines: Iterable[str], name: str) -> Iterator[dict[str, Any]]:
    """Yield the records of lines; skip those that are not JSON, such as a last line cut off by a crash."""
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            _log.warning("%s has a line that is not JSON", name)
            continue
        if isinstance(record, dict):
            yield record


def _parsed(stored: BrainFiles, name: str, data: bytes, *, steps: bool = True) -> Trajectory | None:
    """Parse one file, skipping damaged records.

    Returns None if its first line cannot be used, or if it belongs to another namespace.
    """
    try:
        lines = [line for line in data.decode("utf-8").split("\n") if line]
    except UnicodeDecodeError as error:
        _log.warning("%s cannot be read: %s", name, error)
        return None
    if not steps and lines:
        whole = _built(stored, name, [lines[0], lines[-1]])
        if whole is None or whole.outcome is not None:
            return whole
    return _built(stored, name, lines)


def _built(stored: BrainFiles, name: str, lines: Iterable[str]) -> Trajectory | None:
    trajectory: Trajectory | None = None
    for record in _records(lines, name):
        kind = record.pop("kind", None)
        try:
            if kind == "start":
                if record.get("namespace") != stored.namespace:
                    return None
                trajectory = msgspec.convert(record, Trajectory)
                trajectory.path = stored.path(name)
            elif trajectory is not None and kind == "step":
                trajectory.steps.append(msgspec.convert(record, LoopStep))
            elif trajectory is not None and kind == "call":
                trajectory.calls.append(msgspec.convert(record, SubCall))
            elif trajectory is not None and kind == "end":
                trajectory.outcome = msgspec.convert(record, Outcome)
        except msgspec.ValidationError as error:
            _log.warning("%s has a record that does not fit: %s", name, error)
    return trajectory


MAX_RECORD_BYTES = 8_000_000
"""Most bytes of the steps and sub-calls of one run; later ones are counted, not recorded. With the first and the
last line, which are bounded separately, a file stays below 16 MB."""

MAX_PROMPT_PREVIEW = 400
"""Characters of a sub-call's prompt that are recorded."""


_ids = itertools.count()


def _new_id(at: datetime) -> str:
    """An id that sorts by time, and after other ids of this process for the same microsecond."""
    return f"traj-{at:%Y%m%dT%H%M%S}-{at.microsecond:05x}{next(_ids) % 4096:03x}"


class TrajectoryRecorder:
    """Collects one run in memory and in its file; safe from many threads.

    If the store is full or cannot be written, the recording ends with a warning and the recall goes on; likewise,
    without a warning, if the file was removed.

    Args:
        store: provides the files, the namespace and the clock.
        operation: ``recall``, ``reason`` or ``session``.
        enabled: False records in memory only.
    """

    def __init__(
        self,
        store: ChunkStore,
        operation: str,
        query: str,
        *,
        model: str,
        engine: str,
        limits: Mapping[str, Any],
        enabled: bool = True,
    ) -> None:
        now = store.clock().astimezone(UTC)
        self.trajectory = Trajectory(
            id=_new_id(now),
            operation=operation,
            query=query,
            namespace=store.namespace,
            started_at=format_time(now),
            model=model,
            engine=engine,
            limits=dict(limits),
        )
        self._clock = store.clock
        self._lock = threading.Lock()
        self._stored = store.backend.files(store.namespace)
        self._name = trajectory_file(self.trajectory.id)
        self._turn = 1
        self._bytes = 0
        self._left_out = 0
        self.recording = enabled and not store.backend.read_only
        """Whether records are written to the file, which ``begin`` creates."""
        self.removed = False
        """Whether the file was removed meanwhile, as by an erasure."""

    def begin(self, store: Mapping[str, Any], hits: Iterable[Mapping[str, Any]]) -> None:
        """Record the settings of the run and the contents of its opening."""
        trajectory = self.trajectory
        self.recording = self.recording and self._create_file()
        trajectory.store = dict(store)
        trajectory.hits = tuple(dict(hit) for hit in hits)
        head = {
            item.name: getattr(trajectory, item.name)
            for item in fields(trajectory)
            if item.name not in ("steps", "calls", "outcome", "path")
        }
        # The namespace precedes any text, so that a truncated line still contains it.
        self._write({"kind": "start", "format": FORMAT, "namespace": trajectory.namespace, **head})

    def step(self, step: LoopStep) -> None:
        """Record a finished turn."""
        written = self._write({"kind": "step", **asdict(step)}, bounded=True)
        with self._lock:
            if written:
                self.trajectory.steps.append(step)
            if step.depth == 0:
                self._turn += 1

    def call(self, **values: Any) -> None:
        """Record a sub-call; takes the fields of :class:`SubCall` except ``turn``."""
        with self._lock:
            call = SubCall(turn=self._turn, **values)
        if self._write({"kind": "call", **asdict(call)}, bounded=True):
            with self._lock:
                self.trajectory.calls.append(call)

    def finish(
        self,
        spent: Spent,
        *,
        content: str | None = None,
        suggestion: str | None = None,
        chunk_ids: Iterable[str] = (),
        confidence: float = 0.0,
        concluded: bool = False,
        stopped_by: str | None = None,
        evidence: Iterable[str] = (),
        error: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> Trajectory:
        """Record the outcome, end the recording and return the whole trajectory."""
        self.trajectory.outcome = Outcome(
            content=content,
            suggestion=suggestion,
            chunk_ids=tuple(chunk_ids),
            confidence=confidence,
            concluded=concluded,
            stopped_by=stopped_by,
            evidence=tuple(evidence),
            iterations=spent.iterations,
            model_calls=spent.model_calls,
            seconds=spent.seconds,
            usage=spent.usage,
            cost=spent.cost,
            models=spent.models,
            ended_at=format_time(self._clock()),
            error=error,
            detail=dict(detail or {}) | ({"records_left_out": self._left_out} if self._left_out else {}),
        )
        self._write({"kind": "end", **asdict(self.trajectory.outcome)})
        with self._lock:
            self.recording = False
        return self.trajectory

    def _create_file(self) -> bool:
        try:
            while not self._stored.create(self._name, b""):  # another process took the id
                self.trajectory.id = _new_id(parse_time(self.trajectory.started_at))
                self._name = trajectory_file(self.trajectory.id)
        except OSError as error:
            _log.warning("trajectories are not recorded: %s", error)
            return False
        self.trajectory.path = self._stored.path(self._name)
        return True

    def _write(self, record: dict[str, Any], *, bounded: bool = False) -> bool:
        """Append a record; return False if a bounded one exceeds the limit."""
        # A lone surrogate becomes \udXXX through backslashreplace, which JSON reads back.
        line = json.dumps(_without_keys(record), ensure_ascii=False, default=str) + "\n"
        data = line.encode("utf-8", "backslashreplace")
        with self._lock:
            if bounded:
                if self._bytes + len(data) > MAX_RECORD_BYTES:
                    self._left_out += 1
                    return False
                self._bytes += len(data)
            if self.recording:
                try:  # a record that was erased or pruned meanwhile does not come back
                    self.recording = self._stored.extend(self._name, data)
                    self.removed = not self.recording
                except OSError as error:
                    _log.warning("the rest of %s is not recorded: %s", self._name, error)
                    self.recording = False
        return True


def _without_keys(record: dict[str, Any]) -> dict[str, Any]:
    # Checking all texts together detects the usual case, nothing to hide, at a tenth of the cost.
    texts = "\n".join(texts_of(record))
    return record if redact(texts) == texts else _redacted(record)


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


def _redacted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _redacted(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_redacted(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return redact(str(value))


def error_text(error: BaseException) -> str:
    """Type and message of an error, in the form that records use."""
    return clipped(well_formed(f"{type(error).__name__}: {error}"), MAX_ERROR_CHARS)


class SubCallRecorder(Protocol):
    """Records sub-calls, such as a `TrajectoryRecorder`."""

    def call(self, **values: Any) -> None:
        """Record a sub-call; takes the fields of :class:`SubCall` except ``turn``."""


class RecordedLLM:
    """Passes the sub-calls of programs to the model and records each of them."""

    def __init__(self, llm: LLM, recorder: SubCallRecorder) -> None:
        self._llm = llm
        self._recorder = recorder
        self.name = llm.name

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Answer as the model does; its errors are recorded and raised again."""
        sent = as_messages(messages)
        prompt = render_prompt(sent)
        record = {
            "key": prompt_key(prompt),
            "prompt": prompt[:MAX_PROMPT_PREVIEW],
            "prompt_chars": len(prompt),
        }
        try:
            completion = bounded_reply(self._llm.complete(sent, **options))
        except Exception as error:  # recorded and raised again, whatever a third-party model raises
            self._recorder.call(**record, reply="", model=self.name, error=error_text(error))
            raise
        self._recorder.call(
            **record,
            reply=completion.text,
            model=completion.model or self.name,
            usage=completion.usage,
            cost=completion.cost,
            seconds=completion.seconds,
        )
        return completion


def record_recall(current: ObservedOperation, result: Any) -> None:
    """Record the figures of a result of RECALL or REASON in its span, and the budget that ended it in a counter."""
    current.set("rlm_mem.turns", result.iterations_used)
    current.set("rlm_mem.chunks", len(result.chunk_ids))
    current.set("rlm_mem.concluded", result.concluded)
    current.text("rlm_mem.query", result.trajectory.query)
    if result.stopped_by is not None:
        current.set("rlm_mem.stopped_by", result.stopped_by)
        count("rlm_mem.recall.stopped", stopped_by=result.stopped_by)
    answer = getattr(result, "content", None) or getattr(result, "conclusion", None)
    if answer:
        current.text("rlm_mem.answer", str(answer))
