"""Finds automatic links that the present rules would not make, and removes them on request.

A link only counts if the automatic linker certainly made it: it has an automatic type and no reasoning, came with the
first links of its chunk, has exactly a strength that a rule computes, and was made at the same instant as one whose
strength nobody enters by hand, such as 0.729. Links that may have been made by hand are not touched.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlm_mem.chunk import AUTO_LINK_TYPES, Chunk, ChunkLinks, parse_time
from rlm_mem.errors import RlmMemError
from rlm_mem.ingest.linking import of_one_stream
from rlm_mem.results import Progress
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.findings import Finding
from rlm_mem.store.core.integrity import Repair
from rlm_mem.store.core.records import in_lots

_RANKS = [0.9**rank for rank in range(64)]  # strengths by rank, in all versions


def noisy_links(store: ChunkStore, *, progress: Progress | None = None) -> Iterator[Finding]:
    """A finding ``noise-links`` for each active chunk with obsolete automatic links.

    Args:
        progress: called with (chunks checked, total chunks).
    """
    ids = store.list_chunks()
    done = 0
    for lot in in_lots(ids):
        for chunk in store.get_many(lot).values():
            noise = noise_of(store, chunk)
            if noise:
                counted = ", ".join(
                    f"{sum(link.type == kind for link in noise)} {kind}"
                    for kind in AUTO_LINK_TYPES
                    if any(link.type == kind for link in noise)
                )
                message = f"{chunk.id}: {len(noise)} of {len(chunk.links)} links ({counted})"
                yield Finding("noise-links", message, None, chunk.id)
        done += len(lot)
        if progress is not None:
            progress(done, len(ids))


def prune_links(store: ChunkStore, *, dry_run: bool = True, progress: Progress | None = None) -> list[Repair]:
    """Remove obsolete automatic links; each chunk gets a new revision, which ``undo`` reverts.

    Args:
        dry_run: only report what would be removed.
        progress: as in ``noisy_links``.
    """
    steps = [Repair(one, one.remedy) for one in noisy_links(store, progress=progress)]
    if dry_run:
        return steps
    done: list[Repair] = []
    for lot in in_lots(steps):
        try:
            with store.batch():
                made = [Repair(one.finding, one.action, done=_prune(store, one.finding)) for one in lot]
        except (RlmMemError, OSError) as error:  # the whole transaction was rolled back
            made = [Repair(one.finding, one.action, error=str(error)) for one in lot]
        done += made
    return done


def _prune(store: ChunkStore, finding: Finding) -> bool:
    chunk = store.get_chunk(finding.chunk_id or "", track=False)
    noise = noise_of(store, chunk) if chunk else []  # the chunk may have changed in the meantime
    if chunk is None or not noise:
        return False
    noisy_keys = {(link.target_id, link.type) for link in noise}
    remaining = [link for link in chunk.links if (link.target_id, link.type) not in noisy_keys]
    return store.update_chunk(chunk.id, links=remaining) is not None


def noise_of(store: ChunkStore, chunk: Chunk) -> list[ChunkLinks]:
    """Automatic links of a chunk that would not be made today, in their order."""
    automatic = [
        link for link in chunk.links if link.type in AUTO_LINK_TYPES and not (link.reasoning or link.extra)
    ]
    if not automatic:
        return []
    first = _first_linked_version(store, chunk)
    if first is None:
        return []
    then = {_key(link) for link in first.links}
    targets = store.get_many(list(dict.fromkeys(link.target_id for link in automatic)))
    window = store.config.ingest.follows_seconds
    made = [
        link for link in automatic if _key(link) in then and _is_rule_strength(first, link, targets, window)
    ]
    certain = {link.created_at for link in made if round(link.strength * 100, 6) % 1}
    limit = store.config.ingest.max_links_per_type
    room = dict.fromkeys(AUTO_LINK_TYPES, limit)
    noise: list[ChunkLinks] = []
    for link in made:
        target = targets[link.target_id]
        fits = link.type != "follows" or of_one_stream(chunk.metadata, target.metadata)
        if fits and room[link.type]:
            room[link.type] -= 1
        elif link.created_at in certain:
            noise.append(link)
    return noise


def _key(link: ChunkLinks) -> tuple[object, ...]:
    return (link.target_id, link.type, link.strength, link.created_at)


def _first_linked_version(store: ChunkStore, chunk: Chunk) -> Chunk | None:
    """The version of a chunk that got its first links; None if it is no longer stored."""
    if chunk.revision == 1:
        return chunk
    versions = store.history(chunk.id)
    if not versions or versions[0].revision != 1:
        return None
    return next((version.chunk for version in versions if version.chunk.links), None)


def _is_rule_strength(chunk: Chunk, link: ChunkLinks, targets: dict[str, Chunk], window: float) -> bool:
    """Whether a rule of this or an earlier version computes the strength of this link."""
    target = targets.get(link.target_id)
    if target is None:
        return False
    if link.type == "context_of":
        strengths = _RANKS
    elif link.type == "related_to":
        shared = set(chunk.tags).intersection(target.tags)
        strengths = [len(shared) / len({*chunk.tags, *target.tags})] if shared else []
    else:
        gap = max(0.0, _seconds(chunk) - _seconds(target))
        closeness = max(0.0, 1.0 - gap / window) if window else 1.0
        strengths = [closeness * step * share for step in _RANKS for share in (1.0, 0.5)]
    return any(abs(round(one, 4) - link.strength) < 1e-9 for one in strengths)


def _seconds(chunk: Chunk) -> float:
    return parse_time(chunk.metadata.at).timestamp()
