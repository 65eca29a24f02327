"""Restores a brain from a backup, verified and completely or not at all.

The files are unpacked beside the target, compared with the manifest and indexed; only then they are renamed into
place. An existing folder is kept under another name.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from rlm_mem.config import Config
from rlm_mem.errors import CorruptStore, InputError, StorageError
from rlm_mem.results import Progress
from rlm_mem.store.core import files
from rlm_mem.store.core.backup_archive import BackupInfo, HashingReader, read_backup, staging_folder

_BLOCK = 1 << 20


@dataclass
class RestoreReport:
    """The restored brain; ``kept`` is the new path of the former brain, if there was one."""

    info: BackupInfo
    brain: Path
    chunks: int
    unreadable: int
    kept: Path | None = None


def restore_folder(
    backup: Path, brain: Path, *, replace: bool = False, progress: Progress | None = None
) -> RestoreReport:
    """Restore the brain of the backup as the folder ``brain``.

    Args:
        backup: a file that ``back_up_folder`` wrote, in this or an earlier version.
        brain: a folder that does not exist, or is empty; or a link to a folder, which is restored where it is.
        replace: restore even if the folder is not empty; its content is kept as ``NAME.before-restore-TIME``.
        progress: called with (files unpacked, files in all), then (chunks read, chunks in all).

    Raises:
        InputError: ``backup`` is not a backup, or ``brain`` is not empty.
        CorruptStore: the backup is damaged. StorageError: ``brain`` cannot be written. In both cases nothing was
            changed.
    """
    brain = brain.resolve() if brain.is_symlink() and brain.is_dir() else brain.absolute()
    if not backup.exists():
        raise InputError(f"there is no file {backup}")
    if _is_occupied(brain) and not replace:
        raise InputError(
            f"{brain} exists already",
            hint="restore into another folder (rlm-mem --brain FOLDER store restore FILE), "
            "or use --replace, which renames the present one",
        )
    files.make_folder(brain.parent)
    with staging_folder(brain.parent, f".{brain.name}.restoring-") as fresh:
        info = _unpack(backup, fresh, progress)
        chunks, unreadable = _build_index(fresh, progress)
        if chunks + unreadable < info.chunks:
            raise CorruptStore(f"{backup} lists {info.chunks} chunks, but {chunks} were found")
        kept = _put_in_place(fresh, brain)
    return RestoreReport(info, brain, chunks, unreadable, kept)


def _is_occupied(place: Path) -> bool:
    with files.translated(str(place)):
        return any(place.iterdir()) if place.is_dir() else place.exists() or place.is_symlink()


def _unpack(backup: Path, fresh: Path, progress: Progress | None) -> BackupInfo:
    made = {fresh}

    def keep(name: str, content: HashingReader, mtime: float) -> None:
        path = fresh / name
        try:
            for folder in reversed(list(takewhile(lambda one: one not in made, path.parents))):
                folder.mkdir()
                made.add(folder)
            file = path.open("xb")
        except FileExistsError as error:
            raise StorageError(
                f"{backup} has {name} and another file or folder whose name differs only in case, and this file "
                "system is case-insensitive",
                hint="restore it on another file system",
            ) from error
        with file:
            while block := content.read(_BLOCK):
                file.write(block)
        os.utime(path, (mtime, mtime))

    return read_backup(backup, keep, progress)


def _build_index(brain: Path, progress: Progress | None) -> tuple[int, int]:
    """Build the index; return the number of chunks, and of unreadable files (backed up as they were)."""
    from rlm_mem.store.local.local_backend import LocalBackend

    backend = LocalBackend(brain / "memory", Config.load(brain))
    try:
        backend.sync(full=True, progress=progress)
        backend.checkpoint()
        chunks = int(backend.connection.execute("SELECT count(*) FROM chunks").fetchone()[0])
        return chunks, len(backend.unreadable())
    finally:
        backend.close()


def _put_in_place(fresh: Path, brain: Path) -> Path | None:
    files.sync_files([path for path in fresh.rglob("*") if path.is_file()])
    kept: Path | None = None
    with files.translated(str(brain)):
        if _is_occupied(brain):
            kept = brain.with_name(
                f"{brain.name}.before-restore-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
            )
            brain.rename(kept)
        elif brain.is_dir():
            brain.rmdir()
        try:
            fresh.rename(brain)
        except OSError:
            if kept is not None:
                kept.rename(brain)
            raise
        files.sync_folder(brain.parent)
    return kept
