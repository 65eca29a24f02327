"""`rlm-mem demo`: remembers half a year of a small team's notes, and answers questions about them."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import rlm_mem
from rlm_mem.cli import options
from rlm_mem.cli.ask import recall_json, show_recall
from rlm_mem.cli.call import BrainCall, shown_place
from rlm_mem.cli.steps import show_step
from rlm_mem.cli.terminal import amount, print_rule, print_text, progress, text
from rlm_mem.errors import InputError
from rlm_mem.mcp.clients import launcher


def demo(call: BrainCall, llm: options.Llm = None) -> None:
    """Remember half a year of a team's notes, and answer questions about them.

    It uses a temporary folder; --brain keeps the memory in another one.
    """
    named = call.named_brain
    started = time.perf_counter()
    with ExitStack() as stack:
        folder = (
            named or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rlm-mem-demo-"))) / "brain"
        )
        memory = stack.enter_context(rlm_mem.Memory.open(folder, llm=llm or "offline"))
        _check_own(memory, folder)
        with progress("remembering", unit="notes", quiet=call.json) as update:
            count = remember_team(memory, update)
        if not call.json:
            _introduce(memory, count, time.perf_counter() - started)
        seen: set[str] = set()
        answers = [_answer(memory, row, seen, quiet=call.json) for row in _rows("questions.jsonl")]
        if not call.json and isinstance(folder, Path):
            # In a copy: the receipts of the answers above still hold for the memory that is kept.
            copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rlm-mem-demo-"))) / "brain"
            shutil.copytree(folder, copy)
            _change(stack.enter_context(rlm_mem.Memory.open(copy, llm=llm or "offline")))
    if call.printed_json(answers):
        return
    _close(answers, named, time.perf_counter() - started)


def _check_own(memory: rlm_mem.Memory, place: Path | str) -> None:
    """Raise InputError if the memory has others than those of an earlier demo: they would be mixed with its notes."""
    first = _rows("team.jsonl")[0]
    if memory.store.latest(1) and memory.store.find_same(first["text"], first["conversation_id"]) is None:
        raise InputError(
            f"{shown_place(place)} has memories already, and the notes of the demo would be mixed with them",
            hint="name a new folder, or leave out --brain to use a temporary one",
        )


def remember_team(memory: rlm_mem.Memory, update: Callable[[int, int], None]) -> int:
    """Remember the notes that are part of the package, with their links and supersessions.

    Existing notes are left unchanged. Returns the number of notes.
    """
    rows = _rows("team.jsonl")
    ids: dict[str, str] = {}
    with memory.store.batch():
        for done, row in enumerate(rows):
            update(done, len(rows))
            result = memory.remember(
                row["text"],
                conversation_id=row["conversation_id"],
                tags=row["tags"],
                chunk_type=row["type"],
                occurred_at=row["at"],
                source="import",
                trust="ordinary",  # the notes are part of the package
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
    lines = (files("rlm_mem") / "demo_data" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def _introduce(memory: rlm_mem.Memory, count: int, seconds: float) -> None:
    figures = memory.store.get_stats()
    print_text(text("RLM-MEM", "bold") + text("  long-term memory for LLM agents"))
    print_text("")
    print_text(
        f"Remembered {amount(count, 'note')} of a team that builds a river gauge: "
        f"{amount(figures['chunk_count'], 'chunk')}, {amount(figures['total_tokens'], 'token')}, "
        f"in {seconds:.1f} s. Every chunk is a JSON file."
    )
    print_text(
        "Now the questions. Each is answered by a program that searches and reads in a sandbox; here the "
        "programs are written by the built-in offline model: no key, no network.",
        "dim",
    )


def _answer(memory: rlm_mem.Memory, row: dict[str, Any], seen: set[str], *, quiet: bool) -> dict[str, Any]:
    if not quiet:
        print_text("")
        print_rule(text(row["question"], "bold"), style="cyan", characters="━")
    started = time.perf_counter()
    show = None if quiet else partial(show_step, seen=seen)
    result = memory.recall(row["question"], on_step=show)
    if not quiet:
        print_text("")
        show_recall(memory, result, time.perf_counter() - started)
    return {
        "question": row["question"],
        "expect": row["expect"],
        "answerable": row["answerable"],
        **recall_json(result),
    }


_ASKED = "When is go-live?"
_NEWS = "Marta: Go-live moves to Friday 3 July, the fire service needs one more week."
_NEWS_AT = "2026-06-22"


def _change(memory: rlm_mem.Memory) -> None:
    """Replace the memory behind an answer, ask again, now and as of a former day, and undo the change."""
    before = memory.recall(_ASKED)
    if before.content is None:
        return
    print_text("")
    print_rule(text("Then a fact changes", "bold"), style="cyan", characters="━")
    memory.remember(_NEWS, conversation_id="news", occurred_at=_NEWS_AT, replaces=before.chunk_ids[:1])
    print_text(
        text("remembered  ", "dim") + text(_NEWS) + text(f" It replaces {before.chunk_ids[0]}.", "dim")
    )
    _show_again(memory, "now")
    _show_again(memory, "as of 20 June", as_of="2026-06-20")
    memory.undo()
    _show_again(memory, "after rlm-mem undo")


def _show_again(memory: rlm_mem.Memory, when: str, as_of: str | None = None) -> None:
    result = memory.recall(_ASKED, as_of=as_of)
    print_text(
        text(f"{_ASKED}  ")
        + text(f"{when}: ", "dim")
        + text(result.content or result.suggestion or "–", "bold")
    )


_RESULTS = ("answered", "with a suggestion", "without an answer", "rightly without an answer")


def _result_of(answer: dict[str, Any]) -> str:
    if answer["outcome"] == "answered":
        return _RESULTS[0]
    return _RESULTS[1] if answer["suggestion"] else _RESULTS[2] if answer["answerable"] else _RESULTS[3]


def _is_right(answer: dict[str, Any]) -> bool:
    """Return whether an answer, or else its suggestion, has what the notes say; nothing if they do not say it."""
    given = answer["content"] or answer["suggestion"]
    if not answer["answerable"]:
        return given is None
    return all(fact.lower() in (given or "").lower() for fact in answer["expect"])


def _close(answers: list[dict[str, Any]], named: Path | str | None, seconds: float) -> None:
    counts = Counter(map(_result_of, answers))
    summary = ", ".join(f"{counts[word]} {word}" for word in _RESULTS if counts[word])
    print_text("")
    print_rule(style="cyan", characters="━")
    right = sum(map(_is_right, answers))
    print_text(
        text(f"{amount(len(answers), 'question')}: {summary}; {right} of {len(answers)} right")
        + text(f"  ({seconds:.1f} s)", "dim")
    )
    if named is not None:
        command = [*launcher(), "--brain", shown_place(named)]
        asking = shlex.join([*command, "recall", "--explain", "your question"])
        print_text(f"continue with: {asking}", "dim", wrap=False)
        print_text(f"see it in the browser: {shlex.join([*command, 'serve', '--open'])}", "dim", wrap=False)
    else:
        print_text("to ask your own questions: rlm-mem demo --brain FOLDER keeps this memory", "dim")
