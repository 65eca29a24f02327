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
from rlm_mem.store.local.folder import MISNAMED, chunk_in, is_misnamed
from rlm_mem.store.local.workers import called

_VERSIONS = "archive/versions/"

_CREATED = b'\n    "created_at": "'
"""As in canonical files; not found in texts, whose line breaks are escaped."""

#: With fewer files than this, starting processes takes longer than reading the files in this process.
FEW = 600
_LOT = 100
_TIMES_LOT = 2000


class Prepared(msgspec.Struct, array_like=True):
    """One chunk file: its index entry, or the reason why it cannot be read; neither if it no longer exists.

    ``signature`` is the file's signature when it was read.
    """

    path: str
    signature: Signature = NO_SIGNATURE
    entry: IndexEntry | None = None
    segments: LocalTerms | None = None
    problem: str | None = None


class ExaminedFile(msgspec.Struct, array_like=True):
    """One chunk file for a check: the values that the index must agree with, and whether they are consistent.

    ``problem`` is the reason why the file is not used: it cannot be read; with ``invalid``, it can be read but is
    not a chunk; with an ``id``, it is not named after that id. ``id`` is empty if no chunk was read, for a former
    version, and if the file no longer exists. ``signature`` is the file's signature when it was read.
    """

    path: str
    signature: Signature = NO_SIGNATURE
    id: str = ""
    type: str = ""
    revision: int = 0
    tokens: int = 0
    counted: int = 0
    content_hash: str = ""
    hash_is_right: bool = True
    superseded_by: str | None = None
    validity: tuple[str | None, str | None] = (None, None)
    links: list[tuple[str, str]] = []
    problem: str | None = None
    invalid: bool = False


# --- many files, in several processes if that is faster --------------------------------------------------------


def prepared(base: str, paths: Sequence[str], language: str, *, processes: int = 0) -> Iterator[Prepared]:
    """Prepare the files of ``paths``, in that order.

    Args:
        base: the store's folder.
        paths: relative to ``base``.
        processes: maximum number of processes, this one included; 0: one per core.
    """
    return called(
        f"{__name__}:prepare_files", f"{language} {base}", paths, list[Prepared],
        count=len(paths), lot=_LOT, processes=processes, few=FEW,
    )  # fmt: skip


def examined(base: str, paths: Iterable[str], files: int, *, processes: int = 0) -> Iterator[ExaminedFile]:
    """Examine the files of ``paths`` for a check, in that order; ``files`` is their approximate number."""
    return called(
        f"{__name__}:examine_files", base, paths, list[ExaminedFile],
        count=files, lot=_LOT, processes=processes, few=FEW,
    )  # fmt: skip


def by_creation_time(base: str, paths: Sequence[str], *, processes: int = 0) -> list[str]:
    """Sort the paths by creation time of their chunks, so that chunks of the same time are numbered in that order."""
    # Reading without decoding is a twentieth of the work: for a few thousand files, faster than starting a process.
    times: Iterator[str] = called(
        f"{__name__}:creation_times", base, paths, list[str],
        count=len(paths), lot=_TIMES_LOT, processes=processes, few=20 * FEW,
    )  # fmt: skip
    return [path for _, path in sorted(zip(times, paths, strict=True))]


def prepare_files(given: str, paths: Sequence[str]) -> list[Prepared]:
    """Prepare some files, in this or another process; ``given`` is the language and ``base``, separated by a space."""
    language, _, base = given.partition(" ")
    return [prepare(base, path, language) for path in paths]


def examine_files(base: str, paths: Sequence[str]) -> list[ExaminedFile]:
    """Examine some files, in this or another process."""
    return [_examine(base, path) for path in paths]


def creation_times(base: str, paths: Sequence[str]) -> list[str]:
    """Return the creation times of the chunks in some files, without decoding the files; empty if not found."""
    return [_created_at(base, path) for path in paths]


# --- one file --------------------------------------------------------------------------------------------------


def _examine(base: str, path: str) -> ExaminedFile:
    found = ExaminedFile(path)
    folder, _, name = path.rpartition("/")
    try:
        data, found.signature = read_signed(f"{base}/{path}")
        chunk = decode_chunk(data)
    except FileNotFoundError:
        return found
    except OSError as error:
        found.problem = error.strerror or str(error)
        return found
    except InvalidChunk as error:
        found.problem, found.invalid = error.message, True
        return found
    if folder.startswith(_VERSIONS):
        return found
    found.id = chunk.id
    if is_misnamed(chunk, name):
        found.problem = MISNAMED
        return found
    from rlm_mem.text.tokens import count_tokens

    found.type, found.revision = chunk.type, chunk.revision
    found.tokens, found.counted = chunk.tokens, count_tokens(chunk.content)
    found.content_hash = content_hash(chunk.content)
    found.hash_is_right = found.content_hash == chunk.metadata.content_hash
    found.superseded_by = chunk.metadata.superseded_by
    found.validity = (chunk.metadata.valid_from, chunk.metadata.valid_to)
    found.links = [(link.target_id, link.type) for link in chunk.links]
    return found


def prepare(base: str, path: str, language: str) -> Prepared:
    """Read the chunk file ``path`` (relative to ``base``); segments are made only for an active chunk."""
    try:
        data, read = read_signed(f"{base}/{path}")
    except FileNotFoundError:
        return Prepared(path)
    except OSError as error:
        return Prepared(
            path, signature(f"{base}/{path}") or NO_SIGNATURE, problem=error.strerror or str(error)
        )
    found = Prepared(path, read)
    try:
        chunk = chunk_in(data, path.rpartition("/")[2])
    except InvalidChunk as error:
        found.problem = str(error)
        return found
    actual = content_hash(chunk.content)
    if actual != chunk.metadata.content_hash or chunk.tokens == 0:
        from rlm_mem.text.tokens import count_tokens

        # Edited by hand: the index gets the values of the actual text; `check` offers to correct the file's fields.
        chunk.metadata.content_hash = actual
        chunk.tokens = count_tokens(chunk.content)
    found.entry = entry_of(chunk)
    if not path.startswith("archive/"):
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
