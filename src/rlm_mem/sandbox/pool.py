"""The process-wide pool of Monty workers: opened on first use, closed at exit, refused in a forked child.

This is the one piece of global state in the package. A worker takes some 9 MB and serves one session at a time;
a session that is idle gives its worker up when another needs one, and restores its namespace later.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import sys
import tempfile
import threading
import weakref
from collections import OrderedDict
from pathlib import Path
from typing import Any, Protocol

from pydantic_monty import Monty, MontyError, MontySession
from pydantic_monty._binary import find_monty_binary

from rlm_mem.errors import SandboxError
from rlm_mem.sandbox.reaper import unwatch, watch

__all__ = ["Holder", "MontyPool", "monty_pool"]


class Holder(Protocol):
    """Somebody who holds a worker and can give it up while idle."""

    def park(self) -> bool:
        """Give the worker up if idle; return whether it was."""
        ...


class MontyPool:
    """Workers of this process.

    Args:
        max_processes: most workers alive at once. Nested questions hold one per level, so this is more than
            the processor count.
        checkout_seconds: how long a session waits when all workers are busy.
    """

    def __init__(self, max_processes: int, checkout_seconds: float) -> None:
        self.pid = os.getpid()
        self.max_processes = max_processes
        self._folder, launcher = _launcher()
        self.launched = launcher is not None
        """Workers begin with no descriptors and no environment of this process."""

        def opened(command: Path | None) -> Monty:
            pool = Monty(
                binary_path=command,
                min_processes=1,
                max_processes=max_processes,
                checkout_timeout=checkout_seconds,
            )
            pool.__enter__()
            return pool

        try:
            self._pool = opened(launcher)
        except Exception:
            if launcher is None:
                raise
            self.launched = False
            self._pool = opened(None)
        self._lock = threading.Lock()
        self._held = 0
        self._pids: dict[int, int | None] = {}
        self._idle: OrderedDict[int, weakref.ref[Holder]] = OrderedDict()

    def checkout(self, limits: dict[str, Any]) -> MontySession:
        """Return a session with a worker of its own.

        Raises:
            SandboxError: every worker stayed busy for the time allowed.
        """
        self._make_room()
        # "zero": a program that sleeps gains nothing by holding a worker.
        session = self._pool.checkout(
            limits=limits,  # type: ignore[arg-type]  # a TypedDict whose keys are given by name
            os_policy={"sleep": "zero"},
            assert_message_annotations=False,
        )
        try:
            session.__enter__()
        except TimeoutError:
            raise SandboxError(
                f"All {self.max_processes} sandbox workers stayed busy.",
                hint="Close sessions that are no longer used, or run fewer at once.",
            ) from None
        with self._lock:
            self._held += 1
            self._pids[id(session)] = session.worker_pid
        watch(session.worker_pid)
        return session

    def give_back(self, session: MontySession) -> None:
        """End a checkout; a worker that died or is in the middle of a program is replaced."""
        with self._lock:
            self._held -= 1
            pid = self._pids.pop(id(session), None)
        unwatch(pid)
        try:
            session.__exit__(None, None, None)
        except (MontyError, RuntimeError):
            # Already finished: the worker crashed and the pool has replaced it.
            return

    def idle(self, holder: Holder) -> None:
        """Note that ``holder`` keeps a worker without using it."""
        with self._lock:
            self._idle[id(holder)] = weakref.ref(holder)
            self._idle.move_to_end(id(holder))

    def busy(self, holder: Holder) -> None:
        """Note that ``holder`` uses its worker, or has none."""
        with self._lock:
            self._idle.pop(id(holder), None)

    def _make_room(self) -> None:
        with self._lock:
            if self._held < self.max_processes:
                return
            candidates = list(self._idle.values())
        for reference in candidates:
            holder = reference()
            if holder is not None and holder.park():
                return

    def close(self) -> None:
        """Stop the workers, unless this is a forked child whose parent owns them."""
        if self.pid == os.getpid():
            self._pool.__exit__(None, None, None)
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)


def _launcher() -> tuple[Path | None, Path | None]:
    """A folder with a command that starts a worker through ``monty_launcher``; None where there can be none."""
    if os.name != "posix" or os.environ.get("MONTY_BIN"):
        return None, None
    folder = Path(tempfile.mkdtemp(prefix="rlm-mem-"))
    command = folder / "monty"
    words = (
        sys.executable,
        "-I",
        "-S",
        "-B",
        Path(__file__).with_name("monty_launcher.py"),
        find_monty_binary(),
    )
    command.write_text(f'#!/bin/sh\nexec {" ".join(shlex.quote(str(word)) for word in words)} "$@"\n')
    command.chmod(0o700)
    return folder, command


_lock = threading.Lock()
_pool: MontyPool | None = None


def monty_pool(checkout_seconds: float = 10.0) -> MontyPool:
    """Return the pool of this process, opening it on first use.

    Raises:
        SandboxError: the pool was opened before this process was forked: its threads stayed in the parent,
            and a second pool would wait for them for ever.
    """
    global _pool
    with _lock:
        if _pool is not None and _pool.pid != os.getpid():
            raise SandboxError(
                "The sandbox was used before this process was forked, so it cannot be used here.",
                hint="Start processes with the 'spawn' method, fork before the first session, or use "
                "engine='cpython'.",
            )
        if _pool is None:
            _pool = MontyPool(max(16, 2 * (os.cpu_count() or 1)), checkout_seconds)
            atexit.register(_pool.close)
        return _pool
