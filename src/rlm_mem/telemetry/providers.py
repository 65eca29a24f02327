"""Selects the OpenTelemetry providers: those of the host program, or new ones with the configured exporters."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, trace

if TYPE_CHECKING:
    from rlm_mem.config import TelemetryConfig

#: Time-out of a delivery unless OTEL_EXPORTER_OTLP_TIMEOUT is set: a command must not hang on exit because no
#: collector listens.
_TIMEOUT = 2.0
_NOT_SET = ("ProxyTracerProvider", "_ProxyMeterProvider", "NoOpTracerProvider", "NoOpMeterProvider")


@dataclass
class Providers:
    """A tracer provider and a meter provider, each of which may be None.

    Attributes:
        owned: whether they were created here, so that `close` shuts them down.
    """

    tracing: Any
    metering: Any
    owned: bool = True

    def close(self) -> None:
        """Shut down owned providers, which sends pending data."""
        for provider in (self.tracing, self.metering) if self.owned else ():
            if provider is not None:
                provider.shutdown()


def providers(settings: TelemetryConfig, environ: Mapping[str, str], *, make: bool) -> Providers | None:
    """The providers of the host program if it has set up any, else new ones, else None.

    Args:
        make: whether to create new ones if the host program has none.

    Raises:
        ImportError: the SDK or the requested exporter is not installed.
        ValueError: a requested exporter is unknown.
    """
    tracing, metering = trace.get_tracer_provider(), metrics.get_meter_provider()
    host_tracing = None if type(tracing).__name__ in _NOT_SET else tracing
    host_metering = None if type(metering).__name__ in _NOT_SET else metering
    if host_tracing is not None or host_metering is not None:
        return Providers(host_tracing, host_metering, owned=False)
    return _new_providers(settings, environ) if make else None


def _new_providers(settings: TelemetryConfig, environ: Mapping[str, str]) -> Providers | None:
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

        # stdout is reserved for answers and protocols.
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

    exporter_options: dict[str, Any] = {}
    if settings.endpoint:
        exporter_options["endpoint"] = f"{settings.endpoint.rstrip('/')}/v1/{signal}"
    if not any(
        environ.get(name) for name in ("OTEL_EXPORTER_OTLP_TIMEOUT", f"OTEL_EXPORTER_OTLP_{upper}_TIMEOUT")
    ):
        exporter_options["timeout"] = _TIMEOUT
    return (OTLPSpanExporter if signal == "traces" else OTLPMetricExporter)(**exporter_options)
