"""Read an answer from passages, with two probabilities: that they contain an answer, and that this answer is right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from rlm_mem.offline.everyday import stem_of
from rlm_mem.offline.examine import Examined, examine
from rlm_mem.offline.features import same_person
from rlm_mem.offline.language import about_equal, analyser_of, is_foreign, quote
from rlm_mem.offline.notes import is_notes, matched_share, read_notes
from rlm_mem.offline.numbered import read_numbered
from rlm_mem.offline.passages import Passage, Reading
from rlm_mem.offline.pieces import mostly_alike, only_repeats, trimmed
from rlm_mem.offline.question import Question
from rlm_mem.offline.times import in_asked_year
from rlm_mem.offline.weights import Weights, answerable_probability, correct_probability, load_weights
from rlm_mem.text.analysis import Analyser, get_analyser
from rlm_mem.text.apart import exceptions, is_passing
from rlm_mem.text.clauses import NUMBERS
from rlm_mem.text.differences import surest
from rlm_mem.text.lasting import is_taken_back
from rlm_mem.text.patterns import late
from rlm_mem.text.present import PresentQuestion, is_note, is_of_the_past
from rlm_mem.text.retold import LIKELY, POSSIBLE, SURE, are_tied, may_end, retelling, tells_of_change
from rlm_mem.text.stated import Stated
from rlm_mem.text.statements import statements_in

_MATCHED, _MATCHED_LEAST, _MATCHED_MOST = 0.8, 0.4, 0.6
"""If a sentence of the passage matches at least this share of the question, the confidence in an answer of exactly the
kind asked for is at least the second value, and at a full match the third: the tables, fitted on long conversations,
give too low a one."""
_DISPUTED = 0.5
"""Highest confidence in an answer where the rules for notes find another one."""
_BOTH = 0.75
"""Highest confidence in an answer with a later note that answers the question for certain: one of them is right."""
_UNSURE = 0.35
_FORMED = frozenset({"where", "who", "how_many", "how_long"})
"""Kinds that the rules for notes recognise by form; their answer is preferred if the tables are unsure of theirs."""

_BESIDE = 5
"""Number of passages in which the frequency of a word of the question is counted."""
_SHORT = 4
"""Most words of an answer that counts as a value."""
_TOLD_AGAIN = 0.5
"""A later note must match at least this share of what the earlier note matches of the question."""
_PASSING = 0.3
"""Largest loss of probability at which another answer replaces one about a limited time."""
_WORTH_GIVING = -3.0
"""Odds above which a later note that has a word of what the question is about is given beside an answer."""
_LONGEST_NOTE = 300
"""Characters of a later note that is added to an answer."""
_CHANGES_FOLLOWED = 4
"""Most successive changes that are followed from an answer to the present value."""
_OF_EVENTS = frozenset(("when", "why", "how", "how_long", "yes_no", "choice"))
"""Kinds of questions that a value answers only if it is a time."""

_OF_MANNER = frozenset(("how", "why", "do"))
"""Kinds of questions to which notes give different answers that all hold."""


def read(question: Question, passages: Sequence[Passage], weights: Weights | None = None) -> Reading:
    """Answer ``question`` from ``passages`` (best first or not; their scores count). Deterministic.

    A question about the present is answered from current passages if they answer it. If the passage states a change,
    or a later passage says that the answer does not hold any more, the new value is the answer.
    """
    found = _read_present(question, in_asked_year(question.text, passages), weights)
    return replace(found, answer=None) if found.answer and only_repeats(question, found.answer) else found


def _read_present(question: Question, passages: Sequence[Passage], weights: Weights | None) -> Reading:
    if is_of_the_past(question.text):
        return _read(question, passages, weights)
    current = [one for one in passages if one.current]
    reading = _read(question, current, weights) if current else Reading(None, (), 0.05, 0.0)
    if reading.answer is None and len(current) < len(passages):
        reading = _read(question, passages, weights)
    asked = PresentQuestion.of(question.text, analyser_of(question.text))
    if asked is not None and reading.answer is None and is_foreign(question.text):
        reading = _first_told(question, asked, reading, current)
    beside = None
    if asked is not None:
        reading, beside = _lasting(question, asked, reading, current or passages, weights)
    return with_later_notes(question, reading, passages, beside=beside)


def with_later_notes(
    question: Question, reading: Reading, passages: Sequence[Passage], *, beside: Passage | None = None
) -> Reading:
    """An answer as later notes leave it: their value, or the answer with the note that may change it.

    Args:
        beside: a later note to give where no other changes the answer.
    """
    if is_of_the_past(question.text):
        return reading
    asked = PresentQuestion.of(question.text, analyser_of(question.text))
    reading = _with_later_value(question, reading, passages)
    notes = None if asked is None else _notes(asked, reading, passages)
    found = reading if notes is None else _retold(question, reading, notes)
    if found is reading and reading.answer and reading.passages and may_end(reading.passages[0].text):
        found = _with_present_value(question, reading)
    if notes is None:
        return found
    if found is reading and beside is not None and beside.chunk_id != reading.passages[0].chunk_id:
        return _both(reading, reading.passages[0], _latest(reading.passages[0], beside, notes), POSSIBLE)
    return _with_later_note(found, notes)


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


def _first_told(
    question: Question, asked: PresentQuestion, reading: Reading, passages: Sequence[Passage]
) -> Reading:
    """The answer of the earliest of several notes that answer about equally well, if the later ones are about the same.

    What the later ones tell is weighed from there on.
    """
    told = [_with_label(one, asked) for one in about_equal(question.text, passages)]
    if len(told) < 2 or any(one.at is None for one in told):
        return reading
    first, *others = sorted(told, key=lambda one: str(one.at))
    found = quote(question.text, [first])
    notes = _notes(asked, found, passages)
    if notes is None:
        return reading
    same = (_odds(first, one, notes, POSSIBLE) > POSSIBLE or _is_apart(first, one, notes) for one in others)
    return found if all(same) else reading


def _lasting(
    question: Question,
    asked: PresentQuestion,
    reading: Reading,
    passages: Sequence[Passage],
    weights: Weights | None,
) -> tuple[Reading, Passage | None]:
    """The answer of another note, if the answering note is about a limited or earlier time, a guess or a wish.

    Also the answer of an earlier note, if it does not follow for certain that the answering note repeats it; this note,
    which is given beside the answer, is returned with it.
    """
    home = reading.passages[0] if reading.answer and reading.passages else None
    if home is None or home.at is None or home.of_document or not is_note(home.author, asked):
        return reading, None
    rest = [one for one in passages if one.chunk_id != home.chunk_id]
    if is_passing(asked, home.text, analyser_of(question.text), year=home.at.year):
        other = _read(question, rest, weights)
        if other.answer and other.answerable >= reading.answerable - _PASSING:
            return other, None
        return _with_earlier_note(reading, asked, home, passages), None
    rest = [one for one in rest if _is_later(one, home, asked)]
    other = _read(question, rest, weights) if rest else reading
    if not other.answer or other is reading or other.answerable < reading.answerable - _PASSING:
        return reading, None
    notes = _notes(asked, other, passages)
    if notes is None:
        return reading, None
    before, later = other.passages[0], _with_label(home, asked)
    odds = _odds(before, later, notes, POSSIBLE)
    if _is_apart(before, later, notes):
        return other, None
    if question.kind in _OF_MANNER or matched_share(question, before) < matched_share(question, home):
        return reading, None  # it does not answer as well
    if odds > SURE and tells_of_change(before.text, later.text, notes.analyser):
        return reading, None
    return replace(other, answerable=max(other.answerable, reading.answerable)), home


def _with_earlier_note(
    reading: Reading, asked: PresentQuestion, home: Passage, passages: Sequence[Passage]
) -> Reading:
    """The earlier note that says most of what a passing note says, and the latter; the reading if there is none."""
    notes = _notes(asked, reading, passages)
    if notes is None or home.at is None:
        return reading
    later = _with_label(home, asked)
    found, most = None, POSSIBLE
    for one in notes.passages:
        if one.at and one.current and one.at.date() < home.at.date() and _is_later(one, later, asked):
            texts = notes.beside(one, later)
            odds = retelling(asked, one.text, later.text, texts, notes.analyser, year=None, least=most)
            if odds > most and not is_passing(asked, one.text, notes.analyser, year=one.at.year):
                found, most = one, odds
    if found is None:
        return reading
    return _both(
        replace(reading, answer=found.text, passages=(found, *reading.passages)), found, home, POSSIBLE
    )


def _told(note: Passage) -> str:
    return " ".join(note.text.split())[:_LONGEST_NOTE]


def _both(reading: Reading, before: Passage, later: Passage, odds: float) -> Reading:
    """An answer with its day, followed by a later note that may change it, and its day."""
    answer = " ".join(str(reading.answer).split()).rstrip(".")
    return replace(
        reading, answer=f"{answer} ({before.at:%Y-%m-%d}); later, {later.at:%Y-%m-%d}: {_told(later)}",
        passages=tuple(dict.fromkeys((before, later, *reading.passages))),
        confidence=min(reading.confidence, _BOTH if odds > SURE else _DISPUTED),
    )  # fmt: skip


class _Notes(NamedTuple):
    """The passages that may repeat an answer, labels included, and the stems of these and of the answer's passage."""

    asked: PresentQuestion
    passages: Sequence[Passage]
    stems: Mapping[str, Set[str]]
    analyser: Analyser

    def beside(self, before: Passage, later: Passage) -> dict[str, Set[str]]:
        """The stems of two notes and of the best passages, among which a word is rare or common."""
        return {text: self.stems[text] for text in (before.text, *islice(self.stems, _BESIDE), later.text)}


def _notes(asked: PresentQuestion, reading: Reading, passages: Sequence[Passage]) -> _Notes | None:
    """The notes with which a reading is compared; None if it has no answer, or its passage no time."""
    home = reading.passages[0] if reading.answer and reading.passages else None
    if home is None or home.at is None:
        return None
    labelled = [_with_label(one, asked) for one in passages]
    analyser = analyser_of(asked.text)
    stems = {one.text: frozenset(analyser.terms(one.text)) for one in (*labelled, home)}
    return _Notes(asked, labelled, stems, analyser)


def _with_later_note(reading: Reading, notes: _Notes) -> Reading:
    """The answer with the later note that most probably changes it, each with its day."""
    home = reading.passages[0]
    found, odds = None, _WORTH_GIVING
    marked = home.later
    # Looked up by the words of the answer's note; in other languages these are often not telling.
    known = "" if marked is None or is_foreign(notes.asked.text) else marked.chunk_id
    for one in sorted(notes.passages, key=lambda passage: passage.chunk_id != known):
        if not (home.at and one.at and one.current) or _told(one) in str(reading.answer):
            continue
        nearest = one.chunk_id == known
        on_subject = not (notes.asked.subject | notes.asked.names).isdisjoint(notes.stems[one.text])
        least = odds if on_subject else max(odds, POSSIBLE)
        again = _odds(home, one, notes, least, nearest=nearest)
        if again > least and (again > SURE or _may_be_given(reading, one, notes)):
            found, odds = one, again
            if nearest:
                break
    if found is None and marked is not None:  # compared as a whole note, not by its passages
        later = next((one for one in notes.passages if one.chunk_id == marked.chunk_id), marked)
        if later.current and _told(later) not in str(reading.answer):
            told = home.text, later.text, notes.analyser
            changes = are_tied(*told) and tells_of_change(*told)
            found = later if changes or _may_be_given(reading, later, notes) else None
    return reading if found is None else _both(reading, home, _latest(home, found, notes), odds)


def _latest(home: Passage, later: Passage, notes: _Notes) -> Passage:
    """The last of the notes that may change the answer's note and each change the one before, from a given one on."""
    again = [one for one in notes.passages if one.current and _odds(home, one, notes, POSSIBLE) > POSSIBLE]
    for _ in again:
        found, most = None, LIKELY
        for one in again:
            odds = _odds(later, one, notes, most)
            if odds > most:
                found, most = one, odds
        if found is None:
            break
        later = found
    return later


def _may_be_given(reading: Reading, later: Passage, notes: _Notes) -> bool:
    """Whether a later note may change what the answer's note says, and is on its subject."""
    return _may_change(reading.passages[0], later, notes) and _is_on_subject(reading, later, notes)


def _is_on_subject(reading: Reading, later: Passage, notes: _Notes) -> bool:
    """Whether a later note has a word of the question that the answer's note has, too, or a word of the answer besides
    figures. Another number or name of that note is not enough.
    """
    asked, terms = notes.asked, notes.analyser.terms
    before, again = (frozenset(terms(f"{one.author} {one.text}")) for one in (reading.passages[0], later))
    value = {stem for stem in terms(str(reading.answer)) if not stem[0].isdigit()}
    return not again.isdisjoint((asked.stems & before) | (value - asked.stems))


def _may_change(before: Passage, later: Passage, notes: _Notes) -> bool:
    """Whether a later note is from a later day, or has a sign that it changes the earlier one."""
    if before.at is not None and later.at is not None and before.at.date() < later.at.date():
        return True
    return tells_of_change(before.text, later.text, notes.analyser)


def _with_label(passage: Passage, asked: PresentQuestion) -> Passage:
    """A passage, with its label as part of the text if it is not a speaker: "Cache TTL: 900 s"."""
    if not passage.author or not is_note(passage.author, asked):
        return passage
    return replace(passage, author="", text=f"{passage.author}: {passage.text}")


def _with_later_value(question: Question, reading: Reading, passages: Sequence[Passage]) -> Reading:
    """The new value, if a later passage itself says that the answer does not hold any more; else the answer."""
    for _ in range(_CHANGES_FOLLOWED):
        later = _ended_by(question, reading, passages) if reading.answer and reading.passages else None
        if later is None:
            break
        stated, passage = later
        reading = replace(
            reading, answer=stated.shown or stated.text, passages=(passage, *reading.passages[:1])
        )
    return reading


def _ended_by(
    question: Question, reading: Reading, passages: Sequence[Passage]
) -> tuple[Stated, Passage] | None:
    """The statement that ends the statement from which an answer was read, with its passage."""
    before, answer = reading.passages[0], str(reading.answer).lower().strip(" .")
    later = []
    for one in passages:
        if not one.current or one.text == before.text or (one.untrusted and not before.untrusted):
            continue
        known = one.at is not None and before.at is not None and one.at >= before.at
        if (known or not before.current) and may_end(one.text) and not is_taken_back(one.text):
            later.append(one)
    if not later:
        return None
    english = get_analyser("english")
    held = [
        one
        for one in statements_in(before.text, english, speaker=before.author or None)
        if question.kind in ("yes_no", "choice") or answer in one.text.lower() or one.shown.lower() in answer
    ]
    for passage in later if held else ():
        found = surest(statements_in(passage.text, english, speaker=passage.author or None), held)
        if found is not None and found[0].said:
            return found[1], passage
    return None


def _retold(question: Question, reading: Reading, notes: _Notes) -> Reading:
    """The answer of a later note to the same question, or the whole later note; else the given answer."""
    asked, passages, stems, english = notes
    former: Passage | None = None
    for _ in range(_CHANGES_FOLLOWED):
        home = reading.passages[0]
        least = _TOLD_AGAIN * matched_share(question, home)
        again = (one for one in passages if _changes(home, one, notes))
        later = next((one for one in again if matched_share(question, one) >= least), None)
        if later is None:
            break
        alone = _read(question, [later])
        answer = str(_with_present_value(question, alone).answer) if alone.answer else ""
        worth = [word for word in english.terms(answer) if word not in asked.stems and word != "one"]
        reading = replace(reading, answer=answer if worth else later.text, passages=(later, home))
        former = home
    home, answer = reading.passages[0], str(reading.answer)
    told = set(english.terms(answer)) - asked.stems
    for one in passages if former is None else (former,):
        before = stems[one.text]
        if former is None and not (
            _is_later(one, home)
            and (told <= before or (len(answer.split()) > _SHORT and not told.isdisjoint(before)))
            and 2 * len(before & asked.stems) >= len(asked.stems)
        ):
            continue
        if _gives_former_value(answer, before - asked.stems) and _has_other_value(home.text, answer, before):
            return replace(reading, answer=" ".join(home.text.split()))
    return reading


def _gives_former_value(answer: str, former: Set[str]) -> bool:
    """Whether an answer gives the former value; a short answer with another figure or name does not."""
    english = get_analyser("english")
    words = answer.split()
    told = [word for word in words if word[0].isupper() or any(map(str.isdigit, word))]
    if told and len(words) <= _SHORT and former.isdisjoint(english.terms(" ".join(told))):
        return False
    return not former.isdisjoint(english.terms(answer))


def _has_other_value(text: str, answer: str, former: Set[str]) -> bool:
    """Whether a text has another value of the kind of an answer: a figure or another word."""
    words = text.split()
    if any(map(str.isdigit, answer)):
        words = [word for word in words if any(map(str.isdigit, word)) or word.lower() in NUMBERS]
    return any(stem not in former for stem in get_analyser("english").terms(" ".join(words)))


def _is_later(before: Passage, later: Passage, asked: PresentQuestion | None = None) -> bool:
    """Whether a note is later than another and at least as trusted; turns and sections of documents are not notes."""
    if before.at is None or later.at is None or later.at <= before.at:
        return False
    if before.of_document or later.of_document:
        return False
    if before.untrusted < later.untrusted:
        return False
    return is_note(before.author, asked) and is_note(later.author, asked)


def _odds(before: Passage, later: Passage, notes: _Notes, least: float, *, nearest: bool = False) -> float:
    """The odds that a later note answers the same question as an earlier note; ``least`` if they are not higher.

    See :func:`rlm_mem.text.retold.retelling`.
    """
    if not _is_later(before, later, notes.asked) or before.at is None:
        return least
    texts, year = notes.beside(before, later), before.at.year
    return retelling(
        notes.asked, before.text, later.text, texts, notes.analyser, year=year, least=least, nearest=nearest
    )


def _is_apart(before: Passage, later: Passage, notes: _Notes) -> bool:
    """Whether a later note is about another thing than an earlier one, or not about the present."""
    if not _is_later(before, later, notes.asked) or before.at is None:
        return False
    texts, year = notes.beside(before, later), before.at.year
    return any(exceptions(notes.asked, before.text, later.text, texts, notes.analyser, year))


def _changes(before: Passage, later: Passage, notes: _Notes) -> bool:
    """Whether a later note answers the same question as an earlier note for certain, and tells of a change."""
    return later.current and _odds(before, later, notes, SURE) > SURE and tells_of_change(
        before.text, later.text, notes.analyser
    )  # fmt: skip


def _with_present_value(question: Question, reading: Reading) -> Reading:
    """The answer without a value that, according to its passage, does not hold any more."""
    answer, asked = str(reading.answer).lower(), question.text.lower()
    english = get_analyser("english")
    told = statements_in(reading.passages[0].text, english)
    for one in told:
        former = one.shown_former.lower()
        if (
            not one.sure
            or not former
            or (former not in answer and answer.rstrip(".") not in former)
            or former in asked
            or one.shown.lower() in asked.split()
        ):
            continue
        if question.kind in _OF_EVENTS and one.kind not in ("time", "day", "date"):
            continue
        later = next((other.shown for other in told if other is not one and other.topic == one.topic and other.value
                      and other.start >= one.start and not other.former), "")  # fmt: skip
        return replace(reading, answer=one.shown or later or one.text)
    return reading


def _read(question: Question, passages: Sequence[Passage], weights: Weights | None = None) -> Reading:
    table = weights or load_weights()
    if is_foreign(question.text):
        return quote(question.text, passages)
    numbered = read_numbered(question, passages)
    if numbered is not None:
        return numbered
    if is_notes(passages):
        return read_notes(question, passages)
    seen = examine(question, passages, table)
    if seen is None:
        return Reading(None, (), 0.0, 0.0)
    answerable = answerable_probability(seen.figures, table)
    confidence = correct_probability(seen.figures, answerable, table)
    if not seen.figures["named"]:
        # The tables were fitted on questions about speakers; other questions must pass the rules for notes, too.
        return _checked_by_rules(question, passages, seen, answerable, confidence)
    by_rules = read_notes(question, passages)
    unsure = answerable < table.bar
    if by_rules.answer is not None and (unsure or by_rules.passages[0] not in seen.passages[:1]):
        if _stated_by_another(question, by_rules.passages[0]):
            return by_rules
        if by_rules.exact and question.kind in _FORMED and confidence < _UNSURE and not unsure:
            return Reading(
                by_rules.answer, by_rules.passages, answerable, min(by_rules.confidence, _DISPUTED)
            )
    if (seen.exact or question.kind == "yes_no") and answerable >= table.bar:
        confidence = max(confidence, min(answerable, _min_confidence(seen)))
    return Reading(seen.answer, seen.passages, answerable, confidence)


def _stated_by_another(question: Question, passage: Passage) -> bool:
    """Whether somebody else says something about the person named ("Ben has moved", not "Thanks, Ben!")."""
    if any(same_person(passage.author, name) for name in question.names):
        return False
    names = {stem_of(name) for name in question.names}
    words = (word for sentence in passage.sentences for word in sentence.words)
    return any(word.stem in names and (not word.closes or word.low.endswith("'s")) for word in words)


def _min_confidence(seen: Examined) -> float:
    """Lowest confidence in an answer of exactly the kind asked for: it grows with the share of the question matched."""
    matched = seen.figures["matched"]
    if matched < _MATCHED:
        return 0.0
    return round(_MATCHED_LEAST + (_MATCHED_MOST - _MATCHED_LEAST) * (matched - _MATCHED) / (1 - _MATCHED), 4)


def _checked_by_rules(
    question: Question, passages: Sequence[Passage], seen: Examined, answerable: float, confidence: float
) -> Reading:
    """The answer of the tables to a question that is not about a speaker, checked by the rules for notes."""
    by_rules = read_notes(question, passages)
    confidence = max(confidence, min(answerable, _min_confidence(seen))) if seen.exact else confidence
    if by_rules.answer is None:
        if seen.figures["matched"] < seen.share_needed:
            return Reading(None, seen.passages, min(answerable, by_rules.answerable), 0.0)
        if seen.exact:
            return Reading(seen.answer, seen.passages, answerable, min(confidence, seen.figures["matched"]))
        whole = seen.sentence if seen.sentence and not question.many else seen.answer
        return Reading(whole, seen.passages, answerable, min(confidence, _MATCHED_MOST))
    if mostly_alike(by_rules.answer, seen.answer):
        fuller = by_rules.exact and len(by_rules.answer) > len(seen.answer) and question.kind != "when"
        text = by_rules.answer if fuller else seen.answer  # a date from the tables has its year
        held = max(answerable, by_rules.answerable)
        return Reading(text, seen.passages, held, max(confidence, by_rules.confidence))
    if seen.exact and question.kind != "how_many" and seen.figures["matched"] >= _MATCHED:
        # Two different answers of the kind asked for: that of the tables is given, with limited confidence.
        return Reading(seen.answer, seen.passages, answerable, min(confidence, _DISPUTED))
    return replace(by_rules, confidence=min(by_rules.confidence, _DISPUTED)) if seen.exact else by_rules
