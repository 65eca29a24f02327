"""Imports the files at a path into a store, each once, with a report; the source is not changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from functools import cache
from itertools import islice
from pathlib import Path

from rlm_mem.arguments import check_flag
from rlm_mem.chunk import Chunk
from rlm_mem.chunk.types import check_trust
from rlm_mem.config import SecretAction, locate
from rlm_mem.errors import InputError, NotFoundError
from rlm_mem.interchange.adopting import Adopter
from rlm_mem.interchange.brain_files import PASSED_OVER, FileAdopter, format_by_place, layout_of
from rlm_mem.interchange.detection import NO_MEMORIES, Detector, format_named, unknown_reason
from rlm_mem.interchange.documents import SyncOptions
from rlm_mem.interchange.folder_sync import FolderSync
from rlm_mem.interchange.folders import NO_FOLDER, SETTLE_SECONDS, UnreportedProblems, watch_entries
from rlm_mem.interchange.format import HEAD_BYTES, FileHead, Format
from rlm_mem.interchange.formats import instructions
from rlm_mem.interchange.formats.notes import NOTES
from rlm_mem.interchange.history import FOLDER, HistoryAdopter
from rlm_mem.interchange.import_texts import FileReading, TextImporter, text_of
from rlm_mem.interchange.places import Entry, FolderPlace, Place, Unreadable, open_place
from rlm_mem.interchange.reading import SourceFile
from rlm_mem.interchange.records import (
    Asset,
    Dialogue,
    ImportedChunk,
    ImportedEvent,
    ImportedVersion,
    ImportNotice,
    ImportProblem,
    Note,
    Record,
    file_conversation,
    relocate,
)
from rlm_mem.interchange.report import ImportOptions, ImportReport
from rlm_mem.interchange.target import ImportTarget
from rlm_mem.interchange.twins import Twins
from rlm_mem.results import Progress
from rlm_mem.store.core.chunk_store import ChunkStore, open_store
from rlm_mem.store.core.records import audit_line
from rlm_mem.telemetry import observed
from rlm_mem.text.secrets import Screened, check_action

_DOCUMENTS = {NOTES.name, instructions.FORMAT.name}
"""Formats whose files are synced if the source is a folder."""
_RECORDS_PER_COMMIT = 500
_CHARS_PER_COMMIT = 250_000
_TEXTS_AT_ONCE = 10_000
"""Maximum number of texts collected before they are analysed (in several processes) and stored (in several
transactions)."""
_CHARS_AT_ONCE = 4_000_000
_PROGRESS_CALLS = 200  # approximate number of calls of a progress function


@observed("import")
def import_source(
    store: ChunkStore,
    path: str | Path,
    *,
    format: str | None = None,
    dry_run: bool = False,
    keep_namespaces: bool = True,
    replace: bool = False,
    again: bool = False,
    history: bool = False,
    duplicates: bool = False,
    label: str | None = None,
    secrets: SecretAction | None = None,
    trust: str | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Import a file, a folder or a zip archive, in any format of docs/spec/interchange.md, Formats.

    It can be stopped at any time and called again: nothing is stored twice. Ids and times of the source are
    kept if they are valid, and mapped otherwise. Memory use is bounded for sources of any size.

    Args:
        store: the target. Notes, chats, and chunks that name no namespace are imported to its namespace.
        format: read every file as this format instead of detecting it.
        dry_run: write nothing, only report the planned changes.
        keep_namespaces: False writes all chunks to the namespace of the store.
        replace: a chunk of the source replaces the one with its id in the store, even if its revision is lower.
        again: also read items that were imported before and have not changed since.
        history: import former versions of chunks and the audit log, if an export has them.
        duplicates: also store chunks of an export that the store has under another id.
        label: name of the source if its path is meaningless, as for an upload.
        secrets: ``redact``, ``keep`` or ``refuse`` keys and passwords; None: ``config.secrets.action``.
        trust: the highest trust that complete chunks may claim for themselves; None: any. Notes and chats are
            trusted as configured for imports.
        progress: called as the source is read.

    Returns:
        a report of the imported items and of the problems. Invalid files are entries of the report, never errors.

    Raises:
        NotFoundError: there is nothing at ``path``. InputError: the archive is damaged, or the format is unknown.
        StorageError: the store cannot be written.
    """
    for what, value in (
        ("dry_run", dry_run), ("keep_namespaces", keep_namespaces), ("replace", replace), ("again", again),
        ("history", history), ("duplicates", duplicates),
    ):  # fmt: skip
        check_flag(value, what)
    format_ = format_named(format) if format else None
    if trust is not None:
        trust = check_trust(trust)
    check_action(secrets)
    place = open_place(path)
    place.label = label
    keep_namespaces = keep_namespaces and not store.confined
    options = ImportOptions(dry_run, keep_namespaces, replace, again, history, duplicates, secrets, trust)
    report = ImportReport(str(place.path) if label is None else label, dry_run)
    quiet = copy(store)
    quiet.on_secret = _ignore_secret
    try:
        _Import(ImportTarget(quiet, options, report), place, format_, progress).all_files()
    finally:
        place.close()
    return report


def import_from_markdown(md_path: str | Path, *, store: ChunkStore | None = None) -> list[Chunk]:
    """Import memories from Markdown: an exported chunk, MERIDIAN memories, notes; a file or a folder.

    Args:
        md_path: the file or folder.
        store: the target; None opens the brain that the command line uses.

    Returns:
        the chunks that were written, as stored; not those that were already there.

    Raises:
        NotFoundError: there is no such path. InputError: nothing in it could be read.
    """
    if store is None:
        with open_store(locate(), actor="import") as opened:
            return import_from_markdown(md_path, store=opened)
    report = import_source(store, md_path)
    if report.problems and not report.read_anything:
        raise InputError(f"{report.problems[0].where}: {report.problems[0].reason}")
    written: dict[str, Chunk] = {}
    for namespace in report.namespaces:  # the file may name other namespaces than the store's own
        written |= store.backend.chunks(namespace, report.chunk_ids, status=None)
    return [written[chunk_id] for chunk_id in report.chunk_ids if chunk_id in written]


def _ignore_secret(_chunk_id: str, _screened: Screened) -> None:
    """Do not log individual secrets: the report counts them."""


class _Import:
    """One import: reads the files of a source in order, and stores their records in lots.

    Args:
        format_: reads every file; None: the format of each is detected.
    """

    def __init__(
        self, target: ImportTarget, place: Place, format_: Format | None, progress: Progress | None
    ) -> None:
        self._target, self._ledger = target, target.ledger
        self._store, self._report, self._options = target.store, target.report, target.options
        self._place, self._format, self._progress = place, format_, progress
        self._entries: list[Entry] = []
        self._names: frozenset[str] = frozenset()
        self._adopter = Adopter(target, Twins(target, cache(self._ids_of_source)))
        self._files = FileAdopter(target)
        self._history = HistoryAdopter(target) if self._options.history else None
        self._texts = TextImporter(target)
        self._documents: FolderSync | None = None
        if isinstance(place, FolderPlace) and place.label is None:
            how = SyncOptions(secrets=self._options.secrets, again=self._options.again, unrecorded="follow")
            self._documents = FolderSync(target, place, how)
        self._detector = Detector(self._report.problem)
        self._waiting: list[tuple[ImportedChunk | Dialogue | Note, FileReading]] = []
        self._waiting_chars = 0
        self._read: list[FileReading] = []
        """Files that were read completely, but are not recorded yet."""
        self._with_chunks: list[tuple[Entry, Format]] = []
        self._layout: str | None = None
        self._done = self._reported = self._total = 0

    # --- files -----------------------------------------------------------------------------------------

    def all_files(self) -> None:
        """Read every file of the source."""
        report, entries = self._report, self._entries
        for found in self._place.entries():
            if isinstance(found, ImportProblem):
                report.problem(found.where, found.reason)
            else:
                entries.append(found)
        self._names = frozenset(entry.name for entry in entries)
        self._layout = layout_of(self._names)
        # A former version needs its chunk in the store, and a file the new ids of those that it names.
        entries.sort(
            key=lambda entry: (
                entry.name.startswith(FOLDER) or format_by_place(entry.name, self._layout) is not None
            )
        )
        self._total = sum(entry.size for entry in entries)
        documents: list[Entry] = []
        for entry in entries:
            before = self._done
            try:
                if self._file(entry):
                    documents.append(entry)
                    continue
            except Unreadable as error:
                report.problem(self._place.name(entry), str(error))
            self._count_bytes(before + entry.size - self._done)
        self._flush()
        self._follow_renamed()
        self._adopter.agree()
        self._join_namespaces()
        if self._documents is not None:
            self._sync_documents(self._documents, documents)
        if self._history is not None:
            self._history.flush()
        self._ledger.flush()
        if not (report.files or report.unchanged_files or report.problem_count):
            report.problem(report.source, "contains nothing that can be imported")
        if not report.dry_run and (report.touched or report.superseded):
            report.change = self._target.change
        report.finished = True

    def _sync_documents(self, sync: FolderSync, documents: Sequence[Entry]) -> None:
        folder, listed = sync.folder, {entry.name: entry for entry in documents}

        def present() -> Iterator[Entry]:
            for name in listed:
                entry = folder.entry(name)
                if entry is not None:
                    yield entry

        found, report = sync.run(present), self._report
        report.documents = found
        touched = len(found.arrived)
        report.files += touched
        if touched:
            report.formats["notes"] = report.formats.get("notes", 0) + touched
        report.unchanged_files += found.unchanged
        for name in ("created", "updated", "superseded", "archived", "restored"):
            setattr(report, name, getattr(report, name) + getattr(found, f"chunks_{name}"))
        report.tokens += found.tokens
        report.add_secrets(found.secrets, found.secrets_hidden)
        report.chunks(self._store.namespace, found.chunks_created, sync.created)
        for problem in (*found.notices, *found.refused):
            report.problem(problem.where, problem.reason)
        self._count_bytes(self._total - self._done)

    def _file(self, entry: Entry) -> bool:
        """Read a file; or return True if it is a note of a folder, which is synced instead."""
        if self._documents is not None and self._format is None and self._documents.is_unchanged(entry):
            return True
        unit = f"file:{os.path.abspath(self._place.path)}!{entry.name}"  # noqa: PTH100 - links are kept as named
        if not self._options.again and self._ledger.mark(unit) == entry.mark:
            self._report.unchanged_files += 1
            return False
        found, head = self._format_of(entry, self._detector)
        if found is None or (found.name == "history" and self._history is None):
            reason = unknown_reason(head) if head else None
            # Pictures and programs among notes are expected; a file that is imported on its own should be readable.
            if reason is None and head and len(self._names) == 1:
                reason = "not of a format that can be imported"
            # An export of chats has files about the account and its settings beside them.
            beside = entry.name.rpartition("/")[0]
            if reason is None or (
                reason is NO_MEMORIES and f"{beside}{'/' * bool(beside)}conversations.json" in self._names
            ):
                self._report.passed_over += 1
            else:
                self._report.problem(self._place.name(entry), reason)
            return False
        if found.name in _DOCUMENTS and self._documents is not None:
            return True
        self._report.files += 1
        self._report.formats[found.name] = self._report.formats.get(found.name, 0) + 1
        reading = FileReading(unit, entry.mark)

        def problem(where: str, reason: str) -> None:
            reading.failed = True
            self._report.problem(where, reason)

        source = self._source(entry)
        source.moved, source.problem = self._count_bytes, problem
        records = 0
        for record in found.read(source):
            records += 1
            if isinstance(record, ImportedChunk) and self._with_chunks[-1:] != [(entry, found)]:
                self._with_chunks.append((entry, found))
            self._take_record(record, reading)
        # An export has an empty file of former versions where no chunk has one.
        may_be_empty = not entry.size and entry.name.startswith(FOLDER)
        if not records and not may_be_empty and not reading.failed:
            problem(source.where, "nothing to remember in it" if entry.size else "empty")
        self._read.append(reading)
        return False

    def _format_of(self, entry: Entry, detector: Detector) -> tuple[Format | None, FileHead | None]:
        """Return the format of a file, None for one that is skipped, and its beginning if that had to be read."""
        if self._format is not None:
            return self._format, None
        name = format_by_place(entry.name, self._layout)
        if name is None:
            head = self._head(entry)
            return detector.detect(head), head
        return (None if name == PASSED_OVER else format_named(name)), None

    def _ids_of_source(self) -> frozenset[str]:
        """Return the ids of the chunks in all files, those that need not be imported again included."""
        detector, found = Detector(), set[str]()
        for entry in self._entries:
            with suppress(Unreadable):  # reported where it is imported
                format_, _ = self._format_of(entry, detector)
                if format_ is not None and format_.name not in _DOCUMENTS:
                    found.update(one.chunk.id for one in self._chunks_in(entry, format_))
        return frozenset(found)

    def _chunks_in(self, entry: Entry, format_: Format) -> Iterator[ImportedChunk]:
        """Yield the chunks of a file, whose problems are reported where it is imported."""
        with suppress(Unreadable):
            for record in format_.read(self._source(entry)):
                if isinstance(record, ImportedChunk):
                    yield record

    def _source(self, entry: Entry) -> SourceFile:
        max_text = self._store.config.ingest.max_content_bytes
        return SourceFile(self._place, entry, self._conversation(entry), max_text, self._names)

    def _follow_renamed(self) -> None:
        """Read the chunks again where ids of some were taken, so that the others name them by their new ids.

        Any chunk may name any other one, so the new ids are only known at the end of the source.
        """
        if not self._target.renamed or self._options.dry_run:
            return
        for entry, format_ in self._with_chunks:
            chunks = self._chunks_in(entry, format_)
            while lot := list(islice(chunks, _RECORDS_PER_COMMIT)):
                with self._target.changing():
                    for record in lot:
                        self._adopter.follow(record)

    def _join_namespaces(self) -> None:
        """Name the namespaces of the change in the log of each, so that an undo in one takes back all of them.

        Only those of one transaction name each other by themselves.
        """
        names, store = sorted(self._adopter.namespaces), self._store
        if len(names) < 2:
            return
        with self._target.changing():
            for name in names:
                with store.backend.transaction(name) as transaction:
                    line = audit_line("import", store.clock(), store.actor, name)
                    transaction.events.append(line | {"change": transaction.change.id})

    def _head(self, entry: Entry) -> FileHead:
        with self._place.open(entry) as handle:
            return FileHead(entry.name, handle.read(HEAD_BYTES), self._folder(entry))

    def _folder(self, entry: Entry) -> str:
        """Return the name of the source folder, or of the folder of a single file; empty for archives and uploads."""
        path = self._place.path.absolute()
        if self._place.label is not None:
            return ""
        if isinstance(self._place, FolderPlace):
            return path.name
        return path.parent.name if path.name == entry.name else ""

    def _conversation(self, entry: Entry) -> str:
        """Return the conversation of a file's chunks, named as by `remember --file`."""
        path = self._place.path.absolute()
        shown = str(path) if self._place.label is None else self._place.label
        if path.is_dir():
            full_name = str(path / entry.name)
        else:
            full_name = shown if path.name == entry.name else f"{shown}!/{entry.name}"
        return file_conversation(self._store if self._place.label is None else None, full_name)

    def _count_bytes(self, count: int) -> None:
        self._done += count
        if self._progress and (
            self._done - self._reported >= self._total // _PROGRESS_CALLS or self._done >= self._total
        ):
            self._reported = self._done
            self._progress(min(self._done, self._total), self._total)

    # --- records ---------------------------------------------------------------------------------------

    def _take_record(self, record: Record, reading: FileReading) -> None:
        if isinstance(record, ImportProblem):
            reading.failed = True
            self._report.problem(record.where, record.reason)
        elif isinstance(record, ImportNotice):
            self._report.notices.append(record)
        elif isinstance(record, Asset):
            self._flush()  # it may name them
            with self._watching(reading):
                self._files.adopt(record)
        elif isinstance(record, ImportedVersion | ImportedEvent):
            if self._history is not None:
                self._flush()  # its chunk may be waiting, or get another id
                with self._watching(reading):
                    self._history.adopt(record)
        else:
            is_chunk = isinstance(record, ImportedChunk)
            relocate(record, self._place.within)
            if self._waiting and is_chunk != isinstance(self._waiting[0][0], ImportedChunk):
                self._flush()
            self._waiting.append((record, reading))
            self._waiting_chars += _size(record)
            most, longest = (
                (_RECORDS_PER_COMMIT, _CHARS_PER_COMMIT) if is_chunk else (_TEXTS_AT_ONCE, _CHARS_AT_ONCE)
            )
            if len(self._waiting) >= most or self._waiting_chars >= longest:
                self._flush()

    @contextmanager
    def _watching(self, reading: FileReading) -> Iterator[None]:
        """Mark a file if it has a problem, or a chunk whose new id others need: it is read and reported again."""
        before = self._report.problem_count, self._adopter.renamed_count
        yield
        reading.failed |= before != (self._report.problem_count, self._adopter.renamed_count)

    def _flush(self) -> None:
        """Store the waiting records, and record the files that were read completely."""
        waiting, self._waiting, self._waiting_chars = self._waiting, [], 0
        if waiting and isinstance(waiting[0][0], ImportedChunk):
            with self._target.changing():
                for record, reading in waiting:
                    with self._watching(reading):
                        if isinstance(record, ImportedChunk):
                            self._adopter.adopt(record)
        elif waiting:
            self._texts.store_all(
                [text_of(one, reading) for one, reading in waiting if not isinstance(one, ImportedChunk)]
            )
        for reading in self._read:
            if not reading.failed:
                self._ledger.note(reading.unit, reading.mark)
        self._read.clear()
        self._ledger.flush()


def _size(record: ImportedChunk | Dialogue | Note) -> int:
    if isinstance(record, ImportedChunk):
        return len(record.chunk.content)
    if isinstance(record, Dialogue):
        return sum(len(message.text) for message in record.messages)
    return len(record.text)


def watch(
    store: ChunkStore,
    folder: str | Path,
    *,
    seconds: float = 2.0,
    on_report: Callable[[ImportReport], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    sleep: Callable[[float], object] = time.sleep,
    settled: float = SETTLE_SECONDS,
) -> None:
    """Import a folder now and whenever files in it are new or changed, until ``stop()`` is true.

    Its notes are synced (``sync_folder``): a changed note supersedes its former text, the chunks of a deleted one
    are archived.

    Args:
        seconds: between two checks of the folder.
        on_report: called after the first import, and after each that changed something or had a new problem;
            ``problems`` then has only the new ones. While the folder does not exist, the memory is not changed.
        stop: called after each check.
        sleep: waits between checks; for tests.
        settled: seconds since its last change after which a file is read.

    Raises:
        InputError: ``folder`` is not a folder. Others as ``import_source``, for the first import.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: only a folder can be watched")
    unreported = UnreportedProblems()

    def import_now(first: bool) -> None:
        try:
            report = import_source(store, folder)
        except NotFoundError:
            if first:
                raise
            report = ImportReport(str(folder))
            report.problem(str(folder), NO_FOLDER)
        report.problems = unreported.of(report.problems)
        report.problem_count = len(report.problems)
        if on_report and (first or report.touched or report.problems):
            on_report(report)

    place = open_place(folder)
    watch_entries(place.entries, import_now, seconds=seconds, stop=stop, sleep=sleep, settled=settled)
