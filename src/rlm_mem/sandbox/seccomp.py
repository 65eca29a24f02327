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

# System calls with their numbers on each machine, in the order of _AUDIT; None: it has no such call.
_ALLOWED = {
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "setitimer": (38, 103),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "exit": (60, 93),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "futex": (202, 98),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "getrandom": (318, 278),
    "rseq": (334, 293),
}
_BY_ARGUMENTS = {"read": (0, 63), "write": (1, 64), "mmap": (9, 222), "mprotect": (10, 226)}
_KILLED: dict[str, tuple[int, int | None]] = {
    "socket": (41, 198),
    "connect": (42, 203),
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "kill": (62, 129),
    "fork": (57, None),
    "vfork": (58, None),
}
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
    place = list(_AUDIT).index(machine)
    numbers = {name: of[place] for name, of in _BY_ARGUMENTS.items()}
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
    for of in _ALLOWED.values():
        code += _block(of[place], [allow])
    for of_killed in _KILLED.values():
        if (number := of_killed[place]) is not None:
            code += _block(number, [kill])
    for name, descriptor in (("read", 0), ("write", 1)):
        body = [_instruction(_LOAD, _argument(0)), _instruction(_EQUAL, descriptor, 0, 1), allow, refuse]
        code += _block(numbers[name], body)
    code += _block(
        numbers["mmap"],
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
        numbers["mprotect"],
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
