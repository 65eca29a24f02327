"""Replay the programs of a recorded trajectory on the present store, and show the differences.

Sub-calls are answered with the replies recorded for the same prompt, sub-questions with the recorded programs of
that question, so a replay needs no model, costs nothing and differs only where the store does.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict, deque
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Unpack

from rlm_mem.chunk import format_time
from rlm_mem.errors import BudgetError, ModelUnavailable
from rlm_mem.models.base import Budget, Completion, Limits, Options, Prompt, as_messages, render_prompt
from rlm_mem.recall.loop import LoopStep, answer_text, make_step, output_limit, run_programs
from rlm_mem.recall.programs import QuotedProgram
from rlm_mem.recall.result_schema import ResultSchema
from rlm_mem.recall.running import Runner
from rlm_mem.recall.trajectory import SubCall, Trajectory, load_trajectory, prompt_key
from rlm_mem.sandbox.values import Final
from rlm_mem.text.secrets import redact
from rlm_mem.text.sequences import opcodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlm_mem.config import Config
    from rlm_mem.sandbox.session import SandboxSession
    from rlm_mem.store.core.chunk_store import ChunkStore

_ID = re.compile(r"chunk-[A-Za-z0-9][A-Za-z0-9_-]{0,119}+")


@dataclass(frozen=True)
class ReplayStep:
    """One turn as recorded and as replayed.

    Attributes:
        then, now: the recorded and the replayed step.
        same: output, error, chunks read and ``final`` are equal.
        diff: lines of a unified diff of the outputs, without headers; empty if they are equal.
        chunks_missing: read in the recording only.
        chunks_new: read in the replay only.
    """

    then: LoopStep
    now: LoopStep
    same: bool
    diff: tuple[str, ...]
    chunks_missing: tuple[str, ...]
    chunks_new: tuple[str, ...]


@dataclass(frozen=True)
class Replay:
    """A whole run as recorded and as replayed.

    Attributes:
        same: every step, the number of steps and the answer are equal.
        content_then, content_now: the answers, else the suggestions; None without either.
        chunk_ids_then, chunk_ids_now: the chunks that FINAL named.
        stopped_by: the budget that ended the replay, or None.
    """

    trajectory: Trajectory
    replayed_at: str
    steps: tuple[ReplayStep, ...]
    same: bool
    content_then: str | None
    content_now: str | None
    chunk_ids_then: tuple[str, ...]
    chunk_ids_now: tuple[str, ...]
    stopped_by: str | None = None


def replay(
    store: ChunkStore, trajectory: Trajectory | str, *, functions: Any = None, limits: Limits | None = None
) -> Replay:
    """Run a trajectory's programs again.

    Args:
        store: the present store.
        trajectory: a trajectory or its id; ``"last"`` names the newest.
        functions: further host functions that the programs used, if any.
        limits: budgets of the replay; None: the configured seconds and depth only.

    Raises:
        NotFoundError: there is no such trajectory.
    """
    recorded = load_trajectory(store, trajectory) if isinstance(trajectory, str) else trajectory
    view = store if recorded.as_of is None else store.held_at(recorded.as_of)
    replayer = Replayer(view, recorded, functions, limits)
    stopped_by: str | None = None
    try:
        final = replayer.play(recorded.query, 0)
    except BudgetError as error:
        final, stopped_by = replayer.final, error.stopped_by
    # A sub-question's steps come before the turn that asked it, as in the recording.
    steps = tuple(replayer.steps)
    outcome = recorded.outcome
    earlier = (
        (outcome.content or outcome.suggestion, outcome.chunk_ids) if outcome is not None else (None, ())
    )
    content, answer_ids = answer_text(_recorded_content(final.answer) if final is not None else None)
    cited = tuple(dict.fromkeys([*(final.chunk_ids if final is not None else ()), *answer_ids]))
    # Only the text given to FINAL is compared: recorded chunks may be derived, or no longer exist.
    text = content if content is not None or final is None else final.suggestion
    content = None if text is None else redact(text)
    return Replay(
        trajectory=recorded,
        replayed_at=format_time(store.clock()),
        steps=steps,
        same=all(step.same for step in steps)
        and len(steps) == sum(1 for step in recorded.steps if step.programs)
        and content == earlier[0],
        content_then=earlier[0],
        content_now=content,
        chunk_ids_then=earlier[1],
        chunk_ids_now=cited,
        stopped_by=stopped_by,
    )


class RecordedReplies:
    """A model that answers a prompt with the reply recorded for the same prompt."""

    name = "recorded"

    def __init__(self, calls: list[SubCall]) -> None:
        self._lock = threading.Lock()
        self._replies: dict[str, deque[SubCall]] = defaultdict(deque)
        for call in calls:
            self._replies[call.key].append(call)

    def complete(self, messages: Prompt, **_options: Unpack[Options]) -> Completion:
        """Return the recorded reply, in the order of recording if a prompt was sent more than once."""
        key = prompt_key(render_prompt(as_messages(messages)))
        with self._lock:
            queue = self._replies.get(key)
            call = queue.popleft() if queue else None
        if call is None:
            raise ModelUnavailable(
                "no reply is recorded for this prompt, since a memory that it quotes has changed",
                hint="run the recall again with a model to see today's answer",
            )
        if call.error is not None:
            raise ModelUnavailable(f"the recorded call failed: {call.error}")
        return Completion(call.reply, call.usage, model=call.model, provider="recorded", cost=Decimal(0))


class Replayer:
    """One replay; subclasses can open other sessions and inspect each turn.

    Attributes:
        steps: the compared steps, in the order in which they ended.
        final: the arguments of FINAL in the run itself, or None.
    """

    def __init__(
        self,
        store: ChunkStore,
        recorded: Trajectory,
        functions: Any,
        limits: Limits | None,
        config: Config | None = None,
    ) -> None:
        self.steps: list[ReplayStep] = []
        self.final: Final | None = None
        self._llm = RecordedReplies(recorded.calls)
        self._runner = Runner(store, self._llm, config=config, functions=functions, engine=recorded.engine)
        settings = self._runner.config
        self._output_chars = output_limit(settings, settings.llm.context_tokens)
        self._budget = Budget(
            limits
            or Limits(
                iterations=None,
                depth=settings.recall.max_depth,
                seconds=settings.recall.max_seconds,
                model_calls=None,
            )
        )
        self._runs = _steps_by_session(recorded.steps)
        self._hits = recorded.hits
        self._cited = recorded.outcome.chunk_ids if recorded.outcome is not None else ()
        self._form = None if recorded.result_schema is None else ResultSchema(recorded.result_schema)

    def play(self, question: str, depth: int) -> Final | None:
        """Run the recorded programs of one session; each call for a question takes the next of its records."""
        self._budget.enter(depth)
        queue = self._runs.get((question, depth))
        steps = queue.popleft() if queue else []
        accept = self._form.value_of if self._form is not None and depth == 0 else None
        hit_ids = () if depth else tuple(hit["id"] for hit in self._hits)
        with self.open_session(lambda question: self._sub_question(question, depth + 1), accept) as session:
            session.shown(hit_ids, hit_ids)
            for then in steps:
                self.before(session, then)
                # Ids in an accepted program may be from an opening, which is not built again, or be only the last
                # part of an id.
                shown_ids = [*_ID.findall("\n".join(then.programs)), *then.chunks_read, *self._cited]
                session.shown(shown_ids if then.error is None else ())
                results = run_programs(session, then.programs)
                now = make_step(
                    session,
                    results,
                    turn=then.turn,
                    depth=depth,
                    question=question,
                    output_chars=self._output_chars,
                )
                if then.programs:
                    self.steps.append(compare(then, now))
                self.after(session, then, now)
                if depth == 0:
                    self.final = session.final
                if results.ended is not None:
                    raise results.ended
                if session.final is not None:
                    break
            return session.final

    def open_session(
        self, sub_question: Callable[[str], dict[str, Any]], accept: Callable[[Any], Any] | None
    ) -> SandboxSession:
        """A session for the programs of one question."""
        return self._runner.session(self._budget, self._llm, sub_question, accept=accept)

    def before(self, session: SandboxSession, then: LoopStep) -> None:
        """Called before the programs of a turn run."""

    def after(self, session: SandboxSession, then: LoopStep, now: LoopStep) -> None:
        """Called after the programs of a turn have run."""

    def _sub_question(self, question: str, depth: int) -> dict[str, Any]:
        final = self.play(question.strip(), depth)
        if final is None:
            return {"answer": None, "chunk_ids": [], "confidence": None}
        return {"answer": final.answer, "chunk_ids": final.chunk_ids, "confidence": final.confidence}


def _steps_by_session(steps: list[LoopStep]) -> dict[tuple[str, int], deque[list[LoopStep]]]:
    """The steps of each session, by question and depth, in the order in which the sessions ran."""
    runs: dict[tuple[str, int], deque[list[LoopStep]]] = defaultdict(deque)
    for step in steps:
        queue = runs[(step.question, step.depth)]
        if step.turn == 1 or not queue:
            queue.append([])
        queue[-1].append(step)
    return runs


def compare(then: LoopStep, now: LoopStep) -> ReplayStep:
    """Compare a recorded turn with its replay."""
    before, after = redact(then.output).splitlines(), redact(now.output).splitlines()
    diff = _differences(before, after) if before != after else []
    error = None if now.error is None else redact(now.error)
    missing = tuple(item for item in then.chunks_read if item not in now.chunks_read)
    new = tuple(item for item in now.chunks_read if item not in then.chunks_read)
    # A program refused as quoted was not recorded, so its replay cannot fail.
    expected = None if then.error_kind == QuotedProgram.__name__ else then.error
    same = not (diff or missing or new) and expected == error and then.final == now.final
    return ReplayStep(then, now, same, tuple(diff), missing, new)


def _differences(before: list[str], after: list[str]) -> list[str]:
    """The removed and added lines, each change with adjacent lines."""
    found: list[str] = []
    for kind, a, b, c, d in opcodes(before, after):
        if kind == "equal":
            if not a:
                found += [f" {line}" for line in before[a:b][-1:]]
            else:
                shown = before[a:b] if b - a <= 2 else [before[a], "…", before[b - 1]]
                found += [f" {line}" for line in shown]
            continue
        found += [f"-{line}" for line in before[a:b]]
        found += [f"+{line}" for line in after[c:d]]
    return found


def _recorded_content(answer: Any) -> Any:
    """The part of an answer that is recorded as content: ``conclusion`` of the mapping that REASON passes to FINAL."""
    return answer["conclusion"] if isinstance(answer, dict) and "conclusion" in answer else answer
