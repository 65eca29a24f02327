"""Handles: open host-driven recalls under names that the server mints and the caller passes back."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlm_mem.errors import NotFoundError

if TYPE_CHECKING:
    from rlm_mem.recall.host_session import RecallSession

__all__ = ["Handles"]


@dataclass
class _Open:
    session: RecallSession
    used: float
    busy: int = 0


class Handles:
    """Open recalls by handle; safe for several threads.

    A handle that nobody used for a while ends, and so does the one unused for longest when there are too many: a
    client that forgets to finish costs a bounded amount.

    Args:
        limit: most handles at a time.
        idle_seconds: how long a handle lives without being used.
        clock: seconds, monotonic.
    """

    def __init__(
        self, limit: int = 16, idle_seconds: float = 1800.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = limit
        self.idle_seconds = idle_seconds
        self._clock = clock
        self._open: dict[str, _Open] = {}
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, session: RecallSession) -> str:
        """Mint a handle for an open recall."""
        handle = f"recall-{secrets.token_hex(8)}"
        with self._guard:
            ended = self._expired()
            while len(self._open) >= self.limit:
                idle = [name for name, held in self._open.items() if not held.busy] or list(self._open)
                # Those that have their answer first, then the one unused for longest.
                ended.append(
                    self._open.pop(
                        min(idle, key=lambda n: (self._open[n].session.result is None, self._open[n].used))
                    )
                )
            self._open[handle] = _Open(session, self._clock())
        for held in ended:
            held.session.close()
        return handle

    def get(self, handle: str) -> RecallSession:
        """The recall behind a handle, which thereby counts as used.

        Raises:
            NotFoundError: unknown, expired, or displaced by newer ones.
        """
        with self._guard:
            ended = self._expired()
            held = self._open.get(handle)
            if held is not None:
                held.used = self._clock()
        for old in ended:
            old.session.close()
        if held is None:
            raise NotFoundError(
                f"there is no open recall {handle!r:.60}",
                hint=f"Call recall_open again; a handle ends after {self.idle_seconds / 60:.0f} minutes without use.",
            )
        return held.session

    def working(self, handle: str, change: int) -> None:
        """Count programs that run under a handle (+1, -1), so that it is not displaced meanwhile."""
        with self._guard:
            held = self._open.get(handle)
            if held is not None:
                held.busy += change
                held.used = self._clock()

    def close(self) -> None:
        """End every open recall."""
        with self._guard:
            ended, self._open = list(self._open.values()), {}
        for held in ended:
            held.session.close()

    def _expired(self) -> list[_Open]:
        now = self._clock()
        old = [
            name for name, held in self._open.items() if not held.busy and now - held.used > self.idle_seconds
        ]
        return [self._open.pop(name) for name in old]
