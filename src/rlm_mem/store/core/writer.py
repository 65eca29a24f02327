"""Creates, changes, archives and erases chunks of one namespace, and checks the arguments of new ones.

Each change is a read-modify-write under the lock; the former version is kept and an event appended to the audit log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import attrgetter
from threading import Event
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import (
    SUPERSEDES,
    Chunk,
    ChunkLinks,
    ChunkMetadata,
    TypeRegistry,
    check_chunk_id,
    check_confidence,
    check_strength,
    check_tags,
    check_text,
    check_time,
    content_hash,
    format_time,
    links_from_raw,
    new_chunk_id,
)
from rlm_mem.chunk.types import (
    check_count,
    check_number_of_links,
    check_origin,
    check_plain,
    check_reasoning,
    check_trust,
    expired,
    hidden,
)
from rlm_mem.errors import ConflictError, InputError, InvalidChunk, InvalidLink
from rlm_mem.store.core.changes import is_logged, state_of
from rlm_mem.store.core.records import ACTIVE, ANY_REVISION, ARCHIVED, IMPORTED, ChunkRow, Version, audit_line
from rlm_mem.store.core.succession import (
    ended,
    refuse_cycles,
    released,
    replacement,
    replacing_nothing,
    successions,
)

if TYPE_CHECKING:
    from rlm_mem.store.core.backend import Backend
    from rlm_mem.store.core.changes import WriteTransaction

_TIMES = (
    "created_at", "modified_at", "accessed_at", "occurred_at", "valid_from", "valid_to", "expires_at",
)  # fmt: skip
_CHECK_ID = "check the id with: rlm-mem show ID"
METADATA_FIELDS = ChunkMetadata.__struct_fields__
_OLD_NAMES = {"created": "created_at", "updated": "modified_at", "last_accessed": "accessed_at"}


def split_metadata(metadata: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split metadata into known fields (under their current names) and the rest; raises InvalidChunk."""
    if not isinstance(metadata, Mapping):
        raise InvalidChunk(f"metadata must be a dict, not {type(metadata).__name__}")
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise InvalidChunk(f"metadata keys must be text, not {key!r:.60}")
        name = _OLD_NAMES.get(key, key)
        if name in METADATA_FIELDS or name in ("type", "tags"):
            known[name] = value
        else:
            extra[key] = value
    nested = known.pop("extra", None)
    if nested is not None:
        if not isinstance(nested, Mapping):
            raise InvalidChunk(f"metadata.extra must be a dict, not {type(nested).__name__}")
        extra.update(nested)
    check_plain(extra, "metadata")
    return known, extra


def check_fields(known: Mapping[str, Any]) -> dict[str, Any]:
    """Check metadata fields, but the hash, which is computed; return them in stored form. Raises InvalidChunk."""
    checked: dict[str, Any] = {}
    for name, value in known.items():
        if name in _TIMES:
            checked[name] = None if value is None else check_time(value, name)
        elif name == "confidence":
            checked[name] = check_confidence(value)
        elif name == "access_count":
            checked[name] = check_count(value, name)
        elif name == "conversation_id":
            checked[name] = None if value is None else check_text(value, "conversation_id")
        elif name == "source":
            checked[name] = check_text(value, "source")
        elif name == "origin":
            checked[name] = None if value is None else check_origin(value)
        elif name == "trust":
            checked[name] = None if value is None else check_trust(value)
        elif name == "superseded_by":
            checked[name] = None if value is None else check_chunk_id(value)
        elif name == "provenance":
            if not isinstance(value, Mapping):
                raise InvalidChunk(f"provenance must be a dict, not {type(value).__name__}")
            checked[name] = dict(value)
            check_plain(checked[name], "provenance")
    if checked.get("valid_from") and checked.get("valid_to") and checked["valid_from"] > checked["valid_to"]:
        raise InvalidChunk(f"valid_from {checked['valid_from']} is after valid_to {checked['valid_to']}")
    return checked


def check_links(links: object, types: TypeRegistry, now: str, own_id: str | None) -> list[ChunkLinks]:
    """Return links from objects or dicts, each with a known type; raises InvalidLink."""
    if links is None:
        return []
    try:
        checked = links_from_raw(links, now)
    except InvalidLink:
        raise
    except InputError as error:
        raise InvalidLink(error.message, hint=error.hint) from None
    checked_time = now
    for link in checked:
        types.check_link(link.type)
        check_strength(link.strength)
        check_reasoning(link.reasoning)
        if link.extra:
            check_plain(link.extra, "link")
        check_chunk_id(link.target_id)
        if link.target_id == own_id:
            raise InvalidLink(f"{own_id} cannot link to itself")
        if not link.created_at:
            link.created_at = now
        elif link.created_at != checked_time:  # links created automatically all have the same time
            link.created_at = checked_time = check_time(link.created_at, "link created_at")
    return checked


def merged_fields(given: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Merge fields by name; None means omitted, and two different values for one field are an error."""
    merged: dict[str, Any] = {}
    for name, value in given:
        former = value if value is None else merged.setdefault(name, value)
        if former is not value and former != value:  # NaN is not equal to itself
            raise InvalidChunk(
                f"{name} is given twice with different values: {merged[name]!r:.60} and {value!r:.60}"
            )
    return merged


def given_fields(metadata: object, given: Iterable[tuple[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the checked fields of a new chunk, and the content of ``metadata.extra``; raises InvalidChunk.

    A field may be given as a keyword, inside ``metadata`` or by an older name (docs/spec/decisions.md, 13).
    """
    known, extra = ({}, {}) if metadata is None else split_metadata(metadata)
    merged = merged_fields((*given, *known.items()))
    fields = check_fields(merged)
    if "type" in merged:
        fields["type"] = merged["type"]
    fields["tags"] = check_tags(merged["tags"]) if "tags" in merged else []
    if "tokens" in merged:
        fields["tokens"] = check_count(merged["tokens"], "tokens")
    return fields, extra


def tokens_of(text: str) -> int:
    """Count the o200k tokens of a text."""
    from rlm_mem.text.tokens import count_tokens  # loads its tables: the slowest part of a cold command

    return count_tokens(text)


# --- writing --------------------------------------------------------------------------------------------


class Writer:
    """Writes chunks of one namespace to a backend.

    Args:
        backend: stores the chunks.
        namespace: the only namespace whose chunks this writer can access.
        types: the chunk and link types that may be written.
        clock: returns the current time.
        actor: who writes, for the audit log.
        written: set by every change.
    """

    def __init__(
        self,
        backend: Backend,
        namespace: str,
        types: TypeRegistry,
        clock: Callable[[], datetime],
        actor: str | None,
        written: Event,
    ) -> None:
        self._backend = backend
        self._namespace = namespace
        self._types = types
        self.clock = clock
        self._actor = actor
        self._written = written

    def now(self) -> str:
        """Return the current time in stored form."""
        return format_time(self.clock())

    # --- finding ---------------------------------------------------------------------------------------

    def row(self, chunk_id: str, status: int = ACTIVE) -> ChunkRow | None:
        """Return the row of a chunk of this namespace with this status; raises InvalidChunkId."""
        row = self._backend.find(self._namespace, check_chunk_id(chunk_id))
        return row if row is not None and row.status == status else None

    def _read(self, row: ChunkRow | None) -> Chunk | None:
        return self._backend.read(row) if row else None

    def _find_any(self, namespace: str, chunk_id: str) -> Chunk | None:
        return self._read(self._backend.find(namespace, chunk_id))

    def _find_active(self, namespace: str, chunk_id: str) -> Chunk | None:
        row = self._backend.find(namespace, chunk_id)
        return self._read(row if row is not None and row.status == ACTIVE else None)

    # --- create and change -----------------------------------------------------------------------------

    def create(self, chunk: Chunk, *, fixed_id: bool) -> Chunk:
        """Store a checked draft whose links come from the caller; the chunks that it names must exist."""
        with self._backend.transaction(chunk.namespace):
            self._check_named(chunk)
            return self.add(chunk, fixed_id=fixed_id)

    def add(self, chunk: Chunk, *, fixed_id: bool = False) -> Chunk:
        """Store a checked draft; a generated id that is taken is replaced, a fixed one is refused."""
        with self._backend.transaction(chunk.namespace) as transaction:
            while self._backend.id_taken(chunk):
                if fixed_id:
                    raise InvalidChunk(
                        f"the chunk {chunk.id} exists already", hint="update it, or leave the id out"
                    )
                chunk.id = new_chunk_id(self.clock())
            if chunk.metadata.superseded_by or SUPERSEDES in map(attrgetter("type"), chunk.links):
                self._check_successor(chunk)
                self._sync_replacements(transaction, None, chunk)
            transaction.put(chunk)
            self._log(transaction, "create", chunk)
        return chunk

    def adopt(self, chunk: Chunk, *, archived: bool) -> None:
        """Store a complete chunk unchanged, replacing the one with the same id in its namespace."""
        with self._backend.transaction(chunk.namespace) as transaction:
            row = self._backend.find(chunk.namespace, chunk.id)
            if row is None and self._backend.held_elsewhere(chunk.namespace, chunk.id):
                raise InvalidChunk(f"the id {chunk.id} is that of another chunk in this store")
            former = self._read(row)
            transaction.put(chunk, status=ARCHIVED if archived else ACTIVE)
            # The import may name other chunks by new ids later, as part of the same change.
            named = {"state": None} if chunk.links or chunk.metadata.superseded_by else {}
            self._log(transaction, "import", chunk, former=former, archived=archived, **named)

    def _check_named(self, chunk: Chunk, former: Chunk | None = None) -> None:
        """Raise InvalidLink if a link's target, or the successor, is missing or hidden, and not named by ``former``."""
        namespace, before = chunk.namespace, {one.target_id for one in former.links} if former else set()
        # A replacement has rules of its own (``_sync_replacements``).
        links = (one for one in chunk.links if one.type != SUPERSEDES and one.target_id not in before)
        self._check_linkable(namespace, [one.target_id for one in links])
        if former is None or chunk.metadata.superseded_by != former.metadata.superseded_by:
            self._check_successor(chunk)

    def _check_successor(self, chunk: Chunk) -> None:
        """Raise InvalidLink if the successor is missing or has expired: neither chunk would be read any more."""
        by = chunk.metadata.superseded_by
        new = None if by is None else self._find_active(chunk.namespace, by)
        if by is not None and (new is None or expired(new.metadata.expires_at, self.now())):
            raise InvalidLink(f"{by} does not exist in namespace {chunk.namespace}, so it replaces nothing")

    def _check_linkable(self, namespace: str, ids: Iterable[str]) -> None:
        """Raise InvalidLink if a chunk to link is missing, or hidden: a link must not reveal that it exists."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return
        now = self.now()
        found = self._backend.queries.summaries(namespace, wanted)
        shown = {one.id for one in found if one.shown_at(now)}
        for one in wanted:
            if one not in shown:
                raise InvalidLink(f"there is no chunk {one} to link", hint=_CHECK_ID)

    def change(
        self, chunk_id: str, revise: Callable[[Chunk], Chunk], *, expected_revision: int | None = None,
        op: str = "update",
    ) -> Chunk | None:  # fmt: skip
        """Replace a chunk by the result of ``revise``; None if there is no chunk, no write if nothing differs.

        Raises ConflictError if the chunk has another revision than ``expected_revision``.
        """
        with self._backend.transaction(self._namespace) as transaction:
            chunk = self._read(self.row(chunk_id))
            if chunk is None:
                return None
            if expected_revision is not None and chunk.revision != expected_revision:
                found = f"{chunk_id} has revision {chunk.revision}, not {expected_revision}"
                raise ConflictError(
                    f"{found}: it was changed meanwhile", hint="read it again and repeat the change"
                )
            updated = revise(chunk)
            if updated.metadata.trust == "quarantined":
                updated = replacing_nothing(updated)
            if updated == chunk:
                return chunk
            self._check_named(updated, chunk)
            return self._put_revision(transaction, chunk, updated, op)

    def _put_revision(
        self, transaction: WriteTransaction, former: Chunk, updated: Chunk, op: str, **more: Any
    ) -> Chunk:
        self._sync_replacements(transaction, former, updated)
        return self._put_next(transaction, former, updated, op, **more)

    def _put_next(
        self, transaction: WriteTransaction, former: Chunk, updated: Chunk, op: str, **more: Any
    ) -> Chunk:
        check_number_of_links(len(updated.links))
        updated.revision = former.revision + 1
        # If the clock was set back, the newer revision must not look older.
        updated.metadata.modified_at = max(self.now(), former.metadata.modified_at)
        transaction.put(updated)
        self._log(transaction, op, updated, former=former, **more)
        return updated

    # --- succession ------------------------------------------------------------------------------------

    def _sync_replacements(self, transaction: WriteTransaction, former: Chunk | None, updated: Chunk) -> None:
        """Update the chunks that ``updated`` replaces, or is replaced by, to match it (``succession``).

        Does nothing while a whole change is undone, since that restores each of its chunks.

        Raises:
            ConflictError: the chunk to replace was already replaced.
            InvalidLink: the chunk to replace is missing or hidden, or replaces ``updated``; or a link closes a cycle.
        """
        if transaction.change.undoes is not None:
            return
        refuse_cycles(former, updated, partial(self._backend.chunks, updated.namespace, status=None))
        check_number_of_links(len(updated.links))
        before, now = successions(former), successions(updated)
        find, known = (partial(one, updated.namespace) for one in (self._find_active, self._find_any))
        replaced: list[tuple[Chunk, Chunk]] = []
        for target in (one for one in now if one not in before):  # all are checked before one is written
            old = find(target)
            if old is None or self._is_hidden(old):
                raise InvalidLink(f"there is no chunk {target} to replace", hint="search gives the ids")
            replaced.append((old, ended(self._without_lost(old), now[target], updated, known)))
        for target in (one for one in before if one not in now):
            self._reinstate(transaction, target, updated.id, before[target])
        for old, made in replaced:
            lost = old.metadata.superseded_by
            if lost not in (None, updated.id) and find(lost) is not None:  # the archive keeps its links
                self._drop_replacement(transaction, lost, old.id)
            if made != old:
                self._put_next(transaction, old, made, "supersede", by=updated.id)
        by, earlier = updated.metadata.superseded_by, former.metadata.superseded_by if former else None
        if by == earlier:
            return
        end_is_given = updated.metadata.valid_to != (former.metadata.valid_to if former else None)
        if earlier is not None:
            taken = self._drop_replacement(transaction, earlier, updated.id)
            if taken is not None and not end_is_given:
                updated.metadata.valid_to = taken.extra.get("former_valid_to")
        successor = None if by is None else find(by)
        if successor is not None:
            linked = Chunk.from_dict(successor.to_dict())
            link = replacement(linked, updated.id, self.now())
            made = ended(updated, link, linked, known)
            if end_is_given:
                link.extra.pop("former_valid_to", None)
            else:
                updated.metadata = made.metadata
            if linked != successor:
                self._put_next(transaction, successor, linked, "link", target=updated.id, type=SUPERSEDES)

    def _is_hidden(self, chunk: Chunk) -> bool:
        return hidden(chunk.metadata.trust, chunk.metadata.expires_at, self.now())

    def _without_lost(self, old: Chunk) -> Chunk:
        """Return a chunk as if nothing had replaced it if what did was archived or has expired; else the chunk."""
        by = old.metadata.superseded_by
        successor = None if by is None else self._find_active(old.namespace, by)
        if by is None or (successor is not None and not self._is_hidden(successor)):
            return old
        former = successions(successor or self._find_any(old.namespace, by)).get(old.id)
        return old if former is None else released(old, former)

    def _reinstate(self, transaction: WriteTransaction, old_id: str, new_id: str, link: ChunkLinks) -> None:
        old = self._read(self.row(old_id))
        if old is not None and old.metadata.superseded_by == new_id:
            self._put_next(transaction, old, released(old, link), "supersede", by=None)

    def _drop_replacement(self, transaction: WriteTransaction, new_id: str, old_id: str) -> ChunkLinks | None:
        """Remove and return the link by which a chunk replaces another; None if the chunk or the link is missing."""
        new = self._read(self.row(new_id))
        link = successions(new).get(old_id)
        if new is None or link is None:
            return None
        made = Chunk.from_dict(new.to_dict())
        made.links = [one for one in made.links if (one.target_id, one.type) != (old_id, SUPERSEDES)]
        self._put_next(transaction, new, made, "unlink", target=old_id, type=SUPERSEDES)
        return link

    def agree(self, namespace: str, newer_id: str, older_id: str) -> bool:
        """See ``ChunkStore.agree``."""
        find = partial(self._find_active, namespace)
        with self._backend.transaction(namespace) as transaction:
            new, old = find(newer_id), find(older_id)
            if new is None or old is None or old.metadata.superseded_by not in (None, newer_id) or new == old:
                return False
            linked = Chunk.from_dict(new.to_dict())
            link = replacement(linked, older_id, self.now())
            about = old.metadata
            is_ended = about.superseded_by is not None and about.valid_to is not None
            replaced = old if is_ended else ended(old, link, linked, partial(self._find_any, namespace))
            if linked != new:
                self._put_next(transaction, new, linked, "link", target=older_id, type=SUPERSEDES)
            if replaced != old:
                self._put_next(transaction, old, replaced, "supersede", by=newer_id)
            return linked != new or replaced != old

    # --- delete and restore ----------------------------------------------------------------------------

    def archive(self, chunk_id: str) -> bool:
        """Move a chunk to the archive; False if there is none."""
        with self._backend.transaction(self._namespace) as transaction:
            row = self.row(chunk_id)
            chunk = self._read(row)
            if row is None or chunk is None:
                return False
            transaction.move(chunk, row, ARCHIVED)
            self._log(transaction, "delete", chunk)
            return True

    def erase(self, chunk_id: str) -> bool:
        """Delete a chunk, active or archived, its versions and the links to it; False if there is none."""
        with self._backend.transaction(self._namespace) as transaction:
            row = self.row(chunk_id) or self.row(chunk_id, ARCHIVED)
            if row is None:
                return False
            for source_id in self._backend.queries.linking_to(self._namespace, chunk_id):
                source = self._find_any(self._namespace, source_id)
                if source is not None and source_id != chunk_id:
                    updated = Chunk.from_dict(source.to_dict())
                    updated.links = [link for link in source.links if link.target_id != chunk_id]
                    self._put_next(transaction, source, updated, "unlink", target=chunk_id)
            for old_id, link in successions(self._read(row)).items():
                self._reinstate(transaction, old_id, chunk_id, link)
            transaction.erase(row)
            self._written.set()
            transaction.events.append(
                audit_line("erase", self.clock(), self._actor, self._namespace)
                | {"chunk_id": chunk_id, "revision": row.revision, "before": row.content_hash}
                | {"change": transaction.change.id}
            )
            return True

    def clean_archived(self, chunk_id: str) -> None:
        """Take links to erased chunks, and a replacement by one, out of an archived chunk, as a new revision."""
        with self._backend.transaction(self._namespace) as transaction:
            chunk = self._read(self.row(chunk_id, ARCHIVED))
            made = None if chunk is None else self._without_stale(chunk, undoing=True)
            if chunk is not None and made is not None and made != chunk:
                made.revision += 1
                transaction.put(made, status=ARCHIVED)
                self._log(transaction, "unlink", made, former=chunk, archived=True)

    def restore(self, chunk_id: str) -> Chunk | None:
        """Restore a chunk from the archive unchanged, but without links and replacements that no longer exist."""
        with self._backend.transaction(self._namespace) as transaction:
            row = self.row(chunk_id, ARCHIVED)
            chunk = self._read(row)
            if row is None or chunk is None:
                return None
            present = self._without_stale(chunk, undoing=transaction.change.undoes is not None)
            if present != chunk:
                chunk = present
                chunk.revision += 1
                transaction.put(chunk)
            else:
                transaction.move(chunk, row, ACTIVE)
            self._log(transaction, "restore", chunk)
            return chunk

    def _without_stale(self, chunk: Chunk, *, undoing: bool) -> Chunk:
        """Copy a former state without links to erased chunks and without replacements that were reverted meanwhile.

        An undo restores both chunks of a replacement one after the other; a sync of the replacements follows.
        """
        find = partial(self._backend.find, chunk.namespace)
        made = Chunk.from_dict(chunk.to_dict())
        made.links = []
        for link in chunk.links:
            row = find(link.target_id)
            if row is None:
                continue
            old = self._read(row) if link.type == SUPERSEDES and not undoing else None
            if old is None or old.metadata.superseded_by == chunk.id:
                made.links.append(link)
        by = chunk.metadata.superseded_by
        row = None if by is None else find(by)
        if by is not None and (row is None if undoing else chunk.id not in successions(self._read(row))):
            free = [one.chunk.metadata for one in self.history(chunk.id)]
            ends = [about.valid_to for about in free if about.superseded_by is None]
            made.metadata.superseded_by, made.metadata.valid_to = None, ends[-1] if ends else None
        return made

    def settle(self, chunk_id: str) -> None:
        """After an undo, drop replacements that the older chunk does not name, and complete those that it names."""
        with self._backend.transaction(self._namespace) as transaction:
            chunk = self._find_active(self._namespace, chunk_id)
            if chunk is None:
                return
            by = chunk.metadata.superseded_by
            if by is not None and self.agree(self._namespace, by, chunk_id):
                chunk = self._find_active(self._namespace, chunk_id) or chunk
            made = self._without_stale(chunk, undoing=False)
            if made.links != chunk.links:
                made.metadata = chunk.metadata
                self._put_next(transaction, chunk, made, "unlink", type=SUPERSEDES)

    # --- history ---------------------------------------------------------------------------------------

    def history(self, chunk_id: str) -> list[Version]:
        """Return kept versions, oldest first, the present one last unless it cannot be read."""
        chunk = self._read(self.row(chunk_id) or self.row(chunk_id, ARCHIVED))
        below = ANY_REVISION if chunk is None else chunk.revision
        former = self._backend.former_versions(self._namespace, chunk_id, below=below)
        if chunk is None:
            return [one for one in former if one.chunk.namespace == self._namespace]
        return [*former, Version(chunk.revision, chunk.metadata.modified_at, chunk, current=True)]

    def undo(self, chunk_id: str, to_revision: int | None) -> Chunk | None:
        """Write a former version again; None if there is no such chunk or version."""
        with self._backend.transaction(self._namespace) as transaction:
            versions = self.history(chunk_id)
            if self.row(chunk_id) is None or not versions or not versions[-1].current:
                return None
            *former, last = versions
            wanted = [one for one in former if to_revision in (None, one.revision)]
            present = last.chunk
            if not wanted and (former or to_revision is not None or not successions(present)):
                return None
            if to_revision is None:
                self._refuse_edited(present)
            # For a new chunk without a former version, only its replacements of other chunks can be reverted.
            before = wanted[-1].chunk if wanted else replacing_nothing(present)
            updated = self._without_stale(before, undoing=True)
            updated.metadata.access_count = present.metadata.access_count
            updated.metadata.accessed_at = present.metadata.accessed_at
            return self._put_revision(transaction, present, updated, "undo", to=before.revision)

    def _refuse_edited(self, chunk: Chunk) -> None:
        """Raise ConflictError if the file of a chunk was edited by hand after its last change."""
        last = None
        for event in self._backend.read_events(
            namespace=chunk.namespace, since=None, op=None, chunk_id=chunk.id
        ):
            last = event if "after" in event and IMPORTED not in event else last
        if last is not None and last["revision"] == chunk.revision and not is_logged(chunk, last):
            raise ConflictError(
                f"the file of {chunk.id} was edited by hand since the last change of the chunk",
                hint=f"rlm-mem undo {chunk.id} --to REVISION restores that revision, and keeps the edit as a version",
            )

    # --- links -----------------------------------------------------------------------------------------

    def add_links(
        self,
        source_id: str,
        target_ids: Sequence[str],
        link_type: str,
        strength: float,
        reasoning: str | None,
    ) -> bool:
        """Add a link to each target, or change the existing one of this type, in one write of the source."""
        self._types.check_link(link_type)
        strength = check_strength(strength)
        reasoning = check_reasoning(reasoning)
        for target_id in target_ids:
            if check_chunk_id(source_id) == check_chunk_id(target_id):
                raise InvalidLink(f"{source_id} cannot link to itself")
        with self._backend.transaction(self._namespace) as transaction:
            if link_type != SUPERSEDES:
                self._check_linkable(self._namespace, (source_id, *target_ids))
            source = self._read(self.row(source_id))
            if source is None or expired(source.metadata.expires_at, self.now()):
                raise InvalidLink(f"there is no chunk {source_id} to link", hint=_CHECK_ID)
            updated = Chunk.from_dict(source.to_dict())
            links = {(one.target_id, one.type): one for one in updated.links}
            changed = []
            for key in ((target_id, link_type) for target_id in target_ids):
                old = links.get(key)
                if old is None or (old.strength, old.reasoning) != (strength, reasoning):
                    links[key] = ChunkLinks(
                        *key, strength, self.now(), reasoning, dict(old.extra) if old else {}
                    )
                    changed.append(key[0])
            if changed:
                updated.links = list(links.values())
                more = {"target": changed[0]} if len(changed) == 1 else {}
                self._put_revision(transaction, source, updated, "link", **more, type=link_type)
            return True

    def remove_link(self, source_id: str, target_id: str, link_type: str | None) -> int:
        """Remove links to one chunk, of one type or all; return how many."""
        check_chunk_id(target_id)
        with self._backend.transaction(self._namespace) as transaction:
            source = self._read(self.row(source_id))
            if source is None:
                return 0
            updated = Chunk.from_dict(source.to_dict())
            updated.links = [
                link
                for link in source.links
                if link.target_id != target_id or link_type not in (None, link.type)
            ]
            removed = len(source.links) - len(updated.links)
            if removed:
                self._put_revision(transaction, source, updated, "unlink", target=target_id)
            return removed

    # --- audit -----------------------------------------------------------------------------------------

    def _log(
        self, transaction: WriteTransaction, op: str, chunk: Chunk, *, former: Chunk | None = None, **more: Any
    ) -> None:  # fmt: skip
        """Queue an audit event, which is written when the transaction has been committed."""
        self._written.set()
        transaction.events.append(
            audit_line(op, self.clock(), self._actor, chunk.namespace)
            | {
                "chunk_id": chunk.id,
                "revision": chunk.revision,
                "before": former.metadata.content_hash if former else None,
                # Made anew: in a file edited by hand, that of the metadata may be of the former text.
                "after": content_hash(chunk.content),
                "state": state_of(chunk),
                **more,
                "change": transaction.change.id,
            }
        )
