"""Workers that die with their host, even when it is killed with SIGKILL: a small shell holds a pipe from the host.

A worker that waits for its host notices the end of its own pipe; one that runs a program does not. When the host is
gone, however it went, the shell reads the end of its pipe and kills the workers it was told of. (``PR_SET_PDEATHSIG``
would not do: it follows the thread that started the worker, not the process.)
"""

from __future__ import annotations

import atexit
import os
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

__all__ = ["unwatch", "watch"]

_SHELL = "/bin/sh"
_SCRIPT = 'trap "" INT TERM HUP; while read -r pids; do last=$pids; done; [ -z "$last" ] || kill -9 $last'


class _Reaper:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self._pids: set[int] = set()
        self._guard = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None

    def change(self, pid: int, *, add: bool) -> None:
        with self._guard:
            (self._pids.add if add else self._pids.discard)(pid)
            self._write_pids()

    def _write_pids(self) -> None:
        line = " ".join(map(str, sorted(self._pids))).encode() + b"\n"
        for _ in range(2):
            if self._shell is None:
                self._start()
            if self._shell is None or self._shell.stdin is None or self._shell.stdin.closed:
                return  # no shell here, or the process is ending and has told it so
            try:
                self._shell.stdin.write(line)
                return
            except OSError:
                # Somebody ended it: another one takes over.
                self._shell = None

    def _start(self) -> None:
        if not Path(_SHELL).exists():
            # Windows: the time limits of the workers have to do.
            return
        with suppress(OSError):
            self._shell = subprocess.Popen(
                [_SHELL, "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                close_fds=True,
                start_new_session=True,
                bufsize=0,
            )
            atexit.register(_end, self._shell)


def _end(shell: subprocess.Popen[bytes]) -> None:
    if shell.stdin is not None:
        with suppress(OSError):
            shell.stdin.close()
    with suppress(subprocess.TimeoutExpired, OSError):
        shell.wait(timeout=2)


_lock = threading.Lock()
_reaper: _Reaper | None = None


def _of_this_process() -> _Reaper:
    global _reaper
    with _lock:
        if _reaper is None or _reaper.pid != os.getpid():
            _reaper = _Reaper()
        return _reaper


def watch(pid: int | None) -> None:
    """Kill this worker when the process ends without having done so itself."""
    if pid is not None:
        _of_this_process().change(pid, add=True)


def unwatch(pid: int | None) -> None:
    """Forget a worker that has ended, or that is idle and will notice by itself."""
    if pid is not None:
        _of_this_process().change(pid, add=False)
