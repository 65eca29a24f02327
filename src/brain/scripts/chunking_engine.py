"""Another documented module name for text to chunks; re-exports only."""

from __future__ import annotations

from rlm_mem.ingest.chunking import ChunkingEngine, ChunkResult

__all__ = ["ChunkResult", "ChunkingEngine"]
