"""The lines of a text in Markdown with the headings above them, without marks of lists, quotations and tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rlm_mem.text.patterns import late

_HEADING = late(r"(#{1,6})[ \t]+([^\n]{1,200})")
_MARK = late(r"[ \t>]{0,20}(?:(?:[-*+•]|\d{1,3}[.)])[ \t]{1,9})?(?:\[[ xX]\][ \t]{1,9})?")
_FENCES = ("```", "~~~")


class PlainLine(NamedTuple):
    """A line without its marks, and the headings above it, topmost first."""

    text: str
    headings: tuple[str, ...]


def lines_of(text: str) -> Iterator[PlainLine]:
    """The lines of a text that are no headings, fences or blank; a comment in a block of code is no heading."""
    headings: dict[int, str] = {}
    in_code = False
    for line in text.splitlines():
        mark = _MARK.match(line)
        plain = line[mark.end() if mark else 0 :].strip()
        if plain.startswith(_FENCES):
            in_code = not in_code
        elif not in_code and (heading := _HEADING.match(line)):
            level = len(heading[1])
            headings = {one: title for one, title in headings.items() if one < level} | {level: heading[2]}
        elif plain:
            yield PlainLine(plain, tuple(headings.values()))
