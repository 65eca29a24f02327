"""The guarantees of the sandbox on this machine, tested by running unchecked programs on each engine."""

from __future__ import annotations

import socket
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlm_mem.errors import InvalidConfig, RlmMemError, TimeoutError as TimedOut
from rlm_mem.sandbox import seccomp
from rlm_mem.sandbox.engine import Engine, EngineLimits, Printed
from rlm_mem.sandbox.policy import syntax_tree
from rlm_mem.sandbox.session import open_engine

LOOP_SECONDS = 0.3
_SECRET = "rlm-mem-probe-8c1f"


@dataclass(frozen=True)
class Probe:
    """One attempt to break out: what was tried, whether it was contained (``held``), and the outcome."""

    tried: str
    held: bool
    detail: str


@dataclass(frozen=True)
class Guarantees:
    """The guarantees of one engine on this machine.

    Attributes:
        engine: ``monty`` or ``cpython``.
        available: it can be used; otherwise ``isolation`` has the reason.
        isolation: the means of isolation, in words.
        system_call_filter: the worker runs under seccomp, according to the kernel.
        descriptors, variables: numbers of open files and environment variables of the worker; None: unknown.
        memory_mb: heap of a program, in MB.
        seconds: default time limit of one program.
    """

    engine: str
    available: bool
    isolation: str
    system_call_filter: bool = False
    descriptors: int | None = None
    variables: int | None = None
    memory_mb: int = 0
    seconds: float = 0.0
    probes: list[Probe] = field(default_factory=list)


def probe_engine(name: str, limits: EngineLimits) -> Guarantees:
    """Start the engine and try to break out of it, without checking the programs; takes about a second.

    Args:
        name: ``monty`` or ``cpython``.
    """
    found = Guarantees(name, True, "", memory_mb=limits.memory_mb, seconds=limits.seconds)
    try:
        engine = open_engine(name, limits)
    except InvalidConfig as error:
        return replace(found, available=False, isolation=f"not available: {error}")
    try:
        probes = [_runs(engine)]
        if not probes[0].held:
            return replace(found, available=False, isolation=probes[0].detail, probes=probes)
        filtered, descriptors, variables = _worker_isolation(engine.worker_pid)
        probes += [_file(engine), _network(engine), _memory(engine), _loop(engine), _runs(engine)]
    finally:
        engine.reset()
    return replace(
        found,
        isolation=_isolation_text(name, filtered),
        system_call_filter=filtered,
        descriptors=descriptors,
        variables=variables,
        probes=probes,
    )


def _isolation_text(name: str, filtered: bool) -> str:
    if name == "monty":
        return "an interpreter without files, network or system calls for programs, in a separate process"
    if filtered:
        return "CPython in a separate process, under a system-call filter (seccomp) and resource limits"
    if seccomp.supported():
        return "CPython in a separate process with resource limits"
    return (
        "CPython in a separate process with resource limits and no system-call filter (the weaker isolation)"
    )


def _run(engine: Engine, code: str, seconds: float = 20.0) -> tuple[Any, RlmMemError | None]:
    try:
        value = engine.run(code, syntax_tree(code), {}, _no_call, Printed(1_000), time.monotonic() + seconds)
    except RlmMemError as error:
        return None, error
    return value, None


def _no_call(name: str, _args: tuple[Any, ...], _keywords: dict[str, Any]) -> Any:
    raise AssertionError(f"a probe called {name}")


def _outcome(error: RlmMemError | None) -> str:
    return "it succeeded" if error is None else str(error)[:160]


def _runs(engine: Engine) -> Probe:
    value, error = _run(engine, "6 * 7")
    return Probe("run a program", value == 42, "42" if value == 42 else _outcome(error))


def _file(engine: Engine) -> Probe:
    with tempfile.TemporaryDirectory(prefix="rlm-mem-") as folder:
        secret, mark = Path(folder) / "secret", Path(folder) / "mark"
        secret.write_text(_SECRET)
        outcomes = []
        for opener in ("open", "import io\nio.open"):
            value, error = _run(engine, f"{opener}({str(secret)!r}).read()")
            if value == _SECRET:
                return Probe("read a file", False, "it was read")
            outcomes.append(_outcome(error))
            _run(engine, f"{opener}({str(mark)!r}, 'w').write('x')")
            if mark.exists():
                return Probe("write a file", False, "it was written")
    return Probe("read and write files", True, outcomes[-1])


def _network(engine: Engine) -> Probe:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        place = listener.getsockname()
        _, error = _run(engine, f"import socket\nsocket.create_connection({place!r})")
        try:
            listener.accept()
        except BlockingIOError:
            return Probe("open a connection", error is not None, _outcome(error))
    return Probe("open a connection", False, "the connection was made")


def _memory(engine: Engine) -> Probe:
    _, error = _run(engine, "kept = []\nwhile True:\n    kept.append('a' * 100_000 + str(len(kept)))")
    held = error is not None and not isinstance(error, TimedOut)
    return Probe("take memory without end", held, _outcome(error))


def _loop(engine: Engine) -> Probe:
    began = time.monotonic()
    _, error = _run(engine, "while True:\n    pass", LOOP_SECONDS)
    took = time.monotonic() - began
    return Probe("loop without end", isinstance(error, TimedOut), f"ended after {took:.1f} s")


def _worker_isolation(pid: int | None) -> tuple[bool, int | None, int | None]:
    """Return whether the kernel filters the worker's system calls, and its numbers of open files and variables."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False, None, None
    filtered = any(line.split() == ["Seccomp:", "2"] for line in status.splitlines())
    try:
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        variables = Path(f"/proc/{pid}/environ").read_bytes().count(b"\0")
    except OSError:
        # Only the superuser can read them if the process is not dumpable.
        return filtered, None, None
    return filtered, descriptors, variables
