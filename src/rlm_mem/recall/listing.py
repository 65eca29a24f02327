"""How an opening lists an outline by day, the wishes of the user, and which of its hits come last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk.types import untrusted_mark
from rlm_mem.sandbox.line_functions import is_assistant
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.blocks import CODE, blocks

if TYPE_CHECKING:
    from rlm_mem.search import Hit
    from rlm_mem.store.core.chunk_store import ChunkStore

_ECHO_SHARE = 0.4
"""An assistant's line is a repetition if the user's lines in the chunk have at least this share of its terms."""
_ECHO_TERMS = 8
"""Fewest terms of a repetition; a shorter line is an answer that shares words, such as "Take the blue one."."""


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


def echoes_last(store: ChunkStore, hits: list[Hit]) -> list[Hit]:
    """The hits, with lines of an assistant that only repeat what the user said moved to the end.

    Long answers of an assistant often begin with a repetition, which fits the question as well as the user's own line.
    """
    analyser = get_analyser(store.config.search.language)
    asked: dict[str, set[str]] = defaultdict(set)
    for hit in hits:
        if hit.author and not is_assistant(hit.author):
            asked[hit.chunk_id].update(analyser.terms(hit.snippet))

    def echoes(hit: Hit) -> bool:
        if not is_assistant(hit.author) or hit.chunk_id not in asked:
            return False
        said = set(analyser.terms(hit.snippet))
        return len(said) >= _ECHO_TERMS and len(said & asked[hit.chunk_id]) >= _ECHO_SHARE * len(said)

    return sorted(hits, key=echoes)
