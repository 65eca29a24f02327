"""Questions in languages other than English: their content words, and the sentence to quote.

Parts of sentences are not extracted: patterns of times, persons and reasons exist for English only. The sentence
that matches most of the question is quoted whole; if none matches enough, or two match about equally, there is no
answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence, Set
from typing import NamedTuple

from rlm_mem.offline.passages import Passage, Reading
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.languages import ASKING, MAX_CHARACTERS, language_of
from rlm_mem.text.patterns import late
from rlm_mem.text.sentences import sentences_of_lines

_MIN_SHARE = (0.7, 0.5)
"""Least share of the question that a sentence must match: in words, and in pairs of characters."""

_LEAD = 0.1
"""How much more of the question the quoted sentence must match than any other."""

_COUNTING = late(
    r"\b(?:wie ?viele?|wie (?:alt|hoch|teuer|lange|oft|groß)|combien|quel âge|cuánt[oa]s?|quant[oaie]s?|quanti|hoeveel"
    r"|hur (?:många|mycket)|сколько|كم|कितन[ाेी])\b|多少|几点|几个|幾|いくつ|いくら|何(?:時|人|個|歳)|몇|얼마",
    re.IGNORECASE,
)
_KIND_ASKED = late(
    r"\b(?:welche[rnms]?|quel(?:le)?s?|(?:a|con|de|en|por) qué|(?:a|con|di|in) che|qual[ei]?|quais|welke?|vilke[nt]"
    r"|vilka|jak(?:i|a|ie|iej|im|ą|iego)|któr(?:y|a|e|ego|ej|ym|ą)) (?P<kind>[^\W\d_]{2,40})",
    re.IGNORECASE,
)
_KIND_WEIGHT = 0.3
"""Weight of the kind asked for, relative to 1 for other words: "17 h" answers "À quelle heure …?" without "heure"."""
_NUMERALS = "一二三四五六七八九十百千万两"

# Question words of scripts without spaces, removed from the question before it is split.
_ASKING_SPACELESS = late(
    r"什么时候|什麼時候|什么|什麼|哪里|哪裡|哪儿|哪个|哪|谁|誰|为什么|為什麼|怎么|怎麼|怎样|如何|多少|几点|几|是不是|吗|嗎|呢"
    r"|いつ|どこ|だれ|なぜ|どうして|どう|なに|何時|何|いくつ|いくら|どの|どれ|ですか|ますか|でしょうか|ありますか|います"
    r"|です|ます|あります|언제|어디|누가|누구|무엇|왜|어떻게|얼마|몇"
)


def _foreign_terms(text: str, language: str) -> frozenset[str]:
    """The stemmed content words of a text; pairs of characters if its script has no spaces."""
    plain = _ASKING_SPACELESS.sub(" ", text) if language == "none" else text
    kept = " ".join(word for word in plain.split() if word.strip("¿¡?!.,;:؟").lower() not in ASKING)
    return frozenset(get_analyser(language).terms(kept))


def shares_matched(question: str, passages: Sequence[Passage]) -> list[float]:
    """For each passage, the share of the question's words that it has, 0 to 1; a word in few passages weighs more.

    A word that shares five letters of one end with another, or contains it, matches in part, as compounds and words
    with other endings do: "Platten" and "Tischplatten".
    """
    language = language_of(question)
    asked = _foreign_terms(question[:MAX_CHARACTERS], language)
    found = [_foreign_terms(one.text, language) for one in passages]
    degrees = [{term: _degree(term, terms) for term in asked} for terms in found]
    holders = Counter(term for one in degrees for term, degree in one.items() if degree)
    weights = {term: math.log(1 + len(passages) / (holders[term] + 0.5)) for term in asked}
    total = sum(weights.values()) or 1.0
    return [sum(weights[term] * degree for term, degree in one.items()) / total for one in degrees]


_SHARED_END = 5
"""Fewest equal letters at the same end of two words that match in part, and fewest of a word within another."""
_IN_PART = 0.7


def _degree(term: str, terms: frozenset[str]) -> float:
    """How well some of these words match one of the question, 0 to 1."""
    if term in terms:
        return 1.0
    long = (one for one in terms if min(len(one), len(term)) >= _SHARED_END)
    return _IN_PART * any(
        one[:_SHARED_END] == term[:_SHARED_END]
        or one[-_SHARED_END:] == term[-_SHARED_END:]
        or one in term
        or term in one
        for one in long
    )


_STEM, _ENDING = 4, 2
"""Fewest letters of a stem that has another ending, and most letters of that ending."""


def _inflected(term: str, terms: Set[str]) -> float:
    """How well some of these stems match one of the question, 0 to 1: "bestell" matches "bestellt" in part."""
    if term in terms:
        return 1.0
    return _IN_PART * any(
        min(len(one), len(term)) >= _STEM
        and abs(len(one) - len(term)) <= _ENDING
        and (one.startswith(term) or term.startswith(one))
        for one in terms
    )


class _Line(NamedTuple):
    """A sentence, the share of the question that it matches, and its number of other words."""

    text: str
    passage: Passage
    matched: float
    news: int


def quote(question: str, passages: Sequence[Passage]) -> Reading:
    """The sentence that matches most of a question, if it matches enough and no other matches about as much."""
    lines = _matching_lines(question, passages)
    if not lines:
        return Reading(None, (), 0.05, 0.0)
    best = lines[0]
    matched = best.matched
    runner_up = next((one.matched for one in lines[1:] if one.text != best.text), 0.0)
    enough = matched - runner_up > _LEAD and _answers(question, best)
    answerable = min(0.9, 0.5 + 0.4 * matched) if enough else 0.45 * max(0.0, matched)
    confidence = min(answerable, 0.35 + 0.4 * matched - 0.3 * max(0.0, runner_up - 0.3)) if enough else 0.0
    return Reading(
        best.text if enough else None,
        (best.passage,) if enough else (),
        round(answerable, 3),
        round(confidence, 3),
    )


def best_line(question: str, passage: Passage) -> str:
    """The sentence of a passage that matches most of a question."""
    lines = _matching_lines(question, [passage])
    return lines[0].text if lines else passage.text


def about_equal(question: str, passages: Sequence[Passage]) -> list[Passage]:
    """The passages with a sentence that answers a question about as well as the best one, best first."""
    lines = _matching_lines(question, passages)
    found = (
        one.passage for one in lines if lines[0].matched - one.matched <= _LEAD and _answers(question, one)
    )
    return list({one.chunk_id: one for one in found}.values())


def _matching_lines(question: str, passages: Sequence[Passage]) -> list[_Line]:
    """The sentences of passages, those that match most of the question first."""
    language = language_of(question)
    asked = _foreign_terms(question[:MAX_CHARACTERS], language)
    analyser = get_analyser(language)
    read = [
        (text, one, set(analyser.terms(text))) for one in passages for text in _sentences(one.text) if asked
    ]
    lines_with = Counter(term for _, _, terms in read for term in terms & asked)
    # A word in no line weighs as much as a word in one line; a word in many lines weighs little.
    kind = _KIND_ASKED.search(question[:MAX_CHARACTERS])
    weights = {term: 1 / (1 + 0.5 * max(0, lines_with[term] - 1)) for term in asked}
    for term in asked.intersection(analyser.terms(kind["kind"])) if kind is not None else ():
        weights[term] *= _KIND_WEIGHT
    total = sum(weights.values())
    lines = (
        _Line(
            text,
            one,
            sum(weights[term] * _inflected(term, terms) for term in asked) / total - 0.4 * (not one.current),
            len(terms - asked),
        )
        for text, one, terms in read
    )
    return sorted(lines, key=lambda one: -one.matched)


def _answers(question: str, line: _Line) -> bool:
    """Whether a sentence matches enough of a question and adds something: a number if the question asks for one."""
    enough = line.matched >= _MIN_SHARE[language_of(question) == "none"] and line.news > 0
    counts = _COUNTING.search(question) is None or any(
        char.isdigit() or char in _NUMERALS for char in line.text
    )
    return enough and counts


def _sentences(text: str) -> list[str]:
    """The sentences of a text, without questions."""
    found = (text[start:end] for start, end in sentences_of_lines(text))
    return [one[:MAX_CHARACTERS] for one in found if not one.endswith(("?", "？", "؟"))]
