"""The default engine: Monty, a Python interpreter in Rust in a worker process, driven step by step.

Each host call returns to this loop as a snapshot, so an exception of the driver (a budget, FINAL) ends the program: no
``except`` of the program can catch it.

The pool of workers, the only global state of the package, is opened on first use, closed at exit and refused in a
forked child. A worker serves one session at a time. An idle session releases its worker when
another session needs one, and restores its namespace later.
"""

from __future__ import annotations

import ast
import atexit
import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic_monty import (
    ClassInstance,
    FunctionSnapshot,
    Monty,
    MontyComplete,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
    MontySession,
    MontySyntaxError,
    NameLookupSnapshot,
)
from pydantic_monty._binary import find_monty_binary

from rlm_mem import errors
from rlm_mem.children import unwatch, watch
from rlm_mem.errors import SandboxError
from rlm_mem.record import MutableRecord
from rlm_mem.sandbox.dispatch import Finished
from rlm_mem.sandbox.engine import (
    Alarm,
    Call,
    EngineLimits,
    HostCallFailed,
    Printed,
    alarm,
    interruptible,
    program_error,
    timed_out,
)
from rlm_mem.sandbox.hints import hint_for
from rlm_mem.sandbox.idioms import EMULATED, Rewritten, only_reads, rewrite
from rlm_mem.sandbox.module_state import IN_MONTY, STATES
from rlm_mem.sandbox.policy import ProgramNames, check_names
from rlm_mem.sandbox.prelude import BUILTIN_PREFIX, BUILTINS, START, source
from rlm_mem.sandbox.values import TooLarge, Variable, read_call, read_value, read_variables

_CHECKOUT_SECONDS = 10.0
"""Seconds that a session waits if all workers are busy."""


def _start_error(error: Exception) -> SandboxError:
    return SandboxError(
        f"no sandbox worker could be started: {error}",
        hint="see the limits on open files, processes and memory (ulimit -a), and the folder TMPDIR",
    )


class MontyPool:
    """The workers of this process.

    Args:
        max_processes: maximum number of workers; more than the processor count, since nested questions use one per
            level.
    """

    def __init__(self, max_processes: int) -> None:
        self.pid = os.getpid()
        self.max_processes = max_processes

        def open_pool(command: Path | None) -> Monty:
            pool = Monty(
                binary_path=command,
                min_processes=1,
                max_processes=max_processes,
                checkout_timeout=_CHECKOUT_SECONDS,
            )
            pool.__enter__()
            return pool

        try:
            self._folder, launcher = _launcher()
            try:
                self._pool = open_pool(launcher)
            except Exception:
                if launcher is None:
                    raise
                self._pool = open_pool(None)
        except (OSError, RuntimeError) as error:  # such as a full or missing folder of temporary files
            raise _start_error(error) from error
        self._lock = threading.Lock()
        self._checked_out = 0
        self._pids: dict[int, int | None] = {}
        self._idle = weakref.WeakValueDictionary[int, MontyEngine]()  # by id, the longest idle first

    def checkout(self, limits: dict[str, Any]) -> MontySession:
        """Return a session with its own worker.

        Raises:
            SandboxError: every worker stayed busy for the time allowed, or none could be started.
        """
        self._make_room()
        # "zero": sleeping returns at once, so that it does not block a worker.
        session = self._pool.checkout(
            limits=limits,  # type: ignore[arg-type]  # a TypedDict whose keys are given by name
            os_policy={"sleep": "zero"},
            assert_message_annotations=False,
        )
        try:
            session.__enter__()
        except TimeoutError:
            raise SandboxError(
                f"all {self.max_processes} sandbox workers stayed busy",
                hint="close sessions that are no longer used, or run fewer at once",
            ) from None
        except RuntimeError as error:
            raise _start_error(error) from error
        with self._lock:
            self._checked_out += 1
            self._pids[id(session)] = session.worker_pid
        watch(session.worker_pid)
        return session

    def release(self, session: MontySession) -> None:
        """End a checkout; a worker that died or is in the middle of a program is replaced."""
        with self._lock:
            self._checked_out -= 1
            pid = self._pids.pop(id(session), None)
        unwatch(pid)
        try:
            session.__exit__(None, None, None)
        except (MontyError, RuntimeError):
            # The worker crashed and the pool has already replaced it.
            return

    def idle(self, holder: MontyEngine) -> None:
        """Record that ``holder`` has a worker that is idle."""
        with self._lock:
            self._idle.pop(id(holder), None)
            self._idle[id(holder)] = holder

    def busy(self, holder: MontyEngine) -> None:
        """Record that ``holder`` uses its worker, or has none."""
        with self._lock:
            self._idle.pop(id(holder), None)

    def _make_room(self) -> None:
        with self._lock:
            if self._checked_out < self.max_processes:
                return
            candidates = list(self._idle.values())
        for holder in candidates:
            if holder.park():
                return

    def close(self) -> None:
        """Stop the workers, unless this is a forked child, whose parent owns them."""
        if self.pid == os.getpid():
            self._pool.__exit__(None, None, None)
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)


def _launcher() -> tuple[Path | None, Path | None]:
    """Create a folder with a command that starts workers through ``monty_launcher``; None, None if unsupported."""
    if os.name != "posix" or os.environ.get("MONTY_BIN"):
        return None, None
    folder = Path(tempfile.mkdtemp(prefix="rlm-mem-"))
    command = folder / "monty"
    launcher = Path(__file__).with_name("monty_launcher.py")
    words = (sys.executable, "-I", "-S", "-B", launcher, find_monty_binary())
    command.write_text(f'#!/bin/sh\nexec {" ".join(shlex.quote(str(word)) for word in words)} "$@"\n')
    command.chmod(0o700)
    return folder, command


_lock = threading.Lock()
_pool: MontyPool | None = None


def monty_pool() -> MontyPool:
    """Return the pool of this process, opening it on first use.

    Raises:
        SandboxError: the pool was opened before this process was forked; its threads exist only in the parent, and a
            second pool would wait for them indefinitely.
    """
    global _pool
    with _lock:
        if _pool is not None and _pool.pid != os.getpid():
            raise SandboxError(
                "the sandbox was used before this process was forked, so it cannot be used here",
                hint="start processes with the 'spawn' method, fork before the first session, or use "
                "engine='cpython'",
            )
        if _pool is None:
            _pool = MontyPool(max(16, 2 * (os.cpu_count() or 1)))
            atexit.register(_pool.close)
        return _pool


_SECONDS_TO_STOP = 0.2
"""Seconds of wall-clock time that a program has to end after FINAL before its worker is killed."""

_NATIVE_NAMES = (
    "re json math collections itertools functools datetime time bisect random decimal typing dataclasses copy csv "
    "hashlib base64 binascii unicodedata asyncio __future__"
)
NATIVE_MODULES = frozenset(_NATIVE_NAMES.split())

MAX_SAVED_BYTES = 12 * 1024 * 1024
"""Maximum size of a namespace, whose snapshot is kept in the host's memory."""

_GATEWAY_ID = UUID("7a1c9f0e-6d1b-4b9e-9a55-2f6f0c7d3e11")
"""Id of the object for calls of host functions; the same in every session and snapshot."""

_STATE_NOTE = "names it assigned are lost, those of earlier programs are kept"
_UNSUPPORTED_PREFIX = "Internal error in monty: "
"""Prefix of Monty's message about an unsupported feature of Python."""


class _CallGateway:
    """The object on which programs call host functions, by looking up an attribute whose name is the call as text."""


class _WorkerHandle:
    """The worker of an engine, in a separate object, so that the finaliser needs no reference to the engine."""

    def __init__(self) -> None:
        self.session: MontySession | None = None
        self.pool: MontyPool | None = None

    def drop(self) -> None:
        session, pool = self.session, self.pool
        self.session = None
        if session is not None and pool is not None and pool.pid == os.getpid():
            pool.release(session)


class _Run(MutableRecord):
    """One program run: its rewritten source, its host functions and its deadline."""

    program: Rewritten
    used: ProgramNames
    names: Collection[str]
    call: Call
    printed: Printed
    deadline: float
    is_read_only: bool
    over: bool = False  # FINAL was called
    stopped: bool = False  # the program ended at FINAL, so its worker is intact


class MontyEngine:
    """`Engine` over a Monty worker; the protocol documents the methods."""

    name = "monty"
    importable = NATIVE_MODULES | EMULATED

    def __init__(self, limits: EngineLimits) -> None:
        self._limits = limits
        self._busy = threading.Lock()
        self._handle = _WorkerHandle()
        self._saved: bytes | None = None
        self._saved_pieces: frozenset[str] = frozenset()
        self._pieces: frozenset[str] = frozenset()
        self._running: int | None = None
        self._interrupted = False
        self._killing = threading.Lock()
        self._bound: set[str] = set()  # names that programs may have bound
        self._finalizer = weakref.finalize(self, _WorkerHandle.drop, self._handle)

    # Worker and namespace.

    def _session(self) -> MontySession:
        """Return the worker, with the namespace restored.

        Raises:
            SandboxCrashed: the last snapshot could not be restored; the session continues with an empty namespace.
        """
        handle = self._handle
        if handle.pool is not None and handle.pool.pid != os.getpid():
            # A forked child: the worker belongs to the parent, so this raises SandboxError.
            monty_pool()
        if handle.session is None:
            pool = monty_pool()
            limits = {
                # A fallback if the host is killed; otherwise the watchdog enforces the deadline.
                "max_feed_duration_secs": self._limits.seconds + 1.0,
                "max_memory": self._limits.memory_mb * 1024 * 1024,
                "max_recursion_depth": self._limits.recursion,
                "max_suspensions": 1_000_000_000,
            }
            handle.pool = pool
            handle.session = pool.checkout(limits)
            self._pieces = frozenset()
            if self._saved is not None:
                self._restore(pool, limits)
        elif handle.pool is not None:
            handle.pool.busy(self)
        return handle.session

    def _restore(self, pool: MontyPool, limits: dict[str, Any]) -> None:
        """Load the last snapshot, with more memory if necessary, since loading may take more than building it did."""
        handle = self._handle
        assert self._saved is not None
        failure: MontyError | None = None
        for room in (1, 2, 4):
            if handle.session is None:
                handle.session = pool.checkout({**limits, "max_memory": room * limits["max_memory"]})
            pid = handle.session.worker_pid
            try:
                handle.session.load_session(self._saved)
            except MontyError as error:
                failure = error
                _kill(pid)
                handle.drop()
            else:
                self._pieces = self._saved_pieces
                return
        self._saved, self._saved_pieces = None, frozenset()
        raise errors.SandboxCrashed(
            "the names that earlier programs assigned could not be restored and are lost; this program did not run",
            hint="assign what is needed again, keep ids and short texts, and send the program again",
        ) from failure

    def _save(self, session: MontySession) -> None:
        """Save the namespace after a program, so that it can be restored if a later program damages its worker.

        Raises:
            ProgramError: it is too large, or contains something that cannot be saved.
        """
        try:
            state = session.dump()
        except MontyError:
            # Some values (very deep lists, a full heap) crash the worker during serialisation.
            state = None
        if state is None or len(state) > MAX_SAVED_BYTES:
            raise program_error(
                "MemoryError",
                "the variables of the program are too large to keep; they are as before the program",
                hint="keep ids and short texts, and read chunks again when needed",
            )
        self._saved, self._saved_pieces = state, self._pieces

    def _discard(self) -> None:
        """Release the worker; the next use starts a new one from the last snapshot."""
        if self._handle.pool is not None:
            self._handle.pool.busy(self)
        self._handle.drop()

    def park(self) -> bool:
        """Release the worker if no program is running; called by the pool if another session needs one."""
        if not self._busy.acquire(blocking=False):
            return False
        try:
            if self._handle.session is None:
                return False
            self._discard()
            return True
        finally:
            self._busy.release()

    def interrupt(self) -> None:
        with self._killing:
            self._interrupted = self._interrupted or self._running is not None
            _kill(self._running)

    def reset(self) -> None:
        with self._busy:
            self._discard()
            self._saved, self._saved_pieces, self._pieces = None, frozenset(), frozenset()
            self._bound.clear()

    # Programs.

    @property
    def worker_pid(self) -> int | None:
        session = self._handle.session
        return None if session is None else session.worker_pid

    def run(
        self, code: str, tree: ast.Module, names: Collection[str], call: Call, printed: Printed,
        deadline: float,
    ) -> Any:  # fmt: skip
        with self._busy:
            # The bounds of later programs depend on an intact compatibility layer, so the engine itself also refuses
            # names of the layer.
            used = ProgramNames(tree)
            check_names(used)
            is_read_only = only_reads(tree, names, leaves_state=True)
            program = rewrite(code, tree, deadline)
            return self._run_in_worker(_Run(program, used, names, call, printed, deadline, is_read_only))

    def _run_in_worker(self, run: _Run) -> Any:
        session = self._session()
        pid = session.worker_pid
        with self._killing:
            self._running, self._interrupted = pid, False
            if run.printed.stopped:
                _kill(pid)
        watch = alarm(run.deadline, lambda: _kill(pid))
        kept = False
        try:
            try:
                with interruptible(self.interrupt):
                    self._prepare(session, run)
                    value = self._drive(session, run, pid)
            except MontyCrashedError as error:
                raise self._crash_error(error, watch, run.printed) from None
            except MontyError as error:
                raised = self._error(error, run.program)
                if not _heap_may_be_damaged(raised):
                    # Names that the program assigned before it failed are kept, as in an interactive session.
                    self._save(session)
                    kept = True
                raise raised from None
            if not run.is_read_only or self._saved is None:
                self._save(session)
            kept = True
            return value
        finally:
            watch.cancel()
            with self._killing:
                self._running = None
                # The worker may have been killed just after the program had ended.
                killed = self._interrupted or watch.fired or run.printed.exceeds_output_limit
            if not kept or killed:
                if killed or not run.stopped:  # the heap may be damaged or full: the pool must not reuse it
                    _kill(pid)
                self._discard()
            elif self._handle.pool is not None:
                self._handle.pool.idle(self)

    def _crash_error(self, error: MontyError, watch: Alarm, printed: Printed) -> errors.SandboxError:
        """Return the error for the end of the worker."""
        if watch.fired:
            return timed_out(_STATE_NOTE)
        if printed.exceeds_output_limit:
            return program_error("OutputError", "the program printed without end", hint="print less")
        made = errors.SandboxCrashed(
            f"the sandbox worker died while running the program; {_STATE_NOTE}",
            hint="write the program differently: return and print plain, small values",
        )
        made.__cause__ = error
        return made

    def _prepare(self, session: MontySession, run: _Run) -> None:
        """Define the compatibility layer and the host functions if they are missing in the namespace."""
        names, used = run.names, run.used
        self._restore_modules(session, run.program.code)
        if "base" not in self._pieces:
            bounds = self._limits.bounds
            session.feed_run(
                f"{START}\n_rlm_nodes, _rlm_room, _rlm_digits = {bounds.nodes}, {bounds.text}, 10 ** {bounds.digits}"
            )
            session.feed_run(
                source("base"),
                inputs={"_rlm_gateway": ClassInstance(_CallGateway(), lazy_attrs="all", id=_GATEWAY_ID)},
            )
            self._pieces |= {"base"}
            stale = list(names)
        else:
            # Host functions that earlier programs may have rebound.
            stale = [name for name in names if name in self._bound]
        lines = [f"{name} = _rlm_function({name!r})" for name in stale]
        # A program that calls sum() uses the built-in, even if an earlier program had a variable of that name.
        lines += [
            f"{name} = {BUILTIN_PREFIX}{name}"
            for name in BUILTINS
            if name in self._bound and name in used.functions and name not in used.bound
        ]
        if lines:
            session.feed_run("\n".join(lines))
        self._bound |= used.bound
        for piece in run.program.pieces:
            if piece not in self._pieces:
                session.feed_run(source(piece))
                self._pieces |= {piece}

    def _restore_modules(self, session: MontySession, code: str) -> None:
        """Undo what earlier programs changed in the state of modules; note that of modules named for the first time."""
        for module in IN_MONTY:
            note, put_back = STATES[module]
            if module in self._pieces:
                session.feed_run(put_back)
            elif module in code:
                session.feed_run(note)
                self._pieces |= {module}

    def _drive(self, session: MontySession, run: _Run, pid: int | None) -> Any:
        """Answer each snapshot until the program is complete."""
        program, printed = run.program, run.printed

        def collect(_stream: str, text: str) -> None:
            if run.over:
                return
            printed.write(text)
            if printed.exceeds_output_limit:
                _kill(pid)

        snapshot: Any = session.feed_start(program.code, print_callback=collect)
        while not isinstance(snapshot, MontyComplete):
            if time.monotonic() >= run.deadline:
                raise timed_out(_STATE_NOTE)
            # Do not read the arguments of a call or the owner of an attribute, which would convert values of the
            # program to objects of the host without bounds.
            if isinstance(snapshot, NameLookupSnapshot):
                if snapshot.object_id == _GATEWAY_ID:
                    try:
                        answer = self._answer(snapshot.variable_name, run)
                    except Finished:
                        run.over = True
                        run.stopped = _ends_on_failure(snapshot, pid)
                        raise
                    snapshot = snapshot.resume(value=answer)
                else:
                    snapshot = snapshot.resume()
            elif isinstance(snapshot, FunctionSnapshot):
                snapshot = self._refuse(snapshot)
            else:
                # A future: nothing is asynchronous, so the program would wait indefinitely.
                raise program_error("RuntimeError", "the program waits for something that never happens")
        if not program.guarded:
            return None
        output = snapshot.output
        try:
            return None if output is None else read_value(output, self._limits.bounds, run.deadline)
        except TooLarge as error:
            message = f"the value of the last expression is too large: {error}"
            raise program_error("ValueError", message) from None

    def _answer(self, text: str, run: _Run) -> tuple[Any, ...]:
        """Answer one call: ``(value,)``, or ``(kind, message)`` of the error that the program gets."""
        try:
            name, arguments, keywords = read_call(text, self._limits.bounds, run.deadline)
            if name not in run.names:
                return "NameError", f"name {name!r} is not defined"
            return (run.call(name, arguments, keywords),)
        except TooLarge as error:
            return "ValueError", str(error)
        except HostCallFailed as error:
            return error.kind, error.message

    def _refuse(self, snapshot: Any) -> Any:
        """Refuse a call of anything but a function of the session."""
        name = str(snapshot.function_name)[:200]
        if snapshot.is_os_function:
            if name == "import":
                return snapshot.resume_not_handled()
            return snapshot.resume({"exception": PermissionError(f"{name} is not available in the sandbox")})
        return snapshot.resume({"exception": NameError(f"name '{name}' is not defined")})

    def _error(self, error: MontyError, program: Rewritten) -> errors.RlmMemError:
        """Return the error of a program, with the line of its original source."""
        line: int | None = None
        inner = error.exception()
        kind, message = type(inner).__name__, str(inner)
        if isinstance(error, MontyRuntimeError | MontySyntaxError):
            frames = error.traceback()
            here = [frame for frame in frames if frame.filename == frames[0].filename]
            if here:
                line = program.original_line(here[-1].line)
            with suppress(ValueError):
                # Only the display text has the names of exceptions that the program defines.
                kind = error.display("type-msg").partition(":")[0].strip() or kind
        if message.startswith(_UNSUPPORTED_PREFIX):
            kind, message = "TypeError", message.removeprefix(_UNSUPPORTED_PREFIX)
        if kind == "KeyError" and inner.args:
            message = repr(inner.args[0])
        if kind == "TimeoutError" and message.startswith(("feed time limit", "turn time limit")):
            return timed_out(_STATE_NOTE)
        return program_error(kind, message, line=line, hint=hint_for(kind, message))

    def variables(self, reserved: frozenset[str]) -> dict[str, Any]:
        with self._busy:
            if self._handle.session is None and self._saved is None:
                return {}
            try:
                session = self._session()
            except errors.SandboxCrashed:
                return {}  # the namespace is lost
            watch = alarm(time.monotonic() + 5.0, lambda pid=session.worker_pid: _kill(pid))  # type: ignore[misc]
            hidden = sorted({*reserved, *BUILTINS, "exec", "eval"} - (self._bound - reserved))
            try:
                text = session.feed_run(f"''.join(_rlm_state(_rlm_b_locals(), {hidden!r}))")
                found = {
                    name: value
                    for name, value in read_variables(text, self._limits.bounds).items()
                    # A restored built-in is not a variable of the program.
                    if name not in BUILTINS or not _is_builtin(value)
                }
                if self._handle.pool is not None:
                    self._handle.pool.idle(self)
            except (MontyError, TooLarge):
                # The values cannot be read within the time: return none.
                self._discard()
                return {}
            finally:
                watch.cancel()
            if watch.fired:  # after the names had been read
                self._discard()
            return found


def _is_builtin(value: Any) -> bool:
    return isinstance(value, Variable) and value.type in ("builtin_function_or_method", "type")


def _ends_on_failure(snapshot: NameLookupSnapshot, pid: int | None) -> bool:
    """Return whether a program that waits for a call ends if that call fails; its further calls are not answered."""
    limit = alarm(time.monotonic() + _SECONDS_TO_STOP, lambda: _kill(pid))
    try:
        stopped = isinstance(snapshot.resume(), MontyComplete)
    except MontyCrashedError:
        stopped = False
    except MontyError as error:
        stopped = not isinstance(error.exception(), MemoryError | RecursionError | TimeoutError)
    finally:
        limit.cancel()
    return stopped and not limit.fired


def _kill(pid: int | None) -> None:
    if pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _heap_may_be_damaged(error: errors.RlmMemError) -> bool:
    """Return whether the sandbox's heap may be damaged, because a limit stopped it during an operation."""
    return isinstance(error, errors.TimeoutError) or getattr(error, "kind", "") in (
        "MemoryError",
        "TimeoutError",
    )
