"""The version, and the help of ``rlm-mem`` and its groups from the catalogue, without loading Typer."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from rlm_mem import __version__
from rlm_mem.cli.catalogue import OPTIONS, PANELS, SUMMARY, GroupRow, find, rows_of

_MIN_WIDTH = 44
_MAX_WIDTH = 120
_HELP = ("--help", "-h")

VERSION = f"rlm-mem {__version__}\n"


def answer_for(arguments: Sequence[str]) -> str | None:
    """Return the version or the help of ``rlm-mem`` or a group, if the command line requests only that; else None."""
    if list(arguments) == ["--version"]:
        return VERSION
    words = [word for word in arguments if word not in _HELP]
    if not words:
        return overview()
    found = find(words[0]) if len(words) == 1 else None
    return overview(found) if isinstance(found, GroupRow) else None


def overview(
    group: GroupRow | None = None,
    width: int | None = None,
    *,
    boxes: bool | None = None,
    colours: bool | None = None,
) -> str:
    """Return the help of a group of commands.

    Args:
        group: the group; None: the whole command.
        width: columns; None: those of the terminal, or 80 without one.
        boxes: draw lines around panels; None: if the output can show them.
        colours: use colours; None: on a terminal, unless ``NO_COLOR`` is set.
    """
    width = max(_MIN_WIDTH, min(_MAX_WIDTH, width or _columns()))
    if boxes is None:
        boxes = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    if colours is None:
        colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if group is None:
        usage, summary = "rlm-mem [OPTIONS] COMMAND [ARGS]...", SUMMARY
        panels = [(title, [(row.name, row.summary) for row in rows]) for title, rows in PANELS]
        panels.append(
            ("Options", [(f"{', '.join(o.flags)} {o.metavar}".strip(), o.help) for o in OPTIONS.values()])
        )
    else:
        usage, summary = f"rlm-mem {group.name} COMMAND [ARGS]...", group.summary
        panels = [("Commands", [(row.name, row.summary) for row in rows_of(group)])]
    lines = ["", *_indented(f"Usage: {usage}", width), "", *_indented(summary, width), ""]
    names = [name for title, panel in panels for name, _ in panel if title != "Options"]
    for title, panel in panels:
        left = (
            max(map(len, names))
            if title != "Options"
            else min(max(len(name) for name, _ in panel), width // 2)
        )
        lines += _panel(title, panel, left, width, boxes, colours)
    what = "COMMAND" if group is None else f"{group.name} COMMAND"
    lines += _indented(f"rlm-mem {what} --help shows what a command takes.", width)
    return "\n".join(lines) + "\n"


def _indented(text: str, width: int) -> list[str]:
    return [f" {line}" for line in wrapped(text, width - 2)]


def _panel(
    title: str, rows: Sequence[tuple[str, str]], left: int, width: int, boxes: bool, colours: bool
) -> Iterator[str]:
    inner = width - 4
    name_style, frame_style, end = ("\x1b[1;36m", "\x1b[2m", "\x1b[0m") if colours else ("", "", "")
    side = f"{frame_style}\u2502{end}" if boxes else " "
    line = "\u2500" if boxes else "-"
    corners = "\u256d\u256e\u2570\u256f" if boxes else "----"
    rest = line * (width - 5 - len(title))
    yield f"{frame_style}{corners[0]}{line}{end} {title} {frame_style}{rest}{corners[1]}{end}"
    for name, text in rows:
        for number, part in enumerate(wrapped(text, inner - left - 2)):
            shown = f"{name if number == 0 else '':{left}}"
            yield f"{side} {name_style}{shown}{end}  {part:{inner - left - 2}} {side}".rstrip()
    yield f"{frame_style}{corners[2]}{line * (width - 2)}{corners[3]}{end}" if boxes else ""


def wrapped(text: str, width: int) -> list[str]:
    """Wrap a text into lines of at most `width` characters; a longer word gets its own line."""
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
