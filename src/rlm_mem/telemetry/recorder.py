"""Records spans and metrics through the OpenTelemetry API while telemetry is on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from opentelemetry import metrics, trace
from opentelemetry.propagate import extract
from opentelemetry.trace import Span, SpanKind, StatusCode

from rlm_mem.telemetry.observation import Completed, ObservedOperation

if TYPE_CHECKING:
    from types import TracebackType

    from rlm_mem.telemetry.providers import Providers

_TEXT_LIMIT = 4_000  # characters of a query or answer
#: Bucket bounds in seconds, from 0.1 ms, since most operations take a few milliseconds.
_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)

Labels = Mapping[str, str | int | bool]
_NAMES = {
    "backend": "rlm_mem.backend",
    "tool": "gen_ai.tool.name",
    "change": "rlm_mem.change",
    "stopped_by": "rlm_mem.stopped_by",
}


class Metric(NamedTuple):
    """One metric instrument."""

    kind: str
    """``histogram`` or ``counter``"""
    unit: str
    description: str


METRICS = {
    "rlm_mem.operation.duration": Metric("histogram", "s", "how long an operation took"),
    "rlm_mem.store.lock.wait": Metric("histogram", "s", "how long a writer waited for the write lock"),
    "rlm_mem.chunks.created": Metric("counter", "{chunk}", "chunks that remember stored"),
    "rlm_mem.chunks.repeated": Metric("counter", "{chunk}", "chunks that were there already"),
    "rlm_mem.recall.stopped": Metric("counter", "{recall}", "recalls that a budget ended, by budget"),
    "rlm_mem.consolidation.changes": Metric("counter", "{memory}", "memories promoted, queued, pruned"),
    "rlm_mem.model.cost": Metric("counter", "{USD}", "US dollars of model calls with a known price"),
    "rlm_mem.model.unpriced": Metric("counter", "{call}", "model calls without a known price"),
    "gen_ai.client.operation.duration": Metric("histogram", "s", "how long a model took to answer"),
    "gen_ai.client.token.usage": Metric("histogram", "{token}", "tokens of a model call, by kind"),
    "http.server.request.duration": Metric("histogram", "s", "how long an HTTP request took"),
}


class Recorder:
    """Creates spans and writes to instruments.

    Args:
        providers: destinations of spans and metrics.
        content: whether to record questions and answers.
    """

    def __init__(self, providers: Providers, *, content: bool) -> None:
        self.content = content
        self._providers = providers
        tracing = providers.tracing or trace.NoOpTracerProvider()
        metering = providers.metering or metrics.NoOpMeterProvider()
        self.tracer = tracing.get_tracer("rlm_mem")
        meter = metering.get_meter("rlm_mem")
        self._instruments: dict[str, Any] = {}
        for name, (kind, unit, description) in METRICS.items():
            if kind == "histogram":
                bounds = _SECONDS if unit == "s" else None
                self._instruments[name] = meter.create_histogram(
                    name, unit, description, explicit_bucket_boundaries_advisory=bounds
                )
            else:
                self._instruments[name] = meter.create_counter(name, unit, description)

    def operation(self, name: str, labels: Labels) -> ObservedOperation:
        """A span `rlm_mem.NAME` with its duration."""
        attributes = {"rlm_mem.operation": name, **_attributes(labels)}
        return _Recorded(self, f"rlm_mem.{name}", "rlm_mem.operation.duration", attributes)

    def model_call(self, model: str) -> ObservedOperation:
        """A span with its duration, named by the semantic conventions for generative AI."""
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
        return _Recorded(
            self, f"chat {model}", "gen_ai.client.operation.duration", attributes, kind=SpanKind.CLIENT
        )

    def http_request(self, method: str, headers: Mapping[str, str]) -> ObservedOperation:
        """A server span, as a child of the caller's span."""
        return _Recorded(
            self,
            f"HTTP {method}",
            "http.server.request.duration",
            {"http.request.method": method},
            kind=SpanKind.SERVER,
            parent=extract(headers),
        )

    def waiting(self, name: str, labels: Labels) -> ObservedOperation:
        """A duration without a span."""
        return _Timed(self, name, _attributes(labels))

    def count(self, name: str, amount: float, labels: Labels) -> None:
        """Add to a counter."""
        if amount:
            self._instruments[name].add(amount, _attributes(labels))

    def record(self, name: str, value: float, attributes: Mapping[str, Any]) -> None:
        """Add a value to a histogram."""
        self._instruments[name].record(value, attributes)

    def trace_ids(self) -> tuple[str, str] | None:
        """Trace and span id of the current span."""
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return None
        return trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id)

    def close(self) -> None:
        """Shut down owned providers; those of the host program are not touched."""
        self._providers.close()


def _attributes(labels: Labels) -> dict[str, Any]:
    return {_NAMES.get(name, name): value for name, value in labels.items()}


class _Timed(ObservedOperation):
    """Records a duration in a histogram, without a span."""

    __slots__ = ("_began", "_histogram", "_labels", "_recorder")

    def __init__(self, recorder: Recorder, histogram: str, labels: dict[str, Any]) -> None:
        self._recorder = recorder
        self._histogram = histogram
        self._labels = labels

    def __enter__(self) -> ObservedOperation:
        self._began = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        if kind is not None:
            self._labels["error.type"] = kind.__name__
        self._recorder.record(self._histogram, time.perf_counter() - self._began, self._labels)
        return False


class _Recorded(_Timed):
    """A span that is current inside `with`, with its duration."""

    __slots__ = ("_error", "_scope", "_span")

    def __init__(
        self,
        recorder: Recorder,
        name: str,
        histogram: str,
        labels: dict[str, Any],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        parent: Any = None,
    ) -> None:
        super().__init__(recorder, histogram, labels)
        self._error: str | None = None
        self._span: Span
        # Error messages may quote the user's text, so only the class of an error is recorded.
        self._scope = recorder.tracer.start_as_current_span(
            name,
            context=parent,
            kind=kind,
            attributes=labels,
            record_exception=False,
            set_status_on_exception=False,
        )

    def __enter__(self) -> ObservedOperation:
        self._span = self._scope.__enter__()
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        if kind is not None and not issubclass(kind, GeneratorExit):
            self.failed(kind.__name__)
        if self._error is not None:
            self._span.set_status(StatusCode.ERROR)
        # Recorded while the span is current, since exemplars of the histogram refer to it.
        self._recorder.record(self._histogram, time.perf_counter() - self._began, self._labels)
        self._scope.__exit__(None, None, None)
        return False

    def set(self, name: str, value: str | int | float | bool) -> None:
        self._span.set_attribute(name, value)

    def label(self, name: str, value: str | int | bool) -> None:
        self._labels[name] = value
        self._span.set_attribute(name, value)

    def text(self, name: str, value: str) -> None:
        if self._recorder.content:
            self._span.set_attribute(name, value[:_TEXT_LIMIT].encode("utf-8", "replace").decode())

    def spent(self, completed: Completed) -> None:
        recorder, usage = self._recorder, completed.usage
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._span.set_attribute(f"gen_ai.usage.{kind}_tokens", tokens)
            recorder.record("gen_ai.client.token.usage", tokens, {**self._labels, "gen_ai.token.type": kind})
        if completed.cost is None:
            recorder.count("rlm_mem.model.unpriced", 1, self._labels)
        else:
            recorder.count("rlm_mem.model.cost", float(completed.cost), self._labels)

    def failed(self, kind: str) -> None:
        self._error = kind
        self.label("error.type", kind)
