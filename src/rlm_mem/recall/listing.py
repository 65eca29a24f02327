"""How an opening lists an outline by day, and the wishes of the user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rlm_mem.chunk.types import untrusted_mark

__all__ = ["by_day", "common_prefix", "wishes_listed"]


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
