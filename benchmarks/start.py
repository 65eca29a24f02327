"""Start-up time: of the command, its hooks and `rlm-mem mcp`, and of opening a memory and searching it once in Python.

Each start is a new process, the kinds in turn, so that noise affects all of them equally. Ratios are of CPU time, which
depends little on other work on the machine, and of wall-clock time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from support import ENVIRON, Cost, Report, arguments, ended, initialized, percentile

NOTES = 200
BARE = "python -c pass"
HELP = "rlm-mem --help"
OPENED = f"Python: open a memory of {NOTES} notes"
SEARCHED = "Python: open it and search once"
INITIALIZED = "rlm-mem mcp, until it has answered initialize"
GOALS = {
    HELP: "CPU ratio <= 12",
    OPENED: "best ms <= 60",
    SEARCHED: "best ms <= 120",
    INITIALIZED: "best ms <= 1000",
}
FILL = f"""
import sys
from rlm_mem import Memory
with Memory.open(sys.argv[1]) as memory:
    for number in range({NOTES}):
        memory.remember(f"Note {{number}}: Dana prefers train number {{number}} to planes for trip {{number * 7}}.")
"""
OPEN = "import sys; from rlm_mem import Memory; Memory.open(sys.argv[1]).close()"
FIRST = """
import sys
from rlm_mem import Memory
with Memory.open(sys.argv[1]) as memory:
    assert memory.search("how does Dana travel")
"""
PROMPT = {
    "session_id": "s1",
    "cwd": "/",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "how does Dana travel?",
}


def run(command: list[str], given: object = None) -> Cost:
    """A command that ends by itself, and may be given an object as JSON."""
    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(given).encode())
        file.seek(0)
        quiet = subprocess.DEVNULL
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=file, stdout=quiet, stderr=quiet, env=ENVIRON)
        cost = ended(process, began)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return cost


def kinds_of(brain: Path) -> dict[str, Callable[[], Cost]]:
    """The starts to measure, by what is shown, with a memory made at ``brain``."""
    python, script = sys.executable, str(Path(sys.executable).with_name("rlm-mem"))
    run([python, "-c", FILL, str(brain)])
    transcript = brain.with_suffix(".jsonl")
    transcript.touch()
    prompt = {**PROMPT, "transcript_path": str(transcript)}
    named = ["--brain", str(brain)]
    return {
        BARE: lambda: run([python, "-c", "pass"]),
        HELP: lambda: run([script, "--help"]),
        "rlm-mem --version": lambda: run([script, "--version"]),
        OPENED: lambda: run([python, "-c", OPEN, str(brain)]),
        SEARCHED: lambda: run([python, "-c", FIRST, str(brain)]),
        "rlm-mem search, in the same notes": lambda: run([script, "search", "how does Dana travel", *named]),
        "rlm-mem hook user-prompt, in the same notes": lambda: run(
            [script, "hook", "user-prompt", *named], prompt
        ),
        INITIALIZED: lambda: initialized([script, "mcp", *named]),
    }


def main() -> None:
    """Measure and write the report."""
    options = arguments(__doc__.splitlines()[0]).parse_args()
    rounds = 5 if options.quick else 25
    with tempfile.TemporaryDirectory() as temporary:
        kinds = kinds_of(Path(temporary) / "brain")
        for start in kinds.values():
            start()  # files are in the cache of the system afterwards
        found: dict[str, list[Cost]] = {name: [] for name in kinds}
        for _ in range(rounds):
            for name, start in kinds.items():
                found[name].append(start())
    report = Report("start", "Starting (milliseconds, new processes in turn)")
    bare_wall = percentile([wall for wall, _ in found[BARE]], 0.5)
    bare_cpu = percentile([cpu for _, cpu in found[BARE]], 0.5)
    for name, pairs in found.items():
        walls, cpus = [wall for wall, _ in pairs], [cpu for _, cpu in pairs]
        report.add(
            process=name,
            p50_ms=round(percentile(walls, 0.5), 1),
            p95_ms=round(percentile(walls, 0.95), 1),
            best_ms=round(min(walls), 1),
            cpu_p50_ms=round(percentile(cpus, 0.5), 1),
            cpu_ratio=round(percentile(cpus, 0.5) / bare_cpu, 2),
            wall_clock_ratio=round(percentile(walls, 0.5) / bare_wall, 2),
            runs=len(pairs),
            target=GOALS.get(name, ""),
        )
    report.finish(options.output)


if __name__ == "__main__":
    main()
