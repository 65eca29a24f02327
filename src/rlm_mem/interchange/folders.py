"""Keep a folder in step by its path, once or for as long as it changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Unpack

from rlm_mem.chunk import check_confidence, check_tags, check_text, check_time
from rlm_mem.errors import InputError, NotFoundError, StorageError, StoreLocked
from rlm_mem.interchange.documents import FolderOptions, SyncOptions
from rlm_mem.interchange.folder_sync import FolderSync
from rlm_mem.interchange.places import Entry, FolderPlace
from rlm_mem.interchange.records import ImportProblem
from rlm_mem.interchange.report import FolderReport
from rlm_mem.results import Progress
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.telemetry import observed

__all__ = ["SETTLE_SECONDS", "sync_folder", "watch_entries", "watch_folder"]

#: Folders that hold what tools made, not what people wrote.
_MADE_BY_TOOLS = ("build", "dist", "target")


def _folder_of(store: ChunkStore, path: str | Path) -> FolderPlace:
    """The folder to keep in step; the brain itself, where it is in it, is left out.

    Raises:
        NotFoundError: there is no such folder. InputError: it is no folder.
    """
    path = Path(path)
    if not path.is_dir():
        if path.exists():
            raise InputError(
                f"{path} is not a folder", hint="remember a single file with remember, or import it"
            )
        raise NotFoundError(f"there is no folder {path}")
    return FolderPlace(path, passed_over=_MADE_BY_TOOLS, apart=_places_of(store), whole=True)


def _places_of(store: ChunkStore) -> list[Path]:
    """The folders of the store itself, which are never read as documents."""
    try:
        base = store.base_path.resolve()
    except StorageError:  # a database, which has none
        return []
    return [base, base.parent] if base.name == "memory" else [base]


@observed("sync_folder")
def sync_folder(
    store: ChunkStore, path: str | Path, *, progress: Progress | None = None, **options: Unpack[FolderOptions]
) -> FolderReport:
    """Bring the memory in line with the text files below a folder.

    Args:
        path: the folder; hidden files and folders and what tools made are passed over.
        progress: called with (done, total) files as they are stored.
        options: ``patterns``: shell patterns for file names, other files are left as they are;
            ``conversation_id``: of all files, else each is a conversation of its own; ``tags``, ``confidence``,
            ``chunk_type``, ``secrets``: of new chunks, as of ``remember``; ``occurred_at``: when they were said, else
            the date in the front matter or the time of the file; ``again``: compare the text of files that did not
            change, too; ``dry_run``: only report.

    Raises:
        NotFoundError: there is no such folder. InputError: it is no folder, or an option is wrong.
        StorageError: the memory cannot be written; what the report would tell of is done in part.
    """
    folder = _folder_of(store, path)
    given = options.get("patterns", ())
    patterns = (given,) if isinstance(given, str) else tuple(given)
    conversation, kind = options.get("conversation_id"), options.get("chunk_type")
    occurred_at = options.get("occurred_at")
    if kind is not None:
        store.types.check_chunk(kind, {})
    wanted = SyncOptions(
        conversation_id=None if conversation is None else check_text(conversation, "conversation_id"),
        tags=tuple(check_tags(options.get("tags"))),
        confidence=check_confidence(options.get("confidence", 0.7)),
        chunk_type=kind,
        occurred_at=None if occurred_at is None else check_time(occurred_at, "occurred_at"),
        secrets=options.get("secrets"),
        again=options.get("again", False),
    )
    sync = FolderSync(store, folder, wanted, dry_run=options.get("dry_run", False), progress=progress)
    return sync.run(lambda: _chosen(folder, patterns))


def _chosen(folder: FolderPlace, patterns: Sequence[str]) -> Iterator[Entry | ImportProblem]:
    for found in folder.entries():
        name = PurePosixPath(found.name).name if isinstance(found, Entry) else ""
        if not patterns or not name or any(fnmatch(name, one) for one in patterns):
            yield found


#: Seconds since the last change before a file is read: an editor may still be writing it.
SETTLE_SECONDS = 1.0


def watch_folder(
    store: ChunkStore,
    path: str | Path,
    *,
    seconds: float = 2.0,
    on_report: Callable[[FolderReport], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    sleep: Callable[[float], object] = time.sleep,
    settled: float = SETTLE_SECONDS,
    **options: Unpack[FolderOptions],
) -> None:
    """Sync a folder now and whenever something in it changes, until ``stop()`` is true.

    Args:
        seconds: between two looks at the folder.
        on_report: called after the first sync, and after each that changed or refused something.
        stop: called after each look.
        sleep: waits between looks; for tests.
        settled: seconds since its last change after which a file is read.
        options: of ``sync_folder``.

    Raises:
        NotFoundError, InputError: as ``sync_folder``.
    """
    folder = _folder_of(store, path)
    first = True

    def sync() -> None:
        nonlocal first
        report = sync_folder(store, path, **options)
        if on_report and (first or report.touched or report.refused):
            on_report(report)
        first = False

    watch_entries(folder.entries, sync, seconds=seconds, stop=stop, sleep=sleep, settled=settled)


def watch_entries(
    listed: Callable[[], Iterable[Entry | ImportProblem]],
    act: Callable[[], None],
    *,
    seconds: float,
    stop: Callable[[], bool],
    sleep: Callable[[float], object],
    settled: float,
) -> None:
    """Call ``act`` now, and whenever the files listed are others or changed, and none within ``settled`` seconds."""
    seen: dict[str, str] | None = None
    while True:
        entries = [entry for entry in listed() if isinstance(entry, Entry)]
        now = {entry.name: entry.mark for entry in entries}
        recent = time.time() - settled
        busy = any(recent < entry.modified <= time.time() for entry in entries)
        if seen is None or (now != seen and not busy):
            try:
                act()
            except StoreLocked:
                pass  # another writer takes long: the next look finds the same changes
            else:
                seen = now
        if stop():
            return
        sleep(seconds)
