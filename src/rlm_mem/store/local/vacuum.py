"""Frees unused space of an index, safely beside other processes; only derived and unfinished files are changed."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

from rlm_mem.errors import StorageError, StoreReadOnly
from rlm_mem.results import Progress
from rlm_mem.store.core import files
from rlm_mem.store.core.records import Vacuumed
from rlm_mem.store.local import schema
from rlm_mem.store.local.local_index import LocalIndex
from rlm_mem.store.local.queries import read_state

_UNFINISHED = re.compile(r"\..{1,255}\.\d{1,10}\.[0-9a-f]{1,32}\.tmp")
"""An unfinished file beside its place (``files.write_atomic``)."""
_MIN_AGE_NS = 60 * 10**9  # after which its process counts as killed


def vacuum_folder(index: LocalIndex, *, progress: Progress | None = None) -> Vacuumed:
    """Merge the deltas into the postings, remove unused snapshots and damaged indexes, and vacuum the SQLite index.

    Other processes wait while SQLite copies the index (about a second per 100 MB).

    Args:
        progress: called with (steps done, steps in all).

    Raises:
        StoreLocked: another process wrote for longer than ``store.lock_wait_seconds``.
        StoreReadOnly, StorageError: the index cannot be written.
    """
    if index.read_only:
        raise StoreReadOnly(f"the store {index.layout.base} was opened read-only")
    with files.translated(str(index.layout.unfinished)):
        index.sync(quick=True)  # an edit in the same clock tick is indexed by the next opening
    result = Vacuumed(_sizes(index.layout.index))
    connection = index.connection
    namespaces = index.queries.namespaces()
    steps = len(namespaces) + 3

    def report_progress(done: int) -> None:
        if progress is not None:
            progress(done, steps)

    with files.translated(str(index.layout.index)), schema.translated(index.layout.database):
        for done, (name, _) in enumerate(namespaces, 1):
            index.postings.of(name).pack(connection)
            report_progress(done)
        _remove_unused(index)
        report_progress(steps - 2)
        connection.execute("VACUUM")
        report_progress(steps - 1)
    report_progress(steps)
    result.after = _sizes(index.layout.index)
    return result


def _remove_unused(index: LocalIndex) -> None:
    """Remove snapshots that are not current, damaged indexes, and unfinished files of killed processes."""
    import shutil  # loads the libraries of archives, which opening does not need

    from rlm_mem.store.local.postings import folder_lock

    folder = index.layout.index / "postings"
    for of_namespace in sorted(folder.iterdir()) if folder.is_dir() else []:
        if not of_namespace.name.isdigit():
            continue
        with folder_lock(of_namespace, wait=False) as acquired:
            if not acquired:  # another process is building a new one, and removes the others afterwards
                continue
            state = read_state(index.connection, int(of_namespace.name))
            for snapshot in of_namespace.iterdir():
                if snapshot.is_dir() and (state is None or snapshot.name != state.generation):
                    shutil.rmtree(snapshot, ignore_errors=True)
    for damaged in index.layout.index.glob("index.sqlite*.damaged-*"):
        files.remove(damaged)
    long_ago = time.time_ns() - _MIN_AGE_NS
    with contextlib.suppress(StorageError):  # a folder that cannot be read, which is no reason not to go on
        for path in index.layout.own_files(_UNFINISHED):
            signature = files.signature(path)
            if signature is not None and signature.mtime_ns < long_ago:
                files.remove(path)


def _sizes(index: Path) -> dict[str, int]:
    sizes = {"index": 0, "postings": 0, "views": 0, "set aside": 0}
    for path in index.rglob("*"):
        signature = files.signature(path) if path.is_file() else None
        size = 0 if signature is None else signature.size
        if ".damaged-" in path.name:
            sizes["set aside"] += size
        elif path.name.startswith("index.sqlite"):
            sizes["index"] += size
        elif path.suffix == ".json" and path.parent == index:
            sizes["views"] += size
        else:
            sizes["postings"] += size
    return sizes
