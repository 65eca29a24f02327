"""`rlm-mem --help` from what is written down: shown before the libraries that commands need could even be loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from rlm_mem.cli.overview_data import OPTIONS, PANELS, SUMMARY

__all__ = ["overview"]

_NARROWEST = 44
_WIDEST = 120


def overview(width: int | None = None, *, boxes: bool | None = None) -> str:
    """The help of the whole command.

    Args:
        width: columns; None: of the terminal, 80 where there is none.
        boxes: draw lines around panels; None: where the output can show them.
    """
    width = max(_NARROWEST, min(_WIDEST, width or _columns()))
    if boxes is None:
        boxes = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    parts = ["", " Usage: rlm-mem [OPTIONS] COMMAND [ARGS]...", ""]
    parts += [f" {line}" for line in wrapped(SUMMARY, width - 2)]
    parts.append("")
    parts += _panel(
        "Options", [(f"{names} {metavar}".rstrip(), text) for names, metavar, text in OPTIONS], width, boxes
    )
    for title, commands in PANELS:
        parts += _panel(title, commands, width, boxes)
    return "\n".join(parts) + "\n"


def _panel(title: str, rows: Sequence[tuple[str, str]], width: int, boxes: bool) -> Iterator[str]:
    left = min(max(len(name) for name, _ in rows), width // 2)
    inner = width - 4
    side = "\u2502" if boxes else " "
    line = "\u2500" if boxes else "-"
    yield _edge("\u256d" if boxes else "-", f"{line} {title} ", "\u256e" if boxes else "-", line, width)
    for name, text in rows:
        for number, part in enumerate(wrapped(text, inner - left - 2)):
            yield f"{side} {name if number == 0 else '':{left}}  {part:{inner - left - 2}} {side}".rstrip()
    yield _edge("\u2570", "", "\u256f", line, width) if boxes else ""


def _edge(begin: str, title: str, end: str, line: str, width: int) -> str:
    return f"{begin}{title}{line * (width - 2 - len(title))}{end}"


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` characters, broken between words where that is possible."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def _columns() -> int:
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80
