"""Erases a person, a source or a namespace, and returns a report with which the erasure can be verified.

The order makes it safe to kill the process: derived data is erased first (brain files, audit log, change records),
then the chunks by which it is found, then the index. A second run continues; until then, a mark (``erasure_marks``)
tells of it. Of chunks that were named by their ids the mark says which ones, with their
fingerprints, and the next opening for writing finishes it. If a transaction deletes such chunks, the mark is a part of
it, and the rest follows its commit.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from rlm_mem.arguments import check_flag, check_function
from rlm_mem.chunk import (
    Chunk,
    check_chunk_ids,
    format_time,
    normalise_unicode,
)
from rlm_mem.chunk.types import amount
from rlm_mem.errors import ConflictError, StorageError
from rlm_mem.store.core.brain_files import (
    ERASING,
    JOURNAL,
    MIRRORED,
    OF_BRAIN,
    SHOWN,
    Runs,
    is_open_run,
    named_ids,
    own_lines,
    parse_event,
    with_new_ids,
)
from rlm_mem.store.core.changes import TRANSITIONS, UNDO
from rlm_mem.store.core.contents import NamespaceReader, NamespaceWriter, owners
from rlm_mem.store.core.erasure_checks import bears_name, checked_name, written_since
from rlm_mem.store.core.erasure_marks import Ends, Mark, former_marks, mark_of_name, marks
from rlm_mem.store.core.succession import successions
from rlm_mem.store.core.traces import ErasureReport, Fingerprint, Matcher, fingerprints_of

if TYPE_CHECKING:
    from rlm_mem.results import Progress
    from rlm_mem.store.core.changes import WriteTransaction
    from rlm_mem.store.core.chunk_store import ChunkStore

_UNREAD = (
    "{} that cannot be read: rlm-mem store check names them; erase again when they are repaired or removed"
)
_MEANWHILE = "{} that others wrote meanwhile: erase again"
_TORN = "lines of the audit log that cannot be read, since they may be of any namespace"
_PLACEHOLDER = "[erased]"
_GONE = "erased"
"""Stands for the id of an erased chunk in a text or its front matter."""
_LOT = 200
_RECORDS = (TRANSITIONS, UNDO, "trajectories", "system/review", "imports", MIRRORED, SHOWN)


# --- erasing -------------------------------------------------------------------------------------------------------


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
    if wanted is None:
        plan = _planned(store, report, progress)
    else:
        plan = _plan_of(store, report)
        _add_chunks(store, plan, wanted)
        plan = _completed(store, plan)
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
        plan.mark = mark_of_name(store, report)
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
        self._plan = _Plan([store.namespace], {}, Matcher(report))
        self._mark = Mark(namespace=store.namespace, report=report)
        self._ids: set[str] = set()

    def delete(self, chunk_id: str) -> bool:
        """Delete a chunk in the transaction; False if there is none."""
        if chunk_id not in self._ids:
            self._ids.update(check_chunk_ids([chunk_id]))
            _add_chunks(self._store, self._plan, [chunk_id])
        return self._store.drop_chunk(chunk_id)

    def record(self) -> None:
        report = self._mark.report
        report.fingerprints, self._mark.ends = list(self._plan.prints), self._plan.ends
        self._mark.dropped = list(report.chunk_ids)
        self._mark.write(self._store)
        events = self._transaction.events
        events[:] = _of_erasure(events, set(report.chunk_ids))

    def carry_out(self) -> None:
        _finish(self._store, self._mark, committed=True)


def finish_erasure(store: ChunkStore) -> None:
    """Finish erasures of chunks by their ids that were cut off: the chunks may be gone, and quotations be left."""
    if not store.backend.read_only:
        for mark in marks(store):
            mark.write(store)
            _finish(store, mark)


def _finish(store: ChunkStore, mark: Mark, *, committed: bool = False) -> None:
    with _carrying_out(store, mark, committed=committed):
        plan = _plan_of(store, mark.report)
        plan.found = {name: [] for name in plan.spaces} | {mark.namespace: list(mark.report.chunk_ids)}
        plan.prints, plan.ends, plan.mark = dict.fromkeys(mark.report.fingerprints), mark.ends, mark
        _carry_out(store, _completed(store, plan), mark)


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


def _carry_out(store: ChunkStore, plan: _Plan, mark: Mark) -> None:
    """Erase what was planned; a second run continues where one was cut off."""
    report, is_by_id = plan.needles.report, not mark.named
    former, pending = ([], False) if is_by_id else former_marks(store, mark, report)
    changed = [name for name in plan.found if _erase_in(store, name, plan)]
    plan.runs = store.files.runs()
    for name in changed:
        _end_runs(NamespaceReader(store, name), plan.runs, plan.needles, set(plan.found[name]))
    _clean_shared(store, plan)
    if report.chunk_ids or report.files or report.events or pending:
        # If an earlier run was killed, it is unknown which namespaces it had changed.
        touched = plan.spaces if pending else changed
        erased_ids = {one for ids in plan.found.values() for one in ids}
        for name in touched:
            _drop_undo_records(NamespaceReader(store, name), plan.needles, erased_ids)
        # Of chunks that were read, every row is known.
        store.backend.purge(touched, rebuild=pending or not is_by_id)
    for name in former:
        store.files.remove(name)


@dataclass
class _Plan:
    """What an erasure is to remove.

    Attributes:
        spaces: all namespaces that the store reaches.
        runs: the recorded runs of all of them (``BrainFiles.runs``).
        needles: recognises the name and the content.
        found: ids of the chunks, by namespace; each namespace of which anything may be erased is a key.
        strays: those of them that no longer exist, but have former versions.
        versioned: ids of chunks with former versions, in the namespaces of ``found``.
        prints: fingerprints of the chunks, in order.
        ends: the end of the validity of the chunks that they replaced, before that.
        files: the files that the chunks were imported from.
        mark: what is written of the erasure; None for a dry run.
    """

    spaces: list[str]
    runs: Runs
    needles: Matcher
    found: dict[str, list[str]] = field(default_factory=dict)
    strays: dict[str, list[str]] = field(default_factory=dict)
    versioned: set[str] = field(default_factory=set)
    prints: dict[Fingerprint, None] = field(default_factory=dict)
    ends: Ends = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    mark: Mark | None = None


def _planned(store: ChunkStore, report: ErasureReport, progress: Progress | None) -> _Plan:
    """Find what is to be erased; adds the chunks, their fingerprints and what cannot be read to the report."""
    namespace = report.namespace
    report.unread = store.unreadable_files  # indexes files that were corrected meanwhile
    if namespace is not None:
        report.remaining.append("the name of the namespace, in the audit log and in lists of namespaces")
    plan = _plan_of(store, report)
    for name in plan.spaces:
        if namespace in (None, name):
            plan.found[name] = _chosen(NamespaceReader(store, name), plan, progress)
    if namespace is not None and not store.confined:
        plan.found.setdefault(namespace, [])  # it may be named in the audit log only
    _choose_strays(store, plan)
    _choose_damaged(store, plan)
    # Those damaged since are known once all were read.
    report.unread = max(report.unread, store.unreadable_files)
    if report.unread:
        report.remaining.insert(0, _UNREAD.format(amount(report.unread, "chunk file")))
    for name, ids in plan.found.items():
        plan.found[name] = list(dict.fromkeys([*ids, *plan.strays.get(name, ())]))
    report.chunk_ids = [one for ids in plan.found.values() for one in ids]
    report.fingerprints = list(plan.prints)
    _keep_unique(store, plan)
    plan.needles = Matcher(report)  # of the content, too
    return plan


def _plan_of(store: ChunkStore, report: ErasureReport) -> _Plan:
    """Return a plan without any chunk."""
    runs = store.files.runs()
    return _Plan(list(dict.fromkeys([*owners(store, runs), store.namespace])), runs, Matcher(report))


def _add_chunks(store: ChunkStore, plan: _Plan, ids: Sequence[str]) -> None:
    """Add the chunks with these ids, and their fingerprints, to a plan and its report."""
    reader, here = NamespaceReader(store), store.namespace
    for name in (*plan.spaces, here):
        plan.found.setdefault(name, [])
    new = list(dict.fromkeys(ids))
    plan.found[here] += new
    known = set(reader.states(new))
    if len(known) < len(new):
        of_store = ((one, versions[-1].namespace) for one, versions in store.backend.stray_versions())
        strays = [one for one, namespace in of_store if one in new and namespace == here]
        plan.strays.setdefault(here, []).extend(strays)
        known.update(strays)
    for chunk in reader.chunks(new).values():
        _add_prints([chunk, *reader.former(chunk.id)], plan)
        _add_ends(chunk, plan)
        plan.versioned.add(chunk.id)
    plan.needles.report.chunk_ids += [one for one in new if one in known]


def _completed(store: ChunkStore, plan: _Plan) -> _Plan:
    """Return the plan with the fingerprints by which its chunks are recognised."""
    report = plan.needles.report
    report.fingerprints = list(plan.prints)
    # All chunks are read only if a file that stays holds some of the text, which may be that of another chunk.
    if _is_quoted(store, plan, Matcher(report)):
        _keep_unique(store, plan)
    plan.needles = Matcher(report)
    return plan


def _is_quoted(store: ChunkStore, plan: _Plan, needles: Matcher) -> bool:
    for name in plan.spaces:
        reader = NamespaceReader(store, name)
        names = [one for one in reader.file_names(plan.runs) if not one.startswith((UNDO, TRANSITIONS))]
        for _, data in reader.stored.contents(names):
            if next(needles.places(data), None) is not None:
                return True
    return False


def _erase_in(store: ChunkStore, name: str, plan: _Plan) -> bool:
    """Clean the files and events of a namespace, then erase its chunks; return whether there was anything.

    In a dry run, only add what there is to the report.
    """
    report, ids = plan.needles.report, plan.found[name]
    erased_ids, reader = set(ids), NamespaceReader(store, name)
    before = len(report.files) + report.events
    derived = [MIRRORED, f"{SHOWN}.json", *reader.stored.names(SHOWN)]
    _clean_files(reader, [*reader.file_names(plan.runs), *derived], plan.needles, erased_ids)
    report.events += store.backend.rewrite_events(
        name,
        partial(_redacted_event, needles=plan.needles, erased_ids=erased_ids),
        concerns=partial(_concerns, needles=plan.needles, erased_ids=erased_ids),
        dry_run=report.dry_run,
    )
    if not report.dry_run:
        part, mark = store.confined_to(name, actor=store.actor), plan.mark
        gone = set(mark.dropped) if mark is not None else ()  # what has one of these ids now was made since
        left = [one for one in ids if one not in gone]
        for start in range(0, len(left), _LOT):
            lot = left[start : start + _LOT]
            for chunk in reader.chunks(lot).values():
                _add_ends(chunk, plan)
            with part.backend.transaction(name) as transaction:
                for chunk_id in lot:
                    part.drop_chunk(chunk_id)
                if mark is not None and not mark.named:
                    mark.dropped += lot
                    mark.write(store)
                transaction.events[:] = _of_erasure(transaction.events, erased_ids)
        _clean_versions(NamespaceWriter(part, name), erased_ids, plan.ends)
        store.backend.erase_stray_versions(name, plan.strays.get(name, ()))
    return bool(ids) or len(report.files) + report.events > before


def _clean_shared(store: ChunkStore, plan: _Plan) -> None:
    """Clean the runs and the lines of the audit log that are of no known namespace."""
    report, erased_ids = plan.needles.report, {one for ids in plan.found.values() for one in ids}
    _clean_files(NamespaceReader(store), list(plan.runs.get(None, ())), plan.needles, erased_ids)
    if store.confined:
        report.remaining.append(_TORN)
        return
    rewrite = partial(_redacted_line, needles=plan.needles, erased_ids=erased_ids)
    concerns = partial(_concerns, needles=plan.needles, erased_ids=erased_ids)
    report.events += store.backend.rewrite_stray_events(
        {*plan.spaces, *plan.found}, rewrite, concerns=concerns, dry_run=report.dry_run
    )


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


def _drop_undo_records(reader: NamespaceReader, needles: Matcher, erased_ids: set[str]) -> None:
    """Remove records of the change that cleaned the files, since they contain the former content."""
    for name, data in reader.stored.contents(reader.stored.names(UNDO, recursive=True)):
        if needles.report.namespace == reader.namespace or needles.found(data) or named_ids(data, erased_ids):
            reader.stored.remove(name)


def _chosen(reader: NamespaceReader, plan: _Plan, progress: Progress | None) -> list[str]:
    """Return the ids of a namespace's chunks to erase; adds their fingerprints, and what has former versions."""
    ids: list[str] = []
    for page in reader.pages(progress):
        chunks = reader.chunks([state.id for state in page])
        if plan.needles.report.namespace is not None:
            ids += [state.id for state in page if state.id not in chunks]
        for chunk in chunks.values():
            # All versions, also later ones: a file that was put back is older than they are.
            former = reader.former(chunk.id)
            if former:
                plan.versioned.add(chunk.id)
            if _is_erased([chunk, *former], plan):
                ids.append(chunk.id)
    return ids


def _choose_strays(store: ChunkStore, plan: _Plan) -> None:
    """Add the chunks that no longer exist and have former versions to erase, and the fingerprints of these."""
    for chunk_id, versions in store.backend.stray_versions():
        owner = versions[-1].namespace
        if owner in plan.found and _is_erased(versions, plan):
            plan.strays.setdefault(owner, []).append(chunk_id)


def _is_erased(states: list[Chunk], plan: _Plan) -> bool:
    """Return whether a chunk with these states is to be erased; if so, adds their fingerprints to the plan."""
    if plan.needles.report.namespace is None and not any(bears_name(one, plan.needles) for one in states):
        return False
    _add_prints(states, plan)
    return True


def _add_ends(chunk: Chunk, plan: _Plan) -> None:
    for old_id, link in successions(chunk).items():
        plan.ends.setdefault(chunk.id, {})[old_id] = link.extra.get("former_valid_to")


def _add_prints(states: list[Chunk], plan: _Plan) -> None:
    for one in states:
        plan.prints.update(dict.fromkeys(fingerprints_of(plan.needles.report.salt, one.content)))
        about = one.metadata
        if "path" in about.provenance:
            of_file = (about.conversation_id or "").startswith("file:")
            plan.files.add(
                str(about.conversation_id).removeprefix("file:") if of_file else str(about.provenance["path"])
            )


def _choose_damaged(store: ChunkStore, plan: _Plan) -> None:
    """Add chunks with a text or a former version that does not validate and whose bytes name what is erased."""
    needles, report = plan.needles, plan.needles.report
    for namespace, chunk_id, data in store.backend.damaged_texts(plan.found):
        if namespace:
            if report.namespace is not None or needles.names(data):
                plan.found[namespace].append(chunk_id)
        elif not store.confined:
            owner = store.namespace if report.namespace is None else report.namespace
            if needles.names(data) if report.namespace is None else _of_namespace(owner).search(data):
                plan.strays.setdefault(owner, []).append(chunk_id)


def _of_namespace(name: str) -> re.Pattern[bytes]:
    """Return a pattern that finds the namespace in the JSON of a chunk or of a line of the audit log."""
    return re.compile(rb'"(?:ns|namespace)": ?' + re.escape(msgspec.json.encode(name)))


def _keep_unique(store: ChunkStore, plan: _Plan) -> None:
    """Drop fingerprints of text that remaining chunks also contain: it is no trace of the erased ones."""
    report = plan.needles.report
    if not report.fingerprints:
        return
    needles = Matcher(report)
    shared: set[Fingerprint] = set()
    for namespace in plan.spaces:
        reader, erased_ids = NamespaceReader(store, namespace), set(plan.found.get(namespace, ()))
        for page in reader.pages():
            for chunk in reader.chunks([state.id for state in page if state.id not in erased_ids]).values():
                has_former = chunk.id in plan.versioned or namespace not in plan.found
                for one in [chunk, *(reader.former(chunk.id) if has_former else ())]:
                    shared.update(needles.places(one.content.encode("utf-8")))
    report.fingerprints = [one for one in report.fingerprints if one not in shared]


def _clean_files(reader: NamespaceReader, names: list[str], needles: Matcher, erased_ids: set[str]) -> None:
    """Remove or redact files with the name or erased content, or that name erased chunks."""
    report = needles.report
    erase_all = report.namespace is not None
    in_folder = reader.stored.path("system") is not None  # whether namespaces share some files
    shared = (*(f"{folder}/" for folder in OF_BRAIN), JOURNAL) if in_folder else ()
    ordered = sorted(
        (one for one in names if not one.startswith(ERASING)), key=lambda one: one.startswith(UNDO)
    )
    for name, data in reader.stored.contents(ordered):
        record = name.startswith(_RECORDS)
        is_owned = erase_all and not name.startswith(shared)
        mentions = named_ids(data, erased_ids) if record or not erase_all else set()
        steps = own_lines(reader.namespace, data) if erase_all and name == JOURNAL else b""
        found, has_name = needles.found(data), needles.names(name.encode("utf-8"))
        if not (is_owned or steps or mentions or found or has_name):
            continue
        lines = name.endswith(".jsonl")
        report.files.append(f"{reader.namespace}: {'(a name that is erased)' if has_name else name}")
        if report.dry_run:
            continue
        # The rest of a recorded run would not be a record, and without its first line would belong to no namespace.
        run = name.startswith("trajectories/")
        if is_owned or has_name or run or (found and name.endswith(".json")) or (record and not lines):
            reader.stored.remove(name)
        else:
            with reader.stored.transaction():  # what others wrote to it since is not lost
                data = reader.stored.read(name) or b""
                own_steps = set(own_lines(reader.namespace, data).splitlines(keepends=True)) if steps else ()
                data = b"".join(line for line in data.splitlines(keepends=True) if line not in own_steps)
                data = _redacted(data, needles, mentions if lines else set(), by_line=lines)
                if not lines:  # a list of ids stays one
                    gone = "" if name.endswith(".json") else _GONE
                    data = with_new_ids(data, dict.fromkeys(mentions, gone))
                reader.stored.write(name, data)


def _clean_versions(writer: NamespaceWriter, erased_ids: set[str], ends: Ends) -> None:
    """Take links to erased chunks, and replacements by them, out of the former versions of the others.

    Args:
        ends: the end of the validity of a chunk before it was replaced.
    """
    for page in writer.pages() if erased_ids else ():
        with writer.transaction() as transaction:
            for former in (one for state in page for one in writer.former(state.id)):
                by, links = former.metadata.superseded_by, former.links
                former.links = [link for link in links if link.target_id not in erased_ids]
                if by in erased_ids:
                    former.metadata.superseded_by = None
                    former.metadata.valid_to = ends.get(str(by), {}).get(former.id)
                if by in erased_ids or len(former.links) < len(links):
                    transaction.keep(former)


def _end_runs(reader: NamespaceReader, runs: Runs, needles: Matcher, erased_ids: set[str]) -> None:
    """Remove what runs recorded of the chunks before these were deleted, and the records of runs that go on.

    Such a run may have read a chunk that it has not recorded yet; without its file it records no more. One that was
    only begun is of no namespace yet.
    """
    names = [one for one in reader.file_names(runs) if one.startswith("trajectories/")]
    _clean_files(reader, names, needles, erased_ids)
    for name, data in reader.stored.contents([*names, *runs.get(None, ())]):
        if is_open_run(data):
            reader.stored.remove(name)
            needles.report.files.append(f"{reader.namespace}: {name}")


def _redacted(data: bytes, needles: Matcher, erased_ids: set[str], *, by_line: bool) -> bytes:
    """Return the text without the name and erased content; ``by_line``: drop every line that contains any."""
    if by_line:
        lines = data.splitlines(keepends=True)
        return b"".join(one for one in lines if not (needles.found(one) or named_ids(one, erased_ids)))
    kept = []
    for line in data.splitlines(
        keepends=True
    ):  # before the name goes, by which a quotation may be recognised
        is_quoted = next(needles.places(line), None) is not None
        kept.append(f"{_PLACEHOLDER}\n".encode() if is_quoted else line)
    data = b"".join(kept)
    if needles.names(data):  # in the whole text: a line may end within the name
        text = needles.pattern.sub(_PLACEHOLDER, normalise_unicode("NFC", data.decode("utf-8", "replace")))
        data = text.encode("utf-8")
    return data


def _concerns(lines: bytes, needles: Matcher, erased_ids: set[str]) -> bool:
    """Return whether any of these lines of the audit log may have to be rewritten."""
    is_escaped = b"\\u" in lines  # as no line of this program is: what it says shows only when it is parsed
    is_whole = needles.report.namespace is not None or is_escaped
    return is_whole or needles.found(lines) or bool(named_ids(lines, erased_ids))


def _redacted_event(event: dict[str, Any], needles: Matcher, erased_ids: set[str]) -> dict[str, Any] | None:
    """Return an audit event without its data about erased chunks; None: the event is unchanged."""
    ids = [one for one in (event.get("chunk_id"), *(event.get("chunk_ids") or ())) if isinstance(one, str)]
    if needles.report.namespace is not None:
        if event.get("erased") or event.get("op") == "erase":
            return None
    elif event.get("op") == "erase" and "before" not in event:
        return None  # the line of an erasure itself
    elif not needles.found(data := msgspec.json.encode(event)) and (
        erased_ids.isdisjoint(ids) or event.get("erased")
    ):
        return _without_ids(event, erased_ids) if named_ids(data, erased_ids) else None
    return _emptied(event)


def _of_erasure(events: Iterable[dict[str, Any]], erased_ids: set[str]) -> list[dict[str, Any]]:
    """Return the lines that an erasure logs: of an erased chunk only that it was, without the hash of its text.

    ``made``: the same change had created it, so that it does not keep the change from being undone.
    """
    events, kept = list(events), list[dict[str, Any]]()
    made = {event.get("chunk_id") for event in events if event["op"] == "create"}
    for event in events:
        if event.get("chunk_id") not in erased_ids:
            kept.append(_without_ids(event, erased_ids))
        elif event["op"] == "erase":
            line = {name: value for name, value in event.items() if name != "before"}
            kept.append(line | ({"made": True} if event["chunk_id"] in made else {}))
    return kept


def _without_ids(event: dict[str, Any], erased_ids: set[str]) -> dict[str, Any]:
    return {
        name: value for name, value in event.items() if not named_ids(msgspec.json.encode(value), erased_ids)
    }


def _emptied(event: dict[str, Any]) -> dict[str, Any]:
    return {"ts": event.get("ts"), "op": event.get("op"), "ns": event.get("ns"), "erased": True}


def _redacted_line(line: bytes, needles: Matcher, erased_ids: set[str]) -> bytes | None:
    """Return a stray line of the audit log without its data, empty if it cannot be read; None: it is unchanged."""
    event, named = parse_event(line), needles.report.namespace
    if event is not None and (event.get("erased") or (named is not None and event.get("op") == "erase")):
        return None
    of_namespace = named is not None and _of_namespace(named).search(line)
    if not (of_namespace or needles.found(line) or named_ids(line, erased_ids)):
        return None
    return b"" if event is None else msgspec.json.encode(_emptied(event)) + b"\n"
