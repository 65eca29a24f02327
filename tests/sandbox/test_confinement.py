"""The parts that confine: the system-call filter, the worker's flags, the watchdog, the policy's own limits."""

from __future__ import annotations

import gc
import os
import platform
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import errors
from rlm_mem.recall import REPLSession
from rlm_mem.sandbox import seccomp
from rlm_mem.sandbox.engine import alarm
from rlm_mem.sandbox.policy import check_program
from rlm_mem.store.core.chunk_store import ChunkStore

needs_filter = pytest.mark.skipif(
    not seccomp.supported(), reason="the filter is for Linux on x86-64 and 64-bit ARM only"
)


def decide(code: bytes, machine: str, number: int, arguments: tuple[int, ...] = ()) -> int:
    """Run the BPF program over one system call, as the kernel would."""
    audit = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[machine]
    data = struct.pack("=IIQ6Q", number, audit, 0, *(arguments + (0,) * (6 - len(arguments))))
    steps = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    at = accumulator = 0
    while True:
        operation, if_true, if_false, value = steps[at]
        at += 1
        if operation == 0x20:
            accumulator = struct.unpack_from("=I", data, value)[0]
        elif operation == 0x06:
            return int(value)
        else:
            holds = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[operation]
            at += if_true if holds else if_false


ALLOW, EPERM, KILL = 0x7FFF0000, 0x00050001, 0x80000000


@pytest.mark.parametrize(
    ("machine", "calls"),
    [
        ("x86_64", {"read": 0, "write": 1, "open": 2, "openat": 257, "socket": 41, "execve": 59, "mmap": 9}),
        ("aarch64", {"read": 63, "write": 64, "openat": 56, "socket": 198, "execve": 221, "mmap": 222}),
    ],
)
def test_the_filter_decides_as_documented(machine: str, calls: dict[str, int]) -> None:
    """Pipes and memory are allowed, files refused, sockets and new programs deadly: on both machines."""
    code = seccomp.build(machine)
    assert decide(code, machine, calls["read"], (0,)) == ALLOW
    assert decide(code, machine, calls["read"], (3,)) == EPERM
    assert decide(code, machine, calls["write"], (1,)) == ALLOW
    assert decide(code, machine, calls["write"], (2,)) == EPERM
    assert decide(code, machine, calls["openat"]) == EPERM
    assert decide(code, machine, calls["socket"]) == KILL
    assert decide(code, machine, calls["execve"]) == KILL
    anonymous = (0, 4096, 3, 0x22, 0xFFFFFFFF, 0)
    assert decide(code, machine, calls["mmap"], anonymous) == ALLOW
    assert decide(code, machine, calls["mmap"], (0, 4096, 7, 0x22)) == EPERM, "executable memory"
    assert decide(code, machine, calls["mmap"], (0, 4096, 3, 0x02, 4)) == EPERM, "a file"
    assert decide(code, machine, 9_999) == EPERM, "a call of a future kernel"


def test_the_filter_kills_calls_of_another_architecture() -> None:
    code = seccomp.build("x86_64")
    assert decide(code, "aarch64", 0, (0,)) == KILL
    assert decide(code, "x86_64", 0x40000000 | 1, (1,)) == KILL, "the x32 calls"


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(seccomp.Unsupported):
        seccomp.build("m68k")


@needs_filter
def test_the_filter_holds_in_a_process() -> None:
    """Files, sockets and new processes are out of reach once it is installed."""
    script = (
        "import importlib.util, os, socket, sys\n"
        f"spec = importlib.util.spec_from_file_location('seccomp', {str(Path(seccomp.__file__))!r})\n"
        "module = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(module)\nmodule.install()\n"
        "try:\n    os.open('/etc/passwd', os.O_RDONLY)\nexcept PermissionError:\n    os.write(1, b'refused ')\n"
        "try:\n    os.fork()\nexcept PermissionError:\n    os.write(1, b'alone ')\n"
        "if sys.argv[1] == 'socket':\n    socket.socket()\nelse:\n    os.execv('/bin/true', ['true'])\n"
        "os.write(1, b'escaped')\n"
    )
    for way in ("socket", "exec"):
        done = subprocess.run([sys.executable, "-c", script, way], capture_output=True)
        assert done.stdout == b"refused alone "
        assert done.returncode < 0, "killed"


def worker_of(session: REPLSession) -> Any:
    """The process that runs the programs of a session, which no interface shows."""
    return session._engine._handle.process  # type: ignore[attr-defined]


@needs_filter
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_the_worker_runs_confined_with_an_empty_environment(store: ChunkStore) -> None:
    session = REPLSession(store, engine="cpython")
    session.execute("1")
    process = worker_of(session)
    pid = process._popen.pid
    status = Path(f"/proc/{pid}/status").read_text()
    assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status
    if os.geteuid() == 0:
        # Only the super-user may look into a process that is not dumpable.
        assert Path(f"/proc/{pid}/environ").read_bytes() == b""
        assert len(list(Path(f"/proc/{pid}/fd").iterdir())) == 3
    session.close()
    assert process._popen.poll() is not None, "closing ends the worker"


@needs_filter
def test_losing_a_session_ends_its_worker(store: ChunkStore) -> None:
    session = REPLSession(store, engine="cpython")
    session.execute("1")
    process = worker_of(session)
    del session
    gc.collect()
    assert process._popen.poll() is not None


def test_the_watchdog_fires_at_the_deadline_and_not_after_cancelling() -> None:
    fired = threading.Event()
    never: list[int] = []
    late = alarm(time.monotonic() + 30, lambda: never.append(1))
    cancelled = alarm(time.monotonic() + 0.05, lambda: never.append(2))
    cancelled.cancel()
    alarm(time.monotonic() + 0.1, fired.set)
    assert fired.wait(10)
    late.cancel()
    assert never == [] and not late.fired and not cancelled.fired


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_gets_an_error_instead_of_waiting_for_ever(store: ChunkStore) -> None:
    """The pool's threads stay in the parent; the parent's session goes on undisturbed."""
    session = REPLSession(store)
    session.execute("x = 41")
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            session.execute("x + 1")
        except errors.SandboxError as error:
            os.write(writer, str(error.hint).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert "spawn" in pipe.read()
    os.waitpid(pid, 0)
    assert session.execute("x = x + 1\nx") == 42
    session.close()


def test_a_program_that_this_python_cannot_parse_is_refused_with_its_line() -> None:
    """Nothing has checked it, so no engine runs it, even one that knows newer syntax."""
    for code, line in (("x = 1\ny = (", 2), ("1\x00", None), ("(" * 5000, 1), ("\ud800", None)):
        with pytest.raises(errors.ProgramError) as caught:
            check_program(code, importable=frozenset(), reserved=frozenset(), max_chars=10_000)
        assert (caught.value.kind, caught.value.line) == ("SyntaxError", line)


def test_the_first_violation_in_the_program_is_the_one_that_is_named() -> None:
    with pytest.raises(errors.SandboxViolation) as caught:
        check_program(
            "x = 1\nfor i in range(3):\n    open('a')\nimport os",
            importable=frozenset({"re"}),
            reserved=frozenset(),
            max_chars=1_000,
        )
    assert caught.value.line == 3


def test_text_about_python_is_not_mistaken_for_an_attack() -> None:
    """Memories about code quote names with underscores; only format fields and bare names are suspicious."""
    code = "note = 'the class defines __init__ and __class__, see {this} and {that}'\nFINAL(note)"
    assert check_program(code, importable=frozenset(), reserved=frozenset({"FINAL"}), max_chars=1_000)


def test_the_machine_names_are_those_of_the_platform() -> None:
    """A filter that is never chosen protects nobody."""
    if sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64"):
        assert seccomp.supported()
    else:
        assert not seccomp.supported()


@needs_filter
def test_no_worker_compiles_its_own_code(store: ChunkStore) -> None:
    """Python compiles a script at each start, but reads what was compiled of a module."""
    with REPLSession(store, engine="cpython") as session:
        session.execute("1 + 1")
        pid = session._engine.worker_pid  # type: ignore[attr-defined]
        executable, *given = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    ran = subprocess.run(
        [executable, "-v", *given],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        env={},
        timeout=60,
    )
    for name in ("cpython_worker", "wire", "seccomp"):
        assert f"/__pycache__/{name}.cpython-".encode() in ran.stderr.replace(b"\\", b"/")
