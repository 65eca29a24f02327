"""Deterministic retrieval without a model: from a question to ranked hits.

``query`` analyses the question, ``candidates`` takes a bounded number of segments from a backend's index,
``ranking`` scores them (one implementation for every backend), ``api`` adds the snippets. Nothing here writes to a
store, and of its chunk files only those of the best hits are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.search.api import excerpts, hits_within, keyword_ids, passages, ranked_ids, search
    from rlm_mem.search.prompting import MemoryContext, memory_context
    from rlm_mem.search.ranking import Hit
    from rlm_mem.store.core.lookup import Filters

__all__ = [
    "Filters",
    "Hit",
    "MemoryContext",
    "excerpts",
    "hits_within",
    "keyword_ids",
    "passages",
    "memory_context",
    "ranked_ids",
    "search",
]

__getattr__ = loader(
    __name__,
    {
        "api": (
            "Filters",
            "Hit",
            "excerpts",
            "hits_within",
            "keyword_ids",
            "passages",
            "ranked_ids",
            "search",
        ),
        "prompting": ("MemoryContext", "memory_context"),
    },
)
