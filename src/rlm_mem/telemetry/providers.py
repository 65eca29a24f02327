"""Where spans and metrics go: the providers of the program around, or our own with exporters as configured."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, trace

if TYPE_CHECKING:
    from rlm_mem.config import TelemetryConfig

__all__ = ["Providers", "providers"]

#: Seconds for one delivery, unless OTEL_EXPORTER_OTLP_TIMEOUT says otherwise: a command must not hang at its end
#: because nobody listens.
_TIMEOUT = 2.0
_NOT_SET = ("ProxyTracerProvider", "_ProxyMeterProvider", "NoOpTracerProvider", "NoOpMeterProvider")


@dataclass
class Providers:
    """A provider of each kind, or None.

    Attributes:
        ours: they were made here and end with us.
    """

    tracing: Any
    metering: Any
    ours: bool = True

    def close(self) -> None:
        """End our own, sending what is pending."""
        for provider in (self.tracing, self.metering) if self.ours else ():
            if provider is not None:
                provider.shutdown()


def providers(settings: TelemetryConfig, environ: Mapping[str, str], *, make: bool) -> Providers | None:
    """Those of the program around where it has set up any, else our own, else None.

    Args:
        make: make our own where there are none.

    Raises:
        ImportError: the SDK or the exporter asked for is not installed.
        ValueError: an exporter asked for is unknown.
    """
    tracing, metering = trace.get_tracer_provider(), metrics.get_meter_provider()
    their_spans = None if type(tracing).__name__ in _NOT_SET else tracing
    their_metrics = None if type(metering).__name__ in _NOT_SET else metering
    if their_spans is not None or their_metrics is not None:
        return Providers(their_spans, their_metrics, ours=False)
    return _made(settings, environ) if make else None


def _made(settings: TelemetryConfig, environ: Mapping[str, str]) -> Providers | None:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = Resource.create({} if named else {"service.name": settings.service_name})
    spans = _exporter("traces", settings, environ)
    figures = _exporter("metrics", settings, environ)
    tracing = metering = None
    if spans is not None:
        tracing = TracerProvider(resource=resource)
        tracing.add_span_processor(BatchSpanProcessor(spans))
    if figures is not None:
        metering = MeterProvider([PeriodicExportingMetricReader(figures)], resource=resource)
    return None if tracing is None and metering is None else Providers(tracing, metering)


def _exporter(signal: str, settings: TelemetryConfig, environ: Mapping[str, str]) -> Any:
    kind = environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp").strip().lower() or "otlp"
    if kind == "none":
        return None
    if kind == "console":
        from opentelemetry.sdk.metrics.export import ConsoleMetricExporter
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        # stdout belongs to answers and to protocols.
        return (ConsoleSpanExporter if signal == "traces" else ConsoleMetricExporter)(out=sys.stderr)
    if kind != "otlp":
        raise ValueError(f"OTEL_{signal.upper()}_EXPORTER={kind!r:.40} is none of otlp, console, none")
    return _otlp(signal, settings, environ)


def _otlp(signal: str, settings: TelemetryConfig, environ: Mapping[str, str]) -> Any:
    upper = signal.upper()
    protocol = (
        environ.get(f"OTEL_EXPORTER_OTLP_{upper}_PROTOCOL")
        or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or "http/protobuf"
    ).strip()
    if protocol != "http/protobuf":
        raise ValueError(f"the OTLP protocol {protocol!r:.40} is not supported: use http/protobuf")
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    given: dict[str, Any] = {}
    if settings.endpoint:
        given["endpoint"] = f"{settings.endpoint.rstrip('/')}/v1/{signal}"
    if not any(
        environ.get(name) for name in ("OTEL_EXPORTER_OTLP_TIMEOUT", f"OTEL_EXPORTER_OTLP_{upper}_TIMEOUT")
    ):
        given["timeout"] = _TIMEOUT
    return (OTLPSpanExporter if signal == "traces" else OTLPMetricExporter)(**given)
