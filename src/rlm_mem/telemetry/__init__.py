"""Telemetry: spans and metrics around what a memory does, in the words of OpenTelemetry, and nothing while it is off.

Code under observation calls `operation`, `observed`, `waiting` and `count`; what they write to is decided here, once
for the process, as with the handlers of logging: OpenTelemetry's own providers belong to the process, too. While it is
off, each call is one comparison. Nothing is loaded before it is switched on. Names and meanings: `telemetry.names`.
"""

from __future__ import annotations

import contextvars
import functools
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from decimal import Decimal

    from rlm_mem.config import TelemetryConfig
    from rlm_mem.telemetry.recorder import Recorder

__all__ = [
    "Completed",
    "ObservedOperation",
    "ModelTokens",
    "carried",
    "count",
    "http_request",
    "is_on",
    "model_call",
    "observed",
    "operation",
    "start",
    "stop",
    "trace_ids",
    "use",
    "waiting",
]

_logger = logging.getLogger("rlm_mem.telemetry")

_P = ParamSpec("_P")
_R = TypeVar("_R")

_SWITCHES = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_TRACES_EXPORTER",
    "OTEL_METRICS_EXPORTER",
)


class ModelTokens(Protocol):
    """What a call of a model used."""

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


class ObservedOperation:
    """One thing being done; this one records nothing. Used with ``with``."""

    __slots__ = ()

    def __enter__(self) -> ObservedOperation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        return False

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Add an attribute to the span."""

    def label(self, name: str, value: str | int | bool) -> None:
        """Add an attribute to span and metrics: few different values only."""

    def text(self, name: str, value: str) -> None:
        """Add what somebody wrote or asked to the span; dropped unless ``telemetry.content`` is set."""

    def failed(self, kind: str) -> None:
        """Say that it failed although nothing is raised."""

    def spent(self, completed: Completed) -> None:
        """Count what a call of a model took: tokens by kind, and US dollars where the price is known."""


_NOTHING = ObservedOperation()
_active: Recorder | None = None
_guard = threading.Lock()
_said: set[str] = set()


def is_on() -> bool:
    """Whether anything is recorded."""
    return _active is not None


def operation(name: str, **labels: str | int | bool) -> ObservedOperation:
    """A span, and a value in the histogram ``rlm_mem.operation.duration``.

    Args:
        name: one of ``names.OPERATIONS``.
        **labels: attributes of span and metric (``tool="search"``), of few different values.
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
        after: is given the operation and what the call returned, to add attributes.
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


def carried(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function with the present span as its parent, for another thread to call (also several times at once)."""
    if _active is None:
        return function
    here = contextvars.copy_context()

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return here.copy().run(function, *args, **kwargs)

    return call


def trace_ids() -> tuple[str, str] | None:
    """Trace and span id of the present span as hexadecimal digits, for log lines; None outside of one."""
    return None if _active is None else _active.trace_ids()


# --- the switch --------------------------------------------------------------------------------------------


def start(settings: TelemetryConfig, environ: Mapping[str, str] | None = None) -> bool:
    """Switch on what the settings and the environment ask for; does nothing when it is on already.

    With ``enabled = "auto"``: on where the standard variables name an exporter or an endpoint, or the program around
    has set up OpenTelemetry itself; then its providers are used. A missing extra is said in the log, once, and no
    reason to refuse the memory.

    Returns:
        Whether it is on now.
    """
    environ = os.environ if environ is None else environ
    if _active is not None:
        return True
    disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if settings.enabled == "off" or disabled:
        return False
    asked = settings.enabled == "on" or any(environ.get(name, "").strip() for name in _SWITCHES)
    if not asked and "opentelemetry.trace" not in sys.modules and "opentelemetry.metrics" not in sys.modules:
        return False
    with _guard:
        return _active is not None or _start(settings, environ, asked)


def _start(settings: TelemetryConfig, environ: Mapping[str, str], asked: bool) -> bool:
    global _active
    try:
        from rlm_mem.telemetry.providers import providers
        from rlm_mem.telemetry.recorder import Recorder

        found = providers(settings, environ, make=asked)
    except ImportError as error:
        if asked:
            _say_once(f"telemetry is asked for and not installed ({error}): pip install 'rlm-mem[telemetry]'")
        return False
    except (ValueError, OSError) as error:
        _say_once(f"telemetry stays off: {error}")
        return False
    if found is None:
        return False
    _active = Recorder(found, content=settings.content)
    return True


def _say_once(message: str) -> None:
    if message not in _said:
        _said.add(message)
        _logger.warning("%s", message)


def use(tracer_provider: Any = None, meter_provider: Any = None, *, content: bool = False) -> None:
    """Record to these providers of the OpenTelemetry SDK, for programs that set them up themselves.

    Args:
        tracer_provider, meter_provider: None records none of that kind.
        content: also put queries and answers into spans.
    """
    global _active
    from rlm_mem.telemetry.providers import Providers
    from rlm_mem.telemetry.recorder import Recorder

    with _guard:
        _active = Recorder(Providers(tracer_provider, meter_provider, ours=False), content=content)


def stop() -> None:
    """Send what is pending, let go of providers that were made here, and record nothing any more."""
    global _active
    with _guard:
        former, _active = _active, None
    if former is not None:
        former.close()
