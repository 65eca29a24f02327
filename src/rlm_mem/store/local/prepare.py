"""What a chunk file says to the index, or to a check of it: read, hashed, analysed, without asking the index anything.

This is nearly all the work of indexing a file, so it is what other processes do for the one that writes
(``store.workers``); the result travels between them and is the same wherever it was made.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from rlm_mem.chunk import content_hash, decode_chunk
from rlm_mem.errors import InvalidChunk
from rlm_mem.store.core.ahead import LocalTerms, local_terms
from rlm_mem.store.core.files import Signature, signature
from rlm_mem.store.core.records import IndexEntry, entry_of, index_key

__all__ = [
    "ExaminedFile",
    "Prepared",
    "created_at",
    "examine",
    "prepare",
]

_VERSIONS = "archive/versions/"

_CREATED = b'\n    "created_at": "'  # as canonical files have it: no text can hold a line break unescaped


class Prepared(msgspec.Struct, array_like=True):
    """One file: what the index is to hold of it, or why it cannot be read; neither where it is gone."""

    path: str
    size: int = 0
    mtime_ns: int = 0
    inode: int = 0
    entry: IndexEntry | None = None
    segments: LocalTerms | None = None
    problem: str | None = None

    @property
    def signature(self) -> Signature:
        """The file as it was when it was read."""
        return Signature(self.size, self.mtime_ns, self.inode)


class ExaminedFile(msgspec.Struct, array_like=True):
    """One file as a check looks at it: what the index must agree with, and whether it agrees with itself.

    ``problem`` says why it cannot be read, ``invalid`` that it can but is no chunk; ``id`` is empty then, and where
    the file is gone.
    """

    path: str
    size: int = 0
    mtime_ns: int = 0
    inode: int = 0
    id: str = ""
    type: str = ""
    revision: int = 0
    tokens: int = 0
    counted: int = 0
    hash_is_right: bool = True
    superseded_by: str | None = None
    has_end: bool = False
    links: list[tuple[str, str]] = []
    problem: str | None = None
    invalid: bool = False

    @property
    def signature(self) -> Signature:
        """The file as it was when it was read."""
        return Signature(self.size, self.mtime_ns, self.inode)


def examine(base: str, path: str) -> ExaminedFile:
    """Read the chunk file, or former version, ``path`` (relative to ``base``)."""
    found = ExaminedFile(path)
    folder, _, name = path.rpartition("/")
    try:
        with Path(f"{base}/{path}").open("rb") as handle:
            stat = os.fstat(handle.fileno())
            chunk = decode_chunk(handle.read())
        found.size, found.mtime_ns, found.inode = stat.st_size, stat.st_mtime_ns, stat.st_ino
        if folder.startswith(_VERSIONS):
            return found
        if f"{chunk.id}.json" != name:
            raise InvalidChunk(f"{name} holds the chunk {chunk.id}: file name and id must agree")
    except FileNotFoundError:
        return found
    except OSError as error:
        found.problem = error.strerror or str(error)
        return found
    except InvalidChunk as error:
        found.problem, found.invalid = error.message, True
        return found
    from rlm_mem.text.tokens import count_tokens

    found.id, found.type, found.revision = chunk.id, chunk.type, chunk.revision
    found.tokens, found.counted = chunk.tokens, count_tokens(chunk.content)
    found.hash_is_right = content_hash(chunk.content) == chunk.metadata.content_hash
    found.superseded_by = chunk.metadata.superseded_by
    found.has_end = chunk.metadata.valid_to is not None
    found.links = [(link.target_id, link.type) for link in chunk.links]
    return found


def prepare(base: str, path: str, language: str) -> Prepared:
    """Read the chunk file ``path`` (relative to ``base``); its segments only if it is an active chunk's."""
    try:
        with Path(f"{base}/{path}").open("rb") as handle:
            stat = os.fstat(handle.fileno())
            data = handle.read()
    except FileNotFoundError:
        return Prepared(path)
    except OSError as error:
        known = signature(f"{base}/{path}") or Signature(0, 0, 0)
        return Prepared(path, known.size, known.mtime_ns, known.inode, problem=str(error))
    found = Prepared(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)
    name = path.rsplit("/", 1)[-1]
    try:
        chunk = decode_chunk(data)
        if f"{chunk.id}.json" != name:
            raise InvalidChunk(f"{name} holds the chunk {chunk.id}: file name and id must agree")
    except InvalidChunk as error:
        found.problem = str(error)
        return found
    actual = content_hash(chunk.content)
    if actual != chunk.metadata.content_hash or chunk.tokens == 0:
        from rlm_mem.text.tokens import count_tokens

        # Edited by hand: the index holds the truth of the text; `check` offers to bring the file's own fields along.
        chunk.metadata.content_hash = actual
        chunk.tokens = count_tokens(chunk.content)
    found.entry = entry_of(chunk)
    if not path.startswith("archive/"):
        found.segments = local_terms(*index_key(chunk), language)
    return found


def created_at(base: str, path: str) -> str:
    """When the chunk of a file was made, from its first bytes; empty where these do not tell."""
    try:
        with Path(f"{base}/{path}").open("rb") as handle:
            data = handle.read()
    except OSError:  # reading it in full reports the error
        return ""
    start = data.find(_CREATED)
    if start < 0:
        return ""
    start += len(_CREATED)
    return data[start : start + 27].decode("ascii", "replace")
