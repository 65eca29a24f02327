"""Growth curves and bars as SVG, legible on light and dark pages.

Small on purpose: a plotting library would be the largest dependency of the benchmarks, and its output differs from run
to run. Here the same figures give the same file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

Points = Sequence[tuple[float, float]]

#: Distinguishable with red-green colour blindness, on white and on black; the marks differ, too.
COLOURS = ("#2f7fc1", "#d9822b", "#3d9970", "#b5519c", "#8c7853", "#6b7fa3")
MARKS = ("circle", "square", "diamond", "triangle", "circle", "square")
STYLE = """<style>
.page{fill:#ffffff}.text{fill:#24292f}.faint{fill:#57606a}.grid{stroke:#d0d7de;stroke-width:1}
@media (prefers-color-scheme:dark){.page{fill:#0d1117}.text{fill:#e6edf3}.faint{fill:#9aa4af}.grid{stroke:#30363d}}
</style>"""
WIDTH, LEFT, RIGHT, TOP, PLOT, BOTTOM = 720, 74, 24, 64, 250, 48
LINE = 18


def curves(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """Lines over two logarithmic axes: linear growth is a straight line upwards, constant cost a flat one.

    Args:
        series: points of positive numbers by name; points that are not positive are left out.
    """
    kept = {name: [(x, y) for x, y in points if x > 0 and y > 0] for name, points in series.items()}
    kept = {name: points for name, points in kept.items() if points}
    xs = [x for points in kept.values() for x, _ in points]
    ys = [y for points in kept.values() for _, y in points]
    x_low, x_high = _decades(xs)
    y_low, y_high = _decades(ys)
    names_height = LINE * math.ceil(len(kept) / 2)
    top = TOP + names_height
    width = WIDTH - LEFT - RIGHT

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (math.log10(x) - x_low) / (x_high - x_low) * width,
            top + PLOT - (math.log10(y) - y_low) / (y_high - y_low) * PLOT,
        )

    parts = _head(title, y_label, top + PLOT + BOTTOM)
    for power in range(x_low, x_high + 1):
        x, _ = place(10.0**power, 10.0**y_low)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{top + PLOT}"/>')
        parts.append(_text(x, top + PLOT + 18, _short(10.0**power), "middle"))
    for power in range(y_low, y_high + 1):
        _, y = place(10.0**x_low, 10.0**power)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(_text(LEFT - 8, y + 4, _short(10.0**power), "end"))
    parts.append(_text(LEFT + width / 2, top + PLOT + 38, x_label, "middle", "faint"))
    for number, (name, points) in enumerate(kept.items()):
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        dashes = ' stroke-dasharray="6 4"' if number >= len(COLOURS) else ""
        spots = [place(x, y) for x, y in sorted(points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dashes} points="{path}"/>')
        parts += [_mark(mark, x, y, colour) for x, y in spots]
        legend_x, legend_y = LEFT + (number % 2) * width / 2, TOP + 4 + LINE * (number // 2)
        parts.append(_mark(mark, legend_x, legend_y - 4, colour))
        parts.append(_text(legend_x + 10, legend_y, name, "start"))
    return "\n".join([*parts, "</svg>", ""])


def bars(title: str, y_label: str, values: Mapping[str, float]) -> str:
    """One bar for each name over a logarithmic scale, its value at its end."""
    kept = {name: value for name, value in values.items() if value > 0}
    low, high = _decades(list(kept.values()))
    left, height = 230, 26
    width = WIDTH - left - 90
    parts = _head(title, y_label, TOP + height * len(kept) + 20)
    for number, (name, value) in enumerate(kept.items()):
        y = TOP + 6 + number * height
        long = max(2.0, (math.log10(value) - low) / (high - low) * width)
        colour = COLOURS[0] if name.startswith("RLM-MEM") else COLOURS[4]
        parts.append(_text(left - 8, y + 14, name, "end"))
        parts.append(f'<rect x="{left}" y="{y}" width="{long:.1f}" height="{height - 8}" fill="{colour}"/>')
        parts.append(_text(left + long + 6, y + 14, _short(value), "start"))
    return "\n".join([*parts, "</svg>", ""])


def write(path: Path, drawing: str) -> None:
    """Write the file where it differs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != drawing:
        path.write_text(drawing, encoding="utf-8")


def _head(title: str, y_label: str, height: float) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" role="img" aria-label="{escape(title, {chr(34): "&quot;"})}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        STYLE,
        f'<rect class="page" width="{WIDTH}" height="{height:.0f}" rx="6"/>',
        f'<text class="text" x="16" y="24" font-size="15" font-weight="600">{escape(title)}</text>',
        _text(16, 43, y_label, "start", "faint"),
    ]


def _text(x: float, y: float, text: str, anchor: str, kind: str = "text") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _mark(kind: str, x: float, y: float, colour: str) -> str:
    if kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    shapes = {
        "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        "diamond": ((0, -5), (5, 0), (0, 5), (-5, 0)),
        "triangle": ((0, -5), (5, 4), (-5, 4)),
    }
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in shapes[kind])
    return f'<polygon points="{points}" fill="{colour}"/>'


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around all values; at least one decade."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _short(value: float) -> str:
    """A number in short form."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"
