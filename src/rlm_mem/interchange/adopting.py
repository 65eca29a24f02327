"""Writes complete chunks to a store: new, known, newer, edited, or in conflict with the stored chunk."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from rlm_mem.chunk import ORDERED_LINK_TYPES, SUPERSEDES, Chunk, check_content, content_hash, format_time
from rlm_mem.chunk.types import lower, rank
from rlm_mem.errors import InputError
from rlm_mem.interchange.records import ImportedChunk, mapped_id, references, rename_references
from rlm_mem.interchange.report import BY_COMMAND
from rlm_mem.interchange.target import ImportTarget
from rlm_mem.interchange.twins import Twin, Twins
from rlm_mem.store.core.brain_files import mirror_id
from rlm_mem.store.core.chunk_store import QUARANTINE
from rlm_mem.store.core.contents import NamespaceReader
from rlm_mem.store.core.records import IMPORTED, is_mirror
from rlm_mem.store.core.revising import copied, screened_chunk

_ARCHIVED = 1
_REPLACEMENTS_PER_COMMIT = 500


class Adopter:
    """Writes complete chunks with existing ids to a store.

    A chunk with the same id and state counts as known. Otherwise the higher revision wins; with equal revisions the
    file was edited since its export, and the edit becomes a new revision. An id that another chunk has is mapped. A
    chunk that the store has under another id is known by that.

    Only ``dry_run``, ``keep_namespaces``, ``replace``, ``duplicates``, ``secrets`` and ``trust`` of the options apply.
    """

    def __init__(self, target: ImportTarget, twins: Twins) -> None:
        self._target, self._twins = target, twins
        self._store, self._report, self._options = target.store, target.report, target.options
        self._twin_ids: dict[tuple[str, str], str] = {}
        """Ids of stored chunks by namespaces and ids, in the source, of the chunks that were recognised as them."""
        self.namespaces: set[str] = set()
        """The namespaces in which chunks were written."""
        self._kept: set[tuple[str, str]] = set()
        """Namespaces and ids, in the source, of chunks that were not taken, so what the store has stays as it is."""
        # Replacements named by chunks (namespace, newer, older); one that both chunks name is removed.
        self._one_sided: dict[tuple[str, str, str], tuple[str, bool]] = {}
        # As these, of stored chunks that chunks of the source, which do not name them, may take the place of.
        self._left: dict[tuple[str, str, str], str] = {}
        self._undone: dict[str, set[str]] = {}
        self._text_changes: dict[str, tuple[str, dict[str, tuple[set[str], str]]]] = {}
        """By namespace, when its log was read, and what ``_text_changes`` returned."""

    @property
    def renamed_count(self) -> int:
        """The number of chunks with a new id."""
        return sum(map(len, self._target.renamed.values()))

    def adopt(self, memory: ImportedChunk) -> str | None:
        """Write one chunk, or skip it; return its id in the store, or None."""
        key = (memory.chunk.namespace, memory.chunk.id)
        try:
            return self._adopt(memory, key)
        except InputError as error:
            self._kept.add(key)
            self._report.problem(memory.where, str(error))
            return None

    def follow(self, memory: ImportedChunk) -> None:
        """Let a chunk that was written name others of its source by their new ids; call it after the whole source."""
        source, own = memory.chunk.namespace, memory.chunk.id
        names = self._target.renamed.get(source, {})
        twin_id = self._twin_ids.get((source, own))
        if twin_id is not None:
            rename_references(memory.chunk, names)
            self._join_links(memory, twin_id)
            return
        if names.keys().isdisjoint(references(memory.chunk)) or (source, own) in self._kept:
            return
        namespace, chunk_id = self._namespace(memory), names.get(own, own)
        with self._store.backend.transaction(namespace) as transaction:
            row = self._store.backend.find(namespace, chunk_id)
            stored = self._store.backend.read(row) if row else None
            if row is None or stored is None or names.keys().isdisjoint(references(stored)):
                return
            if self._is_above_limit(stored):
                return
            made = copied(stored)
            rename_references(made, names)
            self._limit_replacements(made, memory.where)
            # The line of the import in the audit log is that of this state, too.
            transaction.put(made, status=row.status, keep_version=False)
            if row.status != _ARCHIVED:
                for key, _ in _replacements(stored):
                    self._one_sided.pop(key, None)
                self._note_replacements(made, memory.where)

    def _join_links(self, memory: ImportedChunk, twin_id: str) -> None:
        """Add the links that only the chunk of the source has to the stored one that it was recognised as."""
        chunk, namespace, find = memory.chunk, self._namespace(memory), self._store.backend.find
        chunk.namespace, chunk.id = namespace, twin_id
        found = self._stored(chunk)
        if found is None or found[1] or memory.archived or self._is_above_limit(found[0]):
            return
        stored, _ = found
        for key, by_newer in _replacements(chunk):
            self._one_sided.setdefault(key, (memory.where, by_newer))
        there = {(link.target_id, link.type) for link in stored.links}
        missing = [
            link
            for link in chunk.links
            if link.type not in ORDERED_LINK_TYPES  # the order of the store and of the source may differ
            and link.target_id != twin_id
            and (link.target_id, link.type) not in there
            and find(namespace, link.target_id) is not None
        ]
        if missing:
            made = _as_next_revision(stored, stored, format_time(self._store.clock()), merge=False)
            made.links += missing
            self._store.adopt(made, secrets=self._options.secrets)
            self.namespaces.add(namespace)

    def agree(self) -> None:
        """Record in both chunks the replacements that only one of them names; call it after the whole source."""
        if self._options.dry_run:
            return
        left = {key: (where, True) for key, where in self._left.items() if self._is_one_sided(*key)}
        one_sided, self._one_sided, self._left = list((left | self._one_sided).items()), {}, {}
        for place in range(0, len(one_sided), _REPLACEMENTS_PER_COMMIT):
            with self._target.changing():
                for (namespace, newer_id, older_id), (where, _) in one_sided[
                    place : place + _REPLACEMENTS_PER_COMMIT
                ]:
                    try:
                        self._store.agree(namespace, newer_id, older_id)
                    except InputError as error:
                        self._report.problem(where, str(error))

    def _is_one_sided(self, namespace: str, newer_id: str, older_id: str) -> bool:
        """Return whether one of two stored chunks names the replacement, and the other does not."""
        found = self._store.backend.chunks(namespace, [newer_id, older_id])
        key = namespace, newer_id, older_id
        return sum(any(one == key for one, _ in _replacements(chunk)) for chunk in found.values()) == 1

    def _note_replacements(self, chunk: Chunk, where: str) -> None:
        for key, by_newer in _replacements(chunk):
            if self._one_sided.setdefault(key, (where, by_newer))[1] != by_newer:
                del self._one_sided[key]

    def _namespace(self, memory: ImportedChunk) -> str:
        is_kept = self._options.keep_namespaces and memory.names_namespace
        return memory.chunk.namespace if is_kept else self._store.namespace

    def _name_as_stored(self, chunk: Chunk, stored: Chunk, source: str) -> None:
        """Let a chunk that was imported before name others by the ids that they got then."""
        wanted, there = references(chunk), references(stored)
        if wanted == there:
            return
        others = self._store.backend.chunks(chunk.namespace, sorted(there - wanted), status=None)
        names = {str(one.metadata.provenance.get("original_id")): one.id for one in others.values()}
        for one in wanted - there:
            names.update(
                (one, twin) for twin in self._twins.known(chunk.namespace, source, one) if twin in there
            )
        rename_references(chunk, {one: names[one] for one in wanted - there if one in names})

    def _set_default_trust(self, chunk: Chunk, stored: Chunk | None) -> None:
        """Set the trust of a chunk whose source has none: that of the stored chunk, else the configured one."""
        about = chunk.metadata
        if stored is not None:
            about.origin, about.trust = stored.metadata.origin, stored.metadata.trust
        else:
            about.trust = self._store.config.trust.levels(chunk.namespace)[about.origin]

    def _limit_trust(self, chunk: Chunk, stored: Chunk | None) -> None:
        """Limit the trust of a chunk to that allowed for the import, or of the stored chunk with the same text.

        A stored chunk in quarantine stays there. That a quarantine is over restores no trust that a file claims.
        """
        most, about = self._options.trust, chunk.metadata
        if most is None:
            return
        before = None if stored is None else stored.metadata
        record = about.extra.get(QUARANTINE)
        if isinstance(record, dict):
            about.extra[QUARANTINE] = {name: value for name, value in record.items() if name != "trust"}
        if before is not None and before.trust == "quarantined":
            about.origin, about.trust = before.origin, before.trust
            about.extra.pop(QUARANTINE, None)
            about.extra |= {QUARANTINE: before.extra[QUARANTINE]} if QUARANTINE in before.extra else {}
        elif before is not None and before.content_hash == about.content_hash:
            if rank(about.trust) > rank(lower(most, before.trust)):
                about.origin, about.trust = before.origin, lower(about.trust, before.trust)
        elif rank(about.trust) > rank(most):
            about.origin, about.trust = "import", most

    def _adopt(self, memory: ImportedChunk, key: tuple[str, str]) -> str | None:
        chunk = memory.chunk
        if is_mirror(chunk.id) and not self._options.takes_tiers(self._store):
            return self._keep(memory, key, f"{chunk.id} shows a tiered memory; {BY_COMMAND}")
        chunk.namespace = self._namespace(memory)
        rename_references(chunk, self._target.renamed.get(key[0], {}))
        if memory.original_id is not None:
            self._report.renamed(memory.original_id, chunk.id)
        chunk = memory.chunk = self._screened(chunk)
        content = check_content(chunk.content, max_bytes=self._store.config.store.max_content_bytes)
        chunk.metadata.content_hash = content_hash(content)  # a source may claim that of a trusted text
        found = self._stored(chunk)
        if self._is_id_taken(memory, key[0], found):
            original, chunk.id = chunk.id, id_if_taken(chunk)
            if chunk.id != original:
                chunk.metadata.provenance = {**chunk.metadata.provenance, "original_id": original}
                self._report.renamed(original, chunk.id)
                self._target.renamed.setdefault(key[0], {})[original] = chunk.id
                found = self._stored(chunk)
            if found is not None and self._is_another_chunk(found[0], memory):
                return self._keep(memory, key, f"{chunk.id} mirrors another tiered memory, and was kept so")
        self._limit_replacements(chunk, memory.where)
        if found is None and not (memory.derived or self._options.duplicates):
            twin = self._twins.of(key, chunk)
            if twin is not None:
                return self._recognise(memory, key, twin)
        if found is not None:
            self._name_as_stored(chunk, found[0], key[0])
        if memory.derived:
            self._set_default_trust(chunk, None if found is None else found[0])
        self._limit_trust(chunk, None if found is None else found[0])
        return self._write(memory, new=True) if found is None else self._update(memory, key, *found)

    def _is_above_limit(self, stored: Chunk) -> bool:
        """Return whether a stored chunk is trusted more than the import, which then neither changes nor replaces it."""
        most = self._options.trust
        return most is not None and rank(stored.metadata.trust) > rank(most)

    def _limit_replacements(self, chunk: Chunk, where: str) -> None:
        """Take the replacements of stored chunks that are trusted more out of an imported chunk."""
        named = [] if self._options.trust is None else chunk.replaces
        stored = self._store.backend.chunks(chunk.namespace, named) if named else {}
        for one in filter(self._is_above_limit, stored.values()):
            chunk.links = [
                link for link in chunk.links if (link.type, link.target_id) != (SUPERSEDES, one.id)
            ]
            self._report.conflict(
                where, f"{one.id} is trusted more than {chunk.id}, and was not replaced by it"
            )

    def _is_id_taken(self, memory: ImportedChunk, source: str, found: tuple[Chunk, bool] | None) -> bool:
        """Return whether another chunk has the id, or a memory would mirror another place than that of its file."""
        chunk = memory.chunk
        if found is None and self._store.backend.held_elsewhere(chunk.namespace, chunk.id):
            return True
        is_moved_mirror = chunk.namespace != source and chunk.id == _id_of_mirror(chunk, source)
        return is_moved_mirror or (found is not None and self._is_another_chunk(found[0], memory))

    def _update(
        self, memory: ImportedChunk, key: tuple[str, str], stored: Chunk, stored_archived: bool
    ) -> str:
        """Write a chunk over the stored one that it continues, unless that is as new; return its id."""
        chunk = memory.chunk
        named = dict(_replacements(chunk))
        self._left |= {one: memory.where for one, _ in _replacements(stored) if one not in named}
        same = _state(stored) == _state(chunk)
        if stored_archived and not memory.archived and self._is_undone(chunk):
            stored_archived = False
            self._report.restored += 1
            if not self._options.dry_run:
                self._store.confined_to(chunk.namespace, actor=self._store.actor).restore_chunk(chunk.id)
                self.namespaces.add(chunk.namespace)
            if same:
                return chunk.id
        if self._is_above_limit(stored) and not (same and stored_archived == memory.archived):
            return self._keep(memory, key, f"{chunk.id} is trusted more than this import, and was kept")
        if (same and stored_archived == memory.archived) or (
            memory.derived
            and stored.metadata.content_hash == chunk.metadata.content_hash
            and not _ended_since(stored, chunk)
        ):
            self._report.known += 1
            return chunk.id
        if memory.derived and not self._options.replace:
            if self._is_edited(stored, chunk):
                return self._keep(memory, key, f"{chunk.id} was changed in the store only, and was kept so")
            return self._write(memory, over=stored)
        if self._options.replace or (chunk.revision > stored.revision and not same):
            return self._write(memory)
        if chunk.revision == stored.revision and stored_archived == memory.archived:
            return self._write(memory, over=stored)
        if same:
            state = "archived" if stored_archived else "active"
            return self._keep(memory, key, f"{chunk.id} is {state} in the store, and was kept so")
        revisions = f"the store has revision {stored.revision}, the source {chunk.revision}"
        return self._keep(memory, key, f"{chunk.id}: {revisions}; kept the store's")

    def _keep(self, memory: ImportedChunk, key: tuple[str, str], reason: str) -> str:
        """Report that a chunk is left as the store has it; return its id."""
        self._kept.add(key)
        self._report.conflict(memory.where, reason)
        return memory.chunk.id

    def _recognise(self, memory: ImportedChunk, key: tuple[str, str], twin: Twin) -> str:
        """Leave a memory that the store has under another id as it is there, unless only the source was edited."""
        chunk, stored = memory.chunk, twin.chunk
        self._twin_ids[key] = chunk.id = stored.id
        self._target.renamed.setdefault(key[0], {})[key[1]] = stored.id
        self._report.renamed(key[1], stored.id)
        if content_hash(chunk.content) == twin.said:
            self._report.known += 1
            return stored.id
        if not self._is_above_limit(stored) and (
            self._options.replace or stored.metadata.content_hash == twin.said
        ):
            made = copied(stored)
            made.content, made.tokens, made.type, made.tags = (
                chunk.content, chunk.tokens, chunk.type, chunk.tags
            )  # fmt: skip
            made.metadata.content_hash = content_hash(made.content)
            self._limit_trust(made, stored)
            memory.chunk = made
            self._twins.note(key, chunk, stored.id)
            return self._write(memory, over=stored)
        self._report.conflict(
            memory.where, f"{stored.id}: changed in the store and in the source; kept the store's"
        )
        return stored.id

    def _is_edited(self, stored: Chunk, chunk: Chunk) -> bool:
        """Return whether a stored chunk had the text of the source, and was then changed, but not by an import."""
        if stored.revision == 1:
            return False  # never changed; reading the log takes long
        namespace, backend = stored.namespace, self._store.backend
        read = partial(backend.read_events, namespace=namespace, since=None, op=None)
        read_at, changes = self._text_changes.get(namespace, ("", {}))
        if backend.is_far:
            changes = _text_changes(read(chunk_id=stored.id))
        elif not read_at or stored.metadata.modified_at >= read_at:
            # A folder's log is read whole for one chunk, too, so once for all that were not changed since.
            changes = _text_changes(read(chunk_id=None))
            self._text_changes[namespace] = format_time(self._store.clock()), changes
        former, last = changes.get(stored.id, (set(), "import"))
        return last != "import" and content_hash(chunk.content) in former

    def _is_undone(self, chunk: Chunk) -> bool:
        """Return whether a chunk is in the archive because its import was undone, not because somebody deleted it."""
        namespace = chunk.namespace
        if namespace not in self._undone:
            imported, undone = set[str](), set[str]()
            for event in NamespaceReader(self._store, namespace).events():
                op, chunk_id = event.get("op"), str(event.get("chunk_id"))
                if op == "import" and IMPORTED not in event:
                    imported.add(chunk_id)
                elif op == "delete" and "undoes" in event and chunk_id in imported:
                    undone.add(chunk_id)
                elif op in ("delete", "restore"):
                    undone.discard(chunk_id)
            self._undone[namespace] = undone
        return chunk.id in self._undone[namespace]

    def _stored(self, chunk: Chunk) -> tuple[Chunk, bool] | None:
        row = self._store.backend.find(chunk.namespace, chunk.id)
        stored = self._store.backend.read(row) if row else None
        return None if row is None or stored is None else (stored, row.status == _ARCHIVED)

    def _is_another_chunk(self, stored: Chunk, memory: ImportedChunk) -> bool:
        chunk = memory.chunk
        if memory.derived:
            return False
        return (
            stored.metadata.created_at != chunk.metadata.created_at
            and stored.metadata.content_hash != chunk.metadata.content_hash
        )

    def _screened(self, chunk: Chunk) -> Chunk:
        screened, found = screened_chunk(chunk, self._store.config.secrets, self._options.secrets)
        self._report.found(found)
        return screened

    def _write(self, memory: ImportedChunk, *, new: bool = False, over: Chunk | None = None) -> str:
        chunk = memory.chunk
        if over is not None:
            chunk = _as_next_revision(over, chunk, format_time(self._store.clock()), merge=memory.derived)
        if not self._options.dry_run:
            self._store.adopt(chunk, archived=memory.archived, secrets=self._options.secrets)
            self.namespaces.add(chunk.namespace)
            if not memory.archived:
                self._note_replacements(chunk, memory.where)
        elif chunk.id in self._target.planned:
            # The id is repeated in the source: the outcome depends on the first chunk.
            self._report.known += 1
            return chunk.id
        else:
            self._target.planned[chunk.id] = chunk.revision
        if new:
            if self._options.dry_run and not memory.archived:
                self._report.sample(memory.where, chunk.content)
            self._report.created += 1
            self._report.tokens += chunk.tokens
        else:
            self._report.updated += 1
        self._report.chunks(chunk.namespace, 1, [chunk.id])
        return chunk.id


def _text_changes(events: Iterable[dict[str, Any]]) -> dict[str, tuple[set[str], str]]:
    """Return the hashes of the former texts of each chunk whose text was changed, and the last such operation."""
    found: dict[str, tuple[set[str], str]] = {}
    for event in events:
        before = event.get("before")
        if before is not None and before != event.get("after") and IMPORTED not in event:
            former, _ = found.get(str(event.get("chunk_id")), (set(), ""))
            found[str(event.get("chunk_id"))] = former | {str(before)}, str(event["op"])
    return found


def _replacements(chunk: Chunk) -> list[tuple[tuple[str, str, str], bool]]:
    """Return the replacements that a chunk names (namespace, newer, older), each with whether it is the newer one."""
    found = [
        ((chunk.namespace, chunk.id, link.target_id), True) for link in chunk.links if link.type == SUPERSEDES
    ]
    by = chunk.metadata.superseded_by
    return found if by is None else [*found, ((chunk.namespace, by, chunk.id), False)]


def _id_of_mirror(chunk: Chunk, namespace: str) -> str | None:
    """Return the id that a chunk has in a namespace as the mirror of a tiered memory; None if it seems to be none."""
    file, entry = (chunk.metadata.provenance.get(name) for name in ("file", "entry"))
    if is_mirror(chunk.id) and isinstance(file, str) and (entry is None or isinstance(entry, str)):
        return mirror_id(namespace, file, entry)
    return None


def id_if_taken(chunk: Chunk) -> str:
    """Return the id that a chunk gets in its namespace where its own belongs to another one.

    A mirror gets the only one that it can have there, which is its own if a memory at the same place has it.
    """
    mirrored = _id_of_mirror(chunk, chunk.namespace)
    if mirrored is not None:
        return mirrored
    return mapped_id(chunk.id, f"{chunk.namespace}\0{chunk.metadata.created_at}")


def _ended_since(stored: Chunk, chunk: Chunk) -> bool:
    """Return whether the source now has an end of validity for the same text, and the store has none."""
    before, now = stored.metadata, chunk.metadata
    return now.valid_to is not None and before.valid_to is None and before.superseded_by is None


def _as_next_revision(stored: Chunk, chunk: Chunk, now: str, *, merge: bool) -> Chunk:
    revised = copied(chunk)
    revised.revision = stored.revision + 1
    revised.metadata.modified_at = max(now, stored.metadata.modified_at)
    revised.metadata.access_count = max(stored.metadata.access_count, chunk.metadata.access_count)
    revised.metadata.accessed_at = max(stored.metadata.accessed_at, chunk.metadata.accessed_at)
    if merge:
        revised.metadata.created_at = stored.metadata.created_at
        named = {(link.target_id, link.type) for link in revised.links}
        revised.links += [link for link in stored.links if (link.target_id, link.type) not in named]
    return revised


def _state(chunk: Chunk) -> dict[str, Any]:
    """Return the chunk as a dict, without number and time of its reads."""
    state = chunk.to_dict()
    state["metadata"] = {
        name: value
        for name, value in state["metadata"].items()
        if name not in ("access_count", "accessed_at")
    }
    return state
