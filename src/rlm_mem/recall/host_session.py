"""The host-driven form of RECALL: an agent that is a model itself writes the programs; no key is needed.

``recall_session(store, query)`` opens a session and returns what a model would be shown first; the agent calls
``execute`` with programs and ``finish`` with its answer. Sandbox, budgets and trajectory are those of a recall.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Unpack

from rlm_mem.arguments import check_flag, check_kind
from rlm_mem.errors import ModelUnavailable, SessionBusy, SessionComplete
from rlm_mem.models.base import Budget, Completion, Limits, Options, Prompt, as_messages
from rlm_mem.recall.loop import LoopResult, LoopStep, ProgramResults, make_step, run_programs
from rlm_mem.recall.programs import ShownData
from rlm_mem.recall.prompts import feedback, instructions
from rlm_mem.recall.recall import RecallResult, recall_result
from rlm_mem.recall.repl_session import REPLSession
from rlm_mem.recall.result_schema import ResultSchema
from rlm_mem.recall.running import (
    HostFunctions,
    Run,
    Runner,
    UntrustedRemarks,
    check_limits,
    check_query,
    limits_from,
)
from rlm_mem.recall.trajectory import RecordedLLM
from rlm_mem.sandbox.arguments import full_chunk_id
from rlm_mem.sandbox.dispatch import check_final
from rlm_mem.sandbox.values import Final, preview

if TYPE_CHECKING:
    from rlm_mem.config import Config
    from rlm_mem.store.core.chunk_store import ChunkStore

_FINISHED = "FINAL was accepted: the recall has ended."
_NO_MORE_PROGRAMS = "No further program can be run. Finish with the best supported answer, or with none."

_COMPARED_CHARS = 60_000
"""Most characters shown before that rows are compared with; older ones are discarded."""
_MIN_ROW_CHARS, _HEAD_CHARS = 80, 40
"""Fewest characters of a row that is shortened, and how many of them are shown to recognise it."""
_MIN_PIECE_CHARS = 40
"""Fewest characters of the longest piece of such a row, if parts of it were cut out ("…")."""
_SHARED_WORDS = 0.75
"""Share of its words that a row has in common with an outlined one that also contains all its numbers."""
_ROW = re.compile(r"(\[\d{1,6}\] )(.*)")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Execution:
    """The result of one program of the host.

    Attributes:
        text: output, error and hint as one message, marked as stored data.
        output: what was printed, and the value of a last expression; bounded; of rows shown before only the
            beginning.
        error: what failed, with its line, or None.
        hint: the remedy, or None.
        truncated: the output was cut.
        chunks_read: ids of the chunks whose content was read.
        finished: the program called FINAL; ``RecallSession.result`` has the answer.
        untrusted: the untrusted chunks among these, as a phrase, or None.
        cut: the lists and texts that were cut, and how to go on, or None.
        stopped_by: the budget that ended the session for programs (``finish`` still works), or None.
        turns_left: programs that may still be run, or None without a limit.
    """

    text: str
    output: str
    error: str | None
    hint: str | None
    truncated: bool
    chunks_read: tuple[str, ...]
    finished: bool
    stopped_by: str | None
    turns_left: int | None
    untrusted: str | None = None
    cut: str | None = None


class _Stopwatch:
    """A clock in seconds that runs only during programs: the agent's thinking time is not counted."""

    def __init__(self) -> None:
        self._passed = 0.0
        self._since: float | None = None

    def __call__(self) -> float:
        return self._passed + (0.0 if self._since is None else time.monotonic() - self._since)

    def __enter__(self) -> None:
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._passed, self._since = self(), None


class _NoModel:
    """The model of a session without one: the agent reads texts itself."""

    name = "host"

    def complete(self, messages: Prompt, **_options: Unpack[Options]) -> Completion:
        """Refuse the call with a hint for the program."""
        as_messages(messages)
        raise ModelUnavailable(
            "this session has no model", hint="print the text and read it yourself, then call finish"
        )


class _Repeats:
    """What an agent was shown, to shorten rows that are shown again: it pays for what it reads.

    Records contain the whole output, so that a run can be replayed without knowing what was shown before.

    Args:
        opening: the opening as it was shown.
        outlined: the texts of its outline, if any: later outlines shorten the same turns differently.
    """

    def __init__(self, opening: str, outlined: Iterable[str] = ()) -> None:
        self._text = ""
        self._outlined = [frozenset(_WORD.findall(one.casefold())) for one in outlined]
        self._add(opening)

    def shortened(self, output: str) -> str:
        """Shorten the rows of the output that were shown before; all of it counts as shown from now on."""
        lines = "\n".join(map(self._shortened_line, output.split("\n")))
        self._add(output)
        return lines

    def _shortened_line(self, line: str) -> str:
        row = _ROW.fullmatch(line)
        text, _, points = row[2].partition(" | ") if row else ("", "", "")
        if row is None or not (self._was_shown(text) or self._was_outlined(text)):
            return line
        head = text[:_HEAD_CHARS].rpartition(" ")[0] or text[:_HEAD_CHARS]
        new = [one for one in points.split(" | ") if one and one not in self._text]
        return " | ".join([f"{row[1]}{head}… (above)", *new])

    def _was_shown(self, text: str) -> bool:
        pieces = [" ".join(one.split()) for one in text.split("…")]
        long = len(text) >= _MIN_ROW_CHARS and max(map(len, pieces)) >= _MIN_PIECE_CHARS
        return long and all(one in self._text for one in pieces)

    def _was_outlined(self, text: str) -> bool:
        words = frozenset(_WORD.findall(text.casefold()))
        numbers = frozenset(word for word in words if word.isdigit())
        return len(text) > _HEAD_CHARS and any(
            numbers <= shown and len(words & shown) >= _SHARED_WORDS * len(words) for shown in self._outlined
        )

    def _add(self, text: str) -> None:
        self._text = f"{self._text}\n{' '.join(text[-_COMPARED_CHARS:].split())}"[-_COMPARED_CHARS:]


def _check_repeated(given: Final, recorded: Final | None) -> None:
    """Compare an answer with that of an ended recall; arguments that were left out are not compared.

    Args:
        recorded: the answer of the recall; None if it ended without one.

    Raises:
        SessionComplete: they differ.
    """
    ended = Final(None) if recorded is None else recorded
    cited = {full_chunk_id(one, set(ended.chunk_ids)) for one in given.chunk_ids}
    if (
        given.answer not in (None, ended.answer)
        or given.suggestion not in (None, ended.suggestion)
        or given.confidence not in (None, ended.confidence)
        or (cited and cited != set(ended.chunk_ids))
    ):
        how = "without an answer" if ended.answer is None else f"with the answer {preview(ended.answer, 200)}"
        raise SessionComplete(f"the recall has already ended {how}", hint="open another one to answer anew")


class RecallSession:
    """An open host-driven recall; a context manager that ends the session on exit.

    Attributes:
        id: id of the trajectory, which also identifies the session.
        query: the question.
        schema: instructions for programs: functions, rules, worked examples (some 900 tokens).
        opening: question, figures of the store and first hits as one message for the agent.
        hits: the ranker's chunks for the raw question, with the snippets that ``opening`` shows.
        store_summary: counts, tags and time span of the store.
        result: the RecallResult once finished, else None.
    """

    def __init__(
        self,
        runner: Runner,
        query: str,
        limits: Limits,
        *,
        keep: bool = False,
        form: ResultSchema | None = None,
    ) -> None:
        self._runner = runner
        self._limits = limits
        self._keep = check_flag(keep, "keep")
        self._form = form
        sandbox = runner.config.sandbox
        self._program_seconds = min(sandbox.timeout_seconds, sandbox.caller_timeout_seconds)
        self._has_model = not isinstance(runner.llm, _NoModel)
        self.schema = instructions(runner.functions, model=self._has_model)
        self._remarks = UntrustedRemarks(runner.store)
        self._lock = threading.Lock()
        self._session: REPLSession | None = None
        self._begin(query)

    def _begin(self, query: str) -> None:
        """Start the first or the next question."""
        runner, limits = self._runner, self._limits
        self.query = check_query(query)
        self.result: RecallResult | None = None
        self._final: Final | None = None
        self._stopwatch = _Stopwatch()
        self._steps: list[LoopStep] = []
        self._stopped_by: str | None = None
        self._budget = Budget(limits, self._stopwatch)
        self._opening = runner.opening(
            self.query, self._form.task if self._form is not None else "", outline=True
        )
        self.opening = self._opening.render()
        self._shown = ShownData(self.schema)
        self._shown.add(self.opening)
        outline_lines = (
            chain.from_iterable(hit["lines"] for hit in self._opening.hits) if self._opening.outline else ()
        )
        self._repeats = _Repeats(self.opening, (line.partition(" | ")[0] for line in outline_lines))
        self.hits = [dict(hit) for hit in self._opening.hits]
        self.store_summary = dict(self._opening.store)
        self._recorder = runner.recorder(self.query, "session", "host", limits)
        if self._form is not None:
            self._recorder.trajectory.result_schema = self._form.json_schema
        recorded = RecordedLLM(runner.llm, self._recorder)
        if self._session is None:
            self._session = self._new_session(recorded)
            self._session.__enter__()
        else:
            self._session.next_question(self.query, self._budget, recorded)
        # Only now: a session that is refused leaves no record.
        self._recorder.begin(self.store_summary, self.hits)
        self.id = self._recorder.trajectory.id
        self._session.shown(self._opening.hit_ids, map(itemgetter("id"), self.hits))
        if len(self._opening.hit_ids) > 1:
            self._remarks(self._opening.hit_ids)  # the opening has marked the untrusted ones

    def _new_session(self, llm: RecordedLLM) -> REPLSession:
        runner = self._runner
        session = REPLSession(
            runner.store,
            llm,
            timeout_seconds=self._program_seconds,
            max_depth=runner.config.recall.max_depth,
            functions=runner.functions,
            engine=runner.engine,
            budget=self._budget,
            query=self.query,
            config=runner.config,
            # The steps of sub-questions; the recorder is that of the current question.
            on_step=lambda step: self._recorder.step(step),
            accept=None if self._form is None else self._form.value_of,
        )
        session.named_models = self._has_model
        session.writer = runner.llm  # recorded by its steps, not by its calls
        session.keeps_after_final = self._keep
        return session

    @property
    def hit_scores(self) -> list[dict[str, Any]]:
        """Ids and scores of ``hits``, for callers that get the text from ``opening``."""
        return [{"id": hit["id"], "score": hit["score"]} for hit in self.hits]

    def execute(self, code: str) -> Execution:
        """Run one program; its variables stay for the next one.

        Raises:
            SessionComplete: the session was finished or closed.
            BudgetError: a budget had ended the session before this program.
        """
        with self._lock, self._stopwatch:
            session = self._open_session()
            if self.result is not None:
                raise SessionComplete(
                    "the question of this recall session is already answered",
                    hint="ask another question in it first",
                )
            check_kind(code, str, "code")
            self._budget.start_iteration()
            results = run_programs(session, [code], self._shown)
            step = self._add_step(session, code, results)
            if results.ended is not None:
                self._stopped_by = results.ended.stopped_by
            hint = self._hint(results)
            turns_left = self._budget.remaining_iterations()
            untrusted, remark = self._remarks.both(step.chunks_read)
            cut = session.cut_lists.remark()
            output = self._repeats.shortened(step.output)
            final = session.final
            if final is not None:
                self._end(final)
                ended = _FINISHED
            else:
                ended = _NO_MORE_PROGRAMS if self._stopped_by or turns_left == 0 else ""
            return Execution(
                text=feedback(
                    output,
                    error=step.error,
                    hint=hint,
                    turns_left=turns_left,
                    untrusted=remark,
                    cut=cut,
                    ended=ended,
                ),
                output=output,
                error=step.error,
                hint=hint,
                truncated=step.truncated,
                chunks_read=step.chunks_read,
                finished=final is not None,
                stopped_by=self._stopped_by,
                turns_left=turns_left,
                untrusted=untrusted or None,
                cut=cut or None,
            )

    def _add_step(self, session: REPLSession, code: str, results: ProgramResults) -> LoopStep:
        """Record what a program did as the next step."""
        step = make_step(
            session,
            results,
            turn=len(self._steps) + 1,
            depth=0,
            question=self.query,
            output_chars=self._runner.config.sandbox.max_output_chars,
        )
        if not results.done and results.refused is None:
            step = replace(step, programs=(code,))
        self._steps.append(step)
        self._shown.add(step.output)
        self._shown.add(step.error or "")
        self._recorder.step(step)
        return step

    def _hint(self, results: ProgramResults) -> str | None:
        """Return what helps against the error of a program, if it had one."""
        hint = results.error.hint if results.error is not None else None
        if isinstance(results.error, TimeoutError) and results.ended is None:
            given = f"a program has {self._program_seconds:g} seconds"
            return f"{hint}; {given} (setting sandbox.caller_timeout_seconds), and the next one can run now"
        return hint

    def finish(
        self,
        answer: Any = None,
        chunk_ids: Iterable[str] | str | None = None,
        confidence: float | None = None,
        suggestion: str | None = None,
    ) -> RecallResult:
        """End the session with the agent's answer; None means that the memory does not contain it.

        If a program called FINAL, or the session was finished before, that result is returned to a call without
        arguments or with the same ones. A used-up budget prevents further programs, but not this call.

        Args:
            answer: plain data, as for FINAL.
            chunk_ids: the chunks it rests on; each must be in the memory, and in the opening or found by a program.
            confidence: from 0 to 1, or None.
            suggestion: without an answer, the likeliest one, which the chunks do not confirm.

        Raises:
            InputError: an argument is invalid, or a chunk does not exist; the session stays open.
            StorageError: the result cannot be recorded; the session stays open.
            SessionComplete: it was closed, or has ended with another answer.
        """
        with self._lock:
            if isinstance(chunk_ids, Iterable) and not isinstance(chunk_ids, str | dict):
                chunk_ids = list(chunk_ids)
            given = check_final(answer, chunk_ids, confidence, suggestion)
            if self.result is not None:
                _check_repeated(given, self._final)
                return self.result
            session = self._open_session()
            if session.final is None:
                return self._end(session.accepted(given))
            _check_repeated(given, session.final)  # of a program, when the result could not be recorded
            return self._end(session.final)

    def ask(self, question: str) -> None:
        """Take another question in the same sandbox: variables of earlier programs stay.

        ``id``, ``query``, ``opening``, ``hits`` and ``result`` are then those of the new question, which has its
        own trajectory and full budgets.

        Raises:
            SessionComplete: the session was closed, or was not opened with ``keep``.
            SessionBusy: the previous question has no answer yet.
            InvalidQuery: the question is empty.
        """
        with self._lock:
            if self._session is None:
                raise SessionComplete(
                    "the recall session has ended and kept no variables", hint="open it with keep=True"
                )
            if self.result is None:
                raise SessionBusy(
                    "the previous question is not answered yet", hint="finish it, or call close"
                )
            self._begin(question)

    def close(self) -> None:
        """End the session, without an answer if it has none; do nothing if it has ended."""
        with self._lock:
            try:
                if self.result is None and self._session is not None:
                    self._end(self._session.final)
            finally:
                self._leave()

    def __enter__(self) -> RecallSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self, final: Final | None) -> RecallResult:
        loop = LoopResult.of(final, steps=tuple(self._steps), stopped_by=self._stopped_by)
        run = Run(loop, self._opening, loop.evidence, self._budget.spent(), self._recorder)
        self.result = recall_result(self._runner.store, run, self._form)
        self._final = final
        if not self._keep:  # only now: where the result cannot be recorded, the caller may finish again
            self._leave()
        return self.result

    def _open_session(self) -> REPLSession:
        if self._session is None:
            raise SessionComplete("the recall session has ended", hint="open another one")
        return self._session

    def _leave(self) -> None:
        """Release the worker; the variables are lost."""
        session, self._session = self._session, None
        if session is not None:
            session.__exit__(None, None, None)


def recall_session(
    store: ChunkStore,
    query: str,
    *,
    limits: Limits | None = None,
    llm: object = None,
    config: Config | None = None,
    functions: HostFunctions | None = None,
    engine: str | None = None,
    keep: bool = False,
    result: Any = None,
) -> RecallSession:
    """Open a host-driven recall.

    Args:
        store: the memory.
        query: the question.
        limits: budgets; ``iterations`` counts programs, ``seconds`` only the time that programs run.
            None: ``config.recall`` with three times its iterations.
        llm: a model for ``llm_query`` in programs; None: such a call fails with a hint, since the host itself
            can read what a program prints.
        config, functions, engine: as for :class:`~rlm_mem.recall.recall.RecallOperation`.
        keep: keep the variables after an answer, for :meth:`RecallSession.ask`; the session then has to be closed.
        result: the type of the answer, as for :meth:`~rlm_mem.recall.recall.RecallOperation.recall`.

    Raises:
        InvalidQuery: the question is empty.
    """
    if limits is not None:
        check_limits(limits)
    form = None if result is None else ResultSchema(result)
    runner = Runner(
        store,
        _NoModel() if llm is None else llm,
        limits=limits,
        config=config,
        functions=functions,
        engine=engine,
    )
    if limits is None:
        base = limits_from(runner.config.recall)
        # A host reads in smaller pieces than a model that pays for every turn.
        limits = replace(base, iterations=None if base.iterations is None else 3 * base.iterations)
    return RecallSession(runner, query, limits, keep=keep, form=form)
