"""Shorten rows that an agent was shown before to their beginning and new headings, since it pays for what it reads.

Records contain the whole output, so that a run can be replayed without knowing what was shown before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_COMPARED_CHARS = 60_000
"""Most characters shown before that rows are compared with; older ones are discarded."""
_MIN_ROW_CHARS, _HEAD_CHARS = 80, 40
"""Fewest characters of a row that is shortened, and how many of them are shown to recognise it."""
_MIN_PIECE_CHARS = 40
"""Fewest characters of the longest piece of such a row, if parts of it were cut out ("…")."""
_SHARED_WORDS = 0.75
"""Share of its words that a row has in common with an outlined one that also contains all its numbers."""
_ROW = re.compile(r"(\[\d{1,6}\] )(.*)")
_WORD = re.compile(r"[^\W_]+")


class Repeats:
    """What an agent was shown, to shorten repeated rows.

    Args:
        opening: the opening as it was shown.
        outlined: the texts of its outline, if any: later outlines shorten the same turns differently.
    """

    def __init__(self, opening: str, outlined: Iterable[str] = ()) -> None:
        self._text = ""
        self._outlined = [frozenset(_WORD.findall(one.casefold())) for one in outlined]
        self._add(opening)

    def shortened(self, output: str) -> str:
        """Shorten the rows of the output that were shown before; all of it counts as shown from now on."""
        lines = "\n".join(map(self._shortened_line, output.split("\n")))
        self._add(output)
        return lines

    def _shortened_line(self, line: str) -> str:
        row = _ROW.fullmatch(line)
        text, _, points = row[2].partition(" | ") if row else ("", "", "")
        if row is None or not (self._was_shown(text) or self._was_outlined(text)):
            return line
        head = text[:_HEAD_CHARS].rpartition(" ")[0] or text[:_HEAD_CHARS]
        new = [one for one in points.split(" | ") if one and one not in self._text]
        return " | ".join([f"{row[1]}{head}… (above)", *new])

    def _was_shown(self, text: str) -> bool:
        pieces = [" ".join(one.split()) for one in text.split("…")]
        long = len(text) >= _MIN_ROW_CHARS and max(map(len, pieces)) >= _MIN_PIECE_CHARS
        return long and all(one in self._text for one in pieces)

    def _was_outlined(self, text: str) -> bool:
        words = frozenset(_WORD.findall(text.casefold()))
        numbers = frozenset(word for word in words if word.isdigit())
        return len(text) > _HEAD_CHARS and any(
            numbers <= shown and len(words & shown) >= _SHARED_WORDS * len(words) for shown in self._outlined
        )

    def _add(self, text: str) -> None:
        self._text = f"{self._text}\n{' '.join(text[-_COMPARED_CHARS:].split())}"[-_COMPARED_CHARS:]
