"""Wall-clock deadlines for running programs: one thread that calls back when time is up.

A program that loops without calling the host never comes back to the thread that drives it, so somebody else
has to watch the clock. One sleeping thread serves every session of the process; arming it costs microseconds.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable

__all__ = ["Alarm", "alarm"]


class Alarm:
    """One armed deadline; ``fired`` tells whether it went off."""

    __slots__ = ("_action", "_lock", "fired", "over")

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._lock = threading.Lock()
        self.fired = False
        self.over = False

    def cancel(self) -> None:
        """Disarm; after this returns the action neither runs nor will run."""
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
        self.pid = os.getpid()
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
                # Long time-outs of short programs would pile up otherwise.
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


_lock = threading.Lock()
_watchdog: _Watchdog | None = None


def alarm(deadline: float, action: Callable[[], None]) -> Alarm:
    """Call ``action`` in the watching thread once ``time.monotonic()`` reaches ``deadline``.

    Args:
        deadline: seconds on the monotonic clock.
        action: short, and must not raise (killing a process).
    """
    global _watchdog
    with _lock:
        if _watchdog is None or _watchdog.pid != os.getpid():
            # A forked child inherits the object but not the thread.
            _watchdog = _Watchdog()
        watchdog = _watchdog
    return watchdog.arm(deadline, action)
