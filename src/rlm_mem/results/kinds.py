"""The classes of what ``Memory`` returns where no other module has the type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from rlm_mem.chunk.types import amount


@dataclass(frozen=True)
class Stats:
    """Figures of what one namespace stores; the attributes carry the names of ``ChunkStore.get_stats``.

    Chunks in quarantine, and expired ones that are not swept yet, are stored, so they count, although listings and
    searches leave them out.

    Attributes:
        chunk_count: active chunks. ``archived_count``: deleted ones that can be restored.
        total_tokens: o200k tokens of the active chunks.
        storage_size_mb, index_size_mb: megabytes of chunks and of the index; the latter is None on PostgreSQL, and for
            clients that are confined to a namespace.
        by_type: active chunks by type.
        first_at, last_at: times of the oldest and the newest chunk, or None.
        tags, conversations, links: how many there are.
        namespace: the namespace counted.
        unreadable_files: chunk files of the folder that do not validate.
    """

    chunk_count: int
    total_tokens: int
    storage_size_mb: float
    archived_count: int
    by_type: Mapping[str, int]
    first_at: str | None
    last_at: str | None
    tags: int
    conversations: int
    links: int
    namespace: str
    unreadable_files: int = 0
    index_size_mb: float | None = None

    @classmethod
    def of(cls, figures: Mapping[str, object]) -> Stats:
        """From the dictionary of ``ChunkStore.get_stats``."""
        known = {item.name for item in fields(cls)}
        return cls(**{name: value for name, value in figures.items() if name in known})  # type: ignore[arg-type]

    def __str__(self) -> str:
        types = ", ".join(f"{name} {count:,}" for name, count in self.by_type.items())
        span = f", {self.first_at[:10]} to {self.last_at[:10]}" if self.first_at and self.last_at else ""
        return (
            f"{self.namespace}: {amount(self.chunk_count, 'chunk')} ({types or 'none'}), "
            f"{amount(self.total_tokens, 'token')}, {amount(self.conversations, 'conversation')}, "
            f"{amount(self.links, 'link')}, {self.archived_count:,} archived{span}"
        )


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint wrote: how many access counts went into files, and the names of the JSON views."""

    access_counts_folded: int
    views: tuple[str, ...] = ()

    def __str__(self) -> str:
        views = ", ".join(self.views) or "none"
        return f"access counts written: {self.access_counts_folded:,}; views written: {views}"


@dataclass(frozen=True)
class Event:
    """One line of the audit log.

    Attributes:
        at: when (UTC, ISO 8601).
        op: what was done: create, update, delete, recall, …
        chunk_ids: the chunks concerned.
        actor: who did it, or None. ``namespace``: whose memory.
        details: all other fields of the line.
    """

    at: str
    op: str
    chunk_ids: tuple[str, ...]
    actor: str | None
    namespace: str
    details: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, line: Mapping[str, object]) -> Event:
        """From a line as the store reads it."""
        listed, single, actor = line.get("chunk_ids"), line.get("chunk_id"), line.get("actor")
        ids = listed if isinstance(listed, list) else [single] if single else []
        return cls(
            at=str(line.get("ts", "")),
            op=str(line.get("op", "")),
            chunk_ids=tuple(str(one) for one in ids),
            actor=None if actor is None else str(actor),
            namespace=str(line.get("ns", "")),
            details={name: value for name, value in line.items() if name not in _ENVELOPE},
        )

    def __str__(self) -> str:
        by = f" by {self.actor}" if self.actor else ""
        return f"{self.at[:19]} {self.op} {', '.join(self.chunk_ids)}{by}".rstrip()


_ENVELOPE = frozenset({"ts", "op", "actor", "ns", "chunk_id", "chunk_ids"})


@dataclass(frozen=True)
class RecordedChange:
    """One change in the audit log.

    Attributes:
        id: the id by which it can be undone.
        at: when it was made (UTC, ISO 8601). ``actor``: by whom, as far as it is known.
        ops: what it did: create, update, edit, move, …
        chunk_ids, files: what it changed; mirrors of tiered memories left out.
        reason: as given, or empty.
        undoes: the change that it undoes.
        undone: it was undone, and is not in force.
    """

    id: str
    at: str
    ops: tuple[str, ...]
    chunk_ids: tuple[str, ...]
    files: tuple[str, ...]
    actor: str | None
    reason: str
    undoes: str | None
    undone: bool


@dataclass(frozen=True)
class UndoneChange:
    """A change that was undone.

    Attributes:
        change: its id, None for a change of an earlier version.
        undo: the id of the undo, by which the undo can be undone.
        at: when the change was made (UTC, ISO 8601).
        ops: what it did: create, update, edit, move, promote, …
        chunk_ids, files: what was put back; mirrors of tiered memories left out.
    """

    change: str | None
    undo: str
    at: str
    ops: tuple[str, ...]
    chunk_ids: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        # The record of a folder's contents is put back with its chunks; a person need not see it.
        names = [*self.chunk_ids, *(one for one in self.files if not one.startswith("system/folders/"))]
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        return f"undone: {', '.join(self.ops)} of {self.at[:19]}: {shown}"


@dataclass(frozen=True)
class Hud:
    """The figures of LIVEHUD by section; ``rlm_mem.persona.figures.KEYS`` describes each."""

    schema: str
    at: str
    session: Mapping[str, object]
    mode: Mapping[str, object]
    sliders: tuple[Mapping[str, object], ...]
    memory: Mapping[str, object]
    system: Mapping[str, object]
    store: Mapping[str, object]
    health: Mapping[str, object]
    tiers: Mapping[str, object]
    cost: Mapping[str, object]

    def __str__(self) -> str:
        return (
            f"{self.session.get('namespace')}: {self.store.get('chunks')} chunks, mode {self.mode.get('label')}, "
            f"{self.health.get('text')}; today: {self.cost.get('text')}"
        )
