"""Repairs that only a database needs: damaged texts of chunks, and rows that belong to no chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.store.postgres.schema import namespace_key

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.integrity import Finding
    from rlm_mem.store.postgres.backend import PostgresBackend

__all__ = ["mend_rows"]

_OWNED = ("bodies", "tags", "links", "reads")


def mend_rows(store: ChunkStore, backend: PostgresBackend, finding: Finding) -> bool:
    """Mend a damaged text or remove rows without a chunk; False where there is nothing to be done about it."""
    return (
        remove_rows(store, backend, finding)
        if finding.code == "orphaned-row"
        else bring_back(store, backend, finding)
    )


def bring_back(store: ChunkStore, backend: PostgresBackend, finding: Finding) -> bool:
    """Keep a damaged text as a file of the brain, and put the newest sound former version in its place."""
    chunk_id = finding.chunk_id or ""
    ns = namespace_key(store.namespace)
    with backend.transaction(store.namespace) as transaction:
        row = backend.find(store.namespace, chunk_id)
        versions = backend.former_versions(store.namespace, chunk_id, below=2**31 - 1)
        if row is None or not versions:
            return False
        body = backend.rows(
            store.namespace, "SELECT body FROM rlm_mem.bodies WHERE ns = %s AND doc = %s", (ns, row.doc)
        )
        if body:
            name = f"archive/damaged/{chunk_id}.{store.clock():%Y%m%dT%H%M%S%f}.json"
            backend.files(store.namespace).write(name, body[0][0].encode())
        else:  # a row must be there to be changed
            backend.rows(
                store.namespace,
                "INSERT INTO rlm_mem.bodies(ns, doc, body, segments) VALUES (%s, %s, '', '')",
                (ns, row.doc),
            )
        chunk = versions[-1].chunk
        chunk.revision = max(row.revision, chunk.revision) + 1
        transaction.put(chunk, status=row.status, keep_version=False)
    return True


def remove_rows(store: ChunkStore, backend: PostgresBackend, finding: Finding) -> bool:
    """Remove the rows of a table (``finding.file`` names it) that belong to no chunk."""
    if finding.file not in _OWNED:
        return False
    with backend.transaction(store.namespace):
        backend.rows(
            store.namespace,
            f"DELETE FROM rlm_mem.{finding.file} x WHERE x.ns = %s AND NOT EXISTS"
            " (SELECT 1 FROM rlm_mem.chunks c WHERE c.ns = x.ns AND c.doc = x.doc)",
            (namespace_key(store.namespace),),
        )
    return True
