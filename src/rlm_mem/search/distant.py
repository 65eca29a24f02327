"""The order of hits and later notes that few words of the question find, but that change what the first hit says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rlm_mem.search.ranking import COMPARED, Hit, compared_texts, is_note_hit, later_places, with_first
from rlm_mem.text.present import PresentQuestion
from rlm_mem.text.update_score import LIKELY, are_tied, repeats_value, retelling

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.text.analysis import Analyser


def with_distant_first(
    hits: list[Hit], beside: list[Hit], read: Mapping[str, Chunk], query: str, analyser: Analyser
) -> list[Hit]:
    """Put a later note with few words of the question first if it probably changes what the first hit says.

    As such a note may be about anything, it must repeat half of what the first hit says in answer to the question.

    Args:
        beside: notes made after the first hit that share rare words with it.
    """
    asked = PresentQuestion.of(query, analyser)
    if asked is None or not is_note_hit(hits[0], read, asked):
        return hits
    near = hits[: 2 * COMPARED]
    found, nearest = [*near, *beside], min(COMPARED, len(near))
    texts, stems = compared_texts(found, read, analyser)
    year, best, place = int(hits[0].at[:4]), LIKELY, 0
    for other in later_places(found):
        hit, text = found[other], texts[other]
        if other < nearest or hit.at == hits[0].at or not is_note_hit(hit, read, asked):
            continue
        if repeats_value(asked, stems[texts[0]], stems[text]) and are_tied(texts[0], text, analyser):
            odds = retelling(
                asked, texts[0], text, stems, analyser, year=year, least=best, is_next=other == 1
            )
            if odds > best:
                best, place = odds, other
    if place < len(near):
        return with_first(hits, place, "says so") if place else hits
    return with_first([*hits, found[place]], len(hits), "says so")
