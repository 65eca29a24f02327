"""The Engine protocol: what runs a program, its state, and the way it reaches host functions.

An engine is the boundary. It runs a program in another process, hands each call of a host function to the
driver, bounds what comes back, and keeps the namespace from one program to the next. ``monty`` is the default
(:mod:`rlm_mem.sandbox.monty`), ``cpython`` the optional second one (:mod:`rlm_mem.sandbox.cpython`); ``engines`` opens
the one that a session names.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rlm_mem.errors import ProgramError
from rlm_mem.sandbox.values import Bounds

__all__ = ["Call", "Engine", "EngineLimits", "HostCallFailed", "Printed", "program_error"]

Call = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]
"""Answers a call of a host function: name, positional and keyword arguments in, plain value out. It raises
:class:`HostCallFailed` for an error that the program sees; anything else ends the program, uncatchably."""


class HostCallFailed(Exception):
    """A host function refused or failed; the program sees it as an exception of this kind and may go on.

    Args:
        kind: name of a built-in exception, for example ``ValueError``.
        message: what was wrong and what to write instead.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Limits of one session.

    Attributes:
        seconds: longest time any program of the session may ask for.
        memory_mb: heap of the sandbox in MB.
        bounds: size of a value that leaves the sandbox.
        recursion: depth of calls inside the sandbox.
        checkout_seconds: how long to wait for a free worker.
        allow_weaker_isolation: run the CPython engine where seccomp is not available.
    """

    seconds: float = 60.0
    memory_mb: int = 32
    bounds: Bounds = field(default_factory=Bounds)
    recursion: int = 300
    checkout_seconds: float = 10.0
    allow_weaker_isolation: bool = False


class Printed:
    """What a program printed, kept up to a number of characters; the rest is counted and dropped.

    Args:
        limit: characters kept.
        flood: characters after which the program is stopped.
    """

    def __init__(self, limit: int, flood: int = 16_000_000) -> None:
        self.limit = limit
        self.flood = flood
        self.total = 0
        self.stopped = False
        """The program was ended from outside before its worker was known: the engine then kills it at once."""
        self._kept: list[str] = []
        self._room = limit

    def write(self, text: str) -> None:
        """Take one piece of output."""
        self.total += len(text)
        if self._room > 0 and text:
            self._kept.append(text[: self._room])
            self._room -= len(self._kept[-1])

    @property
    def flooded(self) -> bool:
        """More than any reader could want; the engine ends the program."""
        return self.total > self.flood

    @property
    def truncated(self) -> bool:
        """Something was dropped."""
        return self.total > self.limit

    def text(self) -> str:
        """What was kept, with a notice when something was dropped."""
        text = "".join(self._kept)
        if not self.truncated:
            return text
        notice = f"[{self.total:,} characters were printed, of which the first {self.limit:,} are kept: print less]"
        return f"{text}\n{notice}\n"


class Engine(Protocol):
    """Runs programs one after the other in one namespace. Used by one thread at a time."""

    @property
    def name(self) -> str: ...

    @property
    def importable(self) -> frozenset[str]:
        """Modules that a program may import."""
        ...

    @property
    def worker_pid(self) -> int | None:
        """The process that holds the namespace, if there is one."""
        ...

    def run(
        self,
        code: str,
        tree: ast.Module | None,
        names: Mapping[str, Any],
        call: Call,
        printed: Printed,
        deadline: float,
    ) -> Any:
        """Run one program and return the value of its last expression, bounded.

        Args:
            code: the program.
            tree: its syntax tree, or None when Python could not parse it.
            names: host functions, bound anew before the program starts.
            call: answers calls of host functions.
            printed: receives the output.
            deadline: seconds on the monotonic clock at which the program is killed.

        Raises:
            ProgramError: an error inside the program; state assigned before it is kept.
            TimeoutError: the deadline passed; the state is as before the program, or the message says so.
            SandboxCrashed: the worker died; the same.
            Exception: whatever ``call`` raised besides HostCallFailed; the state is as before the program.
        """
        ...

    def variables(self, reserved: frozenset[str]) -> dict[str, Any]:
        """The program's own names with their values: plain data within the bounds, else a :class:`Variable`.

        Args:
            reserved: names of host functions, which are left out.
        """
        ...

    def interrupt(self) -> None:
        """Kill the worker of the running program, from any thread; ``run`` then fails at once."""
        ...

    def reset(self) -> None:
        """Forget every name."""
        ...

    def close(self) -> None:
        """Give the worker back. The engine may be used again; it then starts empty."""
        ...


def program_error(kind: str, message: str, line: int | None, hint: str | None) -> ProgramError:
    """Return the error the caller (and the model) sees: place, kind and message; the remedy is its ``hint``."""
    place = f"line {line}: " if line else ""
    text = f"{place}{kind}: {message}" if message else f"{place}{kind}"
    return ProgramError(text, line=line, kind=kind, hint=hint)
