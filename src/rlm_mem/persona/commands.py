"""Parses chat messages that change the persona: "Set humor to 20%", "Max directness", "Research mode"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlm_mem.arguments import check_kind
from rlm_mem.chunk import normalise_unicode
from rlm_mem.errors import InvalidConfig, NotFoundError
from rlm_mem.persona.documents import comparable_name
from rlm_mem.persona.library import BASE, Library

LONGEST = 300
"""Maximum characters of a command."""
# Commands are matched completely, with runs of spaces collapsed to one.
_NUMBER = r"(?P<value>[+-]?\d+(?:\.\d+)?) ?(?:%|percent\b)?"
_SLIDER = r"(?:my |the |your )?(?P<name>\w[\w -]*?)(?: slider| level)?"
_FORMS: tuple[tuple[str, str], ...] = (
    ("set", rf"(?:set|put|turn|make|change|adjust) {_SLIDER} (?:to|at|=|:) ?{_NUMBER}"),
    # Without a verb the percent sign is required, since "user: 12" may be ordinary text.
    ("set", rf"{_SLIDER} ?(?:[:= ]|\bto\b|\bat\b) ?(?P<value>\d+(?:\.\d+)?) ?(?:%|percent\b)"),
    ("max", rf"(?:set )?(?:max|maximum|maximize|maximise|full) {_SLIDER}"),
    ("min", rf"(?:set )?(?:min|minimum|minimize|minimise|zero) {_SLIDER}"),
    ("max", rf"(?:set|turn) {_SLIDER} to (?:max|maximum|full)"),
    ("min", rf"(?:set|turn) {_SLIDER} to (?:min|minimum|zero)"),
    ("more", rf"(?:raise|increase) {_SLIDER} by {_NUMBER}"),
    ("less", rf"(?:lower|reduce|decrease) {_SLIDER} by {_NUMBER}"),
    ("reset", r"reset (?>(?:all |the |my )*)(?P<name>\w[\w -]*?)(?: slider)?"),
    ("mode", r"(?:switch to |enter |use |go into |activate )?(?:the )?(?P<name>\w[\w -]*?) mode"),
    ("mode", r"(?:switch to|mode) ?:? (?P<name>\w[\w -]*?)"),
)
_COMPILED = tuple((kind, re.compile(rf"\A{pattern}\Z", re.IGNORECASE)) for kind, pattern in _FORMS)
_POLITE = re.compile(
    r"^(?:please|ok(?:ay)?|hey|now|and|then)\b[,\s]*|(?<![,\s])[,\s]*+\b(?:please|now|thanks|thank you)$",
    re.I,
)
_SEPARATOR = re.compile(r" ?(?:[,;]|\band\b|\bthen\b) ?", re.IGNORECASE)
_ALL = ("sliders", "everything", "all", "persona", "personality", "all sliders", "")
_BASE_NAMES = ("base", "normal", "default", "standard")


@dataclass(frozen=True)
class Command:
    """One change of the persona.

    Attributes:
        kind: ``set`` (slider, value), ``change`` (slider, value is the difference), ``reset`` (slider, or None for all)
            or ``mode`` (mode).
    """

    kind: str
    slider: str | None = None
    value: int | None = None
    mode: str | None = None


def parse_commands(text: str, library: Library) -> list[Command]:
    """Parse a message into commands; empty if it is ordinary text.

    A message may have several, separated by commas or "and"; if one part is not a command, the whole message is
    ordinary text, so that text which happens to contain such words changes nothing.

    Raises:
        InvalidConfig: the value of a slider is out of range, or the name of a mode is ambiguous.
    """
    if len(check_kind(text, str, "text")) > LONGEST:
        return []
    bare = _without_politeness(normalise_unicode("NFC", text))
    whole = _command(bare, library)
    if whole is not None:
        return [whole]
    found = [_command(_without_politeness(part), library) for part in _SEPARATOR.split(bare) if part]
    made = [one for one in found if one is not None]
    return made if len(made) == len(found) else []


def _without_politeness(text: str) -> str:
    bare = " ".join(text.split()).strip("\"'“”‘’`")
    while True:
        shorter = _POLITE.sub("", bare).strip(" .!/")
        if shorter == bare:
            return bare
        bare = shorter


def _command(text: str, library: Library) -> Command | None:
    for kind, pattern in _COMPILED:
        match = pattern.match(text)
        made = _command_from(kind, match.groupdict(), library) if match else None
        if made is not None:
            return made
    return None


def _command_from(kind: str, parts: dict[str, str], library: Library) -> Command | None:
    name = parts["name"].strip().lower()
    if kind == "mode":
        return _mode(name, library)
    if kind == "reset" and name in _ALL:
        return Command("reset")
    slider = library.sliders().get(comparable_name(name).lower())
    if slider is None:
        return None
    if kind == "reset":
        return Command("reset", slider.name)
    if kind in ("max", "min"):
        return Command("set", slider.name, slider.high if kind == "max" else slider.low)
    value = _parse_integer(parts["value"], slider.title)
    if kind in ("more", "less"):
        return Command("change", slider.name, value if kind == "more" else -value)
    return Command("set", slider.name, slider.checked(value))


def _mode(name: str, library: Library) -> Command | None:
    if name in _BASE_NAMES:
        return Command("mode", mode=BASE)
    try:
        return Command("mode", mode=library.find_mode(name))
    except NotFoundError:
        return None  # an unrelated phrase, such as "dark mode"


def _parse_integer(text: str, what: str) -> int:
    value = float(text)
    if not value.is_integer():
        raise InvalidConfig(f"{what} must be a whole number, not {text}")
    return int(value)
