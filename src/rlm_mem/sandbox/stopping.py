"""Ending what runs, from any thread: calls that can be left behind, and Ctrl-C while the main thread is in C code."""

from __future__ import annotations

import contextvars
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rlm_mem.errors import SessionCancelled, TimeoutError

__all__ = ["Calls", "Stop", "interruptible", "stop_of_context", "stopped_by"]


class Stop(threading.Event):
    """Ends everything that runs for one caller: setting it calls what was registered, at once, in the same thread."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.Lock()
        self._actions: list[Callable[[], None]] = []

    def set(self) -> None:
        """End what runs; what begins later is refused."""
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
        """While the block runs, ``set`` calls ``action``.

        Raises:
            SessionCancelled: it is set already.
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
    """What ends the work of this thread or task, if somebody can."""
    return _stop.get()


@contextmanager
def stopped_by(stop: Stop) -> Iterator[None]:
    """Let ``stop`` end the sessions and calls of models that the block begins."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


class _Job:
    """One call on its way; ``done`` is released when it has ended, or when nobody waits for it any longer."""

    __slots__ = ("args", "context", "done", "error", "function", "keywords", "left", "value")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.function = function
        self.args = args
        self.keywords = keywords
        self.context = contextvars.copy_context()
        self.value: Any = None
        self.error: BaseException | None = None
        self.left = False
        self.done = threading.Lock()
        self.done.acquire()

    def carry_out(self) -> None:
        try:
            self.value = self.context.run(self.function, *self.args, **self.keywords)
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            self.error = error
        finally:
            # Whoever left may have released it at the same moment.
            with suppress(RuntimeError):
                self.done.release()


class Calls:
    """Carries calls out in a thread of their own, so that whoever waits can stop waiting.

    A function that sleeps or waits for a network cannot be stopped; it is left behind, and what it gives is dropped.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job | None] | None = None
        self._current: _Job | None = None
        self._pid = os.getpid()
        self._ident: int | None = None

    @property
    def inside(self) -> bool:
        """Whether the calling thread is the one that carries the calls out."""
        return self._ident == threading.get_ident()

    def call(self, function: Callable[..., Any], seconds: float, *args: Any, **keywords: Any) -> Any:
        """Return what the function gives.

        Args:
            function: what to call.
            seconds: how long to wait at most; infinity waits for good.

        Raises:
            SessionCancelled: ``leave`` was called meanwhile.
            TimeoutError: it took too long.
            Exception: what the function raised.
        """
        job = _Job(function, args, keywords)
        with self._guard:
            if self._jobs is None or self._pid != os.getpid():
                self._start()
            self._current = job
            assert self._jobs is not None
            self._jobs.put(job)
        try:
            ended = job.done.acquire(timeout=min(max(0.0, seconds), threading.TIMEOUT_MAX))
        except BaseException:
            # Ctrl-C while waiting.
            self.leave()
            raise
        if not ended:
            self.leave()
            raise TimeoutError(
                "a function of the host took longer than the program's time and was left behind"
            )
        with self._guard:
            self._current = None
        if job.left:
            raise SessionCancelled("the program was ended while it waited for a function of the host")
        if job.error is not None:
            raise job.error
        return job.value

    def leave(self) -> None:
        """Stop waiting for the call under way, if there is one; the next one gets another thread."""
        with self._guard:
            job, self._current = self._current, None
            if job is None or not job.done.locked():
                return
            job.left = True
            self._end()
            with suppress(RuntimeError):
                job.done.release()

    def close(self) -> None:
        """Let the thread end."""
        with self._guard:
            if self._current is None:
                self._end()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._jobs = queue.SimpleQueue()
        thread = threading.Thread(target=_carry_out, args=(self._jobs,), name="rlm-mem-call", daemon=True)
        thread.start()
        self._ident = thread.ident

    def _end(self) -> None:
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = None
            self._ident = None


def _carry_out(jobs: queue.SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        job.carry_out()


class _Interrupts:
    """Tells of Ctrl-C while the main thread is inside C code that does not look for it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._guard = threading.Lock()
        self._action: Callable[[], None] | None = None
        self._former = -1
        threading.Thread(target=self._listen, name="rlm-mem-interrupts", daemon=True).start()

    def arm(self, action: Callable[[], None]) -> None:
        with self._guard:
            self._action = action
            self._former = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)

    def disarm(self) -> None:
        with self._guard:
            signal.set_wakeup_fd(self._former, warn_on_full_buffer=False)
            self._action, self._former = None, -1

    def _listen(self) -> None:
        while numbers := os.read(self._reader, 64):
            with self._guard:
                if self._former >= 0:
                    # Somebody else (an event loop) listens as well.
                    try:
                        os.write(self._former, numbers)
                    except OSError:
                        self._former = -1
                if self._action is not None and signal.SIGINT in numbers:
                    self._action()


_interrupts: _Interrupts | None = None


@contextmanager
def interruptible(action: Callable[[], None]) -> Iterator[None]:
    """While the block runs in the main thread, Ctrl-C calls ``action`` at once, from another thread.

    The KeyboardInterrupt itself is raised by Python, as soon as the C code returns.

    Args:
        action: short, and must not raise (killing a process).
    """
    global _interrupts
    if threading.current_thread() is not threading.main_thread() or os.name == "nt":
        yield
        return
    if _interrupts is None or _interrupts.pid != os.getpid():
        _interrupts = _Interrupts()
    interrupts = _interrupts
    interrupts.arm(action)
    try:
        yield
    finally:
        interrupts.disarm()
