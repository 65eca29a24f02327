"""Marks on hits: for each of the best hits, the known later or earlier notes on the same subject.

Where it is uncertain which of several notes is valid, each hit gives the day and the words of the others, so that who
reads only the first hit reads all. Nothing is reordered here. Every interface shows
:meth:`rlm_mem.search.ranking.Hit.marks`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from typing import TYPE_CHECKING

from msgspec import structs

from rlm_mem.chunk.types import origin_mark, rank
from rlm_mem.search.current import ANSWERING, NEAR, ComparedHits, successors
from rlm_mem.search.neighbours import AdjacentSegment, neighbours_of
from rlm_mem.search.ranking import Hit, OtherNote
from rlm_mem.text.later import NAMED, ComparedNote, following
from rlm_mem.text.update_score import (
    LIKELY,
    POSSIBLE,
    best_sentence,
    corrects,
    gives_other_value,
    may_state_change,
)

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.chunk_store import ChunkStore

_MAX_QUOTED = 160
"""Most characters of a note in a mark."""
_MAX_TURNS = 3
"""Number of turns after a hit among which one that corrects it is looked for."""
_MAX_NAMED = 3
"""Most later notes that are named on a hit."""


def with_marks(hits: list[Hit], compare: ComparedHits) -> list[Hit]:
    """Return the hits in order; of two that may answer the same question about the present, each names the other.

    Such pairs are found by an existing mark of a hit, by a link `contradicts`, and by how the texts differ. A hit that
    was replaced names the last of several changes.
    """
    best, marked = hits[:NEAR], list(hits)
    places = {hit.chunk_id: place for place, hit in enumerate(best)}
    contradicting: defaultdict[str, set[str]] = defaultdict(set)
    for hit in best:
        for target in compare.contradicted(hit):
            contradicting[target].add(hit.chunk_id)
    answering = compare.answering_places(hits)
    for place, earlier in enumerate(best):
        known = contradicting[earlier.chunk_id] if place < ANSWERING else set()
        if earlier.later_note is not None:
            known = {earlier.later_note.chunk_id}
        if place not in answering and not (
            (known or not place) and compare.is_valid_note(earlier)  # the first hit is read in any case
        ):
            continue
        found = [earlier, *(hit for hit in best if hit is not earlier)]
        beside = [note for note in compare.not_shown(earlier) if note.chunk_id not in places]
        known = known or {one.chunk_id for one in beside if earlier.chunk_id in compare.contradicted(one)}
        found += beside
        others = _others(found, known, compare, near=len(best))
        if not others:
            continue
        named = [_other(found[one], compare.of(earlier), compare) for one in others]
        marked[place] = structs.replace(marked[place], later_note=named[0], more_later=tuple(named[1:]))
        for one in others:
            second = places.get(found[one].chunk_id)
            if second is None:
                continue
            named_there = marked[second].earlier_note
            if named_there is None or named_there.at < earlier.at:  # the value in force right before
                note = _other(earlier, compare.of(found[one]), compare)
                marked[second] = structs.replace(marked[second], earlier_note=note)
    for place, hit in enumerate(best):
        *between, last = [place, *successors(marked, place)]
        if hit.superseded_by is not None and len(between) > 1:
            # What replaced it is out of date, too; its own value may hold again.
            named_last = _other(marked[last], compare.of(hit), compare)
            marked[place] = structs.replace(marked[place], later_note=named_last)
    return marked


def with_corrections(hits: list[Hit], store: ChunkStore, compare: ComparedHits) -> list[Hit]:
    """Return the hits in order; the first one names what corrects it right afterwards in its conversation.

    Turns of one conversation have one time, so that only their order tells which was said later. Only one hit is
    checked, since its neighbours are read with further statements.
    """
    first = hits[0]
    if first.conversation_id is None or first.later_note is not None or first.ended():
        return hits
    chunk = compare.read[first.chunk_id]
    said = chunk.content[first.start : first.end]
    for turn in neighbours_of(store, [(chunk, first.start, first.end)], _MAX_TURNS)[0]:
        if turn.offset > 0 and turn.author == first.author and corrects(compare.asked, said, turn.text):
            valid = _valid_correction(store, turn)
            if valid is not None and rank(valid[0].metadata.trust) >= rank(first.trust):
                about = valid[0].metadata
                text = origin_mark(about.origin, about.trust) + " ".join(valid[1].split())[:_MAX_QUOTED]
                named = structs.replace(first, later_note=OtherNote(valid[0].id, about.at, text))
                return [named, *hits[1:]]
    return hits


def _valid_correction(store: ChunkStore, turn: AdjacentSegment) -> tuple[Chunk, str] | None:
    """Return the chunk and the text of a turn, or of the chunk that replaced it; None if neither is valid."""
    chunk, text = store.get_many([turn.chunk_id], track=False).get(turn.chunk_id), turn.text
    if chunk is not None and (by := chunk.metadata.superseded_by) is not None:
        chunk = store.get_many([by], track=False).get(by)
        text = "" if chunk is None else chunk.content
    if chunk is None or chunk.metadata.superseded_by is not None or store.ended_at(chunk.metadata.valid_to):
        return None
    return chunk, text


def _others(found: list[Hit], known: Set[str], compare: ComparedHits, *, near: int) -> list[int]:
    """Return the places of the later notes to name on the first hit: the newest one with another value first.

    These are the known one or else the most probable one, and others that possibly state a change.
    """
    asked, notes = compare.asked, [compare.of(hit) for hit in found]
    odds = {one.place: one.odds for one in compare.later_notes(found, near=near, least=NAMED)}
    first = 0
    if known:
        made_later = following(notes, asked, compare.analyser)
        first = next((one for one in made_later if found[one].chunk_id in known), 0)
    first = first or next(iter(odds), 0)
    text = notes[0].text
    others = [
        place
        for place, likely in odds.items()
        if place != first
        and may_state_change(text, notes[place].text, compare.analyser)
        and (likely > POSSIBLE or gives_other_value(asked, text, notes[place].text, of_form=True))
    ]

    def worth(place: int) -> tuple[bool, str]:
        likely = place == first or odds[place] > LIKELY
        return likely and gives_other_value(asked, text, notes[place].text), notes[place].at

    return sorted([first, *others[: _MAX_NAMED - 1]], key=worth, reverse=True) if first else []


def _other(hit: Hit, beside: ComparedNote, compare: ComparedHits) -> OtherNote:
    """A note as it is named on the hit ``beside``: whole, or from its most relevant sentence on."""
    text = compare.of(hit).text
    if len(text) > _MAX_QUOTED:
        text = text[text.find(best_sentence(compare.asked, beside.text, text, compare.analyser)) :]
    text = origin_mark(hit.origin, hit.trust) + " ".join(text.split())
    return OtherNote(
        hit.chunk_id, hit.at, text if len(text) <= _MAX_QUOTED else f"{text[: _MAX_QUOTED - 1]}…"
    )
