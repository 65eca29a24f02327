"""The second engine: full CPython in a confined worker process, for programs that Monty cannot run.

The worker (:mod:`rlm_mem.sandbox.cpython_worker`) has an empty environment, no files, two pipes, resource limits
and, on Linux, a system-call filter. Host and worker exchange framed messages. The host kills the worker on the first
byte that breaks the protocol, at the deadline, or when the driver ends a program.
"""

from __future__ import annotations

import ast
import builtins
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlm_mem import errors
from rlm_mem.children import start_detached, unwatch, watch
from rlm_mem.sandbox import cpython_worker as protocol, seccomp, wire
from rlm_mem.sandbox.engine import (
    Call,
    EngineLimits,
    HostCallFailed,
    Printed,
    alarm,
    program_error,
    timed_out,
)
from rlm_mem.sandbox.hints import hint_for
from rlm_mem.sandbox.idioms import only_reads
from rlm_mem.sandbox.policy import ProgramNames, may_reach_interpreter
from rlm_mem.sandbox.values import TooLarge, Variable, plain

GRACE_SECONDS = 0.3
"""Seconds that the worker's own timer has to stop a program before the worker is killed."""

START_SECONDS = 20.0
MAX_DEFINITIONS = 500
MAX_DEFINITIONS_CHARS = 200_000
_STATE_NOTE = "names it assigned are lost; data, functions and imports of earlier programs are kept"
_OUTPUT_CHARS = 1_000_000
_START = (
    "import gc, sys; gc.disable(); sys.path.append(sys.argv[1]); import cpython_worker; cpython_worker.main()"
)
"""What the worker's interpreter runs. Looking for garbage while modules are loaded took a tenth of the start."""
_KINDS = (protocol.CALL, protocol.DONE, protocol.ERROR, protocol.HELLO)


class _WorkerLost(Exception):
    """The worker ended, or broke the protocol."""


class _Process:
    """One worker process and the host's ends of its pipes."""

    def __init__(self, memory_mb: int, confined: bool) -> None:
        folder = Path(__file__).parent
        self.host_pid = os.getpid()
        self._request = 0
        self._cpu_seconds = 0
        self.killed = False
        self._popen = start_detached(
            [
                *(sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _START),
                *(str(folder), str(memory_mb), str(_OUTPUT_CHARS), "filter" if confined else "plain"),
            ],
            stdout=subprocess.PIPE,
        )
        watch(self._popen.pid)

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._popen.pid

    def kill(self) -> None:
        """End the worker at once; safe from any thread, and more than once."""
        self.killed = True
        self._popen.kill()

    def close(self) -> None:
        """End the worker and free its pipes, unless it belongs to the parent of this forked process."""
        if self.host_pid != os.getpid():
            return
        self._popen.kill()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._popen.wait()
        unwatch(self._popen.pid)

    def allow_cpu(self, seconds: float) -> None:
        """Raise the worker's limit of processor time by this and a margin; the limit ends it if the host is killed."""
        self._cpu_seconds += int(seconds) + 3
        if sys.platform == "linux":
            import resource  # not on every platform

            with suppress(OSError, ValueError):
                resource.prlimit(
                    self._popen.pid, resource.RLIMIT_CPU, (self._cpu_seconds, resource.RLIM_INFINITY)
                )

    def send(self, kind: int, value: Any, *, fresh: bool = False) -> None:
        """Send a frame; ``fresh`` gives it a new request id, which the worker's frames must then have."""
        if fresh:
            self._request += 1
        body = wire.encode(value)
        data = memoryview(wire.frame_header(kind, self._request, len(body)) + body)
        assert self._popen.stdin is not None
        try:
            while data:
                data = data[self._popen.stdin.write(data) or 0 :]
        except (BrokenPipeError, ValueError, OSError) as error:
            raise _WorkerLost("the worker ended") from error

    def receive(self) -> tuple[int, str, int, Any, bytes | None]:
        """Return kind, output, characters printed, value and saved namespace of the next frame.

        Raises:
            _WorkerLost: the worker ended or sent a malformed frame.
        """
        try:
            kind, request, length = wire.parse_header(self._read(wire.HEADER.size))
            if request != self._request or kind not in _KINDS:
                raise wire.Malformed("an unexpected frame")
            parts = wire.decode(self._read(length))
        except wire.Malformed as error:
            raise _WorkerLost(f"the worker sent a malformed frame ({error})") from None
        if not (
            isinstance(parts, list)
            and len(parts) == 4
            and isinstance(parts[0], str)
            and isinstance(parts[1], int)
            and (parts[3] is None or isinstance(parts[3], bytes))
        ):
            raise _WorkerLost("the worker sent a malformed frame")
        return kind, parts[0], parts[1], parts[2], parts[3]

    def has_no_output(self) -> bool:
        """Return whether the pipe has no unread output."""
        assert self._popen.stdout is not None
        try:
            ready = select.poll()
            ready.register(self._popen.stdout, select.POLLIN | select.POLLHUP | select.POLLERR)
            return not ready.poll(0)
        except (ValueError, OSError):
            return False

    def _read(self, count: int) -> bytearray:
        assert self._popen.stdout is not None
        pieces = bytearray()
        while len(pieces) < count:
            try:
                piece = self._popen.stdout.read(min(count - len(pieces), 1 << 20))
            except (ValueError, OSError) as error:
                raise _WorkerLost("the worker ended") from error
            if not piece:
                raise _WorkerLost("the worker ended")
            pieces += piece
        return pieces


class _WorkerHandle:
    """The worker of an engine, in a separate object, so that the finaliser needs no reference to the engine."""

    def __init__(self) -> None:
        self.process: _Process | None = None

    def close(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.close()


class CPythonEngine:
    """`Engine` over a CPython worker; the protocol documents the methods.

    Raises:
        InvalidConfig: this machine has no system-call filter and weaker isolation is not allowed.
    """

    name = "cpython"
    importable = protocol.IMPORTABLE

    def __init__(self, limits: EngineLimits) -> None:
        if not seccomp.supported() and not limits.allow_weaker_isolation:
            raise errors.InvalidConfig(
                "the cpython engine needs Linux on x86-64 or 64-bit ARM: elsewhere there is no system-call filter",
                hint="use engine='monty', or set sandbox.allow_weaker_isolation to run without the filter",
            )
        self._limits = limits
        self._busy = threading.Lock()
        self._raised: errors.ProgramError | None = None
        self._clear_state()
        self._handle = _WorkerHandle()
        self._finalizer = weakref.finalize(self, _WorkerHandle.close, self._handle)

    def _clear_state(self) -> None:
        self._bound: set[str] = set()  # names that programs may have bound
        self._classes_changed = False  # a program assigned to an attribute, possibly of a library class
        self._saved = b""
        self._definitions: dict[str, str] = {}

    def _process(self) -> _Process:
        """Return the worker, started and confined, with the namespace restored."""
        process = self._handle.process
        if process is not None and process.host_pid == os.getpid():
            return process
        if process is not None:
            self._handle = _WorkerHandle()
            self._finalizer = weakref.finalize(self, _WorkerHandle.close, self._handle)
        process = _Process(self._limits.memory_mb, seccomp.supported())
        self._handle.process = process
        alarmed = alarm(time.monotonic() + START_SECONDS, process.kill)
        try:
            kind, _, _, confined, _ = process.receive()
            if self._saved:
                process.send(protocol.RESTORE, [list(self._definitions.values()), self._saved], fresh=True)
                process.receive()
        except _WorkerLost as error:
            self._handle.close()
            raise errors.SandboxCrashed(
                "the cpython sandbox could not be started and confined",
                hint="use engine='monty', or check that the kernel allows seccomp filters",
            ) from error
        finally:
            alarmed.cancel()
        wanted = "seccomp" if seccomp.supported() else "none"
        if kind != protocol.HELLO or confined != wanted:
            self._handle.close()
            raise errors.SandboxCrashed(
                "the cpython sandbox did not confine itself", hint="use engine='monty'"
            )
        return process

    def run(
        self, code: str, tree: ast.Module, names: Collection[str], call: Call, printed: Printed,
        deadline: float,
    ) -> Any:  # fmt: skip
        with self._busy:
            used = ProgramNames(tree)
            restored_builtins = [
                name for name in self._bound & used.functions - used.bound if hasattr(builtins, name)
            ]
            is_read_only = only_reads(tree, names, leaves_state=True)
            process = self._process()
            kept = False
            seconds = max(0.01, deadline - time.monotonic())
            process.allow_cpu(seconds)
            if printed.stopped:
                process.kill()
            alarmed = alarm(deadline + GRACE_SECONDS, process.kill)
            try:
                more = [seconds, restored_builtins, self._classes_changed, not is_read_only]
                process.send(protocol.RUN, [code, list(names), *more], fresh=True)
                value = self._serve(process, names, call, printed, deadline)
                kept = True
                self._keep_definitions(tree, None)
                return value
            except errors.ProgramError as error:
                # After a MemoryError the heap may be full, with no room for the next program.
                kept = error is self._raised and error.kind != "MemoryError"
                if kept:
                    self._keep_definitions(tree, error.line)
                raise
            except wire.Malformed as error:
                raise program_error("ValueError", str(error)) from None
            except _WorkerLost as error:
                if alarmed.fired:
                    raise timed_out(_STATE_NOTE) from None
                raise errors.SandboxCrashed(
                    f"the sandbox worker was terminated while running the program ({error}); {_STATE_NOTE}",
                    hint="it asked for more memory than allowed, or for a forbidden system call",
                ) from None
            finally:
                alarmed.cancel()
                self._bound |= used.bound
                self._classes_changed = self._classes_changed or _changes_attributes(tree)
                # Replace a worker whose program may have changed its code or wrote more than its answer, and one that
                # was killed just after its program had ended.
                if not kept or process.killed or may_reach_interpreter(tree) or not process.has_no_output():
                    self._handle.close()

    def _keep_definitions(self, tree: ast.Module, failed_at: int | None) -> None:
        """Keep the source of imports, functions and classes, so that another worker can define them again."""
        for statement in tree.body:
            if failed_at is not None and statement.lineno >= failed_at:
                break
            if not isinstance(
                statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
            ):
                continue
            name = getattr(statement, "name", None)
            source = ast.unparse(statement)
            self._definitions.pop(name or source, None)
            self._definitions[name or source] = source
        while (
            len(self._definitions) > MAX_DEFINITIONS
            or sum(map(len, self._definitions.values())) > MAX_DEFINITIONS_CHARS
        ):
            self._definitions.pop(next(iter(self._definitions)))

    def _serve(
        self, process: _Process, names: Collection[str], call: Call, printed: Printed, deadline: float
    ) -> Any:
        """Answer the worker's calls until the program is complete."""
        seen = 0
        while True:
            kind, output, total, value, state = process.receive()
            printed.write(output)
            # Output that the worker dropped also counts as printed.
            seen += len(output)
            if total > seen:
                printed.total = max(printed.total, total)
            if time.monotonic() >= deadline:
                # Even if the program completed, since its timer may have interrupted any operation.
                raise timed_out(_STATE_NOTE)
            if kind in (protocol.DONE, protocol.ERROR):
                if state is not None:
                    self._saved = state[: protocol.STATE_BYTES * 2]
                if kind == protocol.DONE:
                    return self._bounded(value)
                raise self._error(value)
            if kind != protocol.CALL:
                raise _WorkerLost("the worker sent a frame out of turn")
            self._answer(process, value, names, call)
            if time.monotonic() >= deadline:
                raise timed_out(_STATE_NOTE)

    def _answer(self, process: _Process, value: Any, names: Collection[str], call: Call) -> None:
        if not (
            isinstance(value, list)
            and len(value) == 3
            and isinstance(value[0], str)
            and isinstance(value[1], list)
            and isinstance(value[2], dict)
            and value[0] in names
        ):
            raise _WorkerLost("the worker sent a malformed call")
        name = value[0]
        try:
            arguments = tuple(plain(item, self._limits.bounds) for item in value[1])
            keywords = {str(key): plain(item, self._limits.bounds) for key, item in value[2].items()}
            process.send(protocol.ANSWER, call(name, arguments, keywords))
        except HostCallFailed as error:
            process.send(protocol.FAILURE, [error.kind, error.message])
        except (TooLarge, wire.Malformed) as error:
            process.send(protocol.FAILURE, ["ValueError", f"{name}: {error}"])

    def _bounded(self, value: Any) -> Any:
        try:
            return plain(value, self._limits.bounds)
        except TooLarge as error:
            text = f"the value of the last expression is too large: {error}"
            raise self._program_error("ValueError", text) from None

    def _error(self, value: Any) -> errors.SandboxError:
        if not (isinstance(value, list) and len(value) == 3 and isinstance(value[0], str)):
            raise _WorkerLost("the worker sent a malformed error")
        kind, message, line = value[0], str(value[1]), value[2] if isinstance(value[2], int) else None
        if kind == "_Expired":
            return timed_out(_STATE_NOTE)
        return self._program_error(kind, message, line=line, hint=hint_for(kind, message))

    def _program_error(self, kind: str, message: str, **more: Any) -> errors.ProgramError:
        """Return an error raised by the program itself, after which the worker can still be used."""
        self._raised = program_error(kind, message, **more)
        return self._raised

    def variables(self, reserved: frozenset[str]) -> dict[str, Any]:
        with self._busy:
            if self._handle.process is None and not self._saved:
                return {}
            process = self._process()
            process.allow_cpu(5.0)
            alarmed = alarm(time.monotonic() + 5.0, process.kill)
            try:
                process.send(protocol.NAMES, None, fresh=True)
                _, _, _, found, _ = process.receive()
                return self._read_names(found, reserved)
            except (_WorkerLost, TooLarge, ValueError, TypeError, AttributeError):
                # A forged reply, or none in time.
                self._handle.close()
                return {}
            finally:
                alarmed.cancel()
                if process.killed:
                    self._handle.close()

    def _read_names(self, found: Any, reserved: frozenset[str]) -> dict[str, Any]:
        variables: dict[str, Any] = {}
        nodes = self._limits.bounds.nodes
        for name, data, kind, text in found:
            if name in reserved:
                continue
            if data:
                # All values together have the same bound as a single one.
                value = wire.decode(data, max_nodes=nodes)
                nodes -= len(data) // 5
                variables[str(name)] = plain(value, self._limits.bounds)
            else:
                variables[str(name)] = Variable(str(kind)[:100], str(text)[:120])
        return variables

    @property
    def worker_pid(self) -> int | None:
        process = self._handle.process
        return None if process is None else process.pid

    def interrupt(self) -> None:
        process = self._handle.process
        if process is not None:
            process.kill()

    def reset(self) -> None:
        with self._busy:
            self._handle.close()
            self._clear_state()


def _changes_attributes(tree: ast.Module) -> bool:
    """Return whether a program assigns to attributes other than those of ``self``."""
    return any(
        (
            isinstance(node, ast.Attribute)
            and not isinstance(node.ctx, ast.Load)
            and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        )
        or (isinstance(node, ast.Name) and node.id in ("setattr", "delattr"))
        for node in ast.walk(tree)
    )
