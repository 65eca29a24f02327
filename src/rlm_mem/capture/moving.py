"""Moving memories from one namespace into another: only on a person's request, never by a rule or an agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlm_mem.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

__all__ = ["MovedChunk", "move_chunks"]


@dataclass(frozen=True, slots=True)
class MovedChunk:
    """A memory that was moved: its id where it was, and where it is now."""

    former_id: str
    chunk_id: str


def move_chunks(source: Memory, target: Memory, chunk_ids: Sequence[str]) -> list[MovedChunk]:
    """Move memories, all of those named or none: each is written to the target first, then archived in the source.

    A process killed in between leaves a memory in both places, never in neither; the same call then completes the move.
    Links are not moved, since they lead to chunks that the target does not have. ``provenance.moved_from`` names the
    origin. Restoring the archived chunk undoes the move in the source.

    Args:
        source, target: two namespaces of the same place.

    Returns:
        what was moved, in the order of the ids.

    Raises:
        NotFoundError: one of them is not in the source; nothing was moved.
        InputError: source and target are one namespace.
    """
    if source.store.namespace == target.store.namespace:
        raise InputError(
            f"{source.store.namespace} is already the namespace of these memories",
            hint="name another namespace",
        )
    ids = list(dict.fromkeys(chunk_ids))
    found = source.store.get_many(ids, track=False)
    missing = [chunk_id for chunk_id in ids if chunk_id not in found]
    if missing:
        raise NotFoundError(
            f"there is no chunk {missing[0]!r:.80} in {source.store.namespace}; nothing was moved"
        )
    moved = []
    with target.batch():
        for chunk_id in ids:
            chunk = found[chunk_id]
            meta = chunk.metadata
            origin = f"{source.store.namespace}#{chunk_id}"
            there = target.store.find_same(chunk.content, meta.conversation_id)
            if there is None:
                there = target.store.create_chunk(
                    chunk.content,
                    chunk.type,
                    {**meta.extra},
                    conversation_id=meta.conversation_id,
                    tags=chunk.tags,
                    confidence=meta.confidence,
                    source=meta.source,
                    occurred_at=meta.occurred_at or chunk.metadata.created_at,
                    valid_from=meta.valid_from,
                    valid_to=meta.valid_to,
                    provenance={**meta.provenance, "moved_from": origin},
                    secrets="keep",
                ).id
            moved.append(MovedChunk(chunk_id, there))
    with source.batch():
        for chunk_id in ids:
            source.store.delete_chunk(chunk_id)
    return moved
