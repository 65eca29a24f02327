"""RECALL: answer a question from the memory by programs that the model writes (docs/spec/operations.md, RECALL).

A :class:`Runner` combines session, budget, sub-questions and trajectory into a run; REASON uses it as well.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from rlm_mem import search as searching
from rlm_mem.arguments import check_function, check_kind, check_mapping
from rlm_mem.chunk import format_time
from rlm_mem.config import Config
from rlm_mem.errors import BudgetError, InvalidQuery, ModelTimeout
from rlm_mem.models.base import LLM, Budget, Limits, Spent, Usage, is_llm
from rlm_mem.models.opening import adapt
from rlm_mem.recall.loop import (
    Loop,
    LoopResult,
    LoopStep,
    answer_text,
    confidence_of,
    existing,
    first_ids,
    supporting,
)
from rlm_mem.recall.model_calls import ModelCalls, StoppableModel, SubModel, in_parallel
from rlm_mem.recall.outcome import ENDINGS, Method, OutcomeWord, confidence_words, ending_of, outcome_word
from rlm_mem.recall.prompts import Opening, build_opening, instructions, store_figures
from rlm_mem.recall.result_schema import ResultSchema
from rlm_mem.recall.trajectory import (
    RecordedLLM,
    Trajectory,
    TrajectoryRecorder,
    error_text,
    prune_trajectories,
    record_recall,
)
from rlm_mem.recall.trust_remarks import UntrustedRemarks
from rlm_mem.sandbox.engine import stop_of_context
from rlm_mem.sandbox.session import SandboxSession
from rlm_mem.store.core.records import standing
from rlm_mem.telemetry import observed
from rlm_mem.text.tokens import texts_within

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.config import RecallConfig
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = [
    "RecallOperation",
    "RecallResult",
    "Run",
    "RunOperation",
    "Runner",
    "Source",
    "Standing",
    "check_query",
    "described",
    "limits_from",
    "source_of",
]


_OFFLINE_SECONDS = 5.0
"""Least seconds that the offline model gets, even if a slow model has used up the time of the run."""

_MAX_QUERY = 10_000
_FIGURES_SECONDS = 5.0
MAX_SUB_SESSIONS = 4
"""Sub-questions of a batch that are answered at the same time."""
_REPLACEABLE = ("iterations", "model_calls", "seconds", "tokens", "usd", "repetition")
"""Values of ``stopped_by`` after which the offline model takes over from a model with replies that did not run."""

OnText = Callable[[str], None] | None
HostFunctions = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True)
class Run:
    """A run that ended, with its trajectory still open for the outcome."""

    loop: LoopResult
    opening: Opening
    evidence: tuple[str, ...]
    spent: Spent
    recorder: TrajectoryRecorder


def limits_from(config: RecallConfig) -> Limits:
    """The limits that the settings ask for; 0 tokens or dollars mean no limit."""
    return Limits(
        iterations=config.max_iterations,
        depth=config.max_depth,
        seconds=config.max_seconds,
        model_calls=config.max_model_calls,
        tokens=config.max_tokens or None,
        usd=config.max_usd or None,
    )


def check_query(query: str) -> str:
    """Return the question without surrounding space.

    Raises:
        InvalidQuery: empty, not text, not valid Unicode, or longer than 10,000 characters.
    """
    if not isinstance(query, str) or not query.strip():
        raise InvalidQuery("the question is empty", hint="ask in words: recall('what did Ana decide?')")
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


def _plain_number(value: Decimal | float | None) -> float | str | None:
    # Decimals stay exact as text, as in the trajectory file.
    return str(value) if isinstance(value, Decimal) else value


class Runner:
    """Runs questions against one store with one model.

    Args:
        store: the store that is searched; programs cannot write to it.
        llm: an LLM, a name, a callable, or an object whose ``complete(prompt)`` returns a str; None: as configured.
        limits: budgets of one run; None: ``config.recall``.
        config: settings; None: the store's.
        functions: further read-only host functions by name.
        engine: sandbox engine; None: ``config.sandbox.engine``.
        as_of: answer from what held at this time; None: at present.
    """

    def __init__(
        self,
        store: ChunkStore,
        llm: object = None,
        *,
        limits: Limits | None = None,
        config: Config | None = None,
        functions: HostFunctions | None = None,
        engine: str | None = None,
        as_of: str | date | datetime | None = None,
    ) -> None:
        self.store = store
        self.view = store if as_of is None else store.held_at(as_of)
        self.config: Config = store.config if config is None else check_kind(config, Config, "config")
        self.llm = llm if is_llm(llm) else adapt(llm, self.config)
        self.limits = check_kind(limits, Limits, "limits") if limits else limits_from(self.config.recall)
        self.functions = {} if functions is None else dict(check_mapping(functions, "functions"))
        self.engine = self.config.sandbox.engine if engine is None else check_kind(engine, str, "engine")
        self._figures: tuple[float, dict[str, Any]] | None = None

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
            llm, limits: what writes the programs, and the budgets of this run; None: the runner's.
            task, form: what kind of answer is wanted; the form that it must fit.
            fallback: takes over from a model whose replies do not run; None: the offline model.
            on_step, on_text: called after each turn, and with each piece of the model's replies.

        Raises:
            InvalidQuery: the question is empty.
            ModelError: the model failed; the steps so far are in the trajectory.
        """
        query = check_query(query)
        llm = llm or self.llm
        if limits is not None:
            check_kind(limits, Limits, "limits")
        if on_step is not None or on_text is not None:
            check_function(on_step, "on_step"), check_function(on_text, "on_text")
        budget = Budget(limits or self.limits)
        recorder = self.recorder(query, operation, llm.name, budget.limits)
        sub_model: LLM = RecordedLLM(self.sub_model(llm), recorder)
        guard = threading.Lock()
        evidence: dict[str, None] = {}

        def record(taken: list[LoopStep], step: LoopStep) -> None:
            taken.append(step)
            recorder.step(step)
            with guard:  # sub-questions of a batch end in threads of their own
                evidence.update(dict.fromkeys(step.chunks_read))
                if on_step is not None:
                    on_step(step)

        def open_session(account: Budget, answers: LLM, depth: int) -> SandboxSession:
            return self.session(
                account,
                answers,
                lambda question: sub_question(question, depth + 1),
                # Nested batches are answered one by one: each session of a run occupies a worker.
                lambda questions: in_parallel(
                    lambda question: sub_question(question, depth + 1),
                    [(question,) for question in questions],
                    MAX_SUB_SESSIONS if depth == 0 else 1,
                ),
                accept=form.value_of if form is not None and depth == 0 else None,
            )

        def drive(
            writer: LLM, opening: Opening, depth: int, account: Budget, taken: list[LoopStep], **more: Any
        ) -> LoopResult:
            answers = sub_model if writer is llm else RecordedLLM(writer, recorder)
            session = open_session(account, answers, depth)
            session.shown(opening.hit_ids)
            with session, session.driven() as call_apart:
                return Loop(
                    session,
                    # If the run can be cancelled, waiting for the model can be abandoned, too.
                    writer if stop_of_context() is None else StoppableModel(writer, call_apart),
                    opening,
                    budget=account,
                    system=instructions(self.functions, model=writer.name != "offline"),
                    depth=depth,
                    first_turn=len(taken) + 1,
                    on_step=partial(record, taken),
                    untrusted=UntrustedRemarks(self.view),
                    **more,
                ).run()

        def read(
            opening: Opening, depth: int, taken: list[LoopStep], on_text: OnText
        ) -> tuple[LoopResult | None, str]:
            """The result of a scaffolded run, or None and the reason why there is none."""
            from rlm_mem.recall.scaffold import Scaffold  # needed for weak models only

            session = open_session(budget, sub_model, depth)
            session.shown(opening.hit_ids)
            with session, session.driven() as call_apart:
                scaffold = Scaffold(
                    session,
                    llm if stop_of_context() is None else StoppableModel(llm, call_apart),
                    opening,
                    budget=budget,
                    depth=depth,
                    first_turn=len(taken) + 1,
                    on_step=partial(record, taken),
                    on_text=on_text,
                    form=form if depth == 0 else None,
                )
                why = scaffold.run()
                final = session.final
                if why is not None or final is None:
                    return None, why or "the answer was not accepted"
                read_ids = (chunk_id for step in scaffold.steps for chunk_id in step.chunks_read)
                return LoopResult(
                    answer=final.answer,
                    concluded=True,
                    chunk_ids=tuple(final.chunk_ids),
                    confidence=None,
                    steps=tuple(scaffold.steps),
                    evidence=first_ids(dict.fromkeys(read_ids)),
                ), ""

        def answer(opening: Opening, depth: int, on_text: OnText = None) -> LoopResult:
            scaffold = self.config.recall.scaffold if llm.name != "offline" else "never"
            taken: list[LoopStep] = []
            loop: LoopResult | None = None
            why = "recall.scaffold is always"
            reads = operation == "recall"
            if scaffold != "always":
                try:
                    loop = drive(
                        llm, opening, depth, budget, taken, on_text=on_text, hands_over=scaffold == "auto"
                    )
                    weak = loop.handed_over or (loop.not_run > 0 and loop.stopped_by in _REPLACEABLE)
                    if scaffold == "never" or not weak:
                        return loop
                    why, reads = "the model's programs did not run", reads and loop.handed_over
                except ModelTimeout:
                    if scaffold == "never" or any(step.ran for step in taken):
                        raise
                    why, reads = "the model did not answer in time", False
            note = ""
            if reads:
                try:
                    budget.enter(depth)
                    found, note = read(opening, depth, taken, on_text)
                    if found is not None:
                        return replace(
                            found,
                            detail={
                                "method": "scaffolded",
                                "note": f"{why}, so it only read what was found for it",
                            },
                        )
                except (BudgetError, ModelTimeout) as error:
                    note = str(error)
            # The offline model costs nothing but a little time.
            limits = Limits(
                iterations=10,
                depth=self.limits.depth,
                seconds=max(_OFFLINE_SECONDS, budget.remaining_seconds()),
                model_calls=None,
            )
            reader = fallback or adapt("offline")
            held = drive(reader, opening, depth, Budget(limits), taken)
            because = f"{why}; {note}" if note else why
            return replace(
                held, detail={"method": "offline", "note": f"{because}; this is what the offline model found"}
            )

        def sub_question(question: str, depth: int) -> dict[str, Any]:
            question = check_query(question)
            # Checked before the opening is built, so that a refused depth costs nothing.
            budget.enter(depth)
            result = answer(self.opening(question), depth)
            budget.check()
            return {
                "answer": result.answer,
                "chunk_ids": list(result.chunk_ids or result.evidence),
                "confidence": result.confidence,
            }

        budget.start()
        if form is not None:
            task = f"{task} {form.task}".strip()
            recorder.trajectory.result_schema = form.json_schema
        opening = self.opening(query, task, llm.name != "offline")  # the offline model reads none
        recorder.begin(opening.store, opening.hits)
        try:
            loop = answer(opening, 0, on_text)
        except BaseException as error:
            recorder.finish(budget.spent(), evidence=evidence, error=error_text(error))
            error.add_note(f"The steps so far are in trajectory {recorder.trajectory.id}.")
            raise
        return Run(loop, opening, first_ids(evidence), budget.spent(), recorder)

    def opening(self, query: str, task: str = "", outline: bool = False) -> Opening:
        """What the model sees first; figures of the store may be up to 5 seconds old, hits are always current."""
        if self._figures is None or time.monotonic() - self._figures[0] > _FIGURES_SECONDS:
            self._figures = (time.monotonic(), store_figures(self.view))
        figures = dict(self._figures[1])
        return build_opening(
            self.view, query, limit=self.config.recall.first_hits, task=task, figures=figures, outline=outline
        )

    def recorder(self, query: str, operation: str, model: str, limits: Limits) -> TrajectoryRecorder:
        """Begin a trajectory, and delete those older than ``recall.keep_trajectory_days``."""
        settings = self.config.recall
        recorder = TrajectoryRecorder(
            self.store,
            operation,
            query,
            model=model,
            engine=self.engine,
            limits={name: _plain_number(value) for name, value in asdict(limits).items()},
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
        named = settings.llm.sub_model if writer.name != "offline" else ""
        model = adapt(named, settings) if named else writer
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
        """A sandbox session with this runner's settings that spends from ``budget``.

        Args:
            llm: answers ``llm_query``.
            sub_question: answers ``rlm_query``.
            sub_questions: answers ``rlm_query_batched``; None: one by one.
            accept: raises InputError for an answer that does not have the required form.
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


class RunOperation:
    """The common base of RECALL and REASON: a store, a model, budgets and an engine.

    Args:
        store: the memory.
        llm: an LLM, a model name such as ``"offline"``, a callable, or an object whose ``complete(prompt)``
            returns a str. None: the configured model, which is the offline one by default (no key needed).
        llm_client: another documented name of ``llm``.
        limits: budgets of one recall; None: ``config.recall``.
        config: settings; None: the store's.
        functions: further read-only host functions for the programs, by name.
        engine: ``monty`` or ``cpython``; None: ``config.sandbox.engine``.
        as_of: answer from what held at this time; None: at present.

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
        self._runner = Runner(
            store,
            llm if llm is not None else llm_client,
            limits=limits,
            config=config,
            functions=functions,
            engine=engine,
            as_of=as_of,
        )


_SHOWN = 5
"""Most sources that a printed result names."""
_EXCERPTS = (1_500,) * 3 + (500,) * 7
"""Most characters of the excerpts of the first ten sources: who reads on for an answer reads the first ones."""
_LINE = 160  # most characters of a source's line


@dataclass(frozen=True)
class Source:
    """A memory behind an answer; without an answer, one of the closest.

    Attributes:
        chunk_id: id of the chunk.
        at: when it was said or happened (ISO 8601).
        line: its first words, on one line of at most 160 characters.
        excerpt: the part most relevant to the question, on one line of at most 1,500 characters, from the fourth source
            on of at most 500; only the first ten sources of a result have one, for others it is ``line``.
        origin: how it came: person, agent, tool, import, web.
        trust: how far it is trusted: untrusted, ordinary, trusted.
    """

    chunk_id: str
    at: str
    line: str
    excerpt: str = ""
    origin: str = "person"
    trust: str = "trusted"

    def __str__(self) -> str:
        untrusted = f"  [untrusted: {self.origin}]" if self.trust == "untrusted" else ""
        return f"{self.chunk_id}  {self.at[:10]}  {self.line}{untrusted}"


@dataclass(frozen=True)
class Standing:
    """How far a memory can be relied on.

    Attributes:
        chunk_id: id of the chunk.
        tier: of a tiered memory, None for a plain chunk.
        reliability, confidence: 0 to 1.
        usage_count: how often it was used.
        success_rate: share of the uses that went well, 0 to 1; None: not known.
    """

    chunk_id: str
    tier: str | None
    reliability: float
    confidence: float
    usage_count: int
    success_rate: float | None


@dataclass
class RecallResult:
    """The answer to a question (docs/spec/operations.md, RECALL).

    Attributes:
        content: the answer; None when the memory does not hold it (``concluded``) or a budget ended the run.
        chunk_ids: the chunks the answer rests on; without an answer, the best evidence found.
        confidence: 0 to 1. As the model gave it to FINAL, else derived from the chunks (``confidence_of``);
            0 when nothing was concluded. With ``content`` None: how sure the model is that it is not there.
        iterations_used: turns of the run, sub-questions included.
        trajectory: every step; ``trajectory.path`` is the file.
        usage: tokens of all calls.
        cost: US dollars of all calls, None when one of them had no known price.
        stopped_by: iterations, depth, seconds, model_calls, tokens or usd; ``repetition`` when the model sent one
            failing reply four times in a row; None when FINAL was called.
        evidence: ids of the chunks that the programs read, in order.
        concluded: FINAL was called.
        seconds: wall clock of the run.
        standing: how far each of ``chunk_ids`` that still exists can be relied on.
        sources: the same chunks with date, first words, and the part most relevant to the question.
        method: ``programs``: the model wrote them; ``scaffolded``: it read what built-in programs found; ``offline``:
            the offline model took over, since the model could do neither.
        note: why ``method`` is not ``programs``; else empty.
        value: the answer in the form requested with ``result``; None if none was requested.
    """

    content: str | None
    chunk_ids: list[str]
    confidence: float
    iterations_used: int
    trajectory: Trajectory
    usage: Usage
    cost: Decimal | None
    stopped_by: str | None
    evidence: list[str]
    concluded: bool
    seconds: float
    standing: list[Standing] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    method: Method = "programs"
    note: str = ""
    value: Any = None

    def __str__(self) -> str:
        text = described(self.content, self.outcome, self.sources, self.confidence, self.stopped_by)
        return f"{text}\n{self.method}: {self.note}" if self.note else text

    def __repr__(self) -> str:
        return (
            f"RecallResult(outcome={self.outcome!r}, content={self.content!r}, chunk_ids={self.chunk_ids!r}, "
            f"confidence={self.confidence!r}, iterations_used={self.iterations_used!r}, "
            f"trajectory={self.trajectory.id!r})"
        )

    @property
    def outcome(self) -> OutcomeWord:
        """``answered``, ``closest only``, ``not held`` or ``stopped`` (:mod:`rlm_mem.recall.outcome`)."""
        return outcome_word(content=self.content, chunk_ids=self.chunk_ids, concluded=self.concluded)

    def within(self, max_tokens: int) -> RecallResult:
        """The result with only the first sources whose excerpts fit ``max_tokens`` together, the last one cut."""
        texts = texts_within([one.excerpt for one in self.sources], max_tokens)
        kept = [
            one if text == one.excerpt else replace(one, excerpt=text, line=min(one.line, text, key=len))
            for one, text in zip(self.sources, texts, strict=False)
        ]
        return replace(self, sources=kept)


class RecallOperation(RunOperation):
    """Answers questions from a store; arguments as for :class:`~rlm_mem.recall.recall.RunOperation`."""

    @observed("recall", record_recall)
    def recall(
        self,
        query: str,
        *,
        result: Any = None,
        limits: Limits | None = None,
        on_step: Callable[[LoopStep], None] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> RecallResult:
        """Answer ``query`` from the memory.

        Args:
            query: the question, in words.
            result: the form of the answer (:class:`~rlm_mem.recall.result_schema.ResultSchema`); ``value`` is then of
                this type. An answer that does not fit goes back to the model with the reason.
            limits: budgets of this recall only.
            on_step: called after every turn, for live views.
            on_text: called with each piece of the model's replies as it arrives.

        Raises:
            InvalidQuery: the question is empty.
            InputError: ``result`` is not a supported form.
            ModelError: the model failed.
        """
        form = None if result is None else ResultSchema(result)
        run = self._runner.run(query, "recall", limits=limits, form=form, on_step=on_step, on_text=on_text)
        return recall_result(self._runner.view, run, form)

    __call__ = recall


def recall_result(store: ChunkStore, run: Run, form: ResultSchema | None = None) -> RecallResult:
    """Make the result of a finished run (text, chunks, confidence), and close its trajectory."""
    content, named = answer_text(run.loop.answer)
    chunks = existing(store, [*run.loop.chunk_ids, *named])
    if content is not None and not chunks:
        chunks = supporting(store, content, run.evidence)
    confidence = run.loop.confidence
    if confidence is None:
        confidence = confidence_of(store, content, chunks) if content is not None else 0.0
    handed_out = list(chunks)
    if not run.loop.concluded:
        # The best evidence: the chunks that were read, else the ranker's first hits.
        handed_out = list(run.evidence) or run.opening.hit_ids
        confidence = 0.0
    values: dict[str, Any] = {
        "content": content,
        "chunk_ids": handed_out,
        "confidence": min(1.0, max(0.0, float(confidence))),
        "concluded": run.loop.concluded,
        "stopped_by": run.loop.stopped_by,
        "evidence": list(run.evidence),
    }
    trajectory = run.recorder.finish(run.spent, detail=run.loop.detail, **values)
    log_reading(store, trajectory, handed_out)
    behind = list(store.get_many(values["chunk_ids"], track=False).values())
    return RecallResult(
        iterations_used=run.spent.iterations,
        trajectory=trajectory,
        usage=run.spent.usage,
        cost=run.spent.cost,
        seconds=run.spent.seconds,
        standing=[Standing(chunk.id, **standing(chunk)) for chunk in behind],
        sources=_sources(store, trajectory, behind),
        value=None if form is None or content is None else form.value_of(run.loop.answer),
        **run.loop.detail,
        **values,
    )


def _sources(store: ChunkStore, trajectory: Trajectory, chunks: list[Chunk]) -> list[Source]:
    lines = {hit["id"]: hit["lines"] for hit in trajectory.hits}
    told = searching.excerpts(store, trajectory.query, chunks, longest=_EXCERPTS, lines=lines)
    return [source_of(chunk, told.get(chunk.id)) for chunk in chunks]


def source_of(chunk: Chunk, excerpt: str | None = None) -> Source:
    """A chunk as the source of an answer."""
    line = " ".join(chunk.content[: _LINE * 4].split())
    line = line if len(line) <= _LINE else line[: _LINE - 1] + "…"
    about = chunk.metadata
    return Source(chunk.id, about.at, line, excerpt or line, about.origin, about.trust)


def described(
    answer: str | None, outcome: OutcomeWord, sources: list[Source], confidence: float, stopped_by: str | None
) -> str:
    """A result in a few lines: answer, sources, confidence."""
    lines = [answer if outcome == "answered" and answer else ENDINGS[outcome]]
    if stopped_by is not None:
        lines.append(ending_of(stopped_by))
    lines += [f"  {source}" for source in sources[:_SHOWN]]
    if len(sources) > _SHOWN:
        lines.append(f"  and {len(sources) - _SHOWN} more")
    words = confidence_words(outcome, confidence)
    return "\n".join([*lines, words] if words else lines)


def log_reading(store: ChunkStore, trajectory: Trajectory, chunk_ids: list[str]) -> None:
    """Record the returned chunks in the audit log; a read-only store has none."""
    if not store.backend.read_only:
        store.record_event(
            trajectory.operation, chunk_ids=chunk_ids, trajectory=trajectory.id, query=trajectory.query
        )
