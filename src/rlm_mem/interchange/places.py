"""Sources of an import: a file, a folder or a zip archive, each as a list of named files, read-only.

Sources may be hostile: names outside of the archive, links out of the folder, archives that unpack to more than a
disk can store. Nothing is ever unpacked to disk.
"""

from __future__ import annotations

import io
import os
import re
import stat
import time
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar

from rlm_mem.arguments import check_path
from rlm_mem.errors import InputError, NotFoundError
from rlm_mem.interchange.records import ImportProblem
from rlm_mem.record import FrozenRecord

try:
    from lzma import LZMAError
except ImportError:  # a Python without this library unpacks no such archives
    LZMAError = zlib.error  # type: ignore[misc,assignment]

_T = TypeVar("_T")

_SKIPPED_FOLDERS = {"node_modules", "__pycache__", "venv", "site-packages", "__MACOSX"}
_BUILD_FOLDERS = {"build", "dist", "target"}
_BUILD_FILES = (
    "pyproject.toml", "setup.py", "setup.cfg", "package.json", "Cargo.toml", "pom.xml", "build.gradle",
    "build.gradle.kts", "build.sbt", "CMakeLists.txt", "meson.build", "Makefile", "make.bat", "conf.py",
)  # fmt: skip
"""Of these files, one beside a folder called ``build`` shows that a tool writes it; else it is a folder like others."""
_AGENT_FOLDERS = {".agents", ".claude"}
_MAX_FILES = 2_000_000
_MAX_UNPACKED = 1 << 36  # bytes of one archive, all files together
_MAX_NESTED = 1 << 28  # bytes of a nested archive, which is read into memory
_MAX_ALL_NESTED = 1 << 30  # bytes of all nested archives together
_MAX_RATIO = 300  # unpacked to packed, for files over _RATIO_FROM bytes: chat exports reach 20
_RATIO_FROM = 50_000_000
_SETTLED_SECONDS = 2.5
"""Age of a change in seconds from which it is settled. File times have a resolution of up to two seconds: after a
younger change, the next one may get the same mark."""


_DAMAGE = (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError, RuntimeError, ValueError)
"""What ``zipfile`` raises for a damaged archive, or for one of a kind that it does not read."""


class Unreadable(Exception):
    """A file cannot be read; the message gives the reason."""


class Entry(FrozenRecord, frozen=True):
    """A file of a source: its name (with ``/``), its size in bytes, and a mark that changes with the file.

    ``settled``: its last change is old enough that any later change gets a different mark.
    """

    name: str
    size: int
    mark: str
    modified: float
    settled: bool = True


class Place(ABC):
    """A source whose files can be listed and read.

    Attributes:
        label: the name in reports, provenance and conversation ids if the path is meaningless, as for an upload.
    """

    label: str | None = None

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def entries(self) -> Iterator[Entry | ImportProblem]:
        """Yield every file in a fixed order, and a problem for each that cannot be read."""

    @abstractmethod
    def open(self, entry: Entry) -> BinaryIO:
        """Open a file for reading; raises Unreadable."""

    def close(self) -> None:  # noqa: B027 - most sources keep no file open
        """Close open files."""

    def name(self, entry: Entry) -> str:
        """Return the name of the file in reports: its path within the source."""
        return entry.name

    def within(self, where: str) -> str:
        """Return a location in the source without the folder of a single file: a memory may be shared."""
        return where if self.label is not None else where.removeprefix(f"{self.path.parent}{os.sep}")


@contextmanager
def path_errors(path: Path, missing: str) -> Iterator[None]:
    """Raise errors of the file system as NotFoundError, with the message ``missing``, or as InputError."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(missing) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def open_place(path: Path | str) -> Place:
    """Open the source at ``path``; raises NotFoundError, or InputError if it is not a file, folder or valid archive."""
    path = check_path(path, "path")
    if address := re.match("(https?:)/+", str(path)):  # a path has one slash where several follow each other
        written = f"{address[1]}//{str(path)[address.end() :]}"
        raise InputError(
            f"{written} is an address, and only files are read", hint="download it, and name the file"
        )
    with path_errors(path, f"there is nothing to import at {path}"):
        mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        return FolderPlace(path)
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is neither a file nor a folder")
    with path_errors(path, f"there is nothing to import at {path}"), path.open("rb") as handle:
        magic = handle.read(4)
    if magic in (b"PK\x03\x04", b"PK\x05\x06"):
        return _Archive(path)
    return _File(path)


class _File(Place):
    def entries(self) -> Iterator[Entry | ImportProblem]:
        yield _entry(self.path.stat(), self.path.name)

    def open(self, entry: Entry) -> BinaryIO:  # noqa: ARG002 - there is one file
        return _opened(open, self.path, "rb")

    def name(self, entry: Entry) -> str:  # noqa: ARG002 - there is one file
        return str(self.path) if self.label is None else self.label


class FolderPlace(Place):
    """The files of a folder, as the source of an import.

    Args:
        apart: resolved paths of folders that are not entered.
        whole: the folder itself is to be remembered: folders that tools build are not entered. False: also enter
            these and the hidden folders of agents, and if there are memories of agents, read only these, not the
            source code around them.
    """

    def __init__(self, path: Path, *, apart: Collection[Path] = (), whole: bool = False) -> None:
        super().__init__(path)
        self._apart = set(apart)
        self._whole = whole

    def entries(self) -> Iterator[Entry | ImportProblem]:
        """Yield every file in a fixed order, and a problem for each that cannot be read."""
        root = Path(os.path.realpath(self.path))
        agents = self.path / ".agents" / "memory"
        start = agents if not self._whole and os.path.isdir(agents) else self.path  # noqa: PTH112 - see _is_entered
        count = 0
        closed: list[OSError] = []
        for folder, folders, names in os.walk(start, onerror=closed.append):
            while closed:
                yield self._unreadable_folder(closed.pop())
            folders[:] = sorted(name for name in folders if self._is_entered(Path(folder) / name))
            within = Path(folder).relative_to(self.path).as_posix()
            for name in sorted(names):
                path = name if within == "." else f"{within}/{name}"
                if not self._is_listed(path):
                    continue
                count += 1
                if count > _MAX_FILES:
                    yield ImportProblem(
                        str(self.path), f"more than {_MAX_FILES:,} files: the rest is not read"
                    )
                    return
                yield self._listed_file(f"{folder}/{name}", path, root)
        while closed:
            yield self._unreadable_folder(closed.pop())

    def _is_listed(self, path: str) -> bool:
        """Whether a file, by its path within the folder, is neither hidden nor an editor's backup, a former text."""
        name = path.rpartition("/")[2]
        return not (name.startswith(".") or name.endswith("~") or (name[0] == name[-1] == "#"))

    def _listed_file(self, path: str, name: str, root: Path) -> Entry | ImportProblem:
        """Return a listed file. Paths are strings here: path objects take longer than the system call."""
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                refusal = self._link_refusal(path, root)
                if refusal:
                    return ImportProblem(name, refusal)
                status = os.stat(path)
        except OSError as error:
            return ImportProblem(name, error.strerror or "cannot be read")
        return (
            _entry(status, name)
            if stat.S_ISREG(status.st_mode)
            else ImportProblem(name, "not a regular file")
        )

    def _link_refusal(self, path: str, root: Path) -> str:
        """Return why the target of a link is not read; empty if it would be read without the link."""
        target = Path(os.path.realpath(path))  # resolve() fails on a link cycle
        if not target.is_relative_to(root):
            return "a link that leads out of the folder"
        folders = target.parents[: len(target.parts) - len(root.parts) - 1]
        if target.name.startswith(".") or not all(map(self._is_entered, folders)):
            return "a link to a hidden file, or to one in a folder that is not read"
        return ""

    def _unreadable_folder(self, error: OSError) -> ImportProblem:
        path = Path(error.filename)
        where = path.relative_to(self.path).as_posix() if path.is_relative_to(self.path) else str(path)
        return ImportProblem(where, f"a folder that cannot be read: {error.strerror}")

    def _is_entered(self, path: Path) -> bool:
        name = path.name
        if name.startswith(".") and (self._whole or name not in _AGENT_FOLDERS):
            return False
        if name in _SKIPPED_FOLDERS or (self._whole and _is_built(path)):
            return False
        # Path.is_symlink and Path.exists raise an error below a folder that cannot be entered.
        if os.path.islink(path) or os.path.exists(f"{path}/pyvenv.cfg"):  # noqa: PTH110, PTH114
            return False
        return not self._apart or Path(os.path.realpath(path)) not in self._apart

    def entry(self, name: str) -> Entry | None:
        """Return the current state of a file; None if there is none, or a link that is not read. Raises OSError."""
        path = f"{self.path}/{name}"
        try:
            status = os.stat(path)  # a path object takes longer than the system call
        except (FileNotFoundError, NotADirectoryError):
            return None
        if os.path.islink(path) and self._link_refusal(path, Path(os.path.realpath(self.path))):  # noqa: PTH114
            return None
        return _entry(status, name) if stat.S_ISREG(status.st_mode) else None

    def open(self, entry: Entry) -> BinaryIO:
        """Open a file for reading; raises Unreadable."""
        return _opened(
            open, f"{self.path}/{entry.name}", "rb"
        )  # a path object takes longer than opening the file


class _Archive(Place):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._zip = zipfile.ZipFile(path)
        except _DAMAGE as error:
            raise InputError(f"{path} is not a valid zip archive: {error}") from None
        self._infos: dict[str, tuple[zipfile.ZipFile, zipfile.ZipInfo]] = {}
        self._unpacked = self._nested = 0

    def entries(self) -> Iterator[Entry | ImportProblem]:
        yield from self._listed(self._zip, str(self.path))

    def _listed(self, archive: zipfile.ZipFile, where: str) -> Iterator[Entry | ImportProblem]:
        infos = archive.infolist()
        if len(infos) + len(self._infos) > _MAX_FILES:
            yield ImportProblem(where, f"more than {_MAX_FILES:,} files: nothing is read")
            return
        for info in sorted(infos, key=lambda item: item.filename):
            name = info.filename.replace("\\", "/")  # some programs for Windows write backslashes
            if name.endswith("/"):
                continue
            pure = PurePosixPath(name)
            if pure.is_absolute() or ".." in pure.parts or "\0" in name or name[1:2] == ":":
                yield ImportProblem(name, "a name that leads out of the archive")
                continue
            if any(
                part in _SKIPPED_FOLDERS or (part.startswith(".") and part not in _AGENT_FOLDERS)
                for part in pure.parts
            ):
                continue
            if stat.S_ISLNK(info.external_attr >> 16):
                yield ImportProblem(name, "a link, which is not followed")
                continue
            if info.flag_bits & 0x1:
                yield ImportProblem(name, "encrypted")
                continue
            if name in self._infos:
                yield ImportProblem(name, "a repeated name in the archive: the first file is read")
                continue
            self._unpacked += info.file_size
            packed = max(1, info.compress_size)
            if self._unpacked > _MAX_UNPACKED or (
                info.file_size > _RATIO_FROM and info.file_size / packed > _MAX_RATIO
            ):
                yield ImportProblem(name, f"unpacks to {info.file_size:,} bytes from {packed:,}: not read")
                continue
            if pure.suffix.lower() == ".zip" and archive is self._zip and info.file_size <= _MAX_NESTED:
                yield from self._nested_files(info, name)
                continue
            self._infos[name] = (archive, info)
            yield Entry(name, info.file_size, f"{info.CRC:08x}-{info.file_size}", _zip_time(info))

    def _nested_files(self, info: zipfile.ZipInfo, name: str) -> Iterator[Entry | ImportProblem]:
        """Yield the files of a nested archive as if they were in this one: Notion packs its exports twice."""
        self._nested += info.file_size
        if self._nested > _MAX_ALL_NESTED:
            most = _MAX_ALL_NESTED >> 20
            yield ImportProblem(name, f"more than {most:,} MiB of archives within the archive: not read")
            return
        try:
            inner = zipfile.ZipFile(io.BytesIO(self._zip.read(info)))
        except _DAMAGE as error:
            yield ImportProblem(name, f"not a valid zip archive: {error}")
            return
        yield from self._listed(inner, name)

    def open(self, entry: Entry) -> BinaryIO:
        archive, info = self._infos[entry.name]
        return _opened(archive.open, info)

    def close(self) -> None:
        self._zip.close()


class _OpenFile:
    """An open file whose errors are raised as Unreadable. zipfile never yields more than the announced size."""

    def __init__(self, inner: BinaryIO) -> None:
        self._inner = inner

    def read(self, size: int = -1) -> bytes:
        return _guarded(self._inner.read, size)

    def readline(self, size: int = -1) -> bytes:
        return _guarded(self._inner.readline, size)

    def close(self) -> None:
        self._inner.close()

    def __enter__(self) -> _OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _opened(call: Callable[..., Any], *arguments: Any) -> BinaryIO:
    return _OpenFile(_guarded(call, *arguments))  # type: ignore[return-value]  # reads like one


def _guarded(call: Callable[..., _T], *arguments: Any) -> _T:
    """Call a function that opens or reads a file; raises Unreadable."""
    try:
        return call(*arguments)
    except _DAMAGE as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise Unreadable(reason or f"damaged archive: {error}") from None


def _is_built(folder: Path) -> bool:
    """Whether the files in a folder are written by a tool, not by people."""
    # A path object raises an error below a folder that cannot be entered.
    return folder.name in _BUILD_FOLDERS and any(
        os.path.exists(f"{folder.parent}/{name}")  # noqa: PTH110
        for name in _BUILD_FILES
    )


def _entry(status: os.stat_result, name: str) -> Entry:
    mark = f"{status.st_mtime_ns:x}-{status.st_size}-{status.st_ctime_ns:x}-{status.st_ino:x}"
    settled = max(status.st_mtime, status.st_ctime) < time.time() - _SETTLED_SECONDS
    return Entry(name, status.st_size, mark, status.st_mtime, settled)


def _zip_time(info: zipfile.ZipInfo) -> float:
    try:
        return datetime(*info.date_time, tzinfo=UTC).timestamp()
    except ValueError:  # a month 0, as some tools write for "unknown"
        return 0.0
