"""The cost of telemetry: a hook while it is off, and the same work with it off and on.

Off: nanoseconds of each kind of hook without the empty loop, and how many hooks one operation passes. On: spans and
metrics go to exporters in memory, as they would to a collector in the background.

    python benchmarks/telemetry.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from growing import fill, note
from rlm_mem import Memory, telemetry
from support import Report, arguments, percentile, timed

LOOPS = 200_000
ROUNDS = 60


def nanoseconds(action: Callable[[], object]) -> float:
    """Nanoseconds of one call, the best of five runs, without an empty call."""

    def run(called: Callable[[], object]) -> float:
        best = float("inf")
        for _ in range(5):
            began = time.perf_counter_ns()
            for _ in range(LOOPS):
                called()
            best = min(best, (time.perf_counter_ns() - began) / LOOPS)
        return best

    return max(0.0, run(action) - run(lambda: None))


@telemetry.observed("search")
def decorated() -> None:
    """Nothing, under observation."""


def plain() -> None:
    """Nothing."""


def with_operation() -> None:
    """The hook of a block."""
    with telemetry.operation("write", backend="local"):
        pass


def hooks(report: Report) -> float:
    """Rows for the hooks while off; nanoseconds of the most expensive one."""
    costs = {
        "a block (operation)": nanoseconds(with_operation),
        "a function (observed)": max(0.0, nanoseconds(decorated) - nanoseconds(plain)),
        "a counter (count)": nanoseconds(lambda: telemetry.count("rlm_mem.chunks.created", 3)),
    }
    for name, cost in costs.items():
        report.add(hook=f"off: {name}", nanoseconds=round(cost))
    return max(costs.values())


def works(memory: Memory) -> dict[str, Callable[[int], Any]]:
    """The operations compared."""
    return {
        "remember": lambda n: memory.remember(note(600_000 + n), tags=[f"team-{n % 17}"]),
        "search": lambda n: memory.search(note(n * 37)),
        "recall, offline model": lambda n: memory.recall(note(n * 37)),
    }


def main() -> None:
    """Measure and report."""
    options = arguments(__doc__ or "").parse_args()
    size, rounds = (500, 15) if options.quick else (5_000, ROUNDS)
    report = Report("telemetry", "What telemetry costs")
    dearest = hooks(report)
    with tempfile.TemporaryDirectory(prefix="rlm-mem-telemetry-") as name, Memory.open(Path(name)) as memory:
        fill(memory, size)
        for what, work in works(memory).items():
            kept = InMemorySpanExporter()
            tracing, metering = TracerProvider(), MeterProvider([InMemoryMetricReader()])
            tracing.add_span_processor(SimpleSpanProcessor(kept))
            off: list[float] = []
            on: list[float] = []
            work(0)
            for number in range(rounds):
                telemetry.stop()
                off.append(timed(lambda number=number, work=work: work(1 + 2 * number))[0])
                telemetry.use(tracing, metering)
                on.append(timed(lambda number=number, work=work: work(2 + 2 * number))[0])
            telemetry.stop()
            passed = len(kept.get_finished_spans()) / rounds
            report.add(
                operation=what,
                off_p50_ms=percentile(off, 0.5),
                on_p50_ms=percentile(on, 0.5),
                spans=round(passed, 1),
                # For each span there is at most one further hook, a wait or a counter.
                percent_of_the_hooks_while_off=round(
                    2 * passed * dearest / 1e6 / percentile(off, 0.5) * 100, 4
                ),
            )
    report.finish(options.output)


if __name__ == "__main__":
    main()
