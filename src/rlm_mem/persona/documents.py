"""Parses the subset of Markdown used in persona files: title, quotes, sections, list items, table rows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rlm_mem.chunk import normalise_unicode
from rlm_mem.errors import InvalidConfig
from rlm_mem.merging import MERGE_CONFLICT, in_conflict

MAX_BYTES = 262_144
"""Maximum size of a persona file, which is read completely and becomes part of prompts."""

_HEADING = re.compile(r"(#{1,6})\s+(.*)$")
_FENCE = re.compile(r"\s*+(`{3,}|~{3,})")
_ITEM = re.compile(r"[-*+] (.*)$")
_RULE_ROW = re.compile(r"[\s|:-]+$")
_NUMBER = re.compile(r"(\d{1,9})(?:\.0+)? ?%?$")


@dataclass
class Section:
    """The text below one heading.

    Attributes:
        title: the heading's text before a colon.
        value: its text after the colon (``## Default: 55%``), else empty.
        line: number of the heading's line, from 1.
        lines: the body, with line numbers.
    """

    title: str
    value: str
    line: int
    lines: list[tuple[int, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The body without surrounding blank lines."""
        return "\n".join(text for _, text in self.lines).strip()

    def items(self) -> list[tuple[int, str]]:
        """List items with their line numbers; indented lines below an item belong to it."""
        found: list[tuple[int, str]] = []
        for number, text in self.lines:
            match = _ITEM.match(flat(text))
            if match:
                found.append((number, match[1]))
            elif found and text.startswith("  ") and text.strip():
                found[-1] = (found[-1][0], f"{found[-1][1]} {flat(text)}")
        return found

    def rows(self) -> list[tuple[int, list[str]]]:
        """Rows of tables with their line numbers, without the lines below headers; cells are stripped."""
        found = []
        for number, text in self.lines:
            bare = text.strip()
            if bare.startswith("|") and not _RULE_ROW.fullmatch(bare):
                found.append((number, [flat(cell).strip("*`") for cell in bare.strip("|").split("|")]))
        return found


@dataclass
class Document:
    """A parsed persona file.

    Attributes:
        title: the first heading, or empty.
        quotes: the ``>`` lines before the first section.
        intro: prose before the first section.
        sections: by title in lower case, in order.
        fences: fenced blocks of the whole file: (info word, line of the opening fence, lines).
    """

    title: str = ""
    quotes: list[str] = field(default_factory=list)
    intro: str = ""
    sections: dict[str, Section] = field(default_factory=dict)
    fences: list[tuple[str, int, list[str]]] = field(default_factory=list)

    def section(self, *titles: str) -> Section | None:
        """The first section with one of these titles (lower case), tried in order; None if there is none."""
        return next((self.sections[title] for title in titles if title in self.sections), None)

    def quoted(self, label: str) -> str | None:
        """The text after ``> Label:`` in the quotes; None if there is none."""
        for line in self.quotes:
            name, colon, rest = line.partition(":")
            if colon and name.strip().strip("*").lower() == label:
                return rest.strip().strip("*").strip()
        return None


def parse_document(text: str) -> Document:
    """Parse a Markdown text; any text is accepted. Front matter at the top is skipped."""
    lines = text.removeprefix("\ufeff").splitlines()
    document, current, intro = Document(), None, []
    fence: str | None = None
    start = _after_front_matter(lines)
    for number, line in enumerate(lines[start:], start + 1):
        opening = _FENCE.match(line)
        if fence is not None:
            if opening and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
            else:
                document.fences[-1][2].append(line)
        elif opening:
            fence = opening[1]
            info = line.strip().strip(fence[0]).split()
            document.fences.append((info[0].lower() if info else "", number, []))
        heading = _HEADING.match(line) if fence is None and not opening else None
        if heading and len(heading[1]) == 1 and not document.title and current is None:
            document.title = heading[2].rstrip("# ")
        elif heading and len(heading[1]) <= 2:
            title, _, value = heading[2].rstrip("# ").partition(":")
            current = Section(flat(title), flat(value), number)
            # Of sections with the same title, the first counts.
            document.sections.setdefault(current.title.lower(), current)
        elif current is not None:
            current.lines.append((number, line))
        elif fence is None and line.lstrip().startswith(">"):
            document.quotes.append(line.lstrip().removeprefix(">").strip())
        else:
            intro.append(line)
    document.intro = "\n".join(intro).strip()
    return document


def _after_front_matter(lines: list[str]) -> int:
    if not lines or lines[0].strip() != "---":
        return 0
    return next((number + 1 for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)


def flat(text: str) -> str:
    """Strip a text and collapse runs of white space to one space."""
    return " ".join(text.split())


def comparable_name(text: str) -> str:
    """Return a name of a personality, slider or gauge as it is compared: NFC, in upper case, with underscores."""
    return re.sub(r"[\s-]+", "_", normalise_unicode("NFC", text.strip())).upper()


def whole_number(text: str, where: str) -> int:
    """Parse a text as an integer, with an optional ``%``.

    Raises:
        InvalidConfig: the text is not an integer.
    """
    match = _NUMBER.match(flat(text))
    if match is None:
        raise InvalidConfig(
            f"{where} must be a whole number, not {text.strip()!r:.60}", hint="write it as 75 or 75%"
        )
    return int(match[1])


def document_text(data: bytes, where: str) -> str:
    """Decode a persona file.

    Raises:
        InvalidConfig: the file is too large, not UTF-8, or has a merge conflict.
    """
    if len(data) > MAX_BYTES:
        raise InvalidConfig(f"{where} has {len(data):,} bytes; a persona file has at most {MAX_BYTES:,}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidConfig(f"{where} is not UTF-8 text") from None
    if in_conflict(text):
        raise InvalidConfig(f"{where}: {MERGE_CONFLICT}")
    return text
