"""File operations: signed reads, listings, atomic writes, syncing, and their errors as the project's own.

Each step of a write is a function, so that tests can inject faults at every boundary.

Unfinished files are in the store's ``.tmp`` folder, never among the chunks.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct

from rlm_mem.chunk.types import MAX_FILE_BYTES
from rlm_mem.errors import StorageError, StoreFull, StoreReadOnly
from rlm_mem.lazy import logger

if TYPE_CHECKING:
    from _typeshed import StrPath

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_HARD_LINKS = {errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES}
# Above this number of files, one sync of the file system is cheaper than one fsync each (measured: 4 ms per file).
_MANY = 4
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # opening a pipe would block
_logger = logger("rlm_mem.store")
_logged_paths: set[str] = set()  # paths already logged, so that repeated scans do not log them again
# Names of temporary files are never reused: they contain the process id, a random run id, and a number, which must fit
# behind the beginning of a long name.
_MAX_TEMP_NAME = 40
_RUN_ID, _NUMBERS = os.urandom(4).hex(), count()


class Signature(Struct, frozen=True, gc=False):
    """A value that changes whenever a file changes, obtained without reading it; a rename always brings a new inode."""

    size: int
    mtime_ns: int
    inode: int


NO_SIGNATURE = Signature(0, 0, 0)
"""The signature of a file that cannot be examined."""


_PIECE, _OVERLAP = 4_000_000, 10_000  # bytes
_BETWEEN_WORDS = b" \n\0"


def pieces(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file; of a large one in pieces that repeat the end of the one before.

    They are cut at spaces and NULs, so that neither end is a part of a word, unless there are none for long.
    """
    with path.open("rb") as file:
        left = b""
        while more := file.read(_PIECE):
            data = left + more
            if len(more) < _PIECE:
                yield data
                return
            end = _cut(data, len(data))
            yield data[:end]
            left = data[_cut(data, end - _OVERLAP) :]
        yield left


def _cut(data: bytes, end: int) -> int:
    """Return the last place between words before ``end``, or ``end`` if there is none near it."""
    near = max(0, end - _OVERLAP)
    return max(data.rfind(byte, near, end) + 1 for byte in _BETWEEN_WORDS) or end


def signature(path: StrPath) -> Signature | None:
    """Return the signature of a file, or None if it does not exist, or is a link that leads to itself."""
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return None
    return Signature(stat.st_size, stat.st_mtime_ns, stat.st_ino)


def is_unicode(path: StrPath) -> bool:
    """Return whether the last part of a path is Unicode text; others, as from old archives, are logged.

    A name that is not Unicode cannot be recorded.
    """
    full_path = os.fspath(path)
    name = os.path.basename(full_path)  # noqa: PTH119 - mostly of a text
    if name.isascii():
        return True
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        if full_path not in _logged_paths:
            _logged_paths.add(full_path)
            _logger.error("%a is left out: its name is not Unicode text; rename it", os.fsencode(full_path))
        return False
    return True


def shown_name(name: str) -> str:
    r"""Return the name of a file as text, with undecodable bytes as ``\xNN``."""
    return name if name.isprintable() else ascii(os.fsencode(name))[2:-1]


def is_json_file(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry of a folder is a visible file or link ``*.json``, or cannot be examined."""
    if not entry.name.endswith(".json") or entry.name.startswith(".") or not is_unicode(entry.path):
        return False
    try:
        # What is behind a link may be away for now, as a disk or an annex: reading it reports the reason
        return entry.is_file() or entry.is_symlink()
    except OSError:  # such as a link that leads to itself: likewise
        return True


def read_signed(path: StrPath) -> tuple[bytes, Signature]:
    """Return the content and signature of a file; raises OSError, also for a pipe or a huge file."""
    try:
        descriptor = os.open(path, _READ)
    except FileNotFoundError:
        if os.path.islink(path):  # noqa: PTH114 - mostly of a text
            raise OSError(errno.EINVAL, "it is a link that leads nowhere") from None
        raise
    # Unbuffered: a file that is read at once needs no buffer, and creating one takes longer than the reading.
    with open(descriptor, "rb", buffering=0) as handle:  # noqa: PTH123 - of a descriptor
        stat = os.fstat(descriptor)
        if not S_ISREG(stat.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if stat.st_size > MAX_FILE_BYTES:
            raise OSError(
                errno.EINVAL, f"it has {stat.st_size:,} bytes, more than the {MAX_FILE_BYTES:,} that are read"
            )
        return handle.read(), Signature(stat.st_size, stat.st_mtime_ns, stat.st_ino)


def names_below(
    folder: Path,
    before: str = "",
    *,
    recursive: bool = True,
    links: bool = True,
    left_out: Collection[str] = (),
    skipped: set[str] | None = None,
) -> Iterator[str]:
    """Yield names of the files in a folder, unordered, without hidden files and folders; none if it does not exist.

    Args:
        before: prefix of every name.
        links: include symbolic links to files; those to folders are never followed.
        left_out: names of folders that are not entered.
        skipped: receives, in displayable form, names that are not Unicode text and (without ``links``) those of
            links.

    Raises:
        StorageError: a folder cannot be read.
    """
    try:
        with os.scandir(folder) as opened:
            entries = [entry for entry in opened if not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise unreadable(folder, error) from error
    skipped = set() if skipped is None else skipped
    for entry in entries:
        name = before + entry.name
        if not is_unicode(entry.path):
            skipped.add(before + shown_name(entry.name))
        elif _is_file(entry, links=links):
            yield name
        elif not links and entry.is_symlink():
            skipped.add(name)
        elif recursive and name not in left_out and entry.is_dir(follow_symlinks=False):
            yield from names_below(
                Path(entry.path), f"{name}/", links=links, left_out=left_out, skipped=skipped
            )


def _is_file(entry: os.DirEntry[str], *, links: bool) -> bool:
    try:
        return entry.is_file(follow_symlinks=links)
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link that leads to itself
            return False
        raise unreadable(entry.path, error) from error


def unreadable(path: StrPath, error: OSError) -> StorageError:
    """Return the project's own exception for a file or folder that cannot be read."""
    return StorageError(f"{path} cannot be read: {error.strerror or error}")


def translate(error: OSError, what: str) -> NoReturn:
    """Raise the project's own exception for an operating system error; a StorageError is raised unchanged."""
    if isinstance(error, StorageError):
        raise error
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        raise StoreFull(
            f"the disk is full: {what} was not written", hint="free some space and retry"
        ) from error
    if error.errno in _READ_ONLY:
        raise StoreReadOnly(
            f"{what} cannot be written: {reason}",
            hint="check the folder's permissions, and how its disk is mounted",
        ) from error
    if error.errno == errno.EXDEV:
        raise StorageError(
            f"{what} was not written: its folders are on different file systems",
            hint="put them on one file system, without links or mounts inside; the brain folder itself may be a link",
        ) from error
    raise StorageError(f"{what}: {reason}") from error


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """As ``translate``, for the errors of a block."""
    try:
        yield
    except OSError as error:
        translate(error, what)


@contextlib.contextmanager
def finishing(temp: StrPath, what: StrPath) -> Iterator[None]:
    """Remove an unfinished file if the block fails, and translate its errors."""
    try:
        yield
    except BaseException as error:  # an interruption, too
        with contextlib.suppress(OSError):  # if nothing can be written, nothing can be removed either
            remove(temp)
        if not isinstance(error, OSError):
            raise
        translate(error, str(what))


def with_unchanged_note(error: StorageError) -> StorageError:
    """Return the error of a failed write with the note that nothing was changed."""
    outcome = "nothing was changed"
    if outcome in error.message:
        return error
    return type(error)(f"{error.message}: {outcome}", hint=error.hint)


def make_folder(path: Path) -> None:
    """Create a folder and its parents; no error if it exists."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        obstacle = next(one for one in (path, *path.parents) if os.path.lexists(one) and not one.is_dir())
        kind = "a link that leads nowhere" if obstacle.is_symlink() else "a file"
        raise StorageError(f"{obstacle} is {kind}: a folder is needed") from error
    except FileNotFoundError as error:  # its parent does not accept folders, as in /proc
        raise StorageError(f"no folder can be created at {path}", hint="name another place") from error
    except OSError as error:
        translate(error, str(path))


def lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file against other processes until it is closed; without ``wait``, False if another one has it.

    On a system without such locks it is True: the callers bear that two processes do the same at once.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_bytes(path: StrPath, data: bytes, flags: int, mode: int = 0o644) -> None:
    """Open a file with these flags and write all of ``data``, with one call of the system unless the disk is full.

    With ``O_CREAT`` a missing folder is created. Raises OSError.
    """
    flags |= os.O_WRONLY | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags, mode)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
        make_folder(Path(path).parent)
        descriptor = os.open(path, flags, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def write_temp(
    folder: StrPath, name: str, data: bytes, mode: int = 0o644, *, target: StrPath | None = None
) -> str:
    """Write ``data`` to a new file in ``folder`` and return its path; not yet synced.

    Args:
        target: its final path, for messages.
    """
    temp = f"{folder}{os.sep}{name}.{os.getpid()}.{_RUN_ID}{next(_NUMBERS):x}.tmp"
    with finishing(temp, target or os.path.join(folder, name)):  # noqa: PTH118 - a folder given as text
        write_bytes(temp, data, os.O_CREAT | os.O_EXCL, mode)
    return temp


def sync_files(paths: Sequence[StrPath]) -> None:
    """Make the contents of files durable: one fsync each, or one sync of the file system for many."""
    if len(paths) > _MANY and _sync_filesystem(paths[0]):
        return
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sync_filesystem(path: StrPath) -> bool:
    """Call ``syncfs`` on Linux; False if it is not available."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "syncfs"):
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return bool(libc.syncfs(descriptor) == 0)
    finally:
        os.close(descriptor)


def publish(source: StrPath, target: StrPath) -> None:
    """Rename a finished file to its final name: atomic, replaces an existing file."""
    try:
        os.replace(source, target)
    except FileNotFoundError:
        folder = Path(target).parent
        if folder.is_dir():
            raise
        make_folder(folder)
        os.replace(source, target)


def sync_folder(path: StrPath) -> None:
    """Make renames in a folder durable."""
    if os.name != "nt":  # folders cannot be opened for syncing there; NTFS journals renames
        sync_files([path])


def link_or_copy(source: StrPath, target: Path) -> None:
    """Create a hard link to ``source``, or a copy if the file system does not support links."""
    make_folder(target.parent)
    remove(target)
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        publish(write_temp(target.parent, target.name, Path(source).read_bytes()), target)


def append_at(path: Path, data: bytes, size: int) -> None:
    """Append ``data`` to a file of ``size`` bytes unless it is already there; completes a partial append.

    The caller holds a lock that every other writer of this file takes.
    """
    make_folder(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(min(size, end))
        added = file.read(len(data))
        if added == data:
            return
        # Otherwise another writer appended meanwhile
        at = size if data.startswith(added) and size <= end else end
        file.seek(at)
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]


def remove(path: StrPath) -> None:
    """Remove a file; no error if it does not exist."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - mostly of a path that is a text


def write_atomic(
    target: Path, data: bytes, *, durable: bool = True, mode: int = 0o644, folder: Path | None = None
) -> None:
    """Write a whole file so that readers see either the old or the new one.

    Args:
        mode: of a new file.
        folder: where the unfinished file is; None: beside ``target``.
    """
    temp = write_temp(folder or target.parent, f".{target.name[:_MAX_TEMP_NAME]}", data, mode, target=target)
    with finishing(temp, target):
        if durable:
            sync_files([temp])
        publish(temp, target)
        if durable:
            sync_folder(target.parent)
