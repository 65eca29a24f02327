"""Quote the nearest memory if no passage clearly answers, with the probability that the quotation holds the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rlm_mem.models.base import SURE
from rlm_mem.offline.closest import has_name, is_related, names_attribute, names_deed
from rlm_mem.offline.extraction import MAX_WORDS, trimmed
from rlm_mem.offline.features import with_unspoken_names
from rlm_mem.offline.notes import EXACT_FIT, ITEM, is_notes, nearest_line
from rlm_mem.offline.passages import Passage, Reading, Sentence
from rlm_mem.offline.phrases import FUNCTION_WORDS
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import YES_NO
from rlm_mem.offline.reader import with_later_notes
from rlm_mem.offline.weights import logistic
from rlm_mem.offline.word_classes import degree, stem_of
from rlm_mem.record import FrozenRecord
from rlm_mem.text.dates import find_dates
from rlm_mem.text.languages import is_foreign
from rlm_mem.text.patterns import late
from rlm_mem.text.present import is_of_the_past

ANSWERS_FROM = 0.85
"""Least probability of a quotation that is an answer: of 658 questions of six sets, each asked with a table that was
fitted on the other five, one in fifty was then answered wrongly at most."""
SUGGESTS_FROM = 0.5
"""Least probability of a quotation that is a suggestion."""
_ANSWERABLE = 0.7
"""Probability that the passages contain an answer, if a quotation is returned."""
_SUREST, _SUREST_OF_DOCUMENT = 0.9, 0.5
"""Highest confidence in a quotation, and in one of a document: of 111 suggested for documentation and the files of
projects, 55 were right."""


_FUTURE = late(r"\b(?:when|date|day) will\b", re.IGNORECASE)
_ROLE_ASKED = late(
    r"\W*who(?:['’]s| is| was| are| were) (?:the|our|my|your|their) (?P<role>(?:[\w-]{1,30} ){0,2}?[\w-]{1,30})"
    r"(?: (?:of|for|at|in|on|to|from|with)\b|\W*$)",
    re.IGNORECASE,
)


class Quotation(FrozenRecord, frozen=True):
    """The nearest memory's words on a question, and the signs of whether they answer it, each 0 to 1.

    ``matched``: the share of the question that the sentence matches; ``fits``: it has a part of exactly the kind asked
    for; ``only``: ``matched`` if that part is the only one; ``statement``: any statement is of
    the kind asked for; ``whole``: it is the whole passage; ``lead``: how much nearer than any other its memory is;
    ``nameless``: the question names nobody and nothing; ``words``: the number of its content words, over 4, up to 2.
    """

    text: str
    passage: Passage
    signs: Mapping[str, float]


def quotation(question: Question, passages: Sequence[Passage], near: Sequence[float]) -> Quotation | None:
    """The sentence of the nearest memory that is nearest to a question, with the one after it if both are short.

    None if there is none, or none with the figure, the time, the person or the place asked for.

    Args:
        near: how near each passage is (:func:`~rlm_mem.offline.closest.nearness`).
    """
    current = [pair for pair in zip(passages, near, strict=True) if pair[0].current]
    passage, most = max(current, key=lambda pair: pair[1], default=(None, 0.0))
    line = nearest_line(question, passage) if passage is not None else None
    if passage is None or line is None or (question.kind.has_form and line.fit < 0):
        return None
    if not (is_related(question, passage) and names_attribute(question, [passage])):
        return None
    text = _quoted(passage, line.sentence, line.number)
    others = (score for one, score in current if one.chunk_id != passage.chunk_id)
    signs = {
        "matched": line.share,
        "fits": float(line.fit >= EXACT_FIT),
        "only": line.share * line.alone,
        "statement": float(question.kind.is_open or question.kind is YES_NO),
        "whole": float(len(" ".join(passage.text.split()).rstrip(".")) <= len(text) + 2),
        "lead": min(1.0, most - max(others, default=0.0)),
        "nameless": float(not question.names),
        "words": min(8, len(with_unspoken_names(question, passages).strong)) / 4,
    }
    return Quotation(text, passage, signs)


def _quoted(passage: Passage, sentence: Sentence, number: int) -> str:
    """A sentence with the one after it, unless that begins another item or section, or both are too long."""
    following = [
        one
        for one in passage.sentences[number + 1 : number + 2]
        if not (one.text.startswith("#") or (ITEM.match(one.text) and not sentence.text.endswith(":")))
    ]
    end = following[0].start + len(following[0].text) if following else 0
    both = " ".join(passage.text[sentence.start : end].split())
    return trimmed(both if both and len(both.split()) <= MAX_WORDS else sentence.text)


def told_by_nearest(
    question: Question, passages: Sequence[Passage], near: Sequence[float], table: Mapping[str, float]
) -> Reading | None:
    """A quotation of the nearest memory as an answer or, with a lower confidence, as a suggestion; None if unlikely.

    Later notes are applied, see :func:`~rlm_mem.offline.reader.with_later_notes`.
    It is only a suggestion from a document, in which many sentences have the words of a question, from a conversation,
    on which the table was not fitted, for a question about the past, and if it does not name the role asked for, or
    only a day that is over if the question is about the future.
    """
    if is_foreign(question.text):
        return None
    found = quotation(question, passages, near)
    likely = logistic(found.signs, table) if found is not None else 0.0
    if found is None or likely < SUGGESTS_FROM:
        return None
    doubtful = (
        found.passage.of_document
        or is_of_the_past(question.text)
        or not is_notes(passages)
        or _is_of_other(question, found)
        or _may_tell_deed_elsewhere(question, found, passages)
    )
    likely = min(likely, SURE if doubtful or likely < ANSWERS_FROM else _SUREST)
    if found.passage.of_document:
        likely = min(likely, _SUREST_OF_DOCUMENT)
    told = Reading(found.text, (found.passage,), max(_ANSWERABLE, likely), likely)
    reading = with_later_notes(question, told, passages)
    if reading.answer == told.answer and _is_named_later(question, found, passages):
        return replace(told, confidence=min(likely, SURE))
    return reading


def _is_named_later(question: Question, found: Quotation, passages: Sequence[Passage]) -> bool:
    """Whether a later note has a word of the question and a name or figure of the quotation, which it may change."""
    at, asked = found.passage.at, {*question.terms, *map(stem_of, question.names)}
    told = {
        word.stem
        for word in Sentence(found.text, 0).words
        if (word.text[0].isupper() or word.text[0].isdigit()) and word.low not in FUNCTION_WORDS
    } - asked
    return at is not None and any(
        one.at > at and not (told.isdisjoint(one.stems) or asked.isdisjoint(one.stems))
        for one in passages
        if one.at is not None and one.current and one.chunk_id != found.passage.chunk_id
    )


def _may_tell_deed_elsewhere(question: Question, found: Quotation, passages: Sequence[Passage]) -> bool:
    """Whether the memory does not have the deed asked for, and a later one is about the same person or thing."""
    at = found.passage.at
    return not names_deed(question, [found.passage]) and any(
        has_name(question, one)
        for one in passages
        if one.current
        and one.chunk_id != found.passage.chunk_id
        and (at is None or one.at is None or one.at > at)
    )


def _is_of_other(question: Question, found: Quotation) -> bool:
    """Whether the question is "who is the caterer …" and nobody is called so, or "when will …" and the day is over."""
    asked = _ROLE_ASKED.match(question.text)
    nouns = question.strong.intersection(map(stem_of, asked["role"].split())) if asked else frozenset()
    if nouns and not any(degree(noun, found.passage.stems, "") for noun in nouns):
        return True
    if found.passage.at is None or not _FUTURE.search(question.text):
        return False
    days = find_dates(found.text, found.passage.at)
    return bool(days) and days[-1].last < found.passage.at.date()
