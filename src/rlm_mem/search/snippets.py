"""Cuts what a hit shows: a segment around the words that matched, or an excerpt of a whole chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from operator import itemgetter

from rlm_mem.search.query import Query
from rlm_mem.text.analysis import Analyser, get_analyser
from rlm_mem.text.patterns import late
from rlm_mem.text.sentences import sentences

#: Most characters of a snippet; a longer segment is cut around the words that matched.
MAX_SNIPPET = 320
_MARK = "…"
_BETWEEN = f" {_MARK} "
"""Between the head of a table and a row."""
#: Characters before and after a segment in which the other rows of its table are sought.
_MAX_TABLE = 20_000
_RULE = late(r"[|:\- \t]+")
"""The line below the head of a Markdown table."""
#: Most characters of the marks of two cuts.
_MARKS = 3
#: Characters read before the first place at which a sentence may begin.
_LOOK_BACK = 40
#: Characters by which a cut moves to fall between words; a longer word is cut.
_MAX_SHIFT = 40


def snippet(
    content: str,
    start: int,
    end: int,
    query: Query,
    analyser: Analyser | None = None,
    longest: int = MAX_SNIPPET,
) -> str:
    """The segment `content[start:end]` as one line of at most ``longest`` characters.

    A longer segment is cut, between words, to the part with most of the question's words, from the beginning of their
    sentence if that is near; `…` marks each cut, with a space after a whole sentence. A row of a Markdown table has the
    head of the table before it, and the head the row with most of the question's words after it, if there is room. A
    heading is followed by what is below it.
    """
    analyser = analyser or get_analyser()
    text = " ".join(content[start : max(end, end_of_section(content, start))].split())
    if text.startswith("|"):
        parts = _head_and_row(content, start, end, query, analyser)
        if parts and sum(map(len, parts)) + len(_BETWEEN) <= longest:
            return _BETWEEN.join(parts)
    if len(text) <= longest:
        return text
    places = places_of(text, query, analyser)
    room = longest - _MARKS
    reach, margin = room * 2 // 3, room // 6
    first = _best_start(places, reach)
    last = max((place for place, *_ in places if place <= first + reach), default=first)
    begin = _sentence_start(text, first, max(0, last + margin - room))
    if begin is None:
        begin = max(0, first - margin)
    return clipped(text, min(begin, len(text) - room), room)


def end_of_section(content: str, start: int) -> int:
    """The end of the section whose Markdown heading is at ``start``; ``start`` if there is no heading.

    At most the double of a snippet is read.
    """
    part = content[start : start + 2 * MAX_SNIPPET]
    level = len(part) - len(part.lstrip("#"))
    if not level or not part[level : level + 1].isspace():
        return start
    first, *lines = part.splitlines(keepends=True)
    end = start + len(first)
    for line in lines:
        if 0 < len(line) - len(line.lstrip("#")) <= level and line.lstrip("#").startswith(" "):
            break
        end += len(line)
    return end


def _head_and_row(
    content: str, start: int, end: int, query: Query, analyser: Analyser
) -> tuple[str, str] | None:
    """The head of a Markdown table and a row: that of a segment or, if it is the head, the best of the rows below it.

    None if the segment is not of such a table, or the table has no rows.
    """
    above = list(takewhile(_is_row, reversed(content[max(0, start - _MAX_TABLE) : start].splitlines())))
    own = content[start:end].strip().splitlines()
    if len(above) > 1 and _RULE.fullmatch(above[-2].strip()):
        head, row = above[-1], own[0]
    elif not above and len(own) > 1 and _RULE.fullmatch(own[1].strip()):
        rows = takewhile(_is_row, content[end : end + _MAX_TABLE].strip("\n").splitlines())
        matched = [(sum(weight for *_, weight in places_of(one, query, analyser)), one) for one in rows]
        if not matched:
            return None
        head, row = own[0], max(matched, key=itemgetter(0))[1]
    else:
        return None
    return " ".join(head.split()), " ".join(row.split())


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def _sentence_start(text: str, place: int, least: int) -> int | None:
    """The start of the sentence at ``place``, if it is ``least`` or later."""
    # Read from a little before, since the first span may begin within a sentence.
    *_, (start, _) = sentences(text, max(0, least - _LOOK_BACK), place + 1)
    return start if start >= least else None


def clipped(text: str, first: int, room: int) -> str:
    """About ``room`` characters of a text from ``first`` on, cut between words, with a mark at each cut."""
    last = min(len(text), first + room)
    if first > 0 and not text[first - 1].isspace():
        space = text.find(" ", first, first + _MAX_SHIFT)
        first = space + 1 if space >= 0 else first
    if last < len(text):
        space = text.rfind(" ", last - _MAX_SHIFT, last)
        last = space if space > first else last
    gap = " " if text[max(0, first - 2) : first] in (". ", "! ", "? ") else ""
    return f"{_MARK + gap if first else ''}{text[first:last].strip()}{_MARK if last < len(text) else ''}"


_REPEAT_WEIGHT = 0.1
"""Share of its weight that each repetition of a word in a window counts: different words are better evidence."""


def places_of(text: str, query: Query, analyser: Analyser) -> list[tuple[int, str, float]]:
    """The places of the question's words in a text, each with its term and weight."""
    weights = dict(zip(query.terms, query.weights, strict=True))
    return [
        (start, term, weights[term])
        for term, start, _ in analyser.located_terms(text, indexed=True)
        if term in weights
    ]


def _best_start(places: list[tuple[int, str, float]], reach: int) -> int:
    """The start of the window of `reach` characters with the most weight: at a matching word, or 0 without any."""
    best, best_start, total, left = 0.0, 0, 0.0, 0
    inside: Counter[str] = Counter()
    for start, term, weight in places:
        total += weight * (_REPEAT_WEIGHT if inside[term] else 1.0)
        inside[term] += 1
        while places[left][0] < start - reach:
            _, term_out, weight_out = places[left]
            inside[term_out] -= 1
            total -= weight_out * (_REPEAT_WEIGHT if inside[term_out] else 1.0)
            left += 1
        if total > best + 1e-9:
            best, best_start = total, places[left][0]
    return best_start


_MAX_READ = 50_000
"""Most characters of a text that are read for an excerpt: many times those of a chunk, unless somebody wants
longer ones."""


def within_reach(text: str, lines: Sequence[str], query: Query) -> str:
    """Return the part of a very long text around the first of these segments, else the longest word of a question."""
    if len(text) <= _MAX_READ:
        return text
    first = next(
        (at for line in lines if (at := text.find(line.rpartition(_BETWEEN)[2].strip(_MARK))) >= 0), -1
    )
    if first < 0:
        lower = text.lower()  # terms are in lower case; an offset that is off by a few letters is good enough
        terms = sorted(query.terms, key=len, reverse=True)
        first = next((at for term in terms if (at := lower.find(term)) >= 0), 0)
    begin = max(0, first - _MAX_READ // 2)
    part = text[begin : begin + _MAX_READ]
    return f"{_MARK if begin else ''}{part}{_MARK if begin + _MAX_READ < len(text) else ''}"


_SEGMENT_WEIGHT = 4.0
"""Weight in an excerpt of each end of a segment that a search found; that of a word of the question is about 1."""


def segment_ends(text: str, lines: Sequence[str]) -> list[tuple[int, str, float]]:
    """Return the two ends of each of these segments in a text, as places that an excerpt should include."""
    found = []
    for number, line in enumerate(lines):
        part = line.rpartition(_BETWEEN)[2].strip(_MARK)
        at = text.find(part)
        if at >= 0:
            ends = (at, at + len(part))
            found += [(place, f"\n{number}.{end}", _SEGMENT_WEIGHT) for end, place in enumerate(ends)]
    return found


def excerpt(text: str, places: list[tuple[int, str, float]], longest: int) -> str:
    """Return the part of a one-line text with the most weight of places, centred on them."""
    if len(text) <= longest:
        return text
    room = longest - _MARKS
    reach = room * 9 // 10
    first = _best_start(places, reach)
    last = max((at for at, _, _ in places if at <= first + reach), default=first)
    return clipped(text, min(max(0, (first + last - room) // 2), len(text) - room), room)
