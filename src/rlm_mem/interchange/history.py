"""Exports and imports former versions of chunks and the audit log, only if called with ``history``.

An imported audit log is as trustworthy as its source: an import without ``history`` skips it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.chunk import Chunk, check_namespace
from rlm_mem.chunk.types import lower
from rlm_mem.errors import InputError
from rlm_mem.interchange.adopting import id_if_taken
from rlm_mem.interchange.reading import SourceFile, line_objects, moment
from rlm_mem.interchange.records import (
    ImportedEvent,
    ImportedVersion,
    ImportProblem,
    Record,
    rename_references,
)
from rlm_mem.store.core.contents import NamespaceReader, NamespaceWriter, digest_of
from rlm_mem.store.core.records import IMPORTED
from rlm_mem.store.core.revising import screened_chunk

if TYPE_CHECKING:
    from rlm_mem.interchange.target import ImportTarget
    from rlm_mem.store.core.chunk_store import ChunkStore

FOLDER = "history/"
_EVENTS_PER_WRITE = 500


def exported_versions(store: ChunkStore, listed: Sequence[tuple[str, str, bool]]) -> Iterator[dict[str, Any]]:
    """Yield every kept former version of these chunks (namespace, id, archived), oldest first, an object per line."""
    readers = {namespace: NamespaceReader(store, namespace) for namespace, _, _ in listed}
    for namespace, chunk_id, _ in listed:
        for former in readers[namespace].former(chunk_id):
            yield {"version": former.to_dict()}


def exported_events(store: ChunkStore, namespaces: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield every event of the audit logs, namespace by namespace."""
    for namespace in namespaces:
        for event in NamespaceReader(store, namespace).events():
            yield {"event": event}


def read_history(file: SourceFile) -> Iterator[Record]:
    """Read versions and events from JSON lines."""
    for where, entry in line_objects(file):
        yield record_of(entry, where) or ImportProblem(where, "neither a version nor an event")


def record_of(entry: dict[str, Any], where: str) -> ImportedVersion | ImportedEvent | ImportProblem | None:
    """Return the record on a line; None for a line of another kind."""
    if entry.keys() == {"version"}:
        try:
            chunk = Chunk.from_dict(entry["version"])
            check_namespace(chunk.namespace)
        except (InputError, RecursionError, TypeError, AttributeError) as error:
            return ImportProblem(where, f"a former version that does not validate: {error}")
        return ImportedVersion(chunk, where)
    return _event_record(entry["event"], where) if entry.keys() == {"event"} else None


def _event_record(event: Any, where: str) -> ImportedEvent | ImportProblem:
    at = moment(event.get("ts")) if isinstance(event, dict) else None
    if at is not None and isinstance(event.get("op"), str):
        with suppress(InputError, UnicodeEncodeError):
            check_namespace(event.get("ns"))
            msgspec.json.encode(event)  # lone surrogates cannot be stored
            return ImportedEvent({**event, "ts": at}, where)
    return ImportProblem(where, "an event without time, operation or namespace")


class HistoryAdopter:
    """Writes versions and events to a store that already has the chunks.

    Only ``dry_run``, ``keep_namespaces``, ``secrets`` and ``trust`` of the options apply.
    """

    def __init__(self, target: ImportTarget) -> None:
        self._store, self._report, self._options = target.store, target.report, target.options
        self._renamed, self._planned = target.renamed, target.planned
        self._target = cache(partial(NamespaceWriter, target.store))
        self._read: set[bytes] = set()
        self._pending: list[dict[str, Any]] = []

    def adopt(self, record: ImportedVersion | ImportedEvent) -> None:
        """Add a former version of a chunk that the store has in a later one, or a line of the log that it lacks."""
        if isinstance(record, ImportedVersion):
            self._version(record)
        else:
            self._event(record)

    def _version(self, former: ImportedVersion) -> None:
        chunk = former.chunk
        names = self._renamed.get(chunk.namespace, {})
        rename_references(chunk, names)
        if not self._options.keep_namespaces:
            chunk.namespace = self._store.namespace
        new_id = id_if_taken(chunk)
        if names.get(chunk.id, new_id) != new_id:
            return  # it was recognised as a chunk that has a past of its own
        if new_id in self._planned or self._store.backend.find(chunk.namespace, new_id) is not None:
            chunk.id = new_id
        target = self._target(chunk.namespace)
        if not self._lacks(target, chunk):
            return
        try:
            chunk, found = screened_chunk(chunk, self._store.config.secrets, self._options.secrets)
        except InputError as error:
            self._report.problem(former.where, str(error))
            return
        if self._options.trust is not None:  # an undo may bring this version back
            chunk.metadata.trust = lower(chunk.metadata.trust, self._options.trust)
        self._report.found(found)
        self._report.versions += 1
        if not self._options.dry_run:
            target.keep(chunk)

    def _lacks(self, target: NamespaceWriter, former: Chunk) -> bool:
        """Return whether the store lacks a former version of a chunk that it has, or in a dry run would have."""
        revision = self._planned.get(former.id)
        if revision is None:
            return target.lacks_version(former)
        row = self._store.backend.find(target.namespace, former.id)
        kept = {one.revision for one in target.former(former.id)} | ({row.revision} if row else set())
        return former.revision < revision and former.revision not in kept

    def _event(self, step: ImportedEvent) -> None:
        # Not a change of this memory, so not one that an undo takes for the last.
        rename_references(step, self._renamed.get(step.event["ns"], {}))
        event = {**step.event, IMPORTED: True}
        if not self._options.keep_namespaces:
            event["ns"] = self._store.namespace
        digest = digest_of(event)  # several files of one source may have the same line
        if digest in self._read:
            return
        self._read.add(digest)
        if self._target(str(event["ns"])).lacks_event(event):
            self._report.events += 1
            self._pending.append(event)
            if len(self._pending) >= _EVENTS_PER_WRITE:
                self.flush()

    def flush(self) -> None:
        """Write the pending events, namespace by namespace."""
        pending, self._pending = self._pending, []
        if self._options.dry_run:
            return
        for namespace in dict.fromkeys(event["ns"] for event in pending):
            self._target(namespace).add_events(event for event in pending if event["ns"] == namespace)
