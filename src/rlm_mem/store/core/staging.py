"""Staging folders, where files are prepared before they are put in place; stale ones are removed."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from rlm_mem.store.core import files

STAGING = ".rlm-mem-backup-"
"""Name prefix of the staging folders beside a backup; the next backup removes those of killed processes."""
_MIN_AGE_SECONDS = 60.0  # seconds after which a folder without a lock counts as left by a killed process


def _locked(folder: Path) -> int | None:
    """Lock a folder and return the descriptor; None if it is in use, or cannot be locked on this system."""
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


@contextlib.contextmanager
def staging_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a staging folder, removed at the end unless renamed; those left by killed processes are removed first.

    A process locks its folder; the system releases the lock when the process ends.
    """
    for left in parent.glob(f"{glob.escape(prefix)}*"):
        with contextlib.suppress(OSError):
            # A younger one may not be locked yet.
            if (
                left.stat().st_mtime < time.time() - _MIN_AGE_SECONDS
                and (handle := _locked(left)) is not None
            ):
                shutil.rmtree(left, ignore_errors=True)
                os.close(handle)
    folder = parent / f"{prefix}{os.urandom(4).hex()}"
    files.make_folder(folder)
    handle = _locked(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)
