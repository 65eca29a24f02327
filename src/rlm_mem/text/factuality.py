"""Classifies whether a sentence states a lasting fact, or a guess, hearsay, denial, draft, trial or story.

Also detects limited and earlier times. English, with words for these in German, Spanish and French, and for guesses in
Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import TYPE_CHECKING

from rlm_mem.text.by_language import (
    DAY,
    DENIED,
    DOUBTED_ABROAD,
    ENDED,
    HEARSAY,
    LAST_IN_CLAUSE,
    PAST,
    TEMPORARY,
    TOLD,
    TRIED,
)
from rlm_mem.text.clauses import DETERMINERS, NUMBERS, PASTS, POSSESSIVES, PREPOSITIONS, UNSURE
from rlm_mem.text.patterns import late, signed, word_set
from rlm_mem.text.present import ROLES, WORD, is_german

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

_FOR_A_WHILE = signed(
    r"\bfor (?:(?:a|an|one|two|three|four|five|six|that|this|just|only|the|several|\d{1,3}) ){1,2}"
    r"(minute|hour|morning|afternoon|evening|day|night|week|weekend|match|game|lesson|session|meeting)s?\b"
)
_HAS_BEEN = signed(r"\b(?:been|running|in a row)\b")
"""Words with which a duration is not a limit: "has been at nine for a week"."""
_IN_IT = late(r"\W*in (?:it|this one|that one)\b", re.IGNORECASE)
_WORKS = r"(sketch|play|novel|film|movie|story|tale|skit|musical|comic|cartoon|sitcom|nightmare|dream)\b"
_FICTION = signed(rf"\b{_WORKS}")
"""Works in the previous sentence to which "In it" may refer."""
_TITLED = signed(rf"(?<=\w ){_WORKS}(?! (?!today|tonight|yesterday)\w)[^:]{{0,80}}:\s")
"""A sentence with a work as its title: "Crew's Christmas play: the captain is …"; unlike "Film club: it meets …"."""
_NOT_IN_FORCE = signed(
    r"\b(?:draft(?! (?:19|20)\d\d)|not adopted|april fools?)\b"
    r"|\b(?:proposal|motion|referendum|rfc|bill|vote)\b[^.]{0,120}\b(?:rejected|failed|declined|withdrawn|tabled)\b"
)
UNDONE = r"(?:rolled (?:it |that |them )?back|reverted|undid|undone)"
"""A pattern for words of an undone change, to be used between word boundaries."""
_TAKEN_BACK = signed(rf"\b{UNDONE}\b")
_STATED = late(r"\b(?:to|at|is|are|was|were|by)\b", re.IGNORECASE)
_CLAUSE = late(r"[,:;.!?()–—]\s|\s(?:so|and|but|because|as|since|which|who|where|that|until|und|y|et)\s")
_WORD = late(r"[^\W_]+(?:['’./-][^\W_]+)*")
_BESIDE_PARTICIPLE = word_set(
    "is are was were be been being has have had get gets got isn't aren't wasn't i've we've"
)
_OPENS_VALUE = DETERMINERS | POSSESSIVES | PREPOSITIONS | NUMBERS
"""Words that begin a value after "was" and "had", unlike "was too small"."""
_NO_VERB_AFTER = DETERMINERS | POSSESSIVES | PREPOSITIONS
_NEAR = 800
"""Number of leading characters searched for a change and its reversal."""
_DOUBTED = (
    UNSURE
    | word_set(
        "might previous previously formerly originally ago also additionally besides "
        "begs begged demands demanded dreams"
    )
) - word_set(
    "will shall how who which whose when until unless why need needed decide decided going asked ask asks i'll we'll "
    "he'll she'll they'll 'll thinking think try tries trying tried heard story novel example claims claimed discuss "
    "discussed discussing almost nearly won't plan plans planned planning"
)
"""Words of a sentence about a wish, a guess, another time, or an additional thing."""
_PLANNED = signed(
    r"\b(?:i|we|they|he|she) plan(?:s|ned)?\b|\bplan(?:s|ned|ning)? (?:is )?to\b|\bplanned for\b"
    r"|\b(?:was|were) (?:meant |supposed |due )?to (?!the\b|an?\b|my\b|our\b|his\b|her\b|their\b)(?=[a-z])"
    r"|\bonce\b(?! (?:a|an|per|every|in)\b)|\bbefore last\b"
    r"|\b(?:(?:discuss|consider|suggest)(?:s|ed|ing)?|propos(?:es|ed|ing)|(?:think|talk)(?:s|ed|ing)? (?:about|of)"
    r"|thought (?:about|of)) \w{2,20}ing\b"
)
_ADDED = signed(r"\bas well\b|\btoo(?:[.,;!)]|$)")
BEGINS = signed(r"\b(?:starting|effective|as of|from (?:now|here|today) on(?:wards)?)\b")
"""Words with which an additional thing is in force from a day on: "the band's A as well from here on"."""
_ONE_DAY = signed(
    r"(?<!from )(?<!as of )(?<!since )(?<!said )(?<!started )(?<!starting )(?<!beginning )"
    rf"\b(?:today|tonight|tomorrow|this {DAY}"
    rf"|last (?:year|month|week|season|spring|summer|autumn|winter|time|{DAY})|the other day)\b"
)
"""A sentence about one day, unless it has a word of change: "bumped to 3.12 today"."""
_YEAR = late(
    r"\b(?:19|20)\d\d\b(?![./-]\d)"
    r"(?! ?(?:[%°€$£]|[kMGTcmµ]?(?:[hsglmtWVAJNB]|Hz|Pa|Wh|min|bar|rpm|px|EUR|USD)|zł\w*"
    r"|[Ee]uros?|[Dd]ollars?|[Pp]ounds?|[Ff]ran(?:cs?|ken)|[Dd]ólares)(?!\w))"
)
"""A year, not a figure with a unit: "2000 h"."""
QUOTES = '"“”„«»'
"""Opening quotation marks."""
_QUOTED = signed(r'["“„«]([^"“”„«»]{12,400})["”“»]')
_REFUSED = signed(
    r"\b(?:(?:wouldn|couldn)['’]t|want(?:s|ed))\b(?=[^.!?;]{1,200}?\b(?:so|thus|hence|therefore)\b)"
)
"""A refusal or wish with its consequence, which is a fact."""
_NO_DOUBT = signed(r"\b(?:minutes?|hours?|days?|weeks?|a month) ago\b|\bthan (?:\w{1,20} ){1,2}thought\b")
"""A recent time, which is not before the earlier note; and a comparison: "better than she thought"."""
_WISHES = word_set("want wants wish wishes hope hopes")


_DOING = late(r"\s\w{2,20}ing\b", re.IGNORECASE)
"""The rest of "while the varnish was drying"."""


def is_temporary(sentence: str, known: str) -> bool:
    """Whether a sentence is limited to a time that neither the question nor the earlier note mentions.

    A change during an activity lasts: "while the varnish was drying I swapped the belt".
    """
    low = known.lower()
    lasting = _HAS_BEEN.search(sentence)
    found = None if lasting else _FOR_A_WHILE.search(sentence)
    if found is not None and found[1].lower() not in low:  # otherwise the duration is the value
        return True
    found = TEMPORARY.search(sentence)
    if found is None or found.group().lower() in low:
        return False
    return not (_DOING.match(sentence, found.end()) and ENDED.found_in(sentence))


def is_elsewhere(sentence: str, known: str, before: str = "") -> bool:
    """Whether a sentence is about a trial or story that neither the question nor the earlier note mentions.

    Args:
        before: the preceding text, which names the story if the sentence begins with "In it".
    """
    low = known.lower()
    matches = [TRIED.search(sentence), TOLD.search(sentence), _TITLED.search(sentence)]
    if before and _IN_IT.match(sentence):
        matches.append(_FICTION.search(before))
    return any(found is not None and str(found[found.lastindex or 0]).lower() not in low for found in matches)


def is_past(sentence: str, asked: Set[str], known: str, value: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence states in the past tense what question and earlier note have in the present.

    "Our band practised in a garage", beside "The band practises in Hall B". A clause with the earlier note's value
    does not count, since it states that the former value has ended.

    Args:
        asked: the question's stems.
        known: the question and the earlier note.
        value: stems of the earlier note that are not in the question.
    """
    known_words = _WORD.findall(known.lower())
    if not {"was", "were", "did"}.isdisjoint(known_words):
        return False
    present = {
        stem
        for word in known_words
        if not word.endswith("ed") and word not in PASTS
        for stem in analyser.terms(word)
    }
    for clause in _CLAUSE.split(sentence):
        found = _WORD.findall(clause.lower().replace("’", "'"))
        stems = set(analyser.terms(clause))
        if asked.isdisjoint(stems) or not value.isdisjoint(stems):
            continue
        for place, word in enumerate(found):
            if word in PAST:
                after = found[place + 1 : place + 3]
                alike = [one for one in after[:1] if one in known_words]  # "was heated", beside "is heated"
                if after and not (alike or after[0] in _OPENS_VALUE or after[0][0].isdigit()):
                    continue
                if not after and word not in LAST_IN_CLAUSE:
                    continue
                if any(one.endswith("ed") or one in PASTS for one in after[len(alike) :]):
                    continue
                is_subject = not asked.isdisjoint(analyser.terms(" ".join(found[:place])))
                if 2 * len(asked & stems) >= len(asked) + (not is_subject):
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
    """Whether a sentence mentions no draft or rejected proposal, apart from one that ``known`` mentions."""
    found = _NOT_IN_FORCE.search(sentence)
    return found is None or found.group().lower() in known.lower()


def is_taken_back(text: str) -> bool:
    """Whether a text states a change and then its reversal: "raised to 12g, reverted to 4g"."""
    stated = _STATED.search(text[:_NEAR])
    return stated is not None and _TAKEN_BACK.search(text[stated.end() : _NEAR]) is not None


def is_denied(sentence: str, asked: str, year: int) -> bool:
    """Whether a sentence denies a change, or is about a draft, an additional thing, hearsay or an earlier year.

    Args:
        year: the year of the earlier note.
    """
    sentence = _NO_DOUBT.sub("", _REFUSED.sub("", sentence))
    return (
        not is_in_force(sentence, asked)
        or DENIED.search(sentence) is not None
        or HEARSAY.match(sentence) is not None
        or any(int(one) < year for one in _YEAR.findall(sentence))
    )


def is_doubted(sentence: str, asked: str, *, has_change_word: bool, main_part: str) -> bool:
    """Whether a sentence may be about a wish, a plan or one day, or report another person's words.

    Args:
        asked: the question, whose words ("if we lose each other") do not express doubt.
        has_change_word: whether the sentence has a word of change, so that a day in it dates the change.
        main_part: the sentence up to the end of the relevant clause; wishes and reports after it are ignored.
    """
    sentence = _NO_DOUBT.sub("", _REFUSED.sub("", sentence))
    main_part = _NO_DOUBT.sub("", _REFUSED.sub("", main_part))
    # Without "May", the month
    lows = {word.lower().replace("’", "'") for word in WORD.findall(main_part) if word != "May"}
    if is_german(asked):
        lows.discard("also")  # "so"
    known = set(WORD.findall(asked.lower()))
    known = known if _WISHES.isdisjoint(known) else known | _WISHES  # a wish answers a question about wishes
    quoted = _QUOTED.search(sentence)
    own = quoted is not None and sentence[: quoted.start()].strip(" :").lower() in ROLES
    return (
        not lows.isdisjoint(_DOUBTED - known)
        or sentence[:1] in QUOTES
        or (quoted is not None and not own and len(quoted[1].split()) > 3)
        or _PLANNED.search(main_part) is not None
        or (_ADDED.search(main_part) is not None and BEGINS.search(sentence) is None)
        or DOUBTED_ABROAD.search(main_part) is not None
        or (_ONE_DAY.search(sentence) is not None and not has_change_word and sentence.rstrip()[-1:] != ":")
    )
