"""One run of the loop for RECALL or REASON: session, budget, sub-questions and trajectory put together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Unpack

from rlm_mem.errors import InvalidQuery
from rlm_mem.models.base import LLM, Completion, Options, Prompt, adapt, as_messages, render_prompt
from rlm_mem.models.budget import Budget, Limits, Spent
from rlm_mem.recall.recorder import TrajectoryRecorder
from rlm_mem.recall.trajectory import prompt_key, prune_trajectories
from rlm_mem.sandbox.calls import bounded_reply
from rlm_mem.sandbox.loop import LoopResult, LoopStep, drive
from rlm_mem.sandbox.prompts import Opening, build_opening, instructions, store_figures
from rlm_mem.sandbox.steps import MAX_ERROR_CHARS
from rlm_mem.sandbox.stopping import Calls, StoppableModel, stop_of_context
from rlm_mem.sandbox.turn import first_ids
from rlm_mem.sandbox.values import clipped, well_formed

if TYPE_CHECKING:
    from rlm_mem.config import Config, RecallConfig
    from rlm_mem.sandbox.session import REPLSession
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["Operation", "RecordedLLM", "Run", "Runner", "check_query", "limits_from"]

_PREVIEW = 400
_MAX_QUERY = 10_000
_FIGURES_SECONDS = 5.0

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


def described(error: BaseException) -> str:
    """Kind and message of an error, as records hold it."""
    return clipped(well_formed(f"{type(error).__name__}: {error}"), MAX_ERROR_CHARS)


def check_query(query: str) -> str:
    """Return the question without surrounding space.

    Raises:
        InvalidQuery: empty, not a text, no valid Unicode, or longer than 10,000 characters.
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
            f"the question holds a lone surrogate at character {error.start}: it is not valid Unicode text"
        ) from None
    return query.strip()


def _plain_number(value: Decimal | float | None) -> float | str | None:
    # As the trajectory's file holds it: exact.
    return str(value) if isinstance(value, Decimal) else value


class RecordedLLM:
    """Passes the sub-calls of programs on to the model and records each of them."""

    def __init__(self, llm: LLM, recorder: TrajectoryRecorder) -> None:
        self._llm = llm
        self._recorder = recorder
        self.name = llm.name

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Answer as the model does; its errors pass through after they were recorded."""
        asked = as_messages(messages)
        prompt = render_prompt(asked)
        record = {"key": prompt_key(prompt), "prompt": prompt[:_PREVIEW], "prompt_chars": len(prompt)}
        try:
            completion = bounded_reply(self._llm.complete(asked, **options))
        except Exception as error:  # recorded and raised again, whatever a foreign model throws
            self._recorder.call(**record, reply="", model=self.name, error=described(error))
            raise
        self._recorder.call(
            **record,
            reply=completion.text,
            model=completion.model or self.name,
            usage=completion.usage,
            cost=completion.cost,
            seconds=completion.seconds,
        )
        return completion


class Runner:
    """Runs questions against one store with one model.

    Args:
        store: what is searched; nothing a program calls can write to it.
        llm: an LLM, a name, a callable, or an object whose ``complete(prompt)`` returns a str; None: configured.
        limits: budgets of one run; None: ``config.recall``.
        config: settings; None: the store's.
        functions: further read-only host functions by name.
        engine: sandbox engine; None: ``config.sandbox.engine``.
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
    ) -> None:
        self.store = store
        self.config: Config = config or store.config
        self.llm = adapt(llm, self.config)
        self.limits = limits or limits_from(self.config.recall)
        self.functions = dict(functions or {})
        self.engine = engine or self.config.sandbox.engine
        self._figures: tuple[float, dict[str, Any]] | None = None

    def run(
        self,
        query: str,
        operation: str,
        *,
        llm: LLM | None = None,
        limits: Limits | None = None,
        task: str = "",
        on_step: Callable[[LoopStep], None] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> Run:
        """Drive one question to its end.

        Raises:
            InvalidQuery: the question is empty.
            ModelError: the model failed; what was done until then is in the trajectory.
        """
        query = check_query(query)
        model = writer = llm or self.llm
        budget = Budget(limits or self.limits)
        recorder = self.recorder(query, operation, model.name, budget.limits)
        evidence: dict[str, None] = {}

        def record(step: LoopStep) -> None:
            recorder.step(step)
            evidence.update(dict.fromkeys(step.chunks_read))
            if on_step is not None:
                on_step(step)

        budget.start()
        opening = self.opening(query, task)
        recorder.begin(opening.store, opening.hits)

        def ask(asked: str | Opening, depth: int, **more: Any) -> LoopResult:
            return self._drive(
                asked, depth, writer, RecordedLLM(model, recorder), budget, sub_question, record, **more
            )

        def sub_question(question: str, depth: int) -> dict[str, Any]:
            result = ask(check_query(question), depth)
            budget.check()
            return {
                "answer": result.answer,
                "chunk_ids": list(result.chunk_ids or result.evidence),
                "confidence": result.confidence,
            }

        stop = stop_of_context()
        calls = Calls()
        try:
            if stop is None:
                loop = ask(opening, 0, on_text=on_text)
            else:
                # Somebody may end the run: the wait for the model can then be left, too.
                writer = StoppableModel(model, calls, stop.check)
                with stop.ending(calls.leave):
                    loop = ask(opening, 0, on_text=on_text)
        except BaseException as error:
            recorder.finish(budget.spent(), evidence=evidence, error=described(error))
            error.add_note(f"The steps so far are in trajectory {recorder.trajectory.id}.")
            raise
        finally:
            calls.close()
        return Run(loop, opening, first_ids(evidence), budget.spent(), recorder)

    def opening(self, query: str, task: str = "") -> Opening:
        """What the model sees first; figures of the store may be some seconds old, hits never are."""
        now = time.monotonic()
        if self._figures is None or now - self._figures[0] > _FIGURES_SECONDS:
            self._figures = (now, store_figures(self.store))
        figures = dict(self._figures[1])
        return build_opening(
            self.store, query, limit=self.config.recall.first_hits, task=task, figures=figures
        )

    def recorder(self, query: str, operation: str, model: str, limits: Limits) -> TrajectoryRecorder:
        """Begin a trajectory, and let those go that are older than the settings keep."""
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
        if recorder.recording:
            prune_trajectories(self.store, settings.keep_trajectory_days)
        return recorder

    def session(self, budget: Budget, **more: Any) -> REPLSession:
        """A sandbox session of this runner's kind that spends from ``budget``."""
        from rlm_mem.sandbox.session import REPLSession

        return REPLSession(
            self.store,
            timeout_seconds=self.config.sandbox.timeout_seconds,
            functions=self.functions,
            engine=self.engine,
            budget=budget,
            config=self.config,
            **more,
        )

    def _drive(
        self,
        asked: str | Opening,
        depth: int,
        llm: LLM,
        sub_llm: LLM,
        budget: Budget,
        sub_question: Callable[[str, int], Any],
        on_step: Callable[[LoopStep], None],
        *,
        on_text: Callable[[str], None] | None = None,
    ) -> LoopResult:
        settings = self.config
        if isinstance(asked, str):
            # Checked before the opening is built, so that a refused depth costs nothing.
            budget.enter(depth)
            asked = self.opening(asked)
        with self.session(
            budget, llm_client=sub_llm, depth=depth, query=asked.question, subquery=sub_question
        ) as session:
            return drive(
                session,
                llm,
                asked,
                budget=budget,
                system=instructions(self.functions, model=llm.name != "offline"),
                depth=depth,
                context_tokens=getattr(llm, "context_tokens", None) or settings.llm.context_tokens,
                answer_tokens=settings.llm.max_tokens,
                output_chars=settings.sandbox.max_output_chars,
                timeout=settings.llm.timeout_seconds,
                on_step=on_step,
                on_text=on_text,
            )


class Operation:
    """What RECALL and REASON are made of: a store, a model, budgets and an engine.

    Args:
        store: the memory.
        llm: an LLM, a model name such as ``"offline"``, a callable, or an object whose ``complete(prompt)``
            returns a str. None: the configured model, which is the offline one by default (no key needed).
        llm_client: the same under another documented name.
        limits: budgets of one recall; None: ``config.recall``.
        config: settings; None: the store's.
        functions: further read-only host functions for the programs, by name.
        engine: ``monty`` or ``cpython``; None: ``config.sandbox.engine``.

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
    ) -> None:
        self._runner = Runner(
            store,
            llm if llm is not None else llm_client,
            limits=limits,
            config=config,
            functions=functions,
            engine=engine,
        )
