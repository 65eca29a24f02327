"""An event loop in a thread of its own, so that asynchronous clients serve synchronous callers.

The usual way, running a loop in the calling thread, fails where a loop is already running (a server, a
notebook) and where several threads share one client, whose connections belong to the loop that opened them.
One loop per client avoids both problems.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for any number of threads; starts with the first one, ends with ``close()``.

    A thread that is interrupted while it waits (Ctrl-C) cancels its own coroutine and no other.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """Run ``coroutine`` to its end and return its result.

        Raises:
            TimeoutError: not done within ``seconds``; the coroutine is cancelled. Only for a loop that
                hangs: a coroutine checks its own deadline.
        """
        return self._wait(self._submit(coroutine), seconds)

    def run_streaming(
        self,
        start: Callable[[Callable[[str], None]], Coroutine[Any, Any, T]],
        on_text: Callable[[str], None],
        seconds: float | None = None,
    ) -> T:
        """Run ``start(emit)`` and call ``on_text`` with what it emits, here in the calling thread.

        An exception of ``on_text`` cancels the coroutine and is raised.

        Raises:
            TimeoutError: as in :meth:`run`.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        pieces: SimpleQueue[str | None] = SimpleQueue()
        future = self._submit(start(pieces.put))
        future.add_done_callback(lambda _: pieces.put(None))
        try:
            while (piece := pieces.get(timeout=_left(deadline))) is not None:
                on_text(piece)
        except Empty:
            future.cancel()
            raise TimeoutError from None
        except BaseException:  # KeyboardInterrupt too: no caller waits for this coroutine any more
            future.cancel()
            raise
        return self._wait(future, _left(deadline))

    def close(self) -> None:
        """Stop the loop; coroutines still running on it are cancelled. May be called twice."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            _stop(loop)
            thread.join(timeout=5)

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        with self._lock:
            if self._loop is None:
                runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
                self._loop = runner.get_loop()
                # A daemon: a forgotten client must not keep the process alive.
                self._thread = threading.Thread(target=_serve, args=(runner,), name=self._name, daemon=True)
                self._thread.start()
                weakref.finalize(self, _stop, self._loop)
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    @staticmethod
    def _wait(future: Future[T], seconds: float | None) -> T:
        try:
            return future.result(seconds)
        except BaseException:
            future.cancel()  # no effect on a coroutine that has ended by itself
            raise


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _serve(runner: asyncio.Runner) -> None:
    with runner:  # its end cancels what still runs
        runner.get_loop().run_forever()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(RuntimeError):  # closed already
        loop.call_soon_threadsafe(loop.stop)
