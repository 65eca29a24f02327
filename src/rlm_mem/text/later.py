"""The one place that decides which later notes change what a note says, in which way, and how surely.

What a text itself replaces is linked when it is stored (`rlm_mem.proposals`). This module compares notes that no such
link connects, when a question is asked; by it, search orders and marks hits, and the offline model amends answers.

**The rule.** A note is read for a question about the present. Another note changes it if

1. it *follows* it (:func:`follows`): both are notes, not turns of a speaker or sections of a document; it has another
   text, was made later, and is trusted at least as far. Of two files it was made more than a minute later, since a copy
   is written in the order of its files, which says nothing of their contents. It has the words by which the question
   names the folder, title or headings of the first. If it ends something that the first says, this is what the question
   asks for, not another of several things ("Bread comes from Hobbs; fish is delivered on Tuesday");
2. it is valid itself: not replaced, and not past its end;
3. and it

   * *ends* the other one (:func:`ending`): one of its statements says that a statement of the other has ended ("moved
     from A to B"), by the rules of `rlm_mem.text.differences`, which `remember` uses, too. Such words are certain: they
     need no question about the present, may be of the same moment, and may be a turn of a conversation;
   * or *retells* it (:func:`odds_of`): both probably answer the question, by the signs that
     `rlm_mem.text.update_score` weighs and the exceptions of `rlm_mem.text.distinct`. A note that was only looked up
     by rare words of the other one may be about anything: it also must be likely to be the answer, unless it takes up
     the other one (:func:`takes_up`);
   * or *returns* to the value that the first note had before it was changed (:func:`returning`).

Turns of a conversation have two rules of their own: a correction right after a turn (`rlm_mem.search.marking`), and
what the same speaker says later on a question of yes or no (`rlm_mem.offline.amended`).

**What follows from it** depends on the log-odds (nats) that the later note is the answer; one that ends the other is
certain:

* SURE (2.0): the offline model answers with it, if it states a change;
* PLAIN (1.0): without words of the question it ranks first, if it :func:`changes_plainly` what the first one says;
* LIKELY (-0.9): it ranks first; POSSIBLE (-2.0): it is returned beside the first one, and given with an answer;
* NAMED (-2.5): it is named on the hit, since a mark leaves the choice to the reader;
* ON_SUBJECT (-3.0): it is given with an answer if it has a word of the question's subject.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from rlm_mem import text as language
from rlm_mem.chunk import parse_time
from rlm_mem.text.by_language import ENDED
from rlm_mem.text.distinct import exceptions, is_passing, returns_to, sentences
from rlm_mem.text.factuality import is_taken_back
from rlm_mem.text.present import PresentQuestion, stems_in
from rlm_mem.text.segments import headings_at
from rlm_mem.text.update_score import (
    LIKELY,
    MAY_END,
    are_tied,
    gives_other_value,
    may_state_change,
    repeats_value,
    retelling,
    value_of,
)

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser
    from rlm_mem.text.differences import Conflict
    from rlm_mem.text.statement import Stated

PLAIN, NAMED, ON_SUBJECT = 1.0, -2.5, -3.0
COMPARED = 5
"""Number of best notes in which the rarity of a word is counted, and among which a later one may rank first."""
MAX_FOLLOWED = 4
"""Most successive changes that are followed."""
_WRITTEN_TOGETHER = timedelta(minutes=1)
"""Most time between the first and the last file of a copy."""

Kind = Literal["ends", "retells", "returns"]


class ComparedNote(Struct, frozen=True):
    """What is compared of a hit or a passage.

    Attributes:
        text: the text; of a long one, the part that was found, which is ``said``.
        at: its time in canonical form; empty if not known.
        speaker: who says it, if the text names one.
        is_note: whether it is neither the turn of a speaker nor a section of a document.
        trust: the higher, the more it is trusted.
        around: the names of its folder, title and headings.
    """

    text: str
    said: str
    at: str
    speaker: str | None = None
    is_note: bool = True
    is_valid: bool = True
    trust: int = 0
    of_file: bool = False
    around: str = ""

    @property
    def year(self) -> int:
        """The year of its time."""
        return int(self.at[:4])


class LaterNote(NamedTuple):
    """A later note that changes the first of several notes.

    Attributes:
        note: the note at ``place`` among them; it holds since `note.at`.
        odds: the log-odds (nats) that it is the answer; infinite unless it retells.
        reason: why, in words.
    """

    place: int
    note: ComparedNote
    kind: Kind
    odds: float
    reason: str


def later_notes(
    notes: Sequence[ComparedNote],
    asked: PresentQuestion | None,
    analyser: Analyser,
    *,
    least: float = LIKELY,
    near: int | None = None,
    nearest: int = 0,
    repeats: bool = False,
) -> list[LaterNote]:
    """Return which of some notes change the first of them, the surest first: one that ends it, and what retells it.

    Args:
        notes: the best first; of others, those behind the first one.
        asked: the question; None if it is not about the present, so that a note can only end the first one.
        least: the log-odds that a note must exceed.
        near: how many of the notes have words of the question, None for all; those behind were looked up by rare words
            of the first. The first of these that is tied to it counts as the nearest.
        nearest: the place of the later note that shares most with the first, if known.
        repeats: of the notes that were looked up, only those that are tied to the first and repeat its value.
    """
    first, found = notes[0], list[LaterNote]()
    for place, note in enumerate(notes[1:], 1):
        stated = ending(first, note, analyser, asked.stems if asked is not None else frozenset())
        if stated is not None:
            found.append(LaterNote(place, note, "ends", math.inf, stated[0].reason))
            break
    if asked is None:
        return found
    texts, ends = [note.text for note in notes], [one.place for one in found]
    for place in following(notes, asked, analyser):
        note, bar = notes[place], least
        if place >= (len(notes) if near is None else near):
            tied = are_tied(first.text, note.text, analyser)
            stems = (stems_in(one.text, analyser) for one in (first, note))
            if repeats and not (tied and repeats_value(asked, *stems)):
                continue
            nearest = nearest or (place if tied else 0)
            if not (tied and may_state_change(first.text, note.text, analyser)):
                bar = max(least, LIKELY)
        odds = odds_of(first, note, texts, asked, analyser, least=bar, nearest=place == nearest)
        if odds > bar and place not in ends:
            found.append(LaterNote(place, note, "retells", odds, "both answer the question"))
    return sorted(found, key=lambda one: one.odds, reverse=True)


def following(notes: Sequence[ComparedNote], asked: PresentQuestion, analyser: Analyser) -> Iterator[int]:
    """Yield the places of the valid notes that :func:`follow <follows>` the first one."""
    for place, note in enumerate(notes):
        if place and note.is_valid and follows(notes[0], note, asked, analyser):
            yield place


def follows(
    first: ComparedNote, other: ComparedNote, asked: PresentQuestion | None, analyser: Analyser
) -> bool:
    """Whether another note may change one, by its kind, time, trust and place; see the rule.

    Args:
        asked: the question; None if it is not about the present, so that it names no place.
    """
    if not (first.is_note and other.is_note) or first.text == other.text or other.trust < first.trust:
        return False
    if not first.at or other.at <= first.at:
        return False
    together = first.of_file and other.of_file
    if together and parse_time(other.at) - parse_time(first.at) <= _WRITTEN_TOGETHER:
        return False
    if asked is None:
        return True
    named = asked.stems & stems_in(first.around, analyser) if first.around else None
    if named and not named <= stems_in(f"{other.around} {other.text}", analyser):
        return False
    ends_any = ending(first, other, analyser)
    return ends_any is None or ending(first, other, analyser, asked.stems) is not None


def odds_of(
    first: ComparedNote,
    other: ComparedNote,
    texts: Sequence[str],
    asked: PresentQuestion,
    analyser: Analyser,
    *,
    least: float,
    nearest: bool = False,
    lasting: bool = True,
) -> float:
    """Return the log-odds that a note is the answer to a question that an earlier one answers.

    ``least`` if they are not higher; see :func:`rlm_mem.text.update_score.retelling`.

    Args:
        texts: of all notes, the best first.
        lasting: whether the other note must say what lasts, on the same thing; see :func:`is_apart`.
    """
    stems = _counted(first, other, texts, analyser)
    is_next = next((text for text in texts if text != first.text), other.text) == other.text
    return retelling(
        asked, first.text, other.text, stems, analyser,
        year=first.year if lasting else None, least=least, is_next=is_next, nearest=nearest,
    )  # fmt: skip


def is_apart(
    first: ComparedNote, other: ComparedNote, texts: Sequence[str], asked: PresentQuestion, analyser: Analyser
) -> bool:
    """Whether a later note is about something else than an earlier one, or may not say what lasts."""
    stems = _counted(first, other, texts, analyser)
    return any(exceptions(asked, first.text, other.text, stems, analyser, first.year))


def _counted(
    first: ComparedNote, other: ComparedNote, texts: Sequence[str], analyser: Analyser
) -> dict[str, frozenset[str]]:
    """The stems of the texts in which the rarity of a word is counted."""
    return {text: stems_in(text, analyser) for text in (first.text, *islice(texts, COMPARED), other.text)}


@lru_cache(maxsize=256)
def ending(
    first: ComparedNote,
    other: ComparedNote,
    analyser: Analyser,
    asked: frozenset[str] = frozenset(),
    about: str | None = None,
) -> tuple[Conflict, Stated] | None:
    """Return the statement of a valid note by which a statement of an earlier one has ended, and why; None for none.

    Cached, since the same notes are compared for the order of hits, for marks and for an answer.

    Args:
        asked: stems of the question: of several statements of the first note, those with the most of them are compared,
            since the others do not answer it: "Bread comes from Hobbs; fish is delivered on Tuesday".
        about: only statements of the first note with this text, in lower case, are compared.
    """
    is_later = other.at >= first.at if first.at and other.at else not first.is_valid
    if not (is_later and other.is_valid) or other.trust < first.trust:
        return None
    if not MAY_END.found_in(other.said) or is_taken_back(other.said) or first.said == other.said:
        return None
    before = [
        one
        for one in language.statements_in(_below_heading(first), analyser, speaker=first.speaker or None)
        if about is None or about in one.text.lower() or one.shown.lower() in about
    ]
    if not before:
        return None
    shared = [len(asked & (one.topic | one.context | one.value | {one.attribute})) for one in before]
    before = [one for one, number in zip(before, shared, strict=True) if number == max(shared)]
    after = language.statements_in(_below_heading(other), analyser, speaker=other.speaker or None)
    found = language.surest(after, before)
    return found[:2] if found is not None and found[0].said else None


def _below_heading(note: ComparedNote) -> str:
    """The part of a note that was found, below the headings that it has there, which may say whom it is about."""
    place = note.text.find(note.said)
    above = headings_at(note.text, [place])[0] if place > 0 else []
    return "\n\n".join((*(f"# {heading}" for heading in above), note.said))


def returning(
    former: ComparedNote, notes: Sequence[ComparedNote], asked: PresentQuestion, analyser: Analyser
) -> LaterNote | None:
    """Return the latest of the notes that brings back the value of a former note, which the first one had changed.

    "We returned to tabs", after "We indent with tabs" and "We indent with spaces now".
    """
    before = stems_in(former.text, analyser)
    options = frozenset[str]().union(*asked.options)  # which the question has, but which may be the value
    value = value_of(asked, before) | (before & options)
    again = [
        place
        for place in following(notes, asked, analyser)
        if returns_to(value, sentences(notes[place].text, analyser), analyser)
        and not is_passing(asked, notes[place].text, analyser, year=notes[0].year)
    ]
    place = max(again, key=lambda place: notes[place].at, default=0)
    return (
        LaterNote(place, notes[place], "returns", math.inf, "a former value holds again") if place else None
    )


def takes_up(first: str, other: str, analyser: Analyser) -> bool:
    """Whether a text shares a name or several telling words with an earlier one, and may state a change of it."""
    return are_tied(first, other, analyser) and may_state_change(first, other, analyser)


def changes_plainly(
    first: ComparedNote, other: ComparedNote, asked: PresentQuestion, analyser: Analyser
) -> bool:
    """Whether a note has a word for an end or a change, is tied to an earlier one, and gives another value of its form.

    This is a date, or a figure with the same unit. It may lack every word of the question, except one that limits this
    ("in production").
    """
    return (
        ENDED.found_in(other.text)
        and are_tied(first.text, other.text, analyser)
        and gives_other_value(asked, first.text, other.text, of_form=True)
        and asked.limits <= stems_in(other.text, analyser)
    )
