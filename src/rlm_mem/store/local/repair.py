"""Mending what integrity checks find: a dry run unless told otherwise, and never a deletion of content."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlm_mem.chunk import Chunk, content_hash
from rlm_mem.errors import RlmMemError
from rlm_mem.store.core import files
from rlm_mem.store.local.history import former_versions
from rlm_mem.store.local.integrity import CODES, Finding, check
from rlm_mem.store.local.local_backend import LocalBackend
from rlm_mem.store.local.rows import Row, find_row

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.local.layout import Layout

__all__ = ["Repair", "repair"]

_logger = logging.getLogger("rlm_mem.store")

_MANUAL = {code for code, (_, remedy) in CODES.items() if remedy.startswith("left")}
_REINDEX = {"index-missing-file", "orphaned-file", "index-outdated", "leftover-file"}
_REBUILD = {"index-links", "index-terms", "index-damaged", "index-row", "index-counts"}


@dataclass(frozen=True)
class Repair:
    """What was, or would be, done about one finding.

    Attributes:
        finding: what is wrong.
        action: what repair does about it, in words.
        done: whether it was done; False in a dry run, and for what only a person can decide.
        manual: whether only a person can decide.
        error: why it could not be done.
    """

    finding: Finding
    action: str
    done: bool = False
    manual: bool = False
    error: str | None = None


def repair(
    store: ChunkStore, *, dry_run: bool = True, progress: Callable[[int, int], None] | None = None
) -> list[Repair]:
    """Mend what can be mended; every changed chunk keeps its former version.

    Args:
        dry_run: only say what would be done (the default).
        progress: as in ``check``.
    """
    findings = check(store, progress=progress)
    planned = [Repair(item, item.remedy, manual=item.code in _MANUAL) for item in findings]
    if dry_run:
        return planned
    results = [
        step if step.manual or step.finding.code in _REINDEX | _REBUILD else _apply(store, step)
        for step in planned
    ]
    codes = {item.code for item in findings}
    if codes & _REBUILD:
        store.rebuild_index()
    elif codes & _REINDEX:
        store.sync(full=True)
    return [
        Repair(step.finding, step.action, done=True) if step.finding.code in _REINDEX | _REBUILD else step
        for step in results
    ]


def _apply(store: ChunkStore, step: Repair) -> Repair:
    finding = step.finding
    try:
        if finding.code in ("content-hash", "token-count"):
            done = _refresh(store, finding)
        elif finding.code in ("dangling-link", "self-link", "namespace-crossing-link"):
            done = _drop_link(store, finding)
        elif finding.code in ("unreadable-row-with-version", "orphaned-row"):
            from rlm_mem.store.postgres.mending import bring_back, remove_rows

            done = (remove_rows if finding.code == "orphaned-row" else bring_back)(store, finding)
        elif finding.code == "misnamed-file":
            done = _rename(store, finding)
        else:
            done = _bring_back(store, finding)
    except (RlmMemError, OSError) as error:
        _logger.error("repair of %s failed: %s", finding.file, error)
        return Repair(finding, step.action, error=str(error))
    store.record_event("repair", [finding.chunk_id] if finding.chunk_id else [], code=finding.code)
    return Repair(finding, step.action, done=done)


def _rewrite(store: ChunkStore, finding: Finding, change: Callable[[Chunk], bool]) -> bool:
    """Apply ``change`` to the chunk of a finding as a new revision; False if there is nothing left to change."""
    with store.backend.transaction(store.namespace) as transaction:
        row = _row(store, finding.chunk_id or "")
        chunk = store.backend.read(row) if row else None
        if row is None or chunk is None or not change(chunk):
            return False
        chunk.revision += 1
        transaction.put(chunk, status=row.status)
    return True


def _refresh(store: ChunkStore, finding: Finding) -> bool:
    from rlm_mem.text.tokens import count_tokens

    def change(chunk: Chunk) -> bool:
        tokens, digest = count_tokens(chunk.content), content_hash(chunk.content)
        if (chunk.tokens, chunk.metadata.content_hash) == (tokens, digest):
            return False
        chunk.tokens, chunk.metadata.content_hash = tokens, digest
        return True

    # Both findings of one edited file are mended by the first of them; the second finds nothing to change.
    _rewrite(store, finding, change)
    return True


def _drop_link(store: ChunkStore, finding: Finding) -> bool:
    def change(chunk: Chunk) -> bool:
        kept = [
            link
            for link in chunk.links
            if (link.target_id, link.type) != (finding.target_id, finding.link_type)
        ]
        changed = len(kept) < len(chunk.links)
        chunk.links = kept
        return changed

    return _rewrite(store, finding, change)


def _row(store: ChunkStore, chunk_id: str) -> Row | None:
    """The row of a chunk: of a folder, whatever its namespace, since its check looks at all of them."""
    if isinstance(store.backend, LocalBackend):
        return find_row(store.backend.connection, chunk_id)
    return store.backend.find(store.namespace, chunk_id)


def _layout(store: ChunkStore) -> Layout:
    assert isinstance(store.backend, LocalBackend), "only a folder has files"
    return store.backend.layout


def _rename(store: ChunkStore, finding: Finding) -> bool:
    from rlm_mem.chunk import decode_chunk

    layout = _layout(store)
    path = layout.absolute(finding.file or "")
    chunk = decode_chunk(path.read_bytes())
    target = path.with_name(f"{chunk.id}.json")
    row = _row(store, chunk.id)
    if target.exists() or (row is not None and layout.absolute(row.path).exists()):
        return False
    files.publish(path, target)
    store.sync(full=True)
    return True


def _bring_back(store: ChunkStore, finding: Finding) -> bool:
    """Set a damaged file aside (it is kept) and put its newest sound former version in its place."""
    layout = _layout(store)
    versions = former_versions(layout, finding.chunk_id or "", below=2**62)
    path = layout.absolute(finding.file or "")
    if not versions or not path.exists():
        return False
    kept = layout.archive / "damaged" / f"{path.name}.{store.clock():%Y%m%dT%H%M%S%f}"
    files.make_folder(kept.parent)
    chunk = versions[-1].chunk
    chunk.revision += 1
    files.publish(path, kept)
    store.sync(full=True)
    with store.backend.transaction(store.namespace) as transaction:
        transaction.put(chunk)
    return True
