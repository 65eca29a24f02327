"""Marks on hits: for each of the best hits, the known later or earlier note on the same subject.

Where it is uncertain which of two notes is valid, both are named with their dates, so that a reader of the earlier
one sees the later one. Nothing is reordered here. Every interface shows :meth:`rlm_mem.search.ranking.Hit.marks`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from rlm_mem.chunk.types import rank
from rlm_mem.search.current import compared_texts, is_note_hit
from rlm_mem.search.ranking import Hit, OtherNote
from rlm_mem.text.update_score import best_sentence, retelling

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.text.analysis import Analyser
    from rlm_mem.text.present import PresentQuestion

_MARKED, _COMPARED = 3, 10
"""Number of best hits that may be marked with a later note, and of those that may be that note."""
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
    beside: Sequence[Hit],
) -> list[Hit]:
    """Return the hits in order; of two that may answer the same question about the present, each names the other.

    Such pairs are found by an existing mark of a hit, by a link `contradicts`, and by how the texts differ.

    Args:
        read: the chunks of the hits.
        beside: later notes that are not among the hits, but may be named on them.
    """
    if len(hits) + len(beside) < 2:
        return hits
    best = [*hits[:_COMPARED], *beside]
    notes = [hit.superseded_by is None and is_note_hit(hit, read, asked) for hit in best]
    compared, stems = compared_texts(best, read, analyser)
    matched = [len(asked.stems & stems[hit]) for hit in compared]
    marked = list(best)
    contradicting: defaultdict[str, set[int]] = defaultdict(set)
    for place, hit in enumerate(best):
        for link in read[hit.chunk_id].links:
            if link.type == "contradicts":
                contradicting[link.target_id].add(place)
    for place, earlier in enumerate(hits[:_MARKED]):
        linked = contradicting[earlier.chunk_id]
        if not notes[place] or (matched[place] < max(matched) and not linked):
            continue  # another hit has more words of the question
        odds, found = _LEAST_ODDS, -1
        marked_id = None if earlier.later_note is None else earlier.later_note.chunk_id
        for other, later in enumerate(best):
            if notes[other] and later.at > earlier.at and rank(later.trust) >= rank(earlier.trust):
                if other in linked or later.chunk_id == marked_id:
                    odds, found = 1.0, other
                    continue
                year = int(earlier.at[:4])
                nearby = {hit: stems[hit] for hit in (compared[place], *compared[:5], compared[other])}
                probability = retelling(
                    asked,
                    compared[place],
                    compared[other],
                    nearby,
                    analyser,
                    year=year,
                    least=odds,
                    is_next=other == (1 if place == 0 else 0),
                    nearest=later in beside[:1],
                )
                if probability > odds:
                    odds, found = probability, other
        if found >= 0:
            sentence = " ".join(best_sentence(asked, compared[place], compared[found], analyser).split())
            sentence = sentence if len(sentence) <= _MAX_QUOTED else f"{sentence[: _MAX_QUOTED - 1]}…"
            after = OtherNote(best[found].chunk_id, best[found].at, sentence)
            marked[place] = structs.replace(marked[place], later_note=after)
            if marked[found].earlier_note is None:
                before = OtherNote(earlier.chunk_id, earlier.at, "")
                marked[found] = structs.replace(marked[found], earlier_note=before)
    return [*marked[: len(best) - len(beside)], *hits[_COMPARED:]]
