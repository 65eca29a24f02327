"""Comparisons: which of two things has the smaller or the larger figure, by the numbers said beside each."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlm_mem.text.analysis import get_analyser

__all__ = ["compared"]

_LESS = re.compile(
    r"\b(?:cheaper|cheapest|less|lower|lowest|smaller|smallest|shorter|shortest|fewer|fewest|slower|younger|earlier|lighter)\b",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"\b(?:dearer|more|most|higher|highest|larger|largest|bigger|biggest|longer|longest|older|heavier|faster|taller|greater|later)\b",
    re.IGNORECASE,
)
_COSTS = re.compile(r"\b(?:cheap\w*|dear\w*|expensive|costs?|price\w*)\b", re.IGNORECASE)
_FIGURE = re.compile(r"[$€£]?(\d+(?:[.,]\d+)*)\s*(%|[^\W\d_]+)?")
_MONEY = frozenset(
    {"euro", "euros", "eur", "dollar", "dollars", "usd", "pound", "pounds", "cent", "cents", "quid"}
)
_BARE = frozenset(
    {"", "for", "at", "a", "per", "each", "against", "and", "or", "the", "to", "while", "but", "more", "less"}
)


def compared(question: str, options: Sequence[str], text: str) -> str | None:
    """The option that the figures in ``text`` favour, or None where they do not settle it.

    Each option takes the figure that stands nearest to it; where a price is asked for, only sums of money and
    numbers without a unit count.
    """
    wants_less = bool(_LESS.search(question))
    if wants_less == bool(_MORE.search(question)):
        return None
    figures = _figures(text, bool(_COSTS.search(question)))
    values: list[float] = []
    taken: set[int] = set()
    for option in options:
        places = _places(option, text)
        free = [
            (abs(where - place), where, value)
            for where, value in figures
            if where not in taken
            for place in places
        ]
        if not free:
            return None
        _, where, value = min(free)
        taken.add(where)
        values.append(value)
    if len(set(values)) < len(values):
        return None
    best = min(values) if wants_less else max(values)
    return options[values.index(best)]


def _figures(text: str, money: bool) -> list[tuple[int, float]]:
    found = []
    for match in _FIGURE.finditer(text):
        unit = (match[2] or "").lower()
        if money and unit not in _MONEY and unit not in _BARE and match.group()[0] not in "$€£":
            continue
        number = match[1].replace(",", "")
        if number.count(".") < 2:  # "1.4.2" is a version, no figure
            found.append((match.start(), float(number)))
    return found


def _places(option: str, text: str) -> list[int]:
    wanted = set(get_analyser("english").terms(option))
    return [start for term, start, _ in get_analyser("english").located_terms(text) if term in wanted]
