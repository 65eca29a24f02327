"""The default engine: Monty, a Python interpreter in Rust in a worker process, driven step by step.

Each host call comes back to this loop as a snapshot, so whatever the driver raises (a budget, FINAL) ends the
program for good: there is no frame of the program left in which an ``except`` could swallow it.
"""

from __future__ import annotations

import ast
import os
import signal
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_mem import errors
from rlm_mem.sandbox.engine import Call, EngineLimits, HostCallFailed, Printed, program_error
from rlm_mem.sandbox.hints import hint_for
from rlm_mem.sandbox.idiom_imports import EMULATED
from rlm_mem.sandbox.idioms import Rewritten, leaves_no_trace, rewrite
from rlm_mem.sandbox.policy import PRELUDE_PREFIX
from rlm_mem.sandbox.pool import MontyPool, monty_pool
from rlm_mem.sandbox.prelude import BASE, PIECES
from rlm_mem.sandbox.prelude_modules import MODULES
from rlm_mem.sandbox.steps import Variable
from rlm_mem.sandbox.values import TooLarge, plain
from rlm_mem.sandbox.watchdog import Alarm, alarm

if TYPE_CHECKING:
    from pydantic_monty import MontyError, MontySession

__all__ = ["MontyEngine"]

_NATIVE_NAMES = (
    "re json math collections itertools functools datetime time bisect random decimal typing dataclasses copy csv "
    "hashlib base64 binascii unicodedata asyncio __future__"
)
NATIVE_MODULES = frozenset(_NATIVE_NAMES.split())

MAX_SAVED_BYTES = 12 * 1024 * 1024
"""Largest namespace a program may leave behind: its snapshot lives in the host's memory."""

MAX_ARGUMENTS = 64
"""Of one call of a host function."""

_AS_BEFORE = "names it assigned are lost, those of earlier programs are kept"
_TOO_LONG = f"the program ran longer than its time and was stopped; {_AS_BEFORE}"
_EXCEPTIONS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (ValueError, TypeError, KeyError, LookupError, RuntimeError, NameError, PermissionError)
}


class _Holding:
    """The worker an engine holds; apart from the engine so that losing the engine gives it back."""

    def __init__(self) -> None:
        self.session: MontySession | None = None
        self.pool: MontyPool | None = None

    def drop(self) -> None:
        session, pool = self.session, self.pool
        self.session = None
        if session is not None and pool is not None and pool.pid == os.getpid():
            pool.give_back(session)


@dataclass(frozen=True, slots=True)
class _Run:
    """One program on its way: as it is fed, what it may call, and until when."""

    program: Rewritten
    names: Mapping[str, Any]
    call: Call
    printed: Printed
    deadline: float
    looks_only: bool


class MontyEngine:
    """Runs programs in a Monty worker. See :class:`rlm_mem.sandbox.engine.Engine` for the interface."""

    name = "monty"
    importable = NATIVE_MODULES | EMULATED

    def __init__(self, limits: EngineLimits) -> None:
        self._limits = limits
        self._busy = threading.Lock()
        self._holding = _Holding()
        self._saved: bytes | None = None
        self._saved_pieces: frozenset[str] = frozenset()
        self._pieces: frozenset[str] = frozenset()
        self._rebind = True
        self._finalizer = weakref.finalize(self, _Holding.drop, self._holding)

    # Worker and namespace.

    def _session(self) -> MontySession:
        """The worker, with the namespace in it."""
        holding = self._holding
        if holding.pool is not None and holding.pool.pid != os.getpid():
            # A forked child: the worker belongs to the parent, and the pool says so.
            monty_pool()
        if holding.session is None:
            pool = monty_pool(self._limits.checkout_seconds)
            limits = {
                # A backstop for a killed host: the watchdog is what keeps the deadline.
                "max_feed_duration_secs": self._limits.seconds + 1.0,
                "max_memory": self._limits.memory_mb * 1024 * 1024,
                "max_recursion_depth": self._limits.recursion,
                "max_suspensions": 1_000_000_000,
            }
            holding.pool = pool
            holding.session = pool.checkout(limits)
            self._pieces = frozenset()
            if self._saved is not None:
                holding.session.load_session(self._saved)
                self._pieces = self._saved_pieces
        elif holding.pool is not None:
            holding.pool.busy(self)
        return holding.session

    def _save(self, session: MontySession) -> None:
        """Snapshot the namespace after a program, so that a later one that ends badly leaves it as it is now.

        Raises:
            ProgramError: it is too large, or holds something that cannot be kept.
        """
        from pydantic_monty import MontyError

        try:
            state = session.dump()
        except MontyError:
            # Some values kill the worker when they are written out (very deep lists, a full heap).
            state = None
        if state is None or len(state) > MAX_SAVED_BYTES:
            raise program_error(
                "MemoryError",
                "the variables that the program left behind are too large to keep; they are as before it",
                None,
                "Keep ids and short texts, and read chunks again when needed.",
            )
        self._saved, self._saved_pieces = state, self._pieces

    def _discard(self) -> None:
        """Drop the worker; the next use starts another from the last snapshot."""
        if self._holding.pool is not None:
            self._holding.pool.busy(self)
        self._holding.drop()

    def park(self) -> bool:
        """Give the worker up if no program runs; called by the pool when another session needs one."""
        if not self._busy.acquire(blocking=False):
            return False
        try:
            if self._holding.session is None:
                return False
            self._discard()
            return True
        finally:
            self._busy.release()

    def reset(self) -> None:
        """Forget every name."""
        with self._busy:
            self._discard()
            self._saved, self._saved_pieces, self._pieces = None, frozenset(), frozenset()

    def close(self) -> None:
        """Give the worker back and forget every name."""
        self.reset()

    # Programs.

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
            looks_only = leaves_no_trace(tree, names)
            return self._guarded(_Run(rewrite(code, tree), names, call, printed, deadline, looks_only))

    def _guarded(self, run: _Run) -> Any:
        from pydantic_monty import MontyCrashedError, MontyError

        session = self._session()
        pid = session.worker_pid
        watch = alarm(run.deadline, lambda: _kill(pid))
        kept = False
        try:
            try:
                self._prepare(session, run)
                value = self._drive(session, run, pid)
            except MontyCrashedError as error:
                raise self._crash(error, watch, run.printed) from None
            except MontyError as error:
                raised = self._error(error, run.program)
                if not _unsound(raised):
                    # What the program assigned before it failed stays, as in any interactive session.
                    self._save(session)
                    kept = True
                raise raised from None
            if not run.looks_only or self._saved is None:
                self._save(session)
            kept = True
            return value
        finally:
            watch.cancel()
            if not kept:
                self._discard()
            elif self._holding.pool is not None:
                self._holding.pool.idle(self)

    def _crash(self, error: MontyError, watch: Alarm, printed: Printed) -> errors.SandboxError:
        """Why the worker died."""
        if watch.fired:
            return errors.TimeoutError(_TOO_LONG, hint=hint_for("TimeoutError", ""))
        if printed.flooded:
            return program_error("OutputError", "the program printed without end", None, "Print less.")
        made = errors.SandboxCrashed(
            f"the sandbox worker died while running the program; {_AS_BEFORE}",
            hint="Write the program differently: return and print plain, small values.",
        )
        made.__cause__ = error
        return made

    def _prepare(self, session: MontySession, run: _Run) -> None:
        """Bring the prelude and the host functions into the namespace, as far as they are not there."""
        program, names = run.program, run.names
        if "base" not in self._pieces:
            bounds = self._limits.bounds
            session.feed_run(
                f"_rlm_nodes, _rlm_bytes, _rlm_digits = {bounds.nodes}, {bounds.text}, 10 ** {bounds.digits}\n{BASE}"
            )
            self._pieces |= {"base"}
            self._rebind = True
        if self._rebind:
            # The program sees a wrapper that bounds its arguments; the function itself has no name in there.
            hidden = {f"_rlm_host_{number}": stub for number, stub in enumerate(names.values())}
            lines = [f"{name} = _rlm_host({key})" for name, key in zip(names, hidden, strict=True)]
            session.feed_run("\n".join([*lines, *(f"{key} = None" for key in hidden)]), inputs=hidden)
            self._rebind = False
        if not program.guarded or "locals" in program.code:
            # It may have bound a reserved name in a way that the policy does not see.
            self._rebind = True
        self._feed_pieces(session, program.pieces)

    def _feed_pieces(self, session: MontySession, pieces: Sequence[str]) -> None:
        for piece in pieces:
            if piece not in self._pieces:
                session.feed_run(PIECES[piece] if piece in PIECES else MODULES[piece][1])
                self._pieces |= {piece}

    def _drive(self, session: MontySession, run: _Run, pid: int | None) -> Any:
        """The step loop: answer each snapshot until the program is complete."""
        from pydantic_monty import FunctionSnapshot, MontyComplete, NameLookupSnapshot

        program, printed = run.program, run.printed

        def collect(_stream: str, text: str) -> None:
            printed.write(text)
            if printed.flooded:
                _kill(pid)

        snapshot: Any = session.feed_start(program.code, print_callback=collect)
        while not isinstance(snapshot, MontyComplete):
            if time.monotonic() >= run.deadline:
                raise errors.TimeoutError(_TOO_LONG, hint=hint_for("TimeoutError", ""))
            if isinstance(snapshot, FunctionSnapshot):
                snapshot = self._answer(snapshot, run.names, run.call)
            elif isinstance(snapshot, NameLookupSnapshot):
                snapshot = snapshot.resume()
            else:
                # A future: nothing here is asynchronous, so the program would wait for ever.
                raise program_error(
                    "RuntimeError", "the program waits for something that never comes", None, None
                )
        if not program.guarded:
            # Turning an unbounded value into Python objects could take the host minutes.
            return None
        try:
            return plain(snapshot.output, self._limits.bounds)
        except ValueError as error:
            raise program_error(
                "ValueError", f"the value of the last expression is too large: {error}", None, None
            ) from None

    def _answer(self, snapshot: Any, names: Mapping[str, Any], call: Call) -> Any:
        """Serve one call and return the next snapshot."""
        name = str(snapshot.function_name)
        if snapshot.is_os_function:
            if name == "import":
                return snapshot.resume_not_handled()
            return snapshot.resume({"exception": PermissionError(f"{name} is not available in the sandbox")})
        if name not in names:
            return snapshot.resume({"exception": NameError(f"name '{name}' is not defined")})
        # Each look at these converts the whole value anew.
        given, named = snapshot.args, snapshot.kwargs
        if len(given) + len(named) > MAX_ARGUMENTS:
            return snapshot.resume({"exception": TypeError(f"{name}: too many arguments; pass one list")})
        try:
            # Text was bounded before it crossed; most calls take one text and nothing else.
            arguments = tuple(
                item if type(item) is str else plain(item, self._limits.bounds) for item in given
            )
            keywords = {str(key): plain(item, self._limits.bounds) for key, item in named.items()}
        except (TooLarge, ValueError) as error:
            # ValueError: an integer too long to cross at all.
            return snapshot.resume({"exception": ValueError(f"{name}: {error}")})
        try:
            value = call(name, arguments, keywords)
        except HostCallFailed as error:
            return snapshot.resume({"exception": _EXCEPTIONS.get(error.kind, RuntimeError)(error.message)})
        return snapshot.resume({"return_value": value})

    def _error(self, error: MontyError, program: Rewritten) -> errors.RlmMemError:
        """What went wrong inside, in the terms of the program as it was written."""
        from pydantic_monty import MontyRuntimeError, MontySyntaxError

        line: int | None = None
        inner = error.exception()
        kind, message = type(inner).__name__, str(inner)
        if isinstance(error, MontyRuntimeError | MontySyntaxError):
            frames = error.traceback()
            here = [frame for frame in frames if frame.filename == frames[0].filename]
            if here:
                line = program.original_line(here[-1].line)
            with suppress(ValueError):
                # For exceptions of the program's own, the display knows the name.
                kind = error.display("type-msg").partition(":")[0].strip() or kind
        if kind == "KeyError" and inner.args:
            message = repr(inner.args[0])
        if kind == "TimeoutError" and message.startswith(("feed time limit", "turn time limit")):
            return errors.TimeoutError(_TOO_LONG, hint=hint_for("TimeoutError", ""))
        return program_error(kind, message, line, hint_for(kind, message))

    def variables(self) -> dict[str, Variable]:
        """The program's own names with types and previews (see the protocol)."""
        from pydantic_monty import MontyError

        with self._busy:
            if self._holding.session is None and self._saved is None:
                return {}
            session = self._session()
            watch = alarm(time.monotonic() + 5.0, lambda pid=session.worker_pid: _kill(pid))  # type: ignore[misc]
            found: dict[str, Variable] = {}
            try:
                self._feed_pieces(session, ("preview",))
                for name in session.feed_run("list(locals())[:2_000]"):
                    if (
                        isinstance(name, str)
                        and not name.startswith(("__", PRELUDE_PREFIX))
                        and name.isidentifier()
                    ):
                        kind, text = session.feed_run(f"_rlm_preview({name})")
                        found[name] = Variable(str(kind), str(text))
                if self._holding.pool is not None:
                    self._holding.pool.idle(self)
            except MontyError:
                # A value whose own repr fails or never ends: what was found so far is the answer.
                self._discard()
            finally:
                watch.cancel()
            return found


def _kill(pid: int | None) -> None:
    if pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _unsound(error: errors.RlmMemError) -> bool:
    """Whether the sandbox's heap may be damaged: after a limit stopped it in the middle of an operation."""
    return isinstance(error, errors.TimeoutError) or getattr(error, "kind", "") in (
        "MemoryError",
        "TimeoutError",
    )
