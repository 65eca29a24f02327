"""The protocol between a ChunkStore and the place that stores its chunks: a folder of files or a database.

A backend decides nothing about chunks: ids, revisions, validation and the audit log's wording belong to the store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rlm_mem.results import Progress
from rlm_mem.store.core.records import ACTIVE

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.backup_archive import BackupInfo
    from rlm_mem.store.core.brain_files import BrainFiles
    from rlm_mem.store.core.changes import WriteTransaction
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
        SyncReport,
        Vacuumed,
        Version,
    )

_T = TypeVar("_T")


class IndexQueries(Protocol):
    """Queries that the index alone answers, each for one namespace (see ``store.local.queries``)."""

    def namespaces(self) -> list[tuple[str, int]]: ...
    def any_term(self, namespace: str, terms: Collection[str]) -> str | None: ...
    def next_term(self, namespace: str) -> int: ...
    def terms_before(self, namespace: str, terms: Collection[str], number: int) -> set[str]: ...
    def list_places(self, namespace: str, wanted: ListFilter) -> list[tuple[str, float, int]]: ...
    def list_summaries(self, namespace: str, wanted: ListFilter) -> list[Summary]: ...
    def summaries(self, namespace: str, ids: Sequence[str]) -> list[Summary]: ...
    def states(
        self, namespace: str, after: int = 0, limit: int = 1000, *, ids: Sequence[str] | None = None
    ) -> list[ChunkState]: ...
    def linked(
        self, namespace: str, chunk_id: str, *, link_type: str | None, direction: str, limit: int
    ) -> list[LinkedChunk]: ...
    def neighbours(
        self, namespace: str, chunk_id: str, before: int, after: int
    ) -> tuple[list[str], list[str]]: ...
    def with_hash(self, namespace: str, digest: str, conversation_id: str | None) -> str | None: ...
    def with_normalised_hash(self, namespace: str, digest: str, limit: int) -> list[str]: ...
    def known_hashes(self, namespace: str, digests: Collection[str]) -> set[str]: ...
    def linking_to(self, namespace: str, chunk_id: str) -> list[str]: ...
    def tag_counts(self, namespace: str, limit: int | None) -> list[tuple[str, int]]: ...
    def conversations(self, namespace: str, limit: int | None) -> list[ConversationInfo]: ...
    def stats(self, namespace: str) -> dict[str, Any]: ...
    def count_rows(self, table: str, namespace: str) -> int: ...


class Backend(Protocol):
    """Stores chunks and answers index queries."""

    read_only: bool
    is_far: bool  # whether each query takes a round trip to a server

    @property
    def location(self) -> str:
        """The name of the store in messages: its folder, or its DSN without the password."""
        ...

    @property
    def queries(self) -> IndexQueries:
        """The index, as the calling thread sees it now."""
        ...

    def transaction(self, namespace: str) -> AbstractContextManager[WriteTransaction]:
        """Hold the write lock of a namespace (or of the whole store); nests. An exception rolls everything back."""
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether the calling thread is inside ``transaction()``."""
        ...

    def find(self, namespace: str, chunk_id: str) -> ChunkRow | None:
        """The row of a chunk of this namespace, whatever its status."""
        ...

    def locate(self, namespace: str, chunk_id: str) -> ChunkRow | None:
        """The row of a chunk to repair; in a folder of any namespace, since its check covers all of them."""
        ...

    def held_elsewhere(self, namespace: str, chunk_id: str) -> bool:
        """Whether a chunk of another namespace has this id; always False where each namespace has its own ids."""
        ...

    def read(self, row: ChunkRow) -> Chunk | None:
        """The chunk of a row; None if it is gone or does not validate."""
        ...

    def damage(self, namespace: str, chunk_id: str) -> str | None:
        """Why a chunk that is there cannot be read; None if it can, or is not there."""
        ...

    def chunks(
        self, namespace: str, chunk_ids: Sequence[str], *, status: int | None = ACTIVE
    ) -> dict[str, Chunk]:
        """The chunks that exist with this status (None: any) and validate, by id, in the order of ``chunk_ids``."""
        ...

    def id_taken(self, chunk: Chunk) -> bool:
        """Whether anything, readable or not, has this chunk's id."""
        ...

    def count_read(self, namespace: str, chunk_id: str, when: str) -> None:
        """Count one read."""
        ...

    def former_versions(self, namespace: str, chunk_id: str, *, below: int) -> list[Version]:
        """Kept versions with a revision under ``below``, oldest first."""
        ...

    def append_events(self, events: Sequence[dict[str, Any]]) -> None:
        """Add lines to the audit log."""
        ...

    def read_events(
        self,
        *,
        namespace: str,
        since: str | None,
        op: str | None,
        chunk_id: str | None,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Lines of the audit log, oldest first; at most the newest ``limit``."""
        ...

    def latest_event(self, namespace: str, operations: frozenset[str]) -> dict[str, Any] | None:
        """The newest audit log line of one of these operations; None if a cheap search of recent lines finds none."""
        ...

    def files(
        self, namespace: str, *, actor: str | None = None, clock: Callable[[], datetime] | None = None
    ) -> BrainFiles:
        """The files of the namespace other than its chunks; writes inside a transaction belong to it.

        Args:
            actor, clock: who changes them, and the time, for change records.
        """
        ...

    def status(self, namespace: str) -> StoreStatus:
        """Counts that are 0 in a sound store at rest."""
        ...

    def version(self, namespace: str) -> int:
        """A number that grows with every change of a chunk; cheap enough to poll."""
        ...

    def time_of_writing(self, namespace: str, now: datetime) -> datetime:
        """The time of a chunk that is written ``now`` by the clock of this machine, which may have gone back, or differ
        from those of others, by up to ``changes.MOST_OFF``: what is written later should not look older.
        """
        ...

    def clock_fault(self, namespace: str, now: datetime) -> str:
        """How far the clock, which says ``now``, is from what the store can compare it with; empty if not far."""
        ...

    def figures(self) -> dict[str, Any]:
        """Figures that only this kind of backend has."""
        ...

    def checkpoint(self) -> dict[str, Any]:
        """Write what ordinary writes defer, such as access counts."""
        ...

    def write_views(self, *, up_to: int | None = None) -> list[str]:
        """Write the JSON views, unless there are more than ``up_to`` chunks; returns their names."""
        ...

    def sync(self, *, full: bool = False, wait_seconds: float | None = None) -> SyncReport:
        """Index changes that others made to files.

        Args:
            full: look at every file, not only in changed folders.
            wait_seconds: how long to wait for the write lock; None: as long as the settings say.

        Raises:
            StoreLocked: another process writes.
        """
        ...

    def rebuild(self, namespace: str, progress: Progress | None = None) -> SyncReport:
        """Rebuild the index of this namespace, or of the whole store where all namespaces share one index."""
        ...

    def check(self, store: ChunkStore, progress: Progress | None) -> list[Finding]:
        """Find defects of chunks, links and index (see ``integrity.check``); changes nothing."""
        ...

    def mend(self, store: ChunkStore, finding: Finding) -> bool:
        """Repair a defect that only this kind of backend can have; False if nothing can be done about it."""
        ...

    def back_up(
        self,
        store: ChunkStore,
        target: Path,
        *,
        only: str | None = None,
        progress: Progress | None = None,
        source: str = "local",
    ) -> BackupInfo:
        """Write the brain to the new file ``target`` (see ``store.backup.back_up``)."""
        ...

    def vacuum(self, namespace: str, progress: Progress | None = None) -> Vacuumed:
        """Free unneeded space; others can read and write meanwhile."""
        ...

    def rewrite_events(
        self, namespace: str, rewrite: Callable[[dict[str, Any]], dict[str, Any] | None], *, dry_run: bool
    ) -> int:
        """Replace lines of the audit log by what ``rewrite`` returns (None: the line stays); returns how many."""
        ...

    def purge(self, namespaces: Sequence[str]) -> None:
        """Remove all remains of chunks erased in these namespaces from derived data and from free pages and rows."""
        ...

    def stored_bytes(self, namespaces: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """The bytes of every file, or of every row of these namespaces, each after the name of its location."""
        ...

    def candidate_source(self, namespace: str) -> CandidateSource:
        """The index as search sees it at this moment."""
        ...

    def read_ahead(self, chunk: Chunk, reading: Callable[[], object]) -> None:
        """Prepare, inside a transaction, for storing a new chunk: where each query takes a round trip, send at once
        the queries needed for it and those that ``reading`` makes, which runs with empty answers."""
        ...

    def together(self, namespace: str, reading: Callable[[], _T]) -> _T:
        """The result of ``reading``, which makes several queries of one namespace: where each takes a round trip, all
        that do not depend on the answer of another are sent at once. It may be called twice, first with empty answers.
        """
        ...

    def retried(self, ask: Callable[[], _T]) -> _T:
        """The result of ``ask``, which is called again if a derived index turns out to be damaged meanwhile."""
        ...

    def close(self) -> None:
        """Flush, and release everything."""
        ...
