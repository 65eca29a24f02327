"""Rendering of the steps of a recall: the program, its calls, its output, its cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rlm_mem.cli import rich
from rlm_mem.cli.terminal import amount, money, one_line, rule, safe, text

OUTPUT_LINES = 20
SEEN_LINES = 2


def show_step(console: rich.Console, step: Mapping[str, Any], *, seen: set[str] | None = None) -> None:
    """Print one step (a ``LoopStep`` as plain data) below a rule.

    Args:
        seen: program lines shown before; longer runs of them are left out, and new lines are added to the set.
    """
    rule(console, step_title(step), style="dim")
    for part in step_parts(step, whole=False, seen=seen):
        console.print(part)


def step_title(step: Mapping[str, Any]) -> rich.Text:
    """Return the title of a step: number, sub-question and seconds."""
    name = f"step {step['turn']}"
    if step["depth"]:
        name += f" of a sub-question (depth {step['depth']}): {one_line(step['question'], 60)}"
    return text(f"{name} · {step['model_seconds'] + step['program_seconds']:.2f} s", "dim")


def step_parts(
    step: Mapping[str, Any], *, whole: bool, seen: set[str] | None = None
) -> list[rich.RenderableType]:
    """Return programs, calls, output and error of a step; ``whole`` keeps all lines of the output."""
    parts: list[rich.RenderableType] = [_program(program, seen) for program in step["programs"]]
    if not parts:
        parts.append(_inset(text(one_line(step["reply"], 400), "italic")))
    calls = _calls(step["host_calls"])
    if calls:
        parts.append(_inset(text(calls, "dim")))
    if step["output"].strip():
        parts.append(_inset(_output(step["output"], whole)))
    if step["error"]:
        message = f"{step['error_kind'] or 'error'}: {one_line(step['error'], 300)}"
        parts.append(_inset(text(message, "red")))
    return parts


def cost_line(usage: Mapping[str, Any] | None, cost: Any) -> str:
    """Return tokens and US dollars as text; empty if nothing was spent."""
    if not usage or not (usage["input_tokens"] or usage["output_tokens"]):
        return ""
    if cost == 0 and usage["estimated"]:
        return ""  # the offline model: nothing was spent
    counted = f"{usage['input_tokens']:,} + {usage['output_tokens']:,} tokens"
    return f"{'about ' if usage['estimated'] else ''}{counted}, {money(cost)}"


def _program(code: str, seen: set[str] | None) -> rich.RenderableType:
    """Return the program, highlighted; long runs of lines in ``seen`` are replaced by their number."""
    lines = rich.Syntax("", "python", theme="ansi_dark").highlight(safe(code).strip("\n")).split("\n")
    known = set() if seen is None else seen
    shown: list[rich.RenderableType] = []
    for is_known, run in groupby(lines, key=lambda line: line.plain in known):
        these = list(run)
        if is_known and len(these) > SEEN_LINES:
            shown.append(text(f"… {amount(len(these), 'line')} as before", "dim italic"))
        else:
            shown += these
    known.update(line.plain for line in lines)
    return _inset(rich.Group(*shown))


def _inset(content: rich.RenderableType) -> rich.RenderableType:
    return rich.Padding(content, (0, 0, 0, 2), expand=False)


def _calls(calls: Sequence[Mapping[str, Any]]) -> str:
    """Summarise the calls of a program and their total time: ``search × 2, read_chunk × 21, FINAL · 12 ms``."""
    counts = Counter(call["name"] for call in calls)
    if not counts:
        return ""
    names = ", ".join(name if count == 1 else f"{name} × {count}" for name, count in counts.items())
    return f"called {names} · {sum(call['seconds'] for call in calls) * 1000:.0f} ms"


def _output(output: str, whole: bool) -> rich.Text:
    lines = output.rstrip("\n").split("\n")
    hidden = 0 if whole else max(0, len(lines) - OUTPUT_LINES)
    shown = text("\n".join(lines[: len(lines) - hidden]), "green")
    if hidden:
        shown.append(f"\n… {amount(hidden, 'line')} more", "dim")
    return shown
