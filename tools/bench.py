"""Every benchmark in order, and one report: what `make bench` runs.

    python tools/bench.py                        # all; records benchmarks/results, fills docs/benchmarks.md
    python tools/bench.py --quick                # smaller sizes; records nothing but build/bench/report.md
    python tools/bench.py --only growth finding  # these
    python tools/bench.py --data FOLDER          # also benchmarks that need conversations with marked evidence
    python tools/bench.py --postgres DSN         # also on this server, where a benchmark can

If a benchmark fails, the others still run; the report names it, and the command ends with 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import figures

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
BUILD = ROOT / "build" / "bench"


@dataclass(frozen=True)
class Benchmark:
    """One file of benchmarks/.

    Attributes:
        name: of the file and of its result.
        heading: in the report.
        needs_data: it measures nothing without `--data`.
        on_server: options that put it on a PostgreSQL server as well; ``DSN`` and ``FOLDER`` are filled in.
        options: always passed.
        quick: options instead of ``--quick --output FILE``, for a benchmark without these; it records nothing then.
    """

    name: str
    heading: str
    needs_data: bool = False
    on_server: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = None


#: In the order of docs/benchmarks.md.
ALL = (
    Benchmark("ranking", "Ranking"),
    Benchmark("search_scale", "Search at size"),
    Benchmark("finding", "Looking for what is replaced"),
    Benchmark("growth", "Growth", on_server=("--store", "FOLDER", "--store", "DSN")),
    Benchmark("sizing", "Disk and memory"),
    Benchmark("backup", "Backups"),
    Benchmark("folders", "Folders kept in sync"),
    Benchmark("interchange", "Moving in and out"),
    Benchmark("recall_overhead", "What a recall costs beside its model"),
    Benchmark("sandbox", "The sandbox"),
    Benchmark("engines", "The engines of the sandbox, side by side"),
    Benchmark(
        "offline_answers",
        "Answers of the offline model",
        needs_data=True,
        options=("--leave-one-out",),
        quick=("--sample", "10"),
    ),
    Benchmark("offline_corpora", "The offline model on other text", quick=("--only", "notes")),
    Benchmark("consolidation", "Facts that change", needs_data=True),
    Benchmark("outlines", "Outlines of long chats", needs_data=True),
    Benchmark("diary", "A year of a diary"),
    Benchmark("continuum_year", "Tiers over a year"),
    Benchmark("continuum_scale", "Tiers at size"),
    Benchmark("postgres_search", "Search on PostgreSQL"),
    Benchmark("dashboard", "The dashboard"),
    Benchmark("pages", "Pages of the site and the dashboard"),
    Benchmark("stalls", "Stalls"),
    Benchmark("team", "A server for a team"),
    Benchmark("start", "Starting"),
    Benchmark("coding_month", "A month with coding agents"),
    Benchmark("coding_sessions", "What capture keeps"),
    Benchmark("actions", "What an agent is told as it acts"),
    Benchmark("soak", "Many processes for minutes"),
    Benchmark("failover", "Failover"),
    Benchmark("distant", "A server some milliseconds away"),
    Benchmark("telemetry", "Telemetry"),
    Benchmark("peers", "Beside other memories"),
)

#: Files of benchmarks/ that can be run but are not benchmarks.
NO_BENCHMARKS = {
    "cluster": "kills the servers of a cluster, which has to be named",
    "ranking_fit": "fits the weights of ranking",
    "diary_fit": "fits the weights of the order of later notes",
    "filling": "fills memories of two checkouts, of which the other one has to be named",
    "peer_worker": "is started by peers.py",
    "small_models": "asks models, which have to be named",
}


def main() -> int:
    """Run, then report."""
    options = _arguments()
    chosen = [one for one in ALL if not options.only or one.name in options.only]
    BUILD.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    failed = False
    for one in chosen:
        left_out = _left_out(one, options)
        if left_out:
            lines.append(f"{one.name}: left out, {left_out}")
            print(f"== {lines[-1]}", flush=True)
            continue
        print(f"== {one.name}", flush=True)
        began = time.monotonic()
        ended = subprocess.run(_command(one, options), cwd=ROOT, check=False).returncode
        failed |= ended != 0
        lines.append(f"{one.name}: {'done' if ended == 0 else 'FAILED'} in {time.monotonic() - began:.0f} s")
    report = _report(chosen, lines, BUILD if options.quick else figures.RESULTS)
    (BUILD / "report.md").write_text(report, encoding="utf-8")
    print(f"\n{report}\nThis report: {BUILD / 'report.md'}")
    if not options.quick:
        figures.fill()
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes; nothing is recorded")
    parser.add_argument(
        "--only", nargs="+", choices=[one.name for one in ALL], metavar="NAME", help="only these"
    )
    parser.add_argument("--data", type=Path, default=None, help="folder with evaluation data")
    parser.add_argument(
        "--postgres", metavar="DSN", default=None, help="an empty database of a PostgreSQL server"
    )
    return parser.parse_args()


def _left_out(one: Benchmark, options: argparse.Namespace) -> str | None:
    if one.needs_data and options.data is None:
        return "it needs --data FOLDER"
    return None


def _command(one: Benchmark, options: argparse.Namespace) -> list[str]:
    command = [sys.executable, str(BENCHMARKS / f"{one.name}.py"), *one.options]
    if options.quick and one.quick is not None:
        command += one.quick
    elif options.quick:
        command += ["--quick", "--output", str(BUILD / f"{one.name}.json")]
    if options.data is not None:
        command += ["--data", str(options.data)]
    if options.postgres is not None and one.on_server:
        given = {"DSN": options.postgres, "FOLDER": str(BUILD / one.name)}
        command += [given.get(word, word) for word in one.on_server]
    return command


def _report(chosen: list[Benchmark], lines: list[str], folder: Path) -> str:
    results = figures.read_results(folder)
    parts = ["# Benchmarks\n", *(f"* {line}" for line in lines), ""]
    for one in chosen:
        if one.name in results:
            parts += [f"## {one.heading}", figures.rendered(results[one.name]).rstrip(), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
