"""Paths and files of a local store and its brain folder: chunk files, former versions, audit log, other brain files.

The layout is specified in docs/spec/store-layout.md.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from msgspec import structs

from rlm_mem.chunk import Chunk, check_chunk_id, decode_chunk
from rlm_mem.errors import InvalidChunk, NamespaceError, StorageError, StoreReadOnly
from rlm_mem.lazy import logger
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
from rlm_mem.store.core.files import Signature, make_folder
from rlm_mem.store.core.records import ACTIVE, ARCHIVED, Version

_logger = logger("rlm_mem.store")

REDO_SUFFIX = ".redo"
"""File name suffix of a redo record."""
_CLONE_DIGITS = 8


_FOR_GIT = (
    (
        ".gitignore",
        "# derived from the files of the chunks, unfinished, or written whenever somebody reads\n"
        "/index/\n/.tmp/\n/trajectories/\n/log/reads-*.jsonl\n",
    ),
    (
        ".gitattributes",
        "# lines are only ever added: a merge keeps those of both sides\n*.jsonl merge=union\n"
        "# made from the tiered memories, and former versions: a conflict is in the memories alone\n"
        "chunk-memory-*.json -merge\n/archive/versions/** -merge\n",
    ),
    (
        "../.gitignore",
        "# of this machine: tokens, the personas of sessions, work in progress, how far transcripts were captured\n"
        "/tokens.json\n/.tokens.json.lock\n/persona/\n"
        "/workspace/\n/namespaces/*/workspace/\n/namespaces/*+/*/workspace/\n/namespaces/*+/*+/*/workspace/\n"
        "/system/capture/\n/namespaces/*/system/capture/\n/namespaces/*+/*/system/capture/\n"
        "/namespaces/*+/*+/*/system/capture/\n",
    ),
    ("../.gitattributes", "# the same bytes on every system\n* -text\n"),
)


_FORMER_FOR_GIT = {
    ".gitattributes": ((83, "3e3dbbacc4f733a3"), (178, "e6fa3ee56a6a8f3c")),
    "../.gitignore": (
        (162, "13bf96f4f1fbd66c"),
        (231, "bfa7233ac8943983"),
        (233, "441148165c9154da"),
        (292, "ea29118546bfb02b"),
        (77, "9caf3428cd0057ae"),
    ),
    "../.gitattributes": ((95, "bc7bcbe526cab774"),),
}
"""What earlier versions wrote into these files: its length in bytes, and a digest. More may stand after it."""


class Layout:
    """Paths of a store below its base folder; paths recorded in the index are relative to it, with forward slashes."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self._base = str(base)
        self.chunks = base / "chunks"
        """Active chunks, by month."""
        self.archive = base / "archive"
        """Archived chunks; ``versions/`` below it contains former versions."""
        self.damaged = self.archive / "damaged"
        """Files of chunks that a repair replaced by a former version, named ``ID.json.TIME``."""
        self.index = base / "index"
        """Data that can be rebuilt from the files."""
        self.database = self.index / "index.sqlite"
        """The SQLite index."""
        self.unfinished = base / ".tmp"
        """Files in transit; leftovers of a killed process are handled at the next open."""
        self.log = base / "log"
        """Append-only event files by month."""

    @cached_property
    def clone(self) -> str:
        """The id of this copy of the brain, which git leaves out; made under the write lock when first used."""
        path = self.index / "clone"
        try:
            found = path.read_text(encoding="ascii", errors="replace")[:_CLONE_DIGITS]
        except FileNotFoundError:
            found = ""
        if not found.isalnum():  # also after a loss of power
            found = os.urandom(_CLONE_DIGITS // 2).hex()
            files.write_atomic(path, found.encode(), durable=False)
        return found

    def index_size_mb(self) -> float:
        """Size of the SQLite index in megabytes; 0 if there is none that this user can see."""
        try:
            return round(self.database.stat().st_size / 1e6, 3)
        except OSError:
            return 0.0

    def path_of(self, chunk: Chunk, status: int) -> str:
        """Return the relative path for a new chunk file: ``chunks/YYYY-MM/ID.json``, archived ``archive/ID.json``."""
        folder = "archive" if status == ARCHIVED else f"chunks/{chunk.metadata.created_at[:7]}"
        return f"{folder}/{check_chunk_id(chunk.id)}.json"

    def versions(self, chunk_id: str) -> Path:
        """Return the folder of a chunk's former versions, named ``{revision}.json``."""
        return self.archive / "versions" / check_chunk_id(chunk_id)

    @cached_property
    def folds_case(self) -> bool:
        """Whether the file system is case-insensitive."""
        return (self.base / "INDEX").exists()

    def absolute(self, relative: str) -> Path:
        """Return the absolute path of a relative path from the index, or of ``../…``, a file of the brain around it."""
        path = f"{self._base}/{relative}"
        # Behind a link to the store, `..` would lead to another folder.
        return Path(os.path.normpath(path) if relative.startswith("../") else path)

    def place(self, relative: str) -> str:
        """Return the absolute path as a string: much faster than ``absolute`` when many files are written."""
        return f"{self._base}/{relative}" if os.sep == "/" else str(self.absolute(relative))

    def is_interrupted(self) -> bool:
        """Return whether a killed process left a redo record, so that its write must be finished (see ``redo``)."""
        try:
            with os.scandir(self.unfinished) as entries:
                return any(entry.name.endswith(REDO_SUFFIX) for entry in entries)
        except FileNotFoundError:
            return False

    def relative(self, path: str | Path) -> str:
        """Return the path as it is recorded: relative to the base, ``../…`` for a file of the brain around it."""
        text, base = str(path), f"{self._base}{os.sep}"
        if text.startswith(base) and ".." not in text:
            return text[len(base) :].replace(os.sep, "/")
        return os.path.relpath(path, self.base).replace(os.sep, "/")

    def prepare_for_git(self) -> None:
        """Write ``.gitignore`` and ``.gitattributes``, here and in the brain around it, unless they exist.

        Git then ignores the files that reading writes and those of one machine, keeps the lines of both sides when it
        merges a log, and changes no line ends.
        """
        for name, content in _FOR_GIT:
            if name.startswith("../") and self.base.name != "memory":
                continue
            path = self.absolute(name)
            make_folder(path.parent)
            there = contextlib.suppress(FileExistsError)
            with files.translated(str(path)), there, path.open("x", encoding="utf-8") as file:
                file.write(content)

    def outdated_for_git(self) -> dict[str, bytes]:
        """Return those of the files for git that an earlier version wrote or did not know, with their right contents.

        A file that somebody else wrote or changed is left alone, except what stands after the text of this program.
        """
        from hashlib import blake2b  # OpenSSL: opening does not need it

        found: dict[str, bytes] = {}
        for name, content in _FOR_GIT:
            if name.startswith("../") and self.base.name != "memory":
                continue
            path = self.absolute(name)
            if path.is_dir():
                continue
            with files.translated(str(path)):
                try:
                    data = path.read_bytes()
                except FileNotFoundError:
                    found[name] = content.encode()
                    continue
            for size, digest in _FORMER_FOR_GIT.get(name, ()):
                if blake2b(data[:size], digest_size=8).hexdigest() == digest and not data.startswith(
                    content.encode()
                ):
                    found[name] = content.encode() + data[size:]
        return found

    def own_files(self, named: re.Pattern[str]) -> Iterator[Path]:
        """Yield the files with such a name below the folders of the store, and of the brain.

        The folder of the brain itself may hold others, too.
        """
        yield from self.all_files(self.base, named)
        around = {one.partition("/")[0] for one, folder in FOLDERS.items() if folder.owner != "store"}
        for place in (self.base.parent / one for one in sorted({"namespaces", *around} - {"memory"})):
            if self.base.name == "memory" and not place.is_symlink():
                yield from self.all_files(place, named)

    def all_files(self, top: Path | None = None, named: re.Pattern[str] | None = None) -> Iterator[Path]:
        """Yield all files below a folder (None: of the brain); in the store also what is behind links to folders.

        Args:
            named: matches the names of the files to yield; None: of all.

        Raises:
            StorageError: a folder cannot be read.
        """
        seen: set[tuple[int, int]] = set()

        def refuse(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):
                raise files.unreadable(error.filename, error) from error

        for name, below, names in os.walk(top or self.base.parent, onerror=refuse, followlinks=True):
            folder = Path(name)
            try:
                status = folder.stat()
            except FileNotFoundError:  # removed after it was listed
                continue
            key = status.st_dev, status.st_ino
            if key in seen:  # a link leads to a folder above it, or two lead to one
                below.clear()
                continue
            seen.add(key)
            if not folder.is_relative_to(self.base):
                below[:] = [
                    one for one in below if folder / one == self.base or not (folder / one).is_symlink()
                ]
            yield from (folder / one for one in names if named is None or named.fullmatch(one))

    def folders(self) -> list[str]:
        """Return the relative paths of the existing folders of chunk files."""
        found = []
        if self.chunks.is_dir():
            found += [
                f"chunks/{entry.name}"
                for entry in sorted(self.chunks.iterdir())
                if entry.is_dir() and files.is_unicode(entry)
            ]
        if self.archive.is_dir():
            found.append("archive")
        return found


def status_at(path: str) -> int:
    """Return the status of a chunk by the relative path of its file."""
    return ARCHIVED if path.startswith("archive/") else ACTIVE


def is_misnamed(chunk: Chunk, name: str) -> bool:
    """Return whether a file name differs from the name that its chunk requires."""
    return f"{chunk.id}.json" != name


def misnamed(chunk: Chunk) -> str:
    """Describe a chunk in a file of another name."""
    return (
        f"it contains the chunk {chunk.id}, whose file is {chunk.id}.json: rename it, or if it is a copy, remove it or "
        "give it an id of its own, inside and as its name"
    )


def read_chunk_file(path: Path) -> tuple[Chunk, Signature]:
    """Read one chunk file; raises InvalidChunk, or OSError if the file cannot be opened."""
    data, read = files.read_signed(path)
    chunk = decode_chunk(data)
    if is_misnamed(chunk, path.name):
        raise InvalidChunk(misnamed(chunk))
    return chunk, read


def former_versions(
    layout: Layout, chunk_id: str, *, below: int, pending: tuple[int, Path] | None = None
) -> list[Version]:
    """Return kept versions with a revision below ``below``, oldest first; unreadable ones are logged and left out.

    Args:
        pending: revision and file of a further version, which an open transaction will keep.
    """
    found: list[Version] = []
    # A path as text: an erasure looks at every chunk, and few have former versions.
    try:
        with os.scandir(layout.place(f"archive/versions/{check_chunk_id(chunk_id)}")) as entries:
            found_files = [Path(entry.path) for entry in entries if entry.name.endswith(".json")]
    except (FileNotFoundError, NotADirectoryError):
        found_files = []
    places = {int(path.stem): path for path in found_files if path.stem.isdecimal()}
    places.update([pending] if pending is not None else ())
    for revision, path in sorted(places.items()):
        if revision >= below:
            continue
        try:
            chunk = decode_chunk(files.read_signed(path)[0])  # named after the revision, not the chunk
        except (InvalidChunk, OSError) as error:
            _logger.error("unreadable former version %s: %s", path, error)
            continue
        found.append(Version(revision, chunk.metadata.modified_at, chunk))
    return found


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


class FileTransaction(WriteTransaction, Protocol):
    """A transaction that writes files of the brain together with chunks."""

    @property
    def files(self) -> Mapping[Path, Path | None]:
        """Files written or removed in this transaction, mapped to the path of their new content (None: removed)."""

    def appended(self, path: Path) -> bytes:
        """The bytes appended in this transaction to a file that exists already and is not in ``files``."""

    def write_file(self, path: Path, data: bytes) -> None:
        """Write a whole file."""

    def write_change_record(self, path: Path, data: bytes) -> None:
        """Write the change record, a JSON object, which becomes the redo record of this transaction."""

    def remove_file(self, path: Path) -> None:
        """Remove a file."""

    def append_file(self, path: Path, data: bytes) -> None:
        """Append to a file."""


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
        begin: Callable[[], AbstractContextManager[FileTransaction]] | None = None,
        present: Callable[[], FileTransaction | None] = lambda: None,
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

    def _enclosing_transaction(self, name: str) -> FileTransaction | None:
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
