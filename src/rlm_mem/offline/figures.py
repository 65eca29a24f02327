"""Figures of a question that identify its subject: the number of a subject ("pump 7"), an amount ("at 15 bar")."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_lowercase

from rlm_mem.offline.passages import Passage, Sentence, Word
from rlm_mem.offline.phrases import FUNCTION_WORDS, TIME
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import HOW_MANY
from rlm_mem.text.patterns import late, word_set

_FIGURE = late(r"[^\W\d_]{0,3}\d{1,9}(?:\.\d{1,4})*")
_YEAR = late(r"(?:1[89]|20)\d\d")
_COUNTING = word_set(
    "top first last next past only just over under least most many much times number no nr weeks week days day months "
    "month years year hours hour minutes minute seconds second"
)
"""Words next to a figure that do not name a subject, and whose number is often given in other words."""


def is_about_other_figure(question: Question, passage: Passage, sentence: Sentence) -> bool:
    """Whether a sentence is about "pump 32" or "12 bar" if the question is about pump 7 or 15 bar.

    The number of a subject must be in the sentence or, if the sentence has no other number of such a subject, in
    the rest of its passage. An amount may be missing, but must not differ in the same unit.
    """
    numbered, amounts = _asked(question.text)
    if not numbered and not amounts:
        return False
    subjects, found = _figures(sentence.words)
    written = {_digits(word.low) for word in sentence.words}
    around = written | {_digits(word.low) for one in passage.sentences for word in one.words}
    for noun, number in numbered:
        if _digits(number) in written:
            continue
        if _digits(number) not in around or any(one == noun for one, _ in subjects):
            return True
    if question.kind is HOW_MANY:
        return False  # "how many of the 40 copies": another number of copies is the answer
    exact = {word.low for word in sentence.words}
    return any(number not in exact and any(one == unit for one, _ in found) for unit, number in amounts)


def subject_numbers(question: Question) -> list[str]:
    """The numbers of subjects in a question, as written."""
    return [number for _, number in _asked(question.text)[0]]


@lru_cache(maxsize=16)
def _asked(text: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The figures of a question outside of times: "3 May" and "14 days" are written in many ways.

    Cached: a question is compared with every sentence of its passages.
    """
    return _figures(Sentence(TIME.sub(" , ", text), 0).words)


def _digits(text: str) -> str:
    return text.lstrip(ascii_lowercase) if _FIGURE.fullmatch(text) else text


def _figures(words: Sequence[Word]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Subjects with their numbers, and units with their amounts: ``("pump", "7")``, ``("bar", "15")``."""
    numbered, amounts = [], []
    for one, after in itertools.pairwise(words):
        if one.closes:
            continue
        if _is_figure(after) and _is_noun(one):
            numbered.append((one.stem, after.low))
        if _is_figure(one) and one.low[0].isdigit() and _is_noun(after):
            amounts.append((after.stem, one.low))
    return numbered, amounts


def _is_figure(word: Word) -> bool:
    return bool(_FIGURE.fullmatch(word.low)) and not _YEAR.fullmatch(word.low)


def _is_noun(word: Word) -> bool:
    low = word.low
    return low.isalpha() and low not in FUNCTION_WORDS and low not in _COUNTING
