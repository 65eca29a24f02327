"""The records that format readers yield: whole chunks, conversations, notes, files, and problems.

``derived_chunks`` makes chunks of a memory of another system: one of a short text, linked parts of a long one, with
stable ids.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import field

from rlm_mem.chunk import Chunk, is_chunk_id
from rlm_mem.config import stored_path
from rlm_mem.errors import InputError
from rlm_mem.record import FrozenRecord, MutableRecord
from rlm_mem.store.core.brain_files import parse_event, with_new_ids

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore


class ImportProblem(FrozenRecord, frozen=True):
    """An item that could not be read: its location (file, and line or entry), and the reason."""

    where: str
    reason: str


class ImportSample(FrozenRecord, frozen=True):
    """One of the chunks that an import would create: its source (file, and line or entry), and its beginning."""

    where: str
    text: str


class ImportNotice(FrozenRecord, frozen=True):
    """A remark for the report: its location, and what to do about it."""

    where: str
    text: str


class ImportedChunk(MutableRecord):
    """One complete chunk with its id and times.

    A ``derived`` chunk comes from a format without chunks: its id is computed from its origin, and a change of the
    source changes the content of the stored chunk.
    """

    chunk: Chunk
    where: str
    archived: bool = False
    original_id: str | None = None
    derived: bool = False
    names_namespace: bool = True


class ChatMessage(MutableRecord):
    """One message of a conversation; ``at`` is an ISO time."""

    author: str
    text: str
    at: str | None = None


class Dialogue(MutableRecord):
    """Consecutive messages of one conversation; ``key`` identifies it within its source, ``part`` counts from 0."""

    key: str
    conversation_id: str
    messages: list[ChatMessage]
    where: str
    part: int = 0
    tags: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


class Note(MutableRecord):
    """A plain text, to be chunked.

    ``key`` identifies it within its conversation, so that a change of the source replaces the former text; empty:
    it is the only note of the conversation. ``aliases``: other names by which wiki links call it. ``sections``: each
    section of it is a memory of its own, however short.
    """

    key: str
    conversation_id: str
    text: str
    where: str
    at: str | None = None
    tags: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    aliases: list[str] = field(default_factory=list)
    sections: bool = False


class Asset(MutableRecord):
    """A brain file that is written as it is: a personality, a tiered memory, a trajectory.

    ``place`` is its path in a brain folder.
    """

    place: str
    data: bytes
    where: str


class ImportedVersion(MutableRecord):
    """A former version of a chunk."""

    chunk: Chunk
    where: str


class ImportedEvent(MutableRecord):
    """An event of an audit log."""

    event: dict[str, Any]
    where: str


Record = (
    ImportedChunk | Dialogue | Note | Asset | ImportedVersion | ImportedEvent | ImportNotice | ImportProblem
)

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]+")


def mapped_id(original: object, scope: str = "") -> str:
    """Return a readable chunk id derived deterministically from another id.

    Args:
        original: the id in the source; a chunk id is returned unchanged, unless there is a scope.
        scope: distinguishes equal ids of several sources.
    """
    if is_chunk_id(original) and not scope:
        return str(original)
    text = str(original)
    slug = _NOT_ALLOWED.sub("-", text.removeprefix("chunk-")).strip("-_")[:60]
    digest = hashlib.sha256(f"{scope}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"chunk-{slug}-{digest}" if slug else f"chunk-{digest}"


def references(chunk: Chunk) -> set[str]:
    """Return the ids of other chunks that a chunk names: those that it links to, and the one that replaced it."""
    by = chunk.metadata.superseded_by
    return {*(link.target_id for link in chunk.links), *(() if by is None else (by,))}


def rename_references(record: Chunk | Asset | ImportedEvent, names: Mapping[str, str]) -> None:
    """Replace the ids of chunks that a record names by their new ids: a chunk's ``references``, a file's anywhere.

    The content of a chunk, by whose hash it is found again, stays as it is, and its own id does.
    """
    if not names:
        return
    if isinstance(record, Chunk):
        for link in record.links:
            link.target_id = names.get(link.target_id, link.target_id)
        by = record.metadata.superseded_by
        record.metadata.superseded_by = None if by is None else names.get(by, by)
    elif isinstance(record, Asset):
        record.data = with_new_ids(record.data, names)
    else:
        record.event = parse_event(with_new_ids(msgspec.json.encode(record.event), names)) or record.event


def conversation_of(path: str) -> str:
    """Return the conversation of the text of a file, as ``remember --file`` names it."""
    cleaned = f"file:{path}"
    if not cleaned.isprintable():
        cleaned = "".join(char if char.isprintable() else "\ufffd" for char in cleaned)
    if len(cleaned) <= 900:
        return cleaned
    return f"{cleaned[:800]}~{hashlib.sha256(cleaned.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def file_conversation(store: ChunkStore | None, path: str) -> str:
    """Return the conversation of a file at an absolute path; what an earlier version stored keeps its name.

    Without a store, ``path`` is another name of the file.
    """
    former = conversation_of(path)
    named = former if store is None else conversation_of(stored_path(path))
    return former if store is None or (former != named and store.list_chunks(former, limit=1)) else named


def relocate(record: Dialogue | Note | ImportedChunk, within: Callable[[str], str]) -> None:
    """Name the location of a record in the provenance of its chunks by its path within the source."""
    if not isinstance(record, ImportedChunk):
        record.where = within(record.where)
    elif record.derived and isinstance(path := record.chunk.metadata.provenance.get("path"), str):
        record.chunk.metadata.provenance = {**record.chunk.metadata.provenance, "path": within(path)}


def derived_chunks(
    scope: str,
    original: str,
    text: str,
    where: str,
    *,
    metadata: Mapping[str, Any],
    tags: Sequence[str] = (),
    archived: bool = False,
    conversation: str | None = None,
) -> Iterator[ImportedChunk | ImportProblem]:
    """Yield one memory as one or more chunks, depending on its length; each part follows the one before.

    Args:
        scope: the system it comes from, which distinguishes its ids from those of others.
        original: its id in that system.
        text: its text, without lone surrogates; not empty.
        where: its location in the source.
        metadata: fields of the chunks, including ``created_at``.
        conversation: the conversation of several parts, if ``metadata`` names none.
    """
    from rlm_mem.ingest.chunking import ChunkingEngine

    pieces = ChunkingEngine(100, 500, target_tokens=250, overlap_tokens=0).chunk(text)
    first_id = mapped_id(original, scope)
    conversation_id = metadata.get("conversation_id") or (conversation if len(pieces) > 1 else None)
    before = ""
    for piece in pieces:
        part = first_id if piece.index == 0 else f"{first_id}-p{piece.index + 1}"
        links = (
            [{"target_id": before, "type": "follows", "created_at": metadata["created_at"]}] if before else []
        )
        try:
            chunk = Chunk.from_dict(
                {
                    "id": part,
                    "content": piece.content,
                    "tokens": piece.tokens,
                    "type": piece.type,
                    "tags": list(tags),
                    "links": links,
                    "metadata": {
                        "source": "import",
                        **metadata,
                        "conversation_id": conversation_id,
                        "provenance": {"path": where, "span": [piece.start, piece.end]},
                    },
                }
            )
        except InputError as error:
            yield ImportProblem(where, str(error))
            return
        yield ImportedChunk(chunk, where, archived, original_id=original, derived=True, names_namespace=False)
        before = part
