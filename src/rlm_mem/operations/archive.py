"""Chunks that no read returns, over HTTP: deleted ones in the archive, and those in quarantine until their release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Struct

from rlm_mem.errors import NotFoundError
from rlm_mem.operations.chunks import ArchiveQuery, ChunkPage, IdsArguments, listed_chunks
from rlm_mem.operations.consent import refuse_persons
from rlm_mem.operations.fitting import Bounded, MayBeCut, Reply
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.problems import input_errors_as_conflicts
from rlm_mem.operations.shapes import ChunkOut, chunk_out
from rlm_mem.operations.traits import chunk_reply, in_one_change
from rlm_mem.operations.types import (
    ID_NAMES,
    ChunkId,
    DryRun,
    Limit,
    Line,
    Request,
    ShownTrust,
    Tags,
    about,
)

if TYPE_CHECKING:
    from rlm_mem.store.core.bulk import Wanted

_MAX_LISTED = 200


class RestoreResponse(Struct):
    """Ids of restored chunks, and ids that the archive does not have. ``hidden`` are restored ones that stay hidden,
    since they are in quarantine or have expired.
    """

    restored: list[str]
    missing: list[str]
    hidden: list[str]


def _archive(context: Context, request: ArchiveQuery) -> ChunkPage:
    return listed_chunks(context.memory.store, request, archived=True)


def _archived(context: Context, _: Bounded) -> Reply[ChunkOut]:
    chunk_id = context.path["chunk_id"]
    chunk = context.memory.store.get_archived(chunk_id)
    if chunk is None:
        raise NotFoundError(f"the archive has no chunk {chunk_id}")
    return chunk_reply(context, chunk, archived=True)


def _restore_several(context: Context, request: IdsArguments) -> RestoreResponse:
    restored, missing = in_one_change(
        context, request.ids, lambda one: context.memory.restore(one) is not None
    )
    shown = context.memory.store.existing(restored)
    return RestoreResponse(restored, missing, [one for one in restored if one not in shown])


class ArchiveRequest(DryRun):
    """Which chunks to archive, or to restore: those that match every filter, of which there must be one."""

    conversation_id: Line | None = None
    tags: Annotated[Tags, about("All of them.")] = msgspec.field(default_factory=list)
    source: Annotated[Line, about("A conversation, a path, or a value of `source`, exactly.")] | None = None
    restore: Annotated[bool, about("Restore them from the archive.")] = False


class ArchivedSeveral(MayBeCut):
    """The number of chunks, with the first 200 ids. ``undo`` undoes it."""

    dry_run: bool
    count: int
    chunk_ids: list[str]


def _archive_several(context: Context, request: ArchiveRequest) -> ArchivedSeveral:
    wanted: Wanted = {
        "conversation_id": request.conversation_id, "tags": request.tags, "source": request.source
    }  # fmt: skip
    with input_errors_as_conflicts():
        if not (request.dry_run or request.restore):
            ids = context.memory.archive(**wanted)
            refuse_persons(context, ids, "archive", "delete it by its id, which asks a person")
        ids = context.memory.archive(**wanted, restore=request.restore, dry_run=request.dry_run)
    return ArchivedSeveral(request.dry_run, len(ids), ids[:_MAX_LISTED])


class QuarantineRequest(Request):
    """Why the chunk is hidden."""

    reason: Annotated[Line, about("Why, for the reviewer.")] | None = None


class QuarantineArguments(QuarantineRequest, kw_only=True):
    """The tool's arguments."""

    chunk_id: ChunkId


class ReleaseRequest(Request):
    """The trust of the chunk after its release."""

    trust: Annotated[ShownTrust, about("Default: its trust before the quarantine.")] | None = None


class QuarantineQuery(Request):
    """Maximum number of chunks."""

    limit: Limit = 50


class Quarantined(MayBeCut):
    """Chunks in quarantine, oldest first; ``extra.quarantine`` has the reason."""

    items: list[ChunkOut]


def _quarantine(context: Context, request: QuarantineRequest) -> ChunkOut:
    context.check_owned([context.path["chunk_id"]])
    return chunk_out(context.memory.quarantine(context.path["chunk_id"], request.reason))


def _release(context: Context, request: ReleaseRequest) -> ChunkOut:
    return chunk_out(context.memory.release(context.path["chunk_id"], request.trust))


def _quarantined(context: Context, request: QuarantineQuery) -> Quarantined:
    return Quarantined([chunk_out(one) for one in context.memory.store.quarantined(request.limit)])


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/archive", "listArchive", "List deleted chunks, in order of time.", "chunks", run=_archive, paged=True,
    ),
    Operation(
        "GET", "/archive/{chunk_id}", "getArchived", "Read one deleted chunk.", "chunks", run=_archived, tagged=True,
    ),
    Operation(
        "POST", "/archive", "archiveChunks",
        "Archive or restore all chunks of a conversation, with tags or from a source; by default a dry run.", "chunks",
        run=_archive_several, writes=True,
    ),
    Operation(
        "", "", "restoreChunks", "Restore chunks from the archive, by ids.", "chunks", run=_restore_several,
        writes=True,
        tool=Tool(
            name="restore",
            title="Restore memories",
            description="Restore archived memories by their ids.",
            aliases=ID_NAMES,
            default=False,
        ),
    ),
    Operation("GET", "/quarantine", "listQuarantine", "Chunks in quarantine.", "review", run=_quarantined),
    Operation(
        "POST", "/chunks/{chunk_id}/quarantine", "quarantineChunk", "Hide a chunk from all reads until it is released.",
        "review", run=_quarantine, writes=True,
        tool=Tool(
            name="quarantine",
            title="Put a memory into quarantine",
            description="Hide a memory that looks harmful or false until a person releases it. Give the "
            "reason. You cannot release it yourself.",
            request=QuarantineArguments,
            destructive=True,
            idempotent=False,
            aliases={**dict.fromkeys(("id", "memory_id"), "chunk_id"), "why": "reason"},
            default=False,
        ),
    ),
    Operation(
        "POST", "/chunks/{chunk_id}/release", "releaseChunk", "Release a chunk from quarantine.", "review",
        permission="review", run=_release, writes=True,
    ),
)  # fmt: skip
