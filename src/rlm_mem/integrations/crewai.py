"""CrewMemory: the memory of CrewAI's crews and agents kept in a brain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from crewai.memory.types import MemoryMatch, MemoryRecord, ScopeInfo
from crewai.memory.unified_memory import Memory as UnifiedMemory
from crewai.memory.utils import join_scope_paths

from rlm_mem.arguments import check_kind
from rlm_mem.chunk import Chunk, is_chunk_id
from rlm_mem.integrations.records import path_tag
from rlm_mem.memory import Memory
from rlm_mem.search.api import MAX_LIMIT
from rlm_mem.store.core.lookup import Filters

_KIND = "crewai"
_IMPORTANCE = 0.5
_BATCH = 200
"""Chunks that are read at a time."""


class CrewMemory(UnifiedMemory):
    """Gives agents the memories relevant to their tasks, and remembers results; without a key or a model of its own.

    Example::

        with Memory.open("brain") as memory:
            crew = Crew(agents=[agent], tasks=[task], memory=CrewMemory(memory))

    ``recall`` searches all memories of the namespace, or those that a crew stored below a scope. Its matches have the
    passage that fits, marked with its origin if that is untrusted, and with later notes on the same subject; ``depth``
    makes no difference. Each record is a chunk; its categories are tags. ``forget`` and ``reset`` archive what crews
    have stored, and other memories only by their ids.

    Args:
        memory: an open memory, which the caller closes.
        llm: model of CrewAI that extracts single statements from a result; None: the whole result is remembered.
        fields: such as ``root_scope`` and ``read_only``, as CrewAI describes them.
    """

    def __init__(self, memory: Memory, *, llm: Any = None, **fields: Any) -> None:
        check_kind(memory, Memory, "memory", hint="open it with Memory.open(…)")
        super().__init__(llm=llm or "", storage=_Scopes(memory), **fields)

    def extract_memories(self, content: str) -> list[str]:
        """The statements that CrewAI's model finds in a text; without a model, the text."""
        if self.llm:
            return list(super().extract_memories(content))
        return [content] if content.strip() else []

    def recall(
        self,
        query: str,
        scope: str | None = None,
        categories: list[str] | None = None,
        limit: int = 10,
        depth: str = "deep",  # noqa: ARG002 - of the interface
        source: str | None = None,
        include_private: bool = False,
    ) -> list[MemoryMatch]:
        """The memories that fit a query, the best first."""
        self.drain_writes()

        def wanted(record: MemoryRecord) -> bool:
            known = include_private or not record.private or (source is not None and record.source == source)
            return known and (not categories or bool(set(categories) & set(record.categories)))

        path = join_scope_paths(self.root_scope, scope)
        matches: list[MemoryMatch] = self._storage.matches(query, path, limit, wanted)
        return matches

    def update(
        self,
        record_id: str,
        content: str | None = None,
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
    ) -> MemoryRecord:
        """Change a record; its former version stays in the history of its chunk.

        Raises:
            ValueError: there is no record with this id.
        """
        existing = self._storage.get_record(record_id)
        if existing is None:
            raise ValueError(f"Record not found: {record_id}")
        if self.read_only:
            return existing
        changes = {
            "content": content,
            "scope": scope,
            "categories": categories,
            "metadata": metadata,
            "importance": importance,
        }
        given = {name: value for name, value in changes.items() if value is not None}
        return self._storage.update(existing.model_copy(update=given))

    def _encode_batch(
        self,
        contents: list[str],
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        root_scope: str | None = None,
    ) -> list[MemoryRecord]:
        """What ``remember`` and ``remember_many`` store."""
        record = MemoryRecord(
            content="",
            scope=join_scope_paths(root_scope, scope),
            categories=categories or [],
            metadata=metadata or {},
            importance=self.default_importance if importance is None else importance,
            source=source,
            private=private,
        )
        stored: list[MemoryRecord] = self._storage.add(contents, record)
        return stored


class _Scopes:
    """Chunks as records of CrewAI, each in a scope; chunks that CrewAI did not store are in the scope ``/``."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._store = memory.store

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # copies of a crew share the brain

    def add(self, contents: Sequence[str], like: MemoryRecord) -> list[MemoryRecord]:
        """Remember texts, all or none; a long text becomes several records."""
        # The same text is stored once in a conversation, so each scope and each owner of private records needs its own.
        conversation = _path(_labels(like.scope)) + (f" (private: {like.source})" if like.private else "")
        fields: dict[str, Any] = {
            "conversation_id": conversation,
            "tags": _tags(like),
            "metadata": _metadata(like),
        }
        with self._memory.batch():
            made = [
                chunk_id
                for content in contents
                for chunk_id in self._memory.remember(content, origin="agent", **fields).chunk_ids
            ]
        return list(map(_record, self._store.get_many(made).values()))

    def matches(
        self, query: str, scope: str, limit: int, wanted: Callable[[MemoryRecord], bool]
    ) -> list[MemoryMatch]:
        """The best hits below a scope whose records are ``wanted``, among the best 1,000."""
        labels = _labels(scope)
        filters = Filters(tags_all=(path_tag(_KIND, labels),)) if labels else None
        asked = min(max(50, 2 * limit), MAX_LIMIT)
        while query.strip():
            hits = self._memory.search(query, limit=asked, filters=filters)
            chunks = self._store.get_many([hit.chunk_id for hit in hits])
            records = ((hit, _record(chunks[hit.chunk_id])) for hit in hits if hit.chunk_id in chunks)
            found = [
                MemoryMatch(
                    record=record.model_copy(update={"content": hit.marked_snippet()}), score=hit.score
                )
                for hit, record in records
                if wanted(record)
            ]
            if len(found) >= limit or len(hits) < asked or asked == MAX_LIMIT:
                return found[:limit]
            asked = min(4 * asked, MAX_LIMIT)
        return []

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """The record with this id, None if there is none."""
        chunk = self._store.get_chunk(record_id) if is_chunk_id(record_id) else None
        return None if chunk is None else _record(chunk)

    def update(self, record: MemoryRecord) -> MemoryRecord:
        """Replace the text, scope, categories, metadata and importance of a record."""
        chunk = self._memory.update(record.id, record.content, _metadata(record), tags=_tags(record))
        if chunk is None:
            raise ValueError(f"Record not found: {record.id}")
        return _record(chunk)

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Archive the records that fit all that is given; returns how many."""
        if record_ids is None:
            found = [_record(chunk) for chunk in self._below(scope_prefix or "/") if _is_own(chunk)]
        else:
            found = [one for one in map(self.get_record, record_ids) if one is not None]
        before = None if older_than is None else _plain_time(older_than)
        with self._memory.batch():
            return sum(
                self._memory.delete(record.id)
                for record in found
                if (not categories or set(categories) & set(record.categories))
                and (before is None or record.created_at < before)
                and (metadata_filter or {}).items() <= record.metadata.items()
            )

    def reset(self, scope_prefix: str | None = None) -> None:
        """Archive every record that CrewAI stored below a scope."""
        self.delete(scope_prefix)

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """The records below a scope, newest first."""
        return list(map(_record, self._below(scope_prefix or "/", limit=limit, offset=offset)))

    def list_scopes(self, parent: str = "/") -> list[str]:
        """The scopes directly below a scope, sorted."""
        return list(self.get_scope_info(parent).child_scopes)

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """The categories below a scope, and how many records each has."""
        counts: dict[str, int] = {}
        for chunk in self._below(scope_prefix or "/"):
            for category in _record(chunk).categories:
                counts[category] = counts.get(category, 0) + 1
        return counts

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Number, categories and times of the records below a scope, and the scopes directly below it."""
        labels = _labels(scope)
        records = list(map(_record, self._below(scope)))
        times = [record.created_at for record in records]
        below = {_labels(record.scope)[: len(labels) + 1] for record in records} - {labels}
        return ScopeInfo(
            path=_path(labels),
            record_count=len(records),
            categories=sorted({category for record in records for category in record.categories}),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=sorted(map(_path, below)),
        )

    def _below(self, scope: str, *, limit: int | None = None, offset: int = 0) -> Iterator[Chunk]:
        labels = _labels(scope)
        tags = [path_tag(_KIND, labels)] if labels else None
        ids = self._store.list_chunks(tags=tags, newest_first=True, limit=limit, offset=offset)
        for start in range(0, len(ids), _BATCH):
            yield from self._store.get_many(ids[start : start + _BATCH]).values()


def _labels(scope: str) -> tuple[str, ...]:
    return tuple(filter(None, scope.split("/")))


def _path(labels: Sequence[str]) -> str:
    return "/" + "/".join(labels)


def _tags(record: MemoryRecord) -> list[str]:
    """The categories, and a tag for each scope that the record is in or below; no category has the form of that tag."""
    labels = _labels(record.scope)
    scopes = [path_tag(_KIND, labels[:depth]) for depth in range(1, len(labels) + 1)]
    return [*(one for one in record.categories if not _is_scope(one)), *scopes]


def _is_scope(tag: str) -> bool:
    return tag.strip().casefold().startswith(f"{_KIND}:")


def _metadata(record: MemoryRecord) -> dict[str, dict[str, Any]]:
    return {
        _KIND: {
            "scope": _path(_labels(record.scope)),
            "metadata": record.metadata,
            "importance": record.importance,
            "source": record.source,
            "private": record.private,
        }
    }


def _is_own(chunk: Chunk) -> bool:
    """Whether CrewAI stored it."""
    return isinstance(chunk.metadata.extra.get(_KIND), Mapping)


def _record(chunk: Chunk) -> MemoryRecord:
    """A chunk as CrewAI has it; what was damaged by hand has its default."""
    own = chunk.metadata.extra[_KIND] if _is_own(chunk) else {}
    scope, metadata, source = own.get("scope"), own.get("metadata"), own.get("source")
    importance = own.get("importance")
    valid = isinstance(importance, int | float) and 0 <= importance <= 1
    return MemoryRecord(
        id=chunk.id,
        content=chunk.content,
        scope=scope if isinstance(scope, str) else "/",
        categories=[tag for tag in chunk.tags if not _is_scope(tag)],
        metadata=dict(metadata) if isinstance(metadata, Mapping) else {},
        importance=importance if valid else _IMPORTANCE,
        created_at=_plain_time(datetime.fromisoformat(chunk.metadata.at)),
        last_accessed=_plain_time(datetime.fromisoformat(chunk.metadata.accessed_at)),
        source=source if isinstance(source, str) else None,
        private=own.get("private") is True,
    )


def _plain_time(time: datetime) -> datetime:
    """A time in UTC without a zone, as CrewAI has them."""
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
