"""Whether what a sentence says lasts: it may be about a limited or an earlier time, a draft, a trial or a story.

English, with the words for earlier times in German, Spanish and French, too.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import TYPE_CHECKING

from rlm_mem.text.clauses import DETERMINERS, NUMBERS, PASTS, POSSESSIVES, PREPOSITIONS, words
from rlm_mem.text.patterns import late

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

__all__ = ["UNDONE", "is_elsewhere", "is_in_force", "is_past", "is_taken_back", "is_temporary"]

_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"

_TEMPORARY = late(
    r"^\W*while (?!\w{1,20}ing\b|at\b|i\b|we\b|there\b)|\bwhile\b[^,.;]{1,60}\b(?:is|are|was|were)\b|\bduring\b"
    r"|\b(?:un)?till? then\b|\btemporar"
    r"|\bfor (?:the time being|now|the duration)\b|\bstand(?:s|ing)? in\b|\bfill(?:s|ing) in\b"
    r"|\bexceptionally\b|\bon the (?:last )?day (?:of|before)\b|^\W*last night\b"
    r"|\bthis time\b|^\W*this (?:week|weekend)\b(?!'s|’s)"
    r"|(?<!not )\b(?:only|just) (?:this|today|tonight|tomorrow|for (?:the|this|that|one|now|today))\b"
    rf"|\b(?:this|that) (?:[a-z]{{3,9}}|{_DAY}) only\b|\blast {_DAY}\b|\bthe other day\b",
    re.IGNORECASE,
)
"""A sentence about a limited time, after which the former value holds again."""
_TEMPORARY_ABROAD = late(
    r"\b(?:vorübergehend|ausnahmsweise|vorläufig|einstweilen|solange|nur (?:heute|morgen|diese\w?)"
    r"|provisional(?:mente)?|temporalmente|excepcionalmente|de momento|por ahora|mientras|s[oó]lo (?:hoy|est[ae])"
    r"|provisoire(?:ment)?|temporairement|exceptionnellement|pour l['’]instant|pour le moment|tant que"
    r"|(?:seulement|juste) (?:aujourd['’]hui|cette))\b"
    r"|\b(?:für|durante|por|pendant|pour) (?:(?:eine?n?|zwei|drei|un|une|una|uno|dos|tres|deux|trois|\d{1,2}) )"
    r"(?:stunden?|tage?|wochen?|horas?|días?|semanas?|heures?|jours?|semaines?)\b",
    re.IGNORECASE,
)
"""The same in German, Spanish and French."""
_FOR_A_WHILE = late(
    r"\bfor (?:(?:a|an|one|two|three|four|five|six|that|this|just|only|the|several|\d{1,3}) ){1,2}"
    r"(minute|hour|morning|afternoon|evening|day|night|week|weekend|match|game|lesson|session|meeting)s?\b",
    re.IGNORECASE,
)
_HAS_BEEN = late(r"\bbeen\b", re.IGNORECASE)
"""With this word, a duration is no limit: "has been at nine for a week"."""
_TRIED = late(
    r"\b(?:in|on|for|to|at|with) (?:the |our |my |an? )?(?:\w{1,20}[ -])?"
    r"(?P<place>staging|demo|sandbox|tests?|preview|beta|trial|pilot|canary|simulat(?:ion|or)|mock|branch|fork|rehearsal)\b",
    re.IGNORECASE,
)
"""Where something is tried out, beside where it counts."""
_TOLD = late(
    r"\bin (?:the|an?|my|his|her|our|their|this|that|some) (?:\w{1,20}[ -]){0,3}?"
    r"(?P<place>sketch|play|novel|film|movie|stor(?:y|ies)|tale|skit|musical|comic|cartoon|sitcom|nightmare|dream)\b"
    r"|\b(?:im|in (?:der|einem|einer)|en (?:el|la|un|una)|dans (?:le|la|un|une)) (?:\w{1,20} )?"
    r"(?P<there>roman|märchen|geschichte|theaterstück|traum|novela|cuento|película|sueño|conte|pièce|rêve)\b",
    re.IGNORECASE,
)
"""Fiction, in which something is told."""
_NOT_IN_FORCE = late(
    r"\((?:rejected|declined|withdrawn|not adopted)\)|\b(?:draft|not adopted|roadmap|poster|petition|april fools?)\b"
    r"|\b(?:proposal|motion|referendum|rfc|bill|vote)\b[^.]{0,120}\b(?:rejected|failed|declined|withdrawn|tabled)\b",
    re.IGNORECASE,
)
UNDONE = r"(?:rolled (?:it |that |them )?back|reverted|undid|undone)"
"""A pattern of the words for a change that was undone, between word boundaries."""
_TAKEN_BACK = late(
    rf"\b(?:to|at|is|are|was|were|by)\b.{{1,400}}?\b{UNDONE}\b",
    re.IGNORECASE | re.DOTALL,
)
_CLAUSE = late(r"[,:;.!?()–—]\s|\s(?:so|and|but|because|as|since|which|who|where|that|until)\s")
_WORD = late(r"[^\W_]+(?:['’./-][^\W_]+)*")
_EVENT = late(
    r"\b(?:yesterday|nineties|eighties|seventies|sixties|childhood|back then|at the time|in those days"
    r"|long before|as a (?:child|boy|girl|kid|student|teenager))\b|\b(?:19|20)?\d0s\b"
    r"|\b(?:gestern|vorgestern|neulich|damals|einst|ayer|anteayer|anoche|antaño|avant-hier|jadis|autrefois)\b",
    re.IGNORECASE,
)
"""An earlier time, also in German, Spanish and French."""
_WAS = words(
    "was were had wasn't weren't hadn't war waren hatte hatten era eran estaba estaban tenía tenían tuvo hubo fue "
    "fueron était étaient avait avaient"
)
_BESIDE_PARTICIPLE = words(
    "is are was were be been being has have had get gets got isn't aren't wasn't i've we've"
)
_OPENS_VALUE = DETERMINERS | POSSESSIVES | PREPOSITIONS | NUMBERS
"""Words after "was" and "had" that open a value: not "was too small"."""
_NO_VERB_AFTER = DETERMINERS | POSSESSIVES | PREPOSITIONS
_NEAR = 800
"""Number of leading characters of a text in which a change and its reversal are looked for."""


def is_temporary(sentence: str, known: str) -> bool:
    """Whether a sentence is about a limited time that the question and the earlier note do not name."""
    low = known.lower()
    lasting = _HAS_BEEN.search(sentence)
    found = None if lasting else _FOR_A_WHILE.search(sentence)
    if found is not None and found[1].lower() not in low:  # else the duration is the value
        return True
    found = _TEMPORARY.search(sentence) or _TEMPORARY_ABROAD.search(sentence)
    return found is not None and found.group().lower() not in low


def is_elsewhere(sentence: str, known: str) -> bool:
    """Whether a sentence is about a trial or a story that the question and the earlier note do not name."""
    low = known.lower()
    matches = (pattern.search(sentence) for pattern in (_TRIED, _TOLD))
    return any(found is not None and str(found[found.lastgroup or 0]).lower() not in low for found in matches)


def is_past(sentence: str, asked: Set[str], known: str, value: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence says in the past what the question and the earlier note say in the present.

    "Our band practised in a garage", beside "The band practises in Hall B". A clause with the earlier note's value
    is none: what held before has ended.

    Args:
        asked: the question's stems.
        known: the question and the earlier note.
        value: the stems of the earlier note that the question lacks.
    """
    told = _WORD.findall(known.lower())
    if "was" in told or "were" in told:
        return False
    present = {
        stem
        for word in told
        if not word.endswith("ed") and word not in PASTS
        for stem in analyser.terms(word)
    }
    for clause in _CLAUSE.split(sentence):
        found = _WORD.findall(clause.lower().replace("’", "'"))
        stems = set(analyser.terms(clause))
        if asked.isdisjoint(stems) or not value.isdisjoint(stems):
            continue
        if _EVENT.search(clause):
            return True
        for place, word in enumerate(found):
            if word in _WAS:
                after = found[place + 1 : place + 3]
                if not after or not (after[0] in _OPENS_VALUE or after[0][0].isdigit()):
                    continue
                if not any(one.endswith("ed") or one in PASTS for one in after) and 2 * len(
                    asked & stems
                ) > len(asked):
                    return True
            elif (
                (word.endswith("ed") or word in PASTS)
                and not present.isdisjoint(analyser.terms(word))
                and place
                and found[place - 1] not in _NO_VERB_AFTER
                and _BESIDE_PARTICIPLE.isdisjoint(found[max(0, place - 2) : place])
            ):
                return True
    return False


def is_in_force(sentence: str, known: str) -> bool:
    """Whether a sentence mentions no draft, rejected proposal or poster, or only one that ``known`` mentions, too."""
    found = _NOT_IN_FORCE.search(sentence)
    return found is None or found.group().lower() in known.lower()


def is_taken_back(text: str) -> bool:
    """Whether a text first states a change and then says that it was undone: "raised to 12g, reverted to 4g"."""
    return _TAKEN_BACK.search(text[:_NEAR]) is not None
