"""A bar chart of recall@10 from the rows of `retrieval.py`, as an SVG file (no plotting library needed)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

_COLOURS = {"RLM-MEM": "#1b6ca8"}
_OTHERS = ("#9aa5b1", "#b8a48f", "#8fb8a0", "#b08fb8", "#b8b58f")
_BAR, _GAP, _GROUP_GAP, _HEIGHT, _LEFT, _TOP = 34, 6, 36, 260, 46, 54


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the chart: one group of bars per corpus and level that has peers, one bar per system."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(f"{row['corpus']}, {row['level']}", []).append(row)
    groups = {name: members for name, members in groups.items() if len(members) > 1}
    systems = list(dict.fromkeys(row["system"] for members in groups.values() for row in members))
    others = [system for system in systems if system not in _COLOURS]
    colours = _COLOURS | {system: _OTHERS[i % len(_OTHERS)] for i, system in enumerate(others)}
    width = _LEFT + sum(len(m) * (_BAR + _GAP) + _GROUP_GAP for m in groups.values()) + 10
    width = max(width, 150 * len(systems) + _LEFT)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_TOP + _HEIGHT + 40}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{_TOP + _HEIGHT + 40}" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="14">Evidence among the first ten results (recall@10, percent)</text>',
    ]
    for number, system in enumerate(systems):
        x = _LEFT + 150 * number
        parts.append(f'<rect x="{x}" y="28" width="12" height="12" fill="{colours[system]}"/>')
        parts.append(f'<text x="{x + 17}" y="38">{escape(system)}</text>')
    for mark in range(0, 101, 20):
        y = _TOP + _HEIGHT * (1 - mark / 100)
        parts.append(f'<line x1="{_LEFT}" x2="{width - 10}" y1="{y}" y2="{y}" stroke="#e3e7eb"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end" fill="#555">{mark}</text>')
    x = _LEFT + _GROUP_GAP // 2
    for name, members in groups.items():
        start = x
        for row in members:
            value = float(row["r@10"] or 0)
            high = _HEIGHT * value / 100
            y = _TOP + _HEIGHT - high
            parts.append(
                f'<rect x="{x}" y="{y:.1f}" width="{_BAR}" height="{high:.1f}" fill="{colours[row["system"]]}"/>'
            )
            parts.append(
                f'<text x="{x + _BAR / 2}" y="{y - 4:.1f}" text-anchor="middle" font-size="11">{value:.1f}</text>'
            )
            x += _BAR + _GAP
        parts.append(
            f'<text x="{(start + x) / 2}" y="{_TOP + _HEIGHT + 20}" text-anchor="middle">{escape(name)}</text>'
        )
        x += _GROUP_GAP
    parts.append("</svg>")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
