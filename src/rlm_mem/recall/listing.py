"""How an opening lists an outline by day, and the wishes of the user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["by_day", "common_prefix", "wishes_listed"]


def wishes_listed(wishes: Iterable[Mapping[str, Any]], *, mark: bool) -> Iterator[str]:
    """Standing wishes, one on a line, without the ids that no answer cites."""
    for wish in wishes:
        untrusted = f" (untrusted: {wish['untrusted']})" if mark and wish.get("untrusted") else ""
        yield from (f"- {line}{untrusted}" for line in wish.get("lines", ()))


def common_prefix(ids: Iterable[str]) -> str:
    """What all of several ids begin with before their last part; empty where they differ in it."""
    first, *others = ids
    head = first[: first.rfind("-") + 1]
    return head if others and all(one.startswith(head) for one in others) else ""


def by_day(hits: Iterable[Mapping[str, Any]], prefix: str, *, mark: bool) -> Iterator[str]:
    """The lines of hits in order of time, each with its chunk, below the day where it changes.

    Args:
        prefix: what all ids begin with, which is left out.
    """
    day = ""
    for hit in hits:
        at = str(hit.get("at", ""))[:10]
        if at != day:
            yield at
            day = at
        for line in hit.get("lines", ()):
            untrusted = f" (untrusted: {hit['untrusted']})" if mark and hit.get("untrusted") else ""
            yield f"- {hit['id'][len(prefix) :]}{untrusted}: {line}"
