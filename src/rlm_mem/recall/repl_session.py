"""REPLSession: a sandbox session with its own model, which answers sub-calls and can write the programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rlm_mem.arguments import check_kind, check_words
from rlm_mem.errors import BudgetError, InputError, SessionComplete
from rlm_mem.models.base import LLM, Budget, Limits
from rlm_mem.recall.loop import Loop, LoopResult, LoopStep, Turns
from rlm_mem.recall.model_calls import ModelCalls, StoppableModel
from rlm_mem.recall.opening import build_opening
from rlm_mem.sandbox.session import SandboxSession, check_positive
from rlm_mem.store.core.records import page

if TYPE_CHECKING:
    from rlm_mem.config import Config
    from rlm_mem.store.core.chunk_store import ChunkStore


class REPLSession(SandboxSession):
    """Runs programs of a model over one store (docs/spec/operations.md, REPLSession).

    Args:
        chunk_store: the memory, bound to one namespace; programs only read it.
        llm_client: answers ``llm_query`` and writes the programs of :meth:`retrieve`: an object with
            ``complete()``, a callable, a model name, or None for the configured model.
        max_iterations: turns and model calls allowed when ``budget`` is not given.
        timeout_seconds: wall clock for one program.
        max_depth: deepest nesting of ``rlm_query``.
        functions, engine, on_event, config: as for :class:`~rlm_mem.sandbox.session.SandboxSession`.
        budget: the budget of the whole run, shared with other sessions.
        depth: nesting of this session, 0 for the first.
        query: the question, for :meth:`retrieve`.
        on_step: called after each turn of :meth:`retrieve` and of nested sessions.
        accept: as for :class:`~rlm_mem.sandbox.session.SandboxSession`.
    """

    def __init__(
        self,
        chunk_store: ChunkStore,
        llm_client: Any = None,
        max_iterations: int = 10,
        timeout_seconds: float = 60,
        max_depth: int = 5,
        *,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        engine: str | None = None,
        budget: Budget | None = None,
        depth: int = 0,
        query: str | None = None,
        on_event: Callable[[str, Any], None] | None = None,
        config: Config | None = None,
        on_step: Callable[[LoopStep], None] | None = None,
        accept: Callable[[Any], Any] | None = None,
    ) -> None:
        check_positive("max_iterations", max_iterations)
        page(max_depth, "max_depth")
        page(depth, "depth")
        if budget is not None:
            check_kind(budget, Budget, "budget")
        super().__init__(
            chunk_store,
            ask=lambda prompt, context, seconds: self._models.ask(prompt, context, seconds),
            ask_all=lambda prompts, seconds: self._models.ask_all(prompts, seconds),
            sub_question=self._answer_nested,
            # A session without a shared budget bounds model calls by iterations only (docs/spec/decisions.md, 21).
            check=None if budget is None else budget.check,
            functions=functions,
            timeout_seconds=timeout_seconds,
            engine=engine,
            on_event=on_event,
            config=config,
            accept=accept,
        )
        self.llm_client = llm_client
        self.max_iterations = max_iterations
        self.max_depth = max_depth
        self.depth = depth
        self.query = query
        self._given_budget = budget
        self._on_step = on_step
        self._nested: REPLSession | None = None
        self.writer: LLM | None = None  # writes the programs of sub-questions; None: llm_client does
        self._open_budget(max_iterations)

    def _open_budget(self, iterations: int) -> None:
        given = self._given_budget
        self.budget = given or Budget(
            Limits(iterations=iterations, depth=self.max_depth, seconds=None, model_calls=None)
        )
        self._models = ModelCalls(self.llm_client, self.budget, self.config, counts_iterations=given is None)

    def retrieve(self, query: str | None = None, max_iterations: int | None = None) -> Any:
        """Answer a question: the model writes programs until one calls FINAL.

        Args:
            query: the question; None: the one given to the constructor.
            max_iterations: turns and model calls allowed; None: the session's.

        Returns:
            the answer, or None if the iterations ran out first or the memory has no answer.

        Raises:
            InputError: there is no question.
            ModelError: the model failed.
            SessionComplete: FINAL was called before.
        """
        question = query if query is not None else self.query
        if question is None or not check_words(question, "query").strip():
            raise InputError("retrieve needs a question", hint="call retrieve('…')")
        if self._final is not None:
            raise SessionComplete(
                "the session is complete: FINAL was called", hint="call reset(), or open another session"
            )
        if max_iterations is not None:
            check_positive("max_iterations", max_iterations)
        if self._given_budget is None:
            self._open_budget(max_iterations or self.max_iterations)
        return self._drive(question).answer

    def llm_query(self, prompt: str, context: dict[str, Any] | None = None) -> str:
        """Ask the model.

        Raises:
            MaxIterationsError: more calls than ``max_iterations``, in a session without a budget of its own.
            BudgetError: the run's budget is used up.
            ModelError: the model failed.
        """
        return self._models.ask(prompt, context, self.seconds_left())

    def reset(self) -> None:
        """Discard all variables, the answer, and the iterations counted by a session without a shared budget.

        Raises:
            SessionBusy: a program runs; :meth:`cancel` ends it.
        """
        super().reset()
        self._open_budget(self.max_iterations)

    def next_question(self, query: str, budget: Budget, llm_client: Any) -> None:
        """Take another question with its own budget; variables of earlier programs stay.

        Raises:
            SessionBusy: a program runs.
        """
        self.reopen()
        self.query = query
        self.llm_client = llm_client
        self._given_budget = budget
        self._check = budget.check
        self._open_budget(self.max_iterations)

    def _drive(self, question: str) -> LoopResult:
        """Let the model answer ``question`` in this session."""
        opening = build_opening(self.chunk_store, question, limit=self.config.recall.first_hits)
        self.shown(opening.hit_ids)
        with self.driven() as call_apart:
            writer = StoppableModel(self._models.model if self.writer is None else self.writer, call_apart)
            return Loop(Turns(self, writer, opening, self.budget, self.depth, on_step=self._on_step)).run()

    def _answer_nested(self, question: str) -> dict[str, Any]:
        depth = self.depth + 1
        # Ends the run, like every budget: a model that only gets an error asks again and again.
        self.budget.enter(depth)
        if depth > self.max_depth:
            raise BudgetError(
                f"rlm_query at depth {depth}, but max_depth is {self.max_depth}",
                stopped_by="depth",
                hint="raise max_depth",
            )
        self._nested = nested = REPLSession(
            self.chunk_store,
            self._models.model,
            self.max_iterations,
            max(0.1, min(self.timeout_seconds, self.seconds_left())),
            self.max_depth,
            functions=self._host_functions,
            engine=self.engine_name,
            budget=self.budget,
            depth=depth,
            query=question,
            on_event=self._on_event,
            config=self.config,
            on_step=self._on_step,
        )
        nested.writer = self.writer
        try:
            self._occupancy.check()
            result = nested._drive(question)
        finally:
            self._nested = None
            nested.close()
        for chunk_id in result.evidence:
            self._note_read(chunk_id)
        # A budget that ended the nested run has also ended this one.
        self.budget.check()
        return {"answer": result.answer, "chunk_ids": list(result.chunk_ids), "confidence": result.confidence}

    def _end(self, why: str) -> None:
        super()._end(why)
        nested = self._nested
        if nested is not None:
            nested.cancel()
