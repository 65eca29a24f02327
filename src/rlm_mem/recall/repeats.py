"""Rows that an agent was shown before: it gets only their beginning and new headings, since it pays for what it reads.

Records keep the whole output, so that a run can be replayed without knowing what was shown before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_KEPT_CHARS = 60_000
"""Most characters of what was shown that are compared with; older ones are forgotten."""
_LEAST_CHARS, _HEAD_CHARS = 80, 40
"""Fewest characters of a row that is shortened, and how many of them are shown, so that it is recognised."""
_PIECE_CHARS = 40
"""Fewest characters of the longest piece of such a row, where parts of it were cut out ("…")."""
_SAME = 0.75
"""Share of its words that a row has in common with a row of the opening's outline that also has all its numbers."""
_ROW = re.compile(r"(\[\d{1,6}\] )(.*)")
_WORD = re.compile(r"[^\W_]+")


class Repeats:
    """What an agent was shown, to shorten the rows that come again.

    Args:
        opening: the opening as it was shown.
        outlined: the texts of its outline, if it has one: later outlines shorten the same turns differently.
    """

    def __init__(self, opening: str, outlined: Iterable[str] = ()) -> None:
        self._text = ""
        self._outlined = [frozenset(_WORD.findall(one.casefold())) for one in outlined]
        self._add(opening)

    def short(self, output: str) -> str:
        """The output, with only the beginning of rows that were shown before; all of it counts as shown from now on."""
        lines = "\n".join(map(self._short, output.split("\n")))
        self._add(output)
        return lines

    def _short(self, line: str) -> str:
        row = _ROW.fullmatch(line)
        text, _, points = row[2].partition(" | ") if row else ("", "", "")
        if row is None or not (self._has(text) or self._has_turn(text)):
            return line
        head = text[:_HEAD_CHARS].rpartition(" ")[0] or text[:_HEAD_CHARS]
        new = [one for one in points.split(" | ") if one and one not in self._text]
        return " | ".join([f"{row[1]}{head}… (above)", *new])

    def _has(self, text: str) -> bool:
        pieces = [" ".join(one.split()) for one in text.split("…")]
        long = len(text) >= _LEAST_CHARS and max(map(len, pieces)) >= _PIECE_CHARS
        return long and all(one in self._text for one in pieces)

    def _has_turn(self, text: str) -> bool:
        words = frozenset(_WORD.findall(text.casefold()))
        numbers = frozenset(word for word in words if word.isdigit())
        return len(text) > _HEAD_CHARS and any(
            numbers <= shown and len(words & shown) >= _SAME * len(words) for shown in self._outlined
        )

    def _add(self, text: str) -> None:
        self._text = f"{self._text}\n{' '.join(text[-_KEPT_CHARS:].split())}"[-_KEPT_CHARS:]
