"""Syncs the memory with a folder of documents: changed files supersede chunks, removed files archive them.

A sync reads the changed files without a lock. Then it applies the changes in transactions of bounded size, which
check each file and the record again before they write. Files that changed in between, or that another process
recorded, are left for the next round. All transactions of a sync are one change, which can be undone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from time import monotonic

from rlm_mem.errors import InputError
from rlm_mem.ingest.filling import AnalysisTask
from rlm_mem.interchange.documents import (
    AnalysedDocument,
    ChangedDocument,
    DocumentReader,
    NotText,
    SyncOptions,
    ready_text,
)
from rlm_mem.interchange.folder_links import MAX_LOCK_SECONDS, link_some, relinked
from rlm_mem.interchange.folder_names import FolderName
from rlm_mem.interchange.folder_plan import FileChange, NewFile, groups, number_emptied, plan, with_renames
from rlm_mem.interchange.folder_record import FileEntry, FolderRecord
from rlm_mem.interchange.folder_writing import MAX_LISTED, DocumentWriter
from rlm_mem.interchange.places import Entry, FolderPlace, Unreadable
from rlm_mem.interchange.reading import clean
from rlm_mem.interchange.records import ImportProblem
from rlm_mem.interchange.report import FolderReport
from rlm_mem.interchange.target import WriteTarget
from rlm_mem.results import Progress
from rlm_mem.store.core.preencoding import preencoded_segments

_PIECES_PER_COMMIT = 600
_ROUNDS = 20
_WHOLE = "."  # the folder, as a path in it


class FolderSync:
    """One sync of one folder.

    Args:
        target: the sync is its change, or a part of that.
        options: which folder it is, and how files are stored.
        progress: called with (files done, files in all) as changed files are stored.
    """

    _record: FolderRecord  # as the present round read it

    def __init__(
        self, target: WriteTarget, folder: FolderPlace, options: SyncOptions, progress: Progress | None = None
    ) -> None:
        self._target, self._store, self._ledger = target, target.store, target.ledger
        self.folder, self._options, self._progress = folder, options, progress
        self._root = os.path.abspath(folder.path)  # noqa: PTH100 - links are kept as named
        self._known = FolderName(self._store, self._root, options.known_as)
        self._name = self._known.name
        if options.unrecorded != "new" and options.known_as is None:
            self._known.refuse_taken()
        config = self._store.config
        analysis = AnalysisTask(config.ingest, config.secrets, config.search.language)
        self._reader = DocumentReader(str(folder.path), self._name, options, analysis)
        self._is_written = False
        self._problems: list[ImportProblem] = []
        self._read: dict[str, Entry] = {}
        self._live: dict[str, FileEntry] | None = None
        self.report = FolderReport(clean(self._root), target.dry_run)
        self._writer = DocumentWriter(self._store, self._known, self._reader, self.report)

    @property
    def created(self) -> list[str]:
        """Ids of the first new chunks."""
        return self._writer.created

    def run(self, listed: Callable[[], Iterable[Entry | ImportProblem]]) -> FolderReport:
        """Sync the memory with the files that ``listed`` returns; it is called once per round.

        Recorded files that are not listed are left unchanged, unless they no longer exist. If none exists any more,
        as of a disk that is not mounted, all are kept, no others are added, and that is a problem of the report.

        Raises:
            ConflictError: the documents of a folder without a record are recorded of another one, which is not there.
            StorageError: the store cannot be written; the files processed so far are stored.
        """
        for number in range(_ROUNDS):
            self._problems = []
            self._record = FolderRecord(self._store.files, self._name)
            if self._record.in_conflict and not self._target.dry_run:
                with self._target.changing():
                    self._record.settle()
                self._is_written = True
            if self._options.unrecorded == "follow" and self._known.is_new and number == 0:
                self._follow(list(listed()))
            postponed = self._apply_all(self._changes(list(listed()), first=number == 0))
            if not postponed:
                break
        else:
            self._problems += [
                ImportProblem(path, "it changed each time while it was read") for path in sorted(postponed)
            ]
        if not self._target.dry_run:
            self._link_documents()
            if not self._known.is_noted:
                with self._target.changing():
                    self._known.note()
                self._is_written = True
            self._known.note_machine()
        self._ledger.flush()
        self.report.refused = [ImportProblem(clean(one.where), one.reason) for one in self._problems]
        if self._is_written:
            self.report.change = self._target.change
        self._list()
        return self.report

    def _follow(self, listed: Sequence[Entry | ImportProblem]) -> None:
        """Continue the record of the folder that was moved here, if one was."""
        moved = self._known.moved_from(self._reader.digests(one for one in listed if isinstance(one, Entry)))
        if moved is not None:
            self._known.follow(moved)
            self._name = self._reader.root = self.report.moved_from = moved
            self._record = FolderRecord(self._store.files, moved)

    def _list(self) -> None:
        """Add the currently recorded files and chunks to the report."""
        report = self.report
        if report.dry_run:
            report.files = report.unchanged + len(report.arrived)
        else:
            live = [entry for path, entry in sorted(self._record.live().items()) if path in self._read]
            report.files = len(live)
            ids = dict.fromkeys(piece.id for entry in live for piece in entry.pieces)
            report.chunk_ids = list(ids)[:MAX_LISTED]

    def is_unchanged(self, entry: Entry) -> bool:
        """Return whether a file is unchanged since it was last recorded, by its name, size and times."""
        if self._live is None:
            self._live = FolderRecord(self._store.files, self._name).live()
        known = self._live.get(entry.name)
        return known is not None and self._ledger.mark(self._unit_of(entry)) == f"{entry.mark}={known.digest}"

    def _unit_of(self, entry: Entry) -> str:
        return f"document:{self._root}!{entry.name}"

    # --- detecting changes -----------------------------------------------------------------------------

    def _changes(self, listed: Sequence[Entry | ImportProblem], *, first: bool) -> list[FileChange]:
        live = self._record.live()
        self._writer.recorded = self._record.ids()
        present: dict[str, str] = {}
        self._read = {}
        lost: set[str] = set()
        for entry in listed:
            if isinstance(entry, ImportProblem):
                self._problems.append(entry)
                continue
            self._read[entry.name] = entry
            unit = self._unit_of(entry)
            mark, _, digest = (self._ledger.mark(unit) or "").partition("=")
            if mark != entry.mark or not digest or entry.name not in live:
                try:
                    digest = self._reader.digest(entry)
                except Unreadable as error:
                    self._problems.append(ImportProblem(entry.name, str(error)))
                    if isinstance(error, NotText):
                        lost.add(entry.name)  # the file is no longer text
                    continue
                if entry.settled:
                    self._ledger.note(unit, f"{entry.mark}={digest}")
            present[entry.name] = digest
        if self._options.unrecorded == "ask" and self._known.is_new and first:
            self._known.refuse_known(present.values())
        lost = {path for path in live if path not in present and (path in lost or self._is_missing(path))}
        changes = plan(live, self._record.archived(), present, lost)
        if first and any(one.former is not None for one in changes):
            self._known.refuse_another_machine()
        changed = {change.path for change in changes}
        unchanged = [path for path in present if path not in changed]
        if self._options.again and first:
            changes += [FileChange(path, live[path], present[path]) for path in unchanged]
        elif first:
            self.report.unchanged = len(unchanged)
        return changes

    def _is_missing(self, path: str) -> bool:
        """Return whether a file does not exist; False if its state cannot be read."""
        try:
            return self.folder.entry(path) is None
        except (OSError, ValueError):
            return False

    # --- applying changes ------------------------------------------------------------------------------

    def _apply_all(self, changes: list[FileChange]) -> set[str]:
        """Apply the changes; return the paths that have to be checked again in the next round."""
        postponed: set[str] = set()
        lot: list[list[ChangedDocument]] = []
        weight = 0
        changes = self._with_renames(changes)
        emptied = 0 if self._options.archive_all else number_emptied(changes, self._record.live(), self._read)
        if emptied:
            reason = f"none of its {emptied:,} documents is there: all are kept, and none is added"
            reason += " (remember --folder PATH --archive-all archives them)"
            self._problems.append(ImportProblem(_WHOLE, reason))
            self.report.failed.append(_WHOLE)
            changes = []  # with a new document, the next sync would take the others for removed one by one
        gathered = groups(changes)
        texts = self._texts(change for group in gathered for change in group)
        for number, group in enumerate(gathered, 1):
            documents = [self._prepared(change, texts) for change in group]
            lot.append(documents)
            weight += sum(document.weight for document in documents)
            if weight >= _PIECES_PER_COMMIT or number == len(gathered):
                postponed |= self._commit(lot)
                lot, weight = [], 0
                if self._progress:
                    self._progress(number, len(gathered))
        return postponed

    def _with_renames(self, changes: list[FileChange]) -> list[FileChange]:
        """Pair each new file with the removed file that it continues, renamed and edited; return the merged changes."""
        added = [one for one in changes if one.kind == "added"]
        if not added or not any(one.path is None for one in changes):
            return changes
        read: dict[str, NewFile] = {}
        texts = self._texts(added)
        for change in added:
            text = self._prepared(change, texts).text
            if change.path is not None and text is not None:
                contents = [piece.content for piece, _ in text.ready.pieces]
                read[change.path] = NewFile([digest for digest, _ in text.pieces], contents)
        return with_renames(changes, read, lambda ids: self._store.get_many(ids, track=False))

    def _is_read(self, change: FileChange) -> bool:
        """Return whether the text of the file must be read: its content changed, or is to be stored again."""
        same = change.former is not None and change.former.digest == change.digest
        return not same or (self._options.again and change.kind == "changed")

    def _texts(self, changes: Iterable[FileChange]) -> Iterator[AnalysedDocument]:
        """Yield the texts of the files that must be read, in the order of the changes."""
        files = [
            (self._read[change.path], change.digest)
            for change in changes
            if change.path is not None and self._is_read(change)
        ]
        return self._reader.texts(files, self._store.config.store.processes)

    def _prepared(self, change: FileChange, texts: Iterator[AnalysedDocument]) -> ChangedDocument:
        """Return a change with the text of its file, if that must be read."""
        document = ChangedDocument(change)
        if change.path is None:
            return document
        document.entry = entry = self._read[change.path]
        if not self._is_read(change):
            return document
        found = next(texts)
        document.refused = found.refused
        try:
            document.text = ready_text(self._store, found, self._options)
        except InputError as error:
            document.refused = str(error)
        if document.text is None and document.refused is None:
            # It changed after it was listed: left for the next round
            document.entry = replace(entry, mark="")
        return document

    def _commit(self, lot: list[list[ChangedDocument]]) -> set[str]:
        """Apply some groups of changes in one transaction; return the paths to check again in the next round."""
        postponed: set[str] = set()
        while lot:
            self._writer.report = FolderReport(self.report.folder, self.report.dry_run)
            try:
                done, changed_meanwhile = self._transaction(lot)
            except InputError as error:
                if len(lot) > 1:
                    break
                paths = dict.fromkeys(path for document in lot[0] for path in document.change.paths)
                self._problems += [ImportProblem(path, error.message) for path in paths]
                self.report.failed += map(clean, paths)
                return postponed
            self._problems += self._writer.report.refused
            self.report.add(self._writer.report)
            postponed |= changed_meanwhile
            lot = lot[done:]
        # The store refused one of the groups: apply each in a separate transaction.
        return postponed.union(*(self._commit([group]) for group in lot))

    def _transaction(self, lot: list[list[ChangedDocument]]) -> tuple[int, set[str]]:
        """Apply the first groups of changes; return their number, and the paths to check again in the next round."""
        if self._target.dry_run:
            for document in (one for group in lot for one in group):
                self._writer.apply(document)
            return len(lot), set()
        postponed: set[str] = set()
        record, within = self._record, self._store.backend.in_transaction
        texts = (document.text for group in lot for document in group)
        ahead = dict(one for text in texts if text is not None for one in text.ahead())
        done = 0
        with preencoded_segments(ahead), self._target.changing():
            record.refresh(path for group in lot for one in group for path in one.change.paths)
            parts: set[int] = set()
            with self._writer.linking([document for group in lot for document in group]):
                until = monotonic() + MAX_LOCK_SECONDS
                for group in lot:
                    if done and not within and monotonic() > until:
                        break
                    done += 1
                    if not all(self._is_current(document, group) for document in group):
                        postponed.update(path for document in group for path in document.change.paths)
                        continue
                    for document in group:
                        if document.change.former is not None:
                            parts.add(record.remove(document.change.former))
                    for document in group:
                        made = self._writer.apply(document)
                        if made is not None:
                            parts.add(record.put(made))
            record.write(parts)
        self._is_written |= bool(parts)
        return done, postponed

    def _link_documents(self) -> None:
        """Update the links between documents by the record of all files."""
        for number in range(_ROUNDS):
            if number or self._is_written:
                self._record = FolderRecord(self._store.files, self._name)
            changed = relinked(self._record.live())
            if not changed:
                break
            while changed:
                with self._target.changing():
                    done, linked = link_some(self._store, self._record, changed[:_PIECES_PER_COMMIT])
                self.report.chunks_linked += linked
                self._is_written = True
                changed = changed[done:]

    def _is_current(self, document: ChangedDocument, group: Sequence[ChangedDocument]) -> bool:
        """Return whether the file and its record, read under the lock, are unchanged since the change was planned."""
        change, former = document.change, document.change.former
        if former is not None and not self._record.has_entry(former):
            return False
        left = former is not None and not former.archived and former.path != change.path
        if former is not None and left and not any(one.change.path == former.path for one in group):
            # No file of this group has the former path: either it no longer exists, or it is not text.
            entry = self._read.get(former.path)
            if not (
                self._is_missing(former.path)
                or (entry is not None and self._is_unchanged_since_read(entry, None))
            ):
                return False
        if change.path is None:
            return True
        taken = self._record.entry(change.path)
        if taken is not None and all(one.change.former != taken for one in group):
            return False  # another process recorded this file meanwhile
        return document.entry is not None and self._is_unchanged_since_read(document.entry, change.digest)

    def _is_unchanged_since_read(self, entry: Entry, digest: str | None) -> bool:
        """Return whether a file is unchanged since it was read; a recently changed file is read again."""
        try:
            now = self.folder.entry(entry.name)
            if now is None or now.mark != entry.mark:
                return False
            return digest is None or entry.settled or self._reader.digest(now) == digest
        except (Unreadable, OSError, ValueError):
            return False
