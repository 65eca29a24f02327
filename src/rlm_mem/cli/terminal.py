"""Output of the command: text for people on a terminal, JSON for programs, messages on stderr."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from rlm_mem.chunk.types import amount as amount
from rlm_mem.cli import rich

# Remembered text is untrusted: its escape sequences must not reach the terminal.
_VISIBLE = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_VISIBLE |= {0x7F: "␡"} | dict.fromkeys(range(0x80, 0xA0), "�") | dict.fromkeys(range(0xD800, 0xE000), "�")
# Direction marks and overrides can disguise the content of a line; some terminals interpret line and paragraph
# separators and annotation characters.
_FORMATTING = (
    *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xFFF9, 0xFFFC),
)
_VISIBLE |= dict.fromkeys(_FORMATTING, "�")
_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *_FORMATTING)}


UNCUT = 10_000
"""Width in columns of a console that does not cut text."""
MAX_SHOWN_CHARS = 20_000
"""Maximum characters of an answer that a terminal shows."""
FOLDED: dict[str, Any] = {"no_wrap": False, "overflow": "fold"}
RIGHT: dict[str, Any] = {"justify": "right"}
"""Options of table columns: ``FOLDED`` for text that may take several lines, ``RIGHT`` for figures."""
Columns = Sequence[str | tuple[str, dict[str, Any]]]
"""Names of columns, or names with Rich's options; a column with a ratio takes the rest of the width."""
Rows = Iterable[Sequence[object]]
"""Cells of each row, as text, numbers or Rich text."""


def safe(text: str) -> str:
    """Return the text with control characters made visible, except newlines and tabs."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def one_line(text: str, limit: int = 200) -> str:
    """Return the text on one line, white space collapsed, cut at ``limit`` characters with an ellipsis."""
    flat = " ".join(safe(text[: limit * 4]).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def screen() -> rich.Console:
    """Return the console on stdout, which uses colours only on a terminal and respects ``NO_COLOR``.

    Output to a file or another program is neither wrapped nor cut, unless ``COLUMNS`` is set.
    """
    return _screen(sys.stdout, os.environ.get("COLUMNS"))


@lru_cache(maxsize=1)
def _screen(_: object, columns: str | None) -> rich.Console:
    """Return the console on this stream; creating one is slow beside printing a line."""
    made = rich.Console(highlight=False, markup=False, emoji=False)
    if not made.is_terminal and columns is None:
        made.width = UNCUT
    return made


def print_rule(title: rich.Text | str = "", *, style: str, characters: str = "─") -> None:
    """Print a line across the console, or of 80 columns if the console has no width."""
    console = screen()
    line = rich.Rule(title, align="left", style=style, characters=characters)
    console.print(line, width=80 if console.width == UNCUT else None)


def messages() -> rich.Console:
    """Return the console on stderr, for errors, hints and progress."""
    return rich.Console(stderr=True, highlight=False, markup=False, emoji=False)


def text(content: str, style: str = "") -> rich.Text:
    """Return remembered or typed text as Rich text, without markup or control sequences."""
    # Style the content only: a style of the whole text would also apply to text appended later.
    return rich.Text().append(safe(content), style or None)


def long_text(content: str, style: str = "") -> rich.Text:
    """Return text for a terminal: the first 20,000 characters, and the total if it is longer."""
    shown = text(content[:MAX_SHOWN_CHARS], style)
    if len(content) > MAX_SHOWN_CHARS:
        shown.append(f"\n… {MAX_SHOWN_CHARS:,} of {len(content):,} characters (--json prints all)", "dim")
    return shown


def print_text(
    content: str | rich.Text, style: str = "", *, indent: int = 0, wrap: bool = True, cut: bool = False
) -> None:
    """Print a paragraph.

    Args:
        style: of a content that is not Rich text already.
        indent: columns before every line, including wrapped ones.
        wrap: break long lines at words; False: leave them whole, as paths and commands that are copied.
        cut: end each line at the edge of the terminal, with an ellipsis.
    """
    shown = text(content, style) if isinstance(content, str) else content
    options: dict[str, Any] = {"no_wrap": True, "overflow": "ellipsis"} if cut else {"soft_wrap": not wrap}
    screen().print(Indented(shown, indent) if indent else shown, **options)


class Indented:
    """A paragraph in which every line is indented, including wrapped ones.

    Rich's own Padding fills every line with spaces, which are copied along with the text.
    """

    def __init__(self, content: rich.Text, columns: int) -> None:
        self._content = content
        self._columns = columns

    def __rich_console__(self, console: rich.Console, options: rich.ConsoleOptions) -> Iterator[rich.Text]:
        for line in self._content.wrap(console, max(1, options.max_width - self._columns)):
            line.rstrip()
            yield rich.Text(" " * self._columns if line else "").append_text(line)


def print_table(columns: Columns, rows: Rows, *, none: str = "", header: bool = True) -> None:
    """Print a table without a frame.

    On a narrow terminal, columns are cut with an ellipsis; those that fold take more lines.

    Args:
        none: printed instead of a table without rows; empty: print the names of the columns.
    """
    console = screen()
    made = rich.Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0), show_header=header)
    for column in columns:
        name, options = column if isinstance(column, tuple) else (column, {})
        made.expand = made.expand or ("ratio" in options and console.width < UNCUT)
        made.add_column(name, **{"no_wrap": options.get("overflow") != "fold", **options})
    for row in rows:
        made.add_row(*(cell if isinstance(cell, rich.Text) else text(str(cell)) for cell in row))
    if made.row_count or not none:
        console.print(made)
    else:
        print_text(none, "dim")


def print_pairs(rows: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one pair a line."""
    print_table((("", {"style": "dim"}), ("", FOLDED)), rows, header=False)


def plain(value: Any) -> Any:
    """Return the value as JSON types: data classes as objects, decimals as numbers, paths as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return plain(msgspec.to_builtins(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Decimal):
        return float(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def print_json(value: Any) -> None:
    """Print the value as JSON on stdout: UTF-8, indented by 2.

    Control characters, direction marks, and text that the output cannot encode are escaped.
    """
    # These characters occur only within strings, where the escape is equivalent.
    made = json.dumps(plain(value), ensure_ascii=False, indent=2).translate(_ESCAPED)
    try:
        made.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        made = json.dumps(plain(value), ensure_ascii=True, indent=2)
    sys.stdout.write(made + "\n")


def print_error(message: str, hint: str | None = None) -> None:
    """Print the error on one line of stderr, and the remedy, if any, on the next."""
    console = messages()
    line = text(" ".join(safe(message).split()))
    line.stylize("red")
    console.print(text("rlm-mem: ", "bold red") + line, soft_wrap=True)
    if hint:
        console.print(text("hint: ", "bold") + text(" ".join(safe(hint).split())), soft_wrap=True)


@contextmanager
def resumable() -> Iterator[None]:
    """If Ctrl-C ends the block, print that the command can be repeated."""
    try:
        yield
    except KeyboardInterrupt:
        note("what was stored is kept; repeat the command to continue")
        raise


def note(message: str) -> None:
    """Print a remark on stderr."""
    messages().print(text(message, "dim"), soft_wrap=True)


@contextmanager
def progress(
    label: str, *, unit: str = "chunks", quiet: bool = False
) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr, removed when done; without a terminal, or if quiet, show nothing.

    Yields:
        a function ``(done, total)`` that updates the bar.
    """
    console = messages()
    if quiet or not console.is_terminal:
        yield lambda _done, _total: None
        return
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(bar_width=None),
        rich.MofNCompleteColumn(),
        rich.TextColumn(unit),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def day(stamp: str | None) -> str:
    """Return the day of an ISO time, or a dash."""
    return stamp[:10] if stamp else "–"


def moment(stamp: str | None) -> str:
    """Return an ISO time to the minute, or a dash."""
    return stamp[:16].replace("T", " ") if stamp else "–"


def share(value: float | None) -> str:
    """Return a share from 0 to 1 as a percentage, or a dash."""
    return "–" if value is None else f"{value:.0%}"


def money(cost: Decimal | float | None) -> str:
    """Return US dollars with 2 decimals (4 between 0 and 1), or ``unpriced``."""
    if cost is None:
        return "unpriced"
    return f"${cost:.2f}" if cost >= 1 or cost == 0 else f"${cost:.4f}"
