"""Dispatch of a program's calls: looks the function up, bounds its result and records the call; checks of FINAL."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable, Mapping, Set
from typing import Any

from rlm_mem.errors import BudgetError, InputError, SessionCancelled, TimeoutError
from rlm_mem.sandbox.engine import HostCallFailed, program_error
from rlm_mem.sandbox.functions import failed, message_of
from rlm_mem.sandbox.reference import PAGES
from rlm_mem.sandbox.values import Final, HostCall, StepOutput, TooLarge, clipped, plain, preview, well_formed
from rlm_mem.sandbox.wire import Described, Fields

MAX_ANSWER_CHARS = 300_000
"""Maximum characters of all texts of an answer together, enough for a whole chunk."""
MAX_ANSWER_PARTS = 10_000
"""Maximum values and containers of an answer; shared ones count each time they appear."""
MAX_ANSWER_DEPTH = 20
MAX_ANSWER_DIGITS = 1_000
_TOO_LARGE = 10**MAX_ANSWER_DIGITS
MAX_CITED = 500
"""Maximum chunk ids of one answer."""
_MAX_ID_CHARS = 200

_CONVERSIONS = {
    "set": "write sorted(values) or list(values)",
    "frozenset": "write sorted(values) or list(values)",
    "bytes": "decode it to text",
    "bytearray": "decode it to text",
    "Decimal": "write float(value) or str(value)",
    "complex": "write str(value)",
    "timedelta": "write str(value)",
}


class Finished(Exception):
    """FINAL was called; raised in the driver, so that no program can catch it."""


def check_answer(answer: Any) -> Any:
    """Return an answer as plain JSON data: None, bool, int, finite float, str, list, dict.

    Tuples become lists, dates and times their ISO 8601 text, unpaired surrogates U+FFFD.

    Raises:
        InputError: it contains anything else, or more than 300,000 characters, 10,000 parts, 20 levels, or 1,000 digits
            of an integer.
    """
    return _AnswerCopier().copy(answer, 0)


class _AnswerCopier:
    """Copies one answer, and refuses it if it exceeds the bounds."""

    def __init__(self) -> None:
        self._parts = MAX_ANSWER_PARTS
        self._chars = MAX_ANSWER_CHARS

    def copy(self, value: Any, depth: int) -> Any:
        self._parts -= 1
        self._check_parts(0)
        if value is None or isinstance(value, bool):
            return value
        if type(value) is int:
            if abs(value) >= _TOO_LARGE:  # Python refuses to convert very long integers to text
                raise InputError(f"a number in an answer can have at most {MAX_ANSWER_DIGITS:,} digits")
            return value
        if type(value) is float:
            if not math.isfinite(value):
                raise InputError(
                    f"an answer cannot contain {value!r}, which is not a JSON number",
                    hint="write None or a text",
                )
            return value
        if type(value) is str:
            return self._text(value)
        if isinstance(value, dt.date | dt.time):
            return self._text(value.isoformat())
        if type(value) in (list, tuple, dict):
            if depth >= MAX_ANSWER_DEPTH:
                raise InputError(
                    f"an answer is nested at most {MAX_ANSWER_DEPTH} levels deep, and cannot contain itself"
                )
            self._check_parts(len(value))
            if type(value) is dict:
                copied = {self._key(key): self.copy(item, depth + 1) for key, item in value.items()}
                if len(copied) < len(value):
                    raise InputError("two keys of a dict in an answer differ only in invalid Unicode")
                return copied
            return [self.copy(item, depth + 1) for item in value]
        raise self._unsupported(value)

    def _key(self, key: Any) -> str:
        if type(key) is not str:
            raise InputError(
                f"the keys of a dict in an answer must be text, not {preview(key, 60)}", hint="write str(key)"
            )
        return self._text(key)

    def _text(self, text: str) -> str:
        self._chars -= len(text)
        if self._chars < 0:
            raise InputError(
                f"an answer can have at most {MAX_ANSWER_CHARS:,} characters",
                hint="give a shorter answer, and cite the chunks that contain the rest",
            )
        return well_formed(text)

    def _check_parts(self, count: int) -> None:
        # Checked before a container is read, so that a huge one takes no time.
        if count > self._parts:
            raise InputError(
                f"an answer can have at most {MAX_ANSWER_PARTS:,} parts", hint="give a shorter answer"
            )

    def _unsupported(self, value: Any) -> InputError:
        if isinstance(value, Fields):
            what, instead = "an instance of a class", "pass its fields as a dict"
        elif isinstance(value, Described):
            what, instead = preview(str(value), 60).strip("'\""), "pass its value as text, a list or a dict"
        else:
            what = f"a value of type {type(value).__name__[:60]}"
            instead = _CONVERSIONS.get(type(value).__name__, "pass its value as text, a list or a dict")
        return InputError(
            f"an answer must be plain data (None, bool, int, float, str, list, dict); it cannot contain {what}",
            hint=instead,
        )


def check_final(answer: Any, chunk_ids: Any = None, confidence: Any = None, suggestion: Any = None) -> Final:
    """Check an answer with its citations and return it as plain data.

    Args:
        answer: see :func:`check_answer`.
        chunk_ids: one id, or a list, tuple or set of at most 500; a hit or chunk (a dict) counts as its id.
        confidence: a number from 0 to 1, or None.
        suggestion: without an answer, the likeliest one, as text; it requires a cited chunk.

    Raises:
        InputError: an argument is invalid.
    """
    if isinstance(chunk_ids, str | dict):
        chunk_ids = [chunk_ids]
    if not isinstance(chunk_ids, list | tuple | set | frozenset | None):
        raise InputError(f"chunk_ids must be a list of chunk ids, not {preview(chunk_ids, 60)}")
    if len(chunk_ids or ()) > MAX_CITED:
        raise InputError(
            f"an answer can cite at most {MAX_CITED} chunks", hint="cite only the chunks that support it"
        )
    named: dict[str, None] = {}
    for item in sorted(chunk_ids, key=repr) if isinstance(chunk_ids, set | frozenset) else chunk_ids or ():
        identifier = item.get("chunk_id") or item.get("id") if isinstance(item, dict) else item
        if type(identifier) is not str or len(identifier) > _MAX_ID_CHARS:
            raise InputError(
                f"chunk_ids must be a list of chunk ids as text; it contains {preview(identifier, 60)}"
            )
        named[well_formed(identifier)] = None
    if confidence is not None:
        if isinstance(confidence, bool) or not isinstance(confidence, int | float):
            raise InputError(f"confidence must be a number from 0.0 to 1.0, not {preview(confidence, 60)}")
        if not 0.0 <= confidence <= 1.0:
            raise InputError(f"confidence must be from 0.0 to 1.0, not {preview(confidence, 60)}")
    if suggestion is not None:
        if not isinstance(suggestion, str) or not suggestion.strip():
            raise InputError(f"a suggestion must be text, not {preview(suggestion, 60)}")
        if answer is not None or not named:
            raise InputError(
                "a suggestion replaces an answer and needs the chunks it comes from",
                hint="give None as the answer, and cite the chunks in chunk_ids",
            )
        suggestion = check_answer(suggestion)
    return Final(
        check_answer(answer), list(named), None if confidence is None else float(confidence), suggestion
    )


MAX_CALL_RECORDS = 500
"""Maximum calls of one program that are recorded; the first ones are."""
MAX_ARGS_CHARS = 400
"""Maximum characters of the arguments of a recorded call."""

_MODEL_CALLS = frozenset(("llm_query", "llm_query_batched"))
"""Called in another thread, so that they can be abandoned; ``rlm_query`` runs sessions, which can be cancelled."""


class Dispatcher:
    """Answers the calls of the programs of one session.

    Args:
        table: host functions by name.
        caller_functions: names of functions passed in by the caller of the session; their results are copied as
            plain data.
        max_calls: maximum calls of one program; one more ends it.
        on_event: called with ``("host_call", HostCall)``.
        in_thread: calls a function that may take long, as ``in_thread(function, *args, **keywords)``, and can stop
            waiting for it.
    """

    def __init__(
        self,
        table: Mapping[str, Callable[..., Any]],
        caller_functions: Set[str],
        max_calls: int,
        on_event: Callable[[str, Any], None] | None,
        in_thread: Callable[..., Any],
    ) -> None:
        self._in_thread = in_thread
        self._table = table
        self._caller_functions = caller_functions
        self._max_calls = max_calls
        self._on_event = on_event
        self._step = StepOutput()
        self._call_count = 0

    def begin(self, step: StepOutput) -> None:
        """Record the calls of the next program in ``step``."""
        self._step = step
        self._call_count = 0

    def __call__(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Answer one call.

        Raises:
            HostCallFailed: the function refused or failed; the program may continue.
            ProgramError: too many calls; the program ends and cannot catch it.
            BudgetError, Finished: the run ends.
        """
        self._call_count += 1
        if self._call_count > self._max_calls:
            message = f"the program made more than {self._max_calls:,} calls"
            raise program_error("RuntimeError", message, hint="call functions less often")
        began = time.perf_counter()
        outcome: Any = None
        try:
            outcome = self._invoke(name, args, keywords)
            return outcome
        except HostCallFailed as error:
            outcome = error
            raise
        finally:
            if self._call_count <= MAX_CALL_RECORDS:
                self._record(name, args, keywords, outcome, time.perf_counter() - began)

    def _invoke(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        function = self._table[name]
        try:
            if name in self._caller_functions:
                return plain(self._in_thread(function, *args, **keywords))
            if name in _MODEL_CALLS:
                reply = self._in_thread(function, *args, **keywords)
                return well_formed(reply) if isinstance(reply, str) else list(map(well_formed, reply))
            return function(*args, **keywords)
        except (HostCallFailed, Finished, BudgetError, SessionCancelled, TimeoutError):
            raise
        except TooLarge as error:
            raise HostCallFailed("ValueError", f"{name}: {error}") from None
        except TypeError as error:
            # Usually a wrong argument; replace the class in Python's message by the function's name.
            text = message_of(error).replace(getattr(function, "__qualname__", name), name)
            if name in PAGES and text.startswith(f"{name}()"):
                text += f"; write {PAGES[name].signature}"
            raise HostCallFailed("TypeError", text if name in text else f"{name}: {text}") from error
        except Exception as error:
            # Whatever a host function raises becomes an error of the program, which may continue: a program must not
            # be able to end the run of its host.
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
