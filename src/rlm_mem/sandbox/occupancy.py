"""Occupancy: a session is used by one thread at a time, and any other thread can end what it does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rlm_mem.errors import SessionBusy, SessionCancelled
from rlm_mem.sandbox.engine import Calls


class Occupancy:
    """Who uses a session, and whether that use was ended.

    Args:
        calls: the thread that calls host functions, which must not use the session that waits for them.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._in_use = threading.Lock()
        self._state = threading.Lock()
        self._user: int | None = None
        self._driven = False
        self._ended: SessionCancelled | None = None

    @contextmanager
    def use(self, what: str) -> Iterator[None]:
        """Use the session exclusively; raise at once if it is in use, since waiting could deadlock."""
        if not self._in_use.acquire(blocking=False):
            raise self.refusal(what)
        with self._state:
            self._user = threading.get_ident()
            if not self._driven:
                self._ended = None
        try:
            yield
        finally:
            with self._state:
                self._user = None
            self._in_use.release()

    @contextmanager
    def driven(self) -> Iterator[None]:
        """Let ``end`` also end what is between two programs while the block runs."""
        with self._state:
            self._driven, self._ended = True, None
        try:
            yield
        finally:
            self._driven = False

    def end(self, why: str) -> bool:
        """End the present use; return whether there is one."""
        with self._state:
            if self._user is None and not self._driven:
                return False
            self._ended = SessionCancelled(why)
        return True

    def check(self) -> None:
        """Raise SessionCancelled if the present use was ended."""
        if self._ended is not None:
            raise self._ended

    @property
    def inside(self) -> bool:
        """Whether the caller is a host function or a listener of the running program."""
        return self._calls.inside or self._user == threading.get_ident()

    def refusal(self, what: str) -> SessionBusy:
        """Return the error of a session that is in use and therefore cannot ``what``."""
        if self.inside:
            return SessionBusy(
                f"this session cannot {what} from within a function that its program called",
                hint="use another session inside host functions",
            )
        return SessionBusy(
            f"this session is already running a program, so it cannot {what}",
            hint="use one session per thread, or cancel() the program first",
        )
