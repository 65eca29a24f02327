"""Parses personalities: slider values and text for the system prompt (docs/spec/persona.md, Personalities)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rlm_mem.errors import InvalidConfig
from rlm_mem.persona.documents import Document, Section, comparable_name, flat, parse_document, whole_number

_SPAN = re.compile(r"(\d{1,9}+) ?+%?+ ?+(?:-|–|—|to) ?(\d{1,9}) ?%?$")
_PLACEHOLDER = re.compile(r"[.…\s]*$|\[.*\]$")


@dataclass(frozen=True)
class Personality:
    """A mode as defined by its file, before it is applied over BASE.

    Attributes:
        name: name of the file, ``RESEARCH_ANALYST``.
        values: slider (lower case) → value, only those that the file sets.
        lines: slider → line of the file, for messages.
        activated_when: when to use it.
        text: its text in the system prompt.
    """

    name: str
    values: Mapping[str, int] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    activated_when: str = ""
    description: str = ""
    instructions: str = ""
    where: str = ""

    @property
    def title(self) -> str:
        """The name for display, ``Research Analyst``."""
        return self.name.replace("_", " ").title() if "_" in self.name else self.name

    @property
    def text(self) -> str:
        """Its text in the system prompt: description and instructions."""
        return "\n\n".join(part for part in (self.description, self.instructions) if part)


def parse_personality(text: str, name: str, where: str = "") -> Personality:
    """Parse a personality file in either of its forms.

    The first: ``## Configuration`` with ``- Creativity: 75``, ``## Description``. The other: ``> Activated when: …``
    and ``## Slider Adjustments``, a table Slider | Adjustment | Reason, where an adjustment is ``→ 55%``, ``↓ 25%`` or
    ``↑ 75-90%``; a range denotes its middle.

    Args:
        name: the mode, usually the file name without extension.
        where: the file, for messages.

    Raises:
        InvalidConfig: a value is not a number, or a slider is set twice.
    """
    where = where or name
    document = parse_document(text)
    values: dict[str, int] = {}
    lines: dict[str, int] = {}
    for line, slider, value in _settings(document, where):
        if slider in values:
            raise InvalidConfig(f"{where} line {line}: {slider} is set a second time")
        values[slider], lines[slider] = value, line
    about = document.section("description", "core function")
    instructions = document.section("instructions")
    return Personality(
        name=name,
        values=values,
        lines=lines,
        activated_when=document.quoted("activated when") or "",
        description=about.text if about else document.intro,
        instructions=instructions.text if instructions else "",
        where=where,
    )


def _settings(document: Document, where: str) -> Iterator[tuple[int, str, int]]:
    """Yield line, slider and value of each setting."""
    listed = document.section("configuration")
    if listed is not None:
        yield from _listed(listed, where)
    table = document.section("slider adjustments")
    if table is not None:
        for line, cells in table.rows():
            if len(cells) < 2 or cells[0].lower() in ("slider", ""):
                continue
            yield line, _slider(cells[0]), _adjustment(cells[1], f"{where} line {line}: {cells[0]}")


def _listed(section: Section, where: str) -> Iterator[tuple[int, str, int]]:
    for line, item in section.items():
        slider, colon, value = item.partition(":")
        if not colon:
            if _PLACEHOLDER.match(item):
                continue  # the placeholder "- ..." of the template
            raise InvalidConfig(
                f"{where} line {line}: {item!r:.60} does not set a slider",
                hint="write it as - Creativity: 75",
            )
        yield line, _slider(slider), _adjustment(value, f"{where} line {line}: {slider.strip(' *`')}")


def _slider(name: str) -> str:
    return comparable_name(name.strip().strip("*`")).lower()


def _adjustment(text: str, where: str) -> int:
    bare = flat(text).strip("*").lstrip("↑↓→⬆⬇➡= ~").strip()
    span = _SPAN.match(bare)
    if span is None:
        return whole_number(bare, where)
    low, high = int(span[1]), int(span[2])
    if low > high:
        raise InvalidConfig(f"{where}: the span {low}-{high} must increase")
    return (low + high + 1) // 2
