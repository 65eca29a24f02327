"""StrandsStore: a store for the memory manager of Strands Agents (extra ``strands``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strands.memory.types import MemoryEntry, MemoryStore, Metadata, SearchOptions

from rlm_mem.aio import AsyncMemory, check_async
from rlm_mem.errors import InvalidQuery
from rlm_mem.memory import Memory

if TYPE_CHECKING:
    from strands.memory.extraction.types import ExtractionConfig

_LIMIT = 10


class StrandsStore(MemoryStore):
    """The memories of a brain's namespace for Strands: found by search, and added like any other memory.

    Example::

        async with await AsyncMemory.open("brain") as memory:
            agent = Agent(memory_manager=MemoryManager(stores=[StrandsStore("notes", memory)]))

    Args:
        name: unique among the stores of an agent.
        memory: an open memory, which the caller closes.
        description: describes its contents to the model.
        max_search_results: maximum number of results of a search that gives none.
        writable: whether the agent may add to it.
        extraction: as Strands describes it; facts that its model extracts are added.
    """

    def __init__(
        self,
        name: str,
        memory: AsyncMemory,
        *,
        description: str | None = None,
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = extraction
        self._memory = check_async(memory)

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """The passages that fit a query, the best first, each with its chunk, date and score."""
        asked = (options or {}).get("max_search_results")
        if asked is not None and asked < 1:
            raise InvalidQuery(f"max_search_results must be at least 1, not {asked}")
        if not query.strip():
            return []
        hits = await self._memory.search(query, limit=asked or self.max_search_results or _LIMIT)
        return [
            MemoryEntry(
                hit.marked_snippet(),
                metadata={
                    "chunk_id": hit.chunk_id,
                    "date": hit.at,
                    "tags": list(hit.tags),
                    "score": hit.score,
                },
            )
            for hit in hits
        ]

    async def add(self, content: str, metadata: Metadata | None = None) -> list[str]:
        """Add a memory; one with the same words is not added twice.

        Returns:
            The ids of its chunks.
        """
        return await self._memory.run(_add, content, metadata)


def _add(memory: Memory, content: str, metadata: Metadata | None) -> list[str]:
    with memory.batch():
        same = memory.store.find_same(content.strip(), None)
        if same is not None:
            return [same]
        return memory.remember(content, metadata=metadata).chunk_ids
