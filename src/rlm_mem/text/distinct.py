"""Detects that a later note does not supersede an earlier one, by rules without a model.

The later note may be about another person, thing or part, a limited or earlier time, or an undone change; or it may be
a denial, a guess or a story. English, with some words of other languages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from rlm_mem import text as language
from rlm_mem.text.analysis import Analyser
from rlm_mem.text.by_language import (
    ARTICLES,
    CALLED_OFF,
    CONDITION,
    DENIAL,
    ENDED,
    HINTS,
    LINKS,
    ONLY,
    OTHERS,
    OURS,
    PART,
    PRESENT,
    THEIRS,
    WITHIN,
)
from rlm_mem.text.clauses import DETERMINERS, NUMBERS, POSSESSIVES
from rlm_mem.text.factuality import (
    BEGINS,
    UNDONE,
    is_denied,
    is_doubted,
    is_elsewhere,
    is_past,
    is_taken_back,
    is_temporary,
)
from rlm_mem.text.patterns import late, signed, word_set
from rlm_mem.text.present import LONGEST, WORD, PresentQuestion, stems_in
from rlm_mem.text.sentences import sentences_of_lines

_OWNED = late(r"\b([^\W\d_]{1,40})['’]s?\s{1,9}([^\W\d_]{1,40})")
_REPORTS = word_set("told says said tells writes wrote")
OWNERS = (DETERMINERS | POSSESSIVES) - {"that", "those"}
_RETURNED = signed(
    rf"\b(?:{UNDONE}|(?<!put )back to|return(?:s|ed) to|remains|stay(?:s|ed|ing)? with"
    r"|(?:came|went|moved|is|are) back (?:to|at|in|on|with)|(?:is|are|it's) still)\b"
)
"""Words before a former value that mark it as in force again, or still."""
_CLAUSE = late(r"[,;.]\s")
_AT = word_set("at bei")
"""Prepositions of an event, if an article follows: "bei der Wahl", unlike "bei Regen"."""
_MAX_LIMIT = 4
"""Most words of a limit at the beginning of a sentence, without the preposition: "on match days", "for Tallis Ltd"."""
_LINKS = word_set("of for on in to at with from about")
_OF_TIME = word_set("new old first next last")
_ADDRESSED = signed(r"^\W*\w{1,20},|,\s+\w{1,20}[.!]*$")
"""Who a sentence speaks to, at its beginning or end: "Dad, the dog gets …"."""
_ASKS = ("?", "？")
_STAYS = late(r"stays|left|remains", re.IGNORECASE)
"""The first of the words of ``CALLED_OFF`` that follow their subject."""
_AS_BEFORE = signed(r"([^,;:.]{0,80})\bas (?:ever|(?:always|before|usual)(?=[.,;!]|$))")
"""Nothing has changed, except beside a change to another thing: "on Wednesdays since last week, 19:30 as ever"."""
_PART_FIRST = signed(r"\W*(?:out )?of (?:the|this|that|our|my|his|her|its|their)\b")
"""A sentence about a part: "Of the budget, 800 go to the band"."""
_IS_NOT = signed(r"\b(?:is|are|was|were|do|does|did|has|have)(?: not|n['’]t)\b")
_GOES_ON = late(r"\b(?:but|instead|now|more|longer|after all)\b", re.IGNORECASE)
"""Words that accompany a denial in a sentence that states the value in force instead."""
_STOP = late(r"[;:–—]")
_END_OF_CLAUSE = late(r"[,;–—]\s(?!too\b)|\s(?:and|but|y|und|et)\s")
_NUMBERED = late(r"([^\W\d_]{1,40}) {1,3}(\d{1,20})(?!\w)")
"""A noun with its number: "runner 3"."""
DIGIT = late(r"\d")
NOT = late(r"\b(?:not?|never|nobody|none|neither)\b|n['’]t\b", re.IGNORECASE)
_TITLE = late(r"\s*([^\n]{1,120}[^\s.!?;:,])[ \t]*\n\s*([^\n]{1,300})")
"""A first line without a final punctuation mark, and the beginning of the next one."""
_UNCOUNTED = OWNERS | ARTICLES
_LONGEST_SAID = 40
"""Most words of a sentence that is compared with another one word by word."""
_LONGEST_VALUE = 2
"""Most words of a value that stands for one of another number of words: "Redis" and "the database"."""
_SAME = 2
"""Fewest words that such sentences have in common."""
_LONGEST_CLAUSE = 200
"""Number of characters read after "back to"."""
MEASURES = word_set("second minut hour day week month year time euro dollar percent half new work")
"""Stems of words that are not a value by themselves."""


def is_passing(asked: PresentQuestion, text: str, analyser: Analyser, *, year: int) -> bool:
    """Whether a note may give no lasting answer: a guess, a denial, limited in time, or about another thing."""
    return any(exceptions(asked, "", text, {text: stems_in(text, analyser)}, analyser, year))


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
        earlier: the earlier note; empty for none.
        texts, year: as for :func:`rlm_mem.text.update_score.retelling`.
    """
    before, after = texts.get(earlier, frozenset()), texts[later]
    had = asked_stems(asked, earlier, texts, later, analyser) if earlier else asked.stems
    has = asked.stems & after
    parts = sentences(later, analyser)
    if not parts or _have_other_titles(earlier, later, analyser):
        return True, False
    best = best_of(parts, had, before)
    known, value = before | asked.stems, before - asked.stems
    telling, context = value - MEASURES, f"{asked.text}\n{earlier}"
    if (
        best.rstrip().endswith(_ASKS)
        or any(_is_called_off(one, best, known, analyser) for one, _ in parts)
        or any(_is_as_before(one, asked, analyser) for one, _ in parts)
        or is_taken_back(later)
        or _holds_again(earlier, telling & after, parts, analyser)
        or is_denied(best, asked.text, year)
        or is_elsewhere(best, context, later[: later.find(best)])
        or (not ENDED.found_in(later[:LONGEST]) and _is_of_the_past(best, asked, earlier, telling, analyser))
        or DENIAL.search(later[:LONGEST])
        or _is_about_another_of_the_sort(asked, earlier, later, known, after, analyser)
        or (asked.is_english and _is_about_another_person(best, known, asked, analyser))
        or ((earlier or not NOT.search(asked.text)) and _denies_another_value(best, value & after, analyser))
    ):
        return True, False
    if earlier and (
        _is_about_unnamed_thing(best, has, known, analyser)
        or (not says(later).change and _is_said_of_another(asked, earlier, best, analyser))
    ):
        return True, False
    names = asked.names - asked.abbreviations if ENDED.found_in(later) else asked.names
    return False, bool(
        (
            earlier
            and not (had - has).isdisjoint(names)
            and not _names_answer(earlier, telling & after, analyser)
        )
        or _is_limited(best, known, analyser)
        or is_temporary(best, context)
        or is_doubted(
            best,
            asked.text,
            has_change_word=ENDED.found_in(best),
            main_part=_up_to_best_clause(best, had | before, analyser),
        )
        or _is_about_another_person(best, known, asked, analyser)
        or _is_about_part(best, asked, known, analyser)
    )


def _have_other_titles(earlier: str, later: str, analyser: Analyser) -> bool:
    """Whether both texts are articles on different things: "Hanna Lind" and "Lind Quartet".

    "Deploy" and "Deploy day" may be one thing, since the longer title has no further name.
    """
    about, other = _title_of(earlier, analyser), _title_of(later, analyser)
    if not about or not other or about.keys() == other.keys():
        return False
    less, more = sorted((about, other), key=len)
    return any(stem not in more for stem in less) or any(
        word[0].isupper() for stem, word in more.items() if stem not in less
    )


@lru_cache(maxsize=64)
def _title_of(text: str, analyser: Analyser) -> Mapping[str, str]:
    """The words of the title of an article by stem: of a first line of which the next one repeats all words, else none.

    A statement ("Standup is at 9:30") is hardly repeated so.
    """
    found = _TITLE.match(text)
    if found is None or not stems_in(found[1], analyser) <= stems_in(found[2], analyser):
        return {}
    return {stem: word for word in WORD.findall(found[1]) for stem in analyser.terms(word)}


def _names_answer(earlier: str, value: Set[str], analyser: Analyser) -> bool:
    """Whether a name in the earlier note's answer, except its first word, is among the shared words of the answer."""
    return any(
        one[0].isupper() and not value.isdisjoint(analyser.terms(one))
        for one in WORD.findall(earlier[:LONGEST])[1:]
    )


@lru_cache(maxsize=64)
def sentences(text: str, analyser: Analyser) -> tuple[tuple[str, Set[str]], ...]:
    """Sentences of a text with their stems, cached because a note is compared with several others."""
    parts = (
        one
        for start, end in sentences_of_lines(text[:LONGEST])
        for one in text[start:end].replace("; ", ";\n").split("\n")
    )
    return tuple((one, stems_in(one, analyser)) for one in parts)


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


_NOT_THAT = late(r"\b(?:not|no|from|instead of|rather than|used to be) ((?:\S{1,40} ?){1,3})", re.IGNORECASE)
"""A value that is not, or no longer, the one in force: "not 3.07 but 5.12", "what used to be Go is Rust"."""


def ends_value(value: Set[str], later: str, analyser: Analyser) -> bool:
    """Whether a sentence of a later note ends or denies an earlier value: "Brittany fell through", "not 3.07 but 5.12".

    Args:
        value: stems of the value, which the question does not have.
    """
    return any(
        not value.isdisjoint(stems)
        and (
            ENDED.found_in(sentence)
            or any(not value.isdisjoint(analyser.terms(found)) for found in _NOT_THAT.findall(sentence))
        )
        for sentence, stems in (sentences(later, analyser) if value else ())
    )


def best_of(parts: Sequence[tuple[str, Set[str]]], had: Set[str], before: Set[str]) -> str:
    """The sentence with the most words of a question; among equals, the most words of the earlier note; "" of none."""
    return max(parts, key=lambda one: (len(had & one[1]), len(before & one[1])), default=("",))[0]


def asked_stems(
    asked: PresentQuestion, earlier: str, texts: Mapping[str, Set[str]], later: str, analyser: Analyser
) -> Set[str]:
    """Stems of the question in the earlier note, except a kind of value that the later note does not name.

    "Which Ruby does the mailer need?", "The mailer needs Ruby 3.1", "Bumped the mailer to 3.3". Likewise the option
    that the later note replaces by another one: "tabs" of "Tabs or spaces?".
    """
    had = asked.stems & texts[earlier]
    if names_other_option(asked, texts[earlier], texts[later]):
        had = had.difference(*asked.options)
    if had <= texts[later] or not DIGIT.search(later[:LONGEST]):
        return had
    for kind, _ in _NUMBERED.findall(earlier[:LONGEST]):
        had -= stems_in(kind, analyser) - texts[later]
    return had


def names_other_option(asked: PresentQuestion, before: Set[str], after: Set[str]) -> bool:
    """Whether the later of two notes has another of the alternatives that a question names than the earlier one."""
    had = [not one.isdisjoint(before) for one in asked.options]
    return any(had) and any(
        not was and not one.isdisjoint(after) for was, one in zip(had, asked.options, strict=True)
    )


def _holds_again(
    earlier: str, value: Set[str], parts: Sequence[tuple[str, Set[str]]], analyser: Analyser
) -> bool:
    """Whether a later note reverts to the earlier value: "tried B for a while, back to A".

    Not if the earlier note says itself that this value has ended: "switched from A to B".
    """
    again = returns_to(value, parts, analyser)
    if not again:
        return False
    ended = {stem for one in language.statements_in(earlier, analyser) for stem in one.former}
    return not again <= ended


def returns_to(value: Set[str], parts: Sequence[tuple[str, Set[str]]], analyser: Analyser) -> Set[str]:
    """The stems of a value that are in force again, or still, by one of the sentences: "back to A"."""
    for sentence, stems in parts:
        match = None if value.isdisjoint(stems) else _RETURNED.search(sentence)
        if match is not None:
            clause = _CLAUSE.split(sentence[match.end() : match.end() + _LONGEST_CLAUSE], maxsplit=1)[0]
            if again := value & set(analyser.terms(clause)):
                return again
    return frozenset()


def _is_as_before(sentence: str, asked: PresentQuestion, analyser: Analyser) -> bool:
    """Whether nothing has changed by a sentence: "holiday requests as always"; not by "8 pm as always" or the like."""
    found = _AS_BEFORE.search(sentence)
    if found is None or says(sentence).change:
        return False
    return found[0].endswith("ever") or not asked.stems.isdisjoint(analyser.terms(found[1]))


def _is_called_off(sentence: str, best: str, known: Set[str], analyser: Analyser) -> bool:
    """Whether something did not happen or has not changed by a sentence, unless it is about another thing.

    "The open day stays as it is" does not concern the supplier in another sentence.
    """
    found = CALLED_OFF.search(sentence)
    if found is None:
        return False
    named = (
        analyser.terms(sentence[: found.start()]) if sentence is not best and _STAYS.match(found[0]) else []
    )
    return not named or not known.isdisjoint(named)


def _is_limited(sentence: str, known: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence without words of change begins with a limit that is not known: "only for Tallis Ltd"."""
    if ENDED.found_in(sentence) or HINTS.found_in(sentence):
        return False
    found = list(islice(WORD.finditer(sentence), _MAX_LIMIT + 3))
    lows = [one[0].lower() for one in found]
    only = int(not ONLY.isdisjoint(lows[:1]))
    if WITHIN.get(analyser.language, ONLY).isdisjoint(lows[only : only + 1]):
        return False
    end, telling = found[only].end(), False
    for match in found[only + 1 :]:
        stems = analyser.terms(match[0])
        if sentence[end : match.start()] != " " or not known.isdisjoint(stems) or (telling and not stems):
            return telling
        if DIGIT.search(match[0]) or match[0].lower() in POSSESSIVES or (lows[only] in _AT and not stems):
            return False  # "in 2026", "in its place", "at the meeting"
        telling, end = telling or bool(stems), match.end()
    return False


def _is_of_the_past(
    sentence: str, asked: PresentQuestion, earlier: str, value: Set[str], analyser: Analyser
) -> bool:
    """Whether a sentence without words of change states in the past tense what the question asks in the present."""
    if HINTS.found_in(sentence):
        return False
    return is_past(sentence, asked.stems, f"{asked.text}\n{earlier}", value, analyser)


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
    """Whether a sentence is about something of another person: "Karla's brother", "the neighbours' bike"."""
    sentence = _ADDRESSED.sub("", sentence)

    def is_known(word: str) -> bool:
        return not known.isdisjoint(analyser.terms(word))

    for match in _OWNED.finditer(sentence):
        owner, thing = match[1], match[2].lower()
        is_asked_for = not asked.stems.isdisjoint(analyser.terms(thing))
        is_person = owner[0].isupper() or owner.lower() in OTHERS
        if is_person and analyser.terms(owner) and not is_known(owner) and is_asked_for:
            return True
    found = WORD.findall(sentence)
    if not found:
        return False
    named = [place for place, word in enumerate(found) if not asked.stems.isdisjoint(analyser.terms(word))]
    if OURS.search(asked.text) and not OURS.search(sentence):
        theirs = (found[max(0, place - 2) : place] for place in named)
        if any(word.lower() in THEIRS for two in theirs for word in two):
            return True
    # "son" is a relative in English, and "his" in French. The answer to "who …" may be a relative, but their
    # possessions and actions are another matter.
    lows = [word.lower().replace("’", "'") for word in found]
    answers = asked.text[:3].lower() == "who"
    lows = [low for low, after in zip(lows, [*lows[1:], ""], strict=True) if after not in _REPORTS]
    return any(
        word.removesuffix("'s") in OTHERS
        and analyser.terms(word)
        and not is_known(word)
        and not (answers and not (place and lows[place - 1].endswith("'s")))
        and not (place and (lows[place - 1] in NUMBERS or lows[place - 1].isdigit()))
        for place, word in enumerate(lows)
    )


def _is_about_part(sentence: str, asked: PresentQuestion, known: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence is about an unnamed part of the subject in question: "The platform of the tower is …"."""
    if _PART_FIRST.match(sentence):
        return True
    match = PART.match(sentence)
    if match is None:
        return False
    part, whole = (analyser.terms(word) for word in match.groups() if word)
    return bool(part) and known.isdisjoint(part) and not asked.subject.isdisjoint(whole)


def _denies_another_value(sentence: str, value: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence denies a value other than the earlier one, and gives none: "It is not at Anna's"."""
    denial = _IS_NOT.search(sentence)
    if (
        denial is None
        or _GOES_ON.search(sentence)
        or BEGINS.search(sentence)
        or _STOP.search(sentence, denial.end())
    ):
        return False
    if "," in sentence[: denial.start()] and _STOP.search(sentence, 0, denial.start()):
        return False  # "no more rule: cats are allowed, dogs are not"
    return value.isdisjoint(stems_in(sentence, analyser)) if value else True


def _is_about_another_of_the_sort(
    asked: PresentQuestion, earlier: str, later: str, known: Set[str], after: Set[str], analyser: Analyser
) -> bool:
    """Whether a word of the question has another companion in the later note: "the big compressor" for "the small one".

    Only if the earlier note has the one of the question, and no word of either pair occurs anywhere in the other text;
    in other languages than English, whose order of words is freer, only for companions behind a preposition: "the key
    for the attic" for "the key for the cellar".
    """
    if asked.spaceless or asked.stems <= after:
        return False
    mine, theirs = (_beside(text[:LONGEST], analyser) for text in (earlier, later))
    for place, words_beside in _beside(asked.text, analyser).items():
        if not asked.is_english and place[1] not in LINKS:
            continue
        others = theirs.get(place, frozenset())
        has = not words_beside.isdisjoint(mine.get(place, frozenset()))
        if has and others and words_beside.isdisjoint(after) and known.isdisjoint(others):
            return True
    return False


def _is_said_of_another(asked: PresentQuestion, earlier: str, best: str, analyser: Analyser) -> bool:
    """Whether a later sentence says of another thing what the earlier note says of the one that is asked about.

    Both have the same words in the same order except two or more: a word of the question, and the value. "The server in
    Bonn has 8 cores" and "the server in Kiel has 16 cores", asked for the one in Bonn.
    """
    if asked.spaceless:
        return False
    mine = best_of(sentences(earlier, analyser), asked.stems, asked.stems)
    here, there = (
        [one for one in WORD.findall(text.lower()) if one not in _UNCOUNTED] for text in (mine, best)
    )
    if not here or max(len(here), len(there)) > _LONGEST_SAID:
        return False
    same = others = values = 0
    for op, start, end, from_, to in SequenceMatcher(None, here, there, autojunk=False).get_opcodes():
        if op == "equal":
            same += end - start
            continue
        if op != "replace" or (end - start != to - from_ and max(end - start, to - from_) > _LONGEST_VALUE):
            return False
        # A stretch of as many words is taken word by word: "in the morning tea", "in the evening milk".
        step = 1 if end - start == to - from_ else end - start
        for place in range(start, end, step):
            stems = {stem for one in here[place : place + step] for stem in analyser.terms(one)}
            if asked.stems.isdisjoint(stems):
                values += 1
            else:
                others += 1
    return same >= _SAME and others == 1 and values > 0


@lru_cache(maxsize=64)
def _beside(text: str, analyser: Analyser) -> Mapping[tuple[str, str], Set[str]]:
    """The stems before each stem, after it as its number or name, or after it and a preposition."""
    found: dict[tuple[str, str], set[str]] = {}
    before: list[tuple[str, Set[str]]] = []
    end, is_noun = 0, False
    links, owners = _LINKS, OWNERS
    if analyser.language != "english":
        links, owners = LINKS, ARTICLES
    for match in WORD.finditer(text):
        begins = text[end : match.start()] != " "
        if begins:
            before = []
        end = match.end()
        word = match[0].removesuffix("'s").removesuffix("’s")
        if before and before[-1][0] in links and word.lower() in owners:
            continue
        stems = frozenset(analyser.terms(word)[:1]) - _OF_TIME  # of "7a" not also "7"
        pairs: list[tuple[Set[str], str, Set[str]]] = []
        if before and not ENDED.found_in(before[-1][0]):  # a verb: "swapped plots"
            pairs.append((stems, "before", before[-1][1]))
        if before and (word[0].isdigit() or (word[0].isupper() and is_noun)):
            pairs.append((before[-1][1], "label", stems))
        if len(before) > 1 and before[-1][0] in links:
            pairs.append((before[-2][1], before[-1][0], stems))
        for of, side, others in pairs:
            for stem in of if others else ():
                found.setdefault((stem, side), set()).update(others)
        is_noun = begins or word[0].islower()
        before = [*before[-1:], (word, stems)]
    return found


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
