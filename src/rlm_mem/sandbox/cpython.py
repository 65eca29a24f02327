"""The second engine: full CPython in a confined worker process, for programs that Monty cannot run.

The worker (:mod:`rlm_mem.sandbox.cpython_worker`) has an empty environment, no files, two pipes, resource limits
and, on Linux, a system-call filter. The host speaks framed messages with it and kills it on the first byte
that no honest worker would send, at the deadline, or when the driver ends a program.
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
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlm_mem import errors
from rlm_mem.sandbox import cpython_worker as protocol
from rlm_mem.sandbox import seccomp, wire
from rlm_mem.sandbox.engine import (
    Call,
    EngineLimits,
    HostCallFailed,
    Printed,
    alarm,
    program_error,
    unwatch,
    watch,
)
from rlm_mem.sandbox.hints import hint_for
from rlm_mem.sandbox.idioms import leaves_no_trace
from rlm_mem.sandbox.policy import names_of, program_tree, reaches_inside
from rlm_mem.sandbox.values import TooLarge, Variable, plain

__all__ = ["CPythonEngine"]

GRACE_SECONDS = 0.3
"""How long the worker's own timer may take to stop a program before the worker is killed."""

START_SECONDS = 20.0
MAX_DEFINITIONS = 500
MAX_DEFINITIONS_CHARS = 200_000
_AS_BEFORE = "names it assigned are lost; data, functions and imports of earlier programs are kept"
_OUTPUT_CHARS = 1_000_000
_KINDS = (protocol.CALL, protocol.DONE, protocol.ERROR, protocol.HELLO)


class _Gone(Exception):
    """The worker ended, or sent something that it should not have."""


class _Process:
    """One worker and the host's end of its pipes."""

    def __init__(self, memory_mb: int, confined: bool) -> None:
        folder = Path(__file__).parent
        self.pid_of_host = os.getpid()
        self._request = 0
        self._cpu_seconds = 0
        self._popen = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", "-B", "-X", "utf8", str(folder / "cpython_worker.py")),
                *(str(folder), str(memory_mb), str(_OUTPUT_CHARS), "filter" if confined else "plain"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            close_fds=True,
            start_new_session=True,
            bufsize=0,
        )
        watch(self._popen.pid)

    @property
    def pid(self) -> int:
        """Of the worker."""
        return self._popen.pid

    def kill(self) -> None:
        """End the worker at once; safe from any thread, and more than once."""
        self._popen.kill()

    def close(self) -> None:
        """End the worker and free its pipes, unless it belongs to the parent of this forked process."""
        if self.pid_of_host != os.getpid():
            return
        self._popen.kill()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._popen.wait()
        unwatch(self._popen.pid)

    def allow_cpu(self, seconds: float) -> None:
        """Let the worker use this much more processor time: what ends it should the host be killed."""
        self._cpu_seconds += int(seconds) + 3
        if sys.platform == "linux":
            import resource  # not on every platform

            with suppress(OSError, ValueError):
                resource.prlimit(
                    self._popen.pid, resource.RLIMIT_CPU, (self._cpu_seconds, resource.RLIM_INFINITY)
                )

    def send(self, kind: int, value: Any, *, fresh: bool = False) -> None:
        """Send a frame; ``fresh`` gives it a new request id, which the worker's frames must then carry."""
        if fresh:
            self._request += 1
        body = wire.encode(value)
        data = memoryview(wire.frame_header(kind, self._request, len(body)) + body)
        assert self._popen.stdin is not None
        try:
            while data:
                data = data[self._popen.stdin.write(data) or 0 :]
        except (BrokenPipeError, ValueError, OSError) as error:
            raise _Gone("the worker ended") from error

    def receive(self) -> tuple[int, str, int, Any, bytes | None]:
        """Return kind, output, characters printed, value and saved namespace of the next frame.

        Raises:
            _Gone: the worker ended or sent a malformed frame.
        """
        try:
            kind, request, length = wire.parse_header(self._read(wire.HEADER.size))
            if request != self._request or kind not in _KINDS:
                raise wire.Malformed("a frame nobody asked for")
            parts = wire.decode(self._read(length))
        except wire.Malformed as error:
            raise _Gone(f"the worker sent a malformed frame ({error})") from None
        if not (
            isinstance(parts, list)
            and len(parts) == 4
            and isinstance(parts[0], str)
            and isinstance(parts[1], int)
            and (parts[3] is None or isinstance(parts[3], bytes))
        ):
            raise _Gone("the worker sent a malformed frame")
        return kind, parts[0], parts[1], parts[2], parts[3]

    def silent(self) -> bool:
        """Whether nothing more has come than was asked for."""
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
                raise _Gone("the worker ended") from error
            if not piece:
                raise _Gone("the worker ended")
            pieces += piece
        return pieces


class _Holding:
    """The process an engine holds; apart from the engine so that losing the engine ends it."""

    def __init__(self) -> None:
        self.process: _Process | None = None

    def drop(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.close()


class CPythonEngine:
    """Runs programs in a CPython worker. See :class:`rlm_mem.sandbox.engine.Engine` for the interface.

    Raises:
        InvalidConfig: this machine has no system-call filter and the weaker isolation was not asked for.
    """

    name = "cpython"
    importable = protocol.IMPORTABLE

    def __init__(self, limits: EngineLimits) -> None:
        if not seccomp.supported() and not limits.allow_weaker_isolation:
            raise errors.InvalidConfig(
                "The cpython engine needs Linux on x86-64 or 64-bit ARM: elsewhere there is no system-call filter.",
                hint="Use engine='monty', or set sandbox.allow_weaker_isolation to run without the filter.",
            )
        self._limits = limits
        self._busy = threading.Lock()
        self._raised: errors.ProgramError | None = None
        self._forget()
        self._holding = _Holding()
        self._finalizer = weakref.finalize(self, _Holding.drop, self._holding)

    def _forget(self) -> None:
        self._bound: set[str] = set()  # names that programs have ever bound, or may have
        self._mend = False  # a program assigned to an attribute, so perhaps to one of a class of the library
        self._saved = b""
        self._definitions: dict[str, str] = {}

    def _process(self) -> _Process:
        """The worker, started, confined, and with the namespace in it."""
        process = self._holding.process
        if process is not None and process.pid_of_host == os.getpid():
            return process
        if process is not None:
            self._holding = _Holding()
            self._finalizer = weakref.finalize(self, _Holding.drop, self._holding)
        process = _Process(self._limits.memory_mb, seccomp.supported())
        self._holding.process = process
        alarmed = alarm(time.monotonic() + START_SECONDS, process.kill)
        try:
            kind, _, _, confined, _ = process.receive()
            if self._saved:
                process.send(protocol.RESTORE, [list(self._definitions.values()), self._saved], fresh=True)
                process.receive()
        except _Gone as error:
            self._holding.drop()
            raise errors.SandboxCrashed(
                "The cpython sandbox could not be started and confined.",
                hint="Use engine='monty', or check that the kernel allows seccomp filters.",
            ) from error
        finally:
            alarmed.cancel()
        wanted = "seccomp" if seccomp.supported() else "none"
        if kind != protocol.HELLO or confined != wanted:
            self._holding.drop()
            raise errors.SandboxCrashed(
                "The cpython sandbox did not confine itself.", hint="Use engine='monty'."
            )
        return process

    def run(
        self,
        code: str,
        tree: ast.Module | None,
        names: Mapping[str, Any],
        call: Call,
        printed: Printed,
        deadline: float,
    ) -> Any:
        """Run one program (see the protocol)."""
        with self._busy:
            if tree is None:
                tree = program_tree(code)
            used = names_of(tree)
            given_back = [
                name for name in self._bound & used.functions - used.bound if hasattr(builtins, name)
            ]
            looks_only = leaves_no_trace(tree, names)
            process = self._process()
            kept = False
            seconds = max(0.01, deadline - time.monotonic())
            process.allow_cpu(seconds)
            if printed.stopped:
                process.kill()
            alarmed = alarm(deadline + GRACE_SECONDS, process.kill)
            try:
                order = [code, list(names), seconds, given_back, self._mend, not looks_only]
                process.send(protocol.RUN, order, fresh=True)
                value = self._serve(process, names, call, printed, deadline)
                kept = True
                self._define(tree, None)
                return value
            except errors.ProgramError as error:
                # A heap that is full of what the program left would leave no room for the next one.
                kept = error is self._raised and error.kind != "MemoryError"
                if kept:
                    self._define(tree, error.line)
                raise
            except wire.Malformed as error:
                raise program_error("ValueError", str(error), None, None) from None
            except _Gone as error:
                if alarmed.fired:
                    raise self._timeout() from None
                raise errors.SandboxCrashed(
                    f"the sandbox was ended while running the program ({error}); {_AS_BEFORE}",
                    hint="It asked for more memory than allowed, or for a forbidden system call.",
                ) from None
            finally:
                alarmed.cancel()
                self._bound |= used.bound
                self._mend = self._mend or _changes_attributes(tree)
                # Whoever may have reached the worker's own code, or wrote more than an answer, is not trusted again.
                if not kept or reaches_inside(tree) or not process.silent():
                    self._holding.drop()

    def _define(self, tree: ast.Module, failed_at: int | None) -> None:
        """Keep the source of imports, functions and classes, from which another worker can have them."""
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
        self, process: _Process, names: Mapping[str, Any], call: Call, printed: Printed, deadline: float
    ) -> Any:
        """Answer the worker's calls until the program is complete."""
        seen = 0
        while True:
            kind, output, total, value, state = process.receive()
            printed.write(output)
            # What the worker dropped counts as printed too.
            seen += len(output)
            if total > seen:
                printed.total = max(printed.total, total)
            if time.monotonic() >= deadline:
                # Even if the program came to its end: its timer went off, and who knows what that tore apart.
                raise self._timeout()
            if kind in (protocol.DONE, protocol.ERROR):
                if state is not None:
                    self._saved = state[: protocol.STATE_BYTES * 2]
                if kind == protocol.DONE:
                    return self._bounded(value)
                raise self._error(value)
            if kind != protocol.CALL:
                raise _Gone("the worker sent a frame out of turn")
            self._answer(process, value, names, call)
            if time.monotonic() >= deadline:
                raise self._timeout()

    def _answer(self, process: _Process, value: Any, names: Mapping[str, Any], call: Call) -> None:
        if not (
            isinstance(value, list)
            and len(value) == 3
            and isinstance(value[0], str)
            and isinstance(value[1], list)
            and isinstance(value[2], dict)
            and value[0] in names
        ):
            raise _Gone("the worker sent a malformed call")
        name = value[0]
        try:
            arguments = tuple(plain(item, self._limits.bounds) for item in value[1])
            keywords = {str(key): plain(item, self._limits.bounds) for key, item in value[2].items()}
            process.send(protocol.ANSWER, call(name, arguments, keywords))
        except HostCallFailed as error:
            process.send(protocol.FAILURE, [error.kind, error.message])
        except TooLarge as error:
            process.send(protocol.FAILURE, ["ValueError", f"{name}: {error}"])
        except wire.Malformed as error:
            process.send(protocol.FAILURE, ["ValueError", f"{name}: {error}"])

    def _bounded(self, value: Any) -> Any:
        try:
            return plain(value, self._limits.bounds)
        except TooLarge as error:
            text = f"the value of the last expression is too large: {error}"
            raise self._program_error("ValueError", text, None, None) from None

    def _error(self, value: Any) -> errors.SandboxError:
        if not (isinstance(value, list) and len(value) == 3 and isinstance(value[0], str)):
            raise _Gone("the worker sent a malformed error")
        kind, message, line = value[0], str(value[1]), value[2] if isinstance(value[2], int) else None
        if kind == "_Expired":
            return self._timeout()
        return self._program_error(kind, message, line, hint_for(kind, message))

    def _program_error(
        self, kind: str, message: str, line: int | None, hint: str | None
    ) -> errors.ProgramError:
        """An error inside the program, after which the worker is sound (one of the driver is not)."""
        self._raised = program_error(kind, message, line, hint)
        return self._raised

    def _timeout(self) -> errors.TimeoutError:
        return errors.TimeoutError(
            f"the program ran longer than its time and was stopped; {_AS_BEFORE}",
            hint="Do less in one program; check that every loop ends.",
        )

    def variables(self, reserved: frozenset[str]) -> dict[str, Any]:
        """The program's own names with their values (see the protocol)."""
        with self._busy:
            if self._holding.process is None and not self._saved:
                return {}
            process = self._process()
            process.allow_cpu(5.0)
            alarmed = alarm(time.monotonic() + 5.0, process.kill)
            try:
                process.send(protocol.NAMES, None, fresh=True)
                _, _, _, found, _ = process.receive()
                return self._read_names(found, reserved)
            except (_Gone, TooLarge, ValueError, TypeError, AttributeError):
                # A forged reply, or one that never comes: there is nothing to show.
                self._holding.drop()
                return {}
            finally:
                alarmed.cancel()

    def _read_names(self, found: Any, reserved: frozenset[str]) -> dict[str, Any]:
        variables: dict[str, Any] = {}
        nodes = self._limits.bounds.nodes
        for name, data, kind, text in found:
            if name in reserved:
                continue
            if data:
                # Each has its own bound; together they have that of one value.
                value = wire.decode(data, max_nodes=nodes)
                nodes -= len(data) // 5
                variables[str(name)] = plain(value, self._limits.bounds)
            else:
                variables[str(name)] = Variable(str(kind)[:100], str(text)[:120])
        return variables

    @property
    def worker_pid(self) -> int | None:
        """The process that holds the namespace (see the protocol)."""
        process = self._holding.process
        return None if process is None else process.pid

    def interrupt(self) -> None:
        """Kill the worker of the running program (see the protocol)."""
        process = self._holding.process
        if process is not None:
            process.kill()

    def reset(self) -> None:
        """Forget every name: the worker is replaced on the next use."""
        with self._busy:
            self._holding.drop()
            self._forget()

    def close(self) -> None:
        """End the worker."""
        self.reset()


def _changes_attributes(tree: ast.Module) -> bool:
    """Whether a program assigns to attributes, other than those of ``self``."""
    return any(
        (
            isinstance(node, ast.Attribute)
            and not isinstance(node.ctx, ast.Load)
            and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        )
        or (isinstance(node, ast.Name) and node.id in ("setattr", "delattr"))
        for node in ast.walk(tree)
    )
