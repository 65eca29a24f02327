"""Start-up time of the command: `rlm-mem --help` against a bare interpreter, `initialize` of `rlm-mem mcp`, a search.

Each start is a new process, the kinds in turn, so that noise affects all of them equally. Ratios are of CPU time, which
depends little on other work on the machine, and of wall-clock time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from support import Report, arguments, percentile

GOALS = {"initialize": ("best_ms", 1000), "help": ("ratio", 12)}

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


def run(command: list[str]) -> tuple[float, float]:
    """Wall-clock and CPU milliseconds of a command that ends by itself."""
    before = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - before
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return wall * 1e3, (used.ru_utime + used.ru_stime) * 1e3


def initialize(command: list[str]) -> tuple[float, float]:
    """Wall-clock milliseconds from the start of a server to its answer, and CPU milliseconds of its whole life."""
    before = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    wall = time.perf_counter() - before
    assert answer["result"]["serverInfo"]["name"] == "rlm-mem"
    process.stdin.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    return wall * 1e3, (used.ru_utime + used.ru_stime) * 1e3


def main() -> None:
    """Measure and write the report."""
    options = arguments(__doc__.splitlines()[0]).parse_args()
    rounds = 5 if options.quick else 25
    script = str(Path(sys.executable).with_name("rlm-mem"))
    with tempfile.TemporaryDirectory() as folder:
        brain = ["--brain", str(Path(folder) / "brain")]
        run([script, "remember", "Ana chose PostgreSQL for the ledger.", *brain])
        kinds: dict[str, Callable[[], tuple[float, float]]] = {
            "bare": lambda: run([sys.executable, "-c", "pass"]),
            "help": lambda: run([script, "--help"]),
            "version": lambda: run([script, "--version"]),
            "search": lambda: run([script, "search", "ledger", *brain]),
            "initialize": lambda: initialize([script, "mcp", *brain]),
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
        for name in kinds:
            kinds[name]()  # files are in the cache of the system afterwards
        for _ in range(rounds):
            for name, start in kinds.items():
                found[name].append(start())
    names = {
        "bare": "python -c pass",
        "help": "rlm-mem --help",
        "version": "rlm-mem --version",
        "search": "rlm-mem search, one memory",
        "initialize": "rlm-mem mcp, until it has answered initialize",
    }
    report = Report("start", "Starting the command (milliseconds, new processes in turn)")
    bare_wall = percentile([wall for wall, _ in found["bare"]], 0.5)
    bare_cpu = percentile([cpu for _, cpu in found["bare"]], 0.5)
    for name, pairs in found.items():
        walls, cpus = [wall for wall, _ in pairs], [cpu for _, cpu in pairs]
        column, goal = GOALS.get(name, ("", ""))
        report.add(
            what=names[name],
            p50=round(percentile(walls, 0.5), 1),
            p95=round(percentile(walls, 0.95), 1),
            best_ms=round(min(walls), 1),
            cpu_p50=round(percentile(cpus, 0.5), 1),
            ratio=round(percentile(cpus, 0.5) / bare_cpu, 2),
            ratio_of_wall=round(percentile(walls, 0.5) / bare_wall, 2),
            n=len(pairs),
            goal=f"{column} <= {goal}" if column else "",
        )
    report.finish(options.output)


if __name__ == "__main__":
    main()
