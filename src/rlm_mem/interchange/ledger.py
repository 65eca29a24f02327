"""What was imported already: unit by unit, so that an import goes on where it stopped and a changed note is noticed.

A unit is a file, a note, or a part of a conversation. The ledger is an append-only file in the store's folder,
``imports/NAMESPACE.jsonl``; without it an import does its work again and finds every chunk there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from rlm_mem.chunk import check_chunk_id
from rlm_mem.errors import InputError, StorageError

__all__ = ["Ledger"]


class Ledger:
    """Marks and chunk ids by unit.

    Args:
        path: its file; None keeps nothing.
        write: False only reads (dry run).
    """

    def __init__(self, path: Path | None, *, write: bool = True) -> None:
        self._path = path
        self._write = write and path is not None
        self._known: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._fresh: list[str] = []
        self._lines = 0
        if path is not None:
            self._load(path)

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
        if not self._fresh or self._path is None:
            return
        self._lines += len(self._fresh)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._lines > 1000 + 2 * len(self._known):
                self._rewrite(self._path)
            else:
                with self._path.open("a", encoding="utf-8") as handle:
                    handle.writelines(self._fresh)
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror}") from None
        self._fresh.clear()

    def _rewrite(self, path: Path) -> None:
        temporary = path.with_suffix(".tmp")
        with temporary.open("w", encoding="utf-8") as handle:
            handle.writelines(
                json.dumps([unit, mark, list(ids)]) + "\n" for unit, (mark, ids) in self._known.items()
            )
        os.replace(temporary, path)
        self._lines = len(self._known)

    def _load(self, path: Path) -> None:
        try:
            with path.open(encoding="utf-8", errors="replace") as handle:
                for line in handle:
                    self._lines += 1
                    try:
                        unit, mark, ids = json.loads(line)
                        self._known[str(unit)] = (str(mark), tuple(check_chunk_id(item) for item in ids))
                    except (ValueError, TypeError, InputError):
                        continue  # a line cut off by a crash: its unit is imported again, and found to be there
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error.strerror}") from None
