"""Mirrors every tiered memory as a chunk, so that search, RECALL and programs find it without a second index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlm_mem.continuum import places
from rlm_mem.continuum.files import TieredMemory
from rlm_mem.continuum.schema import TIERS
from rlm_mem.store.core.brain_files import mirror_id
from rlm_mem.store.core.records import COMPONENT, TIER_TAG, is_mirror

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.chunk_store import ChunkStore

#: ``metadata.source`` of every mirror.
SOURCE = "continuum"
#: Tag of plain chunks whose uses are counted.
MARK = "use:recorded"


def key_of(mirror: Chunk | None) -> str | None:
    """The key of the memory that a chunk mirrors; None for no chunk, and for one that only claims to mirror it."""
    place = mirror.metadata.provenance if mirror is not None else {}
    file, block = place.get("file"), place.get("entry")
    if mirror is None or not isinstance(file, str) or not isinstance(block, str | None):
        return None
    is_named = mirror.id == mirror_id(mirror.namespace, file, block)
    return (f"{file}#{block}" if block else file) if is_named else None


class Mirror:
    """Creates and updates mirrors; every call is idempotent.

    Args:
        store: the chunk store, locked by the caller.
    """

    def __init__(self, store: ChunkStore) -> None:
        self._store = store

    def put(self, entry: TieredMemory, derived_from: Sequence[str] = ()) -> Chunk:
        """Create, update or restore the mirror of a memory."""
        text, kind = entry.body.strip() or entry.title, places.KINDS[entry.kind].chunk_type
        limit, data = self._store.config.store.max_content_bytes, text.encode("utf-8")
        content = data[:limit].decode("utf-8", "ignore") if len(data) > limit else text
        tags, figures = _tags(entry), _figures(entry)
        confidence, provenance = entry.meta.confidence_score, {"file": entry.file, "entry": entry.block}
        if not self._store.exists(entry.chunk_id):
            self._store.restore_chunk(entry.chunk_id)
        chunk = self._store.update_chunk(
            entry.chunk_id,
            content,
            {**figures, "superseded_by": None, "valid_to": None, "provenance": provenance},
            tags=tags,
            confidence=confidence,
            chunk_type=kind,
            hidden=True,  # also in quarantine, so that it has the text of its memory when it is released
        )
        if chunk is not None:
            return chunk
        known = [one for one in derived_from if self._store.exists(one)]
        return self._store.create_chunk(
            content,
            kind,
            {name: value for name, value in figures.items() if value is not None}
            | {"access_count": entry.meta.access_count},
            [{"target_id": one, "type": "derived_from", "strength": 1.0} for one in known],
            tags,
            confidence,
            source=SOURCE,
            occurred_at=entry.meta.created_at,
            provenance=provenance,
            chunk_id=entry.chunk_id,
        )

    def ids(self) -> list[str]:
        """Ids of all active mirrors, read from the index only."""
        tags = [f"{TIER_TAG}{name}" for name in TIERS]
        return [one for one in self._store.list_chunks(any_tags=tags) if is_mirror(one)]

    def key_of(self, chunk_id: str) -> str | None:
        """The key of the memory that a chunk mirrors, also in quarantine; None for another chunk, or none."""
        chunk = self._store.get_chunk(chunk_id, track=False)
        if chunk is None:
            chunk = self._store.backend.chunks(self._store.namespace, [chunk_id]).get(chunk_id)
        return key_of(chunk)


def _tags(entry: TieredMemory) -> list[str]:
    meta = entry.meta
    tags = [f"{TIER_TAG}{meta.tier}", f"kind:{entry.kind}"]
    if meta.task_type:
        tags.append(f"task:{meta.task_type}")
    if meta.cross_project_validated:
        tags.append("cross-project")
    if meta.component_of:
        tags.append(COMPONENT)
    return tags


def _figures(entry: TieredMemory) -> dict[str, Any]:
    """The fields of ``metadata.extra`` of a mirror; None: it has none, or loses it."""
    meta = entry.meta
    return {
        "tier": meta.tier,
        "kind": entry.kind,
        "title": entry.title[:300],
        "volatility": meta.volatility,
        "usage_count": meta.usage_count,
        "success_rate": None if meta.rate is None else round(meta.rate, 6),
        "goal_signature": meta.goal_signature,
        "task_type": meta.task_type,
        "cross_project_validated": meta.cross_project_validated,
        "validation_count": meta.validation_count,
        "component_of": meta.component_of,
        "since": meta.since,
    }
