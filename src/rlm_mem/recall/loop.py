"""The multi-turn loop: ask the model, run its program, return the output, until FINAL or the end of a budget.

``REPLSession.retrieve``, nested sub-questions, RECALL and REASON all drive their sessions through :class:`Loop`. An
error in a program is *recoverable*: the model gets it with the line and a hint, and corrects itself. A budget is
*terminal*: it ends the run, which keeps its evidence and names the budget in ``stopped_by``.

A model may name chunks and a confidence when it calls FINAL. If it does not, both are derived from the words that
the chunks read by its programs share with the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import field

from rlm_mem.chunk import Chunk, is_chunk_id
from rlm_mem.errors import BudgetError, ModelTimeout, RlmMemError, SandboxViolation
from rlm_mem.models.base import LLM, Budget, Completion, Message, Usage
from rlm_mem.recall.conversation import Conversation, Turn
from rlm_mem.recall.model_calls import admit, complete
from rlm_mem.recall.opening import Opening
from rlm_mem.recall.programs import ShownData, is_fixed_answer, programs_in, without_definitions
from rlm_mem.recall.prompts import SYSTEM_PROMPT, clip, feedback, no_program
from rlm_mem.record import FrozenRecord, MutableRecord
from rlm_mem.sandbox.session import SandboxSession
from rlm_mem.sandbox.values import Final, StepOutput
from rlm_mem.telemetry import ObservedOperation, operation
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.patterns import late

if TYPE_CHECKING:
    from rlm_mem.config import Config
    from rlm_mem.store.core.chunk_store import ChunkStore

MAX_READ_IDS = 2_000
"""Most ids of read chunks that one step or one run records."""


class LoopStep(FrozenRecord, frozen=True):
    """One turn, as recorded in trajectories.

    Attributes:
        turn: number within its session, from 1.
        depth: 0 for the run itself, 1 and more for sub-questions.
        question: the session's question.
        prompt_chars, prompt_tokens: size of the prompt; tokens as the model reports them, else estimated.
        reply: the model's text.
        programs: the programs that were run, in order.
        output: what the programs printed, as the model received it.
        error, error_kind, error_line: what failed, or None.
        host_calls: calls of the programs as ``{name, args, result, seconds}``.
        chunks_read: ids whose content the programs read, in order, without duplicates, at most the first 2,000.
        usage, cost, model: of the turn's own completion; sub-calls are host calls.
        model_seconds, program_seconds: wall clock.
        truncated: the output was cut for the model.
        final: this turn called FINAL.
        scaffolded: the programs are built in; the model only read their output (:mod:`rlm_mem.recall.scaffold`).
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
        """Whether a program of the reply ended without an error, or at least called a function."""
        return len(self.programs) > 1 or (
            bool(self.programs) and (self.error is None or bool(self.host_calls))
        )


class ProgramResults(MutableRecord):
    """The results of the programs of one reply.

    Attributes:
        done: the programs that ran, each with its output.
        ended: error of the budget that ended the last program, or None.
        refused: why the next program was not run, or None.
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
    """Run programs in order until one fails, is refused or calls FINAL, or a budget is used up.

    An answer that was written before the output of the same reply's programs could be read is refused.

    Definitions of functions that the session provides are removed, with a note in the output: small models repeat
    them instead of calling them.

    Args:
        shown: data that the model was shown; a program found in it is refused. None: nothing is refused.
    """
    results = ProgramResults()
    for program in programs:
        if shown is not None:
            results.refused = shown.refusal(program, session.functions)
            if results.refused is None and is_fixed_answer(program):
                results.refused = _unread(results)
            if results.refused is not None:
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
                results.ended = error
                if session.last_step is None or session.last_step is before:
                    break
                # What the program read before its budget ended is evidence, too.
                result = session.last_step
            else:
                if dropped:
                    note = f"[left out: your own {names}; the sandbox provides it, call it as it is]"
                    result.printed = f"{note}\n{result.printed}"
        results.done.append((program, result))
        if results.error is not None or session.final is not None:
            break
    return results


def _unread(results: ProgramResults) -> SandboxViolation | None:
    """The error for a fixed answer after programs of the same reply, None if these printed nothing."""
    if not any(result.printed for _, result in results.done):
        return None
    return SandboxViolation(
        "FINAL was not called: the answer was written before the output of this reply was read",
        hint="read that output, and call FINAL in a reply of its own",
    )


def _nothing_to_run(names: str) -> SandboxViolation:
    return SandboxViolation(
        f"there was nothing to run: {names} is provided by the sandbox and cannot be defined",
        hint="call the functions as they are, with your own words as arguments",
    )


def make_step(
    session: SandboxSession,
    results: ProgramResults,
    *,
    turn: int,
    depth: int,
    question: str,
    output_chars: int,
    completion: Completion | None = None,
    prompt_chars: int = 0,
    prompt_tokens: int = 0,
    scaffolded: bool = False,
    unusable: str | None = None,
) -> LoopStep:
    """Make the record of one turn: its programs, their results, and the completion (None: the host wrote them).

    Args:
        session: ran the programs; an output of more than ``output_chars`` characters is divided into its pages.
        unusable: why a reply without a program could not be used.
    """
    outputs = [result for _, result in results.done]
    failed = results.error
    output, truncated = session.pages.first(_printed(outputs), output_chars)
    reply = completion or Completion("", model="host", cost=Decimal(0))
    return LoopStep(
        turn=turn,
        depth=depth,
        question=question,
        prompt_chars=prompt_chars,
        prompt_tokens=prompt_tokens if completion is None else reply.usage.input_tokens,
        reply=reply.text,
        programs=tuple(code for code, _ in results.done),
        output=output,
        error=str(failed) if failed is not None else unusable,
        # The name by which programs know the error.
        error_kind=str(getattr(failed, "kind", None) or type(failed).__name__)
        if failed is not None
        else ("UnusableReply" if unusable else None),
        error_line=getattr(failed, "line", None),
        host_calls=tuple(
            {"name": c.name, "args": c.args_preview, "result": c.result_preview, "seconds": c.seconds}
            for result in outputs
            for c in result.host_calls
        ),
        chunks_read=first_ids(dict.fromkeys(i for result in outputs for i in result.chunks_read)),
        usage=reply.usage,
        cost=reply.cost,
        model=reply.model,
        model_seconds=reply.seconds,
        program_seconds=sum(result.seconds for result in outputs),
        truncated=truncated or any(result.truncated for result in outputs),
        final=session.final is not None,
        scaffolded=scaffolded,
    )


def first_ids(chunk_ids: Iterable[str]) -> tuple[str, ...]:
    """The first 2,000 ids: a program may read a whole memory, and a record must stay small."""
    return tuple(islice(chunk_ids, MAX_READ_IDS))


def _printed(done: Sequence[StepOutput]) -> str:
    """What the programs of one turn printed; the value of a last bare expression counts as printed."""
    parts = []
    for result in done:
        text = result.printed
        if result.value is not None and result.error is None:
            # A text of several lines is shown as by print().
            lines = isinstance(result.value, str) and "\n" in result.value
            value = result.value if lines else repr(result.value)
            text = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{value}"
        if text.strip():
            parts.append(text)
    return "\n".join(part.rstrip("\n") for part in parts)


_MAX_CONFIDENCE = 0.95  # word overlap never proves an answer
_MAX_CITED = 10


def answer_text(answer: Any) -> tuple[str | None, list[str]]:
    """Return the argument of FINAL as text, and the ids of the chunks in it; a blank text is no answer.

    A chunk, hit, passage or turn becomes its text, since programs do call ``FINAL`` with one; a list of them
    becomes their texts, separated by blank lines; other plain data becomes JSON.
    """
    if answer is None:
        return None, []
    if isinstance(answer, str):
        return (answer if answer.strip() else None), []
    rows = answer if isinstance(answer, list) else [answer]
    found = [row for row in map(_row, rows) if row is not None]
    if found and len(found) == len(rows):
        return "\n\n".join(text for text, _ in found), [chunk_id for _, chunk_id in found]
    return json.dumps(answer, ensure_ascii=False, default=str), []


_SAYS_NOTHING = late(
    r"(?:null|none|n/?a|unknown|no answer|not (?:held|found|mentioned|stated|given|specified|known|available)|"
    r"[^.!?;:,\n]{1,80} (?:is|are|was|were) not (?:found|mentioned|stated|specified)"
    r"(?: (?:in|by|anywhere|here)\b[^.!?;:,\n]{0,60})?|"
    r"(?:i|we) (?:do not|don't|cannot|can't) (?:know|say|tell|find|answer)\b.*|"
    r"(?:(?:it|this|that|the (?:passages?|text|memory|answer)) )?(?:(?:is|are|do|does) not|(?:is|do|does)n't) "
    r"(?:say|hold|contain|mention|state|give|provide|specify|held|contained|mentioned|stated|given|provided|specified|"
    r"known|clear|available)\b.*)[.!]?\Z",
    re.IGNORECASE | re.DOTALL,
)


def says_nothing(answer: str) -> bool:
    """Whether an answer only says, in English, that there is none, such as "The port is not mentioned."."""
    return _SAYS_NOTHING.match(answer.strip()) is not None


def existing(store: ChunkStore, chunk_ids: Iterable[Any]) -> dict[str, Chunk]:
    """The chunks among ``chunk_ids`` that are in the store, in the order given; a model may invent ids."""
    wanted = [item for item in dict.fromkeys(chunk_ids) if is_chunk_id(item)]
    found = store.get_many(wanted, track=False)
    return {chunk_id: found[chunk_id] for chunk_id in wanted if chunk_id in found}


def supporting(store: ChunkStore, answer: str, read: Iterable[str]) -> dict[str, Chunk]:
    """The chunks in ``read`` that share terms with the answer, largest share first, at most ten.

    A chunk counts if it has at least half as many of the answer's terms as the best one.
    """
    chunks = existing(store, read)
    shares = {chunk_id: _share(store, answer, chunk.content) for chunk_id, chunk in chunks.items()}
    best = max(shares.values(), default=0.0)
    if best == 0.0:
        return {}
    chosen = sorted((c for c in shares if shares[c] >= best / 2), key=lambda c: -shares[c])
    return {chunk_id: chunks[chunk_id] for chunk_id in chosen[:_MAX_CITED]}


def confidence_of(store: ChunkStore, answer: str, chunks: Mapping[str, Chunk]) -> float:
    """Confidence, 0 to 0.95, for an answer whose model gave none.

    The share of the answer's terms that occur in ``chunks``, times the mean of 1 and the mean confidence stored with
    these chunks; 0 without chunks.
    """
    if not chunks:
        return 0.0
    share = _share(store, answer, "\n".join(chunk.content for chunk in chunks.values()))
    stored = sum(chunk.metadata.confidence for chunk in chunks.values()) / len(chunks)
    return round(min(_MAX_CONFIDENCE, share * (1 + stored) / 2), 3)


def _share(store: ChunkStore, answer: str, text: str) -> float:
    analyser = get_analyser(store.config.search.language)
    terms = set(analyser.terms(answer))
    if not terms:
        # "Yes", "7" or only stop words: look for the text itself.
        return 1.0 if answer.strip() and answer.strip().lower() in text.lower() else 0.0
    return len(terms & set(analyser.terms(text))) / len(terms)


def _row(value: Any) -> tuple[str, str] | None:
    """Text and id of a chunk, hit, passage or turn, as the functions of programs return it; None for other data."""
    if not isinstance(value, dict):
        return None
    chunk_id = value.get("chunk_id") or value.get("id")
    text = next((value[name] for name in ("content", "text", "snippet") if name in value), None)
    if isinstance(chunk_id, str) and chunk_id.startswith("chunk-") and isinstance(text, str):
        return text, chunk_id
    return None


MAX_NOT_RUN = 2
"""Number of replies that did not run after which a loop with ``hands_over`` ends, if none has run."""
MAX_NOT_RUN_TOTAL = 4
"""The same if a reply has run."""
NOT_RUN = "the model's programs did not run"
_REPEATED_REPLY = "the model repeated a reply that had failed or brought nothing new"

NO_TIME = 1.0
"""Seconds left of a run in which no further reply is expected."""
MAX_REPEATS = 4
"""Number of equal fruitless replies in a row that end a run, since the model will not change them."""


class LoopResult(FrozenRecord, frozen=True):
    """How a run ended.

    Attributes:
        answer: the argument of FINAL, plain data; None when nothing was concluded or the memory has no answer.
        concluded: FINAL was called.
        chunk_ids: ids of chunks as given to FINAL.
        confidence: as given to FINAL, or None.
        suggestion: without an answer, the likeliest one, as given to FINAL.
        steps: this session's turns.
        stopped_by: the budget that ended the run, ``repetition`` when the model sent one fruitless reply four times
            in a row, or None.
        handed_over: why the loop ended for another method to take over; empty if it did not.
        detail: ``method`` and ``note`` for the record, if the answer is not from the model's own programs.
    """

    answer: Any
    concluded: bool
    chunk_ids: tuple[str, ...]
    confidence: float | None
    steps: tuple[LoopStep, ...]
    stopped_by: str | None = None
    handed_over: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    suggestion: str | None = None

    @property
    def evidence(self) -> tuple[str, ...]:
        """Ids of the chunks that were read, in order, without duplicates."""
        return first_ids(dict.fromkeys(i for step in self.steps for i in step.chunks_read))

    @property
    def failed(self) -> int:
        """Number of turns that ended with an error."""
        return sum(step.error is not None for step in self.steps)

    @property
    def not_run(self) -> int:
        """Number of replies that did not run."""
        return _not_run(self.steps)

    @classmethod
    def of(cls, final: Final | None, *, stopped_by: str | None = None, **fields: Any) -> LoopResult:
        """Make the result of a run that ended with ``final``, or was stopped (None).

        A run whose program called FINAL has concluded, even if a budget ended at the same moment.
        """
        if final is None:
            return cls(None, False, (), None, stopped_by=stopped_by, **fields)
        cited = tuple(final.chunk_ids)
        return cls(final.answer, True, cited, final.confidence, suggestion=final.suggestion, **fields)


def _not_run(steps: Sequence[LoopStep]) -> int:
    return sum(not step.ran for step in steps)


class Turns(MutableRecord):
    """A model, the session that runs programs for it, and their turns so far.

    Args:
        session: a fresh sandbox session that spends from the same ``budget``; its settings are used.
        llm: the model.
        opening: question, figures of the store and first hits.
        budget: shared by everything this run does.
        depth: nesting of ``session``; recorded, and checked against ``limits.depth``.
        first: number of the first turn, for the record.
        on_step: called after each turn, in the thread of the run.
        on_text: called with each piece of the model's reply as it arrives.
    """

    session: SandboxSession
    llm: LLM
    opening: Opening
    budget: Budget
    depth: int = 0
    first: int = 1
    on_step: Callable[[LoopStep], None] | None = None
    on_text: Callable[[str], None] | None = None
    steps: list[LoopStep] = field(default_factory=list)

    @property
    def window(self) -> int:
        """Tokens of the model's context window."""
        return getattr(self.llm, "context_tokens", None) or self.session.config.llm.context_tokens

    @property
    def output_chars(self) -> int:
        """Most characters of output that the model gets for one turn."""
        return output_limit(self.session.config, self.window)

    def ask(
        self,
        messages: Sequence[Message],
        prompt_tokens: int,
        answer_tokens: int,
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """The model's reply, charged to the budget; tokens are estimated."""
        return complete(
            self.llm,
            messages,
            self.budget,
            admit(self.budget, prompt_tokens, answer_tokens),
            timeout=min(self.session.config.llm.timeout_seconds, self.budget.remaining_seconds()),
            on_text=self.on_text,
            prompt_tokens=prompt_tokens,
            json_schema=json_schema,
        )

    def add(self, results: ProgramResults, completion: Completion, **about: Any) -> LoopStep:
        """Add the turn of a reply and its programs; ``about``: further arguments of ``make_step``."""
        step = make_step(
            self.session,
            results,
            turn=self.first + len(self.steps),
            depth=self.depth,
            question=self.opening.question,
            output_chars=self.output_chars,
            completion=completion,
            **about,
        )
        self.steps.append(step)
        return step

    def report(self, step: LoopStep) -> None:
        """Pass a turn to whoever follows the run."""
        if self.on_step is not None:
            self.on_step(step)


class Loop:
    """Asks the model and runs its programs, in one session, until FINAL or the end of a budget.

    Args:
        turns: the model and its session.
        system: instructions for the model.
        hands_over: end when the first two replies, or four in total, did not run, a fruitless one was repeated, or
            two replies had the same results as before, so that another method can take over.
        untrusted: describes the untrusted chunks among those that a program read, for the message after it.
    """

    def __init__(
        self,
        turns: Turns,
        *,
        system: str = SYSTEM_PROMPT,
        hands_over: bool = False,
        untrusted: Callable[[Sequence[str]], str] = lambda _: "",
    ) -> None:
        self._turns = turns
        self._session = turns.session
        self._budget = turns.budget
        self._steps = turns.steps
        self._hands_over = hands_over
        self._untrusted = untrusted
        max_tokens = turns.session.config.llm.max_tokens
        self._conversation = Conversation(system, turns.opening, turns.window, max_tokens)
        self._shown = ShownData(system)
        self._shown.add(turns.opening.render())
        self._replies_without_program = 0
        self._fruitless: str | None = None
        self._in_circles = 0
        self._repeated = 0

    def run(self) -> LoopResult:
        """Run to the end.

        Raises:
            ModelError: the model failed; steps so far went to ``on_step``.
        """
        try:
            self._budget.enter(self._turns.depth)
            while self._session.final is None:
                self._turn()
                not_run = _not_run(self._steps)
                limit = MAX_NOT_RUN_TOTAL if not_run < len(self._steps) else MAX_NOT_RUN
                circling = self._repeated > 1 or self._in_circles > 1
                reason = NOT_RUN if not_run >= limit else _REPEATED_REPLY if circling else ""
                if self._hands_over and reason and self._session.final is None:
                    return self._result(None, handed_over=reason)
                if self._repeated >= MAX_REPEATS:
                    return self._result("repetition")
        except BudgetError as error:
            return self._result(error.stopped_by)
        return self._result(None)

    def _turn(self) -> None:
        """Make one model call and run the programs of its reply; a BudgetError is raised after recording the turn."""
        with operation("turn") as current:
            self._budget.start_iteration()
            completion, prompt_chars, prompt_tokens = self._ask()
            if completion.text == self._fruitless:
                self._repeated += 1
                results = ProgramResults(refused=_repeated_reply())
            else:
                programs = programs_in(completion.text, self._session.functions)
                results = run_programs(self._session, programs, self._shown)
            step = self._turns.add(
                results, completion, prompt_chars=prompt_chars, prompt_tokens=prompt_tokens
            )
            _observe(current, step)
            self._turns.report(step)
            if results.ended is not None:
                raise results.ended
            if completion.text != self._fruitless:
                # The same program may print something else.
                repeated = any(
                    (one.reply, one.output, one.error) == (step.reply, step.output, step.error)
                    for one in self._steps[:-1]
                )
                self._in_circles += repeated
                fruitless = repeated or step.error is not None or not step.programs
                self._fruitless, self._repeated = (completion.text, 1) if fruitless else (None, 0)
            if not step.final:
                self._reply(step, completion, results.error)

    def _ask(self) -> tuple[Completion, int, int]:
        """The completion of the next prompt, and the size of the prompt in characters and tokens."""
        messages = self._conversation.messages()
        prompt_tokens = self._conversation.estimate(messages)
        try:
            completion = self._turns.ask(messages, prompt_tokens, self._conversation.answer_tokens)
        except ModelTimeout as error:
            if self._budget.remaining_seconds() > NO_TIME or not any(step.ran for step in self._steps):
                raise
            # The time of the run has ended, too, and what its programs have read remains.
            raise BudgetError(str(error), stopped_by="seconds") from error
        return completion, sum(len(message.content) for message in messages), prompt_tokens

    def _reply(self, step: LoopStep, completion: Completion, error: RlmMemError | None) -> None:
        """Append the turn and the message to the model after it."""
        self._shown.add(step.output)
        self._shown.add(step.error or "")
        turns_left = self._budget.remaining_iterations()
        cut_off = completion.finish_reason == "length"
        if not step.programs and error is None:
            answer = no_program(self._replies_without_program == 0, turns_left, cut_off)
            self._replies_without_program += 1
            summary = "a reply without a program"
        else:
            hint = error.hint if error is not None else None
            if error is not None and cut_off:
                hint = "The reply was cut off at its longest length: write a shorter program."
            answer = feedback(
                step.output,
                error=step.error,
                hint=hint,
                turns_left=turns_left,
                untrusted=self._untrusted(step.chunks_read),
                cut=self._session.cut_lists.remark(),
            )
            summary = _summary(step)
        self._conversation.add(Turn(completion.text, answer, summary))

    def _result(self, stopped_by: str | None, *, handed_over: str = "") -> LoopResult:
        """The result of the run so far."""
        return LoopResult.of(
            self._session.final, steps=tuple(self._steps), stopped_by=stopped_by, handed_over=handed_over
        )


def output_limit(config: Config, context_tokens: int) -> int:
    """Most characters of output returned to a model for one turn, for all its programs together."""
    # A quarter of the window, at 3 characters per token: output, program and instructions must fit together.
    return max(400, min(config.sandbox.max_output_chars, context_tokens * 3 // 4))


def _observe(current: ObservedOperation, step: LoopStep) -> None:
    """Record the figures of a turn in its span."""
    current.set("rlm_mem.turn", step.turn)
    current.set("rlm_mem.depth", step.depth)
    current.set("rlm_mem.programs", len(step.programs))
    current.set("rlm_mem.host_calls", len(step.host_calls))
    if step.error_kind is not None:
        current.failed(step.error_kind)


class RepeatedReply(SandboxViolation):
    """A reply that was not run because it repeats the one that just failed."""


def _repeated_reply() -> RepeatedReply:
    return RepeatedReply(
        "that is the reply of your last turn, which failed or brought nothing new; it was not run again",
        hint="write a different program: shorter, with other words, or one step of it only",
    )


def _summary(step: LoopStep) -> str:
    """The line that replaces a turn in a small window."""
    lines = sum(program.count("\n") + 1 for program in step.programs)
    calls = ", ".join(dict.fromkeys(f"{call['name']}({call['args']})" for call in step.host_calls))
    text = f"program of {lines} lines"
    if calls:
        text += f", called {clip(calls, 160, 'the calls')[0]}"
    if step.error is not None:
        return f"{text}; failed: {step.error[:120]}"
    return f"{text}; printed: {' '.join(step.output.split())[:160] or 'nothing'}"
