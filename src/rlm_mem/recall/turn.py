"""One turn of the loop: the programs of a reply, running them, and the record of what they left behind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any

from rlm_mem.errors import BudgetError, RlmMemError, SandboxViolation
from rlm_mem.models.base import Completion, Usage
from rlm_mem.recall.programs import without_definitions
from rlm_mem.sandbox.pages import Pages
from rlm_mem.sandbox.steps import StepOutput

if TYPE_CHECKING:
    from rlm_mem.recall.quoting import ShownData
    from rlm_mem.sandbox.session import SandboxSession

__all__ = ["LoopStep", "ProgramResults", "error_hint", "first_ids", "make_step", "run_programs"]

MAX_READ_IDS = 2_000
"""Ids of chunks read that one step, or one run, names."""


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
        scaffolded: the programs are built in; the model only read what they found (:mod:`rlm_mem.recall.scaffold`).
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
    scaffolded: bool = False

    @property
    def ran(self) -> bool:
        """Whether a program of the reply came to its end, or as far as a call of a function."""
        return len(self.programs) > 1 or (
            bool(self.programs) and (self.error is None or bool(self.host_calls))
        )


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


@dataclass(slots=True)
class ProgramResults:
    """What became of the programs of one reply.

    Attributes:
        done: the programs that ran, each with what it left behind.
        ended: the budget that ended the last of them, or None.
        refused: why the program after these was not run, or None.
    """

    done: list[tuple[str, StepOutput]] = field(default_factory=list)
    ended: BudgetError | None = None
    refused: SandboxViolation | None = None

    @property
    def error(self) -> RlmMemError | None:
        """What failed, if anything did."""
        return self.ended or self.refused or (self.done[-1][1].error if self.done else None)


def run_programs(
    session: SandboxSession, programs: Iterable[str], shown: ShownData | None = None
) -> ProgramResults:
    """Run programs in order up to the first that fails or was quoted, FINAL, or the end of a budget.

    Definitions of what the session provides are left out, and the output says so: small models repeat what they
    were told exists, and mean to call it.

    Args:
        shown: data that the model was shown, which a program must not stand in; None does not look.
    """
    ran = ProgramResults()
    for program in programs:
        if shown is not None:
            ran.refused = shown.refusal(program, session.functions)
            if ran.refused is not None:
                break
        code, dropped = without_definitions(program, session.functions)
        names = ", ".join(dropped)[:200]
        before = session.last_step
        if dropped and not code.strip():
            result = StepOutput(error=_nothing_to_run(names))
        else:
            try:
                result = session.run(code)
            except BudgetError as error:
                ran.ended = error
                if session.last_step is None or session.last_step is before:
                    break
                # What the program did before its budget ended is evidence too.
                result = session.last_step
            else:
                if dropped:
                    note = f"[left out: your own {names}; the sandbox provides it, call it as it is]"
                    result.printed = f"{note}\n{result.printed}"
        ran.done.append((program, result))
        if ran.error is not None or session.final is not None:
            break
    return ran


def _nothing_to_run(names: str) -> SandboxViolation:
    return SandboxViolation(
        f"there was nothing to run: {names} is provided by the sandbox and cannot be defined",
        hint="Call the functions as they are, with your own words as arguments.",
    )


def make_step(
    ran: ProgramResults,
    pages: Pages,
    *,
    turn: int,
    depth: int,
    question: str,
    output_chars: int,
    final: bool,
    completion: Completion | None = None,
    prompt_chars: int = 0,
    prompt_tokens: int = 0,
    scaffolded: bool = False,
    unusable: str | None = None,
) -> LoopStep:
    """Record one turn: what its programs left behind, and the completion that wrote them (None: the host did).

    Args:
        pages: of the session; an output of more than ``output_chars`` characters goes there.
        unusable: why a reply without a program could not be used.
    """
    results = [result for _, result in ran.done]
    failed = ran.error
    output, cut = pages.first(_printed(results), output_chars)
    reply = completion or Completion("", model="host", cost=Decimal(0))
    return LoopStep(
        turn=turn,
        depth=depth,
        question=question,
        prompt_chars=prompt_chars,
        prompt_tokens=prompt_tokens if completion is None else reply.usage.input_tokens,
        reply=reply.text,
        programs=tuple(code for code, _ in ran.done),
        output=output,
        error=str(failed) if failed is not None else unusable,
        error_kind=_error_kind(failed) if failed is not None else "UnusableReply" if unusable else None,
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
        scaffolded=scaffolded,
    )


def first_ids(chunk_ids: Iterable[str]) -> tuple[str, ...]:
    """The ids, at most the first 2,000: a program may read a whole memory, and a record must stay small."""
    return tuple(islice(chunk_ids, MAX_READ_IDS))


def _error_kind(error: Exception) -> str:
    """Name of the error as the program would call it."""
    return str(getattr(error, "kind", None) or type(error).__name__)


def _printed(done: Sequence[StepOutput]) -> str:
    """What the programs of one turn printed; the value of a last bare expression counts as printed."""
    parts = []
    for result in done:
        text = result.printed
        if result.value is not None and result.error is None:
            # A text of several lines is shown as one would print it.
            lines = isinstance(result.value, str) and "\n" in result.value
            value = result.value if lines else repr(result.value)
            text = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{value}"
        if text.strip():
            parts.append(text)
    return "\n".join(part.rstrip("\n") for part in parts)
