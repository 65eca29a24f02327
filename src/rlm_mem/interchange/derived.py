"""Creates chunks from memories of other systems: one for a short text, linked parts for a long one, with stable ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlm_mem.chunk import Chunk
from rlm_mem.errors import InputError
from rlm_mem.interchange.records import ImportedChunk, ImportProblem, mapped_id


def derived_chunks(
    scope: str,
    original: str,
    text: str,
    where: str,
    *,
    metadata: Mapping[str, Any],
    tags: Sequence[str] = (),
    archived: bool = False,
    conversation: str | None = None,
) -> Iterator[ImportedChunk | ImportProblem]:
    """Yield one memory as one or more chunks, depending on its length; each part follows the one before.

    Args:
        scope: the system it comes from, which distinguishes its ids from those of others.
        original: its id in that system.
        text: its text, without lone surrogates; not empty.
        where: its location in the source.
        metadata: fields of the chunks, including ``created_at``.
        conversation: the conversation of several parts, if ``metadata`` names none.
    """
    from rlm_mem.ingest.chunking import ChunkingEngine

    pieces = ChunkingEngine(100, 500, target_tokens=250, overlap_tokens=0).chunk(text)
    first_id = mapped_id(original, scope)
    conversation_id = metadata.get("conversation_id") or (conversation if len(pieces) > 1 else None)
    before = ""
    for piece in pieces:
        part = first_id if piece.index == 0 else f"{first_id}-p{piece.index + 1}"
        links = (
            [{"target_id": before, "type": "follows", "created_at": metadata["created_at"]}] if before else []
        )
        try:
            chunk = Chunk.from_dict(
                {
                    "id": part,
                    "content": piece.content,
                    "tokens": piece.tokens,
                    "type": piece.type,
                    "tags": list(tags),
                    "links": links,
                    "metadata": {
                        "source": "import",
                        **metadata,
                        "conversation_id": conversation_id,
                        "provenance": {"path": where, "span": [piece.start, piece.end]},
                    },
                }
            )
        except InputError as error:
            yield ImportProblem(where, str(error))
            return
        yield ImportedChunk(chunk, where, archived, original_id=original, derived=True, names_namespace=False)
        before = part
