"""Runs of recall and reason in worker threads, each with any number of listeners, which can be cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from rlm_mem.errors import ConflictError, NotFoundError, RlmMemError, SessionCancelled
from rlm_mem.operations.context import OpenMemory, storable
from rlm_mem.operations.problems import Problem, problem_of
from rlm_mem.sandbox.engine import Stop, stopped_by

if TYPE_CHECKING:
    from rlm_mem.models.base import Limits
    from rlm_mem.recall.loop import LoopStep
    from rlm_mem.recall.reason import ReasoningResult
    from rlm_mem.recall.recall import RecallResult

RunKind = Literal["recall", "reason"]
State = Literal["running", "done", "failed", "cancelled"]
Kind = Literal["step", "text", "result", "error"]

_TEXT_INTERVAL = 0.05
"""Minimum seconds between two text events, since a model sends many pieces of a few characters."""
_MAX_EVENTS = 5_000
"""Maximum events of one run; beyond that, text is dropped, but never steps or the end."""
_WORKERS = 4
"""Maximum runs at the same time; further ones wait."""
_MAX_RUNS = _WORKERS + 32
"""Maximum runs that run or wait; more are refused."""
_MAX_KEPT = 50
"""Maximum runs that are kept for a namespace; beyond that, the oldest ended ones are dropped."""
_MAX_KEPT_IN_ALL = 500
"""Maximum runs that are kept for all namespaces, since there may be any number of those."""
_log = logging.getLogger(__name__)


class RunEvent(msgspec.Struct, frozen=True):
    """One event of a run: a turn ended (``step``), text of the model (``text``), its ``result``, or the ``error`` that
    ended it, as a problem. In a stream, ``kind`` is the event's name and ``seq`` its id, from 1 without gaps.
    """

    seq: int
    kind: Kind
    data: dict[str, Any]


class LiveRun:
    """One recall or reasoning that is running, or has run, in this server.

    Attributes:
        opened: the memory of the client that started it.
        id: unique while the server runs.
        result: its result; None before the end, or if it failed or was cancelled.
        error: the exception that ended it, as a problem, or None.
    """

    def __init__(self, operation: RunKind, question: str, opened: OpenMemory) -> None:
        self.opened = opened
        self.id = f"run-{secrets.token_hex(8)}"
        self.operation: RunKind = operation
        self.question = question
        self.state: State = "running"
        self.started_at = _now()
        self.finished_at: str | None = None
        self.events: list[RunEvent] = []
        self.result: RecallResult | ReasoningResult | None = None
        self.error: Problem | None = None
        self._guard = threading.Lock()
        self._stop = Stop()
        self._ended = threading.Event()
        self._listeners: set[Callable[[], None]] = set()
        self._text: list[str] = []
        self._text_at = 0.0

    # --- reading ---------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """End the run and the program or model call it waits for, at once; no effect once it has ended."""
        self._stop.set()

    @property
    def namespace(self) -> str:
        """The namespace that the run reads."""
        return self.opened.memory.store.namespace

    @property
    def recorded(self) -> Sequence[str]:
        """Ids of its trajectories that are being recorded or were; several if it searched again after a change."""
        return self._stop.runs

    @property
    def trajectory_id(self) -> str | None:
        """Id of its trajectory; None before it has begun, and without a result where runs are not recorded."""
        return self.result.trajectory.id if self.result is not None else next(reversed(self.recorded), None)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended; return False if ``timeout`` seconds passed first."""
        return self._ended.wait(timeout)

    async def follow(self, after: int = 0) -> AsyncIterator[RunEvent]:
        """Yield every event after number ``after``, as it occurs, until the run has ended."""
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the listener's loop has ended
                loop.call_soon_threadsafe(woken.set)

        with self._guard:
            self._listeners.add(wake)
        try:
            while True:
                woken.clear()
                with self._guard:
                    ended = self._ended.is_set()
                    fresh = self.events[after:]
                for event in fresh:
                    after = event.seq
                    yield event
                if ended:
                    return
                await woken.wait()
        finally:
            with self._guard:
                self._listeners.discard(wake)

    # --- running ---------------------------------------------------------------------------------------

    def execute(
        self, limits: Limits | None, schema: Mapping[str, Any] | None = None, as_of: str | None = None
    ) -> None:
        """Execute the run in the calling thread; an error becomes the last event."""
        try:
            self._stop.check()
            memory = self.opened.memory
            given: dict[str, Any] = {"limits": limits, "as_of": as_of}
            given |= {"on_step": self._on_step, "on_text": self._on_text}
            result: RecallResult | ReasoningResult
            with stopped_by(self._stop):
                if self.operation == "recall":
                    result = memory.recall(self.question, result=schema, **given)
                else:
                    result = memory.reason(self.question, **given)
            from rlm_mem.operations.shapes import answer_of

            answer = answer_of(result)
            self.result = result
        except SessionCancelled:
            self._fail("cancelled", SessionCancelled("the run was cancelled"))
        except RlmMemError as error:
            self._fail("failed", error)
        except Exception as error:  # noqa: BLE001 - listeners must learn that the run has ended
            _log.exception("run %s failed", self.id)
            self._fail("failed", error)
        else:
            self._end("done", "result", answer)

    def _on_step(self, step: LoopStep) -> None:
        self._flush_text()
        self._add("step", msgspec.to_builtins(step))
        self._stop.check()

    def _on_text(self, piece: str) -> None:
        self._text.append(piece)
        if time.monotonic() - self._text_at >= _TEXT_INTERVAL:
            self._flush_text()

    def _flush_text(self) -> None:
        text, self._text = "".join(self._text), []
        self._text_at = time.monotonic()
        if text and len(self.events) < _MAX_EVENTS:
            self._add("text", {"text": text})

    def _add(self, kind: Kind, data: dict[str, Any], *, last: bool = False) -> None:
        data = storable(data)
        with self._guard:
            self.events.append(RunEvent(len(self.events) + 1, kind, data))
            if last:  # under the same lock, so that a listener that sees the end also gets the event
                self._ended.set()
            listeners = list(self._listeners)
        for wake in listeners:
            wake()

    def _fail(self, state: State, failure: Exception) -> None:
        self.error = problem_of(failure)
        self._end(state, "error", self.error)

    def _end(self, state: State, kind: Kind, end: msgspec.Struct) -> None:
        self._flush_text()
        self.state, self.finished_at = state, _now()
        self._add(kind, msgspec.to_builtins(end), last=True)


class RunRegistry:
    """Keeps the latest runs of a server, so that several listeners can follow the same one."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=_WORKERS, thread_name_prefix="rlm-mem-run")
        self._runs: OrderedDict[str, LiveRun] = OrderedDict()
        self._guard = threading.Lock()

    def start(
        self,
        opened: OpenMemory,
        operation: RunKind,
        question: str,
        limits: Limits | None = None,
        schema: Mapping[str, Any] | None = None,
        as_of: str | None = None,
    ) -> LiveRun:
        """Start a run as soon as a worker is free, and keep it; it continues without listeners.

        Args:
            opened: the memory of the client.
            operation: ``recall`` or ``reason``.
            limits: the budgets of the run; None: as configured.
            schema: the form of a recall's answer, as a JSON Schema.
            as_of: answer from what was valid at this time; None: now.

        Raises:
            ConflictError: too many runs are running or waiting, of this client or in all.
        """
        run = LiveRun(operation, question, opened)
        with self._guard:
            running = [other for other in self._runs.values() if other.state == "running"]
            own = sum(other.opened is opened for other in running)
            own_limit = _MAX_RUNS if opened.access.owner else _MAX_RUNS // 3
            if len(running) >= _MAX_RUNS or own >= own_limit:
                raise ConflictError(
                    f"{_MAX_RUNS if own < own_limit else own_limit} recalls are already running or waiting",
                    hint="wait for one of them, or cancel it",
                )
            same = [other for other in self._runs.values() if other.namespace == run.namespace]
            self._make_room(same, _MAX_KEPT)
            self._make_room(list(self._runs.values()), _MAX_KEPT_IN_ALL)
            self._runs[run.id] = run
        self._pool.submit(run.execute, limits, schema, as_of)
        return run

    def _make_room(self, among: Sequence[LiveRun], most: int) -> None:
        """Drop the oldest ended runs among some, so that with one more there are at most ``most``."""
        ended = [run.id for run in among if run.state != "running"]
        for name in ended[: max(0, len(among) + 1 - most)]:
            del self._runs[name]

    def get(self, opened: OpenMemory, run_id: str) -> LiveRun:
        """Return the run with this id; raises NotFoundError if there is none in the client's namespace."""
        found = next((run for run in self.list(opened) if run.id == run_id), None)
        if found is None:
            raise NotFoundError(
                f"there is no run {run_id!r:.60}",
                hint=f"the latest {_MAX_KEPT} runs of a namespace are kept, at most {_MAX_KEPT_IN_ALL} in all",
            )
        return found

    def list(self, opened: OpenMemory | None = None) -> list[LiveRun]:
        """Return the kept runs, newest first: those in the namespace of a client, or (None) all."""
        with self._guard:
            runs = list(reversed(self._runs.values()))
        return [run for run in runs if opened is None or run.namespace == opened.memory.store.namespace]

    def forget(self) -> None:
        """Cancel and drop every run, since its events have text of memories."""
        with self._guard:
            dropped, self._runs = list(self._runs.values()), OrderedDict()
        for run in dropped:
            run.cancel()

    def close(self) -> None:
        """Cancel the runs and wait until they have ended."""
        for run in self.list():
            run.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
