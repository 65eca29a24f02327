"""RLM-MEM: long-term memory for LLM agents, kept as plain files and questioned by programs that a model writes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_HOMES = {"Memory": "memory", "Config": "config"} | dict.fromkeys(
    ("Chunk", "ChunkLinks", "ChunkMetadata"), "chunk"
)


def __getattr__(name: str) -> object:
    """Load a public name when it is first used: importing the package alone must cost nothing (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
