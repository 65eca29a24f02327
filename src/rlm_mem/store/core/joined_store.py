"""A read-only union of two namespaces of one backend: a project's own, and one that all projects of a person share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from heapq import merge
from itertools import islice
from typing import Any

from msgspec import structs

from rlm_mem.chunk import Chunk, check_chunk_ids
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.lookup import JoinedSource
from rlm_mem.store.core.records import (
    ConversationInfo,
    LinkedChunk,
    ListFilter,
    Summary,
    Version,
    in_lots,
    page,
)

_OF_BACKEND = ("unreadable_files", "index_size_mb")
"""Figures that are not of a namespace, so that they are the same for both."""


class JoinedStore(ChunkStore):
    """A store that reads its own namespace together with another one.

    Ids are looked up in both. Files, the audit log and the archive are those of its own namespace, and nothing can
    be written to the other. No call accesses a third namespace. Closing it closes nothing.

    Args:
        own: the store whose files and settings are used.
        other: the store read together with it; on the same backend.
    """

    def __init__(self, own: ChunkStore, other: ChunkStore) -> None:
        # A view, like that of `held_at`: everything that is not overridden belongs to its own namespace.
        self.__dict__.update(vars(own))
        self.confined = True
        self._parts = (own, other)

    @property
    def parts(self) -> tuple[ChunkStore, ...]:
        """The stores that are read: its own namespace, then the other."""
        return self._parts

    def held_at(self, as_of: str | date | datetime) -> JoinedStore:
        """Return a view of both as of a time."""
        return JoinedStore(*(part.held_at(as_of) for part in self._parts))

    def close(self) -> None:
        """Do nothing: the stores that it reads stay open."""

    # --- single chunks ------------------------------------------------------------------------------------

    def get_many(self, chunk_ids: Sequence[str] | str, *, track: bool = False) -> dict[str, Chunk]:
        """Return the chunks that exist in either namespace, by id; a read is counted in the chunk's namespace."""
        left = wanted = check_chunk_ids(chunk_ids)
        found: dict[str, Chunk] = {}
        for part in self._parts:
            found |= part.get_many(left, track=track)
            left = [one for one in left if one not in found]
            if not left:
                break
        return {one: found[one] for one in wanted if one in found}

    def elsewhere(self, chunk_ids: Sequence[str] | str) -> dict[str, str]:
        """Return the ids among these that are in the other namespace, each with its namespace."""
        other = self._parts[1]
        return {one.id: other.namespace for one in other.summaries(check_chunk_ids(chunk_ids))}

    def history(self, chunk_id: str) -> list[Version]:
        """Return every kept version, oldest first."""
        return next((found for part in self._parts if (found := part.history(chunk_id))), [])

    # --- listings -----------------------------------------------------------------------------------------

    def _places(self, namespace: str | None, wanted: ListFilter) -> list[tuple[str, float, int]]:
        """Return ids of both namespaces, each with its position; archived ones only of its own."""
        if namespace is not None or wanted.archived:
            return super()._places(namespace, wanted)
        end = None if wanted.limit is None else wanted.offset + wanted.limit
        count, found = len(self._parts), list[list[tuple[str, float, int]]]()
        for own, part in enumerate(self._parts):
            after = wanted.after
            if after is not None:  # the number before the next one of this namespace that follows
                gap = after[1] - own
                after = after[0], -(-gap // count) if wanted.newest_first else gap // count
            first = structs.replace(wanted, limit=end, offset=0, after=after)
            # Insertion numbers of two namespaces may be the same: no two chunks have one position.
            found.append([(one, at, number * count + own) for one, at, number in part._places(None, first)])
        merged = merge(*found, key=lambda place: place[1:], reverse=wanted.newest_first)
        return list(islice(merged, wanted.offset, end))

    def _read_in_batches(self, namespace: str, chunk_ids: Sequence[str]) -> Iterator[Chunk]:  # noqa: ARG002 - both
        """Yield chunks of either namespace, read in batches."""
        for lot in in_lots(chunk_ids):
            found: dict[str, Chunk] = {}
            for part in self._parts:
                left = [one for one in lot if one not in found]
                found |= {chunk.id: chunk for chunk in part._read_in_batches(part.namespace, left)}
            yield from (found[one] for one in lot if one in found)

    def summaries(self, chunk_ids: Sequence[str] | str) -> list[Summary]:
        """Return summaries from the index, without reading files; unknown ids are left out."""
        wanted = check_chunk_ids(chunk_ids)
        found = {one.id: one for part in reversed(self._parts) for one in part.summaries(wanted)}
        return [found[one] for one in dict.fromkeys(wanted) if one in found]

    def _listed(self, wanted: ListFilter, limit: int) -> list[Summary]:
        """Return the first visible summaries of both namespaces that pass a filter."""
        found = (part._listed(wanted, limit) for part in self._parts)
        return list(islice(merge(*found, key=lambda one: one.at, reverse=wanted.newest_first), limit))

    # --- relations ----------------------------------------------------------------------------------------

    def linked_of_each(
        self,
        chunk_ids: Sequence[str],
        link_type: str | None = None,
        direction: str = "out",
        limit: int | None = 50,
    ) -> dict[str, list[LinkedChunk]]:
        """Return chunks linked with each of several chunks, strongest first; links do not leave a namespace."""
        own, other = (part.linked_of_each(chunk_ids, link_type, direction, limit) for part in self._parts)
        return {one: links or other[one] for one, links in own.items()}

    def neighbours_of_each(
        self, chunk_ids: Sequence[str], before: int = 1, after: int = 1
    ) -> dict[str, tuple[list[str], list[str]]]:
        """Return ids before and after each chunk in its conversation, in order of time, within its namespace."""
        own, other = (part.neighbours_of_each(chunk_ids, before, after) for part in self._parts)
        return {one: sides if any(sides) else other[one] for one, sides in own.items()}

    def candidate_source(self) -> JoinedSource:  # type: ignore[override]
        """Return the indexes of both for one search, as of now."""
        return JoinedSource([part.candidate_source() for part in self._parts])

    # --- figures ------------------------------------------------------------------------------------------

    def tag_counts(self, limit: int | None = None) -> list[tuple[str, int]]:
        """Return tags with the number of chunks that have them, most frequent first."""
        most = None if limit is None else page(limit, "limit")
        counts: Counter[str] = Counter()
        for part in self._parts:
            counts.update(dict(part.tag_counts()))
        return sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:most]

    def conversations(self, limit: int | None = None) -> list[ConversationInfo]:
        """Return conversations, the most recently active first."""
        found = (part.conversations(limit) for part in self._parts)
        return list(islice(merge(*found, key=lambda one: one.last_at, reverse=True), limit))

    def authors(self) -> set[str]:
        """Return the authors of the chunks in either namespace."""
        return set().union(*(part.authors() for part in self._parts))

    def get_stats(self) -> dict[str, Any]:
        """Return counts of both namespaces together; ``namespace`` is its own."""
        return _combined(*(part.get_stats() for part in self._parts))

    def totals(self) -> dict[str, Any]:
        """Return the figures of ``get_stats`` that are quick to compute at any size."""
        return _combined(*(part.totals() for part in self._parts))


def _combined(own: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Combine the figures of two namespaces."""
    first, last = ([one[name] for one in (own, other) if one[name]] for name in ("first_at", "last_at"))
    by_type = Counter(own["by_type"])
    by_type.update(other["by_type"])
    return {
        **own,
        **{
            name: value + other[name]
            for name, value in own.items()
            if isinstance(value, int | float) and name not in _OF_BACKEND
        },
        "by_type": dict(by_type),
        "first_at": min(first, default=None),
        "last_at": max(last, default=None),
    }
