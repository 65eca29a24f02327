"""BatchIndex: the index queries of the linker, answered from memory while many texts are stored."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from operator import itemgetter
from types import MappingProxyType

from rlm_mem.chunk import SUPERSEDES, Chunk, normalised_hash, parse_time
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.records import Summary, summary_of

_CACHED_PER_KEY = 64
"""Number of newest chunks per conversation and per tag that a batch keeps in memory."""
_MAX_CACHED_CHUNKS = 10_000
"""Maximum of chunks that stay in memory between transactions."""
_NONE: Mapping[str, str] = MappingProxyType({})
_SUMMARY = itemgetter(2)
_NEW = 1 << 53
"""First number of the chunks of a batch, greater than any number in the store."""


class _RecentChunks:
    """The newest chunks of a conversation or of the store, ordered by time; ``complete``: there are no older ones."""

    def __init__(self, newest: list[tuple[str, float, int]], *, complete: bool) -> None:
        self._places = [(at, number, chunk_id) for chunk_id, at, number in reversed(newest)]
        self._complete = complete

    def add(self, at: float, number: int, chunk_id: str) -> None:
        place = bisect_left(self._places, (at, number))
        if place or self._complete:
            self._places.insert(place, (at, number, chunk_id))
            if len(self._places) > 4 * _CACHED_PER_KEY:
                del self._places[: 2 * _CACHED_PER_KEY]
                self._complete = False

    def before(self, start: float | None, end: float, limit: int) -> list[tuple[str, float, int]] | None:
        """The last chunks in a period before ``end``, newest first; None if the cache may lack some."""
        last = bisect_left(self._places, (end,))
        first = 0 if start is None else bisect_left(self._places, (start,))
        if first == 0 and last < limit and not self._complete:
            return None
        return [
            (chunk_id, at, number)
            for at, number, chunk_id in reversed(self._places[max(first, last - limit) : last])
        ]

    def since(self, start: float, limit: int) -> list[tuple[str, float, int]] | None:
        """The first chunks from ``start`` on; None if the cache may lack some."""
        first = bisect_left(self._places, (start,))
        if first == 0 and not self._complete:
            return None
        return [(chunk_id, at, number) for at, number, chunk_id in self._places[first : first + limit]]


class BatchIndex:
    """A link index that caches recent chunks in memory during bulk storage, and is current inside ``held``.

    Args:
        store: answers queries about chunks that are not cached.

    Attributes:
        others: number of transactions before which another process had written.
    """

    def __init__(self, store: ChunkStore) -> None:
        self._store = store
        self.others = 0
        self._version = store.backend.version(store.namespace)
        self._numbers = count(_NEW)
        self._digests: dict[str, str] = {}
        self._repeated: set[str] = set()
        self._clear()

    def _clear(self) -> None:
        self._places: dict[str | None, _RecentChunks] = {}
        self._tagged: dict[str | None, list[tuple[float, int, Summary]]] = {}  # None: all chunks
        self._bounded: set[str | None] = set()
        self._chunks: dict[str, Chunk] = {}
        self._summaries: dict[str, Summary] = {}

    @contextmanager
    def held(self, drafts: Sequence[Chunk], digests: Mapping[str, str] = _NONE) -> Iterator[None]:
        """Open a transaction for these chunks; the cache is cleared if others wrote since the last one.

        Args:
            digests: normalised hash by content, as far as known.
        """
        store, version = self._store, self._version
        self._version = -1
        with store.batch():
            if version != store.backend.version(store.namespace):
                self.others += 1
                self._clear()
            elif len(self._summaries) > _MAX_CACHED_CHUNKS:
                self._clear()
            contents = [draft.content for draft in drafts]
            self._digests = {one: digests.get(one) or normalised_hash(one) for one in contents}
            self._repeated = store.backend.queries.known_hashes(store.namespace, set(self._digests.values()))
            with store.backend.transaction(store.namespace) as transaction:
                new = transaction.expect(
                    [draft for draft in drafts if self._digests[draft.content] not in self._repeated]
                )
            self._note_new_tags(drafts)
            for conversation_id in new:
                self._places.setdefault(conversation_id, _RecentChunks([], complete=True))
            yield
            version = store.backend.version(store.namespace)
        self._version = version

    def _note_new_tags(self, drafts: Sequence[Chunk]) -> None:
        """Find out at once which tags of these chunks no chunk has yet, so that none of those is looked up."""
        tags = {tag for draft in drafts for tag in draft.tags if tag not in self._tagged}
        if len(tags) < 2:  # a single one is looked up itself
            return
        known = dict(self._store.backend.queries.tag_counts(self._store.namespace, None, among=tags))
        self._tagged |= {tag: [] for tag in tags if tag not in known}

    # --- changes of chunks -----------------------------------------------------------------------------

    def added(self, chunk: Chunk) -> None:
        """Add a stored chunk to the cache."""
        at, number = parse_time(chunk.metadata.at).timestamp(), next(self._numbers)
        self._repeated.add(self._digests.get(chunk.content) or normalised_hash(chunk.content))
        for key in {None, chunk.metadata.conversation_id}:
            if key in self._places:
                self._places[key].add(at, number, chunk.id)
        if chunk.metadata.trust == "quarantined":
            return
        summary = summary_of(chunk, at)
        if chunk.metadata.expires_at is None:  # otherwise the store must check whether it has expired
            self._chunks[chunk.id], self._summaries[chunk.id] = chunk, summary
        for tag in (None, *chunk.tags):
            self._tag(tag, at, number, summary)
        for link in chunk.links:
            if link.type == SUPERSEDES:
                self._remove(link.target_id)

    def _tag(self, tag: str | None, at: float, number: int, summary: Summary) -> None:
        found = self._tagged.get(tag)
        if found is None:
            return
        place = bisect_left(found, (-at, -number))
        if place < len(found) or tag not in self._bounded:
            found.insert(place, (-at, -number, summary))
            if len(found) > 2 * _CACHED_PER_KEY:
                del found[_CACHED_PER_KEY:]
                self._bounded.add(tag)

    def changed(self, chunk_id: str) -> None:
        """Remove a changed chunk from the cache."""
        self._remove(chunk_id)
        self._tagged.clear()
        self._bounded.clear()

    def _remove(self, chunk_id: str) -> None:
        self._chunks.pop(chunk_id, None)
        self._summaries.pop(chunk_id, None)

    # --- queries of the linker -------------------------------------------------------------------------

    def find_same(self, content: str, conversation_id: str | None) -> str | None:
        """As ``ChunkStore.find_same``."""
        return self._store.find_same(content, conversation_id) if self._is_repeated(content) else None

    def find_normalised(self, content: str, limit: int = 10) -> list[str]:
        """As ``ChunkStore.find_normalised``."""
        return self._store.find_normalised(content, limit) if self._is_repeated(content) else []

    def _is_repeated(self, content: str) -> bool:
        return self._digests.get(content) is None or self._digests[content] in self._repeated

    def list_between(
        self,
        start: datetime | None,
        end: datetime | None,
        limit: int,
        *,
        conversation_id: str | None = None,
        newest_first: bool = False,
        alone: tuple[str, str, str] | None = None,
    ) -> list[tuple[str, float, int]]:
        """As ``ChunkStore.list_between``."""
        ask = self._store.list_between
        if conversation_id not in self._places:
            newest = ask(None, None, _CACHED_PER_KEY, conversation_id=conversation_id, newest_first=True)
            self._places[conversation_id] = _RecentChunks(newest, complete=len(newest) < _CACHED_PER_KEY)
        places = self._places[conversation_id]
        found = None
        if newest_first and end is not None:
            first = None if start is None else start.timestamp()
            found = places.before(first, end.timestamp() + 1e-6, limit)
        elif not newest_first and start is not None and end is None:
            found = places.since(start.timestamp(), limit)
        if found is None:
            found = ask(start, end, limit, conversation_id=conversation_id, newest_first=newest_first)
        if alone is not None:
            about = self.summaries([chunk_id for chunk_id, _, _ in found])
            same_stream = {
                one.id
                for one in about
                if one.conversation_id is None and (one.origin, one.source) == alone[:2]
            }
            found = [place for place in found if place[0] in same_stream]
        return found

    def latest(self, limit: int, *, tag: str | None = None) -> list[Summary]:
        """As ``ChunkStore.latest``."""
        if limit > _CACHED_PER_KEY:
            return self._store.latest(limit, tag=tag)
        found = self._tagged.get(tag)
        if found is None:
            newest = self._store.latest(_CACHED_PER_KEY, tag=tag)
            if len(newest) == _CACHED_PER_KEY:
                self._bounded.add(tag)
            found = self._tagged[tag] = [(-one.at, place - _NEW, one) for place, one in enumerate(newest)]
        return list(map(_SUMMARY, found[:limit]))

    def summaries(self, chunk_ids: Sequence[str]) -> list[Summary]:
        """As ``ChunkStore.summaries``."""
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in self._summaries]
        if missing:
            self._summaries |= {one.id: one for one in self._store.summaries(missing)}
        return [self._summaries[chunk_id] for chunk_id in chunk_ids if chunk_id in self._summaries]

    def get_many(self, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
        """As ``ChunkStore.get_many``; the caller must not change the chunks."""
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in self._chunks]
        if missing:
            self._chunks |= self._store.get_many(missing)
        return {one: self._chunks[one] for one in chunk_ids if one in self._chunks}
