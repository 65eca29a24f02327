"""How an opening lists an outline by day, the wishes of the user, and hits in prose before those in code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk.types import untrusted_mark
from rlm_mem.text.blocks import CODE, blocks

if TYPE_CHECKING:
    from rlm_mem.search import Hit
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["by_day", "code_last", "common_prefix", "wishes_listed"]


def wishes_listed(wishes: Iterable[Mapping[str, Any]], *, mark: bool) -> Iterator[str]:
    """Standing wishes, one to a line, without their ids, since no answer cites them."""
    for wish in wishes:
        untrusted = untrusted_mark(wish) if mark else ""
        yield from (f"- {line}{untrusted}" for line in wish.get("lines", ()))


def common_prefix(ids: Iterable[str]) -> str:
    """What several ids have in common before their last part; empty for a single id, or where they differ."""
    first, *others = ids
    head = first[: first.rfind("-") + 1]
    return head if others and all(one.startswith(head) for one in others) else ""


def by_day(hits: Iterable[Mapping[str, Any]], prefix: str, *, mark: bool) -> Iterator[str]:
    """The lines of hits in order of time, each with the id of its chunk; a new day stands above its lines.

    Args:
        prefix: what all ids begin with, which is left out.
    """
    day = ""
    for hit in hits:
        at = str(hit.get("at", ""))[:10]
        if at != day:
            yield at
            day = at
        untrusted = untrusted_mark(hit) if mark else ""
        for line in hit.get("lines", ()):
            yield f"- {hit['id'][len(prefix) :]}{untrusted}: {line}"


def code_last(store: ChunkStore, hits: list[Hit]) -> list[Hit]:
    """The hits, with those within blocks of code moved to the end: pasted code would crowd out what was said."""
    chunks = store.get_many(list({hit.chunk_id for hit in hits}), track=False)
    code = {
        chunk_id: [(one.start, one.end) for one in blocks(chunk.content) if one.kind == CODE]
        for chunk_id, chunk in chunks.items()
        if "```" in chunk.content
    }
    return sorted(
        hits, key=lambda hit: any(start <= hit.start < end for start, end in code.get(hit.chunk_id, ()))
    )
