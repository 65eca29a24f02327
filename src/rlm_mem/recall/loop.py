"""The multi-turn loop: ask the model, run its program, show it the output, until FINAL or a budget's end.

The loop does not depend on where the model comes from or what the answer is for: ``REPLSession.retrieve``, nested
sub-questions, RECALL and REASON all drive their sessions through :class:`Loop`. What a program did wrong is
*recoverable*: the model is told, with the line and a hint, and corrects itself. A budget is *terminal*: it
ends the run, which keeps the evidence it has and names the budget in ``stopped_by``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlm_mem.errors import BudgetError, SandboxViolation
from rlm_mem.models.base import LLM, Completion
from rlm_mem.models.budget import Budget
from rlm_mem.recall.conversation import Conversation, Turn
from rlm_mem.recall.model_calls import admit, complete
from rlm_mem.recall.programs import programs_in
from rlm_mem.recall.prompts import SYSTEM_PROMPT, Opening, clip, feedback, no_program
from rlm_mem.recall.quoting import ShownData
from rlm_mem.recall.turn import LoopStep, ProgramResults, error_hint, first_ids, make_step, run_programs
from rlm_mem.telemetry import ObservedOperation, operation

if TYPE_CHECKING:
    from rlm_mem.config import Config
    from rlm_mem.sandbox.session import SandboxSession

__all__ = ["Loop", "LoopResult", "output_limit"]

MAX_NOT_RUN = 2
"""Replies that did not run, of a model of which none has run yet, after which a loop that hands over ends."""
MAX_NOT_RUN_IN_ALL = 4
"""The same for a model of which some did."""

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
        not_run: replies that did not run (:attr:`~rlm_mem.recall.turn.LoopStep.ran`).
        handed_over: the loop ended because its model's replies did not run.
        detail: for the record, where the answer is not by the model's own programs: ``method`` and ``note``.
    """

    answer: Any
    concluded: bool
    chunk_ids: tuple[str, ...]
    confidence: float | None
    steps: tuple[LoopStep, ...]
    evidence: tuple[str, ...]
    stopped_by: str | None = None
    not_run: int = 0
    handed_over: bool = False
    detail: dict[str, Any] = field(default_factory=dict)


class Loop:
    """Asks the model and runs what it wrote, in one session, until FINAL or the end of a budget.

    Args:
        session: a fresh sandbox session that spends from the same ``budget``.
        llm: writes the programs.
        opening: question, figures of the store and first hits.
        budget: shared by everything this run does.
        config: settings of the model (window, longest reply, time-out) and the longest output that goes back to it.
        system: instructions for the model.
        depth: nesting of ``session``; recorded, and checked against ``limits.depth``.
        hands_over: end as soon as the first two replies did not run, or four later on, for somebody else to go on.
        first_turn: number of the first turn, for the record.
        on_step: called after each turn, in the thread of the run.
        on_text: called with each piece of the model's reply as it arrives.
    """

    def __init__(
        self,
        session: SandboxSession,
        llm: LLM,
        opening: Opening,
        *,
        budget: Budget,
        config: Config,
        system: str = SYSTEM_PROMPT,
        depth: int = 0,
        hands_over: bool = False,
        first_turn: int = 1,
        on_step: Callable[[LoopStep], None] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> None:
        self._session = session
        self._llm = llm
        self._opening = opening
        self._budget = budget
        self._depth = depth
        self._hands_over = hands_over
        self._first_turn = first_turn
        self._not_run = 0
        self._on_step = on_step
        self._on_text = on_text
        window = getattr(llm, "context_tokens", None) or config.llm.context_tokens
        self._conversation = Conversation(system, opening, window, config.llm.max_tokens)
        self._output_chars = output_limit(config, window)
        self._timeout = config.llm.timeout_seconds
        self._shown = ShownData(system)
        self._shown.add(opening.render())
        self._steps: list[LoopStep] = []
        self._evidence: dict[str, None] = {}
        self._replies_without_program = 0
        self._failed_reply: str | None = None
        self._repeated = 0

    def run(self) -> LoopResult:
        """Run to the end.

        Raises:
            ModelError: the model failed; steps so far went to ``on_step``.
        """
        try:
            self._budget.enter(self._depth)
            while self._session.final is None:
                self._turn()
                most = MAX_NOT_RUN_IN_ALL if self._not_run < len(self._steps) else MAX_NOT_RUN
                if self._hands_over and self._not_run >= most and self._session.final is None:
                    return self._result(None, handed_over=True)
                if self._repeated >= MAX_REPEATS:
                    return self._result("repetition")
        except BudgetError as error:
            return self._result(error.stopped_by)
        return self._result(None)

    def _turn(self) -> None:
        """One model call and the programs it wrote; raises BudgetError after recording what was done."""
        with operation("turn") as current:
            self._budget.start_iteration()
            completion, prompt_chars, prompt_tokens = self._ask()
            if completion.text == self._failed_reply:
                self._repeated += 1
                ran = ProgramResults(refused=_repeated_reply())
            else:
                programs = programs_in(completion.text, self._session.functions)
                ran = run_programs(self._session, programs, self._shown)
            step = make_step(
                ran,
                self._session.pages,
                turn=self._first_turn + len(self._steps),
                depth=self._depth,
                question=self._opening.question,
                output_chars=self._output_chars,
                final=self._session.final is not None,
                completion=completion,
                prompt_chars=prompt_chars,
                prompt_tokens=prompt_tokens,
            )
            self._steps.append(step)
            _observe(current, step)
            self._evidence.update(dict.fromkeys(step.chunks_read))
            self._not_run += not step.ran
            if self._on_step is not None:
                self._on_step(step)
            if ran.ended is not None:
                raise ran.ended
            if completion.text != self._failed_reply:
                failed = step.error is not None or not step.programs
                self._failed_reply, self._repeated = (completion.text, 1) if failed else (None, 0)
            if not step.final:
                self._reply(step, completion, ran.error)

    def _ask(self) -> tuple[Completion, int, int]:
        """The completion of the next prompt, and the size of the prompt in characters and tokens."""
        messages = self._conversation.messages()
        prompt_tokens = self._conversation.estimate(messages)
        call = admit(self._budget, prompt_tokens, self._conversation.answer_tokens)
        completion = complete(
            self._llm,
            messages,
            self._budget,
            call,
            timeout=min(self._timeout, self._budget.remaining_seconds()),
            on_text=self._on_text,
            prompt_tokens=prompt_tokens,
        )
        return completion, sum(len(message.content) for message in messages), prompt_tokens

    def _reply(self, step: LoopStep, completion: Completion, error: Exception | None) -> None:
        """Append the turn and what is said back to the model."""
        self._shown.add(step.output)
        self._shown.add(step.error or "")
        limit = self._budget.limits.iterations
        left = None if limit is None else limit - self._budget.spent().iterations
        cut_off = completion.finish_reason == "length"
        if not step.programs and error is None:
            answer = no_program(self._replies_without_program == 0, left, cut_off)
            self._replies_without_program += 1
            summary = "a reply without a program"
        else:
            hint = error_hint(error, step.error_kind or "") if error is not None else None
            if error is not None and cut_off:
                hint = "The reply was cut off at its longest length: write a shorter program."
            answer = feedback(step.output, error=step.error, hint=hint, turns_left=left)
            summary = _summary(step)
        self._conversation.add(Turn(completion.text, answer, summary))

    def _result(self, stopped_by: str | None, *, handed_over: bool = False) -> LoopResult:
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
            not_run=self._not_run,
            handed_over=handed_over and final is None,
        )


def output_limit(config: Config, context_tokens: int) -> int:
    """Most characters of output that go back to a model for one turn, all its programs together."""
    # A quarter of the window: the output, the program and the instructions have to fit together.
    return max(400, min(config.sandbox.max_output_chars, context_tokens * 3 // 4))


def _observe(current: ObservedOperation, step: LoopStep) -> None:
    """Put the figures of a turn into its span."""
    current.set("rlm_mem.turn", step.turn)
    current.set("rlm_mem.depth", step.depth)
    current.set("rlm_mem.programs", len(step.programs))
    current.set("rlm_mem.host_calls", len(step.host_calls))
    if step.error_kind is not None:
        current.failed(step.error_kind)


class RepeatedReply(SandboxViolation):
    """A reply that was not run because it is the one that failed just before."""


def _repeated_reply() -> RepeatedReply:
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
