"""Writes a trajectory while its run goes on, line by line, without keys."""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from datetime import UTC
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Unpack

from rlm_mem.models.base import LLM, Completion, Options, Prompt, as_messages, render_prompt
from rlm_mem.models.budget import Spent
from rlm_mem.models.secrets import redact
from rlm_mem.recall.model_calls import bounded_reply
from rlm_mem.recall.trajectory import (
    FORMAT,
    Outcome,
    SubCall,
    Trajectory,
    prompt_key,
    stamp,
    trajectory_file,
)
from rlm_mem.recall.turn import LoopStep
from rlm_mem.sandbox.steps import MAX_ERROR_CHARS
from rlm_mem.sandbox.values import clipped, well_formed

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["RecordedLLM", "TrajectoryRecorder", "error_text"]

MAX_RECORD_BYTES = 8_000_000
"""Of the steps and sub-calls of one run; what comes after is counted and left out. With the first and the last line,
which are bounded by themselves, a file stays below 16 MB."""

MAX_PROMPT_PREVIEW = 400
"""Characters of the prompt of a sub-call that are recorded."""

_log = logging.getLogger(__name__)


class TrajectoryRecorder:
    """Collects one run in memory and in its file; safe from many threads.

    A store that is full or cannot be written ends the recording with a warning, never the recall.

    Args:
        store: whose files, namespace, clock and settings hold.
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
        identity = f"traj-{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
        self.trajectory = Trajectory(
            id=identity,
            operation=operation,
            query=query,
            namespace=store.namespace,
            started_at=stamp(now),
            model=model,
            engine=engine,
            limits=dict(limits),
        )
        self._clock = store.clock
        self._lock = threading.Lock()
        self._stored = store.backend.files(store.namespace)
        self._name = trajectory_file(identity)
        self._turn = 1
        self._bytes = 0
        self._left_out = 0
        self.recording = enabled and not store.backend.read_only and self._begun()
        """Whether what happens is written down."""

    def begin(self, store: Mapping[str, Any], hits: Iterable[Mapping[str, Any]]) -> None:
        """Record what the model sees first."""
        trajectory = self.trajectory
        trajectory.store = dict(store)
        trajectory.hits = tuple(dict(hit) for hit in hits)
        head = {
            item.name: getattr(trajectory, item.name)
            for item in fields(trajectory)
            if item.name not in ("steps", "calls", "outcome", "path")
        }
        self._write({"kind": "start", "format": FORMAT, **head})

    def step(self, step: LoopStep) -> None:
        """Record a finished turn."""
        kept = self._write({"kind": "step", **asdict(step)}, bounded=True)
        with self._lock:
            if kept:
                self.trajectory.steps.append(step)
            if step.depth == 0:
                self._turn += 1

    def call(self, **values: Any) -> None:
        """Record a sub-call; takes the fields of :class:`SubCall` but ``turn``."""
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
        chunk_ids: Iterable[str] = (),
        confidence: float = 0.0,
        concluded: bool = False,
        stopped_by: str | None = None,
        evidence: Iterable[str] = (),
        error: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> Trajectory:
        """Record the outcome, end the record and return the whole trajectory."""
        self.trajectory.outcome = Outcome(
            content=content,
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
            ended_at=stamp(self._clock()),
            error=error,
            detail=dict(detail or {}) | ({"records_left_out": self._left_out} if self._left_out else {}),
        )
        self._write({"kind": "end", **asdict(self.trajectory.outcome)})
        with self._lock:
            self.recording = False
        return self.trajectory

    def _begun(self) -> bool:
        try:
            self._stored.create(self._name, b"")
        except OSError as error:
            _log.warning("trajectories are not recorded: %s", error)
            return False
        self.trajectory.path = self._stored.path(self._name)
        return True

    def _write(self, record: dict[str, Any], *, bounded: bool = False) -> bool:
        """Append a record; False when a bounded one no longer fits."""
        # A lone surrogate becomes \udXXX through backslashreplace, which JSON reads back.
        line = json.dumps(_clean(record), ensure_ascii=False, default=str) + "\n"
        data = line.encode("utf-8", "backslashreplace")
        with self._lock:
            if bounded:
                if self._bytes + len(data) > MAX_RECORD_BYTES:
                    self._left_out += 1
                    return False
                self._bytes += len(data)
            if self.recording:
                try:
                    self._stored.append(self._name, data)
                except OSError as error:
                    _log.warning("the rest of %s is not recorded: %s", self._name, error)
                    self.recording = False
        return True


def _clean(record: dict[str, Any]) -> dict[str, Any]:
    """The record without keys of providers."""
    # One look at all texts together tells the usual case, that there is nothing to hide, at a tenth of the cost.
    texts = "\n".join(_texts(record))
    return record if redact(texts) == texts else _redacted(record)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield str(name)
            yield from _texts(item)
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool | int | float):
        yield str(value)


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {str(name): _redacted(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_redacted(item) for item in value]
    if isinstance(value, Decimal):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return redact(str(value))


def error_text(error: BaseException) -> str:
    """Kind and message of an error, as records hold it."""
    return clipped(well_formed(f"{type(error).__name__}: {error}"), MAX_ERROR_CHARS)


class RecordedLLM:
    """Passes the sub-calls of programs on to the model and records each of them."""

    def __init__(self, llm: LLM, recorder: TrajectoryRecorder) -> None:
        self._llm = llm
        self._recorder = recorder
        self.name = llm.name

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Answer as the model does; its errors pass through after they were recorded."""
        asked = as_messages(messages)
        prompt = render_prompt(asked)
        record = {
            "key": prompt_key(prompt),
            "prompt": prompt[:MAX_PROMPT_PREVIEW],
            "prompt_chars": len(prompt),
        }
        try:
            completion = bounded_reply(self._llm.complete(asked, **options))
        except Exception as error:  # recorded and raised again, whatever a foreign model throws
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
