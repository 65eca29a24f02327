"""The multi-turn loop: ask the model, run its program, show it the output, until FINAL or a budget's end.

The loop knows neither where the model comes from nor what the answer is for: ``REPLSession.retrieve``, nested
sub-questions, RECALL and REASON all drive their sessions through :func:`drive`. What a program did wrong is
*recoverable*: the model is told, with the line and a hint, and corrects itself. A budget is *terminal*: it
ends the run, which keeps the evidence it has and names the budget in ``stopped_by``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rlm_mem.errors import BudgetError, SandboxViolation
from rlm_mem.models.base import LLM, Completion, Usage, estimate_usage
from rlm_mem.models.budget import Budget
from rlm_mem.sandbox.calls import bounded_reply
from rlm_mem.sandbox.conversation import Conversation, Turn
from rlm_mem.sandbox.programs import programs_in
from rlm_mem.sandbox.prompts import SYSTEM_PROMPT, Opening, clip, feedback, no_program
from rlm_mem.sandbox.shown import Shown
from rlm_mem.sandbox.turn import Done, LoopSession, LoopStep, error_hint, first_ids, make_step, run_program
from rlm_mem.telemetry import Operation, model_call, operation

__all__ = ["LoopResult", "LoopSession", "LoopStep", "drive"]

MAX_REPEATS = 4
"""How often one failing reply may come in a row; then the run ends, for the model will not write another."""


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
        stopped_by: the budget that ended the run, ``repetition`` when the model sent one failing reply again and
            again, or None.
    """

    answer: Any
    concluded: bool
    chunk_ids: tuple[str, ...]
    confidence: float | None
    steps: tuple[LoopStep, ...]
    evidence: tuple[str, ...]
    stopped_by: str | None = None


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
    run.shown = Shown(system)
    run.shown.add(opening.render())
    try:
        budget.enter(depth)
        while session.final is None:
            run.turn()
            if run.repeated >= MAX_REPEATS:
                return run.result("repetition")
    except BudgetError as error:
        return run.result(error.stopped_by)
    return run.result(None)


class _Run:
    """The state of one loop."""

    talk: Conversation
    output_chars: int
    timeout: float | None
    shown: Shown
    repeated: int
    """How often the last reply came, when it failed."""

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
        self._failed: str | None = None
        self.repeated = 0

    def turn(self) -> None:
        """One model call and the programs it wrote; raises BudgetError after recording what was done."""
        with operation("turn") as current:
            self._turn(current)

    def _turn(self, current: Operation) -> None:
        self._budget.start_iteration()
        completion, prompt_chars, prompt_tokens = self._ask()
        done: list[Done] = []
        ended: BudgetError | None = None
        refused: SandboxViolation | None = None
        if completion.text == self._failed:
            self.repeated += 1
            refused = _same_again()
        else:
            done, ended, refused = self._execute(programs_in(completion.text, self._session.functions))
        step = make_step(
            done,
            turn=len(self._steps) + 1,
            depth=self._depth,
            question=self._opening.question,
            output_chars=self.output_chars,
            ended=ended,
            final=self._session.final is not None,
            refused=refused,
            completion=completion,
            prompt_chars=prompt_chars,
            prompt_tokens=prompt_tokens,
        )
        self._steps.append(step)
        current.set("rlm_mem.turn", step.turn)
        current.set("rlm_mem.depth", step.depth)
        current.set("rlm_mem.programs", len(step.programs))
        current.set("rlm_mem.host_calls", len(step.host_calls))
        if step.error_kind is not None:
            current.failed(step.error_kind)
        self._evidence.update(dict.fromkeys(step.chunks_read))
        if self._on_step is not None:
            self._on_step(step)
        if ended is not None:
            raise ended
        self.shown.add(step.output)
        self.shown.add(step.error or "")
        if completion.text != self._failed:
            failed = step.error is not None or not step.programs
            self._failed, self.repeated = (completion.text, 1) if failed else (None, 0)
        self._reply(step, completion, refused or (done[-1][1].error if done else None))

    def _execute(self, programs: list[str]) -> tuple[list[Done], BudgetError | None, SandboxViolation | None]:
        """Run the programs in order up to the first that fails or was quoted, FINAL, or the end of a budget."""
        done: list[Done] = []
        for code in programs:
            refused = self.shown.refusal(code, self._session.functions)
            if refused is not None:
                return done, None, refused
            result, ended = run_program(self._session, code)
            if result is not None:
                done.append((code, result))
            if ended is not None:
                return done, ended, None
            if result is None or result.error is not None or self._session.final is not None:
                break
        return done, None, None

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
            with model_call(self._llm.name) as called:
                completion = self._llm.complete(
                    messages,
                    max_tokens=answer_tokens,
                    timeout=None if timeout == float("inf") else timeout,
                    on_text=self._on_text,
                )
                if not completion.usage.input_tokens:
                    # Steps, totals and budgets share this figure; some models report none.
                    completion = replace(completion, usage=_estimated(completion, prompt_tokens))
                completion = bounded_reply(completion)
                called.spent(completion)
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
        if not step.programs and error is None:
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
            evidence=first_ids(self._evidence),
            # A program that called FINAL has concluded, whatever ran out at the same moment.
            stopped_by=None if final is not None else stopped_by,
        )


def _estimated(completion: Completion, prompt_tokens: int) -> Usage:
    """The usage of a call whose model did not report its prompt."""
    said = completion.usage.output_tokens or estimate_usage("", completion.text).output_tokens
    return replace(completion.usage, input_tokens=prompt_tokens, output_tokens=said, estimated=True)


class RepeatedReply(SandboxViolation):
    """A reply that was not run because it is the one that failed just before."""


def _same_again() -> RepeatedReply:
    return RepeatedReply(
        "that is the reply of your last turn, which failed; it was not run again",
        hint="Write a different program: shorter, with other words, or one step of it only.",
    )


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
