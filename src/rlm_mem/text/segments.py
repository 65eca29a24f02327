"""Splits content into segments, the units that search ranks, with their context: headings, table headers, terms.

Segments are turns, sentences, short paragraphs, list items, headings and code. Every character of a content that is not
a space is in exactly one segment, and segments have a maximum length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rlm_mem.text import blocks as structure
from rlm_mem.text.blocks import Block, blocks, pieces, units
from rlm_mem.text.patterns import late

SegmentKind = Literal["turn", "sentence", "code", "item", "heading"]

# Sizes in characters.
SHORT_PARAGRAPH = 160  # a paragraph up to this size is one segment
LARGEST = 800  # longer turns become several segments of their author; longer items or sentences are cut
LONG_CODE = 1200
_MAX_HEADING = 200  # of a heading as context of the text below it
_MAX_CELLS = 50  # of the header of a table, beyond which its further lines are not read
_TINY = 40  # a shorter sentence ("Yes.") joins the next one, or at the end the one before


class Segment(Struct, frozen=True, gc=False):
    """A segment `content[start:end]`; its words begin at `body_start`, after a speaker's label or an item's marker.

    `under` is the header of its table, or the terms that it explains.
    """

    start: int
    end: int
    kind: SegmentKind
    author: str | None
    body_start: int
    under: str = ""


class Headings:
    """Tracks the headings above the current position while a text is read."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def enter(self, text: str) -> None:
        """Add a heading line, which replaces those of its level and below."""
        level, title = self._read(text)
        self._open = [one for one in self._open if one[0] < level]
        self._open.append((level, title))

    def texts(self) -> list[str]:
        """Texts of the current headings, topmost first."""
        return [text for _, text in self._open if text]

    def above(self, text: str) -> list[str]:
        """Texts of the current headings that a heading line belongs to, topmost first."""
        level, _ = self._read(text)
        return [title for other, title in self._open if other < level and title]

    @staticmethod
    def _read(text: str) -> tuple[int, str]:
        """The level and the text of a heading line."""
        first, _, rest = text.strip().partition("\n")
        marks = len(first) - len(first.lstrip("#"))
        level = marks if marks else 1 if rest.startswith("=") else 2 if rest.startswith("-") else 7
        if level == 7:
            page, _, title = first.partition(")")
            if title.endswith(f" {page})"):  # the first line of a manual page: "ls(1)  User Commands  ls(1)"
                level, first = 1, " ".join(first.removesuffix(f"{page})").split())
            elif first.isupper():
                level = 2
        return level, first.strip("#*: \t")[:_MAX_HEADING]


class _Above:
    """Tracks the table header or definition terms that apply to the text after a block."""

    def __init__(self) -> None:
        self._terms: list[tuple[int, str]] = []  # with their depths
        self._header: list[str] = []

    def text(self, block: Block, content: str, *, inside: bool = False) -> str:
        """The header and terms above a block, or above the text ``inside`` it after its first line."""
        found = [term for depth, term in self._terms if depth < block.depth]
        if block.kind == structure.ROW:
            found += self._header
        elif inside and block.kind == structure.DEFINITION:
            found.append(_first_line(content, block))
        return " ".join(found)

    def pass_by(self, block: Block, content: str) -> None:
        """Advance past a block."""
        if block.kind == structure.HEADER:
            if len(self._header) < _MAX_CELLS:  # it is read again for each row
                self._header += _CELL.findall(content[block.start : block.end][:_MAX_HEADING])
        elif block.kind != structure.ROW and self._header:
            self._header = []
        if self._terms:
            self._terms = [one for one in self._terms if one[0] < block.depth]
        if block.kind == structure.DEFINITION:
            self._terms.append((block.depth, _first_line(content, block)))


_CELL = late(r"[^|+=:\s-][^|\s]*(?:[ \t][^|\s]+)*")


def _first_line(content: str, block: Block) -> str:
    line = content[block.body_start : block.end].partition("\n")[0]
    return " ".join(line.split())[:_MAX_HEADING]


def headings_at(text: str, offsets: Sequence[int]) -> list[list[str]]:
    """The headings above each of these ascending offsets of `text`, topmost first, in linear time.

    Above a heading that begins at the offset itself are those that it belongs to. Inside a table its header follows,
    inside a definition its term.
    """
    found: list[list[str]] = []
    headings, above = Headings(), _Above()
    marks = blocks(text)
    place = 0
    for offset in offsets:
        while place < len(marks) and marks[place].end <= offset:
            if marks[place].kind == structure.HEADING:
                headings.enter(text[marks[place].start : marks[place].end])
            above.pass_by(marks[place], text)
            place += 1
        mark = marks[place] if place < len(marks) else None
        if mark is not None and mark.kind == structure.HEADING and mark.start == offset:
            found.append(headings.above(text[mark.start : mark.end]))
            continue
        here = above.text(mark, text, inside=mark.body_start < offset) if mark is not None else ""
        found.append(headings.texts() + ([here] if here else []))
    return found


_KINDS: dict[str, SegmentKind] = {
    structure.TURN: "turn",
    structure.PARAGRAPH: "sentence",
    structure.ITEM: "item",
    structure.DEFINITION: "item",
    structure.ROW: "item",
    structure.HEADER: "item",
    structure.CODE: "code",
    structure.HEADING: "heading",
    structure.RULE: "heading",
}


def split_segments(content: str) -> list[Segment]:
    """Split `content` into segments, in order and linear time; white space alone gives an empty list."""
    found: list[Segment] = []
    above: _Above | None = None
    for block in blocks(content):
        if block.kind in _WORDLESS and found and _is_wordless(content, block):
            # A line of dashes has no words, so it is added to the segment before it.
            found[-1] = replace(found[-1], end=block.end)
            continue
        kind = _KINDS[block.kind]
        if block.kind in _ABOVE:
            above = above or _Above()
        under = above.text(block, content) if above is not None else ""
        for number, (start, end) in enumerate(_spans(content, block)):
            if number == 1 and above is not None:
                under = above.text(block, content, inside=True)
            body = block.body_start if start <= block.body_start < end else start
            found.append(Segment(start, end, kind, block.author, body, under))
        if above is not None:
            above.pass_by(block, content)
    return found


_WORDLESS = frozenset((structure.RULE, structure.HEADER))
_ABOVE = frozenset((structure.HEADER, structure.DEFINITION))


def _is_wordless(content: str, block: Block) -> bool:
    return block.kind == structure.RULE or not any(map(str.isalnum, content[block.start : block.end]))


def _spans(content: str, block: Block) -> Iterator[tuple[int, int]]:
    start, end = block.start, block.end
    while content[start].isspace():  # indentation of code and nested items
        start += 1
    size = end - start
    if block.kind == structure.CODE:
        yield from [(start, end)] if size <= LONG_CODE else pieces(content, start, end, LARGEST)
    elif size <= (SHORT_PARAGRAPH if block.kind == structure.PARAGRAPH else LARGEST):
        yield start, end
    else:
        longest = LARGEST // 2 if block.kind == structure.TURN else SHORT_PARAGRAPH
        for first, last in _grouped(units(content, start, end), block.kind == structure.TURN, longest):
            yield from [(first, last)] if last - first <= LARGEST else pieces(content, first, last, LARGEST)


def _grouped(spans: Sequence[tuple[int, int]], fill: bool, longest: int) -> Iterator[tuple[int, int]]:
    """Join adjacent spans up to `longest` characters: all of them if `fill`, otherwise only tiny ones."""
    start, end = spans[0]
    for index, (first, last) in enumerate(spans[1:], start=1):
        tiny = end - start < _TINY or (index == len(spans) - 1 and last - first < _TINY)
        if (fill or tiny) and last - start <= longest:
            end = last
        else:
            yield start, end
            start, end = first, last
    yield start, end
