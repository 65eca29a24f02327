"""What can be said of a store's state at a glance, at a cost that does not grow with it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_mem.store.events import parse_event
from rlm_mem.store.layout import Layout

if TYPE_CHECKING:
    from rlm_mem.store.api import ChunkStore

__all__ = ["Vitals", "last_event", "vitals"]

TAIL_BYTES = 262_144
"""Of the audit log that ``last_event`` looks at: some thousand lines."""


@dataclass(frozen=True)
class Vitals:
    """Counts that are 0 in a sound store at rest.

    Attributes:
        unreadable_files: chunk files that did not validate when last looked at.
        unfinished_files: files on their way in or out: of writes at work, or of a killed process.
        unsaved_reads: chunks whose access count is not in their file yet (the next checkpoint writes it).
    """

    unreadable_files: int = 0
    unfinished_files: int = 0
    unsaved_reads: int = 0


def vitals(store: ChunkStore) -> Vitals:
    """Look at the state of a local store; the whole check is ``rlm_mem.store.integrity.check``."""
    base = Path(store.base_path)
    flush = getattr(store.backend, "flush_reads", None)
    if flush is not None:
        flush(wait=False)  # reads that this process holds back are not in the index yet
    connection = getattr(store.backend, "connection", None)
    unsaved = 0
    if connection is not None:
        unsaved = connection.execute("SELECT count(*) FROM chunks WHERE access_unsaved = 1").fetchone()[0]
    try:
        unfinished = sum(1 for _ in Layout(base).unfinished.iterdir())
    except OSError:  # no such folder, or somebody else's: nothing that could be unfinished here
        unfinished = 0
    return Vitals(int(store.backend.figures().get("unreadable_files", 0)), unfinished, int(unsaved))


def last_event(store: ChunkStore, operations: frozenset[str]) -> dict[str, Any] | None:
    """The latest line of the audit log, of the store's namespace and of these operations.

    Only the end of the log is read; None where it holds none.
    """
    folder = Layout(Path(store.base_path)).log
    months = sorted(folder.glob("????-??.jsonl"), reverse=True)[:2] if folder.is_dir() else []
    for path in months:
        for line in reversed(_tail(path)):
            event = parse_event(line)
            if (
                event is not None
                and event.get("op") in operations
                and event.get("ns", store.namespace) == store.namespace
            ):
                return event
    return None


def _tail(path: Path) -> deque[bytes]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            lines = deque(file.read().splitlines())
    except OSError:  # rotated away, or not ours to read: no event is known then
        return deque()
    if size > TAIL_BYTES and lines:
        lines.popleft()  # the tail begins in the middle of a line
    return lines
