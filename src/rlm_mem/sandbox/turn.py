"""One turn of the loop: the programs of a reply, running them, and the record of what they left behind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Any, Protocol

from rlm_mem.errors import BudgetError, RlmMemError, SandboxViolation
from rlm_mem.models.base import Completion, Usage
from rlm_mem.sandbox.programs import programs_in, without_definitions
from rlm_mem.sandbox.prompts import clip
from rlm_mem.sandbox.steps import Final, StepOutput

__all__ = [
    "Done",
    "LoopSession",
    "LoopStep",
    "error_hint",
    "error_kind",
    "first_ids",
    "make_step",
    "printed",
    "programs_in",
    "run_program",
]


MAX_READ_IDS = 2_000
"""Ids of chunks read that one step, or one run, names."""


class LoopSession(Protocol):
    """What the loop needs of a REPL session."""

    @property
    def final(self) -> Final | None: ...
    @property
    def functions(self) -> frozenset[str]: ...
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
        programs: the programs that were run, in order.
        output: what the programs printed, as it went back to the model.
        error, error_kind, error_line: what failed, or None.
        host_calls: calls of the programs as ``{name, args, result, seconds}``.
        chunks_read: ids whose content the programs read, in order, each once, at most the first 2,000.
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
    """Run one program; a budget that ended it comes back beside what it had done until then.

    Definitions of what the session provides are left out, and the output says so: small models repeat what they
    were told exists, and mean to call it.
    """
    before = session.last_step
    code, dropped = without_definitions(code, session.functions)
    names = ", ".join(dropped)
    if dropped and not code.strip():
        nothing = SandboxViolation(
            f"there was nothing to run: {names[:200]} is provided by the sandbox and cannot be defined",
            hint="Call the functions as they are, with your own words as arguments.",
        )
        return StepOutput(error=nothing), None
    try:
        step = session.run(code)
        if dropped:
            note = f"[left out: your own {names[:200]}; the sandbox provides it, call it as it is]"
            step.output = f"{note}\n{step.output}"
        return step, None
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
    refused: RlmMemError | None = None,
    completion: Completion | None = None,
    prompt_chars: int = 0,
    prompt_tokens: int = 0,
) -> LoopStep:
    """Record one turn: the programs that ran, what they left, and the completion that wrote them.

    Args:
        refused: why a program of the reply was not run.
    """
    results = [result for _, result in done]
    failed = ended or refused or (results[-1].error if results else None)
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
        chunks_read=first_ids(dict.fromkeys(i for result in results for i in result.chunks_read)),
        usage=reply.usage,
        cost=reply.cost,
        model=reply.model,
        model_seconds=reply.seconds,
        program_seconds=sum(result.seconds for result in results),
        truncated=cut or any(result.truncated for result in results),
        final=final,
    )


def first_ids(chunk_ids: Iterable[str]) -> tuple[str, ...]:
    """The ids, at most the first 2,000: a program may read a whole memory, and a record must stay small."""
    return tuple(islice(chunk_ids, MAX_READ_IDS))


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
