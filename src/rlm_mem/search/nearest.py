"""The earlier memories nearest to one: what it may replace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.errors import NotFoundError
from rlm_mem.search.api import search

if TYPE_CHECKING:
    from rlm_mem.search.ranking import Hit
    from rlm_mem.store.core.chunk_store import ChunkStore

_SEARCHED = 600
"""Most characters of a memory that are searched for."""
_OTHERS = 5
"""Hits that may be left out: the memory itself, later ones, replaced ones, other parts of its document."""


def earlier(store: ChunkStore, chunk_id: str, limit: int = 3) -> list[Hit]:
    """Return the valid earlier chunks that fit the words of a chunk best, best first.

    Among them is nearly always the memory that a new one makes out of date, however the change is worded; whether it
    does is for the caller to decide. Other parts of the same document are left out.

    Args:
        limit: most chunks, from 1.

    Raises:
        NotFoundError: there is no such chunk.
        InvalidQuery: the limit is out of range.
    """
    chunk = store.get_chunk(chunk_id, track=False)
    if chunk is None:
        raise NotFoundError(f"there is no chunk {chunk_id}", hint="search gives the ids")
    hits = search(store, chunk.content[:_SEARCHED], limit=limit + _OTHERS)
    path = chunk.metadata.provenance.get("path")
    found = store.get_many([hit.chunk_id for hit in hits], track=False)
    return [
        hit
        for hit in hits
        if hit.chunk_id in found
        and hit.chunk_id != chunk_id
        and not hit.ended()
        and hit.at <= chunk.metadata.at
        and (path is None or found[hit.chunk_id].metadata.provenance.get("path") != path)
    ][:limit]
