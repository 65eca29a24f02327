"""One report from the answers of every system: rows for the page, Markdown, and quality against cost as a plot."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from answers.running import Lines
from answers.scoring import JUDGES

NOT_MEASURED = "not measured"
RULES = {
    "locomo": "token F1",
    "facts": "answer occurs",
    "personamem": "right letter",
    "beam": "rubric, by a judge",
}


def rows(out: Path) -> list[dict[str, Any]]:
    """A row for each set and system; missing figures are marked as not measured."""
    made = []
    for folder in sorted(path.parent for path in out.glob("*/answers.jsonl")):
        answers = list(Lines(folder / "answers.jsonl").rows.values())
        marks = Lines(folder / "judged.jsonl").rows if (folder / "judged.jsonl").exists() else {}
        settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        for name in sorted({row["set"] for row in answers}):
            made.append(_row(name, settings["system"], [row for row in answers if row["set"] == name], marks))
    return sorted(made, key=lambda row: (row["set"], row["system"]))


def _row(
    name: str, system: str, answers: list[dict[str, Any]], marks: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    measured = [row for row in answers if row["error"] is None]

    def mean(column: str) -> float | str:
        return _mean(row[column] for row in measured)

    judged = [marks[row["id"]] for row in answers if row["id"] in marks]
    rubric = _mean(mark.get("rubric") for mark in judged)
    usd = [None if row["usd"] is None else Decimal(row["usd"]) for row in measured] or [None]
    return {
        "set": name,
        "system": system,
        "questions": len(answers),
        "scoring rule": RULES[name],
        "score": rubric if name == "beam" else mean("score"),
        "evidence read": mean("held"),
        **{f"judge {kind}": _mean(mark.get(kind) for mark in judged) for kind in JUDGES},
        "abstained": _mean(float(row["answer"] is None) for row in measured),
        "characters read": mean("read_chars"),
        "input tokens": mean("tokens_in"),
        "output tokens": mean("tokens_out"),
        "model calls": mean("calls"),
        "usd": NOT_MEASURED if None in usd else round(float(sum(one or 0 for one in usd)) / len(usd), 5),
        "seconds p50": _median(row["seconds"] for row in measured),
        "failures": len(answers) - len(measured),
    }


def _mean(values: Iterable[Any]) -> float | str:
    return _over(values, statistics.fmean)


def _median(values: Iterable[Any]) -> float | str:
    return _over(values, statistics.median)


def _over(values: Iterable[Any], figure: Callable[[list[float]], float]) -> float | str:
    given = [float(value) for value in values if value is not None]
    return round(figure(given), 3) if given else NOT_MEASURED


def markdown(found: Sequence[dict[str, Any]], facts: dict[str, Any]) -> str:
    """The report as text: one table for each set."""
    parts = ["# Answers", "", *(f"* {name}: {value}" for name, value in facts.items()), ""]
    for name in dict.fromkeys(row["set"] for row in found):
        here = [row for row in found if row["set"] == name]
        columns = [column for column in here[0] if column not in ("set", "scoring rule")]
        parts += [f"## {name} ({RULES[name]})", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        parts += [f"| {' | '.join(_cell(row[column]) for column in columns)} |" for row in here]
        parts.append("")
    return "\n".join(parts)


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) and value < 1000 else str(value)


_COLOURS = ("#2f7fc1", "#d9822b", "#3d9970", "#b5519c", "#8c7853", "#6b7fa3")
_STYLE = """<style>
.page{fill:#ffffff}.text{fill:#24292f}.faint{fill:#57606a}.grid{stroke:#d0d7de;stroke-width:1}
@media (prefers-color-scheme:dark){.page{fill:#0d1117}.text{fill:#e6edf3}.faint{fill:#9aa4af}.grid{stroke:#30363d}}
</style>"""


def plot(found: Sequence[dict[str, Any]]) -> str:
    """Score against what was read for it (characters a question), one field for each set; only what was measured."""
    shown = [
        row for row in found if isinstance(row["score"], float) and isinstance(row["characters read"], float)
    ]
    sets, systems = list(dict.fromkeys(row["set"] for row in shown)), sorted({row["system"] for row in shown})
    width, field, high, top = 720, 720 / max(1, len(sets)), 220, 90
    height = top + high + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        _STYLE,
        f'<rect class="page" width="{width}" height="{height}" rx="6"/>',
        '<text class="text" x="16" y="24" font-size="15" font-weight="600">Quality and what it takes</text>',
        '<text class="faint" x="16" y="43">score by the rule of each set (0 to 1) against thousands of characters read'
        " a question</text>",
    ]
    most = max([float(row["characters read"]) for row in shown] or [1.0])
    for number, name in enumerate(sets):
        left = number * field + 46
        wide = field - 66
        for mark in (0, 0.5, 1):
            y = top + high * (1 - mark)
            parts.append(
                f'<line class="grid" x1="{left:.0f}" y1="{y:.0f}" x2="{left + wide:.0f}" y2="{y:.0f}"/>'
            )
            parts.append(
                f'<text class="text" x="{left - 8:.0f}" y="{y + 4:.0f}" text-anchor="end">{mark:g}</text>'
            )
        for share in (0, 1):
            parts.append(
                f'<text class="text" x="{left + share * wide:.0f}" y="{top + high + 18}" text-anchor="middle">'
                f"{most * share / 1000:.3g}</text>"
            )
        parts.append(
            f'<text class="text" x="{left + wide / 2:.0f}" y="{top + high + 40}" text-anchor="middle">{escape(name)}'
            "</text>"
        )
        for row in shown:
            if row["set"] == name:
                x = left + wide * float(row["characters read"]) / most
                y = top + high * (1 - float(row["score"]))
                colour = _COLOURS[systems.index(row["system"]) % len(_COLOURS)]
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
    for number, system in enumerate(systems):
        x, colour = 16 + 180 * (number % 4), _COLOURS[number % len(_COLOURS)]
        y = 62 + 16 * (number // 4)
        parts.append(f'<circle cx="{x + 5}" cy="{y - 4}" r="5" fill="{colour}"/>')
        parts.append(f'<text class="text" x="{x + 16}" y="{y}">{escape(system)}</text>')
    return "\n".join([*parts, "</svg>", ""])
