"""The functions that instrumented code calls; while telemetry is off, each costs one comparison."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from decimal import Decimal

_P = ParamSpec("_P")
_R = TypeVar("_R")


class ModelTokens(Protocol):
    """Tokens that a call of a model used."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...


class Completed(Protocol):
    """A finished call of a model."""

    @property
    def usage(self) -> ModelTokens: ...
    @property
    def cost(self) -> Decimal | None: ...


class ObservedOperation(AbstractContextManager["ObservedOperation", Literal[False]]):
    """One operation that is observed, as a context manager; this class records nothing."""

    __slots__ = ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        return False

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Add an attribute to the span."""

    def label(self, name: str, value: str | int | bool) -> None:
        """Add an attribute with few different values to span and metrics."""

    def text(self, name: str, value: str) -> None:
        """Add text of the user, such as a question, to the span; dropped unless ``telemetry.content`` is set."""

    def failed(self, kind: str) -> None:
        """Mark the operation as failed although nothing is raised."""

    def spent(self, completed: Completed) -> None:
        """Count what a call of a model cost: tokens by kind, and US dollars where the price is known."""


class Recording(Protocol):
    """The recorder while telemetry is on: ``recorder.Recorder``."""

    def operation(self, name: str, labels: Mapping[str, str | int | bool]) -> ObservedOperation: ...
    def waiting(self, name: str, labels: Mapping[str, str | int | bool]) -> ObservedOperation: ...
    def count(self, name: str, amount: float, labels: Mapping[str, str | int | bool]) -> None: ...
    def model_call(self, model: str) -> ObservedOperation: ...
    def http_request(self, method: str, headers: Mapping[str, str]) -> ObservedOperation: ...
    def trace_ids(self) -> tuple[str, str] | None: ...
    def close(self) -> None: ...


_NOTHING = ObservedOperation()
_active: Recording | None = None


def activate(recording: Recording | None) -> Recording | None:
    """Set the recorder to use from now on (None: record nothing); returns the former one."""
    global _active
    former, _active = _active, recording
    return former


def is_on() -> bool:
    """Whether anything is recorded."""
    return _active is not None


def operation(name: str, **labels: str | int | bool) -> ObservedOperation:
    """A span, and a value in the histogram ``rlm_mem.operation.duration``.

    Args:
        name: one of ``names.OPERATIONS``.
        **labels: attributes of span and metric (``tool="search"``), each with few different values.
    """
    return _NOTHING if _active is None else _active.operation(name, labels)


def waiting(name: str, **labels: str | int | bool) -> ObservedOperation:
    """Measure a wait into the histogram ``name`` of ``names.METRICS``, in seconds; no span."""
    return _NOTHING if _active is None else _active.waiting(name, labels)


def count(name: str, amount: int | float = 1, **labels: str | int | bool) -> None:
    """Add to the counter ``name`` of ``names.METRICS``."""
    if _active is not None:
        _active.count(name, amount, labels)


def model_call(model: str) -> ObservedOperation:
    """A span around one call of a model, and its duration (``gen_ai.client.operation.duration``)."""
    return _NOTHING if _active is None else _active.model_call(model)


def http_request(method: str, headers: Mapping[str, str]) -> ObservedOperation:
    """A span around an HTTP request, continued from the caller's ``traceparent``, and its duration."""
    return _NOTHING if _active is None else _active.http_request(method, headers)


def observed(
    name: str, after: Callable[[ObservedOperation, Any], None] | None = None
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator: every call is an operation.

    Args:
        name: one of ``names.OPERATIONS``.
        after: called with the operation and the result of the call, to add attributes.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if _active is None:
                return function(*args, **kwargs)
            with _active.operation(name, {}) as current:
                result = function(*args, **kwargs)
                if after is not None:
                    after(current, result)
                return result

        return call

    return decorate


def with_current_context(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a function so that other threads, even several at once, call it with the current span as parent."""
    if _active is None:
        return function
    context = contextvars.copy_context()

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return context.copy().run(function, *args, **kwargs)

    return call


def trace_ids() -> tuple[str, str] | None:
    """Trace and span id of the current span as hexadecimal digits, for log lines; None outside a span."""
    return None if _active is None else _active.trace_ids()
