"""Undoes changes of a brain: of chunks, tiered memories, reviews or personas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlm_mem.arguments import check_kind
from rlm_mem.errors import ConflictError, NotFoundError
from rlm_mem.results import RecordedChange, UndoneChange
from rlm_mem.store.core.brain_files import LEDGER, mirror_id, named_ids
from rlm_mem.store.core.records import is_mirror
from rlm_mem.store.core.undoing import (
    LoggedChange,
    changes_in_force,
    logged_changes,
    record_of,
    undo_change,
    why_final,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlm_mem.continuum.changes import Changes
    from rlm_mem.store.core.chunk_store import ChunkStore

_REASON = "undone by hand"


def change_to_undo(
    store: ChunkStore, change_id: str | None = None, *, by: str | None = None
) -> LoggedChange | None:
    """Return the change of this id, or the last one made here that can be undone; None if there is none.

    Args:
        by: of the last changes, only those of this actor; None: those of everybody.

    Raises:
        NotFoundError: there is no change of this id. ConflictError: all that can be undone was made in other clones, or
            by others.
    """
    if change_id is None:
        return _last_change(store, by)
    check_kind(change_id, str, "the id of a change")
    found = next((one for one in logged_changes(store) if one.id == change_id), None)
    if found is None:
        raise NotFoundError(
            f"there is no change {change_id!r:.60}", hint="rlm-mem store events --json lists them"
        )
    return found


def _last_change(store: ChunkStore, by: str | None) -> LoggedChange | None:
    """Return the last change of the namespace by an actor, of this clone if git merged what others changed."""
    own, last, final = store.backend.clone, None, ""
    for change in changes_in_force(store):
        if _only_mirrors(change):
            continue
        is_here = own is None or change.clone == own or (last is None and change.clone is None)
        if is_here and (by is None or by in change.actors):
            if not (why := why_final(store, change)):
                if final:
                    raise ConflictError(
                        final, hint=f"rlm-mem undo {change.id} undoes the change before it, {_named(change)}"
                    )
                return change
            final = final or f"the last change, {_named(change)}, cannot be undone: {why}"
        last = last or change
    if final:
        raise ConflictError(final, hint="no earlier change is left to undo")
    if last is None:
        return None
    actor = "".join(f" by {one}" for one in last.actors[:1])
    what = f"the last change, {_named(last)}{actor}, was made"
    if by is not None and by not in last.actors:
        raise ConflictError(
            f"{what} by somebody else, and none by {by} is left to undo",
            hint=f"name the change to undo it: {last.id}",
        )
    raise ConflictError(
        f"{what} in another clone of this brain, or before this one was restored or its index removed",
        hint=f"rlm-mem undo {last.id} undoes it",
    )


def _named(change: LoggedChange) -> str:
    return f"{', '.join(_ops(change, change.events))} of {change.at[:19]}"


def undo_found(store: ChunkStore, tiers: Changes, found: LoggedChange) -> UndoneChange:
    """Undo a change that :func:`change_to_undo` returned.

    Raises:
        ConflictError: something was changed since, or the former state is no longer stored.
    """
    if found.id is None and _mirrors(found):
        return _undo_unidentified(store, tiers, found)
    record = record_of(store, found)
    if record is None or record.op == "edit":
        step = next((one for one in tiers.journal() if one.get("id") == found.id), None)
        if step is None:
            undone_by = undo_change(store, found)
            _forget_import(store, found)
            for name in set(found.namespaces) - {store.namespace}:
                other = store.confined_to(name, actor=store.actor)
                for part in (one for one in logged_changes(other) if one.id == found.id):
                    _forget_import(other, part)
            return _undone_change(found, undone_by)
        with store.batch():  # a decision that changed no tiered memory, but chunks
            undo_id = undo_change(store, found)
            undone = tiers.draft("undo", str(step.get("entry")), _REASON, [], details={"undoes": found.id})
            undone.id = undo_id
            tiers.log(undone)
        return _undone_change(found, undo_id)
    change = tiers.undo(tiers.load_record(record.file), _REASON)
    return _undone_change(found, change.id, record.op)


def _forget_import(store: ChunkStore, change: LoggedChange) -> None:
    """Remove an undone import from the ledger, so that it can be repeated.

    All lines of files are removed, since the ledger does not record which file a memory came from.
    """
    made = {str(one.get("chunk_id")) for one in change.events if one["op"] in ("create", "import")}
    lines = (store.files.read(LEDGER) or b"").splitlines(keepends=True) if made else []
    from_texts = {line for line in lines if not line.startswith(b'["chunk:') and named_ids(line, made)}
    if from_texts or any(one["op"] == "import" for one in change.events):
        kept = [line for line in lines if line not in from_texts and not line.startswith(b'["file:')]
        if len(kept) < len(lines):
            store.files.write(LEDGER, b"".join(kept), durable=False)


def recorded_changes(store: ChunkStore) -> Iterator[RecordedChange]:
    """Every change of the namespace with an id, newest first, including undos."""
    cancelled: set[str] = set()
    for change in logged_changes(store):
        undone = change.id in cancelled
        if change.undoes and not undone:
            cancelled.add(change.undoes)
        if change.id is None or _only_mirrors(change):
            continue
        mirrors = set(_mirrors(change))
        lines = [one for one in change.events if one.get("chunk_id") not in mirrors]
        yield RecordedChange(
            change.id, change.at, _ops(change, lines),
            tuple(one for one in change.chunk_ids if one not in mirrors), tuple(change.files),
            next((one["actor"] for one in lines if one.get("actor")), None),
            next((one["reason"] for one in lines if one.get("reason")), ""), change.undoes, undone,
        )  # fmt: skip


def _undo_unidentified(store: ChunkStore, tiers: Changes, found: LoggedChange) -> UndoneChange:
    """Undo a change without an id in the log, written by an earlier version, if it is the newest transition."""
    for transition_id in tiers.transitions()[-1:]:
        former = tiers.transition(transition_id)
        mirrors = {mirror_id(store.namespace, edit.file, edit.block) for edit in former.edits}
        if former.op != "undo" and former.at[:19] == found.at[:19] and mirrors & set(found.chunk_ids):
            change = tiers.undo(former, _REASON)
            files = tuple(sorted({edit.file for edit in former.edits}))
            return UndoneChange(transition_id, change.id, former.at, (former.op,), files=files)
    raise ConflictError(
        f"the last change, of {found.at[:19]}, was made by an earlier version, which kept no record of it",
        hint="rlm-mem tier log lists the transitions that can be undone",
    )


def _undone_change(found: LoggedChange, undo_id: str, op: str | None = None) -> UndoneChange:
    mirrors = set(_mirrors(found))
    chunks = tuple(one for one in found.chunk_ids if one not in mirrors)
    ops = (op,) if op else _ops(found, found.events)
    return UndoneChange(found.id, undo_id, found.at, ops, chunks, tuple(found.files))


def _ops(change: LoggedChange, events: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """What a change did; one of several namespaces moved memories from one to another, unless it is an import."""
    ops = tuple(dict.fromkeys(str(one["op"]) for one in events))
    return ("move",) if change.namespaces and not change.undoes and ops != ("import",) else ops


def _mirrors(change: LoggedChange) -> list[str]:
    return [chunk_id for chunk_id in change.chunk_ids if is_mirror(chunk_id)]


def _only_mirrors(change: LoggedChange) -> bool:
    """Whether a change only updated mirrors, after files were edited by hand."""
    return change.id is not None and not change.files and len(_mirrors(change)) == len(change.chunk_ids)
