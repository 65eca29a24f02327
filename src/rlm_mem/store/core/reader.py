"""ChunkReader: the read operations of the documented store interface."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cached_property, partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Self

from msgspec import structs

from rlm_mem import telemetry
from rlm_mem.arguments import check_flag, check_function, check_kind, check_since, check_words
from rlm_mem.chunk import (
    Chunk,
    TypeRegistry,
    check_chunk_id,
    check_chunk_ids,
    check_namespace,
    format_time,
    is_chunk_id,
)
from rlm_mem.chunk.types import as_list, ended_at, hidden, shown
from rlm_mem.config import Config
from rlm_mem.dsn import checked_place
from rlm_mem.errors import InvalidQuery, NamespaceError, ServerAway, StorageError
from rlm_mem.lazy import logger
from rlm_mem.store import core
from rlm_mem.store.core import visible
from rlm_mem.store.core.backends import finish_erasures, open_backend
from rlm_mem.store.core.listing import list_filter
from rlm_mem.store.core.records import (
    ARCHIVED,
    ConversationInfo,
    LinkedChunk,
    ListFilter,
    Summary,
    Version,
    as_of_time,
    audit_line,
    in_lots,
    page,
    query_time,
    time_range,
)

if TYPE_CHECKING:
    from typing import Unpack

    from rlm_mem.store.core.backend import Backend
    from rlm_mem.store.core.brain_files import BrainFiles
    from rlm_mem.store.core.listing import Listing, MoreFilters
    from rlm_mem.store.core.lookup import CandidateSource
    from rlm_mem.store.core.writer import Writer

_audit_logger = logger("rlm_mem.audit")


class ChunkReader:
    """Read access to the chunks of one namespace.

    Args:
        base_path: folder of the store, such as ``brain/memory``, created if it is missing; or the DSN of a database,
            ``postgresql://…`` (extra ``postgres``).
        namespace: path such as ``agent/project/user``; None: the configured one. Chunks of other
            namespaces do not exist for this object: calls with their ids return None or False.
        config: settings; None loads them from the brain folder around ``base_path``.
        clock: returns the current time with a time zone; for tests.
        read_only: open for reading only; writes raise StoreReadOnly.
        actor: who writes, for the audit log.
        chunk_types, link_types: custom types (docs/spec/chunk-format.md, Types), besides those of ``config.toml``.
        confined: refuse (NamespaceError) every call that names another namespace explicitly.

    Raises:
        StorageError: the folder or the database cannot be used.
    """

    def __init__(
        self,
        base_path: str | Path = "brain/memory",
        *,
        namespace: str | None = None,
        config: Config | None = None,
        clock: Callable[[], datetime] | None = None,
        read_only: bool = False,
        actor: str | None = None,
        chunk_types: Mapping[str, Mapping[str, Any]] | None = None,
        link_types: Mapping[str, str] | None = None,
        confined: bool = False,
    ) -> None:
        place = checked_place(base_path)
        self._folder = folder = place if isinstance(place, Path) else None
        check_flag(read_only, "read_only")
        check_function(clock, "clock")
        if config is None:
            config = Config.load(folder.absolute().parent if folder else None)
        self.config = check_kind(config, Config, "config")
        self.namespace = check_namespace(self.config.store.namespace if namespace is None else namespace)
        self.trust_levels = self.config.trust.levels(self.namespace)
        """Trust levels of new chunks of the namespace, by origin."""
        self.confined = check_flag(confined, "confined")
        self.actor = None if actor is None else check_words(actor, "actor")
        custom = self.config.types
        self.types = TypeRegistry(
            {**custom.chunk, **(chunk_types or {})}, {**custom.link, **(link_types or {})}
        )
        self.clock: Callable[[], datetime] = clock or partial(datetime.now, UTC)
        """Returns the current time in UTC; in a view (``held_at``), the time of the view."""
        self.as_of: datetime | None = None
        """The time of this view (``held_at``); None: the present."""
        telemetry.start(self.config.telemetry)
        self.backend: Backend = open_backend(place, self.config, read_only)
        self._written = Event()
        """Set by a change, including those through a store that ``confined_to`` returned."""
        if not read_only:
            finish_erasures(self)

    @cached_property
    def _writer(self) -> Writer:
        return core.Writer(self.backend, self.namespace, self.types, self.clock, self.actor, self._written)

    def __repr__(self) -> str:
        place = str(self._folder) if self._folder else self.backend.location
        return f"ChunkStore({place!r}, namespace={self.namespace!r})"

    @property
    def base_path(self) -> Path:
        """The folder of the store.

        Raises:
            StorageError: the store is a database, which has no folder.
        """
        if self._folder is None:
            raise StorageError(
                f"{self.backend.location} is a database: it has no folder", hint="name a folder with --brain"
            )
        return self._folder

    @property
    def files(self) -> BrainFiles:
        """The brain files of the namespace."""
        return self.backend.files(self.namespace, actor=self.actor, clock=self.clock)

    def held_at(self, as_of: str | date | datetime) -> Self:
        """Return a read-only view of this store as of a time: the chunks that held then, in their state at that time.

        It leaves out chunks that happened later, had already been replaced or were not yet valid. An edited chunk
        is read in its version of that time, if that was kept; search matches its present words. ``clock`` returns
        the time of the view. Counts and figures are those of the whole store.

        Args:
            as_of: a day (meaning its end) or a time; UTC if it has no offset.

        Raises:
            InvalidQuery: ``as_of`` is not a time.
        """
        view = self._copied()
        view._writer = self._writer  # its audit events have the present time
        view.as_of = at = as_of_time(as_of)
        view.clock = lambda: at
        return view

    def confined_to(self, namespace: str, *, actor: str | None) -> Self:
        """Return a store of another namespace on the same backend, confined to it; closing it closes the backend too.

        Args:
            actor: who writes, for the audit log.

        Raises:
            NamespaceError: ``namespace`` is not valid.
        """
        other = self._copied()
        other.namespace, other.actor, other.confined = check_namespace(namespace), actor, True
        other.trust_levels = self.config.trust.levels(namespace)
        other.__dict__.pop("_writer", None)
        return other

    def released(self) -> Self:
        """Return an unconfined copy of this store, for operations on every namespace, where these are allowed."""
        other = self._copied()
        other.confined = False
        return other

    def _copied(self) -> Self:
        from copy import copy  # opening does not need it

        return copy(self)

    @property
    def parts(self) -> tuple[ChunkReader, ...]:
        """The stores that this one reads, one per namespace: only itself, unless it is joined."""
        return (self,)

    def elsewhere(self, chunk_ids: Sequence[str] | str) -> dict[str, str]:  # noqa: ARG002 - that of two reads it
        """Return the ids among these that are read from another namespace, each with its namespace."""
        return {}

    def _checked_namespace(self, namespace: str | None) -> str:
        named = self.namespace if namespace is None else check_namespace(namespace)
        if self.confined and named != self.namespace:
            raise NamespaceError(f"this store is confined to the namespace {self.namespace!r}")
        return named

    # --- single chunks ----------------------------------------------------------------------------------

    @telemetry.observed("read")
    def get_chunk(self, chunk_id: str, *, track: bool = True) -> Chunk | None:
        """Return the chunk, or None if it does not exist or does not validate.

        Args:
            track: count this read (``access_count``, ``accessed_at``); kept in the index, no file is written.

        Raises:
            InvalidChunkId: ``chunk_id`` is not a chunk id.
        """
        return self.get_many([chunk_id], track=track).get(chunk_id)

    def get_archived(self, chunk_id: str) -> Chunk | None:
        """Return the archived chunk with this id, or None; raises InvalidChunkId."""
        row = self._writer.row(chunk_id, ARCHIVED)
        chunk = self.backend.read(row) if row else None
        return chunk if chunk is not None and chunk.namespace == self.namespace else None

    @telemetry.observed("read", lambda current, found: current.set("rlm_mem.chunks", len(found)))
    def get_many(self, chunk_ids: Sequence[str] | str, *, track: bool = False) -> dict[str, Chunk]:
        """Return the chunks that exist, by id."""
        found = self._shown(self.backend.chunks(self.namespace, check_chunk_ids(chunk_ids)))
        if self.as_of is not None:
            found = self._states_as_of(found)
        if track is not False and check_flag(track, "track"):
            for chunk in found.values():
                self._count_read(chunk)
        return found

    def _shown(self, found: dict[str, Chunk]) -> dict[str, Chunk]:
        """Return the chunks that are neither quarantined nor expired."""
        now = ""
        for chunk in list(found.values()):
            about = chunk.metadata
            if about.expires_at is not None or about.trust == "quarantined":
                now = now or self._now()
                if hidden(about.trust, about.expires_at, now):
                    del found[chunk.id]
        return found

    def _now(self) -> str:
        """Return the current time, or the time of the view, in stored form."""
        return format_time(self.clock())

    def ended_at(self, valid_to: str | None) -> str | None:
        """Return the end of a validity, or None if it lies in the future of the store or view, or there is none."""
        return None if valid_to is None else ended_at(valid_to, self._now())

    def _present(self) -> str:
        """Return the current time in stored form, also in a view of an earlier time."""
        return self._now() if self.as_of is None else self._writer.now()

    def _states_as_of(self, found: Mapping[str, Chunk]) -> dict[str, Chunk]:
        """Return the chunks that held at the time of the view, in their state at that time."""
        at = format_time(self.as_of or datetime.now(UTC))
        return {
            chunk_id: core.as_it_was(chunk, at, self.history)
            for chunk_id, chunk in found.items()
            if core.held(chunk, at)
        }

    def _filter(self, wanted: ListFilter) -> ListFilter:
        if not wanted.archived:
            wanted = structs.replace(wanted, shown_at=self._now())
        if self.as_of is None:
            return wanted
        return structs.replace(wanted, held_at=(self.as_of.timestamp(), format_time(self.as_of)))

    def _count_read(self, chunk: Chunk) -> None:
        when = self._present()
        self.backend.count_read(self.namespace, chunk.id, when)
        chunk.metadata.access_count += 1
        chunk.metadata.accessed_at = when
        if self.config.store.audit_reads:
            self.record_event("read", [chunk.id])

    def exists(self, chunk_id: str) -> bool:
        """Return whether an active chunk of this namespace has this id."""
        return bool(self.summaries([chunk_id]))

    def existing(self, chunk_ids: Iterable[str]) -> set[str]:
        """Return those of these ids, malformed ones allowed, that an active chunk of this namespace has."""
        wanted = [one for one in chunk_ids if is_chunk_id(one)]
        return {one.id for one in self.summaries(wanted)} if wanted else set()

    def history(self, chunk_id: str) -> list[Version]:
        """Return every kept version, oldest first, the present one last; empty if there is no such chunk.

        Versions of an expired or quarantined chunk are returned too, for people who decide about it.
        """
        return self._writer.history(chunk_id)

    def quarantined(self, limit: int | None = None, *, archived: bool = False) -> list[Chunk]:
        """Return the chunks in quarantine, oldest first; ``ChunkStore.release`` releases them.

        Args:
            archived: return those that were archived since instead.
        """
        most = None if limit is None else page(limit, "limit")
        ids = self._ids(self.namespace, ListFilter(trusts=("quarantined",), archived=archived, limit=most))
        found = self.backend.chunks(self.namespace, ids, status=None)
        return [found[chunk_id] for chunk_id in ids if chunk_id in found]

    def quarantined_ids(self) -> frozenset[str]:
        """Return the ids of the chunks in quarantine."""
        return frozenset(self._ids(self.namespace, ListFilter(trusts=("quarantined",))))

    def expired(self, limit: int | None = None) -> list[str]:
        """Return ids of expired chunks that are still stored, oldest first; ``ChunkStore.sweep`` removes them."""
        most = None if limit is None else page(limit, "limit")
        return self._ids(self.namespace, ListFilter(expired_at=self._now(), limit=most))

    # --- listings ---------------------------------------------------------------------------------------

    def list_chunks(
        self,
        conversation_id: str | None = None,
        start_date: str | date | None = None,
        end_date: str | date | None = None,
        tags: Sequence[str] | str | None = None,
        chunk_type: str | None = None,
        *,
        any_tags: Sequence[str] | str | None = None,
        namespace: str | None = None,
        archived: bool = False,
        limit: int | None = None,
        offset: int = 0,
        newest_first: bool = False,
        origin: Sequence[str] | str | None = None,
        trust: str | None = None,
    ) -> list[str]:
        """Return ids that match every filter, in order of time.

        Args:
            start_date, end_date: ``YYYY-MM-DD`` (the end day included) or ISO times, compared with ``occurred_at``,
                else ``created_at``.
            tags: the chunk must have ALL of them. ``any_tags``: at least one.
            archived: list soft-deleted chunks instead.
            limit, offset: a page of the answer.
            origin: where they came from: person, agent, tool, import, web; or several of these.
            trust: the lowest level of trust: untrusted, ordinary, trusted.

        Raises:
            InvalidQuery: a filter cannot be understood.
        """
        place = self._checked_namespace(namespace)
        wanted = list_filter(
            limit, offset, conversation_id=conversation_id, start=start_date, end=end_date, tags=tags,
            chunk_type=chunk_type, any_tags=any_tags, archived=archived, newest_first=newest_first, origin=origin,
            trust=trust,
        )  # fmt: skip
        self.check_type_filter(chunk_type, *([] if namespace is None else [place]))
        if archived and (wanted.tags or wanted.any_tags):
            return self._list_archived_by_tags(place, wanted)
        return [chunk_id for chunk_id, _, _ in self._places(namespace, wanted)]

    def check_type_filter(self, chunk_type: Sequence[str] | str | None, *namespaces: str) -> None:
        """Raise InvalidQuery for a type that is neither registered nor that of any chunk.

        Args:
            namespaces: where to look for chunks; none: in those that this store reads.
        """
        for kind in () if chunk_type is None else as_list(chunk_type):
            if check_words(kind, "chunk_type") not in self.types.chunk_types and not any(
                self.backend.queries.list_places(
                    place, ListFilter(chunk_type=kind, archived=archived, limit=1)
                )
                for place in namespaces or [part.namespace for part in self.parts]
                for archived in (False, True)
            ):
                raise InvalidQuery(
                    f"no memory has the type {shown(kind)}: use one of {', '.join(self.types.chunk_types)}"
                )

    def _ids(self, namespace: str, wanted: ListFilter) -> list[str]:
        return [chunk_id for chunk_id, _, _ in self.backend.queries.list_places(namespace, wanted)]

    def _list_archived_by_tags(self, namespace: str, wanted: ListFilter) -> list[str]:
        # Tags of archived chunks are not in the index (they must not be counted), so the chunks are read.
        everything = structs.replace(wanted, tags=(), any_tags=(), limit=None, offset=0)
        found = []
        ids = self._ids(namespace, everything)
        for chunk in self._read_in_batches(namespace, ids):
            carried = set(chunk.tags)
            if carried.issuperset(wanted.tags) and (not wanted.any_tags or carried & set(wanted.any_tags)):
                found.append(chunk.id)
        end = None if wanted.limit is None else wanted.offset + wanted.limit
        return found[wanted.offset : end]

    def list_page(
        self, limit: int, *, after: tuple[float, int] | None = None, **filters: Unpack[Listing]
    ) -> tuple[list[str], tuple[float, int] | None]:
        """Return a page of list_chunks, and the position to pass as ``after`` for the next page (None: the
        last page).

        A position stays valid during concurrent writes: each chunk that keeps its position is returned once.
        """
        places = self.places(page(limit, "limit") + 1, after=after, **filters)
        self.check_type_filter(filters.get("chunk_type"))
        listed = places[:limit]
        return [place[0] for place in listed], listed[-1][1:] if listed and len(places) > limit else None

    def places(
        self, limit: int | None, *, after: tuple[float, int] | None = None, **filters: Unpack[Listing]
    ) -> list[tuple[str, float, int]]:
        """Return the ids of list_chunks, each with its position: time and insertion number."""
        wanted = structs.replace(list_filter(limit, 0, **filters), after=after)
        if wanted.archived and (wanted.tags or wanted.any_tags):
            raise InvalidQuery(
                "deleted chunks are not listed by tag in pages", hint="leave out one of the two"
            )
        return self._places(None, wanted)

    def _places(self, namespace: str | None, wanted: ListFilter) -> list[tuple[str, float, int]]:
        """Return the ids that pass a filter in a namespace (None: wherever this store reads), with their positions."""
        return self.backend.queries.list_places(namespace or self.namespace, self._filter(wanted))

    def iter_chunks(
        self,
        conversation_id: str | None = None,
        start_date: str | date | None = None,
        end_date: str | date | None = None,
        tags: Sequence[str] | str | None = None,
        chunk_type: str | None = None,
        **more: Unpack[MoreFilters],
    ) -> Iterator[Chunk]:
        """Yield the chunks that match the filters of list_chunks; unreadable ones are left out (and logged)."""
        ids = self.list_chunks(conversation_id, start_date, end_date, tags, chunk_type, **more)
        yield from self._read_in_batches(self._checked_namespace(more.get("namespace")), ids)

    def _read_in_batches(self, namespace: str, chunk_ids: Sequence[str]) -> Iterator[Chunk]:
        """Yield chunks of any status, read in batches: neither one query each nor all in memory at once."""
        for lot in in_lots(chunk_ids):
            found = self._shown(self.backend.chunks(namespace, lot, status=None))
            yield from (found if self.as_of is None else self._states_as_of(found)).values()

    def summaries(self, chunk_ids: Sequence[str] | str) -> list[Summary]:
        """Return summaries from the index, without reading files; unknown ids are left out."""
        found = self.backend.queries.summaries(self.namespace, check_chunk_ids(chunk_ids))
        now = self._now()
        shown = [one for one in found if one.shown_at(now)]
        if self.as_of is None:
            return shown
        held_then = self.get_many([one.id for one in shown])
        return [one for one in shown if one.id in held_then]

    def timeline(
        self, start: str | date | None = None, end: str | date | None = None, limit: int = 50
    ) -> list[Summary]:
        """Return summaries in order of time; ``start`` and ``end`` as in list_chunks."""
        low, high = time_range(start, end)
        return self._listed(ListFilter(start=low, end=high), page(limit, "limit"))

    def latest(
        self,
        limit: int,
        *,
        conversation_id: str | None = None,
        since: str | date | None = None,
        tag: str | None = None,
    ) -> list[Summary]:
        """Return summaries of the newest chunks; the cost does not grow with the store."""
        wanted = ListFilter(
            conversation_id=conversation_id,
            start=None if since is None else query_time(since, "since")[0],
            tags=() if tag is None else (tag,),
            newest_first=True,
        )
        return self._listed(wanted, page(limit, "limit"))

    def _listed(self, wanted: ListFilter, limit: int) -> list[Summary]:
        """Return the first visible summaries that pass a filter, querying again if hidden ones leave too few.

        The current time is not part of the query, which may have been sent ahead (``Backend.read_ahead``).
        """
        wanted = wanted if self.as_of is None else self._filter(wanted)
        now, most = self._now(), limit
        while True:
            wanted = structs.replace(wanted, limit=most)
            found = self.backend.queries.list_summaries(self.namespace, wanted)
            shown = [one for one in found if one.shown_at(now)]
            if len(shown) >= limit or len(found) < most:
                return shown[:limit]
            most *= 4

    # --- relations --------------------------------------------------------------------------------------

    def linked(
        self, chunk_id: str, link_type: str | None = None, direction: str = "out", limit: int | None = 50
    ) -> list[LinkedChunk]:
        """Return chunks linked from (``out``), to (``in``) or both, strongest first; all if ``limit`` is None."""
        return self.linked_of_each([chunk_id], link_type, direction, limit)[chunk_id]

    def linked_of_each(
        self,
        chunk_ids: Sequence[str],
        link_type: str | None = None,
        direction: str = "out",
        limit: int | None = 50,
    ) -> dict[str, list[LinkedChunk]]:
        """Return the result of ``linked`` for each of several chunks."""
        if not isinstance(direction, str) or direction not in ("out", "in", "both"):
            raise InvalidQuery(f"direction must be out, in or both, not {direction!r:.40}")
        if link_type is not None:
            check_words(link_type, "link_type")
        most = sys.maxsize if limit is None else page(limit, "limit")
        return visible.links_of_each(self, check_chunk_ids(chunk_ids), link_type, direction, most)

    def neighbours(self, chunk_id: str, before: int = 1, after: int = 1) -> tuple[list[str], list[str]]:
        """Return the ids before and after a chunk in its conversation, both in order of time."""
        return self.neighbours_of_each([chunk_id], before, after)[chunk_id]

    def neighbours_of_each(
        self, chunk_ids: Sequence[str], before: int = 1, after: int = 1
    ) -> dict[str, tuple[list[str], list[str]]]:
        """Return the result of ``neighbours`` for each of several chunks."""
        reach = page(before, "before"), page(after, "after")
        return visible.neighbours_of_each(self, check_chunk_ids(chunk_ids), *reach)

    # --- figures ----------------------------------------------------------------------------------------

    def tag_counts(self, limit: int | None = None) -> list[tuple[str, int]]:
        """Return tags with the number of chunks that have them, most frequent first."""
        most = None if limit is None else page(limit, "limit")
        return visible.tag_counts(self, most, self._present())

    def conversations(self, limit: int | None = None) -> list[ConversationInfo]:
        """Return conversations, the most recently active first."""
        most = None if limit is None else page(limit, "limit")
        return visible.conversations(self, most, self._present())

    def authors(self) -> set[str]:
        """Return the authors of the chunks, and labels that look like names of authors."""
        return visible.authors(self, self.config.search.language, self._present())

    def namespaces(self) -> list[tuple[str, int]]:
        """Return the namespaces of the store with their chunk counts; a confined store returns only its own.

        Raises:
            ServerAway: some of several servers could not be reached; the error lists the namespaces of the others.
        """
        if not self.confined:
            return self.backend.queries.namespaces()
        try:
            found = self.backend.queries.namespaces()
        except ServerAway as error:
            found = error.namespaces
            if self.namespace not in dict(found):
                raise ServerAway(error.message, hint=error.hint) from error
        return [pair for pair in found if pair[0] == self.namespace]

    def totals(self) -> dict[str, Any]:
        """Return the figures of ``get_stats`` that are quick at any size: all but the numbers of tags and links."""
        queries = self.backend.queries
        return self.backend.together(
            self.namespace,
            lambda: {
                **queries.stats(self.namespace),
                "conversations": queries.count_rows("conversations", self.namespace),
            },
        )

    def get_stats(self) -> dict[str, Any]:
        """Return chunk_count, total_tokens, storage_size_mb and other figures of what this namespace stores.

        They include chunks that listings leave out: those in quarantine, and expired ones that are not swept yet. A
        confined store has no size of the index, which grows with other namespaces. Unreadable files are counted: it
        is not known whose they are, and one of them may be missing from an answer.
        """
        queries = self.backend.queries
        figures = self.backend.figures()
        if self.confined:
            figures.pop("index_size_mb", None)
        return self.backend.together(
            self.namespace,
            lambda: {
                **self.totals(),
                "tags": queries.count_rows("tags", self.namespace),
                "links": queries.count_rows("links", self.namespace),
                "namespace": self.namespace,
                **figures,
            },
        )

    def damage(self, chunk_id: str) -> str | None:
        """Return why an existing chunk cannot be read; None if it can, or does not exist."""
        return self.backend.damage(self.namespace, check_chunk_id(chunk_id))

    @property
    def unreadable_files(self) -> int:
        """Return the number of chunk files that are known not to validate."""
        return int(self.backend.figures()["unreadable_files"])

    # --- search and audit -------------------------------------------------------------------------------

    def candidate_source(self) -> CandidateSource:
        """Return the index of this store for one search, as of now."""
        return self.backend.candidate_source(self.namespace)

    def record_event(self, op: str, chunk_ids: Sequence[str] = (), **payload: object) -> None:
        """Append an event that does not change a chunk, such as a recall with the chunks that it read.

        A failure is logged, not raised: what the event records is done.
        """
        if self.backend.read_only:
            return
        line = audit_line(op, self._writer.clock(), self.actor, self.namespace)
        try:
            self.backend.append_events([line | {"chunk_ids": list(chunk_ids)} | payload])
        except StorageError as error:
            _audit_logger.error("%s is not in the audit log: %s", op, error)

    def events(
        self,
        since: str | date | None = None,
        op: str | None = None,
        chunk_id: str | None = None,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the audit log of this namespace, oldest first; with ``limit``, only the newest events."""
        newest = None if limit is None else page(limit, "limit")
        if op is not None:
            check_words(op, "op")
        if chunk_id is not None:
            check_chunk_id(chunk_id)
        return self.backend.read_events(
            namespace=self.namespace,
            since=check_since(since, "since"),
            op=op,
            chunk_id=chunk_id,
            limit=newest,
        )
