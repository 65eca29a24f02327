"""Answers to "since when …": the day since which something has been so, from the note that states the change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rlm_mem.offline.language import best_line, shares_matched
from rlm_mem.offline.passages import Passage, Reading
from rlm_mem.offline.times import day_words, moments
from rlm_mem.text.analysis import Analyser
from rlm_mem.text.distinct import is_passing, says
from rlm_mem.text.languages import analyser_of, is_foreign
from rlm_mem.text.later import takes_up
from rlm_mem.text.patterns import late
from rlm_mem.text.present import PresentQuestion, is_note, stems_in

SINCE_WHEN = late(
    r"^\W*(?:since when|seit wann|depuis quand|¿?\s?desde cuándo|da quando|od kiedy)\b"
    r"(?:\s(?:is|are|do|does|has|have)\b)?",
    re.IGNORECASE,
)
_BEGINS = late(r"\b(?:since|as of|from|starting|beginning|effective)(?: on)?\s*$", re.IGNORECASE)
"""The words before the day of a beginning."""
_MIN_SHARE = 0.6
"""Least share of the words of the question that the note must have."""
_CHANGE = 0.2
"""What a word of change counts, relative to 1 for all words of the question."""
_CONFIDENCE, _ANSWERABLE = 0.7, 0.8


def read_beginning(question: str, passages: Sequence[Passage]) -> Reading | None:
    """The day since which something has been so; None if no note states its beginning.

    This is the day that the note gives for it, else that of the note. The note has most of the words of the question
    and all of its names and figures, and a word of change; of several, it is the latest.
    """
    plain = SINCE_WHEN.sub("", question, count=1).strip()
    analyser = analyser_of(question)
    asked = PresentQuestion.of(question, analyser)  # a name that begins the plain question would be none
    if asked is None or not asked.stems:
        return None
    notes = [
        one
        for one in passages
        if one.at and one.current and not one.of_document and is_note(one.author, asked)
    ]
    changes = [one for one in notes if _states_change(one, asked, analyser)]
    best = _best_of(plain, notes, notes, changes)
    if best is None and asked.names:
        pairs = list(_with_earlier(notes, changes, analyser))
        best = _best_of(plain, [both for both, _ in pairs], [later for _, later in pairs], changes)
    if best is None:
        return None
    return Reading(_beginning(question, plain, best), (best,), _ANSWERABLE, _CONFIDENCE, exact=True)


def _best_of(
    plain: str, texts: Sequence[Passage], notes: Sequence[Passage], changes: Sequence[Passage]
) -> Passage | None:
    """The note of a change whose text has most words of the question; of almost equal ones, the latest."""
    shares = shares_matched(plain, texts)
    best = max(shares, default=0.0)
    found = [
        (share >= best, str(note.at), note)
        for note, share in zip(notes, shares, strict=True)
        if note in changes and share >= max(_MIN_SHARE, best - _CHANGE)
    ]
    return max(found, key=lambda one: one[:2])[2] if found else None


def _with_earlier(
    notes: Sequence[Passage], changes: Sequence[Passage], analyser: Analyser
) -> Iterator[tuple[Passage, Passage]]:
    """Notes of a change, each together with an earlier one that it changes, and alone.

    "Ines handed that over to Omar" has its subject only with "The release manager is Ines".
    """
    for later in changes:
        for earlier in notes:
            if str(earlier.at) < str(later.at) and takes_up(earlier.text, later.text, analyser):
                yield replace(later, text=f"{earlier.text}\n{later.text}"), later


def _states_change(note: Passage, asked: PresentQuestion, analyser: Analyser) -> bool:
    """Whether a note states a lasting change to the subject of a question."""
    if not says(note.text).change or not asked.names <= stems_in(note.text, analyser) or note.at is None:
        return False
    return not is_passing(asked, note.text, analyser, year=note.at.year)


def _beginning(question: str, plain: str, note: Passage) -> str:
    """The day that the note gives for the beginning, else its own day; in other languages, its own day and its line."""
    line = best_line(plain, note)
    assert note.at is not None
    if is_foreign(question):
        return f"{note.at:%Y-%m-%d}: {line}"
    for one in moments(line, note.at):
        if _BEGINS.search(line[: one.start]) and line[one.start : one.end] not in question:
            return one.words
    return day_words(note.at.date())
