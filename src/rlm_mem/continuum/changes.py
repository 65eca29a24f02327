"""Changes of tiered memories: each is one transaction of files, mirrors, journal and change record, and can be undone.

Changes between tiers keep their record (``archive/transitions``), all others for a while (``archive/undo``). Earlier
versions wrote a change to ``archive/pending`` before they carried it out; a change found there is finished.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rlm_mem.arguments import check_words
from rlm_mem.chunk import new_change_id
from rlm_mem.continuum import places
from rlm_mem.continuum.files import MemoryFiles, TieredMemory, free_name
from rlm_mem.continuum.frontmatter import split_blocks
from rlm_mem.continuum.mirror import Mirror
from rlm_mem.continuum.schema import stamp
from rlm_mem.errors import ConflictError, InvalidMemory, NotFoundError, StorageError, StoreReadOnly
from rlm_mem.store.core.brain_files import JOURNAL, mirror_id, own_lines, parse_event
from rlm_mem.store.core.changes import TRANSITIONS, UNDO, ChangeRecord, Edit
from rlm_mem.text.patterns import late

if TYPE_CHECKING:
    from rlm_mem.store.core.changes import WriteTransaction
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.files import Signature

_logger = logging.getLogger("rlm_mem.continuum")

_PENDING = "archive/pending"
_TIERED = ("workspace/", "system/", "memory/")
_UNSAFE = late(r"[^\w-]")
_TAIL = 65_536  # bytes at the end of the journal that contain its last lines
_PREAMBLES = {
    places.MEMORY_LOG: "# Memory log\n\n",
    places.LEARNINGS: "# Project learnings\n\n",
    places.LIBRARY: "# Smart library\n\n",
}


class Change(ChangeRecord, kw_only=True):
    """A change record of tiered memories.

    Attributes:
        derived: mirror of a new memory → the chunks it was made from.
        superseded: chunk → the mirror that took its place.
        marks: plain chunk → metadata fields to set. ``unmarks``: the fields that undoing sets.
        archived: plain chunks to archive. ``restored``: plain chunks to restore. Undoing swaps the two.
    """

    tier_from: str | None = None
    tier_to: str | None = None
    derived: dict[str, list[str]] = msgspec.field(default_factory=dict)
    superseded: dict[str, str] = msgspec.field(default_factory=dict)
    retired: list[str] = msgspec.field(default_factory=list)
    marks: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    unmarks: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    archived: list[str] = msgspec.field(default_factory=list)
    restored: list[str] = msgspec.field(default_factory=list)


_Built = TypeVar("_Built", bound=Change | None)


class Changes:
    """Applies, finishes and undoes changes of one namespace."""

    def __init__(self, store: ChunkStore, memories: MemoryFiles, mirror: Mirror) -> None:
        self._store = store
        self._files = memories
        self.mirror = mirror
        self._stored = memories.stored
        self._journal_seen: tuple[Signature | None, int] = None, 0

    # --- building ----------------------------------------------------------------------------------------------------

    def draft(self, op: str, entry: str, reason: str, edits: list[Edit], **more: Any) -> Change:
        """A change that is not applied yet, with its id, time and actor."""
        now = self._store.clock()
        return Change(
            id=new_change_id(now), at=stamp(now), op=op, reason=reason,
            entry=entry, edits=edits,
            actor=self._store.actor, **more,
        )  # fmt: skip

    def replaced(self, entry: TieredMemory, text: str) -> Edit:
        """The edit that replaces the text of a memory."""
        return Edit(file=entry.file, block=entry.block, before=entry.text, after=text)

    def removed(self, entry: TieredMemory) -> Edit:
        """The edit that removes a memory from its file."""
        if entry.block is None:
            return Edit(file=entry.file, before=entry.text, after=None)
        return Edit(
            file=entry.file, block=entry.block, before=entry.text, after=None,
            after_block=self._block_before(entry.file, entry.block),
        )  # fmt: skip

    def added(self, file: str, text: str, block: str | None = None) -> Edit:
        """The edit that adds a memory: a new file, or a block at the end of one."""
        present = self._files.read(file)
        if block is None:
            if present is not None:
                raise ConflictError(f"{file} exists already", hint="choose another name")
            return Edit(file=file, before=None, after=text)
        whole = _preamble(file) if present is None else present
        blocks = self._blocks(file, whole)
        if block in blocks:
            raise ConflictError(f"{file} has a memory {block} already", hint="choose another id")
        glue = "" if whole.endswith("\n\n") or not whole else "\n" if whole.endswith("\n") else "\n\n"
        return Edit(
            file=file, block=block, before=None, after=text, after_block=next(reversed(blocks), None),
            glue=glue, new_file=present is None,
        )  # fmt: skip

    def archived(self, entry: TieredMemory) -> list[Edit]:
        """The edits that move a memory to the archive unchanged."""
        target = free_name(self._stored, archive_name(entry.file, entry.block))
        return [Edit(file=target, before=None, after=entry.text), self.removed(entry)]

    def memory_of(self, chunk_id: str) -> TieredMemory | None:
        """The memory that a chunk mirrors; None for another chunk, and if the memory is gone."""
        key = self.mirror.key_of(chunk_id)
        return None if key is None else self._files.get(key)

    # --- applying ----------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self, *, undoable: bool = False) -> Iterator[WriteTransaction]:
        """Finish interrupted changes, then open a transaction; ``undoable``: changes of files are recorded for undo."""
        if self._store.backend.read_only:
            raise StoreReadOnly(f"the memory {self._store.backend.location} was opened read-only")
        if self._store.backend.in_transaction:
            raise ConflictError(
                "tiered memories cannot be changed inside a batch of chunk writes",
                hint="do it before or after the batch",
            )
        self.recover()
        begin = (
            self._stored.transaction() if undoable else self._store.backend.transaction(self._store.namespace)
        )
        with begin as transaction:
            yield transaction

    def apply(self, build: Callable[[], _Built], *, undoes: str | None = None) -> _Built:
        """Build a change inside a transaction and apply it; ``build`` returns None if there is nothing to do."""
        with self.locked(undoable=True) as transaction:
            notes = transaction.change
            change = build()
            if change is None:
                return change
            for edit in change.edits:
                if edit.after is not None and _is_memory(edit.file):  # raises InvalidMemory
                    self._files.parse(edit.file, None if edit.block is None else "", edit.after)
            for event in transaction.events:  # of chunks that were changed to build it
                if event.get("change") == notes.id:
                    event["change"] = change.id
            notes.id, notes.undoes, notes.record = change.id, undoes, change
            self._perform(change)
            self.log(change)
        return change

    def recover(self) -> int:
        """Finish the changes that an earlier version left pending; returns their number."""
        if not self.waiting():
            return 0
        with self._store.batch():
            records = self.waiting()
            for record in records:
                change = self.load_record(record)
                self._perform(change, repeated=True)
                self.log(change)
                if change.keep:
                    self._stored.rename(record, change.file)
                else:
                    self._stored.remove(record)
            self._stored.tidy()
        return len(records)

    def waiting(self) -> list[str]:
        """Files of the changes that an earlier version began but did not finish."""
        return [name for name in self._stored.names(_PENDING) if name.endswith(".json")]

    def _perform(self, change: Change, *, repeated: bool = False) -> None:
        for edit in [edit for edit in change.edits if edit.after is not None]:
            self._edit(edit, repeated)
            if self._current_content(edit) != edit.data(edit.after):
                raise StorageError(f"{edit.file} does not have the content that was written")
        for edit in [edit for edit in change.edits if edit.after is None]:
            self._edit(edit, repeated)
        self._update_mirrors(change)

    def _current_content(self, edit: Edit) -> bytes | None:
        """The present content of the file or block that an edit changes."""
        if edit.block is None:
            return self._stored.read(edit.file)
        block = self._blocks(edit.file, self._files.read(edit.file) or "").get(edit.block)
        return None if block is None else block.encode("utf-8")

    def _edit(self, edit: Edit, repeated: bool) -> None:
        present, after = self._current_content(edit), edit.data(edit.after)
        if present == after:
            return
        if present != edit.data(edit.before) and present is not None:
            if not repeated:
                raise ConflictError(f"{edit.file} was changed meanwhile", hint="repeat the command")
            self._archive_conflict(edit, present)
        if edit.block is not None:
            text = self._files.read(edit.file)
            changed = self._with_block(text, edit)
            after = None if changed is None else changed.encode("utf-8")
        if after is None:
            self._stored.remove(edit.file)
        else:
            self._stored.write(edit.file, after)

    def _archive_conflict(self, edit: Edit, present: bytes) -> None:
        """Archive an edit made by hand after the interrupted change, before the change overwrites it."""
        name = edit.file.replace("/", "_")
        place = f"archive/conflicts/{secrets.token_hex(4)}-{name}"
        _logger.warning("%s was edited while a change was pending; the edit is kept as %s", edit.file, place)
        self._stored.write(place, present)

    def _update_mirrors(self, change: Change) -> None:
        superseded_ids = set(change.superseded)
        for edit in change.edits:
            if not _is_memory(edit.file) or edit.file.startswith(places.STATE):
                continue
            if edit.after is not None:
                entry = self._files.parse(edit.file, None if edit.block is None else "", edit.after)
                self.mirror.put(entry, change.derived.get(entry.chunk_id, ()))
            else:
                chunk_id = mirror_id(self._store.namespace, edit.file, edit.block)
                if chunk_id not in superseded_ids:
                    self._store.delete_chunk(chunk_id)
        for chunk_id, by in change.superseded.items():
            # A merged memory keeps its mirror, which search ranks below the mirror of its successor.
            self._set_metadata(chunk_id, {"superseded_by": by, "valid_to": change.at})
        for chunk_id in change.retired:
            self._store.delete_chunk(chunk_id)
        for chunk_id, fields in change.marks.items():
            self._set_metadata(chunk_id, fields)
        for chunk_id in change.archived:
            self._store.delete_chunk(chunk_id)
        for chunk_id in change.restored:
            self._store.restore_chunk(chunk_id)

    def _set_metadata(self, chunk_id: str, fields: dict[str, Any]) -> None:
        """Set fields of a chunk's metadata (None removes one)."""
        if self._store.exists(chunk_id):
            self._store.update_chunk(chunk_id, metadata=fields)

    # --- the journal -------------------------------------------------------------------------------------------------

    def log(self, change: Change) -> None:
        """Append a change to the journal, in the transaction that makes it."""
        line = {
            "id": change.id, "ts": change.at, "ns": self._store.namespace, "actor": change.actor, "op": change.op,
            "entry": change.entry, "from": change.tier_from, "to": change.tier_to, "reason": change.reason,
            **({"details": change.details} if change.details else {}),
        }  # fmt: skip
        # A line that was written before an interruption is near the end.
        tail = self._stored.read_from(JOURNAL, -_TAIL)
        if f'"id":"{change.id}"'.encode() in tail:
            return
        # The last line may have been cut off by a power failure.
        start = b"" if not tail or tail.endswith(b"\n") else b"\n"
        self._stored.append(JOURNAL, start + msgspec.json.encode(line) + b"\n")

    def journal_state(self) -> int:
        """A value that changes with every entry of this namespace in the journal, for watchers."""
        now = self._stored.signature(JOURNAL)
        if now != self._journal_seen[0]:
            lines = own_lines(self._store.namespace, self._stored.read(JOURNAL) or b"")
            self._journal_seen = now, hash(lines)
        return self._journal_seen[1]

    def journal(self, *, entry: str | None = None, op: str | None = None) -> Iterator[dict[str, Any]]:
        """Every change of this namespace in the journal, with its reason, oldest first."""
        for line in (self._stored.read(JOURNAL) or b"").splitlines():
            step = parse_event(line)
            if step is None or not isinstance(step.get("details", {}), dict):
                continue
            if step.get("ns") != self._store.namespace:
                continue
            if entry not in (None, step.get("entry")) or op not in (None, step.get("op")):
                continue
            yield step

    # --- undoing -----------------------------------------------------------------------------------------------------

    def transition(self, transition_id: str) -> Change:
        """The change record of a transition; raises NotFoundError."""
        found = self._find_record(check_words(transition_id, "transition_id")[:200], TRANSITIONS)
        if found is None:
            raise NotFoundError(
                f"there is no transition {transition_id!r:.60}", hint="rlm-mem tier log lists them"
            )
        return found

    def _find_record(self, change_id: str, *folders: str) -> Change | None:
        for folder in folders:
            name = f"{folder}/{change_id}.json"
            if change_id.replace("-", "").isalnum() and self._stored.exists(name):
                return self.load_record(name)
        return None

    def transitions(self) -> list[str]:
        """Ids of the transitions that can be undone, oldest first."""
        names = self._stored.names(TRANSITIONS)
        return [PurePosixPath(name).stem for name in names if name.endswith(".json")]

    def forget(self, transition_id: str) -> None:
        """Delete the record of a transition, which then cannot be undone."""
        self._stored.remove(f"{TRANSITIONS}/{transition_id}.json")

    def undo(self, former: Change, reason: str) -> Change:
        """Restore every file of a change byte for byte, and the mirrors with them.

        Raises:
            ConflictError: its result was changed or moved since.
        """
        redone = None
        if former.op == "undo":
            # Mirrors are derived from files, but only the record contains which mirror supersedes which.
            redone = self._find_record(str(former.details.get("undoes")), TRANSITIONS, UNDO)

        def build() -> Change:
            for edit in former.edits:
                if self._current_content(edit) != edit.data(edit.after):
                    raise ConflictError(
                        f"{edit.file}{'#' + edit.block if edit.block else ''} was changed since this change",
                        hint="undo the later changes first, and revert edits made by hand",
                    )
            return self.draft(
                "undo", former.entry, reason, [edit.reversed() for edit in reversed(former.edits)],
                tier_from=former.tier_to, tier_to=former.tier_from, keep=former.keep, marks=former.unmarks,
                unmarks=former.marks, archived=former.restored, restored=former.archived,
                details={"undoes": former.id},
                **({} if redone is None else {
                    "derived": redone.derived, "superseded": redone.superseded, "retired": redone.retired,
                }),
            )  # fmt: skip

        return self.apply(build, undoes=former.id)

    def load_record(self, name: str) -> Change:
        """The whole change in a file of a record; raises StorageError if it cannot be read."""
        return Change.decoded(self._stored.read(name) or b"", name)

    # --- blocks ------------------------------------------------------------------------------------------------------

    def _blocks(self, file: str, text: str) -> dict[str, str]:
        """The blocks of a file by id, in order; invalid blocks get a placeholder id."""
        found: dict[str, str] = {}
        for number, block in enumerate(split_blocks(text)):
            try:
                name = self._files.parse(file, "", block).block or ""
            except InvalidMemory:
                name = f"\0{number}"
            found.setdefault(name, block)
        return found

    def _with_block(self, text: str | None, edit: Edit) -> str | None:
        """Apply one edit to a file's text; None if only the preamble of a new file would remain."""
        whole = text if text is not None else _preamble(edit.file)
        present = self._blocks(edit.file, whole)
        name = edit.block or ""
        if name in present:
            at = whole.index(present[name])
            head, tail = whole[:at], whole[at + len(present[name]) :]
            if edit.after is not None:
                return head + edit.after + tail
            if edit.glue and head.endswith(edit.glue):
                head = head[: -len(edit.glue)]
            rest = head + tail
            return None if edit.new_file and len(present) == 1 else rest
        if edit.after is None:
            return whole if text is not None else None
        if edit.after_block is not None and edit.after_block in present:
            before = present[edit.after_block]
            at = whole.index(before) + len(before)
        elif present and edit.before is None and not edit.glue:
            at = whole.index(next(iter(present.values())))
        else:
            at = len(whole)
        return whole[:at] + edit.glue + edit.after + whole[at:]

    def _block_before(self, file: str, block: str) -> str | None:
        names = list(self._blocks(file, self._files.read(file) or ""))
        return names[names.index(block) - 1] if block in names and names.index(block) else None


def _preamble(file: str) -> str:
    """The text before the first memory of a new file."""
    return _PREAMBLES.get(file, f"# {PurePosixPath(file).stem}\n\n")


def _is_memory(file: str) -> bool:
    """Whether a file contains tiered memories, which are validated and mirrored."""
    return file.startswith(_TIERED) and not file.startswith("system/review/")


def archive_name(file: str, block: str | None = None) -> str:
    """The path of a memory in the archive; it may already be in use."""
    base, _, suffix = file.rpartition(".")
    # An id may be any text, also a path.
    return f"archive/{file}" if block is None else f"archive/{base}/{_UNSAFE.sub('_', block)[:60]}.{suffix}"
