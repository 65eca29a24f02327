"""What an answer rests on: the text of an answer, the chunks that carry it, and how far they do.

A model may name chunks and a confidence when it calls FINAL. Where it does not, both are derived from the
chunks that its programs read: by the words they share with the answer, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import check_chunk_id
from rlm_mem.errors import InvalidChunkId
from rlm_mem.text.analysis import get_analyser

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["answer_text", "confidence_of", "existing", "supporting"]

_HIGHEST = 0.95  # word overlap never proves an answer
_MOST_CITED = 10


def answer_text(answer: Any) -> tuple[str | None, list[str]]:
    """Return the argument of FINAL as text, and the chunks it names by itself.

    A chunk as ``read_chunk`` returns it stands for its content (programs call ``FINAL`` with one); a
    list of such chunks for theirs, one below the other; other plain data becomes JSON.
    """
    if answer is None:
        return None, []
    if isinstance(answer, str):
        return answer, []
    if _is_chunk(answer):
        return answer["content"], [answer["id"]]
    if isinstance(answer, list) and answer and all(_is_chunk(item) for item in answer):
        return "\n\n".join(item["content"] for item in answer), [item["id"] for item in answer]
    return json.dumps(answer, ensure_ascii=False, default=str), []


def existing(store: ChunkStore, chunk_ids: Iterable[Any]) -> dict[str, Chunk]:
    """The chunks among ``chunk_ids`` that are in the store, in the order given; a model may invent ids."""
    wanted = [item for item in dict.fromkeys(chunk_ids) if _is_id(item)]
    found = store.get_many(wanted, track=False)
    return {chunk_id: found[chunk_id] for chunk_id in wanted if chunk_id in found}


def supporting(store: ChunkStore, answer: str, read: Iterable[str]) -> dict[str, Chunk]:
    """Of the chunks read, those that share words with the answer, the fullest share first, at most ten.

    A chunk counts when it holds at least half as many of the answer's terms as the best one does.
    """
    chunks = existing(store, read)
    shares = {chunk_id: _share(store, answer, chunk.content) for chunk_id, chunk in chunks.items()}
    best = max(shares.values(), default=0.0)
    if best == 0.0:
        return {}
    chosen = sorted((c for c in shares if shares[c] >= best / 2), key=lambda c: -shares[c])
    return {chunk_id: chunks[chunk_id] for chunk_id in chosen[:_MOST_CITED]}


def confidence_of(store: ChunkStore, answer: str, chunks: Mapping[str, Chunk]) -> float:
    """Confidence, 0 to 0.95, for an answer whose model gave none.

    The share of the answer's terms that stand in the chunks it rests on, times the mean of one and the mean
    confidence stored with those chunks. Without chunks it is 0.
    """
    if not chunks:
        return 0.0
    share = _share(store, answer, "\n".join(chunk.content for chunk in chunks.values()))
    stored = sum(chunk.metadata.confidence for chunk in chunks.values()) / len(chunks)
    return round(min(_HIGHEST, share * (1 + stored) / 2), 3)


def _share(store: ChunkStore, answer: str, text: str) -> float:
    analyser = get_analyser(store.config.search.language)
    terms = set(analyser.terms(answer))
    if not terms:
        # "Yes", "7" or nothing but stop words: only the words themselves can be looked for.
        return 1.0 if answer.strip() and answer.strip().lower() in text.lower() else 0.0
    return len(terms & set(analyser.terms(text))) / len(terms)


def _is_id(value: Any) -> bool:
    try:
        check_chunk_id(value)
    except InvalidChunkId:
        return False
    return True


def _is_chunk(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("content"), str)
        and isinstance(value.get("id"), str)
        and value["id"].startswith("chunk-")
    )
