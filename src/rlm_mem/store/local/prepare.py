"""Reads, hashes and analyses chunk files for indexing or checking them, without any query of the index.

This is nearly all the work of indexing a file, so worker processes can do it (``store.local.workers``); the result
is sent between processes and does not depend on where it was computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from rlm_mem.chunk import content_hash, decode_chunk
from rlm_mem.errors import InvalidChunk
from rlm_mem.store.core.files import NO_SIGNATURE, Signature, read_signed, signature
from rlm_mem.store.core.preencoding import LocalTerms, local_terms
from rlm_mem.store.core.records import IndexEntry, entry_of, index_key
from rlm_mem.store.local.folder import misnamed
from rlm_mem.store.local.workers import called

_VERSIONS = "archive/versions/"

_CREATED = b'\n    "created_at": "'
"""As in canonical files; not found in texts, whose line breaks are escaped."""

#: With fewer files than this, starting processes takes longer than reading the files in this process.
FEW = 600
_LOT = 100
_TIMES_LOT = 2000


class ChunkFile(msgspec.Struct, array_like=True):
    """One chunk file, with the values that the index has of it, and whether they are consistent.

    Attributes:
        signature: the file's signature when it was read.
        id: of the chunk in it; empty if none was read, for a former version, and if the file no longer exists.
        entry: its index entry, with the hash of the actual content; None if it is not used.
        segments: its encoded segments; None in a check, and for an archived chunk.
        problem: why it is not used: it cannot be read, is not a chunk (``invalid``), or is not named after its ``id``.
        counted: the tokens of its content, if it was checked.
        hash_is_right: whether its stored hash is that of its content.
    """

    path: str
    signature: Signature = NO_SIGNATURE
    id: str = ""
    entry: IndexEntry | None = None
    segments: LocalTerms | None = None
    problem: str | None = None
    invalid: bool = False
    counted: int = 0
    hash_is_right: bool = True


# --- many files, in several processes if that is faster --------------------------------------------------------


def read_files(
    base: str, paths: Iterable[str], language: str, *, count: int, processes: int = 0
) -> Iterator[ChunkFile]:
    """Read the files of ``paths``, in that order.

    Args:
        base: the store's folder.
        paths: relative to ``base``.
        language: in which they are analysed; empty to check them instead.
        count: lower bound of their number.
        processes: maximum number of processes, this one included; 0: one per core.
    """
    return called(
        f"{__name__}:read_lot", f"{language} {base}", paths, list[ChunkFile],
        count=count, lot=_LOT, processes=processes, few=FEW,
    )  # fmt: skip


def by_creation_time(base: str, paths: Sequence[str], *, processes: int = 0) -> list[str]:
    """Sort the paths by creation time of their chunks, so that chunks of the same time are numbered in that order."""
    # Reading without decoding is a twentieth of the work: for a few thousand files, faster than starting a process.
    times: Iterator[str] = called(
        f"{__name__}:creation_times", base, paths, list[str],
        count=len(paths), lot=_TIMES_LOT, processes=processes, few=20 * FEW,
    )  # fmt: skip
    return [path for _, path in sorted(zip(times, paths, strict=True))]


def read_lot(given: str, paths: Sequence[str]) -> list[ChunkFile]:
    """Read some files, in this or another process; ``given`` is the language and ``base``, separated by a space."""
    language, _, base = given.partition(" ")
    return [read_file(base, path, language) for path in paths]


def creation_times(base: str, paths: Sequence[str]) -> list[str]:
    """Return the creation times of the chunks in some files, without decoding the files; empty if not found."""
    return [_created_at(base, path) for path in paths]


# --- one file --------------------------------------------------------------------------------------------------


def read_file(base: str, path: str, language: str) -> ChunkFile:
    """Read the chunk file ``path`` (relative to ``base``); segments are made only for an active chunk."""
    found = ChunkFile(path)
    try:
        data, found.signature = read_signed(f"{base}/{path}")
        chunk = decode_chunk(data)
    except FileNotFoundError:
        return found
    except OSError as error:
        found.signature = signature(f"{base}/{path}") or NO_SIGNATURE
        found.problem = error.strerror or str(error)
        return found
    except InvalidChunk as error:
        found.problem, found.invalid = error.message, True
        return found
    if path.startswith(_VERSIONS):
        return found
    found.id, actual = chunk.id, content_hash(chunk.content)
    if fault := misnamed(chunk, path.rpartition("/")[2]):
        found.problem = fault
        return found
    found.hash_is_right = actual == chunk.metadata.content_hash
    if not language or not found.hash_is_right or chunk.tokens == 0:
        from rlm_mem.text.tokens import count_tokens

        found.counted = count_tokens(chunk.content)
        if language:
            # Edited by hand: the index gets the values of the actual text; `check` offers to correct the file's fields.
            chunk.tokens = found.counted
    chunk.metadata.content_hash = actual
    found.entry = entry_of(chunk)
    if language and not path.startswith("archive/"):
        found.segments = local_terms(*index_key(chunk), language)
    return found


def _created_at(base: str, path: str) -> str:
    try:
        data, _ = read_signed(f"{base}/{path}")
    except OSError:  # reading it in full reports the error
        return ""
    start = data.find(_CREATED)
    if start < 0:
        return ""
    start += len(_CREATED)
    return data[start : start + 27].decode("ascii", "replace")
