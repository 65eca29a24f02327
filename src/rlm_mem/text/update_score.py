"""Scores whether a later note answers the same question about the present as an earlier one, by rules.

"The band saw: tension 4" and, months later, "Machines checked. Band saw: tension set from 4 to 5" both answer "What is
the tension of the band saw?", and the later one should rank first. These rules only order search results and replace
nothing, so they require less than those of :mod:`rlm_mem.text.differences`. English only. Each rule reads the words of
a text a fixed number of times; words are compared in order only in sentences of bounded length.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Set
from functools import lru_cache
from itertools import chain
from operator import mul

from rlm_mem.text.analysis import Analyser
from rlm_mem.text.by_language import (
    ASKS_WHERE,
    CONDITION,
    ENDED,
    FOREIGN_DAYS,
    FOREIGN_MONTHS,
    FOREIGN_NUMBERS,
    HINTS,
    SETTLED,
)
from rlm_mem.text.clauses import CHANGES, DAYS, ENDS, MONTHS, NEWS, NUMBERS, PREPOSITIONS, REPLACES
from rlm_mem.text.distinct import (
    DIGIT,
    MEASURES,
    NOT,
    OWNERS,
    asked_stems,
    best_of,
    ends_value,
    exceptions,
    names_other_option,
    says,
    sentences,
)
from rlm_mem.text.patterns import Expressions, late, signed, word_set
from rlm_mem.text.present import LONGEST, WORD, PresentQuestion, stems_in
from rlm_mem.text.sentences import TITLES

SURE, LIKELY, POSSIBLE = 2.0, -0.9, -2.0
"""Log-odds (nats) above which a later note is the answer, ranks first, or is returned beside the earlier note."""
WEIGHTS: dict[str, float] = {
    "words": 2.2,
    "not the subject": -0.75,
    "rare words": 0.4,
    "rare words of the answer": 0.9,
    "next": 1.4,
    "not nearest": -1.0,
    "nearest, with an end": 0.5,
    "answer denied": 0.7,
    "narrowed": -1.15,
    "tells of change": 0.95,
    "of one kind": 0.6,
    "present": 1.1,
    "condition": -1.25,
    "in passing": -2.5,
}
"""Weights of the signs (see :func:`signs`), in nats of log-odds:

* words: the share, weighted by rarity, of question words in the earlier note that the later note has;
* not the subject: the later note lacks a word of the question's subject;
* rare words: how many of the shared question words are rare; rare words of the answer: how many other shared words are;
* next: the later note is the best hit besides the earlier one;
* not nearest: another of the texts shares more with the earlier note; nearest, with an end: none does, and the later
  note has a word for an end or a change anywhere;
* answer denied: a sentence with a word of the answer has any word of change;
* narrowed: a missing word narrows the subject, unless the answer is denied, with a shared rare word;
* tells of change: result of :func:`may_state_change`;
* of one kind: it gives a figure, day, month or name that the earlier note does not give, which gives another one;
* present: it is in the present tense; condition: it has a word such as "would" or "if";
* in passing: the later note has at most three words of the earlier one, less than a quarter, and fewer than half of
  of the question's words: any note has one or two words of a long one by chance. This lowers the odds to
  :data:`LIKELY` at most, since the note may still be named.
"""
APART, DOUBTFUL, DOUBTFUL_NEAREST = -7.0, -3.55, -2.0
"""Added if the later note is about something else or not in force; if that is uncertain (a guess, a plan, a quotation,
a short time, a part or another person), which also prevents certainty; and if the uncertain note is the nearest."""
KEYWORDS = -1.4
"""Added for search terms, which may not ask what the earlier note states."""
OTHER_OPTION = 2.5
"""Added if the question names alternatives, the later note has another one, and has a word of change; or if it asks
where somebody or something with a name is, and the later note says that this has moved."""
OTHER_VALUE = 0.6
"""Added if the later note ends or denies the value of the earlier one, and gives another value of the same kind."""
_BIAS = -4.45
_OF_TEXTS = ("answer denied", "tells of change", "of one kind", "present")
_MAX_FURTHER = sum(WEIGHTS[name] for name in _OF_TEXTS)
"""Maximum total of the signs that need the texts, not only their stems."""
_MAX_RARE = 3
"""Maximum number of rare words of the question that are counted."""
_FEW = 2
"""Maximum number of texts with a rare word: the two notes themselves."""
_SHARED = 2
"""Maximum number of rare words of the earlier note's answer that are counted."""
_PASSING = 4
"""Minimum ratio of the words of the earlier note to those that a note in passing shares with it."""
_MAX_PASSING = 3
"""Maximum number of words shared in passing."""
_VALUE = 3
"""Maximum words of a value, in a note that another one repeats except for the value."""
_STRETCHES = 20
"""Maximum characters of the values of two notes that are the same otherwise, in a script without spaces."""
_ALIKE = 3
"""Maximum number of texts, including the two notes, with all question words that both notes have."""
MAY_END = Expressions(
    CHANGES
    | ENDS
    | REPLACES
    | NEWS
    | word_set(
        "longer more rather not new from over out off down aside away before previously formerly originally earlier "
        "was were gone became turned correction corrected update updated edit actually wrong mistake mistaken "
        "scratch handed passed took put since starting beginning effective"
    ),
    signed(r"\b(?:used to|as of)\b|->|→"),
)
"""A quick pre-filter: found in every text that states that something has ended, and in many others."""
_LETTER = late(r"[^\W\d_]")
_KINDS = frozenset(("figure", "day", "name", "opening"))
_LONG = 3
"""Minimum digits of a number that has a form without its unit: a port, a room, an address."""
_CALENDAR = MONTHS | word_set(
    "januari februari juli monday tuesday wednesday thursday friday saturday sunday morn afternoon even night"
)
_DATED = {day.removesuffix("s") for day in DAYS | MONTHS | FOREIGN_DAYS | FOREIGN_MONTHS}
_CORRECTS = signed(
    r"\W*(?:[^\W\d_][\w -]{0,30}: {0,3})?(?:(?:no|oh|ah),? )?"
    r"(?:correction|corrected|update|edit|actually|sorry|oops|wait|scratch that|i mean|i meant|make that|my mistake"
    r"|korrektur|berichtigung|rectificati(?:on|f)|corrección|rectificación|correzione|rettifica|korekta|sprostowanie)\b"
)
"""The beginning of a text that corrects the one before, possibly after its speaker."""
_VALUE_WORD = late(r"[^\W_]\S{0,80}")
_LIST_NUMBER = late(r"\d{1,4}[.)]\s")
_OPENING_NAME = late(r"(?:\d{1,4}[.)]\s)?([^\W\d_a-z]\w{0,40}(?: [^\W\d_a-z][\w.]{0,40})+) ")
"""Two or more capitalised words at the beginning, possibly after the number of a list: "Dave Filoni is"."""
_OF_OWNER = late(r"['’]s?$")


def retelling(
    asked: PresentQuestion,
    earlier: str,
    later: str,
    texts: Mapping[str, Set[str]],
    analyser: Analyser,
    *,
    year: int | None,
    least: float = SURE,
    is_next: bool = False,
    nearest: bool = False,
) -> float:
    """The log-odds (nats) that the later of two notes answers a question that the earlier one answers.

    The signs are the words that both notes have, above all those of the question and rare ones, and words of change
    beside the earlier note's answer (:func:`signs`); their weights were learned from diaries by
    `benchmarks/diary_fit.py`. They count much less for a later note that is about another thing or a question, or does
    not hold (:data:`APART`), and less for one that may be about another person, a guess, a wish or a short time.

    Args:
        texts: stems of both notes and of the other texts of the search result.
        year: the year of the earlier note; None: skip the check whether the later note is about something else.
        least: the threshold of the caller: :data:`SURE`, :data:`LIKELY` or :data:`POSSIBLE`.
        is_next: whether no other text of the search result is better, except the earlier note.
        nearest: whether the later note is to be returned beside the earlier one, and no later note shares more
            words with that, weighted by rarity; then a shared name suffices with a value of the same kind.

    Returns:
        The log-odds; ``least`` if they are not higher.
    """
    is_end = ENDED.found_in(later)
    alike = not asked.spaceless or _differs_in_one_place(asked, earlier, later)
    if not is_end and not (alike and (asked.asks or is_next)):
        return least  # without a question, or with bigrams for words, shared terms do not imply the same question
    if asked.happened and not (says(later).change or gives_other_value(asked, earlier, later, beside=True)):
        return least
    found = signs(asked, earlier, later, texts, analyser, least=least, is_next=is_next, nearest=nearest)
    if not found:
        return least
    # Rounded, so that the order of summation cannot move odds across a threshold.
    odds: float = round(_BIAS + sum(map(mul, WEIGHTS.values(), found[:-1])), 9)
    if not (asked.asks or is_end):
        odds += KEYWORDS
    chooses = names_other_option(asked, texts[earlier], texts[later]) and says(later).change
    if chooses or _tells_where(asked, texts[earlier], later, analyser):
        odds += OTHER_OPTION
    ends = odds > least - OTHER_VALUE and ends_named_value(asked, earlier, later, texts, analyser)
    if odds > least - OTHER_VALUE and year is not None:
        apart, doubtful = exceptions(asked, earlier, later, texts, analyser, year)
        if apart:
            odds += APART
        elif doubtful:
            odds = min(odds + (DOUBTFUL_NEAREST if nearest else DOUBTFUL), SURE)
        else:
            odds += OTHER_VALUE * (ends and not found[-1])
    if found[-1]:
        lowered = odds + WEIGHTS["in passing"]
        odds = min(odds, max(lowered, LIKELY)) if are_tied(earlier, later, analyser) else lowered
    return max(odds, least)


def may_state_change(earlier: str, later: str, analyser: Analyser) -> bool:
    """Whether a later note has any sign of changing the earlier statement, apart from shared words.

    A word of change, the earlier value, or a sentence equal to the earlier note except for the value.
    """
    if says(later).change:
        return True
    order = analyser.terms(earlier)
    before = set(order)
    for _, stems in sentences(later, analyser):
        both, former = before & stems, _length(before - stems)
        if _length(stems - before) <= former + 1 and former <= min(_VALUE, len(both) + 1):
            apart = [place for place, stem in enumerate(order) if stem not in stems]
            if not apart or apart[-1] - apart[0] < len(apart):
                return True  # a single stretch: "Joao owns search" repeats nothing of "Maria owns billing"
    return False


def _differs_in_one_place(asked: PresentQuestion, earlier: str, later: str) -> bool:
    """Whether two notes without spaces differ in one short stretch only, which is not in the question."""
    before, after = earlier.strip(), later.strip()
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    old, new = (text[start : len(text) - end] for text in (before, after))
    pairs = {old[n : n + 2] for n in range(len(old) - 1)} or {old}
    named = any(pair in asked.text and pair not in new for pair in pairs)
    return bool(old and new) and not named and len(old) + len(new) <= min(_STRETCHES, 2 * (start + end))


def _common(one: str, other: str) -> int:
    """The number of characters with which two texts both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, its) in pairs if mine != its), min(len(one), len(other)))


def is_specific(stem: str) -> bool:
    """Whether a stem that two notes share may tie them: not a bare figure, a day, a month, a measure or a title."""
    return not (stem.isdigit() or stem in _CALENDAR or stem in MEASURES or stem in TITLES)


def is_of_another(asked: PresentQuestion, answer: str, note: str, analyser: Analyser) -> bool:
    """Whether a note without a word of change answers the question for another name, or is about another person.

    "Jack Dorsey is from St. Louis", if the answer is Jack Dorsey and the question about Twitter; "Dave Filoni works at
    the BBC", if it is about the director of the BBC.
    """
    stems, value = stems_in(note, analyser), stems_in(answer, analyser) - asked.stems
    if not asked.names or says(note).change:
        return False
    if asked.names.isdisjoint(stems):
        return bool(value) and value <= stems
    person = _OPENING_NAME.match(note)
    known = asked.stems | value
    if person is None or not known.isdisjoint(analyser.terms(person[1])):
        return False
    # "Ole Brandt directs Marlow Press" has an answer to who its director is.
    asked_for, said = asked.stems - asked.names, {stem for stem in stems - asked.names if len(stem) > 2}
    return not any(one.startswith(other) or other.startswith(one) for one in asked_for for other in said)


def value_of(asked: PresentQuestion, stems: Set[str]) -> Set[str]:
    """The stems of a note by which it may answer a question."""
    return stems - asked.stems - MEASURES


def ends_named_value(
    asked: PresentQuestion, earlier: str, later: str, texts: Mapping[str, Set[str]], analyser: Analyser
) -> bool:
    """Whether a later note ends or denies a name or figure of an earlier one that is its value, and gives another one.

    Args:
        texts: as for :func:`retelling`; a name that is in several of the other texts is no value.
    """
    if not gives_other_value(asked, earlier, later):
        return False
    named = {
        stem
        for word in WORD.findall(earlier[:LONGEST])
        if not word.isalpha() or word[0].isupper()
        for stem in analyser.terms(word)
    }
    rare = {stem for stem in named if sum(stem in one for one in texts.values()) <= _FEW}
    return ends_value(value_of(asked, rare), later, analyser)


def repeats_value(asked: PresentQuestion, before: Set[str], after: Set[str]) -> bool:
    """Whether a later note has at least half of the words by which an earlier one may answer a question.

    Args:
        before, after: stems of the two notes.
    """
    value = value_of(asked, before)
    return bool(value) and 2 * len(value & after) >= len(value)


def are_tied(earlier: str, later: str, analyser: Analyser) -> bool:
    """Whether two notes share a name, or several telling words."""
    both = {one for one in stems_in(earlier, analyser) & stems_in(later, analyser) if is_specific(one)}
    return len(both) > 1 or _share_name(earlier, later, both, analyser)


def _length(stems: Set[str]) -> int:
    """Number of stems, counting all figures as one: "10:15" is one value."""
    plain = [stem for stem in stems if not stem[0].isdigit()]
    return len(plain) + (len(plain) < len(stems))


def signs(
    asked: PresentQuestion,
    earlier: str,
    later: str,
    texts: Mapping[str, Set[str]],
    analyser: Analyser,
    *,
    least: float = -math.inf,
    is_next: bool = False,
    nearest: bool = False,
) -> tuple[float, ...]:
    """Signs for and against the later of two notes answering a question that the earlier one answers.

    Args:
        texts: as for :func:`retelling`.
        least: if the log-odds cannot exceed this, the most expensive signs are skipped.
        is_next, nearest: as for :func:`retelling`.

    Returns:
        A value for each of :data:`WEIGHTS`; empty if the notes share too little to be compared.
    """
    before, after = texts[earlier], texts[later]
    had, both = asked_stems(asked, earlier, texts, later, analyser), before & after
    shared, missing = had & after, had - after
    often = Counter(chain.from_iterable(texts.values()))
    chooses = names_other_option(asked, before, after)
    settles = _tells_where(asked, both, later, analyser)
    if (
        not (chooses or settles)
        and _shares_little(asked, both, later, texts.values(), often)
        and not (
            (nearest or not asked.names.isdisjoint(both))
            and gives_other_value(asked, earlier, later, of_form=not nearest, opening=nearest)
            and _share_name(earlier, later, both, analyser)
        )
    ):
        return ()
    value = value_of(asked, both)
    weight = covered = 0.0
    rare = rare_value = 0
    for stem in had:
        weight += 1 / often[stem]
        if stem in after:
            covered += 1 / often[stem]
            rare += often[stem] <= _FEW
    for stem in value:
        rare_value += often[stem] <= _FEW and stem not in _CALENDAR
    covered = covered / weight if weight else 0.0
    if (shared and asked.spaceless and ENDED.found_in(later)) or (chooses and not had) or settles:
        # Stems are character bigrams, of which a name has one or two; or only the options or the place are asked for.
        covered = 1.0
    mine = _closeness(before, after, often)
    others = (texts[one] for one in texts if one not in (earlier, later))
    is_nearest = all(_closeness(before, one, often) <= mine for one in others)
    found = [
        covered,
        float(not missing.isdisjoint(asked.subject)),
        float(min(_MAX_RARE, rare)),
        float(min(_SHARED, rare_value)),
        float(is_next),
        float(not is_nearest),
        float(is_nearest and ENDED.found_in(later)),
    ]
    if _BIAS + sum(map(mul, WEIGHTS.values(), found)) + _MAX_FURTHER <= least:
        return (*found, *[0.0] * (len(WEIGHTS) - len(found)))
    denies = any(
        not value.isdisjoint(stems)
        and (NOT.search(sentence) or any(one.found_in(sentence) for one in (ENDED, MAY_END, HINTS)))
        for sentence, stems in (sentences(later, analyser) if value else ())
    )
    narrows = False
    if missing and not chooses and not (denies and rare_value):
        for one in (asked.text, earlier):
            has = asked.stems & after
            narrows = narrows or _narrows_subject(one, missing, has, analyser, asked, one is asked.text)
    known, said = f"{asked.text}\n{earlier}", says(later)
    return (
        *found,
        float(denies),
        float(narrows),
        float(may_state_change(earlier, later, analyser)),
        float(gives_other_value(asked, earlier, later, opening=nearest)),
        float(said.present),
        float(said.condition and not CONDITION.found_in(known)),
        float(
            not chooses
            and len(both) <= _MAX_PASSING
            and len(both) * _PASSING + 1 < len(before)
            and len(asked.stems & after) * 2 < len(asked.stems)
        ),
    )


def _closeness(before: Set[str], after: Set[str], often: Mapping[str, int]) -> float:
    """Similarity of a text to the earlier note, with rare words weighing more; exact, so that equal ones are equal."""
    return math.fsum(1 / often[stem] for stem in (before & after) - MEASURES)


def _share_name(earlier: str, later: str, both: Set[str], analyser: Analyser) -> bool:
    """Whether a word of both notes is a name or figure in both."""
    named, named_later = (
        {
            _OF_OWNER.sub("", one)
            for one in WORD.findall(text[:LONGEST])
            if not one.isalpha() or one[0].isupper()
        }
        for text in (earlier, later)
    )
    return any(not both.isdisjoint(analyser.terms(word)) for word in named & named_later)


def gives_other_value(
    asked: PresentQuestion,
    earlier: str,
    later: str,
    *,
    of_form: bool = False,
    beside: bool = False,
    opening: bool = False,
) -> bool:
    """Whether a later note gives another value of the same kind: a figure, a day or month, a name.

    Args:
        of_form: only figures with the same unit or form, such as "22 minutes" and "41 minutes", or "3.11" and "3.12".
        beside: only beside the earlier value: "The Aurora was full, booked the Corso".
        opening: the first word of a sentence counts as a name, too, if the later note has it as a name: "Macrogen does
            our sequencing" beside "the Macrogen contract".
    """
    known = set(WORD.findall(asked.text.lower()))
    later_values = _values(later[:LONGEST])
    for kind, values in _values(earlier[:LONGEST]).items():
        if of_form and kind in _KINDS:
            continue
        if kind == "opening":
            kind, values = "name", values & later_values.get("name", set()) if opening else set()
        if beside and (values - known).isdisjoint(WORD.findall(later.lower())):
            continue
        if values - known and later_values.get(kind, values) - values - known:
            return True
    return False


@lru_cache(maxsize=64)
def _values(text: str) -> dict[str, set[str]]:
    """Values of a text by kind, and figures also by form; cached, since a note is compared with several others."""
    found: dict[str, set[str]] = {}
    opens = True
    unit_of = ""  # the number before
    listed = _LIST_NUMBER.match(text)
    for match in _VALUE_WORD.finditer(text, listed.end() if listed else 0):
        word = match.group()
        begins, opens = opens, word[-1] in ".!?:;"
        low = word.lower().strip("(),.!?:;").removesuffix("'s").removesuffix("’s")
        if unit_of:
            found.setdefault(f"in {'date' if low in MONTHS else low.removesuffix('s')}", set()).add(unit_of)
        unit_of = ""
        if DIGIT.search(low) or low in NUMBERS or low in FOREIGN_NUMBERS:
            found.setdefault("figure", set()).add(low)
            if low in NUMBERS or low.isdigit():
                unit_of = "" if opens else low
            if low not in NUMBERS and (len(low) >= _LONG or not low.isdigit()):
                form = _LETTER.sub("a", DIGIT.sub("9", low))
                found.setdefault(form.replace("99:", "9:"), set()).add(low)  # 9:30 and 10:15
        elif low.removesuffix("s") in _DATED:
            found.setdefault("day", set()).add(low.removesuffix("s"))
        elif word[0].isupper():
            found.setdefault("opening" if begins else "name", set()).add(low)
    return found


def corrects(asked: PresentQuestion, earlier: str, later: str) -> bool:
    """Whether a text that follows another one corrects its value: "Standup is at 9:30", "Correction, it's 9:45".

    It need not share a word with it, so it must begin with a word of correction and give a value of the same kind.
    """
    return _CORRECTS.match(later) is not None and gives_other_value(asked, earlier, later)


def best_sentence(asked: PresentQuestion, earlier: str, later: str, analyser: Analyser) -> str:
    """The sentence of a later note with the most in common with the question and the earlier note."""
    before = stems_in(earlier, analyser)
    parts = sentences(later, analyser)
    return best_of(parts, asked.stems & before, before) if parts else later


def _shares_little(
    asked: PresentQuestion, both: Set[str], later: str, texts: Collection[Set[str]], often: Mapping[str, int]
) -> bool:
    """Whether two notes only share one name, names without a word of change, or words of many texts."""
    shared = (asked.stems & both) - MEASURES
    other = both - asked.names - MEASURES
    if not shared and len(other) < _SHARED and not ENDED.found_in(later):
        return True
    if shared <= asked.names and not other and (len(shared) < _SHARED or not says(later).change):
        return True  # a shared name may be about anything that happened to the person
    return all(often[stem] > _FEW for stem in both) and sum(shared <= one for one in texts) > _ALIKE


def _tells_where(asked: PresentQuestion, before: Set[str], later: str, analyser: Analyser) -> bool:
    """Whether a note says that what the earlier one is about is at another place now, for a question of where it is.

    Args:
        before: stems of the earlier note.
    """
    names = asked.names & before
    if not names or ASKS_WHERE.search(asked.text) is None:
        return False
    found = filter(None, (SETTLED.match(sentence) for sentence, _ in sentences(later, analyser)))
    return any(one[2].isupper() and not names.isdisjoint(analyser.terms(one[1])) for one in found)


def _narrows_subject(
    text: str, missing: Set[str], has: Set[str], analyser: Analyser, asked: PresentQuestion, is_question: bool
) -> bool:
    """Whether a word that the later note lacks narrows the subject of a text: "night" in "the night bus".

    In a question, a word after a preposition also narrows it: "the code of the shop".
    """
    written = WORD.findall(text)
    found = list(map(str.lower, written))
    for place, word in enumerate(found):
        if missing.isdisjoint(analyser.terms(word)):
            continue
        before = found[place - 1] if place else ""
        after = found[place + 1] if place + 1 < len(found) else ""
        leads = (
            not before
            or before in OWNERS
            or before.endswith(("'s", "’s"))
            or before in PREPOSITIONS
            or before == "of"
        )
        stems = set(analyser.terms(after))
        if leads and not has.isdisjoint(stems) and not (asked.names & stems and written[place + 1].istitle()):
            return True  # but not in "the plumber Ana"
        while place > 1 and found[place - 1] in OWNERS:
            place -= 1
        if is_question and place > 1 and (found[place - 1] in PREPOSITIONS or found[place - 1] == "of"):
            return True
    return False
