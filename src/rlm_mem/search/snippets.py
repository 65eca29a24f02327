"""Snippets: the passage that made a hit, and why it is a hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.text.analysis import get_analyser

if TYPE_CHECKING:
    from rlm_mem.search.query import Query
    from rlm_mem.text.analysis import Analyser

#: Longest snippet in characters; a longer segment is cut around the words that matched.
LONGEST = 320
_MARK = "…"


def snippet(
    content: str,
    start: int,
    end: int,
    query: Query,
    analyser: Analyser | None = None,
    longest: int = LONGEST,
) -> str:
    """The segment `content[start:end]` as one line of at most `longest` characters.

    A longer segment is cut at word ends to the stretch that holds most of the question's words; `…` marks each cut.
    """
    text = content[start:end].strip()
    if len(text) <= longest:
        return " ".join(text.split())
    places = _places(text, query, analyser or get_analyser())
    room = longest - 2
    first = _best_start(places, room)
    first = min(max(0, first - room // 6), len(text) - room)
    last = min(len(text), first + room)
    if first > 0:
        space = text.find(" ", first, first + 40)
        first = space + 1 if space >= 0 else first
    if last < len(text):
        space = text.rfind(" ", last - 40, last)
        last = space if space > first else last
    cut = " ".join(text[first:last].split())
    return f"{_MARK if first else ''}{cut}{_MARK if last < len(text) else ''}"


def explain(parts: dict[str, float], most: int = 8) -> str:
    """The parts of a score as one line, the weightiest first: "own +2.10, author_named +0.84, is_question -0.58"."""
    weighty = sorted(parts.items(), key=lambda item: (-abs(item[1]), item[0]))
    shown = [f"{name} {value:+.2f}" for name, value in weighty[:most] if abs(value) >= 0.005]
    return ", ".join(shown)


def _places(text: str, query: Query, analyser: Analyser) -> list[tuple[int, float]]:
    worth = dict(zip(query.terms, query.weights, strict=True))
    return [
        (start, worth[term]) for term, start, _ in analyser.located_terms(text, indexed=True) if term in worth
    ]


def _best_start(places: list[tuple[int, float]], room: int) -> int:
    """Where the window of `room` characters with the most weight begins: at a matching word (0 without any)."""
    best, best_start, total, left = 0.0, 0, 0.0, 0
    for start, weight in places:
        total += weight
        while places[left][0] < start - room * 2 // 3:
            total -= places[left][1]
            left += 1
        if total > best + 1e-9:
            best, best_start = total, places[left][0]
    return best_start
