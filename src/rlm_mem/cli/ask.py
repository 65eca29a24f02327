"""Asking the memory: `rlm-mem recall` and `rlm-mem reason`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

from rlm_mem.chunk.types import out_of_date
from rlm_mem.cli import options, periods, rich
from rlm_mem.cli.call import Call, other_places
from rlm_mem.cli.options import argument, flag, option
from rlm_mem.cli.receipt import BundleFile, ReceiptFile, ReceiptWanted, SigningKey
from rlm_mem.cli.steps import cost_line, show_step
from rlm_mem.cli.terminal import amount, day, long_text, one_line, print_rule, print_text, screen, text
from rlm_mem.recall.outcome import CLOSEST_BESIDE, ENDINGS, SUGGESTED, confidence_words, ending_of, note_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlm_mem.memory import Memory
    from rlm_mem.recall.reason import ReasoningResult
    from rlm_mem.recall.recall import RecallResult, Source

MAX_PATH_STEPS = 50

Question = Annotated[list[str], argument("QUESTION", "The question.")]


def _limit(name: str, metavar: str, what: str, least: float) -> Any:
    """Declare the option for a budget of the run, which a setting has, too."""
    setting = f"recall.max_{name.replace('-', '_')}"
    return option(f"--{name}", metavar, f"Maximum {what}. Default: {setting}.", options.LIMITS, min=least)


class QuestionCall(Call, frozen=True):
    """Options of `recall` and `reason`."""

    explain: Annotated[bool, flag("--explain", "Show each program as it runs, and what it printed.")] = False
    trajectory: Annotated[
        bool, flag("--trajectory", "With --json: also print every step and the chunks read.")
    ] = False
    llm: options.Llm = None
    as_of: periods.AsOf = None
    engine: Annotated[
        str | None,
        option("--engine", "NAME", "The sandbox engine: monty or cpython. Default: the configured one."),
    ] = None
    iterations: Annotated[int | None, _limit("iterations", "N", "number of programs", 1)] = None
    depth: Annotated[int | None, _limit("depth", "N", "levels of sub-questions", 0)] = None
    seconds: Annotated[float | None, _limit("seconds", "S", "seconds", 0.01)] = None
    model_calls: Annotated[int | None, _limit("model-calls", "N", "calls of the model", 1)] = None
    tokens: Annotated[int | None, _limit("tokens", "N", "tokens of the model, prompts and replies", 1)] = None
    usd: Annotated[float | None, _limit("usd", "USD", "US dollars", 0)] = None

    @property
    def live(self) -> bool:
        """Whether each step is shown when it ends."""
        return self.explain and not self.json

    def settings(self, memory: Memory) -> dict[str, Any]:
        """Return the arguments of the run besides the question."""
        return {
            "on_step": show_step if self.live else None,
            "limits": memory.limits(**{name: getattr(self, name) for name in _LIMITS}),
            "engine": self.engine,
            "as_of": self.as_of,
        }


class RecallCall(QuestionCall, frozen=True):
    """Options of `recall`."""

    max_tokens: options.MaxTokens = None
    receipt: ReceiptFile = None
    bundle: BundleFile = None
    sign: SigningKey = None


_LIMITS = ("iterations", "depth", "seconds", "model_calls", "tokens", "usd")


def recall(call: RecallCall, question: Question) -> None:
    """Answer a question from memory with programs that search and read until they find the answer."""
    started = time.perf_counter()
    receipt = ReceiptWanted(call.receipt, call.bundle, call.sign, call.as_of)
    with call.open(llm=call.llm) as memory:
        result = memory.recall(" ".join(question), **call.settings(memory))
        taken = time.perf_counter() - started
        written = receipt.write(memory, result)  # before shortening: a receipt needs the complete sources
        if call.max_tokens is not None:
            result = result.within(call.max_tokens)
        if call.printed_json(recall_json(result, trajectory=call.trajectory) | written):
            return
        if call.live:
            print_rule(style="dim")
        show_recall(memory, result, taken)
        if result.outcome == "not held" and (places := other_places(memory)):
            print_text(places, "dim", wrap=False)
        for name, path in written.items():
            print_text(f"{name} written to {path}", "dim")


_MAX_SHOWN = 8
"""Maximum number of chunks that are listed below an answer."""
_RUN_FIELDS = ("concluded", "stopped_by", "iterations_used", "seconds", "usage", "cost")
_RECALL_FIELDS = (
    *("content", "suggestion", "outcome", "chunk_ids", "confidence", "sources", "closest", "method", "note"),
    *_RUN_FIELDS,
)
_REASON_FIELDS = (
    *("conclusion", "outcome", "path", "chunk_ids", "supports", "contradicts", "superseded", "confidence"),
    *_RUN_FIELDS,
)


def recall_json(result: RecallResult, *, trajectory: bool = False) -> dict[str, Any]:
    """Return a result in the form of ``--json``; ``trajectory`` adds every step and the evidence."""
    return _result_json(result, _RECALL_FIELDS, ("standing", "evidence", "trajectory") if trajectory else ())


def _result_json(
    result: RecallResult | ReasoningResult, names: Iterable[str], more: Iterable[str]
) -> dict[str, Any]:
    """Return the named fields of a result, the id of its trajectory, and further fields."""
    shown = {name: getattr(result, name) for name in names}
    return {**shown, "trajectory_id": result.trajectory.id, **{name: getattr(result, name) for name in more}}


def show_recall(memory: Memory, result: RecallResult, seconds: float) -> None:
    """Print an answer, its sources, and its cost."""
    if result.outcome == "answered":
        print_text(long_text(result.content or "", "bold"))
    elif result.suggestion is not None:
        print_text(text(f"{SUGGESTED} ", "yellow") + long_text(result.suggestion, "bold"))
    else:
        print_text(ENDINGS[result.outcome], "bold yellow")
    _show_sources(memory, result.chunk_ids, result.sources)
    if result.closest:
        print_text(CLOSEST_BESIDE, "yellow")
        _show_sources(memory, [one.chunk_id for one in result.closest], result.closest)
    parts = [
        confidence_words(result.outcome, result.confidence, result.suggestion),
        amount(result.iterations_used, "program"),
        cost_line(result.usage, result.cost),
        f"{seconds:.1f} s",
    ]
    if result.stopped_by is not None:
        parts.insert(0, ending_of(result.stopped_by))
    print_text(" · ".join(part for part in parts if part), "dim")
    if result.note:
        print_text(note_line(result.method, result.note), "yellow")


def _show_sources(memory: Memory, chunk_ids: Sequence[str], sources: Sequence[Source]) -> None:
    """Print the memories behind an answer: id, day and marks, file and headings, and the part nearest to the question.

    Args:
        sources: those of ``chunk_ids`` that are described; fewer if they are limited to a number of tokens.
    """
    # The reader without a model, which a recall has loaded; starting the command need not.
    from rlm_mem.recall.source_lines import as_written

    described = {one.chunk_id: one for one in sources}
    chunks = memory.store.get_many(list(described)[:_MAX_SHOWN], track=False)
    for chunk_id in chunk_ids[:_MAX_SHOWN]:
        line = text(f"  {chunk_id}", "cyan")
        one = described.get(chunk_id)
        if one is None:
            print_text(line)
            continue
        line.append(f"  {day(one.at)}", "dim")
        if one.trust == "untrusted":
            line.append(f"  untrusted: {one.origin}", "yellow")
        if mark := out_of_date(one.superseded_by, one.ended_at):
            line.append(f"  {mark}", "yellow")
        print_text(line)
        if place := " › ".join(filter(None, (one.path, *one.heading.split(" / ")))):
            print_text(place, "dim", indent=6)
        written = as_written(one.line, chunks[chunk_id].content) if chunk_id in chunks else one.line
        print_text(written, indent=6)
    if len(chunk_ids) > _MAX_SHOWN:
        print_text(f"  and {amount(len(chunk_ids) - _MAX_SHOWN, 'chunk')} more (--json names all)", "dim")


def reason(call: QuestionCall, question: Question) -> None:
    """Draw a conclusion from several memories by following their links, and show the path as a tree."""
    with call.open(llm=call.llm) as memory:
        result = memory.reason(" ".join(question), **call.settings(memory))
        more = ("evidence", "trajectory") if call.trajectory else ()
        call.report(_result_json(result, _REASON_FIELDS, more), lambda: _show_reasoning(memory, result))


def _show_reasoning(memory: Memory, result: ReasoningResult) -> None:
    contents = memory.store.get_many([step.chunk_id for step in result.path])
    answered = result.outcome == "answered"
    tree = rich.Tree(
        long_text(result.conclusion if answered else ENDINGS[result.outcome], "bold"), guide_style="dim"
    )
    if len(result.path) > MAX_PATH_STEPS:
        tree.add(text(f"the first {MAX_PATH_STEPS} of {len(result.path)} steps (--json prints all)", "dim"))
    for step in result.path[:MAX_PATH_STEPS]:
        label = text(f"{step.operation}  ", "yellow") + text(step.chunk_id, "cyan")
        label.append(f"  {one_line(step.reasoning, 200)}", "dim")
        branch = tree.add(label)
        chunk = contents.get(step.chunk_id)
        if chunk is not None and step.operation != "synthesize":
            branch.add(text(one_line(chunk.content, 200)))
    screen().print(tree)
    if not answered:
        _show_sources(memory, result.chunk_ids, result.sources)
    for name, ids in (("contradicts", result.contradicts), ("superseded", result.superseded)):
        if ids:
            print_text(f"{name}: {', '.join(ids)}", "yellow")
    if words := confidence_words(result.outcome, result.confidence):
        print_text(words, "dim")
    if result.note:
        print_text(result.note, "yellow")
