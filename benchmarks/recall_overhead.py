"""The cost of one recall without its model: opening, sandbox, search, reads, grounding, trajectory, audit line.

A model that answers at once writes a realistic program: it searches twice and prints five chunks, then calls FINAL with
a citation. Its own time is subtracted. The stores are real ones (files, index, postings), of chunks of some 200 tokens.
Measured beside it: the same with a 4,096-token window, a recall and a reasoning by the offline model, and opening a
host-driven session.

    python benchmarks/recall_overhead.py            # 1,000 and 10,000 chunks; building takes a minute or two
    python benchmarks/recall_overhead.py --quick    # 1,000 chunks
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import synthetic
from rlm_mem.config import Config, StoreConfig
from rlm_mem.models.base import Completion, Message, Prompt, Usage, as_messages
from rlm_mem.recall import ReasonOperation, RecallOperation, recall_session
from rlm_mem.recall.prompts import build_opening
from rlm_mem.store.core.chunk_store import ChunkStore
from support import Cost, Report, arguments, spread

GOAL_MS = 50.0
ROUNDS = 60
WARM_UP = 5


class InstantModel:
    """Writes two fixed programs, and measures its own time."""

    name = "instant"

    def __init__(self) -> None:
        self.seconds = 0.0

    def complete(self, messages: Prompt, **_options: object) -> Completion:
        began = time.perf_counter()
        asked = as_messages(messages)
        text = _read(asked) if asked[-1].content.startswith("<question>") else _finish(asked)
        self.seconds += time.perf_counter() - began
        return Completion(text, Usage(1000, 80), model=self.name, finish_reason="stop")


def _read(asked: list[Message]) -> str:
    question = asked[1].content.split("\n")[1]
    words = " ".join(question.split()[:2])
    return (
        f"```repl\nfound = search({question!r}, limit=10)\nmore = search_chunks({words!r})\n"
        "for hit in found[:5]:\n    chunk = read_chunk(hit['chunk_id'])\n"
        "    print(chunk['id'], chunk['metadata']['created_at'], chunk['content'][:400])\n```"
    )


def _finish(_asked: list[Message]) -> str:
    return "```repl\nFINAL(found[0]['snippet'], chunk_ids=[found[0]['chunk_id']])\n```"


def build(store: ChunkStore, size: int) -> list[str]:
    """Fill the store and return questions that its chunks can answer."""
    rng = np.random.default_rng(7)
    share = 1.0 / (np.arange(20_000) + 10.0)
    numbers = rng.choice(20_000, size=(size, 110), p=share / share.sum())
    questions = []
    for first in range(0, size, 500):
        with store.batch():
            for row in range(first, min(first + 500, size)):
                words = [synthetic.word(int(number) * 13) for number in numbers[row]]
                sentences = [" ".join(words[i : i + 10]).capitalize() + "." for i in range(0, 110, 10)]
                store.create_chunk(
                    " ".join(sentences),
                    "note",
                    conversation_id=f"conv-{row // 30}",
                    tags=[f"topic-{row % 40}"],
                )
                if row % max(1, size // (ROUNDS + WARM_UP)) == 0:
                    questions.append(f"{words[3]} {words[14]} {words[25]} {words[36]}?")
        print(f"\r  {first:,} of {size:,} chunks", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    store.checkpoint()
    return questions


def measure(
    report: Report, size: int, name: str, action: Callable[[str], Cost], questions: list[str]
) -> dict[str, float]:
    """Add a row with the milliseconds that `action` reports for each question."""
    for question in questions[:WARM_UP]:
        action(question)
    costs = [action(question) for question in questions[WARM_UP:]]
    figures, busy = spread([wall for wall, _ in costs]), spread([cpu for _, cpu in costs])
    figures |= {"cpu_p50_ms": busy["p50_ms"]}
    report.add(chunks=size, operation=name, **figures)
    return figures


def main() -> None:
    """Build, measure, report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--sizes", type=int, nargs="+", default=None, help="numbers of chunks")
    options = parser.parse_args()
    sizes = options.sizes or ([1_000] if options.quick else [1_000, 10_000])
    report = Report("recall_overhead", "One recall beside its model (milliseconds)")
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            config = Config(store=StoreConfig(durability="normal"))
            with ChunkStore(Path(folder) / "brain" / "memory", config=config) as store:
                questions = build(store, size)
                _measure_all(report, size, store, questions)
    report.finish(options.output)


def _measure_all(report: Report, size: int, store: ChunkStore, questions: list[str]) -> None:
    def beside_the_model(config: Config) -> Callable[[str], Cost]:
        model = InstantModel()
        recall = RecallOperation(store, model, config=config).recall

        def action(question: str) -> Cost:
            before, began, busy = model.seconds, time.perf_counter(), time.process_time()
            result = recall(question)
            passed, busy = time.perf_counter() - began, time.process_time() - busy
            assert result.concluded and result.iterations_used == 2, result.trajectory.steps
            return (passed - (model.seconds - before)) * 1e3, busy * 1e3

        return action

    def timed(call: Callable[[str], object]) -> Callable[[str], Cost]:
        def action(question: str) -> Cost:
            began, busy = time.perf_counter(), time.process_time()
            call(question)
            return (time.perf_counter() - began) * 1e3, (time.process_time() - busy) * 1e3

        return action

    small = replace(store.config, llm=replace(store.config.llm, context_tokens=4096))
    unrecorded = replace(store.config, recall=replace(store.config.recall, trajectories=False))
    actions = {
        "recall with two turns, without the model's time": beside_the_model(store.config),
        "the same in a 4,096-token window": beside_the_model(small),
        "the same without a trajectory file": beside_the_model(unrecorded),
        "only the opening (figures, first hits)": timed(lambda q: build_opening(store, q)),
        "recall with the offline model": timed(RecallOperation(store, "offline").recall),
        "reason with the offline model": timed(ReasonOperation(store, "offline").reason),
        "session driven by the caller: open and close": timed(lambda q: recall_session(store, q).close()),
    }
    figures, *_ = [measure(report, size, name, action, questions) for name, action in actions.items()]
    verdict = "met" if figures["p50_ms"] < GOAL_MS else "missed at this load"
    if figures["p50_ms"] >= GOAL_MS > figures["cpu_p50_ms"]:
        verdict += ", met in processor time"
    report.facts[f"target at {size:,} chunks"] = f"under {GOAL_MS:g} ms: {verdict}"


if __name__ == "__main__":
    main()
