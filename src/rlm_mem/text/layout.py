"""Lines of a text, and structures that span lines: fenced code, tables, indented prose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from rlm_mem.text.patterns import late


class TextLine(Struct, gc=False):
    """A line that is not empty."""

    start: int  # offset of the first character that is not a space
    end: int  # offset after the last one
    indent: int  # columns
    left: int  # offset of the line itself
    apart: bool


_FENCE = re.compile(r"(`{3,16}|~{3,16})[^`]*\Z")
_TAB = 4  # columns


def lines_of(text: str) -> Iterator[TextLine]:
    """The lines of a text that are not empty."""
    previous_end = end = 0
    # Splitting at line breaks takes a tenth of the time of a pattern, which looks at every character.
    for line in text.replace("\r", "\n").split("\n"):
        left, end = end, end + len(line) + 1
        stripped = line.lstrip()
        if not stripped:
            continue
        start = left + len(line) - len(stripped)
        indent = 0
        if start > left:
            indent = sum(_TAB if c == "\t" else 1 for c in text[left : min(start, left + 64)])
        apart = False
        if left - previous_end > 1 and previous_end > 0:  # a single character is the line break
            gap = text[previous_end : min(left, previous_end + 64)]
            apart = gap.count("\n") > 1 or gap.count("\r") > 1
        previous_end = start + len(stripped.rstrip())
        yield TextLine(start, previous_end, indent, left, apart)


def fences(text: str, lines: list[TextLine]) -> dict[int, int]:
    """Index of the closing line by index of the opening line, for each fenced code block.

    An opening fence without a closing one is an ordinary line.
    """
    marks = [
        (index, match[1])
        for index, line in enumerate(lines)
        if text[line.start] in "`~" and (match := _FENCE.match(text, line.start, line.end)) is not None
    ]
    closing: dict[int, int] = {}
    unclosed: dict[
        str, int
    ] = {}  # character -> shortest fence without a closing line, which keeps this linear
    position = 0
    while position < len(marks):
        index, fence = marks[position]
        position += 1
        if len(fence) >= unclosed.get(fence[0], 1 << 30):
            continue
        for later in range(position, len(marks)):
            end, mark = marks[later]
            bare = lines[end].end - lines[end].start == len(mark)
            if bare and mark[0] == fence[0] and len(mark) >= len(fence):
                closing[index] = end
                position = later + 1
                break
        else:
            unclosed[fence[0]] = len(fence)
    return closing


# --- tables ---------------------------------------------------------------------------------------------------------

_BELOW_HEADER = late(r"\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-*+:?[ \t]*+)++")
"""The line below the header of a Markdown table."""
_GRID = late(r"\+(?:[-=]+\+)+")
_COLUMNS = late(r"={2,}(?:[ \t]+={2,})+")
"""A border line of a reStructuredText table."""


def tables(text: str, lines: Sequence[TextLine]) -> dict[int, bool]:
    """Indices of table lines, each with whether the line belongs to the header.

    Lines that begin with a bar are always rows; this finds their headers, and tables of other forms.
    """
    found: dict[int, bool] = {}
    index = 0
    while index < len(lines):
        line = lines[index]
        if text[line.start] in "|:-" and index and index not in found:
            if _BELOW_HEADER.fullmatch(text[line.start : line.end]) and _has_bar(
                text, lines[index - 1], line
            ):
                found[index - 1] = found[index] = True
                index = _add_rows(text, lines, index + 1, found)
                continue
        elif text[line.start] == "+" and _GRID.fullmatch(text[line.start : line.end]):
            index = _add_bordered(text, lines, index, found)
            continue
        elif text[line.start] == "=" and _COLUMNS.fullmatch(text[line.start : line.end]):
            index = _add_columns(text, lines, index, found)
            continue
        index += 1
    return found


def _has_bar(text: str, line: TextLine, below: TextLine) -> bool:
    return not below.apart and text.find("|", line.start, line.end) >= 0


def _add_rows(text: str, lines: Sequence[TextLine], index: int, found: dict[int, bool]) -> int:
    """Add the rows below the header of a Markdown table; returns the index of the line after the last one."""
    while index < len(lines) and _has_bar(text, lines[index], lines[index]):
        found[index] = False
        index += 1
    return index


def _add_bordered(text: str, lines: Sequence[TextLine], first: int, found: dict[int, bool]) -> int:
    """Add a table with borders, whose header ends with a border of equal signs."""
    last, header = first, -1
    while last < len(lines) and text[lines[last].start] in "|+" and not (last > first and lines[last].apart):
        if text.startswith("+=", lines[last].start):
            header = last
        last += 1
    if last - first > 2:
        found.update((index, index <= header) for index in range(first, last))
    return last


def _add_columns(text: str, lines: Sequence[TextLine], first: int, found: dict[int, bool]) -> int:
    """Add a table without borders: rows and header are enclosed by two or three lines of equal signs."""
    marks = [first]
    last = first + 1
    while last < len(lines) and len(marks) < 3:
        line = lines[last]
        if text[line.start] == "=" and _COLUMNS.fullmatch(text[line.start : line.end]):
            marks.append(last)
            if last + 1 == len(lines) or lines[last + 1].apart:
                break
        last += 1
    if len(marks) < 2:
        return first + 1
    header = marks[1] if len(marks) == 3 else -1
    found.update((index, index <= header) for index in range(first, marks[-1] + 1))
    return marks[-1] + 1


# --- indented prose -------------------------------------------------------------------------------------------------

_FUNCTION_WORDS = "the a an to of is are be this that which by it will can has may"
"""Function words that are rare in program code, even as names."""
_PROSE = frozenset(_FUNCTION_WORDS.split())
_WORDS_OF_PROSE = 5
_SAMPLED = 60  # lines
_ORDINARY = re.compile(r"[^\W_]")


def is_prose(text: str, lines: Sequence[TextLine], index: int) -> bool:
    """Whether the lines from ``index`` to the next one with less indent are prose, as in a manual page, not code.

    Prose: at least half of the lines with five words or more have a function word and do not begin with a sign.
    """
    long = with_word = 0
    for line in lines[index : index + _SAMPLED]:
        if line.indent < lines[index].indent:
            break
        words = text[line.start : min(line.end, line.start + 200)].split()
        if len(words) >= _WORDS_OF_PROSE:
            long += 1
            ordinary = _ORDINARY.match(words[0][0]) is not None or words[0][0] in "\"'(“‘"
            with_word += ordinary and not _PROSE.isdisjoint(map(str.lower, words))
    return 0 < long <= 2 * with_word
