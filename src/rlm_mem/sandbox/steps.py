"""What one program left behind: its value, output, error and host calls; and the answer given to FINAL."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlm_mem.errors import RlmMemError
from rlm_mem.sandbox.values import clipped, well_formed

__all__ = ["Final", "HostCall", "StepOutput", "Variable", "bounded_error"]

MAX_ERROR_CHARS = 2_000
"""Of the message of an error, and of its hint: a program chooses its text."""
MAX_KIND_CHARS = 80
"""Of the name of an error: a program may define a class of any name."""


def bounded_error(error: RlmMemError) -> RlmMemError:
    """Cut what the program chose of an error (message, hint, kind) to its longest; returns the same error."""
    error.message = clipped(well_formed(error.message), MAX_ERROR_CHARS)
    if error.hint is not None:
        error.hint = clipped(well_formed(error.hint), MAX_ERROR_CHARS)
    kind = getattr(error, "kind", None)
    if isinstance(kind, str) and len(kind) > MAX_KIND_CHARS:
        error.kind = clipped(well_formed(kind), MAX_KIND_CHARS)  # type: ignore[attr-defined]  # of ProgramError
    error.args = (error.message,)
    return error


@dataclass(frozen=True, slots=True)
class HostCall:
    """One call of a program to a host function.

    Attributes:
        name: the function, for example ``read_chunk``.
        args_preview: its arguments as source text, shortened.
        seconds: wall time spent in the host.
        result_preview: the result, or ``!Kind: message`` when the call failed, shortened.
    """

    name: str
    args_preview: str
    seconds: float
    result_preview: str


@dataclass(frozen=True, slots=True)
class Final:
    """The answer of a session.

    Attributes:
        answer: bounded plain data; None means "the memory does not hold it".
        chunk_ids: the chunks that the program cites, in its order, without repeats.
        confidence: 0.0–1.0 as the program sees it, or None when it did not say.
    """

    answer: Any
    chunk_ids: list[str] = field(default_factory=list)
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """One name of the sandbox's namespace: the name of its type and a short preview of its value."""

    type: str
    preview: str


@dataclass(slots=True)
class StepOutput:
    """Everything one program did.

    Attributes:
        value: value of its last expression, bounded plain data.
        output: what it printed, or the first page of that with a remark (``page(2)`` gives the next).
        printed: what it printed, up to 400,000 characters.
        error: the recoverable error that ended it, or None.
        host_calls: its calls to host functions, oldest first (bounded: see ``REPLSession``).
        chunks_read: ids of the chunks whose content it was given, in order, without repeats.
        seconds: wall time.
        truncated: whether ``output`` is not all.
        final: the answer, when this program called FINAL.
    """

    value: Any = None
    output: str = ""
    printed: str = ""
    error: RlmMemError | None = None
    host_calls: list[HostCall] = field(default_factory=list)
    chunks_read: list[str] = field(default_factory=list)
    seconds: float = 0.0
    truncated: bool = False
    final: Final | None = None
