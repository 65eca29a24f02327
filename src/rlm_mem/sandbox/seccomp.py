"""The system-call filter of the CPython worker: an allow-list as a BPF program, installed with prctl.

The worker loads this module by path before its lock-down, so it imports nothing of the package. Under the filter the
process can compute, allocate memory and use its two pipes. A call that could start a process, open a socket or trace
another process kills it; any other call fails with EPERM.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys


class Unsupported(OSError):
    """This module has no filter for this machine."""


_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_PR_SET_DUMPABLE = 4
_SECCOMP_MODE_FILTER = 2

_ALLOW = 0x7FFF0000
_ERRNO_EPERM = 0x00050000 | 1
_KILL_PROCESS = 0x80000000

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_HAS_BITS = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

_NUMBER, _ARCHITECTURE = 0, 4
_PROT_EXEC, _MAP_ANONYMOUS = 4, 0x20

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_CALLS: dict[str, dict[str, int]] = {
    "x86_64": {
        "read": 0,
        "write": 1,
        "mmap": 9,
        "mprotect": 10,
        "munmap": 11,
        "brk": 12,
        "rt_sigaction": 13,
        "rt_sigprocmask": 14,
        "rt_sigreturn": 15,
        "sched_yield": 24,
        "mremap": 25,
        "madvise": 28,
        "setitimer": 38,
        "getpid": 39,
        "getppid": 110,
        "socket": 41,
        "connect": 42,
        "clone": 56,
        "fork": 57,
        "vfork": 58,
        "execve": 59,
        "exit": 60,
        "kill": 62,
        "ptrace": 101,
        "sigaltstack": 131,
        "gettid": 186,
        "futex": 202,
        "restart_syscall": 219,
        "clock_gettime": 228,
        "clock_nanosleep": 230,
        "exit_group": 231,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "bpf": 321,
        "execveat": 322,
        "getrandom": 318,
        "rseq": 334,
        "io_uring_setup": 425,
        "clone3": 435,
    },
    "aarch64": {
        "io_uring_setup": 425,
        "read": 63,
        "write": 64,
        "exit": 93,
        "exit_group": 94,
        "futex": 98,
        "setitimer": 103,
        "clock_gettime": 113,
        "clock_nanosleep": 115,
        "ptrace": 117,
        "sched_yield": 124,
        "restart_syscall": 128,
        "kill": 129,
        "sigaltstack": 132,
        "rt_sigaction": 134,
        "rt_sigprocmask": 135,
        "rt_sigreturn": 139,
        "getpid": 172,
        "getppid": 173,
        "gettid": 178,
        "socket": 198,
        "connect": 203,
        "brk": 214,
        "munmap": 215,
        "mremap": 216,
        "clone": 220,
        "execve": 221,
        "mmap": 222,
        "mprotect": 226,
        "madvise": 233,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "getrandom": 278,
        "bpf": 280,
        "execveat": 281,
        "rseq": 293,
        "clone3": 435,
    },
}

_ALLOWED = (
    *("munmap", "brk", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sched_yield", "mremap", "madvise"),
    *("setitimer", "getpid", "getppid", "exit", "sigaltstack", "gettid", "futex", "restart_syscall"),
    *("clock_gettime", "clock_nanosleep", "exit_group", "getrandom", "rseq"),
)
_KILLED = (
    *("socket", "connect", "execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev"),
    *("bpf", "io_uring_setup", "kill", "fork", "vfork"),
)
"""Starting a thread (clone, clone3) fails with EPERM instead, since library code may try it and handle the error."""


class _Program(ctypes.Structure):
    """A BPF program for prctl; defined at import, since Python 3.14 imports a module to define such a class."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def supported() -> bool:
    """Return whether :func:`install` is supported here: on Linux with x86-64 or 64-bit ARM."""
    return sys.platform == "linux" and platform.machine() in _AUDIT and struct.calcsize("P") == 8


def _argument(number: int) -> int:
    """Return the offset of the low half of a system call's argument (both machines are little-endian)."""
    return 16 + 8 * number


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _block(number: int, body: list[bytes]) -> list[bytes]:
    """Return ``body``, which must end in a return, for the call with this number only."""
    return [_instruction(_EQUAL, number, 0, len(body)), *body]


def build(machine: str) -> bytes:
    """Return the filter for ``machine`` as BPF instructions.

    Raises:
        Unsupported: there is no table for it.
    """
    if machine not in _AUDIT:
        raise Unsupported(f"no system-call table for {machine}")
    calls = _CALLS[machine]
    allow, refuse, kill = (
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _ERRNO_EPERM),
        _instruction(_RETURN, _KILL_PROCESS),
    )
    code = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, _AUDIT[machine], 1, 0),
        kill,
        _instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        # Numbers with this bit set are x32 calls, which a table of x86-64 numbers would miss.
        code += [_instruction(_AT_LEAST, 0x40000000, 0, 1), kill]
    for name in _ALLOWED:
        code += _block(calls[name], [allow])
    for name in _KILLED:
        if name in calls:
            code += _block(calls[name], [kill])
    for name, descriptor in (("read", 0), ("write", 1)):
        body = [_instruction(_LOAD, _argument(0)), _instruction(_EQUAL, descriptor, 0, 1), allow, refuse]
        code += _block(calls[name], body)
    code += _block(
        calls["mmap"],
        [
            _instruction(_LOAD, _argument(2)),
            _instruction(_HAS_BITS, _PROT_EXEC, 3, 0),
            _instruction(_LOAD, _argument(3)),
            _instruction(_HAS_BITS, _MAP_ANONYMOUS, 0, 1),
            allow,
            refuse,
        ],
    )
    code += _block(
        calls["mprotect"],
        [_instruction(_LOAD, _argument(2)), _instruction(_HAS_BITS, _PROT_EXEC, 1, 0), allow, refuse],
    )
    return b"".join([*code, refuse])


def install() -> None:
    """Confine the calling process permanently.

    Raises:
        Unsupported: not Linux, an unknown machine, or a kernel that refuses the filter.
    """
    if not supported():
        raise Unsupported(f"no system-call filter for {sys.platform} on {platform.machine()}")
    code = build(platform.machine())
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    zero = ctypes.c_ulong(0)
    prctl(_PR_SET_DUMPABLE, zero, zero, zero, zero)
    if prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) != 0:
        raise Unsupported(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(program), zero, zero) != 0:
        raise Unsupported(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
