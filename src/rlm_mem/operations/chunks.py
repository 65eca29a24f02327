"""Chunks over HTTP: create, read, list, change, delete, restore, history and undo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field, structs

from rlm_mem.chunk import Chunk, expiry, parse_time
from rlm_mem.chunk.types import rank
from rlm_mem.errors import InputError, NotFoundError
from rlm_mem.operations.consent import AskedPerson, ask_to_forget, persons, refuse_persons
from rlm_mem.operations.fitting import Bounded, MayBeCut, PageQuery, Reply
from rlm_mem.operations.operation import PREFIX, Context, Operation, Tool
from rlm_mem.operations.problems import input_errors_as_conflicts, refused
from rlm_mem.operations.shapes import (
    ChunkOut,
    ChunkSummary,
    ChunkView,
    chunk_out,
    chunk_view,
    summary_of,
)
from rlm_mem.operations.traits import (
    chunk_reply,
    decode_cursor,
    encode_cursor,
    etag,
    in_one_change,
    matched,
)
from rlm_mem.operations.types import (
    ID_NAMES,
    AsOf,
    ChunkContent,
    ChunkId,
    ChunkType,
    Confidence,
    Extra,
    Line,
    OriginFilter,
    OriginName,
    Request,
    Revision,
    Secrets,
    Since,
    Tag,
    Tags,
    Time,
    TrustFilter,
    TrustName,
    TtlText,
    TypeFilter,
    Until,
    about,
)

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.text.secrets import Screened

_GROUP = "chunks"
Place = tuple[float, Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]]
"""Position in a list of chunks: time, and number in the index."""
#: Fields of a chunk's metadata that a change may name.
_METADATA_FIELDS = (
    "conversation_id", "source", "occurred_at", "valid_from", "valid_to", "extra", "origin", "trust", "expires_at",
)  # fmt: skip
_CORRECT = "remember the new text with `replaces`, which asks that person"
#: Fields of a change by which a memory would no longer say, or no longer be found with, what it says.
_HIDING = ("content", "occurred_at", "valid_from", "valid_to", "origin", "trust", "expires_at", "source")
_RESERVED = frozenset(("uses", "usage_count", "success_rate", "promoted_to", "reviewed_by", "quarantine"))
"""Fields of ``metadata.extra`` that record uses, reviews and moves between tiers."""
Ids = Annotated[list[ChunkId], about("Ids of memories (chunk-…), at most 20.", min_length=1, max_length=20)]


class ChunkWritten(ChunkOut):
    """A chunk as it was written; if the text contained secrets, with the counts of RememberResponse."""

    secrets: dict[str, int] | UnsetType = UNSET
    secrets_hidden: int | UnsetType = UNSET


class NewChunk(Request):
    """One chunk, stored as it is."""

    content: ChunkContent
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
    origin: OriginName | None = None
    trust: TrustName | None = None
    expires: Annotated[Time, about("When it expires; instead of ttl.")] | None = None
    ttl: TtlText | None = None


class ChunkFields(Bounded, kw_only=True):
    """New values of a memory's fields; those left out or null are unchanged."""

    content: Annotated[ChunkContent, about("The new content.")] | None = None
    tags: Annotated[Tags | Tag, about("The new tags.")] | None = None
    type: Annotated[ChunkType, about("The new type.")] | None = None
    confidence: Annotated[Confidence, about("Confidence, 0 to 1.")] | None = None
    secrets: Secrets | None = None


class ChunkChange(ChunkFields):
    """New values of a chunk's fields; those left out or null are unchanged."""

    conversation_id: Line | None = None
    source: Line | None = None
    occurred_at: Time | None = None
    valid_from: Time | None = None
    valid_to: Time | None = None
    extra: Annotated[Extra, about("Merged with the existing fields.")] | None = None
    origin: OriginName | None = None
    trust: TrustName | None = None
    expires_at: Annotated[Time, about("When it expires.")] | None = None


class UpdateArguments(ChunkFields, kw_only=True):
    """The tool's arguments."""

    id: ChunkId
    expected_revision: Annotated[Revision, about("Refuse if it was changed since this revision.")] | None = (
        None
    )


class UndoRequest(Request):
    """Which version to restore."""

    to_revision: Annotated[Revision, about("By default the one before the current.")] | None = None


class ReadQuery(Bounded, kw_only=True):
    """How to read a chunk."""

    track: Annotated[bool, about("Count this read.")] = True
    as_of: AsOf | None = None


class DeleteQuery(Request):
    """How to delete a chunk."""

    permanent: Annotated[bool, about("Erase it permanently, with its versions.")] = False


class TimelineQuery(PageQuery):
    """Which period."""

    start: Since | None = None
    end: Until | None = None


class ArchiveQuery(TimelineQuery):
    """Which deleted chunks to list."""

    conversation_id: Line | None = None
    type: TypeFilter | None = None
    order: Annotated[Literal["oldest", "newest"], about("Sort order.")] = "oldest"


class ListQuery(ArchiveQuery):
    """Which chunks to list."""

    tag: Annotated[Tags, about("Only with all of these tags.")] = field(default_factory=list)
    any_tag: Annotated[Tags, about("Only with at least one of these tags.")] = field(default_factory=list)
    origin: OriginFilter | None = None
    trust: TrustFilter | None = None
    as_of: AsOf | None = None


class ChunkPage(MayBeCut):
    """A page of summaries; ``next_cursor`` is null on the last one."""

    items: list[ChunkSummary]
    next_cursor: str | None


class VersionOut(Struct):
    """One version of a chunk; ``current`` marks the current one."""

    revision: int
    modified_at: str
    current: bool
    chunk: ChunkOut


class Versions(MayBeCut):
    """Every kept version, oldest first."""

    items: list[VersionOut]


class Reads(Struct):
    """How often a chunk was read, and when last."""

    access_count: int
    accessed_at: str


class ChunkViews(MayBeCut):
    """The memories found, and the ids that do not exist."""

    results: ClassVar[str] = "memories"
    memories: list[ChunkView]
    missing: list[str]


class Forgotten(Struct, omit_defaults=True):
    """Ids of archived chunks, and ids that do not exist. ``proposed`` are cases of the review queue that ask a person
    to forget what a person wrote or confirmed; ``note`` says so.
    """

    forgotten: list[str]
    missing: list[str]
    proposed: list[str] = []
    note: str | None = None


class GetArguments(Bounded, kw_only=True):
    """The tool's arguments."""

    ids: Ids
    as_of: AsOf | None = None


class IdsArguments(Request):
    """The tool's arguments."""

    ids: Ids


def _found(chunk: Chunk | None, chunk_id: str) -> Chunk:
    if chunk is None:
        raise NotFoundError(f"there is no chunk {chunk_id}", hint="deleted chunks are under /archive")
    return chunk


def _written(chunk: Chunk, found: list[Screened], **headers: str) -> Reply[ChunkWritten]:
    shown = ChunkWritten(**structs.asdict(chunk_out(chunk)))
    if found:
        report = found[0].report()
        shown.secrets, shown.secrets_hidden = dict(report.rules), report.count if report.hidden else 0
    return Reply(shown, None, {"ETag": etag(chunk), **headers})


def check_extra(given: Mapping[str, Any] | None, known: Mapping[str, Any]) -> None:
    """Refuse fields that decide what is promoted, trusted or released, unless they are as stored."""
    for name in sorted(_RESERVED & (given or {}).keys()):
        if (given or {})[name] != known.get(name):
            raise refused(409, f"extra.{name} is kept by the memory itself", hint="leave it out")


def _check_period(valid_from: str | None, valid_to: str | None) -> None:
    """Refuse a period that ends before it starts, which a schema cannot exclude."""
    if valid_from and valid_to and parse_time(valid_from) > parse_time(valid_to):
        raise refused(409, f"valid_from {valid_from} is after valid_to {valid_to}")


def check_expiry(context: Context, expires: str | None, ttl: str | None) -> None:
    """Refuse an expiry in the past, or both a time and a lifetime, which a schema cannot exclude."""
    with input_errors_as_conflicts():
        expiry(expires, ttl, context.memory.store.clock())


def create(context: Context, request: NewChunk) -> Reply[ChunkWritten]:
    """Store one chunk as it is."""
    check_expiry(context, request.expires, request.ttl)
    _check_period(request.valid_from, request.valid_to)
    found: list[Screened] = []
    given = structs.asdict(request)
    extra = given.pop("extra")
    check_extra(extra, {})
    chunk = context.memory.store.create_chunk(
        **given, metadata={"extra": extra} if extra else None, on_secret=found.append
    )
    return _written(chunk, found, Location=f"{PREFIX}/chunks/{chunk.id}")


def _as_of(context: Context, moment: str | None) -> ChunkStore:
    """Return the store, or a view of it as of a time."""
    store = context.memory.store
    return store if moment is None else store.held_at(moment)


def _read(context: Context, request: ReadQuery) -> Reply[ChunkOut]:
    chunk_id = context.path["chunk_id"]
    chunk = _as_of(context, request.as_of).get_chunk(chunk_id, track=request.track)
    if chunk is None and request.as_of is not None and context.memory.store.exists(chunk_id):
        raise NotFoundError(
            f"{chunk_id} was not valid at {request.as_of}", hint="leave out as_of to get its current state"
        )
    return chunk_reply(context, _found(chunk, chunk_id))


def _reads(context: Context, _: object) -> Reads:
    chunk_id = context.path["chunk_id"]
    about = _found(context.memory.store.get_chunk(chunk_id, track=False), chunk_id).metadata
    return Reads(about.access_count, about.accessed_at)


def change(context: Context, request: ChunkChange) -> Reply[ChunkWritten]:
    """Change a chunk."""
    about: dict[str, Any] = {
        name: value for name in _METADATA_FIELDS if (value := getattr(request, name)) is not None
    }
    found: list[Screened] = []
    if any(getattr(request, name) is not None for name in _HIDING):
        refuse_persons(context, [context.path["chunk_id"]], "change the text, validity or trust of", _CORRECT)
    with matched(context) as chunk_id:
        if request.valid_from or request.valid_to or request.extra:
            present = _found(context.memory.store.get_chunk(chunk_id, track=False), chunk_id).metadata
            check_extra(request.extra, present.extra)
            _check_period(request.valid_from or present.valid_from, request.valid_to or present.valid_to)
        chunk = context.memory.update(
            chunk_id,
            content=request.content,
            metadata=about or None,
            tags=request.tags,
            confidence=request.confidence,
            chunk_type=request.type,
            secrets=request.secrets,
            on_secret=found.append,
        )
    return _written(_found(chunk, chunk_id), found)


def delete(context: Context, request: DeleteQuery) -> Reply[Any]:
    """Archive a chunk, or erase it permanently; or ask a person to archive it."""
    if asked := persons(context, [context.path["chunk_id"]]):
        with matched(context):
            return Reply(ask_to_forget(context, list(asked.values())), status=202)
    if request.permanent:
        refuse_persons(context, [context.path["chunk_id"]], "erase", "a person does", archived=True)
    with matched(context) as chunk_id:
        if not context.memory.delete(chunk_id, request.permanent):
            raise NotFoundError(f"there is no chunk {chunk_id}")
    return Reply(status=204)


def restore(context: Context, _: object) -> Reply[ChunkOut]:
    """Restore a chunk from the archive."""
    with matched(context, archived=True) as chunk_id:
        chunk = context.memory.restore(chunk_id)
    if chunk is None and context.memory.store.exists(chunk_id):
        raise refused(409, f"{chunk_id} is not in the archive: it was never deleted, or is already restored")
    if chunk is None:
        raise NotFoundError(f"the archive has no chunk {chunk_id}")
    return chunk_reply(context, chunk)


def _history(context: Context, _: Bounded) -> Versions:
    chunk_id = context.path["chunk_id"]
    versions = context.memory.history(chunk_id)
    if not versions:
        damage = context.memory.store.damage(chunk_id)
        raise NotFoundError(
            f"there is no chunk {chunk_id}" if damage is None else f"{chunk_id} cannot be read", hint=damage
        )
    return Versions(
        [VersionOut(one.revision, one.modified_at, one.current, chunk_out(one.chunk)) for one in versions]
    )


def undo(context: Context, request: UndoRequest) -> Reply[ChunkOut]:
    """Restore a former version."""
    refuse_persons(context, [context.path["chunk_id"]], "undo a change of", _CORRECT)
    with matched(context) as chunk_id, context.memory.batch():
        # What is in quarantine is not released this way, which takes another permission.
        _found(context.memory.store.get_chunk(chunk_id, track=False), chunk_id)
        chunk = context.memory.undo(chunk_id, to_revision=request.to_revision)
    if chunk is None:
        raise NotFoundError(f"{chunk_id} has no such version", hint="see its history for the versions kept")
    return chunk_reply(context, chunk)


def _list(context: Context, request: ListQuery) -> ChunkPage:
    return listed_chunks(
        _as_of(context, request.as_of),
        request,
        tags=request.tag,
        any_tags=request.any_tag,
        origin=request.origin,
        trust=request.trust,
    )


def listed_chunks(store: ChunkStore, request: ArchiveQuery, **filters: Any) -> ChunkPage:
    """Return a page of a list, in its order; ``filters`` as of :func:`page_of_chunks`."""
    return page_of_chunks(
        store,
        request,
        request.order,
        conversation_id=request.conversation_id,
        chunk_type=request.type,
        newest_first=request.order == "newest",
        **filters,
    )


def page_of_chunks(store: ChunkStore, request: TimelineQuery, order: str, **filters: Any) -> ChunkPage:
    """Return a page of the chunks of a period, with the cursor of the next one.

    Args:
        order: names the list in its cursors.
        filters: further arguments of ``ChunkStore.list_page``.
    """
    after = None if request.cursor is None else decode_cursor(order, request.cursor, Place)
    ids, after = store.list_page(request.limit, after=after, start=request.start, end=request.end, **filters)
    found = map(store.get_archived, ids) if filters.get("archived") else store.summaries(ids)
    items = [summary_of(one) for one in found if one is not None]
    return ChunkPage(items, None if after is None else encode_cursor(order, *after))


_CREATED_ID = {"chunk_id": "$response.body#/id"}
_CHUNK_LINKS = dict.fromkeys(
    ("getChunk", "updateChunk", "deleteChunk", "getHistory", "undoChunk", "getReads", "listLinks", "getNeighbours",
     "getMarkdown"),
    _CREATED_ID,
)  # fmt: skip


def _get_several(context: Context, request: GetArguments) -> ChunkViews:
    found = ChunkViews([], [])
    store = _as_of(context, request.as_of)
    for chunk_id in dict.fromkeys(request.ids):
        chunk = store.get_chunk(chunk_id)
        if chunk is None:
            found.missing.append(chunk_id)
        else:
            found.memories.append(chunk_view(context.memory.store, chunk))
    return found


def _forget_several(context: Context, request: IdsArguments) -> Forgotten:
    context.check_owned(request.ids)
    theirs = persons(context, request.ids)
    asked = ask_to_forget(context, list(theirs.values())) if theirs else AskedPerson([], "")
    own = [one for one in request.ids if one not in theirs]
    forgotten, missing = in_one_change(context, own, context.memory.delete)
    return Forgotten(forgotten, missing, asked.proposed, asked.note or None)


def _agent_provenance(context: Context, chunk_id: str) -> dict[str, str] | None:
    """Return origin and trust of an agent's text, if the replaced text was trusted more; else None."""
    level = context.memory.store.trust_levels["agent"]
    for one in context.memory.store.summaries([chunk_id]):
        if rank(level) < rank(one.trust):
            return {"origin": "agent", "trust": level}
    return None


def _update_one(context: Context, request: UpdateArguments) -> ChunkView:
    if all(value is None for value in (request.content, request.tags, request.type, request.confidence)):
        raise InputError("nothing to change", hint="give content, tags, type or confidence")
    context.check_owned([request.id])
    if request.content is not None:
        refuse_persons(context, [request.id], "change the text of", _CORRECT)
    found: list[Screened] = []
    chunk = context.memory.update(
        request.id,
        content=request.content,
        metadata=None if request.content is None else _agent_provenance(context, request.id),
        tags=request.tags,
        chunk_type=request.type,
        confidence=request.confidence,
        expected_revision=request.expected_revision,
        secrets=request.secrets,
        on_secret=found.append,
    )
    if chunk is None:
        raise NotFoundError(f"there is no memory {request.id}", hint="search gives the ids")
    shown = chunk_view(context.memory.store, chunk)
    shown.note = str(found[0].report()) if found else None
    return shown


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/chunks", "listChunks", "List chunks by filter, in order of time.", _GROUP, run=_list, paged=True,
    ),
    Operation(
        "POST", "/chunks", "createChunk", "Store one chunk as it is.", _GROUP, run=create, status=201, writes=True,
        links={201: _CHUNK_LINKS},
    ),
    Operation("GET", "/chunks/{chunk_id}", "getChunk", "Read one chunk.", _GROUP, run=_read, tagged=True),
    Operation(
        "PATCH", "/chunks/{chunk_id}", "updateChunk", "Change a chunk; its former version is kept.", _GROUP, run=change,
        writes=True, conditional=True,
        tool=Tool(
            name="update",
            title="Update a memory",
            description="Change content, tags, type or confidence of a memory. Its former version is kept.",
            run=_update_one,
            destructive=True,
            aliases={
                **dict.fromkeys(("chunk_id", "memory_id"), "id"),
                **dict.fromkeys(("text", "new_content"), "content"),
                **dict.fromkeys(("chunk_type", "kind"), "type"),
                "revision": "expected_revision",
            },
            default=False,
        ),
    ),
    Operation(
        "DELETE", "/chunks/{chunk_id}", "deleteChunk", "Move a chunk to the archive, or erase it permanently.", _GROUP,
        run=delete, response=None, status=204, others={202: AskedPerson}, writes=True, conditional=True,
    ),
    Operation(
        "POST", "/chunks/{chunk_id}/restore", "restoreChunk", "Restore a chunk from the archive.", _GROUP, run=restore,
        writes=True, conditional=True,
    ),
    Operation(
        "GET", "/chunks/{chunk_id}/history", "getHistory", "Every kept version of a chunk.", _GROUP, run=_history,
    ),
    Operation(
        "POST", "/chunks/{chunk_id}/undo", "undoChunk", "Restore a former version as a new revision.", _GROUP, run=undo,
        writes=True, conditional=True,
    ),
    Operation("GET", "/chunks/{chunk_id}/reads", "getReads", "How often a chunk was read.", _GROUP, run=_reads),
    Operation(
        "", "", "getChunks", "Read chunks with their links, by ids.", _GROUP, permission="read", run=_get_several,
        tool=Tool(
            name="get",
            title="Read memories",
            description="Read memories in full by their ids, with links, what they replaced and what replaced "
            "them.",
            aliases=ID_NAMES,
        ),
    ),
    Operation(
        "", "", "deleteChunks", "Move chunks to the archive, by ids.", _GROUP, run=_forget_several, writes=True,
        tool=Tool(
            name="forget",
            title="Forget memories",
            description="Archive memories by their ids, if they are wrong or somebody asks you to forget them; a "
            "person can restore them. If `note` says that a person is asked first, tell them so. For a fact that has "
            "changed, call `remember` with `replaces` instead.",
            destructive=True,
            aliases=ID_NAMES,
        ),
    ),
)  # fmt: skip
