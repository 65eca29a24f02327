"""Views of a server's open memory for its clients: confined to one namespace, or joining two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.memory import Memory
from rlm_mem.store.core.joined_store import JoinedStore

if TYPE_CHECKING:
    from rlm_mem.models.base import LLM
    from rlm_mem.store.core.chunk_store import ChunkStore


class _View(Memory):
    """A memory that shares files, connections and model with the open memory of a server, and does not close it."""

    def __init__(self, whole: Memory, store: ChunkStore) -> None:
        super().__init__(store)
        self._whole = whole

    @property
    def llm(self) -> LLM:
        """The model of the whole memory."""
        return self._whole.llm

    def close(self) -> None:
        """Do nothing, since the server closes the memory."""


def confined_memory(whole: Memory, namespace: str, actor: str) -> Memory:
    """The memory of one client, confined to a namespace; ``actor``: the author of its changes in the audit log."""
    return _View(whole, whole.store.confined_to(namespace, actor=actor))


def joined_memory(whole: Memory, shared: str) -> Memory:
    """A read-only view of a project's memory joined with the namespace shared by all projects."""
    other = whole.store.confined_to(shared, actor=whole.store.actor)
    return _View(whole, JoinedStore(whole.store, other))


def released_memory(confined: Memory) -> Memory:
    """A view with access to every namespace of the store, for operations on all of them."""
    return _View(confined, confined.store.released())
