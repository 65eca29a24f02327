"""Processes that this process starts, which end with it, even if it is killed with SIGKILL.

A small shell reads their ids from a pipe, and kills them when the pipe closes. (``PR_SET_PDEATHSIG`` does not work
here: it depends on the thread that started a process, not on the process.)
"""

from __future__ import annotations

import atexit
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

_T = TypeVar("_T")


class PerProcess(Generic[_T]):
    """An object that is made on first use, and again in a forked child, which inherits objects but not threads."""

    def __init__(self, make: Callable[[], _T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._pid = 0
        self._made: _T | None = None

    def get(self) -> _T:
        """Return the object of this process."""
        with self._lock:
            if self._made is None or self._pid != os.getpid():
                self._pid, self._made = os.getpid(), self._make()
            return self._made


_SHELL = "/bin/sh"
_SCRIPT = 'trap "" INT TERM HUP; while read -r pids; do last=$pids; done; [ -z "$last" ] || kill -9 $last'


def start_detached(command: Sequence[str], *, stdout: int) -> subprocess.Popen[bytes]:
    """Start a process in a new session, with an empty environment and no open file but its pipes.

    ``stdin`` is a pipe; ``stdout`` is ``subprocess.PIPE`` or ``subprocess.DEVNULL``. Raises OSError.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        close_fds=True,
        start_new_session=True,
        bufsize=0,
    )


class _Reaper:
    def __init__(self) -> None:
        self._pids: set[int] = set()
        self._guard = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None

    def change(self, pid: int, *, add: bool) -> None:
        with self._guard:
            (self._pids.add if add else self._pids.discard)(pid)
            line = " ".join(map(str, sorted(self._pids))).encode() + b"\n"
            for _ in range(2):
                if self._shell is None:
                    self._start()
                if self._shell is None or self._shell.stdin is None or self._shell.stdin.closed:
                    return  # no shell on this system, or the process is ending and has closed its pipe
                try:
                    self._shell.stdin.write(line)
                    return
                except OSError:
                    # The shell was ended from outside: start a new one.
                    self._shell = None

    def _start(self) -> None:
        if not Path(_SHELL).exists():
            # Windows: only the time limits of the processes apply.
            return
        with suppress(OSError):
            self._shell = start_detached([_SHELL, "-c", _SCRIPT], stdout=subprocess.DEVNULL)
            atexit.register(_end, self._shell)


def _end(shell: subprocess.Popen[bytes]) -> None:
    if shell.stdin is not None:
        with suppress(OSError):
            shell.stdin.close()
    with suppress(subprocess.TimeoutExpired, OSError):
        shell.wait(timeout=2)


_reaper = PerProcess(_Reaper)


def watch(pid: int | None) -> None:
    """Have this process killed if the present one ends without ending it; a negative id is a process group."""
    if pid is not None:
        _reaper.get().change(pid, add=True)


def unwatch(pid: int | None) -> None:
    """Stop watching a process that has ended, or that is idle and detects the end of its host itself."""
    if pid is not None:
        _reaper.get().change(pid, add=False)
