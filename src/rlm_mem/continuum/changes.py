"""Changes of memories: each a journalled step that, once begun, is always finished, and can be undone.

A change is first written whole into ``archive/pending`` (what each file held, what it will hold). Only
then are files and mirrors touched, new ones before old ones are taken away. Whoever comes next finishes what a killed
process left, so every change happens once or not at all. Transitions between tiers keep their record: undoing one
restores the former bytes.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.continuum import places
from rlm_mem.continuum.files import MemoryFiles, TieredMemory
from rlm_mem.continuum.frontmatter import split_blocks
from rlm_mem.continuum.mirror import Mirror
from rlm_mem.continuum.schema import stamp
from rlm_mem.errors import ConflictError, InvalidMemory, NotFoundError, StorageError, StoreReadOnly
from rlm_mem.store.core.brain_files import JOURNAL

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.files import Signature

__all__ = ["Change", "Changes", "Edit"]

_logger = logging.getLogger("rlm_mem.continuum")

_PENDING = "archive/pending"
_TRANSITIONS = "archive/transitions"
_TAIL = 65_536  # bytes of the journal within which its last lines stand
_PREAMBLES = {
    places.MEMORY_LOG: "# Memory log\n\n",
    places.LEARNINGS: "# Project learnings\n\n",
    places.LIBRARY: "# Smart library\n\n",
}


class Edit(msgspec.Struct, kw_only=True):
    """What one file, or one block of it, held and will hold; None: nothing.

    Attributes:
        after_block: of a block, the one before it (None: the first), so that it can be put back in its place.
        glue: line end that had to be added to the text before it.
    """

    file: str
    before: str | None
    after: str | None
    block: str | None = None
    after_block: str | None = None
    glue: str = ""
    new_file: bool = False


class Change(msgspec.Struct, kw_only=True):
    """One step with its reason.

    Attributes:
        keep: a transition: its record stays and it can be undone.
        derived: mirror of a new memory → the chunks it was made from.
        superseded: chunk → the mirror that took its place.
        marks: plain chunk → metadata fields to set. ``unmarks``: what undoing sets.
    """

    id: str
    at: str
    op: str
    reason: str
    entry: str
    edits: list[Edit]
    actor: str | None = None
    tier_from: str | None = None
    tier_to: str | None = None
    keep: bool = False
    derived: dict[str, list[str]] = {}
    superseded: dict[str, str] = {}
    retired: list[str] = []
    marks: dict[str, dict[str, Any]] = {}
    unmarks: dict[str, dict[str, Any]] = {}
    details: dict[str, Any] = {}


class Changes:
    """Applies, finishes and undoes changes of one namespace."""

    def __init__(self, store: ChunkStore, memories: MemoryFiles, mirror: Mirror) -> None:
        self._store = store
        self._files = memories
        self._mirror = mirror
        self._stored = memories.stored

    # --- making ------------------------------------------------------------------------------------------------------

    def draft(self, op: str, entry: str, reason: str, edits: list[Edit], **more: Any) -> Change:
        """A change with its id and time."""
        now = self._store.clock()
        return Change(
            id=f"{now:%Y%m%d%H%M%S%f}-{time.time_ns():016x}", at=stamp(now), op=op, reason=reason,
            entry=entry, edits=edits,
            actor=self._store.actor, **more,
        )  # fmt: skip

    def replaced(self, entry: TieredMemory, text: str) -> Edit:
        """The edit that gives a memory another text."""
        return Edit(file=entry.file, block=entry.block, before=entry.text, after=text)

    def removed(self, entry: TieredMemory) -> Edit:
        """The edit that takes a memory away from its file."""
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
                raise ConflictError(f"{file} is there already")
            return Edit(file=file, before=None, after=text)
        preamble = _PREAMBLES.get(file, f"# {PurePosixPath(file).stem}\n\n") if present is None else present
        blocks = self._blocks(file, preamble)
        if block in blocks:
            raise ConflictError(f"{file} holds a memory {block} already")
        glue = (
            "" if preamble.endswith("\n\n") or not preamble else "\n" if preamble.endswith("\n") else "\n\n"
        )
        return Edit(
            file=file, block=block, before=None, after=text, after_block=next(reversed(blocks), None),
            glue=glue, new_file=present is None,
        )  # fmt: skip

    def archived(self, entry: TieredMemory) -> list[Edit]:
        """The edits that move a memory into the archive, as it is."""
        target = archive_name(entry.file, entry.block)
        base, _, suffix = target.rpartition(".")
        number = 2
        while self._files.exists(target):
            target, number = f"{base}.{number}.{suffix}", number + 1
        return [Edit(file=target, before=None, after=entry.text), self.removed(entry)]

    # --- applying ----------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store's write lock with nothing pending: what is read inside may be built on."""
        if self._store.backend.read_only:
            raise StoreReadOnly("the memory was opened read-only")
        if self._store.backend.in_transaction:
            raise StorageError(
                "tiered memories cannot be changed inside a batch of chunk writes",
                hint="do it before or after the batch",
            )
        while True:
            self.recover()
            with self._store.batch():
                if not self._waiting():
                    yield
                    return

    def apply(self, build: Callable[[], Change | None]) -> Change | None:
        """Build a change on the present files and carry it out; ``build`` may find that there is nothing to do."""
        with self.locked():
            change = build()
            if change is None:
                return None
            self._validate(change)
            record = f"{_PENDING}/{change.id}.json"
            self._stored.write(record, msgspec.json.format(msgspec.json.encode(change), indent=1))
            self._perform(change)
        with self._store.batch():
            self._finish(change, record)
        return change

    def recover(self) -> int:
        """Finish what killed processes began; returns how many changes that were."""
        waiting = self._waiting()
        if not waiting:
            return 0
        with self._store.batch():
            changes = []
            for record in self._waiting():
                change = self._record(record)
                self._perform(change, repeated=True)
                changes.append((change, record))
        with self._store.batch():
            for change, record in changes:
                self._finish(change, record)
            self._stored.tidy()
        return len(changes)

    def _waiting(self) -> list[str]:
        return [name for name in self._stored.names(_PENDING) if name.endswith(".json")]

    def _validate(self, change: Change) -> None:
        """Nothing is begun that would leave an invalid memory."""
        for edit in change.edits:
            if edit.after is not None and not edit.file.startswith("archive/"):
                if edit.file.startswith("system/review/"):
                    continue
                self._files.parse(edit.file, None if edit.block is None else "", edit.after)

    def _perform(self, change: Change, *, repeated: bool = False) -> None:
        for edit in [edit for edit in change.edits if edit.after is not None]:
            self._edit(edit, repeated)
            self._read_back(edit)
        for edit in [edit for edit in change.edits if edit.after is None]:
            self._edit(edit, repeated)
        self._mirrored(change)

    def _edit(self, edit: Edit, repeated: bool) -> None:
        text = self._files.read(edit.file)
        present = text if edit.block is None else self._blocks(edit.file, text or "").get(edit.block)
        if present == edit.after:
            return
        if present != edit.before and present is not None:
            if not repeated:
                raise ConflictError(f"{edit.file} was changed meanwhile", hint="repeat the command")
            self._set_aside(edit, present)
        if edit.block is None:
            if edit.after is None:
                self._files.remove(edit.file)
            else:
                self._files.write(edit.file, edit.after)
            return
        changed = _with_block(text, edit, lambda whole: self._blocks(edit.file, whole))
        if changed is None:
            self._files.remove(edit.file)
        else:
            self._files.write(edit.file, changed)

    def _set_aside(self, edit: Edit, present: str) -> None:
        """Somebody edited the file between a crash and its repair: their text is kept beside the archive."""
        name = edit.file.replace("/", "_")
        place = f"archive/conflicts/{secrets.token_hex(4)}-{name}"
        _logger.warning("%s was edited while a change was pending; the edit is kept as %s", edit.file, place)
        self._files.write(place, present)

    def _read_back(self, edit: Edit) -> None:
        text = self._files.read(edit.file)
        present = text if edit.block is None else self._blocks(edit.file, text or "").get(edit.block)
        if present != edit.after:
            raise StorageError(f"{edit.file} does not hold what was written")

    def _mirrored(self, change: Change) -> None:
        kept = set(change.superseded)
        for edit in change.edits:
            if edit.file.startswith(("archive/", "system/review/", places.STATE)):
                continue
            if edit.after is not None:
                entry = self._files.parse(edit.file, None if edit.block is None else "", edit.after)
                self._mirror.put(entry, change.derived.get(entry.chunk_id, ()))
            else:
                chunk_id = places.mirror_id(self._store.namespace, edit.file, edit.block)
                if chunk_id not in kept:
                    self._mirror.retire(chunk_id)
        for chunk_id, by in change.superseded.items():
            self._mirror.supersede(chunk_id, by, change.at)
        for chunk_id in change.retired:
            self._mirror.retire(chunk_id)
        for chunk_id, fields in change.marks.items():
            self._mirror.mark(chunk_id, fields)

    def _finish(self, change: Change, record: str) -> None:
        if not self._stored.exists(record):
            return  # somebody who came after us did
        self._log(change)
        if change.keep:
            self._stored.rename(record, f"{_TRANSITIONS}/{change.id}.json")
        else:
            self._stored.remove(record)

    # --- the journal -------------------------------------------------------------------------------------------------

    def _log(self, change: Change) -> None:
        line = {
            "id": change.id, "ts": change.at, "ns": self._store.namespace, "actor": change.actor, "op": change.op,
            "entry": change.entry, "from": change.tier_from, "to": change.tier_to, "reason": change.reason,
            **({"details": change.details} if change.details else {}),
        }  # fmt: skip
        tail = self._stored.read_from(
            JOURNAL, -_TAIL
        )  # what was last written is there, if it was written at all
        if f'"id":"{change.id}"'.encode() in tail:
            return
        start = b"" if not tail or tail.endswith(b"\n") else b"\n"  # a torn last line of a power cut
        self._stored.append(JOURNAL, start + msgspec.json.encode(line) + b"\n")

    def journal_signature(self) -> Signature | None:
        """Moves with every step: what a watcher looks at."""
        return self._stored.signature(JOURNAL)

    def journal(self, *, entry: str | None = None, op: str | None = None) -> Iterator[dict[str, Any]]:
        """Every step of this namespace with its reason, oldest first."""
        for line in (self._stored.read(JOURNAL) or b"").splitlines():
            try:
                step = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            if not isinstance(step, dict) or step.get("ns") != self._store.namespace:
                continue
            if entry not in (None, step.get("entry")) or op not in (None, step.get("op")):
                continue
            yield step

    # --- undoing -----------------------------------------------------------------------------------------------------

    def transition(self, transition_id: str) -> Change:
        """The record of a transition; raises NotFoundError."""
        name = f"{_TRANSITIONS}/{transition_id}.json"
        if not transition_id.replace("-", "").isalnum() or not self._stored.exists(name):
            raise NotFoundError(
                f"there is no transition {transition_id!r:.60}", hint="rlm-mem trace log lists them"
            )
        return self._record(name)

    def transitions(self) -> list[str]:
        """Ids of the transitions that can be undone, oldest first."""
        return [_id(name) for name in self._stored.names(_TRANSITIONS) if name.endswith(".json")]

    def waiting(self) -> list[str]:
        """Names of changes that were begun and not finished."""
        return [_id(name) for name in self._waiting()]

    def forget(self, transition_id: str) -> None:
        """Drop the record of a transition, which cannot be undone any more then."""
        self._stored.remove(f"{_TRANSITIONS}/{transition_id}.json")

    def undo(self, transition_id: str, reason: str) -> Change:
        """Put every file of a transition back as it was, byte for byte, and the mirrors with them.

        Raises:
            NotFoundError: there is no such transition. ConflictError: what it made was changed or moved since.
        """

        def build() -> Change:
            former = self.transition(transition_id)
            edits = [
                Edit(
                    file=edit.file, block=edit.block, before=edit.after, after=edit.before,
                    after_block=edit.after_block, glue=edit.glue, new_file=edit.new_file,
                )
                for edit in reversed(former.edits)
            ]  # fmt: skip
            for edit in edits:
                text = self._files.read(edit.file)
                present = text if edit.block is None else self._blocks(edit.file, text or "").get(edit.block)
                if present != edit.before:
                    raise ConflictError(
                        f"{edit.file}{'#' + edit.block if edit.block else ''} was changed since this transition",
                        hint="undo the later transitions of this memory first",
                    )
            return self.draft(
                "undo", former.entry, reason, edits, tier_from=former.tier_to, tier_to=former.tier_from,
                keep=True, marks=former.unmarks, details={"undoes": transition_id},
            )  # fmt: skip

        change = self.apply(build)
        if change is None:  # cannot be: build returns a change or raises
            raise NotFoundError(f"there is no transition {transition_id}")
        return change

    def _record(self, name: str) -> Change:
        try:
            return msgspec.json.decode(self._stored.read(name) or b"", type=Change)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
            raise StorageError(
                f"{name} cannot be read: {error}", hint="look at it: it says what was to be changed"
            ) from error

    # --- blocks ------------------------------------------------------------------------------------------------------

    def _blocks(self, file: str, text: str) -> dict[str, str]:
        """The blocks of a file by id, in order, invalid ones under a name of their own."""
        found: dict[str, str] = {}
        for number, block in enumerate(split_blocks(text)[1]):
            try:
                name = self._files.parse(file, "", block.text).block or ""
            except InvalidMemory:
                name = f"\0{number}"
            found.setdefault(name, block.text)
        return found

    def _block_before(self, file: str, block: str) -> str | None:
        names = list(self._blocks(file, self._files.read(file) or ""))
        return names[names.index(block) - 1] if block in names and names.index(block) else None


def archive_name(file: str, block: str | None = None) -> str:
    """Where a memory goes in the archive, the first of its name."""
    base, _, suffix = file.rpartition(".")
    return f"archive/{base}.{suffix}" if block is None else f"archive/{base}/{block}.{suffix}"


def _with_block(text: str | None, edit: Edit, blocks: Callable[[str], Mapping[str, str]]) -> str | None:
    """A file's text with one block put, changed or taken away; None: nothing is left that was not there before."""
    whole = text if text is not None else _PREAMBLES.get(edit.file, f"# {PurePosixPath(edit.file).stem}\n\n")
    present = blocks(whole)
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


def _id(record: str) -> str:
    return PurePosixPath(record).stem
