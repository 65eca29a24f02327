"""Lays out text in terminal cells: removes control characters, measures, truncates and wraps."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from rlm_mem.chunk import normalise_unicode

_OVERRIDES = frozenset((*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C))
_SKIN = re.compile("[\U0001f3fb-\U0001f3ff]")
_JOINED = re.compile("\u200d[^\u200d\ufe0e\ufe0f]?")
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]")
MAX_MARKS = 2
"""Maximum combining marks on one letter, since stacked marks overflow the line."""


def printable(text: str) -> str:
    """The text without control characters and direction overrides, but with newlines and tabs."""
    return "".join(
        char
        for char in text.replace("\r\n", "\n")
        if char in "\n\t" or (unicodedata.category(char) not in ("Cc", "Cs") and ord(char) not in _OVERRIDES)
    )


def fixed_width(text: str) -> str:
    """The text on one line, without characters whose width depends on the terminal.

    Terminals disagree about joined emoji, skin tones, flags and variation selectors: families are replaced by their
    first member, skin tones and selectors removed, flags replaced by their two letters, and unassigned characters by
    U+FFFD.
    """
    flat = " ".join(printable(text).split())
    if flat.isascii():
        return flat
    flat = _SKIN.sub("", _JOINED.sub("", normalise_unicode("NFC", flat)))
    flat = _FLAG.sub(lambda match: chr(ord(match[0]) - 0x1F1E6 + ord("A")), flat)
    characters: list[str] = []
    marks = 0
    for char in flat:
        kind = unicodedata.category(char)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if kind in ("Cf", "Me") or "\ufe00" <= char <= "\ufe0f" or marks > MAX_MARKS:
            continue
        characters.append("\ufffd" if kind == "Cn" else char)
    return "".join(characters)


def width_of(text: str) -> int:
    """Width of a text in cells; a CJK character or emoji takes two."""
    if text.isascii():
        return len(text)
    return cell_len(text)


def cut(text: str, width: int) -> str:
    """Truncate a text to at most ``width`` cells, with an ellipsis."""
    if width_of(text) <= width:
        return text
    if width < 1:
        return ""
    return text[: _end(text, 0, width - 1)].rstrip() + "…"


def left(text: str, width: int) -> str:
    """Pad or truncate a text to exactly ``width`` cells, left-aligned."""
    short = cut(text, width)
    return short + " " * (width - width_of(short))


def right(text: str, width: int) -> str:
    """Pad or truncate a text to exactly ``width`` cells, right-aligned."""
    short = cut(text, width)
    return " " * (width - width_of(short)) + short


def wrap(text: str, width: int, indent: int = 0) -> list[str]:
    """Wrap a text into lines of at most ``width`` cells; further lines are indented by ``indent`` spaces.

    Words are only split if they do not fit on a line; space inside a line is kept.
    """
    indent = min(indent, width - 4) if width > 8 else 0
    lines: list[str] = []
    start = lead = 0
    stop = len(text.rstrip())
    while (end := _end(text, start, width - lead)) < len(text):
        # Break at the last space after the indent, unless the next character is itself a space.
        fitting = text[start:end]
        first = end - len(fitting.lstrip(" "))
        at = end if text[end] == " " else text.rfind(" ", first + 1, end)
        if at <= max(first, start + indent - lead):
            at = max(end, start + 1)
        lines.append((" " * lead + text[start:at]).rstrip())
        while at < stop and text[at] == " ":
            at += 1
        if at >= stop:
            return lines
        start, lead = at, indent
    return [*lines, " " * lead + text[start:]]


def _end(text: str, start: int, width: int) -> int:
    """The end of the whole characters from ``start`` on that fit; combining marks stay with their letter."""
    used = 0
    for at in range(start, len(text)):
        used += width_of(text[at])
        if used > width:
            return at
    return len(text)


MIN_WIDTH = 24
_LABEL = re.compile(r"(\S+ {2,})\S")


@dataclass(frozen=True)
class BoxLine:
    """A line with left-aligned text, and ``end`` at the right side."""

    text: str
    end: str = ""


@dataclass(frozen=True)
class BoxRule:
    """A horizontal rule, with or without a title."""

    title: str = ""


Part = BoxLine | BoxRule


def draw(parts: Sequence[Part], title: str, width: int, *, ascii_only: bool = False) -> list[str]:
    """Draw a box with lines of exactly ``width`` cells (at least 24); overlong text is wrapped."""
    width = max(width, MIN_WIDTH)
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
    caption = f"{ink[2]} {cut(title, width - 8)} " if title else ""
    return ink[0] + caption + ink[2] * (width - 2 - width_of(caption)) + ink[1]


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
