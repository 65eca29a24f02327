"""Rendering of the steps of a recall: the program, its calls, its output, its cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rlm_mem.cli import rich
from rlm_mem.cli.terminal import Indented, amount, money, one_line, print_rule, safe, screen, text

if TYPE_CHECKING:
    from decimal import Decimal

    from rlm_mem.models.base import Usage
    from rlm_mem.recall.loop import LoopStep

OUTPUT_LINES = 20
SEEN_LINES = 2


def show_step(step: LoopStep, *, seen: set[str] | None = None) -> None:
    """Print one step below a rule.

    Args:
        seen: program lines shown before; longer runs of them are left out, and new lines are added to the set.
    """
    print_rule(step_title(step), style="dim")
    for part in step_parts(step, whole=False, seen=seen):
        screen().print(part)


def step_title(step: LoopStep) -> rich.Text:
    """Return the title of a step: number, sub-question and seconds."""
    name = f"step {step.turn}"
    if step.depth:
        name += f" of a sub-question (depth {step.depth}): {one_line(step.question, 60)}"
    return text(f"{name} · {step.model_seconds + step.program_seconds:.2f} s", "dim")


def step_parts(step: LoopStep, *, whole: bool, seen: set[str] | None = None) -> list[Indented]:
    """Return programs, calls, output and error of a step; ``whole`` keeps all lines of the output."""
    parts = [_program(program, seen) for program in step.programs]
    if not parts:
        parts.append(text(one_line(step.reply, 400), "italic"))
    if step.host_calls:
        parts.append(text(_calls(step.host_calls), "dim"))
    if step.output.strip():
        parts.append(_output(step.output, whole))
    if step.error:
        message = f"{step.error_kind or 'error'}: {one_line(step.error, 300)}"
        parts.append(text(message, "red"))
    return [Indented(part, 2) for part in parts]


def cost_line(usage: Usage, cost: Decimal | None) -> str:
    """Return tokens and US dollars as text; empty if nothing was spent."""
    if not (usage.input_tokens or usage.output_tokens):
        return ""
    if cost == 0 and usage.estimated:
        return ""  # the offline model: nothing was spent
    counted = f"{usage.input_tokens:,} + {usage.output_tokens:,} tokens"
    return f"{'about ' if usage.estimated else ''}{counted}, {money(cost)}"


def _program(code: str, seen: set[str] | None) -> rich.Text:
    """Return the program, highlighted; long runs of lines in ``seen`` are replaced by their number."""
    shown_code = safe(code).strip("\n").expandtabs(4)
    lines = rich.Syntax("", "python", theme="ansi_dark").highlight(shown_code).split("\n")
    known = set() if seen is None else seen
    shown: list[rich.Text] = []
    for is_known, run in groupby(lines, key=lambda line: line.plain in known):
        these = list(run)
        if is_known and len(these) > SEEN_LINES:
            shown.append(text(f"… {amount(len(these), 'line')} as before", "dim italic"))
        else:
            shown += these
    known.update(line.plain for line in lines)
    return rich.Text("\n").join(shown)


def _calls(calls: Sequence[Mapping[str, Any]]) -> str:
    """Summarise the calls of a program and their total time: ``search × 2, read_chunk × 21, FINAL · 12 ms``."""
    counts = Counter(call["name"] for call in calls)
    names = ", ".join(name if count == 1 else f"{name} × {count}" for name, count in counts.items())
    return f"called {names} · {sum(call['seconds'] for call in calls) * 1000:.0f} ms"


def _output(output: str, whole: bool) -> rich.Text:
    lines = output.rstrip("\n").split("\n")
    hidden = 0 if whole else max(0, len(lines) - OUTPUT_LINES)
    shown = text("\n".join(lines[: len(lines) - hidden]), "green")
    if hidden:
        shown.append(f"\n… {amount(hidden, 'line')} more", "dim")
    return shown
