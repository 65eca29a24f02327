"""Serves the calls of a running program: looks the function up, bounds its result, records the call."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Set
from typing import Any

from rlm_mem.errors import BudgetError, SessionCancelled, TimeoutError
from rlm_mem.sandbox.engine import HostCallFailed, program_error
from rlm_mem.sandbox.final import Finished
from rlm_mem.sandbox.functions import failed
from rlm_mem.sandbox.reference import PAGES
from rlm_mem.sandbox.steps import HostCall, StepOutput
from rlm_mem.sandbox.values import TooLarge, clipped, plain, preview, well_formed

__all__ = ["Dispatcher"]

MAX_CALL_RECORDS = 500
"""Calls of one program that are recorded, oldest first."""
MAX_ARGS_CHARS = 400
"""Of the arguments of a recorded call, all together."""

_WAIT_FOR_A_MODEL = frozenset(("llm_query", "llm_query_batched"))
"""Called apart, so that they can be left. ``rlm_query`` runs sessions, which can be cancelled themselves."""


class Dispatcher:
    """Answers the calls that the programs of one session make.

    Args:
        table: host functions by name.
        foreign: those that the caller of the session passed in; their results are not known to be plain.
        max_calls: calls of one program; more end it.
        on_event: called with ``("host_call", HostCall)``.
        apart: calls a function that may take long, as ``apart(function, *args, **keywords)``, so that it can be left.
    """

    def __init__(
        self,
        table: Mapping[str, Callable[..., Any]],
        foreign: Set[str],
        max_calls: int,
        on_event: Callable[[str, Any], None] | None,
        apart: Callable[..., Any],
    ) -> None:
        self._apart = apart
        self._table = table
        self._foreign = foreign
        self._max_calls = max_calls
        self._on_event = on_event
        self._step = StepOutput()
        self._made = 0

    def begin(self, step: StepOutput) -> None:
        """Record the calls of the next program in ``step``."""
        self._step = step
        self._made = 0

    def __call__(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Answer one call.

        Raises:
            HostCallFailed: the function refused or failed; the program may go on.
            ProgramError: too many calls; the program ends, uncatchably.
            BudgetError, Finished: the run ends.
        """
        self._made += 1
        if self._made > self._max_calls:
            raise program_error(
                "RuntimeError",
                f"the program made more than {self._max_calls:,} calls",
                None,
                "Call functions less often.",
            )
        began = time.perf_counter()
        outcome: Any = None
        try:
            outcome = self._invoke(name, args, keywords)
            return outcome
        except HostCallFailed as error:
            outcome = error
            raise
        finally:
            if self._made <= MAX_CALL_RECORDS:
                self._record(name, args, keywords, outcome, time.perf_counter() - began)

    def _invoke(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        function = self._table[name]
        try:
            if name in self._foreign:
                return plain(self._apart(function, *args, **keywords))
            return (
                self._apart(function, *args, **keywords)
                if name in _WAIT_FOR_A_MODEL
                else function(*args, **keywords)
            )
        except (HostCallFailed, Finished, BudgetError, SessionCancelled, TimeoutError):
            raise
        except TooLarge as error:
            raise HostCallFailed("ValueError", f"{name}: {error}") from None
        except TypeError as error:
            # Most often a wrong argument; Python's own words name the class behind the function.
            text = str(error).replace(getattr(function, "__qualname__", name), name)
            if name in PAGES and text.startswith(f"{name}()"):
                text += f"; write {PAGES[name].signature}"
            raise HostCallFailed("TypeError", text if name in text else f"{name}: {text}") from error
        except Exception as error:
            # Whatever a host function raises, and for whatever odd argument: the program is told and may go
            # on, the call is recorded. A program must not be able to end the run of its host.
            raise failed(name, error) from error

    def _record(
        self, name: str, args: tuple[Any, ...], keywords: dict[str, Any], outcome: Any, seconds: float
    ) -> None:
        shown = [preview(item, 80) for item in args]
        shown += [f"{clipped(key, 80)}={preview(item, 80)}" for key, item in keywords.items()]
        result = (
            clipped(f"!{outcome.kind}: {outcome.message}", 200)
            if isinstance(outcome, HostCallFailed)
            else preview(outcome, 120)
        )
        call = HostCall(
            name, clipped(well_formed(", ".join(shown)), MAX_ARGS_CHARS), seconds, well_formed(result)
        )
        self._step.host_calls.append(call)
        if self._on_event is not None:
            self._on_event("host_call", call)
