"""Redo records: the file operations of a write, recorded before the first one, so that a crash can be completed.

The record of a write of several files is synced. It is removed after the last file operation, and after the audit
lines were appended, but before the index commits and under its lock. So a record that is found under the lock was
left by a killed process, and nobody has written since: applying it finishes that write.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path, PurePosixPath

import msgspec

from rlm_mem.errors import StorageError
from rlm_mem.lazy import logger
from rlm_mem.store.core import files
from rlm_mem.store.local.audit import EventLog
from rlm_mem.store.local.folder import REDO_SUFFIX, Layout

_logger = logger("rlm_mem.store")
_ABANDONED = ".abandoned"
_DELETED, _ERASED = ".gone", ".erased"
_TIERED = (
    r"(?:(?:short_term/\d{4}-\d\d-\d\d_(?:\d\d-\d\d-\d\d_agent_interaction|execution_session)"
    r"|long_term/(?:execution_trace|pattern)_[a-z0-9_]+)\.md)"
)
_LEARNED = r"system/(?:memory_log|project_learnings|SmartLibrary)\.md"
_OF_NAMESPACE = r"[A-Za-z0-9_.~%-]+/"
_WRITTEN_THROUGH_LINKS = re.compile(
    r"(?:chunks/[0-9]{4}-[0-9]{2}/|archive/)chunk-[A-Za-z0-9_-]+\.json"
    r"|archive/versions/chunk-[A-Za-z0-9_-]+/[0-9]+\.json|log/(?:[0-9]{4}-[0-9]{2}|continuum)\.jsonl"
    rf"|(?:\.\./namespaces/{_OF_NAMESPACE}memory/)?{_TIERED}|\.\./(?:namespaces/{_OF_NAMESPACE})?{_LEARNED}"
    rf"|archive/continuum/{_OF_NAMESPACE}(?:memory/{_TIERED}|{_LEARNED}"
    r"|(?:undo|transitions)/[0-9]{20}-[0-9a-f]{16}\.json)",
    re.ASCII,
)
"""Files of chunks, of tiered memories and of the logs. Their folders may be links, to another disk, and every write
follows them. Profiles are left out: people choose their names, which another program may read as instructions."""


class Naming(msgspec.Struct, array_like=True):
    """A file to rename; an existing file at ``target`` is first moved to ``kept``. Paths are relative to the store."""

    source: str
    target: str
    kept: str | None = None


class Appending(msgspec.Struct, array_like=True):
    """Bytes to append to a file of ``size`` bytes; ``target`` is relative to the store."""

    target: str
    size: int
    data: bytes


class RedoRecord(msgspec.Struct, omit_defaults=True):
    """Every file operation of one write, in order. Namings alone may be stored as a list, as earlier versions did.

    Attributes:
        change_record: where the record is moved when the write is complete, if it is also a change record.
        redo: in such a file, the redo record itself, beside the keys of the change.
        audit: the lines of the audit log.
    """

    namings: list[Naming] = []
    appendings: list[Appending] = []
    change_record: str | None = None
    redo: RedoRecord | None = None
    audit: Appending | None = None


def write(layout: Layout, record: RedoRecord, change: bytes | None = None) -> str:
    """Write a record, or the change record ``change`` (a JSON object) that includes it, to a temporary file.

    Returns its path. Once this file and all files that the operations name are durable, and before the operations are
    carried out, it is renamed into place; after a failure, ``abandon`` it.
    """
    if change is None:
        data = msgspec.json.encode(record if record.appendings or record.audit else record.namings)
    else:
        try:
            whole = {**msgspec.json.decode(change), "redo": record}
        except (msgspec.DecodeError, RecursionError) as error:
            raise StorageError(f"the record of a change cannot be written: {error}") from None
        data = msgspec.json.format(msgspec.json.encode(whole), indent=1)
    return files.write_temp(layout.unfinished, "write", data)


def forget(layout: Layout, path: Path, record: RedoRecord, *, durable: bool) -> None:
    """Remove the record of a finished write, or move it into place as a change record."""
    folders = [path.parent]
    if record.change_record is None:
        files.remove(path)
    else:
        target = layout.absolute(record.change_record)
        files.publish(path, target)
        folders.insert(0, target.parent)
    # Without a sync, a power cut may bring the record back. Applying it again changes nothing as long as it names
    # only temporary files, which no longer exist once they are renamed; but if another file was moved away, a new
    # one may have been written since.
    unfinished = layout.relative(layout.unfinished)
    if durable and any(one.source.rpartition("/")[0] != unfinished for one in record.namings):
        for folder in folders:
            files.sync_folder(folder)


def abandon(record: Path) -> Path:
    """Mark the record of a failed write, which must not be finished; return the file to remove after the undo."""
    abandoned = record.with_suffix(_ABANDONED)
    try:
        os.replace(record, abandoned)
    except FileNotFoundError:  # already removed; files being deleted must still be put back
        try:
            abandoned.touch()
        except OSError as error:  # matters only if this process is killed before it has undone the write
            _logger.warning("%s: %s", abandoned, error)
    return abandoned


def recorded_as_deleted(path: Path) -> Path:
    """Return the name for a file being deleted whose deletion is in a record, so that it is not put back."""
    return path.with_suffix(_ERASED) if path.suffix == _DELETED else path


def put_back_suffixes(layout: Layout) -> tuple[str, ...]:
    """Return the suffixes of files being deleted that are put back if the index still lists them."""
    abandoned = layout.unfinished.is_dir() and any(layout.unfinished.glob(f"*{_ABANDONED}"))
    return (_DELETED, _ERASED) if abandoned else (_DELETED,)


def finish_writes(layout: Layout) -> list[str]:
    """Apply the records of killed processes, under the write lock; return the affected chunk folders.

    Raises:
        StorageError: it cannot be done now (a full disk, a read-only folder); the record is kept.
    """
    touched: set[str] = set()
    if not layout.is_interrupted():
        return []
    for path in sorted(layout.unfinished.glob(f"*{REDO_SUFFIX}")):
        record = _read(layout, path)
        if record is None:
            files.remove(path)
            continue
        touched |= {str(Path(name).parent) for name in _names(record)}
        with files.translated("the rest of an interrupted write"):
            for naming in record.namings:
                _apply(layout, naming)
            for one in record.appendings:
                files.append_at(layout.absolute(one.target), one.data, one.size)
            for folder in touched:
                if layout.absolute(folder).is_dir():
                    files.sync_folder(layout.absolute(folder))
            if record.audit is not None:
                one = record.audit
                EventLog(layout.log).complete(layout.absolute(one.target), one.size, one.data)
            forget(layout, path, record, durable=True)
        _logger.info("finished an interrupted write of %d files", len(record.namings))
    return [one for one in touched if one == "archive" or one.startswith("chunks/")]


def _read(layout: Layout, path: Path) -> RedoRecord | None:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[Naming] | RedoRecord)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # Only a power cut without syncing tears a record; then no file was touched, or each is indexed on its own.
        _logger.warning("a record of an interrupted write cannot be read: %s", error)
        return None
    record = found.redo or found if isinstance(found, RedoRecord) else RedoRecord(found)
    appended = {one.target for one in (*record.appendings, *([record.audit] if record.audit else ()))}
    outside = [name for name in _names(record) if not _is_inside(layout, name, appended=name in appended)]
    if outside:
        _logger.warning(
            "a record of an interrupted write names %s, outside of the brain: ignored", outside[0]
        )
        return None
    return record


def _names(record: RedoRecord) -> list[str]:
    names = [
        name for one in record.namings for name in (one.source, one.target, one.kept) if name is not None
    ]
    names += [one.target for one in (*record.appendings, *([record.audit] if record.audit else ()))]
    return names if record.change_record is None else [*names, record.change_record]


def _is_inside(layout: Layout, name: str, *, appended: bool) -> bool:
    """Return whether a name in a record is inside the brain folder: a brain may come from an untrusted source.

    Linked folders count as what they lead to, except that of the store, and those of chunks, tiered memories and logs
    for files that have the names of such. A link in place of the file is followed only if bytes are ``appended`` to it.
    """
    if PurePosixPath(name).is_absolute() or Path(name).is_absolute():
        return False
    path = layout.absolute(name)
    real = Path(os.path.realpath(path if appended else path.parent))
    if any(real.is_relative_to(os.path.realpath(one)) for one in (layout.base.parent, layout.base)):
        return True
    return _WRITTEN_THROUGH_LINKS.fullmatch(name) is not None and not (appended and path.is_symlink())


def _apply(layout: Layout, naming: Naming) -> None:
    source, target = layout.absolute(naming.source), layout.absolute(naming.target)
    if target.parent == layout.unfinished:  # a deletion
        files.remove(source)
        files.remove(target)
        return
    if naming.kept is not None and source.exists() and target.exists():
        files.link_or_copy(target, layout.absolute(naming.kept))
    with contextlib.suppress(FileNotFoundError):  # already renamed
        files.publish(source, target)
