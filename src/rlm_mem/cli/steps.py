"""How the steps of a recall look: the program, what it called, what it printed, what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlm_mem.cli.terminal import amount, money, one_line, safe, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console, RenderableType
    from rich.text import Text

OUTPUT_LINES = 20


def show_step(console: Console, step: Mapping[str, Any]) -> None:
    """Print one step (a ``LoopStep`` as plain data) below a rule."""
    from rich.rule import Rule

    console.print(Rule(step_title(step), align="left", style="dim"))
    for part in step_parts(step, whole=False):
        console.print(part)


def step_title(step: Mapping[str, Any]) -> Text:
    """Number, sub-question and seconds of a step."""
    name = f"step {step['turn']}"
    if step["depth"]:
        name += f" of a sub-question (depth {step['depth']}): {one_line(step['question'], 60)}"
    return text(f"{name} · {step['model_seconds'] + step['program_seconds']:.2f} s", "dim")


def step_parts(step: Mapping[str, Any], *, whole: bool) -> list[RenderableType]:
    """Programs, calls, output and error of a step; ``whole`` keeps all lines of the output."""
    parts: list[RenderableType] = [_program(program) for program in step["programs"]]
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
    """Tokens and dollars, or nothing where no model was asked that counts."""
    if not usage or not (usage["input_tokens"] or usage["output_tokens"]):
        return ""
    counted = f"{usage['input_tokens']:,} + {usage['output_tokens']:,} tokens"
    return f"{'about ' if usage.get('estimated') else ''}{counted}, {money(cost)}"


def _program(code: str) -> RenderableType:
    from rich.syntax import Syntax

    return _inset(
        Syntax(
            safe(code).strip("\n"), "python", theme="ansi_dark", background_color="default", word_wrap=True
        )
    )


def _inset(content: RenderableType) -> RenderableType:
    from rich.padding import Padding

    return Padding(content, (0, 0, 0, 2))


def _calls(calls: Sequence[Mapping[str, Any]]) -> str:
    """``search('…') 3 ms; read_chunk × 4``: each kind of call once, the first one in full."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for call in calls:
        kinds.setdefault(call["name"], []).append(call)
    shown = []
    for name, made in kinds.items():
        seconds = sum(call["seconds"] for call in made)
        args = one_line(made[0]["args"], 60)
        shown.append(
            f"{name}({args}){f' and {len(made) - 1} more' if len(made) > 1 else ''} {seconds * 1000:.0f} ms"
        )
    return f"{amount(len(calls), 'call')}: {'; '.join(shown)}" if shown else ""


def _output(output: str, whole: bool) -> Text:
    lines = output.rstrip("\n").split("\n")
    hidden = 0 if whole else max(0, len(lines) - OUTPUT_LINES)
    shown = text("\n".join(lines[: len(lines) - hidden]), "green")
    if hidden:
        shown.append(f"\n… {amount(hidden, 'line')} more", "dim")
    return shown
