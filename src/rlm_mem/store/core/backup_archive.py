"""The backup format: a compressed tar archive of a description, the brain's files, and a manifest, in this order.

Every file has its path within a brain folder, so ``tar -xzf`` alone restores a memory in an emergency. The manifest
lists each file's size and SHA-256; it is last because it is computed while the files are written, in a single pass.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import io
import os
import re
import shutil
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec

from rlm_mem.chunk.types import amount
from rlm_mem.errors import CorruptStore, InputError, StorageError
from rlm_mem.results import Progress
from rlm_mem.store.core import files

FORMAT = 1
_HEAD = "rlm-mem-backup.json"
_MANIFEST = "manifest.jsonl"
_ROOT = "brain/"
_BLOCK = 1 << 20
_MAX_HEAD = 1 << 20
_DAMAGE = (tarfile.TarError, zlib.error, msgspec.MsgspecError, EOFError, ValueError, RecursionError)
_MAX_RATIO = 300
_MIN_ALLOWANCE = 256 << 20
"""A backup may unpack to ``_MIN_ALLOWANCE`` bytes plus ``_MAX_RATIO`` times its size; real ones reach ten times."""
_ENTRY = 512  # bytes of a tar header, which even an empty file has
_SAFE = re.compile(r"(?!/)(?!.*(?:^|/)\.\.?(?:/|$))(?!.*//)[^\\\x00-\x1f]+\Z")


@dataclass
class BackupInfo:
    """The description of a backup.

    Attributes:
        made_at: the time of the state that it contains, ISO 8601 UTC.
        version: version of the package that wrote it.
        source: "local" or "postgresql".
        chunks: number of active and archived chunks.
        namespaces: their names.
        files, bytes: number and total size of the unpacked files.
        left_out: files and folders of the brain that it does not contain: links, and names that are not Unicode text or
            have a backslash or a control character.
    """

    made_at: str = ""
    version: str = ""
    source: str = "local"
    chunks: int = 0
    namespaces: list[str] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    left_out: list[str] = field(default_factory=list)


def can_be_packed(name: str) -> bool:
    """Return whether a brain file can have this relative name in a backup."""
    return _SAFE.match(name) is not None


class Packer:
    """Adds files to a backup that is being written; created by ``packing``."""

    def __init__(self, archive: tarfile.TarFile, info: BackupInfo) -> None:
        self._archive = archive
        self._lines: list[bytes] = []
        self.info = info

    def add(self, name: str, source: IO[bytes], size: int, mtime: float) -> None:
        """Add one brain file: the first ``size`` bytes of ``source``, which may be longer (a growing log)."""
        entry = tarfile.TarInfo(_ROOT + name)
        entry.size, entry.mtime, entry.mode = size, int(mtime), 0o644
        reader = HashingReader(source, size)
        self._archive.addfile(entry, reader)
        self._lines.append(msgspec.json.encode({"path": name, "size": size, "sha256": reader.digest()}))
        self.info.files += 1
        self.info.bytes += size

    def finish(self) -> None:
        """Write the manifest."""
        self._plain(_MANIFEST, b"".join(line + b"\n" for line in self._lines))

    def head(self) -> None:
        """Write the description."""
        header = {"format": FORMAT, **msgspec.to_builtins(self.info)}
        self._plain(_HEAD, msgspec.json.format(msgspec.json.encode(header), indent=2) + b"\n")

    def _plain(self, name: str, data: bytes) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), 0o644
        self._archive.addfile(entry, io.BytesIO(data))


class HashingReader:
    """A stream of exactly ``size`` bytes that hashes the data read from it."""

    def __init__(self, source: IO[bytes], size: int) -> None:
        self._source, self._left = source, size
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Read at most ``size`` bytes, or all that are left; raises StorageError if the source ends too soon."""
        data = self._source.read(self._left if size < 0 else min(size, self._left))
        if not data and self._left:
            raise StorageError("a file became shorter while it was backed up", hint="start the backup again")
        self._left -= len(data)
        self._hash.update(data)
        return data

    def digest(self) -> str:
        """Return the SHA-256 of what was read, in hexadecimal."""
        return self._hash.hexdigest()


@contextmanager
def packing(target: Path, info: BackupInfo) -> Iterator[Packer]:
    """Write a backup; the file gets its final name only once all of it is on disk.

    Raises:
        InputError: ``target`` exists by now.
        StorageError: it cannot be written.
    """
    folder = target.absolute().parent
    files.make_folder(folder)
    with files.translated(str(target)):
        with staging_folder(folder, STAGING) as staging:
            part = staging / "part"
            with tarfile.open(part, "x:gz", compresslevel=6, format=tarfile.PAX_FORMAT) as archive:
                packer = Packer(archive, info)
                packer.head()
                yield packer
                packer.finish()
            files.sync_files([part])
            if target.exists():
                raise InputError(f"the file {target} exists by now", hint="choose another name")
            files.publish(part, target)
        files.sync_folder(folder)


def read_backup(
    path: Path,
    keep: Callable[[str, HashingReader, float], object] | None = None,
    progress: Progress | None = None,
) -> BackupInfo:
    """Read a whole backup and compare it with its manifest.

    Args:
        keep: called with name, content and modification time of each file.
        progress: called now and then with (files read, files in all as far as known).

    Raises:
        InputError: there is no such file, it is not a backup, or a later version wrote it.
        CorruptStore: it is damaged, cut off or altered.
    """
    found: dict[str, tuple[int, str]] = {}
    info: BackupInfo | None = None
    listed: dict[str, tuple[int, str]] | None = None
    try:
        with tarfile.open(path, "r|gz") as archive:
            for entry, content in _entries(path, archive):
                if listed is not None:
                    raise _foreign(path, entry)
                if info is None:
                    info = _described(path, entry, content)
                elif entry.name == _MANIFEST:
                    listed = dict(_listed(content))
                else:
                    name = _checked(path, entry.name, found)
                    reader = HashingReader(content, entry.size)
                    if keep is not None:
                        keep(name, reader, float(entry.mtime))
                    while reader.read(_BLOCK):
                        pass
                    found[name] = (entry.size, reader.digest())
                    if progress is not None and len(found) % 100 == 0:
                        progress(len(found), info.files)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except _DAMAGE as error:
        raise _unreadable(path, info, error) from error
    except OSError as error:
        if error.errno is None and not isinstance(error, StorageError):  # gzip has no error class of its own
            raise _unreadable(path, info, error) from error
        files.translate(error, str(path))
    if info is None or listed is None:
        raise CorruptStore(f"{path} is truncated: it has no manifest", hint="use another backup")
    if found != listed:
        wrong = sorted(name for name in {*found, *listed} if found.get(name) != listed.get(name))
        raise CorruptStore(
            f"{path} is damaged: {amount(len(wrong), 'file')} differ from its manifest, first {wrong[0]}",
            hint="use another backup",
        )
    info.files, info.bytes = len(found), sum(size for size, _ in found.values())
    return info


def _entries(path: Path, archive: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    """Yield the files of an archive with their contents; raises CorruptStore for anything else, or for too much."""
    left = _MIN_ALLOWANCE + _MAX_RATIO * path.stat().st_size
    for entry in archive:
        left -= _ENTRY + max(0, entry.size)
        if left < 0:
            raise CorruptStore(
                f"{path} unpacks to more than {_MIN_ALLOWANCE >> 20} MiB plus {_MAX_RATIO} times its size: "
                "more than a backup of a memory can have"
            )
        content = archive.extractfile(entry) if entry.isreg() else None
        if content is None:
            raise _foreign(path, entry)
        yield entry, content


def _foreign(path: Path, entry: tarfile.TarInfo) -> CorruptStore:
    return CorruptStore(f"{path} has an entry that does not belong in a backup: {entry.name!r:.80}")


def _unreadable(path: Path, info: BackupInfo | None, error: Exception) -> Exception:
    if info is None:
        return InputError(
            f"{path} is not a backup of a memory: {error}", hint="rlm-mem store backup FILE creates one"
        )
    return CorruptStore(f"{path} is damaged: {error}", hint="use another backup")


def _described(path: Path, entry: tarfile.TarInfo, content: IO[bytes]) -> BackupInfo:
    if entry.name != _HEAD or entry.size > _MAX_HEAD:
        raise InputError(f"{path} is not a backup of a memory", hint="rlm-mem store backup FILE creates one")
    header: dict[str, Any] = msgspec.json.decode(content.read(), type=dict[str, Any])
    made_by = header.pop("format", None)
    if not isinstance(made_by, int) or made_by > FORMAT:
        raise InputError(
            f"{path} was made by rlm-mem {header.get('version')} in a format later than this version can read",
            hint="upgrade rlm-mem",
        )
    return msgspec.convert(header, BackupInfo)


class _Listed(msgspec.Struct):
    """A line of the manifest."""

    path: str
    size: int
    sha256: str


def _listed(content: IO[bytes]) -> Iterator[tuple[str, tuple[int, str]]]:
    for line in iter(lambda: content.readline(_MAX_HEAD), b""):
        listed = msgspec.json.decode(line, type=_Listed)
        yield listed.path, (listed.size, listed.sha256)


def _checked(path: Path, name: str, found: dict[str, tuple[int, str]]) -> str:
    inner = name.removeprefix(_ROOT)
    if inner == name or not can_be_packed(inner) or inner in found:
        raise CorruptStore(f"{path} has a file that does not belong in a backup: {name!r:.80}")
    return inner


STAGING = ".rlm-mem-backup-"
"""Name prefix of the staging folders beside a backup; the next backup removes those of killed processes."""
_MIN_AGE_SECONDS = 60.0  # after which an empty folder without a lock counts as left by a killed process


def _locked(folder: Path) -> int | None:
    """Lock a folder and return the descriptor; None if it is in use, or cannot be locked on this system."""
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def abandoned(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield the staging folders that killed processes left, each locked until the next is asked for.

    A name of digits alone is taken for a date, and the folder for one of a person.
    """
    for left in sorted(parent.glob(glob.escape(prefix) + "[0-9a-f]" * 8)):
        if left.name.removeprefix(prefix).isdecimal() or left.is_symlink():
            continue
        with contextlib.suppress(OSError):
            # An empty one may be new, and not locked yet.
            begun = any(left.iterdir()) or left.stat().st_mtime < time.time() - _MIN_AGE_SECONDS
            if begun and (handle := _locked(left)) is not None:
                try:
                    yield left
                finally:
                    os.close(handle)


@contextlib.contextmanager
def staging_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a staging folder, removed at the end unless renamed; those left by killed processes are removed first.

    A process locks its folder; the system releases the lock when the process ends.
    """
    for left in abandoned(parent, prefix):
        shutil.rmtree(left, ignore_errors=True)
    folder = parent / f"{prefix}{os.urandom(4).hex()[:7]}f"
    files.make_folder(folder)
    handle = _locked(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)
