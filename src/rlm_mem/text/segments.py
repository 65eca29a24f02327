"""Segments, what search ranks: dialogue turns, sentences and short paragraphs, list items, headings, code.

Every character of a content that is not a space lies in exactly one segment, and no segment is longer than a
bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from rlm_mem.text import blocks as structure
from rlm_mem.text.blocks import Block, blocks, pieces, sentences, units

__all__ = ["Headings", "Segment", "SegmentKind", "headings_at", "sentences", "split_segments"]

SegmentKind = Literal["turn", "sentence", "code", "item", "heading"]

# Sizes in characters.
SHORT_PARAGRAPH = 160  # up to here a paragraph is one segment
LARGEST = 800  # a longer turn becomes several segments of its author; a longer item or sentence is cut
LONG_CODE = 1200
_LONGEST_HEADING = 200  # as context of what stands below it
_TINY = 40  # "Yes." alone says nothing: it joins the sentence after it, or the one before at the end


class Segment(NamedTuple):
    """`content[start:end]`; the words begin at `body_start`, after a speaker's label or an item's marker."""

    start: int
    end: int
    kind: SegmentKind
    author: str | None
    body_start: int


class Headings:
    """The headings in force while a text is read from its start."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def enter(self, text: str) -> None:
        """A heading, as it is written, is reached: it ends those of its level and below."""
        first, _, rest = text.strip().partition("\n")
        marks = len(first) - len(first.lstrip("#"))
        level = marks if marks else 1 if rest.startswith("=") else 2 if rest.startswith("-") else 7
        self._open = [one for one in self._open if one[0] < level]
        self._open.append((level, first.strip("#*: \t")[:_LONGEST_HEADING]))

    def texts(self) -> list[str]:
        """Their words, the topmost first."""
        return [text for _, text in self._open if text]


def headings_at(text: str, offsets: Sequence[int]) -> list[list[str]]:
    """For each of some rising offsets of `text` the headings that what begins there stands below, topmost first.

    A heading that begins at the offset itself is none of them. Linear time.
    """
    found: list[list[str]] = []
    headings = Headings()
    marks = [block for block in blocks(text) if block.kind == structure.HEADING]
    place = 0
    for offset in offsets:
        while place < len(marks) and marks[place].start < offset:
            headings.enter(text[marks[place].start : marks[place].end])
            place += 1
        found.append(headings.texts())
    return found


_KINDS: dict[str, SegmentKind] = {
    structure.TURN: "turn",
    structure.PARAGRAPH: "sentence",
    structure.ITEM: "item",
    structure.ROW: "item",
    structure.CODE: "code",
    structure.HEADING: "heading",
    structure.RULE: "heading",
}


def split_segments(content: str) -> list[Segment]:
    """The segments of `content` in order; an empty list for nothing but space. Linear time."""
    found: list[Segment] = []
    for block in blocks(content):
        if block.kind == structure.RULE and found:
            # A line of dashes has no words: it belongs to the segment before it.
            found[-1] = found[-1]._replace(end=block.end)
            continue
        kind = _KINDS[block.kind]
        for start, end in _spans(content, block):
            body = block.body_start if start <= block.body_start < end else start
            found.append(Segment(start, end, kind, block.author, body))
    return found


def _spans(content: str, block: Block) -> Iterator[tuple[int, int]]:
    start, end = block.start, block.end
    while content[start].isspace():  # kept indentation of code and nested items
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


def _grouped(spans: list[tuple[int, int]], fill: bool, longest: int) -> Iterator[tuple[int, int]]:
    """Join neighbours up to `longest` characters: all of them where `fill`, else only tiny ones."""
    start, end = spans[0]
    for index, (first, last) in enumerate(spans[1:], start=1):
        tiny = end - start < _TINY or (index == len(spans) - 1 and last - first < _TINY)
        if (fill or tiny) and last - start <= longest:
            end = last
        else:
            yield start, end
            start, end = first, last
    yield start, end
