"""Chooses the headings of a long reply that tell most about it.

"Explanation" and "Full Code" stand above many replies and tell nothing; "Atomic Operations" tells what was advised.
Common headings are counted in the texts that are listed together, so no list of words is needed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

_JOINED = 12
"""Added to the length of a heading, so that very short ones are not preferred."""
_KNOWN = 0.5
"""Factor for words that the turn has, too, and for numbers: "Step 2"."""


class TellingTitles:
    """Chooses headings of replies that are listed together.

    Args:
        titled: the headings of each text.
        analyser: the analyser of their language.
    """

    def __init__(self, titled: Iterable[Iterable[str]], analyser: Analyser) -> None:
        self._analyser = analyser
        counts: Counter[str] = Counter()
        number = 0
        for titles in titled:
            counts.update(set(analyser.terms("\n".join(titles))))
            number += 1
        self._counts = counts
        self._number = number

    def chosen(self, titles: Iterable[str], known: Collection[str], room: int) -> list[str]:
        """The most telling of some headings that have ``room`` characters in all, in their order.

        Args:
            known: terms that are told beside them, which count nothing.
        """
        left = {title: frozenset(self._analyser.terms(title)) for title in titles}
        places = {title: place for place, title in enumerate(left)}
        told: set[str] = set()
        chosen: list[str] = []
        while left:
            gains = {
                title: self._gain(title, terms - told, known)
                for title, terms in left.items()
                if len(title) <= room
            }
            best = max(gains, key=gains.__getitem__, default=None)
            if best is None or not gains[best]:
                break
            chosen.append(best)
            room -= len(best)
            told |= left.pop(best)
        return sorted(chosen, key=places.__getitem__)

    def _gain(self, title: str, new: Collection[str], known: Collection[str]) -> float:
        weights = (
            (_KNOWN if term in known or term.isdigit() else 1.0)
            * math.log((self._number + 1) / self._counts[term])
            for term in new
            if self._counts[term]
        )
        return sum(weights) / math.sqrt(len(title) + _JOINED)
