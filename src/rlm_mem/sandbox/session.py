"""SandboxSession, which runs programs over a store in one namespace, and shows long output in pages."""

from __future__ import annotations

import ast
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Self

from rlm_mem import errors
from rlm_mem.arguments import check_kind, check_mapping
from rlm_mem.config import Config
from rlm_mem.errors import BudgetError, InputError, InvalidConfig
from rlm_mem.sandbox.dispatch import Dispatcher, Finished, check_final
from rlm_mem.sandbox.engine import Calls, Engine, EngineLimits, HostCallFailed, Printed, stop_of_context
from rlm_mem.sandbox.functions import MODEL_FUNCTIONS, StoreFunctions, described
from rlm_mem.sandbox.model_functions import ModelFunctions
from rlm_mem.sandbox.occupancy import Occupancy
from rlm_mem.sandbox.pages import Pages
from rlm_mem.sandbox.policy import (
    ProgramNames,
    check_program,
    ready_imports,
    separate_variables,
    split_before_final,
    syntax_tree,
    variable_name,
)
from rlm_mem.sandbox.reference import help_text
from rlm_mem.sandbox.rows import rows_text
from rlm_mem.sandbox.seen import SeenChunks
from rlm_mem.sandbox.values import (
    Bounds,
    Final,
    StepOutput,
    Variable,
    bounded_error,
    chunk_ids_in,
    preview,
    well_formed,
)

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

MAX_KEPT_CHARS = 400_000
"""Maximum characters of one program's output that are kept for its pages."""
MAX_PROGRAM_CHARS = 64_000
"""Maximum characters of a program, whose syntax tree takes up to some 500 bytes of the host's memory per character."""


class SandboxSession:
    """Runs programs over one store; functions of the caller answer ``llm_query`` and similar calls.

    Variables, functions and imports persist from one program to the next until :meth:`reset`. A session is used by one
    thread at a time; :meth:`cancel` and :meth:`close` end a running program from any other thread. Functions of
    ``functions`` and model calls run in a thread of the session, so that they can be abandoned; they cannot use the
    session.

    Args:
        chunk_store: the memory, bound to one namespace; programs only read it.
        ask: answers ``llm_query`` as ``ask(prompt, context, seconds)``, where the program ends in ``seconds``. None:
            such calls fail because there is no model.
        ask_all: answers ``llm_query_batched`` as ``ask_all(prompts, seconds)``.
        sub_question: answers ``rlm_query(question)``.
        check: called before each program and after a time-out; returns the remaining seconds of the run, or raises
            BudgetError. None: only ``timeout_seconds`` applies.
        functions: further host functions by name, with plain data as arguments and results.
        timeout_seconds: wall-clock time limit of one program.
        engine: ``monty`` or ``cpython``; None: ``sandbox.engine`` of the settings.
        on_event: called with ``("host_call", HostCall)`` and ``("step", StepOutput)``.
        config: settings; None: the store's.
        sub_questions: answers ``rlm_query_batched(questions)``, in order; None: one after the other.
        accept: raises InputError if an answer other than None does not have the requested form.

    Raises:
        InputError: an argument is invalid.
        InvalidConfig: the engine is unknown, or this machine cannot isolate it.
    """

    def __init__(
        self,
        chunk_store: ChunkStore,
        *,
        ask: Callable[[Any, Any, float], str] | None = None,
        ask_all: Callable[[Any, float], list[str]] | None = None,
        sub_question: Callable[[str], Any] | None = None,
        check: Callable[[], float] | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        timeout_seconds: float = 60,
        engine: str | None = None,
        on_event: Callable[[str, Any], None] | None = None,
        config: Config | None = None,
        sub_questions: Callable[[list[str]], list[Any]] | None = None,
        accept: Callable[[Any], Any] | None = None,
    ) -> None:
        if chunk_store is None:
            raise InputError("a session needs a store", hint="pass chunk_store=ChunkStore(folder)")
        check_positive("timeout_seconds", timeout_seconds)
        self.chunk_store = chunk_store
        self.timeout_seconds = timeout_seconds
        if config is not None:
            check_kind(config, Config, "config")
        self.config = config or getattr(chunk_store, "config", None) or Config()
        self._accept = accept
        self._check = check
        self._on_event = on_event
        self._host_functions = {} if functions is None else dict(check_mapping(functions, "functions"))
        self.named_models = True  # help lists llm_query and the other model functions
        self.keeps_after_final = False  # names that a program defined before FINAL are kept
        self.pages = Pages()
        self._seen = SeenChunks()
        models = ModelFunctions(ask, ask_all, sub_question, sub_questions, self.seconds_left, self._seen)
        self._table = table = self._functions_by_name(models)
        self._reserved = frozenset(table)
        sandbox = self.config.sandbox
        self._dispatcher = Dispatcher(
            table, self._host_functions.keys(), sandbox.max_host_calls, on_event, self._call_in_thread
        )
        self._calls = Calls()
        self._occupancy = Occupancy(self._calls)
        self._printed = Printed(0)
        self._longest = max(60.0, float(timeout_seconds))
        limits = EngineLimits(
            seconds=self._longest,
            memory_mb=sandbox.memory_mb,
            bounds=Bounds(text=sandbox.max_string_bytes),
            allow_weaker_isolation=sandbox.allow_weaker_isolation,
        )
        self.engine_name = engine or sandbox.engine
        self._engine: Engine = open_engine(self.engine_name, limits)
        self._deadline = math.inf
        self._reads: dict[str, None] = {}
        self._bound: set[str] = set()  # names that programs may have bound
        self._variables: frozenset[str] = frozenset()  # variables with names of host functions
        self._ready: set[str] = set()  # names that were imported for programs
        self._final: Final | None = None
        self.last_step: StepOutput | None = None

    def _functions_by_name(self, models: ModelFunctions) -> dict[str, Callable[..., Any]]:
        functions = StoreFunctions(
            self.chunk_store, self._note_read, self._check_time, self._seen.ids, self._seen.listed
        )
        self.cut_lists = functions.cut
        table = functions.table()
        table["print_rows"] = self._print_rows
        table["page"] = lambda number=2: self.pages.get(number)
        table["help"] = self._help
        table |= models.table()
        table["FINAL"] = self._call_final
        for name, function in self._host_functions.items():
            if (
                not isinstance(name, str)
                or not name.isidentifier()
                or iskeyword(name)
                or name.startswith("_")
                or not callable(function)
            ):
                raise InputError(f"a host function needs a plain name and a callable; got {name!r}")
            if name in table:
                raise InputError(f"the sandbox provides {name} itself", hint="choose another name")
            table[name] = function
        return table

    def execute(self, code: str, timeout: float | None = None) -> Any:
        """Run a program and return the value of its last expression, or None.

        Args:
            code: Python source; a top-level ``return FINAL(x)`` is accepted.
            timeout: seconds, instead of ``timeout_seconds``; at most the larger of that and 60.

        Raises:
            SandboxViolation: the program uses something that is not allowed.
            ProgramError: it raised; names it assigned before that are kept.
            TimeoutError: it ran too long.
            SandboxCrashed: its worker died; earlier names are kept.
            SessionComplete: FINAL was called before.
            SessionBusy: another program runs in this session.
            SessionCancelled: cancel() or close() ended it; earlier names are kept, or after close() none.
            BudgetError: a budget of the run is used up.
        """
        step = self.run(code, timeout)
        if step.error is not None:
            raise step.error
        return step.value

    def run(self, code: str, timeout: float | None = None) -> StepOutput:
        """Run a program and return its result, with any error that the model can correct.

        Raises:
            SessionComplete: FINAL was called before.
            SessionBusy, SessionCancelled: see :meth:`execute`.
            BudgetError: a budget of the run is used up; ``last_step`` has the step until then.
        """
        if not isinstance(code, str):
            raise InputError("code must be a string")
        seconds = self.timeout_seconds if timeout is None else timeout
        check_positive("timeout", seconds)
        if seconds > self._longest:
            raise InputError(
                f"timeout can be at most {self._longest:g} seconds in this session",
                hint="open the session with a larger timeout_seconds",
            )
        with self._occupancy.use("run a program"), self._stoppable():
            if self._final is not None:
                raise errors.SessionComplete(
                    "the session is complete: FINAL was called", hint="call reset(), or open another session"
                )
            return self._perform(code, seconds)

    def get_state(self) -> dict[str, Any]:
        """Return the program's names with their current values.

        Returns:
            ``{name: value}`` if the value is plain data within the bounds of the sandbox; for anything else
            (functions, classes, instances, values that are too large) ``{"type": …, "preview": …}`` with a preview of
            at most some 120 characters. Empty if the values cannot be read within five seconds.
        """
        with self._occupancy.use("list its names"):
            variables = self._engine.variables(self._reserved | (self._ready - self._bound))
        return {
            variable_name(name): {"type": value.type, "preview": value.preview}
            if isinstance(value, Variable)
            else value
            for name, value in variables.items()
        }

    def get_result(self) -> Any:
        """Return the answer given to FINAL, or None (see also :attr:`final`)."""
        return None if self._final is None else self._final.answer

    def is_complete(self) -> bool:
        """Return whether FINAL was called."""
        return self._final is not None

    @property
    def functions(self) -> frozenset[str]:
        """Names of the functions that a program may call."""
        return self._reserved

    @property
    def final(self) -> Final | None:
        """The answer with its citations and confidence, or None before FINAL."""
        return self._final

    def reset(self) -> None:
        """Delete every name, the pages of long output, and the answer.

        Raises:
            SessionBusy: a program is running; :meth:`cancel` ends it.
        """
        with self._occupancy.use("be reset"):
            self._delete_names()
        self._final = None
        self._reads.clear()
        self._seen.clear()
        self.last_step = None

    def shown(self, chunk_ids: Iterable[str], listed: Iterable[str] = ()) -> None:
        """Record chunks that were shown to the model that writes the programs.

        Answers may then cite only these and the chunks that a program has seen: hits, lines, chunks that were read.
        If this method is never called, an answer may cite any chunk of the memory.

        Args:
            chunk_ids: the chunks.
            listed: those of them that lists of unseen turns leave out.
        """
        self._seen.show(chunk_ids, listed)

    def accepted(self, final: Final) -> Final:
        """Return ``final`` if each of its chunks exists and may be cited (see :meth:`shown`), and its form is valid.

        Raises:
            InputError: it cites other chunks, or its answer does not have the requested form.
        """
        if self._accept is not None and final.answer is not None:
            self._accept(final.answer)
        return self._seen.cited(final, self.chunk_store)

    def reopen(self) -> None:
        """Delete the answer for another question to the same session; names and citable chunks are kept.

        No turn counts as seen any more, since the other question has a record of its own.

        Raises:
            SessionBusy: a program is running.
        """
        with self._occupancy.use("take another question"):
            self._final = None
            self._seen.listed.clear()

    def close(self) -> None:
        """End a running program and release the worker; the answer remains available.

        A program in another thread ends at once with :class:`~rlm_mem.errors.SessionCancelled`. A closed session can be
        used again: it starts empty, as after :meth:`reset`.

        Raises:
            SessionBusy: called by a host function of the running program itself.
        """
        if self._occupancy.inside:
            raise self._occupancy.refusal("be closed")
        self._end("the session was closed while the program ran")
        self._delete_names()
        self._calls.close()

    def _delete_names(self) -> None:
        """Release the worker, and delete what programs have left; waits until a cancelled program has ended."""
        self._engine.reset()
        self._bound, self._ready, self._variables, self.pages = set(), set(), frozenset(), Pages()

    def cancel(self) -> None:
        """End the running program, if any, from any thread.

        Its worker is killed, and a pending call of a host function or a model is abandoned. The program's thread raises
        :class:`~rlm_mem.errors.SessionCancelled`; the session can be used again, with the names of earlier programs.
        """
        self._end("the program was cancelled")

    def _end(self, why: str) -> None:
        if self._occupancy.end(why):
            self._printed.stopped = True
            self._engine.interrupt()
            self._calls.abandon()

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        stop = stop_of_context()
        with nullcontext() if stop is None else stop.ending(self.cancel):
            yield

    @contextmanager
    def driven(self) -> Iterator[Callable[..., Any]]:
        """Mark the session as driven by a model while the block runs, so that it can be cancelled between programs too.

        Yields:
            A function that calls another one in a thread, so that :meth:`cancel` need not wait for it.
        """
        with self._occupancy.driven(), self._stoppable():
            yield self._call_in_thread

    def seconds_left(self) -> float:
        """Return the remaining seconds of the running program; infinite if none is running."""
        return self._deadline - time.monotonic()

    def _call_in_thread(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        """Return the result of ``function``, called in a thread so that :meth:`cancel` need not wait for it.

        Raises:
            SessionCancelled: it was abandoned.
            TimeoutError: the time of the running program ended first.
            Exception: an exception of the function.
        """
        self._occupancy.check()
        try:
            return self._calls.call(function, self.seconds_left(), *args, **keywords)
        except errors.SessionCancelled:
            self._occupancy.check()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # As documented, the end of a with block resets the session.
        try:
            self.reset()
        finally:  # also if another thread still runs a program
            self.close()

    # One program.

    def _perform(self, code: str, seconds: float) -> StepOutput:
        began = time.monotonic()
        printed = self._printed = Printed(MAX_KEPT_CHARS)
        step = self.last_step = StepOutput()
        self._dispatcher.begin(step)
        self._reads = {}
        if self._check is not None:
            seconds = min(seconds, self._check())
        self._deadline = began + seconds
        try:
            self._occupancy.check()
            tree = check_program(
                code,
                importable=self._engine.importable,
                reserved=self._reserved,
                max_chars=MAX_PROGRAM_CHARS,
                deadline=self._deadline,
            )
            code, tree, self._variables = separate_variables(code, tree, self._variables)
            self._import_on_use(tree, printed)
            for part in split_before_final(code, tree) if self.keeps_after_final else [(code, tree)]:
                step.value = self._engine.run(*part, self._table, self.answer_call, printed, self._deadline)
        except Finished:
            step.final = self._final
        except BudgetError:
            raise
        except errors.TimeoutError as error:
            step.error = bounded_error(error)
            if self._check is not None:
                # This raises and ends the run if the time of the whole run is up.
                self._check()
        except (errors.SandboxViolation, errors.ProgramError, errors.SandboxCrashed) as error:
            # The worker may have died because of cancel().
            self._occupancy.check()
            step.error = bounded_error(error)
        finally:
            self._deadline = math.inf
            step.printed = well_formed(printed.text())
            step.output, cut = self.pages.first(step.printed, self.config.sandbox.max_output_chars)
            step.truncated = cut or printed.truncated
            step.chunks_read = list(self._reads)
            step.seconds = time.monotonic() - began
        if self._on_event is not None:
            self._on_event("step", step)
        return step

    def answer_call(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Answer one call of the running program; sessions that record or replay calls override this.

        Raises:
            HostCallFailed: the function refused or failed; the program may continue.
        """
        self._occupancy.check()
        value = self._dispatcher(name, args, keywords)
        self._occupancy.check()
        if name not in MODEL_FUNCTIONS:
            # An id in an answer of a model does not show that the chunk was read.
            self._seen.add(chunk_ids_in(value))
        return value

    def _import_on_use(self, tree: ast.Module, printed: Printed) -> None:
        """Import well-known names that the program uses without importing them."""
        self._bound |= ProgramNames(tree).bound
        imports = ready_imports(tree, self._bound)
        if imports:
            code = "\n".join(imports.values())
            self._engine.run(code, syntax_tree(code), self._table, self.answer_call, printed, self._deadline)
            self._ready |= imports.keys()

    def _check_time(self) -> None:
        """Raise if the running program must end; called during long reads."""
        self._occupancy.check()
        if self.seconds_left() <= 0:
            raise errors.TimeoutError(
                "the program's time ended while a function was reading the memory",
                hint="read less at a time: use a smaller limit, a period, or search instead of going through all",
            )

    def _help(self, name: Any = None) -> None:
        """Print the documentation of one function, or one line for each."""
        others = [(one, described(one, function)) for one, function in self._host_functions.items()]
        named = self._reserved if self.named_models else self._reserved.difference(MODEL_FUNCTIONS)
        known = name is None or isinstance(name, str)
        text = help_text(name, named, others) if known else None
        if text is None:
            raise HostCallFailed(
                "ValueError",
                f"help takes the name of a function as text; there are: {', '.join(sorted(named))}",
            )
        self._printed.write(text + "\n")

    def _print_rows(self, rows: Any, chars: Any = None) -> None:
        """Print results as numbered lines."""
        self._printed.write(rows_text(rows, chars) + "\n")

    def _note_read(self, chunk_id: str) -> None:
        self._reads[chunk_id] = None
        self._seen.read(chunk_id)

    # The session's own host functions.

    def _call_final(
        self, answer: Any = ..., chunk_ids: Any = None, confidence: Any = None, suggestion: Any = None
    ) -> None:
        if answer is ...:
            raise HostCallFailed(
                "TypeError", "FINAL takes the answer: FINAL(answer, chunk_ids=[...]); None if not found"
            )
        try:
            self._final = self.accepted(check_final(answer, chunk_ids, confidence, suggestion))
        except InputError as error:
            raise HostCallFailed("ValueError", f"FINAL: {error.sentence}") from None
        raise Finished


def check_positive(name: str, value: Any) -> None:
    """Raise InputError unless ``value`` is a number above 0, and small enough for a number of seconds to wait."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < threading.TIMEOUT_MAX:
        raise InputError(
            f"{name} must be a number above 0 and below {threading.TIMEOUT_MAX:.0e}, not {preview(value, 60)}"
        )


def open_engine(name: str, limits: EngineLimits) -> Engine:
    """Return a new engine: ``monty`` or ``cpython``.

    Raises:
        InvalidConfig: an unknown name, or an engine that this machine cannot isolate.
    """
    # A session needs only one engine, and each takes 10 to 30 ms to load.
    if name == "monty":
        from rlm_mem.sandbox.monty import MontyEngine

        return MontyEngine(limits)
    if name == "cpython":
        from rlm_mem.sandbox.cpython import CPythonEngine

        return CPythonEngine(limits)
    raise InvalidConfig(f"there is no sandbox engine {name!r:.60}", hint="use 'monty' or 'cpython'")
