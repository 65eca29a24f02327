"""Views of a server's open memory for its clients: confined to one namespace, or joining two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.memory import Memory
from rlm_mem.store.core.joined_store import JoinedStore

if TYPE_CHECKING:
    from rlm_mem.models.base import LLM
    from rlm_mem.store.core.chunk_store import ChunkStore


class _View(Memory):
    """A memory that shares files, connections and model with the open memory of a server."""

    def __init__(self, whole: Memory, store: ChunkStore) -> None:
        super().__init__(store)
        self._whole = whole

    @property
    def llm(self) -> LLM:
        """The model of the whole memory."""
        return self._whole.llm

    def close(self) -> None:
        """Do nothing, since the server closes the memory."""


class ConfinedMemory(_View):
    """The memory of one client, confined to a namespace.

    Args:
        whole: the open memory, which is not closed with this one.
        namespace: the only namespace it can access.
        actor: the author of changes in the audit log.
    """

    def __init__(self, whole: Memory, namespace: str, actor: str) -> None:
        super().__init__(whole, whole.store.confined_to(namespace, actor=actor))


class JoinedMemory(_View):
    """A read-only view of a project's memory joined with the namespace shared by all projects.

    Args:
        whole: the open memory with the project's namespace, which is not closed with this one.
    """

    def __init__(self, whole: Memory, shared: str) -> None:
        other = whole.store.confined_to(shared, actor=whole.store.actor)
        super().__init__(whole, JoinedStore(whole.store, other))


class WholeMemory(_View):
    """A view with access to every namespace of the store, for operations on all of them.

    Args:
        confined: the open memory of a client with access to every namespace, which is not closed with this one.
    """

    def __init__(self, confined: Memory) -> None:
        super().__init__(confined, confined.store.released())
