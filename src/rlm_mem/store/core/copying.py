"""Copies a namespace between stores, files or database alike, resumably, and compares the two.

Everything is copied: active and archived chunks with their former versions, the audit log, and the brain's other files
(tiered memories, traces, trajectories, personas). Chunks that the target has in the same state are skipped, so a
copy that was interrupted, or is repeated while the source is written to, only transfers the missing ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_mem.chunk import Chunk, content_hash, encode_chunk
from rlm_mem.errors import ConflictError, InputError, StorageError
from rlm_mem.results import Progress
from rlm_mem.store.core import files as on_disk
from rlm_mem.store.core.backup_archive import STAGING, staging_folder
from rlm_mem.store.core.brain_files import JOURNAL, OF_BRAIN, Runs
from rlm_mem.store.core.changes import TRANSITIONS, UNDO, ChangeRecord, Edit
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.contents import NamespaceReader, NamespaceWriter, digest_of
from rlm_mem.store.core.records import ACTIVE, ChunkState

if TYPE_CHECKING:
    from rlm_mem.store.core.backup_archive import BackupInfo

_MAX_DIFFERENCES = 1_000

BothRuns = tuple[Runs, dict[str | None, Sequence[str]]]
"""Recorded runs of a source and of a target; a copy updates those of the target."""


@dataclass(frozen=True)
class Difference:
    """A difference between two stores; ``what`` is a chunk id, a file name or ``audit log``."""

    what: str
    message: str


@dataclass
class CopyReport:
    """Counts of the items that a copy transferred.

    ``skipped`` lists chunks that cannot be read in the source, ``kept_files`` files that differ and were not
    overwritten: those changed in the target, and those that namespaces of a brain folder share (personas).
    """

    namespace: str
    chunks: int = 0
    already_there: int = 0
    removed: int = 0
    versions: int = 0
    events: int = 0
    files: int = 0
    skipped: list[str] = field(default_factory=list)
    kept_files: list[str] = field(default_factory=list)

    @property
    def changes(self) -> int:
        """Number of items written or removed: 0 if the target had everything."""
        return self.chunks + self.removed + self.versions + self.events + self.files


def copy_namespace(
    source: ChunkStore,
    target: ChunkStore,
    *,
    overwrite: bool = False,
    mirror: bool = False,
    progress: Progress | None = None,
    runs: BothRuns | None = None,
) -> CopyReport:
    """Copy everything in a namespace from one store to another.

    Args:
        source, target: open stores of any kind, bound to the same namespace.
        overwrite: replace chunks and files that the target has in another, not older state, and personas that differ.
        mirror: also remove items from the target that the source does not have.
        progress: called with (chunks done, chunks in all).
        runs: ``runs_of`` both stores, if several of their namespaces are copied; None: they are listed here.

    Raises:
        ConflictError: the target has another, not older state of a chunk, and ``overwrite`` is False; or it is a
            folder that has the chunk in another namespace. Chunks before it have been copied.
        InputError: both are the same store, or bound to different namespaces.
    """
    _check_pair(source, target)
    reader, writer = NamespaceReader(source), NamespaceWriter(target)
    report = CopyReport(source.namespace)
    for page in reader.pages(progress):
        _copy_chunks(reader, writer, _wanted(reader, writer, page, report, overwrite=overwrite), report)
    if mirror:
        report.removed += sum(writer.erase(chunk_id) for chunk_id in list(_extra_ids(reader, writer)))
    report.events += writer.add_events(filter(writer.lacks_event, reader.events()))
    _copy_files(reader, writer, report, runs or runs_of(source, target), overwrite=overwrite, mirror=mirror)
    return report


def runs_of(source: ChunkStore, target: ChunkStore) -> BothRuns:
    """Return the recorded runs of both stores; each folder is listed once for all its namespaces."""
    return source.files.runs(), dict(target.files.runs())


def compare(
    source: ChunkStore, target: ChunkStore, progress: Progress | None = None, *, runs: BothRuns | None = None
) -> list[Difference]:
    """Read both namespaces completely and return the differences (at most 1,000; empty if equal).

    Access counts are not compared: reading changes them. ``runs`` as for ``copy_namespace``.
    """
    _check_pair(source, target)
    source_reader, target_reader = NamespaceReader(source), NamespaceReader(target)
    found: list[Difference] = []
    for page in source_reader.pages(progress):
        found += _page_differences(source_reader, target_reader, page)
        if len(found) >= _MAX_DIFFERENCES:
            return found[:_MAX_DIFFERENCES]
    found += [
        Difference(chunk_id, "is only in the target") for chunk_id in _extra_ids(source_reader, target_reader)
    ]
    source_digests, target_digests = (
        sorted(map(digest_of, one.events())) for one in (source_reader, target_reader)
    )
    if source_digests != target_digests:
        found.append(
            Difference(
                "audit log",
                f"{len(source_digests)} lines, {len(target_digests)} in the target, or other ones",
            )
        )
    found += _file_differences(source_reader, target_reader, runs or runs_of(source, target))
    return found[:_MAX_DIFFERENCES]


def _check_pair(source: ChunkStore, target: ChunkStore) -> None:
    if source.namespace != target.namespace:
        raise InputError(
            f"source and target are of different namespaces, {source.namespace} and {target.namespace}",
            hint="open both with the same namespace",
        )
    if source.backend.location == target.backend.location:
        raise InputError(f"source and target are the same: {source.backend.location}")


# --- chunks ----------------------------------------------------------------------------------------------------------


_TEXT = attrgetter("revision", "content_hash", "modified_at")


def _same(one: ChunkState, other: ChunkState) -> bool:
    return one.status == other.status and bool(_TEXT(one) == _TEXT(other))


def _older(existing: ChunkState, state: ChunkState, source: NamespaceReader) -> bool:
    """Return whether the target has a former state: an earlier revision, or the same one not yet archived.

    An earlier revision that is not the source's own was changed in the target. If the source has not kept that one,
    the times of later ones tell.
    """
    if existing.revision >= state.revision:
        return bool(_TEXT(existing) == _TEXT(state))
    later = [state.modified_at]
    for former in source.former(state.id, state.revision):
        about = former.metadata
        if former.revision == existing.revision:
            return existing.modified_at == about.modified_at and existing.content_hash in (
                about.content_hash,
                content_hash(former.content),
            )
        if former.revision > existing.revision:
            later.append(about.modified_at)
    return existing.modified_at <= min(later)


def _was_deleted(
    existing: ChunkState, state: ChunkState, source: NamespaceReader, target: NamespaceReader
) -> bool:
    """Return whether a chunk that is active in the source was deleted in the target alone."""
    if existing.status == ACTIVE or state.status != ACTIVE:
        return False
    deletion = target.last_deletions.get(state.id)
    return deletion is not None and deletion not in source.all_deletions


def _wanted(
    source: NamespaceReader,
    target: NamespaceWriter,
    page: list[ChunkState],
    report: CopyReport,
    *,
    overwrite: bool,
) -> list[ChunkState]:
    known = target.states([state.id for state in page])
    wanted = []
    for state in page:
        existing = known.get(state.id)
        if existing is not None and _same(state, existing):
            report.already_there += 1
            continue
        if existing is not None and not overwrite:
            fault = None
            if not _older(existing, state, source):
                fault = f"differs in the target (revision {existing.revision}, here {state.revision})"
            elif _was_deleted(existing, state, source, target):
                fault = "was deleted in the target"
            if fault is not None:
                raise ConflictError(
                    f"{state.id} {fault}",
                    hint="copy with overwrite to replace it, or into an empty namespace",
                )
        if existing is None and target.held_elsewhere(state.id):
            raise ConflictError(
                f"{state.id} is the id of another chunk of the target", hint="copy into another folder"
            )
        wanted.append(state)
    return wanted


def _copy_chunks(
    source: NamespaceReader, target: NamespaceWriter, states: list[ChunkState], report: CopyReport
) -> None:
    if not states:
        return
    chunks = source.chunks([state.id for state in states])
    with target.transaction() as transaction:
        active = [chunks[state.id] for state in states if state.status == ACTIVE and state.id in chunks]
        transaction.expect(active)
        for state in states:
            chunk = chunks.get(state.id)
            if chunk is None:
                report.skipped.append(state.id)
                continue
            former = source.former(chunk.id, chunk.revision)
            target.put(chunk, state.status, former)
            report.chunks += 1
            report.versions += len(former)


def _extra_ids(source: NamespaceReader, target: NamespaceReader) -> Iterator[str]:
    for page in target.pages():
        known = source.states([state.id for state in page])
        yield from (state.id for state in page if state.id not in known)


def _page_differences(
    source: NamespaceReader, target: NamespaceReader, page: list[ChunkState]
) -> Iterator[Difference]:
    ids = [state.id for state in page]
    known = target.states(ids)
    source_chunks, target_chunks = source.chunks(ids), target.chunks(ids)
    for state in page:
        message = None
        target_state = known.get(state.id)
        source_chunk, target_chunk = source_chunks.get(state.id), target_chunks.get(state.id)
        if target_state is None:
            message = "is missing in the target"
        elif not _same(state, target_state):
            message = f"has revision {state.revision}, in the target {target_state.revision}, or another status or time"
        elif source_chunk is None or target_chunk is None:
            message = f"cannot be read in the {'source' if source_chunk is None else 'target'}"
        elif _canonical(source_chunk) != _canonical(target_chunk):
            message = "has other contents in the target"
        elif _former_versions(source, source_chunk) != _former_versions(target, target_chunk):
            message = "has other former versions in the target"
        if message is not None:
            yield Difference(state.id, message)


def _former_versions(store: NamespaceReader, chunk: Chunk) -> list[bytes]:
    return [_canonical(former) for former in store.former(chunk.id, chunk.revision)]


def _canonical(chunk: Chunk) -> bytes:
    plain = Chunk.from_dict(chunk.to_dict())
    plain.metadata.access_count, plain.metadata.accessed_at = 0, plain.metadata.created_at
    return encode_chunk(plain)


# --- brain files ------------------------------------------------------------------------------------------------


def _copy_files(
    source: NamespaceReader,
    target: NamespaceWriter,
    report: CopyReport,
    runs: BothRuns,
    *,
    overwrite: bool,
    mirror: bool,
) -> None:
    names, present = source.file_names(runs[0]), set(target.file_names(runs[1]))
    history = _FileHistory(source, target)
    for name in names:
        data, target_data = source.file(name), target.file(name)
        if data is None or data == target_data:
            continue
        if name == JOURNAL:
            missing = target.missing_steps(data)
            if not missing:
                continue
            target.stored.append(name, missing)
        elif target_data is not None and not overwrite and not history.is_former(name, target_data, data):
            report.kept_files.append(name)
            continue
        else:
            target.stored.write(name, data)
        report.files += 1
    if mirror:
        removed = present.difference(names, {JOURNAL})
        report.removed += sum(
            target.stored.remove(name) for name in removed if name.partition("/")[0] not in OF_BRAIN
        )
        present -= removed
    runs[1][target.namespace] = [
        name for name in sorted(present.union(names)) if name.startswith("trajectories/")
    ]


class _FileHistory:
    """Decides whether a file of the target is a former state of the same file of the source.

    It is if replacing it loses nothing: each of its lines is in the source's file or in a change record of the source,
    and no change is in force that was recorded in the target alone. Nothing is, where one of the target's own records
    cannot be read. A persona, which also belongs to other namespaces of a brain folder, never counts as one.
    """

    def __init__(self, source: NamespaceReader, target: NamespaceReader) -> None:
        self._source = source
        self._target = target

    def is_former(self, name: str, target_data: bytes, source_data: bytes) -> bool:
        if name.partition("/")[0] in OF_BRAIN:
            return False
        edits, all_read = self._target_edits
        if not all_read or any(_is_in_force(one, target_data) for one in edits.get(name, ())):
            return False
        unknown = set(target_data.splitlines()).difference(source_data.splitlines())
        return not unknown or unknown.issubset(self._recorded_lines(name))

    def _recorded_lines(self, name: str) -> Iterator[bytes]:
        for edit in self._source_edits[0].get(name, ()):
            for data in (edit.data(edit.before), edit.data(edit.after)):
                yield from (data or b"").splitlines()

    @cached_property
    def _source_edits(self) -> tuple[dict[str, list[Edit]], bool]:
        return _edits(self._source, _records(self._source))

    @cached_property
    def _target_edits(self) -> tuple[dict[str, list[Edit]], bool]:
        return _edits(self._target, sorted(set(_records(self._target)).difference(_records(self._source))))


def _is_in_force(edit: Edit, data: bytes) -> bool:
    """Return whether a file has the state after an edit, of itself or of one of its blocks."""
    before, after = edit.data(edit.before), edit.data(edit.after)
    if edit.block is None:
        return after == data
    return (after is None or after in data) and (before is None or before not in data)


def _records(reader: NamespaceReader) -> list[str]:
    return [name for folder in (UNDO, TRANSITIONS) for name in reader.stored.names(folder, recursive=True)]


def _edits(reader: NamespaceReader, names: Sequence[str]) -> tuple[dict[str, list[Edit]], bool]:
    """Return the edits of each file in these change records, and whether all of the records could be read."""
    found: dict[str, list[Edit]] = {}
    all_read = True
    for name, data in reader.stored.contents(names):
        try:
            for edit in ChangeRecord.decoded(data, name).edits:
                found.setdefault(edit.file, []).append(edit)
        except StorageError:
            all_read = False
    return found, all_read


def _file_differences(
    source: NamespaceReader, target: NamespaceReader, runs: BothRuns
) -> Iterator[Difference]:
    shared = {name for name in target.file_names(runs[1]) if name.partition("/")[0] not in OF_BRAIN}
    for name in sorted(shared.union(source.file_names(runs[0]))):
        source_data, target_data = source.file(name), target.file(name)
        if (source_data or b"") != (target_data or b""):
            missing = "the source" if source_data is None else "the target" if target_data is None else None
            yield Difference(name, f"is not in {missing}" if missing else "has other contents in the target")


# --- backups of stores without a folder ------------------------------------------------------------------------------


def back_up_copies(
    store: ChunkStore,
    namespaces: Sequence[str],
    target: Path,
    snapshot: Callable[[str], AbstractContextManager[object]],
    *,
    progress: Progress | None = None,
    source: str,
) -> BackupInfo:
    """Back up namespaces by copying them to a brain folder, which is packed like any other.

    A backup of a folder or of a database can therefore be restored to either.

    Args:
        store: open, on any of the namespaces.
        target: the new file.
        snapshot: context in which all reads of a namespace are as of one moment.
        progress: called with (done, in all) of the chunks of each namespace, then of files.
        source: the kind of store, for the description.

    Raises:
        InputError: there is a file of that name by now; or two of the namespaces have a chunk of the same id.
        StorageError: something cannot be read or written.
    """
    on_disk.make_folder(target.absolute().parent)
    with staging_folder(target.absolute().parent, STAGING) as scratch, ExitStack() as snapshots:
        scratch.chmod(0o700)
        folder = scratch / "memory"
        for name in namespaces:
            snapshots.enter_context(snapshot(name))
        _refuse_shared_ids(store, namespaces)
        for name in namespaces:
            with ChunkStore(folder, config=store.config, namespace=name) as copied:
                copy_namespace(store.confined_to(name, actor=store.actor), copied, progress=progress)
        snapshots.close()
        first = namespaces[0] if namespaces else None
        with ChunkStore(folder, config=store.config, namespace=first) as copied:
            return copied.backend.back_up(copied, target, progress=progress, source=source)


def _refuse_shared_ids(store: ChunkStore, namespaces: Sequence[str]) -> None:
    """Refuse namespaces that share a chunk id: ids are unique per namespace in a database, per store in a folder."""
    owner: dict[str, str] = {}
    for name in namespaces if len(namespaces) > 1 else ():
        for page in NamespaceReader(store, name).pages():
            for state in page:
                first = owner.setdefault(state.id, name)
                if first != name:
                    raise InputError(
                        f"the namespaces {first} and {name} both have a chunk {state.id}, and one folder cannot",
                        hint="back them up one by one: --namespace NAME",
                    )
