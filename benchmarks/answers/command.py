"""How well questions about long memories are answered, by any model or none, on four public sets.

    python benchmarks/answers run --data FOLDER --out RUNS --llm offline --sample 60
    python benchmarks/answers run --data FOLDER --out RUNS --llm search-only fts5 --sample 60
    python benchmarks/answers run --data FOLDER --out RUNS --llm openai:MODEL --judge anthropic:MODEL
    python benchmarks/answers run --data FOLDER --out RUNS --llm search-only --reader openai:MODEL
    python benchmarks/answers tasks --data FOLDER --out RUNS        questions for an agent, RUNS/tasks.jsonl
    python benchmarks/answers take --data FOLDER --out RUNS --name AGENT --answers FILE
    python benchmarks/answers report --out RUNS --output answers.json --plot answers.svg --markdown answers.md

The sets are LoCoMo, BEAM, FactConsolidation and PersonaMem. A run that was killed continues where it stopped when it is
started again. Give `run`, `tasks` and `take` the same sets, corpora and sample. All figures of a report are measured;
where no model was available it says "not measured".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from answers.answering import WITHOUT_MODEL
from answers.report import markdown, plot, rows
from answers.running import alone, folder_of, judge, run, settle, take_answers, write_tasks
from answers.sets import SEED, SETS, Case, Corpus, load_set, sample
from rlm_mem import Config
from rlm_mem.errors import RlmMemError
from rlm_mem.models.base import LLM
from rlm_mem.models.opening import get_llm
from support import Report


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    try:
        return _done(given)
    except (RlmMemError, OSError) as error:
        print(f"answers: {error}", file=sys.stderr)
        return 1


def _done(given: argparse.Namespace) -> int:
    if given.command == "report":
        _report(given.out, given.output, given.plot, given.markdown)
        return 0
    cases, corpora = _load(given.set, given.data, given.sample, given.corpora)
    with alone(given.out):
        if given.command == "tasks":
            print(write_tasks(cases, corpora, given.out))
            return 0
        settings = {"sets": sorted(given.set), "sample": given.sample, "corpora": given.corpora, "seed": SEED}
        if given.command == "take":
            settle(_made(given.out, given.name, None), {**settings, "system": given.name})
            lines, wrong = take_answers(cases, given.answers, given.out, given.name)
            print(f"{len(lines.rows)} of {len(cases)} answered", *wrong, sep="\n")
            return 1 if wrong else 0
        for mode in given.llm:
            if mode not in WITHOUT_MODEL:
                get_llm(mode, Config())  # a name that is none fails here, not at every question
            reader_name = given.reader if mode in ("search-only", "fts5") else None
            reader = None if reader_name is None else get_llm(reader_name, Config())
            folder = _made(given.out, mode, reader_name)
            system = mode if reader_name is None else f"{mode} read by {reader_name}"
            settle(folder, {**settings, "system": system})
            run(cases, corpora, given.out, mode=mode, reader=reader, reader_name=reader_name, tell=_tell)
            if given.judge is not None:
                judge(cases, folder, _asking(get_llm(given.judge, Config())))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--out", type=Path, required=True, help="folder of the runs")
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument("--data", type=Path, required=True, help="folder with a folder for each set")
    data.add_argument("--set", nargs="+", choices=sorted(SETS), default=sorted(SETS), help="which sets")
    data.add_argument("--sample", type=_natural, default=0, help="questions of each set at most; 0: all")
    data.add_argument(
        "--corpora", type=_natural, default=0, help="conversations of each set, by name; 0: all"
    )
    runs = commands.add_parser("run", parents=[common, data], help="answer, and judge")
    runs.add_argument("--llm", nargs="+", required=True, help="a model, offline, search-only or fts5")
    runs.add_argument("--reader", default=None, help="a model that reads what search-only and fts5 find")
    runs.add_argument("--judge", default=None, help="a model that judges every answer by each prompt")
    commands.add_parser("tasks", parents=[common, data], help="write the questions for an agent")
    take = commands.add_parser("take", parents=[common, data], help="score the answers of an agent")
    take.add_argument("--name", required=True, help="of the agent, for the report")
    take.add_argument(
        "--answers", type=Path, required=True, help='lines of {"id": …, "answer": text or null}'
    )
    report = commands.add_parser("report", parents=[common], help="one report of all runs")
    report.add_argument("--output", type=Path, default=None, help="the rows as JSON")
    report.add_argument("--plot", type=Path, default=None, help="quality against cost as SVG")
    report.add_argument("--markdown", type=Path, default=None, help="the report as Markdown; default: stdout")
    return parser


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return int(text)


def _load(
    names: list[str], data: Path, most: int, of: int
) -> tuple[list[Case], dict[str, dict[str, Corpus]]]:
    cases: list[Case] = []
    corpora = {}
    for name in sorted(names):
        loaded = load_set(name, data)
        corpora[name] = loaded.corpora
        kept = set(sorted(loaded.corpora)[: of or None])
        cases += sample(tuple(case for case in loaded.cases if case.corpus in kept), most)
    return cases, corpora


def _made(out: Path, mode: str, reader: str | None) -> Path:
    folder = folder_of(out, mode, reader)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _asking(llm: LLM) -> Callable[[str], str]:
    return lambda prompt: llm.complete(prompt).text


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _report(out: Path, output: Path | None, drawing: Path | None, text: Path | None) -> None:
    report = Report("answers", "Answers by set and system")
    report.rows = rows(out)
    if not report.rows:
        raise FileNotFoundError(f"there are no answers in {out}: give the --out of a run")
    facts: dict[str, Any] = {
        "questions": f"chosen by the hash of their ids with the seed {SEED!r}, evenly over the kinds of a set",
        "read": "share of the answerable questions of which all words of an answer stood in what was handed out",
        "chars read": "characters handed to whoever answers, or with offline to whoever asked; mean",
    }
    report.facts = facts
    made = markdown(report.rows, facts)
    if text is None:
        print(made)
    else:
        text.write_text(made, encoding="utf-8")
    if drawing is not None:
        drawing.write_text(plot(report.rows), encoding="utf-8")
    if output is not None:
        report.finish(output)
