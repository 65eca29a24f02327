"""Output of the command: text for people on a terminal, JSON for programs, messages on stderr."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any

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
    made = rich.Console(highlight=False, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = UNCUT
    return made


def rule(console: rich.Console, title: rich.Text | str = "", *, style: str, characters: str = "─") -> None:
    """Print a line across the console, or of 80 columns if the console has no width."""
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


def indented(content: str, columns: int, style: str = "") -> rich.RenderableType:
    """Return a paragraph in which every line is indented, including wrapped ones."""
    return _Indented(text(content, style), columns)


class _Indented:
    # Rich's own Padding fills every line with spaces, which are copied along with the text.
    def __init__(self, content: rich.Text, columns: int) -> None:
        self._content = content
        self._columns = columns

    def __rich_console__(self, console: rich.Console, options: rich.ConsoleOptions) -> Iterator[rich.Text]:
        for line in self._content.wrap(console, max(1, options.max_width - self._columns)):
            line.rstrip()
            yield rich.Text(" " * self._columns if line else "").append_text(line)


def table(*columns: str | tuple[str, dict[str, Any]], title: str | None = None) -> rich.Table:
    """Return a table without a frame; a column is a name, or a name and Rich's options for it.

    On a narrow terminal, columns are cut with an ellipsis; those that fold take more lines.
    """
    made = rich.Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        header_style="dim",
        padding=(0, 2, 0, 0),
    )
    for column in columns:
        name, options = column if isinstance(column, tuple) else (column, {})
        made.add_column(name, **{"no_wrap": options.get("overflow") != "fold", **options})
    return made


def pairs(rows: Iterable[tuple[str, object]]) -> rich.Table:
    """Return a table of names and values, one pair a line."""
    made = table(("", {"style": "dim"}), ("", FOLDED))
    made.show_header = False
    for name, value in rows:
        made.add_row(name, value if not isinstance(value, str | int | float | Decimal) else text(str(value)))  # type: ignore[arg-type]  # any Rich renderable
    return made


def plain(value: Any) -> Any:
    """Return the value as JSON types: data classes as objects, times in ISO 8601, decimals as numbers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, PurePath):
        return str(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if hasattr(value, "item"):  # a numpy number
        return value.item()
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


def money(cost: Decimal | float | None) -> str:
    """Return US dollars with 2 decimals (4 between 0 and 1), or ``unpriced``."""
    if cost is None:
        return "unpriced"
    return f"${cost:.2f}" if cost >= 1 or cost == 0 else f"${cost:.4f}"
