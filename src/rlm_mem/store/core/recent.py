"""A bounded cache of the entries used last, for what a backend keeps by namespace."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """A cache of at most ``most`` entries, which drops the least recently used one; thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[_Key, _Value] = {}  # the least recently used one first
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: _Key) -> _Value | None:
        """Return an entry, or None."""
        with self._lock:
            found = self._entries.pop(key, None)
            if found is not None:
                self._entries[key] = found
            return found

    def put(self, key: _Key, value: _Value) -> None:
        """Add or replace an entry; the least recently used one makes room for it."""
        with self._lock:
            self._entries.pop(key, None)
            self._entries[key] = value
            if len(self._entries) > self._most:
                del self._entries[next(iter(self._entries))]
