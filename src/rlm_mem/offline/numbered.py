"""Numbered statements: if they give different values for the same thing, the highest number is valid.

"17. The lead of Harbour is Ana." and "203. The lead of Harbour is Ben.": the second one replaces the first. A
statement is a line of one sentence that begins with a number. It answers if it contains every name of the question
and nearly all other content words. Two statements are about the same thing if all words before the value are equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlm_mem.offline.passages import Passage, Reading, Sentence, Word, split_sentences
from rlm_mem.offline.phrases import FUNCTION_WORDS
from rlm_mem.offline.question import Question
from rlm_mem.offline.word_classes import degree
from rlm_mem.record import FrozenRecord
from rlm_mem.text.clauses import NUMBERS
from rlm_mem.text.patterns import late, word_set

_LINE = late(r"^[ \t]{0,20}(?P<number>\d{1,9})[.):][ \t]{1,20}(?P<text>\S[^\n]{0,600})$", re.MULTILINE)
_MIN_STATEMENTS = 3
"""Fewest numbered statements in the passages, since one line with a number is not a list."""
_MIN_SHARE = 0.75
"""Least share of the words of a question that a statement must match."""
_MIN_WHOLE = 0.9
"""Least share with which a statement answers the whole question, so that no further statement is needed."""
_NAME, _WORD = 2.0, 1.0
_UNASKED = 0.05
"""Penalty of a statement for each word before its value that is not in the question."""
_SHARED_LETTERS = 5
ASKING = FUNCTION_WORDS | word_set("what which who whom whose where when why how name does did do current")
_HELD, _CONFIDENCE = 0.95, 0.9


class _Statement(FrozenRecord, frozen=True):
    number: int
    words: tuple[Word, ...]
    text: str
    passage: Passage
    share: float
    fit: float
    value: int  # number of the first word of the value

    @property
    def frame(self) -> tuple[str, ...]:
        """The words before the value."""
        return tuple(word.low for word in self.words[: self.value])


def numbered_lines(question: Question, passages: Sequence[Passage]) -> list[tuple[int, str, Passage]]:
    """The numbered statements of passages without speakers; none if there are too few, or if they cannot answer."""
    lines = [
        (int(match["number"]), match["text"].strip(), passage)
        for passage in passages
        if not passage.author
        for match in _LINE.finditer(passage.text)
    ]
    return [] if len(lines) < _MIN_STATEMENTS or question.kind.is_closed else lines


def read_numbered(question: Question, passages: Sequence[Passage]) -> Reading | None:
    """Answer from numbered statements; None if none clearly answers, or if the passages have speakers.

    ``exact``: the statement answers the whole question, so that no further statement is needed.
    """
    lines = numbered_lines(question, passages)
    if not lines:
        return None
    asked = _question_weights(question)
    names = {stem for stem, weight in asked.items() if weight == _NAME}
    counted = question.kind.is_amount
    if not names and len(asked) < 2:
        return None
    found = [
        statement
        for line in lines
        if (statement := _statement(*line, asked=asked, names=names, counted=counted)) is not None
    ]
    if not found:
        return None
    best = max(found, key=lambda one: (one.fit, one.number))
    same = [one for one in found if tuple(word.low for word in one.words[: best.value]) == best.frame]
    same.sort(key=lambda one: one.number, reverse=True)
    chosen = same[0]
    text = (
        chosen.text[chosen.words[best.value].start :].strip()
        if best.value < len(chosen.words)
        else chosen.text
    )
    used = dict.fromkeys(one.passage for one in same)
    return Reading(text.removesuffix("."), tuple(used)[:4], _HELD, _CONFIDENCE, chosen.share >= _MIN_WHOLE)


def _question_weights(question: Question) -> dict[str, float]:
    """The content words of a question by stem with their weights; names weigh most."""
    words = Sentence(question.text, 0).words
    return {
        word.stem: _NAME if number and word.text[:1].isupper() else _WORD
        for number, word in enumerate(words)
        if word.low.removesuffix("'s") not in ASKING and word.text not in '"“”'
    }


def _statement(
    number: int, text: str, passage: Passage, *, asked: dict[str, float], names: set[str], counted: bool
) -> _Statement | None:
    sentence = Sentence(text, 0)
    words, stems = sentence.words, sentence.stems
    if not words or sentence.asks or not names <= stems or len(split_sentences(text)) > 1:
        return None
    matches = {stem: _match(stem, stems, text) for stem in asked}
    places = _places(words, matches)
    last = max(places, default=-1)
    value = last + 1
    while value < len(words) and words[value].low in FUNCTION_WORDS and words[value].text[0].islower():
        value += 1
    if value == len(words):
        return None  # the value precedes its subject, or is missing
    if counted and not any(word.text[0].isdigit() or word.low in NUMBERS for word in words[value:]):
        return None
    extra = sum(
        1
        for n, word in enumerate(words[:value])
        if word.low.removesuffix("'s") not in ASKING and n not in places
    )
    extra += 2 * (value == last + 1)  # no "is", "by" or "of" before the value
    fit = sum(matches[stem] * weight for stem, weight in asked.items()) / sum(asked.values())
    if fit < _MIN_SHARE:
        return None
    return _Statement(number, words, text, passage, fit, fit - _UNASKED * extra, value)


def _places(words: Sequence[Word], matches: dict[str, float]) -> set[int]:
    """The first place of each word of the question in a statement, since a value may repeat a word."""
    places = set()
    for stem in (stem for stem, value in matches.items() if value):
        same = [n for n, word in enumerate(words) if stem == word.stem]
        same = same or [n for n, word in enumerate(words) if is_derivation(stem, word.stem)]
        places.update(same[:1])
    return places


def _match(stem: str, stems: frozenset[str], text: str) -> float:
    """How well a statement matches a word of the question, 0 to 1: by the word itself, a derivation or a synonym."""
    found = degree(stem, stems, text)
    if found < 0.8 and any(is_derivation(stem, other) for other in stems):
        return 0.8
    return found


def is_derivation(one: str, other: str, least: int = _SHARED_LETTERS) -> bool:
    """Whether one stem begins with the other, of ``least`` letters or more: "citizenship" and "citizen"."""
    short, long = sorted((one, other), key=len)
    return len(short) >= least and long.startswith(short)
