"""A complete memory meets the store: new, known, newer, edited, or in conflict with what is there."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import Chunk, format_time
from rlm_mem.errors import InputError
from rlm_mem.interchange.records import ImportedChunk, mapped_id
from rlm_mem.interchange.report import ImportReport
from rlm_mem.store.core.drafts import screened_chunk

if TYPE_CHECKING:
    from rlm_mem.config import SecretAction
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["Adopter"]

_ARCHIVED = 1


class Adopter:
    """Brings memories with an id of their own into a store.

    The same id with the same state is known. Otherwise the higher revision wins; with the same revision the file was
    edited since it was exported, and the edit becomes a new revision. An id that belongs to another memory is mapped.

    Args:
        dry_run: decide and count, write nothing.
        keep_namespaces: False puts everything into the namespace of the store.
        replace: what comes in replaces what is there, whatever the revisions.
        secrets: what becomes of secrets; None: as configured.
    """

    def __init__(
        self,
        store: ChunkStore,
        report: ImportReport,
        *,
        dry_run: bool,
        keep_namespaces: bool,
        replace: bool,
        secrets: SecretAction | None = None,
    ) -> None:
        self._secrets = secrets
        self._store = store
        self._report = report
        self._dry_run = dry_run
        self._keep = keep_namespaces and not store.confined
        self._replace = replace
        self._planned: set[str] = set()

    def take(self, memory: ImportedChunk) -> str | None:
        """Write one memory, or leave it; returns the id by which the store knows it, or None."""
        try:
            return self._take(memory)
        except InputError as error:
            self._report.problem(memory.where, str(error))
            return None

    def _take(self, memory: ImportedChunk) -> str | None:
        chunk = memory.chunk
        if not self._keep or not memory.names_namespace:
            chunk.namespace = self._store.namespace
        if memory.original_id is not None:
            self._report.renamed(memory.original_id, chunk.id)
        chunk = memory.chunk = self._screened(chunk)
        found = self._there(chunk)
        foreign = found is None and self._store.backend.held_elsewhere(chunk.namespace, chunk.id)
        if foreign or (found is not None and self._is_another(found[0], memory)):
            original = chunk.id
            chunk.id = mapped_id(original, f"{chunk.namespace}\0{chunk.metadata.created_at}")
            chunk.metadata.provenance = {**chunk.metadata.provenance, "original_id": original}
            self._report.renamed(original, chunk.id)
            found = self._there(chunk)
        if found is None:
            return self._write(memory, new=True)
        there, there_archived = found
        same = _state(there) == _state(chunk)
        if (same and there_archived == memory.archived) or (
            memory.derived and there.metadata.content_hash == chunk.metadata.content_hash
        ):
            self._report.known += 1
            return chunk.id
        if memory.derived and not self._replace:
            return self._write(memory, over=there)
        if self._replace or (chunk.revision > there.revision and not same):
            return self._write(memory)
        if same:
            state = "archived" if there_archived else "active"
            self._report.conflict(memory.where, f"{chunk.id} is {state} in the store, and stays so")
        elif chunk.revision == there.revision and there_archived == memory.archived:
            return self._write(memory, over=there)
        else:
            self._report.conflict(
                memory.where,
                f"{chunk.id}: the store has revision {there.revision}, the source {chunk.revision}; kept the store's",
            )
        return chunk.id

    def _there(self, chunk: Chunk) -> tuple[Chunk, bool] | None:
        row = self._store.backend.find(chunk.namespace, chunk.id)
        there = self._store.backend.read(row) if row else None
        return None if row is None or there is None else (there, row.status == _ARCHIVED)

    def _is_another(self, there: Chunk, memory: ImportedChunk) -> bool:
        chunk = memory.chunk
        if memory.derived:
            return False
        return (
            there.metadata.created_at != chunk.metadata.created_at
            and there.metadata.content_hash != chunk.metadata.content_hash
        )

    def _screened(self, chunk: Chunk) -> Chunk:
        screened, found = screened_chunk(chunk, self._store.config.secrets, self._secrets)
        self._report.found(found)
        return screened

    def _write(self, memory: ImportedChunk, *, new: bool = False, over: Chunk | None = None) -> str:
        chunk = memory.chunk
        if over is not None:
            chunk = _as_revision_of(over, chunk, format_time(self._store.clock()), merge=memory.derived)
        if not self._dry_run:
            self._store.adopt(chunk, archived=memory.archived, secrets=self._secrets)
        elif chunk.id in self._planned:  # a second one in the source: what it does depends on the first
            self._report.known += 1
            return chunk.id
        else:
            self._planned.add(chunk.id)
        if new:
            self._report.created += 1
            self._report.tokens += chunk.tokens
        else:
            self._report.updated += 1
        self._report.chunk(chunk.id, chunk.namespace)
        return chunk.id


def _as_revision_of(there: Chunk, chunk: Chunk, now: str, *, merge: bool) -> Chunk:
    made = copy.deepcopy(chunk)
    made.revision = there.revision + 1
    made.metadata.modified_at = max(now, there.metadata.modified_at)
    made.metadata.access_count = max(there.metadata.access_count, chunk.metadata.access_count)
    made.metadata.accessed_at = max(there.metadata.accessed_at, chunk.metadata.accessed_at)
    if merge:
        made.metadata.created_at = there.metadata.created_at
        named = {(link.target_id, link.type) for link in made.links}
        made.links += [link for link in there.links if (link.target_id, link.type) not in named]
    return made


def _state(chunk: Chunk) -> dict[str, Any]:
    """Everything but the counting of reads."""
    state = chunk.to_dict()
    state["metadata"] = {
        name: value
        for name, value in state["metadata"].items()
        if name not in ("access_count", "accessed_at")
    }
    return state
