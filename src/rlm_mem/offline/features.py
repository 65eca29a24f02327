"""Signals of a candidate: numbers by name, which the tables of `weights` turn into one score.

The signals depend on words, order, people and dates only, never on the format of a source.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import lru_cache

from msgspec.structs import replace

from rlm_mem.offline.candidates import Candidate
from rlm_mem.offline.passages import Passage, Word
from rlm_mem.offline.phrases import AUXILIARIES, DETERMINERS, FUNCTION_WORDS, PREPOSITIONS, PRONOUNS
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import WHAT
from rlm_mem.record import FrozenRecord
from rlm_mem.search.related import related_terms
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.clauses import DAYS
from rlm_mem.text.dates import DateMention, find_dates
from rlm_mem.text.patterns import late, word_set

_FIRST_PERSON = word_set("i me my mine myself we us our ours i'm i've i'd i'll we're we've")
_SECOND_PERSON = frozenset({"you", "your", "yours", "yourself", "you're", "you've"})
_FEELING = word_set(
    """
    happy sad proud grateful thankful excited nervous anxious scared relieved inspired joy peace love
    amazing awesome great
    """
)
_TIMES = DAYS | word_set(
    "yesterday today tonight tomorrow last next ago week weekend month year recently lately"
)
_NEGATIVE = word_set(
    """
    not no never none don't didn't doesn't can't couldn't won't isn't wasn't haven't hasn't nothing nobody
    without cannot
    """
)


class PassageSigns(FrozenRecord, frozen=True):
    """How well one passage matches the question, computed once for all its candidates.

    ``cover`` is the share of the question's content words in it, ``near`` the share in it or just before it;
    ``lag`` how far its search score is below the best, in standard deviations of all scores (0 and up); ``speaker``
    is 1 if it is by the person named in the question, -1 if by somebody else, 0 if no passage is by a person named;
    ``rank`` counts from 0; ``period`` is 1 if the question names a date and the passage is of that time, -1 if it
    is of another time; ``best_said`` is the largest share of the words in any sentence; ``weights`` are the weights
    of the words.
    """

    cover: float
    near: float
    lag: float
    speaker: int
    rank: int
    period: int
    best_said: float
    weights: dict[str, float]


def passage_signs(question: Question, passages: Iterable[Passage]) -> list[PassageSigns]:
    """Signs of all passages, in order."""
    passages = list(passages)
    lags = lags_behind([passage.score for passage in passages])
    authors = {p.author for p in passages if p.author}
    named = {a for a in authors if any(same_person(a, name) for name in question.names)}
    dates = [mention for mention in find_dates(question.text) if not mention.relative]
    weights = term_weights(question, passages)
    best_said = max(
        (word_share(weights, s.stems) for p in passages for s in p.sentences if not s.asks), default=0.0
    )
    # Passages are read in order of their share of the question's words, plus twice their best sentence's, less
    # their lag.
    promise = [
        word_share(weights, passage.stems)
        + 2 * max((word_share(weights, sentence.stems) for sentence in passage.sentences), default=0.0)
        - lag
        for passage, lag in zip(passages, lags, strict=True)
    ]
    order = sorted(range(len(passages)), key=lambda i: -promise[i])
    rank = {index: position for position, index in enumerate(order)}
    return [
        PassageSigns(
            cover=word_share(weights, passage.stems),
            near=word_share(weights, passage.stems | passage.before_stems),
            lag=lags[index],
            speaker=0 if not named or not passage.author else 1 if passage.author in named else -1,
            rank=rank[index],
            period=_period(dates, passage),
            best_said=best_said,
            weights=weights,
        )
        for index, passage in enumerate(passages)
    ]


def lags_behind(scores: Sequence[float]) -> list[float]:
    """How far each score is below the best one, in standard deviations of all scores; 0 where all are equal.

    These figures do not depend on the scale of search scores, which changes with the weights of the search.
    """
    spread = statistics.pstdev(scores) if len(scores) > 1 else 0.0
    best = max(scores, default=0.0)
    return [(best - score) / spread if spread > 1e-9 else 0.0 for score in scores]


def _period(dates: list[DateMention], passage: Passage) -> int:
    """1 if a passage is of the time that the question names or the week after, -1 if not, 0 if unknown."""
    if not dates or passage.at is None:
        return 0
    day = passage.at.date()
    return 1 if any(d.first <= day <= d.last + timedelta(days=7) for d in dates) else -1


def with_unspoken_names(question: Question, passages: Sequence[Passage]) -> Question:
    """The question, with those names added to its terms that are not authors of these passages."""
    authors = {passage.author for passage in passages if passage.author}
    named = [name for name in question.names if not any(same_person(author, name) for author in authors)]
    stems = tuple(stem for name in named for stem in _stems(name) if stem not in question.terms)
    if not stems:
        return question
    return replace(question, terms=question.terms + stems, strong=question.strong | set(stems))


def mentions(passage: Passage, name: str) -> bool:
    """Whether a passage is by this person or contains the name."""
    return bool(passage.author and same_person(passage.author, name)) or _stems(name) <= passage.stems


def term_weights(question: Question, passages: list[Passage]) -> dict[str, float]:
    """A weight for each term of the question, larger for terms that are rare among the passages.

    Everyday words count about a third (0.35).
    """
    count = max(1, len(passages))
    found = {}
    for term in question.terms:
        holding = sum(1 for passage in passages if term in passage.stems)
        weight = math.log(1 + count / (holding + 0.5))
        found[term] = weight * (1.0 if term in question.strong else 0.35)
    return found


def word_share(weights: dict[str, float], stems: frozenset[str]) -> float:
    """The share of the weighted words that are among these stems, 0 to 1."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in stems) / total if total else 0.0


def same_person(author: str, name: str) -> bool:
    """ "Mel" and "Melanie", "Ana Ruiz" and "Ana": one is a prefix of three letters or more of a part of the other."""
    parts = author.lower().split()
    low = name.lower()
    return any(
        part == low or (min(len(part), len(low)) >= 3 and (part.startswith(low) or low.startswith(part)))
        for part in parts
    )


def signals(question: Question, candidate: Candidate, signs: PassageSigns) -> dict[str, float]:
    """The signals of one candidate; a missing signal counts 0. ``when:…`` is for that kind of question only."""
    kind = question.kind.name
    sentence, words = candidate.sentence, candidate.sentence.words
    first = candidate.first
    terms = question.strong or frozenset(question.terms)
    matched = word_share(signs.weights, sentence.stems)
    sub = _sub_kind(question)
    out: dict[str, float] = {
        "lag": min(signs.lag, 4.0) / 2,
        "top": float(signs.rank == 0),
        "top3": float(signs.rank < 3),
        "cover": signs.cover,
        "near": signs.near,
        "said": matched,
        "best_said": float(matched >= signs.best_said > 0),
        "said_gap": signs.best_said - matched,
        "speaker": float(signs.speaker == 1),
        "other": float(signs.speaker == -1),
        "in_period": float(signs.period == 1),
        "off_period": float(signs.period == -1),
        "asks": float(sentence.asks),
        "form:" + candidate.form: 1.0,
        f"{kind}:form:{candidate.form}": 1.0,
        "opening": float(sentence.start == 0),
        "replaced": float(not candidate.passage.current),
    }
    before = candidate.passage.before
    if before.rstrip().endswith("?"):
        out["answers"] = 1.0
        out["answers_it"] = sum(1 for term in terms if term in candidate.passage.before_stems) / max(
            1, len(terms)
        )
    if candidate.shape:
        out[f"shape:{candidate.shape}"] = 1.0
        if question.grain:
            out[f"grain:{question.grain}:{candidate.shape}"] = 1.0
    if candidate.form in ("yes", "no"):
        negative = any(word.low in _NEGATIVE for word in _clause(question, words))
        out[candidate.form + ":negated"] = float(negative)
        opening = question.text.split()[0].lower()
        out[f"{candidate.form}:{opening}"] = 1.0
        out[f"{candidate.form}:other"] = float(signs.speaker == -1)
        out[f"{candidate.form}:near"] = signs.near
        return out
    if candidate.form == "option":
        stems = set(_stems(candidate.text))
        out["option:said"] = sum(1 for stem in stems if stem in candidate.passage.stems) / max(1, len(stems))
        out["option:sentence"] = sum(1 for stem in stems if stem in sentence.stems) / max(1, len(stems))
        return out
    if candidate.form == "author":
        out["author:named"] = float(signs.speaker == 1)
        return out
    if first < 0:
        return out
    _span(out, question, candidate, terms, sub)
    return out


def _clause(question: Question, words: Sequence[Word]) -> Sequence[Word]:
    """The clause with most words of the question: "so no cheese" does not negate the clause before it."""
    clauses: list[list[Word]] = [[]]
    for word in words:
        if word.low in _CLAUSES and clauses[-1]:
            clauses.append([])
        clauses[-1].append(word)
        if word.closes:
            clauses.append([])
    return max(clauses, key=lambda one: sum(word.stem in question.terms for word in one))


_CLAUSES = frozenset({"and", "but", "so", "because", "although", "while"})
_WHAT_NOUN = late(
    r"\b(?:what|which)\s+(?!is|are|was|were|did|do|does|has|have|had|will|would|can|could|should|might)\w",
    re.IGNORECASE,
)
_WHAT_IS = late(r"\bwhat\s+(?:is|are|was|were)\b", re.IGNORECASE)


def _sub_kind(question: Question) -> str:
    """The kind of a question; "what" is split by the next word: a noun ("what gift"), a form of "be", another verb."""
    if question.kind is not WHAT:
        return question.kind.name
    if _WHAT_NOUN.search(question.text):
        return "what_noun"
    return "what_is" if _WHAT_IS.search(question.text) else "what_did"


def _span(
    out: dict[str, float], question: Question, candidate: Candidate, terms: frozenset[str], kind: str
) -> None:
    """Add the features of a span: its words, those around it, its ends, its kinds of words, and what is asked for."""
    inside = candidate.sentence.words[candidate.first : candidate.last + 1]
    _span_words(out, question, inside, terms, kind)
    _span_place(out, question, candidate, terms, kind)
    _span_ends(out, candidate, kind)
    _span_classes(out, question, candidate, kind)
    for name in question.names:
        if any(word.low.removesuffix("'s") == name.lower() for word in inside):
            out["named"] = 1.0
    if question.focus:
        _span_focus(out, question.focus, candidate, kind)


def _span_words(
    out: dict[str, float], question: Question, inside: Sequence[Word], terms: frozenset[str], kind: str
) -> None:
    """Add the number of words of a span, and how many of them the question has."""
    size = len(inside)
    bucket = next((name for most, name in _SIZES if size <= most), "15+")
    out[f"size:{bucket}"] = 1.0
    out[f"{kind}:size:{bucket}"] = 1.0
    asked = frozenset(question.terms)
    out["function"] = sum(1 for word in inside if word.low in FUNCTION_WORDS) / size
    out["echo_first"] = float(inside[0].stem in asked)
    out["echo_last"] = float(inside[-1].stem in asked)
    out[f"{kind}:echo_first"] = out["echo_first"]
    out["echoes"] = min(3, sum(1 for word in inside if word.stem in terms)) / 3
    out["new"] = (
        min(6, sum(1 for word in inside if word.stem not in asked and word.low not in FUNCTION_WORDS)) / 6
    )


def _span_place(
    out: dict[str, float], question: Question, candidate: Candidate, terms: frozenset[str], kind: str
) -> None:
    """Add the words before a span, and how near words of the question are."""
    words = candidate.sentence.words
    first, last = candidate.first, candidate.last
    inside = words[first : last + 1]
    head = candidate.sentence.text
    out["bracket"] = float(head.rfind("[", 0, inside[0].start) > head.rfind("]", 0, inside[0].start))
    if first > 1 and not words[first].opens:
        out["prior_term"] = float(
            words[first - 1].stem in terms
            or (words[first - 1].low in FUNCTION_WORDS and words[first - 2].stem in terms)
        )
        out[f"{kind}:prior_term"] = out["prior_term"]
    if first >= 2 and words[first - 1].low in _KEPT_WORDS:
        two = f"{_word_class(words[first - 2].low)}+{words[first - 1].low}"
        out[f"two:{two}"] = 1.0
    out["echo"] = sum(1 for word in inside if word.stem in question.terms) / len(inside)
    out["echo_any"] = float(any(word.stem in terms for word in inside))
    places = [n for n, word in enumerate(words) if word.stem in terms and not first <= n <= last]
    if places:
        gap = min((first - n if n < first else n - last) for n in places)
        out["beside"] = 1.0 / gap
        out["follows"] = 1.0 / min((first - n for n in places if n < first), default=100)
        out["after_word"] = float(any(n < first for n in places))
        out["before_word"] = float(any(n > last for n in places))
    else:
        out["alone"] = 1.0


def _span_ends(out: dict[str, float], candidate: Candidate, kind: str) -> None:
    """Add the classes of the word before a span and of its first and last words, and where it ends in the sentence."""
    words = candidate.sentence.words
    first, last = candidate.first, candidate.last
    inside = words[first : last + 1]
    prior = words[first - 1].low if first else "^"
    prior_sort = prior if prior in _KEPT_WORDS else _word_class(prior)
    if words[first].opens and first:
        prior_sort = ","
    out[f"prior:{prior_sort}"] = 1.0
    out[f"{kind}:prior:{prior_sort}"] = 1.0
    start_sort = _word_class(inside[0].low) if not (inside[0].text[:1].isupper() and first) else "Name"
    out[f"start:{start_sort}"] = 1.0
    out[f"{kind}:start:{start_sort}"] = 1.0
    end_sort = _word_class(inside[-1].low)
    out[f"end:{end_sort}"] = 1.0
    out[f"{kind}:end:{end_sort}"] = 1.0
    out["closes"] = float(inside[-1].closes)
    out["starts"] = float(inside[0].opens)
    out["whole"] = float(first == 0 and last == len(words) - 1)
    out["breaks"] = float(any(word.closes for word in inside[:-1]))


def _span_classes(out: dict[str, float], question: Question, candidate: Candidate, kind: str) -> None:
    """Add which classes of words a span has: names, numbers, persons, feelings, pronouns, auxiliaries, times."""
    first = candidate.first
    inside = candidate.sentence.words[first : candidate.last + 1]
    size = len(inside)
    names = sum(
        1
        for n, word in enumerate(inside)
        if word.text[:1].isupper() and not (word.opens and first + n == 0) and word.low not in _FIRST_PERSON
    )
    out["names"] = names / size
    out[f"{kind}:names"] = names / size
    out[f"{kind}:number"] = float(any(word.text[0].isdigit() for word in inside))
    out["mine"] = float(any(word.low in _FIRST_PERSON for word in inside))
    out["yours"] = float(any(word.low in _SECOND_PERSON for word in inside))
    out["verb_i"] = float(bool(first) and candidate.sentence.words[first - 1].low in ("i", "we"))
    out["feeling"] = float(any(word.low in _FEELING for word in inside))
    out[f"{kind}:feeling"] = out["feeling"]
    out["has_pronoun"] = float(any(word.low in PRONOUNS for word in inside))
    out["has_aux"] = float(any(word.low in AUXILIARIES for word in inside))
    out["times"] = float(any(word.low in _TIMES for word in inside))
    out["ends_time"] = float(inside[-1].low in _TIMES)
    out["listing"] = float(
        any(word.low == "and" for word in inside) or any(word.closes for word in inside[:-1])
    )
    out["many:listing"] = out["listing"] * question.many


def _span_focus(out: dict[str, float], focus: str, candidate: Candidate, kind: str) -> None:
    """Add whether a span has the noun that is asked for ("color" of "what color"), or a member of its class."""
    words, last = candidate.sentence.words, candidate.last
    inside = words[candidate.first : last + 1]
    noun = _stems(focus.split()[-1])
    out["focus"] = float(any(word.stem in noun for word in inside))
    out["focus_end"] = float(inside[-1].stem in noun)
    beyond = words[last + 1 : last + 3]
    out[f"{kind}:focus_next"] = float(any(word.stem in noun for word in beyond) or out["focus"] > 0)
    members = _members(focus)
    if members:
        out["class"] = float(any(word.stem in members for word in inside))
        out["class_said"] = float(bool(members & candidate.sentence.stems))


_SIZES = ((1, "1"), (2, "2"), (3, "3"), (4, "4"), (6, "5-6"), (9, "7-9"), (14, "10-14"))
"""Maximum words and the name of each class of spans by size; longer ones are "15+"."""
_KEPT_WORDS = word_set(
    """
    to because for by with in at from of about as like called named is was are on into a the my and that
    it's
    """
)


def _word_class(word: str) -> str:
    """A rough word class derived from the form alone."""
    if word in DETERMINERS:
        return "det"
    if word in PREPOSITIONS:
        return "prep"
    if word in PRONOUNS:
        return "pron"
    if word in AUXILIARIES:
        return "aux"
    if word[:1].isdigit():
        return "num"
    if word == "^":
        return "^"
    if word.endswith("ing"):
        return "ing"
    if word.endswith("ed"):
        return "ed"
    if word.endswith("ly"):
        return "ly"
    if word.endswith("s") and not word.endswith("ss"):
        return "s"
    if word.endswith(("ful", "ous", "ive", "able", "al", "ic")):
        return "adj"
    return "other"


@lru_cache(maxsize=1024)
def _members(noun: str) -> frozenset[str]:
    """Stems of the members of the class that the last word of ``noun`` names ("pet": dog, cat, …)."""
    analyser = get_analyser("english")
    return frozenset(member for stem in _stems(noun.split()[-1]) for member in related_terms(stem, analyser))


def _stems(text: str) -> frozenset[str]:
    return frozenset(get_analyser("english").terms(text))
