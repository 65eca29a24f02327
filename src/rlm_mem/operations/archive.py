"""The archive over HTTP: listing, reading and restoring deleted chunks."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from rlm_mem.errors import NotFoundError
from rlm_mem.operations.chunks import ChunkPage, IdsArguments, Place, page_of_chunks
from rlm_mem.operations.fitting import Bounded, Reply
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.shapes import ChunkOut, chunk_out
from rlm_mem.operations.traits import decode_cursor, etag, not_modified
from rlm_mem.operations.types import Cursor, Limit, Line, Since, TypeFilter, Until

_GROUP = "chunks"


class ArchiveQuery(Bounded, kw_only=True):
    """Which deleted chunks to list."""

    conversation_id: Line | None = None
    start: Since | None = None
    end: Until | None = None
    type: TypeFilter | None = None
    order: Annotated[Literal["oldest", "newest"], Meta(description="Sort order.")] = "oldest"
    limit: Limit = 50
    cursor: Cursor | None = None


class RestoreResponse(Struct):
    """Ids of restored chunks, and ids that the archive does not have."""

    restored: list[str]
    missing: list[str]


def _archive(context: Context, request: ArchiveQuery) -> ChunkPage:
    store = context.memory.store
    ids, after = store.list_page(
        request.limit,
        after=None if request.cursor is None else decode_cursor(request.order, request.cursor, Place),
        conversation_id=request.conversation_id,
        start=request.start,
        end=request.end,
        chunk_type=request.type,
        newest_first=request.order == "newest",
        archived=True,
    )
    chunks = (store.get_archived(chunk_id) for chunk_id in ids)
    return page_of_chunks([chunk for chunk in chunks if chunk is not None], request.order, after)


def _archived(context: Context, _: object) -> Reply:
    chunk_id = context.path["chunk_id"]
    chunk = context.memory.store.get_archived(chunk_id)
    if chunk is None:
        raise NotFoundError(f"the archive has no chunk {chunk_id}")
    if not_modified(context, chunk):
        return Reply(status=304, headers={"ETag": etag(chunk)})
    return Reply(chunk_out(chunk, archived=True), headers={"ETag": etag(chunk)})


def _restore_several(context: Context, request: IdsArguments) -> RestoreResponse:
    ids = list(dict.fromkeys(request.ids))
    with context.memory.batch():
        done = {chunk_id: context.memory.restore(chunk_id) is not None for chunk_id in ids}
    return RestoreResponse([one for one in ids if done[one]], [one for one in ids if not done[one]])


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/archive", "listArchive", "List deleted chunks, in order of time.", _GROUP,
        run=_archive, request=ArchiveQuery, response=ChunkPage, paged=True,
    ),
    Operation(
        "GET", "/archive/{chunk_id}", "getArchived", "Read one deleted chunk.", _GROUP,
        run=_archived, request=Bounded, response=ChunkOut, tagged=True,
    ),
    Operation(
        "", "", "restoreChunks", "Restore chunks from the archive, by ids.", _GROUP,
        run=_restore_several, request=IdsArguments, response=RestoreResponse, writes=True,
        tool=Tool(
            name="restore",
            title="Restore memories",
            description="Restore archived memories by their ids.",
            aliases=dict.fromkeys(("id", "chunk_id", "chunk_ids", "memory_ids"), "ids"),
            default=False,
        ),
    ),
)  # fmt: skip
