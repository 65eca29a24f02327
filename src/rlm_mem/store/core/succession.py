"""Supersession of chunks (`superseded_by` and `valid_to` of the older, the link `supersedes` of the newer), and cycles.

The two ends are always consistent: if a write changes one of them (by a supersession, a link, a field, an undo), the
other is changed in the same transaction. Cycles of links that express an order are refused when a link is written, and
reported by a check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rlm_mem.chunk import ORDERED_LINK_TYPES, SUPERSEDES, Chunk, ChunkLinks
from rlm_mem.errors import ConflictError, InvalidLink

if TYPE_CHECKING:
    from rlm_mem.store.core.records import Version

    Find = Callable[[str], Chunk | None]

#: Maximum number of replacements that are followed to find a cycle.
_MAX_REPLACEMENTS = 1_000


def successions(chunk: Chunk | None) -> dict[str, ChunkLinks]:
    """Return the links by which a chunk replaces others, by the ids of those."""
    return {link.target_id: link for link in chunk.links if link.type == SUPERSEDES} if chunk else {}


def replacement(new: Chunk, old_id: str, now: str) -> ChunkLinks:
    """Return the link by which a chunk replaces another, adding one if there is none.

    Args:
        now: the time of a link that is added.
    """
    link = successions(new).get(old_id)
    if link is None:
        link = ChunkLinks(old_id, SUPERSEDES, 1.0, now)
        new.links.append(link)
    return link


def check_not_replaced(old: Chunk, new_id: str | None) -> None:
    """Raise ConflictError if a chunk other than ``new_id`` replaced this one."""
    if old.metadata.superseded_by not in (None, new_id):
        raise ConflictError(
            f"{old.id} was already replaced by {old.metadata.superseded_by}",
            hint="replace that one instead, or undo the earlier replacement",
        )


def check_replaceable(old: Chunk, new: Chunk, find: Find) -> None:
    """Check that the newer chunk may replace the older one.

    Args:
        find: also returns archived chunks, whose replacements count again when they are restored.

    Raises:
        ConflictError: another chunk replaced it.
        InvalidLink: the older one replaces the newer one, directly or indirectly; they are the same; or the newer one
            is in quarantine.
    """
    if old.id == new.id:
        raise InvalidLink(f"{old.id} cannot replace itself")
    if new.metadata.trust == "quarantined":
        raise InvalidLink(f"{new.id} is in quarantine, so it replaces nothing", hint="release it first")
    check_not_replaced(old, new.id)
    step: Chunk | None = new
    for _ in range(_MAX_REPLACEMENTS):
        after = step.metadata.superseded_by if step is not None else None
        if after is None:
            break
        if after == old.id:
            raise InvalidLink(
                f"{new.id} cannot replace {old.id}: it was replaced by it",
                hint="remember the valid text again, and let that replace the other",
            )
        step = find(after)


def ended(old: Chunk, link: ChunkLinks, new: Chunk, find: Find) -> Chunk:
    """Return a copy of the older chunk as replaced by the newer one; ``link`` records its previous end.

    It is valid until the newer one happened, but never past its own earlier end. Arguments and errors are those of
    ``check_replaceable``.
    """
    check_replaceable(old, new, find)
    made = Chunk.from_dict(old.to_dict())
    about = made.metadata
    until = max(new.metadata.at, about.at, about.valid_from or "")
    if about.valid_to is not None and about.valid_to != until:
        link.extra = {**link.extra, "former_valid_to": about.valid_to}
        until = min(until, about.valid_to)
    about.superseded_by, about.valid_to = new.id, until
    return made


def released(old: Chunk, link: ChunkLinks) -> Chunk:
    """Return a copy of the older chunk that nothing replaces any more."""
    made = Chunk.from_dict(old.to_dict())
    made.metadata.superseded_by = None
    made.metadata.valid_to = link.extra.get("former_valid_to")
    return made


def replacing_nothing(new: Chunk) -> Chunk:
    """Return a copy of a chunk without the links by which it replaces others."""
    made = Chunk.from_dict(new.to_dict())
    made.links = [link for link in made.links if link.type != SUPERSEDES]
    return made


def held(chunk: Chunk, at: str) -> bool:
    """Return whether a chunk held at a time (as stored): it had happened, and its validity includes the time."""
    about = chunk.metadata
    return (about.valid_from or about.at) <= at and (about.valid_to is None or about.valid_to > at)


def as_it_was(chunk: Chunk, at: str, versions: Callable[[str], Sequence[Version]]) -> Chunk:
    """Return the kept state that a chunk had at a time; if that is a former state, without its successor.

    Args:
        versions: returns every kept state of a chunk, oldest first; called only if the present state is later.
    """
    if chunk.metadata.modified_at > at:
        kept = [one.chunk for one in versions(chunk.id)]
        then = [one for one in kept if one.metadata.modified_at <= at]
        chunk = Chunk.from_dict((then[-1] if then else kept[0] if kept else chunk).to_dict())
        chunk.metadata.superseded_by = None
    return chunk


# --- cycles ---------------------------------------------------------------------------------------------

MAX_CYCLE_DEPTH = 64
_MAX_SHOWN = 8
"""Maximum number of chunks named in the error message."""


def refuse_cycles(
    former: Chunk | None, updated: Chunk, read: Callable[[Sequence[str]], Mapping[str, Chunk]]
) -> None:
    """Refuse an ordered link of ``updated`` that ``former`` lacks and that closes a cycle of up to 64 chunks.

    Replacements have a separate rule (``ended``).

    Args:
        read: returns those of the chunks with these ids that exist.

    Raises:
        InvalidLink: there is such a link.
    """
    known = {(link.target_id, link.type) for link in former.links} if former else set()
    for link in updated.links:
        if (
            link.type not in ORDERED_LINK_TYPES
            or link.type == SUPERSEDES
            or (link.target_id, link.type) in known
        ):
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
