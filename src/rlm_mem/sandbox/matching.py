"""Texts that lines are to contain, in any form of their words, and the parts of a text around what matched."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from rlm_mem.chunk import normalise_unicode
from rlm_mem.text.analysis import SPACELESS, Analyser
from rlm_mem.text.sentences import sentences

if TYPE_CHECKING:
    from rlm_mem.search import Hit
    from rlm_mem.text.blocks import Said

Span = tuple[int, int]
"""Start and end within a text."""

_NEAR = 40
"""Maximum characters between two words of one text."""
_MIN_BEGINNING = 3
"""Minimum characters of the beginning of a word."""
_MAX_WORDS = 12
"""Maximum words of one text that are looked for."""
MAX_MATCHES = 20
"""Maximum matches of one line."""
_WORDS_ONLY = re.compile(r"(?:[^\W_]|[\s'’_-])+")
_ENDS = re.compile(r"[.!?。！？]\s|\n")
"""The end of a sentence or line."""
_LEAD = "a "
"""Precedes a text that is analysed, since in a text of capitals only, "US" would be the pronoun."""
_MIN_MARGIN = 40
"""Minimum of half the characters that are shown around each match."""
_MIN_COUNTED = 200
"""Minimum characters for which the matches without room are counted, which would take space of shorter rows."""
_GAP = " … "
_MIN_GAP = 20
"""Fewer characters between two parts are shown instead of a mark."""
_SENTENCE, _SPLIT = 2_000, 5_000
"""Maximum characters before the first match that are searched for the start of its sentence, and of a part of a text
that is split into sentences."""


class WantedTexts:
    """Texts of which a line must contain one, or all: all words of a text in this order, in any form, near each other.

    A text with signs ("auth.py", "$500") or only with function words, and one without spaces between words, is found
    as it is, ignoring case; its ends are those of words, except in scripts without spaces. One word that nothing in
    the memory has ("revis") is found at the beginning of words.

    Args:
        occurs: whether a term is in the memory.
        every: a line must contain all of the texts, in any order and at any distance.
        check: called before each text is looked for in a line, which may be long; ends the search by an exception.
    """

    def __init__(
        self,
        texts: Sequence[str],
        analyser: Analyser,
        occurs: Callable[[str], bool],
        check: Callable[[], None] = lambda: None,
        *,
        every: bool = False,
    ) -> None:
        self._analyser = analyser
        self._every = every
        self._check = check
        self._groups: list[list[str]] = []
        self._literals: list[re.Pattern[str]] = []
        for text in (normalise_unicode("NFC", one).strip() for one in texts):
            terms = self._first_terms(text) if _WORDS_ONLY.fullmatch(text) else []
            if len(terms) == 1 and len(text) >= _MIN_BEGINNING and not occurs(terms[0]):
                self._literals.append(_literal(text, whole=False))
            elif terms and not SPACELESS.search(text):
                self._groups.append(terms)
            elif text:
                self._literals.append(_literal(text))

    @property
    def terms(self) -> frozenset[str] | None:
        """Terms of which a chunk must have one; None if it may match without any."""
        return None if self._literals else frozenset[str]().union(*self._groups)

    def __bool__(self) -> bool:
        return bool(self._groups or self._literals)

    def matches(self, text: str) -> list[str]:
        """Return the parts of a text that match, each once, in order; accents are composed."""
        text = normalise_unicode("NFC", text)
        spans = sorted(islice(self._spans(text), MAX_MATCHES))
        return list(dict.fromkeys(text[start:end] for start, end in spans))

    def match(self, text: str) -> bool:
        """Return whether a text contains one of the texts, or all that are wanted."""
        if not self:
            return True
        each = (any(True for _ in spans) for spans in self._each(normalise_unicode("NFC", text)))
        return all(each) if self._every else any(each)

    def _spans(self, text: str) -> Iterator[Span]:
        return chain.from_iterable(self._each(text))

    def _each(self, text: str) -> Iterator[Iterator[Span]]:
        """Yield the spans of each of the texts."""
        for pattern in self._literals:
            self._check()
            yield (match.span() for match in pattern.finditer(text))
        if self._groups:
            located = [
                (term, start - len(_LEAD), end - len(_LEAD))
                for term, start, end in self._analyser.located_terms(_LEAD + text, indexed=True)
            ]
            for group in self._groups:
                self._check()
                yield _sequences(text, located, group)

    def _first_terms(self, text: str) -> list[str]:
        """Return the term of each word of a text; of a compound ("maxSize"), that of the whole."""
        located = self._analyser.located_terms(_LEAD + text, indexed=True)
        first: dict[Span, str] = {}
        for term, start, end in located:
            first.setdefault((start, end), term)
        return list(first.values())[:_MAX_WORDS]


def _sequences(text: str, located: Iterable[tuple[str, int, int]], wanted: Sequence[str]) -> Iterator[Span]:
    """Yield the spans of some terms in this order, each near the one before and in the same sentence."""
    places_of: dict[str, list[int]] = {}
    for place in reversed(range(len(wanted))):
        places_of.setdefault(wanted[place], []).append(place)
    begun: dict[int, Span] = {}
    """Of the first words up to each place: where the newest such sequence begins and ends."""
    for term, start, end in located:
        for place in places_of.get(term, ()):
            before = begun.get(place - 1) if place else (start, start)
            if before is None or not before[1] <= start <= before[1] + _NEAR:
                continue
            if _ENDS.search(text, before[1], start):
                continue
            begun[place] = before[0], end
            if place == len(wanted) - 1:
                yield begun[place]
                begun = {}
                break


def _literal(text: str, *, whole: bool = True) -> re.Pattern[str]:
    """Compile a text to a pattern of it as it is, in any case, from the beginning of a word and to the end of one."""
    before, after = r"(?<![^\W_])", r"(?![^\W_])"
    bounded = SPACELESS.search(text) is None
    return re.compile(
        (before if bounded and text[0].isalnum() else "")
        + re.escape(text)
        + (after if whole and bounded and text[-1].isalnum() else ""),
        re.IGNORECASE,
    )


def places(text: str, matches: Iterable[str]) -> list[Span]:
    """Return where a text has these parts, in order, as whole words where they are words; at most ``MAX_MATCHES``."""
    found: list[Span] = []
    for one in matches:
        place = text.find(one) if one else -1
        inside: list[Span] = []
        while place >= 0 and len(found) < MAX_MATCHES:
            end = place + len(one)
            cut = (one[0].isalnum() and text[place - 1 : place].isalnum()) or (
                one[-1].isalnum() and text[end : end + 1].isalnum()
            )
            (inside if cut else found).append((place, end))
            place = text.find(one, end)
        if not any(text[start:end] == one for start, end in found):
            found += inside[:MAX_MATCHES]
    return sorted(found)[:MAX_MATCHES]


def bounded(text: str, chars: int) -> str:
    """Cut a text after the last sentence that ends in the second half of ``chars`` characters, else after a word."""
    if len(text) <= chars:
        return text
    ended = max((end for _, end in sentences(text, 0, chars + 1) if end < chars), default=0)
    if ended < chars // 2:
        word = text.rfind(" ", 0, chars)
        ended = word if word >= chars // 2 else chars - 1
    return f"{text[:ended].rstrip()}…"


def around(text: str, spans: Sequence[Span], chars: int, head: int = 0) -> str:
    """Return the sentences of a one-line text that have some spans, at most some ``chars`` characters in all.

    Sentences beside them follow if there is room. Of sentences that have no room, the parts around the spans are
    returned. Parts that meet are one; ``…`` marks what is left out; with many characters, the spans without room are
    counted.

    Args:
        spans: in order.
        head: characters of the start of the first sentence that are shown, too, if it is cut.
    """
    if len(text) <= chars:
        return text
    sentences_near = _Sentences(text, max(0, spans[0][0] - _SENTENCE), min(len(text), spans[-1][1] + chars))
    bounds = list(map(sentences_near.around, spans))
    number = len(spans)
    while number > 1 and _size(_parts(text, spans[:number], bounds[:number], _MIN_MARGIN)) > chars:
        number -= 1
    rest = f" (+{len(spans) - number})" if number < len(spans) and chars >= _MIN_COUNTED else ""
    chars -= len(rest)
    # A match may be longer than the row.
    shown = [(start, min(end, start + chars - len(_GAP))) for start, end in spans[:number]]
    held = bounds[:number]
    if _size(_merged(held)) <= chars:
        parts = _widest(lambda margin: _merged(sentences_near.beside(one, margin) for one in held), chars)
    else:
        start = held[0][0]
        begun = [(start, _word_end(text, start + head, start))] if head else []
        if _size(_parts(text, shown, held, 0, begun)) > chars:
            begun = []
        parts = _widest(lambda margin: _parts(text, shown, held, margin, begun), chars)
    cut = [text[start:end].strip() for start, end in parts]
    told = f"{'…' if parts[0][0] else ''}{_GAP.join(cut)}{'…' if parts[-1][1] < len(text) else ''}"
    return told + rest


class _Sentences:
    """The sentences of a part of a text.

    Args:
        first, last: the part, whose first and last sentence may be cut; none are known in a very long part.
    """

    def __init__(self, text: str, first: int, last: int) -> None:
        self._until = len(text)
        found = sentences(text, first, last) if last - first <= _SPLIT else []
        self._starts = [start for start, _ in found]
        self._ends = [end for _, end in found]
        self._inside = range(len(found))[first > 0 : len(found) - (last < len(text))]

    def around(self, span: Span) -> Span:
        """Return the start and the end of the sentences that have a span; those of the text if they are not known."""
        begun = bisect_right(self._starts, span[0]) - 1
        ended = bisect_left(self._ends, span[1])
        return (
            self._starts[begun] if begun in self._inside else 0,
            self._ends[ended] if ended in self._inside else self._until,
        )

    def beside(self, held: Span, margin: int) -> Span:
        """Return some sentences with those beside them, up to so many characters, a third of them before."""
        first = bisect_left(self._starts, held[0] - margin // 3)
        last = bisect_right(self._ends, held[1] + margin - margin // 3) - 1
        first, last = max(first, self._inside.start), min(last, self._inside.stop - 1)
        return min(held[0], self._starts[first]), max(held[1], self._ends[last])


def _widest(parts: Callable[[int], list[Span]], chars: int) -> list[Span]:
    """Return the parts at the widest margin at which they have room, which may all be on one side of a span."""
    low, high = 0, 3 * chars
    while low < high:
        margin = (low + high + 1) // 2
        low, high = (margin, high) if _size(parts(margin)) <= chars else (low, margin - 1)
    return parts(low)


def _size(parts: Iterable[Span]) -> int:
    return sum(end - start + len(_GAP) for start, end in parts)


def _parts(
    text: str, spans: Iterable[Span], bounds: Iterable[Span], margin: int, begun: Iterable[Span] = ()
) -> list[Span]:
    """Return the parts with up to twice ``margin`` characters around each span, a third of them before it.

    Args:
        bounds: start and end of the sentence of each span.
        begun: further parts.
    """
    wide = [
        (
            _word_start(text, max(first, start - 2 * margin // 3), start),
            _word_end(text, min(last, end + margin + margin // 3), end),
        )
        for (start, end), (first, last) in zip(spans, bounds, strict=True)
    ]
    return _merged([*begun, *wide])


def _merged(parts: Iterable[Span]) -> list[Span]:
    """Return parts in order, those that meet as one."""
    merged: list[Span] = []
    for start, end in sorted(parts):
        if merged and start - merged[-1][1] <= _MIN_GAP:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _word_start(text: str, place: int, limit: int) -> int:
    """Return the start of the first whole word from a place on, at most ``limit``."""
    if not place or text[place - 1].isspace():
        return place
    space = text.find(" ", place, limit)
    return limit if space < 0 else space + 1


def _word_end(text: str, place: int, limit: int) -> int:
    """Return the end of the last whole word before a place, at least ``limit``."""
    if place >= len(text) or text[place].isspace():
        return place
    space = text.rfind(" ", limit, place)
    return max(limit, space) if space >= 0 else (limit or place)


def part_around(content: str, turn: Said, hit: Hit, chars: int, short: int) -> Span:
    """Return the part of a turn for a hit: all of a short turn, else the hit itself.

    Args:
        chars: if not 0, maximum characters of the part, which then has what is around the hit, too, by whole sentences.
        short: maximum characters of a short turn otherwise.
    """
    if turn.end - turn.start <= (chars or short):
        return turn.start, turn.end
    start, end = max(hit.start, turn.start), min(hit.end, turn.end)
    if end - start >= chars:
        return start, end
    first = max(turn.start, min(start - (chars - (end - start)) // 3, turn.end - chars))
    spans = sentences(content, first, first + chars)
    begun = next((one for one, _ in spans[first > turn.start :] if one <= start), start)
    last = len(spans) if first + chars >= turn.end else -1
    return begun, next((one for _, one in reversed(spans[:last]) if one >= end), end)


def without_better(start: int, end: int, hit: Hit, better: Iterable[Span]) -> Span:
    """Return a part around a hit without what better parts have; an empty one if one of them has the hit."""
    for begun, until in better:
        if until <= hit.start:
            start = max(start, until)
        elif begun >= hit.end:
            end = min(end, begun)
        else:
            return start, start
    return start, end
