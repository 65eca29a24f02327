"""Watching a folder of notes: what is new or changed is imported, again and again, by looking at file times."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_mem.errors import InputError, StoreLocked
from rlm_mem.interchange.importing import import_source
from rlm_mem.interchange.places import Entry, open_place
from rlm_mem.interchange.report import ImportReport

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["watch"]

_SETTLED = 1.0
"""Seconds that a file must have been left alone: an editor may be in the middle of writing it."""


def watch(
    store: ChunkStore,
    folder: str | Path,
    *,
    seconds: float = 2.0,
    on_report: Callable[[ImportReport], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    sleep: Callable[[float], object] = time.sleep,
    settled: float = _SETTLED,
) -> None:
    """Import a folder now and whenever files in it are new or changed, until ``stop`` says so.

    A changed note replaces what it was: chunks whose text is gone from it move to the archive. A note that is
    deleted stays remembered.

    Args:
        seconds: between two looks.
        on_report: called after each import that had something to read.
        stop: asked after each look.
        sleep: waits; for tests.
        settled: seconds since its last change after which a file is read.

    Raises:
        InputError: ``folder`` is no folder. Others as ``import_source``.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: only a folder can be watched")
    seen: dict[str, str] | None = None
    while True:
        now, young = _marks(folder, settled)
        if seen is None or (now != seen and not young):
            try:
                report = import_source(store, folder)
            except StoreLocked:
                pass  # somebody writes for long: the next look finds the same changes
            else:
                changed = bool(report.created or report.updated or report.archived or report.problem_count)
                if on_report and (seen is None or changed):
                    on_report(report)
                seen = now
        if stop():
            return
        sleep(seconds)


def _marks(folder: Path, settled: float) -> tuple[dict[str, str], bool]:
    """The mark of every file, and whether one of them was changed a moment ago."""
    place = open_place(folder)
    try:
        entries = [entry for entry in place.entries() if isinstance(entry, Entry)]
    finally:
        place.close()
    recent = time.time() - settled
    young = any(recent < entry.modified <= time.time() for entry in entries)
    return {entry.name: entry.mark for entry in entries}, young
