"""Erases a person, a source or a namespace, and returns a report with which the erasure can be verified.

The order makes it safe to kill the process: derived data is erased first (brain files, audit log, change records),
then the chunks by which it is found, then the index. A second run continues; until then, a mark (``erasure_marks``)
tells of it. Of chunks that were named by their ids the mark says which ones, with their fingerprints, and the next
opening for writing finishes it. If a transaction deletes such chunks, the mark is a part of it, and the rest follows
its commit.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rlm_mem.arguments import check_flag, check_function
from rlm_mem.chunk import check_chunk_ids, format_time
from rlm_mem.chunk.types import amount
from rlm_mem.errors import ConflictError, StorageError
from rlm_mem.store.core.brain_files import MIRRORED, SHOWN
from rlm_mem.store.core.contents import NamespaceReader, NamespaceWriter
from rlm_mem.store.core.erasure_checks import checked_name, written_since
from rlm_mem.store.core.erasure_marks import Mark, former_marks, ids_in, mark_of_name, marks
from rlm_mem.store.core.erasure_plan import Plan
from rlm_mem.store.core.erasure_report import ErasureReport, Matcher
from rlm_mem.store.core.records import ARCHIVED
from rlm_mem.store.core.redacting import Redaction

if TYPE_CHECKING:
    from rlm_mem.results import Progress
    from rlm_mem.store.core.changes import WriteTransaction
    from rlm_mem.store.core.chunk_store import ChunkStore

_MEANWHILE = "{} that others wrote meanwhile: erase again"
_TORN = "lines of the audit log that cannot be read, since they may be of any namespace"
_LOT = 200


def erase(
    store: ChunkStore,
    *,
    person: str | None = None,
    source: str | None = None,
    namespace: str | None = None,
    chunk_ids: Sequence[str] | None = None,
    dry_run: bool = True,
    progress: Progress | None = None,
    planned: Callable[[ErasureReport], None] | None = None,
) -> ErasureReport:
    """Erase a person, or everything from a source, in all accessible namespaces of a store; a namespace; or chunks.

    Every chunk, active or archived, that names the person now or in a former version is removed, with its versions,
    links and terms; in other files the name is replaced or the record removed. A source is a conversation, a word of
    ``source``, or a value of provenance such as a path (of a folder, with all below it). For a namespace,
    everything in it is removed, and nothing elsewhere. Chunks are removed with every quotation of them in other files
    and with every record that names them, also if they were deleted before.

    Args:
        person: the name, as a whole word in any case; at least two characters.
        source: the conversation, word or path, exactly.
        namespace: its name, exactly; namespaces below it are not erased.
        chunk_ids: ids of chunks of the store's namespace, active or archived.
        dry_run: only report what would be erased.
        progress: called with (chunks examined, chunks in all).
        planned: called before anything is erased, with a report that lacks only files and events: should the erasure
            be cut off, what it erased can still be verified.

    Raises:
        InputError: not exactly one is given, or the name is too short, too long or not one line.
        ConflictError: within a batch, unless it is a dry run: an erasure cannot be rolled back with the batch.
        StoreReadOnly, StorageError: the store cannot be written; part may be erased, and a second run continues.
    """
    check_flag(dry_run, "dry_run")
    wanted = None if chunk_ids is None else check_chunk_ids(chunk_ids)
    if not dry_run and not store.backend.in_transaction:
        finish_erasure(store)
    name_to_erase = checked_name(person, source, namespace, wanted)
    check_function(progress, "progress")
    report = ErasureReport(
        person=name_to_erase if person is not None else None,
        source=name_to_erase if source is not None else None,
        namespace=namespace,
        at=format_time(store.clock()),
        dry_run=dry_run,
        salt=secrets.token_hex(8),
    )
    plan = Plan.by_search(store, report, progress) if wanted is None else Plan.by_ids(store, report, wanted)
    report.came_from(plan.files)
    if dry_run:
        for name in plan.found:
            _erase_in(store, name, plan)
        _clean_shared(store, plan)
        return report
    if store.backend.in_transaction:
        raise ConflictError("nothing can be erased within a batch", hint="call it after the batch")
    if planned is not None:
        planned(report)
    if wanted is None:
        plan.mark = mark_of_name(store, report, plan.ends)
    else:
        shown = replace(report, files=[], remaining=[])
        plan.mark = Mark(namespace=store.namespace, report=shown, ends=plan.ends)
    plan.mark.write(store)
    with _carrying_out(store, plan.mark):
        _carry_out(store, plan, plan.mark)
    if wanted is None and (others := written_since(store, report, plan.spaces)):
        report.remaining.insert(bool(report.unread), _MEANWHILE.format(amount(others, "memory")))
    return report


def erase_chunk(store: ChunkStore, chunk_id: str) -> bool:
    """Erase one chunk: at once, or in a transaction as soon as that has been committed; False if there is none.

    Raises:
        StoreReadOnly, StorageError: the store cannot be written; after a commit, the next opening finishes the erasure.
    """
    backend, here = store.backend, store.namespace
    if not backend.in_transaction:
        known = NamespaceReader(store).states(check_chunk_ids([chunk_id]))
        return bool(known and erase(store, chunk_ids=[chunk_id], dry_run=False).chunk_ids)
    with backend.transaction(here) as transaction:
        erasures = transaction.change.erasures
        if here not in erasures:
            erasures[here] = _ErasureInTransaction(store, transaction)
        return erasures[here].delete(chunk_id)


class _ErasureInTransaction:
    """Erases the chunks that a transaction deletes, all at once after it: every erasure cleans the whole store."""

    def __init__(self, store: ChunkStore, transaction: WriteTransaction) -> None:
        self._store, self._transaction = store, transaction
        report = ErasureReport(at=format_time(store.clock()), dry_run=False, salt=secrets.token_hex(8))
        self._plan = Plan(store, [store.namespace], {}, Matcher(report))
        self._mark = Mark(namespace=store.namespace, report=report)
        self._ids: set[str] = set()

    def delete(self, chunk_id: str) -> bool:
        """Delete a chunk in the transaction; False if there is none."""
        if chunk_id not in self._ids:
            self._ids.update(check_chunk_ids([chunk_id]))
            self._plan.add([chunk_id])
        return self._store.drop_chunk(chunk_id)

    def record(self) -> None:
        report = self._mark.report
        naming = _archived_naming(NamespaceReader(self._store), self._ids)
        for chunk_id in {one: None for ids in naming.values() for one in ids}:
            self._store.clean_archived(chunk_id)
        report.fingerprints, self._mark.ends = list(self._plan.prints), self._plan.ends
        self._mark.dropped = list(report.chunk_ids)
        self._mark.write(self._store)
        redaction, events = Redaction(self._plan.needles, set(report.chunk_ids)), self._transaction.events
        events[:] = redaction.own_events(events)

    def carry_out(self) -> None:
        _finish(self._store, self._mark, committed=True)


def finish_erasure(store: ChunkStore) -> None:
    """Finish erasures of chunks by their ids that were cut off: the chunks may be gone, and quotations be left."""
    if not store.backend.read_only:
        for mark in marks(store):
            mark.write(store)
            _finish(store, mark)


def settle_damaged(store: ChunkStore, name: str) -> None:
    """Finish the erasure of a damaged mark as far as it says what that was, and remove the mark or set it aside.

    Raises:
        ConflictError: a chunk that it names is still there, which only a person can erase.
    """
    data = store.files.read(name)
    if data is None:
        return
    ids = ids_in(data)
    if left := list(NamespaceReader(store).states(ids)):
        raise ConflictError(
            f"the erasure that was cut off was to erase {', '.join(left)}, still there",
            hint="rlm-mem delete ID --permanent erases it; then repair again, which removes the mark",
        )
    if ids:
        erase(store, chunk_ids=ids, dry_run=False)
    with store.files.transaction():
        if not ids:
            aside = f"archive/damaged/{name.replace('/', '_')}.{store.clock():%Y%m%dT%H%M%S%f}.json"
            store.files.write(aside, data)
        store.files.remove(name)


def _finish(store: ChunkStore, mark: Mark, *, committed: bool = False) -> None:
    with _carrying_out(store, mark, committed=committed):
        _carry_out(store, Plan.of_mark(store, mark), mark)


@contextmanager
def _carrying_out(store: ChunkStore, mark: Mark, *, committed: bool = False) -> Iterator[None]:
    """Hold the mark of an erasure during the block; if that fails, any process may finish it.

    ``committed``: it follows a transaction.
    """
    try:
        with _in_part(committed=committed):
            yield
            store.files.remove(mark.name)
    except BaseException:
        with suppress(StorageError):  # at worst it is finished once this process has ended
            mark.write(store, at_work=False)
        raise


@contextmanager
def _in_part(*, committed: bool) -> Iterator[None]:
    """Say in a store error, instead of that nothing was changed, that part of the erasure may be done.

    ``committed``: the transaction that deleted the chunks was.
    """
    try:
        yield
    except StorageError as error:
        message = error.message.removesuffix(": nothing was changed")
        done, then = "part may be erased", error.hint or "repeat the erasure"
        if committed:
            done = "the change was made, but what else names the deleted chunks may not be erased yet"
            then = "do not repeat the change: the next opening of the memory finishes it"
        raise type(error)(f"{message}: {done}", hint=then) from error


def _carry_out(store: ChunkStore, plan: Plan, mark: Mark) -> None:
    """Erase what was planned; a second run continues where one was cut off."""
    report = plan.report
    former, pending = former_marks(store, mark, report) if mark.named else ({}, False)
    plan.go_on_from([one for one in former.values() if one is not None])
    changed = [name for name in plan.found if _erase_in(store, name, plan)]
    # If an earlier run was killed, it is unknown which namespaces it had changed.
    touched = plan.spaces if pending else changed
    plan.runs = store.files.runs()
    for name in touched:
        plan.redaction(name).end_runs(NamespaceReader(store, name), plan.runs)
    _clean_shared(store, plan)
    if report.chunk_ids or report.files or report.events or pending:
        redaction = plan.redaction()
        for name in touched:
            redaction.drop_undo_records(NamespaceReader(store, name))
        # Of chunks that were read, every row is known.
        store.backend.purge(touched, rebuild=pending or not report.is_by_id)
    for name in former:
        store.files.remove(name)


def _erase_in(store: ChunkStore, name: str, plan: Plan) -> bool:
    """Clean the files and events of a namespace, then erase its chunks; return whether there was anything.

    In a dry run, only add what there is to the report.
    """
    report, redaction, reader = plan.report, plan.redaction(name), NamespaceReader(store, name)
    before = len(report.files) + report.events
    derived = [MIRRORED, f"{SHOWN}.json", *reader.stored.names(SHOWN)]
    redaction.clean_files(reader, [*reader.file_names(plan.runs), *derived])
    report.events += store.backend.rewrite_events(name, redaction, dry_run=report.dry_run)
    if not report.dry_run:
        _drop_chunks(store, reader, plan, redaction)
        redaction.clean_versions(NamespaceWriter(store, name), plan.ends)
        store.backend.erase_stray_versions(name, plan.strays.get(name, ()))
    return bool(plan.found[name]) or len(report.files) + report.events > before


def _drop_chunks(store: ChunkStore, reader: NamespaceReader, plan: Plan, redaction: Redaction) -> None:
    """Delete the chunks of a namespace in lots, each with a note of it in the mark of an erasure by ids."""
    part, mark = store.confined_to(reader.namespace, actor=store.actor), plan.mark
    # What has the id of a chunk that is gone already was made since.
    gone = set(() if mark is None or mark.named else mark.dropped)
    left = [one for one in plan.found[reader.namespace] if one not in gone]
    naming = _archived_naming(reader, set(left))
    for start in range(0, len(left), _LOT):
        lot = left[start : start + _LOT]
        for chunk in reader.chunks(lot).values():
            plan.note_ends(chunk)
        with part.backend.transaction(reader.namespace) as transaction:
            for chunk_id in lot:
                part.drop_chunk(chunk_id)
            for chunk_id in {one: None for target in lot for one in naming.get(target, ())}:
                part.clean_archived(chunk_id)
            if mark is not None:
                mark.dropped += lot
                mark.write(store)
            transaction.events[:] = redaction.own_events(transaction.events)


def _archived_naming(reader: NamespaceReader, ids: set[str]) -> dict[str, list[str]]:
    """Return the archived chunks that link to chunks, or are replaced by them, by the ids of these."""
    found: dict[str, list[str]] = {}
    for page in reader.pages() if ids else ():
        archived = [one.id for one in page if one.status == ARCHIVED]
        for chunk in reader.chunks(archived).values() if archived else ():
            for target in ids.intersection(
                {chunk.metadata.superseded_by, *(link.target_id for link in chunk.links)}
            ):
                found.setdefault(target, []).append(chunk.id)
    return found


def _clean_shared(store: ChunkStore, plan: Plan) -> None:
    """Clean the runs and the lines of the audit log that are of no known namespace."""
    report, redaction = plan.report, plan.redaction()
    redaction.clean_files(NamespaceReader(store), plan.runs.get(None, ()))
    if store.confined:
        report.remaining.append(_TORN)
        return
    known = {*plan.spaces, *plan.found}
    report.events += store.backend.rewrite_stray_events(known, redaction, dry_run=report.dry_run)
