"""Sections of documents as answers: "What are the known issues?" is answered by what stands below "Known Issues"."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rlm_mem.offline.lines import lines_of
from rlm_mem.offline.passages import Passage, Reading
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import HOW, WHAT
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.patterns import late

_RULE = late(r"\|[ \t:|-]{1,200}$")
"""The rule below the header of a table."""
_MOST_LINES, _MOST_CHARACTERS = 8, 400
_CONFIDENCE, _OF_LONGER_HEADING = 0.8, 0.7


class _Section(NamedTuple):
    """The text of a section, and whether its heading has a word that the question lacks."""

    text: str
    passage: Passage
    is_longer: bool


def read_section(question: Question, passages: Sequence[Passage]) -> Reading | None:
    """The section whose heading has the words of a question for things or a way, and at most one more; else None.

    Of several, that with only these words is taken, then the newest.
    """
    if question.kind not in (WHAT, HOW):
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
    for headings, lines in itertools.groupby(lines_of(text), lambda line: line.headings):
        told = [_told(line.text) for line in lines if not _RULE.match(line.text)]
        if headings and told:
            yield headings[-1], _shortened(told)


def _told(line: str) -> str:
    """A line as a part of an answer; of a row of a table its cells."""
    if line.startswith("|"):
        return ", ".join(filter(None, map(str.strip, line.split("|"))))
    return line.rstrip(";")


def _shortened(lines: Sequence[str]) -> str:
    kept = "; ".join(lines[:_MOST_LINES])
    cut = len(kept) > _MOST_CHARACTERS
    if cut:
        kept = kept[:_MOST_CHARACTERS].rpartition(" ")[0]
    return f"{kept} …" if cut or len(lines) > _MOST_LINES else kept
