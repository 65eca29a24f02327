"""Changes of chunks: each a read-modify-write under the lock, with its former version and its line in the audit log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import (
    Chunk,
    ChunkLinks,
    check_chunk_id,
    check_reasoning,
    check_strength,
    format_time,
    new_chunk_id,
)
from rlm_mem.errors import ConflictError, InvalidChunk, InvalidLink
from rlm_mem.store.core.answers import Version
from rlm_mem.store.core.rows import ACTIVE, ARCHIVED, ChunkRow

if TYPE_CHECKING:
    from rlm_mem.chunk import TypeRegistry
    from rlm_mem.store.core.backend import Backend
    from rlm_mem.store.core.changes import WriteTransaction

__all__ = ["Writer"]


class Writer:
    """Writes chunks of one namespace.

    Args:
        backend: where they live.
        namespace: the only one whose chunks exist for this writer.
        types: which chunk and link types may be written.
        clock: the present time.
        actor: who writes, for the audit log.
    """

    def __init__(
        self,
        backend: Backend,
        namespace: str,
        types: TypeRegistry,
        clock: Callable[[], datetime],
        actor: str | None,
    ) -> None:
        self._backend = backend
        self._namespace = namespace
        self._types = types
        self._clock = clock
        self._actor = actor

    def now(self) -> str:
        """The present time as it is stored."""
        return format_time(self._clock())

    # --- finding ---------------------------------------------------------------------------------------

    def row(self, chunk_id: str, status: int = ACTIVE) -> ChunkRow | None:
        """The row of a chunk of this namespace with this status; raises InvalidChunkId."""
        row = self._backend.find(self._namespace, check_chunk_id(chunk_id))
        return row if row is not None and row.status == status else None

    def _read(self, row: ChunkRow | None) -> Chunk | None:
        return self._backend.read(row) if row else None

    # --- create and change -----------------------------------------------------------------------------

    def create(self, chunk: Chunk, *, fixed_id: bool) -> Chunk:
        """Store a checked draft with links of the caller: their targets must exist."""
        with self._backend.transaction(chunk.namespace):
            self._check_targets(chunk.links, chunk.namespace)
            return self.add(chunk, fixed_id=fixed_id)

    def add(self, chunk: Chunk, *, fixed_id: bool = False) -> Chunk:
        """Store a checked draft; a generated id that is taken is drawn anew, a given one is refused."""
        with self._backend.transaction(chunk.namespace) as transaction:
            while self._backend.id_taken(chunk):
                if fixed_id:
                    raise InvalidChunk(
                        f"there is a chunk {chunk.id} already", hint="update it, or leave the id out"
                    )
                chunk.id = new_chunk_id(self._clock())
            transaction.put(chunk)
            self._log(transaction, "create", chunk)
        return chunk

    def adopt(self, chunk: Chunk, *, archived: bool) -> None:
        """Store a complete chunk as it is, in place of the one with its id in its namespace."""
        with self._backend.transaction(chunk.namespace) as transaction:
            row = self._backend.find(chunk.namespace, chunk.id)
            if row is None and self._backend.held_elsewhere(chunk.namespace, chunk.id):
                raise InvalidChunk(f"the id {chunk.id} belongs to a chunk of another namespace")
            former = self._read(row)
            transaction.put(chunk, status=ARCHIVED if archived else ACTIVE)
            self._log(transaction, "import", chunk, former=former)

    def _check_targets(self, links: Sequence[ChunkLinks], namespace: str) -> None:
        for link in links:
            if self._backend.find(namespace, link.target_id) is None:
                raise InvalidLink(f"link target {link.target_id} does not exist in namespace {namespace}")

    def change(
        self, chunk_id: str, revise: Callable[[Chunk], Chunk], *, expected_revision: int | None = None
    ) -> Chunk | None:
        """Replace a chunk by what ``revise`` makes of it; None where there is none, no write where nothing differs.

        Raises:
            ConflictError: the chunk has another revision than ``expected_revision``.
        """
        with self._backend.transaction(self._namespace) as transaction:
            chunk = self._read(self.row(chunk_id))
            if chunk is None:
                return None
            if expected_revision is not None and chunk.revision != expected_revision:
                raise ConflictError(
                    f"{chunk_id} has revision {chunk.revision}, not {expected_revision}: it was changed meanwhile",
                    hint="read it again and repeat the change",
                )
            updated = revise(chunk)
            if updated == chunk:
                return chunk
            known = {link.target_id for link in chunk.links}
            self._check_targets(
                [link for link in updated.links if link.target_id not in known], self._namespace
            )
            return self._put_revision(transaction, chunk, updated, "update")

    def _put_revision(
        self, transaction: WriteTransaction, former: Chunk, updated: Chunk, op: str, **more: Any
    ) -> Chunk:
        updated.revision = former.revision + 1
        # A clock that went back must not make the newer revision look older.
        updated.metadata.modified_at = max(self.now(), former.metadata.modified_at)
        transaction.put(updated)
        self._log(transaction, op, updated, former=former, **more)
        return updated

    # --- delete and restore ----------------------------------------------------------------------------

    def archive(self, chunk_id: str) -> bool:
        """Move a chunk to the archive; False where there is none."""
        with self._backend.transaction(self._namespace) as transaction:
            row = self.row(chunk_id)
            chunk = self._read(row)
            if row is None or chunk is None:
                return False
            transaction.move(chunk, row, ARCHIVED)
            self._log(transaction, "delete", chunk)
            return True

    def erase(self, chunk_id: str) -> bool:
        """Remove a chunk, active or archived, its versions and the links to it; False where there is none."""
        with self._backend.transaction(self._namespace) as transaction:
            row = self.row(chunk_id) or self.row(chunk_id, ARCHIVED)
            if row is None:
                return False
            for source_id in self._backend.queries.linking_to(self._namespace, chunk_id):
                self._forget_target(transaction, source_id, chunk_id)
            transaction.erase(row)
            transaction.events.append(
                self.envelope("erase")
                | {"chunk_id": chunk_id, "revision": row.revision, "before": row.content_hash}
                | {"change": transaction.change.id}
            )
            return True

    def _forget_target(self, transaction: WriteTransaction, source_id: str, target_id: str) -> None:
        source = self._read(self._backend.find(self._namespace, source_id))
        if source is None or source_id == target_id:
            return
        updated = Chunk.from_dict(source.to_dict())
        updated.links = [link for link in source.links if link.target_id != target_id]
        self._put_revision(transaction, source, updated, "unlink", target=target_id)

    def restore(self, chunk_id: str) -> Chunk | None:
        """Bring a chunk back from the archive as it was, without links to what was erased meanwhile."""
        with self._backend.transaction(self._namespace) as transaction:
            row = self.row(chunk_id, ARCHIVED)
            chunk = self._read(row)
            if row is None or chunk is None:
                return None
            kept = [
                link
                for link in chunk.links
                if self._backend.find(self._namespace, link.target_id) is not None
            ]
            if len(kept) < len(chunk.links):  # their targets were erased meanwhile
                chunk.links = kept
                chunk.revision += 1
                transaction.put(chunk)
            else:
                transaction.move(chunk, row, ACTIVE)
            self._log(transaction, "restore", chunk)
            return chunk

    # --- history ---------------------------------------------------------------------------------------

    def history(self, chunk_id: str) -> list[Version]:
        """Kept versions, oldest first, the present one last."""
        chunk = self._read(self.row(chunk_id) or self.row(chunk_id, ARCHIVED))
        if chunk is None:
            return []
        former = self._backend.former_versions(self._namespace, chunk_id, below=chunk.revision)
        return [*former, Version(chunk.revision, chunk.metadata.modified_at, chunk, current=True)]

    def undo(self, chunk_id: str, to_revision: int | None) -> Chunk | None:
        """Write a former version anew; None where there is no such chunk or version."""
        with self._backend.transaction(self._namespace) as transaction:
            versions = self.history(chunk_id)
            if self.row(chunk_id) is None:
                return None
            wanted = [
                version
                for version in versions
                if not version.current and to_revision in (None, version.revision)
            ]
            if not wanted:
                return None
            present, updated = versions[-1].chunk, wanted[-1].chunk
            updated.metadata.access_count = present.metadata.access_count
            updated.metadata.accessed_at = present.metadata.accessed_at
            return self._put_revision(transaction, present, updated, "undo", to=wanted[-1].revision)

    # --- links -----------------------------------------------------------------------------------------

    def add_link(
        self, source_id: str, target_id: str, link_type: str, strength: float, reasoning: str | None
    ) -> bool:
        """Add a link, or change the one of this type that is there."""
        self._types.check_link(link_type)
        strength = check_strength(strength)
        reasoning = check_reasoning(reasoning)
        if check_chunk_id(source_id) == check_chunk_id(target_id):
            raise InvalidLink(f"{source_id} cannot link to itself")
        with self._backend.transaction(self._namespace) as transaction:
            source = self._read(self.row(source_id))
            if source is None or self.row(target_id) is None:
                missing = source_id if source is None else target_id
                raise InvalidLink(
                    f"there is no chunk {missing} to link", hint="check the id with: rlm-mem show ID"
                )
            new = ChunkLinks(target_id, link_type, strength, self.now(), reasoning)
            updated = Chunk.from_dict(source.to_dict())
            for position, link in enumerate(updated.links):
                if (link.target_id, link.type) == (target_id, link_type):
                    if (link.strength, link.reasoning) == (strength, reasoning):
                        return True
                    updated.links[position] = new
                    break
            else:
                updated.links.append(new)
            self._put_revision(transaction, source, updated, "link", target=target_id, type=link_type)
            return True

    def remove_link(self, source_id: str, target_id: str, link_type: str | None) -> int:
        """Remove links to one chunk, of one type or all; returns how many."""
        check_chunk_id(target_id)
        with self._backend.transaction(self._namespace) as transaction:
            source = self._read(self.row(source_id))
            if source is None:
                return 0
            updated = Chunk.from_dict(source.to_dict())
            updated.links = [
                link
                for link in source.links
                if link.target_id != target_id or link_type not in (None, link.type)
            ]
            removed = len(source.links) - len(updated.links)
            if removed:
                self._put_revision(transaction, source, updated, "unlink", target=target_id)
            return removed

    # --- audit -----------------------------------------------------------------------------------------

    def _log(
        self,
        transaction: WriteTransaction,
        op: str,
        chunk: Chunk,
        *,
        former: Chunk | None = None,
        **more: Any,
    ) -> None:
        """Add a line to the audit log, written when the transaction has been committed."""
        transaction.events.append(
            self.envelope(op)
            | {
                "chunk_id": chunk.id,
                "revision": chunk.revision,
                "before": former.metadata.content_hash if former else None,
                "after": chunk.metadata.content_hash,
                **more,
            }
            | {"change": transaction.change.id}
        )

    def envelope(self, op: str) -> dict[str, Any]:
        """What every line of the audit log begins with."""
        return {"ts": format_time(self._clock()), "actor": self._actor, "op": op, "ns": self._namespace}
