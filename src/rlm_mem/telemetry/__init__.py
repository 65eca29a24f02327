"""Telemetry: OpenTelemetry spans and metrics of the operations of a memory.

Instrumented code calls `operation`, `observed`, `waiting` and `count`; their destination is set here, once per
process, since OpenTelemetry's providers are per process too. While telemetry is off, each call costs one comparison,
and no library is loaded. Names and meanings: docs/operations.md, Names.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlm_mem.lazy import logger
from rlm_mem.telemetry.observation import (
    Completed,
    ModelTokens,
    ObservedOperation,
    activate,
    count,
    http_request,
    is_on,
    model_call,
    observed,
    operation,
    trace_ids,
    waiting,
    with_current_context,
)

if TYPE_CHECKING:
    from rlm_mem.config import TelemetryConfig

__all__ = [
    "Completed",
    "ObservedOperation",
    "ModelTokens",
    "with_current_context",
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

_logger = logger("rlm_mem.telemetry")

_SWITCHES = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_TRACES_EXPORTER",
    "OTEL_METRICS_EXPORTER",
)
_guard = threading.Lock()
_warned: set[str] = set()


def start(settings: TelemetryConfig, environ: Mapping[str, str] | None = None) -> bool:
    """Start telemetry as configured by settings and environment; does nothing if it is already on.

    With ``enabled = "auto"`` it is on if the standard variables name an exporter or an endpoint, or the host program
    has set up OpenTelemetry itself; then its providers are used. A missing extra is logged once; it does not prevent
    opening the memory.

    Returns:
        Whether telemetry is on now.
    """
    environ = os.environ if environ is None else environ
    if is_on():
        return True
    disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if settings.enabled == "off" or disabled:
        return False
    requested = settings.enabled == "on" or any(environ.get(name, "").strip() for name in _SWITCHES)
    if (
        not requested
        and "opentelemetry.trace" not in sys.modules
        and "opentelemetry.metrics" not in sys.modules
    ):
        return False
    with _guard:
        return is_on() or _start(settings, environ, requested)


def _start(settings: TelemetryConfig, environ: Mapping[str, str], requested: bool) -> bool:
    try:
        from rlm_mem.telemetry.providers import providers
        from rlm_mem.telemetry.recorder import Recorder

        found = providers(settings, environ, make=requested)
    except ImportError as error:
        if requested:
            _warn_once(
                f"telemetry is switched on but not installed ({error}): pip install 'rlm-mem[telemetry]'"
            )
        return False
    except (ValueError, OSError) as error:
        _warn_once(f"telemetry stays off: {error}")
        return False
    if found is None:
        return False
    activate(Recorder(found, content=settings.content))
    return True


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        _logger.warning("%s", message)


def use(tracer_provider: Any = None, meter_provider: Any = None, *, content: bool = False) -> None:
    """Record to these OpenTelemetry SDK providers, for programs that set them up themselves.

    Args:
        tracer_provider, meter_provider: None: spans or metrics are not recorded.
        content: whether to record queries and answers in spans.
    """
    from rlm_mem.telemetry.providers import Providers
    from rlm_mem.telemetry.recorder import Recorder

    with _guard:
        activate(Recorder(Providers(tracer_provider, meter_provider, owned=False), content=content))


def stop() -> None:
    """Send pending data, shut down owned providers, and stop recording."""
    with _guard:
        former = activate(None)
    if former is not None:
        former.close()
