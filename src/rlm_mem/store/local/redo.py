"""A write of several files made one: a record of what is to get which name, synced before the first of them has it.

The record goes when the last one has, still before the index commits and under its lock. So one that is found under
the lock was left by a killed process, and nobody has written since: carrying it out finishes that write whole.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from pathlib import Path

import msgspec

from rlm_mem.store.core import files
from rlm_mem.store.local.layout import Layout

__all__ = ["Naming", "abandon", "erased", "finish", "forget", "waiting", "way_back", "write"]

_logger = logging.getLogger("rlm_mem.store")
_SUFFIX = ".redo"
_ABANDONED = ".abandoned"
_GONE, _ERASED = ".gone", ".erased"


class Naming(msgspec.Struct, array_like=True):
    """A file and the name it gets; ``kept`` is where what stands there is kept first. Relative to the store."""

    source: str
    target: str
    kept: str | None = None


def write(layout: Layout, namings: list[Naming], *, durable: bool) -> Path:
    """Record what is about to be done, in order."""
    data = msgspec.json.encode(namings)
    temp = files.write_temp(layout.unfinished, "write", data)
    try:
        if durable:
            files.sync_files([temp])
        record = temp.with_name(f"{secrets.token_hex(8)}{_SUFFIX}")
        files.publish(temp, record)
    except BaseException:
        files.remove(temp)
        raise
    if durable:
        files.sync_folder(layout.unfinished)
    return record


def forget(record: Path, *, durable: bool) -> None:
    """Everything has its name; a power cut must not bring the record back."""
    files.remove(record)
    if durable:
        files.sync_folder(record.parent)


def abandon(record: Path) -> Path:
    """The write failed and is being undone: it must not be carried out; the file to remove when all is as before."""
    abandoned = record.with_suffix(_ABANDONED)
    try:
        os.replace(record, abandoned)
    except FileNotFoundError:  # forgotten already; what is on its way out must still be put back
        try:
            abandoned.touch()
        except OSError as error:  # matters only if this process is killed before it has undone the write
            _logger.warning("%s: %s", abandoned, error)
    return abandoned


def erased(path: Path) -> Path:
    """The name of a file on its way out whose removal a record promises: it is not put back (see ``way_back``)."""
    return path.with_suffix(_ERASED) if path.suffix == _GONE else path


def way_back(layout: Layout) -> tuple[str, ...]:
    """Endings of files on their way out that belong where they were, if the index still has them."""
    abandoned = layout.unfinished.is_dir() and any(layout.unfinished.glob(f"*{_ABANDONED}"))
    return (_GONE, _ERASED) if abandoned else (_GONE,)


def waiting(layout: Layout) -> bool:
    """Whether a killed process left a record."""
    try:
        with os.scandir(layout.unfinished) as entries:
            return any(entry.name.endswith(_SUFFIX) for entry in entries)
    except FileNotFoundError:
        return False


def finish(layout: Layout) -> list[str]:
    """Carry out what killed processes left, under the write lock; the folders of chunks that it touched.

    Raises:
        StorageError: it cannot be done now (a full disk, a folder that is read-only); the record stays.
    """
    touched: set[str] = set()
    if not waiting(layout):
        return []
    for record in sorted(layout.unfinished.glob(f"*{_SUFFIX}")):
        try:
            namings = msgspec.json.decode(record.read_bytes(), type=list[Naming])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # Only without syncing can it be torn, by a power cut; no file had its name yet, or it is adopted by itself.
            _logger.warning("a record of an interrupted write cannot be read: %s", error)
            files.remove(record)
            continue
        touched |= {str(Path(name).parent) for naming in namings for name in (naming.source, naming.target)}
        try:
            for naming in namings:
                _carry_out(layout, naming)
            for folder in touched:
                if layout.absolute(folder).is_dir():
                    files.sync_folder(layout.absolute(folder))
            forget(record, durable=True)
        except OSError as error:
            files.translate(error, "the rest of an interrupted write")
        _logger.info("finished an interrupted write of %d files", len(namings))
    return [one for one in touched if one == "archive" or one.startswith("chunks/")]


def _carry_out(layout: Layout, naming: Naming) -> None:
    source, target = layout.absolute(naming.source), layout.absolute(naming.target)
    if target.parent == layout.unfinished:  # on its way out
        files.remove(source)
        files.remove(target)
        return
    if naming.kept is not None and source.exists() and target.exists():
        files.link_or_copy(target, layout.absolute(naming.kept))
    with contextlib.suppress(FileNotFoundError):  # it has its name already
        files.publish(source, target)
