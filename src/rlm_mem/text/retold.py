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

from msgspec import Struct

from rlm_mem.text.analysis import SPACELESS, Analyser
from rlm_mem.text.clauses import (
    CHANGES,
    DETERMINERS,
    ENDS,
    MONTHS,
    POSSESSIVES,
    PREPOSITIONS,
    REPLACES,
    TRAVELLED,
    UNSURE,
    words,
)
from rlm_mem.text.differences import may_end
from rlm_mem.text.lasting import UNDONE, is_in_force, is_temporary
from rlm_mem.text.patterns import late
from rlm_mem.text.wording import CORRECTIONS

__all__ = [
    "POSSIBLE",
    "SURE",
    "WEIGHTS",
    "PresentQuestion",
    "is_apart",
    "is_note",
    "is_passing",
    "retelling",
    "shares_little",
    "signs",
    "stems_in",
]

SURE, POSSIBLE = -0.6, -2.1
"""The odds, in nats, above which a later note counts as the answer, and above which an answer gives both notes."""
WEIGHTS: dict[str, float] = {
    "words": 1.7,
    "one word": -0.9,
    "not the subject": -1.1,
    "rare words": 0.5,
    "rare words of the answer": 0.6,
    "earlier note": 1.3,
    "next": 1.4,
    "answer ended": 1.3,
    "answer denied": 0.65,
    "narrowed": -2.0,
}
"""The weight of each sign (see :func:`signs`), in nats of odds:

* words: the share, by rarity, of the question's words in the earlier note that the later note has; one word: only one;
* not the subject: the later note lacks a word for what the question is about;
* rare words: how many of the shared question words are rare; rare words of the answer: how many other shared words are;
* earlier note: the share of the earlier note's words that the later note has; next: it is among the first two texts;
* answer ended, answer denied: a sentence with a word of the answer says that it has ended, or has any word of change;
* narrowed: a missing word narrows the subject, unless the answer ended or is denied, with a shared rare word.
"""
_BIAS = -2.9
_MOST_FURTHER = WEIGHTS["answer ended"] + WEIGHTS["answer denied"]
_MOST_RARE = 3
"""Largest number of rare words of the question that count."""
_FEW = 2
"""Largest number of texts in which a rare word occurs: the two notes themselves."""
_SHARED = 2
"""Largest number of rare words of the earlier note's answer that count."""
_ALIKE = 3
"""Largest number of texts, including the two notes, that have all words of the question that both notes have."""
_LONGEST = 2_000
"""Characters of a text that are read."""
_WORD = late(r"[^\W_]+(?:['’.:/-][^\W_]+)*")
_SENTENCE = late(r"(?<=[.!?;])\s+|\n+")
_OF_THE_PAST = late(
    r"\b(?:before|previously|formerly|earlier|originally|used to|was|were|did|had|last|ago|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
"""A question about the past."""
_DOUBTED = (
    UNSURE
    | words(
        "might previous previously formerly originally ago also additionally besides "
        "begs begged demands demanded dreams"
    )
) - words(
    "will shall how who which whose when until unless why need needed decide decided going asked ask asks i'll we'll "
    "he'll she'll they'll 'll thinking think try tries trying tried heard story novel example claims claimed discuss "
    "discussed discussing almost nearly won't plan plans planned planning"
)
"""Words of a sentence about a wish, a guess, another time, or an additional thing."""
_PLANNED = late(
    r"\b(?:i|we|they|he|she) plan(?:s|ned)?\b|\bplan(?:s|ned)? (?:is )?to\b|\bplanned for\b|\bplanning to\b"
    r"|\bbefore last\b|\bproposal to\b|\bwhen (?:i|he|she|we|they) (?:was|were)\b|^\W*tried\b"
    r"|\b(?:someone|somebody) claims?\b"
    r"|\bonce\b(?! (?:a|an|per|every|in)\b)|\bas well\b|\btoo(?:[.,;!)]|$)",
    re.IGNORECASE,
)
_ONE_DAY = late(
    r"(?<!from )(?<!as of )(?<!since )(?<!started )(?<!starting )(?<!beginning )"
    r"\b(?:today|tonight|tomorrow|this (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    r"|\blast (?:year|month|week|season|spring|summer|autumn|winter|time)\b",
    re.IGNORECASE,
)
"""A sentence about one day, if it has no word of change: "bumped to 3.12 today"."""
_YEAR = late(r"\b(?:19|20)\d\d\b")
_OWNED = late(r"\b([^\W\d_]{1,40})['’]s?\s{1,9}([^\W\d_]{1,40})")
_OTHERS = words(
    "mother father sister brother neighbour neighbours neighbor neighbors cousin aunt uncle daughter son wife husband "
    "friend friends guests competitor competitors opposing rival rivals "
    "colleague colleagues parents mum dad grandma grandpa nephew niece tenants boss "
    "mutter vater schwester bruder nachbarin nachbar tochter sohn tante onkel freundin kollegin "
    "madre padre hermana hermano vecina vecino hija hijo tía tío amiga amigo"
)
"""Words for people other than those whom the earlier note is about, unless it names them too."""
_OURS = late(r"\b(?:my|our)\b", re.IGNORECASE)
_REPORTS = words("told says said tells writes wrote")
_OWNERS = (DETERMINERS | POSSESSIVES) - {"that", "those"}
_ROLES = words("user human assistant agent system model bot ai me")
_HEADINGS = CORRECTIONS | words("subject re fwd fyi note news update reminder decision status ps")
_PARTICLES = words("de del della den der di du da la le van von zu zur ter ten bin ibn al el y e dos das")
"""Lower-case words of names."""
_QUOTES = '"“”„«»'
_QUOTED = late(r"[\"“„«]([^\"“”„«»]{12,400})[\"”“»]")
_STRONG = late(
    rf"\b(?:{'|'.join(sorted((CHANGES | ENDS | REPLACES) - TRAVELLED - words('given gave brought')))}|gone off"
    r"|longer|any ?more|no more|now|nowadays|these days|history|goodbye|dismissed|split|broke"
    r"|at last|at long last|finally|finished|complete|completed"
    r"|nicht mehr|keine? mehr|jetzt|ab sofort|umgezogen|verlegt|gewechselt|ya no|ahora|mudad[oa]|cambiad[oa])\b"
    r"|->|→|不再|现在|改[到成为]|换[了成]|搬[到了]",
    re.IGNORECASE,
)
"""Words that say that a value named in the same sentence has ended, in four languages."""
_DOUBTED_ABROAD = late(
    r"\b(?:vielleicht|könnten?|würden?|falls|wenn|quizás?|tal vez|podrían?|si)\b|可能|听说|如果|也许|或许|吗"
    r"|的(?:弟弟|哥哥|妹妹|姐姐|妈妈|爸爸|儿子|女儿|朋友|同事|邻居)",
    re.IGNORECASE,
)
_ASKS_WHAT = late(
    r"\W*was (?!(?:the|an?|my|our|your|his|her|their|its?|he|she|there|that|this|these|those|any|some)\b)[a-zäöü]",
    re.IGNORECASE,
)
"""The German "was" ("what") that opens a question. The English "was" is followed by a capital or one of these words."""
_RETURNED = late(
    rf"\b(?:{UNDONE}|(?<!put )back to|remains"
    r"|(?:came|went|moved|is|are) back (?:to|at|in|on|with)|(?:is|are|it's) still)\b",
    re.IGNORECASE,
)
"""Words before a former value that say that it holds again, or still."""
_STAYS = late(r"\bit (?:stays|stayed|remains)[.!]?\s*$", re.IGNORECASE)
_CLAUSE = late(r"[,;.]\s")
_REFUSED = late(
    r"\b(?:(?:wouldn|couldn)['’]t|want(?:s|ed))\b(?=[^.!?;]{1,200}?\b(?:so|thus|hence|therefore)\b)",
    re.IGNORECASE,
)
"""What somebody refused or wanted, followed by the consequence: not a wish."""
_WISHES = words("want wants wish wishes hope hopes")
_DENIED = late(
    r"\b(?:isn['’]t|is not|not) true\b|\b(?:did|has|have|was|were)(?:n['’]t| not) (?:\w{1,20} )?"
    rf"(?:{'|'.join(sorted(CHANGES | REPLACES))}|become|been (?:changed|moved)|change|move|switch|swap|extend|raise)\b"
    r"|\badded\b(?![^.]{0,120}\bmakes?\b)|\ba (?:second|third|further)\b(?=\s+[a-z])",
    re.IGNORECASE,
)
"""A change that did not happen, or a further thing besides the first."""
_CALLED_OFF = late(
    r"\b(?:(?<!the )false alarm|no (?:decision|vote)|decided against|as ever"
    r"|(?:not|n['’]t) (?:yet )?(?:answered|decided|voted)|voted down|nothing (?:has )?changed"
    r"|(?:stays|left|remains) as (?:it )?(?:is|was))\b",
    re.IGNORECASE,
)
"""Words in any sentence that say that the subject of the note did not happen."""
_FURTHER = late(r"\b(?:additional|extra|the other one|other than)\b", re.IGNORECASE)
_PART = late(
    r"\W*(?:the|an?|our|my|la|le|der|die|das) (?:\w{1,40} ){0,2}?(\w{1,40})"
    r" (?:of|de|du|von|der|des) (?:(?:the|our|my|la|le) )?(\w{1,40})",
    re.IGNORECASE,
)
"""A sentence about a part or relative of something: "The platform of the tower"."""
_IS_NOT = late(r"\b(?:is|are|was|were|do|does|did|has|have)(?: not|n['’]t)\b", re.IGNORECASE)
_GOES_ON = late(r"\b(?:but|instead|now|more|longer|after all)\b|[;:–—]", re.IGNORECASE)
"""Words beside a denial, in a sentence that says what holds instead."""
_UNDONE = late(rf"\b{UNDONE}\b", re.IGNORECASE)
_NUMBERED = late(r"([^\W\d_]{1,40}) {1,3}(\d{1,20})(?!\w)")
"""A thing with its number: "runner 3"."""
_DIGIT = late(r"\d")
_NOT = late(r"\b(?:not?|never|nobody|none|neither)\b|n['’]t\b", re.IGNORECASE)
_CALENDAR = MONTHS | words(
    "monday tuesday wednesday thursday friday saturday sunday morn afternoon even night"
)
_LONGEST_CLAUSE = 200
"""Characters after "back to" that are read."""
_WITH_VERB = words("do does did can may must should will don't doesn't")
_AUXILIARIES = _WITH_VERB | words("is are was were has have had am isn't aren't")
_INTERROGATIVES = words("who whom whose what when where which why how")
_BEHIND_SUBJECT = PREPOSITIONS | words("of per about through during after before until called named")
_AUXILIARY_WITHIN = 8
"""Place (from 0) of the last word of a question that may be its auxiliary."""
_MEASURES = words("second minut hour day week month year time euro dollar percent half new work")
"""Stems of words that name no value by themselves."""


class PresentQuestion(Struct, frozen=True):
    """A question as :func:`retelling` needs it.

    Attributes:
        text: the question.
        stems: the stems of its words.
        names: the stems of its names and numbers.
        subject: the stems of what it asks about: "worker node" of "On which port does the worker node listen?".
        asks: whether it is a question, not words to search for.
    """

    text: str
    stems: frozenset[str]
    names: frozenset[str]
    subject: frozenset[str]
    asks: bool

    @staticmethod
    def of(text: str, analyser: Analyser) -> PresentQuestion | None:
        """Analyse a question; None if it is not an English question about the present."""
        begin = len(was[0]) - 1 if (was := _ASKS_WHAT.match(text)) and was[0][-1].islower() else 0
        if analyser.language != "english" or len(text) > _LONGEST or _OF_THE_PAST.search(text, begin):
            return None
        named = []
        for place, word in enumerate(_WORD.findall(text)):
            if (place and word[0].isupper()) or _DIGIT.search(word):
                named.append(word)
        subject, asks = _subject(text)
        return PresentQuestion(
            text,
            frozenset(analyser.terms(text)),
            frozenset(analyser.terms(" ".join(named))),
            frozenset(analyser.terms(" ".join(subject))),
            asks,
        )


def _subject(question: str) -> tuple[list[str], bool]:
    """The words of a question after its auxiliary, up to a preposition, without a final verb; and whether it asks."""
    lows = _WORD.findall(question.lower())
    found: list[str] = []
    auxiliary = ""
    for place, low in enumerate(lows):
        if auxiliary and low in _BEHIND_SUBJECT:
            break
        if auxiliary:
            found.append(low)
        elif low in _AUXILIARIES:
            auxiliary = low
        elif place == _AUXILIARY_WITHIN:
            break
    asks = question.rstrip().endswith(("?", "？")) or (
        lows[:1] != [] and lows[0] in _AUXILIARIES | _INTERROGATIVES
    )
    if not auxiliary and lows[:1] in (["which"], ["what"]):
        found = lows[1:2]  # "Which folder needs two approvals?"
    return found[:-1] if len(found) > 1 and auxiliary in _WITH_VERB else found, asks


@lru_cache(maxsize=512)
def stems_in(text: str, analyser: Analyser) -> frozenset[str]:
    """The stems of a text, cached: a note is compared with several others, and mostly is one sentence."""
    return frozenset(analyser.terms(text))


def is_note(author: str | None, asked: PresentQuestion | None = None) -> bool:
    """Whether a text is a note, not the turn of a speaker.

    A label is not a speaker ("gotcha: the key is …", "Driving school phoned: …"), and neither is a thing that the
    question is about.
    """
    if not author or (author[0].islower() and author not in _ROLES):
        return True
    parts = author.replace("-", " ").split()
    if any(word[0].islower() and word not in _PARTICLES for word in parts[1:]) or author.lower() in _HEADINGS:
        return True
    low = author.lower()
    if asked is None or low in _ROLES or author in asked.text:
        return False
    return set(low.split()) <= set(_WORD.findall(asked.text.lower()))


def is_passing(asked: PresentQuestion, text: str, analyser: Analyser, *, year: int) -> bool:
    """Whether a note may give no lasting answer: a guess, a denial, about a limited time or about another thing.

    Args:
        year: the year of the note.
    """
    told = [one for one in _SENTENCE.split(text[:_LONGEST]) if one.strip()]
    if not told:
        return False
    best = max(told, key=lambda one: len(asked.stems & stems_in(one, analyser)))
    return (
        _UNDONE.search(best) is not None
        or _CALLED_OFF.search(text[:_LONGEST]) is not None
        or _is_doubted(best, asked, year)
        or is_temporary(best, asked.text)
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
    year: int,
    least: float = SURE,
) -> float:
    """How likely the later of two notes answers a question that the earlier one answers, in nats of odds.

    The signs are the words that both notes have, above all those of the question and rare ones, and words of change
    beside the earlier note's answer (:func:`signs`); their weights were learned from diaries by
    `benchmarks/diary_fit.py`. A later note that is about another thing or person, a question, a quotation, a guess, a
    wish or a short time does not answer it, whatever its words.

    Args:
        texts: the stems of both notes, and of the texts that were found with them, best first.
        year: the year of the earlier note.
        least: the odds that matter to the caller: :data:`SURE` or :data:`POSSIBLE`.

    Returns:
        The odds; ``least`` if they are not higher, or if the later note is about something else.
    """
    if shares_little(asked, texts[earlier], texts[later], texts.values()):
        return least
    if (not asked.asks or SPACELESS.search(asked.text)) and not _STRONG.search(later):
        return least  # texts that share the words of a query, or pairs of characters, may answer different questions
    found = signs(asked, earlier, later, texts, analyser, least=least)
    odds = float(_BIAS + sum(map(mul, WEIGHTS.values(), found)))
    if odds <= least or is_apart(asked, earlier, later, texts, analyser, year=year, briefly=least < SURE):
        return least
    return odds


def signs(
    asked: PresentQuestion,
    earlier: str,
    later: str,
    texts: Mapping[str, Set[str]],
    analyser: Analyser,
    *,
    least: float = -math.inf,
) -> tuple[float, ...]:
    """The signs for and against the later of two notes answering a question that the earlier one answers.

    Args:
        texts: as for :func:`retelling`.
        least: if the odds cannot exceed these, the signs that take longest are not looked for.

    Returns:
        A value for each of :data:`WEIGHTS`.
    """
    before, after = texts[earlier], texts[later]
    had, both = _asked_of(asked, earlier, texts, later, analyser), before & after
    shared, missing = had & after, had - after
    value = both - asked.stems - _MEASURES
    often = Counter(chain.from_iterable(texts.values()))
    weight = covered = 0.0
    rare = rare_value = 0
    for stem in had:
        weight += 1 / often[stem]
        if stem in after:
            covered += 1 / often[stem]
            rare += often[stem] <= _FEW
    for stem in value:
        rare_value += often[stem] <= _FEW and stem not in _CALENDAR
    covered, single = covered / weight if weight else 0.0, len(shared) == 1
    if shared and SPACELESS.search(asked.text) and _STRONG.search(later):
        covered, single = 1.0, False  # stems are pairs of characters: a name has one or two
    found = [
        covered,
        float(single),
        float(not missing.isdisjoint(asked.subject)),
        float(min(_MOST_RARE, rare)),
        float(min(_SHARED, rare_value)),
        len(both) / max(1, len(before)),
        float(later in list(texts)[:2]),
    ]
    if _BIAS + sum(map(mul, WEIGHTS.values(), found)) + _MOST_FURTHER <= least:
        return (*found, 0.0, 0.0, 0.0)
    ends = denies = False
    for sentence, stems in _sentences(later, analyser) if value else ():
        if not value.isdisjoint(stems):
            ends = ends or _STRONG.search(sentence) is not None
            denies = denies or may_end(sentence) or _NOT.search(sentence) is not None
    narrows = False
    if missing and not ((ends or denies) and rare_value):
        for one in (asked.text, earlier):
            has = asked.stems & after
            narrows = narrows or _narrows_subject(one, missing, has, analyser, asked, one is asked.text)
    return (*found, float(ends), float(denies), float(narrows))


def is_apart(
    asked: PresentQuestion,
    earlier: str,
    later: str,
    texts: Mapping[str, Set[str]],
    analyser: Analyser,
    *,
    year: int,
    briefly: bool = False,
) -> bool:
    """Whether the later of two notes is about another thing or person than a question, or not about the present.

    Args:
        texts, year: as for :func:`retelling`.
        briefly: whether the later note may be about a short time.
    """
    before, after = texts[earlier], texts[later]
    had, has = _asked_of(asked, earlier, texts, later, analyser), asked.stems & after
    if not (had - has).isdisjoint(asked.names) or not _keeps_numbers(asked, earlier, later):
        return True
    told = _sentences(later, analyser)
    if not told or later[:1] in _QUOTES or _CALLED_OFF.search(later[:_LONGEST]):
        return True
    best, _ = max(told, key=lambda one: (len(had & one[1]), len(before & one[1])))
    if any(one.rstrip().endswith(("?", "？")) and not has.isdisjoint(stems) for one, stems in told):
        return True
    if not briefly and (
        is_temporary(best, f"{asked.text}\n{earlier}")
        or _holds_again((before - asked.stems - _MEASURES) & after, told, analyser)
    ):
        return True
    known = before | asked.stems
    return (
        _is_doubted(best, asked, year)
        or _is_about_another_person(best, known, asked, analyser)
        or _is_about_unnamed_thing(best, has, known, analyser)
        or _is_about_part(best, asked, known, analyser)
        or _denies_another_value(best, (before - asked.stems) & after, analyser)
    )


def _sentences(text: str, analyser: Analyser) -> list[tuple[str, Set[str]]]:
    """The sentences of a text with their stems."""
    return [(one, stems_in(one, analyser)) for one in _SENTENCE.split(text[:_LONGEST]) if one.strip()]


def _asked_of(
    asked: PresentQuestion, earlier: str, texts: Mapping[str, Set[str]], later: str, analyser: Analyser
) -> Set[str]:
    """The question's stems that the earlier note has, except for a kind of value that the later note does not name.

    "Which Ruby does the mailer need?", "The mailer needs Ruby 3.1", "Bumped the mailer to 3.3".
    """
    had = asked.stems & texts[earlier]
    if had <= texts[later] or not _DIGIT.search(later[:_LONGEST]):
        return had
    for kind, _ in _NUMBERED.findall(earlier[:_LONGEST]):
        had -= stems_in(kind, analyser) - texts[later]
    return had


def shares_little(
    asked: PresentQuestion, before: Set[str], after: Set[str], texts: Collection[Set[str]]
) -> bool:
    """Whether two notes share too little: hardly a word, only names, or only words that many texts have."""
    had, both = asked.stems & before, before & after
    shared = had & after
    if not shared and len(both - _MEASURES) < _SHARED:
        return True
    if shared <= asked.names and (both <= asked.names or (not had <= asked.names and both <= asked.stems)):
        return True
    often = Counter(chain.from_iterable(texts))
    alike = 0
    for stem in both:
        if often[stem] <= _FEW:
            return False
    for one in texts:
        alike += shared <= one
    return alike > _ALIKE


def _keeps_numbers(asked: PresentQuestion, earlier: str, later: str) -> bool:
    """Whether a later note has each number of a question after the same word, if the earlier note does: "runner 3"."""
    named = set(_NUMBERED.findall(asked.text.lower()))
    named = named and named & set(_NUMBERED.findall(earlier.lower()))
    return not named or named <= set(_NUMBERED.findall(later.lower()))


def _wished(asked: PresentQuestion) -> Set[str]:
    """The words for wishes if the question has one, since a wish then answers it; else none."""
    return _WISHES if not _WISHES.isdisjoint(_WORD.findall(asked.text.lower())) else frozenset()


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
        if _STAYS.search(sentence):
            return True
    return False


def _is_doubted(sentence: str, asked: PresentQuestion, year: int) -> bool:
    """Whether a sentence is about a wish, another time or an additional thing, or reports what somebody else says."""
    sentence = _REFUSED.sub("", sentence)
    found = [word for word in _WORD.findall(sentence) if word != "May"]  # the month
    lows = {word.lower().replace("’", "'") for word in found}
    quoted = _QUOTED.search(sentence)
    own = quoted is not None and sentence[: quoted.start()].strip(" :").lower() in _ROLES
    return (
        not lows.isdisjoint(_DOUBTED - _wished(asked))
        or sentence[:1] in _QUOTES
        or (quoted is not None and not own and len(quoted[1].split()) > 3)
        or not is_in_force(sentence, asked.text)
        or _DENIED.search(sentence) is not None
        or (_FURTHER.search(sentence) is not None and _FURTHER.search(asked.text) is None)
        or _DOUBTED_ABROAD.search(sentence) is not None
        or _PLANNED.search(sentence) is not None
        or (_ONE_DAY.search(sentence) is not None and _STRONG.search(sentence) is None)
        or any(int(one) < year for one in _YEAR.findall(sentence))
    )


def _is_about_another_person(
    sentence: str, known: Set[str], asked: PresentQuestion, analyser: Analyser
) -> bool:
    """Whether a sentence is about something that belongs to somebody else: "Karla's brother", "Ana's bike".

    Also where it names the person asked about only as the owner of something else: "Karla's office has a new number".
    """

    def is_known(word: str) -> bool:
        return not known.isdisjoint(analyser.terms(word))

    for match in _OWNED.finditer(sentence):
        owner, thing = match[1], match[2].lower()
        if owner[0].isupper() and analyser.terms(owner) and not is_known(owner) and is_known(thing):
            return True
    found = _WORD.findall(sentence)
    named = [place for place, word in enumerate(found) if not asked.stems.isdisjoint(analyser.terms(word))]
    owners = {
        place
        for place in named
        if found[place].replace("’", "'").endswith("'s")
        and not any(map(is_known, found[place + 1 : place + 3]))
    }
    people = {place for place in named if not asked.names.isdisjoint(analyser.terms(found[place]))}
    if (people and people <= owners) or (
        named and all(place in owners or place + 1 in owners for place in named)
    ):
        return True
    if _OURS.search(asked.text) and not _OURS.search(sentence):
        theirs = (found[max(0, place - 2) : place] for place in named)
        if any(word.lower() in ("their", "his", "her") for two in theirs for word in two):
            return True
    # The answer to "who …" may be a relative; what a relative has or does is another matter.
    lows = [word.lower().replace("’", "'") for word in found]
    answers = asked.text[:3].lower() == "who"
    lows = [low for low, after in zip(lows, [*lows[1:], ""], strict=True) if after not in _REPORTS]
    return any(
        word in _OTHERS
        and not is_known(word)
        and not (answers and not (place and lows[place - 1].endswith("'s")))
        for place, word in enumerate(lows)
    )


def _is_about_part(sentence: str, asked: PresentQuestion, known: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence is about an unnamed part of what is asked about: "The platform of the tower is …"."""
    match = _PART.match(sentence)
    if match is None or asked.subject.isdisjoint(analyser.terms(match[2])):
        return False
    part = analyser.terms(match[1])
    return bool(part) and known.isdisjoint(part)


def _denies_another_value(sentence: str, value: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence denies a value that the earlier note does not have, and names none: "It is not at Anna's"."""
    if _IS_NOT.search(sentence) is None or _GOES_ON.search(sentence) is not None:
        return False
    return value.isdisjoint(stems_in(sentence, analyser)) if value else True


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
    text: str, missing: Set[str], has: Set[str], analyser: Analyser, asked: PresentQuestion, is_question: bool
) -> bool:
    """Whether a word that the later note lacks narrows the subject of a text: "night" in "the night bus".

    In a question, so does a word after a preposition: "the code of the shop".
    """
    if not missing:
        return False
    written = _WORD.findall(text)
    found = _WORD.findall(text.lower())
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
