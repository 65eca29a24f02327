"""The record of a synced folder: which files were remembered, in which state, and as which chunks.

It is stored in brain files, changed in the transactions that change the chunks, and undone with them. The files are
distributed over a fixed number of parts, so that a change of few files rewrites little.
"""

from __future__ import annotations

import hashlib
import json
import platform
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from rlm_mem.chunk import check_chunk_id
from rlm_mem.errors import InputError, StorageError
from rlm_mem.merging import MERGE_CONFLICT, in_conflict, sides
from rlm_mem.record import FrozenRecord
from rlm_mem.store.core.brain_files import BrainFiles

_FOLDER = "system/folders"
_PARTS = 64
_SAME = "/same-as.json"
_MACHINE = "/machine-"
"""A file whose name ends with a digest of the name of a machine, on which the folder was synced."""
_REMOVE = "remove this file: its chunks are found again by the paths of their files"


def digest_of(data: bytes | str) -> str:
    """Return a digest that identifies a content: 32 hexadecimal digits."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


class StoredPiece(NamedTuple):
    """A piece of a file: its chunk id, and the digest of its text in the file."""

    id: str
    digest: str


class Reference(NamedTuple):
    """A link in the text of a file: the chunk that it is in, its target, and the chunk that it leads to, if any."""

    source: str
    target: str
    heading: str
    chunk: str = ""


class Heading(NamedTuple):
    """A heading that links can name, and the chunk that it is in."""

    name: str
    source: str


class FileEntry(FrozenRecord, frozen=True, omit_defaults=True):
    """One file in the state in which it was last remembered.

    Attributes:
        path: in the folder, with ``/``.
        digest: of its bytes.
        pieces: in the order of the text.
        former: pieces of earlier states of the file, superseded or archived separately.
        archived: whether the file was removed. ``with_it``: the chunks that were archived with it.
        tags, title, aliases: of its front matter.
        references: the links in its text. ``headings``: those that are not in its first piece.
        erased: whether an erasure removed chunks of it since it was remembered.
    """

    path: str
    digest: str
    pieces: tuple[StoredPiece, ...]
    former: tuple[StoredPiece, ...] = ()
    archived: bool = False
    with_it: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    title: str = ""
    references: tuple[Reference, ...] = ()
    headings: tuple[Heading, ...] = ()
    aliases: tuple[str, ...] = ()
    erased: bool = False


@dataclass
class _Part:
    live: dict[str, FileEntry] = field(default_factory=dict)
    archived: dict[str, list[FileEntry]] = field(default_factory=dict)

    def add(self, entry: FileEntry) -> None:
        if entry.archived:
            self.archived.setdefault(entry.path, []).append(entry)
        else:
            self.live[entry.path] = entry


class FolderRecord:
    """The recorded files of one folder in one namespace.

    Args:
        files: brain files of the namespace.
        folder: its name (``folder_names``).

    Attributes:
        in_conflict: the parts that git left in conflict: they are read as what both sides recorded.

    Raises:
        StorageError: the record cannot be read.
    """

    def __init__(self, files: BrainFiles, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._place = _place(folder)
        self.in_conflict: set[str] = set()
        self._parts: dict[int, _Part] = {}
        numbers = {self._name(number): number for number in range(_PARTS)}
        for name, data in files.contents([name for name in files.names(self._place) if name in numbers]):
            self._parts[numbers[name]] = self._decoded(name, data)

    def live(self) -> dict[str, FileEntry]:
        """Return the files that existed at the last sync, by path."""
        return {path: entry for part in self._parts.values() for path, entry in part.live.items()}

    def archived(self) -> Iterator[FileEntry]:
        """Yield removed files, in order of time for each path."""
        for part in self._parts.values():
            for entries in part.archived.values():
                yield from entries

    def ids(self) -> set[str]:
        """Return the ids of all recorded chunks."""
        entries = (*self.live().values(), *self.archived())
        return {piece.id for entry in entries for piece in (*entry.pieces, *entry.former)}

    def refresh(self, paths: Iterable[str]) -> None:
        """Read the parts of these paths again, as they are in the current transaction."""
        for number in {_number(path) for path in paths}:
            name = self._name(number)
            data = self._files.read(name)
            self._parts[number] = _Part() if data is None else self._decoded(name, data)

    def entry(self, path: str) -> FileEntry | None:
        """Return the live file at this path."""
        part = self._parts.get(_number(path))
        return part.live.get(path) if part else None

    def has_entry(self, entry: FileEntry) -> bool:
        """Return whether exactly this entry is recorded, live or archived."""
        part = self._parts.get(_number(entry.path))
        if part is None:
            return False
        if entry.archived:
            return entry in part.archived.get(entry.path, ())
        return part.live.get(entry.path) == entry

    def remove(self, entry: FileEntry) -> int:
        """Remove an entry; return the number of its part, for ``write``."""
        number = _number(entry.path)
        part = self._parts.setdefault(number, _Part())
        if entry.archived:
            part.archived[entry.path].remove(entry)
            if not part.archived[entry.path]:
                del part.archived[entry.path]
        else:
            del part.live[entry.path]
        return number

    def put(self, entry: FileEntry) -> int:
        """Add an entry; return the number of its part, for ``write``."""
        number = _number(entry.path)
        self._parts.setdefault(number, _Part()).add(entry)
        return number

    def write(self, numbers: Iterable[int]) -> None:
        """Write these parts, inside a transaction."""
        for number in sorted(set(numbers)):
            part, name = self._parts[number], self._name(number)
            entries = [*part.live.values(), *(one for many in part.archived.values() for one in many)]
            if entries:
                self._files.write(name, self._encoded(entries))
            else:
                self._files.remove(name)

    def settle(self) -> None:
        """Write the parts in conflict as what both sides recorded, inside a transaction."""
        numbers = [number for number in range(_PARTS) if self._name(number) in self.in_conflict]
        for number in numbers:
            data = self._files.read(self._name(number))
            self._parts[number] = _Part() if data is None else self._decoded(self._name(number), data)
        self.write(numbers)
        self.in_conflict.clear()

    def _name(self, number: int) -> str:
        return f"{self._place}/{number:02x}.json"

    def _encoded(self, entries: list[FileEntry]) -> bytes:
        entries.sort(key=lambda entry: (entry.path, entry.archived))
        # In ASCII, since a file name may not be valid Unicode.
        listed = ",\n".join(json.dumps(msgspec.to_builtins(entry)) for entry in entries)
        return f'{{"folder": {json.dumps(self._folder)}, "files": [\n{listed}\n]}}\n'.encode()

    def _decoded(self, name: str, data: bytes) -> _Part:
        part = _Part()
        try:
            if in_conflict(data):
                halves = [json.loads(half)["files"] for half in sides(data.decode())]
                for one in _united(*(list(map(_entry, half)) for half in halves)):
                    part.add(one)
                self.in_conflict.add(name)
            else:
                for raw in json.loads(data)["files"]:
                    part.add(_entry(raw))
        except (
            ValueError,
            TypeError,
            LookupError,
            RecursionError,
            InputError,
            msgspec.MsgspecError,
        ) as error:
            reason = MERGE_CONFLICT if in_conflict(data) else error
            raise StorageError(
                f"{self._files.where(name)}, the record of a remembered folder, cannot be read: {reason}",
                hint=_REMOVE,
            ) from None
        return part


def _united(ours: Sequence[FileEntry], theirs: Sequence[FileEntry]) -> Iterator[FileEntry]:
    """Yield the entries of both sides of a merge; the next sync compares those that differ with their files.

    Of a file that both sides recorded anew, the chunks of the same text are two: the second one is named so that no
    text is its own, and goes.
    """
    archived = dict.fromkeys(entry for entry in (*ours, *theirs) if entry.archived)
    gone = {(entry.path, entry.digest, entry.pieces) for entry in archived}
    yield from archived
    live = {entry.path: entry for entry in ours if not entry.archived}
    both = live | {entry.path: entry for entry in theirs if not entry.archived}
    for path, other in both.items():
        entry = live.get(path, other)
        if entry == other:
            # Otherwise one side removed it, and the other left it as it was.
            if (path, other.digest, other.pieces) not in gone:
                yield entry
            continue
        known = {piece.digest: piece.id for piece in entry.pieces}
        ids = set(known.values())
        more = [
            StoredPiece(one.id, f"{one.digest}~{one.id}" if one.digest in known else one.digest)
            for one in other.pieces
            if one.id not in ids
        ]
        former = dict.fromkeys((*entry.former, *other.former))
        pieces = (*entry.pieces, *more)
        kept = tuple(one for one in former if one not in pieces)
        yield replace(entry, digest="", pieces=pieces, former=kept)


def _place(name: str) -> str:
    return f"{_FOLDER}/{digest_of(name)}"


def is_recorded(files: BrainFiles, name: str) -> bool:
    """Return whether files of the folder of this name are recorded."""
    return any(not _is_note(one) for one in files.names(_place(name)))


def is_of_another_machine(files: BrainFiles, name: str) -> bool:
    """Return whether the folder of this name was synced on other machines only; earlier versions did not note that."""
    notes = [one for one in files.names(_place(name)) if _MACHINE in one]
    return bool(notes) and _machine_note(name) not in notes


def note_machine(files: BrainFiles, name: str) -> None:
    """Note, if it is not noted yet, that the folder of this name was synced on this machine."""
    if not files.exists(_machine_note(name)):
        noted = json.dumps({"folder": name})  # earlier versions take the name from any file of a record
        files.write(_machine_note(name), f"{noted}\n".encode())


def on_this_machine(name: str) -> str:
    """Return the name of a place for a note that holds on this machine only."""
    return f"{name}#{_machine()}"


def _machine() -> str:
    return digest_of(platform.node())[:12]


def _machine_note(name: str) -> str:
    return f"{_place(name)}{_MACHINE}{_machine()}.json"


def _is_note(file: str) -> bool:
    return file.endswith(_SAME) or _MACHINE in file


def recorded_folders(files: BrainFiles) -> list[str]:
    """Return the names of all folders with recorded files; raises StorageError if a record cannot be read."""
    one_of_each = {
        name.rpartition("/")[0]: name for name in files.names(_FOLDER, recursive=True) if not _is_note(name)
    }
    return [_named(files, name, data, "folder") for name, data in files.contents(list(one_of_each.values()))]


def same_folder(files: BrainFiles, name: str) -> str | None:
    """Return the name under which the folder of this name is recorded, if that was noted; raises StorageError."""
    place = f"{_place(name)}{_SAME}"
    data = files.read(place)
    return None if data is None else _named(files, place, data, "same_as")


def noted_as(files: BrainFiles, name: str) -> list[str]:
    """Return the names of the folders that were noted as recorded under another name."""
    places = [one for one in files.names(_FOLDER, recursive=True) if one.endswith(_SAME)]
    notes = files.contents(places)
    return [
        _named(files, place, data, "folder")
        for place, data in notes
        if _named(files, place, data, "same_as") == name
    ]


def note_same_folder(files: BrainFiles, name: str, recorded: str) -> None:
    """Note that the folder of a name is recorded under another one, in a transaction."""
    noted = json.dumps({"folder": name, "same_as": recorded})
    files.write(f"{_place(name)}{_SAME}", f"{noted}\n".encode())


def _named(files: BrainFiles, place: str, data: bytes, key: str) -> str:
    try:
        return str(json.loads(sides(data.decode())[0])[key])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StorageError(
            f"{files.where(place)}, of the record of a remembered folder, cannot be read: {error}",
            hint=_REMOVE,
        ) from None


def _number(path: str) -> int:
    return zlib.crc32(path.encode("utf-8", "surrogatepass")) % _PARTS


_IDS = {"pieces": 0, "former": 0, "references": 0, "headings": 1}
"""The place of the chunk id in the items of these fields of an entry."""


def _entry(raw: Any) -> FileEntry:
    """Return an entry without the places of erased chunks, of which an erasure leaves no ids."""
    count = len(raw["pieces"])
    kept = {name: [one for one in raw.get(name, ()) if one[place]] for name, place in _IDS.items()}
    kept["with_it"] = [one for one in raw.get("with_it", ()) if one]
    erased = bool(raw.get("erased")) or len(kept["pieces"]) < count
    entry = msgspec.convert({**raw, **kept, "erased": erased}, FileEntry)
    for name, place in _IDS.items():
        for one in getattr(entry, name):
            check_chunk_id(one[place])
    for chunk_id in (*entry.with_it, *(one.chunk for one in entry.references if one.chunk)):
        check_chunk_id(chunk_id)
    return entry
