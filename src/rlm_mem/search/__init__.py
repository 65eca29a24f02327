"""Deterministic retrieval without a model: from a question to ranked hits.

``query`` analyses the question, ``candidates`` takes a bounded number of segments from a backend's index,
``ranking`` scores them (one implementation for every backend), ``current`` puts what is valid before what it
replaced, ``snippets`` cuts what the hits show, and ``api`` runs all of it. Nothing here writes to a store, and of its
chunk files only those of the best hits are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.search.api import (
        excerpts as excerpts,
        hits_within as hits_within,
        ids_with_terms as ids_with_terms,
        keyword_ids as keyword_ids,
        occurs as occurs,
        passages as passages,
        ranked_ids as ranked_ids,
        search as search,
    )
    from rlm_mem.search.nearest import earlier as earlier
    from rlm_mem.search.prompting import MemoryContext as MemoryContext, memory_context as memory_context
    from rlm_mem.search.ranking import Hit as Hit
    from rlm_mem.store.core.lookup import Filters as Filters

__getattr__, __all__ = loader(
    __name__,
    {
        "api": "Filters Hit excerpts hits_within ids_with_terms keyword_ids occurs passages ranked_ids search",
        "nearest": "earlier",
        "prompting": "MemoryContext memory_context",
    },
)
