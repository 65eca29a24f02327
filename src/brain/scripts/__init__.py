"""Every public name of docs/spec, Public names, re-exported from ``rlm_mem``; no logic lives here."""

from __future__ import annotations

from rlm_mem.chunk import AUTO_LINK_TYPES, CHUNK_TYPES, MANUAL_LINK_TYPES, Chunk, ChunkLinks, ChunkMetadata
from rlm_mem.errors import MaxIterationsError, SandboxViolation, TimeoutError
from rlm_mem.ingest.chunking import ChunkingEngine, ChunkResult
from rlm_mem.ingest.linking import AutoLinker, add_manual_link
from rlm_mem.ingest.remember import RememberOperation
from rlm_mem.interchange.export import export_to_markdown
from rlm_mem.interchange.importing import import_from_markdown
from rlm_mem.persona.library import load_personality, load_slider
from rlm_mem.recall.reason import ReasoningResult, ReasoningStep, ReasonOperation
from rlm_mem.recall.recall import RecallOperation, RecallResult
from rlm_mem.recall.repl_session import REPLSession
from rlm_mem.store.core.chunk_store import ChunkStore, init_storage

MemoryChunk = Chunk  # another documented name

__all__ = [
    "AUTO_LINK_TYPES",
    "CHUNK_TYPES",
    "MANUAL_LINK_TYPES",
    "AutoLinker",
    "Chunk",
    "ChunkLinks",
    "ChunkMetadata",
    "ChunkResult",
    "ChunkStore",
    "ChunkingEngine",
    "MaxIterationsError",
    "MemoryChunk",
    "REPLSession",
    "ReasonOperation",
    "ReasoningResult",
    "ReasoningStep",
    "RecallOperation",
    "RecallResult",
    "RememberOperation",
    "SandboxViolation",
    "TimeoutError",
    "add_manual_link",
    "export_to_markdown",
    "import_from_markdown",
    "init_storage",
    "load_personality",
    "load_slider",
]
