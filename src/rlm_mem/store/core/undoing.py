"""Undoes a whole change, found in the audit log, in one transaction: chunks and brain files together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import Chunk, content_hash
from rlm_mem.errors import ConflictError, NamespaceError
from rlm_mem.store.core.changes import TRANSITIONS, UNDO, ChangeRecord, is_logged, state_of
from rlm_mem.store.core.records import ACTIVE, IMPORTED, audit_line

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

_OPERATIONS = "create update link unlink delete restore erase undo import edit supersede quarantine release"
"""Operations that count as changes."""
_CHANGES = frozenset(_OPERATIONS.split())
_CHANGED_SINCE = (
    "undo the later changes first, and revert edits made by hand; or undo an earlier change by its id, "
    "which the page Changes of the dashboard shows"
)


@dataclass
class LoggedChange:
    """One change as recorded in the audit log.

    Attributes:
        id: of the transaction; None for an event of an earlier version, which counts as a separate change.
        undoes: the change that it undoes.
    """

    id: str | None
    undoes: str | None
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def at(self) -> str:
        """The time of the change."""
        return str(self.events[-1].get("ts", ""))

    @property
    def clone(self) -> str | None:
        """The clone of the brain in which it was made, if that is known."""
        return self.events[-1].get("clone")

    @property
    def actors(self) -> list[str]:
        """Who made it, as far as that is known."""
        return list(dict.fromkeys(str(one["actor"]) for one in self.events if one.get("actor")))

    @property
    def chunk_ids(self) -> list[str]:
        """The changed chunks, in order."""
        return list(dict.fromkeys(str(one["chunk_id"]) for one in self.events if one.get("chunk_id")))

    @property
    def namespaces(self) -> list[str]:
        """The changed namespaces, if there are several."""
        return sorted({str(name) for one in self.events for name in one.get("namespaces") or ()})

    @property
    def files(self) -> list[str]:
        """The changed brain files."""
        return list(dict.fromkeys(str(name) for one in self.events for name in one.get("files") or ()))


def logged_changes(store: ChunkStore) -> list[LoggedChange]:
    """Return every change of this memory in the audit log of the namespace, newest first, without erased lines."""
    found: dict[str, LoggedChange] = {}
    lines: Iterator[dict[str, Any]] = store.backend.read_events(
        namespace=store.namespace, since=None, op=None, chunk_id=None
    )
    for number, event in enumerate(lines):
        # What an erased line changed is no longer known; an imported one was a change of another memory.
        if event.get("op") not in _CHANGES or event.get("erased") or IMPORTED in event:
            continue
        known = event.get("change")
        key = str(known) if known else f"line {number}"
        if key in found:
            found[key].events.append(event)
        else:
            found[key] = LoggedChange(key if known else None, event.get("undoes"), [event])
    return list(reversed(found.values()))


def changes_in_force(store: ChunkStore) -> Iterator[LoggedChange]:
    """Yield changes that are neither undone nor undo another, newest first."""
    cancelled: set[str] = set()
    for change in logged_changes(store):
        if change.id in cancelled:
            continue
        if change.undoes:
            cancelled.add(change.undoes)
        else:
            yield change


def record_of(store: ChunkStore, change: LoggedChange) -> ChangeRecord | None:
    """Return the change record of files; None if no file was changed.

    Raises:
        ConflictError: it is no longer kept. StorageError: it cannot be read.
    """
    if change.id is None or not change.files:
        return None
    for folder in (UNDO, TRANSITIONS):
        data = store.files.read(f"{folder}/{change.id}.json")
        if data is not None:
            return ChangeRecord.decoded(data, f"the record of the change {change.id}")
    raise ConflictError(f"the record of the change {change.id} is no longer kept, so it cannot be undone")


def why_final(store: ChunkStore, change: LoggedChange) -> str:
    """Return why a change can never be undone, as a sentence; empty if it may be."""
    created = {one.get("chunk_id") for one in change.events if one["op"] == "create" or one.get("made")}
    erased = [str(one.get("chunk_id")) for one in change.events if one["op"] == "erase"]
    gone = next((one for one in erased if one not in created), None)
    if gone is not None:
        return f"{gone} was deleted permanently"
    if change.id is None or not change.files:
        return ""
    kept = any(store.files.exists(f"{folder}/{change.id}.json") for folder in (UNDO, TRANSITIONS))
    return "" if kept else "its record is no longer kept"


def undo_change(store: ChunkStore, change: LoggedChange) -> str:
    """Revert the changes of a transaction to chunks and brain files, in one transaction; return the id of the undo.

    A change of several namespaces, such as a move, is undone in all of them. Tiered memories are undone by the
    continuum, which also updates their mirrors.

    Raises:
        ConflictError: an item was changed since, was deleted permanently, or its former state is no longer kept.
        NamespaceError: it also changed other namespaces, and the store is confined to its own.
    """
    others = [name for name in change.namespaces if name != store.namespace]
    if others and store.confined:
        raise NamespaceError(
            f"this change was made in {', '.join(change.namespaces)}, but this store reaches only {store.namespace}",
            hint="rlm-mem undo, on the command line, undoes it in all of them",
        )
    record = record_of(store, change)
    files = store.files
    parts = {store.namespace: (store, change)}
    for name in others:
        other = store.confined_to(name, actor=store.actor)
        found = next((one for one in logged_changes(other) if one.id == change.id), None)
        if found is not None:  # otherwise the chunk was imported from a store without that namespace
            parts[name] = (other, found)
    with ExitStack() as together:
        for name in sorted(parts):  # in the order in which a move locks them
            together.enter_context(parts[name][0].batch())
        transaction = together.enter_context(files.transaction())
        transaction.change.undoes = change.id
        for edit in reversed(record.edits if record else []):
            if files.read(edit.file) != edit.data(edit.after):
                raise ConflictError(f"{edit.file} was changed since this change", hint=_CHANGED_SINCE)
            before = edit.data(edit.before)
            if before is None:
                files.remove(edit.file)
            else:
                files.write(edit.file, before)
        for part, part_of_change in parts.values():
            _undo_chunks(part, part_of_change)
            if record is None and all(event["ns"] != part.namespace for event in transaction.events):
                # It changed nothing in the end: without a line it would remain the change to be undone.
                line = audit_line("undo", part.clock(), part.actor, part.namespace)
                transaction.events.append(line | {"change": transaction.change.id})
        return transaction.change.id


def _undo_chunks(store: ChunkStore, change: LoggedChange) -> None:
    events = sorted((one for one in change.events if one.get("chunk_id")), key=_chunk)
    by_chunk = {chunk_id: list(lines) for chunk_id, lines in groupby(events, _chunk)}
    for chunk_id in reversed(change.chunk_ids):
        _undo_chunk(store, chunk_id, by_chunk[chunk_id])
    for chunk_id in change.chunk_ids:  # each was restored separately
        store.settle(chunk_id)


def _chunk(event: dict[str, Any]) -> str:
    return str(event["chunk_id"])


def _undo_chunk(store: ChunkStore, chunk_id: str, events: list[dict[str, Any]]) -> None:
    first, last = events[0], events[-1]
    if any(one["op"] == "erase" for one in events):
        if first["op"] == "create" or first.get("made"):
            return
        raise ConflictError(f"{chunk_id} was deleted permanently, which cannot be undone")
    row = store.backend.find(store.namespace, chunk_id)
    active = last["op"] != "delete" and not last.get("archived")
    if last["op"] == "import":  # earlier versions did not log whether it stored the chunk in the archive
        active = not last.get("archived", row is not None and row.status != ACTIVE)
    versions = store.history(chunk_id)
    left = next((one.chunk for one in versions if one.revision == last["revision"]), None)
    if left is not None and left is versions[-1].chunk and not is_logged(left, last):
        raise ConflictError(
            f"the file of {chunk_id} was edited by hand after this change, so that it was changed since",
            hint=_CHANGED_SINCE,
        )
    if (
        row is None
        or (row.status == ACTIVE) != active
        or left is None
        or content_hash(left.content) != last["after"]
        or not _same(versions[-1].chunk, left)
    ):
        raise ConflictError(f"{chunk_id} was changed since this change", hint=_CHANGED_SINCE)
    if first["op"] == "create" or (first["op"] == "import" and first.get("before") is None):
        if active:
            store.delete_chunk(chunk_id)
        return
    if not active:
        store.restore_chunk(chunk_id)
    # A delete or restore leaves the revision unchanged; every other operation raised it.
    revision = first["revision"] - (first["op"] not in ("delete", "restore"))
    former = [one for one in versions if one.revision <= revision]
    if not former:
        raise ConflictError(
            f"the former version of {chunk_id} is not kept any more",
            hint="the setting store.keep_versions says how many are kept",
        )
    if not _same(former[-1].chunk, left):
        store.undo(chunk_id, to_revision=former[-1].revision)
    if first["op"] == "restore":
        store.delete_chunk(chunk_id)


def _same(one: Chunk, other: Chunk) -> bool:
    """Return whether two states of a chunk differ only in revision, time of change and reads."""
    return one.content == other.content and state_of(one) == state_of(other)
