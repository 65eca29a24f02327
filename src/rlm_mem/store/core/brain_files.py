"""The files of a brain beside its chunks: tiered memories, trajectories, persona, import ledgers.

They are read and written through ``Backend.files(namespace)``, never by path: on a database the same files are rows.
Names are relative, with forward slashes. The folder that a name begins with (``FOLDERS``) tells what the file is, and
where it is in a brain folder (``place_of``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import quote, unquote

import msgspec

from rlm_mem.chunk import DEFAULT_NAMESPACE, check_namespace, format_time
from rlm_mem.errors import InputError, StorageError
from rlm_mem.record import FrozenRecord
from rlm_mem.store.core.changes import TRANSITIONS, UNDO, ChangeNotes, ChangeRecord, Edit, WriteTransaction
from rlm_mem.store.core.files import Signature

__all__ = [
    "FOLDERS",
    "JOURNAL",
    "LEDGER",
    "OF_BRAIN",
    "OF_STORE",
    "RECORDS",
    "BrainFiles",
    "Folder",
    "checked_name",
    "folder_of",
    "name_at",
    "namespace_in",
    "note_former",
    "own_lines",
    "owned_by",
    "parse_event",
    "place_of",
    "recording",
]

JOURNAL = "log/continuum.jsonl"
"""Every step of tiered memories; in a brain folder one file for all namespaces (see ``own_lines``)."""
LEDGER = "imports/ledger.jsonl"
"""What was imported already."""


class Folder(FrozenRecord, frozen=True):
    """What holds for the files of a folder.

    Attributes:
        owner: whose they are in a brain folder: one namespace's, the whole brain's, or those of the store inside it.
        undone: changes are recorded, and can be undone.
        in_transactions: False: what is added belongs to no transaction.
        by_hand: people work in the folder: no unfinished file may be beside the finished ones.
        portable: files are exported and imported.
    """

    owner: Literal["namespace", "brain", "store"]
    undone: bool = True
    in_transactions: bool = True
    by_hand: bool = True
    portable: bool = True


FOLDERS = {
    "workspace": Folder("namespace", undone=False),
    "system": Folder("namespace"),
    "system/folders": Folder("namespace", by_hand=False, portable=False),
    "memory/short_term": Folder("namespace"),
    "memory/long_term": Folder("namespace"),
    "personalities": Folder("brain"),
    "sliders": Folder("brain"),
    "gauges": Folder("brain"),
    "persona": Folder("brain", by_hand=False),
    "archive": Folder("store"),
    "archive/pending": Folder("store", undone=False, by_hand=False, portable=False),
    TRANSITIONS: Folder("store", undone=False, by_hand=False),
    UNDO: Folder("store", undone=False),
    "log": Folder("store", undone=False, by_hand=False),
    "trajectories": Folder("store", undone=False, in_transactions=False, by_hand=False),
    "imports": Folder("store", undone=False, by_hand=False, portable=False),
    "index": Folder("store", undone=False, in_transactions=False, by_hand=False, portable=False),
}
"""Every folder that names of files begin with; for a name, the longest counts."""


def folder_of(name: str) -> Folder:
    """The folder that a name begins with; raises InputError for a name outside of all of them."""
    above = checked_name(name)
    while above not in FOLDERS:
        above = above.rpartition("/")[0]
    return FOLDERS[above]


def owned_by(owner: str) -> tuple[str, ...]:
    """First parts of the names of files that belong to ``namespace``, ``brain`` or ``store``."""
    return tuple(dict.fromkeys(name.partition("/")[0] for name, one in FOLDERS.items() if one.owner == owner))


OF_BRAIN = owned_by("brain")
"""Folders that all namespaces of a brain folder share; on a database each namespace has its own."""
OF_STORE = owned_by("store")
RECORDS = (f"{TRANSITIONS}/", f"{UNDO}/")
"""Change records."""

_KEPT, _SPARE = 100, 20
"""Records in ``UNDO``: so many, and a few more, so that not every change has to remove one."""


class BrainFiles(Protocol):
    """The files of one namespace.

    Names begin with one of ``FOLDERS``. On a database everything belongs to the namespace; in a brain folder files
    owned by the ``brain`` belong to all namespaces, and ``log`` and ``trajectories`` hold what concerns others, too.

    Raises:
        InputError: a name leads elsewhere. StoreReadOnly, StorageError: a file cannot be written, or read.
    """

    namespace: str
    actor: str | None
    clock: Callable[[], datetime]
    transactional: bool
    """False: a folder without a store, where each file changes by itself."""

    def transaction(self) -> AbstractContextManager[WriteTransaction]:
        """Change files, and chunks of the store with them, together or not at all; recorded, so that it can be undone.

        Holds the write lock of the namespace, and nests. Inside, what was written is read. An exception undoes
        everything. What is added to ``trajectories`` and ``index`` does not belong to it.
        """
        ...

    def read(self, name: str) -> bytes | None:
        """The whole file; None where there is none."""
        ...

    def contents(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Name and content of those files that are there, in this order, read a few at a time."""
        ...

    def read_from(self, name: str, offset: int) -> bytes:
        """From ``offset`` to the end, from the last ``-offset`` bytes where it is negative; empty without a file."""
        ...

    def write(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """Write a whole file: a reader sees the old or the new one. ``durable`` False: it could be made again."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet; False, and nothing written, where one of that name is."""
        ...

    def append(self, name: str, data: bytes) -> None:
        """Add to the end of a file, made if it is missing; what several writers add does not mix."""
        ...

    def remove(self, name: str) -> bool:
        """Remove a file; False where there was none."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, taking the place of a file that has it."""
        ...

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        ...

    def names(self, folder: str, *, recursive: bool = False) -> list[str]:
        """Full names of the files in a folder, in order, without hidden ones. Empty without such a folder.

        The folder ``""`` with ``recursive`` is everything of the namespace that is not derived.
        """
        ...

    def signature(self, name: str) -> Signature | None:
        """What tells a changed file from an unchanged one without reading it."""
        ...

    def signatures(self, folder: str, *, recursive: bool = False) -> dict[str, Signature]:
        """``names`` with the signature of each."""
        ...

    def last(self, folder: str, limit: int, *, before: str | None = None) -> dict[str, Signature]:
        """The last files of a folder and those below it, by name, in falling order.

        Args:
            before: only names less than this one: where the former call ended.
        """
        ...

    def tidy(self) -> None:
        """Remove what killed writers left unfinished; to be called under the write lock."""
        ...

    def path(self, name: str) -> Path | None:
        """The file on a disk; None where files are no files."""
        ...

    def where(self, name: str) -> str:
        """The file as a message to a person names it."""
        ...


# --- recording of changes --------------------------------------------------------------------------------


def note_former(transaction: WriteTransaction, files: BrainFiles, name: str) -> None:
    """Note the content of a file that is about to change, the first time it does."""
    former = transaction.change.former
    key = (files.namespace, name)
    if former is None or key in former:
        return
    if folder_of(name).undone:
        former[key] = files.read(name)


@contextmanager
def recording(
    files: BrainFiles, opened: AbstractContextManager[WriteTransaction]
) -> Iterator[WriteTransaction]:
    """A transaction whose changes of ``files`` are recorded at the end of the block."""
    with opened as transaction:
        notes = transaction.change
        if notes.former is None:
            notes.former = {}
        yield transaction
        record = notes.record or _record_of(files, notes)
        if record is not None:
            _write(files, transaction, record)
        if notes.undoes:
            for event in transaction.events:
                event["undoes"] = notes.undoes


def _record_of(files: BrainFiles, notes: ChangeNotes) -> ChangeRecord | None:
    edits = [
        Edit.of_file(name, before, after)
        for (namespace, name), before in (notes.former or {}).items()
        if namespace == files.namespace and (after := files.read(name)) != before
    ]
    if not edits:
        return None
    if notes.continues:
        edits = _joined(files.read(f"{UNDO}/{notes.id}.json"), edits)
    return ChangeRecord(
        id=notes.id, at=format_time(files.clock()), op="edit", reason="", entry=edits[0].file, edits=edits,
        actor=files.actor,
    )  # fmt: skip


def _joined(earlier: bytes | None, edits: list[Edit]) -> list[Edit]:
    """The edits of a change whose earlier transactions are recorded: from the first former content to the last."""
    if earlier is None:
        return edits
    try:
        joined = {one.file: one for one in msgspec.json.decode(earlier, type=ChangeRecord).edits}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StorageError(f"the record of a change that goes on cannot be read: {error}") from error
    for edit in edits:
        first = joined.get(edit.file)
        former = edit if first is None else first
        joined[edit.file] = Edit.of_file(edit.file, former.data(former.before), edit.data(edit.after))
    return list(joined.values())


def _write(files: BrainFiles, transaction: WriteTransaction, record: ChangeRecord) -> None:
    files.write(record.file, msgspec.json.format(msgspec.json.encode(record), indent=1))
    if not record.keep:
        kept = sorted(files.names(UNDO))
        for name in kept[:-_KEPT] if len(kept) > _KEPT + _SPARE else ():
            files.remove(name)
    names = sorted({edit.file for edit in record.edits})
    line = {
        "ts": record.at, "actor": record.actor, "op": "edit", "ns": files.namespace, "files": names,
        **({"reason": record.reason} if record.reason else {}), "change": transaction.change.id,
    }  # fmt: skip
    events = transaction.events
    events[:] = [one for one in events if one["op"] != "edit" or one["ns"] != files.namespace]
    events.append(line)


# --- names and places -------------------------------------------------------------------------------------


def own_lines(namespace: str, journal: bytes) -> bytes:
    """The lines of a journal that concern a namespace, whole ones only."""
    lines = journal.splitlines(keepends=True)
    return b"".join(line for line in lines if namespace_in(line, "ns") == namespace and line.endswith(b"\n"))


def namespace_in(line: bytes, key: str) -> str | None:
    """The namespace that a line of JSON names under this key; None where it names none."""
    named = (parse_event(line) or {}).get(key)
    return named if isinstance(named, str) else None


def checked_name(name: str) -> str:
    """The name of a file; raises InputError for one that leads elsewhere, or into no folder of a brain."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts) or not (
        parts[0] in FOLDERS or "/".join(parts[:2]) in FOLDERS
    ):
        raise InputError(f"{name!r:.80} is no path of a file of a brain")
    return name


def place_of(namespace: str, name: str, *, alone: bool = False) -> str:
    """Where a file of a namespace lies, relative to the brain folder.

    Args:
        alone: the persona's files belong to this namespace and not to the whole brain (stores without a folder).
    """
    first, _, rest = name.partition("/")
    own = "" if namespace == DEFAULT_NAMESPACE else f"namespaces/{quote(namespace, safe='')}/"
    if first == "archive":
        return f"memory/archive/continuum/{quote(namespace, safe='')}" + (f"/{rest}" if rest else "")
    if first == "index":
        return f"memory/index/{quote(namespace, safe='')}.{rest}" if rest else "memory/index"
    if first == "imports":
        return f"memory/imports/{_slug(namespace)}.{rest.partition('.')[2]}" if rest else "memory/imports"
    if first in OF_STORE:
        return f"memory/{name}"
    return name if first in OF_BRAIN and not alone else own + name


def _slug(namespace: str) -> str:
    """A namespace in a file name: readable, and different for every one. Ledgers have been called so from the first."""
    from hashlib import sha256  # OpenSSL: opening does not need it

    text = re.sub(r"[^A-Za-z0-9_-]+", "-", namespace.removeprefix("chunk-")).strip("-_")[:60]
    digest = sha256(f"ledger\0{namespace}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{text}-{digest}" if text else digest


def name_at(place: str) -> tuple[str | None, str] | None:
    """Namespace and name of the file that lies there (see ``place_of``), or None where none of them would.

    The namespace is None for the files that several namespaces share: ``log`` and ``trajectories``.
    """
    parts = place.split("/")
    namespace: str | None = DEFAULT_NAMESPACE
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = unquote(parts[1]), parts[2:]
        if parts[0] in OF_STORE:
            return None
    elif parts[:3] == ["memory", "archive", "continuum"] and len(parts) > 4:
        namespace, parts = unquote(parts[3]), ["archive", *parts[4:]]
    elif parts[0] == "memory" and len(parts) > 2 and parts[1] in ("log", "trajectories"):
        namespace, parts = None, parts[1:]
    if parts[0] == "log" and "/".join(parts) != JOURNAL:  # the audit log beside it is the store's own
        return None
    try:
        if namespace is not None:
            check_namespace(namespace)  # `..` would lead out of the namespace's folder
        return (namespace, checked_name("/".join(parts))) if len(parts) > 1 else None
    except InputError:
        return None


def parse_event(line: bytes) -> dict[str, Any] | None:
    """The object that a line of a log is; None for a line that is torn, or no object."""
    try:
        event = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
