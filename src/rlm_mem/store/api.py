"""ChunkStore: the documented CRUD interface (seeds 000 and 004) over a backend."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import (
    Chunk,
    ChunkLinks,
    TypeRegistry,
    check_chunk_id,
    check_content,
    check_namespace,
    check_strength,
    content_hash,
    format_time,
    new_chunk_id,
    normalised_hash,
)
from rlm_mem.config import Config
from rlm_mem.errors import ConflictError, InvalidChunk, InvalidLink, InvalidQuery, NamespaceError
from rlm_mem.store.drafts import Given, draft_chunk, revise_chunk
from rlm_mem.store.history import Version, former_versions
from rlm_mem.store.local import LocalBackend
from rlm_mem.store.queries import ConversationInfo, LinkedChunk, ListFilter, Summary, day_bounds
from rlm_mem.store.rows import ACTIVE, ARCHIVED, Row
from rlm_mem.store.sync import SyncReport

if TYPE_CHECKING:
    from rlm_mem.store.lookup import CandidateSource
    from rlm_mem.store.transaction import Transaction

__all__ = ["ChunkStore", "ConversationInfo", "LinkedChunk", "Summary", "Version", "init_storage"]

_logger = logging.getLogger("rlm_mem.store")


def init_storage(base_path: str | Path) -> ChunkStore:
    """Make the folders of a store and open it (seed 004, Utility Functions)."""
    return ChunkStore(base_path)


class ChunkStore:
    """Chunks of one namespace in one store.

    Args:
        base_path: folder of the store, such as ``brain/memory``; made if it is missing.
        namespace: path such as ``agent/project/user``; None takes the configured one. Chunks of other
            namespaces do not exist for this object: their ids answer None or False.
        config: settings; None loads them from the brain folder around ``base_path``.
        clock: returns the present time with a time zone; for tests.
        read_only: open for reading only; writes raise StoreReadOnly.
        actor: who writes, for the audit log.
        chunk_types, link_types: custom types (seed 002, Extension Points), beside those of ``config.toml``.
        confined: refuse (NamespaceError) every call that names another namespace explicitly.

    Raises:
        StorageError: the folder cannot be used.
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
        self.base_path = Path(base_path)
        self.config = config or Config.load(self.base_path.absolute().parent)
        self.namespace = check_namespace(self.config.store.namespace if namespace is None else namespace)
        self.confined = confined
        self.actor = actor
        self.types = TypeRegistry(self.config.types.chunk, self.config.types.link)
        for name, spec in (chunk_types or {}).items():
            self.types.register_chunk_type(name, **spec)
        for name, description in (link_types or {}).items():
            self.types.register_link_type(name, description)
        self._clock = clock
        self._written = False
        self.backend = LocalBackend(self.base_path, self.config, read_only=read_only)

    def __repr__(self) -> str:
        return f"ChunkStore({str(self.base_path)!r}, namespace={self.namespace!r})"

    def __enter__(self) -> ChunkStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def clock(self) -> datetime:
        """The present time in UTC."""
        return self._clock() if self._clock else datetime.now(UTC)

    def _now(self) -> str:
        return format_time(self.clock())

    def _other(self, namespace: str | None) -> str:
        if namespace is None or namespace == self.namespace:
            return self.namespace
        if self.confined:
            raise NamespaceError(f"this store is confined to the namespace {self.namespace!r}")
        return check_namespace(namespace)

    # --- create, read, update, delete ------------------------------------------------------------------

    def create_chunk(
        self,
        content: str,
        chunk_type: str | None = None,
        metadata: Mapping[str, Any] | str | None = None,
        links: Sequence[Any] | Mapping[str, Any] | int | None = None,
        tags: Sequence[str] | None = None,
        confidence: float | None = None,
        *,
        type: str | None = None,
        conversation_id: str | None = None,
        tokens: int | None = None,
        source: str | None = None,
        occurred_at: str | datetime | None = None,
        valid_from: str | datetime | None = None,
        valid_to: str | datetime | None = None,
        provenance: Mapping[str, Any] | None = None,
        chunk_id: str | None = None,
        namespace: str | None = None,
        check_targets: bool = True,
    ) -> Chunk:
        """Create and store a chunk; takes the arguments of seeds 000, 002 and 004.

        Args:
            content: the text, at most ``store.max_content_bytes`` bytes.
            chunk_type: preference, fact, pattern, decision, note (default) or a registered type; also ``type``.
            metadata: known fields and any others, which are kept in ``metadata.extra``. Seed 000 has the
                conversation id in this place: a text is taken as that.
            links: link objects or dicts with target_id, type, strength (0-1), reasoning. Seed 000 has the number
                of tokens in this place: a whole number is taken as that.
            tags: words.
            confidence: 0-1; default 0.7.
            tokens: o200k tokens; counted when not given.
            occurred_at: when it was said or happened, if that is not now.
            valid_from, valid_to: the period for which it holds.
            chunk_id: an id to keep (imports); generated when not given.
            namespace: another namespace than the store's own.
            check_targets: refuse links to chunks that do not exist.

        Returns:
            The stored chunk.

        Raises:
            InvalidChunk, InvalidLink, InvalidChunkId: the input is at fault (all are ValueError).
            StorageError: it could not be written; nothing was changed.
        """
        given = Given()
        given.add("type", chunk_type)
        given.add("type", type)
        given.add("conversation_id", conversation_id)
        given.add("tags", tags)
        given.add("confidence", confidence)
        given.add("tokens", tokens)
        given.add("source", source)
        given.add("occurred_at", occurred_at)
        given.add("valid_from", valid_from)
        given.add("valid_to", valid_to)
        given.add("provenance", provenance)
        if isinstance(metadata, str):
            given.add("conversation_id", metadata)
            metadata = None
        if isinstance(links, int) and not isinstance(links, bool):
            given.add("tokens", links)
            links = None
        place = self._other(namespace)
        # Everything is checked before the lock is taken: bad input costs nobody a wait.
        chunk = draft_chunk(
            chunk_id=new_chunk_id(self.clock()) if chunk_id is None else check_chunk_id(chunk_id),
            namespace=place,
            content=content,
            given=given,
            metadata=metadata,
            links=links,
            types=self.types,
            now=self.clock(),
            count_tokens=_count_tokens,
            max_bytes=self.config.store.max_content_bytes,
        )
        with self._transaction() as transaction:
            self._claim_id(chunk, fixed=chunk_id is not None)
            if check_targets:
                self._check_targets(chunk.links, place)
            transaction.put(chunk)
            self._log(transaction, "create", chunk)
        return chunk

    def _claim_id(self, chunk: Chunk, *, fixed: bool) -> None:
        layout = self.backend.layout
        while self.backend.find(chunk.id) is not None or any(
            layout.absolute(path).exists()
            for path in (
                layout.chunk_path(chunk.id, chunk.metadata.created_at),
                layout.archive_path(chunk.id),
            )
        ):
            if fixed:
                raise InvalidChunk(
                    f"there is a chunk {chunk.id} already", hint="update it, or leave the id out"
                )
            chunk.id = new_chunk_id(self.clock())

    def _check_targets(self, links: Sequence[ChunkLinks], namespace: str) -> None:
        for link in links:
            row = self.backend.find(link.target_id)
            if row is None or not self._mine(row, namespace):
                raise InvalidLink(f"link target {link.target_id} does not exist in namespace {namespace}")

    def _mine(self, row: Row, namespace: str | None = None) -> bool:
        return row.ns == self.backend.queries.namespace_number(namespace or self.namespace)

    def _row(self, chunk_id: str, status: int = ACTIVE) -> Row | None:
        row = self.backend.find(check_chunk_id(chunk_id))
        return row if row is not None and row.status == status and self._mine(row) else None

    def get_chunk(self, chunk_id: str, *, track: bool = True) -> Chunk | None:
        """The chunk, or None where there is none or its file does not validate (seed 000, Safety Features).

        Args:
            track: count this read (``access_count``, ``accessed_at``); kept in the index, no file is written.

        Raises:
            InvalidChunkId: ``chunk_id`` is not one.
        """
        row = self._row(chunk_id)
        chunk = self.backend.read(row) if row else None
        if chunk is None and row is not None:  # moved by somebody between the two looks: look once more
            row = self._row(chunk_id)
            chunk = self.backend.read(row) if row else None
        if (
            chunk is None or chunk.namespace != self.namespace
        ):  # moved elsewhere by hand: it is not ours any more
            return None
        if track:
            when = self._now()
            self.backend.count_read(chunk_id, when)
            chunk.metadata.access_count += 1
            chunk.metadata.accessed_at = when
            if self.config.store.audit_reads:
                self.record_event("read", [chunk_id])
        return chunk

    def get_many(self, chunk_ids: Sequence[str], *, track: bool = False) -> dict[str, Chunk]:
        """Those of the chunks that exist, by id."""
        found = ((chunk_id, self.get_chunk(chunk_id, track=track)) for chunk_id in dict.fromkeys(chunk_ids))
        return {chunk_id: chunk for chunk_id, chunk in found if chunk is not None}

    def exists(self, chunk_id: str) -> bool:
        """Whether there is an active chunk with this id in this namespace."""
        return self._row(chunk_id) is not None

    def update_chunk(
        self,
        chunk_id: str,
        content: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        links: Sequence[Any] | Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        *,
        confidence: float | None = None,
        chunk_type: str | None = None,
        expected_revision: int | None = None,
    ) -> Chunk | None:
        """Change a chunk: metadata merges, links and tags replace; the former version is kept.

        Args:
            expected_revision: refuse with ConflictError if the chunk has another revision by now.

        Returns:
            The chunk as it is now, or None where there is none. Nothing is written if nothing differs.
        """
        given = Given()
        given.add("confidence", confidence)
        given.add("type", chunk_type)
        with self._transaction() as transaction:
            row = self._row(chunk_id)
            chunk = self.backend.read(row) if row else None
            if chunk is None:
                return None
            if expected_revision is not None and chunk.revision != expected_revision:
                raise ConflictError(
                    f"{chunk_id} has revision {chunk.revision}, not {expected_revision}: it was changed meanwhile",
                    hint="read it again and repeat the change",
                )
            updated = revise_chunk(
                chunk,
                content=content,
                given=given,
                metadata=metadata,
                links=links,
                tags=tags,
                types=self.types,
                now=self.clock(),
                count_tokens=_count_tokens,
                max_bytes=self.config.store.max_content_bytes,
            )
            if updated == chunk:
                return chunk
            if links is not None:
                known = {link.target_id for link in chunk.links}
                self._check_targets(
                    [link for link in updated.links if link.target_id not in known], self.namespace
                )
            return self._write_revision(transaction, chunk, updated, "update")

    def _write_revision(
        self, transaction: Transaction, former: Chunk, updated: Chunk, op: str, **payload: Any
    ) -> Chunk:
        updated.revision = former.revision + 1
        # A clock that went back must not make the newer revision look older.
        updated.metadata.modified_at = max(self._now(), former.metadata.modified_at)
        transaction.put(updated)
        self._log(transaction, op, updated, former=former, **payload)
        return updated

    def delete_chunk(self, chunk_id: str, permanent: bool = False) -> bool:
        """Move a chunk to the archive, or remove it for good with its versions and the links to it.

        Returns:
            False where there is no such chunk (a permanent delete also finds archived ones).
        """
        with self._transaction() as transaction:
            row = self._row(chunk_id)
            if row is None and permanent:
                row = self._row(chunk_id, ARCHIVED)
            if row is None:
                return False
            chunk = self.backend.read(row)
            if not permanent:
                if chunk is None:
                    return False
                transaction.move(chunk, row, ARCHIVED)
                self._log(transaction, "delete", chunk)
                return True
            for source_id in self.backend.queries.linking_to(chunk_id):
                self._drop_links(transaction, source_id, chunk_id)
            transaction.erase(row)
            self._event(
                transaction, "erase", chunk_id=chunk_id, revision=row.revision, before=row.content_hash
            )
            return True

    def _drop_links(self, transaction: Transaction, source_id: str, target_id: str) -> None:
        row = self.backend.find(source_id)
        source = self.backend.read(row) if row else None
        if row is None or source is None or source_id == target_id:
            return
        updated = Chunk.from_dict(source.to_dict())
        updated.links = [link for link in source.links if link.target_id != target_id]
        if row.status == ARCHIVED:
            updated.revision += 1
            transaction.put(updated, status=ARCHIVED)
        else:
            self._write_revision(transaction, source, updated, "unlink", target=target_id)

    def restore_chunk(self, chunk_id: str) -> Chunk | None:
        """Bring a soft-deleted chunk back as it was; None where the archive has none."""
        with self._transaction() as transaction:
            row = self._row(chunk_id, ARCHIVED)
            chunk = self.backend.read(row) if row else None
            if row is None or chunk is None:
                return None
            transaction.move(chunk, row, ACTIVE)
            self._log(transaction, "restore", chunk)
            return chunk

    # --- history ---------------------------------------------------------------------------------------

    def history(self, chunk_id: str) -> list[Version]:
        """Every kept version, oldest first, the present one last; empty where there is no such chunk."""
        row = self._row(chunk_id) or self._row(chunk_id, ARCHIVED)
        chunk = self.backend.read(row) if row else None
        if chunk is None:
            return []
        former = former_versions(self.backend.layout, chunk_id, below=chunk.revision)
        return [*former, Version(chunk.revision, chunk.metadata.modified_at, chunk, current=True)]

    def undo(self, chunk_id: str, *, to_revision: int | None = None) -> Chunk | None:
        """Bring back a former version as a new revision; by default the one before the present.

        Nothing is lost: the state that is undone becomes a former version itself.

        Returns:
            The chunk as it is now, or None where there is no such chunk or no such version.
        """
        with self._transaction() as transaction:
            versions = self.history(chunk_id)
            if len(versions) < 2 or self._row(chunk_id) is None:
                return None
            former, present = versions[:-1], versions[-1].chunk
            chosen = former[-1] if to_revision is None else next(
                (version for version in former if version.revision == to_revision), None
            )  # fmt: skip
            if chosen is None:
                return None
            updated = chosen.chunk
            updated.metadata.access_count = present.metadata.access_count
            updated.metadata.accessed_at = present.metadata.accessed_at
            return self._write_revision(transaction, present, updated, "undo", to=chosen.revision)

    # --- listings --------------------------------------------------------------------------------------

    def list_chunks(
        self,
        conversation_id: str | None = None,
        start_date: str | None = None,
        end_date: str | None = None,
        tags: Sequence[str] | None = None,
        chunk_type: str | None = None,
        *,
        any_tags: Sequence[str] | None = None,
        namespace: str | None = None,
        archived: bool = False,
        limit: int | None = None,
        offset: int = 0,
        newest_first: bool = False,
    ) -> list[str]:
        """Ids that match every filter, in order of time (seed 004).

        Args:
            start_date, end_date: ``YYYY-MM-DD`` (the end day included) or ISO times, compared with ``occurred_at``,
                else ``created_at``.
            tags: ALL must be there. ``any_tags``: at least one.
            archived: list soft-deleted chunks instead.
            limit, offset: a page of the answer.

        Raises:
            InvalidQuery: a filter cannot be understood.
        """
        place = self._other(namespace)
        wanted = _list_filter(
            conversation_id,
            start_date,
            end_date,
            tags,
            chunk_type,
            any_tags,
            archived,
            limit,
            offset,
            newest_first,
        )
        if not archived or not (wanted.tags or wanted.any_tags):
            return self.backend.queries.list_ids(place, wanted)
        return self._archived_with_tags(place, wanted)

    def _archived_with_tags(self, namespace: str, wanted: ListFilter) -> list[str]:
        # Tags of archived chunks are not in the index (they must not count); the archive's files are asked.
        everything = ListFilter(
            wanted.conversation_id, wanted.start, wanted.end, (), (), wanted.chunk_type, True,
            None, 0, wanted.newest_first,
        )  # fmt: skip
        found = []
        for chunk_id in self.backend.queries.list_ids(namespace, everything):
            row = self.backend.find(chunk_id)
            chunk = self.backend.read(row) if row else None
            carried = set(chunk.tags) if chunk else set()
            if carried.issuperset(wanted.tags) and (not wanted.any_tags or carried & set(wanted.any_tags)):
                found.append(chunk_id)
        end = None if wanted.limit is None else wanted.offset + wanted.limit
        return found[wanted.offset : end]

    def iter_chunks(
        self,
        conversation_id: str | None = None,
        start_date: str | None = None,
        end_date: str | None = None,
        tags: Sequence[str] | None = None,
        chunk_type: str | None = None,
        **more: Any,
    ) -> Iterator[Chunk]:
        """The chunks themselves, with the filters of list_chunks; unreadable ones are left out (and logged)."""
        for chunk_id in self.list_chunks(conversation_id, start_date, end_date, tags, chunk_type, **more):
            row = self.backend.find(chunk_id)
            chunk = self.backend.read(row) if row else None
            if chunk is not None:
                yield chunk

    def summaries(self, chunk_ids: Sequence[str]) -> list[Summary]:
        """Metadata from the index, no file read (seed 003, RECALL step 1); unknown ids are left out."""
        return self.backend.queries.summaries(
            self.namespace, [check_chunk_id(chunk_id) for chunk_id in chunk_ids]
        )

    def timeline(self, start: str | None = None, end: str | None = None, limit: int = 50) -> list[Summary]:
        """Summaries by time; ``start`` and ``end`` as in list_chunks."""
        low = None if start is None else _query_time(start, "start")[0]
        high = None if end is None else _after(_query_time(end, "end"))
        return self.backend.queries.timeline(self.namespace, low, high, _page(limit, "limit"))

    def latest(
        self,
        limit: int,
        *,
        conversation_id: str | None = None,
        since: str | None = None,
        tag: str | None = None,
    ) -> list[Summary]:
        """The newest chunks; its cost does not grow with the store."""
        low = None if since is None else _query_time(since, "since")[0]
        return self.backend.queries.latest(
            self.namespace, _page(limit, "limit"), conversation_id=conversation_id, since=low, tag=tag
        )

    def tag_counts(self, limit: int | None = None) -> list[tuple[str, int]]:
        """Tags with the number of chunks that carry them, commonest first."""
        return self.backend.queries.tag_counts(self.namespace, limit)

    def conversations(self, limit: int | None = None) -> list[ConversationInfo]:
        """Conversations, the most recently active first."""
        return self.backend.queries.conversations(self.namespace, limit)

    def namespaces(self) -> list[tuple[str, int]]:
        """Namespaces of the store with their chunk counts; a confined store sees only its own."""
        return [
            pair
            for pair in self.backend.queries.namespaces()
            if not self.confined or pair[0] == self.namespace
        ]

    def get_stats(self) -> dict[str, Any]:
        """chunk_count, total_tokens, storage_size_mb (seed 004) and more, for this namespace."""
        queries = self.backend.queries
        return {
            **queries.stats(self.namespace),
            "tags": queries.count_rows("tags", self.namespace),
            "conversations": queries.count_rows("conversations", self.namespace),
            "links": queries.count_rows("links", self.namespace),
            "unreadable_files": len(self.backend.unreadable()),
            "namespace": self.namespace,
            **self.backend.stats_extra(),
        }

    # --- duplicates ------------------------------------------------------------------------------------

    def find_same(self, content: str, conversation_id: str | None) -> str | None:
        """The chunk with exactly this content in this conversation, if there is one (row 12)."""
        return self.backend.queries.with_hash(
            self.namespace, content_hash(check_content(content)), conversation_id
        )

    def find_normalised(self, content: str, limit: int = 10) -> list[str]:
        """Chunks equal after normalising case, space and punctuation, newest first (``similar_to``)."""
        digest = normalised_hash(check_content(content))
        return self.backend.queries.with_normalised_hash(self.namespace, digest, limit)

    def note_repetition(self, chunk_id: str) -> None:
        """Record that a chunk was said again: in the audit log, and as a read."""
        self.backend.count_read(check_chunk_id(chunk_id), self._now())
        self.record_event("repeat", [chunk_id])

    # --- links -----------------------------------------------------------------------------------------

    def linked(
        self, chunk_id: str, link_type: str | None = None, direction: str = "out", limit: int = 50
    ) -> list[LinkedChunk]:
        """Chunks linked from (``out``), to (``in``) or either way (``both``), strongest first."""
        if direction not in ("out", "in", "both"):
            raise InvalidQuery(f"direction must be out, in or both, not {direction!r:.40}")
        return self.backend.queries.linked(
            self.namespace, check_chunk_id(chunk_id), link_type=link_type, direction=direction,
            limit=_page(limit, "limit"),
        )  # fmt: skip

    def neighbours(self, chunk_id: str, before: int = 1, after: int = 1) -> tuple[list[str], list[str]]:
        """Ids before and after a chunk in its conversation, both in reading order."""
        return self.backend.queries.neighbours(
            self.namespace, check_chunk_id(chunk_id), _page(before, "before"), _page(after, "after")
        )

    def add_link(
        self,
        source_id: str,
        target_id: str,
        link_type: str,
        strength: float = 0.5,
        reasoning: str | None = None,
    ) -> bool:
        """Add a link, or change strength and reasoning of the one that is there.

        Raises:
            InvalidLink: unknown type, strength outside 0-1, missing chunk, or a chunk linked to itself.
        """
        self.types.check_link(link_type)
        strength = check_strength(strength)
        if reasoning is not None and not isinstance(reasoning, str):
            raise InvalidLink(f"reasoning must be text, not {type(reasoning).__name__}")
        if check_chunk_id(source_id) == check_chunk_id(target_id):
            raise InvalidLink(f"{source_id} cannot link to itself")
        with self._transaction() as transaction:
            row, target = self._row(source_id), self._row(target_id)
            source = self.backend.read(row) if row else None
            if source is None or target is None:
                missing = source_id if source is None else target_id
                raise InvalidLink(
                    f"there is no chunk {missing} to link", hint="check the id with: rlm-mem show ID"
                )
            new = ChunkLinks(target_id, link_type, strength, self._now(), reasoning)
            updated = Chunk.from_dict(source.to_dict())
            for position, link in enumerate(updated.links):
                if (link.target_id, link.type) == (target_id, link_type):
                    if (link.strength, link.reasoning) == (strength, reasoning):
                        return True
                    updated.links[position] = new
                    break
            else:
                updated.links.append(new)
            self._write_revision(transaction, source, updated, "link", target=target_id, type=link_type)
            return True

    def remove_link(self, source_id: str, target_id: str, link_type: str | None = None) -> int:
        """Remove links from one chunk to another (of one type, or all); returns how many."""
        check_chunk_id(target_id)
        with self._transaction() as transaction:
            row = self._row(source_id)
            source = self.backend.read(row) if row else None
            if source is None:
                return 0
            updated = Chunk.from_dict(source.to_dict())
            updated.links = [
                link
                for link in source.links
                if link.target_id != target_id or (link_type is not None and link.type != link_type)
            ]
            removed = len(source.links) - len(updated.links)
            if removed:
                self._write_revision(transaction, source, updated, "unlink", target=target_id)
            return removed

    # --- the whole store -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def batch(self) -> Iterator[ChunkStore]:
        """Group writes into one commit: all of them appear, or, if the block raises, none."""
        with self._transaction():
            yield self

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        with self.backend.transaction() as transaction:
            yield transaction
        self._written = True

    def checkpoint(self) -> dict[str, Any]:
        """Fold access counts into the files and write the three JSON views of seed 000."""
        from rlm_mem.store.views import write_views

        folded = self.backend.fold_reads()
        views = write_views(self.backend.connection, self.backend.layout)
        self.backend.maintain()
        return {"access_counts_folded": folded, "views": views}

    def sync(self, full: bool = False) -> SyncReport:
        """Notice files changed by hand or by git; ``full`` looks at every file (edits in place included)."""
        return self.backend.sync(full=full)

    def rebuild_index(self, progress: Callable[[int, int], None] | None = None) -> SyncReport:
        """Build the index anew from the files; ``progress`` is called with (done, total)."""
        return self.backend.rebuild(progress)

    def close(self) -> None:
        """Write the JSON views if something changed (below ``store.views_limit`` chunks) and let go of every file."""
        if self._written and not self.backend.read_only:
            from rlm_mem.store.views import write_views

            if self.get_stats()["chunk_count"] <= self.config.store.views_limit:
                write_views(self.backend.connection, self.backend.layout)
            self._written = False
        self.backend.close()

    def candidate_source(self) -> CandidateSource:
        """What search asks of this store, at this moment."""
        return self.backend.candidate_source(self.namespace)

    # --- audit -----------------------------------------------------------------------------------------

    def record_event(self, op: str, chunk_ids: Sequence[str] = (), **payload: Any) -> None:
        """Append an event that is no change of a chunk, such as a recall and the chunks it was handed."""
        if self.backend.read_only:
            return
        event = {"ts": self._now(), "actor": self.actor, "op": op, "ns": self.namespace}
        self.backend.log.append([{**event, "chunk_ids": list(chunk_ids), **payload}])

    def events(
        self,
        since: str | None = None,
        op: str | None = None,
        chunk_id: str | None = None,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The audit log of this namespace, oldest first; ``limit`` keeps the newest ones."""
        found = self.backend.log.read(since=since, op=op, chunk_id=chunk_id, namespace=self.namespace)
        if limit is None:
            return found
        from collections import deque

        return iter(deque(found, maxlen=_page(limit, "limit")))

    def _log(
        self, transaction: Transaction, op: str, chunk: Chunk, *, former: Chunk | None = None, **payload: Any
    ) -> None:
        self._event(
            transaction,
            op,
            chunk_id=chunk.id,
            revision=chunk.revision,
            before=former.metadata.content_hash if former else None,
            after=chunk.metadata.content_hash,
            **payload,
        )

    def _event(self, transaction: Transaction, op: str, **payload: Any) -> None:
        event = {"ts": self._now(), "actor": self.actor, "op": op, "ns": self.namespace}
        transaction.events.append({**event, **payload})


def _count_tokens(text: str) -> int:
    from rlm_mem.text.tokens import count_tokens

    return count_tokens(text)


def _page(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidQuery(f"{what} must be a whole number from 0 up, not {value!r:.40}")
    return min(value, 2**62)


def _query_time(text: str, what: str) -> tuple[float, float]:
    try:
        return day_bounds(text, what)
    except (InvalidChunk, AttributeError, TypeError) as error:
        reason = (
            error.message if isinstance(error, InvalidChunk) else f"{what} must be a date, not {text!r:.40}"
        )
        raise InvalidQuery(reason) from None


def _after(bounds: tuple[float, float]) -> float:
    # A bare day ends where the next begins; a moment is included itself.
    return bounds[1] if bounds[1] > bounds[0] else bounds[1] + 1e-6


def _words(value: object, what: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence | set | frozenset) or not all(isinstance(item, str) for item in value):
        raise InvalidQuery(f"{what} must be a list of words, not {value!r:.60}")
    return tuple(dict.fromkeys(value))


def _list_filter(
    conversation_id: Any, start: Any, end: Any, tags: Any, chunk_type: Any, any_tags: Any,
    archived: bool, limit: Any, offset: Any, newest_first: bool,
) -> ListFilter:  # fmt: skip
    for value, what in ((conversation_id, "conversation_id"), (chunk_type, "chunk_type")):
        if value is not None and not isinstance(value, str):
            raise InvalidQuery(f"{what} must be text, not {value!r:.60}")
    return ListFilter(
        conversation_id=conversation_id,
        start=None if start is None else _query_time(start, "start_date")[0],
        end=None if end is None else _after(_query_time(end, "end_date")),
        tags=_words(tags, "tags"),
        any_tags=_words(any_tags, "any_tags"),
        chunk_type=chunk_type,
        archived=archived,
        limit=None if limit is None else _page(limit, "limit"),
        offset=_page(offset, "offset"),
        newest_first=newest_first,
    )
