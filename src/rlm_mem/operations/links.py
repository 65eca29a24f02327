"""Links and what is counted over HTTP: links, neighbours, tags, conversations, timeline, figures."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from rlm_mem.errors import NotFoundError
from rlm_mem.operations.chunks import ChunkPage
from rlm_mem.operations.etags import etag, matched
from rlm_mem.operations.operation import Ask, Endpoint, Reply
from rlm_mem.operations.paging import decode_cursor, encode_cursor, page_of
from rlm_mem.operations.problems import Refused, problem
from rlm_mem.operations.shapes import Neighbour, iso, neighbour, summary_of
from rlm_mem.operations.types import Confidence, Cursor, Limit, LongText, Query, Request, Time, TypeFilter

__all__ = ["ENDPOINTS", "LinkRequest", "LinkState", "link", "unlink"]

_GROUP = "links"
_Place = tuple[float, int]


class LinkQuery(Query):
    """Which links to list."""

    type: TypeFilter | None = None
    direction: Annotated[
        Literal["out", "in", "both"], Meta(description="From the chunk, to it, or both.")
    ] = "both"
    limit: Limit = 50


class LinkRequest(Request):
    """How strong a link is, and why it is there."""

    strength: Annotated[Confidence, Meta(description="0 to 1.")] = 0.5
    reasoning: LongText | None = None


class UnlinkQuery(Query):
    """Which links to remove."""

    type: Annotated[TypeFilter, Meta(description="By default links of every type.")] | None = None


class Links(Struct):
    """Linked chunks, the strongest first."""

    items: list[Neighbour]


class LinkState(Struct):
    """A link as it stands now."""

    source_id: str
    target_id: str
    type: str
    strength: float
    reasoning: str | None


class Unlinked(Struct):
    """How many links were removed."""

    removed: int


class NeighbourQuery(Query):
    """How many neighbours."""

    before: Annotated[int, Meta(ge=0, le=100)] = 1
    after: Annotated[int, Meta(ge=0, le=100)] = 1


class Neighbours(Struct):
    """Ids around a chunk in its conversation, both in reading order."""

    before: list[str]
    after: list[str]


class CountQuery(Query):
    """Which page of a list of counts."""

    limit: Limit = 50
    cursor: Cursor | None = None


class TagCount(Struct):
    """A tag and how many chunks carry it."""

    tag: str
    count: int


class TagPage(Struct):
    """Tags, the commonest first; ``next_cursor`` is null on the last page."""

    items: list[TagCount]
    next_cursor: str | None


class ConversationOut(Struct):
    """A conversation: how many chunks, and the times of its first and last."""

    id: str
    count: int
    first_at: str
    last_at: str


class ConversationPage(Struct):
    """Conversations, the most recently active first; ``next_cursor`` is null on the last page."""

    items: list[ConversationOut]
    next_cursor: str | None


class TimelineQuery(Query):
    """Which period."""

    start: Annotated[Time, Meta(description="Only from this time on.")] | None = None
    end: Annotated[Time, Meta(description="Only up to this time; a day is included.")] | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


class Figures(Struct):
    """How much is remembered; sizes in megabytes."""

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


def _there(ask: Ask, chunk_id: str) -> None:
    if not ask.memory.store.exists(chunk_id):
        raise NotFoundError(f"there is no chunk {chunk_id}")


def _list(ask: Ask) -> Links:
    chunk_id, query = ask.path["chunk_id"], ask.query
    _there(ask, chunk_id)
    found = ask.memory.store.linked(chunk_id, query.type, query.direction, limit=query.limit)
    return Links([neighbour(link) for link in found])


def link(ask: Ask) -> Reply:
    """Link two chunks; also a step of a batch."""
    source, target, kind = ask.path["chunk_id"], ask.path["target_id"], ask.path["link_type"]
    given: LinkRequest = ask.body
    if source == target:
        raise Refused(problem(409, f"{source} cannot be linked to itself"))
    with matched(ask, source):
        _there(ask, source)
        _there(ask, target)
        ask.memory.link(source, target, kind, given.strength, given.reasoning)
        chunk = ask.memory.store.get_chunk(source, track=False)
    headers = {"ETag": etag(chunk)} if chunk is not None else {}
    return Reply(LinkState(source, target, kind, given.strength, given.reasoning), headers=headers)


def unlink(ask: Ask) -> Unlinked:
    """Remove links of a chunk to another; also a step of a batch."""
    source, target = ask.path["chunk_id"], ask.path["target_id"]
    with matched(ask, source):
        _there(ask, source)
        return Unlinked(ask.memory.unlink(source, target, ask.query.type))


def _neighbours(ask: Ask) -> Neighbours:
    chunk_id = ask.path["chunk_id"]
    _there(ask, chunk_id)
    return Neighbours(*ask.memory.store.neighbours(chunk_id, ask.query.before, ask.query.after))


def _tags(ask: Ask) -> TagPage:
    counts = [TagCount(tag, count) for tag, count in ask.memory.tags()]
    counts.sort(key=lambda one: (-one.count, one.tag))
    return TagPage(
        *page_of(
            "tags",
            counts,
            lambda one: (-one.count, one.tag),
            tuple[int, str],
            ask.query.cursor,
            ask.query.limit,
        )
    )


def _conversations(ask: Ask) -> ConversationPage:
    found = sorted(ask.memory.conversations(), key=lambda one: (-one.last_at, one.id))
    items, cursor = page_of(
        "conversations",
        found,
        lambda one: (-one.last_at, one.id),
        tuple[float, str],
        ask.query.cursor,
        ask.query.limit,
    )
    return ConversationPage(
        [ConversationOut(one.id, one.count, iso(one.first_at), iso(one.last_at)) for one in items], cursor
    )


def _timeline(ask: Ask) -> ChunkPage:
    query: TimelineQuery = ask.query
    ids, after = ask.memory.store.list_page(
        query.limit,
        after=None if query.cursor is None else decode_cursor("timeline", query.cursor, _Place),
        start=query.start,
        end=query.end,
    )
    return ChunkPage(
        [summary_of(one) for one in ask.memory.store.summaries(ids)],
        None if after is None else encode_cursor("timeline", *after),
    )


def _stats(ask: Ask) -> Figures:
    found = dict(ask.memory.store.get_stats())
    named = {name: found.pop(name) for name in Figures.__struct_fields__ if name != "more"}
    return Figures(**named, more=found)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", "/chunks/{chunk_id}/links", "listLinks", "Chunks linked with a chunk, the strongest first.",
        _GROUP, run=_list, query=LinkQuery, gives=Links,
    ),
    Endpoint(
        "PUT", "/chunks/{chunk_id}/links/{link_type}/{target_id}", "putLink",
        "Link a chunk to another one, or change the link that is there.", _GROUP,
        run=link, takes=LinkRequest, gives=LinkState, writes=True, conditional=True,
    ),
    Endpoint(
        "DELETE", "/chunks/{chunk_id}/links/{target_id}", "deleteLinks",
        "Remove the links from a chunk to another one.", _GROUP,
        run=unlink, query=UnlinkQuery, gives=Unlinked, writes=True, conditional=True,
    ),
    Endpoint(
        "GET", "/chunks/{chunk_id}/neighbours", "getNeighbours", "What stands around a chunk in its conversation.",
        _GROUP, run=_neighbours, query=NeighbourQuery, gives=Neighbours,
    ),
    Endpoint(
        "GET", "/tags", "listTags", "Tags with their counts.", _GROUP,
        run=_tags, query=CountQuery, gives=TagPage, paged=True,
    ),
    Endpoint(
        "GET", "/conversations", "listConversations", "Conversations with their counts and times.", _GROUP,
        run=_conversations, query=CountQuery, gives=ConversationPage, paged=True,
    ),
    Endpoint(
        "GET", "/timeline", "getTimeline", "Chunks of a period, in order of time.", _GROUP,
        run=_timeline, query=TimelineQuery, gives=ChunkPage, paged=True,
    ),
    Endpoint("GET", "/stats", "getStats", "How much is remembered.", _GROUP, run=_stats, gives=Figures),
)  # fmt: skip
