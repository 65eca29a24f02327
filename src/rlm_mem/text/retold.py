"""Whether a later note answers the same question about the present as an earlier note: rules without a model.

"The band saw: tension 4" and, months later, "Machines checked. Band saw: tension set from 4 to 5" both answer "What is
the tension of the band saw?", and the later one should rank first. These rules replace nothing: they only order search
results, so they require less than those of :mod:`rlm_mem.text.differences`. English only. Each rule reads the words of
a text a fixed number of times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

from msgspec import Struct

from rlm_mem.text.clauses import DETERMINERS, POSSESSIVES, PREPOSITIONS, UNSURE, words
from rlm_mem.text.differences import MAY_END

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

__all__ = ["PresentQuestion", "is_note", "is_retold"]

_LEAST, _LEAST_NAMED = 0.4, 0.25
"""Least share of the words common to the question and the earlier note that the later note has, weighted by rarity; the
second value applies if the later note also has a word of the earlier note's answer."""
_FEW = 2
"""Most texts that have a distinctive word: the two notes themselves."""
_SHARED = 2
"""Least number of distinctive words common to both notes, and of words of the question if they share no others."""
_LONGEST = 2_000
"""Characters of a text that are read."""
_WORD = re.compile(r"[^\W_]+(?:['’.:/-][^\W_]+)*")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_OF_THE_PAST = re.compile(
    r"\b(?:before|previously|formerly|earlier|originally|used to|was|were|did|had|last|ago|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
"""A question about the past."""
_DOUBTED = (
    UNSURE | words("might last previous previously formerly originally ago also additionally besides")
) - words(
    "will shall how who which whose when until unless why need needed decide decided going asked ask asks i'll we'll "
    "he'll she'll they'll 'll thinking think try tries trying tried heard story novel example claims claimed discuss "
    "discussed discussing almost nearly won't plan plans planned planning"
)
"""Words of a sentence about a wish, a guess, another time, or an additional thing."""
_PLANNED = re.compile(
    r"\b(?:i|we|they|he|she) plan(?:s|ned)?\b|\bplan(?:s|ned)? (?:is )?to\b|\bplanned for\b|\bplanning to\b"
    r"|(?<!from )(?<!as of )(?<!since )\b(?:today|tonight|tomorrow)\b"
    r"|\bonce\b(?! (?:a|an|per|every|in)\b)|\bas well\b|\btoo(?:[.,;!)]|$)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_OWNED = re.compile(r"\b([^\W\d_]{1,40})['’]s?\s{1,9}([^\W\d_]{1,40})")
_OTHERS = words(
    "mother father sister brother neighbour neighbours neighbor neighbors cousin aunt uncle daughter son wife husband "
    "friend colleague colleagues parents mum dad grandma grandpa nephew niece tenants boss"
)
"""Words for people other than those whom the earlier note is about, unless it names them too."""
_OWNERS = (DETERMINERS | POSSESSIVES) - {"that", "those"}
_ROLES = words("user human assistant agent system model bot ai me")
_QUOTES = '"“”„«»'


_MEASURES = words("second minut hour day week month year time euro dollar percent half new work")
"""Stems of words that name no value by themselves."""


class PresentQuestion(Struct, frozen=True):
    """A question as :func:`is_retold` needs it.

    Attributes:
        text: the question.
        stems: the stems of its words.
        names: the stems of its names and numbers.
    """

    text: str
    stems: frozenset[str]
    names: frozenset[str]

    @staticmethod
    def of(text: str, analyser: Analyser) -> PresentQuestion | None:
        """Analyse a question; None if it is not an English question about the present."""
        if analyser.language != "english" or len(text) > _LONGEST or _OF_THE_PAST.search(text):
            return None
        named = [
            word
            for place, word in enumerate(_WORD.findall(text))
            if (place and word[0].isupper()) or any(letter.isdigit() for letter in word)
        ]
        return PresentQuestion(
            text, frozenset(analyser.terms(text)), frozenset(analyser.terms(" ".join(named)))
        )


def is_note(author: str | None) -> bool:
    """Whether a text is a note, not the turn of a speaker. A label is no speaker: "gotcha: the key is …"."""
    return not author or (author[0].islower() and author not in _ROLES)


def is_retold(
    asked: PresentQuestion,
    earlier: str,
    later: str,
    texts: Mapping[str, Set[str]],
    analyser: Analyser,
    *,
    year: int,
) -> bool:
    """Whether the later of two notes answers a question that the earlier one answers.

    The later note must have the question's words that the earlier one has, above all those that are rare among the
    texts found; it must not be about a different subject; and it must be about the present.

    Args:
        texts: the stems of both notes, and of the texts that were found with them.
        year: the year of the earlier note.
    """
    before, after = texts[earlier], texts[later]
    had, has = asked.stems & before, asked.stems & after
    missing = had - has
    named = not (before - asked.stems - _MEASURES).isdisjoint(after)
    enough = max(1, len(missing), 0 if named else min(_SHARED, len(had)))
    if not had or len(has & had) < enough or not missing.isdisjoint(asked.names):
        return False
    if len(has & had) == 1 and not MAY_END.search(later):
        return False
    if has <= asked.names and not had <= asked.names:
        return False  # the same subject, but nothing of what is asked about it
    often = {stem: sum(stem in one for one in texts.values()) for stem in had | (before & after)}
    covered = sum(1 / often[stem] for stem in has & had) / sum(1 / often[stem] for stem in had)
    if covered < (_LEAST_NAMED if named else _LEAST):
        return False
    shared = sum(often[stem] <= _FEW for stem in before & after)
    if shared < _SHARED and (missing or not shared):
        return False
    told = [(one, analyser.terms(one)) for one in _SENTENCE.split(later[:_LONGEST])]
    best, _ = max(told, key=lambda one: (len(had & set(one[1])), len(before & set(one[1]))))
    asks = any(one.rstrip().endswith("?") and not has.isdisjoint(stems) for one, stems in told)
    if asks or later[:1] in _QUOTES or _is_doubted(best, year):
        return False
    known = before | asked.stems
    return not (
        _is_about_another_person(best, known, analyser)
        or _is_about_unnamed_thing(best, has, known, analyser)
        or any(
            _narrows_subject(one, missing, has, analyser, one is asked.text) for one in (asked.text, earlier)
        )
    )


def _is_doubted(sentence: str, year: int) -> bool:
    """Whether a sentence is about a wish, another time or an additional thing, or reports what somebody else says."""
    lows = {word.lower().replace("’", "'") for word in _WORD.findall(sentence)}
    return (
        not lows.isdisjoint(_DOUBTED)
        or sentence[:1] in _QUOTES
        or _PLANNED.search(sentence) is not None
        or any(int(one) < year for one in _YEAR.findall(sentence))
    )


def _is_about_another_person(sentence: str, known: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence is about something that belongs to somebody else: "Karla's brother", "Ana's bike"."""

    def is_known(word: str) -> bool:
        return not known.isdisjoint(analyser.terms(word))

    for match in _OWNED.finditer(sentence):
        owner, thing = match[1], match[2].lower()
        if owner[0].isupper() and analyser.terms(owner) and not is_known(owner) and is_known(thing):
            return True
    lows = {word.lower() for word in _WORD.findall(sentence)}
    return any(not is_known(word) for word in lows & _OTHERS)


def _is_about_unnamed_thing(sentence: str, has: Set[str], known: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence is about something that the earlier note does not name: "the recipe of aunt Hedwig"."""
    found = _WORD.findall(sentence.lower())
    for place, word in enumerate(found[:-2]):
        if found[place + 1] == "of" and not has.isdisjoint(analyser.terms(word)):
            of = next((one for one in found[place + 2 :] if one not in _OWNERS), "")
            stems = analyser.terms(of)
            if stems and known.isdisjoint(stems):
                return True
    return False


def _narrows_subject(
    text: str, missing: Set[str], has: Set[str], analyser: Analyser, is_question: bool
) -> bool:
    """Whether a word that the later note lacks narrows the subject of a text: "night" in "the night bus".

    In a question, so does a word after a preposition: "the code of the shop".
    """
    if not missing:
        return False
    found = _WORD.findall(text.lower())
    for place, word in enumerate(found):
        if missing.isdisjoint(analyser.terms(word)):
            continue
        before = found[place - 1] if place else ""
        after = found[place + 1] if place + 1 < len(found) else ""
        leads = not before or before in _OWNERS or before in PREPOSITIONS or before == "of"
        if leads and not has.isdisjoint(analyser.terms(after)):
            return True
        while place > 1 and found[place - 1] in _OWNERS:
            place -= 1
        if is_question and place > 1 and (found[place - 1] in PREPOSITIONS or found[place - 1] == "of"):
            return True
    return False
