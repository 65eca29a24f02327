"""One turn of the loop: the programs of a reply, running them, and the record of what they left behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from rlm_mem.errors import BudgetError
from rlm_mem.models.base import Completion, Usage
from rlm_mem.sandbox.prompts import clip
from rlm_mem.sandbox.steps import Final, StepOutput

__all__ = [
    "Done",
    "LoopSession",
    "LoopStep",
    "error_hint",
    "error_kind",
    "make_step",
    "printed",
    "programs_in",
    "run_program",
]


class LoopSession(Protocol):
    """What the loop needs of a REPL session."""

    @property
    def final(self) -> Final | None: ...
    @property
    def last_step(self) -> StepOutput | None: ...
    def run(self, code: str, timeout: float | None = None) -> StepOutput: ...


@dataclass(frozen=True, slots=True)
class LoopStep:
    """One turn, as trajectories record it.

    Attributes:
        turn: number within its session, from 1.
        depth: 0 for the run itself, 1 and more for sub-questions.
        question: what the session was asked.
        prompt_chars, prompt_tokens: size of the prompt; tokens as the model reports them, else estimated.
        reply: the model's text.
        programs: the blocks that were run, in order.
        output: what the programs printed, as it went back to the model.
        error, error_kind, error_line: what failed, or None.
        host_calls: calls of the programs as ``{name, args, result, seconds}``.
        chunks_read: ids whose content the programs read, in order, each once.
        usage, cost, model: of the turn's own completion; sub-calls are host calls.
        model_seconds, program_seconds: wall clock.
        truncated: the output was cut before it went back.
        final: this turn called FINAL.
    """

    turn: int
    depth: int
    question: str
    prompt_chars: int
    prompt_tokens: int
    reply: str
    programs: tuple[str, ...] = ()
    output: str = ""
    error: str | None = None
    error_kind: str | None = None
    error_line: int | None = None
    host_calls: tuple[dict[str, Any], ...] = ()
    chunks_read: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = None
    model: str = ""
    model_seconds: float = 0.0
    program_seconds: float = 0.0
    truncated: bool = False
    final: bool = False


_FENCE = re.compile(
    r"^[ \t]*(`{3,})[ \t]*(?:repl|python|py)[ \t]*\r?\n(.*?)(?:^[ \t]*\1`*[ \t]*$|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


def programs_in(reply: str) -> list[str]:
    """Return the ```repl and ```python blocks of a reply, in order; one left open reaches to the end."""
    return [code for _, code in _FENCE.findall(reply) if code.strip()]


_HINTS: dict[str, str] = {
    "NameError": "Define the name in this or an earlier program, or import its module.",
    "KeyError": "Print the keys: print(list(d)). A chunk's text is chunk['content'].",
    "TypeError": "read_chunk returns None for an unknown id; search gives dicts, search_chunks gives ids.",
    "AttributeError": "Chunks and hits are dicts: write hit['snippet'], not hit.snippet.",
    "IndexError": "The list may be empty: check its length first.",
    "SyntaxError": "Send the whole program again, with valid indentation and closed quotes.",
    "TimeoutError": "Do less in one program: fewer chunks, no endless loop.",
    "MemoryError": "Keep less at a time: slice texts and lists.",
    "RecursionError": "Use a loop.",
    "SandboxViolation": "Use the functions listed and plain Python only.",
}


def error_hint(error: Exception, kind: str) -> str | None:
    """Return the remedy the error brings along, or one for its kind."""
    hint: str | None = getattr(error, "hint", None)
    return hint or _HINTS.get(kind)


Done = tuple[str, StepOutput]
"""A program and what it left behind."""


def run_program(session: LoopSession, code: str) -> tuple[StepOutput | None, BudgetError | None]:
    """Run one program; a budget that ended it comes back beside what it had done until then."""
    before = session.last_step
    try:
        return session.run(code), None
    except BudgetError as error:
        # What the program did before its budget ended is evidence too.
        partial = session.last_step
        return (None if partial is before else partial), error


def make_step(
    done: Sequence[Done],
    *,
    turn: int,
    depth: int,
    question: str,
    output_chars: int,
    ended: BudgetError | None,
    final: bool,
    completion: Completion | None = None,
    prompt_chars: int = 0,
    prompt_tokens: int = 0,
) -> LoopStep:
    """Record one turn: the programs that ran, what they left, and the completion that wrote them."""
    results = [result for _, result in done]
    failed = ended or (results[-1].error if results else None)
    output, cut = clip(printed(results), output_chars)
    reply = completion or Completion("", model="host", cost=Decimal(0))
    return LoopStep(
        turn=turn,
        depth=depth,
        question=question,
        prompt_chars=prompt_chars,
        prompt_tokens=prompt_tokens if completion is None else reply.usage.input_tokens,
        reply=reply.text,
        programs=tuple(code for code, _ in done),
        output=output,
        error=str(failed) if failed is not None else None,
        error_kind=error_kind(failed) if failed is not None else None,
        error_line=getattr(failed, "line", None),
        host_calls=tuple(
            {"name": c.name, "args": c.args_preview, "result": c.result_preview, "seconds": c.seconds}
            for result in results
            for c in result.host_calls
        ),
        chunks_read=tuple(dict.fromkeys(i for result in results for i in result.chunks_read)),
        usage=reply.usage,
        cost=reply.cost,
        model=reply.model,
        model_seconds=reply.seconds,
        program_seconds=sum(result.seconds for result in results),
        truncated=cut or any(result.truncated for result in results),
        final=final,
    )


def error_kind(error: Exception) -> str:
    """Name of the error as the program would call it."""
    return str(getattr(error, "kind", None) or type(error).__name__)


def printed(done: Sequence[StepOutput]) -> str:
    """What the programs of one turn printed; the value of a last bare expression counts as printed."""
    parts = []
    for result in done:
        text = result.output
        if result.value is not None and result.error is None:
            text = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{result.value!r}"
        if text.strip():
            parts.append(text)
    return "\n".join(part.rstrip("\n") for part in parts)
