"""Move memories from one namespace to another: only at a person's request, never by a rule or an agent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from msgspec import structs

from rlm_mem.chunk import SUPERSEDES, Chunk, content_hash
from rlm_mem.errors import InputError, InvalidLink, NamespaceError, NotFoundError
from rlm_mem.store.core.records import is_mirror

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore


@dataclass(frozen=True, slots=True)
class MovedChunk:
    """A memory that was moved: its former id, and its id in the new namespace.

    Attributes:
        apart: the memories that it replaced or that replaced it, and that stayed where they were: they keep
            their end of validity, but the two no longer name each other in the new namespace.
    """

    former_id: str
    chunk_id: str
    apart: tuple[str, ...] = ()


def move_chunks(source: ChunkStore, namespace: str, chunk_ids: Sequence[str]) -> list[MovedChunk]:
    """Move memories into another namespace, all of those named or none, and archive the originals.

    This is one transaction: a process killed in the middle leaves each memory in one of the namespaces. If these are on
    different database servers, there are two: a process killed between them leaves the memories in both namespaces, and
    repeating the call completes the move.

    A memory keeps its text, type, tags, times, validity, origin and trust, and its links to memories moved with it.
    Other links are dropped, since their targets are not in the new namespace, but for replacements of, and by, memories
    that were moved there before. ``provenance.moved_from`` names the original.

    Args:
        source: the store of the present namespace.
        namespace: the target, in the same brain or database.

    Returns:
        The moved memories, in the order of the ids.

    Raises:
        NotFoundError: one of them is not in the source; nothing was moved.
        InputError: source and target are one namespace, or an id is that of a tiered memory.
    """
    target = source.confined_to(namespace, actor=source.actor)
    if source.namespace == target.namespace:
        raise InputError(
            f"{namespace} is already the namespace of these memories", hint="name another namespace"
        )
    ids = list(dict.fromkeys(chunk_ids))
    if tiered := next((one for one in ids if is_mirror(one)), None):
        raise InputError(f"{tiered} shows a tiered memory, which stays in its namespace; nothing was moved")
    with ExitStack() as transactions:
        try:
            # Always in the same order, so that two opposite moves at once cannot deadlock.
            for store in sorted((source, target), key=lambda one: one.namespace):
                transactions.enter_context(store.backend.transaction(store.namespace))
        except NamespaceError:  # the namespaces are on different servers
            transactions.close()
        found = source.get_many(ids)
        missing = [chunk_id for chunk_id in ids if chunk_id not in found]
        if missing:
            raise NotFoundError(
                f"there is no chunk {missing[0]!r:.80} in {source.namespace}; nothing was moved",
                hint=f"rlm-mem --namespace {source.namespace} list shows the ids",
            )
        with target.batch():
            origins = {f"{source.namespace}#{one}" for one in ids}
            moved = [MovedChunk(one, _written(found[one], target, origins)) for one in ids]
            new_ids = {one.former_id: one.chunk_id for one in moved}
            others = {one for chunk in found.values() for one in _replacing(chunk)} - found.keys()
            before = source.backend.chunks(source.namespace, sorted(others), status=None)
            new_ids |= {one.id: copy for one in before.values() if (copy := _moved_before(one, target))}
            for chunk in (*found.values(), *(one for one in before.values() if one.id in new_ids)):
                _restore_links(chunk, new_ids, target)
        with source.batch():
            for chunk_id in ids:
                source.delete_chunk(chunk_id)
    apart = source.backend.chunks(source.namespace, sorted(before.keys() - new_ids.keys())).keys()
    return [replace(one, apart=tuple(sorted(apart & _replacing(found[one.former_id])))) for one in moved]


def _replacing(chunk: Chunk) -> set[str]:
    """Return the ids of the chunks that a chunk replaces, and of the one that replaces it."""
    by = chunk.metadata.superseded_by
    return {*(one.target_id for one in chunk.links if one.type == SUPERSEDES), *([] if by is None else [by])}


def _moved_before(chunk: Chunk, target: ChunkStore) -> str | None:
    """Return the id that a chunk got in the target namespace when it was moved there earlier; None: it was not."""
    copies = _same_text(chunk, target)
    return next(
        (one.id for one in copies if one.metadata.provenance.get("moved_from") == _origin(chunk)), None
    )


def _same_text(chunk: Chunk, target: ChunkStore) -> Iterable[Chunk]:
    """Return the visible chunks of the target namespace with the text and conversation of a chunk."""
    same = target.backend.queries.with_hash(
        target.namespace, content_hash(chunk.content), chunk.metadata.conversation_id
    )
    return target.get_many(same).values()


def _origin(chunk: Chunk) -> str:
    return f"{chunk.namespace}#{chunk.id}"


def _restore_links(chunk: Chunk, moved: Mapping[str, str], target: ChunkStore) -> None:
    """Link a moved chunk to others that were moved, unless the target already has a supersession between the two.

    A link that would close a cycle with those in the target is dropped.
    """
    own = moved[chunk.id]
    for link in chunk.links:
        other = moved.get(link.target_id)
        if other is None or other == own:  # both may have become one chunk
            continue
        if link.type != SUPERSEDES:
            with suppress(InvalidLink):
                target.add_link(own, other, link.type, link.strength, link.reasoning)
            continue
        known = target.get_many([own, other])
        if known[other].metadata.superseded_by is None and known[own].metadata.superseded_by != other:
            target.supersede(other, own, link.reasoning, confidence=link.strength, force=True)


def _written(chunk: Chunk, target: ChunkStore, origins: Collection[str]) -> str:
    """Write a chunk to the target namespace, unless a valid copy is there already; returns its id there.

    A chunk that is there keeps the higher trust and the later expiry of the two. Another chunk of this move does not
    count as there: "We deploy on Thursdays" may have been replaced, and become true again.

    Args:
        origins: ``provenance.moved_from`` of all chunks of this move.
    """
    meta = chunk.metadata
    origin = _origin(chunk)
    for known in _same_text(chunk, target):
        from_there = known.metadata.provenance.get("moved_from")
        is_valid = known.metadata.superseded_by is None or meta.superseded_by is not None
        if is_valid and (from_there == origin or from_there not in origins):
            from rlm_mem.ingest.remember import update_repeated

            update_repeated(target, known.id, structs.asdict(meta))
            return known.id
    return target.create_chunk(
        chunk.content,
        chunk.type,
        {**meta.extra},
        conversation_id=meta.conversation_id,
        tags=chunk.tags,
        confidence=meta.confidence,
        source=meta.source,
        occurred_at=meta.at,
        valid_from=meta.valid_from,
        valid_to=meta.valid_to,
        provenance={**meta.provenance, "moved_from": origin},
        secrets="keep",
        origin=meta.origin,
        trust=meta.trust,
        expires=meta.expires_at,
    ).id
