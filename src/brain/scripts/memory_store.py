"""Another documented module name for the chunk store; re-exports only."""

from __future__ import annotations

from rlm_mem.chunk import Chunk, ChunkLinks, ChunkMetadata
from rlm_mem.store.core.chunk_store import ChunkStore, init_storage

__all__ = ["Chunk", "ChunkLinks", "ChunkMetadata", "ChunkStore", "init_storage"]
