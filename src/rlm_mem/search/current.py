"""The order of the best hits by what is currently valid, as far as their texts show it.

Links of succession are already followed by the ranking. This module compares texts: a hit comes after another one that
ends, changes or restates it later, even if that one has few words of the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import structs

from rlm_mem import text as language
from rlm_mem.chunk import parse_time
from rlm_mem.chunk.types import origin_mark, rank
from rlm_mem.search.ranking import STEP, Hit, OtherNote
from rlm_mem.store.core.records import surroundings
from rlm_mem.text.by_language import ENDED
from rlm_mem.text.distinct import is_passing, returns_to, sentences
from rlm_mem.text.factuality import is_taken_back
from rlm_mem.text.present import PresentQuestion, is_note, stems_in
from rlm_mem.text.update_score import (
    LIKELY,
    MAY_END,
    POSSIBLE,
    are_tied,
    gives_other_value,
    may_state_change,
    repeats_value,
    retelling,
    value_of,
)

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.text.analysis import Analyser

#: Number of best hits whose texts are compared to find what is currently valid.
COMPARED = 5
#: Most characters of a note that is compared whole; of longer ones the snippet is compared.
LONGEST_NOTE = 600
#: Number of best hits for which later notes are looked up, if they may be the answer.
ANSWERING = 3
#: Number of best hits in which a later note is looked for.
NEAR = 10
#: Log-odds above which a note without the words of the question comes first if it plainly states a change.
_PLAINLY = 1.0
#: Most time between the first and the last file of a copy.
_WRITTEN_TOGETHER = timedelta(minutes=1)
#: Most successive changes that are followed.
_MAX_FOLLOWED = 4


def with_current_first(
    hits: list[Hit],
    read: Mapping[str, Chunk],
    asked: PresentQuestion | None,
    analyser: Analyser,
    later: Callable[[Hit], list[Hit]] | None = None,
) -> list[Hit]:
    """Reorder hits so that none of the other best hits states that the first is out of date, or retells it.

    The order already follows links of succession. This function compares the texts themselves: by the rules of
    ``rlm_mem.text.differences``, for imported chunks, chunks with open proposals and chunks that are partly out of
    date; and for a question about the present by those of ``rlm_mem.text.update_score``, for notes that are neither
    turns of a speaker nor sections of a document.

    Args:
        read: the chunks of the hits; those of ``later`` are in it after the call.
        asked: the question, if it is about the present.
        later: returns notes made after a hit, which need no word of the question; the one that shares most with the
            hit comes first. It is called for each hit that may be the answer. A note that possibly changes a hit is put
            behind it; one that probably changes the first hit is put before that.
    """
    if not hits or (len(hits) < 2 and later is None):
        return hits
    if asked is not None and (place := _lasting_place(hits[:COMPARED], read, asked, analyser)):
        hits = with_first(hits, place, "lasts")
    was_first = hits[0].chunk_id
    hits = _latest_first(hits, COMPARED, read, asked, analyser)
    if later is None or asked is None:
        return hits
    for place in reversed(answering_places(hits, read, asked, analyser)):
        before, rest = hits[:place], hits[place:]
        notes = later(rest[0])
        if {hit.chunk_id for hit in before}.isdisjoint(note.chunk_id for note in notes):
            # A later note that came first by its own words stays first.
            stays = place > 0 or rest[0].chunk_id != was_first
            hits = [*before, *_with_later_notes(rest, notes, read, asked, analyser, stays=stays)]
    return hits


def answering_places(
    hits: list[Hit], read: Mapping[str, Chunk], asked: PresentQuestion, analyser: Analyser
) -> list[int]:
    """Return the places of the valid notes among the best hits that have as many words of the question as any hit.

    A note that replaced another one, or was put before it since it changes it, answers what that one answers.
    """
    compared, stems = compared_texts(hits[:NEAR], read, analyser)
    matched = [len(asked.stems & stems[text]) for text in compared]
    places = {hit.chunk_id: place for place, hit in enumerate(hits[:NEAR])}
    for place, hit in enumerate(hits[:NEAR]):
        later = hit.superseded_by or (hit.later_note.chunk_id if hit.later_note else "")
        for _ in range(_MAX_FOLLOWED):
            if (to := places.get(later, place)) == place:
                break
            matched[to] = max(matched[to], matched[place])
            later = hits[to].superseded_by or ""
    return [
        place
        for place, hit in enumerate(hits[:ANSWERING])
        if matched[place] == max(matched) and is_valid_note(hit, read, asked)
    ]


def _with_later_notes(
    hits: list[Hit],
    notes: list[Hit],
    read: Mapping[str, Chunk],
    asked: PresentQuestion,
    analyser: Analyser,
    *,
    stays: bool,
) -> list[Hit]:
    """Put one of the notes made after the first hit before it, or behind it.

    Args:
        stays: put none before it.
    """
    if not notes:
        return hits
    hit_ids = {hit.chunk_id for hit in hits}
    best = [*hits[:COMPARED], *(one for one in notes if one.chunk_id not in hit_ids)]
    first = hits[0] if stays else _latest_first(best, len(best), read, asked, analyser)[0]
    others = [one for one in notes if one.chunk_id != first.chunk_id]
    # Sharing one common word by chance does not make a note the nearest.
    text = read[first.chunk_id].content
    tied = (
        place for place, one in enumerate(others, 1) if are_tied(text, read[one.chunk_id].content, analyser)
    )
    nearest = next(tied, 0) if first.chunk_id == hits[0].chunk_id else 0
    place = most_probable(
        retelling_places([first, *others], read, asked, analyser, least=POSSIBLE, nearest=nearest)
    )
    beside = [structs.replace(others[place - 1], score=hits[0].score)] if place else []
    if place and place == nearest:
        first = structs.replace(first, later_note=as_other_note(beside[0]))
    moved = {(hit.chunk_id, hit.start) for hit in (first, *beside)}
    return [first, *beside, *(hit for hit in hits if (hit.chunk_id, hit.start) not in moved)]


def _latest_first(
    hits: list[Hit],
    compared: int,
    read: Mapping[str, Chunk],
    asked: PresentQuestion | None,
    analyser: Analyser,
) -> list[Hit]:
    """Repeatedly move a later one of the compared hits to the front if it ends or retells the first one."""
    for _ in range(_MAX_FOLLOWED):
        best, part = hits[:compared], "says so"
        place = _ending_place(best, analyser)
        if not place:
            odds = retelling_places(best, read, asked, analyser) if asked else {}
            place, part = most_probable(odds), "tells again"
        if not place:
            break
        hits = with_first(hits, place, part)
    return hits


def with_first(hits: list[Hit], place: int, part: str) -> list[Hit]:
    """Return the hits with the one at ``place`` moved to the front; if it changes the former first, that names it."""
    former, chosen = hits[0], hits[place]
    first = former.score + STEP
    parts = {**chosen.parts, part: first - chosen.score} if chosen.parts is not None else None
    if part != "lasts":
        former = structs.replace(former, later_note=as_other_note(chosen))
    return [structs.replace(chosen, score=first, parts=parts), former, *hits[1:place], *hits[place + 1 :]]


def as_other_note(hit: Hit) -> OtherNote:
    """Return a hit as it is named on another one."""
    return OtherNote(hit.chunk_id, hit.at, origin_mark(hit.origin, hit.trust) + hit.snippet)


def _lasting_place(
    hits: list[Hit], read: Mapping[str, Chunk], asked: PresentQuestion, analyser: Analyser
) -> int:
    """Return the place of the best lasting hit with all question words of the first, if that is a guess or temporary.

    0 for none.
    """
    first = hits[0]
    words = asked.stems & stems_in(first.snippet, analyser)
    if not words or not is_note_hit(first, read, asked):
        return 0
    first_is_passing = None
    for place, hit in enumerate(hits[1:], 1):
        if not words <= stems_in(hit.snippet, analyser) or not is_note_hit(hit, read, asked):
            continue
        if first_is_passing is None:
            first_is_passing = is_passing(asked, first.snippet, analyser, year=int(first.at[:4]))
        if not first_is_passing:
            break
        if not is_passing(asked, hit.snippet, analyser, year=int(hit.at[:4])):
            return place
    return 0


def _ending_place(hits: list[Hit], analyser: Analyser) -> int:
    """Return the place of the best hit that states that the first one is no longer valid; 0 for none."""
    later = [
        place
        for place in later_places(hits)
        if MAY_END.found_in(hits[place].snippet) and not is_taken_back(hits[place].snippet)
    ]
    if not later:
        return 0
    first_statements = language.statements_in(hits[0].snippet, analyser, speaker=hits[0].author)
    for place in later if first_statements else ():
        statements = language.statements_in(hits[place].snippet, analyser, speaker=hits[place].author)
        found = language.surest(statements, first_statements)
        if found is not None and found[0].said:
            return place
    return 0


def most_probable(odds: Mapping[int, float]) -> int:
    """Return the place with the highest log-odds; 0 for none."""
    return max(odds, key=lambda place: odds[place], default=0)


def retelling_places(
    hits: list[Hit],
    read: Mapping[str, Chunk],
    asked: PresentQuestion,
    analyser: Analyser,
    *,
    near: int | None = None,
    least: float = LIKELY,
    repeats: bool = False,
    nearest: int = 0,
) -> dict[int, float]:
    """Return the places of the hits that may retell the first one's answer, with their log-odds.

    Args:
        near: how many of the hits have words of the question, None for all. A later note behind these was looked up by
            rare words of the first hit and may be about anything: its log-odds must exceed ``LIKELY``, too, unless it
            is tied to the first hit and states a change. The first that is tied counts as the nearest.
        least: the log-odds that the hit must exceed.
        nearest: the place of the later note that shares most with the first hit, if known.
        repeats: of the notes behind ``near``, only those that are tied to the first hit and repeat its value.
    """
    found: dict[int, float] = {}
    if not is_note_hit(hits[0], read, asked):
        return found
    near = len(hits) if near is None else near
    texts, stems = compared_texts(hits, read, analyser)
    for place in later_note_places(hits, texts, read, asked, analyser):
        pair, bar = (texts[0], texts[place], analyser), least
        if place >= near:
            tied = are_tied(*pair)
            if repeats and not (tied and repeats_value(asked, stems[pair[0]], stems[pair[1]])):
                continue
            nearest = nearest or (place if tied else 0)
            bar = least if tied and may_state_change(*pair) else max(least, LIKELY)
        odds = retelling(
            asked,
            texts[0],
            texts[place],
            {text: stems[text] for text in (*texts[:COMPARED], texts[place])},
            analyser,
            year=int(hits[0].at[:4]),
            least=bar,
            is_next=place == 1,
            nearest=place == nearest,
        )
        if odds > bar:
            found[place] = odds
    return found


def _changing_place(
    hits: list[Hit], read: Mapping[str, Chunk], asked: PresentQuestion, analyser: Analyser, *, near: int
) -> int:
    """Return the place of the hit from ``near`` on that most probably states in plain words a change of the first one.

    0 for none. It may lack every word of the question, except one that limits this ("in production"), but gives another
    value of the same form: a date, or a figure with the same unit.
    """
    if len(hits) <= near:
        return 0
    place = most_probable(retelling_places(hits, read, asked, analyser, near=near, least=_PLAINLY))
    if place < near:
        return 0
    (before, after), stems = compared_texts([hits[0], hits[place]], read, analyser)
    states_change = (
        ENDED.found_in(after)
        and are_tied(before, after, analyser)
        and gives_other_value(asked, before, after, of_form=True)
        and asked.limits <= stems[after]
    )
    return place if states_change else 0


def with_return_first(
    hits: list[Hit],
    read: Mapping[str, Chunk],
    asked: PresentQuestion,
    analyser: Analyser,
    later: Callable[[Hit], list[Hit]],
) -> list[Hit]:
    """Put the latest note first that brings back the value that the first hit had changed.

    "We returned to tabs", after "We indent with tabs" and "We indent with spaces now".

    Args:
        later: as for :func:`with_current_first`.
    """
    best, first = hits[:NEAR], hits[0]
    for former in best[1:] if is_valid_note(first, read, asked) else ():
        changed_by = former.superseded_by or (former.later_note.chunk_id if former.later_note else None)
        if changed_by != first.chunk_id:
            continue
        ids = {hit.chunk_id for hit in hits}
        found = [*hits, *(note for note in later(former) if note.chunk_id not in ids)]
        texts, _ = compared_texts(found, read, analyser)
        before = stems_in(read[former.chunk_id].content, analyser)
        options = frozenset[str]().union(*asked.options)  # which the question has, but which may be the value
        value = value_of(asked, before) | (before & options)
        again = [
            place
            for place in later_note_places(found, texts, read, asked, analyser)
            if returns_to(value, sentences(texts[place], analyser), analyser)
            and not is_passing(asked, texts[place], analyser, year=int(first.at[:4]))
        ]
        if again:
            place = max(again, key=lambda place: found[place].at)
            return with_first(found, place, "says so")[: len(hits) + (place >= len(hits))]
    return hits


def compared_texts(
    hits: list[Hit], read: Mapping[str, Chunk], analyser: Analyser
) -> tuple[list[str], dict[str, frozenset[str]]]:
    """Return the texts by which hits are compared, and the stems of each.

    A short note is compared whole, since one sentence of it rarely names the subject of the others.
    """
    compared: list[str] = []
    stems: dict[str, frozenset[str]] = {}
    for hit in hits:
        content = read[hit.chunk_id].content
        compared.append(content if len(content) <= LONGEST_NOTE else hit.snippet)
        stems[compared[-1]] = stems_in(compared[-1], analyser)
    return compared, stems


def is_note_hit(hit: Hit, read: Mapping[str, Chunk], asked: PresentQuestion) -> bool:
    """Whether a hit is a note: not a turn of a speaker, nor a part or section of a document.

    A text that belongs to no conversation is a note, too, whatever labels its lines have: "Vet: the cat is well".
    """
    provenance = read[hit.chunk_id].metadata.provenance
    if provenance.get("headings") or provenance.get("parts", 1) != 1:
        return False
    return hit.conversation_id is None or is_note(hit.author, asked)


def is_valid_note(hit: Hit, read: Mapping[str, Chunk], asked: PresentQuestion) -> bool:
    """Whether a hit is a note that is not out of date."""
    return not hit.ended() and is_note_hit(hit, read, asked)


def is_made_after(hit: Hit, other: Hit, read: Mapping[str, Chunk]) -> bool:
    """Whether a hit is of a later time than another.

    The files of a folder that is copied or checked out get times in the order of writing, which says nothing of what
    they contain: of two files only one that changed some time after the other is later.
    """
    if hit.at <= other.at:
        return False
    if not all("path" in read[one.chunk_id].metadata.provenance for one in (hit, other)):
        return True
    return parse_time(hit.at) - parse_time(other.at) > _WRITTEN_TOGETHER


def later_places(hits: list[Hit]) -> list[int]:
    """Return the places of hits that are valid, not older than the first and trusted at least as far."""
    first = hits[0]
    return [
        place
        for place, hit in enumerate(hits)
        if place and not hit.ended() and hit.at >= first.at and rank(hit.trust) >= rank(first.trust)
    ]


def later_note_places(
    hits: list[Hit], texts: list[str], read: Mapping[str, Chunk], asked: PresentQuestion, analyser: Analyser
) -> Iterator[int]:
    """Yield the places of other notes, made after the first hit, with the words by which the question names its place.

    These are the words of its folder, title and headings.

    Args:
        texts: the compared text of each hit.
    """
    around = {hit.chunk_id: surroundings(read[hit.chunk_id].metadata.provenance) for hit in hits}
    named = asked.stems & stems_in(around[hits[0].chunk_id], analyser)
    for place in later_places(hits):
        hit = hits[place]
        if texts[place] == texts[0]:  # as where two clones of a brain remembered the same
            continue
        if not is_made_after(hit, hits[0], read) or not is_note_hit(hit, read, asked):
            continue
        if not named or named <= stems_in(f"{around[hit.chunk_id]} {texts[place]}", analyser):
            yield place


def with_distant_first(
    hits: list[Hit], beside: list[Hit], read: Mapping[str, Chunk], asked: PresentQuestion, analyser: Analyser
) -> list[Hit]:
    """Put a later note with few words of the question first if it changes what the first hit says, at least probably.

    As such a note may be about anything, it must state that the value of the first hit has ended, repeat half of the
    first hit's answer to the question, or be tied to the first hit, plainly state a change, and be more probable.

    Args:
        beside: notes made after the first hit that share rare words with it.
    """
    hit_ids = {hit.chunk_id for hit in hits}
    beside = [note for note in beside if note.chunk_id not in hit_ids]
    near = hits[:NEAR]
    if place := _ending_place([hits[0], *beside], analyser):
        place += len(near) - 1
    else:
        compared = len(hits[:COMPARED])
        place = most_probable(
            retelling_places([*near, *beside], read, asked, analyser, near=compared, repeats=True)
        )
        place = place or _changing_place([*near, *beside], read, asked, analyser, near=len(near))
        if place < compared:
            return hits
    if place < len(near):
        return with_first(hits, place, "says so")
    return with_first([*hits, beside[place - len(near)]], len(hits), "says so")
