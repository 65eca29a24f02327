"""Chunks over HTTP: create, read, list, change, delete, restore, history and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field, structs

from rlm_mem.chunk import parse_time
from rlm_mem.errors import NotFoundError
from rlm_mem.operations.etags import etag, matched, not_modified
from rlm_mem.operations.operation import Ask, Endpoint, Reply
from rlm_mem.operations.paging import decode_cursor, encode_cursor
from rlm_mem.operations.problems import Refused, problem
from rlm_mem.operations.shapes import ChunkOut, ChunkSummary, chunk_out, summary_of
from rlm_mem.operations.types import (
    ChunkType,
    Confidence,
    Content,
    Cursor,
    Extra,
    Limit,
    Line,
    Query,
    Request,
    Revision,
    Secrets,
    Tag,
    Tags,
    Time,
    TypeFilter,
)

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.chunk_store import Summary
    from rlm_mem.text.secrets import Screened

__all__ = [
    "ENDPOINTS", "PREFIX", "ChunkChange", "ChunkPage", "NewChunk", "RememberRequest", "Remembered", "UndoRequest",
    "change", "create", "delete", "remember", "restore", "undo",
]  # fmt: skip

PREFIX = "/api/v1"
_GROUP = "chunks"
_Place = tuple[float, int]


class RememberRequest(Request):
    """Text of any length: it is cut into chunks, typed, linked, and stored once."""

    text: Annotated[Content, Meta(description="What to remember.")]
    conversation_id: Line | None = None
    tags: Tags | Tag | None = None
    confidence: Annotated[Confidence, Meta(description="How sure it is, 0 to 1.")] = 0.7
    type: ChunkType | None = None
    source: Line = "interaction"
    occurred_at: Time | None = None
    extra: Extra | None = None
    provenance: Extra | None = None
    secrets: Secrets | None = None


class Remembered(Struct):
    """What was stored; ``duplicates`` were there already. ``secrets`` counts by rule what looks like a key or password,
    ``secrets_hidden`` how many of them are stored as ``[redacted:RULE]``; the others stand in clear.
    """

    chunk_ids: list[str]
    chunks_created: int
    total_tokens: int
    duplicates: list[str]
    secrets: dict[str, int]
    secrets_hidden: int


class ChunkWritten(ChunkOut):
    """A chunk as it was written; where there were secrets in what came, with the counts of Remembered."""

    secrets: dict[str, int] | UnsetType = UNSET
    secrets_hidden: int | UnsetType = UNSET


class NewChunk(Request):
    """One chunk, stored as it is given."""

    content: Annotated[str, Meta(min_length=1, max_length=200_000, pattern=r"\S")]
    type: ChunkType = "note"
    tags: Tags | Tag | None = None
    confidence: Confidence = 0.7
    conversation_id: Line | None = None
    source: Line = "interaction"
    occurred_at: Time | None = None
    valid_from: Time | None = None
    valid_to: Time | None = None
    extra: Extra | None = None
    provenance: Extra | None = None
    secrets: Secrets | None = None


class ChunkChange(Request):
    """What is to change; what is left out or null stays as it is."""

    content: Annotated[str, Meta(min_length=1, max_length=200_000, pattern=r"\S")] | None = None
    type: ChunkType | None = None
    tags: Annotated[Tags | Tag, Meta(description="In place of those that are there.")] | None = None
    confidence: Confidence | None = None
    conversation_id: Line | None = None
    source: Line | None = None
    occurred_at: Time | None = None
    valid_from: Time | None = None
    valid_to: Time | None = None
    extra: Annotated[Extra, Meta(description="Merged with the fields that are there.")] | None = None
    secrets: Secrets | None = None


class UndoRequest(Request):
    """Which version to bring back."""

    to_revision: Annotated[Revision, Meta(description="By default the one before the present.")] | None = None


class ReadQuery(Query):
    """How to read a chunk."""

    track: Annotated[bool, Meta(description="Count this read.")] = True


class DeleteQuery(Query):
    """How to delete a chunk."""

    permanent: Annotated[bool, Meta(description="Remove it for good, with its versions.")] = False


class ListQuery(Query):
    """Which chunks to list."""

    conversation_id: Line | None = None
    start: Annotated[Time, Meta(description="Only from this time on.")] | None = None
    end: Annotated[Time, Meta(description="Only up to this time; a day is included.")] | None = None
    tag: Annotated[Tags, Meta(description="All of these must be there.")] = field(default_factory=list)
    any_tag: Annotated[Tags, Meta(description="At least one of these must be there.")] = field(
        default_factory=list
    )
    type: TypeFilter | None = None
    order: Annotated[Literal["oldest", "newest"], Meta(description="Which come first.")] = "oldest"
    limit: Limit = 50
    cursor: Cursor | None = None


class ArchiveQuery(Query):
    """Which deleted chunks to list."""

    conversation_id: Line | None = None
    start: Annotated[Time, Meta(description="Only from this time on.")] | None = None
    end: Annotated[Time, Meta(description="Only up to this time; a day is included.")] | None = None
    type: TypeFilter | None = None
    order: Annotated[Literal["oldest", "newest"], Meta(description="Which come first.")] = "oldest"
    limit: Limit = 50
    cursor: Cursor | None = None


class ChunkPage(Struct):
    """A page of summaries; ``next_cursor`` is null on the last one."""

    items: list[ChunkSummary]
    next_cursor: str | None


class VersionOut(Struct):
    """One state of a chunk; ``current`` marks the present one."""

    revision: int
    modified_at: str
    current: bool
    chunk: ChunkOut


class Versions(Struct):
    """Every kept version, the oldest first."""

    items: list[VersionOut]


class Reads(Struct):
    """How often a chunk was read, and when last."""

    access_count: int
    accessed_at: str


def _found(chunk: Chunk | None, chunk_id: str) -> Chunk:
    if chunk is None:
        raise NotFoundError(f"there is no chunk {chunk_id}", hint="A deleted one is below /archive.")
    return chunk


def _told(chunk: Chunk, status: int | None = None, **headers: str) -> Reply:
    return Reply(chunk_out(chunk), status, {"ETag": etag(chunk), **headers})


def _written(chunk: Chunk, found: list[Screened], **headers: str) -> Reply:
    shown = ChunkWritten(**structs.asdict(chunk_out(chunk)))
    if found:
        report = found[0].report()
        shown.secrets, shown.secrets_hidden = dict(report.rules), report.count if report.hidden else 0
    return Reply(shown, None, {"ETag": etag(chunk), **headers})


def remember(ask: Ask) -> Remembered:
    """Remember a text; also a step of a batch, as all of these."""
    given: RememberRequest = ask.body
    made = ask.memory.remember(
        given.text,
        conversation_id=given.conversation_id,
        tags=given.tags,
        confidence=given.confidence,
        chunk_type=given.type,
        source=given.source,
        occurred_at=given.occurred_at,
        metadata={"extra": given.extra} if given.extra else None,
        provenance=given.provenance,
        secrets=given.secrets,
    )
    return Remembered(
        chunk_ids=made.chunk_ids,
        chunks_created=made.created,
        total_tokens=made.tokens,
        duplicates=made.duplicates,
        secrets=dict(made.secrets.rules),
        secrets_hidden=made.secrets.count if made.secrets.hidden else 0,
    )


def _check_period(valid_from: str | None, valid_to: str | None) -> None:
    """Two times that are each in order may not fit each other: that is no matter of the schema."""
    if valid_from and valid_to and parse_time(valid_from) > parse_time(valid_to):
        raise Refused(problem(409, f"valid_from {valid_from} is after valid_to {valid_to}"))


def create(ask: Ask) -> Reply:
    """Store one chunk as it is given."""
    given: NewChunk = ask.body
    _check_period(given.valid_from, given.valid_to)
    found: list[Screened] = []
    chunk = ask.memory.store.create_chunk(
        given.content,
        type=given.type,
        metadata={"extra": given.extra} if given.extra else None,
        tags=given.tags,
        confidence=given.confidence,
        conversation_id=given.conversation_id,
        source=given.source,
        occurred_at=given.occurred_at,
        valid_from=given.valid_from,
        valid_to=given.valid_to,
        provenance=given.provenance,
        secrets=given.secrets,
        on_secret=found.append,
    )
    return _written(chunk, found, Location=f"{PREFIX}/chunks/{chunk.id}")


def _read(ask: Ask) -> Reply:
    chunk_id, query = ask.path["chunk_id"], ask.query
    chunk = _found(ask.memory.store.get_chunk(chunk_id, track=query.track), chunk_id)
    if not_modified(ask, chunk):
        return Reply(status=304, headers={"ETag": etag(chunk)})
    return _told(chunk)


def _reads(ask: Ask) -> Reads:
    chunk_id = ask.path["chunk_id"]
    about = _found(ask.memory.store.get_chunk(chunk_id, track=False), chunk_id).metadata
    return Reads(about.access_count, about.accessed_at)


def change(ask: Ask) -> Reply:
    """Change a chunk."""
    chunk_id: str = ask.path["chunk_id"]
    given: ChunkChange = ask.body
    about: dict[str, Any] = {
        name: value
        for name in ("conversation_id", "source", "occurred_at", "valid_from", "valid_to", "extra")
        if (value := getattr(given, name)) is not None
    }
    found: list[Screened] = []
    with matched(ask, chunk_id):
        if given.valid_from or given.valid_to:
            present = _found(ask.memory.store.get_chunk(chunk_id, track=False), chunk_id).metadata
            _check_period(given.valid_from or present.valid_from, given.valid_to or present.valid_to)
        chunk = ask.memory.store.update_chunk(
            chunk_id,
            content=given.content,
            metadata=about or None,
            tags=given.tags,
            confidence=given.confidence,
            chunk_type=given.type,
            secrets=given.secrets,
            on_secret=found.append,
        )
    return _written(_found(chunk, chunk_id), found)


def delete(ask: Ask) -> Reply:
    """Archive a chunk, or remove it for good."""
    chunk_id = ask.path["chunk_id"]
    with matched(ask, chunk_id):
        if not ask.memory.delete(chunk_id, ask.query.permanent):
            raise NotFoundError(f"there is no chunk {chunk_id}")
    return Reply(status=204)


def restore(ask: Ask) -> Reply:
    """Bring a chunk back from the archive."""
    chunk_id = ask.path["chunk_id"]
    with matched(ask, chunk_id, archived=True):
        chunk = ask.memory.restore(chunk_id)
    if chunk is None and ask.memory.store.exists(chunk_id):
        raise Refused(
            problem(409, f"{chunk_id} is not in the archive: it was never deleted, or is back already")
        )
    if chunk is None:
        raise NotFoundError(f"the archive has no chunk {chunk_id}")
    return _told(chunk)


def _history(ask: Ask) -> Versions:
    versions = ask.memory.history(ask.path["chunk_id"])
    if not versions:
        raise NotFoundError(f"there is no chunk {ask.path['chunk_id']}")
    return Versions(
        [VersionOut(one.revision, one.modified_at, one.current, chunk_out(one.chunk)) for one in versions]
    )


def undo(ask: Ask) -> Reply:
    """Bring back a former version."""
    chunk_id = ask.path["chunk_id"]
    with matched(ask, chunk_id):
        chunk = ask.memory.undo(chunk_id, to_revision=ask.body.to_revision)
    if chunk is None:
        raise NotFoundError(f"{chunk_id} has no such version", hint="Its history lists those that were kept.")
    return _told(chunk)


def _list(ask: Ask) -> ChunkPage:
    query: ListQuery = ask.query
    ids, after = ask.memory.store.list_page(
        query.limit,
        after=None if query.cursor is None else decode_cursor(query.order, query.cursor, _Place),
        conversation_id=query.conversation_id,
        start=query.start,
        end=query.end,
        tags=query.tag,
        any_tags=query.any_tag,
        chunk_type=query.type,
        newest_first=query.order == "newest",
    )
    return _page(ask.memory.store.summaries(ids), query.order, after)


def _archive(ask: Ask) -> ChunkPage:
    query: ArchiveQuery = ask.query
    store = ask.memory.store
    ids, after = store.list_page(
        query.limit,
        after=None if query.cursor is None else decode_cursor(query.order, query.cursor, _Place),
        conversation_id=query.conversation_id,
        start=query.start,
        end=query.end,
        chunk_type=query.type,
        newest_first=query.order == "newest",
        archived=True,
    )
    chunks = (store.get_archived(chunk_id) for chunk_id in ids)
    return _page([chunk for chunk in chunks if chunk is not None], query.order, after)


def _page(found: list[Summary] | list[Chunk], order: str, after: _Place | None) -> ChunkPage:
    return ChunkPage(
        [summary_of(one) for one in found], None if after is None else encode_cursor(order, *after)
    )


def _archived(ask: Ask) -> Reply:
    chunk_id = ask.path["chunk_id"]
    chunk = ask.memory.store.get_archived(chunk_id)
    if chunk is None:
        raise NotFoundError(f"the archive has no chunk {chunk_id}")
    if not_modified(ask, chunk):
        return Reply(status=304, headers={"ETag": etag(chunk)})
    return Reply(chunk_out(chunk, archived=True), headers={"ETag": etag(chunk)})


_MADE = {"chunk_id": "$response.body#/id"}
_NEXT = dict.fromkeys(
    ("getChunk", "updateChunk", "deleteChunk", "getHistory", "undoChunk", "getReads", "listLinks", "getNeighbours",
     "getMarkdown"),
    _MADE,
)  # fmt: skip

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST", "/remember", "remember", "Remember text of any length, in one commit.", _GROUP,
        run=remember, takes=RememberRequest, gives=Remembered, writes=True,
    ),
    Endpoint(
        "GET", "/chunks", "listChunks", "List chunks by filter, in order of time.", _GROUP,
        run=_list, query=ListQuery, gives=ChunkPage, paged=True,
    ),
    Endpoint(
        "POST", "/chunks", "createChunk", "Store one chunk as it is given.", _GROUP,
        run=create, takes=NewChunk, gives=ChunkWritten, status=201, writes=True, links={201: _NEXT},
    ),
    Endpoint(
        "GET", "/chunks/{chunk_id}", "getChunk", "Read one chunk whole.", _GROUP,
        run=_read, query=ReadQuery, gives=ChunkOut, tagged=True,
    ),
    Endpoint(
        "PATCH", "/chunks/{chunk_id}", "updateChunk", "Change a chunk; its former version is kept.", _GROUP,
        run=change, takes=ChunkChange, gives=ChunkWritten, writes=True, conditional=True,
    ),
    Endpoint(
        "DELETE", "/chunks/{chunk_id}", "deleteChunk", "Move a chunk to the archive, or remove it for good.",
        _GROUP, run=delete, query=DeleteQuery, status=204, writes=True, conditional=True,
    ),
    Endpoint(
        "POST", "/chunks/{chunk_id}/restore", "restoreChunk", "Bring a chunk back from the archive.", _GROUP,
        run=restore, gives=ChunkOut, writes=True, conditional=True,
    ),
    Endpoint(
        "GET", "/chunks/{chunk_id}/history", "getHistory", "Every kept version of a chunk.", _GROUP,
        run=_history, gives=Versions,
    ),
    Endpoint(
        "POST", "/chunks/{chunk_id}/undo", "undoChunk", "Bring back a former version as a new revision.",
        _GROUP, run=undo, takes=UndoRequest, gives=ChunkOut, writes=True, conditional=True,
    ),
    Endpoint(
        "GET", "/chunks/{chunk_id}/reads", "getReads", "How often a chunk was read.", _GROUP,
        run=_reads, gives=Reads,
    ),
    Endpoint(
        "GET", "/archive", "listArchive", "List deleted chunks, in order of time.", _GROUP,
        run=_archive, query=ArchiveQuery, gives=ChunkPage, paged=True,
    ),
    Endpoint(
        "GET", "/archive/{chunk_id}", "getArchived", "Read one deleted chunk.", _GROUP,
        run=_archived, gives=ChunkOut, tagged=True,
    ),
)  # fmt: skip
