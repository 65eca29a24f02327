"""What every face of one server shares: its settings, its one open memory, and how data and errors become text."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_mem.errors import RlmMemError
from rlm_mem.operations.handles import Handles

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

__all__ = ["CallCancelled", "OpenMemory", "Settings", "in_words", "storable"]


@dataclass(frozen=True)
class Settings:
    """What the start of a server fixes for all its clients.

    Attributes:
        brain: the brain folder or a DSN; None: where the command line would look.
        namespace: the only one that clients reach; None: the configured one.
        llm: who writes the programs of recall and reason; None: the configured model.
        read_only: offer only tools that change no memory.
        every_tool: offer the further tools too.
        actor: who writes, for the audit log.
    """

    brain: Path | str | None = None
    namespace: str | None = None
    llm: str | None = None
    read_only: bool = False
    every_tool: bool = False
    actor: str = "mcp"


class CallCancelled(Exception):
    """The client gave a call up; raised between two steps of a recall."""


class OpenMemory:
    """One memory, confined to its namespace, and the open recalls on it; safe for several threads.

    The memory is opened when first asked for: what a client waits for first must not wait for it.

    Args:
        settings: of the server.
        handles: of open recalls; by default a new set.
    """

    def __init__(self, settings: Settings, handles: Handles | None = None) -> None:
        self.settings = settings
        self.handles = handles or Handles()
        self._memory: Memory | None = None
        self._guard = threading.Lock()

    @property
    def memory(self) -> Memory:
        """The memory, opened when first asked for.

        Raises:
            RlmMemError: it cannot be opened.
        """
        with self._guard:
            if self._memory is None:
                from rlm_mem.memory import Memory

                self._memory = Memory.open(
                    self.settings.brain,
                    namespace=self.settings.namespace,
                    llm=self.settings.llm,
                    read_only=self.settings.read_only,
                    actor=self.settings.actor,
                    confined=True,
                )
            return self._memory

    def close(self) -> None:
        """End open recalls and close the memory."""
        self.handles.close()
        with self._guard:
            if self._memory is not None:
                self._memory.close()
                self._memory = None


def in_words(error: RlmMemError) -> str:
    """The message of an error and the remedy, as one text; what UTF-8 cannot hold is replaced."""
    message = f"{str(error).rstrip('.')}. {error.hint}" if error.hint else str(error)
    return message.encode("utf-8", "replace").decode()


def storable(data: dict[str, Any]) -> dict[str, Any]:
    """Plain data as it is; what UTF-8 cannot hold is replaced."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        replaced: dict[str, Any] = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
        return replaced
    return data
