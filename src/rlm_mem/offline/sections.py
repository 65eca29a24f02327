"""Sections of documents as answers: "What are the known issues?" is answered by what stands below "Known Issues"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rlm_mem.offline.passages import Passage, Reading
from rlm_mem.offline.question import Question
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.patterns import late

_HEADING = late(r"#{1,6}[ \t]+([^\n]{1,100})")
_MARKER = late(r"(?:[-*+]|\d{1,3}[.)])[ \t]{1,9}(?:\[[ xX]\][ \t]{1,9})?")
_MOST_LINES, _MOST_CHARACTERS = 8, 400
_CONFIDENCE, _OF_LONGER_HEADING = 0.8, 0.7


class _Section(NamedTuple):
    """The text of a section, and whether its heading has a word that the question lacks."""

    text: str
    passage: Passage
    is_longer: bool


def read_section(question: Question, passages: Sequence[Passage]) -> Reading | None:
    """The section whose heading has the words of a question for things, and at most one more; None without any.

    Of several, that with only these words is taken, then the newest.
    """
    if question.kind != "what":
        return None
    terms = get_analyser("english").terms
    asked = set(terms(question.text))
    found = [
        _Section(text, one, heading != asked)
        for one in passages
        if one.current
        for title, text in _sections(one.text)
        if asked and asked <= (heading := set(terms(title))) and len(heading) <= len(asked) + (len(asked) > 1)
    ]
    if not found:
        return None
    at = {one: one.passage.at.timestamp() if one.passage.at else 0.0 for one in found}
    best = min(found, key=lambda one: (one.is_longer, -at[one]))
    confidence = _OF_LONGER_HEADING if best.is_longer else _CONFIDENCE
    return Reading(best.text, (best.passage,), confidence, confidence)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """The headings of a text with the lines below each, in one line; none of a heading with nothing below it."""
    title, lines = "", list[str]()
    for line in [*text.splitlines(), "# end"]:
        heading = _HEADING.match(line)
        if heading is None:
            item = line.strip()
            marker = _MARKER.match(item)
            lines.append(item[marker.end() if marker else 0 :].strip().rstrip(";"))
            continue
        told = list(filter(None, lines))
        if title and told:
            yield title, _shortened(told)
        title, lines = heading[1], []


def _shortened(lines: Sequence[str]) -> str:
    kept = "; ".join(lines[:_MOST_LINES])
    cut = len(kept) > _MOST_CHARACTERS
    if cut:
        kept = kept[:_MOST_CHARACTERS].rpartition(" ")[0]
    return f"{kept} …" if cut or len(lines) > _MOST_LINES else kept
