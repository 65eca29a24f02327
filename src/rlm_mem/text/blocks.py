"""The structure of a text as a flat list: headings, paragraphs, dialogue turns, list items, tables, code.

One pass over the lines, linear in the length of the text. Blocks hold spans of the text, never copies, and
together they cover every character that is not a space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rlm_mem.text.speakers import MAX_LABEL, speaker_of

HEADING = "heading"
PARAGRAPH = "paragraph"
TURN = "turn"
ITEM = "item"
ROW = "row"  # one line of a table
CODE = "code"
RULE = "rule"  # a line of dashes or stars between sections


class Block(NamedTuple):
    """One structural unit: `text[start:end]`, without the line breaks around it.

    `body_start` is where the words begin after a speaker's label or an item's marker. `author` is the speaker
    whose turn the block is, or continues. `depth` is the indent of an item in columns. `apart` says that an
    empty line stands before the block.
    """

    start: int
    end: int
    kind: str
    author: str | None
    body_start: int
    depth: int
    apart: bool


class _Line(NamedTuple):
    start: int  # of the first character that is not a space
    end: int  # after the last one
    indent: int  # columns
    left: int  # where the line itself starts
    apart: bool


_LINE = re.compile(r"[^\r\n]+")
_FENCE = re.compile(r"(`{3,16}|~{3,16})[^`]*\Z")
_HEADING = re.compile(r"#{1,6}\s+\S|\*\*[^*]{1,80}\*\*:?\Z")
_UNDERLINE = re.compile(r"(?:=+|-{3,})\Z")
_RULE = re.compile(r"(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,}|={3,})\Z")
_ITEM = re.compile(r"(?:[-*+•‣◦]|(?P<number>\d{1,4})[.)]|\([a-z0-9]{1,3}\))\s+(?=\S)")
_STOP = ".!?…。！？:\"'”’)]*"
_CODE_INDENT = 4  # columns (Markdown)
_TAB = 4


_KEPT_LENGTH = 8_000  # characters: any chunk of usual settings is shorter


def blocks(text: str) -> Sequence[Block]:
    """The blocks of `text` in order.

    Those of the last short texts are kept: cutting, type detection and the index ask for the same chunk in turn.
    """
    return _kept(text) if len(text) <= _KEPT_LENGTH else _parsed(text)


def _parsed(text: str) -> tuple[Block, ...]:
    scanner = _Scanner(text)
    found = scanner.scan()
    return tuple(_inherit_authors(found) if scanner.turns >= 2 else found)


_kept = lru_cache(maxsize=128)(_parsed)


class _Scanner:
    """Holds the open block while the lines go by."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Block] = []
        self.kind: str | None = None  # of the open block
        self.first: _Line | None = None
        self.last_end = 0
        self.body = 0
        self.author: str | None = None
        self.line_count = 0
        self.turns = 0

    def scan(self) -> list[Block]:
        lines = list(_lines(self.text))
        closing = _fences(self.text, lines) if "```" in self.text or "~~~" in self.text else {}
        index = 0
        while index < len(lines):
            line = lines[index]
            until = closing.get(index)
            if until is not None:
                self.close()
                self.found.append(
                    Block(
                        line.left if line.indent else line.start,
                        lines[until].end,
                        CODE,
                        None,
                        line.start,
                        0,
                        line.apart,
                    )
                )
                index = until + 1
                continue
            self.take(line)
            index += 1
        self.close()
        return self.found

    def take(self, line: _Line) -> None:
        """Let `line` continue the open block, or close it and open the next."""
        if not line.apart and self.kind in (PARAGRAPH, TURN) and self.text[line.start].isalpha():
            self._take_words(line, self.text[line.start : min(line.end, line.start + MAX_LABEL)])
            return  # the usual line of running text: nothing but a speaker's label could open a block here
        text = self.text[
            line.start : min(line.end, line.start + 400)
        ]  # what tells the kind stands at the front
        whole = line.end - line.start <= 400
        if line.apart and self.kind is not None and not self._continues_after_gap(line):
            self.close()
        item = _ITEM.match(text)
        if (
            whole
            and self.kind == PARAGRAPH
            and self.line_count == 1
            and _UNDERLINE.match(text)
            and not line.apart
        ):
            self.kind, self.last_end = HEADING, line.end
            self.close()
        elif whole and _RULE.match(text):
            self.open(RULE, line)
            self.close()
        elif item is not None and self._may_start_item(item, line):
            self.open(ITEM, line, body=line.start + item.end())
        elif whole and line.indent < _CODE_INDENT and _HEADING.match(text) and speaker_of(text) is None:
            self.open(HEADING, line)
            self.close()
        elif text.startswith("|") and self.kind in (None, ROW):
            self.open(ROW, line)
        elif self.kind is None and line.indent >= _CODE_INDENT and (line.apart or not self.found):
            self.open(CODE, line)
        elif self.kind == CODE:
            if line.indent < _CODE_INDENT:
                self.open(PARAGRAPH, line)
            self.extend(line)
        else:
            self._take_words(line, text)

    def _take_words(self, line: _Line, text: str) -> None:
        label = speaker_of(text) if self._may_start_turn(line) else None
        if label is not None:
            self.turns += 1
            self.open(TURN, line, body=line.start + label.body, author=label.name)
        elif self.kind is None or self.kind == ROW:
            self.open(PARAGRAPH, line)
        else:
            self.extend(line)

    def _continues_after_gap(self, line: _Line) -> bool:
        """A list item goes on after an empty line, indented code too, where the line is indented."""
        if self.first is None:
            return False
        if self.kind == ITEM:
            return line.indent > self.first.indent and not _ITEM.match(self.text, line.start)
        return self.kind == CODE and line.indent >= _CODE_INDENT

    def _may_start_item(self, item: re.Match[str], line: _Line) -> bool:
        if self.kind == CODE and line.indent >= _CODE_INDENT:
            return False
        # A number at a wrapped line's start ("… in\n1984. Then") is no item.
        return item["number"] is None or self.kind not in (PARAGRAPH, TURN) or item["number"] == "1"

    def _may_start_turn(self, line: _Line) -> bool:
        """Inside a running paragraph a label counts only where the line before was finished."""
        if self.kind != PARAGRAPH or self.last_end == 0:
            return self.kind != ITEM or line.indent == 0
        return self.text[self.last_end - 1] in _STOP

    def open(self, kind: str, line: _Line, body: int | None = None, author: str | None = None) -> None:
        self.close()
        self.kind, self.first, self.last_end = kind, line, line.end
        self.body = line.start if body is None else body
        self.author, self.line_count = author, 1

    def extend(self, line: _Line) -> None:
        self.last_end = line.end
        self.line_count += 1

    def close(self) -> None:
        if self.kind is not None and self.first is not None:
            line = self.first
            # Indentation means something in code and nested lists: it stays with the block.
            start = line.left if line.indent and self.kind in (CODE, ITEM) else line.start
            depth = line.indent if self.kind == ITEM else 0
            self.found.append(
                Block(start, self.last_end, self.kind, self.author, self.body, depth, line.apart)
            )
        self.kind = None


def _lines(text: str) -> Iterator[_Line]:
    """The lines that hold something."""
    previous_end = 0
    for match in _LINE.finditer(text):
        stripped = match[0].lstrip()
        if not stripped:
            continue
        left = match.start()
        start = match.end() - len(stripped)
        indent = 0
        if start > left:
            indent = sum(_TAB if c == "\t" else 1 for c in text[left : min(start, left + 64)])
        gap = text[previous_end:left] if left - previous_end < 64 else text[previous_end : previous_end + 64]
        apart = previous_end > 0 and (gap.count("\n") > 1 or gap.count("\r") > 1)
        previous_end = left + len(match[0].rstrip())
        yield _Line(start, previous_end, indent, left, apart)


def _fences(text: str, lines: list[_Line]) -> dict[int, int]:
    """Index of each line that opens a fenced code block -> index of the line that closes it.

    An opening fence that nothing closes is an ordinary line.
    """
    marks = [
        (index, match[1])
        for index, line in enumerate(lines)
        if text[line.start] in "`~" and (match := _FENCE.match(text, line.start, line.end)) is not None
    ]
    closing: dict[int, int] = {}
    unclosed: dict[
        str, int
    ] = {}  # character -> shortest fence known to have no closing line: keeps this linear
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


def _inherit_authors(found: list[Block]) -> list[Block]:
    """In a dialogue, paragraphs, lists and code after a turn are still that speaker's, until a heading."""
    author: str | None = None
    result: list[Block] = []
    for block in found:
        if block.kind == TURN:
            author = block.author
        elif block.kind in (HEADING, RULE):
            author = None
        elif author is not None:
            block = block._replace(author=author)
        result.append(block)
    return result
