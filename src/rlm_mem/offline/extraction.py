"""Find the part of a sentence that answers: a time, place, person, figure, reason, object, or all of it."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from rlm_mem.offline.candidates import may_be_person
from rlm_mem.offline.passages import Reading, Sentence
from rlm_mem.offline.phrases import (
    AGED,
    BECAUSE,
    CONDITION,
    CUT,
    FORBIDDEN,
    FUNCTION_WORDS,
    LASTS,
    LOOSE,
    NO_PERSON,
    NOT_PLACES,
    OFTEN,
    PATH,
    PLACE,
    REASON_FOLLOWS,
    ROLE,
    SO,
    SPLIT,
    TIME,
    TITLED,
)  # fmt: skip
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import CHOICE, HOW_LONG, HOW_MANY, NAME, WHEN, WHERE, WHO
from rlm_mem.offline.times import moments
from rlm_mem.offline.word_classes import NUMBER, degree, same_words, stem_of, value_pattern
from rlm_mem.record import FrozenRecord
from rlm_mem.text.by_language import ENGLISH_NEGATION
from rlm_mem.text.patterns import late, word_set

MAX_WORDS = 45
"""Most words of a whole sentence as an answer; a longer one is cut at a comma or semicolon."""


_AND_DOES = late(r"(?<!\s)\s++and\s++\w+s\s")
_UNIT = late(r"[\s-]{0,8}+(%|per\s?cent|[A-Za-z°]+)(?:\s+(?:a|an|per)\s+\w+)?")
_CLAUSE_VERB = late(r"\s(?:is|are|was|were|has|have|had|will|can|must|should)\s", re.IGNORECASE)
_ORIGIN = late(r"\bwhere\b.{0,100}\bfrom\W*$", re.IGNORECASE)
_ORIGIN_WORDS = late(r"\bfrom\b(?!\s[^,.;:]{1,40}\sto\s)|\b(?:born|native|raised|grew up)\b", re.IGNORECASE)
"""Words for an origin; "from wood to coal" is a change."""
MEASURED = late(r"\bhow (?:high|far|big|tall|deep|heavy|fast|large|small|wide|thick)\b", re.IGNORECASE)
_MEASURE = late(
    r"[\s-]?(?:%|percent|[kmgt]?i?b\b|bytes?|bits?|characters?|chars|lines?|words?|pixels?|px|[kcm]?m\b|[kcm]m2|met(?:er|re)s?"
    r"|kilomet|centimet|millimet|inch|feet|foot|miles?|kg\b|g\b|kilos?|grams?|tons?|pounds?|lit(?:er|re)s?|l\b|km/h|mph"
    r"|degrees?|°|times?|rows?|columns?|items?|entries|points?|stor(?:y|ey)s?|stories|floors?|volts?|watts?|[kmg]?hz\b)",
    re.IGNORECASE,
)
PAST = late(
    r"\bwhen (?:did|was|were|has|have|had)\b|\b(?:year|month|week|day|date) (?:did|was|were)\b", re.IGNORECASE
)
"""Questions about the time of a past event."""
_HYPOTHETICAL = late(r"\b(?:if|unless|would|should)\b", re.IGNORECASE)
_TIMES_ASKED = frozenset({stem_of("times")})
_PREPOSITION_BEFORE = late(r"\b(?:in|on|at|to|from|with|via|into|since|until|till|during)$")
_ACTED_ON = late(r"\b(?!(?:is|was|has|as|thus|called|named|titled)$)[a-z]{2,20}(?:ed|[^s\W]s)$")
"""A verb with the following name as its object: "runs Debian"."""
_DONE_BY = late(r"(?:ed|en|wn|de|ld|nd|un) by$")
_MAX_PLACES = 12  # place phrases checked in one sentence, which bounds the work on unusual texts


class Piece(FrozenRecord, frozen=True):
    """An answer and its fit: 1 for a part of exactly the kind asked for, 0 for a whole sentence.

    ``alone``: the sentence has no other part of this kind.
    """

    text: str
    fit: float
    alone: bool = True


def trimmed(text: str) -> str:
    """A sentence as an answer: without marks of lists and tasks and full stop, cut to a bounded length."""
    plain = re.sub(r"^[\s*•>#-]+(?:\[[ xX]\]\s)?|^\[[ xX]\]\s", "", text).strip()
    if plain.count("**") % 2:
        plain = plain.replace("**", "", 1)  # the end of a label whose beginning was a mark: "- **Cause:** …"
    if len(plain.split()) > MAX_WORDS:
        head = " ".join(plain.split()[:MAX_WORDS])
        cut = max(head.rfind(mark) for mark in (", ", "; ", ": "))
        plain = head[:cut] if cut > 40 else head + " …"
    return plain if plain.count(".") > 1 else plain.rstrip(".")


def piece(question: Question, sentence: Sentence, said: datetime | None) -> Piece | None:
    """The part of ``sentence`` that answers ``question``; None if it has no value of the kind asked for."""
    text = sentence.text
    kind = question.kind
    if re.search(r"\bhow often\b", question.text, re.IGNORECASE):
        found = OFTEN.search(text)
        return Piece(found.group(), 1.0) if found else None
    if re.search(r"\bhow old\b|\bage\b", question.text, re.IGNORECASE):
        return _age(text)
    if kind is WHEN or re.search(r"\bwhat time\b|\bbirthday\b|\bdeadline\b", question.text, re.IGNORECASE):
        return _time(question, sentence, said)
    if kind is HOW_LONG:
        lasting = [(m.start(), m.group()) for m in LASTS.finditer(text) if not _is_echo(question, m.group())]
        return _nearest(question, sentence, _of_question_subject(question, sentence, lasting))
    if kind is HOW_MANY:
        return _figure(question, sentence)
    if kind is WHO:
        return _person(question, sentence)
    if kind is WHERE:
        return _place(question, sentence)
    if kind is CHOICE:
        return _option(question, text)
    for term in map(stem_of, question.focus.split()) if question.focus else question.terms:
        pattern = value_pattern(term)
        values = (
            [(one.start(), one.group().rstrip(".,;")) for one in pattern.finditer(text)] if pattern else []
        )
        if values:
            return _nearest(question, sentence, _of_question_subject(question, sentence, values))
    if kind is NAME:
        named = re.search(
            r"\b(?:named|called|nicknamed|known as|name is|names? (?:are|was)|titled)\s+(.+)", text
        )
        if named:
            return Piece(_phrase(named[1]), 1.0)
        if not any(
            w.text[0].isupper() and n and w.stem not in question.terms for n, w in enumerate(sentence.words)
        ):
            return None  # there is no name
    return _object(question, sentence) or Piece(trimmed(text), 0.3)


def _phrase(text: str) -> str:
    """The text up to the end of the phrase: a comma, a conjunction of clauses, the full stop."""
    found = CUT.search(text, 1)
    head = text[: found.start()] if found else text
    if len(head.split()) > 3 and (further := _AND_DOES.search(head)):
        head = head[: further.start()]
    return head.strip().rstrip(".,;:!?").strip()


def _question_places(question: Question, sentence: Sentence) -> list[int]:
    return [
        word.start
        for word in sentence.words
        if any(word.stem == term or word.stem in same_words(term) for term in question.terms)
    ]


_IDENTIFIER = late(
    r"(?=.{0,60}[^\W\d_])\w{1,40}(?:[-_./]\w{1,40}){1,5}+|[^\W\d_]{1,20}\d\w{0,20}|[^\W\d_a-z]\w*"
)
"""A name or an identifier: "Ana", "label-svc", "kite-02"."""


def _of_question_subject(
    question: Question, sentence: Sentence, found: list[tuple[int, str]]
) -> list[tuple[int, str]]:
    """Those of several values that follow a name in the question: "main-api is on 9229, label-svc on 9231".

    All if there are none.
    """
    asked = {word.low.removesuffix("'s") for word in Sentence(question.text, 0).words}
    names = [
        (word.start, word.low.removesuffix("'s") in asked)
        for word in sentence.words[1:]
        if word.text != "I" and _IDENTIFIER.fullmatch(word.text)
    ]
    own = [
        one
        for one in found
        if next((is_asked for start, is_asked in reversed(names) if start < one[0]), False)
    ]
    return own or found


def _nearest(question: Question, sentence: Sentence, found: list[tuple[int, str]]) -> Piece | None:
    """The one of several values that is nearest to a word of the question."""
    if not found:
        return None
    places = _question_places(question, sentence) or [0]
    _, text = min(found, key=lambda one: min(_distance(sentence.text, one[0], place) for place in places))
    return Piece(text.strip(" .,;"), 1.0, len({one for _, one in found}) == 1)


_SEPARATOR_DISTANCE = 40
"""Characters that are added to a distance for a comma or semicolon."""


def _distance(text: str, one: int, other: int) -> int:
    """The distance of two places, longer if a comma or semicolon is between them.

    In "early 140, late 190" the second figure belongs to "late".
    """
    between = text[min(one, other) : max(one, other)]
    return len(between) + _SEPARATOR_DISTANCE * (", " in between or "; " in between)


def _age(text: str) -> Piece | None:
    for match in AGED.finditer(text):
        value = match[1] or match[2]
        if value is None:
            return Piece(match.group().rstrip("."), 0.8)
        if NUMBER.fullmatch(value):
            return Piece(match.group() if match[2] else value, 1.0)
    return None


_IN_ORDER = late(r"\b(?:next|first|last|latest|previous)\b", re.IGNORECASE)


def _time(question: Question, sentence: Sentence, said: datetime | None) -> Piece | None:
    text = sentence.text
    spans: list[tuple[int, int]] = []
    for match in TIME.finditer(text):
        start, end = match.span()
        while start < end and text[start].isspace():
            start += 1
        if spans and not text[spans[-1][1] : start].strip(" ,"):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    relative = [m for m in moments(text, said) if m.shape.startswith("relative")] if said else []
    outside = [m for m in relative if not any(s <= m.start and m.end <= e for s, e in spans)]
    phrases = [(s, text[s:e]) for s, e in spans] + [(m.start, m.words) for m in outside]
    past = bool(PAST.search(question.text))
    phrases = [
        one
        for one in phrases
        if not _is_echo(question, one[1])
        and not (past and _HYPOTHETICAL.search(text[max(0, one[0] - 200) : one[0]]))
    ]
    order = _IN_ORDER.search(question.text)
    at = re.search(rf"\b{order.group()}\b", text, re.IGNORECASE) if order else None
    if at is not None:  # "every month; the next one is on 3 May"
        phrases = [one for one in phrases if one[0] + len(one[1]) >= at.start()][:1] or phrases
    found = _nearest(question, sentence, _of_question_subject(question, sentence, phrases))
    if found is None:
        condition = CONDITION.search(text)
        return Piece(_phrase(condition.group()), 0.6) if condition and condition.start() else None
    plain = re.sub(
        r"^(?:on|in|at|to|and|about|the)\s++(?=\d|[A-Z])|(?<!\s)\s++(?:at|of|in|and|to)$", "", found.text
    )
    return replace(found, text=plain.strip())


def _figure(question: Question, sentence: Sentence) -> Piece | None:
    text = sentence.text
    found = []
    mass = _HOW_MUCH.match(question.text)
    measured = MEASURED.search(question.text)
    price = bool(_PRICE_ASKED.search(question.text))
    amount = price or re.search(r"\bhow much\b", question.text, re.IGNORECASE) is not None
    times = [match.span() for match in TIME.finditer(text)]
    figures = [
        match
        for match in NUMBER.finditer(text)
        if not any(start <= match.start() < end for start, end in times)
        and not is_named_figure(question, match.group())
    ]
    for match in figures:
        unit = _UNIT.match(text, match.end())
        word = unit[1].lower() if unit else ""
        if _counts_other_thing(question, text, match.end()):
            continue
        figure_text = match.group() + (unit.group() if unit and word not in FUNCTION_WORDS else "")
        counted = any(stem_of(word) == term for term in question.terms) if word else False
        if _TIMES_COUNTED.search(question.text) and _OF_TIME.match(word):
            continue
        if amount and word in word_set("years year months days hours minutes weeks"):
            continue
        if mass and _amount_of(mass["noun"], text, match.end()):
            return Piece(figure_text.strip(), 1.0)
        if measured and not _MEASURE.match(text, match.end()):
            continue  # "how large" needs a number with a unit
        if re.fullmatch(r"(?:19|20)\d\d", match.group()) and not counted:
            continue  # a year is not a count
        found.append((not counted, match.start(), figure_text.strip()))
    if amount:  # amounts are preferred to "20 of them", and a price must not be another amount
        amounts = [
            one for one in found if (gives_price(question, one[2]) if price else _AMOUNT.search(one[2]))
        ]
        found = amounts or [one for one in found if not (price and _AMOUNT.search(one[2]))]
    if not found:
        return None
    if any(not far for far, *_ in found):
        _, place, figure_text = min(found)
        with_verb = next((one for one in figures if _verb_follows_figure(question, text, one.end())), None)
        if with_verb is not None:
            return Piece(with_verb.group(), 1.0)
        part = next((one for one in figures if _OF_THEM.fullmatch(text, one.end(), place)), None)
        return Piece(part.group() if part else figure_text, 1.0, len(figures) == 1)
    own = _of_question_subject(question, sentence, [(place, figure_text) for _, place, figure_text in found])
    nearest = _nearest(question, sentence, own)
    fit = 0.8 if price and nearest and not gives_price(question, nearest.text) else 1.0
    return nearest and replace(nearest, fit=fit, alone=len(figures) == 1)


def _verb_follows_figure(question: Question, text: str, end: int) -> bool:
    """Whether the verb of a "how many …" follows a figure that ends here: "5 shares, 3 needed"."""
    unit, asked = _UNIT.match(text, end), _HOW_MANY.search(question.text)
    verbs = {word.stem for word in Sentence(question.text[asked.end() :], 0).words} if asked else set()
    return unit is not None and unit[1].lower() not in FUNCTION_WORDS and stem_of(unit[1]) in verbs


MONEY = late(
    r"[$€£¥₹]\s?\d|\d\s?(?:[$€£¥₹]|[kKmM]?\s?(?:kr|euros?|dollars?|pounds?|cents?|pence|francs?|yen|rupees?|crowns?|[A-Z]{3})\b)"
    r"|\b(?:free|nothing|(?:hundred|thousand|million|\w+) (?:euros?|dollars?|pounds?|cents?))\b"
)
"""An amount of money."""
_PRICE_ASKED = late(r"\b(?:prices?|costs?|pay(?:s|ing)?|paid|charged?|rent|fee)\b", re.IGNORECASE)
_AMOUNT = late(r"[$€£¥%]|\d\s?[^\W\d_]")
"""A figure with a currency or a unit."""


def gives_price(question: Question, text: str) -> bool:
    """Whether a text has an amount of money or, for "how much tax do we pay?", a percentage."""
    return bool(MONEY.search(text) or ("%" in text and _HOW_MUCH.match(question.text)))


_OF_THEM = late(r" (?:out )?of (?:the |our |its |these |those )?")
"""The words between a number and the total: "two of the five"."""
_HOW_MUCH = late(r"\W*how much (?!is\b|are\b|do\b|does\b|did\b|was\b|were\b)(?P<noun>\w+)", re.IGNORECASE)


def _amount_of(noun: str, text: str, end: int) -> bool:
    """Whether a figure that ends here is an amount of the thing in question: "16 GB of RAM", "350 g water"."""
    following = re.match(r"\s?[^\W\d_]{1,12}\s(?:of\s)?(\w+)", text[end : end + 60])
    return following is not None and stem_of(following[1]) == stem_of(noun)


_TIMES_COUNTED = late(r"\bhow many times\b", re.IGNORECASE)
_OF_TIME = late(r"(?:ms|milliseconds?|s|secs?|seconds?|min|minutes?|h|hours?|days?|weeks?|months?|years?)\Z")
_HOW_MANY = late(
    r"\bhow many (?P<noun>(?:[\w-]++ ){0,2}?[\w-]++)\W++(?:an?|per|is|are|was|were|did|do|does|has|have|had|will|"
    r"would|can|could|should|may|must|there|in|on|of|for|at|to|by|with|from|(?-i:[A-Z]))",
    re.IGNORECASE,
)
_CHANGE_OF_COUNT = late(r"\s(more|fewer|less|additional|extra|further)\b(?! than)", re.IGNORECASE)
_COUNTED = late(r"(?P<before>(?:[\s-]{1,3}[\w'’-]+){1,4})")
_SCALES = word_set("hundred thousand million billion dozen k m times")


def counted_thing(question: Question) -> str:
    """The stem of what "how many …" counts; empty for any other question, and for units of time."""
    asked = _HOW_MANY.search(question.text)
    noun = stem_of(asked["noun"].split()[-1]) if asked else ""
    return noun if noun in question.terms and noun not in _TIMES_ASKED else ""


def _counts_other_thing(question: Question, text: str, end: int) -> bool:
    """Whether a figure that ends here counts something else than the question: "one reading" for rows, "three more"."""
    change = _CHANGE_OF_COUNT.match(text, end)
    if change and change[1].lower() not in question.text.lower().split():
        return True
    noun = counted_thing(question)
    if not noun:
        return False
    following = _COUNTED.match(text, end)
    words = re.findall(r"[\w'’-]+", following["before"].lower()) if following else []
    while words and words[0] in _SCALES:
        words = words[1:]
    named = list(itertools.takewhile(lambda word: word not in FUNCTION_WORDS, words))
    return bool(named) and not any(degree(noun, frozenset({stem_of(word)}), "") for word in named)


def is_named_figure(question: Question, text: str) -> bool:
    """Whether a figure is in the question itself ("thirty" in "how much do thirty gauges weigh")."""
    figures = [found.group().lower() for found in NUMBER.finditer(text)]
    asked = {found.group().lower() for found in NUMBER.finditer(question.text)}
    return bool(figures) and asked.issuperset(figures)


def _person(question: Question, sentence: Sentence) -> Piece | None:
    text = sentence.text
    if question.names and re.match(
        r"\W*who (?:is|was|are|were) [A-Z]\w*\s*\??$", question.text, re.IGNORECASE
    ):
        named = re.escape(question.names[0])
        is_it = re.search(rf"\b(?:is|was|are)\s+{named}\b|\b{named}\s+(?:is|was|are)\b|\b{named},", text)
        return Piece(trimmed(text), 0.9 if is_it else 0.5)  # "who is X": the whole sentence
    asked = {stem_of(name) for name in question.names}
    found = []
    for match in TITLED.finditer(text):
        words = match.group().replace("'s", "").replace("’s", "").split()
        if not match.start() and words[0].lower() in FUNCTION_WORDS:
            words = words[1:]
        kept = [
            w
            for w in words
            if w.lower() not in NO_PERSON
            and w.lower() not in FUNCTION_WORDS
            and not re.search(r"\w[A-Z]{2}|\d", w)
        ]
        within = match.start() and text[match.start() - 1].isalnum()  # "OS" of "iOS"
        if (
            within
            or text.startswith("::", match.end())  # the name of a field, as Obsidian writes it
            or not kept
            or any(stem_of(word) in asked or stem_of(word) in question.terms for word in kept)
        ):
            continue
        place = text.find(" ".join(kept), match.start())
        number = next((n for n, word in enumerate(sentence.words) if word.start >= place), None)
        if number is not None and not (
            may_be_person(sentence, number)
            or _verb_follows_first_word(question, sentence, number)
            or (_FAMILY.fullmatch(kept[-1]) and text[:place].endswith(" the "))
        ):
            continue
        found.append((place, " ".join(kept)))
    is_name = bool(found)
    if not is_name:
        found = [(m.start(), m.group()) for m in ROLE.finditer(text) if not _is_echo(question, m.group())]
    active = re.match(
        r"\W*who(?:se)?\s+(?!is\b|are\b|was\b|were\b|did\b|do\b|does\b|\w+ be\b)",
        question.text,
        re.IGNORECASE,
    )
    if active:  # the subject of an action does not follow a preposition such as "in" or "from"
        found = [one for one in found if not _PREPOSITION_BEFORE.search(_words_before(text, one[0]))]
        found = [one for one in found if not _ACTED_ON.search(_words_before(text, one[0]))]
    by = [one for one in found if _DONE_BY.search(_words_before(text, one[0]))]
    listed = _with_enumerations(text, by if active and by else found, found)
    nearest = _nearest(question, sentence, listed)
    return nearest if is_name or nearest is None else replace(nearest, fit=0.8)


_FAMILY = late(r"[^\W\d_a-z][^\W\d_]{2,30}(?<![su])s")
"""A name that may be a family after "the": "the Okonkwos"."""
_LISTED = late(r"\s?,\s(?:and\s)?|\s(?:and|&)\s")


def _with_enumerations(
    text: str, chosen: list[tuple[int, str]], names: list[tuple[int, str]]
) -> list[tuple[int, str]]:
    """The chosen names, each with the other names of its enumeration: "Ana, Ben and Ruth"."""
    runs: list[tuple[int, int]] = []
    for place, name in names:
        if runs and _LISTED.fullmatch(text, runs[-1][1], place):
            runs[-1] = (runs[-1][0], place + len(name))
        else:
            runs.append((place, place + len(name)))
    return [
        next(((start, text[start:end]) for start, end in runs if start <= place < end), (place, name))
        for place, name in chosen
    ]


_WHO_DOES = late(r"\W*who\s+(?P<verb>\w+)", re.IGNORECASE)


def _verb_follows_first_word(question: Question, sentence: Sentence, number: int) -> bool:
    """Whether the verb of the question follows the first word of a sentence: "Grace wrote …" for "who wrote …"."""
    verb = _WHO_DOES.match(question.text)
    after = sentence.words[number + 1 : number + 2]
    return number == 0 and verb is not None and bool(after) and after[0].low == verb["verb"].lower()


def _words_before(text: str, place: int) -> str:
    """The last few words before a place, without the space after them."""
    return text[max(0, place - 40) : place].rstrip()


def is_asked_elsewhere(question: Question, answer: str, former: str) -> bool:
    """Whether what is asked for is named in an answer, but in other clauses than the one with a former value."""
    noun = stem_of(question.focus.split()[-1]) if question.focus else ""
    clauses = [one for one in re.split(r"[;:,]\s", answer) if noun in Sentence(one, 0).stems]
    return bool(clauses) and not any(former in one for one in clauses)


def only_repeats(question: Question, answer: str) -> bool:
    """Whether an answer only repeats words of a question, other than one of yes or no or a choice.

    In other forms and another order they are new information: "association football" for the sport that a "football
    team" is "associated with".
    """
    if question.kind.is_closed or not _is_echo(question, answer):
        return False
    repeated = [word for word in Sentence(answer, 0).words if word.stem in question.terms]
    forms = {word.low for word in Sentence(question.text, 0).words}
    order = [question.terms.index(word.stem) for word in repeated]
    return order == sorted(order) or all(word.low in forms for word in repeated)


def _is_echo(question: Question, text: str) -> bool:
    return all(word.low in FUNCTION_WORDS or word.stem in question.terms for word in Sentence(text, 0).words)


def _place(question: Question, sentence: Sentence) -> Piece | None:
    text = sentence.text
    if _ORIGIN.search(question.text) and not _ORIGIN_WORDS.search(text):
        return None
    path = PATH.search(text)
    found = []
    matches = [*PLACE.finditer(text)]
    if re.search(r"\bwork", question.text, re.IGNORECASE):
        matches += re.finditer(r"(?<=\bwork )for\s|(?<=\bworks )for\s|(?<=\bworked )for\s", text)
    for match in matches[:_MAX_PLACES]:
        rest = text[match.start() : match.start() + 200]
        if NOT_PLACES.match(rest):
            continue
        phrase = _phrase(rest)
        if _CLAUSE_VERB.search(phrase):
            continue  # "to production is given by …" is a clause, not a place
        later = TIME.search(phrase)
        if later and later.start() > 3:
            phrase = phrase[: later.start()].strip()
        if phrase and not _is_echo(question, phrase.split(maxsplit=1)[-1]):
            found.append((match.start(), phrase))
    if path:
        return Piece(path.group().rstrip(".,"), 1.0)
    verbs = _question_places(question, sentence)
    after_verbs = [one for one in found if any(one[0] > place for place in verbs)] or found
    if not after_verbs:
        return None
    start = min(after_verbs)
    return Piece(re.sub(r"^(?:in|to|into|at)\s+(?=[A-Z]\w+$)", "", start[1]), 0.9)


_CLAUSE_END = late(r"[,;:.!?]\s")
_REJECTS = late(
    r"\b(?:hates?|dislikes?|avoid(?:s|ed)?|stop(?:s|ped)?|quit|drop(?:s|ped)?|ditch(?:ed)?|ban(?:s|ned)?|forbids?|forbade"
    r"|abandon(?:s|ed)?|removed?|replaced?)\b"
    r"|\b(?:instead of|rather than|over|than|from)\s{1,9}(?:\w{1,40}\s{1,9}){0,2}$"
)
"""What rejects the option after it; of a comparison, it must be close."""
_IS = late(r"\s{1,9}(?:is|are|was|were|has been|have been|got)\s{1,9}(?:now\s{1,9})?")
_OUT = late(r"out\b")


def _option(question: Question, text: str) -> Piece | None:
    """The first option that is not rejected ("tabs" of "no more spaces, we use tabs"), or the other of two."""
    low, words = text.lower(), Sentence(text, 0).words
    places = []
    for option in question.options:
        stems = {word.stem for word in Sentence(option, 0).words if word.low not in FUNCTION_WORDS}
        where = next((word for word in words if word.stem in stems), None)
        if where is not None:
            places.append((where.start, where.end, option))
    kept, begin = [], 0
    for start, end, option in sorted(places):
        clause = _CLAUSE_END.split(low[begin:start])[-1]
        said = _IS.match(low, end)
        is_out = said and (FORBIDDEN.match(low, said.end()) or _OUT.match(low, said.end()))
        if not (is_out or _REJECTS.search(clause) or ENGLISH_NEGATION.search(clause)):
            kept.append(option)
        begin = end
    if kept:
        return Piece(kept[0], 1.0 if len(places) > 1 else 0.8)
    others = [option for option in question.options if option not in {one for *_, one in places}]
    return Piece(others[0], 0.7) if len(others) == 1 < len(question.options) else None


def _object(question: Question, sentence: Sentence) -> Piece | None:
    """The noun in question with its number ("gate B12"); None: the whole sentence is the answer."""
    noun = stem_of(question.focus.split()[-1]) if question.focus else None
    for one, after in itertools.pairwise(sentence.words):
        numbered = after.text[0].isdigit() or (after.text[0].isupper() and any(map(str.isdigit, after.text)))
        if one.stem == noun and not one.closes and numbered:
            return Piece(sentence.text[one.start : after.end], 1.0)
    return None


_REFERS_ELSEWHERE = late(r"\b(?:this|that|these|those|such an?) (?:purpose|reason|cause)s?\b", re.IGNORECASE)
"""Refers to a reason that is given elsewhere."""


def _restates(question: Question, text: str) -> bool:
    """Whether a sentence gives no cause and contains words of the event to be explained, so that it only repeats it."""
    stems = Sentence(text, 0).stems
    explained = question.strong - {stem_of(name) for name in question.names}
    return not any(one.search(text) for one in BECAUSE) and any(
        degree(t, stems, "") >= 0.9 for t in explained
    )


def reason_after(question: Question, sentence: Sentence, following: Sequence[str]) -> Piece | None:
    """The reason in a sentence, in the one after it, or before "so" in it; None if there is none."""
    text = sentence.text
    for pattern in BECAUSE:
        found = pattern.search(text)
        if found and not _REFERS_ELSEWHERE.search(found.group()):
            return Piece(trimmed(found.group().strip()), 1.0)
    result = SO.match(text)
    if result and any(degree(term, Sentence(result[2], 0).stems, "") >= 0.9 for term in question.terms):
        return Piece(trimmed(result[1]), 0.9)
    split = SPLIT.match(text)
    if split and any(degree(term, Sentence(split["what"], 0).stems, "") >= 0.9 for term in question.strong):
        return Piece(trimmed(split["why"]), 0.9)
    if following and REASON_FOLLOWS.match(following[0]) and not _restates(question, following[0]):
        inner = next((m for p in BECAUSE if (m := p.search(following[0]))), None)
        return Piece(trimmed(inner.group().strip() if inner else following[0]), 0.9 if inner else 0.7)
    loose = LOOSE.search(text)
    if (
        loose
        and Sentence(loose.group(), 0).stems.isdisjoint(question.terms)
        and not _REFERS_ELSEWHERE.search(loose.group())
    ):
        return Piece(trimmed(text), 0.1)
    return None


_CORRECTED = late(
    r"(?:->|→|[-–—,;:.(…])\s{0,3}(?:(?:oh|ah|er|actually),? )?(?:(?:no|nope|wait|sorry)(?=[,.:;!–—])|no,? wait\b"
    r"|correction(?=[,:])|(?:scratch|strike) that\b|make that\b|i mean\b)",
    re.IGNORECASE,
)
"""The beginning of what takes back a value right before it: "Friday, no wait, Saturday"."""
_RIGHT_AFTER = 20
"""Characters between a value and the end of what takes it back, at most."""


def with_correction(reading: Reading) -> Reading:
    """The rest of the line for an answer that is taken back in it: "25 Oct -> no, it stays 26"."""
    text = reading.passages[0].text if reading.passages else ""
    start = text.find(reading.answer) if reading.answer else -1
    if start < 0:
        return reading
    after = start + len(str(reading.answer))
    if not _CORRECTED.search(text, after, after + _RIGHT_AFTER):
        return reading
    return replace(reading, answer=trimmed(text[start:].partition("\n")[0]))


_PLAIN = late(r"[^\w\s]")
_ARTICLES = frozenset({"a", "an", "the", "and"})


def word_counts(text: str) -> Counter[str]:
    """The words of a text without articles, with their counts."""
    return Counter(word for word in _PLAIN.sub(" ", text.lower()).split() if word not in _ARTICLES)


def word_f1(one: Counter[str], other: Counter[str]) -> float:
    """F1 of two bags of words."""
    both = sum(min(count, other[word]) for word, count in one.items() if word in other)
    return 2 * both / (one.total() + other.total()) if both else 0.0


def mostly_alike(one: str, other: str) -> bool:
    """Whether two answers share most of their words, and a figure if both have figures."""
    bags = word_counts(one), word_counts(other)
    figures = [{word for word in bag if word[0].isdigit()} for bag in bags]
    return word_f1(*bags) >= 0.5 and (not all(figures) or not figures[0].isdisjoint(figures[1]))
