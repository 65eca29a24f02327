"""The neighbours of a hit: the turns or sentences before and after it in its conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from rlm_mem.record import FrozenRecord
from rlm_mem.store.core.records import repeated_prefix
from rlm_mem.text.segments import Segment, split_segments

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.chunk_store import ChunkStore


class AdjacentSegment(FrozenRecord, frozen=True):
    """A turn or sentence before or after a hit.

    Attributes:
        offset: distance from the hit: -1 is the one before it, 1 the one after it.
        chunk_id: its chunk, which may be the hit's own.
        text: its text, as in the chunk.
        start, end: its place in that chunk's content, in characters.
        author: its speaker, None where the text names none.
        at: `occurred_at`, else `created_at` (`YYYY-MM-DDTHH:MM:SS.ffffffZ`).
    """

    offset: int
    chunk_id: str
    text: str
    start: int
    end: int
    author: str | None
    at: str


def neighbours_of(
    store: ChunkStore, hits: Sequence[tuple[Chunk, int, int]], count: int
) -> list[tuple[AdjacentSegment, ...]]:
    """Return up to `count` neighbours on each side of each hit, in reading order.

    All are found together and read in one query.

    Args:
        hits: the chunk of each hit, and the start and end of its segment.
    """
    ids = dict.fromkeys(chunk.id for chunk, _, _ in hits if chunk.metadata.conversation_id is not None)
    beside = store.neighbours_of_each(list(ids), before=count, after=count)
    wanted = dict.fromkeys(one for pair in beside.values() for side in pair for one in side)
    read = store.get_many(list(wanted), track=False) if wanted else {}
    found = []
    for chunk, start, end in hits:
        earlier, later = beside.get(chunk.id, ([], []))
        before = islice(_backwards(chunk, start, [read[one] for one in earlier if one in read]), count)
        after = islice(_forwards(chunk, end, [read[one] for one in later if one in read]), count)
        found.append(
            tuple(_neighbour(*one, -place) for place, one in reversed(list(enumerate(before, start=1))))
            + tuple(_neighbour(*one, place) for place, one in enumerate(after, start=1))
        )
    return found


def _backwards(chunk: Chunk, start: int, earlier: Sequence[Chunk]) -> Iterator[tuple[Chunk, Segment]]:
    """Yield segments that end at or before `start`, nearest first, then those of the preceding chunks."""
    for segment in reversed(split_segments(chunk.content)):
        if segment.end <= start:
            yield chunk, segment
    repeated = repeated_prefix(chunk)
    for former in reversed(earlier):
        last = len(former.content) - repeated
        for segment in reversed(split_segments(former.content)):
            if segment.start < last:
                yield former, segment
        repeated = repeated_prefix(former)


def _forwards(chunk: Chunk, end: int, later: Sequence[Chunk]) -> Iterator[tuple[Chunk, Segment]]:
    """Yield segments that begin at or after `end`, nearest first, then those of the following chunks."""
    for segment in split_segments(chunk.content):
        if segment.start >= end:
            yield chunk, segment
    for following in later:
        repeated = repeated_prefix(following)
        for segment in split_segments(following.content):
            if segment.end > repeated:
                yield following, segment


def _neighbour(chunk: Chunk, segment: Segment, offset: int) -> AdjacentSegment:
    return AdjacentSegment(
        offset=offset,
        chunk_id=chunk.id,
        text=chunk.content[segment.start : segment.end],
        start=segment.start,
        end=segment.end,
        author=segment.author,
        at=chunk.metadata.at,
    )
