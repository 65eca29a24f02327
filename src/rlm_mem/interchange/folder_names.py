"""Which folder of documents a folder is: the name under which it is recorded, in every clone and at every path.

A folder in the repository of the brain is named by its path there (``./docs``), one in another repository by the remote
and the path (``github.com/acme/app:docs``), any other by its absolute path (``config.stored_path``). A
file beside the record of a folder says if it is known under another name: that of an earlier version, or the one that a
person gave.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from shlex import quote

from rlm_mem.config import path_of_stored, stored_path
from rlm_mem.errors import ConflictError, StorageError
from rlm_mem.interchange.folder_record import (
    FolderRecord,
    is_of_another_machine,
    is_recorded,
    note_machine,
    note_same_folder,
    noted_as,
    on_this_machine,
    recorded_folders,
    same_folder,
)
from rlm_mem.interchange.repositories import Repository, repository_of
from rlm_mem.store.core.chunk_store import ChunkStore

_HERE = "./"


class FolderName:
    """The name of one folder in the records of one store.

    Args:
        root: the absolute path of the folder; also an attribute.
        known_as: the name that a person gave; None: it is found.

    Attributes:
        name: under which it is recorded.
        own: the name that it has if nothing else is known.
        is_new: whether nothing is recorded of it.
    """

    def __init__(self, store: ChunkStore, root: str, known_as: str | None = None) -> None:
        self.root, self._files = root, store.files
        self._around = _repository(_brain(store))
        self._owns = names = self._names()
        self.own = names[0]
        self.is_new, self._is_given = False, known_as is not None
        if known_as is not None:
            self.name = known_as if known_as in names else same_folder(self._files, known_as) or known_as
            return
        for name in names:
            found = self._noted(name) or (name if is_recorded(self._files, name) else None)
            if found is not None:
                self.name = found
                return
        self.name, self.is_new = self.own, True

    def _names(self) -> list[str]:
        """Return the names that the folder has by itself, the one that holds on most machines first."""
        real, names = os.path.realpath(self.root), list(dict.fromkeys((stored_path(self.root), self.root)))
        repository = _repository(real)
        if repository is None:
            return names
        path = Path(real).relative_to(repository.root).as_posix()
        within = "" if path == "." else path
        if self._around is not None and self._around.root == repository.root:
            return [_HERE + within, *names]
        with suppress(OSError):  # a configuration that cannot be read names no remote
            address = repository.address()
            return [f"{'/'.join(address)}:{within}", *names] if address else names
        return names

    @property
    def is_noted(self) -> bool:
        """Whether the folder is recognised by its name from now on, as far as this is known."""
        return (self._noted(self.own) or self.own) == self.name

    def note(self) -> None:
        """Write down the name, in a transaction, so that the folder is recognised."""
        here = on_this_machine(self.own) if self.place_is_of_another_machine else self.own
        note_same_folder(self._files, here, self.name)

    def note_machine(self) -> None:
        """Write down that a folder that is recorded by its place was synced on this machine; not as a change."""
        if path_of_stored(self.name) is not None and is_recorded(self._files, self.name):
            note_machine(self._files, self.name)

    def refuse_another_machine(self) -> None:
        """Raise ConflictError if the record is that of a folder at the same place on another machine.

        To be called if the sync would archive documents of it, or replace their texts.
        """
        if (
            not self._is_given
            and path_of_stored(self.name) is not None
            and is_of_another_machine(self._files, self.name)
        ):
            raise ConflictError(
                f"{self.root} was remembered on another machine, or before this one got its present name, and differs "
                "from what is remembered: if it is another folder, a sync would archive the documents of that one",
                hint="if it is the same folder, run this once: "
                f"rlm-mem remember --folder {quote(self.root)} --known-as {quote(self.name)}; else with a new name",
            )

    def _noted(self, name: str) -> str | None:
        """Return the name that a person gave to the folder, on this machine or on all."""
        return same_folder(self._files, on_this_machine(name)) or same_folder(self._files, name)

    @cached_property
    def place_is_of_another_machine(self) -> bool:
        """Whether a folder that is at the same place on another machine is recorded under that place."""
        others = (one for one in self._owns if one != self.name and is_recorded(self._files, one))
        return any(is_of_another_machine(self._files, one) for one in others)

    def refuse_taken(self) -> None:
        """Raise ConflictError if the record of this folder has become that of another one, which is on this machine."""
        for name in noted_as(self._files, self.name) if self.name in self._owns and not self.is_new else ():
            if name not in self._owns and self._is_here(name) and not self._is_at(name):
                raise ConflictError(
                    f"what is recorded of the folder {self.own} belongs to {name} now, so that syncing "
                    f"{self.root} would archive its documents",
                    hint=f"to remember {self.root} as well, give it a new name: rlm-mem remember --folder "
                    f"{quote(self.root)} --known-as NAME",
                )

    def refuse_known(self, digests: Collection[str]) -> None:
        """Raise ConflictError if most of these documents are recorded of a folder that is not on this machine."""
        wanted = set(digests)
        for name in recorded_folders(self._files) if wanted else ():
            if name == self.name or self._is_here(name):
                continue
            known = wanted.intersection(
                entry.digest for entry in FolderRecord(self._files, name).live().values()
            )
            if 2 * len(known) >= len(wanted):
                is_place = name.startswith((_HERE, "~")) or Path(name).is_absolute()
                raise ConflictError(
                    f"{len(known)} of the {len(wanted)} documents of {self.root} are remembered of the folder {name}"
                    + (", which is not there" if is_place else ""),
                    hint=f"if it is the same folder, give --known-as {quote(name)}, else --known-as {quote(self.own)}",
                )

    def moved_from(self, present: Mapping[str, str]) -> str | None:
        """Return the recorded folder whose place on this machine is gone and that has the same documents, if it is one.

        At least half of the documents of either folder must be in the other one, at the same path with the same text.

        Args:
            present: the digests of the documents of this folder, by path.
        """
        found = []
        for name in recorded_folders(self._files) if present else ():
            if path_of_stored(name) is None or name == self.name or self._is_here(name):
                continue
            if is_of_another_machine(self._files, name):  # where it may well be
                continue
            live = {path: one.digest for path, one in FolderRecord(self._files, name).live().items()}
            shared = len(present.items() & live.items())
            if shared and 2 * shared >= max(len(live), len(present)):
                found.append(name)
        return found[0] if len(found) == 1 else None

    def follow(self, name: str) -> None:
        """Continue the record of this name."""
        self.name, self.is_new = name, False

    def _is_at(self, name: str) -> bool:
        """Return whether a name is that of a place which is this folder, as after a link took the old place."""
        path = path_of_stored(name)
        return path is not None and os.path.realpath(path) == os.path.realpath(self.root)

    def _is_here(self, name: str) -> bool:
        if name.startswith(_HERE) and self._around is not None:
            return (self._around.root / name).is_dir()
        path = path_of_stored(name)
        return path is not None and os.path.isdir(path)  # noqa: PTH112 - Path.is_dir fails without access


def _brain(store: ChunkStore) -> str | None:
    """Return the folder of the store; None for a database."""
    try:
        return os.path.realpath(store.base_path)
    except StorageError:
        return None


def _repository(folder: str | None) -> Repository | None:
    """Return the repository of a folder; None if there is none, or none that can be read."""
    try:
        return None if folder is None else repository_of(Path(folder))
    except (OSError, ValueError):
        return None
