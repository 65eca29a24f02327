"""Telemetry: what a memory does can be watched, nothing that it holds leaks, and off means off."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from pytest_httpserver import HTTPServer

from rlm_mem import Memory, telemetry
from rlm_mem.config import Config, TelemetryConfig
from rlm_mem.errors import InvalidChunk, InvalidConfig, ModelTimeout
from rlm_mem.models.base import Completion, Usage
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.telemetry.recorder import METRICS
from tests.continuum.conftest import STEPS
from tests.house.sources import MODULES, ROOT, text

SECRET = "The harbour code is heronblue."


class Watched:
    """Spans and metrics of one test."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracing = TracerProvider()
        self.tracing.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.metering = MeterProvider([self.reader])

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def points(self, name: str) -> list[Any]:
        """The data points of a metric."""
        data = self.reader.get_metrics_data()
        found = [] if data is None else [
            metric
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]  # fmt: skip
        return [point for metric in found if metric.name == name for point in metric.data.data_points]

    def all_metrics(self) -> set[str]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return {m.name for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics}


@pytest.fixture(autouse=True)
def _off_again() -> Iterator[None]:
    yield
    telemetry.stop()


@pytest.fixture
def watched() -> Watched:
    found = Watched()
    telemetry.use(found.tracing, found.metering)
    return found


@pytest.fixture
def memory(place: Path | str) -> Iterator[Memory]:
    with Memory.open(place) as opened:
        yield opened


def model() -> ScriptedLLM:
    """Searches in its first turn, answers in its second."""
    said = [
        "```repl\nhits = search('harbour code')\nprint(llm_query('sum it up'))\n```",
        Completion("in short", Usage(7, 3), model="scripted", cost=None),
        "```repl\nFINAL('heronblue', chunk_ids=[hits[0]['chunk_id']])\n```",
    ]
    replies: list[Any] = [
        Completion(text, Usage(100, 20), model="scripted", cost=Decimal("0.01"))
        if isinstance(text, str)
        else text
        for text in said
    ]
    return ScriptedLLM(replies)


def test_a_recall_is_one_trace_of_its_turns_model_calls_searches_and_reads(
    watched: Watched, place: Path | str
) -> None:
    with Memory.open(place, llm=model()) as memory:
        memory.remember(SECRET)
        watched.exporter.clear()
        assert memory.recall("What is the harbour code?").content == "heronblue"
    (recall,) = watched.named("rlm_mem.recall")
    below = [span for span in watched.spans if span.context.trace_id == recall.context.trace_id]
    names = [span.name for span in below]
    assert names.count("rlm_mem.turn") == 2
    assert names.count("chat scripted") == 3
    assert "rlm_mem.search" in names
    assert "rlm_mem.read" in names
    turns = [span for span in below if span.name == "rlm_mem.turn"]
    assert {span.parent.span_id for span in turns if span.parent} == {recall.context.span_id}
    assert recall.attributes is not None
    assert recall.attributes["rlm_mem.turns"] == 2
    assert recall.attributes["rlm_mem.concluded"] is True


def test_tokens_and_cost_of_every_model_call_are_counted(watched: Watched, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain", llm=model()) as memory:
        memory.remember(SECRET)
        memory.recall("What is the harbour code?")
    tokens = {
        point.attributes["gen_ai.token.type"]: point.sum
        for point in watched.points("gen_ai.client.token.usage")
    }
    assert tokens == {"input": 207, "output": 43}
    assert [point.value for point in watched.points("rlm_mem.model.cost")] == [pytest.approx(0.02)]
    assert [point.value for point in watched.points("rlm_mem.model.unpriced")] == [1]


def test_parallel_sub_calls_belong_to_their_recall(watched: Watched, tmp_path: Path) -> None:
    program = "```repl\nprint(llm_query_batched(['a', 'b', 'c']))\nFINAL('done')\n```"
    with Memory.open(tmp_path / "brain", llm=ScriptedLLM([program, "x", "y", "z"])) as memory:
        memory.remember(SECRET)
        memory.recall("What?")
    (recall,) = watched.named("rlm_mem.recall")
    assert {span.context.trace_id for span in watched.named("chat scripted")} == {recall.context.trace_id}
    assert len(watched.named("chat scripted")) == 4


def test_remember_records_what_it_stored_and_how_long_it_waited_for_the_lock(
    watched: Watched, memory: Memory, backend: str
) -> None:
    memory.remember(SECRET)
    memory.remember(SECRET)
    first, second = watched.named("rlm_mem.remember")
    assert first.attributes is not None
    assert second.attributes is not None
    assert (first.attributes["rlm_mem.chunks"], second.attributes["rlm_mem.chunks"]) == (1, 0)
    assert [point.value for point in watched.points("rlm_mem.chunks.created")] == [1]
    assert [point.value for point in watched.points("rlm_mem.chunks.repeated")] == [1]
    waits = watched.points("rlm_mem.store.lock.wait")
    assert sum(point.count for point in waits) >= 2
    assert {point.attributes["rlm_mem.backend"] for point in waits} == {
        "local" if backend == "local" else "postgresql"
    }
    writes = watched.named("rlm_mem.write")
    assert writes[0].parent is not None
    assert writes[0].parent.span_id == first.context.span_id


def test_what_was_refused_and_what_failed_is_marked_without_its_words(
    watched: Watched, memory: Memory, tmp_path: Path
) -> None:
    with pytest.raises(InvalidChunk):
        memory.remember("")
    with pytest.raises(ValueError, match="limit"):
        memory.search(SECRET, limit=0)
    failing = ScriptedLLM([ModelTimeout("heronblue took too long")])
    with (
        Memory.open(
            tmp_path / "other", llm=failing, config=Config.load(None, recall={"scaffold": "never"})
        ) as other,
        pytest.raises(ModelTimeout),
    ):
        other.recall(SECRET)
    kinds = {
        name: span.attributes["error.type"]
        for name in ("rlm_mem.remember", "rlm_mem.search", "rlm_mem.recall", "chat scripted")
        for span in watched.named(name)
        if span.attributes and span.status.status_code is StatusCode.ERROR
    }
    assert kinds == {
        "rlm_mem.remember": "InvalidChunk",
        "rlm_mem.search": "InvalidQuery",
        "rlm_mem.recall": "ModelTimeout",
        "chat scripted": "ModelTimeout",
    }
    assert "heronblue" not in everything(watched)


def everything(watched: Watched) -> str:
    """All that would leave the process."""
    spans = "\n".join(span.to_json() for span in watched.spans)
    data = watched.reader.get_metrics_data()
    return spans + (data.to_json() if data is not None else "")


def test_no_content_query_answer_tag_or_namespace_leaves_unless_it_is_switched_on(
    watched: Watched, place: Path | str
) -> None:
    with Memory.open(place, llm=model(), namespace="agent/margit") as memory:
        memory.remember(SECRET, tags=["moorings"], conversation_id="skipper")
        memory.search("harbour code")
        memory.recall("What is the harbour code?")
    sent = everything(watched).lower()
    for word in ("heronblue", "harbour", "moorings", "skipper", "margit", "chunk-20"):
        assert word not in sent


def test_questions_and_answers_are_sent_where_content_is_switched_on(tmp_path: Path) -> None:
    watched = Watched()
    telemetry.use(watched.tracing, watched.metering, content=True)
    with Memory.open(tmp_path / "brain", llm=model()) as memory:
        memory.remember(SECRET)
        memory.recall("What is the harbour code?")
    (recall,) = watched.named("rlm_mem.recall")
    assert recall.attributes is not None
    assert recall.attributes["rlm_mem.query"] == "What is the harbour code?"
    assert recall.attributes["rlm_mem.answer"] == "heronblue"


def test_upkeep_is_watched_too(watched: Watched, memory: Memory, tmp_path: Path) -> None:
    from rlm_mem.interchange import export_store, import_source

    memory.remember(SECRET)
    export_store(memory.store, tmp_path / "all.jsonl")
    import_source(memory.store, tmp_path / "all.jsonl")
    memory.sync(full=True)
    memory.rebuild_index()
    memory.check()
    memory.continuum.consolidate(dry_run=True)
    memory.continuum.prune()
    names = {span.name for span in watched.spans}
    upkeep = ("export", "import", "sync", "rebuild", "check", "consolidate", "prune")
    assert names >= {f"rlm_mem.{name}" for name in upkeep}


NAMES = text(ROOT / "docs" / "operations.md").partition("### Names\n")[2].partition("\n## ")[0]


def documented(beginning: str) -> set[str]:
    """The names in the paragraph or table of docs/operations.md, below Names, that begins so."""
    return set(re.findall(r"`([\w.]+)`", NAMES.partition(beginning)[2].partition("\n\n")[0]))


def operations() -> set[str]:
    return {name for name in documented("Every operation is") if "." not in name}


def test_every_name_that_is_used_is_documented(watched: Watched, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain", llm=model()) as memory:
        memory.remember(SECRET)
        memory.recall("What is the harbour code?")
        memory.continuum.prune()
    for span in watched.spans:
        assert span.name.removeprefix("rlm_mem.") in operations() or span.name.startswith("chat ")
        assert set(span.attributes or {}) <= documented("Attributes of")
    assert watched.all_metrics() <= set(METRICS)
    for name in watched.all_metrics():
        for point in watched.points(name):
            assert set(point.attributes) <= documented("Attributes of")


def test_the_operations_page_lists_every_operation_and_metric() -> None:
    calls = re.compile(r"\b(?:observed|operation)\(\"(\w+)\"")
    used = {name for path in MODULES for name in calls.findall(text(path))}
    assert "recall" in used and used == operations()
    assert documented("| metric |") == set(METRICS)


# --- the switch --------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Our own providers are made, and what they would send stays here."""
    made: list[Any] = []

    class Kept(InMemorySpanExporter):
        def __init__(self, **options: Any) -> None:
            super().__init__()
            made.append(options)

    monkeypatch.setattr("opentelemetry.exporter.otlp.proto.http.trace_exporter.OTLPSpanExporter", Kept)
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    return made


def test_it_is_off_by_default(memory: Memory) -> None:
    memory.remember(SECRET)
    assert not telemetry.is_on()


def test_consolidation_and_pruning_count_what_they_changed(watched: Watched, place: Path | str) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    with Memory.open(place, clock=lambda: now) as memory:
        traces = memory.continuum.traces
        traces.record("Fetch a page", STEPS, success=True, indicators=["ok"], project="a")
        traces.record("Bake bread", STEPS, success=False, project="a")
        memory.continuum.consolidate(dry_run=True)
        assert not watched.points("rlm_mem.consolidation.changes")
        memory.continuum.consolidate()
        now += timedelta(days=400)
        pruned = memory.continuum.prune(dry_run=False)
    counted = {
        point.attributes["rlm_mem.change"]: point.value
        for point in watched.points("rlm_mem.consolidation.changes")
    }
    assert counted == {"promoted": 1, "pruned": len(pruned.steps)}


def test_a_standard_variable_switches_it_on(
    elsewhere: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    with Memory.open(tmp_path / "brain"):
        assert telemetry.is_on()
    assert elsewhere == [{"timeout": 2.0}]  # the endpoint is the exporter's own to read


def test_the_settings_switch_it_on_and_name_the_collector(elsewhere: list[Any], tmp_path: Path) -> None:
    brain = tmp_path / "brain"
    brain.mkdir()
    (brain / "config.toml").write_text('[telemetry]\nenabled = "on"\nendpoint = "http://localhost:9999/"\n')
    with Memory.open(brain):
        assert telemetry.is_on()
    assert elsewhere == [{"endpoint": "http://localhost:9999/v1/traces", "timeout": 2.0}]


@pytest.mark.parametrize("switch", [{"enabled": "off"}, {"enabled": "auto"}])
def test_it_can_be_switched_off_whatever_the_environment_says(
    switch: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}
    if switch["enabled"] == "auto":
        environ["OTEL_SDK_DISABLED"] = "true"
    assert telemetry.start(TelemetryConfig(**switch), environ) is False


@pytest.mark.parametrize(
    "lines", ['endpoint = "http://collector.example:4318"', "content = true"], ids=["endpoint", "content"]
)
def test_the_file_of_a_brain_cannot_send_anything_elsewhere(lines: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f"[telemetry]\n{lines}\n")
    with pytest.raises(InvalidConfig, match="telemetry"):
        Config.load(tmp_path)


@pytest.mark.parametrize(
    "environ",
    [
        {"OTEL_TRACES_EXPORTER": "jaeger"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_telemetry_that_cannot_be_sent_is_logged_and_the_memory_works(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with Memory.open(tmp_path / "brain") as memory:
        assert memory.remember(SECRET).created == 1
    assert not telemetry.is_on()
    assert "telemetry stays off" in caplog.text


def script(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    import os

    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_while_it_is_off_no_tracer_meter_or_exporter_is_loaded(tmp_path: Path) -> None:
    """The API's context may be: the sandbox's package looks for it."""
    ran = script(
        "import sys\nfrom rlm_mem import Memory\n"
        f"with Memory.open({str(tmp_path / 'brain')!r}) as memory:\n"
        "    memory.remember('A note.'); memory.search('note'); memory.recall('A note?')\n"
        "parts = ('opentelemetry.sdk', 'opentelemetry.trace', 'opentelemetry.metrics', 'opentelemetry.exporter')\n"
        "print([name for name in sys.modules if name.startswith(parts)])"
    )
    assert ran.stdout.strip() == "[]", ran.stderr


def test_a_missing_extra_is_logged_once_and_the_memory_works(tmp_path: Path) -> None:
    ran = script(
        "import sys\nsys.modules['opentelemetry'] = None\nfrom rlm_mem import Memory\n"
        f"for _ in range(2):\n    with Memory.open({str(tmp_path / 'brain')!r}) as memory:\n"
        "        print(bool(memory.remember('A note.').chunk_ids))",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://localhost:1",
    )
    assert ran.stdout.split() == ["True", "True"], ran.stderr
    assert ran.stderr.count("pip install 'rlm-mem[telemetry]'") == 1


def test_the_providers_of_the_program_around_are_used(tmp_path: Path) -> None:
    ran = script(
        "from opentelemetry import trace\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import SimpleSpanProcessor\n"
        "from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter\n"
        "kept = InMemorySpanExporter()\nprovider = TracerProvider()\n"
        "provider.add_span_processor(SimpleSpanProcessor(kept))\ntrace.set_tracer_provider(provider)\n"
        "from rlm_mem import Memory\n"
        f"with Memory.open({str(tmp_path / 'brain')!r}) as memory:\n"
        "    with trace.get_tracer('app').start_as_current_span('request'):\n"
        "        memory.remember('A note.')\n"
        "spans = {span.name: span for span in kept.get_finished_spans()}\n"
        "print(spans['rlm_mem.remember'].parent.span_id == spans['request'].context.span_id)"
    )
    assert ran.stdout.strip() == "True", ran.stderr


def test_a_collector_that_is_not_there_costs_a_command_no_more_than_its_time_out(tmp_path: Path) -> None:
    ran = script(
        "import sys\nfrom rlm_mem.cli import main\n"
        f"sys.exit(main(['--brain', {str(tmp_path / 'brain')!r}, 'remember', 'A note.', '--json']))",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
        OTEL_EXPORTER_OTLP_TIMEOUT="0.2",
    )
    assert ran.returncode == 0
    assert '"success": true' in ran.stdout


def test_a_command_delivers_its_spans_and_metrics_to_a_collector_before_it_ends(
    httpserver: HTTPServer, tmp_path: Path
) -> None:
    httpserver.expect_request(re.compile("/v1/(traces|metrics)"), method="POST").respond_with_data(b"")
    ran = script(
        "import sys\nfrom rlm_mem.cli import main\n"
        f"sys.exit(main(['--brain', {str(tmp_path / 'brain')!r}, 'remember', {SECRET!r}, '--json']))",
        OTEL_EXPORTER_OTLP_ENDPOINT=httpserver.url_for(""),
    )
    assert ran.returncode == 0, ran.stderr
    bodies: dict[str, bytes] = {}
    for request, _ in httpserver.log:
        body = request.get_data()
        plain = gzip.decompress(body) if request.headers.get("Content-Encoding") == "gzip" else body
        bodies[request.path] = bodies.get(request.path, b"") + plain
    assert b"rlm_mem.remember" in bodies["/v1/traces"]
    assert b"rlm_mem.operation.duration" in bodies["/v1/metrics"]
    assert b"rlm-mem" in bodies["/v1/traces"]
    assert b"heronblue" not in bodies["/v1/traces"] + bodies["/v1/metrics"]
