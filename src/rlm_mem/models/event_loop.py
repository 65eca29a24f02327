"""An event loop in a thread, so that asynchronous clients can serve synchronous callers.

Running a loop in the calling thread fails if one is already running there (a server, a notebook) or if several threads
share a client, whose connections are bound to the loop that opened them. One loop per client avoids both problems.
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
    """Runs coroutines for any number of threads; starts with the first call, ends with ``close()``.

    A waiting thread that is interrupted (Ctrl-C) cancels only its own coroutine.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """Run ``coroutine`` to completion and return its result.

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
        """Run ``start(emit)`` and call ``on_text`` in the calling thread with each emitted text.

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
        except BaseException:  # including KeyboardInterrupt: nobody waits for this coroutine any more
            future.cancel()
            raise
        return self._wait(future, _left(deadline))

    def close(self) -> None:
        """Stop the loop and cancel its running coroutines; may be called twice."""
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
                # A daemon thread, so that a client that was never closed does not keep the process alive.
                self._thread = threading.Thread(target=_serve, args=(runner,), name=self._name, daemon=True)
                self._thread.start()
                weakref.finalize(self, _stop, self._loop)
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    @staticmethod
    def _wait(future: Future[T], seconds: float | None) -> T:
        try:
            return future.result(seconds)
        except BaseException:
            future.cancel()  # no effect if the coroutine has ended
            raise


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _serve(runner: asyncio.Runner) -> None:
    with runner:  # closing it cancels running coroutines
        runner.get_loop().run_forever()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(RuntimeError):  # already closed
        loop.call_soon_threadsafe(loop.stop)
