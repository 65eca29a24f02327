"""Shared by all benchmarks: timing, and the report that is printed and saved."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

RESULTS = Path(__file__).parent / "results"

_T = TypeVar("_T")

Floats = npt.NDArray[np.float64]

Cost = tuple[float, float]
"""Milliseconds of wall-clock time and of processor time."""

#: For processes that are measured: compiled modules are kept, as after an installation, whatever this one was told.
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def arguments(description: str) -> argparse.ArgumentParser:
    """A parser with the options that benchmarks have in common: `--data`, `--quick`, `--output`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=None, help="folder with evaluation data, where one is needed"
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes, a minute or two in all")
    parser.add_argument("--output", type=Path, default=None, help="where to write the JSON report")
    return parser


def json_lines(file: Path, kind: type[_T]) -> list[_T]:
    """The lines of a file, each as a struct of this kind."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=kind) for line in lines]


def timed(action: Callable[[], _T]) -> tuple[float, _T]:
    """Milliseconds that one call took, and what it returned."""
    start = time.perf_counter()
    result = action()
    return (time.perf_counter() - start) * 1e3, result


def timings(action: Callable[[Any], object], items: Iterable[Any]) -> list[float]:
    """Milliseconds of `action` on each item."""
    return [timed(lambda item=item: action(item))[0] for item in items]


def fit_logistic(
    signs: Floats, wanted: Floats, *, penalty: float, worth: Floats | float = 1.0
) -> tuple[Floats, float]:
    """Weights and base of a logistic regression by Newton's method, with a penalty on the squares of the weights.

    Args:
        signs: one row for each example.
        wanted: the probability of each example.
        worth: how much each example counts.
    """
    values = np.c_[signs, np.ones(len(signs))]
    pull = np.diag(np.r_[np.full(values.shape[1] - 1, penalty), 1e-6])
    found = np.zeros(values.shape[1])
    for _ in range(100):
        chance = 1 / (1 + np.exp(-np.clip(values @ found, -30, 30)))
        bend = worth * np.maximum(chance * (1 - chance), 1e-4)
        slope = values.T @ (worth * (chance - wanted)) + pull @ found
        step = np.linalg.solve((values * bend[:, None]).T @ values + pull, slope)
        found -= step
        if np.abs(step).max() < 1e-9:
            break
    return found[:-1], float(found[-1])


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of `values` lie, nearest rank."""
    ordered = sorted(values)
    if not ordered:
        return float("nan")
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, 95th percentile and mean of some timings in milliseconds, and their number."""
    mean = sum(values) / len(values) if values else float("nan")
    return {
        "p50_ms": round(percentile(values, 0.5), 3),
        "p95_ms": round(percentile(values, 0.95), 3),
        "mean_ms": round(mean, 3),
        "runs": len(values),
    }


def machine() -> dict[str, Any]:
    """The machine of the measurement, and its load."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "sqlite": sqlite3.sqlite_version,
        "load_1min": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "commit": commit_of(Path(__file__).parent),
    }


def commit_of(checkout: Path) -> str | None:
    """The commit of a checkout; None for an unpacked archive."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        found = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def ended(process: subprocess.Popen[bytes], began: float, answered: float | None = None) -> Cost:
    """Wait for a process; what it cost from `began` until it answered or ended, with the processor time of its life."""
    _, status, used = os.wait4(process.pid, 0)
    passed = (answered or time.perf_counter()) - began
    process.returncode = os.waitstatus_to_exitcode(status)
    return passed * 1e3, (used.ru_utime + used.ru_stime) * 1e3


def initialized(command: Sequence[str]) -> Cost:
    """From the start of an MCP server to its first answer; the processor time of its whole life."""
    from rlm_mem.mcp.starting import INITIALIZE  # not at the top: earlier versions import this module, too

    began = time.perf_counter()
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=ENVIRON)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    answered = time.perf_counter()
    assert answer["result"]["serverInfo"]["name"] == "rlm-mem"
    process.stdin.close()
    cost = ended(process, began, answered)
    process.stdout.close()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return cost


@dataclass
class Report:
    """Rows of figures under headings: printed as a table, saved as JSON in `benchmarks/results/`."""

    name: str
    subject: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    started: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    machine: dict[str, Any] = field(default_factory=machine)

    def add(self, **row: Any) -> None:
        """Add a row; also shown at once, since some rows take minutes."""
        self.rows.append(row)
        print(
            "  " + "  ".join(f"{key}={_shown(value)}" for key, value in row.items()),
            file=sys.stderr,
            flush=True,
        )

    def table(self) -> str:
        """The rows as an aligned table; columns in the order in which they first appear."""
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        lines = [columns, *([_shown(row.get(column, "")) for column in columns] for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
        lines.insert(1, ["-" * width for width in widths])
        return "\n".join(
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    def finish(self, output: Path | None = None) -> None:
        """Print the table and write the JSON file."""
        print(f"\n{self.subject}\n\n{self.table()}")
        for name, value in self.facts.items():
            print(f"{name}: {value}")
        path = output or RESULTS / f"{self.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "name": self.name,
            "subject": self.subject,
            "started": self.started,
            "machine": self.machine,
            "rows": self.rows,
            "facts": self.facts,
        }
        path.write_text(
            json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n", encoding="utf-8"
        )


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10_000:
        return f"{value:,}"
    return str(value)
