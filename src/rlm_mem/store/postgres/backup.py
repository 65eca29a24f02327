"""Backing up namespaces of a database: copied out as of one snapshot, then packed like any brain folder."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_mem.errors import InputError
from rlm_mem.results import Progress
from rlm_mem.store.core import files
from rlm_mem.store.core.backup_archive import BackupInfo
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.copying import copy_namespace, store_within

if TYPE_CHECKING:
    from rlm_mem.store.postgres.backend import PostgresBackend

__all__ = ["back_up_namespaces"]


def back_up_namespaces(
    store: ChunkStore,
    backend: PostgresBackend,
    target: Path,
    *,
    only: str | None = None,
    progress: Progress | None = None,
    source: str = "postgresql",
) -> BackupInfo:
    """Write the namespaces of a database (``only`` this one) to the new file ``target``, as ``back_up`` says.

    They are copied, as they are in one snapshot, into a folder that is then packed like any brain folder: so a backup
    of either kind can be restored into either kind.
    """
    if target.exists():
        raise InputError(f"there is a file {target} already", hint="choose another name, or remove it first")
    files.make_folder(target.absolute().parent)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.absolute().parent))
    try:
        folder = scratch / "memory"
        names = [name for name, _ in backend.queries.namespaces() if only in (None, name)]
        _copy_out(store, backend, names, folder, progress)
        with ChunkStore(folder, config=store.config, namespace=names[0] if names else None) as copied:
            return copied.backend.back_up(copied, target, progress=progress, source=source)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _copy_out(
    store: ChunkStore, backend: PostgresBackend, names: list[str], folder: Path, progress: Progress | None
) -> None:
    with ExitStack() as snapshots:
        for name in names:
            snapshots.enter_context(backend.snapshot(name))
        _refuse_twins(store, names)
        for name in names:
            source = store_within(store, name)
            with ChunkStore(folder, config=store.config, namespace=name) as target:
                copy_namespace(source, target, progress=progress)


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
