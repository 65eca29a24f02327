"""Runs work in a forked process and kills it when it is about to make its n-th system call (Linux, by ptrace)."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

TRACE_ME, CONTINUE, SYSCALL, SET_OPTIONS = 0, 7, 24, 0x4200
TELL_SYSCALLS = 1  # a stop at a system call is told from one for a signal by bit 7 of its number


def available() -> str | None:
    """Why processes cannot be traced here; None where they can."""
    if not sys.platform.startswith("linux"):
        return "stops at system calls through ptrace, which is Linux's"
    try:
        calls = dies_at_call(lambda arm: (arm(), os.getppid()), 10_000)
    except OSError as error:
        return f"processes may not be traced here: {error}"
    return None if calls[0] else "tracing shows no system calls here"


def dies_at_call(work: Callable[[Callable[[], None]], object], number: int) -> tuple[int, bool]:
    """Fork; ``work`` gets a function to call when the counting is to begin.

    Returns:
        How many system calls were begun, and whether the process ran to its end (the number was never reached).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long

    def ptrace(request: int, pid: int, data: int = 0) -> None:
        if libc.ptrace(request, pid, None, data) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            ptrace(TRACE_ME, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            work(lambda: os.kill(os.getpid(), signal.SIGSTOP))
            status = 0
        finally:
            os._exit(status)
    try:
        return _follow(pid, ptrace, number)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        raise


def _follow(pid: int, ptrace: Callable[..., None], number: int) -> tuple[int, bool]:
    _wait(pid)
    ptrace(SET_OPTIONS, pid, TELL_SYSCALLS)
    ptrace(CONTINUE, pid)
    while (stop := _wait(pid)) != signal.SIGSTOP:  # until the work is armed
        if stop is None:
            return 0, True
        ptrace(CONTINUE, pid, stop)
    calls, entering, passed_on = 0, True, 0
    while True:
        ptrace(SYSCALL, pid, passed_on)
        stop = _wait(pid)
        if stop is None:
            return calls, True
        passed_on = 0
        if stop != signal.SIGTRAP | 0x80:
            passed_on = stop
            continue
        # A call stops twice, before it is made and after it. Killed in the first, it is never made. The first stop
        # after arming is the end of the call that armed.
        entering = not entering
        if entering:
            calls += 1
            if calls == number:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return calls, False


def _wait(pid: int) -> int | None:
    """The signal with which a process stopped; None when it has ended well."""
    status = os.waitpid(pid, 0)[1]
    if os.WIFSTOPPED(status):
        return os.WSTOPSIG(status)
    if os.WIFSIGNALED(status) or os.WEXITSTATUS(status):
        raise AssertionError(f"the traced work failed: {status}")
    return None
