"""Chooses the most specific headings of a long reply.

"Explanation" and "Full Code" are headings of many replies; "Atomic Operations" shows what was advised. Common headings
are counted in the texts that are listed together, so no list of words is needed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

_LATER = 0.9
"""Factor for each heading before one, since the first headings are usually the main parts."""
_RARE = 0.4
"""Share of the weight of a word of a single text from which words count as equally rare."""
_LEAST = 0.1
"""Minimum gain."""
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
        """The first and most specific headings that have at most ``room`` characters in all, in their order.

        Args:
            known: terms that are shown beside them, which count less.
        """
        left = {title: frozenset(self._analyser.terms(title)) for title in titles if len(title) <= room}
        places = {title: place for place, title in enumerate(left)}
        told: set[str] = set()
        kept: list[str] = []
        while left:
            gains = {
                title: self._gain(terms, told, known) * _LATER ** places[title]
                for title, terms in left.items()
                if len(title) <= room
            }
            best = max(gains, key=gains.__getitem__, default=None)
            if best is None or gains[best] < _LEAST:
                break
            kept.append(best)
            room -= len(best)
            told |= left.pop(best)
        return sorted(kept, key=places.__getitem__)

    def _gain(self, terms: Collection[str], told: Collection[str], known: Collection[str]) -> float:
        """The mean weight of the words of a heading, 0 to 1; of words of an earlier one 0."""
        weights = (
            (_KNOWN if term in known or term.isdigit() else 1.0) * self._weight(term)
            for term in terms
            if term not in told
        )
        return sum(weights) / max(1, len(terms))

    def _weight(self, term: str) -> float:
        """1 for a word of few texts, less for one of many, above all in headings."""
        return min(
            1.0,
            math.log((self._number + 1) / max(1, self._counts[term])) / (_RARE * math.log(self._number + 1)),
        )
