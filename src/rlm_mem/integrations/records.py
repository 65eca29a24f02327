"""Records: small named documents kept as chunks, for the adapters of agent frameworks.

A record has a path of labels, a name, a value of plain data and the text under which search finds it. It is one chunk,
so recall, history, the audit log, backups and namespaces work as for any other memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote

from rlm_mem.chunk import Chunk
from rlm_mem.errors import ConflictError, InvalidChunk
from rlm_mem.memory import Memory
from rlm_mem.search.api import MAX_LIMIT
from rlm_mem.store.core.lookup import Filters
from rlm_mem.store.core.records import ACTIVE

_BATCH = 200
"""Chunks that are read at a time."""
_LONGEST_TAG = 200
_FIELD = "record"


@dataclass(frozen=True)
class Record:
    """A named document.

    Attributes:
        path: labels from the outermost to the innermost.
        name: unique within its path.
        value: plain data.
        created_at, updated_at: aware times.
        indexed: whether search finds it.
        minutes: lifetime since it was last read or written; None: unlimited.
        score: of the search that found it.
    """

    path: tuple[str, ...]
    name: str
    value: Any
    created_at: datetime
    updated_at: datetime
    indexed: bool = True
    minutes: float | None = None
    score: float | None = None


class Records:
    """The records of one kind in a memory.

    Args:
        memory: the memory that stores them.
        kind: the adapter that owns them, the prefix of their tags, such as ``langgraph``.
    """

    def __init__(self, memory: Memory, kind: str) -> None:
        self._memory = memory
        self._store = memory.store
        self._kind = kind

    # --- one record --------------------------------------------------------------------------------------

    def get(self, path: Sequence[str], name: str, *, touch: bool = True) -> Record | None:
        """The record; None if there is none or it has expired.

        Args:
            touch: count this as a read, which restarts its lifetime.
        """
        chunk = self._store.get_chunk(self._id(path, name), track=False)
        record = self._unexpired(chunk)
        if chunk is not None and record is not None and touch:
            self._store.get_chunk(chunk.id)
        return record

    def put(
        self,
        path: Sequence[str],
        name: str,
        value: Any,
        *,
        text: str | None = None,
        minutes: float | None = None,
        conversation_id: str | None = None,
        occurred_at: datetime | None = None,
    ) -> Record:
        """Store or replace a record; its former value stays in the history of its chunk.

        Args:
            value: plain data; keys and passwords in it are handled as in any memory (``secrets.action``).
            text: the indexed text; None: the texts of the value; empty: search does not find it.

        Raises:
            InvalidChunk: the value is not plain data, or too large.
            ConflictError: the record is in quarantine, or its chunk has expired.
        """
        path = tuple(path)
        data = _checked_plain(value)
        indexed = text != ""
        content = (text_of(data) if text is None else text).strip() or name.strip() or self._kind
        extra: dict[str, dict[str, Any]] = {
            _FIELD: {
                "kind": self._kind,
                "path": list(path),
                "name": name,
                "value": data,
                "indexed": indexed,
                "minutes": minutes,
            }
        }
        chunk_id, tags = self._id(path, name), self._tags(path, temporary=minutes is not None)
        with self._memory.batch():
            former = self._store.get_chunk(chunk_id, track=False) or self._store.restore_chunk(chunk_id)
            live = self._unexpired(former)
            since = live.created_at if live is not None else self._store.clock()
            extra[_FIELD]["since"] = since.isoformat()
            if former is None and self._stored(path, [name]):
                raise ConflictError(
                    f"{name!r:.80} is hidden, by quarantine or because it has expired",
                    hint=f"release or delete the memory {chunk_id}, or use another name",
                )
            if former is None:
                chunk: Chunk | None = self._store.create_chunk(
                    content,
                    metadata=extra,
                    tags=tags,
                    source=self._kind,
                    chunk_id=chunk_id,
                    conversation_id=conversation_id,
                    occurred_at=occurred_at,
                )
            else:
                chunk = self._store.update_chunk(chunk_id, content, extra, tags=tags)
                self._store.get_chunk(chunk_id)  # a write restarts its lifetime, even if nothing changes
            assert chunk is not None
        record = _record(chunk)
        assert record is not None
        return record

    def delete(self, path: Sequence[str], name: str) -> bool:
        """Remove a record permanently, with its former values; returns False if there is none."""
        return self._store.delete_chunk(self._id(path, name), permanent=True)

    # --- many --------------------------------------------------------------------------------------------

    def named(self, path: Sequence[str], names: Iterable[str]) -> dict[str, Record]:
        """The records of these names in a path, by name; missing ones are left out."""
        ids = {self._id(path, name): name for name in names}
        chunks = self._store.get_many(list(ids), track=False)
        found = {name: self._unexpired(chunks.get(chunk_id)) for chunk_id, name in ids.items()}
        return {name: record for name, record in found.items() if record is not None}

    def taken(self, path: Sequence[str], names: Iterable[str]) -> set[str]:
        """The names with a record that is there, hidden by quarantine, or in the archive."""
        return self._stored(path, names, status=None)

    def _stored(self, path: Sequence[str], names: Iterable[str], *, status: int | None = ACTIVE) -> set[str]:
        """The names with a chunk of this status (None: any), even one that no read returns."""
        ids = {self._id(path, name): name for name in names}
        return {
            ids[one] for one in self._store.backend.chunks(self._store.namespace, list(ids), status=status)
        }

    def below(self, path: Sequence[str], *, exactly: bool = False) -> Iterator[Record]:
        """Records whose path begins with (``exactly``: is) these labels, newest first."""
        tag = self._own_tag(tuple(path)) if exactly else self._tag(tuple(path))
        ids = self._store.list_chunks(tags=[tag], newest_first=True)
        for start in range(0, len(ids), _BATCH):
            batch = ids[start : start + _BATCH]
            chunks = self._store.get_many(batch)
            for chunk_id in batch:
                record = self._unexpired(chunks.get(chunk_id))
                if record is not None and _is_below(record, path, exactly=exactly):
                    yield record

    def search(
        self,
        path: Sequence[str],
        query: str,
        *,
        limit: int,
        offset: int = 0,
        wanted: Callable[[Record], bool],
    ) -> list[Record]:
        """Records below a path that search finds and ``wanted`` accepts, best first: of the best 1,000 matches."""
        asked = min(max(50, 2 * (limit + offset)), MAX_LIMIT)
        while True:
            hits = self._memory.search(
                query, limit=asked, filters=Filters(tags_all=(self._tag(tuple(path)),))
            )
            chunks = self._store.get_many([hit.chunk_id for hit in hits])
            read = (self._unexpired(chunks.get(hit.chunk_id), hit.score) for hit in hits)
            found = [one for one in read if one and one.indexed and _is_below(one, path) and wanted(one)]
            if len(found) >= limit + offset or len(hits) < asked or asked == MAX_LIMIT:
                return found[offset : offset + limit]
            asked = min(4 * asked, MAX_LIMIT)

    def touch(self, records: Iterable[Record]) -> None:
        """Count records with a lifetime as read, which restarts it."""
        ids = [self._id(record.path, record.name) for record in records if record.minutes is not None]
        if ids:
            self._store.get_many(ids, track=True)

    def paths(self) -> list[tuple[str, ...]]:
        """Every path with a record, sorted."""
        found: set[tuple[str, ...]] = set()
        start, end = f"{self._kind}:", "/."
        for tag, _ in self._memory.tags():
            if tag.startswith(start) and tag.endswith(end):
                labels = tag[len(start) : -len(end)]
                path = tuple(unquote(label) for label in labels.split("/"))
                if labels.startswith("~"):
                    # Hashed, or a label that begins with ~: read the path from the records
                    ids = self._store.list_chunks(tags=[tag])
                    found.update(
                        record.path
                        for chunk in self._store.get_many(ids).values()
                        if (record := self._unexpired(chunk))
                    )
                elif next(self.below(path, exactly=True), None):
                    found.add(path)
        return sorted(found)

    def sweep(self) -> int:
        """Remove expired records; returns how many."""
        removed = 0
        with self._memory.batch():
            for chunk_id in self._store.list_chunks(tags=[f"{self._kind}-temporary"]):
                chunk = self._store.get_chunk(chunk_id, track=False)
                if chunk is not None and _record(chunk) is not None and self._unexpired(chunk) is None:
                    removed += self._store.delete_chunk(chunk_id, permanent=True)
        return removed

    # --- chunks ------------------------------------------------------------------------------------------

    def _id(self, path: Sequence[str], name: str) -> str:
        """Derived from the record's path and name, so that two writers cannot create it twice."""
        key = json.dumps([self._store.namespace, self._kind, list(path), name]).encode()
        return f"chunk-{self._kind}-{hashlib.sha256(key).hexdigest()[:40]}"

    def _tag(self, path: tuple[str, ...]) -> str:
        """The tag of all records whose path begins with these labels."""
        return path_tag(self._kind, path)

    def _own_tag(self, path: tuple[str, ...]) -> str:
        return self._tag(path) + "/."

    def _tags(self, path: tuple[str, ...], *, temporary: bool) -> list[str]:
        prefixes = [self._tag(path[:depth]) for depth in range(len(path) + 1)]
        return [*prefixes, self._own_tag(path), *([f"{self._kind}-temporary"] if temporary else [])]

    def _unexpired(self, chunk: Chunk | None, score: float | None = None) -> Record | None:
        """The record of this kind in a chunk; None if there is none, or its lifetime is over."""
        record = _record(chunk, score) if chunk is not None else None
        if chunk is None or record is None or chunk.metadata.extra[_FIELD].get("kind") != self._kind:
            return None
        if record.minutes is not None:
            last = max(record.updated_at, datetime.fromisoformat(chunk.metadata.accessed_at))
            if last + timedelta(minutes=record.minutes) <= self._store.clock():
                return None
        return record


def path_tag(kind: str, path: Sequence[str]) -> str:
    """The tag of an adapter for a path of labels; hashed if it would be too long."""
    tag = f"{kind}:" + "/".join(quote(label, safe="") for label in path)
    return tag if len(tag) <= _LONGEST_TAG - 2 else f"{kind}:~{hashlib.sha256(tag.encode()).hexdigest()}"


def _is_below(record: Record, path: Sequence[str], *, exactly: bool = False) -> bool:
    return (record.path if exactly else record.path[: len(path)]) == tuple(path)


def _record(chunk: Chunk, score: float | None = None) -> Record | None:
    """The record in a chunk; None if it was not written as one, or was damaged by hand."""
    field = chunk.metadata.extra.get(_FIELD)
    if not isinstance(field, Mapping):
        return None
    path, name, minutes = field.get("path"), field.get("name"), field.get("minutes")
    if not isinstance(path, list) or not isinstance(name, str):
        return None
    return Record(
        tuple(str(label) for label in path),
        name,
        field.get("value"),
        _time(field.get("since"), chunk.metadata.created_at),
        datetime.fromisoformat(chunk.metadata.modified_at),
        bool(field.get("indexed", True)),
        float(minutes) if isinstance(minutes, int | float) else None,
        score,
    )


def _time(written: object, otherwise: str) -> datetime:
    """When the record was created: later than its chunk if it replaced an expired record."""
    try:
        return datetime.fromisoformat(str(written)).astimezone(UTC)
    except ValueError:
        return datetime.fromisoformat(otherwise)


def _checked_plain(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidChunk(
            f"the value is not plain data: {error}",
            hint="give texts, numbers, true, false, null, lists and objects",
        ) from error


def text_of(value: Any) -> str:
    """The texts and numbers of plain data, one per line, each after its name."""
    return "\n".join(_lines(value, ""))


def _lines(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _lines(inner, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _lines(inner, name)
    elif value is not None and value != "":
        yield f"{name}: {value}" if name else str(value)
