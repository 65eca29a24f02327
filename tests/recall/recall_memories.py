"""A small memory that the tests of this folder ask about, and how programs are written for them."""

from __future__ import annotations

from rlm_mem.store.core.chunk_store import ChunkStore


def block(code: str) -> str:
    """A reply of a model that holds one program."""
    return f"I look.\n```repl\n{code}\n```"


def fill(store: ChunkStore) -> dict[str, str]:
    """Store a few memories and return their ids by a short name."""
    texts = {
        "tea": "Ana: I drink green tea every morning before work.",
        "bike": "Ben: My bicycle is red and I ride it to the office.",
        "city": "Carla moved from Oslo to Lisbon in spring because of the light.",
        "job": "Carla works as a lighthouse keeper near Lisbon.",
    }
    return {
        name: store.create_chunk(text, "fact", tags=[name, "people"], conversation_id="conv-talk").id
        for name, text in texts.items()
    }
