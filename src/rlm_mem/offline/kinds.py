"""Rules for whether an answer is of the kind that the question asks for: a number with its unit, a place, a reason …"""

from __future__ import annotations

import re
from datetime import date

from rlm_mem.offline.candidates import Candidate
from rlm_mem.offline.extraction import MEASURED, PAST, gives_price, is_named_figure, piece, reason_after
from rlm_mem.offline.passages import Sentence
from rlm_mem.offline.phrases import LASTS, LOOSE, PLACE, ROLE, TITLED
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import HOW_LONG, HOW_MANY, KIND, WHAT, WHEN, WHERE, WHO, WHY
from rlm_mem.offline.word_classes import stem_of, value_pattern
from rlm_mem.text.dates import DAY_NAMES, find_dates
from rlm_mem.text.defaults import ASKS_USUAL
from rlm_mem.text.patterns import late

_WHAT_TIME = late(r"\b(?:what|which) time\b(?! of)", re.IGNORECASE)
_CLOCK = late(
    r"\b\d{1,2}[:.]\d{2}\b|\b\d{1,2}\s?[ap]\.?m\b|\bo['’]?clock\b|\b(?:noon|midday|midnight)\b"
    r"|\b(?:half past|quarter (?:past|to))\b"
    r"|\b(?:at|before|after|by|from|until) "
    r"(?:\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b",
    re.IGNORECASE,
)
_PORT = late(r"\b(?:what|which)\b(?: \w+){0,6}? port\b(?! (?:city|town))", re.IGNORECASE)
_PORT_NUMBER = late(r"(?<![\w.])\d{1,5}(?![\w.]\d|\w)")
_PRICE = late(
    r"\bhow much\b.{0,100}\b(?:costs?|pay|paid|charged?|prices?|earn|spend|spent|offered|worth)\b"
    r"|\bhow much (?:is|are|was|were) (?:an?|one|each|the|our|my|your|their)\b|\b(?:what|which) price\b",
    re.IGNORECASE,
)
_DAY = late(
    rf"(?<!\d)\d{{1,2}}(?:st|nd|rd|th)?(?!\d)|\b(?:{'|'.join(DAY_NAMES)}|day|today|tomorrow|yesterday)",
    re.IGNORECASE,
)
_AGE = late(r"\bhow old\b|\bage\b", re.IGNORECASE)
_ADDRESS = late(
    r"\b(?:what|which)\b(?:['’]s| (?:is|are|was|were))? (?:[\w'’-]+ ){0,4}?"
    r"(?:(?P<noun>phone|telephone|mobile|e-?mail|mail)\W(?:number|address)|(?P<url>url|website)\b)",
    re.IGNORECASE,
)
_REFERENCE_DAY = date(2000, 1, 1)
"""The reference for dates without a year."""


def has_form(question: Question, text: str) -> bool:
    """Whether a text has the form that ``question`` requires: a clock time, a port, an amount of money, an address.

    A place must be more than a number or a date, and a day more than a month. True for all other questions.
    """
    if question.grain == "day":
        return bool(_DAY.search(text))
    if question.kind is WHERE:
        for found in reversed(find_dates(text, _REFERENCE_DAY)):
            text = text[: found.start] + text[found.end :]
        return any(map(str.isalpha, text))
    if _WHAT_TIME.search(question.text):
        return bool(_CLOCK.search(text))
    if _PORT.search(question.text):
        return any(0 < int(one) < 65_536 for one in _PORT_NUMBER.findall(text)[:20])
    if _PRICE.search(question.text):
        return gives_price(question, text)
    asked = _ADDRESS.search(question.text)
    if asked is not None:
        pattern = value_pattern(stem_of(asked["noun"] or asked["url"]))
        return pattern is None or bool(pattern.search(text))
    return True


_FORMS = (
    (
        late(
            r"\b(?:longest|shortest|largest|smallest|biggest|greatest|highest|lowest|deepest|widest|most|least"
            r"|max(?:imum)?|min(?:imum)?|up to (?:what|which|how))\b"
            r"|\bhow (?:many|much|long|far|big|large|deep|wide|high|often|old)\b.{0,60}"
            r"\b(?:can|may|must|could|allowed)\b",
            re.IGNORECASE,
        ),
        late(
            r"\b(?:at (?:the )?(?:most|least)|up to|(?:no|not) (?:more|fewer|less|longer|larger|older|newer) than"
            r"|max(?:im(?:um|al))?|min(?:im(?:um|al))?|limit(?:s|ed)?|longer|larger|beyond|above|exceeds?"
            r"|or (?:more|fewer|less|older|newer))\b",
            re.IGNORECASE,
        ),
    ),
    (ASKS_USUAL, late(r"\b(?:defaults?|unless|otherwise)\b", re.IGNORECASE)),
    (
        late(
            r"\b(?:what|which|longest|shortest)\b.{0,30}"
            r"\b(?:period|duration|time|interval|delay|timeout|pause|age)\b",
            re.IGNORECASE,
        ),
        LASTS,
    ),
)
"""What a question asks for besides its kind, and the words that give it: a limit, a default, a duration."""


def forms_asked(question: Question) -> list[re.Pattern[str]]:
    """Patterns of the words that give a limit, a default or a duration, for each that the question asks for."""
    return [given for asked, given in _FORMS if asked.search(question.text)]


def is_wrong_kind(question: Question, candidate: Candidate) -> bool:
    """Whether a candidate cannot be what ``question`` asks for, whatever its score.

    Besides `has_form`: a count or a measure needs a figure in its sentence that is not in the question (for "how
    large", one with a unit); the time of a past event is neither a date after its passage nor the start of a period
    ("since"); a duration has a unit, or begins with "since" or "until"; a place has a name, or follows a word such
    as "in".
    """
    if not has_form(question, candidate.text):
        return True
    if question.kind is WHEN:
        return candidate.form == "date" and _is_other_time(question, candidate)
    if question.kind is HOW_LONG:
        if candidate.form == "number":
            return not _AGE.search(question.text)
        return candidate.form == "date" and candidate.lead not in ("since", "until", "till")
    if question.kind is WHERE:
        return fit_of(question, candidate) == 0.0
    if question.kind is HOW_MANY:
        return is_named_figure(question, candidate.text) or (
            piece(question, candidate.sentence, candidate.passage.at) is None
        )
    return False


_PLANNED = late(
    r"\b(?:plan|planned|planning|going to|will|would|scheduled|due|expected|supposed)\b", re.IGNORECASE
)


def _is_other_time(question: Question, candidate: Candidate) -> bool:
    """Whether a date cannot be the time of the event asked for: "since March", or a later date for a past event."""
    if candidate.lead in question.text.lower().split():
        return False
    if candidate.lead == "since":
        return True
    return candidate.ahead and bool(PAST.search(question.text)) and not _PLANNED.search(question.text)


def fit_of(question: Question, candidate: Candidate) -> float:
    """How certainly a candidate is of the kind asked for, 0 to 1; 0.5 if the kind has no special form."""
    sentence = candidate.sentence
    if question.kind is WHERE:
        return float(bool(PLACE.search(_with_lead(candidate)) or TITLED.search(candidate.text)))
    if question.kind is WHO:
        titled = TITLED.search(candidate.text) or ROLE.search(candidate.text)
        return float(candidate.form == "author" or titled is not None)
    if question.kind is WHY:
        after = [one.text for one in candidate.passage.sentences if one.start > sentence.start][:1]
        part = reason_after(question, sentence, after)
        return 1.0 if part is not None and part.fit > 0.5 else float(bool(LOOSE.search(sentence.text))) / 2
    if question.focus and question.kind in (WHAT, KIND):
        noun = Sentence(question.focus.split()[-1], 0).stems
        return float(bool(noun & (candidate.passage.stems | candidate.passage.before_stems)))
    return 0.5


def share_needed(question: Question, candidate: Candidate) -> float:
    """The least share of a question that the sentence of a candidate must match, 0 to 1, if no speaker is named.

    The more certain the kind of a candidate, the smaller the share: 0 for a comparison of two figures, small for a
    person, a place, a reason or a measure with its unit, largest for anything else, such as a count of unnamed
    things. Above 1, which no sentence reaches, for a candidate of another kind.
    """
    if candidate.form == "compared":
        return 0.0
    fit = fit_of(question, candidate)
    if question.kind is HOW_MANY and candidate.form == "number":
        part = piece(question, candidate.sentence, candidate.passage.at)
        if part is not None and (candidate.text in part.text or part.text in candidate.text):
            return 0.5 if MEASURED.search(question.text) else 0.7
    return 2.0 if fit == 0.0 else 0.45 if fit == 1.0 else 0.6


def _with_lead(candidate: Candidate) -> str:
    """The text of a candidate with the word before it: "at", "in", "behind" …"""
    if candidate.first < 1:
        return candidate.text
    words = candidate.sentence.words
    return candidate.sentence.text[words[candidate.first - 1].start : words[candidate.last].end]
