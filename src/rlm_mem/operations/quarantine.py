"""Quarantine over HTTP: chunks that no read returns until they are released."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from rlm_mem.operations.fitting import MayBeCut
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.shapes import ChunkOut, chunk_out
from rlm_mem.operations.types import ChunkId, Limit, Line, Request

_GROUP = "review"


class QuarantineRequest(Request):
    """Why the chunk is hidden."""

    reason: Annotated[Line, Meta(description="Why, for the reviewer.")] | None = None


class QuarantineArguments(QuarantineRequest, kw_only=True):
    """The tool's arguments."""

    chunk_id: ChunkId


class ReleaseRequest(Request):
    """The trust of the chunk after its release."""

    trust: (
        Annotated[
            Literal["untrusted", "ordinary", "trusted"],
            Meta(description="Default: its trust before the quarantine."),
        ]
        | None
    ) = None


class QuarantineQuery(Request):
    """Maximum number of chunks."""

    limit: Limit = 50


class Quarantined(MayBeCut):
    """Chunks in quarantine, oldest first; ``extra.quarantine`` has the reason."""

    items: list[ChunkOut]


def _put(context: Context, request: QuarantineRequest) -> ChunkOut:
    context.check_owned([context.path["chunk_id"]])
    return chunk_out(context.memory.quarantine(context.path["chunk_id"], request.reason))


def _release(context: Context, request: ReleaseRequest) -> ChunkOut:
    return chunk_out(context.memory.release(context.path["chunk_id"], request.trust))


def _list(context: Context, request: QuarantineQuery) -> Quarantined:
    return Quarantined([chunk_out(one) for one in context.memory.store.quarantined(request.limit)])


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/quarantine", "listQuarantine", "Chunks in quarantine.", _GROUP,
        run=_list, request=QuarantineQuery, response=Quarantined,
    ),
    Operation(
        "POST", "/chunks/{chunk_id}/quarantine", "quarantineChunk",
        "Hide a chunk from all reads until it is released.", _GROUP,
        run=_put, request=QuarantineRequest, response=ChunkOut, writes=True,
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
        "POST", "/chunks/{chunk_id}/release", "releaseChunk", "Release a chunk from quarantine.", _GROUP,
        permission="review", run=_release, request=ReleaseRequest, response=ChunkOut, writes=True,
    ),
)  # fmt: skip
