"""Brain files, which are the files of a brain other than its chunks: tiered memories, trajectories, persona, ledgers.

They are read and written through ``Backend.files(namespace)``, never by path: on a database the same files are
rows. Names are relative, with forward slashes. The folder that a name begins with (``FOLDERS``) determines the kind
of the file, and its path in a brain folder (``place_of``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import quote, unquote

import msgspec

from rlm_mem.chunk import DEFAULT_NAMESPACE, check_namespace, format_time
from rlm_mem.errors import InputError
from rlm_mem.record import FrozenRecord
from rlm_mem.store.core.changes import TRANSITIONS, UNDO, ChangeNotes, ChangeRecord, Edit, WriteTransaction
from rlm_mem.store.core.files import Signature
from rlm_mem.store.core.records import MIRROR

JOURNAL = "log/continuum.jsonl"
"""Every change of tiered memories; in a brain folder one file for all namespaces (see ``own_lines``)."""
ERASING = "system/erasing"
"""Marks of erasures that are being carried out (``erasure_marks``)."""
LEDGER = "imports/ledger.jsonl"
"""Records of earlier imports."""
MIRRORED = "index/continuum.json"
"""The signature of each file of tiered memories at its last mirroring, and the ids of its mirrors."""
SHOWN = "index/told"
"""Files with the ids of the chunks that hooks gave to each session (version 1.0: one file, with ``.json``)."""
WAITING = "system/capture/waiting"
"""Messages that hooks could not capture while another process wrote."""
_NAMED_ID = re.compile(rb"chunk-[A-Za-z0-9_-]+")
"""What may be the id of a chunk in a brain file or a line of the audit log, also after an escaped line break."""
_FEW, _MANY = 4, 256
"""Lines that are not worth to be divided, and lines that are examined together (``concerned``)."""
_MAX_ID = 126
"""Characters of the longest id of a chunk."""


class Folder(FrozenRecord, frozen=True):
    """Properties of the files in a folder.

    Attributes:
        owner: their owner in a brain folder: one namespace, the whole brain, or the store inside it.
        undone: whether changes are recorded and can be undone.
        in_transactions: whether additions belong to a transaction.
        by_hand: whether people work in the folder, so that no unfinished file may appear in it.
        portable: whether files are exported and imported.
    """

    owner: Literal["namespace", "brain", "store"]
    undone: bool = True
    in_transactions: bool = True
    by_hand: bool = True
    portable: bool = True


FOLDERS = {
    "workspace": Folder("namespace", undone=False),
    "system": Folder("namespace"),
    WAITING: Folder("namespace", undone=False, in_transactions=False, by_hand=False, portable=False),
    "system/capture": Folder("namespace", undone=False),  # otherwise the next hook captures the undone text
    ERASING: Folder("namespace", undone=False, by_hand=False, portable=False),
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
"""Every folder that a file name may begin with; the longest match counts."""


def folder_of(name: str) -> Folder:
    """Return the folder that a name begins with; raises InputError for a name outside of all folders."""
    above = checked_name(name)
    while above not in FOLDERS:
        above = above.rpartition("/")[0]
    return FOLDERS[above]


def owned_by(owner: str) -> tuple[str, ...]:
    """Return the first parts of the names of files that belong to ``namespace``, ``brain`` or ``store``."""
    return tuple(dict.fromkeys(name.partition("/")[0] for name, one in FOLDERS.items() if one.owner == owner))


OF_BRAIN = owned_by("brain")
"""Folders that all namespaces of a brain folder share; on a database they are per namespace."""
OF_STORE = owned_by("store")
RECORDS = (f"{TRANSITIONS}/", f"{UNDO}/")
"""Name prefixes of change records."""

_KEPT, _SPARE = 100, 20
"""Records kept in ``UNDO``, and how many more may accumulate, so that not every change has to remove one."""


Runs = Mapping[str | None, Sequence[str]]
"""Names of recorded runs by namespace; torn records without a namespace are under None."""


class BrainFiles(Protocol):
    """The files of one namespace.

    Names begin with one of ``FOLDERS``. On a database everything belongs to the namespace; in a brain folder files
    owned by the ``brain`` belong to all namespaces, and ``log`` and ``trajectories`` also contain data of others.

    Raises:
        InputError: a name lies outside these folders. StoreReadOnly, StorageError: a file cannot be written, or read.
    """

    namespace: str
    actor: str | None
    clock: Callable[[], datetime]
    transactional: bool
    """Whether changes can be grouped in a transaction; False for a folder without a store."""

    def transaction(self) -> AbstractContextManager[WriteTransaction]:
        """Open a transaction that changes files and chunks together or not at all, recorded so that it can be undone.

        Holds the write lock of the namespace, and nests. Reads inside it see its writes. An exception rolls everything
        back. Additions to ``trajectories`` and ``index`` do not belong to it.
        """

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""

    def contents(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield name and content of the files that exist, in this order, read in batches."""

    def read_from(self, name: str, offset: int) -> bytes:
        """Return the bytes from ``offset`` on, or the last ``-offset`` bytes if negative; empty without a file."""

    def write(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """Write a whole file atomically: readers see the old or the new one. ``durable`` False: no sync."""

    def create(self, name: str, data: bytes) -> bool:
        """Write a new file; False, with nothing written, if the name is taken."""

    def append(self, name: str, data: bytes) -> None:
        """Append to a file, created if missing; data of concurrent writers is not interleaved."""

    def extend(self, name: str, data: bytes) -> bool:
        """Append to a file of ``trajectories``; False, with nothing written, if it does not exist any more."""

    def remove(self, name: str) -> bool:
        """Remove a file; False if there was none."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing any file of the new name."""

    def exists(self, name: str) -> bool:
        """Return whether the file exists."""

    def names(self, folder: str, *, recursive: bool = False) -> list[str]:
        """Return full names of the files in a folder, in order, without hidden ones; empty if it does not exist.

        The folder ``""`` with ``recursive`` means every file of the namespace that is not derived.
        """

    def everything(self, runs: Runs) -> list[str]:
        """Return ``names("", recursive=True)``, given the result of ``runs`` for any namespace of the store."""

    def namespaces(self) -> list[str]:
        """Return the namespaces that have files beside these, with or without chunks; empty if files are rows."""

    def runs(self) -> Runs:
        """Return the recorded runs of all namespaces that share one folder, reading each once; otherwise nothing."""

    def signature(self, name: str) -> Signature | None:
        """Return a value that changes with the file, without reading it; None if there is no file."""

    def signatures(self, folder: str, *, recursive: bool = False) -> dict[str, Signature]:
        """Return ``names`` with the signature of each."""

    def last(self, folder: str, limit: int, *, before: str | None = None) -> dict[str, Signature]:
        """Return the last files of a folder and its subfolders by name, in descending order.

        Args:
            before: only names that sort before this one, the last of the previous call.
        """

    def tidy(self) -> None:
        """Remove unfinished files of killed writers; the caller must hold the write lock."""

    def path(self, name: str) -> Path | None:
        """Return the path of the file on disk; None if files are stored as rows."""

    def where(self, name: str) -> str:
        """Return the name of the file in messages to people."""


# --- recording of changes --------------------------------------------------------------------------------


def note_former(transaction: WriteTransaction, files: BrainFiles, name: str) -> None:
    """Note the content of a file before its first change in the transaction."""
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
    """Run a transaction and record its changes of ``files`` at the end of the block."""
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
    """Merge edits with those that earlier transactions of the change recorded, from the first content to the last."""
    if earlier is None:
        return edits
    record = ChangeRecord.decoded(earlier, "the record of a change in progress")
    joined = {one.file: one for one in record.edits}
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


# --- ids of chunks ----------------------------------------------------------------------------------------


def _readings(found: bytes) -> Iterator[str]:
    """Yield what may be the id: all that looks like one, and it without emphasis or dashes behind it."""
    named = found.decode()
    yield named
    if named[-1] in "_-":
        for end in range(min(len(named) - 1, _MAX_ID), len(named.rstrip("_-")) - 1, -1):
            yield named[:end]


def named_ids(data: bytes, ids: Container[str]) -> set[str]:
    """Return those of some ids of chunks that a brain file, or a line of the audit log, names anywhere."""
    return {one for found in _NAMED_ID.findall(data) for one in _readings(found) if one in ids}


def with_new_ids(data: bytes, names: Mapping[str, str]) -> bytes:
    """Return a brain file, or a line of the audit log, that names chunks by their new ids, wherever it names them."""

    def renamed(found: re.Match[bytes]) -> bytes:
        one = next((one for one in _readings(found[0]) if one in names), None)
        return found[0] if one is None else names[one].encode() + found[0][len(one) :]

    return _NAMED_ID.sub(renamed, data) if names else data


def mirror_id(namespace: str, file: str, block: str | None) -> str:
    """Return the id of the chunk that mirrors a tiered memory.

    It is derived from its place, so that no memory has two mirrors.
    """
    from hashlib import sha256  # OpenSSL: opening does not need it

    place = "\0".join((namespace, file, block or ""))
    return f"{MIRROR}{sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}"


def case_id_of(kind: str, key: str) -> str:
    """Return the id of the review case of a kind about something, which is the same whenever it is asked.

    The key of a proposal is the ids of its chunks with a space between them.
    """
    from hashlib import sha256  # OpenSSL: opening does not need it

    return f"{kind}-{sha256(key.encode()).hexdigest()[:10]}"


# --- names and paths --------------------------------------------------------------------------------------


def own_lines(namespace: str, journal: bytes) -> bytes:
    """Return the complete lines of a journal that belong to a namespace."""
    lines = journal.splitlines(keepends=True)
    return b"".join(line for line in lines if namespace_in(line, "ns") == namespace and line.endswith(b"\n"))


def namespace_in(line: bytes, key: str) -> str | None:
    """Return the namespace under this key of a line of JSON; None if there is none."""
    namespace = (parse_event(line) or {}).get(key)
    return namespace if isinstance(namespace, str) else None


_RUN_START = re.compile(rb'\{"kind": "start", "format": \d{1,9}, "namespace": "([^"\\]{1,2000})"')


def namespace_of_run(line: bytes) -> str | None:
    """Return the namespace in the first line of a recorded run, even if the line is torn; None if it has none."""
    torn = _RUN_START.match(line)
    return namespace_in(line, "namespace") or (torn[1].decode("utf-8", "replace") if torn else None)


def is_open_run(data: bytes) -> bool:
    """Return whether a recorded run has no outcome: it goes on, or its process was killed."""
    return not data[data.rfind(b"\n", 0, -1) + 1 :].startswith(b'{"kind": "end"')


def checked_name(name: str) -> str:
    """Return the name if it is safe and in a folder of a brain; otherwise raises InputError."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts) or not (
        parts[0] in FOLDERS or "/".join(parts[:2]) in FOLDERS
    ):
        raise InputError(f"{name!r:.80} is not the path of a brain file")
    return name


def place_of(namespace: str, name: str, *, alone: bool = False) -> str:
    """Return the path of a namespace's file, relative to the brain folder.

    Args:
        alone: the persona's files belong to this namespace and not to the whole brain (stores without a folder).
    """
    first, _, rest = name.partition("/")
    folder = "" if namespace == DEFAULT_NAMESPACE else f"namespaces/{_folder_name(namespace)}/"
    if first == "archive":
        return f"memory/archive/continuum/{_folder_name(namespace)}" + (f"/{rest}" if rest else "")
    if first == "index":
        return f"memory/index/{_folder_name(namespace, len(rest) + 1)}.{rest}" if rest else "memory/index"
    if first == "imports":
        return f"memory/imports/{_slug(namespace)}.{rest.partition('.')[2]}" if rest else "memory/imports"
    if first in OF_STORE:
        return f"memory/{name}"
    return name if first in OF_BRAIN and not alone else folder + name


_LONGEST_NAME = 255
"""Bytes of the longest name of a file on usual file systems."""
_CUT = "+"
"""Ends each part but the last of a name that was too long for one folder; namespaces do not contain it."""


def _folder_name(namespace: str, added: int = 0) -> str:
    """Return a namespace percent-encoded, as folders in each other if one name of that length cannot exist.

    Their names are about equally long: a short rest might be ``.`` or ``..``.

    Args:
        added: bytes that the caller appends to the name.
    """
    name = quote(namespace, safe="")
    if len(name) + added <= _LONGEST_NAME:
        return name
    size = -(-len(name) // -(-len(name) // 200))
    return f"{_CUT}/".join(name[start : start + size] for start in range(0, len(name), size))


def separate_parts(place: str) -> list[str]:
    """Return the starts of a file's path that no namespace, or session of a persona, of another name may share."""
    for shared in ("namespaces/", "persona/", "memory/archive/continuum/", "memory/index/"):
        if place.startswith(shared):
            parts = place[len(shared) :].split("/")
            return [shared + "/".join(parts[: one + 1]) for one in range(_folders_of_name(parts))]
    return []


def _folders_of_name(parts: Sequence[str]) -> int:
    return 1 + sum(1 for _ in takewhile(lambda one: one.endswith(_CUT), parts))


def _namespace_in(parts: list[str]) -> tuple[str, list[str]]:
    """Return the namespace whose folder a path begins with, and the parts behind it."""
    number = _folders_of_name(parts)
    return unquote("".join(parts[:number]).replace(_CUT, "")), parts[number:]


def _slug(namespace: str) -> str:
    """Return a namespace as part of a file name, readable and unique; ledgers have always had such names."""
    from hashlib import sha256  # OpenSSL: opening does not need it

    text = re.sub(r"[^A-Za-z0-9_-]+", "-", namespace.removeprefix("chunk-")).strip("-_")[:60]
    digest = sha256(f"ledger\0{namespace}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{text}-{digest}" if text else digest


def name_at(place: str) -> tuple[str | None, str] | None:
    """Return namespace and name of the file at a path, or None if the path is not that of a brain file.

    The inverse of ``place_of``.

    The namespace is None for the files that several namespaces share: ``log`` and ``trajectories``.
    """
    parts = place.split("/")
    namespace: str | None = DEFAULT_NAMESPACE
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = _namespace_in(parts[1:])
        if parts[:1] and parts[0] in OF_STORE:
            return None
    elif parts[:3] == ["memory", "archive", "continuum"] and len(parts) > 4:
        namespace, parts = _namespace_in(parts[3:])
        parts = ["archive", *parts]
    elif parts[0] == "memory" and len(parts) > 2 and parts[1] in ("log", "trajectories"):
        namespace, parts = None, parts[1:]
    if parts[0] == "log" and "/".join(parts) != JOURNAL:  # the audit log beside it belongs to the store
        return None
    try:
        if namespace is not None:
            check_namespace(namespace)  # `..` would lead out of the namespace's folder
        return (namespace, checked_name("/".join(parts))) if len(parts) > 1 else None
    except InputError:
        return None


def concerned(lines: Sequence[bytes], concerns: Callable[[bytes], bool]) -> Iterator[int]:
    """Yield the places of the lines that ``concerns`` accepts, or of a few too many.

    It is asked of many lines together first: an erasure concerns few lines, and parsing all of them takes long.
    """
    starts = range(0, len(lines), _MANY)
    waiting = [(start, min(start + _MANY, len(lines))) for start in reversed(starts)]
    while waiting:
        start, end = waiting.pop()
        if start == end or not concerns(b"\n".join(lines[start:end])):
            continue
        if end - start <= _FEW:
            yield from range(start, end)
        else:
            middle = (start + end) // 2
            waiting += [(middle, end), (start, middle)]


def parse_event(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a log line; None if the line is torn or is not an object."""
    try:
        event = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
