"""Cycles of links that express an order: refused when a link is written, reported by a check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rlm_mem.chunk import SUPERSEDES, Chunk
from rlm_mem.errors import InvalidLink

#: Link types that express an order (of time, derivation or replacement), which a cycle contradicts. The others
#: (shared tags, same conversation, similarity) are symmetric.
ORDERED_LINKS = ("follows", "derived_from", SUPERSEDES)
MAX_CYCLE_DEPTH = 64
_MAX_SHOWN = 8
"""Maximum number of chunks named in the error message."""


def refuse_cycles(
    former: Chunk | None, updated: Chunk, read: Callable[[Sequence[str]], Mapping[str, Chunk]]
) -> None:
    """Refuse an ordered link of ``updated`` that ``former`` lacks and that closes a cycle of up to 64 chunks.

    Replacements have a separate rule (``succession.ended``).

    Args:
        read: returns those of the chunks with these ids that exist.

    Raises:
        InvalidLink: there is such a link.
    """
    known = {(link.target_id, link.type) for link in former.links} if former else set()
    for link in updated.links:
        if link.type not in ORDERED_LINKS or link.type == SUPERSEDES or (link.target_id, link.type) in known:
            continue
        came_from = {link.target_id: updated.id}
        ring = [link.target_id]
        for _ in range(MAX_CYCLE_DEPTH - 1):
            further: dict[str, str] = {}
            for chunk_id, chunk in read(ring).items():
                for one in chunk.links:
                    if one.type == link.type and one.target_id not in came_from:
                        further.setdefault(one.target_id, chunk_id)
            came_from |= further
            if updated.id in further:
                raise InvalidLink(
                    f"{link.type} would form a cycle: {_shown(updated.id, came_from)}",
                    hint="remove one of the links that are there first",
                )
            if not further:
                break
            ring = list(further)


def _shown(closed_at: str, came_from: Mapping[str, str]) -> str:
    """Format a cycle as text, which begins and ends with the chunk that closes it."""
    trail = [closed_at, came_from[closed_at]]
    while trail[-1] != closed_at:
        trail.append(came_from[trail[-1]])
    trail.reverse()
    if len(trail) > _MAX_SHOWN:
        trail[_MAX_SHOWN // 2 : -_MAX_SHOWN // 2] = [f"{len(trail) - _MAX_SHOWN} more"]
    return " → ".join(trail)
