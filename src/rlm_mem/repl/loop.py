"""The multi-turn loop: ask the model, run its program, show it the output, until FINAL or a budget's end.

The loop knows neither where the model comes from nor what the answer is for: ``REPLSession.retrieve``, nested
sub-questions, RECALL and REASON all drive their sessions through :func:`drive`. What a program did wrong is
*recoverable*: the model is told, with the line and a hint, and corrects itself. A budget is *terminal*: it
ends the run, which keeps the evidence it has and names the budget in ``stopped_by``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol

from rlm_mem.errors import BudgetError
from rlm_mem.llm.base import LLM, Completion, Usage
from rlm_mem.llm.budget import Budget
from rlm_mem.repl.conversation import Conversation, Turn
from rlm_mem.repl.prompts import SYSTEM_PROMPT, Opening, clip, feedback, no_program

__all__ = ["LoopResult", "LoopSession", "LoopStep", "drive", "error_hint", "programs_in"]


class CallRecord(Protocol):
    """A call that a program made to the host, as the session reports it."""

    @property
    def name(self) -> str: ...
    @property
    def args_preview(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def result_preview(self) -> str: ...


class ProgramResult(Protocol):
    """What ``session.run`` returns (``repl.session.StepOutput``)."""

    @property
    def value(self) -> Any: ...
    @property
    def output(self) -> str: ...
    @property
    def error(self) -> Exception | None: ...
    @property
    def host_calls(self) -> Sequence[CallRecord]: ...
    @property
    def chunks_read(self) -> Sequence[str]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def truncated(self) -> bool: ...


class Conclusion(Protocol):
    """The arguments of FINAL."""

    @property
    def answer(self) -> Any: ...
    @property
    def chunk_ids(self) -> Sequence[str]: ...
    @property
    def confidence(self) -> float | None: ...


class LoopSession(Protocol):
    """What the loop needs of a REPL session."""

    @property
    def final(self) -> Conclusion | None: ...
    @property
    def last_step(self) -> ProgramResult | None: ...
    def run(self, code: str, timeout: float | None = None) -> ProgramResult: ...


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


@dataclass(frozen=True)
class LoopResult:
    """How a run ended.

    Attributes:
        answer: the argument of FINAL, plain data; None when nothing was concluded or the memory lacks it.
        concluded: FINAL was called.
        chunk_ids: the chunks that FINAL named, as they were given.
        confidence: as given to FINAL, or None.
        steps: this session's turns.
        evidence: ids of the chunks that were read, in order, each once.
        stopped_by: the budget that ended the run, or None.
    """

    answer: Any
    concluded: bool
    chunk_ids: tuple[str, ...]
    confidence: float | None
    steps: tuple[LoopStep, ...]
    evidence: tuple[str, ...]
    stopped_by: str | None = None


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


def drive(
    session: LoopSession,
    llm: LLM,
    opening: Opening,
    *,
    budget: Budget,
    system: str = SYSTEM_PROMPT,
    depth: int = 0,
    context_tokens: int = 8192,
    answer_tokens: int = 1024,
    output_chars: int = 8000,
    timeout: float | None = None,
    on_step: Callable[[LoopStep], None] | None = None,
    on_text: Callable[[str], None] | None = None,
) -> LoopResult:
    """Run the loop in ``session`` until FINAL or the end of a budget.

    Args:
        session: a fresh REPL session that spends from the same ``budget``.
        llm: writes the programs.
        opening: question, figures of the store and first hits.
        budget: shared by everything this run does.
        system: instructions for the model.
        depth: nesting of ``session``; recorded, and checked against ``limits.depth``.
        context_tokens: window of the model.
        answer_tokens: longest reply asked for.
        output_chars: most characters of output that go back per turn; less where the window is small.
        timeout: seconds for one call of the model; the run's remaining time where that is less.
        on_step: called after each turn, in the thread of the run.
        on_text: called with each piece of the model's reply as it arrives.

    Raises:
        ModelError: the model failed; steps so far went to ``on_step``.
    """
    run = _Run(session, llm, opening, budget, depth, on_step, on_text)
    run.talk = Conversation(system, opening, context_tokens, answer_tokens)
    # A quarter of the window: the output, the program and the instructions have to fit together.
    run.output_chars = max(400, min(output_chars, context_tokens * 3 // 4))
    run.timeout = timeout
    try:
        budget.enter(depth)
        while session.final is None:
            run.turn()
    except BudgetError as error:
        return run.result(error.stopped_by)
    return run.result(None)


class _Run:
    """The state of one loop."""

    talk: Conversation
    output_chars: int
    timeout: float | None

    def __init__(
        self,
        session: LoopSession,
        llm: LLM,
        opening: Opening,
        budget: Budget,
        depth: int,
        on_step: Callable[[LoopStep], None] | None,
        on_text: Callable[[str], None] | None,
    ) -> None:
        self._session = session
        self._llm = llm
        self._opening = opening
        self._budget = budget
        self._depth = depth
        self._on_step = on_step
        self._on_text = on_text
        self._steps: list[LoopStep] = []
        self._evidence: dict[str, None] = {}
        self._prose = 0

    def turn(self) -> None:
        """One model call and the programs it wrote; raises BudgetError after recording what was done."""
        self._budget.start_iteration()
        completion, prompt_chars, prompt_tokens = self._ask()
        done, ended = self._execute(programs_in(completion.text))
        step = self._record(completion, done, ended, prompt_chars, prompt_tokens)
        self._steps.append(step)
        self._evidence.update(dict.fromkeys(step.chunks_read))
        if self._on_step is not None:
            self._on_step(step)
        if ended is not None:
            raise ended
        self._reply(step, completion, done[-1][1].error if done else None)

    def _execute(self, programs: list[str]) -> tuple[list[tuple[str, ProgramResult]], BudgetError | None]:
        """Run the programs in order up to the first error, FINAL or end of a budget."""
        done: list[tuple[str, ProgramResult]] = []
        for code in programs:
            try:
                result = self._session.run(code)
            except BudgetError as error:
                # What the program did before its budget ended is evidence too.
                partial = self._session.last_step
                if partial is not None and (not done or partial is not done[-1][1]):
                    done.append((code, partial))
                return done, error
            done.append((code, result))
            if result.error is not None or self._session.final is not None:
                break
        return done, None

    def _record(
        self,
        completion: Completion,
        done: list[tuple[str, ProgramResult]],
        ended: BudgetError | None,
        prompt_chars: int,
        prompt_tokens: int,
    ) -> LoopStep:
        results = [result for _, result in done]
        failed = ended or (results[-1].error if results else None)
        output, cut = clip(_printed(results), self.output_chars)
        return LoopStep(
            turn=len(self._steps) + 1,
            depth=self._depth,
            question=self._opening.question,
            prompt_chars=prompt_chars,
            prompt_tokens=completion.usage.input_tokens or prompt_tokens,
            reply=completion.text,
            programs=tuple(code for code, _ in done),
            output=output,
            error=str(failed) if failed is not None else None,
            error_kind=_kind(failed) if failed is not None else None,
            error_line=getattr(failed, "line", None),
            host_calls=tuple(
                {"name": c.name, "args": c.args_preview, "result": c.result_preview, "seconds": c.seconds}
                for result in results
                for c in result.host_calls
            ),
            chunks_read=tuple(dict.fromkeys(i for result in results for i in result.chunks_read)),
            usage=completion.usage,
            cost=completion.cost,
            model=completion.model,
            model_seconds=completion.seconds,
            program_seconds=sum(result.seconds for result in results),
            truncated=cut or any(result.truncated for result in results),
            final=self._session.final is not None,
        )

    def _ask(self) -> tuple[Completion, int, int]:
        messages = self.talk.messages()
        prompt_tokens = self.talk.estimate(messages)
        answer_tokens = self.talk.answer_tokens
        left = self._budget.remaining_tokens()
        if left is not None:
            # A short reply is better than none; below that the budget refuses the call.
            answer_tokens = max(32, min(answer_tokens, left - prompt_tokens))
        seconds = self._budget.remaining_seconds()
        timeout = seconds if self.timeout is None else min(self.timeout, seconds)
        held = self._budget.start_call(prompt_tokens + answer_tokens)
        began = time.monotonic()
        try:
            completion = self._llm.complete(
                messages,
                max_tokens=answer_tokens,
                timeout=None if timeout == float("inf") else timeout,
                on_text=self._on_text,
            )
        except BaseException:
            self._budget.cancel(held)
            raise
        self._budget.add_usage(
            completion.usage, completion.cost, model=completion.model or self._llm.name, reservation=held
        )
        if not completion.seconds:
            # Scripted and foreign models may not measure themselves.
            completion = replace(completion, seconds=time.monotonic() - began)
        return completion, sum(len(message.content) for message in messages), prompt_tokens

    def _reply(self, step: LoopStep, completion: Completion, error: Exception | None) -> None:
        """Append the turn and what is said back to the model."""
        if step.final:
            return
        limit = self._budget.limits.iterations
        left = None if limit is None else limit - self._budget.spent().iterations
        cut_off = completion.finish_reason == "length"
        if not step.programs:
            answer = no_program(self._prose == 0, left, cut_off)
            self._prose += 1
            summary = "a reply without a program"
        else:
            hint = error_hint(error, step.error_kind or "") if error is not None else None
            if error is not None and cut_off:
                hint = "The reply was cut off at its longest length: write a shorter program."
            answer = feedback(step.output, error=step.error, hint=hint, turns_left=left)
            summary = _summary(step)
        self.talk.add(Turn(completion.text, answer, summary))

    def result(self, stopped_by: str | None) -> LoopResult:
        """The run as it stands."""
        final = self._session.final
        return LoopResult(
            answer=None if final is None else final.answer,
            concluded=final is not None,
            chunk_ids=() if final is None else tuple(final.chunk_ids),
            confidence=None if final is None else final.confidence,
            steps=tuple(self._steps),
            evidence=tuple(self._evidence),
            # A program that called FINAL has concluded, whatever ran out at the same moment.
            stopped_by=None if final is not None else stopped_by,
        )


def _kind(error: Exception) -> str:
    return str(getattr(error, "kind", None) or type(error).__name__)


def _printed(done: list[ProgramResult]) -> str:
    """What the programs of one turn printed; the value of a last bare expression counts as printed."""
    parts = []
    for result in done:
        text = result.output
        if result.value is not None and result.error is None:
            text = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{result.value!r}"
        if text.strip():
            parts.append(text)
    return "\n".join(part.rstrip("\n") for part in parts)


def _summary(step: LoopStep) -> str:
    """One line that stands for a turn in a small window."""
    lines = sum(program.count("\n") + 1 for program in step.programs)
    calls = ", ".join(dict.fromkeys(f"{call['name']}({call['args']})" for call in step.host_calls))
    text = f"program of {lines} lines"
    if calls:
        text += f", called {clip(calls, 160, 'the calls')[0]}"
    if step.error is not None:
        return f"{text}; failed: {step.error[:120]}"
    return f"{text}; printed: {' '.join(step.output.split())[:160] or 'nothing'}"
