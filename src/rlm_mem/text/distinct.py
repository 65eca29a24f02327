"""Detects that a later note does not supersede an earlier one, by rules without a model.

The later note may be about another person, thing or part, a limited or earlier time, or an undone change; or it may be
a denial, a guess or a story. English, with some words of other languages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from rlm_mem.text import foreign_words
from rlm_mem.text.analysis import Analyser
from rlm_mem.text.clauses import (
    CHANGES,
    DAYS,
    DETERMINERS,
    ENDS,
    MONTHS,
    NUMBERS,
    POSSESSIVES,
    REPLACES,
    TRAVELLED,
    words,
)
from rlm_mem.text.factuality import (
    QUOTES,
    UNDONE,
    is_denied,
    is_doubted,
    is_elsewhere,
    is_past,
    is_taken_back,
    is_temporary,
)
from rlm_mem.text.patterns import Expressions, late
from rlm_mem.text.present import LONGEST, NO_TITLE, WORD, PresentQuestion, stems_in

# Expressions that mark something as changed, ended, present or uncertain, in several languages.
ENDED = Expressions(
    (CHANGES | ENDS | REPLACES) - TRAVELLED - words("given gave brought")
    | words(
        "longer anymore now nowadays history goodbye dismissed split broke finally finished complete completed"
    )
    | foreign_words.CHANGED,
    late(
        r"\b(?:gone off|(?:any|no) more|these days|at (?:long )?last)\b|->|→|" + foreign_words.CHANGED_OTHERS,
        re.IGNORECASE,
        signs="gone off| more|these days| last|->|→|" + foreign_words.CHANGED_SIGNS,
    ),
)
"""Words that mark a value in the same sentence as ended."""
HINTS = Expressions(
    words(
        "starting effective beginning since new newly correction corrections corrected update updated updates edit "
        "actually wrong mistake mistaken misread misheard mistyped typo scratch instead successor passed became become "
        "becomes turned formerly previously gone went so hence therefore thus because"
    )
    | foreign_words.CHANGE_HINTS,
    late(
        r"\b(?:as of|in the end|from (?:now|today|tomorrow|here|this|next|(?:the )?\d)|mixed up|rather than"
        r"|(?:took|takes?|taken) over|hand(?:ed|s) |used to|goes to"
        rf"|from (?:{'|'.join(sorted(DAYS | MONTHS))}))\b|\bnot \d|=>|{foreign_words.CHANGE_HINTS_OTHERS}",
        re.IGNORECASE,
        signs="as of|in the end|from |mixed up|rather than| over|hand|used to|goes to|not |=>|"
        + foreign_words.CHANGE_HINTS_SIGNS,
    ),
)
"""Weaker words of change."""
PRESENT = Expressions(
    words("is are has have does goes gets") | foreign_words.PRESENT,
    late(r"\b(?:it|he|she|that|there)['’]s\b", re.IGNORECASE, signs="'s|’s"),
)
"""Verbs of present states."""
CONDITION = Expressions(
    words("would could should might may if unless perhaps maybe") | foreign_words.CONDITION,
    late(r"\b(?:peut-être|tal vez)\b", re.IGNORECASE, signs="peut-être|tal vez"),
)
"""Words of uncertainty and conditions."""

_SENTENCE = late(rf"(?<=[.!?;]){NO_TITLE}\s+|\n+")
_OWNED = late(r"\b([^\W\d_]{1,40})['’]s?\s{1,9}([^\W\d_]{1,40})")
_OTHERS = words(
    "mother father sister brother neighbour neighbours neighbor neighbors cousin aunt uncle daughter son wife husband "
    "friend friends guests competitor competitors opposing rival rivals "
    "colleague colleagues parents mum dad grandma grandpa nephew niece tenants boss "
    "mutter vater schwester bruder nachbarin nachbar tochter sohn tante onkel freundin kollegin "
    "madre padre hermana hermano vecina vecino hija hijo tía tío amiga amigo marido prima primo "
    "mère père maman papa sœur frère voisine voisin fille fils tante oncle amie ami cousine mari "
    "konkurrenz competencia "
    "fratello sorella figlio figlia zio zia amico amica cugino cugina moglie marito concorrenza "
    "brat brata siostra siostry matka ojciec syn córka sąsiad sąsiadka sąsiedzi kolega koleżanka konkurencja"
)
"""Words for other people than those in the earlier note, unless it also contains them."""
_OURS = late(
    r"\b(?:my|our|unser\w{0,2}|mein\w{0,2}|notre|nos|chez nous|mon|ma|mes"
    r"|nuestr[oa]s?|nostr[oaei]|nasz\w{0,3}|mój|moj\w)\b",
    re.IGNORECASE,
)
_THEIRS = words(
    "their his her ihr ihre ihren ihrer ihrem seine seinen seiner seinem leur leurs su sus loro ich jego jej"
)
_REPORTS = words("told says said tells writes wrote")
OWNERS = (DETERMINERS | POSSESSIVES) - {"that", "those"}
_RETURNED = late(
    rf"\b(?:{UNDONE}|(?<!put )back to|remains|stay(?:s|ed|ing)? with"
    r"|(?:came|went|moved|is|are) back (?:to|at|in|on|with)|(?:is|are|it's) still)\b",
    re.IGNORECASE,
    signs="rolled|reverted|undid|undone|back |remains|stay|still",
)
"""Words before a former value that mark it as in force again, or still."""
_CLAUSE = late(r"[,;.]\s")
_ONLY = words("only just") | foreign_words.ONLY
_WITHIN = {"english": words("on in at for during under"), **foreign_words.WITHIN}
_AT = words("at bei")
"""Those that tell of an event before an article: "bei der Wahl", unlike "bei Regen"."""
_MAX_LIMIT = 4
"""Most words of a limit at the beginning of a sentence, without the preposition: "on match days", "for Tallis Ltd"."""
_LINKS = words("of for on in to at with from about")
_OF_TIME = words("new old first next last")
_ADDRESSED = late(r"^\W*\w{1,20},|,\s+\w{1,20}[.!]*$", signs=",")
"""Who a sentence speaks to, at its beginning or end: "Dad, the dog gets …"."""
_END_OF_DENIAL = "is as re do es id ve ad ll ld an n't n’t not really all"
_DENIAL = late(
    r"(?:^|[.!?;:,(–—]\s{0,2})(?:but |and |well,? |no,? )?(?:it|he|she|they|that|this|we|i) "
    r"(?:is|was|are|were|do|does|did|has|have|had|will|would|can)(?:n['’]t| not)?(?: really| at all)?[.!)]"
    r"|\b(?:denie[sd]|untrue|stimmt (?:es )?nicht|no es (?:cierto|verdad)|dément(?:i|ent)?|n['’]est pas vrai"
    r"|(?:reports?|claims?|rumou?rs?|story) (?:[\w'’]{1,20} ){0,12}(?:is|are) (?:false|not true))\b",
    re.IGNORECASE,
    signs="denie|untrue|stimmt |no es |dément|pas vrai|false|not true|"
    + "|".join(one + mark for one in _END_OF_DENIAL.split() for mark in ".!)"),
)
"""A sentence that only denies or affirms the previous one ("It isn't.", "He does."), or a word of denial."""
_CALLED_OFF = late(
    r"\b(?:(?<!the )false alarm|no (?:decision|vote)|decided against"
    r"|(?:not|n['’]t) (?:yet )?(?:answered|decided|voted)|voted down|nothing (?:has )?changed"
    r"|(?:stays|left|remains) as (?:it )?(?:is|was)|(?:normal|usual|old|regular) (?:\w{2,20} )?appl(?:y|ies)"
    r"|it stays?(?=[.!;,])|left (?:\w{2,20} ){1,3}alone|at the (?:usual|normal)|the (?:usual|normal) \w{2,20} again"
    r"|(?:is|are|was|were|keeps?|says?) what (?:it|they|we|he|she) (?:(?:always|had|have|has) ){0,2}"
    r"(?:was|were|are|have|been|had|said|did)"
    r"|(?:alles|rest|resto|todo|tout|reste) (?:\w{2,20} ){0,2}(?:wie|como|comme) "
    r"(?:immer|bisher|vorher|siempre|antes|avant|toujours)|retour à la normale"
    r"|it lasted|declared void|rückgängig|marche arrière|como estaba|sin efecto)\b",
    re.IGNORECASE,
    signs="false alarm|no decision|no vote|decided|answered|voted|nothing |as it |as is|as was|appl|it stay|alone|usual"
    "|normal| what |wie |como |comme |it lasted|declared void|rückgängig|marche arr|sin efecto",
)
"""Words that state, in any sentence, that an event did not happen or nothing has changed."""
_STAYS = late(r"stays|left|remains", re.IGNORECASE)
"""Those of these words that follow their subject."""
_AS_BEFORE = late(r"\bas ever\b", re.IGNORECASE, signs="as ever")
"""The same, except beside a change to another thing: "on Wednesdays since last week, 19:30 as ever"."""
_PART_FIRST = late(r"\W*(?:out )?of (?:the|this|that|our|my|his|her|its|their)\b", re.IGNORECASE, signs="of ")
"""A sentence about a part: "Of the budget, 800 go to the band"."""
_PART = late(
    r"\W*(?:the|an?|our|my|la|le|der|die|das) (?:\w{1,40} ){0,2}?(\w{1,40})"
    r" (?:of|de|du|von|der|des) (?:(?:the|our|my|la|le) )?(\w{1,40})",
    re.IGNORECASE,
    signs=" of | de | du | von | der | des ",
)
"""A sentence about a part or relative of something: "The platform of the tower"."""
_TOO = late(r"(\w{2,40}) too\b(?! \w)", re.IGNORECASE, signs=" too")
"""After a word that is known, "too" adds nothing: "banned during break too" is about the break in question."""
_IS_NOT = late(
    r"\b(?:is|are|was|were|do|does|did|has|have)(?: not|n['’]t)\b",
    re.IGNORECASE,
    signs=" not|n't|n’t",
)
_GOES_ON = late(r"\b(?:but|instead|now|more|longer|after all)\b", re.IGNORECASE)
"""Words that accompany a denial in a sentence that states the value in force instead."""
_STOP = late(r"[;:–—]")
_END_OF_CLAUSE = late(r"[,;–—]\s(?!too\b)|\s(?:and|but|y|und|et)\s")
_NUMBERED = late(r"([^\W\d_]{1,40}) {1,3}(\d{1,20})(?!\w)")
"""A noun with its number: "runner 3"."""
DIGIT = late(r"\d")
NOT = late(r"\b(?:not?|never|nobody|none|neither)\b|n['’]t\b", re.IGNORECASE)
_LONGEST_CLAUSE = 200
"""Number of characters read after "back to"."""
MEASURES = words("second minut hour day week month year time euro dollar percent half new work")
"""Stems of words that are not a value by themselves."""


def is_passing(asked: PresentQuestion, text: str, analyser: Analyser, *, year: int) -> bool:
    """Whether a note may give no lasting answer: a guess, a denial, limited in time, or about another thing."""
    parts = [one for one in _SENTENCE.split(text[:LONGEST]) if one.strip()]
    if not parts:
        return False
    best = max(parts, key=lambda one: len(asked.stems & stems_in(one, analyser)))
    return (
        (not ENDED.found_in(text[:LONGEST]) and _is_of_the_past(best, asked, "", frozenset(), analyser))
        or _DENIAL.search(text[:LONGEST]) is not None
        or any(_is_called_off(one, best, asked.stems, analyser) for one in parts)
        or is_denied(best, asked.text, year)
        or _doubted(best, asked, asked.stems, analyser)
        or is_temporary(best, asked.text)
        or _limit_of(best, asked.stems, analyser) > 0
        or is_elsewhere(best, asked.text, text[: text.find(best)])
        or _is_about_part(best, asked, asked.stems, analyser)
        or _is_about_another_person(best, asked.stems, asked, analyser)
        or (NOT.search(asked.text) is None and _denies_another_value(best, frozenset(), analyser))
    )


def exceptions(
    asked: PresentQuestion,
    earlier: str,
    later: str,
    texts: Mapping[str, Set[str]],
    analyser: Analyser,
    year: int,
) -> tuple[bool, bool]:
    """Whether a later note certainly does not supersede an earlier one, and otherwise whether it may not.

    Args:
        texts, year: as for :func:`rlm_mem.text.update_score.retelling`.
    """
    before, after = texts[earlier], texts[later]
    had, has = asked_stems(asked, earlier, texts, later, analyser), asked.stems & after
    parts = sentences(later, analyser)
    if not parts:
        return True, False
    best = best_of(parts, had, before)
    known, value = before | asked.stems, before - asked.stems
    limit = _limit_of(best, known, analyser)
    telling, context = value - MEASURES, f"{asked.text}\n{earlier}"
    is_question = any(
        one.rstrip().endswith(("?", "？")) and not (has | telling).isdisjoint(stems) for one, stems in parts
    )
    if (
        is_question
        or any(_is_called_off(one, best, known, analyser) for one, _ in parts)
        or any(_AS_BEFORE.search(one) and not says(one).change for one, _ in parts)
        or is_taken_back(later)
        or _holds_again(telling & after, parts, analyser)
        or is_denied(best, asked.text, year)
        or is_elsewhere(best, context, later[: later.find(best)])
        or limit == _ONLY_WITHIN
        or (not ENDED.found_in(later[:LONGEST]) and _is_of_the_past(best, asked, earlier, telling, analyser))
        or _DENIAL.search(later[:LONGEST])
        or _is_about_unnamed_thing(best, has, known, analyser)
        or _is_about_another_of_the_sort(asked, later, known, after, analyser)
        or (asked.is_english and _is_about_another_person(best, known, asked, analyser))
        or _denies_another_value(best, value & after, analyser)
    ):
        return True, False
    names = asked.names - asked.abbreviations if ENDED.found_in(later) else asked.names
    return False, bool(
        (not (had - has).isdisjoint(names) and not _names_answer(earlier, telling & after, analyser))
        or later[:1] in QUOTES
        or limit > 0
        or is_temporary(best, context)
        or _doubted(best, asked, had | before, analyser)
        or _is_about_another_person(best, known, asked, analyser)
        or _is_about_part(best, asked, known, analyser)
    )


def _names_answer(earlier: str, value: Set[str], analyser: Analyser) -> bool:
    """Whether a name in the earlier note's answer, except its first word, is among the shared words of the answer."""
    return any(
        one.istitle() and not value.isdisjoint(analyser.terms(one))
        for one in WORD.findall(earlier[:LONGEST])[1:]
    )


@lru_cache(maxsize=64)
def sentences(text: str, analyser: Analyser) -> tuple[tuple[str, Set[str]], ...]:
    """Sentences of a text with their stems, cached because a note is compared with several others."""
    return tuple((one, stems_in(one, analyser)) for one in _SENTENCE.split(text[:LONGEST]) if one.strip())


class Says(NamedTuple):
    """Whether a text has words of change, of the present and of a condition, independent of other texts."""

    change: bool
    present: bool
    condition: bool


@lru_cache(maxsize=64)
def says(text: str) -> Says:
    """Look up which kinds of words a text has."""
    start = text[:LONGEST]
    return Says(
        ENDED.found_in(text) or HINTS.found_in(text), PRESENT.found_in(start), CONDITION.found_in(start)
    )


def best_of(parts: Sequence[tuple[str, Set[str]]], had: Set[str], before: Set[str]) -> str:
    """The sentence with the most words of a question; among equals, the most words of the earlier note."""
    return max(parts, key=lambda one: (len(had & one[1]), len(before & one[1])))[0]


def asked_stems(
    asked: PresentQuestion, earlier: str, texts: Mapping[str, Set[str]], later: str, analyser: Analyser
) -> Set[str]:
    """Stems of the question in the earlier note, except a kind of value that the later note does not name.

    "Which Ruby does the mailer need?", "The mailer needs Ruby 3.1", "Bumped the mailer to 3.3".
    """
    had = asked.stems & texts[earlier]
    if had <= texts[later] or not DIGIT.search(later[:LONGEST]):
        return had
    for kind, _ in _NUMBERED.findall(earlier[:LONGEST]):
        had -= stems_in(kind, analyser) - texts[later]
    return had


def _holds_again(value: Set[str], parts: Sequence[tuple[str, Set[str]]], analyser: Analyser) -> bool:
    """Whether a later note reverts to the earlier value: "tried B for a while, back to A"."""
    for sentence, stems in parts:
        if value.isdisjoint(stems):
            continue
        match = _RETURNED.search(sentence)
        if match is not None:
            clause = _CLAUSE.split(sentence[match.end() : match.end() + _LONGEST_CLAUSE], maxsplit=1)[0]
            if not value.isdisjoint(analyser.terms(clause)):
                return True
    return False


def _is_called_off(sentence: str, best: str, known: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence says that something did not happen or has not changed, unless of another thing.

    "The open day stays as it is" says nothing about the supplier of another sentence.
    """
    found = _CALLED_OFF.search(sentence)
    if found is None:
        return False
    named = (
        analyser.terms(sentence[: found.start()]) if sentence is not best and _STAYS.match(found[0]) else []
    )
    return not named or not known.isdisjoint(named)


_IN_PART, _ONLY_WITHIN = 1, 2


def _limit_of(sentence: str, known: Set[str], analyser: Analyser) -> int:
    """Whether a sentence without words of change begins with a limit that is not known.

    Returns:
        2 for one with "only" ("only for Tallis Ltd"), 1 for a plain one ("on match days"), 0 for none.
    """
    if ENDED.found_in(sentence) or HINTS.found_in(sentence):
        return 0
    found = list(islice(WORD.finditer(sentence), _MAX_LIMIT + 3))
    lows = [one[0].lower() for one in found]
    only = lows[:1] != [] and lows[0] in _ONLY
    if lows[only : only + 1] == [] or lows[only] not in _WITHIN.get(analyser.language, ()):
        return 0
    end, telling = found[only].end(), False
    for match in found[only + 1 :]:
        stems = analyser.terms(match[0])
        if sentence[end : match.start()] != " " or not known.isdisjoint(stems) or (telling and not stems):
            return (_ONLY_WITHIN if only else _IN_PART) if telling else 0
        if DIGIT.search(match[0]) or match[0].lower() in POSSESSIVES or (lows[only] in _AT and not stems):
            return 0  # "in 2026", "in its place", "at the meeting"
        telling, end = telling or bool(stems), match.end()
    return 0


def _is_of_the_past(
    sentence: str, asked: PresentQuestion, earlier: str, value: Set[str], analyser: Analyser
) -> bool:
    """Whether a sentence without words of change states in the past tense what the question asks in the present."""
    if HINTS.found_in(sentence):
        return False
    return is_past(sentence, asked.stems, f"{asked.text}\n{earlier}", value, analyser)


def _doubted(sentence: str, asked: PresentQuestion, known: Set[str], analyser: Analyser) -> bool:
    return is_doubted(
        sentence,
        asked.text,
        tells_of_change=ENDED.found_in(sentence),
        main_part=_TOO.sub(
            lambda found: found[0] if known.isdisjoint(analyser.terms(found[1])) else found[1],
            _up_to_best_clause(sentence, known, analyser),
        ),
    )


def _up_to_best_clause(sentence: str, known: Set[str], analyser: Analyser) -> str:
    """A sentence up to the end of the clause with the most of the known words."""
    most, found, begin = 0, len(sentence), 0
    for stop in chain(_END_OF_CLAUSE.finditer(sentence), (None,)):
        end = len(sentence) if stop is None else stop.start()
        has = len(known & set(analyser.terms(sentence[begin:end])))
        if has and has >= most:
            most, found = has, end
        begin = end
    return sentence[:found]


def _is_about_another_person(
    sentence: str, known: Set[str], asked: PresentQuestion, analyser: Analyser
) -> bool:
    """Whether a sentence is about something of another person: "Karla's brother", "Ana's bike"."""
    sentence = _ADDRESSED.sub("", sentence)

    def is_known(word: str) -> bool:
        return not known.isdisjoint(analyser.terms(word))

    for match in _OWNED.finditer(sentence):
        owner, thing = match[1], match[2].lower()
        is_asked_for = not asked.stems.isdisjoint(analyser.terms(thing))
        if owner[0].isupper() and analyser.terms(owner) and not is_known(owner) and is_asked_for:
            return True
    found = WORD.findall(sentence)
    if not found:
        return False
    named = [place for place, word in enumerate(found) if not asked.stems.isdisjoint(analyser.terms(word))]
    if _OURS.search(asked.text) and not _OURS.search(sentence):
        theirs = (found[max(0, place - 2) : place] for place in named)
        if any(word.lower() in _THEIRS for two in theirs for word in two):
            return True
    # The answer to "who …" may be a relative, but their possessions and actions are another matter.
    lows = [word.lower().replace("’", "'") for word in found]
    answers = asked.text[:3].lower() == "who"
    lows = [low for low, after in zip(lows, [*lows[1:], ""], strict=True) if after not in _REPORTS]
    return any(
        word.removesuffix("'s") in _OTHERS
        and not is_known(word)
        and not (answers and not (place and lows[place - 1].endswith("'s")))
        and not (place and (lows[place - 1] in NUMBERS or lows[place - 1].isdigit()))
        for place, word in enumerate(lows)
    )


def _is_about_part(sentence: str, asked: PresentQuestion, known: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence is about an unnamed part of the subject in question: "The platform of the tower is …"."""
    if _PART_FIRST.match(sentence):
        return True
    match = _PART.match(sentence)
    if match is None or asked.subject.isdisjoint(analyser.terms(match[2])):
        return False
    part = analyser.terms(match[1])
    return bool(part) and known.isdisjoint(part)


def _denies_another_value(sentence: str, value: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence denies a value other than the earlier one, and gives none: "It is not at Anna's"."""
    denial = _IS_NOT.search(sentence)
    if denial is None or _GOES_ON.search(sentence) or _STOP.search(sentence, denial.end()):
        return False
    if "," in sentence[: denial.start()] and _STOP.search(sentence, 0, denial.start()):
        return False  # "no more rule: cats are allowed, dogs are not"
    return value.isdisjoint(stems_in(sentence, analyser)) if value else True


def _is_about_another_of_the_sort(
    asked: PresentQuestion, later: str, known: Set[str], after: Set[str], analyser: Analyser
) -> bool:
    """Whether a word of the question has another companion in the later note: "the big compressor" for "the small one".

    Only if no word of either pair occurs anywhere in the other text; in other languages than English, whose order of
    words is freer, only for companions behind a preposition: "the key for the attic" for "the key for the cellar".
    """
    if asked.spaceless or asked.stems <= after:
        return False
    theirs = _beside(later[:LONGEST], analyser)
    for place, words_beside in _beside(asked.text, analyser).items():
        if not asked.is_english and place[1] not in foreign_words.LINKS:
            continue
        others = theirs.get(place, frozenset())
        if others and words_beside.isdisjoint(after) and known.isdisjoint(others):
            return True
    return False


@lru_cache(maxsize=64)
def _beside(text: str, analyser: Analyser) -> dict[tuple[str, str], Set[str]]:
    """The stems before each stem, after it as its number or name, or after it and a preposition."""
    found: dict[tuple[str, str], set[str]] = {}
    before: list[tuple[str, Set[str]]] = []
    end, is_noun = 0, False
    links, owners = _LINKS, OWNERS
    if analyser.language != "english":
        links, owners = foreign_words.LINKS, foreign_words.ARTICLES
    for match in WORD.finditer(text):
        begins = text[end : match.start()] != " "
        if begins:
            before = []
        end = match.end()
        word = match[0].removesuffix("'s").removesuffix("’s")
        if before and before[-1][0] in links and word.lower() in owners:
            continue
        stems = frozenset(analyser.terms(word)[:1]) - _OF_TIME  # of "7a" not also "7"
        pairs: list[tuple[Set[str], str, Set[str]]] = [(stems, "before", before[-1][1])] if before else []
        if before and (word[0].isdigit() or (word[0].isupper() and is_noun)):
            pairs.append((before[-1][1], "label", stems))
        if len(before) > 1 and before[-1][0] in links:
            pairs.append((before[-2][1], before[-1][0], stems))
        for of, side, others in pairs:
            for stem in of if others else ():
                found.setdefault((stem, side), set()).update(others)
        is_noun = begins or word[0].islower()
        before = [*before[-1:], (word, stems)]
    return dict(found)


def _is_about_unnamed_thing(sentence: str, has: Set[str], known: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence is about something that the earlier note does not name: "the recipe of aunt Hedwig"."""
    found = WORD.findall(sentence.lower())
    for place, word in enumerate(found[:-2]):
        if found[place + 1] == "of" and not has.isdisjoint(analyser.terms(word)):
            of = next((one for one in found[place + 2 :] if one not in OWNERS), "")
            stems = [] if of[:1].isdigit() else analyser.terms(of)  # not "a batch size of 24"
            if stems and known.isdisjoint(stems):
                return True
    return False
