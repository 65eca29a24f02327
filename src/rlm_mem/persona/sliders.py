"""Parses sliders, dimensions of behaviour with a range and meanings of values (docs/spec/persona.md, Sliders)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rlm_mem.errors import InvalidConfig
from rlm_mem.persona.documents import Document, Section, flat, parse_document, whole_number

LARGEST = 1_000_000
# For texts with runs of white space collapsed to one space, so that matching takes linear time.
_RANGE = re.compile(r"(?<!\d)(\d{1,9}+) ?+%?+ ?+(?:\([^()]{0,200}\))? ?(?:-|–|—|−|→|->|\.\.|…|to) ?(\d{1,9})")
_EXAMPLE = re.compile(r"\*{0,2} ?(\d{1,9}) ?%? ?\*{0,2} ?(?::|—|–|-|=) ?\*{0,2} ?(.+)$")


@dataclass(frozen=True)
class Level:
    """A range of values with one behaviour, both ends included."""

    low: int
    high: int
    mode: str
    behavior: str


@dataclass(frozen=True)
class Slider:
    """A dimension of behaviour.

    Attributes:
        name: lower-case name for settings and commands, ``humor``.
        title: name for display, ``Humor``.
        low, high: the range, both ends included.
        default: value if nothing sets it.
        description: what it controls.
        examples: (value, its meaning), by value.
        levels: ranges, if the file has a table of them.
        tokens: associated words ("Shotgun Tokens"), in order.
    """

    name: str
    title: str
    low: int = 0
    high: int = 100
    default: int = 50
    description: str = ""
    examples: tuple[tuple[int, str], ...] = ()
    levels: tuple[Level, ...] = ()
    tokens: tuple[str, ...] = ()

    def checked(self, value: int, where: str = "") -> int:
        """Return the value if it is in the range.

        Args:
            where: name of the setting for messages; empty: that of the slider.

        Raises:
            InvalidConfig: the value is out of range.
        """
        if not self.low <= value <= self.high:
            raise InvalidConfig(
                f"{where or self.title} must be from {self.low} to {self.high}, not {value}",
                hint=f"rlm-mem persona slider {self.name} explains its values",
            )
        return value

    def percent(self, value: int) -> int:
        """The position of a value in the range, 0-100."""
        return round(100 * (value - self.low) / (self.high - self.low))

    def behavior(self, value: int) -> str:
        """The meaning of a value: of its level, the nearest example (the higher of two) or the description's first
        sentence.
        """
        if self.levels:
            band = min(self.levels, key=lambda one: max(one.low - value, value - one.high, 0))
            return ": ".join(part for part in (band.mode, band.behavior) if part)
        if self.examples:
            return min(self.examples, key=lambda one: (abs(one[0] - value), -one[0]))[1]
        return re.split(r"(?<=[.!?])\s", self.description, maxsplit=1)[0]

    def to_dict(self) -> dict[str, Any]:
        """The slider as plain data, as returned by ``load_slider``."""
        return {
            "dimension": self.title,
            "name": self.name,
            "range": [self.low, self.high],
            "default": self.default,
            "description": self.description,
            "examples": dict(self.examples),
            "levels": [
                {"range": [one.low, one.high], "mode": one.mode, "behavior": one.behavior}
                for one in self.levels
            ],
            "shotgun_tokens": list(self.tokens),
        }


def parse_slider(text: str, name: str, where: str = "") -> Slider:
    """Parse a slider file in either of its forms.

    The first: ``## Range``, ``## Default``, ``## Description``, ``## Examples`` with ``- 50: …``. The other:
    ``> Slider Range: 0% (…) → 100% (…)``, ``## Core Function``, ``## Calibration Levels``, ``## Default: 55%``. A file
    without a range gets the range from 0 to 100.

    Args:
        name: the dimension, usually the file's name without its ending.
        where: the file, for messages.

    Raises:
        InvalidConfig: the range is not two numbers, a value is outside of it, or a value is not a number.
    """
    where = where or name
    document = parse_document(text)
    low, high = _range(document, where)
    examples, levels = _examples(document, where), _levels(document, where)
    for line, value, _ in examples:
        _inside(value, low, high, f"{where} line {line}: the example")
    for line, level in levels:
        _inside(level.low, low, high, f"{where} line {line}: the level")
        _inside(level.high, low, high, f"{where} line {line}: the level")
    about = document.section("description", "core function")
    tokens = document.section("shotgun tokens")
    first_prose = next((section.text for section in document.sections.values() if section.text), "")
    return Slider(
        name=name.lower(),
        title=name.replace("_", " ").title(),
        low=low,
        high=high,
        default=_default(document, low, high, where),
        description=_strip_brackets(flat(about.text if about else document.intro or first_prose)),
        examples=tuple(sorted((value, meaning) for _, value, meaning in examples)),
        levels=tuple(level for _, level in levels),
        tokens=_tokens(tokens) if tokens else (),
    )


def _range(document: Document, where: str) -> tuple[int, int]:
    section = document.section("range")
    text = (section.value or section.text) if section else document.quoted("slider range")
    if text is None:
        return 0, 100
    text = flat(text)
    match = _RANGE.search(text)
    if match is None:
        raise InvalidConfig(f"{where}: the range is {text!r:.60}, not two numbers", hint="write it as 0-100")
    low, high = int(match[1]), int(match[2])
    if not low < high <= LARGEST:
        raise InvalidConfig(f"{where}: the range {low}-{high} must increase, up to {LARGEST:,} at most")
    return low, high


def _default(document: Document, low: int, high: int, where: str) -> int:
    section = document.section("default")
    if section is None:
        return (low + high) // 2
    text = section.value or section.text.split("\n", 1)[0].lstrip("-* ")
    value = whole_number(text, f"{where} line {section.line}: the default")
    return _inside(value, low, high, f"{where} line {section.line}: the default")


def _inside(value: int, low: int, high: int, what: str) -> int:
    if not low <= value <= high:
        raise InvalidConfig(f"{what} must be from {low} to {high}, not {value}")
    return value


def _examples(document: Document, where: str) -> list[tuple[int, int, str]]:
    """Line, value and meaning of each example."""
    section = document.section("examples")
    if section is None:
        return []
    found = []
    for line, item in section.items():
        match = _EXAMPLE.match(item)
        if match is None:
            raise InvalidConfig(
                f"{where} line {line}: an example must name its value, not {item!r:.60}",
                hint="write it as - 50: what the middle means",
            )
        found.append((line, int(match[1]), _strip_brackets(match[2])))
    return found


def _levels(document: Document, where: str) -> list[tuple[int, Level]]:
    section = document.section("calibration levels")
    if section is None:
        return []
    found = []
    for line, cells in section.rows():
        if not re.search(r"\d", cells[0]):
            continue  # the header row
        match = _RANGE.search(cells[0])
        if match is None:
            low = high = whole_number(cells[0], f"{where} line {line}: the level")
        else:
            low, high = int(match[1]), int(match[2])
        if low > high:
            raise InvalidConfig(f"{where} line {line}: the level {low}-{high} must increase")
        rest = [*cells[1:], "", ""]
        found.append((line, Level(low, high, rest[0], rest[1])))
    return found


def _tokens(section: Section) -> tuple[str, ...]:
    listed = [item for _, item in section.items()] or section.text.splitlines()
    words = [word.strip(" `*\"'") for item in listed for word in re.split(r"[,;·|]", item)]
    return tuple(word for word in words if word and not word.startswith("```"))


def _strip_brackets(text: str) -> str:
    """Remove the brackets around placeholders, which some authors keep from the template."""
    bare = text.strip()
    return bare[1:-1].strip() if bare.startswith("[") and bare.endswith("]") and "](" not in bare else bare
