"""Folders in which something is prepared before it is put in place; what killed processes left of them is removed."""

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
"""Prefix of the folders, beside a backup, in which it is made; the next backup removes those of killed processes."""
_SETTLED = 60.0  # seconds after which a folder without a lock has been left by a killed process


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the lock on a folder; None where it is in use, or cannot be locked on this system."""
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
def workplace(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder to prepare something in, removed at the end unless it was renamed; those of killed processes go first.

    A process holds a lock on its folder, which the system releases when the process ends.
    """
    for left in parent.glob(f"{glob.escape(prefix)}*"):
        with contextlib.suppress(OSError):
            # A younger one may not be locked yet.
            if left.stat().st_mtime < time.time() - _SETTLED and (handle := _locked(left)) is not None:
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
