"""Records the changes of a transaction so that it can be undone: chunks in the audit log, files in a change record.

Every event of the audit log about a change has the id of its transaction (``change``). Chunks are restored from
their former versions and the archive. A transaction that changes other files of the brain also writes a change
record with their former and new contents, in the same transaction (docs/spec/store-layout.md, Undo).
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, Self

import msgspec

from rlm_mem.chunk import DEFAULT_NAMESPACE, Chunk, content_hash, encode_chunk
from rlm_mem.errors import StorageError

if TYPE_CHECKING:
    from rlm_mem.store.core.records import ChunkRow

TRANSITIONS = "archive/transitions"
"""Folder of the records of tier changes, which are kept until the archive is emptied."""
UNDO = "archive/undo"
"""Folder of the records of the latest other file changes."""
MAX_OFF = timedelta(hours=2)
"""A clock that differs by more is used unchanged: its reference may itself be wrong by years."""


def clock_fault(off: timedelta, than: str) -> str:
    """Describe a clock that is off by ``off``; empty if that is little."""
    if abs(off) <= MAX_OFF:
        return ""
    hours = round(abs(off) / timedelta(hours=1))
    how_much = f"{hours} hours" if hours < 48 else f"{hours // 24:,} days"
    return (
        f"the clock of this machine is {how_much} {'behind' if off > timedelta() else 'ahead of'} {than}: what is "
        "remembered now is dated by it, and may look older or newer than what it replaces"
    )


class Edit(msgspec.Struct, kw_only=True):
    """Former and new content of one file, or of one block of it; None: it did not, or does not, exist.

    Attributes:
        after_block: the block before this block (None: it is the first), so that it can be restored to its
            position.
        glue: line ending that was added to the text before it.
        base64: whether the contents are base64, since the file is not UTF-8.
    """

    file: str
    before: str | None
    after: str | None
    block: str | None = None
    after_block: str | None = None
    glue: str = ""
    new_file: bool = False
    base64: bool = False

    @classmethod
    def of_file(cls, file: str, before: bytes | None, after: bytes | None) -> Edit:
        """Return the edit of a whole file."""
        try:
            return cls(
                file=file,
                before=None if before is None else before.decode("utf-8"),
                after=None if after is None else after.decode("utf-8"),
            )
        except UnicodeDecodeError:
            texts = [
                None if data is None else binascii.b2a_base64(data, newline=False).decode()
                for data in (before, after)
            ]
            return cls(file=file, before=texts[0], after=texts[1], base64=True)

    def reversed(self) -> Edit:
        """Return the edit that undoes this one."""
        return msgspec.structs.replace(self, before=self.after, after=self.before)

    def data(self, text: str | None) -> bytes | None:
        """Return the bytes of ``before`` or ``after``."""
        if text is None:
            return None
        try:
            return binascii.a2b_base64(text) if self.base64 else text.encode("utf-8")
        except ValueError as error:
            raise StorageError(f"the record of a change of {self.file} cannot be read: {error}") from error


class ChangeRecord(msgspec.Struct, kw_only=True):
    """One change of brain files with its reason.

    Attributes:
        entry: the changed item in readable form: a file, or the key of a tiered memory.
        keep: whether it is a change of tier, whose record is kept.
    """

    id: str
    at: str
    op: str
    reason: str
    entry: str
    edits: list[Edit]
    actor: str | None = None
    keep: bool = False
    details: dict[str, Any] = {}

    @classmethod
    def decoded(cls, data: bytes, what: str) -> Self:
        """Decode a record; raises StorageError, whose message begins with ``what``."""
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            hint = "look at its file, which describes the change"
            raise StorageError(f"{what} cannot be read: {error}", hint=hint) from error

    @property
    def file(self) -> str:
        """The name of the record's file."""
        return f"{TRANSITIONS if self.keep else UNDO}/{self.id}.json"


class Erasure(Protocol):
    """Chunks that a transaction deletes permanently; every backend has them recorded, and carried out."""

    def delete(self, chunk_id: str) -> bool:
        """Delete a chunk in the transaction; False if there is none."""

    def record(self) -> None:
        """Record, within the transaction as its last step, what is to be erased once it has been committed."""

    def carry_out(self) -> None:
        """Erase it everywhere, after the commit."""


class ChangeNotes(msgspec.Struct):
    """Notes about a transaction while it is open.

    Attributes:
        id: id of the transaction; ids sort by time.
        undoes: id of the change that it undoes.
        former: former contents of the files that it changes, by namespace and name; None: not recorded.
        record: the change record, if the caller provides it.
        continues: whether earlier transactions of the same id belong to the same change.
        erasures: what the transaction erases, by namespace.
    """

    id: str
    undoes: str | None = None
    former: dict[tuple[str, str], bytes | None] | None = None
    record: ChangeRecord | None = None
    continues: bool = False
    erasures: dict[str, Erasure] = {}

    def record_erasures(self) -> None:
        """Record what the transaction erases, so that a crash after its commit does not skip it."""
        for one in self.erasures.values():
            one.record()

    def carry_out_erasures(self) -> None:
        """Erase it, after the commit."""
        for one in self.erasures.values():
            one.carry_out()


_COUNTED = {"access_count": 0, "accessed_at": "", "modified_at": "", "content_hash": ""}


def state_of(chunk: Chunk) -> str:
    """Return a digest of what changes revise in a chunk, but its content: an edit of its file by hand shows in it."""
    metadata = msgspec.structs.replace(chunk.metadata, **_COUNTED)
    links = sorted(chunk.links, key=lambda link: (link.type, link.target_id))  # their order says nothing
    rest = msgspec.structs.replace(
        chunk, content="", tokens=0, revision=1, namespace=DEFAULT_NAMESPACE, metadata=metadata, links=links
    )
    return content_hash(encode_chunk(rest).decode())[:16]


def is_logged(chunk: Chunk, event: Mapping[str, Any]) -> bool:
    """Return whether a chunk is in the state that an event of the audit log records; earlier versions logged none."""
    return content_hash(chunk.content) == event["after"] and event.get("state") in (None, state_of(chunk))


def name_namespaces(events: Sequence[dict[str, Any]], change_id: str) -> None:
    """If a transaction changed several namespaces, name all of them in each audit event of its change."""
    own = [event for event in events if event.get("change") == change_id]  # not those of an imported history
    names = sorted({str(event["ns"]) for event in own})
    if len(names) > 1:
        for event in own:
            event["namespaces"] = names


class Rewriting(Protocol):
    """What becomes of the lines of the audit log."""

    def concerns(self, lines: bytes) -> bool:
        """Return whether any of these lines, together, may have to be replaced; others need not be parsed."""

    def event(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Return an event as it is to be; None: it is unchanged."""

    def stray_line(self, line: bytes) -> bytes | None:
        """Return a line of no known namespace as it is to be, empty to remove it; None: it is unchanged."""


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


class WriteTransaction(Protocol):
    """Writes that become visible together or not at all; see ``Backend.transaction`` and ``BrainFiles.transaction``."""

    events: list[dict[str, Any]]
    """Events for the audit log, written once the transaction has been committed."""
    change: ChangeNotes
    """The id of the change, and the notes for its record."""

    def put(self, chunk: Chunk, *, status: int = 0, keep_version: bool = True) -> None:
        """Write a new or changed chunk; the former version is kept unless ``keep_version`` is False."""

    def expect(self, chunks: Sequence[Chunk]) -> set[str]:
        """Announce new chunks that are about to be put, so that the queries for all of them are sent together.

        Returns:
            Those of their conversations that have no chunk yet.
        """

    def keep(self, chunk: Chunk) -> None:
        """Store a former version of a chunk unchanged, replacing one of the same revision."""

    def move(self, chunk: Chunk, row: ChunkRow, status: int) -> None:
        """Archive or restore a chunk unchanged."""

    def erase(self, row: ChunkRow) -> None:
        """Delete a chunk permanently, including its versions."""
