"""Whether a later note answers the same question about the present as an earlier note: rules without a model.

"The band saw: tension 4" and, months later, "Machines checked. Band saw: tension set from 4 to 5" both answer "What is
the tension of the band saw?", and the later one should rank first. These rules replace nothing: they only order search
results, so they require less than those of :mod:`rlm_mem.text.differences`. English only. Each rule reads the words of
a text a fixed number of times; words are compared in order only in sentences of bounded length.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain
from operator import mul
from typing import NamedTuple

from rlm_mem.text.analysis import Analyser
from rlm_mem.text.clauses import (
    CHANGES,
    DAYS,
    DETERMINERS,
    ENDS,
    MONTHS,
    NEWS,
    NUMBERS,
    POSSESSIVES,
    PREPOSITIONS,
    REPLACES,
    words,
)
from rlm_mem.text.endings import CONDITION, ENDED, HINTS, PRESENT
from rlm_mem.text.lasting import QUOTES, UNDONE, is_denied, is_doubted, is_elsewhere, is_past, is_temporary
from rlm_mem.text.patterns import Expressions, late
from rlm_mem.text.present import LONGEST, WORD, PresentQuestion, stems_in

SURE, LIKELY, POSSIBLE = 1.5, -0.9, -2.0
"""The odds, in nats, above which a later note counts as the answer, ranks first, and an answer gives both notes."""
WEIGHTS: dict[str, float] = {
    "words": 2.2,
    "not the subject": -0.75,
    "rare words": 0.4,
    "rare words of the answer": 0.9,
    "next": 1.4,
    "answer denied": 0.7,
    "narrowed": -1.15,
    "tells of change": 0.95,
    "of one kind": 0.6,
    "present": 1.1,
    "condition": -1.25,
}
"""The weight of each sign (see :func:`signs`), in nats of odds:

* words: the share, by rarity, of the question's words in the earlier note that the later note has;
* not the subject: the later note lacks a word for what the question is about;
* rare words: how many of the shared question words are rare; rare words of the answer: how many other shared words are;
* next: the later note is among the first two texts;
* answer denied: a sentence with a word of the answer has any word of change;
* narrowed: a missing word narrows the subject, unless the answer is denied, with a shared rare word;
* tells of change: see :func:`tells_of_change`;
* of one kind: it gives a figure, day, month or name that the earlier note does not give, which gives another one;
* present: it says in the present what is or goes on; condition: it has a word such as "would" or "if".
"""
APART, DOUBTFUL, DOUBTFUL_NEAREST = -7.0, -3.55, -2.0
"""Added if the later note is about something else or does not hold; and if that may be (a guess, a plan, a quotation, a
short time, a part or another person): then it is never sure. Less counts against the nearest, wanted beside it only."""
_BIAS = -4.45
_OF_TEXTS = ("answer denied", "tells of change", "of one kind", "present")
_MOST_FURTHER = sum(WEIGHTS[name] for name in _OF_TEXTS)
"""The most that the signs add that are looked for in the texts, not only in their stems."""
_MOST_RARE = 3
"""Largest number of rare words of the question that count."""
_FEW = 2
"""Largest number of texts in which a rare word occurs: the two notes themselves."""
_SHARED = 2
"""Largest number of rare words of the earlier note's answer that count."""
_VALUE = 3
"""Most words of a value in a note that another one repeats but for the value."""
_ALIKE = 3
"""Largest number of texts, including the two notes, that have all words of the question that both notes have."""
_MAY_END = Expressions(
    CHANGES
    | ENDS
    | REPLACES
    | NEWS
    | words(
        "longer more rather not new from over out off down aside away before previously formerly originally earlier "
        "was were gone became turned correction corrected update updated edit actually wrong mistake mistaken "
        "scratch handed passed took put since starting beginning effective"
    ),
    late(r"\b(?:used to|as of)\b|->|→", re.IGNORECASE, signs="used to|as of|->|→"),
)
_SENTENCE = late(r"(?<=[.!?;])\s+|\n+")
_OWNED = late(r"\b([^\W\d_]{1,40})['’]s?\s{1,9}([^\W\d_]{1,40})")
_OTHERS = words(
    "mother father sister brother neighbour neighbours neighbor neighbors cousin aunt uncle daughter son wife husband "
    "friend friends guests competitor competitors opposing rival rivals "
    "colleague colleagues parents mum dad grandma grandpa nephew niece tenants boss "
    "mutter vater schwester bruder nachbarin nachbar tochter sohn tante onkel freundin kollegin "
    "madre padre hermana hermano vecina vecino hija hijo tía tío amiga amigo marido prima primo "
    "mère père maman papa sœur frère voisine voisin fille fils tante oncle amie ami cousine mari konkurrenz competencia"
)
"""Words for people other than those whom the earlier note is about, unless it names them too."""
_OURS = late(r"\b(?:my|our)\b", re.IGNORECASE)
_REPORTS = words("told says said tells writes wrote")
_OWNERS = (DETERMINERS | POSSESSIVES) - {"that", "those"}
_RETURNED = late(
    rf"\b(?:{UNDONE}|(?<!put )back to|remains|stay(?:s|ed|ing)? with"
    r"|(?:came|went|moved|is|are) back (?:to|at|in|on|with)|(?:is|are|it's) still)\b",
    re.IGNORECASE,
    signs="rolled|reverted|undid|undone|back |remains|stay|still",
)
"""Words before a former value that say that it holds again, or still."""
_CLAUSE = late(r"[,;.]\s")
_LINKS = words("of for on in to at with from about")
_OF_TIME = words("new old first next last")
_ADDRESSED = late(r"^\W*\w{1,20},|,\s+\w{1,20}[.!]*$")
"""Who a sentence speaks to, at its beginning or end: "Dad, the dog gets …"."""
_DENIAL = late(
    r"(?:^|[.!?;(–—]\s{0,2})(?:but |and |well,? |no,? )?(?:it|he|she|they|that|this|we|i) "
    r"(?:is|was|are|were|do|does|did|has|have|had|will|would|can)(?:n['’]t| not)?(?: really| at all)?[.!)]"
    r"|\b(?:denie[sd]|untrue|stimmt (?:es )?nicht|no es (?:cierto|verdad)|dément(?:i|ent)?|n['’]est pas vrai"
    r"|(?:reports?|claims?|rumou?rs?|story) (?:[\w'’]{1,20} ){0,12}(?:is|are) (?:false|not true))\b",
    re.IGNORECASE,
)
"""A sentence that only denies or affirms the one before ("It isn't.", "He does."), or a word for a denial."""
_DONE_TO = late(
    r"\b(?:is|are|was|were|been) (?:\w{1,20}ly )?\w{2,20}ed\b"
    r"|\b(?:ist|sind|wurden?) (?:\w{1,20} ){0,3}?(?:ge|ver|ab|aus|ent)\w{2,20}(?:t|en)\b"
    r"|\b(?:est|sont|a été) \w{2,20}(?:é|i|u)e?s?\b|\b(?:está|están|fue|fueron) \w{2,20}[ai]d[oa]s?\b",
    re.IGNORECASE,
)
"""What was done to something: "is deleted", "ist verschrottet", "est abandonné"."""
_CALLED_OFF = late(
    r"\b(?:(?<!the )false alarm|no (?:decision|vote)|decided against"
    r"|(?:not|n['’]t) (?:yet )?(?:answered|decided|voted)|voted down|nothing (?:has )?changed"
    r"|(?:stays|left|remains) as (?:it )?(?:is|was)|(?:normal|usual|old|regular) (?:\w{2,20} )?appl(?:y|ies)"
    r"|it stays?(?=[.!;,])|left (?:\w{2,20} ){1,3}alone|at the (?:usual|normal)|the (?:usual|normal) \w{2,20} again"
    r"|(?:is|are|was|were|keeps?|says?) what (?:it|they|we|he|she) (?:(?:always|had|have|has) ){0,2}"
    r"(?:was|were|are|have|been|had|said|did)"
    r"|(?:alles|rest|resto|todo|tout|reste) (?:\w{2,20} ){0,2}(?:wie|como|comme) "
    r"(?:immer|bisher|vorher|siempre|antes|avant|toujours)|retour à la normale"
    r"|it lasted|declared void|rückgängig|marche arrière|como estaba|sin efecto)\b",
    re.IGNORECASE,
    signs="false alarm|no decision|no vote|decided|answered|voted|nothing |as it |as is|as was|appl|it stay|alone|usual"
    "|normal| what |wie |como |comme |it lasted|declared void|rückgängig|marche arr|sin efecto",
)
"""Words in any sentence that say that the subject of the note did not happen, or that all is as it was."""
_AS_BEFORE = late(r"\bas ever\b", re.IGNORECASE, signs="as ever")
"""The same, unless beside a change, where it is about another thing: "on Wednesdays since last week, 19:30 as ever"."""
_PART_FIRST = late(r"\W*(?:out )?of (?:the|this|that|our|my|his|her|its|their)\b", re.IGNORECASE)
"""A sentence about a part: "Of the budget, 800 go to the band"."""
_PART = late(
    r"\W*(?:the|an?|our|my|la|le|der|die|das) (?:\w{1,40} ){0,2}?(\w{1,40})"
    r" (?:of|de|du|von|der|des) (?:(?:the|our|my|la|le) )?(\w{1,40})",
    re.IGNORECASE,
    signs=" of | de | du | von | der | des ",
)
"""A sentence about a part or relative of something: "The platform of the tower"."""
_IS_NOT = late(
    r"\b(?:is|are|was|were|do|does|did|has|have)(?: not|n['’]t)\b",
    re.IGNORECASE,
    signs=" not|n't|n’t",
)
_GOES_ON = late(r"\b(?:but|instead|now|more|longer|after all)\b", re.IGNORECASE)
"""Words beside a denial, in a sentence that says what holds instead."""
_STOP = late(r"[;:–—]")
_PART_OF_SENTENCE = late(r"[,;–—]\s(?!too\b)|\s(?:and|but|y|und|et)\s")
_NUMBERED = late(r"([^\W\d_]{1,40}) {1,3}(\d{1,20})(?!\w)")
"""A thing with its number: "runner 3"."""
_DIGIT = late(r"\d")
_LETTER = late(r"[^\W\d_]")
_KINDS = frozenset(("figure", "day", "name"))
_LONG = 3
"""Fewest digits of a number that has a form without its unit: a port, a room, an address."""
_NOT = late(r"\b(?:not?|never|nobody|none|neither)\b|n['’]t\b", re.IGNORECASE)
_CALENDAR = MONTHS | words(
    "monday tuesday wednesday thursday friday saturday sunday morn afternoon even night"
)
_DATED = {day.removesuffix("s") for day in DAYS | MONTHS}
_VALUE_WORD = late(r"[^\W_]\S{0,80}")
_LONGEST_CLAUSE = 200
"""Characters after "back to" that are read."""
_MEASURES = words("second minut hour day week month year time euro dollar percent half new work")
"""Stems of words that name no value by themselves."""


def is_passing(asked: PresentQuestion, text: str, analyser: Analyser, *, year: int) -> bool:
    """Whether a note may give no lasting answer: a guess, a denial, about a limited time or about another thing.

    Args:
        year: the year of the note.
    """
    told = [one for one in _SENTENCE.split(text[:LONGEST]) if one.strip()]
    if not told:
        return False
    best = max(told, key=lambda one: len(asked.stems & stems_in(one, analyser)))
    return (
        (not ENDED.found_in(text[:LONGEST]) and _is_of_the_past(best, asked, "", frozenset(), analyser))
        or _DENIAL.search(text[:LONGEST]) is not None
        or _CALLED_OFF.search(text[:LONGEST]) is not None
        or is_denied(best, asked.text, year)
        or _doubted(best, asked, asked.stems, analyser)
        or is_temporary(best, asked.text)
        or is_elsewhere(best, asked.text, text[: text.find(best)])
        or _is_about_part(best, asked, asked.stems, analyser)
        or _is_about_another_person(best, asked.stems, asked, analyser)
        or (_NOT.search(asked.text) is None and _denies_another_value(best, frozenset(), analyser))
    )


def retelling(
    asked: PresentQuestion,
    earlier: str,
    later: str,
    texts: Mapping[str, Set[str]],
    analyser: Analyser,
    *,
    year: int | None,
    least: float = SURE,
    nearest: bool = False,
) -> float:
    """How likely the later of two notes answers a question that the earlier one answers, in nats of odds.

    The signs are the words that both notes have, above all those of the question and rare ones, and words of change
    beside the earlier note's answer (:func:`signs`); their weights were learned from diaries by
    `benchmarks/diary_fit.py`. They count much less for a later note that is about another thing or a question, or does
    not hold (:data:`APART`), and less for one that may be about another person, a guess, a wish or a short time.

    Args:
        texts: the stems of both notes, and of the texts that were found with them, best first.
        year: the year of the earlier note; None: also if the later note is about something else.
        least: the odds that matter to the caller: :data:`SURE`, :data:`LIKELY` or :data:`POSSIBLE`.
        nearest: whether the later note is wanted beside the earlier one, and no later note of the store shares more
            words with that, by their rarity: then a name is enough where it also gives a value of the same kind.

    Returns:
        The odds; ``least`` if they are not higher.
    """
    if (not asked.asks or asked.spaceless) and not ENDED.found_in(later):
        return least  # texts that share the words of a query, or pairs of characters, may answer different questions
    if asked.happened and not _says(later).change:
        return least
    found = signs(asked, earlier, later, texts, analyser, least=least, nearest=nearest)
    if not found:
        return least
    odds = float(_BIAS + sum(map(mul, WEIGHTS.values(), found)))
    if odds <= least or year is None:
        return max(odds, least)
    apart, doubtful = exceptions(asked, earlier, later, texts, analyser, year)
    if apart:
        odds += APART
    elif doubtful:
        odds = min(odds + (DOUBTFUL_NEAREST if nearest else DOUBTFUL), SURE)
    return max(odds, least)


def tells_of_change(earlier: str, later: str, analyser: Analyser) -> bool:
    """Whether a later note has any sign that it changes what an earlier one says, besides having the same words.

    A word of change, the earlier note's value, or a sentence that is the earlier note but for the value.
    """
    if _says(later).change:
        return True
    order = analyser.terms(earlier)
    before = set(order)
    for _, stems in _sentences(later, analyser):
        both, former = before & stems, _length(before - stems)
        if _length(stems - before) <= former + 1 and former <= min(_VALUE, len(both) + 1):
            apart = [place for place, stem in enumerate(order) if stem not in stems]
            if not apart or apart[-1] - apart[0] < len(apart):
                return True  # one stretch: "Joao owns search" repeats nothing of "Maria owns billing"
    return False


def may_end(text: str) -> bool:
    """True of every text that itself says that something does not hold any more, and of many others."""
    return _MAY_END.found_in(text)


def _length(stems: Set[str]) -> int:
    """The number of stems, all figures as one: "10:15" is one value."""
    plain = [stem for stem in stems if not stem[0].isdigit()]
    return len(plain) + (len(plain) < len(stems))


def signs(
    asked: PresentQuestion,
    earlier: str,
    later: str,
    texts: Mapping[str, Set[str]],
    analyser: Analyser,
    *,
    least: float = -math.inf,
    nearest: bool = False,
) -> tuple[float, ...]:
    """The signs for and against the later of two notes answering a question that the earlier one answers.

    Args:
        texts: as for :func:`retelling`.
        least: if the odds cannot exceed these, the signs that take longest are not looked for.
        nearest: as for :func:`retelling`.

    Returns:
        A value for each of :data:`WEIGHTS`; none if the notes share too little to be compared.
    """
    before, after = texts[earlier], texts[later]
    had, both = _asked_of(asked, earlier, texts, later, analyser), before & after
    shared, missing = had & after, had - after
    often = Counter(chain.from_iterable(texts.values()))
    if _shares_little(asked, both, later, texts.values(), often) and not (
        _has_kind(asked, earlier, later, of_form=not nearest) and _share_name(earlier, later, both, analyser)
    ):
        return ()
    value = both - asked.stems - _MEASURES
    weight = covered = 0.0
    rare = rare_value = 0
    for stem in had:
        weight += 1 / often[stem]
        if stem in after:
            covered += 1 / often[stem]
            rare += often[stem] <= _FEW
    for stem in value:
        rare_value += often[stem] <= _FEW and stem not in _CALENDAR
    covered = covered / weight if weight else 0.0
    if shared and asked.spaceless and ENDED.found_in(later):
        covered = 1.0  # stems are pairs of characters: a name has one or two
    found = [
        covered,
        float(not missing.isdisjoint(asked.subject)),
        float(min(_MOST_RARE, rare)),
        float(min(_SHARED, rare_value)),
        float(later in list(texts)[:2]),
    ]
    if _BIAS + sum(map(mul, WEIGHTS.values(), found)) + _MOST_FURTHER <= least:
        return (*found, *[0.0] * (len(WEIGHTS) - len(found)))
    ends = denies = False
    for sentence, stems in _sentences(later, analyser) if value else ():
        if not value.isdisjoint(stems):
            ends = ends or ENDED.found_in(sentence) or any(one.search(sentence) for one in (_NOT, _DONE_TO))
            denies = denies or ends or may_end(sentence) or HINTS.found_in(sentence)
    narrows = False
    if missing and not (denies and rare_value):
        for one in (asked.text, earlier):
            has = asked.stems & after
            narrows = narrows or _narrows_subject(one, missing, has, analyser, asked, one is asked.text)
    known, said = f"{asked.text}\n{earlier}", _says(later)
    return (
        *found,
        float(denies),
        float(narrows),
        float(tells_of_change(earlier, later, analyser)),
        float(_has_kind(asked, earlier, later)),
        float(said.present),
        float(said.condition and not CONDITION.found_in(known)),
    )


def _share_name(earlier: str, later: str, both: Set[str], analyser: Analyser) -> bool:
    """Whether one of the words of both notes is a name or a figure in both."""
    told, again = (
        {word for word in WORD.findall(text[:LONGEST]) if not word[0].islower()} for text in (earlier, later)
    )
    return any(not both.isdisjoint(analyser.terms(word)) for word in told & again)


def _has_kind(asked: PresentQuestion, earlier: str, later: str, *, of_form: bool = False) -> bool:
    """Whether a later note gives another value of a kind of the earlier note's: a figure, a day or month, a name.

    Args:
        of_form: only a figure of the same unit or form, as "22 minutes" and "41 minutes", or "3.11" and "3.12".
    """
    known = set(WORD.findall(asked.text.lower()))
    told = _values(later[:LONGEST])
    for kind, values in _values(earlier[:LONGEST]).items():
        if of_form and kind in _KINDS:
            continue
        if values - known and told.get(kind, values) - values - known:
            return True
    return False


@lru_cache(maxsize=64)
def _values(text: str) -> dict[str, set[str]]:
    """The values in a text by their kinds, and figures also by form, cached: a note is compared with several others."""
    found: dict[str, set[str]] = {}
    opens = True
    unit_of = ""  # the number before
    for match in _VALUE_WORD.finditer(text):
        word = match.group()
        begins, opens = opens, word[-1] in ".!?:;"
        low = word.lower().strip("(),.!?:;").removesuffix("'s").removesuffix("’s")
        if unit_of:
            found.setdefault(f"in {'date' if low in MONTHS else low.removesuffix('s')}", set()).add(unit_of)
        unit_of = ""
        if _DIGIT.search(low) or low in NUMBERS:
            found.setdefault("figure", set()).add(low)
            if low in NUMBERS or low.isdigit():
                unit_of = "" if opens else low
            if low not in NUMBERS and (len(low) >= _LONG or not low.isdigit()):
                found.setdefault(_LETTER.sub("a", _DIGIT.sub("9", low)), set()).add(low)
        elif low.removesuffix("s") in _DATED:
            found.setdefault("day", set()).add(low.removesuffix("s"))
        elif word[0].isupper() and not begins:
            found.setdefault("name", set()).add(low)
    return found


def exceptions(
    asked: PresentQuestion,
    earlier: str,
    later: str,
    texts: Mapping[str, Set[str]],
    analyser: Analyser,
    year: int,
) -> tuple[bool, bool]:
    """Whether a later note is about something else or does not hold; and, if that is not certain, whether it may be so.

    Args:
        texts, year: as for :func:`retelling`.
    """
    before, after = texts[earlier], texts[later]
    had, has = _asked_of(asked, earlier, texts, later, analyser), asked.stems & after
    told = _sentences(later, analyser)
    if not told:
        return True, False
    best = _best_of(told, had, before)
    known, value = before | asked.stems, before - asked.stems
    context = f"{asked.text}\n{earlier}"
    if (
        _CALLED_OFF.search(later[:LONGEST])
        or any(_AS_BEFORE.search(one) and not _says(one).change for one, _ in told)
        or any(one.rstrip().endswith(("?", "？")) and not has.isdisjoint(stems) for one, stems in told)
        or _holds_again((value - _MEASURES) & after, told, analyser)
        or is_denied(best, asked.text, year)
        or is_elsewhere(best, context, later[: later.find(best)])
        or (
            not ENDED.found_in(later[:LONGEST])
            and _is_of_the_past(best, asked, earlier, value - _MEASURES, analyser)
        )
        or _DENIAL.search(later[:LONGEST])
        or _is_about_unnamed_thing(best, has, known, analyser)
        or _is_about_another_of_the_sort(asked, later, known, after, analyser)
        or _denies_another_value(best, value & after, analyser)
    ):
        return True, False
    return False, (
        not (had - has).isdisjoint(asked.names)
        or later[:1] in QUOTES
        or is_temporary(best, context)
        or _doubted(best, asked, had | before, analyser)
        or _is_about_another_person(best, known, asked, analyser)
        or _is_about_part(best, asked, known, analyser)
    )


@lru_cache(maxsize=64)
def _sentences(text: str, analyser: Analyser) -> tuple[tuple[str, Set[str]], ...]:
    """The sentences of a text with their stems, cached: a note is compared with several others."""
    return tuple((one, stems_in(one, analyser)) for one in _SENTENCE.split(text[:LONGEST]) if one.strip())


class _Says(NamedTuple):
    """Which words a text has, whatever it is compared with."""

    change: bool
    present: bool
    condition: bool


@lru_cache(maxsize=64)
def _says(text: str) -> _Says:
    start = text[:LONGEST]
    return _Says(
        ENDED.found_in(text) or HINTS.found_in(text), PRESENT.found_in(start), CONDITION.found_in(start)
    )


def _best_of(told: Sequence[tuple[str, Set[str]]], had: Set[str], before: Set[str]) -> str:
    """The sentence with most words of a question, and of those with equally many most of the earlier note."""
    return max(told, key=lambda one: (len(had & one[1]), len(before & one[1])))[0]


def best_sentence(asked: PresentQuestion, earlier: str, later: str, analyser: Analyser) -> str:
    """The sentence of a later note that tells most of what a question asks and an earlier note answers."""
    before = stems_in(earlier, analyser)
    told = _sentences(later, analyser)
    return _best_of(told, asked.stems & before, before) if told else later


def _asked_of(
    asked: PresentQuestion, earlier: str, texts: Mapping[str, Set[str]], later: str, analyser: Analyser
) -> Set[str]:
    """The question's stems that the earlier note has, except for a kind of value that the later note does not name.

    "Which Ruby does the mailer need?", "The mailer needs Ruby 3.1", "Bumped the mailer to 3.3".
    """
    had = asked.stems & texts[earlier]
    if had <= texts[later] or not _DIGIT.search(later[:LONGEST]):
        return had
    for kind, _ in _NUMBERED.findall(earlier[:LONGEST]):
        had -= stems_in(kind, analyser) - texts[later]
    return had


def _shares_little(
    asked: PresentQuestion, both: Set[str], later: str, texts: Collection[Set[str]], often: Mapping[str, int]
) -> bool:
    """Whether two notes share too little: one name, names and no word of change, or only words that many have."""
    shared = asked.stems & both
    other = both - asked.names - _MEASURES
    if not shared and len(other) < _SHARED and not ENDED.found_in(later):
        return True
    if shared <= asked.names and not other and (len(shared) < _SHARED or not _says(later).change):
        return True  # whatever else happened to a person
    return all(often[stem] > _FEW for stem in both) and sum(shared <= one for one in texts) > _ALIKE


def _holds_again(value: Set[str], told: Sequence[tuple[str, Set[str]]], analyser: Analyser) -> bool:
    """Whether a later note says that the earlier one's value holds again: "tried B for a while, back to A"."""
    for sentence, stems in told:
        if value.isdisjoint(stems):
            continue
        match = _RETURNED.search(sentence)
        if match is not None:
            clause = _CLAUSE.split(sentence[match.end() : match.end() + _LONGEST_CLAUSE], maxsplit=1)[0]
            if not value.isdisjoint(analyser.terms(clause)):
                return True
    return False


def _is_of_the_past(
    sentence: str, asked: PresentQuestion, earlier: str, value: Set[str], analyser: Analyser
) -> bool:
    """Whether a sentence without words of change says in the past what the question asks in the present."""
    if HINTS.found_in(sentence):
        return False
    return is_past(sentence, asked.stems, f"{asked.text}\n{earlier}", value, analyser)


def _doubted(sentence: str, asked: PresentQuestion, known: Set[str], analyser: Analyser) -> bool:
    return is_doubted(
        sentence,
        asked.text,
        tells_of_change=ENDED.found_in(sentence),
        told=_up_to_told(sentence, known, analyser),
    )


def _up_to_told(sentence: str, known: Set[str], analyser: Analyser) -> str:
    """A sentence without the clauses that follow the one with most of some words."""
    most, found, begin = 0, len(sentence), 0
    for stop in chain(_PART_OF_SENTENCE.finditer(sentence), (None,)):
        end = len(sentence) if stop is None else stop.start()
        has = len(known.intersection(analyser.terms(sentence[begin:end])))
        if has and has >= most:
            most, found = has, end
        begin = end
    return sentence[:found]


def _is_about_another_person(
    sentence: str, known: Set[str], asked: PresentQuestion, analyser: Analyser
) -> bool:
    """Whether a sentence is about something that belongs to somebody else: "Karla's brother", "Ana's bike"."""
    sentence = _ADDRESSED.sub("", sentence)

    def is_known(word: str) -> bool:
        return not known.isdisjoint(analyser.terms(word))

    for match in _OWNED.finditer(sentence):
        owner, thing = match[1], match[2].lower()
        is_asked_for = not asked.stems.isdisjoint(analyser.terms(thing))
        if owner[0].isupper() and analyser.terms(owner) and not is_known(owner) and is_asked_for:
            return True
    found = WORD.findall(sentence)
    if not found:
        return False
    named = [place for place, word in enumerate(found) if not asked.stems.isdisjoint(analyser.terms(word))]
    if _OURS.search(asked.text) and not _OURS.search(sentence):
        theirs = (found[max(0, place - 2) : place] for place in named)
        if any(word.lower() in ("their", "his", "her") for two in theirs for word in two):
            return True
    # The answer to "who …" may be a relative; what a relative has or does is another matter.
    lows = [word.lower().replace("’", "'") for word in found]
    answers = asked.text[:3].lower() == "who"
    lows = [low for low, after in zip(lows, [*lows[1:], ""], strict=True) if after not in _REPORTS]
    return any(
        word.removesuffix("'s") in _OTHERS
        and not is_known(word)
        and not (answers and not (place and lows[place - 1].endswith("'s")))
        and not (place and (lows[place - 1] in NUMBERS or lows[place - 1].isdigit()))
        for place, word in enumerate(lows)
    )


def _is_about_part(sentence: str, asked: PresentQuestion, known: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence is about an unnamed part of what is asked about: "The platform of the tower is …"."""
    if _PART_FIRST.match(sentence):
        return True
    match = _PART.match(sentence)
    if match is None or asked.subject.isdisjoint(analyser.terms(match[2])):
        return False
    part = analyser.terms(match[1])
    return bool(part) and known.isdisjoint(part)


def _denies_another_value(sentence: str, value: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence denies a value that the earlier note does not have, and names none: "It is not at Anna's"."""
    denial = _IS_NOT.search(sentence)
    if denial is None or _GOES_ON.search(sentence) or _STOP.search(sentence, denial.end()):
        return False
    if "," in sentence[: denial.start()] and _STOP.search(sentence, 0, denial.start()):
        return False  # "no more rule: cats are allowed, dogs are not"
    return value.isdisjoint(stems_in(sentence, analyser)) if value else True


def _is_about_another_of_the_sort(
    asked: PresentQuestion, later: str, known: Set[str], after: Set[str], analyser: Analyser
) -> bool:
    """Whether a later note has a word of the question beside another word: "the big compressor" for "the small one".

    Where the question is English, and no word of the one pair stands anywhere in the other text.
    """
    if not asked.is_english:
        return False
    theirs = _beside(later[:LONGEST], analyser)
    for place, words_beside in _beside(asked.text, analyser).items():
        others = theirs.get(place, frozenset())
        if others and words_beside.isdisjoint(after) and known.isdisjoint(others):
            return True
    return False


@lru_cache(maxsize=64)
def _beside(text: str, analyser: Analyser) -> dict[tuple[str, str], Set[str]]:
    """The stems of the words that stand before a stem, behind it as its number or name, or behind a preposition."""
    found: dict[tuple[str, str], set[str]] = {}
    before: list[tuple[str, Set[str]]] = []
    end = 0
    for match in WORD.finditer(text):
        if text[end : match.start()] != " ":
            before = []
        end = match.end()
        word = match[0].removesuffix("'s").removesuffix("’s")
        if before and before[-1][0] in _LINKS and word.lower() in _OWNERS:
            continue
        stems = frozenset(analyser.terms(word)) - _OF_TIME
        pairs = [(stems, "before", before[-1][1])] if before else []
        if before and (word[0].isdigit() or (word[0].isupper() and before[-1][0][0].islower())):
            pairs.append((before[-1][1], "label", stems))
        if len(before) > 1 and before[-1][0] in _LINKS:
            link = before[-1][0]
            pairs.append((before[-2][1], link, stems))
            if link == "of":
                pairs.append((stems, "owned", before[-2][1]))
        for of, side, others in pairs:
            for stem in of if others else ():
                found.setdefault((stem, side), set()).update(others)
        before = [*before[-1:], (word, stems)]
    return dict(found)


def _is_about_unnamed_thing(sentence: str, has: Set[str], known: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence is about something that the earlier note does not name: "the recipe of aunt Hedwig"."""
    found = WORD.findall(sentence.lower())
    for place, word in enumerate(found[:-2]):
        if found[place + 1] == "of" and not has.isdisjoint(analyser.terms(word)):
            of = next((one for one in found[place + 2 :] if one not in _OWNERS), "")
            stems = analyser.terms(of)
            if stems and known.isdisjoint(stems):
                return True
    return False


def _narrows_subject(
    text: str, missing: Set[str], has: Set[str], analyser: Analyser, asked: PresentQuestion, is_question: bool
) -> bool:
    """Whether a word that the later note lacks narrows the subject of a text: "night" in "the night bus".

    In a question, so does a word after a preposition: "the code of the shop".
    """
    if not missing:
        return False
    written = WORD.findall(text)
    found = WORD.findall(text.lower())
    for place, word in enumerate(found):
        if missing.isdisjoint(analyser.terms(word)):
            continue
        before = found[place - 1] if place else ""
        after = found[place + 1] if place + 1 < len(found) else ""
        leads = (
            not before
            or before in _OWNERS
            or before.endswith(("'s", "’s"))
            or before in PREPOSITIONS
            or before == "of"
        )
        stems = set(analyser.terms(after))
        if leads and not has.isdisjoint(stems) and not (asked.names & stems and written[place + 1].istitle()):
            return True  # but not in "the plumber Ana"
        while place > 1 and found[place - 1] in _OWNERS:
            place -= 1
        if is_question and place > 1 and (found[place - 1] in PREPOSITIONS or found[place - 1] == "of"):
            return True
    return False
