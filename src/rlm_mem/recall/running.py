"""A run: a model answers one question by programs, with its sub-questions, within one budget.

A :class:`Runner` creates the opening, record and session of a run and starts it; RECALL, REASON, host-driven
sessions and replays all use it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import field
from msgspec.structs import replace

from rlm_mem.arguments import check_function, check_kind, check_mapping
from rlm_mem.chunk import format_time
from rlm_mem.chunk.types import is_untrusted, shown
from rlm_mem.config import Config, RecallConfig
from rlm_mem.errors import BudgetError, InvalidQuery, ModelTimeout, StorageError
from rlm_mem.models.base import LLM, Budget, Limits, Spent, is_llm, is_offline
from rlm_mem.models.opening import adapt
from rlm_mem.recall.loop import NOT_RUN, Loop, LoopResult, LoopStep, Turns, first_ids, says_nothing
from rlm_mem.recall.model_calls import ModelCalls, StoppableModel, SubModel, in_parallel
from rlm_mem.recall.opening import Opening, build_opening
from rlm_mem.recall.prompts import instructions
from rlm_mem.recall.result_schema import ResultSchema
from rlm_mem.recall.trajectory import RecordedLLM, TrajectoryRecorder, error_text, prune_trajectories
from rlm_mem.record import FrozenRecord, MutableRecord
from rlm_mem.sandbox.engine import stop_of_context
from rlm_mem.sandbox.reference import PAGES
from rlm_mem.sandbox.session import SandboxSession
from rlm_mem.text.analysis import get_analyser

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

MAX_SUB_SESSIONS = 4
"""Most sub-questions of a batch that are answered in parallel."""
_MIN_OFFLINE_SECONDS = 5.0
"""Seconds that the offline model always gets, even if a slow model has used up the time of the run."""
_MAX_QUERY = 10_000
_FALLBACK_BUDGETS = ("iterations", "depth", "model_calls", "seconds", "tokens", "usd")
"""Budgets (``stopped_by``) after which the offline model replaces a model with replies that did not run, of which most
failed, or that read nothing."""
_NOTHING_READ = "the model's programs read nothing"
_READ_NOTHING = {name for name, page in PAGES.items() if page.by == "session" or name.startswith("rlm_query")}
"""Functions that read no memory, and ask no model about what the opening shows."""
_UNREAD = "the model's programs printed nothing"
_FAILED = "half of the model's programs or more failed"

_MAX_READ = 2_000
"""Most chunks of one program that are checked for trust."""
_MAX_NAMED = 10

OnText = Callable[[str], None] | None
HostFunctions = Mapping[str, Callable[..., Any]]


class _Result(Protocol):
    @property
    def outcome(self) -> str: ...


_ResultT = TypeVar("_ResultT", bound=_Result)


def _why_disbelieved(loop: LoopResult, question: str, language: str) -> str:
    """Why a model's conclusion is not believed; empty if it is.

    That the memory has no answer is not believed if its programs printed nothing, after a reply that did not run, or if
    half of its replies before it failed. In the latter case an answer must be one to the question, too.

    Args:
        question: empty if any text may be its answer.
    """
    if not loop.concluded or loop.suggestion is not None:
        return ""
    half_failed = loop.failed and 2 * loop.failed >= len(loop.steps) - 1
    if loop.answer is None:
        unread = loop.not_run and not any(step.output for step in loop.steps)
        return _UNREAD if unread else _FAILED if half_failed else ""
    if half_failed and question and isinstance(loop.answer, str):
        from rlm_mem.recall.scaffold import misfit  # only needed for weak models

        if problem := misfit(question, loop.answer, get_analyser(language)):
            return f"{_FAILED}, and its answer {problem}"
    return ""


class Run(FrozenRecord, frozen=True):
    """A finished run, whose trajectory still lacks the outcome."""

    loop: LoopResult
    opening: Opening
    evidence: tuple[str, ...]
    spent: Spent
    recorder: TrajectoryRecorder


def limits_from(config: RecallConfig) -> Limits:
    """The limits in the settings; 0 tokens or dollars mean no limit."""
    return Limits(
        iterations=config.max_iterations,
        depth=config.max_depth,
        seconds=config.max_seconds,
        model_calls=config.max_model_calls,
        tokens=config.max_tokens or None,
        usd=config.max_usd or None,
    )


def check_limits(limits: object) -> Limits:
    """Return ``limits`` if they are the limits of a run; raises InputError."""
    return check_kind(limits, Limits, "limits", hint="for example Limits(iterations=5, seconds=30)")


def check_query(query: str) -> str:
    """Return the question without surrounding space.

    Raises:
        InvalidQuery: empty, not text, not valid Unicode, or longer than 10,000 characters.
    """
    if not isinstance(query, str) or not query.strip():
        problem = "is empty" if isinstance(query, str) else f"must be text, not {shown(query)}"
        raise InvalidQuery(f"the question {problem}", hint="ask in words, such as: what did Ana decide?")
    if len(query) > _MAX_QUERY:
        raise InvalidQuery(
            f"the question has {len(query):,} characters; at most {_MAX_QUERY:,} are allowed",
            hint="remember long texts, and ask about them in a few sentences",
        )
    try:
        query.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidQuery(
            f"the question contains a lone surrogate at character {error.start}: it is not valid Unicode text"
        ) from None
    return query.strip()


class Runner:
    """Runs questions against one store with one model: the base of RECALL and REASON.

    Args:
        llm: an LLM, a model name such as ``"offline"``, a callable, or an object whose ``complete(prompt)``
            returns a str. None: the configured model, which is the offline one by default (no key needed).
        llm_client: another name of ``llm``.
        limits: budgets of one recall; None: ``config.recall``.
        config: settings; None: the store's.
        functions: further read-only host functions for the programs, by name.
        engine: ``monty`` or ``cpython``; None: ``config.sandbox.engine``.
        as_of: answer from what was valid at this time; None: at present.

    Raises:
        InputError: ``llm`` is not a model.
        ModelUnavailable: the model named is not set up.
    """

    def __init__(
        self,
        store: ChunkStore,
        llm: object = None,
        *,
        llm_client: object = None,
        limits: Limits | None = None,
        config: Config | None = None,
        functions: HostFunctions | None = None,
        engine: str | None = None,
        as_of: str | date | datetime | None = None,
    ) -> None:
        self.store = store
        self.view = store if as_of is None else store.held_at(as_of)
        self.config: Config = store.config if config is None else check_kind(config, Config, "config")
        llm = llm_client if llm is None else llm
        self.llm = llm if is_llm(llm) else adapt(llm, self.config)
        self.limits = check_limits(limits) if limits else limits_from(self.config.recall)
        self.functions = {} if functions is None else dict(check_mapping(functions, "functions"))
        self.engine = self.config.sandbox.engine if engine is None else check_kind(engine, str, "engine")

    def run(
        self,
        query: str,
        operation: str,
        *,
        llm: LLM | None = None,
        limits: Limits | None = None,
        task: str = "",
        fallback: LLM | None = None,
        form: ResultSchema | None = None,
        on_step: Callable[[LoopStep], None] | None = None,
        on_text: OnText = None,
    ) -> Run:
        """Run one question to its end.

        Args:
            query, operation: the question; ``recall`` or ``reason``.
            llm, limits: the model that writes the programs, and the budgets of this run; None: the runner's.
            task, form: the kind of answer wanted; the type that it must match.
            fallback: replaces a model whose replies do not run; None: the offline model.
            on_step, on_text: called after each turn, and with each piece of the model's replies.

        Raises:
            InvalidQuery: the question is empty.
            ModelError: the model failed; the steps so far are in the trajectory.
        """
        query = check_query(query)
        llm = llm or self.llm
        if limits is not None:
            check_limits(limits)
        check_function(on_step, "on_step")
        check_function(on_text, "on_text")
        budget = Budget(limits or self.limits)
        recorder = self.recorder(query, operation, llm.name, budget.limits)
        answering = _Answering(self, llm, fallback, budget, recorder, form, on_step)
        budget.start()
        if form is not None:
            task = f"{task} {form.task}".strip()
            recorder.trajectory.result_schema = form.json_schema
        opening = self.opening(query, task, outline=not is_offline(llm))
        recorder.begin(opening.store, opening.hits)
        if recorder.recording and (stop := stop_of_context()) is not None:
            stop.runs.append(recorder.trajectory.id)
        try:
            loop = answering.answer(opening, on_text=on_text)
        except BaseException as error:
            recorder.finish(budget.spent(), evidence=answering.evidence, error=error_text(error))
            error.add_note(f"The steps so far are in trajectory {recorder.trajectory.id}.")
            raise
        return Run(loop, opening, first_ids(answering.evidence), budget.spent(), recorder)

    def opening(self, query: str, task: str = "", outline: bool = False) -> Opening:
        """Build the first message to the model."""
        return build_opening(
            self.view, query, limit=self.config.recall.first_hits, task=task, outline=outline
        )

    def recorder(self, query: str, operation: str, model: str, limits: Limits) -> TrajectoryRecorder:
        """Start a trajectory, and delete those older than ``recall.keep_trajectory_days``."""
        settings = self.config.recall
        recorder = TrajectoryRecorder(
            self.store,
            operation,
            query,
            model=model,
            engine=self.engine,
            # A decimal stays exact as text.
            limits={
                name: str(one) if isinstance(one, Decimal) else one for name, one in asdict(limits).items()
            },
            enabled=settings.trajectories,
        )
        if self.view.as_of is not None:
            recorder.trajectory.as_of = format_time(self.view.as_of)
        if recorder.recording:
            prune_trajectories(self.store, settings.keep_trajectory_days)
        return recorder

    def sub_model(self, writer: LLM) -> LLM:
        """The model that answers ``llm_query`` in programs of ``writer``: ``llm.sub_model`` if set, else ``writer``."""
        settings = self.config
        name = "" if is_offline(writer) else settings.llm.sub_model
        model = adapt(name, settings) if name else writer
        limits = settings.recall
        bounded = limits.max_sub_calls or limits.max_sub_tokens or limits.max_sub_usd
        return SubModel(model, settings) if bounded else model

    def session(
        self,
        budget: Budget,
        llm: LLM,
        sub_question: Callable[[str], dict[str, Any]],
        sub_questions: Callable[[list[str]], list[Any]] | None = None,
        accept: Callable[[Any], Any] | None = None,
        kind: type[SandboxSession] = SandboxSession,
    ) -> SandboxSession:
        """Create a sandbox session with this runner's settings that spends from ``budget``.

        Args:
            llm: answers ``llm_query``.
            sub_question: answers ``rlm_query``.
            sub_questions: answers ``rlm_query_batched``; None: one by one.
            accept: raises InputError for an answer that does not match the required type.
            kind: class of the session.
        """
        calls = ModelCalls(llm, budget, self.config)
        return kind(
            self.view,
            ask=calls.ask,
            ask_all=calls.ask_all,
            sub_question=sub_question,
            check=budget.check,
            functions=self.functions,
            timeout_seconds=self.config.sandbox.timeout_seconds,
            engine=self.engine,
            config=self.config,
            sub_questions=sub_questions,
            accept=accept,
        )

    def retry_if_changed(self, ask: Callable[[], _ResultT]) -> _ResultT:
        """The result of ``ask``, called again if it has no answer and the files were changed from outside.

        A change may have been indexed while ``ask`` ran, after its search.
        """
        known = self.view.backend.caught_up
        result = ask()
        unanswered = result.outcome in ("closest only", "not held")
        changed = unanswered and (self.view.backend.caught_up != known or _sync_changes(self.view))
        return ask() if changed else result


def _sync_changes(store: ChunkStore) -> bool:
    """Index changes of files by other programs, such as a checkout; return whether there were any.

    Nothing is checked while another process writes, or within a batch.
    """
    if store.backend.in_transaction:
        return False
    try:
        return bool(store.backend.sync(wait_seconds=0))
    except StorageError:  # the first result stays valid
        return False


class UntrustedRemarks(MutableRecord):
    """After each program of a session, names the untrusted chunks that it read, each chunk once.

    If all that was read is untrusted, its origins are named once: in an imported memory every program would repeat
    them.
    """

    store: ChunkStore
    _origins: set[str] = field(default_factory=set)
    _remarked: set[str] = field(default_factory=set)

    def __call__(self, chunk_ids: Sequence[str]) -> str:
        """The remark on what one program read, or an empty text."""
        return self.both(chunk_ids)[1]

    def both(self, chunk_ids: Sequence[str]) -> tuple[str, str]:
        """The untrusted chunks with their origins, ``chunk-… (web)`` or ``all 3 (web)``, and the model's remark."""
        read = self.store.summaries(list(chunk_ids)[:_MAX_READ]) if chunk_ids else []
        found = {one.id: str(one.origin) for one in read if is_untrusted(one.trust)}
        if len(found) < len(read):
            new = {one: origin for one, origin in found.items() if one not in self._remarked}
            self._remarked.update(list(new)[:_MAX_NAMED])
            return _chunks_listed(found), _chunks_listed(new)
        origins = sorted(set(found.values()))
        subject = next(iter(found)) if len(found) == 1 else f"all {len(found)}"
        phrase = f"{subject} ({', '.join(origins)})" if found else ""
        known = self._origins.issuperset(origins)
        self._origins.update(origins)
        return phrase, "" if known else phrase


def _chunks_listed(found: dict[str, str]) -> str:
    more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    return ", ".join(f"{one} ({origin})" for one, origin in list(found.items())[:_MAX_NAMED]) + more


class _PendingRecords:
    """Steps and sub-calls, in order, that are recorded only if the run ends with their answer."""

    def __init__(self) -> None:
        self.records: list[LoopStep | dict[str, Any]] = []

    def step(self, step: LoopStep) -> None:
        """Add a finished turn, after its sub-calls."""
        self.records.append(step)

    def call(self, **values: Any) -> None:
        """Add a sub-call."""
        self.records.append(values)


def _weakness(loop: LoopResult) -> str:
    """Return why a run that a budget ended came to nothing; empty if its programs ran and read something."""
    if loop.not_run:
        return NOT_RUN
    if loop.failed > 1 and 2 * loop.failed > len(loop.steps):
        return _FAILED
    calls = (call["name"] for step in loop.steps for call in step.host_calls)
    return "" if any(name not in _READ_NOTHING for name in calls) else _NOTHING_READ


class _Answering:
    """Answers the question of a run, and its sub-questions, each in a session of its own.

    Args:
        llm, fallback: the model that answers, and its replacement if it cannot (None: the offline model).
        form: the type that the answer to the question itself must match.
        on_step: called after each turn.

    Attributes:
        evidence: ids of the chunks that the programs read, in order.
    """

    def __init__(
        self,
        runner: Runner,
        llm: LLM,
        fallback: LLM | None,
        budget: Budget,
        recorder: TrajectoryRecorder,
        form: ResultSchema | None,
        on_step: Callable[[LoopStep], None] | None,
    ) -> None:
        self._runner = runner
        self._llm = llm
        self._fallback = fallback
        self._sub_model: LLM = RecordedLLM(runner.sub_model(llm), recorder)
        self._budget = budget
        self._recorder = recorder
        self._form = form
        self._on_step = on_step
        self._recording = threading.Lock()
        self.evidence: dict[str, None] = {}

    def answer(self, opening: Opening, depth: int = 0, on_text: OnText = None) -> LoopResult:
        """Answer by programs of the model.

        If these do not run, a fruitless reply is repeated, the model concludes without having read anything that
        the memory has no answer (:func:`_why_disbelieved`), or it does not answer in time, the fallback writes the
        programs. In RECALL the model then reads the memories that the fallback found, unless the fallback is sure
        of an answer, or a budget or the time ended the model's run.
        """
        scaffold = "never" if is_offline(self._llm) else self._runner.config.recall.scaffold
        steps: list[LoopStep] = []
        reason, can_read = "recall.scaffold is always", True
        if scaffold != "always":
            hands_over = scaffold == "auto"
            try:
                loop = self._write(
                    self._llm, opening, depth, self._budget, steps, on_text=on_text, hands_over=hands_over
                )
            except ModelTimeout:
                if scaffold == "never" or any(step.ran for step in steps):
                    raise
                reason, can_read = "the model did not answer in time", False
            else:
                if scaffold == "never":
                    return loop
                if isinstance(loop.answer, str) and not loop.chunk_ids and says_nothing(loop.answer):
                    loop = replace(loop, answer=None)
                is_plain = self._form is None and self._recorder.trajectory.operation == "recall"
                why = loop.handed_over or _why_disbelieved(
                    loop, opening.question if is_plain else "", self._runner.config.search.language
                )
                weakness = _weakness(loop) if loop.stopped_by in _FALLBACK_BUDGETS else ""
                if not (why or weakness):
                    return loop
                reason, can_read = why or weakness, bool(why)
        # The offline model costs only a little time.
        limits = Limits(
            iterations=10,
            depth=self._runner.limits.depth,
            seconds=max(_MIN_OFFLINE_SECONDS, self._budget.remaining_seconds()),
            model_calls=None,
        )
        pending = _PendingRecords()
        offline = self._fallback or adapt("offline")
        loop = self._write(offline, opening, depth, Budget(limits), steps, pending=pending)
        if can_read and loop.answer is None and self._recorder.trajectory.operation == "recall":
            try:
                self._budget.enter(depth)
                read = self._read(opening, depth, steps, on_text, loop)
            except (BudgetError, ModelTimeout) as error:
                read = str(error)
            if isinstance(read, LoopResult):
                note = f"{reason}, so it only read what was found for it"
                return replace(read, detail={"method": "scaffolded", "note": note})
            reason = f"{reason}; {read}" if read else reason
        for record in pending.records:
            if isinstance(record, LoopStep):
                self._record(steps, replace(record, turn=len(steps) + 1))
            else:
                self._recorder.call(**record)
        return replace(
            loop, detail={"method": "offline", "note": f"{reason}; this is what the offline model found"}
        )

    def _write(
        self,
        writer: LLM,
        opening: Opening,
        depth: int,
        budget: Budget,
        steps: list[LoopStep],
        *,
        on_text: OnText = None,
        hands_over: bool = False,
        pending: _PendingRecords | None = None,
    ) -> LoopResult:
        """Let a model write programs until the run ends.

        Args:
            steps: the steps so far; further ones are added and recorded.
            pending: gets further steps and sub-calls instead; ``writer`` then also answers the sub-calls.
        """
        answers = self._sub_model if pending is None else RecordedLLM(writer, pending)
        session = self._session(opening, depth, budget, answers)
        with session, session.driven() as call_apart:
            # If the run can be cancelled, waiting for the model can be abandoned, too.
            model = writer if stop_of_context() is None else StoppableModel(writer, call_apart)
            on_step = partial(self._record, steps) if pending is None else pending.step
            return Loop(
                Turns(session, model, opening, budget, depth, len(steps) + 1, on_step, on_text),
                system=instructions(self._runner.functions, model=not is_offline(writer)),
                untrusted=UntrustedRemarks(self._runner.view),
                hands_over=hands_over,
            ).run()

    def _read(
        self, opening: Opening, depth: int, steps: list[LoopStep], on_text: OnText, offline: LoopResult
    ) -> LoopResult | str:
        """Let the model read the memories of the offline model's result; return the reason if it has no answer."""
        from rlm_mem.recall.scaffold import Scaffold  # only needed for weak models

        session = self._session(opening, depth, self._budget, self._sub_model)
        with session, session.driven() as call_apart:
            model = self._llm if stop_of_context() is None else StoppableModel(self._llm, call_apart)
            on_step = partial(self._record, steps)
            turns = Turns(session, model, opening, self._budget, depth, len(steps) + 1, on_step, on_text)
            form = self._form if depth == 0 else None
            reason = Scaffold(turns, offline.chunk_ids, suggested=offline.suggestion, form=form).run()
            final = session.final
            if reason is not None or final is None:
                return reason or "the answer was not accepted"
            return LoopResult.of(final, steps=tuple(turns.steps))

    def _session(self, opening: Opening, depth: int, budget: Budget, answers: LLM) -> SandboxSession:
        def sub_question(question: str) -> dict[str, Any]:
            return self._sub_question(question, depth + 1)

        def sub_questions(questions: list[str]) -> list[Any]:
            # Nested batches are answered one by one, since each session of a run occupies a worker.
            at_once = MAX_SUB_SESSIONS if depth == 0 else 1
            return in_parallel(sub_question, [(question,) for question in questions], at_once)

        accept = self._form.value_of if self._form is not None and depth == 0 else None
        session = self._runner.session(budget, answers, sub_question, sub_questions, accept=accept)
        # The record of a run has the hits of its own opening, not those of its sub-questions.
        session.shown(opening.hit_ids, map(itemgetter("id"), () if depth else opening.hits))
        return session

    def _sub_question(self, question: str, depth: int) -> dict[str, Any]:
        question = check_query(question)
        # Checked before the opening is built, so that a refused depth costs nothing.
        self._budget.enter(depth)
        result = self.answer(self._runner.opening(question), depth)
        self._budget.check()
        return {
            "answer": result.answer,
            "chunk_ids": list(result.chunk_ids or result.evidence),
            "confidence": result.confidence,
        }

    def _record(self, steps: list[LoopStep], step: LoopStep) -> None:
        steps.append(step)
        self._recorder.step(step)
        with self._recording:  # sub-questions of a batch run in threads
            self.evidence.update(dict.fromkeys(step.chunks_read))
            if self._on_step is not None:
                self._on_step(step)
