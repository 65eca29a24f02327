"""Backup, restore and vacuum of whichever kind of brain: a folder, or namespaces of a database.

A database is backed up by copying its namespaces, as they are in one snapshot, into a brain folder that is then packed
like any other: so a backup of either kind can be restored into either kind.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_mem.errors import CorruptStore, InputError
from rlm_mem.store.core import files
from rlm_mem.store.core.backup_archive import BackupInfo
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.copying import compare, copy_namespace
from rlm_mem.store.local.backup import back_up_folder
from rlm_mem.store.local.local_backend import LocalBackend
from rlm_mem.store.local.restore import Restored, restore_folder
from rlm_mem.store.local.vacuum import Vacuumed, vacuum_folder

if TYPE_CHECKING:
    from rlm_mem.store.postgres.backend import PostgresBackend

__all__ = ["back_up", "bring_back", "vacuum"]

Progress = Callable[[int, int], None]


def back_up(
    store: ChunkStore, target: Path, *, only: str | None = None, progress: Progress | None = None
) -> BackupInfo:
    """Write a whole brain to the new file ``target``.

    Args:
        only: of a database, this namespace and no other; a folder is always backed up whole.
        progress: called with (done, in all) of chunks being copied, then of files being packed.

    Raises:
        InputError: there is a file of that name; or two namespaces of a database have a chunk of the same id.
        StorageError: something cannot be read or written.
    """
    if isinstance(store.backend, LocalBackend):
        if only is not None:
            raise InputError(
                "a brain folder is backed up whole",
                hint="rlm-mem export, or rlm-mem copy into another folder, takes one namespace",
            )
        return back_up_folder(store, target, progress=progress)
    if target.exists():
        raise InputError(f"there is a file {target} already", hint="choose another name, or remove it first")
    files.make_folder(target.absolute().parent)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.absolute().parent))
    try:
        folder = scratch / "memory"
        names = [name for name, _ in store.backend.queries.namespaces() if only in (None, name)]
        _copy_out(store, names, folder, progress)
        with ChunkStore(folder, config=store.config, namespace=names[0] if names else None) as copied:
            return back_up_folder(copied, target, progress=progress, source="postgresql")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _copy_out(store: ChunkStore, names: list[str], folder: Path, progress: Progress | None) -> None:
    backend: PostgresBackend = store.backend  # type: ignore[assignment]  # the only kind that is no folder
    with ExitStack() as snapshots:
        for name in names:
            snapshots.enter_context(backend.snapshot(name))
        _refuse_twins(store, names)
        for name in names:
            source = _within(store, name)
            with ChunkStore(folder, config=store.config, namespace=name) as target:
                copy_namespace(source, target, progress=progress)


def _within(store: ChunkStore, namespace: str) -> ChunkStore:
    """The same store, as ``copy_namespace`` looks at it: another namespace of the same backend."""
    other = copy.copy(store)
    other.namespace = namespace
    return other


def _refuse_twins(store: ChunkStore, names: list[str]) -> None:
    """Ids are unique within a namespace of a database, and within the whole of a folder."""
    owner: dict[str, str] = {}
    for name in names if len(names) > 1 else []:
        after = 0
        while page := store.backend.queries.states(name, after):
            for state in page:
                first = owner.setdefault(state.id, name)
                if first != name:
                    raise InputError(
                        f"the namespaces {first} and {name} both have a chunk {state.id}, and one folder cannot",
                        hint="back them up one by one: --namespace NAME",
                    )
            after = page[-1].doc


def bring_back(
    backup: Path, place: Path | str, *, replace: bool = False, progress: Progress | None = None
) -> Restored:
    """Restore a backup of either kind into a brain folder, or into a database.

    Args:
        place: the folder, or the DSN.
        replace: also where there are memories: a folder is renamed and stays; namespaces of a database are first
            backed up to a file beside ``backup``. In a database each namespace is restored in one transaction.

    Raises:
        InputError: ``backup`` is none, or there are memories and ``replace`` is False.
        CorruptStore: the backup is damaged. StorageError: it cannot be written.
    """
    if isinstance(place, Path):
        return restore_folder(backup, place, replace=replace, progress=progress)
    scratch = Path(tempfile.mkdtemp(prefix="rlm-mem-restore-"))
    try:
        restored = restore_folder(backup, scratch / "brain", progress=progress)
        names = restored.info.namespaces
        with ChunkStore(place) as target:
            restored.kept = _set_aside(target, names, backup, replace=replace)
            for name in names:
                _copy_in(scratch / "brain" / "memory", _within(target, name), progress)
        restored.brain = Path()
        return restored
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _set_aside(target: ChunkStore, names: list[str], backup: Path, *, replace: bool) -> Path | None:
    held = [name for name, _ in target.backend.queries.namespaces() if name in names and _holds(target, name)]
    if not held:
        return None
    if not replace:
        raise InputError(
            f"there are memories in {', '.join(held)} already",
            hint="restore into another database, or say --replace: what is there is backed up to a file first",
        )
    kept = backup.absolute().with_name(f"before-restore-{time.strftime('%Y%m%d-%H%M%S')}.tar.gz")
    back_up(target, kept)
    return kept


def _holds(store: ChunkStore, namespace: str) -> bool:
    return bool(store.backend.queries.states(namespace, 0, 1))


def _copy_in(folder: Path, target: ChunkStore, progress: Progress | None) -> None:
    with ChunkStore(folder, config=target.config, namespace=target.namespace) as source:
        with target.backend.transaction(target.namespace):
            copy_namespace(source, target, overwrite=True, mirror=True, progress=progress)
        # What the audit log told of memories that were replaced stays told.
        differences = [one for one in compare(source, target) if one.what != "audit log"]
        if differences:
            raise CorruptStore(
                f"{target.namespace}: {len(differences)} differences after restoring, the first: "
                f"{differences[0].what} {differences[0].message}",
                hint="restore again",
            )


def vacuum(store: ChunkStore, *, progress: Progress | None = None) -> Vacuumed:
    """Give back room that an index takes without need: see ``vacuum_folder``; on a database, VACUUM of its tables."""
    if isinstance(store.backend, LocalBackend):
        return vacuum_folder(store.backend, progress=progress)
    from rlm_mem.store.postgres.vacuum import vacuum_tables

    backend: PostgresBackend = store.backend  # type: ignore[assignment]  # the only kind that is no folder
    before, after = vacuum_tables(backend, store.namespace, progress)
    return Vacuumed(before, after)
