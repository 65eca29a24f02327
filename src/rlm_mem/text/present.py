"""Analyses questions about the present, and detects notes that may answer them."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise, takewhile

from msgspec import Struct

from rlm_mem.text.analysis import SPACELESS, Analyser
from rlm_mem.text.clauses import DETERMINERS, POSSESSIVES, PREPOSITIONS
from rlm_mem.text.languages import is_foreign
from rlm_mem.text.options import options_of
from rlm_mem.text.patterns import late, signed, word_set
from rlm_mem.text.wording import TITLES

LONGEST = 2_000
"""Number of characters read per text."""
WORD = late(r"[^\W_]+(?:['’.:/-][^\W_]+)*")
"""A word, possibly with an inner apostrophe, point or colon: "don't", "3.12", "9:30"."""
_DIGIT = late(r"\d")
_PLAIN = late(r"[^\W_]+")
ROLES = word_set("user human assistant agent system model bot ai me")
"""Speaker labels that are not names."""
_FORMERLY = (
    r"\b(?:previously|formerly|originally|in the past|used to(?= \w)|before(?=\W*$)"
    r"|vorher|damals|früher(?=\W*$)|anteriormente|antes(?=\W*$)|auparavant|autrefois|avant(?=\W*$))\b"
    r"|(?:(?<=\bdid)|(?<=\bwas)|(?<=\bwere))(?P<between>\b[^?]{1,200})\b(?:use to|before\b[^?]*)"
)
"""Words by which a question asks for a former value; "before" and a time may be about the present otherwise: "How
long before an appointment do reminders go out?"."""
_ASKS_FOR_FORMER = signed(_FORMERLY)
_OF_THE_PAST = signed(
    rf"{_FORMERLY}|\b(?:earlier|was|were|had|(?<!the )(?<!\bis )(?<!\bare )last|ago|(?:19|20)\d\d)\b"
)
"""A question about the past; "When are last orders?" is none."""
_TELLS_OF_PAST = late(
    rf"{_FORMERLY}|\b(?:earlier|was|were|had|did|no longer|until|before|[a-z]{{2,20}}ed|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_FORMER_ABROAD = late(
    r"\b(?:früher|vorher|zuvor|damals|auparavant|autrefois|avant|antes|anteriormente|prima|in precedenza|un tempo"
    r"|dawniej|wcześniej|przedtem|poprzednio)\b(?: (?:de|di|que|als|niż|przed) [^?]{1,200}| d['’][^?]{1,200})?"
    r"|\b(?:frühere|ehemalige|vorherige|vorige)[rnms]?\b|\bancien(?:ne)?s?\b|\b(?:anterior(?:es)?|antigu[oa]s?)\b"
    r"|\bprecedent[ei]\b|\b(?:poprzedni|dawn)\w{1,3}\b",
    re.IGNORECASE,
)
_PAST_ABROAD = late(
    r"\b(?:war(?:en)?|hat(?:ten?)?|haben|wurden?|\w{2,20}ten?|\w{1,20}ai(?:en)?t|eran?|erano|fu|fue(?:ron)?|ha|han|hanno"
    r"|\w{1,20}(?:aba|ía|ava|eva|iva)(?:no?)?|\w{1,20}[aiy]ł[aoiy]?)\b",
    re.IGNORECASE,
)
"""Forms of the past in German, French, Spanish, Italian and Polish."""
_LASTS = late(
    r"\b(?:how long|when|what time) (?:do|does|will|can|should|may)\b[^?]{0,200}?\blast\b", re.IGNORECASE
)
"""A question about a duration ("last" as a verb)."""
_HAPPENED = signed(r"\bdid\b(?! (?:we|they|you|i|he|she) (?:decide|agree|choose|pick|settle|opt)\b)")
"""A question about an event; one about a decision asks for what is in force."""
_PARTICLES = word_set("de del della den der di du da la le van von zu zur ter ten bin ibn al el y e dos das")
"""Lower-case words of names."""
_LANGUAGES = frozenset(("english", "german", "french", "spanish", "italian", "polish"))
_ASKS_WHAT = signed(
    r"\W*was (?!(?:the|an?|my|our|your|his|her|their|its?|he|she|there|that|this|these|those|any|some)\b)[a-zäöü]"
)
"""A question that opens with German "was" ("what"); English "was" precedes a capital or one of these words."""
_ASKS_IN_GERMAN = signed(
    r"\W*(?:(?:ab|an|auf|aus|bei|bis|für|in|mit|nach|seit|um|unter|von|zu) )?"
    r"(?:wie|wer|wen|wem|wessen|wann|warum|wo(?:hin|her|mit|für|rin|ran|rauf|von|zu)?|welche[rnms]?)\b"
)
"""The opening of a German question, in which all nouns are capitalised, not only names."""
_WITH_VERB = word_set("do does did can may must should will don't doesn't")
_AUXILIARIES = _WITH_VERB | word_set("is are was were has have had am isn't aren't")
_INTERROGATIVES = word_set("who whom whose what when where which why how")
_BEHIND_SUBJECT = PREPOSITIONS | word_set("of per about through during after before until called named")
_AUXILIARY_WITHIN = 8
"""Maximum index of the auxiliary of a question."""


class PresentQuestion(Struct, frozen=True):
    """A question, analysed for :func:`retelling`.

    Attributes:
        text: the question.
        stems: the stems of its words.
        names: the stems of its names and numbers; abbreviations: those of names in capitals, such as "API", which
            often are the name of a kind.
        subject: the stems of what it asks about: "worker node" of "On which port does the worker node listen?".
        limits: the stems of words right after a preposition, which limit what is asked: "in production".
        asks: whether it is a question, or names an attribute of a thing; not just search terms.
        happened: whether it asks about an event ("did"), so that only a note with a change answers it.
        is_english: whether it has the form of an English question.
        options: the stems of each of the alternatives that it names: "tabs" and "spaces".
        spaceless: whether its script has no spaces between words, so that stems are character bigrams.
    """

    text: str
    stems: frozenset[str]
    names: frozenset[str]
    abbreviations: frozenset[str]
    subject: frozenset[str]
    limits: frozenset[str]
    asks: bool
    happened: bool
    is_english: bool
    options: tuple[frozenset[str], ...]
    spaceless: bool

    @staticmethod
    @lru_cache(maxsize=16)
    def of(text: str, analyser: Analyser) -> PresentQuestion | None:
        """Analyse a question; None if it is about the past, or in an unsupported language.

        Cached, since each rule of a search asks for it.
        """
        if analyser.language not in _LANGUAGES or len(text) > LONGEST or is_of_the_past(text):
            return None
        named = []
        german = is_german(text)
        for place, word in enumerate(WORD.findall(text)):
            if (place and word[0].isupper() and not german) or _DIGIT.search(word):
                named.append(word)
        subject, asks = _subject(text)
        return PresentQuestion(
            text,
            frozenset(analyser.terms(text)),
            frozenset(analyser.terms(" ".join(named))),
            frozenset(analyser.terms(" ".join(filter(_is_abbreviation, named)))),
            frozenset(analyser.terms(" ".join(subject))),
            frozenset(analyser.terms(" ".join(_limits(text)))),
            asks,
            _HAPPENED.search(text) is not None,
            not german and not _INTERROGATIVES.isdisjoint(_PLAIN.findall(text.lower())[:3]),
            _options(text, analyser),
            not text.isascii() and SPACELESS.search(text) is not None,
        )


def _options(text: str, analyser: Analyser) -> tuple[frozenset[str], ...]:
    """The stems by which the alternatives of a question differ; none unless each has such a word."""
    stems = [frozenset(analyser.terms(one)) for one in options_of(text)]
    alone = tuple(one.difference(*(other for other in stems if other is not one)) for one in stems)
    return alone if all(alone) else ()


def _is_abbreviation(word: str) -> bool:
    return len(word) > 1 and word.isalpha() and word.isupper()


def is_german(question: str) -> bool:
    """Whether a question begins with a German question word."""
    return _german_what(question) > 0 or _ASKS_IN_GERMAN.match(question) is not None


def is_of_the_past(question: str) -> bool:
    """Whether a question is about the past, or about what precedes something else."""
    found = _OF_THE_PAST.search(question, _german_what(question))
    if found is not None and found[0].lower() == "last" and (lasts := _LASTS.search(question)) is not None:
        found = _OF_THE_PAST.search(question, lasts.end())
    return found is not None or _former_abroad(question) is not None


def without_former(question: str) -> str | None:
    """A question for a former value without the words that ask for the former one; None for any other question.

    "Where did we live before the fire?" becomes "Where did we live ?", "Who used to be our vet?" "Who is our vet?".
    """
    found = _ASKS_FOR_FORMER.search(question)
    if found is None:
        abroad = _former_abroad(question)
        return None if abroad is None else question[: abroad.start()] + question[abroad.end() :]
    rest = question[found.end() :]
    if found[0].lower() == "used to" and rest.startswith(" be "):
        return f"{question[: found.start()]}is{rest[3:]}"
    return question[: found.start()] + (found["between"] or "") + rest


def _former_abroad(question: str) -> re.Match[str] | None:
    """The word by which a question in another language asks for a former value, beside a form of the past."""
    found = _FORMER_ABROAD.search(question)
    return found if found is not None and is_foreign(question) and _PAST_ABROAD.search(question) else None


def tells_of_past(sentence: str) -> bool:
    """Whether a sentence has a word of the past, so that it may give a former value."""
    return _TELLS_OF_PAST.search(sentence) is not None


def _german_what(question: str) -> int:
    """The length of the German "was" ("what") that opens a question; 0 for an English "was" or other words."""
    was = _ASKS_WHAT.match(question)
    return len(was[0]) - 1 if was is not None and was[0][-1].islower() else 0


def _subject(question: str) -> tuple[list[str], bool]:
    """The words of a question after its auxiliary, up to a preposition, without a final verb; and whether it asks."""
    lows = WORD.findall(question.lower())
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
    if not auxiliary and not asks and (named := _attribute(lows)):
        return named, True
    if not auxiliary and lows[:1] in (["which"], ["what"]):
        found = lows[1:2]  # "Which folder needs two approvals?"
    if not auxiliary and lows[:1] == ["who"]:  # "Who owns the billing code?"
        found = list(takewhile(lambda low: low not in _BEHIND_SUBJECT, lows[2:]))
    if auxiliary in _WITH_VERB and any(low not in DETERMINERS | POSSESSIVES for low in found[:-1]):
        del found[-1]  # the verb; "the hike" in "How long does the hike to the lake take?" ends with none
    return found, asks


def _limits(question: str) -> list[str]:
    """The words right behind a preposition."""
    lows = WORD.findall(question.lower())
    return [after for before, after in pairwise(lows) if before in PREPOSITIONS]


def _attribute(lows: list[str]) -> list[str]:
    """The words before "of the" or the like in keywords that name an attribute: "seat height of the new chairs"."""
    if not {"and", "or"}.isdisjoint(lows):
        return []  # several things
    found = list(takewhile(lambda low: low not in _BEHIND_SUBJECT, lows))
    behind = lows[len(found) + 1 :][:1]
    return found if behind and behind[0] in DETERMINERS | POSSESSIVES else []


@lru_cache(maxsize=512)
def stems_in(text: str, analyser: Analyser) -> frozenset[str]:
    """Stems of a text, cached since a note is compared with several others."""
    return frozenset(analyser.terms(text))


def is_note(author: str | None, asked: PresentQuestion | None = None) -> bool:
    """Whether a text is a note, not the turn of a speaker.

    A label ("gotcha: the key is …", "Driving school phoned: …") is not a speaker, and neither is a thing that the
    question is about.
    """
    if not author or (author[0].islower() and author not in ROLES):
        return True
    parts = author.replace("-", " ").split()
    if any(word[0].islower() and word not in _PARTICLES for word in parts[1:]) or author.lower() in TITLES:
        return True
    low = author.lower()
    if asked is None or low in ROLES or author in asked.text:
        return False
    return set(low.split()) <= set(WORD.findall(asked.text.lower()))
