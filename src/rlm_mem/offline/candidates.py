"""Candidate answers: the parts of the passages that could answer the question.

A candidate consists of words of the memory, or is a date computed from them, "Yes" or "No". `features` and `reader`
choose the best one; comparisons ("which is cheaper?") are decided here, by the figures nearest to each option.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rlm_mem.offline.passages import Passage, Sentence, Word
from rlm_mem.offline.phrases import (
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    FUNCTION_WORDS,
    NO_PERSON,
    PREPOSITIONS,
)
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import CHOICE, HOW_LONG, HOW_MANY, WHEN, WHO, YES_NO
from rlm_mem.offline.times import day_words, moments
from rlm_mem.record import FrozenRecord
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.patterns import late, word_set

_LESS = late(
    r"\b(?:cheaper|cheapest|less|lower|lowest|smaller|smallest|shorter|shortest|fewer|fewest|slower|younger|earlier|lighter)\b",
    re.IGNORECASE,
)
_MORE = late(
    r"\b(?:dearer|more|most|higher|highest|larger|largest|bigger|biggest|longer|longest|older|heavier|faster|taller|greater|later)\b",
    re.IGNORECASE,
)
_COSTS = late(r"\b(?:cheap\w*|dear\w*|expensive|costs?|price\w*)\b", re.IGNORECASE)
_FIGURE = late(r"[$€£]?(\d+(?:[.,]\d+)*)\s*(%|[^\W\d_]+)?")
_MONEY = frozenset(
    {"euro", "euros", "eur", "dollar", "dollars", "usd", "pound", "pounds", "cent", "cents", "quid"}
)
_BARE = frozenset(
    {"", "for", "at", "a", "per", "each", "against", "and", "or", "the", "to", "while", "but", "more", "less"}
)


def compared(question: str, options: Sequence[str], text: str) -> str | None:
    """The option that the figures in ``text`` favour; None if they do not decide.

    Each option is paired with the nearest figure; for a question about a price, only sums of money and
    numbers without a unit count.
    """
    wants_less = bool(_LESS.search(question))
    if wants_less == bool(_MORE.search(question)):
        return None
    figures = _figures(text, bool(_COSTS.search(question)))
    values: list[float] = []
    used: set[int] = set()
    for option in options:
        places = _places(option, text)
        free = [
            (abs(where - place), where, value)
            for where, value in figures
            if where not in used
            for place in places
        ]
        if not free:
            return None
        _, where, value = min(free)
        used.add(where)
        values.append(value)
    if len(set(values)) < len(values):
        return None
    best = min(values) if wants_less else max(values)
    return options[values.index(best)]


def _figures(text: str, money: bool) -> list[tuple[int, float]]:
    found = []
    for match in _FIGURE.finditer(text):
        unit = (match[2] or "").lower()
        if money and unit not in _MONEY and unit not in _BARE and match.group()[0] not in "$€£":
            continue
        number = match[1].replace(",", "")
        if number.count(".") < 2:  # "1.4.2" is a version
            found.append((match.start(), float(number)))
    return found


def _places(option: str, text: str) -> list[int]:
    wanted = set(get_analyser("english").terms(option))
    return [start for term, start, _ in get_analyser("english").located_terms(text) if term in wanted]


MAX_WORDS = 14
"""Most words of a free span; longer ones must be a clause or a sentence."""

# Spans have no article; it is added again when the answer is shown.
_NO_START = CONJUNCTIONS | AUXILIARIES | {'"', "“", "”", "of", "than", "n't", "a", "an", "the"}
_NO_END = (
    CONJUNCTIONS
    | AUXILIARIES
    | DETERMINERS
    | PREPOSITIONS
    | {'"', "“", "i", "we", "he", "she", "they", "not", "so", "very", "really"}
)
_LEAD_OF_DATE = late(r"(since|by|until|till)\b", re.IGNORECASE)
_QUOTED = late(r"[\"“”]([^\"“”]{2,80})[\"“”]")
_DURATION = late(
    r"\b(?:(?:for|about|around|over|almost|nearly|since|only|just)\s+)?"
    r"(?:\d+(?:\.\d+)?|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a few|few|a couple(?: of)?|"
    r"several|half an?|many|some)[\s-]+(?:\w+\s+)?(?:second|minute|hour|day|night|week|month|year|decade)s?"
    r"(?:\s+(?:old|and a half|ago))?\b|\bsince\s+\w+(?:\s\d+)?\b",
    re.IGNORECASE,
)
_NUMBER = late(
    r"[$€£]?\d[\d,.:]*+%?(?:\s?(?:k|km|kg|mm|cm|m|g|%|°c|metres?|meters?|euros?|dollars?|pounds?|miles?|percent|"
    r"hundred|thousand|million|billion|cents?|millimetres?|centimetres?|milliseconds?|minutes?|hours?|seconds?|gigabytes?|people|points?)\b)?"
    r"|\b(?:once|twice|three times|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirty|twenty|dozen|"
    r"hundreds?|thousands?|half)\b(?:\s+(?:times|hundred|thousand|million|dozen))?",
    re.IGNORECASE,
)


class Candidate(FrozenRecord, frozen=True):
    """A candidate answer.

    ``first`` and ``last`` are the numbers of the first and last word it covers in its sentence (-1 if it is not a
    span); ``form`` is ``span``, ``clause``, ``sentence``, ``quote``, ``date``, ``said`` (the day of the passage),
    ``duration``, ``number``, ``author``, ``option``, ``compared``, ``yes`` or ``no``; ``shape`` refines it (for
    dates: that of the ``Moment``). ``lead`` is the word before a date ("since", "by"), lower case, if any;
    ``ahead``: the date is later than its passage.
    """

    text: str
    passage: Passage
    sentence: Sentence
    first: int
    last: int
    form: str
    shape: str = ""
    lead: str = ""
    ahead: bool = False


def candidates(question: Question, passage: Passage) -> Iterator[Candidate]:
    """Yield all candidates of one passage for ``question``, bounded by its length; none only repeats the question."""
    for candidate in _all(question, passage):
        if candidate.first < 0 or candidate.form == "date" or _adds_content(question, candidate):
            yield candidate


def _adds_content(question: Question, candidate: Candidate) -> bool:
    """Whether a span has a content word that is not in the question."""
    names = {name.lower() for name in question.names}
    return any(
        word.stem not in question.terms
        and word.low.removesuffix("'s") not in names
        and word.low not in FUNCTION_WORDS
        for word in candidate.sentence.words[candidate.first : candidate.last + 1]
    )


def _all(question: Question, passage: Passage) -> Iterator[Candidate]:
    for sentence in passage.sentences:
        if question.kind is WHEN:
            yield from _dates(passage, sentence)
        elif question.kind is YES_NO:
            yield Candidate("Yes", passage, sentence, -1, -1, "yes")
            yield Candidate("No", passage, sentence, -1, -1, "no")
        elif question.kind is CHOICE:
            for option in question.options:
                yield Candidate(option, passage, sentence, -1, -1, "option")
            favoured = compared(question.text, question.options, sentence.text)
            if favoured is not None:
                yield Candidate(favoured, passage, sentence, -1, -1, "compared")
        elif question.kind is HOW_LONG:
            yield from _matches(passage, sentence, _DURATION, "duration")
            yield from _dates(passage, sentence)
            yield from _matches(passage, sentence, _NUMBER, "number")
        elif question.kind is HOW_MANY:
            yield from _matches(passage, sentence, _NUMBER, "number")
        elif question.kind is WHO:
            yield from (c for c in _spans(passage, sentence, 8) if _names_person(c))
        else:
            yield from _spans(passage, sentence, MAX_WORDS)
            for match in _QUOTED.finditer(sentence.text):
                first, last = _covered(sentence, match.start(1), match.end(1))
                yield Candidate(match[1].strip(" .,!?"), passage, sentence, first, last, "quote")
    if question.kind is WHO and passage.author and passage.sentences:
        yield Candidate(passage.author, passage, passage.sentences[0], -1, -1, "author")


def _dates(passage: Passage, sentence: Sentence) -> Iterator[Candidate]:
    for moment in moments(sentence.text, passage.at):
        first, last = _covered(sentence, moment.start, moment.end)
        ahead = passage.at is not None and moment.first > passage.at.date()
        lead = _LEAD_OF_DATE.match(sentence.text, moment.start)
        word = lead[1] if lead else sentence.words[first - 1].text if first > 0 else ""
        yield Candidate(
            moment.words, passage, sentence, first, last, "date", moment.shape, word.lower(), ahead
        )
    if passage.at is not None:
        yield Candidate(day_words(passage.at.date()), passage, sentence, -1, -1, "said")


def _matches(
    passage: Passage, sentence: Sentence, pattern: re.Pattern[str], form: str
) -> Iterator[Candidate]:
    for match in pattern.finditer(sentence.text):
        first, last = _covered(sentence, match.start(), match.end())
        yield Candidate(match.group().strip(" .,:"), passage, sentence, first, last, form)


def _covered(sentence: Sentence, start: int, end: int) -> tuple[int, int]:
    """Numbers of the first and last word within these characters; (-1, -1) for none."""
    inside = [n for n, word in enumerate(sentence.words) if word.start >= start and word.end <= end]
    return (inside[0], inside[-1]) if inside else (-1, -1)


def _spans(passage: Passage, sentence: Sentence, longest: int) -> Iterator[Candidate]:
    words = sentence.words
    count = len(words)
    starts = [n for n, word in enumerate(words) if word.low not in _NO_START]
    ends = [
        n
        for n, word in enumerate(words)
        if word.low not in _NO_END and (word.closes or n + 1 == count or _may_end(words[n + 1].low))
    ]
    for first in starts:
        for last in ends:
            if last < first or last - first >= longest:
                continue
            text = sentence.text[words[first].start : words[last].end]
            form = "clause" if words[first].opens and words[last].closes else "span"
            yield Candidate(text, passage, sentence, first, last, form)
    if count > longest:
        yield Candidate(sentence.text.strip(), passage, sentence, 0, count - 1, "sentence")
        for first in starts:
            if words[first].opens or (
                first and words[first - 1].low in ("to", "because", "that", "by", "for")
            ):
                last = next(
                    (n for n in range(min(count - 1, first + longest), count) if words[n].closes), count - 1
                )
                if last - first >= longest:
                    yield Candidate(
                        sentence.text[words[first].start : words[last].end],
                        passage,
                        sentence,
                        first,
                        last,
                        "clause",
                    )


_PEOPLE = word_set(
    """
    mom mum mother dad father parent parents brother sister siblings son daughter kid kids child children
    husband wife partner boyfriend girlfriend friend friends buddy cousin aunt uncle grandma grandpa
    grandmother grandfather niece nephew boss colleague colleagues coworker coworkers teammates teammate
    team coach teacher mentor mentors neighbor neighbour neighbors neighbours roommate doctor manager client
    customer people family folks student students veterans vet officer captain director
    """
)


def _names_person(candidate: Candidate) -> bool:
    """Whether a span names a person: a capitalised word inside the sentence, or a word such as "friend"."""
    words = candidate.sentence.words
    return any(
        words[n].low in _PEOPLE
        or (
            words[n].text[:1].isupper()
            and (n > 0 or candidate.last - candidate.first < 3)
            and may_be_person(candidate.sentence, n)
        )
        for n in range(candidate.first, candidate.last + 1)
    )


def may_be_person(sentence: Sentence, number: int) -> bool:
    """Whether the capitalised word of this number may name a person: no month, no place ("in Gdańsk"), no verb.

    The first word of a sentence always has a capital: it counts if a verb or another name seems to follow it, or if
    it is the only word.
    """
    words = sentence.words
    word = words[number]
    low = word.low.removesuffix("'s")
    if low in NO_PERSON or low in FUNCTION_WORDS:
        return False
    first = number
    while first and _is_capital(words[first - 1]) and not words[first - 1].closes:
        first -= 1  # "in New York": the preposition is before the first word of the name
    before = words[first - 1].low if first and not words[first - 1].closes else ""
    if before in _LEADS_TO_PLACE or before == "the":
        return False
    if number or len(words) == 1 or words[0].closes:
        return True
    after = words[1]
    return low != word.low or after.text[:1].isupper() or after.low in AUXILIARIES or _is_verb(after)


def _is_capital(word: Word) -> bool:
    """Whether a word may be part of a name: capitalised, and not a "The" or "In" at the start of a sentence."""
    return word.text[:1].isupper() and word.low not in FUNCTION_WORDS


def _is_verb(word: Word) -> bool:
    """Whether a word may be the verb of a subject before it; "gaskets" at the end of a sentence is a noun."""
    return word.low.endswith("ed") or word.low in _VERBS_AFTER or (word.low.endswith("s") and not word.closes)


_LEADS_TO_PLACE = word_set(
    """
    in into near through across around inside outside river lake town city village street road mountain bridge
    """
)


def _may_end(after: str) -> bool:
    """Whether a span may end before this word: the word does not look like the head of the same noun phrase."""
    return (
        after in FUNCTION_WORDS
        or after in {'"', "“", "”"}
        or after.endswith("ly")
        or after in _VERBS_AFTER
        or after in _ADVERBS
    )


_ADVERBS = word_set(
    """
    too also then now today yesterday tomorrow last next this ago again here there just already still even
    recently together well back
    """
)
_VERBS_AFTER = word_set(
    """
    is was were are had has have did do does went got made said told gave took came helped makes helps gets
    means meant reminds reminded made feel feels felt love like wanted want started decided
    """
)
