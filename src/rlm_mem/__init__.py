"""RLM-MEM: long-term memory for LLM agents, kept as plain files and questioned by programs that a model writes."""

from __future__ import annotations

from rlm_mem.chunk import Chunk, ChunkLinks, ChunkMetadata
from rlm_mem.config import Config
from rlm_mem.errors import (
    BudgetError,
    ConflictError,
    InputError,
    ModelError,
    NotFoundError,
    RlmMemError,
    SandboxError,
    StorageError,
)
from rlm_mem.memory import Memory

__version__ = "0.1.0"

__all__ = [
    "Memory",
    "Chunk",
    "ChunkLinks",
    "ChunkMetadata",
    "Config",
    "RlmMemError",
    "InputError",
    "NotFoundError",
    "ConflictError",
    "StorageError",
    "SandboxError",
    "BudgetError",
    "ModelError",
    "__version__",
]
