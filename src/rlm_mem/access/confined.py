"""Memories for the clients of a server, on its open store: confined to one namespace, or reading two as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.memory import Memory
from rlm_mem.store.core.joined import JoinedStore

if TYPE_CHECKING:
    from rlm_mem.models.base import LLM
    from rlm_mem.store.core.chunk_store import ChunkStore


class _View(Memory):
    """A memory that shares files, connections and model with the one that a server has opened."""

    def __init__(self, whole: Memory, store: ChunkStore) -> None:
        super().__init__(store)
        self._whole = whole

    @property
    def llm(self) -> LLM:
        """The model of the whole memory."""
        return self._whole.llm

    def close(self) -> None:
        """Do nothing: the whole memory is closed by its server."""


class ConfinedMemory(_View):
    """The memory of one client.

    Args:
        whole: the open memory; it stays open when this one is closed.
        namespace: the only one that it can name.
        actor: who writes, for the audit log.
    """

    def __init__(self, whole: Memory, namespace: str, actor: str) -> None:
        super().__init__(whole, whole.store.confined_to(namespace, actor=actor))


class JoinedMemory(_View):
    """A project's memory for reading: joined with the namespace that all projects share.

    Args:
        whole: the open memory, whose namespace is the project's; it stays open when this one is closed.
        shared: the other namespace.
    """

    def __init__(self, whole: Memory, shared: str) -> None:
        other = whole.store.confined_to(shared, actor=whole.store.actor)
        super().__init__(whole, JoinedStore(whole.store, other))


class WholeMemory(_View):
    """A memory that may name every namespace of the store, for operations that concern all of them.

    Args:
        confined: the open memory of a client that reaches every namespace; it stays open when this one is closed.
    """

    def __init__(self, confined: Memory) -> None:
        super().__init__(confined, confined.store.released())
