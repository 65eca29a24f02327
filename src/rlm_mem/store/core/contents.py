"""Reads and writes the contents of a namespace, for copies, database backups, exports and imports.

``NamespaceReader`` and ``NamespaceWriter`` leave out derived data. A chunk is written with its former versions in
one transaction, and existing items are not written again, so an interrupted operation can be repeated and then adds
the missing items.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.chunk import Chunk
from rlm_mem.store.core.brain_files import JOURNAL, Runs, own_lines, parse_event
from rlm_mem.store.core.records import ANY_REVISION, IMPORTED, ChunkState

if TYPE_CHECKING:
    from rlm_mem.results import Progress
    from rlm_mem.store.core.changes import WriteTransaction
    from rlm_mem.store.core.chunk_store import ChunkStore

_PAGE = 500
_EVENTS = 1_000


def owners(store: ChunkStore, runs: Runs | None = None) -> list[str]:
    """Return every namespace that has chunks, files or recorded runs; of a confined store, at most its own.

    ``runs`` is as in ``BrainFiles.everything``.
    """
    found = [name for name, _ in store.namespaces()]
    if not store.confined:
        stored = store.backend.files(store.namespace)
        recorded = stored.runs() if runs is None else runs
        found += [*stored.namespaces(), *(name for name in recorded if name is not None)]
    return list(dict.fromkeys(found))


class NamespaceReader:
    """Reads chunks, former versions, audit log and brain files of one namespace.

    Args:
        store: open, on any namespace of its backend.
        namespace: its name; None: the store's own.
    """

    def __init__(self, store: ChunkStore, namespace: str | None = None) -> None:
        self.namespace = namespace or store.namespace
        self.stored = store.backend.files(self.namespace)
        self.stored.actor, self.stored.clock = store.actor, store.clock
        self._backend = store.backend

    def count(self) -> int:
        """Return the number of chunks, active and archived."""
        stats = self._backend.queries.stats(self.namespace)
        return int(stats["chunk_count"]) + int(stats["archived_count"])

    def pages(self, progress: Progress | None = None) -> Iterator[list[ChunkState]]:
        """Yield the states of all chunks, in order of insertion, a page at a time.

        Args:
            progress: called with (chunks done, chunks in all) after each page.
        """
        total = 0 if progress is None else self.count()
        after = done = 0
        while page := self._backend.queries.states(self.namespace, after, _PAGE):
            yield page
            after, done = page[-1].doc, done + len(page)
            if progress is not None:
                progress(min(done, total), total)

    def states(self, ids: Sequence[str]) -> dict[str, ChunkState]:
        """Return the states of the chunks that exist, by id."""
        return {one.id: one for one in self._backend.queries.states(self.namespace, 0, len(ids), ids=ids)}

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        """Return the chunks that can be read, active or archived, by id."""
        return self._backend.chunks(self.namespace, ids, status=None)

    def former(self, chunk_id: str, below: int = ANY_REVISION) -> list[Chunk]:
        """Return the former versions of a chunk with a revision below ``below``, oldest first."""
        if below <= 1:
            return []
        return [one.chunk for one in self._backend.former_versions(self.namespace, chunk_id, below=below)]

    def versioned(self) -> list[str]:
        """Return the ids of chunks with former versions, perhaps with some of other namespaces."""
        return self._backend.versioned(self.namespace)

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events of the audit log, oldest first, each with its namespace."""
        found = self._backend.read_events(namespace=self.namespace, since=None, op=None, chunk_id=None)
        return ({**event, "ns": self.namespace} for event in found)

    @cached_property
    def last_deletions(self) -> dict[str, bytes]:
        """The hash of the last deletion of each chunk, if the audit log has no later restoration of it."""
        found: dict[str, bytes] = {}
        for event in self.events():
            if event.get("op") == "delete":
                found[str(event.get("chunk_id"))] = digest_of(event)
            elif event.get("op") == "restore":
                found.pop(str(event.get("chunk_id")), None)
        return found

    @cached_property
    def all_deletions(self) -> set[bytes]:
        """The hashes of all deletions in the audit log."""
        return {digest_of(event) for event in self.events() if event.get("op") == "delete"}

    def file_names(self, runs: Runs | None = None) -> list[str]:
        """Return the names of all brain files; ``runs`` as in ``BrainFiles.everything``."""
        return self.stored.everything(self.stored.runs() if runs is None else runs)

    def file(self, name: str) -> bytes | None:
        """Return the content of a file; of the journal shared by a brain folder, only this namespace's lines."""
        data = self.stored.read(name)
        return data if data is None or name != JOURNAL else own_lines(self.namespace, data)


class NamespaceWriter(NamespaceReader):
    """Adds missing contents to a namespace."""

    def transaction(self) -> AbstractContextManager[WriteTransaction]:
        """Open a transaction whose writes become visible together at its end, or not at all."""
        return self._backend.transaction(self.namespace)

    def put(self, chunk: Chunk, status: int, former: Sequence[Chunk] = ()) -> None:
        """Write a chunk unchanged, with its former versions."""
        with self.transaction() as transaction:
            transaction.put(chunk, status=status, keep_version=False)
            for version in former:
                transaction.keep(version)

    def held_elsewhere(self, chunk_id: str) -> bool:
        """Return whether another chunk has the id, and both cannot be in this store."""
        return self._backend.held_elsewhere(self.namespace, chunk_id)

    def lacks_version(self, former: Chunk) -> bool:
        """Return whether the chunk exists in a later revision but lacks this former version."""
        row = self._backend.find(self.namespace, former.id)
        if row is None or row.revision <= former.revision:
            return False
        return all(one.revision != former.revision for one in self.former(former.id, row.revision))

    def keep(self, former: Chunk) -> None:
        """Write a former version of a chunk."""
        with self.transaction() as transaction:
            transaction.keep(former)

    def erase(self, chunk_id: str) -> bool:
        """Delete a chunk with its former versions; False if there is none."""
        with self.transaction() as transaction:
            row = self._backend.find(self.namespace, chunk_id)
            if row is not None:
                transaction.erase(row)
        return row is not None

    def lacks_event(self, event: Mapping[str, Any]) -> bool:
        """Return whether an event is missing from the audit log; each call consumes one occurrence of the event."""
        digest = digest_of(event)
        self._logged[digest] -= 1
        return self._logged[digest] < 0

    @cached_property
    def _logged(self) -> Counter[bytes]:
        return Counter(map(digest_of, self.events()))

    def add_events(self, events: Iterable[dict[str, Any]]) -> int:
        """Append events to the audit log in batches; return how many."""
        events, count = iter(events), 0
        while lines := list(islice(events, _EVENTS)):
            self._backend.append_events(lines)
            count += len(lines)
        return count

    def missing_steps(self, journal: bytes) -> bytes:
        """Return the lines of a journal whose steps are missing from the journal of this namespace."""
        known = set(map(_step, (self.file(JOURNAL) or b"").splitlines()))
        return b"".join(line + b"\n" for line in journal.splitlines() if _step(line) not in known)


def digest_of(event: Mapping[str, Any]) -> bytes:
    """Return a hash of an audit event, equal for equal events, imported or not."""
    made = {name: value for name, value in event.items() if name != IMPORTED}
    return hashlib.blake2b(msgspec.json.encode(made, order="sorted"), digest_size=16).digest()


def _step(line: bytes) -> object:
    named = (parse_event(line) or {}).get("id")
    return named if isinstance(named, str | int) else line
