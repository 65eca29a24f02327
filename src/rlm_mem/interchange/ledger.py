"""What was imported already: unit by unit, so that an import goes on where it stopped and a changed note is noticed.

A unit is a file, a note, or a part of a conversation. The ledger is an append-only file of the namespace; without it
an import does its work again and finds every chunk there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from rlm_mem.chunk import check_chunk_id
from rlm_mem.errors import InputError
from rlm_mem.store.core.brain_files import LEDGER, BrainFiles

__all__ = ["Ledger"]


class Ledger:
    """Marks and chunk ids by unit.

    Args:
        stored: the files of the namespace.
        write: False only reads (dry run).

    Raises:
        StorageError: it cannot be read.
    """

    def __init__(self, stored: BrainFiles, *, write: bool = True) -> None:
        self._stored = stored
        self._write = write
        self._known: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._fresh: list[str] = []
        self._lines = 0
        self._load()

    def mark(self, unit: str) -> str | None:
        """The mark with which the unit was imported last, or None."""
        found = self._known.get(unit)
        return found[0] if found else None

    def ids(self, unit: str) -> tuple[str, ...]:
        """The chunks that the unit became."""
        found = self._known.get(unit)
        return found[1] if found else ()

    def note(self, unit: str, mark: str, ids: Sequence[str] = ()) -> None:
        """Remember a unit; it reaches the file at the next flush, which follows the commit of its chunks."""
        if self._write and self._known.get(unit) != (mark, tuple(ids)):
            self._known[unit] = (mark, tuple(ids))
            self._fresh.append(json.dumps([unit, mark, list(ids)]) + "\n")

    def flush(self) -> None:
        """Append what was noted; raises StorageError."""
        if not self._fresh:
            return
        self._lines += len(self._fresh)
        if self._lines > 1000 + 2 * len(self._known):
            lines = (json.dumps([unit, mark, list(ids)]) + "\n" for unit, (mark, ids) in self._known.items())
            self._stored.write(LEDGER, "".join(lines).encode(), durable=False)
            self._lines = len(self._known)
        else:
            self._stored.append(LEDGER, "".join(self._fresh).encode())
        self._fresh.clear()

    def _load(self) -> None:
        for line in (self._stored.read(LEDGER) or b"").decode("utf-8", "replace").splitlines():
            self._lines += 1
            try:
                unit, mark, ids = json.loads(line)
                self._known[str(unit)] = (str(mark), tuple(check_chunk_id(item) for item in ids))
            except (ValueError, TypeError, RecursionError, InputError):
                continue  # a line cut off by a crash: its unit is imported again, and found to be there
