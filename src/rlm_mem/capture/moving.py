"""Moving memories from one namespace into another: only on a person's request, never by a rule or an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlm_mem.chunk import SUPERSEDES
from rlm_mem.errors import InputError, NamespaceError, NotFoundError
from rlm_mem.store.core.changes import name_namespaces

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.chunk_store import ChunkStore


@dataclass(frozen=True, slots=True)
class MovedChunk:
    """A memory that was moved: its former id, and its id in the new namespace."""

    former_id: str
    chunk_id: str


def move_chunks(source: ChunkStore, namespace: str, chunk_ids: Sequence[str]) -> list[MovedChunk]:
    """Move memories into another namespace, all of those named or none; they are archived where they were.

    This is one transaction: a process killed in the middle leaves each memory in one of the namespaces. If these are on
    different database servers, there are two: a process killed between them leaves the memories in both namespaces, and
    repeating the call completes the move.

    A memory keeps its text, type, tags, times, validity, origin and trust, and its links to memories that are moved
    with it; other links would lead to chunks that the other namespace does not have. ``provenance.moved_from`` names
    where it was.

    Args:
        source: the namespace that they are in.
        namespace: the target, in the same brain or database.

    Returns:
        what was moved, in the order of the ids.

    Raises:
        NotFoundError: one of them is not in the source; nothing was moved.
        InputError: source and target are one namespace.
    """
    target = source.confined_to(namespace, actor=source.actor)
    if source.namespace == target.namespace:
        raise InputError(
            f"{namespace} is already the namespace of these memories", hint="name another namespace"
        )
    ids = list(dict.fromkeys(chunk_ids))
    with ExitStack() as together:
        try:
            # Always in the same order: of two opposite moves at once, one waits for the other.
            for store in sorted((source, target), key=lambda one: one.namespace):
                transaction = together.enter_context(store.backend.transaction(store.namespace))
        except NamespaceError:  # they are on different servers
            together.close()
        found = source.get_many(ids)
        missing = [chunk_id for chunk_id in ids if chunk_id not in found]
        if missing:
            raise NotFoundError(
                f"there is no chunk {missing[0]!r:.80} in {source.namespace}; nothing was moved"
            )
        with target.batch():
            moved = [MovedChunk(one, _written(found[one], target)) for one in ids]
            now = {one.former_id: one.chunk_id for one in moved}
            for one in ids:
                _link(found[one], now, target)
        with source.batch():
            for chunk_id in ids:
                source.delete_chunk(chunk_id)
        name_namespaces(transaction.events)  # empty where there were two transactions
    return moved


def _link(chunk: Chunk, moved: Mapping[str, str], target: ChunkStore) -> None:
    """Make the links of a moved chunk to others that were moved, unless the target says otherwise already."""
    own = moved[chunk.id]
    for link in chunk.links:
        other = moved.get(link.target_id)
        if other is None or other == own:  # both may be one text there
            continue
        if link.type != SUPERSEDES:
            target.add_link(own, other, link.type, link.strength, link.reasoning)
            continue
        known = target.get_many([own, other])
        if known[other].metadata.superseded_by is None and known[own].metadata.superseded_by != other:
            target.supersede(other, own, link.reasoning, confidence=link.strength, force=True)


def _written(chunk: Chunk, target: ChunkStore) -> str:
    """Write a chunk to the target namespace, unless it is there already; returns its id there."""
    meta = chunk.metadata
    there = target.find_same(chunk.content, meta.conversation_id)
    if there is not None:
        return there
    return target.create_chunk(
        chunk.content,
        chunk.type,
        {**meta.extra},
        conversation_id=meta.conversation_id,
        tags=chunk.tags,
        confidence=meta.confidence,
        source=meta.source,
        occurred_at=meta.at,
        valid_from=meta.valid_from,
        valid_to=meta.valid_to,
        provenance={**meta.provenance, "moved_from": f"{chunk.namespace}#{chunk.id}"},
        secrets="keep",
        origin=meta.origin,
        trust=meta.trust,
        expires=meta.expires_at,
    ).id
