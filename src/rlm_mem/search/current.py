"""The order of the best hits by what is currently valid, as far as their texts show it.

Links of succession are already followed by the ranking. Which later notes change a hit is decided by
`rlm_mem.text.later`; this module moves hits accordingly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import structs

from rlm_mem.chunk.types import origin_mark, rank
from rlm_mem.search.ranking import STEP, Hit, OtherNote
from rlm_mem.store.core.records import surroundings
from rlm_mem.text.distinct import is_passing
from rlm_mem.text.later import (
    COMPARED,
    MAX_FOLLOWED,
    PLAIN,
    ComparedNote,
    LaterNote,
    changes_plainly,
    later_notes,
    returning,
)
from rlm_mem.text.present import PresentQuestion, is_note, stems_in
from rlm_mem.text.update_score import POSSIBLE, are_tied

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.text.analysis import Analyser

#: Most characters of a note that is compared whole; of longer ones the snippet is compared.
LONGEST_NOTE = 600
#: Number of best hits for which later notes are looked up, if they may be the answer.
ANSWERING = 3
#: Number of best hits in which a later note is looked for.
NEAR = 10


class ComparedHits:
    """The hits of a search for a question about the present, as the notes that are compared.

    Args:
        read: the chunks of the hits.
        look_up: returns notes made after a hit, which need no word of the question, and adds their chunks to ``read``;
            the one that shares most with the hit comes first. None: no notes are looked up.
    """

    def __init__(
        self,
        read: Mapping[str, Chunk],
        asked: PresentQuestion,
        analyser: Analyser,
        look_up: Callable[[Hit], list[Hit]] | None,
    ) -> None:
        self.read, self.asked, self.analyser = read, asked, analyser
        self._look_up = look_up if asked.asks else None
        self._looked_up: dict[str, list[Hit]] = {}
        self._shown: set[str] = set()  # hits beside which such notes have been put
        self._notes: dict[tuple[str, int, int], ComparedNote] = {}

    def looked_up(self, hit: Hit) -> list[Hit]:
        """The notes made after a hit that share rare words with it; none for another text than a note."""
        if self._look_up is None or not self.of(hit).is_note:
            return []
        if hit.chunk_id not in self._looked_up:
            self._looked_up[hit.chunk_id] = self._look_up(hit)
        return self._looked_up[hit.chunk_id]

    def shown(self, hit: Hit) -> list[Hit]:
        """The same, to be put beside the hit."""
        self._shown.add(hit.chunk_id)
        return self.looked_up(hit)

    def not_shown(self, hit: Hit) -> list[Hit]:
        """The same, unless they have been put beside the hit."""
        return [] if hit.chunk_id in self._shown else self.looked_up(hit)

    def of(self, hit: Hit) -> ComparedNote:
        """A hit as a note."""
        key = hit.chunk_id, hit.start, hit.end
        if key not in self._notes:
            self._notes[key] = note_of(hit, self.read[hit.chunk_id], self.asked)
        return self._notes[key]

    def is_valid_note(self, hit: Hit) -> bool:
        """Whether a hit is a note that is not out of date."""
        note = self.of(hit)
        return note.is_note and note.is_valid

    def contradicted(self, hit: Hit) -> set[str]:
        """The chunks that the chunk of a hit contradicts by its links."""
        return {link.target_id for link in self.read[hit.chunk_id].links if link.type == "contradicts"}

    def later_notes(self, hits: list[Hit], **how: Any) -> list[LaterNote]:
        """The hits that change the first, the surest first: see :func:`~rlm_mem.text.later.later_notes`."""
        return later_notes([self.of(hit) for hit in hits], self.asked, self.analyser, **how)

    def answering_places(self, hits: list[Hit]) -> list[int]:
        """The places of the valid notes among the best hits that have as many words of the question as any hit.

        A note that replaced another one, or was put before it since it changes it, answers what that one answers.
        """
        matched = [len(self.asked.stems & stems_in(self.of(hit).text, self.analyser)) for hit in hits[:NEAR]]
        for place in range(len(matched)):
            before = place
            for to in successors(hits, place):
                matched[to] = max(matched[to], matched[before])
                before = to
        return [
            place
            for place, hit in enumerate(hits[:ANSWERING])
            if matched[place] == max(matched) and self.is_valid_note(hit)
        ]


def successors(hits: list[Hit], place: int) -> Iterator[int]:
    """Yield the places of the best hits that replaced or changed the one at ``place``, one after the other."""
    places = {hit.chunk_id: number for number, hit in enumerate(hits[:NEAR])}
    for _ in range(MAX_FOLLOWED):
        named = hits[place].later_note
        later = hits[place].superseded_by or (named.chunk_id if named else "")
        if places.get(later, place) == place:
            return
        place = places[later]
        yield place


def note_of(hit: Hit, chunk: Chunk, asked: PresentQuestion | None) -> ComparedNote:
    """A hit as it is compared with others: a short one whole, since one sentence of it rarely names its subject.

    A text that belongs to no conversation is a note, whatever labels its lines have: "Vet: the cat is well".
    """
    provenance = chunk.metadata.provenance
    is_part = bool(provenance.get("headings")) or provenance.get("parts", 1) != 1
    return ComparedNote(
        text=chunk.content if len(chunk.content) <= LONGEST_NOTE else hit.snippet,
        said=hit.snippet,
        at=hit.at,
        speaker=hit.author,
        is_note=not is_part and (hit.conversation_id is None or is_note(hit.author, asked)),
        is_valid=not hit.ended(),
        trust=rank(hit.trust),
        of_file="path" in provenance,
        around=surroundings(provenance),
    )


def with_ending_first(hits: list[Hit], read: Mapping[str, Chunk], analyser: Analyser) -> list[Hit]:
    """Put a hit first that states the end of what the first one says, for a question that is not about the present."""
    return _latest_first(
        hits,
        COMPARED,
        lambda some: later_notes([note_of(hit, read[hit.chunk_id], None) for hit in some], None, analyser),
    )


def with_current_first(hits: list[Hit], compare: ComparedHits, *, beside: bool) -> list[Hit]:
    """Reorder hits so that none of the other best hits changes the first, or lasts where that is a guess or temporary.

    Args:
        beside: for each hit that may be the answer, put a note that was looked up and possibly changes it behind it;
            one that probably changes the first hit is put before that.
    """
    if place := _lasting_place(hits[:COMPARED], compare):
        hits = with_first(hits, place, "lasts")
    was_first = hits[0].chunk_id
    hits = _latest_first(hits, COMPARED, compare.later_notes)
    for place in reversed(compare.answering_places(hits) if beside else []):
        before, rest = hits[:place], hits[place:]
        notes = compare.shown(rest[0])
        if {hit.chunk_id for hit in before}.isdisjoint(note.chunk_id for note in notes):
            # A later note that came first by its own words stays first.
            stays = place > 0 or rest[0].chunk_id != was_first
            hits = [*before, *_with_later_notes(rest, notes, compare, stays=stays)]
    return hits


def _with_later_notes(hits: list[Hit], notes: list[Hit], compare: ComparedHits, *, stays: bool) -> list[Hit]:
    """Put one of the notes made after the first hit before it, or behind it.

    Args:
        stays: put none before it.
    """
    if not notes:
        return hits
    hit_ids = {hit.chunk_id for hit in hits}
    best = [*hits[:COMPARED], *(one for one in notes if one.chunk_id not in hit_ids)]
    first = hits[0] if stays else _latest_first(best, len(best), compare.later_notes)[0]
    others = [one for one in notes if one.chunk_id != first.chunk_id]
    # Sharing one common word by chance does not make a note the nearest.
    text = compare.read[first.chunk_id].content
    tied = (
        place
        for place, one in enumerate(others, 1)
        if are_tied(text, compare.read[one.chunk_id].content, compare.analyser)
    )
    nearest = next(tied, 0) if first.chunk_id == hits[0].chunk_id else 0
    found = compare.later_notes([first, *others], least=POSSIBLE, nearest=nearest)[:1]
    beside = [structs.replace(others[one.place - 1], score=hits[0].score) for one in found]
    if found and found[0].place == nearest:
        first = structs.replace(first, later_note=as_other_note(beside[0]))
    moved = {(hit.chunk_id, hit.start) for hit in (first, *beside)}
    return [first, *beside, *(hit for hit in hits if (hit.chunk_id, hit.start) not in moved)]


def _latest_first(hits: list[Hit], compared: int, later: Callable[[list[Hit]], list[LaterNote]]) -> list[Hit]:
    """Repeatedly move the one of the compared hits to the front that most surely changes the first one."""
    for _ in range(MAX_FOLLOWED if hits else 0):
        found = later(hits[:compared])
        if not found:
            break
        hits = with_first(hits, found[0].place, "says so" if found[0].kind == "ends" else "tells again")
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


def _lasting_place(hits: list[Hit], compare: ComparedHits) -> int:
    """Return the place of the best lasting hit with all question words of the first, if that is a guess or temporary.

    0 for none.
    """
    asked, analyser, notes = compare.asked, compare.analyser, [compare.of(hit) for hit in hits]
    words = asked.stems & stems_in(notes[0].said, analyser)
    if not words or not notes[0].is_note:
        return 0
    for place, note in enumerate(notes[1:], 1):
        if words <= stems_in(note.said, analyser) and note.is_note:
            if not is_passing(asked, notes[0].said, analyser, year=notes[0].year):
                return 0
            if not is_passing(asked, note.said, analyser, year=note.year):
                return place
    return 0


def with_distant_first(hits: list[Hit], compare: ComparedHits, *, looked_up: bool) -> list[Hit]:
    """Put a later note with few words of the question first if it changes what the first hit says, at least probably.

    As such a note may be about anything, it must state that the value of the first hit has ended, repeat half of the
    first hit's answer to the question, or be tied to the first hit, plainly state a change, and be more probable.

    Args:
        looked_up: compare the notes that were looked up for the first hit, too.
    """
    ids = {hit.chunk_id for hit in hits}
    near = hits[:NEAR]
    beside = compare.looked_up(hits[0]) if looked_up else []
    beside = [note for note in beside if note.chunk_id not in ids]
    if not beside and len(hits) <= COMPARED:
        return hits
    best, least = [*near, *beside], len(hits[:COMPARED])
    found = compare.later_notes(best, near=least, repeats=True)
    if not found and beside:
        least = len(near)
        found = compare.later_notes(best, near=least, least=PLAIN)
        if found and not changes_plainly(compare.of(hits[0]), found[0].note, compare.asked, compare.analyser):
            return hits
    if not found or found[0].place < least:
        return hits
    place = found[0].place
    if place < len(near):
        return with_first(hits, place, "says so")
    return with_first([*hits, beside[place - len(near)]], len(hits), "says so")


def with_return_first(hits: list[Hit], compare: ComparedHits) -> list[Hit]:
    """Put the latest note first that brings back the value that the first hit had changed."""
    first = hits[0]
    for former in hits[1:NEAR] if compare.is_valid_note(first) else ():
        changed_by = former.superseded_by or (former.later_note.chunk_id if former.later_note else None)
        if changed_by != first.chunk_id:
            continue
        ids = {hit.chunk_id for hit in hits}
        found = [*hits, *(note for note in compare.looked_up(former) if note.chunk_id not in ids)]
        notes = [compare.of(hit) for hit in found]
        again = returning(compare.of(former), notes, compare.asked, compare.analyser)
        if again is not None:
            return with_first(found, again.place, "says so")[: len(hits) + (again.place >= len(hits))]
    return hits
