"""Paths and files of a local store: chunk files, former versions, and the files that git needs.

The layout is specified in docs/spec/store-layout.md.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from rlm_mem.chunk import Chunk, check_chunk_id, decode_chunk
from rlm_mem.errors import InvalidChunk
from rlm_mem.lazy import logger
from rlm_mem.merging import in_conflict, without_conflict_lines
from rlm_mem.store.core import files
from rlm_mem.store.core.brain_files import FOLDERS
from rlm_mem.store.core.files import Signature, make_folder
from rlm_mem.store.core.records import ACTIVE, ARCHIVED, Version

_logger = logger("rlm_mem.store")

REDO_SUFFIX = ".redo"
"""File name suffix of a redo record."""
_CLONE_DIGITS = 8


_FOR_GIT = (
    (
        ".gitignore",
        "# derived from the files of the chunks, unfinished, or written whenever somebody reads\n"
        "/index/\n/.tmp/\n/trajectories/\n/log/reads-*.jsonl\n",
    ),
    (
        ".gitattributes",
        "# lines are only ever added: a merge keeps those of both sides\n*.jsonl merge=union\n"
        "# made from the tiered memories, and former versions: a conflict is in the memories alone\n"
        "chunk-memory-*.json -merge\n/archive/versions/** -merge\n",
    ),
    (
        "../.gitignore",
        "# of this machine: tokens, the personas of sessions, work in progress, how far transcripts were captured\n"
        "/tokens.json\n/.tokens.json.lock\n/persona/\n"
        "/workspace/\n/namespaces/*/workspace/\n/namespaces/*+/*/workspace/\n/namespaces/*+/*+/*/workspace/\n"
        "/system/capture/\n/namespaces/*/system/capture/\n/namespaces/*+/*/system/capture/\n"
        "/namespaces/*+/*+/*/system/capture/\n",
    ),
    ("../.gitattributes", "# the same bytes on every system\n* -text\n"),
)


_FORMER_FOR_GIT = {
    "../.gitignore": b"# derived from the files of the chunks, and rebuilt from them\n/memory/index/\n"
}
"""What released versions wrote into these files. More may stand after it."""


def _is_damaged(data: bytes, content: bytes) -> bool:
    """Whether a file for git is cut off, in conflict or not in UTF-8, so that git does not read what was in it."""
    is_cut_off = data != content and content.startswith(data)
    return is_cut_off or in_conflict(data) or b"\0" in data


def _other_lines(data: bytes, content: bytes) -> bytes:
    """Return the lines of a damaged file for git that others have added, of both sides of a conflict."""
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        data = data.decode("utf-16", "replace").encode()
    elif content.startswith(data):
        return b""
    lines = without_conflict_lines(data.replace(b"\0", b"")).splitlines()
    known = content.splitlines()
    return b"".join(line + b"\n" for line in dict.fromkeys(lines) if line.strip() and line not in known)


class Layout:
    """Paths of a store below its base folder; paths recorded in the index are relative to it, with forward slashes."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self._base = str(base)
        self.chunks = base / "chunks"
        """Active chunks, by month."""
        self.archive = base / "archive"
        """Archived chunks; ``versions/`` below it contains former versions."""
        self.damaged = self.archive / "damaged"
        """Files of chunks that a repair replaced by a former version, named ``ID.json.TIME``."""
        self.index = base / "index"
        """Data that can be rebuilt from the files."""
        self.database = self.index / "index.sqlite"
        """The SQLite index."""
        self.unfinished = base / ".tmp"
        """Files in transit; leftovers of a killed process are handled at the next open."""
        self.log = base / "log"
        """Append-only event files by month."""

    @cached_property
    def clone(self) -> str:
        """The id of this copy of the brain, which git leaves out; made under the write lock when first used."""
        path = self.index / "clone"
        try:
            found = path.read_text(encoding="ascii", errors="replace")[:_CLONE_DIGITS]
        except FileNotFoundError:
            found = ""
        if not found.isalnum():  # also after a loss of power
            found = os.urandom(_CLONE_DIGITS // 2).hex()
            files.write_atomic(path, found.encode(), durable=False)
        return found

    def index_size_mb(self) -> float:
        """Size of the SQLite index in megabytes; 0 if there is none that this user can see."""
        try:
            return round(self.database.stat().st_size / 1e6, 3)
        except OSError:
            return 0.0

    def path_of(self, chunk: Chunk, status: int) -> str:
        """Return the relative path for a new chunk file: ``chunks/YYYY-MM/ID.json``, archived ``archive/ID.json``."""
        folder = "archive" if status == ARCHIVED else f"chunks/{chunk.metadata.created_at[:7]}"
        return f"{folder}/{check_chunk_id(chunk.id)}.json"

    def versions(self, chunk_id: str) -> Path:
        """Return the folder of a chunk's former versions, named ``{revision}.json``."""
        return self.archive / "versions" / check_chunk_id(chunk_id)

    @cached_property
    def folds_case(self) -> bool:
        """Whether the file system is case-insensitive."""
        return (self.base / "INDEX").exists()

    def absolute(self, relative: str) -> Path:
        """Return the absolute path of a relative path from the index, or of ``../…``, a file of the brain around it."""
        path = f"{self._base}/{relative}"
        # Behind a link to the store, `..` would lead to another folder.
        return Path(os.path.normpath(path) if relative.startswith("../") else path)

    def place(self, relative: str) -> str:
        """Return the absolute path as a string: much faster than ``absolute`` when many files are written."""
        return f"{self._base}/{relative}" if os.sep == "/" else str(self.absolute(relative))

    def is_interrupted(self) -> bool:
        """Return whether a killed process left a redo record, so that its write must be finished (see ``redo``)."""
        try:
            with os.scandir(self.unfinished) as entries:
                return any(entry.name.endswith(REDO_SUFFIX) for entry in entries)
        except FileNotFoundError:
            return False

    def relative(self, path: str | Path) -> str:
        """Return the path as it is recorded: relative to the base, ``../…`` for a file of the brain around it."""
        text, base = str(path), f"{self._base}{os.sep}"
        if text.startswith(base) and ".." not in text:
            return text[len(base) :].replace(os.sep, "/")
        return os.path.relpath(path, self.base).replace(os.sep, "/")

    def prepare_for_git(self) -> None:
        """Write ``.gitignore`` and ``.gitattributes``, here and in the brain around it, unless they exist.

        Git then ignores the files that reading writes and those of one machine, keeps the lines of both sides when it
        merges a log, and changes no line ends.
        """
        for _, path, content in self._files_for_git():
            make_folder(path.parent)
            there = contextlib.suppress(FileExistsError)
            with files.translated(str(path)), there, path.open("x", encoding="utf-8") as file:
                file.write(content)

    def outdated_for_git(self) -> dict[str, bytes]:
        """Return those of the files for git that are damaged, or of an earlier version, with their right contents.

        A file that somebody else wrote or changed is left alone, except what stands after the text of this program.
        """
        found: dict[str, bytes] = {}
        for name, path, text in self._files_for_git():
            if path.is_dir():
                continue
            content = text.encode()
            with files.translated(str(path)):
                try:
                    data = path.read_bytes()
                except FileNotFoundError:
                    found[name] = content
                    continue
            former = _FORMER_FOR_GIT.get(name)
            if former is not None and data.startswith(former):
                found[name] = content + data[len(former) :]
            elif _is_damaged(data, content):
                found[name] = content + _other_lines(data, content)
        return found

    def _files_for_git(self) -> Iterator[tuple[str, Path, str]]:
        """Yield relative path, path and right contents of the files for git; those around a brain's store, too."""
        for name, content in _FOR_GIT:
            if self.base.name == "memory" or not name.startswith("../"):
                yield name, self.absolute(name), content

    def own_files(self, named: re.Pattern[str]) -> Iterator[Path]:
        """Yield the files with such a name below the folders of the store, and of the brain.

        The folder of the brain itself may hold others, too.
        """
        yield from self.all_files(self.base, named)
        around = {one.partition("/")[0] for one, folder in FOLDERS.items() if folder.owner != "store"}
        for place in (self.base.parent / one for one in sorted({"namespaces", *around} - {"memory"})):
            if self.base.name == "memory" and not place.is_symlink():
                yield from self.all_files(place, named)

    def all_files(self, top: Path | None = None, named: re.Pattern[str] | None = None) -> Iterator[Path]:
        """Yield all files below a folder (None: of the brain); in the store also what is behind links to folders.

        Args:
            named: matches the names of the files to yield; None: of all.

        Raises:
            StorageError: a folder cannot be read.
        """
        seen: set[tuple[int, int]] = set()

        def refuse(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):
                raise files.unreadable(error.filename, error) from error

        for name, below, names in os.walk(top or self.base.parent, onerror=refuse, followlinks=True):
            folder = Path(name)
            try:
                status = folder.stat()
            except FileNotFoundError:  # removed after it was listed
                continue
            key = status.st_dev, status.st_ino
            if key in seen:  # a link leads to a folder above it, or two lead to one
                below.clear()
                continue
            seen.add(key)
            if not folder.is_relative_to(self.base):
                below[:] = [
                    one for one in below if folder / one == self.base or not (folder / one).is_symlink()
                ]
            yield from (folder / one for one in names if named is None or named.fullmatch(one))

    def folders(self) -> list[str]:
        """Return the relative paths of the existing folders of chunk files."""
        found = []
        if self.chunks.is_dir():
            found += [
                f"chunks/{entry.name}"
                for entry in sorted(self.chunks.iterdir())
                if entry.is_dir() and files.is_unicode(entry)
            ]
        if self.archive.is_dir():
            found.append("archive")
        return found


def status_at(path: str) -> int:
    """Return the status of a chunk by the relative path of its file."""
    return ARCHIVED if path.startswith("archive/") else ACTIVE


def misnamed(chunk: Chunk, name: str) -> str:
    """Describe the fault of a chunk file of this name; empty if the name is that of its chunk."""
    if f"{chunk.id}.json" == name:
        return ""
    return (
        f"it contains the chunk {chunk.id}, whose file is {chunk.id}.json: rename it, or if it is a copy, remove it or "
        "give it an id of its own, inside and as its name"
    )


def read_chunk_file(path: Path) -> tuple[Chunk, Signature]:
    """Read one chunk file; raises InvalidChunk, or OSError if the file cannot be opened."""
    data, read = files.read_signed(path)
    chunk = decode_chunk(data)
    if fault := misnamed(chunk, path.name):
        raise InvalidChunk(fault)
    return chunk, read


def former_versions(
    layout: Layout, chunk_id: str, *, below: int, pending: tuple[int, Path] | None = None
) -> list[Version]:
    """Return kept versions with a revision below ``below``, oldest first; unreadable ones are logged and left out.

    Args:
        pending: revision and file of a further version, which an open transaction will keep.
    """
    found: list[Version] = []
    # A path as text: an erasure looks at every chunk, and few have former versions.
    try:
        with os.scandir(layout.place(f"archive/versions/{check_chunk_id(chunk_id)}")) as entries:
            found_files = [Path(entry.path) for entry in entries if entry.name.endswith(".json")]
    except (FileNotFoundError, NotADirectoryError):
        found_files = []
    places = {int(path.stem): path for path in found_files if path.stem.isdecimal()}
    places.update([pending] if pending is not None else ())
    for revision, path in sorted(places.items()):
        if revision >= below:
            continue
        try:
            chunk = decode_chunk(files.read_signed(path)[0])  # named after the revision, not the chunk
        except (InvalidChunk, OSError) as error:
            _logger.error("unreadable former version %s: %s", path, error)
            continue
        found.append(Version(revision, chunk.metadata.modified_at, chunk))
    return found
