"""Links and counts over HTTP: links, neighbours, tags, conversations, timeline, figures."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from rlm_mem.chunk import STATED_LINK_TYPES, SUPERSEDES
from rlm_mem.chunk.types import Direction
from rlm_mem.errors import NotFoundError
from rlm_mem.operations.chunks import ChunkPage, TimelineQuery, page_of_chunks
from rlm_mem.operations.consent import AskedPerson, ask_to_replace, persons
from rlm_mem.operations.fitting import Bounded, MayBeCut, Reply
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.problems import refused
from rlm_mem.operations.shapes import ChunkOut, Neighbour, fill, iso
from rlm_mem.operations.traits import chunk_reply, etag, matched, page_of
from rlm_mem.operations.types import (
    ChunkId,
    Confidence,
    Cursor,
    Limit,
    LinkType,
    LongText,
    Request,
    TypeFilter,
    about,
)

_GROUP = "links"
_STATED = ", ".join(STATED_LINK_TYPES)


class LinkQuery(Bounded, kw_only=True):
    """Which links to list."""

    type: TypeFilter | None = None
    direction: Annotated[Direction, about("From the chunk, to it, or both.")] = "both"
    limit: Limit = 50


class LinkRequest(Request):
    """Strength of a link, and the reason for it."""

    strength: Annotated[Confidence, about("Strength, 0 to 1.")] = 0.5
    reasoning: Annotated[LongText, about("Why they are linked.")] | None = None


class SupersedeRequest(Request):
    """What replaces a chunk, and why."""

    by: Annotated[ChunkId, about("The chunk that replaces it.")]
    reason: Annotated[LongText, about("Why it is replaced.")] | None = None
    confidence: Annotated[Confidence, about("How sure that is, 0 to 1.")] = 1.0
    force: Annotated[bool, about("Even if the chunk is newer than what replaces it.")] = False


class UnlinkQuery(Request):
    """Which links to remove."""

    type: Annotated[TypeFilter, about("By default links of every type.")] | None = None


class Links(MayBeCut):
    """Linked chunks, strongest first."""

    items: list[Neighbour]


class LinkState(Struct):
    """A link as it is now. With ``note`` it is not made: a person is asked whether the source replaces the target."""

    source_id: str
    target_id: str
    type: str
    strength: float
    reasoning: str | None
    note: str | UnsetType = UNSET


class Unlinked(Struct):
    """How many links were removed."""

    removed: int


class NeighbourQuery(Request):
    """How many neighbours."""

    before: Annotated[int, Meta(ge=0, le=100)] = 1
    after: Annotated[int, Meta(ge=0, le=100)] = 1


class Neighbours(Struct):
    """Ids of chunks before and after a chunk in its conversation, both in reading order."""

    before: list[str]
    after: list[str]


class CountQuery(Request):
    """Which page of a list of counts."""

    limit: Limit = 50
    cursor: Cursor | None = None


class TagCount(Struct):
    """A tag, and the number of chunks with it."""

    tag: str
    count: int


class TagPage(Struct):
    """Tags, most frequent first; ``next_cursor`` is null on the last page."""

    items: list[TagCount]
    next_cursor: str | None


class ConversationOut(Struct):
    """A conversation: its number of chunks, and the times of the first and last."""

    id: str
    count: int
    first_at: str
    last_at: str


class ConversationPage(Struct):
    """Conversations, most recently active first; ``next_cursor`` is null on the last page."""

    items: list[ConversationOut]
    next_cursor: str | None


class Figures(Struct):
    """Figures of the memory; sizes in megabytes."""

    namespace: str
    chunk_count: int
    archived_count: int
    total_tokens: int
    storage_size_mb: float
    by_type: dict[str, int]
    tags: int
    conversations: int
    links: int
    first_at: str | None
    last_at: str | None
    more: dict[str, Any]


class LinkArguments(LinkRequest, kw_only=True):
    """The tool's arguments."""

    source_id: ChunkId
    target_id: ChunkId
    type: Annotated[LinkType, about(f"{_STATED}.")]


def _require_chunk(context: Context, chunk_id: str) -> None:
    if not context.memory.store.exists(chunk_id):
        raise NotFoundError(f"there is no chunk {chunk_id}")


def _list(context: Context, request: LinkQuery) -> Links:
    chunk_id = context.path["chunk_id"]
    _require_chunk(context, chunk_id)
    found = context.memory.store.linked(chunk_id, request.type, request.direction, limit=request.limit)
    return Links([fill(Neighbour, link) for link in found])


def link(context: Context, request: LinkRequest) -> Reply[LinkState]:
    """Link two chunks; also a step of a batch."""
    source, target, kind = context.path["chunk_id"], context.path["target_id"], context.path["link_type"]
    if source == target:
        raise refused(409, f"{source} cannot be linked to itself")
    context.check_owned([source, target])
    made = LinkState(source, target, kind, request.strength, request.reasoning)
    if kind == SUPERSEDES and (asked := persons(context, [target])):
        with matched(context):
            _require_chunk(context, source)
            made.note = ask_to_replace(context, source, list(asked.values()), request.reasoning).note
        return Reply(made, status=202)
    with matched(context):
        _require_chunk(context, source)
        _require_chunk(context, target)
        context.memory.link(source, target, kind, request.strength, request.reasoning)
        chunk = context.memory.store.get_chunk(source, track=False)
    headers = {"ETag": etag(chunk)} if chunk is not None else {}
    return Reply(made, headers=headers)


def supersede(context: Context, request: SupersedeRequest) -> Reply[Any]:
    """Mark a chunk as superseded by another one, or ask a person whether it is."""
    chunk_id = context.path["chunk_id"]
    if chunk_id == request.by:
        raise refused(409, f"{chunk_id} cannot replace itself")
    if asked := persons(context, [chunk_id]):
        with matched(context):
            _require_chunk(context, request.by)
            made = ask_to_replace(context, request.by, list(asked.values()), request.reason)
        return Reply(made, status=202)
    with matched(context):
        _require_chunk(context, chunk_id)
        _require_chunk(context, request.by)
        chunk = context.memory.supersede(
            chunk_id, request.by, request.reason, confidence=request.confidence, force=request.force
        )
    return chunk_reply(context, chunk)


def unlink(context: Context, request: UnlinkQuery) -> Unlinked:
    """Remove links of a chunk to another; also a step of a batch."""
    with matched(context) as source:
        _require_chunk(context, source)
        return Unlinked(context.memory.unlink(source, context.path["target_id"], request.type))


def _neighbours(context: Context, request: NeighbourQuery) -> Neighbours:
    chunk_id = context.path["chunk_id"]
    _require_chunk(context, chunk_id)
    return Neighbours(*context.memory.store.neighbours(chunk_id, request.before, request.after))


def _tags(context: Context, request: CountQuery) -> TagPage:
    counts = (TagCount(tag, count) for tag, count in context.memory.tags())
    return TagPage(*page_of("tags", counts, lambda one: (-one.count, one.tag), tuple[int, str], request))


def _conversations(context: Context, request: CountQuery) -> ConversationPage:
    found = context.memory.conversations()
    items, cursor = page_of(
        "conversations", found, lambda one: (-one.last_at, one.id), tuple[float, str], request
    )
    return ConversationPage(
        [ConversationOut(one.id, one.count, iso(one.first_at), iso(one.last_at)) for one in items], cursor
    )


def _timeline(context: Context, request: TimelineQuery) -> ChunkPage:
    return page_of_chunks(context.memory.store, request, "timeline")


def _stats(context: Context, _: object) -> Figures:
    found = dict(context.memory.store.get_stats())
    named = {name: found.pop(name) for name in Figures.__struct_fields__ if name != "more"}
    return Figures(**named, more=found)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/chunks/{chunk_id}/links", "listLinks", "Chunks linked with a chunk, strongest first.", _GROUP,
        run=_list,
    ),
    Operation(
        "PUT", "/chunks/{chunk_id}/links/{link_type}/{target_id}", "putLink",
        "Link a chunk to another one, or change the existing link.", _GROUP, run=link, others={202: LinkState},
        writes=True, conditional=True,
        tool=Tool(
            name="link",
            title="Link memories",
            description=f"Link a memory with another, by one of: {_STATED}. With `{SUPERSEDES}`, the source replaces "
            "the target. An existing link gets the new strength and reasoning.",
            request=LinkArguments,
            path={"source_id": "chunk_id", "type": "link_type"},
            aliases={
                **dict.fromkeys(("source", "from", "from_id", "chunk_id"), "source_id"),
                **dict.fromkeys(("target", "to", "to_id"), "target_id"),
                **dict.fromkeys(("link_type", "relation", "kind"), "type"),
                **dict.fromkeys(("reason", "why"), "reasoning"),
            },
        ),
    ),
    Operation(
        "POST", "/chunks/{chunk_id}/supersede", "supersedeChunk", "Supersede a chunk, which is kept, by another one.",
        _GROUP, run=supersede, response=ChunkOut, others={202: AskedPerson}, writes=True, conditional=True,
    ),
    Operation(
        "DELETE", "/chunks/{chunk_id}/links/{target_id}", "deleteLinks",
        "Remove the links from a chunk to another one.", _GROUP, run=unlink, writes=True, conditional=True,
    ),
    Operation(
        "GET", "/chunks/{chunk_id}/neighbours", "getNeighbours",
        "The chunks before and after a chunk in its conversation.", _GROUP, run=_neighbours,
    ),
    Operation("GET", "/tags", "listTags", "Tags with the number of their chunks.", _GROUP, run=_tags, paged=True),
    Operation(
        "GET", "/conversations", "listConversations", "Conversations with number and times of their chunks.", _GROUP,
        run=_conversations, paged=True,
    ),
    Operation(
        "GET", "/timeline", "getTimeline", "Chunks of a period, in order of time.", _GROUP, run=_timeline, paged=True,
    ),
    Operation("GET", "/stats", "getStats", "Figures of the memory.", _GROUP, run=_stats),
)  # fmt: skip
