"""Backup, restore and vacuum of a brain, in a folder or in namespaces of a database."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from rlm_mem.dsn import checked_path
from rlm_mem.errors import CorruptStore, InputError
from rlm_mem.results import Progress
from rlm_mem.store.core.backup_archive import BackupInfo
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.copying import compare, copy_namespace
from rlm_mem.store.core.records import Vacuumed
from rlm_mem.store.local.restore import RestoreReport, restore_folder


def back_up(
    store: ChunkStore, target: Path, *, only: str | None = None, progress: Progress | None = None
) -> BackupInfo:
    """Write a backup of a whole brain to the new file ``target``.

    Args:
        only: for a database, back up only this namespace; a folder is always backed up whole.
        progress: called with (done, in all) of chunks being copied, then of files being packed.

    Raises:
        InputError: ``target`` exists already; or two namespaces of a database have a chunk of the same id.
        StorageError: something cannot be read or written.
    """
    target = checked_path(target)
    if target.exists():
        raise InputError(f"the file {target} exists already", hint="choose another name, or remove it first")
    return store.backend.back_up(store, target, only=only, progress=progress)


def restore_backup(
    backup: Path, place: Path | str, *, replace: bool = False, progress: Progress | None = None
) -> RestoreReport:
    """Restore a backup of either kind to a brain folder, or to a database.

    Args:
        place: the folder, or the DSN.
        replace: restore even if there are memories: a folder is renamed and kept; namespaces of a database are first
            backed up to a file beside ``backup``. In a database each namespace is restored in one transaction.

    Raises:
        InputError: ``backup`` is not a backup, or there are memories and ``replace`` is False.
        CorruptStore: the backup is damaged. StorageError: it cannot be written.
    """
    if isinstance(place, Path):
        return restore_folder(backup, place, replace=replace, progress=progress)
    with TemporaryDirectory(prefix="rlm-mem-restore-", ignore_cleanup_errors=True) as scratch:
        restored = restore_folder(backup, Path(scratch, "brain"), progress=progress)
        names = restored.info.namespaces
        with ChunkStore(place) as target:
            restored.kept = _back_up_existing(target, names, backup, replace=replace)
            for name in names:
                confined = target.confined_to(name, actor=target.actor)
                _copy_in(Path(scratch, "brain", "memory"), confined, progress)
        restored.brain = Path()
        return restored


def _back_up_existing(target: ChunkStore, names: list[str], backup: Path, *, replace: bool) -> Path | None:
    """Back up the database if a namespace to restore has memories; refuse unless ``replace``."""
    occupied = [
        name
        for name, _ in target.backend.queries.namespaces()
        if name in names and target.backend.queries.states(name, 0, 1)
    ]
    if not occupied:
        return None
    if not replace:
        raise InputError(
            f"there are already memories in {', '.join(occupied)}",
            hint="restore into another database, or use --replace, which backs up the present memories to a file first",
        )
    kept = backup.absolute().with_name(f"before-restore-{time.strftime('%Y%m%d-%H%M%S')}.tar.gz")
    back_up(target, kept)
    return kept


def _copy_in(folder: Path, target: ChunkStore, progress: Progress | None) -> None:
    """Make a namespace of a database equal to the unpacked backup, in one transaction, and compare the two."""
    with ChunkStore(folder, config=target.config, namespace=target.namespace) as source:
        with target.backend.transaction(target.namespace):
            copy_namespace(source, target, overwrite=True, mirror=True, progress=progress)
        # The audit log keeps its events about memories that were replaced.
        differences = [one for one in compare(source, target) if one.what != "audit log"]
        if differences:
            raise CorruptStore(
                f"{target.namespace}: {len(differences)} differences after restoring, the first: "
                f"{differences[0].what} {differences[0].message}",
                hint="restore again",
            )


def vacuum(store: ChunkStore, *, progress: Progress | None = None) -> Vacuumed:
    """Free the space that the index does not need; for a database, run VACUUM on its tables."""
    return store.backend.vacuum(store.namespace, progress)
