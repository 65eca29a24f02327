"""Amend an answer by what the same person said later, or by the rest of its sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlm_mem.offline.passages import Passage, Reading
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import CHOICE
from rlm_mem.offline.telling import read_as_told
from rlm_mem.text.by_language import CANCELLED
from rlm_mem.text.distinct import exceptions, names_other_option, says
from rlm_mem.text.languages import analyser_of
from rlm_mem.text.patterns import late
from rlm_mem.text.present import PresentQuestion, stems_in

MAX_WITH_LATER = 0.75
"""Highest confidence in an answer with a later note that certainly answers the question: one of them is right."""
LONGEST_NOTE = 300
"""Most characters of a later note that is added to an answer."""
VERDICT = late(r"(?:Yes|No): (?=\S)")
"""The beginning of an answer of yes or no with its sentence."""
_CLAUSE = late(r"[^,;–—]{1,400}")


def with_later_word(
    question: Question, asked: PresentQuestion, reading: Reading, passages: Sequence[Passage]
) -> Reading:
    """The answer of what the same person said later, if that decides between yes and no, or two options, anew.

    "Yes: I joined a gym" yields to "I quit the gym", in notes and in conversations.
    """
    home = reading.passages[0] if reading.answer and reading.passages else None
    if not question.kind.is_closed or home is None or home.at is None or home.of_document:
        return reading
    analyser = analyser_of(question.text)
    before = stems_in(home.text, analyser)
    same = [
        one for one in passages if (one.author, one.of_document, one.current) == (home.author, False, True)
    ]
    later = [
        one for one in same if one.at is not None and one.at > home.at and one.untrusted <= home.untrusted
    ]
    changes = [one for one in later if says(one.text).change]
    for one in sorted(changes, key=lambda passage: str(passage.at), reverse=True):
        texts = {home.text: before, one.text: stems_in(one.text, analyser)}
        if any(exceptions(asked, home.text, one.text, texts, analyser, home.at.year)):
            continue
        if question.kind is CHOICE:
            if names_other_option(asked, before, texts[one.text]):
                text, least = " ".join(one.text.split()), min(reading.confidence, MAX_WITH_LATER)
                return replace(reading, answer=text, passages=(one, home), confidence=least)
            continue
        found = read_as_told(question, [one])
        verdicts = [VERDICT.match(str(answer)) for answer in (reading.answer, found.answer)]
        if all(verdicts) and str(found.answer)[:2] != str(reading.answer)[:2]:
            return replace(
                found,
                answerable=max(found.answerable, reading.answerable),
                confidence=min(max(found.confidence, reading.confidence), MAX_WITH_LATER),
                passages=(one, home),
            )
    return reading


def without_cancelled(question: Question, reading: Reading) -> Reading:
    """The whole sentence for an answer from the clause of it that says that this is cancelled.

    "The move of the standup to 10:15 is cancelled, it stays at 10:00" is not answered by "10:15".
    """
    if not reading.answer or not reading.passages or CANCELLED.search(f"{question.text}\n{reading.answer}"):
        return reading
    for sentence in reading.passages[0].sentences:
        place = sentence.text.find(reading.answer)
        for clause in _CLAUSE.finditer(sentence.text) if place >= 0 else ():
            if clause.start() <= place < clause.end() and CANCELLED.search(clause.group()):
                return replace(
                    reading,
                    answer=" ".join(reading.passages[0].text.split())[:LONGEST_NOTE],
                    confidence=min(reading.confidence, MAX_WITH_LATER),
                )
    return reading
