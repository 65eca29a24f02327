"""Automatic links of a new chunk to earlier chunks (docs/spec/links.md, Automatic rules).

Every rule makes a bounded query of the index, so the cost of linking does not depend on the size of the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from rlm_mem.chunk import SIMILAR_TO, Chunk, ChunkLinks, ChunkMetadata, format_time, parse_time
from rlm_mem.config import IngestConfig
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.records import Summary

if TYPE_CHECKING:
    from rlm_mem.ingest.batch_index import BatchIndex

_STEP = 0.9  # strength of each chunk relative to the next nearer one
_TAGS_ASKED = 16  # tags of a new chunk that are looked up
_TAGGED = 32  # number of newest chunks compared for each tag
_ID, _ID_AND_TIME = itemgetter(0), itemgetter(0, 1)  # of a place of ``list_between``


class AutoLinker:
    """Links a new chunk to earlier chunks (docs/spec/links.md, Automatic rules).

    ``context_of``: the same conversation, nearest first. ``follows``: at most five minutes earlier in the same
    conversation or by the same author, stronger if nearer; a chunk imported without a time of its own
    follows only chunks from the same file or address. ``related_to``: shared tags, strength = Jaccard of the tag sets.
    ``similar_to``: the same words except for case, space and punctuation. Of each type at most
    ``ingest.max_links_per_type`` links are stored, strongest first, then newest.

    Args:
        chunk_store: an open store; ``chunk_store.config.ingest`` sets the bounds.
        config: bounds to use instead.
        batch: index to query and notify during a batch; None: the store is queried.
    """

    def __init__(
        self, chunk_store: ChunkStore, config: IngestConfig | None = None, *, batch: BatchIndex | None = None
    ) -> None:
        self._store = chunk_store
        self._config = config or chunk_store.config.ingest
        self.batch = batch
        self.index: ChunkStore | BatchIndex = chunk_store if batch is None else batch

    def changed(self, chunk_ids: Iterable[str]) -> None:
        """Forget what the index of the batch, if any, has of these chunks, which were changed."""
        if self.batch is not None:
            for chunk_id in chunk_ids:
                self.batch.changed(chunk_id)

    def link_on_create(self, chunk: Chunk) -> Chunk:
        """Add automatic links to a new chunk; its existing links are kept.

        Returns:
            The chunk with its links. A stored chunk is updated in the store; any other is not written.
        """
        found = self.links_for(chunk)
        present = {(link.target_id, link.type) for link in chunk.links}
        added = [link for link in found if (link.target_id, link.type) not in present]
        if not added:
            return chunk
        links = [*chunk.links, *added]
        stored = self._store.update_chunk(chunk.id, links=links) if self._store.exists(chunk.id) else None
        return stored or replace(chunk, links=links)

    def alike(self, content: str) -> list[str]:
        """Chunks that differ at most in case, space and punctuation, newest first; no more than a rule uses."""
        limit = max(self._config.max_similar, self._config.max_links_per_type)
        return self.index.find_normalised(content, limit + 1)

    def newest(self) -> list[Summary]:
        """The newest chunks, which show whether most chunks have a tag."""
        return self.index.latest(_TAGGED)

    def links_for(
        self, chunk: Chunk, made_at: str | None = None, alike: Sequence[str] | None = None
    ) -> list[ChunkLinks]:
        """Compute the automatic links of a chunk, stored or not; its existing links are ignored.

        Args:
            made_at: time of the links; None: now.
            alike: the result of :meth:`alike` for the text of the chunk, if already known.
        """
        limit = self._config.max_links_per_type
        if limit == 0:
            return []
        made_at = made_at or format_time(self._store.clock())
        moment = parse_time(chunk.metadata.at or made_at)
        said_before: dict[str, float] = {}
        if chunk.metadata.conversation_id is not None:  # newest first, as many as any rule needs
            said_before = self._earlier_chunks(chunk, None, moment, limit + 1)
        links = [
            *self._context_links(chunk, moment, said_before, limit),
            *self._follows_links(chunk, moment, said_before, limit),
            *(self._related_links(chunk.tags, chunk.id, limit) if chunk.tags else ()),
        ]
        same = self.alike(chunk.content) if alike is None else alike
        links += [ChunkLinks(target, SIMILAR_TO, 1.0) for target in same if target != chunk.id][:limit]
        for link in links:
            link.created_at = made_at
        return links

    def add_manual_link(
        self,
        source_id: str,
        target_id: str,
        link_type: str,
        strength: float = 0.5,
        reasoning: str | None = None,
    ) -> bool:
        """Link two chunks with a built-in or registered type.

        Args:
            strength: 0-1.
            reasoning: the reason as text.

        Returns:
            True; linking again changes strength and reasoning of the existing link.

        Raises:
            InvalidLink: unknown type, strength outside 0-1, a missing chunk, or a chunk linked to itself.
            InvalidChunkId: an id is malformed.
        """
        return self._store.add_link(source_id, target_id, link_type, strength, reasoning)

    def _earlier_chunks(
        self,
        chunk: Chunk,
        since: datetime | None,
        moment: datetime,
        limit: int,
        alone: tuple[str, str, str] | None = None,
    ) -> dict[str, float]:
        """Earlier chunks of the conversation with their times, newest first; ``alone``: if there is no conversation."""
        found = self.index.list_between(
            since,
            moment,
            limit,
            conversation_id=chunk.metadata.conversation_id,
            newest_first=True,
            alone=alone,
        )
        places = dict(map(_ID_AND_TIME, found))
        places.pop(chunk.id, None)
        return places

    def _context_links(
        self, chunk: Chunk, moment: datetime, said_before: dict[str, float], limit: int
    ) -> list[ChunkLinks]:
        conversation_id = chunk.metadata.conversation_id
        if conversation_id is None:
            return []
        near = list(said_before)
        if len(near) < limit:  # an import out of order may be earlier than stored chunks
            later = self.index.list_between(moment, None, limit + 1, conversation_id=conversation_id)
            near += map(_ID, later)
        others = [one for one in dict.fromkeys(near) if one != chunk.id][:limit]
        return [ChunkLinks(one, "context_of", round(_STEP**place, 4)) for place, one in enumerate(others)]

    def _follows_links(
        self, chunk: Chunk, moment: datetime, said_before: dict[str, float], limit: int
    ) -> list[ChunkLinks]:
        window, now = self._config.follows_seconds, moment.timestamp()
        alone = chunk.metadata.conversation_id is None
        places = self._by_same_author(chunk, moment, limit) if alone else said_before
        near = [place for place in places.items() if now - place[1] <= window][:limit]
        if near and (alone or not has_own_time(chunk.metadata)):
            bodies = self.index.get_many([chunk_id for chunk_id, _ in near])
            near = [
                (chunk_id, at)
                for chunk_id, at in near
                if chunk_id in bodies and of_one_stream(chunk.metadata, bodies[chunk_id].metadata)
            ]
        links: list[ChunkLinks] = []
        for chunk_id, at in near:
            gap = max(0.0, now - at)
            strength = (1.0 - gap / window if window else 1.0) * _STEP ** len(links)
            if (rounded := round(strength, 4)) > 0.0:
                links.append(ChunkLinks(chunk_id, "follows", rounded))
        return links

    def _by_same_author(self, chunk: Chunk, moment: datetime, limit: int) -> dict[str, float]:
        """The latest earlier chunks without a conversation that have the same origin and source."""
        about = chunk.metadata
        try:
            since = moment - timedelta(seconds=self._config.follows_seconds)
        except OverflowError:  # in the first minutes of year 1
            since = moment
        return self._earlier_chunks(
            chunk, since, moment, 2 * limit + 1, (about.origin, about.source, about.created_at)
        )

    def _related_links(self, tags: Sequence[str], own_id: str | None, limit: int) -> list[ChunkLinks]:
        chunk_tags = set(tags)
        tagged: list[Sequence[Summary]] = []
        newest: list[Summary] | None = None
        for tag in list(dict.fromkeys(tags))[:_TAGS_ASKED]:
            found = self.index.latest(max(limit + 1, _TAGGED), tag=tag)
            if len(found) >= _TAGGED:
                newest = self.newest() if newest is None else newest
                if 2 * sum([tag in one.tags for one in newest]) > len(newest):
                    continue  # a tag of most chunks does not relate any two of them
            tagged.append(found)
        strengths: dict[Sequence[str], float] = {}  # by tags, since most chunks share theirs with others
        scored: list[tuple[float, float, str]] = []
        best, last = 0, 0.0
        for summary in tagged[0] if len(tagged) == 1 else {one.id: one for one in chain(*tagged)}.values():
            if best >= limit and len(chunk_tags) == 1 and summary.at < last:
                break  # newest first, so no further one can rank above those found
            strength = strengths.get(summary.tags)
            if strength is None:
                shared = len(chunk_tags.intersection(summary.tags))
                enough = shared >= self._config.min_shared_tags
                strength = strengths[summary.tags] = (
                    shared / len(chunk_tags.union(summary.tags)) if enough else 0.0
                )
            if strength and summary.id != own_id:
                scored.append((strength, summary.at, summary.id))
                if strength == 1.0:
                    best, last = best + 1, summary.at
        scored.sort(reverse=True)
        return [
            ChunkLinks(target, "related_to", round(strength, 4)) for strength, _, target in scored[:limit]
        ]


def add_manual_link(
    chunk_store: ChunkStore,
    source_id: str,
    target_id: str,
    link_type: str,
    strength: float = 0.5,
    reasoning: str | None = None,
) -> bool:
    """Link two chunks (see ``AutoLinker.add_manual_link``)."""
    return chunk_store.add_link(source_id, target_id, link_type, strength, reasoning)


def has_own_time(about: ChunkMetadata) -> bool:
    """Whether the time of a chunk is that of its content, not the time of an import without ``occurred_at``."""
    return about.occurred_at is not None or about.origin not in ("import", "web")


def of_one_stream(later: ChunkMetadata, earlier: ChunkMetadata) -> bool:
    """Whether two chunks near in time may follow each other: same conversation, or same author outside of any.

    Chunks imported without times of their own only follow those from the same file or address.
    """
    if later.conversation_id != earlier.conversation_id:
        return False
    if not (has_own_time(later) and has_own_time(earlier)):
        path = later.provenance.get("path")
        return path is not None and path == earlier.provenance.get("path")
    return later.conversation_id is not None or _author(later) == _author(earlier)


def _author(about: ChunkMetadata) -> tuple[object, ...]:
    return (about.origin, about.source, about.extra.get("author"), about.extra.get("speaker"))
