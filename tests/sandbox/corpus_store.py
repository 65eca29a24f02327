"""The memory that the idiom programs look into: few chunks, fixed ids, two conversations, links."""

from __future__ import annotations

from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["fill"]

_CHUNKS = (
    ("a1", "Ana: I start the morning with green tea.", ["tea", "green"], "preference", "conv-1"),
    ("a2", "Ben: Coffee for me, no tea before noon.", ["tea", "coffee"], "preference", "conv-1"),
    ("a3", "Ana: I used to drink black tea, now it is green tea only.", ["tea"], "fact", "conv-1"),
    ("b1", "Ana: We flew to Lisbon on 2026-01-03 and stayed a week.", ["travel"], "fact", "conv-2"),
    ("b2", "Ben: Lisbon was warm. We drank coffee by the river.", ["travel", "coffee"], "note", "conv-2"),
    ("b3", "Cleo: Next time I would rather see Porto.", ["travel"], "note", "conv-2"),
)


def fill(store: ChunkStore) -> dict[str, str]:
    """Write the chunks and return their ids by short name."""
    ids: dict[str, str] = {}
    for number, (name, content, tags, kind, conversation) in enumerate(_CHUNKS, 1):
        chunk = store.create_chunk(
            content,
            kind,
            tags=tags,
            conversation_id=conversation,
            tokens=len(content) // 4,
            occurred_at=f"2026-01-0{number}T09:00:00Z",
            chunk_id=f"chunk-2026-01-0{number}-0000000{name}"[:27],
        )
        ids[name] = chunk.id
    store.add_link(ids["b2"], ids["b1"], "supports", 0.8)
    store.add_link(ids["b3"], ids["b2"], "follows", 0.5)
    return ids
