"""Pairs of statements about the same thing that differ: candidates for updates and contradictions.

Pairs found by the rules with which REMEMBER finds replaced and contradicted chunks (``rlm_mem.text.differences``) come
first. For the other pairs, two statements are about the same thing if they share words that are rare among the
statements compared, above all words of the subject. Such a pair is a candidate for an update if the values differ
(numbers, dates, names) or the later one has a word of change, and for a contradiction if one denies words of the other.
The program reads the pairs and decides.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from rlm_mem.record import FrozenRecord
from rlm_mem.text.by_language import NEGATION
from rlm_mem.text.dates import COUNTS
from rlm_mem.text.differences import surest
from rlm_mem.text.distinct import says
from rlm_mem.text.patterns import late
from rlm_mem.text.statement import Stated
from rlm_mem.text.statements import statements_in

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

_VALUE = late(r"(?<![\w.])\d[\d.,:/-]*+%?|(?<![.!?:\n] )(?<=\s)[A-Z][\w'-]++")
_MEASURE = late(
    r"(?<![\w.,:/-])(?!(?:19|20)\d\d\b)(\d[\d.,]{0,15}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
    r"(?:[ -]|(?=%))"
    r"((?:%|[^\W\d_]{2,30})(?: [^\W\d_]{2,30})?)",
    re.IGNORECASE,
)
_LABEL = late(r"(?<=\S )[A-Z][\w.]{1,20} \Z")
"""A name before a number, which is not a count: "Sprint 2", "May 3" and "Flask 3"."""
_CURRENCIES = "$€£¥₹"
_SIGNS = f"{_CURRENCIES}%"
_NEVER_DID = late(
    r"\bI(?:['’]ve| have)? (?:never|haven['’]?t|not|didn['’]?t) "
    r"(?:(?:yet|ever|even|actually|really) )?([^\W\d_]{3,30})",
    re.IGNORECASE,
)
_FIRST_PERSON = late(r"\bI\b")
_CLAUSE_END = late(r"[,;:.!?\n]")
_DENIED_WORDS = 8
"""Maximum words that a denial applies to, up to the end of the clause: "I never went there, so I'm not sure how …"."""
_MIN_SHARED = 2
_RARE_SHARE = 0.1
_RARE_COUNT = 4
"""A word is rare if at most this share, or this number, of the statements compared have it."""
_SAME_MEASURE_BONUS = 0.5
"""Added to the closeness of a pair that counts the same things differently ("3 interviews", "5 interviews"), and once
more if the subject names them."""
_MIN_SHARE = 0.6
"""Pairs with less than this share of the weight of the best pair not found by rule are left out."""
_MAX_PAIRS = 2
"""Maximum pairs of one statement."""
_MAX_ACTION_PAIRS = 5
"""Maximum pairs of a denied action with statements of it."""
_ACTION_BONUS = 2.0
"""Added to the closeness of such a pair: "I've never integrated Redis", "I integrated Redis last week"."""
_RULE_BONUS = 100.0
"""Added to the score of pairs found by the rules, so that they rank above the others."""
_COMMON = frozenset(("i", "i'm", "i've", "i'll", "i'd", "ok"))


Kind = Literal["replace", "contradict"]


class Statement(FrozenRecord, frozen=True):
    """A sentence; ``order`` increases with time, ``key`` identifies the line that contains it."""

    key: int
    order: tuple[str, str, int, int]
    text: str
    speaker: str | None


class Pair(FrozenRecord, frozen=True):
    """Two statements about the same thing, with their shared words and the reason for the pair."""

    newer: Statement
    older: Statement
    shared: tuple[str, ...]
    why: str
    first: bool
    """Whether it comes before others: it denies an action, or has different numbers of a thing in the subject."""
    marks: tuple[str, str]
    """The differing words of the newer and the older one, verbatim: the denial, or a number."""


class _Analysed(FrozenRecord, frozen=True):
    """An analysed statement.

    Attributes:
        terms: its terms. ``denied``: those that it denies.
        denial: the first word of denial. ``denying``: the same, with the verb of a denied action.
        undone: terms of the verb of an action that its speaker never did.
        stated: the statements that the rules find.
        measures: number of each thing that it counts, by the term of the thing.
        values: its numbers and names.
    """

    statement: Statement
    terms: frozenset[str]
    denied: frozenset[str]
    denial: str
    denying: str
    undone: frozenset[str]
    stated: Sequence[Stated]
    measures: dict[str, str]
    values: frozenset[str]


class _Candidate(NamedTuple):
    """Two analysed statements that may be a pair; ``about_action``: one denies the action that the other states."""

    older: _Analysed
    newer: _Analysed
    why: str
    weight: float
    about_action: bool


class _Terms:
    """Weights of the terms of the statements and of the subject; rarer terms have larger ones."""

    def __init__(self, all_terms: Sequence[frozenset[str]], subject: frozenset[str]) -> None:
        frequency = Counter(term for terms in all_terms for term in terms)
        number = len(all_terms)
        maximum = max(_RARE_COUNT, _RARE_SHARE * number)
        self._weights = {term: math.log(1 + number / count) for term, count in frequency.items()}
        self._unknown = math.log(1 + number / 0.5)
        self._frequent = frozenset(term for term, count in frequency.items() if count > maximum)
        self.subject = subject
        self._subject = self.weight(subject) or 1.0
        self._totals = {terms: self.weight(terms) for terms in all_terms}

    def weight(self, terms: Iterable[str]) -> float:
        """Return the sum of the weights of the terms."""
        return sum([self._weights.get(term, self._unknown) for term in terms])

    def about(self, terms: frozenset[str]) -> float:
        """Return the share of the subject that the terms cover, 0 to 1."""
        return self.weight(terms & self.subject) / self._subject

    def rare(self, terms: frozenset[str]) -> int:
        """Return how many of the terms are rare."""
        return len(terms - self._frequent)

    def likeness(self, first: frozenset[str], second: frozenset[str]) -> float:
        """Return the weight of the shared terms divided by the geometric mean of both weights, 0 to 1."""
        return self.weight(first & second) / (math.sqrt(self._totals[first] * self._totals[second]) or 1.0)


def _value_change(older: _Analysed, newer: _Analysed, terms: _Terms) -> tuple[str, float]:
    """Return why the newer one may replace the older one, and the closeness of the pair to the subject."""
    shared = older.terms & newer.terms
    if len(shared) < _MIN_SHARED:
        return "", 0.0
    first, second = terms.about(older.terms), terms.about(newer.terms)
    closeness = min(first, second) + max(first, second) / 2
    counted = [one for one, number in older.measures.items() if newer.measures.get(one, number) != number]
    if counted:
        named = any(one.lstrip(_SIGNS) in terms.subject for one in counted)
        why = f"{older.measures[counted[0]]} → {newer.measures[counted[0]]}"
        return why, closeness + _SAME_MEASURE_BONUS * (1 + named)
    named = any(one[0].isalpha() for one in older.values & newer.values)
    if not named and terms.rare(shared) < _MIN_SHARED:
        return "", 0.0
    before, after = older.values, newer.values
    if older.measures and newer.measures and older.measures.keys().isdisjoint(newer.measures):
        before, after = (  # numbers of different things, such as hours and days, are not compared
            frozenset(value for value in one.values if value.rstrip("%") not in one.measures.values())
            for one in (older, newer)
        )
    if before and after and after - before and before - after:
        return f"{', '.join(sorted(before - after)[:4])} → {', '.join(sorted(after - before)[:4])}", closeness
    return ("the newer one states a change", closeness) if says(newer.statement.text).change else ("", 0.0)


def _denial_of_other(older: _Analysed, newer: _Analysed, terms: _Terms) -> tuple[str, float]:
    """Return which of the two denies the other, and the closeness of the pair to the subject."""
    in_older, in_newer = terms.weight(older.denied & newer.terms), terms.weight(newer.denied & older.terms)
    both = terms.weight(older.denied & newer.denied)
    if both >= max(in_older, in_newer) / 2:  # neither denies anything, or both deny the same
        return "", 0.0
    denying, other, which = (older, newer, "older") if in_older >= in_newer else (newer, older, "newer")
    closeness = terms.about(denying.denied) + terms.about(other.terms) / 2
    closeness += 2 * terms.about(denying.denied & other.terms)
    if _denies_action(denying, other, terms):
        closeness += _ACTION_BONUS
    return f"the {which} one says “{denying.denial}”", closeness


def _denies_action(one: _Analysed, other: _Analysed, terms: _Terms) -> bool:
    """Return whether the other one states the action that the first denies: its verb, and a rare word of the denial."""
    return (
        bool(one.undone & other.terms)
        and not other.denied & one.undone
        and terms.rare((one.denied - one.undone) & other.terms) > 0
        and _FIRST_PERSON.search(other.statement.text) is not None
    )


def _values(text: str) -> frozenset[str]:
    return frozenset(value for value in _VALUE.findall(text) if value.lower() not in _COMMON)


def _measures(text: str, analyser: Analyser) -> dict[str, str]:
    """Return the number of each thing that a text counts, by the term of the thing (the first of several).

    Terms of amounts of money and percentages begin with the sign, since "$5 tickets" and "3 tickets" count different
    things. A plural after the number is the thing counted: the hours in "15 hours study".
    """
    found: dict[str, str] = {}
    for match in _MEASURE.finditer(text):
        before, thing = text[: match.start()][-1:], match[2]
        if _LABEL.search(text, max(0, match.start() - 30), match.start()):
            continue
        sign = "%" if thing[0] == "%" else before if before and before in _CURRENCIES else ""
        words = thing.lstrip("% ").split()
        if not sign and words[0].endswith("s"):
            del words[1:]
        number = match[1].rstrip(".,").casefold()
        for term in analyser.terms(" ".join(words)) or ([""] if sign else []):  # "15 and" has no term
            found.setdefault(sign + term, str(COUNTS.get(number, number)))
    return found


def _counted(older: _Analysed, newer: _Analysed, why: str, terms: _Terms) -> tuple[bool, tuple[str, str]]:
    """Return whether the two have different counts of a thing in the subject, and the numbers of newer and older."""
    before, _, after = why.partition(" → ")
    named = any(
        one.lstrip(_SIGNS) in terms.subject and newer.measures.get(one, number) != number
        for one, number in older.measures.items()
    )
    return named, (_number_in(newer.statement.text, after), _number_in(older.statement.text, before))


def _number_in(text: str, values: str) -> str:
    """Return the first of some values that is a number in a text, not a version, with the next word; else empty."""
    for value in (one.rstrip(".,:/-") for one in values.split(", ")):
        if value[:1].isdigit() and value.count(".") < 2:
            match = re.search(
                rf"(?<![\w.,]){re.escape(value)}(?![.,]?\d)\S{{0,20}}(?: [^\W\d_]{{1,20}})?", text
            )
            if match is not None:
                return match[0]
    return ""


def _denials(text: str, analyser: Analyser) -> tuple[frozenset[str], str]:
    """Return the terms that a text denies, and its first word of denial as written."""
    found = list(NEGATION.finditer(text))
    denied: set[str] = set()
    for denial in found:
        end = _CLAUSE_END.search(text, denial.end())
        clause = text[denial.end() : end.start() if end is not None else len(text)]
        denied.update(analyser.terms(" ".join(clause.split()[:_DENIED_WORDS])))
    return frozenset(denied), found[0][0] if found else ""


def differing_pairs(
    statements: Sequence[Statement],
    subject: str,
    analyser: Analyser,
    limit: int,
    kind: Kind,
    check: Callable[[], None],
) -> list[Pair]:
    """Return pairs of statements about a subject, newest first; the time is quadratic in their number.

    Args:
        kind: ``replace``: the later one has another value than the earlier one; ``contradict``: one denies the other.
        check: called again and again meanwhile; raises if the program must end.
    """
    names = frozenset(term for one in statements if one.speaker for term in analyser.terms(one.speaker))
    read = [
        found
        for one in sorted(statements, key=lambda one: one.order)
        if (found := _analysed(one, names, analyser)) is not None
    ]
    terms = _Terms([one.terms for one in read], frozenset(analyser.terms(subject)) - names)
    best = _best(_candidates(read, terms, kind, check), limit)
    pairs = [_pair(one, terms, kind) for one in best]
    return sorted(pairs, key=lambda pair: pair.newer.order, reverse=True)


def _analysed(one: Statement, names: frozenset[str], analyser: Analyser) -> _Analysed | None:
    """Return a statement analysed, without the names of speakers; None if it has fewer than two terms."""
    own = frozenset(analyser.terms(one.text)) - names
    if len(own) < 2:
        return None
    denied, denial = _denials(one.text, analyser)
    verb = _NEVER_DID.search(one.text)
    undone = frozenset(analyser.terms(verb[1])) & denied if verb else frozenset[str]()
    return _Analysed(
        one,
        own,
        denied - names,
        denial.lower(),
        verb[0] if verb else denial,
        undone,
        statements_in(one.text, analyser, speaker=one.speaker),
        _measures(one.text, analyser),
        _values(one.text),
    )


def _candidates(
    read: Sequence[_Analysed], terms: _Terms, kind: Kind, check: Callable[[], None]
) -> Iterator[_Candidate]:
    reason = _value_change if kind == "replace" else _denial_of_other
    for place, older in enumerate(read):
        check()
        for newer in read[place + 1 :]:
            ruled = surest(newer.stated, older.stated, kind)
            if ruled is None and (older.terms == newer.terms or not _shared_words(older, newer)):
                continue
            why, closeness = reason(older, newer, terms)
            if ruled is not None:
                why = why or ruled[0].reason
                closeness += _RULE_BONUS + ruled[0].confidence
            if why:
                about_action = kind == "contradict" and (
                    _denies_action(older, newer, terms) or _denies_action(newer, older, terms)
                )
                weight = terms.likeness(older.terms, newer.terms) + closeness
                yield _Candidate(older, newer, why, weight, about_action)


def _shared_words(older: _Analysed, newer: _Analysed) -> list[str]:
    return [term for term in older.terms & newer.terms if not term.isdigit()]


def _best(candidates: Iterable[_Candidate], limit: int) -> list[_Candidate]:
    """Return those with the largest weights, except weak ones and those whose statements reached their maximum."""
    chosen: list[_Candidate] = []
    uses: Counter[Statement] = Counter()
    least = 0.0
    for one in sorted(candidates, key=lambda one: -one.weight):
        if len(chosen) == limit or one.weight < least:
            break
        both = one.older.statement, one.newer.statement
        if max(map(uses.__getitem__, both)) < (_MAX_ACTION_PAIRS if one.about_action else _MAX_PAIRS):
            chosen.append(one)
            uses.update(both)
            if one.weight < _RULE_BONUS and not least:
                least = _MIN_SHARE * one.weight
    return chosen


def _pair(one: _Candidate, terms: _Terms, kind: Kind) -> Pair:
    older, newer, why, _, first = one
    denying = (newer if why.startswith("the newer") else older).denying
    marks = denying, denying
    if kind == "replace":
        first, marks = _counted(older, newer, why, terms)
    shared = tuple(sorted(_shared_words(older, newer)))
    return Pair(newer.statement, older.statement, shared, why, first, marks)
