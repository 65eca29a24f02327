"""AutoLinker: automatic links of a new chunk, and links made on purpose.

Every rule asks the index a bounded question, so linking costs the same in a store of a hundred chunks and of a million.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING

from rlm_mem.chunk import SIMILAR_TO, Chunk, ChunkLinks, format_time, parse_time
from rlm_mem.config import IngestConfig

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore, Summary

__all__ = ["AutoLinker", "add_manual_link"]

_STEP = 0.9  # strength of the next nearest chunk, relative to the one before
_ELSEWHERE = 0.5  # closeness in time counts half across conversations
_TAGS_ASKED = 16  # tags of a new chunk that are looked up
_CARRIERS = 32  # newest chunks of each tag that are compared


class AutoLinker:
    """Links a new chunk to those before it (docs/spec/links.md, Automatic rules).

    ``context_of``: the same conversation, nearest first. ``follows``: at most five minutes earlier, the nearer the
    stronger, half as strong across conversations. ``related_to``: shared tags, strength = Jaccard of the tag sets.
    ``similar_to``: the same words but for case, space and punctuation. Of each type at most
    ``ingest.max_links_per_type`` links are stored, strongest first, then newest.

    Args:
        chunk_store: an open store; ``chunk_store.config.ingest`` sets the bounds.
        config: other bounds.
    """

    def __init__(self, chunk_store: ChunkStore, config: IngestConfig | None = None) -> None:
        self._store = chunk_store
        self._config = config or chunk_store.config.ingest

    def link_on_create(self, chunk: Chunk) -> Chunk:
        """Add automatic links to a new chunk; links that it has already are kept.

        Returns:
            The chunk with its links. One that is stored is updated there; one that is not is left to the caller.
        """
        found = self.links_for(
            content=chunk.content,
            at=chunk.metadata.at or format_time(self._store.clock()),
            conversation_id=chunk.metadata.conversation_id,
            tags=chunk.tags,
            own_id=chunk.id,
        )
        present = {(link.target_id, link.type) for link in chunk.links}
        added = [link for link in found if (link.target_id, link.type) not in present]
        if not added:
            return chunk
        links = [*chunk.links, *added]
        stored = self._store.update_chunk(chunk.id, links=links) if self._store.exists(chunk.id) else None
        return stored or replace(chunk, links=links)

    def links_for(
        self,
        *,
        content: str,
        at: str,
        conversation_id: str | None,
        tags: Sequence[str],
        own_id: str | None = None,
    ) -> list[ChunkLinks]:
        """The automatic links of a chunk that need not be stored yet.

        Args:
            content: its text.
            at: when it was said, else created; ISO 8601.
            conversation_id: its conversation, if any.
            tags: its tags.
            own_id: its id, never linked to.
        """
        limit = self._config.max_links_per_type
        if limit == 0:
            return []
        moment = parse_time(at)
        said_before: list[str] = []
        if conversation_id is not None:  # so far, newest first: as much of it as any rule looks at
            found = self._store.list_between(
                None, moment, 2 * limit + 1, conversation_id=conversation_id, newest_first=True
            )
            said_before = [chunk_id for chunk_id, _, _ in found]
        links = [
            *self._context(moment, conversation_id, said_before, own_id, limit),
            *self._follows(moment, conversation_id, said_before, own_id, limit),
            *(self._related(tags, own_id, limit) if tags else ()),
            *self._similar(content, own_id, limit),
        ]
        made_at = format_time(self._store.clock())
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
        """Link two chunks on purpose, by any built-in or registered type.

        Args:
            strength: 0-1.
            reasoning: why, in words.

        Returns:
            True; linking again changes strength and reasoning of the link that is there.

        Raises:
            InvalidLink: unknown type, strength outside 0-1, a missing chunk, or a chunk linked to itself.
            InvalidChunkId: an id that cannot be one.
        """
        return self._store.add_link(source_id, target_id, link_type, strength, reasoning)

    def _context(
        self,
        moment: datetime,
        conversation_id: str | None,
        said_before: list[str],
        own_id: str | None,
        limit: int,
    ) -> list[ChunkLinks]:
        if conversation_id is None:
            return []
        near = said_before[: limit + 1]
        if len(near) <= limit:  # said before what is there already, as in an import out of order
            later = self._store.list_between(moment, None, limit + 1, conversation_id=conversation_id)
            near += [chunk_id for chunk_id, _, _ in later]
        links: list[ChunkLinks] = []
        for chunk_id in dict.fromkeys(near):
            if chunk_id != own_id and len(links) < limit:
                links.append(ChunkLinks(chunk_id, "context_of", _rounded(_STEP ** len(links))))
        return links

    def _follows(
        self,
        moment: datetime,
        conversation_id: str | None,
        said_before: list[str],
        own_id: str | None,
        limit: int,
    ) -> list[ChunkLinks]:
        window = self._config.follows_seconds
        try:
            since = moment - timedelta(seconds=window)
        except OverflowError:  # the first minutes of the year 1
            since = moment
        recent = self._store.list_between(since, moment, 2 * limit + 1, newest_first=True)
        if conversation_id is None:
            alone = self._store.summaries([chunk_id for chunk_id, _, _ in recent])
            said_before = [summary.id for summary in alone if summary.conversation_id is None]
        of_conversation = set(said_before)
        links: list[ChunkLinks] = []
        rank = {True: 0, False: 0}
        for chunk_id, at, _ in recent:
            if chunk_id == own_id:
                continue
            same = chunk_id in of_conversation
            gap = max(0.0, moment.timestamp() - at)
            closeness = 1.0 - min(1.0, gap / window) if window else 1.0
            strength = closeness * _STEP ** rank[same] * (1.0 if same else _ELSEWHERE)
            rank[same] += 1
            if strength > 0.0:
                links.append(ChunkLinks(chunk_id, "follows", _rounded(strength)))
        links.sort(key=attrgetter("strength"), reverse=True)  # stable: equals stay newest first
        return links[:limit]

    def _related(self, tags: Sequence[str], own_id: str | None, limit: int) -> list[ChunkLinks]:
        own = set(tags)
        carriers: dict[str, Summary] = {}
        for tag in list(dict.fromkeys(tags))[:_TAGS_ASKED]:
            for summary in self._store.latest(max(limit + 1, _CARRIERS), tag=tag):
                carriers[summary.id] = summary
        scored: list[tuple[float, float, str]] = []
        for summary in carriers.values():
            shared = own.intersection(summary.tags)
            if summary.id != own_id and len(shared) >= self._config.min_shared_tags:
                scored.append((len(shared) / len(own.union(summary.tags)), summary.at, summary.id))
        scored.sort(reverse=True)
        return [
            ChunkLinks(target, "related_to", _rounded(strength)) for strength, _, target in scored[:limit]
        ]

    def _similar(self, content: str, own_id: str | None, limit: int) -> list[ChunkLinks]:
        found = self._store.find_normalised(content, limit + 1)
        return [ChunkLinks(target, SIMILAR_TO, 1.0) for target in found if target != own_id][:limit]


def add_manual_link(
    chunk_store: ChunkStore,
    source_id: str,
    target_id: str,
    link_type: str,
    strength: float = 0.5,
    reasoning: str | None = None,
) -> bool:
    """Link two chunks on purpose; see ``AutoLinker.add_manual_link``."""
    return chunk_store.add_link(source_id, target_id, link_type, strength, reasoning)


def _rounded(strength: float) -> float:
    return round(min(1.0, strength), 4)
