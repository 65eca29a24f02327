"""Marks on hits: which later or earlier note on the same subject is known of each of the best hits.

Where it is not sure which of two notes holds, both are given with their dates: whoever reads the earlier one must see
that there is a later one. Nothing is reordered here. Every surface shows :meth:`rlm_mem.search.ranking.Hit.marks`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from rlm_mem.chunk.types import rank
from rlm_mem.search.ranking import Hit, OtherNote, compared_texts, read_as_note
from rlm_mem.text.present import PresentQuestion
from rlm_mem.text.update_score import POSSIBLE, best_sentence, retelling

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.text.analysis import Analyser

_MARKED, _COMPARED = 3, 10
"""Number of best hits that are marked with a later note, and of those that may be it."""
_CHARS = 120
"""Most characters of a note in a mark."""


def with_marks(
    hits: list[Hit], read: Mapping[str, Chunk], query: str, analyser: Analyser, beside: Sequence[Hit] = ()
) -> list[Hit]:
    """The hits in their order; of two that may answer the same question about the present, each names the other.

    Which two may is told by a mark that a hit has already, by a link `contradicts`, and by how the texts differ.

    Args:
        read: the chunks of the hits.
        beside: later notes that are not among the hits, but may be named on them.
    """
    asked = PresentQuestion.of(query, analyser) if len(hits) + len(beside) > 1 else None
    if asked is None:
        return hits
    best = [*hits[:_COMPARED], *beside]
    notes = [one.superseded_by is None and read_as_note(one, read, asked) for one in best]
    told, texts = compared_texts(best, read, analyser)
    had = [len(asked.stems & texts[one]) for one in told]
    marked = list(best)
    against: defaultdict[str, set[int]] = defaultdict(set)
    for place, one in enumerate(best):
        for link in read[one.chunk_id].links:
            if link.type == "contradicts":
                against[link.target_id].add(place)
    for place, earlier in enumerate(hits[:_MARKED]):
        linked = against[earlier.chunk_id]
        if not notes[place] or (had[place] < max(had) and not linked):
            continue  # another hit has more words of the question
        odds, found = POSSIBLE, -1
        known = None if earlier.later_note is None else earlier.later_note.chunk_id
        for other, later in enumerate(best):
            if notes[other] and later.at > earlier.at and rank(later.trust) >= rank(earlier.trust):
                if other in linked or later.chunk_id == known:
                    odds, found = 1.0, other
                    continue
                year = int(earlier.at[:4])
                near = {one: texts[one] for one in (told[place], *told[:5], told[other])}
                again = retelling(
                    asked,
                    told[place],
                    told[other],
                    near,
                    analyser,
                    year=year,
                    least=odds,
                    nearest=later in beside[:1],
                )
                if again > odds:
                    odds, found = again, other
        if found >= 0:
            words = " ".join(best_sentence(asked, told[place], told[found], analyser).split())
            words = words if len(words) <= _CHARS else f"{words[: _CHARS - 1]}…"
            after = OtherNote(best[found].chunk_id, best[found].at, words)
            marked[place] = structs.replace(marked[place], later_note=after)
            if marked[found].earlier_note is None:
                before = OtherNote(earlier.chunk_id, earlier.at, "")
                marked[found] = structs.replace(marked[found], earlier_note=before)
    return [*marked[: len(best) - len(beside)], *hits[_COMPARED:]]
