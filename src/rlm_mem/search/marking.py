"""Marks on hits: for each of the best hits, the known later or earlier note on the same subject.

Where it is uncertain which of two notes is valid, each hit gives the day and the words of the other note, so that who
reads only the first hit reads both. Nothing is reordered here. Every interface shows
:meth:`rlm_mem.search.ranking.Hit.marks`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import structs

from rlm_mem.chunk.types import origin_mark
from rlm_mem.search.current import (
    ANSWERING,
    NEAR,
    answering_places,
    compared_texts,
    is_valid_note,
    later_note_places,
    retelling_place,
)
from rlm_mem.search.ranking import Hit, OtherNote
from rlm_mem.text.update_score import best_sentence

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.text.analysis import Analyser
    from rlm_mem.text.present import PresentQuestion

_LEAST_ODDS = -2.5
"""Log-odds above which a later note is named; lower than for a changed order, since a mark leaves the choice to the
reader."""
_MAX_QUOTED = 160
"""Most characters of a note in a mark."""


def with_marks(
    hits: list[Hit],
    read: Mapping[str, Chunk],
    asked: PresentQuestion,
    analyser: Analyser,
    later_notes: Callable[[Hit], list[Hit]] | None,
) -> list[Hit]:
    """Return the hits in order; of two that may answer the same question about the present, each names the other.

    Such pairs are found by an existing mark of a hit, by a link `contradicts`, and by how the texts differ.

    Args:
        read: the chunks of the hits; those of ``later_notes`` are in it after the call.
        later_notes: returns notes made after a hit, which may be named on it although they are no hits. None: these
            are among the hits already.
    """
    best, marked = hits[:NEAR], list(hits)
    places = {hit.chunk_id: place for place, hit in enumerate(best)}
    contradicting: defaultdict[str, set[str]] = defaultdict(set)
    for hit in best:
        for link in read[hit.chunk_id].links:
            if link.type == "contradicts":
                contradicting[link.target_id].add(hit.chunk_id)
    answering = answering_places(hits, read, asked, analyser)
    for place, earlier in enumerate(hits[:ANSWERING]):
        known = contradicting[earlier.chunk_id]
        if place not in answering and not (known and is_valid_note(earlier, read, asked)):
            continue
        if earlier.later_note is not None:
            known = {earlier.later_note.chunk_id}
        beside = [] if later_notes is None else later_notes(earlier)
        found = [earlier, *(hit for hit in best if hit is not earlier)]
        found += [note for note in beside if note.chunk_id not in places]
        texts, _ = compared_texts(found, read, analyser)
        other = 0
        if known:
            made_later = later_note_places(found, texts, read, asked, analyser)
            other = next((one for one in made_later if found[one].chunk_id in known), 0)
        if not other:
            other = retelling_place(found, read, asked, analyser, near=len(best), least=_LEAST_ODDS)
        if not other:
            continue
        later, before, after = found[other], texts[0], texts[other]
        marked[place] = structs.replace(
            marked[place], later_note=_other(later, asked, before, after, analyser)
        )
        second = places.get(later.chunk_id)
        if second is not None and marked[second].earlier_note is None:
            note = _other(earlier, asked, after, before, analyser)
            marked[second] = structs.replace(marked[second], earlier_note=note)
    return marked


def _other(hit: Hit, asked: PresentQuestion, beside: str, text: str, analyser: Analyser) -> OtherNote:
    """A note as it is named on the hit with the text ``beside``: whole, or from its most relevant sentence on."""
    if len(text) > _MAX_QUOTED:
        text = text[text.find(best_sentence(asked, beside, text, analyser)) :]
    text = origin_mark(hit.origin, hit.trust) + " ".join(text.split())
    return OtherNote(
        hit.chunk_id, hit.at, text if len(text) <= _MAX_QUOTED else f"{text[: _MAX_QUOTED - 1]}…"
    )
