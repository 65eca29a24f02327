"""The files of a brain beside its chunks: tiered memories, trajectories, persona, import ledgers; local ones here.

Whoever keeps such a file asks ``Backend.files(namespace)`` and never opens a path: on a database the same files are
rows. Names are relative, with forward slashes, and say what a file is; where it lies in a brain folder follows from
that alone (``place_of``).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote

import msgspec

from rlm_mem.chunk import DEFAULT_NAMESPACE
from rlm_mem.errors import InputError, StorageError, StoreReadOnly
from rlm_mem.store import files
from rlm_mem.store.files import Signature

__all__ = [
    "JOURNAL",
    "LEDGER",
    "OF_BRAIN",
    "BrainFiles",
    "LocalBrainFiles",
    "checked_name",
    "name_at",
    "own_lines",
    "place_of",
]

JOURNAL = "log/continuum.jsonl"
"""Every step of tiered memories; in a brain folder one file for all namespaces (see ``own_lines``)."""
LEDGER = "imports/ledger.jsonl"
"""What was imported already."""

_OF_NAMESPACE = ("workspace", "system", "memory")
OF_BRAIN = ("persona", "personalities", "sliders", "gauges")
"""Folders that all namespaces of a brain folder share; on a database each namespace has its own."""
_OF_STORE = ("trajectories", "imports", "log", "index")
_WHOLE = (
    "archive",
    "gauges",
    "log",
    "memory/long_term",
    "memory/short_term",
    "persona",
    "personalities",
    "sliders",
    "system",
    "trajectories",
    "workspace",
)
_KNOWN = frozenset((*_OF_NAMESPACE, *OF_BRAIN, *_OF_STORE, "archive"))
_MACHINE = frozenset((*_OF_STORE, "persona"))
"""Folders that people do not work in: an unfinished file may stand beside the finished ones there."""
_UNFINISHED = ".unfinished"


class BrainFiles(Protocol):
    """The files of one namespace.

    Names begin with ``workspace``, ``system``, ``memory`` (short and long term), ``archive``, ``log``,
    ``trajectories``, ``imports``, ``index`` (derived), ``persona``, ``personalities``, ``sliders`` or ``gauges``. On a
    database everything belongs to the namespace; in a brain folder the last four belong to all namespaces, and ``log``,
    ``trajectories`` hold what concerns others, too.

    Raises:
        InputError: a name leads elsewhere. StoreReadOnly, StorageError: a file cannot be written, or read.
    """

    namespace: str

    def read(self, name: str) -> bytes | None:
        """The whole file; None where there is none."""
        ...

    def contents(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Name and content of those files that are there, in this order, read a few at a time."""
        ...

    def read_from(self, name: str, offset: int) -> bytes:
        """From ``offset`` to the end, from the last ``-offset`` bytes where it is negative; empty without a file."""
        ...

    def write(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """Write a whole file: a reader sees the old or the new one. ``durable`` False: it could be made again."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet; False, and nothing written, where one of that name is."""
        ...

    def append(self, name: str, data: bytes) -> None:
        """Add to the end of a file, made if it is missing; what several writers add does not mix."""
        ...

    def remove(self, name: str) -> bool:
        """Remove a file; False where there was none."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, taking the place of a file that has it."""
        ...

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        ...

    def names(self, folder: str, *, recursive: bool = False) -> list[str]:
        """Full names of the files in a folder, in order; hidden ones are nobody's. Empty without such a folder.

        The folder ``""`` with ``recursive`` is everything of the namespace that is not derived.
        """
        ...

    def signature(self, name: str) -> Signature | None:
        """What tells a changed file from an unchanged one without reading it."""
        ...

    def signatures(self, folder: str, *, recursive: bool = False) -> dict[str, Signature]:
        """``names`` with the signature of each."""
        ...

    def tidy(self) -> None:
        """Drop what killed writers left unfinished; to be called under the write lock."""
        ...

    def path(self, name: str) -> Path | None:
        """The file on a disk; None where files are no files."""
        ...

    def where(self, name: str) -> str:
        """The file as a message to a person names it."""
        ...


def own_lines(namespace: str, journal: bytes) -> bytes:
    """The lines of a journal that concern a namespace, whole ones only."""
    lines = journal.splitlines(keepends=True)
    return b"".join(line for line in lines if _namespace_in(line, "ns") == namespace and line.endswith(b"\n"))


def _namespace_in(line: bytes, key: str) -> str | None:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found.get(key) if isinstance(found, dict) else None


def checked_name(name: str) -> str:
    """The name of a file; raises InputError for one that leads elsewhere, or into no folder of a brain."""
    parts = name.split("/")
    if (
        any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts)
        or parts[0] not in _KNOWN
        or (parts[0] == "memory" and parts[1:2] not in (["short_term"], ["long_term"]))
    ):
        raise InputError(f"{name!r:.80} is no path of a file of a brain")
    return name


def place_of(namespace: str, name: str, *, alone: bool = False) -> str:
    """Where a file of a namespace lies, relative to the brain folder.

    Args:
        alone: the persona's files belong to this namespace and not to the whole brain (stores without a folder).
    """
    first, _, rest = name.partition("/")
    own = "" if namespace == DEFAULT_NAMESPACE else f"namespaces/{quote(namespace, safe='')}/"
    if first == "archive":
        return f"memory/archive/continuum/{quote(namespace, safe='')}" + (f"/{rest}" if rest else "")
    if first == "index":
        return f"memory/index/{quote(namespace, safe='')}.{rest}" if rest else "memory/index"
    if first == "imports":
        return f"memory/imports/{_slug(namespace)}.{rest.partition('.')[2]}" if rest else "memory/imports"
    if first in _OF_STORE:
        return f"memory/{name}"
    return name if first in OF_BRAIN and not alone else own + name


def _slug(namespace: str) -> str:
    """A namespace in a file name: readable, and different for every one. Ledgers have been called so from the first."""
    text = re.sub(r"[^A-Za-z0-9_-]+", "-", namespace.removeprefix("chunk-")).strip("-_")[:60]
    digest = hashlib.sha256(f"ledger\0{namespace}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{text}-{digest}" if text else digest


def name_at(place: str) -> tuple[str | None, str] | None:
    """Namespace and name of the file that lies there (see ``place_of``), or None where none of them would.

    The namespace is None for the files that several namespaces share: ``log`` and ``trajectories``.
    """
    parts = place.split("/")
    namespace: str | None = DEFAULT_NAMESPACE
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = unquote(parts[1]), parts[2:]
        if parts[0] not in (*_OF_NAMESPACE, *OF_BRAIN):
            return None
    elif parts[:3] == ["memory", "archive", "continuum"] and len(parts) > 4:
        namespace, parts = unquote(parts[3]), ["archive", *parts[4:]]
    elif parts[0] == "memory" and len(parts) > 2 and parts[1] in ("log", "trajectories"):
        namespace, parts = None, parts[1:]
    if parts[0] == "log" and "/".join(parts) != JOURNAL:  # the audit log beside it is the store's own
        return None
    try:
        return (namespace, checked_name("/".join(parts))) if len(parts) > 1 else None
    except InputError:
        return None


class LocalBrainFiles:
    """Files in a brain folder, and in the folder of its store.

    Args:
        base: folder of the store; the brain is the folder around it.
        durable: sync what is written, unless told otherwise.
        read_only: refuse to write.
    """

    def __init__(self, base: Path, namespace: str, *, durable: bool = True, read_only: bool = False) -> None:
        self.namespace = namespace
        self._base = base.absolute()
        self._durable = durable
        self._read_only = read_only
        self._unfinished = self._place("archive") / _UNFINISHED

    # --- names and places ------------------------------------------------------------------------------

    def path(self, name: str) -> Path:
        """The file on the disk."""
        return self._place(checked_name(name))

    def where(self, name: str) -> str:
        """The file's path."""
        return str(self._place(name))

    def _place(self, name: str) -> Path:
        place = place_of(self.namespace, name)
        first = name.partition("/")[0]
        if first == "archive" or first in _OF_STORE:  # of the store, whatever its folder is called
            return self._base / place.removeprefix("memory/")
        return self._base.parent / place

    # --- reading ---------------------------------------------------------------------------------------

    def read(self, name: str) -> bytes | None:
        """The whole file; None where there is none."""
        path = self.path(name)
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(path, error) from error

    def contents(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """One file after the other."""
        for name in names:
            data = self.read(name)
            if data is not None:
                yield name, data

    def read_from(self, name: str, offset: int) -> bytes:
        """The end of the file."""
        path = self.path(name)
        try:
            with path.open("rb") as file:
                file.seek(offset if offset >= 0 else max(0, file.seek(0, os.SEEK_END) + offset))
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except OSError as error:
            raise _unreadable(path, error) from error

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return self.path(name).exists()

    def names(self, folder: str, *, recursive: bool = False) -> list[str]:
        """Names of the files that are there."""
        if not folder:
            return self._all() if recursive else []
        return sorted(self._listed(folder.rstrip("/"), self.path(folder), recursive))

    def _listed(self, folder: str, place: Path, recursive: bool) -> list[str]:
        found: list[str] = []
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_file():
                        found.append(f"{folder}/{entry.name}")
                    elif recursive and entry.is_dir(follow_symlinks=False):
                        found += self._listed(f"{folder}/{entry.name}", Path(entry.path), recursive)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _unreadable(place, error) from error
        return found

    def _all(self) -> list[str]:
        found: list[str] = []
        for folder in _WHOLE:
            found += [name for name in self.names(folder, recursive=True) if self._is_ours(name)]
        return [*found, LEDGER] if self.exists(LEDGER) else found

    def _is_ours(self, name: str) -> bool:
        """The folder of trajectories is shared: the first line of each names its namespace."""
        first = name.partition("/")[0]
        if first != "trajectories":
            return first != "log" or name == JOURNAL
        with self.path(name).open("rb") as file:
            return _namespace_in(file.readline(), "namespace") == self.namespace

    def signature(self, name: str) -> Signature | None:
        """Size, time and inode."""
        return files.signature(self.path(name))

    def signatures(self, folder: str, *, recursive: bool = False) -> dict[str, Signature]:
        """Files and their signatures."""
        found = {name: self.signature(name) for name in self.names(folder, recursive=recursive)}
        return {name: signature for name, signature in found.items() if signature is not None}

    # --- writing ---------------------------------------------------------------------------------------

    def write(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """Write a whole file; nothing unfinished ever stands in a folder that people work in."""
        target = self._writable(name)
        durable = durable and self._durable
        if self._of_machine(name):
            files.write_atomic(target, data, durable=durable)
            return
        temp = files.write_temp(self._unfinished, "memory", data)
        try:
            if durable:
                files.sync_files([temp])
            files.publish(temp, target)
            if durable:
                files.sync_folder(target.parent)
        except OSError as error:
            files.remove(temp)
            files.translate(error, name)

    @staticmethod
    def _of_machine(name: str) -> bool:
        return name.partition("/")[0] in _MACHINE or name.startswith(
            ("archive/pending/", "archive/transitions/")
        )

    def create(self, name: str, data: bytes) -> bool:
        """Write a new file."""
        target = self._writable(name)
        try:
            self._add(target, data, os.O_EXCL)
        except FileExistsError:
            return False
        except OSError as error:
            files.translate(error, str(target))
        return True

    def append(self, name: str, data: bytes) -> None:
        """Add to a file with one call, so that lines of several processes do not mix."""
        target = self._writable(name)
        try:
            self._add(target, data, os.O_APPEND)
        except OSError as error:
            files.translate(error, str(target))

    @staticmethod
    def _add(target: Path, data: bytes, how: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | how | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(target, flags, 0o644)
        except FileNotFoundError:
            files.make_folder(target.parent)
            descriptor = os.open(target, flags, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)

    def remove(self, name: str) -> bool:
        """Remove a file, and the month of trajectories that it was the last of."""
        path = self._writable(name)
        there = path.exists()
        try:
            files.remove(path)
        except OSError as error:
            files.translate(error, str(path))
        if name.startswith("trajectories/"):
            with contextlib.suppress(OSError):  # not empty, as a rule
                path.parent.rmdir()
        return there

    def rename(self, old: str, new: str) -> None:
        """Give a file another name."""
        source, target = self._writable(old), self._writable(new)
        try:
            files.publish(source, target)
            if self._durable:
                files.sync_folder(target.parent)
        except OSError as error:
            files.translate(error, old)

    def tidy(self) -> None:
        """Drop what killed writers left."""
        for folder, hidden in (
            (self._unfinished, ""),
            *((self._place(f"archive/{one}"), ".") for one in _BEGUN),
        ):
            if folder.is_dir():
                for leftover in folder.iterdir():
                    if leftover.name.startswith(hidden) and leftover.name.endswith(".tmp"):
                        files.remove(leftover)

    def _writable(self, name: str) -> Path:
        if self._read_only:
            raise StoreReadOnly(f"the store {self._base} was opened read-only")
        return self.path(name)


_BEGUN = ("pending", "transitions")


def _unreadable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} cannot be read: {error.strerror or error}")
