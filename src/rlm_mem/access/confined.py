"""A memory confined to one namespace, on the open store of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.memory import Memory

if TYPE_CHECKING:
    from rlm_mem.models.base import LLM

__all__ = ["ConfinedMemory"]


class ConfinedMemory(Memory):
    """The memory of one client: it shares files, connections and model with the one that a server has opened.

    Args:
        whole: the open memory; it stays open when this one is closed.
        namespace: the only one that exists for it.
        actor: who writes, for the audit log.
    """

    def __init__(self, whole: Memory, namespace: str, actor: str) -> None:
        super().__init__(whole.store.confined_to(namespace, actor=actor))
        self._whole = whole

    @property
    def llm(self) -> LLM:
        """The model of the whole memory."""
        return self._whole.llm

    def close(self) -> None:
        """Do nothing: the whole memory is closed by its server."""
