"""All exceptions of RLM-MEM, in a tree ordered by what the caller can do about them.

::

    RlmMemError                        base class; ``hint`` may have the remedy
    ├── InputError (ValueError)        fix the input
    │   ├── InvalidChunkId
    │   ├── InvalidChunk               a field, or a whole file, that does not validate
    │   ├── InvalidLink                unknown type, strength outside 0-1, missing end
    │   ├── InvalidMemory              a tiered memory, or its front matter, breaks a rule of its schema
    │   ├── InvalidQuery
    │   ├── InvalidConfig
    │   └── NamespaceError
    ├── NotFoundError (LookupError)    the requested object does not exist
    ├── AccessDenied                   the token of a client does not permit it (``needed``)
    ├── ConflictError                  another writer was first: read again, then retry
    ├── StorageError (OSError)         look at the store
    │   ├── StoreLocked                retry later
    │   ├── StoreReadOnly              fix permissions, or open elsewhere
    │   ├── StoreFull                  free space
    │   ├── StoreClosed                open the store again
    │   ├── ServerAway                 retry when it is back (``namespaces``: those of the other servers)
    │   └── CorruptStore               run `rlm-mem store check`, then `rlm-mem store repair`
    ├── SandboxError                   a program in the REPL failed
    │   ├── SandboxViolation           the program uses what the sandbox forbids (``line``)
    │   ├── ProgramError (RuntimeError)   the program failed; recoverable (``line``)
    │   ├── SessionComplete (RuntimeError)   execute() after FINAL()
    │   ├── TimeoutError (builtin TimeoutError)   the program ran out of time
    │   ├── SandboxCrashed             the worker died; the session was restored
    │   ├── SessionBusy                a program is running in this session
    │   └── SessionCancelled           the program was stopped: cancel(), close(), a disconnected client
    ├── BudgetError                    terminal: raise a budget (``stopped_by`` names it)
    │   └── MaxIterationsError
    └── ModelError                     the model behind a recall
        ├── ModelUnavailable           not configured: extra, key or server missing
        ├── ModelTimeout               retry, or raise the time-out
        ├── ModelRefused               the request itself is at fault
        └── ModelOverloaded            transient: retry later
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence

__all__ = [
    "RlmMemError",
    "InputError",
    "InvalidChunkId",
    "InvalidChunk",
    "InvalidLink",
    "InvalidMemory",
    "InvalidQuery",
    "InvalidConfig",
    "NamespaceError",
    "NotFoundError",
    "AccessDenied",
    "ConflictError",
    "StorageError",
    "StoreLocked",
    "StoreReadOnly",
    "StoreFull",
    "StoreClosed",
    "ServerAway",
    "CorruptStore",
    "SandboxError",
    "SandboxViolation",
    "ProgramError",
    "SessionComplete",
    "TimeoutError",
    "SandboxCrashed",
    "SessionBusy",
    "SessionCancelled",
    "BudgetError",
    "MaxIterationsError",
    "ModelError",
    "ModelUnavailable",
    "ModelTimeout",
    "ModelRefused",
    "ModelOverloaded",
]


class RlmMemError(Exception):
    """Base class of all errors that the package raises.

    Args:
        message: a clause that names the input and the problem, in lower case and without a full stop.
        hint: the remedy, in the same form; the command line and tracebacks show it below the message.
    """

    def __init__(self, message: str = "", *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self._hint: str | None = None
        self.hint = hint

    @property
    def hint(self) -> str | None:
        """The remedy, if one is known."""
        return self._hint

    @hint.setter
    def hint(self, hint: str | None) -> None:
        if self._hint:
            self.__notes__.remove(f"hint: {self._hint}")
        self._hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # what a traceback shows below the message

    def __str__(self) -> str:
        # Without this, the built-in base classes (OSError, KeyError) would format the arguments differently.
        return self.message

    @property
    def sentence(self) -> str:
        """The problem and its remedy as one text."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


class InputError(RlmMemError, ValueError):
    """An argument is invalid; nothing was changed."""


class InvalidChunkId(InputError):
    """A chunk id outside the whitelist ``chunk-[A-Za-z0-9][A-Za-z0-9_-]{0,119}``."""


class InvalidChunk(InputError):
    """A chunk, or a file that should contain one, is invalid."""


class InvalidLink(InputError):
    """A link with an unknown type, a strength outside 0-1, or an end that does not exist."""


class InvalidMemory(InputError):
    """A tiered memory breaks a rule of docs/spec/continuum.md; the message names the file, field and rule."""


class InvalidQuery(InputError):
    """A query or filter is invalid."""


class InvalidConfig(InputError):
    """A setting with an unknown name, a wrong type or a value out of range."""


class NamespaceError(InputError):
    """A malformed namespace, or one that this store object is not bound to."""


class NotFoundError(RlmMemError, LookupError):
    """The requested chunk, conversation, trajectory or version does not exist."""


class AccessDenied(RlmMemError):
    """The token of a client does not permit the request; nothing was done.

    Args:
        needed: the permission that the token lacks.
    """

    def __init__(self, message: str = "", *, hint: str | None = None, needed: str = "") -> None:
        super().__init__(message, hint=hint)
        self.needed = needed


class ConflictError(RlmMemError):
    """The chunk was changed by another writer since it was read (compare-and-set on the revision)."""


class StorageError(RlmMemError, OSError):
    """The store could not be read or written; no acknowledged write was lost."""


class StoreLocked(StorageError):
    """Another process held the write lock longer than the configured wait."""


class StoreReadOnly(StorageError):
    """The folder, or this store object, does not allow writing."""


class StoreFull(StorageError):
    """The disk is full; the write was undone."""


class StoreClosed(StorageError):
    """The store object was closed."""


class ServerAway(StorageError):
    """One of several servers of the store cannot be reached; namespaces on the others can be used.

    Args:
        namespaces: name and number of chunks of each namespace that a listing found on the other servers.
    """

    def __init__(
        self, message: str = "", *, hint: str | None = None, namespaces: Sequence[tuple[str, int]] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.namespaces = list(namespaces)


class CorruptStore(StorageError):
    """The derived index is damaged beyond what opening it can repair."""


class SandboxError(RlmMemError):
    """Base class of errors of programs in the sandbox."""


class SandboxViolation(SandboxError):
    """The program uses a feature that the sandbox forbids.

    Args:
        line: 1-based line of the program, or None when it is not known.
    """

    def __init__(self, message: str = "", *, line: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.line = line


class ProgramError(SandboxError, RuntimeError):
    """The program raised an exception; recoverable, since the model sees it and can correct the program.

    Args:
        line: 1-based line of the program, or None when it is not known.
        kind: name of the exception inside the sandbox, for example ``KeyError``.
    """

    def __init__(
        self, message: str = "", *, line: int | None = None, kind: str = "Error", hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.line = line
        self.kind = kind


class SessionComplete(SandboxError, RuntimeError):
    """``execute()`` was called after ``FINAL()``."""


class TimeoutError(SandboxError, builtins.TimeoutError):
    """The program, or the whole session, ran out of time."""


class SandboxCrashed(SandboxError):
    """The sandbox worker died. The session has its state before the program, or is empty if the message says so."""


class SessionBusy(SandboxError):
    """A program is running in the session, which runs one at a time; its host functions cannot call back into it."""


class SessionCancelled(SandboxError):
    """The program was stopped from outside; its worker was ended, and the session can be used again."""


class BudgetError(RlmMemError):
    """A budget of the run is exhausted; terminal.

    Args:
        stopped_by: the budget: iterations, depth, seconds, model_calls, tokens or usd.
    """

    def __init__(self, message: str = "", *, stopped_by: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.stopped_by = stopped_by


class MaxIterationsError(BudgetError):
    """The run needed more turns than ``max_iterations``."""

    def __init__(self, message: str = "", *, stopped_by: str = "iterations", hint: str | None = None) -> None:
        super().__init__(message, stopped_by=stopped_by, hint=hint)


class ModelError(RlmMemError):
    """The model behind a recall could not answer."""


class ModelUnavailable(ModelError):
    """The model is not set up: an extra, a key or a server is missing."""


class ModelTimeout(ModelError):
    """The model did not answer within its time-out."""


class ModelRefused(ModelError):
    """The provider rejected the request (too long, not allowed, unknown model)."""


class ModelOverloaded(ModelError):
    """The provider is overloaded or rate-limited; transient."""
