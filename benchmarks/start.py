"""Start-up time: of the command, its hooks and `rlm-mem mcp`, and of opening a memory and searching it once in Python.

Each start is a new process, the kinds in turn, so that noise affects all of them equally. Ratios are of CPU time, which
depends little on other work on the machine, and of wall-clock time. With --before, those of an earlier checkout take
part, with a memory that it fills itself.
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

GOALS = {
    "initialize": ("best_ms", 1000),
    "help": ("ratio", 12),
    "first": ("best_ms", 120),
    "open": ("best_ms", 60),
}
NOTES = 200
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


def kinds_of(folder: Path, brain: Path) -> dict[str, Callable[[], Cost]]:
    """The starts to measure.

    Args:
        folder: that of an environment's programs.
        brain: where a memory is made.
    """
    python, script = str(folder / "python"), str(folder / "rlm-mem")
    run([python, "-c", FILL, str(brain)])
    transcript = brain.with_suffix(".jsonl")
    transcript.touch()
    prompt = {**PROMPT, "transcript_path": str(transcript)}
    named = ["--brain", str(brain)]
    return {
        "bare": lambda: run([python, "-c", "pass"]),
        "help": lambda: run([script, "--help"]),
        "version": lambda: run([script, "--version"]),
        "open": lambda: run([python, "-c", OPEN, str(brain)]),
        "first": lambda: run([python, "-c", FIRST, str(brain)]),
        "search": lambda: run([script, "search", "how does Dana travel", *named]),
        "hook": lambda: run([script, "hook", "user-prompt", *named], prompt),
        "initialize": lambda: initialized([script, "mcp", *named]),
    }


def main() -> None:
    """Measure and write the report."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument(
        "--before", type=Path, default=None, help="folder of an earlier checkout with its .venv"
    )
    options = parser.parse_args()
    rounds = 5 if options.quick else 25
    folders = {"": Path(sys.executable).parent}
    if options.before is not None:
        folders["earlier: "] = options.before.absolute() / ".venv" / "bin"
    found: dict[tuple[str, str], list[Cost]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        kinds = {
            (name, whose): start
            for place, (whose, folder) in enumerate(folders.items())
            for name, start in kinds_of(folder, Path(temporary) / f"brain{place}").items()
            if not (whose and name == "bare")
        }
        for (name, whose), start in list(kinds.items()):
            try:
                start()  # files are in the cache of the system afterwards
            except SystemExit:
                if not whose:
                    raise
                del kinds[name, whose]  # the earlier one has no such command
        for _ in range(rounds):
            for kind, start in kinds.items():
                found.setdefault(kind, []).append(start())
    names = {
        "bare": "python -c pass",
        "help": "rlm-mem --help",
        "version": "rlm-mem --version",
        "open": f"Python: open a memory of {NOTES} notes",
        "first": "Python: open it and search once",
        "search": "rlm-mem search, in the same notes",
        "hook": "rlm-mem hook user-prompt, in the same notes",
        "initialize": "rlm-mem mcp, until it has answered initialize",
    }
    report = Report("start", "Starting (milliseconds, new processes in turn)")
    bare_wall = percentile([wall for wall, _ in found["bare", ""]], 0.5)
    bare_cpu = percentile([cpu for _, cpu in found["bare", ""]], 0.5)
    for (name, whose), pairs in sorted(found.items(), key=lambda one: list(names).index(one[0][0])):
        walls, cpus = [wall for wall, _ in pairs], [cpu for _, cpu in pairs]
        column, goal = GOALS.get(name, ("", "")) if not whose else ("", "")
        report.add(
            what=whose + names[name],
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
