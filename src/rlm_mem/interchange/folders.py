"""Syncs a folder, given by its path, once or continuously."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Unpack

from rlm_mem.arguments import check_flag, check_function, check_items, check_path
from rlm_mem.chunk import check_confidence, check_tags, check_text, check_time
from rlm_mem.chunk.types import check_trust
from rlm_mem.errors import InputError, NotFoundError, StorageError, StoreLocked
from rlm_mem.interchange.brain_files import EXPORT_MARKER
from rlm_mem.interchange.documents import FolderOptions, SyncOptions
from rlm_mem.interchange.folder_sync import FolderSync
from rlm_mem.interchange.places import Entry, FolderPlace, path_errors
from rlm_mem.interchange.reading import clean
from rlm_mem.interchange.records import ImportProblem
from rlm_mem.interchange.report import FolderReport
from rlm_mem.interchange.target import WriteTarget
from rlm_mem.results import Progress
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.telemetry import observed
from rlm_mem.text.secrets import check_action

_MAX_NAME = 4_096  # characters: a name may be a path


def _folder_of(store: ChunkStore, path: str | Path) -> FolderPlace:
    """Return the folder to sync; if the brain is inside it, the brain is left out.

    Raises:
        NotFoundError: there is no such folder. InputError: it is not a folder, or cannot be read.
    """
    path = check_path(path, "path")
    with path_errors(path, f"there is no folder {path}"):
        mode = path.stat().st_mode
    if not stat.S_ISDIR(mode):
        raise InputError(f"{path} is not a folder", hint="remember a single file with remember, or import it")
    # As notes, the memories of an export would lose their trust, and leave quarantine.
    if (path / EXPORT_MARKER).is_file():
        raise InputError(f"{path} is an export of a memory", hint=f"rlm-mem import {path} reads it")
    return FolderPlace(path, apart=places_of(store), whole=True)


def places_of(store: ChunkStore) -> list[Path]:
    """Return the folders of the store itself, which are never read as documents."""
    try:
        base = store.base_path.resolve()
    except StorageError:  # a database, which has no folder
        return []
    return [base, base.parent] if base.name == "memory" else [base]


@observed("sync_folder")
def sync_folder(
    store: ChunkStore, path: str | Path, *, progress: Progress | None = None, **options: Unpack[FolderOptions]
) -> FolderReport:
    """Sync the memory with the text files below a folder.

    Args:
        path: the folder; hidden files and folders, editor backups (``NAME~``, ``#NAME#``) and files written by
            tools are not read.
        progress: called with (done, total) files as they are stored.
        options: ``patterns``: shell patterns for file names, other files are ignored;
            ``conversation_id``: of all files, else each is a separate conversation; ``tags``, ``confidence``,
            ``chunk_type``, ``secrets``, ``trust``: of new chunks, as of ``remember``; ``occurred_at``: when they were
            said, else the date in the front matter or in the file's name, or the time of the file; ``again``: also
            compare the text of files that did not change; ``known_as``: the name under which the folder is recorded,
            if it is not recognised (``folder_names``), or a new one; ``archive_all``: archive all documents if none
            exists any more; ``dry_run``: only report.

    Raises:
        NotFoundError: there is no such folder. InputError: it is not a folder, or an option is wrong.
        ConflictError: its documents are recorded of another folder, which does not exist; ``known_as`` decides it.
        StorageError: the memory cannot be written; some of the changes may have been applied.
    """
    folder = _folder_of(store, path)
    unknown = [name for name in options if name not in FolderOptions.__annotations__]
    if unknown:  # a misspelled dry_run must not change anything
        raise InputError(
            f"sync_folder does not take {unknown[0]!r}",
            hint=f"options are {', '.join(FolderOptions.__annotations__)}",
        )
    patterns_option = options.get("patterns", ())
    patterns = (
        (patterns_option,)
        if isinstance(patterns_option, str)
        else tuple(check_items(patterns_option, "patterns"))
    )
    conversation, kind = options.get("conversation_id"), options.get("chunk_type")
    occurred_at, trust, known_as = options.get("occurred_at"), options.get("trust"), options.get("known_as")
    if kind is not None:
        store.types.check_chunk(kind, {})
    wanted = SyncOptions(
        conversation_id=None if conversation is None else check_text(conversation, "conversation_id"),
        tags=tuple(check_tags(options.get("tags"))),
        confidence=check_confidence(options.get("confidence", 0.7)),
        chunk_type=kind,
        occurred_at=None if occurred_at is None else check_time(occurred_at, "occurred_at"),
        secrets=check_action(options.get("secrets")),
        trust=None if trust is None else check_trust(trust),
        again=check_flag(options.get("again", False), "again"),
        known_as=None if known_as is None else check_text(known_as, "known_as", max_length=_MAX_NAME),
        unrecorded="ask",
        archive_all=check_flag(options.get("archive_all", False), "archive_all"),
    )
    dry_run = check_flag(options.get("dry_run", False), "dry_run")
    sync = FolderSync(
        WriteTarget(store, dry_run=dry_run), folder, wanted, check_function(progress, "progress")
    )
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
        seconds: between two checks of the folder.
        on_report: called after the first sync, and after each that changed something or refused a file for a new
            reason; ``refused`` then has only these. While the folder does not exist, the memory is not changed.
        stop: called after each check.
        sleep: waits between checks; for tests.
        settled: seconds since its last change after which a file is read.
        options: of ``sync_folder``.

    Raises:
        NotFoundError, InputError: as ``sync_folder``, for the first sync.
    """
    folder, unreported = _folder_of(store, path), UnreportedProblems()

    def sync(first: bool) -> None:
        try:
            report = sync_folder(store, path, **options)
        except (NotFoundError, InputError):
            if first or os.path.isdir(path):  # noqa: PTH112 - Path.is_dir fails below a folder without access
                raise
            report = FolderReport(clean(str(path)), refused=[ImportProblem(clean(str(path)), NO_FOLDER)])
        report.refused = unreported.of(report.refused)
        if on_report and (first or report.touched or report.refused):
            on_report(report)

    watch_entries(folder.entries, sync, seconds=seconds, stop=stop, sleep=sleep, settled=settled)


NO_FOLDER = "the folder does not exist at present: its memories are kept until it is back"


class UnreportedProblems:
    """Filters problems so that each is reported once as long as it persists."""

    def __init__(self) -> None:
        self._reported: set[ImportProblem] = set()

    def of(self, problems: Iterable[ImportProblem]) -> list[ImportProblem]:
        """Return the current problems that were not among those of the last call."""
        reported, self._reported = self._reported, set(problems)
        return [one for one in problems if one not in reported]


_MAX_POSTPONED = 5
"""Maximum number of checks for which a constantly changing file may delay the changes of others."""


def watch_entries(
    listed: Callable[[], Iterable[Entry | ImportProblem]],
    act: Callable[[bool], None],
    *,
    seconds: float,
    stop: Callable[[], bool] = lambda: False,
    sleep: Callable[[float], object] = time.sleep,
    settled: float = SETTLE_SECONDS,
) -> None:
    """Call ``act(True)`` now, and ``act(False)`` when a listed file appears, disappears, changes or becomes unreadable.

    The call is postponed until no file was changed within ``settled`` seconds, but only for a few checks: a file
    may be written constantly.
    """
    seen: dict[str, str] | None = None
    postponed = 0
    while True:
        now: dict[str, str] = {}
        recent, busy = time.time() - settled, False
        for one in listed():
            if isinstance(one, Entry):
                now[one.name] = one.mark
                busy = busy or recent < one.modified <= time.time()
            else:
                now[f"{one.where}/"] = one.reason  # not the name of a file
        if now == seen:
            postponed = 0
        elif seen is not None and busy and postponed < _MAX_POSTPONED:
            postponed += 1
        else:
            try:
                act(seen is None)
            except StoreLocked:
                pass  # another writer holds the lock for long: the next check finds the same changes
            else:
                seen, postponed = now, 0
        if stop():
            return
        sleep(seconds)
