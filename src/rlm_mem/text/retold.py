"""Whether a later note answers the same question about the present as an earlier note: rules without a model.

"The band saw: tension 4" and, months later, "Machines checked. Band saw: tension set from 4 to 5" both answer "What is
the tension of the band saw?", and the later one should rank first. These rules replace nothing: they only order search
results, so they require less than those of :mod:`rlm_mem.text.differences`. English only. Each rule reads the words of
a text a fixed number of times; words are compared in order only in sentences of bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Set
from functools import lru_cache
from itertools import groupby, islice, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

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
from rlm_mem.text.differences import MAY_END
from rlm_mem.text.lasting import is_in_force, is_temporary
from rlm_mem.text.patterns import late
from rlm_mem.text.wording import CORRECTIONS

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

__all__ = ["PresentQuestion", "is_note", "is_passing", "is_retold", "stems_in"]

_LEAST, _LEAST_NAMED = 0.4, 0.25
"""Least share of the words common to the question and the earlier note that the later note has, weighted by rarity; the
second value applies if the later note also has a word of the earlier note's answer."""
_FEW = 2
"""Most texts that have a distinctive word: the two notes themselves."""
_SHARED = 2
"""Least number of distinctive words common to both notes, and of words of the question if they share no others."""
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
    UNSURE | words("might previous previously formerly originally ago also additionally besides")
) - words(
    "will shall how who which whose when until unless why need needed decide decided going asked ask asks i'll we'll "
    "he'll she'll they'll 'll thinking think try tries trying tried heard story novel example claims claimed discuss "
    "discussed discussing almost nearly won't plan plans planned planning"
)
"""Words of a sentence about a wish, a guess, another time, or an additional thing."""
_PLANNED = late(
    r"\b(?:i|we|they|he|she) plan(?:s|ned)?\b|\bplan(?:s|ned)? (?:is )?to\b|\bplanned for\b|\bplanning to\b"
    r"|\bbefore last\b"
    r"|\bonce\b(?! (?:a|an|per|every|in)\b)|\bas well\b|\btoo(?:[.,;!)]|$)",
    re.IGNORECASE,
)
_ONE_DAY = late(
    r"(?<!from )(?<!as of )(?<!since )(?<!started )(?<!starting )(?<!beginning )"
    r"\b(?:today|tonight|tomorrow)\b"
    r"|\blast (?:year|month|week|season|spring|summer|autumn|winter|time)\b",
    re.IGNORECASE,
)
"""A sentence about one day, if it has no word of change: "bumped to 3.12 today"."""
_YEAR = late(r"\b(?:19|20)\d\d\b")
_OWNED = late(r"\b([^\W\d_]{1,40})['’]s?\s{1,9}([^\W\d_]{1,40})")
_OTHERS = words(
    "mother father sister brother neighbour neighbours neighbor neighbors cousin aunt uncle daughter son wife husband "
    "friend colleague colleagues parents mum dad grandma grandpa nephew niece tenants boss "
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
"""Words that say of a value named in the same sentence that it has ended, in four languages."""
_DOUBTED_ABROAD = late(
    r"\b(?:vielleicht|könnten?|würden?|falls|wenn|quizás?|tal vez|podrían?|si)\b|可能|听说|如果|也许|或许|吗"
    r"|的(?:弟弟|哥哥|妹妹|姐姐|妈妈|爸爸|儿子|女儿|朋友|同事|邻居)",
    re.IGNORECASE,
)
_HAN = late(r"[\u4e00-\u9fff]")
_ASKS_WHAT = late(
    r"\W*was (?!(?:the|an?|my|our|your|his|her|their|its?|he|she|there|that|this|these|those|any|some)\b)[a-zäöü]",
    re.IGNORECASE,
)
"""The German "was" at the beginning of a question: what. In English a name, with a capital, or one of these follows."""
_RETURNED = late(
    r"\b(?:rolled (?:it |that |them )?back|reverted|undid|undone|(?<!put )back to|remains"
    r"|(?:came|went|moved|is|are) back (?:to|at|in|on|with)|(?:is|are|it's) still)\b",
    re.IGNORECASE,
)
"""Before the former value: it holds again, or still."""
_STAYS = late(r"\bit (?:stays|stayed|remains)[.!]?\s*$", re.IGNORECASE)
_CLAUSE = late(r"[,;.]\s")
_REFUSED = late(
    r"\b(?:(?:wouldn|couldn)['’]t|want(?:s|ed))\b(?=[^.!?;]{1,200}?\b(?:so|thus|hence|therefore)\b)",
    re.IGNORECASE,
)
"""What somebody refused or wanted, before what followed: not a wish."""
_WISHES = words("want wants wish wishes hope hopes")
_DENIED = late(
    r"\b(?:isn['’]t|is not|not) true\b|\b(?:did|has|have|was|were)(?:n['’]t| not) (?:\w{1,20} )?"
    rf"(?:{'|'.join(sorted(CHANGES | REPLACES))}|become|been (?:changed|moved)|change|move|switch|swap|extend|raise)\b"
    r"|\badded\b(?![^.]{0,120}\bmakes?\b)|\ba (?:second|third|further)\b",
    re.IGNORECASE,
)
"""A change that did not happen, or another thing beside the first."""
_UNDONE = late(r"\b(?:rolled (?:it |that |them )?back|reverted|undid|undone)\b", re.IGNORECASE)
_FIGURE = late(r"(?<![\w.])[+]?\d(?:[\d.,:/-]|\s(?=\d{3})){0,20}(?<![.,:/-])(?!\w)")
_NUMBERED = late(r"([^\W\d_]{1,40}) {1,3}(\d{1,20})(?!\w)")
"""A thing with its number: "runner 3"."""
_LAST_WORD = late(r"([^\W\d_]{2,40})\W{0,3}$")
_NEXT_WORD = late(r"\W{0,2}([^\W\d_]{2,40})")
_BESIDE = 44
"""Characters on each side of a figure in which its unit stands."""
_LONG_NUMBER = 7
"""Digits of a number of a telephone or an account."""
_MOST_FIGURES = 12
_DIGITS = 2
"""Least digits of a number that names a value by itself."""
_CALENDAR = MONTHS | words(
    "monday tuesday wednesday thursday friday saturday sunday morn afternoon even night"
)
_LONGEST_CLAUSE = 200
"""Characters after "back to" that are read."""
_FRAME = 30
"""Most words of a note that are compared in order."""
_SAME_FRAME = 0.6
_PLACES = 2
"""Most places in which one note has other words than another of the same form."""


_MEASURES = words("second minut hour day week month year time euro dollar percent half new work")
"""Stems of words that name no value by themselves."""


class PresentQuestion(Struct, frozen=True):
    """A question as :func:`is_retold` needs it.

    Attributes:
        text: the question.
        stems: the stems of its words.
        names: the stems of its names and numbers.
    """

    text: str
    stems: frozenset[str]
    names: frozenset[str]

    @staticmethod
    def of(text: str, analyser: Analyser) -> PresentQuestion | None:
        """Analyse a question; None if it is not an English question about the present."""
        begin = len(was[0]) - 1 if (was := _ASKS_WHAT.match(text)) and was[0][-1].islower() else 0
        if analyser.language != "english" or len(text) > _LONGEST or _OF_THE_PAST.search(text, begin):
            return None
        named = [
            word
            for place, word in enumerate(_WORD.findall(text))
            if (place and word[0].isupper()) or any(letter.isdigit() for letter in word)
        ]
        return PresentQuestion(
            text, frozenset(analyser.terms(text)), frozenset(analyser.terms(" ".join(named)))
        )


@lru_cache(maxsize=512)
def stems_in(text: str, analyser: Analyser) -> frozenset[str]:
    """The stems of a text, cached: a note is compared with several others, and mostly is one sentence."""
    return frozenset(analyser.terms(text))


def is_note(author: str | None, asked: PresentQuestion | None = None) -> bool:
    """Whether a text is a note, not the turn of a speaker.

    A label is no speaker ("gotcha: the key is …", "Driving school phoned: …"), nor is a thing that the question is
    about.
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
    """Whether what a note says about a question is a guess, a wish, a quotation, or about a limited or an earlier time.

    Args:
        year: the year of the note.
    """
    told = [one for one in _SENTENCE.split(text[:_LONGEST]) if one.strip()]
    if not told:
        return False
    best = max(told, key=lambda one: len(asked.stems & stems_in(one, analyser)))
    undone = _UNDONE.search(best) is not None
    return undone or _is_doubted(best, asked, year) or is_temporary(best, asked.text)


def is_retold(
    asked: PresentQuestion,
    earlier: str,
    later: str,
    texts: Mapping[str, Set[str]],
    analyser: Analyser,
    *,
    year: int,
    loosely: bool = False,
) -> bool:
    """Whether the later of two notes answers a question that the earlier one answers.

    The later note must have the question's words that the earlier one has, above all those that are rare among the
    texts found; or say that the earlier one's value has ended; or have another figure of the same kind; or the same
    words in the same order. It must not be about a different subject, and it must be about the present.

    Args:
        texts: the stems of both notes, and of the texts that were found with them.
        year: the year of the earlier note.
        loosely: whether the later note may answer it, so that an answer should give both: two rare words in common,
                or one and any word of change, are enough, and it may be about a short time.
    """
    before, after = texts[earlier], texts[later]
    had, has = asked.stems & before, asked.stems & after
    value = (before - asked.stems - _MEASURES) & after
    if not has and len(value) < (1 if loosely else _SHARED):
        return False
    if not _keeps_numbers(asked, earlier, later):
        return False
    missing = had - has
    figures = bool(has) and _FIGURE.search(earlier) is not None
    least = 1 if _HAN.search(asked.text) else max(1, len(missing), min(_SHARED, len(had)))
    if not (value or figures or loosely) and len(has & had) < least:
        return False
    often = {stem: sum(stem in one for one in texts.values()) for stem in had | (before & after)}
    enough = _shares_enough(asked, had, has, bool(value), often, before & after, texts.values(), later)
    if not (enough or value or figures or loosely) and (missing or not has):
        return False
    told = [(one, stems_in(one, analyser)) for one in _SENTENCE.split(later[:_LONGEST]) if one.strip()]
    if not told:
        return False
    best, _ = max(told, key=lambda one: (len(had & one[1]), len(before & one[1])))
    ended = ""
    if value and missing.isdisjoint(asked.names):
        rare = _telling(value & _answering(asked, earlier, analyser), often, earlier, later, analyser)
        ended = _sentence_that_ends(rare, had & has, told, loosely)
    if ended:
        best, missing = ended, frozenset()
    elif not (
        enough
        or (figures and _has_other_figure(asked, earlier, best, had, has, often, analyser))
        or (bool(has) and not missing and _has_same_frame(earlier, best))
        or (
            loosely
            and missing.isdisjoint(asked.names)
            and _may_touch(asked, has, before & after, often, earlier, later)
        )
    ):
        return False
    asks = any(one.rstrip().endswith(("?", "？")) and not has.isdisjoint(stems) for one, stems in told)
    if asks or later[:1] in _QUOTES or _is_doubted(best, asked, year):
        return False
    if not loosely and (
        is_temporary(best, f"{asked.text}\n{earlier}") or _holds_again(value, told, analyser)
    ):
        return False
    known = before | asked.stems
    return not (
        _is_about_another_person(best, known, asked, analyser)
        or _is_about_unnamed_thing(best, has, known, analyser)
        or any(
            _narrows_subject(one, missing, has, analyser, asked, one is asked.text)
            for one in (asked.text, earlier)
        )
    )


def _may_touch(
    asked: PresentQuestion, has: Set[str], both: Set[str], often: Mapping[str, int], earlier: str, later: str
) -> bool:
    """Whether a later note has two rare words of the earlier one, or one that the question has and a word of change.

    A name alone is the same subject, but nothing of what is asked about it, unless both notes have figures.
    """
    rare = {stem for stem in both if often[stem] <= _FEW and stem not in _CALENDAR and not stem.isdigit()}
    if rare <= asked.names and not (_FIGURE.search(earlier) and _FIGURE.search(later)):
        return False
    return len(rare) >= _SHARED or (not rare.isdisjoint(has) and MAY_END.search(later) is not None)


def _shares_enough(
    asked: PresentQuestion,
    had: Set[str],
    has: Set[str],
    named: bool,
    often: Mapping[str, int],
    both: Set[str],
    texts: Collection[Set[str]],
    later: str,
) -> bool:
    """Whether the later note has enough of the question's words that the earlier one has.

    Args:
        named: whether it has a word of the earlier note's answer.
        both: the stems of both notes.
    """
    missing = had - has
    if _HAN.search(asked.text) and has & had and _STRONG.search(later):
        return True  # pairs of characters: a name has one or two, what is said of it as many more
    enough = max(1, len(missing), 0 if named else min(_SHARED, len(had)))
    if not had or len(has & had) < enough or not missing.isdisjoint(asked.names):
        return False
    changes = _STRONG.search(later) or (not has <= asked.names and MAY_END.search(later))
    if len(has & had) == 1 and not changes:
        return False
    if has <= asked.names and (not had <= asked.names or both <= asked.names):
        return False  # the same subject, but nothing of what is asked about it
    covered = sum(1 / often[stem] for stem in has & had) / sum(1 / often[stem] for stem in had)
    if covered < (_LEAST_NAMED if named else _LEAST):
        return False
    shared = sum(often[stem] <= _FEW for stem in both)
    if len(has & had) >= _SHARED and sum(has & had <= one for one in texts) <= _FEW:
        shared += 1  # words that are rare together: "driving" and "test"
    return shared >= _SHARED or (shared > 0 and not missing)


def _answering(asked: PresentQuestion, earlier: str, analyser: Analyser) -> Set[str]:
    """The stems of those sentences of an earlier note that have most words of a question."""
    told = [stems_in(one, analyser) for one in _SENTENCE.split(earlier[:_LONGEST])]
    most = max((len(asked.stems & one) for one in told), default=0)
    return frozenset().union(*(one for one in told if len(asked.stems & one) == most))


def _telling(
    value: Set[str], often: Mapping[str, int], earlier: str, later: str, analyser: Analyser
) -> Set[str]:
    """The words of a value by which a later note may mean it: rare ones, whole figures, no days and words of change."""
    rare = {stem for stem in value if often[stem] <= _FEW and stem not in _CALENDAR}
    if not rare:
        return rare
    rare -= set(analyser.terms(" ".join(_STRONG.findall(earlier[:_LONGEST]))))
    figures = {stem for stem in rare if stem.isdigit()}
    if figures:  # "10" is in "10:40" and "9:10", but names neither
        whole = [set(_FIGURE.findall(one[:_LONGEST])) for one in (earlier, later)]
        rare -= {one for one in figures if len(one) < _DIGITS or one not in whole[0] & whole[1]}
    return rare


def _sentence_that_ends(
    rare: Set[str], shared: Set[str], told: Sequence[tuple[str, Set[str]]], loosely: bool
) -> str:
    """The sentence of a later note that says that the earlier one's value has ended; empty for none.

    "Greta moved him from Kronsberg to Ahlum" ends "Greta's horse is at Kronsberg", whatever is asked about it.

    Args:
        rare: stems of the earlier note's answer that the later one has.
        shared: stems of the question that both notes have.
    """
    if not rare or not (shared or loosely or len(rare) >= _SHARED):
        return ""
    sign = MAY_END if loosely else _STRONG
    return next((one for one, stems in told if not rare.isdisjoint(stems) and sign.search(one)), "")


def _has_other_figure(
    asked: PresentQuestion,
    earlier: str,
    sentence: str,
    had: Set[str],
    has: Set[str],
    often: Mapping[str, int],
    analyser: Analyser,
) -> bool:
    """Whether a sentence has another figure of the same kind and the same subject: "size 31" and "size 33"."""
    shared = had & has
    named = not shared.isdisjoint(asked.names)
    if not (named or any(often[stem] <= _FEW for stem in shared)):
        return False
    if not set(_FIGURE.findall(earlier[:_LONGEST])).isdisjoint(_FIGURE.findall(sentence[:_LONGEST])):
        return False
    former, figures = _measured(earlier, analyser), _measured(sentence, analyser)
    for shape, units in figures:
        for kind, others in former:
            missing = had - has - others
            if missing & asked.names or len(missing) > len(shared):
                continue
            if (named and units & others) or (shape == kind and shape and MAY_END.search(sentence)):
                return True
    return False


def _measured(text: str, analyser: Analyser) -> list[tuple[str, Set[str]]]:
    """For each figure of a text its shape and the stems of the words on both sides of it."""
    found: list[tuple[str, Set[str]]] = []
    for match in islice(_FIGURE.finditer(text[:_LONGEST]), _MOST_FIGURES):
        figure = match.group()
        before = _LAST_WORD.search(text[max(0, match.start() - _BESIDE) : match.start()])
        after = _NEXT_WORD.match(text[match.end() : match.end() + _BESIDE])
        digits = sum(map(str.isdigit, figure))
        shape = ""
        if after and after[1].lower() in MONTHS:
            shape = "date"
        elif digits >= _LONG_NUMBER:
            shape = "long"
        elif ":" in figure:
            shape = "time"
        elif "." in figure:
            shape = "version"
        found.append((shape, frozenset(analyser.terms(" ".join(one[1] for one in (before, after) if one)))))
    return found


def _has_same_frame(earlier: str, sentence: str) -> bool:
    """Whether a sentence has most words of an earlier note in the same order, and other words in one or two places.

    Notes that differ in more places are of the same form ("batch 3 failed on day 5 at gate 2"), not of the same thing.
    """
    former, found = _WORD.findall(earlier.lower()), _WORD.findall(sentence.lower())
    if not 2 < len(former) <= _FRAME or len(found) > 2 * _FRAME:
        return False
    pairs = set(pairwise(("", *found, "")))
    # Where some words are others, all pairs from the word before them to the word after them are lost; with several
    # words lost, every second one may be the same.
    kept = (pair in pairs for pair in pairwise(("", *former, "")))
    other = [len(list(run)) - 1 for is_kept, run in groupby(kept) if not is_kept]
    places = sum((count + 1) // 2 for count in other)
    return 0 < places <= _PLACES and len(former) - sum(other) >= max(3, _SAME_FRAME * len(former))


def _keeps_numbers(asked: PresentQuestion, earlier: str, later: str) -> bool:
    """Whether a later note has each number of a question after the same word, if the earlier note does: "runner 3"."""
    named = set(_NUMBERED.findall(asked.text.lower()))
    named = named and named & set(_NUMBERED.findall(earlier.lower()))
    return not named or named <= set(_NUMBERED.findall(later.lower()))


def _wished(asked: PresentQuestion) -> Set[str]:
    """The words for wishes that a question itself has: a wish answers it."""
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
    # Who does it may be a relative now; what a relative has or does is another matter.
    lows = [word.lower().replace("’", "'") for word in found]
    answers = asked.text[:3].lower() == "who"
    lows = [low for low, after in zip(lows, [*lows[1:], ""], strict=True) if after not in _REPORTS]
    return any(
        word in _OTHERS
        and not is_known(word)
        and not (answers and not (place and lows[place - 1].endswith("'s")))
        for place, word in enumerate(lows)
    )


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
    found = [word.lower() for word in written]
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
