"""The Engine protocol for running programs with persistent state and host functions, and mechanisms to end programs.

An engine is the security boundary. It runs a program in another process, passes each call of a host function to the
driver, bounds returned values, and keeps the namespace from one program to the next. ``monty`` is the default
(:mod:`rlm_mem.sandbox.monty`), ``cpython`` the optional second one (:mod:`rlm_mem.sandbox.cpython`); it is chosen per
session, never per program.

Three mechanisms end running programs. Calls can be abandoned from any thread, and by Ctrl-C while the main thread is in
C code. A program that loops without calling the host never returns to the thread that drives it, so one thread watches
the deadlines of all sessions of the process. Workers end with their host, even if it is killed
(:mod:`rlm_mem.children`).
"""

from __future__ import annotations

import ast
import contextvars
import heapq
import itertools
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from msgspec import field

from rlm_mem.children import PerProcess
from rlm_mem.errors import ProgramError, SessionCancelled, TimeoutError
from rlm_mem.own_process import ENDING
from rlm_mem.record import FrozenRecord
from rlm_mem.sandbox.hints import hint_for
from rlm_mem.sandbox.values import Bounds, well_formed

Call = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]
"""Answers a call of a host function: takes name, positional and keyword arguments, and returns a plain value. It raises
:class:`HostCallFailed` for an error that the program may catch; any other exception ends the program."""


class HostCallFailed(Exception):
    """A host function refused or failed; the program gets an exception of this kind and may continue.

    Args:
        kind: name of a built-in exception, for example ``ValueError``.
        message: the error and the remedy; unpaired surrogates become U+FFFD.
    """

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        self.message = well_formed(message)
        super().__init__(self.message)


class EngineLimits(FrozenRecord, frozen=True):
    """Limits of one session.

    Attributes:
        seconds: maximum time limit of any program of the session.
        memory_mb: heap of the sandbox in MB.
        bounds: maximum size of a value that leaves the sandbox.
        recursion: maximum depth of calls inside the sandbox.
        allow_weaker_isolation: run the CPython engine even if seccomp is not available.
    """

    seconds: float = 60.0
    memory_mb: int = 32
    bounds: Bounds = field(default_factory=Bounds)
    recursion: int = 300
    allow_weaker_isolation: bool = False


_MAX_PRINTED = 16_000_000
"""Printed characters after which a program is stopped."""


class Printed:
    """The output of a program, up to a number of characters; the rest is counted and dropped.

    Args:
        limit: maximum characters kept.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self.stopped = False
        """Set if the program was ended before its worker was known; the engine then kills the worker at once."""
        self._kept: list[str] = []
        self._room = limit

    def write(self, text: str) -> None:
        """Add one piece of output."""
        self.total += len(text)
        if self._room > 0 and text:
            self._kept.append(text[: self._room])
            self._room -= len(self._kept[-1])

    @property
    def exceeds_output_limit(self) -> bool:
        """Whether the engine must end the program because of too much output."""
        return self.total > _MAX_PRINTED

    @property
    def truncated(self) -> bool:
        """Whether some output was dropped."""
        return self.total > self.limit

    def text(self) -> str:
        """Return the kept output, with a notice if some was dropped."""
        text = "".join(self._kept)
        if not self.truncated:
            return text
        notice = f"[{self.total:,} characters were printed, of which the first {self.limit:,} are kept: print less]"
        return f"{text}\n{notice}\n"


class Engine(Protocol):
    """Runs programs one after the other in one namespace; used by one thread at a time."""

    @property
    def name(self) -> str: ...

    @property
    def importable(self) -> frozenset[str]:
        """Modules that a program may import."""

    @property
    def worker_pid(self) -> int | None:
        """Process id of the worker; None if there is none."""

    def run(
        self, code: str, tree: ast.Module, names: Collection[str], call: Call, printed: Printed,
        deadline: float,
    ) -> Any:  # fmt: skip
        """Run one program and return the value of its last expression, bounded.

        Args:
            tree: its syntax tree; changed in place.
            names: names of the host functions, bound again before the program starts.
            call: answers calls of host functions.
            printed: receives the output.
            deadline: seconds on the monotonic clock at which the program is killed.

        Raises:
            ProgramError: an error inside the program; state assigned before it is kept.
            TimeoutError: the deadline passed; the state is as before the program unless the message says otherwise.
            SandboxCrashed: the worker died; the state is as after TimeoutError.
            Exception: an exception of ``call`` other than HostCallFailed; the state is as before the program.
        """

    def variables(self, reserved: frozenset[str]) -> dict[str, Any]:
        """Return the program's own names with their values: plain data within the bounds, else a :class:`Variable`.

        Args:
            reserved: names of host functions, which are left out.
        """

    def interrupt(self) -> None:
        """Kill the worker of the running program, from any thread; ``run`` then fails at once."""

    def reset(self) -> None:
        """Delete every name and release the worker; the engine can be used again."""


def program_error(
    kind: str, message: str, *, line: int | None = None, hint: str | None = None
) -> ProgramError:
    """Return the error for caller and model, with line, kind and message; ``hint`` is the remedy."""
    place = f"line {line}: " if line else ""
    text = f"{place}{kind}: {message}" if message else f"{place}{kind}"
    return ProgramError(text, line=line, kind=kind, hint=hint)


def timed_out(state: str) -> TimeoutError:
    """Return the error of a program that took too long; ``state``: which names are kept."""
    return TimeoutError(
        f"the program exceeded its time and was stopped; {state}", hint=hint_for("TimeoutError", "")
    )


class Stop(threading.Event):
    """Ends all work for one caller: ``set`` calls the registered actions at once, in the same thread.

    Attributes:
        runs: ids of the recorded runs that were begun in the work that it ends, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []
        self._guard = threading.Lock()
        self._actions: list[Callable[[], None]] = []

    def set(self) -> None:
        """End all running work, and refuse any that begins later."""
        super().set()
        with self._guard:
            actions = list(self._actions)
        for action in actions:
            action()

    def check(self) -> None:
        """Raise SessionCancelled if it is set."""
        if self.is_set():
            raise SessionCancelled("the run was cancelled")

    @contextmanager
    def ending(self, action: Callable[[], None]) -> Iterator[None]:
        """Let ``set`` call ``action`` while the block runs.

        Raises:
            SessionCancelled: the stop is already set.
        """
        with self._guard:
            self._actions.append(action)
        try:
            self.check()
            yield
        finally:
            with self._guard:
                self._actions.remove(action)


_stop: contextvars.ContextVar[Stop | None] = contextvars.ContextVar("rlm_mem_stop", default=None)


def stop_of_context() -> Stop | None:
    """Return the stop of this thread's or task's work; None if nothing can stop it."""
    return _stop.get()


@contextmanager
def stopped_by(stop: Stop) -> Iterator[None]:
    """Let ``stop`` end the sessions and model calls that the block begins."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


class Calls:
    """Runs calls in a separate thread, so that the caller can stop waiting.

    A function that sleeps or waits for a network cannot be stopped; it is abandoned, and its result is dropped.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job | None] | None = None
        self._current: _Job | None = None
        self._pid = os.getpid()
        self._ident: int | None = None

    @property
    def inside(self) -> bool:
        """Whether the calling thread is the one that runs the calls."""
        return self._ident == threading.get_ident()

    def call(self, function: Callable[..., Any], seconds: float, *args: Any, **keywords: Any) -> Any:
        """Return the function's result.

        Args:
            seconds: maximum wait; infinity waits without limit.

        Raises:
            SessionCancelled: ``abandon`` was called meanwhile.
            TimeoutError: it took too long.
            Exception: what the function raised.
        """
        job = _Job(partial(contextvars.copy_context().run, function, *args, **keywords))
        with self._guard:
            if self._jobs is None or self._pid != os.getpid():
                self._start()
            self._current = job
            assert self._jobs is not None
            self._jobs.put(job)
        try:
            ended = job.wait(min(max(0.0, seconds), threading.TIMEOUT_MAX))
        except BaseException:
            # Ctrl-C while waiting.
            self.abandon()
            raise
        if not ended:
            self.abandon()
            raise TimeoutError("a host function exceeded the program's time and was abandoned")
        with self._guard:
            self._current = None
        return job.result()

    def abandon(self) -> None:
        """Stop waiting for the current call, if any; the next one gets a new thread."""
        with self._guard:
            job, self._current = self._current, None
            if job is None or not job.end(
                error=SessionCancelled("the program was cancelled while it waited for a host function")
            ):
                return
            self._end()

    def close(self) -> None:
        """End the thread."""
        with self._guard:
            if self._current is None:
                self._end()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._jobs = queue.SimpleQueue()
        thread = threading.Thread(target=_run_jobs, args=(self._jobs,), name="rlm-mem-call", daemon=True)
        thread.start()
        self._ident = thread.ident

    def _end(self) -> None:
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = None
            self._ident = None


class _Job:
    """One call and how it ended: once, by its thread or by being abandoned.

    A program may make thousands of calls: two locks take a third of the time of a future and its condition.
    """

    __slots__ = ("_ended", "_error", "_open", "_value", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self._open = threading.Lock()  # taken by whoever ends the job
        self._ended = threading.Lock()  # held until then
        self._ended.acquire()
        self._value: Any = None
        self._error: BaseException | None = None

    def end(self, value: Any = None, error: BaseException | None = None) -> bool:
        """End the job, with an error or a value; return False if it has ended already."""
        if not self._open.acquire(blocking=False):
            return False
        self._value, self._error = value, error
        self._ended.release()
        return True

    def wait(self, seconds: float) -> bool:
        """Wait for the end, in one thread only; return False if it does not come in time."""
        return self._ended.acquire(timeout=seconds)

    def result(self) -> Any:
        """Return the value of a job that has ended, or raise its error."""
        if self._error is None:
            return self._value
        try:
            raise self._error
        finally:
            del self  # the traceback of the error has this frame


def _run_jobs(jobs: queue.SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        try:
            job.end(job.work())
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            job.end(error=error)
        del job  # and its value, while this thread waits for the next


class _InterruptListener:
    """Detects signals that end the process while the main thread is inside C code that does not check for them."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._guard = threading.Lock()
        self._actions: list[
            Callable[[], None]
        ] = []  # of programs, each run by a function of the one before it
        self._former = -1
        threading.Thread(target=self._listen, name="rlm-mem-interrupts", daemon=True).start()

    def arm(self, action: Callable[[], None]) -> None:
        with self._guard:
            if not self._actions:
                self._former = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
            self._actions.append(action)

    def disarm(self) -> None:
        with self._guard:
            self._actions.pop()
            if not self._actions:
                signal.set_wakeup_fd(self._former, warn_on_full_buffer=False)
                self._former = -1

    def _listen(self) -> None:
        while numbers := os.read(self._reader, 64):
            with self._guard:
                if self._former >= 0:
                    # Another listener (an event loop) was registered before.
                    try:
                        os.write(self._former, numbers)
                    except OSError:
                        self._former = -1
                if self._actions and not {signal.SIGINT, *ENDING}.isdisjoint(numbers):
                    self._actions[-1]()


_interrupts = PerProcess(_InterruptListener)


@contextmanager
def interruptible(action: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C, and other signals that end the process (``own_process.ENDING``), call ``action`` at once.

    It is called in another thread, while the block runs in the main thread. Python raises the KeyboardInterrupt, or
    SystemExit, itself as soon as the C code returns.

    Args:
        action: a short function that does not raise, such as killing a process.
    """
    if threading.current_thread() is not threading.main_thread() or os.name == "nt":
        yield
        return
    interrupts = _interrupts.get()
    interrupts.arm(action)
    try:
        yield
    finally:
        interrupts.disarm()


class Alarm:
    """One deadline with an action; ``fired`` is true once the action was called."""

    __slots__ = ("_action", "_lock", "fired", "over")

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._lock = threading.Lock()
        self.fired = False
        self.over = False

    def cancel(self) -> None:
        """Disarm: once this has returned, the action is not running and will not run."""
        with self._lock:
            self.over = True

    def fire(self) -> None:
        """Run the action unless it was cancelled."""
        with self._lock:
            if not self.over:
                self.over = True
                self.fired = True
                self._action()


class _Watchdog:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, Alarm]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def arm(self, deadline: float, action: Callable[[], None]) -> Alarm:
        entry = Alarm(action)
        with self._changed:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="rlm-mem-watchdog", daemon=True)
                self._thread.start()
            earlier = not self._due or deadline < self._due[0][0]
            heapq.heappush(self._due, (deadline, next(self._numbers), entry))
            if earlier:
                self._changed.notify()
            elif len(self._due) > 256:
                # Remove the long time-outs of short programs, which would accumulate.
                self._due = [item for item in self._due if not item[2].over]
                heapq.heapify(self._due)
        return entry

    def _watch(self) -> None:
        while True:
            with self._changed:
                while self._due and self._due[0][2].over:
                    heapq.heappop(self._due)
                if not self._due:
                    self._changed.wait()
                    continue
                wait = self._due[0][0] - time.monotonic()
                if wait > 0:
                    self._changed.wait(wait)
                    continue
                entry = heapq.heappop(self._due)[2]
            entry.fire()


_watchdog = PerProcess(_Watchdog)


def alarm(deadline: float, action: Callable[[], None]) -> Alarm:
    """Call ``action`` in the watchdog thread once ``time.monotonic()`` reaches ``deadline``.

    Args:
        deadline: seconds on the monotonic clock.
        action: a short function that does not raise, such as killing a process.
    """
    return _watchdog.get().arm(deadline, action)
