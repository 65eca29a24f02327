"""Functions for instrumented code; while telemetry is off, each costs one comparison."""

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
    """Tokens used by a model call."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...


class Completed(Protocol):
    """A finished model call."""

    @property
    def usage(self) -> ModelTokens: ...
    @property
    def cost(self) -> Decimal | None: ...


class ObservedOperation(AbstractContextManager["ObservedOperation", Literal[False]]):
    """Context manager around an observed operation; this base class records nothing."""

    __slots__ = ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        return False

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Add an attribute to the span."""

    def label(self, name: str, value: str | int | bool) -> None:
        """Add an attribute of low cardinality to span and metrics."""

    def text(self, name: str, value: str) -> None:
        """Add text of the user, such as a question, to the span; ignored unless ``telemetry.content`` is set."""

    def failed(self, kind: str) -> None:
        """Mark the operation as failed although no exception is raised."""

    def spent(self, completed: Completed) -> None:
        """Record the cost of a model call: tokens by kind, and US dollars if the price is known."""


class Recording(Protocol):
    """Protocol of the recorder (``recorder.Recorder``)."""

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
    """Set the recorder (None: record nothing) and return the former one."""
    global _active
    former, _active = _active, recording
    return former


def is_on() -> bool:
    """Whether a recorder is set."""
    return _active is not None


def operation(name: str, **labels: str | int | bool) -> ObservedOperation:
    """Observe an operation as a span and a value in the histogram ``rlm_mem.operation.duration``.

    Args:
        name: one of the operations of docs/operations.md.
        **labels: attributes of span and metric of low cardinality (``tool="search"``).
    """
    return _NOTHING if _active is None else _active.operation(name, labels)


def waiting(name: str, **labels: str | int | bool) -> ObservedOperation:
    """Record a wait in seconds in the histogram ``name`` of ``recorder.METRICS``, without a span."""
    return _NOTHING if _active is None else _active.waiting(name, labels)


def count(name: str, amount: int | float = 1, **labels: str | int | bool) -> None:
    """Add to the counter ``name`` of ``recorder.METRICS``."""
    if _active is not None:
        _active.count(name, amount, labels)


def model_call(model: str) -> ObservedOperation:
    """Observe a model call as a span with its duration (``gen_ai.client.operation.duration``)."""
    return _NOTHING if _active is None else _active.model_call(model)


def http_request(method: str, headers: Mapping[str, str]) -> ObservedOperation:
    """Observe an HTTP request as a span with its duration, as a child of the caller's ``traceparent``."""
    return _NOTHING if _active is None else _active.http_request(method, headers)


def observed(
    name: str, after: Callable[[ObservedOperation, Any], None] | None = None
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator that observes every call as an operation.

    Args:
        name: one of the operations of docs/operations.md.
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
    """Wrap a function so that calls in other threads, even concurrent ones, have the current span as parent."""
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
