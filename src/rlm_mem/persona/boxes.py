"""A box of exact width around lines of text, in a terminal of any kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rlm_mem.persona.cells import cut, width_of, wrap

__all__ = ["NARROWEST", "Part", "BoxLine", "BoxRule", "draw"]

NARROWEST = 24
_LABEL = re.compile(r"(\S+ {2,})\S")


@dataclass(frozen=True)
class BoxLine:
    """A line: text from the left, and ``end`` at the right side."""

    text: str
    end: str = ""


@dataclass(frozen=True)
class BoxRule:
    """A line across, with a title or without one."""

    title: str = ""


Part = BoxLine | BoxRule


def draw(parts: Sequence[Part], title: str, width: int, *, ascii_only: bool = False) -> list[str]:
    """Draw the box: lines of exactly ``width`` cells (at least 24). What does not fit on a line goes on below it."""
    width = max(width, NARROWEST)
    lines = [_rule(title, width, "++-" if ascii_only else "┌┐─")]
    side = "|" if ascii_only else "│"
    for part in parts:
        if isinstance(part, BoxRule):
            lines.append(_rule(part.title, width, "++-" if ascii_only else "├┤─"))
            continue
        for text in _fitted(part, width - 4):
            lines.append(f"{side} {text}{' ' * (width - 4 - width_of(text))} {side}")
    lines.append(_rule("", width, "++-" if ascii_only else "└┘─"))
    return lines


def _rule(title: str, width: int, ink: str) -> str:
    said = f"{ink[2]} {cut(title, width - 8)} " if title else ""
    return ink[0] + said + ink[2] * (width - 2 - width_of(said)) + ink[1]


def _fitted(row: BoxLine, inner: int) -> list[str]:
    label = _LABEL.match(row.text)
    lines = wrap(row.text.rstrip(), inner, width_of(label[1]) if label else 2) or [""]
    if not row.end:
        return lines
    end = wrap(row.end.strip(), inner, 2)
    room = inner - width_of(lines[-1]) - 2
    if len(end) == 1 and width_of(end[0]) <= room:
        lines[-1] += " " * (inner - width_of(lines[-1]) - width_of(end[0])) + end[0]
        return lines
    return [*lines, *(" " * (inner - width_of(text)) + text for text in end)]
