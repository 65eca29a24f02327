"""Backs up a brain folder during concurrent writes: the committed state of one moment, in one file.

Chunk files are never changed in place, so a hard link preserves a file's content during later writes. All files are
first linked without a lock. Files written meanwhile are linked again until few are left, and those are linked under
the write lock, which is released right after. The links are packed after the lock is released.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_mem.chunk import format_time
from rlm_mem.errors import InputError, StoreReadOnly
from rlm_mem.results import Progress
from rlm_mem.store.core import files
from rlm_mem.store.core.backup_archive import (
    BackupInfo,
    abandoned,
    can_be_packed,
    packing,
    read_backup,
    staging_folder,
)
from rlm_mem.store.core.brain_files import OF_BRAIN, owned_by
from rlm_mem.store.core.contents import owners
from rlm_mem.store.local.local_index import LocalIndex
from rlm_mem.store.local.schema import in_pages
from rlm_mem.text.secrets import find_secrets, hide

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

STAGING = ".backup-"
"""Name prefix of the folder with the hard links of a backup in progress."""
_UNKNOWN = files.Signature(-1, -1, -1)
_ROUNDS = 5
_FEW = 50
_TOP_FILES = ("config.toml", ".gitignore", ".gitattributes")
_TOP = dict.fromkeys(("memory", "namespaces", "archive", *owned_by("namespace"), *OF_BRAIN))
_DERIVED = ("memory/index",)
_OF_CHUNKS = ("memory/chunks", "memory/archive/versions")
_GROWING = (".jsonl",)  # appended to in place: only their length under the write lock is packed


def back_up_folder(
    store: ChunkStore,
    index: LocalIndex,
    target: Path,
    *,
    progress: Progress | None = None,
    source: str = "local",
) -> BackupInfo:
    """Write a backup of the brain around ``store``, all namespaces, to the new file ``target``.

    The index, which can be rebuilt from the files, and anything that looks like a key in ``config.toml`` are left
    out.

    Args:
        index: the store's index, after all its access counts have been written to the chunk files.
        progress: called with (files packed, files in all).
        source: where the folder was copied from, for the description.

    Returns:
        a description of the file's contents, after the file was read back and compared.

    Raises:
        InputError: a file of that name exists, or the store is not in a brain folder.
        StorageError: the file cannot be written, or the store was opened read-only.
    """
    from importlib.metadata import version

    if index.read_only:
        raise StoreReadOnly(
            f"{index.layout.base} was opened read-only: it cannot be locked for a consistent snapshot",
            hint="copy the folder while no program writes to it",
        )
    if index.layout.base.name != "memory":
        raise InputError(
            f"{index.layout.base} is not the store of a brain folder: its chunks are not in a folder called memory",
            hint="give the folder that contains memory/",
        )
    brain = index.layout.base.parent
    with staging_folder(brain, STAGING) as staging:
        stage = _Stage(index, brain, staging, target)
        stage.link_all()
        stage.catch_up()
        namespaces = owners(store.released())
        with store.backend.transaction(store.namespace):
            stage.link_changes()
            made_at = format_time(store.clock())
            namespaces += [name for name, _ in index.queries.namespaces() if name not in namespaces]
        info = BackupInfo(
            made_at, version("rlm-mem"), source, stage.chunks, namespaces, left_out=stage.named_left_out()
        )
        staged = sorted(stage.staged)
        info.files = len(staged)
        with packing(target, info) as packer:
            info.files = 0
            for done, name in enumerate(staged, 1):
                path = staging / name
                with path.open("rb") as content:
                    stat = os.fstat(content.fileno())
                    packer.add(name, content, stage.lengths.get(name, stat.st_size), stat.st_mtime)
                if progress is not None and (done % 100 == 0 or done == len(staged)):
                    progress(done, len(staged))
    return read_backup(target)


def abandoned_backups(base: Path) -> Iterator[Path]:
    """Yield the folders of links that killed backups left in the brain folder of a store."""
    return abandoned(base.parent, STAGING) if base.name == "memory" else iter(())


def remove_abandoned_backups(base: Path) -> None:
    """Remove the folders of ``abandoned_backups``."""
    for left in abandoned_backups(base):
        shutil.rmtree(left, ignore_errors=True)


class _Stage:
    """Hard links to the files of a backup, the packed lengths of growing files, and the names that are left out."""

    def __init__(self, index: LocalIndex, brain: Path, staging: Path, target: Path) -> None:
        self._index = index
        self._brain = brain
        self._staging = staging
        self._target = target.absolute()
        self.staged: dict[str, files.Signature] = {}
        self.lengths: dict[str, int] = {}
        self.left_out: set[str] = set()
        self.chunks = 0  # number of chunks whose files are linked
        self._names: dict[str, set[str]] = {}  # chunk id → names of its file and its versions

    # --- passes ----------------------------------------------------------------------------------------

    def link_all(self) -> None:
        """Link every file as it is now."""
        for name in self._walk():
            self._link(name)

    def catch_up(self) -> None:
        """Link files again that changed since, until few such files are left."""
        for _ in range(_ROUNDS):
            if self._relink_outdated() <= _FEW:
                return

    def link_changes(self) -> None:
        """Bring the links of chunks and of all other files up to date under the write lock."""
        self._relink_outdated()
        beside = set(self._walk(chunks=False))
        for name in [name for name in self.staged if _chunk_of(name) is None and name not in beside]:
            self._drop(name)
        for name in beside:
            if files.signature(self._brain / name) != self.staged.get(name):
                self._link(name)
        for name in self.staged:
            if name.endswith(_GROWING):
                self.lengths[name] = _complete_size(self._staging / name)

    def _relink_outdated(self) -> int:
        """Bring the links of chunks in line with the index; return how many were out of date.

        The index distinguishes a finished write from one that is in progress or was undone.
        """
        count, indexed = 0, set()
        self.chunks = 0
        for chunk_id, path, size, mtime_ns, inode in in_pages(
            self._index.connection, "SELECT doc, id, path, size, mtime_ns, inode FROM chunks"
        ):
            indexed.add(chunk_id)
            # More than one place: the chunk was moved to or from the archive while the folders were walked.
            places = sum("/versions/" not in name for name in self._names.get(chunk_id, ()))
            if places != 1 or self.staged.get(f"memory/{path}") != files.Signature(size, mtime_ns, inode):
                self._relink(chunk_id, path)
                count += 1
            self.chunks += f"memory/{path}" in self.staged
        for chunk_id in [chunk_id for chunk_id in self._names if chunk_id not in indexed]:
            for name in [name for name in self._names[chunk_id] if not (self._brain / name).exists()]:
                self._drop(name)
                count += 1
        return count

    def named_left_out(self) -> list[str]:
        """Return the names that the backup omits; a chunk behind a linked file or folder is not omitted.

        A linked ``archive`` is: more than chunks is in it.
        """
        chunks = [one for one in self.staged if _chunk_of(one) is not None]
        months = {one.rpartition("/")[0] for one in chunks if one.startswith("memory/chunks/")}
        return sorted(self.left_out.difference(chunks, months, ["memory/chunks"]))

    # --- single files ----------------------------------------------------------------------------------

    def _relink(self, chunk_id: str, path: str) -> None:
        versions = self._index.layout.versions(chunk_id)
        wanted = {f"memory/{path}"}
        wanted |= set(files.names_below(versions, f"memory/archive/versions/{chunk_id}/", links=False))
        for name in self._names.get(chunk_id, set()) - wanted:
            # If it exists, the chunk has two files, which `check` reports.
            if not (self._brain / name).exists():
                self._drop(name)
        for name in wanted:
            if files.signature(self._brain / name) != self.staged.get(name):
                self._link(name)

    def _walk(self, *, chunks: bool = True) -> Iterator[str]:
        """Yield the names of all files that belong in a backup, without symbolic links and hidden folders."""
        for name in _TOP_FILES:
            if (self._brain / name).is_symlink():
                self.left_out.add(name)
            elif (self._brain / name).is_file():
                yield name
        left_out = (*_DERIVED, *(() if chunks else _OF_CHUNKS))
        for folder in _TOP:
            if folder != "memory" and (self._brain / folder).is_symlink():
                self.left_out.add(folder)
                continue
            for name in files.names_below(
                self._brain / folder, f"{folder}/", links=False, left_out=left_out, skipped=self.left_out
            ):
                if self._brain / name != self._target and (chunks or _chunk_of(name) is None):
                    yield name

    def _link(self, name: str) -> None:
        source, second = self._brain / name, self._staging / name
        self._drop(name)
        if not can_be_packed(name):
            self.left_out.add(files.shown_name(name))
            return
        try:
            before = files.signature(source)
            if name == "config.toml":
                _copy_masked(source, second)
            else:
                files.link_or_copy(source, second)
        except FileNotFoundError:
            return  # deleted after it was listed: the next pass handles it
        except OSError as error:
            files.translate(error, f"a copy of {name} for the backup")
        linked = files.signature(second)
        if before is None or linked is None:
            return
        # A copy, not a link: check that the file did not change while it was copied.
        if linked.inode != before.inode and second.stat().st_nlink < 2:
            linked = before if files.signature(source) == before else _UNKNOWN
        self.staged[name] = linked
        chunk_id = _chunk_of(name)
        if chunk_id is not None:
            self._names.setdefault(chunk_id, set()).add(name)

    def _drop(self, name: str) -> None:
        if self.staged.pop(name, None) is None:
            return
        files.remove(self._staging / name)
        chunk_id = _chunk_of(name)
        if chunk_id is not None:
            self._names[chunk_id].discard(name)


def _chunk_of(name: str) -> str | None:
    """Return the id of the chunk whose file or former version has this name; None for other files."""
    parts = name.split("/")
    if parts[0] != "memory" or not parts[-1].endswith(".json"):
        return None
    if len(parts) == 5 and parts[1:3] == ["archive", "versions"]:
        return parts[3]
    if (len(parts) == 4 and parts[1] == "chunks") or (len(parts) == 3 and parts[1] == "archive"):
        return parts[-1].removesuffix(".json")
    return None


def _complete_size(path: Path) -> int:
    """Return the size of a file in bytes, up to the end of its last complete line."""
    size = path.stat().st_size
    with path.open("rb") as file:
        end = size
        while end > 0:
            start = max(0, end - 65_536)
            file.seek(start)
            last_newline = file.read(end - start).rfind(b"\n")
            if last_newline >= 0:
                return start + last_newline + 1
            end = start
    return 0


def _copy_masked(source: Path, target: Path) -> None:
    """Copy settings, masking any model keys that were written there."""
    text = source.read_text(encoding="utf-8", errors="surrogateescape")
    kept = hide(text, find_secrets(text, pii=False))
    target.write_text(kept, encoding="utf-8", errors="surrogateescape")
