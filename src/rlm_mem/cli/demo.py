"""`rlm-mem demo`: half a year of a small team's notes is remembered, then questioned."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rlm_mem.cli import options
from rlm_mem.cli.ask import recall_json, show_recall
from rlm_mem.cli.open import named_brain, shown_place
from rlm_mem.cli.steps import show_step
from rlm_mem.cli.terminal import amount, plain, print_json, progress, screen, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from rlm_mem.memory import Memory


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command("demo", rich_help_panel="Remember and recall")(demo)


def demo(
    ctx: typer.Context,
    llm: options.Llm = None,
    as_json: options.Json = False,
    brain: options.Brain = None,
) -> None:
    """Show what this does: remember a team's notes of half a year, and answer questions about them.

    Works in a folder of its own that is gone afterwards; --brain keeps it.
    """
    from rlm_mem.memory import Memory

    console = screen()
    kept = named_brain(ctx, brain)
    started = time.perf_counter()
    with ExitStack() as stack:
        folder = (
            kept or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rlm-mem-demo-"))) / "brain"
        )
        memory = stack.enter_context(Memory.open(folder, llm=llm or "offline"))
        with progress("remembering", unit="notes", quiet=as_json) as tell:
            count = remember_team(memory, tell)
        if not as_json:
            _introduce(console, memory, count, time.perf_counter() - started)
        seen: set[str] = set()
        answers = [_answer(console, memory, row, seen, quiet=as_json) for row in _rows("questions.jsonl")]
    if as_json:
        print_json(answers)
        return
    _close(console, answers, kept, time.perf_counter() - started)


def remember_team(memory: Memory, tell: Callable[[int, int], None]) -> int:
    """Remember the notes that come with the package, with their links and what replaced what.

    Notes that are there already are left as they are. Returns the number of notes.
    """
    rows = _rows("team.jsonl")
    ids: dict[str, str] = {}
    with memory.store.batch():
        for done, row in enumerate(rows):
            tell(done, len(rows))
            result = memory.remember(
                row["text"],
                conversation_id=row["conversation_id"],
                tags=row["tags"],
                chunk_type=row["type"],
                occurred_at=row["at"],
                source="import",
            )
            ids[row["key"]] = result.chunk_ids[0]
        for row in rows:
            for link in row["links"]:
                memory.link(
                    ids[row["key"]], ids[link["target"]], link["type"], link["strength"], link["reasoning"]
                )
            if row["supersedes"]:
                replaced = {"valid_to": row["at"], "superseded_by": ids[row["key"]]}
                memory.update(ids[row["supersedes"]], metadata=replaced)
    return len(rows)


def _rows(name: str) -> list[dict[str, Any]]:
    from importlib.resources import files

    lines = (files("rlm_mem") / "demo_data" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def _introduce(console: Console, memory: Memory, count: int, seconds: float) -> None:
    figures = memory.store.get_stats()
    console.print(text("RLM-MEM", "bold") + text("  long-term memory for LLM agents"))
    console.print()
    console.print(
        text(
            f"Remembered {amount(count, 'note')} of a team that builds a river gauge: "
            f"{amount(figures['chunk_count'], 'chunk')}, {amount(figures['total_tokens'], 'token')}, "
            f"in {seconds:.1f} s. Every chunk is a JSON file."
        )
    )
    console.print(
        text(
            "Now the questions. Each is answered by a program that searches and reads in a sandbox; here the "
            "programs are written by the built-in offline writer: no model, no key, no network.",
            "dim",
        )
    )


def _answer(
    console: Console, memory: Memory, row: dict[str, Any], seen: set[str], *, quiet: bool
) -> dict[str, Any]:
    if not quiet:
        console.print()
        console.rule(text(row["question"], "bold"), align="left", style="cyan", characters="━")
    started = time.perf_counter()
    show = None if quiet else (lambda step: show_step(console, plain(step), seen=seen))
    result = memory.recall(row["question"], on_step=show)
    if not quiet:
        console.print()
        show_recall(console, memory, result, time.perf_counter() - started)
    return {
        "question": row["question"],
        "expect": row["expect"],
        "answerable": row["answerable"],
        **recall_json(result),
    }


def _close(console: Console, answers: list[dict[str, Any]], kept: Path | str | None, seconds: float) -> None:
    answered = sum(answer["outcome"] == "answered" for answer in answers)
    console.print()
    console.rule(style="cyan", characters="━")
    console.print(
        text(
            f"{amount(len(answers), 'question')}, {answered} answered, {len(answers) - answered} without an answer"
        )
        + text(f"  ({seconds:.1f} s)", "dim")
    )
    if kept is not None:
        command = shlex.join(
            [sys.argv[0], "--brain", shown_place(kept), "recall", "--explain", "your question"]
        )
        console.print(text(f"go on: {command}", "dim"), soft_wrap=True)
    else:
        console.print(text("go on: rlm-mem demo --brain FOLDER keeps this memory to ask it yourself", "dim"))
