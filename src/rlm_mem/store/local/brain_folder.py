"""The brain files in a folder: tiered memories, trajectories, persona and logs, with the transaction that changes them.

The layout is specified in docs/spec/store-layout.md.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec import structs

from rlm_mem.errors import NamespaceError, StorageError, StoreReadOnly
from rlm_mem.store.core import files
from rlm_mem.store.core.brain_files import (
    FOLDERS,
    JOURNAL,
    LEDGER,
    OF_STORE,
    RECORDS,
    Runs,
    checked_name,
    folder_of,
    name_at,
    namespace_of_run,
    note_former,
    place_of,
    recording,
    separate_parts,
)
from rlm_mem.store.core.changes import WriteTransaction, utc_now
from rlm_mem.store.core.files import Signature
from rlm_mem.store.local.folder import Layout

if TYPE_CHECKING:
    from rlm_mem.store.local.transaction import Transaction

_SHARED = ("imports", "index", "log", "trajectories")
_NAMESPACE_FOLDERS = sorted(
    one for one in FOLDERS if one.rpartition("/")[0] not in FOLDERS and one not in _SHARED
)
"""Folders with files of one namespace, or of the brain."""
_OF_DEFAULT = tuple(one for one in _NAMESPACE_FOLDERS if FOLDERS[one].owner == "namespace")
"""Folders of the brain with files of the namespace ``default``."""
_UNFINISHED = ".unfinished"
_ARCHIVE_TEMP_FOLDERS = ("pending", "transitions")


class LocalBrainFiles:
    """`BrainFiles` in a brain folder and in the folder of its store; the protocol documents the methods.

    Args:
        base: folder of the store; the brain is the folder around it.
        durable: sync written files to disk, unless a call overrides it.
        read_only: refuse to write.
        actor, clock: who changes files, and the current time, for change records.
        begin: opens a transaction of the store. None: the folder has no store, so each file changes on its own and
            no change is recorded.
        present: returns the open transaction of the calling thread, if any.
    """

    def __init__(
        self,
        base: Path,
        namespace: str,
        *,
        durable: bool = True,
        read_only: bool = False,
        actor: str | None = None,
        clock: Callable[[], datetime] | None = None,
        begin: Callable[[], AbstractContextManager[Transaction]] | None = None,
        present: Callable[[], Transaction | None] = lambda: None,
    ) -> None:
        self.namespace = namespace
        self.actor = actor
        self.clock = clock or utc_now
        self.transactional = begin is not None
        self._begin = begin
        self._present = present
        self._base = base.absolute()
        self._durable = durable
        self._read_only = read_only
        self._folds_case = Layout(self._base).folds_case
        self._own: set[Path] = set()  # files and folders known to be this namespace's alone
        self._unfinished = self._local_path("archive") / _UNFINISHED
        if self._folds_case:
            self.path("archive/x")
            self.path("workspace/x")

    # --- names and paths -------------------------------------------------------------------------------

    def path(self, name: str) -> Path:
        path = self._local_path(checked_name(name))
        if self._folds_case:
            self._refuse_shared(path, place_of(self.namespace, name))
        return path

    def _refuse_shared(self, path: Path, place: str) -> None:
        for part in separate_parts(place):
            below = place.count("/") - part.count("/")
            own = path.parents[below - 1] if below else path
            if own not in self._own and _is_own(own):
                self._own.add(own)

    def where(self, name: str) -> str:
        return str(self._local_path(name))

    def _local_path(self, name: str) -> Path:
        place = place_of(self.namespace, name)
        first = name.partition("/")[0]
        if first in OF_STORE:  # independent of the name of the store's folder
            return self._base / place.removeprefix("memory/")
        return self._base.parent / place

    # --- transactions ----------------------------------------------------------------------------------

    def transaction(self) -> AbstractContextManager[WriteTransaction]:
        if self._begin is None:
            raise StorageError(
                f"{self._base.parent}: there is no store: each file changes by itself",
                hint="rlm-mem store init creates one",
            )
        return recording(self, self._begin())

    def _enclosing_transaction(self, name: str) -> Transaction | None:
        """Return the transaction that a change of this file joins, if any; the former content is noted in it."""
        transaction = self._present() if folder_of(name).in_transactions else None
        if transaction is not None:
            note_former(transaction, self, name)
        return transaction

    def _current_path(self, path: Path) -> Path | None:
        """Return the path of a file's current content, which an open transaction may have redirected; None: removed."""
        transaction = self._present()
        return path if transaction is None else transaction.files.get(path, path)

    def _appended(self, path: Path) -> bytes:
        """Return the bytes that an open transaction will append to a file."""
        transaction = self._present()
        return b"" if transaction is None else transaction.appended(path)

    # --- reading ---------------------------------------------------------------------------------------

    def read(self, name: str) -> bytes | None:
        path = self.path(name)
        place = self._current_path(path)
        try:
            return None if place is None else place.read_bytes() + self._appended(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise files.unreadable(path, error) from error

    def contents(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for name in names:
            data = self.read(name)
            if data is not None:
                yield name, data

    def read_from(self, name: str, offset: int) -> bytes:
        path = self.path(name)
        transaction = self._present()
        if transaction is not None and (path in transaction.files or transaction.appended(path)):
            return (self.read(name) or b"")[offset:]
        try:
            with path.open("rb") as file:
                file.seek(offset if offset >= 0 else max(0, file.seek(0, os.SEEK_END) + offset))
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except OSError as error:
            raise files.unreadable(path, error) from error

    def exists(self, name: str) -> bool:
        place = self._current_path(self.path(name))
        return place is not None and place.exists()

    def names(self, folder: str, *, recursive: bool = False) -> list[str]:
        if not folder:
            return self.everything(self.runs()) if recursive else []
        place = self.path(folder)
        found = list(files.names_below(place, f"{folder.rstrip('/')}/", recursive=recursive))
        transaction = self._present()
        if transaction is not None and transaction.files:
            listed = set(found)
            for path, content in transaction.files.items():
                if path.is_relative_to(place) and (recursive or path.parent == place):
                    name = f"{folder.rstrip('/')}/{path.relative_to(place).as_posix()}"
                    (listed.discard if content is None else listed.add)(name)
            found = list(listed)
        return sorted(found)

    def everything(self, runs: Runs) -> list[str]:
        """Return the names of all files of the namespace except derived ones; runs, journal and ledger are included."""
        found = [name for folder in _NAMESPACE_FOLDERS for name in self.names(folder, recursive=True)]
        found += [*runs.get(self.namespace, ()), *(one for one in (JOURNAL, LEDGER) if self.exists(one))]
        return sorted(found)

    def namespaces(self) -> list[str]:
        brain = self._base.parent
        places = [
            files.names_below(self._base / "archive/continuum", "memory/archive/continuum/"),
            *(files.names_below(brain / one, f"{one}/") for one in ("namespaces", *_OF_DEFAULT)),
        ]
        owners = (name_at(place) for place in chain.from_iterable(places))
        return sorted({owner[0] for owner in owners if owner is not None and owner[0] is not None})

    def runs(self) -> Runs:
        """Return the names of recorded runs, grouped by the namespace that their first line names."""
        found: dict[str | None, list[str]] = {}
        for name in self.names("trajectories", recursive=True):
            path = self.path(name)
            try:
                with path.open("rb") as file:
                    found.setdefault(namespace_of_run(file.readline()), []).append(name)
            except FileNotFoundError:
                continue  # removed after it was listed
            except OSError as error:
                raise files.unreadable(path, error) from error
        return found

    def signature(self, name: str) -> Signature | None:
        path = self.path(name)
        place, added = self._current_path(path), self._appended(path)
        found = None if place is None else files.signature(place)
        return structs.replace(found, size=found.size + len(added)) if found is not None and added else found

    def signatures(self, folder: str, *, recursive: bool = False) -> dict[str, Signature]:
        names = self.names(folder, recursive=recursive)
        if folder and self._present() is None:
            # To make a path of each takes longer than to stat it.
            place, start = os.fspath(self.path(folder)), len(folder.rstrip("/"))
            found = {name: files.signature(f"{place}{name[start:]}") for name in names}
        else:
            found = {name: self.signature(name) for name in names}
        return {name: signature for name, signature in found.items() if signature is not None}

    def last(self, folder: str, limit: int, *, before: str | None = None) -> dict[str, Signature]:
        """Return the last files by name; folders that sort after ``before`` are not listed at all."""
        found: dict[str, Signature] = {}
        for name in self._names_descending(folder, self.path(folder), before):
            if len(found) >= limit:
                break
            signature = self.signature(name)
            if signature is not None:
                found[name] = signature
        return found

    def _names_descending(self, folder: str, place: Path, before: str | None) -> Iterator[str]:
        try:
            with os.scandir(place) as entries:
                entries_descending = sorted(
                    ((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries), reverse=True
                )
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise files.unreadable(place, error) from error
        for one, is_folder in entries_descending:
            name = f"{folder}/{one}"
            if one.startswith(".") or (
                before is not None and name >= before and not before.startswith(f"{name}/")
            ):
                continue
            if is_folder:
                yield from self._names_descending(name, place / one, before)
            else:
                yield name

    # --- writing ---------------------------------------------------------------------------------------

    def write(self, name: str, data: bytes, *, durable: bool = True) -> None:
        target = self._writable(name)
        transaction = self._enclosing_transaction(name)
        if transaction is not None:
            if name.startswith(RECORDS):
                transaction.write_change_record(target, data)
            else:
                transaction.write_file(target, data)
            return
        folder = self._unfinished if folder_of(name).by_hand else None
        files.write_atomic(target, data, durable=durable and self._durable, folder=folder)

    def create(self, name: str, data: bytes) -> bool:
        target = self._writable(name)
        transaction = self._enclosing_transaction(name)
        if transaction is not None:
            if self.exists(name):
                return False
            transaction.write_file(target, data)
            return True
        try:
            files.write_bytes(target, data, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        except OSError as error:
            files.translate(error, str(target))
        return True

    def append(self, name: str, data: bytes) -> None:
        """Append to a file with one system call, so that lines of several processes do not interleave."""
        target = self._writable(name)
        transaction = self._enclosing_transaction(name)
        if transaction is not None:
            transaction.append_file(target, data)
            return
        with files.translated(str(target)):
            files.write_bytes(target, data, os.O_CREAT | os.O_APPEND)

    def extend(self, name: str, data: bytes) -> bool:
        target = self._writable(name)
        try:
            files.write_bytes(target, data, os.O_APPEND)
        except FileNotFoundError:
            return False
        except OSError as error:
            files.translate(error, str(target))
        return True

    def remove(self, name: str) -> bool:
        """Remove a file, and its monthly trajectory folder if that is then empty."""
        path = self._writable(name)
        existed = self.exists(name)
        transaction = self._enclosing_transaction(name)
        if transaction is not None:
            if existed:
                transaction.remove_file(path)
            return existed
        with files.translated(str(path)):
            files.remove(path)
        if name.startswith("trajectories/"):
            with contextlib.suppress(OSError):  # usually not empty
                path.parent.rmdir()
        return existed

    def rename(self, old: str, new: str) -> None:
        source, target = self._writable(old), self._writable(new)
        transaction = self._enclosing_transaction(old)
        if transaction is not None:
            data = self.read(old)
            if data is None:
                raise StorageError(f"{old} does not exist: it cannot be renamed")
            self.write(new, data)
            transaction.remove_file(source)
            return
        with files.translated(old):
            files.publish(source, target)
            if self._durable:
                files.sync_folder(target.parent)

    def tidy(self) -> None:
        for folder, hidden in (
            (self._unfinished, ""),
            *((self._local_path(f"archive/{one}"), ".") for one in _ARCHIVE_TEMP_FOLDERS),
        ):
            if folder.is_dir():
                for leftover in folder.iterdir():
                    if leftover.name.startswith(hidden) and leftover.name.endswith(".tmp"):
                        files.remove(leftover)

    def _writable(self, name: str) -> Path:
        if self._read_only:
            raise StoreReadOnly(f"the store {self._base} was opened read-only")
        return self.path(name)


def _is_own(path: Path) -> bool:
    """Return whether a file or folder exists by exactly this name, on a file system that ignores case.

    Raises:
        NamespaceError: it exists by a name that differs only in case, as that of another namespace or session.
    """
    if not path.exists():
        return False
    alike = {
        one.name
        for one in path.parent.iterdir()
        if one.name.casefold() == path.name.casefold() and not one.is_symlink()
    }
    if path.name in alike or not alike:
        return True
    other = min(alike)
    raise NamespaceError(
        f"{unquote(path.name)} and {unquote(other)} would share {path.parent / other}: this file system is "
        "case-insensitive",
        hint="spell it as there, or use another name",
    )
