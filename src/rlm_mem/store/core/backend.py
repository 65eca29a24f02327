"""The protocol between a ChunkStore and its storage: a folder of files or a database.

A backend makes no decisions about chunks: ids, revisions, validation and the wording of the audit log belong to the
store.
"""

# ruff: noqa: ARG002 - a method with a body does not use what others do

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rlm_mem.results import Progress
from rlm_mem.store.core.records import ACTIVE, SyncReport

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.backup_archive import BackupInfo
    from rlm_mem.store.core.brain_files import BrainFiles
    from rlm_mem.store.core.changes import Rewriting, WriteTransaction
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.findings import Finding
    from rlm_mem.store.core.lookup import CandidateSource
    from rlm_mem.store.core.records import (
        ChunkRow,
        ChunkState,
        ConversationInfo,
        LinkedChunk,
        ListFilter,
        StoreStatus,
        Summary,
        Vacuumed,
        Version,
    )

_T = TypeVar("_T")


class IndexQueries(Protocol):
    """Queries that the index answers alone, each for the namespace of this name."""

    def namespaces(self) -> list[tuple[str, int]]:
        """Return every namespace with the number of its active chunks: the only query that crosses namespaces.

        Raises:
            ServerAway: some of several servers did not respond; the error has the namespaces of the others.
        """

    def any_term(self, namespace: str, terms: Collection[str]) -> str | None:
        """Return one of these terms that is in the dictionary, else None; it may occur in deleted chunks only."""

    def next_term(self, namespace: str) -> int:
        """Return the lowest number that a term not yet in the dictionary can get."""

    def terms_before(self, namespace: str, terms: Collection[str], number: int) -> set[str]:
        """Return those of these terms whose dictionary number is below ``number``; possibly of deleted chunks only."""

    def list_places(self, namespace: str, wanted: ListFilter) -> list[tuple[str, float, int]]:
        """Return the ids that pass the filter, each with its sort key: time and insertion number."""

    def list_summaries(self, namespace: str, wanted: ListFilter) -> list[Summary]:
        """Return summaries of the active chunks that ``list_places`` lists."""

    def summaries(self, namespace: str, ids: Sequence[str]) -> list[Summary]:
        """Return summaries of active chunks in the order of ``ids``; unknown ids are left out."""

    def states(
        self, namespace: str, after: int = 0, limit: int = 1000, *, ids: Sequence[str] | None = None
    ) -> list[ChunkState]:
        """Return the next chunks, active and archived, in order of insertion; or those with these ids."""

    def linked(
        self, namespace: str, chunk_id: str, *, link_type: str | None, direction: str, limit: int
    ) -> list[LinkedChunk]:
        """Return links of a chunk to and from active chunks of its namespace, strongest then newest."""

    def neighbours(
        self, namespace: str, chunk_id: str, before: int, after: int
    ) -> tuple[list[str], list[str]]:
        """Return the ids before and after a chunk in its conversation, both in order of time."""

    def with_hash(self, namespace: str, digest: str, conversation_id: str | None) -> list[str]:
        """Return active chunks with exactly this content in this conversation (None: in none), newest first."""

    def with_normalised_hash(self, namespace: str, digest: str, limit: int) -> list[str]:
        """Return active or rejected chunks whose normalised content has this hash, newest first."""

    def known_hashes(self, namespace: str, digests: Collection[str]) -> set[str]:
        """Return which of these normalised hashes active or rejected chunks have."""

    def linking_to(self, namespace: str, chunk_id: str) -> list[str]:
        """Return the ids of active chunks of the namespace that link to ``chunk_id``."""

    def tag_counts(
        self, namespace: str, limit: int | None, *, among: Collection[str] | None = None
    ) -> list[tuple[str, int]]:
        """Return tags of active chunks with their number of chunks, the most frequent first; only those ``among``."""

    def conversations(self, namespace: str, limit: int | None) -> list[ConversationInfo]:
        """Return conversations of active chunks, the one with the newest chunk first."""

    def stats(self, namespace: str) -> dict[str, Any]:
        """Return totals, which every write updates, so that reading them costs the same at any store size."""

    def count_rows(self, table: str, namespace: str) -> int:
        """Return the number of distinct ``tags``, ``conversations`` or ``links`` of a namespace."""


class Backend(Protocol):
    """Stores chunks and answers index queries.

    The methods with a body are those that a backend may inherit: what it needs of them is done elsewhere, or nothing.
    """

    read_only: bool
    is_far: bool  # whether each query requires a round trip to a server
    # How often a read or a check in between indexed changes that other programs made to files.
    caught_up: int = 0

    @property
    def clone(self) -> str | None:
        """The id of this copy of the brain, if others may be merged into it, as by git."""
        return None

    @property
    def location(self) -> str:
        """The name of the store in messages: its folder, or its DSN without the password."""

    @property
    def queries(self) -> IndexQueries:
        """The index queries, as the calling thread sees the index now."""

    def transaction(self, namespace: str) -> AbstractContextManager[WriteTransaction]:
        """Take the write lock of a namespace or of the whole store; nests. An exception rolls everything back."""

    @property
    def in_transaction(self) -> bool:
        """Whether the calling thread is inside ``transaction()``."""

    def find(self, namespace: str, chunk_id: str) -> ChunkRow | None:
        """Return the row of a chunk of this namespace, active or archived."""

    def locate(self, namespace: str, chunk_id: str) -> ChunkRow | None:
        """Return the row of a chunk to repair; in a folder, of any namespace, since its check covers all of them."""
        return self.find(namespace, chunk_id)

    def held_elsewhere(self, namespace: str, chunk_id: str) -> bool:
        """Return whether another chunk has the id, in another namespace or case, and both cannot be in this store."""
        return False

    def read(self, row: ChunkRow) -> Chunk | None:
        """Return the chunk of a row; None if it no longer exists or does not validate."""

    def damage(self, namespace: str, chunk_id: str) -> str | None:
        """Return why an existing chunk cannot be read; None if it can, or does not exist."""

    def damaged_ids(self) -> list[str]:
        """Return the ids, by the names of their files, of chunks that cannot be read and that no listing has."""
        return []

    def chunks(
        self, namespace: str, chunk_ids: Sequence[str], *, status: int | None = ACTIVE
    ) -> dict[str, Chunk]:
        """Return the valid chunks with this status (None: any), by id, in the order of ``chunk_ids``."""

    def id_taken(self, chunk: Chunk) -> bool:
        """Return whether a chunk, readable or not, has this chunk's id."""

    def count_read(self, namespace: str, chunk_id: str, when: str) -> None:
        """Count one read."""

    def former_versions(self, namespace: str, chunk_id: str, *, below: int) -> list[Version]:
        """Return the kept versions with a revision below ``below``, oldest first."""

    def versioned(self, namespace: str) -> list[str]:
        """Return the ids of chunks with former versions; in a folder also those of other namespaces."""

    def append_events(self, events: Sequence[dict[str, Any]]) -> None:
        """Append events to the audit log.

        Raises:
            StorageError: they cannot be written.
        """

    def read_events(
        self, *, namespace: str, since: str | None, op: str | None, chunk_id: str | None,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        """Yield events of the audit log, oldest first; with ``limit``, only the newest."""

    def latest_event(self, namespace: str, operations: frozenset[str]) -> dict[str, Any] | None:
        """Return the newest event of one of these operations; None if a cheap search of recent events finds none."""

    def files(
        self, namespace: str, *, actor: str | None = None, clock: Callable[[], datetime] | None = None
    ) -> BrainFiles:
        """Return the brain files of the namespace; writes inside a transaction belong to it.

        Args:
            actor, clock: who changes them, and the current time, for change records.
        """

    def status(self, namespace: str) -> StoreStatus:
        """Return counts that are 0 in a sound store at rest."""

    def version(self, namespace: str) -> int:
        """Return a number that grows with every change of a chunk of the namespace; cheap enough to poll."""

    def time_of_writing(self, namespace: str, now: datetime) -> datetime:
        """Return the time to record for a chunk written now, so that later writes do not look older.

        ``now`` is from the clock of this machine, which may have been set back, or differ from those of others, by
        up to ``changes.MAX_OFF``.
        """

    def clock_fault(self, namespace: str, now: datetime) -> str:
        """Describe how far the clock reading ``now`` is from the store's reference; empty if it is not far."""

    def figures(self) -> dict[str, Any]:
        """Return figures that only this kind of backend has."""

    def checkpoint(self) -> dict[str, Any]:
        """Write data that ordinary writes defer, such as access counts."""

    def write_views(self, *, up_to: int | None = None) -> list[str]:
        """Write the JSON views, unless there are more than ``up_to`` chunks; return their names."""
        return []

    def sync(self, *, full: bool = False, wait_seconds: float | None = None) -> SyncReport:
        """Index changes that other programs made to files.

        Args:
            full: check every file, not only those in changed folders.
            wait_seconds: how long to wait for the write lock; None: as configured.

        Raises:
            StoreLocked: another process writes.
        """
        return SyncReport()

    def rebuild(self, namespace: str, progress: Progress | None = None) -> SyncReport:
        """Rebuild the index of this namespace, or of the whole store if all namespaces share one index."""

    def check(self, store: ChunkStore, progress: Progress | None) -> list[Finding]:
        """Check chunks, links and index for defects (see ``integrity.check``); changes nothing."""

    def mend(self, store: ChunkStore, finding: Finding) -> bool:
        """Repair a defect that only this kind of backend can have; False if it cannot be repaired."""

    def back_up(
        self, store: ChunkStore, target: Path, *, only: str | None = None, progress: Progress | None = None,
        source: str = "local",
    ) -> BackupInfo:  # fmt: skip
        """Write a backup of the brain to the new file ``target`` (see ``store.backup.back_up``)."""

    def vacuum(self, namespace: str, progress: Progress | None = None) -> Vacuumed:
        """Free unneeded space; others can read and write meanwhile."""

    def rewrite_events(self, namespace: str, rewriting: Rewriting, *, dry_run: bool) -> int:
        """Replace events of the audit log by what ``rewriting`` makes of them; return how many."""

    def rewrite_stray_events(
        self, namespaces: Collection[str], rewriting: Rewriting, *, dry_run: bool
    ) -> int:
        """As ``rewrite_events``, for lines that cannot be read or are of none of these namespaces."""
        return 0

    def damaged_texts(self, namespaces: Collection[str]) -> Iterator[tuple[str, str, bytes]]:
        """Yield what is stored of chunks and former versions that do not validate: namespace, chunk id and bytes.

        The namespace is empty if it is unknown. Chunk files that do not validate are left out: ``figures`` counts them.
        """

    def stray_versions(self) -> Iterator[tuple[str, list[Chunk]]]:
        """Yield the ids of chunks that no longer exist, in any namespace, each with its former versions."""
        yield from ()

    def erase_stray_versions(self, namespace: str, chunk_ids: Sequence[str]) -> None:
        """Delete the versions that ``stray_versions`` returned for these chunks."""

    def purge(self, namespaces: Sequence[str], *, rebuild: bool = True) -> None:
        """Remove all traces of chunks erased in these namespaces from derived data and from free pages and rows.

        Without ``rebuild``, the index must hold nothing of them but what it held for their rows.
        """

    def stored_bytes(self, namespaces: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the bytes of every file, or of every row of these namespaces, each after the name of its location.

        Those of a large file come in several pieces, which overlap and are cut between words.
        """

    def candidate_source(self, namespace: str) -> CandidateSource:
        """Return the index for one search, as of now."""

    def read_ahead(self, chunk: Chunk, reading: Callable[[], object]) -> None:
        """Prefetch the results of the queries for storing a new chunk, in one round trip inside a transaction.

        The queries that ``reading`` makes are included; it runs with empty answers. Does nothing if queries require
        no round trip.
        """
        return

    def together(self, namespace: str, reading: Callable[[], _T]) -> _T:
        """Return the result of ``reading``, sending its independent queries at once if queries require round trips.

        All queries are of one namespace. ``reading`` may be called twice, first with empty answers.
        """
        return reading()

    def retried(self, ask: Callable[[], _T]) -> _T:
        """Return the result of ``ask``, called again if an index was damaged, or caught up with files meanwhile."""
        return ask()

    def close(self) -> None:
        """Flush buffers and release all resources."""
