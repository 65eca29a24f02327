"""Recognises chunks of a source that the store has under another id, so that no memory is stored twice."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import NamedTuple

from rlm_mem.chunk import Chunk, content_hash, format_time
from rlm_mem.chunk.types import expired
from rlm_mem.interchange.target import WriteTarget
from rlm_mem.store.core.records import is_mirror


class Twin(NamedTuple):
    """A stored chunk that a chunk of the source was recognised as.

    Attributes:
        chunk: as stored.
        said: the hash of the content by which it was recognised, now or in an earlier import.
    """

    chunk: Chunk
    said: str


class Twins:
    """Finds stored chunks with the text, type, conversation, source and day of one in the source.

    What was recognised is recorded in the ledger: it stays so if either of the two is edited later.

    Args:
        ids: returns the ids of all chunks of the source, which are never taken for each other.
    """

    def __init__(self, target: WriteTarget, ids: Callable[[], Set[str]]) -> None:
        self._backend, self._clock, self._ledger = target.store.backend, target.store.clock, target.ledger
        self._ids = ids

    def of(self, source: tuple[str, str], chunk: Chunk) -> Twin | None:
        """Return the twin of a chunk that the store lacks; ``source`` is its namespace and id in the source."""
        namespace, unit = chunk.namespace, _unit(chunk.namespace, *source)
        said = self._ledger.mark(unit)
        if said is not None:
            for stored in self._backend.chunks(namespace, self._ledger.ids(unit), status=None).values():
                return Twin(stored, said)
        if is_mirror(chunk.id):
            return None
        digest = content_hash(chunk.content)
        same = self._backend.queries.with_hash(namespace, digest, chunk.metadata.conversation_id)
        for stored in self._backend.chunks(namespace, same).values() if same else ():
            original = stored.metadata.provenance.get("original_id")
            if (
                _identity(stored) == _identity(chunk)
                and not is_mirror(stored.id)
                and not expired(stored.metadata.expires_at, format_time(self._clock()))
                and self._ids().isdisjoint((stored.id, original))
            ):
                self.note(source, chunk, stored.id)
                return Twin(stored, digest)
        return None

    def known(self, namespace: str, source: str, chunk_id: str) -> tuple[str, ...]:
        """Return the id of the twin recorded for a chunk of the source; empty: none."""
        return self._ledger.ids(_unit(namespace, source, chunk_id))

    def note(self, source: tuple[str, str], chunk: Chunk, twin_id: str) -> None:
        """Record that a chunk of the source, as it is now, is the same memory as a stored one."""
        self._ledger.note(_unit(chunk.namespace, *source), content_hash(chunk.content), [twin_id])


def _unit(namespace: str, source: str, chunk_id: str) -> str:
    return f"chunk:{namespace}\0{source}\0{chunk_id}"


def _identity(chunk: Chunk) -> tuple[str, ...]:
    about = chunk.metadata
    return chunk.type, about.source, about.origin, about.at[:10]
