"""ChunkStore: the documented CRUD interface over a backend (docs/spec/operations.md, ChunkStore)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rlm_mem import text as language
from rlm_mem.arguments import check_flag, check_function
from rlm_mem.chunk import (
    SUPERSEDES,
    Chunk,
    ChunkMetadata,
    check_chunk_id,
    check_content,
    check_text,
    content_hash,
    expiry,
    format_time,
    new_chunk_id,
    normalised_hash,
)
from rlm_mem.chunk.types import ORIGIN_OF_SOURCE, TRUST_LEVELS, Ttl, check_trust, out_of_date
from rlm_mem.config import Config, SecretAction
from rlm_mem.errors import ConflictError, InvalidChunk, InvalidLink, NotFoundError, StorageError
from rlm_mem.lazy import logger
from rlm_mem.results import Progress
from rlm_mem.store import core
from rlm_mem.store.core.backends import erase_chunk
from rlm_mem.store.core.reader import ChunkReader
from rlm_mem.store.core.records import ListFilter, Summary, SyncReport, in_lots
from rlm_mem.telemetry import observed

if TYPE_CHECKING:
    from rlm_mem.text.secrets import Screened

QUARANTINE = "quarantine"
"""Key in ``metadata.extra`` of the record of a quarantine: reason, time, and the former level of trust."""

_logger = logger("rlm_mem.store")


def init_storage(base_path: str | Path) -> ChunkStore:
    """Create the folders of a store and open it."""
    return ChunkStore(base_path)


def open_store(
    place: Path | str, *, namespace: str | None = None, read_only: bool = False, actor: str | None = None
) -> ChunkStore:
    """Open the store of a brain folder (a Path) or of a database (its DSN as text), with the settings found there."""
    folder = place if isinstance(place, str) else place / "memory"
    return ChunkStore(
        folder, config=Config.load(place), namespace=namespace, read_only=read_only, actor=actor
    )


def _log_secrets(chunk_id: str, screened: Screened) -> None:
    language.log_secrets(chunk_id, screened)


class ChunkStore(ChunkReader):
    """Read and write access to the chunks of one namespace; the arguments are those of ChunkReader."""

    on_secret: Callable[[str, Screened], None] = staticmethod(_log_secrets)
    """Called with a chunk id and the secrets found in its content; by default writes them to the log."""

    def __enter__(self) -> ChunkStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- queries before a chunk is written ----------------------------------------------------------------

    def find_same(self, content: str, conversation_id: str | None) -> str | None:
        """Return the newest visible chunk with this content in this conversation.

        See docs/spec/operations.md, Duplicates.
        """
        same = self.backend.queries.with_hash(
            self.namespace, content_hash(check_content(content)), conversation_id
        )
        visible = self.existing(same) if same else ()
        return next((one for one in same if one in visible), None)

    def quarantined_among(self, chunk_ids: Sequence[str]) -> str | None:
        """Return the first of these chunks that is in quarantine by a decision, or was rejected there; else None."""
        visible = self.existing(chunk_ids)
        hidden = [one for one in chunk_ids if one not in visible]
        found = self.backend.chunks(self.namespace, hidden, status=None) if hidden else {}
        return next(
            (
                one.id
                for one in found.values()
                if one.metadata.trust == "quarantined" and QUARANTINE in one.metadata.extra
            ),
            None,
        )

    def find_normalised(self, content: str, limit: int = 10) -> list[str]:
        """Return chunks equal after normalising case, space and punctuation, newest first (``similar_to``).

        They include chunks that were archived while in quarantine.
        """
        digest = normalised_hash(check_content(content))
        return self.backend.queries.with_normalised_hash(self.namespace, digest, limit)

    def list_between(
        self,
        start: datetime | None,
        end: datetime | None,
        limit: int,
        *,
        conversation_id: str | None = None,
        newest_first: bool = False,
        alone: tuple[str, str, str] | None = None,
    ) -> list[tuple[str, float, int]]:
        """Return ids with their positions (epoch seconds, insertion number) from ``start`` to ``end``, both included.

        Args:
            alone: (origin, source, time): only chunks without a conversation, with this origin and source, that are
                visible at this time.
        """
        first = None if start is None else start.timestamp()
        last = None if end is None else end.timestamp() + 1e-6
        wanted = ListFilter(conversation_id, first, last, limit=limit, newest_first=newest_first, alone=alone)
        return self.backend.queries.list_places(self.namespace, wanted)

    # --- create, update, delete -------------------------------------------------------------------------

    def create_chunk(
        self,
        content: str,
        chunk_type: str = "note",
        metadata: Mapping[str, Any] | str | None = None,
        links: Sequence[Any] | Mapping[str, Any] | int | None = None,
        tags: Sequence[str] | str | None = None,
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
        secrets: SecretAction | None = None,
        on_secret: Callable[[Screened], None] | None = None,
        origin: str | None = None,
        trust: str | None = None,
        expires: str | date | None = None,
        ttl: Ttl | None = None,
    ) -> Chunk:
        """Create and store a chunk; accepts every documented form of its arguments (docs/spec/decisions.md, 13).

        Args:
            content: the text, at most ``store.max_content_bytes`` bytes.
            chunk_type: preference, fact, pattern, decision, note (default) or a registered type; also ``type``.
            metadata: known fields and any others, which are stored in ``metadata.extra``. A text in this position
                is the conversation id.
            links: link objects or dicts with target_id, type, strength (0-1), reasoning, to existing chunks. An
                integer in this position is the number of tokens.
            tags: words; a single text is one tag.
            confidence: 0-1; default 0.7.
            tokens: o200k tokens; counted if omitted.
            occurred_at: when it was said or happened, if not now.
            valid_from, valid_to: the period of its validity.
            chunk_id: an id to keep (imports); generated if omitted.
            namespace: another namespace than the store's own.
            secrets: ``redact`` (``[redacted:RULE]`` is stored in place of a key or password), ``keep`` or ``refuse``,
                in content, metadata, tags and links; None: ``config.secrets.action``.
            on_secret: called with the secrets found, if any.
            origin: where it came from: person, agent, tool, import or web; None: derived from ``source``.
            trust: quarantined, untrusted, ordinary or trusted; None: as configured for the origin.
            expires, ttl: when reads stop returning it: a time, or how long it is kept (seconds, ``30d``); not both.

        Returns:
            The stored chunk.

        Raises:
            InvalidChunk, InvalidLink, InvalidChunkId: the input is invalid (all are ValueError).
            StorageError: it could not be written; nothing was changed.
        """
        content, found = self._screened(content, secrets)
        (metadata, provenance, tags, links), more = self._screened_fields(
            (metadata, provenance, tags, links), secrets
        )
        given = [
            ("type", None if chunk_type == "note" and type is not None else chunk_type),  # "note": not given
            ("type", type),
            ("conversation_id", conversation_id),
            ("tags", tags),
            ("confidence", confidence),
            ("tokens", tokens),
            ("source", source),
            ("occurred_at", occurred_at),
            ("valid_from", valid_from),
            ("valid_to", valid_to),
            ("provenance", provenance),
            ("origin", origin),
            ("trust", trust),
            ("expires_at", expiry(expires, ttl, self.clock())),
        ]
        if isinstance(metadata, str):
            given.append(("conversation_id", metadata))
            metadata = None
        if isinstance(links, int) and not isinstance(links, bool):
            given.append(("tokens", links))
            links = None
        # Everything is checked before the lock is taken, so that invalid input blocks nobody.
        fields, extra = core.given_fields(metadata, given)
        chunk = self.draft(content, fields, extra, chunk_id=chunk_id, namespace=namespace)
        chunk.links = core.check_links(links, self.types, chunk.metadata.modified_at, chunk.id)
        made = self._writer.create(chunk, fixed_id=chunk_id is not None)
        self._report_secrets(made.id, found + more, on_secret)
        return made

    def draft(
        self,
        content: str,
        fields: Mapping[str, Any],
        extra: Mapping[str, Any],
        *,
        chunk_id: str | None = None,
        namespace: str | None = None,
        now: datetime | None = None,
    ) -> Chunk:
        """Return a chunk without links that is not stored yet; its tokens are counted unless given.

        Args:
            fields, extra: as ``writer.given_fields`` returns them.
            chunk_id: None: a fresh one.
            now: the time of writing; None: by the clock of the store.

        Raises:
            InvalidChunk: the content or the id is invalid, or the type is unknown or needs fields that are missing.
        """
        place = self.namespace if namespace is None else self._checked_namespace(namespace)
        how = fields.get("origin") or ORIGIN_OF_SOURCE[fields.get("source", "interaction")]
        levels = self.trust_levels if place == self.namespace else self.config.trust.levels(place)
        level = fields.get("trust") or levels[how]
        more = {**fields, "origin": how, "trust": level}
        chunk_type, tags, tokens = more.pop("type", "note"), more.pop("tags"), more.pop("tokens", None)
        now = now or self.backend.time_of_writing(place, self.clock())
        more.setdefault("created_at", format_time(now))
        more.setdefault("modified_at", more["created_at"])
        more.setdefault("accessed_at", more["created_at"])
        if not isinstance(chunk_type, str) or chunk_type not in self.types.plain:
            self.types.check_chunk(chunk_type, extra)
        text = check_content(content, max_bytes=self.config.store.max_content_bytes)
        return Chunk(
            id=new_chunk_id(now) if chunk_id is None else check_chunk_id(chunk_id),
            content=text,
            tokens=core.tokens_of(text) if tokens is None else tokens,
            type=chunk_type,
            metadata=ChunkMetadata(**more, content_hash=content_hash(text), extra=dict(extra)),
            tags=list(tags),
            namespace=place,
        )

    def add(self, chunk: Chunk) -> Chunk:
        """Store a draft whose text was screened for secrets and whose links lead to existing chunks."""
        return self._writer.add(chunk)

    def _screened(self, content: Any, action: SecretAction | None) -> tuple[Any, list[Screened]]:
        """Return the text with secrets handled, and the secrets found; a value that is not text is refused later."""
        if not isinstance(content, str):
            return content, []
        seen = language.screen(content, self.config.secrets, action)
        return seen.text, [seen] if seen.found else []

    def _screened_fields(self, fields: Any, action: SecretAction | None) -> tuple[Any, list[Screened]]:
        data, seen = language.screen_data(
            fields, self.config.secrets, action, where="what is stored with the content"
        )
        return data, [seen] if seen.found else []

    def _report_secrets(
        self, chunk_id: str, found: list[Screened], on_secret: Callable[[Screened], None] | None = None
    ) -> None:
        if found:
            together = language.Screened("", [one for seen in found for one in seen.found], found[0].hidden)
            self.on_secret(chunk_id, together)
            if on_secret is not None:
                on_secret(together)

    def adopt(self, chunk: Chunk, *, archived: bool = False, secrets: SecretAction | None = None) -> Chunk:
        """Store a complete chunk unchanged: id, namespace, revision, times, access count and links (for imports).

        A chunk with this id in this namespace is replaced; its former version is kept. Links may lead to chunks that
        do not exist yet, and types need not be registered.

        Raises:
            InvalidChunk, InvalidLink: a field does not validate, or the id belongs to another namespace.
            NamespaceError: this store is confined to another namespace.
        """
        self._checked_namespace(chunk.namespace)
        check_flag(archived, "archived")
        chunk, found = core.screened_chunk(chunk, self.config.secrets, secrets)
        checked = core.check_complete(chunk, max_bytes=self.config.store.max_content_bytes)
        self._writer.adopt(checked, archived=archived)
        self._report_secrets(checked.id, [found] if found.found else [])
        return checked

    def agree(self, namespace: str, newer_id: str, older_id: str) -> bool:
        """Record in both chunks a replacement that only one of them names; return whether anything was changed.

        Does nothing if one of them does not exist, they are the same, or another chunk replaced the older one.

        Raises:
            InvalidLink: the older one replaces the newer one, directly or indirectly.
            NamespaceError: this store is confined to another namespace.
        """
        self._checked_namespace(namespace)
        return self._writer.agree(namespace, newer_id, older_id)

    def update_chunk(
        self,
        chunk_id: str,
        content: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        links: Sequence[Any] | Mapping[str, Any] | None = None,
        tags: Sequence[str] | str | None = None,
        *,
        confidence: float | None = None,
        chunk_type: str | None = None,
        expected_revision: int | None = None,
        secrets: SecretAction | None = None,
        on_secret: Callable[[Screened], None] | None = None,
        hidden: bool = False,
    ) -> Chunk | None:
        """Change a chunk: metadata merges, links and tags replace; the former version is kept.

        Args:
            expected_revision: raise ConflictError if the chunk has another revision.
            secrets, on_secret: as in create_chunk.
            hidden: change it even if it is quarantined or expired.

        Returns:
            The updated chunk, or None if there is none. Nothing is written if nothing differs.
        """
        content, found = self._screened(content, secrets)
        (metadata, tags, links), more = self._screened_fields((metadata, tags, links), secrets)
        if not hidden and not self.exists(chunk_id):
            return None
        changed = self._writer.change(
            chunk_id,
            lambda chunk: core.revise_chunk(
                chunk,
                content=content,
                given=(("confidence", confidence), ("type", chunk_type)),
                metadata=metadata,
                links=links,
                tags=tags,
                types=self.types,
                now=self.clock(),
                max_bytes=self.config.store.max_content_bytes,
            ),
            expected_revision=expected_revision,
        )
        if changed is not None:
            self._report_secrets(chunk_id, found + more, on_secret)
        return changed

    def delete_chunk(self, chunk_id: str, permanent: bool = False) -> bool:
        """Move a chunk to the archive, or erase it with everything that quotes or names it (docs/security.md, Erasing).

        In a batch, what quotes or names it is erased once the batch has been committed.

        Returns:
            False if there is no such chunk (a permanent delete also finds archived ones).
        """
        if not check_flag(permanent, "permanent"):
            return self._writer.archive(chunk_id)
        return erase_chunk(self, chunk_id)

    def drop_chunk(self, chunk_id: str) -> bool:
        """Delete a chunk, active or archived, with its versions and the links to it, as a part of its erasure.

        Returns:
            False if there is no such chunk.
        """
        return self._writer.erase(chunk_id)

    def clean_archived(self, chunk_id: str) -> None:
        """Take dropped chunks out of the links of an archived one; ``drop_chunk`` does it for active ones."""
        self._writer.clean_archived(chunk_id)

    def settle(self, chunk_id: str) -> None:
        """Make a chunk's replacements consistent with the chunks at their other ends, after an undo."""
        self._writer.settle(chunk_id)

    def restore_chunk(self, chunk_id: str) -> Chunk | None:
        """Restore an archived chunk unchanged; None if it is not in the archive."""
        return self._writer.restore(chunk_id)

    def undo(self, chunk_id: str, *, to_revision: int | None = None) -> Chunk | None:
        """Restore a former version as a new revision; by default the one before the present.

        Nothing is lost: the undone state becomes a former version itself. For a new chunk without a former version,
        only its replacements of other chunks are reverted.

        Returns:
            The chunk as it is now, or None if there is no such chunk or version, and no replacement to revert.
        """
        return self._writer.undo(chunk_id, to_revision)

    def note_repetition(self, chunk_id: str) -> None:
        """Record that a chunk's statement was repeated: in the audit log, and as a read."""
        self.backend.count_read(self.namespace, check_chunk_id(chunk_id), format_time(self.clock()))
        self.record_event("repeat", [chunk_id])

    # --- quarantine and expiry --------------------------------------------------------------------------

    def quarantine(self, chunk_id: str, reason: str | None = None) -> Chunk:
        """Hide a chunk from every read until it is released; chunks that it had replaced hold again.

        The reason and the former level of trust are stored with it. ``undo`` reverts it like any change.

        Args:
            reason: why, at most 1,000 characters of one line.

        Returns:
            The chunk as it is now.

        Raises:
            NotFoundError: there is no such chunk.
            ConflictError: it is in quarantine already.
        """
        why = None if reason is None else check_text(reason, "reason")
        screened, _ = self._screened(why, None)

        def put(chunk: Chunk) -> Chunk:
            if chunk.metadata.trust == "quarantined":
                raise ConflictError(
                    f"{chunk_id} is in quarantine already", hint="to make it visible again, release it"
                )
            made = Chunk.from_dict(chunk.to_dict())
            made.metadata.extra[QUARANTINE] = {
                "trust": chunk.metadata.trust,
                "reason": screened,
                "at": self._now(),
                "by": self.actor,
            }
            made.metadata.trust = "quarantined"
            return made

        return self._quarantine_change(chunk_id, put, "quarantine")

    def release(self, chunk_id: str, trust: str | None = None) -> Chunk:
        """Release a chunk from quarantine; it replaces again what it had replaced, unless another chunk does so now.

        Args:
            trust: its new level of trust; None: the former level, or untrusted if that is not known.

        Returns:
            The chunk as it is now.

        Raises:
            NotFoundError: there is no such chunk.
            ConflictError: it is not in quarantine.
            InvalidChunk: ``trust`` is no level above quarantined.
        """
        if trust is not None and check_trust(trust) == "quarantined":
            raise InvalidChunk("release needs a level above quarantined: untrusted, ordinary or trusted")

        def make_visible(chunk: Chunk) -> Chunk:
            if chunk.metadata.trust != "quarantined":
                raise ConflictError(
                    f"{chunk_id} is not in quarantine", hint="rlm-mem review list shows quarantined chunks"
                )
            made = Chunk.from_dict(chunk.to_dict())
            kept = made.metadata.extra.pop(QUARANTINE, None)
            before = kept.get("trust") if isinstance(kept, dict) else None
            known = before if before in TRUST_LEVELS[1:] else "untrusted"
            made.metadata.trust = trust or str(known)
            visible = [
                one.chunk for one in self.history(chunk_id) if one.chunk.metadata.trust != "quarantined"
            ]
            former = (
                {one.target_id: one for one in visible[-1].links if one.type == SUPERSEDES} if visible else {}
            )
            replaced = self.get_many(list(former), track=False) if former else {}
            made.links += [
                former[one] for one, chunk in replaced.items() if chunk.metadata.superseded_by is None
            ]
            return made

        return self._quarantine_change(chunk_id, make_visible, "release")

    def reject(self, chunk_id: str, reason: str) -> bool:
        """Archive a chunk in quarantine; its words remembered again stay hidden, also where it came as quarantined.

        Args:
            reason: why, stored with it.

        Returns:
            False if there is no such chunk.
        """
        with self.batch():
            found = self.backend.chunks(self.namespace, [chunk_id]).get(chunk_id)
            if found is not None and QUARANTINE not in found.metadata.extra:
                record = {"reason": reason, "at": self._now(), "by": self.actor}
                self.update_chunk(chunk_id, metadata={QUARANTINE: record}, hidden=True)
            return self.delete_chunk(chunk_id)

    def _quarantine_change(self, chunk_id: str, revise: Callable[[Chunk], Chunk], op: str) -> Chunk:
        made = self._writer.change(chunk_id, revise, op=op)
        if made is None:
            hint = "search gives the ids; a chunk in the archive must be restored first"
            raise NotFoundError(f"there is no chunk {chunk_id}", hint=hint)
        return made

    def sweep(self, limit: int = 10_000) -> list[str]:
        """Archive or erase expired chunks, depending on the setting ``trust.expired``; return their ids.

        Reads never return expired chunks, swept or not.
        """
        expired, swept = self.expired(limit), list[str]()
        for ids in in_lots(expired):
            with self.batch():
                now, found = self._now(), self.backend.queries.summaries(self.namespace, ids)
                # Others may have changed some before the lock was taken.
                lot = [one.id for one in found if one.expires_at is not None and one.expires_at <= now]
                for chunk_id in lot:
                    self.delete_chunk(chunk_id, permanent=self.config.trust.expired == "erase")
            swept += lot
        return swept

    # --- links ------------------------------------------------------------------------------------------

    def add_link(
        self,
        source_id: str,
        target_id: str,
        link_type: str,
        strength: float = 0.5,
        reasoning: str | None = None,
    ) -> bool:
        """Add a link, or change strength and reasoning of the existing one.

        Raises:
            InvalidLink: unknown type, strength outside 0-1, a chunk that is missing or hidden (in quarantine, expired),
                or a chunk linked to itself.
        """
        reasoning, found = self._screened(reasoning, None)
        made = self._writer.add_links(source_id, [target_id], link_type, strength, reasoning)
        self._report_secrets(source_id, found)
        return made

    def supersede(
        self,
        old_id: str,
        new_id: str,
        reason: str | None = None,
        *,
        confidence: float = 1.0,
        force: bool = False,
    ) -> Chunk:
        """Replace one chunk by another, in one transaction that ``undo`` reverts.

        The older chunk gets ``superseded_by``, and ``valid_to`` is set to the time of the newer one unless it ends
        earlier. The newer chunk gets a link ``supersedes`` with the reason and, as its strength, the confidence.

        Args:
            old_id: the chunk that is replaced.
            new_id: the chunk that replaces it.
            reason: why, for people and models.
            confidence: 0-1, how sure the replacement is.
            force: replace it even if ``new_id`` both happened and was stored before ``old_id``.

        Returns:
            The older chunk as it is now.

        Raises:
            NotFoundError: one of the two does not exist.
            ConflictError: another chunk replaced the older one already.
            InvalidLink: they are the same chunk, the older one replaces the newer one, or, without ``force``, the
                two ids seem to be swapped.
        """
        check_flag(force, "force")
        found = self.get_many([old_id, new_id])
        for chunk_id in (old_id, new_id):
            if chunk_id not in found:
                raise NotFoundError(f"there is no chunk {chunk_id}", hint="search gives the ids")
        old, new = found[old_id].metadata, found[new_id].metadata
        if not force and new.at < old.at and new.created_at < old.created_at:
            # Other reasons to refuse it come first. Nothing is written yet: the caller's batch may go on.
            core.check_replaceable(
                found[old_id],
                found[new_id],
                lambda one: self.backend.chunks(self.namespace, [one], status=None).get(one),
            )
            raise InvalidLink(
                f"{new_id} of {new.at[:10]} is older than {old_id} of {old.at[:10]}, which it is to replace",
                hint="swap the two ids; if the older one is right, say so with force",
            )
        with self.batch():
            self.add_link(new_id, old_id, SUPERSEDES, confidence, reason)
            return self.get_many([old_id])[old_id]

    def supersede_all(self, old_ids: Sequence[str], new_id: str) -> None:
        """Replace chunks, which exist and are not replaced yet, by one chunk, which is written once; see ``supersede``.

        Raises:
            ConflictError, InvalidLink: as ``supersede``.
        """
        self._writer.add_links(new_id, old_ids, SUPERSEDES, 1.0, None)

    def remove_link(self, source_id: str, target_id: str, link_type: str | None = None) -> int:
        """Remove links from one chunk to another (of one type, or all); return how many."""
        return self._writer.remove_link(source_id, target_id, link_type)

    def out_of_date(self, about: ChunkMetadata | Summary) -> str:
        """Return what marks a chunk that is no longer valid, in words; empty for a valid one."""
        return out_of_date(about.superseded_by, self.ended_at(about.valid_to))

    # --- the whole store --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def batch(self) -> Iterator[ChunkStore]:
        """Group writes into one commit: all of them become visible, or none if the block raises."""
        with self.backend.transaction(self.namespace):
            yield self

    def checkpoint(self) -> dict[str, Any]:
        """Write access counts to the chunk files, and write the three JSON views."""
        return self.backend.checkpoint()

    @observed("sync")
    def sync(self, full: bool = False) -> SyncReport:
        """Index files changed by hand or by git; ``full`` checks every file, including edits in place."""
        return self.backend.sync(full=check_flag(full, "full"))

    @observed("rebuild")
    def rebuild_index(self, progress: Progress | None = None) -> SyncReport:
        """Rebuild the index from the files; ``progress`` is called with (done, total)."""
        return self.backend.rebuild(self.namespace, check_function(progress, "progress"))

    def close(self) -> None:
        """Write the JSON views if something changed (below ``store.views_limit`` chunks) and close every file."""
        if self._written.is_set() and not self.backend.read_only:
            try:
                self.backend.write_views(up_to=self.config.store.views_limit)
            except StorageError as error:  # the writes themselves are complete, so none is reported as failed
                _logger.warning("the JSON views are out of date: %s", error)
            self._written.clear()
        self.backend.close()
