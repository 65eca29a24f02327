"""Read an answer from passages, with two probabilities: that they contain an answer, and that this answer is right."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from rlm_mem.chunk import format_time
from rlm_mem.offline.amended import (
    LONGEST_NOTE,
    MAX_WITH_LATER,
    VERDICT,
    with_later_word,
    without_cancelled,
)
from rlm_mem.offline.beginnings import SINCE_WHEN, read_beginning
from rlm_mem.offline.extraction import is_asked_elsewhere, only_repeats, trimmed
from rlm_mem.offline.language import about_equal, quote, shares_matched
from rlm_mem.offline.notes import matched_share, nearest_line
from rlm_mem.offline.passages import Passage, Reading
from rlm_mem.offline.question import Question, analyse_question
from rlm_mem.offline.question_kinds import YES_NO
from rlm_mem.offline.sections import read_section
from rlm_mem.offline.telling import MAX_DISPUTED, read_as_told
from rlm_mem.offline.times import in_asked_year
from rlm_mem.offline.weights import Weights
from rlm_mem.offline.word_classes import stem_of
from rlm_mem.text.analysis import Analyser, get_analyser
from rlm_mem.text.by_language import PAST
from rlm_mem.text.clauses import NUMBERS
from rlm_mem.text.distinct import is_passing, names_other_option, returns_to, sentences
from rlm_mem.text.languages import analyser_of, is_foreign
from rlm_mem.text.later import (
    MAX_FOLLOWED,
    ON_SUBJECT,
    ComparedNote,
    ending,
    follows,
    is_apart,
    odds_of,
    takes_up,
)
from rlm_mem.text.patterns import late
from rlm_mem.text.present import (
    PresentQuestion,
    is_note,
    is_of_the_past,
    stems_in,
    tells_of_past,
    without_former,
)
from rlm_mem.text.statements import statements_in
from rlm_mem.text.update_score import (
    LIKELY,
    MAY_END,
    POSSIBLE,
    SURE,
    are_tied,
    best_sentence,
    corrects,
    gives_other_value,
    is_of_another,
    may_state_change,
)

_MAX_WORDS = 4
"""Most words of an answer that counts as a value."""
_MIN_REMATCH, _MIN_MATCH_BEFORE = 0.5, 0.25
"""Least share of a note's match with the question that a later note must reach, and one before a passing note."""
_MAX_LOSS = 0.3
"""Largest loss of probability at which another answer replaces one about a limited time."""
_MAX_FURTHER = 2
"""Most further later notes that are added to an answer."""
_NEAR = 5
"""Number of best passages among which a note is looked for that the best one changes."""
_MIN_MATCH, _MIN_MATCH_CHANGED, _MIN_MATCH_ABROAD = 0.4, 0.3, 0.2
"""Least mean share of a question that two such notes match: by sentences, less if the later one plainly takes up the
other one, and by words in other languages. In five sets of notes, 15 of 20 suggestions were for questions with an
answer there, and 13 had it."""
_MIN_MATCH_EACH = 0.15
"""Share of a question that each of the two must match: one on another matter may share a day with the other."""
_ANSWERABLE = 0.7
"""Probability that the passages contain an answer, if the best of them changes another one."""


def read(question: Question, passages: Sequence[Passage], weights: Weights | None = None) -> Reading:
    """Answer ``question`` from ``passages`` in any order; their scores count. Deterministic.

    A question about the present is answered from current passages if they answer it. If the passage states a
    change, or a later passage states that the answer is no longer valid, the new value is the answer.
    """
    found = read_beginning(question.text, passages) if SINCE_WHEN.match(question.text) else None
    if found is None:
        found = _read_present(question, in_asked_year(question.text, passages), weights)
    if found.answer is None and (section := read_section(question, passages)) is not None:
        return section
    return replace(found, answer=None) if found.answer and only_repeats(question, found.answer) else found


def _read_present(question: Question, passages: Sequence[Passage], weights: Weights | None) -> Reading:
    if is_of_the_past(question.text):
        return _read_former(question, passages, weights)
    current = [one for one in passages if one.current]
    reading = read_as_told(question, current, weights) if current else Reading(None, (), 0.05, 0.0)
    if reading.answer is None and len(current) < len(passages):
        reading = read_as_told(question, passages, weights)
    asked = PresentQuestion.of(question.text, analyser_of(question.text))
    if asked is not None and reading.answer is None and is_foreign(question.text):
        reading = _first_told(question, asked, reading, current)
    beside = None
    if asked is not None:
        reading, beside = _lasting(question, asked, reading, current or passages, weights)
    found = without_cancelled(question, with_later_notes(question, reading, passages, beside=beside))
    if asked is None or not found.answer or found.passages[0].current:
        return found
    return replace(found, confidence=min(found.confidence, MAX_DISPUTED))  # nothing says what holds now


_WAS = late(r"\s*(?:it|this|that) (?:was|used to be)\b", re.IGNORECASE)


def _read_former(question: Question, passages: Sequence[Passage], weights: Weights | None) -> Reading:
    """The answer to a question about the past; to one for a former value, not the present value.

    The former value is that of a replaced or earlier note, or the one that a change names ("from 32 to 39"). In a
    document, the sentence after the present value may give it ("It was 1313"); else the confidence is limited.
    """
    reading = read_as_told(question, passages, weights)
    plain = without_former(question.text)
    if plain is None:
        return reading
    home = reading.passages[0] if reading.answer and reading.passages else None
    if home is None or not home.of_document:
        former = _former_told(question, analyse_question(plain), passages, weights)
        return reading if former is None else former
    answer = str(reading.answer)
    if tells_of_past(answer):
        return reading
    following = next((after for one, after in itertools.pairwise(home.sentences) if answer in one.text), None)
    if following is not None and _WAS.match(following.text):
        return replace(reading, answer=trimmed(following.text))
    return replace(reading, confidence=min(reading.confidence, MAX_DISPUTED))


_IN_PAST = late(r"\b(?:was|were|did)\b", re.IGNORECASE)


def _former_told(
    question: Question, plain: Question, passages: Sequence[Passage], weights: Weights | None
) -> Reading | None:
    """The former value of what a question asks for, from notes; None if no note states a change.

    Args:
        plain: the question without the words that ask for a former value.
    """
    reading = read_as_told(plain, passages, weights)
    if is_foreign(plain.text):
        return _former_abroad(plain, passages)
    replaced = [one for one in passages if not one.current]
    found = read_as_told(plain, replaced, weights) if replaced else reading
    if found.answer and found is not reading:
        return found
    home = reading.passages[0] if reading.answer and reading.passages else None
    if home is None:
        return None
    earlier = [one for one in passages if _follows(one, home)]
    found = read_as_told(plain, earlier, weights) if earlier else reading
    if found.answer and found is not reading and found.answerable >= reading.answerable - _MAX_LOSS:
        return found
    answer = str(reading.answer).lower().rstrip(".")
    for one in statements_in(home.text, get_analyser("english")):
        new = one.shown.lower()
        if one.shown_former and new and (new in answer or answer in new):
            return replace(reading, answer=one.shown_former)
    # The answering note itself is the earlier one if a later one changes it: "Ines handed that over to Omar".
    asked = PresentQuestion.of(_IN_PAST.sub("is", plain.text), analyser_of(plain.text))
    notes = None if asked is None else _notes(asked, reading, passages)
    successors = {stem_of(name) for name in question.names} - {stem_of(name) for name in plain.names}
    if notes is None:
        return None
    for later in notes.passages:
        named = bool(successors & later.stems) and _follows(home, later)
        if named and takes_up(home.text, later.text, notes.analyser):
            return reading
        if not successors and _changes(home, later, notes):
            return reading
    return None


def _former_abroad(plain: Question, passages: Sequence[Passage]) -> Reading | None:
    """The sentence of the note that was valid before the latest change, for a question in another language."""
    text = " ".join(word for word in plain.text.split() if word.lower() not in PAST)
    notes = [one for one in about_equal(text, passages) if one.at is not None and not one.of_document]
    ordered = sorted(notes, key=lambda one: str(one.at))
    if len(ordered) < 2:
        return None
    before, after = ordered[-2:]
    if before.current and not may_state_change(before.text, after.text, analyser_of(plain.text)):
        return None
    found = quote(text, [replace(before, current=True)])
    return replace(found, passages=(before, after)) if found.answer else None


def with_later_notes(
    question: Question, reading: Reading, passages: Sequence[Passage], *, beside: Passage | None = None
) -> Reading:
    """Apply later notes to an answer: return their value, or the answer with the note that may change it.

    Args:
        beside: a later note to add if no other changes the answer.
    """
    if is_of_the_past(question.text):
        return reading
    asked = PresentQuestion.of(question.text, analyser_of(question.text))
    reading = _with_later_value(question, reading, passages)
    if asked is not None:
        reading = with_later_word(question, asked, reading, passages)
    notes = None if asked is None else _notes(asked, reading, passages)
    found = reading if notes is None else _with_retelling(question, reading, notes)
    if (
        found is reading
        and reading.answer
        and reading.passages
        and MAY_END.found_in(reading.passages[0].text)
    ):
        found = _with_present_value(question, reading)
    if notes is None:
        return found
    if found is reading and beside is not None and beside.chunk_id != reading.passages[0].chunk_id:
        return _with_note(reading, reading.passages[0], _latest(reading.passages[0], beside, notes), notes)
    told = _with_later_note(found, notes)
    if question.kind is YES_NO and told is not found:  # only the earlier note supports "Yes" or "No"
        told = replace(told, answer=VERDICT.sub("", str(told.answer), count=1))
    return told


def told_by_change(question: Question, passages: Sequence[Passage], nearest: Set[str]) -> Reading | None:
    """The best note with the one that changes it or that it changes, and their days, as a suggestion; None if unlikely.

    Whoever asks should know of a change even if no sentence of either note clearly answers. Both must match the
    question, and the later one plainly take up the other one or have the figure, time, person or place asked for.

    Args:
        passages: those found for the question, the best first.
        nearest: the id of the closest memory, which must be one of these notes.
    """
    asked = PresentQuestion.of(question.text, analyser_of(question.text))
    best = passages[0] if passages else None
    if asked is None or best is None:
        return None
    changed = (one for one in passages[1:_NEAR] if one.later and one.later.chunk_id == best.chunk_id)
    home = next(changed, best if best.later else None)
    if home is None or home.of_document:
        return None
    home = _with_label(home, asked)
    reading = Reading(home.text, (home,), _ANSWERABLE, MAX_DISPUTED)
    notes = _notes(asked, reading, passages)
    if notes is None:
        return None
    told = _with_later_note(replace(reading, answer=_note_text(home, notes)), notes)
    if len(told.passages) < 2 or nearest.isdisjoint(one.chunk_id for one in told.passages):
        return None
    return told if _both_match(question, home, told.passages[1], notes, best) else None


def _both_match(question: Question, before: Passage, later: Passage, notes: _Notes, best: Passage) -> bool:
    """Whether two notes match a question enough to be suggested, each of them and both together.

    Less is enough together if search put the later one first, and that plainly takes up the other one.
    """
    foreign, both = is_foreign(question.text), (before, later)
    shares = (
        shares_matched(question.text, both) if foreign else [matched_share(question, one) for one in both]
    )
    if min(shares) < _MIN_MATCH_EACH:
        return False
    matched = sum(shares) / 2
    if foreign:
        return matched >= _MIN_MATCH_ABROAD
    if later.chunk_id == best.chunk_id and takes_up(before.text, later.text, notes.analyser):
        return matched >= _MIN_MATCH_CHANGED
    line = nearest_line(question, later)
    of_kind = line is not None and (not question.kind.has_form or line.fit >= 0)
    return of_kind and matched >= _MIN_MATCH


def _first_told(
    question: Question, asked: PresentQuestion, reading: Reading, passages: Sequence[Passage]
) -> Reading:
    """The earliest of several about equally good answers, if each later note is about the subject of one before.

    The later notes are then compared with it.
    """
    candidates = [_with_label(one, asked) for one in about_equal(question.text, passages)]
    if len(candidates) < 2 or any(one.at is None for one in candidates):
        return reading
    ordered = sorted(candidates, key=lambda one: str(one.at))
    found = quote(question.text, ordered[:1])
    notes = _notes(asked, found, passages)
    if notes is None:
        return reading
    for place, one in enumerate(ordered[1:], 1):
        if not any(
            notes.odds(before, one, POSSIBLE) > POSSIBLE
            or notes.is_apart(before, one)
            or may_state_change(before.text, one.text, notes.analyser)
            for before in ordered[:place]
        ):
            return reading
    return found


def _lasting(
    question: Question,
    asked: PresentQuestion,
    reading: Reading,
    passages: Sequence[Passage],
    weights: Weights | None,
) -> tuple[Reading, Passage | None]:
    """The answer of another note, if the answering note is about a limited or earlier time, a guess or a wish.

    Also the answer of an earlier note, unless the answering note certainly repeats it; the answering note is then
    returned, too, to be added to the answer.
    """
    home = reading.passages[0] if reading.answer and reading.passages else None
    if home is None or home.at is None or home.of_document or not is_note(home.author, asked):
        return reading, None
    rest = [one for one in passages if one.chunk_id != home.chunk_id]
    if is_passing(asked, home.text, analyser_of(question.text), year=home.at.year):
        other = read_as_told(question, rest, weights)
        if other.answer and other.answerable >= reading.answerable - _MAX_LOSS:
            return other, None
        return _with_earlier_note(question, reading, asked, home, passages), None
    rest = [one for one in rest if _follows(one, home, asked)]
    other = read_as_told(question, rest, weights) if rest else reading
    if not other.answer or other is reading or other.answerable < reading.answerable - _MAX_LOSS:
        return reading, None
    notes = _notes(asked, other, passages)
    if notes is None:
        return reading, None
    before, later = other.passages[0], _with_label(home, asked)
    odds = notes.odds(before, later, POSSIBLE)
    if notes.is_apart(before, later):
        return other, None
    shares = shares_matched(question.text, (before, home)) if is_foreign(question.text) else ()
    mine, theirs = shares or (matched_share(question, before), matched_share(question, home))
    if question.kind.is_open or mine < theirs:
        return reading, None  # it does not answer as well, or both may be valid
    if odds > SURE and may_state_change(before.text, later.text, notes.analyser):
        return reading, None
    return replace(other, answerable=max(other.answerable, reading.answerable)), home


def _with_earlier_note(
    question: Question, reading: Reading, asked: PresentQuestion, home: Passage, passages: Sequence[Passage]
) -> Reading:
    """The earlier note that has most of a passing note and some words of the question, with that; else the reading."""
    notes = _notes(asked, reading, passages)
    if notes is None or home.at is None:
        return reading
    later = _with_label(home, asked)
    found, most = None, POSSIBLE
    least = _MIN_MATCH_BEFORE * matched_share(question, home)
    for one in notes.passages:
        earlier = one.current and one.at and one.at.date() < home.at.date()
        if one.at and earlier and matched_share(question, one) >= least:
            odds = notes.odds(one, later, most, lasting=False)
            if odds > most and not is_passing(asked, one.text, notes.analyser, year=one.at.year):
                found, most = one, odds
    if found is None:
        return reading
    reading = replace(reading, answer=found.text, passages=(found, *reading.passages))
    return _with_note(reading, found, home, notes)


def _note_text(note: Passage, notes: _Notes) -> str:
    """A note on one line; of a long one, the sentence that answers the question."""
    text = " ".join(note.text.split())
    if len(text) > LONGEST_NOTE:
        text = " ".join(best_sentence(notes.asked, note.text, note.text, notes.analyser).split())
    return text[:LONGEST_NOTE]


def _with_note(
    reading: Reading,
    before: Passage,
    later: Passage,
    notes: _Notes,
    most: float = MAX_DISPUTED,
    further: Sequence[Passage] = (),
) -> Reading:
    """An answer with its day, followed by the later notes that may change it, and their days.

    Its confidence is limited.
    """
    answer = " ".join(str(reading.answer).split()).rstrip(".")
    told = [f"{answer} ({before.at:%Y-%m-%d})", f"later, {later.at:%Y-%m-%d}: {_note_text(later, notes)}"]
    told += [f"also {one.at:%Y-%m-%d}: {_note_text(one, notes)}" for one in further]
    return replace(
        reading,
        answer="; ".join(one.rstrip(".") for one in told[:-1]) + f"; {told[-1]}",
        passages=tuple(dict.fromkeys((before, later, *further, *reading.passages))),
        confidence=min(reading.confidence, most),
    )


class _Notes(NamedTuple):
    """The passages that may change an answer, labels included, and the texts of these and of the answer's passage."""

    asked: PresentQuestion
    passages: Sequence[Passage]
    texts: Sequence[str]
    analyser: Analyser

    def odds(
        self, before: Passage, later: Passage, least: float, *, nearest: bool = False, lasting: bool = True
    ) -> float:
        """The log-odds that a note which follows another one answers the same question; ``least`` if not higher."""
        asked, notes = self.asked, (_as_note(before, self.asked), _as_note(later, self.asked))
        if not follows(*notes, asked, self.analyser):
            return least
        return odds_of(
            *notes, self.texts, asked, self.analyser, least=least, nearest=nearest, lasting=lasting
        )

    def is_apart(self, before: Passage, later: Passage) -> bool:
        """Whether a note that follows another one is about something else, or does not say what holds."""
        asked, notes = self.asked, (_as_note(before, self.asked), _as_note(later, self.asked))
        return follows(*notes, asked, self.analyser) and is_apart(*notes, self.texts, asked, self.analyser)

    def stems(self, passage: Passage) -> Set[str]:
        """The stems of a passage."""
        return stems_in(passage.text, self.analyser)


def _as_note(passage: Passage, asked: PresentQuestion | None) -> ComparedNote:
    """A passage as it is compared with others."""
    return ComparedNote(
        text=passage.text,
        said=passage.text,
        at="" if passage.at is None else format_time(passage.at),
        speaker=passage.author,
        is_note=not passage.of_document and is_note(passage.author, asked),
        is_valid=passage.current,
        trust=-passage.untrusted,
        of_file=bool(passage.document) or passage.conversation_id.startswith("file:"),
    )


def _notes(asked: PresentQuestion, reading: Reading, passages: Sequence[Passage]) -> _Notes | None:
    """The notes with which a reading is compared; None if it has no answer, or its passage has no time."""
    home = reading.passages[0] if reading.answer and reading.passages else None
    if home is None or home.at is None:
        return None
    labelled = [_with_label(one, asked) for one in passages]
    texts = list(dict.fromkeys(one.text for one in (*labelled, home)))
    return _Notes(asked, labelled, texts, analyser_of(asked.text))


def _with_later_note(reading: Reading, notes: _Notes) -> Reading:
    """The answer with the later note that most probably changes it, each with its day."""
    home = reading.passages[0]
    notes = notes._replace(passages=[one for one in notes.passages if not _is_told(reading, one, notes)])
    found, odds = None, ON_SUBJECT
    marked = home.later
    # Looked up by the words of the answer's note, which in other languages are often not distinctive.
    known = "" if marked is None or is_foreign(notes.asked.text) else marked.chunk_id
    for one in sorted(notes.passages, key=lambda passage: passage.chunk_id != known):
        if not (home.at and one.at and one.current):
            continue
        nearest = one.chunk_id == known
        on_subject = not (notes.asked.subject | notes.asked.names).isdisjoint(notes.stems(one))
        least = odds if on_subject else max(odds, POSSIBLE)
        probability = notes.odds(home, one, least, nearest=nearest)
        if probability > least and (probability > SURE or _may_be_given(reading, one, notes)):
            found, odds = one, probability
            if nearest:
                break
    if found is None and marked is not None:  # compared as a whole note, not by passages
        later = next(
            (one for one in notes.passages if one.chunk_id == marked.chunk_id != home.chunk_id), marked
        )
        if later.current and not _is_told(reading, later, notes) and _is_marked_with(reading, later, notes):
            found = later
    if found is None:
        return reading
    most = MAX_WITH_LATER if odds > SURE else MAX_DISPUTED
    later, *further = _changes_of(reading, found, notes)
    return _with_note(reading, home, later, notes, most, further)


def _is_marked_with(reading: Reading, later: Passage, notes: _Notes) -> bool:
    """Whether a later note with which search marked that of the answer is to be given with it."""
    home, analyser = reading.passages[0], notes.analyser
    again = returns_to(stems_in(later.text, analyser), sentences(later.text, analyser), analyser)
    tied = bool(again) or are_tied(home.text, later.text, analyser)
    return (
        (tied and may_state_change(home.text, later.text, analyser))
        or corrects(notes.asked, home.text, later.text)
        or _may_be_given(reading, later, notes)
    )


def _changes_of(reading: Reading, found: Passage, notes: _Notes) -> list[Passage]:
    """A later note, or the last of its chain, and others that probably change the answer, too.

    The newest one with another value comes first.
    """
    home = reading.passages[0]
    last = _latest(home, found, notes)
    others = [
        one
        for one in (found, *notes.passages)
        if one.chunk_id not in (last.chunk_id, home.chunk_id)
        and one.current
        and notes.odds(home, one, LIKELY) > LIKELY
        and may_state_change(home.text, one.text, notes.analyser)
        and _is_on_subject(reading, one, notes)
    ]
    by_id = {one.chunk_id: one for one in (last, *others[:_MAX_FURTHER])}
    known = {one.chunk_id: one for one in reversed(notes.passages)}  # the best passage of each
    for _ in range(_MAX_FURTHER):  # "Omar left, Priya took over from him" says nothing of the role itself
        marked = known.get(last.chunk_id, last).later
        if marked is None or marked.chunk_id in by_id or not marked.current:
            break
        last = by_id[marked.chunk_id] = known.get(marked.chunk_id, marked)
    return sorted(
        by_id.values(),
        key=lambda one: (gives_other_value(notes.asked, home.text, one.text), str(one.at)),
        reverse=True,
    )


def _is_told(reading: Reading, later: Passage, notes: _Notes) -> bool:
    """Whether a later note is in the answer already, or has it of another name."""
    answer = str(reading.answer)
    return _note_text(later, notes) in answer or is_of_another(
        notes.asked, answer, later.text, notes.analyser
    )  # fmt: skip


def _latest(home: Passage, later: Passage, notes: _Notes) -> Passage:
    """The last of the notes from a given one on, each of which may change the previous one and the answer's note."""
    chain = [one for one in notes.passages if one.current and notes.odds(home, one, POSSIBLE) > POSSIBLE]
    for _ in chain:
        found, most = None, LIKELY
        for one in chain:
            odds = notes.odds(later, one, most)
            if odds > most:
                found, most = one, odds
        if found is None:
            break
        later = found
    return later


def _may_be_given(reading: Reading, later: Passage, notes: _Notes) -> bool:
    """Whether a later note is from a later day than the answer's note or may state a change, and is on its subject."""
    home = reading.passages[0]
    is_of_later_day = home.at is not None and later.at is not None and home.at.date() < later.at.date()
    may_change = is_of_later_day or may_state_change(home.text, later.text, notes.analyser)
    return may_change and _is_on_subject(reading, later, notes)


def _is_on_subject(reading: Reading, later: Passage, notes: _Notes) -> bool:
    """Whether a later note shares a word with the question and the answer's note, or with the answer, except figures.

    Another number or name of that note is not enough, another one of the alternatives in question is.
    """
    asked, terms = notes.asked, notes.analyser.terms
    if names_other_option(asked, *(frozenset(terms(one.text)) for one in (reading.passages[0], later))):
        return True
    before, after = (frozenset(terms(f"{one.author} {one.text}")) for one in (reading.passages[0], later))
    value = {stem for stem in terms(str(reading.answer)) if not stem[0].isdigit()}
    return not after.isdisjoint((asked.stems & before) | (value - asked.stems))


def _with_label(passage: Passage, asked: PresentQuestion) -> Passage:
    """A passage with its label in the text, if that is not a speaker: "Cache TTL: 900 s"."""
    if not passage.author or not is_note(passage.author, asked):
        return passage
    return replace(passage, author="", text=f"{passage.author}: {passage.text}")


def _with_later_value(question: Question, reading: Reading, passages: Sequence[Passage]) -> Reading:
    """The new value, if a later passage itself states that the answer is no longer valid; else the answer."""
    english = get_analyser("english")
    asked = stems_in(question.text, english)
    for _ in range(MAX_FOLLOWED if reading.answer and reading.passages else 0):
        before = _as_note(reading.passages[0], None)
        about = None if question.kind.is_closed else str(reading.answer).lower().strip(" .")
        ends = ((ending(before, _as_note(one, None), english, asked, about), one) for one in passages)
        found, home = next(((found[1], one) for found, one in ends if found is not None), (None, None))
        if found is None or home is None:
            break
        reading = replace(reading, answer=found.shown or found.text, passages=(home, *reading.passages[:1]))
    return reading


def _with_retelling(question: Question, reading: Reading, notes: _Notes) -> Reading:
    """The answer of a later note to the same question, or the whole later note; else the given answer."""
    asked, passages, _, analyser = notes
    former: Passage | None = None
    for _ in range(MAX_FOLLOWED):
        home = reading.passages[0]
        least = _MIN_REMATCH * matched_share(question, home)
        changed = (one for one in passages if _changes(home, one, notes))
        later = next(
            (
                one
                for one in changed
                if names_other_option(asked, notes.stems(home), notes.stems(one))
                or matched_share(question, one) >= least
            ),
            None,
        )
        if later is None:
            break
        later_reading = read_as_told(question, [later])
        answer = str(_with_present_value(question, later_reading).answer) if later_reading.answer else ""
        new_terms = [word for word in analyser.terms(answer) if word not in asked.stems and word != "one"]
        reading = replace(
            reading, answer=answer if new_terms else _note_text(later, notes), passages=(later, home)
        )
        former = home
    home, answer = reading.passages[0], str(reading.answer)
    terms = set(analyser.terms(answer)) - asked.stems
    for one in passages if former is None else (former,):
        before = notes.stems(one)
        if former is None and not (
            _follows(one, home)
            and (terms <= before or (len(answer.split()) > _MAX_WORDS and not terms.isdisjoint(before)))
            and 2 * len(before & asked.stems) >= len(asked.stems)
        ):
            continue
        if _gives_former_value(answer, before - asked.stems) and _has_other_value(home.text, answer, before):
            return replace(reading, answer=" ".join(home.text.split()))
    return reading


def _gives_former_value(answer: str, former: Set[str]) -> bool:
    """Whether an answer contains the former value; a short answer with another figure or name does not."""
    english = get_analyser("english")
    words = answer.split()
    values = [word for word in words if word[0].isupper() or any(map(str.isdigit, word))]
    if values and len(words) <= _MAX_WORDS and former.isdisjoint(english.terms(" ".join(values))):
        return False
    return not former.isdisjoint(english.terms(answer))


def _has_other_value(text: str, answer: str, former: Set[str]) -> bool:
    """Whether a text has another value of the same kind as an answer: a figure or another word."""
    words = text.split()
    if any(map(str.isdigit, answer)):
        words = [word for word in words if any(map(str.isdigit, word)) or word.lower() in NUMBERS]
    return any(stem not in former for stem in get_analyser("english").terms(" ".join(words)))


def _follows(before: Passage, later: Passage, asked: PresentQuestion | None = None) -> bool:
    """Whether a passage may change an earlier one: see :func:`~rlm_mem.text.later.follows`."""
    return follows(_as_note(before, asked), _as_note(later, asked), asked, get_analyser("english"))


def _changes(before: Passage, later: Passage, notes: _Notes) -> bool:
    """Whether a later note certainly answers the same question as an earlier note, and reports a change."""
    return later.current and notes.odds(before, later, SURE) > SURE and may_state_change(
        before.text, later.text, notes.analyser
    )  # fmt: skip


def _with_present_value(question: Question, reading: Reading) -> Reading:
    """The answer with the current value, if its own passage states that its value is no longer valid."""
    answer, asked = str(reading.answer).lower(), question.text.lower()
    english = get_analyser("english")
    found = statements_in(reading.passages[0].text, english)
    for one in found:
        former = one.shown_former.lower()
        if (
            not one.sure
            or not former
            or (former not in answer and answer.rstrip(".") not in former)
            or former in asked
            or one.shown.lower() in asked.split()
            or is_asked_elsewhere(question, answer, former)
        ):
            continue
        if question.kind.is_of_event and one.kind not in ("time", "day", "date"):
            continue
        later = next((other.shown for other in found if other is not one and other.topic == one.topic and other.value
                      and other.start >= one.start and not other.former), "")  # fmt: skip
        return replace(reading, answer=one.shown or later or one.text)
    return reading
