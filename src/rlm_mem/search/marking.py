"""Marks on hits: for each of the best hits, the known later or earlier note on the same subject.

Where it is uncertain which of two notes is valid, both are named with their dates, so that a reader of the earlier
one sees the later one. Nothing is reordered here. Every interface shows :meth:`rlm_mem.search.ranking.Hit.marks`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING

from msgspec import structs

from rlm_mem.chunk.types import rank
from rlm_mem.search.current import (
    ANSWERING,
    COMPARED,
    NEAR,
    answering_places,
    compared_texts,
    is_made_after,
    is_valid_note,
)
from rlm_mem.search.ranking import Hit, OtherNote
from rlm_mem.text.update_score import LIKELY, are_tied, best_sentence, retelling, tells_of_change

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.text.analysis import Analyser
    from rlm_mem.text.present import PresentQuestion

_LEAST_ODDS = -2.5
"""Log-odds above which a later note is named; lower than for a changed order, since a mark leaves the choice to the
reader."""
_MAX_QUOTED = 120
"""Most characters quoted from a note in a mark."""


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
        beside = [note for note in beside if note.chunk_id not in places]
        later = _later_of(place, best, beside, known, read, asked, analyser)
        if later is None:
            continue
        texts, _ = compared_texts([earlier, later], read, analyser)
        sentence = " ".join(best_sentence(asked, texts[0], texts[1], analyser).split())
        sentence = sentence if len(sentence) <= _MAX_QUOTED else f"{sentence[: _MAX_QUOTED - 1]}…"
        after = OtherNote(later.chunk_id, later.at, sentence)
        marked[place] = structs.replace(marked[place], later_note=after)
        other = places.get(later.chunk_id)
        if other is not None and marked[other].earlier_note is None:
            before = OtherNote(earlier.chunk_id, earlier.at, "")
            marked[other] = structs.replace(marked[other], earlier_note=before)
    return marked


def _later_of(
    place: int,
    best: list[Hit],
    beside: list[Hit],
    known: Set[str],
    read: Mapping[str, Chunk],
    asked: PresentQuestion,
    analyser: Analyser,
) -> Hit | None:
    """Return the note that most probably changes what the hit at ``place`` says; None if none may.

    Args:
        beside: later notes that are not among the best hits.
        known: ids of later notes of which it is known.
    """
    earlier, found = best[place], [*best, *beside]
    texts, stems = compared_texts(found, read, analyser)
    nearest, odds, later = "", _LEAST_ODDS, None
    for other, hit in enumerate(found):
        if (
            not is_made_after(hit, earlier, read)
            or rank(hit.trust) < rank(earlier.trust)
            or not is_valid_note(hit, read, asked)
        ):
            continue
        if hit.chunk_id in known:
            odds, later = 1.0, hit
            continue
        least = odds
        if other >= len(best):
            pair = texts[place], texts[other], analyser
            if not (are_tied(*pair) and tells_of_change(*pair)):
                least = max(least, LIKELY)
            elif not nearest:
                nearest = hit.chunk_id
        probability = retelling(
            asked,
            texts[place],
            texts[other],
            {text: stems[text] for text in (texts[place], *texts[:COMPARED], texts[other])},
            analyser,
            year=int(earlier.at[:4]),
            least=least,
            is_next=other == (1 if place == 0 else 0),
            nearest=hit.chunk_id == nearest,
        )
        if probability > least:
            odds, later = probability, hit
    return later
